"""Losses of gradient boosting: values, derivatives in the score, best constants.

With y a number, or −1 and 1 for two classes, and f the score of a row:

squared      ½(y − f)²; the best constant is the mean.
absolute     |y − f|; the median.
quantile     (y − f)(q − [y < f]); the q-quantile.
huber        ½(y − f)² up to |y − f| = δ and δ|y − f| − ½δ² beyond [1].
log_loss     log(1 + e^(−yf)), the Bernoulli deviance: f is the log-odds, log(p/(1 − p)) at best. Written log(1 + e^(−2yf)) as
             in [2], f is half of that. For K classes, −log of the softmax of K scores.
exponential  e^(−yf), the loss of AdaBoost [2]; half the log-odds at best.

The second derivative of the first four is taken to be 1, for absolute and quantile because there is none, for Huber because it
is at most 1: the model Gv + ½Hv² then lies above the loss, and its minimum lowers the loss.

[1] Huber, Ann. Math. Stat. 35 (1964). [2] Friedman, Hastie & Tibshirani, Ann. Stat. 28 (2000); Friedman, Ann. Stat. 29 (2001).
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials

STRIP = 512  # rows at a time: the product of as many numbers up to 2 is still a number
MOST_MOVE = 16.0  # of a score in one line search: odds of nine millions to one
HIGHEST = 1e300  # for e^(−yf) at scores beyond reason


@kernel
def log_loss(y, F, weight, g, h):
    """Fill the derivatives of log(1 + e^(−yf)) for y of 0 and 1; return the sum of losses."""
    n = len(y)
    e, bits = np.empty(STRIP), np.empty(STRIP, np.int64)
    powers = bits.view(np.float64)
    loss = 0.0
    for s in range(0, n, STRIP):
        m = min(STRIP, n - s)
        for i in range(m):
            e[i] = -abs(F[s + i])
        exponentials(e, m, bits, powers)
        for i in range(m):
            q = 1.0 / (1.0 + e[i])
            p = q if F[s + i] >= 0 else 1.0 - q
            if F[s + i] < 0:
                p = e[i] * q
            g[s + i] = p - y[s + i]
            h[s + i] = e[i] * q * q
        linear = 0.0
        if weight is None:
            product = 1.0
            for i in range(m):
                product *= 1.0 + e[i]
            for i in range(m):
                linear += max(F[s + i], 0.0) - y[s + i] * F[s + i]
            loss += linear + np.log(product)
        else:
            for i in range(m):
                g[s + i] *= weight[s + i]
                h[s + i] *= weight[s + i]
            for i in range(m):
                linear += weight[s + i] * (np.log1p(e[i]) + max(F[s + i], 0.0) - y[s + i] * F[s + i])
            loss += linear
    return loss


@kernel
def exponential_loss(y, F, weight, g, h):
    """Fill the derivatives of e^(−yf) for y of 0 and 1, read as −1 and 1; return the sum of losses."""
    for i in range(len(y)):
        sign = 2.0 * y[i] - 1.0
        w = 1.0 if weight is None else weight[i]
        h[i] = w * min(np.exp(-sign * F[i]), HIGHEST)
        g[i] = -sign * h[i]
    loss = 0.0
    for i in range(len(y)):
        loss += h[i]
    return loss


@kernel
def squared_error(y, F, weight, g):
    """Fill the derivative of ½(y − f)²; return the sum of losses."""
    for i in range(len(y)):
        w = 1.0 if weight is None else weight[i]
        g[i] = w * (F[i] - y[i])
    loss = 0.0
    for i in range(len(y)):
        loss += 0.5 * g[i] * (F[i] - y[i])
    return loss


@kernel
def pinball_loss(y, F, weight, g, quantile):
    """Fill a derivative of (y − f)(q − [y < f]); return the sum of losses."""
    for i in range(len(y)):
        w = 1.0 if weight is None else weight[i]
        g[i] = w * ((1.0 - quantile) if F[i] > y[i] else (-quantile if F[i] < y[i] else 0.0))
    loss = 0.0
    for i in range(len(y)):
        loss += g[i] * (F[i] - y[i])
    return loss


@kernel
def huber_loss(y, F, weight, g, delta):
    """Fill the derivative of Huber's loss; return the sum of losses."""
    for i in range(len(y)):
        w = 1.0 if weight is None else weight[i]
        g[i] = w * min(max(F[i] - y[i], -delta), delta)
    loss = 0.0
    for i in range(len(y)):
        r = abs(F[i] - y[i])
        w = 1.0 if weight is None else weight[i]
        loss += w * (0.5 * r * r if r <= delta else delta * (r - 0.5 * delta))
    return loss


