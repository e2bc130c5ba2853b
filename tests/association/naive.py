"""Slow twins: every set of items, counted basket by basket."""

from itertools import combinations

import numpy as np


def frequent_sets(baskets, minimum, weight=None, longest=99):
    """Count all sets of items of baskets (Python sets); give those of at least this support, by set."""
    weight = [1] * len(baskets) if weight is None else weight
    items = sorted(set().union(*baskets))
    found = {}
    for k in range(1, min(len(items), longest) + 1):
        for items_of_set in combinations(items, k):
            chosen = frozenset(items_of_set)
            support = sum(w for basket, w in zip(baskets, weight, strict=True) if chosen <= basket)
            if support >= minimum and support > 0:
                found[chosen] = support
    return found


def rules(found, confidence):
    """Cut all sets in two in all ways; give the confidence of the rules that are confident enough, by (left, right)."""
    made = {}
    for whole, support in found.items():
        for k in range(1, len(whole)):
            for left in map(frozenset, combinations(sorted(whole), k)):
                if support / found[left] >= confidence:
                    made[left, whole - left] = support / found[left]
    return made


def by_set(itemsets):
    """Give the counts of found sets, by set."""
    return dict(zip(itemsets["itemset"], itemsets.count.tolist(), strict=True))


def table(seed, n=60, p=8):
    """Draw a boolean table with items of all popularities."""
    rng = np.random.default_rng(seed)
    return rng.random((n, p)) < rng.beta(1, 2, size=p)


def sets_of(T):
    """Give the baskets of a boolean table as sets of column numbers."""
    return [set(np.flatnonzero(row).tolist()) for row in T]
