"""Displays of factors, topics and ratings: what they show is what the models say."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from lemmata import plot
from lemmata.decomposition import PCA, KernelPCA, ProbabilisticPCA, RankCurve

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5)) * [5.0, 3.0, 2.0, 1.0, 0.5]


def test_scree_has_the_shares_and_marks_where_ninety_percent_are_kept():
    model = PCA().fit(X)
    display = plot.ScreeDisplay.from_estimator(model)
    assert_array_equal(display.shares, model.explained_variance_ratio_)
    heights = [bar.get_height() for bar in display.ax_.patches]
    assert_allclose(heights, model.explained_variance_ratio_)
    k = int(np.argmax(np.cumsum(display.shares) >= 0.9)) + 1
    assert f"90%: {k}" in [text.get_text() for text in display.ax_.texts]
    assert "5 directions keep 100 %" in display.ax_.get_title()
    kernel = KernelPCA(3).fit(X)
    assert_allclose(plot.ScreeDisplay.from_estimator(kernel).shares, kernel.eigenvalues_ / kernel.eigenvalues_.sum())


@pytest.mark.parametrize("target", [None, np.arange(60) % 3, np.linspace(0, 1, 60)])
def test_scores_are_the_coordinates(target):
    model = PCA(3).fit(X)
    display = plot.ScoresDisplay.from_estimator(model, X, target, coordinates=(0, 2))
    assert_allclose(display.points, model.transform(X)[:, [0, 2]])
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels == ([] if target is None or len(np.unique(target)) > 3 else ["0", "1", "2"])
    one = plot.ScoresDisplay.from_estimator(ProbabilisticPCA(1).fit(X), X)
    assert (one.points[:, 1] == 0).all()


def test_loadings_show_the_columns_that_matter_on_given_axes_too():
    model = PCA(4).fit(X)
    display = plot.LoadingsDisplay.from_estimator(model, feature_names=list("abcde"), factors=3, top=4)
    assert len(display.axes_) == 3
    weakest = np.abs(model.components_[:3]).max(axis=0).argmin()
    assert set(display.columns_) == set(range(5)) - {weakest}
    assert_allclose([bar.get_width() for bar in display.axes_[1].patches], model.components_[1, display.columns_])
    free = plt.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    assert plot.LoadingsDisplay(model.components_).plot(free).ax_ is free


def test_pictures_of_factors():
    images = RNG.normal(size=(5, 3, 4))
    display = plot.FactorImagesDisplay(images, name="five").plot()
    assert_array_equal(display.axes_[4].images[0].get_array(), images[4])
    assert display.axes_[0].images[0].get_clim() == (-np.abs(images).max(), np.abs(images).max())
    assert plot.FactorImagesDisplay(np.abs(images)).plot().axes_[0].images[0].get_clim()[0] == 0
    with pytest.raises(ValueError, match="3 × 4 pixels"):
        plot.FactorImagesDisplay.from_estimator(PCA(2).fit(X), shape=(3, 4))


def test_topics_have_their_most_probable_words():
    topics = RNG.dirichlet(np.full(30, 0.1), 9)
    display = plot.TopicWordsDisplay(7 * topics, top=5).plot()
    assert len(display.axes_) == 8
    order = np.argsort(-topics[3])[:5]
    assert_allclose([bar.get_width() for bar in display.axes_[3].patches], topics[3, order])
    assert [text.get_text() for text in display.axes_[3].get_yticklabels()] == [f"word {j}" for j in order]


def test_residuals_of_ratings_say_how_honest_the_doubts_are():
    class Rater:
        def predict_dist(self, pairs):
            return norm(np.full(len(pairs), 3.0), np.full(len(pairs), 0.5))

    ratings = 3.0 + RNG.normal(size=4000)
    display = plot.RatingResidualsDisplay.from_estimator(Rater(), np.zeros((4000, 2)), ratings)
    assert_allclose(display.residuals, ratings - 3.0)
    told = display.law_ax_.get_title()
    assert told == f"errors are {(display.residuals / 0.5).std():.2f} × the claimed deviations"
    assert 1.9 < float(told.split()[2]) < 2.1


def test_the_number_of_components_is_marked():
    curve = RankCurve(np.array([1, 2, 4]), np.array([[3.0, 1.0, 1.4], [3.2, 1.2, 0.9]]))
    display = plot.RankCurveDisplay.from_curve(curve, name="NMF")
    assert display.best_ == curve.suggested == 2
    assert_allclose(display.ax_.lines[2].get_ydata(), curve.means)
