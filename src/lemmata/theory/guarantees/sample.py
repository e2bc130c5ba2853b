"""The rows that a bound is computed from, as every family of bounds wants them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length, column_or_1d

from lemmata.theory.guarantees.bound import Bound
from lemmata.theory.guarantees.structure import Structure

IID = "the rows are independent draws from the distribution in which the model is used"
MARGINAL = "rows have missing values, and each pattern of them has a boundary of its own"


@dataclass(frozen=True)
class Sample:
    """Labeled rows and what the model makes of them.

    Attributes
    ----------
    structure : The model without its wrapping.
    X : Raw rows.
    y : Labels, (n,).
    wrong : Whether the model errs on each row, (n,).
    data : The rows in words.
    delta : Probability with which a bound may fail.
    kinds : Number of kinds of model that a search compared on these rows; each has its share of δ.
    """

    structure: Structure
    X: Any
    y: np.ndarray
    wrong: np.ndarray
    data: str
    delta: float
    kinds: int = 1

    @classmethod
    def unseen(cls, structure: Structure, X: Any, y: Any, delta: float) -> "Sample":
        """Predict the rows of a hold-out and compare."""
        y = column_or_1d(y)
        check_consistent_length(X, y)
        wrong = np.asarray(structure.model.predict(X)) != y
        return cls(structure, X, y, wrong, f"{len(y)} hold-out rows", delta)

    @classmethod
    def training(cls, structure: Structure, X: Any, y: Any, delta: float) -> "Sample":
        """Predict the rows that the model was fitted to, and compare."""
        y = column_or_1d(y)
        strange = np.setdiff1d(y, structure.model.classes_)
        if len(strange):
            raise ValueError(
                f"The model does not know the label {strange[0]!s} of y: X and y must be the rows that it was fitted to, "
                "with the same labels."
            )
        sample = cls.unseen(structure, X, y, delta)
        return replace(sample, data=f"{len(y)} training rows", kinds=structure.kinds)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def errors(self) -> int:
        """Number of rows on which the model errs."""
        return int(self.wrong.sum())

    @property
    def classes(self) -> np.ndarray:
        """The labels that the model knows."""
        return np.asarray(self.structure.model.classes_)

    @property
    def columns(self) -> int:
        """Number of columns that were fixed before the sample; none if the rows are no table, but texts for one."""
        first = self.structure.fixed(self.X[:1])
        return first.shape[1] if len(first.shape) == 2 else 0

    @property
    def sparse(self) -> bool:
        """Whether these columns are stored without their zeros."""
        return issparse(self.structure.fixed(self.X[:1]))

    @property
    def trivial(self) -> float:
        """Risk of the class that is most frequent in these rows."""
        return 1 - float(np.unique(self.y, return_counts=True)[1].max()) / self.n

    def signs(self) -> np.ndarray:
        """Give +1 for rows of the second of two classes, else −1."""
        return np.where(self.y == self.classes[1], 1.0, -1.0)

    def bound(self, name: str, formula: Callable[[float], float], *assumptions: str, **facts: Any) -> Bound:
        """Compute a bound by its formula, with what holds of all bounds from these rows."""
        facts = {"observed": self.errors / self.n, "trivial": self.trivial, "data": self.data} | facts
        told = (IID, *assumptions)
        if self.kinds > 1:
            told = (*told, f"the {self.kinds} kinds of model compared were fixed before; each has its share of delta")

        def paid(delta: float) -> float:
            return formula(delta / self.kinds)

        return Bound(name, float(paid(self.delta)), self.delta, formula=paid, assumptions=told, **facts)


def missing_values(sample: Sample) -> bool:
    """Whether any entry of the rows is NaN."""
    Z = sample.structure.fixed(sample.X)
    return bool(np.isnan(np.asarray(Z.data if issparse(Z) else Z, dtype=float)).any())
