"""Duality: Lagrangians, dual bounds, and the conditions of Karush, Kuhn and Tucker.

Minimize f(x) subject to gᵢ(x) ≤ 0 and hⱼ(x) = 0. With multipliers λ ≥ 0 and ν, L(x, λ, ν) = f + Σλᵢgᵢ + Σνⱼhⱼ turns constraints
into prices. At a feasible x no prices raise L above f(x); at another one they raise it without limit: sup L is f with an
infinite penalty. The dual function, the least L over all x, is concave in the prices, and weak duality makes it a bound:
least L(·, λ, ν) ≤ f(x) for every feasible x. If f and the gᵢ are convex, the hⱼ affine, and some point is strictly feasible
(Slater), the best bound is attained and equals the minimum; then x and (λ, ν) are a saddle point of L, and the four
conditions of `kkt_residuals` are necessary and sufficient. Without convexity they are only necessary, and a minimum of L that
`minimize` found may be a local one, which bounds nothing.
Multipliers are one vector, those of the inequalities first.

Boyd & Vandenberghe, Convex Optimization, ch. 5 (2004).
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, length
from lemmata.core.iterate import iterate
from lemmata.optimize.derivatives import gradient, jacobian
from lemmata.optimize.equality import EqualityOptimum, solve_equality, tangent_curvature
from lemmata.optimize.feasibility import InfeasibleError
from lemmata.optimize.minimize import minimize
from lemmata.optimize.minimum import finite_start
from lemmata.optimize.quadratic_program import QuadraticSolution, UnboundedError, check_qp, solve_qp

__all__ = [
    "Program",
    "lagrangian",
    "sup_lagrangian",
    "dual",
    "duality_gap",
    "kkt_residuals",
    "check_saddle",
    "stationary_point",
    "solve_equality",
    "solve_qp",
    "check_qp",
    "Residuals",
    "EqualityOptimum",
    "QuadraticSolution",
    "InfeasibleError",
    "UnboundedError",
]

TOLERANCE = 1e-6  # of the four conditions: what a gradient by differences leaves, and a hundred times more


@dataclass(frozen=True)
class Program:
    """Minimize f(x) subject to gᵢ(x) ≤ 0 and hⱼ(x) = 0.

    Parameters
    ----------
    f : Function of an array.
    inequalities, equalities : Functions gᵢ and hⱼ.
    gradient : Of f; by differences if missing.
    inequality_gradients, equality_gradients : Of each gᵢ and hⱼ; by differences if missing.

    Examples
    --------
    >>> program = Program(lambda x: x**2, [lambda x: 2 - x])
    >>> program.feasible(2.5), program.feasible(1.0), program.strictly_feasible(2.0)
    (True, False, False)
    """

    f: Callable
    inequalities: Sequence[Callable] = ()
    equalities: Sequence[Callable] = ()
    gradient: Callable | None = None
    inequality_gradients: Sequence[Callable] | None = None
    equality_gradients: Sequence[Callable] | None = None

    def constraints(self, x):
        """Return the values of all constraints at x, those of the inequalities first."""
        return np.array([float(g(x)) for g in (*self.inequalities, *self.equalities)])

    def violations(self, x):
        """Return by how much each constraint is violated: max(gᵢ, 0) and |hⱼ|."""
        values, m = self.constraints(x), len(self.inequalities)
        return np.append(np.maximum(values[:m], 0.0), np.abs(values[m:]))

    def feasible(self, x, tol=0.0):
        """Tell whether no constraint is violated by more than `tol`."""
        return bool((self.violations(x) <= tol).all())

    def strictly_feasible(self, x, tol=0.0):
        """Tell whether every gᵢ is negative and every hⱼ zero up to `tol`: with such a point, Slater's condition holds."""
        values, m = self.constraints(x), len(self.inequalities)
        return bool((values[:m] < 0).all() and (np.abs(values[m:]) <= tol).all())

    def slopes(self, x):
        """Return the gradient of f and the matrix whose rows are those of the constraints, x counted as flat."""
        functions = (self.f, *self.inequalities, *self.equalities)
        given = (
            self.gradient,
            *(self.inequality_gradients or [None] * len(self.inequalities)),
            *(self.equality_gradients or [None] * len(self.equalities)),
        )
        rows = [np.ravel(gradient(f, x) if g is None else g(x)) for f, g in zip(functions, given, strict=True)]
        return rows[0], np.array(rows[1:]).reshape(len(rows) - 1, len(rows[0]))

    def multipliers(self, values):
        """Return multipliers as a vector; refuse a wrong number of them."""
        values, n = np.atleast_1d(np.asarray(values, dtype=float)), len(self.inequalities) + len(self.equalities)
        if values.shape != (n,):
            raise ValueError(f"There are {n} constraints, and multipliers of the shape {values.shape}.")
        return values


