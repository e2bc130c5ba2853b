"""Words beside the points of a scatter, where they hide no other words and few points."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lemmata.plot.drawing import ink, outlined
from lemmata.plot.network import text_width

FONT = 8.5  # points, of labels
WAYS = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1)])  # to a label, from its point
AWAY = (0.0, 12.0, 28.0)  # points further than beside it
STEPS = 9  # points at which a line is looked at
FAR = 4  # points that a label hides before the next distance is better


def write_beside(ax: Any, x: np.ndarray, y: np.ndarray, labels: Mapping[int, str], most: int, area: float) -> list[int]:
    """Write at most so many labels, in their order, and a ring around the point of each; what has no room is left out.

    The axes have their limits already. A label that is not beside its point has a line to it.

    Parameters
    ----------
    labels : {number of a point: what to write}.
    area : Of a point's mark, in square points.

    Returns
    -------
    written : Numbers of the points that have a label.
    """
    engine = ax.figure.get_layout_engine()
    if engine is not None:
        engine.execute(ax.figure)  # the size of the axes, and so where labels fit, is known after it
    point, reach = ax.figure.dpi / 72, np.sqrt(area) / 2 + 3
    places = ax.transData.transform(np.column_stack([x, y])) / point
    frame = np.array(ax.get_window_extent().extents) / point + [3, 3, -3, -3]
    taken, written = np.empty((0, 4)), list[int]()
    for i, label in labels.items():
        if len(written) >= most:
            break
        size = np.array([text_width(label, FONT) + 5, 1.25 * FONT])
        spot = free_spot(places[i], size, reach, frame, taken, places)
        if spot is None:
            continue
        middle, far = spot
        low, line = middle - size / 2, on_line(places[i], middle, size) if far else places[i][None]
        style = {"ha": "center", "va": "center_baseline", "fontsize": FONT, "color": ink(), "zorder": 4}
        way = {"arrowstyle": "-", "color": ink(), "lw": 0.7, "shrinkA": 0, "shrinkB": reach - 1}
        way["relpos"] = tuple((line[-1] - low) / size)
        offset = {"xytext": tuple(middle - places[i]), "textcoords": "offset points", "arrowprops": way if far else None}
        outlined(ax.annotate(label.replace("$", r"\$"), (x[i], y[i]), **offset, **style), ax)
        taken = np.vstack([taken, [*low, *(low + size)], np.hstack([line - 1, line + 1])])
        written.append(i)
    ring = {"s": (2 * reach - 3) ** 2, "facecolors": "none", "edgecolors": ink(), "linewidths": 1.0, "zorder": 3}
    ax.scatter(x[written], y[written], **ring)
    return written


def free_spot(
    place: np.ndarray, size: np.ndarray, reach: float, frame: np.ndarray, taken: np.ndarray, places: np.ndarray
) -> tuple[np.ndarray, bool] | None:
    """Find the middle of a label near its point, inside the frame and apart from other labels, that hides the fewest points.

    Parameters
    ----------
    reach : From the point to a label beside it.
    frame : Left, bottom, right and top of the axes.
    taken : (boxes, 4), the same of labels that are there, and of what they belong to.
    places : (n, 2), all points.

    Returns
    -------
    middle, far : Where, and whether that is so far from the point that a line should show which it is; None: nowhere.

    Examples
    --------
    >>> size, frame = np.array([20.0, 10.0]), np.array([0.0, 0.0, 100.0, 100.0])
    >>> free_spot(np.array([50.0, 50.0]), size, 5.0, frame, np.empty((0, 4)), np.array([[50.0, 50.0]]))
    (array([65., 50.]), False)
    >>> free_spot(np.array([95.0, 50.0]), size, 5.0, frame, np.empty((0, 4)), np.array([[95.0, 50.0]]))
    (array([80., 50.]), False)
    """
    best = None
    if ((place > taken[:, :2]) & (place < taken[:, 2:])).all(axis=1).any():  # its point is under a label
        return None
    for far, away in enumerate(AWAY):
        for way in WAYS:
            middle = place + way * (size / 2 + reach + away)
            low, high = middle - size / 2, middle + size / 2
            if (low < frame[:2]).any() or (high > frame[2:]).any():
                continue
            line = on_line(place, middle, size)[1:, None] if far else np.empty((0, 1, 2))
            crossed = (line > taken[:, :2]) & (line < taken[:, 2:])
            if ((low < taken[:, 2:]) & (taken[:, :2] < high)).all(axis=1).any() or crossed.all(axis=2).any():
                continue
            hidden = int(((places > low - 2) & (places < high + 2)).all(axis=1).sum())
            if best is None or hidden + FAR * far < best[0]:
                best = (hidden + FAR * far, middle, far > 0)
    return None if best is None else best[1:]


def on_line(place: np.ndarray, middle: np.ndarray, size: np.ndarray) -> np.ndarray:
    """List points along the line from a point to its label, up to the box of that.

    >>> on_line(np.zeros(2), np.array([20.0, 0.0]), np.array([20.0, 8.0]))[[0, -1]]
    array([[ 0.,  0.],
           [10.,  0.]])
    """
    way = middle - place
    with np.errstate(divide="ignore"):
        end = 1 - min(1.0, float((size / 2 / np.abs(way)).min()))
    return place + np.linspace(0, end, STEPS)[:, None] * way
