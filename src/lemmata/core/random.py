"""Random numbers: one generator for a fit, one child for each block, chain or restart.

>>> first, second = spawn(generator(7), 2)
>>> bool(first.random() == spawn(generator(7), 2)[0].random())
True
"""

from typing import Any

import numpy as np


def generator(random_state: Any = None) -> np.random.Generator:
    """Make a generator from a seed, a generator, a legacy RandomState, or None (fresh entropy)."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31 - 1, size=4))
    if random_state is np.random:  # scikit-learn's way to say "the global one"
        return np.random.default_rng(np.random.randint(0, 2**31 - 1, size=4))  # noqa: NPY002
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        told = "random_state must be a whole number of at least 0, a generator of NumPy's, or None"
        raise ValueError(f"{told}; got {random_state!r}.") from None


def spawn(parent: np.random.Generator, n: int) -> list[np.random.Generator]:
    """Draw one independent generator for each of n blocks, in order."""
    return parent.spawn(n)
