"""Probabilities of categories: maximum likelihood and maximum a posteriori by a Lagrange multiplier.

Maximize Σ eₖ log θₖ over θ ≥ 0 with Σθₖ = 1. The Lagrangian Σ eₖ log θₖ + λ(1 − Σθₖ) is stationary where eₖ/θₖ = λ, hence λ =
Σe and θₖ = eₖ/λ. (The equations ∇f = λ∇g are not the Lagrangian, they are what its maximum satisfies.) Maximum likelihood has
the counts for e, and λ = N. A Dirichlet(α) prior adds αₖ − 1: θₖ = (cₖ + αₖ − 1)/(N + Σα − K), if all cₖ + αₖ ≥ 1. Otherwise
the maximum lies on the boundary: where cₖ + αₖ < 1 the density grows without limit as θₖ → 0, so that these entries are zero,
and the others share the rest in the same way. The mean of the posterior, (cₖ + αₖ)/(N + Σα), is the MAP estimate of the prior
Dirichlet(α + 1).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check
from lemmata.probability.distributions import Categorical


@dataclass(frozen=True)
class SimplexEstimate:
    """The maximum of Σ eₖ log θₖ over probabilities θ, by a Lagrange multiplier.

    Attributes
    ----------
    value : θ̂ = e/Σe.
    multiplier : λ = Σe; for maximum likelihood, the number of observations.
    exponents : e, the counts, plus α − 1 under a Dirichlet prior, or zero where that is negative.
    model : The categorical distribution with these probabilities.

    Examples
    --------
    >>> from lemmata.decision import mle
    >>> from lemmata.probability.distributions import Categorical
    >>> found = mle(Categorical, [0, 0, 2, 0])
    >>> found.value, found.multiplier
    (array([0.75, 0. , 0.25]), 4.0)
    """

    value: np.ndarray
    multiplier: float
    exponents: np.ndarray
    model: Any = None

    @property
    def log_value(self):
        """The log likelihood, or the log posterior up to a constant, at the maximum."""
        used = self.exponents > 0
        return float(self.exponents[used] @ np.log(self.value[used]))

    @property
    def score(self):
        """Gradient of the Lagrangian in the entries that are not zero: eₖ/θₖ − λ."""
        used = self.exponents > 0
        return np.where(used, self.exponents / np.where(used, self.value, 1.0) - self.multiplier, 0.0)

    def certificate(self):
        """Check the conditions of Karush, Kuhn and Tucker, which are sufficient as the objective is concave."""
        used = self.exponents > 0
        shares = self.exponents / self.exponents.sum()
        off = max(abs(float(self.value.sum()) - 1), float(-self.value.min()), float(np.abs(self.value[~used]).max(initial=0.0)))
        divergence = float(shares[used] @ np.log(shares[used] / np.maximum(self.value[used], TINY)))
        slope = float(np.abs(self.score).max()) / max(self.multiplier, TINY)
        return Certificate(
            Check("feasible", off, SAME_LIMIT, "proof", "probabilities that sum to one, zero where nothing speaks for them"),
            Check("stationary", slope, SAME_LIMIT, "proof", "the gradient of the Lagrangian vanishes where θ is positive"),
            Check(
                "divergence", abs(divergence), SAME_LIMIT, "proof", "the Kullback-Leibler divergence from the shares is zero"
            ),
            subject="estimate",
        )


def on_simplex(exponents):
    """Maximize Σ eₖ log θₖ; negative exponents mean zero, at the boundary."""
    exponents = np.maximum(np.asarray(exponents, dtype=float), 0.0)
    total = float(exponents.sum())
    if total == 0:
        raise ValueError(
            "The posterior density is unbounded at corners of the simplex: there is no one mode; use larger alpha."
        )
    return SimplexEstimate(exponents / total, total, exponents, Categorical(exponents / total))


def counts_of(data, sample_weight, k):
    """Count how often each category occurs."""
    data = np.asarray(data)
    if data.ndim != 1 or not len(data) or not ((data >= 0) & (data == np.floor(data))).all() or (k and data.max() >= k):
        raise ValueError("Categories must be whole numbers from 0, below the number of categories.")
    return np.bincount(data.astype(int), weights=sample_weight, minlength=k or 0).astype(float)
