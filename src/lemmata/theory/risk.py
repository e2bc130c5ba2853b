"""Risk: how often a hypothesis errs, on the distribution and on a sample.

The true risk of h is L_D(h) = P(h(x) ≠ y) for (x, y) ~ D, and the empirical risk is that of a sample of m rows,
L_S(h) = |{i : h(xᵢ) ≠ yᵢ}|/m, an unbiased estimate: E L_S(h) = L_D(h). A hypothesis minimizes the empirical risk (ERM) if no
other of its class has a smaller one; a class is realizable if one of its hypotheses has no true risk at all, and then every
minimizer is consistent, L_S = 0, on every sample.

On a finite domain all of this is arithmetic: a `FiniteDistribution` holds rational numbers, and sums over all samples are
exact. Elsewhere the true risk is estimated, k errors in n draws, within an interval: that of Clopper and Pearson inverts the
binomial law, and Hoeffding's, k/n ± √(ln(2/δ)/2n), contains it.

Labels are positive or not: False and True, 0 and 1, and −1 and +1 all serve.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import lcm, prod
from typing import NamedTuple

import numpy as np

from lemmata.core.random import generator
from lemmata.theory.bounds.holdout import clopper_pearson_interval

MOST_SAMPLES = 2**20  # enumerations beyond this take minutes


def predicted(h, X):
    """Return which rows a hypothesis calls positive; it is a function of the rows, or has `predict`.

    Examples
    --------
    >>> predicted(lambda x: x >= 2, [1, 2, 3])
    array([False,  True,  True])
    """
    X = np.asarray(X)
    return np.broadcast_to(np.asarray(h.predict(X) if hasattr(h, "predict") else h(X)) > 0, len(X))


def behaviors(hypotheses, points):
    """Return how hypotheses label some points, as a boolean table with a row for each.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or the table itself.

    Examples
    --------
    >>> behaviors([lambda x: x > 1, lambda x: x > 2], [1, 2, 3])
    array([[False,  True,  True],
           [False, False,  True]])
    """
    if hasattr(hypotheses, "table"):  # a finite class knows its members, which may agree on the points
        return hypotheses.table(points)
    if hasattr(hypotheses, "dichotomies"):
        return hypotheses.dichotomies(points)
    if isinstance(hypotheses, np.ndarray):
        if hypotheses.ndim != 2 or hypotheses.shape[1] != len(points):
            raise ValueError(
                f"A table of hypotheses has a column for each of the {len(points)} points, not {hypotheses.shape}."
            )
        return hypotheses > 0
    return np.array([predicted(h, points) for h in hypotheses], dtype=bool).reshape(-1, len(points))


class FiniteDistribution:
    """A law of (x, y) on finitely many points, in exact arithmetic.

    Parameters
    ----------
    points : Points, (k,) or (k, d), all different.
    probabilities : Of the points; equal if not given. Fractions and integers stay exact; floats are taken for the fractions
        they are, and results are then floats.
    labels : Labels of the points, or a function of the points.
    label_probabilities : P(y = 1 | x) of each point, instead of `labels`.

    Examples
    --------
    >>> coin = FiniteDistribution([0, 1], label_probabilities=[Fraction(1, 4), 1])
    >>> true_risk(lambda x: x > 0, coin)
    Fraction(1, 8)
    """

    def __init__(self, points, probabilities=None, *, labels=None, label_probabilities=None):
        self.points = np.asarray(points)
        k = len(self.points)
        if k == 0 or len(np.unique(self.points, axis=0)) != k:
            raise ValueError("The points of a distribution must be different, and there must be at least one.")
        if (labels is None) == (label_probabilities is None):
            raise ValueError("Give either the labels of the points or their label_probabilities.")
        given = [Fraction(1, k)] * k if probabilities is None else list(probabilities)
        chances = predicted(labels, self.points) if callable(labels) else label_probabilities if labels is None else labels
        chances = list(chances) if labels is None else [int(label) for label in np.asarray(chances) > 0]
        if len(given) != k or len(chances) != k:
            raise ValueError(f"There must be one probability and one label for each of the {k} points.")
        self.exact = not any(isinstance(value, float | np.floating) for value in given + chances)
        weights, self.positive = [Fraction(w) for w in given], [Fraction(p) for p in chances]
        total = sum(weights)
        if min(weights) < 0 or abs(total - 1) > (0 if self.exact else 1e-9):  # 1e-9: more than floats round
            raise ValueError(f"Probabilities are at least 0 and sum to 1; these sum to {float(total)}.")
        if min(self.positive) < 0 or max(self.positive) > 1:
            raise ValueError("Each of the label_probabilities lies between 0 and 1.")
        self.probabilities = [w / total for w in weights]

    @property
    def atoms(self):
        """List (number of the point, label, probability) of every pair (x, y) that can occur."""
        both = zip(self.probabilities, self.positive, strict=True)
        pairs = [(i, y, w * (p if y else 1 - p)) for i, (w, p) in enumerate(both) for y in (False, True)]
        return [atom for atom in pairs if atom[2] > 0]

    def number(self, value):
        """Give a result as a fraction if the distribution is exact, else as a float."""
        return value if self.exact else float(value)

    def labeled(self, labels):
        """Return the law of the same points under other labels."""
        weights = self.probabilities if self.exact else [float(w) for w in self.probabilities]
        return FiniteDistribution(self.points, weights, labels=labels)

    def counts(self, n, n_samples, random_state=None):
        """Draw how often each of the `atoms` occurs in a sample of n, for so many samples."""
        p = np.array([float(w) for _, _, w in self.atoms])
        return generator(random_state).multinomial(n, p / p.sum(), size=n_samples)

    def sample(self, n, random_state=None):
        """Draw a sample: n points and their labels."""
        index, label, weight = zip(*self.atoms, strict=True)
        p = np.array([float(w) for w in weight])
        drawn = generator(random_state).choice(len(p), size=n, p=p / p.sum())
        return self.points[np.array(index)[drawn]], np.array(label)[drawn]

    def risks(self, hypotheses):
        """Return the true risk of every hypothesis, as a list of fractions."""
        pairs = list(zip(self.probabilities, self.positive, strict=True))
        silent = sum(w * p for w, p in pairs)  # risk of the hypothesis that calls nothing positive
        unit = lcm(silent.denominator, *[(w * (1 - 2 * p)).denominator for w, p in pairs])
        change = np.array([int(w * (1 - 2 * p) * unit) for w, p in pairs], dtype=object)  # whole numbers add up faster
        return [Fraction(int(silent * unit + extra), unit) for extra in self.table(hypotheses).astype(object) @ change]

    def table(self, hypotheses):
        """Return how the hypotheses label the points."""
        return behaviors(hypotheses, self.points)

    def mistakes(self, hypotheses):
        """Return which of the `atoms` each hypothesis gets wrong, as a table of 0 and 1."""
        index, label, _ = zip(*self.atoms, strict=True)
        return (self.table(hypotheses)[:, list(index)] != np.array(label)).astype(np.int64)


@dataclass(frozen=True)
class RiskEstimate:
    """A true risk that was estimated from n draws.

    Attributes
    ----------
    value : Errors over draws.
    lower, upper : Interval of Clopper and Pearson, which holds the true risk with probability at least 1 − δ.
    hoeffding : Hoeffding's interval of the same level: wider, and a formula.
    """

    errors: int
    n: int
    delta: float

    @property
    def value(self):
        """Errors over draws."""
        return self.errors / self.n

    @property
    def lower(self):
        """Lower limit of Clopper and Pearson."""
        return clopper_pearson_interval(self.errors, self.n, self.delta)[0]

    @property
    def upper(self):
        """Upper limit of Clopper and Pearson."""
        return clopper_pearson_interval(self.errors, self.n, self.delta)[1]

    @property
    def hoeffding(self):
        """Limits by Hoeffding's inequality."""
        width = np.sqrt(np.log(2 / self.delta) / (2 * self.n))
        return max(0.0, self.value - width), min(1.0, self.value + width)


