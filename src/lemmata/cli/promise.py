"""What the cross-validated scores of a comparison promise.

The mean error over K folds bounds the mean risk of the K models that made it, each of which has not seen its fold: it is a
statement about the model of a fold drawn at random, and not about the model that is fitted to all rows and saved. All models of
a comparison are scored on the same folds, so each bound is computed at δ divided by their number: then all hold at once, and
the best one may be chosen. Costs are losses in [0, 1] when they are measured from the smallest in units of their range.
"""

import numpy as np

from lemmata.cli.compare import Job, Result
from lemmata.theory.bounds.holdout import cross_validation_bound

DELTA = 0.05  # probability that some promise of a comparison fails


def percent(share: float) -> str:
    """Write a share as a percentage of three digits.

    Examples
    --------
    >>> percent(0.95), percent(0.3125), percent(0.002)
    ('95 %', '31.2 %', '0.2 %')
    """
    return f"{100 * share:.3g} %"


def promises(results: list[Result], job: Job) -> dict[str, float]:
    """Bound the error, or under costs the mean cost, of the model of a random fold, for each model of a classification."""
    if job.task != "classification":
        return {}
    *models, _ = results
    low, high = (0.0, 1.0) if job.costs is None else (float(job.costs.choices.min()), float(job.costs.choices.max()))
    found = {}
    for result in models:
        loss = _loss(result, job)
        if not np.isnan(loss) and high > low:
            share = float(np.clip((loss - low) / (high - low), 0.0, 1.0))
            bound = cross_validation_bound(share, job.folds, job.table.n_rows, DELTA / len(models))
            found[result.name] = low + (high - low) * float(bound)
    return found


def promise(results: list[Result], job: Job) -> str:
    """Say in words what the score of the best model promises, and what not; nothing where there is no promise."""
    best, baseline = results[0], results[-1]
    found, n_models = promises(results, job), len(results) - 1
    if best.name not in found:
        return ""
    bound, observed = found[best.name], _loss(best, job)
    if job.costs is None:
        said = f"errs on at most {percent(bound)} of new rows; on the rows left out it erred on {percent(observed)}."
    else:
        said = f"costs at most {bound:.3g} a row on average; on the rows left out it cost {observed:.3g}."
    if bound >= _loss(baseline, job):
        constant = _loss(baseline, job)
        said += f" That is not below the {percent(constant) if job.costs is None else f'{constant:.3g}'} of the baseline."
    paid = f", and for all {n_models} models of the table at once" if n_models > 1 else ""
    return (
        f"With probability {percent(1 - DELTA)}{paid}, {best.name} as fitted in a random fold {said} "
        f"It rests on independent rows from where the model will be used, and folds drawn at random (here with equal shares of "
        f"the classes). It is about the {job.folds} models of the folds, each fitted without its fold, and not about the saved "
        f"model, which has seen all rows: to test that one takes unseen rows and 'lemmata guarantee'."
    )


def _loss(result: Result, job: Job) -> float:
    score = result.scores.get(job.metrics[0], np.nan)
    return 1 - score if job.costs is None else score
