"""Cross-validation: every row is predicted by a model that never saw it.

Cut the rows into K random equal folds; for each, fit to the other K − 1 and predict the rows held out. The predictions of
all folds together are the cumulative predictions, one for each row of the table, and their score estimates that of a model
fitted to (K − 1)/K of the rows [1]. For least squares and ridge regression, ŷ = Py, leaving each row out in turn needs no
loop: the residual of the row held out is (y_i − ŷ_i)/(1 − P_ii) [2].
If anything was chosen by the score of the held-out rows, the score of the choice is too good. A search that is itself
cross-validated (nested cross-validation) chooses anew within the training rows of each fold, so that its score is honest.

[1] Stone, J. Roy. Stat. Soc. B 36 (1974). [2] Allen, Technometrics 16 (1974).
"""

from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor

from lemmata.core.estimator import Estimator, gives_groups
from lemmata.core.fits import fit_all
from lemmata.model_selection.cross_validation_certificate import certify_cross_validation
from lemmata.model_selection.cumulative import joined
from lemmata.model_selection.fold import Data, answers, chosen_method, classes_of, fit_to, told
from lemmata.model_selection.scoring import measure_of, pooled_score, score_of
from lemmata.model_selection.splits import count_rows, fold_numbers, keeps_time, make_splits, times_held_out
from lemmata.model_selection.spread import fold_interval, standard_errors


@dataclass(frozen=True)
class CrossValidation:
    """What the models of all folds said of the rows that they did not see.

    Attributes
    ----------
    predictions : One for each row, in the order of the table: the mean over repeats of numbers and probabilities, the most
        frequent of labels (the first among equals). Rows that no fold held out have NaN, or None among words; so have all
        if only scores were asked for.
    predicted : Which rows were held out at least once.
    fold : Number of the fold that held a row out, −1 for none; (n,), or (repeats, n) if some were held out again.
    splits : Pairs (rows to fit, rows held out), for each fold.
    test_scores, train_scores : Score of each fold on the rows held out, and on those of its fit.
    score : Of all held-out rows at once; NaN if this score cannot be pooled.
    fold_predictions : Predictions of each fold, in the order of its held-out rows.
    estimators : Fitted models, or None if they were not kept.
    chosen : What the search within each fold chose (`best_params_`); None if there was none.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> found = cross_validate(LinearRegression(), [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0], cv=2, random_state=0)
    >>> found.predictions, found.mean, found.n_folds
    (array([1., 3., 5., 7.]), 1.0, 2)
    """

    predictions: np.ndarray = field(repr=False)
    predicted: np.ndarray = field(repr=False)
    fold: np.ndarray = field(repr=False)
    splits: list = field(repr=False)
    test_scores: np.ndarray
    train_scores: np.ndarray
    score: float
    fold_predictions: list = field(repr=False)
    estimators: list | None = field(repr=False)
    chosen: list | None = field(repr=False)
    times: int | None = field(repr=False)  # how often each row is held out, None if not all equally often
    ordered: bool = field(repr=False)  # whether the splitter promised to test after the rows of the fit
    estimator: object = field(repr=False)
    method: str = field(repr=False)
    scoring: object = field(repr=False)
    fit_params: dict | None = field(repr=False)

    @property
    def n_folds(self):
        """Number of folds, those of all repeats together."""
        return len(self.splits)

    @property
    def mean(self):
        """Mean score of the folds on the rows held out."""
        return float(self.test_scores.mean())

    @property
    def standard_error(self):
        """Classical standard error of the mean, as if folds were independent; `interval` knows better."""
        return float(standard_errors(self.test_scores))

    def interval(self, level=0.95):
        """Return the ends of an approximate interval of the mean score, corrected for the rows that fits share.

        The correction is that of Nadeau & Bengio (2003); no unbiased one exists (Bengio & Grandvalet 2004).
        """
        low, high = fold_interval(self.test_scores, self.splits, level)
        return float(low), float(high)

    def certify(self, X, y=None, sample_weight=None, groups=None):
        """Check from the data that no fold knew the rows it was tested on; see `certify_cross_validation`."""
        return certify_cross_validation(self, X, y, sample_weight, groups)


