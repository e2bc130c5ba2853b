"""What an information criterion needs to know of a model and its rows, and where the functions that tell it are found.

A family of models gives one function (model, rows) → `Account`, under the names of its classes: `@law("Ridge", ...)`. Names,
not classes, because scikit-learn's models carry the same ones, with the same fitted attributes, and nothing is imported for
them. A class that is not listed is looked for by its parents, and then by what it can do: an object with `aic` and
`score_samples`, or with `aic` and `decode`, has counted its parameters itself.
"""

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_sample_weight, _num_samples

from lemmata.core.data import is_stored

HELD_BACK = "the prior holds parameters back; they are counted as if it did not"
LIBRARIES = {"lemmata", "sklearn", "hmmlearn"}  # whose class names are known


class Account(NamedTuple):
    """The likelihood of a model on its rows, and what it took to get there.

    Parameters
    ----------
    log_likelihood : L, of all rows together.
    counted : Number of parameters of each part of the model, by its name.
    n : N of Bayes' criterion.
    unit : What N counts.
    note : What has to be known before a criterion is quoted, a sentence each.
    log_evidence, evidence : ln p(data | model), and how it was found; None and "" if the model has none.
    """

    log_likelihood: float
    counted: Mapping[str, float]
    n: float
    unit: str = "rows"
    note: tuple[str, ...] = ()
    log_evidence: float | None = None
    evidence: str = ""


class NoLikelihoodError(ValueError):
    """A model for which no information criterion can be had, in a sentence that says why and what to do."""


class Rows(NamedTuple):
    """The rows of a criterion: those of weight zero are left out already."""

    X: Any
    y: Any
    weight: Any  # (n,) float64, or None
    lengths: Any = None

    @property
    def total(self) -> float:
        """Number of rows, each as often as it weighs."""
        self.in_memory()
        return float(_num_samples(self.X) if self.weight is None else self.weight.sum())

    @property
    def repetitions(self) -> Any:
        """How often each row counts: (n,)."""
        self.in_memory()
        return np.ones(_num_samples(self.X)) if self.weight is None else self.weight

    def sum(self, values: Any) -> float:
        """Add up a number of each row, as often as the row weighs."""
        values = np.asarray(values, dtype=float)
        return float(values.sum() if self.weight is None else self.weight @ values)

    def target(self, model: Any) -> Any:
        """Give the target as an array, or say that it is needed."""
        self.in_memory()
        if self.y is None:
            raise ValueError(f"{type(model).__name__} predicts a target: give y, the targets of the rows.")
        y = np.asarray(self.y)
        if len(y) != _num_samples(self.X):
            raise ValueError(f"X has {_num_samples(self.X)} rows and y has {len(y)}: each row has one target.")
        return y

    def places(self, model: Any) -> Any:
        """Give the number of the class of each row, in the order of `classes_`."""
        y = self.target(model)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise NoLikelihoodError(f"{type(model).__name__} was fitted to several labels a row: fit one model for each.")
        return places_of(model.classes_, y)

    def in_memory(self) -> None:
        """Refuse stored tables, where a model has no pass over their blocks for this."""
        if is_stored(self.X):
            raise ValueError("The criteria of this model are those of rows in memory: load the stored table, or a part of it.")

    def unweighted(self, model: Any) -> None:
        """Refuse weights where a model does not know any."""
        if self.weight is not None:
            raise ValueError(f"{type(model).__name__} takes no sample_weight: repeat the rows or sequences themselves.")

    def whole(self, model: Any) -> None:
        """Refuse `lengths` where rows belong to no sequences."""
        if self.lengths is not None:
            raise ValueError(f"lengths are for hidden Markov models, and {type(model).__name__} has rows, not sequences.")


def places_of(classes: Any, y: Any) -> Any:
    """Give the number of the class of each label; a label that is no class is refused."""
    classes = np.asarray(classes)
    places = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    if (classes[places] != y).any():
        raise ValueError(f"y holds the label {y[classes[places] != y][0]!s}, which is not a class of the fit.")
    return places


Law = Callable[[Any, Rows], Account]
LAWS: dict[str, Law] = {}
REASONS: dict[str, str] = {}


def law(*names: str) -> Callable[[Law], Law]:
    """Register the function that accounts for the classes of these names."""

    def register(function: Law) -> Law:
        LAWS.update(dict.fromkeys(names, function))
        return function

    return register


def without(reason: str, *names: str) -> None:
    """Register why the classes of these names have no criterion."""
    REASONS.update(dict.fromkeys(names, reason))


def law_of(model: Any) -> Law:
    """Find the function that accounts for a model's class, or for the nearest parent that has one."""
    for cls in type(model).__mro__:
        if cls.__module__.split(".")[0] in LIBRARIES:
            if cls.__name__ in LAWS:
                return LAWS[cls.__name__]
            if cls.__name__ in REASONS:
                raise NoLikelihoodError(refusal(model, REASONS[cls.__name__]))
    if hasattr(model, "aic") and hasattr(model, "score"):
        return LAWS["sequences" if hasattr(model, "decode") else "rows"]
    raise NoLikelihoodError(refusal(model, "no likelihood of it is known here"))


def refusal(model: Any, reason: str) -> str:
    """Say in one sentence why there is no criterion and what to do instead."""
    return (
        f"{type(model).__name__} has no information criterion, because {reason}: compare it with other models by the error on "
        "rows that were not fitted (cross-validation)."
    )


def present(X: Any, y: Any, weight: Any, lengths: Any) -> Rows:
    """Check weights and leave out the rows that weigh nothing.

    Examples
    --------
    >>> rows = present([[1.0], [2.0], [3.0]], None, [2, 0, 1], None)
    >>> rows.X, rows.total
    ([[1.0], [3.0]], 3.0)
    """
    if weight is None or is_stored(X):
        return Rows(X, y, weight, lengths)
    first = next(iter(X.values())) if isinstance(X, Mapping) else X
    weight = _check_sample_weight(weight, first, dtype=np.float64, ensure_non_negative=True)
    if weight.all():
        return Rows(X, y, weight, lengths)
    kept = np.flatnonzero(weight)
    if isinstance(X, Mapping):
        X = {name: _safe_indexing(column, kept) for name, column in X.items()}
    else:
        X = _safe_indexing(X, kept)
    return Rows(X, None if y is None else _safe_indexing(y, kept), weight[kept], lengths)


def checked_n(n: Any) -> float | None:
    """Check a declared N."""
    if n is None:
        return None
    if isinstance(n, bool) or not isinstance(n, Real) or not 0 < n < np.inf:
        raise ValueError(f"n must be a positive number, how many independent observations the rows are; got {n!r}.")
    return float(n)
