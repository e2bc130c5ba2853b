"""Learning row by row: the order of the visits, the two operations on a row, and one binary problem for each class.

The rows are visited block after block, in the order of the table; within a block, chunks of consecutive rows in random order,
and the rows of a chunk in random order. A chunk is read through once before it is visited, so that memory is read in long
stretches and the visits find their rows in the cache: on tables larger than the cache this takes a fifth of the time of a
permutation of all rows. A block that fits the cache is a single chunk. The order depends on the seed, the number of the epoch
and the sizes of the blocks, and on nothing else; so it is the same wherever the rows live, and a fit can be replayed.
A weight of k is k visits in a row; what is left below one is a visit that moves that much less.
"""

from contextlib import closing
from copy import deepcopy

import numpy as np

from lemmata.core import config
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.threads import run
from lemmata.linear_model.linear_classifier import LinearClassifier
from lemmata.linear_model.logistic_loss import scores_of

CACHE = 1 << 18  # bytes that fit the second-level cache of any processor of today
BLOCK = 1 << 19  # numbers in a block of sparse rows: 4 MiB, as dense blocks have
CHUNK = 1 << 14  # bytes of a chunk: half a first-level cache, and four pages, which is enough for the memory to stream
LINE = 8  # numbers in a line of the cache
UNEVEN = 0.25  # distance between the class shares of a block and of the table from which the rows are taken for sorted
WORK = 1 << 20  # multiplications from which a thread is worth its start


@kernel
def dot(values, indices, indptr, i, w):
    """Multiply row i with a vector; the row is dense if there are no indices, else in CSR form."""
    total = 0.0
    if indices is None:
        for f in range(values.shape[1]):
            total += np.float64(values[i, f]) * w[f]
    else:
        for p in range(indptr[i], indptr[i + 1]):
            total += np.float64(values[0, p]) * w[indices[p]]
    return total


@kernel
def add(values, indices, indptr, i, share, w):
    """Add a multiple of row i to a vector."""
    if indices is None:
        for f in range(values.shape[1]):
            w[f] += share * np.float64(values[i, f])
    else:
        for p in range(indptr[i], indptr[i + 1]):
            w[indices[p]] += share * np.float64(values[0, p])


@kernel
def touch(values, indices, first, last):
    """Read dense rows through, one number a line; the sum keeps the compiler from leaving it out."""
    total = 0.0
    if indices is None:
        for i in range(first, min(last, values.shape[0])):
            for f in range(0, values.shape[1], LINE):
                total += np.float64(values[i, f])
            total += np.float64(values[i, values.shape[1] - 1])
    return total


def stored(X):
    """Return what the kernels take for rows: the table, or of a CSR table the values in a single row, indices and indptr."""
    return (X.data[None, :], X.indices, X.indptr) if is_sparse(X) else (X, None, None)


def draw_order(n_rows, width, rng):
    """Return the first rows of the chunks of a block and the rows within a chunk, in the order of the visits.

    Parameters
    ----------
    n_rows : Of the block.
    width : Numbers that a row holds, on average if they are sparse.
    rng : Generator of the epoch, from which the blocks draw one after another; None for the order of the table.

    Examples
    --------
    >>> draw_order(5, 2, None)
    (array([0]), array([0, 1, 2, 3, 4]))
    >>> starts, within = draw_order(5, 2, shuffler(7, epoch=0))
    >>> sorted((starts[:, None] + within).ravel().tolist())
    [0, 1, 2, 3, 4]
    """
    size = 8 * max(width, 1)  # bytes, also for float32: both are visited in the same order
    rows = n_rows if n_rows * size <= CACHE else max(CHUNK // size, 1)
    starts, within = np.arange(0, n_rows, rows), np.arange(rows)
    return (starts, within) if rng is None else (rng.permutation(starts), rng.permutation(within))


def shuffler(seed, epoch):
    """Return the generator of the order in an epoch; without a seed there is none."""
    return None if seed is None else np.random.default_rng([seed, epoch])


def mixed(blocks, numbers=None):
    """Cut rows in memory for visits: sparse ones by what they hold, and not at all if some block has classes of its own.

    Rows that are stored class by class would otherwise be learned class by class; in a single block the chunks come from all
    of it. A stream is what it is. The classes are the target, unless their numbers are given.
    """
    if blocks.home != "memory" or blocks.n_blocks == 1:
        return blocks
    if is_sparse(blocks.X):
        blocks = blocks.with_block_rows(max(blocks.block_rows, BLOCK * blocks.n_rows // max(blocks.X.nnz, 1)))
    numbers, rows = np.asarray(blocks.aligned[0]) if numbers is None else numbers, blocks.block_rows
    shares = np.bincount(numbers) / len(numbers)
    for start in range(0, len(numbers), rows):
        part = numbers[start : start + rows]
        if len(part) >= 256 and np.abs(np.bincount(part, minlength=len(shares)) / len(part) - shares).sum() > 2 * UNEVEN:
            # with 256 rows drawn at random the distance stays below 0.1 or so
            return blocks.with_block_rows(blocks.n_rows)
    return blocks


def fold(blocks, visit, state, memory=None):
    """Carry a state through the blocks, one after another, while each block keeps something of its own.

    Parameters
    ----------
    visit : Function of (X, y, weight, state, its own) that returns (state, its own); it may change the state in place, but
        not what the block keeps.
    memory : What each block keeps, a tuple in the order of the blocks; None at first. On Dask the state travels to where
        the blocks are.

    Returns
    -------
    state, memory : After the last block; what was passed in is unchanged.
    """
    memory = (None,) * blocks.n_blocks if memory is None else memory
    after = []
    if blocks.home == "dask":
        import dask

        step = dask.delayed(_visit_block, nout=2)
        for block, own in zip(blocks.blocks, memory, strict=True):
            state, kept = step(visit, block, state, own)
            after.append(kept)
        state, *after = dask.compute(state, *after)
        return state, tuple(after)
    state = deepcopy(state)
    with closing(blocks._tasks()) as tasks:
        for number, load in tasks:
            state, kept = visit(*load(), state, memory[number])
            after.append(kept)
    return state, tuple(after)


def _visit_block(visit, block, state, own):
    return visit(*block, deepcopy(state), own)  # Dask may run a task twice: its input must stay as it was


def on_threads(work, problems, n_multiplications):
    """Call work(part of the problems) so that all are worked on, on threads if that many multiplications pay for them."""
    n_threads = min(len(problems), 1 + n_multiplications // WORK)
    if n_threads > 1:
        n_threads = min(n_threads, config.n_threads())
    if n_threads > 1:
        run(work, np.array_split(problems, n_threads), n_threads)
    else:
        work(problems)


def signs_of(y, positive):
    """Return ±1 for each row and problem."""
    return np.where(np.asarray(y)[:, None] == positive, 1.0, -1.0)


def decision(X, coef, intercept):
    """Return x·w + b of every row and class, in float64, for coefficients with a row for each class."""
    return scores_of(X, np.ascontiguousarray(coef.T, dtype=float), intercept.astype(float))


class OneVersusRest(LinearClassifier):
    """Base of linear classifiers that learn each class against the rest, and two classes by a single plane."""

    def _positive(self):
        """Return the number of the class that each binary problem calls positive."""
        return np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.ones(1, dtype=int)
