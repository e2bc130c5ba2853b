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
    """A problem in the directions in which its columns vary: minimize ‖rows u − target‖² + ρ‖size u‖²."""

    rows: np.ndarray
    target: np.ndarray  # (…, t)
    rest: float  # squared length of the targets that no direction reaches
    along: np.ndarray  # (d, rank): w = along u, and ‖w‖ = ‖size u‖
    size: np.ndarray  # (rank,)

    def triangle(self, penalty):
        """Return the R of a QR factorization of [rows target] above [√ρ size, 0]."""
        below = np.hstack([np.diag(np.sqrt(penalty) * self.size), np.zeros((len(self.size), self.target.shape[1]))])
        return np.linalg.qr(np.vstack([np.hstack([self.rows, self.target]), below]), mode="r")

    def gradient(self, u, penalty):
        """Return half the descent direction of the objective: zero at its minimum."""
        return self.rows.T @ (self.target - self.rows @ u) - penalty * self.size[:, None] * (self.size[:, None] * u)


def coordinates(problem):
    """Take a problem to its coordinates: the columns in their units if all count, else orthonormal directions."""
    A, C = problem.centered
    unit, found = problem.shift.unit, ls.directions(problem, A)
    if found.rank == len(unit):  # columns of very different sizes stay apart, and keep all their digits
        return Coordinates(A, C, 0.0, np.diag(1 / unit), 1 / unit)
    along, target = found.row_space(), found.U.T @ C
    rows = (found.values[:, None] * (found.V * found.size * unit)) @ along
    return Coordinates(rows, target, float(((C - found.U @ target) ** 2).sum()), along, np.ones(found.rank))


def solved(problem, precision, noise):
    """Find the posterior of a `least_squares.Problem` of one target.

    Directions in which the columns do not vary keep their prior exactly.
    """
    small, penalty = coordinates(problem), precision * noise
    R, rank = small.triangle(penalty), len(small.size)
    T = R[:rank, :rank]
    u, half = backward(T, R[:rank, rank:]), backward(T, np.eye(rank))
    u += half @ (half.T @ small.gradient(u, penalty))  # where the prior outweighs the rows, QR left the rounding of the targets
    coef = small.along @ u[:, 0]
    across = np.linalg.qr(small.along, mode="complete")[0][:, rank:]
    root = lower(np.hstack([small.along @ (np.sqrt(noise) * half), across / np.sqrt(precision)]))
    # −2 ln p = N ln 2πσ² + min (‖Aw − c‖² + ρ‖w‖²)/σ² + ln |I + AᵀA/ρ| (+ ln S)
    deviance = (problem.weight - problem.intercept) * np.log(2 * np.pi * noise)
    deviance += ((R[rank:, rank] ** 2).sum() + small.rest) / noise
    deviance += 2 * np.log(np.abs(np.diag(T)) / (np.sqrt(penalty) * small.size)).sum()
    intercept = 0.0
    if problem.intercept:
        intercept = problem.mean[1][0] - problem.mean[0] @ coef
        deviance += np.log(problem.weight)
    return Posterior(coef, float(intercept), root, problem.mean[0], problem.weight, float(-deviance / 2))


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
    small, w = coordinates(problem), scaled / problem.shift.unit[:, None]
    rank = len(small.size)
    u = small.along.T @ w / small.size[:, None] ** 2
    half = backward(small.triangle(penalty)[:rank, :rank], np.eye(rank))
    return ((half.T @ small.gradient(u, penalty)) ** 2).sum(axis=0) + penalty * ((w - small.along @ u) ** 2).sum(axis=0)


def log_evidence(problem, precision, noise):
    """Recompute the log evidence from singular values, and how far rounding may put it off."""
    small, penalty = coordinates(problem), precision * noise
    root = np.sqrt(penalty) * small.size
    rows = np.vstack([small.rows, np.diag(root)])
    target = np.append(small.target[:, 0], np.zeros(len(root)))
    size = np.sqrt((rows**2).sum(axis=0))
    U, values, _ = np.linalg.svd(rows / size, full_matrices=False)
    rest = target - U @ (U.T @ target)
    terms = [
        (problem.weight - problem.intercept) * np.log(2 * np.pi * noise),
        (rest @ rest + small.rest) / noise,
        2 * (np.log(values).sum() + np.log(size / root).sum()),
        np.log(problem.weight) if problem.intercept else 0.0,
    ]
    unsure = np.sqrt(ls.EPS) * np.abs(terms).sum() + ls.ROUNDING**2 * (target @ target) / noise / SAME_LIMIT
    return -sum(terms) / 2, unsure


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
