"""
Parts and wholes
================

Principal components of pictures are wholes that are added and taken away until the picture is there. Factors without negative
numbers can only add, so they become parts: strokes of digits. Both are certified, the first as the best of all, the second as a
point that no small change improves, with a bound on what a large one could.
"""

# %%
# Sixteen numbers for a digit of 64 pixels, in two ways. Blue takes away, red adds.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from lemmata.decomposition import NMF, PCA, select_rank

X = load_digits().data
K = 16
wholes = PCA(K).fit(X)
parts = NMF(K, random_state=0).fit(X)


def pictures(rows, title, axes):
    """Draw rows as pictures, zero in white."""
    for ax, row in zip(axes.ravel(), rows, strict=True):
        size = np.abs(row).max()
        ax.imshow(row.reshape(8, 8), cmap="RdBu_r", vmin=-size, vmax=size)
        ax.set_axis_off()
    axes[0, 0].set_title(title, loc="left", fontsize=11)


figure = plt.figure(figsize=(8.4, 4.4), layout="constrained")
left, right = figure.subfigures(1, 2)
pictures(wholes.components_, "principal components", left.subplots(4, 4))
pictures(parts.components_, "parts", right.subplots(4, 4))
plt.show()

# %%
# What they prove. The components have the least error of all factors with 16 numbers a row (about the mean); the parts cannot
# be that good, and "excess" says by how much they might be worse than the best parts, at most.

print(wholes.certify(X))
print(parts.certify(X))

# %%
# One digit, put together from the parts that it has most of.

W = parts.transform(X)
row = 7
order = np.argsort(-W[row])[:5]
figure, axes = plt.subplots(1, 7, figsize=(8.4, 1.7), layout="constrained")
steps = [W[row, order[: n + 1]] @ parts.components_[order[: n + 1]] for n in range(5)]
titles = ["the digit", *(f"{n + 1} part{'s' if n else ''}" for n in range(5)), "all 16"]
for ax, picture, title in zip(axes, [X[row], *steps, W[row] @ parts.components_], titles, strict=True):
    ax.imshow(picture.reshape(8, 8), cmap="Reds", vmin=0, vmax=16)
    ax.set_title(title, fontsize=10)
    ax.set_axis_off()
plt.show()

# %%
# How many parts does a digit have? Hide a tenth of the pixels, fit the rest, and see how well the hidden ones are foretold.

curve = select_rank(NMF(tol=1e-3, random_state=0), X[:600], [2, 4, 6, 8, 10, 12, 16, 20], n_repeats=2, random_state=0)
figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.plot(curve.ranks, curve.errors.T, color="0.75", lw=1)
ax.plot(curve.ranks, curve.means, color="C3", marker="o", ms=4)
ax.axvline(curve.suggested, color="0.4", lw=0.8, ls="--")
ax.set_xticks(curve.ranks)
ax.set_xlabel("parts")
ax.set_ylabel("half squared error of a hidden pixel")
ax.set_title(f"hidden pixels ask for {curve.suggested} parts", fontsize=11)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
