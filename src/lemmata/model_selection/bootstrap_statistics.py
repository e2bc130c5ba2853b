"""Statistics that have a name: their compiled kernel, the same in NumPy's words, and their values with each row left out."""

from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from scipy.special import betainc

from lemmata.model_selection.bootstrap_kernels import correlations, means, quantiles, variances

CANCELED = 1e-6  # share of a sum of squares below which what is left of it without a row has lost too many digits


class Statistic(NamedTuple):
    """What the bootstrap has to know of a statistic that it computes itself."""

    n_samples: int
    prepare: Callable[..., tuple]  # samples -> (arguments of the kernel, function from what it gives to the statistic)
    plain: Callable[..., Any]  # the same on resampled arrays, along an axis, in the words of NumPy
    left_out: Callable[..., np.ndarray]  # values with each row left out
    to_line: Callable | None = None  # scale on which the statistic is nearly normal, the slope there, and the way back
    slope: Callable | None = None
    from_line: Callable | None = None


def _mean(x):
    center = x.mean()  # what is left without it does not cancel
    return means, (x - center,), lambda value, error: (value + center, error)


def _variance(x):
    return variances, (x - x.mean(),), lambda value, error: (value, error)


def _deviation(x):
    def root(value, error):
        deviation = np.sqrt(value)
        return deviation, np.divide(error, 2 * deviation, out=np.zeros_like(error), where=deviation > 0)

    return variances, (x - x.mean(),), root


def _correlation(x, y):
    return correlations, (scaled(x), scaled(y)), lambda value, error: (value, error)


def _quantile(share):
    def prepare(x):
        order, n, center = np.argsort(x, kind="stable"), len(x), np.quantile(x, share)
        rank = np.empty(n, dtype=np.int64)
        rank[order] = np.arange(n)
        chance = betainc((n + 1) * share, (n + 1) * (1 - share), np.arange(n + 1) / n)
        return quantiles, (rank, x[order], center, share, chance), lambda value, error: (value, error)

    return prepare


def scaled(x):
    """Center values and divide them by the largest, so that no power of them is too large or too small."""
    x = x - x.mean()
    largest = np.abs(x).max()
    return x / largest if largest > 0 else x


def _mean_left_out(x):
    n = len(x)
    return x.mean() - (x - x.mean()) / (n - 1)


def _variance_left_out(x):
    n, d = len(x), scaled(x)
    left = (d**2).sum() - d**2 * n / (n - 1)
    value = x.var(ddof=1) / ((d**2).sum() / (n - 1)) * left / (n - 2) if n > 2 and d.any() else np.zeros(n)
    for i in np.flatnonzero(left < CANCELED * (d**2).sum()):
        value[i] = np.delete(x, i).var(ddof=1) if n > 2 else 0.0
    return value


def _correlation_left_out(x, y):
    n, a, b = len(x), scaled(x), scaled(y)
    xx, yy, xy = (u.sum() - u * n / (n - 1) for u in (a**2, b**2, a * b))
    lost = (xx < CANCELED * (a**2).sum()) | (yy < CANCELED * (b**2).sum())
    value = xy / np.sqrt(np.where(lost, 1.0, xx * yy))
    for i in np.flatnonzero(lost):
        value[i] = _plain_correlation(np.delete(x, i), np.delete(y, i), axis=0)
    return value


def _quantile_left_out(share):
    def left_out(x):
        n, order = len(x), np.argsort(x, kind="stable")
        ordered, place = x[order], np.arange(n)
        at = share * (n - 2)
        low = int(at)
        high = min(low + 1, n - 2)
        below, above = ordered[low + (low >= place)], ordered[high + (high >= place)]
        values = np.empty(n)
        values[order] = below + (at - low) * (above - below)
        return values

    return left_out


def _plain_correlation(x, y, axis):
    a, b = x - x.mean(axis=axis, keepdims=True), y - y.mean(axis=axis, keepdims=True)
    varies = (np.ptp(x, axis=axis) > 0) & (np.ptp(y, axis=axis) > 0)
    product = np.sqrt((a**2).sum(axis=axis)) * np.sqrt((b**2).sum(axis=axis))
    return np.where(varies, (a * b).sum(axis=axis) / np.where(varies, product, 1.0), np.nan)


def quantile(share):
    """Make the statistic that is a quantile, interpolated between two values as `numpy.quantile` does."""
    return Statistic(1, _quantile(share), lambda x, axis: np.quantile(x, share, axis=axis), _quantile_left_out(share))


_LOG = {"to_line": np.log, "slope": lambda value: 1 / value, "from_line": np.exp}
NAMED = {
    "mean": Statistic(1, _mean, lambda x, axis: x.mean(axis=axis), _mean_left_out),
    "median": quantile(0.5),
    "variance": Statistic(1, _variance, lambda x, axis: x.var(axis=axis, ddof=1), _variance_left_out, **_LOG),
    "deviation": Statistic(
        1, _deviation, lambda x, axis: x.std(axis=axis, ddof=1), lambda x: np.sqrt(_variance_left_out(x)), **_LOG
    ),
    "correlation": Statistic(
        2, _correlation, _plain_correlation, _correlation_left_out, np.arctanh, lambda r: 1 / (1 - r**2), np.tanh
    ),
}


def named(statistic):
    """Look up a statistic by name, or by a number: the quantile of that probability; None for a function.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 10.0])
    >>> float(named("median").plain(x, axis=0)), named(0.25).left_out(x)
    (2.5, array([2.5, 2. , 1.5, 1.5]))
    """
    if callable(statistic):
        return None
    if isinstance(statistic, str) and statistic in NAMED:
        return NAMED[statistic]
    if isinstance(statistic, Real) and 0 < statistic < 1:
        return quantile(float(statistic))
    raise ValueError(
        f"statistic must be one of {', '.join(NAMED)}, a number between 0 and 1 for that quantile, or a function of the "
        f"resampled arrays; got {statistic!r}."
    )
