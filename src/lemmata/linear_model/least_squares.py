"""Least squares from one triangular factor.

Minimize Σᵢ sᵢ (yᵢ − xᵢ·w − b)² + α‖w‖². Write Z for the rows √sᵢ (1, xᵢ − m, yᵢ − m_y), m a shift near the mean. All that
matters of Z is the triangle R with RᵀR = ZᵀZ: below its first row stand the centered columns A and targets C, and w solves
the small problem min ‖A w − C‖² + α‖w‖² [1]. R comes by one of two routes:

- the Cholesky factor of ZᵀZ, a sum over blocks: cheap, but it squares the condition number κ of A. It is taken only where
  κ² times the rounding stays below 1e-8. Unless it is below 1e-12, and the residual no small difference of large sums, one
  step of refinement with the true residual squares that error again;
- the R of a Householder QR of each block; two R are added by stacking and factoring again: always safe. Where the
  problem's own condition number κ + κ² ‖r‖/‖y‖ exceeds 10⁴, one refinement step follows, with residual and gradient in
  double-double arithmetic on the raw data: the digits that are left are those of the data [2].

A column, or a direction, whose size is below the rounding of the data does not count as present: the rank drops, and among
the solutions that remain the one of least norm is taken.

[1] Golub & Van Loan, Matrix Computations, ch. 5. [2] Demmel et al., ACM Trans. Math. Softw. 35 (2009).
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, lapack, solve_triangular

from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas

EPS = np.finfo(float).eps
ROUNDING = 64 * EPS  # of a computed factor, relative: a few dozen operations deep in blocks and tree
CHEAP = 1e-8  # largest error of the cheap route before its refinement, which squares it
NEGLIGIBLE = 1e-12  # an error that needs no refinement
CLEAR = 1e-3  # share of the sum of squares that a residual must be to come from the Gram matrix with that precision
HARD = 1e4  # condition number of the problem above which the digits it eats are worth another pass


@dataclass(frozen=True)
class Factor:
    """A triangle that stands for the rows it was computed from; adding two factors stacks their rows."""

    rows: np.ndarray

    def __add__(self, other):
        """Factor the rows of both."""
        return Factor(triangle(np.vstack([self.rows, other.rows])))


@dataclass(frozen=True)
class Pair:
    """A sum kept as high + low parts: about 32 digits."""

    high: np.ndarray
    low: np.ndarray

    def __add__(self, other):
        """Add without losing the low part."""
        high, low = two_sum(self.high, other.high)
        return Pair(high, low + self.low + other.low)


class Shift(NamedTuple):
    """What is subtracted from columns and targets before anything is squared, and the unit of the columns."""

    x: np.ndarray  # (d,)
    y: np.ndarray  # (t,)
    unit: np.ndarray  # (d,) powers of two: 1 unless a column is very large or very small


class Problem(NamedTuple):
    """All that the data say: total weight, the triangle of Z, and where it is centered."""

    weight: float
    rows: np.ndarray  # RᵀR = ZᵀZ
    shift: Shift
    intercept: bool
    error: float = 0.0  # relative, of the solution, if R came by the Gram matrix

    @property
    def centered(self):
        """Split R into A and C, below the row that belongs to the intercept."""
        i, d = int(self.intercept), len(self.shift.x)
        return self.rows[i:, i : i + d], self.rows[i:, i + d :]

    @property
    def mean(self):
        """The means of columns and targets; zero without an intercept."""
        if not self.intercept:
            return self.shift.x, self.shift.y
        d = len(self.shift.x)
        rest = self.rows[0, 1:] / self.rows[0, 0]
        return self.shift.x + rest[:d] * self.shift.unit, self.shift.y + rest[d:]


class Solution(NamedTuple):
    """The solution of a problem, and the half inverse H with H Hᵀ = (AᵀA + αI)⁺; both in the units of the problem."""

    scaled: np.ndarray  # (d, t)
    intercept: np.ndarray  # (t,)
    rss: np.ndarray  # (t,) residual sum of squares plus penalty
    half: np.ndarray  # (d, rank)
    condition: float

    @property
    def rank(self):
        """How many directions of the columns count as present."""
        return self.half.shape[1]


def two_sum(a, b):
    """Return the rounded sum and its error, exactly."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a, b):
    """Return the rounded product and its error, exactly (Dekker's splitting; no overflow below 1e150)."""
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return p, a_low * b_low - (((p - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _split(a):
    t = 134217729.0 * a  # 2²⁷ + 1 halves the 53 bits
    high = t - (t - a)
    return high, a - high


def triangle(Z):
    """Return the R of a QR factorization; a matrix with fewer rows than columns stands for itself."""
    return Z if Z.shape[0] <= Z.shape[1] else np.linalg.qr(Z, mode="r")


def dense(X):
    """Return a block as a float64 array."""
    return X.toarray().astype(float, copy=False) if is_sparse(X) else X.astype(float, copy=False)


def columns(y):
    """Return targets as float64 columns."""
    y = np.asarray(y, dtype=float)
    return y[:, None] if y.ndim == 1 else y


def design(X, y, weight, shift, intercept):
    """Make the rows √s (1, x − m, y − m_y) of a block."""
    i, d, t = int(intercept), X.shape[1], len(shift.y)
    Z = np.empty((X.shape[0], i + d + t))
    Z[:, :i] = 1.0
    np.subtract(dense(X), shift.x, out=Z[:, i : i + d])
    if (shift.unit != 1).any():
        Z[:, i : i + d] /= shift.unit
    np.subtract(columns(y), shift.y, out=Z[:, i + d :])
    if weight is not None:
        Z *= np.sqrt(weight)[:, None]
    return Z


def gram_block(X, y, weight, shift, intercept):
    """Sum of weights, and ZᵀZ."""
    Z = design(X, y, weight, shift, intercept)
    return total_weight(X, weight), Z.T @ Z


def factor_block(X, y, weight, shift, intercept):
    """Sum of weights, and the triangle of Z."""
    return total_weight(X, weight), Factor(triangle(design(X, y, weight, shift, intercept)))


def gradient_block(X, y, weight, shift, scaled, intercept):
    """Residuals r of a solution: their total, their products with the columns of Z, and their sum of squares."""
    Z = design(X, y, None, shift, False)
    Z, r = Z[:, : len(shift.x)], Z[:, len(shift.x) :]
    r -= Z @ scaled + (intercept - shift.y + (shift.x / shift.unit) @ scaled)
    s = r if weight is None else weight[:, None] * r
    return s.sum(axis=0), Z.T @ s, (s * r).sum(axis=0)


def exact_gradient_block(X, y, weight, coef, intercept):
    """As `gradient_block` for one target, on the raw columns and in double-double arithmetic (totals go first)."""
    X, high, low = dense(X), np.array(columns(y)[:, 0]), np.zeros(X.shape[0])
    high, low = two_sum(high, -intercept)
    for j in range(X.shape[1]):
        p, e = two_product(X[:, j], -coef[j])
        high, t = two_sum(high, p)
        low += e + t
    high, low = two_sum(high, low)
    r = high
    if weight is not None:
        high, e = two_product(high, weight)
        low = low * weight + e
    g, e = two_product(np.column_stack([np.ones(len(X)), X]), high[:, None])
    return pair_sum(g, e + np.column_stack([low, X * low[:, None]])), high @ r


def pair_sum(high, low):
    """Sum the rows of high + low as a Pair, by halving."""
    low = low.sum(axis=0)
    while len(high) > 1:
        half = len(high) // 2
        s, e = two_sum(high[:half], high[half : 2 * half])
        high, low = np.concatenate([s, high[2 * half :]]), low + e.sum(axis=0)
    return Pair(high[0], low)


def total_weight(X, weight):
    """Rows count once, or as often as their weight says."""
    return float(X.shape[0]) if weight is None else float(weight.sum())


def draw_shift(blocks, intercept):
    """Take the means of the first block: near the mean is enough, and every home of the data has the same first block."""
    X, y, weight = blocks.first()
    X, y = dense(X), columns(y)
    mean_x, mean_y = np.zeros(X.shape[1]), np.zeros(y.shape[1])
    if intercept:
        mean_x, mean_y = np.average(X, axis=0, weights=weight), np.average(y, axis=0, weights=weight)
    extent = np.abs(X - mean_x).max(axis=0, initial=0.0)
    extreme = (extent > 0) & ((extent > 1e8) | (extent < 1e-8))
    unit = np.where(extreme, 2.0 ** np.floor(np.log2(np.where(extreme, extent, 1.0))), 1.0)
    return Shift(mean_x, mean_y, unit)


def compress(blocks, intercept, alpha=0.0):
    """Reduce the data to a `Problem`, by the cheap route where it is proved good for this penalty, else by QR."""
    shift = draw_shift(blocks, intercept)
    if blocks.n_blocks > 1 and blocks.n_rows > int(intercept) + len(shift.x) + len(shift.y):  # one block: nothing to save
        weight, gram = blocks.reduce(gram_block, shift, intercept)
        rows, error = root(gram, intercept, alpha / shift.unit / shift.unit)
        if error <= CHEAP:
            return Problem(weight, rows, shift, intercept, error)
    return factored(blocks, shift, intercept)


def factored(blocks, shift, intercept):
    """Reduce the data to a `Problem` by QR."""
    weight, factor = blocks.reduce(factor_block, shift, intercept)
    with serial_blas():
        return Problem(weight, np.linalg.qr(factor.rows, mode="r"), shift, intercept)


def root(gram, intercept, penalty):
    """Return the Cholesky factor of ZᵀZ, and the relative error that rounding may leave in a solution with this penalty."""
    i, d = int(intercept), len(penalty)
    size = np.sqrt(np.diag(gram))
    if not size[: i + d].all():
        return None, np.inf
    size[size == 0] = 1.0  # a target that is zero throughout
    scaled = gram / size / size[:, None]
    penalty = np.concatenate([np.zeros(i), penalty / size[i : i + d] ** 2])
    with serial_blas():
        rows = cholesky_or_none(scaled[: i + d, : i + d] + np.diag(penalty))
        if rows is None:
            return None, np.inf
        kept = np.sqrt((rows[i:, i:] ** 2).sum(axis=0))  # 1 unless the shift was far from the mean
        error = condition(rows[i:, i:] / kept) ** 2 * ROUNDING / kept.min() ** 2
        return (_finish_root(scaled, i + d) * size if error <= CHEAP else None), float(error)


def _finish_root(scaled, d):
    """Complete the factor over the targets, whose own pivots may vanish (a perfect fit)."""
    A = cholesky_or_none(scaled[:d, :d])
    if A is None:  # only the penalty made it definite: its eigenvectors give a root as well
        values, vectors = np.linalg.eigh(scaled[:d, :d])
        A = np.linalg.qr(np.sqrt(np.maximum(values, 0))[:, None] * vectors.T, mode="r")
        C = np.linalg.lstsq(A.T, scaled[:d, d:], rcond=ROUNDING)[0]
    else:
        C = solve_triangular(A, scaled[:d, d:], trans=1)
    rest = np.sqrt(np.maximum(np.diag(scaled[d:, d:]) - (C**2).sum(axis=0), 0))
    return np.block([[A, C], [np.zeros((len(rest), d)), np.diag(rest)]])


def cholesky_or_none(matrix):
    """Return the upper Cholesky factor of a matrix, or None if it is not positive definite."""
    try:
        return cholesky(matrix, check_finite=False)
    except np.linalg.LinAlgError:
        return None


def condition(R):
    """Estimate the condition number of a triangle, in the 1-norm."""
    reciprocal, _ = lapack.dtrcon(R, norm="1", uplo="U")
    return np.inf if reciprocal == 0 or np.isnan(reciprocal) else 1 / reciprocal


class Directions(NamedTuple):
    """The directions of the columns that count as present: A ≈ U diag(σ) V diag(size), column sizes taken out first."""

    U: np.ndarray  # (m, rank)
    values: np.ndarray  # (rank,)
    V: np.ndarray  # (rank, d)
    size: np.ndarray  # (d,) zero for a column that is not present
    unit: np.ndarray  # (d,)

    @property
    def rank(self):
        """How many directions there are."""
        return len(self.values)

    def row_space(self):
        """Return an orthonormal basis (d, rank) of the row space in the raw units, in which "least norm" is meant."""
        return np.linalg.qr((self.V * self.size * (self.unit / self.unit.max(initial=0.0))).T)[0]

    def half(self):
        """Return H with H Uᵀ the pseudo-inverse of A: the solution of least norm in the raw units."""
        if self.rank == len(self.size):
            return self.V.T / self.size[:, None] / self.values
        relative = self.unit / self.unit.max(initial=0.0)
        Q, T = np.linalg.qr((self.V * self.size * relative).T)
        return Q @ solve_triangular(T, np.diag(1 / self.values), trans=1) * relative[:, None]


def directions(problem, A):
    """Find the rank of the centered columns A, and the directions present.

    What counts as present must exceed the rounding of the data themselves, means included.
    """
    raw, size = raw_lengths(problem), np.sqrt((A**2).sum(axis=0))
    present = size > ROUNDING * raw
    loss = (raw[present] / size[present]).max(initial=1.0)
    U, values, Vt = np.linalg.svd(A[:, present] / size[present], full_matrices=False)
    keep = values > ROUNDING * loss * np.sqrt(len(size)) * values[:1].max(initial=0.0)
    V = np.zeros((keep.sum(), A.shape[1]))
    V[:, present] = Vt[keep]
    return Directions(U[:, keep], values[keep], V, np.where(present, size, 0.0), problem.shift.unit)


def raw_lengths(problem):
    """Lengths of the columns with their means, in the units of the problem."""
    A, _ = problem.centered
    mean = problem.mean[0] / problem.shift.unit
    return np.sqrt((A**2).sum(axis=0) + problem.weight * mean**2)


def solve(problem, alpha=0.0):
    """Solve a problem; with a penalty the rank is always full."""
    A, C = problem.centered
    d = A.shape[1]
    if alpha > 0:
        penalty = np.hstack([np.diag(np.sqrt(alpha) / problem.shift.unit), np.zeros((d, C.shape[1]))])
        R = np.linalg.qr(np.vstack([np.hstack([A, C]), penalty]), mode="r")
        A, C = R[:, :d], R[:, d:]
    raw = raw_lengths(problem)
    size = np.sqrt((A**2).sum(axis=0))
    full = len(A) >= d > 0 and bool((size > ROUNDING * raw).all())
    kappa = condition(A[:d] / size) if full else np.inf
    if full and (alpha > 0 or kappa * ROUNDING * (raw / size).max() * np.sqrt(d) < 0.1):  # far from the cut: no SVD needed
        scaled = solve_triangular(A[:d] / size, C[:d]) / size[:, None]
        half = solve_triangular(A[:d] / size, np.eye(d)) / size[:, None]
        rss = (C[d:] ** 2).sum(axis=0)
    else:
        found = directions(problem, A)
        half, projected = found.half(), found.U.T @ C
        scaled = half @ projected
        rss = ((C - found.U @ projected) ** 2).sum(axis=0)
        kappa = found.values[0] / found.values[-1] if found.rank else 1.0
    intercept = np.zeros(C.shape[1])
    if problem.intercept:
        mean_x, mean_y = problem.mean
        intercept = mean_y - (mean_x / problem.shift.unit) @ scaled
    return Solution(scaled, intercept, rss, half, float(kappa))


def refine(blocks, problem, solution, alpha=0.0):
    """Correct a solution once by its true residual: after the cheap route, or where the conditioning eats digits."""
    unit = problem.shift.unit
    if problem.error > 0:
        _, C = problem.centered
        if problem.error <= NEGLIGIBLE and (solution.rss >= CLEAR * (C**2).sum(axis=0)).all():
            return solution
        total, g, rss = blocks.reduce(gradient_block, problem.shift, solution.scaled, solution.intercept)
        offset = (problem.mean[0] - problem.shift.x) / unit
        return _corrected(problem, solution, total, g - np.outer(offset, total), rss, alpha)
    A, C = problem.centered
    total, kappa = np.linalg.norm(C, axis=0), solution.condition
    hard = np.flatnonzero(kappa * total + kappa**2 * np.sqrt(solution.rss) > HARD * total)
    if alpha > 0 or solution.rank < A.shape[1]:
        return solution
    for t in hard:
        one = _exactly_corrected(blocks, problem, solution, t)
        solution.scaled[:, t], solution.intercept[t], solution.rss[t] = one.scaled[:, 0], one.intercept[0], one.rss[0]
    return solution


def _exactly_corrected(blocks, problem, solution, t):
    """Correct one target in double-double arithmetic."""
    one = solution._replace(
        scaled=solution.scaled[:, t : t + 1], intercept=solution.intercept[t : t + 1], rss=solution.rss[t : t + 1]
    )
    coef = one.scaled[:, 0] / problem.shift.unit
    pair, rss = blocks.reduce(partial(_target_block, t=t), coef, one.intercept[0])
    g = pair.high + pair.low
    if not np.isfinite(g).all():  # scales at which double-double overflows: the plain solution stands
        return one
    total = g[:1] * problem.intercept
    centered = (g[1:] - problem.mean[0] * total) / problem.shift.unit
    return _corrected(problem, one, total, centered[:, None], np.array([rss]), 0.0)


def _target_block(X, y, weight, coef, intercept, t):
    return exact_gradient_block(X, columns(y)[:, t : t + 1], weight, coef, intercept)


def penalties(alpha, scaled, unit):
    """Return α‖w‖² of each target, for coefficients in the units of a problem."""
    return (alpha * (scaled / unit) ** 2).sum(axis=0) if np.any(alpha) else 0.0


def _corrected(problem, solution, total, g, rss, alpha):
    """Take one Newton step, from the total of the residuals and their products g with the centered columns."""
    unit = problem.shift.unit[:, None]
    penalty = penalties(alpha, solution.scaled, unit)
    g = g - alpha * (solution.scaled / unit) / unit
    step = solution.half @ (solution.half.T @ g)
    intercept = solution.intercept
    if problem.intercept:
        intercept = intercept + total / problem.weight - (problem.mean[0] / problem.shift.unit) @ step
        rss = rss - total**2 / problem.weight
    rss = np.maximum(rss + penalty - (g * step).sum(axis=0), 0.0)
    return solution._replace(scaled=solution.scaled + step, intercept=intercept, rss=rss)
