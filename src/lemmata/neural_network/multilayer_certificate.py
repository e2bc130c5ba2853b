"""The certificate of a network: the fit is repeated, derivatives are compared with differences, and rest is told.

It needs the fitted attributes and the table, and nothing that the fit wrote down about itself.
"""

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, Check, same
from lemmata.core.data import is_sparse
from lemmata.core.estimator import as_output
from lemmata.core.visits import unit_of
from lemmata.neural_network.activations import SIGMOID
from lemmata.neural_network.epochs import parameters_of
from lemmata.neural_network.losses import SQUARED, pair
from lemmata.neural_network.network import LIMIT, difference, off_zero
from lemmata.neural_network.passes import gradient_block

SHOWN = 64  # rows on which back-propagation is compared with differences
BESIDE = 0.1  # standard deviations: how far from the rows
LEAST = 0.01  # size that numbers count as at least: kinks must be farther off than differences reach


def checks_of(model, blocks):
    """Return the checks of a fitted network on blocks of (X, Y, weight)."""
    if not hasattr(model, "seed_"):
        claim = "`fit` can be repeated; what `partial_fit` was shown, and when, is not known"
        return [Check("replay", np.inf, SAME_LIMIT, "proof", claim)]
    _, parameters, mean, scale = model._network()
    blocks, targets = model._targets(blocks)
    scaling = model._scaling(blocks)
    run = model._run(blocks, model.seed_, scaling, targets)
    again = as_output(parameters_of(run.state), parameters.dtype)
    checks = [
        same(parameters, again, "weights", "the same steps lead to these weights"),
        same(model.loss_, run.objective, "loss", "and to this loss"),
        Check("steps", abs(model.t_ - getattr(run.state, "steps", 0)), 0.0, "proof", "after as many steps"),
    ]
    if model.standardize:
        floor = np.sqrt(np.finfo(float).eps) * float(np.abs(scaling[1]).max())
        checks.append(same(mean, scaling[0], "means", "columns are centered by their means", floor=floor))
        checks.append(same(scale, scaling[1], "scales", "and divided by their standard deviations"))
    if model.early_stopping and model.rule != "lbfgs":
        checks.append(same(model.validation_scores_, run.state.scores, "scores", "rows held out are scored as this"))
    for name, value in targets.items():
        checks.append(same(getattr(model, name), value, name.rstrip("_").replace("_", " "), "found again from the targets"))
    return [*checks, back_propagation(model, blocks, scaling), rest(model, blocks, scaling)]


def moved(A, rng):
    """Move numbers by a share of the largest."""
    return A + BESIDE * np.abs(A).max(initial=LEAST) * rng.standard_normal(A.shape)


def others(Y, shape):
    """Give each row another label: the next one, or where units say yes or no the opposite.

    Examples
    --------
    >>> from lemmata.neural_network.layers import new_shape
    >>> others(np.array([[0.0], [2.0]]), new_shape([1, 3], ["softmax"])).ravel()
    array([1., 0.])
    """
    return 1 - Y if shape.codes[-1] == SIGMOID else (Y + 1) % shape.sizes[-1]


def back_propagation(model, blocks, scaling):
    """Compare derivatives on rows like those of the table, a little beside them: they may lie on a kink of ReLU.

    Weights next to zero are moved as well, for they put all rows on a kink; and so is what is to be predicted, to other numbers
    or other labels: of an exact fit there would be no errors to differentiate.
    """
    shape = model._shape()
    X, Y, weight = (None if a is None else a[:SHOWN] for a in blocks.first())
    Z = np.asarray(X.toarray() if is_sparse(X) else X, dtype=float)
    rng = np.random.default_rng(0)
    Z = (Z - scaling[0]) / scaling[1] + BESIDE * rng.standard_normal(Z.shape) if model.standardize else moved(Z, rng)
    w = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=float)
    Y, loss = np.asarray(Y, dtype=float), pair(model._loss, shape.codes[-1])
    Y = moved(Y, rng) if loss == SQUARED else others(Y, shape)
    parameters = off_zero(model.parameters_.astype(float), rng)
    _, value, gradient = gradient_block(Z, Y, w, tuple(shape), parameters, loss, None, None)
    error = difference(shape, parameters, gradient, Z, Y, w, loss, value)
    claim = "derivatives at these weights are those of central differences"
    return Check("back-propagation", error, LIMIT, "proof", claim)


def rest(model, blocks, scaling):
    """Tell how large the gradient over all rows still is; judge it where the fit was to end at rest."""
    _, gradient = model._objective(blocks, scaling, unit_of(blocks)[0], model.parameters_.astype(float))
    limit = model.tol if model.rule == "lbfgs" and model.tol is not None else np.inf  # mini-batches end near rest, not at it
    claim = "no entry of the gradient of the penalized mean loss over all rows is larger"
    return Check("rest", float(np.abs(gradient).max()), limit, "local", claim)
