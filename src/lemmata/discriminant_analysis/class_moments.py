"""Weight, mean and scatter of every class of a table, in one pass.

The mean and the scatter of a class about it are all that a Gaussian asks of its rows. A block is summed about a row of each
class in it, so that no offset of the table costs digits; and two blocks a and b are put together [1] by

    μ = μₐ + (n_b/n) δ,   S = Sₐ + S_b + (nₐ n_b/n) δδᵀ,   δ = μ_b − μₐ,   n = nₐ + n_b,

which loses nothing where classes lie far apart or far from zero. A scatter is a matrix for each class, one matrix for all
classes together, or its diagonal for each class. Only the last goes with holes: then each column of each class counts what is
seen of it.

A row that serves as origin is the heaviest of its class: with dev its distance from the mean and n rows, the class has a
scatter of at least dev²·w while offsets sum to at most n·w·dev², so that subtracting their mean costs at most a factor n of
rounding.

[1] Chan, Golub & LeVeque, Am. Stat. 37 (1983).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lemmata.core.kernel import kernel

FEW = 1 << 8  # classes whose numbers NumPy sorts by counting, as bytes


@dataclass(frozen=True)
class ClassMoments:
    """Moments of k classes with d columns; the sum of two is that of the rows of both.

    Examples
    --------
    >>> X, y = np.array([[1.0], [3.0], [7.0], [5.0]]), np.array([0, 0, 1, 0])
    >>> both = variances_block(X[:2], y[:2], None, 2) + variances_block(X[2:], y[2:], None, 2)
    >>> both.weight, both.mean[:, 0], both.scatter[:, 0]
    (array([3., 1.]), array([3., 7.]), array([8., 0.]))
    """

    weight: np.ndarray  # (k,), of the rows
    seen: np.ndarray  # (k, d), weight of the rows in which a column is seen
    mean: np.ndarray  # (k, d)
    scatter: np.ndarray  # (k, d, d), (1, d, d) for all classes together, or (k, d)

    @np.errstate(over="ignore", invalid="ignore")
    def __add__(self, other):
        n = self.seen + other.seen
        away = other.mean - self.mean
        part = np.divide(other.seen, n, out=np.zeros(n.shape), where=n > 0)
        between = self.seen * part  # nₐ n_b/n
        if self.scatter.ndim == 2:
            between = between * away**2
        elif len(self.scatter) == len(n):
            between = between[:, :1, None] * away[:, :, None] * away[:, None, :]
        else:
            between = (between[:, :1] * away).T @ away
        return ClassMoments(self.weight + other.weight, n, self.mean + part * away, self.scatter + other.scatter + between)

    def like(self, other):
        """Give these moments with a scatter of the shape of another's; what is summed or left out cannot be had back."""
        mine, wanted = self.scatter.shape, other.scatter.shape
        if mine == wanted:
            return self
        if len(mine) < 3 or mine[0] == 1:
            raise ValueError("What was learned so far does not tell the covariances asked for now: fit all rows again.")
        scatter = self.scatter.sum(axis=0, keepdims=True) if len(wanted) == 3 else self.diagonal
        return ClassMoments(self.weight, self.seen, self.mean, scatter)

    @property
    def diagonal(self):
        """Scatter of each column: (k, d), or (1, d) for all classes together."""
        return self.scatter if self.scatter.ndim == 2 else np.diagonal(self.scatter, axis1=1, axis2=2)

    @property
    def center(self):
        """Mean of each column over all classes; 0 where nothing is seen."""
        return (self.seen * self.mean).sum(axis=0) / self._seen_at_all

    @property
    def within_variances(self):
        """Variance of each column within the classes, all together."""
        return self.diagonal.sum(axis=0) / self._seen_at_all

    @property
    def column_variances(self):
        """Variance of each column over all classes: within them and between."""
        return self.within_variances + (self.seen * (self.mean - self.center) ** 2).sum(axis=0) / self._seen_at_all

    @property
    def _seen_at_all(self):
        return np.maximum(self.seen.sum(axis=0), np.finfo(float).tiny)


@kernel
def heaviest(y, weight, k):
    """Find the row of each class with the largest weight, the first among equals; −1 for a class without rows."""
    rows, most = np.full(k, -1), np.zeros(k)
    for i in range(len(y)):
        w = 1.0 if weight is None else weight[i]
        if w > most[y[i]]:
            rows[y[i]] = i
            most[y[i]] = w
    return rows


@kernel
def offsets_of_classes(X, y, weight, origin, total, first, second):
    """Add weights, offsets from the origin of a row's class, and their squares, column by column."""
    for i in range(len(X)):
        c = y[i]
        w = 1.0 if weight is None else weight[i]
        total[c] += w
        x, o, a, b = X[i], origin[c], first[c], second[c]
        for f in range(len(x)):
            u = np.float64(x[f]) - o[f]
            a[f] += w * u
            b[f] += w * u * u


