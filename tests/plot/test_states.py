"""The states of a hidden Markov model along its sequence."""

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt

from lemmata.hmm import CategoricalHMM, GaussianHMM
from lemmata.plot import StatesDisplay


def test_areas_are_probabilities_and_the_strip_is_the_path():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"level": np.repeat([0.0, 3.0, 0.0], 30) + rng.normal(size=90), "other": rng.normal(size=90)})
    model = GaussianHMM(2, random_state=0).fit(X)
    display = StatesDisplay.from_estimator(model, X, column=0)
    np.testing.assert_array_equal(display.probabilities, model.predict_proba(X))
    np.testing.assert_array_equal(display.path, model.decode(X)[1])
    assert display.label == "level"
    np.testing.assert_array_equal(display.ax_.collections[-1].get_array().ravel(), display.path)
    display.figure_.canvas.draw()


def test_only_the_first_rows_are_shown_but_all_are_used():
    X = np.random.default_rng(1).integers(3, size=(50, 1))
    model = CategoricalHMM(2, random_state=0).fit(X)
    display = StatesDisplay.from_estimator(model, X, column=None, max_rows=20, ax=plt.subplots()[1])
    np.testing.assert_array_equal(display.probabilities, model.predict_proba(X)[:20])
    assert display.values is None
