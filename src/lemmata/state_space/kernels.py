"""Kalman's filter and the smoother of Rauch, Tung and Striebel on square roots of the covariances.

A covariance P is kept as a factor L with P = LLᵀ, so no rounding can make it indefinite, and variances that differ by 30 orders
of magnitude live side by side. With factors, adding covariances is to stand them side by side: [A L, Q½] is a factor of
APAᵀ + Q, and reflections from the right bring it back to n columns (`triangle`). The same reflections applied to the rows
[L, 0] below it give the joint law of the next state and this one, hence the regression of this state on the next,

    s_t = m_t + J (s_{t+1} − m⁻_{t+1}) + W z,  z standard normal:

J and W are all that the smoother needs, and no covariance is inverted. Observations enter one number at a time: after V = U
diag(v) Uᵀ the rows of U⁻¹x have independent noises, and each changes L by a rank one [1]. A missing entry takes its row of V
with it, so the pattern of what is seen decides on U. The smoother adds up factors, [W, J L⁺] [2].

Where nothing depends on time, the covariances settle. Once a step changes no entry of P by more than rounding, the gains are
kept, and a step costs a few products of matrices and vectors; an incomplete row ends that. And covariances do not depend on
what was seen, only on whether it was: complete series share them.

[1] Potter (1963), in Bierman, Factorization Methods for Discrete Sequential Estimation (1977). [2] Park & Kailath, IEEE Trans.
Autom. Control 40 (1995).
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.kernel import kernel

EPS = 2.220446049250313e-16
SETTLED = 4 * EPS  # change of an entry of a covariance, relative to its scale, that is rounding
LOST = 32 * EPS  # what is left of a number, relative to what it was, when no digit is
LOG_2PI = 1.8378770664093453


class System(NamedTuple):
    """A model as the kernels want it: matrices with a first axis of time, of length 1 if they do not vary."""

    transition: np.ndarray  # (time, n, n)
    half_noise: np.ndarray  # (time, n, n), times its transpose the covariance of the transition
    observation: np.ndarray  # (time, p, n)
    noise: np.ndarray  # (time, p, p)
    initial_mean: np.ndarray  # (n,)
    initial_half: np.ndarray  # (n, n)


class Pass(NamedTuple):
    """What a pass forward leaves for one backward; the state of row t has the number t + 1, and 0 is the one before."""

    predicted: np.ndarray  # (rows, n) mean of a state given the rows before
    mean: np.ndarray  # (rows + 1, n) and given its own row too
    half: np.ndarray  # (rows + 1, n, n) factor of the covariance of that
    back: np.ndarray  # (rows, n, n) regression J of a state on the next
    rest: np.ndarray  # (rows, n, n) factor W of what the regression leaves
    gains: np.ndarray  # (rows, p, n) what each seen number adds to the mean, times its variance
    variances: np.ndarray  # (rows, p) of each seen number given those before
    again: np.ndarray  # (rows,) whether all of these but the means are those of the row before


@kernel
def new_pass(rows, n, p):
    """Make room for a pass."""
    return Pass(
        np.empty((rows, n)),
        np.empty((rows + 1, n)),
        np.empty((rows + 1, n, n)),
        np.empty((rows, n, n)),
        np.empty((rows, n, n)),
        np.empty((rows, p, n)),
        np.empty((rows, p)),
        np.empty(rows, np.bool_),
    )


@kernel
def invariant(system):
    """Tell whether nothing varies with time."""
    return len(system.transition) + len(system.half_noise) + len(system.observation) + len(system.noise) == 4


@kernel
def complete(X):
    """Tell whether nothing is missing."""
    for t in range(len(X)):
        for j in range(X.shape[1]):
            if np.isnan(X[t, j]):
                return False
    return True


@kernel
def triangle(M, n, rows, first, at):
    """Reflect the columns from the first on so that n rows become a lower triangle; the other rows go along.

    A row that depends on those before it, up to rounding, takes no column: a reflection would turn what is left of it, which is
    noise, into a direction. The column of each row's pivot goes to `at`, or −1; returned is the column after the last.
    """
    width, c = M.shape[1], first
    for i in range(n):
        size, tail = 0.0, 0.0
        for k in range(first, c):
            size += M[i, k] * M[i, k]
        for k in range(c + 1, width):
            tail += M[i, k] * M[i, k]
        pivot = M[i, c] if c < width else 0.0
        left = pivot * pivot + tail
        if left <= LOST * LOST * (size + left):
            at[i] = -1
            for k in range(c, width):
                M[i, k] = 0.0
            continue
        at[i] = c
        if tail > 0.0:
            after = -np.sqrt(left) if pivot > 0 else np.sqrt(left)
            head = pivot - after
            scale = 2.0 / (head * head + tail)
            for r in range(i + 1, rows):
                dot = M[r, c] * head
                for k in range(c + 1, width):
                    dot += M[r, k] * M[i, k]
                dot *= scale
                M[r, c] -= dot * head
                for k in range(c + 1, width):
                    M[r, k] -= dot * M[i, k]
            M[i, c] = after
            for k in range(c + 1, width):
                M[i, k] = 0.0
        c += 1
    return c


@kernel
def square(L, n, P):
    """Multiply a factor of n rows by its transpose."""
    for i in range(n):
        for j in range(i + 1):
            total = 0.0
            for k in range(L.shape[1]):
                total += L[i, k] * L[j, k]
            P[i, j] = total
            P[j, i] = total


@kernel
def settled(P, before, n):
    """Tell whether two covariances differ by rounding only."""
    for i in range(n):
        for j in range(i + 1):
            if abs(P[i, j] - before[i, j]) > SETTLED * np.sqrt(P[i, i] * P[j, j]):
                return False
    return True


@kernel
def predict_half(A, half_noise, L, M, at, J, W):
    """Leave the factor of the next covariance in the corner of M, and the regression of this state on the next in J and W."""
    n = len(A)
    for i in range(n):
        for k in range(n):
            total = 0.0
            for j in range(n):
                total += A[i, j] * L[j, k]
            M[i, k] = total
            M[i, n + k] = half_noise[i, k]
            M[n + i, k] = L[i, k]
            M[n + i, n + k] = 0.0
    rank = triangle(M, n, 2 * n, 0, at)
    # J solves J L⁻ = G, column by column from the last. A state without a pivot is fixed by those before it, and adds nothing.
    for j in range(n - 1, -1, -1):
        for i in range(n):
            J[i, j] = 0.0
            if at[j] >= 0:
                total = M[n + i, at[j]]
                for k in range(j + 1, n):
                    total -= J[i, k] * M[k, at[j]]
                J[i, j] = total / M[j, at[j]]
    if rank < n:  # more than n columns are left
        triangle(M[n:], n, n, rank, at)
    for i in range(n):
        for k in range(n):
            W[i, k] = M[n + i, (rank if rank < n else n) + k]


@kernel
def decorrelate(V, D, seen, q, U, v, rows):
    """Factor the noise of the seen entries as U diag(v) Uᵀ, and give U⁻¹D."""
    for a in range(q):
        for b in range(a):
            total = V[seen[a], seen[b]]
            for c in range(b):
                total -= U[a, c] * v[c] * U[b, c]
            U[a, b] = total / v[b] if v[b] > 0.0 else 0.0
        total = V[seen[a], seen[a]]
        for c in range(a):
            total -= U[a, c] * v[c] * U[a, c]
        v[a] = total if total > LOST * V[seen[a], seen[a]] else 0.0
        for k in range(D.shape[1]):
            total = D[seen[a], k]
            for c in range(a):
                total -= U[a, c] * rows[c, k]
            rows[a, k] = total


@kernel
def weigh(d, v, L, f, gain):
    """Condition the factor L on one number, row d of the state plus noise of variance v; return that number's variance.

    The gain becomes L f with f = Lᵀd: divided by the variance, it is Kalman's.
    """
    n = len(L)
    variance = v
    for k in range(n):
        total = 0.0
        for i in range(n):
            total += L[i, k] * d[i]
        f[k] = total
        variance += total * total
    for i in range(n):
        total = 0.0
        for k in range(n):
            total += L[i, k] * f[k]
        gain[i] = total
    if variance > 0.0:
        share = 1.0 / (variance + np.sqrt(v * variance))
        for i in range(n):
            for k in range(n):
                L[i, k] -= share * gain[i] * f[k]
    return variance


@kernel
def known(d, v, M, variance):
    """Tell whether a number without noise is fixed by what was seen before, the factor of the prediction being in M."""
    if v > 0.0:
        return not variance > 0.0
    size = 0.0
    for i in range(len(d)):
        for k in range(i + 1):
            size += (d[i] * M[i, k]) ** 2
    return not variance > LOST * LOST * size


@kernel
def forward(X, shift, system, out, shared, whitened, predicted_covariance, covariance):
    """Filter one series; return its log-likelihood and the row at which the observations lost their density, or −1.

    Parameters
    ----------
    shift : What the inputs add to each state, (rows, n), or no rows.
    out : A `Pass` to fill.
    shared : Whether `out` has been filled by another series like this one, neither with anything missing: covariances do not
        depend on what was seen, so that only means are wanted.
    whitened : (rows, p), for the innovations divided by their scale, one number given those before; NaN where missing.
    predicted_covariance, covariance : (rows, n, n), or no rows if nobody wants them.
    """
    T, p = X.shape
    n = len(system.initial_mean)
    still = invariant(system)
    varies_output = len(system.observation) > 1 or len(system.noise) > 1
    M, L = np.empty((2 * n, 2 * n)), np.empty((n, n))
    P, before = np.empty((n, n)), np.empty((n, n))
    U, v, D = np.empty((p, p)), np.empty(p), np.empty((p, n))
    logs, f, y = np.empty(p), np.empty(n), np.empty(p)
    seen, at, mean = np.empty(p, np.int64), np.empty(n, np.int64), np.empty(n)
    value, steady, comparable, ready = 0.0, False, False, False
    out.mean[0] = system.initial_mean
    if not shared:
        out.half[0] = system.initial_half
    for t in range(T):
        A = system.transition[t if len(system.transition) > 1 else 0]
        q = 0
        for j in range(p):
            if not np.isnan(X[t, j]):
                seen[q] = j
                q += 1
            whitened[t, j] = np.nan
        for i in range(n):
            total = shift[t, i] if len(shift) > 0 else 0.0
            for j in range(n):
                total += A[i, j] * out.mean[t, j]
            mean[i] = total
            out.predicted[t, i] = total
        if not shared:
            steady = steady and q == p
            out.again[t] = steady
            if steady:
                out.back[t], out.rest[t] = out.back[t - 1], out.rest[t - 1]
            else:
                half_noise = system.half_noise[t if len(system.half_noise) > 1 else 0]
                predict_half(A, half_noise, out.half[t], M, at, out.back[t], out.rest[t])
                if len(predicted_covariance) > 0 or still:
                    square(M[:, :n], n, P)
                if still:
                    steady = comparable and q == p and settled(P, before, n)
                    comparable = q == p
                    before[:] = P
            if steady:
                out.gains[t], out.variances[t] = out.gains[t - 1], out.variances[t - 1]
            else:
                for i in range(n):
                    for k in range(n):
                        L[i, k] = M[i, k] if k <= i else 0.0
        if len(predicted_covariance) > 0:
            predicted_covariance[t] = P
        if not steady and (varies_output or q < p or not ready):
            noise = system.noise[t if len(system.noise) > 1 else 0]
            rows = system.observation[t if len(system.observation) > 1 else 0]
            decorrelate(noise, rows, seen, q, U, v, D)
            ready = q == p
        for a in range(q):
            total = X[t, seen[a]]
            for c in range(a):
                total -= U[a, c] * y[c]
            y[a] = total
            if not (steady or shared):
                out.variances[t, a] = weigh(D[a], v[a], L, f, out.gains[t, a])
                if known(D[a], v[a], M, out.variances[t, a]):
                    return value, t
            if not steady and not (shared and out.again[t]):
                logs[a] = np.log(out.variances[t, a])
            for i in range(n):
                total -= D[a, i] * mean[i]
            for i in range(n):
                mean[i] += out.gains[t, a, i] * (total / out.variances[t, a])
            whitened[t, seen[a]] = total / np.sqrt(out.variances[t, a])
            value -= 0.5 * (LOG_2PI + logs[a] + total * total / out.variances[t, a])
        out.mean[t + 1] = mean
        if not shared:
            out.half[t + 1] = L
        if len(covariance) > 0:
            if steady and out.again[t]:
                covariance[t] = covariance[t - 1]
            else:
                square(L, n, covariance[t])
    return value, -1


@kernel
def backward_means(kept, mean, initial_mean):
    """Smooth the means of one series after a pass forward."""
    T, n = kept.predicted.shape
    mean[T - 1] = kept.mean[T]
    for t in range(T - 1, -1, -1):
        target = mean[t - 1] if t > 0 else initial_mean
        for i in range(n):
            total = kept.mean[t, i]
            for j in range(n):
                total += kept.back[t, i, j] * (mean[t, j] - kept.predicted[t, j])
            target[i] = total


@kernel
def backward(kept, mean, covariance, lag, initial_mean, initial_covariance):
    """Smooth one series after a pass forward.

    Parameters
    ----------
    mean, covariance : (rows, n) and (rows, n, n), of the state of each row given all rows.
    lag : (rows, n, n), covariance of the state of each row and the one before it; the first row's has the initial state.
    """
    T, n = kept.predicted.shape
    M, L, next_half = np.zeros((n, 2 * n)), kept.half[T].copy(), np.empty((n, n))
    P, before, at = np.empty((n, n)), np.empty((n, n)), np.empty(n, np.int64)
    square(L, n, P)
    calm = False
    for t in range(T - 1, -1, -1):
        covariance[t] = P
        J, W = kept.back[t], kept.rest[t]
        calm = calm and kept.again[t + 1]
        if calm:
            lag[t] = lag[t + 1]
        else:
            for i in range(n):
                for k in range(n):
                    total = 0.0
                    for j in range(n):
                        total += J[i, j] * L[j, k]
                    M[i, k] = total
                    M[i, n + k] = W[i, k]
            for i in range(n):
                for k in range(n):
                    total = 0.0
                    for j in range(n):
                        total += L[i, j] * M[k, j]
                    lag[t, i, k] = total
            triangle(M, n, n, 0, at)
            before[:] = P
            square(M[:, :n], n, P)
            for i in range(n):
                for k in range(n):
                    next_half[i, k] = M[i, k] if k <= i else 0.0
            L[:] = next_half
            calm = settled(P, before, n)
    initial_covariance[:] = P
    backward_means(kept, mean, initial_mean)