@kernel
def softmax_loss(y, F, weight, g, h):
    """Fill the derivatives of −log softmax for K scores, all (K, rows); return the sum of losses."""
    K, n = F.shape
    loss = 0.0
    for i in range(n):
        w = 1.0 if weight is None else weight[i]
        top = F[0, i]
        for k in range(1, K):
            top = max(top, F[k, i])
        total = 0.0
        for k in range(K):
            total += np.exp(F[k, i] - top)
        loss += w * (top + np.log(total) - F[np.int64(y[i]), i])
        for k in range(K):
            p = np.exp(F[k, i] - top) / total
            g[k, i] = w * (p - (1.0 if k == y[i] else 0.0))
            h[k, i] = w * p * (1.0 - p)
    return loss


SQUARED, ABSOLUTE, QUANTILE, HUBER, LOG_LOSS, EXPONENTIAL, SOFTMAX = range(7)
CODES = {
    "squared_error": SQUARED,
    "absolute_error": ABSOLUTE,
    "quantile": QUANTILE,
    "huber": HUBER,
    "log_loss": LOG_LOSS,
    "exponential": EXPONENTIAL,
}


@kernel
def fill_weights(weight, h):
    """Take the weights for second derivatives."""
    for i in range(len(h)):
        h[i] = 1.0 if weight is None else weight[i]


@kernel
def differentiate(loss, parameter, steady, y, F, weight, g, h):
    """Fill the derivatives of a loss, all (scores, rows); return the sum of losses.

    Parameters
    ----------
    steady : Whether to leave h as it is: line searches want weights there, and flat losses have nothing else.
    """
    room = np.empty(len(y) if steady else 0)
    if loss == SOFTMAX:
        return softmax_loss(y, F, weight, g, np.empty(h.shape) if steady else h)
    f, slope, curve = F[0], g[0], room if steady else h[0]
    if loss == LOG_LOSS:
        return log_loss(y, f, weight, slope, curve)
    if loss == EXPONENTIAL:
        return exponential_loss(y, f, weight, slope, curve)
    if not steady:
        fill_weights(weight, curve)
    if loss == SQUARED:
        return squared_error(y, f, weight, slope)
    if loss == HUBER:
        return huber_loss(y, f, weight, slope, parameter)
    if loss == QUANTILE:
        return pinball_loss(y, f, weight, slope, parameter)
    total = 2.0 * pinball_loss(y, f, weight, slope, 0.5)
    for i in range(len(slope)):
        slope[i] *= 2.0
    return total


def weighted_quantile(values, weight, q):
    """Return the q-quantile: the mean of all numbers that cut off q of the weight exactly, else the one that passes it.

    Examples
    --------
    >>> weighted_quantile(np.array([5.0, 1.0, 3.0, 2.0]), None, 0.5)
    2.5
    >>> weighted_quantile(np.array([1.0, 2.0]), np.array([1.0, 3.0]), 0.5)
    2.0
    """
    order = np.argsort(values, kind="stable")
    total = np.arange(1, len(values) + 1) if weight is None else np.cumsum(weight[order])
    mark = q * total[-1]
    first = min(np.searchsorted(total, mark * (1 - 1e-12)), len(values) - 1)
    last = min(np.searchsorted(total, mark * (1 + 1e-12), side="right"), len(values) - 1)
    return float(0.5 * (values[order[first]] + values[order[last]]))


