"""The certificate of a cross-validation: each row was predicted as often as is claimed, by models that never saw it.

Read from the splits alone, by counting: no row is on both sides of a fold, nor is a group; none was fitted that comes later,
where time was promised; and every row was held out as often as is claimed.
Recomputed from the data, as identities: the model of a fold is fitted once more to a table from which the rows held out have
been removed, and once more to a table in which other rows stand in their places. If both repeat the predictions, these are a
function of the rows to fit alone. Nor does what is said of a row depend on which other held-out rows are asked about with it.
Scores follow from the models.
That is proof for all that passes through `fit`. What an estimator knew before is another matter, and there is evidence only:
nothing fitted and no table of that length may be in its reach; and if the targets of every fit are reversed (each class
becomes the next one, numbers are mirrored), the predictions must turn with them. What looks its answers up stays right.
Nothing can be seen here of a table that was prepared with all rows in view, by a choice of columns for example: put such steps
into a pipeline. An estimator that draws anew in each fit cannot be repeated, hence not proved.
"""

import re
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import r2_score

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, length, same
from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.model_selection.cumulative import joined
from lemmata.model_selection.fold import Data, answers, classes_of, fit_to
from lemmata.model_selection.knowledge import knowledge
from lemmata.model_selection.scoring import measure_of, pooled_score, score_of
from lemmata.model_selection.splits import check_groups, count_rows, fold_numbers, times_held_out

NONE = 0.5  # a limit on counts: less than one
KEPT = 0.25  # of the skill: a lookup keeps all of it when the targets are reversed, what learns from them none
ANEW = "cannot be proved: {} is None, so every fit draws anew; give it a number"


def certify_cross_validation(result, X, y=None, sample_weight=None, groups=None):
    """Check from the data that no fold knew the rows it was tested on. It takes three fits for each fold.

    Parameters
    ----------
    result : CrossValidation.
    X, y, sample_weight : The data that were cross-validated.
    groups : Group of each row, if groups were to stay together.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from lemmata.linear_model import Ridge
    >>> from lemmata.model_selection import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    >>> found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    >>> found.certify(X, y).holds
    True
    >>> seen = replace(found, predictions=Ridge().fit(X, y).predict(X))
    >>> [check.name for check in seen.certify(X, y).failed]
    ['cumulative predictions']
    """
    data = Data.of(X, y, sample_weight, result.fit_params)
    n = count_rows(data.X)
    if len(result.predicted) != n:
        raise ValueError(f"{len(result.predicted)} rows were cross-validated, and there are {n}.")
    check_groups(groups, data.X)
    structure = split_checks(result, n, data.weight, groups)
    known = knowledge(result.estimator, n)
    claim = f"it knew before: {'; '.join(known)}" if known else "nothing fitted and no table of so many rows is in its reach"
    structure.append(Check("known before the folds", float(len(known)), NONE, "evidence", claim))
    if not all(check.holds for check in structure if check.kind == "proof"):
        return Certificate(*structure, subject="cross-validation")  # there are no folds to repeat
    return Certificate(*structure, *fit_checks(result, data), subject="cross-validation")


def split_checks(result, n, weight, groups):
    """Count what the splits promise."""
    splits, times = result.splits, times_held_out(result.splits, n)
    both = sum(len(np.intersect1d(train, test)) for train, test in splits)
    checks = [Check("rows on both sides", float(both), NONE, "proof", "no model was fitted to a row that it was tested on")]
    present = np.ones(n, dtype=bool) if weight is None else weight > 0
    wrong = (times > 0) & ~present
    if result.times is not None:
        wrong |= (times != result.times) & present
    wrong |= result.predicted != (times > 0)
    folds = fold_numbers(splits, n)
    if folds.shape == result.fold.shape:
        wrong |= (folds != result.fold).reshape(-1, n).any(axis=0)
    often = {None: "rows are held out as claimed", 1: "every row is held out once"}
    claim = often.get(result.times, f"every row is held out {result.times} times")
    value = np.inf if folds.shape != result.fold.shape else float(wrong.sum())
    checks.append(Check("rows held out", value, NONE, "proof", claim))
    if groups is not None:
        groups = np.asarray(groups)
        divided = sum(len(np.intersect1d(groups[train], groups[test])) for train, test in splits)
        checks.append(Check("groups on both sides", float(divided), NONE, "proof", "no group is divided by a fold"))
    if result.ordered:
        early = sum(int(test.min() < train.max()) for train, test in splits)
        checks.append(Check("folds against time", float(early), NONE, "proof", "rows are tested after those of the fit"))
    return checks


