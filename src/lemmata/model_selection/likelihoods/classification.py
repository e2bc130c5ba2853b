"""Classifiers that know P(y | x): the log-likelihood is that of the labels given the rows.

What a penalty ½ θᵀPθ leaves of the parameters is tr[(F + P)⁻¹F], F the Fisher information of the rows (`parameter_counts`).
Softmax scores of K classes have a gauge freedom, since a number added to all of them changes no probability: without a penalty
(K − 1)(d + 1) parameters are left of K(d + 1), and that is the rank of F.
"""

import numpy as np

from lemmata.linear_model.inverse_links import inverse_link
from lemmata.linear_model.links import log_sigmoid, sigmoid
from lemmata.model_selection.likelihoods.account import Account, NoLikelihoodError, law, refusal
from lemmata.model_selection.likelihoods.regression import LEAVES, NOMINAL
from lemmata.model_selection.parameter_counts import DIGITS, MOST, effective_parameters, softmax_information, with_constant

HELD = "parameters are counted as tr (F + P)⁻¹F: the penalty P holds them back, and the gauge freedom of scores is none"
UNHELD = "parameters are counted as the rank of the information: the gauge freedom of scores is none"
FEW = f"their information is too large a matrix to make (more than {MOST} entries a side), so that all parameters are counted"


def unfactored(model):
    """Refuse a fit that gave classes weights of its own."""
    if getattr(model, "class_weight", None) is not None:
        name = type(model).__name__
        raise NoLikelihoodError(
            f"{name} with class_weight maximized the likelihood of rows that weigh otherwise than these: fit it with these "
            "factors in sample_weight, and give the same here."
        )


def of_labels(model, rows):
    """Give the log-likelihood of the labels, from the probabilities that a model predicts."""
    rows.whole(model)
    unfactored(model)
    places = rows.places(model)
    with np.errstate(divide="ignore"):  # what is impossible has the logarithm −∞
        if hasattr(model, "predict_log_proba"):
            logs = np.asarray(model.predict_log_proba(rows.X), dtype=float)
        else:
            logs = np.log(np.asarray(model.predict_proba(rows.X), dtype=float))
    return rows.sum(logs[np.arange(len(places)), places])


def held(information, penalty):
    """Give the effective number of parameters, and the sentence that says how they were counted."""
    return effective_parameters(information, penalty), HELD if np.any(penalty) else UNHELD


def of_scores(rows, fit_intercept, rate, penalty, of_intercept=0.0):
    """Give the effective parameters of one score x·w + b, its information s·rate for each row."""
    Z = with_constant(rows.X, fit_intercept, centered=of_intercept == 0)
    penalty = np.append(penalty, np.full(int(fit_intercept), of_intercept))
    if Z.shape[1] > MOST:
        return Z.shape[1], FEW
    return held(Z.T @ ((rows.repetitions * rate)[:, None] * Z), penalty)


def of_softmax(rows, fit_intercept, probabilities, penalty):
    """Give the effective parameters of a softmax of K scores, the penalty of their coefficients in K rows."""
    K, Z = probabilities.shape[1], with_constant(rows.X, fit_intercept)
    if K * Z.shape[1] > MOST:
        return (K - 1) * Z.shape[1], FEW
    penalty = np.hstack([penalty, np.zeros((K, int(fit_intercept)))])
    return held(softmax_information(Z, probabilities, rows.repetitions), penalty.ravel())


def penalty_of(model):
    """Give the diagonal of P for coefficients and for an intercept; infinite where an ℓ₁ norm holds one at zero."""
    coef = np.atleast_2d(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_)
    kind, searched = getattr(model, "penalty", "l2"), hasattr(model, "C_")
    share = getattr(model, "l1_ratio_" if searched else "l1_ratio", None)
    C, shares = np.unique(model.C_ if searched else model.C), {float(part or 0.0) for part in np.ravel(share)}
    if len(C) > 1 or len(shares) > 1:
        raise NoLikelihoodError(f"{type(model).__name__} has a penalty for each class: fit LogisticRegression with one C.")
    corner = {"l1": 1.0, "l2": 0.0}.get(kind, shares.pop())
    quadratic = 0.0 if kind is None or np.isinf(C[0]) else (1 - corner) / C[0]
    free = corner == 0 or kind is None
    of_intercept = 0.0
    if getattr(model, "solver", None) == "liblinear":  # to which an intercept is the coefficient of a constant column
        of_intercept = quadratic / model.intercept_scaling**2 if free or np.ravel(model.intercept_)[0] else np.inf
    return np.where((coef != 0) | free, quadratic, np.inf), of_intercept


