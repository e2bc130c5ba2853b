"""What a model that decides by costs does on a plane: the region of each action, and where it refuses to decide."""

from typing import Any, Self

import numpy as np

from lemmata.plot.boundary import ahead_of_others, ask, class_numbers, lines, log_probabilities, place, shade
from lemmata.plot.drawing import CLASS_MARKS, MAX_ROWS, NEUTRAL, answers, axes, class_colors, ink, quiet, some_rows
from lemmata.plot.plane import Plane, choose_plane

SHADE = 0.28  # opacity of a region: rows stay readable on it
HATCH = "////"
TIE = 1e-12  # by which the first of equal actions is ahead, so that it has a region
LEAST = 1e-300  # risk of zero, so that it has a logarithm


class DecisionRegionDisplay:
    """Regions of the actions of a fitted `lemmata.decision.Decide`, the zone of refusal, and the rows.

    The zone where it costs less to refuse than to decide is hatched. The dashed line is where the most probable class
    changes: between it and the edge of a region the costs overrule the probabilities. Rows have the mark of their class, and
    a ring where the action is that of another class.

    Parameters
    ----------
    grid : Coordinates of the grid on the plane, two vectors.
    risks : Expected cost of each action at each point, of shape (second, first, actions); that of refusing is the last.
    logs : Logarithm of the probability of each class at each point, of shape (second, first, classes).
    points : Rows on the plane, of shape (rows, 2).
    labels : Number of the class of each row, or None.
    taken : Number of the action of each row; that of refusing is the last.
    classes, actions : What they are called; without the refusal.
    plane : `Plane` of the picture.
    costs : Mean cost of the actions on the rows, and of deciding for the most probable class; None if not known.
    name : What to write above the plot.

    Attributes
    ----------
    rejects : Whether refusing is one of the actions.
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from lemmata.decision import Decide
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [3.0, 1.0], [2.0, 2.0]], ["no", "no", "yes", "yes"]
    >>> display = DecisionRegionDisplay.from_estimator(Decide(costs=[[0, 5], [1, 0]], reject_cost=0.4).fit(X, y), X, y)
    >>> display.actions, display.rejects, display.taken
    (['no', 'yes'], True, array([2, 2, 1, 1]))
    """

    def __init__(
        self,
        *,
        grid: tuple[np.ndarray, np.ndarray],
        risks: np.ndarray,
        logs: np.ndarray,
        points: np.ndarray,
        labels: np.ndarray | None,
        taken: np.ndarray,
        classes: list[str],
        actions: list[str],
        plane: Plane,
        costs: tuple[float, float] | None = None,
        name: str | None = None,
    ) -> None:
        self.grid = grid
        self.risks = risks
        self.logs = logs
        self.points = points
        self.labels = labels
        self.taken = taken
        self.classes = classes
        self.actions = actions
        self.plane = plane
        self.costs = costs
        self.name = name
        self.rejects = risks.shape[-1] > len(actions)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        features: Any = None,
        feature_names: Any = None,
        class_names: Any = None,
        ax: Any = None,
        name: str | None = None,
        max_rows: int = MAX_ROWS,
    ) -> Self:
        """Plot what a fitted `Decide` does about the rows of X, at most `max_rows` of them, and about what lies between.

        Parameters
        ----------
        y : Classes of the rows.
        features : Two columns, by number or name, for the axes; the others stay at their means.
        feature_names, class_names : What to call columns and classes, in their order.
        """
        if not hasattr(estimator, "risk") or not hasattr(estimator, "actions_"):
            raise ValueError(
                f"{type(estimator).__name__} has no actions with expected costs: give a fitted Decide, or use BoundaryDisplay."
            )
        if len(estimator.actions_) == 1 and estimator.reject_cost is None:
            raise ValueError("There is nothing to plot: the model has one action, which it takes everywhere.")
        X, y, names = some_rows(estimator, X, y, max_rows)
        names = names if feature_names is None else [str(n) for n in feature_names]
        # Risks change along the scores of a linear classifier only, unless the costs depend on the row.
        depends = callable(estimator.costs) or callable(estimator.reject_cost)
        plane = choose_plane(None if depends else estimator.estimator_, X, names, features)
        points, grid = place(plane, X)
        classes, actions = np.asarray(estimator.classes_), list(estimator.actions_)
        own = np.array_equal(classes, estimator.actions_)
        called = [str(c) for c in (classes if class_names is None else class_names)]
        display = cls(
            grid=grid,
            risks=ask(estimator, "risk", plane, grid),
            logs=log_probabilities(estimator, plane, grid),
            points=points,
            labels=None if y is None else class_numbers(classes, y),
            taken=taken_actions(estimator, X),
            classes=called,
            actions=called if own else [str(a) for a in actions],
            plane=plane,
            costs=None if y is None else _mean_costs(estimator, X, y, own),
            name=type(estimator).__name__ if name is None else name,
        )
        return display.plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw regions, lines and rows."""
        ax = axes(ax, (7.0, 4.8))
        ahead = self._ahead()
        for k, color in enumerate(self._action_colors()):
            shade(ax, self.grid, ahead[k], 0.0, color, SHADE)
        if self.rejects:
            zone = shade(ax, self.grid, ahead[-1], 0.0, NEUTRAL, SHADE, hatches=[HATCH])
            if zone is not None:
                zone.set(edgecolor=NEUTRAL, linewidth=0)  # the hatch has the color of the edge
        for k in range(len(ahead) if self.rejects else max(len(ahead) - 1, 1)):
            lines(ax, self.grid, ahead[k], [0.0], colors=[ink()], linewidths=1.6)
        for k in range(len(self.classes) - 1):  # every boundary is that of a class and a later one
            lines(ax, self.grid, self._beyond(k), [0.0], colors=[ink()], linewidths=1.2, linestyles=[(0, (4, 3))])
        self._rows(ax)
        first, second = self.grid
        ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
        ax.set_title(self._title(), fontsize="medium")
        ax.set(xlabel=self.plane.names[0], ylabel=self.plane.names[1])
        if not self.plane.directions[:, 1].any():
            ax.set_yticks([])
        quiet(ax)
        self._legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ahead(self) -> np.ndarray:
        """Give by how much each action is better than the others at each point, (actions, second, first); ties go to the first.

        Logarithms of risks are compared if they exist: probabilities jump within a cell, their logarithms are nearly straight.
        """
        heights = np.log(np.maximum(self.risks, LEAST)) if self.risks.min() >= 0 else self.risks
        ahead = ahead_of_others(-heights)
        best = self.risks.argmin(axis=-1) == np.arange(len(ahead))[:, None, None]
        return np.where(best, np.maximum(ahead, TIE), np.minimum(ahead, -TIE))

    def _beyond(self, k: int) -> np.ma.MaskedArray:
        """Give by how much a class is more probable than the later ones, where no earlier one is: dashes twice are a line."""
        later, earlier = self.logs[..., k + 1 :].max(axis=-1), self.logs[..., :k].max(axis=-1, initial=-np.inf)
        own = self.logs[..., k]
        return np.ma.MaskedArray(own - later, mask=earlier > np.maximum(own, later))

    def _action_colors(self) -> list[Any]:
        """Give the colors of the classes if the actions are the classes, else others."""
        if self.actions == self.classes:
            return class_colors(len(self.classes))
        return class_colors(len(self.classes) + len(self.actions))[len(self.classes) :]

    def _rows(self, ax: Any) -> None:
        if self.labels is None:
            ax.scatter(*self.points.T, s=14, alpha=0.7, linewidths=0, color=NEUTRAL)
            return
        for k, color in enumerate(class_colors(len(self.classes))):
            rows = self.labels == k
            mark, label = CLASS_MARKS[k % len(CLASS_MARKS)], f"{self.classes[k]}: {rows.sum():,} rows"
            ax.scatter(*self.points[rows].T, s=18, alpha=0.85, linewidths=0, color=color, marker=mark, label=label)
        decided = self.taken < len(self.actions)
        wrong = decided & (self.taken != self.labels)
        if self.actions == self.classes and wrong.any():
            label = f"mistakes: {wrong.sum():,} of {decided.sum():,}" + (" decided" if self.rejects else "")
            ax.scatter(*self.points[wrong].T, s=58, facecolors="none", edgecolors=ink(), linewidths=0.9, label=label)

    def _title(self) -> str:
        told = []
        if self.costs is not None:
            told.append(
                f"mean cost {self.costs[0]:.3g}" + ("" if np.isnan(self.costs[1]) else f" (argmax: {self.costs[1]:.3g})")
            )
        if self.rejects:
            told.append(f"{np.mean(self.taken == len(self.actions)):.0%} of the rows refused")
        return "\n".join(part for part in (self.name, ", ".join(told)) if part)

    def _legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        handles, _ = ax.get_legend_handles_labels()
        colors = self._action_colors()
        best = self.risks.argmin(axis=-1)
        for k, (color, action) in enumerate(zip(colors, self.actions, strict=True)):
            label = f"decide: {action}" + ("" if (best == k).any() else " (nowhere here)")
            handles.append(Patch(color=color, alpha=SHADE, label=label))
        if self.rejects:
            handles.append(
                Patch(facecolor=(0.55, 0.55, 0.55, SHADE), edgecolor=NEUTRAL, lw=0, hatch=HATCH, label="refuse to decide")
            )
        handles.append(Line2D([], [], color=ink(), lw=1.6, label="edge of a decision"))
        handles.append(Line2D([], [], color=ink(), lw=1.2, ls=(0, (4, 3)), label="most probable\nclass changes"))
        ax.legend(handles=handles, frameon=False, fontsize="small", loc="upper left", bbox_to_anchor=(1, 1), markerscale=1.2)


def taken_actions(estimator: Any, X: Any) -> np.ndarray:
    """Return the number of the action of each row; that of refusing is the last."""
    taken, refused = answers(estimator, "predict", X), answers(estimator, "rejected", X)
    actions = list(estimator.actions_)
    return np.array([len(actions) if no else actions.index(a) for a, no in zip(taken.tolist(), refused, strict=True)])


def _mean_costs(estimator: Any, X: np.ndarray, y: Any, own: bool) -> tuple[float, float]:
    """Return the mean cost of the actions, and that of the most probable class if it is an action; else NaN."""
    table = estimator.costs_
    cost = float(answers(estimator, "cost", X, y=y))
    if not own or table is None:
        return cost, np.nan
    probable = answers(estimator, "predict_proba", X).argmax(axis=1)
    return cost, float(table[probable, class_numbers(np.asarray(estimator.classes_), y)].mean())
