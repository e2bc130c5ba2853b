"""Tails: sums of binomial and hypergeometric terms, and the inversions that every bound on a risk is made of.

Let q = k/n be the observed mean of n losses and p the risk. Two inversions turn "so small a mean is improbable" into a bound:

- exact, for losses that are 0 or 1: the p with P(Bin(n, p) ≤ k) = δ, of Clopper and Pearson [1];
- by Chernoff's inequality, for losses in [0, 1]: the largest p with kl(q‖p) = q ln(q/p) + (1−q) ln((1−q)/(1−p)) ≤ c.

Bounds that hold for many hypotheses at once use the first one with δ as small as e⁻³⁰⁰⁰, so everything here takes and gives
logarithms. The terms of both distributions are log-concave in k: away from the mode each is smaller than the one before by a
factor that does not grow, so a tail is summed from its largest term outward until the rest cannot be seen, a few multiples of
√n terms whatever n is.

PAC-Bayes bounds pay for ξ(n) = Σₖ C(n,k) (k/n)ᵏ (1−k/n)ⁿ⁻ᵏ, the expectation of e^(n·kl(k/n‖p)) whatever p is [2]. The sum
equals 1 + Q(n) with Ramanujan's Q(n) = Σⱼ n(n−1)…(n−j+1)/nʲ over j = 1 … n [3], whose terms fall like e^(−j²/2n).

[1] Clopper & Pearson, Biometrika 26 (1934). [2] Maurer, arXiv:cs/0411099 (2004).
[3] Knuth, The Art of Computer Programming 1, section 1.2.11.3.
"""

from functools import lru_cache
from math import exp, expm1, inf, log, log1p

import numpy as np
from scipy.special import betainccinv, gammaln, rel_entr, xlog1py, xlogy

NEGLIGIBLE = 1e-20  # of a sum; a million terms as small as this are below its rounding
AT_ONCE = 1024  # terms of a tail
DEEP = -600.0  # ln δ below which δ is too near the smallest float for the inverse of the beta function
HALVINGS = 54  # of an interval within [0, 1]: what is left is one rounding
SERIES_FROM = 16  # Stirling's series with four terms is exact to the last bit from here on


def check_delta(delta):
    """Raise unless delta is a probability of failure strictly between 0 and 1."""
    if not 0 < delta < 1:
        raise ValueError(
            f"delta is the probability that a bound may fail and must lie strictly between 0 and 1, not {delta!r}."
        )


def check_count(value, name, least=1):
    """Return a whole number that is at least `least` as an int."""
    if not least <= value < inf or value != int(value):
        raise ValueError(f"{name} must be a whole number of at least {least}, not {value!r}.")
    return int(value)


def check_errors(errors, n):
    """Return the number of errors and of points as ints, 0 ≤ errors ≤ n, n ≥ 1."""
    errors, n = check_count(errors, "errors", 0), check_count(n, "n")
    if errors > n:
        raise ValueError(f"There cannot be more errors than points: errors is {errors} and n is {n}.")
    return errors, n


def check_mean(mean):
    """Raise unless a mean loss, or each of an array, lies in [0, 1]."""
    if not np.all((np.asarray(mean) >= 0) & (np.asarray(mean) <= 1)):
        raise ValueError(
            f"A mean of losses in [0, 1] lies in [0, 1], and {mean!r} does not; divide losses by their bound first."
        )


def _stirling_error(n):
    """Return ln n! − ln(√(2πn)·(n/e)ⁿ), 0 at n = 0: what Stirling's formula leaves, without the cancellation of large logs."""
    series = np.maximum(n, SERIES_FROM)
    tail = (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / series**2) / series**2) / series**2) / series
    small = np.clip(n, 1.0, SERIES_FROM)
    direct = gammaln(small + 1) - xlogy(small + 0.5, small) + small - 0.5 * log(2 * np.pi)
    return np.where(n >= SERIES_FROM, tail, np.where(n > 0, direct, 0.0))


def log_choose(n, k):
    """Return ln of the binomial coefficient C(n, k), to the last digits even where n is 10¹⁰ and k is 3.

    Parameters
    ----------
    n, k : Whole numbers or arrays of them, 0 ≤ k ≤ n.

    Examples
    --------
    >>> float(np.exp(log_choose(5, 2)))
    10.0
    """
    n, k = np.asarray(n, dtype=float), np.asarray(k, dtype=float)
    if np.any((k < 0) | (k > n)):
        raise ValueError("ln C(n, k) needs 0 ≤ k ≤ n.")
    k = np.minimum(k, n - k)
    inside = np.maximum(k * ((n - k) / np.maximum(n, 1)), 0.5)  # k = 0 is set to zero below
    entropy = -rel_entr(k, n) - xlog1py(n - k, -k / np.maximum(n, 1))
    errors = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    value = np.where(k > 0, entropy + errors - 0.5 * np.log(2 * np.pi * inside), 0.0)
    return value if value.ndim else float(value)


