"""
Groups without labels, and how sure they are
============================================

A mixture of Gaussians says of every row how probable each component is. Nobody told it the species of the flowers below; it
sees two lengths and finds three groups, of which two overlap.
"""

# %%
# Rows in the colors of their components
# --------------------------------------
# A row has the mix of the colors of its components: a flower between two groups is neither one nor the other. Ellipses are the
# components, at one and at two standard deviations.

from itertools import permutations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from lemmata.cluster import KMeans
from lemmata.mixture import GaussianMixture
from lemmata.plot import ElboDisplay, ElbowDisplay, MixtureDisplay, SilhouetteDisplay

flowers = load_iris(as_frame=True)
X, species = flowers.data[["petal length (cm)", "sepal length (cm)"]], flowers.target.to_numpy()
model = GaussianMixture(3, random_state=0).fit(X)
MixtureDisplay.from_estimator(model, X)
plt.show()

# %%
# The certificate recomputes an EM step by another way. It says that the fit is a stationary point, and only that: likelihoods
# of mixtures have many.

model.certify(X)

# %%
# The components are close to the species, which were kept from the model, and it knows where it may be wrong.

groups, sure = model.predict(X), model.predict_proba(X).max(axis=1) > 0.9
right = max((np.array(order)[groups] == species for order in permutations(range(3))), key=np.mean)
print(f"sure of {sure.sum()} flowers, {right[sure].mean():.0%} of them with their species")
print(f"in doubt about {(~sure).sum()}, {right[~sure].mean():.0%} of them with their species")

# %%
# One column has a density: the sum of what the components add to it.

MixtureDisplay.from_estimator(model, X, features="petal length (cm)")
plt.show()

# %%
# How EM climbs
# -------------
# Each step of EM raises a lower bound that touches the log-likelihood where the step begins. The log-likelihood gains what the
# bound gains and, on top, the divergence D of the new posterior from the old. Starts from random rows do not all end in the
# same place: the gray ones are those that were not kept. Here the one that climbs last ends highest.

several = GaussianMixture(3, init_params="random_from_data", n_init=6, random_state=1).fit(X)
ElboDisplay.from_estimator(several, X, n_steps=80)
plt.show()

# %%
# How many groups?
# ----------------
# Without labels there is no telling that two of the groups are species of their own. The elbow of the loss of k-means, its
# silhouettes, and Bayes' information criterion of mixtures (the lower the better) all prefer two.

criterion = {k: GaussianMixture(k, n_init=3, random_state=0).fit(X).bic(X) for k in range(1, 5)}
print("criterion of 1 to 4 components: " + ", ".join(f"{value:.0f}" for value in criterion.values()))
ElbowDisplay.from_estimator(KMeans(n_init=5, random_state=0), X, n_clusters=range(1, 9))
plt.show()

# %%
# With three clusters, the silhouettes of the two that touch are short.

SilhouetteDisplay.from_estimator(KMeans(3, n_init=5, random_state=0).fit(X), X)
plt.show()

# sphinx_gallery_thumbnail_number = 1
