"""Mixtures and other models with hidden variables, fitted by one EM engine."""

from lemmata.mixture.ascent import Ascent, maximize_likelihood
from lemmata.mixture.bernoulli_mixture import BernoulliMixture
from lemmata.mixture.binomial_mixture import BinomialMixture
from lemmata.mixture.bound import decomposition, elbo
from lemmata.mixture.categorical_mixture import CategoricalMixture
from lemmata.mixture.dirichlet_process_mixture import DirichletProcessMixture
from lemmata.mixture.em import LatentModel, em
from lemmata.mixture.gaussian_mixture import GaussianMixture
from lemmata.mixture.gibbs_mixture import GibbsMixture
from lemmata.mixture.information import StandardErrors, likelihood_gradient, observed_information, standard_errors
from lemmata.mixture.missing_gaussian import MissingGaussian
from lemmata.mixture.stochastic_em import StochasticEM

__all__ = [
    "Ascent",
    "BernoulliMixture",
    "BinomialMixture",
    "CategoricalMixture",
    "DirichletProcessMixture",
    "GaussianMixture",
    "GibbsMixture",
    "LatentModel",
    "MissingGaussian",
    "StandardErrors",
    "StochasticEM",
    "decomposition",
    "elbo",
    "em",
    "likelihood_gradient",
    "maximize_likelihood",
    "observed_information",
    "standard_errors",
]
