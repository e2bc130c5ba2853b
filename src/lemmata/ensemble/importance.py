"""Importance of columns, for any fitted model: what it loses without one, and what it makes of one.

Permutation importance of a column is the drop of a score when the column's values are dealt out anew among the rows: the
column keeps its distribution and loses its link to the target and to the other columns [1]. The mean over several
permutations has a standard error. A column that no tree of an ensemble asks about has importance zero exactly, and is not
permuted at all. Measured on rows of the fit, a column in which the model has memorized noise looks important: use held-out
rows. Of two columns that say the same, each seems to matter little, because the other stays.

Partial dependence is the mean prediction with the column set to one value in all rows, as a function of the value [2].

[1] Breiman, Machine Learning 45 (2001); Fisher, Rudin & Dominici, JMLR 20 (2019). [2] Friedman, Annals of Statistics 29 (2001).
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.stats.mstats import mquantiles
from sklearn.base import is_classifier
from sklearn.metrics import get_scorer
from sklearn.utils.validation import check_is_fitted

from lemmata.core.random import generator
from lemmata.tree.nodes import Trees

GRID = 100  # values of a grid, as in scikit-learn
OF_TREES = ("lemmata.tree", "lemmata.ensemble", "sklearn.tree", "sklearn.ensemble._forest", "sklearn.ensemble._weight")
TAILS = (0.05, 0.95)  # quantiles between which a grid of many values lies, as there


class PermutationImportance(NamedTuple):
    """Drop of the score for each column; names as in scikit-learn, and the standard error of the mean."""

    importances: np.ndarray  # (columns, repeats)
    importances_mean: np.ndarray  # (columns,)
    importances_std: np.ndarray  # (columns,), standard deviation over the repeats
    standard_error: np.ndarray  # (columns,), of the mean; NaN with a single repeat
    score: float  # of the table as it is
    seed: int  # `permuted_rows` gives every permutation again


class PartialDependence(NamedTuple):
    """Mean predictions over a grid of values of one column."""

    grid: np.ndarray  # (values,)
    average: np.ndarray  # (outputs, values): one output for numbers and for two classes (the second), else one a class


def permuted_rows(seed, column, repeat, n):
    """Give the permutation of n rows that a column sees in a repeat; it depends on these numbers only.

    Examples
    --------
    >>> sorted(permuted_rows(0, 2, 1, 4).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng([seed, column, repeat]).permutation(n)


def permutation_importance(model, X, y, *, scoring=None, n_repeats=5, random_state=None, sample_weight=None):
    """Measure how much a score drops when each column is permuted.

    Parameters
    ----------
    model : Any fitted estimator, of lemmata or scikit-learn.
    X, y : Rows and targets, an array or a frame; better not those of the fit.
    scoring : Name of a scorer of scikit-learn, or a function of (model, X, y). Default: the model's own `score`.
    n_repeats : Permutations of each column.
    random_state : Seed of the permutations.
    sample_weight : Weights of the rows in the score; a row of weight zero is not there.

    Returns
    -------
    PermutationImportance : importances (columns, repeats), importances_mean, importances_std, standard_error, score, seed.

    Examples
    --------
    >>> from lemmata.ensemble import AdaBoostClassifier
    >>> X = [[0.0, 7.0], [1.0, 3.0], [2.0, 5.0], [3.0, 4.0]]
    >>> y = [0, 0, 1, 1]
    >>> result = permutation_importance(AdaBoostClassifier().fit(X, y), X, y, n_repeats=100, random_state=0)
    >>> bool(result.importances_mean[0] > 0.3), float(result.importances_mean[1])
    (True, 0.0)
    """
    check_is_fitted(model)
    if not isinstance(n_repeats, Integral) or n_repeats < 1:
        raise ValueError(f"n_repeats must be a whole number of at least 1, got {n_repeats!r}.")
    table, y = Table(X), np.asarray(y)
    if len(y) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows and y has {len(y)}: they must be equally many.")
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, dtype=float)
        present = np.flatnonzero(sample_weight > 0)
        table, y, sample_weight = table.taken(present), y[present], sample_weight[present]
    score = scorer(model, scoring, y, sample_weight)
    seed = int(generator(random_state).integers(2**62))
    before = score(table.native)
    drops = np.zeros((table.n_columns, n_repeats))
    used = used_columns(model)
    for j in range(table.n_columns) if used is None else sorted(used):
        for repeat in range(n_repeats):
            rows = permuted_rows(seed, j, repeat, table.n_rows)
            drops[j, repeat] = before - score(table.with_column(j, table.column(j)[rows]))
    deviation = drops.std(axis=1, ddof=1) if n_repeats > 1 else np.full(len(drops), np.nan)
    return PermutationImportance(drops, drops.mean(axis=1), drops.std(axis=1), deviation / np.sqrt(n_repeats), before, seed)


def scorer(model, scoring, y, sample_weight):
    """Make the score a function of the table alone."""
    if scoring is None and not hasattr(model, "score"):
        raise ValueError(f"{type(model).__name__} has no score of its own: name one by scoring=…, such as 'accuracy' or 'r2'.")
    measure = get_scorer(scoring) if isinstance(scoring, str) else scoring
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    if measure is None:
        return lambda X: float(model.score(X, y, **weights))
    return lambda X: float(measure(model, X, y, **weights))


