"""The Gaussian process on all its rows: evidence, its slopes, and predictions.

y = f + noise, f ~ GP(0, k), noise of variance D = diag σ²/ω: with K the kernel matrix, LLᵀ = K + D and α = (K + D)⁻¹y, the
log evidence is −½ yᵀα − Σ log Lᵢᵢ − (n/2) log 2π, and its slope in a hyperparameter is Σᵢⱼ Wᵢⱼ ∂(K + D)ᵢⱼ with W = ½(ααᵀ − (K
+ D)⁻¹) [1]. At x, with the vector k of kernels, f has the mean kᵀα and the variance v = k(x, x) − ‖L⁻¹k‖². That difference
loses its digits where v is small; there, with a = (K + D)⁻¹k, v = ‖φ(x) − Σ aᵢφ(xᵢ)‖² + aᵀDa is taken, which is its own
minimum over a: errors of a enter squared, the second term is a sum of squares, and the first one is zero but for rounding of
k(x, x) itself.

[1] Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), algorithm 2.1 and equation 5.9.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core import threads
from lemmata.core.config import n_threads
from lemmata.gaussian_process.factor import back_solve, cholesky, half_solve, inverse
from lemmata.kernels import Constant, Product
from lemmata.kernels.rows import fill

CHUNK = 256  # rows of a table that meet all training rows at a time: the matrix between them stays in the cache
LOST = 1e-7  # share of k(x, x) below which a difference has lost too many digits


class Solved(NamedTuple):
    """What conditioning on the rows leaves to store."""

    alpha: np.ndarray  # (n,)
    root: np.ndarray  # (n, n) lower triangle L
    jitter: float
    evidence: float


def amplitude(kernel):
    """Split a kernel into a constant factor, which costs nothing, and the rest."""
    if isinstance(kernel, Product) and isinstance(kernel.left, Constant) and kernel.left.value > 0:
        return float(kernel.left.value), len(kernel.left.theta), kernel.right
    return 1.0, 0, kernel


def matrix(kernel, data, noise):
    """Return K + D and the prepared rows."""
    size, _, inner = amplitude(kernel)
    A = inner.prepare(data.X)
    K = fill(inner.values, A, A)
    K *= size
    K.flat[:: len(K) + 1] += noise / data.weight
    return K, A


def solve(kernel, data, target, noise):
    """Condition on the rows; the target is ȳ, less its center."""
    return solved(matrix(kernel, data, noise)[0], data, target, noise)


def solved(K, data, target, noise):
    """Condition on rows with this matrix K + D."""
    root, jitter = cholesky(K)
    half = half_solve(root, target)
    value = -(half @ half) / 2 - np.log(np.diagonal(root)).sum() - len(root) / 2 * np.log(2 * np.pi)
    return Solved(back_solve(root, half), root, jitter, float(value + data.constant(noise)[0]))


def evidence_slopes(kernel, data, target, noise):
    """Return the log evidence, its slopes in the kernel's theta, and its slope in log σ²."""
    K, A = matrix(kernel, data, noise)
    found, trace = solved(K, data, target, noise), float(np.trace(K))
    del K
    W = inverse(found.root)
    np.subtract(np.outer(found.alpha, found.alpha), W, out=W)
    W *= 0.5
    D = noise / data.weight
    # Σ W∘(K + D + jitter) = ½(αᵀy − n); the jitter is a share of the trace of K + D.
    whole = (found.alpha @ target - len(target)) / 2 - found.jitter * np.trace(W)
    shift = found.jitter / trace * np.trace(W)
    W.flat[:: len(W) + 1] += shift
    own = np.diagonal(W) @ D
    size, free, inner = amplitude(kernel)
    W *= size
    slopes = np.concatenate([np.full(free, whole + shift * trace - own), inner.pull(W, A)])
    return found.evidence, slopes, float(own + data.constant(noise)[1])


