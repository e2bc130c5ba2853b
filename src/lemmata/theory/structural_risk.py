"""Structural risk minimization: the hypothesis with the smallest guaranteed risk in a hierarchy of classes.

Given classes H₁, H₂, … and weights w(n) with Σ w(n) ≤ 1, let U_n(k) bound the true risk of every h of class n that errs on k
of m rows, with probability 1 − w(n) δ, and let it grow with k. With probability 1 − δ all of these bounds hold at once, so
the hypothesis of smallest bound, whichever it is, keeps it. Within a class the smallest bound is that of the fewest errors; a
class whose U_n(0) is no smaller than a bound already found needs no look at the rows. Where the errors of each class are
minimized exactly, the result is therefore the best of the whole hierarchy, and the classes passed over are part of the proof.

`structural_risk_minimization` has U_n = k/m + ε_n(m, w(n) δ) for a `Hierarchy` [1]; the weight stands there once. The estimator
has the smaller bound by inversion of the hypergeometric tail (`uniform`), which needs the growth function alone.

Its own classes are the step functions of one column (`step_functions`): class c holds those that change their label at most c
times. Their fewest errors are exact, and the certificate counts them anew from the other end of the column.

[1] Vapnik, The Nature of Statistical Learning Theory (1995).
"""

from dataclasses import dataclass
from math import ceil, floor, log
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.estimator import Classifier
from lemmata.theory.bounds.tails import check_delta
from lemmata.theory.bounds.uniform import hypergeometric_bound
from lemmata.theory.learnability import srm_weights
from lemmata.theory.risk import predicted
from lemmata.theory.step_functions import backward_errors, log_steps, midpoints, step_errors, step_function

CLASSES = 16  # of step functions by default: more changes than these pay for themselves on very long tables only


def search(n_classes, errors_of, bound_of):
    """Find the class of smallest bound; stop where no class that is left could have a smaller one.

    Parameters
    ----------
    errors_of : Function of the class, from 0, that returns the fewest errors of its hypotheses.
    bound_of : Function of class and errors that returns the bound.

    Returns
    -------
    best : The class.
    errors, bounds : Of the classes looked at, which are the first ones.

    Examples
    --------
    >>> search(4, [30, 10, 8, 0].__getitem__, lambda c, k: k / 100 + 0.06 * c)
    (1, [30, 10, 8], [0.3, 0.16, 0.2])
    """
    floors = [bound_of(c, 0) for c in range(n_classes)]
    errors, bounds = [], []
    for c in range(n_classes):
        if bounds and min(floors[c:]) >= min(bounds):
            break
        errors.append(errors_of(c))
        bounds.append(bound_of(c, errors[-1]))
    return int(np.argmin(bounds)), errors, bounds


@dataclass(frozen=True)
class StructuralMinimum:
    """The hypothesis of smallest guaranteed risk in a hierarchy.

    Attributes
    ----------
    n : Number of its class, from 1.
    hypothesis : It has `predict`.
    empirical, penalty : Its empirical risk, and ε_n(m, w(n) δ).
    bounds : Smallest bound of each class looked at; the others have penalties that exceed the smallest of these.
    """

    n: int
    hypothesis: Any
    empirical: float
    penalty: float
    bounds: list

    @property
    def bound(self):
        """The guaranteed risk: its true risk is at most this with probability 1 − δ."""
        return self.empirical + self.penalty


