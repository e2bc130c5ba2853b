"""What a model makes of series: results with names. For an array of many series, every array has a first axis of series."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2, norm


class Whiteness(NamedTuple):
    """Autocorrelations of innovations (lags × outputs), and for each output Ljung and Box's statistic and its p-value."""

    autocorrelation: np.ndarray
    statistic: np.ndarray
    p_value: np.ndarray


@dataclass(frozen=True)
class Filtered:
    """States given the rows up to theirs.

    Parameters
    ----------
    mean, covariance : Law of the state of each row given it and the rows before: (rows, n) and (rows, n, n).
    predicted_mean, predicted_covariance : The same given only the rows before.
    whitened : (rows, p) Innovations over their scales, each given those before, even in its own row: independent standard
        normal numbers if the model is right; NaN where missing.
    log_likelihood : Of all rows.
    """

    mean: np.ndarray
    covariance: np.ndarray
    predicted_mean: np.ndarray
    predicted_covariance: np.ndarray
    whitened: np.ndarray
    log_likelihood: float | np.ndarray

    def whiteness(self, n_lags=10):
        """Test whether the innovations of one series are white, as they are if the model is right (Ljung & Box 1978).

        A small p-value speaks against the model. Pairs with a missing entry are left out.
        """
        if self.whitened.ndim != 2 or len(self.whitened) <= n_lags + 1:
            raise ValueError(f"whiteness looks at one series of more than {n_lags + 1} rows; take one, or fewer lags.")
        seen = ~np.isnan(self.whitened)
        n = seen.sum(axis=0)
        z = np.where(seen, self.whitened - np.nansum(self.whitened, axis=0) / np.maximum(n, 1), 0.0)
        spread = (z * z).sum(axis=0)
        correlation = np.array([(z[lag:] * z[:-lag]).sum(axis=0) for lag in range(1, n_lags + 1)]) / spread
        statistic = n * (n + 2) * (correlation**2 / (n - np.arange(1, n_lags + 1)[:, None])).sum(axis=0)
        return Whiteness(correlation, statistic, chi2.sf(statistic, n_lags))


@dataclass(frozen=True)
class Smoothed:
    """States given all rows of their series.

    Parameters
    ----------
    mean, covariance : Law of the state of each row: (rows, n) and (rows, n, n).
    lag_one_covariance : (rows, n, n) Covariance of the state of each row with the one before it, which for the first row is the
        initial state.
    initial_mean, initial_covariance : Law of the initial state.
    log_likelihood : Of all rows.
    """

    mean: np.ndarray
    covariance: np.ndarray
    lag_one_covariance: np.ndarray
    initial_mean: np.ndarray
    initial_covariance: np.ndarray
    log_likelihood: float | np.ndarray


@dataclass(frozen=True)
class Forecast:
    """What comes after the last row.

    Parameters
    ----------
    mean, covariance : Law of each coming observation: (steps, p) and (steps, p, p).
    state_mean, state_covariance : Law of each coming state.
    """

    mean: np.ndarray
    covariance: np.ndarray
    state_mean: np.ndarray
    state_covariance: np.ndarray

    def interval(self, level=0.9):
        """Give ends (steps, p, 2) between which each coming number lies with this probability."""
        if not 0 < level < 1:
            raise ValueError(f"level must be a probability between 0 and 1, got {level}.")
        reach = norm.ppf((1 + level) / 2) * np.sqrt(np.diagonal(self.covariance, axis1=-2, axis2=-1))
        return np.stack([self.mean - reach, self.mean + reach], axis=-1)
