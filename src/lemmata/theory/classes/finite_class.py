"""Finite classes: a list of hypotheses, or a table of what each hypothesis says of each point of a finite domain.

On a finite domain everything is a matter of counting. A set of d points can only be shattered if the class has at least 2ᵈ
members (2^VCdim ≤ |H|, not the other way round: infinite classes may have dimension one), and each subset of a shattered set
is shattered, so the search for the largest one goes upward: a set of size k + 1 is tried only if all its subsets of size k
passed [1].

[1] Mannila & Toivonen, Data Min. Knowl. Discov. 1 (1997), for this way through the subsets.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.hypotheses import EmpiricalMinimum, HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, as_weights, sorted_labelings

SETS = 2_000_000  # subsets of a domain that an exhaustive count may look at: about a minute


@dataclass(frozen=True)
class Row:
    """One hypothesis of a table: the points are positions in the domain.

    Examples
    --------
    >>> Row(0, np.array([True, False])).predict([1, 0])
    array([False,  True])
    """

    number: int
    values: np.ndarray

    def predict(self, points):
        """Return what the hypothesis says of these positions."""
        return self.values[np.asarray(points, dtype=int)]


@dataclass(frozen=True)
class Function:
    """One hypothesis given as a function of a point.

    Examples
    --------
    >>> Function(0, lambda x: x > 1).predict([0, 2])
    array([False,  True])
    """

    number: int
    function: Any

    def predict(self, points):
        """Return what the function says of each point."""
        return np.array([bool(self.function(x)) for x in points], dtype=bool)


@dataclass(frozen=True)
class EachErrs(Refutation):
    """Every hypothesis of a finite class errs on one of the points.

    Attributes
    ----------
    hypotheses : The whole class.
    errs : For each hypothesis a point on which it errs, as a position among the points.

    Examples
    --------
    >>> refutation = FiniteClass([[0, 0], [1, 1]]).refutes([0, 1], [1, 0])
    >>> refutation.errs, refutation.valid()
    (array([0, 1]), True)
    """

    points: Any
    labels: np.ndarray
    hypotheses: list
    errs: np.ndarray

    def valid(self):
        """Let every hypothesis predict the point on which it is said to err."""
        pairs = zip(self.hypotheses, self.errs, strict=True)
        return all(bool(h.predict(self.points[i : i + 1])[0]) != bool(self.labels[i]) for h, i in pairs)

    @property
    def claim(self):
        """The proof in one sentence."""
        return f"each of the {len(self.hypotheses)} hypotheses errs on one of the points"


class FiniteClass(HypothesisClass):
    """A class of finitely many hypotheses.

    Parameters
    ----------
    hypotheses : Functions of a point, or a table of booleans, hypotheses × domain; in a table, points are positions 0, 1, ….
    domain : The points that there are, needed for `vc_dim` and `growth` of functions; a table brings its own.

    Examples
    --------
    >>> H = FiniteClass([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 1, 1]])
    >>> H.vc_dim, H.growth(2), H.growth(3)
    (2, 4, 5)
    >>> bool(H.shatters([0, 1])), bool(H.shatters([1, 2]))
    (True, False)
    >>> print(H.shatters([1, 2]).certificate())
    not shattered: certificate holds (proof)
      check       value     limit  kind   claim
      refutation  0.0e+00 ≤ 0e+00  proof  labels −+ are not realized: each of the 5 hypotheses errs on one of the points
    >>> best = H.erm([0, 1, 2], [1, 0, 1])
    >>> best.hypothesis.number, best.errors, [h.number for h in H.all_erm([0, 1, 2], [1, 0, 1])]
    (1, 1, [1, 4])
    """

    def __init__(self, hypotheses, domain=None):
        listed = list(hypotheses)
        if not listed:
            raise ValueError("A class needs at least one hypothesis, and this list is empty.")
        if all(callable(h) for h in listed):
            self.hypotheses = [Function(i, h) for i, h in enumerate(listed)]
            self.domain = None if domain is None else np.asarray(domain)
            self._table = None
        else:
            table = np.asarray(hypotheses)
            if table.ndim != 2 or not np.isin(table, [0, 1]).all():
                raise ValueError("The hypotheses must be functions of a point, or a table of booleans, hypotheses × domain.")
            if domain is not None:
                raise ValueError("A table has its domain: the positions 0, 1, …; leave out domain.")
            self._table = table.astype(bool)
            self.hypotheses = [Row(i, row) for i, row in enumerate(self._table)]
            self.domain = np.arange(table.shape[1])

    def __len__(self):
        return len(self.hypotheses)

    def __repr__(self):
        return f"FiniteClass({len(self)} hypotheses)"

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        if self._table is None:
            return np.asarray(points)
        x, n = np.asarray(points), len(self.domain)
        if x.ndim != 1 or (x != x.astype(int)).any() or ((x < 0) | (x >= n)).any():
            raise ValueError(f"The points of a table are positions of its domain, whole numbers from 0 to {n - 1}.")
        return x.astype(int)

    def table(self, points):
        """Return what each hypothesis says of each point, hypotheses × points."""
        points = self.as_points(points)
        if self._table is not None:
            return self._table[:, points]
        return np.array([h.predict(points) for h in self.hypotheses], dtype=bool).reshape(len(self), len(points))

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        return sorted_labelings(self.table(points), len(points))

    def realizes(self, points, labels):
        """Return the first hypothesis that gives these labels to the points, or None."""
        agrees = (self.table(points) == as_labels(labels, len(points))).all(axis=1)
        return self.hypotheses[int(agrees.argmax())] if agrees.any() else None

    def refutes(self, points, labels):
        """Return for each hypothesis a point on which it errs (`EachErrs`), or None if the labels are realized."""
        points = self.as_points(points)
        labels = as_labels(labels, len(points))
        wrong = self.table(points) != labels
        return EachErrs(points, labels, self.hypotheses, wrong.argmax(axis=1)) if wrong.any(axis=1).all() else None

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return any(hypothesis is h for h in self.hypotheses)

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, EachErrs) and refutation.hypotheses is self.hypotheses

    def errors(self, X, y, sample_weight=None):
        """Return the number (or weight) of errors of each hypothesis on a sample, (len(self),)."""
        y, w = as_labels(y, len(X)), as_weights(sample_weight, len(X))
        return (self.table(X) != y) @ w

    def erm(self, X, y, sample_weight=None):
        """Return the first hypothesis with the fewest errors as an `EmpiricalMinimum`; `all_erm` returns all of them."""
        errors = self.errors(X, y, sample_weight)
        best = int(errors.argmin())
        return EmpiricalMinimum(self.hypotheses[best], errors[best].item(), as_weights(sample_weight, len(X)).sum().item())

    def all_erm(self, X, y, sample_weight=None):
        """Return all hypotheses with the fewest errors, in the order of the class."""
        errors = self.errors(X, y, sample_weight)
        return [self.hypotheses[i] for i in np.flatnonzero(errors == errors.min())]

    def whole_domain(self):
        """Return the points of the domain, or say that there is none."""
        if self.domain is None:
            raise ValueError("Functions alone do not say on which points: give FiniteClass(…, domain=…), or a table.")
        return self.domain

    def _whole(self):
        return sorted_labelings(self.table(self.whole_domain()), len(self.domain))

    def growth(self, m):
        """Return the largest number of labelings of m points of the domain, by looking at all sets of m points."""
        m, rows = check_count(m, "m", 0), self._whole()
        n = rows.shape[1]
        if m >= n:  # more points than the domain has can only repeat some
            return len(rows)
        if comb(n, m) > SETS:
            raise ValueError(f"The domain of {n} points has more than {SETS} sets of {m} points: take a part of it.")
        largest = 0
        for chosen in combinations(range(n), m):
            largest = max(largest, len(sorted_labelings(rows[:, chosen], m)))
            if largest == min(2**m, len(rows)):
                break
        return largest

    @property
    def vc_dim(self):
        """Size of the largest shattered subset of the domain."""
        return len(largest_shattered(self._whole()))

    def largest_shattered(self):
        """Return a largest shattered subset of the domain as a `Shattering`.

        Examples
        --------
        >>> FiniteClass([[0, 1, 0], [1, 1, 0]]).largest_shattered().points
        array([0])
        """
        return self.shatters(self.domain[list(largest_shattered(self._whole()))])


def shattered_levels(n, shattered):
    """Yield for k = 0, 1, … the list of all shattered sets of k of n points, until there are none.

    Parameters
    ----------
    n : Number of points.
    shattered : Function of a set, positions in ascending order; it is asked only about sets all of whose subsets passed.

    Examples
    --------
    >>> list(shattered_levels(3, lambda chosen: len(chosen) < 2))
    [[()], [(0,), (1,), (2,)]]
    """
    level, looked = [()], 0
    while level:
        yield level
        known, level = set(level), []
        for smaller in sorted(known):
            for extra in range(smaller[-1] + 1 if smaller else 0, n):
                chosen = (*smaller, extra)
                looked += 1
                if looked > SETS:
                    raise ValueError(f"There are more than {SETS} subsets of these {n} points to look at: give fewer points.")
                if all(part in known for part in combinations(chosen, len(smaller))) and shattered(chosen):
                    level.append(chosen)


def shattered_sets(rows):
    """Yield for k = 0, 1, … the list of all sets of k columns that the rows of a table of booleans shatter.

    Examples
    --------
    >>> list(shattered_sets(np.array([[False, False], [True, False], [False, True]])))
    [[()], [(0,), (1,)]]
    """

    def shattered(chosen):
        if 2 ** len(chosen) > len(rows):
            return False
        numbers = rows[:, chosen] @ (1 << np.arange(len(chosen)))
        return len(np.unique(numbers)) == 2 ** len(chosen)

    return shattered_levels(rows.shape[1], shattered)


def largest_shattered(rows):
    """Return the first largest set of columns that the rows of a table shatter.

    Examples
    --------
    >>> largest_shattered(np.array([[False, False], [True, True]]))
    (0,)
    """
    for level in shattered_sets(rows):
        largest = level[0]
    return largest
