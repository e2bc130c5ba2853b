"""The rows of a table as a graph: who is linked with whom, with which weight, and the walk along the links.

All pairs are linked, or every row with its k nearest and with those that have it among theirs. A link of length r has the
weight exp(−r²/b).
"""

import numpy as np
from scipy.spatial.distance import cdist

from lemmata.core.certificate import SAME_LIMIT
from lemmata.neighbors.search import Table
from lemmata.semi_supervised.walk import Dense, Sparse

MOST_ROWS = 1 << 13  # for which the distances of all pairs take half a GiB
NEIGHBORS = 10  # the neighbor whose distance sets the bandwidth, and how many a row has unless asked otherwise
SLICE = 1 << 22  # distances held at a time: 32 MiB
NARROWEST = 1e-300  # bandwidth as a share of the largest squared distance: with less, quotients would be infinite
COMPARED = 1 << 28  # coordinates that `wrong_radii` compares, all for 5,000 rows of 10: less than a second


class Graph:
    """Rows, links and the walk.

    Parameters
    ----------
    X : (n, d), the table.
    bandwidth : b, or "median".
    n_neighbors : How many nearest rows each row is linked with; None for all.

    Attributes
    ----------
    n_neighbors : The same, as many as rows where all pairs are linked.
    bandwidth : b, a number.
    walk : The random walk.

    Examples
    --------
    >>> graph = Graph(np.arange(40.0)[:, None] ** 2, "median", 3)
    >>> graph.n_neighbors, graph.bandwidth, graph.wrong_radii()
    (3, 5480.0, (0.0, True))
    """

    def __init__(self, X, bandwidth, n_neighbors):
        self.rows, n = X.astype(float), len(X)
        k = self.n_neighbors = n if n_neighbors is None or n_neighbors >= n - 1 else n_neighbors
        if k == n and n > MOST_ROWS:
            raise ValueError(f"The pairs of {n} rows are too many (all pairs of {MOST_ROWS} at most); lower n_neighbors.")
        if k == n:
            squares = cdist(self.rows, self.rows, "sqeuclidean")
            j = min(NEIGHBORS, n - 1)  # a row is its own nearest, with number 0
            ranked = np.partition(squares, j, axis=1)[:, j]
        else:
            table = Table(self.rows)
            index, squares = table.nearest(k, root=False)
            self.radius, ranked = squares[:, -1], squares[:, min(NEIGHBORS, k) - 1]
        if bandwidth == "median":  # where most rows have ten copies, that of the others; where all rows are one, any
            bandwidth = float(np.median(ranked)) or float(ranked.mean()) or 1.0
        self.bandwidth = float(bandwidth)
        b = max(self.bandwidth, NARROWEST * squares.max())
        self.walk = Dense(squares, b) if k == n else Sparse(index, squares, b, table.order)

    def wrong_radii(self):
        """Compare rows with all others, all rows if that is quick and else a sample.

        Returns
        -------
        share : Of the rows compared, how many have their k-th neighbor elsewhere than the graph says.
        complete : Whether these were all rows.
        """
        n, d = self.rows.shape
        if self.n_neighbors == n:
            return 0.0, True
        some, k = np.random.default_rng(0).permutation(n)[: max(1, COMPARED // (n * d))], self.n_neighbors
        wrong = 0
        for part in np.array_split(some, -(-len(some) * n // SLICE)):
            squares = cdist(self.rows[part], self.rows, "sqeuclidean")
            kth = np.partition(squares, k, axis=1)[:, k]  # a row itself is among them
            wrong += int((np.abs(kth - self.radius[part]) > SAME_LIMIT * kth).sum())
        return wrong / len(some), len(some) == n


def averages(squares, b):
    """Turn squared distances into weights that sum to one in each row, in place.

    Examples
    --------
    >>> averages(np.array([[1e9, 1e9 + np.log(3.0)]]), 1.0).round(3)
    array([[0.75, 0.25]])
    """
    squares -= squares.min(axis=1, keepdims=True)
    with np.errstate(over="ignore"):  # infinitely far is as good as very far
        squares /= -b
    np.exp(squares, out=squares)
    squares /= squares.sum(axis=1, keepdims=True)
    return squares


def step_to_all(X, rows, F, b):
    """Average F over all rows, each by its weight for the rows X."""
    size = max(1, SLICE // len(rows))
    parts = [X[i : i + size] for i in range(0, len(X), size)]
    return np.concatenate([averages(cdist(part, rows, "sqeuclidean"), b) @ F for part in parts])


def step_to_nearest(X, rows, F, b, k):
    """Average F over the k nearest rows, each by its weight for the rows X."""
    index, squares = Table(rows).nearest(k, X, root=False)
    return np.einsum("ij,ijk->ik", averages(squares, b), F[index])
