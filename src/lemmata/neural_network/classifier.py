"""`MLPClassifier`: a network whose outputs are the probabilities of the classes.

    P(class k | x) = softmax(f(x))ₖ,     ℓ = −log P(class | x);     of two classes, P = σ(f(x)) with a single output

Rows may also have any number of labels, marked in a matrix of zeros and ones: then P(label k | x) = σ(f(x)ₖ), each for itself,
and the losses of the labels add up. Without hidden layers it is logistic regression. `multilayer` has fit and certificate.
"""

import numpy as np
from sklearn.base import _fit_context

from lemmata.core.data import is_sparse, is_stored
from lemmata.core.estimator import Classifier, as_output
from lemmata.linear_model.stochastic import mixed
from lemmata.neural_network.layers import Shape
from lemmata.neural_network.multilayer import Multilayer
from lemmata.neural_network.passes import sure_outputs


def probability_block(X, weight, shape, parameters, mean, scale):
    """Probabilities of the classes or labels, (n, K), in float64, so that those of classes sum to one."""
    p = sure_outputs(Shape(*shape), parameters.astype(float), X, mean, scale)
    return np.column_stack([1 - p[:, 0], p[:, 0]]) if p.shape[1] == 1 else p


def label_block(X, weight, shape, parameters, mean, scale, classes):
    """Labels of a block: the most probable class, the first of equals."""
    return classes[probability_block(X, weight, shape, parameters, mean, scale).argmax(axis=1)]


def mark_block(X, weight, shape, parameters, mean, scale):
    """Labels of a block as zeros and ones, (n, K): those that are more likely there than not."""
    return (probability_block(X, weight, shape, parameters, mean, scale) > 0.5).astype(np.int64)


def column(y):
    """Turn numbers of classes into a matrix with a single column."""
    return np.asarray(y, dtype=float)[:, None]


def has_marks(y):
    """Tell whether a target has a column for each label."""
    shape = y.shape if is_sparse(y) else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1


class MLPClassifier(Classifier, Multilayer):
    """Fit a network to labels, by cross-entropy.

    A row has one label, or any number of them if y is a matrix with a column of zeros and ones for each.

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
    classes_ : Labels; of a matrix, the numbers of its columns.
    multilabel_ : Whether a row may have any number of them.
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
    >>> model.fit(X, [[0, 1], [1, 1], [1, 1], [0, 0]]).predict(X)                  # other, and not both
    array([[0, 1],
           [1, 1],
           [1, 1],
           [0, 0]])
    """

    _loss = "cross_entropy"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output = True
        return tags

    @property
    def multilabel_(self):
        """Whether a row may have any number of labels."""
        return self._several

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y, (n,) or marks (n, K); a weight means repetition.

        X may also be a Parquet path, a Dask table or an iterator; rows then have one label each.
        """
        self._hidden()
        return self._fit(self._table(X, y, sample_weight, reset=True), {"X": X, "y": y})

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on for one epoch over some rows in memory; the first call names all classes, and scales columns by its rows.

        Labels in a matrix are its columns, and need no names.
        """
        first = not hasattr(self, "parameters_")
        if has_marks(y):
            return self._go_on(self._marked(X, y, sample_weight, reset=first), first)
        self._one_or_many(False, reset=first)
        return self._go_on(self._lesson(X, y, classes, sample_weight, first=first).with_target(column), first)

    def _table(self, X, y, sample_weight, *, reset):
        if not is_stored(X) and has_marks(y):
            return self._marked(X, y, sample_weight, reset=reset)
        self._one_or_many(False, reset)
        return mixed(self._labeled(X, y, sample_weight, reset=reset, order="C")).with_target(column)

    def _marked(self, X, y, sample_weight, *, reset):
        """Validate rows with a matrix of zeros and ones; cut them so that no label has a block of its own."""
        y = y.toarray() if is_sparse(y) else np.asarray(y)
        strange = y[~np.isin(y, (0, 1))]
        if len(strange):
            raise ValueError(f"Columns of y are labels, which rows have (1) or not (0), and it holds {strange.tolist()[0]!r}.")
        self._one_or_many(True, reset)
        if reset:
            self.classes_ = np.arange(y.shape[1])
        elif y.shape[1] != len(self.classes_):
            raise ValueError(f"y has {y.shape[1]} columns, and the model was fitted to {len(self.classes_)} labels.")
        elif not np.array_equal(self.classes_, np.arange(y.shape[1])):
            raise ValueError(f"classes_ numbers the columns of y, and is {self.classes_}: it was changed after the fit.")
        blocks = self._blocks(X, y, sample_weight, reset=reset, order="C", multi_output=True)
        for k in range(y.shape[1]):
            blocks = mixed(blocks, np.asarray(blocks.aligned[0])[:, k].astype(np.int64))
        return blocks

    def _one_or_many(self, multilabel, reset):
        """Learn whether rows may have several labels, or see that it is as in the fit."""
        if reset:
            self._several = multilabel
        elif self._several != multilabel:
            asked = "a column of zeros and ones for each label" if self._several else "one label for each row"
            raise ValueError(f"The model was fitted to {asked}, and y has another form.")

    def _n_outputs(self):
        return 1 if len(self.classes_) == 2 and not self._several else len(self.classes_)

    def _last(self):
        return "logistic" if len(self.classes_) == 2 or self._several else "softmax"

    def _marks(self, outputs, Y, weight):
        """Add up weights of rows, and of those that are given the right class, or all their labels and no other."""
        one = outputs.shape[1] > 1 and not self._several
        found = outputs.argmax(axis=1)[:, None] if one else outputs > 0.5
        return np.array([weight.sum(), weight @ (found == Y).all(axis=1), 0.0, 0.0])

    def _score_of(self, sums):
        return float(sums[1] / sums[0])

    def predict_proba(self, X):
        """Give the probability of each class or label, (n, K)."""
        network, blocks = self._network(), self._blocks(X, reset=False)
        return as_output(blocks.map(probability_block, *network), blocks.dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class or label, (n, K)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X):
        """Give each row its most probable class, or mark the labels that it is more likely to have than not."""
        network, blocks = self._network(), self._blocks(X, reset=False)
        if self._several:
            return blocks.map(mark_block, *network)
        return blocks.map(label_block, *network, self.classes_)
