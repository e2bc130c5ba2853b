"""Test-set bounds: what n fresh points say about the risk of a model that was fixed before they were seen.

Losses lie in [0, 1], the points are drawn independently from one distribution, and each function returns an upper bound on
the expected loss that fails with probability at most δ. For losses that are 0 or 1 the number of errors k is all there is,
and Clopper-Pearson inverts its distribution exactly: no valid bound that grows with k is smaller. For graded losses:

- kl, from E e^(λ·loss) ≤ that of a coin with the same mean; Hoeffding is its quadratic relaxation: CP ≤ kl ≤ Hoeffding;
- Bentkus [1]: the tail of the sum is at most e times the binomial tail, so CP(⌈n·mean⌉, n, δ/e);
- empirical Bernstein [2], which pays for the variance rather than for the range, and wins where the variance is small;
- betting [3]: a gambler who does not believe the risk to be m stakes against it, each stake a function of the past. Were m
  the risk, the capital would be a nonnegative martingale, which reaches 1/δ with probability at most δ (Ville). The bound is
  the least m at which the capital did. Order matters: the points must be taken as they came.

Clopper-Pearson on graded losses rounded down or to the nearest count is not a bound. A model scored after others on the same
points pays δ/M, M counting all of them. If each point first tests a model and then trains it (progressive validation [4]),
the mean loss speaks of the average of the models, not of the last. Errors of cross-validation are no test set either: what
can be said is about the model of a fold picked at random.

[1] Bentkus, Annals of Probability 32 (2004). [2] Maurer & Pontil, COLT (2009).
[3] Waudby-Smith & Ramdas, Journal of the Royal Statistical Society B 86 (2024). [4] Blum, Kalai & Langford, COLT (1999).
"""

from math import ceil, log

import numpy as np
from scipy.special import betaincinv

from lemmata.probability.concentration import hoeffding
from lemmata.theory.bounds.tails import (
    binomial_upper,
    check_count,
    check_delta,
    check_errors,
    check_mean,
    exponential_upper,
    kl_upper,
    pac_bayes_constant,
)

EPS = float(np.finfo(float).eps)
PASSES = 50  # halvings of [0, 1] in search of the capital's first success
STAKE = 0.75  # largest part of the capital that one point can cost


def check_losses(losses, least=1):
    """Return losses in [0, 1] as a float array of at least `least` values."""
    losses = np.asarray(losses, dtype=float)
    if losses.ndim != 1 or len(losses) < least:
        raise ValueError(f"losses must be one row of at least {least} numbers, not an array of shape {losses.shape}.")
    if not (losses.min() >= 0 and losses.max() <= 1):
        raise ValueError("losses must lie in [0, 1]; divide them by a bound declared before the data were seen.")
    return losses


def clopper_pearson(errors, n, delta):
    """Bound the risk by the p at which so few errors have probability δ; for 0/1 losses nothing valid is smaller.

    Parameters
    ----------
    errors : Number of errors on the hold-out.
    n : Size of the hold-out.
    delta : Probability of failure.

    Examples
    --------
    >>> clopper_pearson(5, 100, 0.05), clopper_pearson(0, 100, 0.05)
    (0.102253, 0.029513)
    """
    check_delta(delta)
    return binomial_upper(errors, n, log(delta))


def clopper_pearson_interval(errors, n, delta):
    """Bound the risk from both sides, each with δ/2.

    Parameters
    ----------
    errors : Number of errors on the hold-out.
    n : Size of the hold-out.
    delta : Probability that the risk lies outside.

    Returns
    -------
    low, high : The two ends.

    Examples
    --------
    >>> clopper_pearson_interval(5, 100, 0.05)
    (0.016432, 0.112835)
    """
    check_delta(delta)
    errors, n = check_errors(errors, n)
    low = float(betaincinv(errors, n - errors + 1, delta / 2)) if errors else 0.0
    return low, binomial_upper(errors, n, log(delta / 2))


def kl_bound(mean, n, delta):
    """Bound the risk by the largest p with kl(mean‖p) ≤ ln(1/δ)/n (Chernoff, Hoeffding).

    Parameters
    ----------
    mean : Mean of n losses in [0, 1].
    n : Number of losses.
    delta : Probability of failure.

    Examples
    --------
    >>> kl_bound(0.05, 100, 0.05)
    0.121527
    """
    check_delta(delta)
    return kl_upper(mean, -log(delta) / check_count(n, "n"))


def hoeffding_bound(mean, n, delta, upper=1.0):
    """Bound the risk by mean + B·√(ln(1/δ)/2n).

    Parameters
    ----------
    mean : Mean of n losses in [0, B].
    n : Number of losses.
    delta : Probability of failure.
    upper : Bound B of the losses, declared before the data were seen.

    Examples
    --------
    >>> hoeffding_bound(0.05, 100, 0.05)
    0.172387
    """
    check_delta(delta)
    if not (upper > 0 and 0 <= mean <= upper):
        raise ValueError(f"The mean of losses in [0, upper] lies in [0, upper], upper > 0; mean is {mean!r}, upper {upper!r}.")
    return float(mean + hoeffding(n=check_count(n, "n"), delta=delta, width=upper, sides=1))


