"""Values, gradients and rows of every kernel, against scikit-learn, SciPy, finite differences and plain loops."""

import math

import numpy as np
import polars as pl
import pytest
import sklearn.gaussian_process.kernels as peers
from scipy.sparse import csr_array
from scipy.special import gamma, kv
from sklearn.base import clone
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel, sigmoid_kernel

import lemmata
from lemmata.kernels import (
    RBF,
    Constant,
    Function,
    Linear,
    Matern,
    Periodic,
    Polynomial,
    Precomputed,
    Sigmoid,
    White,
    choose_kernel,
)
from lemmata.kernels.rows import fill

CLOSE = {"rtol": 1e-11, "atol": 1e-13}  # a few dozen roundings


def points(seed=0, n=13, d=3):
    return np.random.default_rng(seed).normal(size=(n, d))


X3, Y3 = points(0), points(1, 7)
PEERS = [
    (RBF(0.7), peers.RBF(0.7)),
    (RBF([0.7, 2.0, 1.1]), peers.RBF([0.7, 2.0, 1.1])),
    (Matern(1.3, nu=0.5), peers.Matern(1.3, nu=0.5)),
    (Matern(1.3, nu=1.5), peers.Matern(1.3, nu=1.5)),
    (Matern([1.3, 0.4, 2.0], nu=2.5), peers.Matern([1.3, 0.4, 2.0], nu=2.5)),
    (Matern(0.6, nu=0.8), peers.Matern(0.6, nu=0.8)),
    (Matern(0.6, nu=3.7), peers.Matern(0.6, nu=3.7)),
    (Matern(0.6, nu=math.inf), peers.RBF(0.6)),
    (Linear() + 2.0, peers.DotProduct(math.sqrt(2.0))),
    (Constant(3.0) * RBF(0.9) + White(0.3), 3.0 * peers.RBF(0.9) + peers.WhiteKernel(0.3)),
    ((RBF(0.9) + 0.5) ** 3, (peers.RBF(0.9) + peers.ConstantKernel(0.5)) ** 3),
    (Matern(1.1, nu=1.5) * Linear(), peers.Matern(1.1, nu=1.5) * peers.DotProduct(1e-12)),
]


@pytest.mark.parametrize(("ours", "theirs"), PEERS, ids=[repr(k)[:40] for k, _ in PEERS])
def test_values_are_those_of_scikit_learn(ours, theirs):
    np.testing.assert_allclose(ours(X3), theirs(X3), **CLOSE)
    np.testing.assert_allclose(ours(X3, Y3), theirs(X3, Y3), **CLOSE)
    np.testing.assert_allclose(ours.diag(X3), theirs.diag(X3), **CLOSE)


@pytest.mark.item("KRN-03", "KRN-04", "KRN-05")
@pytest.mark.parametrize("d", [1, 3, 8, 9, 40])  # on both sides of where distances come from products of matrices
def test_named_kernels_are_those_of_scikit_learn(d):
    X, Y = points(2, 20, d), points(3, 11, d)
    for name, theirs in (
        ("linear", linear_kernel(X, Y)),
        ("rbf", rbf_kernel(X, Y, gamma=0.3)),
        ("poly", polynomial_kernel(X, Y, gamma=0.3, degree=3, coef0=1.5)),
        ("sigmoid", sigmoid_kernel(X, Y, gamma=0.3, coef0=1.5)),
    ):
        np.testing.assert_allclose(choose_kernel(name, X, gamma=0.3, degree=3, coef0=1.5)(X, Y), theirs, **CLOSE)
    assert choose_kernel("rbf", X).gamma == pytest.approx(1 / (d * X.var()), rel=1e-13)
    weight = np.random.default_rng(0).integers(0, 4, 20)
    assert choose_kernel("rbf", X, weight).gamma == pytest.approx(1 / (d * np.repeat(X, weight, axis=0).var()), rel=1e-12)
    assert choose_kernel("rbf", csr_array(X), weight).gamma == pytest.approx(choose_kernel("rbf", X, weight).gamma, rel=1e-12)
    assert choose_kernel("rbf", X, gamma="auto").gamma == 1 / d


