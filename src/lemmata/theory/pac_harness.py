"""Probably approximately correct: how often a learner fails, exactly on small domains and by trials on hard distributions.

A learner A that sees m(ε, δ) rows learns a class in the PAC sense if, for every distribution D, its hypothesis has
L_D(A(S)) ≤ min over the class of L_D + ε with probability at least 1 − δ over the samples S; in the realizable case the minimum
is zero. (It does so efficiently if its run time is polynomial; that is not looked at here.)

Exactly: on a finite domain a sample matters through the counts of its pairs (x, y) only, so that the probability of a failure
of ERM is a sum over the C(m + a − 1, m) ways in which m draws fall on a atoms, in fractions. For a realizable finite class it
is at most that of being misled, i.e. of any hypothesis with L_D > ε having no error on the sample, and that is at most
|H| (1 − ε)^m.

By trials: a bank of distributions that are hard to learn from - rare points that a sample misses, labels that are almost
coins - with the limits of Clopper and Pearson for each success rate. A lower limit above 1 − δ is evidence for the claim on
that distribution; an upper limit below it refutes the claim.
"""

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, factorial, lcm, prod

import numpy as np

from lemmata.core.random import generator, spawn
from lemmata.theory.bounds.holdout import clopper_pearson_interval
from lemmata.theory.bounds.tails import check_count, check_delta
from lemmata.theory.risk import MOST_SAMPLES, FiniteDistribution, behaviors, true_risk


def _samples(distribution, m):
    """Return how m draws can fall on the atoms, one way a row, and the probability of each as an integer over a common one."""
    m, chances = check_count(m, "m"), [weight for _, _, weight in distribution.atoms]
    a, unit = len(chances), lcm(*[chance.denominator for chance in chances])
    if comb(m + a - 1, a - 1) > MOST_SAMPLES:
        raise ValueError(f"{m} draws fall on {a} pairs of point and label in too many ways to sum over; take fewer of either.")
    bars = np.array(list(combinations(range(m + a - 1), a - 1)), dtype=np.int64).reshape(-1, a - 1)
    edges = np.hstack([np.full((len(bars), 1), -1), bars, np.full((len(bars), 1), m + a - 1)])
    counts = np.diff(edges, axis=1) - 1
    powers = [[int(chance * unit) ** c for c in range(m + 1)] for chance in chances]
    factorials = [factorial(c) for c in range(m + 1)]

    def times(row):
        ways = factorials[m] // prod(factorials[c] for c in row)
        return ways * prod(powers[i][c] for i, c in enumerate(row))

    return counts, [times(row) for row in counts.tolist()], unit**m


def misled_probability(hypotheses, distribution, epsilon, m):
    """Return the probability that a hypothesis of true risk above ε has no error on a sample of m rows.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or table of their labels on the points.
    distribution : `FiniteDistribution`.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> steps = [lambda x, t=t: x >= t for t in range(4)]
    >>> misled_probability(steps, law, 0.1, 5)
    Fraction(7, 27)
    """
    counts, times, unit = _samples(distribution, m)
    bad = np.array([risk > epsilon for risk in distribution.risks(hypotheses)])
    misled = (counts @ distribution.mistakes(hypotheses)[bad].T == 0).any(axis=1)
    return distribution.number(Fraction(sum(times[s] for s in np.flatnonzero(misled)), unit))


