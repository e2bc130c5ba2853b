"""Learning from mistakes in dual form: an epoch of the kernel perceptron, for several binary problems at once.

All problems see the same rows in the same order, so that a row of the kernel matrix is computed once for all that are mistaken
about it. The scores f(xᵢ) of all rows are kept up to date: a visit without a mistake costs one comparison, a mistake one row
of the matrix. A weight of k is k visits in a row; what is left below one is a visit that counts that much less. For votes of
all weights that there ever were, the mistakes are also kept in their order.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.kernels.rows import fill
from lemmata.kernels.sums import distinct, in_double, texts_of
from lemmata.linear_model.stochastic import shuffler

FULL = 4096  # rows up to which the whole matrix is computed at once: 128 MiB
VOTED = 64  # rows whose kernels with all support vectors are in memory at a time, for a thread
CACHE = 256 << 20  # bytes of rows of the matrix that are kept beyond that


class State(NamedTuple):
    """Perceptrons of K binary problems after some epochs, in dual form."""

    epoch: int
    scores: np.ndarray  # (K, n): f(xᵢ)
    counts: np.ndarray  # (K, n): mistakes
    late: np.ndarray  # (K, n): the visits before each mistake, summed
    time: float  # weight of the rows visited
    visits: np.ndarray  # (K,), that time at the end of the last epoch of each problem
    mistakes: np.ndarray  # (K,), of the last epoch
    active: np.ndarray  # (K,), whether there were any
    log: np.ndarray  # (m, 4): problem, row, share and time of each mistake, in their order; (0, 4) if nobody asks for it


@kernel
def next_mistake(order, start, signs, scores, active, margin):
    """Return the first place from `start` on at which a problem that is active makes a mistake."""
    for p in range(start, order.shape[0]):
        i = order[p]
        for k in range(scores.shape[0]):
            if active[k] and not signs[k, i] * scores[k, i] > margin:
                return p
    return order.shape[0]


@kernel
def learn(i, row, due, time, signs, margin, active, scores, counts, late, mistakes):
    """Visit row i so often as it is due, for all problems; `row` holds its kernel with every row."""
    for k in range(scores.shape[0]):
        if not active[k]:
            continue
        rest, f, total = due, scores[k, i], 0.0
        while rest > 0:
            if signs[k, i] * f > margin:
                break  # further visits of this row would change nothing
            part = min(rest, 1.0)
            f += signs[k, i] * part * row[i]
            late[k, i] += part * (time + due - rest)
            total += part
            rest -= part
        if total > 0:
            counts[k, i] += total
            mistakes[k] += total
            for j in range(row.shape[0]):
                scores[k, j] += signs[k, i] * total * row[j]


@kernel
def visit_all(K, order, weight, before, signs, margin, active, scores, counts, late, mistakes):
    """Visit all rows in the given order, with the whole matrix at hand."""
    p = next_mistake(order, 0, signs, scores, active, margin)
    while p < order.shape[0]:
        i = order[p]
        learn(i, K[i], weight[i], before[p], signs, margin, active, scores, counts, late, mistakes)
        p = next_mistake(order, p + 1, signs, scores, active, margin)


class Gram:
    """The matrix of a kernel by rows: all of it for small tables, else rows as they are asked for, the last ones kept."""

    def __init__(self, function, X):
        self.function, self.rows = function, function.prepare(in_double(X))
        self.whole = fill(function.values, self.rows, self.rows) if len(self.rows) <= FULL else None
        self.kept: dict[int, np.ndarray] = {}
        self.most = max(CACHE // (8 * len(self.rows)), 1)

    def row(self, i):
        """Return k(xᵢ, x) for all x."""
        if self.whole is not None:
            return self.whole[i]
        if i not in self.kept:
            if len(self.kept) >= self.most:
                del self.kept[next(iter(self.kept))]
            self.kept[i] = self.function.values(self.rows[[i]], self.rows)[0].astype(float)
        return self.kept[i]


def start(n_problems, n_rows):
    """Return the state before the first visit."""
    scores, counts, late = np.zeros((3, n_problems, n_rows))
    visits, mistakes = np.zeros((2, n_problems))
    return State(0, scores, counts, late, 0.0, visits, mistakes, np.ones(n_problems, dtype=bool), np.zeros((0, 4)))


def epoch(gram, signs, weight, margin, seed, state, logged=False):
    """Visit all rows once and return the state; the active problems are those that made mistakes."""
    n, rng = len(weight), shuffler(seed, state.epoch)
    order = np.arange(n) if rng is None else rng.permutation(n)
    scores, counts, late = state.scores.copy(), state.counts.copy(), state.late.copy()
    mistakes = np.zeros(len(signs))
    before = state.time + np.cumsum(weight[order]) - weight[order]
    learned = (signs, margin, state.active, scores, counts, late, mistakes)
    log = []
    if gram.whole is not None and not logged:
        visit_all(gram.whole, order, weight, before, *learned)
    else:
        p = next_mistake(order, 0, signs, scores, state.active, margin)
        while p < n:
            i = int(order[p])
            done = counts[:, i].copy()
            learn(i, gram.row(i), weight[i], before[p], *learned)
            if logged:
                log += entries(i, counts[:, i] - done, before[p])
            p = next_mistake(order, p + 1, signs, scores, state.active, margin)
    time = state.time + float(weight.sum())
    visits = np.where(state.active, time, state.visits)
    log = np.concatenate([state.log, np.array(log, dtype=float).reshape(-1, 4)])
    return State(state.epoch + 1, scores, counts, late, time, visits, mistakes, mistakes > 0, log)


def entries(i, made, time):
    """Return what the log holds of a visit of row i: one entry for each mistake, and what is left below one."""
    return [
        (k, i, min(made[k] - part, 1.0), time + part) for k in np.flatnonzero(made > 0) for part in range(int(np.ceil(made[k])))
    ]


class Dual(NamedTuple):
    """What a model keeps of its mistakes: the rows that were ever mistaken, each once, and their coefficients."""

    support: np.ndarray  # numbers of the rows among those with weight
    vectors: np.ndarray
    coef: np.ndarray  # (K, s)


def dual_of(X, signs, counts, late, visits):
    """Make a model of counts; with `late`, the average over all visits."""
    mistaken = np.flatnonzero(counts.any(axis=0))
    first, group = distinct(X[mistaken])
    signed = (counts if late is None else counts - late / np.maximum(visits, 1.0)[:, None]) * signs
    coef = np.stack([np.bincount(group, weights=row[mistaken], minlength=len(first)) for row in signed])
    return Dual(mistaken[first], X[mistaken[first]], coef)


@kernel
def add_votes(K, rows, shares, lives, out):
    """Add to out[i] the sign of the sum so far after each mistake, times its life."""
    for i in range(K.shape[0]):
        f = 0.0
        for t in range(rows.shape[0]):
            f += shares[t] * K[i, rows[t]]
            out[i] += lives[t] if f > 0 else (-lives[t] if f < 0 else 0.0)


class Ballot(NamedTuple):
    """The mistakes of all problems in their order, for votes of all weights that there ever were."""

    problems: np.ndarray  # (m,)
    rows: np.ndarray  # (m,), numbers among the support vectors
    shares: np.ndarray  # (m,), how much of a row was added, with its sign
    lives: np.ndarray  # (m,), weight of the rows that were visited until the next mistake


def ballot_of(log, X, signs, visits, support):
    """Make a ballot of a log; the sum of the lives of a problem is its visits."""
    problems, numbers = log[:, 0].astype(int), log[:, 1].astype(int)
    lives = np.zeros(len(log))
    for k in range(len(signs)):
        own = np.flatnonzero(problems == k)
        lives[own] = np.diff(np.append(log[own, 3], visits[k]))
    places = {text: s for s, text in enumerate(texts_of(X[support]))}
    rows = np.array([places[text] for text in texts_of(X[numbers])], dtype=int)
    return Ballot(problems, rows, signs[problems, numbers] * log[:, 2], lives)


def votes_block(X, weight, kernel, vectors, ballot, n_problems):
    """Votes of a block, (n, K), as shares of all visits: the sign of each weights' score, as often as they were in use."""
    B = kernel.prepare(in_double(vectors))
    A = kernel.prepare(in_double(X), B)
    out = np.zeros((n_problems, len(A)))
    for start in range(0, len(A), VOTED):
        K = kernel.values(A[start : start + VOTED], B).astype(float, copy=False)
        for k in range(n_problems):
            own = ballot.problems == k
            add_votes(K, ballot.rows[own], ballot.shares[own], ballot.lives[own], out[k, start : start + VOTED])
    totals = np.bincount(ballot.problems, weights=ballot.lives, minlength=n_problems)
    return (out / totals[:, None]).T
