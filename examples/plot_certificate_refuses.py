"""
A certificate that refuses
==========================

A certificate is worth as much as its refusals. Here a line is fitted and certified; then one coefficient is changed by one
percent, as a bug or a careless edit might do, and the same data are asked again.
"""

# %%
# The fit, and its certificate
# ----------------------------
# `certify` takes the parameters and the data, and recomputes everything from these two. It does not ask the solver how it
# went.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.linear_model import LinearRegression
from lemmata.plot import CertificateDisplay

rng = np.random.default_rng(0)
X = rng.normal(loc=[3.0, 0.0, -1.0], size=(200, 3))
y = X @ [1.0, -2.0, 0.5] + 4.0 + rng.normal(size=200)

model = LinearRegression().fit(X, y)
model.certify(X, y)

# %%
# As a picture: each line is one check, its bar ends at its limit, and its mark is at its value, on a scale of powers of ten.

CertificateDisplay.from_estimator(model, X, y)
plt.show()

# %%
# One percent of one coefficient
# ------------------------------
# The predictions barely change; R² differs in the fourth digit. The certificate is refused all the same.

score = model.score(X, y)
model.coef_[1] *= 1.01
print(f"R² {score:.6f} before, {model.score(X, y):.6f} after")
model.certify(X, y)

# %%
# What the change did not touch still holds: the noise variance and the standard errors are stored numbers of their own.

CertificateDisplay.from_estimator(model, X, y)
plt.show()

# %%
# How small a change is seen
# --------------------------
# Two checks look at the coefficients. The gap is the share by which the objective exceeds the least one. At the bottom of a
# bowl the ground is flat, so the gap grows with the *square* of a change; and it is a share of an objective that is mostly
# noise, so the noisier the data, the later it speaks. The other check asks whether the gradient vanishes. It grows in
# proportion to the change and is free of units: its value is the size of a typical change that would leave such a gradient.
# One is global and proves how much could be gained; the other sees one percent whatever the noise.

sizes = np.logspace(-6, -0.5, 56)


def seen(noise):
    """Change one coefficient by more and more, and return what the two checks say."""
    target = X @ [1.0, -2.0, 0.5] + 4.0 + noise * np.random.default_rng(1).normal(size=len(X))
    values = []
    for size in sizes:
        changed = LinearRegression().fit(X, target)
        changed.coef_[1] *= 1 + size
        changed.intercept_ = target.mean() - X.mean(axis=0) @ changed.coef_  # a careful saboteur moves the intercept too
        certificate = changed.certify(X, target)
        values.append([certificate["gap"].value, certificate["coefficients"].value])
    return np.array(values).T, certificate


figure, panels = plt.subplots(1, 2, figsize=(9.5, 4.3), layout="constrained", sharey=True)
for ax, noise, title in zip(panels, (1.0, 30.0), ("little noise: R² about 0.8", "much noise: R² near 0"), strict=True):
    values, certificate = seen(noise)
    for value, name, color in zip(values, ("gap", "coefficients"), ("#2a9d6f", "#3b7dd8"), strict=True):
        limit = certificate[name].limit
        ax.loglog(sizes, value, color=color, lw=2, label=name)
        ax.axhline(limit, color=color, lw=1, ls=(0, (4, 3)))
        if ax is panels[-1]:
            ax.text(1.02, limit, f"limit of\n“{name}”", transform=ax.get_yaxis_transform(), color=color, va="center")
        ax.loglog(sizes[value > limit][:1], value[value > limit][:1], "X", color="#d1495b", ms=10, zorder=3)
    ax.axvline(0.01, color="0.7", lw=1, zorder=0)
    ax.text(0.0088, 2, "1 %", color="0.45", ha="right")
    ax.set(xlabel="relative change of one coefficient", title=title, xlim=(sizes[0], sizes[-1]), ylim=(1e-13, 10))
    ax.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("value of the check")
panels[0].legend(frameon=False, loc="lower right")
figure.suptitle("From which change on each check refuses (red crosses)")
plt.show()

# sphinx_gallery_thumbnail_number = 2