def fit_checks(result, data):
    """Repeat every fold without the rows it held out, and compare."""
    estimator, splits = result.estimator, result.splits
    measure, classes = measure_of(estimator, result.scoring), classes_of(estimator, data, splits)
    work = partial(_repeat, estimator, data, result.method, measure, classes)
    folds = fit_all(work, splits, ours=isinstance(estimator, Estimator), name="folds")
    models = [fold.model for fold in folds]
    stored = result.test_scores, result.train_scores, [result.score]
    again = [fold.test_score for fold in folds], [fold.train_score for fold in folds]
    again += ([pooled_score(measure, models, splits, data, classes)],)
    floor = SAME_LIMIT * length(np.nan_to_num(np.concatenate(again)))  # what is left of a perfect fit's errors is rounding
    claim = "they follow from the models of the folds"
    scores = [same(*pair, "scores", claim, floor=floor) for pair in zip(stored, again, strict=True)]
    checks = [] if result.method is None else prediction_checks(result, data, folds, classes)
    checks.append(max(scores, key=attrgetter("value")))
    if result.chosen is not None:
        other = sum(written(model.best_params_) != written(own) for model, own in zip(models, result.chosen, strict=True))
        checks.append(Check("choices", float(other), NONE, "proof", "searches without the held-out rows choose the same"))
    left = skill_left(estimator, data, splits, models)
    if left is not None:
        claim = "with the targets of the fits reversed, the predictions turn with them"
        checks.append(Check("skill with reversed targets", left, KEPT, "evidence", claim))
    return checks


def prediction_checks(result, data, folds, classes):
    """Compare what was said of the held-out rows with what the repeated folds say."""
    again, splits = np.concatenate([fold.removed for fold in folds]), result.splits
    compared = [
        ("held-out rows removed", result.fold_predictions, "fits to tables without the held-out rows predict the same"),
        ("others in their places", [fold.replaced for fold in folds], "nor does it matter what stands in their places"),
        ("asked apart", [fold.apart for fold in folds], "what is said of a row does not depend on others asked about"),
    ]
    if result.estimators is not None:
        asked = zip(result.estimators, splits, strict=True)
        kept = [answers(model, result.method, data.rows(test).X, classes) for model, (_, test) in asked]
        compared.append(("models kept", kept, "the models that were kept are those of the folds"))
    checks = [alike(np.concatenate(found), again, name, claim) for name, found, claim in compared]
    checks = told_if_unprovable(checks, result.estimator)
    labels = result.method == "predict" and not is_regressor(result.estimator)
    cumulative = joined([fold.removed for fold in folds], splits, count_rows(data.X), labels)
    claim = "each row has what was said of it when held out"
    return [*checks, alike(result.predictions, cumulative, "cumulative predictions", claim)]


def told_if_unprovable(checks, estimator):
    """Say of the checks that fail why they must, where every fit of an estimator draws anew.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> told_if_unprovable([Check("scores", 1.0, 0.0, "proof", "they are the same")], KMeans())[0].claim
    'cannot be proved: random_state is None, so every fit draws anew; give it a number'
    """
    anew = [name for name, value in estimator.get_params().items() if name.endswith("random_state") and value is None]
    unprovable = ANEW.format(" and ".join(anew))
    return [replace(check, claim=unprovable) if anew and not check.holds else check for check in checks]


class _Again(NamedTuple):
    model: object
    removed: np.ndarray
    replaced: np.ndarray
    apart: np.ndarray
    test_score: float
    train_score: float


