"""Metropolis-Hastings: exact moments and transition laws, the same chain three ways, tuning, errors, threads, Ctrl-C."""

import numba
import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chisquare, multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

import lemmata
from helpers import bits
from lemmata.core import diagnostics
from lemmata.probability import Normal
from lemmata.sampling import Independence, Proposal, RandomWalk, engines, metropolis_hastings, metropolis_matrix
from lemmata.sampling.metropolis import windows
from sampling.targets import covariance, gaussian, many, plain

ERRORS = 5.0  # standard errors: a false alarm once in a million
LEVEL = 1e-6


def agree(draws, power, exact):
    """Hold moments to their exact values, within Monte-Carlo standard errors."""
    values = draws.values**power
    miss = np.abs(values.mean(axis=(0, 1)) - exact) / diagnostics.mcse_mean(values)
    assert (miss < ERRORS).all(), miss


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-06")
@pytest.mark.parametrize("spread", [1.0, 1e4])
def test_moments_of_a_normal_law(spread):
    C = covariance(5, spread=spread)
    draws = metropolis_hastings(gaussian, np.full(5, 1.0), 40_000, args=(np.linalg.inv(C),), random_state=0)
    assert draws.certify(gaussian, args=(np.linalg.inv(C),)).holds
    agree(draws, 1, 0.0)
    agree(draws, 2, np.diagonal(C))
    assert ((draws.acceptance > 0.15) & (draws.acceptance < 0.45)).all()
    np.testing.assert_allclose(np.corrcoef(draws.flat.T), covariance(5), atol=0.05)  # ESS about 10,000


def test_moments_with_plain_python_and_with_many_points_at_once():
    P = np.linalg.inv(covariance(2))
    for log_density, vectorized in ((plain, False), (many, True)):
        draws = metropolis_hastings(log_density, [2.0, 0.0], 4000, args=(P,), vectorized=vectorized, random_state=1)
        agree(draws, 1, 0.0)
        agree(draws, 2, 1.0)


@pytest.mark.slow_without_jit
def test_the_three_ways_are_one_chain():
    """Up to rounding, which a chain forgets as it forgets its start, as long as no decision is turned by it."""
    P = np.linalg.inv(covariance(3))
    options = {"args": (P,), "random_state": 5, "warmup": 200, "thin": 2}
    found = [
        metropolis_hastings(log_density, np.zeros(3), 100, vectorized=vectorized, **options)
        for log_density, vectorized in ((gaussian, False), (plain, False), (many, True))
    ]
    for other in found[1:]:
        np.testing.assert_allclose(other.values, found[0].values, rtol=0, atol=1e-6)
        np.testing.assert_allclose(other.log_density, found[0].log_density, rtol=0, atol=1e-6)
        np.testing.assert_array_equal(other.acceptance, found[0].acceptance)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("gain", [0.0, 2.0])
def test_kernels_match_numpy(rows, gain):
    """Steps in all directions together and in turns, fixed and adapting: machine code (or its source) against NumPy's twin."""
    C = covariance(3)
    target, proposal, x = engines.Target(gaussian, (np.linalg.inv(C),), False), RandomWalk(0.7, C), np.arange(6.0).reshape(2, 3)
    found = []
    for kind in (engines.CompiledEngine, engines.LockstepEngine):
        engine = kind(target, proposal, x.copy(), target(x), [np.random.default_rng(seed) for seed in range(4)])
        engine.tune_from(np.log(np.full(rows, 0.7)), gain)
        draws, logs = np.empty((2, 40, 3)), np.empty((2, 40))
        for task in engine.tasks:
            engine.advance(task, 2, draws[:, :25], logs[:, :25])
        for task in engine.tasks:
            engine.advance(task, 2, draws[:, 25:], logs[:, 25:])
        found.append((draws, logs, engine.tune, engine.x, engine.log_x, engine.accepted, engine.turn))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.item("SMP-06")
def test_moves_on_three_states_have_the_exact_transition_law():
    target, Q = np.array([0.2, 0.3, 0.5]), (np.ones((3, 3)) - np.eye(3)) / 2
    T = metropolis_matrix(target, Q)
    np.testing.assert_allclose(T, [[0, 0.5, 0.5], [1 / 3, 1 / 6, 1 / 2], [0.2, 0.3, 0.5]], rtol=1e-12)
    other = Proposal(lambda x, rng: (x + rng.integers(1, 3, size=1)) % 3)
    draws = metropolis_hastings(lambda x: np.log(target[x[0]]), [0], 5000, other, random_state=0)
    assert draws.values.dtype == np.int64
    x = draws.values[:, :, 0]
    for state in range(3):
        moves = np.bincount(x[:, 1:][x[:, :-1] == state], minlength=3)
        possible = T[state] > 0
        assert moves[~possible].sum() == 0
        assert chisquare(moves[possible], moves.sum() * T[state][possible]).pvalue > LEVEL


