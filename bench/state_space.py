"""Smoothing with a linear Gaussian model: filter, likelihood, and the smoothed means and covariances of all states.

Four states, two outputs. Everyone gets the same law of the first state and gives means and covariances; the objective is a sum
of all smoothed means with random signs, so that agreement to 1e-9 is agreement of every one of them.
"""

from functools import partial

import numpy as np

from bench.harness import Row
from lemmata.state_space import LinearGaussianModel


def problem(n_series, n_rows):
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((4, 4)))[0] * 0.95
    D, G, H = rng.standard_normal((2, 4)), rng.standard_normal((4, 4)), rng.standard_normal((2, 2))
    model = LinearGaussianModel(A, D, G @ G.T + 0.1 * np.eye(4), H @ H.T + 0.5 * np.eye(2))
    X = np.array([model.sample(n_rows, seed)[0] for seed in range(n_series)])
    return model, X, rng.choice([-1.0, 1.0], (n_series, n_rows, 4))


def ours(data):
    model, X, _ = data
    return model.smooth(X if len(X) > 1 else X[0]).mean


def pykalman(data):
    """Its initial law is that of the first state."""
    from pykalman import KalmanFilter

    model, X, _ = data
    A, Q = model.transition, model.transition_covariance
    peer = KalmanFilter(A, model.observation, Q, model.observation_covariance, None, None, np.zeros(4), A @ A.T + Q)
    return np.array([peer.smooth(x)[0] for x in X])


def statsmodels(data):
    """One model for each series, as one does; states only, by its default method."""
    from statsmodels.tsa.statespace.kalman_smoother import SMOOTHER_STATE, SMOOTHER_STATE_COV, KalmanSmoother

    model, X, _ = data
    A, Q, means = model.transition, model.transition_covariance, []
    for x in X:
        peer = KalmanSmoother(k_endog=2, k_states=4, smoother_output=SMOOTHER_STATE | SMOOTHER_STATE_COV)
        peer.bind(x)
        peer["design"], peer["transition"], peer["selection"] = model.observation, A, np.eye(4)
        peer["state_cov"], peer["obs_cov"] = Q, model.observation_covariance
        peer.initialize_known(np.zeros(4), A @ A.T + Q)
        means.append(peer.smooth().smoothed_state.T)
    return np.array(means)


def total(data, means):
    return float((np.reshape(means, data[2].shape) * data[2]).sum())


LONG, MANY = "T = 5,000", "1,000 series of 200"
ROWS = [
    Row(
        f"Kalman smoother {what}, 4 states, 2 outputs",
        partial(problem, n_series, n_rows),
        ours,
        peers,
        total,
        {"pykalman": 50.0, "statsmodels": 3.0},
        agree=1e-9,
        repeats=repeats,
    )
    for what, n_series, n_rows, peers, repeats in (
        (LONG, 1, 5_000, {"pykalman": pykalman, "statsmodels": statsmodels}, 3),
        (MANY, 1_000, 200, {"pykalman": pykalman, "statsmodels": statsmodels}, 1),  # pykalman takes a minute
    )
]
