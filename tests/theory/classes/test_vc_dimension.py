"""The dimension by search is right, certified, for the classes of the catalogue, finite classes and oracles."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from lemmata.theory.bounds.growth import stump_vc_dimension
from lemmata.theory.classes.few_points import AtMostNPoints
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces, HomogeneousHalfspaces
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.rectangles import Rectangles
from lemmata.theory.classes.vc_dimension import vc_dimension

DIMENSIONS = [
    (Thresholds(), 1),
    (Intervals(), 2),
    (Rectangles(1), 2),
    (Rectangles(2), 4),
    *[(Halfspaces(d), d + 1) for d in (1, 2, 3)],
    *[(HomogeneousHalfspaces(d), d) for d in (1, 2, 3, 4)],
    *[(AtMostNPoints(n), n) for n in range(5)],
]


@pytest.mark.item("LRN-11", "LRN-12", "LRN-13", "LRN-14", "LRN-15", "LRN-16")
@pytest.mark.parametrize(("H", "d"), DIMENSIONS, ids=[str(H) for H, _ in DIMENSIONS])
def test_classes_of_the_catalogue_up_to_dimension_four(H, d):
    result = vc_dimension(H)
    assert result.value == result.lower == result.upper == d
    assert len(result.witness.points) == d
    predicted = {tuple(h.predict(result.witness.points)) for h in result.witness.hypotheses}
    assert len(predicted) == 2**d
    assert result.certificate().holds
    assert not replace(result, lower=d + 1).certificate().holds
    if d:
        smaller = H.shatters(result.witness.points[1:])
        assert not replace(result, witness=smaller).certificate().holds
        # a smaller upper bound would need refutations of d points
        assert not replace(result, lower=d - 1, upper=d - 1, witness=smaller).certificate().holds


@pytest.mark.parametrize("seed", range(3))
def test_search_without_structured_sets_finds_the_dimension(seed):
    result = vc_dimension(Rectangles(2), lambda m, rng: rng.uniform(size=(m, 2)) + 5, random_state=seed)
    assert result.value == 4
    assert result.certificate().holds


def test_climbing_needs_few_sets():
    counts = []

    class Counting(Rectangles):
        def dichotomies(self, points):
            counts.append(len(points))
            return super().dichotomies(points)

    for seed in range(4):  # one random set of eight points in five hundred is shattered
        assert vc_dimension(Counting(4), lambda m, rng: rng.normal(size=(m, 4)), random_state=seed).value == 8
    assert counts.count(8) < 400


@pytest.mark.item("LRN-11")
def test_finite_domain_is_searched_exhaustively():
    rng = np.random.default_rng(0)
    for _ in range(20):
        n = int(rng.integers(1, 8))
        table = rng.random((int(rng.integers(1, 40)), n)) < 0.5
        result = vc_dimension(FiniteClass(table))
        sizes = [
            k for k in range(n + 1) for c in combinations(range(n), k) if len({tuple(r) for r in table[:, list(c)]}) == 2**k
        ]
        assert result.value == max(sizes)
        assert result.certificate().holds
        if result.value < n:
            assert not replace(result, refuted={}).certificate().holds
            chosen, refutation = next(iter(result.refuted.items()))
            bent = replace(refutation, labels=~refutation.labels)
            assert replace(result, refuted={**result.refuted, chosen: bent}).certificate().holds == bent.valid()


@pytest.mark.item("LRN-11")
def test_certificate_needs_every_set():
    result = vc_dimension(Intervals(), [1, 2, 3, 4])
    assert sorted(result.refuted) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    for dropped in result.refuted:
        fewer = {chosen: refutation for chosen, refutation in result.refuted.items() if chosen != dropped}
        assert not replace(result, refuted=fewer).certificate().holds


@pytest.mark.item("LRN-11")
def test_on_special_points_the_dimension_is_smaller():
    line = np.column_stack([np.arange(6), 2 * np.arange(6)])
    result = vc_dimension(Halfspaces(2), line)
    assert result.value == 2 < Halfspaces(2).vc_dim  # collinear points: rays only
    assert result.certificate().holds
    grid = [[i, j] for i in range(3) for j in range(3)]
    assert vc_dimension(Rectangles(2), grid).value == 4
    assert vc_dimension(Rectangles(2), line).value == 2
    with pytest.raises(ValueError, match="give a larger max_d"):
        vc_dimension(Halfspaces(2), grid, max_d=2)


def stump_oracle(points, labels):
    if labels.all() or not labels.any():
        return True
    return DecisionTreeClassifier(max_depth=1).fit(points, labels)


@pytest.mark.item("LRN-11")
def test_oracles():
    rng = np.random.default_rng(0)
    result = vc_dimension(stump_oracle, rng.normal(size=(7, 2)))
    assert result.value == stump_vc_dimension(2) == 3
    assert result.certificate().holds
    sampled = vc_dimension(lambda P, y: y.sum() <= 2, lambda m, rng: rng.normal(size=(m, 1)))
    assert (sampled.lower, sampled.upper, sampled.value) == (2, np.inf, None)
    assert sampled.certificate().holds
    sines = vc_dimension(lambda P, y: True, lambda m, rng: rng.normal(size=(m, 1)), max_d=5)
    assert (sines.lower, sines.upper) == (5, np.inf)
    halfspaces = vc_dimension(Halfspaces(2).realizes, rng.normal(size=(6, 2)))
    assert halfspaces.value == 3
    with pytest.raises(ValueError, match="does not say where its points live"):
        vc_dimension(stump_oracle)
    with pytest.raises(ValueError, match="An oracle is a function"):
        vc_dimension("half-spaces", [[1.0]])
