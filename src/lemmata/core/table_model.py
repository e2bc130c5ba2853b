"""A model of a whole table: the encoder of its columns and an estimator, fitted, saved and certified as one.

What a person has is a table with a target column; what an estimator takes is a matrix and a vector. `TableModel` keeps the
way from the one to the other with the fit, so that one file on disk predicts and certifies from a raw table.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.fingerprint import fingerprint
from lemmata.core.table import Column, Kind, Table, as_table, distinct, is_missing, kind_of, shown
from lemmata.core.table_encoder import Floats, PairEncoder, TableEncoder, floats


def encoder_for(estimator: Any) -> TableEncoder | PairEncoder:
    """Make the encoder that suits an estimator: columns on one scale, and missing numbers filled unless it takes them.

    A regressor that reads no table of numbers reads pairs of identifiers.
    """
    if reads_pairs(estimator):
        return PairEncoder()
    return TableEncoder(scale=True, keep_missing=get_tags(estimator).input_tags.allow_nan)


def reads_pairs(estimator: Any) -> bool:
    """Tell whether an estimator is a regressor on pairs of identifiers, such as users and items.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> from lemmata.recommend import ProbabilisticMatrixFactorization
    >>> reads_pairs(Ridge()), reads_pairs(ProbabilisticMatrixFactorization())
    (False, True)
    """
    tags = get_tags(estimator)
    return bool(tags.estimator_type == "regressor" and not tags.input_tags.two_d_array)


class TableModel(BaseEstimator):
    """Fit an estimator to a table: columns are encoded, classes decoded, rows without a target left out.

    Parameters
    ----------
    estimator : Regressor, classifier or clusterer.
    target : Name of the column to predict; None for a clusterer.
    encoder : How columns become numbers; default `TableEncoder(scale=True)`, because distances and penalties compare columns,
        with missing numbers left as they are if the estimator takes them.

    Attributes
    ----------
    estimator_ : Fitted estimator.
    encoder_ : Fitted encoder.
    classes_ : Values of the target, for a classifier.
    fingerprint_ : A number of the rows and their target, by which `saw` knows them again.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> table = {"size": [40, 65, 80, 55], "city": ["Graz", "Linz", "Graz", "Linz"], "rent": [500, 730, 900, 630]}
    >>> model = TableModel(LinearRegression(), target="rent").fit(table)
    >>> model.predict({"size": [60], "city": ["Linz"]})
    array([680.])
    >>> model.certify(table).holds
    True
    """

    def __init__(self, estimator: Any, target: str | None = None, encoder: TableEncoder | PairEncoder | None = None) -> None:
        self.estimator = estimator
        self.target = target
        self.encoder = encoder

    def fit(self, table: Any) -> "TableModel":
        """Fit the encoder, then the estimator, to the rows that have a target."""
        table = self._with_target(as_table(table))
        self.encoder_ = encoder_for(self.estimator) if self.encoder is None else clone(self.encoder)
        X = self.encoder_.fit_transform(table if self.target is None else table.without(self.target))
        if self.target is not None:
            self.target_kind_: Kind = kind_of(table[self.target])
            if self._is("classifier"):
                self.classes_ = [value if isinstance(value, str) else value.item() for value in distinct(table[self.target])]
        y = self._target(table)
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.fingerprint_ = _of_rows(X, y)
        return self

    def predict(self, table: Any) -> Column:
        """Predict the target (or the cluster) of each row, in the values of the table it was fitted to."""
        check_is_fitted(self)
        return self._decode(self.estimator_.predict(self.encoder_.transform(table)))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, table: Any) -> Floats:
        """Give the probability of each of `classes_`, row by row."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(self.encoder_.transform(table))

    def score(self, table: Any) -> float:
        """Return the estimator's own score on the rows that have a target: R² or accuracy."""
        return float(self.estimator_.score(*self.encode(table)))

    def certify(self, table: Any) -> Certificate:
        """Check the fit against the table it was fitted to, from the parameters and the rows alone."""
        return self.estimator_.certify(*self.encode(table))

    def saw(self, table: Any) -> bool:
        """Tell whether these are the rows of the fit, in any order."""
        try:
            return _of_rows(*self.encode(table)) == self.fingerprint_
        except ValueError:  # columns that are not there, or hold something else
            return False

    def save(self, path: str | Path) -> None:
        """Write encoder and estimator to one file that `lemmata.load` reads."""
        from lemmata.core.persistence import save

        save(self, path)

    def encode(self, table: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Give the matrix and the target that the estimator sees, without the rows that have no target."""
        check_is_fitted(self)
        table = self._with_target(as_table(table))
        return self.encoder_.transform(table), self._target(table)

    def _with_target(self, table: Table) -> Table:
        if self.target is None:
            return table
        if self.target not in table:
            raise ValueError(f"the table has no column {self.target!r}; it has {', '.join(map(repr, table))}.")
        missing = is_missing(table[self.target])
        if missing.all():
            raise ValueError(f"the target {self.target!r} is missing in every row.")
        return table.take(~missing) if missing.any() else table

    def _target(self, table: Table) -> NDArray[Any] | None:
        """Give the target as numbers: itself, or the position of the class."""
        if self.target is None:
            return None
        column = table[self.target]
        if self._is("classifier"):
            position = {value: j for j, value in enumerate(self.classes_)}
            codes = [position.get(value, -1) for value in column.tolist()]
            if -1 in codes:
                strange = shown(column[codes.index(-1)])
                raise ValueError(f"the target {self.target!r} holds {strange!r}, which the model has never seen.")
            return np.array(codes)
        if kind_of(column) not in ("number", "boolean"):
            raise ValueError(f"the target {self.target!r} holds {kind_of(column)}, not numbers.")
        return floats(column)

    def _decode(self, predicted: Any) -> Column:
        if not self._is("classifier"):
            return np.asarray(predicted)
        dtype = {"number": float, "boolean": bool}.get(self.target_kind_, object)
        return np.array(self.classes_, dtype=dtype)[np.asarray(predicted, dtype=int)]

    def _is(self, estimator_type: str) -> bool:
        return get_tags(self.estimator).estimator_type == estimator_type

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.target_tags = inner.target_tags
        return tags


def _of_rows(X: NDArray[Any], y: NDArray[Any] | None) -> int:
    return fingerprint(X) if y is None else fingerprint(X, y)
