"""Displays keep scikit-learn's convention and draw what the estimator says."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal

from lemmata.cluster import KMeans
from lemmata.core.certificate import Certificate, Check
from lemmata.linear_model import LinearRegression
from lemmata.plot import CertificateDisplay, ClusterDisplay, RegressionDisplay
from lemmata.plot.cluster import principal_directions
from lemmata.plot.drawing import KIND_COLORS, REFUSED, sample_rows


def line(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, X @ [1.0, -2.0] + rng.normal(0, 0.3, n)


def test_regression_draws_its_predictions():
    X, y = line()
    model = LinearRegression().fit(X, y)
    display = RegressionDisplay.from_estimator(model, X, y)
    assert_array_equal(display.ax_.collections[0].get_offsets(), np.column_stack([model.predict(X), y]))
    assert display.figure_ is display.ax_.figure
    assert display.residual_ax_ is None
    assert display.ax_.get_title() == "LinearRegression"


def test_residual_panel_shares_its_axis():
    X, y = line()
    model = LinearRegression().fit(X, y)
    display = RegressionDisplay.from_predictions(y, model.predict(X), residuals=True, name="mine")
    offsets = display.residual_ax_.collections[0].get_offsets()
    assert_allclose(offsets[:, 1], y - model.predict(X))
    assert display.ax_.get_shared_x_axes().joined(display.ax_, display.residual_ax_)
    display.figure_.canvas.draw()


@pytest.mark.parametrize("seed", range(3))
def test_displays_draw_on_given_axes(seed):
    plt.close("all")
    X, y = line(seed=seed)
    figure, (first, second, third) = plt.subplots(3)
    model = LinearRegression().fit(X, y)
    assert RegressionDisplay.from_estimator(model, X, y, ax=first).ax_ is first
    assert ClusterDisplay.from_estimator(KMeans(2, random_state=0).fit(X), X, ax=second).ax_ is second
    assert CertificateDisplay.from_estimator(model, X, y, ax=third).figure_ is figure
    assert len(plt.get_fignums()) == 1


def test_principal_directions_match_the_covariance():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 5)) * [5, 3, 1, 0.5, 0.1] + 7
    mean, directions, shares = principal_directions(X)
    values, vectors = np.linalg.eigh(np.cov(X.T))
    assert_allclose(mean, X.mean(axis=0))
    assert_allclose(np.abs(vectors[:, [-1, -2]].T @ directions), np.eye(2), atol=1e-9)
    assert_allclose(shares, values[[-1, -2]] / values.sum(), rtol=1e-9)
    assert (directions[np.abs(directions).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("shape", [(30, 1), (2, 4), (1, 3)])
def test_degenerate_shapes_have_a_picture(shape):
    X = np.random.default_rng(0).normal(size=shape)
    display = ClusterDisplay.from_estimator(KMeans(1, random_state=0).fit(X), X)
    assert display.points.shape == (shape[0], 2)
    assert np.isfinite(display.points).all()
    display.figure_.canvas.draw()


def test_clusters_keep_their_rows_and_centers():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(30, 3)), rng.normal(size=(50, 3)) + 20])
    model = KMeans(2, random_state=0).fit(X)
    display = ClusterDisplay.from_estimator(model, X)
    assert_array_equal(display.labels, model.predict(X))
    for k in range(2):  # projections are linear: the center of the rows is the row of the center
        assert_allclose(display.points[display.labels == k].mean(axis=0), display.centers[k], atol=1e-9)
    *groups, centers = display.ax_.collections
    assert sorted(len(group.get_offsets()) for group in groups) == [30, 50]
    assert_allclose(centers.get_offsets(), display.centers)


def test_large_tables_are_thinned():
    X = np.random.default_rng(0).normal(size=(300, 2))
    display = ClusterDisplay.from_estimator(KMeans(3, random_state=0).fit(X), X, max_rows=100)
    assert len(display.points) == 100
    rows = sample_rows(20_000)
    assert len(np.unique(rows)) == 5_000
    assert_array_equal(rows, sample_rows(20_000))
    y = np.zeros(20_000)
    assert len(RegressionDisplay.from_predictions(y, y).ax_.collections[0].get_offsets()) == 5_000


def test_certificate_shows_each_check_where_it_stands():
    checks = [
        Check("gap", 1e-9, 1e-6, "proof", "c"),
        Check("fixed point", 1e-2, 1e-3, "local", "c"),
        Check("spread", 1.001, 1.01, "evidence", "c"),
        Check("bound", 3.0, np.inf, "proof", "c"),
        Check("zero", 0.0, 1e-6, "proof", "c"),
        Check("undefined", np.nan, 1e-6, "proof", "c"),
    ]
    display = CertificateDisplay(Certificate(*checks)).plot()
    ax = display.ax_
    marks = {row.get_ydata()[0]: row for row in ax.lines if row.get_marker() in ("o", "X")}
    left, right = ax.get_xlim()
    assert ax.get_xscale() == "log"
    assert [marks[j].get_xdata()[0] for j in range(4)] == [check.value for check in checks[:4]]
    assert marks[4].get_xdata()[0] == left
    assert marks[5].get_xdata()[0] == right
    assert [marks[j].get_marker() for j in range(6)] == ["o", "X", "o", "o", "o", "X"]
    assert [marks[j].get_color() for j in (0, 1, 2)] == [KIND_COLORS["proof"], REFUSED, KIND_COLORS["evidence"]]
    assert [label.get_text() for label in ax.get_yticklabels()] == [check.name for check in checks]
    assert ax.get_title() == "certificate is refused"
    assert {entry.get_text() for entry in ax.get_legend().get_texts()} == {"proof", "local", "evidence"}
    display.figure_.canvas.draw()


def test_certificate_of_an_estimator():
    X, y = line()
    model = LinearRegression().fit(X, y)
    display = CertificateDisplay.from_estimator(model, X, y)
    assert display.certificate.holds
    assert display.ax_.get_title() == f"certificate holds ({display.certificate.kind})"


def test_importing_does_not_load_matplotlib():
    import subprocess
    import sys

    code = "import sys, lemmata.plot, lemmata.report; sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
