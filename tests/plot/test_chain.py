"""Graphs of chains and rankings are drawn as they were computed."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError

from lemmata.markov import MarkovChain, MarkovRanker
from lemmata.plot import RankingDisplay, TransitionGraphDisplay

P = np.array([[0.5, 0.3, 0.2], [0.0, 1.0, 0.0], [0.4, 0.0, 0.6]])


def games(n=8, seed=0):
    rng = np.random.default_rng(seed)
    i, j = rng.integers(n, size=(2, 40 * n))
    return np.column_stack([i, j, rng.poisson(2.0 + 2 * i / n), rng.poisson(2.0 + 2 * j / n)])[i != j]


def test_every_move_has_an_arrow():
    chain = MarkovChain(P, states=["here", "end", "there"])
    _, ax = plt.subplots()
    display = chain.plot(ax=ax)
    assert isinstance(display, TransitionGraphDisplay)
    assert display.ax_ is ax
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    circles = [patch for patch in ax.patches if isinstance(patch, Circle)]
    assert len(arrows) == 3  # moves between states
    assert len(circles) == 3 + 3  # states, and moves from a state to itself
    assert_array_equal(display.labels, [-1, 0, -1])
    assert_allclose(display.masses, [0, 1, 0])
    written = [text.get_text() for text in ax.texts]
    assert {"here", "end", "there", "0.3", "0.2", "0.4", "1", "0.5", "0.6"} == set(written)
    display.figure_.canvas.draw()


def test_of_many_states_the_heaviest_are_shown():
    rng = np.random.default_rng(0)
    chain = MarkovChain(csr_array(rng.dirichlet(np.ones(50), size=50)))
    display = TransitionGraphDisplay.from_estimator(chain, max_states=10)
    law = chain.stationary()[0]
    assert display.names == [str(i) for i in np.sort(np.argsort(-law)[:10])]
    assert display.ax_.get_title() == "MarkovChain: 10 of 50 states"
    display.figure_.canvas.draw()


def test_contexts_are_named_by_their_symbols():
    model = MarkovChain(order=2, alpha=1.0).fit([list("abbab")])
    display = model.plot()
    assert display.names == ["a, a", "a, b", "b, a", "b, b"]
    one = MarkovChain([[1.0]]).plot()
    assert one.names == ["0"]
    with pytest.raises(NotFittedError):
        MarkovChain().plot()


def test_rankings_show_ratings_intervals_and_ranks():
    model = MarkovRanker().fit(games())
    display = model.plot()
    assert isinstance(display, RankingDisplay)
    assert display.teams == [str(team) for team in model.ranking_]
    points = display.ax_.lines[0]
    assert_allclose(points.get_xdata(), np.sort(model.scores_)[::-1])
    lines = np.array(display.ax_.collections[0].get_segments())
    found, order = model.intervals(), np.argsort(-model.scores_)
    assert_allclose(lines[:, :, 0], np.column_stack([found.low, found.high])[order])
    ranks = [text.get_text() for text in display.ax_.texts]
    assert ranks[0] == (f"{found.best[order[0]]}–{found.worst[order[0]]}" if found.worst[order[0]] > 1 else "1")
    assert ranks[-1] == "rank"
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.teams
    display.figure_.canvas.draw()
    few = RankingDisplay.from_estimator(model, max_teams=3, level=0.5)
    assert few.ax_.get_title() == "MarkovRanker: the first 3 of 8 teams"
    assert (few.high - few.low < display.high[:3] - display.low[:3]).all()
    with pytest.raises(NotFittedError):
        MarkovRanker().plot()


def test_without_doubts_there_are_points_only():
    model = MarkovRanker().fit(games())
    model.standard_errors_ = np.full(8, np.nan)
    display = model.plot()
    assert display.low is None
    assert not display.ax_.collections
