"""What is checked of a bootstrap: every number again from the seed, and what is left of chance."""

import warnings
from functools import partial

import numpy as np

from lemmata.core.certificate import Check, length, same
from lemmata.core.random import generator
from lemmata.model_selection.bootstrap_intervals import NoIntervalError, chance_of_ends, interval_of
from lemmata.model_selection.bootstrap_replicates import plain, replicate

CHANCE_LIMIT = 0.05  # of an interval's width; an end that is known worse than this changes what is said
ROUNDING = np.sqrt(np.finfo(float).eps)  # share of the estimate below which differences are not looked at
SPREAD_LIMIT = 6.0  # standard errors: a right spread is farther off once in 10⁸ fits


def recomputed_checks(bootstrap, samples, draws):
    """Compare what a bootstrap found with the same without kernels."""
    evaluate = plain(bootstrap.statistic, samples)
    estimate = evaluate(np.arange(draws.n_rows)[None])[0][0]
    replicates = replicate(evaluate, draws, ours=False)[0]
    kept = replicates[np.isfinite(replicates).reshape(len(replicates), -1).all(axis=1)]
    mean, deviation = kept.mean(axis=0), kept.std(axis=0)
    scale = max(float(np.linalg.norm(deviation)), ROUNDING * length(estimate))
    beside = partial(_beside, origin=estimate, floor=scale)
    checks = [
        beside(bootstrap.estimate_, estimate, "estimate", "the estimate is the statistic of these samples"),
        beside(bootstrap.replicates_, replicates, "replicates", "each replicate is the statistic of its resample"),
        beside(bootstrap.mean_, mean, "mean", "the mean is that of the replicates"),
        same(bootstrap.variance_, deviation**2, "variance", "the variance is that of the replicates, divisor B"),
        same(bootstrap.standard_error_, kept.std(axis=0, ddof=1), "error", "the standard error is theirs, divisor B − 1"),
        same(bootstrap.bias_, mean - estimate, "bias", "the bias is their mean less the estimate", floor=scale),
    ]
    if bootstrap.statistic == "mean" and not draws.in_runs:
        checks.append(_spread_check(replicates, samples, draws))
    return checks


def _beside(stored, found, name, claim, *, origin, floor):
    """Compare numbers by how far they lie from an origin: far from zero all of them look alike."""
    alike = np.shape(stored) == np.shape(found)
    return same(stored - origin, found - origin, name, claim, floor=floor) if alike else same(stored, found, name, claim)


def _spread_check(replicates, samples, draws):
    """Compare the variance of means with the ideal bootstrap's, in standard errors of the variance of B numbers."""
    groups = zip(draws.bounds[:-1], draws.bounds[1:], strict=True)
    parts = [samples.arrays[0][draws.members[i:j]] for i, j in groups]
    ideal = sum(len(x) * x.var(axis=0) for x in parts) / draws.n_rows**2
    square = (replicates - replicates.mean(axis=0)) ** 2
    chance = square.std(axis=0) / np.sqrt(len(square))
    off = np.abs(square.mean(axis=0) - ideal)
    rounding = np.finfo(float).eps * draws.n_rows * np.abs(samples.arrays[0]).max(axis=0)  # of a mean of equal rows
    off = np.where(off > rounding**2, off, 0.0)
    value = np.max(np.divide(off, chance, out=np.where(off > 0, np.inf, 0.0), where=chance > 0))
    return Check("spread", float(value), SPREAD_LIMIT, "evidence", "the variance is the ideal bootstrap's but for chance")


def chance_check(bootstrap, level, method):
    """Tell how much of the width of the intervals is chance of the resamples drawn; all of it where there is no interval."""
    worst, rng = 0.0, generator(bootstrap.seed_)
    claim = f"an end of the {method} interval varies so little with the resamples drawn (standard deviation over width)"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of an end at the outermost replicate, which varies as is told here
            for each in bootstrap._evidence(level, method):
                low, high = interval_of(each, level, method)
                if high > low:
                    worst = max(worst, float(chance_of_ends(each, level, method, rng).max()) / (high - low))
    except NoIntervalError as error:
        worst, claim = np.inf, str(error)
    return Check("chance", worst, CHANCE_LIMIT, "evidence", claim)
