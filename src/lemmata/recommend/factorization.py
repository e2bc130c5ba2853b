"""`ProbabilisticMatrixFactorization`: what a user would say of an item, from the ratings that there are.

The model and its maximum a posteriori are those of `alternating`; a cell that was not rated has no part in it. The
certificate (`optimality`) recomputes every residual from the ratings: each user and each item solves its ridge problem; mean
and noise variance are what the ratings say; and a bound by the nuclear norm tells how far at most the objective is from the
least that any number of factors could reach. Predictions, intervals and recommendations are in `predictions`.
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.data import is_dask
from lemmata.core.estimator import Iterative, Regressor, as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.recommend.alternating import (
    NEGLIGIBLE,
    QUIETEST,
    Model,
    Unknown,
    begin,
    coordinate_block,
    implicit_rows,
    iteration,
    moments_of,
    ridge_block,
    strength,
)
from lemmata.recommend.optimality import certificate
from lemmata.recommend.predictions import Predictions
from lemmata.recommend.ratings import learn, read
from lemmata.recommend.shards import in_memory, on_dask, summed

QUIET = 0.1  # that share to begin with: under too much noise the prior takes factors away, and none comes back
NOTHING = 1e-14  # share of the mean rating that a bias of zero may have by rounding


class ProbabilisticMatrixFactorization(Predictions, Iterative, Regressor):
    """Fit users and items with factors whose products, plus biases, are the expected ratings.

    Ratings are given as pairs of a user and an item with the ratings as `y`; as triples (an array, a frame, Parquet paths, a
    Dask frame); or as a sparse matrix of users × items whose stored entries, zeros too, are the ratings. Users and items are
    whole numbers or text. A pair that comes twice was rated twice; a weight means repetition.

    Parameters
    ----------
    n_components : Number of factors.
    noise_variance : Variance σ² of a rating about what is expected of it, or "estimate": then σ² = Σ e²/(N − γ), γ the
        number of parameters that the ratings determine. Implicit feedback takes 1 for "estimate".
    prior_precision : Inverse variance λ of every factor and bias before anything is seen, or (that of users, that of items); in
        units of 1/rating. The ridge penalty is λσ². With 0 every user or item needs as many ratings as it has parameters.
    biases : Whether the mean rating and a bias for each user and item are part of the model; implicit feedback has none.
    implicit : Whether numbers are amounts of attention (plays, clicks, hours; at least 0) rather than opinions: whatever has an
        amount r counts as liked, with confidence 1 + confidence·r, and everything else as not liked, with confidence 1.
    confidence : The factor α in that.
    solver : "als" solves the ridge problem of a row exactly, "coordinate" improves one parameter after another.
    scale_by_counts : Whether λ is multiplied by the number of ratings of its user or item (Zhou et al., AAIM 2008).
    max_iter : Sweeps over users and items at most.
    tol : Stop when a sweep moves the items by no more than this share of them, measured by what it does to the ratings.
    acceleration : Whether sweeps precondition nonlinear conjugate gradients; without, they are all there is.
    keep_ratings : Whether to keep who rated what, which `recommend` leaves out and `predict_dist` needs.
    columns : Names of the columns of users, items and ratings in frames and files; of a frame with two or three other columns
        their order counts.
    random_state : Seed of the factors to begin with. The same seed gives the same bits for any number of threads and any home.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    users_, items_ : Ids, sorted.
    user_factors_, item_factors_ : (n_users, n_components) and (n_items, n_components), turned to their principal axes.
    user_biases_, item_biases_ : (n_users,) and (n_items,); 0 without biases.
    mean_ : Mean rating; 0 without biases.
    noise_variance_ : σ², given or estimated.
    seen_ : Sparse (n_users, n_items): how often a pair was rated, or αr; None unless ratings are kept.
    n_iter_ : Sweeps.
    trace_ : Minus the log posterior density after each sweep, up to a constant (and under the σ² of that sweep).
    converged_ : Whether the sweeps met tol.

    Examples
    --------
    >>> pairs = [("ann", "tea"), ("ann", "coffee"), ("bob", "tea"), ("bob", "cocoa"), ("cat", "coffee"), ("cat", "cocoa")]
    >>> model = ProbabilisticMatrixFactorization(1, prior_precision=0.5, noise_variance=0.1, random_state=0)
    >>> model.fit(pairs, [5.0, 1.0, 4.0, 2.0, 1.0, 2.0]).predict([("bob", "coffee"), ("cat", "tea"), ("dan", "tea")]).round(1)
    array([1. , 3.7, 3.6])
    >>> model.recommend("bob", n=1)
    (array(['coffee'], dtype='<U6'), array([0.98]))
    >>> model.certify(pairs, [5.0, 1.0, 4.0, 2.0, 1.0, 2.0]).holds
    True
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "noise_variance": [StrOptions({"estimate"}), Interval(Real, 0, None, closed="neither")],
        "prior_precision": [Interval(Real, 0, None, closed="left"), "array-like"],
        "biases": ["boolean"],
        "implicit": ["boolean"],
        "confidence": [Interval(Real, 0, None, closed="neither")],
        "solver": [StrOptions({"als", "coordinate"})],
        "scale_by_counts": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "acceleration": ["boolean"],
        "keep_ratings": ["boolean"],
        "columns": ["array-like"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=10,
        *,
        noise_variance="estimate",
        prior_precision=10.0,
        biases=True,
        implicit=False,
        confidence=40.0,
        solver="als",
        scale_by_counts=False,
        max_iter=1000,
        tol=1e-5,
        acceleration=True,
        keep_ratings=True,
        columns=("user", "item", "rating"),
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.noise_variance = noise_variance
        self.prior_precision = prior_precision
        self.biases = biases
        self.implicit = implicit
        self.confidence = confidence
        self.solver = solver
        self.scale_by_counts = scale_by_counts
        self.max_iter = max_iter
        self.tol = tol
        self.acceleration = acceleration
        self.keep_ratings = keep_ratings
        self.columns = columns
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        """Say that rows are pairs of ids rather than numbers, and that ratings may come within X."""
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = tags.input_tags.string = tags.input_tags.categorical = True
        tags.target_tags.required = False
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to ratings: pairs X with ratings y, triples X, or a sparse matrix X of users × items."""
        precision = self._precision()
        if is_dask(X):
            ratings, users, items = on_dask(X, y, sample_weight, tuple(self.columns))
        else:
            ratings = learn(read(X, y, sample_weight, columns=tuple(self.columns)))
            users, items = in_memory(ratings)
        if self.implicit:
            amounts = partial(implicit_rows, confidence=self.confidence)
            users, items = users.changed(amounts), items.changed(amounts)
        with serial_blas():
            model, start, unknown = self._begin(ratings, users, items, precision)
            with self._fitting(users, X=X, y=y) as fitting:
                run = fitting.iterate(
                    partial(iteration, model, self.tol, unknown, self.acceleration),
                    start,
                    tol=self.tol,
                    monotone="down",
                    rounding=0.0 if unknown is None else np.inf,  # another noise variance has another objective
                    name="matrix factorization",
                    fitted=lambda state: self._attributes(state, ratings, model),
                )
        for name, value in self._attributes(run.state, ratings, model).items():
            setattr(self, name, value)
        self.seen_ = self._seen(users, items) if self.keep_ratings else None
        self.n_iter_, self.trace_, self.converged_ = run.n_iter, run.trace, run.converged
        return self

    def _precision(self):
        """Return λ of users and of items."""
        given = np.asarray(self.prior_precision, dtype=float)
        if given.shape not in ((), (2,)) or not np.isfinite(given).all() or (given < 0).any():
            raise ValueError(
                f"prior_precision must be a number of at least 0, or two: of users and of items; got {self.prior_precision!r}."
            )
        if self.implicit and self.scale_by_counts:
            raise ValueError("scale_by_counts is for explicit ratings: with implicit feedback every cell counts.")
        if self.implicit and not given.all():
            raise ValueError("prior_precision must be positive with implicit feedback.")
        if len(self.columns) != 3 or not all(isinstance(name, str) for name in self.columns):
            raise ValueError(f"columns must name those of users, items and ratings; got {self.columns!r}.")
        return tuple(np.broadcast_to(given, 2).tolist())

    def _begin(self, ratings, users, items, precision):
        """Return the model, the state to begin with, and what is unknown of the noise."""
        moments = moments_of(users, items)
        biases = self.biases and not self.implicit
        counts = [weight if self.scale_by_counts else np.ones(len(weight)) for weight in moments[:2]]
        for side, ids, own, name in zip((users, items), ratings[:2], precision, ("user", "item"), strict=True):
            if own == 0:
                self._enough(side, ids, name, self.n_components + biases)
        mean = moments.mean if biases else 0.0
        variance = moments.variance + (moments.mean - mean) ** 2
        model = Model(
            users,
            items,
            precision[0] * counts[0],
            precision[1] * counts[1],
            mean,
            biases,
            self.implicit,
            ridge_block if self.solver == "als" else coordinate_block,
            -0.5 * float(users.map(entries_block)[1].sum()) if self.implicit else 0.0,
            np.sqrt(variance * moments.users.sum()),
        )
        unknown, noise = None, self.noise_variance
        if self.implicit:
            variance, noise = 1.0, 1.0 if noise == "estimate" else noise
        elif noise == "estimate":
            unknown = Unknown(float(moments.users.sum()), QUIETEST * variance or 1.0)
            noise = max(QUIET * variance, unknown.floor)
        start = begin(model, self.n_components, float(noise), np.sqrt(variance), generator(self.random_state))
        return model, start, unknown

    def _enough(self, side, ids, name, width):
        """Refuse users or items with fewer ratings than parameters, where there is no prior."""
        number, _ = side.map(entries_block)
        if number.min() < width:
            few = int(number.argmin())
            raise ValueError(
                f"With prior_precision=0 every {name} needs at least {width} ratings to determine as many parameters, and "
                f"{name} {ids[few]!s} has {int(number[few])}; take prior_precision > 0 or fewer components."
            )

    def _attributes(self, state, ratings, model):
        """Turn a state into fitted attributes: factors along their principal axes, the strongest first."""
        k, dtype = self.n_components, ratings.dtype
        users, items = (side.copy() for side in state.fit)
        if strength(model, state.fit) <= NEGLIGIBLE * model.scale:  # the prior has taken them all
            users[:, :k] = items[:, :k] = 0.0
        for side in (users[:, k:], items[:, k:]):
            if np.abs(side).max(initial=0.0) <= NOTHING * (abs(model.mean) + model.scale):
                side[:] = 0.0
        _, axes = np.linalg.eigh(users[:, :k].T @ users[:, :k] + items[:, :k].T @ items[:, :k])
        axes = axes[:, ::-1]
        largest = np.abs(items[:, :k] @ axes).argmax(axis=0)
        axes = axes * np.where((items[:, :k] @ axes)[largest, np.arange(k)] < 0, -1.0, 1.0)
        biased = users.shape[1] > k
        return {
            "users_": ratings.users,
            "items_": ratings.items,
            "user_factors_": as_output(users[:, :k] @ axes, dtype),
            "item_factors_": as_output(items[:, :k] @ axes, dtype),
            "user_biases_": as_output(users[:, k].copy() if biased else np.zeros(len(users)), dtype),
            "item_biases_": as_output(items[:, k].copy() if biased else np.zeros(len(items)), dtype),
            "mean_": model.mean,
            "noise_variance_": state.noise,
        }

    def _seen(self, users, items):
        """Keep who rated what, and how often."""
        from scipy.sparse import csr_array

        rows = users.whole()
        rows = summed(rows, rows.weights if len(rows.weights) else np.ones(len(rows.values)))
        return csr_array((rows.values, rows.indices, rows.indptr), shape=(users.n_rows, items.n_rows))

    def certify(self, X, y=None, sample_weight=None):
        """Prove that every user and item solves its ridge problem, and bound what other factors could gain."""
        check_is_fitted(self)
        triples = self._triples(X, y, sample_weight)
        with serial_blas():
            return certificate(self, triples, self._precision(), repr(self))


def entries_block(first, indptr, indices, values, weights):
    """Count the entries of each row, and add up their values."""
    row = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return np.diff(indptr), np.bincount(row, values, minlength=len(indptr) - 1)
