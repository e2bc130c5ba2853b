"""The adversarial network: losses and gradients of both players, threads, what it learns where that is known, eight heaps."""

from copy import deepcopy
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import lemmata
from lemmata.core.threads import serial_blas
from lemmata.generative import GenerativeAdversarialNetwork, VariationalAutoencoder, mmd_test
from lemmata.generative.gan_certificate import ASIDE, Law, judge_loss, maker_loss
from lemmata.generative.gan_kernels import Plan, Players, discriminator_gradient, generator_gradient, judge, train_block
from lemmata.neural_network.layers import draw_parameters, forward, new_rooms, new_shape, room_of, unit_rows
from lemmata.neural_network.network import UNMOVED
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import begin, new_steps
from lemmata.optimize import jacobian
from lemmata.optimize.rules import Adam, GradientDescent

D, K, N = 3, 2, 5


def players(hidden=(4,), activation="tanh", seed=0):
    """Two networks whose parameters are drawn, biases too."""
    names, rng = [activation] * len(hidden), np.random.default_rng(seed)
    maker, judge = new_shape([K, *hidden, D], [*names, "identity"]), new_shape([D, *hidden, 1], [*names, "sigmoid"])
    parameters = np.concatenate([draw_parameters(shape, rng) for shape in (maker, judge)])
    return Law(maker, judge, parameters + 0.3 * rng.standard_normal(len(parameters)), np.zeros(D), np.ones(D))


def plan_of(law, penalty=0.0, minimax=False, n_critic=1, memory=0.9, rate=0.01):
    steps = [new_steps(Adam(rate), [shape], float) for shape in (law.maker, law.judge)]
    return Plan(law.maker, law.judge, minimax, 0.0, penalty, n_critic, memory, *steps)


def difference(function, at):
    return jacobian(lambda p: np.array([function(p)]), at)[0]


@pytest.mark.item("NNG-06")
@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_the_discriminators_gradient_is_that_of_central_differences(penalty, activation):
    law, rng = players((4, 3), activation), np.random.default_rng(1)
    rows, draws = rng.normal(size=(2, N, D))
    aside = rows + ASIDE * rng.normal(size=rows.shape)
    room = room_of(new_rooms(law.judge, 1, 3 * N, float), 0)
    room.values[: 3 * N * D] = np.concatenate([rows, draws, aside]).ravel()
    parameters, gradient = law.parameters[law.split :].copy(), np.zeros(len(law.parameters) - law.split)
    with serial_blas():
        weight = np.full(N, 1 / N)
        loss, slope = discriminator_gradient(plan_of(law, penalty), parameters, room, weight, N, UNMOVED, gradient)
    function = partial(judge_loss, law, penalty, rows, draws, aside)
    assert loss + slope == pytest.approx(function(parameters), rel=1e-12)
    assert (slope > 0) == (penalty > 0)
    np.testing.assert_allclose(gradient, difference(function, parameters), atol=1e-5 * np.abs(gradient).max())  # differences


@pytest.mark.item("NNG-06")
@pytest.mark.parametrize("minimax", [False, True])
def test_the_generators_gradient_is_that_of_central_differences(minimax):
    law, rng = players(), np.random.default_rng(2)
    Z, maker, judging = rng.normal(size=(N, K)), law.parameters[: law.split].copy(), law.parameters[law.split :].copy()
    making, room = (room_of(new_rooms(shape, 1, N, float), 0) for shape in (law.maker, law.judge))
    gradient, scrap = np.zeros(len(maker)), np.zeros(len(judging))
    with serial_blas():
        making.values[: N * K] = Z.ravel()
        forward(law.maker, maker, making, N, 0.0, UNMOVED)
        room.values[: N * D] = unit_rows(law.maker, making.values, making.capacity, len(law.maker.codes), N)
        plan, weight = plan_of(law, minimax=minimax), np.full(N, 1 / N)
        value = generator_gradient(plan, maker, judging, making, room, weight, N, UNMOVED, scrap, gradient)
    function = partial(maker_loss, law, minimax, Z, judging)
    assert value == pytest.approx(function(maker), rel=1e-12)
    np.testing.assert_allclose(gradient, difference(function, maker), atol=1e-6 * np.abs(gradient).max())  # differences


