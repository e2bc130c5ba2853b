"""Plots in scikit-learn's convention: `SomeDisplay.from_estimator(model, X, y)` draws and keeps `ax_` and `figure_`."""

from lemmata.plot.band import PredictiveBandDisplay
from lemmata.plot.boundary import BoundaryDisplay
from lemmata.plot.certificate import CertificateDisplay
from lemmata.plot.choice import display_for
from lemmata.plot.cluster import ClusterDisplay
from lemmata.plot.path import CoefficientPathDisplay
from lemmata.plot.regression import RegressionDisplay
from lemmata.plot.trace import TraceDisplay

__all__ = [
    "BoundaryDisplay",
    "CertificateDisplay",
    "ClusterDisplay",
    "CoefficientPathDisplay",
    "PredictiveBandDisplay",
    "RegressionDisplay",
    "TraceDisplay",
    "display_for",
]
