"""Uniform bounds: the risk of every hypothesis of an infinite class at once, by what the class can do to finitely many points.

A second, imaginary sample (the ghost) replaces the risk by errors on points; given the points of both samples, only the G(m)
labelings of the growth function matter, and which points fell into which sample is a random permutation. That is all of
Vapnik and Chervonenkis' proof; their bound, and its relatives, then relax the tail of the permutation to an exponential.

`hypergeometric_bound` does not relax it [1]. With a ghost of g points fixed in advance, let K' be the least k' with

    P(at most k of n draws without replacement from n + g points are errors, k + k' being errors) ≤ δ/(2·G(n+g)).

Then R < K'/g for all hypotheses with probability 1 − δ: a hypothesis with k errors and R ≥ K'/g has at least K' errors on the
ghost with probability ½ or more (the median of a binomial variable is at least ⌊gR⌋), and k + K'(k) grows with k, so each of
the G(n+g) patterns of errors fails with probability at most δ/(2G). It was smaller than all others below in every case tried,
and g = 4n is about the best size; the others are here to be compared with it.

The class, not the hypothesis, must be fixed before the data are seen. For nested classes pay δ/(i(i+1)) for the i-th.

[1] Leboeuf, LeBlanc & Marchand, arXiv:2106.06344 (2021). [2] Vapnik & Chervonenkis (1971). [3] Vapnik, Statistical Learning
Theory (1998). [4] Devroye, Györfi & Lugosi, A Probabilistic Theory of Pattern Recognition (1996).
"""

from math import inf, log, sqrt

from lemmata.theory.bounds.tails import check_count, check_delta, check_errors, check_mean, log_hypergeometric_cdf


def _log_growth_at(log_growth, m):
    """Return ln G(m), checked: a class labels any points in at least one way."""
    value = float(log_growth(m))
    if not 0 <= value < inf:
        raise ValueError(f"log_growth must return ln G(m), a finite number of at least 0; at m = {m} it returned {value}.")
    return value


def hypergeometric_bound(errors, n, log_growth, delta, ghost=None):
    """Bound the risk of any hypothesis of a class by inverting the hypergeometric tail of a sample and its ghost.

    Parameters
    ----------
    errors : Number of errors on the n points the hypothesis was chosen with.
    n : Number of points.
    log_growth : Function of m that returns ln G(m), such as ``lambda m: log_cover(m, d)``.
    delta : Probability of failure.
    ghost : Size g of the ghost sample, fixed before the data were seen; 4n if missing.

    Returns
    -------
    bound : K'/g, or 1 if even g errors on the ghost would not be improbable enough.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> hypergeometric_bound(50, 1000, lambda m: log_cover(m, 10), 0.05)
    0.19075
    """
    check_delta(delta)
    errors, n = check_errors(errors, n)
    ghost = 4 * n if ghost is None else check_count(ghost, "ghost")
    goal = log(delta / 2) - _log_growth_at(log_growth, n + ghost)

    def improbable(more):
        return log_hypergeometric_cdf(errors, n + ghost, errors + more, n) <= goal

    if not improbable(ghost):
        return 1.0
    low, high = 0, ghost
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if improbable(middle) else (middle, high)
    return high / ghost


def vc_bound(mean, n, log_growth, delta, sides=1):
    """Bound the risk by mean + √(8·ln(2G(2n)/δ)/n) [2]; on both sides with 4 in place of 2.

    Parameters
    ----------
    mean : Mean of n losses that are 0 or 1.
    n : Number of points.
    log_growth : Function of m that returns ln G(m).
    delta : Probability of failure.
    sides : 1 for an upper bound on the risk, 2 for a bound on |risk − mean|, added to the mean.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> [vc_bound(0.05, 10_000, lambda m: log_cover(m, 10), 0.05, sides=s) for s in (1, 2)]
    [0.315797, 0.316838]
    """
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2, not {sides!r}.")
    n, growth = _common(mean, n, log_growth, delta)
    return float(mean) + sqrt(8 * (growth + log(2 * sides / delta)) / n)


def vapnik_bound(mean, n, log_growth, delta):
    """Bound the risk by mean + 1/n + √(ln(4G(2n)/δ)/n) [3]; most quotations drop the 1/n, and then it is not proved.

    Parameters
    ----------
    mean : Mean of n losses that are 0 or 1.
    n : Number of points.
    log_growth : Function of m that returns ln G(m).
    delta : Probability of failure.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> vapnik_bound(0.05, 10_000, lambda m: log_cover(m, 10), 0.05)
    0.144442
    """
    n, growth = _common(mean, n, log_growth, delta)
    return float(mean) + 1 / n + sqrt((growth + log(4 / delta)) / n)


def devroye_bound(mean, n, log_growth, delta):
    """Bound the risk by mean + ε where 4·e^(4ε+4ε²)·G(n²)·e^(−2nε²) = δ, with a ghost of n² points [4, theorem 12.8].

    Parameters
    ----------
    mean : Mean of n losses that are 0 or 1.
    n : Number of points, at least 3.
    log_growth : Function of m that returns ln G(m).
    delta : Probability of failure.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> devroye_bound(0.05, 10_000, lambda m: log_cover(m, 10), 0.05)
    0.143431
    """
    check_delta(delta)
    check_mean(mean)
    n = check_count(n, "n", 3)
    curvature = 2 * n - 4  # the exponent is a quadratic: curvature·ε² − 4ε = ln(4G/δ)
    return float(mean) + (2 + sqrt(4 + curvature * (_log_growth_at(log_growth, n * n) + log(4 / delta)))) / curvature


def relative_bound(mean, n, log_growth, delta):
    """Bound the risk by mean + 2A(1 + √(1 + mean/A)), A = ln(4G(2n)/δ)/n: of the order 1/n where the mean is 0.

    Solves P(some h has (risk − mean)/√risk > ε) ≤ 4·G(2n)·e^(−nε²/4) for the risk.

    Parameters
    ----------
    mean : Mean of n losses that are 0 or 1.
    n : Number of points.
    log_growth : Function of m that returns ln G(m).
    delta : Probability of failure.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> relative_bound(0.05, 10_000, lambda m: log_cover(m, 10), 0.05)
    0.113593
    """
    n, growth = _common(mean, n, log_growth, delta)
    unit = (growth + log(4 / delta)) / n
    return float(mean) + 2 * unit * (1 + sqrt(1 + mean / unit))


def realizable_vc_bound(n, log_growth, delta):
    """Bound the risk of every hypothesis without an error by (2/n)·log₂(2G(2n)/δ), and not below 8/n.

    Blumer, Ehrenfeucht, Haussler & Warmuth, Journal of the ACM 36 (1989).

    Parameters
    ----------
    n : Number of points, on none of which the hypothesis errs.
    log_growth : Function of m that returns ln G(m).
    delta : Probability of failure.

    Examples
    --------
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> realizable_vc_bound(10_000, lambda m: log_cover(m, 10), 0.05)
    0.025481
    """
    n, growth = _common(0.0, n, log_growth, delta)
    return max(2 / n * (growth + log(2 / delta)) / log(2), 8 / n)  # the proof needs n ≥ 8/ε


def _common(mean, n, log_growth, delta):
    """Check what these bounds have in common; return n and ln G(2n)."""
    check_delta(delta)
    check_mean(mean)
    n = check_count(n, "n")
    return n, _log_growth_at(log_growth, 2 * n)