def lagrangian(program, x, multipliers):
    """Return f(x) + Σλᵢgᵢ(x) + Σνⱼhⱼ(x).

    Examples
    --------
    >>> lagrangian(Program(lambda x: x**2, [lambda x: 2 - x]), 3.0, [4.0])
    5.0
    """
    return float(program.f(x)) + float(program.multipliers(multipliers) @ program.constraints(x))


class Supremum(NamedTuple):
    """The supremum of the Lagrangian over multipliers, and what proves it.

    Parameters
    ----------
    value : f(x), or infinity.
    multipliers : Where it is attained (zero), or the ray along which the Lagrangian grows.
    slope : How fast it grows along the ray.
    """

    value: float
    multipliers: np.ndarray
    slope: float


def sup_lagrangian(program, x):
    """Return the supremum of the Lagrangian at x over all λ ≥ 0 and ν: f(x) if x is feasible, else infinity.

    Examples
    --------
    >>> program = Program(lambda x: x**2, [lambda x: 2 - x])
    >>> sup_lagrangian(program, 3.0)
    Supremum(value=9.0, multipliers=array([0.]), slope=0.0)
    >>> sup_lagrangian(program, 0.5)
    Supremum(value=inf, multipliers=array([1.]), slope=1.5)
    """
    ray, violations = np.zeros(len(program.inequalities) + len(program.equalities)), program.violations(x)
    if not violations.any():
        return Supremum(float(program.f(x)), ray, 0.0)
    worst = int(np.argmax(violations))
    ray[worst] = np.sign(program.constraints(x)[worst])
    return Supremum(np.inf, ray, float(violations[worst]))


class DualPoint(NamedTuple):
    """A value of the dual function, and the x at which the Lagrangian is least."""

    value: float
    x: np.ndarray


def dual(program, multipliers, x0, **options):
    """Return the least value of the Lagrangian over x, a lower bound of f on the feasible set if the program is convex.

    Where `minimize` does not converge (the Lagrangian may fall without limit) the value is −∞, which bounds nothing.

    Parameters
    ----------
    multipliers : Those of inequalities must not be negative.
    x0 : Where the minimization starts.
    options : Of `minimize`.

    Examples
    --------
    >>> program = Program(lambda x: x**2, [lambda x: 2 - x])
    >>> dual(program, [4.0], x0=0.0)
    DualPoint(value=4.0, x=array(2.))
    """
    from sklearn.exceptions import ConvergenceWarning

    prices = program.multipliers(multipliers)
    if (prices[: len(program.inequalities)] < 0).any():
        raise ValueError(f"Multipliers of inequalities must not be negative, got {prices[: len(program.inequalities)]}.")

    def slope(x):
        first, rows = program.slopes(x)
        return (first + prices @ rows).reshape(np.shape(x))

    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            found = minimize(lambda x: lagrangian(program, x, prices), x0, slope, **options)
        except FloatingPointError:  # the values ran to −∞ and became no numbers
            return DualPoint(-np.inf, finite_start(x0))
    return DualPoint(found.value if found.converged else -np.inf, found.x)


def duality_gap(program, x, multipliers, x0=None, **options):
    """Return f(x) − dual(multipliers): at least zero, and zero only for a solution; infinite where x is not feasible.

    Parameters
    ----------
    x0 : Where the minimization of the Lagrangian starts; by default at x.
    options : Of `minimize`.

    Examples
    --------
    >>> program = Program(lambda x: x**2, [lambda x: 2 - x])
    >>> duality_gap(program, 2.0, [4.0]), duality_gap(program, 3.0, [2.0])
    (0.0, 6.0)
    """
    return sup_lagrangian(program, x).value - dual(program, multipliers, x if x0 is None else x0, **options).value


