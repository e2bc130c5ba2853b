"""A chain in the form in which it is worked with, and the validation of what is given."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, issparse

from lemmata.core.certificate import SAME_LIMIT, Check, length, same

SUMS = 1e-6  # by which given rows may miss one: numbers in print have about six digits


class Model(NamedTuple):
    """A chain as the methods use it: contexts are rows, and `square` is the chain on them."""

    states: np.ndarray
    rows: csr_array  # (contexts, symbols), what comes next
    initial: np.ndarray  # (contexts,)
    order: int

    def named(self, numbers):
        """Name states; contexts of several symbols keep their numbers."""
        return self.states[list(numbers)].tolist() if self.order == 1 else list(numbers)

    @property
    def square(self):
        """The chain of order 1 on the contexts; every stored entry is positive."""
        if self.order == 1:
            return self.rows
        n, k = self.rows.shape
        contexts = np.repeat(np.arange(n), np.diff(self.rows.indptr))
        return csr_array((self.rows.data, (contexts * k) % n + self.rows.indices, self.rows.indptr), shape=(n, n))


class Ergodicity(NamedTuple):
    """Whether a chain forgets where it began, and if not, why.

    Examples
    --------
    >>> from lemmata.markov import MarkovChain
    >>> MarkovChain([[0.0, 1.0], [1.0, 0.0]]).ergodicity().reason
    'the chain returns to its states only at multiples of 2 steps: it has one stationary law, and does not converge to it'
    """

    holds: bool
    reason: str


def given(transition, order):
    """Validate given chances; return them as a table or CSR array with rows that sum to one."""
    if issparse(transition):
        P = csr_array(transition, dtype=float)
        P.sum_duplicates()
        shape, values, sums = P.shape, P.data, P.sum(axis=1)
    else:
        P = np.array(transition, dtype=float)
        shape, values, sums = P.shape, P, P.sum(axis=-1) if P.ndim else P
    if len(shape) != order + 1 or len(set(shape)) != 1 or shape[0] == 0:
        raise ValueError(
            f"The transition of a chain of order {order} has {order + 1} axes of one length; got the shape {tuple(shape)}."
        )
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError("Chances of transitions must be numbers of at least 0.")
    if np.abs(sums - 1).max() > SUMS:
        worst = np.unravel_index(np.abs(sums - 1).argmax(), sums.shape)
        where = ", ".join(str(int(i)) for i in worst)
        raise ValueError(
            f"Each row of transition must sum to 1, and row {where} sums to {sums[worst]:.6g}; divide by the sums."
        )
    if not issparse(P):
        return P / sums[..., None]
    return csr_array((P.data / np.repeat(sums, np.diff(P.indptr)), P.indices, P.indptr), shape=P.shape)


def same_table(stored, recomputed, name, claim):
    """Check an array that may be sparse against its recomputed value."""
    if not issparse(recomputed):
        return same(stored, recomputed, name, claim)
    if not issparse(stored) or stored.shape != recomputed.shape:
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    return Check(name, length((stored - recomputed).data) / length(recomputed.data), SAME_LIMIT, "proof", claim)


def as_law(w, shape, name):
    """Validate a law of the given shape."""
    w = np.asarray(w, dtype=float)
    if w.shape != shape or not (w >= 0).all() or abs(w.sum() - 1) > SUMS:
        raise ValueError(f"{name} must be a law of shape {shape}: numbers of at least 0 that sum to 1.")
    return w / w.sum()
