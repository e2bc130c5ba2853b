"""The picture shows the replicates, the estimate and the ends that the bootstrap has."""

import matplotlib as mpl

mpl.use("Agg")

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from lemmata.model_selection import Bootstrap
from lemmata.plot import BootstrapDisplay


def lines(display):
    return {line.get_label(): np.asarray(line.get_xdata(), dtype=float) for line in display.ax_.lines}


@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_what_is_drawn_is_what_was_found(statistic):
    x = np.random.default_rng(0).exponential(size=30)
    bootstrap = Bootstrap(statistic, n_resamples=999, random_state=0).fit(x)
    _, ax = plt.subplots()
    display = bootstrap.plot(level=0.9, method="percentile", ax=ax)
    assert display.ax_ is ax
    assert display.counts_.sum() == 999
    assert_array_equal(display.counts_, np.histogram(bootstrap.replicates_, display.edges_)[0])
    drawn = lines(display)
    low, high = bootstrap.interval(0.9, "percentile")
    assert_allclose(drawn["90 % percentile interval"][[0, 3]], [low, high])
    assert_allclose(drawn["estimate"], bootstrap.estimate_)
    assert_allclose(drawn["mean of the replicates"], bootstrap.mean_)
    assert f"{low:.4g} to {high:.4g}" in ax.get_title()
    ax.figure.canvas.draw()
    plt.close("all")


def test_a_series_has_the_interval_that_it_can_have():
    series = Bootstrap("mean", n_resamples=199, resampling="moving-block", random_state=0).fit(np.arange(30.0) % 7)
    low, high = series.interval(0.9, "percentile")
    assert_allclose(lines(series.plot(level=0.9))["90 % percentile interval"][[0, 3]], [low, high])
    plt.close("all")


def test_one_number_of_several_and_what_does_not_vary():
    X = np.random.default_rng(1).normal(size=(20, 2))
    several = Bootstrap("mean", n_resamples=199, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"has the shape \(2,\): say by index .*from_bootstrap\(bootstrap, index=0\)"):
        several.plot()
    display = BootstrapDisplay.from_bootstrap(several, index=1, name="second mean")
    assert_array_equal(display.replicates, several.replicates_[:, 1])
    assert display.ax_.get_title().startswith("second mean")
    constant = Bootstrap(np.max, n_resamples=199).fit([2.0, 2.0]).plot()
    assert_array_equal(constant.counts_, [199])
    constant.figure_.canvas.draw()
    alone = BootstrapDisplay(replicates=[1.0, 2.0, np.nan], estimate=1.5).plot()
    assert alone.counts_.sum() == 2
    with pytest.raises(NotFittedError):
        Bootstrap().plot()
    plt.close("all")
