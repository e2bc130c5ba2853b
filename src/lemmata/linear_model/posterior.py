"""The normal posterior of a linear model, found at once or row by row.

With A and c the centered columns and targets, S = Σs the number of rows and ρ = λσ², the posterior of w is N(m, Σ) with
m = (AᵀA + ρI)⁻¹Aᵀc and Σ = σ²(AᵀA + ρI)⁻¹, and b = ȳ − x̄·w up to an independent error of variance σ²/S [1]. Σ is kept as a
triangle L with LLᵀ = Σ, from one QR factorization of A above √ρ I: no variance becomes a difference of large numbers, and
none is negative. With w = m + Lu, u ~ N(0, I), more rows are again a problem of this kind, with (x − x̄)L in place of x, the
residual in place of y, and the center as S rows seen before: learning them costs a pass over them alone.

[1] Lindley & Smith, J. R. Statist. Soc. B 34 (1972).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from lemmata.core.certificate import SABOTAGE, SAME_LIMIT, Check, equi, length
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model.base import predict_block


class Posterior(NamedTuple):
    """What the rows have taught of the coefficients and the intercept, under given λ and σ²."""

    coef: np.ndarray  # (d,) mean m
    intercept: float  # mean
    root: np.ndarray  # (d, d) lower triangle L, LLᵀ the covariance of w
    center: np.ndarray  # (d,) mean of the rows; zero without an intercept
    weight: float  # S
    log_evidence: float


class Coordinates(NamedTuple):
    """A problem in the directions in which its columns vary: minimize ‖rows u − target‖² + ‖penalty u‖²."""

    rows: np.ndarray
    target: np.ndarray
    penalty: np.ndarray
    rest: float  # squared length of the targets that no direction reaches
    along: np.ndarray | None  # (d, rank) orthonormal: w = along u. None if all directions vary, and u is w in its units

    def triangle(self):
        """Return the R of a QR factorization of [rows target] above [penalty 0]."""
        below = np.hstack([np.diag(self.penalty), np.zeros((len(self.penalty), self.target.shape[1]))])
        return np.linalg.qr(np.vstack([np.hstack([self.rows, self.target]), below]), mode="r")


def coordinates(problem, penalty):
    """Take a problem, under a penalty in raw units, to its coordinates."""
    A, C = problem.centered
    unit, found = problem.shift.unit, ls.directions(problem, A)
    if found.rank == len(unit):  # as they are, so that columns of different sizes stay apart
        return Coordinates(A, C, np.sqrt(penalty) / unit, 0.0, None)
    along, target = found.row_space(), found.U.T @ C
    rows = (found.values[:, None] * (found.V * found.size * unit)) @ along
    rest = float(((C - found.U @ target) ** 2).sum())
    return Coordinates(rows, target, np.full(found.rank, np.sqrt(penalty)), rest, along)


def solved(problem, precision, noise):
    """Find the posterior of a `least_squares.Problem` of one target.

    Directions in which the columns do not vary keep their prior exactly.
    """
    small, unit = coordinates(problem, precision * noise), problem.shift.unit
    R, d = small.triangle(), len(small.penalty)
    T = R[:d, :d]
    u, half = backward(T, R[:d, d]), np.sqrt(noise) * backward(T, np.eye(d))
    if small.along is None:
        coef, half = u / unit, half / unit[:, None]
    else:
        across = np.linalg.qr(small.along, mode="complete")[0][:, d:]
        coef, half = small.along @ u, np.hstack([small.along @ half, across / np.sqrt(precision)])
    # −2 ln p = N ln 2πσ² + min (‖Aw − c‖² + ρ‖w‖²)/σ² + ln |I + AᵀA/ρ| (+ ln S)
    deviance = (problem.weight - problem.intercept) * np.log(2 * np.pi * noise)
    deviance += ((R[d:, d] ** 2).sum() + small.rest) / noise + 2 * np.log(np.abs(np.diag(T)) / small.penalty).sum()
    intercept = 0.0
    if problem.intercept:
        intercept = problem.mean[1][0] - problem.mean[0] @ coef
        deviance += np.log(problem.weight)
    return Posterior(coef, float(intercept), lower(half), problem.mean[0], problem.weight, float(-deviance / 2))


def backward(T, B):
    """Solve T X = B for an upper triangle, whatever the sizes of its columns."""
    size = np.sqrt((T**2).sum(axis=0))
    return (solve_triangular(T / size, B).T / size).T if len(T) else B


def lower(half):
    """Return the lower triangle L of positive diagonal with LLᵀ = half halfᵀ."""
    R = np.linalg.qr(half.T, mode="r")
    return R.T * np.where(np.diag(R) < 0, -1.0, 1.0)


def whitened_block(X, weight, center, root):
    """Rows (x − x̄)L: coordinates in which the posterior of the coefficients is standard normal."""
    return (ls.dense(X) - center) @ root


def predictive_block(X, weight, coef, intercept, center, root):
    """Means of the predictions of a block, and the variance that the coefficients leave in them."""
    return predict_block(X, weight, coef, intercept), (whitened_block(X, weight, center, root) ** 2).sum(axis=1)


def news_block(X, y, weight, known, intercept):
    """Total weight, total of x − x̄, and the triangle of the rows √s (1, (x − x̄)L, residual)."""
    offset = ls.dense(X) - known.center
    residual = np.asarray(y, dtype=float) - predict_block(X, weight, known.coef, known.intercept)
    Z = np.column_stack([np.ones((len(offset), int(intercept))), offset @ known.root, residual])
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    total = offset.sum(axis=0) if weight is None else weight @ offset
    return ls.total_weight(X, weight), total, ls.Factor(ls.triangle(Z))


def learned(known, news, noise, intercept):
    """Update a posterior by the summed statistics of `news_block`."""
    weight, total, factor = news
    i, d, sigma = int(intercept), len(known.coef), np.sqrt(noise)
    before = np.diag(np.append(np.full(i, np.sqrt(known.weight)), np.full(d, sigma)))
    R = np.linalg.qr(np.vstack([np.pad(before, ((0, 0), (0, 1))), factor.rows]), mode="r")
    T = R[i : i + d, i : i + d]
    u = backward(T, R[i : i + d, -1])
    step, root = known.root @ u, lower(known.root @ (sigma * backward(T, np.eye(d))))
    deviance = weight * np.log(2 * np.pi * noise) + (R[i + d :, -1] ** 2).sum() / noise
    deviance += 2 * np.log(np.abs(np.diag(T)) / sigma).sum()
    b, center = known.intercept, known.center
    if intercept:
        deviance += np.log1p(weight / known.weight)
        b = b + (R[0, -1] - R[0, 1 : 1 + d] @ u) / R[0, 0] - center @ step
        center = center + total / (known.weight + weight)
    log_evidence = float(known.log_evidence - deviance / 2)
    return Posterior(known.coef + step, float(b), root, center, known.weight + weight, log_evidence)


def most_informative(F, n):
    """Choose n rows in turn, each the longest once the others are known; v/σ² of a row is its squared length."""
    F, chosen = F.copy(), []
    for _ in range(n):
        v = (F**2).sum(axis=1)
        v[chosen] = -1.0
        chosen.append(int(np.argmax(v)))
        f, v = F[chosen[-1]].copy(), v[chosen[-1]]
        if v > 0:  # F (I + ffᵀ)^(−½): the same rows under the posterior that knows of this one
            F -= np.outer(F @ f, f) * ((1 - 1 / np.sqrt(1 + v)) / v)
    return np.array(chosen)


def excess(problem, scaled, penalty):
    """Return by how much the penalized error of coefficients exceeds the least, for each target.

    It is gᵀ(AᵀA + ρI)⁻¹g, g the gradient: exact, since the error is quadratic.
    """
    small = coordinates(problem, penalty)
    d, u, across = len(small.penalty), scaled, 0.0
    if small.along is not None:
        w = scaled / problem.shift.unit[:, None]
        u = small.along.T @ w
        across = penalty * ((w - small.along @ u) ** 2).sum(axis=0)
    gradient = small.rows.T @ (small.target - small.rows @ u) - small.penalty[:, None] ** 2 * u
    half = backward(small.triangle()[:d, :d], np.eye(d))
    return ((half.T @ gradient) ** 2).sum(axis=0) + across


def covariance_checks(problem, root, precision, noise):
    """Check that LᵀΣ⁻¹L is the identity: its distance bounds the relative error of every variance xᵀΣx."""
    A, unit = problem.centered[0], problem.shift.unit[:, None]

    def residual(root):
        informed, own = A @ (unit * root) / np.sqrt(noise), np.sqrt(precision) * root
        return informed.T @ informed + own.T @ own - np.eye(len(root))

    yield equi(residual, root, "root", "it is a root of the covariance (AᵀA/σ² + λI)⁻¹", kind="proof")
    off = float(np.linalg.norm(residual(root), 2))
    size = length(ls.raw_lengths(problem) * unit[:, 0]) * length(root) / np.sqrt(noise)  # of what cancels in A L/σ
    rounding = ls.ROUNDING * np.sqrt(len(root)) * size
    if rounding < SABOTAGE:  # else the digits of the data end before those of the prior
        claim = "no variance, of a coefficient or a prediction, is off by more than this share"
        yield Check("covariance", off, max(SAME_LIMIT, rounding), "proof", claim)
