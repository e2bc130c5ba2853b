"""What unseen rows promise about a saved model: `lemmata.theory.guarantee` for a model of a table.

A model of a table is an encoder and an estimator. The encoder was settled in the fit, so the estimator on encoded rows is the
model, and its bounds are the model's. A class that the fit never saw cannot be predicted: its rows are mistakes, and leaving
them out would flatter the model. Decisions are judged by what they cost, measured from the smallest cost there is.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier, is_regressor

from lemmata.cli.promise import percent
from lemmata.core.table import Table, is_missing, shown
from lemmata.core.table_model import TableModel
from lemmata.decision.costs import DecisionModel
from lemmata.theory import Bound, Guarantee, guarantee
from lemmata.theory.guarantees.regression import LARGER, QUANTILE


class Promise(NamedTuple):
    """What is known: the bounds, the one to quote, that in a sentence, and remarks on the rows."""

    found: Guarantee
    best: Bound
    sentence: str
    remarks: list[str]


def promise_of(
    model: TableModel, table: Table, delta: float, n_models: int, upper: float | None, tolerance: float | None
) -> Promise:
    """Bound the risk of a saved model by rows that it has not seen."""
    if not (is_classifier(model) or is_regressor(model)):
        raise ValueError(f"{type(model.estimator_).__name__} predicts no target: it has no risk to bound.")
    if is_classifier(model) and not (upper is None and tolerance is None):
        raise ValueError("--upper and --tolerance limit the errors of a regressor; this model is a classifier.")
    if model.saw(table):
        raise ValueError("the model was fitted to these rows, so their errors promise nothing; give rows it has not seen.")
    X, y, remarks = _unseen_rows(model, table)
    holdout, options = (X, y), {"delta": delta, "n_models": n_models}
    if is_regressor(model):
        found = guarantee(model.estimator_, holdout=holdout, upper=upper, tolerance=tolerance, **options)
        best, said = _of_regressor(found, upper, tolerance)
    elif isinstance(model, DecisionModel):
        found, best, said = _of_decisions(model, holdout, options)
    else:
        found = guarantee(model.estimator_, holdout=holdout, **options)
        best = found.best
        said = f"the model errs on at most {percent(best.value)} of new rows; on these {len(y):,} it erred on"
        said = f"{said} {percent(best.observed)}"
    if best.vacuous or not np.isfinite(best.value):
        return Promise(found, best, f"These {len(y):,} rows promise nothing with probability {percent(1 - delta)}.", remarks)
    if best.uninformative:
        constant = "action" if isinstance(model, DecisionModel) else "prediction"
        said += f". The bound is no less than what the best constant {constant} loses in these rows"
    return Promise(found, best, f"With probability {percent(1 - delta)}, {said}.", remarks)


def _of_regressor(found: Guarantee, upper: float | None, tolerance: float | None) -> tuple[Bound, str]:
    """Choose what to quote by what was asked, never by the values."""
    if upper is not None:
        best = found.best
        return best, f"the mean absolute error is at most {best.value:.4g}, errors above {upper:g} counted as {upper:g}"
    if tolerance is not None:
        best = found[LARGER]
        return best, f"at most {percent(best.value)} of the errors on new rows are larger than {tolerance:g}"
    best = found[QUANTILE]
    return best, f"at least 90 % of the errors on new rows are at most {best.value:.4g}"


def _of_decisions(model: DecisionModel, holdout: Any, options: Any) -> tuple[Guarantee, Bound, str]:
    costs = model.costs
    low, high = min(0.0, float(costs.choices.min())), float(costs.choices.max())
    if not high > low:
        raise ValueError("no action costs anything in any class: there is nothing to bound.")

    def cost(decide: Any, X: Any, y: Any) -> Any:
        return costs.choices[costs.taken(decide.predict(X)), y] - low

    cost.__name__ = "mean cost" if low == 0 else f"mean cost above {low:g}"
    found = guarantee(model.estimator_, holdout=holdout, loss=cost, upper=high - low, **options)
    constant = (costs.choices @ np.bincount(holdout[1], minlength=len(costs.classes))).min() / len(holdout[1]) - low
    found = replace(found, bounds=tuple(replace(bound, trivial=float(constant)) for bound in found))
    best = found.best
    said = f"a decision costs at most {best.value + low:.4g} on average; in these {len(holdout[1]):,} rows it was"
    return found, best, f"{said} {best.observed + low:.4g}"


def _unseen_rows(model: TableModel, table: Table) -> tuple[Any, Any, list[str]]:
    """Give the matrix and the target that the estimator sees, and remarks on rows that are not as they should be."""
    target, remarks = str(model.target), []
    if target not in table:
        raise ValueError(f"the table has no column {target!r}; it has {', '.join(map(repr, table))}.")
    missing = is_missing(table[target])
    if missing.any() and not missing.all():
        table = table.take(~missing)
        remarks.append(f"{int(missing.sum()):,} rows without {target} are left out, as if they were missing at random.")
    if not is_classifier(model):
        return *model.encode(table), remarks
    strange = np.array([value not in model.classes_ for value in table[target].tolist()]) & ~is_missing(table[target])
    if not strange.any():
        return *model.encode(table), remarks
    name = shown(table[target][strange][0])
    if isinstance(model, DecisionModel):
        raise ValueError(f"the target {target!r} holds {name!r}, for which the model has no costs.")
    if strange.all():
        raise ValueError(f"the target {target!r} holds no class that the model has seen.")
    remarks.append(f"{strange.sum():,} rows of classes that the model has never seen, such as {name!r}, count as mistakes.")
    codes = np.full(table.n_rows, len(model.classes_))  # no class has this number
    codes[~strange] = model.encode(table.take(~strange))[1]
    return model.encoder_.transform(table), codes, remarks
