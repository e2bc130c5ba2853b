"""What proves the mode of the latent functions of a classifier, from α, the kernel matrix and the counts."""

import numpy as np

from lemmata.core.certificate import EQUI_LIMIT, TINY, Check, equi, same
from lemmata.gaussian_process import laplace
from lemmata.gaussian_process.certificate import EPS

LARGEST = 3000  # latent values up to which the determinant of all of them is computed again


def mode_checks(model, K, t):
    """Yield the checks of the mode and of what is kept of the curvature there."""
    own, total = t[:-1], t[-1]

    def residual(alpha):
        return alpha - own + total * laplace.probabilities(alpha @ K)

    if model.alpha_.shape != own.shape:
        yield Check("mode", np.inf, EQUI_LIMIT, "proof", "the parameters belong to as many rows and classes")
        return
    yield equi(residual, model.alpha_, "mode", "α = t − sπ holds at the one mode of a concave function", kind="proof")
    yield same(model.latent_, model.alpha_ @ K, "latent", "the mode at the training rows")
    latent = model.alpha_ @ K
    pi = laplace.probabilities(latent)
    D, n = laplace.weights(pi, total), len(K)
    factors = [K * h * h[:, None] + np.eye(n) for h in np.sqrt(D)]
    claim, limit = "LLᵀ is the curvature at the mode", max(100 * n * EPS, 1e-9)  # 1e-9: what is left of the mode's own rounding
    off = max(np.linalg.norm(L @ L.T - B) / np.linalg.norm(B) for L, B in zip(model.L_, factors, strict=True))
    yield Check("factor", float(off), limit, "proof", claim)
    if len(D) > 1:
        S = sum(np.linalg.solve(B, np.diag(h)) * h[:, None] for B, h in zip(factors, np.sqrt(D), strict=True))
        off = np.linalg.norm(model.coupling_ @ model.coupling_.T - S) / max(np.linalg.norm(S), TINY)
        yield Check("coupling", float(off), limit, "proof", "MMᵀ is the sum over the classes")
    if n * len(D) <= LARGEST:
        W = np.einsum("an,ab,nm->anbm", pi, np.eye(len(D)), np.eye(n)) - np.einsum("an,bm,nm->anbm", pi, pi, np.eye(n))
        W = (total[None, :, None, None] * W).reshape(n * len(D), n * len(D))
        sign, value = np.linalg.slogdet(np.eye(len(W)) + np.kron(np.eye(len(D)), K) @ W)
        value = laplace.log_likelihood(latent, t) - (model.alpha_ * latent).sum() / 2 - sign * value / 2
    else:
        value = laplace.find_mode(K, t).evidence
    claim = "Laplace's approximation of ln p(labels), recomputed"
    floor = np.sqrt(EPS) * total.sum()
    yield same(model.log_marginal_likelihood_, value, "log evidence", claim, floor=floor)
