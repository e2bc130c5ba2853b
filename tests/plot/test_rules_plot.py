"""Rules are drawn where they are, in the color of their lift, with labels that hide no other."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.text import Text
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from lemmata.association import Apriori, association_rules, frequent_itemsets
from lemmata.plot import RuleNetworkDisplay, RulesDisplay
from lemmata.plot.drawing import NEUTRAL
from lemmata.plot.point_labels import FONT, free_spot, on_line
from lemmata.plot.rules import lift_colors, round_ticks

NAMES = np.array(["bread", "butter", "jam", "milk", "tea", "salt", "pasta", "sauce of $1"], dtype=object)


def baskets(seed=0, n=600):
    """Jam goes with bread and butter, sauce with pasta; who has tea has less milk, which is popular."""
    rng = np.random.default_rng(seed)
    held = rng.random((n, 8)) < [0.5, 0.4, 0.15, 0.7, 0.2, 0.3, 0.3, 0.1]
    held[:, 2] |= held[:, 0] & held[:, 1] & (rng.random(n) < 0.6)
    held[:, 7] |= held[:, 6] & (rng.random(n) < 0.6)
    held[:, 3] &= ~held[:, 4] | (rng.random(n) < 0.7)
    return [NAMES[row].tolist() for row in held]


@pytest.fixture(scope="module")
def rules():
    return association_rules(baskets(), min_support=0.02, min_confidence=0.3, test="fisher")


def boxes(display):
    """Measure the labels of a figure that is drawn."""
    display.figure_.canvas.draw()
    return np.array([Text.get_window_extent(text).extents for text in display.ax_.texts])  # of an annotation without its line


@pytest.mark.parametrize("by", ["lift", "leverage", "p_value"])
def test_points_are_the_best_rules(rules, by):
    _, ax = plt.subplots()
    display = RulesDisplay.from_rules(rules, by=by, max_rules=40, ax=ax)
    assert display.ax_ is ax
    value = rules[by]
    kept = np.sort(np.sort(value)[:40] if by == "p_value" else np.sort(value)[-40:])
    frame = rules.to_pandas()
    best = frame.sort_values(by, ascending=by == "p_value", kind="stable")[:40]
    assert_array_equal(np.sort(best[by]), kept)
    points = ax.collections[0]
    found, expected = points.get_offsets(), best[["support", "confidence"]].to_numpy()
    assert_allclose(found[np.lexsort(found.T)], expected[np.lexsort(expected.T)], rtol=1e-12)
    assert ax.get_title() == f"40 of {len(rules)} rules, by {by.replace('_', ' ')}"
    distance = np.abs(np.log(display.lift))
    order = np.argsort(distance, kind="stable")  # what is furthest from chance is drawn last
    assert_allclose(found, np.column_stack([display.support, display.confidence])[order], rtol=1e-12)


def test_the_color_is_the_lift():
    lift = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
    colors = lift_colors(lift).to_rgba(lift)
    assert_allclose(colors[2], to_rgba(NEUTRAL), atol=0.02)  # a step of 256
    assert colors[0, 2] > colors[0, 0]  # blue below 1
    assert colors[1, 2] > colors[1, 0]
    assert colors[3, 2] < colors[3, 0]  # orange above
    assert colors[4, 2] < colors[4, 0]
    norm = lift_colors(np.array([0.25, 8.0])).norm
    assert_allclose(norm([0.25, 0.5, 1.0, 2.0, 4.0, 8.0]), [0, 1 / 4, 1 / 2, 2 / 3, 5 / 6, 1], atol=1e-12)  # by logarithms
    assert_allclose(norm.inverse([0.25, 2 / 3]), [0.5, 2.0], rtol=1e-12)
    near = lift_colors(np.array([0.98, 1.03]))
    assert np.abs(near.to_rgba([0.98, 1.03]) - to_rgba(NEUTRAL)).max() < 0.1  # of almost nothing no picture is made


def test_the_bar_shows_the_lifts_that_there_are(rules):
    display = RulesDisplay.from_rules(rules)
    bar = display.figure_.axes[1]
    assert_allclose(bar.get_ylim(), [min(1, display.lift.min()), display.lift.max()])
    marks = [float(text.get_text()) for text in bar.get_yticklabels()]
    assert 1.0 in marks
    assert_allclose(marks, bar.get_yticks(), rtol=1e-6)


@pytest.mark.parametrize(("low", "high"), [(1, 1.002), (0.97, 1), (0.2, 40), (1, 3e4), (0.3, 0.9), (0.0051, 0.0052)])
def test_there_are_some_round_marks_within_an_axis(low, high):
    marks = np.array(round_ticks(low, high))
    assert 3 <= len(marks) <= 12
    assert (marks >= low * 0.999).all()
    assert (marks <= high * 1.001).all()
    assert all(len(f"{mark:g}") <= 7 for mark in marks)


@pytest.mark.parametrize(("seed", "confidence"), [(0, 0.0), (1, 0.3), (2, 0.7)])
def test_labels_hide_no_other_label(seed, confidence):
    found = association_rules(baskets(seed), min_support=0.02, min_confidence=confidence)
    display = RulesDisplay.from_rules(found, labels=12)
    inner, edge = boxes(display), display.ax_.get_window_extent().extents
    assert 5 <= len(inner) == len(display.labelled_) <= 12
    for i, a in enumerate(inner):
        for b in inner[:i]:
            assert (a[:2] > b[2:] - 1).any() or (b[:2] > a[2:] - 1).any()  # a pixel for what a font adds to its outline
        assert (a[:2] > edge[:2] - 1).all()
        assert (a[2:] < edge[2:] + 1).all()
    rings = display.ax_.collections[1].get_offsets()
    pixels, size = display.ax_.transData.transform(rings), FONT * display.figure_.dpi / 72
    for i, a in enumerate(inner):  # a label is near its point, and on none that has another
        gap = np.maximum(np.maximum(a[:2] - pixels[i], pixels[i] - a[2:]), 0).max()
        assert gap < 8 * size
        others = np.delete(pixels, i, axis=0)
        assert not ((others > a[:2] + 1) & (others < a[2:] - 1)).all(axis=1).any()


def test_labels_say_the_best_rules_of_different_sets(rules):
    display = RulesDisplay.from_rules(rules, labels=3)
    frame = rules.to_pandas().sort_values("lift", ascending=False, kind="stable").reset_index(drop=True)
    both = [a | b for a, b in zip(frame["antecedent"], frame["consequent"], strict=True)]
    firsts = [i for i, union in enumerate(both) if union not in both[:i]]
    tried = list(display.labels)
    assert tried == firsts[: len(tried)]
    assert set(display.labelled_) <= set(tried)
    left, right = (", ".join(sorted(frame[side][0])) for side in ("antecedent", "consequent"))
    assert display.labels[0] == f"{left} ⇒ {right}"
    assert len(display.ax_.texts) == 3


def test_labels_may_be_chosen(rules):
    sides = list(zip(rules["antecedent"], rules["consequent"], strict=True))
    trap = sides.index(({"tea"}, {"milk"}))
    display = RulesDisplay.from_rules(rules, labels=[trap])
    assert [text.get_text() for text in display.ax_.texts] == ["tea ⇒ milk"]
    (i,) = display.labelled_
    assert display.lift[i] == rules["lift"][trap] < 1
    assert not RulesDisplay.from_rules(rules, labels=0).ax_.texts


def test_a_free_spot_is_beside_or_nowhere():
    size, frame, far = np.array([20.0, 10.0]), np.array([0.0, 0.0, 60.0, 60.0]), np.array([[300.0, 300.0]])
    place = np.array([30.0, 30.0])
    assert free_spot(place, size, 5.0, frame, np.array([[0.0, 0.0, 60.0, 60.0]]), far) is None
    assert free_spot(place, np.array([70.0, 10.0]), 5.0, frame, np.empty((0, 4)), far) is None  # wider than the axes
    assert free_spot(place, size, 5.0, frame, np.array([[25.0, 25.0, 35.0, 35.0]]), far) is None  # its point is hidden
    crowd = place + np.array([[15.0, 0.0]] * 9)
    middle, away = free_spot(place, size, 5.0, frame, np.empty((0, 4)), crowd)
    assert_array_equal(middle, [15.0, 30.0])  # on the other side
    assert not away
    line = on_line(np.zeros(2), np.array([30.0, 40.0]), np.array([20.0, 10.0]))
    assert_allclose(line[-1] * [40, 30], line[-1][::-1] * [30, 40])  # it stays on its way
    assert_allclose(np.abs(line[-1] - [30, 40]) / [10, 5], [0.375, 1.0])  # and ends at the lower edge


@pytest.mark.parametrize("make", ["to_pandas", "to_polars", "to_arrow"])
def test_frames_are_rules_too(rules, make):
    ours, theirs = RulesDisplay.from_rules(rules), RulesDisplay.from_rules(getattr(rules, make)())
    for name in ("support", "confidence", "lift"):
        assert_array_equal(getattr(ours, name), getattr(theirs, name))
    assert ours.labels == theirs.labels
    network, same = RuleNetworkDisplay.from_rules(rules), RuleNetworkDisplay.from_rules(getattr(rules, make)())
    assert network.items == same.items
    assert_array_equal(network.places_, same.places_)


def test_what_is_missing_is_said(rules):
    with pytest.raises(ValueError, match="Rules need a column 'antecedent' to be drawn; there are antecedents, lift"):
        RulesDisplay.from_rules(pd.DataFrame({"antecedents": [{"a"}], "lift": [1.0]}))
    with pytest.raises(ValueError, match=r"Rules come from association_rules, .*; got Itemsets"):
        RulesDisplay.from_rules(frequent_itemsets([["tea", "milk"]], 1))
    with pytest.raises(ValueError, match="ranked by a column of numbers, such as 'lift'; 'antecedent' holds sets"):
        RulesDisplay.from_rules(rules, by="antecedent")
    with pytest.raises(ValueError, match="a column 'zhang'"):
        RuleNetworkDisplay.from_rules(rules, by="zhang")
    with pytest.raises(NotFittedError):
        Apriori().plot()
    with pytest.raises(NotFittedError):
        RuleNetworkDisplay.from_estimator(Apriori())


def test_a_model_shows_its_rules():
    model = Apriori(0.02).fit(baskets())
    display = model.plot()
    assert isinstance(display, RulesDisplay)
    assert_array_equal(np.sort(display.lift), np.sort(model.rules()["lift"]))
    assert display.ax_.get_title() == f"Apriori, confidence ≥ 0.8: {len(model.rules())} rules"
    low = RulesDisplay.from_estimator(model, min_confidence=0.0, name="all")
    assert low.ax_.get_title() == f"all: {len(model.rules(min_confidence=0.0)):,} rules"
    few = RuleNetworkDisplay.from_estimator(model, max_rules=1)
    assert few.ax_.get_title() == f"Apriori, confidence ≥ 0.8: 1 of {len(model.rules())} rules, by lift"
    vague = Apriori(0.1).fit([["a"], ["b"], ["a", "b"], ["b"]] * 3 + [["a"]] * 4)  # nothing is confident at 0.8
    assert vague.plot().ax_.get_title() == "Apriori, confidence ≥ 0.2: 2 rules"


@pytest.mark.parametrize("display", [RulesDisplay, RuleNetworkDisplay])
def test_no_rules_are_a_picture_too(display, rules):
    for empty in (rules.head(0), rules.head(0).to_pandas()):
        drawn = display.from_rules(empty)
        assert [text.get_text() for text in drawn.ax_.texts] == ["no rules"]
        assert drawn.ax_.get_title() == "0 rules"
    alone = Apriori(0.9).fit([["a"], ["a"]])
    assert display.from_estimator(alone).ax_.get_title() == "Apriori: 0 rules"


def test_supports_of_all_sizes_have_a_logarithmic_axis():
    wide = RulesDisplay(support=[0.001, 0.01, 0.1], confidence=[0.5, 0.6, 0.7], lift=[1.0, 2.0, 0.0]).plot()
    assert wide.ax_.get_xscale() == "log"
    assert [text.get_text() for text in wide.ax_.get_xticklabels()] == ["0.001", "0.01", "0.1"]
    assert RulesDisplay(support=[0.01, 0.1], confidence=[0.5, 0.6], lift=[1.0, 1.0]).plot().ax_.get_xscale() == "linear"


def test_every_rule_ties_its_items_together(rules):
    display = RuleNetworkDisplay.from_rules(rules, max_rules=15)
    best = rules.to_pandas().sort_values("lift", ascending=False, kind="stable")[:15]
    for k, (left, right) in enumerate(zip(best["antecedent"], best["consequent"], strict=True)):
        assert {display.items[i] for i in display.antecedents[k]} == left
        assert {display.items[i] for i in display.consequents[k]} == right
    m = len(display.items)
    assert set(display.items) == set().union(*best["antecedent"], *best["consequent"])
    circles = [patch for patch in display.ax_.patches if isinstance(patch, Circle)]
    centers = np.array([circle.center for circle in circles])
    assert_allclose(centers, display.places_[m:])
    areas = np.array([circle.radius for circle in circles]) ** 2
    assert_allclose(areas / areas.max(), np.maximum(best["support"] / best["support"].max(), (7 / 18) ** 2), rtol=1e-12)
    assert_allclose([c.get_facecolor() for c in circles], lift_colors(display.lift).to_rgba(best["lift"]), atol=1e-12)
    ties = [patch for patch in display.ax_.patches if isinstance(patch, FancyArrowPatch)]
    heads = [isinstance(patch.get_arrowstyle(), mpl.patches.ArrowStyle.CurveFilledB) for patch in ties]
    assert sum(heads) == sum(map(len, best["consequent"]))
    assert len(ties) - sum(heads) == sum(map(len, best["antecedent"]))
    display.figure_.canvas.draw()
    again = RuleNetworkDisplay.from_rules(rules, max_rules=15)
    assert_array_equal(display.places_, again.places_)


def test_items_of_a_network_do_not_overlap_and_are_named(rules):
    display = RuleNetworkDisplay.from_rules(rules, max_rules=25)
    inner = boxes(display)[: len(display.items)]
    for i, a in enumerate(inner):
        assert not any((a[:2] < b[2:]).all() and (b[:2] < a[2:]).all() for b in inner[:i])
    written = [text.get_text() for text in display.ax_.texts]
    assert written[: len(display.items)] == [item.replace("$", r"\$") for item in display.items]
    least, most = display.support.min(), display.support.max()
    assert written[len(display.items) :] == ["lift", f"size: support {least:.2g} to {most:.2g}"]


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_both_papers_and_given_axes(rules, style):
    with plt.style.context(style):
        figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
        assert RulesDisplay.from_rules(rules, ax=left).ax_ is left
        assert RuleNetworkDisplay.from_rules(rules, ax=right).figure_ is figure
        ink = to_rgba(mpl.rcParams["text.color"])
        assert all(to_rgba(text.get_color()) == ink for text in [*left.texts, *right.texts])
        figure.canvas.draw()