@pytest.mark.item("SMP-06")
def test_an_asymmetric_proposal_needs_its_ratio():
    """On 0, 1, 2, … a Poisson law, with steps up twice as probable as steps down."""

    def step(x, rng):
        return x + (1 if rng.random() < 2 / 3 else -1)

    def log_poisson(x):
        return -np.inf if x[0] < 0 else x[0] * np.log(3.0) - gammaln(x[0] + 1.0)

    def log_ratio(x, y):
        return np.log(0.5) if y[0] > x[0] else np.log(2.0)

    draws = metropolis_hastings(log_poisson, [3], 4000, Proposal(step, log_ratio), random_state=0)
    agree(draws, 1, 3.0)
    agree(draws, 2, 12.0)
    wrong = metropolis_hastings(log_poisson, [3], 4000, Proposal(step), random_state=0)
    assert abs(wrong.mean(check=False)[0] - 3.0) > 20 * wrong.mcse[0]


@pytest.mark.slow_without_jit
def test_compiled_proposals_are_the_plain_ones():
    import numba

    def draw(x, rng):
        y = x.copy()
        y[0] *= np.exp(0.5 * rng.standard_normal())  # a step in the logarithm, so not symmetric in x
        return y

    def log_ratio(x, y):
        return np.log(y[0] / x[0])

    def log_density(x):
        return -x[0]  # exponential

    njit = numba.njit  # noqa: TID251 - what a user writes
    quick = metropolis_hastings(
        njit(log_density), [1.0], 20_000, Proposal(njit(draw), njit(log_ratio)), random_state=0, warmup=10
    )
    slow = metropolis_hastings(log_density, [1.0], 200, Proposal(draw, log_ratio), random_state=0, warmup=10)
    np.testing.assert_allclose(quick.values[:, :200], slow.values, rtol=1e-9)
    agree(quick, 1, 1.0)
    agree(quick, 2, 2.0)
    with pytest.raises(ValueError, match="log_ratio is not a number"):
        metropolis_hastings(njit(log_density), [1.0], 10, Proposal(njit(draw), njit(lambda x, y: np.nan)), random_state=0)
    with pytest.raises(ValueError, match="start has integers"):
        metropolis_hastings(njit(log_density), [1], 10, Proposal(njit(lambda x, rng: x + 0.5)), random_state=0)


@pytest.mark.item("SMP-07")
@pytest.mark.parametrize("law", [norm(1, 2), Normal(1.0, 2.0), (lambda n, rng: rng.normal(1, 2, n), norm(1, 2).logpdf)])
def test_proposing_from_the_target_accepts_always(law):
    draws = metropolis_hastings(lambda x: norm(1, 2).logpdf(x[0]), [0.0], 300, Independence(law), random_state=0, warmup=0)
    np.testing.assert_array_equal(draws.acceptance, 1.0)
    assert draws.ess_bulk[0] > 800  # independent draws


def test_independence_proposals_in_two_dimensions():
    C = covariance(2)
    wide = multivariate_normal(np.zeros(2), 2 * C)
    draws = metropolis_hastings(plain, [0.0, 0.0], 4000, Independence(wide), args=(np.linalg.inv(C),), random_state=0)
    agree(draws, 1, 0.0)
    agree(draws, 2, 1.0)
    with pytest.raises(ValueError, match="3 dimensions"):
        metropolis_hastings(lambda x: 0.0, np.zeros(3), 10, Independence(wide), random_state=0)
    with pytest.raises(ValueError, match="frozen distribution"):
        metropolis_hastings(lambda x: 0.0, np.zeros(3), 10, Independence(3), random_state=0)


@pytest.mark.slow_without_jit
@pytest.mark.item("SMP-07")
def test_effective_draws_have_their_maximum_at_a_scale_in_between():
    P = np.eye(4)
    scales = np.geomspace(0.05, 30.0, 9)
    sizes, accepted = [], []
    for scale in scales:
        walk = RandomWalk(scale=scale, adapt=False)
        draws = metropolis_hastings(gaussian, np.zeros(4), 20_000, walk, args=(P,), random_state=0, warmup=500)
        sizes.append(np.nan_to_num(draws.ess_bulk.min()))  # NaN: it never moved
        accepted.append(draws.acceptance.mean())
    best = int(np.argmax(sizes))
    assert 0.5 < scales[best] < 2.5  # 2.38 / √4 = 1.19 is best in theory
    assert sizes[best] > 10 * max(sizes[0], sizes[-1])
    assert (np.diff(accepted) <= 0).all()
    adapted = metropolis_hastings(gaussian, np.zeros(4), 20_000, args=(P,), random_state=0)
    assert adapted.ess_bulk.min() > 0.7 * sizes[best]