class Residuals(NamedTuple):
    """By how much the conditions of Karush, Kuhn and Tucker are missed.

    Parameters
    ----------
    primal : Largest max(gᵢ, 0) and |hⱼ|.
    dual : Largest max(−λᵢ, 0).
    stationarity : ‖∇f + Σλᵢ∇gᵢ + Σνⱼ∇hⱼ‖.
    complementarity : Largest |λᵢgᵢ|.
    """

    primal: float
    dual: float
    stationarity: float
    complementarity: float

    def certificate(self, tol=TOLERANCE, convex=False):
        """Check all four; `convex` says that f and the gᵢ are convex and the hⱼ affine, which makes them a proof."""
        claims = {
            "primal": "no constraint is violated by more",
            "dual": "no multiplier of an inequality is negative by more",
            "stationarity": "the gradient of the Lagrangian is no longer",
            "complementarity": "no constraint with a price has more slack, their product counted",
        }
        kind = "proof" if convex else "local"
        return Certificate(*(Check(name, getattr(self, name), tol, kind, claim) for name, claim in claims.items()))


def kkt_residuals(program, x, multipliers):
    """Return by how much a point and its multipliers miss the four conditions of optimality.

    Examples
    --------
    >>> residuals = kkt_residuals(Program(lambda x: x @ x, [lambda x: 2 - x[0]]), np.array([2.0, 0.0]), [4.0])
    >>> residuals.certificate(convex=True).holds
    True
    """
    prices, m = program.multipliers(multipliers), len(program.inequalities)
    slope, rows = program.slopes(x)
    return Residuals(
        float(program.violations(x).max(initial=0.0)),
        float(np.max(-prices[:m], initial=0.0)),
        length(slope + prices @ rows),
        float(np.abs(prices * program.constraints(x))[:m].max(initial=0.0)),
    )


def check_saddle(program, x, multipliers, points, prices, tol=TOLERANCE):
    """Check L(x, other prices) ≤ L(x, multipliers) ≤ L(other point, multipliers) on some points and prices.

    Examples
    --------
    >>> program = Program(lambda x: x**2, [lambda x: 2 - x])
    >>> check_saddle(program, 2.0, [4.0], points=np.linspace(-9, 9, 19), prices=[[0.0], [1.0], [50.0]]).holds
    True
    """
    here = lagrangian(program, x, multipliers)
    above = max(lagrangian(program, x, other) for other in prices) - here
    below = here - min(lagrangian(program, z, multipliers) for z in points)
    size = max(abs(here), 1.0)
    return Certificate(
        Check("prices", above / size, tol, "evidence", "no other prices raise the Lagrangian at the point"),
        Check("points", below / size, tol, "evidence", "no other point lowers the Lagrangian at the prices"),
    )


def stationary_point(program, x0, *, max_iter=50, tol=1e-8):
    """Find a stationary point under equality constraints by Newton steps on x and multipliers together.

    Each step solves the quadratic model of the Lagrangian on the linearized constraints (`solve_equality`): one is enough for
    a quadratic f and affine constraints, and close to a solution the error is squared. Nothing tells minima from maxima on
    the way; `tangent` does at the end.

    Examples
    --------
    The point of the unit circle with the largest x + y:

    >>> program = Program(lambda x: x[0] + x[1], equalities=[lambda x: x @ x - 1])
    >>> found = stationary_point(program, [1.0, 0.5])
    >>> found.x, found.tangent.kind
    (array([0.70710678, 0.70710678]), 'maximum')
    """
    if program.inequalities:
        raise ValueError("stationary_point takes equality constraints only; see solve_qp for inequalities.")
    start = finite_start(x0)

    def bend(x, nu):
        H = jacobian(lambda z: _pull(program, z, nu), x)
        return (H + H.T) / 2

    def step(state):
        x, nu = state
        slope, rows = program.slopes(x)
        model = solve_equality(bend(x, nu), slope, rows, -program.constraints(x))
        x, nu = x + model.x.reshape(x.shape), model.multipliers
        residual = max(length(_pull(program, x, nu)), float(np.abs(program.constraints(x)).max(initial=0.0)))
        return (x, nu), program.f(x), residual

    slope, rows = program.slopes(start)
    guess = -np.linalg.lstsq(rows.T, slope)[0]  # the multipliers that would fit best if the start were the solution
    run = iterate(step, (start, guess), max_iter=max_iter, tol=tol, name="Newton-Lagrange")
    x, nu = run.state
    slope, rows = program.slopes(x)
    violation = np.abs(program.constraints(x)) / np.maximum(np.abs(rows) @ np.abs(np.ravel(x)), 1.0)
    return EqualityOptimum(
        x,
        float(program.f(x)),
        nu,
        tangent_curvature(bend(x, nu), rows),
        length(slope + nu @ rows) / max(length(slope), TINY),
        float(violation.max(initial=0.0)),
    )


def _pull(program, x, multipliers):
    """Return the gradient of the Lagrangian, flat."""
    slope, rows = program.slopes(x)
    return slope + multipliers @ rows
