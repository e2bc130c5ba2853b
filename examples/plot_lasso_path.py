"""
A path of proved optima
=======================

The lasso puts a price α on the sizes of the coefficients, and the price makes most of them zero. `lasso_path` lowers the
price step by step. Each point of the path comes with a duality gap: a proven bound on how far its objective is from the least
one. So nothing on this page has to be believed, not even the solver.
"""

# %%
# Eighty rows, two hundred columns, six of which matter. Least squares has no unique answer here.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import lasso_path as sklearn_path

from lemmata.linear_model import Lasso, lasso_path
from lemmata.plot import CoefficientPathDisplay

rng = np.random.default_rng(4)
n, d = 80, 200
truth = np.zeros(d)
truth[:6] = [3.0, -2.5, 2.0, -1.5, 1.2, 0.8]
X = rng.normal(size=(n, d))
y = X @ truth + rng.normal(size=n)

alphas, coefs, gaps = lasso_path(X, y, fit_intercept=True)
objectives = [
    ((y - y.mean() - (X - X.mean(axis=0)) @ w) ** 2).sum() / (2 * n) + alpha * np.abs(w).sum()
    for alpha, w in zip(alphas, coefs.T, strict=True)
]
print(f"the largest gap of {len(alphas)} problems is {max(gaps / objectives):.1e} of its objective")

# %%
# The path. The number above counts the coefficients that are not zero: the six enter first, and noise follows.

CoefficientPathDisplay.from_path(alphas, coefs, gaps, name="Six columns matter, two hundred are offered")
plt.show()

# %%
# One penalty of the path, as an estimator. Its certificate recomputes the gap from the coefficients and the data alone.

model = Lasso(alpha=0.25).fit(X, y)
print(f"columns found: {np.flatnonzero(model.coef_).tolist()}")
model.certify(X, y)

# %%
# What a gap is worth
# -------------------
# A solver that stops when its steps are small may be anywhere. This one stops when the gap is as small as was asked for, so the
# accuracy is a promise, and it is kept at every penalty. (Where the gap is zero there is no point.)

figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
for tol, color in ((1e-12, "#2a9d6f"), (1e-6, "#3b7dd8"), (1e-3, "#d08c1d")):
    _, _, found = lasso_path(X, y, fit_intercept=True, alphas=alphas, tol=tol)
    shares = np.where(found > 0, found / objectives, np.nan)
    ax.loglog(alphas, shares, "o", ms=5, color=color, mec="white", mew=0.5)
    ax.axhline(tol, color=color, lw=1, ls=(0, (4, 3)))
    ax.text(1.02, tol, f"asked for\n{tol:.0e}", transform=ax.get_yaxis_transform(), color=color, va="center")
ax.set(xlim=(alphas[0] * 1.1, alphas[-1] / 1.1), ylim=(1e-17, 1e-1), xlabel="penalty α, falling")
ax.set(ylabel="proved gap, as a share of the objective", title="No gap exceeds what was asked for")
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# scikit-learn's solver comes to the same path, if it is given time:

_, peer, _ = sklearn_path(X - X.mean(axis=0), y - y.mean(), alphas=alphas, tol=1e-10, max_iter=100_000)
_, ours, _ = lasso_path(X, y, fit_intercept=True, alphas=alphas, tol=1e-12)
print(f"largest difference of any coefficient anywhere on the path: {np.abs(peer - ours).max():.0e}")

# sphinx_gallery_thumbnail_number = 1
