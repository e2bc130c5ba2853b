"""The bars and curves of bounds have the lengths of the bounds."""

import math

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from lemmata.linear_model import LinearRegression, LogisticRegression, Ridge
from lemmata.plot import BoundCurveDisplay, GuaranteeDisplay
from lemmata.plot.drawing import NEUTRAL
from lemmata.plot.guarantee import BOUND
from lemmata.theory.guarantees.bound import Bound, Guarantee
from lemmata.theory.guarantees.guarantee import guarantee


def halves(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.where(X @ [2.0, -1.0] + 0.5 * rng.logistic(size=n) > 0, "yes", "no")


def made(*values, **facts):
    """Give a guarantee of bounds that are written down, each growing as δ shrinks."""
    bounds = [
        Bound(
            f"bound {j} of a rather long name, as theorems have",
            v,
            0.05,
            0.1,
            lambda d, v=v: v + 0.02 * math.log(0.05 / d),
            **facts,
        )
        for j, v in enumerate(values)
    ]
    return Guarantee(tuple(bounds), {}, {b.name: 1 / len(bounds) for b in bounds}, 0.05, "model")


def bars(display, color):
    from matplotlib.colors import to_rgb

    patches = [p for p in display.ax_.patches if to_rgb(p.get_facecolor()) == to_rgb(color)]
    return [(round(p.get_y() + p.get_height() / 2), p.get_width(), p.get_alpha()) for p in patches]


def star(display):
    (found,) = [line for line in display.ax_.lines if line.get_marker() == "*"]
    return found.get_xdata()[0], found.get_ydata()[0]


def test_bars_are_the_bounds_of_the_library():
    X, y = halves()
    model = LogisticRegression().fit(X[:200], y[:200])
    result = guarantee(model, X[:200], y[:200], holdout=(X[200:], y[200:]))
    display = GuaranteeDisplay.from_estimator(model, X[:200], y[:200], holdout=(X[200:], y[200:]))
    useful = [(row, b.value) for row, b in enumerate(result) if not b.vacuous]
    assert len(useful) > 3
    light = [(row, width) for row, width, alpha in bars(display, BOUND) if alpha is not None]
    assert [row for row, _ in light] == [row for row, _ in useful]
    assert_allclose([width for _, width in light], [value for _, value in useful])
    dark = [width for _, width, alpha in bars(display, BOUND) if alpha is None]
    assert_allclose(dark, [b.observed for b in result])
    assert_allclose(star(display), [result.best.value, [b.name for b in result].index(result.best.name)])
    dashed = [line.get_xdata()[0] for line in display.ax_.lines if len(line.get_xdata()) == 2]
    assert_allclose(dashed, [b.trivial for b in result])
    assert f"risk ≤ {result.best.value:.3g}" in display.ax_.get_title(loc="left")
    assert display.ax_.get_xlim() == (0, 1)
    display.figure_.canvas.draw()


def test_the_star_pays_for_the_choice():
    display = GuaranteeDisplay.from_guarantee(made(0.3, 0.2, 0.25, trivial=0.5))
    assert_allclose(star(display), [0.2 + 0.02 * math.log(3), 0])
    assert [b.value for b in display.bounds] == [0.2, 0.25, 0.3]


def test_vacuous_bounds_are_gray_cut_and_named():
    display = GuaranteeDisplay.from_guarantee(made(0.3, 7.5, 1.0))
    assert [(row, width) for row, width, _ in bars(display, NEUTRAL)] == [(1, 1.0), (2, 1.0)]
    words = [(t.get_text(), t.get_position()[1]) for t in display.ax_.texts if t.get_text() == "vacuous"]
    assert words == [("vacuous", 1), ("vacuous", 2)]
    nothing = GuaranteeDisplay.from_guarantee(made(1.5, 2.0))
    assert "Nothing can be promised" in nothing.ax_.get_title(loc="left")
    assert not [line for line in nothing.ax_.lines if line.get_marker() == "*"]


def test_many_long_names_do_not_overlap():
    display = GuaranteeDisplay.from_guarantee(made(*np.linspace(0.1, 1.3, 12), trivial=0.3))
    display.figure_.canvas.draw()
    for texts in (display.ax_.get_yticklabels(), [t for t in display.ax_.texts if t.get_text()]):
        boxes = [text.get_window_extent() for text in texts]
        clashes = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
        assert not clashes
    assert all(text.get_window_extent().x0 >= 0 for text in display.ax_.get_yticklabels())
    (title,) = [t for t in display.ax_.get_children() if getattr(t, "get_text", str)() == display.ax_.get_title(loc="left")]
    assert not title.get_window_extent().overlaps(display.ax_.get_legend().get_window_extent())


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5, 1e9])
def test_large_numbers_do_not_run_into_the_remarks(scale):
    display = GuaranteeDisplay(made(0.165 * scale, 0.3 * scale, trivial=0.1 * scale, limit=scale)).plot()
    display.figure_.canvas.draw()
    texts = [text for text in display.ax_.texts if text.get_text()]
    boxes = [text.get_window_extent() for text in texts]
    assert [text.get_text() for text in texts].count("no better than a constant") == 2
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    plt.close(display.figure_)


def test_another_quantity_is_counted_and_not_drawn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X @ [1.0, 2.0] + rng.normal(size=400)
    model = Ridge().fit(X[:200], y[:200])
    options = {"holdout": (X[200:], y[200:]), "upper": 5.0, "tolerance": 2.0}
    display = GuaranteeDisplay.from_estimator(model, X[:200], y[:200], **options)
    result = guarantee(model, X[:200], y[:200], **options)
    assert {b.risk for b in display.bounds} == {"mean of the clipped absolute error"}
    assert f"({len(result) - len(display.bounds)} bounds of other quantities are not shown)" in display.ax_.get_xlabel()
    assert display.ax_.get_xlim() == (0, 5)
    quantile = GuaranteeDisplay.from_estimator(model, holdout=(X[200:], y[200:]))  # has no limit at all
    assert quantile.ax_.get_xlim()[1] == pytest.approx(1.1 * max(b.value for b in quantile.bounds))


