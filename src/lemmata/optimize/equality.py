"""Equality constraints: stationary points of a quadratic function on a linear subspace.

x is stationary for ½xᵀPx + qᵀx subject to Ax = b if and only if Px + q + Aᵀν = 0 and Ax = b for some multipliers ν: one linear
system, solved through x = x₀ + Zy with Z a basis of the null space of A. P need not be definite; what the point is, is said by
P on the tangent space alone: ZᵀPZ positive definite makes it the minimum, negative definite the maximum, else a saddle.
Certificate: the residuals of both equations, and the eigenvalues of ZᵀPZ.

Nocedal & Wright, Numerical Optimization, ch. 16 (2006).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, length
from lemmata.optimize.feasibility import FEASIBLE, RANK, solve_equations
from lemmata.optimize.quadratic import SecondOrder, second_order


@dataclass(frozen=True)
class EqualityOptimum:
    """A stationary point under equality constraints.

    Parameters
    ----------
    x, value : The point and the objective there.
    multipliers : ν, one for each equation.
    tangent : What the Hessian of the Lagrangian says on the tangent space: kind and eigenvalues.
    stationarity, feasibility : Residuals of ∇f + Aᵀν = 0 and of the constraints, relative to their terms.
    """

    x: np.ndarray
    value: float
    multipliers: np.ndarray
    tangent: SecondOrder
    stationarity: float
    feasibility: float

    def certificate(self, kind="minimum", proof="local"):
        """Check the two equations, and that the point is a strict minimum (or maximum) among its feasible neighbors."""
        wrong = 0.0 if self.tangent.kind == kind else np.inf
        still = "the gradient is a combination of the constraints' gradients"
        return Certificate(
            Check("stationarity", self.stationarity, FEASIBLE, proof, still),
            Check("feasibility", self.feasibility, FEASIBLE, proof, "the constraints hold"),
            Check("curvature", wrong, 0.0, proof, f"the Hessian on the tangent space makes it a {kind}"),
        )


def solve_equality(P, q, A, b):
    """Find the stationary point of ½xᵀPx + qᵀx subject to Ax = b, its multipliers, and what it is.

    Raises
    ------
    InfeasibleError : The equations contradict each other.
    ValueError : There is no stationary point: the objective is linear along some feasible direction.

    Examples
    --------
    >>> found = solve_equality(2 * np.eye(2), [0.0, 0.0], [[1.0, 1.0]], [1.0])
    >>> found.x, found.multipliers, found.tangent.kind
    (array([0.5, 0.5]), array([-1.]), 'minimum')
    >>> found.certificate(proof="proof").holds
    True
    """
    q, b = np.atleast_1d(np.asarray(q, dtype=float)), np.atleast_1d(np.asarray(b, dtype=float))
    P, A = np.asarray(P, dtype=float).reshape(len(q), len(q)), np.asarray(A, dtype=float).reshape(len(b), len(q))
    P = (P + P.T) / 2
    x, Z = solve_equations(A, b)
    reduced, slope = Z.T @ P @ Z, Z.T @ (P @ x + q)
    x = x + Z @ np.linalg.lstsq(reduced, -slope, rcond=RANK)[0]
    nu = -np.linalg.lstsq(A.T, P @ x + q, rcond=RANK)[0]
    found = EqualityOptimum(
        x,
        float(x @ P @ x / 2 + q @ x),
        nu,
        tangent_curvature(P, A),
        length(P @ x + q + A.T @ nu) / max(length(P @ x), length(q), TINY),
        float(np.max(np.abs(A @ x - b) / np.maximum(np.abs(A) @ np.abs(x) + np.abs(b), TINY), initial=0.0)),
    )
    if found.stationarity > np.sqrt(FEASIBLE):  # far above rounding, far below a slope
        raise ValueError("There is no stationary point: the objective is linear along a feasible direction.")
    return found


def tangent_curvature(H, A):
    """Classify a stationary point by the Hessian of its Lagrangian on the null space of the constraints' gradients.

    Examples
    --------
    >>> tangent_curvature(np.diag([1.0, -1.0]), np.array([[0.0, 1.0]])).kind
    'minimum'
    """
    _, Z = solve_equations(A, np.zeros(len(A)))
    return second_order(Z.T @ H @ Z) if Z.size else SecondOrder("minimum", np.zeros(0), True, True)  # nowhere else to go
