"""Newton's method: step to the stationary point of the second-order Taylor model.

f(x₀) + ∇f·(x − x₀) + ½(x − x₀)ᵀ∇²f (x − x₀) is stationary at x = x₀ − (∇²f)⁻¹∇f, with the same sign whether that is a minimum
or a maximum. One step solves a quadratic; near a minimum with a positive definite Hessian the gradient's length is squared at
every step. To minimize from afar, the step is shortened by a line search, and where the Hessian is not positive definite its
eigenvalues are replaced by their absolute values, which keeps −H⁻¹g a direction of descent [1].
The Newton decrement λ = (gᵀH⁻¹g)^½ tells how far it is: λ²/2 is by how much the model says that f can fall [2].

[1] Nocedal & Wright, Numerical Optimization, ch. 3 (2006). [2] Boyd & Vandenberghe, Convex Optimization, ch. 9 (2004).
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.optimize.line_search import LineSearchError, search

LEAST = 1e-8  # of the largest eigenvalue: how small the smallest may be made; √ε, so that a step keeps half of its digits


def newton_direction(gradient, H):
    """Return −H⁻¹g and the Newton decrement; eigenvalues that are not positive count by their absolute values.

    Examples
    --------
    >>> newton_direction(np.array([2.0, 6.0]), np.diag([2.0, 3.0]))
    (array([-1., -2.]), 3.741657)
    >>> newton_direction(np.array([2.0, 6.0]), np.diag([2.0, -3.0]))[0]
    array([-1., -2.])
    """
    try:
        direction = -cho_solve(cho_factor(H, lower=True), gradient)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        size = np.abs(values).max()
        bend = np.maximum(np.abs(values), LEAST * size) if size > 0 else np.ones(len(values))
        direction = -vectors @ ((vectors.T @ gradient) / bend)
    return direction, float(np.sqrt(max(-gradient @ direction, 0.0)))


def newton_start(fun, x):
    """Evaluate the objective at the start; the decrement is not known yet."""
    value, gradient = fun(x)
    return x, value, gradient, np.inf


def newton_step(fun, state, hess):
    """Take one step along the Newton direction; return (state, value, residual).

    The state is (x, value, gradient, decrement of the point before). Where rounding ends the progress, it stays.
    """
    x, value, gradient, _ = state
    direction, decrement = newton_direction(gradient, hess(x))
    try:
        point = search(fun, x, value, gradient, direction)
    except LineSearchError:
        return state, value, float(np.abs(gradient).max())
    return (point.x, point.value, point.gradient, decrement), point.value, float(np.abs(point.gradient).max())
