"""Plots in scikit-learn's convention: `SomeDisplay.from_estimator(model, X, y)` draws and keeps `ax_` and `figure_`."""

from lemmata.plot.band import PredictiveBandDisplay
from lemmata.plot.boosting import BoostingDisplay
from lemmata.plot.bootstrap import BootstrapDisplay
from lemmata.plot.bound_curve import BoundCurveDisplay
from lemmata.plot.boundary import BoundaryDisplay
from lemmata.plot.certificate import CertificateDisplay
from lemmata.plot.chain import RankingDisplay, TransitionGraphDisplay
from lemmata.plot.chains import AutocorrelationDisplay, ChainsDisplay
from lemmata.plot.choice import display_for
from lemmata.plot.class_gaussians import ClassGaussiansDisplay
from lemmata.plot.cluster import ClusterDisplay
from lemmata.plot.confusion import ConfusionMatrixDisplay
from lemmata.plot.cost_curve import CostCurveDisplay
from lemmata.plot.decision_region import DecisionRegionDisplay
from lemmata.plot.elbo import ElboDisplay
from lemmata.plot.elbow import ElbowDisplay
from lemmata.plot.evidence import EvidenceDisplay
from lemmata.plot.generated import GeneratedDisplay
from lemmata.plot.grid_world import GridWorldDisplay
from lemmata.plot.growth import GrowthDisplay
from lemmata.plot.guarantee import GuaranteeDisplay
from lemmata.plot.importance import ImportanceDisplay
from lemmata.plot.junction_tree import JunctionTreeDisplay
from lemmata.plot.kernel_matrix import KernelMatrixDisplay
from lemmata.plot.learning_curve import LearningCurveDisplay
from lemmata.plot.loadings import FactorImagesDisplay, LoadingsDisplay
from lemmata.plot.margin import MarginDisplay
from lemmata.plot.marginals import MarginalsDisplay
from lemmata.plot.missing import MissingPatternDisplay
from lemmata.plot.mixture import MixtureDisplay
from lemmata.plot.neighbor_graph import NeighborGraphDisplay
from lemmata.plot.network import NetworkDisplay
from lemmata.plot.order_curve import OrderCurveDisplay
from lemmata.plot.partial_dependence import PartialDependenceDisplay
from lemmata.plot.path import CoefficientPathDisplay
from lemmata.plot.posterior import PosteriorDisplay
from lemmata.plot.rank_curve import RankCurveDisplay
from lemmata.plot.ranks import CalibrationDisplay, RankDisplay
from lemmata.plot.ratings import RatingResidualsDisplay
from lemmata.plot.regression import RegressionDisplay
from lemmata.plot.returns import ReturnsDisplay
from lemmata.plot.rule_network import RuleNetworkDisplay
from lemmata.plot.rules import RulesDisplay
from lemmata.plot.scores import ScoresDisplay
from lemmata.plot.scree import ScreeDisplay
from lemmata.plot.silhouette import SilhouetteDisplay
from lemmata.plot.state_space import StateSpaceDisplay
from lemmata.plot.states import StatesDisplay
from lemmata.plot.topics import TopicWordsDisplay
from lemmata.plot.trace import TraceDisplay
from lemmata.plot.training import TrainingCurveDisplay
from lemmata.plot.tree import TreeDisplay
from lemmata.plot.tube import TubeDisplay
from lemmata.plot.validation_curve import ValidationCurveDisplay

__all__ = [
    "AutocorrelationDisplay",
    "BoostingDisplay",
    "BootstrapDisplay",
    "BoundCurveDisplay",
    "BoundaryDisplay",
    "CalibrationDisplay",
    "CertificateDisplay",
    "ChainsDisplay",
    "ClassGaussiansDisplay",
    "ClusterDisplay",
    "CoefficientPathDisplay",
    "ConfusionMatrixDisplay",
    "CostCurveDisplay",
    "DecisionRegionDisplay",
    "ElboDisplay",
    "ElbowDisplay",
    "EvidenceDisplay",
    "FactorImagesDisplay",
    "GeneratedDisplay",
    "GridWorldDisplay",
    "GrowthDisplay",
    "GuaranteeDisplay",
    "ImportanceDisplay",
    "JunctionTreeDisplay",
    "KernelMatrixDisplay",
    "LearningCurveDisplay",
    "LoadingsDisplay",
    "MarginDisplay",
    "MarginalsDisplay",
    "MissingPatternDisplay",
    "MixtureDisplay",
    "NeighborGraphDisplay",
    "NetworkDisplay",
    "OrderCurveDisplay",
    "PartialDependenceDisplay",
    "PosteriorDisplay",
    "PredictiveBandDisplay",
    "RankCurveDisplay",
    "RankDisplay",
    "RankingDisplay",
    "RatingResidualsDisplay",
    "RegressionDisplay",
    "ReturnsDisplay",
    "RuleNetworkDisplay",
    "RulesDisplay",
    "ScoresDisplay",
    "ScreeDisplay",
    "SilhouetteDisplay",
    "StateSpaceDisplay",
    "StatesDisplay",
    "TopicWordsDisplay",
    "TraceDisplay",
    "TransitionGraphDisplay",
    "TrainingCurveDisplay",
    "TreeDisplay",
    "TubeDisplay",
    "ValidationCurveDisplay",
    "display_for",
]