def bernoulli_kl(q, p):
    """Return kl(q‖p), the divergence of a coin with probability q from one with p; infinite where p excludes what q allows.

    Parameters
    ----------
    q, p : Probabilities, or arrays of them.

    Examples
    --------
    >>> bernoulli_kl(0.0, 0.5), bernoulli_kl(0.5, 1.0)
    (0.693147, inf)
    """
    q, p = np.asarray(q, dtype=float), np.asarray(p, dtype=float)
    check_mean(q)
    check_mean(p)
    value = rel_entr(q, p) + rel_entr(1 - q, 1 - p)
    return value if value.ndim else float(value)


def _kl_inverse(q, budget, end):
    """Return the p farthest from q towards the end, 0 or 1, that has kl(q‖p) ≤ budget, rounded towards the end."""
    check_mean(q)
    if not np.all(np.asarray(budget) >= 0):
        raise ValueError(f"The budget of a divergence cannot be negative, and {budget!r} is.")
    q, budget = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(budget, dtype=float))
    near, far = q.copy(), np.full(q.shape, float(end))
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        inside = rel_entr(q, middle) + rel_entr(1 - q, 1 - middle) <= budget
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return far if far.ndim else float(far)


def kl_upper(q, budget):
    """Return sup{p ≥ q : kl(q‖p) ≤ budget}, rounded up.

    Parameters
    ----------
    q : Observed mean in [0, 1], or an array.
    budget : Largest divergence c ≥ 0, or an array. At q = 0 the answer is 1 − e⁻ᶜ.

    Examples
    --------
    >>> kl_upper(0.05, np.log(20) / 100)
    0.121527
    """
    return _kl_inverse(q, budget, 1)


def kl_lower(q, budget):
    """Return inf{p ≤ q : kl(q‖p) ≤ budget}, rounded down.

    Parameters
    ----------
    q : Observed mean in [0, 1], or an array.
    budget : Largest divergence c ≥ 0, or an array. At q = 1 the answer is e⁻ᶜ.

    Examples
    --------
    >>> kl_lower(1.0, np.log(20) / 100)
    0.970487
    """
    return _kl_inverse(q, budget, 0)


def _log_tail(log_first, ratio, count):
    """Return ln(t₀ + … + t_{count−1}) where ln t₀ is given and tⱼ/tⱼ₋₁ = ratio(j) ≤ 1 does not grow with j."""
    total = last = 1.0
    start = 1
    while start < count and last > NEGLIGIBLE * total:
        terms = last * np.cumprod(ratio(np.arange(start, min(start + AT_ONCE, count), dtype=float)))
        total += float(terms.sum())
        last = float(terms[-1])
        start += AT_ONCE
    return log_first + log(total)


def log_binomial_cdf(k, n, p):
    """Return ln P(Bin(n, p) ≤ k), right also where the probability itself is too small for a float.

    Parameters
    ----------
    k : Whole number; below 0 the answer is −∞, from n on it is 0.
    n : Number of trials.
    p : Probability of each.

    Examples
    --------
    >>> float(np.exp(log_binomial_cdf(1, 10, 0.5))), 11 / 1024
    (0.010742, 0.010742)
    >>> log_binomial_cdf(100, 100_000, 0.5)
    -68527.2134
    """
    n = check_count(n, "n", 0)
    k = int(np.floor(np.clip(k, -1, n)))
    check_mean(p)
    if k < 0 or k == n or p in (0, 1):
        return -inf if k < 0 or (p == 1 and k < n) else 0.0
    odds = (1 - p) / p

    def log_term(j):
        return log_choose(n, j) + float(xlogy(j, p)) + float(xlog1py(n - j, -p))

    if k < (n + 1) * p:
        return min(_log_tail(log_term(k), lambda j: (k - j + 1) / (n - k + j) * odds, k + 1), 0.0)
    above = _log_tail(log_term(k + 1), lambda j: (n - k - j) / (k + 1 + j) / odds, n - k)
    return log1p(-exp(above)) if above < 0 else -np.inf


