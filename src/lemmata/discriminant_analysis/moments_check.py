"""What certificates of Gaussian classes compare with: moments by two passes and dense algebra, in units of the columns."""

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY, length, same
from lemmata.discriminant_analysis.class_moments import ClassMoments
from lemmata.discriminant_analysis.structures import DENSE


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


def same_means(stored, found, scales):
    """Check means in units of the columns, so that an offset of the table hides nothing."""
    a, b = (stored - found.center) / scales, (found.mean - found.center) / scales
    claim = "the mean of the rows of each class"
    # What rounding leaves of an offset of the table, beyond what the limit allows for.
    rounding = np.finfo(float).eps / SAME_LIMIT * len(scales) * length(found.center / scales)
    return same(a, b, "means", claim, floor=max(np.sqrt(b.size), 100 * rounding))


def same_covariance(stored, best, structure, scales):
    """Check covariances in units of the columns, each class relative to itself."""
    unit = np.mean(scales**2) if structure == "spherical" else scales**2
    unit = np.outer(scales, scales) if structure in DENSE else unit
    a, b = stored / unit, best / unit
    if structure in ("full", "diag", "spherical"):
        sizes = np.array([max(length(np.atleast_1d(part)), TINY) for part in b])
        a, b = (part / sizes.reshape(-1, *[1] * (b.ndim - 1)) for part in (a, b))
    return same(a, b, "covariance", "the scatter of each class over its weight, with floor and shrinkage as asked for")
