"""Distances between rows under any metric, and the nearest of some centers.

Euclidean distances are taken from differences of coordinates, not from products: rows far from the origin lose no digits.
"""

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from lemmata.core import config
from lemmata.core.estimator import NO_WEIGHTS, Clusterer, Iterative, as_output
from lemmata.core.threads import run

DIRECT = {"euclidean": "euclidean", "l2": "euclidean", "sqeuclidean": "sqeuclidean"}
DIRECT |= {"manhattan": "cityblock", "l1": "cityblock", "cityblock": "cityblock"}
METRICS = {*DIRECT, "braycurtis", "canberra", "chebyshev", "correlation", "cosine", "hamming", "haversine", "minkowski"}
CHUNK = 256  # rows whose distances to all others are held at once


def distances(rows, centers, metric):
    """Give the distance of each row to each center (n_rows, n_centers); with "precomputed", centers are columns of the rows."""
    if isinstance(metric, str) and metric == "precomputed":
        return rows[:, centers].astype(float)
    rows, centers = np.asarray(rows, dtype=float), np.asarray(centers, dtype=float)
    if isinstance(metric, str) and metric in DIRECT:
        return cdist(rows, centers, DIRECT[metric])
    return pairwise_distances(rows, centers, metric=metric)


def chunks(n):
    """Cut n rows into slices."""
    return (slice(start, start + CHUNK) for start in range(0, n, CHUNK))


def distance_matrix(rows, metric, dtype):
    """Give the distances of all pairs of rows; entry (c, i) is the distance of row i from row c as its center."""
    out = np.empty((len(rows), len(rows)), dtype=dtype)

    def work(part):
        out[part] = distances(rows[part], rows, metric) if isinstance(metric, str) else distances(rows, rows[part], metric).T

    run(work, chunks(len(rows)), config.n_threads() if isinstance(metric, str) else 1)  # a function may not bear threads
    return out


def nearest_block(X, weight, centers, metric):
    """Nearest center of each row, the first among equals, and the distance to it."""
    to = distances(X, centers, metric)
    labels = to.argmin(axis=1)
    return labels.astype(np.int32), to[np.arange(len(labels)), labels]


def label_block(X, weight, centers, metric):
    """Nearest center of each row."""
    return nearest_block(X, weight, centers, metric)[0]


def transform_block(X, weight, centers, metric):
    """Distance of each row to each center."""
    return distances(X, centers, metric)


def loss_block(X, weight, centers, metric):
    """Weighted sum of the distances to the nearest center."""
    near = nearest_block(X, weight, centers, metric)[1]
    return float(near.sum() if weight is None else weight @ near)


def wrong_labels(blocks, labels, centers, metric):
    """Say how much farther than the nearest center the center of a row's label is, at most, as a share."""
    labels = np.asarray(labels)
    if blocks.n_rows != len(labels) or labels.max() >= len(centers) or labels.min() < 0:
        return np.inf
    to = np.asarray(blocks.map(transform_block, centers, metric))
    far, near = to[np.arange(len(labels)), labels], to.min(axis=1)
    return float(((far - near) / np.where(far > 0, far, 1.0)).max())


class NearestCenter(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Iterative, Clusterer):
    """Base of clusterers that give each row to the nearest of some centers under a metric."""

    def _centers(self):
        """What distances are taken from."""
        return self.cluster_centers_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fitted_blocks(self, X, sample_weight=NO_WEIGHTS):
        check_is_fitted(self)
        return self._blocks(X, sample_weight=sample_weight, reset=False, order="C")

    def predict(self, X):
        """Give each row the number of its nearest center."""
        return self._fitted_blocks(X).map(label_block, self._centers(), self.metric)

    def transform(self, X):
        """Give the distance of each row to each center."""
        blocks = self._fitted_blocks(X)
        return as_output(blocks.map(transform_block, self._centers(), self.metric), blocks.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give minus the sum of distances of rows X to their nearest centers."""
        return -self._fitted_blocks(X, sample_weight).reduce(loss_block, self._centers(), self.metric)

    @property
    def _n_features_out(self):
        return len(self._centers())
