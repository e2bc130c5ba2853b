"""What draws say about themselves: R-hat, effective sample sizes, Monte-Carlo standard errors, and the tail of weights.

Draws of a Markov chain are correlated, and the first ones remember the start. Cut every chain in half. With W the mean variance
within the halves, of length h, and B/h the variance of their means, var⁺ = (h−1)/h W + B/h and

    R̂² = var⁺ / W,      ρ_t = 1 − (W − mean autocovariance at lag t) / var⁺,      ESS = draws / (1 + 2 Σ ρ_t).

R̂ is near 1 where all halves tell the same story. The sum is cut where Geyer's theorem [2] says that noise begins: the sums of
neighbors ρ_2k + ρ_2k+1 of a reversible chain are positive and fall, so they are taken while positive, and made to fall.
Both are computed after a change of scale [1]: draws become normal scores of their ranks, so that heavy tails do no harm; R̂ is
also taken of the distances from the median, to see spreads that differ; and the tails have an ESS of their own, that of the
indicators of the 5 % and the 95 % quantile. Limits: R̂ ≤ 1.01, ESS ≥ 400 [1].

The largest weights of importance sampling are fitted by a generalized Pareto law with the profile posterior of [3]. Its shape k̂
says how many moments the weights have (fewer than 1/k̂): above 0.7, averages cannot be trusted at any practical size [4]. The
same holds for draws themselves: the mean of a Cauchy law (k = 1) settles nowhere, though its ranks mix as well as any. A mean
takes k̂ ≤ 0.7 in both tails, and a standard deviation, the mean of squares, k̂ ≤ 0.35.

All functions take draws (chains, draws) or (chains, draws, …) and give a number or one for each of the other entries. Where all
draws are equal, R̂ is 1 and every draw counts; where each half is constant and they differ, R̂ is infinite.

[1] Vehtari, Gelman, Simpson, Carpenter, Bürkner, Bayesian Analysis 16 (2021). [2] Geyer, Statistical Science 7 (1992).
[3] Zhang, Stephens, Technometrics 51 (2009). [4] Vehtari, Simpson, Gelman, Yao, Gabry, JMLR 25 (2024).
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import betaincinv, logsumexp, ndtr, ndtri
from scipy.stats import rankdata

from lemmata.core.certificate import Floats

RHAT_LIMIT = 1.01  # [1]
ESS_LIMIT = 400.0  # [1]: 100 for each of four chains, below which the diagnostics themselves are too noisy
K_LIMIT = 0.7  # [4]
LEAST_DRAWS = 4  # two in each half
LEAST_TAIL = 5  # draws that a tail is fitted to
MOST_TAIL = 4096  # that a tail of draws is fitted to: more would take long and say no more
LEAST_DISTINCT = 20  # different values in a tail of draws: a law on few integers has no tail to speak of
TAIL_ERRORS = 5.0  # standard errors 1/√m of k̂ = 0: an exponential tail of few draws is not to be taken for a heavy one
RESOLUTION = float(np.finfo(float).resolution)  # 1e-15: equal draws may have been computed in different ways
DECIDE = 0.1  # share of all weights: if four or fewer have it, not even 400 draws are effective
TAILS = (0.05, 0.95)
GROUP = 1 << 22  # numbers that are worked on at once

Result: TypeAlias = Any  # a number for (chains, draws), else an array of the shape of the other entries


def _each(measure: Callable[[Floats], Floats], draws: ArrayLike, least: int = LEAST_DRAWS) -> Result:
    """Measure every entry's chains (entries, chains, draws), some entries at a time; NaN where draws are few or not finite."""
    x = np.asarray(draws, dtype=float)
    if x.ndim < 2:
        raise ValueError(f"Draws must have the shape (chains, draws) or (chains, draws, …), got {x.shape}.")
    shape, rows = x.shape[2:], x.reshape(*x.shape[:2], -1)
    found = np.full(rows.shape[2], np.nan)
    if x.shape[1] >= least:
        step = max(GROUP // max(x.shape[0] * x.shape[1], 1), 1)
        for first in range(0, len(found), step):
            part = np.ascontiguousarray(rows[:, :, first : first + step].transpose(2, 0, 1))
            good = np.isfinite(part).all(axis=(1, 2))
            if good.any():
                found[first : first + step][good] = measure(part[good])
    return found.reshape(shape) if shape else float(found[0])


def _halves(x: Floats) -> Floats:
    """Cut every chain in half; of an odd number of draws, the one in the middle is left out."""
    half = x.shape[2] // 2
    return np.concatenate([x[:, :, :half], x[:, :, x.shape[2] - half :]], axis=1)


def _scores(x: Floats) -> Floats:
    """Replace draws by the normal scores of their ranks among all draws of their entry."""
    flat = x.reshape(len(x), -1)
    return np.asarray(ndtri((rankdata(flat, axis=1) - 0.375) / (flat.shape[1] + 0.25))).reshape(x.shape)


def _folded(x: Floats) -> Floats:
    """Give the distances from the median."""
    return np.abs(x - np.median(x, axis=(1, 2), keepdims=True))


def _ratio(x: Floats) -> Floats:
    """Give R-hat of chains as they are."""
    n = x.shape[2]
    within, between = x.var(axis=2, ddof=1).mean(axis=1), x.mean(axis=2).var(axis=1, ddof=1)
    rounding = RESOLUTION * np.abs(x).max(axis=(1, 2))
    still = np.ptp(x, axis=2).max(axis=1) <= rounding
    ratio = np.sqrt((n - 1) / n + between / np.where(still, 1.0, within))
    return np.where(still, np.where(np.ptp(x, axis=(1, 2)) <= rounding, 1.0, np.inf), ratio)


def _autocovariances(x: Floats) -> Floats:
    """Give the autocovariances of chains at all lags, divided by the number of draws at every lag."""
    n = x.shape[2]
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(x - x.mean(axis=2, keepdims=True), n=size, axis=2)
    return np.asarray(irfft(np.abs(spectrum) ** 2, n=size, axis=2)[:, :, :n]) / n


def _correlations(x: Floats) -> Floats:
    """Give ρ_t of all chains together (entries, lags), NaN where all draws are equal."""
    n = x.shape[2]
    covariances = _autocovariances(x).mean(axis=1)
    within = covariances[:, 0] * n / (n - 1)
    total = covariances[:, 0] + (x.mean(axis=2).var(axis=1, ddof=1) if x.shape[1] > 1 else 0.0)
    equal = np.ptp(x, axis=(1, 2)) <= RESOLUTION * np.abs(x).max(axis=(1, 2))
    rho = 1.0 - (within[:, None] - covariances) / np.where(equal, np.nan, total)[:, None]
    rho[:, 0] = np.where(equal, np.nan, 1.0)
    return np.asarray(rho)


def _time(x: Floats) -> Floats:
    """Sum correlations while sums of neighbors are positive, made to fall: draws that are worth one independent draw."""
    n, rho = x.shape[2], _correlations(x)
    last = max(-(-(n - 2) // 2) - 1, 0)  # correlations near the longest lag come from too few pairs of draws
    pairs = rho[:, 0 : 2 * last + 1 : 2] + rho[:, 1 : 2 * last + 2 : 2]
    negative = np.concatenate([pairs[:, :last] <= 0, np.ones((len(x), 1), dtype=bool)], axis=1)
    cut = negative.argmax(axis=1)
    falling = np.cumsum(np.minimum.accumulate(pairs, axis=1), axis=1)
    rows = np.arange(len(x))
    total = np.where(cut > 0, falling[rows, np.maximum(cut - 1, 0)], 0.0)
    tau = -1.0 + 2.0 * total + np.maximum(rho[rows, 2 * cut], 0.0)
    size = x.shape[1] * n
    return np.where(np.isnan(tau), 1.0, np.maximum(tau, 1.0 / np.log10(size)))  # better than independent, but within reason


def _size(x: Floats) -> Floats:
    return np.asarray(x.shape[1] * x.shape[2] / _time(x))


def _quantile_size(x: Floats, q: float) -> Floats:
    at = np.quantile(x, q, axis=(1, 2), keepdims=True)
    return _size(_halves((x <= at).astype(float)))


def split_rhat(draws: ArrayLike) -> Result:
    """Compare the halves of chains as they are, without a change of scale; NaN for fewer than 4 draws.

    Examples
    --------
    >>> split_rhat(np.array([[1.0, 2.0, 1.0, 2.0], [2.0, 1.0, 2.0, 1.0]]))
    0.7071
    >>> split_rhat(np.array([[1.0, 2.0, 1.0, 2.0], [9.0, 8.0, 9.0, 8.0]]))
    5.759
    """
    return _each(lambda x: _ratio(_halves(x)), draws)


def rhat(draws: ArrayLike) -> Result:
    """Compare the halves of chains by their ranks, for location and for spread: the larger of the two R-hats.

    Examples
    --------
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    >>> rhat(draws).round(3)
    array([1.   , 1.001])
    >>> round(rhat(draws[:, :, 0] * [[1], [1], [1], [3]]), 2)  # one chain is wider: means agree, spreads do not
    1.16
    """

    def both(x: Floats) -> Floats:
        x = _halves(x)
        return np.maximum(_ratio(_scores(x)), _ratio(_scores(_folded(x))))

    return _each(both, draws)


def ess_mean(draws: ArrayLike) -> Result:
    """Count how many independent draws would tell the mean as well."""
    return _each(lambda x: _size(_halves(x)), draws)


def ess_bulk(draws: ArrayLike) -> Result:
    """Count how many independent draws would tell as much about the location, in the scale of normal scores.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = np.zeros((4, 1000))
    >>> for t in range(1, 1000):
    ...     x[:, t] = 0.8 * x[:, t - 1] + rng.standard_normal(4)
    >>> int(ess_bulk(x)), int(4000 * (1 - 0.8) / (1 + 0.8))  # and what theory says
    (432, 444)
    """
    return _each(lambda x: _size(_scores(_halves(x))), draws)


def ess_quantile(draws: ArrayLike, q: float) -> Result:
    """Count how many independent draws would tell the q-quantile as well."""
    return _each(lambda x: _quantile_size(x, q), draws)


def ess_tail(draws: ArrayLike) -> Result:
    """Count how many independent draws would tell the 5 % and 95 % quantiles as well; the smaller of the two."""
    return _each(lambda x: np.minimum(_quantile_size(x, TAILS[0]), _quantile_size(x, TAILS[1])), draws)


def ess_sd(draws: ArrayLike) -> Result:
    """Count how many independent draws would tell the variance as well."""
    return _each(lambda x: _size(_halves((x - x.mean(axis=(1, 2), keepdims=True)) ** 2)), draws)


def mcse_mean(draws: ArrayLike) -> Result:
    """Give the Monte-Carlo standard error of the mean, sd / √ESS.

    Examples
    --------
    >>> round(mcse_mean(np.random.default_rng(0).standard_normal((4, 2500))), 3)
    0.01
    """
    return _each(lambda x: x.std(axis=(1, 2), ddof=1) / np.sqrt(_size(_halves(x))), draws)


def mcse_sd(draws: ArrayLike) -> Result:
    """Give the Monte-Carlo standard error of the standard deviation, from that of the variance."""

    def error(x: Floats) -> Floats:
        squares = (x - x.mean(axis=(1, 2), keepdims=True)) ** 2
        variance = squares.mean(axis=(1, 2))
        spread = np.maximum((squares**2).mean(axis=(1, 2)) - variance**2, 0.0)
        still = variance == 0
        return np.where(still, 0.0, np.sqrt(spread / _size(_halves(squares)) / np.where(still, 1.0, 4.0 * variance)))

    return _each(error, draws)


def mcse_quantile(draws: ArrayLike, q: float) -> Result:
    """Give the Monte-Carlo standard error of the q-quantile: half the way between draws a standard error of q up and down."""

    def error(x: Floats) -> Floats:
        size, n = _quantile_size(x, q), x.shape[1] * x.shape[2]
        ordered = np.sort(x.reshape(len(x), -1), axis=1)
        low, high = (betaincinv(size * q + 1, size * (1 - q) + 1, ndtr(z)) * n - 1 for z in (-1.0, 1.0))
        rows = np.arange(len(x))
        upper = ordered[rows, np.ceil(np.minimum(high, n - 1)).astype(int)]
        return np.asarray(upper - ordered[rows, np.floor(np.maximum(low, 0)).astype(int)]) / 2

    return _each(error, draws)


def autocorrelation_time(draws: ArrayLike) -> Result:
    """Give how many draws of the chains, as they are, are worth one independent draw; 1 where all are equal.

    Examples
    --------
    >>> autocorrelation_time(np.ones((2, 100)))
    1.0
    """
    return _each(_time, draws)


def autocorrelation(draws: ArrayLike) -> Floats:
    """Give the autocorrelations ρ_t of all chains together at all lags (lags, …); NaN where all draws are equal.

    Examples
    --------
    >>> autocorrelation([[1.0, -1.0] * 50])[:3].round(2)
    array([ 1.  , -1.  ,  0.97])
    """
    x = np.asarray(draws, dtype=float)
    rows = x.reshape(*x.shape[:2], -1).transpose(2, 0, 1)
    return _correlations(rows).T.reshape(x.shape[1:])


def pareto_fit(exceedances: Floats) -> tuple[float, float]:
    """Fit a generalized Pareto law to sorted positive numbers; return its shape k̂ and its scale.

    The scale parameter b = −k/σ has a posterior on a grid, with k at its best for each b; its mean gives both. The shape is
    drawn a little towards ½, as if ten draws had said so.
    """
    x, n = exceedances, len(exceedances)
    grid = 30 + int(n**0.5)
    b = 1 / x[-1] + (1 - np.sqrt(grid / (np.arange(grid) + 0.5))) / (3 * x[int(n / 4 + 0.5) - 1])
    b[b == 0] = RESOLUTION / x[-1]  # the exponential law, of shape 0, is a limit
    shapes = np.log1p(-b[:, None] * x).mean(axis=1)
    profile = n * (np.log(-b / shapes) - shapes - 1)
    weights = np.exp(profile - logsumexp(profile))
    weights[weights < 10 * np.finfo(float).eps] = 0.0
    best = float((b * weights).sum() / weights.sum())
    k = float(np.log1p(-best * x).mean())
    return (n * k + 5.0) / (n + 10.0), -k / best


def tail_shape(draws: ArrayLike, size: ArrayLike | None = None) -> tuple[Result, Result]:
    """Fit both tails of draws by Pareto laws; return the larger shape k̂, and how many independent draws it comes from.

    The outermost quarter of a tail must bear the fit out by at least half of its k̂, which a second mode far away does not.
    k̂ is −∞ where the tails have too few different values, as those of a law on few integers, and NaN where draws are few or not
    finite.

    Parameters
    ----------
    size : Effective number of draws in the tails. Default: `ess_tail`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> [round(tail_shape(draw((4, 5000)))[0], 1) for draw in (rng.standard_cauchy, rng.standard_exponential, rng.random)]
    [1.0, 0.0, -0.9]
    """
    x = np.asarray(draws, dtype=float)
    n = x.shape[0] * x.shape[1]
    sizes = np.ravel(np.minimum(ess_tail(x) if size is None else size, n))
    rows = x.reshape(n, -1).T
    found = np.full((2, len(rows)), np.nan)
    for i in range(len(rows)):
        if not sizes[i] >= 1 or not np.isfinite(rows[i]).all():
            continue
        tail = int(min(n / 5, 3 * n / np.sqrt(sizes[i])))  # 3 √n of independent draws [4]
        found[:, i] = -np.inf, tail * sizes[i] / n
        if tail >= LEAST_TAIL and np.ptp(rows[i]) != 0:
            found[0, i] = max(_upper_shape(side, tail) for side in (rows[i], -rows[i]))
    shape, counted = found.reshape(2, *x.shape[2:]) if x.ndim > 2 else found[:, 0].tolist()
    return shape, counted


def _upper_shape(x: Floats, tail: int) -> float:
    top = np.sort(np.partition(x, len(x) - tail - 1)[len(x) - tail - 1 :])
    over = top[top > top[0]] - top[0]
    if len(over) < LEAST_TAIL or (np.diff(over) > 0).sum() + 1 < LEAST_DISTINCT:
        return -np.inf
    some = over[:: -(len(over) // MOST_TAIL + 1)][::-1] / over[-1]  # evenly spaced, the largest among them
    shape = pareto_fit(some)[0]
    outer = some[-(len(some) // 4) - 1 :] - some[-(len(some) // 4) - 1]
    outer = outer[outer > 0]
    if shape <= 0 or len(outer) < LEAST_TAIL:
        return shape
    return min(shape, 2 * pareto_fit(outer)[0])  # a gap before a second mode looks heavy; but then the mode itself ends


def spread_limit(counted: ArrayLike) -> Floats:
    """Give the largest k̂ with which a standard deviation is to be believed, for tails of so many independent draws.

    Examples
    --------
    >>> spread_limit([60.0, 400.0]).round(2)
    array([0.65, 0.35])
    """
    return np.maximum(K_LIMIT / 2, TAIL_ERRORS / np.sqrt(np.maximum(np.asarray(counted, dtype=float), 1.0)))


def pareto_smooth(log_weights: ArrayLike, efficiency: float = 1.0) -> tuple[Floats, float]:
    """Replace the largest weights by quantiles of a Pareto law fitted to them; return normalized log weights, and k̂.

    k̂ is −∞ where the largest weights are all equal, but for fewer than five that do not make up a tenth of all; +∞ where fewer
    than five do; and NaN for fewer than 25 weights. Nothing is replaced then.

    Parameters
    ----------
    efficiency : ESS / draws of the draws that the weights belong to; 1 for independent ones.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal(4000)
    >>> k_of = lambda scale: round(pareto_smooth((1 - 1 / scale**2) * x**2 / 2)[1], 2)
    >>> k_of(0.5), k_of(2.0)  # N(0, scale²) by draws from N(0, 1): the tail of the wider one is missed
    (-1.78, 0.68)
    """
    logs = np.array(log_weights, dtype=float)
    n = logs.size
    logs -= logs.max()
    tail = int(3 * np.sqrt(n / efficiency) if n * efficiency > 225 else n / 5)
    k = np.nan
    if tail >= LEAST_TAIL:
        flat = logs.reshape(-1)
        order = np.argsort(flat, kind="stable")
        cutoff = float(np.exp(flat[order[n - tail - 1]]))
        chosen = order[n - tail :]
        chosen = chosen[np.exp(flat[chosen]) > cutoff]
        if len(chosen) < LEAST_TAIL:
            k = _shape_of_few(np.exp(flat[order[n - tail :]]), np.exp(flat))
        elif np.ptp(flat[chosen]) == 0:
            k = -np.inf
        else:
            k, sigma = pareto_fit(np.exp(flat[chosen]) - cutoff)
            p = (np.arange(len(chosen)) + 0.5) / len(chosen)
            smooth = cutoff + sigma * (np.expm1(-k * np.log1p(-p)) / k if k else -np.log1p(-p))
            flat[chosen] = np.minimum(np.log(smooth), 0.0)
    return np.asarray(logs - logsumexp(logs)), float(k)


def _shape_of_few(largest: Floats, weights: Floats) -> float:
    """Judge fewer than five weights above many equal ones, as a discrete target has them, or above nothing at all."""
    few = weights[weights > largest[0]].sum()
    return float(-np.inf if largest[0] > 0 and few <= DECIDE * weights.sum() else np.inf)
