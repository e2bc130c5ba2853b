"""
Missing values without guessing
===============================

A table with holes is often "completed" by the mean of each column before a model sees it. That shifts means, shrinks variances
and tears columns apart. A mixture of Gaussians needs no completed table: the density of a row with holes is that of its seen
entries, and EM averages over the rest.
"""

# %%
# Which entries are missing, and together with which
# --------------------------------------------------
# Flowers were measured in a hurry: the longer the petal, the less often somebody measured its width, and some sheets of
# sepals were lost. Each line is a pattern; bars on the right say how many rows have it, bars above how much a column lacks.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from lemmata.mixture import GaussianMixture
from lemmata.plot import MissingPatternDisplay, MixtureDisplay

truth = load_iris(as_frame=True).data
rng = np.random.default_rng(0)
length = truth["petal length (cm)"]
holes = np.zeros(truth.shape, dtype=bool)
holes[:, 3] = rng.random(len(truth)) < 0.85 * (length - length.min()) / (length.max() - length.min())
holes[:, 0] = rng.random(len(truth)) < 0.15
holes[:, 1] = holes[:, 0] & (rng.random(len(truth)) < 0.6)
X = truth.mask(holes)
MissingPatternDisplay.from_data(X)
plt.show()

# %%
# A fit to what is seen
# ---------------------
# Hollow marks are rows that lack one of the two columns. They lie at their mean given what was seen of them.

model = GaussianMixture(2, random_state=0).fit(X)
MixtureDisplay.from_estimator(model, X, features=("petal length (cm)", "petal width (cm)"))
plt.show()

# %%
# The certificate is that of a complete table: an EM step leaves the fit where it is.

model.certify(X)

# %%
# Large petals lack their width more often, so the mean of the widths that were measured is too small. The mixture knows that
# long petals are wide: its mean is close to the truth, and so is what it fills in.

width = "petal width (cm)"
filled = np.asarray(model.fill(X))[:, 3]
spread = np.asarray(model.fill_std(X))[:, 3]
gone = holes[:, 3]
actual, measured = truth[width].to_numpy(), X[width].to_numpy()
means = {"truth": actual.mean(), "measured only": np.nanmean(measured), "mixture": model.weights_ @ model.means_[:, 3]}
print(", ".join(f"{name} {value:.2f} cm" for name, value in means.items()))
errors = {"column mean": np.nanmean(measured) - actual[gone], "mixture": filled[gone] - actual[gone]}
print(
    ", ".join(f"{name} {np.sqrt(np.mean(error**2)):.2f} cm" for name, error in errors.items()),
    "typical error of a filled width",
)

# %%
# A filled value comes with its standard deviation. Here are the true widths against the filled ones, with two standard
# deviations to either side; the column mean would put all of them on the dashed line.

figure, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
ax.errorbar(filled[gone], actual[gone], xerr=2 * spread[gone], fmt="o", ms=4, lw=0.8, color="#3b7dd8", ecolor="0.75")
ax.axline((1, 1), slope=1, color="black", lw=1)
ax.axvline(np.nanmean(measured), color="#d08c1d", lw=1.4, ls=(0, (4, 3)))
ax.annotate("mean of what was measured", (np.nanmean(measured), 0.35), (6, 0), textcoords="offset points", color="#d08c1d")
inside = np.mean(np.abs(filled[gone] - actual[gone]) <= 2 * spread[gone])
ax.set(xlabel="filled width (cm)", ylabel="true width (cm)", title=f"{inside:.0%} of the true widths lie inside")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# sphinx_gallery_thumbnail_number = 2
