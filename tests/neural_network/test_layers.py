"""Forward and backward passes against plain formulas, central differences, and models that are known."""

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax

from lemmata.core.xoshiro import seed
from lemmata.linear_model.logistic_loss import scores_of
from lemmata.neural_network import MLPClassifier, Network, gradient_check
from lemmata.neural_network.activations import CHUNK, CODES, activate, pull_back, scratch
from lemmata.neural_network.layers import (
    backward,
    draw_parameters,
    forward,
    layer,
    n_parameters,
    new_rooms,
    new_shape,
    penalized,
    room_of,
    unit_rows,
)
from lemmata.neural_network.losses import pair
from lemmata.neural_network.network import LIMIT, LIMIT32, difference, loss_of, targets_of
from lemmata.optimize import jacobian

PLAIN = {
    "identity": lambda a: a,
    "sigmoid": expit,
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0),
    "softmax": lambda a: softmax(a, axis=-1),
}
ELEMENTWISE = ["identity", "sigmoid", "tanh", "relu"]


def room_for(dtype):
    return tuple(part[0] for part in scratch(np.dtype(dtype), 1))


def activated(name, a):
    z = np.array(a, order="C")
    activate(CODES[name], z.ravel(), len(z), z.shape[1], room_for(z.dtype))
    return z


@pytest.mark.item("NNG-02")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PLAIN)
def test_activations_are_those_of_scipy_at_any_size(name, dtype):
    rng = np.random.default_rng(0)
    sizes = 10.0 ** rng.uniform(-12, 2.5, size=(3, 2 * CHUNK + 5))
    a = (sizes * rng.choice([-1, 1], size=sizes.shape)).astype(dtype)
    expected = PLAIN[name](a.astype(float))
    eps = np.finfo(dtype).eps
    # a hundred roundings relative to the value, tiny values of tanh included; numbers too small for the precision are zero
    np.testing.assert_allclose(activated(name, a), expected, rtol=100 * eps, atol=1e-37 if dtype == np.float32 else 1e-300)


@pytest.mark.item("NNG-02")
def test_tanh_is_a_stretched_sigmoid():
    a = np.linspace(-20, 20, 1001)[None, :]
    np.testing.assert_allclose(activated("tanh", a), 2 * activated("sigmoid", 2 * a) - 1, rtol=0, atol=1e-15)


@pytest.mark.item("NNG-02")
@pytest.mark.parametrize("name", PLAIN)
def test_derivatives_of_activations_are_central_differences(name):
    rng = np.random.default_rng(1)
    a, up = rng.normal(size=(4, 7)) * 2, rng.normal(size=(4, 7))
    J = jacobian(lambda x: PLAIN[name](x.reshape(4, 7)).ravel(), a.ravel())
    delta, z = up.copy(), activated(name, a)
    pull_back(CODES[name], z.ravel(), delta.ravel(), 4, 7)
    np.testing.assert_allclose(delta.ravel(), up.ravel() @ J, rtol=0, atol=1e-8)  # what differences can tell


@pytest.mark.item("NNG-01")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forward_is_the_formula(dtype):
    rng = np.random.default_rng(0)
    network = Network([5, 7, 6, 3], ["tanh", "relu", "softmax"], random_state=0, dtype=dtype)
    network.parameters[:] = rng.normal(size=len(network.parameters))
    X = rng.normal(size=(11, 5)).astype(dtype)
    Z = X.astype(float)
    for W, b, name, units in zip(
        network.weights, network.biases, ["tanh", "relu", "softmax"], network.units(X)[1:], strict=True
    ):
        Z = PLAIN[name](Z @ W.astype(float) + b)
        np.testing.assert_allclose(units, Z, rtol=0, atol=200 * np.finfo(dtype).eps)  # sums of a few dozen products
    assert network.forward(X).shape == (11, 3)
    assert network.forward(X).dtype == dtype


@pytest.mark.item("NNG-01")
def test_a_network_of_identities_is_one_matrix():
    network = Network([4, 6, 5, 2], "identity", random_state=0)
    X = np.random.default_rng(0).normal(size=(9, 4))
    network.biases[1][:] = [1, 2, 3, 4, 5]
    first, second, third = network.weights
    collapsed = X @ (first @ second @ third) + network.biases[1] @ third
    np.testing.assert_allclose(network.forward(X), collapsed, rtol=0, atol=1e-13)


