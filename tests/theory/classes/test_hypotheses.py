"""What all hypothesis classes promise: each labeling has a witness or a refutation, and the answers agree with brute force."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from lemmata.theory.classes.few_points import AtMostNPoints
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces, HomogeneousHalfspaces
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.rectangles import Rectangles
from lemmata.theory.classes.sauer import sauer_bound


def cuts(x):
    """Numbers below, between, at and above the values of x."""
    values = np.unique(x)
    return np.concatenate([[values[0] - 1], values, (values[1:] + values[:-1]) / 2, [values[-1] + 1]])


def by_thresholds(X):
    return {tuple(X[:, 0] < a) for a in cuts(X[:, 0])}


def by_boxes(X):
    sides = [[(X[:, j] >= a) & (X[:, j] <= b) for a in cuts(X[:, j]) for b in cuts(X[:, j])] for j in range(X.shape[1])]
    sides = [{tuple(s) for s in side} for side in sides]
    return {tuple(np.all(chosen, axis=0)) for chosen in product(*sides)}


def by_few_points(n):
    return lambda X: {
        labels
        for labels in product([False, True], repeat=len(X))
        if len({tuple(x) for x, label in zip(X, labels, strict=True) if label}) <= n
        and all(a == b for (x, a), (z, b) in product(zip(X, labels, strict=True), repeat=2) if tuple(x) == tuple(z))
    }


def feasible(rows, limits):
    return linprog(np.zeros(rows.shape[1]), A_ub=rows, b_ub=limits, bounds=(None, None)).status == 0


def by_linear_programs(X):
    """Labelings by affine half-spaces: some (w, b) has ⟨w, x⟩ + b ≥ 1 on the True points and ≤ 0 on the others."""
    A = np.hstack([X, np.ones((len(X), 1))])
    return {
        y for y in product([False, True], repeat=len(X)) if feasible(np.where(y, -1, 1)[:, None] * A, np.where(y, -1.0, 0.0))
    }


def by_linear_programs_through_the_origin(X):
    """The same without b; "all False" must have some w with an entry of size one, as w = 0 is not in the class."""
    found = set()
    for y in product([False, True], repeat=len(X)):
        rows, limits = np.where(y, -1, 1)[:, None] * X, np.where(y, -1.0, 0.0)
        if any(y):
            if feasible(rows, limits):
                found.add(y)
        elif any(feasible(np.vstack([rows, -side]), np.append(limits, -1.0)) for e in np.eye(X.shape[1]) for side in (e, -e)):
            found.add(y)
    return found


TABLE = np.random.default_rng(5).random((9, 6)) < 0.5
CLASSES = [
    (Thresholds(), 1, by_thresholds),
    (Intervals(), 1, by_boxes),
    (Rectangles(1), 1, by_boxes),
    (Rectangles(2), 2, by_boxes),
    (Rectangles(3), 3, by_boxes),
    (AtMostNPoints(0), 1, by_few_points(0)),
    (AtMostNPoints(2), 1, by_few_points(2)),
    (AtMostNPoints(3), 2, by_few_points(3)),
    (Halfspaces(1), 1, by_linear_programs),
    (Halfspaces(2), 2, by_linear_programs),
    (Halfspaces(3), 3, by_linear_programs),
    (HomogeneousHalfspaces(1), 1, by_linear_programs_through_the_origin),
    (HomogeneousHalfspaces(2), 2, by_linear_programs_through_the_origin),
    (HomogeneousHalfspaces(3), 3, by_linear_programs_through_the_origin),
]
IDS = [str(c[0]) for c in CLASSES]


def sets_of_points(d, seed=0):
    """Random points, and points of a small grid: repeated, collinear, opposite, and at the origin."""
    rng = np.random.default_rng(seed)
    for m in (1, 2, 3, 4, 5):
        yield rng.normal(size=(m, d))
        yield rng.integers(-1, 2, size=(m, d)).astype(float)
        yield rng.integers(-2, 3, size=(m, 1)) * np.ones((1, d))  # on one line through the origin


@cache
def examples(H, d, brute, seed=0):
    """The sets of points with their labelings; linear programs take time, so each is asked once."""
    return [(X, brute(X)) for X in sets_of_points(d, seed)]


@pytest.mark.item("LRN-10", "LRN-13", "LRN-14", "LRN-15", "LRN-16")
@pytest.mark.parametrize(("H", "d", "brute"), CLASSES, ids=IDS)
@pytest.mark.parametrize("seed", range(2))
def test_each_labeling_has_a_witness_or_a_refutation_as_brute_force_says(H, d, brute, seed):
    for X, expected in examples(H, d, brute, seed):
        found = H.dichotomies(X)
        assert [tuple(row) for row in found] == sorted(expected)
        for labels in product([False, True], repeat=len(X)):
            hypothesis, refutation = H.realizes(X, labels), H.refutes(X, labels)
            if labels in expected:
                assert refutation is None
                np.testing.assert_array_equal(hypothesis.predict(X), labels)
            else:
                assert hypothesis is None
                assert refutation.valid()
                assert refutation.certificate().holds
                np.testing.assert_array_equal(refutation.labels, labels)


@pytest.mark.item("LRN-10")
@pytest.mark.parametrize(("H", "d", "brute"), CLASSES, ids=IDS)
def test_shattering_holds_its_proof_and_the_certificate_notices_another_set(H, d, brute):
    seen = set()
    for X, expected in examples(H, d, brute):
        result = H.shatters(X)
        assert bool(result) == (len(expected) == 2 ** len(X))
        assert result.certificate().holds
        seen.add(bool(result))
        if result:
            broken = replace(result, hypotheses=result.hypotheses[::-1])
            assert not broken.certificate().holds
            fewer = replace(result, hypotheses=result.hypotheses[:-1])
            assert not fewer.certificate().holds
            assert not replace(result, cls=FiniteClass([[0]])).certificate().holds  # witnesses of another class
        else:
            np.testing.assert_array_equal(result.missing, min(set(product([False, True], repeat=len(X))) - expected))
            assert not replace(result, points=result.points + 1).certificate().holds
    assert seen == ({True, False} if H.vc_dim else {False})


@pytest.mark.item("LRN-19", "LRN-21")
@pytest.mark.parametrize(("H", "d", "brute"), CLASSES, ids=IDS)
def test_growth_is_never_exceeded_and_falls_below_two_to_the_m_after_the_dimension(H, d, brute):
    for X, expected in examples(H, d, brute):
        assert len(expected) <= H.growth(len(X)) <= sauer_bound(len(X), H.vc_dim)
    assert all(H.growth(m) == 2**m for m in range(H.vc_dim + 1))
    if H.vc_dim < 6:  # growth of boxes of R³ is known up to six points
        assert H.growth(H.vc_dim + 1) < 2 ** (H.vc_dim + 1)


@pytest.mark.parametrize(("H", "d", "brute"), CLASSES, ids=IDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_minimum_of_errors_is_that_of_brute_force(H, d, brute, weighted):
    rng = np.random.default_rng(3)
    for X, expected in examples(H, d, brute):
        y = rng.random(len(X)) < 0.5
        w = rng.integers(0, 4, size=len(X)) if weighted else np.ones(len(X), dtype=int)
        best = H.erm(X, y, w if weighted else None)
        assert best.errors == min(int(w @ (np.array(labels) != y)) for labels in expected)
        assert isinstance(best.errors, int)
        assert best.errors == w @ (best.hypothesis.predict(X) != y)
        assert best.total == w.sum()
        assert best.error_rate == (best.errors / w.sum() if w.sum() else 0)
        halves = H.erm(X, y, w / 2)
        assert halves.errors == best.errors / 2


@pytest.mark.parametrize(("H", "d", "brute"), CLASSES, ids=IDS)
def test_no_points_have_one_labeling(H, d, brute):
    none = np.zeros((0, d))
    assert H.dichotomies(none).shape == (1, 0)
    assert H.shatters(none)
    assert H.growth(0) == 1
    assert H.shatters(none).certificate().holds


@pytest.mark.item("LRN-10")
def test_proofs_of_other_classes_are_not_accepted():
    cross = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    through, affine = HomogeneousHalfspaces(2), Halfspaces(2)
    assert affine.accepts(affine.refutes(cross, [1, 1, 0, 0]))
    assert not affine.accepts(through.refutes(cross, [1, 1, 0, 0]))
    assert affine.contains(through.realizes(cross[:1], [1]))
    assert not through.contains(affine.realizes([[1, 0], [2, 0]], [0, 1]))
    assert not through.contains(affine.realizes(cross, [0, 0, 0, 0]))
    assert not AtMostNPoints(1).contains(AtMostNPoints(2).realizes([1, 2], [1, 1]))
    assert not AtMostNPoints(1).accepts(AtMostNPoints(0).refutes([1], [1]))
    assert not Rectangles(1).contains(Rectangles(2).realizes(cross, [1, 0, 0, 0]))
    assert not FiniteClass([[0]]).contains(FiniteClass([[0]]).hypotheses[0])
    assert not FiniteClass([[0], [1]]).accepts(FiniteClass([[0]]).refutes([0], [1]))


def test_table_answers_like_its_functions():
    functions = FiniteClass([lambda i, row=row: row[int(i)] for row in TABLE], domain=np.arange(6))
    table = FiniteClass(TABLE)
    assert functions.vc_dim == table.vc_dim
    for m in range(8):
        assert functions.growth(m) == table.growth(m)
    np.testing.assert_array_equal(functions.dichotomies([0, 2, 5]), table.dichotomies([0, 2, 5]))
    assert functions.erm([0, 1, 2], [1, 0, 1]).errors == table.erm([0, 1, 2], [1, 0, 1]).errors
    assert bool(functions.shatters([1, 3])) == bool(table.shatters([1, 3]))


def test_many_shattered_points_are_refused():
    with pytest.raises(ValueError, match="up to 16 points"):
        AtMostNPoints(17).shatters(np.arange(17))
