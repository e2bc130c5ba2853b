"""Bins: real numbers in at most 255 classes of equal weight, so that sums over values become sums over a short table.

A column is cut at thresholds e₀ < e₁ < …; the code of x is the number of thresholds below it, so code(x) ≤ b exactly where
x ≤ e_b, and a split found on codes is a split of the column itself. A column with few different values gets a bin for each
of them; any other is cut at the quantiles of its weight, taken from a sample of its rows, since a quantile of 50,000 rows is
within half a percent of the column's own (Dvoretzky, Kiefer & Wolfowitz 1956). Thresholds lie halfway between neighboring
values. A missing value (NaN) has the code 255. The codes of a categorical column are its own numbers 0, 1, ….

A code is looked up in a table of 2,048 cells of equal width, which tells between which thresholds to search: for most numbers
there is one at most.
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.config import n_threads
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.threads import run

MISSING = 255  # the code of NaN
MOST_BINS = 255  # codes 0, …, 254
SAMPLE = 50_000  # rows from which quantiles are taken
CELLS = 2048
BLOCK = 8192  # rows coded at a time


@kernel
def cell_of(x, low, scale):
    """Number of the cell in which a number lies; never decreasing in x."""
    return int(min(max((x - low) * scale, 0.0), CELLS - 1.0))


@kernel
def fill_cells(edges, starts, low, scale, cells):
    """Tell for each column and cell how many thresholds lie in cells before it."""
    for j in range(len(low)):
        for k in range(starts[j], starts[j + 1]):
            cells[j, cell_of(edges[k], low[j], scale[j]) + 1] += 1
        for c in range(CELLS):
            cells[j, c + 1] += cells[j, c]


@kernel
def fill_codes(X, edges, starts, low, scale, cells, out):
    """Write the code of each number: thresholds of earlier cells lie below it, those of its own are searched."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = np.float64(X[i, j])
            if x != x:
                out[i, j] = MISSING
                continue
            c = cell_of(x, low[j], scale[j])
            first, last = np.int64(cells[j, c]), np.int64(cells[j, c + 1])
            while first < last:
                middle = (first + last) >> 1
                if edges[starts[j] + middle] < x:
                    first = middle + 1
                else:
                    last = middle
            out[i, j] = first


@kernel
def strangers(x, values, codes):
    """Count the numbers that are not the value of their bin."""
    count = 0
    for i in range(len(x)):
        count += int(codes[i] != MISSING and np.float64(x[i]) != values[min(np.int64(codes[i]), len(values) - 1)])
    return count


def midpoints(values):
    """Return the points halfway between neighbors of a sorted array: at least the left one and less than the right one."""
    left, right = values[:-1], values[1:]
    middle = left / 2 + right / 2  # halves of the largest numbers do not overflow; of the least ones they round
    return np.where((middle >= left) & (middle < right), middle, left)


def quantile_edges(values, weight, max_bins):
    """Return the thresholds of a column: between all different values if they are few, else at quantiles of the weight.

    Examples
    --------
    >>> quantile_edges(np.array([3.0, 1.0, 1.0, 2.0]), None, 255)
    array([1.5, 2.5])
    >>> quantile_edges(np.arange(100.0), None, 4)
    array([24.5, 49.5, 74.5])
    """
    order = None if weight is None else np.argsort(values, kind="stable")
    ordered = np.sort(values) if weight is None else values[order]
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], np.ones(min(len(ordered), 1), bool)])  # of each value
    different = ordered[last]
    if len(different) <= max_bins:
        return midpoints(different)
    total = last + 1.0 if weight is None else np.cumsum(weight[order])[last]
    marks = np.searchsorted(total, total[-1] * np.arange(1, max_bins) / max_bins)
    return midpoints(different)[np.unique(np.minimum(marks, len(different) - 2))]


