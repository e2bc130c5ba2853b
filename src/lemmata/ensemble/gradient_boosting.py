"""Gradient boosting: a sum of small trees, each a step down the gradient of the loss.

The score f(x) = c + ν Σ_t tree_t(x) begins with the best constant c; tree t is grown on the derivatives of Σ sᵢℓ(yᵢ, f(xᵢ)) at
the scores so far, and its leaves take Newton's step or the best multiple of the gradient's own (`gradient_stages`). Columns are
cut into at most 255 bins (`lemmata.tree.bins`), gradients are summed in integers (`gradient_histogram`), and the trees are the
same in every bit for any number of threads. Losses: `gradient_losses`. Certificate: `gradient_certificate`.

References: Friedman, Ann. Stat. 29 (2001) and Comput. Stat. Data Anal. 38 (2002); Chen & Guestrin, KDD 2016.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.class_weight import class_factors
from lemmata.core.config import n_threads
from lemmata.core.estimator import Classifier, Iterative, Regressor, as_output
from lemmata.core.random import generator
from lemmata.ensemble.crew import Crew
from lemmata.ensemble.gradient_certificate import certificate
from lemmata.ensemble.gradient_losses import Loss, weighted_quantile
from lemmata.ensemble.gradient_stages import Limits, Rule, Stages, as_arrays
from lemmata.tree.bins import learn_bins
from lemmata.tree.columns import CategoricalColumns
from lemmata.tree.nodes import Tree, Trees

OF_RESIDUALS = 0.9  # Huber's δ, if it is not given, is this quantile of |y − median|
ROWS_TO_STOP_EARLY = 10_000


def held_out(y, n_classes, fraction, seed):
    """Draw the rows that early stopping watches: 1 for those, the same share of every class, 0 for the rest."""
    rng, out = np.random.default_rng([seed, 2**32]), np.zeros(len(y), bool)
    for k in range(max(n_classes, 1)):
        rows = np.flatnonzero(y == k) if n_classes > 1 else np.arange(len(y))
        out[rng.permutation(rows)[: round(fraction * len(rows))]] = True
    return out


def should_stop(scores, patience, tol):
    """Tell whether none of the last scores is better by `tol` than the one before them."""
    return len(scores) > patience and max(scores[-patience:]) <= scores[-patience - 1] + tol


def score_block(X, *rest):
    """Sum the values of a block's leaves over all trees."""
    return rest[-1].total(X.toarray() if hasattr(X, "toarray") else X)


