"""Mixtures and other models with hidden variables, fitted by one EM engine."""

from lemmata.mixture.bound import decomposition, elbo
from lemmata.mixture.em import LatentModel, em
from lemmata.mixture.gaussian_mixture import GaussianMixture

__all__ = ["GaussianMixture", "LatentModel", "decomposition", "elbo", "em"]