def test_adaptation_stops():
    """Two runs that differ in the number of draws alone agree in what both have: nothing is learned while draws are kept."""
    options = {"args": (np.eye(2),), "warmup": 300, "random_state": 3}
    long, short = (metropolis_hastings(plain, np.zeros(2), n, **options) for n in (400, 100))
    assert bits(long.values[:, :100]) == bits(short.values)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("log_density", [gaussian, plain])
def test_threads_give_the_same_bits(log_density):
    found = []
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads):
            draws = metropolis_hastings(
                log_density, np.zeros(3), 3000 if log_density is gaussian else 300, args=(np.eye(3),), random_state=7
            )
        found.append(bits((draws.values, draws.log_density, draws.acceptance)))
    assert found[0] == found[1]


@pytest.mark.parametrize("length", [1, 7])
def test_stretches_do_not_change_a_bit(monkeypatch, length):
    run = [metropolis_hastings(plain, np.zeros(2), 60, args=(np.eye(2),), warmup=100, random_state=0)]
    monkeypatch.setattr(engines.LockstepEngine, "first", length)
    run.append(metropolis_hastings(plain, np.zeros(2), 60, args=(np.eye(2),), warmup=100, random_state=0))
    assert bits(run[0].values) == bits(run[1].values)


def test_starts():
    def log_density(x):
        return -0.5 * float(x @ x)

    own = metropolis_hastings(
        log_density, np.arange(8.0).reshape(4, 2), 1, RandomWalk(1e-9, adapt=False), warmup=0, random_state=0
    )
    np.testing.assert_allclose(own.values[:, 0], np.arange(8.0).reshape(4, 2), atol=1e-7)
    drawn = metropolis_hastings(
        log_density, lambda rng: rng.normal(size=2), 1, RandomWalk(1e-9, adapt=False), warmup=0, random_state=0
    )
    assert len(np.unique(drawn.values)) == 8
    assert metropolis_hastings(log_density, 0.0, 5, n_chains=2, warmup=0, random_state=0, names=["a"]).names == ("a",)


def test_windows_use_up_the_warm_up():
    for warmup in (0, 1, 3, 10, 99, 1000, 12_345):
        for d in (1, 2, 30):
            assert sum(windows(warmup, d)) == warmup
            assert min(windows(warmup, d)) >= 0
    for warmup in (0, 1, 3):
        assert metropolis_hastings(plain, np.zeros(2), 4, args=(np.eye(2),), warmup=warmup, random_state=0).n_draws == 4


def test_errors():
    def below(x):
        return -np.inf if x[0] < 0 else -x[0]

    def broken(x):
        return np.nan if x[0] > 1 else 0.0

    with pytest.raises(ValueError, match=r"−?-?inf at x = \[-1\.\].*Chain 0 cannot begin there"):
        metropolis_hastings(below, [-1.0], 10)
    with pytest.raises(ValueError, match=r"Chain 1 cannot begin"):
        metropolis_hastings(below, [[1.0], [-1.0]], 10, n_chains=2)
    with pytest.raises(ValueError, match="The log density is nan at x"):
        metropolis_hastings(broken, [0.0], 1000, random_state=0)
    with pytest.raises(ValueError, match="The log density is inf at x"):
        metropolis_hastings(lambda x: np.inf, [0.0], 10)
    with pytest.raises(ValueError, match="start must be"):
        metropolis_hastings(below, np.zeros((3, 2)), 10)
    with pytest.raises(ValueError, match="start must be finite"):
        metropolis_hastings(below, [np.nan], 10)
    with pytest.raises(ValueError, match="one number for a point"):
        metropolis_hastings(lambda x: x, [0.0, 1.0], 10)
    with pytest.raises(ValueError, match="4 numbers for as many points"):
        metropolis_hastings(lambda X: X.sum(), [0.0, 1.0], 10, vectorized=True)
    with pytest.raises(ValueError, match="proposal must be"):
        metropolis_hastings(below, [1.0], 10, proposal=lambda x, rng: x)
    with pytest.raises(ValueError, match="points of the shape"):
        metropolis_hastings(below, [1.0], 10, Proposal(lambda x, rng: np.zeros(2)))
    with pytest.raises(ValueError, match="start has integers"):
        metropolis_hastings(below, [1], 10, Proposal(lambda x, rng: x + 0.5))
    with pytest.raises(ValueError, match="log_ratio is not a number"):
        metropolis_hastings(below, [1.0], 10, Proposal(lambda x, rng: x + 0.5, lambda x, y: np.nan))
    with pytest.raises(ValueError, match="scale"):
        metropolis_hastings(below, [1.0], 10, RandomWalk(scale=-1.0))
    with pytest.raises(ValueError, match="covariance must be 1 variances"):
        metropolis_hastings(below, [1.0], 10, RandomWalk(covariance=[1.0, 2.0]))
    with pytest.raises(ValueError, match="positive definite"):
        metropolis_hastings(plain, [1.0, 0.0], 10, RandomWalk(covariance=-np.eye(2)), args=(np.eye(2),))
    with pytest.raises(ValueError, match="warmup"):
        metropolis_hastings(below, [1.0], 10, warmup=-1)
    with pytest.raises(ValueError, match="n_draws"):
        metropolis_hastings(below, [1.0], 0)
    with pytest.raises(ValueError, match="log_density must be a function"):
        metropolis_hastings(3.0, [1.0], 10)