def test_the_periodic_kernel_in_one_column_is_the_exponential_of_a_sine():
    X = points(4, 15, 1)
    np.testing.assert_allclose(Periodic(0.8, 1.7)(X), peers.ExpSineSquared(0.8, 1.7)(X), **CLOSE)
    np.testing.assert_allclose(Periodic(0.8, 1.7)(X, X + 5 * 1.7), Periodic(0.8, 1.7)(X), rtol=1e-12)
    # in two columns it is the product of those of both
    Z = points(5, 15, 2)
    parts = [Periodic(0.8, 1.7)(Z[:, [f]]) for f in range(2)]
    np.testing.assert_allclose(Periodic(0.8, 1.7)(Z), parts[0] * parts[1], **CLOSE)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 7.3, 60.0, 100.0])
def test_matern_of_every_order(nu):
    r = np.array([0.0, 1e-160, 1e-9, 1e-3, 0.2, 1.0, 5.0, 40.0, 1e200])[:, None]
    K = Matern(nu=nu)(r, [[0.0]])[:, 0]
    assert K[0] == 1
    assert np.isfinite(K).all()
    assert (K[-1], K[1]) == (0.0, pytest.approx(1.0, abs=1e-9 if nu >= 0.5 else 1e-30 ** (2 * nu)))
    middle = slice(3, 8)
    u = math.sqrt(2 * nu) * r[middle, 0]
    if nu < 60:
        np.testing.assert_allclose(K[middle], 2 ** (1 - nu) / gamma(nu) * u**nu * kv(nu, u), rtol=1e-10)
    else:  # near the RBF, and below it nowhere by more than 1/ν
        np.testing.assert_allclose(K[middle], np.exp(-(r[middle, 0] ** 2) / 2), atol=0.5 / nu)
    for scale in (1.0, [1.0]):
        slope = Matern(scale, nu=nu).gradient(r, [[0.0]])
        assert np.isfinite(slope).all()
        assert slope[0, 0, 0] == 0


CASES = [
    RBF(0.7),
    RBF([0.7, 2.0, 1.1]),
    RBF(gamma=0.3),
    RBF(gamma=[0.3, 1.0, 2.0]),
    Matern(1.3, nu=0.3),
    Matern(1.3, nu=0.5),
    Matern([1.3, 0.4, 2.0], nu=0.5),
    Matern(1.3, nu=1.0),
    Matern([1.3, 0.4, 2.0], nu=1.5),
    Matern(0.9, nu=2.5),
    Matern([1.3, 0.4, 2.0], nu=4.2),
    Matern(0.9, nu=50.0),
    Periodic(0.8, 1.7),
    Periodic(0.8, 1.7, period_bounds="fixed"),
    Polynomial(3, 0.5, gamma=0.2, gamma_bounds=(1e-5, 1e5), coef0_bounds=(1e-5, 1e5)),
    Sigmoid(0.2, 0.1, gamma_bounds=(1e-5, 1e5)),
    Constant(2.0) * RBF([0.7, 2.0, 1.1]) + White(0.1),
    (RBF(0.7) + Constant(0.3)) ** 2 * Matern(1.1, nu=1.5, length_scale_bounds="fixed"),
    (Constant(0.5) * RBF(0.8)).exp() + Linear(),
    (Constant(0.5) * Periodic(1.1, 2.0)).weighted(lambda X: 1 + X[:, 0] ** 2),
    RBF([1.0, 2.0]).of(lambda X: X[:, :2] ** 2) * Constant(1.5),
]


