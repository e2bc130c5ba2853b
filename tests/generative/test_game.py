"""The adversarial game on finite sets, against the catalogue's numbers, brute force and a convex solver; two samples."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import kstest

from lemmata.generative import adversarial_game, gan_value, mmd_test, optimal_discriminator
from lemmata.probability import js_divergence

P, Q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])


@pytest.mark.item("NNG-07")
def test_the_value_is_the_one_of_the_catalogue_and_not_the_printed_ones():
    assert gan_value(P, Q) == pytest.approx(-1.205163, abs=5e-7)  # as many digits as are printed
    assert gan_value(P, Q) == pytest.approx(-np.log(4) + 2 * js_divergence(P, Q), rel=1e-12)  # rounding
    assert js_divergence(P, Q) == pytest.approx(0.0905658, abs=5e-8)
    assert gan_value(P, Q) != pytest.approx(-1.295729, abs=1e-3)  # without the factor 2
    assert gan_value(P, Q) != pytest.approx(0.007677, abs=1e-3)  # with a minus before the second sum


@pytest.mark.item("NNG-07")
def test_no_discriminator_beats_the_best_one():
    best, rng = gan_value(P, Q), np.random.default_rng(0)
    for _ in range(200):
        D = np.clip(optimal_discriminator(P, Q) + rng.normal(size=3) * rng.choice([1e-3, 0.1, 1.0]), 0.0, 1.0)
        assert gan_value(P, Q, D) <= best
    found = minimize(lambda a: -gan_value(P, Q, 1 / (1 + np.exp(-a))), np.zeros(3))  # concave in the logits
    np.testing.assert_allclose(1 / (1 + np.exp(-found.x)), optimal_discriminator(P, Q), atol=1e-5)  # the solver's
    assert -found.fun == pytest.approx(best, abs=1e-9)  # a square of that


@pytest.mark.item("NNG-07")
@pytest.mark.parametrize("seed", range(20))
def test_the_value_is_least_where_the_laws_are_equal_and_only_there(seed):
    p, q = np.random.default_rng(seed).dirichlet(np.full(4, 0.5), size=2)
    assert gan_value(p, p) == pytest.approx(-np.log(4), rel=1e-12)
    assert gan_value(p, q) > -np.log(4)
    assert gan_value([1.0, 0.0], [0.0, 1.0]) == 0.0  # laws that never meet are told apart for sure


def test_mirrored_labels_are_the_same_game():
    D = optimal_discriminator(P, Q)
    mirrored = Q / (P + Q)  # the probability of being generated
    assert gan_value(P, Q, D) == pytest.approx(float(Q @ np.log(mirrored) + P @ np.log(1 - mirrored)), rel=1e-12)


@pytest.mark.item("NNG-06")
@pytest.mark.parametrize("rate", [1.0, 0.5, 0.1])
def test_alternating_exact_steps_reach_the_data(rate):
    game = adversarial_game(P, Q, rate=rate)
    np.testing.assert_allclose(game.generator, P, atol=1e-5)  # the value is within 1e-12, a square
    np.testing.assert_allclose(game.discriminator, 0.5, atol=1e-5)
    assert game.values[-1] == pytest.approx(-np.log(4), abs=1e-11)
    assert (np.diff(game.values) <= 1e-15).all()
    assert game.accuracies[-1] == pytest.approx(0.5, abs=1e-5)
    assert game.values[0] == pytest.approx(gan_value(P, Q), rel=1e-12)


@pytest.mark.item("NNG-06")
def test_a_turn_of_the_generator_is_the_exact_answer():
    """Minimize Σ Q log(1 − D) + KL(Q‖Qₜ)/η over the simplex by another solver."""
    D, eta = optimal_discriminator(P, Q), 0.4

    def objective(a):
        q = np.exp(a - np.logaddexp.reduce(a))
        return q @ np.log(1 - D) + q @ np.log(q / Q) / eta

    found = minimize(objective, np.zeros(3), tol=1e-12).x
    expected = np.exp(found - np.logaddexp.reduce(found))
    answer = Q ** (1 - eta) * (P + Q) ** eta
    np.testing.assert_allclose(answer / answer.sum(), expected, atol=1e-6)  # the solver's
    short = adversarial_game(P, Q, rate=eta, tol=np.inf)  # a single turn
    np.testing.assert_allclose(short.generator, expected, atol=1e-6)


def test_a_generator_finds_values_that_it_never_made():
    game = adversarial_game([0.5, 0.5, 0.0], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(game.generator, [0.5, 0.5, 0.0], atol=1e-5)
    assert optimal_discriminator([0.5, 0.5, 0.0], [1.0, 0.0, 0.0])[2] == 0.5  # nobody goes there


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: gan_value(P, [0.5, 0.5]), "one finite set"),
        (lambda: gan_value(P, Q, [0.5, 0.5, 1.5]), "a probability for each of the 3"),
        (lambda: adversarial_game(P, Q, rate=0.0), "rate"),
        (lambda: adversarial_game(P, Q, rate="slow"), "rate must be a number"),
        (lambda: optimal_discriminator([0.5, 0.2], [0.5, 0.5]), "sum to 1"),
        (lambda: mmd_test(np.ones((3, 2)), np.ones((3, 3))), "same columns"),
        (lambda: mmd_test([[1.0], [np.nan]], np.ones((3, 1))), "Input X contains NaN in row 1"),
        (lambda: mmd_test(np.ones((3, 1)), [[1.0], [2.0], [np.inf]]), "Input Y contains infinity in row 2"),
        (lambda: mmd_test([["a"], ["b"]], np.ones((3, 1))), "Expected numbers"),
        (lambda: mmd_test(np.ones(3), np.ones(3)), "a table with rows and columns"),
        *((partial(mmd_test, np.eye(2), np.eye(2), gamma=g), "gamma must be positive") for g in (0, -1.0, np.nan, np.inf)),
        *(
            (partial(mmd_test, np.eye(2), np.eye(2), n_permutations=n), "n_permutations must be a whole number of at least 1")
            for n in (0, -3, 2.5)
        ),
    ],
)
def test_nonsense_is_refused(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_mmd_is_its_formula():
    rng = np.random.default_rng(0)
    X, Y, gamma = rng.normal(size=(7, 2)), rng.normal(size=(5, 2)) + 1, 0.3

    def mean(A, B, same):
        found = [np.exp(-gamma * ((a - b) ** 2).sum()) for i, a in enumerate(A) for j, b in enumerate(B) if not same or i != j]
        return np.mean(found)

    expected = mean(X, X, True) + mean(Y, Y, True) - 2 * mean(X, Y, False)
    assert mmd_test(X, Y, gamma=gamma, random_state=0).mmd2 == pytest.approx(expected, rel=1e-12)


def test_p_values_of_equal_laws_are_uniform_and_others_are_found():
    rng = np.random.default_rng(1)
    values = [
        mmd_test(rng.normal(size=(20, 2)), rng.normal(size=(15, 2)), n_permutations=99, random_state=s) for s in range(200)
    ]
    # the p-values are multiples of 1/100, hence the noise; at the level 1e-3
    p = np.array([v.p_value for v in values]) - np.random.default_rng(2).random(200) / 100
    assert kstest(p, "uniform").pvalue > 1e-3
    assert mmd_test(rng.normal(size=(50, 2)), 2 * rng.normal(size=(50, 2)), random_state=0).p_value < 0.01
    assert mmd_test(np.ones((4, 1)), np.ones((3, 1)), random_state=0).p_value == 1.0


@pytest.mark.parametrize("size", [1e-320, 1e-200, 2.0**-30, 1.0, 1e200, 1e307])
def test_units_do_not_matter_for_two_samples(size):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.normal(size=(30, 2)) + 0.5
    plain, found = mmd_test(X, Y, random_state=0), mmd_test(size * X, size * Y, random_state=0)
    assert found.p_value == pytest.approx(plain.p_value, abs=0.01)  # numbers near 1e-320 have four digits
    assert found.mmd2 == pytest.approx(plain.mmd2, rel=1e-9 if size > 1e-300 else 0.1)
    if 1e-100 < size < 1e100:
        given = mmd_test(size * X, size * Y, gamma=plain.gamma / size**2, random_state=0)
        assert given.mmd2 == pytest.approx(plain.mmd2, rel=1e-9)
