"""L-BFGS: quasi-Newton steps from the last few pairs of moves and gradient changes.

With s = x⁺ − x and y = g⁺ − g, the BFGS formula H⁺ = (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ, ρ = 1/yᵀs, makes an inverse
Hessian with H⁺y = s; with m pairs kept, H g needs no matrix, only the two-loop recursion [1]. What H starts from decides how
fast it goes: a preconditioner (an inverse Hessian of a simpler or smaller problem) instead of a multiple of I turns a hundred
iterations into ten. The Wolfe conditions of the line search keep yᵀs > 0, so every direction descends.
The state is (x, value, gradient, moves, changes), plain arrays in tuples, so that `iterate` can store and resume it.

[1] Nocedal, Math. Comp. 35 (1980).
"""

import numpy as np

from lemmata.optimize.line_search import LineSearchError, search

MEMORY = 10  # pairs kept: more gain little and cost a product each


def two_loop(gradient, moves, changes, precondition=None):
    """Return H·gradient for the inverse Hessian H that the pairs, oldest first, and the preconditioner define.

    Examples
    --------
    >>> two_loop(np.array([2.0, 8.0]), (np.array([1.0, 0.0]),), (np.array([2.0, 0.0]),))
    array([1., 4.])
    """
    q, weights = np.array(gradient), []
    for s, y in zip(reversed(moves), reversed(changes), strict=True):
        weights.append((s @ q) / (y @ s))
        q -= weights[-1] * y
    q = q if precondition is None else precondition(q)
    if moves:  # the newest pair knows the scale better than the preconditioner
        s, y = moves[-1], changes[-1]
        q = q * ((y @ s) / (y @ (y if precondition is None else precondition(y))))
    for s, y, weight in zip(moves, changes, reversed(weights), strict=True):
        q += (weight - (y @ q) / (y @ s)) * s
    return q


def lbfgs_start(fun, x):
    """Evaluate the objective where the iteration starts."""
    x = np.array(x, dtype=float)
    value, gradient = fun(x)
    return x, float(value), gradient, (), ()


def lbfgs_step(fun, state, precondition=None, memory=MEMORY):
    """Take one step; return (state, value, residual), the residual being the largest entry of the gradient.

    Where no direction lowers the objective any more (rounding), the state stays and the residual says how good it is.

    Parameters
    ----------
    fun : Function of x that returns (value, gradient).
    precondition : Symmetric positive definite linear map of gradients to directions, close to the inverse Hessian.
    memory : Pairs kept.

    Examples
    --------
    >>> def valley(x):
    ...     return float(50 * x[0] ** 2 + x[1] ** 2 / 2), np.array([100 * x[0], x[1]])
    >>> state = lbfgs_start(valley, [1.0, 1.0])
    >>> for _ in range(8):
    ...     state, value, residual = lbfgs_step(valley, state)
    >>> residual < 1e-8
    True
    """
    x, value, gradient, moves, changes = state
    if not gradient.any():
        return state, value, 0.0
    direction = -two_loop(gradient, moves, changes, precondition)
    first = 1.0 if moves or precondition is not None else 1.0 / np.abs(gradient).max()  # a first move of length one
    try:
        point = search(fun, x, value, gradient, direction, first)
    except LineSearchError:
        if not moves:
            return state, value, float(np.abs(gradient).max())
        return (x, value, gradient, (), ()), value, float(np.abs(gradient).max())  # forget, and try the plain gradient
    s, y = point.x - x, point.gradient - gradient
    if s @ y > np.finfo(float).eps * np.sqrt((s @ s) * (y @ y)):
        moves, changes = (*moves, s)[-memory:], (*changes, y)[-memory:]
    return (point.x, point.value, point.gradient, moves, changes), point.value, float(np.abs(point.gradient).max())
