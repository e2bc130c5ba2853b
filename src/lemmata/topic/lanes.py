"""One draw among many topics, sixteen of them at a time and without a branch.

A topic is drawn with odds a_k (n_k + γ), a and n two rows of numbers. In lane l = k mod 16 the odds of the topics l, l + 16, …
are summed one after the other, all lanes at once, and every sum on the way is kept. A running sum over the lanes then says in
which lane a uniform share of the total ends, and what is left of the share, held against the sums kept for that lane, at which
of its topics. No step jumps to a place that depends on the draw. A processor guesses jumps ahead, and after a wrong guess it
throws away what it has begun; so draws that know nothing of each other can be under way at the same time, one behind the other
in the same thread.

The compiler's own vectorization finds neither of the two searches, so the instructions are put together here, in the
compiler's language; a processor with narrower vectors takes two or four of its own for one of these.
"""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, overload

from lemmata.core.kernel import kernel

LANES = 16
FAR = 4  # vectors in a stride of the first search along a lane; the second search looks at those between

NUMBER, INDEX = ir.FloatType(), ir.IntType(64)
NUMBERS, COUNTS = ir.VectorType(NUMBER, LANES), ir.VectorType(ir.IntType(32), LANES)


@kernel
def room(n):
    """Return how many numbers of room a draw among so many topics, a multiple of the lanes, needs."""
    return n + FAR * LANES


def choose(weights, a, counts, b, sums, c, n, gamma, share):
    """Draw a topic with odds weights[a + k] (counts[b + k] + gamma); where rounding leads past the last one, return k ≥ n.

    Parameters
    ----------
    weights, a : Numbers of single precision, and where those of the first topic are.
    counts, b : Whole numbers of 32 bits, the same.
    sums, c : Room for `room(n)` numbers, and where it begins; what lies beyond the first n must be infinite.
    n : Number of topics, a multiple of LANES.
    gamma, share : Added to each count, and a uniform number from [0, 1), of single precision.

    Examples
    --------
    >>> import numpy as np
    >>> weights, counts, sums = np.ones(16, np.float32), np.zeros(16, np.int32), np.full(room(16), np.inf, np.float32)
    >>> counts[3] = 84
    >>> int(choose(weights, 0, counts, 0, sums, 0, 16, np.float32(1), np.float32(0.5)))
    3
    """
    odds = weights[a : a + n] * (counts[b : b + n] + gamma)
    lanes = odds.reshape(-1, LANES).cumsum(axis=0)
    running = lanes[-1].cumsum()
    left = share * running[-1]
    lane = min(int((running <= left).sum()), LANES - 1)
    left -= running[lane] - lanes[-1, lane]
    return int((lanes[:-1, lane] <= left).sum()) * LANES + lane


@overload(choose, inline="always")  # a call would hand over three arrays, as long as the draw takes
def _compiled(weights, a, counts, b, sums, c, n, gamma, share):
    def draw(weights, a, counts, b, sums, c, n, gamma, share):
        return _choose(weights, a, counts, b, sums, c, n, gamma, share)

    return draw


@intrinsic
def _choose(typing, weights, a, counts, b, sums, c, n, gamma, share):
    index, number = types.uint64, types.float32
    return types.int64(weights, index, counts, index, sums, index, index, number, number), _build


def _build(context, builder, signature, args):
    data = [context.make_array(signature.args[i])(context, builder, args[i]).data for i in (0, 2, 4)]
    a, b, c, n, gamma, share = (args[i] for i in (1, 3, 5, 6, 7, 8))
    vectors = builder.udiv(n, INDEX(LANES))
    at = [_at(builder, pointer, start) for pointer, start in zip(data, (a, b, c), strict=True)]
    lanes = _sum_lanes(builder, at, vectors, gamma)
    running = lanes
    for shift in (1, 2, 4, 8):
        running = builder.fadd(running, _shifted(builder, running, shift))
    left = builder.fmul(share, builder.extract_element(running, INDEX(LANES - 1)))
    passed = builder.fcmp_ordered("<=", running, _spread(builder, left, NUMBERS))
    count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(LANES)])
    lane = builder.zext(builder.call(count, [builder.bitcast(passed, ir.IntType(LANES))]), INDEX)
    lane = _least(builder, lane, INDEX(LANES - 1))
    before = builder.extract_element(_shifted(builder, running, 1), lane)
    vector = _search_lane(builder, _at(builder, at[2], lane), vectors, builder.fsub(left, before))
    return builder.add(builder.mul(vector, INDEX(LANES)), lane)


def _sum_lanes(builder, at, vectors, gamma):
    """Sum the odds of each lane, and keep every sum on the way."""
    weights, counts, sums = at
    total = cgutils.alloca_once_value(builder, NUMBERS([0.0] * LANES))
    gammas = _spread(builder, gamma, NUMBERS)
    with cgutils.for_range(builder, vectors) as loop:
        offset = builder.mul(loop.index, INDEX(LANES))
        weight = builder.load(_vector(builder, weights, offset, NUMBERS), align=4)
        many = builder.sitofp(builder.load(_vector(builder, counts, offset, COUNTS), align=4), NUMBERS)
        odds = builder.fmul(weight, builder.fadd(many, gammas), flags=("contract",))
        there = builder.fadd(builder.load(total), odds, flags=("contract",))
        builder.store(there, total)
        builder.store(there, _vector(builder, sums, offset, NUMBERS), align=4)
    return builder.load(total)


def _search_lane(builder, sums, vectors, left):
    """Count the sums of a lane, all but the last, that are not larger: in strides first where there are many."""

    def larger(vector):
        value = builder.load(_at(builder, sums, builder.mul(vector, INDEX(LANES))))
        return builder.zext(builder.fcmp_ordered("<=", value, left), INDEX)

    found = cgutils.alloca_once_value(builder, INDEX(0))
    last = builder.sub(vectors, INDEX(1))
    with builder.if_else(builder.icmp_unsigned("<=", vectors, INDEX(FAR))) as (few, many):
        with few, cgutils.for_range(builder, last) as loop:
            builder.store(builder.add(builder.load(found), larger(loop.index)), found)
        with many:
            with cgutils.for_range(builder, builder.udiv(last, INDEX(FAR))) as loop:
                end = builder.add(builder.mul(loop.index, INDEX(FAR)), INDEX(FAR - 1))
                builder.store(builder.add(builder.load(found), larger(end)), found)
            first = builder.mul(builder.load(found), INDEX(FAR))
            near = first
            for step in range(FAR - 1):
                near = builder.add(near, larger(builder.add(first, INDEX(step))))
            builder.store(near, found)
    return builder.load(found)


def _at(builder, pointer, offset):
    return builder.gep(pointer, [offset])


def _vector(builder, pointer, offset, kind):
    return builder.bitcast(_at(builder, pointer, offset), kind.as_pointer())


def _spread(builder, value, kind):
    """Repeat a value in all lanes."""
    single = builder.insert_element(kind(ir.Undefined), value, INDEX(0))
    return builder.shuffle_vector(single, kind(ir.Undefined), COUNTS([0] * LANES))


def _shifted(builder, vector, by):
    """Move every lane up by some lanes, zeros following."""
    order = [LANES] * by + list(range(LANES - by))
    return builder.shuffle_vector(vector, NUMBERS([0.0] * LANES), COUNTS(order))


def _least(builder, x, y):
    return builder.select(builder.icmp_unsigned("<", x, y), x, y)
