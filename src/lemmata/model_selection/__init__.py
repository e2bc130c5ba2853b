"""Choosing models: cross-validation, the bootstrap, information criteria, the order of a model."""

from lemmata.model_selection.bootstrap import Bootstrap
from lemmata.model_selection.bootstrap_error import BootstrapError, bootstrap_error
from lemmata.model_selection.bootstrap_exact import ExactBootstrap, exact_bootstrap
from lemmata.model_selection.bootstrap_scorer import BootstrapScorer
from lemmata.model_selection.bootstrap_split import BootstrapSplit, ResubstitutionSplit
from lemmata.model_selection.criteria import InformationCriteria, information_criteria
from lemmata.model_selection.cross_validation import CrossValidation, cross_validate
from lemmata.model_selection.evidence import laplace_evidence
from lemmata.model_selection.learning_curve import LearningCurve, learning_curve
from lemmata.model_selection.one_standard_error import one_standard_error
from lemmata.model_selection.order_curve import OrderCurve
from lemmata.model_selection.select_order import select_order
from lemmata.model_selection.stability import Stability, stability
from lemmata.model_selection.stability_selection import StabilitySelection, stability_selection
from lemmata.model_selection.validation_curve import ValidationCurve, validation_curve

__all__ = [
    "Bootstrap",
    "BootstrapError",
    "BootstrapScorer",
    "BootstrapSplit",
    "CrossValidation",
    "ExactBootstrap",
    "InformationCriteria",
    "LearningCurve",
    "OrderCurve",
    "ResubstitutionSplit",
    "Stability",
    "StabilitySelection",
    "ValidationCurve",
    "bootstrap_error",
    "cross_validate",
    "exact_bootstrap",
    "information_criteria",
    "laplace_evidence",
    "learning_curve",
    "one_standard_error",
    "select_order",
    "stability",
    "stability_selection",
    "validation_curve",
]
