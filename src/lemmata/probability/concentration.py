"""Concentration: bounds on the probability that a random variable, a mean or a sum strays from its expectation.

With t = n ε for sums, X̄ the mean of n independent variables of expectation μ and variance σ²:

    Markov      P(X ≥ a) ≤ E X / a                                      X ≥ 0, a > 0
    Chebyshev   P(|X̄ − μ| ≥ ε) ≤ σ² / (n ε²)
    Cantelli    P(X̄ − μ ≥ ε) ≤ σ² / (σ² + n ε²)
    Hoeffding   P(X̄ − μ ≥ ε) ≤ exp(−2 n ε² / w²)                       each X in an interval of width w
    Bernstein   P(X̄ − μ ≥ ε) ≤ exp(−n ε² / (2σ² + 2wε/3))              X − μ ≤ w
    Bennett     P(X̄ − μ ≥ ε) ≤ exp(−n σ²/w² · h(wε/σ²))                the same, with h(u) = (1 + u) log(1 + u) − u; sharper
    McDiarmid   P(f − E f ≥ ε) ≤ exp(−2 ε² / Σ cᵢ²)                     f moves by at most cᵢ when its i-th argument does

Both sides cost a factor 2, and N events together at most the sum of their probabilities (the union bound). For the sum S of
variables of width 1 Hoeffding's bound is exp(−2t²/n), for their mean exp(−2nε²): the exponent of one is wrong for the other.

Each function relates three quantities: give any two, and it returns the third. `delta` is the bound, at most 1; `epsilon` is
the least deviation with that bound; `n` is the least number of observations that suffices, and for sums, which spread as they
grow, the greatest.

Boucheron, Lugosi & Massart, Concentration Inequalities, ch. 2, 6 (2013).
"""

import numpy as np
from scipy.special import xlog1py

from lemmata.core.certificate import TINY
from lemmata.probability.logarithms import log_excess

MOST = 2**62  # observations; nobody has more


def markov(mean=None, threshold=None, delta=None):
    """Relate the mean of X ≥ 0, a threshold and the bound on P(X ≥ threshold): give two, get the third.

    With mean=1 the threshold is in units of the mean: P(X ≥ c E X) ≤ 1/c. From a threshold and delta comes the greatest mean.

    Examples
    --------
    >>> markov(mean=2.0, threshold=8.0), markov(mean=2.0, delta=0.25), markov(threshold=8.0, delta=0.25)
    (0.25, 8.0, 2.0)
    """
    _two_of(mean=mean, threshold=threshold, delta=delta)
    _at_least_zero(mean=mean)
    _positive(threshold=threshold)
    _level(delta)
    if delta is None:
        return _bound(np.asarray(mean, dtype=float) / threshold)
    return _plain(np.divide(mean, delta) if threshold is None else np.multiply(threshold, delta))


def chebyshev(n=None, epsilon=None, delta=None, *, variance=1.0, union=1, total=False):
    """Relate n, epsilon and delta by Chebyshev's inequality, for both sides: give two, get the third.

    With n=1 and variance=1, epsilon is the k of P(|X − μ| ≥ k σ) ≤ 1/k².

    Parameters
    ----------
    n : Number of uncorrelated observations.
    epsilon : Deviation of their mean, or of their sum if `total`.
    delta : Bound on the probability of such a deviation.
    variance : Of one observation.
    union : Number of events, each bounded in this way, of which none is to happen.
    total : Whether epsilon is the deviation of the sum.

    Examples
    --------
    >>> chebyshev(n=1, epsilon=2), chebyshev(n=100, delta=0.05), chebyshev(epsilon=0.1, delta=0.05)
    (0.25, 0.447, 2000)
    """
    _at_least_zero(variance=variance)
    return _third(
        (n, epsilon, delta),
        union,
        total,
        tail=lambda n, epsilon: union * _ratio(variance, n * epsilon**2),
        deviation=lambda n, delta: np.sqrt(union * variance / (n * delta)),
    )


def cantelli(n=None, epsilon=None, delta=None, *, variance=1.0, union=1, total=False):
    """Relate n, epsilon and delta by Cantelli's inequality, Chebyshev's for one side; parameters as of `chebyshev`.

    Examples
    --------
    >>> cantelli(n=1, epsilon=2), cantelli(n=1, delta=0.2), cantelli(epsilon=0.1, delta=0.05)
    (0.2, 2.0, 1900)
    """
    _at_least_zero(variance=variance)
    return _third(
        (n, epsilon, delta),
        union,
        total,
        tail=lambda n, epsilon: union * _ratio(variance, variance + n * epsilon**2),
        deviation=lambda n, delta: np.sqrt(variance * (union / delta - 1) / n),
    )


