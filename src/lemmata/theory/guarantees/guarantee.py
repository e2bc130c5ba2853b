"""`guarantee`: what can be promised about a fitted model on rows that nobody has seen.

Bounds of very different kinds apply to the same model: unseen rows test it; the size of its class, its margins, the few rows
that determine it, or its posterior bound what it can have learned by chance. Each is listed with its value at δ, what it rests
on, and whether it says anything. Rows are never used twice without paying: see `bound` for how the best one is chosen.
"""

from collections.abc import Iterator
from numbers import Integral, Real
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from lemmata.theory.guarantees import class_size, compressed, linear, neighbors, tree, unseen, vote
from lemmata.theory.guarantees.bound import Bound, Guarantee, Missing
from lemmata.theory.guarantees.class_size import class_bounds
from lemmata.theory.guarantees.compressed import compression_bounds
from lemmata.theory.guarantees.kernels import kernel_bounds
from lemmata.theory.guarantees.linear import linear_bounds
from lemmata.theory.guarantees.neighbors import neighbor_bounds
from lemmata.theory.guarantees.regression import LINEAR, LOSSES, linear_regression_bounds, residuals, unseen_bounds
from lemmata.theory.guarantees.sample import Sample
from lemmata.theory.guarantees.structure import structure_of
from lemmata.theory.guarantees.tree import tree_bounds
from lemmata.theory.guarantees.unseen import counted_bounds, graded_bounds
from lemmata.theory.guarantees.vote import vote_bounds

# Bounds of the model's own risk among which `best` chooses. The others are larger for every sample, or hold for something else.
PORTFOLIO = {
    class_size.TAIL,
    linear.DOUBLE,
    linear.SPLIT,
    linear.TWICE,
    tree.OCCAM,
    vote.FIRST,
    vote.SECOND,
    compressed.SUPPORT,
    compressed.MISTAKES,
    compressed.BLOCKS,
    neighbors.LEFT_OUT,
    LINEAR,
}
TESTS = {unseen.COUNTED, unseen.BETTING}
ENOUGH = 100  # unseen rows from which on nothing else is worth a share of δ


def guarantee(
    model: Any,
    X: Any = None,
    y: Any = None,
    delta: float = 0.05,
    holdout: tuple[Any, Any] | None = None,
    *,
    loss: Any = None,
    upper: float | None = None,
    tolerance: float | None = None,
    n_models: int = 1,
    thresholds: Any = None,
    radius: float | None = None,
    refit: bool = True,
) -> Guarantee:
    """Bound the risk of a fitted model, by every theorem that applies to it.

    Parameters
    ----------
    model : Fitted classifier or regressor, ours or scikit-learn's; in a pipeline or a search as it is used.
    X, y : The rows that the model was fitted to, all of them; None if there is a hold-out only.
    delta : Probability, over samples, with which a bound may fail.
    holdout : Rows and labels (X, y) that had no part in finding the model.
    loss : For classifiers "zero-one", or a function of (model, X, y) that gives a loss for each row, in [0, upper]. For
        regressors "absolute" or "squared".
    upper : Limit of the losses, declared before the rows were seen; larger losses of regressors are clipped.
    tolerance : Error of a regressor that should rarely be exceeded, declared before the rows were seen.
    n_models : Number of models that were ever scored on the hold-out.
    thresholds : List of the thresholds that a tree could use, fixed before the rows were seen.
    radius : Length that no row exceeds, known for sure and not from these rows; for the stability of support vector machines.
    refit : Whether linear models may be fitted once more, to half of the rows, for a prior.

    Returns
    -------
    result : `Guarantee`: the bounds, the reasons for those that are missing, and `best`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X[:400], y[:400])
    >>> result = guarantee(model, X[:400], y[:400], holdout=(X[400:], y[400:]))
    >>> result.best.name, round(result.best.value, 3)
    ('hold-out, Clopper-Pearson', 0.187)
    >>> print(guarantee(model, X[:400], y[:400]))
    DecisionTreeClassifier(max_leaf_nodes=3, random_state=0): risk ≤ 0.2056 by growth function, with probability ≥ 0.95
      bound                 value  observed  data               remark
      growth function      0.2037    0.0575  400 training rows
      description length   0.2622    0.0575  400 training rows
      Vapnik-Chervonenkis  0.8206    0.0575  400 training rows  no better than a constant
    """
    _check(model, X, y, delta, holdout, n_models)
    _check_declared(thresholds, tolerance, upper=upper, radius=radius)
    X = _indexable(X)
    pair = None if holdout is None else (_indexable(holdout[0]), holdout[1])
    if is_regressor(model):
        found = _of_regressor(model, X, y, delta, pair, loss, upper, tolerance, n_models)
    else:
        found = _of_classifier(model, X, y, delta, pair, loss, upper, n_models, thresholds, radius, refit)
    entries = list(found)
    bounds = tuple(entry for entry in entries if isinstance(entry, Bound))
    missing = [entry for entry in entries if isinstance(entry, Missing)]
    # What the rows themselves made impossible keeps its share: a portfolio that they decide would not be settled before them.
    names = [bound.name for bound in bounds] + [entry.name for entry in missing if not entry.settled]
    tested = 0 if pair is None else len(column_or_1d(pair[1]))
    reasons = {entry.name: entry.reason for entry in missing}
    return Guarantee(bounds, reasons, shares_of(names, tested), float(delta), subject=_called(model))


def shares_of(names: list[str], tested: int) -> dict[str, float]:
    """Divide δ among the bounds to choose from, by their names and the number of unseen rows alone."""
    tests = [name for name in names if name in TESTS]
    others = sorted(name for name in names if name in PORTFOLIO)
    if tests and (tested >= ENOUGH or not others):
        return {tests[0]: 1.0}
    half = {tests[0]: 0.5} if tests else {}
    return half | {name: (1 - sum(half.values())) / len(others) for name in others}


