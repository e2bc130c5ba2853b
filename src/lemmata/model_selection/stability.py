"""Stability of clusters: how far fits to different samples of the same rows agree.

Draw two samples, cluster each, let both clusterings label all rows, and compare the labels. Labels are names, so pairs of rows
are compared: R is the share of pairs that both put together or both put apart. Many clusters agree more by chance, few more by
necessity, so numbers of clusters can be compared only after a correction. Lange, Roth, Braun & Buhmann [1] divide the
disagreement by that of random labels. For random labels with the same sizes of clusters the expected share E R is known, and

    (1 − R) / (1 − E R)  =  1 − ARI,

the adjusted Rand index of Hubert & Arabie [2]: 0 for clusterings that agree, 1 on average for labels by chance, whatever the
number of clusters. One cluster always agrees with itself and says nothing: its loss is NaN, and comparisons begin at two [3].
Two of three groups may be put together in a stable way too, if they are nearer to each other than to the third: stability
shows which numbers of clusters are not there, and of several stable ones each is a way to see the rows.

[1] Lange, Roth, Braun & Buhmann, Neural Computation 16 (2004). [2] Hubert & Arabie, J. Classification 2 (1985).
[3] Ben-Hur, Elisseeff & Guyon, Pacific Symposium on Biocomputing (2002).
"""

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import adjusted_rand_score

from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.core.random import generator, spawn
from lemmata.model_selection.fold import Data, fit_to, repeated
from lemmata.model_selection.restarts import seeded
from lemmata.model_selection.splits import count_rows


@dataclass(frozen=True)
class Stability:
    """How far the clusterings of pairs of samples agree.

    Attributes
    ----------
    agreements : (n_resamples,), adjusted Rand index of the two clusterings of each pair; NaN where either has one cluster.
    n_clusters : (n_resamples, 2), clusters that each of the two has among the rows compared.

    Examples
    --------
    >>> found = Stability(np.array([1.0, 0.8, 0.9]), np.full((3, 2), 2))
    >>> found.mean, found.standard_error, found.losses.round(9).tolist()
    (0.9, 0.0577, [0.0, 0.2, 0.1])
    """

    agreements: np.ndarray
    n_clusters: np.ndarray = field(repr=False)

    @property
    def mean(self):
        """Mean agreement: 1 if all clusterings agree, 0 for labels by chance."""
        return float(self.agreements.mean())

    @property
    def standard_error(self):
        """Standard error of the mean over pairs of samples, these rows given; NaN with a single pair."""
        n = len(self.agreements)
        return float(self.agreements.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan

    @property
    def losses(self):
        """Disagreement of each pair over that of random labels with the same sizes of clusters."""
        return 1.0 - self.agreements


def stability(estimator, X, *, n_resamples=20, halves=False, sample_weight=None, random_state=None, n_jobs=None, verbose=0):
    """Measure how far clusterings of different samples of the rows agree.

    Parameters
    ----------
    estimator : Clusterer, mixture, or any other with `predict`, ours or scikit-learn's, or a pipeline that ends in one: it
        labels all rows by what it learned from a sample. One without `predict` is compared on the rows that both samples have.
    n_resamples : Pairs of samples; twice as many fits.
    halves : Whether the two of a pair are the halves of a random cut, or by default bootstrap samples: as many rows as there
        are, drawn with replacement. Halves have no row twice and none in common, and half as many to learn from.
    sample_weight : A weight means repetition; only whole numbers do here.
    random_state : Seed of the samples, and of the fits.
    n_jobs, verbose : As in `cross_validate`.

    Returns
    -------
    Stability : agreements, mean, standard_error, losses.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat([[0.0, 0.0], [6.0, 0.0], [3.0, 5.2]], 40, axis=0) + rng.normal(size=(120, 2))  # three apart alike
    >>> [stability(KMeans(k), X, random_state=0).mean for k in (2, 3, 4)]
    [0.38, 1.00, 0.80]
    """
    if not isinstance(n_resamples, Integral) or isinstance(n_resamples, bool) or n_resamples < 1:
        raise ValueError(f"n_resamples must be a whole number of at least 1, got {n_resamples!r}.")
    if is_classifier(estimator) or is_regressor(estimator):
        name = type(estimator).__name__
        raise ValueError(f"Stability compares groups of rows, and {name} makes none: give it a clusterer or a mixture.")
    data = Data.of(X, None, sample_weight)
    rows = np.arange(count_rows(data.X))
    if data.weight is not None:
        rows = repeated(rows, data.weight, "A sample of rows")
        data = data._replace(weight=None)
    if len(rows) < 4:  # two in each half
        raise ValueError(f"Stability needs at least 4 rows to sample from, got {len(rows)}.")
    work = partial(_agreement, clone(estimator), data, rows, halves)
    rngs = spawn(generator(random_state), n_resamples)
    ours = isinstance(estimator, Estimator)
    found = fit_all(work, rngs, ours=ours, n_jobs=n_jobs, verbose=verbose, name="pairs of samples")
    return Stability(np.array([agreement for agreement, _ in found]), np.array([numbers for _, numbers in found]))


def _agreement(estimator, data, rows, halves, rng):
    """Cluster two samples and compare what they say of all rows; give the index and the two numbers of clusters."""
    if halves:
        drawn = rng.permutation(rows)
        samples = np.sort(drawn[: len(rows) // 2]), np.sort(drawn[len(rows) // 2 :])
    else:
        samples = tuple(np.sort(rng.choice(rows, len(rows))) for _ in range(2))
    models = [fit_to(seeded(estimator, rng), data, sample) for sample in samples]
    if hasattr(models[0], "predict"):
        whole = data.rows(rows).X
        labels = [np.asarray(model.predict(whole)) for model in models]
    else:
        if not hasattr(models[0], "labels_"):
            raise ValueError(f"{type(estimator).__name__} has neither predict nor labels_, so it makes no groups of rows.")
        _, *places = np.intersect1d(*samples, return_indices=True)
        if len(places[0]) < 2:
            raise ValueError(
                f"{type(estimator).__name__} has no predict, and the samples share no rows: take bootstrap samples."
            )
        labels = [np.asarray(model.labels_)[place] for model, place in zip(models, places, strict=True)]
    numbers = [len(np.unique(named)) for named in labels]
    return (adjusted_rand_score(*labels) if min(numbers) > 1 else np.nan), numbers
