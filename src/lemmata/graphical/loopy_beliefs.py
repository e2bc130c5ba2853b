"""Reading the messages of `loopy_kernels`: beliefs of variables and factors, and the best states, one after another."""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.graphical.loopy_kernels import FLOOR, count_up, multiply_into, normalize, plus, times


@kernel
def beliefs(w, r, maximize, variables, factors, logs):
    """Fill in normalized beliefs of variables and of factors; logarithms, if the messages are.

    Give Bethe's estimate of log Z (without the scale of tables), and whether no product came too near to 0.
    It is Σ log Z_v + Σ log Z_m − Σ log Z_e with the normalizers of Π r, f Π q and q · r; maxima in place of sums if asked for.
    """
    q, nothing = np.empty(len(r)), -np.inf if logs else 0.0
    total, safe = 0.0, True
    for v in range(len(w.cards)):
        a, b = w.state_starts[v], w.state_starts[v + 1]
        scale, near = multiply_into(w, v, -1, r, variables, a, logs)
        weight = weigh(variables, a, b, maximize, logs)
        total += scale + weight
        safe = safe and near and weight > -np.inf
    for e in range(len(w.scopes)):
        start, v = w.message_starts[e], w.scopes[e]
        _, near = multiply_into(w, v, e, r, q, start, logs)
        safe = normalize(q, start, w.message_starts[e + 1], logs) > nothing and near and safe
        z = nothing
        for i in range(start, w.message_starts[e + 1]):
            z = plus(z, times(q[i], r[i], logs), maximize, logs)
        if not z > nothing:
            return total, False
        total -= z if logs else np.log(z)
    for m in range(len(w.table_starts) - 1):
        a, b = w.table_starts[m], w.table_starts[m + 1]
        first = w.scope_starts[m]
        for t in range(a, b):
            value, rest = w.tables[t], t - a
            for e in range(w.scope_starts[m + 1] - 1, first - 1, -1):
                k = w.cards[w.scopes[e]]
                value = times(value, q[w.message_starts[e] + rest % k], logs)
                rest //= k
            factors[t] = value
        weight = weigh(factors, a, b, maximize, logs)
        total += weight
        safe = safe and weight > (-np.inf if logs else np.log(FLOOR))
    return total, safe


@kernel
def weigh(x, a, b, maximize, logs):
    """Normalize x[a:b] to the sum one; give the logarithm of what its sum, or its maximum, was."""
    peak = -np.inf
    for i in range(a, b):
        peak = max(peak, x[i])
    total = normalize(x, a, b, logs)
    weight = peak if maximize else total
    if logs:
        return weight
    return np.log(weight) if weight > 0.0 else -np.inf


@kernel
def breadth_first(w, known):
    """Order factors and variables outward from a root of each component; variables that are known join nothing.

    Also tell whether there is no cycle.
    """
    n, n_factors = len(w.cards), len(w.table_starts) - 1
    factors, variables = np.empty(n_factors, np.int64), np.empty(n, np.int64)
    seen, came, reached = np.zeros(n, np.bool_), np.full(n, -1, np.int64), np.zeros(n_factors, np.bool_)
    forest, there, listed = True, 0, 0
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        variables[there] = root
        head = there
        there += 1
        while head < there:
            v = variables[head]
            head += 1
            if known[v]:
                continue
            for i in range(w.edge_starts[v], w.edge_starts[v + 1]):
                m = w.factor_of[w.edges[i]]
                if m == came[v]:
                    continue
                if reached[m]:  # from another variable that is not known
                    forest = False
                    continue
                reached[m] = True
                factors[listed] = m
                listed += 1
                for e in range(w.scope_starts[m], w.scope_starts[m + 1]):
                    u = w.scopes[e]
                    if known[u] or seen[u]:  # a second way to u is found when u's factors are looked at
                        continue
                    seen[u], came[u] = True, m
                    variables[there] = u
                    there += 1
    for m in range(n_factors):
        if not reached[m]:
            factors[listed] = m
            listed += 1
    return factors, variables, forest


@kernel
def decode(w, r, order, states):
    """Choose states one variable after another: the best given those chosen, for max-product messages, in logarithms.

    Each factor counts at its maximum over the variables not chosen, weighed by their messages. On a tree, outward from a root,
    that is a maximizer even if there are several.
    """
    q, score = np.empty(len(r)), np.empty(len(w.seen))
    digits = np.empty(len(w.scopes) + 1, np.int64)
    for e in range(len(w.scopes)):
        multiply_into(w, w.scopes[e], e, r, q, w.message_starts[e], True)
        normalize(q, w.message_starts[e], w.message_starts[e + 1], True)
    for v in order:
        k = w.cards[v]
        for x in range(k):
            score[x] = w.seen[w.state_starts[v] + x]
        for i in range(w.edge_starts[v], w.edge_starts[v + 1]):
            best_of_factor(w, w.factor_of[w.edges[i]], v, q, states, digits, score, k)
        best = 0
        for x in range(1, k):
            if score[x] > score[best]:
                best = x
        states[v] = best


@kernel
def best_of_factor(w, m, v, q, states, digits, score, k):
    """Add to the scores of v's states what factor m can still reach."""
    first, n, here = w.scope_starts[m], w.scope_starts[m + 1] - w.scope_starts[m], 0
    reach = np.full(k, -np.inf)
    for p in range(n):
        digits[p] = 0
        if w.scopes[first + p] == v:
            here = p
    for t in range(w.table_starts[m], w.table_starts[m + 1]):
        value = w.tables[t]
        for p in range(n):
            u = w.scopes[first + p]
            if p == here:
                continue
            if states[u] >= 0:
                if states[u] != digits[p]:
                    value = -np.inf
                    break
            else:
                value += q[w.message_starts[first + p] + digits[p]]
        reach[digits[here]] = max(reach[digits[here]], value)
        count_up(w, first, n, digits)
    for x in range(k):
        score[x] += reach[x]
