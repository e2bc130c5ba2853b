"""Decision trees: a table parted by questions about single columns, each the best of its node.

A node asks whether x ≤ t in one column, or whether a category is in a set, and is split where the impurity of the two sides,
weighted by their rows, is least; thresholds are midpoints of neighbouring values. Impurities of class shares p, or of numbers
y:

    Gini 1 − Σ p²     entropy −Σ p log₂ p     error 1 − max p     variance Σ (y − mean)²/n     absolute Σ |y − median|/n

Splits without gain are made too, where rows differ: some pairs of questions help only together. A leaf gives the shares of its
classes, the mean or the median of its rows. Finding the smallest tree is NP-hard; the certificate is of the greedy rule: that
every split is the best of its node, every leaf the minimizer of its loss (`certificate`).

References: Breiman, Friedman, Olshen & Stone, Classification and Regression Trees, 1984; Hyafil & Rivest, Information
Processing Letters, 1976.
"""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import _fit_context
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.class_weight import class_factors
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Classifier, Regressor, as_output
from lemmata.core.random import generator
from lemmata.tree.certificate import certify_tree
from lemmata.tree.columns import CategoricalColumns
from lemmata.tree.exact import grow_tree
from lemmata.tree.nodes import Trees
from lemmata.tree.pruning import pruned, pruning_path

UNLIMITED = 2**31 - 1
ROUNDING = 1e-10  # a sum of weights that should be a limit may fall short of it by rounding


def value_block(X, weight, trees):
    """Give the values of the leaves of a block, (rows, K)."""
    return trees.total(dense(X))


def leaf_block(X, weight, trees):
    """Give the leaf of each row of a block."""
    return trees.leaves(dense(X))[:, 0].astype(np.int64)


def dense(X):
    """Return a block as an array; trees read single columns of single rows."""
    return X.toarray() if is_sparse(X) else X


def own(a):
    """Return an array that may be written to: kernels would be compiled anew for one that may not."""
    return a if a.flags.writeable else a.copy()


def n_drawn(max_features, d):
    """Turn `max_features` into a number of columns."""
    if max_features is None:
        return d
    if isinstance(max_features, str):
        return max(1, int(np.sqrt(d) if max_features == "sqrt" else np.log2(d)))
    return min(d, max_features) if isinstance(max_features, Integral) else max(1, int(max_features * d))


def signs_of(monotonic_cst, d, is_categorical, names=None):
    """Turn `monotonic_cst` into a sign for each column, or None."""
    if monotonic_cst is None:
        return None
    if isinstance(monotonic_cst, dict):
        strange = [name for name in monotonic_cst if names is None or name not in names]
        if strange:
            raise ValueError(f"monotonic_cst names {strange[0]!r}, which is not a column of X.")
        monotonic_cst = [monotonic_cst.get(name, 0) for name in names]
    signs = np.asarray(monotonic_cst)
    if signs.shape != (d,) or not np.isin(signs, (-1, 0, 1)).all():
        raise ValueError(f"monotonic_cst must have -1, 0 or 1 for each of the {d} columns, got {monotonic_cst!r}.")
    if is_categorical is not None and np.any(signs[is_categorical] != 0):
        raise ValueError("monotonic_cst asks for an order of a categorical column, which has none: set it to 0 there.")
    return signs.astype(np.int64) if signs.any() else None


