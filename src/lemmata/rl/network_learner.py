"""What learners with a network share: inputs, the parameters of one or two networks, and the choice of the best ones.

What a network has learned by trying comes and goes: a policy that was right can be lost within a few steps. So after each chunk
the present parameters are tried, greedily, in some episodes that teach nothing, and those that did best are kept.
"""

from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.core.certificate import same
from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.neural_network.activations import NAMES
from lemmata.neural_network.layers import (
    conclude,
    draw_parameters,
    forward,
    hidden_sizes,
    layer,
    n_parameters,
    new_rooms,
    new_shape,
    room_of,
    unit_rows,
)
from lemmata.neural_network.network import Network, gradient_check
from lemmata.optimize.rules import RULES, Rule
from lemmata.rl.learner import LONGEST, SHARED, Learner, mean_return, numbers_of
from lemmata.rl.transitions import numbers

SHOWN = 8  # rows on which derivatives are compared with differences
UNMOVED = np.zeros(4, np.uint64)  # the state of draws that are never made: no unit is dropped here
NETWORK = {
    **SHARED,
    "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
    "activation": [StrOptions({"identity", "logistic", "sigmoid", "tanh", "relu"})],
    "rule": [StrOptions(set(RULES)), Rule],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "n_evaluations": [Interval(Integral, 0, None, closed="left")],
    "stop_at": [Interval(Real, None, None, closed="neither"), None],
}


class Trained(NamedTuple):
    """All that a fit with a network knows between two chunks."""

    memory: tuple  # the arrays of the learner, those of the parameters first
    stream: np.ndarray  # (4,), of the world's random numbers
    returns: np.ndarray  # of the episodes that came to a close
    lengths: np.ndarray
    steps: int
    best: np.ndarray  # parameters that did best when tried
    scores: np.ndarray  # mean returns of the trials, after each chunk


@kernel
def outputs_at(shape, parameters, room, x, stream):
    """Return the outputs of a network for a single row; they lie in the room, and the next call overwrites them.

    The stream of random numbers would drop units, and none is dropped.
    """
    room.values[: len(x)] = x
    forward(shape, parameters, room, 1, 0.0, stream)
    conclude(shape, room, 1)
    return unit_rows(shape, room.values, room.capacity, len(shape.codes), 1)


@kernel
def largest(values):
    """Return the number of the largest value, the first of equals."""
    best = 0
    for b in range(1, len(values)):
        if values[b] > values[best]:
            best = b
    return best


@kernel
def best_output(shape, parameters, room, x, stream):
    """Return the number of the largest output for a single row."""
    return largest(outputs_at(shape, parameters, room, x, stream))


def new_room(shape, n_rows=1):
    """Make room for some rows of a network."""
    return room_of(new_rooms(shape, 1, n_rows, np.float64), 0)


def of_a_fit(shape, parameters):
    """Return parameters in float64, checked before compiled code reads them."""
    if parameters.shape != (n_parameters(shape),):
        told = f"parameters_ has the shape {parameters.shape}, which is not that of a fit with these parameters"
        raise ValueError(f"{told}: it has {n_parameters(shape)} numbers; fit again.")
    return parameters.astype(float)


def draw_start(shape, rng):
    """Draw weights to start from; the last layer starts at zero, so that all outputs are equal."""
    parameters = draw_parameters(shape, rng)
    layer(shape, parameters, len(shape.codes) - 1)[0][:] = 0.0
    return parameters


def network_shape(n_inputs, hidden, activation, n_outputs, last):
    """Describe a network with one activation in its hidden layers and another one in the last."""
    hidden = hidden_sizes(hidden)
    return new_shape([n_inputs, *hidden, n_outputs], [activation] * len(hidden) + [last])


