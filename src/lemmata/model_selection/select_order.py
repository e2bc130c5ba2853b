"""Choosing the order of a model: components, states, clusters, rank, degree, depth, whatever one parameter says.

A larger order always fits the rows of the fit better, so something has to be held against it: the number of parameters (AIC,
BIC), the volume of what they could have been (evidence), rows that were not seen (cross-validation), other samples that lead to
other clusters (stability), or the bend where the objective no longer falls much (elbow). The loss is least at the order
suggested; where losses come in repeats, the one-standard-error rule gives the smallest order that does about as well.

Each order is fitted from several starts and the best fit counts: one that is caught in a local optimum looks like a poor order.
All orders see the same starts, the same folds and the same samples, so that they differ by the order alone.
"""

import re
import warnings
from collections.abc import Iterable
from copy import deepcopy
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.core.random import generator
from lemmata.model_selection.criteria import information_criteria
from lemmata.model_selection.fold import Data, fit_to
from lemmata.model_selection.heard import hear, listening
from lemmata.model_selection.judges import CriterionJudge, Fits, FoldJudge, ObjectiveJudge, StabilityJudge
from lemmata.model_selection.likelihoods.account import NoLikelihoodError
from lemmata.model_selection.order_curve import UNITS, OrderCurve
from lemmata.model_selection.restarts import objective_of, seed_names, training_objectives
from lemmata.model_selection.splits import SEEDS, count_rows, make_splits

NUMBERS = re.compile(r"[\d.,\[\] ]+")
SAMPLES = 20  # pairs, by which a mean agreement is known to a quarter of its spread
# Parameters by which a model with more contains one with less, and models whose fit does not make their objective small.
NESTED = {"n_components", "n_clusters", "degree", "max_depth", "max_leaf_nodes"}
NO_OPTIMUM = {"GibbsMixture", "BayesianGaussianMixture", "LatentDirichletAllocation"}


def select_order(
    estimator,
    param,
    values,
    X,
    y=None,
    *,
    criterion="bic",
    cv=5,
    scoring=None,
    groups=None,
    n_repeats=None,
    n_restarts=3,
    nested=None,
    sample_weight=None,
    random_state=None,
    n_jobs=None,
    verbose=0,
):
    """Fit a model with several values of one parameter, and choose among them.

    Parameters
    ----------
    estimator : Any estimator, ours or scikit-learn's, or a pipeline; it is copied.
    param : Name of the parameter, such as "n_components", or "step__param" in a pipeline.
    values : Numbers to compare, of which a larger one makes a larger model.
    criterion : "bic", "aic" and "evidence" judge the fit to all rows by `information_criteria`; "cv" the score of held-out rows
        by `cross_validate`; "stability" the agreement of clusters by `stability`; "elbow" the bend of the training objective.
    cv, scoring, groups : Of "cv": as in `cross_validate`.
    n_repeats : Of "cv": how often the rows are cut anew, by default once; of "stability": pairs of samples, by default 20.
    n_restarts : Fits of each order from different seeds, of which the one with the best training objective counts; one is made
        of an estimator without `random_state`.
    nested : Whether a larger value contains the smaller ones, so that the certificate demands that training objectives do not
        rise. Default: for numbers of components, clusters and leaves, degrees and depths of models that make it small.
    sample_weight : A weight means repetition.
    random_state : Seed of restarts, folds and samples. A seed of the estimator's own is kept for the first start.
    n_jobs, verbose : As in `cross_validate`.

    Returns
    -------
    OrderCurve : values, losses, suggested, simplest, model, criteria, objectives, `certify`, `plot`. An order whose fit ends in
        an error, or from every start in a `ConvergenceWarning`, is told in a warning and in `reasons`, and has the loss NaN;
        "cv" and "stability" judge fits that have not converged too, by what they say of other rows. All that fits warn of is
        told with the order.

    Examples
    --------
    >>> import numpy as np
    >>> from lemmata.mixture import GaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(m, 1, size=(60, 2)) for m in ([0, 0], [6, 0], [0, 6])])
    >>> curve = select_order(GaussianMixture(), "n_components", range(1, 6), X, random_state=0)
    >>> curve.suggested, len(curve.model.means_)
    (3, 3)
    >>> curve.certify(X).holds
    True

    >>> from lemmata.linear_model import PolynomialRegression
    >>> x = rng.uniform(-2, 2, size=(100, 1))
    >>> y = x[:, 0] ** 3 - 2 * x[:, 0] + rng.normal(size=100)
    >>> curve = select_order(PolynomialRegression(), "degree", range(1, 8), x, y, criterion="cv", n_repeats=5, random_state=0)
    >>> curve.losses.shape, curve.simplest
    ((25, 7), 3)
    """
    values = checked_values(values)
    _check(estimator, param, criterion, scoring, groups, n_repeats, n_restarts)
    data, rng = Data.of(X, y, sample_weight), generator(random_state)
    seeds, own = rng.integers(SEEDS, size=n_restarts + 2), clone(estimator)
    candidates = [restarts_of(own.set_params(**{param: value}), seeds[2:]) for value in values]
    judge = _judge(criterion, estimator, data, cv, scoring, groups, n_repeats, seeds)
    with listening():
        fits = best_fits(candidates, data, isinstance(estimator, Estimator), n_jobs, verbose, criterion)
        losses = judge.losses(fits)
    reasons = {value: " | ".join(notes.said) for value, notes in zip(values, fits.notes, strict=True) if notes.said}
    if not np.isfinite(losses.mean(axis=0)).any():
        raise ValueError(f"No value of {param} could be judged by {criterion!r}; {param}={values[0]}: {reasons[values[0]]}")
    for value, notes in zip(values, fits.notes, strict=True):
        for category, said in notes.warnings:
            warnings.warn(f"{param}={value}: {said}", category, stacklevel=2)
    last = own.steps[-1] if hasattr(own, "steps") else ("", own)
    if nested is None:
        name = param.removeprefix(f"{last[0]}__") if last[0] else param
        nested = name in NESTED and type(last[1]).__name__ not in NO_OPTIMUM
    models, criteria = tuple(fits.models), tuple(fits.criteria)
    return OrderCurve(
        param, criterion, np.array(values), losses, models, criteria, fits.objectives, reasons, bool(nested), judge
    )


