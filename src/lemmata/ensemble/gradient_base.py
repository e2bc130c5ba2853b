"""What both estimators of gradient boosting share: parameters, the fit in stages, early stopping, scores and their stages."""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import Iterative
from lemmata.core.random import generator
from lemmata.ensemble.gradient_certificate import certificate
from lemmata.ensemble.gradient_histogram import new_codes
from lemmata.ensemble.gradient_stages import Limits, Rule, Stages, as_arrays
from lemmata.tree.base import check_sizes, signs_of
from lemmata.tree.bins import learn_bins
from lemmata.tree.columns import CategoricalColumns
from lemmata.tree.nodes import Tree, Trees

ROWS_TO_STOP_EARLY = 10_000


def held_out(y, n_classes, fraction, seed):
    """Draw the rows that early stopping watches: 1 for those, the same share of every class but never all, 0 for the rest."""
    rng, out = np.random.default_rng([seed, 2**32]), np.zeros(len(y), bool)
    for k in range(max(n_classes, 1)):
        rows = np.flatnonzero(y == k) if n_classes > 1 else np.arange(len(y))
        out[rng.permutation(rows)[: min(round(fraction * len(rows)), len(rows) - 1)]] = True
    return out


def should_stop(scores, patience, tol):
    """Tell whether none of the last scores is better by `tol` than the one before them."""
    return len(scores) > patience and max(scores[-patience:]) <= scores[-patience - 1] + tol


def score_block(X, *rest):
    """Sum the values of a block's leaves over all trees."""
    return rest[-1].total(X.toarray() if hasattr(X, "toarray") else X)


