"""States and likelihood from the normal equations, with no filter: what the certificate compares with.

Given all rows, the path s = (s₀, …, s_T) is normal with density ∝ exp(−½ f(s)),

    f(s) = ‖s₀ − m₀‖²_{P₀⁻¹} + Σ ‖s_t − A s_{t−1} − b_t‖²_{Q⁻¹} + Σ ‖x_t − c_t − D s_t‖²_{V⁻¹},

so its mean solves K s = h with a block-tridiagonal K, to which row t adds DᵀV⁻¹D: of the seen entries, where some are missing.
Elimination of blocks gives the mean; selected inversion [1] the blocks of K⁻¹ on and beside the diagonal, which are the
covariances; and log p(x) = log p(x, s) − log p(s | x) at the mean needs only the determinant of K.
Many series are one batch: shorter ones go on without a row, which changes nothing before. K has no numbers of the rows in it,
so series without holes share one.

[1] Takahashi, Fagan & Chin (1973); Bell, SIAM J. Optim. 4 (1994).
"""

from typing import NamedTuple

import numpy as np

LOG_2PI = np.log(2 * np.pi)


class Posterior(NamedTuple):
    """Moments of the paths of a batch of series; the number 0 is the initial state."""

    mean: np.ndarray  # (series, times + 1, n)
    covariance: np.ndarray  # (series or 1, times + 1, n, n)
    lag: np.ndarray  # (series or 1, times, n, n) of a state and the one before it
    log_likelihood: np.ndarray  # (series,)


class Batch(NamedTuple):
    """Series of one length, with what the model says about their times."""

    rows: np.ndarray  # (series, times, p) without the offsets of inputs; 0 where missing
    seen: np.ndarray  # (series, times, p), or one series for all if nothing is missing
    shift: np.ndarray  # (series, times, n)
    inputs: np.ndarray  # (series, times, k)
    lengths: np.ndarray  # (series,)


def timed(a, T):
    """Give a matrix a first axis of time."""
    return a[:T] if a.ndim == 3 else np.broadcast_to(a, (T, *a.shape))


def batch_of(m, series):
    """Set series beside each other, the shorter ones continued without rows."""
    N, T, p = len(series.lengths), int(series.lengths.max()), m.observation.shape[-2]
    where = np.repeat(np.arange(N), series.lengths), series.time()
    rows, inputs = np.full((N, T, p), np.nan), np.zeros((N, T, series.inputs.shape[1]))
    inputs[where] = series.inputs
    rows[where] = series.rows
    rows = rows - np.einsum("tpk,stk->stp", timed(m.feedthrough, T), inputs)
    shift = np.einsum("tnk,stk->stn", timed(m.control, T), inputs)
    seen = ~np.isnan(rows)
    return Batch(np.where(seen, rows, 0.0), seen[:1] if seen.all() else seen, shift, inputs, series.lengths)


def precision_of_rows(m, batch):
    """Invert the noise of the seen entries of each row, zeros elsewhere; give its log-determinant as well."""
    T, seen = batch.rows.shape[1], batch.seen
    pairs = seen[..., :, None] & seen[..., None, :]
    V = np.where(pairs, timed(m.observation_covariance, T), np.eye(seen.shape[-1]))
    return np.where(pairs, np.linalg.inv(V), 0.0), np.linalg.slogdet(V)[1]


def normal_equations(m, batch):
    """Give the blocks of K on the diagonal and above it, the right side h, and the constant and determinants of f."""
    T = batch.rows.shape[1]
    A, D, Qi = timed(m.transition, T), timed(m.observation, T), np.linalg.inv(timed(m.transition_covariance, T))
    Ri, log_rows = precision_of_rows(m, batch)
    Pi = np.linalg.inv(m.initial_covariance)
    QA = Qi @ A
    diagonal = np.zeros((len(batch.seen), T + 1, *Pi.shape))
    diagonal[:, 0] = Pi
    diagonal[:, 1:] = Qi + np.swapaxes(D, -1, -2) @ Ri @ D
    diagonal[:, :-1] += np.swapaxes(A, -1, -2) @ QA
    above = -np.swapaxes(QA, -1, -2)
    right = np.zeros((len(batch.rows), T + 1, len(Pi)))
    right[:, 0] = Pi @ m.initial_mean
    weighed = np.einsum("stpq,stq->stp", np.broadcast_to(Ri, (*batch.rows.shape, Ri.shape[-1])), batch.rows)
    moved = np.einsum("tij,stj->sti", Qi, batch.shift)
    right[:, 1:] = np.einsum("tpn,stp->stn", D, weighed) + moved
    right[:, :-1] -= np.einsum("tji,stj->sti", A, moved)
    logs = np.linalg.slogdet(m.initial_covariance)[1] + np.linalg.slogdet(timed(m.transition_covariance, T))[1].sum()
    constant = (
        m.initial_mean @ Pi @ m.initial_mean + (batch.shift * moved).sum(axis=(1, 2)) + (batch.rows * weighed).sum(axis=(1, 2))
    )
    return diagonal, above, right, constant, logs + log_rows.sum(axis=1) + LOG_2PI * batch.seen.sum(axis=(1, 2))


