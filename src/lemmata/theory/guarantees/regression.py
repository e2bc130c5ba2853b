"""Bounds for regression: nothing can be said about the mean of a loss without a limit, and much with one.

Without a limit on the loss no sample of any size bounds its mean: a rare row may cost anything [1]. So the loss is clipped at a
limit that is declared before the rows are seen, never read off the largest residual. What needs no limit are statements about
how often the error is larger than something: than a tolerance (binomial tail), or the level that 90 % of the errors keep (order
statistics).

[1] Bahadur & Savage, Annals of Mathematical Statistics 27 (1956).
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_consistent_length, column_or_1d

from lemmata.theory.bounds.regression_bounds import exceedance_bound, quantile_rank, rademacher_regression_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.linear import lengths_of
from lemmata.theory.guarantees.sample import IID
from lemmata.theory.guarantees.structure import Structure
from lemmata.theory.guarantees.unseen import graded_bounds, settled

LARGER = "hold-out, larger errors"
QUANTILE = "hold-out, level that 90 % of the errors keep"
LINEAR = "linear functions (Rademacher)"
LOSSES = {"absolute": np.abs, "squared": np.square}
LEVEL = 0.9
REGRESSORS = {
    "LinearRegression",
    "Ridge",
    "RidgeCV",
    "Lasso",
    "LassoCV",
    "ElasticNet",
    "ElasticNetCV",
    "LassoLars",
    "BayesianRidge",
    "ARDRegression",
    "HuberRegressor",
    "LpRegression",
    "BayesianLinearRegression",
    "SGDRegressor",
    "LinearSVR",
}


def residuals(model: Any, X: Any, y: Any) -> np.ndarray:
    """Give the errors of a regressor of one target."""
    y = column_or_1d(y).astype(float)
    check_consistent_length(X, y)
    return np.abs(y - column_or_1d(model.predict(X)))


def unseen_bounds(errors, loss, upper, tolerance, delta, n_models, trivial) -> Iterator[Bound | Missing]:
    """Bound the clipped loss, the share of larger errors and the level of most errors by unseen rows."""
    n = len(errors)
    facts = {"data": f"{n} hold-out rows", "assumptions": (IID, *settled(n_models))}
    if upper is None:
        yield Missing(
            f"mean {loss} error", "losses without a limit have no bound; declare one with upper=, before looking at the errors"
        )
    else:
        losses = np.minimum(LOSSES[loss](errors), upper)
        yield from graded_bounds(losses, upper, delta, n_models, risk=f"mean of the clipped {loss} error", trivial=trivial)
    if tolerance is not None:
        larger = int((errors > tolerance).sum())

        def exceed(d):
            return exceedance_bound(larger, n, d / n_models)

        risk = f"share of errors above {tolerance:g}"
        yield Bound(LARGER, exceed(delta), delta, larger / n, exceed, risk=risk, reference="Clopper & Pearson (1934)", **facts)
    ordered = np.sort(errors)

    def level(d):
        rank = quantile_rank(n, LEVEL, d / n_models)
        return np.inf if rank is None else float(ordered[rank - 1])

    facts |= {"limit": np.inf, "trivial": np.inf, "risk": f"{LEVEL:.0%} quantile of the error"}
    yield Bound(QUANTILE, level(delta), delta, float(np.quantile(errors, LEVEL)), level, reference="order statistics", **facts)


def linear_regression_bounds(structure: Structure, X, errors, loss, upper, delta, trivial) -> Iterator[Bound | Missing]:
    """Bound the clipped loss of a linear regressor by the rows it was fitted to."""
    core = structure.core
    if upper is None:
        yield Missing(LINEAR, "losses without a limit have no bound; declare one with upper=, before looking at the errors")
        return
    if structure.name not in REGRESSORS or structure.learned or getattr(core, "coef_", np.zeros(0)).ndim != 1:
        yield Missing(LINEAR, "the model is not known to be linear in the raw columns, with one target")
        return
    Z = structure.fixed(X)
    trace = float((lengths_of(Z if issparse(Z) else np.asarray(Z, dtype=float)) ** 2).sum())
    norm = float(np.linalg.norm(np.append(core.coef_, core.intercept_)))
    mean, n = float(np.minimum(LOSSES[loss](errors), upper).mean()), len(errors)
    lipschitz = 1.0 if loss == "absolute" else 2 * np.sqrt(upper)

    def formula(d):
        return rademacher_regression_bound(mean, lipschitz, norm, trace, n, d / structure.kinds, upper)

    yield Bound(
        LINEAR,
        formula(delta),
        delta,
        mean,
        formula,
        risk=f"mean of the clipped {loss} error",
        data=f"{n} training rows",
        assumptions=(IID, f"losses are clipped at {upper:g}, which was fixed before"),
        reference="Bartlett & Mendelson (2002)",
        limit=upper,
        trivial=trivial,
    )
