"""`@kernel`: the one way to compile a function, so that flags, caching and threading policy stand in one place.

A kernel is a module-level function of arrays and numbers. It releases the GIL, so that `Blocks` can run it on plain Python
threads; it never starts threads itself, because no threading layer of numba is safe under both `fork` and threads. Fast
math is limited to what keeps NaN and infinity meaningful: sums may be reordered (which vectorizes them) and multiplied and
added in one rounding, no more. The compiled code is kept on disk, where several processes may fill the cache at once; where
no folder can be written, it is compiled anew.
With `NUMBA_DISABLE_JIT=1` the same source runs as plain Python.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

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
        return _with_files_of_its_own(numba.njit(cache=True, **options)(function))  # noqa: TID251 - the one place
    except RuntimeError:  # numba's word for "nowhere to write the cache"
        return numba.njit(**options)(function)  # noqa: TID251 - the one place


def _with_files_of_its_own(compiled: Any) -> Any:
    """Let no two processes write different variants of a kernel into one file.

    numba numbers the files of a kernel's variants: two processes that fill an empty cache at once give two variants the same
    number, the index of the cache then names the wrong code for one of them, and every later call fails or misreads its
    arguments (numba#4807). Under names that are drawn, the worst that can happen is a variant compiled twice.
    """
    files = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if files is not None:
        stem = files._index_name.removesuffix(".nbi")
        files._data_name = lambda number: f"{stem}.{uuid4().hex}.nbc"
    return compiled
