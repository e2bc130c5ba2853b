"""What a normal posterior of a function predicts: means, deviations, intervals, laws, and whole functions."""

import numpy as np
from scipy.stats import norm
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.gaussian_process.search import plain_block


class NormalPredictions:
    """Mixin of a regressor with `_posterior`, which gives mean, variance and covariance of f at rows."""

    def _rows(self, X):
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        return np.asarray(blocks.map(plain_block)), blocks.dtype

    def _noise(self, of):
        """Return what the noise adds to the variance of what is asked for."""
        if of not in ("y", "f"):
            raise ValueError(f"Predictions are of 'y' or of 'f', got {of!r}.")
        if of == "f":
            return 0.0
        if np.ndim(self.noise):
            raise ValueError("The noise was given row by row, so that of new rows is not known: ask for predictions of='f'.")
        return self.noise_

    def predict(self, X, return_std=False, return_cov=False, *, of="y"):
        """Predict the mean for each row, and, if asked for, its standard deviation or the covariance of all rows.

        Parameters
        ----------
        of : What the deviation and the covariance are of: "y", noise included, or the function "f". The mean is the same.
        """
        if return_std and return_cov:
            raise ValueError(
                "Ask for the standard deviation or for the covariance: its diagonal has the squares of the former."
            )
        posterior, (rows, dtype) = self._posterior(), self._rows(X)
        mean = as_output(self.y_mean_ + posterior.mean(rows), dtype)
        if return_std:
            return mean, as_output(np.sqrt(posterior.variance(rows) + self._noise(of)), dtype)
        if return_cov:
            covariance = posterior.covariance(rows)
            covariance.flat[:: len(rows) + 1] += self._noise(of)
            return mean, as_output(covariance, dtype)
        return mean

    def predict_dist(self, X, *, of="y"):
        """Give the posterior predictive distribution of y (or of f) for each row, as a frozen `scipy.stats.norm`."""
        mean, deviation = self.predict(X, return_std=True, of=of)
        return norm(mean, deviation)

    def predict_interval(self, X, level=0.9, *, of="y"):
        """Give the central interval that holds y (or f) with this probability: (n_rows, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        mean, deviation = self.predict(X, return_std=True, of=of)
        reach = deviation * mean.dtype.type(norm.ppf((1 + level) / 2))
        return np.column_stack([mean - reach, mean + reach])

    def sample(self, X, n=1, random_state=None, *, of="f"):
        """Draw n functions from the posterior, at these rows: (n, n_rows); of="y" adds noise."""
        posterior, (rows, _) = self._posterior(), self._rows(X)
        rng, noise = generator(random_state), self._noise(of)
        with serial_blas():
            values, vectors = np.linalg.eigh(posterior.covariance(rows))
            # The covariance may be singular; eigenvalues below zero are rounding.
            draws = rng.standard_normal((n, len(rows))) * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
        return self.y_mean_ + posterior.mean(rows) + draws + np.sqrt(noise) * rng.standard_normal(draws.shape)
