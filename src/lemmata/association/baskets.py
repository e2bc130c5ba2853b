"""Baskets: which items belong together, in whatever form they come.

A basket is a set of items: what somebody bought, which symptoms a patient has. Baskets come as lists, as a table with a column
for each item (true or a positive number: it is there), as a column of lists, or as pairs (basket, item) in two columns. All
become one of two things: a boolean table, or the items of each basket as ascending numbers (`Rows`).
"""

from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, count
from typing import NamedTuple

import numpy as np

from lemmata.association.bitsets import n_words, packed, set_bits, supports
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel

NOTHING = np.empty(0)
EXACT = 1 << 53  # up to which all whole numbers are floats
SIGNED = 1 << 63  # below which whole numbers have 64 bits, with their sign
NO_BASKETS = "Found no baskets; at least one is needed."
INSERTION = 64  # items of a basket up to which they are sorted by insertion


class Rows(NamedTuple):
    """Items of baskets: those of basket i are indices[indptr[i]:indptr[i + 1]], ascending."""

    indptr: np.ndarray
    indices: np.ndarray

    def __len__(self):
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Baskets:
    """Baskets in memory.

    Attributes
    ----------
    items : Names of the items, in the order of their numbers.
    held : Rows, or a boolean table (baskets, items).
    weight : Weights of the baskets, one each or none at all.
    """

    items: np.ndarray
    held: object
    weight: np.ndarray = field(default_factory=NOTHING.copy)

    def __len__(self):
        return len(self.held) if isinstance(self.held, Rows) else self.held.shape[0]

    @property
    def total(self):
        """Number of baskets, by weight."""
        with np.errstate(over="ignore"):  # an infinite number is refused by whoever asks
            return float(self.weight.sum()) if self.weight.size else float(len(self))

    @property
    def n_entries(self):
        """Number of items in all baskets."""
        return int(self.held.indptr[-1]) if isinstance(self.held, Rows) else int(np.count_nonzero(self.held))

    def take(self, rows, weight):
        """Keep the baskets of a mask, and give them their weights."""
        lengths = np.diff(self.held.indptr)
        indices = self.held.indices[np.repeat(rows, lengths)]
        return Baskets(self.items, Rows(np.concatenate([[0], np.cumsum(lengths[rows])]), indices), weight[rows])

    def supports(self):
        """Count the baskets of every item."""
        if isinstance(self.held, Rows):
            return item_supports(*self.held, self.weight, len(self.items))
        return supports(self.packed, self.weight)

    @cached_property
    def packed(self):
        """The boolean table as rows of bits, one for each item."""
        return packed(self.held)

    def bits(self, chosen):
        """Give the baskets of chosen items as rows of bits."""
        if not isinstance(self.held, Rows):
            return self.packed[chosen]
        bits = np.zeros((len(chosen), n_words(len(self))), dtype=np.uint64)
        set_bits(*self.held, slots(len(self.items), chosen), bits)
        return bits

    def rows(self):
        """Give the items of all baskets."""
        return self.held if isinstance(self.held, Rows) else rows_of_table(self.held)

    def numbered(self, slot):
        """Give the items of all baskets by other numbers, ascending; items with negative numbers are left out."""
        return renumbered(*self.rows(), slot)


def is_whole(weight):
    """Tell whether weights are numbers of repetitions, of which sums are exact."""
    return not weight.size or bool((weight == np.rint(weight)).all() and weight.sum() <= EXACT)


def slots(n_items, chosen):
    """Give each item its place among the chosen ones, −1 if it is none.

    >>> slots(4, np.array([3, 1]))
    array([-1,  1, -1,  0], dtype=int32)
    """
    slot = np.full(n_items, -1, dtype=np.int32)
    slot[chosen] = np.arange(len(chosen), dtype=np.int32)
    return slot


def rows_of_table(table):
    """List the items of each row of a boolean table.

    >>> rows_of_table(np.array([[True, False, True], [False, True, False]]))
    Rows(indptr=array([0, 2, 3]), indices=array([0, 2, 1], dtype=int32))
    """
    return Rows(np.concatenate([[0], np.cumsum(table.sum(axis=1))]), np.nonzero(table)[1].astype(np.int32))


