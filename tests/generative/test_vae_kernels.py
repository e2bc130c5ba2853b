"""The bound and its two gradients, against central differences, closed forms and Monte Carlo; visits and threads."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import norm

import lemmata
from lemmata.core.threads import serial_blas
from lemmata.core.xoshiro import seed
from lemmata.generative import gaussian_kl
from lemmata.generative.vae_certificate import gradient_at, plain_bound
from lemmata.generative.vae_kernels import Plan, bound_gradient, train_block
from lemmata.generative.vae_law import Law, linear_block, states_of
from lemmata.generative.visits import fill_normals, lay_out
from lemmata.neural_network.layers import draw_parameters, n_parameters, new_rooms, new_shape, room_of
from lemmata.neural_network.losses import CROSS_ENTROPY, SQUARED
from lemmata.neural_network.network import UNMOVED
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import begin, new_steps
from lemmata.optimize import jacobian
from lemmata.optimize.rules import Adam

D, K = 4, 2


def law_of(bits=False, hidden=(5,), activation="tanh", variance=0.3, seed=0, dtype=float):
    """A law with parameters that are drawn, biases too."""
    names = [activation] * len(hidden)
    encoder = new_shape([D, *hidden, 2 * K], [*names, "identity"])
    decoder = new_shape([K, *hidden[::-1], D], [*names, "sigmoid" if bits else "identity"])
    rng = np.random.default_rng(seed)
    parameters = np.concatenate([draw_parameters(shape, rng, dtype) for shape in (encoder, decoder)])
    parameters += 0.3 * rng.standard_normal(len(parameters)).astype(dtype)
    return Law(encoder, decoder, CROSS_ENTROPY if bits else SQUARED, parameters, variance, np.zeros(D), np.ones(D))


def some_rows(n, bits=False, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((n, D)) if bits else rng.standard_normal((n, D))


def plan_of(law, n_draws=1, score=False):
    steps = new_steps(Adam(0.01), [law.encoder, law.decoder], law.parameters.dtype)
    return Plan(law.encoder, law.decoder, law.loss, n_draws, score, False, 1.0, steps)


def gradient_with(law, rows, weight, noise, n_draws=1, score=False):
    """Minus the bound and its gradient, for noise of the shape (draws, rows, k)."""
    n = len(rows)
    room, out = (room_of(new_rooms(shape, 1, m, float), 0) for shape, m in ((law.encoder, n), (law.decoder, n * n_draws)))
    room.values[: rows.size] = rows.ravel()
    gradient = np.zeros(len(law.parameters))
    with serial_blas():
        value, _ = bound_gradient(
            plan_of(law, n_draws, score), law.parameters, law.variance, room, out, weight, noise.ravel(), n, UNMOVED, gradient
        )
    return value, gradient


@pytest.mark.item("NNG-09")
def test_the_divergence_is_the_one_of_the_catalogue_and_not_the_printed_one():
    mu, sigma = np.array([0.5, -1.0]), np.array([0.8, 1.5])
    assert gaussian_kl(mu, sigma) == pytest.approx(0.887678, abs=5e-7)  # as many digits as are printed
    printed = float((1 + np.log(sigma**2) - mu**2 - sigma**2).sum())
    assert printed == pytest.approx(-1.775357, abs=1e-6)
    assert gaussian_kl(mu, sigma) == pytest.approx(-printed / 2, rel=1e-12)


@pytest.mark.item("NNG-09")
def test_the_divergence_is_a_mean_of_log_ratios_and_never_negative():
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(size=3), rng.uniform(0.3, 2.0, size=3)
    z = mu + sigma * rng.standard_normal((200_000, 3))
    logs = (norm.logpdf(z, mu, sigma) - norm.logpdf(z)).sum(axis=1)
    assert abs(gaussian_kl(mu, sigma) - logs.mean()) < 5 * logs.std() / np.sqrt(len(z))  # once in a million
    many = gaussian_kl(rng.normal(size=(100, 2)), rng.uniform(0.01, 5.0, size=(100, 2)))
    assert (many > 0).all()
    assert gaussian_kl([0.0, 0.0], [1.0, 1.0]) == 0.0
    assert gaussian_kl([0.0], [1 + 1e-8]) == pytest.approx(1e-16, rel=1e-6)  # small ones keep their digits
    for narrow in (1e-3, 1e-9, 1e-200):
        assert gaussian_kl([0.0], [narrow]) == pytest.approx(-0.5 - np.log(narrow), rel=1e-6)  # the variance itself is nothing
    with pytest.raises(ValueError, match="above 0"):
        gaussian_kl([0.0], [0.0])


@pytest.mark.item("NNG-09", "NNG-10")
@pytest.mark.parametrize("bits", [False, True])
@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "relu", "identity"])
def test_the_gradient_is_that_of_central_differences_in_every_parameter(bits, activation):
    law, rows = law_of(bits, (5, 3), activation), some_rows(6, bits)
    weight, noise = np.array([1.0, 0.5, 2.0, 1.0, 1.0, 0.25]), np.random.default_rng(2).standard_normal((6, K))
    value, gradient = gradient_at(law, rows, weight, noise, law.parameters)
    function = partial(plain_bound, law, rows, weight, noise)
    assert value == pytest.approx(function(law.parameters), rel=1e-12)
    differences = jacobian(lambda p: np.array([function(p)]), law.parameters)[0]
    np.testing.assert_allclose(gradient, differences, atol=1e-6 * np.abs(gradient).max())  # what differences can show


@pytest.mark.item("NNG-10")
@pytest.mark.parametrize("bits", [False, True])
def test_several_draws_are_the_mean_of_single_ones(bits):
    law, rows, weight = law_of(bits), some_rows(5, bits), np.linspace(0.5, 1.5, 5)
    noise = np.random.default_rng(3).standard_normal((4, 5, K))
    single = [gradient_with(law, rows, weight, draw) for draw in noise]
    value, gradient = gradient_with(law, rows, weight, noise, n_draws=4)
    assert value == pytest.approx(np.mean([v for v, _ in single]), rel=1e-12)
    np.testing.assert_allclose(gradient, np.mean([g for _, g in single], axis=0), atol=1e-12 * np.abs(gradient).max())


@pytest.mark.slow_without_jit
@pytest.mark.item("NNG-08", "NNG-10")
@pytest.mark.parametrize(("score", "n_draws"), [(False, 1), (True, 1), (True, 4)])
def test_both_gradients_are_right_in_the_mean(score, n_draws):
    """Without hidden layers the expectation of the bound is known; its derivatives are central differences of the formula."""
    law, rows, weight, rng = law_of(hidden=(), variance=0.5), some_rows(3), np.ones(3), np.random.default_rng(4)

    def expected(parameters):
        return np.array([-linear_block(rows, None, law._replace(parameters=parameters))[1][0]])

    exact, found = jacobian(expected, law.parameters)[0], []
    values = []
    for _ in range(4_000):
        value, gradient = gradient_with(law, rows, weight, rng.standard_normal((n_draws, 3, K)), n_draws, score)
        values.append(value)
        found.append(gradient)
    errors = np.std(found, axis=0) / np.sqrt(len(found))
    assert (
        np.abs(np.mean(found, axis=0) - exact) <= 6 * errors + 1e-7
    ).all()  # 6: 1e-9 for each of 30 or so; 1e-7: differences
    assert abs(np.mean(values) - expected(law.parameters)[0]) < 5 * np.std(values) / np.sqrt(len(values))


@pytest.mark.slow_without_jit
@pytest.mark.item("NNG-10")
def test_both_gradients_agree_in_the_mean_through_hidden_layers():
    law, rows, weight, rng = law_of(True), some_rows(3, True), np.ones(3), np.random.default_rng(5)
    both = {}
    for score in (False, True):
        found = [gradient_with(law, rows, weight, rng.standard_normal((8, 3, K)), 8, score)[1] for _ in range(2_000)]
        both[score] = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(len(found))
    (a, by_a), (b, by_b) = both.values()
    assert (np.abs(a - b) <= 6 * np.hypot(by_a, by_b) + 1e-12).all()
    assert by_b[: law.split].sum() > 2 * by_a[: law.split].sum()  # and the second is the noisier


def trained(n_threads, weight=None, rows=None, dtype=float, hidden=(64,), n_draws=1, score=False):
    law = law_of(False, hidden, "relu", dtype=dtype)
    plan = plan_of(law, n_draws, score)._replace(follows=True, total=600.0)
    X = some_rows(600).astype(dtype) if rows is None else rows.astype(dtype)
    moving = begin(Adam(0.01), law.parameters.copy())
    with lemmata.config(n_threads=n_threads):
        return train_block(plan, moving, 1.0, rows_of(X, None, None, float), weight, 1.0, 4096, True, np.random.default_rng(7))


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(("n_draws", "score"), [(1, False), (4, False), (4, True)])
def test_threads_share_a_batch_and_leave_the_bits_alone(n_draws, score):
    one, two, three = (trained(t, n_draws=n_draws, score=score, hidden=(256,)) for t in (1, 2, 3))
    for other in (two, three):
        assert one[0].parameters.tobytes() == other[0].parameters.tobytes()
        assert one[1:] == other[1:]


def test_a_weight_is_a_number_of_visits():
    rng = np.random.default_rng(0)
    weight, rows = rng.integers(1, 4, size=50).astype(float), some_rows(50)
    a, b = trained(1, weight, rows), trained(1, None, np.repeat(rows, weight.astype(int), axis=0))
    assert a[0].parameters.tobytes() == b[0].parameters.tobytes()
    assert a[1:] == b[1:]
    batches = lay_out(2, np.array([0.5, 1.5]), 1.0, 10, None)
    assert batches.order.tolist() == [0, 1, 1]
    assert batches.weight.tolist() == [0.5, 1.0, 0.5]
    batches = lay_out(3, [2.5, 0, 1], 1.0, 2, None)
    assert batches.order.tolist() == [0, 0, 0, 2]
    assert batches.weight.tolist() == [1.0, 1.0, 0.5, 1.0]
    assert lay_out(2, np.array([0.2, 0.6]), 1.0, 10, None).weight.tolist() == [0.2, 0.6]  # in the unit that is given


def test_normals_are_normal_and_states_belong_to_rows():
    from scipy.stats import kstest

    out = np.empty(100_001)
    fill_normals(seed(np.random.default_rng(0)), out)
    assert kstest(out, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(out[:-2:2], out[1:-1:2])[0, 1]) < 5 / np.sqrt(50_000)  # the two of a pair
    rows = some_rows(1000)
    states = states_of(rows, 3)
    shuffled = np.random.default_rng(0).permutation(1000)
    assert np.array_equal(states_of(rows[shuffled], 3), states[shuffled])
    assert len(np.unique(states)) == states.size
    assert not (states_of(rows, 4) == states).any()
    assert np.array_equal(states_of(np.array([[0.0, 1.0]]), 3), states_of(np.array([[-0.0, 1.0]]), 3))


def test_parameters_of_both_networks_fill_the_vector():
    law = law_of()
    assert law.split == n_parameters(law.encoder)
    assert len(law.parameters) == n_parameters(law.encoder) + n_parameters(law.decoder)
