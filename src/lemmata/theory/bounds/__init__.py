"""The formulas of the bounds, as functions of counts, means, margins and divergences.

Each returns an upper bound on a risk that fails with probability at most delta, if its premises hold; whether they do for a
model is what `lemmata.theory.guarantee` finds out.

>>> clopper_pearson(errors=5, n=100, delta=0.05)
0.102253
"""

from lemmata.theory.bounds.compression import (
    campi_garatti_bound,
    compression_bound,
    graepel_bound,
    stable_compression_bound,
    support_vector_expectation,
)
from lemmata.theory.bounds.growth import (
    log_argmax_linear,
    log_boosted_stumps,
    log_catalan,
    log_cover,
    log_naive_bayes,
    log_polynomials,
    log_quadratic,
    log_sauer,
    log_stumps,
    log_trees,
    stump_vc_dimension,
)
from lemmata.theory.bounds.holdout import (
    bentkus_bound,
    betting_bound,
    clopper_pearson,
    clopper_pearson_interval,
    cross_validation_bound,
    empirical_bernstein_bound,
    hoeffding_bound,
    kl_bound,
    progressive_bound,
    progressive_exponential_bound,
)
from lemmata.theory.bounds.margins import (
    boosting_margin_bound,
    empirical_rademacher,
    linear_rademacher,
    margin_bound,
    margin_bound_known_radius,
    ramp,
)
from lemmata.theory.bounds.occam import excess_bound, finite_class_bound, occam_bound, realizable_bound, tree_code_length
from lemmata.theory.bounds.pac_bayes import (
    c_bound,
    catoni_bound,
    first_order_bound,
    gaussian_divergence,
    gibbs_risk,
    lambda_bound,
    langford_bound,
    mcallester_bound,
    seeger_bound,
    tandem_bound,
)
from lemmata.theory.bounds.regression_bounds import (
    clipped_loss_bound,
    dkw_margin,
    exceedance_bound,
    quantile_rank,
    rademacher_regression_bound,
)
from lemmata.theory.bounds.stability import hinge_stability, nearest_neighbor_bound, ridge_stability, stability_bound
from lemmata.theory.bounds.tails import binomial_upper, kl_lower, kl_upper, pac_bayes_constant
from lemmata.theory.bounds.uniform import (
    devroye_bound,
    hypergeometric_bound,
    realizable_vc_bound,
    relative_bound,
    vapnik_bound,
    vc_bound,
)

__all__ = [
    "clopper_pearson",
    "clopper_pearson_interval",
    "kl_bound",
    "hoeffding_bound",
    "bentkus_bound",
    "empirical_bernstein_bound",
    "betting_bound",
    "progressive_bound",
    "progressive_exponential_bound",
    "cross_validation_bound",
    "realizable_bound",
    "finite_class_bound",
    "excess_bound",
    "occam_bound",
    "tree_code_length",
    "hypergeometric_bound",
    "vc_bound",
    "vapnik_bound",
    "devroye_bound",
    "relative_bound",
    "realizable_vc_bound",
    "log_sauer",
    "log_cover",
    "log_argmax_linear",
    "log_polynomials",
    "log_naive_bayes",
    "log_quadratic",
    "log_stumps",
    "stump_vc_dimension",
    "log_trees",
    "log_catalan",
    "log_boosted_stumps",
    "ramp",
    "margin_bound",
    "margin_bound_known_radius",
    "boosting_margin_bound",
    "empirical_rademacher",
    "linear_rademacher",
    "compression_bound",
    "graepel_bound",
    "stable_compression_bound",
    "campi_garatti_bound",
    "support_vector_expectation",
    "seeger_bound",
    "mcallester_bound",
    "lambda_bound",
    "catoni_bound",
    "langford_bound",
    "gaussian_divergence",
    "gibbs_risk",
    "first_order_bound",
    "tandem_bound",
    "c_bound",
    "stability_bound",
    "hinge_stability",
    "ridge_stability",
    "nearest_neighbor_bound",
    "exceedance_bound",
    "dkw_margin",
    "quantile_rank",
    "clipped_loss_bound",
    "rademacher_regression_bound",
    "binomial_upper",
    "kl_upper",
    "kl_lower",
    "pac_bayes_constant",
]
