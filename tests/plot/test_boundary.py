"""The boundary that is drawn is the boundary, and rows lie on their side of it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression as Peer
from sklearn.tree import DecisionTreeClassifier

from lemmata.linear_model import LogisticRegression, Perceptron, ProbitRegression
from lemmata.plot import BoundaryDisplay
from lemmata.plot.boundary import RESOLUTION
from lemmata.plot.drawing import CLASS_COLORS, class_colors
from lemmata.plot.plane import choose_plane, score_directions


def classes(n_columns=2, k=2, n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)) * 2 + 1
    return X, (X @ rng.normal(size=(n_columns, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)


def lines(display):
    """Give the points of each line that is drawn, by its height, lines of all classes in order."""
    found = []
    for drawn in display.ax_.collections:
        if hasattr(drawn, "levels") and not drawn.filled:
            found += [
                (h, np.vstack(p.to_polygons(closed_only=False))) for h, p in zip(drawn.levels, drawn.get_paths(), strict=True)
            ]
    return found


@pytest.mark.parametrize("model", [LogisticRegression(), LogisticRegression(C=1e6), Peer()])
def test_lines_of_two_classes_have_their_probabilities(model):
    X, y = classes()
    display = BoundaryDisplay.from_estimator(model.fit(X, y), X, y)
    drawn = lines(display)
    assert len(drawn) == 5
    for (height, points), p in zip(drawn, [0.5, 0.25, 0.1, 0.75, 0.9], strict=True):
        # log odds are linear, and so is the interpolation between the points of the grid; but they are large
        assert_allclose(model.predict_proba(points)[:, 1], p, rtol=1e-6)
        assert_allclose(abs(height), np.log(max(p, 1 - p) / min(p, 1 - p)), rtol=1e-12)
    texts = {text.get_text() for text in display.ax_.texts}
    assert len(texts) >= 3  # one may have no room
    assert texts <= {"0.1", "0.25", "0.75", "0.9"}
    assert "probability of 1\n0.1, 0.25, 0.75, 0.9" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_lines_of_several_classes_are_ties_and_levels_of_the_largest_probability():
    X, y = classes(k=4, n=300)
    model = LogisticRegression().fit(X, y)
    drawn = lines(BoundaryDisplay.from_estimator(model, X, y))
    ties = [points for height, points in drawn if height == 0]
    levels = [(height, points) for height, points in drawn if height != 0]
    assert len(ties) == 3  # every boundary is one of a class before the last
    assert levels
    for points in ties:
        first, second = np.sort(model.predict_proba(points), axis=1)[:, [-1, -2]].T
        # Where three regions meet, a line ends in the middle of a cell.
        assert np.quantile(np.abs(first - second), 0.95) < 0.01
    for height, points in levels:
        assert_allclose(model.predict_proba(points).max(axis=1), 1 / (1 + np.exp(-height)), atol=0.005)  # cells are small


def test_probabilities_that_jump_have_a_straight_boundary():
    X, y = classes()
    model = LogisticRegression(C=np.inf).fit(X, y)
    model.coef_, model.intercept_ = model.coef_ * 1e4, model.intercept_ * 1e4  # from 0 to 1 within a cell of the grid
    (_, points), *_ = lines(BoundaryDisplay.from_estimator(model, X, y))
    assert_allclose(model.decision_function(points) / np.linalg.norm(model.coef_), 0, atol=1e-9)


def test_what_is_not_drawn_is_not_in_the_legend_and_numbers_do_not_collide():
    X, y = classes()
    tree = DecisionTreeClassifier(random_state=0).fit(X, y)  # from 0 to 1 in one step: nothing lies between
    display = BoundaryDisplay.from_estimator(tree, X, y)
    assert {height for height, _ in lines(display)} == {0}
    assert not any("probability" in text.get_text() for text in display.ax_.get_legend().get_texts())
    assert not display.ax_.texts
    X, y = classes(k=3, n=300)
    for scale, drawn in ((1.0, True), (3.0, True), (10.0, True), (40.0, False)):
        model = LogisticRegression().fit(X, y)
        model.coef_, model.intercept_ = model.coef_ * scale, model.intercept_ * scale
        display = BoundaryDisplay.from_estimator(model, X, y)
        display.figure_.canvas.draw()
        boxes = [text.get_window_extent() for text in display.ax_.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
        assert ("largest probability\n0.75, 0.9" in told) == drawn  # at last the lines are the boundary
    assert not boxes


def test_a_link_that_is_not_symmetric_has_its_boundary_at_one_half():
    X, y = classes()
    model = ProbitRegression(link="cloglog").fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y)
    (_, points), *_ = lines(display)
    assert_allclose(model.predict_proba(points)[:, 1], 0.5, atol=1e-3)  # log odds are curved here, cells are small
    assert np.abs(model.decision_function(points)).min() > 0.1  # where the score vanishes, p is 1 − 1/e


@pytest.mark.parametrize("k", [2, 3, 5])
def test_regions_are_predictions(k):
    X, y = classes(k=k)
    model = LogisticRegression().fit(X, y + 7)
    display = BoundaryDisplay.from_estimator(model, X, y + 7)
    first, second = display.grid
    for i, j in np.random.default_rng(1).integers(RESOLUTION, size=(50, 2)):
        assert model.predict([[first[j], second[i]]])[0] == display.regions[i, j] + 7
    assert_array_equal(display.labels, y)
    assert_array_equal(display.points, X)
    entries = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert entries[:k] == [f"{j + 7}: {(y == j).sum()} rows" for j in range(k)]
    wrong = int((model.predict(X) != y + 7).sum())
    assert f"mistakes: {wrong} of {len(y)}" in entries
    rings = display.ax_.collections[-1]
    assert_array_equal(rings.get_offsets(), X[model.predict(X) != y + 7])
    display.figure_.canvas.draw()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n_columns", [3, 6])
def test_rows_of_many_columns_keep_their_scores_on_the_plane(n_columns, k):
    X, y = classes(n_columns, k)
    model = LogisticRegression().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert_allclose(display.plane.directions.T @ display.plane.directions, np.eye(2), atol=1e-12)
    assert_allclose(model.predict_proba(display.plane.rows(display.points)), model.predict_proba(X), atol=1e-12)


def test_one_against_the_rest_keeps_its_labels_on_the_plane():
    X, y = classes(5, 3)
    model = LogisticRegression(multi_class="ovr").fit(X, y)  # three coefficient vectors, two differences
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert display.ax_.get_xlabel() == "first direction of the scores, from the mean"
    assert_array_equal(model.predict(display.plane.rows(display.points)), model.predict(X))


def test_more_scores_than_directions_fall_back_to_principal_ones():
    X, y = classes(6, 5)
    model = LogisticRegression().fit(X, y)
    assert score_directions(model, 6).shape == (6, 0)
    display = BoundaryDisplay.from_estimator(model, X, y)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    assert_allclose(np.abs(vectors[:, [-1, -2]].T @ display.plane.directions), np.eye(2), atol=1e-9)
    assert f"{values[-1] / values.sum():.0%} of the variance" in display.ax_.get_xlabel()
    assert "the plane through the mean" in display.ax_.get_xlabel()


def test_coefficients_of_other_features_than_the_columns_are_left_alone():
    class Model:
        coef_ = np.ones((1, 7))

    assert score_directions(Model(), 3).shape == (3, 0)
    assert score_directions(object(), 3).shape == (3, 0)
    plane = choose_plane(Model(), np.random.default_rng(0).normal(size=(9, 3)), ["a", "b", "c"])
    assert plane.names[0].startswith("first principal direction")


def test_chosen_columns_leave_the_others_at_their_means():
    X, y = classes(4)
    model = LogisticRegression().fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, features=("b", 3), feature_names="abcd")
    assert_array_equal(display.points, X[:, [1, 3]])
    first, second = display.grid
    row = X.mean(axis=0)
    row[[1, 3]] = first[10], second[20]
    assert_allclose(np.exp(display.values[20, 10]), model.predict_proba([row])[0], rtol=1e-12)
    assert display.ax_.get_xlabel() == "b (other columns at their means)"
    assert display.ax_.get_ylabel() == "d"


def test_margins_lie_one_over_the_length_away():
    rng = np.random.default_rng(0)
    y = np.arange(40) % 2
    X = rng.normal(size=(40, 2)) * 0.3 + y[:, None] - 0.5
    model = Perceptron(random_state=0, intercept_scaling=1.0).fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y)
    drawn = lines(display)
    distances = {round(h): (p @ model.coef_[0] + model.intercept_) / np.linalg.norm(model.coef_) for h, p in drawn}
    assert set(distances) == {0, -1, 1}
    for height, distance in distances.items():
        assert_allclose(distance, height / np.linalg.norm(model.coef_), atol=1e-9)
    assert "score ±1" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


class Circle(ClassifierMixin, BaseEstimator):
    """A classifier that tells labels and nothing else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return self.classes_[(np.linalg.norm(np.asarray(X)[:, :2], axis=1) > 1).astype(int)]


