"""`RandomWalkClassifier`: a walk from row to row, until it meets a label.

From row i the walk steps to row j with probability p_ij ∝ exp(−‖x_i − x_j‖²/b). A labeled row is absorbing: p_ii = 1, and
p_ij = 0 for all others. (With 1 put in the place of p_ii and nothing else changed, rows would no longer sum to one, and walks
would leave a label again.)
The probability that a walk from row i ends in class k is harmonic where there is no label: F = PF, and F is the labels
elsewhere [1]. Of many rows, each is linked with its nearest neighbors only. Rows from which no label can be reached get the
frequencies of the labels, and are reported. A new row takes one step to the rows of the table.
Certificate: the harmonic equations, and those of the expected number of steps t = 1 + Pt, which turn a residual into a bound
of the error by the maximum principle (see `walk`): a proof, however the equations were solved.

[1] Zhu, Ghahramani & Lafferty, ICML (2003).
"""

import warnings
from numbers import Integral, Number, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import column_or_1d
from sklearn.utils._missing import is_pandas_na
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y, check_is_fitted

from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, Certificate, Check, same
from lemmata.core.data import is_stored
from lemmata.core.estimator import Classifier, as_output
from lemmata.semi_supervised.graph import NEIGHBORS, Graph, step_to_all, step_to_nearest
from lemmata.semi_supervised.walk import NOISE, absorb, error_bound, residual

FEW_ROWS = 1000  # up to which all pairs are linked, unless asked otherwise: a matter of milliseconds
EVENING = 3  # steps that even out what making probabilities moved
FEEBLE = 1e-3  # the largest error that rounding may excuse: a tenth of the sabotage that must be refused


def unmarked(y):
    """Tell which labels are missing: −1, and among objects also None, NaN and NA.

    Examples
    --------
    >>> unmarked(np.array([0, -1, 1])), unmarked(np.array(["a", None], dtype=object))
    (array([False,  True, False]), array([False,  True]))
    """
    if y.dtype.kind in "OT":
        return np.array([v is None or is_pandas_na(v) or (isinstance(v, Number) and (v != v or v == -1)) for v in y], bool)
    return y == -1 if y.dtype.kind in "fi" else np.zeros(len(y), bool)


def probable(walk, F, free):
    """Make probabilities of what rounding left just outside: the first class has what the others leave, and none is negative.

    What that moves is not harmonic any more, if only by roundings, which the number of steps multiplies. A few steps of the
    walk even it out, and averages of probabilities are probabilities.
    """
    F = F.copy()
    F[free, 0] = 1.0 - F[free, 1:].sum(axis=1)
    F[free] = np.clip(F[free], 0.0, 1.0)
    F[free] /= F[free].sum(axis=1, keepdims=True)
    for _ in range(EVENING):
        F[free] = walk.after(F)[free]
    return F


def labeled_block(X, y, weight):
    """Give the rows of a block and their labels."""
    return X, y


def rows_block(X, weight):
    """Give the rows of a block."""
    return X


