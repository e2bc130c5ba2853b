"""Fits from several starts, of which the best counts, and the objective by which it is the best.

The objective is what the fit makes small: −ln likelihood where the model has one, else the model's own score, its sign turned,
which for a clusterer is the sum of distances; one without either is asked for its `inertia_` or `reconstruction_err_`. Where
one of several models has no likelihood, as a fit without errors has none, all of them are asked for their scores: objectives
are compared in one unit only. Where models are nested, the objective of the best fits cannot rise with the order; where it
rises, some fit was caught in a local optimum.
"""

from functools import partial

import numpy as np
from sklearn.base import clone, is_clusterer

from lemmata.model_selection.criteria import information_criteria, unwrapped
from lemmata.model_selection.heard import hear
from lemmata.model_selection.likelihoods.account import NoLikelihoodError
from lemmata.model_selection.scoring import measure_of, score_of
from lemmata.model_selection.splits import SEEDS


def seed_names(estimator):
    """Name the parameters of an estimator, and of those inside it, that are seeds.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from lemmata.cluster import KMeans
    >>> from lemmata.naive_bayes import GaussianNB
    >>> seed_names(make_pipeline(KMeans(2), GaussianNB())), seed_names(GaussianNB())
    (['kmeans__random_state'], [])
    """
    return [name for name in estimator.get_params(deep=True) if name.rpartition("__")[2] == "random_state"]


def seeded(estimator, rng):
    """Copy an estimator and give it, and those inside it, seeds of their own.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> import numpy as np
    >>> seeded(KMeans(2), np.random.default_rng(0)).random_state == seeded(KMeans(2), np.random.default_rng(0)).random_state
    True
    """
    return clone(estimator).set_params(**{name: int(rng.integers(SEEDS)) for name in seed_names(estimator)})


def minus_log_likelihood(model, data):
    """Give −ln likelihood of rows; None if the model has none, or none of these rows, or makes distances small.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> from lemmata.model_selection.fold import Data
    >>> line = Data.of([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])  # without noise a likelihood has no end
    >>> print(minus_log_likelihood(LinearRegression().fit(line.X, line.y), line))
    None
    """
    if is_clusterer(unwrapped(model)[0]):
        return None
    try:
        return -information_criteria(model, data.X, data.y, sample_weight=data.weight).log_likelihood
    except NoLikelihoodError:
        return None


def own_objective(model, data):
    """Give what a model calls its objective, on rows.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> from lemmata.model_selection.fold import Data
    >>> X = [[0.0], [2.0], [10.0]]
    >>> own_objective(KMeans(2, random_state=0).fit(X), Data.of(X))
    2.0
    """
    if hasattr(model, "score"):
        return -score_of(measure_of(model), model, data)
    core, _ = unwrapped(model)
    for name in ("inertia_", "reconstruction_err_"):
        if hasattr(core, name):
            return float(getattr(core, name))
    raise ValueError(f"{type(core).__name__} has no objective that is known here: no likelihood, no score, no inertia_.")


def objective_of(model, data):
    """Give −ln likelihood and None or, where there is none, None and the model's own objective.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> from lemmata.model_selection.fold import Data
    >>> X = [[0.0], [2.0], [10.0]]
    >>> objective_of(KMeans(2, random_state=0).fit(X), Data.of(X))
    (None, 2.0)
    """
    loss = minus_log_likelihood(model, data)
    return (loss, None) if loss is not None else (None, _own_or_nan(model, data))


def _own_or_nan(model, data):
    heard = hear(partial(own_objective, model, data))  # an elbow asks again, and tells; folds and samples need no objective
    return np.nan if heard.error else heard.result


def training_objectives(models, data, known=None):
    """Give what the fits of models make small, on rows, in one unit for all; NaN where there is nothing.

    Parameters
    ----------
    models : Fitted models, or None for those that are missing.
    known : What `objective_of` said of each, if it was asked before.

    Examples
    --------
    >>> from lemmata.linear_model import PolynomialRegression
    >>> from lemmata.model_selection.fold import Data
    >>> parabola = Data.of([[-1.0], [0.0], [1.0], [2.0]], [1.0, 0.0, 1.0, 4.0])
    >>> models = [PolynomialRegression(k).fit(parabola.X, parabola.y) for k in (1, 2)]
    >>> training_objectives(models, parabola).round(3).tolist()  # of the second there is no likelihood: −R² for both
    [-0.556, -1.0]
    """
    here = [i for i, model in enumerate(models) if model is not None]
    pairs = [objective_of(models[i], data) if known is None else known[i] for i in here]
    found = np.full(len(models), np.nan)
    if all(own is None for _, own in pairs):
        found[here] = [loss for loss, _ in pairs]
    else:
        found[here] = [_own_or_nan(models[i], data) if own is None else own for i, (_, own) in zip(here, pairs, strict=True)]
    return np.where(np.isfinite(found), found, np.nan)
