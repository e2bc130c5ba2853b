"""Linear Gaussian state-space models: Kalman's filter, the smoother, and EM."""

from lemmata.state_space.linear_gaussian import LinearGaussianModel

__all__ = ["LinearGaussianModel"]
