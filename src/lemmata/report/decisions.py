"""What the page shows of decisions: the costs, how often each action was taken in each class, and what that cost."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lemmata.core.table import shown
from lemmata.decision import Decide

Row = Mapping[str, str | float]

ACTION = "action ↓ class →"  # head of the column of actions; no class is called so
REFUSAL = "refuse to decide"  # what a refusal is called on the page


def accuracy_of_decided(taken: Any, truth: Any, refusal: Any) -> float:
    """Return the share of the rows not refused whose action is the name of their class; NaN if all are refused.

    Examples
    --------
    >>> accuracy_of_decided(["yes", "no", "rejected", "no"], ["yes", "no", "no", "yes"], "rejected")
    0.6667
    """
    taken, truth = np.asarray(taken), np.asarray(truth)
    decided = taken != refusal
    return float(np.mean(taken[decided] == truth[decided])) if decided.any() else float("nan")


class Decisions:
    """The decisions of a fitted `Decide` in rows whose classes are known, all by their names.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["no", "yes", "no", "yes"]
    >>> decisions = Decisions(Decide(costs=[[0, 9], [1, 0]], actions=["wait", "treat"]).fit(X, y), X, y)
    >>> decisions.scores()
    {'mean cost': 0.5}
    >>> list(decisions.cost_rows())
    [{'action ↓ class →': 'wait', 'no': 0.0, 'yes': 9.0}, {'action ↓ class →': 'treat', 'no': 1.0, 'yes': 0.0}]
    >>> list(decisions.taken_rows())[1]
    {'action ↓ class →': 'treat', 'no': 2, 'yes': 2, 'total cost': 2.0}
    """

    def __init__(self, model: Decide, X: Any, y: Any, classes: list[str] | None = None) -> None:
        self.model, self.X, self.y = model, X, np.asarray(y)
        self.classes = [shown(c) for c in model.classes_.tolist()] if classes is None else classes
        self.actions = [shown(a) for a in model.actions_.tolist()]
        self.taken = np.array([shown(a) for a in model.predict(X).tolist()])
        self.refused = model.rejected(X)
        self.truth = np.array(self.classes)[np.searchsorted(model.classes_, self.y)]

    def scores(self) -> dict[str, str | float]:
        """Give the mean cost, the accuracy if actions are classes, and the share of refusals if there may be any."""
        scores: dict[str, str | float] = {"mean cost": self.model.cost(self.X, self.y)}
        if set(self.actions) <= set(self.classes):
            scores["accuracy"] = accuracy_of_decided(np.where(self.refused, None, self.taken), self.truth, None)
        if self.model.reject_cost is not None:
            scores["refused"] = float(self.refused.mean())
        return scores

    def cost_rows(self) -> list[Row]:
        """Give the costs, an action in a row; none if they are functions of the rows."""
        if self.model.costs_ is None or callable(self.model.reject_cost):
            return []
        rows: list[Row] = [
            {ACTION: action} | dict(zip(self.classes, costs, strict=True))
            for action, costs in zip(self.actions, self.model.costs_.tolist(), strict=True)
        ]
        if self.model.reject_cost is not None:
            rows.append({ACTION: REFUSAL} | dict.fromkeys(self.classes, float(self.model.reject_cost)))
        return rows

    def taken_rows(self) -> list[Row]:
        """Count how often each action was taken in the rows of each class, and what that cost."""
        groups = [(action, (self.taken == action) & ~self.refused) for action in self.actions]
        if self.model.reject_cost is not None:
            groups.append((REFUSAL, self.refused))
        return [self._taken_row(action, rows) for action, rows in groups]

    def _taken_row(self, action: str, rows: Any) -> Row:
        counts = {name: int((self.truth[rows] == name).sum()) for name in self.classes}
        total = self.model.cost(self.X, self.y, sample_weight=rows.astype(float)) * rows.sum() if rows.any() else 0.0
        return {ACTION: action} | counts | {"total cost": float(total)}