class _GradientBoosting(CategoricalColumns, Iterative):
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _boost(self, X, y, weight, blocks, asked):
        """Fit to rows in memory, y as numbers."""
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
        crew = Crew(max(1, min(n_threads(), -(-n // 2048))))
        state = (np.repeat(self.init_[:, None], n, axis=1), (), np.empty((0, 2)))

        def lead():
            codes = bins.codes(X, -(-X.shape[1] // 8) * 8)
            stages = Stages(crew, codes, bins, self._trends(), self._limits(used), self._rule(), y, used, state[0])
            return self._run(stages, state, watched, weight, blocks, asked)

        run = crew.led(lead)
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
        """Read monotonic_cst: an array, or a dict of names."""
        given, d = self.monotonic_cst, self.n_features_in_
        if given is None:
            return np.zeros(d, np.int64)
        if isinstance(given, dict):
            names = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)]))
            strange = [name for name in given if name not in names]
            if strange:
                raise ValueError(f"monotonic_cst names {strange[0]!r}, which is not a column of X.")
            trends = np.array([given.get(name, 0) for name in names])
        else:
            trends = np.asarray(given)
        if trends.shape != (d,) or not np.isin(trends, (-1, 0, 1)).all():
            raise ValueError(f"monotonic_cst must hold -1, 0 or 1 for each of the {d} columns.")
        if trends.any():
            if self._loss.quantile is not None:
                raise ValueError(f"monotonic_cst needs a loss with a second derivative, and {self.loss!r} has none.")
            if self._loss.n_scores > 1:
                raise ValueError("monotonic_cst needs one score: two classes or a number.")
            if self.is_categorical_ is not None and trends[self.is_categorical_].any():
                raise ValueError("monotonic_cst asks a categorical column, which has no order, to be monotone.")
        return trends.astype(np.int64)

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
        for t in range(self.n_iter_):
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


class GradientBoostingRegressor(_GradientBoosting, Regressor):
    """Predict numbers by a sum of small trees, each a step down the gradient of the loss.

    Parameters
    ----------
    loss : "squared_error", "absolute_error", "quantile" or "huber"; see `gradient_losses`.
    quantile : Of the loss "quantile".
    delta : Of the loss "huber": where it turns from a square into a line. Default: the 0.9-quantile of |y − median|.
    step : "newton" for Newton's step in each leaf, or "line-search" for the best multiple of the tree that fits the negative
        gradient. Leaves of losses without a second derivative take their best constant either way.
    learning_rate : Share of each step that is taken.
    max_iter : Number of stages; at most, with early stopping.
    max_leaf_nodes : Most leaves of a tree, None for any number.
    max_depth : Most splits on a path, None for any number.
    min_samples_leaf : Least rows of a leaf, by weight: a weight means repetition.
    l2_regularization : λ of the leaf values −Σg/(Σh + λ).
    max_features : Share of the columns drawn at each node.
    max_bins : Most bins of a column; missing values have one more.
    categorical_features : Columns split into sets of categories: "from_dtype" for text and categorical columns, or a mask,
        numbers, names, or None. At most 255 categories.
    monotonic_cst : 1, −1 or 0 for each column, or a dict of names: the prediction must rise, fall, or may do both along it.
    early_stopping : Whether to stop when held-out rows see no gain; "auto" from 10,000 rows on.
    scoring : "loss".
    validation_fraction : Share of rows held out to stop early; None stops by the training loss.
    n_iter_no_change, tol : Stop when none of so many stages is better by tol than the one before them.
    subsample : Share of rows drawn for each stage.
    random_state : Seed of rows and columns drawn. The same seed gives the same bits for any number of threads.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    init_ : The best constant, with which the stages begin.
    trees_ : The trees, `lemmata.tree.nodes.Trees`, leaf values multiplied by the learning rate.
    n_iter_ : Number of stages.
    converged_ : Whether the fit came to its end, rather than to Ctrl-C.
    trace_ : Mean training loss after each stage.
    train_score_ : (n_iter_ + 1,), minus the mean loss before the first stage and after each.
    validation_score_ : The same on held-out rows, empty without.
    feature_importances_ : Share of each column in what all splits gain.
    delta_ : δ of the Huber loss.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0]], [1.0, 2.0, 6.0]
    >>> model = GradientBoostingRegressor(max_iter=1, learning_rate=1.0, max_leaf_nodes=2, min_samples_leaf=1).fit(X, y)
    >>> model.init_, model.predict(X)
    (array([3.]), array([1.5, 1.5, 6. ]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "loss": [StrOptions({"squared_error", "absolute_error", "quantile", "huber"})],
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "delta": [Interval(Real, 0, None, closed="neither"), None],
        **_GradientBoosting._shared_constraints,
    }

    def __init__(
        self,
        loss="squared_error",
        *,
        quantile=None,
        delta=None,
        step="newton",
        learning_rate=0.1,
        max_iter=100,
        max_leaf_nodes=31,
        max_depth=None,
        min_samples_leaf=20,
        l2_regularization=0.0,
        max_features=1.0,
        max_bins=255,
        categorical_features="from_dtype",
        monotonic_cst=None,
        early_stopping="auto",
        scoring="loss",
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-7,
        subsample=1.0,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.loss = loss
        self.quantile = quantile
        self.delta = delta
        self.step = step
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _learn_loss(self, y, weight):
        if self.loss == "quantile" and self.quantile is None:
            raise ValueError("loss='quantile' needs the parameter quantile, a number between 0 and 1.")
        vars(self).pop("delta_", None)
        if self.loss == "huber":
            spread = weighted_quantile(np.abs(y - weighted_quantile(y, weight, 0.5)), weight, OF_RESIDUALS)
            self.delta_ = float(self.delta or spread or 1.0)

    @property
    def _loss(self):
        return Loss(self.loss, quantile=self.quantile, delta=getattr(self, "delta_", None))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and numbers y; a weight means repetition. X may hold NaN, and may be a stored table."""
        blocks = self._blocks(self._encoded(X, reset=True), y, sample_weight, reset=True, order="C")
        rows, target, weight = blocks.whole()
        return self._boost(rows, np.asarray(target, dtype=float), weight, blocks, {"X": X, "y": y})

    def predict(self, X):
        """Predict numbers."""
        scores, dtype = self._scores(X)
        return as_output(scores[:, 0], dtype)

    def staged_predict(self, X):
        """Predict after each stage, one array at a time."""
        for scores, dtype in self._staged(X):
            yield as_output(scores[:, 0], dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Replay the stages from the rows: constant, gradients, splits, leaf values and losses."""
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), y, sample_weight, reset=False, order="C")
        rows, target, weight = blocks.whole()
        return self._certify(rows, np.asarray(target, dtype=float), weight)


class GradientBoostingClassifier(_GradientBoosting, Classifier):
    """Predict classes by a sum of small trees, each a step down the gradient of the loss.

    Parameters
    ----------
    loss : "log_loss" (Bernoulli deviance; softmax for more than two classes) or "exponential" (two classes).
    step : As in `GradientBoostingRegressor`, like all that is not listed here.
    learning_rate : Share of each step that is taken.
    max_iter : Number of stages; each has one tree, or one for each of more than two classes.
    max_leaf_nodes, max_depth, min_samples_leaf, l2_regularization, max_features, max_bins : What the trees may be.
    categorical_features, monotonic_cst : What the columns are.
    early_stopping, scoring, validation_fraction, n_iter_no_change, tol : When to stop.
    subsample : Share of rows drawn for each stage.
    random_state : Seed. The same seed gives the same bits for any number of threads.
    verbose : 1 shows a progress bar.
    class_weight : Factors of the weights of classes: a dict, "balanced", or None.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : The labels.
    init_ : The best constant scores, with which the stages begin.
    trees_ : The trees, `lemmata.tree.nodes.Trees`, those of a stage side by side, values multiplied by the learning rate.
    n_iter_ : Number of stages.
    converged_ : Whether the fit came to its end, rather than to Ctrl-C.
    trace_ : Mean training loss after each stage.
    train_score_ : (n_iter_ + 1,), minus the mean loss before the first stage and after each.
    validation_score_ : The same on held-out rows, empty without.
    feature_importances_ : Share of each column in what all splits gain.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"]
    >>> model = GradientBoostingClassifier(min_samples_leaf=1, max_iter=20).fit(X, y)
    >>> model.predict([[0.5], [2.5]]), model.predict_proba([[2.5]]).round(2)
    (array(['no', 'yes'], dtype='<U3'), array([[0.06, 0.94]]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "loss": [StrOptions({"log_loss", "exponential"})],
        **_GradientBoosting._shared_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        loss="log_loss",
        *,
        step="newton",
        learning_rate=0.1,
        max_iter=100,
        max_leaf_nodes=31,
        max_depth=None,
        min_samples_leaf=20,
        l2_regularization=0.0,
        max_features=1.0,
        max_bins=255,
        categorical_features="from_dtype",
        monotonic_cst=None,
        early_stopping="auto",
        scoring="loss",
        validation_fraction=0.1,
        n_iter_no_change=10,
        tol=1e-7,
        subsample=1.0,
        random_state=None,
        verbose=0,
        class_weight=None,
        checkpoint=None,
    ):
        self.loss = loss
        self.step = step
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.monotonic_cst = monotonic_cst
        self.early_stopping = early_stopping
        self.scoring = scoring
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.subsample = subsample
        self.random_state = random_state
        self.verbose = verbose
        self.class_weight = class_weight
        self.checkpoint = checkpoint

    def _learn_loss(self, y, weight):
        if self.loss == "exponential" and len(self.classes_) > 2:
            raise ValueError(f"loss='exponential' is for two classes, and y has {len(self.classes_)}; take 'log_loss'.")

    @property
    def _loss(self):
        return Loss(self.loss, len(self.classes_))

    def _loaded(self, blocks):
        """Return rows, numbers of classes, and weights with those of the classes in them."""
        rows, labels, weight = blocks.whole()
        labels = np.asarray(labels)
        if self.class_weight is not None:
            factors = class_factors(self.class_weight, np.bincount(labels, weight, len(self.classes_)), self.classes_)
            weight = factors[labels] * (1.0 if weight is None else weight)
        return rows, labels.astype(float), weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition. X may hold NaN, and may be a stored table."""
        blocks = self._labeled(self._encoded(X, reset=True), y, sample_weight, reset=True, order="C")
        return self._boost(*self._loaded(blocks), blocks, {"X": X, "y": y})

    def decision_function(self, X):
        """Return the scores: of the second class, or of each of more than two."""
        scores, dtype = self._scores(X)
        return as_output(scores if self._loss.n_scores > 1 else scores[:, 0], dtype)

    def predict_proba(self, X):
        """Return the probabilities of the classes."""
        scores, dtype = self._scores(X)
        return as_output(self._loss.chances(scores), dtype)

    def predict(self, X):
        """Predict the most probable class."""
        chances = self.predict_proba(X)
        return self.classes_[chances.argmax(axis=1)]

    def staged_decision_function(self, X):
        """Return the scores after each stage, one array at a time."""
        for scores, dtype in self._staged(X):
            yield as_output(scores if self._loss.n_scores > 1 else scores[:, 0], dtype)

    def staged_predict_proba(self, X):
        """Return the probabilities after each stage, one array at a time."""
        for scores, dtype in self._staged(X):
            yield as_output(self._loss.chances(scores), dtype)

    def staged_predict(self, X):
        """Predict after each stage, one array at a time."""
        for chances in self.staged_predict_proba(X):
            yield self.classes_[chances.argmax(axis=1)]

    def certify(self, X, y=None, sample_weight=None):
        """Replay the stages from the rows: constant, gradients, splits, leaf values and losses."""
        check_is_fitted(self)
        blocks = self._labeled(self._encoded(X, reset=False), y, sample_weight, reset=False, order="C")
        return self._certify(*self._loaded(blocks))
