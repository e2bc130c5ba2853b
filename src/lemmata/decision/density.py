"""A density of one number that is known up to a factor, made into a distribution.

The density is laid on an even grid over all that carries mass, its integral is summed by Simpson's rule, and the distribution
function between the grid points is the cubic that has its values and slopes: errors are of the fourth order in the step.
"""

import numpy as np
from scipy.integrate import cumulative_simpson, simpson
from scipy.interpolate import CubicHermiteSpline

POINTS = 4001  # over twenty standard deviations: a step of 1/200 of one, whose fourth power is 1e-9
DEEP = 40.0  # nats below the mode, where what is left out is beneath rounding
HALVINGS = 50  # of a grid cell, to find a quantile: all digits


class Density:
    """A distribution of one number from its log density, up to a constant, its mode, and a rough standard deviation.

    Examples
    --------
    >>> bell = Density(lambda x: -((x - 1.0) ** 2) / 8, mode=1.0, scale=2.0)
    >>> bell.mean, bell.var, float(bell.icdf(0.5)), float(bell.cdf(3.0))
    (1.0, 4.0, 1.0, 0.841345)
    """

    discrete = False

    def __init__(self, log_density, mode, scale):
        self.mode, self._log_density, self._top = mode, log_density, log_density(mode)
        low, high = (self._end(sign * 10 * scale) for sign in (-1, 1))
        grid = np.linspace(low, high, POINTS)
        values = np.exp(np.array([log_density(x) for x in grid]) - self._top)
        total = simpson(values, x=grid)
        self.support, self._log_total = (low, high), self._top + np.log(total)
        below = np.clip(np.maximum.accumulate(cumulative_simpson(values, x=grid, initial=0) / total), 0, 1)
        self._cdf = CubicHermiteSpline(grid, below, values / total)
        self.mean = float(simpson(grid * values, x=grid) / total)
        self.var = float(simpson((grid - self.mean) ** 2 * values, x=grid) / total)

    def _end(self, width):
        """Find where the density has died out, or where the values end."""
        while (depth := self._top - self._log_density(self.mode + width)) < DEEP:
            width *= 2
        if np.isfinite(depth):
            return self.mode + width
        inside, outside = 0.0, width
        while abs(outside - inside) > 1e-15 * abs(outside) and (middle := (inside + outside) / 2) not in (inside, outside):
            inside, outside = (middle, outside) if np.isfinite(self._log_density(self.mode + middle)) else (inside, middle)
        return self.mode + inside

    def logpdf(self, x):
        """Return the log density."""
        return np.vectorize(self._log_density, otypes=[float])(x) - self._log_total

    def pdf(self, x):
        """Return the density."""
        return np.exp(self.logpdf(x))

    def cdf(self, x):
        """Return the probability of a value of at most x."""
        return np.clip(self._cdf(np.clip(x, *self.support)), 0, 1)

    def icdf(self, u):
        """Return the value below which the probability is u."""
        u = np.asarray(u, dtype=float)
        grid, below = self._cdf.x, self._cdf(self._cdf.x)
        cell = np.clip(np.searchsorted(below, u), 1, len(grid) - 1)
        low, high = grid[cell - 1], grid[cell]
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            reached = self._cdf(middle) >= u
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        return high
