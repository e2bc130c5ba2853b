"""Regressions: y = f(x) + noise, the noise normal with one variance for each target.

At the best variance σ² = RSS/N the log-likelihood is −½N (ln 2πσ² + 1), and σ² is a parameter like the others: it is counted.
Books and programs that leave it out, among them statsmodels, differ by a constant, 2 in AIC and ln N in BIC. A model that has
a σ² of its own, the Bayesian ones, is taken at it; then the log-likelihood is −½N ln 2πσ² − RSS/2σ², and σ² counts if it was
found from the rows. What is left of the parameters under a penalty is told in `parameter_counts`.
"""

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.data import as_matrix
from lemmata.linear_model.posterior import log_evidence
from lemmata.linear_model.spectrum import Evidence, Spectrum, compress
from lemmata.model_selection.likelihoods.account import Account, NoLikelihoodError, law, refusal
from lemmata.model_selection.parameter_counts import linear_parameters

EXACT = 1e-14  # share of the spread of the targets, squared, below which what is left of them is rounding
PROFILED = "the noise is normal, its variance the best one for these rows, and counted"
NOMINAL = "the count of a network is nominal: stopped early, or held back, it uses fewer parameters than it has"
LEAVES = "the leaves are counted as if the questions had been given; these rows chose them, which costs more than is counted"
TRACE = "coefficients are counted as the trace of the hat matrix: the penalty holds them back"


def residuals(model, rows):
    """Give targets and residuals as columns in float64, (n, t)."""
    rows.whole(model)
    y = np.asarray(rows.target(model), dtype=float)
    y = y[:, None] if y.ndim == 1 else y
    if not np.isfinite(y).all():
        raise ValueError(f"y holds {y[~np.isfinite(y)][0]}: the targets of all rows must be finite numbers.")
    return y, y - np.asarray(model.predict(rows.X), dtype=float).reshape(y.shape)


def gaussian_at_best(model, rows):
    """Give the log-likelihood of the targets at the best variance of each, and the number of targets."""
    y, off = residuals(model, rows)
    s, n = rows.repetitions, rows.total
    spread, rss = s @ (y - s @ y / n) ** 2 + np.finfo(float).eps ** 2 * (s @ y**2), s @ off**2
    if (rss <= EXACT * spread).any():
        raise NoLikelihoodError(
            f"{type(model).__name__} fits these rows exactly: the likelihood grows without end as the variance of the noise "
            "goes to zero, so there is no criterion; give more rows, or fit fewer parameters."
        )
    return float(-n / 2 * (np.log(2 * np.pi * rss / n) + 1).sum()), y.shape[1]


def profiled(model, rows, counted, *note, **more):
    """Account for a regression with these parts, and the variance of the noise besides."""
    value, t = gaussian_at_best(model, rows)
    counted = {name: count for name, count in counted.items() if count} | {"noise variance": t}
    return Account(value, counted, rows.total, "rows", (PROFILED, *note), **more)


def intercepts(model):
    """Count the intercepts of a linear model."""
    return np.size(model.intercept_) if model.fit_intercept else 0


