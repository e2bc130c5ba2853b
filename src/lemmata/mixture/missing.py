"""Rows with holes: their patterns, and blocks of them as `missing_kernels` want them."""

import warnings

import numpy as np

from lemmata.mixture.gaussian_kernels import DIAG, SPHERICAL
from lemmata.mixture.missing_kernels import expectation_by_pattern, fill_by_pattern, moments_by_pattern, posterior_by_pattern

BITS = 16  # of the keys of patterns


def by_pattern(X):
    """Order rows so that those with the same holes stand together.

    Returns
    -------
    order : Numbers of the rows, those of each pattern in a row.
    starts : (patterns + 1,), where each pattern begins in this order.
    seen : (patterns, columns), whether a column is seen.

    Examples
    --------
    >>> nan = float("nan")
    >>> order, starts, seen = by_pattern(np.array([[1.0, nan], [2.0, 3.0], [4.0, nan]]))
    >>> order, starts
    (array([1, 0, 2]), array([0, 1, 3]))
    >>> seen
    array([[ True,  True],
           [ True, False]])
    """
    holes = np.isnan(X)
    if X.shape[1] <= BITS:  # one key a row, of two bytes, which NumPy sorts by counting
        keys = holes @ (1 << np.arange(X.shape[1])[::-1]).astype(np.uint16)
        order = np.argsort(keys, kind="stable")
        new = np.diff(keys[order], prepend=-1) != 0
    else:
        keys = np.packbits(holes, axis=1)
        order = np.lexsort(keys.T[::-1])
        keys = keys[order]
        new = np.concatenate([[True], (keys[1:] != keys[:-1]).any(axis=1)])
    starts = np.append(np.flatnonzero(new), len(X))
    return order, starts, ~holes[order[starts[:-1]]]


def _as_given(components):
    """Give of the components what kernels need that see a part of the columns at a time."""
    return components.kind, components.center, components.offsets, components.covariances, components.logs


def room(components):
    """Make room for counts, first and second moments, and how often a component shows each column.

    Second moments are whole for a tied covariance too: the scatter of rows with holes is not known beforehand.
    """
    k, d = components.offsets.shape
    second = {DIAG: (k, 1, d), SPHERICAL: (k, 1, 1)}.get(components.kind, (k, d, d))
    return np.zeros(k), np.zeros((k, d)), np.zeros(second), np.zeros((k, d))


def e_block(X, weight, components):
    """Log-likelihood of a block, weights of the components in it, and expected moments about their means."""
    statistics, (order, starts, seen) = room(components), by_pattern(X)
    weight = None if weight is None else weight[order]
    value = expectation_by_pattern(X, order, weight, starts, seen, *_as_given(components), *statistics)
    return float(value), *statistics


def moments_block(X, shares, components):
    """Weights of the components in a block, and expected moments, with the shares of the components in its rows given."""
    statistics = room(components)
    moments_by_pattern(X, *by_pattern(X), shares, *_as_given(components), *statistics)
    return statistics


def posterior_block(X, weight, components):
    """Posterior of each row of a block given its seen entries, and their log-density."""
    out, density = np.empty((len(X), len(components.offsets))), np.empty(len(X))
    posterior_by_pattern(X, *by_pattern(X), *_as_given(components), True, out, density)
    return out, density


def log_density_block(X, components):
    """Log joint density of the seen entries of the rows of a block and every component."""
    out, largest = np.empty((len(X), len(components.offsets))), np.empty(len(X))
    posterior_by_pattern(X, *by_pattern(X), *_as_given(components), False, out, largest)
    return out


def fill_block(X, weight, components):
    """Rows of a block with the mean of each hole given the seen entries, and the variance of each entry around it."""
    posterior, density = np.empty((len(X), len(components.offsets))), np.empty(len(X))
    out, variance, patterns = np.empty(X.shape), np.empty(X.shape), by_pattern(X)
    posterior_by_pattern(X, *patterns, *_as_given(components), True, posterior, density)
    fill_by_pattern(X, *patterns, *_as_given(components), posterior, out, variance)
    return out, variance


class Filled:
    """Fills the holes of a block by the means of their columns: well enough to look for starts."""

    def __init__(self, means):
        self.means = means

    def __call__(self, X):
        """Fill a block."""
        return np.where(np.isnan(X), self.means, X)


def available_block(X, weight, origin):
    """Weight, sum and sum of squares about an origin of the seen entries of each column."""
    seen = ~np.isnan(X)
    away = np.where(seen, X - origin, 0.0)
    share = seen if weight is None else seen * weight[:, None]
    return share.sum(axis=0, dtype=float), (share * away).sum(axis=0), (share * away**2).sum(axis=0)


def together_block(X, weight):
    """Count the rows in which two columns are both seen, for each pair."""
    seen = (~np.isnan(X)).astype(float)
    return seen.T @ seen


def warn_of_strangers(blocks):
    """Warn if two columns are never seen in the same row: nothing in the table tells their covariance."""
    strangers = np.argwhere(blocks.reduce(together_block) == 0)
    if len(strangers):
        a, b = strangers[0] if blocks.columns is None else np.array(blocks.columns)[strangers[0]]
        warnings.warn(
            f"Columns {a} and {b} are never seen in the same row, so the table does not tell how they vary together: "
            "their covariance is that of the start. Leave one of them out, or use independent columns (diagonal covariances).",
            UserWarning,
            stacklevel=4,
        )


def holes_block(X, weight):
    """Count the holes of a block."""
    return int(np.isnan(X).sum())
