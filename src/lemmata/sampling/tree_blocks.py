"""Blocks of variables that are forests given all others: how factors tie them together, and few large ones that cover a graph.

A factor matters to a block by its variables inside: one alone weighs a variable, several are a tie. Ties and variables make a
graph with two kinds of nodes, and sums along its edges are exact if it has no cycle. A tie within a larger one is part of it.
"""

from itertools import pairwise

import numpy as np

from lemmata.graphical.gibbs_program import incidence

LARGEST = 4096  # states of a factor's variables inside a block that is found automatically


def ties(block, scopes_of, factors_of):
    """Sort the factors that touch a block: those of one variable of it, and those that tie several together.

    Returns
    -------
    single : {variable: factors}.
    tied : {frozenset of variables: factors}; a set within another one is counted to the larger.
    """
    inside, single, tied = set(block), {v: [] for v in block}, {}
    for m in sorted({m for v in block for m in factors_of(v)}):
        scope = frozenset(v for v in scopes_of(m) if v in inside)
        if len(scope) == 1:
            single[next(iter(scope))].append(m)
        else:
            tied.setdefault(scope, []).append(m)
    if any(len(scope) > 2 for scope in tied):
        at = {v: [] for v in block}
        for scope in tied:
            for v in scope:
                at[v].append(scope)
        for scope in sorted(tied, key=lambda scope: (len(scope), sorted(scope))):
            larger = next((other for other in at[next(iter(scope))] if scope < other and other in tied), None)
            if larger is not None:
                tied[larger] += tied.pop(scope)
    return single, tied


def forest(block, tied):
    """Root the trees of a block: (roots, links), a link being (parent, children, factors), each after the one above it.

    Raises ValueError(cycle) with the variables of a cycle, if there is one.
    """
    at = {v: [] for v in block}
    for scope in tied:
        for v in scope:
            at[v].append(scope)
    above, roots, links = {}, [], []
    for r in block:
        if r in above:
            continue
        above[r] = None
        roots.append(r)
        queue, came = [r], {r: None}
        for v in queue:
            for scope in at[v]:
                if scope == came[v]:
                    continue
                below = sorted(scope - {v})
                for u in below:
                    if u in above:
                        raise ValueError(_cycle(above, came, v, u))
                    above[u], came[u] = v, scope
                queue += below
                links.append((v, below, tied[scope]))
    return roots, links


def _cycle(above, came, v, u):
    """Follow both ends of a link upwards to where they meet: at a variable, or in a factor that ties them together."""
    left, right = [v], [u]
    while above[left[-1]] is not None:
        left.append(above[left[-1]])
    while right[-1] not in left:
        right.append(above[right[-1]])
    left, top = left[: left.index(right[-1])], right.pop()
    if left and right and came[left[-1]] == came[right[-1]]:
        return left + right[::-1]
    return [*left, top, *right[::-1]]


def default_blocks(layout, codes):
    """Cover the free variables by few large trees: greedily, in their order, and those that zeros tie together first.

    Examples
    --------
    >>> from lemmata.graphical.factor import Factor, lay_out
    >>> same = [[2.0, 1.0], [1.0, 2.0]]
    >>> square = lay_out([Factor(pair, same) for pair in ("ab", "bc", "cd", "da")], dict(zip("abcd", range(4))), [2] * 4)
    >>> default_blocks(square, np.full(4, -1))
    [[0, 1, 2], [3]]
    """
    starts, factors = incidence(layout, codes)
    scopes = [[int(v) for v in layout.scopes[a:b] if codes[v] < 0] for a, b in pairwise(layout.scope_starts)]
    around = [factors[a:b].tolist() for a, b in pairwise(starts)]
    zeros = np.minimum.reduceat(layout.tables, layout.table_starts[:-1]) == 0 if scopes else np.empty(0, dtype=bool)
    left, blocks = dict.fromkeys(np.flatnonzero(codes < 0).tolist()), []
    while left:
        block, tree = {}, {}  # variables, and which tree each is in
        for first in list(left):
            stack = [first]
            while stack:
                v = stack.pop()
                if v not in left or v in block or not _fits(v, block, tree, scopes, around, layout.cards):
                    continue
                block[v] = None
                joined = {_root(tree, u) for m in around[v] for u in scopes[m] if u in block and u != v}
                tree[v] = v
                for r in joined:
                    tree[r] = v
                stack += [u for m in around[v] if zeros[m] for u in scopes[m][::-1] if u in left and u not in block]
        blocks.append(list(block))
        for v in block:
            del left[v]
    return blocks


def _root(tree, v):
    while tree[v] != v:
        tree[v] = tree[tree[v]]  # shorter for the next one
        v = tree[v]
    return v


def _fits(v, block, tree, scopes, around, cards):
    """Whether a block is still a forest with one more variable: its factors must lead to different trees."""
    sets = {frozenset(u for u in scopes[m] if u in block) for m in around[v]} - {frozenset()}
    sets = [s for s in sets if not any(s < other for other in sets)]
    if any(np.prod(cards[[v, *s]].astype(float)) > LARGEST for s in sets):
        return False
    met = set()
    for s in sets:
        roots = {_root(tree, u) for u in s}
        if met & roots:
            return False
        met |= roots
        if len(s) > 1:  # its variables are tied together already: by factors within the new, larger set only
            for m in {m for u in s for m in around[u]}:
                inside = {u for u in scopes[m] if u in block or u == v}
                if len(inside & s) > 1 and not inside <= s | {v}:
                    return False
    return True
