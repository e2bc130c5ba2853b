"""Classes that are Gaussians: linear and quadratic discriminants."""

from lemmata.discriminant_analysis.gaussian_bayes import GaussianBayes
from lemmata.discriminant_analysis.linear import LinearDiscriminantAnalysis
from lemmata.discriminant_analysis.quadratic import QuadraticDiscriminantAnalysis

__all__ = ["GaussianBayes", "LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"]
