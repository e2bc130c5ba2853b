"""What all models with a Gaussian for each class can say: log p(x, y) = log πy + log N(x|μy, Σy), and what follows from it.

Bayes' rule gives P(y|x) = p(x, y)/p(x), p(x) = Σy p(x, y). The joint law is known, so rows can be drawn, their density told,
and entries that are missing (NaN) integrated out: what is seen of a row is N(μₒ, Σₒₒ), with the rows and columns of what is not
seen dropped. Rows with the same holes share that algebra (`mixture.missing_kernels`).
"""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Largest
from lemmata.core.estimator import Classifier, as_output
from lemmata.core.random import generator
from lemmata.discriminant_analysis.structures import expanded
from lemmata.mixture import gaussian_kernels, missing
from lemmata.mixture.gaussian import components_of, posterior_block
from lemmata.mixture.gaussian_certificate import bayes, patterns, seen_part


def joint_block(X, weight, components):
    """Log p(x, y) of the rows of a block, holes or not, and every class."""
    return (missing if np.isnan(X).any() else gaussian_kernels).log_density_block(X, components)


def normalized(logs):
    """Subtract from each row the logarithm of the sum of its exponentials; class by class where these stand together."""
    logs = logs.T - logs.T.max(axis=0)
    return (logs - np.log(np.exp(logs).sum(axis=0))).T


def log_posterior_block(X, weight, components):
    """Log P(y|x) of the rows of a block."""
    joint = joint_block(X, weight, components)
    joint[np.isneginf(joint).all(axis=1)] = components.logs  # a row beyond all numbers says nothing
    return normalized(joint)


def proba_block(X, weight, components, dtype):
    """P(y|x) of the rows of a block."""
    posterior = posterior_block(X, weight, components)[0]
    lost = ~posterior.any(axis=1)
    if lost.any():
        posterior[lost] = np.exp(components.logs)  # a row beyond all numbers says nothing
    return as_output(posterior, dtype)


def label_block(X, weight, probabilities, *params):
    """Number of the most probable class of each row, the first of equals; `probabilities` is the function of a block."""
    found = probabilities(X, weight, *params)
    labels, most = np.zeros(len(found), np.intp), found[:, 0].copy()
    for c in range(1, found.shape[1]):  # class by class: faster than row by row, of which each is short
        more = found[:, c] > most
        labels[more] = c
        np.maximum(most, found[:, c], out=most)
    return labels


def density_block(X, weight, components):
    """Log p(x) of the rows of a block."""
    return posterior_block(X, weight, components)[1]


def disagreement_block(X, y, weight, probabilities, params, priors, means, matrices):
    """Largest difference of the probabilities of a model from those by Bayes' rule with the holes dropped, by dense algebra."""
    ours, worst = probabilities(X, weight, *params), 0.0
    for rows, seen in patterns(X):
        theirs = bayes(X[rows][:, seen].astype(float), priors, *seen_part(means, matrices, seen))[0]
        worst = max(worst, float(np.abs(ours[rows] - theirs).max()))
    return Largest(worst)


class GaussianClasses(Classifier):
    """Base of classifiers with a Gaussian for each class.

    A kind of model has the method `_gaussians()`, which gives priors (k,), means (k, d), covariances and their structure.
    """

    generative = True

    def __sklearn_tags__(self):
        """Say that entries may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def joint_log_likelihood(self, X):
        """Give log p(x, y) for each row and class: (rows, classes). What is missing of a row is integrated out."""
        return self._mapped(X, joint_block, self._components())

    def score_samples(self, X):
        """Give log p(x) for each row, the density of what is seen of it under all classes together."""
        return self._mapped(X, density_block, self._components())

    def predict_log_proba(self, X):
        """Give log P(y|x) for each row and class."""
        logs = self._mapped(X, *self._log_posterior())
        logs[np.abs(logs) < np.finfo(logs.dtype).epsneg / 2] = 0.0  # a probability that rounds to 1
        return logs

    def predict_proba(self, X):
        """Give P(y|x) for each row and class."""
        blocks = self._checked(X)
        function, *params = self._probabilities(blocks.dtype)
        return blocks.map(function, *params)

    def predict(self, X):
        """Give each row its most probable class; ties go to the first."""
        blocks = self._checked(X)
        return self.classes_[blocks.map(label_block, *self._probabilities(blocks.dtype))]

    def decision_function(self, X):
        """Give log p(x, y) for each class or, of two classes, by how much that of the second is larger."""
        joint = self.joint_log_likelihood(X)
        return joint[:, 1] - joint[:, 0] if joint.shape[1] == 2 else joint

    def sample(self, n_samples=1, random_state=None):
        """Draw rows and their classes from the joint law; return (X, y)."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        priors, means, covariance, structure = self._gaussians()
        rng = generator(random_state)
        y = rng.choice(len(priors), n_samples, p=priors / priors.sum())
        lowers = np.linalg.cholesky(expanded(covariance, structure, *means.shape))
        X = rng.standard_normal((n_samples, means.shape[1]))
        for c, (mean, lower) in enumerate(zip(means, lowers, strict=True)):
            X[y == c] = mean + X[y == c] @ lower.T
        return X, self.classes_[y]

    def _probabilities(self, dtype):
        """Give the function of a block that computes P(y|x), and its parameters."""
        return proba_block, self._components(), dtype

    def _log_posterior(self):
        """Give the function of a block that computes log P(y|x), and its parameters."""
        return log_posterior_block, self._components()

    def _components(self):
        """Give the classes as the kernels want them."""
        check_is_fitted(self)
        priors, means, covariance, structure = self._gaussians()
        if structure == "tied-diag":
            covariance, structure = np.broadcast_to(covariance, means.shape), "diag"
        return components_of(priors, means, covariance, structure, priors @ means / priors.sum())

    def _mapped(self, X, function, *params):
        blocks = self._checked(X)
        return as_output(blocks.map(function, *params), blocks.dtype)

    def _checked(self, X):
        check_is_fitted(self)
        return self._blocks(X, reset=False, order="C")

    def _more(self, X, y, classes, sample_weight):
        """Give labeled blocks of rows that come later; those of the first call come with the names of all classes."""
        if not hasattr(self, "classes_"):
            if classes is None:
                raise ValueError("The first call of partial_fit must name all classes: classes=….")
            named = self._two_or_more(np.unique(classes))
            self._blocks(X, sample_weight=sample_weight, reset=True)
            self.classes_ = named
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes is not the same as in the first call: {list(self.classes_)}.")
        return self._labeled(X, y, sample_weight, reset=False, order="C")

    def _disagreement(self, blocks):
        """Largest difference of probabilities, over labeled blocks, from those that dense algebra gives."""
        priors, means, covariance, structure = self._gaussians()
        function, *params = self._probabilities(np.float64)
        matrices = expanded(covariance, structure, *means.shape)
        return blocks.reduce(disagreement_block, function, params, priors, means, matrices).value


def checked_priors(priors, counts):
    """Give the probabilities of the classes: those given, or the shares of the classes."""
    if priors is None:
        return counts / counts.sum()
    found = np.array(priors, dtype=float)
    if found.shape != counts.shape:
        raise ValueError(f"priors must hold {len(counts)} numbers, one for each class, got the shape {found.shape}.")
    if not ((found >= 0).all() and abs(found.sum() - 1.0) < 1e-5):
        raise ValueError(f"priors must be at least 0 and sum to 1, got {found.tolist()}.")
    return found / found.sum()
