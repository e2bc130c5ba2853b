"""What a model is given by: chances and rewards, read and validated once, never made dense if they are sparse.

Row s·A + a of a table says where action a leads from state s. The table is an array of S·A × S numbers, or the same as a CSR
array; kernels that walk, and all sparse ones, use the `Transitions` of either.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from lemmata.core.kernel import kernel
from lemmata.rl.ranges import spread

SUMS = 1e-6  # by which given rows may miss one: numbers in print have about six digits
EXACT = 1e-12  # by which they may miss it and stay as they are: rounding of a division, not worth a copy of a large table


class Transitions(NamedTuple):
    """All moves of a model, in CSR form."""

    indptr: np.ndarray  # (S·A + 1,), int64
    successors: np.ndarray  # int32
    probabilities: np.ndarray
    rewards: np.ndarray | None  # of each move, or None where they depend on state and action alone
    ends: np.ndarray  # whether the episode is over after the move


@kernel
def dense_sums(table, low, high, sums, least):
    """Sum rows of a table, and find their smallest entries."""
    for i in range(low, high):
        total, smallest = 0.0, 0.0
        for j in range(table.shape[1]):
            total += table[i, j]
            smallest = min(smallest, table[i, j])
        sums[i], least[i] = total, smallest


@kernel
def sparse_sums(indptr, data, low, high, sums, least):
    """Sum rows of a sparse table, and find their smallest entries."""
    for i in range(low, high):
        total, smallest = 0.0, 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k]
            smallest = min(smallest, data[k])
        sums[i], least[i] = total, smallest


@kernel
def matched(indptr, indices, other_indptr, other_indices, other_data, out):
    """Look the entries of one sparse table up at the places of another; both have sorted rows."""
    for i in range(len(indptr) - 1):
        j, end = other_indptr[i], other_indptr[i + 1]
        for k in range(indptr[i], indptr[i + 1]):
            while j < end and other_indices[j] < indices[k]:
                j += 1
            out[k] = other_data[j] if j < end and other_indices[j] == indices[k] else 0.0


@kernel
def interleave(indptr, indices, data, action, n_actions, place, successors, probabilities):
    """Copy the rows of one action's matrix to where they belong among those of all actions."""
    for s in range(len(indptr) - 1):
        t = place[s * n_actions + action]
        for k in range(indptr[s], indptr[s + 1]):
            successors[t], probabilities[t] = indices[k], data[k]
            t += 1


def canonical(matrix):
    """Give a sparse matrix as CSR with sorted rows; the given one stays as it is."""
    found = csr_array(matrix, dtype=np.float64)
    if not found.has_canonical_format:
        found = found.copy()  # which may share its numbers with the given one
        found.sum_duplicates()
    return found


def stacked(matrices, what):
    """Make one table of a list of A sparse S × S matrices."""
    matrices = [canonical(matrix) for matrix in matrices]
    shapes = {matrix.shape for matrix in matrices}
    n = matrices[0].shape[0]
    if shapes != {(n, n)}:
        raise ValueError(f"{what} as a list has one S × S sparse matrix for each action; got the shapes {sorted(shapes)}.")
    A = len(matrices)
    counts = np.stack([np.diff(matrix.indptr) for matrix in matrices], axis=1).ravel()
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    successors, probabilities = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    for action, matrix in enumerate(matrices):
        interleave(matrix.indptr, matrix.indices, matrix.data, action, A, indptr, successors, probabilities)
    return csr_array((probabilities, successors, indptr), shape=(n * A, n))


def numbers(what, given):
    """Read real numbers in double precision; an array of such is not copied."""
    try:
        given = np.asarray(given)
        if given.dtype.kind in "biufO":
            return given.astype(np.float64, copy=False)
    except (TypeError, ValueError):  # of rows that are not equally long, and of objects
        pass
    raise ValueError(f"{what} must hold numbers, in rows that are equally long.")


def sparse_list(given):
    """Tell whether something is a list of sparse matrices."""
    return isinstance(given, list | tuple) and len(given) > 0 and all(issparse(matrix) for matrix in given)


def read_table(T):
    """Read T; give a table of S·A rows, dense or CSR.

    Examples
    --------
    >>> read_table([[[0.0, 1.0]], [[0.5, 0.5]]]).shape
    (2, 2)
    """
    if sparse_list(T):
        return stacked(T, "T")
    if issparse(T):
        rows, n = T.shape
        if n == 0 or rows == 0 or rows % n:
            raise ValueError(
                f"A sparse T has S·A rows, s·A + a for state s and action a, and S columns; got the shape {tuple(T.shape)}."
                " A list of A sparse S × S matrices will do as well."
            )
        return canonical(T)
    T = np.ascontiguousarray(numbers("T", T))
    if T.ndim != 3 or T.shape[0] != T.shape[2] or 0 in T.shape:
        raise ValueError(f"T has the shape (states, actions, states); got {tuple(T.shape)}.")
    return T.reshape(-1, T.shape[2])


