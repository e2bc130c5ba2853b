"""A mixture is drawn where its parameters say: ellipses against eigenvalues, colors against responsibilities."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, norm
from sklearn.cluster import KMeans as OtherKMeans
from sklearn.mixture import GaussianMixture as OtherMixture

from lemmata.cluster import KMeans
from lemmata.mixture import BernoulliMixture, GaussianMixture, GibbsMixture, MissingGaussian, StochasticEM
from lemmata.plot import ClusterDisplay, MixtureDisplay, display_for
from lemmata.plot.drawing import class_colors
from lemmata.plot.mixture import LISTED, blend, ellipse_axes

KINDS = ("full", "tied", "diag", "spherical")


def groups(d, n=60, seed=0):
    """Three overlapping groups of rows."""
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 3 * rng.normal(size=d) for _ in range(3)])


def matrices(model):
    """Write out the covariance of each component, by scikit-learn's definition of the kinds."""
    k, d = model.means_.shape
    C = model.covariances_
    if model.covariance_type == "full":
        return C
    if model.covariance_type == "tied":
        return np.array([C] * k)
    return np.array([np.diag(np.broadcast_to(C[j], d)) for j in range(k)])


def drawn_ellipses(display):
    return [patch for patch in display.ax_.patches if isinstance(patch, Ellipse)]


def texts(display):
    return [entry.get_text() for entry in display.ax_.get_legend().get_texts()]


@pytest.mark.parametrize("kind", ["tied", "full", "diag", "spherical"])
@pytest.mark.parametrize("d", [2, 4])
def test_ellipses_are_the_lines_of_equal_density(kind, d):
    X = groups(d)
    C = {"full": np.stack([np.diag(np.arange(1.0, d + 1)) + 0.3 * (j + 1) for j in range(3)])}
    C |= {"tied": C["full"][0], "diag": np.arange(1.0, 3 * d + 1).reshape(3, d), "spherical": np.array([0.5, 1.0, 2.0])}
    model = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-3).fit(X)
    model.covariances_ = C[kind]
    display = MixtureDisplay.from_estimator(model, X)
    directions = np.eye(2) if d == 2 else np.linalg.svd(X - X.mean(axis=0))[2][:2].T
    if d == 4:  # the signs of directions are the display's own
        directions = directions * np.sign(directions[np.abs(directions).argmax(axis=0), [0, 1]])
    center = np.zeros(d) if d == 2 else X.mean(axis=0)
    patches = drawn_ellipses(display)
    assert len(patches) == 6
    for j, covariance in enumerate(matrices(model)):
        seen = directions.T @ covariance @ directions
        mean = (model.means_[j] - center) @ directions
        for times, patch in zip((1, 2), patches[2 * j : 2 * j + 2], strict=True):
            assert_allclose(patch.center, mean, atol=1e-9)
            half = np.sort([patch.width / 2, patch.height / 2])
            assert_allclose(half, times * np.sqrt(np.linalg.eigvalsh(seen)), rtol=1e-9)
            curve = patch.get_path().vertices[:-1:3]  # every third one lies on the curve, the others steer it
            outline = patch.get_patch_transform().transform(curve)
            away = outline - mean
            distance = np.sqrt(np.einsum("na,ab,nb->n", away, np.linalg.inv(seen), away))
            assert_allclose(distance, times, rtol=1e-6)
    assert_allclose(display.points, (X - center) @ directions, atol=1e-9)


def test_half_axes_of_any_covariance():
    rng = np.random.default_rng(1)
    for _ in range(20):
        A = rng.normal(size=(2, 2))
        long, short, angle = ellipse_axes(A @ A.T)
        turn = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        across = np.array([-turn[1], turn[0]])
        assert_allclose(long**2 * np.outer(turn, turn) + short**2 * np.outer(across, across), A @ A.T, atol=1e-12)
        assert long >= short
    assert ellipse_axes(np.zeros((2, 2)))[:2] == (0.0, 0.0)


