"""Every estimator can draw what it was fitted to, wherever the rows live."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from contracts.problems import ESTIMATORS, NAMES, problem
from lemmata import plot
from lemmata.linear_model import BayesianLinearRegression, Lasso, LinearRegression, LogisticRegression
from lemmata.plot.drawing import some_rows
from lemmata.plot.mixture import gaussians

estimators = pytest.mark.parametrize("cls", ESTIMATORS, ids=NAMES)


@estimators
def test_every_estimator_draws_its_problem(cls):
    task = problem(cls)
    model = task.fit()
    _, ax = plt.subplots()
    display = model.plot(task.X, task.y, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert type(display).__name__ in plot.__all__
    rows = "ClusterDisplay" if gaussians(model) is None else "MixtureDisplay"
    if hasattr(model, "transform") and not hasattr(model, "predict") and gaussians(model) is None:
        rows = "TopicWordsDisplay" if hasattr(model, "top_words") else "ScoresDisplay"
    rows = "RulesDisplay" if hasattr(model, "itemsets_") else rows
    rows = "StatesDisplay" if hasattr(model, "decode") else "NeighborGraphDisplay" if hasattr(model, "kneighbors") else rows
    boundary = "MarginDisplay" if hasattr(model, "decision_function_shape") else "BoundaryDisplay"
    tags = get_tags(model).input_tags
    boundary = "ConfusionMatrixDisplay" if tags.positive_only or tags.categorical else boundary
    expected = boundary if is_classifier(model) else "RegressionDisplay" if is_regressor(model) else rows
    assert type(display).__name__ == expected
    display.figure_.canvas.draw()


@estimators
def test_without_rows_there_is_the_fit_or_a_sentence(cls):
    task = problem(cls)
    with pytest.raises(NotFittedError):
        clone(task.model).plot()
    model = task.fit()
    if hasattr(model, "tree_"):
        assert model.plot().tree is model.tree_
    elif hasattr(model, "itemsets_"):
        assert isinstance(model.plot(), plot.RulesDisplay)
    elif hasattr(model, "train_errors_"):
        assert_array_equal(model.plot().curves["training"], model.train_errors_)
    elif hasattr(model, "train_score_"):
        assert_array_equal(model.plot().curves["training"], -model.train_score_)
    elif hasattr(model, "feature_importances_"):
        assert_array_equal(model.plot().gain, model.feature_importances_)
    elif hasattr(model, "explained_variance_ratio_"):
        assert_array_equal(model.plot().shares, model.explained_variance_ratio_)
    elif hasattr(model, "eigenvalues_"):
        assert_array_equal(model.plot().shares, model.eigenvalues_ / model.eigenvalues_.sum())
    elif hasattr(model, "loss_curve_"):
        assert_array_equal(model.plot().losses[cls.__name__], model.trace_)
    elif hasattr(model, "trace_"):
        assert_array_equal(model.plot().trace, model.trace_)
    else:
        call = r"plot\(X, y\)" if is_classifier(model) or is_regressor(model) else r"plot\(X\)"
        fit = "was found in one step, so there is no fit to follow|keeps no record of its fit to show"
        with pytest.raises(ValueError, match=f"^{cls.__name__} ({fit}): {call} shows what the model makes of rows"):
            model.plot()


def test_only_what_was_found_in_one_step_is_said_to_be():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.5, 1.8, 3.1, 4.2, 4.9])
    with pytest.raises(ValueError, match="LinearRegression was found in one step"):
        LinearRegression().fit(X, y).plot()
    with pytest.raises(ValueError, match="Lasso keeps no record of its fit"):  # which iterates
        Lasso().fit(X, y).plot()


def test_one_column_with_intervals_has_a_band():
    X, y = np.arange(6.0)[:, None], np.array([0.0, 1.5, 1.8, 3.1, 4.2, 4.9])
    assert isinstance(BayesianLinearRegression().fit(X, y).plot(X, y), plot.PredictiveBandDisplay)
    assert isinstance(LinearRegression().fit(X, y).plot(X, y), plot.RegressionDisplay)


def test_what_cannot_be_drawn_is_said():
    with pytest.raises(ValueError, match="give the targets y"):
        LinearRegression().fit([[0.0], [1.0]], [0.0, 1.0]).plot([[0.0], [1.0]])

    class Something(BaseEstimator):
        """Neither a classifier nor anything else that we know."""

    with pytest.raises(NotImplementedError, match="no display for Something"):
        plot.display_for(Something())


def test_the_picture_is_the_same_wherever_the_rows_live(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] + rng.logistic(size=60) > 0, "yes", "no")
    pq.write_table(pa.table({"b": X[:, 1], "a": X[:, 0], "c": X[:, 2], "kind": y}), tmp_path / "rows.parquet")
    frame = pa.table({"c": X[:, 2], "kind": y, "a": X[:, 0], "b": X[:, 1]}).to_pandas()
    model = LogisticRegression().fit(frame[["a", "b", "c"]], y)
    reference = model.plot(frame, y)  # columns are found by their names
    assert_allclose(np.abs(reference.points), np.abs(model.plot(X, y).points), rtol=1e-12)
    for other in (model.plot(tmp_path / "rows.parquet", "kind"), model.plot(csr_array(X), y)):
        assert_allclose(other.points, reference.points, atol=1e-12)
        assert_array_equal(other.labels, reference.labels)
        assert_array_equal(other.regions, reference.regions)


def test_rows_come_dense_with_their_targets_and_names():
    X, y = csr_array(np.eye(3)), ["a", "b", "c"]
    rows, targets, names = some_rows(None, X, y)
    assert_array_equal(rows, np.eye(3))
    assert list(targets) == y
    assert names == ["x0", "x1", "x2"]
    assert some_rows(None, np.zeros((20, 2)), most=7)[0].shape == (7, 2)
