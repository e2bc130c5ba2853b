"""A small problem for every estimator of the library, found by its tags; a new estimator has one by existing."""

from copy import deepcopy
from dataclasses import is_dataclass
from functools import reduce
from inspect import signature
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier, is_clusterer, is_regressor
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

import lemmata

# What an estimator needs to be tested at this size, where its defaults are meant for larger tables.
SETTINGS = {
    "BernoulliMixture": {"n_components": 2},
    "BinomialMixture": {"n_components": 2, "n_trials": 8},
    "CategoricalHMM": {"n_components": 2, "n_features": 4},  # as many in each column, so that arrays can be compared
    "CategoricalMixture": {"n_components": 2, "n_categories": 4},
    "CategoricalNB": {"min_categories": 4},  # as many in each column, so that arrays can be compared
    "GaussianHMM": {"n_components": 2},
    "GaussianMixture": {"n_components": 2},
    "GenerativeAdversarialNetwork": {"hidden_layer_sizes": (8,), "max_iter": 5},  # rounding has not grown yet
    "GibbsMixture": {"n_components": 3, "alpha": 10.0},  # a smaller alpha lets two groups of ten rows merge for long
    "KernelPerceptron": {"shuffle": False},  # as for Perceptron
    "KMeans": {"n_clusters": 3},
    "KMedians": {"n_clusters": 3},
    "KMedoids": {"n_clusters": 3},
    "LatentDirichletAllocation": {"n_components": 2},
    # A few epochs, in the order of the table: a weight is repetition in a row, and rounding has not grown yet.
    "MLPClassifier": {"hidden_layer_sizes": (8,), "tol": None, "max_iter": 5, "shuffle": False},
    "MLPRegressor": {"hidden_layer_sizes": (8,), "tol": None, "max_iter": 5, "shuffle": False},
    "NMF": {"n_components": 2},
    "NearestNeighbors": {"n_neighbors": 1},  # of one row there are no more
    "PCA": {"n_components": 2},
    "PLSA": {"n_components": 2},
    "ProbabilisticPCA": {"n_components": 2, "method": "em"},  # complete rows have a formula, which does not iterate
    "SoftKMeans": {"n_clusters": 3},
    "StochasticEM": {"n_components": 2},
    "Ridge": {"alpha": 0.7},
    "Perceptron": {"shuffle": False},  # a weight is repetition in a row; copies of a row would be shuffled apart
    "ReinforceClassifier": {"shuffle": False},
    "SGDClassifier": {"shuffle": False},
    "VariationalAutoencoder": {"hidden_layer_sizes": (8,), "tol": None, "max_iter": 5},  # rounding has not grown yet
}
SEPARABLE = {"KernelPerceptron", "Perceptron"}  # classifiers that promise something only where the classes lie apart
SEMI_SUPERVISED = {"RandomWalkClassifier"}  # classifiers for which the label -1 means that a row has none
# Records of how a fit went: they describe the past, not the model, and no certificate may read them.
HISTORY = {"n_iter_", "converged_", "trace_", "restarts_"}
# What a model keeps of single rows: a row that is repeated is kept as often, one that weighs more is kept once.
OF_ROWS = {"support_", "support_vectors_", "n_support_", "dual_coef_", "X_", "y_", "sample_weight_"}
# Of copies of a row some may be in a bag and others not; a row of whole weight is in it or not.
OF_ROWS |= {"oob_decision_function_", "oob_prediction_", "oob_residuals_", "oob_score_"}
# A node counts its different rows, of which copies are several.
OF_ROWS |= {"trees_.nodes.n_node_samples"}


class Problem(NamedTuple):
    model: object
    X: np.ndarray
    y: np.ndarray | None

    def fit(self, X=None, y=None, **options):
        """Fit a fresh copy, to this problem's data unless other data are given."""
        X = self.X if X is None else X
        y = self.y if y is None else y
        return clone(self.model).fit(X, y, **options) if self.y is not None else clone(self.model).fit(X, **options)

    def certify(self, model, X=None, **options):
        """Certify a fitted model on this problem's data."""
        X = self.X if X is None else X
        return model.certify(X, self.y, **options) if self.y is not None else model.certify(X, **options)


