"""The intercept of a plain loss: the middle of all that are best for given coefficients.

Σ sᵢ ℓ(rᵢ − b), as a function of b, is convex and piecewise linear. Without a row on the margin it can be flat at its bottom,
and then every b of an interval is as good as any other [1]; the middle is what fits give and checkers ask for.

[1] Burges & Crisp, NIPS (1999).
"""

import numpy as np

from lemmata.svm.linear_objective import rows_of, scores

EVEN = 1e-12  # of the sum of all weights: a slope that is zero but for rounding


def kinks_block(X, y, weight, coef, loss):
    """Where, as the intercept grows, rows of a block begin to cost less (or more) for each step, and by how much."""
    t, s = rows_of(y, weight, loss)
    r, s = t - scores(X, coef, 0.0), np.ones(len(t)) if s is None else s
    falling = np.ones(len(t)) if loss.two_sided else t > 0
    ends = np.where(falling, r - loss.epsilon, np.nan)
    begins = np.where(np.ones(len(t)) if loss.two_sided else t < 0, r + loss.epsilon, np.nan)
    return ends, begins, s


def best_intercept(blocks, coef, loss):
    """Return the middle of the intercepts that are best for given coefficients, for plain losses.

    The cost of the intercept is piecewise linear; its slope starts at minus the weight of the rows that want a larger one, and
    rises by the weight of a row at each of its kinks.
    """
    ends, begins, s = (np.asarray(part) for part in blocks.map(kinks_block, coef, loss))
    kinks, rises = np.concatenate([ends, begins]), np.concatenate([s, s])
    start = float(s[~np.isnan(ends)].sum())
    rises, kinks = rises[~np.isnan(kinks)], kinks[~np.isnan(kinks)]
    order = np.argsort(kinks, kind="stable")
    slope = np.cumsum(rises[order]) - start
    even = EVEN * rises.sum()
    first = int(np.searchsorted(slope, -even))
    last = min(int(np.searchsorted(slope, even, side="right")), len(slope) - 1)
    return float(kinks[order[first]] / 2 + kinks[order[last]] / 2)
