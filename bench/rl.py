"""Planning: value iteration to a proved loss, against every method of QuantEcon's DiscreteDP; and a model of a million states.

The objective is the mean value of the states. QuantEcon's value iteration and modified policy iteration stop when a policy is
ε-optimal, as ours does; its policy iteration is exact. Both get their model ready made, and solve it from nothing.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from bench.harness import Row
from lemmata.rl import MDP, value_iteration

EPSILON = 1e-3
METHODS = ("value_iteration", "modified_policy_iteration", "policy_iteration")


def dense():
    from quantecon.markov import DiscreteDP

    rng = np.random.default_rng(0)
    T = rng.random((2_000, 10, 2_000))
    T /= T.sum(axis=2, keepdims=True)
    R = rng.normal(size=(2_000, 10))
    return MDP(T, R, 0.95), DiscreteDP(R, T, 0.95)


def concentrated():
    """Moves to few states mostly, so that values differ."""
    from quantecon.markov import DiscreteDP

    rng = np.random.default_rng(1)
    T = rng.random((2_000, 10, 2_000)) ** 30
    T /= T.sum(axis=2, keepdims=True)
    R = rng.normal(size=(2_000, 10))
    return MDP(T, R, 0.95), DiscreteDP(R, T, 0.95)


def million():
    rng, n, A, k = np.random.default_rng(0), 1_000_000, 4, 3
    near = np.arange(n)[:, None, None] + rng.integers(-1_000, 1_001, size=(n, A, k))
    chances = rng.random((n, A, k)) + 0.1
    chances /= chances.sum(axis=2, keepdims=True)
    indptr = np.arange(0, n * A * k + 1, k)
    T = csr_array((chances.ravel(), (near % n).ravel().astype(np.int32), indptr), shape=(n * A, n))
    return MDP(T, rng.normal(size=(n, A)), 0.95), None


def ours(data):
    return value_iteration(data[0], EPSILON).value


def theirs(method, data):
    return data[1].solve(method=method, epsilon=EPSILON, max_iter=100_000).v


def mean_value(data, value):
    return float(np.mean(value))


PEERS = {f"QuantEcon, {method.replace('_', ' ')}": partial(theirs, method) for method in METHODS}
BARS = dict.fromkeys(PEERS, 2.0)

ROWS = [
    Row("MDP, dense 2,000 × 10, γ = .95, ε = 1e-3", dense, ours, PEERS, mean_value, BARS, agree=1e-2, repeats=3),
    Row("the same, with few likely moves", concentrated, ours, PEERS, mean_value, BARS, agree=1e-2, repeats=3),
    Row("MDP, sparse 1,000,000 × 4, γ = .95, ε = 1e-3", million, ours, {}, mean_value, repeats=2),
]
