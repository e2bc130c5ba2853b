"""Kernels of loopy belief propagation: messages over the edges of a factor graph, in flat arrays.

Edge e joins a factor to the e-th entry of `scopes`; its messages, both ways, are at message_starts[e] and on, normalized to the
sum one. Everything that does not change stands in a `Wiring`. A kernel returns the largest change it found, or −1 if a message
has no mass left: then no assignment has any, because a message is 0 only where no assignment can be.
"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core.kernel import kernel

SMALL = 1e-150  # a product of messages is scaled up below this: two such numbers can still be multiplied


class Wiring(NamedTuple):
    """A factor graph as flat arrays, with evidence.

    Attributes
    ----------
    cards, scope_starts, scopes, table_starts, tables : As in `Layout`.
    factor_of : Factor of each edge.
    message_starts : Where the messages of each edge begin.
    edge_starts, edges : Edges of variable v are edges[edge_starts[v] : edge_starts[v + 1]].
    state_starts, seen : Likelihoods of the states of variable v begin at seen[state_starts[v]].
    """

    cards: Any
    scope_starts: Any
    scopes: Any
    table_starts: Any
    tables: Any
    factor_of: Any
    message_starts: Any
    edge_starts: Any
    edges: Any
    state_starts: Any
    seen: Any


@kernel
def normalize(x, a, b):
    """Divide x[a:b] by its sum, and give the sum."""
    total = 0.0
    for i in range(a, b):
        total += x[i]
    if total > 0.0:
        for i in range(a, b):
            x[i] /= total
    return total


@kernel
def multiply_into(w, v, skip, r, out, at):
    """Multiply what is seen of variable v and factors' messages, but that of edge `skip`; give the log of a scale left out."""
    k, scale = w.cards[v], 0.0
    for x in range(k):
        out[at + x] = w.seen[w.state_starts[v] + x]
    for i in range(w.edge_starts[v], w.edge_starts[v + 1]):
        e = w.edges[i]
        if e == skip:
            continue
        start, peak = w.message_starts[e], 0.0
        for x in range(k):
            out[at + x] *= r[start + x]
            peak = max(peak, out[at + x])
        if 0.0 < peak < SMALL:
            scale += np.log(peak)
            for x in range(k):
                out[at + x] /= peak
    return scale


@kernel
def to_factors(w, v, r, q, room):
    """Find q of all edges of variable v, each without the edge's own message: products from the left, times from the right."""
    k, first, last = w.cards[v], w.edge_starts[v], w.edge_starts[v + 1]
    for x in range(k):
        room[x] = w.seen[w.state_starts[v] + x]
    for i in range(first, last):
        start, peak = w.message_starts[w.edges[i]], 0.0
        for x in range(k):
            q[start + x] = room[x]
            room[x] *= r[start + x]
            peak = max(peak, room[x])
        if 0.0 < peak < SMALL:
            for x in range(k):
                room[x] /= peak
    for x in range(k):
        room[x] = 1.0
    massive = True
    for i in range(last - 1, first - 1, -1):
        start, peak, highest = w.message_starts[w.edges[i]], 0.0, 0.0
        for x in range(k):
            q[start + x] *= room[x]
            highest = max(highest, q[start + x])
            room[x] *= r[start + x]
            peak = max(peak, room[x])
        if highest > 0.0:
            for x in range(k):
                q[start + x] /= highest
        if 0.0 < peak < SMALL:
            for x in range(k):
                room[x] /= peak
        massive = normalize(q, start, start + k) > 0.0 and massive
    return massive


