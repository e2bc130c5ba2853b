"""One step of Q-learning and its relatives, and whole runs of them on an MDP.

From s, after a, with the reward r and the next state s′, the entry Q(s, a) moves by a share η of its error:

    Q(s, a) ← (1 − η) Q(s, a) + η [r + γ U(s′)],    U = 0 where the episode has ended

    U(s′) = max_b Q(s′, b)                                the greedy policy's value: Q-learning
    U(s′) = (1 − ε) max_b Q(s′, b) + ε mean_b Q(s′, b)    the value of the policy that explores: Expected Sarsa
    U(s′) = Q(s′, a′), a′ the action taken next           a draw of the same: Sarsa

The maximum of noisy values is too large on average. With two tables, of which a coin says which one moves, the action that is
best in the moving one has in the other a value that owes nothing to the same noise: double learning. η depends on the visits of
the pair, ε on those of the state. The next action is chosen before the entry moves, as Sarsa needs it; where an episode is cut
it is never taken, and Sarsa takes the mean in its place. The agent and the world draw from streams of their own.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.core.xoshiro import next_uniform
from lemmata.optimize.schedules import rate_at
from lemmata.rl.environment import draw

MAX, EXPECTED, SAMPLE = range(3)
TARGETS = {"max": MAX, "expected": EXPECTED, "sample": SAMPLE}


class Settings(NamedTuple):
    """What does not change during a fit: two schedules, each as (eta, power, decay), and the rest."""

    target: int
    gamma: float
    rate: tuple
    epsilon: tuple
    horizon: int  # steps after which an episode is cut
    exploring: bool  # whether episodes begin with any state and action


class Agent(NamedTuple):
    """What an agent has learned, and how it explored; `run` changes the arrays in place."""

    q: np.ndarray  # (1, S, A), or (2, S, A) for double learning
    visits: np.ndarray  # (S, A)
    seen: np.ndarray  # (S,), their sums
    stream: np.ndarray  # (4,), of the agent's random numbers
    explored: np.ndarray  # (A,), how often each action was a random one
    doubt: np.ndarray  # (2,), Σ ε and Σ ε² over the choices


@kernel
def share(n, schedule):
    """Return the value of a schedule at the n-th visit, the usual powers without the general one, which is slow."""
    eta, power, decay = schedule
    if power == 1:
        return eta / (1 + decay * (n - 1))
    return eta if power == 0 else rate_at(n, eta, power, decay)


@kernel
def run(settings, q, visits, seen, stream, explored, doubt, law, place, n_steps, returns, lengths, told):
    """Learn from so many steps, or from as many episodes as there is room for returns; return (next action, steps, episodes).

    Without a law, one step that was taken elsewhere is learned from: told = (state, action, reward, next state, whether the
    episode ended, whether it is over), the action −1 where an episode begins; place, returns and lengths are None as well.
    """
    # One long function: kernels that pass arrays to each other count references at every call, which takes 8 times as long.
    S, A, double, steps, total, taken, closed = visits.shape[0], visits.shape[1], len(q) == 2, 0, 0.0, 0, 0
    if law is None:
        s, a, most = told[0], told[1], 1
    else:
        indptr, keep, alias, successors, rewards, ends = law
        where, sums, world = place
        s, a, steps, total, most = where[0], where[1], where[2], sums[0], len(returns)
    while (taken < n_steps and closed < most) or a < 0:
        learning, over, ended, reward, after = a >= 0, False, False, 0.0, s
        if law is None:
            reward, after, ended, over = told[2], told[3], told[4], told[5]
        elif learning:
            p = draw(indptr, keep, alias, s * A + a, world)
            reward, after, ended = rewards[p], np.int64(successors[p]), ends[p]
            total, steps, taken = total + reward, steps + 1, taken + 1
            over = ended or steps == settings.horizon
            if over:
                returns[closed], lengths[closed] = total, steps
                closed, steps, total = closed + 1, 0, 0.0
        else:
            after = np.int64(successors[draw(indptr, keep, alias, S * A + settings.exploring, world)])

        follow = -1
        if not learning and settings.exploring:
            follow = np.int64(next_uniform(stream) * A)
        elif not over:
            epsilon = min(share(seen[after] + 1, settings.epsilon), 1.0)
            doubt[0] += epsilon
            doubt[1] += epsilon * epsilon
            u = next_uniform(stream)
            if u < epsilon:
                follow = min(np.int64(u / epsilon * A), A - 1)
                explored[follow] += 1
            else:
                follow, top, ties = 0, -np.inf, 0
                for b in range(A):
                    value = q[0, after, b] + q[1, after, b] if double else q[0, after, b]
                    if value > top:
                        follow, top, ties = b, value, 1
                    elif value == top:  # among equals each has the same chance
                        ties += 1
                        if next_uniform(stream) * ties < 1:
                            follow = b

        if learning:
            moving = 1 if double and next_uniform(stream) < 0.5 else 0
            judge, value = 1 - moving if double else 0, 0.0
            if not ended:
                best, mean = 0, 0.0
                for b in range(A):
                    mean += q[judge, after, b] / A
                    if q[moving, after, b] > q[moving, after, best]:
                        best = b
                value = q[judge, after, best]
                if settings.target == SAMPLE and not over:
                    value = q[judge, after, follow]
                elif settings.target != MAX:
                    epsilon = min(share(seen[after] + 1, settings.epsilon), 1.0)
                    value = (1 - epsilon) * value + epsilon * mean
            visits[s, a] += 1
            seen[s] += 1
            q[moving, s, a] += share(visits[s, a], settings.rate) * (reward + settings.gamma * value - q[moving, s, a])
        s, a = after, follow
        if law is None:
            break
    if law is not None:
        where[0], where[1], where[2], sums[0] = s, a, steps, total
    return a, taken, closed
