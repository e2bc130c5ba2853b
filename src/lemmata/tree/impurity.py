"""How mixed the rows of a node are, and by how much a split unmixes them.

Of class shares p: Gini 1 − Σ p², entropy −Σ p log p, error 1 − max p. All are zero for rows that are alike, concave, and
largest where the classes are equally frequent, so the children of a split, weighted by their rows, are never more mixed than
their parent.
"""

import numpy as np

CLASSES = ("gini", "entropy", "error")


def impurity(counts, criterion="gini", *, base=2):
    """Measure how mixed the classes of a node are.

    Parameters
    ----------
    counts : Rows, weights or shares of each class.
    criterion : "gini", "entropy" or "error".
    base : Of the logarithm in the entropy: 2 for bits, np.e for nats.

    Examples
    --------
    >>> impurity([50, 50, 50]), impurity([50, 50], "entropy"), impurity([50, 50], "error")
    (0.6666666666666667, 1.0, 0.5)
    """
    counts = np.asarray(counts, dtype=float)
    if criterion not in CLASSES:
        raise ValueError(f"criterion must be one of {', '.join(CLASSES)}, got {criterion!r}.")
    if counts.ndim != 1 or not np.all(counts >= 0) or not 0 < counts.sum() < np.inf:
        raise ValueError(f"counts must be finite numbers from 0 up, not all zero, got {counts}.")
    p = counts / counts.sum()
    if criterion == "gini":
        return float(1 - p @ p)
    if criterion == "error":
        return float(1 - p.max())
    p = p[p > 0]
    return float(abs(-p @ np.log(p)) / np.log(base))


def split_gain(left, right, criterion="gini", *, base=2):
    """Give by how much a split lowers the impurity: that of all rows, less those of the sides weighted by their rows.

    Parameters
    ----------
    left, right : Rows or weights of each class on both sides.
    criterion, base : As in `impurity`.

    Examples
    --------
    >>> round(split_gain([50, 0, 0], [0, 50, 50], "entropy"), 6)
    0.918296
    """
    left, right = np.asarray(left, dtype=float), np.asarray(right, dtype=float)
    share = left.sum() / (left.sum() + right.sum())
    sides = share * impurity(left, criterion, base=base) + (1 - share) * impurity(right, criterion, base=base)
    return float(impurity(left + right, criterion, base=base) - sides)
