"""
Principal components of pictures with missing pixels
====================================================

Principal components summarize many columns by few directions. As a density (probabilistic PCA) they also say what a missing
entry probably was, and how sure that is.
"""

# %%
# How many directions
# -------------------
# Handwritten digits, 8 × 8 pixels each. Bars are shares of the variance, the line is what the first directions keep together.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lemmata.decomposition import PCA, ProbabilisticPCA
from lemmata.plot import FactorImagesDisplay, ScoresDisplay, ScreeDisplay

X, y = load_digits(return_X_y=True)
model = PCA().fit(X)
ScreeDisplay.from_estimator(model)
plt.show()

# %%
# The first two coordinates already tell some digits apart.

ScoresDisplay.from_estimator(model, X, y)
plt.show()

# %%
# Directions are pictures: red adds ink, blue takes it away. No other 12 directions keep more of the variance; the certificate
# proves it.

few = PCA(12).fit(X)
FactorImagesDisplay.from_estimator(few, shape=(8, 8))
plt.show()

# %%

few.certify(X)

# %%
# A third of the pixels is lost
# -----------------------------
# EM fits the model to what is left. The holes are averaged over, not filled beforehand, so the noise is not underestimated.

rng = np.random.default_rng(0)
holes = rng.random(X.shape) < 0.33
seen = np.where(holes, np.nan, X)
partial = ProbabilisticPCA(12).fit(seen)
filled, doubt = partial.fill(seen), partial.fill_std(seen)
column_mean = np.where(holes, np.nanmean(seen, axis=0), X)
for name, guess in (("mean of the column", column_mean), ("probabilistic PCA", filled)):
    print(f"{name:>18}: typical error of a lost pixel {np.sqrt(np.mean((guess - X)[holes] ** 2)):.2f} of 16")

# %%
# Pictures with lost pixels (tinted), filled, as they were, and the doubt in a filled pixel: dark where the model cannot know.

rows = [3, 16, 25, 36, 44, 58]
figure, axes = plt.subplots(4, len(rows), figsize=(7.6, 5.4), layout="constrained")
for column, i in enumerate(rows):
    for ax, image, style in zip(
        axes[:, column],
        (seen[i], filled[i], X[i], doubt[i]),
        ({"cmap": "Greys"}, {"cmap": "Greys"}, {"cmap": "Greys"}, {"cmap": "Oranges"}),
        strict=True,
    ):
        ax.set_facecolor("#dfe8f5")
        ax.imshow(image.reshape(8, 8), vmin=0, vmax=doubt.max() if style["cmap"] == "Oranges" else 16, **style)
        ax.set(xticks=[], yticks=[])
for ax, name in zip(axes[:, 0], ("seen", "filled", "truth", "doubt"), strict=True):
    ax.set_ylabel(name)
plt.show()

# sphinx_gallery_thumbnail_number = 4
