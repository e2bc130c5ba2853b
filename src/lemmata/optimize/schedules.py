"""Step-size schedules: the rate of step t = 1, 2, … as η / (1 + δ(t − 1))ᵖ.

One formula holds the three of the textbooks: p = 0 is constant, p = 1 with δ = 1 is η/t, p = ½ with δ = 1 is η/√t.
With noisy gradients the iterates converge if Σ ηₜ = ∞ (any distance can be covered) and Σ ηₜ² < ∞ (the noise dies out) [1];
with exact subgradients of a convex function Σ ηₜ = ∞ and ηₜ → 0 are enough. By the integral test the first sum diverges if
and only if p ≤ 1 and the second converges if and only if p > ½ (δ > 0): `robbins_monro` shows both on partial sums, against
integrals that are known in closed form. Compiled loops call `rate_at(t, *schedule.constants)`.

[1] Robbins & Monro, Ann. Math. Stat. 22 (1951).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.core.kernel import kernel

HORIZON = 10_000  # terms of the partial sums shown: enough to see √t and log t grow
ROUNDING = 1e-9  # relative, of sums of that many terms


@kernel
def rate_at(t, eta, power, decay):
    """Return the rate of step t, counted from 1."""
    return eta / (1.0 + decay * (t - 1)) ** power


@dataclass(frozen=True)
class Schedule:
    """The rate η / (1 + δ(t − 1))ᵖ as a function of the step t, counted from 1.

    Parameters
    ----------
    eta : Rate of the first step.
    power : How fast the rate falls.
    decay : How soon: after 1/δ steps the fall is seen.

    Examples
    --------
    >>> rate = Schedule(eta=0.5, power=0.75, decay=1.0)
    >>> rate(1), rate(16)
    (0.5, 0.0625)
    >>> rate.sum_diverges, rate.squares_converge
    (True, True)
    """

    eta: float
    power: float
    decay: float = 1.0

    def __post_init__(self):
        for name, allowed in {"eta": self.eta > 0, "power": self.power >= 0, "decay": self.decay >= 0}.items():
            if not (allowed and np.isfinite(getattr(self, name))):
                least = "positive" if name == "eta" else "zero or positive"
                raise ValueError(f"{name} must be finite and {least}, got {getattr(self, name)}.")

    def __call__(self, t):
        """Return the rate of step t."""
        return rate_at(t, *self.constants)

    @property
    def constants(self):
        """What `rate_at` takes after the step: (eta, power, decay)."""
        return float(self.eta), float(self.power), float(self.decay)

    @property
    def vanishes(self):
        """Whether ηₜ → 0."""
        return self.power > 0 and self.decay > 0

    @property
    def sum_diverges(self):
        """Whether Σ ηₜ = ∞: the iterates can get anywhere."""
        return self.power <= 1 or self.decay == 0

    @property
    def squares_converge(self):
        """Whether Σ ηₜ² < ∞: the noise of the gradients dies out."""
        return self.power > 0.5 and self.decay > 0  # ½: the squares fall like 1/t there

    def sums(self, horizon=HORIZON):
        """Return the partial sums of ηₜ and of ηₜ², for every number of steps up to the horizon."""
        rates = self(np.arange(1, horizon + 1, dtype=float))
        return np.cumsum(rates), np.cumsum(rates**2)

    def robbins_monro(self, horizon=HORIZON):
        """Check Σ ηₜ = ∞ and Σ ηₜ² < ∞ on partial sums, against the integrals that decide the matter.

        Examples
        --------
        >>> print(inverse(0.5).robbins_monro())
        Schedule(eta=0.5, power=1.0, decay=1.0): certificate holds (proof)
          check    value     limit  kind   claim
          sum      9.4e-01 ≤ 1e+00  proof  the sum of rates exceeds an integral that grows without limit
          squares  8.2e-01 ≤ 1e+00  proof  the sum of squared rates stays below a finite integral
        >>> [check.name for check in inverse_sqrt(0.5).robbins_monro().failed]
        ['squares']
        """
        total, squares = (float(s[-1]) for s in self.sums(horizon))
        grown = self._integral(horizon)  # ∫₁ᵀ⁺¹ ηₜ dt ≤ Σ ηₜ, since the rates fall
        limit = self.eta**2 + (self.eta**2 / (self.decay * (2 * self.power - 1)) if self.squares_converge else np.inf)
        grows = "the sum of rates exceeds an integral that grows without limit"
        stays = "the sum of squared rates stays below a finite integral"
        return Certificate(
            Check("sum", grown / total if self.sum_diverges else np.inf, 1 + ROUNDING, "proof", grows),
            Check("squares", squares / limit if self.squares_converge else np.inf, 1 + ROUNDING, "proof", stays),
            subject=repr(self),
        )

    def _integral(self, horizon):
        """Integrate the rate over t from 1 to horizon + 1."""
        if not self.vanishes:
            return self.eta * horizon
        end = 1 + self.decay * horizon
        return self.eta / self.decay * (np.log(end) if self.power == 1 else (end ** (1 - self.power) - 1) / (1 - self.power))


def constant(eta):
    """Return the schedule ηₜ = η: reaches the neighborhood of an optimum, and stays there if gradients are noisy.

    Examples
    --------
    >>> constant(0.1)(7)
    0.1
    """
    return Schedule(eta, power=0.0)


def inverse(eta, decay=1.0):
    """Return the schedule ηₜ = η / (1 + decay·(t − 1)), by default η/t: the rates of Robbins and Monro.

    Examples
    --------
    >>> inverse(0.5)(4), inverse(0.5, decay=0.1)(11)
    (0.125, 0.25)
    """
    return Schedule(eta, power=1.0, decay=decay)


def inverse_sqrt(eta):
    """Return the schedule ηₜ = η/√t.

    Examples
    --------
    >>> inverse_sqrt(0.5)(4)
    0.25
    """
    return Schedule(eta, power=0.5)
