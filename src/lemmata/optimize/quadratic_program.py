"""Quadratic programs: minimize ½xᵀPx + qᵀx subject to Gx ≤ h and Ax = b, with P positive semidefinite.

With multipliers λ ≥ 0 and ν, x is optimal if and only if Px + q + Gᵀλ + Aᵀν = 0, s = h − Gx ≥ 0, Ax = b and λᵢsᵢ = 0. The
equations are eliminated, x = x₀ + Zy; an interior-point method solves the rest with λᵢsᵢ = σμ by Newton steps that keep λ and s
positive, and lets σμ → 0 [1]; then the inequalities that are held become equations, and one linear system gives x to
rounding. That there is a feasible point is settled before (`feasibility`), as is whether the objective is bounded on the
feasible set: it is not if and only if some d has Pd = 0, Gd ≤ 0, Ad = 0 and qᵀd < 0 [2].
Certificate: weak duality. For any λ ≥ 0, ν and x, with r = Px + q + Gᵀλ + Aᵀν, every feasible z has
½zᵀPz + qᵀz ≥ L(x, λ, ν) − ½ rᵀP⁺r if r is in the range of P; rounding outside of it is charged against points as far from
x as x is from zero. Nothing of it trusts the solver.

[1] Mehrotra, SIAM J. Optim. 2 (1992). [2] Eaves, Manag. Sci. 17 (1971).
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import nnls

from lemmata.core.certificate import TINY, Certificate, Check, gap, length
from lemmata.optimize.feasibility import FEASIBLE, RANK, InfeasibleError, feasible_point, row_lengths, solve_equations

INNER = 1e-12  # residuals and gap, in units of the problem, at which the interior point is good enough to be polished
SHY = 0.99  # share of the way to the boundary that a step goes
ROUNDS = 20  # guesses of which inequalities are held; after a good interior point the first or second is right
STEPS = 100  # Newton steps allowed; a solvable problem takes 10 to 30


class UnboundedError(ValueError):
    """The objective falls without limit along the attribute `direction`, which no constraint stops."""

    def __init__(self, direction):
        super().__init__("The objective has no lower bound: it falls forever along the attribute direction of this error.")
        self.direction = direction


@dataclass(frozen=True)
class QuadraticSolution:
    """The solution of a quadratic program.

    Parameters
    ----------
    x, value : The point and its objective.
    inequality, equality : The multipliers λ ≥ 0 of Gx ≤ h and ν of Ax = b.
    certificate : What `check_qp` says of them.
    """

    x: np.ndarray
    value: float
    inequality: np.ndarray
    equality: np.ndarray
    certificate: Certificate


def solve_qp(P, q, G=None, h=None, A=None, b=None):
    """Minimize ½xᵀPx + qᵀx subject to Gx ≤ h and Ax = b, and prove the result.

    Parameters
    ----------
    P : Positive semidefinite matrix, n × n; only its symmetric part counts. Zero makes it a linear program.
    q : Vector of n.
    G, h : Inequalities, m × n and m; none by default.
    A, b : Equations, p × n and p; none by default.

    Raises
    ------
    ValueError : P has a negative eigenvalue.
    InfeasibleError : No point satisfies the constraints; the error holds multipliers that prove it.
    UnboundedError : The objective has no lower bound; the error holds a direction along which it falls.

    Examples
    --------
    The point of least square with x ≥ 2: the constraint's price is 4.

    >>> solution = solve_qp([[2.0]], [0.0], G=[[-1.0]], h=[-2.0])
    >>> solution.x, solution.value, solution.inequality
    (array([2.]), 4.0, array([4.]))
    >>> solution.certificate.holds
    True
    >>> try:
    ...     solve_qp([[2.0]], [0.0], G=[[-1.0], [1.0]], h=[-2.0, 1.0])
    ... except InfeasibleError as error:
    ...     print(error.inequality)
    [1. 1.]
    """
    problem = P, q, G, h, A, b = _arrays(P, q, G, h, A, b)
    values = np.linalg.eigvalsh(P)
    if values[0] < -RANK * np.abs(values).max():
        raise ValueError(f"P must be positive semidefinite, but has the eigenvalue {values[0]:.6g}: the program is not convex.")
    feasible_point(G, h, A, b)
    x0, Z = solve_equations(A, b)
    moving = np.linalg.norm(G @ Z, axis=1) > RANK * row_lengths(G)  # the equations fix the others: their price is zero
    inequality, held = np.zeros(len(G)), np.zeros(len(G), dtype=bool)
    inside = _interior(Z.T @ P @ Z, Z.T @ (P @ x0 + q), (G @ Z)[moving], (h - G @ x0)[moving])
    y, inequality[moving], held[moving] = inside
    x = x0 + Z @ y
    candidates = [(x, inequality), *_polished(problem, held, x)]
    best = min((_solution(problem, *pair) for pair in candidates), key=_worst)
    if not best.certificate.holds:
        _refuse_unbounded(P, q, G, A)
        _warn_uncertified()
    return best


def check_qp(P, q, G, h, A, b, x, inequality, equality):
    """Check a solution of a quadratic program and its multipliers by weak duality; none of it trusts the solver.

    Examples
    --------
    >>> print(check_qp([[2.0]], [0.0], [[-1.0]], [-2.0], None, None, x=[2.0], inequality=[4.0], equality=[]))
    certificate holds (proof)
      check         value     limit  kind   claim
      feasible      0.0e+00 ≤ 1e-09  proof  no constraint is violated by more than this share of its terms
      multipliers   0.0e+00 ≤ 1e-09  proof  no multiplier of an inequality is negative
      stationarity  0.0e+00 ≤ 1e-09  proof  the Lagrangian does not fall along directions without curvature
      gap           0.0e+00 ≤ 1e-06  proof  no feasible point has a smaller objective by more than this share
    """
    P, q, G, h, A, b = _arrays(P, q, G, h, A, b)
    x, lam, nu = (np.asarray(v, dtype=float) for v in (x, inequality, equality))
    rows, bounds = np.vstack([G, A, -A]), np.concatenate([h, b, -b])
    terms = np.abs(rows) @ np.abs(x) + np.abs(bounds)
    violation = float(np.max((rows @ x - bounds) / np.maximum(terms, TINY), initial=0.0))
    negative = float(np.max(-lam, initial=0.0)) / max(float(np.abs(lam).max(initial=0.0)), TINY)
    lam = np.maximum(lam, 0.0)
    r = P @ x + q + G.T @ lam + A.T @ nu
    size = max(length(P @ x), length(q), length(G.T @ lam), length(A.T @ nu), TINY)
    values, vectors = np.linalg.eigh(P)
    curved = values > RANK * np.abs(values).max(initial=0.0)
    parts = vectors.T @ r
    quadratic, linear = float(x @ P @ x) / 2, float(q @ x)
    bound = quadratic + linear + float(lam @ (G @ x - h)) + float(nu @ (A @ x - b))
    bound -= float((parts[curved] ** 2 / values[curved]).sum()) / 2 + length(parts[~curved]) * length(x)
    flat = "the Lagrangian does not fall along directions without curvature"
    return Certificate(
        Check("feasible", violation, FEASIBLE, "proof", "no constraint is violated by more than this share of its terms"),
        Check("multipliers", negative, FEASIBLE, "proof", "no multiplier of an inequality is negative"),
        Check("stationarity", length(parts[~curved]) / size, FEASIBLE, "proof", flat),
        gap(
            quadratic + linear,
            bound,
            abs(quadratic) + abs(linear) + float(lam @ np.abs(h)) + float(np.abs(nu) @ np.abs(b)),
            "no feasible point has a smaller objective by more than this share",
        ),
    )


def _arrays(P, q, G, h, A, b):
    """Turn what users pass into matrices and vectors that fit together."""
    q = np.atleast_1d(np.asarray(q, dtype=float))
    n = len(q)
    P = np.asarray(P, dtype=float).reshape(n, n)
    G, A = (np.zeros((0, n)) if M is None else np.asarray(M, dtype=float).reshape(-1, n) for M in (G, A))
    h, b = (np.zeros(0) if v is None else np.atleast_1d(np.asarray(v, dtype=float)) for v in (h, b))
    if len(G) != len(h) or len(A) != len(b):
        raise ValueError(f"G and h must have as many rows, and A and b; got {len(G)} and {len(h)}, {len(A)} and {len(b)}.")
    if not all(np.isfinite(v).all() for v in (P, q, G, h, A, b)):
        raise ValueError("A quadratic program must be of finite numbers; leave a constraint without a bound out.")
    return (P + P.T) / 2, q, G, h, A, b


def _refuse_unbounded(P, q, G, A):
    """Raise an `UnboundedError` if the objective falls along a direction that nothing stops."""
    if not q.any():
        return
    equations = np.vstack([P, A, q[None] / length(q)])
    try:
        direction = feasible_point(G, np.zeros(len(G)), equations, np.append(np.zeros(len(equations) - 1), -1.0), slack=0.0)
    except InfeasibleError:
        return
    raise UnboundedError(direction / length(direction))


def _warn_uncertified():
    from sklearn.exceptions import ConvergenceWarning

    message = "The solution of this quadratic program is not certified: see its certificate, and scale the variables alike."
    warnings.warn(message, ConvergenceWarning, stacklevel=3)


def _interior(P, q, G, room):
    """Minimize ½yᵀPy + qᵀy subject to Gy ≤ room; return y, the multipliers, and which inequalities are held."""
    rows = np.vstack([P / max(np.abs(P).max(initial=0.0), TINY), G])
    _, values, V = np.linalg.svd(rows, full_matrices=False)
    basis = V[values > RANK * values.max(initial=0.0)].T  # nothing changes along the other directions
    P, q, G = basis.T @ P @ basis, basis.T @ q, G @ basis
    if not len(G):
        return basis @ np.linalg.solve(P, -q), np.zeros(0), np.zeros(0, dtype=bool)
    unit = row_lengths(G)
    size = float(np.abs(room / unit).max()) or 1.0
    weight = max(np.abs(P).max() * size**2, np.abs(q).max() * size, TINY)
    scaled = P * (size**2 / weight), q * (size / weight), G / unit[:, None], room / (unit * size)
    y, slack, multipliers = _central_path(*scaled)
    return basis @ y * size, multipliers * weight / (size * unit), multipliers > slack


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # where the objective has no bound, the numbers run away
def _central_path(P, q, G, h):
    """Follow the central path of a program in units of one; return y, the slack h − Gy and the multipliers, both positive."""
    y = np.linalg.solve(P + G.T @ G, G.T @ h - q)
    slack = h - G @ y
    s, lam = (v if v.min() > 0 else v - v.min() + 1 for v in (slack, -slack))
    best, least = (y, s, lam), np.inf
    for _ in range(STEPS):
        dual, primal, mu = P @ y + q + G.T @ lam, G @ y + s - h, float(s @ lam) / len(h)
        residual = max(length(dual) / (1 + length(lam)), length(primal) / (1 + length(y)), mu / (1 + length(lam)))
        if residual < least:
            best, least = (y, s, lam), residual
        if residual <= INNER:
            break
        try:
            dy, ds, dlam = _direction(P, G, dual, primal, s, lam, mu)
        except (np.linalg.LinAlgError, ValueError):  # the digits are used up
            break
        reach = min(SHY * _reach(s, ds), SHY * _reach(lam, dlam), 1.0)
        y, s, lam = y + reach * dy, s + reach * ds, lam + reach * dlam
    return best


def _direction(P, G, dual, primal, s, lam, mu):
    """Return the Newton direction towards the central path, as far along it as the step to its end would have come."""
    factor = cho_factor(P + (G.T * (lam / s)) @ G)

    def move(complement):
        dy = cho_solve(factor, -dual - G.T @ ((lam * primal - complement) / s))
        ds = -primal - G @ dy
        return dy, ds, (-complement - lam * ds) / s

    _, ds, dlam = move(s * lam)
    reach = min(_reach(s, ds), _reach(lam, dlam), 1.0)
    ahead = float((s + reach * ds) @ (lam + reach * dlam)) / float(s @ lam)
    return move(s * lam + ds * dlam - ahead**3 * mu)  # the cube of Mehrotra's rule


def _reach(v, move):
    """Return how far a positive vector can go along a move before an entry is zero."""
    falling = move < 0
    return float(np.min(-v[falling] / move[falling], initial=np.inf))


def _polished(problem, held, x):
    """Solve with the held inequalities as equations, near x; give each point with the multipliers that fit it best.

    What is held is a guess; a constraint that the point violates is held in the next round, one without a price is let go.
    """
    P, q, G, h, A, b = problem
    free, tried = solve_equations(A, b)[1], set()
    while held.tobytes() not in tried and len(tried) < ROUNDS:
        tried.add(held.tobytes())
        try:
            start, Z = solve_equations(np.vstack([A, G[held]]), np.append(b, h[held]))
        except InfeasibleError:
            return
        start = start + Z @ (Z.T @ (x - start))
        point = start + Z @ np.linalg.lstsq(Z.T @ P @ Z, -Z.T @ (P @ start + q), rcond=RANK)[0]
        inequality = np.zeros(len(h))
        if held.any() and free.size:
            inequality[held] = nnls(free.T @ G[held].T, -free.T @ (P @ point + q))[0]
        yield point, inequality
        held = (inequality > 0) | (G @ point - h > FEASIBLE * (np.abs(G) @ np.abs(point) + np.abs(h)))


def _solution(problem, x, inequality):
    """Add the multipliers of the equations that fit best, and the certificate."""
    P, q, G, _, A, _ = problem
    rest = -(P @ x + q + G.T @ inequality)
    equality = np.linalg.lstsq(A.T, rest, rcond=RANK)[0] if len(A) else np.zeros(0)
    value = float(x @ P @ x / 2 + q @ x)
    return QuadraticSolution(x, value, inequality, equality, check_qp(*problem, x, inequality, equality))


def _worst(solution):
    """Return the largest value of a check, in units of its limit."""
    return max(abs(check.value) / check.limit for check in solution.certificate)
