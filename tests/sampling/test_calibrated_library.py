"""Simulation-based calibration of every posterior of the library that can be drawn from, at level 1e-3.

Parameters from the prior, data from the model, draws from what the library says is the posterior: the rank of the truth among
the draws must be uniform. One family of tests for all: a posterior with the wrong spread, shift or conditioning fails here.
"""

import numpy as np
import pytest

from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.graphical import BayesNet, Factor, FactorGraph
from lemmata.hmm import CategoricalHMM
from lemmata.kernels import RBF, Constant
from lemmata.linear_model import BayesianLinearRegression, BayesianLogisticRegression
from lemmata.mixture import GibbsMixture, MissingGaussian
from lemmata.probability import Beta, Dirichlet, Gamma, Normal
from lemmata.probability.conjugate import posterior
from lemmata.sampling import block_gibbs, gibbs, simulation_based_calibration
from lemmata.state_space import LinearGaussianModel

N = 200


def calibrated(prior, simulate, draw, **options):
    return simulation_based_calibration(prior, simulate, draw, N, random_state=0, **options).certify()


def seed_of(rng):
    return int(rng.integers(2**31))


CONJUGATE = {
    "beta": (Beta(2, 3), "bernoulli", lambda t, rng: rng.random(8) < t, {}),
    "gamma": (Gamma(2, 1), "exponential", lambda t, rng: rng.exponential(1 / t, 5), {}),
    "normal": (Normal(1, 2), "normal", lambda t, rng: rng.normal(t, 1.5, 4), {"scale": 1.5}),
    "dirichlet": (Dirichlet([1.0, 2.0, 0.5]), "categorical", lambda t, rng: rng.choice(3, 6, p=t), {}),
}


@pytest.mark.parametrize("name", CONJUGATE)
def test_conjugate_posteriors(name):
    prior, likelihood, simulate, known = CONJUGATE[name]

    def draw(data, rng):
        return posterior(prior, likelihood, data, **known).sample(99, random_state=seed_of(rng))

    assert calibrated(lambda rng: np.squeeze(prior.sample(1, random_state=seed_of(rng))), simulate, draw).holds


def test_a_posterior_that_is_too_sure_is_refused():
    def draw(data, rng):
        found = posterior(Normal(1, 2), "normal", data, scale=1.5)
        return found.loc + 0.6 * found.scale * rng.standard_normal((99, 1))

    assert not calibrated(lambda rng: rng.normal(1, 2), lambda t, rng: rng.normal(t, 1.5, 4), draw).holds


def test_bayesian_linear_regression():
    X = np.random.default_rng(1).standard_normal((12, 3))

    def draw(y, rng):
        model = BayesianLinearRegression(prior_precision=2.0, noise_variance=0.7, fit_intercept=False).fit(X, y)
        return model.sample(99, random_state=seed_of(rng))

    def simulate(w, rng):
        return X @ w + rng.normal(0, np.sqrt(0.7), 12)

    assert calibrated(lambda rng: rng.normal(0, np.sqrt(0.5), 3), simulate, draw).holds


def test_laplaces_posterior_of_a_logistic_regression():
    X = np.random.default_rng(2).standard_normal((400, 2))  # as many rows as make the posterior nearly normal

    def draw(y, rng):
        model = BayesianLogisticRegression(prior_precision=1.0, fit_intercept=False).fit(X, y)
        return model.sample(99, random_state=seed_of(rng))

    def simulate(w, rng):
        return (rng.random(400) < 1 / (1 + np.exp(-X @ w))).astype(int)

    assert calibrated(lambda rng: rng.normal(0, 1, 2), simulate, draw).holds


@pytest.mark.parametrize("inducing", [None, "all rows"])
def test_functions_of_a_gaussian_process(inducing):
    X = np.random.default_rng(3).uniform(-2, 2, (10, 1))
    new, kernel = np.array([[-1.5], [0.2], [3.0]]), Constant(1.5) * RBF(0.7)
    root = np.linalg.cholesky(kernel(np.vstack([new, X])) + 1e-10 * np.eye(13))
    drawn = {}

    def prior(rng):
        f = root @ rng.standard_normal(13)
        drawn["y"] = f[3:] + rng.normal(0, np.sqrt(0.2), 10)
        return f[:3]

    def draw(y, rng):
        points = None if inducing is None else X
        model = GaussianProcessRegressor(kernel, noise=0.2, optimizer=None, center=False, inducing=points).fit(X, y)
        return model.sample(new, 99, random_state=seed_of(rng))

    assert calibrated(prior, lambda t, rng: drawn["y"], draw).holds


