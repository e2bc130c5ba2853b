"""K-medians: centers anywhere, under the sum of absolute differences.

Choose centers C = (c₁, …, c_k) to minimize L(C) = Σᵢ sᵢ minⱼ ‖xᵢ − cⱼ‖₁. The norm is a sum over the columns, so for given rows
the best center is their median, column by column (the middle of the interval of medians where there is one). A pass gives
each row to its nearest center, then moves each center to the median of its rows; both lower L, and the passes end at a
fixed point. A center without rows goes to the row that is farthest from its own.
Medoids under ℓ₁ are another problem: centers that must be rows. The median of (0, 0), (1, 3), (3, 1) is (1, 1), no row.
Certificate: the fixed point, which is local: every center is a median of its rows, every row is with its nearest center.
"""

import warnings
from numbers import Integral
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster.dissimilarity import NearestCenter, distances, label_block, loss_block, nearest_block, wrong_labels
from lemmata.cluster.distinct import load, merged, spread_out
from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, same
from lemmata.core.estimator import as_output
from lemmata.core.random import generator


def medians(rows, weight):
    """Take the weighted median of each column: the middle of all values that have at most half the weight on either side."""
    order = np.argsort(rows, axis=0, kind="stable")
    sorted_rows = np.take_along_axis(rows, order, axis=0)
    below, half = np.cumsum(weight[order], axis=0), 0.5 * weight.sum()
    low = np.minimum((below < half).sum(axis=0), len(rows) - 1)
    high = np.minimum((below <= half).sum(axis=0), len(rows) - 1)
    columns = np.arange(rows.shape[1])
    return 0.5 * sorted_rows[low, columns] + 0.5 * sorted_rows[high, columns]


def move(rows, weight, centers, labels):
    """Move each center to the median of its rows, if it has any."""
    moved = centers.copy()
    for j in range(len(centers)):
        own = labels == j
        if own.any():
            moved[j] = medians(rows[own], weight[own])
    return moved


class KMedians(NearestCenter):
    """Cluster rows around `n_clusters` medians: the least sum of absolute differences. The rows are held in memory.

    Parameters
    ----------
    n_clusters : Number of centers.
    init : "k-medians++" (rows drawn with odds ∝ their distance to those drawn before), or an array (n_clusters, n_features).
    max_iter : Passes at most.
    verbose : 1 shows a progress bar.
    random_state : Seed of the start.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
    labels_ : (n_samples,), nearest center of each row in ℓ₁; ties go to the first.
    inertia_ : Weighted sum of absolute differences to the nearest center: what is minimized.
    n_iter_ : Passes.
    converged_ : Whether they reached their fixed point.
    trace_ : Loss before each move.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 3.0], [3.0, 1.0], [90.0, 90.0]]
    >>> model = KMedians(2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([[1.0, 1.0], [90.0, 90.0]], 6.0)
    >>> print(model.certify(X))
    KMedians(n_clusters=2, random_state=0): certificate holds (local)
      check        value     limit  kind   claim
      fixed point  0.0e+00 ≤ 1e-06  local  every center is the median of the rows nearest to it
      inertia      0.0e+00 ≤ 1e-06  proof  sum of absolute differences to the nearest center
      labels       0.0e+00 ≤ 1e-09  proof  every row has the label of its nearest center
    """

    metric = "l1"  # what median makes smallest, hence no parameter

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-medians++"}), "array-like"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-medians++",
        max_iter=1000,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_clusters:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_clusters={self.n_clusters}.")
        rows, weight, _ = load(blocks)
        first, weight = merged(rows, weight)
        rows = rows[first].astype(float)

        def step(centers):
            labels, near = nearest_block(rows, None, centers, self.metric)
            moved = move(rows, weight, centers, labels)
            empty = np.setdiff1d(np.arange(len(centers)), labels)
            far = np.argsort(-near, kind="stable")[: len(empty)]
            moved[empty[: len(far)]] = np.where(near[far, None] > 0, rows[far], moved[empty[: len(far)]])
            return moved, float(weight @ near), float(np.abs(moved - centers).max())

        def fitted(centers):
            return {"cluster_centers_": as_output(centers, blocks.dtype)}

        start = self._start(rows, weight)
        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(step, start, tol=0.0, monotone="down", name="k-medians", fitted=fitted)
            self.cluster_centers_ = fitted(run.state)["cluster_centers_"]
            self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
            self.inertia_ = loss_block(rows, weight, self.cluster_centers_, self.metric)
            whole = blocks if blocks.complete else self._blocks(X, reset=False, order="C")
            self.labels_ = whole.map(label_block, self.cluster_centers_, self.metric)
        if len(rows) < self.n_clusters:
            warnings.warn(
                f"Only {len(rows)} of {self.n_clusters} clusters have rows: no more rows are distinct.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _start(self, rows, weight):
        """Choose the starting centers; where there are too few distinct rows, some of them twice."""
        if not isinstance(self.init, str):
            centers = np.array(self.init, dtype=float)
            if centers.shape != (self.n_clusters, rows.shape[1]) or not np.isfinite(centers).all():
                raise ValueError(f"init must hold {self.n_clusters} rows of {rows.shape[1]} finite numbers.")
            return centers
        k = min(self.n_clusters, len(rows))

        def lines(drawn):
            return distances(rows[drawn], rows, self.metric)

        chosen = spread_out(lines, weight, k, generator(self.random_state))
        return rows[np.resize(chosen, self.n_clusters)]

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fixed point: medians of the nearest rows."""
        rows, weight, _ = load(self._fitted_blocks(X, sample_weight))
        rows, centers = rows.astype(float), self.cluster_centers_.astype(float)
        labels, near = nearest_block(rows, None, centers, self.metric)
        loss = float(weight @ near)
        scatter = float(weight @ np.abs(rows - medians(rows, weight)).sum(axis=1))
        spread = max(scatter / weight.sum(), TINY)
        precision, largest = np.finfo(self.cluster_centers_.dtype).eps, np.abs(centers).max(initial=0.0)
        drift = float(np.abs(centers - move(rows, weight, centers, labels)).sum(axis=1).max() / spread)
        limit = max(SAME_LIMIT, 4 * precision * rows.shape[1] * largest / spread)
        wrong = wrong_labels(self._fitted_blocks(X), self.labels_, centers, self.metric)
        floor = precision * max(scatter, float(largest * weight.sum()))
        return Certificate(
            Check("fixed point", drift, limit, "local", "every center is the median of the rows nearest to it"),
            same(self.inertia_, loss, "inertia", "sum of absolute differences to the nearest center", floor=floor),
            Check("labels", wrong, 1e-9, "proof", "every row has the label of its nearest center"),
            subject=repr(self),
        )
