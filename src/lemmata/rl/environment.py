"""One face for the worlds that an agent learns in: MDPs, whose law is known, and Gymnasium's environments, which are tried.

    s₀ ~ p₀,    (r_t, s_{t+1}) ~ T(· | s_t, a_t),    until the episode ends, or is cut

An episode that ends has nothing to follow, so the value there is 0; one that is cut by a limit of steps would have gone on, and
the value of the last state counts. Gymnasium says "terminated" and "truncated"; to take one for the other is the usual mistake.
Every episode has a seed of its own, so what happens in it does not depend on what was tried before: a fit can be resumed and
replayed. The next state of an MDP is drawn in constant time by Walker's alias method: of n successors one is drawn with equal
odds, and gives way to its alias with the chance that makes the odds right.

Walker, ACM Trans. Math. Software 3 (1977); Vose, IEEE Trans. Software Eng. 17 (1991). Towers et al., Gymnasium (2024).
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.rl.mdp import MDP

DISCOUNT = 0.99  # where neither the estimator nor the environment has one: a horizon of a hundred steps
SEEDS = 2.0**32  # of episodes: Gymnasium takes any that NumPy does
UNBOUNDED = 1e30  # a bound that means none: some environments write the largest number of float32 for infinity
FOREVER = np.iinfo(np.int64).max  # steps of an episode that nothing cuts


class Law(NamedTuple):
    """What a compiled walk needs of an MDP.

    The successors of (s, a) stand in row s·A + a; two more rows hold the initial law, and equal odds for all states in which
    something can happen.
    """

    indptr: np.ndarray  # (S·A + 3,)
    keep: np.ndarray  # chance that an entry that was drawn stays
    alias: np.ndarray  # position of what takes its place
    successors: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray


@kernel
def alias_tables(indptr, probabilities):
    """Prepare each row of probabilities for draws in constant time: (chance to stay, position of the alias)."""
    keep, alias = np.ones(len(probabilities)), np.empty(len(probabilities), dtype=np.int64)
    stack = np.empty(len(probabilities), dtype=np.int64)
    for row in range(len(indptr) - 1):
        first, last = indptr[row], indptr[row + 1]
        total = 0.0
        for p in range(first, last):
            total += probabilities[p]
        small, large = first, last  # below `small` wait entries with less than their share, from `large` on those with more
        for p in range(first, last):
            keep[p], alias[p] = probabilities[p] / total * (last - first), p
            if keep[p] < 1:
                stack[small] = p
                small += 1
            else:
                large -= 1
                stack[large] = p
        while small > first and large < last:
            small -= 1
            poor, rich = stack[small], stack[large]
            alias[poor] = rich
            keep[rich] -= 1 - keep[poor]
            if keep[rich] < 1:
                large += 1
                stack[small] = rich
                small += 1
        for k in range(first, small):  # what is left differs from its share by rounding only
            keep[stack[k]] = 1.0
        for k in range(large, last):
            keep[stack[k]] = 1.0
    return keep, alias


@kernel
def draw(indptr, keep, alias, row, stream):
    """Draw the position of an entry of a row; where there is no choice, no random number is taken."""
    first, n = indptr[row], indptr[row + 1] - indptr[row]
    if n == 1:
        return first
    u = next_uniform(stream) * n
    k = np.int64(u)
    return first + k if u - k < keep[first + k] else alias[first + k]


def law_of(mdp):
    """Prepare an MDP for compiled walks."""
    start, free = np.where(mdp.silent, 0.0, mdp.initial), np.flatnonzero(~mdp.silent)
    begins = np.flatnonzero(start)
    if not len(begins):
        raise ValueError("The MDP begins in terminal states only, so there is nothing to learn: give another initial law.")
    pairs, extra = mdp.transition_rewards, np.zeros(len(begins) + len(free))
    each = np.repeat(np.ravel(mdp.rewards), np.diff(mdp.indptr)) if pairs is None else pairs
    indptr = np.append(mdp.indptr, mdp.indptr[-1] + np.cumsum([len(begins), len(free)]))
    keep, alias = alias_tables(indptr, np.concatenate([mdp.probabilities, start[begins], np.ones(len(free))]))
    successors = np.concatenate([mdp.successors, begins, free]).astype(np.int32)
    return Law(indptr, keep, alias, successors, np.concatenate([each, extra]), np.concatenate([mdp.transition_ends, extra > 0]))


class Simulation:
    """An MDP to try: states are numbers, features are one-hot."""

    source = "mdp"

    def __init__(self, mdp):
        self.mdp, self.law = mdp, law_of(mdp)
        self.n_states, self.n_actions, self.n_features, self.gamma = mdp.n_states, mdp.n_actions, mdp.n_states, mdp.gamma
        self._stream, self._state = np.zeros(4, dtype=np.uint64), 0

    def reset(self, seed):
        """Begin an episode; return the first state."""
        self._stream = np.random.SeedSequence(seed).generate_state(4, np.uint64)
        self._state = int(self.law.successors[draw(*self.law[:3], self.n_states * self.n_actions, self._stream)])
        return self._state

    def step(self, action):
        """Act; return (state, reward, whether the episode ended, whether it was cut)."""
        p = draw(*self.law[:3], self._state * self.n_actions + action, self._stream)
        self._state = int(self.law.successors[p])
        return self._state, float(self.law.rewards[p]), bool(self.law.ends[p]), False

    def write(self, state, out):
        """Write a state as numbers for a network."""
        out[:] = 0.0
        out[state] = 1.0

    @property
    def n_rows(self):
        """What identifies the environment in a checkpoint: its size, and the digest of its parts."""
        return self.n_states

    n_columns = property(lambda self: self.n_actions)

    def reduce(self, digest):
        """Digest the law and the discount."""
        return digest(*self.law, np.array(self.gamma, dtype=float))


class Episodes:
    """An environment of Gymnasium with discrete actions; observations are discrete, or boxes of numbers.

    Numbers that have bounds are brought to [−1, 1] by them, for networks; others are left as they are.
    """

    source, mdp, law, gamma = "gymnasium", None, None, None

    def __init__(self, env):
        self.env = env
        self._action, self._place = _discrete(env.action_space), _discrete(env.observation_space)
        if self._action is None:
            told = f"The actions must be discrete, and this environment has {env.action_space}"
            raise ValueError(f"{told}: wrap it so that they are numbers, by gymnasium.wrappers.TransformAction say.")
        self.n_actions, self._first_action = self._action
        if self._place is not None:
            self.n_states, self._first = self._place
            self.n_features = self.n_states
        else:
            if not hasattr(env.observation_space, "low"):
                told = f"Observations must be discrete or a box of numbers, and this environment has {env.observation_space}"
                raise ValueError(f"{told}: wrap it, by gymnasium.wrappers.FlattenObservation say.")
            self.n_states = None
            low, high = (np.ravel(b).astype(float) for b in (env.observation_space.low, env.observation_space.high))
            bounded = (high > low) & (high < UNBOUNDED) & (low > -UNBOUNDED)
            low, high = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
            self.n_features = len(low)
            self.center, self.scale = (low + high) / 2, 2 / (high - low)

    def reset(self, seed):
        """Begin an episode; return the first observation."""
        return self._seen(self.env.reset(seed=int(seed))[0])

    def step(self, action):
        """Act; return (observation, reward, whether the episode ended, whether it was cut)."""
        observation, reward, ended, cut, _ = self.env.step(action + self._first_action)
        if np.ndim(reward) or not isinstance(reward, Real | np.ndarray):
            raise ValueError(f"The environment must pay numbers as rewards, and paid {reward!r}.")
        return self._seen(observation), float(reward), bool(ended), bool(cut)

    def _seen(self, observation):
        """Return an observation, or the number of a state; checked before compiled code reads it."""
        if self._place is None:
            seen = observation if np.size(observation) == self.n_features else None
        else:
            seen = number_of(observation, self._first, self.n_states)
        if seen is None:
            raise ValueError(f"The environment shows {observation!r}, which is not in its {self.env.observation_space}.")
        return seen

    def write(self, observation, out):
        """Write an observation as numbers for a network."""
        if self._place is None:
            out[:] = np.ravel(observation)
            out -= self.center
            out *= self.scale
        else:
            out[:] = 0.0
            out[observation] = 1.0

    @property
    def n_rows(self):
        """What identifies the environment in a checkpoint: its size, and its name with all options."""
        return self.n_features

    n_columns = property(lambda self: self.n_actions)

    def reduce(self, digest):
        """Digest the name and the options; an environment without them is known by its class."""
        kind = type(getattr(self.env, "unwrapped", self.env)).__qualname__
        return digest(f"{kind} {getattr(self.env, 'spec', None)}".encode())


def number_of(given, first, n):
    """Return the place of something among n whole numbers from `first` on; None if it is none of them.

    Examples
    --------
    >>> number_of(np.int64(7), 5, 3), number_of(7.5, 5, 3), number_of("a", 5, 3), number_of(8, 5, 3)
    (2, None, None, None)
    """
    try:
        place = int(given) - first
    except (TypeError, ValueError, OverflowError):
        return None
    return place if 0 <= place < n and place + first == given else None


def sized(discrete, n, n_actions):
    """Tell the size of an environment in words."""
    return f"{f'{n} states' if discrete else f'observations of {n} numbers'} and {n_actions} actions"


def _discrete(space):
    """Return (number of elements, the first) of a discrete space, or None of any other."""
    return (int(space.n), int(getattr(space, "start", 0))) if hasattr(space, "n") and space.shape == () else None


def world_of(env):
    """Give an environment the face that the learners know.

    Examples
    --------
    >>> from lemmata.rl.mdp import MDP
    >>> world = world_of(MDP([[[0.0, 1.0]], [[1.0, 0.0]]], [0.0, 1.0], 0.9))
    >>> state = world.reset(seed=0)
    >>> world.step(0)[0] == 1 - state
    True
    """
    if isinstance(env, MDP):
        return Simulation(env)
    if hasattr(env, "num_envs"):
        raise ValueError("This is a vector of environments; give a single one, such as gymnasium.make returns.")
    if not all(hasattr(env, name) for name in ("reset", "step", "action_space", "observation_space")):
        told = f"env must be an MDP or an environment of Gymnasium, got {type(env).__name__}"
        raise ValueError(f"{told}; an environment has reset, step, action_space and observation_space.")
    return Episodes(env)


def tabular(env, name):
    """Give an environment with numbered states its face; others are refused."""
    world = world_of(env)
    if world.n_states is None:
        told = f"{name} keeps a table of all states, and this environment has observations in {env.observation_space}"
        raise ValueError(f"{told}: use TDNetwork or Reinforce.")
    return world


def discount_of(gamma, world):
    """Return the discount: the estimator's, or the MDP's, which must not contradict each other."""
    if gamma is not None and world.gamma is not None and gamma != world.gamma:
        raise ValueError(f"gamma={gamma} contradicts the MDP, whose gamma is {world.gamma}: leave it out.")
    return float(next(g for g in (world.gamma, gamma, DISCOUNT) if g is not None))