def bentkus_bound(mean, n, delta):
    """Bound the risk by Clopper-Pearson at the count rounded up and at δ/e; for graded losses in [0, 1].

    The smaller of this and `kl_bound` costs nothing: both bound the same tail of the same mean.

    Parameters
    ----------
    mean : Mean of n losses in [0, 1].
    n : Number of losses.
    delta : Probability of failure.

    Examples
    --------
    >>> bentkus_bound(0.05, 100, 0.05)
    0.117301
    """
    check_delta(delta)
    check_mean(mean)
    n = check_count(n, "n")
    # a whole sum over n, times n, may come back a rounding above the whole number
    return binomial_upper(ceil(n * mean * (1 - 4 * EPS)), n, log(delta) - 1)


def empirical_bernstein_bound(losses, delta):
    """Bound the risk by mean + √(2V ln(2/δ)/n) + 7 ln(2/δ)/(3(n−1)), V the unbiased sample variance.

    Parameters
    ----------
    losses : At least two losses in [0, 1].
    delta : Probability of failure; the 2/δ pays for the variance too.

    Examples
    --------
    >>> empirical_bernstein_bound([1.0] * 5 + [0.0] * 95, 0.05)
    0.19644
    """
    check_delta(delta)
    losses = check_losses(losses, least=2)
    n, paid = len(losses), log(2 / delta)
    return float(losses.mean() + np.sqrt(2 * losses.var(ddof=1) * paid / n) + 7 * paid / (3 * (n - 1)))


def betting_bound(losses, delta):
    """Bound the risk by the least m at which a gambler against m multiplies his capital by 1/δ at some time.

    With s²₀ = 1/4, μₜ = (½ + Σ_{i≤t} zᵢ)/(t+1) and s²ₜ = (¼ + Σ_{i≤t} (zᵢ − μᵢ)²)/(t+1), the stake is the smaller of
    λₜ = √(2 ln(1/δ)/(n·s²ₜ₋₁)) and ¾/(1−m), and the capital is Πᵢ (1 − stakeᵢ·(zᵢ − m)), which grows with m.

    Parameters
    ----------
    losses : Losses in [0, 1] in the order in which they came; to sort them, or to shuffle them after a look, is forbidden.
    delta : Probability of failure.

    Examples
    --------
    >>> evenly, early = np.zeros(100), np.zeros(100)
    >>> evenly[19::20] = early[:5] = 1
    >>> betting_bound(evenly, 0.05), betting_bound(early, 0.05)
    (0.11236, 0.116357)
    """
    check_delta(delta)
    losses = check_losses(losses)
    n, goal = len(losses), -log(delta)
    times = np.arange(2.0, n + 2)
    means = (0.5 + np.cumsum(losses)) / times
    variances = (0.25 + np.cumsum((losses - means) ** 2)) / times
    stakes = np.sqrt(2 * goal / (n * np.append(0.25, variances[:-1])))
    low, high = 0.0, 1.0
    for _ in range(PASSES):
        m = (low + high) / 2
        capital = np.cumsum(np.log1p(-np.minimum(stakes, STAKE / (1 - m)) * (losses - m)))
        low, high = (low, m) if capital.max() >= goal else (m, high)
    return high


def progressive_bound(mean, n, delta):
    """Bound the average risk of models each tested on a point before it was trained on it, by mean + √(ln(1/δ)/2n) (Azuma).

    Parameters
    ----------
    mean : Mean of the n losses in [0, 1], each of the model that had not seen the point yet.
    n : Number of points.
    delta : Probability of failure.

    Returns
    -------
    bound : On the *average* risk of the n models; it says nothing about the last one.

    Examples
    --------
    >>> progressive_bound(0.1, 1000, 0.05)
    0.138702
    """
    return hoeffding_bound(mean, n, delta)


def progressive_exponential_bound(mean, n, delta, rates):
    """Bound the same average by the least (1 − e^(−λ·mean − ln(M/δ)/n))/(1 − e^(−λ)) of M rates λ, smaller for small means.

    Inverting the binomial or the kl bound here has no proof: the risks in the average are random themselves.

    Parameters
    ----------
    mean : Mean of the n losses in [0, 1], each of the model that had not seen the point yet.
    n : Number of points.
    delta : Probability of failure.
    rates : Positive number, or several fixed before the data were seen; each pays δ/M.

    Examples
    --------
    >>> progressive_exponential_bound(0.1, 1000, 0.05, rates=1.0)
    0.154827
    """
    check_delta(delta)
    return exponential_upper(mean, -log(delta), n, rates)


def cross_validation_bound(mean, folds, n, delta):
    """Bound the risk of the model of a random fold by kl(mean‖risk) ≤ ln(ξ(m)/δ)/m, m = ⌊n/K⌋ (convexity over the folds).

    Parameters
    ----------
    mean : Mean of the n losses in [0, 1], each by the model that was fitted without the point's fold.
    folds : Number K of folds.
    n : Number of points.
    delta : Probability of failure; not divided by K.

    Returns
    -------
    bound : On the mean risk of the K models; it says nothing about the model refitted on all points.

    Examples
    --------
    >>> cross_validation_bound(0.1, folds=5, n=1000, delta=0.05)
    0.188108
    """
    check_delta(delta)
    n, folds = check_count(n, "n"), check_count(folds, "folds", 2)
    if folds > n:
        raise ValueError(f"There cannot be more folds than points: folds is {folds} and n is {n}.")
    size = n // folds
    return kl_upper(mean, log(pac_bayes_constant(size) / delta) / size)
