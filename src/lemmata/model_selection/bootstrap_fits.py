"""The fits of the bootstrap's error: one to all rows, one to each bag, and what they lose on rows that they have not seen."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils import _safe_indexing, check_consistent_length, indexable

from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.core.random import generator, spawn
from lemmata.model_selection import bootstrap_losses as losses_of
from lemmata.model_selection.bootstrap_samples import repetitions
from lemmata.model_selection.fold import in_memory, told
from lemmata.model_selection.heard import stoppable
from lemmata.model_selection.splits import check_targets

RESPONSES = ("predict", "predict_proba")


class Task(NamedTuple):
    """What is fitted and how it is judged."""

    estimator: Any
    X: Any
    y: np.ndarray
    rows: np.ndarray  # of X and y; those of weight two stand here twice
    labels: np.ndarray | None
    loss: Any
    response_method: str
    chance: int  # seed of the first of the fits that draw; the next number is that of the next


def read_task(estimator, X, y, loss, response_method, sample_weight, seed):
    """Read the rows, and refuse what cannot be judged row by row."""
    if loss is not None and not callable(loss):
        raise ValueError(f"loss must be None or a function of (y, prediction) with a number for each row; got {loss!r}.")
    if response_method not in RESPONSES or (response_method == "predict_proba" and loss is None):
        raise ValueError(
            f'response_method must be "predict", or "predict_proba" with a loss of probabilities; got {response_method!r}.'
        )
    if loss is None and not (is_classifier(estimator) or is_regressor(estimator)):
        name = type(estimator).__name__
        raise ValueError(f"{name} is neither a classifier nor a regressor, so nobody knows what it loses: say it by loss=….")
    if y is None:
        raise ValueError("y must have one target for each row; it is None.")
    X, y = indexable(in_memory(X), y)
    y = np.asarray(y)
    check_consistent_length(X, y)
    if y.ndim != 1:
        raise ValueError(f"y must have one target for each row; its shape is {y.shape}.")
    rows = np.arange(len(y)) if sample_weight is None else np.repeat(np.arange(len(y)), repetitions(sample_weight, y))
    check_targets(y, np.bincount(rows, minlength=len(y)))
    labels = np.unique(y[rows]) if is_classifier(estimator) else None
    if len(rows) < 2 or (labels is not None and len(labels) < 2):
        raise ValueError("There must be two rows or more, and of a classifier two classes or more.")
    loss = loss or (losses_of.squared if labels is None else losses_of.zero_one)
    y = y.astype(np.float64) if loss is losses_of.squared else y
    return Task(clone(estimator), X, y, rows, labels, loss, response_method, seed)


def draw_bags(task, n_resamples, seed):
    """Draw the bags: how often each has each row, and how many were drawn again because they had one class only."""
    n, redrawn = len(task.rows), 0
    bags = np.empty((n_resamples, n), dtype=np.int64)
    y = task.y[task.rows]
    for b, rng in enumerate(spawn(generator(seed), n_resamples)):
        while True:
            drawn = rng.integers(n, size=n)
            if task.labels is None or (y[drawn] != y[drawn[0]]).any():
                break
            redrawn += 1
        bags[b] = np.bincount(drawn, minlength=n)
    return bags, redrawn


def fit_bags(task, bags, n_jobs, verbose):
    """Fit to all rows and to every bag: predictions and losses out of bags, the apparent error, and γ."""
    ours = isinstance(task.estimator, Estimator)
    work = partial(_fit_and_judge, task)
    (fitted, apparent), *others = fit_all(
        work, list(enumerate([None, *bags])), ours=ours, n_jobs=n_jobs, verbose=verbose, name="fits"
    )
    losses = np.full(bags.shape, np.nan)
    plain = task.response_method == "predict"
    predictions = None
    if plain:
        labels = np.array([np.nan]) if task.labels is None else task.labels
        predictions = np.full(bags.shape, labels[0], dtype=labels.dtype)
    for b, (predicted, loss) in enumerate(others):
        losses[b, bags[b] == 0] = loss
        if plain:
            predictions[b, bags[b] == 0] = predicted
    gamma = losses_of.no_information(task.loss, task.y[task.rows], fitted)
    return predictions, losses, float(apparent.mean()), gamma


def _fit_and_judge(task, numbered):
    """Fit to a bag and predict the rows that it does not have; without a bag, fit to all rows and predict them."""
    number, counts = numbered
    model = clone(task.estimator)
    model.set_params(
        **{
            key: task.chance + number
            for key, value in model.get_params().items()
            if value is None and key.rsplit("__", 1)[-1] == "random_state"
        }
    )
    bag, out = (task.rows, task.rows) if counts is None else (np.repeat(task.rows, counts), task.rows[counts == 0])
    with told("In the fit to all rows." if counts is None else f"In bag {number - 1}."):
        with stoppable():
            model.fit(_safe_indexing(task.X, bag), task.y[bag])
        return _judge(task, model, out) if len(out) else (np.empty(0), np.empty(0))


def _judge(task, model, out):
    """Predict rows and tell what that loses."""
    predicted = np.asarray(getattr(model, task.response_method)(_safe_indexing(task.X, out)))
    if task.response_method == "predict_proba":
        aligned = np.zeros((len(out), len(task.labels)))  # a class that the bag lacks has probability zero
        aligned[:, np.searchsorted(task.labels, model.classes_)] = predicted
        predicted = aligned
    loss = np.asarray(task.loss(task.y[out], predicted), dtype=np.float64)
    if loss.shape != (len(out),) or not np.isfinite(loss).all():
        found = f"{loss[~np.isfinite(loss)][0]} is among them" if loss.shape == (len(out),) else f"its shape is {loss.shape}"
        raise ValueError(f"The loss must be a finite number for each of the {len(out)} rows; {found}.")
    return predicted, loss


def parts_of(task, predictions, losses):
    """Split the error out of bags into variance and the rest, averaged over rows."""
    y, seen = task.y[task.rows], ~np.isnan(losses)
    if task.loss is losses_of.squared:
        parts = losses_of.squared_parts(y, predictions)
    elif task.loss is losses_of.zero_one:
        parts = losses_of.zero_one_parts(task.labels, y, predictions, seen)
    else:
        return None, None
    return tuple(float(part[seen.any(axis=0)].mean()) for part in parts)
