"""Validation curves: the score over the complexity of the model.

Fit more and more complex models to the rows of each fold and score the rows held out. If the models are nested, so that each
can do all that those before it can, and fits are best fits, the score of the fit never falls; that of the rows held out falls
once the model fits noise.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from lemmata.core.certificate import GAP_LIMIT, TINY, Certificate, Check
from lemmata.core.random import generator
from lemmata.model_selection.curve import Curve, scores_of_fits, splits_for
from lemmata.model_selection.fold import Data


@dataclass(frozen=True)
class ValidationCurve(Curve):
    """Scores over the values of a parameter.

    Attributes
    ----------
    param_name : Name of the parameter.
    values : Its values, in the given order.
    train_scores, test_scores : (folds, values).
    splits : Pairs (rows to fit, rows held out), for each fold.

    Examples
    --------
    >>> from lemmata.linear_model import PolynomialRegression
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(-1, 1, size=(60, 1))
    >>> y = X[:, 0] ** 2 + 0.1 * rng.normal(size=60)
    >>> curve = validation_curve(
    ...     PolynomialRegression(), X, y, param_name="degree", param_range=[1, 2, 3, 4, 5], random_state=0
    ... )
    >>> curve.best, curve.simplest
    (3, 2)
    >>> curve.certify(X, y, nested=True).holds
    True
    """

    param_name: str

    def certify(self, X, y=None, sample_weight=None, *, nested=False):
        """Check the scores by fitting every point of every fold again, where the rows held out do not exist.

        Parameters
        ----------
        nested : Whether each value allows all that those before it do, so that a best fit never fits its own rows worse. Then
            the largest fall of a score of the fit, relative to the range of these scores, is checked as well.
        """
        checks = self._repeated(X, y, sample_weight)
        if nested:
            claim = "each model can do what those before it can, and fits its own rows no worse"
            checks.append(Check("fall of a fit's score", largest_fall(self.train_scores), GAP_LIMIT, "proof", claim))
        return Certificate(*checks, subject=type(self).__name__)

    def _models(self):
        return [clone(self.estimator).set_params(**{self.param_name: value}) for value in self.values]


def validation_curve(
    estimator,
    X,
    y=None,
    param_name=None,
    param_range=None,
    *,
    cv=5,
    groups=None,
    sample_weight=None,
    scoring=None,
    n_jobs=None,
    verbose=0,
    random_state=None,
    fit_params=None,
):
    """Score an estimator with several values of a parameter, on the same folds.

    Parameters
    ----------
    param_name : Name of the parameter; of a step of a pipeline "step__name".
    param_range : Its values, from the simplest model to the most complex one.
    cv, groups, sample_weight, scoring, n_jobs, verbose, fit_params : As for `cross_validate`.
    random_state : Seed of the folds.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lemmata.tree import DecisionTreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> curve = validation_curve(
    ...     DecisionTreeRegressor(), X, y, param_name="max_depth", param_range=range(1, 7), random_state=0
    ... )
    >>> curve.best, curve.simplest
    (2, 2)
    """
    data, values = Data.of(X, y, sample_weight, fit_params), list(param_range) if np.iterable(param_range) else []
    if param_name not in estimator.get_params():
        raise ValueError(f"{type(estimator).__name__} has no parameter {param_name!r}; get_params() lists those it has.")
    if not values:
        raise ValueError(f"param_range must hold at least one value, in a list; got {param_range!r}.")
    splits, template = splits_for(estimator, data, cv, groups, generator(random_state)), clone(estimator)
    models, rows = (
        [clone(template).set_params(**{param_name: value}) for value in values],
        [[train] * len(values) for train, _ in splits],
    )
    train, test = scores_of_fits(models, data, splits, rows, scoring, n_jobs=n_jobs, verbose=verbose)
    return ValidationCurve(values, train, test, splits, rows, template, scoring, data.fit_params, param_name)


def largest_fall(scores):
    """Return the largest fall of the scores (folds, points) from any point to a later one, relative to their range.

    Examples
    --------
    >>> largest_fall(np.array([[0.0, 2.0, 4.0], [1.0, 3.0, 2.0]]))
    0.25
    """
    falls = np.maximum.accumulate(scores, axis=1) - scores
    return float(falls.max() / max(float(scores.max() - scores.min()), TINY))