class Posterior(NamedTuple):
    """The process given its rows: all that predictions need."""

    kernel: object
    X: np.ndarray
    noise: np.ndarray  # (n,) D, with the jitter
    alpha: np.ndarray
    root: np.ndarray

    def mean(self, X):
        """Return the mean of f at rows."""
        size, _, inner = amplitude(self.kernel)
        A = inner.prepare(self.X)
        out, alpha = np.empty(len(X)), size * self.alpha

        def work(start):
            part = slice(start, start + CHUNK)
            out[part] = inner.values(inner.prepare(np.ascontiguousarray(X[part]), A), A) @ alpha

        threads.run(work, range(0, len(X), CHUNK), n_threads())
        return out

    def cross(self, X):
        """Return the kernels of the training rows with other rows, (n, m)."""
        A = self.kernel.prepare(self.X)
        return fill(self.kernel.values, A, self.kernel.prepare(X, A))

    def parts(self, X):
        """Return two matrices with a column for each row: products of the first lower covariances, of the second raise them."""
        return half_solve(self.root, self.cross(X)), np.zeros((0, len(X)))

    def variance(self, X):
        """Return the variance of f at rows; never below zero, whatever the noise."""
        out = np.empty(len(X))
        for start in range(0, len(X), 4 * CHUNK):
            part = slice(start, start + 4 * CHUNK)
            out[part] = self._variance(np.ascontiguousarray(X[part]))
        return out

    def _variance(self, X):
        prior, cross = self.kernel.diag(X), self.cross(X)
        half = half_solve(self.root, cross)
        v = prior - np.einsum("ij,ij->j", half, half)
        lost = np.flatnonzero(v <= LOST * prior)
        if len(lost):
            v[lost] = self._careful(prior[lost], cross[:, lost], half[:, lost])
        return v

    def _careful(self, prior, cross, half):
        a = back_solve(self.root, half)
        A = self.kernel.prepare(self.X)
        apart = prior - 2 * np.einsum("ij,ij->j", a, cross) + np.einsum("ij,ij->j", a, fill(self.kernel.values, A, A) @ a)
        return np.maximum(apart, 0.0) + self.noise @ a**2  # a squared distance: below zero by rounding of k(x, x) only

    def covariance(self, X):
        """Return the joint covariance of f at rows; its diagonal is `variance`."""
        less, _ = self.parts(X)
        C = self.kernel(X) - less.T @ less
        C = (C + C.T) / 2
        C.flat[:: len(C) + 1] = self.variance(X)
        return C


def extended(kernel, old, more, found, target, noise):
    """Condition a solved process on more rows, none of which it has; return None where rounding asks for a new start.

    Parameters
    ----------
    old, more : The rows it has, and the new ones, as `Distinct`.
    found : What conditioning on the old rows left.
    target : Targets of all, less their center.
    """
    n, m = len(old.y), len(more.y)
    A = kernel.prepare(old.X)
    C = kernel.prepare(more.X, A)
    across = half_solve(found.root, fill(kernel.values, A, C)).T
    K = fill(kernel.values, C, C) - across @ across.T
    K.flat[:: m + 1] += noise / more.weight
    below, jitter = cholesky(K)
    if jitter or found.jitter:
        return None
    root = np.zeros((n + m, n + m))
    root[:n, :n], root[n:, :n], root[n:, n:] = found.root, across, below
    half = half_solve(root, target)
    value = -(half @ half) / 2 - np.log(np.diagonal(root)).sum() - (n + m) / 2 * np.log(2 * np.pi)
    return Solved(back_solve(root, half), root, 0.0, float(value))


def leave_one_out(root, alpha):
    """Return, for each row, its target less its mean given the other rows, and the variance of that."""
    own = np.diagonal(inverse(root))
    return alpha / own, 1 / own


def most_informative(posterior, X, noise, n):
    """Choose n rows in turn, each the one with the largest variance once the ones before are measured."""
    v, (less, plus) = posterior.variance(X), posterior.parts(X)
    A = posterior.kernel.prepare(X)
    F, picks = np.zeros((n, len(X))), []
    for t in range(n):
        i = int(np.argmax(np.where(np.isin(np.arange(len(v)), picks), -1.0, v)))
        c = posterior.kernel.values(A[[i]], A)[0] - less[:, i] @ less + plus[:, i] @ plus - F[:t, i] @ F[:t]
        F[t] = c / np.sqrt(v[i] + noise) if v[i] + noise > 0 else 0.0
        v = np.maximum(v - F[t] ** 2, 0.0)  # a variance of zero is as good as known
        picks.append(i)
    return np.array(picks)