class Loss:
    """A loss: how to fill derivatives, and what it knows of itself.

    Parameters
    ----------
    name : As at the head of this file.
    n_classes : 1 for numbers.
    quantile, delta : Of the losses that have them.

    Attributes
    ----------
    n_scores : Scores of a row.
    flat : Whether the second derivative is the weight itself.
    quantile : The quantile that is a leaf's best constant, or None.

    Examples
    --------
    >>> y = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    >>> float(Loss("exponential", 2).best_constant(y, None)[0].round(6))  # half the log-odds
    0.693147
    """

    def __init__(self, name, n_classes=1, *, quantile=None, delta=None):
        self.name, self.n_classes, self.delta = name, n_classes, delta
        self.n_scores = n_classes if n_classes > 2 else 1
        self.quantile = {"absolute_error": 0.5, "quantile": quantile}.get(name)
        self.flat = name in ("squared_error", "absolute_error", "quantile", "huber")
        self.code = SOFTMAX if self.n_scores > 1 else CODES[name]
        self.parameter = float({"quantile": quantile, "huber": delta}.get(name) or 0.0)

    def fill(self, y, F, weight, g, h):
        """Fill first and second derivatives, all (scores, rows); return the sum of losses."""
        return differentiate(self.code, self.parameter, False, y, F, weight, g, h)

    def total(self, y, F, weight):
        """Return the sum of losses."""
        return self.fill(y, np.ascontiguousarray(F), weight, np.empty(F.shape), np.empty(F.shape))

    def best_constant(self, y, weight):
        """Return the scores that are best if all rows must have the same."""
        w = np.ones(len(y)) if weight is None else weight
        if self.quantile is not None:
            return np.array([weighted_quantile(y, weight, self.quantile)])
        if self.name == "squared_error":
            return np.array([w @ y / w.sum()])
        if self.name == "huber":
            start = np.full((1, len(y)), weighted_quantile(y, weight, 0.5))
            return start[:, 0] + best_step(self, y, start, weight, np.ones(len(y)), 0)
        share = np.bincount(y.astype(np.int64), w, max(self.n_classes, 2)) / w.sum()
        if self.n_scores > 1:
            return np.log(share) - np.log(share).mean()
        return np.array([np.log(share[1] / share[0]) * (0.5 if self.name == "exponential" else 1.0)])

    def chances(self, scores):
        """Turn scores, (rows, scores), into probabilities of the classes."""
        from scipy.special import expit, softmax

        if self.n_scores > 1:
            return softmax(scores, axis=1)
        f = scores[:, 0] * (2.0 if self.name == "exponential" else 1.0)
        return np.column_stack([expit(-f), expit(f)])


def best_step(loss, y, F, weight, direction, k=0):
    """Return the γ that minimizes Σ ℓ(y, F + γ·direction) in the k-th score, by bisection and secants on its derivative.

    The loss is convex, so the derivative Σ g·direction never falls; where it is 0 nowhere (the direction separates the
    classes), γ stops where it has moved a score by `MOST_MOVE`.

    Examples
    --------
    A vote that is wrong on a weight of 0.3 has AdaBoost's α = ½ log(0.7/0.3):

    >>> y, vote = np.array([1.0] * 10), np.array([1.0] * 7 + [-1.0] * 3)
    >>> round(best_step(Loss("exponential", 2), y, np.zeros((1, 10)), None, vote), 6)
    0.423649
    """
    from scipy.optimize import brentq

    g, h, trial = np.empty(F.shape), np.empty(F.shape), F.copy()

    def slope(gamma):
        trial[k] = F[k] + gamma * direction
        loss.fill(y, trial, weight, g, h)
        return float(g[k] @ direction)

    here, reach = slope(0.0), np.abs(direction).max(initial=0.0)
    if here == 0.0 or reach == 0.0:
        return 0.0
    most = MOST_MOVE / reach if loss.n_classes > 1 else np.inf
    far = -np.sign(here)
    while np.sign(slope(far)) == np.sign(here) and abs(far) < most:
        far *= 2.0
    if abs(far) >= most:
        return float(np.copysign(most, far))
    return float(brentq(slope, *sorted((0.0, far)), xtol=1e-14, rtol=1e-14, maxiter=200))


def line_search(loss, y, F, weight, direction, k):
    """Return the best γ ≥ 0: a tree grown on the scores of some steps ago may point up by now, and is then left out."""
    return max(best_step(loss, y, F, weight, direction, k), 0.0)
