"""Random forests: many trees, each grown on a bag of rows, each node looking at a few columns drawn for it.

A tree that is grown until its leaves are pure has little bias and much variance. The mean of B trees whose errors have
variance σ² and correlation ρ has variance ρσ² + (1 − ρ)σ²/B: more trees remove the second term, and drawing columns lowers
ρ [1]. A bag draws n of n rows with replacement and leaves out about 1/e of them, on which its tree is tested: the out-of-bag
prediction of a row is the mean over the trees that have not seen it, an honest prediction without rows set aside.

Candidates of a split. A node looks at `max_features` columns, and at further ones only while no admissible split was found.
Of a column it sees the ranks of its values (see `ranks`): in nodes of more than 32 rows (16 for each class, if there are more
than two) its 255 coarse ranks, in smaller ones, and where all rows share one coarse rank, its fine ranks, which are exact up to
65,535 distinct values. Splits without gain are made too, since what follows may gain. Certificate: every number of every tree
follows from its bag, which is drawn again from its seed, and every split is the best of its candidates, by enumeration.

[1] Breiman, Machine Learning 24 (1996) and 45 (2001). [2] Zhang et al., Am. Stat. 74 (2020). [3] Meinshausen, JMLR 7 (2006).
"""

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from lemmata.core.class_weight import class_factors
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.ensemble.forest_base import Forest, spread
from lemmata.ensemble.forest_quantiles import quantiles
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor

ROUNDING = 1e-9  # a whole number of residuals may come out a little too low or too high


class RandomForestClassifier(Classifier, Forest):
    """A vote of trees, each grown on rows drawn with replacement, each node looking at a few columns.

    Parameters
    ----------
    n_estimators : Number of trees.
    criterion : "gini", or "entropy" (also called "log_loss"), in bits.
    max_depth : Most steps from the root to a leaf; None grows until leaves are pure.
    min_samples_split : Rows below which a node is a leaf, or a share of all rows. However often a bag has a row, it is one row.
    min_samples_leaf : Rows that each side of a split must have at least, or a share of all rows.
    min_weight_fraction_leaf : Share of the bag that each side must have at least; here a row counts as often as the bag has it.
    max_features : Columns that a node looks at: "sqrt" or "log2" of their number, a number, a share, or None for all.
    max_leaf_nodes : Most leaves; then the node whose split gains most is split next.
    min_impurity_decrease : Gain below which no split is made (relative to the weight of all rows).
    bootstrap : Whether each tree has a bag of rows; otherwise all have all rows.
    oob_score : "auto" tests each tree on the rows that its bag left out, where there are bags. True warns in addition if a row
        was never left out. A function of (y, prediction) takes the place of the accuracy. False leaves it.
    n_jobs : Threads; None for those of `lemmata.config`, −1 for all processors. The result is the same for any number.
    random_state : Seed, for the same forest again; on any number of threads.
    verbose : 1 shows a progress bar. Ctrl-C keeps the trees grown so far.
    class_weight : A dict of labels, or "balanced": factors of the odds by which bags draw rows (without bags: of weights); rows
        of a rare class are then in most bags. "balanced_subsample" draws rows equally and weighs the classes of each bag.
    max_samples : Rows that a bag draws: a number, a share of the rows, or None for as many as there are.
    categorical_features : "from_dtype" for columns of text; or a mask, numbers or names of columns; or None.

    Attributes
    ----------
    classes_, n_classes_ : The labels, and how many.
    trees_ : All trees as arrays; `estimators_` has them as estimators.
    seeds_ : Seed of each tree, from which its bag and its columns are drawn.
    oob_score_ : Accuracy of the out-of-bag predictions.
    oob_decision_function_ : (n, K) mean probabilities from the trees that have not seen a row; NaN if all have.

    Notes
    -----
    Weights of rows are odds of being drawn; whole ones are repetitions, and then bags are as large as the repeated table.
    Missing values go to the side where they lower the impurity most. With K > 2 classes the best set of categories is searched
    along K orders of them only.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RandomForestClassifier(random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2), model.predict(X[:2])
    (0.94, array([0, 0]))
    >>> model.certify(X, y).holds
    True
    """

    _member_class = DecisionTreeClassifier

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
        class_weight=None,
        max_samples=None,
        categorical_features="from_dtype",
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.class_weight = class_weight
        self.max_samples = max_samples
        self.categorical_features = categorical_features

    def fit(self, X, y=None, sample_weight=None):
        """Grow the trees."""
        return self._fit(X, y, sample_weight)

    def _rows(self, X, y, sample_weight, *, reset):
        X = self._encoded(X, reset=reset)
        return self._labeled(X, y, sample_weight, reset=reset).whole()

    @property
    def n_classes_(self):
        """Number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    def _n_classes(self):
        return len(self.classes_)

    def _odds(self, y, weight):
        """Multiply weights of rows and of classes; tell also whether each bag weighs its classes equally."""
        if isinstance(self.class_weight, str) and self.class_weight not in ("balanced", "balanced_subsample"):
            raise ValueError(
                f'class_weight must be a dict, "balanced", "balanced_subsample" or None, got {self.class_weight!r}.'
            )
        if self.class_weight is None:
            return weight, False
        if self.class_weight == "balanced_subsample" and self.bootstrap:
            return weight, True
        counts = np.bincount(y, weight, len(self.classes_))
        given = "balanced" if isinstance(self.class_weight, str) else self.class_weight
        factors = class_factors(given, counts, self.classes_)[y]
        return factors if weight is None else weight * factors, False

    def _keep_out_of_bag(self, found, y):
        totals, votes = found
        unseen = votes > 0
        self._warn(unseen)
        self.oob_decision_function_ = np.where(unseen[:, None], totals / np.maximum(votes, 1)[:, None], np.nan)
        self.oob_score_ = self._score_out_of_bag(self.oob_decision_function_, y)

    def _score_out_of_bag(self, shares, y):
        unseen = ~np.isnan(shares[:, 0])
        if not unseen.any():
            return np.nan
        made, true = self.classes_[shares[unseen].argmax(axis=1)], self.classes_[y[unseen]]
        return float((self.oob_score if callable(self.oob_score) else accuracy_score)(true, made))

    def _member(self, tree):
        member = super()._member(tree)
        member.classes_ = np.arange(len(self.classes_))  # numbers, as scikit-learn's forests tell their trees
        return member

    def predict_proba(self, X):
        """Average the shares of classes in the leaves that a row comes to: (n_rows, K)."""
        totals, dtype = self._totals(X)
        return as_output(totals / totals.sum(axis=1, keepdims=True), dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Give each row the class of highest mean probability."""
        shares = self.predict_proba(X)
        return self.classes_[shares.argmax(axis=1)]

    def uncertainty(self, X):
        """Tell how far the trees disagree: the standard deviation of their probabilities, (n_rows, K)."""
        return spread(self, X)


