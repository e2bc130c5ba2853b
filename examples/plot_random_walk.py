"""
Six labels for four hundred rows
================================

Labels are dear and rows are cheap. A random walk uses both: from a row it steps to a row close by, and on, until it stands on
one that has a label. How probably that is a label of each class is what it says about the row where it began.
"""

# %%
# Two moons, and three labels on each
# -----------------------------------
# The nearest label may be one of the other moon. The walk does not care how far a label is as the crow flies: rows of a moon
# are close to each other, and it seldom jumps across. Large dots are the rows with labels, and the line on the right is where
# both moons are as probable.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.semi_supervised import RandomWalkClassifier

rng = np.random.default_rng(4)
moon = np.arange(400) % 2
angle = np.pi * (rng.random(400) + moon)
X = np.column_stack([np.cos(angle) + moon, np.sin(angle) + moon / 2]) + 0.09 * rng.normal(size=(400, 2))
y = np.full(400, -1)  # −1: no label
y[:6] = moon[:6]

model = RandomWalkClassifier().fit(X, y)
nearest = y[:6][np.argmin(((X[:, None] - X[:6]) ** 2).sum(axis=2), axis=1)]
print(f"right: {np.mean(model.transduction_ == moon):.1%} by the walk, {np.mean(nearest == moon):.1%} by the nearest label")

COLORS = np.array([[0.231, 0.490, 0.847], [0.816, 0.549, 0.114]])


def rows(ax, title, **style):
    """Draw all rows, and large those with labels."""
    ax.scatter(*X.T, s=14, lw=0, **style)
    ax.scatter(*X[:6].T, s=110, facecolor=COLORS[y[:6]], edgecolor="0.1", lw=1.6, zorder=3)
    ax.set(title=title, aspect="equal", xlim=(-1.3, 2.3), ylim=(-0.85, 1.35), xticks=[], yticks=[])


grid = np.meshgrid(np.linspace(-1.3, 2.3, 160), np.linspace(-0.85, 1.35, 100))
chance = model.predict_proba(np.column_stack([g.ravel() for g in grid]))[:, 1].reshape(grid[0].shape)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.9), layout="constrained")
rows(left, "By the nearest label", color=COLORS[nearest])
rows(right, "By the walk", color=model.label_distributions_ @ COLORS)
right.contour(*grid, chance, [0.5], colors="0.35", linewidths=1.2)
plt.show()

# %%
# The certificate does not trust the solver. It puts the probabilities into their equations: each is the mean of those one step
# on. What is left over, times the expected number of steps, bounds the error of every single probability. That is a theorem,
# the maximum principle, so the certificate is a proof.

model.certify(X, y)

# %%
# How far from a label?
# ---------------------
# The expected number of steps is part of the fit. Where it is large, the answer comes from far away. Two strays are put on the
# picture that are close to each other and far from all else: no walk gets from them to a label, in any number of steps that a
# computer could tell from none at all. They get the frequencies of the labels, and the fit warns.

import warnings

strays = np.vstack([X, [[-1.15, -0.8], [-1.1, -0.75]]])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    again = RandomWalkClassifier().fit(strays, np.append(y, [-1, -1]))
print(told[0].message)

steps = np.ma.masked_invalid(again.absorption_times_)
figure, ax = plt.subplots(figsize=(6.8, 4.2), layout="constrained")
drawn = ax.scatter(*strays.T, c=steps, s=18, lw=0, cmap="viridis")
ax.scatter(*strays[again.isolated_].T, marker="x", color="#d1495b", label="isolated")
ax.scatter(*X[:6].T, s=110, facecolor="none", edgecolor="0.1", lw=1.6, label="labels")
ax.set(title="Steps until a label is met", aspect="equal", xticks=[], yticks=[])
ax.legend(loc="upper right", frameon=False)
figure.colorbar(drawn, ax=ax, shrink=0.75, label="expected steps")
plt.show()
