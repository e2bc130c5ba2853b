"""What trees for classes and for numbers share: parameters and their limits, growth, and the way down to a leaf."""

from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.data import is_sparse
from lemmata.core.random import generator
from lemmata.tree.columns import CategoricalColumns
from lemmata.tree.exact import grow_tree
from lemmata.tree.nodes import Trees
from lemmata.tree.pruning import pruned, pruning_path

UNLIMITED = 2**31 - 1
ROUNDING = 1e-10  # a sum of weights that should be a limit may fall short of it by rounding
LARGEST = 1e100  # of y and of weights, so that sums of weighted squares are finite


def value_block(X, weight, descent):
    """Give the values of the leaves of a block, (rows, K)."""
    return descent.total(dense(X))


def leaf_block(X, weight, descent):
    """Give the leaf of each row of a block."""
    return descent.leaves(dense(X))[:, 0].astype(np.int64)


def dense(X):
    """Return a block as an array; trees read single columns of single rows."""
    return X.toarray() if is_sparse(X) else X


def own(a):
    """Return an array that may be written to: kernels would be compiled anew for one that may not."""
    return a if a.flags.writeable else a.copy()


def check_sizes(y, weight):
    """Refuse numbers and weights of which sums of squares would overflow, or vanish."""
    if np.abs(y).max() > LARGEST:
        raise ValueError(f"y reaches {np.abs(y).max():.3g}, and sums of its squares would overflow: divide y by a constant.")
    if weight is not None and not 1 / LARGEST < weight.sum() < LARGEST:
        raise ValueError(f"sample_weight sums to {weight.sum():.3g}, too far from 1 for sums of squares: scale the weights.")


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

    def _rows_of(self, blocks):
        """Return all rows as an array, with target and weight; unit weights are None."""
        X, y, weight = blocks.whole()
        weight = None if weight is None or np.all(weight == 1) else own(np.asarray(weight, dtype=float))
        check_sizes(y, weight)
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
        return blocks.map(kernel, Trees.of([self.tree_]).descent()), blocks.dtype

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
