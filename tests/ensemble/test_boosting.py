"""Gradient boosting: the catalogue's numbers, brute force, scikit-learn's trees, and what every option promises."""

import os
import signal
import threading
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_iris, load_wine, make_classification, make_friedman1
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.ensemble import GradientBoostingClassifier, GradientBoostingRegressor, gradient_growth, gradient_team


def numbers(n=400, seed=0):
    X, y = make_friedman1(n, n_features=6, noise=0.5, random_state=seed)
    return X, y


def classes(n=400, k=2, seed=0):
    return make_classification(n, 6, n_informative=4, n_redundant=0, n_classes=k, flip_y=0.1, random_state=seed)


@pytest.mark.item("TRE-11")
def test_the_catalogues_stump():
    X, y = [[1.0], [2.0], [3.0]], np.array([1.0, 2.0, 6.0])
    for step in ("newton", "line-search"):
        model = GradientBoostingRegressor(step=step, max_iter=1, learning_rate=1.0, max_leaf_nodes=2, min_samples_leaf=1).fit(
            X, y
        )
        assert model.init_[0] == 3.0
        assert ((y - model.init_[0]) ** 2).sum() == 14.0
        assert ((y - model.predict(X)) ** 2).sum() == pytest.approx(0.5, rel=1e-12)
        assert model.certify(X, y).holds


@pytest.mark.item("TRE-11")
@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "huber"])
@pytest.mark.parametrize("step", ["newton", "line-search"])
def test_losses_of_numbers_fall_and_are_certified(loss, step):
    X, y = numbers()
    model = GradientBoostingRegressor(loss, quantile=0.8, step=step, max_iter=25).fit(X, y)
    assert (np.diff(model.train_score_) >= 0).all()
    assert model.train_score_[-1] > 0.6 * model.train_score_[0]
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    if loss == "quantile":
        assert (y <= model.predict(X)).mean() == pytest.approx(0.8, abs=0.1)  # 25 stages of a tenth are not the end


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
@pytest.mark.parametrize("step", ["newton", "line-search"])
def test_losses_of_classes_fall_and_are_certified(loss, step, k):
    X, y = classes(k=k)
    model = GradientBoostingClassifier(loss, step=step, max_iter=15)
    if loss == "exponential" and k > 2:
        with pytest.raises(ValueError, match="for two classes, and y has 3"):
            model.fit(X, y)
        return
    model.fit(X, y)
    assert (np.diff(model.train_score_) >= 0).all()
    assert model.score(X, y) > 0.85
    assert model.certify(X, y).holds


def test_the_first_tree_is_the_best_of_all_by_brute_force():
    X, y = numbers(120)
    model = GradientBoostingRegressor(max_iter=1, max_leaf_nodes=2, min_samples_leaf=7).fit(X, y)
    r = y - y.mean()
    best = (-1.0, None, None)
    for j in range(X.shape[1]):
        values = np.unique(X[:, j])
        for t in (values[:-1] + values[1:]) / 2:
            left = X[:, j] <= t
            if 7 <= left.sum() <= len(y) - 7:
                best = max(best, (r[left].sum() ** 2 / left.sum() + r[~left].sum() ** 2 / (~left).sum(), j, t))
    tree = model.trees_[0]
    assert (tree.feature[0], tree.threshold[0]) == best[1:]
    assert tree.gain[0] == pytest.approx(best[0] / 2, rel=1e-12)


@pytest.mark.parametrize("holes", [False, True])
def test_numbers_are_those_of_scikit_learn_on_the_same_bins(holes):
    X, y = numbers(250)  # at most 255 values in a column: bins are the same
    if holes:
        X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    options = {"max_iter": 30, "l2_regularization": 0.5, "min_samples_leaf": 5}
    ours = GradientBoostingRegressor(**options).fit(X, y)
    peer = HistGradientBoostingRegressor(**options).fit(X, y)
    # Float32 sums of gradients in the peer; one different split would show as 1e-2.
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("k", [2, 3])
def test_classes_are_those_of_scikit_learn_on_the_same_bins(k):
    X, y = classes(250, k)
    options = {"max_iter": 10, "max_leaf_nodes": 4}  # small leaves of few distinct gradients would tie
    ours = GradientBoostingClassifier(**options).fit(X, y)
    peer = HistGradientBoostingClassifier(**options).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), atol=1e-4)


