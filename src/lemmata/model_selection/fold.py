"""One fold: a model fitted to some rows, and what it says of others.

A weight means repetition. It goes to `fit` where the estimator takes weights, to every step of a pipeline that learns if all
of these do, and otherwise, if weights are whole numbers, the rows themselves are repeated. What cannot be weighed either way is
an error. A search (`GridSearchCV`) weighs its fits; whether it weighs its own comparisons is scikit-learn's metadata routing.
"""

from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, has_fit_parameter

from lemmata.core.data import is_sparse, is_stored
from lemmata.model_selection.heard import stoppable
from lemmata.model_selection.splits import check_targets, count_rows

MISSING = {"predict_proba": 0.0, "predict_log_proba": -np.inf, "decision_function": -np.inf}  # of a class that was not there
UNSUPERVISED = ("score_samples", "predict", "transform")  # what to ask a model without targets, the first that it has


class Data(NamedTuple):
    """Rows with all that belongs to them."""

    X: object
    y: np.ndarray | None
    weight: np.ndarray | None
    fit_params: dict

    @classmethod
    def of(cls, X, y=None, sample_weight=None, fit_params=None):
        """Check that the parts fit together."""
        X = in_memory(X)
        if isinstance(y, str):
            raise ValueError(f"y must hold the targets themselves; {y!r} looks like the name of a column.")
        X = X.tocsr() if is_sparse(X) else X if hasattr(X, "shape") else list(X)
        y = None if y is None else np.asarray(y)
        y = y[:, 0] if y is not None and y.ndim == 2 and y.shape[1] == 1 else y
        check_consistent_length(X, y, sample_weight)
        weight = _weights(sample_weight, count_rows(X))
        check_targets(y, weight)
        return cls(X, y, weight, dict(fit_params or {}))

    def rows(self, numbers):
        """Take some rows, and of each fit parameter that has one entry for each row, theirs."""
        n = count_rows(self.X)
        of_rows = {
            name: _safe_indexing(value, numbers) if _has_rows(value, n) else value for name, value in self.fit_params.items()
        }
        y, weight = (None if part is None else part[numbers] for part in (self.y, self.weight))
        return Data(_safe_indexing(self.X, numbers), y, weight, of_rows)


def _weights(sample_weight, n):
    if sample_weight is None:
        return None
    return _check_sample_weight(sample_weight, np.empty((n, 1)), ensure_non_negative=True)


def in_memory(X):
    """Return a table in memory, and refuse one that is stored."""
    if _is_stored(X):
        raise ValueError("Resampling picks rows, so it needs a table in memory: read the stored table, or some of it.")
    return X


def _is_stored(X):
    """Tell whether X is a stored table; a list of texts is none unless they name Parquet files."""
    if isinstance(X, list | tuple) and all(isinstance(x, str) for x in X):
        return len(X) > 0 and all(x.endswith((".parquet", ".pq")) for x in X)
    return is_stored(X) or type(X).__name__ == "LazyFrame"


def _has_rows(value, n):
    return (
        not isinstance(value, str | dict) and (hasattr(value, "__len__") or hasattr(value, "shape")) and count_rows(value) == n
    )


def fit_to(estimator, data, rows):
    """Fit a copy of an estimator to some rows.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> data = Data.of([[0.0], [1.0], [2.0], [9.0]], [1.0, 3.0, 5.0, 0.0])
    >>> fit_to(LinearRegression(), data, np.arange(3)).coef_
    array([2.])
    """
    model, weighed = clone(estimator), {}
    if data.weight is not None:
        names = weight_names(estimator)
        if names is None:
            rows = repeated(rows, data.weight, type(estimator).__name__)
        else:
            weighed = dict.fromkeys(names, data.weight[rows])
    part = data.rows(rows)
    target = () if part.y is None else (part.y,)
    with stoppable():
        return model.fit(part.X, *target, **weighed, **part.fit_params)


@contextmanager
def told(where):
    """Add to an error where it came about.

    Examples
    --------
    >>> try:
    ...     with told("In fold 3."):
    ...         [][0]
    ... except IndexError as error:
    ...     print(error, error.__notes__)
    list index out of range ['In fold 3.']
    """
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise


