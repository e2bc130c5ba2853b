"""
A decision is not the most probable class
=========================================

A bank grants credit or refuses it. A bad customer who gets credit costs five times what a good customer costs who is sent away.
Then the right question is not which class is more probable, but which action is expected to cost less.
"""

# %%
# Customers have an income and debts; some will not pay back. The table of costs has a row for each action and a column for each
# class, in sorted order: bad, good.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.decision import Decide, decision_cost
from lemmata.linear_model import LogisticRegression
from lemmata.plot import CostCurveDisplay, DecisionRegionDisplay

rng = np.random.default_rng(0)


def customers(n):
    """Draw customers: income and debt in thousands, and whether they paid back."""
    X = np.column_stack([rng.normal(50, 15, n), rng.exponential(12, n)])
    bad = rng.random(n) < 1 / (1 + np.exp(0.08 * X[:, 0] - 0.15 * X[:, 1] - 1.2))
    return X, np.where(bad, "bad", "good")


X, y = customers(600)
rows, labels = customers(4000)
costs = [[5, 0], [0, 1]]  # grant, refuse × bad, good
model = Decide(LogisticRegression(), costs, actions=["grant", "refuse"], reject_cost=0.4).fit(X, y)

# %%
# The dashed line is where a bad end is as probable as a good one. The bank should not stop there: it grants credit only where
# it is five times more sure. In the hatched zone either action is expected to cost more than asking somebody, which costs 0.4.

DecisionRegionDisplay.from_estimator(model, X[:300], y[:300], feature_names=["income", "debt"], name="Credit, at 5 to 1")
plt.show()

# %%
# What it saves: the mean cost of new customers by the most probable class, by expected cost, and with the right to refuse.
# `Decide.of` changes costs without fitting anything again.

usual = np.where(model.estimator_.predict(rows) == "bad", "refuse", "grant")
firm = Decide.of(model.estimator_, costs, actions=["grant", "refuse"])
print(f"most probable class  {decision_cost(labels, usual, costs, actions=['grant', 'refuse'], classes=['bad', 'good']):.3f}")
print(f"expected cost        {firm.cost(rows, labels):.3f}")
print(f"with the refusal     {model.cost(rows, labels):.3f}, for {model.rejected(rows).mean():.0%} of the customers")

# %%
# How much the costs matter: the same model at other ratios of the two costs. Where they are equal, both rules are the same;
# far from there, the most probable class is worse than giving everybody the same answer.

CostCurveDisplay.from_estimator(model.estimator_, rows, labels)
plt.show()

# %%
# The certificate proves the optimum of the classifier, and that on every row no action has a lower expected cost.

model.certify(X, y)

# sphinx_gallery_thumbnail_number = 1
