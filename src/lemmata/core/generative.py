"""Classifiers with a law of rows and classes together: all that follows from log p(x, y).

Bayes' rule gives P(y|x) = p(x, y)/p(x), p(x) = Σy p(x, y). A kind of model says what log p(x, y) is for the rows of a block;
here is what follows from it: the most probable class and how probable each is, the density of a row, draws of both, and the
protocol of `partial_fit`.

A row that no class can have made, or that lies beyond all numbers, has log p(x, y) = −∞ for every y. It says nothing about its
class, so its posterior is the prior.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import SAME_LIMIT, TINY, Check
from lemmata.core.data import Array, is_stored
from lemmata.core.estimator import NO_TARGET, Classifier, as_output
from lemmata.core.kernel import kernel
from lemmata.core.random import generator

CLOSE = 1e-6  # logarithms further apart belong to probabilities that differ even in single precision
ROUNDED = 1e-5  # what priors may lack that were written down in a few digits


@kernel
def largest_places(joint: Array, close: float) -> tuple[Array, Array]:
    """Place of the largest entry of each row, the first of equals, and whether another comes as close, or all are −∞."""
    n, k = joint.shape
    places, doubtful = np.empty(n, np.int64), np.empty(n, np.bool_)
    for i in range(n):
        place, top, second = 0, joint[i, 0], -np.inf
        for c in range(1, k):
            v = joint[i, c]
            if v > top:
                place, top, second = c, v, top
            elif v > second:
                second = v
        places[i] = place
        doubtful[i] = not second < top - close
    return places, doubtful


@kernel
def below_largest(joint: Array, prior: Array) -> Array:
    """Subtract from each row its largest entry; a row that no class can have made becomes the prior. Return those maxima."""
    n, k = joint.shape
    largest = np.empty(n)
    for i in range(n):
        top = -np.inf
        for c in range(k):
            top = max(top, joint[i, c])
        largest[i] = top
        if top == -np.inf:
            top = 0.0
            for c in range(k):
                joint[i, c] = prior[c]
        for c in range(k):
            joint[i, c] -= top
    return largest


@kernel
def row_sums(a: Array) -> Array:
    """Sum the rows of a table with few columns."""
    n, k = a.shape
    out = np.empty(n)
    for i in range(n):
        total = 0.0
        for c in range(k):
            total += a[i, c]
        out[i] = total
    return out


def normalize(joint: Array, prior: Array) -> Array:
    """Turn logarithms of joint probabilities into probabilities of the classes, in place."""
    below_largest(joint, prior)
    np.exp(joint, out=joint)
    joint /= row_sums(joint)[:, None]
    return joint


def posterior_block(X: Any, weight: Any, scores: Any, params: Any, prior: Array) -> Array:
    """P(y|x) of the rows of a block; `scores` is the function of it that gives log p(x, y), up to what all classes share."""
    return normalize(scores(X, weight, *params), prior)


def log_posterior_block(X: Any, weight: Any, scores: Any, params: Any, prior: Array) -> Array:
    """Log P(y|x) of the rows of a block, exact also where the probability rounds to 0."""
    joint = scores(X, weight, *params)
    below_largest(joint, prior)
    joint -= np.log(row_sums(np.exp(joint)))[:, None]
    return joint


def label_block(X: Any, weight: Any, scores: Any, params: Any, prior: Array, dtype: Any) -> Array:
    """Number of the most probable class; among those that come close, of the probabilities as they are given away."""
    joint = scores(X, weight, *params)
    labels, doubtful = largest_places(joint, CLOSE)
    if doubtful.any():
        labels[doubtful] = as_output(normalize(joint[doubtful], prior), dtype).argmax(axis=1)
    return labels


def marginal_block(X: Any, weight: Any, law: Any, params: Any, prior: Array) -> Array:
    """Log p(x) of the rows of a block."""
    joint = law(X, weight, *params)
    largest = below_largest(joint, prior)
    return largest + np.log(row_sums(np.exp(joint)))


def same_entries(stored: Any, recomputed: Any, name: str, claim: str, units: Any = None) -> Check:
    """Check parameters entry by entry, each relative to itself or to units of its own: no large one hides a small one."""
    a, b = np.asarray(stored, dtype=float), np.asarray(recomputed, dtype=float)
    if a.shape != b.shape:
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    sizes = np.maximum(np.abs(b) if units is None else units, TINY)
    return Check(name, float((np.abs(a - b) / sizes).max(initial=0.0)), SAME_LIMIT, "proof", claim)


def same_logs(stored: Any, recomputed: Any, name: str, claim: str, units: Any = 1.0) -> Check:
    """Check logarithms, and so every probability relative to itself; what is infinite must stand in the same places."""
    a, b = np.asarray(stored, dtype=float), np.asarray(recomputed, dtype=float)
    if a.shape != b.shape or not np.array_equal(a[np.isinf(a)], b[np.isinf(a)]):
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    return same_entries(np.where(np.isinf(a), 0.0, a), np.where(np.isinf(a), 0.0, b), name, claim, units)


def class_shares(priors: Any, counts: Array, name: str = "priors") -> Array:
    """Give the probabilities of the classes: those given, or the shares of the classes in the rows.

    Examples
    --------
    >>> class_shares(None, np.array([1.0, 3.0])), class_shares([0.5, 0.5], np.array([1.0, 3.0]))
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    if priors is None:
        return np.asarray(counts / counts.sum())
    try:
        found = np.array(priors, dtype=float)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if found.shape != counts.shape or not ((found >= 0).all() and abs(found.sum() - 1.0) < ROUNDED):
        raise ValueError(
            f"{name} must hold {len(counts)} numbers, one for each class, that are at least 0 and sum to 1 (divide them by "
            f"their sum); got {priors!r}."
        )
    return np.asarray(found / found.sum())


