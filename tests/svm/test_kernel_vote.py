"""The kernel vote: plain sums, its two limits, and probabilities that are never 0/0."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.neighbors import KernelDensity, KNeighborsClassifier

import lemmata
from lemmata.kernels import RBF, Function, Linear, Matern, White
from lemmata.kernels.sums import WIDE_TILE, Reference, distinct
from lemmata.svm import KernelVoteClassifier


def table(seed, n=80, k=3, d=3):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return rng.normal(size=(n, d)) + 1.5 * np.eye(k, d)[y], y


@pytest.mark.item("KRN-10")
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "sigmoid"])
def test_it_is_the_sign_of_the_sum(kernel):
    X, y = table(0, k=2)
    new = table(1, n=40, k=2)[0]
    model = KernelVoteClassifier(kernel, gamma=0.3).fit(X, y)
    scores = model.kernel_(new, X) @ np.where(y == 1, 1.0, -1.0)
    assert np.array_equal(model.predict(new), (scores > 0).astype(int))
    assert np.array_equal(np.sign(model.decision_function(new)), np.sign(scores))
    if kernel == "rbf":
        np.testing.assert_allclose(
            model.decision_function(new), scores / model.kernel_(new, X).sum(axis=1), rtol=1e-10, atol=1e-12
        )
    else:
        np.testing.assert_allclose(model.decision_function(new), scores, rtol=1e-10)
        assert not hasattr(model, "predict_proba")


@pytest.mark.item("KRN-10")
@pytest.mark.parametrize("seed", range(3))
def test_its_limits_are_the_nearest_row_and_the_majority(seed):
    X, y = table(seed)
    new = 3 * table(seed + 10, n=60)[0]
    nearest = KNeighborsClassifier(1).fit(X, y)
    for gamma in (1e4, 1e8, 1e300):
        model = KernelVoteClassifier(gamma=gamma).fit(X, y)
        assert np.array_equal(model.predict(new), nearest.predict(new))
        np.testing.assert_allclose(model.predict_proba(new), nearest.predict_proba(new), atol=1e-6)
    y[:20] = 2
    shares = np.bincount(y) / len(y)
    for gamma in (1e-12, 1e-300):
        model = KernelVoteClassifier(gamma=gamma).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(new), np.tile(shares, (60, 1)), atol=1e-8)
        assert (model.predict(new) == shares.argmax()).all()


@pytest.mark.parametrize("kernel", [RBF(0.6), Matern(0.6, nu=1.5), 2.0 * RBF(0.5) * Matern()], ids=repr)
def test_far_from_all_rows_there_are_probabilities(kernel):
    X, y = table(3)
    model = KernelVoteClassifier(kernel).fit(X, y)
    for distance in (1e2, 1e4, 1e8, 1e150):
        p = model.predict_proba(distance * np.eye(3))
        assert np.isfinite(p).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        assert np.array_equal(model.predict(distance * np.eye(3)), p.argmax(axis=1))


def test_it_is_bayes_rule_with_a_kernel_density():
    X, y = table(4)
    new = table(5, n=30)[0]
    logs = [
        KernelDensity(bandwidth=0.7).fit(X[y == c]).score_samples(new) + np.log((y == c).mean()) for c in range(3)
    ]  # log π + log p
    joint = np.exp(np.transpose(logs))
    expected = joint / joint.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(KernelVoteClassifier(RBF(0.7)).fit(X, y).predict_proba(new), expected, rtol=1e-8)


def test_weights_repeat_and_equal_rows_are_kept_once():
    X, y = table(6)
    weight = np.random.default_rng(0).integers(0, 4, 80)
    weighted = KernelVoteClassifier(gamma=0.5).fit(X, y, weight)
    repeated = KernelVoteClassifier(gamma=0.5).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(weighted.X_train_, repeated.X_train_)
    assert np.array_equal(weighted.votes_, repeated.votes_)
    assert len(weighted.X_train_) == (weight > 0).sum()
    both = KernelVoteClassifier(gamma=0.5).fit([[1.0], [1.0], [2.0]], ["a", "b", "b"])
    assert both.votes_.tolist() == [[1.0, 1.0], [0.0, 1.0]]
    assert KernelVoteClassifier(gamma=0.5).fit(csr_array(np.repeat(X, 3, axis=0)), np.repeat(y, 3)).votes_.sum() == 240


def test_no_similar_row_leaves_the_shares_of_the_table():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    compact = Function(lambda A, B: np.maximum(1 - np.abs(A - B.T), 0.0))
    for kernel in (White(), compact):
        model = KernelVoteClassifier(kernel).fit(X, y)
        np.testing.assert_allclose(model.predict_proba([[50.0]]), [[1 / 3, 2 / 3]])
        assert model.predict([[50.0]]) == [1]
    np.testing.assert_allclose(model.predict_proba([[0.75]]), [[0.25, 0.75]])
    with pytest.raises(ValueError, match="negative"):
        KernelVoteClassifier(Function(lambda A, B: A @ B.T)).fit([[1.0], [2.0]], [0, 1]).predict_proba([[-1.0]])


@pytest.mark.slow_without_jit
def test_tiles_threads_and_forms_give_one_answer():
    X, y = table(7, n=WIDE_TILE + 300)
    new = table(8, n=700)[0]
    model = KernelVoteClassifier(gamma=0.5).fit(X, y)
    p = model.predict_proba(new)
    K = RBF(gamma=0.5)(new, X)
    expected = np.column_stack([K[:, y == c].sum(axis=1) for c in range(3)])
    np.testing.assert_allclose(p, expected / expected.sum(axis=1, keepdims=True), rtol=1e-10)
    with lemmata.config(n_threads=1):
        assert np.array_equal(model.predict_proba(new), p)
    np.testing.assert_array_equal(np.concatenate([model.predict_proba(new[i : i + 37]) for i in range(0, 700, 37)]), p)
    np.testing.assert_allclose(model.predict_proba(csr_array(new)), p, rtol=1e-9)
    np.testing.assert_allclose(KernelVoteClassifier(gamma=0.5).fit(csr_array(X), y).predict_proba(new), p, rtol=1e-8)
    sums = Reference(Linear(), X, np.eye(len(X))[:, :2]).sums(new)
    np.testing.assert_allclose(sums, new @ X[:2].T, rtol=1e-12, atol=1e-12)


def test_equal_rows_are_found_in_every_form():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [-0.0, 1.0], [0.0, 1.0]])
    for rows in (X, csr_array(X), X.astype(np.float32)):
        first, group = distinct(rows)
        assert first.tolist() == [0, 1]
        assert group.tolist() == [0, 1, 0, 0]


def test_sabotage_is_refused():
    X, y = table(9)
    for form in (np.asarray, csr_array):
        model = KernelVoteClassifier(gamma=0.5).fit(form(X), y)
        assert model.certify(form(X), y).holds
        for name in ("X_train_", "votes_"):
            twin = deepcopy(model)
            setattr(twin, name, getattr(twin, name) * 1.01)
            assert not twin.certify(form(X), y).holds
        twin = deepcopy(model)
        twin.kernel_ = RBF(gamma=0.505)
        assert not twin.certify(form(X), y).holds
