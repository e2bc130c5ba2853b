"""Probability: distributions with one small interface, conjugate updates, finite tables, information, concentration."""

from lemmata.probability.checks import check_distribution, check_maximum_entropy
from lemmata.probability.concentration import (
    bennett,
    bernstein,
    cantelli,
    chebyshev,
    hoeffding,
    markov,
    mcdiarmid,
    union_bound,
)
from lemmata.probability.conjugate import check_posterior, log_evidence, posterior
from lemmata.probability.convexity import convexity_test, jensen_gap, least_curvature
from lemmata.probability.distributions import (
    Bernoulli,
    Beta,
    Binomial,
    Categorical,
    Dirichlet,
    Exponential,
    Gamma,
    LogisticDistribution,
    Mixture,
    MultivariateNormal,
    Normal,
)
from lemmata.probability.grid import GridPosterior, bayes_update
from lemmata.probability.huffman import huffman_code
from lemmata.probability.information import (
    conditional_entropy,
    cross_entropy,
    differential_entropy,
    entropy,
    joint_entropy,
    js_divergence,
    kl_divergence,
    l1_distance,
    mutual_information,
    symmetric_kl,
    total_variation,
)
from lemmata.probability.information_of_samples import (
    differential_entropy_of_points,
    entropy_of_labels,
    mutual_information_of_labels,
    mutual_information_of_points,
)
from lemmata.probability.inverse_cdf import inverse_cdf_sample
from lemmata.probability.smoothing import smooth
from lemmata.probability.tables import JointTable, total_probability

__all__ = [
    "Normal",
    "MultivariateNormal",
    "LogisticDistribution",
    "Exponential",
    "Gamma",
    "Beta",
    "Dirichlet",
    "Bernoulli",
    "Binomial",
    "Categorical",
    "Mixture",
    "check_distribution",
    "check_maximum_entropy",
    "posterior",
    "log_evidence",
    "check_posterior",
    "bayes_update",
    "GridPosterior",
    "JointTable",
    "total_probability",
    "smooth",
    "inverse_cdf_sample",
    "entropy",
    "joint_entropy",
    "conditional_entropy",
    "differential_entropy",
    "mutual_information",
    "cross_entropy",
    "kl_divergence",
    "symmetric_kl",
    "js_divergence",
    "l1_distance",
    "total_variation",
    "entropy_of_labels",
    "mutual_information_of_labels",
    "differential_entropy_of_points",
    "mutual_information_of_points",
    "huffman_code",
    "markov",
    "chebyshev",
    "cantelli",
    "hoeffding",
    "bernstein",
    "bennett",
    "mcdiarmid",
    "union_bound",
    "jensen_gap",
    "convexity_test",
    "least_curvature",
]
