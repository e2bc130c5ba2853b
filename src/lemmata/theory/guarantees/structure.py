"""What a fitted classifier is: the function of the raw columns at its core, and what the sample had a say in.

A theorem speaks of a set of functions that was fixed before the sample. A pipeline hides that set: a scaler fitted on the
sample moves with it, a search over settings has looked at the labels, a threshold was tuned. So the wrapping is taken off.
Steps that learn nothing (a normalizer, a fixed function) make new columns that are as good as raw ones. Affine steps that learn
(scalers, principal components, selected columns) are folded into a linear model: it is then a linear function of the raw
columns, and what holds for all of those holds for it. Polynomial features raise the degree. Increasing functions of single
columns leave the partitions that trees can make as they are. Behind any other step only data that the model has not seen tells
anything.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.feature_selection import SelectorMixin
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
    thresholded : Whether the score is cut where the core does not cut it.
    """

    model: Any
    core: Any
    fixed: Callable[[Any], Any]
    learned: tuple[Any, ...]
    settings: int
    thresholded: bool

    @property
    def name(self) -> str:
        """Name of the class of the core, if it is one of ours or of scikit-learn's; what others do is not known."""
        cls = type(self.core)
        return cls.__name__ if cls.__module__.split(".")[0] in ("lemmata", "sklearn") else ""

    @property
    def degree(self) -> int | None:
        """Degree of the core's columns as polynomials in the fixed ones; None if they are no polynomials."""
        degree = 1
        for step in self.learned:
            if type(step).__name__ == "PolynomialFeatures":
                degree *= step.degree if np.isscalar(step.degree) else max(step.degree)
            elif not _is_affine(step):
                return None
        return degree

    @property
    def increasing(self) -> bool:
        """Whether each of the core's columns is an increasing function of one of the fixed ones."""
        return all(type(step).__name__ in INCREASING or isinstance(step, SelectorMixin) for step in self.learned)

    def linear_form(self, n_columns: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Give coefficients (K or 1, d) and intercepts of the core in the fixed columns; None if it is not linear there."""
        core = self.core
        linear = self.name in LINEAR or (self.name == "SVC" and core.kernel == "linear")
        if not linear or self.degree != 1 or not hasattr(core, "coef_"):
            return None
        coef = core.coef_.toarray() if issparse(core.coef_) else np.asarray(core.coef_, dtype=float)
        coef = np.atleast_2d(coef)
        intercept = np.atleast_1d(np.asarray(core.intercept_, dtype=float))
        if not self.learned:
            return coef, intercept
        rows = np.vstack([np.zeros(n_columns), np.eye(n_columns)])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            for step in self.learned:
                rows = np.asarray(step.transform(rows))
        return coef @ (rows[1:] - rows[0]).T, intercept + coef @ rows[0]


def _is_affine(step: Any) -> bool:
    clipped = getattr(step, "clip", False)
    return (type(step).__name__ in AFFINE and not clipped) or isinstance(step, SelectorMixin)


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
    core, settings, thresholded = model, 1, False
    steps: list[Any] = []
    while True:
        name = type(core).__name__
        if hasattr(core, "best_estimator_"):
            settings *= len(core.cv_results_["params"])
            core = core.best_estimator_
        elif name in THRESHOLDED and hasattr(core, "estimator_"):
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

    return Structure(model, core, fixed, tuple(steps[first:]), settings, thresholded)
