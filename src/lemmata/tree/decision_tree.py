"""Decision trees: a table parted by questions about single columns, each the best of its node.

A node asks whether x ≤ t in one column, or whether a category is in a set, and is split where the impurity of the two sides,
weighted by their rows, is least; thresholds are midpoints of neighboring values. Impurities of class shares p, or of numbers
y:

    Gini 1 − Σ p²     entropy −Σ p log₂ p     error 1 − max p     variance Σ (y − mean)²/n     absolute Σ |y − median|/n

Splits without gain are made too, where rows differ: some pairs of questions help only together. A leaf gives the shares of its
classes, the mean or the median of its rows. Finding the smallest tree is NP-hard; the certificate is of the greedy rule: that
every split is the best of its node, every leaf the minimizer of its loss (`certificate`).

References: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984; Hyafil & Rivest, Information
Processing Letters, 1976.
"""

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.class_weight import class_factors
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.tree.base import DecisionTree, value_block
from lemmata.tree.certificate import certify_tree


class DecisionTreeClassifier(DecisionTree, Classifier):
    """Decision tree for classes.

    Parameters
    ----------
    criterion : "gini", "entropy" (also "log_loss") or "error": how the impurity of a node is measured.
    max_depth : Most questions on a path; None for any number.
    min_samples_split : Rows from which on a node is split; a fraction is of all rows.
    min_samples_leaf : Least rows of a leaf; a fraction is of all rows.
    min_weight_fraction_leaf : Least share of the weight in a leaf.
    max_features : How many columns, drawn at random, a node looks at: a number, a share, "sqrt", "log2", or None for all.
        Columns that are constant in a node do not count, and the search goes on until a split is found.
    random_state : Seed of these draws.
    max_leaf_nodes : Most leaves; then the leaf with the largest gain is split next.
    min_impurity_decrease : Least gain of a split, in impurity times the share of the rows in the node.
    class_weight : Factors of the weights of classes: a dict, "balanced", or None.
    ccp_alpha : Price of a leaf: branches that lower the impurity by less than the price of their leaves are cut off.
    monotonic_cst : For each column 1, -1 or 0, or a dict by names: whether the probability of the second class may only rise or
        fall with it.
    categorical_features : Which columns hold categories: "from_dtype" for text and categorical columns of a frame (or text in
        an array of objects), a mask, numbers or names of columns, or None.

    Attributes
    ----------
    tree_ : The nodes, see `lemmata.tree.Tree`.
    classes_ : The labels.
    n_classes_ : How many there are.
    max_features_ : How many columns a node looked at.
    feature_importances_ : Share of each column in the fall of impurity.
    categories_, is_categorical_ : Categories of each column, and which columns have them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_depth=2).fit(X, y)
    >>> from lemmata.tree import export_text
    >>> print(export_text(model, feature_names=["sepal length", "sepal width", "petal length", "petal width"]))
    petal length <= 2.45
    |   class 0  (50 rows)
    petal length > 2.45
    |   petal width <= 1.75
    |   |   class 1  (54 rows)
    |   petal width > 1.75
    |   |   class 2  (46 rows)
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "criterion": [StrOptions({"gini", "entropy", "log_loss", "error"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **DecisionTree._tree_constraints,
    }

    def __init__(
        self,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        class_weight=None,
        ccp_alpha=0.0,
        monotonic_cst=None,
        categorical_features="from_dtype",
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition.

        X may also be sparse, a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        return self._grow(*self._posed(X, y, sample_weight, reset=True))

    def _posed(self, X, y, sample_weight, *, reset):
        blocks = self._labeled(self._encoded(X, reset=reset), y, sample_weight, reset=reset, order="C")
        X, labels, weight = self._rows_of(blocks)
        k = len(self.classes_)
        if self.class_weight is not None:
            counts = np.bincount(labels, weight, k)
            factors = class_factors(self.class_weight, counts, self.classes_)
            weight = factors[labels] * (1.0 if weight is None else weight)
        return X, labels, np.zeros(len(labels)), weight, k

    @property
    def n_classes_(self):
        """Number of classes."""
        check_is_fitted(self)
        return len(self.classes_)

    def predict_proba(self, X):
        """Give the probability of each class, (n, k): its share in the leaf."""
        values, dtype = self._map(X, value_block)
        return as_output(values, dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Give each row the most frequent class of its leaf, the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def certify(self, X, y=None, sample_weight=None):
        """Prove that every split is the best of its node and every leaf the minimizer of its loss, by trying all splits."""
        check_is_fitted(self)
        return certify_tree(self, self._task(*self._posed(X, y, sample_weight, reset=False)))


class DecisionTreeRegressor(DecisionTree, Regressor):
    """Decision tree for numbers.

    Parameters
    ----------
    criterion : "squared_error", with means in the leaves, or "absolute_error", with medians.
    monotonic_cst : For each column 1, -1 or 0, or a dict by names: whether predictions may only rise or fall with it; for
        squared errors.
    max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf : As in `DecisionTreeClassifier`.
    max_features, random_state, max_leaf_nodes, min_impurity_decrease, ccp_alpha, categorical_features : Likewise.

    Attributes
    ----------
    tree_ : The nodes, see `lemmata.tree.Tree`.
    max_features_ : How many columns a node looked at.
    feature_importances_ : Share of each column in the fall of impurity.
    categories_, is_categorical_ : Categories of each column, and which columns have them.

    Examples
    --------
    >>> X, y = [[1.0], [2.0], [3.0], [10.0]], [1.0, 2.0, 3.0, 30.0]
    >>> model = DecisionTreeRegressor(max_depth=1).fit(X, y)
    >>> model.predict([[0.0], [20.0]])
    array([ 2., 30.])
    >>> float(model.tree_.threshold[0]), model.certify(X, y).holds
    (6.5, True)
    """

    _parameter_constraints = {
        "criterion": [StrOptions({"squared_error", "absolute_error"})],
        **DecisionTree._tree_constraints,
    }

    def __init__(
        self,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        ccp_alpha=0.0,
        monotonic_cst=None,
        categorical_features="from_dtype",
    ):
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with numbers y; a weight means repetition.

        X may also be sparse, a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        return self._grow(*self._posed(X, y, sample_weight, reset=True))

    def _posed(self, X, y, sample_weight, *, reset):
        blocks = self._blocks(self._encoded(X, reset=reset), y, sample_weight, reset=reset, order="C")
        X, y, weight = self._rows_of(blocks)
        return X, np.zeros(len(y), dtype=np.int64), np.asarray(y, dtype=float), weight, 1

    def predict(self, X):
        """Give each row the mean (or median) of its leaf."""
        values, dtype = self._map(X, value_block)
        return as_output(values[:, 0], dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that every split is the best of its node and every leaf the minimizer of its loss, by trying all splits."""
        check_is_fitted(self)
        return certify_tree(self, self._task(*self._posed(X, y, sample_weight, reset=False)))