@pytest.mark.item("NNG-06")
def test_the_value_of_a_discriminator_that_knows_nothing_is_minus_log_4():
    deltas = np.zeros(4)
    loss, _ = judge(np.zeros(4), np.full(2, 0.5), 2, 0.0, deltas)
    assert -loss == pytest.approx(-np.log(4), rel=1e-12)
    np.testing.assert_allclose(deltas, [-0.25, -0.25, 0.25, 0.25], rtol=1e-12)
    loss, _ = judge(np.array([800.0, -800.0]), np.ones(1), 1, 0.0, deltas[:2])
    assert loss == 0.0  # nothing overflows where it is sure
    loss, _ = judge(np.array([-800.0, 800.0]), np.ones(1), 1, 0.0, deltas[:2])
    assert loss == 1600.0


def test_the_penalty_is_the_squared_slope_in_the_mean():
    slope, rng = np.array([2.0, -1.0, 0.5]), np.random.default_rng(3)
    u = rng.standard_normal((100_000, 3))
    logits = np.concatenate([np.zeros(100_000), np.zeros(100_000), ASIDE * u @ slope])
    _, penalty = judge(logits, np.full(100_000, 1e-5), 100_000, 0.6, np.zeros(300_000))
    assert penalty == pytest.approx(0.3 * slope @ slope, rel=0.02)  # squares of normals: √2 of the mean, over √100,000


def trained(n_threads, weight=None, rows=None, n_critic=1, hidden=(256,)):
    law = players(hidden, "relu")
    maker, judging = (begin(Adam(0.01), p.copy()) for p in np.split(law.parameters, [law.split]))
    X = np.random.default_rng(4).normal(size=(600, D)) if rows is None else rows
    both = Players(maker, judging, maker.parameters.copy())
    plan = plan_of(law, penalty=0.1, n_critic=n_critic)._replace(noise=0.1)
    with lemmata.config(n_threads=n_threads):
        rng = np.random.default_rng(5)
        return train_block(plan, both, rows_of(X, None, None, float), weight, 1.0, 300, True, rng)


def test_both_are_seen_through_the_same_noise():
    """Rows and draws are all zero, so that nothing but noise could tell them apart."""
    law, rng = players(), np.random.default_rng(7)
    law.parameters[: law.split] = 0.0
    maker, judging = (begin(Adam(1e-12), p.copy()) for p in np.split(law.parameters, [law.split]))
    both, rows = Players(maker, judging, maker.parameters.copy()), rows_of(np.zeros((2000, D)), None, None, float)
    still, moving = (new_steps(Adam(rate), [shape], float) for rate, shape in ((1e-12, law.maker), (0.01, law.judge)))
    plan = plan_of(law)._replace(noise=1.0, generator_steps=still, discriminator_steps=moving)
    for _ in range(30):
        both, value, weight = train_block(plan, both, rows, None, 1.0, 200, True, rng)
    assert value / weight == pytest.approx(-np.log(4), abs=0.02)  # with noise on either alone it is above −1


@pytest.mark.parametrize("n_critic", [1, 2])
def test_threads_share_a_batch_and_leave_the_bits_alone(n_critic):
    one, two, three = (trained(t, n_critic=n_critic) for t in (1, 2, 3))
    assert one[0].generator.steps == 2 // n_critic
    for other in (two, three):
        for a, b in zip(one[0][:2], other[0][:2], strict=True):
            assert a.parameters.tobytes() == b.parameters.tobytes()
        assert one[0].average.tobytes() == other[0].average.tobytes()
        assert one[1:] == other[1:]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cls", [GenerativeAdversarialNetwork, VariationalAutoencoder])
def test_weights_are_visits_of_the_table_wherever_it_is_cut(cls):
    X, weight = heaps(120, 0), np.repeat([0.1, 0.4, 0.25, 0.25], 30)  # in a block of thirty rows they are all the same
    options = {"hidden_layer_sizes": (4,), "max_iter": 2, "random_state": 0}
    with lemmata.config(block_rows=30):
        low, high = (cls(2, **options).fit(X, sample_weight=w) for w in (weight, 4 * weight))
    assert low.t_ == high.t_
    np.testing.assert_allclose(low.parameters_, high.parameters_, rtol=0, atol=1e-9)
    equal, plain = (cls(2, **options).fit(X, sample_weight=w) for w in (np.full(120, 0.3), None))
    np.testing.assert_allclose(equal.parameters_, plain.parameters_, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match=r"the weights of a block of rows add up to 1.2e\+11: divide sample_weight by"):
        cls(2, **options).fit(X, sample_weight=np.full(120, 1e9))


