"""What a fitted classifier is: the function of the raw columns at its core, and what the sample had a say in.

A theorem speaks of a set of functions that was fixed before the sample. A pipeline hides that set: a scaler fitted on the
sample moves with it, a search over settings has looked at the labels, a threshold was tuned. So the wrapping is taken off.
Steps that learn nothing (a normalizer, a fixed function) make new columns that are as good as raw ones. Affine steps that learn
(scalers, principal components, selected columns) are folded into a linear model: it is then a linear function of the raw
columns, and what holds for all of those holds for it. Polynomial features raise the degree. Increasing functions of single
columns leave the partitions that trees can make as they are. Behind any other step only data that the model has not seen tells
anything.

A search that only tuned numbers left the set of functions as it is. One that compared models of different kinds, or steps, or
degrees, chose the set itself by the sample: each kind then has its share of δ.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, issparse, vstack
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags

AFFINE = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "PCA", "TruncatedSVD", "IncrementalPCA"}
INCREASING = {"StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler", "QuantileTransformer", "PowerTransformer"}
THRESHOLDED = {"Decide", "FixedThresholdClassifier", "TunedThresholdClassifierCV"}  # cut the score of a model elsewhere
LINEAR = {
    "LogisticRegression",
    "LogisticRegressionCV",
    "BayesianLogisticRegression",
    "ProbitRegression",
    "Perceptron",
    "SGDClassifier",
    "PassiveAggressiveClassifier",
    "RidgeClassifier",
    "RidgeClassifierCV",
    "LinearSVC",
    "LinearDiscriminantAnalysis",
}
# Parameters that a search may tune without leaving the class of functions, or the nest of classes that has shares already.
TUNED = {
    "C",
    "alpha",
    "l1_ratio",
    "penalty",
    "loss",
    "solver",
    "tol",
    "max_iter",
    "class_weight",
    "fit_intercept",
    "intercept_scaling",
    "dual",
    "eta0",
    "learning_rate",
    "shrinkage",
    "reg_param",
    "priors",
    "var_smoothing",
    "prior_precision",
    "gamma",
    "random_state",
    "n_components",
    "whiten",
    "k",
    "percentile",
    "with_mean",
    "with_std",
    "criterion",
    "max_depth",
    "max_leaf_nodes",
    "min_samples_leaf",
    "min_samples_split",
    "min_impurity_decrease",
    "ccp_alpha",
    "max_features",
    "n_estimators",
    "subsample",
    "n_neighbors",
}
GROWN = {"AdaBoostClassifier", "GradientBoostingClassifier"}  # their classes do depend on how far trees may grow
GROWTH = {"max_depth", "max_leaf_nodes"}


@dataclass(frozen=True)
class Structure:
    """A fitted model without its wrapping.

    Attributes
    ----------
    model : The model as it was given; its predictions are what the bounds are about.
    core : The estimator inside.
    fixed : Turns raw rows into the columns that were fixed before the sample, by the steps that learn nothing.
    learned : The steps after those, in order, all fitted to the sample.
    settings : Number of settings that a search compared on the sample.
    kinds : Number of sets of functions among them.
    thresholded : Whether the score is cut where the core does not cut it.
    one_cut : Whether it is cut in one place, the same for all rows; else the regions are not those that the core can have.
    frozen : Whether a part of the model stays as it was fitted when a copy is fitted to other rows.
    """

    model: Any
    core: Any
    fixed: Callable[[Any], Any]
    learned: tuple[Any, ...]
    settings: int
    kinds: int
    thresholded: bool
    one_cut: bool
    frozen: bool

    @property
    def name(self) -> str:
        """Name of the class of the core, if it is one of ours or of scikit-learn's; what others do is not known."""
        return _known(self.core)

    @property
    def degree(self) -> int | None:
        """Degree of the core's columns as polynomials in the fixed ones; None if they are no polynomials."""
        degree = 1
        for step in self.learned:
            if _known(step) == "PolynomialFeatures":
                degree *= step.degree if np.isscalar(step.degree) else max(step.degree)
            elif not _is_affine(step):
                return None
        return degree

    @property
    def expanded(self) -> bool:
        """Whether a step makes polynomials, of whatever degree."""
        return any(_known(step) == "PolynomialFeatures" for step in self.learned)

    @property
    def increasing(self) -> bool:
        """Whether each of the core's columns is an increasing function of one of the fixed ones."""
        return all(_known(step) in INCREASING or isinstance(step, SelectorMixin) for step in self.learned)

    def linear_form(self, n_columns: int, sparse: bool = False) -> tuple[np.ndarray, np.ndarray] | None:
        """Give coefficients (K or 1, d) and intercepts of the core in the fixed columns; None if it is not linear there."""
        core = self.core
        linear = self.name in LINEAR or (self.name == "SVC" and _is_linear(core.kernel))
        if not linear or self.degree != 1 or not hasattr(core, "coef_"):
            return None
        coef = core.coef_.toarray() if issparse(core.coef_) else np.asarray(core.coef_, dtype=float)
        coef = np.atleast_2d(coef)
        intercept = np.atleast_1d(np.asarray(core.intercept_, dtype=float))
        if not self.learned:
            return coef, intercept
        rows = vstack([csr_array((1, n_columns)), eye_array(n_columns)], format="csr")  # zero and the unit vectors
        rows = rows if sparse else rows.toarray()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for step in self.learned:
                rows = step.transform(rows)
                rows = rows if issparse(rows) else np.asarray(rows)
        scores = np.asarray(rows @ coef.T)
        return (scores[1:] - scores[0]).T, intercept + scores[0]


