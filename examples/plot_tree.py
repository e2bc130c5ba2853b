"""
A tree, and how much of it to believe
=====================================

A decision tree asks about one column at a time, and what it learned can be read. It goes on asking until nothing is mixed any
more, which is well beyond what the rows can tell. Pruning takes back what was not worth its leaves.
"""

# %%
# Words, numbers, and nothing at all
# ----------------------------------
# A table of mushrooms that never were. Color and smell are words, sizes are numbers, and one cap in six was not measured. A
# tree takes all of this as it is: a question about words parts them into two sets, and rows without a value go to the side that
# is better for the fit.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from lemmata.plot import TreeDisplay
from lemmata.tree import DecisionTreeClassifier

rng = np.random.default_rng(2)
n = 1200
table = pd.DataFrame(
    {
        "smell": rng.choice(["none", "almond", "fish", "musty", "anise"], n),
        "color": rng.choice(["white", "brown", "red", "yellow"], n),
        "cap cm": rng.gamma(6, 1.2, n).round(1),
        "stem cm": rng.gamma(5, 1.5, n).round(1),
    }
)
plain = (table["smell"] == "none") & (table["cap cm"] < 8) & table["color"].isin(["red", "yellow"])
bad = table["smell"].isin(["fish", "musty"]) | plain
kind = np.where(bad ^ (rng.random(n) < 0.08), "poisonous", "edible")
table.loc[rng.random(n) < 1 / 6, "cap cm"] = np.nan

full = DecisionTreeClassifier().fit(table, kind)
print(f"grown fully: {full.get_n_leaves()} leaves, {full.score(table, kind):.1%} right on its own rows")

# %%
# How much is enough?
# -------------------
# Each price α of a leaf has a smallest tree that is best, errors and leaves taken together: as the price rises, subtrees
# collapse one after the other, in a sequence that is the same whatever price one has in mind. Rows that were left out choose.

path = full.cost_complexity_pruning_path(table, kind)
prices = np.sqrt(path.ccp_alphas[:-1] * path.ccp_alphas[1:])  # one of each stretch on which the tree stays the same
leaves = [DecisionTreeClassifier(ccp_alpha=price).fit(table, kind).get_n_leaves() for price in prices]
fold = np.arange(n) % 5
right = np.zeros((5, len(prices)))
for k in range(5):
    for i, price in enumerate(prices):
        model = DecisionTreeClassifier(ccp_alpha=price).fit(table[fold != k], kind[fold != k])
        right[k, i] = model.score(table[fold == k], kind[fold == k])
pruned = DecisionTreeClassifier(ccp_alpha=prices[right.mean(axis=0).argmax()]).fit(table, kind)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
axes[0].step(path.ccp_alphas[1:], path.impurities[1:], where="post", color="#3b7dd8", lw=2)
axes[0].axvline(pruned.ccp_alpha, color="#d1495b", lw=1)
axes[0].set(xlabel="price α of a leaf", ylabel="impurity of the leaves", xscale="log", title="What pruning costs")
axes[1].plot(leaves, right.mean(axis=0), "o-", color="#3b7dd8", ms=4, label="rows left out")
axes[1].axvline(pruned.get_n_leaves(), color="#d1495b", lw=1, label=f"kept: {pruned.get_n_leaves()} leaves")
axes[1].set(xlabel="leaves", ylabel="share of rows judged right", xscale="log", title="What it brings")
axes[1].xaxis.set_major_formatter("{x:g}")
axes[1].legend(frameon=False)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What is left can be read, and is close to how the rows were made.

TreeDisplay.from_estimator(pruned, table, name="Mushrooms")
plt.show()

# %%
# The certificate searches every node for a better question, and finds none.

pruned.certify(table, kind)

# sphinx_gallery_thumbnail_number = 2
