"""NMF against the textbook's updates, scikit-learn, pLSA, general optimizers, and tables whose factors are known."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.decomposition as peer
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.decomposition import NMF

losses = pytest.mark.parametrize("loss", ["squared", "kl"])
solvers = pytest.mark.parametrize("solver", ["cd", "mu"])
BETA = {"squared": "frobenius", "kl": "kullback-leibler"}


def table(seed=0, n=40, d=9, k=3, noise=0.2):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n, k)) @ rng.exponential(size=(k, d)) + noise * rng.exponential(size=(n, d))


def holed(X, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(X.shape) < share, np.nan, X)


def start(X, k, seed=2):
    rng = np.random.default_rng(seed)
    return rng.random((X.shape[0], k)) + 0.1, rng.random((k, X.shape[1])) + 0.1


def steps(model, X, n, **options):
    """Fit for exactly n iterations."""
    with pytest.warns(ConvergenceWarning):
        return clone(model).set_params(tol=0.0, max_iter=n).fit(X, **options)


def error(X, W, H, loss, mask=1.0):
    """The loss written out, of a table without holes."""
    Y = W @ H
    if loss == "squared":
        return 0.5 * np.sum(mask * (X - Y) ** 2)
    return np.sum(mask * (X * np.log(np.where(X > 0, X, 1.0) / np.where(X > 0, Y, 1.0)) - X + Y))


@pytest.mark.item("FAC-10")
def test_multiplicative_updates_of_the_squared_loss_are_those_of_the_textbook():
    X = table()
    W, H = start(X, 3)
    for n in range(1, 6):
        model = steps(NMF(3, solver="mu", init=start(X, 3)), X, n)
        W = W * (X @ H.T) / (W @ H @ H.T)
        value = error(X, W, H, "squared")
        H = H * (W.T @ X) / (W.T @ W @ H)
        np.testing.assert_allclose(model.components_, H, rtol=1e-12)
        np.testing.assert_allclose(model.trace_[-1], value, rtol=1e-12)


@pytest.mark.item("FAC-11")
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_multiplicative_updates_of_the_divergence_are_those_of_the_textbook(kind):
    X = np.random.default_rng(0).poisson(table())
    W, H = start(X, 3)
    for n in range(1, 6):
        model = steps(NMF(3, loss="kl", solver="mu", init=start(X, 3)), kind(X), n)
        W = W * ((X / (W @ H)) @ H.T) / H.sum(axis=1)
        value = error(X, W, H, "kl")
        H = H * (W.T @ (X / (W @ H))) / W.sum(axis=0)[:, None]
        np.testing.assert_allclose(model.components_, H, rtol=1e-12)
        np.testing.assert_allclose(model.trace_[-1], value, rtol=1e-12)
        np.testing.assert_allclose((W @ H).sum(), X.sum(), rtol=1e-12)  # holds after an update of H


@losses
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alpha", [0.0, 0.01])
def test_multiplicative_updates_are_scikit_learns(loss, kind, alpha):
    X = kind(np.where(table() > 2, table(), 0.0))
    W, H = start(X, 3)
    options = {"alpha_W": alpha, "alpha_H": 2 * alpha, "l1_ratio": 1.0 if loss == "kl" else 0.3}
    ours = steps(NMF(3, loss=loss, solver="mu", init=(W, H), **options), X, 20)
    theirs = peer.NMF(3, beta_loss=BETA[loss], solver="mu", init="custom", tol=0, max_iter=20, **options)
    theirs.fit_transform(X, W=W.copy(), H=H.copy())
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_coordinate_descent_is_no_worse_than_scikit_learns_at_equal_iterations(seed):
    X = table(seed, n=100, d=20, k=5)
    W, H = start(X, 5)
    for n in (5, 20, 50):
        ours = steps(NMF(5, init=(W, H)), X, n)
        theirs = peer.NMF(5, solver="cd", init="custom", tol=0, max_iter=n)
        theirs.fit_transform(X, W=W.copy(), H=H.copy())
        assert ours.reconstruction_err_ <= theirs.reconstruction_err_ * (1 + 1e-9)


@losses
@pytest.mark.parametrize("init", ["nndsvd", "nndsvda", "nndsvdar", "random"])
def test_a_fit_is_as_good_as_a_long_one_of_scikit_learn(loss, init):
    X = table(n=60, d=12, k=4, noise=0.5)
    kind = "nndsvda" if init == "nndsvd" else init  # its updates would not leave zeros again
    theirs = peer.NMF(4, beta_loss=BETA[loss], solver="mu", init=kind, tol=0, max_iter=3000, random_state=0)
    theirs.fit(X)
    model = NMF(4, loss=loss, init=init, random_state=0).fit(X)
    assert model.converged_
    assert model.reconstruction_err_ < theirs.reconstruction_err_ * 1.02  # other local minima may be a little apart


@pytest.mark.item("FAC-11")
def test_the_divergence_is_plsa_after_normalization():
    """The likelihood of p(d, w) = Σ p(z) p(d | z) p(w | z), found by EM, is that of WH/ΣWH (Gaussier & Goutte 2005)."""
    X = np.random.default_rng(0).poisson(table()) + 0.0
    W, H = start(X, 3)
    model = NMF(3, loss="kl", init=(W, H), tol=1e-9).fit(X)
    P = model.transform(X) @ model.components_
    z, dz, wz = np.full(3, 1 / 3), W / W.sum(axis=0), (H / H.sum(axis=1, keepdims=True)).T
    for _ in range(20_000):
        joint = dz[:, None, :] * wz[None] * z
        counts = X[:, :, None] * joint / np.maximum(joint.sum(axis=2, keepdims=True), 1e-300)
        dz, wz, z = counts.sum(axis=1), counts.sum(axis=0), counts.sum(axis=(0, 1)) / X.sum()
        dz, wz = dz / dz.sum(axis=0), wz / wz.sum(axis=0)
    Q = X.sum() * (dz * z) @ wz.T

    def likelihood(P):
        return np.sum(X * np.log(np.where(X > 0, P, 1.0) / P.sum()))

    np.testing.assert_allclose(P.sum(), X.sum(), rtol=1e-9)
    np.testing.assert_allclose(likelihood(P), likelihood(Q), rtol=1e-6)  # EM creeps; both are the same stationary point


@losses
@pytest.mark.parametrize("holes", [False, True])
def test_kkt_conditions_hold_by_brute_force(loss, holes):
    X = table(noise=0.5)
    mask = np.isfinite(holed(X)) if holes else np.ones(X.shape, bool)
    model = NMF(3, loss=loss, tol=1e-9, max_iter=20_000).fit(X, mask=mask)
    W, H = model.transform(X, mask=mask), model.components_
    slope = mask * ((W @ H - X) if loss == "squared" else (1 - X / np.where(mask, W @ H, 1.0)))
    for values, gradient in ((W, slope @ H.T), (H, W.T @ slope)):
        scale = np.abs(gradient).max() + (mask * X).sum() / np.abs(values).sum()
        assert (values >= 0).all()
        assert gradient.min() > -1e-6 * scale
        assert np.abs(gradient * values).max() < 1e-6 * scale * values.max()


def test_the_best_scores_are_those_of_nnls():
    X = holed(table(n=30))
    model = NMF(4).fit(X)
    for row, w in zip(X, model.transform(X), strict=True):
        seen = np.isfinite(row)
        np.testing.assert_allclose(w, nnls(model.components_.T[seen], row[seen])[0], rtol=1e-9, atol=1e-12)


def test_the_best_scores_of_the_divergence_cannot_be_beaten():
    rng = np.random.default_rng(0)
    H = np.where(rng.random((6, 15)) < 0.5, 0.0, rng.exponential(size=(6, 15)))
    H[0] += 1e-3
    X = rng.poisson(rng.exponential(size=(50, 6)) @ H).astype(float)
    model = NMF(6, loss="kl").fit(X)
    model.components_ = H
    W = model.transform(X)
    best = error(X, W, H, "kl")
    for _ in range(200):
        other = np.maximum(W + rng.normal(size=W.shape) * 10 ** rng.uniform(-8, 0) * (rng.random(W.shape) < 0.3), 0) + 1e-300
        assert error(X, other, H, "kl") >= best * (1 - 1e-12)
    gradient = H.sum(axis=1) - (X / np.where(X > 0, W @ H, 1.0)) @ H.T
    assert gradient.min() > -1e-9
    assert np.abs(W * gradient).max() < 1e-9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@losses
@solvers
@pytest.mark.parametrize("options", [{}, {"alpha_W": 0.02, "alpha_H": 0.01, "l1_ratio": 0.5}])
def test_the_loss_never_rises(loss, solver, options):
    for X in (table(), holed(table()), sp.csr_array(np.where(table() > 3, table(), 0))):
        model = NMF(4, loss=loss, solver=solver, max_iter=300, tol=1e-4, random_state=0, **options)
        trace = model.fit(X).trace_
        assert (np.diff(trace) <= 1e-9 * trace[:-1]).all()


@losses
@solvers
def test_sparse_and_dense_are_one(loss, solver):
    X = np.where(table() > 2, table(), 0.0)
    dense = NMF(3, loss=loss, solver=solver, random_state=0, tol=1e-4).fit(X)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array):
        sparse = NMF(3, loss=loss, solver=solver, random_state=0, tol=1e-4).fit(kind(X))
        np.testing.assert_allclose(sparse.components_, dense.components_, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(sparse.transform(kind(X)), dense.transform(X), rtol=1e-7, atol=1e-9)
        assert sparse.certify(kind(X)).checks[2].value < 1e-2


@losses
@solvers
def test_every_way_of_fitting_is_certified_and_the_same_for_any_number_of_threads(loss, solver):
    X = holed(table(k=2))
    models = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads, block_rows=8):
            models.append(NMF(2, loss=loss, solver=solver, max_iter=20_000).fit(X))
    assert models[0].components_.tobytes() == models[1].components_.tobytes()
    assert models[0].certify(X).holds


@losses
def test_weights_are_repetition(loss):
    X = holed(table())
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    options = {"loss": loss, "alpha_W": 0.01, "l1_ratio": 0.5, "random_state": 0}
    weighted, repeated = NMF(3, **options).fit(X, sample_weight=weight), NMF(3, **options).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.components_, repeated.components_, rtol=1e-7, atol=1e-9)
    assert weighted.certify(X, sample_weight=weight).holds


@losses
@pytest.mark.parametrize("seed", range(3))
def test_sabotage_is_refused_with_holes_too(loss, seed):
    X = holed(table(seed), seed=seed)
    model = NMF(3, loss=loss).fit(X)
    assert model.certify(X).holds
    rng = np.random.default_rng(seed)
    H = model.components_
    model.components_ = np.abs(H + 0.01 * np.linalg.norm(H) / np.sqrt(H.size) * rng.normal(size=H.shape))
    assert not model.certify(X).holds


def test_what_updates_lock_at_zero_is_refused():
    """scikit-learn#5295: a multiplicative update leaves zeros where they are, and every step then looks converged."""
    X = table(noise=0.5)
    W, H = start(X, 3)
    H[1, 4] = 0.0
    H[0, 2] = 0.0
    locked = NMF(3, solver="mu", init=(W, H), tol=1e-6, max_iter=50_000).fit(X)
    free = NMF(3, init=(W, H)).fit(X)
    assert locked.components_[1, 4] == 0
    assert locked.converged_
    assert not locked.certify(X).holds
    assert free.certify(X).holds
    assert free.reconstruction_err_ < locked.reconstruction_err_


