"""Eliminating the vertices of a graph one after another, in kernels.

To eliminate v is to join all its neighbors with one another and to remove it; the bag of v is v and its neighbors at that time.
What an elimination would cost is kept up to date for every vertex, never computed anew. With w the weight of a vertex and

    fill(u) = Σ w_a w_b  over pairs a, b of neighbors of u that are not neighbors of one another,

eliminating v takes w_v Σ w_c from fill(u) of each neighbor u, over neighbors c of u that are none of v; and a new edge a–b
takes w_a w_b from every common neighbor, and adds w_b Σ w_c to fill(a), over neighbors c of a that are none of b, likewise for
b. A heap with places gives the cheapest vertex. Lists of neighbors lie in one pool, and move to its end when they outgrow their
room.
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform

FILL, DEGREE, GIVEN = 0, 1, 2  # what is smallest of the vertex that is eliminated next


@kernel
def neighbors_of_scopes(n, scope_starts, scopes):
    """Join all variables of a scope; return starts (n + 1) and neighbors."""
    counts = np.zeros(n + 1, dtype=np.int64)
    for k in range(scopes.size):
        counts[scopes[k] + 1] += 1
    first = np.cumsum(counts)
    member = np.empty(scopes.size, dtype=np.int64)
    place = first[:n].copy()
    for m in range(scope_starts.size - 1):
        for k in range(scope_starts[m], scope_starts[m + 1]):
            v = scopes[k]
            member[place[v]] = m
            place[v] += 1
    starts = np.zeros(n + 1, dtype=np.int64)
    found = np.empty(max(4 * scopes.size, 16), dtype=np.int64)
    seen = np.full(n, -1, dtype=np.int64)
    used = 0
    for v in range(n):
        seen[v] = v
        for i in range(first[v], first[v + 1]):
            m = member[i]
            for k in range(scope_starts[m], scope_starts[m + 1]):
                u = scopes[k]
                if seen[u] != v:
                    seen[u] = v
                    if used == found.size:
                        found = grown(found, used)
                    found[used] = u
                    used += 1
        starts[v + 1] = used
    return starts, found[:used]


@kernel
def grown(a, used):
    """Give an array with twice the room."""
    b = np.empty(2 * a.size + 16, dtype=a.dtype)
    b[:used] = a[:used]
    return b


@kernel
def sift_up(heap, place, key, i):
    """Move an entry of the heap up to where it belongs."""
    v = heap[i]
    while i > 0:
        above = (i - 1) >> 1
        u = heap[above]
        if key[u] < key[v] or (key[u] == key[v] and u < v):
            break
        heap[i] = u
        place[u] = i
        i = above
    heap[i] = v
    place[v] = i


@kernel
def sift_down(heap, place, key, size, i):
    """Move an entry of the heap down to where it belongs."""
    v = heap[i]
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size:
            a, b = heap[child], heap[child + 1]
            if key[b] < key[a] or (key[b] == key[a] and b < a):
                child += 1
        u = heap[child]
        if key[v] < key[u] or (key[v] == key[u] and v < u):
            break
        heap[i] = u
        place[u] = i
        i = child
    heap[i] = v
    place[v] = i


@kernel
def initial_fill(starts, neighbors, weight):
    """Compute fill of every vertex from the graph."""
    n = starts.size - 1
    fill = np.zeros(n)
    seen = np.full(n, -1, dtype=np.int64)
    for u in range(n):
        for i in range(starts[u], starts[u + 1]):
            a = neighbors[i]
            seen[a] = a
            for j in range(starts[a], starts[a + 1]):
                seen[neighbors[j]] = a
            for j in range(i + 1, starts[u + 1]):
                if seen[neighbors[j]] != a:
                    fill[u] += weight[a] * weight[neighbors[j]]
    return fill


@kernel
def noisy(score, noise, state):
    """Multiply a score by up to 1 + noise, and add what breaks ties."""
    return score * (1.0 + noise * next_uniform(state)) + 1e-9 * noise * next_uniform(state) if noise > 0.0 else score


@kernel
def eliminate_all(starts, neighbors, weight, fill0, rule, given, noise, state, log_card, limit):
    """Eliminate all vertices; return the order, the starts of the bags, the other members of each, and whether it is whole.

    Parameters
    ----------
    weight : Of each vertex in fill; or what a vertex adds to the degree of its neighbors.
    fill0 : What `initial_fill` gives.
    given : The order, if that is the rule.
    noise, state : Each score is multiplied by up to 1 + noise, at random, and ties are broken at random; 0 for none.
    limit : Give up when a bag has more than exp(limit) states.
    """
    n = starts.size - 1
    begin, length = starts[:n].copy(), starts[1:] - starts[:n]
    room = length.copy()
    pool, used = neighbors.copy(), neighbors.size
    fill, key = fill0.copy(), np.zeros(n)
    heap, place, size = np.arange(n), np.arange(n), n
    if rule == DEGREE:
        for v in range(n):
            total = 0.0
            for i in range(begin[v], begin[v] + length[v]):
                total += weight[pool[i]]
            fill[v] = total
    for v in range(n):
        key[v] = noisy(fill[v], noise, state)
    if rule != GIVEN:
        for i in range(n // 2, -1, -1):
            if i < n:
                sift_down(heap, place, key, size, i)
    order, gone = np.empty(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    bag_starts = np.zeros(n + 1, dtype=np.int64)
    bags = np.empty(max(2 * neighbors.size, 16), dtype=np.int64)
    around, near = np.full(n, -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    touched, stamp, round_ = np.empty(n, dtype=np.int64), np.full(n, -1, dtype=np.int64), 0
    for step in range(n):
        if rule == GIVEN:
            v = given[step]
        else:
            v = heap[0]
            size -= 1
            heap[0] = heap[size]
            place[heap[0]] = 0
            if size > 0:
                sift_down(heap, place, key, size, 0)
        order[step] = v
        gone[v] = True
        degree, b = length[v], bag_starts[step]
        while b + degree > bags.size:
            bags = grown(bags, b)
        states = log_card[v]
        around[v] = v
        for i in range(degree):
            u = pool[begin[v] + i]
            bags[b + i] = u
            around[u] = v
            states += log_card[u]
        bag_starts[step + 1] = b + degree
        if states > limit:
            return order, bag_starts, bags, False
        n_touched = 0
        for i in range(degree):  # v leaves
            u = bags[b + i]
            outside, at = 0.0, -1
            for j in range(begin[u], begin[u] + length[u]):
                c = pool[j]
                if around[c] != v:
                    outside += weight[c]
                elif c == v:
                    at = j
            pool[at] = pool[begin[u] + length[u] - 1]
            length[u] -= 1
            fill[u] -= weight[v] if rule == DEGREE else weight[v] * outside
            touched[n_touched] = u
            stamp[u] = step
            n_touched += 1
        for i in range(degree):  # the neighbors are joined
            a = bags[b + i]
            round_ += 1
            near[a] = round_
            total = 0.0
            for j in range(begin[a], begin[a] + length[a]):
                c = pool[j]
                near[c] = round_
                total += weight[c]
            for k in range(i + 1, degree):
                d = bags[b + k]
                if near[d] == round_:
                    continue
                common, other = 0.0, 0.0
                for j in range(begin[d], begin[d] + length[d]):
                    c = pool[j]
                    if near[c] == round_:
                        common += weight[c]
                        if rule != DEGREE:
                            fill[c] -= weight[a] * weight[d]
                            if stamp[c] != step:
                                stamp[c] = step
                                touched[n_touched] = c
                                n_touched += 1
                    else:
                        other += weight[c]
                if rule == DEGREE:
                    fill[a] += weight[d]
                    fill[d] += weight[a]
                else:
                    fill[a] += weight[d] * (total - common)
                    fill[d] += weight[a] * other
                for p, q in ((a, d), (d, a)):
                    if length[p] == room[p]:
                        more = 2 * room[p] + 4
                        while used + more > pool.size:
                            pool = grown(pool, used)
                        for j in range(length[p]):
                            pool[used + j] = pool[begin[p] + j]
                        begin[p], room[p] = used, more
                        used += more
                    pool[begin[p] + length[p]] = q
                    length[p] += 1
                near[d] = round_
                total += weight[d]
        if rule != GIVEN:
            for i in range(n_touched):
                u = touched[i]
                new = noisy(fill[u], noise, state)
                old, key[u] = key[u], new
                if new < old:
                    sift_up(heap, place, key, place[u])
                elif new > old:
                    sift_down(heap, place, key, size, place[u])
    return order, bag_starts, bags, True


@kernel
def gather_cliques(order, bag_starts, bags, cards):
    """Turn the bags of an elimination into a forest of maximal cliques.

    A vertex whose bag is what a bag before it left behind has no clique of its own: it is one more residual variable of that.

    Returns
    -------
    starts, members : Variables of each clique: the residual ones in the order of elimination, then its separator likewise.
        Children come before their parents.
    n_residual, parent : Number of residual variables of each clique, and its parent; -1 for a root.
    entries : Numbers in all tables.
    """
    n = order.size
    position = np.empty(n, dtype=np.int64)
    for i in range(n):
        position[order[i]] = i
    up = np.full(n, -1, dtype=np.int64)  # position of the earliest other member of the bag
    for i in range(n):
        first = n
        for k in range(bag_starts[i], bag_starts[i + 1]):
            first = min(first, position[bags[k]])
        up[i] = first if first < n else -1
    below = np.full(n, -1, dtype=np.int64)  # a bag that holds this one and one vertex more
    for i in range(n):
        p = up[i]
        if p >= 0 and below[p] < 0 and bag_starts[i + 1] - bag_starts[i] == bag_starts[p + 1] - bag_starts[p] + 1:
            below[p] = i
    merged = np.full(n, -1, dtype=np.int64)  # the bag above that continues this clique
    for i in range(n):
        if below[i] >= 0:
            merged[below[i]] = i
    clique_of = np.full(n, -1, dtype=np.int64)
    n_cliques = 0
    for i in range(n):
        if merged[i] < 0:  # the top of a clique
            j = i
            while j >= 0:
                clique_of[j] = n_cliques
                j = below[j]
            n_cliques += 1
    starts = np.zeros(n_cliques + 1, dtype=np.int64)
    n_residual, parent = np.zeros(n_cliques, dtype=np.int64), np.full(n_cliques, -1, dtype=np.int64)
    for i in range(n):
        c = clique_of[i]
        n_residual[c] += 1
        if merged[i] < 0:
            starts[c + 1] = bag_starts[i + 1] - bag_starts[i]
            parent[c] = clique_of[up[i]] if up[i] >= 0 else -1
    for c in range(n_cliques):
        starts[c + 1] += starts[c] + n_residual[c]
    members = np.empty(starts[n_cliques], dtype=np.int64)
    filled = starts[:n_cliques].copy()
    for i in range(n):
        c = clique_of[i]
        members[filled[c]] = i  # positions first: sorted they are in the order of elimination
        filled[c] += 1
        if merged[i] < 0:
            for k in range(bag_starts[i], bag_starts[i + 1]):
                members[filled[c] + k - bag_starts[i]] = position[bags[k]]
    entries = 0.0
    for c in range(n_cliques):
        a, b = starts[c] + n_residual[c], starts[c + 1]
        for k in range(a + 1, b):  # insertion: separators are short
            x, j = members[k], k
            while j > a and members[j - 1] > x:
                members[j] = members[j - 1]
                j -= 1
            members[j] = x
        size = 1.0
        for k in range(starts[c], b):
            members[k] = order[members[k]]
            size *= cards[members[k]]
        entries += size
    return starts, members, n_residual, parent, entries