def _known(part: Any) -> str:
    """Name the class of a part if it is one of ours or of scikit-learn's, else nothing."""
    cls = type(part)
    return cls.__name__ if cls.__module__.split(".")[0] in ("lemmata", "sklearn") else ""


def _is_affine(step: Any) -> bool:
    clipped = getattr(step, "clip", False)
    return (_known(step) in AFFINE and not clipped) or isinstance(step, SelectorMixin)


def _is_linear(kernel: Any) -> bool:
    """Whether the kernel of a machine is the inner product, by its name or as an object."""
    return kernel == "linear" if isinstance(kernel, str) else _known(kernel) == "Linear"


def _has_frozen(model: Any) -> bool:
    """Whether the model, or a part of it that its parameters name, is frozen."""
    parts = model.get_params(deep=True).values() if hasattr(model, "get_params") else ()
    return any(isinstance(part, FrozenEstimator) for part in (model, *parts))


def _kinds_of(compared: list[dict[str, Any]], core: Any) -> int:
    """Count the settings of a search that differ in more than what can be tuned within one class of functions."""
    tuned = TUNED - GROWTH if _known(core) in GROWN else TUNED

    def matters(name: str, value: Any) -> bool:
        return name.rpartition("__")[2] not in tuned or hasattr(value, "fit")

    return len({repr(sorted((name, repr(v)) for name, v in p.items() if matters(name, v))) for p in compared})


def _cuts_once(wrapper: Any) -> bool:
    """Whether a wrapper of two classes cuts the score of the model inside in one place, the same for all rows."""
    if type(wrapper).__name__ != "Decide":
        return True
    return wrapper.reject_cost is None and not callable(wrapper.costs) and np.shape(wrapper.costs_) == (2, 2)


def structure_of(model: Any) -> Structure:
    """Take the wrapping off a fitted model: pipelines, searches, thresholds.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [[0.0], [10.0], [20.0], [50.0]], [0, 0, 1, 1]
    >>> structure = structure_of(make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y))
    >>> structure.name, structure.degree, len(structure.learned)
    ('LogisticRegression', 1, 1)
    >>> coef, intercept = structure.linear_form(1)
    >>> bool(np.allclose(X @ coef.T + intercept, structure.model.decision_function(X)[:, None]))
    True
    """
    core, thresholded, one_cut, frozen = model, False, True, False
    steps: list[Any] = []
    searches: list[list[dict[str, Any]]] = []
    while True:
        name, frozen = _known(core), frozen or _has_frozen(core)
        if name and hasattr(core, "best_estimator_"):  # searches of strangers may invent settings as they go
            searches.append(core.cv_results_["params"])
            core = core.best_estimator_
        elif name in THRESHOLDED and hasattr(core, "estimator_"):
            one_cut = one_cut and _cuts_once(core)
            core, thresholded = core.estimator_, True
        elif name == "FrozenEstimator":
            core = core.estimator
        elif name == "Pipeline":
            steps += [step for _, step in core.steps[:-1] if step is not None and step != "passthrough"]
            core = core.steps[-1][1]
        else:
            break
    first = next((i for i, step in enumerate(steps) if get_tags(step).requires_fit), len(steps))

    def fixed(X: Any) -> Any:
        for step in steps[:first]:
            X = step.transform(X)
        return X

    # probabilities that are averaged over a posterior depend on the variance of the score too
    one_cut = one_cut and not (thresholded and _known(core) == "BayesianLogisticRegression")
    settings = prod(len(compared) for compared in searches)
    kinds = prod(_kinds_of(compared, core) for compared in searches)
    return Structure(model, core, fixed, tuple(steps[first:]), settings, kinds, thresholded, one_cut, frozen)