@dataclass(frozen=True, eq=False)
class Bins:
    """Thresholds of every column, and the codes of rows.

    Attributes
    ----------
    edges : Thresholds of each column, a list of arrays.
    n_bins : Number of bins of each column, without the one for missing values.
    is_categorical : Which columns hold categories, or None.

    Examples
    --------
    >>> bins = learn_bins(np.array([[0.0, 5.0], [2.0, np.nan], [2.0, 7.0]]), None)
    >>> bins.edges
    [array([1.]), array([6.])]
    >>> bins.codes(np.array([[1.0, 6.5], [1.5, np.nan]]))
    array([[  0,   1],
           [  1, 255]], dtype=uint8)
    """

    edges: list
    is_categorical: np.ndarray | None = None

    @property
    def n_bins(self):
        """Number of bins of each column."""
        return np.array([len(e) + 1 for e in self.edges])

    def codes(self, X, width=None):
        """Return the codes of rows, uint8 (rows, columns), with columns of zeros up to a given width."""
        n, d = X.shape
        starts = np.concatenate([[0], np.cumsum([len(e) for e in self.edges])]).astype(np.int64)
        flat = np.concatenate([*self.edges, np.zeros(1)])  # never empty
        low = np.array([e[0] if len(e) else 0.0 for e in self.edges])
        with np.errstate(over="ignore"):
            span = np.array([e[-1] - e[0] if len(e) else 0.0 for e in self.edges])
            scale = np.where((span > 0) & np.isfinite(span), CELLS / np.where(span > 0, span, 1.0), 0.0)
        scale[~np.isfinite(scale)] = 0.0  # one cell for all: a search among all thresholds
        cells = np.zeros((d, CELLS + 1), np.uint8)
        fill_cells(flat, starts, low, scale, cells)
        out = np.zeros((n, max(width or d, d)), np.uint8)

        def work(start):
            rows = X[start : start + BLOCK]
            rows = np.ascontiguousarray(rows.toarray() if is_sparse(rows) else rows)
            with np.errstate(over="ignore"):  # of numbers far beyond the thresholds, which plain Python would mention
                fill_codes(rows, flat, starts, low, scale, cells, out[start : start + BLOCK])

        run(work, range(0, n, BLOCK), min(n_threads(), -(-n // BLOCK)))
        return out


def learn_bins(X, weight, max_bins=MOST_BINS, is_categorical=None):
    """Learn the bins of a table.

    Parameters
    ----------
    X : Array or CSR matrix; NaN is missing.
    weight : Weights of the rows, or None.
    max_bins : Most bins of a column, at most 255.
    is_categorical : Mask of the columns whose numbers 0, 1, … name categories.
    """
    n, d = X.shape
    if not 2 <= max_bins <= MOST_BINS:
        raise ValueError(f"max_bins must be from 2 to {MOST_BINS}, got {max_bins!r}.")
    rows = slice(None) if n <= SAMPLE else sampled_rows(n)
    sample = X[rows].toarray() if is_sparse(X) else np.asarray(X)[rows]
    share = None if weight is None else np.asarray(weight, dtype=float)[rows]
    edges = [np.empty(0)] * d

    def work(j):
        if is_categorical is not None and is_categorical[j]:
            edges[j] = category_edges(column_of(X, j), j)
            return
        x = sample[:, j].astype(np.float64)
        seen = ~np.isnan(x)
        edges[j] = quantile_edges(x[seen], None if share is None else share[seen], max_bins)
        if n > SAMPLE and len(edges[j]) < max_bins - 1:  # few values in the sample: are there more in the column?
            values, column = np.unique(x[seen]), column_of(X, j)
            if len(values) == len(edges[j]) + 1 and strangers(column, values, Bins([edges[j]]).codes(column[:, None])[:, 0]):
                seen = ~np.isnan(column)
                whole = None if weight is None else np.asarray(weight, dtype=float)[seen]
                edges[j] = quantile_edges(column[seen].astype(np.float64), whole, max_bins)

    run(work, range(d), min(n_threads(), d))
    return Bins(edges, is_categorical)


def sampled_rows(n):
    """Draw one row from each of `SAMPLE` stretches of equal length, the same ones every time."""
    return ((np.arange(SAMPLE) + np.random.default_rng(0).random(SAMPLE)) * (n / SAMPLE)).astype(np.int64)


def column_of(X, j):
    """Return one column as an array."""
    return X[:, [j]].toarray()[:, 0] if is_sparse(X) else np.ascontiguousarray(X[:, j])


def category_edges(x, j):
    """Return the thresholds that leave the numbers 0, 1, … of categories as they are."""
    most = np.nanmax(x) if len(x) and not np.isnan(x).all() else 0.0
    if most >= MOST_BINS:
        raise ValueError(
            f"Column {j} has {int(most) + 1} categories, and at most {MOST_BINS} are possible; put rare ones together, or "
            "take the column as a number."
        )
    return np.arange(most) + 0.5
