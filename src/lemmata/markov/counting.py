"""Sequences of symbols as numbers, and how often each symbol follows each context.

The likelihood of a chain of order m is a product over contexts (the last m symbols) of a multinomial each; so the relative
frequencies of what follows a context maximize it, one row at a time. With α imaginary observations of each symbol they become
the mean of the posterior under a Dirichlet prior. A symbol that was not seen (None, NaN) takes with it every window in which
it is.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.kernel import kernel

DENSE = 2000  # symbols up to which a chain of order 1 is kept as a matrix
MOST = 50_000_000  # numbers in a table of contexts: 400 MB
NAMED = 5  # states that a message lists


class Codes(NamedTuple):
    """Sequences one after the other: numbers of symbols, -1 for what is missing, and where each sequence begins."""

    values: np.ndarray
    starts: np.ndarray  # (sequences + 1,)


def sequences_of(X):
    """Tell one sequence from several, and give a list of arrays."""
    if isinstance(X, str):
        raise ValueError("A string is one symbol, not a sequence; list(text) makes a sequence of its characters.")
    if not hasattr(X, "__len__"):
        raise ValueError(f"Sequences must be a list of sequences of symbols, or one of them; got {type(X).__name__}.")
    first = next((item for item in X if item is not None), None)
    several = isinstance(first, list | tuple) or (hasattr(first, "__len__") and not isinstance(first, str))
    return [as_symbols(item) for item in (X if several else [X])]


def as_symbols(sequence):
    """Turn a sequence into an array of integers or strings, with the places that are missing."""
    array = np.asarray(sequence) if not isinstance(sequence, list | tuple) else _array(sequence)
    if array.ndim != 1:
        raise ValueError(f"A sequence has one dimension, and this one has {array.ndim}.")
    if array.dtype.kind in "iuU":
        return array, None
    if array.dtype.kind == "b":
        return array.astype(np.int64), None
    if array.dtype.kind == "f":
        missing = np.isnan(array)
        known = array[~missing]
        if not (np.isfinite(known) & (known == np.floor(known))).all():
            odd = known[~(np.isfinite(known) & (known == np.floor(known)))][0]
            raise ValueError(f"Symbols are integers or strings, and a sequence holds {odd}; cut numbers into bins first.")
        return known.astype(np.int64), missing
    missing = np.array([item is None or item != item for item in array], dtype=bool)
    kinds = {
        str if isinstance(item, str) else int if isinstance(item, int | np.integer) else type(item) for item in array[~missing]
    }
    if not kinds <= {str} and not kinds <= {int}:
        named = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise ValueError(f"The symbols of a sequence are all integers or all strings, and this one holds: {named}.")
    return np.array(array[~missing].tolist(), dtype=str if kinds == {str} else np.int64), missing


def _array(items):
    """Make an array of a list without turning numbers among strings into strings."""
    array = np.asarray(items, dtype=object)
    if array.ndim == 1 and all(type(item) is str for item in items):
        return array.astype(str) if len(items) else np.empty(0, np.int64)
    return np.asarray(items) if all(isinstance(item, int | float | np.number) for item in items) else array


def encode(X, states=None):
    """Number the symbols of some sequences; without given states, these are the different symbols in their order.

    Examples
    --------
    >>> codes, states = encode([["b", "a", None, "b"], ["a"]])
    >>> codes.values, codes.starts, states
    (array([ 1,  0, -1,  1,  0]), array([0, 4, 5]), array(['a', 'b'], dtype='<U1'))
    """
    parts = sequences_of(X)
    lengths = [len(known) if missing is None else len(missing) for known, missing in parts]
    filled = [known for known, _ in parts if len(known)]
    if len({array.dtype.kind == "U" for array in filled}) > 1:
        raise ValueError("Some sequences hold strings and others numbers; a chain has symbols of one kind.")
    symbols = np.concatenate(filled) if filled else np.empty(0, np.int64)
    if states is None:
        if not len(symbols):
            raise ValueError("The sequences hold no symbol: there is nothing to count.")
        states, numbers = np.unique(symbols, return_inverse=True)
    else:
        numbers = numbers_of(symbols, states)
    values = np.full(sum(lengths), -1, np.int64)
    seen = np.concatenate([np.ones(n, bool) if m is None else ~m for (_, m), n in zip(parts, lengths, strict=True)] or [[]])
    values[seen.astype(bool)] = numbers
    return Codes(values, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)), states


def numbers_of(symbols, states):
    """Look symbols up among the states, in whatever order these are."""
    symbols, states = np.atleast_1d(symbols), np.asarray(states)
    if len(symbols) and (symbols.dtype.kind == "U") != (states.dtype.kind == "U"):
        raise ValueError(f"{symbols[0]!r} is no state of the chain: its states are {listed(states)}.")
    order = np.argsort(states)
    places = np.minimum(np.searchsorted(states, symbols, sorter=order), len(states) - 1)
    numbers = order[places]
    strange = states[numbers] != symbols
    if strange.any():
        raise ValueError(f"{symbols[strange][0]!s} is no state of the chain: its states are {listed(states)}.")
    return numbers


def listed(states):
    """Name a few states."""
    named = ", ".join(str(state) for state in states[:NAMED])
    return f"{named} and {len(states) - NAMED:,} more" if len(states) > NAMED else named


@kernel
def windows(values, starts, n_symbols, order):
    """List what follows each complete context, as numbers of (context, symbol), and the contexts with which sequences begin."""
    follows, begins = np.empty(len(values), np.int64), np.empty(len(starts), np.int64)
    found, begun, size = 0, 0, n_symbols**order
    for s in range(len(starts) - 1):
        context, run = 0, 0
        for t in range(starts[s], starts[s + 1]):
            c = values[t]
            if c < 0:
                context, run = 0, 0
                continue
            if run >= order:
                follows[found] = context * n_symbols + c
                found += 1
            context = (context * n_symbols + c) % size
            run += 1
            if run == order and t - starts[s] == order - 1:
                begins[begun] = context
                begun += 1
    return follows[:found].copy(), begins[:begun].copy()


def count(codes, n_symbols, order):
    """Count what follows each context, and the contexts with which sequences begin; sparse where symbols are many.

    Returns
    -------
    counts : (n_symbols,) * (order + 1), or CSR of shape (n_symbols, n_symbols).
    begins : (n_symbols,) * order

    Examples
    --------
    >>> codes, _ = encode([0, 1, 1, 0, 1])
    >>> count(codes, 2, 1)
    (array([[0., 2.],
           [1., 1.]]), array([1., 0.]))
    """
    if order > 1 and n_symbols ** (order + 1) > MOST:
        raise ValueError(f"A chain of order {order} over {n_symbols:,} symbols has too many contexts; lower the order.")
    follows, begins = windows(codes.values, codes.starts, n_symbols, order)
    first = np.bincount(begins, minlength=n_symbols**order).astype(float).reshape((n_symbols,) * order)
    if order == 1 and n_symbols > DENSE:
        pairs, times = np.unique(follows, return_counts=True)
        shape = (n_symbols, n_symbols)
        return csr_array((times.astype(float), (pairs // n_symbols, pairs % n_symbols)), shape=shape), first
    return np.bincount(follows, minlength=n_symbols ** (order + 1)).astype(float).reshape((n_symbols,) * (order + 1)), first


def frequencies(counts, alpha):
    """Turn counts into chances, row by row; a row without counts is uniform, the limit of small alpha.

    Examples
    --------
    >>> frequencies(np.array([[1.0, 3.0], [0.0, 0.0]]), 0.0)
    array([[0.25, 0.75],
           [0.5 , 0.5 ]])
    """
    total, k = counts.sum(axis=-1), counts.shape[-1]
    if not hasattr(counts, "indptr"):
        uniform = np.full_like(counts, 1 / k)
        return np.divide(counts + alpha, (total + k * alpha)[..., None], out=uniform, where=(total + k * alpha)[..., None] > 0)
    empty = np.flatnonzero(total == 0)
    full = k if alpha > 0 else len(empty)
    if full * k > MOST:
        raise ValueError(
            f"Among {k:,} states, "
            + ("alpha > 0" if alpha > 0 else f"{len(empty):,} that are never left, with uniform rows,")
            + " would fill too large a table; take alpha=0 and sequences that leave every state, or merge rare symbols."
        )
    if alpha > 0:
        return csr_array((counts.toarray() + alpha) / (total + k * alpha)[:, None])
    scaled = csr_array(
        (counts.data / np.repeat(total, np.diff(counts.indptr)), counts.indices, counts.indptr), shape=counts.shape
    )
    rows = csr_array(
        (np.full(len(empty) * k, 1 / k), (np.repeat(empty, k), np.tile(np.arange(k), len(empty)))), shape=counts.shape
    )
    return csr_array(scaled + rows) if len(empty) else scaled


def warn_of_ends(counts, states, order):
    """Say which contexts the data never leave: their rows are a convention."""
    never = np.argwhere(np.atleast_1d(counts.sum(axis=-1) == 0))
    if len(never):
        named = [", ".join(str(states[i]) for i in row) for row in never[:NAMED]]
        names = "; ".join(named) + (f" and {len(never) - NAMED:,} more" if len(never) > NAMED else "")
        what = "states" if order == 1 else "contexts"
        warnings.warn(
            f"No sequence leaves the {what} {names}: their rows are uniform, the limit of small alpha.",
            UserWarning,
            stacklevel=3,
        )
