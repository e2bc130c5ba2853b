"""What all learners in environments share: runs in chunks that can be shown, interrupted and resumed, and trials.

A fit is a function of the environment, the parameters and a seed, so it can be computed again: that is the part of every
certificate that refuses any change. Between chunks all there is to know lies in a state of plain arrays.
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Check, same
from lemmata.core.estimator import Estimator, Iterative
from lemmata.core.iterate import replay
from lemmata.core.random import generator
from lemmata.core.xoshiro import next_uniform
from lemmata.core.xoshiro import seed as words
from lemmata.optimize.schedules import Schedule
from lemmata.rl.environment import FOREVER, SEEDS, discount_of, sized, world_of
from lemmata.rl.walk import at_least_one

NOTHING = (0, -1, 0.0, 0, False, False)  # is told where the law says what happens
CHUNKS = 100  # of a fit: the bar moves by a percent
LEAST = 1 << 12  # steps in a chunk: a hundredth of a second of Python
LONGEST = 10_000  # steps of an episode that is only looked at and does not end
WHOLE = Interval(Integral, 1, None, closed="left")
SHARED = {  # what the parameters that all learners have may be
    "gamma": [Interval(Real, 0, 1, closed="both"), None],
    "n_steps": [WHOLE],
    "max_episode_steps": [WHOLE, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
}


class Place(NamedTuple):
    """Where a run on an MDP stands; kernels change the arrays in place."""

    where: np.ndarray  # (3,), state, action that comes next (−1: none yet), steps of the episode
    total: np.ndarray  # (1,), rewards of the episode
    stream: np.ndarray  # (4,), of the world's random numbers


class Run(NamedTuple):
    """All that a fit with a table knows between two chunks."""

    memory: tuple  # the arrays of the kernel, that of the values first
    place: Place
    returns: np.ndarray  # of the episodes that came to a close
    lengths: np.ndarray
    steps: int


def start(memory, stream):
    """Return the state before the first step."""
    place = Place(np.array([0, -1, 0]), np.zeros(1), stream)
    return Run(memory, place, np.zeros(0), np.zeros(0, dtype=np.int64), 0)


def go_on(world, kernel, horizon, n_steps, n_episodes, chunk, state):
    """Take a chunk of steps; return (state, steps taken, steps left), and leave the given state as it is.

    Parameters
    ----------
    kernel : `q_kernels.run` or its like, without the first arguments.
    horizon : Steps after which an episode is cut.
    n_episodes : Episodes at most, or None.
    """
    memory, place = (type(part)(*(array.copy() for array in part)) for part in (state.memory, state.place))
    left, open_ = n_steps - state.steps, FOREVER if n_episodes is None else n_episodes - len(state.returns)
    learn = partial(kernel, *memory)
    if world.law is not None:
        most = min(chunk, left)
        returns, lengths = np.empty(min(most, open_)), np.empty(min(most, open_), dtype=np.int64)
        _, taken, closed = learn(world.law, place, most, returns, lengths, NOTHING)
        returns, lengths = returns[:closed], lengths[:closed]
    else:
        returns, lengths, taken = try_episodes(world, learn, place.stream, horizon, chunk, left, open_)
    if not np.isfinite(memory[0]).all():
        raise ValueError("The values left the numbers: are all rewards finite? If so, take shorter steps by learning_rate.")
    returns, lengths = np.concatenate([state.returns, returns]), np.concatenate([state.lengths, lengths])
    steps, done = state.steps + taken, len(returns) == n_episodes
    return Run(memory, place, returns, lengths, steps), float(steps), 0.0 if done else float(n_steps - steps)


def try_episodes(world, learn, stream, horizon, chunk, left, most):
    """Learn from whole episodes of an environment until there are enough steps; only the last one may be broken off."""
    returns, lengths, taken = [], [], 0
    while taken < min(chunk, left) and len(returns) < most:
        s = world.reset(int(next_uniform(stream) * SEEDS))
        a, _, _ = learn(None, None, 1, None, None, (s, -1, 0.0, s, False, False))
        total, steps, over = 0.0, 0, False
        while not over and taken < left:
            after, reward, ended, cut = world.step(a)
            total, steps, taken = total + reward, steps + 1, taken + 1
            over = ended or cut or steps == horizon
            a, _, _ = learn(None, None, 1, None, None, (s, a, reward, after, ended, over))
            s = after
        if over:
            returns.append(total)
            lengths.append(steps)
    return np.array(returns), np.array(lengths, dtype=np.int64), taken


class Learner(Iterative, Estimator):
    """Base of estimators that learn by trying."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags

    def __sklearn_is_fitted__(self):
        return hasattr(self, "seed_")  # the parameter `lambda_` looks as if it were fitted

    @property
    def chunk(self):
        """Steps between two looks at the keyboard, at least."""
        return max(-(-self.n_steps // CHUNKS), LEAST)

    @property
    def max_iter(self):
        """Chunks at most."""
        return -(-self.n_steps // self.chunk)

    def _learn(self, world):
        """Run chunks until all steps are taken; keep what the last state amounts to, also after Ctrl-C."""
        seed, gamma = int(generator(self.random_state).integers(2**32)), discount_of(self.gamma, world)
        step, first = self._steps(world, seed)
        with self._fitting(world) as fitting:
            # The "objective" is the number of steps taken, so that the state to keep is the last one.
            run = fitting.iterate(step, first, tol=0.0, monotone="up", name=type(self).__name__, fitted=self._fitted)
        for name, value in self._fitted(run.state).items():
            setattr(self, name, value)
        self.gamma_, self.seed_, self.source_ = gamma, seed, world.source
        self.n_features_in_, self.n_actions_ = world.n_features, world.n_actions
        return self

    def _same_size(self, world):
        """Refuse an environment that has not the states, or the numbers, and the actions of the fit; else return it."""
        here = sized(world.n_states is not None, world.n_features, world.n_actions)
        fitted = sized(not hasattr(self, "center_"), self.n_features_in_, self.n_actions_)
        if here != fitted:
            raise ValueError(f"The model was learned with {fitted}, and this environment has {here}: give that of the fit.")
        return world

    def _replay(self, world):
        """Compute the fit again; return the last state, and a check for each fitted attribute.

        What was learned in Gymnasium may be held against an MDP; then there is nothing to repeat.
        """
        if world.source != self.source_:
            if world.source == "mdp":
                return None, []
            raise ValueError("The model was learned in an MDP: certify it there.")
        step, first = self._steps(world, self.seed_)
        state = replay(step, first, max_iter=self.max_iter, ended=lambda state: state.steps >= self.n_steps_).state
        claim = "the same steps in the same environment lead to the same"
        checks = [compared(getattr(self, name), value, name.strip("_"), claim) for name, value in self._fitted(state).items()]
        discount = discount_of(self.gamma, world)
        return state, [*checks, same(self.gamma_, discount, "gamma", "the discount is the one that was asked for")]

    def score(self, env, y=None, *, n_episodes=100, random_state=0):
        """Return the mean return, not discounted, of acting as learned for so many episodes.

        An episode that goes on is cut after `max_episode_steps`, or 10,000 steps.
        """
        check_is_fitted(self)
        n_episodes, horizon = at_least_one("n_episodes", n_episodes), self.max_episode_steps or LONGEST
        world = self._same_size(world_of(env))
        return mean_return(world, partial(self._act, world), n_episodes, horizon, words(generator(random_state)))

    def _act(self, world, seen):
        raise ValueError("Values of a given policy were learned, and no policy: there is nothing to score.")


def mean_return(world, act, n_episodes, horizon, stream):
    """Return the mean return, not discounted, of acting in some episodes that are cut after so many steps."""
    total = 0.0
    for _ in range(n_episodes):
        observation = world.reset(int(next_uniform(stream) * SEEDS))
        for _ in range(horizon):
            observation, reward, ended, cut = world.step(act(observation))
            total += reward
            if ended or cut:
                break
    return total / n_episodes


def constants_of(value):
    """Return the constants of a schedule or a number, which may be zero."""
    return value.constants if isinstance(value, Schedule) else (float(value), 0.0, 0.0)


def compared(stored, recomputed, name, claim):
    """Check a fitted attribute against its recomputed value: numbers by their distance, whole numbers exactly."""
    a, b = np.asarray(stored), np.asarray(recomputed)
    if b.dtype.kind == "f":
        return same(a, b, name, claim)
    return Check(name, float((a != b).sum()) if a.shape == b.shape else np.inf, 0.0, "proof", claim)


def numbers_of(states, n):
    """Validate numbers of states."""
    try:
        found = np.asarray(states)
    except ValueError:  # lists that are not equally long
        found = np.array(states, dtype=object)
    if found.size and (found.dtype.kind not in "iu" or found.min() < 0 or found.max() >= n):
        raise ValueError(f"States are numbers from 0 to {n - 1}, got {states!r}.")
    return found.astype(np.int64)
