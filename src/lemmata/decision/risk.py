"""Conditional risk and the Bayes action: what to do about a probability.

A decision problem has states (classes) ω, actions α, and costs λ(α|ω) of taking α when the state is ω, here a matrix with one
row for each action and one column for each class. Having seen x, the expected cost of an action is its conditional risk
R(α|x) = Σₖ λ(α|ωₖ) P(ωₖ|x), and the Bayes action is the one of least conditional risk. No rule x ↦ α has a lower expected cost:
the expectation over x of R(α(x)|x) is least when R is least at each x. With zero-one costs R(αₖ|x) = 1 − P(ωₖ|x), so that the
Bayes action is the mode of the posterior. Refusing to decide is one more action, whose cost is the same in every state [1]; to
add a number to a column of the costs changes no decision.

[1] Chow, IEEE Trans. Inf. Theory 16 (1970).
"""

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.kernel import kernel

ENTRIES = 1 << 17  # probabilities of a block: a MiB, so that its risks stay in the cache and few rows keep all threads busy
SUM = 1e-6  # by which probabilities may miss a sum of one: float32, or six printed digits


@kernel
def least_rows(risks, out):
    """Number, for each row, the first action of least risk; −1 where no risk is a number."""
    for i in range(risks.shape[0]):
        best, least = -1, np.inf
        for a in range(risks.shape[1]):
            if risks[i, a] < least:
                best, least = a, risks[i, a]
        out[i] = best


@kernel
def second_rows(posterior, saving, out):
    """As `least_rows` for two actions, of which the second saves so much in each class: one sum decides."""
    n, k = np.uint64(posterior.shape[0]), np.uint64(posterior.shape[1])
    for i in range(n):
        saved = 0.0
        for j in range(k):
            saved += saving[j] * posterior[i, j]
        out[i] = -1 if np.isnan(saved) else saved > 0


@kernel
def least_each_row(posterior, costs, out):
    """As `least_rows`, for the risks Σₖ costs[i, a, k] p[i, k]."""
    n, m, k = costs.shape
    for i in range(n):
        best, least = -1, np.inf
        for a in range(m):
            risk = 0.0
            for j in range(k):
                risk += costs[i, a, j] * posterior[i, j]
            if risk < least:
                best, least = a, risk
        out[i] = best


def action_block(posterior, each, out, costs, labels):
    """Write the labels of the best actions of a block, for costs (a, k) common to all rows or `each` (n, a, k)."""
    best = np.empty(len(posterior), dtype=np.intp)
    if each is not None:
        least_each_row(posterior, np.ascontiguousarray(each), best)
    elif len(costs) == 2:
        second_rows(posterior, costs[0] - costs[1], best)
    else:
        least_rows(posterior @ costs.T, best)
    if best.min() < 0:
        raise ValueError("The probabilities of a row are NaN, and nothing can be decided from them; look at the model.")
    np.take(labels, best, out=out, mode="clip")  # "clip" writes without a buffer; nothing is out of range
    return len(best)


