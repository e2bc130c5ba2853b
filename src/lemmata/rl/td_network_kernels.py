"""One step of semi-gradient TD(λ) with a network, for values of states or of actions; `td_network` has the mathematics."""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.layers import backward, unit_rows
from lemmata.optimize.rules import apply_rule
from lemmata.optimize.schedules import rate_at
from lemmata.rl.network_learner import largest, outputs_at
from lemmata.rl.q_kernels import MAX, SAMPLE

NONE = -1  # the target of a policy that is given


class Settings(NamedTuple):
    """What does not change during a fit."""

    target: int
    gamma: float
    fade: float  # γλ
    epsilon: tuple  # eta, power, decay
    intercept: bool
    rule: int
    constants: tuple
    schedule: tuple


class Memory(NamedTuple):
    """What is learned, and what it takes; `learn` changes the arrays in place."""

    parameters: np.ndarray
    trace: np.ndarray
    gradient: np.ndarray  # of one output, then the step
    moments1: np.ndarray
    moments2: np.ndarray
    stream: np.ndarray  # (4,), of the agent's random numbers
    steps: np.ndarray  # (1,)


@kernel
def choose(settings, memory, values):
    """Draw an action: with chance ε any, else the best, and among equals each with the same chance."""
    eta, power, decay = settings.epsilon
    epsilon = min(rate_at(memory.steps[0] + 1, eta, power, decay), 1.0)
    u = next_uniform(memory.stream)
    if u < epsilon:
        return min(np.int64(u / epsilon * len(values)), len(values) - 1)
    best, ties, top = 0, 0, -np.inf
    for b in range(len(values)):
        if values[b] > top:
            best, ties, top = b, 1, values[b]
        elif values[b] == top:
            ties += 1
            if next_uniform(memory.stream) * ties < 1:
                best = b
    return best


@kernel
def first_action(settings, shape, room, memory, x):
    """Choose an action where an episode begins."""
    return choose(settings, memory, outputs_at(shape, memory.parameters, room, x, memory.stream))


@kernel
def learn(settings, shape, room, memory, x, action, reward, after, ended, over):
    """Learn from one step, from the row x to the row `after`; return the action to take next.

    An episode that is over without having ended was cut. Without actions there is one output, and the action is 0.
    """
    parameters, trace, gradient = memory.parameters, memory.trace, memory.gradient
    value, follow, breaks = 0.0, 0, False
    if not ended:
        values = outputs_at(shape, parameters, room, after, memory.stream)
        best = largest(values)
        value = values[best]
        if settings.target != NONE:
            follow = choose(settings, memory, values)
            breaks = settings.target == MAX and values[follow] < value
            if settings.target == SAMPLE and not over:
                value = values[follow]
            elif settings.target != MAX:
                eta, power, decay = settings.epsilon
                epsilon = min(rate_at(memory.steps[0] + 1, eta, power, decay), 1.0)
                value = (1 - epsilon) * value + epsilon * values.mean()
    error = reward + settings.gamma * value - outputs_at(shape, parameters, room, x, memory.stream)[action]
    last = len(shape.codes)
    slopes = unit_rows(shape, room.deltas, room.capacity, last, 1)
    slopes[:] = 0.0
    slopes[action] = 1.0
    backward(shape, parameters, room, 1, 0.0, gradient, False)
    if not settings.intercept:
        gradient[len(gradient) - shape.sizes[last] :] = 0.0
    for i in range(len(trace)):
        trace[i] = settings.fade * trace[i] + gradient[i]
        gradient[i] = -error * trace[i]
    memory.steps[0] += 1
    t, (eta, power, decay) = memory.steps[0], settings.schedule
    beta1, beta2, epsilon, inside = settings.constants
    rate = rate_at(t, eta, power, decay)
    apply_rule(settings.rule, parameters, gradient, memory.moments1, memory.moments2, t, rate, beta1, beta2, epsilon, inside)
    if over or breaks:
        trace[:] = 0.0
    return follow
