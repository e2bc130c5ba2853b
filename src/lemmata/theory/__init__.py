"""Learning theory that can be called: guarantees on fitted models, hypothesis classes, sample sizes, experiments.

The formulas of the bounds, to be called with numbers, are in `lemmata.theory.bounds`.
"""

from lemmata.theory.bias_variance import bias_variance
from lemmata.theory.classes.few_points import AtMostNPoints
from lemmata.theory.classes.finite_class import FiniteClass
from lemmata.theory.classes.halfspaces import Halfspaces, HomogeneousHalfspaces
from lemmata.theory.classes.oracle import Oracle
from lemmata.theory.classes.radon import radon_partition
from lemmata.theory.classes.real_line import Intervals, Thresholds
from lemmata.theory.classes.rectangles import Rectangles
from lemmata.theory.classes.sauer import (
    count_shattered_subsets,
    half_space_dichotomies,
    sauer_bound,
    sauer_exponential,
    sauer_polynomial,
)
from lemmata.theory.classes.vc_dimension import vc_dimension
from lemmata.theory.guarantees.bound import Bound, Guarantee
from lemmata.theory.guarantees.guarantee import guarantee
from lemmata.theory.learnability import (
    Hierarchy,
    learnability_report,
    pac_lower_bound,
    simultaneous_coverage,
    srm_penalty,
    srm_weights,
)
from lemmata.theory.no_free_lunch import memorizer, no_free_lunch
from lemmata.theory.pac_harness import adversarial_bank, erm_failure_probability, misled_probability, pac_experiment
from lemmata.theory.perceptron_bound import perceptron_bound
from lemmata.theory.risk import FiniteDistribution, empirical_risk, expected_empirical_risk, minimizers, true_risk
from lemmata.theory.sample_size import delta, epsilon, sample_complexity, sample_size, uc_to_agnostic
from lemmata.theory.structural_risk import EstimatorClass, StructuralRiskMinimizer, structural_risk_minimization
from lemmata.theory.uniform_convergence import (
    LineDistribution,
    excess_risk_bound,
    is_representative,
    representativeness,
    uniform_convergence_experiment,
)

__all__ = [
    "guarantee",
    "Guarantee",
    "Bound",
    "StructuralRiskMinimizer",
    "Thresholds",
    "Intervals",
    "Rectangles",
    "Halfspaces",
    "HomogeneousHalfspaces",
    "AtMostNPoints",
    "FiniteClass",
    "Oracle",
    "vc_dimension",
    "radon_partition",
    "sauer_bound",
    "sauer_exponential",
    "sauer_polynomial",
    "half_space_dichotomies",
    "count_shattered_subsets",
    "sample_size",
    "epsilon",
    "delta",
    "sample_complexity",
    "uc_to_agnostic",
    "FiniteDistribution",
    "LineDistribution",
    "true_risk",
    "empirical_risk",
    "expected_empirical_risk",
    "minimizers",
    "misled_probability",
    "erm_failure_probability",
    "adversarial_bank",
    "pac_experiment",
    "representativeness",
    "is_representative",
    "excess_risk_bound",
    "uniform_convergence_experiment",
    "no_free_lunch",
    "memorizer",
    "learnability_report",
    "pac_lower_bound",
    "Hierarchy",
    "srm_weights",
    "srm_penalty",
    "simultaneous_coverage",
    "structural_risk_minimization",
    "EstimatorClass",
    "perceptron_bound",
    "bias_variance",
]
