"""Bayes' rule by addition: on finitely many hypotheses, or on a grid of parameters.

p(θ | x) ∝ p(x | θ) p(θ), divided by its sum, the evidence p(x) = Σ p(x | θ) p(θ), which is not 1. In logarithms throughout,
as a likelihood of many observations is smaller than any float. On a grid the mass of a point is the density times the width of
its cell.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from lemmata.probability.distributions.base import probabilities


def _bayes(log_prior, log_likelihood):
    """Return the log posterior and the log evidence on a finite set."""
    joint = log_prior + log_likelihood
    evidence = logsumexp(joint)
    if not np.isfinite(evidence):
        raise ValueError("The data have the probability zero (or none) under every parameter that the prior allows.")
    return joint - evidence, float(evidence)


def _log(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def bayes_update(prior, likelihood):
    """Return the posterior probabilities of finitely many hypotheses.

    Parameters
    ----------
    prior : Their probabilities before.
    likelihood : Probability of what was seen under each of them; of several independent observations, one row for each.

    Examples
    --------
    >>> bayes_update([0.3, 0.7], [0.9, 0.4])  # rain or dry, and the morning is gray
    array([0.490909, 0.509091])
    """
    prior, likelihood = probabilities("prior", prior), np.atleast_2d(np.asarray(likelihood, dtype=float))
    if likelihood.ndim != 2 or likelihood.shape[1] != len(prior) or not (np.isfinite(likelihood) & (likelihood >= 0)).all():
        raise ValueError(f"likelihood must have {len(prior)} finite entries for each observation, none negative.")
    return np.exp(_bayes(_log(prior), _log(likelihood).sum(axis=0))[0])


@dataclass(frozen=True, eq=False)
class GridPosterior:
    """Probabilities of a parameter on a grid; each `update` makes today's posterior tomorrow's prior.

    Parameters
    ----------
    theta : Grid points (m,), or (m, d) for vectors.
    log_mass : Logarithms of their probabilities, up to a common constant.
    log_evidence : Log probability of all data so far.

    Examples
    --------
    >>> from lemmata.probability import Beta, Binomial
    >>> theta = np.linspace(0, 1, 1001)
    >>> grid = GridPosterior.from_density(theta, Beta(2, 2).pdf)
    >>> after = grid.update(lambda p: Binomial(10, 0.5).logpdf(7) + 7 * np.log(2 * p) + 3 * np.log(2 - 2 * p))
    >>> print(after.mean, after.mode)  # of Beta(9, 5)
    0.642857 0.667
    """

    theta: np.ndarray
    log_mass: np.ndarray
    log_evidence: float = 0.0

    def __post_init__(self):
        theta, mass = np.array(self.theta, dtype=float), np.array(self.log_mass, dtype=float)
        if theta.ndim not in (1, 2) or mass.shape != theta.shape[:1] or not len(mass) or not np.isfinite(theta).all():
            raise ValueError(f"theta must be finite, with one log_mass each; got the shapes {theta.shape} and {mass.shape}.")
        if np.isnan(mass).any() or not np.isfinite(mass.max()):
            raise ValueError("log_mass must not be NaN or +∞, and some entry must be finite.")
        object.__setattr__(self, "theta", theta)
        object.__setattr__(self, "log_mass", mass - logsumexp(mass))

    @classmethod
    def from_density(cls, theta, density):
        """Take a prior density to a grid: the mass of a point is the density times the width of its cell (trapezoidal rule).

        Parameters
        ----------
        theta : Increasing grid of numbers.
        density : Function, or its values on the grid; it need not be normalized.
        """
        theta = np.asarray(theta, dtype=float)
        if theta.ndim != 1 or len(theta) < 2 or not (np.diff(theta) > 0).all():
            raise ValueError("theta must be an increasing list of at least two numbers.")
        values = np.asarray(density(theta) if callable(density) else density, dtype=float)
        if values.shape != theta.shape or not (np.isfinite(values) & (values >= 0)).all() or not values.any():
            raise ValueError("The density must be finite on the grid, not negative, and positive somewhere; leave out a pole.")
        widths = np.gradient(theta)
        widths[[0, -1]] /= 2
        return cls(theta, _log(values * widths))

    def update(self, log_likelihood):
        """Return the posterior after data with this log likelihood, a function of the grid or its values."""
        with np.errstate(divide="ignore"):  # the logarithm of an impossible parameter
            values = log_likelihood(self.theta) if callable(log_likelihood) else log_likelihood
        values = np.asarray(values, dtype=float)
        if values.shape != self.log_mass.shape or np.isnan(values).any() or np.isposinf(values).any():
            raise ValueError(f"log_likelihood must be {len(self.log_mass)} numbers below +∞, one for each grid point.")
        mass, evidence = _bayes(self.log_mass, values)
        return GridPosterior(self.theta, mass, self.log_evidence + evidence)

    @property
    def probabilities(self):
        """Probabilities of the grid points."""
        return np.exp(self.log_mass)

    @property
    def mean(self):
        """Posterior mean."""
        return self.probabilities @ self.theta

    @property
    def var(self):
        """Posterior variance, of vectors that of each entry."""
        return self.probabilities @ (self.theta - self.mean) ** 2

    @property
    def mode(self):
        """The grid point with the greatest mass, the first one of several."""
        return self.theta[np.argmax(self.log_mass)]

    def icdf(self, u):
        """Return the least number of an increasing grid with a probability of at least u of a parameter of at most it."""
        if self.theta.ndim != 1 or not (np.diff(self.theta) > 0).all():
            raise ValueError("Quantiles need an increasing grid of numbers.")
        cumulative = np.cumsum(self.probabilities)
        return self.theta[np.minimum(np.searchsorted(cumulative / cumulative[-1], u), len(self.theta) - 1)]