@kernel
def to_variables(w, m, q, out, maximize, digits, partial):
    """Find r of all edges of factor m: its table times the other variables' messages, summed or maximized."""
    first, n = w.scope_starts[m], w.scope_starts[m + 1] - w.scope_starts[m]
    begin = w.table_starts[m]
    if n == 0:
        return w.tables[begin] > 0.0
    for i in range(w.message_starts[first], w.message_starts[first + n]):
        out[i] = 0.0
    if n == 2:
        one, two = w.message_starts[first], w.message_starts[first + 1]
        ka, kb = w.cards[w.scopes[first]], w.cards[w.scopes[first + 1]]
        for a in range(ka):
            total = 0.0
            for b in range(kb):
                f = w.tables[begin + a * kb + b]
                if maximize:
                    total = max(total, f * q[two + b])
                    out[two + b] = max(out[two + b], f * q[one + a])
                else:
                    total += f * q[two + b]
                    out[two + b] += f * q[one + a]
            out[one + a] = total
    else:
        for p in range(n):
            digits[p] = 0
        for t in range(begin, w.table_starts[m + 1]):
            f = w.tables[t]
            if f > 0.0:
                for p in range(n):
                    partial[p] = f
                    f *= q[w.message_starts[first + p] + digits[p]]
                after = 1.0
                for p in range(n - 1, -1, -1):
                    at = w.message_starts[first + p] + digits[p]
                    value = partial[p] * after
                    out[at] = max(out[at], value) if maximize else out[at] + value
                    after *= q[at]
            p = n - 1
            while p >= 0:
                digits[p] += 1
                if digits[p] < w.cards[w.scopes[first + p]]:
                    break
                digits[p] = 0
                p -= 1
    massive = True
    for e in range(first, first + n):
        massive = normalize(out, w.message_starts[e], w.message_starts[e + 1]) > 0.0 and massive
    return massive


@kernel
def flood(w, r, damping, maximize):
    """Send all messages at once: r from q from the r before. With damping 1 nothing changes but what is returned."""
    most = 1
    for v in range(len(w.cards)):
        most = max(most, w.cards[v])
    n = len(w.table_starts) - 1
    q, fresh, room = np.empty(len(r)), np.empty(len(r)), np.empty(most)
    digits, partial = np.empty(len(w.scopes) + 1, np.int64), np.empty(len(w.scopes) + 1)
    for v in range(len(w.cards)):
        if not to_factors(w, v, r, q, room):
            return -1.0
    for m in range(n):
        if not to_variables(w, m, q, fresh, maximize, digits, partial):
            return -1.0
    change = 0.0
    for i in range(len(r)):
        change = max(change, abs(fresh[i] - r[i]))
        r[i] = (1.0 - damping) * fresh[i] + damping * r[i]
    return change


@kernel
def refresh(w, m, r, q, fresh, maximize, digits, partial):
    """Find the messages of one factor from the newest of its neighbors."""
    for e in range(w.scope_starts[m], w.scope_starts[m + 1]):
        start = w.message_starts[e]
        multiply_into(w, w.scopes[e], e, r, q, start)
        if not normalize(q, start, w.message_starts[e + 1]) > 0.0:
            return False
    return to_variables(w, m, q, fresh, maximize, digits, partial)


@kernel
def sweep(w, order, r, damping, maximize):
    """Send the messages of one factor after another, from the last of an order to the first and back."""
    q, fresh = np.empty(len(r)), np.empty(len(r))
    digits, partial = np.empty(len(w.scopes) + 1, np.int64), np.empty(len(w.scopes) + 1)
    n, change = len(order), 0.0
    for turn in range(2 * n):
        m = order[n - 1 - turn] if turn < n else order[turn - n]
        if not refresh(w, m, r, q, fresh, maximize, digits, partial):
            return -1.0
        for i in range(w.message_starts[w.scope_starts[m]], w.message_starts[w.scope_starts[m + 1]]):
            change = max(change, abs(fresh[i] - r[i]))
            r[i] = (1.0 - damping) * fresh[i] + damping * r[i]
    return change


@kernel
def lift(heap, half, m, value):
    """Set the priority of a factor in a tournament, whose winner is at 1."""
    i = half + m
    heap[i] = value
    while i > 1:
        i //= 2
        heap[i] = max(heap[2 * i], heap[2 * i + 1])


@kernel
def chase(w, heap, r, damping, maximize, tol):
    """Send as many factors' messages as there are factors, always of the one whose neighbors' messages changed most since."""
    q, fresh = np.empty(len(r)), np.empty(len(r))
    digits, partial = np.empty(len(w.scopes) + 1, np.int64), np.empty(len(w.scopes) + 1)
    half = len(heap) // 2
    for _ in range(len(w.table_starts) - 1):
        if heap[1] <= tol:
            break
        i = 1
        while i < half:
            i = 2 * i if heap[2 * i] == heap[i] else 2 * i + 1
        m = i - half
        if not refresh(w, m, r, q, fresh, maximize, digits, partial):
            return -1.0
        left = 0.0
        for e in range(w.scope_starts[m], w.scope_starts[m + 1]):
            change = 0.0
            for j in range(w.message_starts[e], w.message_starts[e + 1]):
                change = max(change, abs(fresh[j] - r[j]))
                r[j] = (1.0 - damping) * fresh[j] + damping * r[j]
            left = max(left, damping * change)
            v, told = w.scopes[e], (1.0 - damping) * change
            for j in range(w.edge_starts[v], w.edge_starts[v + 1]):
                other = w.factor_of[w.edges[j]]
                if other != m and told > 0.0:
                    lift(heap, half, other, heap[half + other] + told)
        lift(heap, half, m, left)
    return heap[1]


