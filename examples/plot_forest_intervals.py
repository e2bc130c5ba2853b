"""
A forest that knows how far off it is
=====================================

One tree grown fully repeats its rows, noise and all. A forest grows many, each on rows drawn anew with repetition, and takes
the mean. The rows that a tree has not drawn are good for something, too: they test it, and tell how far off the forest will be.
"""

# %%
# The mean of many
# ----------------
# A single tree follows every row. The mean of three hundred, each grown on another draw of the rows, is calmer, and leaves that
# hold no fewer than twenty rows make it calmer still.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.ensemble import RandomForestRegressor
from lemmata.plot import PredictiveBandDisplay
from lemmata.tree import DecisionTreeRegressor

rng = np.random.default_rng(1)


def rows(n):
    """Draw rows of one column, and targets around a curve."""
    x = np.sort(rng.uniform(0, 10, n))[:, None]
    return x, signal(x[:, 0]) + 0.35 * rng.normal(size=n)


def signal(x):
    """Give the curve."""
    return np.sin(x) + 0.3 * x


x, y = rows(1500)
models = {
    "One tree": DecisionTreeRegressor(),
    "The mean of 300": RandomForestRegressor(n_estimators=300, random_state=0),
    "20 rows a leaf or more": RandomForestRegressor(n_estimators=300, min_samples_leaf=20, random_state=0),
}
fine = np.linspace(0, 10, 800)[:, None]
figure, panels = plt.subplots(1, 3, figsize=(13.5, 4), layout="constrained", sharey=True)
for ax, (title, model) in zip(panels, models.items(), strict=True):
    model.fit(x, y)
    ax.scatter(x, y, s=5, color="0.7", lw=0)
    ax.plot(fine, model.predict(fine), color="#3b7dd8", lw=1.4, label="prediction")
    ax.plot(fine, signal(fine), color="#d08c1d", lw=1.6, ls="--", label="truth")
    off = np.sqrt(np.mean((model.predict(fine) - signal(fine[:, 0])) ** 2))
    ax.set(title=f"{title}: {off:.2f} off the truth", xlabel="x")
    ax.spines[["top", "right"]].set_visible(False)
panels[0].legend(frameon=False)
plt.show()

# %%
# Intervals from the rows that were not drawn
# -------------------------------------------
# A bag leaves out about a third of the rows. What the trees say that have not seen a row is a prediction of a new one, and its
# target is known: the errors of such predictions give intervals for rows that are really new. They are as wide here as there,
# and right on average, over rows and over draws of the table; where noise differs from place to place, they are not right at
# each.

forest = model
new, target = rows(400)
PredictiveBandDisplay.from_estimator(forest, new, target, levels=(0.5, 0.9), name="Intervals of the forest, and new rows")
plt.show()

# %%
# Twenty thousand new rows test the promise:

new, target = rows(20_000)
for level in (0.5, 0.8, 0.9, 0.95):
    low, high = forest.predict_interval(new, level=level).T
    print(f"{level:.0%} intervals hold {np.mean((low <= target) & (target <= high)):.1%} of new rows")

print(f"R² out of bag {forest.oob_score_:.3f}, on new rows {forest.score(new, target):.3f}")

# %%
# The certificate draws every bag again from its seed, recomputes every number of every tree from it, and the out-of-bag
# predictions from those.

forest.certify(x, y)

# sphinx_gallery_thumbnail_number = 2
