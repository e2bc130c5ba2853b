"""Lasso and elastic net against scikit-learn, brute force over all supports and signs, and the conditions of optimality."""

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, random_array
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet as PeerNet
from sklearn.linear_model import Lasso as PeerLasso
from sklearn.linear_model import Ridge as PeerRidge
from sklearn.linear_model import enet_path
from sklearn.linear_model import lasso_path as peer_path

from lemmata.core.blocks import Blocks
from lemmata.linear_model import ElasticNet, Lasso, LinearRegression, lasso, lasso_path
from lemmata.linear_model import working_set as ws
from linear_model import naive

TIGHT = {"tol": 1e-12, "max_iter": 100_000}


def table(seed=0, n=50, d=20, noise=1.0):
    """Draw columns that are correlated and off-center, a target that five of them make, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1)) + rng.normal(size=d)
    return X, X[:, :5] @ [3.0, -2.0, 1.0, 0.5, -0.5][: min(d, 5)] + noise * rng.normal(size=n) + 4.0, rng.random(n) + 0.1


def largest(X, y, weight=None, intercept=True):
    """Give the least alpha of the lasso at which all coefficients are zero."""
    weight = np.ones(len(y)) if weight is None else weight
    if intercept:
        X, y = X - np.average(X, axis=0, weights=weight), y - np.average(y, weights=weight)
    return np.abs(X.T @ (weight * y)).max() / weight.sum()


def objective(X, y, coef, intercept, alpha, share, weight=None):
    """Evaluate (1/2S) Σ s (y − xw − b)² + α ρ ‖w‖₁ + ½ α (1 − ρ) ‖w‖²."""
    squares = np.average((y - X @ coef - intercept) ** 2, weights=weight)
    return squares / 2 + alpha * share * np.abs(coef).sum() + alpha * (1 - share) / 2 * (coef @ coef)


@pytest.mark.parametrize("shape", [(50, 20), (25, 60), (400, 10)])
@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize(("intercept", "positive", "weighted"), [(True, False, False), (False, True, True), (True, True, True)])
def test_agrees_with_scikit_learn(intercept, positive, weighted, share, shape):
    X, y, weight = table(1, *shape)
    weight = weight if weighted else None
    for part in (0.3, 0.01):
        alpha = part * largest(X, y, weight, intercept) / share
        options = {"fit_intercept": intercept, "positive": positive}
        peer = PeerNet(alpha, l1_ratio=share, **options, **TIGHT).fit(X, y, weight)
        model = ElasticNet(alpha, l1_ratio=share, tol=1e-12, **options).fit(X, y, weight)
        size = np.abs(peer.coef_).max()
        np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5 * size)  # √tol of a gap is an error of 1e-6
        assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-4)
        ours, theirs = (objective(X, y, m.coef_, m.intercept_, alpha, share, weight) for m in (model, peer))
        assert ours <= theirs * (1 + 1e-11)
        assert model.certify(X, y, weight).holds
        assert model.certify(X, y, weight).kind == "proof"
        if share == 1:
            same = Lasso(alpha, tol=1e-12, **options).fit(X, y, weight)
            assert np.array_equal(same.coef_, model.coef_)


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("share", [1.0, 0.3])
@pytest.mark.parametrize(("n", "d"), [(4, 6), (8, 5), (40, 5)])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_found_by_trying_all_supports_and_signs_is_better(seed, n, d, share, positive):
    X, y, weight = table(seed, n, d)
    for alpha in np.array([0.9, 0.2, 1e-2]) * largest(X, y, weight) / share:
        model = ElasticNet(alpha, l1_ratio=share, positive=positive).fit(X, y, weight)
        root = np.sqrt(weight / weight.sum())
        A, c = root[:, None] * (X - np.average(X, axis=0, weights=weight)), root * (y - np.average(y, weights=weight))
        best, least = naive.best_penalized(A, c, alpha * share, alpha * (1 - share), positive)
        value = objective(X, y, model.coef_, model.intercept_, alpha, share, weight)
        assert least * (1 - 1e-12) <= value <= least * (1 + 1e-8)
        np.testing.assert_allclose(model.coef_, best, atol=1e-3 * max(np.abs(best).max(), 1e-9))  # √tol over the curvature
        gap = model.certify(X, y, weight)["gap"].value
        assert value * (1 - gap) <= least * (1 + 1e-12), "the certificate's bound is below the optimum"
        assert not positive or (model.coef_ >= 0).all()


@pytest.mark.parametrize("shape", [(40, 30), (300, 12)])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_layout_of_the_table_gives_the_same(weighted, shape):
    X, y, weight = table(2, *shape)
    X = (X * (np.random.default_rng(0).random(X.shape) < 0.6)).astype(np.float32).astype(float)
    weight = weight if weighted else None
    alpha = 0.05 * largest(X, y, weight)
    reference = Lasso(alpha, tol=1e-13).fit(X, y, weight)
    before = X.copy()
    single = (lambda X: X.astype(np.float32), lambda X: csr_array(X.astype(np.float32)))
    for form in (np.asfortranarray, csr_array, csc_array, lambda X: X[:, ::-1][:, ::-1], *single):
        F = form(X)
        model = Lasso(alpha, tol=1e-13).fit(F, y, weight)
        assert model.coef_.dtype == F.dtype
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-6 if form in single else 1e-10)
        assert model.certify(F, y, weight).holds
        expected = X @ reference.coef_ + reference.intercept_
        np.testing.assert_allclose(model.predict(F), expected, rtol=1e-5 if form in single else 1e-9)
    assert np.array_equal(X, before)


def test_a_weight_is_a_repetition():
    X, y, _ = table(3, 30, 40)
    times = np.random.default_rng(0).integers(0, 3, 30)
    for shape in ((30, 40), (30, 4)):
        Z = X[:, : shape[1]]
        weighted = Lasso(0.1, tol=1e-13).fit(Z, y, times)
        repeated = Lasso(0.1, tol=1e-13).fit(np.repeat(Z, times, axis=0), np.repeat(y, times))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-9)
        assert weighted.certify(np.repeat(Z, times, axis=0), np.repeat(y, times)).holds


@pytest.mark.parametrize("shape", [(30, 40), (200, 8)])
def test_several_targets_are_several_problems(shape):
    X, y, weight = table(4, *shape)
    Y = np.column_stack([y, np.cos(y), np.full(len(y), 7.0)])
    for form in (np.asarray, csr_array):
        model = ElasticNet(0.05, l1_ratio=0.7, tol=1e-13).fit(form(X), Y, weight)
        assert model.coef_.shape == (3, shape[1])
        for t in range(3):
            one = ElasticNet(0.05, l1_ratio=0.7, tol=1e-13).fit(form(X), Y[:, t], weight)
            np.testing.assert_allclose(model.coef_[t], one.coef_, atol=1e-8)
            assert model.intercept_[t] == pytest.approx(one.intercept_, rel=1e-8)
        assert not model.coef_[2].any()
        assert model.certify(form(X), Y, weight).holds
    assert Lasso(0.1).fit(X, Y[:, :1]).coef_.shape == (1, shape[1])


@pytest.mark.parametrize("shape", [(30, 40), (200, 8)])
@pytest.mark.parametrize("positive", [False, True])
def test_from_the_largest_penalty_on_every_coefficient_is_exactly_zero(positive, shape):
    X, y, weight = table(5, *shape)
    A, c = X - np.average(X, axis=0, weights=weight), y - np.average(y, weights=weight)
    pull = A.T @ (weight * c) / weight.sum()
    alpha = pull.max() if positive else np.abs(pull).max()
    for share in (1.0, 0.25):
        for factor in (1.0 + 1e-14, 1.5, 1e9):
            model = ElasticNet(factor * alpha / share, l1_ratio=share, positive=positive).fit(X, y, weight)
            assert not model.coef_.any()
            assert model.intercept_ == pytest.approx(np.average(y, weights=weight), rel=1e-12)
            assert model.certify(X, y, weight).holds
        below = ElasticNet(0.999 * alpha / share, l1_ratio=share, positive=positive).fit(X, y, weight)
        assert np.count_nonzero(below.coef_) == 1


def test_without_a_share_of_the_one_norm_it_is_ridge_regression_or_least_squares():
    X, y, weight = table(6)
    ridge = ElasticNet(0.3, l1_ratio=0.0).fit(X, y, weight)
    peer = PeerRidge(0.3 * weight.sum(), solver="cholesky").fit(X, y, weight)
    np.testing.assert_allclose(ridge.coef_, peer.coef_, rtol=1e-9)
    assert ridge.certify(X, y, weight).holds
    plain = Lasso(0.0).fit(X, y, weight)
    np.testing.assert_allclose(plain.coef_, LinearRegression().fit(X, y, weight).coef_, rtol=1e-9)
    assert plain.certify(X, y, weight).holds
    np.testing.assert_allclose(Lasso(1e-12).fit(X, y, weight).coef_, plain.coef_, rtol=1e-6)
    for model in (ridge, plain):
        model.coef_ = model.coef_ * 1.01
        assert not model.certify(X, y, weight).holds
    with pytest.raises(ValueError, match="positive=True needs a 1-norm"):
        Lasso(0.0, positive=True).fit(X, y)


@pytest.mark.parametrize("shape", [(30, 40), (200, 8)])
def test_targets_and_columns_that_are_constant_or_alike_do_no_harm(shape):
    X, y, _ = table(7, *shape)
    flat = Lasso(0.1).fit(X, np.full(len(X), 5.5))
    assert not flat.coef_.any()
    assert flat.intercept_ == 5.5
    assert flat.certify(X, np.full(len(X), 5.5)).holds
    model = Lasso(0.1, tol=1e-12).fit(X, y)
    for extra in (np.full(len(X), 1e6 / 3), X[:, 0], np.zeros(len(X))):
        more = Lasso(0.1, tol=1e-12).fit(np.column_stack([X, extra]), y)
        np.testing.assert_allclose(more.predict(np.column_stack([X, extra])), model.predict(X), atol=1e-4)
        assert more.certify(np.column_stack([X, extra]), y).holds
        if not np.ptp(extra):
            assert more.coef_[-1] == 0
    alike = ElasticNet(0.1, l1_ratio=0.5, tol=1e-13).fit(np.column_stack([X, X[:, 0]]), y)
    assert alike.coef_[0] == pytest.approx(alike.coef_[-1], rel=1e-5), "the 2-norm shares a coefficient out evenly"


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("shape", [(40, 60), (300, 10)])
def test_columns_a_million_away_from_zero(shape, form):
    X, y, weight = table(8, *shape)
    alpha = 0.05 * largest(X, y, weight)
    near = Lasso(alpha).fit(X, y, weight)
    far = Lasso(alpha).fit(form(X + 1e6), y, weight)
    assert far.converged_
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-3)  # gaps of 1e-8, and ten digits left of the columns
    assert far.certify(form(X + 1e6), y, weight).holds


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("positive", [False, True])
def test_a_table_compressed_to_a_triangle_gives_what_its_rows_give(intercept, positive, monkeypatch):
    X, y, weight = table(9, 3000, 15)
    Y = np.column_stack([y, -y])
    options = {"alpha": 0.05, "fit_intercept": intercept, "positive": positive, "tol": 1e-12}
    compressed = [Lasso(**options).fit(X, Y, weight), *lasso_path(X, y, n_alphas=8, tol=1e-12)[1:2]]
    blocks = Blocks.of(X, Y, weight, block_rows=512)
    assert lasso.data_of(blocks, intercept).targets[0][0].n < 100
    monkeypatch.setattr(lasso, "TALL", 10**9)
    assert lasso.data_of(blocks, intercept).targets[0][0].n == 3000
    direct = [Lasso(**options).fit(X, Y, weight), *lasso_path(X, y, n_alphas=8, tol=1e-12)[1:2]]
    np.testing.assert_allclose(compressed[0].coef_, direct[0].coef_, atol=1e-6)
    np.testing.assert_allclose(compressed[0].intercept_, direct[0].intercept_, atol=1e-5)
    np.testing.assert_allclose(compressed[1], direct[1], atol=1e-6)
    assert compressed[0].certify(X, Y, weight).holds


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("shape", [(30, 80), (200, 12)])
def test_the_path_is_that_of_scikit_learn_with_true_gaps(shape, share, form):
    X, y, _ = table(10, *shape)
    alphas, coefs, gaps = lasso_path(form(X), y, n_alphas=12, eps=1e-2, l1_ratio=share, tol=1e-10)
    peer = (peer_path if share == 1 else lambda *a, **k: enet_path(*a, l1_ratio=share, **k))(X, y, alphas=12, eps=1e-2, **TIGHT)
    np.testing.assert_allclose(alphas, peer[0], rtol=1e-10)
    np.testing.assert_allclose(coefs, peer[1], atol=1e-4 * np.abs(peer[1]).max())
    assert not coefs[:, 0].any()
    for j, alpha in enumerate(alphas):
        value = objective(X, y, coefs[:, j], 0.0, alpha, share)
        theirs = objective(X, y, peer[1][:, j], 0.0, alpha, share)
        assert gaps[j] <= 1e-10 * value
        assert value - gaps[j] <= theirs * (1 + 1e-12), "value less gap is a bound, to rounding"
        r, n = y - X @ coefs[:, j], len(y)
        pull = X.T @ r / n - alpha * (1 - share) * coefs[:, j]  # the conditions of Karush, Kuhn and Tucker, as glmnet has them
        on = coefs[:, j] != 0
        np.testing.assert_allclose(pull[on], alpha * share * np.sign(coefs[on, j]), rtol=1e-3)
        assert (np.abs(pull) <= alpha * share * (1 + 1e-4)).all()


@pytest.mark.parametrize("positive", [False, True])
def test_a_path_gives_at_each_penalty_what_a_fit_from_zero_gives(positive):
    X, y, _ = table(11, 40, 100)
    alphas, coefs, _ = lasso_path(X, y, n_alphas=10, eps=1e-2, fit_intercept=True, positive=positive, tol=1e-12)
    assert (np.diff(alphas) < 0).all()
    for alpha, coef in zip(alphas, coefs.T, strict=True):
        np.testing.assert_allclose(Lasso(alpha, positive=positive, tol=1e-12).fit(X, y).coef_, coef, atol=1e-5)
    shuffled, same, _ = lasso_path(X, y, alphas=alphas[[3, 0, 9]], fit_intercept=True, positive=positive, tol=1e-12)
    np.testing.assert_allclose(shuffled, alphas[[0, 3, 9]])
    np.testing.assert_allclose(same, coefs[:, [0, 3, 9]], atol=1e-5)


def test_a_path_where_all_coefficients_are_zero_at_every_penalty():
    X = np.abs(table(12, 20, 3)[0])
    for y, options in ((np.zeros(20), {}), (np.full(20, 3.0), {"fit_intercept": True}), (-X[:, 0], {"positive": True})):
        alphas, coefs, gaps = lasso_path(X, y, n_alphas=4, **options)
        assert (alphas > 0).all()
        assert not coefs.any()
        assert (gaps <= 1e-12 * (y @ y + 1)).all()


@pytest.mark.parametrize(
    "options", [{"alphas": [1.0, 0.0]}, {"alphas": []}, {"alphas": [np.inf]}, {"l1_ratio": 0.0}, {"l1_ratio": 2.0}]
)
def test_paths_that_make_no_sense_are_refused(options):
    with pytest.raises(ValueError, match="above 0"):
        lasso_path([[1.0], [2.0]], [1.0, 2.0], **options)


def test_converged_means_that_the_gap_is_as_small_as_asked():
    for seed in range(5):  # scikit-learn once took a stalled iterate for a solution: #13394
        X, y, _ = table(seed, 30, 60, noise=0.1)
        alpha = 1e-3 * largest(X, y)
        for tol in (1e-2, 1e-5, 1e-11):
            model = Lasso(alpha, tol=tol).fit(X, y)
            A, c = X - X.mean(axis=0), y - y.mean()
            at = ws.columns_of(np.asfortranarray(A), np.ones(30), c, False)
            r = c - A @ model.coef_
            value, bound, _ = ws.bounds(at, ws.Point(model.coef_, r, A.T @ r, np.arange(60)), c, 30 * alpha, 0.0, False)
            assert model.converged_
            assert value - bound <= tol * value * (1 + 1e-3)


def test_a_fit_that_stops_early_warns_with_its_gap_and_is_refused():
    X, y, _ = table(13, 60, 200)
    alpha = 0.01 * largest(X, y)
    with pytest.warns(
        ConvergenceWarning, match=r"After 1 working sets the duality gap is still \d\.\de-?\+?\d+ of the objective"
    ):
        model = Lasso(alpha, max_iter=1).fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 1
    assert "gap" in [check.name for check in model.certify(X, y).failed]
    with pytest.warns(ConvergenceWarning, match="raise max_iter or tol"):
        lasso_path(X, y, alphas=[alpha], max_iter=1, fit_intercept=True)
    done = Lasso(alpha).fit(X, y)
    assert done.converged_
    for name in ("coef_", "intercept_"):
        before = getattr(done, name)
        setattr(done, name, before * 1.01)
        assert not done.certify(X, y).holds
        setattr(done, name, before)
    done.coef_ = np.where(done.coef_ == 0, 1e-2, done.coef_)
    assert not done.certify(X, y).holds


@pytest.mark.parametrize("part", [1e-4, 1e-6])
@pytest.mark.parametrize("spread", [0.0, 4.0])
def test_hardly_any_penalty_on_columns_of_unequal_scales(spread, part):
    rng = np.random.default_rng(0)
    for shape in ((120, 25), (40, 70)):
        X, y, _ = table(14, *shape)
        X = X * 10.0 ** rng.uniform(-spread, spread, shape[1])
        model = Lasso(part * largest(X, y), max_iter=30).fit(X, y)
        assert model.certify(X, y).holds
        assert np.count_nonzero(model.coef_) <= min(shape)


def test_many_more_columns_than_rows_dense_and_sparse():
    rng = np.random.default_rng(0)
    X = random_array((150, 5000), density=0.05, rng=rng, format="csr")
    y = X[:, :10] @ np.ones(10) + 0.1 * rng.normal(size=150)
    alpha = 0.1 * largest(X.toarray(), y)
    sparse, dense = (Lasso(alpha, tol=1e-10).fit(F, y) for F in (X, X.toarray()))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    np.testing.assert_allclose(dense.coef_, PeerLasso(alpha, **TIGHT).fit(X, y).coef_, atol=1e-4)
    assert np.array_equal(sparse.sparse_coef_.toarray()[0], sparse.coef_)
    assert sparse.certify(X, y).holds
    assert dense.certify(X.toarray(), y).holds


def test_coefficients_in_single_precision_are_certified_at_any_penalty():
    X, y, _ = table(15, 50, 200)
    X = X.astype(np.float32)
    for part in (0.3, 1e-2, 1e-4):  # the residual of rounded coefficients is a poor dual point where the penalty is small
        model = Lasso(part * largest(X.astype(float), y)).fit(X, y)
        assert model.certify(X, y).holds
        model.coef_ = model.coef_ * np.float32(1.01)
        assert not model.certify(X, y).holds
