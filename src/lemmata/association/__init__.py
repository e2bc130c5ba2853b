"""Which items go together: frequent sets, and rules with measures, tests and a proof that nothing is missing."""

from lemmata.association.apriori import Apriori
from lemmata.association.functions import association_rules, frequent_itemsets
from lemmata.association.itemsets import Itemsets
from lemmata.association.rules import Rules

__all__ = ["Apriori", "Itemsets", "Rules", "association_rules", "frequent_itemsets"]