class NetworkLearner(Learner):
    """Base of learners whose policy or values are a network."""

    def _shape(self, n_inputs, n_outputs, last="identity"):
        return network_shape(n_inputs, self.hidden_layer_sizes, self.activation, n_outputs, last)

    def _rule(self):
        return self.rule if isinstance(self.rule, Rule) else RULES[self.rule](self.learning_rate)

    def _longest(self):
        return self.max_episode_steps or LONGEST

    def _learn_network(self, world):
        """Learn, and keep what it takes to read observations without the environment."""
        self._learn(world)
        for name in ("center_", "scale_"):
            vars(self).pop(name, None)
        if world.n_states is None:
            self.center_, self.scale_ = world.center.copy(), world.scale.copy()

    def _inputs(self, observations):
        """Return observations as rows for the network: numbers of states as one-hot rows, boxes scaled by their bounds."""
        if not hasattr(self, "center_"):
            states = np.ravel(numbers_of(observations, self.n_features_in_))
            rows = np.zeros((len(states), self.n_features_in_))
            rows[np.arange(len(states)), states] = 1.0
            return rows
        X = numbers("Observations", observations)
        if not np.isfinite(X).all():
            raise ValueError("Observations must be finite numbers, and one of these is not.")
        if X.size and self.n_features_in_ not in (X.size, np.prod(X.shape[1:])):  # one observation, or one after the other
            raise ValueError(f"Observations have {self.n_features_in_} numbers each, got the shape {X.shape}.")
        return (X.reshape(-1, self.n_features_in_) - self.center_) * self.scale_

    def _replay(self, world):
        """Compute the fit again; how observations are read belongs to it."""
        state, checks = super()._replay(world)
        if world.n_states is None:
            claim = "observations are brought to [−1, 1] where they have bounds"
            checks += [same(self.center_, world.center, "center", claim), same(self.scale_, world.scale, "scale", claim)]
        return state, checks

    def _derivatives(self, world, shape, parameters):
        """Compare derivatives of a network with central differences, where some episodes begin."""
        seen = [np.asarray(world.reset(seed)) for seed in range(SHOWN)]
        network = Network(shape.sizes, [NAMES[code] for code in shape.codes])
        network.parameters[:] = of_a_fit(shape, parameters)
        actions = NAMES[shape.codes[-1]] == "softmax"
        targets = np.arange(SHOWN) % shape.sizes[-1] if actions else np.zeros((SHOWN, shape.sizes[-1]))
        return gradient_check(network, self._inputs(np.array(seen)), targets).checks[0]

    def _outputs(self, observations, shape, parameters):
        """Return the outputs of a network for observations, a row each."""
        X = np.ascontiguousarray(self._inputs(observations))
        room = new_room(shape, max(len(X), 1))
        room.values[: X.size] = X.ravel()
        with serial_blas():
            forward(shape, of_a_fit(shape, parameters), room, len(X), 0.0, UNMOVED)
        conclude(shape, room, len(X))
        return unit_rows(shape, room.values, room.capacity, len(shape.codes), len(X)).reshape(len(X), shape.sizes[-1]).copy()


def go_on(world, learn, act, n_steps, n_evaluations, stop_at, horizon, chunk, state):
    """Learn from a chunk of whole episodes and try what came of it; return (state, steps taken, steps left).

    Parameters
    ----------
    learn : Function of (memory, stream, steps at least, steps at most) that changes the memory and the stream in place and
        returns (returns, lengths, steps).
    act : Function of (memory, observation) that returns the greedy action.
    """
    memory = type(state.memory)(*(array.copy() for array in state.memory))
    stream, left = state.stream.copy(), n_steps - state.steps
    with serial_blas():
        returns, lengths, taken = learn(memory, stream, min(chunk, left), left)
        if not np.isfinite(memory[0]).all():
            told = "are all rewards and observations finite? If so, take shorter steps by learning_rate"
            raise ValueError(f"The parameters left the numbers: {told}.")
        scores, best = state.scores, memory[0]
        if n_evaluations:
            score = mean_return(world, lambda seen: act(memory, seen), n_evaluations, horizon, stream)
            best = memory[0].copy() if score >= scores.max(initial=-np.inf) else state.best
            scores = np.append(scores, score)
    returns, lengths = np.concatenate([state.returns, returns]), np.concatenate([state.lengths, lengths])
    steps = state.steps + taken
    done = stop_at is not None and n_evaluations > 0 and scores[-1] >= stop_at
    state = Trained(memory, stream, returns, lengths, steps, best, scores)
    return state, float(steps), 0.0 if done else float(n_steps - steps)
