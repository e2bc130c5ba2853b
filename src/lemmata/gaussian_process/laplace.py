"""Laplace's approximation for Gaussian process classification: the mode of the latent functions, the evidence, and its slopes.

Two classes: one latent f ~ GP(0, k), P(second class) = 1/(1 + e⁻ᶠ). More: one for each class, independent, and the softmax of
them [1]. With t the counts of the classes at a row, s their sum and π the probabilities, the log posterior is concave; its
mode has f = Kα, α = t − sπ. With W the negative Hessian of the log-likelihood (for one row sπ(1 − π), or s(diag π − ππᵀ)
between classes), the evidence is about Ψ = log p(t | f) − ½ αᵀf − ½ log |I + KW|. With Dₐ = sπₐ (or sπ(1 − π) for two
classes) and Eₐ = Dₐ^½(I + Dₐ^½KDₐ^½)⁻¹Dₐ^½, R = (W⁻¹ + K)⁻¹ has the blocks δₐᵦEₐ − Eₐ(ΣE)⁻¹Eᵦ (or is E), and I − RK is the
inverse of I + WK, which is Newton's step as well. Slopes: dΨ = Σₐ ½ αₐᵀ dK αₐ − ½ tr RₐₐdK, and as the mode moves, + uᵀ dK α,
u = (I − RK)v, where v = −½ ∂ log |I + KW| / ∂f takes the posterior covariances K − KRK between the classes at each row.
Nothing is left out: `certificate` would refuse a fit otherwise.

[1] Williams & Barber, IEEE Trans. PAMI 20 (1998); Rasmussen & Williams (2006), algorithms 3.1, 3.3 and 5.1.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.threads import serial_blas
from lemmata.gaussian_process.exact import amplitude
from lemmata.gaussian_process.factor import back_solve, cholesky, half_solve, inverse
from lemmata.kernels.rows import fill

STEPS = 200  # of Newton's method: ten are usual
PRECISE = 1e-12  # residual of the mode, in units of the largest count: some roundings
NEAR = 1e-7  # residual from which one more step of Newton's method, which squares it, leaves nothing but rounding
HALVES = 30  # of a step; the first is nearly always right


class Mode(NamedTuple):
    """The mode and the curvature there; a is the number of latent functions: 1 for two classes."""

    alpha: np.ndarray  # (a, n)
    latent: np.ndarray  # (a, n) f = Kα
    roots: np.ndarray  # (a, n, n) lower triangles of I + D^½KD^½
    coupling: np.ndarray  # (n, n) lower triangle M with MMᵀ = ΣE; (0, 0) for two classes
    evidence: float


def probabilities(latent):
    """Return π for each latent function; with one, that of the second class."""
    if len(latent) == 1:
        return np.exp(-np.logaddexp(0.0, -latent))
    shifted = np.exp(latent - latent.max(axis=0))
    return shifted / shifted.sum(axis=0)


def log_likelihood(latent, counts):
    """Return Σ t log π over rows and classes; counts are (a + 1, n): of the latent functions, and in the last line of all."""
    own, total = counts[:-1], counts[-1]
    if len(latent) == 1:
        return float((own * latent).sum() - total @ np.logaddexp(0.0, latent[0]))
    top = latent.max(axis=0)
    return float((own * latent).sum() - total @ (top + np.log(np.exp(latent - top).sum(axis=0))))


def weights(pi, total):
    """Return D for each latent function."""
    return total * pi * (1 - pi) if len(pi) == 1 else total * pi


class Curvature:
    """Products with R = (W⁻¹ + K)⁻¹ at some latent values."""

    def __init__(self, K, D, roots=None, coupling=None):
        self.half = np.sqrt(D)
        if roots is None:
            roots = np.array([cholesky(K * h * h[:, None] + np.eye(len(K)))[0] for h in self.half])
        self.roots = roots
        self.coupled = len(D) > 1
        self.coupling = np.zeros((0, 0)) if coupling is None else coupling
        if self.coupled and coupling is None:
            self.coupling = cholesky(sum(self.block(a) for a in range(len(D))))[0]

    def block(self, a):
        """Return Eₐ."""
        h = self.half[a]
        return inverse(self.roots[a]) * h * h[:, None]

    def times(self, v):
        """Return Rv for v (a, n)."""
        e = np.array([h * back_solve(L, half_solve(L, h * x)) for h, L, x in zip(self.half, self.roots, v, strict=True)])
        if not self.coupled:
            return e
        z = back_solve(self.coupling, half_solve(self.coupling, e.sum(axis=0)))
        return e - np.array([h * back_solve(L, half_solve(L, h * z)) for h, L in zip(self.half, self.roots, strict=True)])

    def log_determinant(self, total):
        """Return log |I + KW|."""
        value = 2 * sum(np.log(np.diagonal(L)).sum() for L in self.roots)
        if self.coupled:  # |I + KW| = Π|I + D^½KD^½| · |ΣE| / Π s
            value += 2 * np.log(np.diagonal(self.coupling)).sum() - np.log(total).sum()
        return float(value)


def hessian_times(pi, total, v):
    """Return Wv for v (a, n)."""
    return total * (pi * v - pi * (pi * v).sum(axis=0))


def find_mode(K, counts, near=None):
    """Find the mode by Newton's method, from zero or from an α nearby; steps are halved while the log posterior falls."""
    own, total = counts[:-1], counts[-1]
    alpha = np.zeros(own.shape) if near is None else near
    with serial_blas():
        latent = alpha @ K
        value = log_likelihood(latent, counts) - (alpha * latent).sum() / 2
        for _ in range(STEPS):
            pi = probabilities(latent)
            curvature = Curvature(K, weights(pi, total))
            residual = own - total * pi
            b = hessian_times(pi, total, latent) + residual
            step = b - curvature.times(b @ K) - alpha
            moved = step @ K
            size = 1.0
            for _ in range(HALVES):
                alpha_to, latent_to = alpha + size * step, latent + size * moved
                value_to = log_likelihood(latent_to, counts) - (alpha_to * latent_to).sum() / 2
                if value_to >= value - 1e-12 * max(abs(value), 1.0):  # 1e-12: rounding of the sums
                    break
                size /= 2
            before = np.abs(alpha - residual).max()
            alpha, latent, value = alpha_to, latent_to, value_to
            after = np.abs(alpha - own + total * probabilities(latent)).max()
            if after <= PRECISE * total.max() or before <= NEAR * total.max():
                break
        latent = alpha @ K
        curvature = Curvature(K, weights(probabilities(latent), total))
    return _mode(alpha, latent, curvature, counts)