@kernel
def beliefs(w, r, maximize, variables, factors):
    """Fill in normalized beliefs of variables and of factors, and give Bethe's estimate of log Z (without the scale of tables).

    It is Σ log Z_v + Σ log Z_m − Σ log Z_e with the normalizers of Π r, f Π q and q · r; maxima in place of sums if asked for.
    """
    q = np.empty(len(r))
    total = 0.0
    for v in range(len(w.cards)):
        a, b = w.state_starts[v], w.state_starts[v + 1]
        total += multiply_into(w, v, -1, r, variables, a)
        total += np.log(weigh(variables, a, b, maximize))
    for e in range(len(w.scopes)):
        start, v = w.message_starts[e], w.scopes[e]
        multiply_into(w, v, e, r, q, start)
        normalize(q, start, w.message_starts[e + 1])
        z = 0.0
        for i in range(start, w.message_starts[e + 1]):
            z = max(z, q[i] * r[i]) if maximize else z + q[i] * r[i]
        total -= np.log(z)
    for m in range(len(w.table_starts) - 1):
        a, b = w.table_starts[m], w.table_starts[m + 1]
        first = w.scope_starts[m]
        for t in range(a, b):
            value, rest = w.tables[t], t - a
            for e in range(w.scope_starts[m + 1] - 1, first - 1, -1):
                k = w.cards[w.scopes[e]]
                value *= q[w.message_starts[e] + rest % k]
                rest //= k
            factors[t] = value
        total += np.log(weigh(factors, a, b, maximize))
    return total


@kernel
def weigh(x, a, b, maximize):
    """Normalize x[a:b] to the sum one; give what its sum, or its maximum, was."""
    peak = 0.0
    for i in range(a, b):
        peak = max(peak, x[i])
    total = normalize(x, a, b)
    return peak if maximize else total


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
    """Choose states one variable after another: the best given those chosen, for max-product messages.

    Each factor counts at its maximum over the variables not chosen, weighed by their messages. On a tree, outward from a root,
    that is a maximizer even if there are several.
    """
    q, score = np.empty(len(r)), np.empty(len(w.seen))
    digits = np.empty(len(w.scopes) + 1, np.int64)
    for e in range(len(w.scopes)):
        multiply_into(w, w.scopes[e], e, r, q, w.message_starts[e])
        normalize(q, w.message_starts[e], w.message_starts[e + 1])
    for v in order:
        k = w.cards[v]
        for x in range(k):
            score[x] = w.seen[w.state_starts[v] + x]
        for i in range(w.edge_starts[v], w.edge_starts[v + 1]):
            m = w.factor_of[w.edges[i]]
            best_of_factor(w, m, v, q, states, digits, score, k)
        best = 0
        for x in range(1, k):
            if score[x] > score[best]:
                best = x
        states[v] = best


@kernel
def best_of_factor(w, m, v, q, states, digits, score, k):
    """Multiply the scores of v's states by what factor m can still reach."""
    first, n, here = w.scope_starts[m], w.scope_starts[m + 1] - w.scope_starts[m], 0
    reach = np.zeros(k)
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
                    value = 0.0
                    break
            else:
                value *= q[w.message_starts[first + p] + digits[p]]
        reach[digits[here]] = max(reach[digits[here]], value)
        p = n - 1
        while p >= 0:
            digits[p] += 1
            if digits[p] < w.cards[w.scopes[first + p]]:
                break
            digits[p] = 0
            p -= 1
    peak = 0.0
    for x in range(k):
        score[x] *= reach[x]
        peak = max(peak, score[x])
    if peak > 0.0:
        for x in range(k):
            score[x] /= peak
