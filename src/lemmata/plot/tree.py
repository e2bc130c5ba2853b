"""Decision trees as pictures: what each node asks, how many rows come to it, and what they are like."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, class_colors, ink
from lemmata.plot.network import FONT, LARGEST, SMALL, box, canvas, clipped, text_width
from lemmata.plot.ticks import readable
from lemmata.plot.tree_layout import depths, placed, preorder, way_to

MOST_LEAVES = 32  # drawn unless told otherwise; of larger trees, the upper levels
MOST_LEVELS = 9
MOST_KEYED = 10  # classes that have a line of their names below the tree
LETTERS = 22  # of the name of a column, a class or a category
BAR = 5.0  # height of the bar of class shares, in points
STEP = 10.5  # from one line of a text to the next
PAD = (18.0, 7.0)  # around the text of a node; small letters on a screen are wider than they measure
SIDEWAYS = 1.15  # how much larger letters must be for a tree that grows to the right instead of down
MEASURES = {"log_loss": "entropy", "squared_error": "sd", "friedman_mse": "sd", "absolute_error": "deviation"}


class Split(NamedTuple):
    """What a node asks: `rule` is true of rows that go left; `missing` says where rows without a value go, if it matters."""

    rule: str
    missing: str | None


class TreeDisplay:
    """A decision tree, each node with its rule, rows and impurity; in color the shares of the classes, or the mean.

    Rows for which a rule is true go left, or up in a tree that grows to the right; the thicker a line, the more rows. Of a
    large tree the upper levels are drawn, with "…" where it goes on.

    Parameters
    ----------
    tree : Arrays of the nodes: `children_left`, `children_right`, `feature`, `threshold`, `value`, `impurity` and
        `n_node_samples`, as scikit-learn has them; and those of `lemmata.tree` for categories and missing values.
    feature_names : What to call the columns.
    class_names : Labels of the classes; None for a regression.
    categories : Labels of the categories of each column, None for a column of numbers.
    missing : Which columns lack values; for these, lines say where rows without a value go.
    measure : What to call the impurity; "sd" takes its root, since the spread of a target is read in the target's units.
    max_depth : Levels to draw below the root; None draws what can be read.
    name : What to write above the plot, before the size of the tree.

    Attributes
    ----------
    nodes_ : Numbers of the nodes drawn, the root first.
    places_, sizes_ : Centers of their boxes, and widths and heights, in points.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(random_state=0).fit([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "a"])
    >>> display = TreeDisplay.from_estimator(model, feature_names=["width"])
    >>> display.ax_.get_title(), [display.split(node).rule for node in (0, 2)]
    ('DecisionTreeClassifier: 3 leaves, depth 2', ['width ≤ 2.5', 'width ≤ 3.5'])
    """

    def __init__(
        self,
        *,
        tree: Any,
        feature_names: Sequence[str],
        class_names: Sequence[str] | None = None,
        categories: Sequence[Any] | None = None,
        missing: np.ndarray | None = None,
        measure: str = "impurity",
        max_depth: int | None = None,
        name: str | None = None,
    ) -> None:
        self.tree = tree
        self.feature_names = feature_names
        self.class_names = class_names
        self.categories = categories
        self.missing = missing
        self.measure = measure
        self.max_depth = max_depth
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        max_depth: int | None = None,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[str] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot a fitted tree, ours or scikit-learn's, or a bare `lemmata.tree.nodes.Tree`.

        Parameters
        ----------
        X : Rows that tell which columns lack values: the picture then says where rows without one go. y is not looked at.
        """
        tree = getattr(estimator, "tree_", estimator)
        if feature_names is None:
            known = getattr(estimator, "feature_names_in_", None)
            columns = getattr(estimator, "n_features_in_", int(np.max(tree.feature, initial=0)) + 1)
            feature_names = [f"x{j}" for j in range(columns)] if known is None else list(known)
        if class_names is None and hasattr(estimator, "classes_"):
            class_names = list(estimator.classes_)
        criterion = getattr(estimator, "criterion", "impurity")
        return cls(
            tree=tree,
            feature_names=[str(n) for n in feature_names],
            class_names=None if class_names is None else [str(c) for c in class_names],
            categories=getattr(estimator, "categories_", None),
            missing=None if X is None else lacking(X),
            measure=MEASURES.get(criterion, str(criterion)),
            max_depth=max_depth,
            name=type(estimator).__name__ if name is None else name,
        ).plot(ax)

    def split(self, node: int) -> Split:
        """Return what a node asks."""
        column = int(self.tree.feature[node])
        name, threshold = clipped(self.feature_names[column], LETTERS), self.tree.threshold[node]
        if np.isinf(threshold):  # rows that have a value go left, and those that have none go right
            return Split(f"{name} is there", None)
        known = self.missing is None or not self.missing[column]
        missing = None if known else "left" if self.tree.missing_go_to_left[node] else "right"
        return Split(f"{name} {self._condition(node, column)}", missing)

    def _condition(self, node: int, column: int) -> str:
        sets = getattr(self.tree, "category_set", None)
        if sets is None or sets[node] < 0:
            return f"≤ {readable(self.tree.threshold[node])}"
        known = None if self.categories is None else self.categories[column]
        labels = [clipped(str(code if known is None else known[code]), LETTERS) for code in self.tree.categories_left(node)]
        if len(labels) == 1:
            return f"= {labels[0]}"
        shown = int((np.cumsum([len(label) + 2 for label in labels]) < 1.6 * LETTERS).sum())
        rest = len(labels) - max(shown, 1)
        return f"in {{{', '.join(labels[: max(shown, 1)])}{f' and {rest} more' if rest else ''}}}"

    def plot(self, ax: Any = None) -> Self:
        """Lay out the tree, downwards or to the right, whichever can be read better; then draw lines and nodes."""
        depth = depths(self.tree)
        levels = self._levels(depth)
        self.nodes_ = nodes = preorder(self.tree, depth, levels)
        inner = (self.tree.children_left[nodes] >= 0) & (depth[nodes] < levels)
        number = {int(node): i for i, node in enumerate(nodes)}
        parents = [-1] * len(nodes)
        for i in np.flatnonzero(inner):
            for child in (self.tree.children_left[nodes[i]], self.tree.children_right[nodes[i]]):
                parents[number[int(child)]] = int(i)
        splits = [self.split(node) if own else None for node, own in zip(nodes, inner, strict=True)]
        answers = [self._answer(nodes, parents, splits, i) for i in range(len(nodes))]
        words = np.array([text_width(answer, SMALL) for answer in answers])
        page = np.array(LARGEST) if ax is None else ax.get_window_extent().size / ax.figure.dpi
        layouts = []
        for down in (True, False):
            texts = [self._texts(node, split, levels == depth[node], down) for node, split in zip(nodes, splits, strict=True)]
            sizes = np.array([self._size(*text, down or bool(own)) for text, own in zip(texts, inner, strict=True)])
            places, gates = placed(parents, sizes, depth[nodes], words, down)
            extent = np.ptp(np.vstack([places - sizes / 2, places + sizes / 2]), axis=0) / 72
            layouts.append((min(1.0, *(page / extent)), texts, sizes, places, gates))
        down = layouts[0][0] * SIDEWAYS >= layouts[1][0]
        _, texts, self.sizes_, self.places_, gates = layouts[not down]
        ways = [way_to(self.places_, self.sizes_, i, parent, gates[i], down) for i, parent in enumerate(parents)]
        self._draw(ax, inner, ways, texts, answers, down)
        return self

    def _levels(self, depth: np.ndarray) -> int:
        """Choose how many levels to draw."""
        deepest = int(depth.max())
        if self.max_depth is not None:
            return min(deepest, self.max_depth)
        leaf = np.asarray(self.tree.children_left) < 0
        ends = [int(((depth == level) | (leaf & (depth < level))).sum()) for level in range(min(deepest, MOST_LEVELS) + 1)]
        return max(level for level, many in enumerate(ends) if many <= MOST_LEAVES or level <= 1)

    def _answer(self, nodes: np.ndarray, parents: list[int], splits: list[Split | None], i: int) -> str:
        """Say what rows have in common that come from the parent to a node."""
        if parents[i] < 0:
            return ""
        left = self.tree.children_left[nodes[parents[i]]] == nodes[i]
        split = splits[parents[i]]
        return ("yes" if left else "no") + (", missing" if split and split.missing == ("left" if left else "right") else "")

    def _texts(self, node: int, split: Split | None, cut: bool, down: bool) -> tuple[str, list[str]]:
        """Give the head of a node and the small lines below it, or beside it at a leaf of a tree that grows to the right."""
        value, impurity = np.asarray(self.tree.value[node]).ravel(), float(self.tree.impurity[node])
        many = int(self.tree.n_node_samples[node])
        told = [f"{many:,} row" + "s" * (many != 1)]
        told.append(f"{self.measure} {readable(np.sqrt(max(impurity, 0.0)) if self.measure == 'sd' else impurity, 3)}")
        value_name = {"sd": "mean", "deviation": "median"}.get(self.measure, "value")
        mean = f"{value_name} {readable(value[0])}"
        if split is not None:
            return split.rule, [", ".join(told if self.class_names is not None else [told[0], mean])]
        head = mean if self.class_names is None else clipped(self.class_names[int(value.argmax())], LETTERS)
        head += " …" if cut and self.tree.children_left[node] >= 0 else ""
        return head, told if down else [", ".join(told)]

    def _size(self, head: str, tail: list[str], stacked: bool) -> tuple[float, float]:
        bar = 0.0 if self.class_names is None else BAR + 3.0
        wide = [text_width(head, FONT), *(text_width(line, SMALL) for line in tail)]
        if stacked:
            return max(wide) + PAD[0], STEP * (1 + len(tail)) + PAD[1] + bar
        return sum(wide) + 8.0 + PAD[0], STEP + PAD[1] + bar

    def _draw(self, ax: Any, inner: np.ndarray, ways: list, texts: list, answers: list[str], down: bool) -> None:
        nodes, places, sizes = self.nodes_, self.places_, self.sizes_
        corners = [places - sizes / 2, places + sizes / 2]
        keys = self._keys(corners)
        ax, scale = canvas(ax, [*corners, *keys], self._title())
        rows = np.asarray(self.tree.n_node_samples, dtype=float)
        for node, way, answer in zip(nodes[1:], ways[1:], answers[1:], strict=True):
            width = (0.7 + 3.3 * rows[node] / rows[0]) * scale
            ax.plot(*way.T, color=NEUTRAL, lw=width, zorder=2, solid_joinstyle="round", solid_capstyle="butt")
            _write_answer(ax, way, answer, scale, down)
        colors = class_colors(len(self.class_names)) if self.class_names is not None else []
        for i, node in enumerate(nodes):
            color, face = self._color(node, colors)
            cut = not inner[i] and self.tree.children_left[node] >= 0
            edge = 1.1 if inner[i] else 1.6
            box(ax, places[i], sizes[i], color=color, face=face, round=5.0, scale=scale, edge=edge, dashed=cut)
            self._write(ax, i, *texts[i], down or bool(inner[i]), scale)
            if colors:
                self._shares(ax, places[i], sizes[i], self.tree.value[node], colors, scale)
        if keys:
            self._write_keys(ax, keys, colors, scale)
        self.ax_, self.figure_ = ax, ax.figure

    def _title(self) -> str:
        leaves, deepest = int((np.asarray(self.tree.children_left) < 0).sum()), int(depths(self.tree).max())
        drawn = int(depths(self.tree)[self.nodes_].max())
        told = f"{leaves:,} " + ("leaf" if leaves == 1 else "leaves") + f", depth {deepest}"
        told += "" if drawn == deepest else f", {drawn} level{'s' * (drawn != 1)} drawn"
        return f"{self.name}: {told}" if self.name else told

    def _color(self, node: int, colors: list[Any]) -> tuple[Any, float]:
        """Give the color of a node and how strong it is: the most frequent class; or how far the mean is from that of all."""
        value = np.asarray(self.tree.value[node], dtype=float).ravel()
        if colors:
            return colors[int(value.argmax())], 0.10
        means = np.asarray(self.tree.value, dtype=float).reshape(len(self.tree.feature), -1)[:, 0]
        away, reach = means[node] - means[0], np.abs(means - means[0]).max()
        return CLASS_COLORS[int(away > 0)], 0.04 + (0.5 * abs(away) / reach if reach > 0 else 0.0)

    def _write(self, ax: Any, i: int, head: str, tail: list[str], stacked: bool, scale: float) -> None:
        (x, y), (wide, tall) = self.places_[i], self.sizes_[i]
        style = {"va": "center_baseline", "color": ink(), "zorder": 5}
        top = y + tall / 2 - PAD[1] / 2 - STEP / 2
        if not stacked:
            left, right = x - (wide - PAD[0]) / 2, x + (wide - PAD[0]) / 2
            ax.text(left, top, head, ha="left", fontsize=FONT * scale, **style)
            ax.text(right, top, tail[0], ha="right", fontsize=SMALL * scale, **style)
            return
        ax.text(x, top, head, ha="center", fontsize=FONT * scale, **style)
        for k, line in enumerate(tail, start=1):
            ax.text(x, top - STEP * k, line, ha="center", fontsize=SMALL * scale, **style)

    def _shares(self, ax: Any, place: np.ndarray, size: np.ndarray, value: Any, colors: list[Any], scale: float) -> None:
        """Draw the bar of class shares at the foot of a node."""
        share = np.asarray(value, dtype=float).ravel()
        share = share / share.sum()
        wide, left = size[0] - PAD[0], place[0] - (size[0] - PAD[0]) / 2
        y = place[1] - size[1] / 2 + 4.0 + BAR / 2
        ends = left + wide * np.concatenate([[0.0], np.cumsum(share)])
        for k in np.flatnonzero(share > 0):
            middle = (ends[k] + ends[k + 1]) / 2
            box(ax, (middle, y), (ends[k + 1] - ends[k], BAR), color=colors[k], face=0.9, round=0.0, scale=scale, edge=0.0)

    def _keys(self, corners: list[np.ndarray]) -> list[np.ndarray]:
        """Give the corners of the line of class names below the tree, if there is to be one."""
        if self.class_names is None or not 1 < len(self.class_names) <= MOST_KEYED:
            return []
        wide = sum(text_width(clipped(c, LETTERS), SMALL) + 26.0 for c in self.class_names) - 12.0
        middle, low = (corners[0].min(axis=0)[0] + corners[1].max(axis=0)[0]) / 2, corners[0].min(axis=0)[1]
        return [np.array([[middle - wide / 2, low - 26.0], [middle + wide / 2, low - 14.0]])]

    def _write_keys(self, ax: Any, keys: list[np.ndarray], colors: list[Any], scale: float) -> None:
        (x, low), (_, high) = keys[0]
        assert self.class_names is not None
        for label, color in zip(self.class_names, colors, strict=True):
            text = clipped(label, LETTERS)
            box(ax, (x + 4.0, (low + high) / 2), (8.0, BAR), color=color, face=0.9, round=0.0, scale=scale, edge=0.0)
            style = {"va": "center_baseline", "fontsize": SMALL * scale, "color": ink(), "zorder": 5}
            ax.text(x + 12.0, (low + high) / 2, text, ha="left", **style)
            x += text_width(text, SMALL) + 26.0


def _write_answer(ax: Any, way: np.ndarray, answer: str, scale: float, down: bool) -> None:
    """Write above the part of a line that goes sideways: at its outer end if the tree grows down, else before the child."""
    style = {"fontsize": SMALL * scale, "color": NEUTRAL, "zorder": 5, "va": "bottom"}
    if down:
        left = way[-1, 0] < way[0, 0]
        ax.text(way[-1, 0], way[2, 1] + 3.0, answer, ha="left" if left else "right", **style)
    else:
        ax.text(way[-1, 0] - 4.0, way[-1, 1] + 2.5, answer, ha="right", **style)


def lacking(X: Any) -> np.ndarray:
    """Tell which columns of a table lack values.

    >>> lacking([[1.0, np.nan], [2.0, 3.0]])
    array([False,  True])
    """
    if hasattr(X, "isna"):
        return np.asarray(X.isna().any())
    return np.array([any(x is None or x != x for x in column) for column in zip(*X, strict=True)])
