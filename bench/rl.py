"""Planning: value iteration to a proved loss, against every method of QuantEcon's DiscreteDP; and models of a million states.

The objective is the mean value of the states. QuantEcon's value iteration and modified policy iteration stop when a policy is
ε-optimal, as ours does; its policy iteration is exact. Both get their model ready made, and solve it from nothing. The bar of
a million states is a minute and 2 GiB, model included. Where moves lead to random states nearby, a few passes do; on a slippery
grid whose states are shuffled the way to the end is two thousand steps long.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from bench.harness import Row
from lemmata.rl import MDP, value_iteration

USUAL, TIGHT = 1e-3, 1e-6  # loss to prove: QuantEcon's default, and a thousandth of it
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


def grid(side=1_000):
    rng, n = np.random.default_rng(0), 1_000_000
    i, j = np.divmod(np.arange(n), side)
    ahead = [
        np.clip(i + down, 0, side - 1) * side + np.clip(j + right, 0, side - 1)
        for down, right in ((-1, 0), (0, 1), (1, 0), (0, -1))
    ]
    name, parts = rng.permutation(n), []
    for a in range(4):
        for turn, p in ((0, 0.8), (1, 0.1), (3, 0.1)):
            parts.append((np.full(n, p), name * 4 + a, name[ahead[(a + turn) % 4]]))
    chances, rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    T = csr_array((chances, (rows, columns)), shape=(4 * n, n))
    cost = np.full(n, -1.0)
    cost[name[-1]] = 0.0
    return MDP(T, cost, 0.999, terminal=[name[-1]]), None


def ours(epsilon, data):
    return value_iteration(data[0], epsilon).value


def theirs(method, epsilon, data):
    return data[1].solve(method=method, epsilon=epsilon, max_iter=100_000).v


def mean_value(data, value):
    return float(np.mean(value))


def against(name, make, epsilon):
    peers = {f"QuantEcon, {method.replace('_', ' ')}": partial(theirs, method, epsilon) for method in METHODS}
    bars = dict.fromkeys(peers, 2.0)
    return Row(f"{name}, ε = {epsilon:g}", make, partial(ours, epsilon), peers, mean_value, bars, agree=1e-2, repeats=2)


ROWS = [
    against("MDP, dense 2,000 × 10, γ = .95", dense, USUAL),
    against("MDP, dense 2,000 × 10, γ = .95", dense, TIGHT),
    against("the same, with few likely moves", concentrated, USUAL),
    against("the same, with few likely moves", concentrated, TIGHT),
    Row("MDP, sparse 1,000,000 × 4, γ = .95, ε = 1e-06", million, partial(ours, TIGHT), {}, mean_value, repeats=2),
    Row("slippery grid of 1,000 × 1,000, shuffled, γ = .999, ε = 1e-06", grid, partial(ours, TIGHT), {}, mean_value, repeats=1),
]
