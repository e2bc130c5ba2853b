"""`@kernel`: the one way to compile a function, so that flags, caching and threading policy stand in one place.

A kernel is a module-level function of arrays and numbers. It releases the GIL, so that `Blocks` can run it on plain Python
threads; it never starts threads itself, because no threading layer of numba is safe under both `fork` and threads. Fast
math is limited to what keeps NaN and infinity meaningful: sums may be reordered (which vectorizes them) and multiplied and
added in one rounding, no more. The compiled code is kept on disk; where no folder can be written, it is compiled anew.
With `NUMBA_DISABLE_JIT=1` the same source runs as plain Python.
"""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba
from numba.core.registry import cpu_target

# numba imports most of itself at the first call of a compiled function; let that be part of importing instead.
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function of arrays and numbers at its first call.

    Examples
    --------
    >>> import numpy as np
    >>> @kernel
    ... def total(x):
    ...     s = 0.0
    ...     for i in range(len(x)):
    ...         s += x[i]
    ...     return s
    >>> total(np.array([1.0, 2.0, 3.5]))
    6.5
    """
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    try:
        return numba.njit(cache=True, **options)(function)  # noqa: TID251 - the one place
    except RuntimeError:  # numba's word for "nowhere to write the cache"
        return numba.njit(**options)(function)  # noqa: TID251 - the one place
