"""Derivatives by central differences, and checks of derivatives that were written by hand.

(f(x + h eᵢ) − f(x − h eᵢ)) / 2h misses ∂f/∂xᵢ by h² f‴/6 for the curvature it ignores and by ε|f|/h for rounding: the error
is a V in log h, least at h ≈ ε^⅓, where it is about ε^⅔ |f|. Second differences do worse, ε^½ |f| at h ≈ ε^¼. A check sweeps h
over the V and keeps the least error: a right derivative finds its bottom, a wrong one has none.
Steps are in units of max(1, |xᵢ|). The Jacobian of f: Rᵐ → Rⁿ is n × m, one row for each value.

Nocedal & Wright, Numerical Optimization, ch. 8 (2006).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, length

EPS = np.finfo(float).eps
FIRST = EPS ** (1 / 3)  # the best step of first differences
SECOND = EPS ** (1 / 4)  # and of second differences
STEPS = 10.0 ** np.arange(-1, -10.5, -0.5)  # from where the curvature dominates to where rounding does
LIMIT = 1e-6  # relative error of a right derivative: 10⁴ times what a smooth function shows at the bottom of the V


def jacobian(f, x, step=FIRST):
    """Estimate the n × m Jacobian of f: Rᵐ → Rⁿ by central differences.

    Parameters
    ----------
    f : Function of an array like x that returns an array; arrays of more dimensions count as flat.
    step : In units of max(1, |xᵢ|).

    Examples
    --------
    >>> jacobian(lambda x: [x[0] * x[1], x[0], x[1] ** 2], [2.0, 3.0])
    array([[3., 2.],
           [1., 0.],
           [0., 6.]])
    """
    x = np.array(x, dtype=float)
    columns = []
    for i in range(x.size):
        right, left = x.copy(), x.copy()
        h = step * max(1.0, abs(x.flat[i]))
        right.flat[i] += h
        left.flat[i] -= h
        rise = np.ravel(np.asarray(f(right), dtype=float)) - np.ravel(np.asarray(f(left), dtype=float))
        columns.append(rise / (right.flat[i] - left.flat[i]))  # the step that was taken, not the one that was meant
    return np.stack(columns, axis=-1)


def gradient(f, x, step=FIRST):
    """Estimate the gradient of a function by central differences; it has the shape of x.

    Examples
    --------
    >>> gradient(lambda x: x @ x, [1.0, -2.0])
    array([ 2., -4.])
    """
    return jacobian(f, x, step).reshape(np.shape(x))


def hessian(f, x, grad=None, step=None):
    """Estimate the Hessian of a function: by differences of its gradient if that is given, by second differences if not.

    Examples
    --------
    >>> hessian(lambda x: x[0] ** 2 * x[1], [1.0, 3.0])
    array([[6., 2.],
           [2., 0.]])
    """
    if grad is None:
        step = SECOND if step is None else step
        H = jacobian(lambda z: gradient(f, z, step), x, step)
    else:
        H = jacobian(grad, x, FIRST if step is None else step)
    return (H + H.T) / 2


@dataclass(frozen=True)
class DerivativeCheck:
    """How far a derivative is from differences, for every step: the bottom of the V decides.

    Parameters
    ----------
    error : Least relative error over the steps.
    steps, errors : The V.
    """

    error: float
    steps: np.ndarray
    errors: np.ndarray

    @property
    def holds(self):
        """Whether the least error is within 1e-6."""
        return bool(self.error <= LIMIT)

    def __bool__(self):
        return self.holds

    def certificate(self):
        """Return the verdict as a certificate."""
        claim = "the derivative agrees with central differences, to this relative error"
        return Certificate(Check("derivative", self.error, LIMIT, "evidence", claim))


def check_gradient(f, grad, x):
    """Check a gradient against central differences over a sweep of steps.

    Examples
    --------
    >>> check_gradient(lambda x: x @ x, lambda x: 2 * x, np.array([1.0, -2.0])).holds
    True
    >>> check_gradient(lambda x: x @ x, lambda x: x, np.array([1.0, -2.0])).holds
    False
    """
    return _sweep(lambda step: gradient(f, x, step), grad(np.array(x, dtype=float)), f, x, EPS ** (2 / 3))


def check_jacobian(f, jac, x):
    """Check an n × m Jacobian of f: Rᵐ → Rⁿ against central differences over a sweep of steps.

    Examples
    --------
    >>> A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 5.0]])
    >>> check_jacobian(lambda x: A @ x, lambda x: A, np.ones(3)).holds
    True
    """
    return _sweep(lambda step: jacobian(f, x, step), jac(np.array(x, dtype=float)), f, x, EPS ** (2 / 3))


def check_hessian(f, hess, x, grad=None):
    """Check a Hessian against differences (of the gradient, if that is given) over a sweep of steps.

    Examples
    --------
    >>> check_hessian(lambda x: x[0] ** 2 * x[1], lambda x: np.array([[2 * x[1], 2 * x[0]], [2 * x[0], 0]]), [1.0, 3.0]).holds
    True
    """
    resolution = EPS ** (1 / 2 if grad is None else 2 / 3)
    return _sweep(lambda step: hessian(f, x, grad, step), hess(np.array(x, dtype=float)), grad or f, x, resolution)


def _sweep(numeric, analytic, f, x, resolution):
    """Compare a derivative with differences of every step, relative to its length.

    Where the derivative vanishes, its length says nothing; then errors are relative to what differences can resolve at all,
    a share of the size that f has around x.
    """
    x, analytic = np.array(x, dtype=float), np.asarray(analytic, dtype=float)
    around = x + STEPS[0] * np.maximum(1.0, np.abs(x))
    size = max(float(np.abs(f(z)).max()) for z in (x, around))
    scale = max(length(analytic), resolution / LIMIT * size, TINY)
    estimates = [numeric(step) for step in STEPS]
    if estimates[0].shape != analytic.shape:
        raise ValueError(f"The derivative has the shape {analytic.shape}, it should have {estimates[0].shape}.")
    errors = np.array([length(estimate - analytic) for estimate in estimates]) / scale
    best = float(np.nanmin(errors)) if np.isfinite(errors).any() else np.inf
    return DerivativeCheck(best, STEPS.copy(), errors)
