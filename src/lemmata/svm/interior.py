"""An interior-point method for the dual of a support vector machine, for problems on which steps on pairs crawl.

Where columns have very different scales and the price C is high, the objective is a long, narrow valley, and coordinate methods
take millions of steps along it. Newton's method on the perturbed conditions of optimality, a·z = μ and (cap − a)·w = μ for the
multipliers z, w ≥ 0 of the bounds, with μ → 0, takes some tens whatever the scales are [1]. For the change c of s·a and β of
the bias each step solves (K + D)c + β = r, Σ c = t with a diagonal D > 0: by a Cholesky factor of K + D, or, where K = ZZᵀ has
few columns, as least squares: y = Zᵀc and β minimize Σ (rᵢ − zᵢ·y − β)²/Dᵢ + ‖y‖² + 2tβ, in time linear in the rows [2].
What is far inside the bounds at the end is free; `polish` does the rest.

[1] Mehrotra, SIAM J. Optim. 2 (1992). [2] Ferris & Munson, SIAM J. Optim. 13 (2002).
"""

import numpy as np
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpotrf, dpotrs

from lemmata.core.threads import serial_blas

STEPS = 80  # of Newton's method; 15 to 40 are usual
SHY = 0.995  # share of the way to the nearest bound that a step goes
CLOSED = 1e-11  # of the objective: the gap at which the method stops; rounding would spoil what it might still gain
FLAT = 1e-7  # the same for the gradient of the Lagrangian
NEGLIGIBLE = 1e-7  # of its multiplier's scale: a variable this near to a bound is there


class Whole:
    """A kernel matrix that is given; in units in which its mean diagonal is one."""

    def __init__(self, K):
        self.unit = max(float(np.trace(K)) / len(K), 1e-300)
        self.K = K / self.unit

    def times(self, c):
        """Return K c."""
        return self.K @ c

    def factored(self, D):
        """Return a function of r and t that solves (K + D)c + β = r, Σ c = t; None where K is no kernel matrix."""
        shifted = self.K.copy()
        shifted[np.diag_indices(len(D))] += D
        factor, failed = dpotrf(shifted, lower=1, overwrite_a=1)
        if failed:
            return None
        through = dpotrs(factor, np.ones(len(D)), lower=1)[0]

        def solve(r, t):
            part = dpotrs(factor, r, lower=1)[0]
            beta = (part.sum() - t) / through.sum()
            return part - beta * through, beta

        return solve


class Thin:
    """The kernel matrix ZZᵀ of rows with few columns; in units in which its mean diagonal is one."""

    def __init__(self, Z):
        self.unit = max(float(np.einsum("ij,ij->", Z, Z)) / len(Z), 1e-300)
        self.Z = Z / np.sqrt(self.unit)

    def times(self, c):
        """Return ZZᵀc."""
        return self.Z @ (self.Z.T @ c)

    def factored(self, D):
        """Return a function of r and t that solves (ZZᵀ + D)c + β = r, Σ c = t; heavy equations go first, to keep digits."""
        n, d = self.Z.shape
        order, weight = np.argsort(D, kind="stable"), 1 / np.sqrt(D)
        rows = np.zeros((n + d, d + 1))
        rows[:n, :d], rows[:n, d], rows[n:, :d] = (weight[:, None] * self.Z)[order], weight[order], np.eye(d)
        Q, R = qr(rows, mode="economic", overwrite_a=True, check_finite=False)
        Q = Q[:n]
        last = np.zeros(d + 1)
        last[d] = 1.0
        last = solve_triangular(R, last, trans="T", check_finite=False)

        def solve(r, t):
            y = solve_triangular(R, Q.T @ (weight * r)[order] - t * last, check_finite=False)
            return (r - self.Z @ y[:d] - y[d]) / D, y[d]

        return solve


def interior_point(matrix, sign, linear, cap, total=0.0):
    """Find a point near the optimum of min ½(s·a)ᵀK(s·a) + pᵀa subject to Σ sₜaₜ = total and 0 ≤ a ≤ cap.

    Parameters
    ----------
    matrix : K, as `Whole` or `Thin`.
    sign, linear, cap : s, p and the upper bounds, which may be infinite.

    Returns
    -------
    a : The point, with variables at their bounds where they tend there.

    Examples
    --------
    >>> x, y = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> interior_point(Thin(x), y, -np.ones(4), np.full(4, 0.25)).round(4)
    array([0.  , 0.25, 0.25, 0.  ])
    """
    cap, total = cap * matrix.unit, total * matrix.unit  # a is measured in 1/unit
    bounded = np.isfinite(cap)
    a = np.where(bounded, np.minimum(cap / 2, 1.0), 1.0)
    z, w, bias = np.ones(len(a)), np.where(bounded, 1.0, 0.0), 0.0
    room = np.where(bounded, cap - a, 1.0)  # kept apart, or rounding makes it 0; w and all that it divides is 0 without a bound
    count = len(a) + bounded.sum()
    with serial_blas():
        for _ in range(STEPS):
            slope = sign * matrix.times(sign * a) + linear
            dual, mu = slope + sign * bias - z + w, float(z @ a + w @ room) / count
            value = abs(float(a @ (slope + linear))) / 2 + abs(float(linear @ a))
            if mu * count <= CLOSED * value and np.abs(dual).max() <= FLAT * np.abs(linear).max():
                break
            solve = matrix.factored(z / a + w / room)
            if solve is None:
                break

            def step(lower, upper, a=a, z=z, w=w, room=room, dual=dual, solve=solve):
                """Give the step for these changes of a·z and (cap − a)·w."""
                c, beta = solve(sign * (-dual + lower / a - upper / room), total - float(sign @ a))
                return sign * c, (lower - z * sign * c) / a, (upper + w * sign * c) / room, beta

            da, dz, dw, _ = step(-z * a, -w * room)
            far = _reach((a, da), (z, dz), (room[bounded], -da[bounded]), (w[bounded], dw[bounded]))
            ahead = float((z + far * dz) @ (a + far * da) + (w + far * dw) @ (room - far * da)) / count
            aim = mu * (ahead / mu) ** 3
            da, dz, dw, beta = step(aim - z * a - da * dz, np.where(bounded, aim - w * room + da * dw, 0.0))
            if not np.isfinite(da).all():
                break
            size = SHY * _reach((a, da), (z, dz), (room[bounded], -da[bounded]), (w[bounded], dw[bounded]))
            a, z, w, bias = a + size * da, z + size * dz, w + size * dw, bias + size * beta
            room = np.where(bounded, room - size * da, 1.0)
    at_cap = bounded & (room < NEGLIGIBLE * cap) & (room < w)
    return np.where(at_cap, cap, np.where((a < NEGLIGIBLE * a.max()) & (a < z), 0.0, a)) / matrix.unit


def _reach(*ways):
    """Return how much of a step, at most all of it, keeps every x + step positive."""
    return min(1.0, *(float(np.min(-x[d < 0] / d[d < 0], initial=np.inf)) for x, d in ways))
