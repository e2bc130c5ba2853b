"""What estimators of neighbors share: the rows they keep, the questions they answer, and the checks of both.

Certificate: the rows kept are those of the table, all of them and to the bit; and the distances that the search finds are those
that come of comparing with every row and sorting, in SciPy's arithmetic. For small tables all rows are asked about, which is a
proof by enumeration; for large ones a sample from a fixed seed, which is evidence.
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Check
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Estimator, as_output
from lemmata.neighbors.search import Table

COMPARED = 1 << 28  # coordinates compared for a certificate, all of 5,000 rows of 10: less than a second
SLICE = 1 << 22  # distances held at a time: 32 MiB
CLOSE = 1e-9  # share by which distances may differ: sums of d roundings, and a power of them


def load(blocks):
    """Bring the rows of positive weight into memory, with what is aligned with them.

    Returns
    -------
    rows : (n, d), array or CSR matrix.
    *aligned : Targets and weights, or None.
    """
    rows, *aligned = blocks.whole()
    weight = aligned[-1]
    if weight is not None and not (weight > 0).all():
        present = weight > 0
        if not present.any():
            raise ValueError("Every sample weight is zero: there is no row to fit.")
        rows, aligned = rows[present], [a[present] for a in aligned]
    if is_sparse(rows):
        rows = csr_array(rows)
        rows.sum_duplicates()
        return rows, *aligned
    return np.ascontiguousarray(rows), *aligned


def nearest_by_sorting(Q, X, k, p):
    """Find the distances of the k nearest rows by comparing with all of them, in SciPy's arithmetic.

    Examples
    --------
    >>> nearest_by_sorting(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0], [1.0, 0.0]]), 2, 2.0)
    array([[1., 5.]])
    """
    found = []
    for part in np.array_split(Q, -(-len(Q) * len(X) // SLICE)):
        D = cdist(part, X, "chebyshev") if p == np.inf else cdist(part, X, "minkowski", p=p)
        found.append(np.sort(np.partition(D, k - 1, axis=1)[:, :k], axis=1))
    return np.concatenate(found)


def differing(stored, given):
    """Give the share of rows that are not the same, bit by bit; infinite if there are more or fewer of them.

    Examples
    --------
    >>> differing(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [3.0, 4.1]]))
    0.5
    """
    if stored.shape != given.shape:
        return np.inf
    if is_sparse(stored) or is_sparse(given):
        return np.diff((csr_array(stored) != csr_array(given)).indptr).astype(bool).mean()
    return float((stored != given).reshape(len(stored), -1).any(axis=1).mean())


class Neighbors(Estimator):
    """Base of estimators that keep their rows and look for neighbors among them."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __getstate__(self):
        state = super().__getstate__().items()
        return {name: value for name, value in state if name != "_table"}  # which is made again from the rows

    def _keep(self, rows):
        rows = rows.copy()  # what becomes of the caller's array is the caller's business
        self.X_, self.n_samples_fit_ = rows, rows.shape[0]
        self._table = Table(rows, self.p)

    def _search(self):
        """Give the table to search; a model that was stored makes it when it is first asked."""
        if getattr(self, "_table", None) is None or self._table.p != self.p:
            self._table = Table(self.X_, self.p)
        return self._table

    def _queries(self, X):
        """Give rows that ask, and the type for answers."""
        check_is_fitted(self)
        if X is None:
            return None, np.dtype(self.X_.dtype)
        blocks = self._blocks(X, reset=False)
        return load(blocks)[0], blocks.dtype

    def kneighbors(self, X=None, n_neighbors=None, return_distance=True):
        """Find the nearest rows of the table.

        Parameters
        ----------
        X : Rows that ask, or None: the rows of the table, each leaving itself out.
        n_neighbors : How many, by default those of the constructor.
        return_distance : Whether distances are wanted.

        Returns
        -------
        distance : (n_queries, n_neighbors), nearest first.
        index : (n_queries, n_neighbors), row numbers; of equally distant rows the lower comes first.
        """
        Q, dtype = self._queries(X)
        k = self.n_neighbors if n_neighbors is None else n_neighbors
        if isinstance(k, (bool, np.bool_)) or not isinstance(k, (int, np.integer)):
            raise TypeError(f"n_neighbors does not take {type(k)} value, enter integer value.")
        there = self.n_samples_fit_ - (X is None)
        if not 1 <= k <= there:
            others = "other rows" if X is None else "rows"
            raise ValueError(f"Expected n_neighbors from 1 to {there}, which is the number of {others}, got {k}.")
        index, distance = self._search().nearest(int(k), Q)
        return (as_output(distance, dtype), index) if return_distance else index

    def kneighbors_graph(self, X=None, n_neighbors=None, mode="connectivity"):
        """Give the nearest rows as a sparse matrix: 1, or for mode="distance" the distance, where a row has a neighbor."""
        distance, index = self.kneighbors(X, n_neighbors)
        starts = np.arange(0, index.size + 1, index.shape[1])
        return self._graph(distance.ravel(), index.ravel(), starts, mode)

    def _graph(self, distance, index, starts, mode):
        if mode not in ("connectivity", "distance"):
            raise ValueError(f'mode must be "connectivity" or "distance", got {mode!r}.')
        values = np.ones_like(distance) if mode == "connectivity" else distance
        return csr_array((values, index, starts), shape=(len(starts) - 1, self.n_samples_fit_))

    def _rows_check(self, rows):
        """Check that the rows kept are those of the table."""
        wrong = differing(self.X_, rows) if self.n_samples_fit_ == rows.shape[0] else np.inf
        return Check("rows", float(wrong), 0.0, "proof", "share of rows kept that are not those of the table")

    def _search_check(self):
        """Check the search against sorting."""
        n, d = self.X_.shape
        k, table = min(self.n_neighbors + 1, n), Table(self.X_, self.p)
        some = np.random.default_rng(0).permutation(n)[: max(1, COMPARED // (n * d))]
        X = np.multiply(table.X.toarray() if table.sparse else table.X, table.scale, dtype=float)  # so that no power overflows
        _, found = table.nearest(k, table.X[some])
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the largest number both are infinite, and equal
            expected = nearest_by_sorting(X[some], X, k, table.p) / table.scale
            close = (found == expected) | (np.abs(found - expected) <= CLOSE * expected)
        wrong = float((~close).any(axis=1).mean())
        which = "all" if len(some) == n else f"{len(some):,} sampled"
        kind = "proof" if len(some) == n else "evidence"
        return Check("neighbors", wrong, 0.0, kind, f"share of {which} rows whose neighbors are not those found by sorting")
