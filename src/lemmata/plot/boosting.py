"""How boosting came down, round by round: its loss, or its training error beneath the product that bounds it.

AdaBoost multiplies the weight of a row by e^α whenever a learner of weighted error ε misjudges it, so the mean over the rows of
exp(Σ α of the rounds that misjudged it) is ∏ (1 − ε + ε e^α). A row that the vote misjudges has at least half of all votes
against it, which makes it at least exp(½ Σ α) there; hence the training error is at most ∏ (1 − ε + ε e^α) e^(−α/2), whatever
the votes α ≥ 0 and however many the classes [2]. With the votes α = ln((1 − ε)/ε) of two classes a factor is 2√(ε(1 − ε)) [1].

[1] Freund & Schapire, J. Comput. Syst. Sci. 55 (1997). [2] Schapire & Singer, Machine Learning 37 (1999).
"""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from lemmata.plot.drawing import CLASS_COLORS, NEUTRAL, axes, quiet

COLORS = {"training": CLASS_COLORS[0], "validation": CLASS_COLORS[1]}
PRODUCT, GENERAL = "bound ∏ 2√(ε(1 − ε))", "bound ∏ (1 − ε + ε eᵅ) e^(−α/2)"


class BoostingDisplay:
    """The loss of a boosted model after each round; of AdaBoost the errors, with the bound of the training error.

    Parameters
    ----------
    curves : Mapping from "training" or "validation" to the values after each round.
    bound : Bound of the training error after each round, or None.
    formula : What to call the bound.
    first : Round of the first value: 0 if curves begin with the constant model.
    measure : What the curves show.
    name : What to write above the plot.

    Attributes
    ----------
    ax_, figure_ : Axes and figure of the last plot.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> errors = np.array([0.3, 0.4, 0.3])
    >>> bound = vote_bound(errors, np.log((1 - errors) / errors))
    >>> bound.round(6).tolist()
    [0.916515, 0.897998, 0.823029]
    >>> display = BoostingDisplay(curves={"training": [0.3, 0.3, 0.1]}, bound=bound, measure="training error").plot()
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['training', 'bound ∏ 2√(ε(1 − ε))']
    """

    def __init__(
        self,
        *,
        curves: Mapping[str, Any],
        bound: Any = None,
        formula: str = PRODUCT,
        first: int = 1,
        measure: str = "loss",
        name: str | None = None,
    ) -> None:
        self.curves = {kind: np.asarray(values, dtype=float) for kind, values in curves.items()}
        self.bound = None if bound is None else np.asarray(bound, dtype=float)
        self.formula = formula
        self.first = first
        self.measure = measure
        self.name = name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        validation: tuple[Any, Any] | None = None,
        ax: Any = None,
        name: str | None = None,
    ) -> Self:
        """Plot a fitted AdaBoost or gradient boosting, ours or scikit-learn's.

        Parameters
        ----------
        X, y : Rows of the fit. Our models know their training errors and losses; scikit-learn's AdaBoost needs the rows for
            that, and has the bound alone without.
        validation : Rows and labels that were not fitted, for a second curve of AdaBoost.
        """
        name = type(estimator).__name__ if name is None else name
        if not hasattr(estimator, "estimator_errors_"):
            return cls(**_losses(estimator), name=name).plot(ax)
        curves = {}
        if hasattr(estimator, "train_errors_"):
            curves["training"] = estimator.train_errors_
        elif y is not None:
            curves["training"] = staged_errors(estimator, X, y)
        if validation is not None:
            curves["validation"] = staged_errors(estimator, *validation)
        rounds = len(estimator.estimators_)  # scikit-learn has zeros for those that it did not need
        errors, votes = estimator.estimator_errors_[:rounds], estimator.estimator_weights_[:rounds]
        with np.errstate(divide="ignore"):
            plain = len(estimator.classes_) == 2 and np.allclose(votes, np.log((1 - errors) / errors))
        formula = PRODUCT if plain else GENERAL
        measure = "share of rows misjudged" if curves else "bound of the training error"
        return cls(curves=curves, bound=vote_bound(errors, votes), formula=formula, measure=measure, name=name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the curves, and the bound above them."""
        from matplotlib.ticker import MaxNLocator

        ax = axes(ax, (5.6, 4.2))
        for kind, values in self.curves.items():
            ax.plot(self.first + np.arange(len(values)), values, color=COLORS.get(kind), lw=1.8, label=kind)
        if self.bound is not None:
            rounds = self.first + np.arange(len(self.bound))
            ax.plot(rounds, self.bound, color=NEUTRAL, lw=1.4, ls=(0, (5, 3)), label=self.formula)
            ax.set_ylim(0, 1.03)  # more than all rows is no bound
        ax.set(xlabel="round", ylabel=self.measure, title=self.name or "")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        ax.legend(frameon=False, fontsize="small")
        quiet(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def vote_bound(errors: Any, votes: Any) -> np.ndarray:
    """Bound the training error of weighted votes after each round: ∏ (1 − ε + ε e^α) e^(−α/2).

    Parameters
    ----------
    errors : Weighted error ε of each learner.
    votes : Logarithm α of the factor by which the weight of a misjudged row grew.
    """
    errors, votes = np.asarray(errors, dtype=float), np.asarray(votes, dtype=float)
    return np.cumprod((1 - errors) * np.exp(-votes / 2) + errors * np.exp(votes / 2))


def staged_errors(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Return the share of rows that the model misjudges after each round."""
    target = np.asarray(y).ravel()
    return np.array([np.mean(stage != target) for stage in estimator.staged_predict(X)])


def _losses(estimator: Any) -> dict[str, Any]:
    """Return what a display of gradient boosting is made of."""
    # Scores are minus losses and begin with the constant; scikit-learn's older kind, of n_estimators, has losses of its rounds.
    scored = hasattr(estimator, "max_iter")
    found = {"training": estimator.train_score_, "validation": getattr(estimator, "validation_score_", ())}
    curves = {kind: (-1 if scored else 1) * np.asarray(values) for kind, values in found.items() if len(values)}
    if not curves:
        raise ValueError(f"{type(estimator).__name__} has kept no losses of its rounds: fit it with early_stopping=True.")
    return {"curves": curves, "first": 0 if scored else 1, "measure": f"mean loss ({estimator.loss.replace('_', ' ')})"}