def test_many_rows_predict_as_well_as_scikit_learn():
    X, y = make_classification(90_000, 12, n_informative=8, flip_y=0.05, random_state=1)  # rounded by a dither
    options = {"max_iter": 20, "early_stopping": False}
    ours = GradientBoostingClassifier(**options).fit(X[:70_000], y[:70_000])
    peer = HistGradientBoostingClassifier(**options).fit(X[:70_000], y[:70_000])
    assert ours.score(X[70_000:], y[70_000:]) > peer.score(X[70_000:], y[70_000:]) - 0.004  # a standard error is 0.0015
    certificate = ours.certify(X[:70_000], y[:70_000])
    assert certificate.holds, str(certificate)


@pytest.mark.parametrize("n", [9000, 70_000])
def test_the_same_trees_for_any_number_of_threads(n):
    X, y = make_classification(n, 20, n_informative=8, n_classes=3, flip_y=0.1, random_state=2)
    X[np.random.default_rng(1).random(X.shape) < 0.05] = np.nan
    models = []
    for threads in (1, 2, 3):
        with lemmata.config(n_threads=threads):
            models.append(GradientBoostingClassifier(max_iter=4, subsample=0.8, random_state=0).fit(X, y))
    assert models[0].trees_ == models[1].trees_ == models[2].trees_
    assert np.array_equal(models[0].train_score_, models[1].train_score_)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error"])
def test_rows_in_order_and_histograms_that_were_not_kept_change_nothing(loss, monkeypatch):
    """Threads have rows in stripes, whatever their order; a leaf without a histogram has it summed up again."""
    X, y = make_friedman1(12_000, random_state=0)
    order = np.argsort(y, kind="stable")
    options = {"loss": loss, "max_iter": 3, "max_leaf_nodes": None, "min_samples_leaf": 40, "early_stopping": False}
    with lemmata.config(n_threads=3):
        kept = GradientBoostingRegressor(**options).fit(X[order], y[order])
        monkeypatch.setattr(gradient_growth, "MOST_BYTES", 0)
        again = GradientBoostingRegressor(**options).fit(X[order], y[order])
    assert kept.trees_ == again.trees_
    assert kept.trees_[0].n_leaves > 100
    assert kept.certify(X[order], y[order]).holds
    shuffled = GradientBoostingRegressor(**options).fit(X, y)
    assert np.array_equal(shuffled.trees_.nodes.feature, kept.trees_.nodes.feature)
    np.testing.assert_allclose(shuffled.predict(X[:99]), kept.predict(X[:99]), rtol=1e-9)  # sums in another order


def test_a_signal_in_the_middle_of_a_fit_ends_all_threads():
    X, y = make_friedman1(20_000, random_state=0)
    options = {"early_stopping": False, "random_state": 0}
    GradientBoostingRegressor(max_iter=1, **options).fit(X, y)  # compiled before
    before = threading.active_count()
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = GradientBoostingRegressor(max_iter=100_000, **options).fit(X, y)
    timer.join()
    assert threading.active_count() == before
    assert 0 < model.n_iter_ < 100_000
    assert model.certify(X, y).holds
    assert model.trees_[0] == GradientBoostingRegressor(max_iter=1, **options).fit(X, y).trees_[0]


def test_a_weight_is_repetition():
    X, y = numbers(150)
    weight = np.random.default_rng(5).integers(1, 4, 150)
    options = {"max_iter": 10, "random_state": 0}
    one = GradientBoostingRegressor(**options).fit(X, y, weight)
    other = GradientBoostingRegressor(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-12)
    assert np.array_equal(one.trees_.nodes.feature, other.trees_.nodes.feature)


def test_categories_are_grouped_as_well_as_any_subset_can():
    rng = np.random.default_rng(6)
    c = rng.integers(0, 7, 200)
    y = np.array([3.0, -1, 2, -2, 0.5, 1, -3])[c] + rng.normal(size=200)
    model = GradientBoostingRegressor(
        max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, l2_regularization=2.0, categorical_features=[0]
    ).fit(c[:, None].astype(float), y)
    r = y - y.mean()
    best = 0.0
    for subset in range(1, 2**6):
        left = (subset >> c) & 1 == 1
        best = max(best, r[left].sum() ** 2 / (left.sum() + 2) + r[~left].sum() ** 2 / ((~left).sum() + 2))
    gain = best - r.sum() ** 2 / (len(y) + 2)
    assert model.trees_[0].gain[0] == pytest.approx(gain / 2, rel=1e-9)
    assert model.certify(c[:, None].astype(float), y).holds


def test_text_columns_holes_and_unseen_categories():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"color": rng.choice(["red", "green", "blue", None], 300), "x": rng.normal(size=300)})
    y = (frame["color"] == "red") * 2.0 + frame["x"].to_numpy() * 0.3
    model = GradientBoostingRegressor(max_iter=30).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert model.certify(frame, y).holds
    assert np.isfinite(model.predict(pd.DataFrame({"color": ["violet"], "x": [0.0]}))).all()


