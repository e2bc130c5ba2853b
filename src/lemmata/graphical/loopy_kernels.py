"""Kernels of loopy belief propagation: messages over the edges of a factor graph, in flat arrays.

Edge e joins a factor to the e-th entry of `scopes`; its messages, both ways, are at message_starts[e] and on, normalized to the
sum one. Everything that does not change stands in a `Wiring`. A kernel returns the largest change it found, or −1 if it cannot
go on. With plain numbers that is so when a product of positive numbers falls below FLOOR, or a message has no mass left: the
caller then goes on with `logs`, where tables, evidence and messages are all logarithms and no product is out of range. There a
message without mass means that no assignment has any. So in both a message is 0 only where no assignment can be.
"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core.kernel import kernel

SMALL = 1e-150  # a product of messages is scaled up below this: two such numbers can still be multiplied
FLOOR = 1e-250  # what is less needs logarithms


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
def times(a, b, logs):
    """Multiply."""
    return a + b if logs else a * b


@kernel
def plus(a, b, maximize, logs):
    """Add, or take the larger."""
    if maximize:
        return max(a, b)
    if not logs:
        return a + b
    low, high = min(a, b), max(a, b)
    return high if low == -np.inf else high + np.log1p(np.exp(low - high))


@kernel
def normalize(x, a, b, logs):
    """Divide x[a:b] by its sum, if it has one, and give the sum."""
    if logs:
        total = -np.inf
        for i in range(a, b):
            total = plus(total, x[i], False, True)
        if total > -np.inf:
            for i in range(a, b):
                x[i] -= total
        return total
    total = 0.0
    for i in range(a, b):
        total += x[i]
    if total > 0.0:
        for i in range(a, b):
            x[i] /= total
    return total


@kernel
def multiply_into(w, v, skip, r, out, at, logs):
    """Multiply what is seen of variable v and factors' messages, but that of edge `skip`.

    Give the log of a scale left out, and whether no product of positive numbers came too near to 0.
    """
    k, scale, safe = w.cards[v], 0.0, True
    for x in range(k):
        out[at + x] = w.seen[w.state_starts[v] + x]
    for i in range(w.edge_starts[v], w.edge_starts[v + 1]):
        e = w.edges[i]
        if e == skip:
            continue
        start, peak = w.message_starts[e], 0.0
        if logs:
            for x in range(k):
                out[at + x] += r[start + x]
            continue
        for x in range(k):
            value = out[at + x] * r[start + x]
            if value < FLOOR and out[at + x] > 0.0 and r[start + x] > 0.0:
                safe = False
            out[at + x] = value
            peak = max(peak, value)
        if 0.0 < peak < SMALL:
            scale += np.log(peak)
            for x in range(k):
                out[at + x] /= peak
    return scale, safe


@kernel
def carry(room, r, start, k, logs):
    """Multiply a running product by a message; tell whether no product of positive numbers came too near to 0."""
    peak, safe = 0.0, True
    if logs:
        for x in range(k):
            room[x] += r[start + x]
        return safe
    for x in range(k):
        value = room[x] * r[start + x]
        if value < FLOOR and room[x] > 0.0 and r[start + x] > 0.0:
            safe = False
        room[x] = value
        peak = max(peak, value)
    if 0.0 < peak < SMALL:
        for x in range(k):
            room[x] /= peak
    return safe


@kernel
def to_factors(w, v, r, q, room, logs):
    """Find q of all edges of variable v, each without the edge's own message: products from the left, times from the right."""
    k, first, last = w.cards[v], w.edge_starts[v], w.edge_starts[v + 1]
    safe = True
    for x in range(k):
        room[x] = w.seen[w.state_starts[v] + x]
    for i in range(first, last):
        start = w.message_starts[w.edges[i]]
        for x in range(k):
            q[start + x] = room[x]
        safe = carry(room, r, start, k, logs) and safe
    for x in range(k):
        room[x] = 0.0 if logs else 1.0
    for i in range(last - 1, first - 1, -1):
        start = w.message_starts[w.edges[i]]
        for x in range(k):
            value = times(q[start + x], room[x], logs)
            if not logs and value < FLOOR and q[start + x] > 0.0 and room[x] > 0.0:
                safe = False
            q[start + x] = value
        safe = carry(room, r, start, k, logs) and safe
        safe = normalize(q, start, start + k, logs) > (-np.inf if logs else 0.0) and safe
    return safe


@kernel
def to_variables(w, m, q, r, out, maximize, logs, digits, partial):
    """Find r of all edges of factor m: its table times the other variables' messages, summed or maximized."""
    first, n = w.scope_starts[m], w.scope_starts[m + 1] - w.scope_starts[m]
    begin, nothing = w.table_starts[m], -np.inf if logs else 0.0
    if n == 0:
        return w.tables[begin] > nothing
    for i in range(w.message_starts[first], w.message_starts[first + n]):
        out[i] = nothing
    if n == 2 and not logs:
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
            if f > nothing:
                for p in range(n):
                    partial[p] = f
                    f = times(f, q[w.message_starts[first + p] + digits[p]], logs)
                after = 0.0 if logs else 1.0
                for p in range(n - 1, -1, -1):
                    at = w.message_starts[first + p] + digits[p]
                    out[at] = plus(out[at], times(partial[p], after, logs), maximize, logs)
                    after = times(after, q[at], logs)
            count_up(w, first, n, digits)
    if not logs:
        for i in range(w.message_starts[first], w.message_starts[first + n]):  # what was 0 before is known to be
            if out[i] < FLOOR and (out[i] > 0.0 or r[i] > 0.0) and lost(w, m, q, out, digits):
                return False
    safe = True
    for e in range(first, first + n):
        safe = normalize(out, w.message_starts[e], w.message_starts[e + 1], logs) > nothing and safe
    return safe


