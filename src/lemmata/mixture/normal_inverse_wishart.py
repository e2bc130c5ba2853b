"""The Normal-inverse-Wishart distribution: the conjugate prior of the mean and covariance of a Gaussian.

Σ is inverse-Wishart with scale Ψ and ν > d − 1 degrees of freedom, and μ given Σ is N(m, Σ/κ):

    p(μ, Σ) = 1/Z · |Σ|^(−(ν+d+2)/2) exp(−½ tr ΨΣ⁻¹ − ½κ (μ−m)ᵀΣ⁻¹(μ−m)),
    log Z = ½νd log 2 + log Γ_d(ν/2) − ½ν log|Ψ| + ½d log(2π/κ).

N rows of average x̄ and scatter S about it lead to another one, with

    κ' = κ + N,   ν' = ν + N,   m' = (κm + Nx̄)/κ',   Ψ' = Ψ + S + (κN/κ') (x̄−m)(x̄−m)ᵀ,

and their marginal density, mean and covariance integrated out, is Z'/Z · (2π)^(−Nd/2). For a single row x that is Student's
t-density with ν − d + 1 degrees of freedom about m [1]:

    p(x) = Γ((ν+1)/2)/Γ((ν−d+1)/2) · (κ/((κ+1)π))^(d/2) |Ψ|^(−½) (1 + κ/(κ+1) (x−m)ᵀΨ⁻¹(x−m))^(−(ν+1)/2).

A draw is made from the Cholesky factor Ψ = LLᵀ and Bartlett's lower triangle A, whose squared diagonal is χ² with ν, ν − 1, …
degrees of freedom and whose other entries are standard normal: with F = LA⁻ᵀ, Σ = FFᵀ and μ = m + Fg/√κ.

[1] Murphy, Conjugate Bayesian analysis of the Gaussian distribution (2007).
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import gammaln, multigammaln


def moments(X):
    """Count rows; give their average and their scatter about it."""
    if not len(X):
        return 0, np.zeros(X.shape[1]), np.zeros((X.shape[1], X.shape[1]))
    average = X.mean(axis=0)
    away = X - average
    return len(X), average, away.T @ away


def student_constant(kappa, nu, d):
    """Give the logarithm of what stands before the determinant in Student's density of a next row."""
    return gammaln(0.5 * (nu + 1)) - gammaln(0.5 * (nu - d + 1)) + 0.5 * d * np.log(kappa / ((kappa + 1) * np.pi))


class NormalInverseWishart(NamedTuple):
    """A distribution of a mean and a covariance, or many of them along leading axes.

    Parameters
    ----------
    mean : (…, d), m, around which the mean lies.
    mean_precision : (…,), κ: the mean is known as well as from so many rows.
    scale : (…, d, d), Ψ; the covariance has the expectation Ψ/(ν − d − 1).
    degrees_of_freedom : (…,), ν > d − 1.

    Examples
    --------
    >>> import numpy as np
    >>> prior = NormalInverseWishart(np.zeros(1), 1.0, np.eye(1), 3.0)
    >>> posterior = prior.after(*moments(np.array([[1.0], [2.0], [6.0]])))
    >>> posterior.mean, float(posterior.mean_precision), posterior.scale, float(posterior.degrees_of_freedom)
    (array([2.25]), 4.0, array([[21.75]]), 6.0)
    >>> rows = np.array([[1.0], [2.0]])
    >>> both = prior.log_marginal(*moments(rows))  # one after the other comes to the same
    >>> one = prior.log_predictive(rows[:1]) + prior.after(*moments(rows[:1])).log_predictive(rows[1:])
    >>> float(both), float(one[0])
    (-4.0351, -4.0351)
    """

    mean: Any
    mean_precision: Any
    scale: Any
    degrees_of_freedom: Any

    def after(self, count, average, scatter):
        """Give the posterior after rows of this count, average and scatter about it; leading axes are allowed."""
        count = np.asarray(count, dtype=float)[()]
        precision, away = self.mean_precision + count, average - self.mean
        share = (count / precision)[..., None]
        pull = (self.mean_precision * share)[..., None]
        scale = self.scale + scatter + pull * away[..., :, None] * away[..., None, :]
        return NormalInverseWishart(self.mean + share * away, precision, scale, self.degrees_of_freedom + count)

    def log_normalizer(self):
        """Give log Z, by which the density was divided."""
        d = np.shape(self.mean)[-1]
        lower = np.linalg.cholesky(self.scale)
        half_determinant = np.log(np.diagonal(lower, axis1=-2, axis2=-1)).sum(axis=-1)
        degrees = self.degrees_of_freedom
        spread = 0.5 * degrees * d * np.log(2.0) + multigammaln(0.5 * degrees, d) - degrees * half_determinant
        return spread + 0.5 * d * np.log(2 * np.pi / self.mean_precision)

    def log_marginal(self, count, average, scatter):
        """Give the log-density of rows of this count, average and scatter, mean and covariance integrated out."""
        d = np.shape(self.mean)[-1]
        ratio = self.after(count, average, scatter).log_normalizer() - self.log_normalizer()
        return ratio - 0.5 * d * np.log(2 * np.pi) * np.asarray(count)

    def log_predictive(self, X):
        """Give Student's log-density of each row, mean and covariance integrated out; no leading axes here."""
        d, kappa, nu = len(self.mean), self.mean_precision, self.degrees_of_freedom
        lower = np.linalg.cholesky(self.scale)
        squares = (solve_triangular(lower, (X - self.mean).T, lower=True) ** 2).sum(axis=0)
        constant = student_constant(kappa, nu, d) - np.log(np.diagonal(lower)).sum()
        return constant - 0.5 * (nu + 1) * np.log1p(kappa / (kappa + 1) * squares)

    def draw(self, rng):
        """Draw (mean, covariance), one of each along the leading axes."""
        mean, scale = np.asarray(self.mean), np.asarray(self.scale)
        d, lead = mean.shape[-1], mean.shape[:-1]
        kappa, nu = np.broadcast_to(self.mean_precision, lead), np.broadcast_to(self.degrees_of_freedom, lead)
        bartlett = np.tril(rng.standard_normal((*lead, d, d)), -1)
        each = np.arange(d)
        bartlett[..., each, each] = np.sqrt(rng.chisquare(nu[..., None] - each))
        turned = np.linalg.solve(bartlett, np.swapaxes(np.linalg.cholesky(scale), -1, -2))  # Fᵀ
        step = (np.swapaxes(turned, -1, -2) @ rng.standard_normal((*lead, d, 1)))[..., 0]
        return mean + step / np.sqrt(kappa)[..., None], np.swapaxes(turned, -1, -2) @ turned


class Students(NamedTuple):
    """Components with Student's density as the kernels want them: log p(x) = constant − exponent · log(1 + ‖P(x − m)‖²)."""

    center: Any  # (d,), near the rows, so that differences lose nothing
    offsets: Any  # (k, d), m − center
    factors: Any  # (k, d, d), P, lower triangles
    constants: Any  # (k,)
    exponents: Any  # (k,)


def students(posteriors, log_weights, center):
    """Derive from Normal-inverse-Wishart distributions (k,) the densities of a next row, times weights."""
    mean, kappa, scale, nu = posteriors
    d = mean.shape[-1]
    lower = np.linalg.cholesky(scale)
    halves = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    factors = np.sqrt(kappa / (kappa + 1))[:, None, None] * np.tril(np.linalg.inv(lower))
    constants = student_constant(kappa, nu, d) - halves + log_weights
    return Students(center, mean - center, factors, constants, 0.5 * (nu + 1))
