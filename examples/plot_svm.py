"""
The rows that hold a boundary
=============================

A support vector machine looks for the widest street between two classes. Only the rows at the curb, and those that got onto the
street, have a say in where it runs. The others might as well not be there, and that is worth something.
"""

# %%
# The widest street is the shortest way between two hulls
# -------------------------------------------------------
# Where a line separates the classes, the street is as wide as the gap between their convex hulls, and it lies across the
# shortest line from one hull to the other. Two problems, two algorithms, one answer.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.plot import MarginDisplay
from lemmata.svm import SVC, SVR, hull_distance
from lemmata.theory import guarantee

rng = np.random.default_rng(4)
y = np.repeat(["hill", "valley"], 40)
X = rng.normal(size=(80, 2)) @ [[1.0, 0.5], [0.0, 0.6]] + np.where(y == "hill", 2.2, -2.2)[:, None] * [0.2, 1.0]

hard = SVC(kernel="linear", hard_margin=True).fit(X, y)
hulls = hull_distance(X, y)
print(f"distance of the hulls {hulls.distance:.9f}, width of the street {2 * hard.margin_[0]:.9f}")

display = MarginDisplay.from_estimator(hard, X, y, feature_names=["east", "north"], name="The widest street")
display.ax_.plot(*np.transpose([hulls.p, hulls.q]), color="#d1495b", lw=2, marker="o", ms=4)
display.ax_.set_aspect("equal")
plt.show()

# %%
# The certificate proves both: no two points of the hulls are nearer, and no plane has a wider margin.

print(hulls.certify(X, y))
hard.certify(X, y)

# %%
# Where no line will do
# ---------------------
# A kernel bends the street, and a price C for each row on it decides how much it matters that rows are there. Rows with a ring
# are the support vectors; those with a cross are on the wrong side.

arm = np.arange(150) % 3
angle = rng.uniform(0, 1.4 * np.pi, 150)
arms = (0.4 + angle / 2)[:, None] * np.column_stack([np.cos(angle + arm * 2.1), np.sin(angle + arm * 2.1)])
arms += 0.22 * rng.normal(size=(150, 2))

figure, panels = plt.subplots(1, 3, figsize=(13.5, 4.4), layout="constrained", sharex=True, sharey=True)
for ax, C in zip(panels, (0.1, 1.0, 100.0), strict=True):
    model = SVC(C=C, gamma=1.0).fit(arms, arm)
    assert model.certify(arms, arm).holds
    MarginDisplay.from_estimator(model, arms, arm, name=f"C = {C:g}: {len(model.support_)} support vectors", ax=ax)
    if ax is not panels[-1]:
        ax.get_legend().remove()
plt.show()

# %%
# What the other rows are good for
# --------------------------------
# Rows outside the street could be left out without changing the machine, so they test it as if they had never been seen. From
# their number alone follows a bound on the risk, with a probability of 95 %, if C and the kernel were fixed beforehand:

many = rng.normal(size=(2000, 2))
side = np.hypot(*many.T) > 1.2
machine = SVC(C=10.0, gamma=1.0).fit(many, side)
bound = guarantee(machine, many, side, refit=False)["support vectors"]
print(f"{len(machine.support_)} of 2,000 rows are support vectors: at most {bound.value:.1%} of new rows will be misjudged")

# %%
# A tube for numbers
# ------------------
# In regression the street becomes a tube of half width ε. Rows in it cost nothing and have no say.

x = np.sort(rng.uniform(0, 10, 80))[:, None]
t = np.sin(x[:, 0]) + 0.05 * x[:, 0] + 0.15 * rng.normal(size=80)
SVR(C=10.0, epsilon=0.2).fit(x, t).plot(x, t)
plt.show()

# sphinx_gallery_thumbnail_number = 2
