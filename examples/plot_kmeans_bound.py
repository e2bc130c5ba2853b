"""
How good can any clustering be?
===============================

K-means finds a local optimum; whether it is the best one is hard to know. The certificate answers with a bound. For tables
of moderate size it evaluates a dual point of the semidefinite relaxation of k-means, which bounds the inertia of *every*
set of k centers from below. Where clusters are well apart, the bound meets the inertia, and the local optimum is proved to be
the global one.
"""

# %%
# Three discs of radius one move apart. At each distance the rows are clustered, and the certificate says by what share of the
# inertia any other three centers could do better, at most.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.cluster import KMeans

rng = np.random.default_rng(0)
n = 60
radius, angle = np.sqrt(rng.random(3 * n)), 2 * np.pi * rng.random(3 * n)
discs = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
corners = np.repeat([[0.0, 1.0], [-np.sqrt(0.75), -0.5], [np.sqrt(0.75), -0.5]], n, axis=0) / np.sqrt(3)


def clustered(distance):
    """Cluster three discs whose centers are so far from each other; return the rows, the model and what it could gain."""
    X = discs + distance * corners
    model = KMeans(3, n_init=5, random_state=0).fit(X)
    return X, model, model.certify(X)["excess"].value


distances = np.linspace(0.0, 4.0, 41)
inertia = np.array([clustered(distance)[1].inertia_ for distance in distances])
excess = np.array([clustered(distance)[2] for distance in distances])
proved = excess < 1e-12
print(f"proved optimal at {proved.sum()} of {len(distances)} distances; largest doubt there: {excess[proved].max():.0e}")

# %%
# Above: the rows and the centers at three distances. Below: the inertia that was found, and the bound under which no three
# centers can go. The truth lies in the shaded region. On the right it closes: the two agree to rounding, so k-means is
# proved to have found the optimum. On the left the certificate does not pretend: the bound is loose, and it says so.

shown = (0.8, 2.0, 3.4)
figure, axes = plt.subplot_mosaic(
    [["a", "b", "c"], ["bound"] * 3], figsize=(8, 6.4), layout="constrained", height_ratios=[1, 1.2]
)
colors = np.array(["#3b7dd8", "#2a9d6f", "#d08c1d"])
for key, distance in zip("abc", shown, strict=True):
    ax, (X, model, value) = axes[key], clustered(distance)
    rank = np.argsort(np.argsort(model.cluster_centers_[:, 0]))  # the same color for the same side
    ax.scatter(*X.T, s=9, c=colors[rank[model.labels_]], alpha=0.65, linewidths=0)
    ax.scatter(*model.cluster_centers_.T, marker="X", s=80, color="black", edgecolors="white", linewidths=0.8)
    ax.set_title(
        f"distance {distance:g}: " + ("proved optimal" if value < 1e-9 else f"at most {value:.0%} to gain"), fontsize="medium"
    )
    ax.set(xlim=(-3, 3), ylim=(-2.3, 3.2), xticks=[], yticks=[], aspect="equal")
    ax.spines[:].set_color("0.8")

ax = axes["bound"]
bound = inertia * (1 - excess)
ax.fill_between(distances, bound, inertia, color="#3b7dd8", alpha=0.15, lw=0)
ax.plot(distances, inertia, color="#3b7dd8", lw=2)
ax.plot(distances, bound, color="#2a9d6f", lw=2)
ax.plot(distances[proved], inertia[proved], color="#2a9d6f", lw=5, solid_capstyle="round")
ax.text(1.15, 78, "inertia of k-means", color="#3b7dd8", ha="right")
ax.text(1.6, 50, "lower bound for any three centers", color="#2a9d6f", backgroundcolor="white")
ax.text(
    distances[proved].mean(),
    inertia[-1] + 5,
    "the two agree:\nthe optimum is proved",
    color="#2a9d6f",
    ha="center",
    va="bottom",
)
ax.vlines(shown, 0, np.interp(shown, distances, inertia), color="0.6", lw=1, ls=(0, (4, 3)), zorder=0)
ax.set(
    xlabel="distance between the centers of the discs, in units of their radius",
    ylabel="inertia",
    xlim=(distances[0], distances[-1] + 0.05),
    ylim=(0, 1.15 * inertia.max()),
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
