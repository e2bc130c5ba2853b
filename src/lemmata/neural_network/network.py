"""`Network`: rows of units between inputs and outputs, their outputs, and the derivatives of a loss by back-propagation.

    Zˡ = g(Zˡ⁻¹ Wˡ + bˡ),    E = Σᵢ wᵢ ℓ(ŷᵢ, yᵢ)

`layers` has the kernels, which estimators call on batches; here they are put together for one network at a time, to look at,
to teach, and to check: `gradient_check` compares every derivative with central differences of a forward pass that is written
once more, in plain NumPy.
"""

from copy import copy

import numpy as np

from lemmata.core.certificate import TINY, Certificate, Check, length
from lemmata.core.data import as_matrix
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.neural_network.activations import NAMES, RELU
from lemmata.neural_network.layers import (
    backward,
    conclude,
    draw_parameters,
    forward,
    layer,
    n_parameters,
    new_rooms,
    new_shape,
    room_of,
    unit_rows,
)
from lemmata.neural_network.losses import CROSS_ENTROPY, SQUARED, finish, pair

STEPS = 10.0 ** np.arange(-3.0, -9.0, -1.0)  # of central differences, from where curvature shows to where rounding does
LIMIT = 1e-6  # relative error of a right derivative: a hundred times what smooth functions show at the best step
LIMIT32 = 1e-4  # of one that was computed in single precision, which rounds to 6e-8 wherever it adds
BESIDE = 0.01  # how far weights are moved off kinks of ReLU: farther than differences reach
MANY = 2_000  # parameters up to which each is checked by itself
DIRECTIONS = 3  # of each array of weights or biases, where there are more
UNMOVED = np.zeros(4, np.uint64)  # the state of draws that are never made


class Network:
    """A network of dense layers: outputs, and derivatives of a loss.

    Parameters
    ----------
    layers : Numbers of units, from the inputs to the outputs.
    activations : Name of the activation of each layer after the inputs: "identity", "sigmoid" (or "logistic"), "tanh", "relu",
        "softmax"; one name is for all layers.
    start : Variance of the weights to start from: "glorot", or "he" for ReLU; biases are zero.
    random_state : Seed of them.
    dtype : Precision of everything, float64 or float32.

    Attributes
    ----------
    parameters : All weights and biases in one vector; a change shows in the network.
    weights, biases : Views into it, for each layer (inputs, outputs) and (outputs,).

    Examples
    --------
    >>> network = Network([2, 2, 1], ["relu", "identity"])
    >>> network.weights[0][:], network.biases[0][:] = [[1, 1], [1, 1]], [0, -1]  # either; both
    >>> network.weights[1][:] = [[1], [-2]]
    >>> network.forward([[0, 0], [0, 1], [1, 0], [1, 1]]).ravel()  # either, but not both
    array([0., 1., 1., 0.])
    >>> loss, gradient = network.backward([[0, 1]], [[0.0]])
    >>> loss, gradient.tolist()
    (0.5, [0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    """

    def __init__(self, layers, activations, *, start="glorot", random_state=None, dtype=np.float64):
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}.")
        layers = list(layers) if np.iterable(layers) else [layers]
        names = [activations] * (len(layers) - 1) if isinstance(activations, str) else list(activations)
        self.shape = new_shape(layers, names)
        self.parameters = draw_parameters(self.shape, generator(random_state), dtype, start)

    def __repr__(self):
        names = [NAMES[code] for code in self.shape.codes]
        return f"Network({self.shape.sizes.tolist()}, {names})"

    @property
    def weights(self):
        """Weights of each layer, as views."""
        return [layer(self.shape, self.parameters, k)[0] for k in range(len(self.shape.codes))]

    @property
    def biases(self):
        """Biases of each layer, as views."""
        return [layer(self.shape, self.parameters, k)[1] for k in range(len(self.shape.codes))]

    def forward(self, X):
        """Return the outputs of the last layer for each row."""
        return self.units(X)[-1]

    def units(self, X):
        """Return the outputs of all units for each row: the inputs, each hidden layer, the outputs."""
        X, room = self._room(X)
        n = len(X)
        with serial_blas():
            forward(self.shape, self.parameters, room, n, 0.0, UNMOVED)
        conclude(self.shape, room, n)
        rows = [unit_rows(self.shape, room.values, n, k, n) for k in range(len(self.shape.sizes))]
        return [flat.reshape(n, -1).copy() for flat in rows]

    def backward(self, X, y, sample_weight=None, *, loss=None):
        """Return the loss of some rows, and its derivatives with respect to the parameters.

        Parameters
        ----------
        y : Targets, a column for each output; or, of several outputs, the number of the right one.
        loss : "squared" or "cross_entropy"; the default is the one that goes with the last activation.
        """
        X, room = self._room(X)
        n, shape = len(X), self.shape
        code, weight = loss_of(shape, loss), weights_of(sample_weight, n, X.dtype)
        Y = targets_of(y, n, shape.sizes[-1], X.dtype, code)
        last, gradient = len(shape.codes), np.zeros_like(self.parameters)
        with serial_blas():
            forward(shape, self.parameters, room, n, 0.0, UNMOVED)
            outputs, deltas = (unit_rows(shape, b, n, last, n) for b in (room.values, room.deltas))
            value = finish(code, shape.codes[-1], outputs, Y, weight, n, shape.sizes[-1], deltas, room.chunk)
            backward(shape, self.parameters, room, n, 0.0, gradient, False)
        return value, gradient

    def _room(self, X):
        X = np.ascontiguousarray(as_matrix(X)[0], dtype=self.parameters.dtype)
        if len(X) == 0 or X.shape[1] != self.shape.sizes[0]:
            raise ValueError(f"X must have rows of {self.shape.sizes[0]} numbers, at least one; got the shape {X.shape}.")
        room = room_of(new_rooms(self.shape, 1, len(X), X.dtype), 0)
        room.values[: X.size] = X.ravel()
        return X, room


