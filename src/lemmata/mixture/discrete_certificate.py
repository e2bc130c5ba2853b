"""The checks of mixtures over discrete tables: the EM map from the counts of all outcomes, and what it cannot see.

By Fisher's identity the log-likelihood is stationary exactly where the EM map leaves the parameters, so the
checker evaluates that map anew, from the counts of all outcomes and SciPy's log-sum-exp. Where a chance is 0 the map leaves it
there whatever the table says, so there the condition is another: to raise it must not pay, ∂L/∂θₖⱼc ≤ λₖⱼ, where the multiplier
λₖⱼ = Σ_c (Tₖⱼc + α) is what the derivative (Tₖⱼc + α)/θₖⱼc of every chance above 0 equals; and likewise for the weights. Where
components coincide, every derivative along which they part is zero by symmetry; so they are nudged apart, and the map must not
carry them further.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp

from lemmata.core.blocks import Largest
from lemmata.core.data import is_sparse
from lemmata.mixture.discrete import BORDER, normalized
from lemmata.mixture.discrete_kernels import logarithms, logarithms_of_weights, posterior_block

CELLS = 1 << 20  # counts of outcomes, at most, that are made at a time
NOTHING = 1e-12  # chances below count as 0: that of a tail is known as 1 − that of a head, and has no digits left
TWINS = 1e-3  # components whose chances are closer coincide
NUDGES = 0.1, 0.5  # of the logarithm of a chance
NUDGED = 50  # steps of the EM map after each


class Counts(NamedTuple):
    """Counts of all outcomes in some rows: a matrix, sparse if the table is, and a row to add to each of its rows."""

    matrix: Any
    base: Any
    coefficients: Any  # their logarithms

    def joint(self, weights, chances):
        """Log joint density (rows, k) with 0 for the logarithm of a chance of 0, and how many events are ruled out."""
        logs, never = logarithms(chances)
        return self.times(logs) + logarithms_of_weights(weights) + self.coefficients[:, None], self.times(never.astype(float))

    def times(self, table):
        """Sum a table (k, outcomes) over what happened in each row."""
        return np.asarray(self.matrix @ table.T) + self.base @ table.T

    def gathered(self, shares):
        """Sum the counts over the rows, with shares (rows, k)."""
        return np.asarray(self.matrix.T @ shares).T + np.outer(shares.sum(axis=0), self.base)


def slices(X, outcomes):
    """Give the counts of a block, so many rows at a time that they fit in memory."""
    n = X.shape[0] if is_sparse(X) else max(CELLS // int(outcomes.starts[-1]), 1)
    for first in range(0, X.shape[0], n):
        rows = slice(first, min(first + n, X.shape[0]))
        yield rows, Counts(*outcomes.counts(X[rows]), outcomes.coefficients(X[rows]))


def bayes_rule(counts, weights, chances):
    """Posterior of each row and its log-density."""
    logs, ruled_out = counts.joint(weights, chances)
    logs = np.where(ruled_out > 0.5, -np.inf, logs)
    density = logsumexp(logs, axis=1)
    possible = density > -np.inf
    return np.where(possible[:, None], np.exp(logs - np.where(possible, density, 0.0)[:, None]), weights), density


def map_block(X, weight, outcomes, weights, chances):
    """Log-likelihood of a block, weights of the components and counts of the outcomes in it."""
    value, totals, tallies = 0.0, np.zeros(len(weights)), np.zeros(chances.shape)
    for rows, counts in slices(X, outcomes):
        posterior, density = bayes_rule(counts, weights, chances)
        if weight is not None:
            posterior, density = posterior * weight[rows, None], density * weight[rows]
        value += float(density.sum())
        totals += posterior.sum(axis=0)
        tallies += counts.gathered(posterior)
    return value, totals, tallies


def slopes_block(X, weight, outcomes, weights, chances):
    """Derivative of the log-likelihood of a block by every weight, and by every chance that is 0.

    By a chance of 0 only the rows count in which its outcome is the one event that the component rules out, and happened once:
    their density is that chance times the rest.
    """
    by_weight, by_chance = np.zeros(len(weights)), np.zeros(chances.shape)
    for rows, counts in slices(X, outcomes):
        logs, ruled_out = counts.joint(np.ones(len(weights)), chances)
        density = bayes_rule(counts, weights, chances)[1]
        ratios = np.exp(np.minimum(logs - density[:, None], 700.0))  # no larger number has an exponential
        if weight is not None:
            ratios *= weight[rows, None]
        by_weight += (ratios * (ruled_out < 0.5)).sum(axis=0)
        by_chance += counts.gathered(weights * ratios * (np.abs(ruled_out - 1.0) < 0.5))
    return by_weight, np.where(chances > 0, 0.0, by_chance)


def disagreement_block(X, weight, outcomes, prepared, weights, chances):
    """Largest difference of the kernel's posterior from that by Bayes' rule."""
    posterior, largest = posterior_block(X, weight, (outcomes, prepared))[0], 0.0
    for rows, counts in slices(X, outcomes):
        largest = max(largest, float(np.abs(posterior[rows] - bayes_rule(counts, weights, chances)[0]).max()))
    return Largest(largest)


class Map:
    """The EM map on a table, from the counts of all outcomes."""

    def __init__(self, blocks, outcomes, alpha):
        self.blocks, self.outcomes, self.alpha = blocks, outcomes, alpha

    def __call__(self, weights, chances):
        """Return the mean log-likelihood before a step, and the weights and chances after it."""
        value, totals, tallies = self.blocks.reduce(map_block, self.outcomes, weights, chances)
        after = normalized(tallies + self.alpha, self.outcomes.starts, chances)
        return value / totals.sum(), totals / totals.sum(), after

    def excess(self, weights, chances, with_weights):
        """Say by how much, at most, the derivative by a chance or weight on the border exceeds its multiplier, as a share."""
        weights, chances = np.where(weights < NOTHING, 0.0, weights), np.where(chances < NOTHING, 0.0, chances)
        _, totals, tallies = self.blocks.reduce(map_block, self.outcomes, weights, chances)
        by_weight, by_chance = self.blocks.reduce(slopes_block, self.outcomes, weights, chances)
        starts, tallies = self.outcomes.starts, tallies + self.alpha
        multipliers = np.repeat(np.add.reduceat(tallies, starts[:-1], axis=1), np.diff(starts), axis=1)
        slopes = np.where(chances > 0, tallies / np.where(chances > 0, chances, 1.0), by_chance)
        slopes = np.where((chances > 0) | (self.alpha <= NOTHING * multipliers), slopes, np.inf)
        low = (chances < BORDER) & (multipliers > 0)
        excesses = [slopes[low] / multipliers[low] - 1.0, by_weight[weights < BORDER] / totals.sum() - 1.0]
        return max(float(e.max(initial=0.0)) for e in excesses[: 1 + with_weights])


def parting(step, weights, chances):
    """Nudge components that coincide apart; return how many times farther the EM map takes them, 0 where there are none."""
    pairs = [(a, b) for a, b in combinations(np.flatnonzero(weights > BORDER), 2) if _apart(chances, a, b) < TWINS]
    if not pairs:
        return 0.0
    sign = np.zeros(len(weights))
    for a, b in pairs:
        sign[a], sign[b] = sign[a] or 1.0, sign[b] or -1.0
    noise, starts, worst = np.random.default_rng(0).standard_normal(chances.shape[1]), step.outcomes.starts, 0.0
    for size in NUDGES:
        state = weights, normalized(chances * np.exp(size * sign[:, None] * noise), starts, chances)
        before = max(_apart(state[1], a, b) for a, b in pairs)
        for _ in range(NUDGED):
            state = step(*state)[1:]
        worst = max(worst, max(_apart(state[1], a, b) for a, b in pairs) / before) if before > 0 else worst
    return worst


def _apart(chances, a, b):
    return float(np.abs(chances[a] - chances[b]).max())


def fault(k, outcomes, weights, stored):
    """Say how far weights and chances are from probabilities; infinite where they are of no use."""
    width = outcomes.reduced(np.zeros((1, outcomes.starts[-1]))).shape[1]
    if weights.shape != (k,) or stored.shape != (k, width) or not (np.isfinite(weights).all() and np.isfinite(stored).all()):
        return np.inf
    chances = outcomes.full(stored)
    sums = np.add.reduceat(chances, outcomes.starts[:-1], axis=1)
    outside = max(0.0, -float(min(weights.min(), chances.min())))
    return np.inf if outside > 0 else max(abs(float(weights.sum()) - 1.0), float(np.abs(sums - 1.0).max()))
