"""The bookkeeping of swaps, the lazy greedy start and the Lagrangean bound against their definitions."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from lemmata.cluster import swaps


def problem(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return cdist(X, X), rng.integers(1, 4, n).astype(float)


def loss(D, weight, medoids):
    return weight @ D[list(medoids)].min(axis=0)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_changes_are_differences_of_losses(seed, dtype):
    D, weight = problem(seed=seed)
    D = D.astype(dtype)
    medoids = [3, 7, 11]
    first, near, second, far = swaps.two_nearest(D[medoids].T)
    removal, out, inside = np.empty(3), np.empty(3), np.empty(31, dtype=np.int64)
    swaps.removals(weight, first, near, far, removal)
    tol = 1e-12 if dtype == np.float64 else 1e-5
    for c in range(30):
        place, change = swaps.changes(D[c], weight, first, near, far, removal, inside, out)
        exact = [loss(D, weight, [*medoids[:j], c, *medoids[j + 1 :]]) - loss(D, weight, medoids) for j in range(3)]
        assert change == pytest.approx(min(exact), abs=tol * loss(D, weight, medoids))
        assert exact[place] == pytest.approx(min(exact), abs=tol * loss(D, weight, medoids))
    assert (second != first).all()


@pytest.mark.parametrize("seed", range(4))
def test_bookkeeping_after_a_swap_is_that_from_scratch(seed):
    D, _ = problem(seed=seed)
    rng = np.random.default_rng(seed)
    medoids = rng.choice(30, 5, replace=False)
    state = [np.array(a) for a in swaps.two_nearest(D[medoids].T)]
    for _ in range(50):
        place = int(rng.integers(5))
        medoids[place] = rng.choice(np.setdiff1d(np.arange(30), medoids))
        swaps.update(D, medoids, place, *state)
        fresh = swaps.two_nearest(D[medoids].T)
        for ours, theirs in zip(state, fresh, strict=True):
            assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("given", [0, 2])
def test_the_lazy_greedy_start_is_the_greedy_start(seed, given):
    D, weight = problem(seed=seed)
    medoids = np.array([4, 9, 0, 0, 0, 0])
    swaps.build(D, weight, medoids, given)
    greedy = [4, 9][:given]
    while len(greedy) < 6:
        rest = [c for c in range(30) if c not in greedy]
        greedy.append(min(rest, key=lambda c: loss(D, weight, [*greedy, c])))
    assert medoids.tolist() == greedy


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 4])
def test_the_bound_is_below_every_choice(seed, k):
    D, weight = problem(12, seed)
    losses = {chosen: loss(D, weight, chosen) for chosen in combinations(range(12), k)}
    chosen = min(losses, key=losses.get)
    bound = swaps.relaxed_bound(D, weight, swaps.two_nearest(D[list(chosen)].T), losses[chosen], k)
    assert bound <= losses[chosen] * (1 + 1e-12)
    assert bound >= 0.9 * losses[chosen], "300 steps come close on a problem this small"


def test_symmetry_is_seen():
    D, _ = problem(130)
    assert swaps.is_symmetric(D)
    D[129, 3] += 1e-9
    assert not swaps.is_symmetric(D)


def test_a_pass_without_a_swap_ends_where_the_last_one_was():
    D, weight = problem(200)
    medoids, last, passes = np.array([0, 1, 2, 3]), 200, 0
    before = loss(D, weight, medoids)
    while last >= 0:
        after, last = swaps.swap_pass(D, weight, medoids, last)
        assert after <= before * (1 + 1e-12)
        assert after == pytest.approx(loss(D, weight, medoids), rel=1e-12)
        before, passes = after, passes + 1
    assert 1 < passes < 20
    nearest = swaps.two_nearest(D[medoids].T)
    assert swaps.best_change(D, weight, nearest.first, nearest.near, nearest.far, 4) >= -1e-12 * before
