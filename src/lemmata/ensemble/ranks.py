"""Ranks: every number of a table replaced by its place among those of its column, finely and coarsely.

A tree asks x ≤ t only, so the order of a column is all that it sees. The fine rank of x counts the distinct values below it (at
most 65,535 ranks; where there are more values, neighbors share one, in groups of equal weight). The coarse rank is one of 255
groups of fine ranks: wide in the middle of the column and narrow at its ends, down to single rows, since columns that matter
only together with others are best cut near their ends. Between two neighboring fine ranks lies one edge, the midpoint of the
values at both sides, and rank(x) ≤ r exactly if x ≤ edge r: what is found on ranks holds for numbers, and every threshold is an
edge. Three bytes an entry instead of eight, and ranks are sorted and counted faster than numbers.
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core import config
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.tree.bins import midpoints
from lemmata.tree.presort import order_of

FINE, COARSE = 65_535, 255  # most ranks of a column; the numbers themselves, the last of two and of one byte, stand for NaN
ROW = 32  # coarse ranks of a row are padded to a multiple, so that a row lies on one line of memory


@dataclass(frozen=True)
class Ranks:
    """The ranks of a table, and what they stand for.

    Attributes
    ----------
    fine : (n, d) uint16; of a categorical column the codes themselves. NaN is 65,535.
    coarse : (n, d rounded up) uint8. NaN is 255.
    last : (d, 256) the last fine rank of each coarse one.
    edges : The edges of all columns, one column after the other.
    starts : Where the edges of each column begin, and where the last one's end.
    """

    fine: np.ndarray
    coarse: np.ndarray
    last: np.ndarray
    edges: np.ndarray
    starts: np.ndarray

    @property
    def has_missing(self):
        """Whether some value is missing."""
        return bool(self.fine.max() == FINE)


def learn_ranks(X, weight=None, is_categorical=None):
    """Rank the columns of a table.

    Parameters
    ----------
    weight : Weights of the rows, which decide where crowded columns are grouped.
    is_categorical : Mask of columns that hold codes 0, 1, … (254 at most), or None.

    Examples
    --------
    >>> ranks = learn_ranks(np.array([[3.0], [1.0], [7.0], [3.0], [np.nan]]))
    >>> ranks.fine.ravel(), ranks.edges
    (array([    1,     0,     2,     1, 65535], dtype=uint16), array([2., 5.]))
    """
    n, d = X.shape
    fine, coarse = np.empty((n, d), dtype=np.uint16), np.zeros((n, -(-d // ROW) * ROW), dtype=np.uint8)
    last, edges = np.zeros((d, COARSE + 1), dtype=np.uint16), [np.empty(0)] * d

    def work(j):
        if is_categorical is not None and is_categorical[j]:
            codes = np.where(np.isnan(X[:, j]), FINE, X[:, j]).astype(np.uint16)
            fine[:, j], coarse[:, j] = codes, np.minimum(codes, COARSE)
            last[j] = np.arange(COARSE + 1)
            return
        edges[j] = _rank_column(np.ascontiguousarray(X[:, j], dtype=np.float64), weight, fine[:, j], coarse[:, j], last[j])

    run(work, range(d), config.n_threads())
    return Ranks(fine, coarse, last, np.concatenate(edges), np.cumsum([0] + [len(e) for e in edges]))


def _rank_column(x, weight, fine, coarse, last):
    """Write the ranks of a column; return its edges."""
    order = order_of(x)  # NaN come last
    m = len(x) - int(np.isnan(x[order[-1]]) and np.isnan(x).sum())
    values = np.empty(m)
    mass = np.empty(m)
    k = distinct(x, order[:m], np.ones(0) if weight is None else weight, values, mass)
    group = _groups(_middles(mass[:k]), FINE)
    edges = midpoints(values[:k])[np.diff(group) > 0]
    wide = np.zeros(len(edges) + 1)
    np.add.at(wide, group, mass[:k])
    crowd = _groups(2 / np.pi * np.arcsin(np.sqrt(_middles(wide))), COARSE)
    last[crowd] = np.arange(len(crowd))  # the last of each group is written last
    assign(x, order, m, group, crowd, fine, coarse)
    return edges


@kernel
def distinct(x, order, weight, values, mass):
    """Write the distinct values in order, and their weight; return how many there are."""
    k = -1
    for i in order:
        if k < 0 or x[i] > values[k]:
            k += 1
            values[k], mass[k] = x[i], 0.0
        mass[k] += weight[i] if len(weight) else 1.0
    return k + 1


def _middles(mass):
    """Give the share of all mass up to the middle of each value's, from 0 to 1."""
    return np.clip((np.cumsum(mass) - mass / 2) / (mass.sum() or 1.0), 0.0, 1.0)


def _groups(place, most):
    """Cut [0, 1] into so many equal parts: the number of the part in which each value has its place, no number left out."""
    if len(place) <= most:
        return np.arange(len(place))
    group = np.minimum((place * most).astype(np.int64), most - 1)
    return np.cumsum(np.diff(group, prepend=group[0]) > 0)


@kernel
def assign(x, order, m, group, crowd, fine, coarse):
    """Write the ranks of the rows, the first m of which in this order have values."""
    k = -1
    for t in range(len(order)):
        i = order[t]
        if t >= m:
            fine[i], coarse[i] = FINE, COARSE
            continue
        if t == 0 or x[i] > x[order[t - 1]]:
            k += 1
        fine[i] = group[k]
        coarse[i] = crowd[group[k]]
