"""Costs from a file, and a model of a table that acts on them.

A file of costs is a table: one row for each action, with its name in the first column, and one column for each class, named in
the header. Rows and columns may stand in any order, and there may be more or fewer actions than classes. A refusal to decide is
one more action, whose cost is the same in every class.
"""

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lemmata.core.table import Column, shown, sniff
from lemmata.core.table_model import TableModel
from lemmata.decision.decide import Decide

REJECTED = "rejected"  # what a model of the command line answers where it refuses


@dataclass(frozen=True)
class Costs:
    """What each action costs in each class.

    Attributes
    ----------
    actions, classes : Names of rows and columns.
    matrix : (actions, classes)
    reject : Cost of a refusal; None if there is none.
    source : Where the costs are from, in words.
    """

    actions: tuple[str, ...]
    classes: tuple[str, ...]
    matrix: NDArray[np.float64]
    reject: float | None = None
    source: str = ""

    @property
    def names_classes(self) -> bool:
        """Whether every action is the name of a class, so that a decision can be right or wrong."""
        return set(self.actions) <= set(self.classes)

    @property
    def choices(self) -> NDArray[np.float64]:
        """The matrix, with the refusal as its last row if there is one."""
        if self.reject is None:
            return self.matrix
        return np.vstack([self.matrix, np.full(len(self.classes), self.reject)])

    def taken(self, names: Any) -> NDArray[np.int64]:
        """Find the row of `choices` that each action's name stands for."""
        position = {name: j for j, name in enumerate([*self.actions, REJECTED])}
        return np.array([position[str(name)] for name in names], dtype=np.int64)

    def decide(self, estimator: Any, present: Any = slice(None)) -> Decide:
        """Put the decision on top of a classifier that will see the classes `present`, by their numbers."""
        return Decide(
            estimator,
            costs=self.matrix[:, present],
            actions=list(self.actions),
            reject_cost=self.reject,
            reject_label=None if self.reject is None else REJECTED,
        )


def zero_one_costs(classes: Iterable[str], reject: float) -> Costs:
    """Make every mistake cost one, and a refusal as much as is said.

    Examples
    --------
    >>> zero_one_costs(["no", "yes"], 0.2).choices
    array([[0. , 1. ],
           [1. , 0. ],
           [0.2, 0.2]])
    """
    names = tuple(classes)
    return _with_refusal(Costs(names, names, 1.0 - np.eye(len(names)), source="every mistake costs 1"), reject)


def read_costs(path: Path, classes: Iterable[str], reject: float | None = None) -> Costs:
    r"""Read a file of costs for these classes, or say what is wrong with it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "costs.csv"
    ...     _ = path.write_text("action,rain,dry\ntake,0,1\nleave,5,0\n")
    ...     read_costs(path, ["dry", "rain"])
    Costs(actions=('take', 'leave'), classes=('dry', 'rain'), matrix=array([[1., 0.],
           [0., 5.]]), reject=None, source='the costs of costs.csv')
    """
    names = tuple(classes)
    header, rows = _cells(path)
    if header[0] in names and header[0] not in header[1:]:
        raise ValueError(f"{path} begins with the class {header[0]!r}: put a column with the names of the actions before it.")
    _check_names(path, header[1:], names)
    actions: dict[str, list[float]] = {}
    for action, *cells in rows:
        if not action:
            raise ValueError(f"{path} has a row without a name; its first column names the action.")
        if action in actions:
            raise ValueError(f"{path} has two rows for the action {action!r}.")
        cost = {name: _number(path, action, name, cell) for name, cell in zip(header[1:], cells, strict=True)}
        actions[action] = [cost[name] for name in names]
    matrix = np.array(list(actions.values()))
    return _with_refusal(Costs(tuple(actions), names, matrix, source=f"the costs of {path.name}"), reject)


def _cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """Read header and rows as text: a table of data would leave out a first column that numbers the rows."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=sniff(lines), strict=True) if any(row)]
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not a CSV file in UTF-8.") from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise ValueError(f"{path} should have a header with the names of the classes, and a row for each action below it.")
    ragged = next((row for row in rows if len(row) != len(rows[0])), None)
    if ragged is not None:
        raise ValueError(f"{path}, action {ragged[0]!r}: the header has {len(rows[0])} cells, and this row has {len(ragged)}.")
    return rows[0], rows[1:]


def _check_names(path: Path, found: list[str], classes: tuple[str, ...]) -> None:
    for name in found:
        if name not in classes:
            raise ValueError(f"{path} has a column {name!r}, which is no class; the classes are {', '.join(classes)}.")
        if found.count(name) > 1:
            raise ValueError(f"{path} has two columns for the class {name!r}.")
    absent = next((name for name in classes if name not in found), None)
    if absent is not None:
        raise ValueError(f"{path} has no column for the class {absent!r}; the classes are {', '.join(classes)}.")


def _number(path: Path, action: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = inf
    if not isfinite(value):
        raise ValueError(f"{path}: the cost of the action {action!r} in the class {name!r} is {cell!r}, which is no number.")
    return value


def _with_refusal(costs: Costs, reject: float | None) -> Costs:
    if reject is None and len(costs.actions) == 1:
        raise ValueError(f"{costs.source} have one action, {costs.actions[0]!r}: there is nothing to decide; add another.")
    if reject is None:
        return costs
    if not 0 <= reject < inf:
        raise ValueError(f"the cost of a refusal is {reject:g}; it must be a number of at least 0.")
    if REJECTED in costs.actions:
        raise ValueError(f"an action is called {REJECTED!r}, as refused rows are; give it another name.")
    return Costs(costs.actions, costs.classes, costs.matrix, reject, costs.source)


class DecisionModel(TableModel):
    """A `TableModel` of a `Decide`: it answers with the names of actions instead of classes.

    Examples
    --------
    >>> from lemmata.linear_model import LogisticRegression
    >>> table = {"clouds": [0, 2, 4, 6, 8, 5], "day": ["dry", "dry", "rain", "dry", "rain", "rain"]}
    >>> costs = Costs(("take", "leave"), ("dry", "rain"), np.array([[1.0, 0.0], [0.0, 5.0]]))
    >>> model = DecisionModel(costs.decide(LogisticRegression()), target="day").fit(table)
    >>> model.predict({"clouds": [0, 3]}).tolist(), model.expected_cost({"clouds": [0, 3]})
    (['take', 'take'], array([0.7616, 0.5815]))
    """

    @property
    def costs(self) -> Costs:
        """What the fitted model acts on."""
        decide, names = self.estimator_, tuple(shown(value) for value in self.classes_)
        return Costs(tuple(decide.actions_.tolist()), names, decide.costs_, decide.reject_cost)

    def expected_cost(self, table: Any) -> NDArray[np.float64]:
        """Give the expected cost of the action taken, row by row."""
        return np.asarray(self.estimator_.risk(self.encoder_.transform(table)).min(axis=1))

    def _decode(self, predicted: Any) -> Column:
        return np.asarray(predicted, dtype=object)
