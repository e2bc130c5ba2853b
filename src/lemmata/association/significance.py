"""How likely a rule is by chance: Fisher's exact test and χ², and what many tests at once ask for.

N baskets, a of them with A, b with B, x with both. If A and B had nothing to do with each other, x would be hypergeometric:
Fisher's p-value is P(X ≥ x), summed from x outwards term by term, each from the last; the first term is the density by Loader's
expansion around the mode, whose relative error stays near 1e-14 for any N. χ² is its approximation for large counts, and
counts deviations of both kinds.

Among m tests some are small by chance. Bonferroni and Holm keep the probability of a single false rule below α, Benjamini and
Hochberg the expected share of false rules (for tests that depend positively on each other; Benjamini and Yekutieli for all).
m must count all rules that could have been reported. A is tested given how often A and B occur, so that both be frequent is no
choice by the outcome; that A and B be frequent together is one. So every ordered pair of frequent sets counts, also those that
never meet, and to replace the p-value of a rule that was left out by 1 only raises it. Between single items that keeps every
one of these promises. Which longer sets are frequent is an outcome itself, so that for them it is a caution and no theorem.

[1] Loader, Bell Labs (2000). [2] Holm, Scand. J. Stat. 6 (1979). [3] Benjamini & Hochberg, JRSS B 57 (1995).
[4] Benjamini & Yekutieli, Ann. Stat. 29 (2001). [5] Webb, Machine Learning 68 (2007).
"""

import math

import numpy as np

from lemmata.core.kernel import kernel

CORRECTIONS = ("bonferroni", "holm", "bh", "by")
# log n! − its approximation by Stirling, for n = 0 … 15; beyond, the series below is exact to 1e-16.
STIRLING = np.array(
    [0.0] + [math.log(math.factorial(n)) - (n + 0.5) * math.log(n) + n - 0.5 * math.log(2 * math.pi) for n in range(1, 16)]
)


@kernel
def stirling_error(n):
    """Give log n! − log(√(2πn) (n/e)ⁿ)."""
    if n <= 15:
        return STIRLING[int(n)]
    m = n * n
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - (1 / 1188) / m) / m) / m) / m) / n


@kernel
def deviance(x, mean):
    """Give x log(x / mean) + mean − x, without the cancellation where x is near the mean."""
    if abs(x - mean) >= 0.1 * (x + mean):
        return x * math.log(x / mean) + mean - x
    v = (x - mean) / (x + mean)
    total, term, j = (x - mean) * v, 2 * x * v, 1
    while True:
        term *= v * v
        j += 2
        if total + term / j == total:
            return total
        total += term / j


@kernel
def log_binomial(x, n, p):
    """Give the log probability of x among n, 0 < p < 1."""
    if x == 0:
        return n * math.log1p(-p) if n > 0 else 0.0
    if x == n:
        return n * math.log(p)
    error = stirling_error(n) - stirling_error(x) - stirling_error(n - x)
    return error - deviance(x, n * p) - deviance(n - x, n * (1 - p)) + 0.5 * math.log(n / (2 * math.pi * x * (n - x)))


@kernel
def upper_tail(x, a, b, n):
    """Give P(X ≥ x) where X of b baskets drawn from n hold A, which a of the n do."""
    least, most = max(0.0, a + b - n), min(a, b)
    if x <= least:
        return 1.0
    if x > most:
        return 0.0
    if a == n or b == n:
        return 1.0
    p = b / n
    above = x * n > a * b  # sum the tail that is the smaller one
    k = x if above else x - 1
    term = math.exp(log_binomial(k, a, p) + log_binomial(b - k, n - a, p) - log_binomial(b, n, p))
    total = 0.0
    while term > total * 1e-17:
        total += term
        if above:
            term *= (a - k) * (b - k) / ((k + 1) * (n - a - b + k + 1))
            k += 1
        else:
            term *= k * (n - a - b + k) / ((a - k + 1) * (b - k + 1))
            k -= 1
    return min(total, 1.0) if above else max(1.0 - total, 0.0)


@kernel
def fisher(both, one, other, n):
    """Test many pairs at once: the probability of so many baskets with both, or more, by chance.

    >>> fisher(np.array([3.0]), np.array([4.0]), np.array([4.0]), 8.0).round(6)     # the lady tasting tea: 17 / 70
    array([0.242857])
    """
    p = np.empty(len(both))
    for i in range(len(both)):
        p[i] = upper_tail(both[i], one[i], other[i], n)
    return p


def chi_squared(both, one, other, n):
    """Test many pairs at once by χ² with one degree of freedom, without a correction for continuity.

    >>> chi_squared(np.array([3.0]), np.array([4.0]), np.array([4.0]), 8.0).round(6)
    array([0.157299])
    """
    from scipy.special import erfc

    both, one, other = both / n, one / n, other / n  # shares, for products of large weights are none
    spread = one * other * (1 - one) * (1 - other)
    statistic = np.divide(n * (both - one * other) ** 2, spread, out=np.zeros(len(both)), where=spread > 0)
    return erfc(np.sqrt(statistic / 2))


def adjusted(p, n_tests, correction):
    """Adjust the p-values of some of n tests; the others count as if theirs were 1.

    Examples
    --------
    >>> p = np.array([0.01, 0.04, 0.03])
    >>> adjusted(p, 4, "bonferroni").round(3), adjusted(p, 4, "bh").round(3)
    (array([0.04, 0.16, 0.12]), array([0.04 , 0.053, 0.053]))
    """
    if correction == "bonferroni":
        return np.minimum(p * n_tests, 1.0)
    order = np.argsort(p, kind="stable")
    rank = np.arange(1, len(p) + 1)
    if correction == "holm":
        running = np.maximum.accumulate(p[order] * (n_tests - rank + 1))
    else:
        harmonic = float(np.sum(1 / np.arange(1, n_tests + 1))) if n_tests < 1 << 20 else math.log(n_tests) + np.euler_gamma
        factor = n_tests * (harmonic if correction == "by" else 1.0)
        running = np.minimum.accumulate((p[order] * factor / rank)[::-1])[::-1]
    result = np.empty(len(p))
    result[order] = np.minimum(running, 1.0)
    return result