@pytest.mark.parametrize("cls", [GenerativeAdversarialNetwork, VariationalAutoencoder])
def test_a_fit_that_was_interrupted_is_certified_as_that_of_its_epochs(cls):
    X, options = heaps(100, 0), {"hidden_layer_sizes": (4,), "random_state": 0}
    stop = StopAfter(3)
    model = cls(2, max_iter=9, **options).set_callbacks(stop).fit(X)
    assert model.n_iter_ == 3
    assert model.certify(X).holds
    model.t_ += 1
    assert not model.certify(X).holds


class StopAfter:
    """A callback that stops a fit after some epochs."""

    def __init__(self, epochs):
        self.left = epochs

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context): ...

    def on_fit_task_end(self, estimator, context):
        self.left -= context.task_name == "iteration"
        return self.left == 0


def test_a_weight_is_a_number_of_visits():
    rng = np.random.default_rng(6)
    weight, rows = rng.integers(1, 4, size=50).astype(float), rng.normal(size=(50, D))
    a, b = trained(1, weight, rows), trained(1, None, np.repeat(rows, weight.astype(int), axis=0))
    assert a[0].average.tobytes() == b[0].average.tobytes()
    assert a[1:] == b[1:]


def test_the_generator_given_away_is_an_average():
    X = np.random.default_rng(0).normal(size=(64, 2))
    options = {"hidden_layer_sizes": (4,), "batch_size": 64, "random_state": 0}

    def generator(**more):
        model = GenerativeAdversarialNetwork(2, **(options | more)).fit(X)
        return model.generator_.parameters

    # plain steps of no length leave the start where it is
    start = generator(max_iter=1, rule=GradientDescent(1e-300), average=0.0)
    one, two = (generator(max_iter=m, average=0.0) for m in (1, 2))
    first = 2 / 11 * start + 9 / 11 * one  # a step keeps (1 + t)/(10 + t) at most
    np.testing.assert_allclose(generator(max_iter=1), first, rtol=1e-12)
    np.testing.assert_allclose(generator(max_iter=2), 3 / 12 * first + 9 / 12 * two, rtol=1e-12)
    np.testing.assert_allclose(generator(max_iter=2, average=0.1), 0.1 * (0.1 * start + 0.9 * one) + 0.9 * two, rtol=1e-12)


@pytest.mark.item("NNG-06", "NNG-07")
def test_a_discriminator_left_alone_finds_the_optimal_one():
    """The generator stands still and is linear, so both laws are normal and D* = p/(p + q) is known."""
    X = np.random.default_rng(0).normal(size=(2000, 1))
    model = GenerativeAdversarialNetwork(
        1,
        hidden_layer_sizes=(),
        discriminator_layer_sizes=(32,),
        activation="tanh",
        rule=GradientDescent(1e-300),
        discriminator_rule="adam",
        discriminator_rate=0.005,
        penalty=0.0,
        max_iter=100,
        random_state=1,
    ).fit(X)
    W, b = model.generator_.weights[0].ravel(), model.generator_.biases[0]
    q = norm(b * model.scale_ + model.mean_, np.abs(W) * model.scale_)
    x = np.linspace(-2, 2, 50)[:, None]
    best = norm.pdf(x) / (norm.pdf(x) + q.pdf(x))
    assert np.ptp(best) > 0.3  # there is something to find
    np.testing.assert_allclose(model.discriminate(x), best.ravel(), atol=0.1)
    draws, rows = q.rvs(size=(20_000, 1), random_state=1), np.random.default_rng(2).normal(size=(20_000, 1))
    value = np.log(best_at(rows, q)).mean() + np.log(1 - best_at(draws, q)).mean()
    assert model.value_ == pytest.approx(value, abs=0.05)  # −log 4 + 2 JSD, both by draws


def best_at(x, q):
    return norm.pdf(x) / (norm.pdf(x) + q.pdf(x))


