"""`CategoricalNB`: columns of categories, with a table of probabilities for each column and class.

    log p(x|c) = Σⱼ log θⱼ(xⱼ|c),     θⱼ(v|c) = (Tⱼ(v, c) + α) / (Tⱼ(c) + α Vⱼ),

with Tⱼ(v, c) the weight of the rows of class c that have the category v in column j, Tⱼ(c) that of all in which the column is
not missing, and Vⱼ the number of categories of the column. `counting` says why the certificate proves the fit.
"""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.core.certificate import SAME_LIMIT, Check
from lemmata.core.generative import same_entries, same_logs
from lemmata.naive_bayes.counting import CONSTRAINTS, CountingNB, excess, logarithms, shares, split
from lemmata.naive_bayes.counts import code_products, code_sums, largest_codes
from lemmata.tree.columns import CategoricalColumns

MOST = 1 << 27  # counts in a table, at most: a gigabyte, where codes are meant to be few


class Tables:
    """Counts (categories, classes) of each column, one below the other; a sum has as many categories as the larger of two."""

    def __init__(self, sizes, counts):
        self.sizes, self.counts = sizes, counts

    def __add__(self, other):
        sizes = np.maximum(self.sizes, other.sizes)
        return Tables(sizes, self.grown(sizes) + other.grown(sizes))

    def grown(self, sizes):
        """Give the counts with room for so many categories in each column."""
        if np.array_equal(sizes, self.sizes):
            return self.counts
        wide = np.zeros((sizes.sum(), self.counts.shape[1]))
        wide[np.repeat(starts_of(sizes)[:-1] - starts_of(self.sizes)[:-1], self.sizes) + np.arange(len(self.counts))] = (
            self.counts
        )
        return wide


class Lookup(NamedTuple):
    """Where the categories of each column begin, their logarithms with 0 for −∞, and where that is (None: nowhere)."""

    starts: np.ndarray  # (d + 1,)
    logs: np.ndarray  # (categories of all columns, k)
    never: np.ndarray | None


