"""
Classes that are Gaussians
==========================

A Gaussian for each class and Bayes' rule: one of the oldest classifiers, and still hard to beat where there are few rows. What
the classes share decides the form of the boundary, and what is missing of a row is integrated out.
"""

# %%
# One covariance for all, or one for each
# ---------------------------------------
# With one covariance the boundary is straight, with one for each class it is a conic, and with independent columns the axes of
# the ellipses are those of the table. Rings are rows that are given to another class than theirs.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

from lemmata.discriminant_analysis import GaussianBayes, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.naive_bayes import GaussianNB
from lemmata.plot import ClassGaussiansDisplay

flowers = load_iris(as_frame=True)
X, species = flowers.data[["petal length (cm)", "sepal width (cm)"]], flowers.target_names[flowers.target]
models = {"tied": LinearDiscriminantAnalysis(), "full": QuadraticDiscriminantAnalysis(), "diag": GaussianNB()}
figure, axes = plt.subplots(3, 1, figsize=(6.4, 12), layout="constrained")
for ax, model in zip(axes, models.values(), strict=True):
    model.fit(X, species).plot(X, species, ax=ax)
plt.show()

# %%
# The certificate recomputes the moments of the classes: the likelihood has one maximum, so to equal them is to be it.

models["full"].certify(X, species)

# %%
# Five structures
# ---------------
# From one variance for each class to one matrix for each class: more parameters fit better, and need more rows.

for structure in ("spherical", "tied-diag", "diag", "tied", "full"):
    score = cross_val_score(GaussianBayes(structure), flowers.data, species, cv=10).mean()
    n_numbers = GaussianBayes(structure).fit(flowers.data, species).covariance_.size
    print(f"{structure:10} {n_numbers:3} numbers  {score:.1%} right in ten folds")

# %%
# What is missing
# ---------------
# One entry in five is lost. Nothing is filled in: of every row the density of what is seen counts, in learning (by EM) as in
# predicting. Here is the boundary of two of the four columns when nothing is known of the others.

rng = np.random.default_rng(0)
holes = flowers.data.mask(rng.random(flowers.data.shape) < 0.2)
model = QuadraticDiscriminantAnalysis().fit(holes, species)
right, whole = model.score(holes, species), model.score(flowers.data, species)
print(f"{right:.1%} of the rows with holes are given to their species, {whole:.1%} of the whole ones")
ClassGaussiansDisplay.from_estimator(model, holes, species, features=("petal width (cm)", "sepal length (cm)"))
plt.show()

# %%
# The joint law is known, so rows can be drawn from it.

rows, drawn = model.sample(5, random_state=0)
for row, label in zip(rows.round(1), drawn, strict=True):
    print(f"{label:10} {row}")

# %%
# Directions that tell classes apart
# ----------------------------------
# Three classes differ in two directions at most. In these the classes are round, and their means as far apart as they can be.

analysis = LinearDiscriminantAnalysis().fit(flowers.data, species)
Z = analysis.transform(flowers.data)
share = analysis.explained_variance_ratio_
_, ax = plt.subplots(figsize=(9, 3), layout="constrained")
QuadraticDiscriminantAnalysis().fit(Z, species).plot(Z, species, ax=ax)
plt.xlabel(f"first discriminant ({share[0]:.1%} of the spread of the means)")
plt.ylabel(f"second ({share[1]:.1%})")
ax.set_aspect("equal")  # or what is round would not look it
plt.show()
