"""Ascent on the probability simplex through a softmax.

Maximize f(θ) over θ ≥ 0, Σθ = 1. With θₖ = exp(λₖ) / Σⱼ exp(λⱼ) every λ is allowed and θ never leaves the simplex; by the chain
rule ∂f/∂λₖ = θₖ (∂f/∂θₖ − Σⱼ θⱼ ∂f/∂θⱼ), so any method for unconstrained functions serves. Entries of θ that should be zero
only tend to it.
Certificate: for a concave f, f(z) ≤ f(θ) + ∇f(θ)·(z − θ) on the whole simplex, and the right side is largest at a corner:
max f − f(θ) ≤ maxₖ ∂f/∂θₖ − θ·∇f(θ) [1].

[1] Frank & Wolfe, Naval Res. Logist. 3 (1956); Jaggi, ICML (2013).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check
from lemmata.core.certificate import gap as relative
from lemmata.optimize.minimize import minimize
from lemmata.optimize.minimum import Minimum


def softmax(logits):
    """Return exp(λ) / Σ exp(λ), without overflow.

    Examples
    --------
    >>> softmax(np.array([0.0, np.log(3.0), 1000.0 - 1000.0]))
    array([0.2, 0.6, 0.2])
    """
    powers = np.exp(logits - np.max(logits))
    return powers / powers.sum()


def simplex_gradient(theta, gradient):
    """Turn the gradient in θ into that in λ: θₖ (gₖ − θ·g).

    Examples
    --------
    >>> simplex_gradient(np.array([0.5, 0.5]), np.array([3.0, 1.0]))
    array([ 0.5, -0.5])
    """
    return theta * (gradient - theta @ gradient)


@dataclass(frozen=True)
class SimplexMaximum:
    """The end of an ascent on the simplex.

    Parameters
    ----------
    theta, value : The point, and f there.
    gap : maxₖ ∂f/∂θₖ − θ·∇f(θ): if f is concave, no point of the simplex is better by more.
    minimum : The minimization of −f over λ that it came from; its trace, n_iter and reason.
    """

    theta: np.ndarray
    value: float
    gap: float
    minimum: Minimum

    def certificate(self, null=0.0):
        """Prove, for a concave f, that no point of the simplex is better; `null` is f at a trivial point."""
        off = max(abs(float(self.theta.sum()) - 1), -float(self.theta.min()))
        return Certificate(
            Check("simplex", off, SAME_LIMIT, "proof", "no entry is negative and they sum to one"),
            relative(
                -self.value, -self.value - self.gap, max(abs(null), TINY), "no point of the simplex is better by more than this"
            ),
        )


def maximize_on_simplex(f, grad, start, **options):
    """Maximize a function of probabilities, from a start inside the simplex.

    Parameters
    ----------
    f, grad : The function of θ and its gradient.
    start : Positive numbers; they are normalized.
    options : Of `minimize`, such as method, tol and max_iter.

    Examples
    --------
    >>> counts = np.array([1.0, 2.0, 5.0])
    >>> found = maximize_on_simplex(lambda t: counts @ np.log(t), lambda t: counts / t, np.ones(3))
    >>> found.theta
    array([0.125, 0.25 , 0.625])
    >>> found.certificate().holds
    True
    """
    start = np.asarray(start, dtype=float)
    if start.ndim != 1 or not (np.isfinite(start).all() and (start > 0).all()):
        raise ValueError(f"The start must be a vector of positive numbers, got {start}.")

    def loss(logits):
        return -f(softmax(logits))

    def slope(logits):
        theta = softmax(logits)
        return -simplex_gradient(theta, np.asarray(grad(theta), dtype=float))

    found = minimize(loss, np.log(start), slope, **options)
    theta = softmax(found.x)
    g = np.asarray(grad(theta), dtype=float)
    return SimplexMaximum(theta, float(f(theta)), float(g.max() - theta @ g), found)