def starts_of(sizes):
    """Where the categories of each column begin, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def check_codes(X):
    """Refuse what is no code; return the number of categories that each column shows."""
    largest, strange = largest_codes(X)
    if strange:
        lowest = np.fmin.reduce(X, axis=None)
        if lowest < 0:
            raise ValueError(
                f"Negative values in data passed to CategoricalNB: codes are whole numbers from 0, and one is {lowest:g}."
            )
        raise ValueError(
            f"CategoricalNB takes codes, whole numbers from 0, but {strange} entries are not: number the categories."
        )
    return largest


def count_block(X, y, weight, k):
    """Weight of each class, and of its rows with each category of each column."""
    largest = check_codes(X)
    if (largest + 1).sum() * k > MOST:
        j = int(largest.argmax())
        raise ValueError(f"Column {j} holds the code {largest[j]:.0f}, too many categories to count: number those that occur.")
    sizes = np.maximum(largest.astype(np.int64) + 1, 1)
    totals, counts = code_sums(X, y, weight, starts_of(sizes), k)
    return totals, Tables(sizes, counts)


def likelihood_block(X, lookup):
    """Logarithms of p(x|c) for the rows of a block."""
    check_codes(X)
    found = code_products(X, lookup.starts, lookup.logs)
    if lookup.never is not None:
        found[code_products(X, lookup.starts, lookup.never) > 0.5] = -np.inf  # a number of impossible entries
    return found


def named(codes, names, n_categories):
    """Give the names of codes; those that `min_categories` made room for have none."""
    return np.append(names.astype(object), [None] * (n_categories - len(names)))[codes]


class CategoricalNB(CategoricalColumns, CountingNB):
    """Classify rows of categories by Bayes' rule, as if columns were independent within a class.

    Entries are codes 0, 1, …, or, in columns of text or of a categorical type, names. Missing entries (NaN) are summed over,
    which is exact as long as an entry's absence has nothing to do with its value. A category that no row of the fit has shown
    says nothing about the class, and is read as missing; `min_categories` makes room for categories that are known to exist,
    and these get their share of alpha like any other that a class has not shown.

    Parameters
    ----------
    alpha : Imaginary rows of each category in each class: one number, one for each column, or a list with an array for each
        column that has one for each category. 0 is maximum likelihood.
    force_alpha : Whether alpha may be 0; otherwise it is raised to 1e-10, as in scikit-learn.
    fit_prior : Whether classes have their shares for a prior, or the uniform one.
    class_prior : Probabilities of the classes, where they are known.
    min_categories : Categories of a column, at least; one number or one for each column. None: those up to the largest code.
    categorical_features : Which columns hold names: "from_dtype", those of text or of a categorical type; or a mask, numbers
        or names of columns; None for none. `partial_fit` knows the names that its first call has shown.

    Attributes
    ----------
    classes_ : (K,), labels.
    n_categories_ : (d,), number of categories of each column.
    class_count_ : (K,), weight of each class.
    category_count_ : List of (K, n_categories) arrays, weight of each category.
    class_log_prior_ : (K,), logarithms of the prior.
    feature_log_prob_ : List of (K, n_categories) arrays, logarithms of the probabilities of the categories.
    categories_ : Names of the categories of each column in the order of their codes, None for a column of codes.

    Examples
    --------
    >>> X = [[0, 2], [1, 2], [0, 0], [1, 1], [1, 0]]
    >>> y = ["stay", "stay", "stay", "go", "go"]
    >>> model = CategoricalNB().fit(X, y)
    >>> import numpy as np
    >>> [np.exp(table).round(3).tolist() for table in model.feature_log_prob_]
    [[[0.25, 0.75], [0.6, 0.4]], [[0.4, 0.4, 0.2], [0.333, 0.167, 0.5]]]
    >>> model.predict([[0, 2], [1, float("nan")]])
    array(['stay', 'go'], dtype='<U4')
    >>> model.certify(X, y).holds
    True
    """

    _parameter_constraints = CONSTRAINTS | {
        "alpha": [*CONSTRAINTS["alpha"], list],  # of columns with different numbers of categories
        "min_categories": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "categorical_features": [StrOptions({"from_dtype"}), "array-like", None],
    }
    _likelihood_block = staticmethod(likelihood_block)

    def __init__(
        self,
        *,
        alpha=1.0,
        force_alpha=True,
        fit_prior=True,
        class_prior=None,
        min_categories=None,
        categorical_features="from_dtype",
    ):
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories
        self.categorical_features = categorical_features

    def _tally(self, blocks):
        totals, tables = blocks.reduce(count_block, len(self.classes_))
        sizes = np.maximum(tables.sizes, self._least())
        if sizes.sum() * len(totals) > MOST:
            raise ValueError(f"min_categories={self.min_categories!r} asks for more counts than the {MOST:,} that are kept.")
        return totals, Tables(sizes, tables.grown(sizes))

    def _least(self):
        """Categories of each column, at least: those with a name, and those asked for."""
        d = self.n_features_in_
        least = np.ones(d) if self.min_categories is None else np.asarray(self.min_categories)
        if (
            least.shape not in ((), (d,))
            or least.dtype.kind not in "iuf"
            or not ((least >= 1) & (least == np.floor(least))).all()
        ):
            raise ValueError(
                f"min_categories must be a whole number of at least 1, or {d} of them, one for each column; "
                f"got {self.min_categories!r}."
            )
        named = [0 if names is None else len(names) for names in self.categories_]
        return np.maximum(least.astype(np.int64), named)

    def _kept(self):
        return self.class_count_, Tables(self.n_categories_, np.hstack(self.category_count_).T)

    def _keep(self, statistics):
        tables = statistics[1]
        self.feature_log_prob_ = self._smoothed(tables)
        self.n_categories_ = tables.sizes
        self.category_count_ = _columns(tables)

    def _smoothed(self, tables):
        """Logarithms of the probabilities, for each column."""
        logs = []
        for counts, alpha in zip(_columns(tables), self._imaginary(tables.sizes), strict=True):
            smoothed = counts + alpha
            logs.append(logarithms(shares(smoothed, smoothed.sum(axis=1, keepdims=True))))
        return logs

    def _imaginary(self, sizes):
        """Imaginary rows of each category of each column."""
        if isinstance(self.alpha, (list, tuple)) and any(np.ndim(a) for a in self.alpha):
            alphas = [np.asarray(a, dtype=float) for a in self.alpha]
            if [len(np.atleast_1d(a)) for a in alphas] != sizes.tolist() or not all(
                ((a >= 0) & (a < np.inf)).all() for a in alphas
            ):
                raise ValueError(
                    f"alpha must be a number, one for each of {len(sizes)} columns, or an array for each column with a number "
                    f"for each of its categories, here {sizes.tolist()}; all at least 0."
                )
            return [self._forced(a) for a in alphas]
        return list(self._pseudo_counts())

    def _tables(self):
        logs, never = split(np.ascontiguousarray(np.hstack(self.feature_log_prob_).T.astype(float)))
        return Lookup(starts_of([np.shape(table)[1] for table in self.feature_log_prob_]), logs, never)

    def sample(self, n_samples=1, random_state=None):
        """Draw rows and their classes from the joint law; return (X, y).

        X holds codes; if columns have names, it is an array of objects with names there, and None for a category without one.
        """
        return super().sample(n_samples, random_state)

    def _draw(self, labels, rng):
        columns = []
        for logs, names in zip(self.feature_log_prob_, self.categories_, strict=True):
            reach = np.cumsum(np.exp(logs), axis=1)[labels]
            codes = (rng.random(len(labels))[:, None] * reach[:, -1:] >= reach).sum(axis=1)
            columns.append(codes if names is None else named(codes, names, logs.shape[1]))
        return np.column_stack(columns)

    def _checks(self, statistics):
        tables = statistics[1]
        stored, expected = self.feature_log_prob_, self._smoothed(tables)
        counts = np.hstack(self.category_count_)
        return [
            same_entries(self.n_categories_, tables.sizes, "categories", "categories are those seen, named or asked for"),
            same_entries(counts, tables.counts.T, "counts", "the weight of each category in each class"),
            same_logs(np.hstack(stored), np.hstack(expected), "probabilities", "the probabilities are smoothed counts"),
            Check("normalization", max(map(excess, stored)), SAME_LIMIT, "proof", "the probabilities of each class sum to 1"),
        ]

    def __sklearn_tags__(self):
        """Codes, of which 0 is one like the others: nothing to leave out of a sparse table."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only, tags.input_tags.sparse = True, False
        return tags


def _columns(tables):
    """Give the counts column by column, (k, categories) each."""
    return [np.ascontiguousarray(part.T) for part in np.split(tables.counts, starts_of(tables.sizes)[1:-1])]
