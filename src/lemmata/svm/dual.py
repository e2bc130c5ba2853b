"""The dual problem that all machines with kernels solve, and what can be said of a point of it."""

from typing import NamedTuple

import numpy as np

from lemmata.svm.optimality import balanced
from lemmata.svm.pairs import extremes


class Dual(NamedTuple):
    """The problem min ½ Σ sₜsᵤaₜaᵤ k(x_{r(t)}, x_{r(u)}) + Σ pₜaₜ subject to Σ sₜaₜ = 0 and 0 ≤ aₜ ≤ cₜ."""

    row: np.ndarray  # (T,), r: the row of each variable
    sign: np.ndarray  # (T,), s: ±1
    linear: np.ndarray  # (T,), p
    cap: np.ndarray  # (T,), c

    def values(self, scores):
        """Return v = −s·gradient for each variable."""
        return -self.sign * self.linear - scores[self.row]

    def extremes(self, a, v):
        """Return v where a variable may go up, else −∞, and v where it may go down, else ∞."""
        high, low = np.empty(len(a)), np.empty(len(a))
        extremes(a, v, self.sign, self.cap, high, low)
        return high, low

    def coefficients(self, a, n_rows):
        """Return Σ sₜaₜ over the variables of each row."""
        return np.bincount(self.row, self.sign * a, n_rows)

    def ends(self, a, v):
        """Return the largest v that may go up, the least that may go down, and the mean v of free variables (or NaN)."""
        high, low = self.extremes(a, v)
        free = v[(high > -np.inf) & (low < np.inf)]
        return high.max(), low.min(), free.mean() if len(free) else np.nan

    def balanced(self, a):
        """Return the variables with the heavier sign scaled down, so that Σ sₜaₜ = 0."""
        return self.sign * balanced(self.sign * a, self.cap)


def middle_of(high, low, free):
    """Return the bias: the mean over free variables, or the middle of what optimality allows, or its only end."""
    if not np.isnan(free):
        return float(free)
    return float((high + low) / 2 if np.isfinite(high + low) else high if np.isfinite(high) else low)
