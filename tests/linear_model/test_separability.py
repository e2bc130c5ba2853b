"""Separability: the answer of an independent linear program, its proof by weak duality, and the width of the gap."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_array

from lemmata.core.blocks import Blocks
from lemmata.linear_model import separability
from lemmata.linear_model.hard_margin import hard_margin, margin_of_blocks, radius_of
from lemmata.linear_model.separability import folded_rows, separation

SEEDS = range(12)
module = sys.modules["lemmata.linear_model.separability"]  # whose name in the package is that of the function


def decided(M):
    """Answer by two linear programs that have nothing in common with the one of the library."""
    n, d = M.shape
    if linprog(np.zeros(d), A_ub=-M, b_ub=-np.ones(n), bounds=(None, None)).status == 0:
        return "complete"
    some = linprog(-M.sum(axis=0), A_ub=-M, b_ub=np.zeros(n), bounds=(-1, 1))
    return "quasi" if -some.fun > 1e-7 else "no"  # HiGHS's own tolerance


def table(seed):
    """Draw rows and labels of every kind: in general position or on a lattice, overlapping or apart."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(3, 25), rng.integers(1, 4)
    X = rng.normal(size=(n, d)) if seed % 2 else rng.integers(-2, 3, size=(n, d)).astype(float)
    y = rng.integers(0, 2, n) if seed % 3 == 0 else (X[:, 0] > np.median(X[:, 0])).astype(int)
    y[:2] = 0, 1
    return X, y


@pytest.mark.item("CLS-21")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_answer_is_that_of_other_linear_programs_and_proved(seed, form):
    X, y = table(seed)
    result = separability(form(X), y)
    expected = decided(np.column_stack([X, np.ones(len(X))]) * (2 * y - 1)[:, None])
    assert result.separable == expected
    certificate = result.certificate()
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    margins = (2 * y - 1) * (X @ result.coef[0] + result.intercept[0]) if expected != "no" else None
    if expected == "complete":
        assert (margins > 0).all()
        assert result.multipliers is None
    else:
        a = result.multipliers
        assert a.min() >= 0 < a.max()
        # the weighted rows of the two classes have the same mean: the hulls meet there
        one, other = a * (y == 1), a * (y == 0)
        np.testing.assert_allclose(one.sum(), other.sum(), rtol=1e-9)
        np.testing.assert_allclose(one @ X / one.sum(), other @ X / other.sum(), atol=1e-9)
    if expected == "no":
        assert (a > 0).all()
        assert result.coef is None


@pytest.mark.item("CLS-21")
def test_rows_on_the_plane_make_it_quasi():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 5.0], [-1.0, -7.0]])
    y = np.array([1, 0, 1, 1, 0])  # alternate on the line x₀ = 0, apart elsewhere
    result = separability(X, y)
    assert result.separable == "quasi"
    assert np.array_equal(result.multipliers > 0, [True, True, True, False, False])
    np.testing.assert_allclose(X[:3] @ result.coef[0] + result.intercept[0], 0, atol=1e-12)  # roundings
    assert result.certificate().holds
    assert separability(X[3:], y[3:]).separable == "complete"


def test_the_certificate_refuses_wrong_answers():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    good = separability(X, y)
    M, v, _ = good.folded
    assert good.certificate().holds
    assert [c.name for c in replace(good, folded=(M, -v, None)).certificate().failed] == ["sides"]
    assert [c.name for c in replace(good, folded=(M, None, np.ones(4))).certificate().failed] == ["balance"]
    overlap = separability(X, [0, 1, 0, 1])
    M, _, a = overlap.folded
    for wrong in (a * [1.01, 1, 1, 1], -a, np.zeros(4)):
        assert not replace(overlap, folded=(M, None, wrong)).certificate().holds
    assert not replace(overlap, folded=(M, v, None)).certificate().holds