def active(model):
    """Tell which coefficients are not zero, one row for each target."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    return np.atleast_2d(coef) != 0


def trace(model, rows, penalties):
    """Add up the effective coefficients of each target, the penalty of each infinite where a coefficient is zero."""
    residuals(model, rows)  # first, because the model tells what is wrong with rows
    different = {p.tobytes(): p for p in penalties}
    counts = {key: linear_parameters(rows.X, None, rows.weight, model.fit_intercept, p) for key, p in different.items()}
    return sum(counts[p.tobytes()] for p in penalties)


@law("LinearRegression")
def least_squares(model, rows):
    """Count the directions that the columns span; among columns of coefficients of at least 0, those that are kept."""
    kept, rank = active(model), getattr(model, "rank_", None)
    if getattr(model, "positive", False):
        count = trace(model, rows, np.where(kept, 0.0, np.inf))
    elif rank is not None and np.ndim(rank) == 0:
        count = len(kept) * int(rank)
    else:
        count = len(kept) * linear_parameters(rows.X, None, rows.weight, model.fit_intercept, 0.0)
    return profiled(model, rows, {"coefficients": count, "intercepts": intercepts(model)})


@law("Ridge", "RidgeCV")
def ridge(model, rows):
    """Count the trace of the hat matrix; the evidence is that of the prior behind the penalty, at the best noise."""
    kept = active(model)
    penalties = np.broadcast_to(np.asarray(getattr(model, "alpha_", model.alpha), dtype=float).ravel(), len(kept))
    positive = getattr(model, "positive", False)  # then a coefficient that is zero is held there
    count = trace(model, rows, np.where(kept | (not positive), penalties[:, None], np.inf))
    more = {}
    if (penalties == penalties[0]).all() and penalties[0] > 0 and not positive:
        spectrum = Spectrum(described(rows, rows.target(model), model.fit_intercept))
        evidence, x = Evidence(spectrum), spectrum.at(penalties[0])
        more = {"log_evidence": float(-sum(evidence.parts(x)) / 2), "evidence": "exact, at the best noise variance"}
    searched = hasattr(model, "alphas") or isinstance(model.alpha, str)
    note = (TRACE, "what the choice of the penalty cost is not counted") if searched else (TRACE,)
    return profiled(model, rows, {"coefficients": count, "intercepts": intercepts(model)}, *note, **more)


def described(rows, y, fit_intercept):
    """Reduce a table and its targets to a least-squares problem."""
    X, _ = as_matrix(rows.X)
    return compress(Blocks.of(X, np.asarray(y, dtype=float), rows.weight), fit_intercept)


@law("Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "ElasticNet", "ElasticNetCV")
def elastic_net(model, rows):
    """Count the columns that are kept, and among them the trace of the hat matrix of what is quadratic in the penalty."""
    share = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    if share == 0 or not np.isfinite(share):
        raise NoLikelihoodError(f"{type(model).__name__} with l1_ratio=0 is a ridge regression: fit Ridge instead.")
    quadratic = rows.total * alpha * (1 - share) if share < 1 else 0.0
    count = trace(model, rows, np.where(active(model), quadratic, np.inf))
    lasso = "coefficients are counted as those that are not zero: what choosing them cost, shrinkage gave back"
    note = lasso if share == 1 else f"{TRACE}, and those at zero are none"
    return profiled(model, rows, {"coefficients": count, "intercepts": intercepts(model)}, note)


@law("LpRegression")
def power(model, rows):
    """Count the trace of what a change of the targets moves: the penalty counts by its curvature at the coefficients."""
    p, kept = model.p, active(model)
    if p < 1:
        reason = (
            "with p < 1 the fit jumps where the rows change a little, so that the choice of columns costs what nobody can count"
        )
        raise NoLikelihoodError(refusal(model, reason))
    size = np.where(kept, np.abs(np.atleast_2d(model.coef_).astype(float)), 1.0)
    bend = model.alpha / 2 * p * (p - 1) * size ** (p - 2)
    count = trace(model, rows, np.where(kept, bend, np.inf))
    return profiled(model, rows, {"coefficients": count, "intercepts": intercepts(model)}, TRACE)


@law("BayesianLinearRegression", "BayesianRidge", "ARDRegression")
def bayesian(model, rows):
    """Take the posterior mean and the variance of the model; the evidence is exact, given precisions and variance."""
    foreign = hasattr(model, "lambda_")  # scikit-learn's names: lambda_ of the prior, alpha_ of the noise
    precision = np.asarray(model.lambda_ if foreign else model.prior_precision_, dtype=float)
    noise = float(1 / model.alpha_ if foreign else model.noise_variance_)
    y, off = residuals(model, rows)
    n = rows.total
    value = -n / 2 * np.log(2 * np.pi * noise) - rows.sum((off**2).sum(axis=1)) / (2 * noise)
    penalty = precision * noise * np.ones(len(np.ravel(model.coef_)))
    dropped = active(model)[0] if precision.ndim else np.ones(len(penalty), dtype=bool)
    counted = {
        "coefficients": linear_parameters(rows.X, None, rows.weight, model.fit_intercept, np.where(dropped, penalty, np.inf)),
        "intercepts": intercepts(model),
        "noise variance": int(foreign or isinstance(model.noise_variance, str)),
    }
    more = {}
    if precision.ndim == 0:
        found, _ = log_evidence(described(rows, y[:, 0], model.fit_intercept), float(precision), noise)
        more = {"log_evidence": float(found), "evidence": "exact, given the precision of the prior and the noise variance"}
    note = "the likelihood is that of the posterior mean", f"{TRACE.replace('penalty', 'prior')}"
    return Account(float(value), {name: c for name, c in counted.items() if c}, n, "rows", note, **more)


@law("MLPRegressor")
def network(model, rows):
    """Count all weights and biases."""
    if getattr(model, "loss", "squared_error") != "squared_error":
        raise NoLikelihoodError(refusal(model, f"loss={model.loss!r} is not the likelihood of normal noise"))
    weights = sum(np.size(part) for part in (*model.coefs_, *model.intercepts_))
    return profiled(model, rows, {"weights and biases": weights}, NOMINAL)


@law("DecisionTreeRegressor")
def tree(model, rows):
    """Count the leaves."""
    if model.criterion in ("absolute_error", "poisson"):
        reason = f"its leaves are fitted by criterion={model.criterion!r}, which is not the likelihood of normal noise"
        raise NoLikelihoodError(refusal(model, reason))
    return profiled(model, rows, {"leaves": model.get_n_leaves()}, LEAVES)