def erm_failure_probability(hypotheses, distribution, epsilon, m, *, ties="even"):
    """Return the probability that ERM on m rows ends with a true risk above that of the best of the class plus ε.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or table of their labels on the points.
    distribution : `FiniteDistribution`.
    ties : "even" if a minimizer is drawn at random, "worst" if an adversary chooses among them.

    Examples
    --------
    >>> law = FiniteDistribution([0, 1, 2], labels=[0, 1, 1])
    >>> steps = [lambda x, t=t: x >= t for t in range(4)]
    >>> erm_failure_probability(steps, law, 0.1, 5), erm_failure_probability(steps, law, 0.1, 5, ties="worst")
    (Fraction(191, 1458), Fraction(7, 27))
    """
    if ties not in ("even", "worst"):
        raise ValueError(f"ties must be 'even' or 'worst', not {ties!r}.")
    counts, times, unit = _samples(distribution, m)
    risks = distribution.risks(hypotheses)
    bad = np.array([risk > min(risks) + Fraction(epsilon) for risk in risks])
    errors = counts @ distribution.mistakes(hypotheses).T
    least = errors == errors.min(axis=1, keepdims=True)
    wrong, tied = (least & bad).sum(axis=1), least.sum(axis=1)
    if ties == "worst":
        wrong, tied = (wrong > 0).astype(int), np.ones_like(tied)
    total = [Fraction(sum(int(wrong[s]) * times[s] for s in np.flatnonzero(tied == k)), int(k) * unit) for k in np.unique(tied)]
    return distribution.number(sum(total))


def adversarial_bank(hypotheses, points, epsilon, *, realizable=True, n_targets=4, random_state=None):
    """Make distributions on which a class is hard to learn.

    For a few labelings of the class, those of most changes among them: equal weights; one heavy point with the others so rare
    that together they have a mass of 2ε, or one of them of 2ε alone; and, unless realizable, labels that are almost coins,
    P(y = h(x)) = (1 + 2ε)/2, where the wrong choice at half of the points costs ε.

    Parameters
    ----------
    hypotheses : Hypothesis class, list of hypotheses, or table of their labels on the points.
    points : Points of the domain; where the class shatters them, learning is hardest.
    realizable : Whether the class holds the target.
    n_targets : Labelings to take as targets.

    Returns
    -------
    bank : Dictionary of `FiniteDistribution` by name.

    Examples
    --------
    >>> steps = [lambda x, t=t: x >= t for t in range(4)]
    >>> list(adversarial_bank(steps, [0, 1, 2], 0.1, n_targets=1))
    ['uniform, target 0', 'rare points, target 0', 'one rare point, target 0']
    """
    table, k = behaviors(hypotheses, points), len(points)
    if k < 2:
        raise ValueError("A bank needs at least two points.")
    epsilon = Fraction(epsilon)
    if not 0 < epsilon < Fraction(1, 2):
        raise ValueError(f"epsilon must lie strictly between 0 and 1/2, not {float(epsilon)!r}.")
    changes = np.diff(table, axis=1).sum(axis=1)
    shuffled = generator(random_state).permutation(len(table))
    chosen = shuffled[np.argsort(-changes[shuffled], kind="stable")][:n_targets]
    rare = [1 - 2 * epsilon] + [2 * epsilon / (k - 1)] * (k - 1)
    single = [(1 - 2 * epsilon) / (k - 1)] * (k - 1) + [2 * epsilon]
    bank = {}
    for number, target in enumerate(table[chosen]):
        for name, weights in (("uniform", None), ("rare points", rare), ("one rare point", single)):
            bank[f"{name}, target {number}"] = FiniteDistribution(points, weights, labels=target)
        if not realizable:
            coins = [Fraction(1, 2) + (epsilon if label else -epsilon) for label in target]
            bank[f"coins, target {number}"] = FiniteDistribution(points, label_probabilities=coins)
    return bank


@dataclass(frozen=True)
class Trial:
    """How a learner did on one distribution.

    Attributes
    ----------
    name : Of the distribution.
    successes, n_trials : Samples on which the risk was within ε of the best, and all samples.
    lower, upper : Limits of Clopper and Pearson for the success rate, at a level shared with the other distributions.
    holds : Whether the lower limit is at least 1 − δ.
    refuted : Whether the upper limit is below it.
    """

    name: str
    successes: int
    n_trials: int
    lower: float
    upper: float
    delta: float

    @property
    def holds(self):
        """Whether the lower limit is at least 1 − δ."""
        return self.lower >= 1 - self.delta

    @property
    def refuted(self):
        """Whether the upper limit is below 1 − δ."""
        return self.upper < 1 - self.delta


