"""Where to put the nodes of a graph with arrows: in layers, so that all arrows point down.

The way of Sugiyama, Tagawa & Toda (1981) with the optimizations of Gansner, Koutsofios, North & Vo (1993): arrows have the
least total length, which is a linear program whose vertices are whole numbers; an arrow over several layers passes through
points of its own in those between; medians of neighbors, and exchanges, take crossings away; and a second linear program
straightens the arrows without nodes that overlap.
"""

from bisect import bisect_right, insort
from itertools import pairwise

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array

from lemmata.plot.graph_layout import Layout, by_parts

# Price of a bend between two nodes, a node and a point between, two points: long arrows are straight.
STRAIGHT = (1.0, 2.0, 8.0)
PAGE = 1.6  # width of a layer against the side of a square that has room for all nodes, beyond which it is too wide
SWEEPS = 16  # down and up, in search of fewer crossings
UPRIGHT = 8.0  # points to the side that a short way does without
MOST_LAYERED = 1200  # nodes and points between them, beyond which exchanges and straightening take too long


def layered(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: tuple[float, float] = (16.0, 34.0)) -> Layout:
    """Lay out a graph without directed cycles, arrows downwards; parts that hang together side by side.

    Parameters
    ----------
    edges : Pairs (from, to) of numbers of nodes.
    sizes : (n, 2), width and height of each node.
    gap : Least space between neighbors in a layer, and between layers.

    Examples
    --------
    >>> layered(3, [(0, 2), (1, 2)], np.full((3, 2), 10.0), gap=(10.0, 20.0)).places.round(6)
    array([[ 5., 35.],
           [25., 35.],
           [15.,  5.]])
    """
    return by_parts(n, edges, sizes, gap, _layered_part)


def _layered_part(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: tuple[float, float]) -> Layout:
    level = narrowed(layers_of(n, edges), edges, sizes, gap)
    chains, links, depth = [], [], list(level)
    for a, b in edges:
        chain = [a, *range(len(depth), len(depth) + level[b] - level[a] - 1), b]
        depth += range(level[a] + 1, level[b])
        chains.append(chain)
        links += pairwise(chain)
    rows = ordered(depth, links)
    width = np.concatenate([sizes[:, 0], np.zeros(len(depth) - n)])
    x = straightened(rows, links, width, n, gap[0])
    heights = [max((sizes[v, 1] for v in row if v < n), default=0.0) for row in rows]
    spans = np.zeros(len(rows))
    for a, b in links:
        spans[depth[a]] = max(spans[depth[a]], abs(x[a] - x[b]))
    y, middle = 0.0, []
    for height, span in zip(heights, spans, strict=True):
        middle.append(y - height / 2)
        y -= height + min(max(gap[1], 0.16 * span), 2.5 * gap[1])  # long ways sideways are not to be flat
    places = np.column_stack([x[:n], [middle[level[v]] for v in range(n)]])
    ports = _ports(edges, chains, x, sizes)
    routes = []
    for (a, b), chain, (left, right) in zip(edges, chains, ports, strict=True):
        points = [(left, places[a, 1] - sizes[a, 1] / 2), (left, middle[level[a]] - heights[level[a]] / 2)]
        for v in chain[1:-1]:  # straight past the nodes of its layer
            points += [(x[v], middle[depth[v]] + heights[depth[v]] / 2), (x[v], middle[depth[v]] - heights[depth[v]] / 2)]
        points += [(right, middle[level[b]] + heights[level[b]] / 2), (right, places[b, 1] + sizes[b, 1] / 2)]
        route = np.array(points)
        routes.append(route[np.append(True, -np.diff(route[:, 1]) > 1e-9)])
    return Layout(places, routes)


def layers_of(n: int, edges: list[tuple[int, int]]) -> list[int]:
    """Number the layers so that arrows go down and their lengths have the least sum.

    >>> layers_of(4, [(0, 1), (1, 2), (3, 2)])  # the last node is not at the top, but beside the middle
    [0, 1, 2, 1]
    """
    if not edges:
        return [0] * n
    a, b = np.array(edges).T
    rows = np.arange(len(edges))
    signs = np.repeat([1.0, -1.0], len(edges))
    down = coo_array((signs, (np.tile(rows, 2), np.concatenate([a, b]))), shape=(len(edges), n)).tocsr()
    found = linprog(-down.sum(axis=0), A_ub=down, b_ub=-np.ones(len(edges)), bounds=(0, n))
    level = np.rint(found.x).astype(int)
    return (level - level.min()).tolist()


