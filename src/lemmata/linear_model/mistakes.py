"""Learning from mistakes: an epoch of the perceptron, for several binary problems at once.

A row with yᵢ(w·xᵢ + b) ≤ δ is a mistake and is added: w ← w + yᵢxᵢ, b ← b + yᵢu². The step size η is not seen here: started
at zero, it scales w and b and nothing else, once δ is divided by it; so sums of whole numbers stay exact. The constant u that
carries the intercept is the unit of the table: the same rows in other units of measurement take the same path. The averaged
weights are those after each visit: with T visits, a mistake that comes after t of them counts for T − t.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.linear_model.stochastic import add, decision, dot, draw_order, fold, on_threads, shuffler, signs_of, stored, touch

UNIT = 64.0  # the unit of a table is a power of this, so that tables of usual scale keep 1


class State(NamedTuple):
    """A perceptron for each of K binary problems, with η = 1, after some epochs."""

    epoch: int
    weights: np.ndarray  # (K, d): Σ c y x
    signs: np.ndarray  # (K,): Σ c y, which times u² is the intercept
    late: np.ndarray  # (K, d + 1): the same two sums, each mistake times the visits before it; (0, 0) without averaging
    time: float  # weight of the rows visited
    visits: np.ndarray  # (K,), that time at the end of the last epoch of each problem
    mistakes: np.ndarray  # (K,), of the last epoch
    active: np.ndarray  # (K,), whether there were any


class Pocket(NamedTuple):
    """The weights with the fewest training errors so far, of each problem."""

    errors: np.ndarray  # (K,)
    weights: np.ndarray
    signs: np.ndarray
    counts: tuple


class Rules(NamedTuple):
    """What does not change during a fit."""

    positive: np.ndarray  # (K,), number of the class that each problem calls positive
    threshold: float  # δ/η
    square: float  # u², or 0 without an intercept


@kernel
def visit_rows(values, indices, indptr, y, weight, starts, within, problems, rules, state, counts):
    """Visit the rows of a block in the given order and learn from mistakes; the arrays of the state change in place.

    Each mistake adds to counts[i, k, 0], and the visits before it to counts[i, k, 1] if there is such a place.
    """
    read, time, average = 0.0, state.time, counts.shape[2] > 1
    for c in range(starts.shape[0]):
        read += touch(values, indices, starts[c], starts[c] + within.shape[0])
        for j in range(within.shape[0]):
            i = starts[c] + within[j]
            if i >= y.shape[0]:
                continue
            due = 1.0 if weight is None else weight[i]
            for q in range(problems.shape[0]):
                k, rest = problems[q], due
                w, sign = state.weights[k], 1.0 if y[i] == rules.positive[k] else -1.0
                while rest > 0:
                    if sign * (dot(values, indices, indptr, i, w) + rules.square * state.signs[k]) > rules.threshold:
                        break  # further visits of this row would change nothing
                    part = min(rest, 1.0)
                    add(values, indices, indptr, i, sign * part, w)
                    state.signs[k] += sign * part
                    state.mistakes[k] += part
                    counts[i, k, 0] += part
                    if average:
                        before = part * (time + due - rest)
                        add(values, indices, indptr, i, sign * before, state.late[k])
                        state.late[k, -1] += sign * before
                        counts[i, k, 1] += before
                    rest -= part
            time += due
    return read


@kernel
def sizes(values, weight, width):
    """Sum the absolute values of a block, and count those that are not zero; every `width` values have one weight."""
    total, n = 0.0, 0.0
    for p in range(values.shape[0]):
        size, w = abs(np.float64(values[p])), 1.0 if weight is None else weight[p // width]
        total += w * size
        n += w if size > 0 else 0.0
    return total, n


def sizes_block(X, y, weight):
    """Sum the absolute values of a block and count those that are not zero, weighted by rows."""
    if not is_sparse(X):
        return sizes(X.ravel(), None if weight is None else np.asarray(weight, dtype=float), X.shape[1])
    each = None if weight is None else np.repeat(np.asarray(weight, dtype=float), np.diff(X.indptr))
    return sizes(X.data, each, 1)


def unit_of(blocks):
    """Return the power of 64 nearest to the mean size of the entries that are not zero."""
    total, n = blocks.reduce(sizes_block)
    return float(UNIT ** np.round(np.log(total / n) / np.log(UNIT))) if total > 0 else 1.0


def start(n_problems, n_columns, average):
    """Return the state before the first visit."""
    late = np.zeros((n_problems, n_columns + 1)) if average else np.zeros((0, 0))
    signs, visits, mistakes = np.zeros((3, n_problems))
    active = np.ones(n_problems, dtype=bool)
    return State(0, np.zeros((n_problems, n_columns)), signs, late, 0.0, visits, mistakes, active)


def visit_block(X, y, weight, going, counts, rules):
    """Visit the rows of a block, the binary problems on threads; return ((state, generator), counts of mistakes)."""
    (state, rng), n, rows = going, X.shape[0], stored(X)
    counts = np.zeros((n, len(rules.positive), 2 if len(state.late) else 1)) if counts is None else counts.copy()
    order = draw_order(n, rows[0].size // n, rng)
    y, weight = np.asarray(y, dtype=np.int64), None if weight is None else np.asarray(weight, dtype=float)
    problems = np.flatnonzero(state.active)

    def work(part):
        visit_rows(*rows, y, weight, *order, part, rules, state, counts)

    on_threads(work, problems, len(problems) * rows[0].size)
    return (state._replace(time=state.time + (float(n) if weight is None else float(weight.sum()))), rng), counts


def epoch(blocks, rules, seed, state, counts):
    """Visit all rows once; return (state, counts). The active problems are those that made mistakes."""
    state = state._replace(mistakes=np.zeros(len(state.mistakes)))
    (after, _), counts = fold(blocks, partial(visit_block, rules=rules), (state, shuffler(seed, state.epoch)), counts)
    visits = np.where(state.active, after.time, state.visits)
    return after._replace(epoch=state.epoch + 1, visits=visits, active=after.mistakes > 0), counts


def errors_block(X, y, weight, positive, coef, intercept, threshold):
    """Weight of the rows whose margin does not exceed a threshold, for each problem."""
    wrong = signs_of(y, positive) * decision(X, coef, intercept) <= threshold
    return wrong.sum(axis=0).astype(float) if weight is None else np.asarray(weight, dtype=float) @ wrong


def pocketed(blocks, rules, state, counts, pocket):
    """Put the weights of the problems that now have fewer training errors into the pocket."""
    errors = blocks.reduce(errors_block, rules.positive, state.weights, rules.square * state.signs, 0.0)
    if pocket is None:
        return Pocket(errors, state.weights, state.signs, counts)
    better = errors < pocket.errors
    return Pocket(
        np.where(better, errors, pocket.errors),
        np.where(better[:, None], state.weights, pocket.weights),
        np.where(better, state.signs, pocket.signs),
        tuple(np.where(better[:, None], new, old) for new, old in zip(counts, pocket.counts, strict=True)),
    )


def find_cycle(X, y, max_iter=10_000):
    """Prove that the perceptron never ends on integer data, by a state that returns.

    Rows are visited in their order with u = 1, so that an epoch is a function of the state at its start; sums of integers are
    exact, so that equal means equal. A state that returns after an epoch with mistakes therefore returns forever.

    Parameters
    ----------
    X : Rows of integers, (n, d).
    y : Labels of two classes.
    max_iter : Epochs to try.

    Returns
    -------
    first, period : After how many epochs the perceptron is in a state to which it returns every `period` epochs; None if it
        stops, or has not returned after `max_iter` epochs.

    Examples
    --------
    >>> find_cycle([[0, 0], [1, 1], [0, 1], [1, 0]], [1, 1, 0, 0])
    (1, 1)
    >>> find_cycle([[0, 0], [1, 1]], [0, 1]) is None
    True
    """
    X, numbers = np.asarray(X, dtype=float), np.unique(np.asarray(y), return_inverse=True)[1]
    if not np.array_equal(X, np.rint(X)):
        raise ValueError("Only integers return exactly: X must hold whole numbers.")
    blocks, rules = Blocks.of(X, numbers, None), Rules(np.ones(1, dtype=int), 0.0, 1.0)
    state, counts, seen = start(1, X.shape[1], average=False), None, {}
    for _ in range(max_iter):
        key = (*state.weights[0].tolist(), float(state.signs[0]))
        if key in seen:
            return seen[key], state.epoch - seen[key]
        seen[key] = state.epoch
        state, counts = epoch(blocks, rules, None, state, counts)
        if not state.active.any():
            return None
    return None
