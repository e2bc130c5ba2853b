"""Regions are the decisions of `Decide`, and curves are the costs that it has."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

from lemmata.decision import Decide
from lemmata.linear_model import LogisticRegression, Perceptron
from lemmata.plot import BoundaryDisplay, CostCurveDisplay, DecisionRegionDisplay, display_for
from lemmata.plot.boundary import RESOLUTION, takes_actions
from lemmata.plot.decision_region import HATCH


def rows(n=200, n_columns=2, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_columns)) + 1
    scores = (X - 1) @ rng.normal(size=(n_columns, k)) * 1.5 + rng.gumbel(size=(n, k))
    return X, np.array(["healthy", "ill", "unknown"])[scores.argmax(axis=1)]


def drawn_lines(display):
    """Give the points of each boundary, and whether it is dashed."""
    found = []
    for drawn in display.ax_.collections:
        if hasattr(drawn, "levels") and not drawn.filled:
            points = np.vstack([np.vstack(p.to_polygons(closed_only=False)) for p in drawn.get_paths()])
            found.append((drawn.get_linestyle()[0][1] is not None, points))
    return found


def hatched(display):
    return [drawn for drawn in display.ax_.collections if getattr(drawn, "hatches", [None]) == [HATCH]]


def test_edges_are_where_expected_costs_tie():
    X, y = rows()
    model = Decide(costs=[[0, 5], [1, 0]], reject_cost=0.3).fit(X, y)
    display = model.plot(X, y)
    assert isinstance(display, DecisionRegionDisplay)
    edges = np.vstack([points for dashed, points in drawn_lines(display) if not dashed])
    least, second = np.sort(model.risk(edges), axis=1)[:, :2].T
    assert_allclose(least, second, atol=2e-3)  # cells are small
    (argmax,) = [points for dashed, points in drawn_lines(display) if dashed]
    assert_allclose(model.predict_proba(argmax)[:, 1], 0.5, atol=1e-6)
    assert len(hatched(display)) == 1
    entries = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert {"decide: healthy", "decide: ill", "refuse to decide"} <= set(entries)
    display.figure_.canvas.draw()


def test_regions_are_the_predictions():
    X, y = rows(k=3)
    model = Decide(GaussianNB(), costs=[[0, 4, 1], [1, 0, 1], [2, 3, 0]], reject_cost=0.4).fit(X, y)
    display = DecisionRegionDisplay.from_estimator(model, X, y)
    best = display.risks.argmin(axis=-1)
    labels = [*model.actions_, "rejected"]
    first, second = display.grid
    for i, j in np.random.default_rng(1).integers(RESOLUTION, size=(60, 2)):
        assert model.predict([[first[j], second[i]]])[0] == labels[best[i, j]]
    assert [labels[k] for k in display.taken] == model.predict(X).tolist()
    assert f"{model.rejected(X).mean():.0%} of the rows refused" in display.ax_.get_title()
    assert f"mean cost {model.cost(X, y):.3g}" in display.ax_.get_title()
    wrong = (model.predict(X) != y) & ~model.rejected(X)
    assert_array_equal(display.ax_.collections[-1].get_offsets(), X[wrong])
    assert (
        f"mistakes: {wrong.sum()} of {(~model.rejected(X)).sum()} decided" in display.ax_.get_legend().get_texts()[3].get_text()
    )


def test_each_dashed_line_is_drawn_once():
    X, y = rows(k=3)
    model = Decide(reject_cost=0.4).fit(X, y)
    dashed = [points for is_dashed, points in drawn_lines(model.plot(X, y)) if is_dashed]
    pairs = []
    for points in dashed:
        p = model.predict_proba(points)
        first, second = np.sort(p, axis=1)[:, [-1, -2]].T
        assert np.quantile(first - second, 0.95) < 0.02  # near a corner of three regions a line ends within a cell
        two = np.sort(p.argsort(axis=1)[:, -2:], axis=1)[first - second < 1e-3]
        pairs.append({tuple(pair) for pair in two.tolist()})
    assert set().union(*pairs) <= {(0, 1), (0, 2), (1, 2)}
    assert pairs[0] & pairs[1] == set()


def test_the_cost_of_argmax_is_told():
    X, y = rows()
    model = Decide(costs=[[0, 5], [1, 0]]).fit(X, y)
    plain = LogisticRegression().fit(X, y).predict(X)
    expected = np.mean(np.where(plain == y, 0, np.where(y == "ill", 5, 1)))
    display = model.plot(X, y)
    assert f"(argmax: {expected:.3g})" in display.ax_.get_title()
    assert not display.rejects
    assert not hatched(display)


def test_actions_that_are_no_classes_have_their_own_colors():
    X, y = rows()
    model = Decide(costs=[[0, 10], [2, 1], [30, 30]], actions=["wait", "treat", "operate"]).fit(X, y)
    display = model.plot(X, y)
    entries = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert "decide: operate (nowhere here)" in entries
    assert "decide: treat" in entries
    assert not any(entry.startswith("mistakes") for entry in entries)
    assert not set(display._action_colors()) & {"#3b7dd8", "#d08c1d"}
    assert "argmax" not in display.ax_.get_title()


def test_equal_actions_leave_no_hole():
    X, y = rows()
    model = Decide(costs=[[0, 5], [0, 5], [1, 0]], actions=["wait", "sit", "treat"]).fit(X, y)
    display = model.plot(X, y)
    ahead = display._ahead()
    assert ((ahead > 0).sum(axis=0) == 1).all()
    assert_array_equal(ahead.argmax(axis=0), display.risks.argmin(axis=-1))
    filled = [drawn for drawn in display.ax_.collections if hasattr(drawn, "levels") and drawn.filled]
    assert len(filled) == 2  # nobody sits
    with pytest.raises(ValueError, match="one action, which it takes everywhere"):
        Decide(costs=[[0, 5]], actions=["wait"]).fit(X, y).plot(X, y)


def test_costs_of_each_row_are_asked_for_on_the_plane():
    X, y = rows(n_columns=3)

    def costs(X):
        table = np.zeros((len(X), 2, 2))
        table[:, 0, 1], table[:, 1, 0] = 1 + np.abs(X[:, 0]), 1
        return table

    model = Decide(costs=costs).fit(X, y)
    display = model.plot(X, y)
    assert display.ax_.get_xlabel().startswith("first principal direction")  # costs change along all columns
    i, j = 20, 150
    point = np.array([[display.grid[0][j], display.grid[1][i]]])
    assert_allclose(display.risks[i, j], model.risk(display.plane.rows(point))[0], rtol=1e-12)


def test_linear_models_keep_their_risks_on_the_plane():
    X, y = rows(n_columns=5)
    model = Decide(costs=[[0, 5], [1, 0]], reject_cost=0.3).fit(X, y)
    display = model.plot(X, y)
    assert_allclose(model.risk(display.plane.rows(display.points)), model.risk(X), atol=1e-12)


def test_rows_without_classes_and_single_columns_have_a_picture():
    X, y = rows(n_columns=1)
    display = Decide(reject_cost=0.2).fit(X, y).plot(X)
    assert display.labels is None
    assert not len(display.ax_.get_yticks())
    display.figure_.canvas.draw()
    forest = Decide(RandomForestClassifier(5, max_depth=2, random_state=0), reject_cost=0.2)
    X, y = rows(k=3)
    forest.fit(X, y).plot(X, y).figure_.canvas.draw()
    certain = Decide(reject_cost=0.0).fit(X, y).plot(X, y)  # everything is refused
    assert (certain.taken == 3).all()
    certain.figure_.canvas.draw()


def test_the_display_is_chosen_by_what_decides():
    X, y = rows(60)
    assert display_for(Decide().fit(X, y)) is BoundaryDisplay  # the most probable class, and its probabilities
    assert display_for(Decide(reject_cost=0.3).fit(X, y)) is DecisionRegionDisplay
    assert display_for(Decide(costs=[[0, 2], [1, 0]]).fit(X, y)) is DecisionRegionDisplay
    assert not takes_actions(LogisticRegression().fit(X, y))
    with pytest.raises(ValueError, match="plot it with DecisionRegionDisplay"):
        BoundaryDisplay.from_estimator(Decide(reject_cost=0.3).fit(X, y), X, y)
    with pytest.raises(ValueError, match="LogisticRegression has no actions with expected costs"):
        DecisionRegionDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)


def lines(display):
    return {line.get_label(): line.get_ydata() for line in display.ax_.lines}


def test_costs_are_those_of_a_decide_fitted_to_each_ratio():
    X, y = rows(300)
    model = LogisticRegression().fit(X[:150], y[:150])
    ratios = [0.2, 1.0, 4.0]
    display = CostCurveDisplay.from_estimator(model, X[150:], y[150:], costs=ratios)
    drawn = lines(display)
    for i, r in enumerate(ratios):
        decide = Decide.of(model, costs=[[0, 2 * r / (1 + r)], [2 / (1 + r), 0]])
        assert drawn["least expected cost (Bayes)"][i] == pytest.approx(decide.cost(X[150:], y[150:]), rel=1e-12)
        promised = decide.risk(X[150:]).min(axis=1).mean()
        assert drawn["promised by the probabilities"][i] == pytest.approx(promised, rel=1e-12)
    truth, taken = y[150:] == "ill", model.predict(X[150:]) == "ill"
    r = np.array(ratios)
    missed, alarms = np.mean(truth & ~taken), np.mean(~truth & taken)
    assert_allclose(drawn["most probable class"], 2 * (r * missed + alarms) / (1 + r))
    assert_allclose(drawn["always decide healthy"], 2 * r / (1 + r) * truth.mean())
    assert_allclose(drawn["always decide ill"], 2 / (1 + r) * (~truth).mean())
    assert drawn["most probable class"][1] == pytest.approx(1 - model.score(X[150:], y[150:]))  # the share of mistakes
    assert display.rejected is None
    assert display.share_ax_ is None
    assert display.ax_.get_xscale() == "log"


def test_a_decide_has_its_ratio_its_scale_and_its_refusals():
    X, y = rows(300)
    model = Decide(costs=[[0, 5], [1, 0]], reject_cost=0.4).fit(X[:150], y[:150])
    display = CostCurveDisplay.from_estimator(model, X[150:], y[150:], costs=[1.0, 5.0, 20.0])
    assert (display.scale, display.ratio) == (6, 5)
    drawn = lines(display)
    assert drawn["least expected cost (Bayes)"][1] == pytest.approx(model.cost(X[150:], y[150:]), rel=1e-12)
    assert drawn["promised by the probabilities"][1] == pytest.approx(model.risk(X[150:]).min(axis=1).mean(), rel=1e-12)
    assert display.rejected[1] == model.rejected(X[150:]).mean() > 0
    assert "ratio of the model's own costs" in drawn
    (share,) = display.share_ax_.collections
    assert share.get_hatch() == HATCH
    heights = share.get_paths()[0].vertices[:, 1]
    assert heights.max() == display.rejected.max()
    assert "refused rows (right axis)" in [t.get_text() for t in display.ax_.get_legend().get_texts()]
    display.figure_.canvas.draw()


def test_with_the_true_probabilities_no_rule_costs_less():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 1))
    y = (rng.random(4000) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(int)
    model = LogisticRegression(C=np.inf).fit(X, y)
    display = CostCurveDisplay.from_estimator(model, X, y)
    slack = 0.01  # the rows are a sample
    for other in ("argmax", "never", "always"):
        assert (display.costs["bayes"] <= display.costs[other] + slack).all()
    assert_allclose(display.promised, display.costs["bayes"], atol=slack)
    assert len(display.ratios) == 121


def test_cost_curves_say_what_they_need():
    X, y = rows(60, k=3)
    with pytest.raises(ValueError, match="must have 2 classes, not 3"):
        CostCurveDisplay.from_estimator(LogisticRegression().fit(X, y), X, y)
    X, y = rows(60)
    with pytest.raises(ValueError, match="has no predict_proba"):
        CostCurveDisplay.from_estimator(Perceptron().fit([[0.0], [1.0]], [0, 1]), [[0.0], [1.0]], [0, 1])
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="costs must be positive ratios"):
        CostCurveDisplay.from_estimator(model, X, y, costs=[0.0, 1.0])
    with pytest.raises(ValueError, match="There are 60 rows in X and 59 classes in y"):
        CostCurveDisplay.from_estimator(model, X, y[:-1])
    with pytest.raises(ValueError, match="y holds the label well"):
        CostCurveDisplay.from_estimator(model, X, np.full(60, "well"))
    with pytest.raises(ValueError, match="the right one costs nothing"):
        CostCurveDisplay.from_estimator(Decide.of(model, costs=[[1, 5], [1, 0]]), X, y)
    with pytest.raises(ValueError, match="functions of the row"):
        CostCurveDisplay.from_estimator(Decide.of(model, reject_cost=lambda X: np.ones(len(X))), X, y)
    assert not plt.get_fignums()


def test_axes_can_be_given():
    X, y = rows(60)
    _, (first, second) = plt.subplots(2)
    model = Decide(costs=[[0, 2], [1, 0]], reject_cost=0.3).fit(X, y)
    assert model.plot(X, y, ax=first).ax_ is first
    assert CostCurveDisplay.from_estimator(model, X, y, ax=second, name="mine").ax_ is second
    assert second.get_title() == "mine"
    assert len(plt.get_fignums()) == 1
