"""PAC-Bayes: the risk of a random hypothesis, for every way to choose its distribution after seeing the data.

A prior P over hypotheses is fixed before the points that are scored; a posterior Q is anything. The Gibbs classifier draws a
hypothesis from Q for each prediction; R̂ is its mean loss and KL = KL(Q‖P) the price of the choice. For all Q at once:

- Seeger and Maurer: kl(R̂‖R) ≤ (KL + ln(ξ(n)/δ))/n;
- relaxed: R ≤ R̂/(1−λ/2) + c/(nλ(1−λ/2)) with c = KL + ln(2√n/δ), for all λ in (0, 2) at once, best at
  λ = 2/(√(2nR̂/c + 1) + 1); and McAllester's R̂ + √(c/2n). Neither is ever smaller;
- Catoni: (1 − e^(−λR̂ − (KL + ln 1/δ)/n))/(1 − e^(−λ)) for one λ fixed before the data were seen, or several that share δ. No
  ξ(n) here, so a well-placed λ can win; to minimize over λ without paying is wrong.

For a linear model and Q = N(μ, Σ), both sides are closed: R̂ = mean Φ(−y·μᵀx/√(xᵀΣx)), and KL between Gaussians. With rows of
length one, Q = N(μ·ŵ, I) and P = N(0, I), the divergence is μ²/2, and μ may be chosen freely: it is one prior and all Q [1].

The deterministic model is the majority vote of Q, which errs only where at least half of Q does: its risk is at most 2·R, or
1 − (1−2r)²/(1−2d) from an upper bound r on the Gibbs risk and a lower bound d on the disagreement (binary), or 4 times the
tandem risk, that two independent draws both err [2]. A Gibbs bound quoted for the deterministic model, without a factor, is
wrong. In a bagged forest each tree is scored where it was not trained; n is then the size of the smallest such set.

[1] Langford, JMLR 6 (2005). [2] Masegosa, Lorenzen, Igel & Seldin, NeurIPS (2020).
"""

from math import log, sqrt

import numpy as np
from scipy.special import ndtr

from lemmata.probability.gaussian_information import gaussian_kl
from lemmata.theory.bounds.tails import check_count, check_delta, check_mean, exponential_upper, kl_upper, pac_bayes_constant

SCALES = 24  # of the posterior, tried at a time
REFINEMENTS = 4  # each between the neighbors of the best of the scales before: the last ones are within 0.1 %


def _checked(gibbs, divergence, n, delta):
    """Check what these bounds have in common; return n as an int."""
    check_delta(delta)
    check_mean(gibbs)
    if not np.all(np.asarray(divergence) >= 0):
        raise ValueError(f"A divergence between posterior and prior cannot be negative, but it is {divergence!r}.")
    return check_count(n, "n")


def seeger_bound(gibbs, divergence, n, delta):
    """Bound the Gibbs risk by the largest p with kl(R̂‖p) ≤ (KL + ln(ξ(n)/δ))/n.

    Parameters
    ----------
    gibbs : Mean loss R̂ of the Gibbs classifier on n points.
    divergence : KL(Q‖P) of the posterior from a prior fixed before these points were seen.
    n : Number of points.
    delta : Probability of failure.

    Examples
    --------
    >>> seeger_bound(0.1, 5.0, 1000, 0.05)
    0.152001
    """
    n = _checked(gibbs, divergence, n, delta)
    return kl_upper(gibbs, (divergence + log(pac_bayes_constant(n) / delta)) / n)


def lambda_bound(gibbs, divergence, n, delta):
    """Bound the Gibbs risk by R̂/(1−λ/2) + c/(nλ(1−λ/2)) at the best λ, c = KL + ln(2√n/δ); easy to minimize over Q.

    Parameters
    ----------
    gibbs : Mean loss R̂ of the Gibbs classifier on n points.
    divergence : KL(Q‖P).
    n : Number of points.
    delta : Probability of failure.

    Examples
    --------
    >>> lambda_bound(0.1, 5.0, 1000, 0.05)
    0.162897
    """
    n = _checked(gibbs, divergence, n, delta)
    cost = divergence + log(2 * sqrt(n) / delta)
    rate = 2 / (sqrt(2 * n * gibbs / cost + 1) + 1)
    return float((gibbs + cost / (n * rate)) / (1 - rate / 2))