def used_columns(model):
    """Collect the columns that the trees of a model ask about; None if it is not made of trees alone.

    Examples
    --------
    >>> from lemmata.ensemble import AdaBoostClassifier
    >>> used_columns(AdaBoostClassifier().fit([[0.0, 7.0], [1.0, 3.0], [2.0, 5.0], [3.0, 4.0]], [0, 0, 1, 1]))
    {0}
    """
    if not type(model).__module__.startswith(OF_TREES):
        return None
    trees = getattr(model, "trees_", None)  # of gradient boosting, all in one
    nodes = trees.nodes if isinstance(trees, Trees) else getattr(model, "tree_", None)
    if nodes is not None:
        return set(np.unique(nodes.feature[nodes.feature >= 0]).tolist())
    members = getattr(model, "estimators_", None)
    if members is None or hasattr(model, "estimators_features_"):  # whose trees number their columns in their own way
        return None
    found = [used_columns(member) for member in np.ravel(np.array(members, dtype=object))]
    return None if any(columns is None for columns in found) else set().union(*found)


def partial_dependence(model, X, column, grid=None, *, sample_weight=None):
    """Average a model's predictions over the rows, with one column set to each value of a grid.

    Parameters
    ----------
    model : Any fitted regressor or classifier, of lemmata or scikit-learn; of a classifier the probabilities are averaged.
    X : Rows to average over, an array or a frame.
    column : Number or name of the column.
    grid : Values to set it to. Default: its values if they are at most 100, else 100 between its 5 % and 95 % quantiles.
    sample_weight : Weights of the rows in the average.

    Returns
    -------
    PartialDependence : grid (values,) and average (outputs, values).

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 2.0, 3.0])
    >>> found = partial_dependence(model, [[5.0, 0.0], [5.0, 2.0]], 0, grid=[0.0, 1.0])
    >>> found.average.round(9)
    array([[3., 5.]])
    """
    check_is_fitted(model)
    table = Table(X)
    j = table.number(column)
    if grid is None:
        values = np.asarray(table.column(j))
        values = values[~(values != values)]  # NaN is no value of the grid
        distinct = np.unique(values)
        many = len(distinct) > GRID
        grid = np.linspace(*mquantiles(values, prob=TAILS), GRID) if many else distinct
    grid = np.asarray(grid)
    if grid.ndim != 1 or not len(grid):
        raise ValueError(f"The grid must be a list of values, got an array of shape {grid.shape}.")
    averages = []
    for value in grid:
        predicted = response(model, table.with_column(j, np.full(table.n_rows, value)))
        averages.append(np.average(predicted, axis=0, weights=sample_weight))
    return PartialDependence(grid, np.stack(averages, axis=1))


def response(model, X):
    """Predict (rows, outputs): numbers, or probabilities, of which two classes need only the second."""
    if not is_classifier(model):
        predicted = np.asarray(model.predict(X), dtype=float)
        return predicted.reshape(len(predicted), -1)
    if not hasattr(model, "predict_proba"):
        decision = np.asarray(model.decision_function(X), dtype=float)
        return decision.reshape(len(decision), -1)
    p = np.asarray(model.predict_proba(X), dtype=float)
    return p[:, 1:] if p.shape[1] == 2 else p


class Table:
    """An array or a frame, of which copies with one column changed are made."""

    def __init__(self, X):
        import narwhals as nw  # scikit-learn brings it; frames of any library look the same through it

        frame = nw.from_native(X, eager_only=True, pass_through=True)
        self.frame = frame if isinstance(frame, nw.DataFrame) else None
        self.native = X if self.frame is not None else np.asarray(X)
        if len(self.native.shape) != 2:
            raise ValueError(f"X must be a table of rows and columns, got an array with {len(self.native.shape)} axes.")
        self.n_rows, self.n_columns = self.native.shape

    def number(self, column):
        """Give the number of a column that may be named."""
        names = [] if self.frame is None else list(self.frame.columns)
        if isinstance(column, str):
            if column not in names:
                raise ValueError(f"There is no column {column!r}; the names of the columns are {names}.")
            return names.index(column)
        if not isinstance(column, Integral) or not 0 <= column < self.n_columns:
            raise ValueError(f"column must be a number from 0 to {self.n_columns - 1} or a name, got {column!r}.")
        return int(column)

    def column(self, j):
        """Give the values of a column."""
        return self.native[:, j] if self.frame is None else self.frame[self.frame.columns[j]].to_numpy()

    def taken(self, rows):
        """Keep some rows."""
        return Table(self.native[rows] if self.frame is None else self.frame[rows.tolist()].to_native())

    def with_column(self, j, values):
        """Copy the table with other values in one column."""
        import narwhals as nw

        if self.frame is None:
            dtype = np.result_type(self.native, values)  # whole numbers may meet a grid of fractions
            changed = self.native.astype(dtype)
            changed[:, j] = values
            return changed
        name = self.frame.columns[j]
        if self.frame.implementation.is_pandas_like():  # a series of its own would be aligned by its index
            return self.native.assign(**{name: values})
        return self.frame.with_columns(nw.new_series(name, values, backend=self.frame.implementation)).to_native()