def test_states_of_a_hidden_markov_model():
    start, move = np.array([0.6, 0.3, 0.1]), np.array([[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    emit = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    fixed = ("startprob", "transmat", "emissionprob")
    hmm = CategoricalHMM(3, startprob_init=start, transmat_init=move, emissionprob_init=emit, fixed=fixed)
    hmm.fit(np.array([[0], [1], [2]]))

    def prior(rng):
        path = [rng.choice(3, p=start)]
        for _ in range(6):
            path.append(rng.choice(3, p=move[path[-1]]))
        return np.array(path)

    def simulate(path, rng):
        return np.array([rng.choice(3, p=emit[int(s)]) for s in path])[:, None]

    def draw(X, rng):
        return np.asarray(hmm.draw_states(X, 99, random_state=seed_of(rng))).reshape(99, 7)

    assert calibrated(prior, simulate, draw).holds


def test_states_of_a_linear_gaussian_model():
    model = LinearGaussianModel(
        transition=[[0.9, 0.2], [-0.1, 0.8]],
        transition_covariance=[[0.3, 0.05], [0.05, 0.2]],
        observation=[[1.0, 0.5]],
        observation_covariance=[[0.4]],
        initial_mean=[0.5, -0.5],
        initial_covariance=[[1.0, 0.2], [0.2, 0.5]],
    )
    drawn = {}

    def prior(rng):
        X, states = model.sample(5, random_state=seed_of(rng))
        drawn["X"] = X
        return states.ravel()

    def draw(X, rng):
        return np.asarray(model.simulate_states(X, 99, random_state=seed_of(rng))).reshape(99, -1)

    assert calibrated(prior, lambda states, rng: drawn["X"], draw).holds


def test_holes_of_a_normal_table():
    mean, covariance = np.array([1.0, -1.0, 0.5]), np.array([[1.0, 0.6, 0.2], [0.6, 2.0, -0.3], [0.2, -0.3, 0.5]])
    model = MissingGaussian().fit(np.random.default_rng(0).multivariate_normal(mean, covariance, 50))
    model.mean_, model.covariance_ = mean, covariance
    drawn = {}

    def prior(rng):
        row = rng.multivariate_normal(mean, covariance)
        drawn["row"] = np.array([[row[0], np.nan, np.nan]])
        return row[1:]

    def draw(row, rng):
        return model.set_params(random_state=seed_of(rng)).draw(row, 99)[:, 0, 1:]

    assert calibrated(prior, lambda t, rng: drawn["row"], draw).holds


@pytest.mark.parametrize("method", ["collapsed", "uncollapsed"])
def test_groups_of_a_mixture_by_gibbs(method):
    given = {"alpha": 1.0, "mean_prior": [0.0], "mean_precision": 1.0, "degrees_of_freedom": 5.0, "covariance_prior": [[3.0]]}
    drawn = {}

    def together(z):  # a chain seldom swaps the names of components; the share of pairs in one component does not ask for them
        return (z[..., :, None] == z[..., None, :]).mean(axis=(-2, -1))

    def prior(rng):
        z = rng.choice(2, 8, p=rng.dirichlet([1.0, 1.0]))
        variance = 3.0 / rng.chisquare(5.0, 2)  # inverse Wishart of one dimension
        mean = rng.normal(0.0, np.sqrt(variance))
        drawn["X"] = rng.normal(mean[z], np.sqrt(variance[z]))[:, None]
        return together(z)

    def draw(X, rng):
        model = GibbsMixture(2, method=method, n_sweeps=550, burn_in=50, n_chains=1, random_state=seed_of(rng), **given)
        kept = model.fit(X).assignments_[0]
        return together(kept[np.linspace(0, len(kept) - 1, 49).astype(int)])

    assert calibrated(prior, lambda t, rng: drawn["X"], draw, n_ranks=49).holds


def small_net():
    rng = np.random.default_rng(4)
    parents = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("b",), "e": ("c", "d")}
    return BayesNet(parents, {v: rng.dirichlet(np.ones(3), size=(3,) * len(p)) for v, p in parents.items()})


@pytest.mark.parametrize("sampler", ["tree", "gibbs", "block"])
def test_hidden_variables_of_a_net(sampler):
    net, drawn = small_net(), {}

    def prior(rng):
        row = net.sample(1, random_state=seed_of(rng))
        drawn["evidence"] = {name: int(row[name][0]) for name in "de"}
        return np.array([row[name][0] for name in "abc"])

    def draw(evidence, rng):
        if sampler == "tree":
            found = net.sample(99, evidence, random_state=seed_of(rng))
            return np.column_stack([found[name] for name in "abc"])
        run = gibbs if sampler == "gibbs" else block_gibbs
        chain = run(net, n_draws=990, evidence=evidence, n_chains=1, random_state=seed_of(rng)).values[0][::10]
        return chain[:, [net.variables.index(name) for name in "abc"]]

    assert calibrated(prior, lambda t, rng: drawn["evidence"], draw, names=list("abc")).holds


def test_spins_of_a_grid_by_block_gibbs():
    edges = [
        ((i, j), (i + di, j + dj)) for i in range(4) for j in range(4) for di, dj in ((0, 1), (1, 0)) if max(i + di, j + dj) < 4
    ]
    graph = FactorGraph([Factor(edge, np.exp(0.4 * np.array([[1, -1], [-1, 1]]))) for edge in edges])
    places, drawn = list(graph.variables), {}

    def prior(rng):
        row = graph.sample(1, random_state=seed_of(rng))
        spins = np.array([row[place][0] for place in places])
        drawn["evidence"] = {places[k]: int(spins[k]) for k in (0, 5, 10, 15)}
        return np.array([spins.sum()])

    def draw(evidence, rng):
        chain = block_gibbs(graph, 990, evidence=evidence, n_chains=1, random_state=seed_of(rng)).values[0][::10]
        return chain.sum(axis=1, keepdims=True)

    assert calibrated(prior, lambda t, rng: drawn["evidence"], draw).holds
