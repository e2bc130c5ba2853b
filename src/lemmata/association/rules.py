"""Association rules: who has A often has B too, from counts that are known already.

A frequent set K is cut in two, A ⇒ B with A ∪ B = K, in all 2^|K| − 2 ways. Its measures need the supports of A, B and K,
    confidence P(B | A) = P(K) / P(A),      lift P(K) / (P(A) P(B)),      leverage P(K) − P(A) P(B),
    conviction P(A) P(not B) / P(A, not B) = (1 − P(B)) / (1 − confidence),
and A and B are frequent because K is: all three were counted when K was found, and no basket is looked at again. If A ⇒ B is
not confident enough, no rule with more on the right and less on the left is, since P(A) can only grow [1].

[1] Agrawal & Srikant, VLDB (1994). Conviction: Brin, Motwani, Ullman & Tsur, SIGMOD (1997).
"""

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import pairwise
from math import comb
from numbers import Integral, Real
from pathlib import Path

import numpy as np

from lemmata.association.frame import Frame, SetColumn, row_numbers
from lemmata.association.itemsets import SOME_LEFT_OUT, Itemsets
from lemmata.association.mining import Room
from lemmata.association.partition import ROUNDING, SUMS
from lemmata.association.significance import CORRECTIONS, adjusted, chi_squared, fisher
from lemmata.association.trie import items_of, row_of
from lemmata.core.fits import fit_all
from lemmata.core.kernel import kernel

MOST_ITEMS = 62  # of a set that is cut in two: beyond, its subsets cannot all have been counted
CUTS = 1 << 16  # of the sets of a task, about: some milliseconds of work
GROUP = 8  # tasks whose rules are written at once
RULE_BYTES = 80  # that a rule takes while rules are found and tested
WHAT_TO_DO = (
    "which is all that memory_limit has room for. Raise min_confidence or min_support, set min_lift, max_consequent=1 or "
    "max_length, write them to a file with to=, or raise memory_limit."
)
TESTS = {"fisher": fisher, "chi2": chi_squared}


class TooManyRules(MemoryError):
    """There are more rules than there is room for."""


@kernel
def cut(trie, count, first, last, confidence, most):
    """Cut the sets of rows first … last − 1 in two.

    Parameters
    ----------
    confidence : Least confidence.
    most : Most items on the right.

    Returns
    -------
    rules : (n, 3), rows of the whole set, of the left and of the right side; the last has −1 for a side that is missing.
    """
    rules, n = np.empty((64, 3), dtype=np.int64), 0
    chosen = np.empty(MOST_ITEMS + 1, dtype=np.int64)  # places of the items on the right, ascending
    for r in range(first, last):
        own = items_of(trie, r)
        k = len(own)
        left, right = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32)
        size, chosen[0] = (1, 0) if k > 1 else (0, 0)
        while size:
            a, b, at = 0, 0, 0
            for i in range(k):
                if at < size and chosen[at] == i:
                    right[b] = own[i]
                    at, b = at + 1, b + 1
                else:
                    left[a] = own[i]
                    a += 1
            antecedent = row_of(trie, left[:a])
            confident = antecedent < 0 or count[r] >= confidence * count[antecedent]
            if confident:
                if n == len(rules):
                    more = np.empty((2 * n, 3), dtype=np.int64)
                    more[:n] = rules
                    rules = more
                rules[n, 0], rules[n, 1], rules[n, 2] = r, antecedent, row_of(trie, right[:b])
                n += 1
                if antecedent < 0 or rules[n - 1, 2] < 0:
                    return rules[:n]
            if confident and size < min(most, k - 1) and chosen[size - 1] + 1 < k:
                chosen[size] = chosen[size - 1] + 1
                size += 1
                continue
            while size and chosen[size - 1] == k - 1:
                size -= 1
            if size:
                chosen[size - 1] += 1
    return rules[:n]


