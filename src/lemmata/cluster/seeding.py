"""k-means++: starting centers that are spread out by chance.

Each center is drawn among the rows with odds ∝ weight × squared distance to the nearest center drawn before: the expected
inertia is within a factor 8 (2 + ln k) of the best [1]. Greedy: several candidates are drawn and the one that lowers the
inertia most is kept.

[1] Arthur & Vassilvitskii, SODA (2007).
"""

from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval, validate_params
from sklearn.utils.validation import _check_sample_weight, check_array

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse
from lemmata.core.random import generator


def squares_block(X, weight):
    """Squared length of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if is_sparse(X) else np.einsum("ij,ij->i", X, X, dtype=float)


def distances_block(X, weight, squares, candidates):
    """Squared distances of each row to the candidates (n_rows, n_candidates)."""
    products = np.asarray(X @ candidates.T, dtype=float)
    return np.maximum(squares[:, None] - 2.0 * products + (candidates**2).sum(axis=1), 0.0)


def closer_block(X, weight, squares, nearest, candidates):
    """Distance to the nearest center if each candidate joined them, and the inertia that each would leave."""
    closer = np.minimum(distances_block(X, weight, squares, candidates), nearest[:, None])
    return closer, (closer if weight is None else weight[:, None] * closer)


def draw_centers(X, n_clusters, rng, weight=None, n_local_trials=None):
    """Draw the row numbers of k-means++ centers from rows in memory."""
    n = X.shape[0]
    trials = n_local_trials or 2 + int(np.log(n_clusters))
    origin = np.zeros(X.shape[1]) if is_sparse(X) else X.mean(axis=0, dtype=float)
    X = X if is_sparse(X) else X - origin  # so that distances by products lose nothing to an offset
    odds = np.ones(n) if weight is None else weight
    squares = Blocks.of(X, weight).map(squares_block)
    chosen = [_pick(odds, rng.random(1))[0]]
    blocks = Blocks.of(X, weight, squares)
    nearest = blocks.map(distances_block, _rows(X, chosen))[:, 0]
    while len(chosen) < n_clusters:
        candidates = _pick(odds * nearest, rng.random(trials))
        closer, left = Blocks.of(X, weight, squares, nearest).map(closer_block, _rows(X, candidates))
        best = int(np.argmin(left.sum(axis=0)))
        chosen.append(candidates[best])
        nearest = closer[:, best]
    return np.array(chosen)


def _pick(odds, uniform):
    """Draw rows with these odds by inverting their sum; when nothing is left to gain, any row will do."""
    total = np.cumsum(odds)
    if total[-1] == 0:
        total = np.arange(1.0, len(odds) + 1)
    return np.minimum(np.searchsorted(total, uniform * total[-1], side="right"), len(odds) - 1)


def _rows(X, rows):
    return X[rows].toarray().astype(float) if is_sparse(X) else X[rows].astype(float)


@validate_params(
    {
        "X": ["array-like", "sparse matrix"],
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "sample_weight": ["array-like", None],
        "random_state": ["random_state"],
        "n_local_trials": [Interval(Integral, 1, None, closed="left"), None],
    },
    prefer_skip_nested_validation=True,
)
def kmeans_plusplus(X, n_clusters, *, sample_weight=None, random_state=None, n_local_trials=None):
    """Draw starting centers by k-means++.

    Parameters
    ----------
    n_local_trials : Candidates for each center, of which the best is kept; default 2 + ln(n_clusters); 1 is plain k-means++.

    Returns
    -------
    centers : (n_clusters, n_features)
    indices : (n_clusters,), the rows they are.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.0, -1.0], [9.0, 1.0], [9.0, -1.0]]
    >>> centers, indices = kmeans_plusplus(X, 2, random_state=0)
    >>> sorted(centers[:, 0].tolist())
    [0.0, 9.0]
    """
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    if X.shape[0] < n_clusters:
        raise ValueError(f"n_samples={X.shape[0]} should be >= n_clusters={n_clusters}.")
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    rows = draw_centers(X, n_clusters, generator(random_state), weight, n_local_trials)
    centers = X[rows]
    return (centers.toarray() if is_sparse(centers) else centers), rows