def test_labels_alone_are_enough():
    X = np.random.default_rng(0).normal(size=(50, 2))
    y = np.linalg.norm(X, axis=1) > 1
    display = BoundaryDisplay.from_estimator(Circle().fit(X, y), X, y)
    assert display.response == "label"
    for _, points in lines(display):
        assert_allclose(np.linalg.norm(points, axis=1), 1, atol=0.05)  # a cell of the grid
    assert "mistakes" not in "".join(text.get_text() for text in display.ax_.get_legend().get_texts())


def test_rows_without_labels_are_neutral():
    X, y = classes()
    display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X)
    assert display.labels is None
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()][:2] == ["0", "1"]


def test_one_column_spreads_its_rows():
    X, y = classes(1)
    display = BoundaryDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    assert_array_equal(display.points[:, 0], X[:, 0])
    assert len(np.unique(display.points[:, 1])) == len(X)
    assert not len(display.ax_.get_yticks())


@pytest.mark.parametrize("seed", range(3))
def test_a_model_without_an_opinion_has_a_picture(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 3)), np.arange(20) % 2
    X[:, 1] = 4.0
    model = LogisticRegression(C=1e-12).fit(X, y)
    model.coef_ = model.coef_ * 0
    model.intercept_ = model.intercept_ * 0 + 1
    display = BoundaryDisplay.from_estimator(model, X, y)
    assert (display.regions == 1).all()
    assert not lines(display)
    BoundaryDisplay.from_estimator(model, X[:1].repeat(2, axis=0), y[:2]).figure_.canvas.draw()


def test_a_label_that_was_not_learned_is_named():
    X, y = classes()
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="y holds the label 9, which is not a class of the fit"):
        BoundaryDisplay.from_estimator(model, X, np.full(len(X), 9))


def test_wide_tables_are_asked_in_parts(monkeypatch):
    X, y = classes(3)
    model = LogisticRegression().fit(X, y)
    whole = BoundaryDisplay.from_estimator(model, X, y)
    monkeypatch.setattr("lemmata.plot.boundary.AT_ONCE", 1000)
    assert_allclose(BoundaryDisplay.from_estimator(model, X, y).values, whole.values, rtol=1e-14)


def test_colors_are_told_apart():
    assert class_colors(2) == list(CLASS_COLORS[:2])
    assert len({tuple(color) for color in class_colors(12)}) == 12
