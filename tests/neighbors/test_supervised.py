"""Vote and mean of neighbors, against scikit-learn and tables written out."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import neighbors as peer
from sklearn.base import clone

import lemmata
from lemmata.neighbors import KNeighborsClassifier, KNeighborsRegressor

MODELS = [KNeighborsClassifier, KNeighborsRegressor]


def table(seed=0, n=300, m=120, d=3, classes=3):
    rng = np.random.default_rng(seed)
    X, Q = rng.normal(size=(n, d)), rng.normal(size=(m, d))
    return X, rng.integers(classes, size=n), Q


def gaussian(distance):
    return np.exp(-(distance**2))


@pytest.mark.item("NBR-03")
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
@pytest.mark.parametrize("weights", ["uniform", "distance", gaussian])
def test_predictions_are_those_of_scikit_learn(weights, p):
    X, y, Q = table()
    Q[:20] = X[:20]  # at no distance
    for k in (1, 7):
        ours = KNeighborsClassifier(k, weights=weights, p=p).fit(X, y)
        theirs = peer.KNeighborsClassifier(k, weights=weights, p=p).fit(X, y)
        np.testing.assert_allclose(ours.predict_proba(Q), theirs.predict_proba(Q), rtol=1e-9, atol=1e-15)
        clear = np.diff(np.sort(theirs.predict_proba(Q), axis=1)[:, -2:]).ravel() > 1e-9  # ties have a rule of ours
        assert np.array_equal(ours.predict(Q)[clear], theirs.predict(Q)[clear])
        for target in (X @ [1.0, 2.0, 3.0], np.column_stack([X[:, 0], y])):
            ours = KNeighborsRegressor(k, weights=weights, p=p).fit(X, target)
            theirs = peer.KNeighborsRegressor(k, weights=weights, p=p).fit(X, target)
            np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), rtol=1e-9, atol=1e-12)


@pytest.mark.item("NBR-02")
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, np.inf])
def test_one_neighbor_tells_distinct_rows_without_error(p):
    X, y, _ = table()
    assert KNeighborsClassifier(1, p=p).fit(X, y).score(X, y) == 1.0
    assert np.array_equal(KNeighborsRegressor(1, p=p).fit(X, X[:, 0]).predict(X), X[:, 0])


@pytest.mark.item("NBR-02")
def test_one_neighbor_is_piecewise_constant():
    model = KNeighborsRegressor(1).fit([[0.0], [1.0], [4.0]], [5.0, 6.0, 7.0])
    assert np.array_equal(model.predict([[-9.0], [0.49], [0.51], [2.49], [2.51], [99.0]]), [5.0, 5.0, 6.0, 6.0, 7.0, 7.0])
    assert model.predict([[0.5]]) == [5.0]  # equally far: the lower row number


@pytest.mark.item("NBR-03")
@pytest.mark.parametrize("p", [1, 2, np.inf])
def test_all_rows_together_give_majority_and_mean(p):
    X, y, Q = table(classes=4)
    counts = np.bincount(y)
    for k in (300, 1000):
        model = KNeighborsClassifier(k, p=p).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(Q), np.tile(counts / 300, (len(Q), 1)), rtol=1e-14)
        assert (model.predict(Q) == counts.argmax()).all()
        np.testing.assert_allclose(KNeighborsRegressor(k, p=p).fit(X, X[:, 1]).predict(Q), X[:, 1].mean(), rtol=1e-12)


@pytest.mark.item("NBR-03")
@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_a_fit_without_the_row(cls, weights, weighted):
    X, y, _ = table(n=60)
    X[50:] = X[:10]  # copies stay when one of them is left out
    model, copies = cls(4, weights=weights), np.random.default_rng(1).integers(1, 4, size=60) if weighted else np.ones(60, int)
    left = model.fit(X, y, sample_weight=copies.astype(float) if weighted else None).leave_one_out()
    for i in range(60):
        fewer = copies - (np.arange(60) == i)
        without = clone(model).fit(np.repeat(X, fewer, axis=0), np.repeat(y, fewer))
        np.testing.assert_allclose(left[i], without.predict(X[[i]])[0], rtol=1e-12)


def test_leaving_out_the_only_row_is_refused():
    model = KNeighborsRegressor().fit([[1.0]], [2.0])
    assert model.predict([[5.0]]) == [2.0]
    with pytest.raises(ValueError, match="at least two rows"):
        model.leave_one_out()
    assert KNeighborsRegressor().fit([[1.0]], [2.0], sample_weight=[2.0]).leave_one_out() == [2.0]


@pytest.mark.item("NBR-03")
def test_a_tie_goes_to_the_nearer_class_then_to_the_smaller_label():
    X, y = [[-2.0], [-1.0], [1.5], [1.6], [40.0]], ["b", "a", "b", "a", "c"]
    model = KNeighborsClassifier(4).fit(X, y)
    # "a" is 1 + 1.6 away from 0, and "b" 2 + 1.5; from 1.45, 2.45 + 0.15 and 3.45 + 0.05; from -3, 2 + 4.6 and 1 + 4.5
    Q = [[0.0], [1.45], [-3.0]]
    assert model.predict(Q).tolist() == ["a", "a", "b"]
    p = model.predict_proba(Q)
    np.testing.assert_allclose(p, [[0.5, 0.5, 0.0]] * 3, rtol=1e-15)  # the winner has one rounding more
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(Q))
    assert peer.KNeighborsClassifier(4).fit(X, y).predict(Q).tolist() == ["a", "a", "a"]  # always the smallest label
    even = KNeighborsClassifier(2).fit([[-1.0], [1.0]], [7, 3])
    assert even.predict([[0.0]]).tolist() == [3]
    single = model.predict_proba(np.array(Q, np.float32))
    assert single.dtype == np.float32
    assert np.array_equal(single.argmax(axis=1), p.argmax(axis=1))


@pytest.mark.parametrize("cls", MODELS)
@pytest.mark.parametrize("weights", ["uniform", "distance", gaussian])
def test_a_weight_takes_as_many_places(cls, weights):
    X, y, Q = table(seed=3, n=80)
    copies = np.random.default_rng(4).integers(0, 5, size=80)
    for k in (1, 4, 30):
        one = cls(k, weights=weights).fit(X, y, sample_weight=copies)
        other = cls(k, weights=weights).fit(np.repeat(X, copies, axis=0), np.repeat(y, copies))
        np.testing.assert_allclose(one.predict(Q), other.predict(Q), rtol=1e-12)


def test_fractions_of_weights_fill_places_nearest_first():
    X, y = [[1.0], [2.0], [3.0], [4.0]], [10.0, 20.0, 30.0, 40.0]
    model = KNeighborsRegressor(2).fit(X, y, sample_weight=[0.5, 0.5, 0.75, 9.0])
    expected = (0.5 * 10 + 0.5 * 20 + 0.75 * 30 + 0.25 * 40) / 2
    np.testing.assert_allclose(model.predict([[0.0]]), expected, rtol=1e-15)
    with pytest.raises(ValueError, match=r"sum to 1, which cannot fill n_neighbors=2 places"):
        KNeighborsRegressor(2).fit(X, y, sample_weight=np.full(4, 0.25))


def test_weights_by_distance_at_any_scale():
    X, y, Q = table()
    expected = KNeighborsClassifier(weights="distance").fit(X, y).predict_proba(Q)
    for scale in (2.0**-1000, 2.0**900):
        assert np.array_equal(KNeighborsClassifier(weights="distance").fit(X * scale, y).predict_proba(Q * scale), expected)


def test_a_function_that_gives_nobody_a_say_or_nonsense():
    X, y, _ = table()
    near = KNeighborsClassifier(weights=lambda distance: (distance < 1.0).astype(float)).fit(X, y)
    p = near.predict_proba([[100.0, 0.0, 0.0]])
    assert np.array_equal(p, KNeighborsClassifier().fit(X, y).predict_proba([[100.0, 0.0, 0.0]]))
    for wrong in (lambda d: -d, lambda d: d[0], lambda d: d * np.nan):
        with pytest.raises(ValueError, match="function given as weights"):
            KNeighborsClassifier(weights=wrong).fit(X, y).predict(X)


@pytest.mark.parametrize("cls", MODELS)
def test_sparse_rows_give_the_same(cls):
    rng = np.random.default_rng(0)
    X = sparse.random_array((200, 30), density=0.2, rng=rng, format="csr")
    y = rng.integers(3, size=200)
    dense, model = cls().fit(X.toarray(), y), cls().fit(X, y)
    assert np.array_equal(model.predict(X), dense.predict(X.toarray()))
    assert np.array_equal(dense.predict(X), model.predict(X.toarray()))
    assert np.array_equal(model.leave_one_out(), dense.leave_one_out())
    assert model.certify(X, y).holds
    changed = X.copy()
    changed.data[5] *= 1.01
    assert [check.name for check in model.certify(changed, y).failed] == ["rows"]


@pytest.mark.parametrize("cls", MODELS)
def test_the_certificate_names_what_was_changed(cls):
    X, y, _ = table()
    model = cls().fit(X, y)
    assert model.certify(X, y).kind == "proof"
    assert [check.name for check in model.certify(X, y[::-1]).failed] == ["targets"]
    assert [check.name for check in model.certify(X, y, sample_weight=np.full(300, 2.0)).failed] == ["targets"]
    assert [check.name for check in model.certify(X * 1.01, y).failed] == ["rows"]
    assert "rows" in [check.name for check in model.certify(X[:-1], y[:-1]).failed]


@pytest.mark.item("NBR-03")
@pytest.mark.slow_without_jit
def test_small_k_follows_the_rows_and_large_k_smooths_them():
    """Bias grows with k and variance falls, about as 1/k, over tables drawn anew."""
    rng, Q = np.random.default_rng(0), np.linspace(-2, 2, 41)[:, None]
    bias, variance = [], []
    for k in (1, 10, 100):
        runs = []
        for _ in range(60):
            X = rng.uniform(-3, 3, size=(300, 1))
            runs.append(KNeighborsRegressor(k).fit(X, np.sin(2 * X[:, 0]) + rng.normal(size=300)).predict(Q))
        runs = np.array(runs)
        bias.append(np.mean((runs.mean(axis=0) - np.sin(2 * Q[:, 0])) ** 2))
        variance.append(runs.var(axis=0).mean())
    assert bias[2] > 10 * bias[1]
    assert variance[0] > 5 * variance[1]
    assert variance[1] > 3 * variance[2]


@pytest.mark.slow_without_jit
def test_threads_do_not_matter():
    X, y, Q = table(n=2000, d=5)
    answers = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            answers.append(KNeighborsClassifier(weights="distance").fit(X, y).predict_proba(Q).tobytes())
    assert answers[0] == answers[1]


@pytest.mark.slow_without_jit
def test_a_guarantee_reads_the_vote():
    X, y, _ = table(n=2000, classes=2)
    y = (X[:, 0] > 0).astype(int)
    bound = lemmata.theory.guarantee(KNeighborsClassifier(5).fit(X, y), X, y)
    expected = lemmata.theory.guarantee(peer.KNeighborsClassifier(5).fit(X, y), X, y)
    assert bound.best.value == expected.best.value


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_distances_beyond_the_largest_number(weights):
    X, y = 1.7e308 * np.array([[-1.0], [-1.0], [-1.0], [1.0]]), np.array([0, 1, 1, 0])
    model = KNeighborsClassifier(n_neighbors=3, weights=weights).fit(X[:3], y[:3])
    assert model.certify(X[:3], y[:3]).holds
    assert model.predict(X[3:]) == [1]
    np.testing.assert_allclose(model.predict_proba(X[3:]), [[1 / 3, 2 / 3]], rtol=1e-15)
    mean = KNeighborsRegressor(n_neighbors=3, weights=weights).fit(X[:3], y[:3])
    assert mean.predict(X[3:]) == pytest.approx(2 / 3, rel=1e-15)
    assert KNeighborsClassifier(n_neighbors=3, weights=weights).fit(X, y).certify(X, y).holds
