"""Learning curves and validation curves: the score over the number of rows, and over the complexity of the model.

A learning curve fits to more and more rows of each fold and scores the rows held out: where it still rises more data
help, and where it has met the score of the fit they do not. The rows of a smaller fit are among those of a larger one.
A validation curve fits with more and more complex models. If the models are nested, so that each can do all that those before
it can, and fits are best fits, the score of the fit never falls; the score of the rows held out falls once the model fits
noise. The best value has the highest mean score over folds; the simplest one is the first whose mean is within one standard
error of the best [1]. Standard errors are the classical ones; intervals are corrected for the rows that fits share [2, 3].

[1] Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984). [2] Nadeau & Bengio, Machine Learning 52
(2003). [3] Bengio & Grandvalet, JMLR 5 (2004).
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import product

import numpy as np
from sklearn.base import clone, is_classifier

from lemmata.core.certificate import GAP_LIMIT, TINY, Certificate, Check, same
from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.core.random import generator
from lemmata.model_selection.fold import Data, fit_to
from lemmata.model_selection.scoring import measure_of, score_of
from lemmata.model_selection.splits import count_rows, keeps_time, make_splits
from lemmata.model_selection.spread import fold_interval, standard_errors


@dataclass(frozen=True)
class Curve:
    """Scores of the fits and of the rows held out, at each point of a curve and in each fold.

    Attributes
    ----------
    values : Where the curve was taken: numbers of rows, or values of a parameter.
    train_scores, test_scores : (folds, points).
    splits : Pairs (rows to fit, rows held out), for each fold.
    """

    values: list
    train_scores: np.ndarray = field(repr=False)
    test_scores: np.ndarray = field(repr=False)
    splits: list = field(repr=False)
    rows: list = field(repr=False)  # those of the fit at each point, for each fold
    estimator: object = field(repr=False)
    scoring: object = field(repr=False)
    fit_params: dict | None = field(repr=False)

    @property
    def train_means(self):
        """Mean score of the fits over folds, at each point."""
        return self.train_scores.mean(axis=0)

    @property
    def test_means(self):
        """Mean score of the rows held out, at each point."""
        return self.test_scores.mean(axis=0)

    @property
    def test_standard_errors(self):
        """Classical standard errors of `test_means`, as if folds were independent."""
        return standard_errors(self.test_scores)

    def train_interval(self, level=0.95):
        """Return the ends of approximate intervals of `train_means`, (2, points)."""
        return fold_interval(self.train_scores, self.splits, level)

    def test_interval(self, level=0.95):
        """Return the ends of approximate intervals of `test_means`, (2, points), corrected for the rows that fits share."""
        return fold_interval(self.test_scores, self.splits, level)

    @property
    def best(self):
        """The value with the highest mean score of the rows held out; the first among equals."""
        return self.values[int(np.argmax(self.test_means))]

    @property
    def simplest(self):
        """The first value whose mean score is within one standard error of the highest."""
        best = int(np.argmax(self.test_means))
        enough = self.test_means[best] - np.nan_to_num(self.test_standard_errors[best])
        return self.values[int(np.argmax(self.test_means >= enough))]

    def certify(self, X, y=None, sample_weight=None):
        """Check the scores by fitting every point of every fold again, where the rows held out do not exist."""
        return Certificate(*self._repeated(X, y, sample_weight), subject=type(self).__name__)

    def _repeated(self, X, y, sample_weight):
        data = Data.of(X, y, sample_weight, self.fit_params)
        both = sum(
            len(np.intersect1d(rows, test)) for own, (_, test) in zip(self.rows, self.splits, strict=True) for rows in own
        )
        if both:
            return [
                Check("rows on both sides", float(both), 0.5, "proof", "no model was fitted to a row that it was tested on")
            ]
        again = _scores(self._models(), data, self.splits, self.rows, self.scoring, apart=True)
        return [
            Check("rows on both sides", 0.0, 0.5, "proof", "no model was fitted to a row that it was tested on"),
            same(self.test_scores, again[1], "scores of held-out rows", "fits without these rows give the same"),
            same(self.train_scores, again[0], "scores of the fits", "fits without the held-out rows give the same"),
        ]

    def _models(self):
        return [self.estimator] * len(self.values)


@dataclass(frozen=True)
class LearningCurve(Curve):
    """Scores over the number of rows of the fit.

    Attributes
    ----------
    sizes : Numbers of rows, ascending.
    train_scores, test_scores : (folds, sizes).
    splits : Pairs (rows to fit, rows held out), for each fold.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> X = np.arange(12.0)[:, None]
    >>> curve = learning_curve(LinearRegression(), X, 3 * X[:, 0] + 1, train_sizes=[2, 5, 8], cv=3, random_state=0)
    >>> curve.sizes, curve.test_means
    (array([2, 5, 8]), array([1., 1., 1.]))
    >>> curve.certify(X, 3 * X[:, 0] + 1).holds
    True
    """

    @property
    def sizes(self):
        """Numbers of rows, ascending."""
        return np.array(self.values)


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
        nested : Whether each value allows all that those before it do, so that a best fit never fits its own rows worse. Then the
            largest fall of a score of the fit, relative to the range of these scores, is checked as well.
        """
        checks = self._repeated(X, y, sample_weight)
        if nested:
            claim = "each model can do what those before it can, and fits its own rows no worse"
            checks.append(Check("fall of a fit's score", largest_fall(self.train_scores), GAP_LIMIT, "proof", claim))
        return Certificate(*checks, subject=type(self).__name__)

    def _models(self):
        return [clone(self.estimator).set_params(**{self.param_name: value}) for value in self.values]


