"""Margins, tubes and the rows that hold them are where the machines put them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.svm import SVC as PeerSVC

from lemmata.plot import BoundaryDisplay, KernelMatrixDisplay, MarginDisplay, RegressionDisplay, TubeDisplay, display_for
from lemmata.plot.plane import score_directions
from lemmata.svm import SVC, SVR, KernelPerceptron, LinearSVR


def classes(k=2, n=90, d=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return rng.normal(size=(n, d)) + 2.5 * rng.normal(size=(k, d))[y], y


def lines(display, level):
    """Give the points of the lines at a height, those of all classes in order."""
    return [
        np.vstack(path.to_polygons(closed_only=False))
        for drawn in display.ax_.collections
        if hasattr(drawn, "levels") and not drawn.filled and list(drawn.levels) == [level]
        for path in drawn.get_paths()
    ]


def entries(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("model", [SVC(kernel="linear"), SVC(gamma=0.5), SVC(probability=True), PeerSVC(gamma=0.5)])
def test_two_classes_have_two_margins(model):
    X, y = classes()
    display = MarginDisplay.from_estimator(model.fit(X, y + 3), X, y + 3)
    (boundary,), margins = lines(display, 0.0), lines(display, 1.0)
    assert len(margins) == 2
    # Between points of the grid scores are taken for linear; cells are small.
    assert_allclose(model.decision_function(boundary), 0, atol=2e-3)
    for points, score in zip(margins, [-1, 1], strict=True):
        assert_allclose(model.decision_function(points), score, atol=2e-3)
    assert_array_equal(display.support, model.support_vectors_)
    assert f"support vectors: {len(model.support_)}" in entries(display)
    assert "score ±1" in entries(display)
    rings = display.ax_.collections[-1]
    assert_array_equal(rings.get_offsets(), model.support_vectors_)
    wrong = int((model.predict(X) != y + 3).sum())
    assert (f"mistakes: {wrong} of 90" in entries(display)) == bool(wrong)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("model", [SVC(gamma=0.5), PeerSVC(gamma=0.5), SVC(gamma=0.5, decision_function_shape="ovo")])
def test_margins_of_several_classes_are_those_of_the_nearest_machine(model):
    X, y = classes(4, n=200)
    display = MarginDisplay.from_estimator(model.fit(X, y), X, y)
    shape = model.decision_function_shape
    pairwise = model.set_params(decision_function_shape="ovo").decision_function
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    seen = 0
    for k, points in enumerate(lines(display, 1.0)):
        scores = pairwise(points)
        own = [scores[:, p] * (1 if i == k else -1) for p, (i, j) in enumerate(pairs) if k in (i, j)]
        least = np.min(own, axis=0)
        assert np.quantile(np.abs(least - 1), 0.9) < 5e-3  # cells are small
        assert_allclose(least, 1, atol=0.05)  # where the nearest machine changes, a line has a corner inside a cell
        seen += len(points)
    assert seen > 50
    model.set_params(decision_function_shape=shape)
    first, second = display.grid
    for i, j in np.random.default_rng(1).integers(len(first), size=(60, 2)):
        label = model.predict([[first[j], second[i]]])[0]
        assert label == display.regions[i, j]
        assert display._ahead()[label, i, j] > 0


def test_rows_of_other_columns_sparse_rows_and_rows_of_one_column():
    X, y = classes(d=4)
    model = SVC(kernel="linear").fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y)
    assert display.ax_.get_xlabel() == "direction of the coefficients, from the mean"
    assert_allclose(model.decision_function(display.plane.rows(display.support)), model.decision_function(X[model.support_]))
    sparse = SVC(kernel="linear").fit(csr_array(X), y)
    assert_allclose(np.sort(sparse.plot(csr_array(X), y).support, axis=0), np.sort(display.support, axis=0), atol=1e-9)
    line = X[:, :1]
    display = SVC().fit(line, y).plot(line, y)
    held = display.support[:, 0]
    assert set(held) <= set(line[:, 0])
    assert {tuple(p) for p in display.support} <= {tuple(p) for p in display.points}


def test_machines_of_pairs_have_no_plane_that_keeps_all_scores():
    X, y = classes(3, d=5)
    model = SVC(kernel="linear").fit(X, y)
    assert np.linalg.matrix_rank(model.coef_) == 3
    assert score_directions(model, 5).shape == (5, 0)
    model = SVC(kernel="linear").fit(csr_array(X[:, :4] * [1, 1, 1, 0]), y > 0)
    assert score_directions(model, 4).shape == (4, 1)  # weights that are sparse


def test_display_for_knows_machines():
    X, y = classes()
    assert display_for(SVC().fit(X, y)) is MarginDisplay
    assert display_for(PeerSVC().fit(X, y)) is MarginDisplay
    assert display_for(KernelPerceptron(gamma=20.0).fit(X, y)) is BoundaryDisplay  # its support vectors hold no margin
    assert display_for(SVR().fit(X, y)) is RegressionDisplay
    assert display_for(SVR().fit(X[:, :1], y)) is TubeDisplay
    assert isinstance(BoundaryDisplay.from_estimator(SVC().fit(X, y), X, y), BoundaryDisplay)
    K = X @ X.T
    display = SVC(kernel="precomputed").fit(K, y).plot(K, y)
    assert isinstance(display, KernelMatrixDisplay)


def test_the_tube_is_epsilon_around_the_prediction():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, size=(50, 1))
    y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=50)
    model = SVR(C=5.0, epsilon=0.15).fit(X, y)
    display = model.plot(X, y)
    assert isinstance(display, TubeDisplay)
    (curve,) = display.ax_.lines
    assert_allclose(curve.get_ydata(), model.predict(curve.get_xdata()[:, None]))
    ends = display.ax_.collections[0].get_paths()[0].vertices
    heights = np.abs(ends[:, 1] - model.predict(ends[:, :1]))
    assert_allclose(heights, 0.15, rtol=1e-9)
    assert_array_equal(np.flatnonzero(display.support), np.sort(model.support_))
    outside = np.abs(y - model.predict(X)) > 0.15 + 1e-5
    assert display.support[outside].all()
    assert f"support vectors: {len(model.support_)} of 50 rows" in entries(display)


def test_tubes_of_many_columns_and_without_targets():
    X, y = classes(d=3)
    model = SVR(kernel="linear", epsilon=0.3).fit(X, y.astype(float))
    display = TubeDisplay.from_estimator(model, X, y, feature="b", feature_names="abc")
    assert display.ax_.get_xlabel() == "b (other columns at their means)"
    assert display.ax_.get_ylabel() == "target, adjusted"
    at = np.tile(X.mean(axis=0), (len(X), 1))
    at[:, 1] = X[:, 1]
    assert_allclose(display.points[:, 1] - model.predict(at), y - model.predict(X), atol=1e-12)
    linear = TubeDisplay.from_estimator(LinearSVR(epsilon=0.3).fit(X, y.astype(float)), X, y)
    assert linear.support is None
    assert TubeDisplay.from_estimator(model, X).points is None