def hoeffding(n=None, epsilon=None, delta=None, *, width=1.0, sides=2, union=1, total=False):
    """Relate n, epsilon and delta by Hoeffding's inequality: give two, get the third.

    Parameters
    ----------
    n : Number of independent observations.
    epsilon : Deviation of their mean, or of their sum if `total`.
    delta : Bound on the probability of such a deviation.
    width : b − a if each observation lies in [a, b]; with different widths see `mcdiarmid`.
    sides : 2 for |deviation| ≥ epsilon, 1 for one sign.
    union : Number of events, each bounded in this way, of which none is to happen.
    total : Whether epsilon is the deviation of the sum.

    Examples
    --------
    >>> hoeffding(n=1000, epsilon=0.05), hoeffding(n=1000, delta=0.05), hoeffding(epsilon=0.05, delta=0.05)
    (0.013476, 0.04295, 738)
    >>> hoeffding(n=1000, epsilon=50, total=True)
    0.013476
    """
    _positive(width=width)
    events = union * _number_of(sides)
    return _third(
        (n, epsilon, delta),
        union,
        total,
        tail=lambda n, epsilon: events * np.exp(-2 * n * (epsilon / width) ** 2),
        deviation=lambda n, delta: width * np.sqrt(np.log(events / delta) / (2 * n)),
    )


def bernstein(n=None, epsilon=None, delta=None, *, variance, width=1.0, sides=2, union=1, total=False):
    """Relate n, epsilon and delta by Bernstein's inequality, which uses the variance; parameters as of `hoeffding`.

    Parameters
    ----------
    variance : Of one observation, or an upper bound of it.
    width : Bound of |X − E X|; b − a serves if X lies in [a, b].

    Examples
    --------
    >>> bernstein(n=1000, epsilon=0.05, variance=0.01)
    8.78e-21
    >>> bernstein(n=1000, delta=0.05, variance=0.01), bernstein(epsilon=0.05, delta=0.05, variance=0.01)
    (0.0099, 79)
    """
    _at_least_zero(variance=variance)
    _positive(width=width)
    events = union * _number_of(sides)
    return _third(
        (n, epsilon, delta),
        union,
        total,
        tail=lambda n, epsilon: events * np.exp(-n * epsilon**2 / np.maximum(2 * variance + 2 * width * epsilon / 3, TINY)),
        deviation=lambda n, delta: _bernstein_deviation(np.log(events / delta) / n, variance, width),
    )


def bennett(n=None, epsilon=None, delta=None, *, variance, width=1.0, sides=2, union=1, total=False):
    """Relate n, epsilon and delta by Bennett's inequality, sharper than Bernstein's; parameters as of `bernstein`.

    Examples
    --------
    >>> bennett(n=1000, epsilon=0.05, variance=0.01)
    2.12e-25
    >>> bennett(n=1000, delta=0.05, variance=0.01), bennett(epsilon=0.05, delta=0.05, variance=0.01)
    (0.0097, 65)
    """
    _positive(variance=variance, width=width)
    events = union * _number_of(sides)
    return _third(
        (n, epsilon, delta),
        union,
        total,
        tail=lambda n, epsilon: events * np.exp(-n * variance / width**2 * _bennett_rate(width * epsilon / variance)),
        deviation=lambda n, delta: _bennett_deviation(np.log(events / delta) / n, variance, width),
    )


def mcdiarmid(squares=None, epsilon=None, delta=None, *, sides=2, union=1):
    """Relate Σ cᵢ², epsilon and delta by McDiarmid's inequality of bounded differences: give two, get the third.

    For a sum of independent variables in intervals of widths cᵢ it is Hoeffding's inequality.

    Parameters
    ----------
    squares : Σ cᵢ², where f changes by at most cᵢ when its i-th argument does.
    epsilon : Deviation of f.
    delta : Bound on the probability of such a deviation.
    sides, union : As of `hoeffding`.

    Examples
    --------
    >>> mcdiarmid(squares=1000 * 0.001**2, epsilon=0.05), mcdiarmid(squares=0.001, delta=0.05)
    (0.013476, 0.04295)
    """
    _two_of(squares=squares, epsilon=epsilon, delta=delta)
    _positive(squares=squares)
    _events(union)
    _at_least_zero(epsilon=epsilon)
    _level(delta)
    events = union * _number_of(sides)
    if delta is None:
        return _bound(events * np.exp(-2 * np.square(epsilon, dtype=float) / squares))
    log = np.log(np.divide(events, delta))
    return _plain(np.sqrt(squares * log / 2) if epsilon is None else 2 * np.square(epsilon, dtype=float) / log)


