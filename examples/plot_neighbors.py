"""
Ask the neighbors
=================

A vote of the nearest rows has one dial: how many of them vote. And distance has one: the power p of Minkowski's distance, which
says what near means.
"""

# %%
# How many?
# ---------
# One neighbor believes every row, the odd ones too; two hundred believe none, and see little but on which side there are more.
# Between them lies a number that is best, and leaving one row out at a time finds it: what the others say about a row is the
# same search without it, so nothing is fitted anew.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from lemmata.neighbors import KNeighborsClassifier, NearestNeighbors

rng = np.random.default_rng(3)
moon = np.arange(400) % 2
angle = np.pi * (rng.random(400) + moon)
X = np.column_stack([np.cos(angle) + moon, np.sin(angle) + moon / 2]) + 0.3 * rng.normal(size=(400, 2))
y = moon

counts = np.unique(np.geomspace(1, 300, 40).astype(int))
errors = [np.mean(KNeighborsClassifier(k).fit(X, y).leave_one_out() != y) for k in counts]
best = int(counts[np.argmin(errors)])
print(f"{best} neighbors err on {min(errors):.1%} of the rows left out, one neighbor on {errors[0]:.1%}")

COLORS = np.array(["#3b7dd8", "#d08c1d"])
shades = LinearSegmentedColormap.from_list("vote", [COLORS[0], "white", COLORS[1]])
grid = np.meshgrid(np.linspace(-2, 3, 220), np.linspace(-1.4, 2, 150))
places = np.column_stack([g.ravel() for g in grid])
figure, axes = plt.subplots(1, 4, figsize=(13, 3.1), layout="constrained", width_ratios=[1, 1, 1, 1.1])
for ax, k in zip(axes, (1, best, 200), strict=False):
    share = KNeighborsClassifier(k).fit(X, y).predict_proba(places)[:, 1].reshape(grid[0].shape)
    ax.contourf(*grid, share, np.linspace(0, 1, 11), cmap=shades, alpha=0.45)
    ax.contour(*grid, share, [0.5], colors="0.2", linewidths=1.2)
    ax.scatter(*X.T, c=COLORS[y], s=9, lw=0)
    ax.set(title=f"k = {k}", xticks=[], yticks=[], xlim=(-2, 3), ylim=(-1.4, 2))
axes[3].plot(counts, errors, color="0.2")
axes[3].axvline(best, color="#d1495b", lw=1)
axes[3].set(xscale="log", xlabel="neighbors", title="Errors on rows left out", ylim=(0, None))
plt.show()

# %%
# What is near?
# -------------
# Each place of the plane has the color of the row that is nearest to it. City blocks (p = 1) and the largest difference (p = ∞)
# make cells with other edges than Euclid's; what lies between is a matter of taste, and is searched exactly too.

rows = rng.random((14, 2))
square = np.stack(np.meshgrid(np.linspace(0, 1, 260), np.linspace(0, 1, 260)), axis=-1).reshape(-1, 2)
figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
for ax, p in zip(axes, (1, 1.5, 2, np.inf), strict=True):
    nearest = NearestNeighbors(1, p=p).fit(rows).kneighbors(square, return_distance=False)
    ax.imshow(nearest.reshape(260, 260), origin="lower", extent=(0, 1, 0, 1), cmap="tab20", alpha=0.6, interpolation="nearest")
    ax.scatter(*rows.T, s=22, color="0.15")
    ax.set(title=f"p = {'∞' if p == np.inf else p}", xticks=[], yticks=[])
plt.show()

# %%
# The certificate compares with every row and sorts. That is what the search promises to be equal to.

KNeighborsClassifier(best).fit(X, y).certify(X, y)
