"""The one-standard-error rule: of all models that do about as well as the best, take the simplest.

A mean loss over folds or repeats has a standard error, s/√R with s the standard deviation of its R losses. The rule of Breiman,
Friedman, Olshen and Stone [1, 3.4.3] takes the simplest model whose mean loss lies within one standard error, that of the best
model, of the least mean loss. It is a convention, not a test: folds share rows, so their losses are not independent; but where
the curve of losses is flat, as it is beyond the true order, it stops where the curve begins to be flat, and the choice
changes less from one sample to the next.

[1] Breiman, Friedman, Olshen & Stone, Classification and Regression Trees (1984).
"""

from collections.abc import Iterable
from functools import partial
from numbers import Real

import numpy as np


def one_standard_error(losses=None, order=None, *, param=None, simpler="smaller", scoring="score"):
    """Give the simplest order that loses no more than the best and one standard error, or a rule for `GridSearchCV`.

    Parameters
    ----------
    losses : (repeats, n), the less the better: losses of each of n models, in each fold or repeat. A model with a loss that is
        NaN or infinite has failed.
    order : (n,), how complex each model is; any sortable numbers, or None for no limit at all.
    param : Instead of both, the name of a parameter; then the rule is a function for `GridSearchCV(..., refit=...)`, which
        takes, of all candidates within one standard error of the best mean score, the simplest and of equals the best. The
        name may also be given in place of `losses`.
    simpler : Whether a "smaller" or a "larger" value makes the simpler model.
    scoring : Name of the score to judge by, where the search has several.

    Returns
    -------
    chosen : The order of the simplest such model, or with `param` the function.

    Examples
    --------
    >>> one_standard_error([[4.0, 1.1, 1.0], [4.4, 1.3, 1.2], [4.2, 1.1, 1.2]], [1, 2, 3])
    2
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.model_selection import GridSearchCV
    >>> from lemmata.linear_model import Ridge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> rule = one_standard_error(param="alpha", simpler="larger")
    >>> search = GridSearchCV(Ridge(), {"alpha": [0.01, 0.1, 1.0, 10.0]}, refit=rule).fit(X, y)
    >>> search.cv_results_["mean_test_score"].round(2).tolist(), search.best_params_
    ([0.48, 0.48, 0.41, 0.14], {'alpha': 0.1})
    """
    if simpler not in ("smaller", "larger"):
        raise ValueError(f"simpler must be 'smaller' or 'larger', got {simpler!r}.")
    if isinstance(losses, str) or param is not None:
        if order is not None or (losses is not None and param is not None):
            raise ValueError("Give either losses and their order, or the name of one parameter, not both.")
        return partial(simplest_candidate, param=losses if param is None else param, simpler=simpler, scoring=scoring)
    if losses is None or order is None:
        raise ValueError("Give losses (repeats, n) and the order of the n models, or the name of a parameter.")
    if not isinstance(order, Iterable):
        raise ValueError(f"order must hold one number for each of several models, got {order!r}.")
    order = list(order)
    try:
        losses = np.atleast_2d(np.asarray(losses, dtype=float))
    except (TypeError, ValueError) as error:
        raise ValueError("losses must be numbers, (repeats, n): in each repeat one loss of each of the n models.") from error
    if losses.ndim != 2 or losses.shape[1] != len(order) or losses.size == 0:
        raise ValueError(f"losses must have one column for each of the {len(order)} orders, got the shape {losses.shape}.")
    chosen = order[simplest(losses, complexities(order, simpler))]
    return chosen.item() if isinstance(chosen, np.generic) else chosen


def complexities(order, simpler="smaller"):
    """Turn orders into numbers that grow with how complex a model is; None is no limit, beyond all numbers.

    Examples
    --------
    >>> complexities([3, None, 1]).tolist(), complexities([0.1, 10.0], simpler="larger").tolist()
    ([3.0, inf, 1.0], [-0.1, -10.0])
    """
    for value in order:
        if value is not None and not (isinstance(value, Real) and value == value):
            raise ValueError(f"An order is a number, or None for no limit; got {value!r}.")
    sizes = np.array([np.inf if value is None else float(value) for value in order])
    return sizes if simpler == "smaller" else -sizes


def within_one_standard_error(losses):
    """Tell which columns (repeats, n) have a mean within one standard error of the least; one that is not finite is none.

    Examples
    --------
    >>> within_one_standard_error(np.array([[4.0, 1.2, 1.0], [4.4, 1.2, 1.4]])).tolist()
    [False, True, True]
    """
    with np.errstate(invalid="ignore"):
        means = losses.mean(axis=0)
    means = np.where(np.isfinite(means), means, np.nan)
    best = least(means)
    error = losses[:, best].std(ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
    return means <= means[best] + error


def least(means):
    """Give the place of the least mean loss, the first among equals; NaN is none.

    Examples
    --------
    >>> least(np.array([np.nan, 2.0, 1.0, 1.0]))
    2
    """
    if np.isnan(means).all():
        raise ValueError("All losses are NaN or infinite: no model was fitted and scored, so there is none to choose.")
    return int(np.nanargmin(means))


def simplest(losses, sizes):
    """Give the number of the simplest column within one standard error; of equally simple ones the best, then the first.

    Examples
    --------
    >>> simplest(np.array([[4.0, 1.2, 1.0], [4.4, 1.2, 1.4]]), np.array([1, 2, 3]))
    1
    """
    good = np.flatnonzero(within_one_standard_error(losses))
    return int(good[np.lexsort((losses.mean(axis=0)[good], sizes[good]))[0]])


def simplest_candidate(results, *, param, simpler="smaller", scoring="score"):
    """Give the number of the candidate that the rule takes, from the `cv_results_` of a search.

    Examples
    --------
    >>> results = {"params": [{"C": 0.1}, {"C": 1.0}], "split0_test_score": [0.8, 0.9], "split1_test_score": [0.9, 0.82]}
    >>> simplest_candidate(results, param="C")
    0
    """
    splits = [name for name in results if name.startswith("split") and name.endswith(f"_test_{scoring}")]
    scores = [np.asarray(results[name], dtype=float) for name in splits]
    if not scores:
        raise ValueError(f"The search has no scores named {scoring!r}: say by scoring=… which of its scores decides.")
    for candidate in results["params"]:
        if param not in candidate:
            raise ValueError(f"The search does not vary {param!r}; it varies {sorted(candidate)}.")
    sizes = complexities([candidate[param] for candidate in results["params"]], simpler)
    return simplest(-np.array(scores), sizes)
