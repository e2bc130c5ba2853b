"""
A network and what it is sure of
================================

A network with two hidden layers bends its boundary until two moons are parted. Dropping units while it learns, or stopping when
rows held out are no longer helped, keeps it from bending too far; the certificate repeats the fit and checks its derivatives.
"""

# %%
# Three fits of the same network to a few noisy rows. The first learns them by heart. Rows with a ring are on the wrong side,
# and dashed lines are where the orange class has a probability of 0.1, 0.25, 0.75 and 0.9.

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from lemmata.neural_network import MLPClassifier
from lemmata.plot import BoundaryDisplay, TrainingCurveDisplay

X, y = make_moons(300, noise=0.3, random_state=0)
X_test, y_test = make_moons(5_000, noise=0.3, random_state=1)
options = {"learning_rate_init": 0.01, "alpha": 0.0, "max_iter": 300, "tol": None, "random_state": 0}
models = {
    "by heart": MLPClassifier((60, 60), **options),
    "half of the units dropped": MLPClassifier((60, 60), dropout=0.5, **options),
    "stopped early": MLPClassifier((60, 60), early_stopping=True, **(options | {"tol": 1e-3})),
}
figure, axes = plt.subplots(1, 3, figsize=(12.5, 4.0), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y)
    BoundaryDisplay.from_estimator(model, X, y, ax=ax)
    ax.set_title(f"{name}\n{model.score(X, y):.3f} here, {model.score(X_test, y_test):.3f} on new rows")
    ax.get_legend().remove()
plt.show()

# %%
# How the losses came down. The loss of a network that drops units is that of what was left of it, hence higher. The one
# that stopped early needed few epochs, so epochs are drawn on a logarithmic axis.

_, ax = plt.subplots(figsize=(9.0, 4.2), layout="constrained")
TrainingCurveDisplay.from_estimators(models, ax=ax)
ax.set_xscale("log")
plt.show()

# %%
# What is proved of the last one: that these weights are what the table, the parameters and the seed lead to, and that the
# derivatives that led there are those of central differences. How large the gradient still is, it tells.

print(models["stopped early"].certify(X, y))