def test_the_error_is_never_below_that_of_the_singular_values():
    for seed in range(5):
        X = table(seed, noise=1.0)
        model = NMF(2, random_state=seed).fit(X)
        left_out = np.sqrt((np.linalg.svd(X, compute_uv=False)[2:] ** 2).sum())
        assert model.reconstruction_err_ >= left_out * (1 - 1e-12)
        share = 1 - (left_out / model.reconstruction_err_) ** 2
        np.testing.assert_allclose(model.certify(X)["excess"].value, share, rtol=1e-6, atol=1e-9)


@losses
def test_degenerate_tables(loss):
    rng = np.random.default_rng(0)
    X = table()
    nothing = X.copy()
    nothing[3], nothing[:, 2] = 0.0, 0.0
    tables = {"zero row and column": nothing, "zeros": np.zeros((5, 4)), "one entry": np.ones((1, 1)), "ones": np.ones((6, 4))}
    tables["low rank"] = rng.random((20, 1)) @ rng.random((1, 6))
    for name, X in tables.items():
        for k in (1, 3):
            model = NMF(k, loss=loss, random_state=0).fit(X)
            assert np.isfinite(model.components_).all(), name
            assert np.isfinite(model.transform(X)).all(), name
            assert model.certify(X).holds, f"{name}\n{model.certify(X)}"
    assert not NMF(2, loss=loss).fit(nothing).transform(nothing)[3].any()


