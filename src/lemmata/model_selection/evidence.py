"""The evidence of a model by Laplace's approximation.

p(y) = ∫ p(y, θ) dθ. Around its mode θ̂ the logarithm of the integrand is ln p(y, θ̂) − ½ (θ − θ̂)ᵀA(θ − θ̂) to second order,
A = −∇² ln p(y, θ̂), and the integral of that is [1]

    ln p(y)  ≈  ln p(y, θ̂) + ½ d ln 2π − ½ ln|A|,

exactly where the posterior is normal, and with an error of order 1/N where it becomes so. It depends on how θ is written:
approximate in coordinates that range over all numbers, ln σ and not σ, and put the Jacobian into the joint density.
A point at which the gradient does not vanish, or A is not positive definite, is no mode, and then the formula means nothing:
that is refused. What the gradient g leaves to gain, ½ gᵀA⁻¹g, is in nats, the units of the answer, and so needs no others.

[1] Tierney & Kadane, J. Am. Stat. Assoc. 81 (1986).
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.optimize.derivatives import EPS, FIRST, SECOND
from lemmata.optimize.derivatives import gradient as differences
from lemmata.optimize.derivatives import hessian as second_differences

GAIN = 1e-4  # nats that a better mode may gain: differences find a smaller gradient only where the density is small
LITTLE, MUCH = 1 / 8, 2.0  # nats that a unit may cost: half to twice a standard deviation
LEAP, SEARCH = 1e3, 100  # the most by which a unit is changed at once, and how often: all that floating point can write


def laplace_evidence(log_joint, mode, hessian=None, *, gradient=None, tol=GAIN):
    """Approximate ln p(y) by the curvature of ln p(y, θ) at its mode.

    Parameters
    ----------
    log_joint : Function of θ that gives ln p(y, θ): likelihood and prior, with all their constants.
    mode : θ̂, a number or (d,), where the joint density is largest.
    hessian : ∇² ln p(y, θ̂), (d, d), or a function of θ that gives it; by default central differences,
        as long as the posterior is wide.
    gradient : Function of θ that gives the gradient of log_joint; by default central differences.
    tol : Nats of log density that a better point near the mode may gain by the gradient; more is refused.

    Returns
    -------
    value : float.

    Examples
    --------
    Three tosses, two heads, and a logistic prior on the log odds z, which makes the chance uniform: the evidence is 1/12.

    >>> def log_joint(z):
    ...     p = 1 / (1 + np.exp(-z[0]))
    ...     return 2 * np.log(p) + np.log(1 - p) + np.log(p * (1 - p))
    >>> round(float(np.exp(laplace_evidence(log_joint, np.log(3 / 2)))), 4), round(1 / 12, 4)
    (0.0791, 0.0833)
    """
    mode = np.atleast_1d(np.array(mode, dtype=float))
    if mode.ndim != 1 or mode.size == 0 or not np.isfinite(mode).all():
        raise ValueError(f"mode must be a number or a vector of finite numbers, got an array of shape {mode.shape}.")

    def value(theta):
        found = np.asarray(log_joint(theta), dtype=float)
        if found.size != 1:
            raise ValueError(f"log_joint must give one number, the sum over all rows; got an array of shape {found.shape}.")
        return float(found.reshape(()))

    top = value(mode)
    if not np.isfinite(top):
        raise ValueError(f"log_joint is {top} at the mode: it must be finite there.")
    unit = _units(value, mode, top)
    found = _hessian(value, mode, hessian, gradient, unit, (EPS * max(1.0, abs(top))) ** (1 / 4))
    with np.errstate(invalid="ignore"):
        slope = (
            differences(lambda z: value(mode + unit * z), np.zeros(len(mode))) / unit if gradient is None else gradient(mode)
        )
    slope = np.asarray(slope, dtype=float).reshape(mode.shape)
    return top + len(mode) / 2 * np.log(2 * np.pi) - _half_log_volume(-found, slope, mode, tol)


def _units(value, mode, top):
    """Give for each coordinate a step that costs about half a nat to either side, as a standard deviation does."""
    units = np.maximum(1.0, np.abs(mode))
    for i, start in enumerate(units):
        step, at = start, np.zeros(len(mode))
        for _ in range(SEARCH):
            at[i] = step
            with np.errstate(all="ignore"):
                loss = top - (value(mode + at) + value(mode - at)) / 2
            if LITTLE <= loss <= MUCH:
                units[i] = step
                break
            # where there is no loss but rounding a longer step, and where the density ends a shorter one
            step *= np.clip(np.sqrt(0.5 / loss), 1 / LEAP, LEAP) if loss > 0 else LEAP if loss <= 0 else 1 / LEAP
    return units


def _hessian(value, mode, hessian, gradient, unit, step):
    """Give the Hessian: as it was given, or by differences in these units."""
    if hessian is None:
        slope = None if gradient is None else lambda z: unit * np.reshape(gradient(mode + unit * z), mode.shape)
        step = step if gradient is None else FIRST
        found = second_differences(lambda z: value(mode + unit * z), np.zeros(len(mode)), slope, step) / np.outer(unit, unit)
    else:
        found = np.asarray(hessian(mode) if callable(hessian) else hessian, dtype=float)
        found = found.reshape(1, 1) if found.size == 1 else found
    d = len(mode)
    if found.shape != (d, d) or not np.isfinite(found).all():
        raise ValueError(f"hessian must be a finite matrix of shape {(d, d)}, got shape {found.shape}.")
    if np.abs(found - found.T).max(initial=0.0) > FIRST * np.abs(found).max(initial=0.0):
        raise ValueError("hessian is not symmetric: give the second derivatives of log_joint.")
    return (found + found.T) / 2


def _half_log_volume(curvature, slope, mode, tol):
    """Give ½ ln|A|, once A and the gradient are those of a mode."""
    size = np.sqrt(np.maximum(np.diag(curvature), 0.0))
    scaled = curvature / np.outer(size, size) if (size > 0).all() else -np.eye(len(mode))
    values = np.linalg.eigvalsh(scaled)  # of the units of θ they know nothing
    if not values.min(initial=1.0) > SECOND**2 * len(mode):
        raise ValueError(
            "mode is no mode: the Hessian of log_joint there has a direction that bends upwards, or lies flat to the precision "
            "of differences; look for a maximum, or take out what nothing determines."
        )
    factor = cho_factor(scaled)
    gain = float((slope / size) @ cho_solve(factor, slope / size)) / 2
    if not gain <= tol:
        raise ValueError(
            f"mode is no mode: the gradient of log_joint there promises {gain:.2g} nats more (tol={tol:g}); search on from it."
        )
    return float(np.log(np.diag(factor[0])).sum() + np.log(size).sum())