def narrowed(level: list[int], edges: list[tuple[int, int]], sizes: np.ndarray, gap: tuple[float, float]) -> list[int]:
    """Take nodes out of layers that are too wide for a page: those that have room to move down, or up, into shorter ones.

    >>> narrowed([0, 1, 1, 1, 1, 1, 1], [(0, v) for v in range(1, 7)], np.full((7, 2), 10.0), (10.0, 10.0))
    [0, 2, 1, 2, 1, 2, 1]
    """
    level, rooms = list(level), sizes + np.array(gap)
    wide = PAGE * np.sqrt(rooms.prod(axis=1).sum())
    above: list[list[int]] = [[] for _ in level]
    below: list[list[int]] = [[] for _ in level]
    for a, b in edges:
        below[a].append(b)
        above[b].append(a)
    spans: dict[int, float] = {}
    for v, k in enumerate(level):
        spans[k] = spans.get(k, 0.0) + rooms[v, 0]
    for a, b in edges:
        for k in range(level[a] + 1, level[b]):
            spans[k] += 0.7 * gap[0]
    for k in sorted(spans, key=lambda k: -spans[k]):
        free = [v for v in range(len(level)) if level[v] == k and len(above[v]) + len(below[v]) == 1]
        for v in free[::2] + free[1::2]:  # every other one, so that those that stay leave room for the ways to the others
            side = 1 if above[v] else -1
            other = spans.get(k + side, 0.0)
            if spans[k] <= wide or other + rooms[v, 0] > 0.8 * spans[k]:
                continue
            level[v] += side
            spans[k] += 0.7 * gap[0] - rooms[v, 0]
            spans[k + side] = other + rooms[v, 0]
    return [k - min(level) for k in level]


def ordered(depth: list[int], links: list[tuple[int, int]]) -> list[list[int]]:
    """Order the nodes of each layer so that few links cross; links go from one layer to the next.

    >>> ordered([0, 0, 1, 1], [(0, 3), (1, 2)])
    [[0, 1], [3, 2]]
    """
    up: list[list[int]] = [[] for _ in depth]
    down: list[list[int]] = [[] for _ in depth]
    for a, b in links:
        down[a].append(b)
        up[b].append(a)
    best: tuple[int, list[list[int]]] | None = None
    for start in (range(len(depth)), range(len(depth) - 1, -1, -1)):
        rows = _first_order(depth, start, up, down)
        for sweep in range(SWEEPS):
            downwards = sweep % 2 == 0
            near = up if downwards else down
            for k in range(1, len(rows)) if downwards else range(len(rows) - 2, -1, -1):
                rows[k] = _by_median(rows[k], rows[k - 1 if downwards else k + 1], near)
            if len(depth) <= MOST_LAYERED:
                _exchange(rows, up, down)
            found = sum(crossings(rows[k], rows[k + 1], down) for k in range(len(rows) - 1))
            if best is None or found < best[0]:
                best = found, [list(row) for row in rows]
            if best[0] == 0:
                return best[1]
    assert best is not None
    return best[1]


def _first_order(depth: list[int], nodes: range, up: list, down: list) -> list[list[int]]:
    """Walk the graph in depth, so that what hangs together begins side by side."""
    rows: list[list[int]] = [[] for _ in range(max(depth) + 1)]
    seen = [False] * len(depth)
    for node in nodes:
        stack = [node]
        while stack:
            here = stack.pop()
            if not seen[here]:
                seen[here] = True
                rows[depth[here]].append(here)
                stack += [v for v in (*up[here][::-1], *down[here][::-1]) if not seen[v]]
    return rows


def _by_median(row: list[int], other: list[int], near: list[list[int]]) -> list[int]:
    """Sort a layer by the middle of each node's neighbors in the other layer; a node without any stays where it is."""
    place = {v: i for i, v in enumerate(other)}
    keys = {}
    for i, v in enumerate(row):
        at = sorted(place[u] for u in near[v])
        if not at:
            keys[v] = float(i) * len(other) / max(len(row), 1)
        else:
            half = len(at) // 2
            middle = at[half] if len(at) % 2 else (at[half - 1] + at[half]) / 2
            keys[v] = 0.7 * middle + 0.3 * sum(at) / len(at)  # the mean decides between equal medians
    return sorted(row, key=keys.__getitem__)


def _exchange(rows: list[list[int]], up: list, down: list) -> None:
    """Exchange neighbors while that takes crossings away."""
    place = {v: i for row in rows for i, v in enumerate(row)}
    better, rounds = True, 0
    while better and rounds < 8:
        better, rounds = False, rounds + 1
        for row in rows:
            for i in range(len(row) - 1):
                v, w = row[i], row[i + 1]
                gain = 0
                for near in (up, down):
                    if near[v] and near[w]:
                        left, right = sorted(place[u] for u in near[v]), sorted(place[u] for u in near[w])
                        gain += sum(bisect_right(right, u - 1) for u in left) - sum(bisect_right(left, u - 1) for u in right)
                if gain > 0:
                    row[i], row[i + 1] = w, v
                    place[v], place[w] = i + 1, i
                    better = True


