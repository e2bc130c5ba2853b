"""The Gaussian process seen through m inducing points, for more rows than a matrix of all of them has room for.

Given the values u of f at the points Z, f is taken to be k_xZ K_ZZ⁻¹u plus an independent rest, and the rows speak through u
alone. The best normal law of u has a bound of the log evidence for its objective [1]: with Q = K_XZ K_ZZ⁻¹K_ZX and D = diag
σ²/ω, it is F = log N(y | 0, Q + D) − ½ tr D⁻¹(K − Q), never above the log evidence, and equal to it where Z holds all rows.
K_ZZ has a jitter of a millionth, as if f were seen at the points with a little noise: F is a bound as before, lower by a trace.
With LLᵀ = K_ZZ, A = L⁻¹K_ZX, B = I + AD⁻¹Aᵀ and h = AD⁻¹y, everything is a sum over rows: blocks of them on all threads,
O(nm²). At x, with k = k_Zx: mean kᵀα, α = L⁻ᵀB⁻¹h, and variance k(x, x) − ‖L⁻¹k‖² + ‖R⁻¹L⁻¹k‖², RRᵀ = B. The slopes come from
the matrices ∂F/∂K_XZ = βαᵀ + D⁻¹Aᵀ(I − B⁻¹)L⁻¹, with β = D⁻¹(y − Aᵀ B⁻¹h), and ∂F/∂K_ZZ = −½(ααᵀ + L⁻ᵀ(B − 2I + B⁻¹)L⁻¹).

[1] Titsias, AISTATS (2009).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.gaussian_process.exact import Posterior as ExactPosterior
from lemmata.gaussian_process.exact import amplitude
from lemmata.gaussian_process.factor import back_solve, cholesky, half_solve, inverse
from lemmata.kernels.rows import fill

CHUNK = 512  # rows of a table that meet all inducing points at a time
FEW = 64  # rows whose matrix is made to have the slopes of its diagonal
CANDIDATES = 4  # rows for each inducing point among which the greedy choice is made
LEAST = 2000  # candidates at least
ROUNDING = 1e-9  # error of the bound for each row: the digits that the smallest eigenvalues of K_ZZ cost
JITTER = 1e-6  # share of the diagonal of K_ZZ: with less, slopes drown in rounding where the noise is small next to the kernel


class Solved(NamedTuple):
    """What conditioning leaves to store."""

    alpha: np.ndarray  # (m,)
    root: np.ndarray  # (m, m) L
    inner: np.ndarray  # (m, m) R, RRᵀ = B
    jitter: float
    evidence: float  # the bound F


def chosen(kernel, X, m, rng):
    """Choose m rows as inducing points: each the row that the ones before determine least (a pivoted Cholesky factorization).

    Among a random part of the rows where there are many. Fewer points are returned where they determine all the others.
    """
    n = len(X)
    size = min(n, max(CANDIDATES * m, LEAST))
    rows = X if size == n else X[np.sort(rng.choice(n, size, replace=False))]
    A = kernel.prepare(np.ascontiguousarray(rows))
    left = np.asarray(kernel.diagonal(A), dtype=float).copy()
    first, F, picks = left.max(), np.empty((min(m, size), size)), []
    for t in range(min(m, size)):
        i = int(np.argmax(left))
        if left[i] <= 1e-10 * first:  # the rest is determined but for rounding
            break
        F[t] = (kernel.values(A[[i]], A)[0] - F[:t, i] @ F[:t]) / np.sqrt(left[i])
        left -= F[t] ** 2
        left[i] = -np.inf
        picks.append(i)
    return rows[np.sort(picks)]


def first_jitter(K):
    """Return the jitter of K_ZZ: without noise it is singular in rounding sooner or later."""
    return JITTER * float(np.diagonal(K).mean())


def summed(work, n):
    """Add work(part) over chunks of rows, on all threads and in a fixed order."""
    starts = range(0, n, CHUNK)
    results = [None] * len(starts)

    def one(task):
        i, start = task
        results[i] = work(slice(start, start + CHUNK))

    threads.run(one, enumerate(starts), n_threads())
    total = list(results[0])
    for more in results[1:]:
        total = [a + b for a, b in zip(total, more, strict=True)]
    return total


def solve(kernel, data, target, Z, noise):
    """Condition on the rows through the inducing points."""
    return _pass(kernel, data, target, Z, noise)[0]


def _pass(kernel, data, target, Z, noise):
    size, _, inner = amplitude(kernel)
    P = inner.prepare(Z)
    K = fill(inner.values, P, P)
    K *= size
    root, jitter = cholesky(K, first_jitter(K))
    hand = inverse_root(root)

    def work(part):
        rows = inner.prepare(np.ascontiguousarray(data.X[part]), P)
        A = hand @ (size * inner.values(P, rows))
        w, y = data.weight[part], target[part]
        Aw = A * w
        return Aw @ A.T, Aw @ y, w @ y**2, w @ (size * inner.diagonal(rows)), w @ np.einsum("ij,ij->j", A, A)

    S, h, yy, prior, explained = summed(work, len(data.X))
    S /= noise
    R, _ = cholesky(S + np.eye(len(S)))
    c = half_solve(R, h / noise)
    unexplained = max(prior - explained, 0.0) / noise
    deviance = data.count * np.log(2 * np.pi * noise) + data.log_scale + 2 * np.log(np.diagonal(R)).sum()
    deviance += (yy + data.scatter) / noise - c @ c + unexplained
    alpha = back_solve(root, back_solve(R, c))
    return Solved(alpha, root, R, jitter, float(-deviance / 2)), hand, S, K, unexplained


def inverse_root(root):
    """Return L⁻¹: products with it run on all threads, which solves do not."""
    return half_solve(root, np.eye(len(root)))


def evidence_slopes(kernel, data, target, Z, noise):
    """Return the bound, its slopes in the kernel's theta, and its slope in log σ²."""
    found, hand, S, K, unexplained = _pass(kernel, data, target, Z, noise)
    size, free, inner = amplitude(kernel)
    P, m = inner.prepare(Z), len(Z)
    # I − B⁻¹ = B⁻¹S and B − 2I + B⁻¹ = SB⁻¹S with S = AD⁻¹Aᵀ: nothing cancels before L⁻¹ magnifies it.
    B_inverse = inverse(found.inner)
    told = B_inverse @ S
    told = (told + told.T) / 2
    middle = hand.T @ told @ hand
    on_points = -(np.outer(found.alpha, found.alpha) + hand.T @ (S @ B_inverse @ S) @ hand) / 2
    on_points.flat[:: m + 1] += found.jitter / np.trace(K) * np.trace(on_points)  # the jitter is a share of the diagonal
    n_theta = len(inner.theta)

    def work(part):
        rows = inner.prepare(np.ascontiguousarray(data.X[part]), P)
        K = inner.values(rows, P)
        w = data.weight[part] / noise
        beta = w * (target[part] - size * (K @ found.alpha))
        W = np.outer(beta, found.alpha) + (size * w)[:, None] * (K @ middle)
        slopes = np.zeros(n_theta)
        if n_theta:
            slopes += [np.vdot(W, D) for D in inner.derivatives(rows, P)]
            for start in range(0, len(rows), FEW):
                few = slice(start, start + FEW)
                slopes -= inner.pull(np.diag(w[few]), rows[few]) / 2
        return beta @ target[part], slopes, beta @ (beta / w)

    along, slopes, fit = summed(work, len(data.X))
    # In the factor of all kernels: ½(βᵀQβ − tr(Q + D)⁻¹Q − tr D⁻¹(K − Q)), of which none is a difference of large numbers.
    whole = (along - fit - m + np.trace(B_inverse) - unexplained) / 2
    if n_theta:  # differences of points, not `pull`: what is large in `on_points` cancels in it
        slopes = size * (slopes + [np.vdot(on_points, D) for D in inner.derivatives(P, P)])
    own = (fit + data.scatter / noise - data.count + m - np.trace(B_inverse) + unexplained) / 2
    return found.evidence, np.concatenate([np.full(free, whole), slopes]), float(own)


