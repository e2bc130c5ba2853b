"""K-means: Lloyd's algorithm, run to its fixed point.

Choose centers C = (c₁, …, c_k) to minimize the inertia J(C) = Σᵢ sᵢ minⱼ ‖xᵢ − cⱼ‖². A pass gives each row to its nearest
center, then moves each center to the mean of its rows; with nⱼ rows of mean mⱼ the move alone lowers J by Σⱼ nⱼ ‖mⱼ − cⱼ‖²,
so the passes end at a fixed point [1]. `lloyd` has the pass, `seeding` the start. A center without rows goes to the row that
is farthest from its own.
Certificate: the fixed point; the best gain of moving a single row, which Lloyd cannot see [2]; and how far at most the
inertia is from the least possible, by the bounds of `bounds`: where that closes, the optimum is proved to be global.

[1] Lloyd, IEEE Trans. Inf. Theory 28 (1982). [2] Telgarsky & Vattani, AISTATS (2010).
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.cluster import lloyd
from lemmata.cluster.bounds import semidefinite_bound, spectral_bound
from lemmata.cluster.seeding import draw_centers
from lemmata.core.blocks import Largest
from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, TINY, Certificate, Check, same
from lemmata.core.data import is_sparse
from lemmata.core.estimator import NO_WEIGHTS, Clusterer, Iterative, as_output
from lemmata.core.moments import moments_block
from lemmata.core.random import generator, spawn
from lemmata.core.threads import serial_blas

SAMPLE = 1 << 17  # rows among which starting centers are drawn: the start needs no more, and streams no further pass
RELAXED = 500  # rows up to which the certificate affords the semidefinite bound


class Farthest:
    """The rows farthest from their centers, kept in order; "adding" merges two such lists."""

    def __init__(self, distance, rows, n):
        order = np.argsort(-distance, kind="stable")[:n]
        self.distance, self.rows, self.n = distance[order], rows[order], n

    def __add__(self, other):
        """Merge two lists, the first going first among equals."""
        distance, rows = np.concatenate([self.distance, other.distance]), np.concatenate([self.rows, other.rows])
        return Farthest(distance, rows, self.n)


def farthest_block(X, weight, scoring, n):
    """List the n rows of a block that are farthest from their centers."""
    _, squared = lloyd.nearest(X, scoring)
    top = np.argsort(-squared, kind="stable")[:n]
    rows = X[top].toarray() if is_sparse(X) else X[top]
    return Farthest(squared[top], rows.astype(float), n)


def label_block(X, weight, scoring):
    """Nearest center of each row."""
    return lloyd.nearest(X, scoring)[0]


def label_and_distance_block(X, weight, scoring):
    """Nearest center of each row, and the squared distance to it."""
    return lloyd.nearest(X, scoring)


def cluster_block(X, weight, scoring):
    """Weight and inertia of each cluster."""
    labels, squared = lloyd.nearest(X, scoring)
    w = np.ones(len(labels)) if weight is None else weight
    k = len(scoring.centers)
    return np.bincount(labels, w, minlength=k), np.bincount(labels, w * squared, minlength=k)


def transform_block(X, weight, centers):
    """Distance of each row to each center."""
    X = X.toarray() if is_sparse(X) else X
    out = np.empty((X.shape[0], len(centers)))
    for j, center in enumerate(centers):
        out[:, j] = np.sqrt(((X - center) ** 2).sum(axis=1))
    return out


def gain_block(X, weight, scoring, means, counts):
    """Largest decrease of the inertia by giving a single row to another center, both means following (Hartigan)."""
    labels, _ = lloyd.nearest(X, scoring)
    to = transform_block(X, weight, means) ** 2
    w = np.ones(len(labels)) if weight is None else weight
    each = np.arange(len(labels))
    rest = counts[labels] - w
    leaving = np.where(rest > 1e-9 * counts[labels], to[each, labels] * w * counts[labels] / np.maximum(rest, TINY), -np.inf)
    joining = to * (w[:, None] * counts / (counts + w[:, None]))
    joining[each, labels] = np.inf
    return Largest(float((leaving - joining.min(axis=1)).max()))


def draw_grid(blocks):
    """Choose where rows are summed: at the mean of the first block, on a grid as fine as 64 bits and the extent allow."""
    X, weight = blocks.first()
    origin = np.zeros(X.shape[1]) if is_sparse(X) else np.average(X, axis=0, weights=weight).astype(float)
    size, heaviest, total, scatter = blocks.reduce(lloyd.extent_block, origin)
    bits = 61 - blocks.n_rows.bit_length()
    return lloyd.Grid(origin, size.value or 1.0, heaviest.value, bits), total, scatter


class KMeans(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Iterative, Clusterer):
    """Cluster rows around `n_clusters` means.

    Parameters
    ----------
    n_clusters : Number of centers.
    init : "k-means++" (greedy), "random" rows, an array (n_clusters, n_features), or a function init(X, n_clusters,
        random_state) of a sample of the rows.
    n_init : Runs from different starts, of which the best is kept; "auto" is 10 for random rows and functions, else 1.
    max_iter : Passes of a run at most.
    tol : Stop when the squared moves of the centers sum to no more than tol × the mean variance of the columns. At 0 the run
        ends at an exact fixed point, which is what the certificate asks for.
    verbose : 1 shows a progress bar.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    cluster_centers_ : (n_clusters, n_features)
    labels_ : (n_samples,), nearest center of each row; ties go to the first.
    inertia_ : Weighted sum of squared distances to the nearest center: what is minimized.
    size_weighted_inertia_ : Σⱼ nⱼ times the inertia of cluster j, which equals half the sum of squared distances over all pairs
        within clusters: the objective of some textbooks, given for comparison.
    n_iter_ : Passes of the best run.
    converged_ : Whether it reached its fixed point.
    trace_ : Inertia of the best run after each pass.

    Examples
    --------
    >>> X = [[0.0, 1.0], [0.0, -1.0], [9.0, 1.0], [9.0, -1.0]]
    >>> model = KMeans(2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.tolist()), model.inertia_
    ([[0.0, 0.0], [9.0, 0.0]], 4.0)
    >>> print(model.certify(X))
    KMeans(n_clusters=2, random_state=0): certificate holds (proof)
      check        value     limit  kind   claim
      fixed point  0.0e+00 ≤ 1e-06  proof  every center is the mean of the rows nearest to it
      inertia      0.0e+00 ≤ 1e-06  proof  sum of squared distances to the nearest center
      weighted     0.0e+00 ≤ 1e-06  proof  the same, clusters times their size
      labels       0.0e+00 ≤ 1e-09  proof  every row has the label of its nearest center
      single move  0.0e+00 ≤ inf    proof  giving one row to another center gains no more
      excess       0.0e+00 ≤ inf    proof  no 2 centers have an inertia smaller by more than this share
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"k-means++", "random"}), callable, "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        init="k-means++",
        n_init="auto",
        max_iter=1000,
        tol=0.0,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_clusters:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_clusters={self.n_clusters}.")
        grid, total, scatter = draw_grid(blocks)
        tol = self.tol * scatter / total / blocks.n_columns
        n_runs = self._n_runs()
        best = None
        with serial_blas(), self._fitting(blocks, n_runs, X=X, y=y) as fitting:
            for rng in spawn(generator(self.random_state), n_runs):
                run = self._run(blocks, grid, scatter, self._start(blocks, rng), tol, fitting)
                if best is None or (run.n_iter and run.trace[-1] < best.trace[-1]):  # an interrupted run may have no trace
                    best = run
                if run.reason in ("interrupted", "callback"):
                    break
            self._keep(X, blocks, best)
        return self

    def _n_runs(self):
        if self.n_init == "auto":
            return 10 if callable(self.init) or (isinstance(self.init, str) and self.init == "random") else 1
        return 1 if not isinstance(self.init, str) and not callable(self.init) else self.n_init

    def _start(self, blocks, rng):
        """Choose the starting centers of a run."""
        if not isinstance(self.init, str) and not callable(self.init):
            centers = np.array(self.init, dtype=float)
            if centers.shape != (self.n_clusters, blocks.n_columns):
                raise ValueError(
                    f"init must have {self.n_clusters} rows and {blocks.n_columns} columns, got the shape {centers.shape}."
                )
            if not np.isfinite(centers).all():
                raise ValueError("init contains NaN or infinity; every starting center must be finite.")
            return centers
        rows = np.arange(blocks.n_rows)
        if blocks.n_rows > SAMPLE:
            rows = np.sort(rng.choice(blocks.n_rows, SAMPLE, replace=False))
        X, weight = blocks.take(rows)
        if callable(self.init):
            centers = np.array(self.init(X, self.n_clusters, random_state=rng), dtype=float)
            if centers.shape != (self.n_clusters, blocks.n_columns):
                raise ValueError(f"init must return {self.n_clusters} rows and {blocks.n_columns} columns.")
            return centers
        if self.init == "k-means++":
            chosen = draw_centers(X, self.n_clusters, rng, weight)
        else:
            odds = None if weight is None else weight / weight.sum()
            chosen = rng.choice(len(rows), self.n_clusters, replace=False, p=odds)
        return (X[chosen].toarray() if is_sparse(X) else X[chosen]).astype(float)

    def _run(self, blocks, grid, scatter, centers, tol, fitting):
        """Iterate from given centers; what the blocks remember lives here, outside the state."""
        remembers = blocks.home != "stream"
        memory = None

        def step(centers):
            nonlocal memory
            if remembers:
                statistics, memory = blocks.sweep(lloyd.sweep, memory, lloyd.scoring_of(centers), grid)
            else:
                statistics = blocks.reduce(lloyd.lloyd_block, lloyd.scoring_of(centers), grid)
            means, counts = move(centers, statistics, grid)
            explained = counts @ ((means - grid.origin) ** 2).sum(axis=1)
            if not counts.all():
                means = relocate(blocks, centers, means, counts)
            return means, max(scatter - explained, 0.0), ((means - centers) ** 2).sum()

        def fitted(centers):
            return {"cluster_centers_": as_output(centers, blocks.dtype)}

        rounding = 1e-12 * scatter  # the objective is the difference of two sums of this size
        return fitting.iterate(step, centers, tol=tol, monotone="down", rounding=rounding, name="k-means", fitted=fitted)

    def _keep(self, X, blocks, run):
        self.cluster_centers_ = as_output(run.state, blocks.dtype)
        self.n_iter_, self.converged_ = run.n_iter, run.converged
        self.trace_ = run.trace
        centers = self.cluster_centers_.astype(float)
        scoring = lloyd.scoring_of(centers)
        counts, inertia = blocks.reduce(cluster_block, scoring)
        self.inertia_, self.size_weighted_inertia_ = float(inertia.sum()), float(counts @ inertia)
        whole = blocks if blocks.complete else self._blocks(X, reset=False, order="C")
        self.labels_ = whole.map(label_block, scoring)
        if blocks.home != "dask" and len(np.unique(self.labels_)) < self.n_clusters:
            warnings.warn(
                f"Only {len(np.unique(self.labels_))} of {self.n_clusters} clusters have rows: no more rows are distinct.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def predict(self, X):
        """Give each row the number of its nearest center."""
        blocks, centers = self._blocks_and_centers(X)
        return blocks.map(label_block, lloyd.scoring_of(centers))

    def transform(self, X):
        """Give the distance of each row to each center."""
        blocks, centers = self._blocks_and_centers(X)
        return as_output(blocks.map(transform_block, centers), blocks.dtype)

    def score(self, X, y=None, sample_weight=None):
        """Give minus the inertia of rows X."""
        blocks, centers = self._blocks_and_centers(X, sample_weight)
        return -float(blocks.reduce(cluster_block, lloyd.scoring_of(centers))[1].sum())

    def _blocks_and_centers(self, X, sample_weight=NO_WEIGHTS):
        """Validate a table and the centers that a compiled kernel is about to index."""
        check_is_fitted(self)
        blocks = self._blocks(X, sample_weight=sample_weight, reset=False, order="C")
        if self.cluster_centers_.shape != (self.n_clusters, self.n_features_in_):
            raise ValueError(f"cluster_centers_ has the shape {self.cluster_centers_.shape}, which is not that of a fit.")
        return blocks, self.cluster_centers_.astype(float)

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fixed point, and bound how far the inertia is from the least that any centers have."""
        blocks, centers = self._blocks_and_centers(X, sample_weight)
        grid, total, _ = draw_grid(blocks)
        scoring = lloyd.scoring_of(centers)
        counts, inertia = blocks.reduce(cluster_block, scoring)
        means = move(centers, blocks.reduce(lloyd.lloyd_block, scoring, grid), grid)[0]
        scatter = blocks.reduce(moments_block).scatter
        spread, floor = np.sqrt(max(np.trace(scatter) / total, TINY)), np.finfo(float).eps * float(np.trace(scatter))
        drift = float(np.sqrt(((centers - means) ** 2).sum(axis=1)).max() / spread)
        rounding = 4 * np.finfo(self.cluster_centers_.dtype).eps * float(np.abs(centers).max() / spread)
        gain = blocks.reduce(gain_block, scoring, means, counts).value if len(centers) > 1 else 0.0
        scale = max(float(inertia.sum()), floor, TINY)
        excess = max(float(inertia.sum()) - self._bound(blocks, centers, scatter), 0.0) / scale
        kind = "proof" if excess <= GAP_LIMIT else "local"  # where the bound is met, the fixed point is the best of all
        k, weighted = len(centers), float(counts @ inertia)
        return Certificate(
            Check("fixed point", drift, max(SAME_LIMIT, rounding), kind, "every center is the mean of the rows nearest to it"),
            same(self.inertia_, inertia.sum(), "inertia", "sum of squared distances to the nearest center", floor=floor),
            same(self.size_weighted_inertia_, weighted, "weighted", "the same, clusters times their size", floor=floor * total),
            Check("labels", self._wrong_labels(X), 1e-9, "proof", "every row has the label of its nearest center"),
            Check("single move", max(gain, 0.0) / scale, np.inf, kind, "giving one row to another center gains no more"),
            Check("excess", excess, np.inf, "proof", f"no {k} centers have an inertia smaller by more than this share"),
            subject=repr(self),
        )

    def _bound(self, blocks, centers, scatter):
        """Bound the inertia of any k centers from below."""
        bound = spectral_bound(scatter, len(centers))
        if blocks.home == "memory" and blocks.n_rows <= RELAXED:
            rows, weight = blocks.take(np.arange(blocks.n_rows))
            if weight is None:
                rows = (rows.toarray() if is_sparse(rows) else rows).astype(float)
                bound = max(bound, semidefinite_bound(rows, lloyd.nearest(rows, lloyd.scoring_of(centers))[0], len(centers)))
        return bound

    def _wrong_labels(self, X):
        """Say how much farther than the nearest center the center of a row's label is, at most (squared, as a share)."""
        blocks, centers = self._blocks_and_centers(X)
        if blocks.n_rows != len(self.labels_) or np.max(self.labels_) >= self.n_clusters or np.min(self.labels_) < 0:
            return np.inf
        nearest, squared = blocks.map(label_and_distance_block, lloyd.scoring_of(centers))
        nearest, labels = np.asarray(nearest), np.asarray(self.labels_)
        rows = np.flatnonzero(nearest != labels)
        if not len(rows):
            return 0.0
        far = np.asarray(blocks.map(transform_block, centers))[rows, labels[rows]] ** 2
        return float(((far - np.asarray(squared)[rows]) / np.maximum(far, TINY)).max())


def move(centers, statistics, grid):
    """Move each center to the mean of its rows (if it has any); return the means and the weights of the rows."""
    counts, sums = grid.counts(statistics), grid.sums(statistics)
    means = grid.origin + sums / np.maximum(counts, TINY)[:, None]
    return np.where(counts[:, None] > 0, means, centers), counts


def relocate(blocks, centers, means, counts):
    """Move centers without rows to the rows farthest from their centers, unless every row sits on its center."""
    empty = np.flatnonzero(counts == 0)
    far = blocks.reduce(farthest_block, lloyd.scoring_of(centers), len(empty))
    means = means.copy()
    for j, row, distance in zip(empty, far.rows, far.distance, strict=False):
        if distance > 0:
            means[j] = row
    return means
