"""Gibbs sampling by conditionals: exact moments and sweeps, blocks, scans, chains in parallel, errors."""

import numpy as np
import pytest
from scipy.stats import chisquare

from helpers import bits
from lemmata.core import diagnostics
from lemmata.sampling import chains, gibbs, gibbs_matrix

ERRORS = 5.0  # standard errors: a false alarm once in a million
LEVEL = 1e-6
RHO = 0.6


def conditional(i):
    """Of a normal law of two numbers with correlation 0.6."""
    return lambda x, rng: RHO * x[1 - i] + np.sqrt(1 - RHO**2) * rng.standard_normal()


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_moments_of_a_normal_law(scan):
    def log_density(x):
        return -(x[0] ** 2 - 2 * RHO * x[0] * x[1] + x[1] ** 2) / (2 * (1 - RHO**2))

    draws = gibbs([conditional(0), conditional(1)], [3.0, 3.0], 4000, random_state=0, scan=scan, log_density=log_density)
    assert draws.certify(log_density).holds
    parts = np.concatenate([draws.values, draws.values**2, draws.values[:, :, :1] * draws.values[:, :, 1:]], axis=2)
    miss = np.abs(parts.mean(axis=(0, 1)) - [0, 0, 1, 1, RHO]) / diagnostics.mcse_mean(parts)
    assert (miss < ERRORS).all()


@pytest.mark.item("SMP-08")
@pytest.mark.parametrize("scan", ["systematic", "random"])
def test_sweeps_have_the_exact_transition_law(scan):
    joint = np.array([[0.4, 0.1], [0.2, 0.3]])

    def draw(i):
        def conditional(x, rng):
            odds = joint[:, x[1]] if i == 0 else joint[x[0]]
            return int(rng.random() * odds.sum() >= odds[0])

        return conditional

    draws = gibbs([draw(0), draw(1)], [0, 0], 5000, random_state=1, scan=scan)
    assert draws.values.dtype == np.int64
    steps = gibbs_matrix(joint, scan=scan)
    T = steps if scan == "systematic" else steps @ steps  # a sweep at random is two steps
    state = draws.values[:, :, 0] * 2 + draws.values[:, :, 1]
    for here in range(4):
        counts = np.bincount(state[:, 1:][state[:, :-1] == here], minlength=4)
        assert chisquare(counts, counts.sum() * T[here]).pvalue > LEVEL


def test_blocks_by_name():
    """Two numbers about a common center, which has a prior: all normal, and all variances known."""
    parts = {
        "group": lambda x, rng: rng.normal(x["all"], size=2),
        "all": lambda x, rng: rng.normal(x["group"].sum() / 3, 3**-0.5),
    }
    draws = gibbs(parts, {"group": np.zeros(2), "all": 0.0}, 4000, random_state=0)
    assert draws.names == ("group[0]", "group[1]", "all")
    squares = draws.values**2
    miss = np.abs(squares.mean(axis=(0, 1)) - [2, 2, 1]) / diagnostics.mcse_mean(squares)
    assert (miss < ERRORS).all()
    assert gibbs(parts, lambda rng: {"group": rng.normal(size=2), "all": 0.0}, 10, random_state=0).n_draws == 10


def test_the_same_seed_is_the_same_chain_and_thinning_skips():
    sampler = [conditional(0), conditional(1)]
    long = gibbs(sampler, [0.0, 0.0], 60, random_state=0, warmup=0)
    thin = gibbs(sampler, [0.0, 0.0], 20, random_state=0, warmup=0, thin=3)
    assert bits(long.thin(3).values) == bits(thin.values)
    late = gibbs(sampler, [0.0, 0.0], 50, random_state=0, warmup=10)
    assert bits(late.values) == bits(long.discard(10).values)


def test_errors():
    good = [conditional(0), conditional(1)]
    with pytest.raises(ValueError, match="2 numbers, one for each conditional"):
        gibbs(good, [0.0], 10)
    with pytest.raises(ValueError, match="must give the shape"):
        gibbs([good[0], lambda x, rng: np.zeros(2)], [0.0, 0.0], 10)
    with pytest.raises(ValueError, match="begin with real numbers"):
        gibbs(good, [0, 0], 10)
    with pytest.raises(ValueError, match="not finite"):
        gibbs([good[0], lambda x, rng: np.nan], [0.0, 0.0], 10)
    with pytest.raises(ValueError, match="a value for each of"):
        gibbs({"a": lambda x, rng: 0.0}, {"b": 0.0}, 10)
    with pytest.raises(ValueError, match="scan"):
        gibbs(good, [0.0, 0.0], 10, scan="up")
    with pytest.raises(ValueError, match="evidence"):
        gibbs(good, [0.0, 0.0], 10, evidence={})
    with pytest.raises(ValueError, match="warmup"):
        gibbs(good, [0.0, 0.0], 10, warmup=-1)