@pytest.mark.parametrize("objective", ["non_saturating", "minimax"])
def test_a_linear_generator_learns_a_normal_law(objective):
    X = 3 + 2 * np.random.default_rng(0).normal(size=(1000, 1))
    options = {"hidden_layer_sizes": (), "discriminator_layer_sizes": (32,), "max_iter": 100, "random_state": 0}
    model = GenerativeAdversarialNetwork(1, objective=objective, learning_rate_init=0.005, **options).fit(X)
    drawn = model.sample(10_000, random_state=0)
    assert drawn.mean() == pytest.approx(3, abs=0.3)
    assert drawn.std() == pytest.approx(2, rel=0.15)
    assert abs(model.trace_[-20:].mean() + np.log(4)) < 0.02  # nothing is left to tell


def heaps(n, seed):
    rng = np.random.default_rng(seed)
    angle = 2 * np.pi * rng.integers(8, size=n) / 8
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.05 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("seed", range(2))
def test_eight_heaps_on_a_ring_are_all_found(seed):
    X = heaps(1000, seed)
    model = GenerativeAdversarialNetwork(random_state=seed, max_iter=200).fit(X)
    drawn = model.sample(2500, random_state=seed)
    angles = 2 * np.pi * np.arange(8) / 8
    centers = np.column_stack([np.cos(angles), np.sin(angles)])
    away = np.linalg.norm(drawn[:, None] - centers, axis=2)
    near = away.min(axis=1) < 3 * 0.05
    shares = np.bincount(away.argmin(axis=1)[near], minlength=8) / len(drawn)
    assert (shares >= 0.02).all()
    assert near.mean() > 0.5


def test_the_latent_space_is_walked_through():
    X = heaps(200, 0)
    model = GenerativeAdversarialNetwork(3, hidden_layer_sizes=(8,), max_iter=2, random_state=0).fit(X)
    Z = np.random.default_rng(0).normal(size=(2, 3))
    way = model.interpolate(*Z, 5)
    np.testing.assert_allclose(way[[0, -1]], model.generate(Z), rtol=1e-12)
    np.testing.assert_allclose(way[2], model.generate(Z.mean(axis=0, keepdims=True))[0], rtol=1e-12)
    assert model.latent_walk(2, n=4).shape == (4, 2)
    assert model.latent_grid(3, axes=(0, 2), start=Z[0]).shape == (3, 3, 2)
    np.testing.assert_allclose(model.generator_.forward(Z) * model.scale_ + model.mean_, model.generate(Z), rtol=1e-9)
    scaled = (X - model.mean_) / model.scale_
    np.testing.assert_allclose(model.discriminator_.forward(scaled).ravel(), model.discriminate(X), rtol=1e-9)
    np.testing.assert_allclose(model.discriminator_.units(scaled)[-2], model.transform(X), rtol=1e-9, atol=1e-12)
    plain = GenerativeAdversarialNetwork(2, hidden_layer_sizes=(), max_iter=1, random_state=0).fit(X)
    np.testing.assert_allclose(plain.transform(X), (X - plain.mean_) / plain.scale_, rtol=1e-12)
    with pytest.raises(ValueError, match=r"Z has the shape \(1, 2\), and a row holds 3 latent coordinates"):
        model.generate([[0.0, 1.0]])


@pytest.mark.parametrize(
    ("walk", "match"),
    [
        (lambda model: model.latent_walk(5), "whole number from 0 to 2; got 5"),
        (lambda model: model.latent_walk("a"), "whole number from 0 to 2; got 'a'"),
        (lambda model: model.latent_walk(n=2.5), "n must be a whole number"),
        (lambda model: model.latent_walk(start=np.zeros((2, 3))), "one point of the latent space, got 2"),
        (lambda model: model.latent_grid(axes=(0, 5)), "whole number from 0 to 2; got 0, 5"),
        (lambda model: model.latent_grid(axes=(0, 0)), r"two different coordinates, got \(0, 0\)"),
        (lambda model: model.latent_grid(axes=(0, 1, 2)), r"two different coordinates, got \(0, 1, 2\)"),
        (lambda model: model.interpolate(np.zeros(3), np.zeros(2)), r"got the shapes \(3,\) and \(2,\)"),
        (lambda model: model.interpolate(np.zeros(2), np.zeros(2)), "a row holds 3 latent coordinates"),
        (lambda model: model.generate([[0.0, np.nan, 0.0]]), "Input Z contains NaN in row 0; clean or impute it first"),
        (lambda model: model.generate([["a", "b", "c"]]), "Expected numbers, got an array of"),
    ],
)
def test_ways_that_lead_nowhere_are_refused(walk, match):
    model = GenerativeAdversarialNetwork(3, hidden_layer_sizes=(4,), max_iter=1, random_state=0).fit(heaps(50, 0))
    with pytest.raises(ValueError, match=match):
        walk(model)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_far_off_are_real_with_a_probability_that_is_a_number(dtype):
    X = (1e-12 * heaps(200, 0)).astype(dtype)
    model = GenerativeAdversarialNetwork(2, hidden_layer_sizes=(8,), max_iter=2, random_state=0).fit(X)
    size = 0.9 * np.finfo(dtype).max
    chances = model.discriminate(np.array([[size, size], [-size, -size], [size, -size], [0, size]], dtype))
    assert ((chances >= 0) & (chances <= 1)).all(), chances


