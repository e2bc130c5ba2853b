"""Trees as flat arrays: one entry a node, the root first, the two children of a node side by side.

A row with x ≤ t in the column of a node goes left, one whose category is in the node's set goes left, and one that has no value
there goes where the node says.
"""

from dataclasses import dataclass, fields

import numpy as np

from lemmata.tree.descend import WORD, add_values, descend, descend_sets

LEAF, NOTHING = -1, -2  # as in scikit-learn: the child of a leaf, the column that it asks about
U1, U31, U32 = (np.uint64(k) for k in (1, 31, 32))


@dataclass(eq=False)
class Tree:
    """One tree; arrays carry scikit-learn's names.

    Attributes
    ----------
    feature : Column that a node asks about; -2 at leaves.
    threshold : Rows up to here go left; -2 at leaves, NaN where the column is categorical.
    children_left : Left child; the right one is next to it. -1 at leaves.
    missing_go_to_left : Whether a row without a value (or with an unknown category) goes left.
    category_set : Row of `left_categories` for a categorical column; -1 at other nodes.
    left_categories : Sets of categories that go left, 64 in a word.
    value : (nodes, K), shares of the classes, or one number.
    impurity : How mixed the rows of a node are.
    gain : By how much a split lowers the impurity, weighted by the share of rows that come to it; 0 at leaves.
    n_node_samples : Rows that came to a node in the fit.
    weighted_n_node_samples : Their weight.

    Examples
    --------
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0]).tree_
    >>> tree.feature, tree.threshold, tree.value.ravel()
    (array([ 0, -2, -2], dtype=int32), array([ 3., -2., -2.]), array([1., 0., 3.]))
    """

    feature: np.ndarray
    threshold: np.ndarray
    children_left: np.ndarray
    missing_go_to_left: np.ndarray
    category_set: np.ndarray
    left_categories: np.ndarray
    value: np.ndarray
    impurity: np.ndarray
    gain: np.ndarray
    n_node_samples: np.ndarray
    weighted_n_node_samples: np.ndarray

    def __eq__(self, other):
        return isinstance(other, Tree) and all(
            np.array_equal(getattr(self, f.name), getattr(other, f.name), equal_nan=f.name in ("threshold", "value"))
            for f in fields(Tree)
        )

    __hash__ = None

    @property
    def children_right(self):
        """Right child of each node, -1 at leaves."""
        return np.where(self.children_left == LEAF, LEAF, self.children_left + 1)

    @property
    def node_count(self):
        """Number of nodes."""
        return len(self.feature)

    @property
    def n_leaves(self):
        """Number of leaves."""
        return int((self.children_left == LEAF).sum())

    @property
    def depth(self):
        """Steps from the root to each node."""
        depth = np.zeros(self.node_count, dtype=np.int64)
        for node in range(self.node_count):  # a child stands after its parent
            if self.children_left[node] != LEAF:
                depth[self.children_left[node] : self.children_left[node] + 2] = depth[node] + 1
        return depth

    @property
    def max_depth(self):
        """Most steps from the root to a leaf."""
        return int(self.depth.max())

    def importances(self, n_columns):
        """Give the gain of each column over all nodes that ask about it, scaled to a sum of one (zeros without any gain)."""
        inner = self.children_left != LEAF
        total = np.bincount(self.feature[inner], self.gain[inner], n_columns)
        return total / total.sum() if total.sum() > 0 else total

    def goes_left(self, node, x):
        """Tell which values of the node's column go left."""
        missing = np.isnan(x)
        if self.category_set[node] < 0:
            left = x <= self.threshold[node]
        else:
            left, missing = _in_set(np.where(missing, -1, x).astype(np.int64), self.left_categories[self.category_set[node]])
        return np.where(missing, bool(self.missing_go_to_left[node]), left)

    def categories_left(self, node):
        """Give the categories that go left at a categorical node, as codes."""
        words = self.left_categories[self.category_set[node]]
        codes = np.arange(WORD * len(words))
        return codes[_in_set(codes, words)[0]]


