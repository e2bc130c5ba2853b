"""Learning curves: the score over the number of rows of the fit.

Fit to more and more rows of each fold and score the rows held out. Where the curve still rises, more data help; where it has
met the score of the fit, they do not, and a richer model might. The rows of a smaller fit are among those of a larger one.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone, is_classifier

from lemmata.core.random import generator
from lemmata.model_selection.curve import Curve, scores_of_fits, splits_for
from lemmata.model_selection.fold import Data
from lemmata.model_selection.splits import keeps_time


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

    def _fitted(self, train):
        return self.values


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
    splits = splits_for(estimator, data, cv, groups, rng)
    sizes = _sizes(train_sizes, min(len(train) for train, _ in splits))
    labels = data.y if is_classifier(estimator) and data.y is not None and data.y.ndim == 1 else None
    orders = [train[::-1] if keeps_time(cv) else growing(train, labels, rng) for train, _ in splits]
    rows = [[np.sort(order[:size]) for size in sizes] for order in orders]
    template = clone(estimator)
    train, test = scores_of_fits([template] * len(sizes), data, splits, rows, scoring, n_jobs=n_jobs, verbose=verbose)
    return LearningCurve(sizes, train, test, splits, rows, template, scoring, data.fit_params)


def _sizes(train_sizes, most):
    """Read numbers of rows, or shares of the largest number."""
    sizes = np.asarray(list(train_sizes) if np.iterable(train_sizes) else [train_sizes])
    if sizes.dtype.kind == "f" and len(sizes) and (sizes > 0).all() and (sizes <= 1).all():
        sizes = np.maximum(1, (sizes * most).astype(np.int64))
    if sizes.dtype.kind not in "iu" or not len(sizes) or sizes.min() < 1 or sizes.max() > most:
        raise ValueError(
            f"train_sizes must be numbers of rows from 1 to {most}, as the smallest fit has, or shares; got {sizes.tolist()}."
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
