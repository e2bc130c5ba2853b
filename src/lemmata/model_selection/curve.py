"""Curves over folds: the scores of fits and of held-out rows, point by point, and the certificate that repeats them.

The best point has the highest mean score over folds; the simplest one is the first whose mean is within one standard error of
the best [1]. Standard errors are the classical ones; intervals are corrected for the rows that fits share [2, 3].

[1] Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984). [2] Nadeau & Bengio, Machine Learning 52
(2003). [3] Bengio & Grandvalet, JMLR 5 (2004).
"""

from dataclasses import dataclass, field
from functools import partial
from itertools import product
from operator import attrgetter

import numpy as np
from sklearn.base import is_classifier

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, length, same
from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.model_selection.cross_validation_certificate import told_if_unprovable
from lemmata.model_selection.fold import Data, fit_to, told
from lemmata.model_selection.one_standard_error import least, within_one_standard_error
from lemmata.model_selection.scoring import measure_of, score_of
from lemmata.model_selection.splits import count_rows, make_splits
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
        """The value with the highest mean score of the rows held out; the first among equals. A mean of NaN is none."""
        return self.values[least(-self.test_means)]

    @property
    def simplest(self):
        """The first value whose mean score is within one standard error of the highest."""
        return self.values[int(np.argmax(within_one_standard_error(-self.test_scores)))]

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
        other = sum(
            len(rows) != size or not np.isin(rows, train).all()
            for own, (train, _) in zip(self.rows, self.splits, strict=True)
            for rows, size in zip(own, self._fitted(train), strict=True)
        )
        again = scores_of_fits(self._models(), data, self.splits, self.rows, self.scoring, apart=True)
        scores = [
            same_at_points(self.test_scores, again[1], "scores of held-out rows", "fits without these rows give the same"),
            same_at_points(self.train_scores, again[0], "scores of the fits", "fits without the held-out rows give the same"),
        ]
        return [
            Check("rows on both sides", 0.0, 0.5, "proof", "no model was fitted to a row that it was tested on"),
            Check("rows of the fits", float(other), 0.5, "proof", "each fit has as many rows of its fold as is claimed"),
            *told_if_unprovable(scores, self.estimator),
        ]

    def _models(self):
        return [self.estimator] * len(self.values)

    def _fitted(self, train):
        """Tell how many rows of a fold the fits should have, point by point."""
        return [len(train)] * len(self.values)


def same_at_points(stored, found, name, claim):
    """Check scores (folds, points) against those found again, point by point: one that explodes would hide all others.

    Examples
    --------
    >>> found = np.array([[0.5, 0.7, -1e11], [0.5, 0.6, -2e11]])
    >>> same_at_points(found * [1.01, 1.0, 1.0], found, "scores", "they are the same").holds
    False
    """
    if np.shape(stored) != found.shape:
        return same(stored, found, name, claim)
    floor = SAME_LIMIT * float(np.median([length(np.nan_to_num(column)) for column in found.T]))
    checks = [same(*pair, name, claim, floor=floor) for pair in zip(np.asarray(stored).T, found.T, strict=True)]
    return max(checks, key=attrgetter("value"))


def splits_for(estimator, data, cv, groups, rng):
    """Split the rows as for `cross_validate`."""
    labels = is_classifier(estimator)
    return make_splits(data.X, data.y, cv, groups=groups, weight=data.weight, classifier=labels, random_state=rng)


def scores_of_fits(models, data, splits, rows, scoring, *, apart=False, n_jobs=None, verbose=0):
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
    with told(f"In fold {i}, fitting {models[j]} to {len(own)} rows."):
        model = fit_to(models[j], table, own)
        return score_of(measure, model, table.rows(own)), score_of(measure, model, data.rows(held_out))
