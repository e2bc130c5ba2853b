"""
How many, and who says so
=========================

A larger model always fits its own rows better. Something has to be held against it: the number of its parameters, rows that it
has not seen, other samples of the same kind, or a prior. Here are five clouds of points, and what each of these makes of them.
"""

# %%
# The likelihood less what parameters cost
# ----------------------------------------
# One of the clouds is long, and two are near each other. Nobody is told that there are five. Akaike's criterion asks which
# mixture predicts new points best, to first order; Bayes' criterion asks which is the most probable, and charges more for a
# parameter. What Akaike's takes on top is a splinter: a few points that happen to lie in a row.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.cluster import KMeans
from lemmata.mixture import DirichletProcessMixture, GaussianMixture
from lemmata.model_selection import select_order
from lemmata.plot import MixtureDisplay, OrderCurveDisplay

rng = np.random.default_rng(4)
centers = np.array([[0.0, 0.0], [5.0, 0.5], [7.5, 3.0], [1.0, 5.5], [-4.0, 3.0]])
spreads = np.array([[1.0, 1.0], [0.8, 0.8], [0.8, 0.8], [1.8, 0.5], [0.7, 1.2]])


def draw(n):
    """Draw points from five clouds of equal shares."""
    cloud = rng.integers(5, size=n)
    return centers[cloud] + spreads[cloud] * rng.normal(size=(n, 2))


points, numbers = draw(250), range(2, 8)
aic, bic, held_out = (
    select_order(GaussianMixture(), "n_components", numbers, points, criterion=criterion, random_state=0)
    for criterion in ("aic", "bic", "cv")
)
figure, panels = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
for ax, curve in zip(panels, (aic, bic), strict=True):
    MixtureDisplay.from_estimator(curve.model, points, ax=ax)
    ax.set_title(f"{curve.criterion.upper()}: {curve.suggested} components")
plt.show()

# %%
# Rows that were not seen, and other samples
# ------------------------------------------
# The likelihood of held-out rows needs no count of parameters. It is nearly flat around the true number. The circle has the
# least mean over folds, and the square is the smallest number within one standard error of it, below the dotted line: with
# five folds that differ so much the rule is too modest, and takes the two clouds that are near each other for one. Stability
# compares how k-means divides two samples of the points: 0 where both agree, 1 where they agree no more than labels by chance.
# It does not say one number, but which are not there: two and five can be trusted, three and four cannot.

stable = select_order(KMeans(), "n_clusters", numbers, points, criterion="stability", random_state=0)
figure, panels = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
OrderCurveDisplay.from_curve(aic, bic, ax=panels[0])
OrderCurveDisplay.from_curve(held_out, ax=panels[1])
panels[1].set_title(f"least at {held_out.suggested}, within one standard error: {held_out.simplest}", fontsize="medium")
OrderCurveDisplay.from_curve(stable, ax=panels[2])
plt.show()

# %%
# The certificate of a choice scores the folds again, and looks for a larger mixture that fits its own rows worse than a
# smaller one, the mark of too few starts.

held_out.certify(points)

# %%
# Chance, and a prior
# -------------------
# One table proves little, so here are twelve more; seven is the most that was tried. A Dirichlet process has no number to
# choose: it draws the number with all else, and says how probable each is. That depends on its concentration α, which says how
# readily a row opens a cluster of its own; and like Akaike's criterion it is given to splinters.

found = {"AIC": [], "BIC": []}
for _ in range(12):
    curve = select_order(GaussianMixture(), "n_components", numbers, draw(250), n_restarts=2, random_state=0)
    found["BIC"].append(curve.suggested)
    found["AIC"].append(int(curve.values[np.argmin([criteria.aic for criteria in curve.criteria])]))
figure, panels = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for shift, color, (criterion, suggested) in zip((-0.2, 0.2), ("#3b7dd8", "#d08c1d"), found.items(), strict=True):
    chosen, times = np.unique(suggested, return_counts=True)
    panels[0].bar(chosen + shift, times, width=0.4, color=color, label=criterion)
for shift, color, alpha in zip((-0.2, 0.2), ("#2a9d6f", "#9b6bc9"), (0.1, 1.0), strict=True):
    process = DirichletProcessMixture(alpha, random_state=0).fit(points)
    clusters, chances = process.n_components_distribution()
    panels[1].bar(clusters + shift, chances, width=0.4, color=color, label=f"α = {alpha:g}")
panels[0].set(title="Choices for twelve tables", xlabel="components", ylabel="tables", xticks=numbers)
panels[1].set(title="Dirichlet process, one table", xlabel="clusters", ylabel="posterior probability", xlim=(3.5, 10.5))
for ax in panels:
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# sphinx_gallery_thumbnail_number = 2
