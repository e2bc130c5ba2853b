"""Fits from several starts, of which the best counts, and the objective by which it is the best.

The objective is what the fit makes small: −ln likelihood where the model has one, else the model's own score, its sign turned,
which for a clusterer is the sum of distances; one without either is asked for its `inertia_` or `reconstruction_err_`. Where
models are nested, the objective of the best fits cannot rise with the order; where it rises, some fit was caught in a local
optimum.
"""

from sklearn.base import clone, is_clusterer

from lemmata.model_selection.criteria import information_criteria, unwrapped
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


def training_objective(model, data):
    """Give what the fit of a model makes small, on rows.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> from lemmata.model_selection.fold import Data
    >>> X = [[0.0], [2.0], [10.0]]
    >>> training_objective(KMeans(2, random_state=0).fit(X), Data.of(X))
    2.0
    """
    core, _ = unwrapped(model)
    if not is_clusterer(core):
        try:
            return -information_criteria(model, data.X, data.y, sample_weight=data.weight).log_likelihood
        except NoLikelihoodError:
            pass
    if hasattr(model, "score"):
        return -score_of(measure_of(model), model, data)
    for name in ("inertia_", "reconstruction_err_"):
        if hasattr(core, name):
            return float(getattr(core, name))
    raise ValueError(f"{type(core).__name__} has no objective that is known here: no likelihood, no score, no inertia_.")
