"""Small models of every kind, as parameters by name, with series and inputs."""

import numpy as np

KINDS = ("plain", "missing", "time", "inputs", "singular", "everything")


def covariance(rng, n, rank=None):
    G = rng.normal(size=(n, rank or n))
    return G @ G.T + (0 if rank else 0.2) * np.eye(n)


def case(kind, seed=0, T=6, n=3, p=2):
    """Draw a model of this kind, a series of it, and inputs or None."""
    rng = np.random.default_rng(seed)
    varies = kind in ("time", "everything")
    time = (T,) if varies else ()
    m = {
        "transition": 0.6 * rng.normal(size=(*time, n, n)),
        "observation": rng.normal(size=(*time, p, n)),
        "transition_covariance": np.array([covariance(rng, n) for _ in range(T)]) if varies else covariance(rng, n),
        "observation_covariance": np.array([covariance(rng, p) for _ in range(T)]) if varies else covariance(rng, p),
        "initial_mean": rng.normal(size=n),
        "initial_covariance": covariance(rng, n),
    }
    inputs = None
    if kind in ("inputs", "everything"):
        inputs = rng.normal(size=(T, 2))
        m |= {"control": rng.normal(size=(*time, n, 2)), "feedthrough": rng.normal(size=(*time, p, 2))}
    if kind == "singular":
        m["transition_covariance"] = covariance(rng, n, rank=1)
        m["initial_covariance"] = np.zeros((n, n))
    X = 2 * rng.normal(size=(T, p))
    if kind in ("missing", "everything"):
        X[0], X[2, 0], X[4, 1] = np.nan, np.nan, np.nan
    return m, X, inputs
