"""The hyperplane {x : w·x + b = 0} and the rows on its two sides.

The foot of x on the plane is x − (w·x + b) w/‖w‖², the signed distance (w·x + b)/‖w‖, the functional margin of a row of class
y = ±1 is y(w·x + b), and the geometric margin that divided by ‖w‖; the plane lies −b/‖w‖ from the origin along w. With a column
of ones in front of X the intercept is one more coefficient: ⟨(b, w), (1, x)⟩ = w·x + b.
Which plane makes the fewest errors is NP-hard in general [1]. A plane that splits n rows strictly can be moved, without
crossing a row, until it holds d affinely independent ones; the rows it then holds are split by a plane of one dimension less.
So a search through the planes that rows span, and through the planes within them, misses no split: `exact_zero_one`.

[1] Johnson & Preparata, Theor. Comput. Sci. 6 (1978).
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from lemmata.core.certificate import length

MOST_PLANES = 20_000  # seconds of search
ON_THE_PLANE = 1e-9  # of the extent of the rows: farther than rounding puts a row that spans the plane


def project(X, coef, intercept):
    """Return the foot of each row on the plane.

    Examples
    --------
    >>> project([[3.0, 4.0]], [0.0, 2.0], -2.0)
    array([[3., 1.]])
    """
    X, w, norm = np.asarray(X, dtype=float), *_unit(coef)
    return X - np.multiply.outer(X @ w + intercept / norm, w)


def signed_distance(X, coef, intercept):
    """Return the distance of each row from the plane, positive on the side that the coefficients point to.

    Examples
    --------
    >>> signed_distance([[3.0, 4.0], [3.0, 0.0]], [0.0, 2.0], -2.0)
    array([ 3., -1.])
    """
    w, norm = _unit(coef)
    return np.asarray(X, dtype=float) @ w + intercept / norm


def functional_margin(X, y, coef, intercept):
    """Return y(w·x + b) for each row of a class y = ±1: positive if the row is on its side.

    Examples
    --------
    >>> functional_margin([[3.0, 4.0], [3.0, 0.0]], [1, 1], [0.0, 2.0], -2.0)
    array([ 6., -2.])
    """
    return np.asarray(y) * (np.asarray(X, dtype=float) @ np.asarray(coef, dtype=float) + intercept)


def geometric_margin(X, y, coef, intercept):
    """Return the least signed distance y(w·x + b)/‖w‖ of any row from the plane; positive if the plane separates the classes.

    Examples
    --------
    >>> geometric_margin([[3.0, 4.0], [3.0, 0.0]], [1, -1], [0.0, 2.0], -2.0)
    1.0
    """
    return float((np.asarray(y) * signed_distance(X, coef, intercept)).min())


def offset(coef, intercept):
    """Return how far from the origin the plane lies, along its coefficients.

    Examples
    --------
    >>> offset([0.0, 2.0], -2.0)
    1.0
    """
    return float(-intercept / length(np.asarray(coef, dtype=float)))


def fold(coef, intercept):
    """Return the plane as one vector (b, w), which belongs to rows with a one in front.

    Examples
    --------
    >>> fold([0.0, 2.0], -2.0)
    array([-2.,  0.,  2.])
    """
    return np.append(float(intercept), np.asarray(coef, dtype=float))


def _unit(coef):
    """Return the unit normal and the length of the coefficients."""
    w = np.asarray(coef, dtype=float)
    norm = length(w)
    if not 0 < norm < np.inf:
        raise ValueError(f"A plane needs finite coefficients that are not all zero, got {w}.")
    return w / norm, norm


@dataclass(frozen=True)
class ZeroOneOptimum:
    """A plane with the fewest possible errors: rows of the second class lie on its positive side."""

    accuracy: float
    n_errors: int
    coef: np.ndarray
    intercept: float


def exact_zero_one(X, y):
    """Find a plane with the highest training accuracy that any plane has, by trying all splits.

    The search goes through the planes spanned by d of n rows: n choose d of them, each with n·d work and the same search in
    d − 1 dimensions among the rows it holds. Good for d ≤ 3 and n ≤ 20 or so; more than 20,000 planes are refused.

    Parameters
    ----------
    X : Rows, (n, d).
    y : Labels of two classes.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]]
    >>> best = exact_zero_one(X, [1, 1, 0, 0])
    >>> best.accuracy, best.n_errors
    (0.75, 1)
    """
    X = np.asarray(X, dtype=float)
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"There must be two classes, got {len(classes)}.")
    if comb(*X.shape) > MOST_PLANES:
        raise ValueError(f"{len(X)} rows in {X.shape[1]} dimensions span {comb(*X.shape)} planes; {MOST_PLANES} are searched.")
    center = X.mean(axis=0)
    extent = float(np.abs(X - center).max()) or 1.0
    signs = 2.0 * numbers - 1
    n_errors, plane = _best_split((X - center) / extent, signs)
    coef = plane[:-1] / extent
    return ZeroOneOptimum(1 - n_errors / len(X), n_errors, coef, float(plane[-1] - coef @ center))


def _best_split(X, signs):
    """Return the fewest errors and a plane (w, b) that makes them and holds none of the rows."""
    origin = X.mean(axis=0)
    _, sizes, axes = np.linalg.svd(X - origin, full_matrices=False)
    axes = axes[sizes > ON_THE_PLANE]
    if not len(axes):  # all rows at one point: the majority wins
        majority = 1.0 if signs.sum() >= 0 else -1.0
        return int((signs != majority).sum()), np.append(np.zeros(X.shape[1]), majority)
    Z = (X - origin) @ axes.T  # coordinates within the space that the rows span
    best, best_plane, seen = len(X) + 1, None, set()
    for held in combinations(range(len(Z)), Z.shape[1]):
        edges = Z[list(held[1:])] - Z[held[0]]
        _, sizes, directions = np.linalg.svd(edges) if len(edges) else (None, np.ones(1), np.ones((1, 1)))
        if sizes.min() <= ON_THE_PLANE:
            continue  # these rows span less than a plane
        normal = axes.T @ directions[-1]
        scores = (X - X[held[0]]) @ normal
        off = np.abs(scores) > ON_THE_PLANE
        wrong = int((scores[off] * signs[off] < 0).sum())
        side = 1.0 if wrong <= off.sum() - wrong else -1.0  # the other side of the plane makes the other errors
        wrong = min(wrong, int(off.sum()) - wrong)
        if wrong >= best or off.tobytes() in seen:
            continue
        seen.add(off.tobytes())  # rows in special position span the same plane many times
        inside, within = _best_split(X[~off], signs[~off])
        if inside + wrong < best:
            best, best_plane = inside + wrong, _tilted(X, side * np.append(normal, -normal @ X[held[0]]), within, off)
    return best, best_plane


def _tilted(X, plane, within, off):
    """Tilt a plane toward another one that splits the rows it holds, by too little for any other row to change sides."""
    here, there = np.abs(X[off] @ plane[:-1] + plane[-1]), np.abs(X[off] @ within[:-1] + within[-1])
    share = min(1.0, float((here / np.maximum(there, np.finfo(float).tiny)).min(initial=1.0)) / 2)
    return plane + share * within
