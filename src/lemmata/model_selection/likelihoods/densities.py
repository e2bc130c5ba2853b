"""Densities of rows: mixtures, Gaussians with gaps, few hidden coordinates, and clusters read as densities.

What a model counts itself (`aic`, `bic`) is taken as it is; here it is only told by its parts. K-means is the limit of a
mixture of spheres of one size, and its rows belong to one cluster each: with the best size σ² = J/Nd of the inertia J,
    L = Σₖ Nₖ ln(Nₖ/N) − ½Nd (ln 2πσ² + 1),
the likelihood of rows and clusters together [1]; K-medians the same with the two-sided exponential density of its distances.

[1] Pelleg & Moore, ICML (2000).
"""

from copy import copy

import numpy as np
from scipy.special import logsumexp

from lemmata.core.data import is_stored
from lemmata.model_selection.likelihoods.account import HELD_BACK, Account, NoLikelihoodError, law
from lemmata.model_selection.parameter_counts import loading_parameters

HARD = "each row belongs to one cluster, and the likelihood is that of rows and clusters together: larger than a mixture's"
EXACT = 1e-14  # share of the rows below which what is left of them is rounding
GAPS = "missing entries are summed over"


def whole_number(count):
    """Give a count that went through a criterion, without the rounding of the way."""
    return round(count) if abs(count - round(count)) < 1e-6 * max(1.0, abs(count)) else float(count)


def total_of(model, rows):
    """Give the log-likelihood and the weight of all rows of a model with `score`, the mean of a row."""
    if is_stored(rows.X):
        weighted, value = model._score(model._checked(rows.X, rows.weight))
        return weighted * value, weighted
    return rows.sum(model.score_samples(rows.X)), rows.total


@law("rows")
def counted_by_itself(model, rows):
    """Take the count of a density that has `aic`, from AIC = 2K − 2L."""
    rows.whole(model)
    value, n = total_of(model, rows)
    if hasattr(model, "_n_parameters"):
        return Account(value, {"parameters": model._n_parameters()}, n)
    rows.unweighted(model)
    return Account(value, {"parameters": whole_number(model.aic(rows.X) / 2 + value)}, n)


def parted(model, rows, parts, *note):
    """Tell the count of a model by its parts; the last part, which has no number, is what is left."""
    told = counted_by_itself(model, rows)
    left = sum(told.counted.values()) - sum(count for count in parts.values() if count is not None)
    counted = {name: left if count is None else count for name, count in parts.items()}
    return told._replace(counted={name: count for name, count in counted.items() if count}, note=note)


@law("GaussianMixture", "StochasticEM")
def gaussian_mixture(model, rows):
    """Tell weights, means and covariances."""
    return parted(model, rows, {"weights": len(model.weights_) - 1, "means": model.means_.size, "covariances": None})


@law("BernoulliMixture", "BinomialMixture", "CategoricalMixture")
def discrete_mixture(model, rows):
    """Tell weights and probabilities."""
    free = getattr(model, "fit_weights", True)
    note = (HELD_BACK,) if getattr(model, "alpha", 0.0) else ()
    return parted(model, rows, {"weights": len(model.weights_) - 1 if free else 0, "probabilities": None}, *note)


@law("MissingGaussian")
def missing_gaussian(model, rows):
    """Tell mean and covariance."""
    return parted(model, rows, {"mean": len(model.mean_), "covariance": None}, GAPS)


@law("ProbabilisticPCA")
def probabilistic_pca(model, rows):
    """Tell mean, loadings without their rotation, and noise."""
    d, loadings = len(model.mean_), loading_parameters(*model.components_.shape)
    return parted(model, rows, {"mean": d, "loadings": loadings, "noise variance": None}, GAPS)


