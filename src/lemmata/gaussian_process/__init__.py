"""Gaussian processes: distributions over functions, conditioned on what was seen."""

from lemmata.gaussian_process.classifier import GaussianProcessClassifier
from lemmata.gaussian_process.regressor import GaussianProcessRegressor

__all__ = ["GaussianProcessClassifier", "GaussianProcessRegressor"]