@pytest.mark.parametrize("k", CASES, ids=lambda k: repr(k).split("<")[0][:50])
def test_gradients_are_finite_differences(k):
    theta, h = k.theta, 1e-6
    for Y in (None, Y3):
        G = k.gradient(X3, Y)
        assert G.shape[0] == len(theta) == len(k.theta_names) == len(k.bounds)
        for p in range(len(theta)):
            step = h * np.eye(len(theta))[p]
            difference = (k.with_theta(theta + step)(X3, Y) - k.with_theta(theta - step)(X3, Y)) / (2 * h)
            # 1e-8: h² and ε/h
            np.testing.assert_allclose(G[p], difference, rtol=1e-6, atol=1e-8 * max(np.abs(difference).max(), 1.0))
    W = np.random.default_rng(0).normal(size=(13, 13))
    W += W.T
    np.testing.assert_allclose(k.pullback(W, X3), np.einsum("ij,pij->p", W, k.gradient(X3)), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(k.with_theta(theta)(X3), k(X3), rtol=1e-12, atol=1e-14)


ALL = [*(k for k, _ in PEERS), *CASES, Function(lambda A, B: (A @ B.T) ** 2), Linear(), Polynomial(2)]


@pytest.mark.parametrize("k", ALL, ids=lambda k: repr(k).split("<")[0][:50])
@pytest.mark.slow_without_jit
def test_matrices_are_symmetric_to_the_bit_and_have_the_stated_diagonal(k):
    for n in (1, 13, 300):  # 300: more than a block
        X = points(6, n)
        K = k(X)
        assert K.dtype == np.float64
        assert np.array_equal(K, K.T)
        assert np.array_equal(np.diagonal(K), k.diag(X))
    with lemmata.config(n_threads=1):
        one = k(X)
    with lemmata.config(n_threads=4):
        assert np.array_equal(k(X), one)


@pytest.mark.parametrize("k", [RBF(0.7), RBF([0.7, 2.0, 1.1]), Matern(nu=0.5), Linear(), Polynomial(2), RBF() * 2.0 + Linear()])
def test_every_kind_of_table(k):
    X, Y = points(7, 12).round(1), points(8, 5).round(1)
    expected = k(X, Y)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    tables = (X.tolist(), frame, frame.to_pandas(), csr_array(X), np.asfortranarray(X))
    for table in tables:
        np.testing.assert_allclose(k(table, Y), expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(k(table, csr_array(Y)), expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(k(table), k(X), rtol=1e-12, atol=1e-14)
    # prepared float32 rows keep their precision, for solvers that cache them
    A = k.prepare(X.astype(np.float32))
    np.testing.assert_allclose(fill(k.values, A, k.prepare(Y.astype(np.float32), A)), expected, rtol=2e-5, atol=2e-5)


@pytest.mark.item("KRN-05")
@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize("sparse", [False, True])
def test_distances_keep_their_digits(d, sparse):
    rng = np.random.default_rng(0)
    steps = rng.integers(-3, 4, size=(40, d)) / 4  # exact beside 1e8
    steps[20:] = steps[:20]  # equal rows
    form = csr_array if sparse else np.asarray
    for k in (RBF(0.5), Matern(0.5, nu=0.5), Matern(0.5, nu=2.5)):
        np.testing.assert_allclose(k(form(steps + 1e8)), k(steps), rtol=1e-13, atol=1e-300)  # translation changes nothing
        assert (np.diagonal(k(form(steps + 1e8))[:20, 20:]) == 1).all()
        assert (k.diag(steps) == 1).all()
    far = steps.copy()
    far[0] = 1e9  # one row far away must not cost the others their digits
    np.testing.assert_allclose(RBF(0.5)(form(far))[1:, 1:], RBF(0.5)(steps)[1:, 1:], rtol=1e-12, atol=1e-300)
    if sparse:
        return  # nothing is taken off sparse rows, so that what follows is beyond their digits
    near = 1 + 1e-9 * steps
    exact = np.exp(-((np.round((near[:, None] - near) * 2**80) / 2**80) ** 2).sum(axis=2) / (2 * 1e-18))
    np.testing.assert_allclose(RBF(1e-9)(form(near)), exact, rtol=1e-9, atol=1e-300)
    short = RBF(1e-170)(steps)  # squares beyond the largest number
    assert np.array_equal(short, (steps[:, None] == steps).all(axis=2).astype(float))


def test_white_noise_knows_rows_from_their_twins():
    X = np.array([[1.0], [1.0]])
    k = White(0.5) + RBF()
    assert np.array_equal(k(X), [[1.5, 1.0], [1.0, 1.5]])
    assert np.array_equal(k(X, X), np.ones((2, 2)))
    A = k.prepare(X)
    assert np.array_equal(k.values(A[[1]], A), [[1.0, 1.5]])


def test_parameters_follow_the_protocol():
    k = 2.0 * RBF([1.0, 2.0]) + White(0.1, noise_bounds="fixed")
    assert clone(k) == k
    assert k.set_params(left__right__length_scale=np.array([3.0, 4.0])).left.right.length_scale[0] == 3.0
    assert k.theta_names == ["left__right__length_scale[0]", "left__right__length_scale[1]"]
    np.testing.assert_allclose(k.theta, np.log([3.0, 4.0]))
    assert k.with_theta(np.log([5.0, 6.0])) == 2.0 * RBF(np.exp(np.log([5.0, 6.0]))) + White(0.1, noise_bounds="fixed")
    assert repr(2.0 * (RBF() + 1.0) ** 2) == "Constant(2.0) * (RBF() + Constant(1.0)) ** 2"
    assert k._repr_html_()
    long = np.linspace(1.0, 2.0, 2000)
    other = long.copy()
    other[1000] += 1e-12  # which no printed form shows
    assert RBF(long) == RBF(long.copy())
    assert RBF(long) != RBF(other)
    assert RBF() != Matern()
    assert Precomputed(np.eye(3)) == Precomputed(np.eye(3))
    assert (np.float64(2.0) * RBF()) == 2.0 * RBF()
    assert (1 + RBF()) == Constant(1.0, value_bounds="fixed") + RBF()
    with pytest.raises(ValueError, match="theta has 2 entries"):
        k.with_theta([1.0])


def test_precomputed_rows_are_numbers():
    K = RBF()(X3)
    np.testing.assert_array_equal(Precomputed(K)([[2], [0]], [[1], [5], [2]]), K[np.ix_([2, 0], [1, 5, 2])])
    for rows in ([[13]], [[-1]], [[0.5]], [[0, 1]]):
        with pytest.raises(ValueError, match="numbers of objects, from 0 to 12"):
            Precomputed(K)(rows)
    with pytest.raises(ValueError, match="square and symmetric"):
        Precomputed(np.triu(K))([[0]])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: RBF(0.0)(X3), "length_scale of RBF must be positive"),
        (lambda: RBF([1.0, 2.0])(X3), "length_scale has 2 entries for 3 columns"),
        (lambda: RBF(gamma=-1.0)(X3), "gamma of RBF must be positive"),
        (lambda: Matern(nu=0)(X3), "nu of Matern must be positive and at most 100, or infinity"),
        (lambda: Matern(nu=101)(X3), "nu of Matern"),
        (lambda: Periodic([1.0, 2.0, 3.0])(X3), "one length_scale and one period"),
        (lambda: Polynomial(1.5)(X3), "whole number of at least 1"),
        (lambda: Polynomial(gamma="scale")(X3), "gamma of Polynomial must be positive"),
        (lambda: (RBF() ** 0.5)(X3), "whole powers of at least 1"),
        (lambda: (-1.0 * RBF())(X3), "a negative multiple is no kernel"),
        (lambda: Constant(-1.0).diag(X3), "at least 0"),
        (lambda: RBF()(X3, X3[:, :1]), "same columns, got 3 and 1"),
        (lambda: RBF()([[np.nan]]), "NaN or infinity"),
        (lambda: RBF()([1.0, 2.0]), "1 axes"),
        (lambda: RBF().pullback(np.eye(2), X3), "a row and a column for each of the 13 rows"),
        (lambda: RBF(length_scale_bounds=(2.0, 1.0)).bounds, "pair 0 < low <= high"),
        (lambda: Linear().weighted(lambda X: X)(X3), "a number for each of 13 rows"),
        (lambda: Linear().of(lambda X: X[:2])(X3), "one row for each of 13 rows"),
        (lambda: Function(lambda A, B: A)(X3), "returned shape"),
        (lambda: choose_kernel("gauss", X3), "kernel must be one of"),
        (lambda: choose_kernel("rbf", X3, gamma=0), "gamma must be a positive number"),
    ],
)
def test_errors_say_what_is_wrong(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_what_is_no_kernel_cannot_be_written():
    for make in (lambda: RBF() - RBF(), lambda: 1.0 - RBF(), lambda: -RBF(), lambda: RBF() * "a", lambda: np.ones(3) * RBF()):
        with pytest.raises(TypeError, match="kernel"):
            make()


@pytest.mark.parametrize(
    "k",
    [RBF(0.3), Matern(nu=0.5), Matern(nu=1.5), Matern(nu=2.5), Matern(nu=1.2), Matern(nu=math.inf), Periodic(), RBF() * 2.0,
     RBF() ** 3, RBF() + Matern(), RBF().exp(), Polynomial(2), RBF().of(lambda X: 2 * X), Linear() ** 2, Constant(2.0)],
)  # fmt: skip
def test_logarithms(k):
    assert k.nonnegative
    A = k.prepare(X3)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(k.log_values(A, A)), k.values(A, A), rtol=1e-11)


def test_logarithms_reach_where_values_do_not():
    for k in (RBF(), Matern(nu=0.5), Matern(nu=1.2), RBF() * 2.0 + Matern(nu=1.5)):
        A = k.prepare(np.array([[0.0]]))
        B = k.prepare(np.array([[1e4], [2e4]]), A)
        far, farther = k.log_values(A, B)[0]
        assert -np.inf < farther < far < -700
    with pytest.raises(ValueError, match="negative values"):
        Linear().log_values(Linear().prepare(X3), Linear().prepare(X3))
    assert Linear().nonnegative is False
    assert Function(np.dot).nonnegative is None
