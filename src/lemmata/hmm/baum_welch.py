"""Baum-Welch: EM for chains whose states are not seen, with any law of emissions.

The E-step runs forward and backward over each sequence (`recursions`); with γₜ = P(sₜ|x) and ξₜ = P(sₜ₋₁, sₜ|x) the M-step
counts,

    π(s) ∝ Σ γ₁(s) + a − 1,   P(r, s) ∝ Σₜ ξₜ(r, s) + A(r, s) − 1,

where the sums go over all sequences, each with its own likelihood in the denominators, and a, A are the parameters of Dirichlet
priors; 1 is none. The law of emissions takes γₜ as the shares of the states in row t, as a mixture takes its posterior. What
never falls is the log-likelihood plus the log-prior. A probability that starts at 0 stays there: that is how structure is
given, such as chains that go from left to right.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from lemmata.core import config
from lemmata.core.blocks import add
from lemmata.core.threads import run
from lemmata.hmm import recursions
from lemmata.mixture.discrete import alive, raised
from lemmata.mixture.em import LatentModel

LONG = 1 << 14  # rows of a sequence that is worth more than one thread
STRETCH = 1 << 13  # rows of it that one thread works on at a time


class Prepared(NamedTuple):
    """What the E-step of every block needs."""

    start: Any
    transition: Any
    turned: Any  # the transition matrix, transposed
    law: Any
    constant: float  # the share of a row in the log-prior


class Posterior(NamedTuple):
    """What is known of the states of sequences after all rows are seen."""

    log_likelihood: float
    states: Any  # (rows, k)
    first: Any  # (k,), summed over sequences
    slopes: Any  # (k, k), derivatives of the log-likelihood by the transitions


def posterior(logs, lengths, start, transition, turned):
    """Run forward and backward over sequences with these log-densities, which are overwritten."""
    k = len(start)
    tops, states, first, slopes = np.empty(len(logs)), np.empty(logs.shape), np.zeros(k), np.zeros((k, k))
    recursions.scale_rows(logs, tops)
    value = recursions.expect(logs, tops, lengths, start, transition, turned, states, first, slopes)
    return Posterior(float(value), states, first, slopes)


def posterior_of_long(law, prepared, X):
    """Do the same for one long sequence: log-densities, both recursions at once, and statistics, on all threads.

    Rows are cut into stretches of a fixed length, whose sums are added in order: the same bits for any number of threads.

    Returns
    -------
    posterior, statistics : As `posterior` gives, and what the law counts.
    """
    n, k = len(X), len(prepared.start)
    logs, alpha, beta, tops = np.empty((n, k)), np.empty((n, k)), np.empty((n, k)), np.empty(n)
    cuts = [slice(first, min(first + STRETCH, n)) for first in range(0, n, STRETCH)]
    found, value = [None] * len(cuts), [0.0]

    def densities(i):
        logs[cuts[i]] = law.log_densities(X[cuts[i]], prepared.law)
        recursions.scale_rows(logs[cuts[i]], tops[cuts[i]])

    def one_way(end):
        if end == 0:
            value[0] = recursions.forward(logs, tops, prepared.start, prepared.transition, alpha)
        else:
            recursions.backward(logs, prepared.transition, beta)

    def joined(i):
        rows, slopes = cuts[i], np.zeros((k, k))
        recursions.join(logs, prepared.transition, alpha, beta, rows.start, rows.stop, slopes)
        found[i] = slopes, law.statistics(X[rows], alpha[rows], prepared.law)

    threads = config.n_threads()
    run(densities, range(len(cuts)), threads)
    run(one_way, range(2), threads)
    run(joined, range(len(cuts)), threads)
    slopes, statistics = reduce(add, found)
    return Posterior(float(value[0]), alpha, alpha[0].copy(), slopes), statistics


def shares(counts, otherwise):
    """Divide counts by their sum along the last axis, where there is one."""
    totals = counts.sum(axis=-1, keepdims=True)
    return np.where(totals > 0, counts / np.where(totals > 0, totals, 1.0), otherwise)


def log_prior(probabilities, prior):
    """Log-density of a Dirichlet prior but for its constant; a probability of 0 is structure, and has none."""
    allowed = probabilities > 0
    return float(((np.broadcast_to(prior, probabilities.shape) - 1.0)[allowed] * np.log(probabilities[allowed])).sum())


class ChainModel(LatentModel):
    """The steps of EM; parameters are (start, transition, *those of the law).

    Parameters
    ----------
    law : Law of emissions.
    begin : Function of (sequences, generator) that gives the parameters to start with.
    start_prior, transition_prior : Parameters of the Dirichlet priors.
    fixed : Names of what stays as it starts, of "startprob", "transmat" and the law's own.
    n_rows : Rows of the table.
    """

    name = "Baum-Welch"

    def __init__(self, law, begin, start_prior, transition_prior, fixed, n_rows):
        self.law, self.begin, self.fixed, self.n_rows = law, begin, frozenset(fixed), n_rows
        self.start_prior, self.transition_prior = start_prior, transition_prior

    def start(self, blocks, rng):
        """Begin as told, unless that makes some sequence impossible."""
        parameters = self.begin(blocks, rng)
        if not blocks.reduce(self.e_step, self.prepare(parameters))[0] > -np.inf:
            raise ValueError(
                "Under the start that was given some sequence is impossible: raise the probabilities of 0 that rule it out."
            )
        return parameters

    def prepare(self, parameters):
        """Prepare the law, and share out what is the same for every row."""
        start, transition, *rest = parameters
        prior = log_prior(start, self.start_prior) + log_prior(transition, self.transition_prior) + self.law.log_prior(rest)
        turned = np.ascontiguousarray(transition.T)
        return Prepared(start, np.ascontiguousarray(transition), turned, self.law.prepare(rest), prior / self.n_rows)

    def e_step(self, X, lengths, prepared):
        """Log-likelihood and log-prior, expected first states and steps, and what the law counts."""
        if len(lengths) == 1 and len(X) >= LONG:
            found, statistics = posterior_of_long(self.law, prepared, X)
        else:
            logs = self.law.log_densities(X, prepared.law)
            found = posterior(logs, lengths, prepared.start, prepared.transition, prepared.turned)
            statistics = self.law.statistics(X, found.states, prepared.law)
        value = found.log_likelihood + prepared.constant * len(X)
        return value, found.first, found.slopes * prepared.transition, *statistics

    def m_step(self, statistics, parameters):
        """Count; what is 0 stays 0, and a state that is never left keeps its row."""
        _, first, steps, *counts = statistics
        start, transition, *rest = parameters
        if "startprob" not in self.fixed:
            counted = np.where(start > 0, np.maximum(first + (self.start_prior - 1.0), 0.0), 0.0)
            start = alive(start, shares(counted, start))
        if "transmat" not in self.fixed:
            counted = np.where(transition > 0, np.maximum(steps + (self.transition_prior - 1.0), 0.0), 0.0)
            transition = alive(transition, shares(counted, transition))
        return start, transition, *self.law.m_step(counts, rest, self.fixed)

    def complete(self, parameters):
        """One state hides nothing, unless the rows have holes."""
        return len(parameters[0]) == 1 and self.law.complete

    def penalty(self, parameters):
        """Give what the floor of the law takes off."""
        return self.law.penalty(parameters[2:])

    def rounding(self, parameters):
        """Leave to the law how far its densities may round."""
        return self.law.rounding(parameters[2:])

    def slack(self, before, after):
        """Leave to the law what its floor may cost."""
        return self.law.slack(before[2:], after[2:])

    def escape(self, before, after):
        """Raise what lies on the border and is about to leave it."""
        start, transition = raised(before[0], after[0]), raised(before[1], after[1])
        law = self.law.escape(before[2:], after[2:])
        if np.array_equal(start, after[0]) and np.array_equal(transition, after[1]) and law is None:
            return None
        return shares(start, start), shares(transition, transition), *(after[2:] if law is None else law)

    def pack(self, parameters):
        """Square roots of the probabilities, then what the law packs."""
        start, transition, *rest = parameters
        law = self.law.pack(rest)
        return None if law is None else np.concatenate([np.sqrt(start), np.sqrt(transition).ravel(), law])

    def unpack(self, vector):
        """Undo `pack`; None where a row vanishes or the law cannot."""
        k = self.law.k
        start, transition, law = np.split(vector, [k, k + k * k])
        start, transition = shares(start**2, np.nan), shares(transition.reshape(k, k) ** 2, np.nan)
        rest = self.law.unpack(law)
        if rest is None or not (np.isfinite(start).all() and np.isfinite(transition).all()):
            return None
        return start, transition, *rest

    def __getstate__(self):
        """Leave behind what only the start needs: the E-step may travel to other processes."""
        return self.__dict__ | {"begin": None}
