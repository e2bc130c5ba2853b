"""Where the search for hyperparameters begins, and within what it stays."""

from typing import NamedTuple

import numpy as np

from lemmata.kernels import RBF, Constant

AMPLITUDES = (1e-4, 1e2)  # of the default kernel, in units of the variance of the targets
LENGTHS = (1e-2, 1e2)  # of the default kernel, in units of where the search begins
NOISES = (1e-8, 1e1)  # in units of the variance of the targets
NOISES_THROUGH_POINTS = (1e-6, 1e1)  # with inducing points, whose jitter costs slopes their digits where there is less noise
SHARE = 0.1  # of the variance of the targets that is taken for noise at first


class Prior(NamedTuple):
    """A kernel and a noise with their bounds; the noise is searched for as well if it is free."""

    kernel: object
    noise: float
    free_noise: bool
    noise_bounds: tuple

    @property
    def start(self):
        """The variables of the search: theta of the kernel, then log σ² if it is free."""
        return np.append(self.kernel.theta, np.log(self.noise)) if self.free_noise else self.kernel.theta

    @property
    def bounds(self):
        """Least and largest values of the variables."""
        bounds = self.kernel.bounds
        bounds = np.vstack([bounds, np.log(self.noise_bounds)]) if self.free_noise else bounds
        return bounds[:, 0], bounds[:, 1]

    def at(self, variables):
        """Return the kernel and the noise that the variables stand for."""
        if self.free_noise:
            return self.kernel.with_theta(variables[:-1]), float(np.exp(variables[-1]))
        return self.kernel.with_theta(variables), self.noise

    def variables(self, kernel, noise):
        """Return the variables that stand for a kernel and a noise."""
        return np.append(kernel.theta, np.log(noise)) if self.free_noise else kernel.theta


def spread_of_columns(X, weight):
    """Return the standard deviation of each column, or, of a column that does not vary, that of the one that varies most."""
    largest = max(float(np.abs(X).max(initial=0.0)), 1e-300)
    share = weight / weight.sum()
    scaled = X / largest
    spread = np.sqrt(share @ (scaled - share @ scaled) ** 2)
    spread[spread <= 1e-12] = spread.max() if spread.max() > 1e-12 else 1.0  # 1e-12: a constant, but for rounding
    return spread * largest


def default_kernel(X, weight, variance, amplitudes=AMPLITUDES):
    """Return a constant times an RBF of one length scale for each column, in the units of the data."""
    lengths = spread_of_columns(X, weight) * np.sqrt(X.shape[1])
    low, high = LENGTHS
    bounds = tuple((float(low * length), float(high * length)) for length in lengths)
    size = Constant(float(variance), value_bounds=(amplitudes[0] * variance, amplitudes[1] * variance))
    return size * RBF([float(length) for length in lengths], length_scale_bounds=bounds)


def prior(kernel, noise, noise_bounds, data, target, *, through_points=False):
    """Settle what is given, and take the rest from the data."""
    variance = float((data.weight @ target**2 + data.scatter) / data.weight.sum())
    if not variance > (1e-12 * data.center) ** 2:  # targets that do not vary but for rounding
        variance = data.center**2 or 1.0
    free = isinstance(noise, str)
    given = 1.0 if np.ndim(noise) else None if free else float(noise)
    shares = NOISES_THROUGH_POINTS if through_points else NOISES
    bounds = tuple(float(b) for b in (noise_bounds or (share * variance for share in shares)))
    start = min(max(SHARE * variance, bounds[0]), bounds[1]) if free else given
    return Prior(default_kernel(data.X, data.weight, variance) if kernel is None else kernel, start, free, bounds)
