"""Ellipses of Gaussian classes lie where the classes do, and the boundary where Bayes' rule puts it."""

import numpy as np
import pytest
from matplotlib.patches import Ellipse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis as PeerLDA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis as PeerQDA
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB as PeerNB

from lemmata.discriminant_analysis import GaussianBayes, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.naive_bayes import GaussianNB
from lemmata.plot import BoundaryDisplay, ClassGaussiansDisplay, display_for
from lemmata.plot.class_gaussians import class_gaussians


def classes(k=3, d=2, n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    factors = np.eye(d) + 0.4 * rng.normal(size=(k, d, d))
    return np.einsum("nij,nj->ni", factors[y], rng.normal(size=(n, d))) + 3 * rng.normal(size=(k, d))[y], y


@pytest.mark.parametrize(
    ("ours", "peer"),
    [
        (LinearDiscriminantAnalysis(var_smoothing=0.0), PeerLDA(store_covariance=True)),
        (QuadraticDiscriminantAnalysis(var_smoothing=0.0), PeerQDA(store_covariance=True)),
        (GaussianNB(), PeerNB()),
    ],
)
def test_classes_are_found_in_ours_and_in_scikit_learns(ours, peer):
    X, y = classes()
    for one, other in zip(class_gaussians(ours.fit(X, y)), class_gaussians(peer.fit(X, y)), strict=True):
        assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    assert display_for(ours) is ClassGaussiansDisplay
    assert display_for(peer) is ClassGaussiansDisplay
    assert class_gaussians(LogisticRegression().fit(X, y)) is None
    assert display_for(LogisticRegression().fit(X, y)) is BoundaryDisplay


@pytest.mark.parametrize("structure", ["full", "tied", "diag", "tied-diag", "spherical"])
def test_ellipses_are_lines_of_equal_density(structure):
    X, y = classes()
    model = GaussianBayes(structure).fit(X, np.array(["a", "b", "c"])[y])
    display = model.plot(X, np.array(["a", "b", "c"])[y])
    assert isinstance(display, ClassGaussiansDisplay)
    _, means, matrices = class_gaussians(model)
    ellipses = [patch for patch in display.ax_.patches if isinstance(patch, Ellipse)]
    assert len(ellipses) == 6
    for j, ellipse in enumerate(ellipses):
        c, times = divmod(j, 2)
        rim = ellipse.get_verts() if hasattr(ellipse, "get_verts") else ellipse.get_path().vertices
        away = (
            ellipse.get_patch_transform().transform(np.column_stack([np.cos(t := np.linspace(0, 6, 20)), np.sin(t)])) - means[c]
        )
        assert len(rim) > 4
        distance = np.sqrt(np.einsum("ij,jk,ik->i", away, np.linalg.inv(matrices[c]), away))
        assert_allclose(distance, times + 1, rtol=1e-6)
    told = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert "2 standard deviations" in told
    assert [name.split(":")[0] for name in told[:3]] == ["a", "b", "c"]  # and not on top of the rows
    assert not {text.get_text() for text in display.ax_.texts} & set("abc")
    display.figure_.canvas.draw()


def test_of_more_columns_the_others_are_integrated_out():
    X, y = classes(d=4)
    X[::10, 1] = np.nan
    model = QuadraticDiscriminantAnalysis().fit(X, y)
    display = ClassGaussiansDisplay.from_estimator(model, X, y, features=("x3", 1), feature_names=["x0", "x1", "x2", "x3"])
    assert display.n_left_out == 15
    assert_array_equal(display.means, model.means_[:, [3, 1]])
    assert_array_equal(display.covariances, model.covariance_[:, [3, 1]][:, :, [3, 1]])
    marginal = GaussianBayes("full").fit(
        X[1:9][:, [3, 1]].repeat(3, axis=0) + np.arange(24.0)[:, None] ** [1, 2], np.arange(24) % 3
    )
    marginal.priors_, marginal.means_, marginal.covariance_ = model.priors_, display.means, display.covariances
    points = np.stack(np.meshgrid(*display.grid), axis=-1).reshape(-1, 2)
    assert_allclose(display.values.reshape(-1, 3), marginal.predict_log_proba(points), rtol=1e-8, atol=1e-8)
    assert_array_equal(display.regions.ravel(), marginal.predict(points))
    assert display.ax_.get_title() == "QuadraticDiscriminantAnalysis\n15 rows lack entries: left out"
    assert type(model.plot(X, y)).__name__ == "BoundaryDisplay"  # no two columns were named


def test_what_cannot_be_shown_is_said():
    X, y = classes(d=3)
    model = GaussianNB().fit(X, y)
    with pytest.raises(ValueError, match="Of 3 columns, two can be shown"):
        ClassGaussiansDisplay.from_estimator(model, X, y)
    with pytest.raises(ValueError, match="which is not among"):
        ClassGaussiansDisplay.from_estimator(model, X, y, features=(0, "z"))
    with pytest.raises(ValueError, match="two different columns"):
        ClassGaussiansDisplay.from_estimator(model, X, y, features=(1, 1))
    with pytest.raises(ValueError, match="no Gaussian classes"):
        ClassGaussiansDisplay.from_estimator(LogisticRegression().fit(X, y), X, y, features=(0, 1))
    with pytest.raises(ValueError, match="no row to show"):
        ClassGaussiansDisplay.from_estimator(model, np.full((2, 3), np.nan), features=(0, 1))
