"""
What can be promised about new rows
===================================

A score on the training set promises nothing, and a score on a test set promises something only with its error. `guarantee`
states what is a theorem: with probability 95 %, over samples, the risk is at most this.
"""

# %%
# A support vector machine for the breast cancer table. The columns are scaled by rows that the model will not see: a scaler
# fitted to the same rows would be part of what was learned, and most proofs would not hold.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC

from lemmata.linear_model import BayesianLogisticRegression, LogisticRegression
from lemmata.plot import BoundCurveDisplay, GuaranteeDisplay
from lemmata.theory import guarantee
from lemmata.theory.bounds import clopper_pearson, hypergeometric_bound, log_cover, vc_bound

X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
train, rest = order[:284], order[284:]
X = (X - X[rest].mean(axis=0)) / X[rest].std(axis=0)

print(guarantee(SVC(gamma=0.02).fit(X[train], y[train]), X[train], y[train]))

# %%
# Every bound that applies to Bayesian logistic regression, from its 284 training rows alone. Each holds by itself. The star is
# the best of a portfolio that was settled before, with δ divided among its members: the price of choosing. Bounds of the random
# classifier are about a model drawn anew from the posterior for every row; twice as much holds for the model itself.

model = BayesianLogisticRegression().fit(X[train], y[train])
GuaranteeDisplay.from_guarantee(guarantee(model, X[train], y[train]))
plt.show()

# %%
# Unseen rows are stronger, and need no theory of the model: the exact inversion of the binomial tail.

GuaranteeDisplay.from_guarantee(guarantee(model, X[train], y[train], holdout=(X[rest], y[rest])))
plt.show()

# %%
# How many rows?
# --------------
# Half-planes in ten columns with 5 % of errors. The bound of the textbooks is vacuous below a thousand rows; the inversion of
# the hypergeometric tail says something from a hundred on, without any further assumption; a test set of that size says more.

sizes = np.unique(np.geomspace(100, 30_000, 16).astype(int))
BoundCurveDisplay.from_formulas(
    {
        "Vapnik-Chervonenkis, 1971": lambda n: vc_bound(0.05, n, lambda m: log_cover(m, 10), 0.05),
        "growth function, tail inversion": lambda n: hypergeometric_bound(round(0.05 * n), n, lambda m: log_cover(m, 10), 0.05),
        "hold-out, Clopper-Pearson": lambda n: clopper_pearson(round(0.05 * n), n, 0.05),
    },
    sizes,
    name="5 % of errors, planes in ten columns",
)
plt.show()

# %%
# The same for a model that is really fitted, on two columns of the table.

BoundCurveDisplay.from_estimator(
    LogisticRegression(), X[train][:, :2], y[train], sizes=[40, 70, 120, 200, 284], test=(X[rest][:, :2], y[rest]), refit=False
)
plt.show()

# sphinx_gallery_thumbnail_number = 1
