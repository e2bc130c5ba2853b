"""The curve of a criterion over the orders of a model: what it suggests, and the certificate of the choice.

The certificate recomputes the criterion of every model from its parameters and the rows, asks whether models have the orders
that they stand for and whether the suggestion is the order with the least mean, fits the suggested model once more, and, where
models are nested, checks what theory says of their training objectives: the best fit of a larger order is no worse than the
best of a smaller one, because the larger contains the smaller. A rise proves that a fit was caught in a local optimum; more
restarts are the remedy. Where orders were judged by folds, all of these are fitted again, to tables without the rows held out,
and nothing fitted to all rows may be in the reach of the estimator.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone

from lemmata.cluster.elbow import Elbow
from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check
from lemmata.model_selection.criteria import information_criteria
from lemmata.model_selection.fold import Data, fit_to
from lemmata.model_selection.heard import hear
from lemmata.model_selection.knowledge import knowledge
from lemmata.model_selection.one_standard_error import simplest
from lemmata.model_selection.restarts import training_objectives
from lemmata.model_selection.splits import count_rows

UNITS = {
    "bic": "BIC, K ln N − 2L",
    "aic": "AIC, 2K − 2L",
    "evidence": "−ln evidence",
    "cv": "−score of held-out rows",
    "stability": "disagreement over that by chance",
    "elbow": "training objective",
}
RISE_LIMIT = 1e-3  # of the whole fall: what the tolerances of iterative fits leave undone


@dataclass(frozen=True, eq=False)
class OrderCurve:
    """Losses of a model by its order.

    Attributes
    ----------
    param : Name of the parameter that was varied.
    criterion : By what the orders were judged; `unit` says what the losses are.
    values : (n_values,), orders, ascending.
    losses : (n_repeats, n_values), the less the better; NaN where the order could not be fitted or judged. One line, but for
        "cv" one for each fold and for "stability" one for each pair of samples.
    models : Best fit of each order on all rows; None where there is none.
    criteria : `InformationCriteria` of each model; None where the model has none.
    objectives : (n_values,), training objective of each model.
    reasons : What the fits of an order had to say, an error or warnings, by order.
    nested : Whether a larger order contains the smaller ones, so that objectives cannot rise.

    Examples
    --------
    >>> import numpy as np
    >>> curve = OrderCurve("degree", "cv", np.array([1, 2, 3]), np.array([[4.0, 1.1, 1.0], [4.4, 1.3, 1.2], [4.2, 1.1, 1.2]]))
    >>> curve.means.round(3).tolist(), curve.suggested, curve.simplest
    ([4.2, 1.167, 1.133], 3, 2)
    """

    param: str
    criterion: str
    values: np.ndarray
    losses: np.ndarray = field(repr=False)
    models: tuple = field(default=(), repr=False)
    criteria: tuple = field(default=(), repr=False)
    objectives: np.ndarray = field(default_factory=lambda: np.empty(0), repr=False)
    reasons: Mapping[Any, str] = field(default_factory=dict)
    nested: bool = False
    judge: Any = field(default=None, repr=False)  # judges models anew: see `lemmata.model_selection.judges`

    @property
    def unit(self):
        """What the losses are."""
        return UNITS[self.criterion]

    @property
    def means(self):
        """Mean loss of each order."""
        return self.losses.mean(axis=0)

    @property
    def standard_errors(self):
        """Standard error of each mean over the repeats; NaN where there is but one."""
        n = len(self.losses)
        return self.losses.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(self.values), np.nan)

    @property
    def suggested(self):
        """The order with the least mean loss, the smaller of equals; for "elbow" the one farthest below the chord."""
        return self.values[_suggestion(self.criterion, self.values, self.losses)].item()

    @property
    def simplest(self):
        """The smallest order within one standard error of the least mean; without repeats, the one suggested."""
        if len(self.losses) == 1:
            return self.suggested
        return self.values[simplest(self.losses, self.values)].item()

    @property
    def model(self):
        """The model of the suggested order, fitted to all rows."""
        return self.models[int(np.flatnonzero(self.values == self.suggested)[0])]

    def plot(self, ax=None):
        """Draw the losses by order; return the display (see `lemmata.plot.OrderCurveDisplay`)."""
        return import_module("lemmata.plot").OrderCurveDisplay.from_curve(self, ax=ax)

    def certify(self, X, y=None, sample_weight=None):
        """Judge every model anew on the rows of the fit, and fit the suggested one once more.

        For "cv" every fold is fitted again, once for each order, to a table without the rows held out; for "stability", which
        has no models to judge, the samples of all orders are drawn and fitted again.
        """
        data = Data.of(X, y, sample_weight)
        n, place = count_rows(data.X), int(np.flatnonzero(self.values == self.suggested)[0])
        losses = self.judge.again(self, data)
        again = fit_to(self.models[place], data, np.arange(n))
        *objectives, repeated = training_objectives([*self.models, again], data)
        objectives, fitted = np.array(objectives), np.isfinite(objectives)
        strangers = [str(value) for i, value in enumerate(self.values) if not self._stands_for(i, value)]
        told = f"not at {', '.join(strangers)}" if strangers else "at each order"
        missed = _miss_of_orders(self.losses, losses) if self.judge.criterion == self.criterion else np.inf
        checks = [
            Check("orders", float(len(strangers)), 0.0, "proof", f"the models have the {self.param} they stand for: {told}"),
            Check("criterion", missed, SAME_LIMIT, "proof", "the losses are those of the models on these rows"),
            Check("counts", self._miscounted(data), SAME_LIMIT, "proof", "so are likelihoods and numbers of parameters"),
            Check("objective", _miss(self.objectives, objectives), SAME_LIMIT, "proof", "so are the training objectives"),
            Check("suggestion", self._excess(losses, place), SAME_LIMIT, "proof", "no order is judged better"),
        ]
        if fitted[place]:
            claim = "the suggested model is fitted again by the same seed"
            checks.append(Check("again", _miss(objectives[place], repeated), SAME_LIMIT, "proof", claim))
        if self.criterion == "cv":
            known = knowledge(clone(again), n)
            claim = (
                f"it knew before: {'; '.join(known)}" if known else "nothing fitted, no table of so many rows is in its reach"
            )
            checks.append(Check("known before the folds", float(len(known)), 0.0, "evidence", claim))
        if self.nested and fitted.sum() > 1:
            claim = "a larger order is no worse on its own rows: rise of the objective over its fall"
            checks.append(Check("monotone", rise(objectives[fitted]), RISE_LIMIT, "local", claim))
        return Certificate(*checks, subject=f"{self.criterion} over {self.param}")

    def _stands_for(self, i, value):
        """Tell whether all models of an order, those of its folds and samples among them, have it."""
        models = [model for model in (self.models[i], *self.judge.judged(i)) if model is not None]
        return all(model.get_params(deep=True).get(self.param) == value for model in models)

    def _miscounted(self, data):
        """Give by how much the criteria of a model differ from those counted anew."""

        def anew(model):
            return hear(partial(information_criteria, model, data.X, data.y, sample_weight=data.weight)).result

        found = [None if told is None else anew(model) for told, model in zip(self.criteria, self.models, strict=True)]
        return max([_miss(*pair) for pair in zip(_numbers(self.criteria), _numbers(found), strict=True)])

    def _excess(self, losses, place):
        """Give by how much an order is judged worse than the best: equals may differ by rounding."""
        best = _suggestion(self.criterion, self.values, losses)
        if self.criterion == "elbow":
            return float(abs(best - place))
        means = losses.mean(axis=0)
        return _miss(means[place], means[best]) if np.isfinite(means[place]) else np.inf


def rise(objectives):
    """Give the largest rise above the least objective of smaller orders, as a share of the whole fall.

    Examples
    --------
    >>> rise(np.array([9.0, 4.0, 4.5, 4.0])), rise(np.array([9.0, 4.0, 4.0, 3.0]))
    (0.1, 0.0)
    """
    least = np.minimum.accumulate(objectives)
    most = float((objectives - least).max())
    rounding = np.sqrt(np.finfo(float).eps) * float(np.abs(objectives).max())  # where all orders do alike, there is no fall
    return 0.0 if most <= 0 else most / max(float(objectives[0] - least[-1]), rounding, TINY)


def _suggestion(criterion, values, losses):
    """Give the number of the order that a criterion suggests."""
    means = losses.mean(axis=0)
    known = np.flatnonzero(np.isfinite(means))
    if not len(known):
        raise ValueError("No order could be judged; `reasons` has the reason for each.")
    if criterion != "elbow":
        return int(known[np.argmin(means[known])])
    if len(known) < 3:
        raise ValueError(f"An elbow needs at least three orders, and of {len(values)} only {len(known)} could be judged.")
    return int(known[np.argmax(Elbow(values[known], means[known], means[known]).below_chord)])


def _miss_of_orders(stored, found):
    """Give the largest miss of an order's losses, each beside its own: those of one that explodes would hide all others."""
    if stored.shape != found.shape:
        return np.inf
    sizes = np.abs(found).max(axis=0)
    floor = SAME_LIMIT * np.median(sizes[np.isfinite(sizes)]) if np.isfinite(sizes).any() else 0.0
    return max(_miss(*pair, floor) for pair in zip(stored.T, found.T, strict=True))


def _miss(stored, found, floor=0.0):
    """Give the largest difference over the largest number, infinite where different numbers are missing or infinite."""
    stored, found = np.asarray(stored, dtype=float), np.asarray(found, dtype=float)
    if stored.shape != found.shape:
        return np.inf
    known = np.isfinite(stored) & np.isfinite(found)
    if not np.array_equal(stored[~known], found[~known], equal_nan=True):
        return np.inf
    return float(np.abs(stored - found)[known].max(initial=0.0) / max(np.abs(found)[known].max(initial=0.0), floor, TINY))


def _numbers(criteria):
    """Give likelihoods, numbers of parameters and of rows, and evidences, of all orders; NaN where there are none."""
    names = ("log_likelihood", "n_parameters", "n_rows", "log_evidence")
    return np.array([[np.nan if told is None else getattr(told, name) for told in criteria] for name in names], dtype=float)