@pytest.mark.slow_without_jit
def test_a_compiled_density_that_breaks_is_named():
    import numba

    broken = numba.njit(lambda x: np.nan if x[0] > 1 else 0.0)  # noqa: TID251 - what a user writes
    with pytest.raises(ValueError, match="The log density is nan at x"):
        metropolis_hastings(broken, [0.0], 1000, random_state=0)


def test_interrupted_chains_keep_what_all_have_drawn():
    calls = [0]

    def log_density(x):
        calls[0] += 1
        if calls[0] == 5000:
            raise KeyboardInterrupt
        return -0.5 * float(x @ x)

    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ of 2000 draws"):
        draws = metropolis_hastings(log_density, [0.0], 2000, warmup=100, random_state=0)
    assert 16 <= draws.n_draws < 2000
    assert ((draws.acceptance > 0.1) & (draws.acceptance < 0.9)).all()
    calls[0] = 4700  # in the warm-up nothing is worth keeping
    with pytest.raises(KeyboardInterrupt):
        metropolis_hastings(log_density, [0.0], 2000, warmup=100, random_state=0)


def test_progress_is_shown(capsys):
    metropolis_hastings(plain, np.zeros(2), 50, args=(np.eye(2),), warmup=10, random_state=0, verbose=1)
    shown = capsys.readouterr().err
    assert "warm-up" in shown
    assert "Metropolis-Hastings" in shown


def changing(function):
    return numba.njit(function)  # noqa: TID251 - what a user writes


def test_compiled_functions_that_change_their_point_are_refused():
    @changing
    def draw_in_place(x, rng):
        x[0] += rng.normal() * 3
        return x

    @changing
    def draw_and_change(x, rng):
        y = x + rng.normal()
        x[0] = 5.0
        return y

    @changing
    def normal(x):
        return -0.5 * x[0] ** 2

    @changing
    def density_in_place(x):
        x[0] *= 2
        return -0.5 * x[0] ** 2

    for draw, match in ((draw_in_place, "must not give back"), (draw_and_change, "draw must not change")):
        with pytest.raises(ValueError, match=match):
            metropolis_hastings(normal, [0.5], 10, Proposal(draw), random_state=0)
    with pytest.raises(ValueError, match="log_density must not change"):
        metropolis_hastings(density_in_place, [0.5], 10, random_state=0)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_log_density_that_changes_its_point_changes_no_chain(vectorized):
    def honest(x):
        return -0.5 * (x**2).sum(axis=-1)

    def careless(x):
        found = honest(x)
        x *= 1.5
        return found

    options = {"random_state": 0, "vectorized": vectorized, "warmup": 50}
    one, other = (metropolis_hastings(f, [1.0, 2.0], 200, **options) for f in (honest, careless))
    assert bits(one.values) == bits(other.values)
    other.certify(careless, vectorized=vectorized)
    assert bits(one.values) == bits(other.values)


def test_what_a_log_density_may_return_and_args_may_be():
    with pytest.raises(ValueError, match="returned nothing"):
        metropolis_hastings(lambda x: None, [0.0], 10)
    one, other = (metropolis_hastings(f, [0.0], 10, random_state=0) for f in (lambda x: -(x[0] ** 2), lambda x: -(x**2)))
    assert bits(one.values) == bits(other.values)
    for args in (2.0, np.ones(3)):
        with pytest.raises(ValueError, match=r"write args=\(data,\)"):
            metropolis_hastings(lambda x, a: -a * x[0] ** 2, [0.0], 10, args=args)
    with pytest.raises(ValueError, match="same number of coordinates"):
        metropolis_hastings(lambda x: -(x[0] ** 2), [[0.0], [1.0, 2.0]], 10)
