"""Finite classes: dimension, growth and all minimizers by exhaustion."""

from itertools import combinations

import numpy as np
import pytest

from lemmata.theory.classes.finite_class import EachErrs, FiniteClass, largest_shattered


def dimension(table):
    """Size of the largest set of columns on which all labelings occur, by looking at every set."""
    n = table.shape[1]
    sizes = [k for k in range(n + 1) for c in combinations(range(n), k) if len({tuple(r) for r in table[:, list(c)]}) == 2**k]
    return max(sizes)


@pytest.mark.item("LRN-18", "LRN-11")
def test_dimension_of_random_classes_and_of_their_parts():
    rng = np.random.default_rng(0)
    for _ in range(100):
        table = rng.random((int(rng.integers(1, 33)), 6)) < 0.5
        H = FiniteClass(table)
        assert H.vc_dim == dimension(table)
        assert 2**H.vc_dim <= len(H)
        part = table[rng.permutation(len(table))[: rng.integers(1, len(table) + 1)]]
        assert FiniteClass(part).vc_dim <= H.vc_dim
        witness = H.largest_shattered()
        assert len(witness.points) == H.vc_dim
        assert witness.certificate().holds


@pytest.mark.item("LRN-18")
def test_printed_direction_is_wrong():
    thresholds = FiniteClass(np.tri(6, 5, -1, dtype=bool))  # x < a on five points of the line
    assert thresholds.vc_dim == 1
    assert len(thresholds) == 6 > 2**thresholds.vc_dim  # printed: |H| ≤ 2^VCdim


@pytest.mark.item("LRN-19")
def test_growth_is_two_to_the_m_exactly_up_to_the_dimension():
    rng = np.random.default_rng(1)
    for _ in range(50):
        table = rng.random((int(rng.integers(1, 40)), 6)) < rng.uniform(0.2, 0.8)
        H = FiniteClass(table)
        growth = [max(len({tuple(r) for r in table[:, list(c)]}) for c in combinations(range(6), m)) for m in range(7)]
        assert [H.growth(m) for m in range(7)] == growth
        assert all(g <= 2**m for m, g in enumerate(growth))
        assert next((m for m, g in enumerate(growth) if g < 2**m), 7) == H.vc_dim + 1
        assert H.growth(9) == growth[6]


@pytest.mark.item("LRN-10")
def test_witness_or_one_error_of_each_hypothesis():
    table = np.random.default_rng(2).random((7, 5)) < 0.5
    H = FiniteClass(table)
    rows = {tuple(r) for r in table[:, [4, 1, 2]]}
    for labels in np.ndindex(2, 2, 2):
        h, refutation = H.realizes([4, 1, 2], np.array(labels, dtype=bool)), H.refutes([4, 1, 2], np.array(labels, dtype=bool))
        if labels in rows:
            np.testing.assert_array_equal(h.predict([4, 1, 2]), labels)
            assert refutation is None
        else:
            assert h is None
            assert all(table[k, [4, 1, 2][i]] != labels[i] for k, i in enumerate(refutation.errs))
            assert refutation.certificate().holds
            wrong = EachErrs(refutation.points, refutation.labels, refutation.hypotheses, (refutation.errs + 1) % 3)
            assert wrong.valid() == all(table[k, [4, 1, 2][i]] != labels[i] for k, i in enumerate(wrong.errs))


def test_all_minimizers_in_order():
    table = np.array([[0, 0, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]])
    H = FiniteClass(table)
    assert [h.number for h in H.all_erm([0, 1, 2, 2], [0, 1, 1, 1])] == [0, 2, 3]
    assert H.errors([0, 1, 2, 2], [0, 1, 1, 1]).tolist() == [1, 4, 1, 1]
    assert [h.number for h in H.all_erm([0, 1, 2], [0, 1, 1], [1, 5, 1])] == [2]
    best = H.erm([0, 1, 2], [0, 1, 1], [1.0, 0.25, 1.0])
    assert (best.hypothesis.number, best.errors, best.total) == (0, 0.25, 2.25)


def test_refusals():
    with pytest.raises(ValueError, match="at least one hypothesis"):
        FiniteClass([])
    with pytest.raises(ValueError, match="functions of a point, or a table"):
        FiniteClass([[0, 2]])
    with pytest.raises(ValueError, match="leave out domain"):
        FiniteClass([[0, 1]], domain=[3, 4])
    with pytest.raises(ValueError, match="positions of its domain, whole numbers from 0 to 1"):
        FiniteClass([[0, 1]]).dichotomies([2])
    with pytest.raises(ValueError, match="positions"):
        FiniteClass([[0, 1]]).dichotomies([0.5])
    with pytest.raises(ValueError, match="domain"):
        _ = FiniteClass([lambda x: x > 0]).vc_dim
    wide = FiniteClass(np.random.default_rng(0).random((200, 60)) < 0.5)
    with pytest.raises(ValueError, match="take a part"):
        wide.growth(10)


def test_largest_of_one_row_is_empty():
    assert largest_shattered(np.array([[True, False]])) == ()
    assert FiniteClass([[1, 0]]).vc_dim == 0