def mcallester_bound(gibbs, divergence, n, delta):
    """Bound the Gibbs risk by R̂ + √((KL + ln(2√n/δ))/2n).

    Parameters
    ----------
    gibbs : Mean loss R̂ of the Gibbs classifier on n points.
    divergence : KL(Q‖P).
    n : Number of points.
    delta : Probability of failure.

    Examples
    --------
    >>> mcallester_bound(0.1, 5.0, 1000, 0.05)
    0.177919
    """
    n = _checked(gibbs, divergence, n, delta)
    return float(gibbs) + sqrt((divergence + log(2 * sqrt(n) / delta)) / (2 * n))


def catoni_bound(gibbs, divergence, n, delta, rates):
    """Bound the Gibbs risk by the least (1 − e^(−λR̂ − (KL + ln(M/δ))/n))/(1 − e^(−λ)) of M rates λ.

    Parameters
    ----------
    gibbs : Mean loss R̂ of the Gibbs classifier on n points.
    divergence : KL(Q‖P).
    n : Number of points.
    delta : Probability of failure.
    rates : Positive number, or several fixed before the data were seen; each pays δ/M.

    Examples
    --------
    >>> catoni_bound(0.1, 5.0, 1000, 0.05, rates=1.0)
    0.161945
    """
    n = _checked(gibbs, divergence, n, delta)
    return exponential_upper(gibbs, divergence - log(delta), n, rates)


def gaussian_divergence(mean, cov, prior_mean, prior_variance):
    """Return KL(N(μ, Σ)‖N(μ₀, s²I)) = ½[tr Σ/s² + ‖μ − μ₀‖²/s² − d + d ln s² − ln|Σ|].

    Parameters
    ----------
    mean : Mean μ of the posterior, (d,).
    cov : Covariance Σ, (d, d), or its diagonal, (d,).
    prior_mean : Mean μ₀ of the prior, (d,) or a number.
    prior_variance : Variance s² of the prior in every direction; one of several, chosen by the data, costs ln of their number.

    Examples
    --------
    >>> gaussian_divergence([1.0, 1.0], 0.1 * np.eye(2), 0.0, 1.0)
    2.402585
    """
    mean, cov = np.asarray(mean, dtype=float), np.asarray(cov, dtype=float)
    if mean.ndim != 1 or cov.shape not in ((len(mean),), (len(mean), len(mean))):
        raise ValueError(f"cov must fit a mean of shape {mean.shape}: a square matrix or its diagonal, not {cov.shape}.")
    if not prior_variance > 0:
        raise ValueError(f"prior_variance must be positive, not {prior_variance!r}.")
    prior_mean = np.broadcast_to(np.asarray(prior_mean, dtype=float), mean.shape)
    return gaussian_kl(mean, cov if cov.ndim == 2 else np.diag(cov), prior_mean, prior_variance * np.eye(len(mean)))


def gibbs_risk(margins, variances):
    """Return mean Φ(−mᵢ/√vᵢ): the 0/1 loss of a linear Gibbs classifier with w from N(μ, Σ), without Monte Carlo.

    Parameters
    ----------
    margins : Products yᵢ·μᵀxᵢ.
    variances : xᵢᵀΣxᵢ > 0, one for each point or one number.

    Examples
    --------
    >>> gibbs_risk([2.0, 2.0, 2.0], 1.0)
    0.02275
    """
    variances = np.asarray(variances, dtype=float)
    if not np.all(variances > 0):
        raise ValueError("variances must be positive: they are xᵀΣx of a positive definite Σ and rows x other than zero.")
    return float(np.mean(ndtr(-np.asarray(margins, dtype=float) / np.sqrt(variances))))


