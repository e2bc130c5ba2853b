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
from lemmata.model_selection.validation_curve import ValidationCurve, validation_curve

__all__ = [
    "Bootstrap",
    "bootstrap_error",
    "BootstrapError",
    "BootstrapScorer",
    "BootstrapSplit",
    "cross_validate",
    "CrossValidation",
    "exact_bootstrap",
    "ExactBootstrap",
    "information_criteria",
    "InformationCriteria",
    "laplace_evidence",
    "learning_curve",
    "LearningCurve",
    "ResubstitutionSplit",
    "validation_curve",
    "ValidationCurve",
]
