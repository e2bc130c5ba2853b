"""Growth functions: in how many ways a class can label m points, at most, as logarithms.

G(m) is the largest number of different labelings that hypotheses of a class produce on any m points. A class that shatters
no set of d + 1 points (its VC dimension is d) has G(m) ≤ Σ_{i≤d} C(m, i) (Sauer's lemma); use the sum itself, as the popular
(em/d)ᵈ is larger, and false for m < d. Half-spaces reach Cover's count 2·Σ_{i≤d} C(m−1, i) exactly [1]: it is the maximum over
all sets of points, so nothing needs to be in general position. Everything that is linear in fixed features (polynomials,
quadratic discriminants, naive Bayes with Gaussian features) is a half-space in the space of the features.

Decision stumps and trees are counted directly: m points have at most m − 1 gaps in each of d features. The thresholds may
therefore come from the sample itself. A tree with L leaves has one of Catalan(L−1) shapes, a split at each of L − 1 nodes, and
a class at each leaf; the shape counts because it is learned.

[1] Cover, IEEE Transactions on Electronic Computers 14 (1965). [2] Gey, Statistics & Probability Letters 138 (2018).
"""

from math import comb, log

import numpy as np
from scipy.special import logsumexp

from lemmata.theory.bounds.tails import check_count, log_choose


def log_sauer(m, d):
    """Return ln Σ_{i≤d} C(m, i): Sauer's bound for a class of VC dimension d on m points.

    Parameters
    ----------
    m : Number of points.
    d : VC dimension.

    Examples
    --------
    >>> float(np.exp(log_sauer(5, 2))), float(np.exp(log_sauer(5, 9)))
    (16.0, 32.0)
    """
    m, d = check_count(m, "m", 0), check_count(d, "d", 0)
    return m * log(2) if d >= m else float(logsumexp(log_choose(m, np.arange(d + 1))))


def log_cover(m, d):
    """Return ln 2·Σ_{i≤d} C(m−1, i): labelings of m points by affine half-spaces of a d-dimensional space.

    For models without an intercept use the same count: theirs is smaller only if w = 0 is excluded, and a fit may end there.

    Parameters
    ----------
    m : Number of points, at least 1.
    d : Dimension.

    Examples
    --------
    >>> [round(float(np.exp(log_cover(m, 2)))) for m in range(1, 6)]
    [2, 4, 8, 14, 22]
    """
    return log(2) + log_sauer(check_count(m, "m") - 1, d)


def log_argmax_linear(m, d, classes):
    """Return ln of Cover's count to the power K(K−1)/2: the class with the largest of K affine functions, one plane per pair.

    Parameters
    ----------
    m : Number of points.
    d : Dimension.
    classes : Number K of classes, at least 2.

    Examples
    --------
    >>> log_argmax_linear(100, 3, classes=3) / log_cover(100, 3)
    3.0
    """
    classes = check_count(classes, "classes", 2)
    return comb(classes, 2) * log_cover(m, d)


def log_polynomials(m, d, degree):
    """Return ln of the labelings by the sign of a polynomial in d variables: half-spaces in C(d+p, p) − 1 monomials.

    Parameters
    ----------
    m : Number of points.
    d : Number of variables.
    degree : Degree p of the polynomial, fixed before the data were seen or paid for by structural risk minimization.

    Examples
    --------
    >>> log_polynomials(50, 3, degree=1) == log_cover(50, 3)
    True
    """
    d, degree = check_count(d, "d"), check_count(degree, "degree", 0)
    return log_cover(m, comb(d + degree, degree) - 1)


def log_naive_bayes(m, d):
    """Return ln of the labelings by Gaussian naive Bayes with two classes: half-spaces in the 2d features x and x².

    Parameters
    ----------
    m : Number of points.
    d : Number of features.

    Examples
    --------
    >>> log_naive_bayes(50, 3) == log_cover(50, 6)
    True
    """
    return log_cover(m, 2 * check_count(d, "d"))


def log_quadratic(m, d):
    """Return ln of the labelings by a quadratic discriminant with two classes: half-spaces in d(d+3)/2 features.

    Parameters
    ----------
    m : Number of points.
    d : Number of features.

    Examples
    --------
    >>> log_quadratic(50, 3) == log_polynomials(50, 3, degree=2)
    True
    """
    return log_polynomials(m, d, 2)


def log_stumps(m, d):
    """Return ln(2d(m−1) + 2): labelings by one threshold in one of d features, either side positive.

    Parameters
    ----------
    m : Number of points.
    d : Number of features.

    Examples
    --------
    >>> float(np.exp(log_stumps(3, 1)))
    6.0
    """
    return log(2 * check_count(d, "d") * (check_count(m, "m") - 1) + 2)


def stump_vc_dimension(d):
    """Return the VC dimension of decision stumps in d features: the largest v with C(v, ⌊v/2⌋) ≤ 2d; not 2, and not d + 1.

    Each feature orders the points, and a stump takes one end of an order. An order has two sets of ⌊v/2⌋ points at its ends, so
    that all C(v, ⌊v/2⌋) such sets take half as many orders; these can be chosen to end in all smaller and larger sets too [2].

    Parameters
    ----------
    d : Number of features.

    Examples
    --------
    >>> [stump_vc_dimension(d) for d in (1, 2, 10, 100)]
    [2, 3, 6, 9]
    """
    d = check_count(d, "d")
    v = 1
    while comb(v + 1, (v + 1) // 2) <= 2 * d:
        v += 1
    return v


def log_catalan(j):
    """Return ln of the Catalan number C(2j, j)/(j+1): binary trees with j inner nodes and j + 1 leaves.

    Parameters
    ----------
    j : Number of inner nodes.

    Examples
    --------
    >>> [round(float(np.exp(log_catalan(j)))) for j in range(6)]
    [1, 1, 2, 5, 14, 42]
    """
    j = check_count(j, "j", 0)
    return log_choose(2 * j, j) - log(j + 1)


def log_trees(m, d, leaves, classes=2):
    """Return ln Catalan(L−1)·(d(m−1))^(L−1)·K^L: labelings by decision trees with L leaves and thresholds anywhere.

    Parameters
    ----------
    m : Number of points.
    d : Number of features.
    leaves : Number L of leaves, fixed before the data were seen or paid for by structural risk minimization.
    classes : Number K of classes.

    Examples
    --------
    >>> log_trees(2000, 10, leaves=8)
    80.927546
    """
    m, d, leaves = check_count(m, "m"), check_count(d, "d"), check_count(leaves, "leaves")
    classes = check_count(classes, "classes", 2)
    splits = max(d * (m - 1), 1)  # one point cannot be split, and the only labelings are those of one leaf
    return log_catalan(leaves - 1) + (leaves - 1) * log(splits) + leaves * log(classes)


def log_boosted_stumps(m, d, rounds):
    """Return ln C(d(m−1)+T, T)·Cover(m, T): labelings by a weighted vote of T stumps.

    The stumps are one of C(d(m−1)+T, T) multisets up to sign and constants, and given them the vote is a half-space in T
    dimensions.

    Parameters
    ----------
    m : Number of points.
    d : Number of features.
    rounds : Number T of stumps.

    Examples
    --------
    >>> log_boosted_stumps(2000, 10, rounds=20)
    266.015
    """
    m, d, rounds = check_count(m, "m"), check_count(d, "d"), check_count(rounds, "rounds")
    return log_choose(d * (m - 1) + rounds, rounds) + log_cover(m, rounds)
