"""Where to put the nodes of a graph: springs for lines, and tidy trees; `layered_layout` has layers for arrows.

`stress` places nodes as far apart as their paths are long, by
majorization (Gansner, Koren & North 2004) from classical scaling. `tidy` hangs the children of a tree below it, as close as
their outlines allow (Reingold & Tilford 1981).

All are deterministic, in the units of the sizes that they are given, with y upwards.
"""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, shortest_path
from scipy.spatial.distance import cdist

DIRECTIONS = 16  # in which a place beside a node is looked for
MAJORIZATIONS = 300
SETTLED = 1e-5  # relative change of the stress that ends the search


class Layout(NamedTuple):
    """Centers of the nodes (n, 2), and for each edge the points that it goes through, from end to end."""

    places: np.ndarray
    routes: list[np.ndarray]


def stress(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: float = 26.0) -> np.ndarray:
    """Place the nodes of an undirected graph so that distances are like lengths of paths; the long side lies flat.

    Parameters
    ----------
    sizes : (n, 2), width and height of each node, which no other one will overlap.
    gap : Length of an edge between the outlines of its nodes.

    Examples
    --------
    >>> x, y = stress(3, [(0, 1), (1, 2)], np.full((3, 2), 10.0), gap=10.0).T
    >>> x.round(3).tolist(), float(np.ptp(y).round(6))
    ([5.0, 25.0, 45.0], 0.0)
    """
    return by_parts(n, edges, sizes, (1.5 * gap, 1.5 * gap), lambda m, near, own, _: _stress_part(m, near, own, gap)).places


def _stress_part(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: float) -> Layout:
    if n == 1:
        return Layout(np.zeros((1, 2)), [])
    a, b = np.array(edges).T
    reach = sizes.mean(axis=1) / 2
    length = reach[a] + reach[b] + gap
    goal = shortest_path(coo_array((length, (a, b)), shape=(n, n)).tocsr(), directed=False)
    square = goal**2
    middle = square - square.mean(axis=0) - square.mean(axis=1)[:, None] + square.mean()
    values, vectors = np.linalg.eigh(-middle / 2)
    places = vectors[:, [-1, -2]] * np.sqrt(np.maximum(values[[-1, -2]], 0)) if n > 2 else np.outer([0, goal[0, 1]], [1, 0])
    places = places * np.where(places[np.abs(places).argmax(axis=0), [0, 1]] < 0, -1, 1)  # a vector has no sign of its own
    if n > 3 and values[-2] > 1e-9 * values[-1]:
        places = _majorized(places, goal)
    places = _turned(places)
    return Layout(_apart(places, sizes, gap / 3), [places[[i, j]] for i, j in edges])


