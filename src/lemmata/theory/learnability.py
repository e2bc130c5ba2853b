"""Learnability: what can be learned at all, and hierarchies of classes that can be learned one competitor at a time.

Fundamental theorem: for a class of binary hypotheses it is all the same whether it has uniform convergence, whether ERM learns
it in the agnostic sense, whether anything does, whether ERM learns it in the realizable case, whether anything does, and
whether its VC dimension is finite. If d points are shattered, no learner reaches ε = δ = 1/8 with d/2 rows or fewer (no free
lunch on those points); so with infinite dimension no number of rows is enough.

A class that is a union of classes H₁, H₂, … of finite dimension is learned non-uniformly: for each competitor h there is a
number of rows, which depends on h, after which the learner is within ε of h with probability at least 1 − δ; and only such
unions are. (Those h that need at most n rows for ε = δ = 1/8 form a class of dimension at most 2n.) Share δ out by weights
w(n) ≥ 0 with Σ w(n) ≤ 1: with probability 1 − δ, for all h at once,
    |L_S(h) − L_D(h)| ≤ ε_n(m, w(n) δ),   n = n(h) = the first n with h ∈ H_n,
where ε_n(m, δ') is the deviation that class n has on m rows with probability δ'. The weight stands there once: it is no part of
ε_n itself. The minimum of L_S(h) + ε_n(h)(m, w δ) is within ε of h after m_UC of the class n(h) at (ε/2, w(n) δ) rows.
"""

from dataclasses import dataclass
from math import inf, isfinite, pi

import numpy as np

from lemmata.core.random import generator
from lemmata.theory.bounds.holdout import clopper_pearson_interval
from lemmata.theory.bounds.tails import check_count, check_delta
from lemmata.theory.sample_size import epsilon as accuracy
from lemmata.theory.sample_size import sample_size


@dataclass(frozen=True)
class Learnability:
    """Six properties of a class that are one and the same.

    Attributes
    ----------
    vc_dim : VC dimension, or infinity.
    uniform_convergence : Every risk can be estimated by one sample, whatever the distribution.
    erm_agnostic_pac, agnostic_pac : ERM, or some learner, comes as near to the best hypothesis as one likes.
    erm_pac, pac : The same where some hypothesis has no risk.
    finite_vc_dim : The VC dimension is finite.
    lower_bound : Rows without which no learner reaches ε = δ = 1/8.
    """

    vc_dim: float
    uniform_convergence: bool
    erm_agnostic_pac: bool
    agnostic_pac: bool
    erm_pac: bool
    pac: bool
    finite_vc_dim: bool
    lower_bound: float

    @property
    def properties(self):
        """The six booleans by name."""
        names = ("uniform_convergence", "erm_agnostic_pac", "agnostic_pac", "erm_pac", "pac", "finite_vc_dim")
        return {name: getattr(self, name) for name in names}


def learnability_report(hypotheses):
    """Say whether a class can be learned, in each of the six senses that are equivalent.

    Parameters
    ----------
    hypotheses : Hypothesis class, or anything else with `vc_dim`, or the VC dimension.

    Examples
    --------
    >>> learnability_report(float("inf")).pac, learnability_report(3).pac
    (False, True)
    """
    d = getattr(hypotheses, "vc_dim", hypotheses)
    finite = isfinite(d)
    return Learnability(d, *[finite] * 6, pac_lower_bound(d))


def pac_lower_bound(vc_dim):
    """Return the number of rows below which no learner reaches ε = δ = 1/8; infinite for an infinite VC dimension.

    Examples
    --------
    >>> pac_lower_bound(4), pac_lower_bound(5), pac_lower_bound(float("inf"))
    (3, 3, inf)
    """
    return inf if vc_dim == inf else check_count(vc_dim, "vc_dim", 0) // 2 + 1


def inverse_square(n):
    """Return the weight 6/(π² n²) of class n = 1, 2, …; they sum to one.

    Examples
    --------
    >>> inverse_square(3)
    0.067547
    """
    return 6 / (pi * n) ** 2


def telescoping(n):
    """Return the weight 1/(n (n + 1)) of class n = 1, 2, …; they sum to one.

    Examples
    --------
    >>> telescoping(3)
    0.083333
    """
    return 1 / (n * (n + 1))


def geometric(n):
    """Return the weight 2⁻ⁿ of class n = 1, 2, …; they sum to one.

    Examples
    --------
    >>> geometric(3)
    0.125
    """
    return 2.0**-n


def srm_weights(size, weights=None):
    """Return the weights of classes 1, …, size, and refuse those that sum to more than one.

    Parameters
    ----------
    weights : Function of n, or one number for each class; default `inverse_square`.

    Examples
    --------
    >>> srm_weights(3).tolist(), srm_weights(2, [0.9, 0.1]).tolist()
    ([0.608, 0.152, 0.0675], [0.9, 0.1])
    """
    weights = inverse_square if weights is None else weights
    found = np.array([weights(n) for n in range(1, size + 1)] if callable(weights) else weights, dtype=float)
    if found.shape != (size,):
        raise ValueError(f"There must be one weight for each of the {size} classes, and there are {found.size}.")
    if not (found >= 0).all() or found.sum() > 1 + 1e-12:  # a sum of many weights rounds
        raise ValueError(f"The weights share out δ: they are at least 0 and sum to at most 1; these sum to {found.sum():.6g}.")
    return found