def test_missing_values_find_their_own_way():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(500, 2))
    X[rng.random(500) < 0.3, 0] = np.nan
    y = np.isnan(X[:, 0]) * 5.0 + np.nan_to_num(X[:, 0])
    model = GradientBoostingRegressor().fit(X, y)
    assert model.score(X, y) > 0.99
    assert model.certify(X, y).holds


@pytest.mark.parametrize("step", ["newton", "line-search"])
def test_monotone_columns_stay_monotone(step):
    rng = np.random.default_rng(9)
    X = rng.uniform(-2, 2, size=(500, 3))
    y = X[:, 0] - X[:, 1] + np.sin(4 * X[:, 0]) + rng.normal(size=500)
    model = GradientBoostingRegressor(monotonic_cst=[1, -1, 0], min_samples_leaf=5, step=step).fit(X, y)
    for j, sign in ((0, 1), (1, -1)):
        grid = np.repeat(X[:40], 50, axis=0)
        grid[:, j] = np.tile(np.linspace(-2, 2, 50), 40)
        path = model.predict(grid).reshape(40, 50)
        assert (sign * np.diff(path, axis=1) >= -1e-12).all()
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    free = GradientBoostingRegressor(min_samples_leaf=5).fit(X, y)
    assert free.score(X, y) > model.score(X, y)


def test_monotone_columns_that_cannot_be_are_refused():
    X, y = numbers(60)
    for options, words in (
        ({"monotonic_cst": [2, 0, 0, 0, 0, 0]}, "must have -1, 0 or 1"),
        ({"monotonic_cst": {"x9": 1}}, "not a column of X"),
        ({"monotonic_cst": [1, 0, 0, 0, 0, 0], "loss": "absolute_error"}, "needs a loss with a second derivative"),
        ({"monotonic_cst": [1, 0, 0, 0, 0, 0], "categorical_features": [0]}, "categorical column, which has none"),
    ):
        with pytest.raises(ValueError, match=words):
            GradientBoostingRegressor(**options).fit(X, y)
    with pytest.raises(ValueError, match="needs the parameter quantile"):
        GradientBoostingRegressor("quantile").fit(X, y)


def test_early_stopping_watches_rows_it_has_not_seen():
    X, y = numbers(600)
    model = GradientBoostingRegressor(early_stopping=True, max_iter=400, random_state=0).fit(X, y)
    assert model.n_iter_ < 400
    assert len(model.validation_score_) == len(model.train_score_) == model.n_iter_ + 1
    best = model.validation_score_[:-10].max()
    assert model.validation_score_[-10:].max() <= best + 1e-7
    assert model.certify(X, y).holds
    assert len(GradientBoostingRegressor(max_iter=2).fit(X, y).validation_score_) == 0


@pytest.mark.parametrize("options", [{"subsample": 0.5}, {"max_features": 0.4}, {"max_depth": 2}, {"max_leaf_nodes": None}])
def test_options_are_certified_and_replayed_from_the_seed(options):
    X, y = numbers(300)
    model = GradientBoostingRegressor(max_iter=8, random_state=3, **options).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert model.trees_ == GradientBoostingRegressor(max_iter=8, random_state=3, **options).fit(X, y).trees_
    if "max_depth" in options:
        assert max(tree.max_depth for tree in model.trees_) == 2


def test_stages_end_where_predictions_do():
    X, y = classes(k=3)
    model = GradientBoostingClassifier(max_iter=5, class_weight="balanced").fit(X, y)
    *_, last = model.staged_predict_proba(X)
    np.testing.assert_allclose(last, model.predict_proba(X), rtol=1e-12)
    assert [s.shape for s in model.staged_decision_function(X)] == [(400, 3)] * 5
    assert np.array_equal(list(model.staged_predict(X))[-1], model.predict(X))
    assert model.feature_importances_.sum() == pytest.approx(1.0, rel=1e-12)


def test_sparse_rows_are_dense_rows():
    X, y = numbers(300)
    X[X < 0.5] = 0.0
    one, other = GradientBoostingRegressor().fit(X, y), GradientBoostingRegressor().fit(csr_array(X), y)
    assert one.trees_ == other.trees_
    assert np.array_equal(one.predict(X), other.predict(csr_array(X)))
    assert other.certify(csr_array(X), y).holds