def union_bound(deltas):
    """Return the bound on the probability that at least one of several events happens: the sum of theirs, at most 1.

    Examples
    --------
    >>> union_bound([0.01, 0.02, 0.02])
    0.05
    """
    deltas = np.asarray(deltas, dtype=float)
    if not ((deltas >= 0) & (deltas <= 1)).all():
        raise ValueError("Probabilities of events must lie between 0 and 1.")
    return min(1.0, float(deltas.sum()))


def _third(given, union, total, tail, deviation):
    """Return the one of n, epsilon and delta that is None, from functions of the mean's deviation."""
    n, epsilon, delta = given
    _two_of(n=n, epsilon=epsilon, delta=delta)
    _positive(n=n)
    _events(union)
    _level(delta)
    of_mean = (lambda n, epsilon: tail(n, epsilon / n)) if total else tail
    if delta is None:
        _at_least_zero(epsilon=epsilon)
        return _bound(of_mean(np.asarray(n, dtype=float), np.asarray(epsilon, dtype=float)))
    if epsilon is None:
        n = np.asarray(n, dtype=float)
        return _plain(deviation(n, np.asarray(delta, dtype=float)) * (n if total else 1))
    _positive(epsilon=epsilon)
    if total:
        found = np.vectorize(lambda e, d: _first(lambda n: of_mean(float(n), e) > d) - 1, otypes=[int])(epsilon, delta)
    else:
        found = np.vectorize(lambda e, d: _first(lambda n: of_mean(float(n), e) <= d), otypes=[int])(epsilon, delta)
    return int(found) if found.ndim == 0 else found


def _first(holds):
    """Return the least n ≥ 1 for which a statement holds that holds for all greater n too."""
    high = 1
    while not holds(high):
        high *= 2
        if high > MOST:
            raise ValueError(
                "No number of observations below 2^62 is enough, or too many; take a greater epsilon or another delta."
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _bernstein_deviation(rate, variance, width):
    """Solve ε² = rate · (2σ² + 2wε/3) for ε > 0."""
    half = rate * width / 3
    return half + np.sqrt(half**2 + 2 * variance * rate)


def _bennett_rate(u):
    """Return h(u) = (1 + u) log(1 + u) − u without cancellation."""
    return xlog1py(u, u) - log_excess(u)


def _bennett_deviation(rate, variance, width):
    """Solve σ²/w² · h(wε/σ²) = rate by Newton's method from Bernstein's solution: h is convex, and the start is not below."""
    target = rate * width**2 / variance
    u = np.asarray(_bernstein_deviation(rate, variance, width) * width / variance)
    for _ in range(60):  # quadratic convergence from a start within a factor of a few: it takes fewer than ten
        u = np.maximum(u - (_bennett_rate(u) - target) / np.log1p(u), 0.0)
    return u * variance / width


def _ratio(a, b):
    """Return a / b with 0/0 = 1: also a constant deviates from its mean by at least 0."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=float), np.asarray(b, dtype=float))
    with np.errstate(divide="ignore"):
        return np.divide(a, b, out=np.ones(a.shape), where=(a != 0) | (b != 0))


def _plain(x):
    x = np.asarray(x, dtype=float)
    return float(x) if x.ndim == 0 else x


def _bound(x):
    return _plain(np.minimum(x, 1.0))


def _two_of(**three):
    missing = [name for name, value in three.items() if value is None]
    if len(missing) != 1:
        raise ValueError(f"Give exactly two of {', '.join(three)}; got {len(three) - len(missing)}.")


def _number_of(sides):
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2; got {sides}.")
    return sides


def _positive(**values):
    for name, value in values.items():
        if value is not None and not ((np.asarray(value) > 0) & (np.asarray(value) < np.inf)).all():
            raise ValueError(f"{name} must be positive and finite; got {value}.")


def _at_least_zero(**values):
    for name, value in values.items():
        if value is not None and not ((np.asarray(value) >= 0) & (np.asarray(value) < np.inf)).all():
            raise ValueError(f"{name} must be at least 0 and finite; got {value}.")


def _events(union):
    if not 1 <= union < np.inf:
        raise ValueError(f"union is a number of events, at least 1; got {union}.")


def _level(delta):
    if delta is not None and not ((np.asarray(delta) > 0) & (np.asarray(delta) < 1)).all():
        raise ValueError(f"delta must lie between 0 and 1; got {delta}.")
