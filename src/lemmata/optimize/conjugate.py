"""Conjugate gradients: each direction remembers the last one, so that no progress is undone.

For f(x) = ½xᵀAx − bᵀx with A positive definite, the steps x ← x + t d with the exact t along d = −g + βd₋ are A-conjugate,
dᵢᵀA dⱼ = 0, and x solves Ax = b after at most n of them [1]. For other functions the same recursion with
β = max(0, g·(g − g₋) / g₋·g₋) (Polak-Ribière, restarted where β would be negative [2]) and a line search; the first trial of
the search is the step that a secant of the slope calls exact, which it is on quadratics, so both methods are the same there.
No step size has to be picked, and no matrix is kept.

[1] Hestenes & Stiefel, J. Res. Nat. Bur. Stand. 49 (1952). [2] Gilbert & Nocedal, SIAM J. Optim. 2 (1992).
"""

from typing import NamedTuple

import numpy as np

from lemmata.optimize.line_search import LineSearchError, search

CURVATURE = 0.1  # how flat a search must end: conjugacy needs steps closer to exact than quasi-Newton methods do


def secant(fun, x, gradient, direction, trial):
    """Return the step along a direction at which the slope, if it were linear, would vanish; the trial where it does not fall.

    Examples
    --------
    >>> def bowl(x):
    ...     return 2 * float(x @ x), 4 * x
    >>> secant(bowl, np.array([3.0]), np.array([12.0]), np.array([-12.0]), trial=1.0)
    0.25
    """
    slope = float(gradient @ direction)
    value, there = fun(x + trial * direction)
    bend = float(there @ direction) - slope
    return trial * -slope / bend if np.isfinite(value) and bend > 0 else trial


def conjugate_start(fun, x):
    """Evaluate the objective at the start; the first direction is that of steepest descent, the first trial of length 1."""
    value, gradient = fun(x)
    return x, value, gradient, -gradient, 1 / max(float(np.abs(gradient).max()), np.finfo(float).tiny)


def conjugate_step(fun, state):
    """Search along the direction and find the next; return (state, value, residual).

    The state is (x, value, gradient, next direction, trial step). Where the search fails, the direction becomes that of
    steepest descent; where that fails too, the state stays.
    """
    x, value, gradient, direction, trial = state
    try:
        first = secant(fun, x, gradient, direction, trial)
        point = search(fun, x, value, gradient, direction, first, CURVATURE)
    except LineSearchError:
        if not np.array_equal(direction, -gradient):
            state = (x, value, gradient, -gradient, trial)
        return state, value, float(np.abs(gradient).max())
    g = point.gradient
    beta = max(0.0, float(g @ (g - gradient)) / float(gradient @ gradient))
    following = -g + beta * direction
    following = following if float(following @ g) < 0 else -g
    return (point.x, point.value, g, following, point.step), point.value, float(np.abs(g).max())


class LinearSolution(NamedTuple):
    """The solution of a positive definite system, ‖b − Ax‖ after every step, and the conjugate directions (rows)."""

    x: np.ndarray
    residuals: np.ndarray
    directions: np.ndarray


def conjugate_gradient(A, b, tol=1e-12, max_iter=None):
    """Solve Ax = b for a positive definite A by conjugate gradients.

    Parameters
    ----------
    A : Matrix, or a function that multiplies by it.
    tol : Largest ‖b − Ax‖ / ‖b‖ to stop at.
    max_iter : By default as many steps as b has entries; that is enough but for rounding.

    Examples
    --------
    >>> solution = conjugate_gradient(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0]))
    >>> solution.x, len(solution.residuals) - 1
    (array([0.09090909, 0.63636364]), 2)
    """
    b = np.asarray(b, dtype=float)
    times = A if callable(A) else np.asarray(A, dtype=float).__matmul__
    x, r, d = np.zeros(b.shape), b, b
    residuals, directions = [np.linalg.norm(r)], []
    for _ in range(len(b) if max_iter is None else max_iter):
        if residuals[-1] <= tol * residuals[0]:
            break
        image = times(d)
        curvature = float(d @ image)
        if not curvature > 0:
            raise ValueError(f"A is not positive definite: it has a direction d with dᵀAd = {curvature:.3g}.")
        directions.append(d)
        step = float(r @ r) / curvature
        following = r - step * image
        x, d, r = x + step * d, following + float(following @ following) / float(r @ r) * d, following
        residuals.append(np.linalg.norm(r))
    return LinearSolution(x, np.array(residuals), np.array(directions).reshape(-1, len(b)))