class GenerativeClassifier(Classifier):
    """Base of classifiers that know log p(x, y); a kind of model has these methods, and `class_count_` once it is fitted.

    Methods
    -------
    _law() : Function of a block (X, weight, *params) that gives log p(x, y), (rows, classes), and its params.
    _scores() : The same, up to a summand of each row, which Bayes' rule does not need; if that is cheaper.
    _log_priors() : Logarithms of the probabilities of the classes.
    _draw(labels, rng, **options) : A row for each number of a class.
    _encoded(X, reset) : The table with numbers in place of names, where a model takes names.
    """

    generative = True

    def predict(self, X: Any) -> Array:
        """Give each row its most probable class; ties go to the first."""
        blocks = self._checked(X)
        return np.asarray(self.classes_[blocks.map(label_block, *self._bayes(), blocks.dtype)])

    def predict_proba(self, X: Any) -> Array:
        """Give P(y|x) for each row and class, (n, K)."""
        blocks = self._checked(X)
        return as_output(blocks.map(posterior_block, *self._bayes()), blocks.dtype)

    def predict_log_proba(self, X: Any) -> Array:
        """Give log P(y|x) for each row and class, (n, K)."""
        blocks = self._checked(X)
        logs = as_output(blocks.map(log_posterior_block, *self._bayes()), blocks.dtype)
        logs[np.abs(logs) < np.finfo(logs.dtype).epsneg / 2] = 0.0  # a probability that rounds to 1
        return logs

    def joint_log_likelihood(self, X: Any) -> Array:
        """Give log p(x, y) for each row and class, (n, K). What is missing of a row is integrated out."""
        blocks = self._checked(X)
        function, *params = self._law()
        return as_output(blocks.map(function, *params), blocks.dtype)

    def score_samples(self, X: Any) -> Array:
        """Give log p(x) for each row, the density of what is seen of it under all classes together."""
        blocks = self._checked(X)
        function, *params = self._law()
        return as_output(blocks.map(marginal_block, function, params, self._log_priors()), blocks.dtype)

    def sample(self, n_samples: Any = 1, random_state: Any = None) -> tuple[Array, Array]:
        """Draw rows and their classes from the joint law; return (X, y)."""
        return self._sample(n_samples, random_state)

    def _sample(self, n_samples: Any, random_state: Any, **options: Any) -> tuple[Array, Array]:
        check_is_fitted(self)
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}.")
        rng = generator(random_state)
        chances = np.exp(self._log_priors())
        labels = rng.choice(len(chances), size=n_samples, p=chances / chances.sum())
        return self._draw(labels, rng, **options), self.classes_[labels]

    def _law(self) -> Any:
        raise NotImplementedError

    def _scores(self) -> Any:
        return self._law()

    def _log_priors(self) -> Array:
        raise NotImplementedError

    def _draw(self, labels: Array, rng: Any, **options: Any) -> Array:
        raise NotImplementedError

    def _encoded(self, X: Any, *, reset: bool) -> Any:
        return X

    def _bayes(self) -> tuple[Any, Any, Array]:
        """Give what the functions of blocks ask for: scores, their params, and the prior."""
        function, *params = self._scores()
        return function, params, self._log_priors()

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """Leave a model whose rows or parameters are refused as it was."""
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _checked(self, X: Any) -> Blocks:
        check_is_fitted(self, "class_count_")
        return self._blocks(self._encoded(X, reset=False), reset=False, order="C")

    def _rows_of_classes(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Blocks:
        """Give labeled blocks for a fit or a certificate."""
        return self._labeled(self._encoded(X, reset=reset), y, sample_weight, reset=reset, order="C")

    def _more(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Blocks:
        """Give labeled blocks of rows that come later; those of the first call come with the names of all classes."""
        first = not hasattr(self, "class_count_")
        if first and classes is None:
            raise ValueError("The first call of partial_fit must name all classes that will ever come: classes=….")
        named: Any = None if classes is None else unique_labels(classes)
        if not first and named is not None and not np.array_equal(named, self.classes_):
            raise ValueError(f"classes={named.tolist()} is not the same as in the first call: {self.classes_.tolist()}.")
        X = self._encoded(X, reset=first)
        if first:
            if len(named) < 2:
                raise ValueError(f"classes must name at least two classes, got {named.tolist()}.")
            # The target of a stored table is one of its columns, and none to learn from.
            self._blocks(X, y if is_stored(X) else NO_TARGET, sample_weight, reset=True, labels=True)
            self.classes_ = named
        return self._labeled(X, y, sample_weight, reset=False, order="C")