class DecisionTree(CategoricalColumns):
    """What trees for classes and for numbers share."""

    _tree_constraints = {
        "max_depth": [Interval(Integral, 1, None, closed="left"), None],
        "min_samples_split": [Interval(Integral, 2, None, closed="left"), Interval(Real, 0, 1, closed="right")],
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left"), Interval(Real, 0, 1, closed="neither")],
        "min_weight_fraction_leaf": [Interval(Real, 0, 0.5, closed="both")],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            StrOptions({"sqrt", "log2"}),
            None,
        ],
        "random_state": ["random_state"],
        "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "min_impurity_decrease": [Interval(Real, 0, None, closed="left")],
        "ccp_alpha": [Interval(Real, 0, None, closed="left")],
        "monotonic_cst": ["array-like", dict, None],
        "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    }

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def _rows_of(self, blocks):
        """Return all rows as an array, with target and weight; unit weights are None."""
        X, y, weight = blocks.whole()
        weight = None if weight is None or np.all(weight == 1) else own(np.asarray(weight, dtype=float))
        return own(dense(X)), own(y), weight

    def _limits(self, n, d, total):
        """Turn the parameters into the limits of `grow`."""

        def rows(limit):
            return int(limit) if isinstance(limit, Integral) else int(np.ceil(limit * n))

        least = rows(self.min_samples_leaf)
        return {
            "max_features": n_drawn(self.max_features, d),
            "least": least,
            "lightest": float(self.min_weight_fraction_leaf * total) * (1 - ROUNDING),
            "min_rows": max(2, rows(self.min_samples_split), 2 * least),
            "max_depth": UNLIMITED if self.max_depth is None else int(self.max_depth),
            "max_leaves": 0 if self.max_leaf_nodes is None else int(self.max_leaf_nodes),
            "min_gain": float(self.min_impurity_decrease * total),
        }

    def _task(self, X, labels, y, weight, n_classes):
        """Pose the problem of growth: all arguments of `grow_tree`."""
        n, d = X.shape
        total = float(n if weight is None else weight.sum())
        names = list(getattr(self, "feature_names_in_", [])) or None
        signs = signs_of(self.monotonic_cst, d, self.is_categorical_, names)
        if signs is not None and (n_classes > 2 or self.criterion == "absolute_error"):
            what = "more than two classes" if n_classes > 2 else "absolute errors"
            raise ValueError(f"monotonic_cst is not defined for {what}; leave it out.")
        return {
            "X": X,
            "labels": labels,
            "y": y,
            "weight": weight,
            "n_classes": n_classes,
            "criterion": self.criterion,
            "seed": self._seed,
            "is_categorical": self.is_categorical_,
            "signs": signs,
            **self._limits(n, d, total),
        }

    def _grow(self, X, labels, y, weight, n_classes):
        """Grow and prune the tree."""
        self._seed = int(generator(self.random_state).integers(0, 2**62)) if self.max_features is not None else 0
        tree = grow_tree(**self._task(X, labels, y, weight, n_classes))
        self.tree_ = pruned(tree, self.ccp_alpha) if self.ccp_alpha > 0 else tree
        self.max_features_ = n_drawn(self.max_features, X.shape[1])
        return self

    def _map(self, X, kernel):
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), reset=False, order="C")
        return blocks.map(kernel, Trees.of([self.tree_])), blocks.dtype

    def apply(self, X):
        """Give the number of the leaf that each row comes to."""
        return self._map(X, leaf_block)[0]

    def leaf_indicator(self, X):
        """Mark the leaf of each row: a sparse table (rows, nodes) with one in each row, features for another model."""
        leaves = self.apply(X)
        shape = (len(leaves), self.tree_.node_count)
        return csr_array((np.ones(len(leaves)), leaves, np.arange(len(leaves) + 1)), shape=shape)

    def decision_path(self, X):
        """Mark the nodes that each row passes: a sparse table (rows, nodes) of ones."""
        leaves = self.apply(X)
        parent = np.full(self.tree_.node_count, -1)
        inner = np.flatnonzero(self.tree_.children_left >= 0)
        for side in (0, 1):
            parent[self.tree_.children_left[inner] + side] = inner
        paths = []
        for node in range(self.tree_.node_count):
            paths.append([node] if parent[node] < 0 else [*paths[parent[node]], node])
        lengths = np.array([len(path) for path in paths])[leaves]
        columns = np.concatenate([paths[leaf] for leaf in leaves])
        shape = (len(leaves), self.tree_.node_count)
        return csr_array((np.ones(len(columns)), columns, np.concatenate([[0], np.cumsum(lengths)])), shape=shape)

    def get_depth(self):
        """Return the most steps from the root to a leaf."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self):
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    @property
    def feature_importances_(self):
        """Share of each column in the fall of impurity over the whole tree."""
        check_is_fitted(self)
        return self.tree_.importances(self.n_features_in_)

    def cost_complexity_pruning_path(self, X, y, sample_weight=None):
        """Find at which prices of a leaf the tree loses branches.

        Returns
        -------
        path : With `ccp_alphas`, rising from 0, and `impurities`, of the leaves of the smallest best tree for each price.
        """
        twin = type(self)(**self.get_params() | {"ccp_alpha": 0.0}).fit(X, y, sample_weight)
        alphas, impurities = pruning_path(twin.tree_)
        return Bunch(ccp_alphas=alphas, impurities=impurities)


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
