"""Bounds for regression: what can be said about errors that have no largest value.

Without an assumption on moments, no sample of any size gives an upper bound on an expected loss that is not bounded (Bahadur
and Savage): a rare enough catastrophe is never seen. Three things can be said nevertheless, from a hold-out of n residuals:

- how often |y − f| exceeds a t declared in advance, by Clopper-Pearson; or for all t at once, + √(ln(1/δ)/2n) (Dvoretzky,
  Kiefer and Wolfowitz with Massart's constant; δ ≤ ½);
- a bound on a quantile of |y − f|: the r-th smallest residual, for the least r with P(Bin(n, q) ≤ r−1) ≥ 1 − δ;
- the expected loss clipped at a B declared in advance, not the largest residual: divided by B it lies in [0, 1].

From the training set itself: the absolute loss clipped at B is 1-Lipschitz and the squared one 2√B-Lipschitz, so a linear
model has risk ≤ mean + 2LΛ√trace/n + 3B√(ln(2/(δ·v_j))/2n), where Λ = 2ʲ runs over a grid, as the norm of w was learned.

Bahadur & Savage, Annals of Mathematical Statistics 27 (1956). Massart, Annals of Probability 18 (1990).
"""

from math import ceil, inf, log, log1p, log2, sqrt

import numpy as np

from lemmata.theory.bounds.holdout import bentkus_bound, betting_bound, clopper_pearson, kl_bound
from lemmata.theory.bounds.tails import check_count, check_delta, grid_weight, log_binomial_cdf

SMALLEST = -64  # exponent of the smallest norm on the grid


def exceedance_bound(exceed, n, delta):
    """Bound P(|y − f| > t) for a t declared in advance.

    Parameters
    ----------
    exceed : Number of the n residuals that are larger than t.
    n : Size of the hold-out.
    delta : Probability of failure.

    Examples
    --------
    >>> exceedance_bound(5, 100, 0.05)
    0.102253
    """
    return clopper_pearson(exceed, n, delta)


def dkw_margin(n, delta):
    """Return √(ln(1/δ)/2n): P(|y − f| > t) is at most the frequency plus this, for all t at once.

    Parameters
    ----------
    n : Size of the hold-out.
    delta : Probability of failure, at most ½.

    Examples
    --------
    >>> dkw_margin(250, 0.05)
    0.077405
    """
    check_delta(delta)
    if delta > 0.5:
        raise ValueError(f"The one-sided inequality of Dvoretzky, Kiefer and Wolfowitz needs delta ≤ 0.5, not {delta!r}.")
    return sqrt(-log(delta) / (2 * check_count(n, "n")))


def quantile_rank(n, level, delta):
    """Return the least r so that the r-th smallest of n residuals bounds their quantile with probability 1 − δ.

    Parameters
    ----------
    n : Size of the hold-out.
    level : Level q of the quantile, in (0, 1).
    delta : Probability of failure.

    Returns
    -------
    rank : Whole number from 1 to n, or None if n is too small for any: q^n > δ.

    Examples
    --------
    >>> quantile_rank(250, 0.9, 0.05), quantile_rank(20, 0.9, 0.05)
    (234, None)
    """
    check_delta(delta)
    n = check_count(n, "n")
    if not 0 < level < 1:
        raise ValueError(f"The level of a quantile must lie strictly between 0 and 1, not {level!r}.")
    goal = log1p(-delta)
    if log_binomial_cdf(n - 1, n, level) < goal:
        return None
    low, high = 0, n
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if log_binomial_cdf(middle - 1, n, level) >= goal else (middle, high)
    return high


def clipped_loss_bound(losses, upper, delta, form="betting"):
    """Bound the expectation of min(loss, B).

    Parameters
    ----------
    losses : Nonnegative losses on a hold-out, in the order in which they came.
    upper : Bound B, declared before the data were seen; larger losses count as B.
    delta : Probability of failure.
    form : "betting", or "tail" for the smaller of the kl and the Bentkus bound, which does not depend on the order.

    Examples
    --------
    >>> losses = np.tile([0.5, 0.1, 0.3, 1.1, 0.2], 50)
    >>> clipped_loss_bound(losses, 1.0, 0.05), clipped_loss_bound(losses, 1.0, 0.05, form="tail")
    (0.472395, 0.487884)
    """
    losses = np.asarray(losses, dtype=float)
    if not 0 < upper < inf:
        raise ValueError(f"upper must be a positive number, not {upper!r}; no finite sample bounds an unbounded loss.")
    if losses.ndim != 1 or not len(losses) or not losses.min() >= 0:
        raise ValueError("losses must be one row of numbers of at least 0.")
    clipped = np.minimum(losses / upper, 1.0)
    if form == "betting":
        return float(upper * betting_bound(clipped, delta))
    if form == "tail":
        mean, n = float(clipped.mean()), len(clipped)
        return float(upper * min(kl_bound(mean, n, delta), bentkus_bound(mean, n, delta)))
    raise ValueError(f'form must be "betting" or "tail", not {form!r}.')


def rademacher_regression_bound(mean, lipschitz, norm, trace, n, delta, upper):
    """Bound the expected clipped loss of a linear model on its training set by mean + 2LΛ√trace/n + 3B√(ln(2/(δ·v_j))/2n).

    Parameters
    ----------
    mean : Mean of the n training losses, each clipped at B.
    lipschitz : Constant L of the clipped loss: 1 for the absolute, 2√B for the squared one.
    norm : Norm of w, an intercept that was not penalized included; the least Λ = 2ʲ above it or a larger one is used.
    trace : Sum of K(x, x) over the training points.
    n : Number of training points.
    delta : Probability of failure.
    upper : Bound B, declared before the data were seen.

    Examples
    --------
    >>> rademacher_regression_bound(0.1, 1.0, norm=0.9, trace=10_000.0, n=10_000, delta=0.05, upper=1.0)
    0.166415
    """
    check_delta(delta)
    n = check_count(n, "n")
    if not (lipschitz > 0 and 0 <= norm < inf and 0 <= trace < inf and upper > 0 and 0 <= mean <= upper):
        raise ValueError("lipschitz and upper must be positive, norm and trace not negative, and mean must lie in [0, upper].")
    least = max(ceil(log2(norm)), SMALLEST) if norm > 0 else SMALLEST
    bounds = []
    for j in range(least, max(least, 0) + 1):  # a larger Λ may have a larger weight
        paid = log(2 / (delta * grid_weight(j)))
        bounds.append(mean + 2 * lipschitz * 2.0**j * sqrt(trace) / n + 3 * upper * sqrt(paid / (2 * n)))
    return float(min(bounds))
