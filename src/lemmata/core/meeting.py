"""Where threads meet inside compiled code: a barrier that nobody sleeps at.

To wake a thread that sleeps takes from ten to some hundred microseconds, and two threads that come back from compiled code at
the same time wait for each other's turn in Python. A step of an algorithm that all threads must end before the next one begins
may be shorter than that. So such threads stay in one compiled function, each with its share of the work, and meet: who has
arrived raises a mark of its own and watches those of the others; after some microseconds of watching it lets others have the
processor in between, and after a millisecond it sleeps in between, so that a long wait costs nothing.
"""

import sys
import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.typing import signature
from numba.extending import intrinsic

from lemmata.core import config
from lemmata.core.data import Array
from lemmata.core.kernel import kernel

APART = 16  # numbers from one mark to the next: two marks in one line of the cache would slow each other down
EAGER, PATIENT = 4_000, 6_000  # looks until others may have the processor, and until this thread sleeps in between
NAP = 50  # microseconds

if sys.platform == "win32":  # Sleep(0) lets others have the processor, Sleep(1) sleeps a millisecond
    _sleep: Any = types.ExternalFunction("Sleep", signature(types.void, types.uint32))

    @kernel
    def give_way(nap: int) -> None:
        """Let others have the processor, for some microseconds or for as long as they want it."""
        _sleep(np.uint32((nap + 999) // 1000))

else:
    _give_way: Any = types.ExternalFunction("sched_yield", signature(types.int32))
    _sleep: Any = types.ExternalFunction("usleep", signature(types.int32, types.uint32))

    @kernel
    def give_way(nap: int) -> None:
        """Let others have the processor, for some microseconds or for as long as they want it."""
        if nap > 0:
            _sleep(np.uint32(nap))
        else:
            _give_way()


@intrinsic
def _look(typing: Any, marks: Any, k: Any) -> Any:
    """Read a number; whatever was written before it was raised can be read from now on."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.load_atomic(cgutils.gep(builder, array.data, args[1]), ordering="acquire", align=8)

    return types.int64(marks, types.intp), build


@intrinsic
def _raise(typing: Any, marks: Any, k: Any, value: Any) -> Any:
    """Write a number; whoever reads it can read whatever was written before."""

    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        builder.store_atomic(args[2], cgutils.gep(builder, array.data, args[1]), ordering="release", align=8)
        return context.get_dummy_value()

    return types.void(marks, types.intp, types.int64), build


def new_marks(n_threads: int) -> Array:
    """Make the marks of so many threads."""
    return np.zeros(n_threads * APART, np.int64)


@kernel
def meet(marks: Array, me: int) -> None:
    """Wait until every thread has come here as often as this one; `me` is its number.

    Examples
    --------
    >>> meet(new_marks(1), 0)  # nobody to wait for
    """
    n = len(marks) // APART
    if n == 1:
        return
    turn = marks[me * APART] + 1
    _raise(marks, me * APART, turn)
    for other in range(n):
        looks = 0
        while _look(marks, other * APART) < turn:
            looks += 1
            if looks > EAGER:
                give_way(NAP if looks > PATIENT else 0)


def threads_that_meet() -> int:
    """Return the number of threads to use where threads meet: one where kernels run as plain Python, which has no meetings."""
    return 1 if numba.config.DISABLE_JIT else config.n_threads()


def together(work: Callable[[int], None], marks: Array) -> None:
    """Call work(me) on as many threads as there are marks at once, this one among them; each meets the others inside.

    Ctrl-C that comes before this thread has met anyone is held back until it has done its share, for which others may wait.

    Examples
    --------
    >>> marks, found = new_marks(1), []
    >>> together(found.append, marks)
    >>> found
    [0]
    """
    errors: list[BaseException] = []

    def share(me: int) -> None:
        try:
            work(me)
        except BaseException as error:
            errors.append(error)

    others = [threading.Thread(target=share, args=(me,), daemon=True) for me in range(1, len(marks) // APART)]
    for other in others:
        other.start()
    try:
        work(0)
    except BaseException:
        if others and not marks[0]:
            work(0)
        raise
    finally:
        for other in others:
            other.join()
    if errors:
        raise errors[0]
