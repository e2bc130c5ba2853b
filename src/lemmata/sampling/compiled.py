"""Chains into which a user's own functions are compiled.

Kernels take no functions as arguments: what numba then keeps on disk is not reliable. A log density that a user has compiled
is the one exception. It is passed in, numba compiles the chain around it, anew in every process (about a second at the first
call), and no call of Python is left between two steps. What does not depend on the density is in kernels, compiled once and
for all. Data should be passed as `args` rather than be enclosed in the function: then other data need no other code.

Normal numbers and the exponential numbers that decide come from two generators, so that a chain is the same, up to rounding,
when many chains are advanced together by NumPy.
"""

import numba
import numpy as np

from lemmata.core.kernel import kernel

ADAPTATION = 0.6  # steps of the scale fall as t^−0.6: slow enough to get anywhere, quick enough to come to rest [1]

# [1] Andrieu, Thoms, Statistics and Computing 18 (2008).


def into_chain(function):
    """Compile a function that takes compiled functions; with the flags of `kernel`, but not kept on disk."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract", "nsz"}}
    return numba.njit(**options)(function)  # noqa: TID251 - the exception that the module is about


def is_compiled(function):
    """Tell whether numba has compiled a function (or will, at its first call).

    Examples
    --------
    >>> is_compiled(len)
    False
    """
    return isinstance(function, numba.core.dispatcher.Dispatcher)


@kernel
def propose(x, factor, tune, turn, normals, z, y):
    """Write x and a normal step into y; return the row of `tune` that gave the scale."""
    d, rows, r = len(x), len(tune), 0
    if rows == 1:
        scale = np.exp(tune[0, 0])
        for i in range(d):
            z[i] = scale * normals.standard_normal()
    else:
        r = turn[0] % rows
        z[:] = 0.0
        z[r] = np.exp(tune[r, 0]) * normals.standard_normal()
    turn[0] += 1
    for i in range(d):
        s = x[i]
        for j in range(i + 1):
            s += factor[i, j] * z[j]
        y[i] = s
    return r


@kernel
def accepts(rise, exponentials):
    """Decide: log u = −e for a uniform number u and an exponential one e."""
    return rise > -exponentials.standard_exponential()


@kernel
def adapt(tune, r, rise, goal):
    """Change a scale towards the share of acceptances that is wanted, by less and less."""
    tune[r, 2] += 1.0
    tune[r, 0] += tune[r, 1] * tune[r, 2] ** -ADAPTATION * (np.exp(min(rise, 0.0)) - goal)
    tune[r, 3] += (tune[r, 0] - tune[r, 3]) / tune[r, 2]


@into_chain
def walk(log_density, args, x, log_x, factor, tune, turn, goal, normals, exponentials, thin, draws, logs):
    """Advance a random walk; return how many proposals were accepted, or −1 if the density is no number below ∞ (at x, then).

    Parameters
    ----------
    x, log_x : Where the chain is, (d,), and the log density there, (1,); both are changed.
    tune : (1, 4), or (d, 4) for steps in one direction after another: the log scale of steps; the gain of its adaptation, 0 for
        none; steps adapted; and the mean log scale over them. It is changed.
    turn : (1,), number of the next step.
    goal : Share of proposals that should be accepted.
    """
    d, accepted, here, adapts = len(x), 0, log_x[0], tune[0, 1] > 0
    y, z = np.empty(d), np.empty(d)
    for t in range(len(draws)):
        for _ in range(thin):
            r = propose(x, factor, tune, turn, normals, z, y)
            there = log_density(y, *args)
            if not there < np.inf:
                x[:] = y
                return -1
            rise = there - here
            if accepts(rise, exponentials):
                accepted += 1
                here = there
                for i in range(d):
                    x[i] = y[i]
            if adapts:
                adapt(tune, r, rise, goal)
        for i in range(d):
            draws[t, i] = x[i]
        logs[t] = here
    log_x[0] = here
    return accepted


@into_chain
def proposed(log_density, args, draw, log_ratio, x, log_x, rng, exponentials, thin, draws, logs):
    """Advance a chain with a user's proposal; return what `walk` returns, or −2 if the ratio of proposals is no number."""
    accepted, here = 0, log_x[0]
    for t in range(len(draws)):
        for _ in range(thin):
            y = draw(x, rng)
            there = log_density(y, *args)
            if not there < np.inf:
                x[:] = y
                return -1
            rise = there - here
            if log_ratio is not None:
                rise += log_ratio(x, y)
                if np.isnan(rise):
                    x[:] = y
                    return -2
            if accepts(rise, exponentials):
                accepted += 1
                x[:] = y
                here = there
        draws[t] = x
        logs[t] = here
    log_x[0] = here
    return accepted
