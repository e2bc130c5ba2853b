"""Steps of TD(λ) with a table of values, on an MDP or as an environment tells them.

    δ = r + γ V(s′) − V(s),    e ← γλ e,  e(s) ← e(s) + 1  (or = 1, replacing),    V ← V + η δ e

Only states that the episode has visited have a trace, so only those are gone through; one whose trace has fallen below the
rounding of the value it would change is dropped, which bounds their number by log ε / log γλ.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.rl.environment import draw
from lemmata.rl.q_kernels import share

FADED = 2.0**-53  # the rounding of numbers around one


class Settings(NamedTuple):
    """What does not change during a fit."""

    gamma: float
    fade: float  # γλ
    rate: tuple  # eta, power, decay
    replacing: bool
    online: bool
    horizon: int  # steps after which an episode is cut


class Policy(NamedTuple):
    """A policy for draws in constant time: actions of state s in row s, with their aliases."""

    indptr: np.ndarray
    keep: np.ndarray
    alias: np.ndarray
    actions: np.ndarray


class Table(NamedTuple):
    """What is learned, and the traces of the episode; `run` changes the arrays in place."""

    value: np.ndarray  # (S,)
    visits: np.ndarray  # (S,)
    trace: np.ndarray  # (S,)
    active: np.ndarray  # (S,), at the front the states that have a trace
    change: np.ndarray  # (S,), what the end of the episode will add to the values, unless that is done online
    stream: np.ndarray  # (4,), of the policy's random numbers
    n_active: np.ndarray  # (1,)


@kernel
def run(settings, policy, value, visits, trace, active, change, stream, counter, law, place, n_steps, returns, lengths, told):
    """Learn from so many steps, or from as many episodes as there is room for returns; return (next action, steps, episodes).

    Without a law, one step that was taken elsewhere is learned from, as in `q_kernels.run`.
    """
    rows, stays, others, actions = policy
    S, n_active, steps, total, taken, closed = len(value), counter[0], 0, 0.0, 0, 0
    if law is None:
        s, a, most = told[0], told[1], 1
    else:
        indptr, keep, alias, successors, rewards, ends = law
        where, sums, world = place
        A = (len(indptr) - 3) // S
        s, a, steps, total, most = where[0], where[1], where[2], sums[0], len(returns)
    while (taken < n_steps and closed < most) or a < 0:
        if a >= 0:
            if law is None:
                reward, after, ended, over = told[2], told[3], told[4], told[5]
            else:
                p = draw(indptr, keep, alias, s * A + a, world)
                reward, after, ended = rewards[p], np.int64(successors[p]), ends[p]
                total, steps, taken = total + reward, steps + 1, taken + 1
                over = ended or steps == settings.horizon
                if over:
                    returns[closed], lengths[closed] = total, steps
                    closed, steps, total = closed + 1, 0, 0.0
            error = reward - value[s] + (0.0 if ended else settings.gamma * value[after])
            visits[s] += 1
            kept = 0
            for k in range(n_active):
                x = active[k]
                trace[x] *= settings.fade
                if trace[x] > FADED:
                    active[kept] = x
                    kept += 1
                else:
                    trace[x] = 0.0
            if trace[s] == 0:
                active[kept] = s
                kept += 1
            n_active = kept
            trace[s] = 1.0 if settings.replacing else trace[s] + 1.0
            for k in range(n_active):
                x = active[k]
                move = share(visits[x], settings.rate) * error * trace[x]
                if settings.online:
                    value[x] += move
                else:
                    change[x] += move
            s, a = after, -1
            if over:
                for k in range(n_active):
                    trace[active[k]] = 0.0
                n_active = 0
                if not settings.online:
                    for x in range(S):
                        value[x] += change[x]
                        change[x] = 0.0
                if law is None:
                    break  # where the next episode begins is not known yet
        if a < 0:
            if law is not None and steps == 0:
                s = np.int64(successors[draw(indptr, keep, alias, S * A, world)])
            a = np.int64(actions[draw(rows, stays, others, s, stream)])
        if law is None:
            break
    counter[0] = n_active
    if law is not None:
        where[0], where[1], where[2], sums[0] = s, a, steps, total
    return a, taken, closed
