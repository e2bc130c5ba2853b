"""Write kalman.json: states and likelihoods of linear Gaussian models as other programs find them, with the data.

    pip install statsmodels && python tests/reference/make_kalman.py

The results of R's KFAS and of Stata are those that statsmodels keeps among its own tests; the rest is what statsmodels
computes. Data: US macroeconomic series and the flow of the Nile, which statsmodels has in the public domain, the US wholesale
price index that Stata's results carry with them, and numbers drawn from a seed. Programs that start with the law of the first
state, rather than of the state before it, are given that law here; an exactly diffuse level is known after its first row, so
the model begins there.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np


def table(name, **options):
    """Read results that statsmodels keeps."""
    import pandas as pd

    return pd.read_csv(files("statsmodels.tsa.statespace.tests") / "results" / name, **options)


def kfas_missing():
    """Three random walks in noise, with long holes, by KFAS."""
    import statsmodels.api as sm

    data = sm.datasets.macrodata.load_pandas().data
    rows = np.diff(data[["realgdp", "realcons", "realinv"]].to_numpy(float), axis=0)
    rows[:50, 0], rows[19:70, 1], rows[39:90, 2], rows[119:130, 0], rows[119:130, 2] = (np.nan,) * 5
    found = table("results_smoothing_R.csv")
    model = {"transition": np.eye(3), "observation": np.eye(3), "transition_covariance": np.eye(3)}
    model |= {"observation_covariance": np.eye(3), "initial_mean": np.zeros(3), "initial_covariance": (1e6 - 1) * np.eye(3)}
    expected = {
        "smoothed": found[["alphahat1", "alphahat2", "alphahat3"]].to_numpy(),
        "smoothed determinant": found["detV"].to_numpy(),
        "log-likelihood": -205310.9767,
    }
    return {"rows": rows, "model": model, "expected": expected, "rtol": 1e-8}


def kfas_diffuse():
    """A local level with an exactly diffuse start, by KFAS; conditional on its first row."""
    found = table("results_exact_initial_local_level_R.csv").dropna(subset=["m_1", "v_1"])
    y, noise = (found["m_1"] + found["v_1"]).to_numpy(), float(found["F_1"][0])
    step = float(found["sumP"][1]) - noise
    model = {"transition": 1.0, "observation": 1.0, "transition_covariance": step, "observation_covariance": noise}
    model |= {"initial_mean": y[0], "initial_covariance": noise}
    expected = {
        "filtered": found["att_1"].to_numpy()[1:, None],
        "smoothed": found["alphahat_1"].to_numpy()[1:, None],
        "smoothed covariance": found["sumV"].to_numpy()[1:, None, None],
    }
    return {"rows": y[1:, None], "model": model, "expected": expected, "rtol": 1e-9}


def stata():
    """An autoregression of order three without noise in its rows, by Stata, which printed seven digits of its coefficients."""
    from scipy.linalg import solve_discrete_lyapunov

    found = table("results_wpi1_ar3_stata.csv")
    A = np.array([[0.5270715, 0.0952613, 0.2580355], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    Q = np.diag([0.5307459, 0.0, 0.0])
    model = {"transition": A, "observation": np.eye(1, 3), "transition_covariance": Q, "observation_covariance": 0.0}
    model |= {"initial_mean": np.zeros(3), "initial_covariance": solve_discrete_lyapunov(A, Q)}
    part = found.iloc[1:]
    expected = {
        "predicted": part[["sp1", "sp2", "sp3"]].to_numpy(),
        "filtered": part[["sf1", "sf2", "sf3"]].to_numpy(),
        "smoothed": part[["sm1", "sm2", "sm3"]].to_numpy(),
    }
    return {"rows": np.diff(found["wpi"].to_numpy())[:, None], "model": model, "expected": expected, "rtol": 1e-5}


def nile():
    """The level of the Nile with the variances of Durbin & Koopman, by statsmodels."""
    import statsmodels.api as sm

    rows = sm.datasets.nile.load_pandas().data[["volume"]].to_numpy(float)
    model = {"transition": 1.0, "observation": 1.0, "transition_covariance": 1469.1, "observation_covariance": 15099.0}
    return peer(rows, model | {"initial_mean": 1000.0, "initial_covariance": 1e6})


def seeded():
    """Four states, two outputs whose noises are correlated, and entries missing one by one, by statsmodels."""
    rng = np.random.default_rng(5)
    G, H = rng.normal(size=(4, 4)), rng.normal(size=(2, 2))
    rows = np.round(3 * rng.normal(size=(60, 2)), 6)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    model = {
        "transition": np.linalg.qr(rng.normal(size=(4, 4)))[0] * 0.9,
        "observation": rng.normal(size=(2, 4)),
        "transition_covariance": G @ G.T,
        "observation_covariance": H @ H.T + 0.1 * np.eye(2),
        "initial_mean": rng.normal(size=4),
        "initial_covariance": np.diag([1.0, 2.0, 3.0, 4.0]),
    }
    return peer(rows, model)


def peer(rows, model):
    """Smooth by statsmodels."""
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    A, D, Q, V = (np.atleast_2d(model[name]) for name in list(model)[:4])
    n, p = len(A), len(D)
    smoother = KalmanSmoother(k_endog=p, k_states=n)
    smoother.bind(rows)
    smoother["design"], smoother["transition"], smoother["selection"] = D, A, np.eye(n)
    smoother["state_cov"], smoother["obs_cov"] = Q, V
    mean, covariance = np.atleast_1d(model["initial_mean"]), np.atleast_2d(model["initial_covariance"])
    smoother.initialize_known(A @ mean, A @ covariance @ A.T + Q)
    smoother.tolerance = 0  # no steady state
    found = smoother.smooth()
    expected = {
        "filtered": found.filtered_state.T,
        "filtered covariance": np.moveaxis(found.filtered_state_cov, -1, 0),
        "smoothed": found.smoothed_state.T,
        "smoothed covariance": np.moveaxis(found.smoothed_state_cov, -1, 0),
        "lag-one covariance": np.moveaxis(found.smoothed_state_autocov, -1, 0)[:-1],
        "log-likelihood": float(found.llf),
    }
    return {"rows": rows, "model": model, "expected": expected, "rtol": 1e-9}


def plain(value):
    """Turn arrays into lists, with null for NaN."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(item) for item in value]
    return None if value != value else value


def main():
    import statsmodels

    problems = {"KFAS, holes": kfas_missing, "KFAS, diffuse": kfas_diffuse, "Stata": stata, "Nile": nile, "seeded": seeded}
    out = {"statsmodels": statsmodels.__version__} | {name: plain(make()) for name, make in problems.items()}
    text = json.dumps(out, indent=1)
    # A list of numbers takes one line: a row of data each.
    text = re.sub(r"\[\s+([^\[\]]*?)\s+\]", lambda match: "[" + re.sub(r"\s+", " ", match[1]) + "]", text)
    Path(__file__).with_name("kalman.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
