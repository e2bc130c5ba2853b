"""Sample compression: a model that a few of its training points determine is tested by all the others.

Let the model be a function of k of the n points and perhaps a message. If the k positions had been named in advance, the other
n − k points would be a test set. There are C(n, k) ways to name them, and k itself is named with weight w_k = 1/((k+1)(k+2)):

- e errors outside: Clopper-Pearson with e, n − k and δ·w_k·2^(−bits)/C(n, k) [1]; e = 0 is Littlestone and Warmuth's bound;
- no errors, and dropping a point that was not kept changes nothing: cut the sample by position into B blocks, of which the
  kept points touch at most k; then only C(B, k) sets need names, and B − k blocks are a test set [2];
- if moreover the order of the points is irrelevant, and the kept set changes exactly when one further point, on its own,
  would change it, Campi and Garatti's bound holds for all k at once, without w_k [3]: the ε that solves
  (δ/n)·Σ_{m=k}^{n−1} C(m, k)/C(n, k)·(1−ε)^(−(n−m)) = 1.

A support vector machine with a fixed kernel and a fixed C has all three, with I = {i : yᵢf(xᵢ) ≤ 1}: retraining on I gives the
same f, and a new point with y·f > 1 changes nothing. The last bound then holds for P(y·f ≤ 1), which is at least the risk. All
training errors are in I already; to add them again would count them twice. The last perceptron after one pass may err outside
the points that moved it, and takes the first bound; run to convergence it takes the second, not the third, as order matters.
A scaler fitted on all points, or a C tuned on them, is not a function of the kept points, and nothing here holds.

[1] Langford, JMLR 6 (2005); Graepel, Herbrich & Shawe-Taylor, Machine Learning 59 (2005). [2] Bousquet, Hanneke, Moran &
Zhivotovskiy, COLT (2020). [3] Campi & Garatti, JMLR 24 (2023).
"""

from math import expm1, log, sqrt

import numpy as np

from lemmata.theory.bounds.tails import binomial_upper, check_count, check_delta, check_errors, integer_weight, log_choose

EPS = float(np.finfo(float).eps)
STEPS = 100  # of Newton's method, which takes about ten


def _kept(kept, n, delta):
    """Return kept and n as ints, 0 ≤ kept ≤ n, and ln 1/(δ·w_k)."""
    check_delta(delta)
    kept, n = check_count(kept, "kept", 0), check_count(n, "n")
    if kept > n:
        raise ValueError(f"No more points can be kept than there are: kept is {kept} and n is {n}.")
    return kept, n, -log(delta * integer_weight(kept))


def compression_bound(errors, kept, n, delta, bits=0.0):
    """Bound the risk of a model that is a function of k of its n training points and of a message.

    Parameters
    ----------
    errors : Number of errors on the n − k points outside the kept set, not on all n.
    kept : Size k of the kept set.
    n : Number of training points.
    delta : Probability of failure.
    bits : Length of the message.

    Examples
    --------
    >>> compression_bound(30, 20, 1000, 0.05), compression_bound(0, 20, 1000, 0.05)
    (0.176421, 0.101382)
    """
    kept, n, nats = _kept(kept, n, delta)
    if not bits >= 0:
        raise ValueError(f"bits is the length of a message and cannot be negative, but it is {bits!r}.")
    if kept == n:
        return 1.0
    return binomial_upper(errors, n - kept, -nats - log_choose(n, kept) - bits * log(2))


def graepel_bound(errors, kept, n, delta):
    """Bound the same risk by e/(n−k) + √(ln(C(n,k)/(δ·w_k))/(2(n−k))): Hoeffding's form, never smaller.

    Parameters
    ----------
    errors : Number of errors on the n − k points outside the kept set.
    kept : Size k of the kept set.
    n : Number of training points.
    delta : Probability of failure.

    Examples
    --------
    >>> graepel_bound(30, 20, 1000, 0.05)
    0.261802
    """
    kept, n, nats = _kept(kept, n, delta)
    if kept == n:
        return 1.0
    errors, tested = check_errors(errors, n - kept)
    return errors / tested + sqrt((log_choose(n, kept) + nats) / (2 * tested))


def stable_compression_bound(kept, n, delta):
    """Bound the risk where no point outside is an error and dropping unkept points changes nothing.

    The least over B of 1 − (δ·w_k/C(B, k))^(1/((B−k)⌊n/B⌋)); the best B depends on n and k only and need not be paid for.

    Parameters
    ----------
    kept : Size k of the kept set.
    n : Number of training points.
    delta : Probability of failure.

    Examples
    --------
    >>> stable_compression_bound(20, 1000, 0.05)
    0.065452
    """
    kept, n, nats = _kept(kept, n, delta)
    if kept == n:
        return 1.0
    blocks = np.arange(kept + 1, n + 1)
    rates = (log_choose(blocks, kept) + nats) / ((blocks - kept) * (n // blocks))
    return -expm1(-float(rates.min()))


def campi_garatti_bound(kept, n, delta):
    """Bound P(a new point would change the kept set) for stable compressions in which order is irrelevant.

    With s = −ln(1−ε) the logarithm of the sum is convex in s and grows, so Newton's method that starts beyond the solution
    comes down to it and never passes it: the result errs on the safe side.

    Parameters
    ----------
    kept : Size k of the kept set; for a support vector machine the number of points with y·f(x) ≤ 1.
    n : Number of training points.
    delta : Probability of failure.

    Examples
    --------
    >>> campi_garatti_bound(20, 1000, 0.05), campi_garatti_bound(200, 1000, 0.05)
    (0.035522, 0.242044)
    """
    kept, n, _ = _kept(kept, n, delta)
    if kept == n:
        return 1.0
    sizes = np.arange(kept, n)
    powers = (n - sizes).astype(float)
    logs = log(delta / n) + log_choose(sizes, kept) - log_choose(n, kept)
    s = float((-logs / powers).min())  # one term alone reaches 1 here
    for _ in range(STEPS):
        terms = logs + powers * s
        largest = float(terms.max())
        weights = np.exp(terms - largest)
        total = float(weights.sum())
        step = (largest + log(total)) * total / float(weights @ powers)
        if step <= EPS * s:
            break
        s -= step
    return -expm1(-s)


def support_vector_expectation(kept, n):
    """Return #SV/n, whose expectation bounds the expected risk of a machine trained on n − 1 points, by leave-one-out.

    Parameters
    ----------
    kept : Number of support vectors.
    n : Number of training points.

    Returns
    -------
    value : A bound in expectation only: it does not hold with high probability.

    Examples
    --------
    >>> support_vector_expectation(20, 1000)
    0.02
    """
    kept, n = check_errors(kept, n)
    return kept / n
