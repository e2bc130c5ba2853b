"""Batches by weight, steps by rules, threads that share a batch: against scikit-learn's steps and a slow twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array
from sklearn.neural_network import MLPClassifier as TheirClassifier
from sklearn.neural_network import MLPRegressor as TheirRegressor

import lemmata
from lemmata.neural_network import Network
from lemmata.neural_network.epochs import Plan
from lemmata.neural_network.layers import draw_parameters, n_parameters, new_shape, penalized
from lemmata.neural_network.losses import CROSS_ENTROPY, SQUARED
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import PIECE, begin, new_steps
from lemmata.neural_network.training import cut, n_parts, train_block
from lemmata.optimize import Adagrad, Adam, GradientDescent, Momentum, RMSProp, inverse_sqrt


def plan_of(shape, loss, rule, dtype=np.float64, alpha=0.0, clip=None, dropout=0.0):
    return Plan(shape, loss, dropout, new_steps(rule, [shape], dtype, alpha, clip))


def trained(shape, loss, rule, parameters, X, Y, weight=None, batch_size=10, epochs=1, **options):
    """Train for some epochs in the order of the table; return parameters and the mean loss of the last epoch."""
    moving, plan = begin(rule, parameters.copy()), plan_of(shape, loss, rule, parameters.dtype, **options)
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        moving, total, mass = train_block(plan, moving, rows_of(X, None, None, X.dtype), Y, weight, batch_size, False, rng)
    return moving.parameters, total / mass


def problem(seed=0, n=60, d=4, k=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)).astype(dtype), rng.integers(k, size=(n, 1)).astype(dtype)
    shape = new_shape([d, 7, k], ["tanh", "softmax"])
    return shape, draw_parameters(shape, rng, dtype), X, Y


@settings(max_examples=60, deadline=None)
@given(
    arrays(float, st.integers(1, 40), elements=st.sampled_from([0.25, 0.5, 1.0, 2.0, 3.0, 7.0])),
    st.integers(1, 20),
    st.integers(0, 5),
)
def test_every_row_gets_its_weight_and_batches_are_even(weight, batch_size, seed):
    order = np.random.default_rng(seed).permutation(len(weight))
    batches = cut(weight, order, batch_size)
    given, masses = np.zeros(len(weight)), []
    for b, (first, last) in enumerate(zip(batches.first, batches.last, strict=True)):
        low, high = batches.cuts[b], batches.cuts[b + 1]
        begins = batches.before[first:last]
        shares = np.minimum(begins + batches.weight[first:last], high) - np.maximum(begins, low)
        assert (shares > 0).all()
        given[batches.order[first:last]] += shares
        masses.append(shares.sum())
    np.testing.assert_allclose(given, weight, rtol=1e-12)
    assert max(masses) - min(masses) <= 2 + 1e-9  # cuts are at whole numbers, but for the last


def test_there_are_no_more_batches_than_rows_however_heavy_they_are():
    assert len(cut(np.full(30, 1e9), np.arange(30), 10).first) == 30


@pytest.mark.parametrize("rule", [GradientDescent(0.1), Momentum(0.1), Adagrad(0.1), RMSProp(0.01), Adam(0.01)], ids=repr)
@pytest.mark.parametrize("clip", [None, 0.05])
def test_a_step_is_the_rule_s_on_the_gradient_of_the_batch(rule, clip):
    shape, start, X, Y = problem()
    found, loss = trained(shape, CROSS_ENTROPY, rule, start, X, Y, batch_size=20, alpha=0.3, clip=clip)
    network = Network([4, 7, 3], ["tanh", "softmax"])
    network.parameters[:] = start
    state, total = rule.init(len(start)), 0.0
    for a in range(0, 60, 20):
        value, gradient = network.backward(X[a : a + 20], Y[a : a + 20, 0])
        pull = 0.3 * penalized(shape) * network.parameters
        total += value + 0.5 * pull @ network.parameters
        gradient = (gradient + pull) / 20
        length = np.linalg.norm(gradient)
        gradient *= 1 if clip is None else min(1, clip / length)
        network.parameters[:], state = rule.step(network.parameters, gradient, state)
    np.testing.assert_allclose(found, network.parameters, rtol=0, atol=1e-11)  # sums in another order, divided by their roots
    np.testing.assert_allclose(loss, total / 60, rtol=1e-12)


def test_schedules_count_steps():
    shape, start, X, Y = problem()
    one = trained(shape, CROSS_ENTROPY, GradientDescent(inverse_sqrt(0.5)), start, X, Y, batch_size=60, epochs=4)[0]
    network = Network([4, 7, 3], ["tanh", "softmax"])
    network.parameters[:] = start
    for t in range(1, 5):
        network.parameters -= 0.5 / np.sqrt(t) * network.backward(X, Y[:, 0])[1] / 60
    np.testing.assert_allclose(one, network.parameters, rtol=0, atol=1e-13)


def test_a_weight_is_copies_of_a_row():
    shape, start, X, Y = problem()
    weight = np.random.default_rng(1).integers(1, 5, size=60)
    weighted = trained(shape, CROSS_ENTROPY, Adam(), start, X, Y, weight.astype(float), batch_size=7, epochs=3, alpha=0.1)
    copies = np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0)
    repeated = trained(shape, CROSS_ENTROPY, Adam(), start, *copies, batch_size=7, epochs=3, alpha=0.1)
    np.testing.assert_allclose(weighted[0], repeated[0], rtol=0, atol=1e-10)
    np.testing.assert_allclose(weighted[1], repeated[1], rtol=1e-11)


def test_sparse_rows_are_dense_rows():
    shape, start, X, Y = problem(d=9)
    X[np.random.default_rng(0).random(X.shape) < 0.7] = 0.0
    moves = []
    for table in (X, csr_array(X)):
        moving = begin(Adam(), start.copy())
        mean, scale = X.mean(axis=0), X.std(axis=0)
        rows, plan = rows_of(table, mean, scale, float), plan_of(shape, CROSS_ENTROPY, Adam())
        moves.append(train_block(plan, moving, rows, Y, None, 13, True, np.random.default_rng(5))[0].parameters)
    np.testing.assert_allclose(moves[0], moves[1], rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_share_a_batch_to_the_same_bits(dtype):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(1200, 40)).astype(dtype), rng.normal(size=(1200, 2)).astype(dtype)
    shape = new_shape([40, 120, 80, 2], ["relu", "relu", "identity"])
    start = draw_parameters(shape, rng, dtype)
    assert n_parts(shape, 400) == 6
    assert n_parameters(shape) > 2 * PIECE
    plan = plan_of(shape, SQUARED, Adam(), dtype, alpha=0.1, clip=1.0, dropout=0.2)
    ends = []
    for n_threads in (1, 2, 3, 5):
        with lemmata.config(n_threads=n_threads):
            rows, moving = rows_of(X, None, None, dtype), begin(Adam(), start.copy())
            ends.append(train_block(plan, moving, rows, Y, None, 400, True, np.random.default_rng(1)))
    for moved, total, _ in ends[1:]:
        assert moved.parameters.tobytes() == ends[0][0].parameters.tobytes()
        assert total == ends[0][1]


def vector(model):
    """Weights and biases of scikit-learn's network, in our order."""
    return np.concatenate([np.append(W.ravel(), b) for W, b in zip(model.coefs_, model.intercepts_, strict=True)])


