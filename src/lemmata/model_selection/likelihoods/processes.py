"""Gaussian processes: the function is integrated out, and the hyperparameters are what is left to count.

The likelihood of a hyperparameter is the evidence ln p(y | θ), so that AIC and BIC are those of the hyperparameters that were
searched for [1], and the log-likelihood and the log evidence are one number. It is that of the rows of the fit.

[1] Duvenaud, Lloyd, Grosse, Tenenbaum & Ghahramani, ICML (2013).
"""

import numpy as np

from lemmata.model_selection.likelihoods.account import Account, NoLikelihoodError, law, refusal

INTEGRATED = "the function is integrated out: the parameters are the hyperparameters that were searched for"
OWN = "the evidence is that of the rows of the fit"


def searched(model):
    """Count the hyperparameters of the kernel, if there was a search."""
    return len(model.kernel_.theta) if model.optimizer is not None else 0


def processed(value, counted, rows, kind):
    """Account for an evidence."""
    counted = {name: count for name, count in counted.items() if count}
    return Account(float(value), counted, rows.total, "rows", (INTEGRATED, OWN), float(value), kind)


def of_the_fit(model, rows, n):
    """Refuse rows that are not as many as those of the fit."""
    rows.whole(model)
    if abs(rows.total - n) > 1e-6 * n:
        raise ValueError(f"{type(model).__name__} has the evidence of the {n:g} rows of the fit only; got {rows.total:g} rows.")


@law("GaussianProcessRegressor")
def regressor(model, rows):
    """Count hyperparameters, the noise and the mean of the targets."""
    if not hasattr(model, "noise_"):
        return foreign_regressor(model, rows)
    if np.ndim(model.noise) == 0:
        of_the_fit(model, rows, float(np.sum(model.weight_)))
    noise = int(isinstance(model.noise, str) and model.optimizer is not None)
    counted = {"hyperparameters": searched(model), "noise variance": noise, "mean of the targets": int(model.center)}
    kind = "exact, at these hyperparameters" if model.inducing is None else "a lower bound, by inducing points"
    return processed(model.log_marginal_likelihood_, counted, rows, kind)


def foreign_regressor(model, rows):
    """Read scikit-learn's: what it scaled the targets by belongs to their density."""
    rows.unweighted(model)
    of_the_fit(model, rows, len(model.X_train_))
    y = np.asarray(model.y_train_)
    scale = np.broadcast_to(np.asarray(model._y_train_std, dtype=float), y.shape[1:] or (1,))
    counted = {"hyperparameters": searched(model), "mean and scale of the targets": 2 * len(scale) * int(model.normalize_y)}
    value = model.log_marginal_likelihood_value_ - len(y) * np.log(scale).sum()
    return processed(value, counted, rows, "exact, at these hyperparameters")


@law("GaussianProcessClassifier")
def classifier(model, rows):
    """Count hyperparameters; the evidence is Laplace's."""
    kind = "Laplace's approximation, at these hyperparameters"
    if hasattr(model, "counts_"):
        of_the_fit(model, rows, float(np.sum(model.counts_)))
        return processed(model.log_marginal_likelihood_, {"hyperparameters": searched(model)}, rows, kind)
    if len(model.classes_) > 2:
        reason = "scikit-learn fits its classes apart, and there is no likelihood of all labels together"
        raise NoLikelihoodError(refusal(model, reason))
    rows.unweighted(model)
    of_the_fit(model, rows, len(model.base_estimator_.X_train_))
    return processed(model.log_marginal_likelihood_value_, {"hyperparameters": searched(model.base_estimator_)}, rows, kind)