class RandomWalkClassifier(Classifier):
    """Classify rows by the label that a random walk from them meets first; most rows need no label.

    The label −1 means that a row has none; among objects, such as texts, so do None and NaN. (NaN among numbers is refused, as
    everywhere: it may be an accident.) Weights of rows are not taken. The rows are needed together in memory, wherever they
    come from.

    Parameters
    ----------
    bandwidth : b in the weight exp(−‖x − x'‖²/b) of a step, or "median": the median over the rows of the squared distance to
        their 10th nearest neighbor (or their last, if they have fewer), which follows the units of the table.
    n_neighbors : How many nearest rows each row is linked with (links lead both ways), None for all pairs of up to 8,192 rows,
        or "auto": all pairs for up to 1,000 rows, 10 neighbors for more.
    tol : Largest error of a probability. Where walks take so many steps that rounding alone is worse, it is that of rounding.
    max_iter : Iterations of conjugate gradients (sparse graph) or refinements of a direct solution (all pairs).
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    classes_ : Labels, sorted.
    label_distributions_ : (n_samples, n_classes), how probably a walk from each row of the table ends in each class. In double
        precision, since the proof multiplies its rounding by the number of steps.
    absorption_times_ : (n_samples,), expected number of steps from row to row until a label is met: 0 for labeled rows,
        infinite for isolated ones. What is far from all labels is known by it.
    transduction_ : (n_samples,), the most probable class of each row of the table.
    isolated_ : Numbers of the rows from which no label can be reached, or by steps so improbable (below 1.5e-8, the square root
        of rounding, of what the rows there weigh) that rounding would decide. They get the frequencies of the labels, a walk
        that strays to them ends there, and the fit warns of them.
    class_prior_ : (n_classes,), frequencies of the labels.
    bandwidth_ : b that was used.
    n_neighbors_ : Links of each row; as many as rows: all pairs.
    X_ : (n_samples, n_features), the table.
    n_iter_ : Iterations.
    converged_ : Whether the bound of the errors is within `tol`.
    trace_ : The bound after each iteration.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, -1, -1, 1]
    >>> model = RandomWalkClassifier(bandwidth=1.0).fit(X, y)
    >>> model.label_distributions_.round(6)
    array([[1.      , 0.      ],
           [0.655783, 0.344217],
           [0.344217, 0.655783],
           [0.      , 1.      ]])
    >>> model.predict([[0.2], [2.9]])
    array([0, 1])
    >>> print(model.certify(X, y))
    RandomWalkClassifier(bandwidth=1.0): certificate holds (proof)
      check          value     limit  kind   claim
      table          0.0e+00 ≤ 1e-06  proof  the rows that new rows step to are those of the table
      graph          0.0e+00 ≤ 1e-06  proof  bandwidth and number of neighbors are those asked for
      prior          0.0e+00 ≤ 1e-06  proof  the prior is the frequencies of the labels
      absorbing      0.0e+00 ≤ 1e-06  proof  labeled rows keep their labels, isolated rows have the prior
      steps          ...e... ≤ 1e-06  proof  expected steps are off by at most this share
      harmonic       ...e... ≤ 1e-06  proof  probabilities are off by at most this
      probabilities  ...e... ≤ 1e-06  proof  they are at least 0 and sum to one
      transduction   0.0e+00 ≤ 0e+00  proof  every row has its most probable class
    """

    _parameter_constraints = {
        "bandwidth": [Interval(Real, 0, None, closed="neither"), StrOptions({"median"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(self, *, bandwidth="median", n_neighbors="auto", tol=1e-8, max_iter=10_000, verbose=0):
        self.bandwidth = bandwidth
        self.n_neighbors = n_neighbors
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose

    @property
    def isolated_(self):
        """Numbers of the rows from which no label can be reached."""
        check_is_fitted(self)
        return np.flatnonzero(np.isinf(self.absorption_times_))

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit to rows X and labels y, −1 for rows without one.

        X may also be a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        X, numbers = self._rows_and_labels(X, y, reset=True)
        graph = self._graph(X)
        self.X_, self.bandwidth_, self.n_neighbors_ = X, graph.bandwidth, graph.n_neighbors
        self.class_prior_ = self._prior(numbers)
        F, free, isolated = self._settled(graph, numbers)
        run = absorb(graph.walk, F[:, 1:], free, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose)
        F[:, 1:] = run.state[0]
        F[:, :-1] = probable(graph.walk, F[:, :-1], free)
        F[isolated, -1] = np.inf
        back = np.empty_like(F)
        back[graph.walk.order] = F
        self.label_distributions_, self.absorption_times_ = np.ascontiguousarray(back[:, :-1]), back[:, -1].copy()
        self.transduction_ = self.classes_[self.label_distributions_.argmax(axis=1)]
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        if isolated.any():
            warnings.warn(
                f"From {isolated.sum()} of {len(X)} rows no label can be reached, so they get the frequencies of the labels "
                "(see isolated_); label one of them, or raise n_neighbors or bandwidth.",
                UserWarning,
                stacklevel=2,
            )
        return self

    def _rows_and_labels(self, X, y, *, reset):
        """Validate a table with labels; return its rows and the numbers of their classes, −1 where there is no label."""
        name, stored = type(self).__name__, is_stored(X)
        if stored:
            X, y = self._blocks(X, y, reset=reset, labels=True).map(labeled_block)
        elif y is None:
            raise ValueError(f"{name} requires y to be passed, but the target y is None.")
        labels = column_or_1d(y, warn=True)
        missing = unmarked(labels)
        if len(labels) and missing.all():
            raise ValueError(f"{name} needs some labels, and every entry of y says that there is none (-1); label a few rows.")
        present = labels[~missing]
        if missing.any() and labels.dtype.kind == "O":  # without what is missing, objects may be plain texts or numbers
            present = np.array(present.tolist())
        if len(labels):
            present = _check_y(present, estimator=self)
            check_classification_targets(present)
        found, which = np.unique(present, return_inverse=True)
        numbers = np.full(len(labels), -1)
        numbers[~missing] = which
        if not stored:
            X, numbers = self._blocks(X, numbers, reset=reset, order="C").map(labeled_block)
        if reset:
            self.classes_ = self._two_or_more(found)
        return X, np.append(np.searchsorted(self._known(found), found), -1)[numbers]

    def _graph(self, X):
        automatic = None if len(X) <= FEW_ROWS else NEIGHBORS
        return Graph(X, self.bandwidth, automatic if self.n_neighbors == "auto" else self.n_neighbors)

    def _prior(self, numbers):
        return np.bincount(numbers[numbers >= 0], minlength=len(self.classes_)) / (numbers >= 0).sum()

    def _settled(self, graph, numbers):
        """Give values of all rows in the walk's order (probabilities, then steps), and which rows are free or isolated."""
        numbers, k = numbers[graph.walk.order], len(self.classes_)
        labeled = numbers >= 0
        isolated = ~graph.walk.reaching(labeled)
        F = np.zeros((len(numbers), k + 1))
        F[:, :k] = self.class_prior_  # also where the iteration begins
        F[labeled, :k] = np.eye(k)[numbers[labeled]]
        return F, ~labeled & ~isolated, isolated

    def predict_proba(self, X):
        """Give the probabilities of the classes for rows: one step to a row of the table, and on from there."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        X, rows, b = blocks.map(rows_block).astype(float), self.X_.astype(float), float(self.bandwidth_)
        if self.n_neighbors_ < len(rows):
            P = step_to_nearest(X, rows, self.label_distributions_, b, self.n_neighbors_)
        else:
            P = step_to_all(X, rows, self.label_distributions_, b)
        return as_output(P / P.sum(axis=1, keepdims=True), blocks.dtype)

    def predict(self, X):
        """Give the most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]

    def plot(self, X=None, y=None, *, ax=None):
        """Draw the boundary and the rows, as for every classifier; a row without a label shows the class it is given."""
        check_is_fitted(self)
        if y is not None:
            if is_stored(X):
                X, y = self._blocks(X, y, reset=False, labels=True).map(labeled_block)
            labels, best = column_or_1d(y), self.predict(X)
            y = np.where(unmarked(labels), best, labels)
        return super().plot(X, y, ax=ax)

    def certify(self, X, y=None):
        """Prove that the probabilities are those of the walk, from the table, the labels and the equations alone."""
        check_is_fitted(self)
        X, numbers = self._rows_and_labels(X, y, reset=False)
        table = same(self.X_, X, "table", "the rows that new rows step to are those of the table")
        if not table.holds:  # another table: there is nothing to compare with
            return Certificate(table, subject=repr(self))
        graph = self._graph(X)
        asked = same(self.bandwidth_, graph.bandwidth, "graph", "bandwidth and number of neighbors are those asked for")
        if self.n_neighbors_ != graph.n_neighbors:
            asked = Check(asked.name, np.inf, asked.limit, asked.kind, asked.claim)
        wrong, complete = graph.wrong_radii()
        claim = f"share of {'all' if complete else 'some'} rows whose neighbors are not those found by comparing with all rows"
        links = Check("neighbors", wrong, 0.0, "proof" if complete else "evidence", claim)
        prior = same(self.class_prior_, self._prior(numbers), "prior", "the prior is the frequencies of the labels")
        guesses = self.classes_[self.label_distributions_.argmax(axis=1)]
        wrong = float((self.transduction_ != guesses).mean())
        return Certificate(
            table,
            asked,
            *([links] if graph.n_neighbors < len(X) else []),
            prior,
            *self._equations(graph, numbers),
            Check("transduction", wrong, 0.0, "proof", "every row has its most probable class"),
            subject=repr(self),
        )

    def _equations(self, graph, numbers):
        """Check settled rows, bound the errors of the others, and look whether probabilities are such."""
        order = graph.walk.order
        expected, free, isolated = self._settled(graph, numbers)
        F, t = self.label_distributions_[order], self.absorption_times_[order]
        clear = np.array_equal(np.isinf(t), isolated) and (t >= 0).all()
        t = np.where(np.isfinite(t), t, 0.0)
        off = max(np.abs(F - expected[:, :-1])[~free].max(initial=0.0), t[~free].max(initial=0.0)) if clear else np.inf
        largest = np.abs(residual(graph.walk, np.column_stack([F, t]), free)).max(axis=0)
        steps = t[free].max(initial=0.0)
        limit = min(max(GAP_LIMIT, NOISE * steps), FEEBLE)
        simplex = max(0.0, -F.min(), np.abs(F.sum(axis=1) - 1.0).max())
        return (
            Check("absorbing", off, SAME_LIMIT, "proof", "labeled rows keep their labels, isolated rows have the prior"),
            Check("steps", error_bound(steps, largest[-1:]), limit, "proof", "expected steps are off by at most this share"),
            Check("harmonic", error_bound(steps, largest), limit, "proof", "probabilities are off by at most this"),
            Check("probabilities", simplex, SAME_LIMIT, "proof", "they are at least 0 and sum to one"),
        )