@pytest.mark.item("NNG-05")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("activation", ["relu", "tanh", "logistic"])
@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
def test_epochs_are_those_of_scikit_learn(activation, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 5)), rng.integers(3, size=120)
    steps = {"solver": "adam", "epsilon": 1e-14} if solver == "adam" else {"solver": "sgd", "nesterovs_momentum": False}
    if solver != "adam":
        steps["momentum"] = 0.9 if solver == "momentum" else 0.0
    theirs = TheirClassifier(
        (9, 8), activation=activation, alpha=0.2, batch_size=30, shuffle=False, max_iter=4, learning_rate_init=0.01,
        warm_start=True, random_state=0, **steps,
    )  # fmt: skip
    start = vector(theirs.fit(X, y)).copy()
    theirs.fit(X, y)  # a new optimizer, from the weights of the first fit
    shape = new_shape([5, 9, 8, 3], [activation, activation, "softmax"])
    # Momentum averages gradients: the heavy ball of scikit-learn has steps ten times as long.
    rule = {"sgd": GradientDescent(0.01), "momentum": Momentum(0.1, beta=0.9), "adam": Adam(0.01, epsilon=1e-14)}[solver]
    found, loss = trained(shape, CROSS_ENTROPY, rule, start, X, y[:, None].astype(float), batch_size=30, epochs=4, alpha=0.2)
    np.testing.assert_allclose(found, vector(theirs), rtol=0, atol=1e-7)  # sums in another order, divided by their roots
    np.testing.assert_allclose(loss, theirs.loss_, rtol=1e-6)


@pytest.mark.item("NNG-05")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_so_are_those_of_the_regressor():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 3)), rng.normal(size=(100, 2))
    theirs = TheirRegressor(
        hidden_layer_sizes=(6,), alpha=0.2, batch_size=25, shuffle=False, max_iter=3, solver="sgd", momentum=0.0,
        learning_rate_init=0.05, warm_start=True, random_state=0,
    )  # fmt: skip
    start = vector(theirs.fit(X, Y)).copy()
    theirs.fit(X, Y)
    shape = new_shape([3, 6, 2], ["relu", "identity"])
    found, _ = trained(shape, SQUARED, GradientDescent(0.05), start, X, Y, batch_size=25, epochs=3, alpha=0.2)
    np.testing.assert_allclose(found, vector(theirs), rtol=0, atol=1e-12)
