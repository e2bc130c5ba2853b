"""Sequences and a chain: how probable they are, and how to draw them.

A symbol that was not seen is summed over: a law of the contexts is carried along, one step of the chain at a time, and what
is seen keeps of it only what agrees. Once `order` symbols in a row are seen the context is known, and the law is a single
number again.
"""

import numpy as np

from lemmata.core.kernel import kernel


@kernel
def chance(indptr, indices, data, row, column):
    """Look an entry of a row up; what is not stored is 0."""
    low, high = indptr[row], indptr[row + 1]
    while low < high:
        middle = (low + high) // 2
        if indices[middle] < column:
            low = middle + 1
        else:
            high = middle
    return data[low] if low < indptr[row + 1] and indices[low] == column else 0.0


@kernel
def complete_likelihoods(values, starts, indptr, indices, data, initial, n_symbols, order):
    """Sum the logarithms of the chances of each sequence; NaN for one that is too short or not seen throughout."""
    size = n_symbols**order
    out = np.zeros(len(starts) - 1)
    for s in range(len(out)):
        total, context = 0.0, 0
        if starts[s + 1] - starts[s] < order:
            total = np.nan
        for t in range(starts[s], starts[s + 1]):
            c = values[t]
            if c < 0:
                total = np.nan
                break
            if t - starts[s] >= order:
                p = chance(indptr, indices, data, context, c)
                total += np.log(p) if p > 0.0 else -np.inf
            context = (context * n_symbols + c) % size
            if t - starts[s] == order - 1:
                total += np.log(initial[context]) if initial[context] > 0.0 else -np.inf
        out[s] = total
    return out


def partial_likelihood(model, back, values):
    """Carry a law of contexts along one sequence, some symbols of which are missing."""
    k, m = len(model.states), model.order
    # The first symbols: the initial law, restricted to what is seen of them.
    law = model.initial.reshape((k,) * m).copy()
    for place, c in enumerate(values[:m]):
        if c >= 0:
            keep = np.zeros(k)
            keep[c] = 1.0
            law = law * keep.reshape([k if axis == place else 1 for axis in range(m)])
    law, total = law.ravel(), 0.0
    for c in values[m:]:
        law = back @ law
        if c >= 0:
            law = np.where(np.arange(len(law)) % k == c, law, 0.0)
        mass = law.sum()
        if mass == 0:
            return -np.inf
        total, law = total + np.log(mass), law / mass
    with np.errstate(divide="ignore"):
        return total + np.log(law.sum()) if len(values) <= m else total


def log_likelihoods(model, codes):
    """Give the log-likelihood of each sequence."""
    P = model.rows if model.rows.has_sorted_indices else model.rows.sorted_indices()
    found = complete_likelihoods(*codes, P.indptr, P.indices, P.data, model.initial, len(model.states), model.order)
    partial = np.flatnonzero(np.isnan(found))
    back = model.square.T.tocsr() if len(partial) else None
    for s in partial:
        found[s] = partial_likelihood(model, back, codes.values[codes.starts[s] : codes.starts[s + 1]])
    return found


@kernel
def steps(indptr, indices, cumulative, context, n_symbols, size, uniform, out):
    """Walk: the symbol whose share of the row holds the uniform number comes next."""
    for t in range(len(out)):
        low, high = indptr[context], indptr[context + 1] - 1
        u = uniform[t] * cumulative[high]
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] <= u:
                low = middle + 1
            else:
                high = middle
        out[t] = indices[low]
        context = (context * n_symbols + indices[low]) % size


@kernel
def running_sums(indptr, data):
    """Add up each row from its beginning."""
    out = np.empty(len(data))
    for i in range(len(indptr) - 1):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k]
            out[k] = total
    return out


def walk(model, length, rng):
    """Draw the numbers of so many symbols."""
    if length < 1:
        raise ValueError(f"A sample has a length of at least 1, got {length}.")
    n, k = model.rows.shape
    sums = np.cumsum(model.initial)
    context = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
    first = [context // k**place % k for place in range(model.order - 1, -1, -1)][:length]
    rest = np.empty(length - len(first), np.int64)
    cumulative = running_sums(model.rows.indptr, model.rows.data)
    steps(model.rows.indptr, model.rows.indices, cumulative, context, k, n, rng.random(len(rest)), rest)
    return np.concatenate([np.array(first, np.int64), rest])