def _repeat(estimator, data, method, measure, classes, split):
    """Fit a fold where its held-out rows do not exist, and where others stand in their places; ask both about these rows."""
    train, test = split
    n, held_out = count_rows(data.X), data.rows(test)
    left = np.setdiff1d(np.arange(n), test)
    model = fit_to(estimator, data.rows(left), np.searchsorted(left, train))
    places = np.arange(n)
    places[test] = np.random.default_rng(0).choice(train, len(test))
    stranger = fit_to(estimator, data.rows(places), train)
    backwards, half = np.arange(len(test))[::-1], (len(test) + 1) // 2
    parts = [part for part in (backwards[:half], backwards[half:]) if len(part)]
    apart = np.concatenate([answers(model, method, held_out.rows(part).X, classes) for part in parts])[::-1]
    return _Again(
        model,
        answers(model, method, held_out.X, classes),
        answers(stranger, method, held_out.X, classes),
        apart,
        score_of(measure, model, held_out),
        score_of(measure, model, data.rows(train)),
    )


def written(choice):
    """Write what a search chose; copies of an estimator, a kernel or an array are written alike, though they may not be equal.

    Examples
    --------
    >>> written({"step": object()})
    "{'step': <object object>}"
    """
    return re.sub(" at 0x[0-9a-f]+", "", repr(choice))


def alike(stored, found, name, claim):
    """Check that two arrays of numbers or labels are the same, up to rounding of numbers.

    Examples
    --------
    >>> alike(np.array(["a", "b"]), np.array(["a", "a"]), "labels", "they agree").value
    0.5
    """
    stored, found = np.asarray(stored), np.asarray(found)
    if stored.shape != found.shape:
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    if stored.dtype.kind == "f" and found.dtype.kind == "f":
        strange = ~np.isfinite(found)  # −∞ of a class that was not there; equal only to itself
        if not np.array_equal(stored[strange], found[strange], equal_nan=True):
            return Check(name, np.inf, SAME_LIMIT, "proof", claim)
        return same(np.where(strange, 0, stored), np.where(strange, 0, found), name, claim)
    return Check(name, float(np.mean(stored != found)) if stored.size else 0.0, SAME_LIMIT, "proof", claim)


def skill_left(estimator, data, splits, models):
    """Tell how much of the skill is left if every fit has its targets reversed; None where there are none to reverse.

    Skill is 0 to 1. Of numbers it is the smaller R² of the two fits, or zero; of labels, the share of rows that are right with
    true and with reversed targets, averaged over classes, in so far as it exceeds that of a constant label.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> data = Data.of([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.0, 3.0])
    >>> splits = [(np.array([0, 1]), np.array([2, 3]))]
    >>> skill_left(Ridge(), data, splits, [fit_to(Ridge(), data, splits[0][0])])
    0.0
    """
    labels, y = is_classifier(estimator), data.y
    if y is None or y.ndim != 1 or not (labels or is_regressor(estimator)):
        return None
    rows = np.concatenate([test for _, test in splits])
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) < 2 or len(np.unique(y[rows])) < 2:
        return None
    reverse = data._replace(y=classes[(numbers + 1) % len(classes)] if labels else classes[0] + classes[-1] - y)
    fits = fit_all(
        partial(_reversed, estimator, reverse, data), splits, ours=isinstance(estimator, Estimator), name="folds, reversed"
    )
    turned = np.concatenate(fits)
    before = np.concatenate([model.predict(data.rows(test).X) for model, (_, test) in zip(models, splits, strict=True)])
    weight = None if data.weight is None else data.weight[rows]
    if not labels:
        return max(0.0, min(r2_score(y[rows], found, sample_weight=weight) for found in (before, turned)))
    right = (before == y[rows]) & (turned == y[rows])
    shares = [
        np.average(right[at], weights=None if weight is None else weight[at])
        for at in (y[rows] == c for c in classes)
        if at.any()
    ]
    chance = 1 / len(classes)
    return max(0.0, (float(np.mean(shares)) - chance) / (1 - chance))


def _reversed(estimator, reverse, data, split):
    train, test = split
    return np.asarray(fit_to(estimator, reverse, train).predict(data.rows(test).X))
