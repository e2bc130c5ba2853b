"""`BernoulliNB`: rows of zeros and ones, with a chance of a one for each column and class.

    log p(x|c) = Σⱼ xⱼ log pcj + (1 − xⱼ) log(1 − pcj) = Σⱼ log(1 − pcj) + Σ_{j: xⱼ=1} (log pcj − log(1 − pcj)),

so a sparse row costs what it stores. A missing entry takes its share log(1 − pcj) out of the first sum. `counting` says what is
fitted and why the certificate proves it.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval

from lemmata.core.data import is_sparse
from lemmata.core.generative import same_entries, same_logs
from lemmata.naive_bayes.counting import CONSTRAINTS, CountingNB, coarse, split
from lemmata.naive_bayes.counts import class_weights, dense_holes, dense_ones, sparse_products, sparse_sums

ROUNDED = 1e-8  # of a class, what is left of it where nothing is seen: its weight less that of the holes


class Chances(NamedTuple):
    """Logarithms of the chances as rows are read, and the same for what is impossible (None: nothing is)."""

    threshold: float
    strict: bool
    zero: np.ndarray  # (k,), sum over the columns of the logarithm of a zero
    odds: np.ndarray  # (d, k), by how much a one is more than a zero
    hole: np.ndarray  # (d, k), by how much a hole is more than a zero
    never: "Chances | None"


def read(X, threshold, strict):
    """Give stored entries as ones and zeros (float), and where they are missing (None: nowhere)."""
    values = X.data if is_sparse(X) else X
    holes = np.isnan(values) if values.size and np.isnan(values.min()) else None
    if strict:
        known = values if holes is None else np.where(holes, 0.0, values)
        strange = np.count_nonzero((known != 0) & (known != 1))
        if strange:
            raise ValueError(
                f"With binarize=None X must hold 0 and 1 only, but {strange} entries are neither: give the threshold above "
                "which an entry counts as one."
            )
    return values > threshold, holes


def count_block(X, y, weight, k, threshold, strict):
    """Weight of each class, of its ones in each column, and of its holes (0.0: there are none)."""
    if is_sparse(X):
        ones, holes = read(X, threshold, strict)
        counts = np.zeros((k, X.shape[1]))
        sparse_sums(ones, X.indices, X.indptr, y, weight, counts)
        missing = 0.0
        if holes is not None:
            missing = np.zeros_like(counts)
            sparse_sums(holes, X.indices, X.indptr, y, weight, missing)
        return class_weights(y, weight, k), counts, missing
    if strict:
        read(X, threshold, strict)
    missing = dense_holes(X, y, weight, k) if np.isnan(X.min()) else 0.0
    return *dense_ones(X, y, weight, k, threshold), missing


def likelihood_block(X, chances):
    """Logarithms of p(x|c) for the rows of a block."""
    ones, holes = read(X, chances.threshold, chances.strict)
    found = _sums(X, ones, holes, chances)
    if chances.never is not None:
        found[_sums(X, ones, holes, chances.never) > 0.5] = -np.inf  # a number of impossible entries
    return found


def _sums(X, ones, holes, chances):
    if not is_sparse(X):
        found = ones.astype(float) @ chances.odds
        return found + chances.zero if holes is None else found + (holes.astype(float) @ chances.hole + chances.zero)
    found, _ = sparse_products(ones, X.indices, X.indptr, chances.odds)
    if holes is not None:
        found += sparse_products(holes, X.indices, X.indptr, chances.hole)[0]
    return found + chances.zero


class BernoulliNB(CountingNB):
    """Classify rows of zeros and ones by Bayes' rule, as if columns were independent within a class.

    Missing entries (NaN) are summed over, which is exact as long as an entry's absence has nothing to do with its value. A
    sparse table stays sparse; what it does not store is a zero, and a stored NaN is missing.

    Parameters
    ----------
    alpha : Imaginary zeros, and as many ones, in each class; one number, or one for each column. 0 is maximum likelihood.
    force_alpha : Whether alpha may be 0; otherwise it is raised to 1e-10, as in scikit-learn.
    binarize : Larger entries count as one, others as zero; None where X holds zeros and ones only.
    fit_prior : Whether classes have their shares for a prior, or the uniform one.
    class_prior : Probabilities of the classes, where they are known.

    Attributes
    ----------
    classes_ : (K,), labels.
    class_count_ : (K,), weight of each class.
    feature_count_ : (K, d), weight of the ones.
    seen_count_ : (K, d), weight of the entries that are not missing.
    class_log_prior_ : (K,), logarithms of the prior.
    feature_log_prob_ : (K, d), logarithms of the chance of a one.

    Examples
    --------
    >>> X = [[1, 0, 1], [1, 1, 1], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
    >>> y = ["in", "in", "in", "out", "out"]
    >>> model = BernoulliNB().fit(X, y)
    >>> import numpy as np
    >>> np.exp(model.feature_log_prob_)
    array([[0.6 , 0.4 , 0.8 ],
           [0.25, 0.5 , 0.25]])
    >>> model.predict([[1, float("nan"), 1]]), model.predict_proba([[1, float("nan"), 1]]).round(2)
    (array(['in'], dtype='<U3'), array([[0.92, 0.08]]))
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = CONSTRAINTS | {"binarize": [Interval(Real, None, None, closed="both"), None]}
    _likelihood_block = staticmethod(likelihood_block)

    def __init__(self, *, alpha=1.0, force_alpha=True, binarize=0.0, fit_prior=True, class_prior=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _checked(self, X):
        blocks = super()._checked(X)
        self._refuse(blocks)
        return blocks

    def _refuse(self, blocks):
        if self.binarize is not None and self.binarize < 0 and is_sparse(blocks.first()[0]):
            raise ValueError("A sparse table takes no negative binarize: what it does not store would count as one.")

    def _threshold(self):
        return (0.5, True) if self.binarize is None else (float(self.binarize), False)

    def _tally(self, blocks):
        self._refuse(blocks)
        totals, ones, missing = coarse(blocks, len(self.classes_)).reduce(count_block, len(self.classes_), *self._threshold())
        return totals, ones, totals[:, None] - missing

    def _kept(self):
        return self.class_count_, self.feature_count_, self.seen_count_

    def _keep(self, statistics):
        self.feature_log_prob_ = self._smoothed(statistics)
        _, self.feature_count_, seen = statistics
        self.seen_count_ = np.broadcast_to(seen, self.feature_count_.shape).copy()

    def _smoothed(self, statistics):
        """Logarithms of the chance of a one."""
        _, ones, seen = statistics
        alpha = self._pseudo_counts()
        one, zero = ones + alpha, seen - ones + alpha
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = -np.log1p(zero / one)  # of which the chance of a zero can be had back to the last digit
        return np.where(one + zero > 0, logs, -np.log(2))

    def _tables(self):
        logs = np.asarray(self.feature_log_prob_, dtype=float)
        (one, never_one), (zero, never_zero) = split(logs), split(_of_zeros(logs))
        never = None
        if never_one is not None or never_zero is not None:
            never_one, never_zero = (np.zeros_like(logs) if n is None else n for n in (never_one, never_zero))
            never = _chances(*self._threshold(), never_one, never_zero, None)
        return _chances(*self._threshold(), one, zero, never)

    def _draw(self, labels, rng):
        return (rng.random((len(labels), self.n_features_in_)) < np.exp(self.feature_log_prob_)[labels]).astype(np.int64)

    def _checks(self, statistics):
        totals, ones, seen = statistics
        seen = np.broadcast_to(seen, ones.shape)
        units = np.maximum(seen, ROUNDED * totals[:, None])
        return [
            same_entries(self.feature_count_, ones, "counts", "the weight of the ones of each class and column"),
            same_entries(self.seen_count_, seen, "seen", "the weight of the entries that are not missing", units),
            same_logs(self.feature_log_prob_, self._smoothed(statistics), "chances", "the chances are smoothed counts"),
        ]

    def __sklearn_tags__(self):
        """Sparse tables too."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _of_zeros(logs):
    """Turn logarithms of chances of a one into those of a zero, exact where a chance is almost 0 or almost 1."""
    with np.errstate(divide="ignore"):
        return np.where(logs > -np.log(2), np.log(-np.expm1(logs)), np.log1p(-np.exp(logs)))


def _chances(threshold, strict, one, zero, never):
    return Chances(
        threshold, strict, zero.sum(axis=1), np.ascontiguousarray((one - zero).T), np.ascontiguousarray(-zero.T), never
    )
