"""How many clusters: the loss and the mean silhouette for several numbers of them.

The loss of the best k clusters falls as k grows, at first because true groups are told apart, then because groups are cut in
two. The elbow is where it turns from the one to the other. The rule here: scale both axes to [0, 1] and draw the chord from
the first point of the curve to the last; the elbow is the point farthest below the chord. It depends on the range of k that is
asked for; the silhouette does not, and its largest mean is a second opinion.
"""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.base import clone

from lemmata.cluster.silhouette import silhouette
from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse


@dataclass(frozen=True)
class Elbow:
    """The curve over the numbers of clusters, and what it suggests.

    Attributes
    ----------
    n_clusters : The numbers of clusters that were tried.
    inertia : Loss of the fit with each.
    silhouette : Mean silhouette of each; NaN where it is not defined (one cluster, or a cluster for each row).
    models : The fitted estimators.

    Examples
    --------
    >>> import numpy as np
    >>> curve = Elbow(np.arange(1, 6), np.array([100.0, 40.0, 10.0, 8.0, 7.0]), np.array([np.nan, 0.5, 0.7, 0.6, 0.4]))
    >>> curve.suggested, curve.by_silhouette
    (3, 3)
    """

    n_clusters: np.ndarray
    inertia: np.ndarray
    silhouette: np.ndarray
    models: tuple = ()

    @property
    def below_chord(self):
        """How far each point lies below the chord from the first to the last, both axes scaled to [0, 1]."""
        k, fall = self.n_clusters.astype(float), self.inertia[0] - self.inertia
        return (fall / fall[-1] if fall[-1] > 0 else np.zeros(len(k))) - (k - k[0]) / (k[-1] - k[0])

    @property
    def suggested(self):
        """The number of clusters whose point lies farthest below the chord; the first among equals."""
        return int(self.n_clusters[np.argmax(self.below_chord)])

    @property
    def by_silhouette(self):
        """The number of clusters with the largest mean silhouette; the first among equals."""
        return int(self.n_clusters[np.argmax(np.nan_to_num(self.silhouette, nan=-np.inf))])


def elbow(estimator, X, n_clusters=range(1, 11), *, sample_weight=None):
    """Fit a clusterer with several numbers of clusters and find the elbow of its loss.

    Parameters
    ----------
    estimator : A clusterer with the parameter n_clusters and the attribute inertia_; it is copied.
    n_clusters : At least three numbers of clusters, ascending.
    sample_weight : A weight means repetition.

    Examples
    --------
    >>> import numpy as np
    >>> from lemmata.cluster import KMedoids, elbow
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [9, 9], [9, 8], [8, 9], [0, 9], [1, 9], [0, 8]], dtype=float)
    >>> curve = elbow(KMedoids(), X, range(1, 6))
    >>> curve.suggested, curve.by_silhouette
    (3, 3)
    >>> curve.inertia.round(2).tolist()
    [51.59, 26.83, 6.0, 5.0, 4.0]
    """
    numbers = list(n_clusters)
    if len(numbers) < 3 or not all(isinstance(k, Integral) and k >= 1 for k in numbers) or numbers != sorted(set(numbers)):
        raise ValueError(f"n_clusters must be at least three different numbers of clusters, ascending; got {numbers}.")
    models = tuple(clone(estimator).set_params(n_clusters=int(k)).fit(X, sample_weight=sample_weight) for k in numbers)
    blocks = Blocks.of(X, sample_weight)
    rows, weight = blocks.take(np.arange(blocks.n_rows))
    rows = rows.toarray() if is_sparse(rows) else rows
    metric = getattr(estimator, "metric", "euclidean")
    scores = [_mean_silhouette(rows, np.asarray(model.labels_), metric, weight) for model in models]
    return Elbow(np.array(numbers), np.array([float(model.inertia_) for model in models]), np.array(scores), models)


def _mean_silhouette(rows, labels, metric, weight):
    """Average the silhouettes of the rows that have weight, or give NaN where there are none."""
    if weight is not None:
        present = weight > 0
        rows = rows[np.ix_(present, present)] if isinstance(metric, str) and metric == "precomputed" else rows[present]
        labels, weight = labels[present], weight[present]
    if not 2 <= len(np.unique(labels)) <= len(rows) - 1:
        return np.nan
    return float(np.average(silhouette(rows, labels, metric, sample_weight=weight), weights=weight))