def best_actions(posterior, costs, labels=None):
    """Give each row its action of least risk, by number or by label, for probabilities (n, k) and costs (a, k) or (n, a, k)."""
    labels = np.arange(costs.shape[-2]) if labels is None else labels
    out = np.empty(len(posterior), dtype=labels.dtype)
    common, each = (np.ascontiguousarray(costs), None) if costs.ndim == 2 else (None, costs)
    Blocks.of(posterior, each, out, block_rows=max(1, ENTRIES // costs.shape[-1])).reduce(action_block, common, labels)
    return out


def risks(posterior, costs):
    """Conditional risks (n, a) for valid probabilities (n, k) and costs (a, k) or (n, a, k)."""
    return posterior @ costs.T if costs.ndim == 2 else np.einsum("nk,nak->na", posterior, costs)


def zero_one(n_classes):
    """Costs 1 − δ: every mistake costs one.

    >>> zero_one(2)
    array([[0., 1.],
           [1., 0.]])
    """
    return 1.0 - np.eye(n_classes)


def checked_costs(costs, n_classes, n_actions=None, n_rows=None):
    """Return costs as an array (a, k), or (n, a, k) with a matrix for each row, or say what is wrong with them."""
    try:
        array = np.asarray(costs, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("costs must be numbers: a row for each action, a column for each class.") from None
    a = "actions" if n_actions is None else n_actions
    wanted = f"({a}, {n_classes}), or (rows, {a}, {n_classes}) with a matrix for each row"
    if array.ndim not in (2, 3) or array.shape[-1] != n_classes or array.shape[-2] != (n_actions or array.shape[-2]):
        raise ValueError(f"costs need a row for each action and a column for each class, {wanted}; got {array.shape}.")
    if array.ndim == 3 and n_rows is not None and len(array) != n_rows:
        raise ValueError(f"costs hold {len(array)} matrices for {n_rows} rows; there must be one for each row.")
    if array.shape[-2] == 0:
        raise ValueError("costs have no row: there must be at least one action.")
    if not np.isfinite(array).all():
        raise ValueError("costs hold NaN or infinity; every cost must be a finite number.")
    return array


def in_order(costs, actions, classes):
    """Put the named columns and rows of a frame in the order of classes and actions; leave what has no names as it is.

    Examples
    --------
    >>> import pandas as pd
    >>> in_order(pd.DataFrame({"rain": [0, 5], "dry": [1, 0]}, index=["take", "leave"]), ["leave", "take"], ["dry", "rain"])
    array([[0, 5],
           [1, 0]])
    """
    if not hasattr(costs, "columns"):
        return costs
    array = np.asarray(costs)
    rows = _places(getattr(costs, "index", range(len(array))), actions, "rows", "actions")
    return array[np.ix_(rows, _places(costs.columns, classes, "columns", "classes"))]


def _places(found, wanted, what, meaning):
    """Find the place of each wanted name; names that only count from zero are none."""
    found, wanted = [str(name) for name in found], [str(name) for name in wanted]
    if found == [str(i) for i in range(len(wanted))]:
        return list(range(len(wanted)))
    if sorted(found) != sorted(wanted):
        raise ValueError(
            f"The {what} of costs are {found}, and the {meaning} are {wanted}; to take them as they stand, give an array."
        )
    return [found.index(name) for name in wanted]


def checked_posterior(posterior):
    """Return probabilities as an array (n, k), and whether they came as a single row; or say what is wrong with them."""
    array = np.asarray(posterior)
    array = array if array.dtype == np.float32 else array.astype(float)
    if array.ndim not in (1, 2) or array.shape[-1] == 0 or len(array) == 0:
        raise ValueError(f"The posterior must be probabilities of classes, (classes,) or (rows, classes); got {array.shape}.")
    if not (array >= 0).all() or np.abs(array.sum(axis=-1) - 1).max() > SUM:
        raise ValueError("The posterior must hold probabilities: none negative or NaN, each row summing to one.")
    return np.atleast_2d(array), array.ndim == 1


def _problem(posterior, costs):
    posterior, single = checked_posterior(posterior)
    k = posterior.shape[1]
    costs = zero_one(k) if costs is None else checked_costs(costs, k, n_rows=len(posterior))
    return posterior, costs, single


def conditional_risk(posterior, costs=None):
    """Return the expected cost of each action, R(α|x) = Σₖ λ(α|ωₖ) P(ωₖ|x).

    Parameters
    ----------
    posterior : Probabilities of the classes, (classes,) or (rows, classes).
    costs : (actions, classes), or (rows, actions, classes) with a matrix for each row; default zero-one.

    Returns
    -------
    risks : (actions,) or (rows, actions).

    Examples
    --------
    Rain has the probability 27/55. To leave the umbrella when it rains costs 5, to take it when it is dry 1:

    >>> conditional_risk([27 / 55, 28 / 55], costs=[[0, 1], [5, 0]])
    array([0.509091, 2.454545])
    """
    posterior, costs, single = _problem(posterior, costs)
    found = risks(posterior, costs)
    return found[0] if single else found


def bayes_action(posterior, costs=None, actions=None):
    """Return the action of least conditional risk; the first of equals.

    Parameters
    ----------
    posterior : Probabilities of the classes, (classes,) or (rows, classes).
    costs : (actions, classes), or (rows, actions, classes) with a matrix for each row; default zero-one.
    actions : Labels of the actions; default their numbers.

    Examples
    --------
    >>> bayes_action([27 / 55, 28 / 55], costs=[[0, 1], [5, 0]], actions=["take", "leave"])
    'take'
    >>> bayes_action([[0.2, 0.8], [0.6, 0.4]])
    array([1, 0])
    """
    posterior, costs, single = _problem(posterior, costs)
    labels = None if actions is None else np.asarray(actions)
    if labels is not None and labels.shape != costs.shape[-2:-1]:
        raise ValueError(f"There are {costs.shape[-2]} actions in costs and {labels.shape} labels; give one for each.")
    found = best_actions(posterior, -np.eye(posterior.shape[1]) if _is_zero_one(costs) else costs, labels)
    return found[0].item() if single else found


def bayes_risk(posterior, costs=None):
    """Return the conditional risk of the Bayes action, the least that any action has.

    Its mean over rows drawn from the world is the Bayes risk: no rule has a lower expected cost.

    Parameters
    ----------
    posterior : Probabilities of the classes, (classes,) or (rows, classes).
    costs : (actions, classes), or (rows, actions, classes) with a matrix for each row; default zero-one.

    Returns
    -------
    risk : A number, or (rows,).

    Examples
    --------
    >>> bayes_risk([27 / 55, 28 / 55], costs=[[0, 1], [5, 0]])
    0.509091
    >>> bayes_risk([[0.2, 0.8], [0.6, 0.4]])
    array([0.2, 0.4])
    """
    least = conditional_risk(posterior, costs).min(axis=-1)
    return least.item() if least.ndim == 0 else least


def _is_zero_one(costs):
    """Tell whether costs are zero-one, for which −δ decides the same without rounding."""
    return costs.ndim == 2 and costs.shape[0] == costs.shape[1] and np.array_equal(costs, zero_one(len(costs)))


def decision_cost(y, taken, costs=None, *, classes=None, actions=None, reject_cost=None, reject_label=None, sample_weight=None):
    """Return the mean cost of actions that were taken, now that the classes are known.

    A metric for `sklearn.metrics.make_scorer(decision_cost, greater_is_better=False, costs=…, classes=…)`, so that any
    classifier can be judged by its costs.

    Parameters
    ----------
    y : Classes of the rows.
    taken : Action taken in each row.
    costs : (actions, classes), or (rows, actions, classes); default zero-one.
    classes : Labels of the columns of costs; default the sorted labels of y.
    actions : Labels of the rows of costs; default the classes.
    reject_cost : Cost of a row that was rejected, a number or one for each row.
    reject_label : What `taken` holds for a rejected row; needed with reject_cost.
    sample_weight : Weights of the rows.

    Examples
    --------
    >>> decision_cost(["rain", "dry", "dry"], ["leave", "take", "leave"], [[1, 0], [0, 5]],
    ...               classes=["dry", "rain"], actions=["take", "leave"])
    2.0
    """
    y, taken = np.asarray(y), np.asarray(taken)
    if y.ndim != 1 or y.shape != taken.shape or len(y) == 0:
        raise ValueError(f"There must be one class and one action for each row, got {y.shape} and {taken.shape}.")
    known = classes is not None
    classes = np.asarray(classes) if known else np.unique(y)
    actions = classes if actions is None else np.asarray(actions)
    square = costs is None and len(actions) == len(classes)
    costs = zero_one(len(classes)) if square else costs
    try:
        table = checked_costs(costs, len(classes), len(actions), len(y))
    except ValueError as error:
        if known:
            raise
        raise ValueError(
            f"{error} The classes are the labels of y, {classes.tolist()}; if it lacks some, give classes=."
        ) from None
    costs = table if table.ndim == 3 else np.asarray(in_order(costs, actions, classes), dtype=float)
    column = _positions(y, classes, "y holds the label", "a class")
    refused = np.zeros(len(y), dtype=bool)
    if reject_cost is not None:
        refused = taken == reject_label
    row = np.zeros(len(y), dtype=int)
    if not refused.all():
        row[~refused] = _positions(taken[~refused], actions, "The action taken is", "an action")
    each = costs[row, column] if costs.ndim == 2 else costs[np.arange(len(y)), row, column]
    if reject_cost is not None:
        each = np.where(refused, reject_cost, each)
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, dtype=float)
        if sample_weight.shape != y.shape or not (sample_weight >= 0).all() or not 0 < sample_weight.sum() < np.inf:
            raise ValueError(f"sample_weight must be {len(y)} finite numbers, none negative and one positive.")
    return float(np.average(each, weights=sample_weight))


def _positions(labels, known, what, kind):
    """Find labels among the known ones, which need no order."""
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, labels, sorter=order), len(known) - 1)]
    strange = known[place] != labels
    if strange.any():
        raise ValueError(f"{what} {labels[strange][0]!s}, which is not {kind}: {known.tolist()}.")
    return place