class GradientBoosting(CategoricalColumns, Iterative):
    """What both estimators share: parameters, the fit, scores and their stages."""

    _shared_constraints = {
        "step": [StrOptions({"newton", "line-search"})],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "l2_regularization": [Interval(Real, 0, None, closed="left")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "max_bins": [Interval(Integral, 2, 255, closed="both")],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
        "monotonic_cst": ["array-like", dict, None],
        "early_stopping": [StrOptions({"auto"}), "boolean"],
        "scoring": [StrOptions({"loss"})],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "subsample": [Interval(Real, 0, 1, closed="right")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def _boost(self, X, y, weight, blocks, asked):
        """Fit to rows in memory, y as numbers."""
        check_sizes(y, weight)
        self._seed = int(generator(self.random_state).integers(2**31))
        n = len(y)
        watched = self._watched(y)
        used = weight
        if watched.any():
            used = np.where(watched, 0.0, 1.0 if weight is None else weight)
        training = (y, None) if used is None else (y[used > 0], used[used > 0])
        self._learn_loss(*training)
        loss = self._loss
        self.init_ = loss.best_constant(*training)
        bins = learn_bins(X, weight, self.max_bins, self.is_categorical_)
        codes = new_codes(bins.codes(X, -(-X.shape[1] // 8) * 8), bins, self._trends())
        state = (np.repeat(self.init_[:, None], n, axis=1), (), np.empty((0, 2)))
        with Stages(codes, bins, self._limits(used), self._rule(), y, used, state[0]) as stages:
            run = self._run(stages, state, watched, weight, blocks, asked)
        _, trees, scores = run.state
        if not trees:
            raise KeyboardInterrupt("interrupted before the first stage")
        self.converged_, self.trace_ = run.converged, run.trace
        self.n_iter_ = len(trees) // loss.n_scores
        self.trees_ = Trees.of([Tree(*arrays) for arrays in trees])
        self.train_score_ = scores[:, 0]
        self._validation_score = scores[:, 1] if watched.any() else np.empty(0)
        return self

    def _run(self, stages, state, watched, weight, blocks, asked):
        """Make stages until there are enough, or until the held-out rows say so."""
        stops, loss = self._stops_early(stages.n), self._loss
        rows = np.flatnonzero(watched)
        out = stages.y[rows], None if weight is None else weight[rows]
        current = [stages.F]

        def marks():
            held = np.nan
            if len(rows):
                held = -loss.total(out[0], stages.F[:, rows], out[1]) / (len(rows) if out[1] is None else out[1].sum())
            return np.array([[-stages.loss, held]])

        def step(state):
            F, trees, scores = state
            if F is not current[0]:  # resumed from a checkpoint
                stages.restart(F)
                current[0] = stages.F
            if not len(scores):
                scores = marks()
            new = stages.stage(len(trees) // loss.n_scores)
            trees = (*trees, *(as_arrays(tree) for tree in new))
            scores = np.concatenate([scores, marks()])
            watch = scores[:, 1 if len(rows) else 0].tolist()
            done = len(scores) > self.max_iter or (stops and should_stop(watch, self.n_iter_no_change, self.tol))
            return (stages.F, trees, scores), stages.loss, 0.0 if done else np.inf

        # Newton's step may overshoot in theory; the others go down by construction.
        sure = (loss.flat or self.step == "line-search") and self.learning_rate <= 1 and self.subsample == 1
        with self._fitting(blocks, **asked) as fitting:
            return fitting.iterate(
                step,
                state,
                tol=0.0,
                monotone="down" if sure and self.monotonic_cst is None else None,
                rounding=1e-12,
                name=type(self).__name__,
                fitted=self._fitted_attributes,
            )

    def _fitted_attributes(self, state):
        trees = Trees.of([Tree(*arrays) for arrays in state[1]])
        return {"trees_": trees, "train_score_": state[2][:, 0], "n_iter_": len(trees) // self._loss.n_scores}

    def _stops_early(self, n):
        return n > ROWS_TO_STOP_EARLY if self.early_stopping == "auto" else bool(self.early_stopping)

    def _watched(self, y):
        """Mark the rows held out for early stopping."""
        if not self._stops_early(len(y)) or self.validation_fraction is None:
            return np.zeros(len(y), bool)
        return held_out(y, self._n_classes(), self.validation_fraction, self._seed)

    def _limits(self, weight):
        heaviest = 1.0 if weight is None else float(weight.max())
        return Limits(
            np.iinfo(np.int64).max if self.max_leaf_nodes is None else self.max_leaf_nodes,
            np.inf if self.max_depth is None else self.max_depth,
            float(self.min_samples_leaf),
            float(self.l2_regularization),
            float(self.max_features),
            max(2.0, 2 * self.min_samples_leaf * (1 - 1e-9) / heaviest),
        )

    def _rule(self):
        return Rule(self._loss, self.step, float(self.learning_rate), float(self.subsample), self._seed)

    def _trends(self):
        """Turn monotonic_cst into 1, −1 or 0 for each column."""
        names = list(getattr(self, "feature_names_in_", [])) or None
        trends = signs_of(self.monotonic_cst, self.n_features_in_, self.is_categorical_, names)
        if trends is None:
            return np.zeros(self.n_features_in_, np.int64)
        if self._loss.quantile is not None:
            raise ValueError(f"monotonic_cst needs a loss with a second derivative, and {self.loss!r} has none.")
        if self._loss.n_scores > 1:
            raise ValueError("monotonic_cst needs one score: two classes or a number.")
        return trends

    def _n_classes(self):
        return len(self.classes_) if hasattr(self, "classes_") else 1

    def _scores(self, X, trees=None):
        """Return the scores of rows, (rows, scores)."""
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), reset=False, order="C")
        return self.init_ + blocks.map(score_block, (self.trees_ if trees is None else trees).descent()), blocks.dtype

    def _staged(self, X):
        """Give the scores of rows after each stage."""
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), reset=False, order="C")
        scores, k = np.repeat(self.init_[None], blocks.n_rows, axis=0), self._loss.n_scores
        for t in range(len(self.trees_) // k):
            scores = scores + blocks.map(score_block, Trees.of([self.trees_[t * k + i] for i in range(k)]).descent())
            yield scores, blocks.dtype

    @property
    def validation_score_(self):
        """Minus the mean loss on held-out rows, before the first stage and after each; empty without."""
        return self._validation_score

    @property
    def feature_importances_(self):
        """Share of each column in what all splits gain."""
        check_is_fitted(self)
        return self.trees_.nodes.importances(self.n_features_in_)

    def _certify(self, X, y, weight):
        return certificate(self, X, y, weight, self._watched(y), self._limits(weight), self._rule(), self._trends())
