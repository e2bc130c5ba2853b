"""BFGS: Newton's method with an inverse Hessian learned from gradients.

After a move s with the gradient change y, H⁺ = (I − ρ s yᵀ) H (I − ρ y sᵀ) + ρ s sᵀ, ρ = 1/yᵀs, is the inverse Hessian closest
to H that satisfies the secant equation H⁺y = s. It stays positive definite as long as yᵀs > 0, which the Wolfe conditions of
the line search ensure, so every direction −Hg descends. With exact searches on a quadratic in n dimensions, n steps end at
the minimum and H is its inverse Hessian [1].

[1] Broyden, J. Inst. Math. Appl. 6 (1970); Fletcher; Goldfarb; Shanno (1970).
"""

import numpy as np

from lemmata.optimize.line_search import LineSearchError, search


def bfgs_update(H, s, y):
    """Return the inverse Hessian that agrees with the move s and the gradient change y.

    Examples
    --------
    >>> H = bfgs_update(np.eye(2), np.array([1.0, 1.0]), np.array([2.0, 3.0]))
    >>> H @ [2.0, 3.0]
    array([1., 1.])
    """
    rho = 1 / float(y @ s)
    image = H @ y
    return H - rho * (np.outer(s, image) + np.outer(image, s)) + rho * (1 + rho * float(y @ image)) * np.outer(s, s)


def bfgs_start(fun, x):
    """Evaluate the objective at the start; an empty matrix stands for an inverse Hessian of which nothing is known."""
    value, gradient = fun(x)
    return x, value, gradient, np.zeros((0, 0))


def bfgs_step(fun, state):
    """Search along −Hg and update H; return (state, value, residual).

    The state is (x, value, gradient, H). Where the search fails, H is forgotten; where steepest descent fails too, the state
    stays.
    """
    x, value, gradient, H = state
    largest = float(np.abs(gradient).max())
    direction = -(H @ gradient) if H.size else -gradient / max(largest, np.finfo(float).tiny)  # a first move of length one
    try:
        point = search(fun, x, value, gradient, direction)
    except LineSearchError:
        return ((x, value, gradient, np.zeros((0, 0))) if H.size else state), value, largest
    s, y = point.x - x, point.gradient - gradient
    if s @ y > np.finfo(float).eps * np.sqrt((s @ s) * (y @ y)):
        if not H.size:
            H = np.eye(len(x)) * (s @ y) / (y @ y)  # the first pair knows the scale, a unit matrix does not
        H = bfgs_update(H, s, y)
    return (point.x, point.value, point.gradient, H), point.value, float(np.abs(point.gradient).max())
