"""
A boundary, and how sure it is
==============================

Logistic regression gives probabilities, not only classes. The picture of a classifier should show them: where it is certain,
where it doubts, and where it errs. And there is one case in which its certainty means nothing, and the fit must say so.
"""

# %%
# Two kinds of seeds, by their length and width. The full line is where both are equally probable; dashed lines are where one
# has odds of three to one, and nine to one. Rows with a ring are on the wrong side.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.linear_model import BayesianLogisticRegression, LogisticRegression, separability
from lemmata.plot import BoundaryDisplay

rng = np.random.default_rng(1)


def seeds(distance, n=70):
    """Draw two clouds of seeds whose means are so far apart."""
    tilt = np.array([[1.0, 0.6], [0.0, 0.7]])
    first, second = rng.normal(size=(2, n, 2)) @ tilt
    X = np.vstack([first, second + distance * np.array([0.4, 1.0])]) + np.array([6.0, 3.0])
    return X, np.repeat(["barley", "wheat"], n)


X, y = seeds(1.5)
model = LogisticRegression().fit(X, y)
BoundaryDisplay.from_estimator(model, X, y, feature_names=["length (mm)", "width (mm)"], name="Two kinds of seeds")
plt.show()

# %%
# The certificate proves that no other line has a better penalized likelihood. It says nothing about how many seeds are on the
# wrong side: no line can avoid that here, and `separability` proves it, by weights under which the rows of the two kinds cancel
# each other out.

print(separability(X, y).certificate())
model.certify(X, y)

# %%
# When a line separates the classes
# ---------------------------------
# Move the clouds apart until a line separates them. Then, without a penalty, the likelihood has no maximum: doubling the
# coefficients keeps every seed on its side and makes the model more certain, without end. A solver that stops somewhere reports
# numbers that mean nothing. lemmata proves that there is no optimum, and says so:

X, y = seeds(5.5)
print(separability(X, y).certificate())
try:
    LogisticRegression(C=np.inf).fit(X, y)
except ValueError as error:
    print(f"\n{error}")

# %%
# A penalty makes the problem well posed, and how sure the model is then depends on the penalty: the lines move together as the
# penalty falls. The Bayesian model averages over all lines that the data allow. It is less sure where there are no data, which
# is what the fan of its lines says.

figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained", sharex=True, sharey=True)
models = {
    "C = 1": LogisticRegression(),
    "C = 10,000": LogisticRegression(C=1e4),
    "averaged over the posterior, prior of C = 1": BayesianLogisticRegression(prior_precision=1.0),
}
for ax, (name, fit) in zip(panels, models.items(), strict=True):
    BoundaryDisplay.from_estimator(fit.fit(X, y), X, y, feature_names=["length (mm)", "width (mm)"], name=name, ax=ax)
    if ax is not panels[-1]:
        ax.get_legend().remove()
for ax in panels[1:]:
    ax.set_ylabel("")
plt.show()

# sphinx_gallery_thumbnail_number = 1
