"""Pictures of chains show what was drawn, and bands hold what chance explains."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata

from lemmata.plot import AutocorrelationDisplay, CalibrationDisplay, ChainsDisplay, RankDisplay
from lemmata.plot.ranks import rank_counts
from lemmata.sampling import Calibration, Draws

CHAINS = (ChainsDisplay, RankDisplay, AutocorrelationDisplay)


def autoregressive(rho, chains=4, n=1000, d=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(chains, n, d)) * np.sqrt(1 - np.square(rho))
    x[:, 0] = rng.normal(size=(chains, d))
    for t in range(1, n):
        x[:, t] += rho * x[:, t - 1]
    return x


def test_traces_are_the_draws():
    draws = Draws(autoregressive(0.5), names=["mu", "tau"])
    display = ChainsDisplay.from_draws(draws, name="two")
    assert display.axes_.shape == (2, 2)
    for i in range(2):
        lines = display.axes_[i, 0].lines
        assert len(lines) == 4
        for k in range(4):
            assert_array_equal(lines[k].get_ydata(), draws.values[k, :, i])
        assert len(display.axes_[i, 1].lines) == 4
        told = display.axes_[i, 0].texts[0].get_text()
        assert told.startswith(f"{draws.names[i]}:  R-hat {draws.rhat[i]:.3f}")
    assert display.ax_.get_title() == "two"
    display.figure_.canvas.draw()
    still = ChainsDisplay.from_draws(np.zeros((2, 50, 1)))  # nothing to smooth
    assert not still.axes_[0, 1].lines


@pytest.mark.parametrize("cls", CHAINS)
def test_dimensions_are_chosen_by_name(cls):
    draws = Draws(autoregressive(0.3, d=8))
    assert cls.from_draws(draws).names == [f"x[{i}]" for i in range(6)]
    assert cls.from_draws(draws, ["x[7]", "x[2]"]).names == ["x[7]", "x[2]"]
    assert cls.from_draws(draws, "x[7]").names == ["x[7]"]
    assert cls.from_draws(draws.values[:, :, 0]).names == ["x"]
    with pytest.raises(ValueError, match="No dimension is called 'y'"):
        cls.from_draws(draws, ["y"])
    with pytest.raises(ValueError, match=r"must have the shape \(chains, draws, dimensions\)"):
        cls.from_draws(np.zeros(5))


@pytest.mark.parametrize("cls", CHAINS)
def test_given_axes_are_used_and_divided(cls):
    figure, (left, _) = plt.subplots(1, 2, layout="constrained")
    display = cls.from_draws(autoregressive(0.3), ax=left)
    assert display.ax_ is left
    assert display.figure_ is figure
    figure.canvas.draw()
    if cls is not AutocorrelationDisplay:
        with pytest.raises(ValueError, match="room for one dimension, not for 2"):
            cls.from_draws(autoregressive(0.3), ax=plt.figure().add_axes((0.1, 0.1, 0.8, 0.8)))


def test_ranks_are_counted_among_all_chains():
    x = np.random.default_rng(0).normal(size=(3, 400))
    counts, band, step = rank_counts(x, thin=1)
    ranks = rankdata(x).reshape(x.shape) - 1
    assert step == 1
    assert_array_equal(counts, [np.histogram(row, np.arange(21) * 60)[0] for row in ranks])
    assert_array_equal(counts.sum(axis=0), 60)
    assert ((band[0] < 20) & (band[1] > 20)).all()


def test_the_band_holds_chains_that_agree_with_99_percent():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        counts, band, _ = rank_counts(rng.normal(size=(4, 200)), thin=1)
        held += ((band[0] <= counts) & (counts <= band[1])).all()
    assert held >= 400 * 0.99 - 3 * np.sqrt(400 * 0.99 * 0.01)  # three standard errors


def test_chains_that_disagree_are_seen():
    x = autoregressive(0.8, n=4000, d=1)
    fair = RankDisplay.from_draws(x)
    assert fair.steps[0] in range(7, 12)  # theory: (1 + 0.8) / (1 − 0.8) = 9
    assert ((fair.bands[0][0] <= fair.counts[0]) & (fair.counts[0] <= fair.bands[0][1])).all()
    x[2] += 1.0
    shifted = RankDisplay.from_draws(x)
    assert shifted.counts[0][2, -1] > shifted.bands[0][1, -1]
    assert shifted.counts[0][2, 0] < shifted.bands[0][0, 0]
    heights = [bar.get_height() for bar in shifted.ax_.containers[2]]
    assert_allclose(np.array(heights) / heights[0], shifted.counts[0][2] / shifted.counts[0][2, 0])
    shifted.figure_.canvas.draw()


def test_counts_that_tie_are_ranked_at_random():
    x = np.random.default_rng(0).poisson(1.0, size=(4, 500))
    counts, band, _ = rank_counts(x, thin=1)
    assert ((band[0] <= counts) & (counts <= band[1])).all()


def test_autocorrelations_are_those_of_theory():
    x = autoregressive(np.array([0.5, 0.9]), n=20000)
    display = AutocorrelationDisplay.from_draws(x)
    lags = np.arange(10)
    expected = np.column_stack([0.5**lags, 0.9**lags])
    assert_allclose(display.correlations[:10], expected, atol=0.05)  # the standard error is about √(19 / 80000) = 0.015
    assert_allclose(display.times, [3, 19], rtol=0.15)
    lines = [line for line in display.ax_.lines if len(line.get_xdata()) == len(display.correlations)]
    assert_array_equal(lines[1].get_ydata(), display.correlations[:, 1])
    assert len(AutocorrelationDisplay.from_draws(x, max_lag=7).correlations) == 8


def test_calibration_shows_the_histogram_and_what_is_outside():
    rng = np.random.default_rng(0)
    ranks = np.column_stack([rng.integers(100, size=1000), np.minimum(rng.integers(130, size=1000), 99)])
    found = Calibration(ranks, 99, ("right", "shifted"), 20)
    display = CalibrationDisplay.from_calibration(found, name="by simulation")
    assert_array_equal(display.counts, found.histogram)
    out = (display.counts < display.bands[0]) | (display.counts > display.bands[1])
    assert out.any(axis=1).tolist() == [False, True]
    for panel, counts in zip(display.axes_, found.histogram, strict=True):
        assert_array_equal([bar.get_height() for bar in panel.containers[0]], counts)
    display.figure_.canvas.draw()
