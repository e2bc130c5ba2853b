"""The kernels of stumps: the best of all splits, against enumeration, whatever the bins and bounds left out."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import lemmata
from lemmata.ensemble.adaboost_certificate import best_gains
from lemmata.ensemble.stump_kernels import whole_units
from lemmata.ensemble.stumps import StumpTable, bin_edges, stump_tree


def enumerated(X, y, units, n_classes):
    """Return the largest decrease of the Gini impurity by any split, from its definition, and all splits that reach it."""
    w = units / units.sum()

    def impurity(rows):
        share = np.bincount(y[rows], w[rows], n_classes)
        return share.sum() - (share**2).sum() / share.sum() if share.sum() > 0 else 0.0

    found = {}
    everything = np.ones(len(y), dtype=bool)
    for j in range(X.shape[1]):
        x = X[:, j]
        for cut in np.unique(x[~np.isnan(x)]):
            for missing_left in {False, bool(np.isnan(x).any())}:
                left = (x <= cut) | (np.isnan(x) & missing_left)
                if w[left].sum() > 0 and w[~left].sum() > 0:
                    found[j, cut, missing_left] = impurity(everything) - impurity(left) - impurity(~left)
    best = max(found.values(), default=0.0)
    return best, {key for key, gain in found.items() if gain > best - 1e-12}


def table(kind, seed, n=150, d=3, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    if kind == "ties":
        X = np.round(X)
    if kind == "holes":
        X[rng.random(X.shape) < 0.2] = np.nan
    if kind == "one value often":
        X[rng.random(X.shape) < 0.8] = 0.5
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = np.arange(n_classes)
    return X, y


@pytest.mark.parametrize("kind", ["plain", "ties", "holes", "one value often"])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_stump_is_the_best_of_all(kind, n_classes):
    for seed in range(4):
        X, y = table(kind, seed, n_classes=n_classes)
        units = np.random.default_rng(seed).integers(0 if seed % 2 else 1, 1000, len(y))
        prepared = StumpTable(X, y, n_classes)
        stump = prepared.best(units[prepared.rows])
        best, winners = enumerated(X, y, units, n_classes)
        np.testing.assert_allclose(stump.gain, best, rtol=1e-10)  # sums in another order
        x = X[:, stump.feature]
        left = (x <= stump.threshold) | (np.isnan(x) & stump.missing_left)
        assert any(
            np.array_equal(left[units > 0], ((X[:, j] <= cut) | (np.isnan(X[:, j]) & m))[units > 0]) for j, cut, m in winners
        )
        shares = np.bincount(y[left], units[left], n_classes)
        np.testing.assert_allclose(stump.value[1], shares / shares.sum(), rtol=1e-12)
        np.testing.assert_allclose(stump.weight[1], shares.sum() / units.sum(), rtol=1e-12)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("kind", ["plain", "holes", "one value often"])
def test_bins_and_bounds_lose_nothing(kind):
    """Columns of far more than 255 values, weights as uneven as boosting makes them."""
    for seed in range(3):
        X, y = table(kind, seed, n=4000, d=11, n_classes=2 + seed)
        units = (np.random.default_rng(seed).standard_exponential(len(y)) ** 3 * 2.0**40).astype(np.int64)
        prepared = StumpTable(X, y, 2 + seed)
        expected = best_gains(X, y, [units / units.sum()], 2 + seed)[0]
        np.testing.assert_allclose(prepared.best(units[prepared.rows]).gain, expected, rtol=1e-10)  # sums in another order


@pytest.mark.parametrize("place", ["first bin", "last bin", "holes go left"])
def test_the_best_threshold_may_lie_inside_any_bin(place):
    """Two thousand different values, eight in a bin: three at an end, or all up to the middle of a bin and all holes."""
    rng = np.random.default_rng(0)
    X = rng.permuted(np.tile(np.arange(2000.0), (9, 1)), axis=1).T
    X[rng.random(2000) < 0.2, 8] = np.nan
    x = X[:, 8]
    seen = np.sort(x[~np.isnan(x)])
    cut = {"first bin": seen[2], "last bin": seen[-4], "holes go left": seen[803]}[place]
    y = ((x <= cut) | (np.isnan(x) & (place == "holes go left"))).astype(int)
    prepared = StumpTable(X, y, 2)
    stump = prepared.best(np.ones(2000, dtype=np.int64))
    assert stump.feature == 8
    assert np.array_equal(y == 1, (x <= stump.threshold) | (np.isnan(x) & stump.missing_left))
    np.testing.assert_allclose(stump.gain, best_gains(X, y, [np.full(2000, 1 / 2000)], 2)[0], rtol=1e-10)


def test_the_checker_enumerates_too():
    for kind in ("plain", "ties", "holes"):
        X, y = table(kind, 5)
        weights = np.random.default_rng(0).integers(1, 9, (3, len(y)))
        found = best_gains(X, y, [w / w.sum() for w in weights], 3)
        np.testing.assert_allclose(found, [enumerated(X, y, w, 3)[0] for w in weights], rtol=1e-10)  # sums in another order


def test_a_stump_is_scikit_learns():
    for seed in range(5):
        X, y = table("plain", seed)
        X = X.astype(np.float32).astype(float)  # in which scikit-learn looks at values
        prepared = StumpTable(X, y, 3)
        stump = prepared.best(np.ones(len(y), dtype=np.int64))
        peer = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, y).tree_
        mine = stump_tree(stump)
        assert mine.feature.tolist() == peer.feature.tolist()
        for name in ("threshold", "impurity", "n_node_samples"):
            np.testing.assert_allclose(getattr(mine, name), getattr(peer, name), rtol=1e-12, err_msg=name)  # roundings
        np.testing.assert_allclose(mine.value, peer.value[:, 0], rtol=1e-12)


def test_rows_that_no_question_tells_apart():
    prepared = StumpTable(np.ones((5, 2)), np.array([0, 1, 1, 0, 1]), 2)
    stump = prepared.best(np.ones(5, dtype=np.int64))
    assert (stump.feature, stump.gain, stump.classes) == (-2, 0.0, (1, 1))
    assert stump_tree(stump).node_count == 1
    assert prepared.classes(stump, np.zeros(5, np.int32)).tolist() == [1] * 5


def test_only_missing_values_may_go_right():
    X, y = np.array([[1.0], [1.0], [np.nan], [np.nan]]), np.array([0, 0, 1, 1])
    prepared = StumpTable(X, y, 2)
    stump = prepared.best(np.ones(4, dtype=np.int64))
    assert (stump.threshold, stump.missing_left, stump.classes) == (np.inf, False, (0, 1))


def test_edges_part_the_values_as_promised():
    rng = np.random.default_rng(0)
    for x in (rng.standard_normal(20_000), np.round(rng.standard_normal(20_000), 2), np.repeat([0.0, 1.0], 5000)):
        x[rng.random(len(x)) < 0.5] = 0.0  # half of the rows have one value
        edges, single = bin_edges(x)
        assert len(edges) <= 254
        assert (np.diff(edges) > 0).all()
        sizes = np.bincount(np.searchsorted(edges, x))
        assert np.isin(x[np.searchsorted(edges, x) == sizes.argmax()], 0.0).all(), "the value that fills a bin has it alone"
        others = np.delete(sizes, sizes.argmax())
        # A bin has 1/255 of the sampled rows; 4: the quantiles of a sample of thousands are that good and better.
        assert len(np.unique(x)) < 255 or others.max() <= 4 * len(x) / 255
        assert not single or len(edges) + 1 == len(np.unique(x))


def test_whole_weights_are_multiplied_exactly():
    units, twice = np.empty(3, np.int64), np.empty(3, np.int64)
    multiplier = np.full(3, 1 / 7)
    whole_units(multiplier, np.ones(3), True, units)
    whole_units(multiplier, np.array([1.0, 2.0, 5.0]), True, twice)
    assert twice.tolist() == (units * [1, 2, 5]).tolist()
    whole_units(multiplier, np.array([0.5, 1.0, 2.0]), False, units)
    np.testing.assert_allclose(units / 2.0**61, np.array([0.5, 1.0, 2.0]) / 7, rtol=1e-15)


def test_threads_change_nothing(monkeypatch):
    monkeypatch.setattr("lemmata.ensemble.stumps.THREADED", 0)
    X, y = table("holes", 1, n=3000, d=20)
    units = np.random.default_rng(0).integers(1, 100, len(y))
    found = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            prepared = StumpTable(X, y, 3)
            found.append(prepared.best(units[prepared.rows]))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