def true_risk(h, distribution, *, n=10_000, delta=0.05, random_state=None):
    """Return the probability that a hypothesis errs: exactly on a finite domain, else an estimate with its interval.

    Parameters
    ----------
    h : Function of the rows, or an object with `predict`.
    distribution : `FiniteDistribution`, or a function of (n, generator) that draws rows and labels.
    n, delta, random_state : Draws of the estimate, the probability that its interval errs, and the seed.

    Examples
    --------
    >>> true_risk(lambda x: x > 1, FiniteDistribution([0, 1, 2], labels=[0, 1, 1]))
    Fraction(1, 3)
    >>> def draw(n, rng):
    ...     x = rng.random(n)
    ...     return x, x > 0.5
    >>> estimate = true_risk(lambda x: x > 0.25, draw, random_state=0)
    >>> bool(estimate.lower < 0.25 < estimate.upper)
    True
    """
    if isinstance(distribution, FiniteDistribution):
        return distribution.number(distribution.risks(predicted(h, distribution.points)[None, :])[0])
    X, y = distribution(n, generator(random_state))
    return RiskEstimate(int((predicted(h, X) != (np.asarray(y) > 0)).sum()), n, delta)


def empirical_risk(h, X, y):
    """Return the share of the sample that a hypothesis gets wrong.

    Examples
    --------
    >>> empirical_risk(lambda x: x > 1, [0, 1, 2, 3], [0, 1, 1, 1])
    0.25
    """
    X, y = _sample(X, y)
    return float((predicted(h, X) != y).mean())


