"""Small graphs that several test files draw from, and what is known about them exactly."""

import numpy as np

from lemmata.graphical import BayesNet, FactorGraph

SIGMAS = 4.5  # standard errors: by chance, once in a hundred thousand


def loop(n=5, number=0):
    """A ring of variables with 2 or 3 states, and one factor across of three of them."""
    rng = np.random.default_rng(number)
    cards = [2 + i % 2 for i in range(n)]
    scopes = [[i, (i + 1) % n] for i in range(n)] + [[0, 2, 3]]
    return FactorGraph([(scope, rng.gamma(2.0, size=[cards[v] for v in scope])) for scope in scopes])


def torus(rows, columns, beta):
    """Spins on a torus: variables (row, column), states −1 and 1."""
    table = np.exp(beta * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    sites = [(i, j) for i in range(rows) for j in range(columns)]
    pairs = [((i, j), (i, (j + 1) % columns)) for i, j in sites] + [((i, j), ((i + 1) % rows, j)) for i, j in sites]
    return FactorGraph([(pair, table) for pair in pairs], dict.fromkeys(sites, (-1, 1)))


def transfer_energy(rows, columns, beta, h=1e-5):
    """Mean of the energy −Σ s s' on a torus, from the trace of powers of the transfer matrix."""

    def log_z(beta):
        states = np.indices((2,) * columns).reshape(columns, -1).T * 2 - 1
        along = beta * (states * np.roll(states, 1, axis=1)).sum(axis=1)
        T = np.exp(along[:, None] / 2 + along / 2 + beta * states @ states.T)
        return np.log(np.sum(np.linalg.eigvalsh(T) ** rows))

    return -(log_z(beta + h) - log_z(beta - h)) / (2 * h)


def asia():
    """Lauritzen & Spiegelhalter's net: `either` is exactly the or of two diseases."""
    tables = {
        "asia": [0.99, 0.01],
        "smoke": [0.5, 0.5],
        "tub": [[0.99, 0.01], [0.95, 0.05]],
        "lung": [[0.99, 0.01], [0.9, 0.1]],
        "bronc": [[0.7, 0.3], [0.4, 0.6]],
        "either": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]],
        "xray": [[0.95, 0.05], [0.02, 0.98]],
        "dysp": [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.1, 0.9]]],
    }
    parents = {"tub": "asia", "lung": "smoke", "bronc": "smoke", "xray": "either"}
    parents = {name: (parents[name],) if name in parents else () for name in tables}
    return BayesNet(parents | {"either": ("lung", "tub"), "dysp": ("bronc", "either")}, tables)


def within(draws, model, evidence=None):
    """Largest distance of the means of states from those of the model, in standard errors."""
    marginals = model.marginals(evidence)
    expected = np.array([p @ np.arange(len(p)) for p in (marginals[name] for name in model.variables)])
    off = np.abs(draws.values.mean(axis=(0, 1)) - expected)
    free = [i for i, name in enumerate(model.variables) if marginals[name].max() < 1]
    assert off[[i for i in range(len(off)) if i not in free]].sum() == 0
    return (off[free] / draws.mcse[free]).max()
