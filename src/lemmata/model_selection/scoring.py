"""Scores: of one model on some rows, and of the models of all folds on all rows that were held out.

The mean of the folds' scores and the score of the pooled held-out rows are the same for a mean over rows (accuracy, squared
error) and equal folds, and differ for others: R² divides by the variance of the fold's own few targets, and a rank statistic
compares rows of different models only when pooled. To pool, the models of the folds act as one model that answers for each row
by the fold that held it out. Scorers of scikit-learn, and the `score` that its classifiers and regressors inherit or repeat,
ask for nothing but such answers. A `score` that is the mean of the model's `score_samples` is the mean over all rows. Of any
other score nobody knows how to pool it: then there is NaN.
"""

from inspect import signature, unwrap

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier, is_regressor
from sklearn.metrics import get_scorer
from sklearn.metrics._scorer import _BaseScorer
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target

from lemmata.core.estimator import gives_groups
from lemmata.model_selection.fold import answers, repeated
from lemmata.model_selection.splits import count_rows

INHERITED = (ClassifierMixin.score, RegressorMixin.score)
SAME = 1e-9  # relative: a mean of a few thousand logarithms, added in two ways


def measure_of(model, scoring=None):
    """Return the function of (model, X, y) by which models like this one are scored.

    Parameters
    ----------
    scoring : Name of a scorer of scikit-learn, or a function of (model, X, y). Default: the model's own `score`.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> measure_of(Ridge()) is RegressorMixin.score
    True
    """
    if scoring is not None:
        if not isinstance(scoring, str) and not callable(scoring):
            raise ValueError(f"scoring must be the name of one scorer or a function of (model, X, y); got {scoring!r}.")
        if (getattr(scoring, "__module__", None) or "").startswith("sklearn.metrics.") and not isinstance(scoring, _BaseScorer):
            name = getattr(scoring, "__name__", scoring)
            raise ValueError(f"{name} is a metric of targets and predictions, no score of models: scoring=make_scorer({name}).")
        return get_scorer(scoring) if isinstance(scoring, str) else scoring
    last = model
    while isinstance(last, Pipeline | BaseSearchCV):
        if isinstance(last, Pipeline):
            last = last.steps[-1][1]
        elif last.scoring is None:
            last = getattr(last, "best_estimator_", last.estimator)
        else:
            several = not isinstance(last.scoring, str) and not callable(last.scoring)  # of which one decides
            named = last.scoring[last.refit] if isinstance(last.scoring, dict) else last.refit
            return measure_of(last, named if several else last.scoring)
    own = getattr(type(last), "score", None)
    if own is None:
        raise ValueError(f"{type(last).__name__} has no score of its own: name one by scoring=…, such as 'accuracy' or 'r2'.")
    return own if own in INHERITED else type(model).score


def score_of(measure, model, data):
    """Score a fitted model on rows, by their weights.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> from lemmata.model_selection.fold import Data
    >>> model = Ridge(alpha=1e-9).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> score_of(RegressorMixin.score, model, Data.of([[0.0], [1.0], [2.0]], [0.0, 1.0, 5.0], [1.0, 1.0, 0.0]))
    1.0
    """
    weighed = {}
    if data.weight is not None:
        if _takes_weights(measure, model):
            weighed = {"sample_weight": data.weight}
        else:
            data = data.rows(repeated(np.arange(len(data.weight)), data.weight, f"The score of {type(model).__name__}"))
    found = measure(model, data.X, data.y, **weighed)
    if np.ndim(found) != 0 or isinstance(found, dict):
        raise ValueError(f"A score is one number; scoring gave {found!r}.")
    return float(found)


def _is_own(measure, model):
    """Tell whether a measure is the score of the model itself, which a pipeline wraps anew each time it is asked."""
    return unwrap(measure) is unwrap(getattr(type(model), "score", None))


def _takes_weights(measure, model):
    while isinstance(model, Pipeline) and _is_own(measure, model):  # which hands weights on to its last step
        model = model.steps[-1][1]
        measure = type(model).score
    return "sample_weight" in signature(measure._score_func if isinstance(measure, _BaseScorer) else measure).parameters