def loss_of(shape, loss=None):
    """Return the number of a loss; by default cross-entropy after softmax and sigmoid, else squares."""
    if loss is None:
        loss = "cross_entropy" if NAMES[shape.codes[-1]] in ("sigmoid", "softmax") else "squared"
    return pair(loss, shape.codes[-1])


def targets_of(y, n_rows, n_units, dtype, loss):
    """Return targets as a matrix with a column for each output, checked before compiled code reads them.

    Examples
    --------
    >>> targets_of([1, 0], 2, 3, float, CROSS_ENTROPY)
    array([[0., 1., 0.],
           [1., 0., 0.]])
    """
    Y = np.asarray(y, dtype=dtype)
    Y = np.ascontiguousarray(Y[:, None] if Y.ndim == 1 else Y)
    if Y.shape not in ((n_rows, n_units), (n_rows, 1)):
        raise ValueError(f"y must have the shape {(n_rows, int(n_units))}, or a single column of classes; got {Y.shape}.")
    if not np.isfinite(Y).all():
        raise ValueError("y must hold numbers; leave out the rows in which one is missing.")
    if Y.shape[1] == n_units:
        strange = Y[(Y < 0) | (Y > 1)]
        if loss == CROSS_ENTROPY and len(strange):
            raise ValueError(f"Targets of the cross-entropy are probabilities, from 0 to 1; got {strange[0]:g}.")
        return Y
    if not np.isin(Y, np.arange(n_units)).all():
        raise ValueError(f"A single column of y holds numbers of outputs, 0 to {n_units - 1}.")
    return np.eye(n_units, dtype=dtype)[Y[:, 0].astype(int)]


def weights_of(sample_weight, n_rows, dtype):
    """Return a weight for each row, checked before compiled code reads them."""
    weight = np.ones(n_rows, dtype) if sample_weight is None else np.ascontiguousarray(sample_weight, dtype=dtype)
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight must hold one number for each of {n_rows} rows, got the shape {weight.shape}.")
    return weight


PLAIN = {
    "identity": lambda A: A,
    "sigmoid": lambda A: 0.5 * (1 + np.tanh(A / 2)),
    "tanh": np.tanh,
    "relu": lambda A: np.where(A > 0, A, 0.0),
    "softmax": lambda A: np.exp(A - np.logaddexp.reduce(A, axis=1, keepdims=True)),
}


def plain_forward(shape, parameters, X):
    """Compute inputs and outputs of the last activation once more, in plain NumPy and float64."""
    Z = np.asarray(X, dtype=float)
    for k, code in enumerate(shape.codes):
        W, b = layer(shape, parameters, k)
        A = Z @ W + b
        Z = PLAIN[NAMES[code]](A)
    return A, Z


def plain_loss(shape, parameters, X, Y, weight, loss):
    """Compute the loss from that; what `gradient_check` takes differences of."""
    (A, Z), last = plain_forward(shape, parameters, X), NAMES[shape.codes[-1]]
    if Y.shape[1] != A.shape[1]:
        Y = np.eye(A.shape[1])[Y[:, 0].astype(int)]
    if loss == SQUARED:
        losses = 0.5 * ((Z - Y) ** 2).sum(axis=1)
    elif last == "softmax":
        losses = -(Y * (A - np.logaddexp.reduce(A, axis=1, keepdims=True))).sum(axis=1)
    else:
        losses = (np.logaddexp(0.0, A) - Y * A).sum(axis=1)
    return float(weight @ losses)


