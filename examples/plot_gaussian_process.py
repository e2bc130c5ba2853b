"""
Functions, and how sure one can be of them
==========================================

A Gaussian process is a distribution over functions. Rows narrow it down: near them every function that is left goes through
almost the same place, away from them they part.
"""

# %%
# Before and after
# ----------------
# Functions drawn before anything was seen, and after eight noisy measurements. The dark band is where f is with probability
# 0.9, the light one where the next measurement will be.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.kernels import RBF, Constant

rng = np.random.default_rng(4)
X = np.array([0.4, 1.1, 1.5, 2.9, 3.3, 6.1, 6.6, 8.9])[:, None]
y = np.sin(X[:, 0]) + 0.3 * X[:, 0] + 0.1 * rng.standard_normal(8)
x = np.linspace(-1, 11, 400)[:, None]
kernel = Constant(2.0) * RBF(1.3)
model = GaussianProcessRegressor(kernel, noise=0.01, optimizer=None).fit(X, y)


def band(ax, model, X, y):
    for of, alpha in (("y", 0.13), ("f", 0.22)):
        low, high = model.predict_interval(x, 0.9, of=of).T
        ax.fill_between(x[:, 0], low, high, color="#2a9d6f", alpha=alpha, lw=0)
    ax.plot(x, model.predict(x), color="#1d6f4f", lw=1.6)
    ax.plot(X, y, "o", color="0.15", ms=4.5)
    ax.spines[["top", "right"]].set_visible(False)


fig, (before, after) = plt.subplots(1, 2, figsize=(9.6, 3.8), sharey=True, layout="constrained")
root = np.linalg.cholesky(kernel(x) + 1e-9 * np.eye(len(x)))
before.plot(x, model.y_mean_ + root @ rng.standard_normal((len(x), 12)), lw=0.8, color="#3b6ea5", alpha=0.7)
before.spines[["top", "right"]].set_visible(False)
before.set(title="Twelve functions from the prior", xlabel="x")
band(after, model, X, y)
after.plot(x, model.sample(x, 12, random_state=1).T, lw=0.7, color="#3b6ea5", alpha=0.7)
after.set(title="Twelve that eight rows leave", xlabel="x")
plt.show()

# %%
# The certificate recomputes the posterior from rows and hyperparameters alone.

model.certify(X, y)

# %%
# How long is the length scale?
# -----------------------------
# The evidence is the probability of the targets, all functions averaged. Over length scale and noise it has two tops: a
# function that bends and little noise, or a straight one, at the bound, and much. A search climbs the one that it starts at;
# `n_restarts` finds the better one.

rng = np.random.default_rng(1)
X2 = rng.uniform(0, 10, (14, 1))
y2 = np.sin(1.6 * X2[:, 0]) + 0.35 * rng.standard_normal(14)
bounds = (1e-3, 10.0)
ends = [
    GaussianProcessRegressor(
        Constant(1.0, value_bounds="fixed") * RBF(scale, length_scale_bounds=(0.05, 50)), noise_bounds=bounds
    ).fit(X2, y2)
    for scale in (0.5, 20.0)
]
scales, noises = np.geomspace(0.1, 60, 70), np.geomspace(*bounds, 60)
surface = [[ends[0].log_marginal_likelihood(np.log([s, v])) for s in scales] for v in noises]

fig, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
top = np.max(surface)
lines = ax.contourf(scales, noises, np.maximum(surface, top - 12), levels=np.linspace(top - 12, top, 25), cmap="viridis")
for end in ends:
    ax.plot(end.kernel_.right.length_scale, end.noise_, "o", color="white", mec="black", ms=8)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="length scale",
    ylabel="variance of the noise",
    title="Log evidence, and where searches end",
)
fig.colorbar(lines, format="%.0f")
plt.show()

# %%
# Where to measure next
# ---------------------
# Where the prediction is least certain, given the choices before. Five rows are enough to close most of the gaps of the first
# picture; `update` learns them without a new fit.

chosen = model.most_informative(x, 5)
X3 = x[chosen]
y3 = np.sin(X3[:, 0]) + 0.3 * X3[:, 0] + 0.1 * rng.standard_normal(5)
fig, ax = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
model.update(X3, y3)
band(ax, model, X, y)
ax.plot(X3, y3, "D", color="#c2410c", ms=5.5)
ax.set(title="Five more rows, where they tell most", xlabel="x")
plt.show()

# sphinx_gallery_thumbnail_number = 1
