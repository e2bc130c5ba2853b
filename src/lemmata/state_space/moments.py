"""What EM and the estimator ask of many series: filter them, smooth them, draw their states, add up expectations.

All series lie one after the other in one table, and `starts` says where each begins. A task is a few series in a row; tasks
depend on the lengths of the series alone and write to places of their own, so any number of threads gives the same bits.

The expectations are those of the noises at the current parameters, e_t = s_t − A s_{t−1} − b_t and r_t = x_t − D s_t − c_t,
with the states and inputs they are regressed on. By the regression of a state on the next (`kernels`), given all rows,

    e_t = (I − AJ) s_t − A W z + constant,   so   cov e_t = (I − AJ) P_t (I − AJ)ᵀ + (AW)(AW)ᵀ:

a sum of squares, with no cancellation however small Q is. Where part of x_t is missing, its noise is expected given the noise
of the part that is seen, H = V_{·o} V_oo⁻¹ times that, with the covariance V − H V_{o·} on top.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from lemmata.core import config, threads
from lemmata.core.kernel import kernel
from lemmata.state_space.kernels import Pass, backward, backward_means, complete, decorrelate, forward, invariant, new_pass

ROWS = 4096  # of a task: far more work than starting a thread


class Moments(NamedTuple):
    """Sums over rows and series that EM needs; all but the first are additive expectations."""

    log_likelihood: np.ndarray  # ()
    entries: np.ndarray  # () numbers that were seen
    steps: np.ndarray  # () transitions
    noise: np.ndarray  # (n, n) of e eᵀ
    noise_by: np.ndarray  # (n, n + k) of e (s before, inputs)ᵀ
    by: np.ndarray  # (n + k, n + k)
    rows: np.ndarray  # () rows of which something was seen
    error: np.ndarray  # (p, p) of r rᵀ
    error_by: np.ndarray  # (p, n + k) of r (s, inputs)ᵀ
    seen_by: np.ndarray  # (n + k, n + k)
    series: np.ndarray  # ()
    start: np.ndarray  # (n, n) of (s₀ − m₀)(s₀ − m₀)ᵀ
    start_by: np.ndarray  # (n, 1) of s₀ − m₀


@kernel
def part(kept, rows):
    """Take the first rows of a pass."""
    return Pass(
        kept.predicted[:rows],
        kept.mean[: rows + 1],
        kept.half[: rows + 1],
        kept.back[:rows],
        kept.rest[:rows],
        kept.gains[:rows],
        kept.variances[:rows],
        kept.again[:rows],
    )


@kernel
def longest(starts, first, last):
    """Rows of the longest of some series."""
    most = 0
    for i in range(first, last):
        most = max(most, starts[i + 1] - starts[i])
    return most


@kernel
def sharable(X, rows, like, system):
    """Tell whether a series has the covariances of one before it, which was complete and had `like` rows; 0 is none."""
    return rows == like and invariant(system) and complete(X)


@kernel
def filter_task(X, shift, starts, first, last, system, out):
    """Filter some series; the arrays in out are mean, covariance, their predictions, innovations, log-likelihood, failures."""
    mean, covariance, predicted_mean, predicted_covariance, whitened, values, lost = out
    space, nothing = new_pass(longest(starts, first, last), mean.shape[1], X.shape[1]), np.empty((0, 1, 1))
    like, source = 0, 0
    for i in range(first, last):
        a, b = starts[i], starts[i + 1]
        kept, shared = part(space, b - a), sharable(X[a:b], b - a, like, system)
        wanted = (nothing, nothing) if shared else (predicted_covariance[a:b], covariance[a:b])
        values[i], lost[i] = forward(X[a:b], shift[a:b], system, kept, shared, whitened[a:b], wanted[0], wanted[1])
        if shared:
            predicted_covariance[a:b] = predicted_covariance[source : source + like]
            covariance[a:b] = covariance[source : source + like]
        else:
            like, source = b - a if complete(X[a:b]) and lost[i] < 0 else 0, a
        mean[a:b] = kept.mean[1:]
        predicted_mean[a:b] = kept.predicted


@kernel
def smooth_task(X, shift, starts, first, last, system, out):
    """Smooth some series; the arrays in out are mean, covariance, lag-one covariance, those of the start, values, failures."""
    mean, covariance, lag, initial_mean, initial_covariance, values, lost = out
    most, p = longest(starts, first, last), X.shape[1]
    space, whitened, nothing = new_pass(most, mean.shape[1], p), np.empty((most, p)), np.empty((0, 1, 1))
    like, source, number = 0, 0, 0
    for i in range(first, last):
        a, b = starts[i], starts[i + 1]
        kept, shared = part(space, b - a), sharable(X[a:b], b - a, like, system)
        values[i], lost[i] = forward(X[a:b], shift[a:b], system, kept, shared, whitened, nothing, nothing)
        if shared:
            covariance[a:b] = covariance[source : source + like]
            lag[a:b] = lag[source : source + like]
            initial_covariance[i] = initial_covariance[number]
            backward_means(kept, mean[a:b], initial_mean[i])
            continue
        like, source, number = b - a if complete(X[a:b]) and lost[i] < 0 else 0, a, i
        if lost[i] < 0:
            backward(kept, mean[a:b], covariance[a:b], lag[a:b], initial_mean[i], initial_covariance[i])


@kernel
def draw_task(X, shift, starts, first, last, system, out):
    """Draw the states of some series, backward from the last; the arrays in out are normals that become states, failures."""
    states, lost = out
    most, n, p = longest(starts, first, last), len(system.initial_mean), X.shape[1]
    space, whitened, nothing = new_pass(most, n, p), np.empty((most, p)), np.empty((0, 1, 1))
    ahead, like = np.empty(n), 0
    for i in range(first, last):
        a, b = starts[i], starts[i + 1]
        kept, shared = part(space, b - a), sharable(X[a:b], b - a, like, system)
        _, lost[i] = forward(X[a:b], shift[a:b], system, kept, shared, whitened, nothing, nothing)
        like = b - a if complete(X[a:b]) and lost[i] < 0 else 0
        for draw in range(len(states) if lost[i] < 0 else 0):
            for t in range(b - a - 1, -1, -1):
                z = states[draw, a + t]
                last_row = t == b - a - 1
                half = kept.half[t + 1] if last_row else kept.rest[t + 1]
                for r in range(n):
                    total = kept.mean[t + 1, r]
                    for k in range(n):
                        total += half[r, k] * z[k]
                        if not last_row:
                            total += kept.back[t + 1, r, k] * (states[draw, a + t + 1, k] - kept.predicted[t + 1, k])
                    ahead[r] = total
                z[:] = ahead


@kernel
def add_outer(total, x, y):
    """Add x yᵀ."""
    for i in range(len(x)):
        for k in range(len(y)):
            total[i, k] += x[i] * y[k]


@kernel
def add_product(total, A, B):
    """Add A Bᵀ."""
    for i in range(len(A)):
        for k in range(len(B)):
            s = 0.0
            for j in range(A.shape[1]):
                s += A[i, j] * B[k, j]
            total[i, k] += s


@kernel
def multiply(A, B, out):
    """Put A B into out."""
    for i in range(len(A)):
        for k in range(B.shape[1]):
            s = 0.0
            for j in range(len(B)):
                s += A[i, j] * B[j, k]
            out[i, k] = s


@kernel
def transition_moments(kept, shift, inputs, system, mean, covariance, first_mean, first_covariance, sums):
    """Add the expectations of e eᵀ, e zᵀ and zzᵀ for the regressors z = (state before, inputs)."""
    T, n = mean.shape
    k = inputs.shape[1]
    e, z = np.empty(n), np.empty(n + k)
    rest, left, carried = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
    for t in range(T):
        A = system.transition[t if len(system.transition) > 1 else 0]
        z[:n] = mean[t - 1] if t > 0 else first_mean
        z[n:] = inputs[t]
        for i in range(n):
            s = mean[t, i] - (shift[t, i] if len(shift) > 0 else 0.0)
            for j in range(n):
                s -= A[i, j] * z[j]
            e[i] = s
        multiply(A, kept.back[t], left)
        for i in range(n):
            for j in range(n):
                left[i, j] = (1.0 if i == j else 0.0) - left[i, j]  # I − AJ
        multiply(A, kept.rest[t], rest)
        multiply(left, covariance[t], carried)
        add_outer(sums.noise, e, e)
        add_product(sums.noise, carried, left)
        add_product(sums.noise, rest, rest)
        add_outer(sums.noise_by, e, z)
        add_product(sums.noise_by[:, :n], carried, kept.back[t])
        for i in range(n):
            for j in range(n):
                rest[i, j] = -rest[i, j]
        add_product(sums.noise_by[:, :n], rest, kept.rest[t])
        add_outer(sums.by, z, z)
        sums.by[:n, :n] += covariance[t - 1] if t > 0 else first_covariance


@kernel
def observation_moments(X, inputs, system, mean, covariance, sums):
    """Add the expectations of r rᵀ, r zᵀ and zzᵀ for the regressors z = (state, inputs); give rows and entries seen."""
    T, p = X.shape
    n, k = mean.shape[1], inputs.shape[1]
    z, r, U, v, D = np.empty(n + k), np.empty(p), np.empty((p, p)), np.empty(p), np.empty((p, n))
    seen, H, part_, whole = np.empty(p, np.int64), np.empty((p, p)), np.empty((p, n)), np.empty((p, n))
    for t in range(T):
        rows = system.observation[t if len(system.observation) > 1 else 0]
        V = system.noise[t if len(system.noise) > 1 else 0]
        q = 0
        for j in range(p):
            if not np.isnan(X[t, j]):
                seen[q] = j
                q += 1
        if q == 0:
            continue
        sums.rows[()] += 1.0
        sums.entries[()] += q
        H[:] = 0.0
        for a in range(q):
            H[seen[a], a] = 1.0
        if q < p:
            decorrelate(V, rows, seen, q, U, v, D)
            regress_missing(V, seen, q, U, v, H)
        z[:n], z[n:] = mean[t], inputs[t]
        for i in range(p):
            r[i] = 0.0
            for j in range(n):
                whole[i, j] = 0.0
            for a in range(q):
                s = X[t, seen[a]]
                for j in range(n):
                    s -= rows[seen[a], j] * mean[t, j]
                    whole[i, j] += H[i, a] * rows[seen[a], j]  # H D_o
                r[i] += H[i, a] * s
        multiply(whole, covariance[t], part_)
        add_outer(sums.error, r, r)
        add_product(sums.error, part_, whole)
        if q < p:
            for i in range(p):
                for j in range(p):
                    s = V[i, j]
                    for a in range(q):
                        s -= H[i, a] * V[seen[a], j]
                    sums.error[i, j] += s
        add_outer(sums.error_by, r, z)
        for i in range(p):
            for j in range(n):
                sums.error_by[i, j] -= part_[i, j]
        add_outer(sums.seen_by, z, z)
        sums.seen_by[:n, :n] += covariance[t]


@kernel
def regress_missing(V, seen, q, U, v, H):
    """Put the regression of every noise on the seen ones into H, whose rows of seen ones are those of the identity."""
    h = np.empty(q)
    for i in range(len(V)):
        given = False
        for a in range(q):
            given = given or seen[a] == i
        if given:
            continue
        for a in range(q):
            s = V[seen[a], i]
            for c in range(a):
                s -= U[a, c] * h[c]
            h[a] = s
        for a in range(q):
            h[a] = h[a] / v[a] if v[a] > 0.0 else 0.0
        for a in range(q - 1, -1, -1):
            for c in range(a + 1, q):
                h[a] -= U[c, a] * h[c]
            H[i, a] = h[a]


@kernel
def moments_task(X, shift, starts, first, last, system, inputs, sums, lost):
    """Add the expectations of some series to sums."""
    n, p, most, like = len(system.initial_mean), X.shape[1], longest(starts, first, last), 0
    space, whitened, nothing = new_pass(most, n, p), np.empty((most, p)), np.empty((0, 1, 1))
    mean, covariance, lag = np.empty((most, n)), np.empty((most, n, n)), np.empty((most, n, n))
    begun, begun_covariance, off, one = np.empty(n), np.empty((n, n)), np.empty(n), np.ones(1)
    for i in range(first, last):
        a, b = starts[i], starts[i + 1]
        T = b - a
        kept, shared = part(space, T), sharable(X[a:b], T, like, system)
        value, lost[i] = forward(X[a:b], shift[a:b], system, kept, shared, whitened, nothing, nothing)
        if lost[i] >= 0:
            return
        if shared:
            backward_means(kept, mean[:T], begun)
        else:
            backward(kept, mean[:T], covariance[:T], lag[:T], begun, begun_covariance)
            like = T if complete(X[a:b]) else 0
        sums.log_likelihood[()] += value
        sums.steps[()] += T
        sums.series[()] += 1.0
        transition_moments(kept, shift[a:b], inputs[a:b], system, mean[:T], covariance[:T], begun, begun_covariance, sums)
        observation_moments(X[a:b], inputs[a:b], system, mean[:T], covariance[:T], sums)
        off[:] = begun - system.initial_mean
        add_outer(sums.start, off, off)
        sums.start[:] += begun_covariance
        add_outer(sums.start_by, off, one)


def tasks(starts):
    """Cut series into tasks of some thousand rows; the cuts depend on the lengths only."""
    cuts = [0]
    for i in range(1, len(starts)):
        if starts[i] - starts[cuts[-1]] >= ROWS or i == len(starts) - 1:
            cuts.append(i)
    return list(pairwise(cuts))


def run(work, starts):
    """Do work(first, last) for every task, on threads if there are several."""
    todo = tasks(starts)
    if len(todo) == 1:
        work(*todo[0])
    else:
        threads.run(lambda task: work(*task), todo, min(config.n_threads(), len(todo)))


def refuse(lost):
    """Raise if the observations of a series have no density."""
    if (lost >= 0).any():
        i = int(np.argmax(lost >= 0))
        raise ValueError(
            f"Row {lost[i]} of series {i} is fixed by the rows before it, so it has no density: give observation_covariance a "
            "positive variance, or leave out entries that repeat others."
        )


def filter_series(system, X, shift, starts):
    """Filter every series; return the arrays of `filter_task`."""
    rows, n, m = len(X), len(system.initial_mean), len(starts) - 1
    out = (
        np.empty((rows, n)),
        np.empty((rows, n, n)),
        np.empty((rows, n)),
        np.empty((rows, n, n)),
        np.empty(X.shape),
        np.empty(m),
        np.empty(m, np.int64),
    )
    run(lambda first, last: filter_task(X, shift, starts, first, last, system, out), starts)
    refuse(out[-1])
    return out


def smooth_series(system, X, shift, starts):
    """Smooth every series; return the arrays of `smooth_task`."""
    rows, n, m = len(X), len(system.initial_mean), len(starts) - 1
    out = (
        np.empty((rows, n)),
        np.empty((rows, n, n)),
        np.empty((rows, n, n)),
        np.empty((m, n)),
        np.empty((m, n, n)),
        np.empty(m),
        np.empty(m, np.int64),
    )
    run(lambda first, last: smooth_task(X, shift, starts, first, last, system, out), starts)
    refuse(out[-1])
    return out


def draw_states(system, X, shift, starts, normals):
    """Turn standard normals (draws, rows, n) into draws of the states given the rows, in place."""
    lost = np.empty(len(starts) - 1, np.int64)
    run(lambda first, last: draw_task(X, shift, starts, first, last, system, (normals, lost)), starts)
    refuse(lost)
    return normals


def moments(system, X, shift, starts, inputs):
    """Add up the expectations of all series, task by task in their order."""
    n, p, k, lost = len(system.initial_mean), X.shape[1], inputs.shape[1], np.full(len(starts) - 1, -1)
    shapes = ((), (), (), (n, n), (n, n + k), (n + k, n + k), (), (p, p), (p, n + k), (n + k, n + k), (), (n, n), (n, 1))
    parts = {first: Moments(*(np.zeros(shape) for shape in shapes)) for first, _ in tasks(starts)}

    def work(first, last):
        moments_task(X, shift, starts, first, last, system, inputs, parts[first], lost)

    run(work, starts)
    refuse(lost)
    return Moments(*(sum(column[1:], start=column[0]) for column in zip(*parts.values(), strict=True)))
