"""One step of a rule by several threads: gradients of the parts of a batch become one move of all parameters.

Each thread takes pieces of the parameters. It adds what the parts say of a piece, in the order of the parts, and the slope of
the penalty α/2 ‖W‖² over the weight of the batch; a gradient that is longer than allowed is shortened as a whole; the rule of
`lemmata.optimize` moves the piece. Pieces are the same for any number of threads, so the bits are.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.meeting import APART, meet
from lemmata.neural_network.layers import penalized
from lemmata.optimize.rules import apply_rule
from lemmata.optimize.schedules import rate_at

PIECE = 4096  # parameters that a thread moves at once


class Steps(NamedTuple):
    """How gradients become steps.

    Attributes
    ----------
    alpha : Weight of the penalty.
    penalized : 1 for the parameters that it is for, 0 for the others.
    clip : Longest gradient, or 0 for any.
    rule, constants, schedule : Number and constants of a rule of `lemmata.optimize`, and of its schedule.
    """

    alpha: float
    penalized: np.ndarray
    clip: float
    rule: int
    constants: tuple
    schedule: tuple


class Moving(NamedTuple):
    """Parameters on their way, and what a rule remembers; the arrays change in place."""

    parameters: np.ndarray
    moments1: np.ndarray
    moments2: np.ndarray
    steps: int


def new_steps(rule, shapes, dtype, alpha=0.0, clip=None):
    """Describe the steps of networks whose parameters lie one after another in one vector."""
    marks = np.concatenate([penalized(shape, dtype) for shape in shapes])
    return Steps(float(alpha), marks, float(clip or 0.0), rule.code, rule.constants, rule.compiled_schedule.constants)


def begin(rule, parameters):
    """Return parameters before their first step."""
    kept = [np.zeros(len(parameters) if used else 0, parameters.dtype) for used in rule.uses]
    return Moving(parameters, *kept, 0)


def room_for_squares(n):
    """Make room for the squares of the gradient and of the penalized parameters, for each piece of n parameters."""
    return np.zeros((-(-n // PIECE), 2))


@kernel
def add_up(gradients, parameters, penalized, share, clip, a, b, squares):
    """Add the gradients of the parts and of the penalty, for some parameters; note the squares of both where they count."""
    total, x, counts, rate = gradients[0, a:b], parameters[a:b], penalized[a:b], parameters.dtype.type(share)
    for p in range(1, len(gradients)):
        more = gradients[p, a:b]
        for i in range(len(total)):  # from zero, which tells the compiler that no place is counted from the end
            total[i] += more[i]
    norm, long = 0.0, 0.0
    if share > 0:
        for i in range(len(total)):
            held = counts[i] * x[i]
            norm += np.float64(held) * x[i]
            total[i] += rate * held
    if clip > 0:
        for i in range(len(total)):
            long += np.float64(total[i]) * total[i]
    squares[0], squares[1] = long, norm


@kernel
def move(steps, moving, gradients, squares, weight, t, marks, me):
    """Take step t once all parts have their gradients, which are of the mean over a batch of some weight.

    All threads come here, and none leaves before all have moved their pieces. Return the penalty, half α times the squares of
    the weights before the step, to the first thread.
    """
    x, gradient, n_threads, n_pieces = moving.parameters, gradients[0], len(marks) // APART, len(squares)
    beta1, beta2, epsilon, inside = steps.constants
    eta, power, decay = steps.schedule
    meet(marks, me)
    for k in range(me, n_pieces, n_threads):
        low, high, share = k * PIECE, min((k + 1) * PIECE, len(x)), steps.alpha / weight
        add_up(gradients, x, steps.penalized, share, steps.clip, low, high, squares[k])
    shrink = x.dtype.type(1.0)
    if steps.clip > 0:
        meet(marks, me)
        long = 0.0
        for k in range(n_pieces):
            long += squares[k, 0]
        if np.sqrt(long) > steps.clip:
            shrink = x.dtype.type(steps.clip / np.sqrt(long))
    for k in range(me, n_pieces, n_threads):
        low, high = k * PIECE, min((k + 1) * PIECE, len(x))
        g, m1, m2 = gradient[low:high], moving.moments1[low:high], moving.moments2[low:high]
        if shrink < 1:
            for i in range(len(g)):
                g[i] *= shrink
        apply_rule(steps.rule, x[low:high], g, m1, m2, t, rate_at(t, eta, power, decay), beta1, beta2, epsilon, inside)
    penalty = 0.0
    meet(marks, me)
    if me == 0:
        for k in range(n_pieces):
            penalty += 0.5 * steps.alpha * squares[k, 1]
    return penalty