def _of_classifier(model, X, y, delta, holdout, loss, upper, n_models, thresholds, radius, refit) -> Iterator[Bound | Missing]:
    structure = structure_of(model)
    if callable(loss):
        if holdout is None or upper is None:
            raise ValueError("A loss of your own needs unseen rows, holdout=(X, y), and its limit, upper=.")
        losses = np.asarray(loss(model, *holdout), dtype=float)
        if losses.shape != column_or_1d(holdout[1]).shape:
            raise ValueError(f"loss must give a number for each of the unseen rows, and gave an array of shape {losses.shape}.")
        if not (losses.min() >= 0 and losses.max() <= upper):
            raise ValueError(
                f"losses must lie in [0, upper] = [0, {upper:g}], and they reach from {losses.min():g} to {losses.max():g}."
            )
        yield from graded_bounds(losses, upper, delta, n_models, risk=getattr(loss, "__name__", "graded"), trivial=upper)
        return
    if loss not in (None, "zero-one"):
        raise ValueError(f'loss={loss!r} of a classifier must be "zero-one", or a function of (model, X, y).')
    if holdout is not None:
        yield from counted_bounds(Sample.unseen(structure, *holdout, delta), n_models)
    if X is None:
        return
    sample = Sample.training(structure, X, y, delta)
    yield from class_bounds(sample)
    yield from linear_bounds(sample, refit)
    yield from tree_bounds(sample, thresholds)
    yield from vote_bounds(sample)
    yield from compression_bounds(sample)
    yield from kernel_bounds(sample, radius)
    yield from neighbor_bounds(sample)


def _of_regressor(model, X, y, delta, holdout, loss, upper, tolerance, n_models) -> Iterator[Bound | Missing]:
    loss = "absolute" if loss is None else loss
    if loss not in LOSSES:
        raise ValueError(f'loss={loss!r} of a regressor must be "absolute" or "squared".')
    if holdout is not None:
        errors = residuals(model, *holdout)
        yield from unseen_bounds(errors, loss, upper, tolerance, delta, n_models, _best_constant(holdout[1], loss, upper))
    if X is not None:
        trivial = _best_constant(y, loss, upper)
        yield from linear_regression_bounds(structure_of(model), X, residuals(model, X, y), loss, upper, delta, trivial)


def _best_constant(y, loss, upper) -> float:
    """Mean clipped loss of the median, or of the mean for the squared loss."""
    y = np.asarray(y, dtype=float)
    losses = LOSSES[loss](y - (np.median(y) if loss == "absolute" else y.mean()))
    return float((losses if upper is None else np.minimum(losses, upper)).mean())


def _check(model, X, y, delta, holdout, n_models) -> None:
    """Refuse what cannot be meant, before any work."""
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model).__name__} is neither a classifier nor a regressor: it has no risk to bound.")
    check_is_fitted(model)
    if not isinstance(delta, Real) or not 0 < delta < 1:
        raise ValueError(f"delta={delta!r} must be a probability between 0 and 1, such as 0.05.")
    if (X is None) != (y is None):
        raise ValueError("X and y go together: give the rows that the model was fitted to, with their labels, or neither.")
    pair = holdout if isinstance(holdout, tuple | list) else ()
    if any(isinstance(part, str | PathLike) for part in (X, y, *pair)):
        raise ValueError("guarantee works on rows in memory: read the file first, and give X and y as arrays or frames.")
    if X is None and holdout is None:
        raise ValueError("There are no rows: give those that the model was fitted to, or unseen ones as holdout=(X, y).")
    if not isinstance(n_models, Integral) or n_models < 1:
        raise ValueError(f"n_models={n_models!r} must be a whole number, and count at least the model itself.")
    if holdout is None:
        return
    if not isinstance(holdout, tuple | list) or len(holdout) != 2:
        raise ValueError("holdout must be a pair (X, y) of unseen rows and their labels.")
    if len(column_or_1d(holdout[1])) == 0:
        raise ValueError("The hold-out has no rows: give unseen rows, or leave holdout out.")
    if X is not None and np.shape(X) == np.shape(holdout[0]) and _same(X, holdout[0]):
        raise ValueError("The hold-out is the training set: its errors say nothing about unseen rows. Leave holdout out.")


def _check_declared(thresholds: Any, tolerance: Any, **numbers: Any) -> None:
    """Refuse limits that are no numbers, before any work."""
    if tolerance is not None and not (isinstance(tolerance, Real) and 0 <= tolerance < np.inf):
        raise ValueError(f"tolerance={tolerance!r} must be a number of at least 0, declared before the rows were seen.")
    for name, value in numbers.items():
        if value is not None and not (isinstance(value, Real) and 0 < value < np.inf):
            raise ValueError(f"{name}={value!r} must be a positive number, declared before the rows were seen.")
    if thresholds is not None and not np.size(thresholds):
        raise ValueError("thresholds is empty: list the numbers that a tree could compare with, or leave it out.")


def _same(X: Any, other: Any) -> bool:
    """Whether two tables of one shape hold the same numbers."""
    if issparse(X) or issparse(other):
        return issparse(X) and issparse(other) and not abs(X - other).max()
    return X is other or np.array_equal(np.asarray(X), np.asarray(other))


def _indexable(X: Any) -> Any:
    if issparse(X):
        return X.tocsr()
    return np.asarray(X) if isinstance(X, list | tuple) else X


def _called(model: Any) -> str:
    """Name a model in a line."""
    return f"{type(model).__name__}" if len(repr(model)) > 60 else repr(model)
