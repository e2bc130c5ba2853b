"""Gaussian processes: the search for hyperparameters, predictions without variances, and rows beyond a matrix of all of them.

Everyone starts at the same hyperparameters of the same model (a constant times an RBF with five length scales, plus noise)
and stops at slopes of 1e-5, scikit-learn's default; the objective is the log evidence that was reached. Predictions are
compared by a sum of all of them with random signs. With inducing points there is no peer in scikit-learn: its exact process
on an eighth of the rows is what one would do instead, and the objective is the error on new rows, for which only the order of
size has to agree.
"""

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor as Peer
from sklearn.gaussian_process import kernels as peer_kernels

from bench.harness import Row
from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.kernels import RBF, Constant

COLUMNS = 5
SLOPES = 1e-5


def surface(X):
    return np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2]


def table(n=1500, n_new=0):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(-2, 2, (n, COLUMNS)), rng.uniform(-2, 2, (n_new, COLUMNS))
    y = surface(X) + 0.2 * rng.standard_normal(n)
    return X, y - y.mean(), new, rng.choice([-1.0, 1.0], n_new)


def theirs(y):
    noise = peer_kernels.WhiteKernel(0.1 * y.var(), (1e-8 * y.var(), 10 * y.var()))  # where ours starts, and within what
    return peer_kernels.ConstantKernel(1.0) * peer_kernels.RBF(np.ones(COLUMNS)) + noise


def fit(data):
    X, y = data[:2]
    return GaussianProcessRegressor(Constant() * RBF([1.0] * COLUMNS), center=False, tol=SLOPES).fit(X, y)


def fit_scikit(data):
    X, y = data[:2]
    return Peer(theirs(y), alpha=1e-12).fit(X, y)


def evidence(data, model):
    return getattr(model, "log_marginal_likelihood_value_", None) or model.log_marginal_likelihood_


def fitted_pair():
    X, y, new, signs = table(1500, 100_000)
    model = GaussianProcessRegressor(Constant() * RBF([1.0] * COLUMNS), noise=0.04, optimizer=None, center=False).fit(X, y)
    kernel = peer_kernels.ConstantKernel(1.0) * peer_kernels.RBF(np.ones(COLUMNS))
    return model, Peer(kernel, alpha=0.04, optimizer=None).fit(X, y), new, signs


def many():
    X, y, new, _ = table(12_000, 5000)
    return X, y, new


def inducing(data):
    X, y, _ = data
    return GaussianProcessRegressor(inducing=200, tol=1e-2, random_state=0).fit(X, y)


def thinned(data):
    X, y, _ = data
    return Peer(theirs(y), alpha=1e-12).fit(X[::8], y[::8])


def error(data, model):
    truth = surface(data[2])
    return float(np.sqrt(np.mean((model.predict(data[2]) - truth - (model.predict(data[2]) - truth).mean()) ** 2)))


ROWS = [
    Row(
        "GaussianProcessRegressor, search, 1,500 × 5",
        table,
        fit,
        {"scikit-learn": fit_scikit},
        evidence,
        bars={"scikit-learn": 3.0},
        repeats=1,
    ),
    Row(
        "GaussianProcessRegressor, means of 100,000 rows",
        fitted_pair,
        lambda data: data[0].predict(data[2]),
        {"scikit-learn": lambda data: data[1].predict(data[2])},
        lambda data, mean: float(data[3] @ mean),
        bars={"scikit-learn": 5.0},
        repeats=3,
    ),
    Row(
        "GaussianProcessRegressor, 200 inducing points, 12,000 × 5",
        many,
        inducing,
        {"scikit-learn, 1,500 of the rows": thinned},
        error,
        agree=1.0,
        repeats=1,
    ),
]
