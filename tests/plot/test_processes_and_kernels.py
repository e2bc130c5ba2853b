"""Functions of a Gaussian process, its evidence, kernel matrices and neighbors are shown as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.gaussian_process import GaussianProcessRegressor as PeerProcess
from sklearn.gaussian_process.kernels import RBF as PeerRBF
from sklearn.gaussian_process.kernels import WhiteKernel

from lemmata.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from lemmata.kernels import RBF, Constant, Linear
from lemmata.neighbors import KNeighborsClassifier, KNeighborsRegressor, NearestNeighbors
from lemmata.plot import (
    BoundaryDisplay,
    EvidenceDisplay,
    KernelMatrixDisplay,
    NeighborGraphDisplay,
    PredictiveBandDisplay,
    RegressionDisplay,
)
from lemmata.svm import SVC


def wave(n=14, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 7, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def test_a_process_has_its_band_and_functions_from_its_posterior():
    X, y = wave()
    model = GaussianProcessRegressor(RBF(), noise=0.01, optimizer=None).fit(X, y)
    display = model.plot(X, y)
    assert isinstance(display, PredictiveBandDisplay)
    assert display.samples.shape == (5, len(display.grid))
    assert_array_equal(model.plot(X, y).samples, display.samples)  # the same ones every time
    assert_allclose(display.bands[0.9], model.predict_interval(display.grid[:, None], 0.9))
    curves = display.ax_.lines[1:6]
    assert_allclose([curve.get_ydata() for curve in curves], display.samples)
    # Of many functions nine in ten lie in the band of f at a point: 400 draws at level 1e-6.
    many = PredictiveBandDisplay.from_estimator(model, X, y, n_samples=400)
    low, high = model.predict_interval(many.grid[:, None], 0.9, of="f").T
    share = ((low <= many.samples) & (many.samples <= high)).mean(axis=0)
    assert np.abs(share - 0.9).max() < 5 * np.sqrt(0.9 * 0.1 / 400)
    assert PredictiveBandDisplay.from_estimator(model, X, y, n_samples=0).samples is None


def test_noise_that_is_known_row_by_row_leaves_the_band_of_f():
    X, y = wave()
    model = GaussianProcessRegressor(RBF(), noise=np.linspace(0.01, 0.1, len(X)), optimizer=None).fit(X, y)
    display = model.plot(X, y)
    assert display.of == "f"
    assert "90% band of f" in [text.get_text() for text in display.ax_.get_legend().get_texts()]
    wide = GaussianProcessRegressor(RBF(), noise=0.1, optimizer=None).fit(np.column_stack([X, X**2]), y)
    assert isinstance(wide.plot(np.column_stack([X, X**2]), y), RegressionDisplay)


def test_the_surface_is_the_evidence():
    X, y = wave()
    model = GaussianProcessRegressor(Constant(1.0) * RBF()).fit(X, y)
    display = EvidenceDisplay.from_estimator(model, entries=("length_scale", "noise"), resolution=7, reach=4.0)
    assert display.labels == ("length_scale", "noise")
    theta = np.append(model.kernel_.theta, np.log(model.noise_))
    for i, j in [(0, 0), (3, 3), (2, 5)]:
        there = theta.copy()
        there[1], there[2] = display.grid[0][j], display.grid[1][i]
        assert display.values[i, j] == pytest.approx(model.log_marginal_likelihood(there), rel=1e-12)
    assert display.values[3, 3] == pytest.approx(model.log_marginal_likelihood_, rel=1e-9)  # the fit is in the middle
    assert display.values.max() <= display.best + 1e-9
    (fitted,) = display.ax_.lines
    assert_allclose([fitted.get_xdata()[0], fitted.get_ydata()[0]], np.exp(theta[1:]), rtol=1e-12)
    assert_allclose(display.grid[0][[0, -1]], theta[1] + np.log([0.25, 4.0]))
    assert display.ax_.get_xscale() == display.ax_.get_yscale() == "log"
    display.figure_.canvas.draw()


def test_surfaces_of_classifiers_and_of_other_libraries():
    X, y = wave(20)
    model = GaussianProcessClassifier(Constant(1.0) * RBF()).fit(X, y > 0)
    display = EvidenceDisplay.from_estimator(model, entries=(0, 1), resolution=4)
    assert display.labels == ("value", "length_scale")
    peer = PeerProcess(PeerRBF() + WhiteKernel(0.1)).fit(X, y)
    display = EvidenceDisplay.from_estimator(peer, resolution=4)
    assert display.labels == ("length_scale", "noise_level")
    assert display.best == pytest.approx(peer.log_marginal_likelihood_value_, rel=1e-9)


def test_surfaces_need_two_names():
    X, y = wave()
    model = GaussianProcessRegressor(RBF() + RBF(2.0)).fit(X, y)
    with pytest.raises(ValueError, match="'length_scale' names 2"):
        EvidenceDisplay.from_estimator(model, entries=("length_scale", "noise"))
    with pytest.raises(ValueError, match="'width' names 0"):
        EvidenceDisplay.from_estimator(model, entries=("width", "noise"))
    with pytest.raises(ValueError, match="two different hyperparameters"):
        EvidenceDisplay.from_estimator(model, entries=(0, 0))
    with pytest.raises(ValueError, match="this model has 1 that are not fixed"):
        EvidenceDisplay.from_estimator(GaussianProcessRegressor(RBF(), noise=0.1).fit(X, y))


def test_matrices_are_sorted_by_class():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.array(list("cab"))[np.arange(30) % 3]
    display = KernelMatrixDisplay.from_kernel(RBF(0.7), X, y)
    assert_array_equal(display.labels, np.repeat([0, 1, 2], 10))
    assert_array_equal(y[display.order], np.repeat(list("abc"), 10))
    assert_allclose(display.matrix, RBF(0.7)(X[display.order]), rtol=1e-12)
    assert_array_equal(display.ax_.images[0].get_array(), display.matrix)
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == list("abc")
    same = KernelMatrixDisplay.from_matrix(RBF(0.7)(X), y)
    assert_allclose(same.matrix, display.matrix, rtol=1e-12)
    same = KernelMatrixDisplay.from_estimator(SVC(kernel=RBF(0.7)).fit(X, y), X, y)
    assert_allclose(same.matrix, display.matrix, rtol=1e-12)
    assert_allclose(KernelMatrixDisplay.from_kernel(lambda A, B: A @ B.T, X).matrix, X @ X.T)
    assert KernelMatrixDisplay.from_kernel(Linear(), csr_array(X), max_rows=7).matrix.shape == (7, 7)
    display.figure_.canvas.draw()


def test_matrices_may_be_negative_or_zero_and_must_be_square():
    display = KernelMatrixDisplay.from_matrix([[-1.0, 0.5], [0.5, -2.0]])
    assert display.ax_.images[0].norm.vcenter == 0
    KernelMatrixDisplay.from_matrix(np.zeros((3, 3))).figure_.canvas.draw()
    with pytest.raises(ValueError, match="as many columns as rows"):
        KernelMatrixDisplay.from_matrix(np.ones((2, 3)))
    with pytest.raises(ValueError, match="has no kernel_"):
        KernelMatrixDisplay.from_estimator(KNeighborsClassifier().fit(np.eye(6), np.arange(6) % 2), np.eye(6))


def test_lines_go_to_the_nearest_rows():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 2)), rng.normal(size=(5, 2))
    model = NearestNeighbors(n_neighbors=3).fit(X)
    display = model.plot(X)
    assert isinstance(display, NeighborGraphDisplay)
    assert_array_equal(display.neighbors, X[model.kneighbors(return_distance=False)])  # each row leaves itself out
    assert_array_equal(model.plot(new).neighbors, X[model.kneighbors(new, return_distance=False)])
    segments = display.ax_.collections[0].get_segments()
    assert len(segments) == 120
    assert_array_equal(segments[0], [X[0], display.neighbors[0, 0]])
    wide = NearestNeighbors(n_neighbors=3).fit(csr_array(rng.normal(size=(40, 5))))
    assert wide.plot(csr_array(rng.normal(size=(9, 5)))).neighbors.shape == (9, 3, 2)


def test_votes_and_means_of_neighbors_are_shown():
    X, y = wave(30)
    assert isinstance(KNeighborsClassifier().fit(X, y > 0).plot(X, y > 0), BoundaryDisplay)
    assert isinstance(KNeighborsRegressor().fit(X, y).plot(X, y), RegressionDisplay)
