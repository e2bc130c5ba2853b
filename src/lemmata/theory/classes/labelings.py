"""Points, labels and labelings: what all hypothesis classes read and write.

A labeling of m points is a row of m booleans. Sets of labelings are arrays without repetition in lexicographic order, False
before True, which is the order of the binary numbers that the rows spell.
"""

import numpy as np

DIGITS = 62  # of a labeling that is written as one integer
LABELS = 10**9  # labels in a list of labelings, one byte each


def as_points(points, d=None):
    """Return points as a float array, (m, d).

    Parameters
    ----------
    points : Array (m, d), or (m,) for points of the line.
    d : Number of coordinates wanted; any if None.

    Examples
    --------
    >>> as_points([1, 2, 3], 1).shape
    (3, 1)
    """
    x = np.asarray(points, dtype=float)
    if x.ndim == 1 and (d in (None, 1) or not len(x)):
        x = x.reshape(len(x), 1 if d is None else d)
    if x.ndim != 2 or (d is not None and x.shape[1] != d):
        wanted = "any number of" if d is None else d
        raise ValueError(f"The points must be rows with {wanted} coordinates, and this array has the shape {x.shape}.")
    if not np.isfinite(x).all():
        raise ValueError("The points must be finite: leave out rows with NaN or infinity.")
    return x


def as_labels(labels, m):
    """Return labels as booleans; the larger of two labels is True.

    Parameters
    ----------
    labels : Booleans, numbers or any two sortable labels; alone, only True, 1 or +1 and False, 0 or −1 have a meaning.
    m : How many there must be.

    Examples
    --------
    >>> as_labels([-1, 1, 1], 3)
    array([False,  True,  True])
    >>> as_labels(["no", "yes"], 2)
    array([False,  True])
    """
    y = np.asarray(labels)
    if y.shape != (m,):
        raise ValueError(f"There must be one label for each of the {m} points, and the labels have the shape {y.shape}.")
    if y.dtype == bool:
        return y.copy()
    values = np.unique(y)
    if len(values) > 2:
        raise ValueError(f"The labels must be of two kinds, and these are of {len(values)}: {values[:5].tolist()}.")
    if len(values) == 2:
        return y == values[1]
    if len(values) == 1 and (y.dtype.kind not in "iuf" or values[0] not in (-1, 0, 1)):
        raise ValueError(f"One label {values[0]!s} alone could mean either side: give booleans, 0 and 1, or −1 and +1.")
    return y > 0


def as_weights(sample_weight, m):
    """Return weights of m points, (m,): integers stay exact, None means one each.

    Examples
    --------
    >>> as_weights(None, 2)
    array([1, 1])
    """
    if sample_weight is None:
        return np.ones(m, dtype=int)
    w = np.asarray(sample_weight)
    if w.shape != (m,) or w.dtype.kind not in "biuf" or not (np.isfinite(w).all() and (w >= 0).all()):
        raise ValueError(f"The weights must be {m} finite numbers that are not negative, one for each point.")
    return w.astype(int) if w.dtype.kind in "biu" else w.astype(float)


def gains(x, y, w):
    """Return the distinct points and what a True label of each gains over a False one.

    Examples
    --------
    >>> gains(np.array([2, 1, 2]), np.array([True, False, False]), np.array([3, 1, 1]))
    (array([1, 2]), array([-1,  2]))
    """
    values, where = np.unique(x, return_inverse=True, axis=0)
    gain = np.zeros(len(values), dtype=w.dtype)
    np.add.at(gain, where.ravel(), np.where(y, w, -w))
    return values, gain


def check_size(count, m):
    """Raise if a list of this many labelings of m points would not fit into memory.

    Examples
    --------
    >>> check_size(2**10, 10)
    """
    if count * m > LABELS:
        raise ValueError(f"These {m} points may have {count} labelings, too many to list: take fewer points.")


def sorted_labelings(labelings, m):
    """Return the distinct labelings of m points in lexicographic order, False before True, (k, m).

    Examples
    --------
    >>> sorted_labelings([[True, False], [False, True], [True, False]], 2)
    array([[False,  True],
           [ True, False]])
    """
    if not m:
        return np.zeros((1, 0), dtype=bool)
    rows = np.asarray(labelings, dtype=bool).reshape(-1, m)
    if m <= DIGITS:  # one number for each row sorts much faster than rows
        return _labelings(np.unique(rows @ (1 << np.arange(m)[::-1])), m)
    return np.unpackbits(np.unique(np.packbits(rows, axis=1), axis=0), axis=1, count=m).astype(bool)


def _labelings(numbers, m):
    """Write numbers with m binary digits, the highest first."""
    return (numbers[:, None] >> np.arange(m)[::-1] & 1).astype(bool)


def all_labelings(m):
    """Return all 2ᵐ labelings of m points in lexicographic order, (2ᵐ, m).

    Examples
    --------
    >>> all_labelings(2).astype(int).tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    return _labelings(np.arange(2**m), m)


def first_missing(labelings):
    """Return the first labeling that is not among the given ones (distinct and in lexicographic order), or None.

    Examples
    --------
    >>> first_missing(np.array([[False, False], [False, True], [True, True]]))
    array([ True, False])
    """
    k, m = labelings.shape
    if k == 2**m:
        return None
    wrong = (labelings != _labelings(np.arange(k), m)).any(axis=1)
    return _labelings(np.array([wrong.argmax() if wrong.any() else k]), m)[0]


def signs(labels):
    """Write a labeling as a word of + and −.

    Examples
    --------
    >>> signs([True, False, True])
    '+−+'
    """
    return "".join("+" if label else "−" for label in labels)