def with_unit_rows(table, free, name):
    """Validate the rows of a table, and divide by their sums where these miss one by more than rounding.

    Parameters
    ----------
    free : Which rows may hold anything, because nothing follows there.
    name : Function of a row's number that names its state and action.
    """
    n, sparse = table.shape[0], issparse(table)
    sums, least = np.empty(n), np.empty(n)
    if sparse:
        spread(lambda low, high: sparse_sums(table.indptr, table.data, low, high, sums, least), n, table.nnz)
    else:
        spread(lambda low, high: dense_sums(table, low, high, sums, least), n, table.size)
    bad = ~free & ~((least >= 0) & np.isfinite(sums))
    if bad.any():
        raise ValueError(f"T must hold probabilities, numbers of at least 0; {name(int(bad.argmax()))} has others.")
    off = np.where(free, 0.0, np.abs(sums - 1))
    if off.max() > SUMS:
        worst = int(off.argmax())
        raise ValueError(
            f"Each row of T must sum to 1, and that of {name(worst)} sums to {sums[worst]:.6g}; divide by the sums."
        )
    if off.max() <= EXACT:
        return table
    scale = np.where(free, 1.0, sums)
    if not sparse:
        return table / scale[:, None]
    return csr_array((table.data / np.repeat(scale, np.diff(table.indptr)), table.indices, table.indptr), shape=table.shape)


def read_rewards(R, table, n_states, n_actions):
    """Read R; give the expected rewards (S, A), and what is paid for each move as a table, or None."""
    S, A = n_states, n_actions
    moves = stacked(R, "R") if sparse_list(R) else canonical(R) if issparse(R) and R.shape == (S * A, S) else None
    if moves is None:
        R = numbers("R", R.toarray() if issparse(R) else R)
        if R.shape not in ((S,), (S, A), (S, A, S)):
            raise ValueError(
                f"R has the shape ({S},), ({S}, {A}) or that of T, ({S}, {A}, {S}) or sparse like it; got {tuple(R.shape)}."
            )
    elif moves.shape != (S * A, S):
        raise ValueError(f"A sparse R has as many rows and columns as T, ({S * A}, {S}); got {tuple(moves.shape)}.")
    values = R if moves is None else moves.data
    if not np.isfinite(values).all():
        where = ""
        if moves is None:
            where = f", which that of state {int(np.argwhere(~np.isfinite(R))[0][0])} is not"
        raise ValueError(f"Rewards must be finite numbers{where}; make an action that is not allowed a copy of one that is.")
    if moves is None and R.ndim < 3:
        return np.ascontiguousarray(np.broadcast_to(R if R.ndim == 2 else R[:, None], (S, A))), None
    moves = R.reshape(S * A, S) if moves is None else moves
    return expected(table, moves).reshape(S, A), moves


def expected(table, moves):
    """Give the mean of what is paid for the moves of each row."""
    if not issparse(table) and not issparse(moves):
        return np.einsum("ij,ij->i", table, moves)
    if issparse(table):
        rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
        return np.bincount(rows, weights=table.data * aligned(table, moves), minlength=table.shape[0])
    rows = np.repeat(np.arange(table.shape[0]), np.diff(moves.indptr))
    return np.bincount(rows, weights=moves.data * table[rows, moves.indices], minlength=table.shape[0])


def aligned(table, moves):
    """Give what is paid at each stored entry of a sparse table."""
    if not issparse(moves):
        return moves[np.repeat(np.arange(table.shape[0]), np.diff(table.indptr)), table.indices]
    out = np.empty(table.nnz)
    matched(table.indptr, table.indices, moves.indptr, moves.indices, moves.data, out)
    return out


def closed(table, paid, rewards, terminal, ends=None):
    """Make the transitions of a table: terminal states lead to themselves, and there the episode is over.

    It is over already on arrival in a terminal state that pays nothing; one that pays is entered, pays once and ends.
    """
    n_actions = rewards.shape[1]
    silent = terminal & ~rewards.any(axis=1)
    ends = np.zeros(len(table.data), dtype=bool) if ends is None else ends
    if not terminal.any():
        return Transitions(table.indptr.astype(np.int64), table.indices.astype(np.int32, copy=False), table.data, paid, ends)
    last = np.repeat(terminal, n_actions)
    lengths = np.diff(table.indptr)
    kept = np.repeat(~last, lengths)
    indptr = np.concatenate([[0], np.cumsum(np.where(last, 1, lengths), dtype=np.int64)])
    loops = indptr[:-1][last]
    others = np.ones(indptr[-1], dtype=bool)
    others[loops] = False
    successors, probabilities = np.empty(indptr[-1], np.int32), np.empty(indptr[-1])
    successors[others], probabilities[others] = table.indices[kept], table.data[kept]
    successors[loops], probabilities[loops] = np.flatnonzero(last) // n_actions, 1.0
    if paid is not None:
        each = np.zeros(indptr[-1])
        each[others] = paid[kept]
        paid = each
    over = silent[successors]
    over[others] |= ends[kept]
    over[loops] = True
    return Transitions(indptr, successors, probabilities, paid, over)


def continuing(transitions):
    """Leave out the moves after which the episode is over: what is left has a next state whose value counts."""
    if not transitions.ends.any():
        return transitions.indptr, transitions.successors, transitions.probabilities
    kept = ~transitions.ends
    indptr = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])[transitions.indptr]
    return indptr, transitions.successors[kept], transitions.probabilities[kept]
