"""PCA: against the SVD, scikit-learn, and its own theorems."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import svds
from sklearn.decomposition import PCA as SklearnPCA
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.decomposition import PCA, spectrum
from lemmata.decomposition.spectrum import krylov, spectrum_of

CROSS = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
SOLVERS = ["auto", "full", "covariance_eigh", "arpack", "randomized"]


@pytest.fixture(params=[(200, 12), (40, 12), (12, 40)], ids=["tall", "square", "wide"])
def table(request):
    """Rows of known spectrum, far from zero."""
    n, d = request.param
    rng = np.random.default_rng(0)
    U = rng.normal(size=(n, min(n, d) - 1))
    U = np.linalg.qr(U - U.mean(axis=0))[0]
    V = np.linalg.qr(rng.normal(size=(d, U.shape[1])))[0]
    sigma = np.geomspace(10.0, 0.1, U.shape[1])
    return (U * sigma) @ V.T + 100 * rng.normal(size=d), sigma, V.T


@pytest.mark.item("FAC-01", "FAC-02")
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_route_finds_the_known_spectrum(table, solver):
    X, sigma, V = table
    model = PCA(5, svd_solver=solver, random_state=0).fit(X)
    np.testing.assert_allclose(model.singular_values_, sigma[:5], rtol=1e-9)  # X has lost two digits to its offset
    np.testing.assert_allclose(np.abs(np.sum(model.components_ * V[:5], axis=1)), 1.0, rtol=1e-9)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(5), atol=1e-12)
    covariance = np.cov(X.T)
    np.testing.assert_allclose(
        model.components_ @ covariance, model.explained_variance_[:, None] * model.components_, atol=1e-9 * sigma[0] ** 2
    )
    directions = np.random.default_rng(1).normal(size=(1000, X.shape[1]))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    assert (np.einsum("ij,jk,ik->i", directions, covariance, directions) <= model.explained_variance_[0]).all()
    assert (np.take_along_axis(model.components_, np.abs(model.components_).argmax(axis=1)[:, None], axis=1) > 0).all()
    assert model.certify(X).kind == "proof"
    assert model.certify(X).holds


@pytest.mark.item("FAC-01")
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("n_components", [3, None, 0.9])
def test_agrees_with_scikit_learn(whiten, n_components):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(80, 6)) @ rng.normal(size=(6, 6)) + rng.normal(size=6)
    ours, theirs = PCA(n_components, whiten=whiten).fit(X), SklearnPCA(n_components, whiten=whiten, svd_solver="full").fit(X)
    names = ["components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_", "noise_variance_"]
    for name in names:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12, err_msg=name)
    assert ours.n_components_ == theirs.n_components_
    assert ours.n_samples_ == theirs.n_samples_
    new = rng.normal(size=(7, 6))
    np.testing.assert_allclose(ours.transform(new), theirs.transform(new), rtol=1e-9, atol=1e-9)
    z = ours.transform(new)
    np.testing.assert_allclose(ours.inverse_transform(z), theirs.inverse_transform(z), rtol=1e-9, atol=1e-9)
    theirs.whiten = False  # with it, scikit-learn's covariance is scaled twice
    np.testing.assert_allclose(ours.get_covariance(), theirs.get_covariance(), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(ours.get_precision(), theirs.get_precision(), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ours.score_samples(new), theirs.score_samples(new), rtol=1e-8)
    assert ours.score(new) == pytest.approx(theirs.score(new), rel=1e-8)


@pytest.mark.item("FAC-02", "FAC-03")
def test_the_cross_by_hand():
    model = PCA(1).fit(CROSS)
    n = len(CROSS)
    np.testing.assert_allclose(PCA().fit(CROSS).explained_variance_ * (n - 1) / n, [2.0, 0.5], rtol=1e-12)
    back = model.inverse_transform(model.transform(CROSS))
    error = 0.5 * ((CROSS - back) ** 2).sum()
    assert error == pytest.approx(1.0, rel=1e-12)  # (N/2) times the eigenvalue left out; without N it would be 0.25
    assert error == pytest.approx(n / 2 * 0.5, rel=1e-12)


@pytest.mark.item("FAC-02", "FAC-03")
def test_reconstruction_errs_by_the_eigenvalues_left_out_and_no_subspace_errs_less():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 8)) @ rng.normal(size=(8, 8)) + 5.0
    values = PCA().fit(X).explained_variance_ * 49
    for k in range(1, 9):
        model = PCA(k).fit(X)
        residual = X - model.inverse_transform(model.transform(X))
        np.testing.assert_allclose((residual**2).sum(), values[k:].sum(), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(residual @ model.components_.T, 0.0, atol=1e-10)  # orthogonal to the subspace
        for _ in range(20):  # Eckart & Young
            Q = np.linalg.qr(rng.normal(size=(8, k)))[0]
            A = X - X.mean(axis=0)
            assert ((A - A @ Q @ Q.T) ** 2).sum() >= values[k:].sum() * (1 - 1e-12)
    b = X.mean(axis=0) @ PCA().fit(X).components_.T  # discarded coordinates are fixed at those of the mean
    model = PCA(3).fit(X)
    back = model.inverse_transform(model.transform(X)) @ PCA().fit(X).components_[3:].T
    np.testing.assert_allclose(back, np.tile(b[3:], (50, 1)), atol=1e-10)


@pytest.mark.item("FAC-04")
def test_the_fewest_directions_that_keep_a_share_of_the_variance():
    values = np.array([4.0, 3.0, 2.0, 1.0])
    X = np.vstack([np.diag(np.sqrt(values)), -np.diag(np.sqrt(values))])  # covariance proportional to diag(values)
    for share, k in ((0.3, 1), (0.4, 1), (0.41, 2), (0.7, 2), (0.9, 3), (0.99, 4)):
        model = PCA(share).fit(X)
        assert model.n_components_ == k, share
        kept = model.explained_variance_ratio_.sum()
        error = ((X - model.inverse_transform(model.transform(X))) ** 2).sum() / (X**2).sum()
        assert kept >= share - 1e-12
        assert error == pytest.approx(1 - kept, abs=1e-12)


def test_small_directions_keep_their_digits():
    rng = np.random.default_rng(4)
    U, V = rng.normal(size=(300, 6)), np.linalg.qr(rng.normal(size=(6, 6)))[0]
    U = np.linalg.qr(U - U.mean(axis=0))[0]
    sigma = 10.0 ** -np.arange(0, 12, 2)  # eigenvalues down to 1e-20 of the largest
    model = PCA().fit((U * sigma) @ V.T)
    np.testing.assert_allclose(model.singular_values_, sigma, rtol=1e-5)  # 1e-16 of the largest is 1e-6 of the smallest


@pytest.mark.parametrize("d", [30, 3000])
def test_sparse_tables_are_not_made_dense_and_agree(d, monkeypatch):
    X = sp.random(400 if d == 30 else 2200, d, 0.1 if d == 30 else 0.002, format="csr", random_state=0)
    if d == 3000:
        monkeypatch.setattr(sp.csr_matrix, "toarray", None)
    model = PCA(4, random_state=0).fit(X)
    assert model.certify(X).holds
    monkeypatch.undo()
    A = X.toarray() - X.toarray().mean(axis=0)
    _, sigma, V = svds(A, 4, random_state=0)
    np.testing.assert_allclose(model.singular_values_, sigma[::-1], rtol=1e-8)
    np.testing.assert_allclose(np.abs(model.components_ @ V[::-1].T), np.eye(4), atol=1e-5)
    np.testing.assert_allclose(model.transform(X[:9]), model.transform(X[:9].toarray()), atol=1e-10)
    np.testing.assert_allclose(model.score_samples(X[:9]), model.score_samples(X[:9].toarray()), rtol=1e-9)


def test_few_rows_with_many_columns_go_by_their_products():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 2500)) + 3.0
    weight = rng.integers(1, 4, 30).astype(float)
    model = PCA(5).fit(X, sample_weight=weight)
    full = PCA(5, svd_solver="full").fit(np.repeat(X, weight.astype(int), axis=0))
    np.testing.assert_allclose(model.components_, full.components_, atol=1e-9)
    np.testing.assert_allclose(model.explained_variance_, full.explained_variance_, rtol=1e-9)
    assert model.certify(X, sample_weight=weight).kind == "proof"
    sparse = PCA(5).fit(sp.csr_array(X), sample_weight=weight)
    np.testing.assert_allclose(sparse.components_, full.components_, atol=1e-9)
    assert sparse.certify(sp.csr_array(X), sample_weight=weight).holds


def test_routes_are_chosen_by_shape():
    class Shape:
        def __init__(self, n, d, X=None):
            self.n_rows, self.n_columns, self.X = n, d, np.ones((1, 1)) if X is None else X

        def first(self):
            return self.X, None

    sparse = sp.csr_array((1, 1))
    assert spectrum.route(Shape(10**6, 50), 10) == "covariance_eigh"
    assert spectrum.route(Shape(500, 10**5), 10) == "gram"
    assert spectrum.route(Shape(10**5, 10**4, sparse), 10) == "arpack"
    assert spectrum.route(Shape(10**5, 10**4), 10) == "randomized"
    assert spectrum.route(Shape(10**5, 10**4), None) == "covariance_eigh"


def test_krylov_restarts_and_says_when_it_did_not_converge(monkeypatch):
    rng = np.random.default_rng(6)
    A = rng.normal(size=(300, 300))
    A = A @ A.T
    values, vectors, converged = krylov(A, rng.normal(size=(300, 8)), 5, 1e-9)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(A)[::-1][:5], rtol=1e-10)
    assert converged
    assert np.linalg.norm(A @ vectors.T - vectors.T * values) < 1e-7 * values[0]
    monkeypatch.setattr(spectrum, "PASSES", 2)
    assert not krylov(A, rng.normal(size=(300, 8)), 5, 1e-12)[2]
    with pytest.warns(ConvergenceWarning, match="PCA did not converge"):
        PCA(3, svd_solver="randomized", tol=1e-14, random_state=0).fit(rng.normal(size=(90, 60)))


def test_the_certificate_sees_through_eigenvectors_that_are_not_the_leading_ones():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 5)) * [5.0, 4.0, 3.0, 2.0, 1.0]
    model, all_ = PCA(2).fit(X), PCA().fit(X)
    model.components_, model.explained_variance_ = all_.components_[[0, 2]], all_.explained_variance_[[0, 2]]
    certificate = model.certify(X)
    assert certificate["eigenvectors"].holds
    assert not certificate["leading"].holds


def test_rows_that_do_not_vary_have_no_density():
    model = PCA(2).fit(np.ones((4, 3)))
    with pytest.raises(ValueError, match="no density"):
        model.score(np.ones((4, 3)))
    with pytest.raises(ValueError, match="at most 3"):
        PCA(4).fit(np.ones((9, 3)))
    with pytest.raises(ValueError, match="fewer directions"):
        PCA(svd_solver="arpack").fit(CROSS)
    with pytest.raises(ValueError, match="2 columns"):
        PCA(1).fit(CROSS).inverse_transform(np.ones((1, 2)))


def test_wide_sparse_tables_from_blocks_of_any_size_agree():
    X = sp.csr_array(sp.random(3000, 2500, 0.004, random_state=1))
    with lemmata.config(block_rows=512):
        small = spectrum_of(Blocks.of(X, None), 3, "arpack", np.random.default_rng(0))
    large = spectrum_of(Blocks.of(X, None), 3, "randomized", np.random.default_rng(0))
    np.testing.assert_allclose(small.values, large.values, rtol=1e-10)
