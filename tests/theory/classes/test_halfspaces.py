"""Half-spaces: Cover's counts in general position, exact answers on degenerate points, exact minima."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from lemmata.theory.classes.halfspaces import ConesMeet, Halfspace, Halfspaces, HomogeneousHalfspaces
from lemmata.theory.classes.sauer import half_space_dichotomies


def count_by_linear_programs(rows):
    """Count the sign vectors y with yᵢ⟨u, rowᵢ⟩ ≥ 1 for some u: all labelings of points in general position."""
    signs = product([-1.0, 1.0], repeat=len(rows))
    limits, free = -np.ones(len(rows)), (None, None)
    return sum(linprog(np.zeros(rows.shape[1]), -np.array(y)[:, None] * rows, limits, bounds=free).status == 0 for y in signs)


@pytest.mark.item("LRN-15")
@pytest.mark.parametrize(("n", "counts"), [(2, [2, 4, 6, 8]), (3, [2, 4, 8, 14, 22])])
def test_homogeneous_counts_of_the_catalogue(n, counts):
    X = np.random.default_rng(n).normal(size=(len(counts), n))
    H = HomogeneousHalfspaces(n)
    assert [H.growth(m) for m in range(1, len(counts) + 1)] == counts
    assert [len(H.dichotomies(X[:m])) for m in range(1, len(counts) + 1)] == counts
    assert [count_by_linear_programs(X[:m]) for m in range(1, len(counts) + 1)] == counts


@pytest.mark.item("LRN-16", "LRN-22")
@pytest.mark.parametrize(("n", "counts"), [(2, [2, 4, 8, 14, 22]), (3, [2, 4, 8, 16, 30, 52])])
def test_affine_counts_of_the_catalogue(n, counts):
    X = np.random.default_rng(n).normal(size=(len(counts), n))
    H = Halfspaces(n)
    assert [H.growth(m) for m in range(1, len(counts) + 1)] == counts
    assert [len(H.dichotomies(X[:m])) for m in range(1, len(counts) + 1)] == counts
    lifted = np.hstack([X, np.ones((len(X), 1))])
    assert [count_by_linear_programs(lifted[:m]) for m in range(1, len(counts) + 1)] == counts


@pytest.mark.item("LRN-22")
@pytest.mark.parametrize(("d", "m"), [(1, 40), (2, 25), (3, 14), (4, 12), (5, 8)])
def test_count_of_many_points_in_general_position(d, m):
    X = np.random.default_rng(d).normal(size=(m, d))
    found = Halfspaces(d).dichotomies(X)
    assert len(found) == half_space_dichotomies(m, d) <= m ** (d + 1)
    np.testing.assert_array_equal(found, ~found[::-1])  # the other side of each plane is a half-space too


@pytest.mark.item("LRN-15")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_basis_is_shattered_by_signs_and_one_more_point_never(n):
    H = HomogeneousHalfspaces(n)
    assert H.vc_dim == n
    for labels in product([False, True], repeat=n):
        w = Halfspace(tuple(Fraction(1 if label else -1) for label in labels), Fraction(0))
        np.testing.assert_array_equal(w.predict(np.eye(n)), labels)
    shattered = H.shatters(np.eye(n))
    assert shattered
    assert shattered.certificate().holds
    rng = np.random.default_rng(n)
    for trial in range(20):
        X = rng.integers(-1, 2, size=(n + 1, n)).astype(float) if trial % 2 else rng.normal(size=(n + 1, n))
        assert not H.shatters(X)
        refutation = H.unshattered(X)
        sums = [
            [
                sum(refutation.weights[i] * Fraction(X[i, j]) for i in np.flatnonzero(refutation.labels == side))
                for j in range(n)
            ]
            for side in (True, False)
        ]
        assert sums[0] == sums[1]
        assert sum(w for w, label in zip(refutation.weights, refutation.labels, strict=True) if label) == 1
        assert min(refutation.weights) >= 0
        assert refutation.certificate().holds


@pytest.mark.item("LRN-15")
def test_sign_is_not_linear_the_product_is():
    # the notes run the proof on h = sign⟨w, ·⟩ as if h(Σ λᵢxᵢ) = Σ λᵢh(xᵢ); it holds for ⟨w, ·⟩ only
    w, X, weights = np.array([1.0, 1.0]), np.array([[3.0, 0.0], [0.0, -1.0]]), np.array([1.0, 1.0])
    assert np.sign(w @ (weights @ X)) != weights @ np.sign(X @ w)
    assert w @ (weights @ X) == weights @ (X @ w)


@pytest.mark.item("LRN-16")
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_simplex_is_shattered_and_one_more_point_never(n):
    H = Halfspaces(n)
    assert H.vc_dim == n + 1
    simplex = np.vstack([np.zeros((1, n)), np.eye(n)])
    assert H.shatters(simplex)
    assert H.shatters(simplex).certificate().holds
    rng = np.random.default_rng(n)
    for _ in range(10):
        X = rng.normal(size=(n + 2, n))
        result = H.shatters(X)
        assert not result
        assert result.certificate().holds
        assert H.unshattered(X).certificate().holds


@pytest.mark.item("LRN-15")
def test_opposite_points_and_why_w_is_not_zero():
    H = HomogeneousHalfspaces(2)
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    by_angle = {tuple(cross @ [np.cos(t), np.sin(t)] > 1e-9) for t in np.arange(16) * np.pi / 8}
    assert {tuple(row) for row in H.dichotomies(cross)} == by_angle
    assert len(by_angle) == H.growth(4) == 8
    refutation = H.refutes(cross, [0, 0, 0, 0])  # only w = 0 makes all False, which would be a ninth labeling
    assert refutation.certificate().holds
    assert min(refutation.weights) > 0
    assert not ConesMeet(cross[:2], np.zeros(2, dtype=bool), [Fraction(1), Fraction(1)]).valid()  # these do not span the plane
    assert not ConesMeet(cross, np.zeros(4, dtype=bool), [Fraction(1), Fraction(1), Fraction(0), Fraction(0)]).valid()
    assert not ConesMeet(cross, refutation.labels, [2 * refutation.weights[0], *refutation.weights[1:]]).valid()
    flat = H.realizes(cross[:2], [0, 0])
    np.testing.assert_array_equal(flat.predict(cross[:2]), [False, False])
    assert any(flat.coef)
    assert len(HomogeneousHalfspaces(1).dichotomies([[1.0], [-1.0], [0.0]])) == 2


@pytest.mark.item("LRN-15")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_homogeneous_count_is_not_exceeded_by_opposite_and_repeated_points(d):
    rng = np.random.default_rng(d)
    for m in range(1, 9):
        for _ in range(10):
            X = rng.integers(-1, 2, size=(m, d))
            mirrored = np.vstack([X[: m // 2], -X[: m - m // 2]])
            for points in (X, mirrored):
                assert len(HomogeneousHalfspaces(d).dichotomies(points)) <= half_space_dichotomies(m, d, homogeneous=True)


def test_nearly_collinear_points_are_told_from_collinear_ones():
    H = Halfspaces(2)
    above = np.nextafter(2.0, 3.0)
    for last, count in ((2.0, 6), (above, 8)):  # three points of a line have six labelings, of a triangle eight
        X = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, last]])
        assert len(H.dichotomies(X)) == count
        h = H.realizes(X, [1, 0, 1])
        assert (h is not None) == (count == 8)
        if h is not None:
            np.testing.assert_array_equal(h.predict(X), [True, False, True])
    tenth = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3], [0.1 + 0.2, 0.1 + 0.2]])  # the last two differ in the last bit
    assert len(H.dichotomies(tenth)) == 8


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e150])
def test_any_scale_and_any_linear_map(scale):
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, size=(8, 2)).astype(float)
    expected = Halfspaces(2).dichotomies(X)
    np.testing.assert_array_equal(Halfspaces(2).dichotomies(scale * X), expected)
    np.testing.assert_array_equal(Halfspaces(2).dichotomies(X @ [[2, 1], [1, 1]] + [5, -3]), expected)
    np.testing.assert_array_equal(Halfspaces(3).dichotomies(np.column_stack([X, X.sum(axis=1) * 4])), expected)
    labels = expected[len(expected) // 2]
    np.testing.assert_array_equal(Halfspaces(2).realizes(scale * X, labels).predict(scale * X), labels)
    y = rng.random(8) < 0.5
    assert Halfspaces(2).erm(scale * X, y).errors == (expected != y).sum(axis=1).min()


@pytest.mark.parametrize("H", [Halfspaces(2), Halfspaces(3), HomogeneousHalfspaces(3)], ids=str)
@pytest.mark.parametrize("grid", [False, True])
def test_fewest_errors_against_all_labelings_of_more_points(H, grid):
    rng = np.random.default_rng(1)
    for _ in range(4):
        X = rng.integers(-2, 3, size=(14, H.d)).astype(float) if grid else rng.normal(size=(14, H.d))
        y, w = rng.random(14) < 0.5, rng.integers(1, 5, size=14)
        best = H.erm(X, y, w)
        assert best.errors == ((H.dichotomies(X) != y) @ w).min() == w @ (best.hypothesis.predict(X) != y)
    separable = X[:, 0] > X[:, 1]
    assert H.erm(X, separable).errors == 0


@pytest.mark.item("LRN-10")
@pytest.mark.parametrize("H", [Halfspaces(3), HomogeneousHalfspaces(3)], ids=str)
def test_many_points_are_separated_or_refuted(H):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    labels = X @ [1.0, -2.0, 0.5] > 0
    np.testing.assert_array_equal(H.realizes(X, labels).predict(X), labels)
    labels[np.abs(X).sum(axis=1).argmax()] ^= True
    refutation = H.refutes(X, labels)
    assert H.realizes(X, labels) is None
    assert refutation.certificate().holds
    assert sum(w > 0 for w in refutation.weights) <= 5  # few points suffice


def test_plane_runs_in_the_middle_and_large_problems_are_refused():
    h = Halfspaces(1).realizes([0.0, 1.0], [0, 1])
    assert -h.intercept / h.coef[0] == Fraction(1, 2)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    with pytest.raises(ValueError, match="take fewer points"):
        Halfspaces(3).erm(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="whole number"):
        Halfspaces(0)
    with pytest.raises(ValueError, match="2 coordinates"):
        Halfspaces(2).dichotomies([[1.0, 2.0, 3.0]])
    with pytest.raises(ValueError, match="linearly independent"):
        HomogeneousHalfspaces(2).unshattered(np.eye(2))


def test_half_space_is_exact_on_its_plane():
    third = Halfspace((Fraction(1), Fraction(-1, 3)), Fraction(0))
    X = np.array([[1.0, 3.0], [1.0, np.nextafter(3.0, 2.0)], [1.0, np.nextafter(3.0, 4.0)], [1e-17, 3e-17]])
    assert third.predict(X).tolist() == [False, True, False, Fraction(1e-17) * 3 > Fraction(3e-17)]
