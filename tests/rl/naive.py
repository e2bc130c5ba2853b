"""Slow twins of the learners, written for reading, and small models to learn in."""

import itertools

import gymnasium
import numpy as np

from contracts.problems import fitted
from lemmata.core.xoshiro import next_uniform
from lemmata.rl import MDP

STAY_OR_GO = MDP([[[1.0, 0.0], [0.2, 0.8]], [[0.0, 1.0], [0.8, 0.2]]], [0.0, 1.0], 0.9)
LINE = MDP([[[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]], [[0.0, 0.0, 1.0]]], [0.0, 1.0, 0.0], 0.9, terminal=[2], initial=0)


def random_mdp(seed, n_states=6, n_actions=3, gamma=0.9, terminal=(), paid_by_move=False):
    """Draw a model in which every state can be reached."""
    rng = np.random.default_rng(seed)
    T = rng.dirichlet(np.full(n_states, 0.5), size=(n_states, n_actions))
    R = rng.normal(size=T.shape if paid_by_move else T.shape[:2])
    return MDP(T, R, gamma, terminal=list(terminal))


def exact_value(mdp, policy):
    """Solve V = r + γ P V for a policy of one action in each state, from the dense table."""
    n = mdp.n_states
    P, r = np.zeros((n, n)), mdp.rewards[np.arange(n), policy]
    for s, a in enumerate(policy):
        for k in range(mdp.indptr[s * mdp.n_actions + a], mdp.indptr[s * mdp.n_actions + a + 1]):
            if not mdp.transition_ends[k]:
                P[s, mdp.successors[k]] += mdp.probabilities[k]
    return np.linalg.solve(np.eye(n) - mdp.gamma * P, r)


def best_value(mdp):
    """Try every policy; give the value of the best one."""
    values = [exact_value(mdp, policy) for policy in itertools.product(range(mdp.n_actions), repeat=mdp.n_states)]
    return np.max(values, axis=0)


class Played:
    """An MDP as an environment of Gymnasium that draws what a compiled run would draw, from the same stream."""

    def __init__(self, mdp, law, draw, stream, columns=None):
        self.mdp, self.law, self.draw, self.stream, self.columns = mdp, law, draw, stream, columns
        self.action_space = gymnasium.spaces.Discrete(mdp.n_actions)
        self.observation_space = gymnasium.spaces.Discrete(mdp.n_states)
        if columns is not None:
            self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, columns.shape[1:], dtype=np.float64)
        self.spec, self.unwrapped = None, self

    def _seen(self):
        return self.state if self.columns is None else self.columns[self.state]

    def reset(self, seed=None):
        row = self.mdp.n_states * self.mdp.n_actions
        self.state = int(self.law.successors[self.draw(*self.law[:3], row, self.stream)])
        return self._seen(), {}

    def step(self, action):
        k = self.draw(*self.law[:3], self.state * self.mdp.n_actions + action, self.stream)
        self.state = int(self.law.successors[k])
        return self._seen(), self.law.rewards[k], bool(self.law.ends[k]), False, {}


def uniforms(stream, n):
    """Draw n numbers from a copy of a stream."""
    stream = stream.copy()
    return [next_uniform(stream) for _ in range(n)]


def rich_lake():
    """Make a lake where every move pays something, and some moves end the episode."""
    options = {"reward": lambda s, a, after: float(np.sin(3 * s + a + after)), "ends": lambda s, a, after: (s + 2 * a) % 7 == 0}
    return Recorded(gymnasium.make("FrozenLake-v1"), **options)


class Recorded:
    """Keeps what happens: (state, action, reward, next state, ended, over).

    With rewards and ends of its own, functions of (state, action, next state), it is a richer world than the one it wraps:
    episodes then also end by moves to states that others go through.
    """

    def __init__(self, env, reward=None, ends=None, number=int):
        self.env, self.log, self.reward, self.ends, self.number = env, [], reward, ends, number
        self.action_space, self.observation_space = env.action_space, env.observation_space
        self.spec, self.unwrapped = env.spec, env.unwrapped

    def reset(self, **options):
        if self.log:  # whoever resets has seen the end of an episode, or cut it
            self.log[-1] = (*self.log[-1][:5], True)
        seen, told = self.env.reset(**options)
        self.state = self.number(seen)
        return seen, told

    def step(self, action):
        seen, reward, ended, cut, told = self.env.step(action)
        move = (self.state, action, self.number(seen))
        reward = reward if self.reward is None else self.reward(*move)
        ended = ended or (self.ends is not None and self.ends(*move))
        self.log.append((self.state, action, reward, self.number(seen), ended, ended or cut))
        self.state = self.number(seen)
        return seen, reward, ended, cut, told


def td_recursion(log, n_states, gamma, lambda_, eta, trace="accumulating"):
    """Run the recursion of the textbook along a record."""
    V, e = np.zeros(n_states), np.zeros(n_states)
    for s, _, r, after, ended, over in log:
        delta = r + (0.0 if ended else gamma * V[after]) - V[s]
        e *= gamma * lambda_
        e[s] = e[s] + 1 if trace == "accumulating" else 1.0
        V += eta * delta * e
        if over:
            e[:] = 0
    return V


def assert_close(a, b):
    """Assert that two fits took the same steps; a kernel that is compiled twice may round otherwise."""
    one, other = fitted(a), fitted(b)
    assert one.keys() == other.keys()
    for name, value in one.items():
        if np.asarray(value).dtype.kind == "f":
            np.testing.assert_allclose(value, other[name], rtol=1e-11, atol=1e-14, err_msg=name)
        else:
            assert np.array_equal(value, other[name]), name


class Interrupt:
    """A callback of scikit-learn that presses Ctrl-C at the second iteration, or another one."""

    def __init__(self, at=2):
        self.at, self.count = at, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context, **options):
        self.count += context.task_name == "iteration"
        if self.count == self.at:
            raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context, **options):
        return False