def structural_risk_minimization(hierarchy, X, y, delta=0.05):
    """Minimize L_S(h) + ε_n(m, w(n) δ) over all h of a hierarchy, n being the first class that has h.

    Parameters
    ----------
    hierarchy : `Hierarchy` of classes with `erm`.
    X, y : Rows and labels.

    Examples
    --------
    >>> from lemmata.theory.classes.finite_class import FiniteClass
    >>> from lemmata.theory.learnability import Hierarchy
    >>> constants, all_of_them = FiniteClass([[0, 0], [1, 1]]), FiniteClass([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> hierarchy = Hierarchy([(constants, 1), (all_of_them, 2)])
    >>> found = structural_risk_minimization(hierarchy, [0, 1] * 200, [0, 1] * 200)
    >>> found.n, found.empirical, found.bound
    (2, 0.0, 0.0933)
    """
    check_delta(delta)
    m, found = len(y), {}
    penalties = [hierarchy.penalty(n, m, delta) for n in range(1, len(hierarchy) + 1)]

    def errors_of(c):
        found[c] = hierarchy.classes[c].erm(X, y)
        return found[c].errors

    best, _, bounds = search(len(hierarchy), errors_of, lambda c, k: k / m + penalties[c])
    return StructuralMinimum(best + 1, found[best].hypothesis, found[best].error_rate, penalties[best], bounds)


def step_block(X, weight, column, cuts, first, classes):
    """Labels of a block by a step function."""
    return classes[(first + np.searchsorted(cuts, X[:, column], side="right")) % 2]


def hypothesis_block(X, weight, hypothesis, classes):
    """Labels of a block by any hypothesis."""
    return classes[predicted(hypothesis, X).astype(int)]


@dataclass(frozen=True)
class EstimatorClass:
    """A class of hypotheses that is known through an estimator and its growth function.

    Its errors are those of the estimator, which need not be the fewest: bounds hold, and optimality is not proved.

    Parameters
    ----------
    estimator : Classifier of two classes that takes sample_weight; it is cloned.
    log_growth : Function of m that returns the logarithm of the growth function of what the estimator can become.

    Examples
    --------
    >>> from lemmata.linear_model import LogisticRegression
    >>> from lemmata.theory.bounds.growth import log_cover
    >>> lines = EstimatorClass(LogisticRegression(), lambda m: log_cover(m, 1))
    >>> lines.erm(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]).predict([[0.5], [2.5]])
    array([0, 1])
    """

    estimator: Any
    log_growth: Any

    def erm(self, X, y, sample_weight=None):
        """Fit a clone of the estimator."""
        return clone(self.estimator).fit(X, y, sample_weight=sample_weight)


class _Listed:
    """Classes that the user gave, and some rows."""

    def __init__(self, classes, X, y, weight):
        self.classes, self.rows, self.found = classes, (X, y, weight), {}

    def log_growth(self, c, m):
        cls = self.classes[c]
        if hasattr(cls, "log_growth"):
            return cls.log_growth(m)
        return log(len(cls) if hasattr(cls, "__len__") else cls.growth(m))

    def errors(self, c):
        X, y, weight = self.rows
        found = self.classes[c].erm(X, y, sample_weight=weight)
        self.found[c] = getattr(found, "hypothesis", found)
        return self.errors_of(self.found[c])

    def errors_of(self, hypothesis):
        X, y, weight = self.rows
        return float(weight @ (predicted(hypothesis, X) != y))


class _Steps:
    """Step functions of one column, and some rows."""

    def __init__(self, size, X, y, weight):
        self.size, self.rows = size, (X, y, weight)

    def log_growth(self, c, m):
        return log_steps(m, self.rows[0].shape[1], c)

    def errors(self, c, by=step_errors):
        """Return the fewest errors of class c over all columns; each column is looked at once, for all classes."""
        if not hasattr(self, "table"):
            X, y, weight = self.rows
            self.table = np.array([by(x, y, weight, self.size - 1) for x in X.T])
        return float(self.table[:, c].min())

    def best(self, c):
        """Return column, cuts and first label of a best hypothesis; a constant is one of the first column."""
        X, y, weight = self.rows
        column = int(self.table[:, c].argmin())
        cuts, first = step_function(X[:, column], y, weight, c)
        return (column if len(cuts) else 0), cuts, first


