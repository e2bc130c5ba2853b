"""Which display suits an estimator: what `Estimator.plot` asks."""

from typing import Any

from sklearn.base import is_classifier, is_clusterer, is_regressor
from sklearn.utils import get_tags

from lemmata.plot.band import PredictiveBandDisplay
from lemmata.plot.boosting import BoostingDisplay
from lemmata.plot.boundary import BoundaryDisplay, takes_actions
from lemmata.plot.class_gaussians import ClassGaussiansDisplay, class_gaussians
from lemmata.plot.cluster import ClusterDisplay
from lemmata.plot.confusion import ConfusionMatrixDisplay
from lemmata.plot.decision_region import DecisionRegionDisplay
from lemmata.plot.importance import ImportanceDisplay
from lemmata.plot.kernel_matrix import KernelMatrixDisplay
from lemmata.plot.margin import MarginDisplay
from lemmata.plot.mixture import MixtureDisplay, gaussians
from lemmata.plot.neighbor_graph import NeighborGraphDisplay
from lemmata.plot.network import NetworkDisplay
from lemmata.plot.ratings import RatingResidualsDisplay
from lemmata.plot.regression import RegressionDisplay
from lemmata.plot.returns import ReturnsDisplay
from lemmata.plot.rules import RulesDisplay
from lemmata.plot.scores import ScoresDisplay
from lemmata.plot.scree import ScreeDisplay
from lemmata.plot.states import StatesDisplay
from lemmata.plot.topics import TopicWordsDisplay
from lemmata.plot.trace import TraceDisplay
from lemmata.plot.training import TrainingCurveDisplay
from lemmata.plot.tree import TreeDisplay
from lemmata.plot.tube import TubeDisplay


def display_for(estimator: Any, rows: bool = True) -> Any:
    """Choose the display of a fitted estimator by what it is and what it can do.

    A classifier has its boundary, with the margins if it has support vectors, the ellipses of Gaussian classes on two
    columns, or the regions of its actions if it decides by costs; a clusterer has its clusters, a mixture of Gaussians its
    components, and a hidden Markov model its states. Of one column, a regressor with `predict_interval` has its band, and
    one with support vectors its tube; any other regressor has observed against predicted values. A classifier whose rows
    are a kernel matrix has that, a search for neighbors has lines to them, and a Bayes net has its graph, with rows or
    without. A topic model has the words of its topics, a recommender the errors of its ratings, and any other transformer
    the rows by their new coordinates. Rows with categories lie on no plane: a classifier of these has its tree drawn, or
    shows which columns matter. Nor do counts and codes: a classifier of these shows which classes it takes for which.
    An agent has what it earned, episode by episode, and a search for frequent sets has its rules. Without rows, a tree is
    drawn, boosting has its loss round by round, a forest has the gains of its columns, principal components have their
    shares of the variance, a network has its loss epoch by epoch, and others have the trace of a fit that iterated.

    Parameters
    ----------
    rows : Whether there are rows to show.

    Returns
    -------
    display : Class with a method `from_estimator(estimator, X, y, ax=None)`.

    Examples
    --------
    >>> from lemmata.linear_model import BayesianLinearRegression, Ridge
    >>> X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]
    >>> display_for(Ridge().fit(X, y)).__name__, display_for(BayesianLinearRegression().fit(X, y)).__name__
    ('RegressionDisplay', 'PredictiveBandDisplay')
    """
    if hasattr(estimator, "junction_tree"):
        return NetworkDisplay
    if hasattr(estimator, "returns_"):
        return ReturnsDisplay
    if hasattr(estimator, "itemsets_"):
        return RulesDisplay
    if not rows:
        return _of_fit(estimator)
    if hasattr(estimator, "decode"):
        return StatesDisplay
    if hasattr(estimator, "top_words"):
        return TopicWordsDisplay
    if hasattr(estimator, "recommend"):
        return RatingResidualsDisplay
    if is_clusterer(estimator) or get_tags(estimator).estimator_type == "density_estimator":
        if gaussians(estimator) is not None:
            return MixtureDisplay
        return ClusterDisplay if hasattr(estimator, "predict") else ScoresDisplay
    vectors, plane = hasattr(estimator, "support_vectors_"), getattr(estimator, "is_categorical_", None) is None
    if is_classifier(estimator):
        if not lies_on_plane(estimator):
            return ConfusionMatrixDisplay
        if not plane:
            return TreeDisplay if _is_tree(estimator) else ImportanceDisplay
        machine = vectors and hasattr(estimator, "decision_function_shape")  # of the machines with margins only
        if machine and get_tags(estimator).input_tags.pairwise:
            return KernelMatrixDisplay
        ellipses = getattr(estimator, "n_features_in_", 0) == 2 and class_gaussians(estimator) is not None
        boundary = MarginDisplay if machine else ClassGaussiansDisplay if ellipses else BoundaryDisplay
        return DecisionRegionDisplay if takes_actions(estimator) else boundary
    if is_regressor(estimator):
        one = plane and getattr(estimator, "n_features_in_", 0) == 1
        if one and hasattr(estimator, "predict_interval"):
            return PredictiveBandDisplay
        return TubeDisplay if one and vectors and hasattr(estimator, "epsilon") else RegressionDisplay
    if hasattr(estimator, "kneighbors"):
        return NeighborGraphDisplay
    if hasattr(estimator, "transform"):
        return ScoresDisplay
    kinds = "classifier, regressor, clusterer or transformer"
    raise NotImplementedError(f"There is no display for {type(estimator).__name__}, which is no {kinds}.")


def lies_on_plane(estimator: Any) -> bool:
    """Tell whether a model takes rows with any numbers, as the points of a plane have; counts and codes are whole.

    >>> from lemmata.naive_bayes import GaussianNB, MultinomialNB
    >>> lies_on_plane(GaussianNB()), lies_on_plane(MultinomialNB())
    (True, False)
    """
    tags = get_tags(estimator).input_tags
    return not (tags.positive_only or tags.categorical)


def _is_tree(estimator: Any) -> bool:
    return hasattr(getattr(estimator, "tree_", None), "children_left")


def _of_fit(estimator: Any) -> Any:
    """Choose what shows a fit without its rows."""
    if _is_tree(estimator):
        return TreeDisplay
    if hasattr(estimator, "estimator_errors_") or hasattr(estimator, "train_score_"):
        return BoostingDisplay
    if hasattr(estimator, "feature_importances_"):
        return ImportanceDisplay
    if hasattr(estimator, "explained_variance_ratio_") or hasattr(estimator, "eigenvalues_"):
        return ScreeDisplay
    if hasattr(estimator, "loss_curve_"):
        return TrainingCurveDisplay
    if hasattr(estimator, "trace_"):
        return TraceDisplay
    call = "plot(X, y)" if is_classifier(estimator) or is_regressor(estimator) else "plot(X)"
    iterated = hasattr(estimator, "n_iter_") or {"max_iter", "estimator"} & set(estimator.get_params())
    told = "keeps no record of its fit to show" if iterated else "was found in one step, so there is no fit to follow"
    raise ValueError(f"{type(estimator).__name__} {told}: {call} shows what the model makes of rows.")
