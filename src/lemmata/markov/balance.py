"""Detailed balance: whether a chain looks the same when it is run backwards.

With w_i P_ij = w_j P_ji for all pairs, wP = w follows by summing over i; it is sufficient, not necessary. A chain has such a
w exactly if the product of chances along every cycle is the same in both directions [1]. No law is needed to find out: fix
log w at a root of each class, carry it along moves by log w_j = log w_i + log P_ij − log P_ji, and see whether all moves
agree. A reversible P is similar to the symmetric √w_i P_ij / √w_j, so that its spectrum is real.

[1] Kolmogorov, Mathematische Annalen 112 (1936); Kelly, Reversibility and Stochastic Networks (1979).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.kernel import kernel

AGREE = 1e-9  # relative; rounding along a path of a million moves is less


class Balance(NamedTuple):
    """Whether flows i → j and j → i agree for all pairs, and by how much they do not.

    Examples
    --------
    >>> detailed_balance(csr_array([[0.6, 0.4], [0.3, 0.7]]), np.array([3 / 7, 4 / 7])).holds
    True
    """

    holds: bool
    violation: float  # Σ |w_i P_ij − w_j P_ji| / 2, the share of moves that is not balanced
    pair: tuple  # the two states between which the difference is largest


@kernel
def cycle_mismatch(indptr, indices, ratio, label, recurrent):
    """Return the largest disagreement of log w over the moves of recurrent classes."""
    n, worst = len(label), 0.0
    potential, known, queue = np.zeros(n), np.zeros(n, np.bool_), np.empty(n, np.int64)
    for root in range(n):
        if known[root] or not recurrent[label[root]]:
            continue
        known[root], queue[0], head, tail = True, root, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if known[j]:
                    worst = max(worst, abs(potential[i] + ratio[k] - potential[j]))
                else:
                    known[j], potential[j], queue[tail] = True, potential[i] + ratio[k], j
                    tail += 1
    return worst


def is_reversible(P, classes):
    """Tell by Kolmogorov's criterion whether every recurrent class has detailed balance.

    Examples
    --------
    >>> from lemmata.markov.classes import classes_of
    >>> turning = csr_array([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
    >>> is_reversible(turning, classes_of(turning))
    False
    """
    closed = classes.recurrent[classes.label]
    rows = np.repeat(closed, np.diff(P.indptr))
    ends = np.concatenate([[0], np.cumsum(rows)])[P.indptr]
    forth = csr_array((P.data[rows], P.indices[rows], ends), shape=P.shape)
    back = csr_array(forth.T.tocsr())
    forth.sort_indices()
    back.sort_indices()
    if not (np.array_equal(forth.indptr, back.indptr) and np.array_equal(forth.indices, back.indices)):
        return False  # a move without a way back
    ratio = np.log(forth.data) - np.log(back.data)
    return bool(cycle_mismatch(forth.indptr, forth.indices, ratio, classes.label, classes.recurrent) <= AGREE)


def detailed_balance(P, w):
    """Compare the flows of a law w in both directions, pair by pair."""
    flow = csr_array(P.multiply(w[:, None]))
    difference = (flow - csr_array(flow.T)).tocoo()
    violation = float(np.abs(difference.data).sum()) / 2
    worst = int(np.abs(difference.data).argmax()) if difference.nnz else 0
    i, j = (int(difference.row[worst]), int(difference.col[worst])) if difference.nnz else (0, 0)
    return Balance(bool(violation <= AGREE * max(float(np.abs(w).sum()), AGREE)), violation, (i, j))
