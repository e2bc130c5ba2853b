"""Asking memory in time: a load that is announced some hundred nanoseconds ahead costs nothing when its turn comes.

Kernels that jump through a table much larger than the cache wait for memory most of the time, since a processor looks only
some dozens of steps ahead. Where the next rows are known, asking for them while the present ones are worked on hides that.
"""

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from lemmata.core.data import Array

READ, KEEP, DATA = 0, 3, 1  # of the instruction: what for, how near to keep it, and what it is


def prefetch(array: Array, k: int) -> None:
    """Ask for an entry of a one-dimensional array that kernels will read soon; in plain Python this does nothing."""


@overload(prefetch)
def _compiled(array: Any, k: Any) -> Any:
    def ask(array: Any, k: Any) -> None:
        _ask(array, k)

    return ask


@intrinsic
def _ask(typing: Any, array: Any, k: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], fnty=kind)
        address = builder.bitcast(cgutils.gep(builder, data, args[1]), pointer)
        builder.call(function, [address, number(READ), number(KEEP), number(DATA)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), build