def _mode(alpha, latent, curvature, counts):
    value = log_likelihood(latent, counts) - (alpha * latent).sum() / 2 - curvature.log_determinant(counts[-1]) / 2
    return Mode(alpha, latent, curvature.roots, curvature.coupling, float(value))


def matrix(kernel, X):
    """Return the kernel matrix and the prepared rows."""
    size, _, inner = amplitude(kernel)
    A = inner.prepare(X)
    K = fill(inner.values, A, A)
    K *= size
    return K, A


def solve(kernel, X, counts):
    """Find the mode for a kernel."""
    return find_mode(matrix(kernel, X)[0], counts)


def evidence_slopes(kernel, X, counts, near=None):
    """Return the approximate log evidence, its slopes in the kernel's theta, and α at the mode."""
    K, A = matrix(kernel, X)
    mode, total = find_mode(K, counts, near), counts[-1]
    with serial_blas():
        pi = probabilities(mode.latent)
        curvature = Curvature(K, weights(pi, total), mode.roots, mode.coupling)
        blocks = [curvature.block(a) for a in range(len(pi))]
        v = turning(covariances(K, blocks, mode.coupling), pi, total)
        u = v - curvature.times(v @ K)
        W = -sum(blocks)
        for E in blocks if len(pi) > 1 else ():
            T = half_solve(mode.coupling, E)
            W += T.T @ T
        for a, b in zip(mode.alpha, u, strict=True):
            across = np.outer(a, b)
            W += np.outer(a, a) + across + across.T
    W /= 2
    size, free, inner = amplitude(kernel)
    slopes = np.concatenate([np.full(free, np.vdot(W, K)), size * inner.pull(W, A)])
    return mode.evidence, slopes, mode.alpha


def covariances(K, blocks, coupling):
    """Return the posterior covariances between the latent functions at each row, (a, a, n)."""
    size, n = len(blocks), len(K)
    C = np.zeros((size, size, n))
    for a, E in enumerate(blocks):
        C[a, a] = np.diagonal(K) - np.einsum("ij,ij->j", K, E @ K)
    if size > 1:
        T = [half_solve(coupling, E @ K) for E in blocks]
        for a in range(size):
            for b in range(size):
                C[a, b] += np.einsum("ij,ij->j", T[a], T[b])
    return C


def turning(C, pi, total):
    """Return −½ Σ Cₐᵦ ∂Wₐᵦ/∂f, (a, n): how the curvature changes with the latent values, weighed by the covariances."""
    own = np.einsum("aan->an", C) * pi  # Σ over a of Cₐₐπₐ(δₐ꜀ − π꜀)
    cross = np.einsum("abn,bn->an", C, pi) * pi  # Σ over a, b of Cₐᵦπₐπᵦ(δₐ꜀ + δᵦ꜀ − 2π꜀)
    slope = own - own.sum(axis=0) * pi - 2 * cross + 2 * cross.sum(axis=0) * pi
    return -total * slope / 2
