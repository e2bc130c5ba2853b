"""Classes known only through an oracle: somebody who says of points and labels whether the class has a hypothesis for them.

Whatever learns by minimizing errors is such an oracle: if its predictions on the points are the labels, they are realized. The
labelings of m points are found by adding a point at a time and asking only for extensions of what was realized so far, so that
the number of questions is at most 2·m·(number of labelings) rather than 2ᵐ.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lemmata.theory.classes.hypotheses import HypothesisClass, Refutation
from lemmata.theory.classes.labelings import as_labels, sorted_labelings


@dataclass(frozen=True)
class Answer:
    """What the oracle has for these labels; it is asked again for every prediction.

    Examples
    --------
    >>> Answer(lambda points, labels: True, np.array([True])).predict(np.array([[3.0]]))
    array([ True])
    """

    ask: Any
    labels: np.ndarray

    def predict(self, points):
        """Return the labels of the oracle's own hypothesis, or those asked for if it only says yes, or their opposite if no."""
        answer = self.ask(points, self.labels)
        if hasattr(answer, "predict"):
            answer = answer.predict(points)
        if np.ndim(answer):
            return as_labels(answer, len(points))
        return self.labels if answer else ~self.labels


@dataclass(frozen=True)
class OracleSaysNo(Refutation):
    """The oracle has no hypothesis for the labels; the proof is as good as the oracle.

    Examples
    --------
    >>> OracleSaysNo(np.array([[1.0]]), np.array([True]), lambda points, labels: None).valid()
    True
    """

    points: Any
    labels: np.ndarray
    ask: Any

    def valid(self):
        """Ask again."""
        return not np.array_equal(Answer(self.ask, self.labels).predict(self.points), self.labels)

    @property
    def claim(self):
        """The proof in one sentence."""
        return "the oracle has no hypothesis for them"


class Oracle(HypothesisClass):
    """A class given by a function that decides whether labels are realized.

    Parameters
    ----------
    ask : Function of points (m, d) and boolean labels (m,) that returns True or False, or None, or a hypothesis with `predict`,
        or its predictions; predictions other than the labels mean "no".

    Examples
    --------
    >>> H = Oracle(lambda points, labels: labels.sum() <= 1)
    >>> len(H.dichotomies([[1.0], [2.0], [3.0]])), bool(H.shatters([[1.0], [2.0]]))
    (4, False)
    """

    def __init__(self, ask):
        if not callable(ask):
            raise ValueError("An oracle is a function of points and labels; this is neither one nor a hypothesis class.")
        self.ask = ask

    def __repr__(self):
        return f"Oracle({getattr(self.ask, '__name__', 'function')})"

    def as_points(self, points):
        """Return points of the domain as an array, or say what is wrong with them."""
        return np.asarray(points)

    def dichotomies(self, points):
        """Return the distinct labelings of the points that the oracle has, in lexicographic order, (k, m)."""
        points = self.as_points(points)
        found = [np.zeros(0, dtype=bool)]
        for m in range(1, len(points) + 1):
            longer = [np.append(labels, last) for labels in found for last in (False, True)]
            found = [labels for labels in longer if self.realizes(points[:m], labels) is not None]
        return sorted_labelings(found, len(points))

    def realizes(self, points, labels):
        """Return the oracle's `Answer` if it is yes, else None."""
        points = self.as_points(points)
        answer = Answer(self.ask, as_labels(labels, len(points)))
        return answer if np.array_equal(answer.predict(points), answer.labels) else None

    def contains(self, hypothesis):
        """Whether a hypothesis is one of the class."""
        return isinstance(hypothesis, Answer) and hypothesis.ask == self.ask

    def accepts(self, refutation):
        """Whether a refutation, if valid, is a proof for this class."""
        return isinstance(refutation, OracleSaysNo) and refutation.ask == self.ask

    def refutes(self, points, labels):
        """Return `OracleSaysNo`, or None if the labels are realized."""
        points = self.as_points(points)
        found = OracleSaysNo(points, as_labels(labels, len(points)), self.ask)
        return found if found.valid() else None
