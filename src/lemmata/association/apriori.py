"""Frequent sets of items, and the rules that follow.

A set K of items is frequent if at least a share t of the baskets hold all of it. Supports are anti-monotone: whoever holds K
holds each subset K′ ⊂ K, so P(K) ≤ P(K′), and a set with an infrequent subset need not be looked at. What is found is therefore
closed downwards, and it is complete if and only if no set of its negative border (outside, with all its subsets inside) is
frequent [2]: the certificate counts these again, and all that was found, by walking through the baskets instead of by bits.

[1] Agrawal & Srikant, VLDB (1994). [2] Mannila & Toivonen, Data Min. Knowl. Discov. 1 (1997). Depth first: see `depth_first`.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.base import TransformerMixin, _fit_context, clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from lemmata.association.baskets import NO_BASKETS, Baskets, is_whole, of_table, places_of
from lemmata.association.certificate import checks_of
from lemmata.association.itemsets import NO_LIMIT, itemsets_of
from lemmata.association.mining import frequent_or_told
from lemmata.association.partition import frequent_in_parts, threshold, total_block
from lemmata.association.reading import Tables, booleans, column_names, is_table, labels_of, read
from lemmata.association.rules import rules_of
from lemmata.association.trie import mark_sets
from lemmata.core.certificate import Certificate
from lemmata.core.data import is_single_frame, is_stored
from lemmata.core.estimator import Estimator


def marks_block(baskets, trie, names, dtype):
    """Tell which sets each basket of a part holds."""
    marks = np.zeros((len(baskets), len(trie.last)), dtype=dtype)
    mark_sets(trie, *baskets.numbered(places_of(names, baskets.items)), marks)
    return marks


class Apriori(TransformerMixin, Estimator):
    """Find all sets of items that are in many baskets together.

    Baskets may be a table with a column for each item (true, or a positive number: it is there) as an array, a sparse matrix or
    a frame, on Dask or in Parquet files larger than memory; a list of lists, tuples or sets; a column of lists; or pairs of a
    basket and an item in two columns.

    Parameters
    ----------
    min_support : Share of the baskets that a frequent set is in at least; a whole number is a number of baskets.
    strict : Whether sets of exactly this support are left out.
    max_length : Most items of a set; None for any number.
    algorithm : "depth" (vertical and depth first: bits of all baskets on dense tables, of an item's baskets on sparse ones),
        "levels" (Apriori: level by level, candidates pruned by their subsets), or "auto": depth first, but for pairs alone on
        dense tables.
    columns : Of a frame or Parquet files: the column of lists, or those of the baskets and of the items. A column of lists is
        found by itself if there is but one.
    memory_limit : Bytes that the found sets may take, and so their rules; if there are more sets, the error names the support
        to ask for.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    itemsets_ : The frequent sets, a frame of `itemset`, `support` and `count`.
    minimum_ : Least support as a number of baskets (by weight).
    n_features_in_, feature_names_in_ : Of tables.
    item_names_ : Of tables whose columns have names that are no text, such as numbers of items.

    Examples
    --------
    >>> baskets = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]
    >>> model = Apriori(min_support=0.4).fit(baskets)
    >>> model.itemsets_.maximal()
    Itemsets: 1 rows
      itemset    support  count
      {a, b, c}      0.4      2
    >>> model.rules(min_confidence=0.75).take([0, 1])
    Rules: 2 rows
      antecedent  consequent  support  confidence    lift  leverage  conviction  count
      {b}         {a}             0.6        0.75  0.9375     -0.04         0.8      3
      {a}         {b}             0.6        0.75  0.9375     -0.04         0.8      3
    >>> print(model.certify(baskets))
    Apriori(min_support=0.4): certificate holds (proof)
      check    value     limit  kind   claim
      baskets  0.0e+00 ≤ 1e-09  proof  the number of baskets, and the least support that follows from it
      counts   0.0e+00 ≤ 5e-01  proof  every set is in so many baskets, counted again by walking through them
      subsets  0.0e+00 ≤ 0e+00  proof  every set is frequent, and so are all its subsets
      border   0.0e+00 ≤ 0e+00  proof  no set is missing: of those next to the found ones none is frequent
    """

    _parameter_constraints = {
        "min_support": [Interval(Real, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
        "strict": ["boolean"],
        "max_length": [Interval(Integral, 1, None, closed="left"), None],
        "algorithm": [StrOptions({"auto", "depth", "levels"})],
        "columns": [str, list, tuple, None],
        "memory_limit": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        min_support=0.1,
        *,
        strict=False,
        max_length=None,
        algorithm="auto",
        columns=None,
        memory_limit=1 << 30,
        verbose=0,
    ):
        self.min_support = min_support
        self.strict = strict
        self.max_length = max_length
        self.algorithm = algorithm
        self.columns = columns
        self.memory_limit = memory_limit
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = tags.input_tags.categorical = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find the frequent sets of baskets; a weight means that a basket is repeated."""
        source = self._source(X, sample_weight, reset=True)
        options = {"algorithm": self.algorithm, "verbose": self.verbose}
        if isinstance(source, Baskets):
            names, total, whole = source.items, source.total, is_whole(source.weight)
            self.minimum_ = self._minimum(total, whole)
            found = self._found(frequent_or_told, source, self.minimum_, self.strict, **options)
        else:
            share = self._share(source.reduce(total_block) if self._counts() else 1.0)
            names, found, candidates = self._found(frequent_in_parts, source, share, self.strict, **options)
            total, whole = candidates.total, candidates.whole
            self.minimum_ = self._minimum(total, whole)
        columns = self._column_names()
        names = names if columns is None else columns[names]
        self.itemsets_ = itemsets_of(names, found, total, whole, self._longest())
        return self

    def _found(self, mine, *arguments, **options):
        """Mine within the memory there is."""
        return mine(*arguments, longest=self._longest(), memory=self.memory_limit, **options)

    def _longest(self):
        return NO_LIMIT if self.max_length is None else int(self.max_length)

    def _minimum(self, total, whole):
        """Give the least support as a number of baskets, whose weights are whole or not."""
        return threshold(self._share(total), self.strict, total, whole)

    def _share(self, total):
        """Give the least support as a share; that of less than 64 bits is the number that is written, 0.1 for example."""
        if not total:
            raise ValueError(NO_BASKETS)
        return self.min_support / total if self._counts() else float(str(self.min_support))

    def _counts(self):
        return isinstance(self.min_support, Integral)

    def _source(self, X, sample_weight, reset):
        """Read baskets: into memory, or as parts if they are stored."""
        if isinstance(self.min_support, bool):
            raise ValueError(f"min_support must be a share of (0, 1] or a number of baskets, got {self.min_support}.")
        table = is_table(X, self.columns)
        self._check_item_names(labels_of(X) if table else None, reset)
        if not table:
            if reset:
                for name in ("n_features_in_", "feature_names_in_"):
                    vars(self).pop(name, None)
            source = read(X, self.columns, sample_weight)
        elif sample_weight is None and booleans(X) is not None:
            validate_data(self, X, reset=reset, skip_check_array=True)  # the names and the number of columns
            source = of_table(booleans(X))
        elif is_stored(X):
            reader = self if reset or self._knows_columns() else clone(self)
            source = Tables(reader._blocks(X, sample_weight=sample_weight, reset=reset or reader is not self))
        else:
            source = of_table(*self._blocks(X, sample_weight=sample_weight, reset=reset).whole())
        if isinstance(source, Baskets) and not len(source):
            raise ValueError(NO_BASKETS)
        if isinstance(source, Baskets) and not np.isfinite(source.total):
            raise ValueError("The weights add up to more than a number can hold: divide all of them by the same number.")
        return source

    def _check_item_names(self, labels, reset):
        """Learn the names of columns that are no text, which `feature_names_in_` has not, or compare them."""
        if reset:
            vars(self).pop("item_names_", None)
            if labels is not None:
                self.item_names_ = labels
        elif labels is not None and labels.tolist() != getattr(self, "item_names_", labels).tolist():
            raise ValueError("The columns have other names, or another order, than those of the fit.")

    def _knows_columns(self):
        """Tell whether the fit was to a table, and not to lists or pairs, whose items have no places."""
        return hasattr(self, "n_features_in_")

    def _column_names(self):
        return getattr(self, "feature_names_in_", getattr(self, "item_names_", None))

    def rules(
        self,
        *,
        min_confidence=0.8,
        min_lift=None,
        max_consequent=None,
        test=None,
        correction=None,
        alpha=None,
        to=None,
    ):
        """Make rules of the frequent sets, from their counts alone; see `association_rules`."""
        check_is_fitted(self)
        options = {"test": test, "correction": correction, "alpha": alpha, "to": to}
        options |= {"memory_limit": self.memory_limit, "verbose": self.verbose}
        return rules_of(
            self.itemsets_, min_confidence=min_confidence, min_lift=min_lift, max_consequent=max_consequent, **options
        )

    def transform(self, X):
        """Tell which frequent sets each basket holds: (n_baskets, n_itemsets), ones and zeros."""
        check_is_fitted(self)
        source = self._source(X, None, reset=False)
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 or is_single_frame(X) else np.float64
        if isinstance(source, Baskets):
            return marks_block(source, self.itemsets_.trie(), self._names(X, source), dtype)
        if not isinstance(source, Tables):
            raise ValueError("transform takes tables, or lists in memory: read stored lists in parts.")
        return source.map(marks_block, self.itemsets_.trie(), self._names(X, source), source.blocks.dtype)

    def _names(self, X, source):
        """Give the names of the frequent items as these baskets have them: of tables the numbers of their columns."""
        if not is_table(X, self.columns):
            return self.itemsets_.items
        columns = self._column_names()
        if not self._knows_columns():
            columns = source.columns if isinstance(source, Tables) else column_names(X)
        return self.itemsets_.items if columns is None else places_of(columns, self.itemsets_.items)

    def get_feature_names_out(self, input_features=None):
        """Write the frequent sets as names of the columns of `transform`."""
        check_is_fitted(self)
        if input_features is not None:
            _check_feature_names_in(self, input_features)
        column = self.itemsets_._columns()["itemset"]
        return np.array([column.text(row) for row in range(len(self.itemsets_))], dtype=object)

    def certify(self, X, y=None, sample_weight=None):
        """Count every set again, and prove that none is missing."""
        check_is_fitted(self)
        source = self._source(X, sample_weight, reset=False)
        checks = checks_of(source, self._names(X, source), self.itemsets_, self.minimum_, self._minimum, self._longest())
        return Certificate(*checks, subject=repr(self))
