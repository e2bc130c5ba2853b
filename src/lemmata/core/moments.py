"""Weight, mean and scatter of the rows of a table, or of its columns one by one, in one pass.

A block is summed about the mean of its first rows, so that no offset of the table costs digits, and two blocks a and b are put
together [1] by

    μ = μₐ + (n_b/n) δ,   S = Sₐ + S_b + (nₐ n_b/n) δδᵀ,   δ = μ_b − μₐ,   n = nₐ + n_b,

which loses nothing where they lie far apart or far from zero. Rows are centered a tile at a time, in a buffer that stays in the
cache while its products are taken.

[1] Chan, Golub & LeVeque, Am. Stat. 37 (1983).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lemmata.core.data import Array, is_sparse

ROUNDING = 1e-12  # relative to the mean: what is left of a column that is constant
TILE = 1 << 17  # numbers of a tile: 1 MiB, which the cache next to a processor holds


@dataclass(frozen=True)
class Moments:
    """Weight (a number), mean (d,) and scatter about it (d, d) of some rows; the sum of two is that of the rows of both.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 1.0], [5.0, 5.0]])
    >>> both = moments_block(X[:1], None) + moments_block(X[1:], None)
    >>> both.weight, both.mean, both.scatter
    (3.0, array([3., 2.]), array([[ 8., 10.],
           [10., 14.]]))
    """

    weight: float
    mean: Array
    scatter: Array

    def __add__(self, other: "Moments") -> "Moments":
        n = self.weight + other.weight
        share, away = other.weight / n, other.mean - self.mean
        between = (self.weight * share * away)[:, None] * away
        return Moments(n, self.mean + share * away, self.scatter + other.scatter + between)


def moments_block(X: Any, weight: Any) -> Moments:
    """Moments of the rows of a block; sparse rows are made dense a tile at a time."""
    n, d = X.shape
    rows = min(n, max(4 * d, TILE // d))  # fewer rows than columns would spend the time on the sum, not on the products
    room, ones = np.empty((rows, d)), np.ones(rows)
    first = _dense(X[:rows])
    origin = np.average(first, axis=0, weights=None if weight is None else weight[:rows]).astype(float)
    offsets, products = np.zeros(d), np.zeros((d, d))
    for start in range(0, n, rows):
        tile = room[: min(rows, n - start)]
        np.subtract(_dense(X[start : start + rows]), origin, out=tile)
        share = ones[: len(tile)] if weight is None else weight[start : start + rows]
        offsets += share @ tile
        if weight is not None:
            tile *= np.sqrt(share)[:, None]
        products += tile.T @ tile
    total = float(n if weight is None else weight.sum())
    shift = offsets / total
    return Moments(total, origin + shift, products - shift[:, None] * offsets)


@dataclass(frozen=True)
class Spread:
    """Weight, means (d,) and sums of squares about them (d,) of the columns of some rows; the sum of two is that of both.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [3.0, 1.0], [5.0, 5.0]])
    >>> both = spread_block(X[:1], None) + spread_block(X[1:], None)
    >>> both.mean, both.squares
    (array([3., 2.]), array([ 8., 14.]))
    """

    weight: float
    mean: Array
    squares: Array

    def __add__(self, other: "Spread") -> "Spread":
        n = self.weight + other.weight
        share, away = other.weight / n, other.mean - self.mean
        return Spread(n, self.mean + share * away, self.squares + other.squares + self.weight * share * away**2)

    @property
    def scale(self) -> Array:
        """Standard deviations, 1 for columns that are constant but for rounding: what they may be divided by."""
        deviations = np.sqrt(self.squares / self.weight)
        return np.where(deviations > ROUNDING * np.abs(self.mean), deviations, 1.0)


def spread_block(X: Any, weight: Any) -> Spread:
    """Spread of the columns of a block; zeros that are not stored are counted, not looked at."""
    w = np.ones(X.shape[0]) if weight is None else np.asarray(weight, dtype=float)
    total = float(w.sum())
    if is_sparse(X):
        held = X.indices if X.nnz else np.zeros(0, np.int64)
        shares = np.repeat(w, np.diff(X.indptr))
        mean = np.bincount(held, shares * X.data, X.shape[1]) / total
        squares = np.bincount(held, shares * (X.data - mean[held]) ** 2, X.shape[1])
        return Spread(total, mean, squares + np.maximum(total - np.bincount(held, shares, X.shape[1]), 0.0) * mean**2)
    origin = np.asarray(X[0], dtype=float)  # of a row, so that an offset costs no digits
    mean = origin + w @ (X - origin) / total
    return Spread(total, mean, w @ (X - mean) ** 2)


def _dense(X: Any) -> Array:
    return X.toarray() if is_sparse(X) else X
