"""K-medoids: centers that are rows, under any distance.

Choose k rows M, the medoids, to minimize the loss L(M) = Σᵢ sᵢ min_{m ∈ M} d(xᵢ, xₘ), the sum of distances, not of their
squares: a far row pulls with its distance only, and nothing but distances between rows is needed. (Under ℓ₁ a center that may
be any point is the median of its rows, column by column: that is `KMedians`, another problem.) `swaps` has the greedy start and
the passes of swaps that run until no swap of one medoid for one other row lowers the loss [1].
The loss depends on the set of rows and their weights alone: equal rows are merged and the others sorted before anything
else, so neither the order of the rows nor their repetition matters.
Certificate: the medoids are rows, no swap gains, by enumeration, and a Lagrangean bound says how far at most the loss is from
the least possible: where that closes, the medoids are proved to be the best of all.

[1] Kaufman & Rousseeuw, Finding Groups in Data (1990); Schubert & Rousseeuw, Information Systems 101 (2021).
"""

import warnings
from numbers import Integral
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster import swaps
from lemmata.cluster.dissimilarity import (
    METRICS,
    NearestCenter,
    chunks,
    distance_matrix,
    distances,
    label_block,
    loss_block,
    wrong_labels,
)
from lemmata.cluster.distinct import load, merged, spread_out
from lemmata.core.certificate import GAP_LIMIT, TINY, Certificate, Check, same
from lemmata.core.random import generator, spawn

MOST_ROWS = 1 << 15  # beyond which the distances of all pairs take more than 8 GiB
RELAXED = 500  # rows up to which the certificate affords the Lagrangean bound


