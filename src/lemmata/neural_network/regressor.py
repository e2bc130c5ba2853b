"""`MLPRegressor`: a network whose outputs are the expected targets.

    E[y | x] = f(x),     ℓ = ½ ‖f(x) − y‖²

Targets are centered and scaled inside as columns are, so that neither their units nor their mean matter; several targets share
the hidden units. Without hidden layers it is ridge regression. `multilayer` has the fit and the certificate.
"""

import numpy as np
from sklearn.base import _fit_context

from lemmata.core.estimator import Regressor, as_output
from lemmata.core.moments import ROUNDING, spread_block
from lemmata.linear_model.stochastic import mixed
from lemmata.neural_network.multilayer import Multilayer
from lemmata.neural_network.passes import output_block

QUARTERS = (0.25, 0.5, 0.75)


class Scaled:
    """Centers targets, a column each, and divides them by their scales."""

    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale

    def __call__(self, Y):
        """Center and scale."""
        return (np.asarray(Y, dtype=float) - self.mean) / self.scale


def _scaled(blocks, mean, scale):
    return blocks.with_target(Scaled(mean, scale)), {"target_mean_": mean, "target_scale_": scale}


def matrix(y):
    """Give targets a column each."""
    y = np.asarray(y, dtype=float)
    return y[:, None] if y.ndim == 1 else y


def spread_of_targets(X, Y, weight):
    """Spread of the columns of the targets."""
    return spread_block(Y, weight)


def prediction_block(X, weight, shape, parameters, mean, scale, target_mean, target_scale, single):
    """Predictions of a block, in float64."""
    made = output_block(X, weight, shape, parameters.astype(float), mean, scale)
    made = target_mean + target_scale * made
    return made[:, 0] if single else made


class MLPRegressor(Regressor, Multilayer):
    """Fit a network to numbers, by squared errors.

    Parameters
    ----------
    hidden_layer_sizes : Units of each hidden layer; () for none, which is a linear model.
    activation : Of the hidden units: "relu", "tanh", "logistic" (or "sigmoid"), "identity".
    rule : How gradients become steps: "adam", "sgd", "momentum", "adagrad", "rmsprop", or a rule of `lemmata.optimize`, which
        then also says how long steps are; "lbfgs" takes all rows at once, and goes on until the weights are at rest.
    alpha : Weight α of the penalty α/2 ‖W‖² that is added to the sum of the losses of a batch; biases are free.
    batch_size : Weight of a batch: rows, if they have no weights. "auto" is a tenth of that of the table, but 16 to 200.
    learning_rate_init : Length of steps, unless `rule` is a rule of its own.
    dropout : Chance that a hidden unit is left out of a step.
    clip : Longest gradient of a step; longer ones are shortened. None for any.
    start : Variance of the weights to start from: "glorot", or "he" for ReLU.
    standardize : Whether columns and targets are centered and scaled before anything else.
    max_iter : Epochs at most, or steps of L-BFGS.
    tol : The fit ends when the loss has not fallen by more than this for `n_iter_no_change` epochs; None to go on until
        `max_iter`. L-BFGS ends when no entry of the gradient is larger than a hundredth of it.
    n_iter_no_change : Epochs.
    shuffle : Whether rows are visited in an order that is drawn anew in every epoch, within each block.
    early_stopping : Whether rows are held out, whose score then decides when to stop, and which weights are kept.
    validation_fraction : Share of the rows that are held out; they are two at least.
    random_state : Seed of the start, of the order of the rows, of those held out and of the units left out. The same seed gives
        the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    parameters_ : All weights and biases in one vector, layer after layer.
    coefs_, intercepts_ : Views into it: weights (inputs, outputs) and biases of each layer.
    mean_, scale_ : What the columns are centered by and divided by, with `standardize`.
    target_mean_, target_scale_ : The same of the targets.
    loss_ : Penalized mean loss over the last epoch, each batch before its step.
    n_iter_ : Epochs.
    t_ : Steps of the rule.
    converged_ : Whether the loss had stopped falling.
    trace_ : Loss of each epoch (also as `loss_curve_`).
    validation_scores_ : Score of the rows held out after each epoch, with `early_stopping`.
    seed_ : What `random_state` gave.

    Examples
    --------
    >>> x = np.linspace(-3, 3, 40)
    >>> X, y = x[:, None], np.sin(x)
    >>> model = MLPRegressor((20,), "tanh", rule="lbfgs", alpha=1e-6, max_iter=3000, random_state=0).fit(X, y)
    >>> model.predict([[0.0], [np.pi / 2]]).round(2) + 0.0
    array([0., 1.])
    >>> model.certify(X, y)["back-propagation"].holds
    True
    """

    _loss = "squared"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y, (n,) or (n, k); a weight means repetition. X may also be stored: Parquet, Dask."""
        self._hidden()
        return self._fit(self._table(X, y, sample_weight, reset=True), {"X": X, "y": y})

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Go on for one epoch over some rows in memory; the first call scales columns and targets by its rows."""
        first = not hasattr(self, "parameters_")
        return self._go_on(self._table(X, y, sample_weight, reset=first), first)

    def _table(self, X, y, sample_weight, *, reset):
        blocks = self._blocks(X, y, sample_weight, reset=reset, order="C", multi_output=True)
        target = np.asarray(blocks.first()[1])
        n_columns = matrix(target).shape[1]
        if reset:
            self._outputs, self._single = n_columns, target.ndim == 1
        elif n_columns != self._outputs:
            raise ValueError(f"y has {n_columns} columns, and the model was fitted to {self._outputs}.")
        if blocks.home == "memory" and blocks.n_blocks > 1:
            first = matrix(blocks.aligned[0])[:, 0]
            blocks = mixed(blocks, np.searchsorted(np.quantile(first, QUARTERS), first))
        return blocks.with_target(matrix)

    def _n_outputs(self):
        return self._outputs

    def _last(self):
        return "identity"

    def _targets(self, blocks):
        if not self.standardize:
            return blocks, {}
        found = blocks.reduce(spread_of_targets)
        return _scaled(blocks, found.mean, found.scale)

    def _known_targets(self, blocks):
        return _scaled(blocks, self.target_mean_, self.target_scale_) if hasattr(self, "target_mean_") else (blocks, {})

    def _marks(self, outputs, Y, weight):
        """Add up weights, targets, their squares, and squared errors."""
        return np.array(
            [weight.sum() * Y.shape[1], (weight @ Y).sum(), (weight @ Y**2).sum(), (weight @ (outputs - Y) ** 2).sum()]
        )

    def _score_of(self, sums):
        weight, total, squares, errors = sums
        varied = squares - total**2 / weight
        if varied <= ROUNDING * squares:  # targets that are all alike: errors in their units, the deviation of all if scaled
            varied = weight
        return float(1 - errors / varied)

    def predict(self, X):
        """Predict the target of each row."""
        network, blocks = self._network(), self._blocks(X, reset=False)
        mean, scale = getattr(self, "target_mean_", np.zeros(1)), getattr(self, "target_scale_", np.ones(1))
        return as_output(blocks.map(prediction_block, *network, mean, scale, self._single), blocks.dtype)
