"""Support vector classification: the widest margin between two classes, softened by a price C for each row inside it.

The machine is f(x) = Σ αᵢyᵢ k(xᵢ, x) + b for yᵢ = ±1, with w = Σ αᵢyᵢφ(xᵢ) in the features φ of the kernel. It minimizes
½‖w‖² + C Σ sᵢ max(0, 1 − yᵢf(xᵢ)) [1]; the dual is max Σ α − ½ Σ αᵢαⱼyᵢyⱼ k(xᵢ, xⱼ) over 0 ≤ αᵢ ≤ C sᵢ, Σ αᵢyᵢ = 0. At the
optimum rows with yᵢf(xᵢ) > 1 have αᵢ = 0, rows inside the margin αᵢ = C sᵢ, and those between lie on the margin, which gives b.
With a hard margin C is infinite, ½‖w‖² is minimized alone, and 1/‖w‖ is half the distance of the convex hulls of the classes.
Certificate: a dual point made of the coefficients bounds the objective of every machine from below (`optimality`).

[1] Cortes & Vapnik, Mach. Learn. 20 (1995).
"""

from threading import local

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lemmata.core import threads
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.class_weight import class_factors
from lemmata.core.config import n_threads
from lemmata.core.estimator import Classifier, as_output
from lemmata.kernels.validity import warn_if_indefinite
from lemmata.svm import link
from lemmata.svm.decomposition import FINE, WHOLE, scores_of, solve, solve_whole
from lemmata.svm.dual import Dual
from lemmata.svm.machine import KernelMachine, centered, load, shift_of
from lemmata.svm.one_against_one import by_machine, class_scores, laid_out, pairs_of
from lemmata.svm.optimality import judge_classifier, judge_hard_margin, margin_check, one_sided, squared_norms, verdict_checks
from lemmata.svm.separable import refuse_inseparable


def solve_pairs(kernel, rows, labels, caps, n_classes, old=None, **options):
    """Solve the machine of each pair of classes: small ones side by side, large ones one after the other.

    Returns
    -------
    A list of (numbers of the rows, signs, solution).
    """
    order, counts = np.argsort(labels, kind="stable"), np.bincount(labels, minlength=n_classes)
    members = np.split(order, np.cumsum(counts)[:-1])
    pairs = pairs_of(n_classes)
    results = [None] * len(pairs)

    def posed(p):
        which = np.concatenate([members[c] for c in pairs[p]])
        y = np.repeat([1.0, -1.0], counts[list(pairs[p])])
        dual = Dual(np.arange(len(which)), y, -np.ones(len(which)), caps[which])
        return which, dual, None if old is None else y * one_sided(old[which, p], y, caps[which])

    if len(pairs) == 1 or np.partition(counts, -2)[-2:].sum() > WHOLE:
        for p in range(len(pairs)):
            which, dual, start = posed(p)
            results[p] = which, dual.sign, solve(dual, kernel, rows[which], start=start, **options)
        return results
    small = {key: options[key] for key in ("tol", "max_iter", "name")}
    moved, room = rows[order], local()
    parts = {}  # the rows of each class, and their matrix, which takes part in many pairs; that of a pair is forgotten

    def prepare(kind):
        ahead = kernel.prepare(moved.astype(kind))
        ahead = [ahead[end - count : end] for end, count in zip(np.cumsum(counts), counts, strict=True)]
        parts[kind] = ahead, [kernel.values(some, some) for some in ahead]

    def work(p):
        which, dual, start = posed(p)
        (i, j), m, n = pairs[p], counts[pairs[p][0]], len(which)

        def matrix(kind):
            if kind not in parts:
                prepare(kind)
            ahead, own = parts[kind]
            if not hasattr(room, kind.__name__):
                setattr(room, kind.__name__, np.empty(np.partition(counts, -2)[-2:].sum() ** 2, kind))
            K = getattr(room, kind.__name__)[: n * n].reshape(n, n)
            K[:m, :m], K[m:, m:] = own[i], own[j]
            K[:m, m:] = kernel.values(ahead[i], ahead[j])
            K[m:, :m] = K[:m, m:].T
            return K

        results[p] = which, dual.sign, solve_whole(dual, matrix, start=start, **small)

    prepare(np.float64 if options["tol"] <= FINE else np.float32)
    threads.run(work, range(len(pairs)), n_threads())
    return results