def weight_names(estimator):
    """Name the arguments by which `fit` takes weights of rows, or return None if some part of it takes none.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from lemmata.linear_model import Ridge
    >>> from lemmata.mixture import GibbsMixture
    >>> weight_names(make_pipeline(StandardScaler(), Ridge())), weight_names(GibbsMixture())
    (['standardscaler__sample_weight', 'ridge__sample_weight'], None)
    """
    if isinstance(estimator, Pipeline | BaseSearchCV) and get_config()["enable_metadata_routing"]:
        return ["sample_weight"]
    if isinstance(estimator, BaseSearchCV):
        return weight_names(estimator.estimator)
    if not isinstance(estimator, Pipeline):
        return ["sample_weight"] if has_fit_parameter(estimator, "sample_weight") else None
    found = []
    for name, step in estimator.steps:
        if step is None or isinstance(step, str) or not get_tags(step).requires_fit:
            continue
        names = weight_names(step)
        if names is None:
            return None
        found += [f"{name}__{argument}" for argument in names]
    return found


def repeated(rows, weight, name):
    """Repeat row numbers as often as their weights say, for those that take no weights.

    Examples
    --------
    >>> repeated(np.array([4, 5]), np.array([0, 0, 0, 0, 2.0, 1.0]), "GibbsMixture")
    array([4, 4, 5])
    """
    times = weight[rows]
    if not (times == np.rint(times)).all():
        raise ValueError(
            f"{name} takes no weights of rows; whole numbers would be repetitions, but there is {times[times % 1 > 0][0]:g}."
        )
    return np.repeat(rows, times.astype(np.int64))


def chosen_method(estimator, method, y):
    """Return the name of the method that is asked about held-out rows; None if they are only to be scored.

    Examples
    --------
    >>> from lemmata.cluster import KMeans
    >>> from lemmata.mixture import GaussianMixture
    >>> [chosen_method(model, "auto", None) for model in (GaussianMixture(), KMeans())]
    ['score_samples', 'predict']
    """
    if method == "auto":
        if hasattr(estimator, "decode"):  # says something of every time of a sequence, not of the sequence
            return None
        supervised = y is not None or is_classifier(estimator) or is_regressor(estimator)
        order = ("predict", "transform") if supervised else UNSUPERVISED
        return next((name for name in order if hasattr(estimator, name)), None)
    if method is not None and not (isinstance(method, str) and hasattr(estimator, method)):
        raise ValueError(f"{type(estimator).__name__} has no method {method!r}; method='auto' takes the first that it has.")
    return method


def classes_of(estimator, data, splits):
    """List the classes among the rows of all folds, fitted or held out; None of what is no classifier, or has several targets.

    Examples
    --------
    >>> from lemmata.naive_bayes import GaussianNB
    >>> classes_of(GaussianNB(), Data.of([[0.0]] * 4, ["c", "a", "b", "d"]), [([0, 1], [2])])
    array(['a', 'b', 'c'], dtype='<U1')
    """
    if not is_classifier(estimator) or data.y is None or data.y.ndim != 1:
        return None
    used = np.zeros(len(data.y), dtype=bool)
    for split in splits:
        for rows in split:
            used[rows] = True
    return np.unique(data.y[used])


def answers(model, method, X, classes=None):
    """Ask a fitted model about rows; of a classifier, give one column for each of `classes`, those of all folds.

    A class that was not among the rows of the fit has probability zero there.

    Examples
    --------
    >>> from lemmata.naive_bayes import GaussianNB
    >>> model = GaussianNB().fit([[0.0], [1.0], [8.0], [9.0]], ["a", "a", "c", "c"])
    >>> answers(model, "predict_proba", [[0.0]], np.array(["a", "b", "c"]))
    array([[1., 0., 0.]])
    """
    if method is None:
        return np.full(count_rows(X), np.nan)
    found = getattr(model, method)(X)
    if isinstance(found, tuple) or count_rows(found) != count_rows(X):
        raise ValueError(
            f"{type(model).__name__}.{method} does not give one value for each row: name another method, or None for scores."
        )
    found = found.toarray() if is_sparse(found) else np.asarray(found)
    if method not in MISSING or classes is None or isinstance(getattr(model, "classes_", None), list):
        return found
    known = np.asarray(model.classes_)
    if np.array_equal(known, classes):
        return found
    if found.ndim != 2 or found.shape[1] != len(known):
        raise ValueError(
            f"A fold has {len(known)} of the {len(classes)} classes, so the columns of its {method} do not agree with others'."
        )
    whole = np.full((len(found), len(classes)), MISSING[method], dtype=found.dtype)
    whole[:, np.searchsorted(classes, known)] = found
    return whole