@pytest.mark.item("CLS-21")
@pytest.mark.parametrize("seed", range(6))
def test_several_classes_are_those_of_the_multinomial_model(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2)) if seed % 2 else rng.integers(-2, 3, size=(20, 2)).astype(float)
    y = np.argmax(X @ rng.normal(size=(2, 3)) + (seed // 2) * 0.3 * rng.normal(size=(20, 3)), axis=1)
    y[:3] = 0, 1, 2
    result = separability(X, np.array(["a", "b", "c"])[y])
    Z = np.column_stack([X, np.ones(20)])
    rows = []  # the definition, one condition at a time
    for x, own in zip(Z, y, strict=True):
        for other in {0, 1, 2} - {own}:
            row = np.zeros((3, 3))
            row[own], row[other] = x, -x
            rows.append(row.ravel())
    assert result.separable == decided(np.array(rows))
    assert result.certificate().holds
    if result.separable == "complete":
        assert np.array_equal(np.argmax(X @ result.coef.T + result.intercept, axis=1), y)
    else:
        assert result.multipliers.shape == (20, 3)
        assert (result.multipliers[np.arange(20), y] == 0).all()
    dense, sparse = folded_rows(Z, y, 3), folded_rows(csr_array(Z), y, 3)
    assert np.array_equal(dense, sparse.toarray())


@pytest.mark.parametrize("scale", [1e-100, 1e-8, 1e8, 1e100])
def test_units_and_offsets_do_not_matter(scale):
    for seed in range(4):
        X, y = table(seed)
        expected = separability(X, y).separable
        moved = X * scale * 10.0 ** np.arange(X.shape[1]) + (0 if scale < 1 else 1000 * scale)
        result = separability(moved, y)
        assert result.separable == expected
        assert result.certificate().holds, str(result.certificate())


def test_without_an_intercept_the_plane_holds_the_origin():
    X, y = [[1.0], [2.0]], [0, 1]
    assert separability(X, y).separable == "complete"
    result = separability(X, y, fit_intercept=False)
    assert result.separable == "no"
    assert result.certificate().holds


@pytest.mark.parametrize("kind", ["no", "complete", "quasi", "rare"])
def test_long_tables_are_decided_from_few_rows(kind, monkeypatch):
    rng, sizes, program = np.random.default_rng(0), [], module._linear_program
    monkeypatch.setattr(module, "_linear_program", lambda A: sizes.append(len(A)) or program(A))
    X, w = rng.normal(size=(20_000, 5)), rng.normal(size=5)
    scores = X @ w + (rng.normal(size=20_000) if kind in ("no", "rare") else 0)
    if kind == "quasi":  # rows of both classes on the plane, the same ones
        X = np.vstack([X, X[:50] - np.outer(X[:50] @ w, w) / (w @ w)])
        X = np.vstack([X, X[-50:]])
        scores = np.concatenate([scores, np.ones(50), -np.ones(50)])
    if kind == "rare":  # a column that few rows have, which overlaps as well
        rare = np.zeros((20_000, 1))
        rare[:4, 0] = 1.0
        X, scores[:4] = np.hstack([X, rare]), [1, -1, 1, -1]
    result = separability(X, scores > 0)
    assert result.separable == ("no" if kind == "rare" else kind)
    assert result.certificate().holds, str(result.certificate())
    assert max(sizes, default=0) <= 6000, "rows that joined"


def test_the_tolerance_of_the_solver_does_not_reach_the_proof(monkeypatch):
    rng = np.random.default_rng(0)

    def sloppy(*arguments, **options):
        solution = linprog(*arguments, **options)
        solution.x = solution.x + 1e-8 * rng.uniform(size=len(solution.x))
        solution.eqlin.marginals = solution.eqlin.marginals + 1e-8 * rng.uniform(size=len(solution.eqlin.marginals))
        return solution

    monkeypatch.setattr(module, "linprog", sloppy)
    for seed in SEEDS:
        result = separability(*table(seed))
        assert result.certificate().holds, str(result.certificate())
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [1.0, 5.0], [-1.0, -7.0]])
    assert separability(X, [1, 0, 1, 1, 0]).certificate().holds