@pytest.mark.item("NNG-01")
def test_shapes_are_checked_in_one_sentence():
    with pytest.raises(ValueError, match="2 layers need as many activations, got 1"):
        Network([3, 2, 1], ["relu"])
    with pytest.raises(ValueError, match="none of them empty"):
        Network([3, 0, 1], "relu")
    with pytest.raises(ValueError, match="An activation is one of identity, sigmoid"):
        Network([3, 1], "swish")
    with pytest.raises(ValueError, match=r"whole numbers and none of them empty; got 3, 2\.7\."):
        Network([3, 2.7], "relu")
    with pytest.raises(ValueError, match=r"whole numbers and none of them empty; got 5\."):
        Network(5, "relu")
    with pytest.raises(ValueError, match="network must be a Network, got MLPClassifier; fitted models are checked by certify"):
        gradient_check(MLPClassifier(), np.ones((2, 3)), [0, 1])
    with pytest.raises(ValueError, match="start must be 'glorot' or 'he', got 'xx'"):
        Network([3, 2], "relu", start="xx")
    with pytest.raises(ValueError, match="dtype must be float64 or float32, got float16"):
        Network([3, 2], "relu", dtype=np.float16)
    network = Network([3, 2], "softmax")
    with pytest.raises(ValueError, match="rows of 3 numbers"):
        network.forward(np.ones((2, 4)))
    with pytest.raises(ValueError, match="at least one; got the shape \\(0, 3\\)"):
        network.forward(np.ones((0, 3)))
    with pytest.raises(ValueError, match="Expected numbers, got an array of"):
        network.forward([["a", "b", "c"]])
    for weight in (np.ones(3), np.ones((2, 1)), 1.0):
        with pytest.raises(ValueError, match="one number for each of 2 rows, got the shape"):
            network.backward(np.ones((2, 3)), [0, 1], weight)
    with pytest.raises(ValueError, match="y must have the shape"):
        network.backward(np.ones((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="numbers of outputs, 0 to 1"):
        network.backward(np.ones((2, 3)), [0, 2])
    with pytest.raises(ValueError, match="'squared' or 'cross_entropy'"):
        network.backward(np.ones((2, 3)), [0, 1], loss="hinge")
    judge = Network([3, 1], ["sigmoid"], random_state=0)
    with pytest.raises(ValueError, match="Targets of the cross-entropy are probabilities, from 0 to 1; got 9"):
        judge.backward(np.ones((2, 3)), [1, 9])
    with pytest.raises(ValueError, match="leave out the rows in which one is missing"):
        judge.backward(np.ones((2, 3)), [1, np.nan])
    assert judge.backward(np.ones((2, 3)), [1, 9], loss="squared")[0] > 0


@pytest.mark.parametrize(("name", "loss"), [("softmax", None), ("softmax", "squared"), ("sigmoid", None), ("identity", None)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_of_outputs_are_columns_of_bits_whatever_the_loss(name, loss, dtype):
    network, y = Network([3, 4, 5], ["tanh", name], random_state=0, dtype=dtype), [4, 0, 2, 4]
    X = np.random.default_rng(0).normal(size=(4, 3))
    value, gradient = network.backward(X, y, loss=loss)
    known, slopes = network.backward(X, np.eye(5)[y], loss=loss)
    assert value == known
    np.testing.assert_array_equal(gradient, slopes)
    if dtype == np.float64:
        assert gradient_check(network, X, y, loss=loss).holds


@pytest.mark.item("NNG-03")
@pytest.mark.parametrize("name", ["identity", "tanh", "relu"])
def test_cross_entropy_needs_probabilities(name):
    with pytest.raises(ValueError, match="'softmax' or 'sigmoid'"):
        pair("cross_entropy", CODES[name])
    assert loss_of(new_shape([2, 1], [name])) == pair("squared", CODES[name])


@pytest.mark.item("NNG-03")
def test_losses_are_their_formulas_and_delta_is_the_difference():
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(8, 4)), rng.uniform(0.5, 2, size=8)
    classes, shares = rng.integers(3, size=8), rng.dirichlet(np.ones(3), size=8)
    network = Network([4, 3], "softmax", random_state=0)
    A = X @ network.weights[0] + network.biases[0]
    value, gradient = network.backward(X, classes, weight)
    np.testing.assert_allclose(value, -weight @ log_softmax(A, axis=1)[np.arange(8), classes], rtol=1e-13)
    soft, _ = network.backward(X, shares, weight)
    np.testing.assert_allclose(soft, -weight @ (shares * log_softmax(A, axis=1)).sum(axis=1), rtol=1e-13)
    delta = weight[:, None] * (softmax(A, axis=1) - np.eye(3)[classes])
    np.testing.assert_allclose(layer(network.shape, gradient, 0)[0], X.T @ delta, rtol=0, atol=1e-13)
    units = Network([4, 3], "sigmoid", random_state=0)
    Y = rng.integers(2, size=(8, 3)).astype(float)
    value, gradient = units.backward(X, Y, weight)
    p = expit(A)
    np.testing.assert_allclose(value, -weight @ (Y * np.log(p) + (1 - Y) * np.log(1 - p)).sum(axis=1), rtol=1e-12)
    np.testing.assert_allclose(layer(units.shape, gradient, 0)[1], weight @ (p - Y), rtol=0, atol=1e-13)
    plain = Network([4, 3], "identity", random_state=0)
    value, _ = plain.backward(X, Y, weight)
    np.testing.assert_allclose(value, 0.5 * weight @ ((A - Y) ** 2).sum(axis=1), rtol=1e-13)


@pytest.mark.item("NNG-03")
@pytest.mark.parametrize("name", ["sigmoid", "softmax"])
def test_losses_of_the_sure_and_wrong_are_finite_and_exact(name):
    network = Network([1, 2], name)
    network.weights[0][:] = [[1000.0, -1000.0]]
    value, gradient = network.backward([[1.0]], [[0.0, 1.0]])
    assert value == 2000.0
    assert np.isfinite(gradient).all()
    assert network.backward([[1.0]], [[1.0, 0.0]])[0] == 0.0


PAIRS = [(last, "squared") for last in PLAIN] + [("sigmoid", "cross_entropy"), ("softmax", "cross_entropy")]


@pytest.mark.item("NNG-04")
@pytest.mark.parametrize("hidden", ELEMENTWISE)
@pytest.mark.parametrize(("last", "loss"), PAIRS)
def test_back_propagation_is_central_differences_in_every_weight(hidden, last, loss):
    rng = np.random.default_rng(5)
    network = Network([3, 5, 4, 3], [hidden, hidden, last], random_state=1)
    for b in network.biases:
        b[:] = rng.normal(size=b.shape) / 10
    X, weight = rng.normal(size=(7, 3)), rng.uniform(0.5, 2, size=7)
    Y = rng.dirichlet(np.ones(3), size=7)
    assert gradient_check(network, X, Y, weight, loss=loss).holds
    _, gradient = network.backward(X, Y, weight, loss=loss)
    wrong = gradient.copy()
    wrong[3] += 1e-4 * np.abs(gradient).max()
    shape, code = network.shape, loss_of(network.shape, loss)
    assert difference(shape, network.parameters, wrong, X, targets_of(Y, 7, 3, float, code), weight, code, 1.0) > LIMIT


def test_a_gradient_that_vanishes_is_checked_by_how_the_loss_rises_around_it():
    rng = np.random.default_rng(0)
    network = Network([3, 5, 2], ["tanh", "identity"], random_state=0)
    X = rng.normal(size=(9, 3))
    Y = network.forward(X)  # of which the loss is zero, and can only rise
    assert gradient_check(network, X, Y).holds
    shape, weight = network.shape, np.ones(9)
    for size, right in ((1e-12, True), (1e-3, False)):
        gradient = np.full(len(network.parameters), size)
        error = difference(shape, network.parameters, gradient, X, Y, weight, loss_of(shape, "squared"), 0.0)
        assert (error <= LIMIT) == right


class WrongBiases(Network):
    """A network that is a percent off in its last derivative."""

    def backward(self, X, y, sample_weight=None, *, loss=None):
        value, gradient = super().backward(X, y, sample_weight, loss=loss)
        gradient[-1] *= 1.01
        return value, gradient


def test_rows_on_a_kink_are_no_reason_to_refuse_a_network():
    X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [[0.0], [1.0], [1.0], [0.0]]
    by_hand = Network([2, 2, 1], ["relu", "identity"])
    by_hand.parameters[:] = [1, 1, 1, 1, 0, -1, 1, -2, 0]  # either; both; either and not both
    assert np.array_equal(by_hand.forward(X), y)
    drawn = [Network([2, 4, 1], ["relu", "sigmoid"], random_state=k) for k in range(5)]
    for network in (by_hand, *drawn):
        before = network.parameters.copy()
        assert gradient_check(network, X, y).holds
        assert np.array_equal(network.parameters, before)
    assert gradient_check(WrongBiases([2, 4, 1], ["relu", "sigmoid"], random_state=0), [[0, 0], [0, 1]], [0, 1]).failed


def test_single_precision_is_checked_as_far_as_it_rounds():
    rng = np.random.default_rng(0)
    network = Network([8, 30, 4], ["relu", "softmax"], dtype=np.float32, random_state=0)
    X, y = rng.normal(size=(40, 8)).astype(np.float32), rng.integers(4, size=40)
    certificate = gradient_check(network, X, y)
    assert certificate.holds
    assert certificate["back-propagation"].limit == LIMIT32
    assert gradient_check(network, X, y, limit=1e-12).failed


def test_a_loss_that_is_no_number_agrees_with_nothing():
    network = Network([2, 2], "identity", random_state=0)
    network.parameters[0] = np.nan
    assert gradient_check(network, np.ones((3, 2)), np.zeros((3, 2))).failed


@pytest.mark.item("NNG-04")
def test_one_layer_has_the_gradient_of_logistic_regression():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(2, size=20)
    network = Network([3, 1], "sigmoid", random_state=0)
    _, gradient = network.backward(X, y[:, None])
    p = expit(scores_of(X, network.weights[0], network.biases[0]))[:, 0]
    np.testing.assert_allclose(gradient, np.append(X.T @ (p - y), (p - y).sum()), rtol=0, atol=1e-13)


@pytest.mark.item("NNG-04")
def test_thousands_of_weights_are_checked_in_directions():
    network = Network([30, 60, 40, 4], ["relu", "tanh", "softmax"], random_state=0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 30)), rng.integers(4, size=40)
    assert gradient_check(network, X, y).holds
    value, gradient = network.backward(X, y)
    wrong = gradient * np.where(np.arange(len(gradient)) < network.shape.starts[1], 1.001, 1.0)
    assert difference(network.shape, network.parameters, wrong, X, y[:, None].astype(float), np.ones(40), 1, value) > LIMIT


def test_derivatives_reach_the_inputs():
    shape = new_shape([3, 4, 2], ["tanh", "identity"])
    rng = np.random.default_rng(2)
    parameters, X, up = rng.normal(size=n_parameters(shape)), rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    room = room_of(new_rooms(shape, 1, 8, np.float64), 0)  # room for more rows than there are
    room.values[:15] = X.ravel()
    forward(shape, parameters, room, 5, 0.0, np.zeros(4, np.uint64))
    unit_rows(shape, room.deltas, 8, 2, 5)[:] = up.ravel()
    backward(shape, parameters, room, 5, 0.0, np.empty_like(parameters), True)

    def outputs(x):
        W, b = layer(shape, parameters, 0)
        V, c = layer(shape, parameters, 1)
        return ((np.tanh(x.reshape(5, 3) @ W + b) @ V + c) * up).sum(axis=1)

    found = unit_rows(shape, room.deltas, 8, 0, 5).reshape(5, 3)
    np.testing.assert_allclose(found, jacobian(outputs, X.ravel()).sum(axis=0).reshape(5, 3), rtol=0, atol=1e-8)


def test_dropping_units_keeps_means_and_has_the_gradient_of_what_is_left():
    shape = new_shape([4, 200, 1], ["sigmoid", "identity"])
    rng = np.random.default_rng(0)
    parameters, X = rng.normal(size=n_parameters(shape)), rng.normal(size=(50, 4))
    room = room_of(new_rooms(shape, 1, 50, np.float64, dropout=True), 0)
    room.values[:200] = X.ravel()
    forward(shape, parameters, room, 50, 0.3, seed(np.random.default_rng(1)))
    kept = unit_rows(shape, room.kept, 50, 1, 50).reshape(50, 200)
    assert abs(kept.mean() - 0.7) < 0.03  # six standard deviations of 10,000 draws
    W, b = layer(shape, parameters, 0)
    V, c = layer(shape, parameters, 1)

    def output(W):
        return (expit(X @ W.reshape(4, 200) + b) * kept / 0.7) @ V + c

    np.testing.assert_allclose(unit_rows(shape, room.values, 50, 2, 50)[:, None], output(W), rtol=0, atol=1e-12)
    unit_rows(shape, room.deltas, 50, 2, 50)[:] = 1.0
    gradient = np.empty_like(parameters)
    backward(shape, parameters, room, 50, 0.3, gradient, False)
    expected = jacobian(lambda w: output(w).sum(axis=0), W.ravel())[0]
    np.testing.assert_allclose(layer(shape, gradient, 0)[0].ravel(), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("start", "variance"), [("glorot", 2 / 700), ("he", 2 / 400)])
def test_starts_have_the_variance_they_promise(start, variance):
    shape = new_shape([400, 300, 2], ["relu", "softmax"])
    W, b = layer(shape, draw_parameters(shape, np.random.default_rng(0), start=start), 0)
    assert abs(W.var() / variance - 1) < 0.02  # 120,000 draws
    assert not b.any()
    V, _ = layer(shape, draw_parameters(shape, np.random.default_rng(0), start=start), 1)
    assert abs(V.var() * 302 / 2 - 1) < 0.2


def test_what_passes_through_many_relu_layers_keeps_its_size_from_he_s_start():
    X = np.random.default_rng(0).normal(size=(100, 200))
    sizes = [200] * 21
    he, glorot = (Network(sizes, "relu", start=start, random_state=0).units(X)[-1] for start in ("he", "glorot"))
    assert 0.2 < (he**2).mean() < 5
    assert (glorot**2).mean() < 1e-4  # half of it is lost in each of twenty layers


def test_penalties_are_for_weights():
    marks = penalized(new_shape([2, 3, 1], ["tanh", "tanh"]))
    assert marks.tolist() == [1.0] * 6 + [0.0] * 3 + [1.0] * 3 + [0.0]
