"""Counting the bits of a word: one instruction where the processor has it."""

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic, overload


def ones(x: Any) -> Any:
    """Count the bits of a word that are set.

    >>> int(ones(np.uint64(0b1011)))
    3
    """
    return np.uint64(int(x).bit_count())


@overload(ones)
def _compiled(x: Any) -> Any:
    def count(x: Any) -> Any:
        return _count(x)

    return count


@intrinsic
def _count(typing: Any, x: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), build
