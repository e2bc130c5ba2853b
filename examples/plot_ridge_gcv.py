"""
Choosing a penalty without a second data set
============================================

`Ridge(alpha="gcv")` chooses the penalty by generalized cross-validation. The score needs one factorization of the data and
no refitting: it estimates the error on new rows from the error on the old ones and from how many degrees of freedom the fit
has spent.
"""

# %%
# Sixty rows, forty columns that overlap, and noise: a case in which plain least squares fits the noise. Because the data are
# simulated, the error on new rows is known, and the estimate can be held against it.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.linear_model import Ridge

rng = np.random.default_rng(3)
n, d, noise = 60, 40, 2.0
root = np.linalg.cholesky(0.8 ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))  # neighbors are alike
truth = np.where(np.arange(d) % 5 == 0, 1.0, 0.0)
X = rng.normal(size=(n, d)) @ root.T
y = X @ truth + noise * rng.normal(size=n)

model = Ridge(alpha="gcv").fit(X, y)
print(f"chosen penalty {model.alpha_:.4g}")
model.certify(X, y)

# %%
# The score, from its definition: n·RSS / (n − 1 − tr H)², with the trace of the hat matrix from the singular values of the
# centered columns. Each point is a fit of its own. The certificate's claim, that no penalty has a smaller score, can be seen.

alphas = np.logspace(-2, 4, 120)
singular = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
score, risk = [], []
for alpha in alphas:
    fit = Ridge(alpha=alpha).fit(X, y)
    freedom = n - 1 - (singular**2 / (singular**2 + alpha)).sum()
    score.append(n * ((y - fit.predict(X)) ** 2).sum() / freedom**2)
    # The columns have mean zero and covariance root·rootᵀ: the error on a new row, averaged over all of them.
    risk.append(noise**2 + ((root.T @ (fit.coef_ - truth)) ** 2).sum() + fit.intercept_**2)

paths = np.array([Ridge(alpha=alpha).fit(X, y).coef_ for alpha in alphas])

figure, (top, bottom) = plt.subplots(2, figsize=(7.5, 6.4), layout="constrained", sharex=True, height_ratios=[3, 2])
top.semilogx(alphas, risk, color="0.55", lw=2, label="squared error on new rows (known here)")
top.semilogx(alphas, score, color="#3b7dd8", lw=2, label="cross-validation score (from the data alone)")
chosen = np.interp(np.log(model.alpha_), np.log(alphas), score)
top.plot(model.alpha_, chosen, "o", color="#2a9d6f", ms=9, zorder=3)
top.text(1.25 * model.alpha_, 4.1, f"chosen: α = {model.alpha_:.3g}", color="#2a9d6f")
best = int(np.argmin(risk))
top.plot(alphas[best], risk[best], "o", mfc="white", mec="0.45", mew=2, ms=8, zorder=3)
top.annotate("best for new rows", (alphas[best], risk[best]), (-10, -16), textcoords="offset points", ha="right", color="0.4")
top.set(ylabel="squared error", ylim=(3, 16), title="The penalty that cross-validation chooses")
top.legend(frameon=False, loc="upper left")
bottom.semilogx(alphas, paths[:, truth == 0], color="0.75", lw=0.8)
bottom.semilogx(alphas, paths[:, truth == 1], color="#d08c1d", lw=1.6)
bottom.axvline(model.alpha_, color="#2a9d6f", lw=1.5)
top.axvline(model.alpha_, color="#2a9d6f", lw=1.5, zorder=0)
bottom.plot([], [], color="#d08c1d", label="coefficients that are 1 in truth")
bottom.plot([], [], color="0.75", label="coefficients that are 0")
bottom.legend(frameon=False, loc="upper right", fontsize="small")
bottom.set(xlabel="penalty α", ylabel="coefficient", xlim=(alphas[0], alphas[-1]))
for ax in (top, bottom):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
