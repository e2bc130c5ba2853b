"""
What a kernel sees
==================

A kernel is a similarity that is an inner product of features. Three ways to look at one: the matrix of all pairs of rows, the
features that it stands for, and what a method makes of them that knows the rows through the kernel only.
"""

# %%
# Matrices
# --------
# Sixty points on a line, in order. The linear kernel knows an origin, the RBF only distances, the Matérn kernel of order ½ has
# a sharp ridge where the RBF has a round one, and a periodic kernel returns. Sums and products of kernels are kernels.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.kernels import RBF, Linear, Matern, Periodic, Sigmoid, integral_features, is_positive_semidefinite, taylor_features
from lemmata.svm import KernelPerceptron, KernelRegression, KernelVoteClassifier

line = np.linspace(-2, 2, 60)[:, None]
kernels = {
    "linear": Linear(),
    "RBF": RBF(0.5),
    "Matérn, ν = ½": Matern(0.5, nu=0.5),
    "periodic": Periodic(1.0, 1.5),
    "RBF × periodic": RBF(1.0) * Periodic(1.0, 1.5),
    "tanh, which is none": Sigmoid(1.0, -1.0),
}
figure, axes = plt.subplots(2, 3, figsize=(8.4, 5.8), layout="constrained")
for ax, (name, k) in zip(axes.ravel(), kernels.items(), strict=True):
    ax.imshow(k(line), cmap="viridis", extent=(-2, 2, 2, -2))
    found = is_positive_semidefinite(k, line)
    ax.set_title(f"{name}\n{'no negative eigenvalue' if found else f'eigenvalue {found.least:.0f}'}", fontsize=10)
    ax.set_xticks([-2, 0, 2])
    ax.set_yticks([-2, 0, 2])
plt.show()

# %%
# The tanh is offered as a kernel in many places. It has a negative eigenvalue, and the eigenvector is a proof that anybody can
# check: no features have these inner products.

print(is_positive_semidefinite(kernels["tanh, which is none"], line))

# %%
# Features
# --------
# The features of the RBF are infinitely many, but one can draw the first ones of its Taylor series, or some of the bells over
# which it is an integral. Both lists, cut off, have the kernel as their inner product, up to an error that is known beforehand.

k = RBF(gamma=1.0)
wide = np.linspace(-3, 3, 200)[:, None]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained", sharex=True)
left.plot(wide, taylor_features(k, wide, 7), lw=1.4)
left.set_title("features of the series: exp(−x²) √(2ᵏ/k!) xᵏ", fontsize=10)
right.plot(wide, integral_features(k, wide)[:, ::3], lw=1.4)
right.set_title("features of the integral: bells", fontsize=10)
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Methods
# -------
# Two classes that no line separates. The perceptron finds a curve, made of the rows that it was once mistaken about (rings);
# the vote of all rows gives probabilities.

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 160)
turn, radius = rng.uniform(0, 2 * np.pi, 160), 1 + y + rng.uniform(-0.4, 0.4, 160)
X = np.column_stack([radius * np.cos(turn), radius * np.sin(turn)])
machine = KernelPerceptron(gamma=1.0, random_state=0).fit(X, y)
vote = KernelVoteClassifier(gamma=2.0).fit(X, y)

side = np.linspace(-2.8, 2.8, 120)
grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 4.2), layout="constrained")
scores, chances = machine.decision_function(grid), vote.predict_proba(grid)[:, 1]
for ax, values, levels in ((left, scores, [0.0]), (right, chances, [0.1, 0.5, 0.9])):
    ax.contour(side, side, values.reshape(120, 120), levels=levels, colors="#555555", linewidths=1.2)
    ax.scatter(*X.T, c=np.where(y == 1, "#d1495b", "#3b7dd8"), s=14)
    ax.set_aspect("equal")
    ax.set_axis_off()
left.scatter(*machine.support_vectors_.T, s=70, facecolors="none", edgecolors="black", linewidths=1.0)
left.set_title(f"perceptron: {machine.n_mistakes_} mistakes at {len(machine.support_)} rows", fontsize=10)
right.set_title("vote: probability 0.1, 0.5, 0.9", fontsize=10)
plt.show()

# %%
# Averages over neighbors
# -----------------------
# Kernel regression averages targets by similarity. Its only parameter is how far "near" reaches, and leaving each row out in
# turn finds it. Beyond the rows, the nearest one decides, and the prediction stays between the least and the largest target.

x = np.sort(rng.uniform(0, 6, 120))[:, None]
target = np.sin(x[:, 0]) + 0.25 * rng.normal(size=120)
across = np.linspace(-1, 7, 300)[:, None]
chosen = KernelRegression().fit(x, target)
figure, ax = plt.subplots(figsize=(8.4, 3.6), layout="constrained")
ax.plot(x, target, ".", color="#999999", ms=4)
for factor, color in ((1 / 40, "#3b7dd8"), (1, "#2a9d6f"), (40, "#d1495b")):
    gamma = factor * chosen.kernel_.gamma
    ax.plot(across, KernelRegression(gamma=gamma).fit(x, target).predict(across), color=color, lw=1.6, label=f"γ = {gamma:.3g}")
ax.legend(frameon=False)
ax.set_title(f"leaving one out chooses γ = {chosen.kernel_.gamma:.3g}")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

chosen.certify(x, target)

# sphinx_gallery_thumbnail_number = 1
