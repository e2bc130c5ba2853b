"""The joint Gaussian of all states and rows, built explicitly and conditioned: slow, and plain to see."""

from typing import NamedTuple

import numpy as np
from scipy.stats import multivariate_normal


class Joint(NamedTuple):
    """Mean and covariance of (s₀, …, s_T), and of the rows."""

    state_mean: np.ndarray  # ((T + 1) n,)
    state_covariance: np.ndarray
    row_mean: np.ndarray  # (T p,)
    row_covariance: np.ndarray
    cross: np.ndarray  # ((T + 1) n, T p)


def at(matrix, t):
    matrix = np.asarray(matrix)
    return matrix[t] if matrix.ndim == 3 else matrix


def joint(m, T, inputs=None):
    """Write every state and row as a linear map of independent noises, and multiply out."""
    A0, D0 = at(m["transition"], 0), at(m["observation"], 0)
    n, p = len(A0), len(D0)
    k = 0 if inputs is None else inputs.shape[1]
    B, E = m.get("control", np.zeros((n, k))), m.get("feedthrough", np.zeros((p, k)))
    u = np.zeros((T, k)) if inputs is None else inputs
    size = n + T * (n + p)  # noises: the start, then of each transition, then of each row
    noise = np.zeros((size, size))
    noise[:n, :n] = m["initial_covariance"]
    states, means = [np.eye(n, size)], [np.asarray(m["initial_mean"], dtype=float)]
    rows, row_means = [], []
    for t in range(T):
        a, b = n + t * n, n + T * n + t * p
        noise[a : a + n, a : a + n] = at(m["transition_covariance"], t)
        noise[b : b + p, b : b + p] = at(m["observation_covariance"], t)
        pick = np.zeros((n, size))
        pick[:, a : a + n] = np.eye(n)
        states.append(at(m["transition"], t) @ states[-1] + pick)
        means.append(at(m["transition"], t) @ means[-1] + at(B, t) @ u[t])
        pick = np.zeros((p, size))
        pick[:, b : b + p] = np.eye(p)
        rows.append(at(m["observation"], t) @ states[-1] + pick)
        row_means.append(at(m["observation"], t) @ means[-1] + at(E, t) @ u[t])
    S, R = np.vstack(states), np.vstack(rows)
    return Joint(np.concatenate(means), S @ noise @ S.T, np.concatenate(row_means), R @ noise @ R.T, S @ noise @ R.T)


def condition(j, X, upto):
    """Give mean and covariance of all states given the seen entries of the first rows."""
    p = X.shape[1]
    seen = np.flatnonzero(~np.isnan(X.ravel()) & (np.arange(X.size) < upto * p))
    C = j.cross[:, seen]
    gain = np.linalg.solve(j.row_covariance[np.ix_(seen, seen)], C.T).T if len(seen) else np.zeros_like(C)
    return j.state_mean + gain @ (X.ravel()[seen] - j.row_mean[seen]), j.state_covariance - gain @ C.T


def log_likelihood(j, X):
    """Give the density of the seen entries."""
    seen = np.flatnonzero(~np.isnan(X.ravel()))
    return multivariate_normal(j.row_mean[seen], j.row_covariance[np.ix_(seen, seen)]).logpdf(X.ravel()[seen])


def block(values, t, n):
    """Take the part of state t."""
    return values[t * n : (t + 1) * n]
