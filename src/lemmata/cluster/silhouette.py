"""Silhouettes: how much nearer each row is to its own cluster than to the next one.

Let a be the mean distance of a row to the others of its cluster, and b the least mean distance to the rows of another cluster.
The silhouette of the row is (b − a) / max(a, b), between −1 and 1; alone in its cluster, it is 0 [1]. Distances go by in
slices, so that no matrix of all pairs is held.

[1] Rousseeuw, J. Comput. Appl. Math. 20 (1987).
"""

import numpy as np
from sklearn.utils._param_validation import StrOptions, validate_params
from sklearn.utils.validation import _check_sample_weight, check_array, column_or_1d

from lemmata.cluster.dissimilarity import METRICS, chunks, distances
from lemmata.core import config
from lemmata.core.threads import run


@validate_params(
    {
        "X": ["array-like"],
        "labels": ["array-like"],
        "metric": [StrOptions(METRICS | {"precomputed"}), callable],
        "sample_weight": ["array-like", None],
    },
    prefer_skip_nested_validation=True,
)
def silhouette(X, labels, metric="euclidean", *, sample_weight=None):
    """Give the silhouette of every row; their mean is the score of the clustering.

    Parameters
    ----------
    X : Rows; with metric "precomputed", the distances of all pairs.
    labels : Cluster of each row; at least two clusters, and fewer clusters than rows.
    metric : As in `KMedoids`.
    sample_weight : A weight means repetition.

    Examples
    --------
    >>> silhouette([[0.0], [1.0], [10.0], [12.0]], [0, 0, 1, 1]).round(3).tolist()
    [0.909, 0.9, 0.789, 0.826]
    """
    X = check_array(X, dtype=[np.float64, np.float32])
    names, place = np.unique(column_or_1d(labels), return_inverse=True)
    if len(place) != len(X):
        raise ValueError(f"Found {len(X)} rows and {len(place)} labels; there must be one for each row.")
    if not 2 <= len(names) <= len(X) - 1:
        raise ValueError(f"Silhouettes need from 2 to {len(X) - 1} clusters of {len(X)} rows, and there are {len(names)}.")
    precomputed = isinstance(metric, str) and metric == "precomputed"
    if precomputed and X.shape[0] != X.shape[1]:
        raise ValueError(f"Precomputed distances need one column for each row, got the shape {X.shape}.")
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    order = np.argsort(place, kind="stable")
    starts, sizes = np.searchsorted(place[order], np.arange(len(names))), np.bincount(place, weight)
    if (sizes == 0).any():
        raise ValueError("A cluster has no row of positive weight; leave its rows out.")
    centers, out = (order if precomputed else X[order]), np.empty(len(X))

    def work(part):
        to = distances(X[part], centers, metric)
        sums = np.add.reduceat(to * weight[order], starts, axis=1)
        out[part] = _of_sums(sums, place[part], sizes)

    run(work, chunks(len(X)), 1 if callable(metric) else config.n_threads())  # a function may not bear threads
    return out


def _of_sums(sums, own, sizes):
    """Turn the sums of distances of some rows to each cluster into silhouettes."""
    each, others = np.arange(len(own)), sizes[own] - 1
    alone = others <= 0
    within = sums[each, own] / np.where(alone, 1.0, others)
    means = sums / sizes
    means[each, own] = np.inf
    between = means.min(axis=1)
    larger = np.maximum(within, between)
    return np.where(alone | (larger == 0), 0.0, (between - within) / np.where(larger == 0, 1.0, larger))
