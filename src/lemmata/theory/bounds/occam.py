"""Finite and countable classes: bounds that hold for all hypotheses at once, so the data may choose among them.

Each hypothesis h fails its own bound with probability δ·p(h); if Σ p(h) ≤ 1 and the weights p were fixed before the data were
seen, all bounds hold together with probability 1 − δ, and with them that of whichever h was chosen (Occam's razor: ln 1/p(h)
is the length of its name in nats). With equal weights 1/|H| this is the union bound over a finite class:

- no errors on n points: P(some h with risk > ε has none) ≤ |H|(1−ε)ⁿ, so the risk is at most 1 − (δ/|H|)^(1/n);
- k errors: Clopper-Pearson, kl or Hoeffding at δ/|H|, in this order from the smallest to the largest.

The h with the fewest errors is at most 2√(ln((|H|+1)/δ)/2n) worse than the best of the class: |H| upper deviations and a
single lower one, of the fixed best h. A sample of (2/ε²)·ln(2|H|/δ) makes it ε-optimal; 1/(2ε²) instead of 2/ε² is enough for
the deviation only.

A decision tree has a name too: in pre-order one bit at each node tells inner nodes from leaves (2L − 1 bits), each inner node
names its feature and one of 2ᵇ thresholds, each leaf its class. Kraft's sum is exactly 1. The list of thresholds must not come
from the sample: neither its quantiles nor its range; 32 bits name every float32.

Blumer, Ehrenfeucht, Haussler & Warmuth, Information Processing Letters 24 (1987). Langford, JMLR 6 (2005).
"""

from math import expm1, log, sqrt

from lemmata.theory.bounds.tails import binomial_upper, check_count, check_delta, check_errors, kl_upper


def realizable_bound(hypotheses, n, delta):
    """Bound the risk of every hypothesis without an error by 1 − (δ/|H|)^(1/n), at most (ln|H| + ln 1/δ)/n.

    Parameters
    ----------
    hypotheses : Size |H| of the class, fixed before the data were seen.
    n : Number of points, on none of which the hypothesis errs.
    delta : Probability of failure.

    Examples
    --------
    >>> realizable_bound(1000, 500, 0.05)
    0.019612
    """
    check_delta(delta)
    return -expm1((log(delta) - log(check_count(hypotheses, "hypotheses"))) / check_count(n, "n"))


def finite_class_bound(errors, n, hypotheses, delta, form="binomial"):
    """Bound the risk of any hypothesis of a finite class, chosen in any way, by a test-set bound at δ/|H|.

    Parameters
    ----------
    errors : Number of errors of the hypothesis on the n points it was chosen with.
    n : Number of points.
    hypotheses : Size |H| of the class.
    delta : Probability of failure.
    form : "binomial" (the smallest), "kl" or "hoeffding".

    Examples
    --------
    >>> [finite_class_bound(50, 500, 1000, 0.05, form) for form in ("binomial", "kl", "hoeffding")]
    [0.161571, 0.169995, 0.199516]
    """
    check_delta(delta)
    errors, n = check_errors(errors, n)
    nats = log(check_count(hypotheses, "hypotheses")) - log(delta)
    if form == "binomial":
        return binomial_upper(errors, n, -nats)
    if form == "kl":
        return kl_upper(errors / n, nats / n)
    if form == "hoeffding":
        return errors / n + sqrt(nats / (2 * n))
    raise ValueError(f'form must be "binomial", "kl" or "hoeffding", not {form!r}.')


def excess_bound(hypotheses, n, delta):
    """Bound how much worse than the best of a finite class the hypothesis with the fewest errors is: 2√(ln((|H|+1)/δ)/2n).

    Parameters
    ----------
    hypotheses : Size |H| of the class.
    n : Number of points.
    delta : Probability of failure.

    Examples
    --------
    >>> excess_bound(1000, 500, 0.05)
    0.199043
    """
    check_delta(delta)
    nats = log(check_count(hypotheses, "hypotheses") + 1) - log(delta)
    return 2 * sqrt(nats / (2 * check_count(n, "n")))


def occam_bound(errors, n, nats, delta):
    """Bound the risk of a hypothesis by Clopper-Pearson at δ·e^(−nats), nats = ln 1/p(h) the length of its name.

    Structural risk minimization is the special case of one name for each class of a nested sequence, such as ln i(i+1).

    Parameters
    ----------
    errors : Number of errors on the n points the hypothesis was chosen with.
    n : Number of points.
    nats : Length of the hypothesis' name in a prefix code that was fixed before the data were seen.
    delta : Probability of failure.

    Examples
    --------
    >>> occam_bound(50, 1000, tree_code_length(8, features=10, bits=8), 0.05)
    0.174905
    """
    check_delta(delta)
    if not nats >= 0:
        raise ValueError(f"nats is the length of a name and cannot be negative, but it is {nats!r}.")
    return binomial_upper(errors, n, log(delta) - nats)


def tree_code_length(leaves, features, bits, classes=2):
    """Return (2L−1) ln 2 + (L−1)(ln d + b ln 2) + L ln K: the name of a decision tree in nats.

    Parameters
    ----------
    leaves : Number L of leaves.
    features : Number d of features.
    bits : Number b of bits that name a threshold in a list fixed before the data were seen.
    classes : Number K of classes.

    Examples
    --------
    >>> tree_code_length(8, features=10, bits=8)
    70.876723
    """
    leaves, features = check_count(leaves, "leaves"), check_count(features, "features")
    classes = check_count(classes, "classes", 2)
    if not bits >= 0:
        raise ValueError(f"bits names a threshold and cannot be negative, but it is {bits!r}.")
    return float((2 * leaves - 1) * log(2) + (leaves - 1) * (log(features) + bits * log(2)) + leaves * log(classes))