@pytest.mark.parametrize("options", [{}, {"objective": "minimax", "penalty": 0.0, "n_critic": 3, "noise": 0.1, "average": 0.0}])
def test_the_certificate_repeats_the_fit_and_tells_how_far_draws_are(options):
    X = heaps(200, 0)
    model = GenerativeAdversarialNetwork(2, hidden_layer_sizes=(16,), max_iter=5, random_state=0, **options).fit(X)
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    assert certificate["two samples"].value == pytest.approx(1 / 200)  # five epochs are too few, and it is seen
    for name in ("parameters_", "value_", "mean_", "scale_"):
        spoiled = deepcopy(model)
        setattr(spoiled, name, getattr(model, name) * 1.01)
        assert not spoiled.certify(X).holds, name


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", [3, 15, 24])
@pytest.mark.parametrize("cls", [VariationalAutoencoder, GenerativeAdversarialNetwork])
def test_units_that_never_say_anything_do_not_put_the_next_ones_on_a_kink(cls, seed):
    X = np.random.default_rng(seed).normal(size=(20, 2))
    certificate = cls(1, hidden_layer_sizes=(2, 2), max_iter=2, random_state=seed).fit(X).certify(X)
    assert certificate.holds, str(certificate)


def test_draws_of_a_good_fit_are_not_told_from_rows_held_out():
    X, fresh = (3 + 2 * np.random.default_rng(seed).normal(size=(1000, 1)) for seed in (0, 1))
    options = {"hidden_layer_sizes": (), "discriminator_layer_sizes": (32,), "learning_rate_init": 0.005, "max_iter": 100}
    model = GenerativeAdversarialNetwork(1, **options, random_state=0).fit(X)
    drawn = model.sample(200, random_state=0)
    assert mmd_test(fresh[:200], drawn, random_state=0).p_value > 0.01
    assert mmd_test(fresh[:200], drawn + 1, random_state=0).p_value < 0.01


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"discriminator_layer_sizes": (2.5,)}, "discriminator_layer_sizes must hold whole numbers"),
        ({"objective": "maximin"}, "objective"),
        ({"average": 1.0}, "average"),
        ({"learning_rate_init": 1e300}, "left the numbers in epoch"),
    ],
)
def test_nonsense_is_refused(options, match):
    with pytest.raises(ValueError, match=match), np.errstate(all="ignore"):
        GenerativeAdversarialNetwork(2, **({"hidden_layer_sizes": (4,)} | options)).fit(heaps(50, 0))


@pytest.mark.parametrize(
    ("spoil", "match"),
    [
        (lambda X: np.where(X[7] == X, np.nan, X), r"^Input X contains NaN in row 7; clean or impute it first\.$"),
        (lambda X: np.where(X[7] == X, "red", X.astype(object)), "^Expected numbers, got an array of object"),
        (lambda X: pd.DataFrame({"a": X[:, 0], "b": "red"}), r"^Column 'b' holds .*, not numbers; encode it or leave it out"),
    ],
)
def test_rows_that_are_no_numbers_are_refused_in_one_sentence(spoil, match):
    with pytest.raises(ValueError, match=match):
        GenerativeAdversarialNetwork(2, hidden_layer_sizes=(4,)).fit(spoil(heaps(50, 0)))
