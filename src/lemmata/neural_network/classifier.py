"""`MLPClassifier`: a network whose outputs are the probabilities of the classes.

    P(class k | x) = softmax(f(x))ₖ,     ℓ = −log P(class | x);     of two classes, P = σ(f(x)) with a single output

Without hidden layers it is logistic regression. `multilayer` has the fit and the certificate.
"""

import numpy as np
from sklearn.base import _fit_context

from lemmata.core.estimator import Classifier, as_output
from lemmata.linear_model.stochastic import mixed
from lemmata.neural_network.multilayer import Multilayer
from lemmata.neural_network.passes import output_block


def probability_block(X, weight, shape, parameters, mean, scale):
    """Probabilities of the classes, (n, K), in float64, so that they sum to one."""
    p = output_block(X, weight, shape, parameters.astype(float), mean, scale)
    return np.column_stack([1 - p[:, 0], p[:, 0]]) if p.shape[1] == 1 else p


def label_block(X, weight, shape, parameters, mean, scale, classes):
    """Labels of a block: the most probable class, the first of equals."""
    return classes[probability_block(X, weight, shape, parameters, mean, scale).argmax(axis=1)]


def column(y):
    """Turn numbers of classes into a matrix with a single column."""
    return np.asarray(y, dtype=float)[:, None]


class MLPClassifier(Classifier, Multilayer):
    """Fit a network to labels, by cross-entropy.

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
    standardize : Whether columns are centered and scaled before anything else.
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
    classes_ : Labels.
    parameters_ : All weights and biases in one vector, layer after layer.
    coefs_, intercepts_ : Views into it: weights (inputs, outputs) and biases of each layer.
    mean_, scale_ : What the columns are centered by and divided by, with `standardize`.
    loss_ : Penalized mean loss over the last epoch, each batch before its step.
    n_iter_ : Epochs.
    t_ : Steps of the rule.
    converged_ : Whether the loss had stopped falling.
    trace_ : Loss of each epoch (also as `loss_curve_`).
    validation_scores_ : Score of the rows held out after each epoch, with `early_stopping`.
    seed_ : What `random_state` gave.

    Examples
    --------
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["same", "other", "other", "same"]
    >>> model = MLPClassifier((8,), "tanh", rule="lbfgs", random_state=0).fit(X, y)
    >>> model.predict(X)
    array(['same', 'other', 'other', 'same'], dtype='<U5')
    >>> certificate = model.certify(X, y)
    >>> certificate.holds, [check.name for check in certificate]
    (True, ['weights', 'loss', 'steps', 'means', 'scales', 'back-propagation', 'rest'])
    """

    _loss = "cross_entropy"

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        self._hidden()
        return self._fit(self._table(X, y, sample_weight, reset=True), {"X": X, "y": y})

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on for one epoch over some rows in memory; the first call names all classes, and scales columns by its rows."""
        first = not hasattr(self, "parameters_")
        return self._go_on(self._lesson(X, y, classes, sample_weight, first=first).with_target(column), first)

    def _table(self, X, y, sample_weight, *, reset):
        return mixed(self._labeled(X, y, sample_weight, reset=reset, order="C")).with_target(column)

    def _n_outputs(self):
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _last(self):
        return "logistic" if len(self.classes_) == 2 else "softmax"

    def _marks(self, outputs, Y, weight):
        """Add up weights of rows, and of those that are given the right class."""
        found = outputs[:, 0] > 0.5 if outputs.shape[1] == 1 else outputs.argmax(axis=1)
        return np.array([weight.sum(), weight @ (found == Y[:, 0]), 0.0, 0.0])

    def _score_of(self, sums):
        return float(sums[1] / sums[0])

    def predict_proba(self, X):
        """Give the probability of each class, (n, K)."""
        network, blocks = self._network(), self._blocks(X, reset=False)
        return as_output(blocks.map(probability_block, *network), blocks.dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class, (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Give each row its most probable class."""
        network = self._network()
        return self._blocks(X, reset=False).map(label_block, *network, self.classes_)
