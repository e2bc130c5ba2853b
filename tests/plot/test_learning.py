"""Displays of networks, generative models and agents: what they draw is what they were given."""

from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

from lemmata.neural_network import MLPRegressor
from lemmata.plot import GeneratedDisplay, GridWorldDisplay, ReturnsDisplay, TrainingCurveDisplay
from lemmata.rl import QLearning


def test_training_curves_have_losses_and_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    options = {"max_iter": 6, "tol": None, "random_state": 0}
    plain = MLPRegressor((4,), **options).fit(X, X[:, 0])
    held = MLPRegressor((4,), early_stopping=True, **options).fit(X, X[:, 0])
    display = TrainingCurveDisplay.from_estimators({"plain": plain, "held out": held})
    lines = {line.get_label(): line for line in display.ax_.lines}
    assert np.array_equal(lines["plain"].get_ydata(), plain.trace_)
    assert np.array_equal(lines["plain"].get_xdata(), np.arange(1, 7))
    (score,) = display.score_ax_.lines
    assert np.array_equal(score.get_ydata(), held.validation_scores_)
    assert display.ax_.get_yscale() == "log"
    assert TrainingCurveDisplay({"up and down": [1.0, -1.0]}).plot().ax_.get_yscale() == "linear"
    assert plain.plot().score_ax_ is None
    display.figure_.canvas.draw()


def test_returns_are_smoothed_over_episodes_and_banded_over_seeds():
    runs = np.random.default_rng(0).normal(size=(7, 300)).cumsum(axis=1)
    display = ReturnsDisplay({"agent": list(runs)}, window=10, level=0.5, target=3.0).plot()
    at, mean, low, high = display.curves_["agent"]
    smooth = np.array([[run[max(0, t - 10) : t].mean() for t in at.astype(int)] for run in runs])
    np.testing.assert_allclose(mean, smooth.mean(axis=0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(low, np.quantile(smooth, 0.25, axis=0), rtol=0, atol=1e-10)
    np.testing.assert_allclose(high, np.quantile(smooth, 0.75, axis=0), rtol=0, atol=1e-10)
    assert at[0] == 1
    assert at[-1] == 300
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["agent, 7 seeds", "solved"]
    short = ReturnsDisplay({"a": [[1.0, 2.0, 3.0], [1.0]]}).plot()
    assert short.curves_["a"][0].tolist() == [1.0]  # as long as all last
    with pytest.raises(ValueError, match="'a' has no episodes"):
        ReturnsDisplay({"a": [[]]})
    with pytest.raises(ValueError, match="'a' needs a list of runs"):
        ReturnsDisplay({"a": [1.0, 2.0]})
    agent = SimpleNamespace(returns_=np.arange(5.0))
    assert ReturnsDisplay.from_estimator(agent, window=1).curves_["SimpleNamespace"][1].tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_grid_worlds_have_colors_arrows_and_marks():
    value, policy = np.arange(12.0), np.array([0, 1, 2, 3] * 2 + [-1] * 4)
    _, ax = plt.subplots()
    display = GridWorldDisplay(value, (3, 4), policy=policy, marks=list("SFFFHFFFFFFG"), name="lake").plot(ax)
    assert GridWorldDisplay(value, (3, 4), marks=np.array(display.marks, dtype="S1")).marks == display.marks  # as of Gymnasium
    assert np.array_equal(ax.images[0].get_array(), value.reshape(3, 4))
    assert len(ax.patches) == 8
    assert [text.get_text() for text in ax.texts] == list("SFFFHFFFFFFG")
    left, down = (patch.get_path().get_extents() for patch in ax.patches[:2])
    assert left.width > left.height
    assert down.height > down.width
    plain = GridWorldDisplay(value, (3, 4)).plot()
    assert [text.get_text() for text in plain.ax_.texts][:2] == ["0", "1"]
    learner = SimpleNamespace(value_=np.arange(5.0), policy_=np.zeros(5, dtype=int))
    assert len(GridWorldDisplay.from_solution(learner, (2, 2)).ax_.patches) == 4
    plan = SimpleNamespace(value=np.arange(4.0), policy=np.zeros(4, int), mdp=SimpleNamespace(terminal=np.arange(4) == 3))
    assert GridWorldDisplay.from_solution(plan, (2, 2)).policy.tolist() == [0, 0, 0, -1]
    with pytest.raises(ValueError, match="2 × 1 cells are 2, and there are 5 states"):
        GridWorldDisplay.from_solution(learner, (2, 1))
    with pytest.raises(ValueError, match="fit the QLearning first"):
        GridWorldDisplay.from_solution(QLearning(), (2, 2))
    with pytest.raises(NotFittedError):
        ReturnsDisplay.from_estimator(QLearning())
    with pytest.raises(NotFittedError):
        TrainingCurveDisplay.from_estimator(MLPRegressor())
    with pytest.raises(ValueError, match="3 × 4 cells need as many values, got 5"):
        GridWorldDisplay(np.arange(5.0), (3, 4))
    with pytest.raises(ValueError, match="3 × 4 cells need as many actions, got 5"):
        GridWorldDisplay(value, (3, 4), policy=[0] * 5)
    with pytest.raises(ValueError, match="3 × 4 cells need as many marks, got 2"):
        GridWorldDisplay(value, (3, 4), marks=list("SG"))
    with pytest.raises(ValueError, match="takes action 5, and moves has 4"):
        GridWorldDisplay(value, (3, 4), policy=[5] * 12)
    display.figure_.canvas.draw()


class Drawer:
    """Draws rows that tell where they come from."""

    latent_dim = 3

    def sample(self, n, random_state=None):
        return np.arange(4.0 * n).reshape(n, 4)

    def inverse_transform(self, z):
        return np.column_stack([z, z[:, :1]])


def test_pictures_and_points_that_were_drawn():
    pictures = GeneratedDisplay.from_estimator(Drawer(), n=5, image_shape=(2, 2))
    assert pictures.picture_.shape == (5, 8)
    assert pictures.picture_[:2, 3:5].tolist() == [[4.0, 5.0], [6.0, 7.0]]
    assert np.isnan(pictures.picture_[2]).all()
    points = GeneratedDisplay.from_estimator(Drawer(), np.ones((7, 4)), n=6)
    data, drawn = points.ax_.collections
    assert len(data.get_offsets()) == 7
    assert drawn.get_offsets()[:2].tolist() == [[0.0, 1.0], [4.0, 5.0]]
    plane = GeneratedDisplay.from_latent_plane(Drawer(), image_shape=(2, 2), n=3, reach=1.5)
    first = plane.picture_[:2, :2]
    assert first.tolist() == [[-1.5, 1.5], [0.0, -1.5]]  # upper left: the second variable grows upward
    assert GeneratedDisplay(np.ones((4, 1))).plot().ax_.collections
    with pytest.raises(ValueError, match="2 × 3 pixels do not have 4 columns"):
        GeneratedDisplay(np.ones((2, 4)), image_shape=(2, 3))
