"""What all models with a Gaussian for each class can say: log p(x, y) = log πy + log N(x|μy, Σy), and how to draw from it.

What follows from that is in `core.generative`. Entries that are missing (NaN) are integrated out: what is seen of a row is
N(μₒ, Σₒₒ), with the rows and columns of what is not seen dropped. Rows with the same holes share that algebra
(`mixture.missing_kernels`).
"""

import numpy as np

from lemmata.core.blocks import Largest
from lemmata.core.estimator import as_output
from lemmata.core.generative import GenerativeClassifier, posterior_block
from lemmata.discriminant_analysis.structures import expanded
from lemmata.mixture import gaussian_kernels, missing
from lemmata.mixture.gaussian import components_of
from lemmata.mixture.gaussian_certificate import bayes, patterns, seen_part


def joint_block(X, weight, components):
    """Log p(x, y) of the rows of a block, holes or not, and every class."""
    return (missing if np.isnan(X).any() else gaussian_kernels).log_density_block(X, components)


def difference_block(X, weight, law, params, prior):
    """By how much log p(x, y) is larger for the second of two classes; that of the priors for a row beyond all numbers."""
    joint = law(X, weight, *params)
    return or_prior(joint[:, 1], joint[:, 0], prior[1] - prior[0])


def or_prior(a, b, prior):
    """Subtract logarithms; where both are −∞ a row says nothing, and the prior is left."""
    with np.errstate(invalid="ignore"):
        difference = a - b
    return np.where(np.isnan(difference), prior, difference)


def disagreement_block(X, y, weight, rule, priors, means, matrices):
    """Largest difference of the probabilities of a model from those by Bayes' rule with the holes dropped, by dense algebra."""
    ours, worst = posterior_block(X, weight, *rule), 0.0
    for rows, seen in patterns(X):
        theirs = bayes(X[rows][:, seen].astype(float), priors, *seen_part(means, matrices, seen))[0]
        worst = max(worst, float(np.abs(ours[rows] - theirs).max()))
    return Largest(worst)


class GaussianClasses(GenerativeClassifier):
    """Base of classifiers with a Gaussian for each class.

    A kind of model has the method `_gaussians()`, which gives priors (k,), means (k, d), covariances and their structure.
    """

    def __sklearn_tags__(self):
        """Say that entries may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def decision_function(self, X):
        """Give log p(x, y) for each class or, of two classes, by how much that of the second is larger."""
        blocks = self._checked(X)
        function, *params = self._law()
        if len(self.classes_) > 2:
            return as_output(blocks.map(function, *params), blocks.dtype)
        with np.errstate(over="ignore"):  # beyond single precision it is infinite
            return as_output(blocks.map(difference_block, function, params, self._log_priors()), blocks.dtype)

    def _law(self):
        return joint_block, self._components()

    def _log_priors(self):
        with np.errstate(divide="ignore"):  # a class may have the probability 0
            return np.log(self._gaussians()[0])

    def _draw(self, labels, rng):
        _, means, covariance, structure = self._gaussians()
        lowers = np.linalg.cholesky(expanded(covariance, structure, *means.shape))
        X = rng.standard_normal((len(labels), means.shape[1]))
        for c, (mean, lower) in enumerate(zip(means, lowers, strict=True)):
            X[labels == c] = mean + X[labels == c] @ lower.T
        return X

    def _components(self):
        """Give the classes as the kernels want them."""
        priors, means, covariance, structure = self._gaussians()
        if structure == "tied-diag":
            covariance, structure = np.broadcast_to(covariance, means.shape), "diag"
        return components_of(priors, means, covariance, structure, priors @ means / priors.sum())

    def _disagreement(self, blocks):
        """Largest difference of probabilities, over labeled blocks, from those that dense algebra gives."""
        priors, means, covariance, structure = self._gaussians()
        matrices = expanded(covariance, structure, *means.shape)
        return blocks.reduce(disagreement_block, self._bayes(), priors, means, matrices).value
