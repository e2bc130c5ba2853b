"""Uniform convergence: all risks of a class estimated by one sample at once.

A sample is ε-representative of a distribution for a class H if sup_h |L_S(h) − L_D(h)| ≤ ε. Then ERM is within 2ε of the best
hypothesis, since L_D(h_S) ≤ L_S(h_S) + ε ≤ L_S(h*) + ε ≤ L_D(h*) + 2ε; H has uniform convergence if m_UC(ε, δ) rows are
representative with probability 1 − δ, whatever the distribution. On a finite domain the supremum runs over finitely many
labelings of the points and is exact, for infinite classes too. For thresholds on the line whose rows all have one label it is
the Kolmogorov-Smirnov statistic sup_t |F_n(t) − F(t)|.

Times √n it tends to the Kolmogorov law K, which has P(K > c) > 0 whatever c is, 6.7·10⁻⁴ for c = 2: a bound c √(d/n) on the
deviation with c independent of δ cannot hold with probability 1 − δ for all δ, however large n is. The order is √((d + ln
1/δ)/n).
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from lemmata.core.certificate import TINY
from lemmata.core.random import generator, spawn
from lemmata.theory.bounds.holdout import clopper_pearson_interval
from lemmata.theory.bounds.tails import check_count
from lemmata.theory.classes.real_line import Thresholds
from lemmata.theory.risk import FiniteDistribution
from lemmata.theory.sample_size import delta as failure_probability
from lemmata.theory.sample_size import epsilon as accuracy

AT_ONCE = 2**22  # numbers that a batch of samples may hold


class LineDistribution:
    """A continuous law on the line, with labels y = [x < threshold] that are flipped with a fixed probability.

    Parameters
    ----------
    law : Frozen continuous distribution of SciPy, or any object with `cdf` and `ppf`.
    threshold : Below it labels are positive; by default all are negative.
    noise : Probability at which a label is flipped, below 1/2.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> law = LineDistribution(uniform(), threshold=0.5, noise=0.1)
    >>> law.risk(np.array([0.5, 0.75]))
    array([0.1, 0.3])
    """

    def __init__(self, law, threshold=-np.inf, noise=0.0):
        if not 0 <= noise < 0.5:
            raise ValueError(f"noise is the probability of a flipped label and lies in [0, 1/2), not {noise!r}.")
        self.law, self.threshold, self.noise = law, threshold, noise

    def risk(self, t):
        """Return the true risk of the hypothesis x < t, for each t."""
        return self.noise + (1 - 2 * self.noise) * np.abs(self.law.cdf(t) - self.law.cdf(self.threshold))

    def sample(self, n, random_state=None):
        """Draw a sample: n numbers and their labels."""
        rng = generator(random_state)
        x = self.law.ppf(rng.random(n))
        return x, (x < self.threshold) ^ (rng.random(n) < self.noise)

    def deviation(self, x, y):
        """Return (sup over t of |L_S − L_D|, excess risk of ERM) for the hypotheses x < t.

        L_S is constant between rows and L_D monotone on either side of the true threshold, so that the supremum is found at a
        row, just beyond a row, at the true threshold, or beyond all rows.
        """
        x, y = np.asarray(x, dtype=float), np.asarray(y) > 0
        order, n = np.argsort(x, kind="stable"), len(x)
        x, positive = x[order], np.append(0, np.cumsum(y[order]))
        t = np.concatenate([[-np.inf], x, [self.threshold, np.inf]])
        errors = np.arange(n + 1) - positive + positive[-1] - positive  # of the hypothesis with so many rows below t
        at, beyond = errors[np.searchsorted(x, t, side="left")] / n, errors[np.searchsorted(x, t, side="right")] / n
        true = self.risk(t)
        supremum = max(np.abs(at - true).max(), np.abs(beyond - true).max())
        return float(supremum), float(true[at.argmin()] - self.noise)


def _deviations(hypotheses, sample, distribution):
    """Return L_S and L_D of every behavior of a class on a finite domain, as fractions."""
    if not isinstance(distribution, FiniteDistribution):
        raise ValueError("Deviations are known on a FiniteDistribution, and for Thresholds on a LineDistribution.")
    X, y = sample
    points = distribution.points
    index = [np.flatnonzero((points == x).reshape(len(points), -1).all(axis=1)) for x in np.asarray(X)]
    if any(len(found) == 0 for found in index):
        raise ValueError("The sample holds a point that the distribution does not have.")
    table = distribution.table(hypotheses)
    errors = (table[:, np.concatenate(index)] != (np.asarray(y) > 0)).sum(axis=1)
    return [Fraction(int(e), len(y)) for e in errors], distribution.risks(hypotheses)


def representativeness(hypotheses, sample, distribution):
    """Return sup over the class of |L_S(h) − L_D(h)|: the least ε for which the sample is ε-representative.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or table of their labels on the points; `Thresholds` on a line.
    sample : Pair (X, y).
    distribution : `FiniteDistribution`, where the answer is a fraction, or `LineDistribution`.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> steps = [lambda x, t=t: x >= t for t in range(4)]
    >>> representativeness(steps, ([0, 1, 1, 2], [0, 1, 1, 1]), law)
    Fraction(1, 6)
    """
    if isinstance(distribution, LineDistribution):
        _only_thresholds(hypotheses)
        return distribution.deviation(*sample)[0]
    empirical, true = _deviations(hypotheses, sample, distribution)
    return distribution.number(max(abs(e - t) for e, t in zip(empirical, true, strict=True)))


def _only_thresholds(hypotheses):
    if not isinstance(hypotheses, Thresholds):
        raise ValueError("On a LineDistribution deviations are known for Thresholds only; take a FiniteDistribution.")


def is_representative(hypotheses, sample, distribution, epsilon):
    """Return whether every risk of the class is estimated within ε.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> is_representative([lambda x: x >= 1, lambda x: x >= 2], ([0, 1, 1, 2], [0, 1, 1, 1]), law, 0.2)
    True
    """
    return representativeness(hypotheses, sample, distribution) <= epsilon


@dataclass(frozen=True)
class ExcessRisk:
    """The excess risk of ERM on one sample, and its bound.

    Attributes
    ----------
    excess : Risk of the worst minimizer of the empirical risk, less that of the best hypothesis.
    bound : Twice the largest deviation.
    """

    excess: float
    bound: float

    @property
    def holds(self):
        """Whether the excess is within its bound."""
        return self.excess <= self.bound


def excess_risk_bound(hypotheses, sample, distribution):
    """Compare the excess risk of ERM with twice the largest deviation, exactly.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> steps = [lambda x, t=t: x >= t for t in range(4)]
    >>> excess_risk_bound(steps, ([0, 2, 2], [0, 1, 1]), law)
    ExcessRisk(excess=Fraction(1, 3), bound=Fraction(2, 3))
    """
    empirical, true = _deviations(hypotheses, sample, distribution)
    chosen = max(t for e, t in zip(empirical, true, strict=True) if e == min(empirical))
    largest = max(abs(e - t) for e, t in zip(empirical, true, strict=True))
    return ExcessRisk(distribution.number(chosen - min(true)), distribution.number(2 * largest))


@dataclass(frozen=True)
class UniformConvergence:
    """How often a sample was not ε-representative.

    Attributes
    ----------
    n, n_trials : Rows of a sample, and samples.
    epsilon, bound : The deviation looked for, and the theorem's bound on the probability of exceeding it.
    exceedances : Samples whose largest deviation exceeded ε.
    lower, upper : Limits of Clopper and Pearson for the probability of that.
    deviations, excesses : Largest deviation and excess risk of ERM of every sample.
    """

    n: int
    epsilon: float
    bound: float
    level: float
    deviations: np.ndarray = field(repr=False)
    excesses: np.ndarray = field(repr=False)

    @property
    def n_trials(self):
        """Number of samples."""
        return len(self.deviations)

    @property
    def exceedances(self):
        """Samples whose largest deviation exceeded ε."""
        return int((self.deviations > self.epsilon).sum())

    @property
    def lower(self):
        """Lower limit of the probability of exceeding ε."""
        return clopper_pearson_interval(self.exceedances, self.n_trials, 1 - self.level)[0]

    @property
    def upper(self):
        """Upper limit of the probability of exceeding ε."""
        return clopper_pearson_interval(self.exceedances, self.n_trials, 1 - self.level)[1]

    @property
    def holds(self):
        """Whether the trials agree with the theorem: the probability may be within its bound, and no excess broke its own."""
        # the sums of both sides round, a few units in the last place
        return self.lower <= self.bound and bool((self.excesses <= 2 * self.deviations + 1e-12).all())

    def __str__(self):
        worst = (self.excesses / np.maximum(2 * self.deviations, TINY)).max()
        return (
            f"{self.n_trials} samples of {self.n} rows: "
            f"the largest deviation exceeded {self.epsilon:.4g} in {self.exceedances}\n"
            f"  probability in [{self.lower:.4g}, {self.upper:.4g}], theorem {self.bound:.4g}\n"
            f"  excess risk of ERM over twice the deviation at most {worst:.4g}"
        )


def uniform_convergence_experiment(
    hypotheses, distribution, n, *, epsilon=None, delta=0.05, vc_dim=None, n_trials=1000, level=0.99, random_state=None
):
    """Draw samples, and compare their largest deviations with the theorem.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or table of their labels on the points; `Thresholds` on a line.
    distribution : `FiniteDistribution`, or `LineDistribution`.
    n : Rows of a sample.
    epsilon : Deviation to look for; by default the one that the theorem allows with probability δ.
    delta : Probability of that deviation according to the theorem.
    vc_dim : VC dimension; by default that of the class, or, if it is a list or a table, the finite class is counted instead.
    n_trials : Samples.
    level : Probability with which the limits hold the measured one.

    Examples
    --------
    >>> steps = np.tri(9, 8, -1, dtype=bool)  # labels of 8 points by 9 thresholds
    >>> law = FiniteDistribution(np.arange(8), labels=steps[4])
    >>> print(uniform_convergence_experiment(steps, law, 100, epsilon=0.15, random_state=0))
    1000 samples of 100 rows: the largest deviation exceeded 0.15 in ...
      probability in [..., 0.0...], theorem 0.2
      excess risk of ERM over twice the deviation at most 0...
    """
    n, n_trials = check_count(n, "n"), check_count(n_trials, "n_trials")
    on_line = isinstance(distribution, LineDistribution)
    if on_line:
        _only_thresholds(hypotheses)
    if vc_dim is None and not hasattr(hypotheses, "__len__"):
        vc_dim = hypotheses.vc_dim
    rich = {"vc_dim": vc_dim} if vc_dim is not None else {"hypotheses": len(distribution.table(hypotheses))}
    rich["goal"] = "deviation"
    epsilon = accuracy(n, delta, **rich) if epsilon is None else epsilon
    bound = failure_probability(n, epsilon, **rich)
    draw = _line_trials if on_line else _finite_trials
    deviations, excesses = draw(hypotheses, distribution, n, n_trials, generator(random_state))
    return UniformConvergence(n, epsilon, bound, level, deviations, excesses)


def _line_trials(hypotheses, distribution, n, n_trials, rng):
    results = [distribution.deviation(*distribution.sample(n, child)) for child in spawn(rng, n_trials)]
    return np.array(results).reshape(n_trials, 2).T


def _finite_trials(hypotheses, distribution, n, n_trials, rng):
    """Draw counts of the atoms, from which all empirical risks follow by one product."""
    wrong = distribution.mistakes(hypotheses).T
    true = np.array([float(risk) for risk in distribution.risks(hypotheses)])
    deviations, excesses = [], []
    batch = max(1, AT_ONCE // max(wrong.shape))
    for start in range(0, n_trials, batch):
        errors = distribution.counts(n, min(batch, n_trials - start), rng) @ wrong
        deviations.append(np.abs(errors / n - true).max(axis=1))
        chosen = np.where(errors == errors.min(axis=1, keepdims=True), true, 0.0).max(axis=1)  # the worst minimizer
        excesses.append(chosen - true.min())
    return np.concatenate(deviations), np.concatenate(excesses)