def largest_fall(scores):
    """Return the largest fall of the scores (folds, points) from any point to a later one, relative to their range.

    Examples
    --------
    >>> largest_fall(np.array([[0.0, 2.0, 4.0], [1.0, 3.0, 2.0]]))
    0.25
    """
    falls = np.maximum.accumulate(scores, axis=1) - scores
    return float(falls.max() / max(float(scores.max() - scores.min()), TINY))


def learning_curve(
    estimator,
    X,
    y=None,
    *,
    train_sizes=(0.1, 0.325, 0.55, 0.775, 1.0),
    cv=5,
    groups=None,
    sample_weight=None,
    scoring=None,
    n_jobs=None,
    verbose=0,
    random_state=None,
    fit_params=None,
):
    """Score an estimator fitted to more and more rows.

    Rows are drawn at random from those of the fold, class by class for a classifier, each larger fit keeping those of the
    smaller; where the splitter keeps the order of time, the latest ones are taken.

    Parameters
    ----------
    train_sizes : Numbers of rows, or shares of the rows that the smallest fit of a fold can have.
    cv, groups, sample_weight, scoring, n_jobs, verbose, fit_params : As for `cross_validate`.
    random_state : Seed of the folds and of the choice of rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from lemmata.linear_model import Ridge
    >>> curve = learning_curve(Ridge(alpha=0.01), *load_diabetes(return_X_y=True), random_state=0)
    >>> curve.sizes, curve.test_means.round(2)
    (array([ 35, 114, 194, 273, 353]), array([0.4 , 0.48, 0.49, 0.49, 0.5 ]))
    """
    data, rng = Data.of(X, y, sample_weight, fit_params), generator(random_state)
    splits = _splits(estimator, data, cv, groups, rng)
    sizes = _sizes(train_sizes, min(len(train) for train, _ in splits))
    labels = data.y if is_classifier(estimator) and data.y is not None and data.y.ndim == 1 else None
    orders = [train[::-1] if keeps_time(cv) else growing(train, labels, rng) for train, _ in splits]
    rows = [[np.sort(order[:size]) for size in sizes] for order in orders]
    template = clone(estimator)
    train, test = _scores([template] * len(sizes), data, splits, rows, scoring, n_jobs=n_jobs, verbose=verbose)
    return LearningCurve(sizes, train, test, splits, rows, template, scoring, data.fit_params)


