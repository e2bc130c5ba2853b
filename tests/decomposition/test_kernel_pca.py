"""Kernel PCA: against PCA, scikit-learn, and explicit feature maps."""

import numpy as np
import pytest
from sklearn.datasets import make_circles
from sklearn.decomposition import KernelPCA as SklearnKernelPCA

from lemmata.decomposition import PCA, KernelPCA
from lemmata.kernels import RBF, Linear, Polynomial, feature_map

CROSS = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


@pytest.mark.item("FAC-07")
def test_the_cross_by_hand():
    model = KernelPCA(1).fit(CROSS)
    assert model.eigenvalues_[0] == pytest.approx(8.0, rel=1e-12)
    u = model.eigenvectors_[:, 0]
    np.testing.assert_allclose(np.abs(u), [1 / np.sqrt(2), 1 / np.sqrt(2), 0, 0], atol=1e-12)
    np.testing.assert_allclose(model.transform(CROSS)[:, 0], np.sqrt(8) * u, atol=1e-12)
    assert np.abs(model.transform(CROSS)).max() == pytest.approx(2.0, rel=1e-12)
    assert np.abs(8 * u).max() == pytest.approx(5.656854, abs=1e-6)  # what the eigenvalue in place of its root would give


@pytest.mark.item("FAC-07")
def test_with_a_linear_kernel_it_is_pca():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4)) + 7.0, rng.normal(size=(9, 4))
    kernel, plain = KernelPCA(3).fit(X), PCA(3).fit(X)
    np.testing.assert_allclose(kernel.eigenvalues_, plain.explained_variance_ * 49, rtol=1e-9)
    signs = np.sign((kernel.transform(X) * plain.transform(X)).sum(axis=0))
    np.testing.assert_allclose(kernel.transform(new), plain.transform(new) * signs, rtol=1e-8, atol=1e-8)
    z = kernel.transform(X)
    np.testing.assert_allclose(z.T @ z, np.diag(kernel.eigenvalues_), atol=1e-8)  # orthogonal, with lengths √λ
    np.testing.assert_allclose(z.sum(axis=0), 0.0, atol=1e-9)


@pytest.mark.item("FAC-07")
def test_with_a_polynomial_kernel_it_is_pca_of_the_features():
    rng = np.random.default_rng(1)
    X, kernel = rng.normal(size=(30, 3)), Polynomial(2, 1.0)
    features = feature_map(kernel, X)
    model, plain = KernelPCA(4, kernel=kernel).fit(X), PCA(4).fit(features)
    np.testing.assert_allclose(model.eigenvalues_, plain.explained_variance_ * 29, rtol=1e-9)
    np.testing.assert_allclose(np.abs(model.transform(X)), np.abs(plain.transform(features)), atol=1e-8)


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf", "gamma": 0.3}, {"kernel": "poly", "gamma": 0.5, "coef0": 1.0}, {"kernel": "linear"}]
)
def test_agrees_with_scikit_learn(options):
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(40, 3)), rng.normal(size=(6, 3))
    ours = KernelPCA(3, **options, fit_inverse_transform=True, alpha=0.5).fit(X)
    theirs = SklearnKernelPCA(3, **options, fit_inverse_transform=True, alpha=0.5, eigen_solver="dense").fit(X)
    np.testing.assert_allclose(ours.eigenvalues_, theirs.eigenvalues_, rtol=1e-8)
    signs = np.sign((ours.transform(X) * theirs.transform(X)).sum(axis=0))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new) * signs, rtol=1e-7, atol=1e-8)
    assert ours.certify(X).holds
    if options["kernel"] == "rbf":  # the others depend on signs, in a space where these are free
        np.testing.assert_allclose(
            ours.inverse_transform(ours.transform(new)), theirs.inverse_transform(theirs.transform(new)), rtol=1e-6, atol=1e-7
        )


def test_weights_are_repetitions_and_copies_are_merged():
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(25, 2)), rng.integers(1, 4, 25)
    weighted = KernelPCA(3, kernel=RBF(1.0)).fit(X, sample_weight=weight)
    repeated = SklearnKernelPCA(3, kernel="rbf", gamma=0.5, eigen_solver="dense").fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=1e-9)
    np.testing.assert_allclose(np.abs(weighted.transform(X)), np.abs(repeated.transform(X)), atol=1e-8)
    assert len(KernelPCA(3, kernel=RBF(1.0)).fit(np.repeat(X, weight, axis=0)).X_fit_) == 25


def test_many_rows_go_by_products_with_few_vectors():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(1200, 5))
    few, all_ = KernelPCA(4, kernel="rbf").fit(X), KernelPCA(200, kernel="rbf").fit(X)
    np.testing.assert_allclose(few.eigenvalues_, all_.eigenvalues_[:4], rtol=1e-10)
    assert few.certify(X).holds


def test_circles_come_apart():
    X, y = make_circles(300, noise=0.05, factor=0.3, random_state=0)
    z = KernelPCA(2, kernel=RBF(0.5)).fit_transform(X)
    inner, outer = z[y == 1], z[y == 0]
    assert max(inner[:, 0].min(), inner[:, 1].min()) > -1  # finite
    gaps = [max(a.min() - b.max(), b.min() - a.max()) for a, b in zip(inner.T, outer.T, strict=True)]
    radii = np.linalg.norm(z - inner.mean(axis=0), axis=1)
    assert max(*gaps, radii[y == 0].min() - radii[y == 1].max()) > 0  # one number tells the circles apart


def test_preimages_take_noise_away():
    rng = np.random.default_rng(5)
    angle = rng.uniform(0, 2 * np.pi, 300)
    clean = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = clean + 0.15 * rng.normal(size=clean.shape)

    def off(rows):
        """Mean distance from the circle."""
        return np.abs(np.linalg.norm(rows, axis=1) - 1).mean()

    two = KernelPCA(2, kernel=RBF(0.7), fit_inverse_transform=True, alpha=0.01).fit(noisy)
    assert off(two.inverse_transform(two.transform(noisy))) < 0.5 * off(noisy)
    model = KernelPCA(6, kernel=RBF(0.7)).fit(noisy)
    z = model.transform(noisy)
    assert off(model.preimage(z)) < 0.5 * off(noisy)
    rows, share = model.X_fit_, 1 / 300  # the image of a preimage is nearer to the point than that of any other row
    C = z @ model._coefficients().T
    C += share * (1 - C.sum(axis=1, keepdims=True))
    similar = (C * model.kernel_(model.preimage(z), rows)).sum(axis=1)
    assert (similar >= (C @ model.kernel_(rows)).max(axis=1) - 1e-6).all()


def test_refusals():
    model = KernelPCA(2).fit(CROSS)
    with pytest.raises(ValueError, match="fit_inverse_transform=True"):
        model.inverse_transform([[0.0, 0.0]])
    with pytest.raises(ValueError, match="for the kernel RBF"):
        model.preimage([[0.0, 0.0]])
    with pytest.raises(ValueError, match="3 columns"):
        KernelPCA(2, kernel=Linear(), fit_inverse_transform=True).fit(CROSS).inverse_transform([[0.0, 0.0, 0.0]])
