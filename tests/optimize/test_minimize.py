"""The one door: every method on every function against SciPy, any shape, and the life of a run from start to Ctrl-C."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import rosen, rosen_der, rosen_hess

from helpers import bits
from lemmata.optimize import Adam, GradientDescent, Minimum, Momentum, Quadratic, check_minimum, inverse, minimize
from lemmata.optimize.minimize import METHODS

SEARCHES = ["gd", "newton", "cg", "bfgs", "lbfgs", "coordinate"]
RATES = {"gd": 0.05, "momentum": 0.05, "adagrad": 0.5, "rmsprop": inverse(0.3, 0.02), "adam": inverse(0.3, 0.02)}


def softplus(x):
    return np.logaddexp(0, 3 * x).sum() / 3 + (x @ x) / 4 - x[0] + x[0] * x[-1] / 5


def softplus_der(x):
    g = 1 / (1 + np.exp(-3 * x)) + x / 2
    g[0] += x[-1] / 5 - 1
    g[-1] += x[0] / 5
    return g


class Stop:
    """A callback that counts, and ends a run in one way or another."""

    def __init__(self, at, error=None):
        self.at, self.error, self.begun, self.ended = at, error, 0, 0

    def begin(self, iteration, state):
        assert iteration == self.begun
        self.begun += 1

    def end(self, iteration, state):
        self.ended += 1
        if iteration == self.at and self.error:
            raise self.error
        return iteration == self.at


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("method", SEARCHES)
def test_methods_that_search_agree_with_scipy(method, given):
    x0 = np.array([2.0, -1.0, 0.5, 3.0])
    found = minimize(softplus, x0, softplus_der if given else None, method=method)
    peer = scipy_minimize(softplus, x0, jac=softplus_der, method="BFGS", options={"gtol": 1e-9})
    assert found.converged
    assert found.reason == "converged"
    np.testing.assert_allclose(found.x, peer.x, atol=1e-7)  # the gradient over the curvature, about ½
    assert found.value == pytest.approx(peer.fun, rel=1e-12)
    np.testing.assert_allclose(found.gradient, softplus_der(found.x), atol=1e-9)  # differences: ten digits
    assert check_minimum(softplus, found.x, softplus_der).holds


@pytest.mark.parametrize("method", RATES)
def test_methods_that_are_rules_agree_with_scipy(method):
    x0 = np.array([2.0, -1.0, 0.5, 3.0])
    found = minimize(softplus, x0, softplus_der, method=method, learning_rate=RATES[method], tol=1e-3, max_iter=20_000)
    peer = scipy_minimize(softplus, x0, jac=softplus_der, method="BFGS", options={"gtol": 1e-9})
    assert found.converged
    np.testing.assert_allclose(found.x, peer.x, atol=5e-3)  # the gradient over the curvature


def test_every_method_is_listed_and_tried_here():
    assert set(METHODS) == set(SEARCHES) | set(RATES)


@pytest.mark.parametrize("method", ["newton", "cg", "bfgs", "lbfgs"])
@pytest.mark.parametrize("x0", [[-1.2, 1.0], [-1.2, 1.0, -0.5, 2.0, 0.0, 1.0], [50.0, -30.0]])
def test_the_banana(method, x0):
    found = minimize(rosen, x0, rosen_der, rosen_hess, method=method)
    assert found.converged
    assert check_minimum(rosen, found.x, rosen_der, rosen_hess, null=rosen(np.array(x0))).holds


@pytest.mark.parametrize("method", METHODS)
def test_any_shape_in_the_same_shape_out(method):
    target = np.arange(6.0).reshape(2, 3) / 6

    def f(X):
        assert X.shape == (2, 3)
        return ((X - target) ** 2).sum()

    options = {"learning_rate": RATES[method]} if method in RATES else {}
    found = minimize(
        f, np.zeros((2, 3)), lambda X: 2 * (X - target), method=method, tol=1e-2, keep=True, max_iter=5000, **options
    )
    assert found.x.shape == found.gradient.shape == (2, 3)
    np.testing.assert_allclose(found.x, target, atol=6e-3)  # tol over the curvature 2, and slack
    assert found.points.shape == (found.n_iter + 1, 2, 3)
    assert bits(found.points[0]) == bits(np.zeros((2, 3)))
    assert found.trace[0] == f(np.zeros((2, 3)))
    assert len(found.trace) == found.n_iter + 1
    np.testing.assert_allclose(found.trace, [f(X) for X in found.points], rtol=1e-12, atol=1e-15)
    assert bits(found.points[-1]) == bits(found.x)
    number = minimize(lambda x: (x - 0.5) ** 2, 0.0, method=method, tol=1e-2, max_iter=5000, **options)
    assert number.x.shape == ()
    assert number.x == pytest.approx(0.5, abs=6e-3)


def test_hessians_may_have_the_shape_of_the_array_twice():
    found = minimize(
        lambda X: (X**2).sum(), np.ones((2, 2)), lambda X: 2 * X, lambda X: 2 * np.eye(4).reshape(2, 2, 2, 2), method="newton"
    )
    assert found.n_iter == 1
    with pytest.raises(ValueError, match=r"matrix of 4 × 4, got the shape \(2, 2\)"):
        minimize(lambda X: (X**2).sum(), np.ones((2, 2)), lambda X: 2 * X, lambda X: np.eye(2), method="newton")


@pytest.mark.parametrize("method", METHODS)
def test_a_start_at_the_minimum_is_returned(method):
    found = minimize(lambda x: x @ x, np.zeros(3), lambda x: 2 * x, method=method)
    assert (found.n_iter, found.converged, found.reason) == (0, True, "converged")
    assert found.trace.tolist() == [0.0]


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: minimize(rosen, [np.nan, 1.0]), "x0 must hold at least one number, and finite ones"),
        (lambda: minimize(rosen, []), "x0 must hold at least one number"),
        (lambda: minimize(lambda x: np.inf, [1.0], np.sign), "objective is inf at x0"),
        (lambda: minimize(rosen, [1.0, 2.0], method="sgd"), "Unknown method 'sgd'; there are gd, momentum"),
        (lambda: minimize(rosen, [1.0, 2.0], method="newton", learning_rate=0.1), "'newton' finds its steps by a line search"),
        (lambda: minimize(rosen, [1.0, 2.0], rule=Adam(0.1), learning_rate=0.1), "stands for the method"),
        (lambda: minimize(rosen, [1.0, 2.0], rule=Adam(0.1), method="gd"), "stands for the method"),
        (lambda: minimize(lambda x: x, [1.0, 2.0], np.sign), r"must return a number, got an array of the shape \(2,\)"),
        (lambda: minimize(rosen, [1.0, 2.0], lambda x: x[:1]), r"grad must return an array of the shape \(2,\)"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_rule_may_be_given_with_or_without_its_method():
    f = Quadratic(np.eye(2))
    by_rule = minimize(f, [1.0, 2.0], f.gradient, rule=Momentum(0.5, 0.3))
    both = minimize(f, [1.0, 2.0], f.gradient, rule=Momentum(0.5, 0.3), method="momentum")
    assert bits(by_rule.trace) == bits(both.trace)
    fixed = minimize(f, [1.0, 2.0], f.gradient, method="gd", learning_rate=0.5)
    assert bits(fixed.trace) == bits(minimize(f, [1.0, 2.0], f.gradient, rule=GradientDescent(0.5)).trace)


def test_what_does_not_converge_warns_and_keeps_the_best():
    with pytest.warns(match="lbfgs did not converge after 3 iterations"):
        found = minimize(rosen, [-1.2, 1.0], rosen_der, max_iter=3)
    assert (found.reason, found.converged, found.n_iter) == ("max_iter", False, 3)
    assert found.value == found.trace.min()
    with pytest.warns(match="did not converge"):
        away = minimize(lambda x: x @ x, [1.0, 1.0], lambda x: 2 * x, rule=GradientDescent(1.5), max_iter=5)
    assert away.x.tolist() == [1.0, 1.0]  # every step went up: the start is the best
    assert away.value == 2.0


@pytest.mark.parametrize("method", SEARCHES)
def test_a_wrong_gradient_stalls_with_advice(method):
    with pytest.warns(match="stalled.*check_gradient"):
        found = minimize(lambda x: x @ x + 1, np.array([1.0, 2.0]), lambda x: -2 * x, method=method)
    assert found.reason == "stalled"
    assert found.x.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("method", SEARCHES)
def test_rounding_ends_a_run_that_asks_for_too_much(method):
    def f(x):
        return 1e6 + softplus(x)

    found, x0 = None, np.array([2.0, -1.0, 0.5, 3.0])
    with pytest.warns(match="stalled|did not converge"):
        found = minimize(f, x0, softplus_der, method=method, tol=1e-30, max_iter=300)
    np.testing.assert_allclose(found.x, minimize(softplus, x0, softplus_der).x, atol=1e-6)


@pytest.mark.parametrize("method", ["gd", "cg", "bfgs", "lbfgs", "coordinate", "newton"])
def test_a_function_without_minimum_is_called_so(method):
    with pytest.warns(match="falls without limit"):
        found = minimize(
            lambda x: x[0] - x[1] + x[2] ** 2, np.ones(3), lambda x: np.array([1.0, -1.0, 2 * x[2]]), method=method
        )
    assert found.reason == "unbounded"
    assert not found.converged


def test_functions_that_are_not_defined_everywhere():
    found = minimize(lambda x: x - np.log(x) if x > 0 else np.inf, 1e-3, lambda x: 1 - 1 / x, method="bfgs")
    assert found.x == pytest.approx(1.0, abs=1e-8)
    with pytest.raises(FloatingPointError, match="not a number"):
        minimize(lambda x: x if x > 0 else np.nan, 1.0, lambda x: np.ones(()), rule=GradientDescent(0.75))


@pytest.mark.parametrize("method", METHODS)
def test_a_checkpoint_resumes_with_the_same_bits(method, tmp_path):
    path = tmp_path / "run"
    options = {"method": method, "max_iter": 9, "tol": 0.0}
    x0 = np.array([-1.2, 1.0, 0.3])
    with pytest.warns(match="did not converge"):
        whole = minimize(rosen, x0, rosen_der, **options)
    with pytest.warns(match="interrupted"):
        cut = minimize(rosen, x0, rosen_der, checkpoint=path, callbacks=[Stop(4, KeyboardInterrupt())], **options)
    assert cut.reason == "interrupted"
    assert path.exists()
    with pytest.raises(ValueError, match="belongs to another fit"):
        minimize(rosen, x0 + 1, rosen_der, checkpoint=path, **options)
    other = "cg" if method != "cg" else "bfgs"
    with pytest.raises(ValueError, match="belongs to another fit"):
        minimize(rosen, x0, rosen_der, checkpoint=path, method=other)
    with pytest.warns(match="did not converge"):
        resumed = minimize(rosen, x0, rosen_der, checkpoint=path, **options)
    assert bits((resumed.x, resumed.trace, resumed.gradient)) == bits((whole.x, whole.trace, whole.gradient))
    assert not path.exists()


def test_callbacks_see_every_iteration_and_may_stop():
    stop = Stop(4)
    found = minimize(rosen, [-1.2, 1.0], rosen_der, callbacks=[stop])
    assert (found.reason, found.n_iter, found.converged) == ("callback", 5, False)
    assert (stop.begun, stop.ended) == (5, 5)


def test_progress_is_shown(capsys):
    minimize(rosen, [-1.2, 1.0], rosen_der, verbose=1)
    assert "lbfgs" in capsys.readouterr().err


def test_the_start_and_what_the_function_sees_are_not_changed():
    x0 = np.array([-1.2, 1.0])
    seen = []

    def f(x):
        seen.append((x, x.copy()))
        return rosen(x)

    for method in METHODS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            minimize(f, x0, rosen_der, method=method, max_iter=5)
    assert x0.tolist() == [-1.2, 1.0]
    assert all(np.array_equal(now, then) for now, then in seen)
    assert isinstance(minimize(rosen, x0), Minimum)
