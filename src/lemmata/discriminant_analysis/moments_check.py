"""What certificates of Gaussian classes compare with: moments by two passes and dense algebra, in units of the columns."""

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY
from lemmata.core.generative import same_entries
from lemmata.discriminant_analysis.class_moments import ClassMoments
from lemmata.discriminant_analysis.structures import DENSE

ROUNDINGS = 100 * np.finfo(float).eps  # of an offset of the table, that two ways to sum may differ by
SCATTER = "the scatter of each class over its weight, with floor and shrinkage as asked for"


def sums_block(X, y, weight, origin, second):
    """Weights of classes, and seen of their columns; offsets about an origin, or products, summed; and the number of holes."""
    k, d = origin.shape
    total, seen, sums = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d) if second == "products" else (k, d))
    for c in range(k):
        rows = X[y == c].astype(float)
        w = np.ones(len(rows)) if weight is None else weight[y == c]
        there, away = ~np.isnan(rows), np.nan_to_num(rows - origin[c])
        total[c], seen[c] = w.sum(), w @ there
        sums[c] = (w[:, None] * away).T @ away if second == "products" else w @ (away**2 if second == "squares" else away)
    return total, seen, sums, np.count_nonzero(np.isnan(X))


def recomputed(blocks, k, dense):
    """Recompute moments by two passes and dense algebra, about the mean found in the first; and whether holes hide some."""
    X = blocks.first()[0]
    origin = np.repeat(np.nan_to_num(X[:1].astype(float)), k, axis=0)
    total, seen, offsets, missing = blocks.reduce(sums_block, origin, "none")
    mean = origin + offsets / np.where(seen > 0, seen, 1.0)
    holes = dense and missing > 0
    scatter = blocks.reduce(sums_block, mean, "products" if dense and not holes else "squares")[2]
    return ClassMoments(total, seen, np.where(seen > 0, mean, 0.0), scatter), holes


def rounding(offset, deviations):
    """Give how many times more than SAME_LIMIT rounding may cost numbers that lie so many deviations from zero, 1 at least."""
    return np.maximum(1.0, ROUNDINGS / SAME_LIMIT * np.abs(offset) / np.maximum(deviations, TINY))


def same_means(stored, found, scales, name="means", claim="the mean of the rows of each class"):
    """Check means, (k, d) or (d,), in units of the columns, so that an offset of the table hides nothing."""
    return same_entries(stored, found, name, claim, scales * rounding(found, scales))


def same_covariance(stored, best, structure, means, name="covariance", claim=SCATTER):
    """Check covariances entry by entry, variances relative to themselves and others in units of the deviations of both."""
    offset = np.abs(means) if structure in ("full", "diag") else np.abs(means).max(axis=1 if structure == "spherical" else 0)
    if structure not in DENSE:
        return same_entries(stored, best, name, claim, best * rounding(offset, np.sqrt(best)))
    deviations = np.sqrt(np.diagonal(best, axis1=-2, axis2=-1))
    times = rounding(offset, deviations)
    units = deviations * times
    return same_entries(stored, best, name, claim, units[..., :, None] * deviations[..., None, :] * times.max())
