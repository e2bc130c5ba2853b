"""`NearestNeighbors`: which rows of a table are nearest to a row, and how far.

Distances are those of Minkowski, (Σ|u − v|^p)^(1/p) for p in [1, ∞]: city blocks for p = 1, Euclid's for p = 2, the largest
difference for p = ∞. The search is exact (see `search`). Of equally distant rows the lower row number comes first.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import as_output
from lemmata.neighbors.stored import Neighbors, load

COUNT, POWER = Interval(Integral, 1, None, closed="left"), Interval(Real, 1, np.inf, closed="both")


class NearestNeighbors(Neighbors):
    """Find the nearest rows of a table, exactly.

    The rows are kept, and needed together in memory, wherever they come from.

    Parameters
    ----------
    n_neighbors : How many neighbors `kneighbors` finds unless told.
    p : Power of the distance, from 1 to infinity.
    radius : How far `radius_neighbors` looks unless told.

    Attributes
    ----------
    X_ : (n_samples_fit_, n_features), the rows.
    n_samples_fit_ : Number of rows.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 1.0], [3.0, 0.0]]
    >>> model = NearestNeighbors(n_neighbors=2).fit(X)
    >>> distance, index = model.kneighbors([[1.0, 0.0]])
    >>> distance.tolist(), index.tolist()  # rows 0 and 1 are equally far, and the lower comes first
    ([[1.0, 1.0]], [[0, 1]])
    >>> model.kneighbors(n_neighbors=1, return_distance=False).tolist()  # of each row of the table, among the others
    [[1], [0], [1]]
    >>> print(model.certify(X))
    NearestNeighbors(n_neighbors=2): certificate holds (proof)
      check      value     limit  kind   claim
      rows       0.0e+00 ≤ 0e+00  proof  share of rows kept that are not those of the table
      neighbors  0.0e+00 ≤ 0e+00  proof  share of all rows whose neighbors are not those found by sorting
    """

    _parameter_constraints = {"n_neighbors": [COUNT], "p": [POWER], "radius": [Interval(Real, 0, None, closed="left")]}

    def __init__(self, n_neighbors=5, *, p=2, radius=1.0):
        self.n_neighbors = n_neighbors
        self.p = p
        self.radius = radius

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Keep the rows X. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        self._keep(load(self._blocks(X, reset=True, order="C"))[0])
        return self

    def radius_neighbors(self, X=None, radius=None, return_distance=True):
        """Find all rows of the table within a radius, bounds included.

        Parameters
        ----------
        X : Rows that ask, or None: the rows of the table, each leaving itself out.
        radius : How far, by default that of the constructor.
        return_distance : Whether distances are wanted.

        Returns
        -------
        distance : (n_queries,), an array for each row that asks, nearest first.
        index : (n_queries,), the row numbers in the same order; of equally distant rows the lower comes first.

        Examples
        --------
        >>> model = NearestNeighbors(radius=1.5).fit([[0.0], [1.0], [3.0]])
        >>> [index.tolist() for index in model.radius_neighbors([[0.8], [9.0]], return_distance=False)]
        [[1, 0], []]
        """
        distance, index, starts = self._within(X, radius)
        cut = np.split(index, starts[1:-1]), np.split(distance, starts[1:-1])
        indices, distances = (np.empty(len(starts) - 1, dtype=object) for _ in cut)
        indices[:], distances[:] = cut
        return (distances, indices) if return_distance else indices

    def radius_neighbors_graph(self, X=None, radius=None, mode="connectivity"):
        """Give the rows within a radius as a sparse matrix: 1, or for mode="distance" the distance, where there is one."""
        return self._graph(*self._within(X, radius), mode)

    def _within(self, X, radius):
        """Give distances and numbers of the rows within a radius, and where those of each row that asks begin."""
        Q, dtype = self._queries(X)
        radius = self.radius if radius is None else radius
        if not radius >= 0:
            raise ValueError(f"radius must be at least 0, got {radius!r}.")
        which, index, distance = self._search().within(float(radius), Q)
        n = self.n_samples_fit_ if Q is None else Q.shape[0]
        return as_output(distance, dtype), index, np.searchsorted(which, np.arange(n + 1))

    def certify(self, X, y=None):
        """Compare the rows kept with the table, and the search with sorting."""
        check_is_fitted(self)
        rows = load(self._blocks(X, reset=False, order="C"))[0]
        return Certificate(self._rows_check(rows), self._search_check(), subject=repr(self))