@kernel
def offsets_with_holes(X, y, weight, total, seen, origin, first, second):
    """Do the same with what is seen; the origin of each class and column is the heaviest value, found here."""
    k, d = seen.shape
    most = np.zeros((k, d))
    for i in range(len(X)):
        c = y[i]
        w = 1.0 if weight is None else weight[i]
        total[c] += w
        for f in range(d):
            if not np.isnan(X[i, f]):
                seen[c, f] += w
                if w > most[c, f]:
                    most[c, f] = w
                    origin[c, f] = X[i, f]
    for i in range(len(X)):
        c = y[i]
        w = 1.0 if weight is None else weight[i]
        for f in range(d):
            if not np.isnan(X[i, f]):
                u = np.float64(X[i, f]) - origin[c, f]
                first[c, f] += w * u
                second[c, f] += w * u * u


@np.errstate(over="ignore", invalid="ignore")
def variances_block(X, y, weight, k):
    """Moments of the classes in a block, of each column for itself; entries may be missing."""
    d = X.shape[1]
    total, first, second = np.zeros(k), np.zeros((k, d)), np.zeros((k, d))
    rows = heaviest(y, weight, k)
    origin = np.where(rows[:, None] >= 0, X[rows], 0.0).astype(float)
    offsets_of_classes(X, y, weight, origin, total, first, second)
    seen = np.repeat(total[:, None], d, axis=1)
    if np.isnan(first).any():
        total, seen, origin, first, second = np.zeros(k), *(np.zeros((k, d)) for _ in range(4))
        offsets_with_holes(X, y, weight, total, seen, origin, first, second)
    shift = np.divide(first, seen, out=np.zeros((k, d)), where=seen > 0)
    return ClassMoments(total, seen, origin + shift, np.maximum(second - shift * first, 0.0))


def by_class(y, k):
    """Give an order in which the rows of each class stand together, and where each class begins in it."""
    order = np.argsort(y.astype(np.uint8) if k <= FEW else y, kind="stable")
    return order, np.append(0, np.cumsum(np.bincount(y, minlength=k)))


@np.errstate(over="ignore", invalid="ignore")  # `moments_of` says what is too large
def scatter_block(X, y, weight, k, pooled):
    """Moments of the classes in a block of complete rows, with the scatter of each class, or of all together."""
    d = X.shape[1]
    total, mean = np.zeros(k), np.zeros((k, d))
    scatter = np.zeros((1 if pooled else k, d, d))
    order, starts = by_class(y, k)
    rows = X[order].astype(float, copy=False)
    share = None if weight is None else weight[order]
    for c, part in enumerate(slice(a, b) for a, b in pairwise(starts)):
        w = None if share is None else share[part]
        total[c] = part.stop - part.start if w is None else w.sum()
        if total[c] == 0:
            rows[part] = 0.0
            continue
        A = rows[part]
        origin = A[0 if w is None else int(np.argmax(w))].copy()
        A -= origin
        shift = A.sum(axis=0) / total[c] if w is None else w @ A / total[c]
        A -= shift
        mean[c] = origin + shift
        if w is not None:
            A *= np.sqrt(w)[:, None]
        if not pooled:
            scatter[c] = A.T @ A
    if pooled:
        scatter[0] = rows.T @ rows
    return ClassMoments(total, np.repeat(total[:, None], d, axis=1), mean, scatter)


def moments_of(blocks, k, dense, pooled=False):
    """Give the moments of the classes, and whether entries are missing that keep scatter matrices from being known.

    Parameters
    ----------
    dense : Whether the scatter of two columns is asked for; with missing entries it cannot be told.
    pooled : Whether one scatter for all classes will do.
    """
    moments = blocks.reduce(scatter_block, k, pooled) if dense else None
    if moments is not None and np.isfinite(moments.scatter).all():
        return moments, False
    moments = blocks.reduce(variances_block, k)
    if not np.isfinite(moments.scatter).all():
        raise ValueError("The squares of X are beyond the range of numbers: scale its columns.")
    return moments, dense


def refuse_unseen(moments, classes):
    """Refuse a column of which nothing is seen, in all rows or in those of a class."""
    none = np.flatnonzero(moments.seen.sum(axis=0) == 0)
    if len(none):
        raise ValueError(f"Column {none[0]} has no value in any row: leave it out.")
    pairs = np.argwhere((moments.seen == 0) & (moments.weight[:, None] > 0))
    if len(pairs):
        c, f = pairs[0]
        raise ValueError(f"Column {f} has no value in any row of class {classes[c]!s}: leave one of them out.")
