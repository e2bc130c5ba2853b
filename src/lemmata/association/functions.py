"""Frequent sets and rules in one call."""

from lemmata.association.apriori import Apriori
from lemmata.association.itemsets import Itemsets
from lemmata.association.rules import rules_of


def frequent_itemsets(
    baskets,
    min_support=0.1,
    *,
    strict=False,
    max_length=None,
    algorithm="auto",
    columns=None,
    sample_weight=None,
    memory_limit=1 << 30,
    verbose=0,
):
    """Find all sets of items that are in many baskets together.

    Parameters
    ----------
    baskets : A list of lists, a table with a column for each item, a column of lists, or pairs; in memory or stored: see
        `Apriori`.
    min_support : Share of the baskets at least; a whole number is a number of baskets.
    strict, max_length, algorithm, columns, memory_limit, verbose : See `Apriori`.
    sample_weight : How often each basket counts.

    Returns
    -------
    itemsets : `Itemsets`, a frame of `itemset`, `support` and `count`.

    Examples
    --------
    >>> frequent_itemsets([["tea", "milk"], ["tea"], ["jam", "tea"]], min_support=2)
    Itemsets: 1 rows
      itemset  support  count
      {tea}          1      3
    """
    options = {"columns": columns, "memory_limit": memory_limit, "verbose": verbose}
    model = Apriori(min_support, strict=strict, max_length=max_length, algorithm=algorithm, **options)
    return model.fit(baskets, sample_weight=sample_weight).itemsets_


def association_rules(
    baskets_or_itemsets,
    *,
    min_support=None,
    min_confidence=0.8,
    min_lift=None,
    max_length=None,
    max_consequent=None,
    test=None,
    correction=None,
    alpha=None,
    columns=None,
    sample_weight=None,
    to=None,
    memory_limit=1 << 30,
    verbose=0,
):
    """Find rules A ⇒ B: who has A often has B too.

    Parameters
    ----------
    baskets_or_itemsets : Baskets in any form (see `Apriori`), or what `frequent_itemsets` found in them, which is all that is
        needed: no basket is counted again.
    min_support, max_length, columns, sample_weight : See `frequent_itemsets`; of baskets only. Default of min_support: 0.1.
    min_confidence : Least share of the baskets with A that hold B too.
    min_lift : Least ratio of that share to the share of all baskets that hold B.
    max_consequent : Most items of B.
    test : "fisher" (exact, of more baskets with both than by chance) or "chi2" (of more or fewer) adds p-values.
    correction : For many tests at once: "bonferroni" or "holm" keep the probability of a single false rule below alpha, "bh" or
        "by" the expected share of false rules. All rules that could have been reported count as tests.
    alpha : Level; rules with a larger (adjusted, if there is a correction) p-value are left out.
    to : Path of a Parquet file to write the rules to, a part at a time, where there are too many for memory.
    memory_limit : Bytes that the sets may take, and the rules if they are not written to a file; more are an error.
    verbose : 1 shows a progress bar.

    Returns
    -------
    rules : `Rules`, a frame of `antecedent`, `consequent`, `support`, `confidence`, `lift`, `leverage`, `conviction`, `count`
        and, if tested, `p_value` and `adjusted_p_value`; or the path that was written.

    Examples
    --------
    >>> baskets = [["tea", "milk"], ["tea", "milk"], ["tea"], ["jam"]] * 20
    >>> association_rules(baskets, min_confidence=0.9, test="fisher", correction="holm", alpha=0.01)
    Rules: 1 rows
      antecedent  consequent  support  confidence   lift  leverage  conviction  count    p_value  adjusted_p_value
      {milk}      {tea}           0.5           1  1.333     0.125         inf     40  3.899e-08         4.679e-07
    """
    options = {"test": test, "correction": correction, "alpha": alpha, "to": to}
    options |= {"memory_limit": memory_limit, "verbose": verbose}
    itemsets = baskets_or_itemsets
    if isinstance(itemsets, Itemsets):
        if any(given is not None for given in (min_support, max_length, columns, sample_weight)):
            raise ValueError(
                "min_support, max_length, columns and sample_weight belong to baskets: these sets were found already."
            )
    else:
        names = getattr(itemsets, "column_names", getattr(itemsets, "columns", None))
        if names is not None and "itemset" in names:
            raise ValueError("This frame holds sets: give what frequent_itemsets returned, before to_pandas() and the like.")
        support, limits = 0.1 if min_support is None else min_support, {"max_length": max_length, "memory_limit": memory_limit}
        model = Apriori(support, columns=columns, **limits, verbose=verbose)
        itemsets = model.fit(itemsets, sample_weight=sample_weight).itemsets_
    return rules_of(itemsets, min_confidence=min_confidence, min_lift=min_lift, max_consequent=max_consequent, **options)
