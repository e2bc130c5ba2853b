"""Likelihood-ratio tests: one action or the other, after one observation, many, or as many as it takes.

Two hypotheses, 0 and 1, with densities p₀ and p₁ and priors P₀ and P₁; costs c(a, k) of action a under hypothesis k. Action 1
has the lower risk iff P₁p₁(x)(c(0,1) − c(1,1)) > P₀p₀(x)(c(1,0) − c(0,0)). If action 1 is the better one under hypothesis 1,
that is p₁(x)/p₀(x) > Θ with Θ = P₀/P₁ · (c(1,0) − c(0,0)) / (c(0,1) − c(1,1)): the data enter by the ratio alone. To write
both differences the other way round leaves Θ as it is; but if action 1 is the worse one under hypothesis 1, the inequality
itself turns round. Of independent observations the log ratios add up. Among all tests with the same probability of a false
alarm, the one that thresholds the ratio misses least (Neyman & Pearson).

Wald's sequential test adds log ratios until the sum leaves (log B, log A), with A = (1 − β)/α and B = β/(1 − α). Its error
rates α′ and β′ satisfy α′ ≤ α/(1 − β), β′ ≤ β/(1 − α) and α′ + β′ ≤ α + β, whatever the densities; if the sum overshoots the
bounds by little, they are α and β, and the expected number of observations is ((1 − β) log A + β log B)/E₁[log p₁/p₀] under
hypothesis 1, and (α log A + (1 − α) log B)/E₀[log p₁/p₀] under 0. No test with these error rates needs fewer (Wald &
Wolfowitz).

Wald, Ann. Math. Stat. 16 (1945).
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lemmata.decision.expectation import nodes
from lemmata.decision.priors import checked_priors
from lemmata.decision.risk import checked_costs, zero_one


def log_density(p, x):
    """Log densities: of observations x under a distribution, or of an array of densities."""
    if hasattr(p, "logpdf"):
        if x is None:
            raise ValueError("The hypotheses are distributions: give the observations x.")
        return np.asarray(p.logpdf(x), dtype=float)
    if x is not None:
        raise ValueError("The hypotheses are densities of observations already: leave out x.")
    density = np.asarray(p, dtype=float)
    if not (density >= 0).all():
        raise ValueError("Densities must be numbers of at least 0.")
    with np.errstate(divide="ignore"):  # the logarithm of the density 0
        return np.log(density)


def log_ratio(p1, p0, x=None):
    """Log p₁/p₀ of each observation; ±∞ where one of them is zero."""
    top, bottom = log_density(p1, x), log_density(p0, x)
    if top.shape != bottom.shape:
        raise ValueError(f"There must be as many densities under both hypotheses, got {top.shape} and {bottom.shape}.")
    if (np.isneginf(top) & np.isneginf(bottom)).any():
        raise ValueError("An observation is impossible under both hypotheses, so that their ratio says nothing.")
    return top - bottom


@dataclass(frozen=True)
class LikelihoodRatioTest:
    """The test of `likelihood_ratio_test`: action 1 where the log ratio exceeds `log_threshold`.

    Attributes
    ----------
    log_threshold : log Θ; ±∞ where one action is the better one whatever is observed.
    reversed : Whether action 1 is taken below the threshold: it is the worse action under hypothesis 1.
    always : The action that is the better one under both hypotheses, or None.

    Examples
    --------
    >>> test = likelihood_ratio_test([0.9], [0.4], priors=[0.7, 0.3], costs=[[0, 5], [1, 0]])
    >>> test.threshold, test.decide()
    (0.466667, array([1]))
    """

    p1: Any = field(repr=False)
    p0: Any = field(repr=False)
    log_threshold: float
    reversed: bool = False
    always: int | None = None

    @property
    def threshold(self):
        """Θ itself."""
        with np.errstate(over="ignore"):
            return float(np.exp(self.log_threshold))

    def log_ratio(self, x=None):
        """Return log p₁/p₀ of each observation; without x, of the densities that the test was made of."""
        return log_ratio(self.p1, self.p0, x)

    def decide(self, x=None):
        """Return the action after each observation by itself."""
        return self._actions(self.log_ratio(x))

    def decide_sequence(self, x=None):
        """Return the one action after all observations, which are independent and all from one of the hypotheses."""
        ratios = np.atleast_1d(self.log_ratio(x))
        if np.isposinf(ratios).any() and np.isneginf(ratios).any():
            raise ValueError("The observations together are impossible under both hypotheses.")
        return int(self._actions(ratios.sum()))

    def _actions(self, ratio):
        if self.always is not None:
            return np.full(np.shape(ratio), self.always)
        taken = ratio < self.log_threshold if self.reversed else ratio > self.log_threshold
        return np.asarray(taken).astype(int)


class SequentialOutcome(NamedTuple):
    """How a sequential test ended: the hypothesis it decided for (None: the data ended first), their number, the path."""

    decision: int | None
    n_observations: int
    path: np.ndarray


@dataclass(frozen=True)
class SequentialTest:
    """Wald's sequential probability ratio test, of `likelihood_ratio_test(…, sequential=True)`.

    Attributes
    ----------
    alpha, beta : Rates aimed at of deciding 1 under hypothesis 0, and 0 under hypothesis 1.

    Examples
    --------
    >>> from lemmata.probability.distributions import Bernoulli
    >>> test = likelihood_ratio_test(Bernoulli(0.8), Bernoulli(0.5), sequential=True, alpha=0.05, beta=0.05)
    >>> test.run([1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    SequentialOutcome(decision=1, n_observations=10, path=array([0.470, 0.940, 0.024, 0.494, 0.964,
           1.434, 1.904, 2.374, 2.844 , 3.314]))
    """

    p1: Any = field(repr=False)
    p0: Any = field(repr=False)
    alpha: float = 0.05
    beta: float = 0.05

    @property
    def log_upper(self):
        """Return log A = log((1 − β)/α): reached, hypothesis 1 is decided for."""
        return float(np.log((1 - self.beta) / self.alpha))

    @property
    def log_lower(self):
        """Return log B = log(β/(1 − α)): reached, hypothesis 0 is decided for."""
        return float(np.log(self.beta / (1 - self.alpha)))

    @property
    def error_bounds(self):
        """Guarantees of the true error rates, α/(1 − β) and β/(1 − α), whatever the densities."""
        return self.alpha / (1 - self.beta), self.beta / (1 - self.alpha)

    def run(self, observations=None):
        """Take observations (an array, or any iterator, of which no more are taken than needed) until a decision."""
        if observations is None or hasattr(observations, "__len__"):
            ratios = np.atleast_1d(log_ratio(self.p1, self.p0, None if observations is None else np.asarray(observations)))
            finite = np.isfinite(ratios)
            stop = len(ratios) if finite.all() else int(np.argmin(finite)) + 1  # an infinite ratio decides
            path = np.cumsum(ratios[:stop])
        else:
            path = np.array(list(self._sums(observations)))
        out = (path >= self.log_upper) | (path <= self.log_lower)
        if not out.any():
            return SequentialOutcome(None, len(path), path)
        last = int(np.argmax(out))
        return SequentialOutcome(int(path[last] >= self.log_upper), last + 1, path[: last + 1])

    def _sums(self, observations):
        total = 0.0
        for x in observations:
            total += float(log_ratio(self.p1, self.p0, np.asarray(x)))
            yield total
            if total >= self.log_upper or total <= self.log_lower:
                return

    def expected_samples(self, drifts=None):
        """Return Wald's approximation of the expected number of observations under hypothesis 0 and under 1.

        Parameters
        ----------
        drifts : Expected log ratios under 0 and under 1; for distributions of one number they are computed.

        Examples
        --------
        >>> from lemmata.probability.distributions import Normal
        >>> SequentialTest(Normal(1, 1), Normal(0, 1)).expected_samples()
        (5.3, 5.3)
        """
        if drifts is None:
            drifts = tuple(_drift(p, self.p1, self.p0) for p in (self.p0, self.p1))
        at_0 = self.alpha * self.log_upper + (1 - self.alpha) * self.log_lower
        at_1 = (1 - self.beta) * self.log_upper + self.beta * self.log_lower
        return at_0 / drifts[0], at_1 / drifts[1]


def _drift(p, p1, p0):
    if not hasattr(p, "icdf"):
        raise ValueError("The expected log ratios are known only of distributions of one number: give drifts.")
    x, weights = nodes(p)
    return float(weights[weights > 0] @ log_ratio(p1, p0, x[weights > 0]))


def likelihood_ratio_test(p1, p0, priors=None, costs=None, *, sequential=False, alpha=0.05, beta=0.05):
    """Make the test of hypothesis 1 against 0 that has the least expected cost, or Wald's sequential test.

    Parameters
    ----------
    p1, p0 : Distributions (anything with `logpdf`), or arrays of the densities that observations have under them.
    priors : Probabilities of hypotheses 0 and 1; default one half each.
    costs : (2, 2), of action a under hypothesis k; default zero-one.
    sequential : Whether observations come one by one and the test says when to stop; priors and costs then have no part.
    alpha, beta : For the sequential test, the rates of deciding 1 under hypothesis 0, and 0 under hypothesis 1.

    Returns
    -------
    test : `LikelihoodRatioTest`, with `log_threshold`, `decide(x)` for each observation and `decide_sequence(x)` for all of
        them; or `SequentialTest`, with `run(stream)`.

    Examples
    --------
    >>> from lemmata.probability.distributions import Normal
    >>> test = likelihood_ratio_test(Normal(2, 1), Normal(0, 1))
    >>> test.log_threshold, test.decide([0.5, 1.5]), test.decide_sequence([0.5, 1.8])
    (0.0, array([0, 1]), 1)
    """
    if sequential:
        if priors is not None or costs is not None:
            raise ValueError("A sequential test is made from alpha and beta: leave out priors and costs.")
        if not (0 < alpha < 1 and 0 < beta < 1 and alpha + beta < 1):
            raise ValueError(f"alpha and beta must be positive with a sum below 1, got {alpha} and {beta}.")
        return SequentialTest(p1, p0, float(alpha), float(beta))
    weight = checked_priors([0.5, 0.5] if priors is None else priors, 2)
    costs = zero_one(2) if costs is None else checked_costs(costs, 2, 2)
    if costs.ndim == 3:
        raise ValueError("A likelihood-ratio test has one matrix of costs, (2, 2).")
    alarm = float(weight[0] * (costs[1, 0] - costs[0, 0]))  # what action 1 loses under hypothesis 0
    gain = float(weight[1] * (costs[0, 1] - costs[1, 1]))  # and saves under hypothesis 1
    if np.sign(alarm) * np.sign(gain) > 0:
        return LikelihoodRatioTest(p1, p0, float(np.log(alarm / gain)), reversed=gain < 0)
    always = int(gain > alarm)  # nothing lost and something saved, or the other way round
    return LikelihoodRatioTest(p1, p0, -np.inf if always else np.inf, always=always)
