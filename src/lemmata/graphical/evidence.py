"""Evidence and labels: from what a user writes to the numbers that kernels read (`model` says what may be written)."""

from math import inf

import numpy as np


def labels(states):
    """Give the labels of a variable's states as an array: of objects, if they are not all of one kind.

    >>> labels(("no", "yes")), labels((0, "many"))
    (array(['no', 'yes'], dtype='<U3'), array([0, 'many'], dtype=object))
    """
    if len({type(state) for state in states}) == 1 and isinstance(states[0], (str, bool, int, float, np.generic)):
        return np.asarray(states)
    array = np.empty(len(states), dtype=object)
    array[:] = states
    return array


def some(names, most=6, *, pairs=False):
    """List a few names, or a few pairs of a name and what is known, for messages."""
    names = [f"{name[0]!r}: {name[1]!r}" if pairs else repr(name) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def code_of(name, value, labels, most):
    """Give the number of the state that a value means: that of its label or, if it is below `most`, the value itself."""
    try:
        code = labels.get(value)
    except TypeError:  # a list cannot be a label
        code = None
    if code is None and isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= value < most:
        code = int(value)
    if code is None:
        raise ValueError(f"The variable {name!r} has no state {value!r}; its states are {some(labels)}.")
    return code


def encode_evidence(model, evidence):
    """Turn evidence into numbers of variables, starts, and likelihoods of states.

    Examples
    --------
    >>> from lemmata.graphical import Factor, FactorGraph
    >>> encode_evidence(FactorGraph([Factor("ab", [[3, 1], [1, 2]])]), {"b": 1, "a": [0.9, 0.2]})
    (array([1, 0]), array([0, 2, 4]), array([0. , 1. , 0.9, 0.2]))
    """
    if not evidence:
        return NOTHING
    if not hasattr(evidence, "items"):
        raise ValueError(f"Evidence must be {{variable: state or likelihoods}}, got {evidence!r}.")
    codes, numbers, starts, likelihood = model._codes, [], [0], []
    for name, value in evidence.items():
        if name not in codes:
            raise ValueError(f"There is no variable {name!r} to have evidence of; there are {some(codes)}.")
        number, labels, size, most = codes[name]
        if is_soft(value):
            likelihood += soft(name, value, size)
        else:
            code = code_of(name, value, labels, most)
            likelihood += [0.0] * size
            likelihood[starts[-1] + code] = 1.0
        numbers.append(number)
        starts.append(len(likelihood))
    return np.array(numbers), np.array(starts), np.array(likelihood)


NOTHING = (np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), np.empty(0))


def is_soft(value):
    """Tell whether a piece of evidence is a list of likelihoods."""
    return isinstance(value, (list, np.ndarray)) and np.ndim(value) == 1


def soft(name, value, size):
    """Check the likelihoods of a variable's states."""
    given = [float(x) for x in value]
    if len(given) != size or not all(0 <= x < inf for x in given):
        raise ValueError(f"Soft evidence of {name!r} needs {size} likelihoods that are finite and not negative, got {value!r}.")
    if not any(given):
        raise ValueError(f"Soft evidence of {name!r} gives every state the likelihood zero.")
    return given