def combined(machines, n_rows):
    """Return the coefficients y·α of all machines, (rows, machines)."""
    coefficients = np.zeros((n_rows, len(machines)))
    for p, (which, signs, solution) in enumerate(machines):
        coefficients[which, p] = signs * solution.a
    return coefficients


class SVC(Classifier, KernelMachine):
    """Support vector classifier with a kernel.

    Parameters
    ----------
    C : Price of a row inside the margin. Large values follow the rows, small ones the margin.
    kernel : "linear", "poly", "rbf", "sigmoid", a kernel of `lemmata.kernels`, a function of two tables that returns their
        kernel matrix, or "precomputed": then X is the kernel matrix of the rows, and in predictions that of new rows and those
        of the fit.
    hard_margin : Whether no row may lie inside the margin; then C plays no part, and classes that cannot be separated are
        refused.
    degree, gamma, coef0 : Parameters of the kernels with names, see `lemmata.kernels`: (γ⟨x, z⟩ + coef0)^degree, exp(−γ‖x −
        z‖²), tanh(γ⟨x, z⟩ + coef0). gamma "scale" is 1 / (d · variance of X), "auto" is 1/d.
    tol : Largest violation of the optimality conditions, in units of the margin.
    class_weight : Factors of C for classes: a dict, "balanced", or None.
    decision_function_shape : "ovr" for one score a class, "ovo" for one a machine; two classes have one score either way.
    probability : Whether `predict_proba` is wanted. It takes five more fits, to score each row by a machine that has not seen
        it.
    cache_size : MiB of memory for rows of the kernel matrix.
    max_iter : Most rounds of the solver; each optimizes a working set of about a thousand coefficients.
    warm_start : Whether a fit to the same rows begins with the coefficients of the last one.
    verbose : Whether to show progress.

    Attributes
    ----------
    support_ : Numbers of the support vectors, class after class.
    support_vectors_ : These rows.
    n_support_ : How many each class has.
    dual_coef_ : (classes − 1, support vectors), αᵢyᵢ in the machines that a support vector takes part in; see
        `one_against_one`.
    intercept_ : b of each machine.
    margin_ : 1/‖w‖ of each machine: the distance, in the features of the kernel, between its boundary and its margin.
    coef_ : Weights of the columns, for the linear kernel.
    kernel_ : The kernel with all its numbers.
    class_weight_ : Factors of C.
    classes_ : The labels.
    n_iter_ : Rounds of the solver, for each machine.
    converged_ : Whether the solver reached tol in every machine.

    Examples
    --------
    >>> X, y = [[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]], [1, 1, 0, 0]
    >>> model = SVC(kernel="linear", hard_margin=True).fit(X, y)
    >>> model.coef_.round(6), model.margin_.round(6), model.support_
    (array([[0.666667, 0.333333]]), array([1.341641]), array([2, 3, 0], dtype=int32))
    >>> model.certify(X, y).holds
    True
    >>> SVC(C=10.0).fit(X, y).predict([[1.5, 0.5]])
    array([1])
    """

    _parameter_constraints = {
        **KernelMachine._machine_constraints,
        "hard_margin": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "probability": ["boolean"],
    }

    def __init__(
        self,
        C=1.0,
        kernel="rbf",
        *,
        hard_margin=False,
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-6,
        class_weight=None,
        decision_function_shape="ovr",
        probability=False,
        cache_size=200.0,
        max_iter=10_000,
        warm_start=False,
        verbose=0,
    ):
        self.C = C
        self.kernel = kernel
        self.hard_margin = hard_margin
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.class_weight = class_weight
        self.decision_function_shape = decision_function_shape
        self.probability = probability
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition.

        X may also be a Parquet path, a Dask table, or an iterator of blocks; the rows are then read into memory.
        """
        old = self._old_coefficients() if self.warm_start else None
        blocks = self._labeled(X, y, sample_weight, reset=True, order="C")
        rows, labels, weight, numbers = load(blocks)
        kernel, rows = self._choose(rows, weight, numbers)
        warn_if_indefinite(kernel, rows)
        self.class_weight_ = class_factors(self.class_weight, np.bincount(labels, weight, len(self.classes_)), self.classes_)
        caps = self._caps(labels, weight)
        if self.hard_margin:
            refuse_inseparable(kernel, centered(kernel, rows)[0], labels, pairs_of(len(self.classes_)), self.classes_)
        if old is not None and (len(old) != len(labels) or old.shape[1] != len(pairs_of(len(self.classes_)))):
            old = None
        moved, mean = centered(kernel, rows)
        with threads.serial_blas():  # matrices are small, or worked on by threads of our own
            machines = solve_pairs(kernel, moved, labels, caps, len(self.classes_), old, **self._options())
            coefficients = self._keep(kernel, moved, labels, machines)
            self.intercept_ -= shift_of(coefficients, moved, mean)
        support, self.dual_coef_, self.n_support_ = laid_out(coefficients, labels, len(self.classes_))
        self._keep_support(kernel, rows, support, numbers)
        vars(self).pop("link_", None)
        if self.probability:
            self.link_ = self._fit_link(kernel, moved, labels, weight)
        return self

    def _caps(self, labels, weight):
        """Return the upper bounds of the dual variables."""
        return np.full(len(labels), np.inf) if self.hard_margin else self.C * self.class_weight_[labels] * weight

    def _keep(self, kernel, rows, labels, machines):
        """Keep what the solutions say of themselves; return the coefficients, (rows, machines)."""
        coefficients = combined(machines, len(labels))
        self.intercept_ = np.array([solution.bias for _, _, solution in machines])
        scores = np.zeros(coefficients.shape)
        for p, (which, _, solution) in enumerate(machines):
            scores[which, p] = solution.scores
        with np.errstate(divide="ignore"):
            self.margin_ = 1 / np.sqrt(squared_norms(kernel, rows, coefficients, scores))
        self.n_iter_ = np.array([solution.n_iter for _, _, solution in machines], dtype=np.int32)
        self.converged_ = all(solution.converged for _, _, solution in machines)
        self._shape = (len(labels), self.n_features_in_)
        return coefficients

    @property
    def shape_fit_(self):
        """Rows (of positive weight) and columns of the fit."""
        return self._shape

    def _coefficients(self):
        """Return the coefficients of each machine, (support vectors, machines), once shapes fit together."""
        k = len(self.classes_)
        if len(self.n_support_) != k or self.dual_coef_.shape != (k - 1, len(self.support_)):
            raise ValueError(f"dual_coef_ has the shape {self.dual_coef_.shape}, which is not that of a fit.")
        if self.n_support_.sum() != len(self.support_):
            raise ValueError("n_support_ does not sum to the number of support vectors.")
        return by_machine(np.asarray(self.dual_coef_, dtype=float), self.n_support_)

    def _old_coefficients(self):
        """Return the coefficients of the last fit, (rows, machines), or None."""
        if not hasattr(self, "support_") or len(self.support_) == 0 or self.support_.max() >= self._shape[0]:
            return None
        old = np.zeros((self._shape[0], len(self.intercept_)))
        old[self.support_] = self._coefficients()
        return old

    def decision_function(self, X):
        """Give the score of the second class of two, (n,), or scores of classes, (n, k), or machines; see the class."""
        scores, dtype = self._scores(X)
        if len(self.classes_) == 2:
            return as_output(scores[:, 0], dtype)
        if self.decision_function_shape == "ovo":
            return as_output(scores, dtype)
        return as_output(class_scores(scores, len(self.classes_)), dtype)

    def predict(self, X):
        """Give each row the class with the highest score: most votes, then the surest ones."""
        scores, _ = self._scores(X)
        k = len(self.classes_)
        return self.classes_[(scores[:, 0] > 0).astype(int) if k == 2 else class_scores(scores, k).argmax(axis=1)]

    @available_if(lambda self: self.probability)
    def predict_proba(self, X):
        """Give the probability of each class, (n, k); the most probable one is the one that `predict` gives."""
        scores, dtype = self._scores(X)
        if not hasattr(self, "link_"):
            raise ValueError("This SVC was fitted without probabilities; fit it again with probability=True.")
        k = len(self.classes_)
        return as_output(link.probabilities(scores[:, 0] if k == 2 else class_scores(scores, k), self.link_), dtype)

    def _fit_link(self, kernel, rows, labels, weight):
        """Fit the link to scores of rows by machines that have not seen them."""
        k, caps = len(self.classes_), self._caps(labels, weight)

        def scores_without(fold):
            seen, unseen = np.flatnonzero(~fold), np.flatnonzero(fold)
            machines = solve_pairs(kernel, rows[seen], labels[seen], caps[seen], k, **self._options() | {"verbose": 0})
            coefficients = combined(machines, len(seen))
            ahead = kernel.prepare(rows[seen].astype(float))
            scores = scores_of(kernel, kernel.prepare(rows[unseen].astype(float), ahead), ahead, coefficients)
            scores += [solution.bias for _, _, solution in machines]
            return scores[:, 0] if k == 2 else class_scores(scores, k)

        scores, told = link.scores_of_unseen(scores_without, rows, labels, k)
        return link.fit_link(scores[told], labels[told], weight[told], k)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no machine has a smaller objective, from the coefficients and the data."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False, order="C")
        table, labels, weight, numbers = load(blocks)
        kernel, rows = self._choose(table, weight, numbers)
        checks = self._support_checks(kernel, rows, numbers)
        if checks[0].holds:
            place = np.searchsorted(numbers, self.support_)
            counts = np.bincount(labels[place], minlength=len(self.classes_))
            found = np.array_equal(counts, self.n_support_) and np.array_equal(np.sort(labels[place]), labels[place])
            claim = "support vectors stand class after class, as n_support_ counts them"
            checks.append(Check("classes", 0.0 if found else np.inf, SAME_LIMIT, "proof", claim))
        if not all(check.holds for check in checks):
            return Certificate(*checks, subject=repr(self))
        coefficients = self._coefficients()
        expected = class_factors(self.class_weight, np.bincount(labels, weight, len(self.classes_)), self.classes_)
        checks.append(same(self.class_weight_, expected, "class weights", "the factors of C are those asked for"))
        rows, mean = centered(kernel, rows)
        bias = self.intercept_ + shift_of(coefficients, rows[place], mean)
        verdicts = self._verdicts(kernel, rows, labels, weight, expected, coefficients, place, bias)
        loss = "nothing" if self.hard_margin else "Σ C max(0, 1 − y f)"
        checks += [*verdict_checks(verdicts, loss), margin_check(self.margin_, verdicts)]
        if self.probability and hasattr(self, "link_"):
            again = self._fit_link(kernel, rows, labels, weight)
            checks.append(
                same(self.link_, again, "link", "the link has the best slopes for rows that its machines had not seen")
            )
        return Certificate(*checks, subject=repr(self))

    def _verdicts(self, kernel, rows, labels, weight, factors, coefficients, place, biases):
        """Judge each machine."""
        k, m = len(self.classes_), coefficients.shape[1]
        cap = self.C * factors[labels] * weight
        stored = np.zeros((len(labels), m))
        stored[place] = coefficients
        moved, members = np.zeros((len(labels), m)), []
        for p, (i, j) in enumerate(pairs_of(k)):
            which = np.flatnonzero((labels == i) | (labels == j))
            y = np.where(labels[which] == i, 1.0, -1.0)
            c = stored[which, p]
            largest = np.full(len(which), np.abs(c).max(initial=0.0)) if self.hard_margin else cap[which]
            moved[which, p] = one_sided(c, y, largest)
            members.append((which, y))
        ahead = kernel.prepare(rows.astype(float))
        scores = scores_of(kernel, ahead, ahead, np.hstack([stored, moved]))
        squared = squared_norms(kernel, rows, stored, scores[:, :m])
        verdicts = []
        for p, (which, y) in enumerate(members):
            given = (stored[which, p], scores[which, p], moved[which, p], scores[which, m + p], y)
            last = (float(biases[p]), float(squared[p]))
            judged = judge_hard_margin(*given, *last) if self.hard_margin else judge_classifier(*given, cap[which], *last)
            verdicts.append(judged)
        return verdicts