@dataclass(frozen=True)
class PACExperiment:
    """How a learner did on a bank of distributions; it holds if it does on each of them.

    Attributes
    ----------
    m : Rows of each sample.
    trials : One `Trial` for each distribution.
    """

    m: int
    epsilon: float
    delta: float
    trials: list

    @property
    def holds(self):
        """Whether every success rate is at least 1 − δ, by its lower limit."""
        return all(trial.holds for trial in self.trials)

    @property
    def worst(self):
        """The trial with the fewest successes."""
        return min(self.trials, key=lambda trial: trial.successes)

    def __str__(self):
        width = max(len(trial.name) for trial in self.trials)
        head = f"m = {self.m}: P(excess ≤ {self.epsilon:g}) ≥ {1 - self.delta:g} {'holds' if self.holds else 'is not shown'}"
        lines = [
            f"  {t.name:<{width}}  {t.successes / t.n_trials:.4f} in [{t.lower:.4f}, {t.upper:.4f}]"
            f"{'' if t.holds else '  refuted' if t.refuted else '  open'}"
            for t in self.trials
        ]
        return "\n".join([head, *lines])


def pac_experiment(learner, hypotheses, bank, m, epsilon, delta, *, n_trials=400, level=0.99, random_state=None):
    """Try a learner on every distribution of a bank, and bound its success rates.

    Parameters
    ----------
    learner : Function of (X, y) that returns a hypothesis, or a hypothesis class, for its ERM.
    hypotheses : Class whose best hypothesis is the standard: class, list, or table on the points.
    bank : Dictionary of `FiniteDistribution` by name, such as an `adversarial_bank`.
    m : Rows of a sample, or a function of (ε, δ) that says how many.
    epsilon, delta : What is claimed: P(L_D(A(S)) ≤ min L_D + ε) ≥ 1 − δ.
    n_trials : Samples for each distribution.
    level : Probability at least with which all limits hold together.

    Examples
    --------
    >>> from lemmata.theory.sample_size import sample_size
    >>> steps = np.tri(9, 8, -1, dtype=bool)  # labels of 8 points by 9 thresholds
    >>> def learner(X, y):
    ...     return steps[(steps[:, X] != y).sum(axis=1).argmin()].__getitem__
    >>> bank = adversarial_bank(steps, np.arange(8), 0.2, n_targets=1, random_state=0)
    >>> size = lambda epsilon, delta: sample_size(epsilon, delta, hypotheses=9, realizable=True)
    >>> result = pac_experiment(learner, steps, bank, size, 0.2, 0.1, random_state=0)
    >>> result.m, result.holds
    (23, True)
    >>> print(result)
    m = 23: P(excess ≤ 0.2) ≥ 0.9 holds
      uniform, target 0         ... in [0.9..., ...]
      rare points, target 0     ... in [0.9..., ...]
      one rare point, target 0  ... in [0.9..., ...]
    """
    check_delta(delta)
    rows = check_count(m(epsilon, delta) if callable(m) else m, "m")
    check_count(n_trials, "n_trials")
    learn = learner.erm if hasattr(learner, "erm") else learner
    trials, share = [], (1 - level) / len(bank)
    for (name, law), rng in zip(bank.items(), spawn(generator(random_state), len(bank)), strict=True):
        goal = min(law.risks(hypotheses)) + Fraction(epsilon)
        successes = 0
        for _ in range(n_trials):
            found = learn(*law.sample(rows, rng))
            successes += true_risk(getattr(found, "hypothesis", found), law) <= goal
        trials.append(Trial(name, successes, n_trials, *clopper_pearson_interval(successes, n_trials, share), delta))
    return PACExperiment(rows, epsilon, delta, trials)
