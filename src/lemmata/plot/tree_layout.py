"""Where to put the nodes of a decision tree that grows down or to the right, and the lines between them.

A tree is an object with the arrays `children_left` and `children_right`, -1 at leaves.
"""

from typing import Any

import numpy as np

from lemmata.plot.graph_layout import tidy

CORNER = 12.0  # points from the last corner of a line to its child; to the right, from the level above to the first corner


def depths(tree: Any) -> np.ndarray:
    """Count the steps from the root to each node."""
    depth = np.zeros(len(tree.feature), dtype=int)
    level = np.zeros(1, dtype=int)
    while len(level):
        inner = level[np.asarray(tree.children_left)[level] >= 0]
        for children in (tree.children_left, tree.children_right):
            depth[children[inner]] = depth[inner] + 1
        level = np.concatenate([tree.children_left[inner], tree.children_right[inner]])
    return depth


def preorder(tree: Any, depth: np.ndarray, levels: int) -> np.ndarray:
    """List the nodes down to a level, each before its left side and that before its right one."""
    found, stack = [], [0]
    while stack:
        node = stack.pop()
        found.append(node)
        if tree.children_left[node] >= 0 and depth[node] < levels:
            stack += [int(tree.children_right[node]), int(tree.children_left[node])]
    return np.array(found)


def placed(
    parents: list[int], sizes: np.ndarray, depth: np.ndarray, words: np.ndarray, down: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Place nodes level by level; give also where the line to each node turns.

    Parameters
    ----------
    parents : Number of the node that each one hangs on; -1 for the root.
    sizes : (n, 2), width and height of each node.
    depth : Level of each node.
    words : Width of what is written at the line to each node: between the corners if the tree grows down, else before the node.

    Examples
    --------
    >>> places, gates = placed([-1, 0, 0], np.full((3, 2), 20.0), np.array([0, 1, 1]), np.zeros(3), down=True)
    >>> places.tolist(), gates[1:].tolist()
    ([[26.0, -10.0], [10.0, -57.0], [42.0, -57.0]], [-35.0, -35.0])
    """
    across, along = (0, 1) if down else (1, 0)
    places, gates = np.zeros((len(parents), 2)), np.zeros(len(parents))
    # Words of two children stand on either side of the line from their parent, and are as long as that leaves room for.
    breadths = np.maximum(sizes[:, 0], 3.0 * words) if down else sizes[:, 1]
    places[:, across] = tidy(parents, breadths, gap=12.0 if down else 7.0)
    room = 27.0 if down else words.max() + 26.0
    reach = 0.0
    for level in range(depth.max() + 1):
        here = depth == level
        places[here, along] = reach + sizes[here, along] / 2  # boxes of a level begin side by side
        gates[here] = reach - (room - CORNER if not down else CORNER)  # past the largest box of the level above
        reach += sizes[here, along].max() + room
    places[:, 1] = -places[:, 1]
    return places, -gates if down else gates


def way_to(places: np.ndarray, sizes: np.ndarray, i: int, parent: int, gate: float, down: bool) -> np.ndarray:
    """Give the points of the line from a parent to its child, around two corners."""
    begin, end = places[parent].copy(), places[i].copy()
    if down:
        begin[1] -= sizes[parent, 1] / 2
        end[1] += sizes[i, 1] / 2
        return np.array([begin, [begin[0], gate], [end[0], gate], end])
    begin[0] += sizes[parent, 0] / 2
    end[0] -= sizes[i, 0] / 2
    return np.array([begin, [gate, begin[1]], [gate, end[1]], end])