def renumbered(indptr, indices, slot):
    """Give items other numbers and sort them again within each basket, each once; negative numbers are left out."""
    starts, numbers = np.empty(len(indptr), dtype=np.int64), np.empty(len(indices), dtype=np.int32)
    n = renumber(indptr, indices, slot, starts, numbers)
    return Rows(starts, numbers[:n])


@kernel
def item_supports(indptr, indices, weight, n_items):
    """Count the baskets that hold each item, or sum their weights."""
    support = np.zeros(n_items)
    for i in range(len(indptr) - 1):
        w = weight[i] if weight.size else 1.0
        for e in range(indptr[i], indptr[i + 1]):
            support[indices[e]] += w
    return support


@kernel
def renumber(indptr, indices, slot, starts, numbers):
    """Write the numbers slot[items] of every basket, ascending and each once; return how many there are in all."""
    n = 0
    for i in range(len(indptr) - 1):
        starts[i] = n
        for e in range(indptr[i], indptr[i + 1]):
            if slot[indices[e]] >= 0:
                numbers[n] = slot[indices[e]]
                n += 1
        if n - starts[i] > INSERTION:
            numbers[starts[i] : n] = np.sort(numbers[starts[i] : n])
        else:
            for e in range(starts[i] + 1, n):
                x, at = numbers[e], e
                while at > starts[i] and numbers[at - 1] > x:
                    numbers[at] = numbers[at - 1]
                    at -= 1
                numbers[at] = x
        end, n = n, starts[i]
        for e in range(starts[i], end):
            if e == starts[i] or numbers[e] != numbers[n - 1]:
                numbers[n] = numbers[e]
                n += 1
    starts[len(indptr) - 1] = n
    return n


def of_lists(lists, weight=NOTHING):
    """Number the items of baskets that are lists, tuples or sets of anything hashable; sorted if they can be.

    >>> baskets = of_lists([["tea", "milk"], ["milk"]])
    >>> baskets.items, baskets.held
    (array(['milk', 'tea'], dtype=object), Rows(indptr=array([0, 2, 3]), indices=array([0, 1, 0], dtype=int32)))
    """
    if not hasattr(lists, "__iter__"):
        raise ValueError(f"Baskets are a list of lists of items, a table, or pairs in two columns; got {lists!r}.")
    lists = lists if isinstance(lists, (list, tuple, np.ndarray)) else list(lists)
    _refuse_strings(lists)
    number = defaultdict(count().__next__)
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    try:
        codes = np.fromiter(map(number.__getitem__, chain.from_iterable(lists)), dtype=np.int32, count=int(lengths.sum()))
    except TypeError as error:
        raise ValueError(f"An item must be something that a set can hold, such as text or a number: {error}.") from None
    missing = next(filter(is_nothing, number), 0)
    if is_nothing(missing):
        raise ValueError(f"A basket holds the item {missing}, which is none: leave out what is missing.")
    if len(lists) > 1 and set(number) <= {0, 1} and lengths.min() == lengths.max() > 2:
        raise ValueError("These lists are a table of zeros and ones, not of items: give it as an array, np.array(...).")
    items, slot = sorted_names(list(number))
    return Baskets(items, renumbered(np.concatenate([[0], np.cumsum(lengths)]), codes, slot), weight)


def is_nothing(name):
    """Tell whether a name stands for a missing value.

    >>> is_nothing(None), is_nothing(float("nan")), is_nothing(0), is_nothing("")
    (True, True, False, False)
    """
    try:
        return name is None or bool(name != name)
    except TypeError:  # pandas' NA does not say whether it equals itself
        return True


def _refuse_strings(lists):
    for i, basket in enumerate(lists):
        if isinstance(basket, (str, bytes)) or not hasattr(basket, "__len__"):
            raise ValueError(
                f"A basket is a list, tuple or set of items, and basket {i} is {basket!r}: give a list of baskets, or a table."
            )


def sorted_names(names):
    """Sort names if they can be compared; return them as an array, and the place of each.

    >>> sorted_names(["tea", "milk"])
    (array(['milk', 'tea'], dtype=object), array([1, 0], dtype=int32))
    """
    try:
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    except TypeError:  # text and numbers, say: as they came
        order = np.arange(len(names))
    slot = np.empty(len(names), dtype=np.int32)
    slot[order] = np.arange(len(names))
    return names_array([names[i] for i in order]), slot


