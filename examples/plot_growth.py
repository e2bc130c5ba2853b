"""
Growth, shattering and the best of many bounds
==============================================

A class of functions that can label points in every way can fit anything, and a good fit says nothing. How many labelings a
class has is a question of counting, and here the counting is exact.
"""

# %%
# The growth function of a class follows 2ᵐ until the VC dimension, and is a polynomial from there on. Sauer's lemma bounds it.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.plot import GrowthDisplay
from lemmata.theory import Halfspaces, Intervals, Thresholds, radon_partition, vc_dimension
from lemmata.theory.bounds import clopper_pearson

GrowthDisplay.from_class([Thresholds(), Intervals(), Halfspaces(2)], max_m=12)
plt.show()

# %%
# Three points in the plane can be labeled in all eight ways; each has a witness. For four, Radon's theorem names a labeling
# that no line produces: the two sets have a point in common.

square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
print(Halfspaces(2).shatters(square[:3]).certificate())
print(radon_partition(square).certificate())
print(vc_dimension(Halfspaces(2)).certificate())

# %%
# Choosing has a price
# --------------------
# Eight test sets of 100 rows for eight models that all err on a quarter of the rows. Each bound is exceeded by the truth in at
# most 5 % of the cases. The least of the eight is exceeded in a quarter of them, unless each is computed at δ/8.

errors = np.random.default_rng(0).binomial(100, 0.25, (4000, 8)).min(axis=1)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for delta, name in ((0.05, "each at δ"), (0.05 / 8, "each at δ/8")):
    values = np.array([clopper_pearson(int(k), 100, delta) for k in errors])
    exceeded = (values < 0.25).mean()
    ax.hist(values, bins=np.arange(0.14, 0.42, 0.01), alpha=0.6, label=f"{name}: exceeded in {exceeded:.1%}")
ax.axvline(0.25, color="black", linewidth=1)
ax.set(xlabel="least of eight bounds on a risk of 0.25", ylabel="simulations")
ax.legend(frameon=False)
plt.show()

# sphinx_gallery_thumbnail_number = 1
