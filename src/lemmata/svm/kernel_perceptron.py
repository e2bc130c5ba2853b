"""The kernel perceptron: learn from mistakes, and remember them instead of a plane.

In the features φ of a kernel, the weights of a perceptron that starts at zero are w = Σ cᵢyᵢφ(xᵢ), where cᵢ counts the mistakes
made at row i; so that ⟨w, φ(x)⟩ = Σ cᵢyᵢk(x, xᵢ) needs the mistakes and no features [1]. Visit the rows again and again, and
where yᵢf(xᵢ) ≤ δ, count: cᵢ ← cᵢ + 1. If some unit z has yᵢ⟨z, φ(xᵢ)⟩ ≥ γ > 0 for all rows, then after m mistakes
mγ ≤ ⟨z, w⟩ ≤ ‖w‖ ≤ √(m(R² + 2δ)), R² = max k(x, x); so there are at most (R² + 2δ)/γ² of them, in whatever order the rows come
(Novikoff). The averaged weights are those after each visit: with T visits, a mistake after t of them counts 1 − t/T; or all
weights that there ever were vote by their signs, each for as many visits as it was in use [2].
Certificate: the coefficients are the mistakes, an identity that leaves no room; ‖w‖² = cᵀYKYc keeps to its bound; the last
weights separate the rows, or zero lies in the hull of yᵢφ(xᵢ) and nothing does; the mistakes keep to Novikoff's bound, with the
margin of the weights that were found.

[1] Aizerman, Braverman & Rozonoer, Autom. Remote Control 25 (1964). [2] Freund & Schapire, Mach. Learn. 37 (1999).
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, same
from lemmata.core.estimator import Classifier, Iterative, as_output
from lemmata.core.random import generator
from lemmata.kernels import finite_features
from lemmata.kernels.sums import Reference, in_double, in_tiles, texts_of
from lemmata.linear_model.hard_margin import hard_margin
from lemmata.linear_model.perceptron import counted
from lemmata.linear_model.perceptron_certificate import WHOLE
from lemmata.linear_model.stochastic import signs_of
from lemmata.svm.kernel_mistakes import Gram, ballot_of, dual_of, epoch, start, votes_block
from lemmata.svm.kernel_vote import KERNEL_CONSTRAINTS, all_rows, named_kernel, same_kernel, same_rows

PROVED = 1000  # rows up to which an inseparable table is proved to be one


def scores_block(X, weight, reference):
    """Scores of a block, (n, K)."""
    return reference.sums(X)


def inseparable(K, signs):
    """Tell whether zero lies in the hull of yᵢφ(xᵢ), so that no function of the kernel has the signs on all rows."""
    return hard_margin(signs[:, None] * finite_features(K)).overlap


def _spread(counts, blocks):
    """Give counts of all rows of the table, zero for those without weight."""
    everyone = np.zeros((len(counts), blocks.n_table))
    everyone[:, blocks.numbers()] = counts
    return counted(everyone)


class KernelPerceptron(Iterative, Classifier):
    """Learn to separate classes by functions of a kernel, from mistakes; of more than two classes, each against the rest.

    Parameters
    ----------
    kernel : "rbf", "linear", "poly", "sigmoid", a kernel of `lemmata.kernels`, or a function of two tables. There is no
        intercept: with linear kernels add one, as in `Linear() + 1.0`.
    gamma : Parameter of the named kernels; "scale" is 1 / (columns · variance of all entries), "auto" is 1 / columns.
    degree : Degree of "poly".
    coef0 : Constant of "poly" and "sigmoid".
    margin : δ: a row with y·f(x) ≤ δ is a mistake.
    max_iter : Epochs at most. It stops after an epoch without mistakes, which comes if the classes are separable.
    shuffle : Whether rows are visited in random order rather than in that of the table.
    average : Whether to give the average of the weights after each visit instead of the last ones, which predicts better where
        the classes overlap, and need not separate them where they do not.
    voted : Whether all weights that there ever were vote by their signs, each as often as rows were visited with it, instead
        of the last ones alone; not together with `average`, which is nearly as good and costs less.
    random_state : Seed.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : Labels; with two classes, scores are positive for the second.
    kernel_ : The kernel.
    support_ : Numbers of the rows that were mistaken, the first of those that are equal.
    support_vectors_ : These rows, (s, d).
    dual_coef_ : Their coefficients, (K, s), or (1, s) for two classes.
    mistakes_ : How often each row was mistaken, (K, n) or (n,). Whole numbers, unless weights are not.
    mistake_times_ : With `average`, the visits before each mistake, summed, in the shape of `mistakes_`.
    ballot_ : With `voted`, the mistakes in their order and how long the weights after each were in use, a named tuple.
    n_mistakes_ : Sum of `mistakes_` of each problem.
    n_visits_ : Weight of the rows that each problem visited, a whole number of epochs.
    n_iter_ : Epochs.
    converged_ : Whether the last epoch had no mistakes.
    trace_ : Mistakes of each epoch.

    Examples
    --------
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, -1, -1]
    >>> model = KernelPerceptron(gamma=1.0, shuffle=False).fit(X, y)
    >>> model.predict(X), model.mistakes_
    (array([ 1,  1, -1, -1]), array([1, 1, 1, 1]))
    >>> model.certify(X, y).holds
    True
    """

    most_rows = 20_000
    _parameter_constraints = KERNEL_CONSTRAINTS | {
        "margin": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "average": ["boolean"],
        "voted": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=0.0,
        margin=0.0,
        max_iter=1000,
        shuffle=True,
        average=False,
        voted=False,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.margin = margin
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.average = average
        self.voted = voted
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _positive(self):
        """Return the number of the class that each binary problem calls positive."""
        return np.arange(len(self.classes_)) if len(self.classes_) > 2 else np.ones(1, dtype=int)

    def _lessons(self, blocks):
        """Return rows, signs (K, n) and weights."""
        X, numbers, weight = all_rows(blocks)
        signs = np.ascontiguousarray(signs_of(numbers, self._positive()).T)
        return X, signs, np.ones(len(numbers)) if weight is None else weight

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        if self.average and self.voted:
            raise ValueError("average and voted each say which weights to use: choose one of them.")
        blocks = self._labeled(X, y, sample_weight, reset=True)
        rows, signs, weight = self._lessons(blocks)
        self.kernel_ = named_kernel(self, rows, weight)
        gram = Gram(self.kernel_, rows)
        seed = int(generator(self.random_state).integers(2**32)) if self.shuffle else None

        def step(state):
            state = epoch(gram, signs, weight, float(self.margin), seed, state, self.voted)
            ended = not state.active.any() or state.epoch == self.max_iter  # what that means is said below
            return state, state.mistakes.sum(), 0.0 if ended else 1.0

        def fitted(state):
            dual = dual_of(rows, signs, state.counts, state.late if self.average else None, state.visits)
            found = {"support_": dual.support, "support_vectors_": dual.vectors, "dual_coef_": dual.coef}
            return found | ({"ballot_": ballot_of(state.log, rows, signs, state.visits, dual.support)} if self.voted else {})

        with self._fitting(blocks, X=X, y=y) as fitting:
            first = start(len(signs), len(weight))
            run = fitting.iterate(step, first, tol=0.0, monotone=None, name="KernelPerceptron", fitted=fitted)
        state = run.state
        for name, value in fitted(state).items():
            setattr(self, name, blocks.numbers()[value] if name == "support_" else value)
        self.mistakes_ = _spread(state.counts, blocks)
        for name in ("mistake_times_",) if self.voted else ("mistake_times_", "ballot_"):
            vars(self).pop(name, None)
        if self.average:
            self.mistake_times_ = _spread(state.late, blocks)
        self.n_mistakes_, self.n_visits_ = counted(state.counts.sum(axis=1)), counted(state.visits)
        self.n_iter_, self.trace_ = run.n_iter, run.trace
        self.converged_ = not state.active.any()
        if run.converged and not self.converged_:
            warnings.warn(self._unfinished(gram, signs, state), ConvergenceWarning, stacklevel=2)
        return self

    def _unfinished(self, gram, signs, state):
        """Say in one sentence why the mistakes did not end, and what to do."""
        told = f"KernelPerceptron still makes mistakes after {state.epoch} epochs"
        if self.kernel_.positive and len(gram.rows) <= PROVED:
            if any(inseparable(gram.whole, row) for row in signs[state.active]):
                return f"{told}, and always will, because no function of the kernel separates the classes; use average=True."
            return f"{told}, but the classes are separable; raise max_iter or gamma."
        return f"{told}; raise max_iter or gamma or, if nothing separates the classes, use average=True."

    def decision_function(self, X):
        """Give the score of the second class of two, (n,), or the scores of all classes, (n, K); votes are between −1 and 1."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        if self.voted:
            given = (self.kernel_, self.support_vectors_, self.ballot_, len(self._positive()))
            scores = in_tiles(blocks).map(votes_block, *given)
        else:
            scores = in_tiles(blocks).map(scores_block, Reference(self.kernel_, self.support_vectors_, self.dual_coef_.T))
        return as_output(scores[:, 0] if len(self.classes_) == 2 else scores, blocks.dtype)

    def predict(self, X):
        """Give each row the class with the highest score, the first of equals; the second of two if its score is positive."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the model is made of its mistakes, that it separates or nothing does, and bound the mistakes."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False)
        rows, signs, weight = self._lessons(blocks)
        present, n = blocks.numbers(), blocks.n_table
        names = ("mistakes_", "mistake_times_") if self.average else ("mistakes_",)
        kinds = [np.atleast_2d(getattr(self, name, 0)).astype(float) for name in names]
        visits = np.atleast_1d(self.n_visits_).astype(float)
        if any(kind.shape != (len(signs), n) for kind in kinds) or visits.shape != (len(signs),):
            claim = "there is a count of mistakes for every row, as `fit` keeps them"
            return Certificate(Check("counts", np.inf, SAME_LIMIT, "proof", claim), subject=repr(self))
        absent = sum(float(np.abs(np.delete(kind, present, axis=1)).sum()) for kind in kinds)
        counts, *late = [kind[:, present] for kind in kinds]
        checks = self._identity_checks(rows, signs, weight, counts, late[0] if late else None, visits, absent, present)
        if self.voted:
            checks += ballot_checks(self.ballot_, self.support_vectors_, signs, counts, visits, rows, weight)
        kernel = named_kernel(self, rows, weight)
        checks.append(same_kernel(self.kernel_, kernel, in_double(rows)))
        checks += separation_checks(kernel, rows, signs, counts, float(self.margin))
        return Certificate(*checks, subject=repr(self))

    def _identity_checks(self, X, signs, weight, counts, late, visits, absent, present):
        """Check that the model is what its mistakes make of it, and that these are counts."""
        stated = np.atleast_1d(self.n_mistakes_).astype(float)
        wrong = absent + float(np.maximum(-counts, 0.0).sum() + np.abs(counts.sum(axis=1) - stated).sum())
        if (weight == np.rint(weight)).all():
            wrong += float(np.abs(counts - np.rint(counts)).sum())
        epochs = np.maximum(visits / weight.sum(), TINY)
        partial = float((np.abs(epochs - np.maximum(np.rint(epochs), 1.0)) / epochs).max())
        dual = dual_of(X, signs, counts, late, visits)
        claim = "the coefficients are the mistakes of the rows"
        moved = not np.array_equal(np.asarray(self.support_), present[dual.support])
        return [
            same(self.dual_coef_, dual.coef, "representation", claim, floor=WHOLE * float(counts.max(initial=1.0))),
            same_rows(self.support_vectors_, dual.vectors),
            Check("support", float(moved), 0.0, "proof", "the support is the rows that were mistaken"),
            Check("counts", wrong / max(float(counts.sum()), 1.0), WHOLE, "proof", "the mistakes are counts, and add up"),
            Check("visits", partial, WHOLE, "proof", "the rows were visited a whole number of times"),
        ]


def separation_checks(kernel, X, signs, counts, margin):
    """Check the length of the last weights, that they separate or nothing does, and that the mistakes keep to their bound."""
    scores = Reference(kernel, X, (signs * counts).T).sums(X).T
    square = float(np.max(kernel.diag(X)))
    mistakes = counts.sum(axis=1)
    lengths = np.einsum("ki,ki->k", signs * counts, scores)  # ‖w‖² of each problem
    reach = signs * scores
    apart = (reach > margin).all(axis=1)
    unsettled, used = 0, 0.0
    small = X.shape[0] <= PROVED
    for k in range(len(signs)):
        if apart[k]:
            used = max(used, mistakes[k] * max(reach[k].min(), 0.0) ** 2 / max(lengths[k] * (square + 2 * margin), TINY))
        elif small and kernel.positive:
            unsettled += not inseparable(kernel(X), signs[k])
        else:
            unsettled += 1
    growth = float((lengths / np.maximum(mistakes * (square + 2 * margin), TINY)).max())
    limit = 0.0 if small and kernel.positive else np.inf  # beyond, no proof that nothing separates is tried
    return [
        Check("length", growth, 1 + WHOLE, "proof", "the squared length of the weights is at most m(R² + 2δ)"),
        Check("separation", float(unsettled), limit, "proof", "the classes are separated, or nothing separates them"),
        Check("mistake bound", used, 1 + WHOLE, "proof", "no more mistakes than (R² + 2δ)/γ²"),
    ]


def ballot_checks(ballot, vectors, signs, counts, visits, X, weight):
    """Check that the mistakes in their order are those that were counted, and that the weights were in use for all visits."""
    n_problems, s = len(signs), vectors.shape[0]
    problems, rows, shares, lives = (np.asarray(part) for part in ballot)
    inside = all(len(part) and part.min() >= 0 and part.max() < top for part, top in ((problems, n_problems), (rows, s)))
    claim = "the mistakes in their order are those that were counted"
    if not inside or len({len(part) for part in ballot}) > 1:
        return [Check("ballot", np.inf, SAME_LIMIT, "proof", claim)]
    places = {text: place for place, text in enumerate(texts_of(vectors))}
    own = np.array([places.get(text, -1) for text in texts_of(X)])
    expected, found = np.zeros((2, n_problems, s))
    mistaken = own >= 0
    for k in range(n_problems):
        expected[k] = np.bincount(own[mistaken], weights=(signs[k] * counts[k])[mistaken], minlength=s)
        found[k] = np.bincount(rows[problems == k], weights=shares[problems == k], minlength=s)
    used = np.bincount(problems, weights=lives, minlength=n_problems)
    wrong = float(np.maximum(-lives, 0.0).sum())
    if (weight == np.rint(weight)).all():
        wrong += float(np.abs(lives - np.rint(lives)).sum())
    return [
        same(found, expected, "ballot", claim, floor=WHOLE * float(counts.max(initial=1.0))),
        same(used, visits, "lives", "the weights were in use for all visits"),
        Check("whole lives", wrong / max(float(visits.sum()), 1.0), WHOLE, "proof", "each for some of them"),
    ]