def test_no_bound_is_an_error_with_its_reason():
    X, y = halves(100)
    with pytest.raises(ValueError, match=r"There is no bound to show\. growth function: "):
        GuaranteeDisplay.from_estimator(SVC().fit(X, y), X, y)
    with pytest.raises(ValueError, match="Give unseen rows"):
        GuaranteeDisplay(Guarantee((), {}, {}, 0.05))


def test_axes_can_be_given():
    figure, (first, second) = plt.subplots(1, 2)
    display = GuaranteeDisplay.from_guarantee(made(0.3), ax=first, name="mine")
    assert display.ax_ is first
    figure.canvas.draw()
    assert display.ax_.get_title(loc="left").startswith("mine\n")
    assert BoundCurveDisplay.from_formulas({"a": lambda n: 1 / n}, [1, 10], ax=second).figure_ is figure
    assert len(plt.get_fignums()) == 1


def curve(display, label):
    (found,) = [line for line in display.ax_.lines if line.get_label().replace("\n", " ") == label]
    return found.get_xdata(), found.get_ydata()


def test_curves_are_guarantees_of_growing_parts():
    X, y = halves(300)
    unseen = halves(200, seed=1)
    sizes = [40, 120, 300]
    display = BoundCurveDisplay.from_estimator(LogisticRegression(), X, y, sizes=sizes, test=unseen, delta=0.1, random_state=3)
    order = np.random.default_rng(3).permutation(300)
    for i, n in enumerate(sizes):
        rows, labels = X[order[:n]], y[order[:n]]
        model = LogisticRegression().fit(rows, labels)
        for bound in guarantee(model, rows, labels, 0.1):
            name = bound.name + (" (of the random classifier)" if bound.target == "gibbs" else "")
            assert display.bounds[name][i] == pytest.approx(bound.value, rel=1e-9)
        assert display.training[i] == np.mean(model.predict(rows) != labels)
        assert display.test[i] == np.mean(model.predict(unseen[0]) != unseen[1])
    assert display.ax_.get_xscale() == "log"
    assert_array_equal(curve(display, "training error")[1], display.training)
    assert_array_equal(curve(display, "test error")[1], display.test)
    for name in display.shown:
        x, values = curve(display, name)
        assert_array_equal(x, sizes)
        assert_array_equal(values, display.bounds[name])
    display.figure_.canvas.draw()


def test_few_curves_the_smallest_in_the_end():
    X, y = halves(200)
    display = BoundCurveDisplay.from_estimator(LogisticRegression(), X, y, sizes=[100, 200], max_curves=2)
    useful = sorted(v[-1] for v in display.bounds.values() if (v < 1).any())
    assert [display.bounds[name][-1] for name in display.shown] == useful[:2]
    entries = " ".join(t.get_text().replace("\n", " ") for t in display.ax_.get_legend().get_texts())
    assert all(name in entries for name in display.bounds)  # the others are named
    assert "test error" not in entries


def test_default_sizes_reach_all_rows_and_repeat():
    X, y = halves(150)
    tree = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0)
    one, two = (BoundCurveDisplay.from_estimator(tree, X, y) for _ in range(2))
    assert one.sizes[0] == 20
    assert one.sizes[-1] == 150
    assert one.bounds.keys() == two.bounds.keys()
    for name, values in one.bounds.items():
        assert_array_equal(values, two.bounds[name])
    assert not hasattr(tree, "tree_")  # it was a copy that was fitted


def test_formulas_are_drawn_as_they_are():
    formulas = {"Hoeffding": lambda n: math.sqrt(math.log(20) / (2 * n)), "vacuous": lambda n: 2.0}
    display = BoundCurveDisplay.from_formulas(formulas, sizes=[10, 100, 1000], name="two formulas")
    x, values = curve(display, "Hoeffding")
    assert_array_equal(x, [10, 100, 1000])
    assert_allclose(values, [math.sqrt(math.log(20) / (2 * n)) for n in x])
    assert display.shown == ["Hoeffding"]
    assert any("vacuous at all sizes" in t.get_text().replace("\n", " ") for t in display.ax_.get_legend().get_texts())
    assert display.ax_.get_title() == "two formulas"
    assert BoundCurveDisplay.from_formulas({"a": lambda n: 1 / n}).sizes[-1] == 10**6


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([10, 500], "ask for 500 rows, and there are 100"),
        ([0, 10], "whole numbers"),
        ([10.5], "whole numbers"),
        ([], "whole numbers"),
    ],
)
def test_sizes_that_cannot_be_are_named(sizes, message):
    X, y = halves(100)
    with pytest.raises(ValueError, match=message):
        BoundCurveDisplay.from_estimator(LogisticRegression(), X, y, sizes=sizes)


def test_what_has_no_curve_is_said():
    X, _ = halves(100)
    with pytest.raises(ValueError, match="LinearRegression is no classifier"):
        BoundCurveDisplay.from_estimator(LinearRegression(), X, X[:, 0])
    with pytest.raises(ValueError, match="The first 10 rows have the one class a"):
        BoundCurveDisplay.from_estimator(LogisticRegression(), X, np.array(["a"] * 99 + ["b"]), sizes=[10, 100], random_state=0)
    with pytest.raises(ValueError, match="nothing to plot"):
        BoundCurveDisplay.from_formulas({})
