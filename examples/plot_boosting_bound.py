"""
Many weak voices
================

Boosting adds up learners that are hardly better than guessing, each fitted to what the others left wrong. AdaBoost comes with a
theorem that says how fast it must get better; gradient boosting is steepest descent with trees for directions.
"""

# %%
# The bound of Freund and Schapire
# --------------------------------
# A round whose learner has a weighted error ε multiplies the bound of the training error by 2√(ε(1 − ε)), which is less than
# one unless the learner guesses. Learners that beat guessing by any fixed amount would drive it to zero, and the error with it.
# Here one label in twenty is wrong, and on what is left after many rounds a stump can hardly do better than guess. Of rows that
# were not fitted the bound says nothing.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.ensemble import AdaBoostClassifier, GradientBoostingRegressor
from lemmata.plot import BoostingDisplay, BoundaryDisplay, ImportanceDisplay, PartialDependenceDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(1200, 2))
y = np.where((np.hypot(*X.T) > 1.1) ^ (rng.random(1200) < 0.05), "out", "in")
fitted, held = np.arange(1200) < 800, np.arange(1200) >= 800

figure, panels = plt.subplots(1, 2, figsize=(11.5, 4.4), layout="constrained")
ada = AdaBoostClassifier(n_estimators=150).fit(X[fitted], y[fitted])
BoostingDisplay.from_estimator(ada, validation=(X[held], y[held]), ax=panels[0], name="150 stumps")
BoundaryDisplay.from_estimator(ada, X[held], y[held], ax=panels[1], name="Their vote")
plt.show()

# %%
# The certificate replays the weights of all rounds, and finds the same errors and the same bound.

ada.certify(X[fitted], y[fitted])

# %%
# Steepest descent with trees
# ---------------------------
# Gradient boosting fits a tree to the negative gradient of the loss and takes a step. Early stopping looks at rows set aside:
# when their loss falls no more, what follows is noise.

n = 3000
table = rng.uniform(0, 1, size=(n, 6))
target = 10 * np.sin(np.pi * table[:, 0] * table[:, 1]) + 20 * (table[:, 2] - 0.5) ** 2 + 5 * table[:, 3] + rng.normal(size=n)
names = ["a", "b", "c", "d", "noise 1", "noise 2"]
model = GradientBoostingRegressor(max_iter=400, early_stopping=True, random_state=0).fit(table, target)

figure, panels = plt.subplots(1, 2, figsize=(12, 4), layout="constrained", width_ratios=[1, 1.5])
BoostingDisplay.from_estimator(model, ax=panels[0])
ImportanceDisplay.from_estimator(model, table, target, feature_names=names, ax=panels[1])
plt.show()

# %%
# What it learned
# ---------------
# The mean prediction when one column is set to a value in all rows. The target was made of a parabola in c, a line in d, and a
# product of a and b, whose surface shows what a curve for either would hide.

PartialDependenceDisplay.from_estimator(model, table, ["c", "d", ("a", "b")], individual=True, feature_names=names, name="")
plt.show()

# sphinx_gallery_thumbnail_number = 1