def _majorized(places: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Bring Σ (distance − goal)² / goal² down; no step raises it."""
    n = len(places)
    with np.errstate(divide="ignore"):
        weight = np.where(goal > 0, goal**-2.0, 0.0)
    laplacian = np.diag(weight.sum(axis=1)) - weight + 1.0 / n  # the mean is held, so that it can be inverted
    inverse = np.linalg.inv(laplacian)
    pull, last = weight * goal, np.inf
    noise = np.random.default_rng(0).normal(size=places.shape)  # coinciding nodes have no direction to part in
    places = places + 1e-3 * goal[goal > 0].min() * noise
    for _ in range(MAJORIZATIONS):
        distance = cdist(places, places)
        value = float((weight * (distance - goal) ** 2).sum())
        if last - value <= SETTLED * value:
            break
        last = value
        ratio = pull / np.maximum(distance, 1e-9)
        np.fill_diagonal(ratio, 0.0)
        places = inverse @ (ratio.sum(axis=1)[:, None] * places - ratio @ places)
    return places


def _turned(places: np.ndarray) -> np.ndarray:
    """Turn places so that the longest extent is horizontal, and the first node on the left."""
    centered = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    turned = centered @ axes.T
    return turned * np.where(turned[0] > 0, -1, 1) * [1, -1]


def _apart(places: np.ndarray, sizes: np.ndarray, gap: float) -> np.ndarray:
    """Push overlapping nodes apart along the way that is shorter, until none overlap."""
    places = places.copy()
    need = (sizes[:, None] + sizes[None]) / 2 + gap
    for _ in range(200):
        way = places[:, None] - places[None]
        lack = need - np.abs(way)
        lack[np.arange(len(places)), np.arange(len(places))] = -1.0
        bad = (lack > 1e-6).all(axis=2)
        if not bad.any():
            break
        along = lack[:, :, 0] <= lack[:, :, 1]
        sign = np.where(way == 0, np.sign(np.arange(len(places))[:, None] - np.arange(len(places)))[:, :, None], np.sign(way))
        push = np.where(bad[:, :, None] & np.stack([along, ~along], axis=2), lack * sign, 0.0)
        places += 0.5 * push.sum(axis=1) / np.maximum(bad.sum(axis=1), 1)[:, None]
    return places


def beside(
    places: np.ndarray, sizes: np.ndarray, holders: list[int], own: np.ndarray, edges: list[tuple[int, int]]
) -> np.ndarray:
    """Put something small beside some nodes each, where there is most room.

    Parameters
    ----------
    holders : Node that each of the small ones belongs to.
    own : Width and height of a small one.

    Examples
    --------
    >>> row = np.array([[0.0, 0.0], [20.0, 0.0], [40.0, 0.0]])
    >>> beside(row, np.full((3, 2), 10.0), [1], np.array([4.0, 4.0]), [(0, 1), (1, 2)]).round(6)
    array([[20., 17.]])
    """
    near: list[list[int]] = [[] for _ in places]
    for a, b in edges:
        near[a].append(b)
        near[b].append(a)
    angles = np.pi / 2 - 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
    ways = np.column_stack([np.cos(angles), np.sin(angles)])
    taken, found = places, []
    for holder in holders:
        half = (sizes[holder] + own) / 2
        with np.errstate(divide="ignore"):
            reach = (half / np.maximum(np.abs(ways), 1e-12)).min(axis=1) + 10.0  # points between outlines
        spots = places[holder] + reach[:, None] * ways
        others = np.delete(taken, holder, axis=0)
        room = cdist(spots, others).min(axis=1) if len(others) else np.full(DIRECTIONS, 1e3)
        for other in near[holder]:  # and away from lines
            way = places[other] - places[holder]
            way = way / max(np.linalg.norm(way), 1e-9)
            room = np.minimum(room, reach * np.where(ways @ way > 0, np.abs(ways @ [way[1], -way[0]]), 1.0))
        best = spots[np.argmax(room.round(6))]
        found.append(best)
        taken = np.vstack([taken, best])
    return np.array(found).reshape(-1, 2)


def tidy(parents: list[int], breadths: np.ndarray, gap: float = 14.0) -> np.ndarray:
    """Place the nodes of a forest across its direction of growth: children centered under parents, subtrees close together.

    Parameters
    ----------
    parents : Number of the node that each one hangs on; -1 for a root.
    breadths : Room that each node needs across.

    Examples
    --------
    >>> tidy([-1, 0, 0, 1], np.full(4, 10.0), gap=10.0)
    array([15.,  5., 25.,  5.])
    """
    n = len(parents)
    children: list[list[int]] = [[] for _ in range(n + 1)]
    for child, parent in enumerate(parents):
        children[parent if parent >= 0 else n].append(child)
    shift = np.zeros(n + 1)  # of each node against its parent
    outline: dict[int, list[tuple[float, float]]] = {}  # of each subtree: how far it reaches to both sides in each generation

    for node in _upwards(children, n):
        sides: list[tuple[float, float]] = []
        middles: list[float] = []
        for child in children[node]:
            own = outline.pop(child)
            move = max((sides[k][1] - own[k][0] + gap for k in range(min(len(sides), len(own)))), default=0.0)
            middles.append(move)
            moved = [(low + move, high + move) for low, high in own]
            sides = [
                (sides[k][0] if k < len(sides) else moved[k][0], moved[k][1] if k < len(moved) else sides[k][1])
                for k in range(max(len(sides), len(moved)))
            ]
        center = (middles[0] + middles[-1]) / 2 if middles else 0.0
        for child, move in zip(children[node], middles, strict=True):
            shift[child] = move - center
        half = breadths[node] / 2 if node < n else 0.0
        outline[node] = [(-half, half), *[(low - center, high - center) for low, high in sides]]
    places = np.zeros(n + 1)
    for node in reversed(_upwards(children, n)):
        for child in children[node]:
            places[child] = places[node] + shift[child]
    return places[:n] - (places[:n] - breadths / 2).min()


def _upwards(children: list[list[int]], root: int) -> list[int]:
    """List nodes, children before parents."""
    order = [root]
    for node in order:
        order += children[node]
    return order[::-1]


def by_parts(n: int, edges: list[tuple[int, int]], sizes: np.ndarray, gap: tuple[float, float], lay_out) -> Layout:
    """Lay out each connected part of a graph, and set the parts side by side, in rows about as wide as all are high."""
    ends = np.array(edges, dtype=int).reshape(-1, 2)
    _, label = connected_components(coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n, n)), directed=False)
    parts = []
    for part in range(label.max(initial=-1) + 1):
        nodes = np.flatnonzero(label == part)
        number = {int(v): i for i, v in enumerate(nodes)}
        own = [e for e, (a, _) in enumerate(edges) if label[a] == part]
        found = lay_out(len(nodes), [(number[edges[e][0]], number[edges[e][1]]) for e in own], sizes[nodes], gap)
        low, high = (found.places - sizes[nodes] / 2).min(axis=0), (found.places + sizes[nodes] / 2).max(axis=0)
        parts.append((nodes, own, found, low, high - low))
    wide = max([*(size[0] for *_, size in parts), 1.6 * np.sqrt(sum(np.prod(size + gap) for *_, size in parts))], default=0.0)
    places, routes = np.zeros((n, 2)), [np.zeros((0, 2))] * len(edges)
    x = top = depth = 0.0
    for nodes, own, found, low, size in sorted(parts, key=lambda part: (-len(part[0]), part[0][0])):
        if x > 0 and x + size[0] > wide + 1e-9:
            x, top, depth = 0.0, top - depth - gap[1], 0.0
        move = np.array([x - low[0], top - low[1] - size[1]])
        places[nodes] = found.places + move
        for e, route in zip(own, found.routes, strict=True):
            routes[e] = route + move
        x, depth = x + size[0] + gap[0], max(depth, size[1])
    base = (places - sizes / 2).min(axis=0)
    return Layout(places - base, [route - base for route in routes])