@pytest.mark.parametrize("field", ["value", "threshold", "gain", "weighted_n_node_samples"])
def test_one_percent_of_one_number_of_one_tree_is_refused(field):
    X, y = numbers()
    model = GradientBoostingRegressor(max_iter=20).fit(X, y)
    nodes = model.trees_.nodes
    inner = np.flatnonzero(nodes.children_left >= 0)
    place = inner[7] if field != "value" else np.flatnonzero(nodes.children_left < 0)[7]
    changed = getattr(nodes, field).copy()
    changed[place] *= 1.01
    model.trees_ = replace(model.trees_, nodes=replace(nodes, **{field: changed}))
    assert not model.certify(X, y).holds


def test_a_split_that_is_not_the_best_is_refused():
    X, y = numbers()
    good = GradientBoostingRegressor(max_iter=3).fit(X, y)
    other = GradientBoostingRegressor(max_iter=3, max_features=0.5, random_state=0).fit(X, y)
    other.max_features = 1.0
    assert good.certify(X, y).holds
    assert "splits" in [check.name for check in other.certify(X, y).failed]


def test_line_searches_on_classes_that_come_apart():
    """Slopes underflow, and some subsamples are separated: no step may run away."""
    X, y = load_iris(return_X_y=True)
    for data in ((X, y), load_wine(return_X_y=True)):
        model = GradientBoostingClassifier(max_iter=60, step="line-search", subsample=0.5, random_state=0).fit(*data)
        certificate = model.certify(*data)
        assert certificate.holds, str(certificate)
        assert model.train_score_.min() > -3.0


def test_categories_that_a_node_has_not_seen_go_with_missing_values():
    c = np.arange(510.0) % 255
    c[:30] = np.nan
    y = np.where(np.isnan(c), 3.0, np.sin(c * 7))
    model = GradientBoostingRegressor(categorical_features=[0], min_samples_leaf=1, max_iter=5).fit(c[:, None], y)
    certificate = model.certify(c[:, None], y)
    assert certificate.holds, str(certificate)
    at = model.trees_.nodes.children_left >= 0
    assert model.trees_.nodes.missing_go_to_left[at].any(), "some go left"


@pytest.mark.parametrize("seed", range(10))
def test_categories_of_equal_gradients_are_certified(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.integers(0, 80, 600), rng.integers(0, 40, 600)]).astype(float)
    y = (rng.random(600) < 0.3).astype(int)
    model = GradientBoostingClassifier(categorical_features=[0, 1], max_iter=3).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    rounded = GradientBoostingRegressor(categorical_features=[0, 1], max_iter=3).fit(X, y)
    assert rounded.certify(X, y).holds


def test_fractions_of_weights_that_make_a_whole_are_one():
    X, y = [[0.0], [0], [0], [1], [1], [1]], [0.0, 0, 0, 1, 1, 1]
    model = GradientBoostingRegressor(min_samples_leaf=1, max_iter=1, learning_rate=1.0)
    model.fit(X, y, sample_weight=np.full(6, 1 / 3))
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [0.0, 1.0], atol=1e-12)
    x = np.arange(80.0)[:, None]
    labels = (x[:, 0] < 30).astype(int)
    balanced = GradientBoostingClassifier(class_weight="balanced", min_samples_leaf=40, max_iter=1).fit(x, labels)
    assert balanced.trees_[0].n_leaves == 2
    assert balanced.certify(x, labels).holds


def test_early_stopping_leaves_rows_of_every_class_to_learn_from():
    options = {"early_stopping": True, "validation_fraction": 0.9, "max_iter": 3}
    for n in (1, 2, 3):
        GradientBoostingRegressor(**options).fit(np.arange(n)[:, None], np.arange(n) * 1.0)
    y = [0] * 20 + [1] * 2 + [2]
    model = GradientBoostingClassifier(**options).fit(np.arange(23)[:, None], y)
    assert np.isfinite(model.train_score_).all()


def test_what_cannot_be_summed_up_is_refused():
    with pytest.raises(ValueError, match="divide y by a constant"):
        GradientBoostingRegressor().fit([[0.0], [1.0]], [1e160, 0.0])
    with pytest.raises(ValueError, match="scale the weights"):
        GradientBoostingRegressor().fit([[0.0], [1.0]], [1.0, 0.0], sample_weight=[1e300, 1.0])


def test_threads_end_when_the_first_order_is_interrupted(monkeypatch):
    X, y = make_friedman1(9000, random_state=0)
    before = threading.active_count()

    def interrupted(self, what, *rest, **more):
        if what == gradient_team.ADVANCE:
            raise KeyboardInterrupt
        return order(self, what, *rest, **more)

    order = gradient_team.Team.order
    monkeypatch.setattr(gradient_team.Team, "order", interrupted)
    with lemmata.config(n_threads=2), pytest.raises(KeyboardInterrupt):
        GradientBoostingRegressor().fit(X, y)
    assert threading.active_count() == before
