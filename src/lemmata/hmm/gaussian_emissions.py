"""Gaussian emissions: the law that a fit moves, the law of a fit, and the same by another way for its certificate.

Within a state rows are N(μₛ, Σₛ); with γ in the place of the responsibilities the M-step is that of a Gaussian mixture
(`lemmata.mixture.gaussian`), entries that are missing included. An inverse-Wishart prior adds −½ w log|Σₛ| − ½ tr ΨΣₛ⁻¹ to the
objective, and w rows with the covariance Ψ/w to each state: Σₛ = (nₛ Σ̂ₛ + Ψ)/(nₛ + w).
"""

import numpy as np

from lemmata.core.certificate import same
from lemmata.mixture import gaussian_kernels, missing
from lemmata.mixture.gaussian import GaussianModel, as_matrices, components_of, of_kind
from lemmata.mixture.gaussian_certificate import (
    add_moments,
    from_moments,
    log_densities,
    patterns,
    seen_part,
    soundness,
    stationary,
)


class GaussianLaw(GaussianModel):
    """Gaussian emissions of a fit; parameters are (occupancies of the states, means, covariances).

    Parameters
    ----------
    k : Number of states.
    scatter, weight : Ψ, in the shape of the covariances, and w.
    """

    def __init__(self, kind, floor, table, k, scatter, weight):
        super().__init__(kind, floor, table)
        self.k, self.scatter, self.weight = k, scatter, weight

    @property
    def complete(self):
        """Whether the states are all that is hidden."""
        return not self.table.holes

    def prepare(self, parameters):
        """Factor the covariances; with weights of one, a log joint density is the log-density of a state."""
        _, means, covariances = parameters
        return super().prepare((np.ones(self.k), means, covariances))

    def log_densities(self, X, prepared):
        """Log-density of each row in each state."""
        return (missing if np.isnan(X).any() else gaussian_kernels).log_density_block(X, prepared)

    def statistics(self, X, shares, prepared):
        """Occupancies and moments."""
        return (missing if self.table.holes else gaussian_kernels).moments_block(X, shares, prepared)

    def m_step(self, statistics, parameters, fixed=()):
        """Take the moments, and add what the prior knows."""
        weights, means, covariances = super().m_step((0.0, *statistics), parameters)
        covariances = with_prior(covariances, statistics[0], self.kind, self.scatter, self.weight)
        return (
            weights,
            parameters[1] if "means" in fixed else means,
            parameters[2] if "covars" in fixed else covariances,
        )

    def log_prior(self, parameters):
        """Log-density of the inverse-Wishart prior but for its constant."""
        if not self.weight > 0:
            return 0.0
        _, means, covariances = parameters
        k, d = means.shape
        matrices, scatter = as_matrices(covariances, self.kind, k, d), as_matrices(self.scatter, self.kind, k, d)
        value = -0.5 * self.weight * np.linalg.slogdet(matrices)[1]
        value -= 0.5 * np.trace(np.linalg.solve(matrices, scatter), axis1=1, axis2=2)
        return float(value[0] if self.kind == "tied" else value.sum())

    def escape(self, before, after):
        """Gaussians have no border."""
        return


def with_prior(covariances, counts, kind, scatter, weight):
    """Add w rows with the covariance Ψ/w to each state."""
    if not weight > 0:
        return covariances
    counts = counts.sum() if kind == "tied" else counts.reshape(-1, *[1] * (covariances.ndim - 1))
    return (counts * covariances + scatter) / (counts + weight)


class FittedGaussians:
    """Emissions of a fitted model; parameters are (means, covariances)."""

    def __init__(self, kind, k, center):
        self.kind, self.k, self.center = kind, k, center

    def prepare(self, parameters):
        """Factor the covariances."""
        return components_of(np.ones(self.k), *parameters, self.kind, self.center)

    log_densities = GaussianLaw.log_densities


class GaussianChecker:
    """Gaussian emissions by dense algebra, as `certificate` wants them; parameters are (means, covariances).

    Parameters
    ----------
    kind, floor, scatter, weight : Of the law.
    given : {name: start} of what was fixed.
    """

    def __init__(self, kind, floor, scatter, weight, given):
        self.kind, self.floor, self.scatter, self.weight, self.given = kind, floor, scatter, weight, given

    def sound(self, parameters):
        """Check that the parameters are such as Gaussians have."""
        k = len(parameters[0])
        found = soundness(np.full(k, 1.0 / k), parameters[1], self.kind)
        return found if np.isfinite(parameters[0]).all() else soundness(np.full(k, np.nan), parameters[1], self.kind)

    def log_densities(self, X, parameters):
        """Log-density of each row in each state, pattern by pattern."""
        X, means = X.astype(float), parameters[0]
        matrices, logs = as_matrices(parameters[1], self.kind, *means.shape), np.zeros((len(X), len(means)))
        for rows, seen in patterns(X):
            if seen.any():
                logs[rows] = log_densities(X[rows][:, seen], *seen_part(means, matrices, seen))
        return logs

    def statistics(self, X, states, ahead, parameters):
        """Occupancies and expected moments."""
        X, means = X.astype(float), parameters[0]
        k, d = means.shape
        matrices, sights = as_matrices(parameters[1], self.kind, k, d), np.zeros((k, d))
        first, second = np.zeros((k, d)), np.zeros((k, d, d))
        for rows, seen in patterns(X):
            add_moments(X[rows][:, seen], seen, states[rows], means, matrices, first, second, sights)
        return states.sum(axis=0), first, second, sights

    def step(self, statistics, parameters):
        """Means and covariances after an EM step."""
        matrices = as_matrices(parameters[1], self.kind, *parameters[0].shape)
        weights, means, matrices = from_moments(*statistics, parameters[0], matrices, self.floor)
        return means, with_prior(of_kind(matrices, weights, self.kind), statistics[0], self.kind, self.scatter, self.weight)

    def stationary(self, step, occupancies, parameters):
        """Check that a step, a function of the parameters, leaves them where they are, or that they are those given."""
        names = "means", "covars"
        found = stationary(lambda m, c: step((m, c)), self.kind, occupancies, *parameters, names)
        for i, name in enumerate(names):
            if name in self.given:
                found[i] = same(parameters[i], self.given[name], name, f"{name} are those given")
        return found

    def excess(self, statistics, parameters):
        """Gaussians have no border."""
        return 0.0
