"""Differences against closed forms and SciPy, checks that refuse wrong derivatives, and second-order conditions."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, check_grad, rosen, rosen_der, rosen_hess

from helpers import bits
from lemmata.optimize import Quadratic, check_gradient, check_hessian, check_jacobian, gradient, hessian, jacobian, second_order


@pytest.mark.item("OPT-01")
def test_derivatives_of_inner_products():
    x = np.array([0.3, -2.0, 5.0])
    np.testing.assert_allclose(gradient(lambda z: np.ones(3) @ z, x), np.ones(3), rtol=1e-9)  # linear: rounding alone
    np.testing.assert_allclose(gradient(lambda z: z @ z, x), 2 * x, rtol=1e-9)
    assert check_gradient(lambda z: np.ones(3) @ z, np.ones_like, x).holds
    assert check_gradient(lambda z: z @ z, lambda z: 2 * z, x).holds


@pytest.mark.item("OPT-01")
def test_jacobian_has_a_row_for_each_value_and_a_column_for_each_variable():
    a, c = np.array([1.0, -2.0, 0.5]), np.array([4.0, 3.0])
    outer = np.outer(c, a)
    assert outer.shape == (2, 3)  # for unequal lengths: rows of the first, columns of the second
    np.testing.assert_allclose(jacobian(lambda x: c * (a @ x), np.zeros(3)), outer, rtol=1e-10)
    assert check_jacobian(lambda x: c * (a @ x), lambda x: outer, np.ones(3)).holds
    with pytest.raises(ValueError, match=r"\(3, 2\), it should have \(2, 3\)"):
        check_jacobian(lambda x: c * (a @ x), lambda x: outer.T, np.ones(3))


@pytest.mark.item("OPT-01")
@pytest.mark.parametrize("seed", range(3))
def test_product_and_chain_rules(seed):
    rng = np.random.default_rng(seed)
    x, a, B = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(3, 4))

    def f(z):
        return np.exp(a @ z / 4)

    def g(z):
        return 1 + z @ z

    def slope_f(z):
        return f(z) * a / 4

    def slope_g(z):
        return 2 * z

    assert check_gradient(lambda z: f(z) * g(z), lambda z: f(z) * slope_g(z) + g(z) * slope_f(z), x).holds
    assert not check_gradient(lambda z: f(z) * g(z), lambda z: f(z) * slope_g(z) - g(z) * slope_f(z), x).holds

    def curve(t):
        return np.array([np.sin(t[0]), t[0] ** 2, 1.0, np.exp(-t[0])])

    def velocity(t):
        return np.array([np.cos(t[0]), 2 * t[0], 0.0, -np.exp(-t[0])])

    t = np.array([0.7])
    assert check_gradient(lambda t: f(curve(t)), lambda t: np.array([slope_f(curve(t)) @ velocity(t)]), t).holds

    def values(z):
        return np.tanh(B @ z)

    def rows(z):
        return (1 - np.tanh(B @ z) ** 2)[:, None] * B

    assert check_jacobian(values, rows, x).holds
    assert check_jacobian(lambda t: values(curve(t)), lambda t: (rows(curve(t)) @ velocity(t))[:, None], t).holds


@pytest.mark.item("OPT-01")
def test_error_over_steps_is_a_v():
    result = check_gradient(lambda z: np.exp(z).sum(), np.exp, np.array([0.5, 1.0, -1.0]))
    steps, errors = result.steps, result.errors
    bottom = int(np.argmin(errors))
    assert result.holds
    assert result.error == errors[bottom] < 1e-10
    assert 1e-7 < steps[bottom] < 1e-3
    left = np.polyfit(np.log(steps[:6]), np.log(errors[:6]), 1)[0]
    assert left == pytest.approx(2, abs=0.05)  # the error of central differences is of second order
    right = np.polyfit(np.log(steps[-8:]), np.log(errors[-8:]), 1)[0]
    assert right == pytest.approx(-1, abs=0.4)  # rounding, over the step; it is random
    assert result.certificate().holds


@pytest.mark.item("OPT-01")
@pytest.mark.parametrize("x", [[-1.2, 1.0, 0.3], [1.0, 1.0, 1.0], [30.0, -20.0, 5.0]])
def test_agrees_with_scipy_also_at_a_stationary_point(x):
    x = np.array(x)
    assert check_gradient(rosen, rosen_der, x).holds
    assert check_hessian(rosen, rosen_hess, x, rosen_der).holds
    assert check_hessian(rosen, rosen_hess, x).holds
    assert bits(hessian(rosen, x)) == bits(hessian(rosen, x).T)  # symmetric to the bit
    size = np.abs(rosen_hess(x)).max()
    steep = max(size, np.abs(rosen_der(x)).max())
    np.testing.assert_allclose(gradient(rosen, x), rosen_der(x), atol=1e-7 * steep)  # ε^⅔ with the constants of the quartic
    np.testing.assert_allclose(hessian(rosen, x), rosen_hess(x), atol=1e-5 * size)  # second differences: ε^½
    np.testing.assert_allclose(hessian(rosen, x, rosen_der), rosen_hess(x), atol=1e-7 * size)
    if size < 1e4:  # elsewhere forward differences of SciPy lose half of the digits
        np.testing.assert_allclose(gradient(rosen, x), approx_fprime(x, rosen, 1e-8), atol=1e-3)
        assert check_grad(rosen, rosen_der, x) < 1e-3


@pytest.mark.parametrize("wrong", [1e-4, 1e-3, 1.0])
def test_wrong_derivatives_are_refused(wrong):
    x = np.array([-1.2, 1.0, 0.3])
    e = np.array([0.0, 1.0, 0.0])
    assert not check_gradient(rosen, lambda z: rosen_der(z) + wrong * np.linalg.norm(rosen_der(z)) * e, x).holds
    assert not check_hessian(rosen, lambda z: rosen_hess(z) * (1 + wrong), x).holds
    assert not check_hessian(rosen, lambda z: rosen_hess(z) * (1 + wrong), x, rosen_der)
    assert not check_gradient(rosen, lambda z: np.full(3, np.nan), x).holds


def test_arrays_of_any_shape_and_numbers():
    X = np.arange(6.0).reshape(2, 3)
    assert gradient(lambda z: (z**2).sum(), X).shape == (2, 3)
    np.testing.assert_allclose(gradient(lambda z: (z**2).sum(), X), 2 * X, atol=1e-9)
    assert gradient(lambda z: z**2, 3.0) == pytest.approx(6.0, rel=1e-9)
    assert check_gradient(lambda z: (z**2).sum(), lambda z: 2 * z, X).holds


@pytest.mark.item("OPT-02")
def test_quadratic_form_by_the_example_and_by_differences():
    A, x = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([1.0, 1.0])
    f = Quadratic(A)
    assert f.gradient(x).tolist() == [2.0, 4.0]
    assert ((A / 2 + A.T) @ x).tolist() == [2.5, 6.5]  # the formula as printed, ½A + Aᵀ
    assert check_gradient(f, f.gradient, x).holds
    assert not check_gradient(f, lambda z: (A / 2 + A.T) @ z, x).holds
    assert f.hessian().tolist() == [[1.0, 1.0], [1.0, 3.0]]
    assert check_hessian(f, f.hessian, x).holds


@pytest.mark.item("OPT-02")
@pytest.mark.parametrize("seed", range(5))
def test_quadratic_form_on_random_matrices(seed):
    rng = np.random.default_rng(seed)
    A, b, c, x = rng.normal(size=(4, 4)), rng.normal(size=4), rng.normal(), rng.normal(size=4)
    f = Quadratic(A, b, c)
    naive = sum(A[i, j] * x[i] * x[j] for i in range(4) for j in range(4)) / 2 + sum(b * x) + c
    assert f(x) == pytest.approx(naive, rel=1e-12)
    assert check_gradient(f, f.gradient, x).holds
    assert check_hessian(f, f.hessian, x, f.gradient).holds
    S = A @ A.T
    g = Quadratic(S, b)
    np.testing.assert_allclose(g.gradient(x), S @ x + b, rtol=1e-12)  # symmetric: Ax + b
    np.testing.assert_allclose(g.minimizer(), np.linalg.solve(S, -b), rtol=1e-6)  # conditioning of a random Gram matrix
    mu, L = g.curvature
    values = np.linalg.svd(A, compute_uv=False) ** 2
    np.testing.assert_allclose([mu, L], [values[-1], values[0]], rtol=1e-9, atol=1e-12 * L)


def test_quadratic_forms_without_a_minimum_say_so():
    for A, b in [(-np.eye(2), [0.0, 0.0]), (np.diag([1.0, 0.0]), [0.0, 1.0])]:
        with pytest.raises(ValueError, match="not bounded from below"):
            Quadratic(A, b).minimizer()
    assert Quadratic(np.diag([2.0, 0.0]), [2.0, 0.0]).minimizer().tolist() == [-1.0, 0.0]
    with pytest.raises(ValueError, match="square"):
        Quadratic(np.ones((2, 3)))


@pytest.mark.item("OPT-03")
def test_examples_of_minimum_and_maximum():
    bowl, hill = Quadratic(np.eye(2)), Quadratic(-np.eye(2))
    x = np.array([0.4, -1.0])
    assert bowl.gradient(x).tolist() == x.tolist()
    assert hill.gradient(x).tolist() == (-x).tolist()  # printed as x
    assert bowl(x) == pytest.approx(bowl([0, 0]) + x @ bowl.hessian() @ x / 2, rel=1e-15)  # with the ½ that the bracket omits
    assert second_order(bowl.hessian()).kind == "minimum"
    assert second_order(bowl.hessian()).semidefinite  # ∇²f ⪰ 0, not −∇²f
    assert second_order(hill.hessian()).kind == "maximum"
    assert not second_order(hill.hessian()).semidefinite
    assert second_order(bowl.hessian()).cholesky
    assert second_order(hill.hessian()).cholesky


@pytest.mark.item("OPT-03")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("signs", "kind", "semidefinite"),
    [
        ([1, 2, 3], "minimum", True),
        ([-1, -2, -3], "maximum", False),
        ([-1, 0, 2], "saddle", False),
        ([0, 0, 2], "undecided", True),  # an eigenvalue of zero does not hurt: non-negative, not positive
        ([0, 0, -2], "undecided", False),
        ([0, 0, 0], "undecided", True),
    ],
)
def test_classification_of_constructed_eigenvalues(signs, kind, semidefinite, seed):
    rng = np.random.default_rng(seed)
    V = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    H = V @ np.diag(signs) @ V.T * 10.0**seed
    skew = rng.normal(size=(3, 3))
    result = second_order(H + skew - skew.T)  # only the symmetric part counts
    assert result.kind == kind
    assert result.semidefinite is semidefinite
    np.testing.assert_allclose(result.eigenvalues, np.sort(signs) * 10.0**seed, atol=1e-12 * 10.0**seed)
    if kind in ("minimum", "maximum", "saddle"):
        assert result.cholesky is (kind != "saddle")
    X = rng.normal(size=(2000, 3))
    least = np.einsum("ni,ij,nj->n", X, H, X).min()
    assert bool(least >= -1e-9 * 10.0**seed) is semidefinite