class RandomForestRegressor(Regressor, Forest):
    """A mean of trees, each grown on rows drawn with replacement.

    Parameters
    ----------
    n_estimators : Number of trees.
    criterion : "squared_error".
    max_depth : Most steps from the root to a leaf; None grows until all rows of a leaf have the same target.
    min_samples_split : Rows below which a node is a leaf, or a share of all rows. However often a bag has a row, it is one row.
    min_samples_leaf : Rows that each side of a split must have at least, or a share of all rows.
    min_weight_fraction_leaf : Share of the bag that each side must have at least; here a row counts as often as the bag has it.
    max_features : Columns that a node looks at: "sqrt" or "log2" of their number, a number, a share, or None for all.
    max_leaf_nodes : Most leaves; then the node whose split gains most is split next.
    min_impurity_decrease : Gain below which no split is made (relative to the weight of all rows).
    bootstrap : Whether each tree has a bag of rows; otherwise all have all rows.
    oob_score : "auto" tests each tree on the rows that its bag left out, where there are bags. True warns in addition if a row
        was never left out. A function of (y, prediction) takes the place of R². False leaves it.
    n_jobs : Threads; None for those of `lemmata.config`, −1 for all processors. The result is the same for any number.
    random_state : Seed, for the same forest again; on any number of threads.
    verbose : 1 shows a progress bar. Ctrl-C keeps the trees grown so far.
    max_samples : Rows that a bag draws: a number, a share of the rows, or None for as many as there are.
    categorical_features : "from_dtype" for columns of text; or a mask, numbers or names of columns; or None.

    Attributes
    ----------
    trees_ : All trees as arrays; `estimators_` has them as estimators.
    seeds_ : Seed of each tree, from which its bag and its columns are drawn.
    oob_score_ : R² of the out-of-bag predictions.
    oob_prediction_ : Mean over the trees that have not seen a row; NaN if all have.
    oob_residuals_ : What y was above that.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(400, 2))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
    >>> model = RandomForestRegressor(random_state=0).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.97
    >>> model.predict_interval([[0.0, 0.0]], level=0.9).round(1)
    array([[-0.2,  0.2]])
    >>> wide = RandomForestRegressor(min_samples_leaf=5, random_state=0).fit(X, y)
    >>> wide.predict_quantiles([[0.0, 0.0]], [0.05, 0.5, 0.95]).round(1)
    array([[-0.1,  0. ,  0.3]])
    >>> model.certify(X, y).holds
    True
    """

    _member_class = DecisionTreeRegressor

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=1.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
        max_samples=None,
        categorical_features="from_dtype",
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.max_samples = max_samples
        self.categorical_features = categorical_features

    def fit(self, X, y=None, sample_weight=None):
        """Grow the trees."""
        return self._fit(X, y, sample_weight)

    def _rows(self, X, y, sample_weight, *, reset):
        X, y, weight = self._blocks(self._encoded(X, reset=reset), y, sample_weight, reset=reset).whole()
        return X, np.asarray(y, dtype=np.float64), weight

    def _n_classes(self):
        return 0

    def _odds(self, y, weight):
        return weight, False

    def _keep_out_of_bag(self, found, y):
        totals, votes = found
        unseen = votes > 0
        self._warn(unseen)
        self.oob_prediction_ = np.where(unseen, totals[:, 0] / np.maximum(votes, 1), np.nan)
        self.oob_residuals_ = y - self.oob_prediction_
        self.oob_score_ = self._score_out_of_bag(self.oob_prediction_, y)

    def _score_out_of_bag(self, prediction, y):
        unseen = ~np.isnan(prediction)
        if unseen.sum() < 2:  # R² needs two rows
            return np.nan
        return float((self.oob_score if callable(self.oob_score) else r2_score)(y[unseen], prediction[unseen]))

    def predict(self, X):
        """Average the leaves that a row comes to."""
        totals, dtype = self._totals(X)
        return as_output(totals[:, 0] / len(self.trees_), dtype)

    def predict_interval(self, X, level=0.9):
        """Give an interval that holds y of a new row with this probability: (n_rows, 2).

        It is the prediction plus the quantiles of the out-of-bag residuals that leave (1 - level)/2 at either side [2]: right
        on average over rows like those of the fit, not at every row where the noise differs.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        mean = self.predict(X)
        if not hasattr(self, "oob_residuals_"):
            raise AttributeError("predict_interval needs out-of-bag residuals: fit with bootstrap=True and oob_score on.")
        residuals = np.sort(self.oob_residuals_[~np.isnan(self.oob_residuals_)])
        n, tail = len(residuals), (1 - level) / 2
        # a new residual lies below the k-th of n exchangeable ones with probability k/(n + 1)
        low, high = int(np.floor(tail * (n + 1) + ROUNDING)), int(np.ceil((1 - tail) * (n + 1) - ROUNDING))
        if low < 1 or high > n:
            raise ValueError(
                f"{n} out-of-bag residuals are too few for level {level!r}: {int(np.ceil(2 / (1 - level)))} would do."
            )
        return as_output(np.column_stack([mean + residuals[low - 1], mean + residuals[high - 1]]), mean.dtype)

    def predict_quantiles(self, X, q=(0.05, 0.5, 0.95)):
        """Give quantiles of y among the training rows that share leaves with a row [3]: (n_rows, len(q)), (n_rows,) for one q.

        Unlike those of `predict_interval` their distances follow the noise from place to place; they promise no coverage.
        Leaves of several rows (`min_samples_leaf` of 5 or more) serve them best.
        """
        asked = np.asarray(q, dtype=np.float64)
        if asked.ndim > 1 or not asked.size or not ((asked >= 0) & (asked <= 1)).all():
            raise ValueError(f"q must be a number from 0 to 1, or a list of such, got {q!r}.")
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), reset=False)
        kept = self._leaf_rows
        if self.bootstrap:
            parts = zip(self.seeds_, kept.ends[:-1], kept.ends[1:], strict=True)
            weights = np.concatenate([self._counts(seed)[kept.rows[a:b]] for seed, a, b in parts]).astype(np.float64)
        elif self._sample_weight is None:
            weights = np.ones(len(kept.rows))
        else:
            weights = self._sample_weight[kept.rows] / self._sample_weight.max()  # near one: sums must not overflow
        found = quantiles(blocks, self.trees_, kept, weights, np.atleast_1d(asked))
        return as_output(found[:, 0] if asked.ndim == 0 else found, blocks.dtype)

    def uncertainty(self, X):
        """Tell how far the trees disagree about each row: the standard deviation of their predictions, (n_rows,).

        Divided by √n_estimators it is the share of chance in the mean itself, which more trees would remove.
        """
        return spread(self, X)[:, 0]