def checked_values(values):
    """Sort the values to compare, each once.

    Examples
    --------
    >>> checked_values([3, 1, 2, 2])
    [1, 2, 3]
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"values must be several numbers to compare, such as range(1, 6); got {values!r}.")
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    for value in values:
        if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(value):
            raise ValueError(f"values must be finite numbers, so that one is smaller than another; got {value!r}.")
    if not values:
        raise ValueError("values must hold at least one number to try.")
    return sorted(set(values))


def _check(estimator, param, criterion, scoring, groups, n_repeats, n_restarts):
    if param not in estimator.get_params(deep=True):
        raise ValueError(f"{type(estimator).__name__} has no parameter {param!r}; it has {sorted(estimator.get_params())}.")
    if criterion not in UNITS:
        raise ValueError(f"criterion must be one of {', '.join(map(repr, UNITS))}; got {criterion!r}.")
    if scoring is not None and criterion != "cv":
        raise ValueError(f"scoring is for criterion='cv'; {criterion!r} has a unit of its own.")
    if groups is not None and criterion != "cv":
        raise ValueError(f"groups are kept together in folds, for criterion='cv'; {criterion!r} has none.")
    if n_repeats is not None and criterion not in ("cv", "stability"):
        raise ValueError(f"n_repeats is for 'cv' and 'stability'; {criterion!r} judges the one fit to all rows.")
    for name, number in (("n_repeats", 1 if n_repeats is None else n_repeats), ("n_restarts", n_restarts)):
        if not isinstance(number, Integral) or isinstance(number, bool) or number < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {number!r}.")


def restarts_of(estimator, seeds):
    """Copy an estimator for each start, with the seeds of the starts; the first keeps a seed of its own.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> [model.random_state for model in restarts_of(KMeans(2, random_state=7), [10, 11])]
    [7, 11]
    """
    params, names = estimator.get_params(deep=True), seed_names(estimator)
    # a generator would draw on when a fit is repeated: the number that it draws first stands for it
    own = {name: params[name] for name in names if params[name] is not None}
    own = {name: s if isinstance(s, Integral) else int(generator(deepcopy(s)).integers(SEEDS)) for name, s in own.items()}
    found = []
    for j, seed in enumerate(seeds[: 1 if not names else None]):
        found.append(clone(estimator).set_params(**dict.fromkeys(names, int(seed)) | (own if j == 0 else {})))
    return found


def _judge(criterion, estimator, data, cv, scoring, groups, n_repeats, seeds):
    """Make the judge of a criterion, with its folds or samples."""
    if criterion == "elbow":
        return ObjectiveJudge()
    if criterion == "stability":
        return StabilityJudge(n_repeats or SAMPLES, int(seeds[0]))
    if criterion != "cv":
        return CriterionJudge(criterion)
    options = {"weight": data.weight, "classifier": is_classifier(estimator), "groups": groups}
    shuffles = np.random.default_rng(int(seeds[1])).integers(SEEDS, size=n_repeats or 1)
    return FoldJudge([s for seed in shuffles for s in make_splits(data.X, data.y, cv, random_state=seed, **options)], scoring)


class Notes:
    """What the fits of one order had to say.

    Examples
    --------
    >>> notes = Notes()
    >>> notes.say("too few rows")
    >>> notes.said, notes.warnings
    (['too few rows'], [(<class 'UserWarning'>, 'too few rows')])
    """

    def __init__(self):
        self.said, self.warnings, self.failed = [], [], False

    def say(self, text, category=UserWarning):
        """Note a sentence once, whatever its numbers."""
        if all(NUMBERS.sub("", text) != NUMBERS.sub("", other) for other in self.said):
            self.said.append(text)
            self.warnings.append((category, text))

    def take(self, heard, where=""):
        """Note the warnings and the error of a call."""
        for category, text in heard.warnings:
            self.say(f"{where}{text}", category)
        if heard.error is not None:
            self.say(f"{where}{type(heard.error).__name__}: {heard.error}")


def best_fits(candidates, data, ours, n_jobs, verbose, criterion):
    """Fit every order from every start, and keep the fit of each with the least training objective."""
    tasks = [(i, candidate) for i, restarts in enumerate(candidates) for candidate in restarts]
    found = fit_all(partial(_fitted, data), [c for _, c in tasks], ours=ours, n_jobs=n_jobs, verbose=verbose, name="orders")
    notes, fits = [Notes() for _ in candidates], [[] for _ in candidates]
    for (i, _), heard in zip(tasks, found, strict=True):
        fits[i].append(heard)
    models, criteria, known = [], [], []
    for i, restarts in enumerate(fits):
        good = [heard for heard in restarts if heard.error is None]
        models_of, known_of = ([heard.result[part] for heard in good] for part in range(2))
        losses = np.nan_to_num(training_objectives(models_of, data, known_of), nan=np.inf)
        ranks = [(unfinished(heard), loss) for heard, loss in zip(good, losses, strict=True)]
        best = good[ranks.index(min(ranks))] if good else restarts[0]  # the first of equals
        notes[i].take(best)
        notes[i].failed = unfinished(best)
        model, objective = best.result if good else (None, None)
        models.append(model)
        known.append(objective)
        criteria.append(None if model is None else _criteria(model, data, notes[i], criterion))
    return Fits(candidates, models, criteria, training_objectives(models, data, known), data, n_jobs, notes)


def unfinished(heard):
    """Tell whether a fit ended in an error, or warned that it has not converged: its likelihood is not that of a fit."""
    return heard.error is not None or any(issubclass(category, ConvergenceWarning) for category, _ in heard.warnings)


def _fitted(data, candidate):
    """Fit and give the model and its objective, or what went wrong."""
    return hear(partial(_fit, data, candidate))


def _fit(data, candidate):
    model = fit_to(candidate, data, np.arange(count_rows(data.X)))
    return model, objective_of(model, data)


def _criteria(model, data, notes, criterion):
    """Give the information criteria of a model; what they say is noted only if they decide."""
    heard = hear(partial(information_criteria, model, data.X, data.y, sample_weight=data.weight))
    if criterion in ("bic", "aic", "evidence") or not isinstance(heard.error, NoLikelihoodError | type(None)):
        notes.take(heard)
    return heard.result