def problem(cls, seed=0, n=60):
    """Draw a problem of n rows and 4 columns, off-center and of unequal scales."""
    rng = np.random.default_rng(seed)
    model = cls(**SETTINGS.get(cls.__name__, {}))
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    scales, offset = np.array([1.0, 0.5, 2.0, 1.0]), np.array([3.0, -1.0, 0.0, 5.0])
    if cls.__name__ in ("BinomialMixture", "CategoricalHMM", "CategoricalMixture"):
        chances = rng.uniform(0.1, 0.9, size=(3, 4))[np.arange(n) % 3]
        return Problem(model, rng.binomial(8 if cls.__name__ == "BinomialMixture" else 3, chances).astype(float), None)
    searches = hasattr(model, "kneighbors") and not hasattr(model, "predict")
    if is_clusterer(model) or get_tags(model).estimator_type == "density_estimator" or hasattr(model, "decode") or searches:
        centers = rng.normal(size=(3, 4)) * 4
        X = (centers[np.arange(n) % 3] + rng.normal(size=(n, 4))) * scales + offset
        return Problem(model, X, None)
    if cls.__name__ == "Apriori":  # who bought which of four items
        return Problem(model, (rng.random((n, 4)) < rng.uniform(0.3, 0.8, size=(3, 4))[np.arange(n) % 3]).astype(float), None)
    X = rng.normal(size=(n, 4)) * scales + offset
    if is_regressor(model):
        y = X @ rng.normal(size=4) + 7.0 + rng.normal(size=n)
        return Problem(model, X, y)
    if is_classifier(model):
        labels = np.array([3, 5, 8] if get_tags(model).classifier_tags.multi_class else [3, 5])
        k = len(labels)
        if get_tags(model).input_tags.positive_only:  # counts or codes
            chances = rng.uniform(0.1, 0.9, size=(k, 4))[np.arange(n) % k]
            return Problem(model, rng.binomial(3, chances).astype(float), labels[np.arange(n) % k])
        if cls.__name__ in SEPARABLE:
            centers = 12 * np.eye(3, 4)[:k]
            X = (centers[np.arange(n) % k] + rng.uniform(-1, 1, size=(n, 4))) * scales + offset
            return Problem(model, X, labels[np.arange(n) % k])
        scores = ((X - offset) / scales) @ rng.normal(size=(4, k)) + rng.gumbel(size=(n, k))
        y = labels[scores.argmax(axis=1)]
        if cls.__name__ in SEMI_SUPERVISED:
            y[1::2] = -1
        return Problem(model, X, y)
    if get_tags(model).transformer_tags is not None:
        loadings = rng.exponential(size=(3, 4)) ** 2
        if cls.__name__ in ("LatentDirichletAllocation", "PLSA"):  # counts of words
            topics = loadings / loadings.sum(axis=1, keepdims=True)
            return Problem(model, rng.poisson(20 * rng.dirichlet(np.full(3, 0.3), n) @ topics).astype(float), None)
        if get_tags(model).input_tags.positive_only:
            return Problem(model, rng.exponential(size=(n, 3)) @ loadings + 0.1 * rng.exponential(size=(n, 4)), None)
        return Problem(model, X, None)
    raise NotImplementedError(f"{cls.__name__}: say here what its data look like")


def fitted(model):
    """Give the fitted attributes by name; of a model inside the model as "estimator_.coef_", of a tree as "tree_.value"."""
    found = {}
    for k, v in vars(model).items():
        if is_dataclass(model) or (k.endswith("_") and not k.startswith("_") and k not in HISTORY):
            within = isinstance(v, BaseEstimator) or is_dataclass(v)
            found |= {f"{k}.{name}": value for name, value in fitted(v).items()} if within else {k: v}
    return found


def needs_weights(model):
    """Skip the test of an estimator that takes no weights of rows."""
    if not has_fit_parameter(model, "sample_weight"):
        pytest.skip("takes no weights")


def predictions(model, X):
    """Give what a model makes of rows: its predictions, the rows transformed, or how far their neighbors are."""
    if hasattr(model, "predict"):
        return np.asarray(model.predict(X))
    return np.asarray(model.transform(X) if hasattr(model, "transform") else model.kneighbors(X)[0])


def with_attribute(model, name, value):
    """Copy a model and set one fitted attribute, of it or of a model inside it."""
    twin = deepcopy(model)
    *path, last = name.split(".")
    setattr(reduce(getattr, path, twin), last, value)
    return twin


def forget_names(model):
    """Delete the names of the columns, of a model and of those inside it."""
    for value in vars(model).values():
        if isinstance(value, BaseEstimator):
            forget_names(value)
    names = vars(model).pop("feature_names_in_", None)  # a kernel inside has none
    if names is not None and hasattr(model, "itemsets_"):
        model.itemsets_.items = np.array([list(names).index(name) for name in model.itemsets_.items], dtype=np.int64)


def attribute(model, name):
    """Get a fitted attribute by the name that `fitted` gives it."""
    return reduce(getattr, name.split("."), model)


def takes_tables(cls):
    """Tell whether an estimator needs no arguments and reads tables; others keep the contracts in tests of their own."""
    needed = [p for p in signature(cls).parameters.values() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    return not needed and get_tags(cls()).input_tags.two_d_array


ESTIMATORS = [cls for _, cls in lemmata.all_estimators() if takes_tables(cls)]
NAMES = [cls.__name__ for cls in ESTIMATORS]


def assert_same_bits(a, b):
    """Assert that two fitted models agree in every bit of every fitted attribute."""
    one, other = fitted(a), fitted(b)
    assert one.keys() == other.keys()
    for key, value in one.items():
        left, right = np.asarray(value), np.asarray(other[key])
        assert left.dtype == right.dtype, key
        assert left.shape == right.shape, key
        if left.dtype.kind == "f":
            assert left.tobytes() == right.tobytes(), f"{key}: {left} and {right}"
        else:
            assert np.array_equal(left, right), key
