"""One door to all methods: minimize a function of an array.

Find x with ∇f(x) = 0 by steps that go down. What a method knows decides how fast it is: gradients alone, one at a time (`gd`
and the rules built on it: momentum, adagrad, rmsprop, adam; rates 1/t, or (1 − μ/L)ᵗ under strong convexity); gradients that
remember each other (`cg`, `bfgs`, `lbfgs`: superlinear, at best n steps on a quadratic); second derivatives (`newton`:
quadratic); or one coordinate at a time (`coordinate`). All stop when no entry of the gradient exceeds `tol` in absolute value.

Nocedal & Wright, Numerical Optimization (2006).
"""

from functools import partial

import numpy as np

from lemmata.optimize.conjugate import conjugate_start, conjugate_step
from lemmata.optimize.coordinate import coordinate_start, coordinate_step
from lemmata.optimize.derivatives import gradient, hessian
from lemmata.optimize.descent import backtracking_start, backtracking_step, rule_start, rule_step
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step
from lemmata.optimize.minimum import drive, finite_start
from lemmata.optimize.newton import newton_start, newton_step
from lemmata.optimize.quasi_newton import bfgs_start, bfgs_step
from lemmata.optimize.rules import Adagrad, Adam, GradientDescent, Momentum, RMSProp

RULES = {"gd": GradientDescent, "momentum": Momentum, "adagrad": Adagrad, "rmsprop": RMSProp, "adam": Adam}
SEARCHES = {
    "cg": (conjugate_start, conjugate_step),
    "bfgs": (bfgs_start, bfgs_step),
    "lbfgs": (lbfgs_start, lbfgs_step),
    "coordinate": (coordinate_start, coordinate_step),
}
METHODS = (*RULES, "newton", *SEARCHES)


def minimize(
    f,
    x0,
    grad=None,
    hess=None,
    *,
    method="lbfgs",
    rule=None,
    learning_rate=None,
    max_iter=1000,
    tol=1e-8,
    verbose=0,
    callbacks=(),
    checkpoint=None,
    keep=False,
):
    """Minimize a smooth function, from a start.

    Parameters
    ----------
    f : Function of an array of the shape of x0 that returns a number.
    x0 : Start: a number or an array of any shape, finite.
    grad : Gradient of f, an array of the shape of x. Without it, central differences: 2n values of f for each gradient, of
        about ten right digits.
    hess : Hessian of f, n × n for the n entries of x; for "newton" only. Without it, central differences of the gradient.
    method : "gd", "momentum", "adagrad", "rmsprop", "adam", "newton", "cg", "bfgs", "lbfgs" or "coordinate".
    rule : Step rule, in place of a method's own.
    learning_rate : Number or schedule, for the methods that are rules. "gd" without it finds its steps by backtracking.
    max_iter : Most iterations.
    tol : Largest absolute value of an entry of the gradient to stop at.
    verbose : Whether to show a progress bar.
    callbacks : Objects with `begin(iteration, state)` and `end(iteration, state)`, the latter returning True to stop; a state
        begins with (x, value, gradient), x flat.
    checkpoint : Path of a file from which a killed run resumes.
    keep : Whether to keep the iterates, for plots.

    Returns
    -------
    Minimum : With x, value, gradient, trace (trace[0] is f(x0)), n_iter, converged, reason and, if asked for, points.

    Examples
    --------
    >>> def valley(x):
    ...     return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    >>> found = minimize(valley, [-1.2, 1.0])
    >>> found.x, found.converged
    (array([1., 1.]), True)
    >>> from lemmata.optimize import Adam
    >>> found = minimize(lambda x: x @ x, [3.0, -4.0], lambda x: 2 * x, rule=Adam(0.3))
    >>> found.converged, found.trace[:1]
    (True, array([25.]))
    """
    x = finite_start(x0)
    rule = _rule(method, rule, learning_rate)
    fun = _flat(f, grad, x.shape)
    if rule is not None:
        name, start, step = type(rule).__name__, rule_start(fun, x.ravel(), rule), partial(rule_step, fun, rule=rule)
    elif method == "newton":
        second = _flat_hessian(f, grad, hess, x.shape)
        name, start, step = method, newton_start(fun, x.ravel()), partial(newton_step, fun, hess=second)
    else:
        begin, advance = (backtracking_start, backtracking_step) if method == "gd" else SEARCHES[method]
        name, start, step = method, begin(fun, x.ravel()), partial(advance, fun)
    return drive(
        step,
        start,
        shape=x.shape,
        name=name,
        max_iter=max_iter,
        tol=tol,
        descends=rule is None,
        verbose=verbose,
        callbacks=callbacks,
        checkpoint=checkpoint,
        keep=keep,
        identity=repr(rule),
    )


def _rule(method, rule, learning_rate):
    """Return the step rule that the arguments ask for, or None for a method that finds its own steps."""
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; there are {', '.join(METHODS)}.")
    if rule is not None:
        if learning_rate is not None or not (method == "lbfgs" or RULES.get(method) is type(rule)):
            raise ValueError("A rule has its own learning_rate and stands for the method: give one of them only.")
        return rule
    if learning_rate is None:
        return RULES[method]() if method in RULES and method != "gd" else None
    if method not in RULES:
        raise ValueError(f"Method {method!r} finds its steps by a line search and takes no learning_rate.")
    return RULES[method](learning_rate)


def _flat(f, grad, shape):
    """Return the function of a flat array that gives (value, flat gradient)."""

    def fun(x):
        point = x.reshape(shape)
        value = np.asarray(f(point), dtype=float)
        slope = np.asarray(gradient(f, point) if grad is None else grad(point), dtype=float)
        if value.size != 1:
            raise ValueError(f"f must return a number, got an array of the shape {value.shape}.")
        if slope.size != x.size:
            raise ValueError(f"grad must return an array of the shape {shape} of x, got {slope.shape}.")
        return value.item(), slope.ravel()

    return fun


def _flat_hessian(f, grad, hess, shape):
    """Return the function of a flat array that gives the Hessian as a matrix."""

    def second(x):
        point = x.reshape(shape)
        H = np.asarray(hessian(f, point, grad) if hess is None else hess(point), dtype=float)
        if H.size != x.size**2:
            raise ValueError(f"hess must return a matrix of {x.size} × {x.size}, got the shape {H.shape}.")
        return H.reshape(x.size, x.size)

    return second
