"""Linear support vector classification: the plane with the widest soft margin.

Minimize ½‖w‖² + C Σᵢ sᵢ ℓ(yᵢ(w·xᵢ + b)) with ℓ(m) = max(0, 1 − m)² or max(0, 1 − m): the hinge loss with an L2 penalty, which
is the soft-margin machine with the slacks ξᵢ = max(0, 1 − yᵢ(w·xᵢ + b)) at their best. The intercept is free, as in `SVC`;
liblinear, and scikit-learn's `LinearSVC`, penalize it as the coefficient of a constant column, which is another problem, with
a plane that depends on where the origin of the data is. Several classes are learned each against the rest.
`linear_newton`, `dual_coordinate` or the stochastic gradients of `SGDClassifier` find the plane; the last stop near it.
Certificate: `linear_certificate` bounds the objective from below by the dual problem.

Cortes & Vapnik, Mach. Learn. 20 (1995). Fan, Chang, Hsieh, Wang & Lin, J. Mach. Learn. Res. 9 (2008), liblinear. Xu,
arXiv:1107.2490 (2011).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, same
from lemmata.core.class_weight import class_factors
from lemmata.core.data import is_stored
from lemmata.core.estimator import Iterative
from lemmata.core.random import generator
from lemmata.linear_model.sgd import SGDClassifier
from lemmata.linear_model.stochastic import OneVersusRest
from lemmata.optimize.rules import GradientDescent
from lemmata.optimize.schedules import Schedule
from lemmata.svm.dual_coordinate import squares_of
from lemmata.svm.linear_machine import Machine
from lemmata.svm.linear_objective import Loss, rows_of

FIRST = 0.5  # first stochastic step, in units of the one that would undo the loss of a row of the usual length


def counts_block(X, y, weight, n_classes):
    """Weight of each class in a block."""
    return np.bincount(np.asarray(y), None if weight is None else np.asarray(weight, dtype=float), n_classes).astype(float)


def squares_block(X, y, weight, class_weight):
    """Sum over a block the squared lengths of the rows, a column of ones included, with their weights."""
    _, s = rows_of(y, weight, Loss(False, True, 0.0, 1, class_weight))
    squares = 1.0 + squares_of(X)
    return float(squares.sum() if s is None else s @ squares)


class LinearSVC(Iterative, OneVersusRest):
    """Classify rows by the plane with the widest soft margin.

    Parameters
    ----------
    C : Price of a unit of loss, beside ½‖w‖². A large C asks for few errors, a small one for a wide margin.
    loss : "squared_hinge" or "hinge".
    solver : "auto"; "newton", exact, and fast but for plain hinge over thousands of columns, for which "auto" takes the next;
        "dual", coordinate ascent on the dual problem; or "sgd", the average of stochastic subgradient steps on
        ½‖w‖²/n + C·ℓ, which is quick and rough, and whose certificate proves how it was found, not that it is best.
    fit_intercept : Whether the plane may lie off the origin. The intercept is never penalized.
    tol : "newton": stop when no entry of the gradient of the mean loss, columns in units of their spread, exceeds this. "dual":
        when the duality gap is at most ten times this share of the objective. "sgd": as `SGDClassifier` has it; None to go on
        until max_iter.
    max_iter : Steps, or epochs, at most.
    class_weight : Weights of classes as a dict, 1 for those it does not name; "balanced" for weights that give all classes the
        same total; None for none. A row counts with its own weight times that of its class.
    random_state : Seed of the order of rows, for "dual" and "sgd".
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : Labels; the single plane of two classes has the second on its positive side.
    coef_ : (1, n_features) for two classes, else (n_classes, n_features).
    intercept_ : (1,) or (n_classes,); for plain hinge the middle, where several are best.
    sgd_ : The fitted `SGDClassifier`, with solver="sgd".
    n_iter_ : Steps or epochs.
    converged_ : Whether it is as good as asked.
    trace_ : Mean penalized loss before each step, summed over the planes; minus the dual objective after each epoch of "dual".

    Examples
    --------
    >>> X, y = [[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"]
    >>> model = LinearSVC(C=0.25, loss="hinge").fit(X, y)
    >>> model.coef_, model.intercept_
    (array([[0.5]]), array([0.]))
    >>> model.predict([[-0.5], [3.0]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "loss": [StrOptions({"squared_hinge", "hinge"})],
        "solver": [StrOptions({"auto", "newton", "dual", "sgd"})],
        "fit_intercept": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        C=1.0,
        *,
        loss="squared_hinge",
        solver="auto",
        fit_intercept=True,
        tol=1e-8,
        max_iter=10_000,
        class_weight=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.C = C
        self.loss = loss
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.class_weight = class_weight
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and labels y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        blocks = self._labeled(X, y, sample_weight, reset=True, order="C" if self.solver in ("dual", "sgd") else None)
        vars(self).pop("sgd_", None)
        if self.tol is None and self.solver != "sgd":
            raise ValueError('tol=None is for solver="sgd"; give a positive number, such as tol=1e-8.')
        if self.solver == "sgd":
            return self._descend(blocks, X, y, sample_weight)
        seed = int(generator(self.random_state).integers(2**32))
        with self._fitting(blocks, X=X, y=y) as fitting:
            self.coef_, self.intercept_, run = self._machine(blocks, seed).fit(fitting, "LinearSVC")
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        return self

    def _machine(self, blocks, seed=0):
        """Describe the planes to find."""
        weights = self._class_weights(blocks)
        losses = [Loss(False, self.loss == "hinge", 0.0, int(k), weights) for k in self._positive()]
        return Machine(blocks, losses, self.C, self.fit_intercept, self.solver, self.tol, seed)

    def _class_weights(self, blocks):
        """Return the weight of each class, or None."""
        if self.class_weight is None:
            return None
        return class_factors(self.class_weight, blocks.reduce(counts_block, len(self.classes_)), self.classes_)

    def _row_weights(self, blocks, X, y, sample_weight):
        """Return the weights of rows, with those of their classes."""
        weights = self._class_weights(blocks)
        if weights is None:
            return sample_weight
        if is_stored(X):
            raise ValueError('solver="sgd" takes class_weight with rows in memory only; pass sample_weight instead.')
        each = weights[np.searchsorted(self.classes_, y).clip(0, len(weights) - 1)]
        return each if sample_weight is None else each * np.asarray(sample_weight)

    def _descend(self, blocks, X, y, sample_weight):
        """Fit by stochastic gradients of the same objective, divided by C and the sum of the weights."""
        sample_weight = self._row_weights(blocks, X, y, sample_weight)
        weights = self._class_weights(blocks)
        total = blocks.reduce(counts_block, len(self.classes_))
        total = float((total if weights is None else total * weights).sum())
        alpha, first = 1 / (self.C * total), FIRST * total / blocks.reduce(squares_block, weights)
        self.sgd_ = SGDClassifier(
            self.loss,
            rule=GradientDescent(Schedule(first, power=0.75, decay=first * alpha)),  # the one for averages, by Xu (2011)
            alpha=alpha,
            fit_intercept=self.fit_intercept,
            max_iter=self.max_iter,
            tol=self.tol,
            average=True,
            random_state=int(generator(self.random_state).integers(2**32)),
            verbose=self.verbose,
            checkpoint=self.checkpoint,
        ).fit(X, y, sample_weight)
        self.coef_, self.intercept_ = self.sgd_.coef_, self.sgd_.intercept_
        self.n_iter_, self.converged_, self.trace_ = self.sgd_.n_iter_, self.sgd_.converged_, self.sgd_.trace_
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the objective is from its least value."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        self._parameters()  # refuses coefficients of another shape
        names = [""] if len(self.classes_) == 2 else [f" {label}" for label in self.classes_]
        if self.solver == "sgd":
            sample_weight = self._row_weights(blocks, X, y, sample_weight)
            checks = [
                same(self.coef_, self.sgd_.coef_, "planes", "they are those of the stochastic gradients, which follow"),
                same(self.intercept_, self.sgd_.intercept_, "offsets", "and so are the intercepts"),
                *self.sgd_.certify(X, y, sample_weight),
            ]
        else:
            checks = self._machine(blocks).checks(self.coef_, self.intercept_, names)
        return Certificate(*checks, subject=repr(self))
