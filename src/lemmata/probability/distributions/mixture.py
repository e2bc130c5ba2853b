"""Mixtures: first which component, then a value from it.

p(x) = Σ wₖ pₖ(x), by log-sum-exp; F = Σ wₖFₖ; mean Σ wₖμₖ; covariance Σ wₖ(Σₖ + (μₖ − μ)(μₖ − μ)ᵀ), the mean within plus the
variance between. The component of a value has the posterior rₖ(x) = wₖpₖ(x)/p(x), and ∇log p = Σ rₖ ∇log pₖ. A quantile of the
mixture lies between the least and the greatest of the components' own: there every Fₖ, and so F, is at most (at least) u.
Newton's method kept in this bracket, with a bisection at every third step, finds it. The likelihood of a mixture has many
maxima; there is no `fit` here.
"""

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import IntegrationWarning, quad
from scipy.special import entr, logsumexp

from lemmata.probability.distributions.base import Discrete, Distribution, integer_quantile, levels, probabilities

STEPS = 400  # a bisection at every third step exhausts the bracket within twice the 64 bits of a number


@dataclass(frozen=True, eq=False)
class Mixture(Distribution):
    """Mixture of distributions of one kind.

    Parameters
    ----------
    weights : Probabilities of the components, with the sum 1.
    components : Distributions: all continuous on the line, all discrete, or all of vectors of the same length.

    Examples
    --------
    >>> from lemmata.probability.distributions import Normal
    >>> mixture = Mixture([0.5, 0.5], [Normal(-2, 1), Normal(2, 1)])
    >>> print(mixture.mean, mixture.var, mixture.cdf(0.0))
    0.0 5.0 0.5
    >>> mixture.responsibilities(2.0)
    array([0.0003, 0.9997])
    """

    weights: np.ndarray
    components: tuple

    def __post_init__(self):
        weights, components = probabilities("weights", self.weights), tuple(self.components)
        if len(components) != len(weights) or not all(isinstance(c, Distribution) for c in components):
            raise ValueError(f"There must be one distribution for each of the {len(weights)} weights.")
        if len({(c.discrete, np.shape(c.mean)) for c in components}) > 1:
            raise ValueError("The components must be all continuous on the line, all discrete, or all vectors of one length.")
        self._store(weights=weights, components=components)

    @property
    def discrete(self):
        """Whether the components are discrete."""
        return self.components[0].discrete

    @property
    def support(self):
        """Least and greatest value."""
        ends = [c.support for c in self.components]
        return min(low for low, _ in ends), max(high for _, high in ends)

    @property
    def mean(self):
        """Mean."""
        return sum(w * c.mean for w, c in zip(self.weights, self.components, strict=True))

    @property
    def var(self):
        """Variance; of vectors, those of the entries."""
        mean = self.mean
        return sum(w * (c.var + (c.mean - mean) ** 2) for w, c in zip(self.weights, self.components, strict=True))

    @property
    def cov(self):
        """Covariance matrix of a mixture of vectors."""
        mean = self.mean
        parts = ((w, c.cov, c.mean - mean) for w, c in zip(self.weights, self.components, strict=True))
        return sum(w * (cov + np.outer(off, off)) for w, cov, off in parts)

    def entropy(self):
        """Return the entropy in nats: a sum if discrete, a quadrature on the line."""
        if self.discrete:
            return float(entr(self.pdf(np.arange(self.support[0], self.support[1] + 1))).sum())
        if np.ndim(self.mean):
            raise ValueError("The entropy of a mixture of vectors has no formula; average -logpdf(sample(n)) instead.")
        cuts = np.unique([c.icdf(u) for c in self.components for u in (1e-9, 0.01, 0.5, 0.99, 1 - 1e-9)])
        ends = np.unique(np.concatenate([[self.support[0]], cuts, [self.support[1]]]))

        def surprise(x):
            density = self.pdf(x)
            return entr(density) if density < np.inf else 0.0  # a point that was rounded to a pole

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IntegrationWarning)  # near a pole the last digits are rounding
            return float(sum(quad(surprise, low, high, epsabs=1e-10, limit=50)[0] for low, high in pairwise(ends)))

    def _joint(self, x):
        parts = [np.log(w) + c.logpdf(x) for w, c in zip(self.weights, self.components, strict=True) if w > 0]
        return np.stack(parts, axis=-1)

    def logpdf(self, x):
        """Return the log density (if discrete, the log probability) at x."""
        return logsumexp(self._joint(x), axis=-1)[()]

    def responsibilities(self, x):
        """Return the probability of each component given x, along a new last axis.

        Examples
        --------
        >>> from lemmata.probability.distributions import Bernoulli
        >>> Mixture([0.5, 0.5], [Bernoulli(0.2), Bernoulli(0.8)]).responsibilities(1)
        array([0.2, 0.8])
        """
        joint = self._joint(x)
        total = logsumexp(joint, axis=-1, keepdims=True)
        if np.isneginf(total).any():
            raise ValueError("Some value has the density zero under every component; no component can answer for it.")
        result = np.zeros((*joint.shape[:-1], len(self.weights)))
        result[..., self.weights > 0] = np.exp(joint - total)
        return result

    def logpdf_gradient(self, x):
        """Return the gradient of the log density at x."""
        shares = np.moveaxis(self.responsibilities(x), -1, 0)
        gradients = np.stack([c.logpdf_gradient(x) for c in self.components])
        return ((shares[..., None] if np.ndim(self.mean) else shares) * gradients).sum(axis=0)

    def cdf(self, x):
        """Return the probability of a value of at most x, on the line."""
        return np.minimum(sum(w * c.cdf(x) for w, c in zip(self.weights, self.components, strict=True)), 1.0)[()]

    def icdf(self, u):
        """Return the least value with a probability of at least u of a value of at most it."""
        u = levels(u)
        if self.discrete:
            return integer_quantile(self.cdf, u, *self.support)[()]
        own = [c.icdf(u) for w, c in zip(self.weights, self.components, strict=True) if w > 0]
        low, high = np.min(own, axis=0), np.max(own, axis=0)
        return np.where(np.isfinite(low) & np.isfinite(high), self._root(u, low, high), np.where(u < 0.5, low, high))[()]

    def _root(self, u, low, high):
        """Solve F(x) = u between low and high, where both are finite."""
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            x = np.where(np.isfinite(low) & np.isfinite(high), low + (high - low) / 2, 0.0)
            for step in range(STEPS):
                excess = self.cdf(x) - u
                low, high = np.where(excess < 0, x, low), np.where(excess > 0, x, high)
                newton, middle = x - excess / self.pdf(x), low + (high - low) / 2
                good = (newton > low) & (newton < high) & (step % 3 < 2)
                new = np.where(excess == 0, x, np.where(good, newton, middle))
                settled = (np.abs(new - x) <= 4 * np.finfo(float).eps * np.abs(x)) | (excess == 0) | ~np.isfinite(new)
                x = new
                if settled.all():
                    break
        return x

    def _draw(self, n, rng):
        which = rng.choice(len(self.weights), size=n, p=self.weights)
        draws = np.empty((n, *np.shape(self.mean)), dtype=int if self.discrete else float)
        for k, component in enumerate(self.components):
            draws[which == k] = component.sample(int((which == k).sum()), rng)
        return draws

    logpmf = Discrete.logpmf
    pmf = Discrete.pmf