@dataclass(eq=False, repr=False)
class Rules(Frame):
    """Rules A ⇒ B with their measures: a frame.

    Columns: `antecedent` (A), `consequent` (B), `support` P(A, B), `confidence` P(B | A), `lift` P(A, B) / (P(A) P(B)),
    `leverage` P(A, B) − P(A) P(B), `conviction` (1 − P(B)) / (1 − confidence), `count` (baskets with both), and if they were
    asked for, `p_value` and `adjusted_p_value`.

    Attributes
    ----------
    itemsets : All frequent sets.
    rows : (n_rules, 3), rows of A ∪ B, of A and of B among them.
    p_value, adjusted_p_value : (n_rules,) or None.
    n_tests : Number of pairs of frequent sets that could have met, for which p-values are adjusted; see `significance`.

    Examples
    --------
    >>> from lemmata.association import association_rules
    >>> baskets = [["a", "b", "c"], ["a", "b"], ["a", "c"], ["b", "c"], ["a", "b", "c"]]
    >>> rules = association_rules(baskets, min_support=0.6, min_confidence=0.7)
    >>> rules.take([0])
    Rules: 1 rows
      antecedent  consequent  support  confidence    lift  leverage  conviction  count
      {b}         {a}             0.6        0.75  0.9375     -0.04         0.8      3
    """

    itemsets: Itemsets
    rows: np.ndarray
    n_tests: int
    p_value: np.ndarray | None = None
    adjusted_p_value: np.ndarray | None = None

    def _columns(self):
        both, one, other = (self.itemsets.count[self.rows[:, i]].astype(float) for i in range(3))
        n = self.itemsets.n_baskets  # products of whole counts are exact, so that a measure is rounded once
        if self.itemsets.count.dtype.kind == "f":
            both, one, other, n = both / n, one / n, other / n, 1.0
        conviction = np.full(len(both), np.inf)  # of a rule that never fails
        np.divide(one * (n - other), n * (one - both), out=conviction, where=one - both > ROUNDING * one)
        sets = SetColumn(self.itemsets.items, self.itemsets.indptr, self.itemsets.indices)
        columns = {
            "antecedent": sets.take(self.rows[:, 1]),
            "consequent": sets.take(self.rows[:, 2]),
            "support": both / n,
            "confidence": both / one,
            "lift": both * n / (one * other),
            "leverage": (both * n - one * other) / n**2,
            "conviction": conviction,
            "count": self.itemsets.count[self.rows[:, 0]],
        }
        if self.p_value is not None:
            columns["p_value"] = self.p_value
        if self.adjusted_p_value is not None:
            columns["adjusted_p_value"] = self.adjusted_p_value
        return columns

    def __len__(self):
        return len(self.rows)

    def take(self, rows):
        """Keep some rules, by their numbers or a mask."""
        rows = row_numbers(rows)
        tested = (None if p is None else p[rows] for p in (self.p_value, self.adjusted_p_value))
        return Rules(self.itemsets, self.rows[rows], self.n_tests, *tested)


def rules_of(
    itemsets,
    *,
    min_confidence=0.8,
    min_lift=None,
    max_consequent=None,
    test=None,
    correction=None,
    alpha=None,
    to=None,
    memory_limit=1 << 30,
    verbose=0,
):
    """Make rules of frequent sets; see `association_rules`."""
    check_thresholds(min_confidence, min_lift, max_consequent, test, correction, alpha)
    if not isinstance(memory_limit, Integral) or memory_limit < 1:
        raise ValueError(f"memory_limit must be a whole number of bytes of at least 1, got {memory_limit!r}.")
    trie, count = itemsets.trie(), itemsets.count.astype(float)
    lengths = itemsets.length
    if lengths.max(initial=0) > MOST_ITEMS:
        raise ValueError(f"A set of {lengths.max()} items cannot be cut in all ways: set max_length.")
    n_items, most = len(itemsets.items), MOST_ITEMS if max_consequent is None else int(max_consequent)
    below = 1 - (SUMS if itemsets.count.dtype.kind == "f" else ROUNDING)  # 2 / 5 is confident enough for 0.4
    least, most_rules = min_confidence * below, memory_limit // RULE_BYTES
    room = Room(most_rules, TooManyRules(f"There are more than {most_rules:,} rules, {WHAT_TO_DO}"))

    def chosen(task):
        rules = cut(trie, count, *task, least, most)
        if rules[-1:].min(initial=0) < 0:
            raise ValueError(SOME_LEFT_OUT)
        if min_lift is not None:
            both, one, other = (count[rules[:, k]] for k in range(3))
            rules = rules[both / one >= min_lift * (other / itemsets.n_baskets) * below]
        if to is None:
            room.take(len(rules))
        return rules

    def tested_part(parts):
        rows = np.concatenate([np.empty((0, 3), dtype=np.int64), *parts])
        return tested(Rules(itemsets, rows, n_tests), test, correction, alpha)

    n_tests = number_of_pairs(lengths, most, itemsets.max_length)
    tasks = tasks_of(lengths, n_items, most)
    if to is None:
        return tested_part(fit_all(chosen, tasks, ours=True, verbose=verbose, name="rules"))
    if correction not in (None, "bonferroni"):
        raise ValueError(f'correction="{correction}" ranks all rules, which a stream never has at once: use "bonferroni".')
    return write(map(tested_part, in_groups(chosen, tasks, verbose)), to, tested_part([]))


