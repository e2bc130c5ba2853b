"""
A bound on mistakes
===================

The perceptron is the oldest learning machine, and it has the oldest theorem. If a gap of half-width γ separates the classes
and no row is longer than R, it makes at most (R/γ)² mistakes before it separates them: whatever the number of rows, and in
whatever order they come. The certificate computes the best γ there is, and holds the mistakes against the bound.
"""

# %%
# Two classes with a gap. The perceptron stops at the first line that separates them, which need not be a good one.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.linear_model import Perceptron
from lemmata.linear_model.hard_margin import hard_margin
from lemmata.plot import BoundaryDisplay

rng = np.random.default_rng(0)
normal = np.array([0.6, 0.8])


def classes(gap, n=100):
    """Draw rows from a disc, at least a distance away from a line; the class is the side."""
    X = rng.uniform(-1, 1, size=(20 * n, 2))
    X = X[(np.linalg.norm(X, axis=1) < 1) & (np.abs(X @ normal) > gap)][:n]
    return X, np.where(X @ normal > 0, 1, -1)


X, y = classes(0.08)
model = Perceptron(intercept_scaling=1.0, random_state=0).fit(X, y)
display = BoundaryDisplay.from_estimator(model, X, y, name=f"separated after {model.n_mistakes_} mistakes")
display.ax_.scatter(*X[model.mistakes_ > 0].T, s=80, facecolors="none", edgecolors="#d1495b", linewidths=1.4)
display.ax_.set_aspect("equal")
plt.show()

# %%
# The rows with a red ring are those that it was once mistaken about. The coefficients are the sum of these rows, each as often
# as it was mistaken, with the sign of its class: this identity is a line of the certificate, and leaves no room for anything
# else. The last line is the theorem, as the share of the bound that was used up.

model.certify(X, y)

# %%
# The narrower the gap, the more mistakes
# ---------------------------------------
# Thirty tables for each width of the gap, each visited in its own random order. All points lie below the line of the theorem,
# which is computed for each table from its own widest gap. In practice the perceptron is far better than its theorem, but not
# always: no better bound can hold for all tables.

gaps = np.geomspace(0.01, 0.4, 9)
found = []
for gap in gaps:
    for seed in range(30):
        X, y = classes(gap)
        fit = Perceptron(intercept_scaling=1.0, random_state=seed, max_iter=100_000).fit(X, y)
        margin = hard_margin(y[:, None] * np.column_stack([X, np.ones(len(X))]))
        found.append((margin.lower, fit.n_mistakes_, (margin.radius / margin.lower) ** 2))
width, mistakes, bound = np.array(found).T

figure, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
ax.loglog(width, bound, ".", color="#2a9d6f", ms=4)
ax.loglog(width, mistakes, "o", color="#3b7dd8", ms=5, alpha=0.5, mew=0)
ax.text(0.04, 2300, "bound (R/γ)²", color="#2a9d6f")
ax.text(0.04, 60, "mistakes", color="#3b7dd8")
ax.minorticks_off()
ax.set_xticks([0.02, 0.05, 0.1, 0.2, 0.4], ["0.02", "0.05", "0.1", "0.2", "0.4"])
ax.set(xlabel="half-width γ of the widest gap", ylabel="number of mistakes")
ax.set_title(f"The bound holds in {(mistakes <= bound).sum()} of {len(bound)} tables")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

print(f"largest share of the bound that was used: {max(mistakes / bound):.1%}")

# sphinx_gallery_thumbnail_number = 1
