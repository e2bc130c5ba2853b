"""Gradient boosting: a sum of small trees, each a step down the gradient of the loss.

The score f(x) = c + ν Σ_t tree_t(x) begins with the best constant c; tree t is grown on the derivatives of Σ sᵢℓ(yᵢ, f(xᵢ)) at
the scores so far, and its leaves take Newton's step or the best multiple of the gradient's own (`gradient_stages`). Columns are
cut into at most 255 bins (`lemmata.tree.bins`), gradients are summed in integers (`gradient_histogram`), and the trees are the
same in every bit for any number of threads. Losses: `gradient_losses`. Certificate: `gradient_certificate`.

References: Friedman, Ann. Stat. 29 (2001) and Comput. Stat. Data Anal. 38 (2002); Chen & Guestrin, KDD 2016.
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.class_weight import class_factors
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.ensemble.gradient_base import GradientBoosting
from lemmata.ensemble.gradient_losses import Loss, weighted_quantile

OF_RESIDUALS = 0.9  # Huber's δ, if it is not given, is this quantile of |y − median|


class GradientBoostingRegressor(GradientBoosting, Regressor):
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
        **GradientBoosting._shared_constraints,
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


class GradientBoostingClassifier(GradientBoosting, Classifier):
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
    (array(['no', 'yes'], dtype='<U3'), array([[0.07, 0.93]]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "loss": [StrOptions({"log_loss", "exponential"})],
        **GradientBoosting._shared_constraints,
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