def log_hypergeometric_cdf(k, population, marked, draws):
    """Return ln P(at most k of the draws are marked), drawing without replacement.

    Parameters
    ----------
    k : Whole number.
    population : Number of points to draw from.
    marked : How many of them are marked.
    draws : How many are drawn.

    Examples
    --------
    >>> float(np.exp(log_hypergeometric_cdf(1, population=5, marked=3, draws=2)))
    0.7
    """
    population = check_count(population, "population", 0)
    marked, draws = check_count(marked, "marked", 0), check_count(draws, "draws", 0)
    if max(marked, draws) > population:
        raise ValueError(f"marked ({marked}) and draws ({draws}) cannot be more than the population ({population}).")
    plain = population - marked
    least, most = max(0, draws - plain), min(draws, marked)
    k = int(np.floor(np.clip(k, -1, population)))
    if k < least or k >= most:
        return -inf if k < least else 0.0

    def log_term(j):
        return log_choose(marked, j) + log_choose(plain, draws - j) - log_choose(population, draws)

    if k * (population + 2.0) < (draws + 1.0) * (marked + 1.0):  # below the mode

        def falling(j):
            return (k - j + 1) / (marked - k + j) * ((plain - draws + k - j + 1) / (draws - k + j))

        return min(_log_tail(log_term(k), falling, k - least + 1), 0.0)

    def rising(j):
        return (marked - k - j) / (k + 1 + j) * ((draws - k - j) / (plain - draws + k + 1 + j))

    above = _log_tail(log_term(k + 1), rising, most - k)
    return log1p(-exp(above)) if above < 0 else -np.inf


def binomial_upper(errors, n, log_delta):
    """Return the p with P(Bin(n, p) ≤ errors) = δ: the exact upper confidence bound on a risk, of Clopper and Pearson.

    Parameters
    ----------
    errors : Number of errors among the n points.
    n : Number of points.
    log_delta : ln δ, negative; as low as you like.

    Returns
    -------
    bound : 1 if every point is an error; 1 − δ^(1/n) if none is.

    Examples
    --------
    >>> binomial_upper(5, 100, np.log(0.05)), binomial_upper(0, 100, np.log(0.05)), binomial_upper(5, 100, -3000.0)
    (0.102253, 0.029513, 1.0)
    """
    errors, n = check_errors(errors, n)
    if not log_delta < 0:
        raise ValueError(f"log_delta is the logarithm of a probability below 1 and must be negative, not {log_delta!r}.")
    if errors == n:
        return 1.0
    if errors == 0:
        return -expm1(log_delta / n)
    if log_delta > DEEP:
        # never betaincinv at 1 − δ, which is 1 in floats for δ below 1e-16
        return float(betainccinv(errors + 1, n - errors, exp(log_delta)))
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if log_binomial_cdf(errors, n, middle) > log_delta else (low, middle)
    return high


def exponential_upper(mean, nats, n, rates):
    """Return the least over M rates λ of (1 − e^(−λ·mean − (nats + ln M)/n))/(1 − e^(−λ)), from a bound on E e^(−λ·loss).

    Parameters
    ----------
    mean : Observed mean of n losses in [0, 1].
    nats : What one rate costs: ln 1/δ, and a divergence if there is one.
    n : Number of losses.
    rates : Positive number, or several fixed before the data were seen; each pays for all of them.

    Examples
    --------
    >>> exponential_upper(0.1, np.log(20), 1000, rates=1.0)
    0.154827
    """
    check_mean(mean)
    rates = np.atleast_1d(np.asarray(rates, dtype=float))
    if rates.ndim != 1 or not len(rates) or not np.all((rates > 0) & np.isfinite(rates)):
        raise ValueError("rates must be one or several positive finite numbers.")
    budget = (nats + log(len(rates))) / check_count(n, "n")
    return float((np.expm1(-rates * mean - budget) / np.expm1(-rates)).min())


@lru_cache(maxsize=1024)
def pac_bayes_constant(n):
    """Return ξ(n) = Σₖ C(n,k) (k/n)ᵏ (1−k/n)ⁿ⁻ᵏ ≈ √(πn/2) + 2/3, at most 2√n: the constant of PAC-Bayes bounds.

    Parameters
    ----------
    n : Number of points, at least 1.

    Examples
    --------
    >>> pac_bayes_constant(1), pac_bayes_constant(1000)
    (2.0, 40.303213)
    """
    n = check_count(n, "n")
    return 1.0 + exp(_log_tail(0.0, lambda j: 1.0 - j / n, n))


def integer_weight(k):
    """Return 1/((k+1)(k+2)), weights of the whole numbers k ≥ 0 that sum to one.

    Parameters
    ----------
    k : Whole number of at least 0.

    Examples
    --------
    >>> [integer_weight(k) for k in (0, 1, 2)]
    [0.5, 0.1667, 0.0833]
    """
    k = check_count(k, "k", 0)
    return 1 / ((k + 1) * (k + 2))


def grid_weight(j):
    """Return (2/3)/((|j|+1)(|j|+2)), weights of all integers j that sum to one.

    Parameters
    ----------
    j : Integer of either sign.

    Examples
    --------
    >>> grid_weight(0), grid_weight(-2) == grid_weight(2)
    (0.3333, True)
    """
    return 2 / 3 * integer_weight(abs(j))
