"""The kernel vote: every row of the training table votes for its class, the louder the more similar it is.

A row x gets the class c with the largest vote Σᵢ sᵢ k(x, xᵢ) over the rows xᵢ of class c with weights sᵢ; for two classes ±1
that is the sign of Σᵢ yᵢ sᵢ k(x, xᵢ). With k(x, z) = exp(−γ‖x − z‖²) it is a soft form of nearest neighbors: as γ → ∞ the
nearest row outvotes all others, as γ → 0 all votes are alike and the majority wins. If k is not negative, the shares of the
votes are probabilities: those of Bayes' rule with a kernel density estimate of each class [1]. They are computed from
logarithms, so that far from all rows, or with a large γ, they are those of the nearest row and not 0/0.
Certificate: the model is its rows and their votes; both are added up again from the data.

[1] Hastie, Tibshirani & Friedman, The Elements of Statistical Learning (2009), section 6.6.
"""

from collections.abc import Callable
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length, same
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Classifier, as_output
from lemmata.kernels import Kernel, choose_kernel
from lemmata.kernels.choice import NAMES
from lemmata.kernels.sums import Reference, distinct, in_double, in_tiles

SAMPLED = 64  # rows on which two kernels are compared
KERNEL_CONSTRAINTS = {
    "kernel": [StrOptions(set(NAMES)), Kernel, Callable],
    "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0, None, closed="neither")],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
}


def all_rows(blocks):
    """Return all rows, wherever they live, as arrays in memory: (X, target, weights or None)."""
    X, target, weight = blocks.whole()
    return X, np.asarray(target), None if weight is None else np.asarray(weight, dtype=float)


def named_kernel(model, X, weight):
    """Return the kernel that the parameters of a model name for these rows."""
    return choose_kernel(model.kernel, in_double(X), weight, gamma=model.gamma, degree=model.degree, coef0=model.coef0)


def same_rows(stored, rows):
    """Check stored rows, dense or sparse, against those of the data."""
    claim = "the stored rows are the different rows of the data"
    if not is_sparse(stored) and not is_sparse(rows):
        return same(stored, rows, "rows", claim)
    if not (is_sparse(stored) and is_sparse(rows)) or stored.shape != rows.shape:
        return Check("rows", np.inf, SAME_LIMIT, "proof", claim)
    value = length((stored - rows).data.astype(float)) / max(length(rows.data.astype(float)), TINY)
    return Check("rows", value, SAME_LIMIT, "proof", claim)


def same_kernel(stored, kernel, X):
    """Check a stored kernel against that which the parameters name, on some rows."""
    X = X[:: -(-X.shape[0] // SAMPLED)]
    return same(stored(X), kernel(X), "kernel", "the kernel is the one that the parameters name")


def votes_of(X, numbers, weight, n_classes):
    """Return the different rows, (m, d), and the weight with which each of them was seen in each class, (m, k)."""
    first, group = distinct(X)
    votes = np.bincount(group * n_classes + numbers, weights=weight, minlength=len(first) * n_classes)
    return X[first], votes.reshape(len(first), n_classes).astype(float)


def shares_block(X, weight, reference, prior):
    """Shares of the classes in the votes of a block, (n, k); those of all rows where no row is similar at all."""
    votes = reference.soft_sums(X)
    total = votes.sum(axis=1, keepdims=True)
    return np.divide(votes, total, out=np.broadcast_to(prior, votes.shape).copy(), where=total > 0)


def sums_block(X, weight, reference, prior):
    """Votes of a block, (n, k); the shares in all rows where no row is similar at all."""
    votes = reference.sums(X)
    return np.where(votes.any(axis=1, keepdims=True), votes, prior)


def _has_shares(model):
    """Tell whether votes are never negative, as far as one knows; otherwise say why there are no probabilities."""
    kernel = getattr(model, "kernel_", None)
    if kernel is None:
        kernel = choose_kernel(model.kernel, np.ones((1, 1)), degree=model.degree, coef0=model.coef0)
    if kernel.nonnegative is False:
        raise AttributeError(f"Votes of {kernel!r} may be negative and are no probabilities; use a kernel such as RBF.")
    return True


class KernelVoteClassifier(Classifier):
    """Give each row the class whose rows are most similar to it in sum.

    Parameters
    ----------
    kernel : "rbf", "linear", "poly", "sigmoid", a kernel of `lemmata.kernels`, or a function of two tables.
    gamma : Parameter of the named kernels; "scale" is 1 / (columns · variance of all entries), "auto" is 1 / columns.
    degree : Degree of "poly".
    coef0 : Constant of "poly" and "sigmoid".

    Attributes
    ----------
    classes_ : Labels.
    kernel_ : The kernel.
    X_train_ : The different rows of the table, (m, d).
    votes_ : Weight of each of them in each class, (m, k).

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [4.0]], ["a", "a", "b"]
    >>> model = KernelVoteClassifier(gamma=1.0).fit(X, y)
    >>> model.predict_proba([[2.5], [1000.0]]).round(6)
    array([[0.504537, 0.495463],
           [0.      , 1.      ]])
    >>> model.certify(X, y).holds
    True
    """

    most_rows = 20_000
    _parameter_constraints = KERNEL_CONSTRAINTS

    def __init__(self, kernel="rbf", *, gamma="scale", degree=3, coef0=0.0):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Keep the different rows X and their votes for the classes y; a weight means repetition."""
        rows, numbers, weight = all_rows(self._labeled(X, y, sample_weight, reset=True))
        self.kernel_ = named_kernel(self, rows, weight)
        self.X_train_, self.votes_ = votes_of(rows, numbers, weight, len(self.classes_))
        return self

    def _scores(self, X):
        """Return shares of the votes, or the votes themselves if the kernel may be negative; in the precision of X."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        reference = Reference(self.kernel_, self.X_train_, self.votes_)
        block = shares_block if self.kernel_.nonnegative else sums_block
        values = in_tiles(blocks).map(block, reference, self.votes_.sum(axis=0) / self.votes_.sum())
        return as_output(values, blocks.dtype)

    @available_if(_has_shares)
    def predict_proba(self, X):
        """Give the share of each class in the votes; where no row of the table is similar, its share in the table."""
        values = self._scores(X)
        if self.kernel_.nonnegative:
            return values
        if (values < 0).any():
            raise ValueError("Some votes are negative and are no probabilities; use a kernel such as RBF.")
        return values / values.sum(axis=1, keepdims=True)

    def decision_function(self, X):
        """Give the vote for each class, (n, k), or that for the second of two less that for the first, (n,).

        Votes are given as shares, so that a row far from all others has votes too, unless the kernel may be negative.
        """
        values = self._scores(X)
        return values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X):
        """Give each row the class with the largest vote, the first of equals."""
        values = self._scores(X)
        return self.classes_[values.argmax(axis=1)]

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the rows, their votes and the kernel are those of the data."""
        check_is_fitted(self)
        rows, numbers, weight = all_rows(self._labeled(X, y, sample_weight, reset=False))
        expected, votes = votes_of(rows, numbers, weight, len(self.classes_))
        return Certificate(
            same_rows(self.X_train_, expected),
            same(self.votes_, votes, "votes", "each row votes for its classes with its weight"),
            same_kernel(self.kernel_, named_kernel(self, rows, weight), in_double(expected)),
            subject=repr(self),
        )