def residual(diagonal, above, right, mean):
    """Give K s − h."""
    out = np.einsum("...ij,...j->...i", diagonal, mean) - right
    out[:, :-1] += np.einsum("tij,stj->sti", above, mean[:, 1:])
    out[:, 1:] += np.einsum("tji,stj->sti", above, mean[:, :-1])
    return out


def posterior(m, batch):
    """Solve the normal equations and invert K where it is needed."""
    diagonal, above, right, constant, logs = normal_equations(m, batch)
    N, T1, n = right.shape
    pivots, g = diagonal.copy(), right.copy()
    gains = np.empty((len(diagonal), T1 - 1, n, n))
    for t in range(T1 - 1):
        gains[:, t] = np.linalg.solve(pivots[:, t], np.broadcast_to(above[t], (len(diagonal), n, n)))
        pivots[:, t + 1] -= above[t].T @ gains[:, t]
        g[:, t + 1] -= np.einsum("sji,sj->si", np.broadcast_to(gains[:, t], (N, n, n)), g[:, t])
    inverse = np.linalg.inv(pivots)
    mean = np.einsum("...ij,...j->...i", inverse, g)
    covariance, lag = inverse.copy(), np.empty(gains.shape)
    for t in range(T1 - 2, -1, -1):
        mean[:, t] -= np.einsum("sij,sj->si", np.broadcast_to(gains[:, t], (N, n, n)), mean[:, t + 1])
        lag[:, t] = -covariance[:, t + 1] @ np.swapaxes(gains[:, t], -1, -2)
        covariance[:, t] -= gains[:, t] @ lag[:, t]
    value = -0.5 * (constant - (right * mean).sum(axis=(1, 2)) + logs + np.linalg.slogdet(pivots)[1].sum(axis=1))
    return Posterior(mean, covariance, lag, value)


def score(m, batch, covariance):
    """Differentiate the log-likelihood in the coefficients of one regression, side by side, and in the covariance of its noise.

    By Fisher's identity that is the expected derivative of the log-density of states and rows together: N⁻¹E[e zᵀ] and
    ½ N⁻¹(E[e eᵀ] − N)N⁻¹ summed over rows, of the seen entries. The regression is named by its covariance.
    """
    post, T, n = posterior(m, batch), batch.rows.shape[1], len(m.initial_mean)
    if covariance == "initial_covariance":
        N, e = np.linalg.inv(m.initial_covariance), post.mean[:, 0] - m.initial_mean
        spread = np.broadcast_to(post.covariance[:, 0], (len(e), n, n)).sum(axis=0) + e.T @ e
        return N @ e.sum(axis=0)[:, None], 0.5 * N @ (spread - len(e) * m.initial_covariance) @ N
    now, before = post.covariance[:, 1:], post.covariance[:, :-1]
    if covariance == "transition_covariance":
        A, Q = timed(m.transition, T), timed(m.transition_covariance, T)
        N, at = np.linalg.inv(Q)[None], post.mean[:, :-1]
        e = post.mean[:, 1:] - np.einsum("tij,stj->sti", A, at) - batch.shift
        lagged = post.lag - A @ before
        spread = now - A @ np.swapaxes(post.lag, -1, -2) - lagged @ np.swapaxes(A, -1, -2)
    else:
        D, (N, _) = timed(m.observation, T), precision_of_rows(m, batch)
        Q, at = np.linalg.pinv(N, hermitian=True), post.mean[:, 1:]
        e = np.where(batch.seen, batch.rows - np.einsum("tij,stj->sti", D, at), 0.0)
        lagged, spread = -D @ now, D @ now @ np.swapaxes(D, -1, -2)
    real = np.arange(T) < batch.lengths[:, None]
    # Series that share one K share its covariances, which count as often as there are series.
    times = real.astype(float) if len(now) == len(real) else np.full((1, T), float(len(real)))
    weighed = np.einsum("stij,stj->sti", np.broadcast_to(N, (*e.shape, N.shape[-1])), e) * real[..., None]
    coefficients = np.einsum("sti,stj->ij", weighed, np.concatenate([at, batch.inputs], axis=2))
    coefficients[:, :n] += np.einsum("st,stij->ij", times, N @ lagged)
    inner = np.einsum("st,stij->ij", times, N @ (spread - Q) @ N)
    return coefficients, 0.5 * (inner + np.einsum("sti,stj->ij", weighed, weighed))
