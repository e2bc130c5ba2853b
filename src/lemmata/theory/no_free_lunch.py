"""No free lunch: without a restricted class there is, for every learner, a target on which it fails.

Let X be a finite domain with the uniform law, and let all 2^|X| functions f: X → {0, 1} be possible targets. A learner that has
seen m ≤ |X|/2 points knows nothing of the others, on which half of the targets contradict whatever it says: averaged over all
targets its expected risk is at least 1/2·(1 − 1/2) = 1/4, exactly ½(1 − 1/|X|)^m if it repeats what it saw. So some f has
E L ≥ 1/4, and as L ≤ 1, P(L > 1/8) ≥ (1/4 − 1/8)/(1 − 1/8) = 1/7 > 1/8 [1]. On small domains all targets and all samples can be
listed, and the averages are fractions.

[1] Shalev-Shwartz & Ben-David, Understanding Machine Learning, Thm 5.1 (2014).
"""

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

import numpy as np

from lemmata.theory.bounds.tails import check_count
from lemmata.theory.risk import predicted

MOST_CASES = 2**24  # pairs of target and sample


def memorizer(X, y):
    """Return the hypothesis that repeats the labels seen and says 0 elsewhere.

    Examples
    --------
    >>> memorizer([1, 2], [True, False])(np.arange(4))
    array([False,  True, False, False])
    """
    positive = np.asarray(X)[np.asarray(y) > 0]
    return lambda points: np.isin(points, positive)


@dataclass(frozen=True)
class NoFreeLunch:
    """What a learner achieves against every target on a finite domain, in fractions.

    Attributes
    ----------
    domain_size, m : Points of the domain, and rows of a sample.
    average : Expected risk, averaged over all targets.
    worst, worst_target : The largest expected risk, and the labels of a target that has it.
    expected : Expected risk for each target; target t labels point i with bit i of t.
    failure : P(L > 1/8) for each target.
    """

    domain_size: int
    m: int
    expected: list = field(repr=False)
    failure: list = field(repr=False)

    @property
    def average(self):
        """Expected risk, averaged over all targets."""
        return sum(self.expected) / len(self.expected)

    @property
    def worst(self):
        """Largest expected risk of any target."""
        return max(self.expected)

    @property
    def worst_target(self):
        """Labels of the first target of largest expected risk."""
        return (self.expected.index(self.worst) >> np.arange(self.domain_size) & 1).astype(bool)

    @property
    def worst_failure(self):
        """Largest P(L > 1/8) of any target."""
        return max(self.failure)

    @property
    def applies(self):
        """Whether the theorem speaks of this case: m ≤ |X|/2."""
        return 2 * self.m <= self.domain_size

    @property
    def holds(self):
        """Whether the theorem is right here: both bounds, if it applies."""
        return not self.applies or (self.worst >= Fraction(1, 4) and self.worst_failure >= Fraction(1, 7))

    def __str__(self):
        return (
            f"{2**self.domain_size} targets on {self.domain_size} points, all {self.domain_size}^{self.m} samples\n"
            f"  average of E L over the targets   {self.average} = {float(self.average):.6f}\n"
            f"  largest E L of a target           {self.worst} = {float(self.worst):.6f}\n"
            f"  largest P(L > 1/8) of a target    {self.worst_failure} = {float(self.worst_failure):.6f}"
        )


def no_free_lunch(domain_size, learner=None, m=None):
    """Let a learner learn every target on a finite domain from every sample.

    Parameters
    ----------
    domain_size : |X|; the points are 0, 1, …, |X| − 1.
    learner : Function of (X, y) that returns a hypothesis, always the same one for the same sample; default `memorizer`.
    m : Rows of a sample, default |X|/2 rounded down.

    Examples
    --------
    >>> print(no_free_lunch(4))
    16 targets on 4 points, all 4^2 samples
      average of E L over the targets   9/32 = 0.281250
      largest E L of a target           9/16 = 0.562500
      largest P(L > 1/8) of a target    1 = 1.000000
    >>> no_free_lunch(4).worst_target
    array([ True,  True,  True,  True])
    """
    k = check_count(domain_size, "domain_size", 2)
    m = check_count(k // 2 if m is None else m, "m")
    if 2**k * k**m > MOST_CASES:
        raise ValueError(f"2^{k} targets and {k}^{m} samples are too many to list; take a smaller domain or a smaller m.")
    learner = memorizer if learner is None else learner
    domain, targets = np.arange(k), np.arange(2**k)
    labels = (targets[:, None] >> domain & 1).astype(bool)
    errors, failures = np.zeros(2**k, dtype=np.int64), np.zeros(2**k, dtype=np.int64)
    for sample in product(range(k), repeat=m):
        X = np.array(sample)
        seen = labels[:, X] @ (1 << np.arange(m))
        order = np.argsort(seen, kind="stable")  # targets that agree on the sample show the learner the same
        for group in np.split(order, np.flatnonzero(np.diff(seen[order])) + 1):
            said = predicted(learner(X, labels[group[0], X]), domain)
            wrong = (labels[group] != said).sum(axis=1)
            errors[group] += wrong
            failures[group] += 8 * wrong > k
    samples = k**m
    expected = [Fraction(int(e), k * samples) for e in errors]
    return NoFreeLunch(k, m, expected, [Fraction(int(f), samples) for f in failures])
