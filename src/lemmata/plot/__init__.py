"""Plots in scikit-learn's convention: `SomeDisplay.from_estimator(model, X, y)` draws and keeps `ax_` and `figure_`."""

from lemmata.plot.certificate import CertificateDisplay
from lemmata.plot.cluster import ClusterDisplay
from lemmata.plot.regression import RegressionDisplay

__all__ = ["CertificateDisplay", "ClusterDisplay", "RegressionDisplay"]