class KMedoids(NearestCenter):
    """Cluster rows around `n_clusters` of them, the medoids.

    All distances between distinct rows are held in memory; more than 32,768 rows are refused (fit a sample, predict the rest).

    Parameters
    ----------
    n_clusters : Number of medoids.
    metric : Name of a distance as in scikit-learn's `pairwise_distances`, a function of two rows, or "precomputed": X then
        holds the distance of each row from each row, and for `predict` that of each new row from each row of the fit.
    init : "build" (each medoid the row that lowers the loss most), "k-medoids++" (rows drawn with odds ∝ their distance to
        those drawn before), "random" rows, or the numbers of n_clusters rows.
    n_init : Runs from different starts, of which the best is kept; a start that is not drawn has one run.
    max_iter : Passes over the rows of a run at most.
    verbose : 1 shows a progress bar.
    random_state : Seed of a drawn start; "build" draws nothing.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    medoid_indices_ : (n_clusters,), numbers of the rows that are medoids.
    cluster_centers_ : (n_clusters, n_features), those rows; absent for precomputed distances.
    labels_ : (n_samples,), nearest medoid of each row; ties go to the first.
    inertia_ : Weighted sum of distances (not of squares) to the nearest medoid: what is minimized.
    n_iter_ : Passes over the rows of the best run.
    converged_ : Whether the last pass found no swap that gains.
    trace_ : Loss after each pass.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [90.0]]
    >>> model = KMedoids(2).fit(X)
    >>> model.cluster_centers_.ravel(), model.inertia_
    (array([ 2., 90.]), 20.0)
    >>> print(model.certify(X))
    KMedoids(n_clusters=2): certificate holds (proof)
      check    value     limit  kind   claim
      medoids  0.0e+00 ≤ 1e-06  proof  every center is a row of the table
      inertia  0.0e+00 ≤ 1e-06  proof  sum of distances to the nearest medoid
      labels   0.0e+00 ≤ 1e-09  proof  every row has the label of its nearest medoid
      swap     0.0e+00 ≤ 1e-06  proof  no other row in place of a medoid lowers the sum by more
      excess   0.0e+00 ≤ inf    proof  no 2 medoids have a sum smaller by more than this share
    """

    _parameter_constraints = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions(METRICS | {"precomputed"}), callable],
        "init": [StrOptions({"build", "k-medoids++", "random"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
        "random_state": ["random_state", np.random.Generator],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        metric="euclidean",
        init="build",
        n_init=1,
        max_iter=300,
        verbose=0,
        random_state=None,
        checkpoint=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self):
        return isinstance(self.metric, str) and self.metric == "precomputed"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_clusters:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_clusters={self.n_clusters}.")
        if blocks.n_rows > MOST_ROWS and not self._precomputed:
            raise ValueError(
                f"KMedoids holds the distances of all pairs of rows, and {blocks.n_rows:,} rows are more than the "
                f"{MOST_ROWS:,} it takes: fit a sample of them and predict the others."
            )
        rows, weight, numbers = load(blocks)
        if self._precomputed:
            D, first, weights = self._square(rows, numbers, blocks.n_table), np.arange(len(rows)), weight
        else:
            first, weights = merged(rows, weight)
            D = distance_matrix(rows[first], self.metric, blocks.dtype)
        n_runs = self.n_init if isinstance(self.init, str) and self.init != "build" else 1
        best = None
        with self._fitting(blocks, n_runs, X=X, y=y) as fitting:
            for rng in spawn(generator(self.random_state), n_runs):
                start = self._start(D, weights, rows, numbers, rng)
                run = self._run(D, weights, start, fitting, lambda chosen: self._attributes(rows, numbers, first[chosen]))
                if best is None or (run.n_iter and run.trace[-1] < best.trace[-1]):  # an interrupted run may have no trace
                    best = run
                if run.reason in ("interrupted", "callback"):
                    break
            self._keep(X, blocks, best, rows, weight, numbers, first)
        return self

    def _square(self, rows, numbers, n_rows):
        """Validate precomputed distances; return those of the rows of positive weight, candidates first."""
        if rows.shape[1] != n_rows:
            raise ValueError(
                f"Precomputed distances need one column for each row, and X has {n_rows} rows and {rows.shape[1]} columns."
            )
        D = rows if len(numbers) == rows.shape[1] else np.ascontiguousarray(rows[:, numbers])
        if D.min() < 0:
            raise ValueError(
                "Precomputed distances must not be negative; similarities s become distances by, say, s.max() - s."
            )
        return D if swaps.is_symmetric(D) else np.ascontiguousarray(D.T)

    def _start(self, D, weight, rows, numbers, rng):
        """Choose the starting medoids among the distinct rows; where there are too few distinct rows, all of them."""
        k = min(self.n_clusters, len(D))
        medoids, given = np.zeros(k, dtype=np.int64), 0
        if not isinstance(self.init, str):
            asked = np.asarray(self.init)
            if asked.shape != (self.n_clusters,) or asked.dtype.kind not in "iu" or len(set(asked.tolist())) < len(asked):
                raise ValueError(f"init must hold the numbers of {self.n_clusters} different rows.")
            if not np.isin(asked, numbers).all():
                raise ValueError("init names a row that does not exist or whose weight is zero.")
            places = np.searchsorted(numbers, asked)
            if not self._precomputed:  # equal rows are one candidate; what is missing is filled in greedily
                _, group = np.unique(rows, axis=0, return_inverse=True)
                places = np.array(list(dict.fromkeys(group.ravel()[places].tolist())))
            given = len(places)
            medoids[:given] = places
        elif self.init == "random":
            given = k
            medoids[:] = rng.choice(len(D), k, replace=False, p=weight / weight.sum())
        elif self.init == "k-medoids++":
            given = k
            medoids[:] = spread_out(D.__getitem__, weight, k, rng)
        swaps.build(D, weight, medoids, given)
        return medoids

    def _run(self, D, weight, start, fitting, fitted):
        """Pass over the candidates until none gains."""

        def step(state):
            medoids, last = state[0].copy(), state[1]
            if len(medoids) == 1:
                return (medoids, -1), swaps.one_medoid(D, weight, medoids), 0.0
            loss, last = swaps.swap_pass(D, weight, medoids, last)
            return (medoids, last), loss, float(last >= 0)

        return fitting.iterate(
            step, (start, len(D)), tol=0.0, monotone="down", name="k-medoids", fitted=lambda state: fitted(state[0])
        )

    def _attributes(self, rows, numbers, chosen):
        """Turn the places of medoids among the loaded rows into fitted attributes; copies fill up what distinct rows cannot."""
        spare = np.setdiff1d(np.arange(len(rows)), chosen)[: self.n_clusters - len(chosen)]
        chosen = np.concatenate([chosen, spare])
        attributes = {"medoid_indices_": numbers[chosen]}
        if not self._precomputed:
            attributes["cluster_centers_"] = rows[chosen]
        return attributes

    def _keep(self, X, blocks, run, rows, weight, numbers, first):
        chosen = first[run.state[0]]
        for name, value in self._attributes(rows, numbers, chosen).items():
            setattr(self, name, value)
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        self.inertia_ = loss_block(rows, weight, self._centers(), self.metric)
        whole = blocks if blocks.complete else self._blocks(X, reset=False, order="C")
        self.labels_ = whole.map(label_block, self._centers(), self.metric)
        if len(chosen) < self.n_clusters:
            warnings.warn(
                f"Only {len(chosen)} of {self.n_clusters} clusters have rows: no more rows are distinct.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _centers(self):
        """What distances are taken from: the centers, or the columns of precomputed distances."""
        return self.medoid_indices_ if self._precomputed else self.cluster_centers_

    def certify(self, X, y=None, sample_weight=None):
        """Prove by enumeration that no swap gains, and bound how far the loss is from the least that any medoids have."""
        rows, weight, numbers = load(self._fitted_blocks(X, sample_weight))
        centers, k = self._centers(), len(self.medoid_indices_)
        to = distances(rows, centers, self.metric)
        near = to.min(axis=1)
        loss = float(weight @ near)
        floor = np.sqrt(np.finfo(self._floats()).eps) * float(weight @ to.max(axis=1))  # no less means anything
        scale = max(loss, floor, TINY)
        excess = max(loss - self._bound(rows, weight, numbers, to, loss), 0.0) / scale
        gain = max(-self._best_change(rows, weight, numbers, to, loss), 0.0) / scale
        kind = "proof" if excess <= GAP_LIMIT else "local"  # where the bound is met, the medoids are the best of all
        wrong = wrong_labels(self._fitted_blocks(X), self.labels_, centers, self.metric)
        return Certificate(
            self._are_rows(rows, numbers),
            same(self.inertia_, loss, "inertia", "sum of distances to the nearest medoid", floor=floor),
            Check("labels", wrong, 1e-9, "proof", "every row has the label of its nearest medoid"),
            Check("swap", gain, GAP_LIMIT, kind, "no other row in place of a medoid lowers the sum by more"),
            Check("excess", excess, np.inf, "proof", f"no {k} medoids have a sum smaller by more than this share"),
            subject=repr(self),
        )

    def _floats(self):
        return np.float64 if self._precomputed else self.cluster_centers_.dtype

    def _are_rows(self, rows, numbers):
        """Check that the medoids are different rows of positive weight, and the centers those rows."""
        claim = "every center is a row of the table"
        indices = np.asarray(self.medoid_indices_)
        places = np.minimum(np.searchsorted(numbers, indices), len(numbers) - 1)
        if not np.array_equal(numbers[places], indices) or len(np.unique(indices)) < len(indices):
            return Check("medoids", np.inf, GAP_LIMIT, "proof", claim)
        return (
            same(0.0, 0.0, "medoids", claim)
            if self._precomputed
            else same(self.cluster_centers_, rows[places], "medoids", claim)
        )

    def _candidates(self, rows, numbers, part):
        """Give the distances of all rows from some of them as centers, a line for each of these."""
        columns = numbers[part] if self._precomputed else rows[part]
        return np.ascontiguousarray(distances(rows, columns, self.metric).T)

    def _best_change(self, rows, weight, numbers, to, loss):
        """Find the least change of the loss by any swap; candidates go by in slices, so that n² distances are never held."""
        k, candidates = to.shape[1], (self._candidates(rows, numbers, part) for part in chunks(len(rows)))
        if k == 1:
            return min(float((D @ weight).min()) for D in candidates) - loss
        first, near, _, far = swaps.two_nearest(to)
        return min(swaps.best_change(D, weight, first, near, far, k) for D in candidates)

    def _bound(self, rows, weight, numbers, to, loss):
        """Bound the loss of any medoids from below: zero, or for few rows the Lagrangean bound."""
        if len(rows) > RELAXED or loss == 0.0:
            return 0.0
        D = self._candidates(rows, numbers, slice(None))
        if to.shape[1] == 1:
            return float((D @ weight).min())
        return swaps.relaxed_bound(D, weight, swaps.two_nearest(to), loss, to.shape[1])