def validation_curve(
    estimator,
    X,
    y=None,
    *,
    param_name,
    param_range,
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
    data, values = Data.of(X, y, sample_weight, fit_params), list(param_range)
    if param_name not in estimator.get_params():
        raise ValueError(f"{type(estimator).__name__} has no parameter {param_name!r}; get_params() lists those it has.")
    if not values:
        raise ValueError("param_range must hold at least one value.")
    splits, template = _splits(estimator, data, cv, groups, generator(random_state)), clone(estimator)
    models, rows = (
        [clone(template).set_params(**{param_name: value}) for value in values],
        [[train] * len(values) for train, _ in splits],
    )
    train, test = _scores(models, data, splits, rows, scoring, n_jobs=n_jobs, verbose=verbose)
    return ValidationCurve(values, train, test, splits, rows, template, scoring, data.fit_params, param_name)


def _splits(estimator, data, cv, groups, rng):
    labels = is_classifier(estimator)
    return make_splits(data.X, data.y, cv, groups=groups, weight=data.weight, classifier=labels, random_state=rng)


def _sizes(train_sizes, most):
    """Read numbers of rows, or shares of the largest number."""
    sizes = np.asarray(list(train_sizes))
    if sizes.dtype.kind == "f" and len(sizes) and (sizes > 0).all() and (sizes <= 1).all():
        sizes = np.maximum(1, (sizes * most).astype(np.int64))
    if sizes.dtype.kind not in "iu" or not len(sizes) or sizes.min() < 1 or sizes.max() > most:
        raise ValueError(
            f"train_sizes must be numbers of rows from 1 to {most}, as the smallest fit has, or shares of it; got {sizes.tolist()}."
        )
    return np.unique(sizes).tolist()


def growing(rows, labels, rng):
    """Order rows at random so that the first ones, however many, have about the share of each class; all labels, or None.

    Every class has its first row among the first rows, as many as there are classes.

    Examples
    --------
    >>> order = growing(np.arange(9), np.array([0, 0, 0, 0, 0, 0, 1, 1, 1]), np.random.default_rng(0))
    >>> [int((order[:size] < 6).sum()) for size in (2, 3, 6, 9)]
    [1, 2, 4, 6]
    """
    rows = rng.permutation(rows)
    if labels is None:
        return rows
    place = np.empty(len(rows))
    for label in np.unique(labels[rows]):
        own = np.flatnonzero(labels[rows] == label)
        place[own] = np.arange(len(own)) / len(own)
    return rows[np.argsort(place, kind="stable")]


def _scores(models, data, splits, rows, scoring, *, apart=False, n_jobs=None, verbose=0):
    """Score every model at every fold: of its own rows, and of those held out; each (folds, points)."""
    measure = measure_of(models[0], scoring)
    work = partial(_point, models, data, splits, rows, measure, apart)
    points = list(product(range(len(splits)), range(len(models))))
    ours = all(isinstance(model, Estimator) for model in models)
    found = fit_all(work, points, ours=ours, n_jobs=n_jobs, verbose=verbose, name="fits")
    return np.array(found).reshape(len(splits), len(models), 2).transpose(2, 0, 1)


def _point(models, data, splits, rows, measure, apart, point):
    """Fit a model of one fold; `apart`, to a table from which the rows held out were removed."""
    i, j = point
    own, held_out, table = rows[i][j], splits[i][1], data
    if apart:
        left = np.setdiff1d(np.arange(count_rows(data.X)), held_out)
        table, own = data.rows(left), np.searchsorted(left, own)
    model = fit_to(models[j], table, own)
    return score_of(measure, model, table.rows(own)), score_of(measure, model, data.rows(held_out))
