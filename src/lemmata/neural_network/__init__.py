"""Neural networks of dense layers: forward, back-propagation, and classifiers and regressors trained by mini-batches."""

from lemmata.neural_network.classifier import MLPClassifier
from lemmata.neural_network.network import Network, gradient_check
from lemmata.neural_network.regressor import MLPRegressor

__all__ = ["Network", "gradient_check", "MLPClassifier", "MLPRegressor"]
