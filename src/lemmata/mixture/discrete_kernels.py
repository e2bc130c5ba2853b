"""How a row of a discrete table is read: as counts of outcomes, column by column.

A column j has the outcomes 1, …, Cⱼ, and an entry says how often each of them happened: uᵢⱼ₁, …, uᵢⱼc. A coin tossed n times
has the outcomes tail and head with the counts n − x and x (`Trials`; n = 1 is a Bernoulli column); a code x has the count one
for the outcome x (`Codes`); a missing entry counts nothing. With the chances θₖⱼc of the outcomes in component k, in which
columns are independent,

    log pₖ(xᵢ) = Σⱼ [ log of the multinomial coefficient + Σ_c uᵢⱼc log θₖⱼc ],

and the sums over rows Tₖⱼc = Σᵢ sᵢ rᵢₖ uᵢⱼc are all that an M-step needs. Chances and sums of all columns stand side by side
in one matrix (k, ΣCⱼ), in which column j begins at starts[j].

Heads and tails are not counted apart: Σⱼ xⱼ log θⱼ + (nⱼ − xⱼ) log(1 − θⱼ) = x·logit θ + Σⱼ nⱼ log(1 − θⱼ), a matrix product
that leaves sparse rows sparse. Chances of 0 and 1 have no logarithm: they take part with 0 in its place, and a second product
counts the events of a row that its component rules out.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln

from lemmata.core.certificate import SABOTAGE, TINY, length, nonnegative
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

WHOLE = 2**53  # below, every whole number is a number of double precision
ROUNDING = 1e-13  # of the tosses: tails that are found by subtracting and are fewer are none


@kernel
def read_ones(X, threshold, out):
    """Write 1 where an entry is above a threshold, else 0; return how many are missing."""
    holes = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            out[i, j] = 1.0 if x > threshold else 0.0
            holes += x != x
    return holes


@kernel
def read_counts(X, out):
    """Copy the entries, with 0 for what is missing; return how many are missing."""
    holes = 0
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            missing = x != x
            out[i, j] = 0.0 if missing else np.float64(x)
            holes += missing
    return holes


@kernel
def add_logs(X, starts, table, logs):
    """Add to the log joint (n, k) the logarithm, in a table (outcomes, k), of the chance of every code of a row."""
    for i in range(X.shape[0]):
        row = logs[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x:
                entry = table[starts[j] + np.int64(x)]
                for m in range(row.shape[0]):
                    row[m] += entry[m]


@kernel
def add_shares(X, starts, shares, sums):
    """Add the shares (n, k) of every row to the sums (outcomes, k) of its codes."""
    for i in range(X.shape[0]):
        row = shares[i]
        for j in range(X.shape[1]):
            x = X[i, j]
            if x == x:
                entry = sums[starts[j] + np.int64(x)]
                for m in range(row.shape[0]):
                    entry[m] += row[m]


@kernel
def bayes(logs, weights, density):
    """Turn a log joint (n, k) into the posterior, in place; a row that no component allows has the weights for one."""
    for i in range(logs.shape[0]):
        row = logs[i]
        top = -np.inf
        for m in range(row.shape[0]):
            top = max(top, row[m])
        if top == -np.inf:
            row[:] = weights
            density[i] = top
            continue
        total = 0.0
        for m in range(row.shape[0]):
            e = np.exp(row[m] - top)
            row[m] = e
            total += e
        density[i] = top + np.log(total)
        for m in range(row.shape[0]):
            row[m] /= total


@dataclass(frozen=True)
class Range:
    """The least and the largest entry of each column; the sum of two is that of both."""

    low: Any
    high: Any

    def __add__(self, other):
        """Take the outer ends."""
        return Range(np.fmin(self.low, other.low), np.fmax(self.high, other.high))


class Census(NamedTuple):
    """What a look at every entry found: the range of each column, and how many entries are missing or not as they should be."""

    spread: Range
    missing: int
    fractions: int  # not whole
    strange: int  # neither 0 nor 1


def census_block(X, weight):
    """Take the census of a block."""
    if is_sparse(X):
        values, sides = X.data, (X.min(axis=0).toarray().ravel(), X.max(axis=0).toarray().ravel())
    else:
        values, sides = X, (np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0))
    present = ~np.isnan(values)
    whole, bits = np.floor(values) == values, (values == 0) | (values == 1)
    return Census(Range(*sides), int((~present).sum()), int((present & ~whole).sum()), int((present & ~bits).sum()))


def logarithms(chances):
    """Logarithms of chances, 0 in the place of those of 0, and where these are."""
    never = chances <= 0
    return np.log(np.where(never, 1.0, chances)), never


class Prepared(NamedTuple):
    """What `Trials` needs to know of the components, in matrices (d, k) or, with events that are ruled out, (d, 2k)."""

    weights: Any
    log_weights: Any
    slopes: Any  # of a head more, in place of a tail
    tails: Any  # of no head at all


class Trials:
    """Columns of counts of heads: outcomes are tail and head, in this order.

    Parameters
    ----------
    n_trials : (d,), tosses of each column.
    threshold : Larger entries count as one head of one toss; None where entries are counts.
    """

    def __init__(self, n_trials, threshold=None):
        self.n_trials, self.threshold = n_trials, threshold
        self.starts = 2 * np.arange(len(n_trials) + 1)

    def read(self, X):
        """Give the heads of each entry, and 1 where it is seen or None where all are."""
        if is_sparse(X):
            heads = X.data if self.threshold is None else X.data > self.threshold
            return type(X)((heads.astype(float), X.indices, X.indptr), shape=X.shape), None
        heads = np.empty(X.shape)
        holes = read_counts(X, heads) if self.threshold is None else read_ones(X, self.threshold, heads)
        return heads, (~np.isnan(X)).astype(float) if holes else None

    def prepare(self, weights, chances):
        """Take logarithms."""
        (tails, never_tail), (heads, never_head) = logarithms(chances[:, ::2].T), logarithms(chances[:, 1::2].T)
        slopes, constants = heads - tails, self.n_trials[:, None] * tails
        if never_tail.any() or never_head.any():
            slopes = np.hstack([slopes, never_head.astype(float) - never_tail])
            constants = np.hstack([constants, self.n_trials[:, None] * never_tail])
        return Prepared(weights, logarithms_of_weights(weights), slopes, constants)

    def posterior(self, X, prepared):
        """Posterior of each row, its log-density without coefficients, and what was read."""
        read = heads, seen = self.read(X)
        k = len(prepared.weights)
        logs = np.asarray(heads @ prepared.slopes)
        logs += prepared.tails.sum(axis=0) if seen is None else seen @ prepared.tails
        if logs.shape[1] > k:
            logs = np.where(logs[:, k:] > 0.5, -np.inf, logs[:, :k])
        logs += prepared.log_weights
        density = np.empty(len(logs))
        bayes(logs, prepared.weights, density)
        return logs, density, read

    def sums(self, read, shares):
        """Heads and tosses (k, 2d) of each component."""
        heads, seen = read
        rows = column_sums(shares)[:, None] if seen is None else shares.T @ seen
        return np.hstack([np.asarray(heads.T @ shares).T, rows * self.n_trials])

    def tallies(self, sums):
        """Tails and heads (k, 2d), in the order of the chances."""
        heads, tosses = np.hsplit(sums, 2)
        tails = tosses - heads
        return _side_by_side(np.where(tails > ROUNDING * tosses, tails, 0.0), heads)

    @staticmethod
    def full(heads):
        """Chances of all outcomes from those of heads (k, d)."""
        return _side_by_side(1.0 - heads, heads)

    @staticmethod
    def reduced(chances):
        """Undo `full`."""
        return chances[:, 1::2]

    @staticmethod
    def moved(heads, rng):
        """Move by 1 % of all chances of heads, within 0 and 1."""
        return 1.0 - np.abs(1.0 - nonnegative(heads, rng))

    def coefficients(self, X):
        """Logarithm of the number of orders in which the heads of each row can have fallen."""
        if self.threshold is not None or (self.n_trials <= 1).all():
            return np.zeros(X.shape[0])
        n = self.n_trials
        if is_sparse(X):  # no head and one order: nothing to add
            logs = type(X)((_log_orders(n[X.indices], X.data.astype(float)), X.indices, X.indptr), shape=X.shape)
            return np.asarray(logs.sum(axis=1)).ravel()
        return np.nansum(_log_orders(n, X.astype(float)), axis=1)

    def counts(self, X):
        """Counts of all outcomes (n, 2d): a matrix, sparse if X is, and a row to add to each of its rows."""
        heads = (X.data if is_sparse(X) else X).astype(float)
        if self.threshold is not None:
            heads = np.where(np.isnan(heads), np.nan, heads > self.threshold)
        if not is_sparse(X):
            return np.nan_to_num(_side_by_side(self.n_trials - heads, heads)), np.zeros(self.starts[-1])
        places = (2 * X.indices[:, None].astype(np.int64) + [0, 1]).ravel()  # a head more is a tail less
        matrix = type(X)(
            (np.outer(heads, [-1.0, 1.0]).ravel(), places, 2 * X.indptr.astype(np.int64)), (X.shape[0], self.starts[-1])
        )
        return matrix, np.kron(self.n_trials, [1.0, 0.0])


class Codes:
    """Columns of codes 0, 1, …: outcomes are the codes.

    Parameters
    ----------
    n_categories : (d,), number of codes of each column.
    """

    def __init__(self, n_categories):
        self.starts = np.concatenate([[0], np.cumsum(n_categories)])

    def read(self, X):
        """Codes are read as they stand."""
        return X

    def prepare(self, weights, chances):
        """Take logarithms: those of 0 are infinite, and nothing multiplies them."""
        logs, never = logarithms(chances.T)
        logs[never] = -np.inf
        return weights, logarithms_of_weights(weights), np.ascontiguousarray(logs)

    def posterior(self, X, prepared):
        """Posterior of each row, its log-density, and what was read."""
        weights, log_weights, table = prepared
        logs, density = np.tile(log_weights, (len(X), 1)), np.empty(len(X))
        add_logs(X, self.starts, table, logs)
        bayes(logs, weights, density)
        return logs, density, self.read(X)

    def sums(self, read, shares):
        """Counts of the codes (k, outcomes) in each component."""
        sums = np.zeros((self.starts[-1], shares.shape[1]))
        add_shares(read, self.starts, shares, sums)
        return sums.T

    def tallies(self, sums):
        """Give the counts themselves."""
        return sums

    def full(self, chances):
        """Chances are stored in full."""
        return chances

    reduced = full

    def moved(self, chances, rng):
        """Move by 1 % of all chances, within the simplex of each column."""
        sizes, begin = np.diff(self.starts), self.starts[:-1]
        u = rng.standard_normal(chances.shape)
        u -= np.repeat(np.add.reduceat(u, begin, axis=1) / sizes, sizes, axis=1)
        b = np.abs(chances + SABOTAGE * length(chances) / max(length(u), TINY) * u)
        return b / np.repeat(np.add.reduceat(b, begin, axis=1), sizes, axis=1)

    def coefficients(self, X):
        """Nothing is repeated, so there is nothing to reorder."""
        return np.zeros(X.shape[0])

    def counts(self, X):
        """Counts of all outcomes (n, outcomes), and a row to add to each of its rows: nothing."""
        codes = [(X[:, [j]] == np.arange(size)).astype(float) for j, size in enumerate(np.diff(self.starts))]
        return np.hstack(codes), np.zeros(self.starts[-1])


def column_sums(shares):
    """Sum over rows, as a product: NumPy adds narrow tables down their columns many times slower."""
    return np.ones(len(shares)) @ shares


def logarithms_of_weights(weights):
    """Logarithms, minus infinity for a component without weight."""
    logs, never = logarithms(weights)
    return np.where(never, -np.inf, logs)


def _side_by_side(tails, heads):
    """Lay out what belongs to tails and to heads, column by column."""
    return np.stack([tails, heads], axis=2).reshape(len(heads), -1)


def _log_orders(n, heads):
    return gammaln(n + 1.0) - gammaln(heads + 1.0) - gammaln(n - heads + 1.0)


def posterior_block(X, weight, components):
    """Posterior of each row of a block, and its log-density."""
    outcomes, prepared = components
    posterior, density, _ = outcomes.posterior(X, prepared)
    return posterior, density + outcomes.coefficients(X)