def _in_set(codes, words):
    """Tell which codes are in a set, and which are not codes at all."""
    known = (codes >= 0) & (codes < WORD * len(words))
    safe = np.where(known, codes, 0)
    return known & (((words[safe // WORD] >> (safe % WORD).astype(np.uint64)) & U1) > 0), ~known


@dataclass(eq=False)
class Trees:
    """Many trees in the arrays of one, for prediction; `trees[t]` is one of them.

    Attributes
    ----------
    nodes : The nodes of all trees, one tree after the other; children are numbered within their tree.
    roots : Where each tree begins, and where the last one ends.

    Examples
    --------
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> tree = DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0]).tree_
    >>> trees = Trees.of([tree, tree])
    >>> trees.total(np.array([[1.5], [9.0]])).ravel()
    array([0., 6.])
    """

    nodes: Tree
    roots: np.ndarray

    @classmethod
    def of(cls, trees):
        """Join trees, in order."""
        sets = np.cumsum([0] + [len(tree.left_categories) for tree in trees])
        words = max(tree.left_categories.shape[1] for tree in trees)
        parts = {f.name: [getattr(tree, f.name) for tree in trees] for f in fields(Tree)}
        parts["category_set"] = [
            np.where(tree.category_set < 0, tree.category_set, tree.category_set + start).astype(np.int32)
            for tree, start in zip(trees, sets[:-1], strict=True)
        ]
        parts["left_categories"] = [_widened(tree.left_categories, words) for tree in trees]
        return cls(
            Tree(**{name: np.concatenate(arrays) for name, arrays in parts.items()}),
            np.cumsum([0] + [tree.node_count for tree in trees]),
        )

    def __len__(self):
        return len(self.roots) - 1

    def __getitem__(self, t):
        t = range(len(self))[t]
        own = slice(self.roots[t], self.roots[t + 1])
        parts = {f.name: getattr(self.nodes, f.name)[own] for f in fields(Tree) if f.name != "left_categories"}
        used = parts["category_set"][parts["category_set"] >= 0]
        if len(used):  # the sets of a tree stand together
            first, last = used.min(), used.max() + 1
            parts["category_set"] = np.where(parts["category_set"] < 0, -1, parts["category_set"] - first).astype(np.int32)
            return Tree(**parts, left_categories=self.nodes.left_categories[first:last])
        return Tree(**parts, left_categories=self.nodes.left_categories[:0])

    def __iter__(self):
        return (self[t] for t in range(len(self)))

    def __eq__(self, other):
        return isinstance(other, Trees) and np.array_equal(self.roots, other.roots) and self.nodes == other.nodes

    __hash__ = None

    def descent(self):
        """Pack the trees for prediction; packing takes a while, so many blocks of rows should share it."""
        return Descent(self)

    def leaves(self, X):
        """Find the leaf of each row in each tree, (rows, trees)."""
        return self.descent().leaves(X)

    def total(self, X):
        """Sum the values of the leaves that each row comes to, over the trees in order, (rows, K)."""
        return self.descent().total(X)


class Descent:
    """Trees packed so that a step down reads two words that lie together: threshold, and child, missing direction, column."""

    def __init__(self, trees):
        self.trees, nodes, roots = trees, trees.nodes, trees.roots
        self.by_sets = len(nodes.left_categories) > 0
        if self.by_sets:
            return
        leaf = nodes.children_left == LEAF
        offset = np.repeat(roots[:-1], np.diff(roots))
        self.cuts = np.empty((len(leaf), 2))
        self.cuts[:, 0] = np.where(leaf, np.inf, nodes.threshold)
        child = np.where(leaf, np.arange(len(leaf)), nodes.children_left + offset).astype(np.uint64)
        column = np.where(leaf, 0, nodes.feature).astype(np.uint64)
        right = (~leaf & ~nodes.missing_go_to_left).astype(np.uint64)
        self.cuts.view(np.uint64)[:, 1] = (child << U32) | (right << U31) | column

    def find(self, X, rows, t, leaf):
        """Write the leaf of each of some rows in a tree, numbered among all nodes."""
        if not self.by_sets:
            flat = self.cuts.ravel()
            descend(X, rows, flat.view(np.uint64), flat, np.uint32(self.trees.roots[t]), leaf)
            return
        nodes, own = self.trees.nodes, slice(self.trees.roots[t], self.trees.roots[t + 1])
        descend_sets(
            X,
            rows,
            nodes.feature[own],
            nodes.threshold[own],
            nodes.children_left[own],
            nodes.missing_go_to_left[own],
            nodes.category_set[own],
            nodes.left_categories,
            leaf,
        )
        leaf[: len(rows)] += np.uint32(self.trees.roots[t])

    def leaves(self, X):
        """Find the leaf of each row in each tree, (rows, trees)."""
        rows, leaf = np.arange(len(X), dtype=np.uint32), np.empty(len(X), dtype=np.uint32)
        out = np.empty((len(X), len(self.trees)), dtype=np.int32)
        for t in range(len(self.trees)):
            self.find(X, rows, t, leaf)
            out[:, t] = leaf - np.uint32(self.trees.roots[t])
        return out

    def total(self, X):
        """Sum the values of the leaves that each row comes to, over the trees in order, (rows, K)."""
        rows, leaf = np.arange(len(X), dtype=np.uint32), np.empty(len(X), dtype=np.uint32)
        out = np.zeros((len(X), self.trees.nodes.value.shape[1]))
        for t in range(len(self.trees)):
            self.find(X, rows, t, leaf)
            add_values(self.trees.nodes.value, rows, leaf, out)
        return out


def _widened(sets, words):
    """Give sets of categories so many words."""
    return np.pad(sets, ((0, 0), (0, words - sets.shape[1])))