def tasks_of(lengths, n_items, most):
    """Cut the rows of sets of two items and more into tasks, (first, last), of about as many rules.

    >>> tasks_of(np.array([1, 1, 2]), 2, 62)
    [(2, 3)]
    """
    longest = int(lengths.max(initial=1))
    cuts = np.array([sum(comb(k, b) for b in range(1, min(most, k - 1) + 1)) for k in range(longest + 1)], dtype=float)
    ends = np.cumsum(cuts[lengths[n_items:]])
    inner = np.searchsorted(ends, np.arange(CUTS, ends[-1] if len(ends) else 0, CUTS)) + n_items
    return list(pairwise(np.unique([n_items, *inner, len(lengths)]).tolist()))


def in_groups(work, tasks, verbose):
    """Give the results of tasks, a group of them at a time."""
    from tqdm import tqdm

    with tqdm(total=len(tasks), desc="rules") if verbose else nullcontext() as bar:
        for i in range(0, len(tasks), GROUP):
            group = tasks[i : i + GROUP]
            yield fit_all(work, group, ours=True)
            if bar is not None:
                bar.update(len(group))


def check_thresholds(min_confidence, min_lift, max_consequent, test, correction, alpha):
    """Refuse thresholds that make no sense."""
    if not (isinstance(min_confidence, Real) and 0 <= min_confidence <= 1):
        raise ValueError(f"min_confidence must be a share from 0 to 1, got {min_confidence!r}.")
    if min_lift is not None and not (isinstance(min_lift, Real) and min_lift >= 0):
        raise ValueError(f"min_lift must be None or at least 0, got {min_lift!r}.")
    if max_consequent is not None and not (isinstance(max_consequent, (int, np.integer)) and max_consequent >= 1):
        raise ValueError(f"max_consequent must be None or a whole number of at least 1, got {max_consequent!r}.")
    if test is not None and test not in list(TESTS):
        raise ValueError(f'test must be None, "fisher" or "chi2", got {test!r}.')
    if correction is not None and correction not in CORRECTIONS:
        raise ValueError(f"correction must be None or one of {list(CORRECTIONS)}, got {correction!r}.")
    if (correction is not None or alpha is not None) and test is None:
        raise ValueError('correction and alpha are about p-values: choose test="fisher" or test="chi2".')
    if alpha is not None and not (isinstance(alpha, Real) and 0 < alpha <= 1):
        raise ValueError(f"alpha must be None or a level of (0, 1], got {alpha!r}.")


def number_of_pairs(lengths, most, longest):
    """Count the ordered pairs of different sets with at most so many items on the right, and so many in all.

    >>> number_of_pairs(np.array([1, 1, 1, 2]), 62, 9), number_of_pairs(np.array([1, 1, 1, 2]), 1, 2)
    (12, 6)
    """
    sizes, sets = np.unique(lengths, return_counts=True)
    pairs = 0
    for a, n in zip(sizes.tolist(), sets.tolist(), strict=True):
        for b, k in zip(sizes.tolist(), sets.tolist(), strict=True):
            if b <= most and a + b <= longest:
                pairs += n * (k - (a == b))
    return pairs


def tested(rules, test, correction, alpha):
    """Add p-values to rules and keep those below a level."""
    if test is None:
        return rules
    count, n = rules.itemsets.count, rules.itemsets.n_baskets
    if test == "fisher" and count.dtype.kind == "f":
        raise ValueError('Fisher\'s test counts baskets, and these have weights that are not whole: use test="chi2".')
    both, one, other = (count[rules.rows[:, i]].astype(float) for i in range(3))
    p = TESTS[test](both, one, other, float(n))
    q = None if correction is None else adjusted(p, rules.n_tests, correction)
    rules = Rules(rules.itemsets, rules.rows, rules.n_tests, p, q)
    return rules if alpha is None else rules.take((p if q is None else q) <= alpha)


def write(parts, to, empty):
    """Write frames to a Parquet file, a group of rows each, whole or not at all; return its path."""
    import pyarrow.parquet as parquet

    path = Path(to)
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent} to write {path.name} to.")
    partial = path.with_name(f"{path.name}.part")
    try:
        with parquet.ParquetWriter(partial, empty.to_arrow().schema) as file:
            for part in parts:
                if len(part):
                    file.write_table(part.to_arrow())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