def places_of(names, items):
    """Give each item its place among names, −1 if it is none; names of different kinds, which have no order, may be among them.

    >>> places_of(np.array(["a", "b"]), np.array(["b", "c"]))
    array([ 1, -1], dtype=int32)
    """
    number = {name: i for i, name in enumerate(names.tolist())}
    return np.array([number.get(item, -1) for item in items.tolist()], dtype=np.int32)


def plain(names):
    """Give names of which `tolist` makes Python's own objects, as lists have them: it makes numbers of nanoseconds.

    >>> plain(np.array(["2026-01-31"], dtype="datetime64[ns]")).tolist()
    [datetime.datetime(2026, 1, 31, 0, 0)]
    """
    if names.dtype.kind not in "mM" or np.datetime_data(names.dtype)[0] not in ("ns", "ps", "fs", "as"):
        return names
    coarse = names.astype(f"{names.dtype.kind}8[us]")
    finer = names[(coarse != names) & ~np.isnat(names)]
    if len(finer):
        raise ValueError(f"The item {finer[0]} has nanoseconds: round it, to microseconds or more.")
    return coarse


def united(*names):
    """Give all names that are in some of many arrays, ascending.

    >>> united(np.array([3, 1]), np.array([2, 3]))
    array([1, 2, 3])
    """
    try:
        return np.unique(np.concatenate(names))
    except TypeError:
        raise ValueError("Items of baskets in parts must have an order: all text, or all numbers.") from None


def names_array(names):
    """Keep names in an array: whole numbers of 64 bits as such, anything else as objects.

    >>> names_array([3, 5]), names_array(["a", "b"])
    (array([3, 5]), array(['a', 'b'], dtype=object))
    """
    if names and all(type(name) in (int, np.int64, np.int32) and -SIGNED <= name < SIGNED for name in names):
        return np.array(names, dtype=np.int64)
    array = np.empty(len(names), dtype=object)
    array[:] = names
    return array


def of_pairs(ids, items):
    """Collect baskets from pairs of a basket and an item, in any order.

    >>> of_pairs([7, 9, 7], ["tea", "tea", "milk"]).held
    Rows(indptr=array([0, 2, 3]), indices=array([0, 1, 1], dtype=int32))
    """
    (_, basket), (names, number) = _numbered(ids, "basket"), _numbered(items, "item")
    order = np.argsort(basket, kind="stable")
    indptr = np.searchsorted(basket[order], np.arange(basket.max(initial=-1) + 2))
    return Baskets(names, renumbered(indptr, number[order], np.arange(len(names), dtype=np.int32)))


def _numbered(column, what):
    """Number the different values of a column of pairs; return them, sorted if they can be, and the number of each row."""
    column = np.asarray(column)
    if column.dtype == object:  # also text and numbers, which have no order
        number = defaultdict(count().__next__)
        codes = np.fromiter(map(number.__getitem__, column.tolist()), dtype=np.int32, count=len(column))
        names, slot = sorted_names(list(number))
        codes = slot[codes]
    else:
        names, codes = np.unique(column, return_inverse=True)
        names, codes = names_array(plain(names).tolist() if what == "item" else names.tolist()), codes.astype(np.int32)
    missing = [place for place, name in enumerate(names.tolist()) if is_nothing(name)]
    if missing:
        row = np.flatnonzero(codes == missing[0])[0]
        raise ValueError(f"Row {row} of the pairs has no {what}: leave out the rows in which something is missing.")
    return names, codes


def of_table(X, weight=None):
    """Read a table with a column for each item: an item is in a basket where the entry is true or positive.

    >>> of_table(np.array([[1.0, 0.0], [2.0, 3.0]])).held
    array([[ True, False],
           [ True,  True]])
    """
    held = X.data if is_sparse(X) else X
    if held.dtype != bool and held.size and held.min() < 0:
        raise ValueError(
            "Negative values in data passed to Apriori: an item is in a basket (true, or a positive number) or not."
        )
    if is_sparse(X):
        if not X.has_canonical_format or not held.all():  # entries twice, or zeros
            X = X.copy()
            X.sum_duplicates()
            X.eliminate_zeros()
        held = Rows(X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False))
    else:
        held = X > 0
    return Baskets(np.arange(X.shape[1]), held, NOTHING if weight is None else np.asarray(weight, dtype=float))
