"""Arrays of probabilities: what is one, and which of its axes are meant."""

import numpy as np


def check_probabilities(p, axis=None):
    """Return p as an array of float64 whose sums along `axis` (of all entries if None) are one; refuse anything else.

    Examples
    --------
    >>> check_probabilities([0.25, 0.75])
    array([0.25, 0.75])
    >>> check_probabilities([0.25, 0.25])
    Traceback (most recent call last):
    ...
    ValueError: Probabilities must sum to 1, and these sum to 0.5; divide counts or weights by their sum first.
    """
    p = np.asarray(p)
    # sums of float32 probabilities miss 1 by more than those of float64
    slack = float(np.sqrt(np.finfo(p.dtype).eps if p.dtype.kind == "f" else np.finfo(float).eps))
    try:
        p = p.astype(float)
    except (TypeError, ValueError):
        raise ValueError(f"Probabilities must be an array of numbers; got {p.tolist()!r}.") from None
    if p.size == 0 or p.ndim == 0:
        raise ValueError(f"Probabilities must be an array with at least one entry, and this has the shape {p.shape}.")
    if not (p >= 0).all():
        raise ValueError(f"Probabilities must be at least 0, and there is {p[~(p >= 0)][0]:g}.")
    sums = np.ravel(p.sum(axis=axis))
    worst = sums[np.argmax(np.abs(sums - 1))]
    if not abs(worst - 1) <= slack:
        where = "" if axis is None or p.ndim == 1 else f" along axis {axis}"
        raise ValueError(
            f"Probabilities must sum to 1{where}, and these sum to {worst:.9g}; divide counts or weights by their sum first."
        )
    return p


def axes_of(table, which):
    """Return a tuple of axis numbers for axis numbers or names, one or several; names need a `JointTable`.

    Examples
    --------
    >>> axes_of(np.ones((2, 2)) / 4, [0, -1])
    (0, 1)
    """
    return positions(which, np.ndim(table), list(getattr(table, "names", ())))


def positions(which, n, names=()):
    """Return numbers below n for numbers or names, one or several; refuse unknown ones and repetitions.

    Examples
    --------
    >>> positions(["y", 0], 3, ["x", "y", "z"])
    (1, 0)
    """
    which = [which] if isinstance(which, (str, int, np.integer)) else list(which)
    unknown = [name for name in which if isinstance(name, str) and name not in names]
    if unknown:
        raise ValueError(f"There is no variable {unknown[0]!r}; there are {list(names) or 'numbers only'}.")
    numbers = [names.index(name) if isinstance(name, str) else int(name) for name in which]
    if not all(-n <= number < n for number in numbers):
        raise ValueError(f"There are {n} variables, numbered from 0; got {which}.")
    numbers = [number % n for number in numbers]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"A variable may be named once only; got {which}.")
    return tuple(numbers)
