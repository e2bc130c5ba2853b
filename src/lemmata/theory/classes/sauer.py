"""Counting labelings: Sauer's lemma, Cover's count for half-spaces, and the shattered subsets of a set, as exact integers.

A class H leaves at most as many labelings on a set C as C has subsets that H shatters [1]. If the dimension of H is d, these
have at most d points, so that (Sauer's lemma [2])

    π(m) ≤ Σ_{i≤d} C(m, i)  ≤ (em/d)ᵈ  for m ≥ d ≥ 1,   and   Σ_{i≤d} C(m, i) ≤ mᵈ + 1  always.

The bound mᵈ alone is wrong for d = 1, where the sum is m + 1, and for m = 1; it holds for m, d ≥ 2. Half-spaces of R^d are not
the worst of their dimension d + 1: they have Cover's count 2·Σ_{i≤d} C(m − 1, i), reached by points in general position [3],
which is at most m^(d+1) for m ≥ 2, and those whose planes hold the origin have 2·Σ_{i<d} C(m − 1, i).

[1] Pajor, Sous-espaces l₁ⁿ des espaces de Banach (1985). [2] Sauer, J. Comb. Theory A 13 (1972).
[3] Cover, IEEE Trans. Electron. Comput. 14 (1965).
"""

from math import comb, e

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.finite_class import shattered_sets


def sauer_bound(m, d):
    """Return Σ_{i≤d} C(m, i), the most labelings of m points by a class of dimension d, an exact integer.

    Examples
    --------
    >>> sauer_bound(5, 2), sauer_bound(100, 50)
    (16, 684270972386896797415757851316)
    """
    m, d = check_count(m, "m", 0), check_count(d, "d", 0)
    return 2**m if d >= m else sum(comb(m, i) for i in range(d + 1))


def sauer_exponential(m, d):
    """Return (em/d)ᵈ ≥ Σ_{i≤d} C(m, i), which holds for m ≥ d ≥ 1.

    Examples
    --------
    >>> sauer_exponential(5, 2)
    46.1816
    """
    m, d = check_count(m, "m"), check_count(d, "d")
    if m < d:
        raise ValueError(f"(em/d)^d bounds the sum for m ≥ d only, and m = {m} < d = {d}: use sauer_bound, which is 2^m there.")
    return (e * m / d) ** d


def sauer_polynomial(m, d):
    """Return mᵈ + 1 ≥ Σ_{i≤d} C(m, i), an exact integer.

    Examples
    --------
    >>> sauer_polynomial(5, 2), sauer_polynomial(7, 1)
    (26, 8)
    """
    return check_count(m, "m", 0) ** check_count(d, "d", 0) + 1


def half_space_dichotomies(m, d, homogeneous=False):
    """Return Cover's count of the labelings of m points of R^d in general position by half-spaces, an exact integer.

    It is the most that any m points can have. Homogeneous half-spaces are {x : ⟨w, x⟩ > 0} with w ≠ 0.

    Examples
    --------
    >>> [half_space_dichotomies(m, 2) for m in range(1, 6)]
    [2, 4, 8, 14, 22]
    >>> [half_space_dichotomies(m, 3, homogeneous=True) for m in range(1, 6)]
    [2, 4, 8, 14, 22]
    """
    m, d = check_count(m, "m", 0), check_count(d, "d")
    return 2 * sauer_bound(m - 1, d - bool(homogeneous)) if m else 1


def count_shattered_subsets(cls, points):
    """Return how many subsets of the points the class shatters, the empty one included: at least len(cls.dichotomies(points)).

    Examples
    --------
    >>> from lemmata.theory.classes.finite_class import FiniteClass
    >>> H = FiniteClass([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1]])
    >>> count_shattered_subsets(H, [0, 1, 2]), len(H.dichotomies([0, 1, 2]))
    (5, 4)
    """
    return sum(len(level) for level in shattered_sets(cls.dichotomies(points)))
