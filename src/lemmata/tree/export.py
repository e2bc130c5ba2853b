"""A tree in words: one line a question, indented by its depth."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemmata.core.table import shown


def rule(model, node, names=None, decimals=2):
    """Give the question of a node in words: what must hold on the left, and on the right.

    Examples
    --------
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0])
    >>> rule(model, 0, ["size"])
    ('size <= 3.00', 'size > 3.00')
    """
    tree, column = model.tree_, int(model.tree_.feature[node])
    name = column_names(model, names)[column]
    if tree.category_set[node] >= 0:
        known = model.categories_[column]
        inside = {int(code) for code in tree.categories_left(node)}
        left, right = ([shown(c) for i, c in enumerate(known.tolist()) if (i in inside) == side] for side in (True, False))
        return f"{name} in {{{', '.join(left)}}}", f"{name} in {{{', '.join(right)}}}"
    if np.isinf(tree.threshold[node]):
        return f"{name} is there", f"{name} is missing"
    threshold = f"{tree.threshold[node]:.{decimals}f}"
    return f"{name} <= {threshold}", f"{name} > {threshold}"


def column_names(model, names=None):
    """Return the names of the columns: those given, those of the fit, or feature_0 and so on."""
    if names is None:
        names = getattr(model, "feature_names_in_", [f"feature_{j}" for j in range(model.n_features_in_)])
    if len(names) != model.n_features_in_:
        raise ValueError(f"feature_names has {len(names)} names, and the model has {model.n_features_in_} columns.")
    return [str(name) for name in names]


def class_labels(model, names=None):
    """Return the names of the classes: those given or the labels; None for a model of numbers."""
    classes = getattr(model, "classes_", None)
    if classes is None or names is None or names is True:
        return classes
    if len(names) != len(classes):
        raise ValueError(f"class_names has {len(names)} names, and the model has {len(classes)} classes.")
    return names


def export_text(model, *, feature_names=None, class_names=None, max_depth=10, decimals=2, show_missing=False):
    """Write a fitted tree as text.

    Parameters
    ----------
    model : `DecisionTreeClassifier` or `DecisionTreeRegressor`.
    feature_names : Names of the columns; default those of the frame that was fitted.
    class_names : Names of the classes; default (and True) the labels.
    max_depth : Depth below which branches are only counted.
    decimals : Digits of thresholds and values.
    show_missing : Whether to say which way rows go that miss the value.

    Examples
    --------
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> model = DecisionTreeRegressor(max_depth=1).fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0])
    >>> print(export_text(model, feature_names=["size"], decimals=1))
    size <= 3.0
    |   value 0.0  (2 rows)
    size > 3.0
    |   value 3.0  (1 rows)
    """
    check_is_fitted(model)
    names = column_names(model, feature_names)
    labels = class_labels(model, class_names)
    tree, lines = model.tree_, []
    deep = tree.depth

    def describe(node):
        rows = f"({tree.n_node_samples[node]} rows)"
        if labels is None:
            return f"value {tree.value[node, 0]:.{decimals}f}  {rows}"
        return f"class {labels[int(tree.value[node].argmax())]!s}  {rows}"

    def write(node):
        indent = "|   " * int(deep[node])
        if tree.children_left[node] < 0:
            lines.append(indent + describe(node))
            return
        if deep[node] >= max_depth:
            below = np.flatnonzero(model_leaves(tree, node))
            lines.append(f"{indent}… {len(below)} leaves")
            return
        for side, told in enumerate(rule(model, node, names, decimals)):
            missing = show_missing and bool(tree.missing_go_to_left[node]) == (side == 0) and not told.endswith("missing")
            lines.append(indent + told + (", or missing" if missing else ""))
            write(int(tree.children_left[node]) + side)

    write(0)
    return "\n".join(lines)


def model_leaves(tree, node):
    """Mark the leaves below a node."""
    below = np.zeros(tree.node_count, dtype=bool)
    below[node] = True
    for at in range(node, tree.node_count):  # a child stands after its parent
        if below[at] and tree.children_left[at] >= 0:
            below[tree.children_left[at] : tree.children_left[at] + 2] = True
    return below & (tree.children_left < 0)