@kernel
def count_up(w, first, n, digits):
    """Go to the next entry of a table, the last variable fastest."""
    p = n - 1
    while p >= 0:
        digits[p] += 1
        if digits[p] < w.cards[w.scopes[first + p]]:
            break
        digits[p] = 0
        p -= 1


@kernel
def lost(w, m, q, out, digits):
    """Tell whether a message of factor m is all but 0 at a state that has positive products."""
    first, n = w.scope_starts[m], w.scope_starts[m + 1] - w.scope_starts[m]
    for p in range(n):
        digits[p] = 0
    for t in range(w.table_starts[m], w.table_starts[m + 1]):
        if w.tables[t] > 0.0:
            zeros = 0
            for p in range(n):
                zeros += q[w.message_starts[first + p] + digits[p]] == 0.0
            for p in range(n):
                at = w.message_starts[first + p] + digits[p]
                if out[at] < FLOOR and zeros == int(q[at] == 0.0):
                    return True
        count_up(w, first, n, digits)
    return False


@kernel
def moved(new, old, logs):
    """Give the distance of two entries of a message; of logarithms, in units of the larger of 1 and their size."""
    if new == old:
        return 0.0
    if not logs:
        return abs(new - old)
    return min(abs(new - old) / max(1.0, abs(old)), 1.0) if min(new, old) > -np.inf else 1.0


@kernel
def mixed(new, old, damping, logs):
    """Keep a part of the old message; of logarithms, where −inf stays what it is."""
    if logs and (damping == 0.0 or damping == 1.0 or new == -np.inf):
        return old if damping == 1.0 else new
    return (1.0 - damping) * new + damping * old


@kernel
def flood(w, r, damping, maximize, logs):
    """Send all messages at once: r from q from the r before. With damping 1 nothing changes but what is returned."""
    most = 1
    for v in range(len(w.cards)):
        most = max(most, w.cards[v])
    n = len(w.table_starts) - 1
    q, fresh, room = np.empty(len(r)), np.empty(len(r)), np.empty(most)
    digits, partial = np.empty(len(w.scopes) + 1, np.int64), np.empty(len(w.scopes) + 1)
    for v in range(len(w.cards)):
        if not to_factors(w, v, r, q, room, logs):
            return -1.0
    for m in range(n):
        if not to_variables(w, m, q, r, fresh, maximize, logs, digits, partial):
            return -1.0
    change = 0.0
    for i in range(len(r)):
        change = max(change, moved(fresh[i], r[i], logs))
        r[i] = mixed(fresh[i], r[i], damping, logs)
    return change


@kernel
def refresh(w, m, r, q, fresh, maximize, logs, digits, partial):
    """Find the messages of one factor from the newest of its neighbors."""
    for e in range(w.scope_starts[m], w.scope_starts[m + 1]):
        start = w.message_starts[e]
        _, safe = multiply_into(w, w.scopes[e], e, r, q, start, logs)
        if not (normalize(q, start, w.message_starts[e + 1], logs) > (-np.inf if logs else 0.0) and safe):
            return False
    return to_variables(w, m, q, r, fresh, maximize, logs, digits, partial)


@kernel
def sweep(w, order, r, damping, maximize, logs):
    """Send the messages of one factor after another, from the last of an order to the first and back."""
    q, fresh = np.empty(len(r)), np.empty(len(r))
    digits, partial = np.empty(len(w.scopes) + 1, np.int64), np.empty(len(w.scopes) + 1)
    n, change = len(order), 0.0
    for turn in range(2 * n):
        m = order[n - 1 - turn] if turn < n else order[turn - n]
        if not refresh(w, m, r, q, fresh, maximize, logs, digits, partial):
            return -1.0
        for i in range(w.message_starts[w.scope_starts[m]], w.message_starts[w.scope_starts[m + 1]]):
            change = max(change, moved(fresh[i], r[i], logs))
            r[i] = mixed(fresh[i], r[i], damping, logs)
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
def chase(w, heap, r, damping, maximize, logs, tol):
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
        if not refresh(w, m, r, q, fresh, maximize, logs, digits, partial):
            return -1.0
        left = 0.0
        for e in range(w.scope_starts[m], w.scope_starts[m + 1]):
            change = 0.0
            for j in range(w.message_starts[e], w.message_starts[e + 1]):
                change = max(change, moved(fresh[j], r[j], logs))
                r[j] = mixed(fresh[j], r[j], damping, logs)
            left = max(left, damping * change)
            v, told = w.scopes[e], (1.0 - damping) * change
            for j in range(w.edge_starts[v], w.edge_starts[v + 1]):
                other = w.factor_of[w.edges[j]]
                if other != m and told > 0.0:
                    lift(heap, half, other, heap[half + other] + told)
        lift(heap, half, m, left)
    return heap[1]