def srm_penalty(n, m, delta, weights=None, *, hypotheses=None, vc_dim=None):
    """Return ε_n(m, w(n) δ): by how much the risks of class n may deviate if all classes share δ.

    Parameters
    ----------
    n : Number of the class, from 1.
    m : Rows.
    delta : Probability that some risk of some class deviates by more.
    weights : Function of n; default `inverse_square`.
    hypotheses, vc_dim : Number of hypotheses of class n, or its VC dimension.

    Examples
    --------
    >>> srm_penalty(3, 1000, 0.05, hypotheses=2**3)
    0.0650509
    """
    check_delta(delta)
    weight = (inverse_square if weights is None else weights)(check_count(n, "n"))
    if not 0 <= weight <= 1:
        raise ValueError(f"The weight of a class lies between 0 and 1; that of class {n} is {weight!r}.")
    if weight == 0:
        return 1.0
    return accuracy(m, weight * delta, hypotheses=hypotheses, vc_dim=vc_dim, goal="deviation")


class Hierarchy:
    """A union of hypothesis classes H₁, H₂, …, each with its VC dimension.

    Parameters
    ----------
    classes : List of pairs (class, VC dimension). A class that only has to be counted may be None.
    weights : Share of δ of each class; default 6/(π² n²).

    Examples
    --------
    >>> hierarchy = Hierarchy([(None, 1), (None, 2), (None, 3)])
    >>> hierarchy.is_nonuniformly_learnable, Hierarchy([(None, float("inf"))]).is_nonuniformly_learnable
    (True, False)
    >>> [hierarchy.sample_size(n, 0.2, 0.05) for n in (1, 2, 3)]
    [12826, 22659, 31984]
    """

    def __init__(self, classes, weights=None):
        if not classes:
            raise ValueError("A hierarchy needs at least one class.")
        self.classes = [cls for cls, _ in classes]
        self.vc_dims = [d if d == inf else check_count(d, "A VC dimension", 0) for _, d in classes]
        self.weights = srm_weights(len(classes), weights)

    def __len__(self):
        return len(self.classes)

    @property
    def is_nonuniformly_learnable(self):
        """Whether every class has a finite VC dimension."""
        return all(isfinite(d) for d in self.vc_dims)

    def penalty(self, n, m, delta):
        """Return ε_n(m, w(n) δ) of class n = 1, 2, …, by its size if it is a finite class, else by its VC dimension."""
        return srm_penalty(n, m, delta, self._weight, **self._richness(n))

    def sample_size(self, n, epsilon, delta):
        """Return after how many rows structural risk minimization is within ε of any h of class n: m_UC(ε/2, w(n) δ)."""
        return sample_size(epsilon, self._weight(n) * delta, **self._richness(n))

    def _weight(self, n):
        return float(self.weights[n - 1])

    def _richness(self, n):
        cls = self.classes[n - 1]
        return {"hypotheses": len(cls)} if hasattr(cls, "__len__") else {"vc_dim": self.vc_dims[n - 1]}


def first_class(hierarchy, points):
    """List every behavior of a hierarchy on some points, with the first class that has it.

    Parameters
    ----------
    hierarchy : `Hierarchy` of classes with `dichotomies`.

    Returns
    -------
    table : Behaviors, a row each.
    number : n(h) of each, from 1.

    Examples
    --------
    >>> from lemmata.theory.classes.finite_class import FiniteClass
    >>> small, large = FiniteClass([[0, 0]]), FiniteClass([[0, 0], [1, 1]])
    >>> first_class(Hierarchy([(small, 0), (large, 1)]), [0, 1])
    (array([[False, False],
           [ True,  True]]), array([1, 2]))
    """
    first = {}
    for n, cls in enumerate(hierarchy.classes, start=1):
        for row in cls.dichotomies(points):
            first.setdefault(row.tobytes(), (row, n))
    rows, numbers = zip(*first.values(), strict=True)
    return np.array(rows), np.array(numbers)


@dataclass(frozen=True)
class Coverage:
    """How often all risks of a hierarchy were within their penalties, and the limits of Clopper and Pearson for that."""

    covered: int
    n_trials: int
    lower: float
    upper: float


def simultaneous_coverage(hierarchy, distribution, m, delta, *, n_trials=1000, level=0.99, random_state=None):
    """Count samples on which |L_S(h) − L_D(h)| ≤ ε_n(h)(m, w δ) for every h of every class at once.

    Parameters
    ----------
    hierarchy : `Hierarchy` of classes with `dichotomies`.
    distribution : `FiniteDistribution`.
    m : Rows of a sample.

    Examples
    --------
    >>> from lemmata.theory.classes.finite_class import FiniteClass
    >>> from lemmata.theory.risk import FiniteDistribution
    >>> hierarchy = Hierarchy([(FiniteClass([[0, 0]]), 0), (FiniteClass([[0, 0], [0, 1], [1, 1]]), 1)])
    >>> law = FiniteDistribution([0, 1], label_probabilities=[0.3, 0.6])
    >>> simultaneous_coverage(hierarchy, law, 50, 0.05, random_state=0).lower > 0.95
    True
    """
    table, number = first_class(hierarchy, distribution.points)
    limits = np.array([hierarchy.penalty(n, m, delta) for n in range(1, len(hierarchy) + 1)])[number - 1]
    true = np.array([float(risk) for risk in distribution.risks(table)])
    empirical = distribution.counts(m, n_trials, generator(random_state)) @ distribution.mistakes(table).T / m
    covered = int((np.abs(empirical - true) <= limits).all(axis=1).sum())
    return Coverage(covered, n_trials, *clopper_pearson_interval(covered, n_trials, 1 - level))