def crossings(row: list[int], below: list[int], down: list[list[int]]) -> int:
    """Count the pairs of links between two layers that cross.

    >>> crossings([0, 1], [2, 3], [[3], [2], [], []])
    1
    """
    place = {v: i for i, v in enumerate(below)}
    seen: list[int] = []
    count = 0
    for v in row:
        ends = sorted(place[u] for u in down[v])
        count += sum(len(seen) - bisect_right(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return count


def straightened(rows: list[list[int]], links: list[tuple[int, int]], width: np.ndarray, n: int, gap: float) -> np.ndarray:
    """Place the nodes of each layer, in their order and without overlap, so that links have the least total slant.

    >>> straightened([[0], [1, 2]], [(0, 1), (0, 2)], np.full(3, 10.0), 3, 10.0).round(6)
    array([15.,  5., 25.])
    """
    pairs = [(v, w) for row in rows for v, w in pairwise(row)]
    m, total = len(links), len(width)
    # Points between nodes need less room than nodes do.
    room = [(width[v] + width[w]) / 2 + gap * (0.4 + 0.3 * (v < n) + 0.3 * (w < n)) for v, w in pairs]
    x = np.zeros(total)
    for row in rows:  # as close as they come: a start, and the end where there is nothing to straighten
        for v, w in pairwise(row):
            x[w] = x[v] + (width[v] + width[w]) / 2 + gap
    if m and total <= MOST_LAYERED:
        a, b = np.array(links).T
        price = np.array([STRAIGHT[(u >= n) + (v >= n)] for u, v in links])
        k, e = len(pairs), np.arange(m)
        i = np.concatenate([np.repeat(np.arange(k), 2), k + np.repeat(e, 3), k + m + np.repeat(e, 3)])
        j = np.concatenate(
            [
                np.array(pairs, dtype=int).reshape(-1),
                np.column_stack([a, b, total + e]).ravel(),
                np.column_stack([a, b, total + e]).ravel(),
            ]
        )
        value = np.concatenate([np.tile([1.0, -1.0], k), np.tile([1.0, -1.0, -1.0], m), np.tile([-1.0, 1.0, -1.0], m)])
        limits = coo_array((value, (i, j)), shape=(k + 2 * m, total + m)).tocsr()
        cost = np.concatenate([np.zeros(total), price])
        found = linprog(cost, A_ub=limits, b_ub=np.concatenate([-np.array(room), np.zeros(2 * m)]), bounds=(0, None))
        x = found.x[:total]
    x = _centered(rows, links, x, width, gap, n)
    return x - (x - width / 2).min()


def _centered(rows: list, links: list, x: np.ndarray, width: np.ndarray, gap: float, n: int) -> np.ndarray:
    """Move nodes to the mean of their neighbors as far as their own ones in the layer let them: parents above the middle."""
    near: list[list[int]] = [[] for _ in x]
    for a, b in links:
        near[a].append(b)
        near[b].append(a)
    x = x.copy()
    for _ in range(4):
        for row in [*rows, *rows[::-1]]:
            for i, v in enumerate(row):
                if v >= n or not near[v] or any(u >= n for u in near[v]):
                    continue  # long arrows stay straight
                left = x[row[i - 1]] + (width[row[i - 1]] + width[v]) / 2 + gap if i else -np.inf
                right = x[row[i + 1]] - (width[row[i + 1]] + width[v]) / 2 - gap if i + 1 < len(row) else np.inf
                if left <= right:
                    x[v] = min(max(sum(x[u] for u in near[v]) / len(near[v]), left), right)
    return x


def _ports(edges: list, chains: list, x: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Give where each edge leaves its upper node and meets its lower one: side by side, in the order of the other ends."""
    ports = np.zeros((len(edges), 2))
    for end in (0, 1):
        ways: dict[int, list[tuple[float, int]]] = {}
        for e, chain in enumerate(chains):
            ways.setdefault(edges[e][end], []).append((x[chain[1] if end == 0 else chain[-2]], e))
        for node, found in ways.items():
            found.sort()
            flat = max(sizes[node, 0] - sizes[node, 1], 0.35 * sizes[node, 0])
            step = min(12.0, flat / max(len(found) - 1, 1))
            for i, (_, e) in enumerate(found):
                ports[e, end] = x[node] + step * (i - (len(found) - 1) / 2)
    for e, chain in enumerate(chains):  # nearly upright is upright
        ends = [*ports[e]] if len(chain) == 2 else [*ports[e, :1], x[chain[1]], x[chain[-2]], *ports[e, 1:]]
        for i, j in ((0, 1),) if len(chain) == 2 else ((0, 1), (3, 2)):
            if abs(ends[i] - ends[j]) <= UPRIGHT:
                ports[e, 0 if i == 0 else 1] = (ends[i] + ends[j]) / 2 if len(chain) == 2 else ends[j]
                if len(chain) == 2:
                    ports[e, 1] = ports[e, 0]
    return ports
