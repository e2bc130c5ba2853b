"""Hypothesis classes: which labelings of finitely many points a class of classifiers can produce, with proofs.

A hypothesis h says True or False of a point. On a set C = (x₁, …, xₘ) a class H leaves its *restriction*, the set of labelings
H_C = {(h(x₁), …, h(xₘ)) : h ∈ H}, and H *shatters* C if all 2ᵐ labelings are there. The size of the largest shattered set
is the Vapnik-Chervonenkis dimension of H, and its growth function π(m) is the largest |H_C| over the sets C of m points [1].

Each question has two possible answers and each answer has a proof that can be checked without the program that found it:
a labeling is realized, and a hypothesis of the class shows it; or it is not, and a `Refutation` shows that - weights that make
two hulls meet, a negative point inside the box of the positive ones, one error of every hypothesis of a finite class.

[1] Vapnik & Chervonenkis, Theory Probab. Appl. 16 (1971).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.theory.classes.labelings import all_labelings, as_points, first_missing, signs

WITNESSES = 16  # points of a set whose 2ᵐ witnesses are still listed


class Refutation:
    """Proof that no hypothesis of a class gives these labels to these points; a subclass knows the proof.

    Attributes
    ----------
    points, labels : What is not realized.

    Examples
    --------
    >>> from lemmata.theory.classes.real_line import Intervals
    >>> refutation = Intervals().refutes([1, 2, 3], [1, 0, 1])
    >>> isinstance(refutation, Refutation), refutation.valid()
    (True, True)
    """

    points: np.ndarray
    labels: np.ndarray

    def valid(self):
        """Whether the proof is right, from points and labels alone."""
        raise NotImplementedError

    @property
    def claim(self):
        """The proof in one sentence."""
        raise NotImplementedError

    def certificate(self):
        """Check the proof again from the points and the labels."""
        check = Check("refutation", 0.0 if self.valid() else 1.0, 0.0, "proof", self.claim)
        return Certificate(check, subject=f"labels {signs(self.labels)} are not realized")


@dataclass(frozen=True)
class Shattering:
    """Whether a class shatters a set of points, and the proof; true in a condition if it does.

    Attributes
    ----------
    cls : The hypothesis class.
    points : The set.
    hypotheses : One hypothesis for each of the 2ᵐ labelings, in lexicographic order; None if the set is not shattered.
    missing : First labeling that is not realized, or None.
    refutation : Proof that it is not, or None.

    Examples
    --------
    >>> from lemmata.theory.classes.real_line import Intervals
    >>> result = Intervals().shatters([1, 2])
    >>> bool(result), result.hypotheses
    (True, [Box(empty), Box([2, 2]), Box([1, 1]), Box([1, 2])])
    >>> print(result.certificate())
    shattered: certificate holds (proof)
      check      value     limit  kind   claim
      witnesses  0.0e+00 ≤ 0e+00  proof  each of the 2^2 labelings is the prediction of a hypothesis of the class
    """

    cls: Any
    points: Any
    hypotheses: list | None = field(repr=False)
    missing: np.ndarray | None
    refutation: Refutation | None = field(repr=False)

    def __bool__(self):
        return self.missing is None

    def certificate(self):
        """Check the witnesses, that they are of the class and predict the labels, or the refutation by its own means."""
        if self.missing is not None:
            same = np.array_equal(self.refutation.labels, self.missing) and np.array_equal(self.refutation.points, self.points)
            claim = f"labels {signs(self.missing)} are not realized: {self.refutation.claim}"
            value = 0.0 if same and self.cls.accepts(self.refutation) and self.refutation.valid() else 1.0
            return Certificate(Check("refutation", value, 0.0, "proof", claim), subject="not shattered")
        m = len(self.points)
        wanted = all_labelings(m)
        wrong = abs(len(wanted) - len(self.hypotheses))
        for h, labels in zip(self.hypotheses, wanted, strict=False):
            wrong += not (self.cls.contains(h) and np.array_equal(h.predict(self.points), labels))
        claim = f"each of the 2^{m} labelings is the prediction of a hypothesis of the class"
        return Certificate(Check("witnesses", float(wrong), 0.0, "proof", claim), subject="shattered")


@dataclass(frozen=True)
class EmpiricalMinimum:
    """A hypothesis with the fewest errors on a sample.

    Attributes
    ----------
    hypothesis : It has `predict(points)`.
    errors : Number of its errors, or their total weight.
    total : Number of points, or their total weight.

    Examples
    --------
    >>> from lemmata.theory.classes.real_line import Intervals
    >>> best = Intervals().erm([1, 2, 3, 4], [0, 1, 1, 0])
    >>> best.hypothesis, best.errors, best.error_rate
    (Box([2, 3]), 0, 0.0)
    """

    hypothesis: Any
    errors: float
    total: float

    @property
    def error_rate(self):
        """Share of the sample on which the hypothesis errs."""
        return self.errors / self.total if self.total else 0.0


class HypothesisClass:
    """Base of the hypothesis classes.

    A class supplies the methods below; `unshattered` only if a proof gives a labeling that is missing on any `vc_dim` + 1
    points. The rest follows from them.

    Examples
    --------
    >>> from lemmata.theory.classes.real_line import Intervals
    >>> isinstance(Intervals(), HypothesisClass)
    True
    """

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        return as_points(points)

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the class realizes, in lexicographic order, (k, m)."""
        raise NotImplementedError

    def realizes(self, points, labels):
        """Return a hypothesis that gives these labels to the points, or None."""
        raise NotImplementedError

    def refutes(self, points, labels):
        """Return the `Refutation` of these labels, or None if they are realized."""
        raise NotImplementedError

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        raise NotImplementedError

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        raise NotImplementedError

    def unshattered(self, points):
        """Return the `Refutation` of a labeling of these points, more than `vc_dim`; None if no proof gives one."""

    def growth(self, m):
        """Return the largest number of labelings of m points, an exact integer."""
        raise NotImplementedError

    @property
    def vc_dim(self):
        """Size of the largest shattered set, an int, or infinity."""
        raise NotImplementedError

    def erm(self, X, y, sample_weight=None):
        """Return the `EmpiricalMinimum`: a hypothesis with the fewest errors, exactly."""
        raise NotImplementedError

    def shatters(self, points):
        """Say whether the class gives all 2ᵐ labelings to the points, with the proof of either answer.

        Returns
        -------
        result : `Shattering`, true in a condition; it holds the witnesses, or the first labeling missing and its refutation.
        """
        points = self.as_points(points)
        missing = first_missing(self.dichotomies(points))
        if missing is not None:
            return Shattering(self, points, None, missing, self.refutes(points, missing))
        if len(points) > WITNESSES:
            raise ValueError(
                f"All labelings of {len(points)} points are realized; witnesses are listed up to {WITNESSES} points."
            )
        return Shattering(self, points, [self.realizes(points, labels) for labels in all_labelings(len(points))], None, None)
