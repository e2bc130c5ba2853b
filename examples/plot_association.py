"""
What goes with what in a corner shop
====================================

Four thousand receipts, with a few habits in them that we know, because we put them there. All sets of goods that are often
bought together are found, and rules made of them. Some of the most confident rules say nothing, or the opposite of what they
seem to say, and some of the most striking ones are luck. Two numbers tell which: the lift, and a p-value.
"""

# %%
# The receipts
# ------------
# Most goods are bought without regard to the others. The habits: jam goes with bread and butter, sauce with pasta, and parmesan
# with both of these; who has crisps and beer takes salsa. Then there is what every shop has, something that nearly everybody
# buys: two in three take a bag. Who comes for coffee needs one less, but still more often than not.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.association import Apriori
from lemmata.plot import RuleNetworkDisplay, RulesDisplay

rng = np.random.default_rng(0)
shares = {"bag": 0.66, "bread": 0.35, "milk": 0.4, "butter": 0.15, "jam": 0.06, "pasta": 0.2, "sauce": 0.06, "parmesan": 0.04}
shares |= {"beer": 0.2, "crisps": 0.15, "salsa": 0.03, "coffee": 0.18, "apples": 0.25}
goods = np.array(list(shares))
held = rng.random((4_000, len(goods))) < list(shares.values())


def habit(having, what, chance):
    """Let those who have some goods take one more, or put one back, with a chance."""
    doing = held[:, np.isin(goods, having)].all(axis=1) & (rng.random(len(held)) < abs(chance))
    held[doing, np.flatnonzero(goods == what)] = chance > 0


habit(["bread", "butter"], "jam", 0.6)
habit(["pasta"], "sauce", 0.5)
habit(["pasta", "sauce"], "parmesan", 0.4)
habit(["crisps", "beer"], "salsa", 0.6)
habit(["coffee"], "bag", -0.2)
receipts = [goods[row].tolist() for row in held]
print(f"{len(receipts):,} receipts, for instance {receipts[0]}")

# %%
# Frequent sets
# -------------
# A set is frequent if it is on one receipt of two hundred. The largest show the habits already, mixed with what is popular.

model = Apriori(min_support=0.005).fit(receipts)
model.itemsets_.maximal().sort("support")

# %%
# That these are right is proved by counting again; that there are no others, by counting those next to them.

model.certify(receipts)

# %%
# Confident is not enough
# -----------------------
# Each point is a rule. Many of the most confident ones end in "bag" and are gray: bags are popular, whatever else is bought.
# The rule from coffee to a bag is right more often than not, and yet blue: who has coffee takes a bag *less* often than others.

rules = model.rules(min_confidence=0.5, max_consequent=1, test="fisher", correction="bh")
found = list(zip(rules["antecedent"], rules["consequent"], strict=True))
trap, jam = (found.index(rule) for rule in [({"coffee"}, {"bag"}), ({"bread", "butter"}, {"jam"})])
salsa, sauce = (found.index(rule) for rule in [({"beer", "crisps"}, {"salsa"}), ({"pasta"}, {"sauce"})])
RulesDisplay.from_rules(rules, labels=[trap, jam, salsa, sauce], name="Right every other time")
plt.show()

# %%
rules.take([trap, jam, salsa, sauce])

# %%
# Striking is not enough
# ----------------------
# Every rule has a p-value, of Fisher's exact test: how likely would so many receipts with both be, if the one had nothing to do
# with the other? The correction of Benjamini and Hochberg takes into account how many rules there could have been. These have
# the largest lifts among the rules that luck explains just as well.

luck = rules["adjusted_p_value"] > 0.05
print(f"{np.sum(luck)} of {len(rules)} rules may be luck")
rules.take(luck).sort("lift").head(5)

# %%
# What is left
# ------------
# The rules that pass hold all the habits, but most repeat one of them with something added that changes nothing: who has bread,
# butter *and milk* takes jam no more often than who has bread and butter. So a rule is kept only if it is clearly more
# confident, here by a tenth, than all rules with fewer items on the left. Leverage, how many receipts there are beyond what
# chance would give, puts the habits first.

kept = np.flatnonzero(~luck)
confidence = rules["confidence"]
simpler = {i: [k for k in kept if found[k][0] < found[i][0] and found[k][1] == found[i][1]] for i in kept}
new = [i for i in kept if all(confidence[i] > 1.1 * confidence[simpler[i]])]
print(f"{len(kept)} rules are more than luck, and {len(new)} say something new")
RuleNetworkDisplay.from_rules(rules.take(new), by="leverage", max_rules=10, name="Habits")
plt.show()

# sphinx_gallery_thumbnail_number = 1