def cross_validate(
    estimator,
    X,
    y=None,
    *,
    cv=5,
    groups=None,
    sample_weight=None,
    scoring=None,
    method="auto",
    n_jobs=None,
    verbose=0,
    random_state=None,
    return_estimators=True,
    fit_params=None,
):
    """Predict every row by a model that was fitted without it, and score the predictions.

    Parameters
    ----------
    estimator : Any estimator, of lemmata or scikit-learn, a pipeline or a search; it is cloned for every fold.
    X : Table in memory: array, sparse matrix, frame of any library, or a list of sequences or texts.
    y : Targets; None for estimators that need none, whose own score of held-out rows (log-likelihood of a mixture) is taken.
    cv : Number of random equal folds, in which every class has its share if the estimator is a classifier and no group is
        divided if there are groups; a splitter of scikit-learn; or pairs (rows to fit, rows to test).
    groups : Group of each row, for a number of folds or a splitter that knows groups; pairs that divide one are refused.
    sample_weight : A weight means repetition, in the fits and in the scores; zero means absent. A row stays whole: it lies in
        one fold however much it weighs, so that its copies are never on both sides. Folds are equal in rows, not in weight.
    scoring : Name of a scorer of scikit-learn, or a function of (model, X, y). Default: the estimator's own `score`.
    method : What to ask about held-out rows: "predict", "predict_proba", "decision_function", "transform" or any other
        method of rows; None for scores alone, as of sequences. "auto": "predict", or without targets the first there is of
        "score_samples", "predict", "transform".
    n_jobs : Folds at the same time: threads for lemmata's estimators, else processes; None for as many threads, or one process.
    verbose : 1 shows a progress bar.
    random_state : Seed by which a number of folds is shuffled. It is not handed to the estimator, which has its own.
    return_estimators : Whether to keep the fitted models.
    fit_params : Further arguments of `fit` by name; those with one entry for each row are divided like the rows.

    Returns
    -------
    CrossValidation : predictions, fold, test_scores, train_scores, mean, standard_error, score, estimators, and `certify`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lemmata.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> found = cross_validate(Ridge(alpha=0.1), X, y, random_state=0)
    >>> found.score, found.mean, found.standard_error
    (0.496, 0.497, 0.015)
    >>> found.certify(X, y).holds
    True

    Nested: the search chooses within each fold, and is scored on rows that had no part in choosing.

    >>> search = GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1.0]}, cv=3)
    >>> nested = cross_validate(search, X, y, random_state=0)
    >>> [choice["alpha"] for choice in nested.chosen], nested.score
    ([0.01, 0.1, 0.1, 0.01, 0.01], 0.496)
    """
    data, template = Data.of(X, y, sample_weight, fit_params), clone(estimator)
    n, labels = count_rows(data.X), is_classifier(estimator)
    splits = make_splits(data.X, data.y, cv, groups=groups, weight=data.weight, classifier=labels, random_state=random_state)
    measure, method = measure_of(estimator, scoring), chosen_method(estimator, method, data.y)
    times = times_held_out(splits, n)
    if method == "predict" and times.max() > 1 and gives_groups(estimator):
        raise ValueError(
            f"{type(estimator).__name__} numbers its groups anew in each fit, so repeats cannot be joined: hold each row "
            "out once, or name another method."
        )
    classes = classes_of(estimator, data, splits)
    work, numbered = partial(_fold, template, data, method, measure, classes), list(enumerate(splits))
    folds = fit_all(work, numbered, ours=isinstance(estimator, Estimator), n_jobs=n_jobs, verbose=verbose, name="folds")
    models, parts = [fold.model for fold in folds], [fold.predictions for fold in folds]
    present = times[np.ones(n, dtype=bool) if data.weight is None else data.weight > 0]
    return CrossValidation(
        predictions=joined(parts, splits, n, labels=method == "predict" and not is_regressor(estimator)),
        predicted=times > 0,
        fold=fold_numbers(splits, n),
        splits=splits,
        test_scores=np.array([fold.test_score for fold in folds]),
        train_scores=np.array([fold.train_score for fold in folds]),
        score=pooled_score(measure, models, splits, data, classes),
        fold_predictions=parts,
        estimators=models if return_estimators else None,
        chosen=[model.best_params_ for model in models] if all(hasattr(model, "best_params_") for model in models) else None,
        times=int(present.max()) if len(np.unique(present)) == 1 else None,
        ordered=keeps_time(cv),
        estimator=template,
        method=method,
        scoring=scoring,
        fit_params=data.fit_params,
    )


class _Fold(NamedTuple):
    model: object
    predictions: np.ndarray
    test_score: float
    train_score: float


def _fold(estimator, data, method, measure, classes, numbered):
    """Fit a fold and ask its model about the rows held out."""
    number, (train, test) = numbered
    with told(f"In fold {number}, of {len(train)} rows to fit and {len(test)} held out."):
        model, held_out = fit_to(estimator, data, train), data.rows(test)
        return _Fold(
            model,
            answers(model, method, held_out.X, classes),
            score_of(measure, model, held_out),
            score_of(measure, model, data.rows(train)),
        )
