"""Which classes a classifier takes for which: the picture for rows that lie on no plane, such as counts and codes."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from lemmata.core.data import is_stored
from lemmata.plot.boundary import class_numbers, takes_actions
from lemmata.plot.decision_region import taken_actions
from lemmata.plot.drawing import answers, axes, ink, some_rows

MOST_NUMBERS = 20  # classes up to which a cell has room for its number
DARK = 0.55  # share of a class from which a number on the cell is white
UPRIGHT = 5  # classes up to which their names need not be turned
LONG = 40  # letters of all names beyond which they are turned


class ConfusionMatrixDisplay:
    """How many rows of each class a classifier gives to each class; for decisions, how often each action is taken.

    A cell is the darker, the larger its share of the rows of its class: classes of few rows are read as well as others.

    Parameters
    ----------
    counts : Rows of each class that have each answer, of shape (classes, answers).
    classes : What the classes are called.
    given : What the answers are called; default the classes.
    rows : What to call the rows in the title: "training rows", say.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.naive_bayes import MultinomialNB
    >>> X, y = [[3, 0], [2, 1], [0, 4], [1, 1]], ["spam", "spam", "mail", "mail"]
    >>> display = ConfusionMatrixDisplay.from_estimator(MultinomialNB().fit(X, y), X, y)
    >>> display.counts.tolist(), display.ax_.get_title()
    ([[2, 0], [0, 2]], 'MultinomialNB: 4 of 4 rows right (100%)')
    """

    def __init__(
        self,
        *,
        counts: np.ndarray,
        classes: Sequence[str],
        given: Sequence[str] | None = None,
        rows: str = "rows",
        name: str | None = None,
    ) -> None:
        self.counts = counts
        self.classes = classes
        self.given = given
        self.rows = rows
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        class_names: Any = None,
        rows: str = "rows",
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot what a fitted classifier makes of the rows of X; of a table on disk, of 5,000 of them.

        Parameters
        ----------
        y : Classes of the rows.
        class_names : What to call the classes, in their order.
        rows : What to call the rows in the title: "training rows", say.
        """
        if y is None:
            raise ValueError("A confusion matrix compares classes with predictions: give the classes y.")
        known = getattr(estimator, "feature_names_in_", None)
        if is_stored(X):
            X, y, _ = some_rows(estimator, X, y)
        elif known is not None and len(getattr(X, "columns", known)) > len(known):  # a table with more than what was fitted
            X = X[list(known)]
        classes = np.asarray(estimator.classes_)
        called, given = [str(c) for c in (classes if class_names is None else class_names)], None
        if takes_actions(estimator):
            answered = taken_actions(estimator, X)
            own = np.array_equal(classes, estimator.actions_)
            given = called if own else [str(a) for a in estimator.actions_]
            given = given + ["refuse to decide"] * (estimator.reject_cost is not None)
        else:
            answered = class_numbers(classes, answers(estimator, "predict", X))
        counts = np.zeros((len(classes), len(called if given is None else given)), dtype=int)
        np.add.at(counts, (class_numbers(classes, y), answered), 1)
        name = type(estimator).__name__ if name is None else name
        return cls(counts=counts, classes=called, given=given, rows=rows, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the cells, with their numbers if there is room."""
        ax = axes(ax, (5.6, 4.8))
        given = self.classes if self.given is None else self.given
        shares = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        if len(self.classes) <= MOST_NUMBERS:
            for (i, j), count in np.ndenumerate(self.counts):
                color = "white" if shares[i, j] > DARK else ink() if count else "0.7"
                ax.text(j, i, f"{count:,}", ha="center", va="center", color=color)
        turned = len(given) > UPRIGHT or sum(map(len, given)) > LONG
        style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if turned else {}
        ax.set_xticks(range(len(given)), given, **style)
        ax.set_yticks(range(len(self.classes)), self.classes)
        ax.set(xlabel="predicted class" if self.given is None else "decision", ylabel="true class", title=self._title())
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _title(self) -> str:
        k, total = len(self.classes), int(self.counts.sum())
        told = f"{total:,} {self.rows}"
        if self.given is None or list(self.given[:k]) == list(self.classes):  # the answers are classes; the rest is refused
            right, decided = int(np.trace(self.counts[:, :k])), int(self.counts[:, :k].sum())
            share = f" ({right / decided:.0%})" if decided else ""
            told = f"{right:,} of {decided:,} {self.rows} right{share}"
            told += "" if decided == total else f", {total - decided:,} refused"
        return f"{self.name}: {told}" if self.name else told