class Posterior(NamedTuple):
    """The process given its rows, through the inducing points."""

    kernel: object
    X: np.ndarray  # Z
    noise: float  # the jitter of K_ZZ
    alpha: np.ndarray
    root: np.ndarray
    inner: np.ndarray

    def mean(self, X):
        """Return the mean of f at rows."""
        return _exact(self).mean(X)

    def variance(self, X):
        """Return the variance of f at rows: that given u, which is at least zero, plus that of u."""
        out, exact = np.empty(len(X)), _exact(self)
        for start in range(0, len(X), CHUNK):
            part = np.ascontiguousarray(X[start : start + CHUNK])
            V = self.parts(part)[1]
            out[start : start + CHUNK] = exact.variance(part) + np.einsum("ij,ij->j", V, V)
        return out

    def parts(self, X):
        """Return two matrices with a column for each row: products of the first lower covariances, of the second raise them."""
        less, _ = _exact(self).parts(X)
        return less, half_solve(self.inner, less)

    def covariance(self, X):
        """Return the joint covariance of f at rows; its diagonal is `variance`."""
        V = self.parts(X)[1]
        C = _exact(self).covariance(X) + V.T @ V
        C.flat[:: len(C) + 1] = self.variance(X)
        return (C + C.T) / 2


def _exact(posterior):
    noise = np.full(len(posterior.X), posterior.noise)
    return ExactPosterior(posterior.kernel, posterior.X, noise, posterior.alpha, posterior.root)