@losses
@pytest.mark.parametrize("scale", [1e-100, 1e-7, 1e100])
def test_the_scale_of_the_table_is_the_scale_of_the_answer(loss, scale):
    X = holed(table())
    model, scaled = NMF(3, loss=loss).fit(X), NMF(3, loss=loss).fit(X * scale)
    np.testing.assert_allclose(
        scaled.reconstruction_err_, model.reconstruction_err_ * scale ** (1 if loss == "squared" else 0.5)
    )
    assert scaled.certify(X * scale).holds


def test_starts_are_checked():
    X = table()
    W, H = start(X, 3)
    assert NMF(init=H).fit(X).n_components_ == 3
    assert NMF().fit(X).n_components_ == X.shape[1]
    for init, match in (
        (H[:, :-1], "shape"),
        ((W[:-1], H), "shape"),
        (-H, "not negative"),
        ((W, H, H), "tuple of 3"),
    ):
        with pytest.raises(ValueError, match=match):
            NMF(3, init=init).fit(X)
    with pytest.raises(ValueError, match="in memory"):
        NMF(3, init=(W, H)).fit(lambda: iter([X]))


def test_checkpoints_change_nothing(tmp_path):
    X = table(n=50)
    W, H = start(X, 3)
    with lemmata.config(block_rows=16):
        plain = NMF(3, init=H).fit(X)
        kept = NMF(3, init=H, checkpoint=tmp_path / "fit").fit(X)
    assert plain.components_.tobytes() == kept.components_.tobytes()
    with pytest.raises(ValueError, match="checkpoint"):
        NMF(3, init=(W, H), checkpoint=tmp_path / "fit").fit(X)


def test_names_and_frames():
    pytest.importorskip("pandas")
    X = table()
    model = NMF(3).set_output(transform="pandas").fit(X)
    assert list(model.transform(X).columns) == ["nmf0", "nmf1", "nmf2"]
    assert list(model.get_feature_names_out()) == ["nmf0", "nmf1", "nmf2"]
    W = NMF(3).fit_transform(X)
    np.testing.assert_allclose(W, NMF(3).fit(X).transform(X))
    np.testing.assert_allclose(NMF(3).fit(X).inverse_transform(W), W @ NMF(3).fit(X).components_)