class StructuralRiskMinimizer(Classifier):
    """Choose, from a hierarchy of classes, the hypothesis with the smallest bound of its risk.

    Weights of rows mean repetition; a bound counts rows, so that of weights that are not whole it takes the errors rounded up
    and the rows rounded down. All rows must fit into memory.

    Parameters
    ----------
    classes : The hierarchy, simplest class first: a list of hypothesis classes (with `erm` and `growth`) or `EstimatorClass`;
        or how many classes of step functions of one column, where class c changes its label c times at most. Default 16.
    weights : Share of δ of each class: a function of n = 1, 2, …, or one number for each; default 6/(π² n²).
    delta : Probability that the bounds fail.

    Attributes
    ----------
    classes_ : The two labels.
    class_index_ : The class chosen, from 0.
    risk_bound_ : Its bound: the true error rate is at most this with probability 1 − δ.
    errors_ : Fewest errors of each class looked at, as a weight; these are the first ones.
    bounds_ : Bounds that belong to them; no class that was not looked at can have a smaller one than `risk_bound_`.
    column_, cuts_, first_class_ : The step function chosen: its column, the cuts in ascending order, and the number of the
        class of rows below the first cut; at each cut it changes.
    hypothesis_ : The hypothesis chosen, if `classes` are given.

    Examples
    --------
    >>> X = np.linspace(-1.0, 1.0, 300)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 0.5, "in", "out")
    >>> model = StructuralRiskMinimizer().fit(X, y)
    >>> model.class_index_, model.cuts_, model.risk_bound_
    (2, array([-0.5017,  0.5017]), 0.0758)
    >>> model.predict([[0.0], [0.9]])
    array(['in', 'out'], dtype='<U3')
    >>> print(model.certify(X, y))
    StructuralRiskMinimizer(): certificate holds (proof)
      check         value     limit  kind   claim
      hypothesis    0.0e+00 ≤ 0e+00  proof  the step function is one of the class chosen, and its errors are the fewest there
      cuts          0.0e+00 ≤ 1e-06  proof  each cut lies midway between the values on its sides
      fewest errors 0.0e+00 ≤ 1e-06  proof  no hypothesis of a class looked at has fewer errors
      bounds        0.0e+00 ≤ 1e-06  proof  the bounds are those of these errors, with δ shared out
      choice        0.0e+00 ≤ 1e-06  proof  the bound of the hypothesis is the smallest of them
      passed over   0.0e+00 ≤ 0e+00  proof  no class that was not looked at can have a smaller bound
    """

    _parameter_constraints = {
        "classes": [Interval(Integral, 1, None, closed="left"), list, tuple, None],
        "weights": [callable, "array-like", None],
        "delta": [Interval(Real, 0, 1, closed="neither")],
    }

    def __init__(self, classes=None, weights=None, delta=0.05):
        self.classes = classes
        self.weights = weights
        self.delta = delta

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _family(self, X, y, sample_weight, reset):
        """Return the hierarchy on these rows, the number of its classes, and the function that bounds a risk."""
        blocks = self._labeled(X, y, sample_weight, reset=reset)
        X, y, weight = blocks.take(np.arange(blocks.n_rows))
        y, weight = np.asarray(y), np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
        n = floor(weight.sum() * (1 + 1e-12))  # the sum of weights such as 0.1 rounds
        if n < 1:
            raise ValueError(f"A bound counts rows: the weights sum to {weight.sum():.3g}, which is less than one row.")
        if isinstance(self.classes, list | tuple):
            size, family = len(self.classes), _Listed(self.classes, np.asarray(X), y, weight)
            if not size:
                raise ValueError("The list of classes is empty: give at least one.")
        else:
            size = CLASSES if self.classes is None else self.classes
            family = _Steps(size, np.asarray(X), y, weight)
        shares = self.delta * srm_weights(size, self.weights)

        def bound_of(c, errors):
            whole = min(ceil(errors * (1 - 1e-12)), n)
            return hypergeometric_bound(whole, n, lambda m: family.log_growth(c, m), shares[c]) if shares[c] > 0 else 1.0

        return family, size, bound_of

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Choose a hypothesis for rows X and labels y of two classes; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        family, size, bound_of = self._family(X, y, sample_weight, reset=True)
        self.class_index_, errors, bounds = search(size, family.errors, bound_of)
        self.errors_, self.bounds_, self.risk_bound_ = np.array(errors), np.array(bounds), bounds[self.class_index_]
        for name in ("hypothesis_", "column_", "cuts_", "first_class_"):  # of an earlier fit with other classes
            vars(self).pop(name, None)
        if isinstance(family, _Listed):
            self.hypothesis_ = family.found[self.class_index_]
        else:
            self.column_, self.cuts_, self.first_class_ = family.best(self.class_index_)
        return self

    def predict(self, X):
        """Give each row the label that the hypothesis chosen gives it."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        if hasattr(self, "hypothesis_"):
            return blocks.map(hypothesis_block, self.hypothesis_, self.classes_)
        return blocks.map(step_block, self.column_, self.cuts_, self.first_class_, self.classes_)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no hypothesis of the hierarchy has a smaller bound, by recomputing the fewest errors and the bounds."""
        check_is_fitted(self)
        family, size, bound_of = self._family(X, y, sample_weight, reset=False)
        looked = min(len(self.bounds_), size)
        if isinstance(family, _Listed):
            checks, kind = self._listed_checks(family)
            errors = [family.errors(c) for c in range(looked)]
        else:
            checks, kind = self._step_checks(family), "proof"
            errors = [family.errors(c, by=backward_errors) for c in range(looked)]
        bounds = [bound_of(c, k) for c, k in enumerate(errors)]
        best = int(np.argmin(bounds))
        passed = min((bound_of(c, 0) for c in range(looked, size)), default=1.0)
        fewest = same(self.errors_, errors, "fewest errors", "no hypothesis of a class looked at has fewer errors")
        choice = "the bound of the hypothesis is the smallest of them"
        if best != self.class_index_:
            chosen = Check("choice", np.inf, 0.0, "proof", choice)
        else:
            chosen = same(self.risk_bound_, bounds[best], "choice", choice)
        passed_over = "no class that was not looked at can have a smaller bound"
        return Certificate(
            *checks,
            fewest if kind == "proof" else Check(fewest.name, fewest.value, fewest.limit, kind, "a new fit errs as often"),
            same(self.bounds_, bounds, "bounds", "the bounds are those of these errors, with δ shared out"),
            chosen,
            Check("passed over", max(0.0, bounds[best] - passed), 0.0, "proof", passed_over),
            subject=repr(self),
        )

    def _listed_checks(self, family):
        """Compare the errors of the hypothesis with those of its bound; a class is exact unless an estimator stands for it."""
        claim = "the hypothesis errs as often as its bound says"
        errors, index = family.errors_of(self.hypothesis_), min(max(self.class_index_, 0), len(self.errors_) - 1)
        estimated = any(isinstance(cls, EstimatorClass) for cls in self.classes)
        return [same(errors, self.errors_[index], "hypothesis", claim, floor=1.0)], "local" if estimated else "proof"

    def _step_checks(self, family):
        """Check the step function: one of its class, with the errors that its bound is made of, and cuts in their places."""
        X, y, weight = family.rows
        cuts, column, first = np.asarray(self.cuts_, dtype=float), int(self.column_), self.first_class_
        member = "the step function is one of the class chosen, and its errors are the fewest there"
        midway = "each cut lies midway between the values on its sides"
        proper = len(cuts) <= self.class_index_ < len(self.errors_) and first in (0, 1) and 0 <= column < X.shape[1]
        if not proper or not (np.diff(cuts) > 0).all() or (column > 0 and not len(cuts)):
            return [Check("hypothesis", np.inf, 0.0, "proof", member)]
        x = X[:, column]
        wrong = weight @ ((first + np.searchsorted(cuts, x, side="right")) % 2 != y)
        excess = abs(wrong - self.errors_[self.class_index_]) / weight.sum()
        excess = 0.0 if excess < 1e-12 else float(excess)  # the same weights in another order
        values = np.unique(x)
        at = np.searchsorted(values, cuts)
        between = (at > 0) & (at < len(values))
        expected = midpoints(values[at - 1], values[at]) if between.all() else np.full(len(cuts), np.nan)
        return [Check("hypothesis", excess, 0.0, "proof", member), same(cuts, expected, "cuts", midway)]
