"""Which states lead to which: communicating classes, those that are never left, and their periods.

Two states communicate if each can be reached from the other: the classes are the strongly connected components of the graph
of possible moves. A class that no move leaves is recurrent; from everywhere else the chain sooner or later goes away for
good. The period of a class is the greatest common divisor of the lengths of its cycles. With d(i) the number of moves from a
root to i by any path, it is the common divisor of d(i) + 1 − d(j) over the moves i → j inside the class, since these generate
the lengths of all cycles [1].

[1] Denardo, Mathematics of Operations Research 2 (1977).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import connected_components

from lemmata.core.kernel import kernel


class Classes(NamedTuple):
    """The communicating classes of a chain, numbered in the order of their first states.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> found = classes_of(csr_array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]))
    >>> found.label, found.recurrent, found.period
    (array([0, 1, 1], dtype=int32), array([False,  True]), array([1, 2]))
    """

    label: np.ndarray  # (states,), the class of each state
    recurrent: np.ndarray  # (classes,), whether it is never left
    period: np.ndarray  # (classes,), 0 for a single state to which there is no way back

    def members(self, number):
        """List the states of a class."""
        return np.flatnonzero(self.label == number)

    @property
    def groups(self):
        """The states of every class, as a list of arrays."""
        order = np.argsort(self.label, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.label))[:-1])


@kernel
def open_classes(indptr, indices, label, n_classes):
    """Mark the classes that a move leaves."""
    left = np.zeros(n_classes, np.bool_)
    for i in range(len(label)):
        for k in range(indptr[i], indptr[i + 1]):
            if label[indices[k]] != label[i]:
                left[label[i]] = True
    return left


@kernel
def periods(indptr, indices, label, n_classes):
    """Find the period of every class by one search in breadth from its first state."""
    n = len(label)
    depth, queue, period = np.full(n, -1, np.int64), np.empty(n, np.int64), np.zeros(n_classes, np.int64)
    for root in range(n):
        if depth[root] >= 0:
            continue
        depth[root], queue[0], head, tail = 0, root, 0, 1
        while head < tail:
            i = queue[head]
            head += 1
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                if label[j] != label[i]:
                    continue
                if depth[j] < 0:
                    depth[j], queue[tail] = depth[i] + 1, j
                    tail += 1
                else:
                    a, b = period[label[i]], abs(depth[i] + 1 - depth[j])
                    while b:
                        a, b = b, a % b
                    period[label[i]] = a
    return period


@kernel
def in_order(label, n_classes):
    """Number classes anew, by their first states."""
    number, found = np.full(n_classes, -1, np.int32), 0
    renamed = np.empty_like(label)
    for i in range(len(label)):
        if number[label[i]] < 0:
            number[label[i]] = found
            found += 1
        renamed[i] = number[label[i]]
    return renamed


def components_of(P):
    """Find the classes of a chain in CSR form, without their periods; entries that are stored must be positive."""
    n_classes, label = connected_components(P, directed=True, connection="strong")
    label = in_order(label, n_classes)
    return Classes(label, ~open_classes(P.indptr, P.indices, label, n_classes), np.empty(0, np.int64))


def classes_of(P):
    """Find the classes of a chain in CSR form, and their periods."""
    found = components_of(P)
    return found._replace(period=periods(P.indptr, P.indices, found.label, len(found.recurrent)))


@kernel
def reaching(indptr, indices, target):
    """Mark the states from which a marked one can be reached; the moves are given backwards, by where they lead."""
    n = len(target)
    reached, queue, head, tail = target.copy(), np.empty(n, np.int64), 0, 0
    for i in range(n):
        if target[i]:
            queue[tail] = i
            tail += 1
    while head < tail:
        j = queue[head]
        head += 1
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            if not reached[i]:
                reached[i], queue[tail] = True, i
                tail += 1
    return reached