def expected_empirical_risk(h, distribution, n):
    """Average the empirical risk over all samples of n, each with its probability; it is the true risk.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], labels=[0, 1, 1])
    >>> expected_empirical_risk(lambda x: x > 1, law, 4), true_risk(lambda x: x > 1, law)
    (Fraction(1, 3), Fraction(1, 3))
    """
    wrong = distribution.mistakes(predicted(h, distribution.points)[None, :])[0].tolist()
    chances = [weight for _, _, weight in distribution.atoms]
    if n < 1 or len(chances) ** n > MOST_SAMPLES:
        raise ValueError(f"There are {len(chances)}^{n} samples to sum over; take n from 1 up to {_largest(len(chances))}.")
    samples = product(range(len(chances)), repeat=n)
    return distribution.number(sum(prod(chances[a] for a in s) * Fraction(sum(wrong[a] for a in s), n) for s in samples))


class Minimizers(NamedTuple):
    """All hypotheses of least empirical risk.

    Attributes
    ----------
    risk : Their empirical risk; zero means that they are consistent with the sample.
    index : Their numbers in the table of behaviors on the sample.
    predictions : How they label the sample, a row each.
    """

    risk: float
    index: np.ndarray
    predictions: np.ndarray


def minimizers(hypotheses, X, y):
    """Return every behavior of least empirical risk, ties included.

    Examples
    --------
    >>> found = minimizers([lambda x: x > 0, lambda x: x > 1, lambda x: x > 2], [0, 1, 2, 3], [0, 1, 0, 1])
    >>> found.risk, found.index
    (0.25, array([0, 2]))
    """
    X, y = _sample(X, y)
    table = behaviors(hypotheses, X)
    if not len(table):
        raise ValueError("The class is empty: there is no hypothesis to choose.")
    errors = (table != y).sum(axis=1)
    index = np.flatnonzero(errors == errors.min())
    return Minimizers(float(errors.min() / len(y)), index, table[index])


def is_realizable(hypotheses, distribution):
    """Return whether a hypothesis has no true risk on a finite domain.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> is_realizable([lambda x: x > 0], law), is_realizable([lambda x: x > 1], law)
    (True, False)
    """
    return min(distribution.risks(hypotheses)) == 0


def _sample(X, y):
    X, y = np.asarray(X), np.asarray(y) > 0
    if y.ndim != 1 or len(X) != len(y) or not len(y):
        raise ValueError(f"A sample has at least one row and a label for each; there are {len(X)} rows and {y.shape} labels.")
    return X, y


def _largest(base):
    """Return the largest n for which base^n samples are few enough."""
    return max(n for n in range(1, 21) if base**n <= MOST_SAMPLES) if base > 1 else 10**6