def test_graphical_models_have_their_own_sampler():
    graphical = pytest.importorskip("lemmata.graphical")
    if not hasattr(graphical, "FactorGraph"):
        pytest.skip("no FactorGraph yet")
    graph = graphical.FactorGraph([("ab", [[3.0, 1.0], [1.0, 2.0]])])
    draws = gibbs(graph, n_draws=2000, random_state=0, evidence={"b": 1})
    assert abs(draws["a"].mean()[0] - 2 / 3) < ERRORS * draws["a"].mcse[0]


def test_any_sampler_in_parallel_chains():
    def sampler(rng):
        x = rng.normal(size=(200, 2))
        return x, -0.5 * (x**2).sum(axis=1)

    draws = chains(sampler, 3, random_state=0, names=["a", "b"])
    assert draws.values.shape == (3, 200, 2)
    assert draws.certify(lambda x: -0.5 * float(x @ x))["log density"].holds
    assert bits(draws.values) == bits(chains(sampler, 3, random_state=0).values)
    with pytest.raises(ValueError, match="different shapes"):
        chains(lambda rng: rng.normal(size=rng.integers(1, 100)), 3, random_state=0)
    with pytest.raises(ValueError, match="function of a generator"):
        chains(3)


def test_a_number_in_the_place_of_the_start_is_explained():
    from lemmata.graphical import FactorGraph

    with pytest.raises(ValueError, match="write n_draws=500"):
        gibbs(FactorGraph([("a", [1.0, 2.0])]), 500)


def test_every_chain_may_have_its_own_start():
    stay = [lambda x, rng: x[0], lambda x, rng: x[1]]
    starts = np.arange(8.0).reshape(4, 2)
    for start in (starts, starts.tolist()):
        assert gibbs(stay, start, 3, random_state=0).values[:, 0].tolist() == starts.tolist()
    parts = {"a": lambda x, rng: x["a"]}
    assert gibbs(parts, [{"a": float(i)} for i in range(4)], 3, random_state=0).values[:, 0, 0].tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="one for each of 4; there are 3"):
        gibbs(stay, starts[:3], 3)
    with pytest.raises(ValueError, match="same number of coordinates"):
        gibbs(stay, [[0.0], [1.0, 2.0]], 3, n_chains=2)


def test_a_conditional_that_changes_the_point_changes_no_other_coordinate():
    def careless(x, rng):
        x[1] = 99.0
        return rng.normal()

    assert gibbs([careless, lambda x, rng: x[1]], [0.0, 1.0], 10, random_state=0).values[:, :, 1].max() == 1.0


def test_what_is_missing_is_named():
    from sklearn.exceptions import NotFittedError

    from lemmata.graphical import BayesNet, FactorGraph

    with pytest.raises(ValueError, match="start is needed"):
        gibbs([conditional(0)])
    with pytest.raises(ValueError, match="conditionals must be"):
        gibbs(conditional(0), [0.0])
    with pytest.raises(NotFittedError):
        gibbs(BayesNet({"a": (), "b": ("a",)}))
    graph = FactorGraph([("ab", [[3.0, 1.0], [1.0, 2.0]])])
    for option in ({"names": ["x", "y"]}, {"log_density": lambda x: 0.0}):
        with pytest.raises(ValueError, match="graphical model brings both"):
            gibbs(graph, **option)
    with pytest.raises(ValueError, match="none for 'b'"):
        gibbs(graph, {"a": 1}, 5)
    with pytest.raises(ValueError, match="the state number 5; its states are 0 to 1"):
        gibbs(graph, [5, 0], 5)
    with pytest.raises(ValueError, match="the evidence says 1"):
        gibbs(graph, [0, 0], 5, evidence={"b": 1})
    found = gibbs(graph, lambda rng: {"a": 1}, 5, evidence={"b": 1}, random_state=0)
    assert (found.values[:, :, 1] == 1).all()
