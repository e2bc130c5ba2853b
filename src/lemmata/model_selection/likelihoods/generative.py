"""Classifiers with a law of rows and classes together: the log-likelihood is Σ ln p(x, y), that of the rows included.

Their criteria compare generative classifiers with each other, and not with those of P(y | x), which tell nothing of the rows.
The parameters are the class shares (K − 1, if they were not given) and those of the rows within the classes. Smoothing and
shrinkage move the fit off the maximum of the likelihood; the parameters are counted as if they did not.
"""

import numpy as np
from scipy.special import gammaln
from scipy.stats import multivariate_normal

from lemmata.core.data import is_sparse
from lemmata.model_selection.likelihoods.account import Account, NoLikelihoodError, law
from lemmata.model_selection.parameter_counts import covariance_parameters

JOINT = "the likelihood is that of rows and labels together: compare it with that of other generative classifiers only"
SMOOTHED = "smoothing or shrinkage moved the fit off the maximum of the likelihood"


def joint(model, rows, logs, counted, given, smoothed):
    """Account for log p(x, y), (n, K), with these parts besides the class shares."""
    rows.whole(model)
    places = rows.places(model)
    value = rows.sum(np.asarray(logs, dtype=float)[np.arange(len(places)), places])
    shares = {} if given else {"class shares": len(model.classes_) - 1}
    return Account(value, shares | counted, rows.total, note=(JOINT, SMOOTHED) if smoothed else (JOINT,))


def logs_of(model, rows):
    """Give log p(x, y) of each row and class, by our name or by scikit-learn's."""
    return (model.joint_log_likelihood if hasattr(model, "joint_log_likelihood") else model.predict_joint_log_proba)(rows.X)


def naive(model, rows, counted, logs=None):
    """Account for a naive Bayes classifier of columns that are counted."""
    given = model.class_prior is not None or not model.fit_prior
    return joint(model, rows, logs_of(model, rows) if logs is None else logs, counted, given, np.any(model.alpha))


@law("GaussianNB")
def gaussian_naive(model, rows):
    """Count a mean and a variance for each column in each class."""
    counted = {"means": model.theta_.size, "variances": model.var_.size}
    return joint(model, rows, logs_of(model, rows), counted, model.priors is not None, False)


@law("BernoulliNB")
def bernoulli_naive(model, rows):
    """Count a probability for each column in each class."""
    return naive(model, rows, {"probabilities": np.size(model.feature_log_prob_)})


@law("MultinomialNB")
def multinomial_naive(model, rows):
    """Count probabilities that sum to one over the columns, in each class."""
    K, d = np.shape(model.feature_log_prob_)
    logs = logs_of(model, rows)
    if not hasattr(model, "joint_log_likelihood"):  # scikit-learn's leave out in how many orders the words may come
        X = rows.X.toarray() if is_sparse(rows.X) else np.asarray(rows.X, dtype=float)
        logs = logs + (gammaln(X.sum(axis=1) + 1) - gammaln(X + 1).sum(axis=1))[:, None]
    return naive(model, rows, {"probabilities": K * (d - 1)}, logs)


@law("CategoricalNB")
def categorical_naive(model, rows):
    """Count probabilities that sum to one over the categories of each column, in each class."""
    return naive(model, rows, {"probabilities": sum(len(p) * (p.shape[1] - 1) for p in model.feature_log_prob_)})


def gaussian(model, rows, kind, logs, smoothed):
    """Account for a Gaussian in each class, with covariances of a kind."""
    K, d = np.shape(model.means_)
    counted = {"means": K * d, "covariances": covariance_parameters(kind, K, d)}
    return joint(model, rows, logs, counted, model.priors is not None, smoothed)


@law("GaussianBayes")
def gaussian_bayes(model, rows):
    """Count means, and covariances by their structure."""
    return gaussian(model, rows, model.covariance, logs_of(model, rows), model.shrinkage is not None)


@law("LinearDiscriminantAnalysis")
def linear(model, rows):
    """Count means, and one covariance for all classes."""
    if not hasattr(model, "covariance_"):
        raise NoLikelihoodError("LinearDiscriminantAnalysis of scikit-learn keeps its law only with store_covariance=True.")
    K = len(model.means_)
    logs = logs_of(model, rows) if hasattr(model, "joint_log_likelihood") else by_matrices(model, rows, [model.covariance_] * K)
    return gaussian(model, rows, "tied", logs, model.shrinkage is not None)


@law("QuadraticDiscriminantAnalysis")
def quadratic(model, rows):
    """Count means, and a covariance for each class."""
    if hasattr(model, "joint_log_likelihood"):
        logs = logs_of(model, rows)
    else:
        logs = by_matrices(model, rows, [(R * s) @ R.T for R, s in zip(model.rotations_, model.scalings_, strict=True)])
    smoothed = getattr(model, "shrinkage", None) is not None or model.reg_param != 0
    return gaussian(model, rows, "full", logs, smoothed)


def by_matrices(model, rows, covariances):
    """Give log p(x, y) under Gaussian classes with these covariances."""
    X = np.asarray(rows.X, dtype=float)
    laws = zip(model.means_, covariances, model.priors_, strict=True)
    return np.column_stack([multivariate_normal(m, C).logpdf(X).reshape(len(X)) + np.log(p) for m, C, p in laws])
