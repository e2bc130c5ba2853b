"""Growth functions are integers of the library, densities are those of the distributions."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.special import comb

from lemmata.plot import GrowthDisplay, PosteriorDisplay
from lemmata.plot.posterior import AFTER
from lemmata.plot.ticks import plain
from lemmata.probability.distributions import Bernoulli, Beta, Gamma, MultivariateNormal, Normal
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.rectangles import Rectangles


def lines(display):
    return {line.get_label(): line for line in display.ax_.lines}


def test_growth_is_drawn_against_all_labelings_and_sauer():
    display = GrowthDisplay.from_class(Halfspaces(2), max_m=8)
    drawn = lines(display)
    m = np.arange(1, 9)
    own = drawn["Halfspaces(2), VC dimension 3"]
    assert_array_equal(own.get_xdata(), m)
    assert_array_equal(own.get_ydata(), m**2 - m + 2)  # Cover's count in the plane
    assert_array_equal(drawn["all labelings, $2^m$"].get_ydata(), 2.0**m)
    sauer = drawn["Sauer's bound for dimension d"].get_ydata()
    assert_allclose(sauer, sum(comb(m, i) for i in range(4)))
    assert (own.get_ydata() <= sauer).all()
    rings = [line for line in display.ax_.lines if line.get_markersize() == 14]
    assert [(r.get_xdata()[0], r.get_ydata()[0]) for r in rings] == [(3, 8)]
    assert display.ax_.get_yscale() == "log"
    assert [t.get_text() for t in display.ax_.texts] == ["d = 3"]
    display.figure_.canvas.draw()


def test_several_classes_share_a_picture():
    display = GrowthDisplay.from_class([Thresholds(), Intervals(), Halfspaces(2), Rectangles(2)], max_m=12)
    assert display.growth["Thresholds()"] == list(range(2, 14))
    assert display.growth["Intervals()"] == [m * (m + 1) // 2 + 1 for m in range(1, 13)]
    assert len(display.growth["Rectangles(2)"]) < 12  # not known exactly further on
    assert display.dimensions == {"Thresholds()": 1, "Intervals()": 2, "Halfspaces(2)": 3, "Rectangles(2)": 4}
    assert {t.get_text() for t in display.ax_.texts} == {"d = 1", "d = 2", "d = 3", "d = 4"}
    rings = [line for line in display.ax_.lines if line.get_markersize() == 14]
    assert [(r.get_xdata()[0], r.get_ydata()[0]) for r in rings] == [(1, 2), (2, 4), (3, 8), (4, 16)]
    assert len({r.get_markeredgecolor() for r in rings}) == 4


def test_classes_can_have_names_and_more_points():
    display = GrowthDisplay.from_class({"planes": Halfspaces(10)}, max_m=200, name="ten dimensions")
    assert display.growth["planes"][-1] == 2 * sum(comb(199, i, exact=True) for i in range(11))
    assert display.ax_.get_title() == "ten dimensions"
    few = GrowthDisplay.from_class(FiniteClass([[0, 0, 1], [1, 0, 1], [1, 1, 1]]), max_m=5)
    assert list(few.growth.values()) == [[2, 3, 3, 3, 3]]
    few.figure_.canvas.draw()


def test_a_class_of_infinite_dimension_has_no_sauer_bound():
    class Everything:
        vc_dim = np.inf

        def growth(self, m):
            return 2**m

    display = GrowthDisplay.from_class({"all": Everything()}, max_m=4)
    assert set(lines(display)) == {"all labelings, $2^m$", "all, VC dimension ∞"}
    display.figure_.canvas.draw()


@pytest.mark.parametrize("max_m", [0, 2.5, 10**6])
def test_numbers_of_points_that_cannot_be(max_m):
    with pytest.raises(ValueError, match="must be a whole number of points from 1 to 1000"):
        GrowthDisplay.from_class(Thresholds(), max_m=max_m)


def test_what_is_no_class_is_said():
    with pytest.raises(ValueError, match="3 is not a hypothesis class"):
        GrowthDisplay.from_class(3)
    with pytest.raises(ValueError, match="no class to plot"):
        GrowthDisplay.from_class([])


def test_densities_are_those_of_scipy():
    display = PosteriorDisplay.from_distributions(Beta(2, 2), Beta(9, 5), likelihood=lambda p: p**7 * (1 - p) ** 3)
    drawn = lines(display)
    x = display.grid
    assert_allclose(drawn["prior Beta(2, 2)"].get_ydata(), stats.beta(2, 2).pdf(x), atol=1e-12)
    assert_allclose(drawn["posterior Beta(9, 5)"].get_ydata(), stats.beta(9, 5).pdf(x), atol=1e-12)
    heights = drawn["likelihood (scaled)"].get_ydata()
    assert heights.max() == pytest.approx(stats.beta(9, 5).pdf(x).max())
    assert x[heights.argmax()] == pytest.approx(0.7, abs=0.005)
    assert (x[0], x[-1]) == (0, 1)  # the ends of the support are near
    (shaded,) = display.ax_.collections
    low, high = stats.beta(9, 5).ppf([0.025, 0.975])
    corners = shaded.get_paths()[0].vertices
    assert_allclose([corners[:, 0].min(), corners[:, 0].max()], [low, high], rtol=1e-9)
    display.figure_.canvas.draw()


def test_marks_stand_on_the_curves():
    display = PosteriorDisplay.from_distributions(Gamma(2, 1), Gamma(5, 2), marks=("mean", "median", "mode"))
    blue = {line.get_marker(): line for line in display.ax_.lines if line.get_color() == AFTER and len(line.get_xdata()) == 1}
    for mark, at in {"o": 2.5, "s": stats.gamma(5, scale=0.5).median(), "^": 2.0}.items():
        assert_allclose(blue[mark].get_xdata()[0], at, rtol=1e-9)
        assert_allclose(blue[mark].get_ydata()[0], stats.gamma(5, scale=0.5).pdf(at), rtol=1e-9)
    assert {"mean", "median", "mode (MAP)"} <= {t.get_text() for t in display.ax_.get_legend().get_texts()}


def test_a_sequence_grows_darker():
    several = {"after 2": Normal(2, 1), "after 10": Normal(3, 0.4), "after 50": Normal(2.8, 0.15)}
    display = PosteriorDisplay.from_distributions(Normal(0, 100), several, marks="mean")
    drawn = [lines(display)[name] for name in several]
    assert np.all(np.diff([line.get_alpha() for line in drawn]) > 0)
    for line, each in zip(drawn, several.values(), strict=True):
        assert_allclose(line.get_ydata(), stats.norm(each.loc, each.scale).pdf(display.grid), atol=1e-12)
    assert np.ptp(display.grid) < 12  # the vague prior would hide everything
    # The peak of the last curve is smooth: no two neighbors there differ by much.
    inside = np.abs(display.grid - 2.8) < 0.4
    assert np.diff(display.grid[inside]).max() < 0.01
    two = PosteriorDisplay.from_distributions(Beta(1, 1), [Beta(2, 1), Beta(3, 1)])
    assert list(two.posteriors) == ["posterior Beta(2, 1)", "posterior Beta(3, 1)"]


def test_infinite_densities_leave_the_rest_readable():
    display = PosteriorDisplay.from_distributions(Beta(0.5, 0.5), Beta(8.5, 3.5), marks="mode")  # the prior has two modes
    assert display.ax_.get_ylim()[1] < 5
    assert len([line for line in display.ax_.lines if line.get_marker() == "^" and len(line.get_xdata())]) == 1
    display.figure_.canvas.draw()


@pytest.mark.parametrize("strange", [Bernoulli(0.5), MultivariateNormal([0, 0], np.eye(2)), 3.0])
def test_only_densities_on_the_line(strange):
    with pytest.raises(ValueError, match="has no density on the line"):
        PosteriorDisplay.from_distributions(Beta(1, 1), strange)


def test_posterior_errors_are_sentences():
    with pytest.raises(ValueError, match="marks holds 'average'"):
        PosteriorDisplay.from_distributions(Beta(1, 1), Beta(2, 1), marks="average")
    with pytest.raises(ValueError, match="no posterior to plot"):
        PosteriorDisplay.from_distributions(Beta(1, 1), [])
    with pytest.raises(ValueError, match="likelihood must be a function"):
        PosteriorDisplay.from_distributions(Beta(1, 1), Beta(2, 1), likelihood=[1.0])
    with pytest.raises(ValueError, match="likelihood must give a number of at least 0"):
        PosteriorDisplay.from_distributions(Beta(1, 1), Beta(2, 1), likelihood=lambda p: -p)
    assert len(plt.get_fignums()) == 0  # nothing is left behind


def test_axes_can_be_given():
    figure, (first, second) = plt.subplots(2)
    assert GrowthDisplay.from_class(Thresholds(), ax=first).ax_ is first
    assert PosteriorDisplay.from_distributions(Normal(0, 1), Normal(1, 0.5), ax=second).figure_ is figure
    assert len(plt.get_fignums()) == 1


def test_ticks_are_round_numbers():
    assert [plain(x) for x in (0.02, 0.5, 1.0, 20.0, 5e4, 1e6)] == ["1/50", "1/2", "1", "20", "50,000", "1 million"]
