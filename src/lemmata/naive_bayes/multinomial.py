"""`MultinomialNB`: rows of counts, such as how often each word occurs in a text.

Given its class c and its length n = Σⱼ xⱼ, a row counts n independent draws from the probabilities θc over the columns:

    log p(x|c, n) = Σⱼ xⱼ log θcj + log n! − Σⱼ log xⱼ!,     θcj = (Tcj + αⱼ) / Σⱼ (Tcj + αⱼ),

with Tcj the weighted sum of column j over the rows of the class. What does not depend on c plays no part in a prediction.
`counting` says why the certificate proves the fit, and `missing_counts` what becomes of missing counts.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from lemmata.core.certificate import SAME_LIMIT, Check
from lemmata.core.data import is_sparse
from lemmata.core.generative import same_entries, same_logs
from lemmata.naive_bayes.counting import CONSTRAINTS, CountingNB, coarse, excess, logarithms, split
from lemmata.naive_bayes.counts import class_weights, dense_sums, sparse_products, sparse_sums
from lemmata.naive_bayes.missing_counts import Patterns, maximum, patterns_of, step, telling


class Words(NamedTuple):
    """Logarithms of the probabilities with 0 for −∞ (d, k), where that is (None: nowhere), and the probabilities."""

    logs: np.ndarray
    never: np.ndarray | None
    theta: np.ndarray


def known(X):
    """Give the stored counts without holes, and where holes are (None: nowhere); refuse negative counts."""
    values = X.data if is_sparse(X) else X
    if not values.size or values.min() >= 0:
        return values, None
    lowest = np.fmin.reduce(values, axis=None)
    if lowest < 0:
        raise ValueError(f"Negative values in data passed to MultinomialNB: counts are at least 0, and one is {lowest:g}.")
    holes = np.isnan(values)
    return np.where(holes, values.dtype.type(0), values), holes


def count_block(X, y, weight, k):
    """Weight of each class, sums of its counts in each column, and the patterns of its holes."""
    if is_sparse(X):
        totals, sums = class_weights(y, weight, k), np.zeros((k, X.shape[1]))
        if not sparse_sums(X.data, X.indices, X.indptr, y, weight, sums):
            return totals, sums, Patterns()
        sums[:] = 0.0
    values, holes = known(X)
    if is_sparse(X):
        sparse_sums(values, X.indices, X.indptr, y, weight, sums)
    else:
        totals, sums = dense_sums(values, y, weight, k)
    if holes is None:
        return totals, sums, Patterns()
    rows, columns = _places(X, holes)
    seen = _row_totals(X, values) * (1.0 if weight is None else weight)
    return totals, sums, patterns_of(rows, columns, seen, y, k)


def likelihood_block(X, words):
    """Logarithms of p(x|c) for the rows of a block, up to the coefficient; of what is seen, where something is missing."""
    values, holes = (X.data, None) if is_sparse(X) else known(X)
    found, strange = _products(X, values, words.logs)
    if strange:
        values, holes = known(X)
        found, _ = _products(X, values, words.logs)
    if holes is not None:
        # What is missing has a share of the probability, and what is seen the rest.
        if is_sparse(X):
            rest = np.maximum(1.0 - sparse_products(holes, X.indices, X.indptr, words.theta)[0], 0.0)
        else:
            rest = np.where(holes.any(axis=1)[:, None], (~holes).astype(float) @ words.theta, 1.0)
        total = _row_totals(X, values)[:, None]
        found -= np.where(total > 0, total * logarithms(np.where(rest > 0, rest, 1.0)), 0.0)
    if words.never is not None:
        found[_products(X, values, words.never)[0] > 0] = -np.inf
    return found


def coefficient_block(X):
    """Logarithms of n!/Πⱼ xⱼ!, in how many orders the draws of a row can have come."""
    values, _ = known(X)
    total = _row_totals(X, values)
    logs = gammaln(values.astype(float) + 1.0)
    return gammaln(total + 1.0) - _row_totals(X, logs)


def _products(X, values, table):
    """Inner products of the rows with the columns of a table, and how many stored entries are none to be multiplied."""
    if is_sparse(X):
        return sparse_products(values, X.indices, X.indptr, table)
    return values.astype(float, copy=False) @ table, 0


def _row_totals(X, values):
    """Sum the rows, given the values that a table stores."""
    if not is_sparse(X):
        return values.sum(axis=1, dtype=float)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return np.bincount(rows, weights=values, minlength=X.shape[0])


def _places(X, holes):
    """Rows and columns of holes, row by row."""
    if not is_sparse(X):
        return np.nonzero(holes)
    return np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[holes], X.indices[holes]


class MultinomialNB(CountingNB):
    """Classify rows of counts by Bayes' rule, as if every count were a sum of independent draws.

    Fractions (such as weights of words) are read as counts too. A sparse table stays sparse. Missing counts (NaN) are summed
    over: what is seen of a row has the probabilities of the seen columns, divided by their sum, in a fit as in a prediction.
    That is exact as long as a count's absence has nothing to do with its value, and the length of the row is not known
    otherwise.

    Parameters
    ----------
    alpha : Imaginary draws of each column in each class; one number, or one for each column. 0 is maximum likelihood.
    force_alpha : Whether alpha may be 0; otherwise it is raised to 1e-10, as in scikit-learn.
    fit_prior : Whether classes have their shares for a prior, or the uniform one.
    class_prior : Probabilities of the classes, where they are known.

    Attributes
    ----------
    classes_ : (K,), labels.
    class_count_ : (K,), weight of each class.
    feature_count_ : (K, d), weighted sums of the counts.
    class_log_prior_ : (K,), logarithms of the prior.
    feature_log_prob_ : (K, d), logarithms of the probabilities of the columns.

    Notes
    -----
    A table with holes takes iterations to fit, over the different patterns of holes and not over the rows.
    `joint_log_likelihood` and `score_samples` are given the length of the row, as the model is; for fractions they have no
    meaning as probabilities.

    Examples
    --------
    >>> X = [[3, 0, 1], [2, 1, 0], [0, 2, 2], [0, 1, 4]]
    >>> y = ["tea", "tea", "ink", "ink"]
    >>> model = MultinomialNB().fit(X, y)
    >>> import numpy as np
    >>> np.exp(model.feature_log_prob_).round(3)
    array([[0.083, 0.333, 0.583],
           [0.6  , 0.2  , 0.2  ]])
    >>> model.predict([[1, 0, 0], [float("nan"), 1, 3]])
    array(['tea', 'ink'], dtype='<U3')
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = CONSTRAINTS
    _likelihood_block = staticmethod(likelihood_block)
    _coefficient_block = staticmethod(coefficient_block)

    def __init__(self, *, alpha=1.0, force_alpha=True, fit_prior=True, class_prior=None):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def sample(self, n_samples=1, random_state=None, length=None):
        """Draw rows from the fitted law; return them and their classes.

        Parameters
        ----------
        length : Draws in a row, of which the model itself knows nothing: a number, or one for each row. Default: the mean of
            the rows that were fitted, rounded.
        """
        return self._sample(n_samples, random_state, length=length)

    def _tally(self, blocks):
        return coarse(blocks, len(self.classes_)).reduce(count_block, len(self.classes_))

    def _kept(self):
        patterns = Patterns.of(*self._patterns) if hasattr(self, "_patterns") else Patterns()
        return self.class_count_, self.feature_count_, patterns

    def _keep(self, statistics):
        _, counts, patterns = statistics
        smoothed, *holes = self._told(counts, patterns)
        self.feature_log_prob_ = logarithms(maximum(smoothed, self._pseudo_counts(), *holes))
        self.feature_count_ = counts
        vars(self).pop("_patterns", None)
        if patterns.totals:  # `partial_fit` cannot go on without them
            self._patterns = patterns.arrays()

    def _told(self, counts, patterns):
        """Smoothed counts, and patterns of holes with their totals, of the rows that tell something."""
        counts, *holes = telling(counts, *patterns.table(*counts.shape))
        return counts + self._pseudo_counts(), *holes

    def _tables(self):
        logs = np.asarray(self.feature_log_prob_, dtype=float)
        finite, never = split(logs.T)
        return Words(*(None if a is None else np.ascontiguousarray(a) for a in (finite, never, np.exp(logs.T))))

    def _draw(self, labels, rng, length):
        if length is None:
            length = round(float(self.feature_count_.sum() / self.class_count_.sum()))
        lengths = np.asarray(length)
        if lengths.shape not in ((), labels.shape) or lengths.dtype.kind not in "iu" or (lengths < 0).any():
            raise ValueError(f"length must be a whole number from 0, or one for each of {len(labels)} rows; got {length!r}.")
        chances = np.exp(self.feature_log_prob_)
        return rng.multinomial(lengths, (chances / chances.sum(axis=1, keepdims=True))[labels])

    def _checks(self, statistics):
        _, counts, patterns = statistics
        logs = np.asarray(self.feature_log_prob_, dtype=float)
        claim = "the probabilities are smoothed counts, of holes their means"
        again = Check("probabilities", np.inf, SAME_LIMIT, "proof", claim)
        if logs.shape == counts.shape:
            expected = step(np.exp(logs), *self._told(counts, patterns))
            again = same_logs(logs, logarithms(expected), "probabilities", claim)
        return [
            same_entries(self.feature_count_, counts, "counts", "the weighted sum of each column in each class"),
            again,
            Check("normalization", excess(logs), SAME_LIMIT, "proof", "the probabilities of each class sum to 1"),
        ]

    def __sklearn_tags__(self):
        """Counts, sparse or not."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        return tags