def directions_of(shape, rng, many=MANY):
    """Return directions to take derivatives in: every single one of few parameters, else some in each array."""
    n = n_parameters(shape)
    if n <= many:
        return np.eye(n)
    found = []
    for k in range(len(shape.codes)):
        for part in (0, 1):
            for _ in range(DIRECTIONS):
                u = np.zeros(n)
                array = layer(shape, u, k)[part]
                array[:] = rng.standard_normal(array.shape) / np.sqrt(array.size)
                found.append(u)
    return np.array(found)


def gradient_check(network, X, y, sample_weight=None, *, loss=None, limit=None):
    """Compare back-propagation with central differences: in every parameter, or in directions where there are thousands.

    A difference is taken with several steps and the best counts: a right derivative has a step at which it agrees; near a kink
    of ReLU only the small ones do. On a kink there is no derivative, and rows of whole numbers often lie on one: of a network
    with ReLU, derivatives are compared at weights that are moved by about a hundredth.

    Parameters
    ----------
    limit : Largest disagreement, relative to the length of the gradient. Default: 1e-6, in single precision 1e-4.

    Examples
    --------
    >>> network = Network([3, 4, 2], ["tanh", "softmax"], random_state=0)
    >>> X, y = np.random.default_rng(0).normal(size=(5, 3)), [0, 1, 1, 0, 1]
    >>> print(gradient_check(network, X, y))
    Network([3, 4, 2], ['tanh', 'softmax']): certificate holds (proof)
      check             value     limit  kind   claim
      back-propagation  ... ≤ 1e-06  proof  every derivative is that of central differences
    """
    if not isinstance(network, Network):
        raise ValueError(f"network must be a Network, got {type(network).__name__}; fitted models are checked by certify.")
    subject, network = repr(network), off_kinks(network)
    value, gradient = network.backward(X, y, sample_weight, loss=loss)
    shape, n = network.shape, len(X)
    Y, weight = targets_of(y, n, shape.sizes[-1], float, loss_of(shape, loss)), weights_of(sample_weight, n, float)
    error = difference(shape, network.parameters, gradient, X, Y, weight, loss_of(shape, loss), value)
    claim = "every derivative is that of central differences"
    if limit is None:
        limit = LIMIT32 if network.parameters.dtype == np.float32 else LIMIT
    return Certificate(Check("back-propagation", error, limit, "proof", claim), subject=subject)


def off_zero(parameters, rng):
    """Move weights next to zero: behind units that never say anything, they leave all rows on a kink of ReLU.

    Examples
    --------
    >>> moved = off_zero(np.array([0.0, 1.0]), np.random.default_rng(0))
    >>> bool(moved[0] != 0), bool(moved[1] == 1)
    (True, True)
    """
    return np.where(np.abs(parameters) < BESIDE**2, BESIDE * rng.standard_normal(len(parameters)), parameters)


def off_kinks(network):
    """Return a network, or one whose weights are moved a little if it has ReLU."""
    if RELU not in network.shape.codes:
        return network
    moved = copy(network)
    noise = BESIDE * np.random.default_rng(1).standard_normal(len(network.parameters))
    moved.parameters = network.parameters + noise.astype(network.parameters.dtype)
    return moved


def difference(shape, parameters, gradient, X, Y, weight, loss, value):
    """Return the largest disagreement of the gradient of a loss with central differences."""

    def function(parameters):
        return plain_loss(shape, parameters, X, Y, weight, loss)

    return disagreement(function, parameters, gradient, directions_of(shape, np.random.default_rng(0)), value)


def disagreement(function, parameters, gradient, directions, value):
    """Return the largest disagreement of a gradient with central differences, relative to the length of the gradient.

    Differences of a function are rounded as it is: a gradient counts as no shorter than a thousandth of its `value`, nor than
    what the function rises by in the longest step, over the step: at a least value there is no gradient to compare with. A
    difference that is no number agrees with nothing.
    """
    parameters, gradient = np.asarray(parameters, dtype=float), np.asarray(gradient, dtype=float)
    worst, rise, here = 0.0, 0.0, function(parameters)
    for u in directions:
        slope, best = float(gradient @ u), np.inf
        for h in STEPS:
            ahead, behind = (function(parameters + s * h * u) for s in (1, -1))
            error = abs((ahead - behind) / (2 * h) - slope)
            best = error if error < best else best
            if h == STEPS[0]:
                rise = max(rise, abs(ahead - here) / h, abs(behind - here) / h)
        worst = max(worst, best)
    return float(worst / max(length(gradient), 1e-3 * abs(value), rise, TINY))
