"""Gradients of a softmax policy: draws from it, and sums of scores.

    π_w(a | x) = softmax(f_w(x))_a,    ∂ log π(a | x)/∂f_j = 1[j = a] − π_j,    ∂H/∂f_j = −π_j (log π_j + H)

with the entropy H = −Σ π log π. The mean of the score ∇ log π over the policy's own draws is zero, so a reward less any b that
does not depend on the action has the same mean gradient: E[(R − b) ∇ log π] = ∇E[R]. The constant with the least variance is
b = E[‖∇ log π‖² R] / E[‖∇ log π‖²].

Williams, Machine Learning 8 (1992). Greensmith, Bartlett & Baxter, JMLR 5 (2004).
"""

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.core.xoshiro import next_uniform
from lemmata.neural_network.layers import backward, conclude, forward, unit_rows
from lemmata.rl.network_learner import UNMOVED, new_room, outputs_at

TINIEST = float(np.finfo(float).tiny)  # keeps 0 log 0 at 0


@kernel
def drawn(chances, u):
    """Return the number of the share of [0, 1) in which u lies; the chances sum to one but for rounding."""
    for a in range(len(chances) - 1):
        u -= chances[a]
        if u < 0:
            return a
    return len(chances) - 1


@kernel
def draw_action(shape, parameters, room, x, stream):
    """Draw an action from the policy for a single row."""
    return drawn(outputs_at(shape, parameters, room, x, stream), next_uniform(stream))


@kernel
def slopes_of(chances, first, n, action, weight, entropy, slopes):
    """Write weight · ∂ log π(action)/∂f + entropy · ∂H/∂f for the n outputs that begin at `first`."""
    mean = 0.0
    for j in range(first, first + n):
        mean += chances[j] * np.log(max(chances[j], TINIEST))
    for j in range(first, first + n):
        hit = 1.0 if j == first + action else 0.0
        slopes[j] = weight * (hit - chances[j]) - entropy * chances[j] * (np.log(max(chances[j], TINIEST)) - mean)


@kernel
def add_scores(shape, parameters, room, n, actions, weights, entropy, gradient, stream):
    """Write Σ weightₜ ∇ log π(aₜ | xₜ) + entropy · Σ ∇H(xₜ) over n rows, which lie in the room; leave π in its place."""
    last = len(shape.codes)
    m = shape.sizes[last]
    forward(shape, parameters, room, n, 0.0, stream)
    conclude(shape, room, n)
    chances = unit_rows(shape, room.values, room.capacity, last, n)
    slopes = unit_rows(shape, room.deltas, room.capacity, last, n)
    for t in range(n):
        slopes_of(chances, t * m, m, actions[t], weights[t], entropy, slopes)
    backward(shape, parameters, room, n, 0.0, gradient, False)


def mean_score(shape, parameters, X, rewards):
    """Return Σ_x Σ_a π(a | x) r(x, a) ∇ log π(a | x), the mean of the estimator, by going through all that may be drawn.

    Parameters
    ----------
    rewards : (rows, actions), what each action earns in each row.

    Examples
    --------
    >>> from lemmata.neural_network.layers import new_shape
    >>> two_arms = new_shape([1, 2], ["softmax"])
    >>> mean_score(two_arms, np.zeros(4), np.ones((1, 1)), np.array([[1.0, 0.0]]))  # weights, then biases
    array([ 0.25, -0.25,  0.25, -0.25])
    """
    n, m = rewards.shape
    room, gradient = new_room(shape, n * m), np.empty(len(parameters))
    rows, actions = np.repeat(np.ascontiguousarray(X, dtype=float), m, axis=0), np.tile(np.arange(m), n)
    room.values[: rows.size] = rows.ravel()
    with serial_blas():
        forward(shape, parameters, room, n * m, 0.0, UNMOVED)
        conclude(shape, room, n * m)
        chances = unit_rows(shape, room.values, room.capacity, len(shape.codes), n * m).reshape(n * m, m)
        weights = chances[np.arange(n * m), actions] * rewards.ravel()
        room.values[: rows.size] = rows.ravel()
        add_scores(shape, parameters, room, n * m, actions, weights, 0.0, gradient, UNMOVED)
    return gradient


@kernel
def add_errors(shape, parameters, room, n, targets, gradient, stream):
    """Write the gradient of ½ Σ (Vₜ − targetₜ)² over n rows, which lie in the room."""
    forward(shape, parameters, room, n, 0.0, stream)
    values = unit_rows(shape, room.values, room.capacity, len(shape.codes), n)
    slopes = unit_rows(shape, room.deltas, room.capacity, len(shape.codes), n)
    for t in range(n):
        slopes[t] = values[t] - targets[t]
    backward(shape, parameters, room, n, 0.0, gradient, False)


@kernel
def returns_to_go(rewards, closed, after, gamma, out):
    """Write the discounted return from each step to the end of its episode.

    Parameters
    ----------
    closed : Whether a step was the last of its episode.
    after : What follows such a step: zero if the episode ended, an estimate if it was cut.
    """
    follows = 0.0
    for t in range(len(rewards) - 1, -1, -1):
        follows = rewards[t] + gamma * (after[t] if closed[t] else follows)
        out[t] = follows
