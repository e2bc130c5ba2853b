"""The stationary law of a large sparse chain: sweeps over the states, and sweeps over groups of states where these are slow.

At the stationary law x, what flows into a state flows out of it: Σ_{i≠j} x_i P_ij = x_j Σ_{l≠j} P_jl. A sweep puts this right
for one state after the other, forwards and then backwards (Gauss-Seidel); neighbors soon agree, and a chain that mixes
quickly is done. Where groups of states exchange little, sweeps leave the masses of groups wrong for ages. But with the shares
inside the groups about right, the groups form a chain themselves: from I to J with chance Σ_{i∈I} x_i P_iJ / x_I. Its law,
found in the same way with groups of groups, sets the masses of the groups [1, 2]. Groups are states joined along their
strongest flows, in two rounds; a pair that hardly anything leaves is joined no further, lest what is slow be mixed with what
is quick. Like the elimination of states this adds, multiplies and divides positive numbers only, so that laws stay positive.
Of the last few rounds the combination is taken whose change would have been least [3]: it removes the few slow motions that
groups cut across.

It stops when the flows in and out differ, in sum over the states, by no more than `TOL`: that sum is ‖xP − x‖₁.

[1] Takahashi, Tokyo Institute of Technology B-18 (1975). [2] Horton & Leutenegger, SIGMETRICS (1994). [3] Anderson, J. ACM
12 (1965).
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse.csgraph import reverse_cuthill_mckee

from lemmata.core.kernel import kernel
from lemmata.markov.elimination import reduced_law

TOL = 1e-14  # a few times what adding up a million flows leaves
QUICK = 30  # sweeps after which grouping would have been quicker
SMALL = 60  # states that are eliminated one by one
WIDE = 3  # visits to a coarser level, where these are cheap
CHEAP = 0.45  # a level with at most this share of the moves of the finer one is cheap
STRONG = 0.25  # of the strongest flow into a state: less is not joined
ISOLATED = 0.05  # a pair that exchanges less than this share of its flow with others is joined no further
MEMORY = 10  # rounds that are combined
MAX_ROUNDS = 300
STUCK = 10  # rounds without a smaller residual, once it is near rounding
LEAST = 1e-290  # masses below would vanish in divisions


class Level(NamedTuple):
    """A chain by the flows into each state (without moves from a state to itself), and how it is grouped."""

    indptr: np.ndarray
    indices: np.ndarray  # where a move comes from
    rates: np.ndarray
    exits: np.ndarray  # Σ_{l≠j} P_jl of each state
    group: np.ndarray  # of each state; empty on the coarsest level
    slot: np.ndarray  # the coarser level's move to which a move belongs, -1 inside a group


@kernel
def incoming(indptr, indices, data, n):
    """Turn rows of moves into the moves that lead to each state, leaving out those from a state to itself."""
    start = np.zeros(n + 1, np.int64)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            if indices[k] != i:
                start[indices[k] + 1] += 1
    for j in range(n):
        start[j + 1] += start[j]
    place, source, rates = start[:-1].copy(), np.empty(start[n], np.int32), np.empty(start[n])
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if j != i:
                source[place[j]], rates[place[j]] = i, data[k]
                place[j] += 1
    return start, source, rates


@kernel
def add_exits(indices, rates, exits):
    """Sum the chances of leaving each state."""
    for j in range(len(exits)):
        exits[j] = 0.0
    for k in range(len(indices)):
        exits[indices[k]] += rates[k]


@kernel
def sweep(indptr, indices, rates, exits, x, backwards):
    """Put one state after the other right: its mass becomes what flows in over the chance of leaving.

    Returns how much had to be put right, relative to the mass: of the order of the imbalance, for which a look of its own is
    needed.
    """
    n, total, mass = len(x), 0.0, 0.0
    for t in range(n):
        j = n - 1 - t if backwards else t
        flow = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            flow += rates[k] * x[indices[k]]
        total += abs(flow - exits[j] * x[j])
        x[j] = max(flow / exits[j], LEAST)
        mass += x[j]
    return total / mass


@kernel
def imbalance(indptr, indices, rates, exits, x):
    """Sum the differences between what flows in and out, relative to the mass: ‖xP − x‖₁ of the normalized x."""
    total, mass = 0.0, 0.0
    for j in range(len(x)):
        flow = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            flow += rates[k] * x[indices[k]]
        total += abs(flow - exits[j] * x[j])
        mass += x[j]
    return total / mass


@kernel
def join(indptr, indices, rates, x, single):
    """Join states along their strongest flows: in pairs, and who finds no partner goes with its strongest neighbor."""
    n, found = len(x), 0
    group = np.full(n, -1, np.int32)
    for j in range(n):
        if group[j] >= 0:
            continue
        most, best, partner, neighbor = -1.0, -1.0, -1, -1
        if not single[j]:
            for k in range(indptr[j], indptr[j + 1]):
                i = indices[k]
                flow = rates[k] * x[i]
                if flow > most:
                    most, neighbor = flow, i
                if flow > best and group[i] < 0 and not single[i]:
                    best, partner = flow, i
        if partner >= 0 and best >= STRONG * most:
            group[j] = group[partner] = found
            found += 1
        elif neighbor >= 0 and group[neighbor] >= 0 and not single[neighbor]:
            group[j] = group[neighbor]
        else:
            group[j] = found
            found += 1
    return group, found


@kernel
def pattern(indptr, indices, group, m):
    """Find the moves between groups, and to which of them each move belongs."""
    n = len(group)
    start = np.zeros(m + 1, np.int64)
    for j in range(n):
        start[group[j] + 1] += 1
    for g in range(m):
        start[g + 1] += start[g]
    place, members = start[:-1].copy(), np.empty(n, np.int32)
    for j in range(n):
        members[place[group[j]]] = j
        place[group[j]] += 1
    slot, ends, sources = np.empty(len(indices), np.int32), np.zeros(m + 1, np.int64), np.empty(len(indices), np.int32)
    seen, found = np.full(m, -1, np.int64), 0
    for g in range(m):
        first = found
        for t in range(start[g], start[g + 1]):
            for k in range(indptr[members[t]], indptr[members[t] + 1]):
                h = group[indices[k]]
                if h == g:
                    slot[k] = -1
                    continue
                if seen[h] < first:
                    seen[h], sources[found] = found, h
                    found += 1
                slot[k] = seen[h]
        ends[g + 1] = found
    return ends, sources[:found].copy(), slot


@kernel
def lump(indices, rates, slot, group, x, sources, lumped, exits, masses):
    """Fill in the chain of the groups: the masses, the chances of the moves between them, and of leaving."""
    for g in range(len(masses)):
        masses[g] = 0.0
        exits[g] = 0.0
    for i in range(len(x)):
        masses[group[i]] += x[i]
    for k in range(len(lumped)):
        lumped[k] = 0.0
    for k in range(len(indices)):
        if slot[k] >= 0:
            lumped[slot[k]] += rates[k] * x[indices[k]]
    for k in range(len(lumped)):
        lumped[k] /= masses[sources[k]]
        exits[sources[k]] += lumped[k]


@kernel
def spread(group, x, before, after):
    """Give every state its share of the new mass of its group."""
    for i in range(len(x)):
        x[i] = max(x[i] * (after[group[i]] / before[group[i]]), LEAST)


@kernel
def table(indptr, indices, rates, n):
    """Write a chain as a matrix."""
    A = np.zeros((n, n))
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            A[indices[k], j] += rates[k]
    return A


def level_of(indptr, indices, rates, n):
    """Make the finest level, not yet grouped."""
    exits = np.empty(n)
    add_exits(indices, rates, exits)
    return Level(indptr, indices, rates, exits, np.empty(0, np.int32), np.empty(0, np.int32))


def grouped(level, x, group, m):
    """Make the next level out of groups; return the level with its groups, the next one and the masses there."""
    indptr, indices, slot = pattern(level.indptr, level.indices, group, m)
    lumped, exits, masses = np.empty(len(indices)), np.empty(m), np.empty(m)
    lump(level.indices, level.rates, slot, group, x, indices, lumped, exits, masses)
    empty = np.empty(0, np.int32)
    return level._replace(group=group, slot=slot), Level(indptr, indices, lumped, exits, empty, empty), masses


def hierarchy(level, x):
    """Group the states around the present masses, then the groups, down to a few."""
    levels = []
    while len(x) > SMALL:
        pair, m = join(level.indptr, level.indices, level.rates, x, np.zeros(len(x), np.bool_))
        _, paired, masses = grouped(level, x, pair, m)
        within = np.bincount(pair, weights=level.exits * x, minlength=m)
        group, m = join(paired.indptr, paired.indices, paired.rates, masses, paired.exits * masses < ISOLATED * within)
        level, coarse, masses = grouped(level, x, group[pair], m)
        levels.append(level)
        level, x = coarse, masses
        sweep(level.indptr, level.indices, level.rates, level.exits, x, False)
    return [*levels, level]


def rounds(levels, depth, x):
    """Sweep, set the masses of groups by their own chain, sweep back; in place."""
    level = levels[depth]
    if depth == len(levels) - 1:
        x[:] = x.sum() * np.maximum(reduced_law(table(level.indptr, level.indices, level.rates, len(x))), LEAST)
        return
    coarse = levels[depth + 1]
    before = np.empty(len(coarse.exits))
    for _ in range(WIDE if depth and len(coarse.indices) <= CHEAP * len(level.indices) else 1):
        sweep(level.indptr, level.indices, level.rates, level.exits, x, False)
        lump(level.indices, level.rates, level.slot, level.group, x, coarse.indices, coarse.rates, coarse.exits, before)
        after = before.copy()
        rounds(levels, depth + 1, after)
        spread(level.group, x, before, after)
        sweep(level.indptr, level.indices, level.rates, level.exits, x, True)


class Memory:
    """The last few rounds, and the combination of them that changes least."""

    def __init__(self):
        self.last, self.results, self.changes = None, [], []

    def combined(self, x, result):
        """Return where to begin the next round, after one that led from x to the result."""
        change = result - x
        if self.last is not None:
            self.results, self.changes = self.results[1 - MEMORY :], self.changes[1 - MEMORY :]
            self.results.append(result - self.last[0])
            self.changes.append(change - self.last[1])
        self.last = (result, change)
        if not self.changes:
            return result
        scale = 1 / np.sqrt(result)  # changes count relative to the masses
        A, b = np.array([c * scale for c in self.changes]), change * scale
        weights = np.linalg.lstsq(A @ A.T, A @ b, rcond=1e-14)[0]  # beyond, the products are rounding
        guess = result - sum(w * r for w, r in zip(weights, self.results, strict=True))
        if guess.min() <= 0:
            self.last, self.results, self.changes = None, [], []
            return result
        return guess / guess.sum()


def large_law(P):
    """Find the stationary law of an irreducible chain in CSR form; return it with ‖xP − x‖₁.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> law, residual = large_law(csr_array([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.0, 1.0, 0.0]]))
    >>> law, residual <= TOL
    (array([0.25, 0.5 , 0.25]), True)
    """
    n = P.shape[0]
    level = level_of(*incoming(P.indptr, P.indices, P.data, n), n)
    chain = (level.indptr, level.indices, level.rates, level.exits)
    x, residual, past = np.full(n, 1 / n), np.inf, []
    while residual > TOL:
        sweep(*chain, x, False)
        residual = sweep(*chain, x, True)
        x /= x.sum()
        if residual <= TOL:
            residual = imbalance(*chain, x)
        past.append(residual)
        if len(past) > 3 and residual > TOL:  # by then it is seen how quickly it goes
            factor = (past[-1] / past[-3]) ** 0.5
            if factor >= 1 or np.log(TOL / residual) / np.log(factor) > QUICK:
                break
    if residual <= TOL:
        return x, residual
    order = reverse_cuthill_mckee(P)  # neighbors in the chain become neighbors in memory, where groups of them are looked up
    P = P[order][:, order]
    law = np.empty(n)
    law[order], residual = by_groups(level_of(*incoming(P.indptr, P.indices, P.data, n), n), x[order])
    return law, residual


def by_groups(level, x):
    """Go on with groups of states until the flows in and out agree; group anew once the masses are roughly known."""
    chain = (level.indptr, level.indices, level.rates, level.exits)
    levels, memory, best, since = hierarchy(level, x.copy()), Memory(), (np.inf, x), 0
    for n_rounds in range(1, MAX_ROUNDS + 1):
        result = x.copy()
        rounds(levels, 0, result)
        result /= result.sum()
        residual = imbalance(*chain, result)
        since = since + 1 if residual >= best[0] else 0
        best = min(best, (residual, result), key=lambda pair: pair[0])
        if residual <= TOL or (since >= STUCK and best[0] <= 100 * TOL):
            break
        x = memory.combined(x, result)
        if n_rounds in (4, 20):  # the first groups were made of guesses
            levels, memory = hierarchy(level, x.copy()), Memory()
    return best[1], best[0]
