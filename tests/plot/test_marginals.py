"""Marginals before evidence and given it are the model's."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose

from lemmata.graphical import BayesNet, FactorGraph
from lemmata.plot import MarginalsDisplay

WET = {"rain": [], "sprinkler": [], "wet": ["rain", "sprinkler"]}
TABLES = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "wet": [[[0.99, 0.01], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]}
NET = BayesNet(WET, TABLES, {"rain": ["dry", "rain"]})


def test_bars_before_and_after():
    _, ax = plt.subplots()
    display = MarginalsDisplay.from_estimator(NET, evidence={"wet": 1}, ax=ax, name="lawn")
    assert display.ax_ is ax
    assert display.names == ["rain", "sprinkler"]  # what is known is not shown
    before, after = ([bar.get_width() for bar in bars] for bars in ax.containers)
    assert_allclose(before, [0.8, 0.2, 0.9, 0.1])
    assert_allclose(after, np.concatenate([NET.marginals({"wet": 1})[name] for name in display.names]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["dry", "rain", "0", "1"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["before", "given wet = 1"]
    display.figure_.canvas.draw()


def test_without_evidence_there_is_one_bar_each():
    display = MarginalsDisplay.from_estimator(NET, variables="rain")
    assert display.posterior is None
    assert display.ax_.get_legend() is None
    assert_allclose([bar.get_width() for bar in display.ax_.containers[0]], [0.8, 0.2])
    with pytest.raises(ValueError, match="no variable 'snow'"):
        MarginalsDisplay.from_estimator(NET, variables=["snow"])


def test_the_most_changed_are_chosen_in_their_order():
    n = 12
    chain = FactorGraph([((i, i + 1), [[3, 1], [1, 3]]) for i in range(n)])
    display = MarginalsDisplay.from_estimator(chain, evidence={0: 1, 5: [0.5, 0.5]})
    assert display.names == [str(i) for i in range(1, 9)]
    assert display.given == "0 = 1, 5 ∝ (0.5, 0.5)"
