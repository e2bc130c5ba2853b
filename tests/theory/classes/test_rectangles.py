"""Rectangles: sixteen labelings of the diamond, never thirty-two of five points, growth over all permutations."""

from itertools import permutations, product

import numpy as np
import pytest

from lemmata.theory.classes.rectangles import Rectangles
from lemmata.theory.classes.sauer import sauer_bound

DIAMOND = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.0], [-1.0, 0.0]])


def box_labelings(X):
    """A labeling is realized if and only if no negative point is in the box of the positive ones."""
    found = set()
    for labels in product([False, True], repeat=len(X)):
        P = X[np.array(labels)]
        if not len(P) or all(
            label or (x < P.min(axis=0)).any() or (x > P.max(axis=0)).any() for x, label in zip(X, labels, strict=True)
        ):
            found.add(labels)
    return found


@pytest.mark.item("LRN-14")
def test_diamond_has_sixteen_labelings_and_five_points_never_thirty_two():
    H = Rectangles(2)
    assert H.vc_dim == 4
    assert len(H.dichotomies(DIAMOND)) == len(box_labelings(DIAMOND)) == 16
    shattered = H.shatters(DIAMOND)
    assert shattered
    assert shattered.certificate().holds
    rng = np.random.default_rng(0)
    counts = []
    for _ in range(200):
        X = rng.normal(size=(5, 2))
        counts.append(len(H.dichotomies(X)))
        refutation = H.unshattered(X)  # the bounding box of the extreme points
        inside, positive = X[refutation.inside], X[refutation.labels]
        assert not refutation.labels[refutation.inside]
        assert (positive.min(axis=0) <= inside).all()
        assert (inside <= positive.max(axis=0)).all()
        assert refutation.certificate().holds
        assert H.realizes(X, refutation.labels) is None
    assert max(counts) == 28
    assert counts[0] == len(box_labelings(np.random.default_rng(0).normal(size=(5, 2))))


@pytest.mark.item("LRN-14", "LRN-19")
@pytest.mark.parametrize("m", range(1, 10))
def test_growth_in_the_plane_is_the_maximum_over_all_permutations(m):
    p = np.array(list(permutations(range(m))), dtype=np.int8)
    p = p[p[:, 0] <= p[:, -1]]  # turning the picture over changes no count
    total = np.full(len(p), 1 + m)
    for i in range(m):
        for j in range(i + 1, m):
            low, high = np.minimum(p[:, i], p[:, j])[:, None], np.maximum(p[:, i], p[:, j])[:, None]
            between = p[:, i + 1 : j]
            total += ((between > high).sum(axis=1) + 1) * ((between < low).sum(axis=1) + 1)
    assert total.max() == Rectangles(2).growth(m)
    assert Rectangles(2).growth(m) <= sauer_bound(m, 4)
    for k in (0, len(p) // 2, int(total.argmax())):
        X = np.column_stack([np.arange(m), p[k]]).astype(float)
        assert len(Rectangles(2).dichotomies(X)) == total[k]
        if m < 7:
            assert len(box_labelings(X)) == total[k]


@pytest.mark.item("LRN-14")
@pytest.mark.parametrize("d", [1, 2, 3])
def test_axis_points_are_shattered_and_one_more_never_is(d):
    H = Rectangles(d)
    assert H.shatters(np.vstack([np.eye(d), -np.eye(d)]))
    assert H.growth(2 * d) == 4**d
    rng = np.random.default_rng(d)
    for _ in range(20):
        X = rng.integers(-2, 3, size=(2 * d + 1, d))
        assert not H.shatters(X)
        assert H.unshattered(X).valid()


@pytest.mark.parametrize("d", [2, 3])
def test_fewest_errors_against_all_boxes(d):
    rng = np.random.default_rng(d)
    for trial in range(5):
        n = 30 if d == 2 else 12
        X = rng.integers(0, 8, size=(n, d)).astype(float) if trial % 2 else rng.normal(size=(n, d))
        y, w = rng.random(n) < 0.5, rng.integers(1, 4, size=n)
        sides = [
            np.unique([(X[:, j] >= a) & (X[:, j] <= b) for a in X[:, j] for b in X[:, j]], axis=0).astype(float)
            for j in range(d)
        ]
        best = w[y].sum()
        gain = np.where(y, w, -w)
        for first in sides[0]:
            if d == 2:
                best = min(best, w[y].sum() - (sides[1] @ (first * gain)).max())
            else:
                best = min(best, w[y].sum() - ((sides[1] * (first * gain)) @ sides[2].T).max())
        found = Rectangles(d).erm(X, y, w)
        assert found.errors == best == w @ (found.hypothesis.predict(X) != y)


def test_refusals():
    with pytest.raises(ValueError, match=r"not known exactly at m = 10; sauer_bound\(10, 4\)"):
        Rectangles(2).growth(10)
    with pytest.raises(ValueError, match="not known exactly"):
        Rectangles(3).growth(7)
    with pytest.raises(ValueError, match="too many to list"):
        Rectangles(2).dichotomies(np.random.default_rng(0).normal(size=(200, 2)))
    with pytest.raises(ValueError, match="give at least 5 points"):
        Rectangles(2).unshattered(DIAMOND)
    with pytest.raises(ValueError, match="whole number"):
        Rectangles(0)
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="take fewer points"):
        Rectangles(4).erm(rng.normal(size=(100, 4)), rng.random(100) < 0.5)