def test_rows_have_the_mixed_color_of_their_components():
    X = groups(2)
    model = GaussianMixture(3, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(model, X)
    dense = np.array(
        [w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(model.weights_, model.means_, matrices(model), strict=True)]
    )
    probability = (dense / dense.sum(axis=0)).T
    colors = np.array([to_rgb(color) for color in class_colors(3)])
    drawn = [c for c in display.ax_.collections if len(c.get_offsets()) > 0]
    where = np.concatenate([c.get_offsets() for c in drawn])
    faces = np.concatenate([c.get_facecolors()[:, :3] for c in drawn])
    order, back = np.lexsort(X.T), np.lexsort(where.T)
    assert_allclose(where[back], X[order])
    assert_allclose(faces[back], (probability @ colors)[order], atol=1e-6)
    assert sum(len(c.get_offsets()) for c in drawn) == len(X)
    assert_allclose(blend(np.eye(3), class_colors(3)), colors)


def test_the_heavier_the_stronger():
    X = np.concatenate([np.random.default_rng(0).normal(size=(90, 2)), np.random.default_rng(1).normal(size=(10, 2)) + 20])
    model = GaussianMixture(2, random_state=0).fit(X)
    first, second = drawn_ellipses(MixtureDisplay.from_estimator(model, X))[::2]
    heavy, light = (first, second) if model.weights_[0] > 0.5 else (second, first)
    assert heavy.get_linewidth() > light.get_linewidth()
    assert heavy.get_alpha() > light.get_alpha()


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_has_its_density(kind):
    X = groups(1)
    model = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(model, X)
    *parts, total = display.ax_.lines
    grid = total.get_xdata()
    assert_allclose(total.get_ydata(), np.exp(model.score_samples(grid[:, None])), rtol=1e-9)
    for j, (part, C) in enumerate(zip(parts, matrices(model), strict=True)):
        assert_allclose(part.get_ydata(), model.weights_[j] * norm(model.means_[j, 0], np.sqrt(C[0, 0])).pdf(grid), rtol=1e-9)
    bars = display.ax_.patches
    assert_allclose(sum(bar.get_width() * bar.get_height() for bar in bars), 1.0)
    assert_allclose(bars[0].get_x(), X.min())
    assert grid[0] <= X.min()
    assert grid[-1] >= X.max()


def test_chosen_columns_show_the_marginal():
    import pandas as pd

    X = pd.DataFrame(groups(4), columns=list("abcd"))
    model = GaussianMixture(2, random_state=0).fit(X)
    display = MixtureDisplay.from_estimator(model, X, features=("d", 1))
    assert_array_equal(display.points, X[["d", "b"]].to_numpy())
    assert_allclose(display.means, model.means_[:, [3, 1]])
    assert_allclose(display.covariances, model.covariances_[:, [3, 1]][:, :, [3, 1]])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("d", "b")
    one = MixtureDisplay.from_estimator(model, X, features="c")
    assert_allclose(one.covariances[:, 0, 0], model.covariances_[:, 2, 2])
    assert one.ax_.get_xlabel() == "c"
    for features, told in (
        (("a", "z"), "'z', which is not among"),
        ((0, 0), "two different"),
        ((0, 1, 2), "one column or two"),
        ([9], "9"),
    ):
        with pytest.raises(ValueError, match=told):
            MixtureDisplay.from_estimator(model, X, features=features)


def test_rows_with_holes_lie_at_their_conditional_mean():
    X = groups(3)
    model = GaussianMixture(2, random_state=0).fit(X)
    holes = X[:40].copy()
    holes[3, 1], holes[7, [0, 2]], holes[9, 2] = np.nan, np.nan, np.nan
    display = MixtureDisplay.from_estimator(model, holes, features=(0, 1))
    assert_array_equal(np.flatnonzero(display.filled), [3, 7])  # the hole of row 9 is not in the picture
    row, seen = X[3], [0, 2]
    means, odds = [], []
    for w, m, C in zip(model.weights_, model.means_, model.covariances_, strict=True):
        odds.append(w * multivariate_normal(m[seen], C[np.ix_(seen, seen)]).pdf(row[seen]))
        means.append(m[1] + C[1, seen] @ np.linalg.solve(C[np.ix_(seen, seen)], row[seen] - m[seen]))
    assert_allclose(display.points[3], [row[0], np.average(means, weights=odds)], rtol=1e-9)
    assert_allclose(display.responsibilities[3], np.array(odds) / np.sum(odds), rtol=1e-9)
    assert any("2 rows lack entries" in text and "mean given the others" in text for text in texts(display))
    hollow = [c for c in display.ax_.collections if len(c.get_offsets()) > 0 and len(c.get_facecolors()) == 0]
    assert sum(len(c.get_offsets()) for c in hollow) == 2
    density = MixtureDisplay.from_estimator(model, holes, features=(2,))
    assert_array_equal(density.points[:, 0], np.delete(X[:40, 2], [7, 9]))
    assert "2 rows lack entries: left out" in texts(density)


def test_what_cannot_fill_leaves_out_and_says_so():
    X = groups(2)
    model = OtherMixture(2, random_state=0).fit(X)  # write against the attributes: scikit-learn's has them too
    holes = X.copy()
    holes[5, 0] = np.nan
    display = MixtureDisplay.from_estimator(model, holes)
    assert_array_equal(display.points, np.delete(X, 5, axis=0))
    assert "1 row lacks entries: left out" in texts(display)
    with pytest.raises(ValueError, match="no row to show"):
        MixtureDisplay.from_estimator(model, np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="KMeans has no means_ and covariances_"):
        MixtureDisplay.from_estimator(KMeans(2, random_state=0).fit(X), X)


def test_many_components_and_few_rows_have_a_picture():
    X = groups(2)
    display = MixtureDisplay.from_estimator(
        GaussianMixture(LISTED + 3, covariance_type="diag", tol=1e-2, random_state=0).fit(X), X
    )
    assert sum(": weight" in text for text in texts(display)) == LISTED
    assert "and 3 lighter components" in texts(display)
    display.figure_.canvas.draw()
    for rows in (X[:1], X[:, :1]):
        model = GaussianMixture(1, random_state=0, reg_covar=0.1).fit(X[:, : rows.shape[1]])
        MixtureDisplay.from_estimator(model, rows).figure_.canvas.draw()


@pytest.mark.parametrize("model", [GibbsMixture(2, random_state=0), StochasticEM(2, n_sweeps=30, random_state=0)])
def test_other_ways_to_fit_a_mixture_have_the_same_picture(model):
    X = groups(2)
    display = MixtureDisplay.from_estimator(model.fit(X), X)
    assert_allclose(display.means, model.means_)
    assert_allclose(display.covariances, model.covariances_)
    assert_allclose(display.responsibilities, model.predict_proba(X))
    holes = X.copy()
    holes[0, 0] = np.nan
    assert len(MixtureDisplay.from_estimator(model, holes).points) == len(X) - 1  # neither knows what to do with a hole
    assert display_for(model) is MixtureDisplay


def test_a_single_gaussian_is_a_mixture_of_one():
    X = groups(3)
    X[4, 0] = np.nan
    model = MissingGaussian().fit(X)
    display = MixtureDisplay.from_estimator(model, X, features=(0, 1))
    assert_allclose(display.means, model.mean_[None, :2])
    assert_allclose(display.covariances[0], model.covariance_[:2, :2])
    S, m = model.covariance_, model.mean_
    expected = m[0] + S[0, 1:] @ np.linalg.solve(S[1:, 1:], X[4, 1:] - m[1:])
    assert_allclose(display.points[4], [expected, X[4, 1]], rtol=1e-9)
    assert_array_equal(np.flatnonzero(display.filled), [4])
    assert display_for(model) is MixtureDisplay


def test_mixtures_of_gaussians_choose_it_and_clusterers_do_not():
    X = groups(2)
    assert display_for(GaussianMixture(2, random_state=0).fit(X)) is MixtureDisplay
    assert display_for(OtherMixture(2, random_state=0).fit(X)) is MixtureDisplay
    assert display_for(KMeans(2, random_state=0).fit(X)) is ClusterDisplay
    assert display_for(OtherKMeans(2, random_state=0).fit(X)) is ClusterDisplay
    assert display_for(BernoulliMixture(2, random_state=0).fit(X > 0)) is ClusterDisplay  # a density without Gaussians
    assert isinstance(GaussianMixture(2, random_state=0).fit(X).plot(X), MixtureDisplay)