def pooled_score(measure, models, splits, data, classes=None):
    """Score the models of all folds together on all rows that they held out; NaN where a score cannot be pooled.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> from lemmata.model_selection.fold import Data, fit_to
    >>> data = Data.of([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    >>> splits = [(np.array([0, 3]), np.array([1, 2])), (np.array([1, 2]), np.array([0, 3]))]
    >>> models = [fit_to(Ridge(alpha=1e-9), data, train) for train, _ in splits]
    >>> pooled_score(RegressorMixin.score, models, splits, data)
    1.0
    """
    if isinstance(measure, _BaseScorer) and gives_groups(models[0]):  # each fit numbers its groups anew
        return np.nan
    tests = [test for _, test in splits]
    if data.weight is not None and not _takes_weights(measure, models[0]):
        tests = [repeated(test, data.weight, "The score") for test in tests]
        data = data._replace(weight=None)
    held_out = data.rows(np.concatenate(tests))
    folds = [(model, data.rows(test)) for model, test in zip(models, tests, strict=True)]
    measure = _inherited(measure, folds, held_out.y)
    if isinstance(measure, _BaseScorer) or measure in INHERITED:
        return score_of(measure, HeldOut(models, [part.X for _, part in folds], classes), held_out)
    parts = [_row_scores(measure, model, part) for model, part in folds]
    if any(part is None for part in parts):
        return np.nan
    return float(np.average(np.concatenate(parts), weights=held_out.weight))


def _inherited(measure, folds, y):
    """Replace a model's own score by accuracy or R² if that is what it was in every fold."""
    model = folds[0][0]
    usual = ClassifierMixin.score if is_classifier(model) else RegressorMixin.score if is_regressor(model) else None
    if usual is ClassifierMixin.score and np.ndim(y) > 1 and type_of_target(y) == "multiclass-multioutput":
        return measure  # there is no accuracy of several labels a row
    if usual is None or not _is_own(measure, model) or measure is usual:
        return measure
    same = (np.isclose(score_of(measure, *fold), score_of(usual, *fold), rtol=SAME, atol=SAME) for fold in folds)
    return usual if all(same) else measure


def _row_scores(measure, model, data):
    """Return the scores of single rows, if the score of the fold is their mean; else None."""
    if not _is_own(measure, model) or not hasattr(model, "score_samples"):
        return None
    rows = model.score_samples(data.X)
    if isinstance(rows, tuple) or np.shape(rows) != (count_rows(data.X),):
        return None
    rows = np.asarray(rows, dtype=float)
    mean = np.average(rows, weights=data.weight)
    return rows if np.isclose(mean, score_of(measure, model, data), rtol=SAME, atol=0) else None


def _answers(method):
    """Make the method that joins what the models say, each of the rows that it did not see."""

    def joined(self, X):
        found = [answers(model, method, rows, self.classes) for model, rows in zip(self.models, self.tables, strict=True)]
        return np.concatenate(found)

    joined.__name__ = method
    return available_if(lambda self: all(hasattr(model, method) for model in self.models))(joined)


class HeldOut(BaseEstimator):
    """The models of all folds as one, which knows the rows it will be asked about: those that each fold held out.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> up, down = LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]), LinearRegression().fit([[0.0], [1.0]], [1.0, 0.0])
    >>> HeldOut([up, down], [[[5.0]], [[5.0]]]).predict(None)
    array([ 5., -4.])
    """

    def __init__(self, models, tables, classes=None):
        self.models = models
        self.tables = tables
        self.classes = classes
        if classes is not None:
            self.classes_ = classes

    def __sklearn_tags__(self):
        return get_tags(self.models[0])

    def __sklearn_is_fitted__(self):
        return True

    predict = _answers("predict")
    predict_proba = _answers("predict_proba")
    predict_log_proba = _answers("predict_log_proba")
    decision_function = _answers("decision_function")
