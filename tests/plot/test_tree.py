"""A drawn tree says what the tree does, and every word of it can be read."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.tree import DecisionTreeClassifier as PeerClassifier
from sklearn.tree import DecisionTreeRegressor as PeerRegressor

from lemmata.plot import TreeDisplay
from lemmata.plot.tree import lacking
from lemmata.plot.tree_layout import depths
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor
from lemmata.tree.nodes import Tree


def texts_apart(display, least=0.0):
    """Ask the renderer for the extents of all texts: no two may meet."""
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in display.ax_.texts if text.get_text()]
    assert len(boxes) > len(display.nodes_)
    for a, b in combinations(boxes, 2):
        apart = max(a.x0 - b.x1, b.x0 - a.x1, a.y0 - b.y1, b.y0 - a.y1)
        assert apart >= least


def boxes_apart(display):
    for i, j in combinations(range(len(display.nodes_)), 2):
        way = np.abs(display.places_[i] - display.places_[j])
        assert (way >= (display.sizes_[i] + display.sizes_[j]) / 2 - 1e-9).any()


def lines_clear_of_boxes(display):
    """Lines between nodes go around all boxes but those that they join."""
    half = display.sizes_ / 2 - 1e-6
    for line in display.ax_.lines:
        points = np.column_stack(line.get_data())
        for a, b in pairwise(points):
            between = a + np.linspace(0, 1, 50)[:, None] * (b - a)
            inside = (np.abs(between[:, None] - display.places_) < half).all(axis=2)
            assert not inside.any()


def answers_of(display):
    return [t.get_text() for t in display.ax_.texts if t.get_text().split(",")[0] in ("yes", "no")]


def trees():
    iris, diabetes, digits = load_iris(), load_diabetes(), load_digits()
    yield PeerClassifier(random_state=0).fit(iris.data, iris.target_names[iris.target])
    yield PeerClassifier(random_state=0, max_depth=1).fit(iris.data, iris.target)
    yield PeerClassifier(random_state=0, max_leaf_nodes=31, criterion="entropy").fit(digits.data, digits.target)
    yield PeerRegressor(random_state=0, max_leaf_nodes=30).fit(diabetes.data, diabetes.target)
    yield PeerRegressor(random_state=0, max_depth=3, criterion="absolute_error").fit(diabetes.data, diabetes.target)


@pytest.mark.parametrize("model", list(trees()), ids=range(5))
def test_nothing_overlaps(model):
    display = TreeDisplay.from_estimator(model)
    assert_array_equal(np.sort(display.nodes_), np.arange(model.tree_.node_count))
    boxes_apart(display)
    texts_apart(display)
    lines_clear_of_boxes(display)
    # A parent is in the middle of its children, and children are below it or to the right.
    place = dict(zip(display.nodes_, display.places_, strict=True))
    inner = np.flatnonzero(model.tree_.children_left >= 0)
    down = display.places_[1, 1] < display.places_[0, 1] and place[model.tree_.children_right[0]][0] > display.places_[0, 0]
    for node in inner:
        left, right = place[model.tree_.children_left[node]], place[model.tree_.children_right[node]]
        across = 0 if down else 1
        assert_allclose((left + right)[across] / 2, place[node][across], atol=1e-6)
        assert left[across] < right[across] if down else left[across] > right[across]


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_any_shape_can_be_read(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.where(rng.random(200) < 0.2, rng.integers(3, size=200), np.nansum(X, axis=1) > 0)
    model = PeerClassifier(max_leaf_nodes=int(rng.integers(2, 30)), random_state=seed).fit(X, y)
    display = TreeDisplay.from_estimator(model, X, feature_names=["a", "second column", "a column of a long name indeed", "d"])
    boxes_apart(display)
    texts_apart(display)
    lines_clear_of_boxes(display)
    told = answers_of(display)
    assert len(told) == len(display.nodes_) - 1
    assert sum("missing" in answer for answer in told) == (model.tree_.children_left >= 0).sum() - sum(
        np.isinf(model.tree_.threshold)
    )


def test_rules_are_what_the_tree_does():
    iris = load_iris()
    model = PeerClassifier(random_state=0, max_depth=4).fit(iris.data, iris.target_names[iris.target])
    display = TreeDisplay.from_estimator(model, feature_names="abcd")
    reached = np.zeros(len(iris.data), dtype=int)
    for node in display.nodes_:  # parents come first
        if model.tree_.children_left[node] < 0:
            continue
        column, limit = display.split(node).rule.split(" ≤ ")
        true = iris.data[:, "abcd".index(column)] <= float(limit)
        here = reached == node
        reached[here] = np.where(true, model.tree_.children_left[node], model.tree_.children_right[node])[here]
    assert_array_equal(reached, model.apply(iris.data))
    heads = {t.get_text() for t in display.ax_.texts}
    assert set(iris.target_names) <= heads
    assert "150 rows, gini 0.667" in heads


def test_the_bar_of_a_node_has_the_shares_of_its_classes():
    X, y = np.arange(10.0)[:, None], np.repeat(["a", "b", "c"], [5, 2, 3])
    model = PeerClassifier(max_depth=1, random_state=0).fit(X, y)
    display = TreeDisplay.from_estimator(model)
    wide = [p.get_width() for p in display.ax_.patches if p.get_edgecolor()[3] == 0]
    root = np.array(wide[:3])
    assert_allclose(root / root.sum(), [0.5, 0.2, 0.3])
    assert_allclose(np.array(wide[4:6]) / sum(wide[4:6]), [0.4, 0.6])  # the left child is pure: one bar


def test_a_tree_is_cut_where_one_asks_or_where_it_can_no_longer_be_read():
    digits = load_digits()
    model = PeerClassifier(random_state=0).fit(digits.data, digits.target)
    cut = TreeDisplay.from_estimator(model, max_depth=2)
    depth = depths(model.tree_)
    assert_array_equal(np.sort(cut.nodes_), np.flatnonzero(depth <= 2))
    assert cut.ax_.get_title().endswith(f"{model.get_n_leaves()} leaves, depth {model.get_depth()}, 2 levels drawn")
    assert sum(t.get_text().endswith(" …") for t in cut.ax_.texts) == 4
    readable = TreeDisplay.from_estimator(model)
    assert 16 < len(readable.nodes_) < 70
    texts_apart(readable)
    only = TreeDisplay.from_estimator(model, max_depth=0)
    assert only.nodes_.tolist() == [0]


def test_means_color_the_nodes_of_a_regression():
    model = PeerRegressor(max_depth=1).fit([[0.0], [1.0], [2.0]], [1.0, 1.0, 7.0])
    display = TreeDisplay.from_estimator(model, name="two steps")
    heads = [t.get_text() for t in display.ax_.texts]
    assert heads[2:4] == ["x0 ≤ 1.5", "3 rows, mean 3"]
    assert {"mean 1", "mean 7", "sd 0"} <= set(heads)
    assert display.ax_.get_title() == "two steps: 2 leaves, depth 1"
    root, low, high = display.ax_.patches
    assert root.get_facecolor() != low.get_facecolor() != high.get_facecolor()
    alone = TreeDisplay.from_estimator(PeerRegressor().fit([[0.0], [1.0]], [2.0, 2.0]))
    assert alone.ax_.get_title() == "DecisionTreeRegressor: 1 leaf, depth 0"


def by_hand(sets, missing=False):
    """Make a tree of one split of a categorical column."""
    words = np.zeros((1, 2), dtype=np.uint64)
    for code in sets:
        words[0, code // 64] |= np.uint64(1) << np.uint64(code % 64)
    return Tree(
        feature=np.array([0, -2, -2], dtype=np.int32),
        threshold=np.array([np.nan, -2.0, -2.0]),
        children_left=np.array([1, -1, -1], dtype=np.int32),
        missing_go_to_left=np.array([missing, False, False]),
        category_set=np.array([0, -1, -1], dtype=np.int32),
        left_categories=words,
        value=np.array([[1.0], [0.0], [2.0]]),
        impurity=np.array([1.0, 0.0, 0.0]),
        gain=np.array([1.0, 0.0, 0.0]),
        n_node_samples=np.array([4, 2, 2]),
        weighted_n_node_samples=np.array([4.0, 2.0, 2.0]),
    )


def test_categories_are_named():
    labels = [np.array([f"kind {k}" for k in range(80)])]
    few = TreeDisplay(tree=by_hand([0, 70]), feature_names=["color"], categories=labels)
    assert few.split(0).rule == "color in {kind 0, kind 70}"
    one = TreeDisplay(tree=by_hand([3]), feature_names=["color"], categories=labels)
    assert one.split(0).rule == "color = kind 3"
    many = TreeDisplay(tree=by_hand(range(40)), feature_names=["color"], categories=labels)
    assert many.split(0).rule == "color in {kind 0, kind 1, kind 2, kind 3 and 36 more}"
    bare = TreeDisplay.from_estimator(by_hand([0, 1], missing=True), [["a"], [None]])
    assert bare.split(0) == ("x0 in {0, 1}", "left")
    assert answers_of(bare) == ["yes, missing", "no"]
    assert "4 rows, value 1" in [t.get_text() for t in bare.ax_.texts]


def test_columns_that_lack_values_are_found():
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None], "c": ["x", "y"]})
    assert_array_equal(lacking(frame), [True, True, False])
    assert_array_equal(lacking(frame.to_numpy(dtype=object)), [True, True, False])
    assert_array_equal(lacking(np.eye(2)), [False, False])


def test_our_trees_draw_themselves():
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame({"color": rng.choice(["red", "blue", "green"], 90), "size": rng.normal(size=90)})
    y = np.where((table["color"] == "red") ^ (table["size"] > 0.5), "yes", "no")
    table.loc[::7, "size"] = np.nan
    model = DecisionTreeClassifier(max_depth=3).fit(table, y)
    for display in (model.plot(), model.plot(table, y)):
        assert isinstance(display, TreeDisplay)
        rules = [display.split(node).rule for node in display.nodes_ if model.tree_.children_left[node] >= 0]
        assert any(rule.startswith("color ") for rule in rules)
        assert any(rule.startswith("size ≤ ") for rule in rules)
        texts_apart(display)
    assert {display.split(node).missing for node in display.nodes_ if model.tree_.feature[node] == 1} <= {"left", "right", None}
    assert all(model.plot().split(node).missing is None for node in np.flatnonzero(model.tree_.children_left >= 0))
    steps = DecisionTreeRegressor(max_depth=2).fit(table[["size"]], table["size"].fillna(0.0))
    assert isinstance(steps.plot(), TreeDisplay)
