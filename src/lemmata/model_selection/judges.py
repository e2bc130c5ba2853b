"""By what orders are judged: each judge gives the losses of all orders, and gives them again when the choice is certified.

A judge is made before the fits and asked twice: `losses(fits)` after them, and `again(curve, data)` by the certificate, which
starts from the fitted models and the rows alone.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone

from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.model_selection.criteria import information_criteria
from lemmata.model_selection.cross_validation import cross_validate
from lemmata.model_selection.fold import Data, fit_to
from lemmata.model_selection.heard import hear, listening
from lemmata.model_selection.restarts import own_objective, training_objectives
from lemmata.model_selection.scoring import measure_of, score_of
from lemmata.model_selection.splits import count_rows
from lemmata.model_selection.stability import stability


class Fits(NamedTuple):
    """The candidates and their best fits to all rows."""

    candidates: list  # for each order, the unfitted estimators of all restarts
    models: list
    criteria: list
    objectives: np.ndarray
    data: Data
    n_jobs: Any
    notes: list  # for each order, what its fits had to say


def of_criteria(name, criteria):
    """Give the value of a criterion of a model; for "evidence", its logarithm with the sign turned.

    Examples
    --------
    >>> from lemmata.model_selection.criteria import InformationCriteria
    >>> of_criteria("aic", InformationCriteria(-10.0, {"means": 2}, 50))
    24.0
    """
    if criteria is None:
        return np.nan
    if name != "evidence":
        return float(getattr(criteria, name))
    if criteria.log_evidence is None:
        raise ValueError("The model has no evidence: judge by 'bic', which approximates −2 ln evidence, or by 'cv'.")
    return -float(criteria.log_evidence)


class Judge:
    """What all judges have."""

    def judged(self, i):
        """Give the models of an order that were judged, beside that of all rows."""
        return ()


@dataclass
class CriterionJudge(Judge):
    """Judges by an information criterion of the fit to all rows."""

    criterion: str

    def losses(self, fits):
        """Give one line of losses."""
        found = np.full((1, len(fits.models)), np.nan)
        for i, criteria in enumerate(fits.criteria):
            heard = hear(lambda criteria=criteria: of_criteria(self.criterion, criteria))
            found[0, i] = np.nan if heard.error or fits.notes[i].failed else heard.result
            fits.notes[i].take(heard)
            if np.isinf(found[0, i]):
                fits.notes[i].say(f"the criterion is {found[0, i]}.")
                found[0, i] = np.nan
        return found

    def again(self, curve, data):
        """Count parameters and likelihoods of all models anew."""
        found = np.full((1, len(curve.models)), np.nan)
        for i in np.flatnonzero(np.isfinite(curve.means)):
            criteria = information_criteria(curve.models[i], data.X, data.y, sample_weight=data.weight)
            found[0, i] = of_criteria(self.criterion, criteria)
        return found


@dataclass
class ObjectiveJudge(Judge):
    """Judges by the training objective."""

    criterion: ClassVar[str] = "elbow"

    def losses(self, fits):
        """Give one line of objectives."""
        for model, notes, objective in zip(fits.models, fits.notes, fits.objectives, strict=True):
            if model is not None and np.isnan(objective):
                notes.take(hear(partial(own_objective, model, fits.data)))
        return np.where([notes.failed for notes in fits.notes], np.nan, fits.objectives)[None]

    def again(self, curve, data):
        """Compute the objectives of all models anew."""
        return np.where(np.isfinite(curve.means), training_objectives(curve.models, data), np.nan)[None]


@dataclass
class FoldJudge(Judge):
    """Judges by the score of held-out rows, in the same folds for all orders; of each fold the best of all restarts counts.

    The best restart is the one with the highest score on the rows of its fit: the rows held out have no part in it.
    """

    criterion: ClassVar[str] = "cv"
    splits: list
    scoring: Any
    models: list = field(default_factory=list, repr=False)

    def losses(self, fits):
        """Give a line of losses for each fold."""
        columns, X, y = [], fits.data.X, fits.data.y
        for candidates, model, notes in zip(fits.candidates, fits.models, fits.notes, strict=True):
            column, models = np.full(len(self.splits), np.nan), None
            if model is not None:
                heard = hear(lambda candidates=candidates: [self._restart(c, X, y, fits) for c in candidates])
                notes.take(heard, "in a fold: ")
                if not heard.error:
                    found = heard.result
                    best = np.argmax([restart.train_scores for restart in found], axis=0)
                    column = np.array([-found[b].test_scores[i] for i, b in enumerate(best)])
                    models = [found[b].estimators[i] for i, b in enumerate(best)]
                    for loss in column[~np.isfinite(column)]:
                        notes.say(f"in a fold: the score of the rows held out is {-loss}.")
            columns.append(column)
            self.models.append(models)
        return np.array(columns).T

    def _restart(self, candidate, X, y, fits):
        options = {"cv": self.splits, "scoring": self.scoring, "method": None, "n_jobs": fits.n_jobs}
        return cross_validate(candidate, X, y, sample_weight=fits.data.weight, **options)

    def again(self, curve, data):
        """Fit to every fold once more, to a table in which the rows held out are not, and score these."""
        tasks = [(i, j) for j, models in enumerate(self.models) if models for i in range(len(self.splits))]
        with listening():
            scores = fit_all(partial(self._repeat, data), tasks, ours=isinstance(curve.model, Estimator), name="folds")
        found = np.full((len(self.splits), len(self.models)), np.nan)
        for (i, j), score in zip(tasks, scores, strict=True):
            found[i, j] = np.nan if score.error else -score.result
        return found

    def judged(self, i):
        """Give the models of the folds."""
        return self.models[i] or ()

    def _repeat(self, data, task):
        return hear(partial(self._score_anew, data, *task))

    def _score_anew(self, data, i, j):
        train, test = self.splits[i]
        left = np.setdiff1d(np.arange(count_rows(data.X)), test)
        places = np.searchsorted(left, train[~np.isin(train, test)])
        model = fit_to(self.models[j][i], data.rows(left), places)
        return score_of(measure_of(model, self.scoring), model, data.rows(test))


@dataclass
class StabilityJudge(Judge):
    """Judges by how far clusterings of samples agree, the same samples for all orders."""

    criterion: ClassVar[str] = "stability"
    n_resamples: int
    seed: int
    candidates: list = field(default_factory=list, repr=False)

    def losses(self, fits):
        """Give a line of losses for each pair of samples."""
        columns = []
        for candidates, model, notes in zip(fits.candidates, fits.models, fits.notes, strict=True):
            self.candidates.append(None if model is None else candidates[0])
            heard = hear(lambda data=fits.data: self._column(self.candidates[-1], data, fits.n_jobs))
            notes.take(heard, "in a sample: ")
            if not heard.error and np.isnan(heard.result).any():
                notes.say("a sample has one cluster only, which is stable and says nothing")
            columns.append(np.full(self.n_resamples, np.nan) if heard.error else heard.result)
        return np.array(columns).T

    def _column(self, candidate, data, n_jobs=None):
        if candidate is None:
            return np.full(self.n_resamples, np.nan)
        options = {"n_resamples": self.n_resamples, "random_state": self.seed, "n_jobs": n_jobs}
        return stability(clone(candidate), data.X, sample_weight=data.weight, **options).losses

    def judged(self, i):
        """Give the estimator that was fitted to the samples."""
        return (self.candidates[i],)

    def again(self, curve, data):
        """Draw the samples and fit to them once more."""
        with listening():
            columns = [hear(lambda c=c: self._column(c, data)).result for c in self.candidates]
        return np.array([np.full(self.n_resamples, np.nan) if column is None else column for column in columns]).T