def margin_by_another_solver(M):
    """Solve min ‖z‖² subject to ⟨z, mᵢ⟩ ≥ 1 by sequential quadratic programming; the margin is 1/‖z‖."""
    start = np.linalg.lstsq(M, np.ones(len(M)), rcond=None)[0]
    apart = {"type": "ineq", "fun": lambda z: M @ z - 1, "jac": lambda z: M}
    solved = minimize(
        lambda z: z @ z, start, jac=lambda z: 2 * z, constraints=[apart], options={"ftol": 1e-15, "maxiter": 1000}
    )
    return 1 / np.sqrt(solved.fun)


@pytest.mark.parametrize("seed", range(6))
def test_the_hard_margin_is_that_of_another_solver(seed):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 3)), rng.normal(size=3)
    X = X[np.abs(X @ w) > 0.3]
    M = np.column_stack([X, np.ones(len(X))]) * np.sign(X @ w)[:, None]
    result = hard_margin(M)
    assert result.lower <= result.upper
    np.testing.assert_allclose(result.lower, result.upper, rtol=1e-9)
    np.testing.assert_allclose(result.lower, margin_by_another_solver(M), rtol=1e-6)  # SLSQP's own accuracy
    # weak duality, from the result alone
    np.testing.assert_allclose((M @ result.direction).min(), result.lower, rtol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(result.direction), 1, rtol=1e-12)
    assert result.radius == pytest.approx(np.linalg.norm(M, axis=1).max(), rel=1e-12)
    sparse = hard_margin(csr_array(M))
    np.testing.assert_allclose(sparse.lower, result.lower, rtol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_without_a_gap_the_hull_holds_zero(seed):
    M = np.random.default_rng(seed).normal(size=(40, 3))
    expected = decided(M) == "complete"
    result = hard_margin(M)
    assert result.separable == expected
    assert result.overlap != expected
    if not expected:
        assert result.lower == 0.0
        assert separation(M)[0] is None or separation(M)[1] is not None


def test_a_narrow_gap_is_found_to_many_digits():
    # the hull of (ε, ±1) is nearest to zero at (ε, 0); turned by an angle, so that no coordinate gives it away
    for epsilon in (1e-3, 1e-6, 1e-9):
        turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
        M = np.array([[epsilon, 1.0], [epsilon, -1.0], [1.0, 0.0]]) @ turn.T
        result = hard_margin(M)
        np.testing.assert_allclose([result.lower, result.upper], epsilon, rtol=1e-6)


def test_the_margin_of_blocks_is_that_of_the_array():
    rng = np.random.default_rng(5)
    X, w = rng.normal(size=(300, 3)), rng.normal(size=3)
    X = X[np.abs(X @ w) > 0.2]
    y = (X @ w > 0).astype(int)
    weight = (np.arange(len(X)) % 7 > 0).astype(float)
    kept = weight > 0
    for unit in (0.0, 1.0, 64.0):
        M = np.column_stack([X, np.full(len(X), unit)]) * (2 * y - 1)[:, None]
        for weights, rows in ((None, M), (weight, M[kept])):
            for form in (np.asarray, csr_array):
                labels = y if weights is None else np.where(kept, y, 1 - y)  # on the wrong side, and without weight
                blocks = Blocks.of(form(X), labels, weights, block_rows=32)
                result = margin_of_blocks(blocks, 1, unit, radius_of(blocks, unit))
                np.testing.assert_allclose(result.lower, hard_margin(rows).lower, rtol=1e-9)
                np.testing.assert_allclose(result.radius, hard_margin(rows).radius, rtol=1e-12)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="one only"):
        separability([[0.0], [1.0]], [1, 1])
    with pytest.raises(ValueError, match="NaN"):
        separability([[np.nan], [1.0]], [0, 1])
