"""Neural networks of dense layers: forward, back-propagation, and classifiers and regressors trained by mini-batches."""

from lemmata.neural_network.network import Network, gradient_check

__all__ = ["Network", "gradient_check"]
