"""Moments of classes: kernels against row-by-row sums, and sums of blocks against the whole."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from discriminant_analysis.naive_classes import drawn, likeliest
from lemmata.discriminant_analysis.class_moments import scatter_block, variances_block
from lemmata.discriminant_analysis.structures import (
    STRUCTURES,
    best_shares,
    column_scales,
    expanded,
    maximum_likelihood,
    raised,
    shrunk,
)

BLOCKS = {
    "variances": lambda X, y, w: variances_block(X, y, w, 3),
    "scatter": lambda X, y, w: scatter_block(X, y, w, 3, False),
    "pooled": lambda X, y, w: scatter_block(X, y, w, 3, True),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_is_what_its_rows_sum_to(kind, weighted, dtype):
    X, y, weight = drawn(share=0.0)
    X = X.astype(dtype)
    weight = weight.astype(float) if weighted else None
    moments = BLOCKS[kind](X, y, weight)
    counts, means, matrices = likeliest(X.astype(float), y, np.ones(len(X)) if weight is None else weight, "full")
    scatter = matrices * counts[:, None, None]
    expected = {"variances": np.diagonal(scatter, axis1=1, axis2=2), "scatter": scatter, "pooled": scatter.sum(axis=0)[None]}[
        kind
    ]
    assert_allclose(moments.weight, counts, rtol=1e-15)
    assert_allclose(moments.mean, means, rtol=1e-13)  # sums of hundreds of rows
    assert_allclose(moments.scatter, expected, rtol=1e-11, atol=1e-11 * np.abs(expected).max())
    whole = np.cov(X.astype(float), rowvar=False, bias=True, aweights=weight)
    assert_allclose(moments.column_variances, np.diagonal(whole), rtol=1e-11)


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("cut", [1, 7, 150, 299])
@pytest.mark.parametrize("d", [3, 4])  # as many columns as classes, and more
def test_blocks_add_up(kind, cut, d):
    X, y, weight = drawn(seed=1, d=d)
    y = np.sort(y)  # so that some blocks lack classes
    weight = weight.astype(float)
    whole = BLOCKS[kind](X, y, weight)
    parts = BLOCKS[kind](X[:cut], y[:cut], weight[:cut]) + BLOCKS[kind](X[cut:], y[cut:], weight[cut:])
    assert_allclose(parts.weight, whole.weight, rtol=1e-15)
    assert_allclose(parts.mean, whole.mean, rtol=1e-13)
    assert_allclose(parts.scatter, whole.scatter, rtol=1e-11, atol=1e-11 * np.abs(whole.scatter).max())


@pytest.mark.parametrize("kind", BLOCKS)
def test_neither_an_offset_nor_distant_classes_cost_digits(kind):
    X, y, _ = drawn(offset=0.0)
    near = BLOCKS[kind](X, y, None)
    far = X + 1e8 * (1 + y[:, None])  # the classes are 1e8 apart
    exact = far - 1e8 * (1 + y[:, None])  # what is left of X in these numbers
    moved = BLOCKS[kind](far[:100], y[:100], None) + BLOCKS[kind](far[100:], y[100:], None)
    same = BLOCKS[kind](exact, y, None)
    scale = np.abs(near.scatter).max()
    assert_allclose(moved.scatter, same.scatter, atol=1e-9 * scale)  # naive sums would lose all sixteen digits


def test_holes_leave_each_column_what_is_seen_of_it():
    X, y, weight = drawn(share=0.3)
    weight = weight.astype(float)
    moments = variances_block(X, y, weight, 3)
    for c in range(3):
        for f in range(X.shape[1]):
            rows = (y == c) & ~np.isnan(X[:, f])
            values, w = X[rows, f], weight[rows]
            mean = np.average(values, weights=w)
            assert_allclose(moments.seen[c, f], w.sum(), rtol=1e-15)
            assert_allclose(moments.mean[c, f], mean, rtol=1e-13)
            assert_allclose(moments.scatter[c, f], w @ (values - mean) ** 2, rtol=1e-11)
    halves = variances_block(X[:90], y[:90], weight[:90], 3) + variances_block(X[90:], y[90:], weight[90:], 3)
    assert_allclose(halves.scatter, moments.scatter, rtol=1e-11)


def test_a_constant_column_has_no_variance_at_all():
    X, y, _ = drawn()
    X[:, 1] = 4.2
    for block in BLOCKS.values():
        moments = block(X[:77], y[:77], None) + block(X[77:], y[77:], None)
        assert moments.column_variances[1] == 0.0
        assert_array_equal(moments.mean[:, 1], 4.2)
        scales = column_scales(moments)
        assert scales[1] == scales.max()


@pytest.mark.parametrize("structure", STRUCTURES)
def test_structures_are_those_of_their_definitions(structure):
    X, y, weight = drawn()
    block = scatter_block(X, y, weight.astype(float), 3, False) if structure in ("full", "tied") else None
    block = variances_block(X, y, weight.astype(float), 3) if block is None else block
    found = maximum_likelihood(block, structure)
    assert_allclose(expanded(found, structure, 3, 4), likeliest(X, y, weight, structure)[2], rtol=1e-10, atol=1e-12)
    diagonal = np.diagonal(expanded(found, structure, 3, 4), axis1=1, axis2=2)
    pulled = np.diagonal(expanded(shrunk(found, structure, 0.3), structure, 3, 4), axis1=1, axis2=2)
    assert_allclose(pulled, 0.7 * diagonal + 0.3 * diagonal.mean(axis=1, keepdims=True), rtol=1e-12)


def test_the_best_share_is_that_of_ledoit_and_wolf():
    from sklearn.covariance import ledoit_wolf_shrinkage

    from lemmata import Blocks

    X, y, weight = drawn(n=60)
    blocks = Blocks.of(X, y, weight.astype(float), block_rows=16)
    shares = best_shares(blocks, blocks.reduce(scatter_block, 3, False))
    for c in range(3):
        rows = np.repeat(X[y == c], weight[y == c], axis=0)
        expected = ledoit_wolf_shrinkage((rows - rows.mean(axis=0)) / rows.std(axis=0))
        assert_allclose(shares[c], expected, rtol=1e-10)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_floor_touches_only_what_lies_below_it(structure):
    X, y, _ = drawn(d=4)
    moments = BLOCKS["scatter" if structure in ("full", "tied") else "variances"](X, y, None)
    covariance, scales = maximum_likelihood(moments, structure), column_scales(moments)
    assert_array_equal(raised(covariance, structure, 1e-6, scales), covariance)
    assert_array_equal(raised(covariance, structure, 0.0, scales), covariance)
    high = expanded(raised(covariance, structure, 0.7, scales), structure, 3, 4)
    if structure == "spherical":
        assert (high[:, 0, 0] >= 0.7 * np.mean(scales**2) - 1e-12).all()
    else:
        assert np.linalg.eigvalsh(high / np.outer(scales, scales)).min() > 0.7 - 1e-12


def test_a_raised_covariance_is_the_likeliest_above_the_floor():
    """No other matrix above the floor makes the rows more likely: neither nearby nor further on."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(3, 5))
    S, scales, floor = A.T @ A / 3, rng.uniform(0.5, 2.0, 5), 0.05  # two directions without rows

    def value(matrix):
        return -np.linalg.slogdet(matrix)[1] - np.trace(np.linalg.solve(matrix, S))

    best = raised(S, "tied", floor, scales)
    assert_allclose(best, best.T, rtol=1e-14)
    D = np.diag(scales**2)
    assert np.linalg.eigvalsh((best - floor * D) / np.outer(scales, scales)).min() > -1e-12
    for size in (1e-3, 0.1, 3.0):
        for _ in range(50):
            B = rng.normal(size=(5, 5)) * size
            other = floor * D + (1 - size / 4) * (best - floor * D) + B @ B.T * floor  # above the floor, as a sum
            assert value(other) < value(best)


def test_a_column_that_classes_do_not_share_is_measured_over_all_of_them():
    X = np.column_stack([[0.0, 0.0, 4.0, 4.0], [1.0, 3.0, 1.0, 3.0], np.full(4, 7.0)])
    moments = variances_block(X, np.array([0, 0, 1, 1]), None, 2)
    assert_allclose(column_scales(moments), [2.0, 1.0, 2.0])  # constant in each class; varying; constant: that of the widest
