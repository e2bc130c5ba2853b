"""Information of Gaussians in closed form.

    h = ½ log det(2πe Σ)                                     the differential entropy
    D = ½ Σ (t − log(1 + t)) + ½ ‖L⁻¹(μ − μ′)‖²              the divergence of N(μ, Σ) from N(μ′, LLᵀ)
    I = −½ Σ log(1 − ρ²)                                     the mutual information of two parts

with 1 + t the eigenvalues of L⁻¹ Σ L⁻ᵀ, hence t those of L⁻¹ (Σ − LLᵀ) L⁻ᵀ, and ρ the canonical correlations of the parts. No
determinants are subtracted, so that small divergences keep their digits.

Cover & Thomas, Elements of Information Theory, ch. 8 (2006).
"""

import numpy as np
from scipy.linalg import eigvalsh, solve_triangular, svdvals

from lemmata.probability.arrays import positions
from lemmata.probability.distributions.multivariate_normal import covariance
from lemmata.probability.logarithms import NEAR, log_excess, units


def gaussian_entropy(cov, base=None):
    """Return the differential entropy of a Gaussian from its variance or covariance matrix.

    Examples
    --------
    >>> gaussian_entropy(1.0)
    1.418939
    """
    factor = _factor(cov)
    return float(len(factor) * np.log(2 * np.pi * np.e) / 2 + np.log(np.diag(factor)).sum()) / units(base)


def gaussian_kl(mean, cov, other_mean, other_cov, base=None):
    """Return D(N(mean, cov) ‖ N(other_mean, other_cov)).

    In coordinates where the second covariance is the identity the first has eigenvalues 1 + t, and D = ½ Σ (t − log(1 + t))
    plus half the squared distance of the means.

    Examples
    --------
    >>> gaussian_kl(0.0, 1.0, 1.0, 4.0)
    0.443147
    """
    factor, other = _factor(cov), _factor(other_cov)
    shift = np.atleast_1d(np.asarray(mean, dtype=float) - np.asarray(other_mean, dtype=float))
    if not len(factor) == len(other) == len(shift):
        raise ValueError(f"Means and covariances must have one dimension; got {len(shift)}, {len(factor)} and {len(other)}.")
    half = solve_triangular(other, np.atleast_2d(cov) - np.atleast_2d(other_cov), lower=True)
    t = eigvalsh(solve_triangular(other, half.T, lower=True))[::-1]
    stretch = svdvals(solve_triangular(other, factor, lower=True)) ** 2  # 1 + t, exact where t is near −1
    terms = np.where(np.abs(t) < NEAR, log_excess(np.clip(t, -NEAR, NEAR)), stretch - 1 - np.log(stretch))
    distance = solve_triangular(other, shift, lower=True)
    return float(terms.sum() + distance @ distance) / 2 / units(base)


def gaussian_mutual_information(cov, x=0, y=1, given=(), base=None):
    """Return −½ Σ log(1 − ρ²) over the canonical correlations ρ of two parts of a Gaussian vector, after those of `given`.

    Examples
    --------
    >>> gaussian_mutual_information([[1.0, 0.6], [0.6, 1.0]])
    0.223144
    """
    cov = np.atleast_2d(np.asarray(cov, dtype=float))
    x, y, given = (list(positions(part, len(cov))) for part in (x, y, given))
    positions(x + y + given, len(cov))  # refuses a coordinate in two places
    rest = cov[np.ix_(x + y, x + y)]
    if given:
        root = solve_triangular(_factor(cov[np.ix_(given, given)]), cov[np.ix_(given, x + y)], lower=True)
        rest = rest - root.T @ root
    k = len(x)
    half = solve_triangular(_factor(rest[:k, :k]), rest[:k, k:], lower=True)
    correlations = np.linalg.svd(solve_triangular(_factor(rest[k:, k:]), half.T, lower=True), compute_uv=False)
    with np.errstate(divide="ignore"):  # infinite where one part determines a combination of the other
        return float(-np.log1p(-(np.minimum(correlations, 1.0) ** 2)).sum() / 2) / units(base)


def _factor(cov):
    """Return the lower Cholesky factor of a variance or covariance matrix."""
    return covariance("The covariance", np.atleast_2d(cov), len(np.atleast_2d(cov)))[1]