@law("PCA")
def pca(model, rows):
    """Take probabilistic PCA with these directions and variances."""
    rows.whole(model)
    k, d = model.components_.shape
    counted = {"mean": d, "loadings": loading_parameters(k, d), "noise variance": int(k < d)}
    note = "the density is that of probabilistic PCA, with variances of divisor n − 1 in place of the best, which have n"
    plain = copy(model)
    plain.whiten = False  # which changes coordinates, and no density, but by mistake that of scikit-learn
    value = rows.sum(plain.score_samples(rows.X))
    return Account(value, {name: count for name, count in counted.items() if count}, rows.total, note=(note,))


@law("FactorAnalysis")
def factor_analysis(model, rows):
    """Count mean, loadings without their rotation, and a noise for each column; in all no more than a covariance has."""
    k, d = model.components_.shape
    counted = {"mean": d, "loadings": min(loading_parameters(k, d), d * (d - 1) // 2), "noise variances": d}
    counted = {name: count for name, count in counted.items() if count}
    return Account(rows.sum(model.score_samples(rows.X)), counted, rows.total)


@law("VariationalAutoencoder")
def autoencoder(model, rows):
    """Count the weights of the decoder, which is the density; the encoder only helps to find it."""
    rows.whole(model)
    counted = {"decoder": sum(W.size for W in (*model.decoder_.weights, *model.decoder_.biases))}
    if model.likelihood == "gaussian":
        counted["noise variance"] = int(model.noise_variance == "learn")
    note = "log p(x) is estimated by importance sampling, from below", "the count of a network is nominal"
    return Account(rows.sum(model.score_samples(rows.X)), counted, rows.total, note=note)


def distances(model, rows, power):
    """Give Σ |difference|^power over columns to the own center, for each row; Σ |x|^power of all rows; and their clusters."""
    rows.whole(model)
    X = rows.X.toarray() if hasattr(rows.X, "toarray") else np.asarray(rows.X, dtype=float)
    labels = np.asarray(model.predict(rows.X))
    apart = (np.abs(X - np.asarray(model.cluster_centers_, dtype=float)[labels]) ** power).sum(axis=1)
    return apart, rows.sum((np.abs(X) ** power).sum(axis=1)), labels


def hard(model, rows, power, at_best):
    """Account for rows that belong to one cluster each, at the best scale of the distances."""
    apart, size, labels = distances(model, rows, power)
    n, (k, d) = rows.total, np.shape(model.cluster_centers_)
    loss, sizes = rows.sum(apart), np.bincount(labels, weights=rows.repetitions, minlength=k)
    if not loss > EXACT * size:
        raise NoLikelihoodError(f"{type(model).__name__} has every row at its center, and no likelihood: take fewer clusters.")
    sizes = sizes[sizes > 0]
    value = float(sizes @ np.log(sizes / n)) + n * d * at_best(loss / (n * d))
    return Account(value, {"shares": k - 1, "centers": k * d, "scale": 1}, n, note=(HARD,))


@law("KMeans", "MiniBatchKMeans", "BisectingKMeans")
def k_means(model, rows):
    """Take spheres of one size."""
    return hard(model, rows, 2, lambda variance: -0.5 * (np.log(2 * np.pi * variance) + 1))


@law("KMedians")
def k_medians(model, rows):
    """Take two-sided exponential densities of one scale."""
    return hard(model, rows, 1, lambda scale: -np.log(2 * scale) - 1)


@law("SoftKMeans")
def soft_k_means(model, rows):
    """Take the mixture of spheres of variance 1/2β with equal shares, of which the free energy is the likelihood."""
    rows.whole(model)
    X = rows.X.toarray() if hasattr(rows.X, "toarray") else np.asarray(rows.X, dtype=float)
    centers, beta = np.asarray(model.cluster_centers_, dtype=float), float(model.beta_)
    k, d = centers.shape
    squared = np.column_stack([((X - center) ** 2).sum(axis=1) for center in centers])
    logs = logsumexp(-beta * squared, axis=1) - np.log(k) + d / 2 * np.log(beta / np.pi)
    note = "a mixture of spheres of variance 1/2β with equal shares; β is not counted, since it was not fitted"
    return Account(rows.sum(logs), {"centers": k * d}, rows.total, note=(note,))