@law("LogisticRegression", "LogisticRegressionCV")
def logistic(model, rows):
    """Count what the penalty leaves of the scores; one against the rest has a score of its own for each class."""
    value, (penalty, of_intercept) = of_labels(model, rows), penalty_of(model)
    if len(penalty) == 1:
        p = np.asarray(model.predict_proba(rows.X), dtype=float)[:, 1]
        count, note = of_scores(rows, model.fit_intercept, p * (1 - p), penalty[0], of_intercept)
    elif getattr(model, "multi_class", "multinomial") == "ovr":
        p = sigmoid(np.asarray(model.decision_function(rows.X), dtype=float))
        parts = [of_scores(rows, model.fit_intercept, q * (1 - q), own) for q, own in zip(p.T, penalty, strict=True)]
        count, note = sum(part for part, _ in parts), f"{parts[0][1]}; the classes were fitted one against the rest"
    else:
        count, note = of_softmax(rows, model.fit_intercept, np.asarray(model.predict_proba(rows.X), dtype=float), penalty)
    return Account(value, {"coefficients and intercepts": count}, rows.total, note=(note,))


@law("ProbitRegression")
def probit(model, rows):
    """Count what the penalty leaves, by the expected information of the link."""
    value = of_labels(model, rows)
    score = np.asarray(model.decision_function(rows.X), dtype=float)
    rate = inverse_link(model.link).information(score)
    count, note = of_scores(rows, model.fit_intercept, rate, np.full(model.coef_.shape[1], 1 / model.C))
    return Account(value, {"coefficients and intercept": count}, rows.total, note=(note,))


@law("BayesianLogisticRegression")
def bayesian(model, rows):
    """Take the mode of the posterior; the evidence is Laplace's."""
    rows.whole(model)
    second, score = rows.places(model) == 1, np.asarray(model.decision_function(rows.X), dtype=float)
    value = rows.sum(log_sigmoid(np.where(second, score, -score)))
    rate, precision = sigmoid(score) * sigmoid(-score), np.full(model.coef_.shape[1], model.prior_precision_)
    count, note = of_scores(rows, model.fit_intercept, rate, precision)
    note = "the likelihood is that of the mode of the posterior", note, "the evidence is that of the rows of the fit"
    counted = {"coefficients and intercept": count}
    return Account(value, counted, rows.total, "rows", note, float(model.log_evidence_), "Laplace's approximation at the mode")


@law("MaximumEntropyClassifier")
def maximum_entropy(model, rows):
    """Count what the penalty leaves of the weights of features; without features it is a softmax regression."""
    value, p = of_labels(model, rows), np.asarray(model.predict_proba(rows.X), dtype=float)
    if model.features is None:
        count, note = of_softmax(rows, True, p, np.full((p.shape[1], model.n_features_in_), 1 / model.C))
    else:
        tables = [model.features(rows.X, label) for label in model.classes_]
        tables = [np.asarray(F.toarray() if hasattr(F, "toarray") else F, dtype=float) for F in tables]
        mean = sum(q[:, None] * F for q, F in zip(p.T, tables, strict=True))
        s = rows.repetitions
        parts = [(F - mean).T @ ((s * q)[:, None] * (F - mean)) for q, F in zip(p.T, tables, strict=True)]
        information, raw = sum(parts), sum((s * q) @ F**2 for q, F in zip(p.T, tables, strict=True))
        # a feature that is the same for all classes has no information but rounding
        penalty = np.where(np.diag(information) > DIGITS**2 * raw, 1 / model.C, np.inf)
        count, note = effective_parameters(information, penalty), UNHELD if np.isinf(model.C) else HELD
    return Account(value, {"weights": count}, rows.total, note=(note,))


@law("SGDClassifier")
def stochastic(model, rows):
    """Count what the penalty leaves, for the logistic loss of two classes, as if the descent had come to its end."""
    if (
        model.loss not in ("logistic", "log_loss")
        or len(model.coef_) > 1
        or getattr(model, "penalty", "l2") not in ("l2", None)
    ):
        reason = 'only loss="log_loss" between two classes, with a squared penalty or none, is a likelihood that it maximizes'
        raise NoLikelihoodError(refusal(model, reason))
    rows.whole(model)
    unfactored(model)
    second, score = rows.places(model) == 1, np.asarray(model.decision_function(rows.X), dtype=float)
    value = rows.sum(log_sigmoid(np.where(second, score, -score)))
    alpha = 0.0 if getattr(model, "penalty", "l2") is None else model.alpha
    held_back = np.full(model.coef_.shape[1], rows.total * alpha)  # beside the sum of the losses, not their mean
    count, note = of_scores(rows, model.fit_intercept, sigmoid(score) * sigmoid(-score), held_back)
    note = note, "the descent stops near the maximum, not at it: the criteria are a little too large"
    return Account(value, {"coefficients and intercept": count}, rows.total, note=note)


@law("MLPClassifier")
def network(model, rows):
    """Count all weights and biases."""
    weights = sum(np.size(part) for part in (*model.coefs_, *model.intercepts_))
    return Account(of_labels(model, rows), {"weights and biases": weights}, rows.total, note=(NOMINAL,))


@law("DecisionTreeClassifier")
def tree(model, rows):
    """Count the free probabilities of the leaves."""
    counted = {"probabilities of leaves": model.get_n_leaves() * (len(model.classes_) - 1)}
    return Account(of_labels(model, rows), counted, rows.total, note=(LEAVES,))
