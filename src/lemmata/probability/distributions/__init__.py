"""Distributions with one small interface: density, distribution function, moments, draws, maximum likelihood, certificate."""

from lemmata.probability.distributions.base import Distribution
from lemmata.probability.distributions.bernoulli import Bernoulli, Binomial
from lemmata.probability.distributions.beta import Beta
from lemmata.probability.distributions.categorical import Categorical
from lemmata.probability.distributions.dirichlet import Dirichlet
from lemmata.probability.distributions.exponential import Exponential
from lemmata.probability.distributions.gamma import Gamma
from lemmata.probability.distributions.logistic import LogisticDistribution
from lemmata.probability.distributions.mixture import Mixture
from lemmata.probability.distributions.multivariate_normal import MultivariateNormal
from lemmata.probability.distributions.normal import Normal

__all__ = [
    "Distribution",
    "Normal",
    "MultivariateNormal",
    "LogisticDistribution",
    "Exponential",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Dirichlet",
    "Beta",
    "Gamma",
    "Mixture",
]