def langford_bound(cosines, delta):
    """Bound the Gibbs risk of N(μ·ŵ, I) on rows of length one, at the μ that makes it least; μ is free.

    Parameters
    ----------
    cosines : y·⟨ŵ, x⟩/(‖ŵ‖‖x‖) of each training point, in [−1, 1].
    delta : Probability of failure.

    Returns
    -------
    bound : On the Gibbs risk; twice it bounds the risk of sign⟨ŵ, x⟩, the majority vote.
    mu : The length μ that was chosen.

    Examples
    --------
    >>> bound, mu = langford_bound(np.full(1000, 0.2), 0.05)
    >>> round(bound, 3), round(mu, 1)
    (0.103, 11.9)
    """
    check_delta(delta)
    cosines = np.asarray(cosines, dtype=float)
    if cosines.ndim != 1 or not len(cosines) or not np.all(np.abs(cosines) <= 1 + 1e-9):
        raise ValueError("cosines must be one row of numbers in [−1, 1]: divide each margin by the norms of w and x.")
    n = len(cosines)

    # μ²/2n alone makes the bound at least 1 − e^(−μ²/2n), above ½ from √(2n·ln 2) on: no better than μ = 0, which is a coin
    low, high = 0.05, max(1.0, sqrt(2 * n))
    for _ in range(REFINEMENTS):
        scales = np.geomspace(low, high, SCALES)
        risks = np.array([gibbs_risk(mu * cosines, 1.0) for mu in scales])
        values = seeger_bound(risks, scales**2 / 2, n, delta)
        best = int(np.argmin(values))
        low, high = scales[max(best - 1, 0)], scales[min(best + 1, SCALES - 1)]
    return float(values[best]), float(scales[best])


def first_order_bound(gibbs, n, divergence, delta):
    """Bound the risk of a majority vote by twice the bound on its Gibbs risk.

    Parameters
    ----------
    gibbs : Mean loss R̂ of the Gibbs classifier; for a forest the mean out-of-bag error of its trees.
    n : Number of points; for a forest the size of the smallest out-of-bag set.
    divergence : KL(Q‖P); 0 for equal weights fixed in advance.
    delta : Probability of failure.

    Examples
    --------
    >>> first_order_bound(0.15, 360, 0.0, 0.05)
    0.447678
    """
    return 2 * seeger_bound(gibbs, divergence, n, delta)


def c_bound(gibbs, disagreement):
    """Bound the risk of a binary majority vote by 1 − (1−2r)²/(1−2d), from what Chebyshev says about the margin of the vote.

    Parameters
    ----------
    gibbs : Upper bound r on the Gibbs risk; from ½ on the answer is 1.
    disagreement : Lower bound d on the probability that two draws disagree. Each of the two bounds pays δ/2.

    Examples
    --------
    >>> c_bound(0.15, 0.2)
    0.183333
    """
    check_mean(gibbs)
    check_mean(disagreement)
    if gibbs >= 0.5:
        return 1.0
    # two draws disagree with probability at most 2r(1−r): beyond it one of the two bounds has failed, and nothing is below 0
    return float(1 - (1 - 2 * gibbs) ** 2 / (1 - 2 * min(disagreement, 2 * gibbs * (1 - gibbs))))


def tandem_bound(tandem, n, divergence, delta):
    """Bound the risk of a majority vote by 4p with the largest p that has kl(t‖p) ≤ (2KL + ln(ξ(n)/δ))/n.

    Parameters
    ----------
    tandem : Mean t over points and pairs of draws of "both err"; for a forest on what both trees left out.
    n : Number of points; for a forest the size of the smallest set that two trees left out.
    divergence : KL(Q‖P), of one draw.
    delta : Probability of failure.

    Examples
    --------
    >>> tandem_bound(0.03, 120, 0.0, 0.05)
    0.453026
    """
    return 4 * seeger_bound(tandem, 2 * divergence, n, delta)
