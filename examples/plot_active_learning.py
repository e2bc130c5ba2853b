"""
Which measurement teaches most?
===============================

A Bayesian regression knows what it does not know. The band around its prediction is wide where rows are few, and
`most_informative` turns that into advice: of all the places where one could measure next, the one that lowers the entropy of
the posterior most.
"""

# %%
# A curve, seen through noise at five places on the left. The columns are smooth bumps side by side, so that the model is a
# linear one; its prior and the noise are given here (the evidence could choose them, had it more than five rows).

import matplotlib.pyplot as plt
import numpy as np

from lemmata.linear_model import BayesianLinearRegression
from lemmata.plot import PredictiveBandDisplay

rng = np.random.default_rng(2)
centers, noise = np.linspace(0, 10, 14), 0.15


def bumps(x):
    """Give the columns of the model at some places."""
    return np.exp(-((np.asarray(x)[:, None] - centers) ** 2) / 2)


def measured(x):
    """Measure the curve at some places."""
    return np.sin(x) + 0.3 * x / 10 + noise * rng.normal(size=len(x))


start = np.array([0.5, 1.2, 2.0, 2.6, 3.1])
y = measured(start)
prior = {"prior_precision": 1.0, "noise_variance": noise**2}
model = BayesianLinearRegression(**prior).fit(bumps(start), y)
model.certify(bumps(start), y)

# %%
# Where to measure? The pool has a place every twentieth. `most_informative` chooses six at once, each the best given those
# before it, and without knowing what will be found there: the doubt of a linear model depends on the places alone. Theory
# says that such a greedy choice is worth at least 63 % of the best possible one.

pool = np.linspace(0, 10, 201)
chosen = pool[model.most_informative(bumps(pool), 6)]
print("measure at", chosen.round(2).tolist())

# %%
# `update` takes the new rows in; the posterior is that of one fit to all rows. For comparison, six more places among the first
# ones, where it may be convenient to measure: they teach less.


def after(places):
    """Learn from the first places, then from others."""
    values = measured(places)
    return BayesianLinearRegression(**prior).fit(bumps(start), y).update(bumps(places), values), places, values


cases = {"six convenient places": after(np.linspace(0.3, 3.3, 6)), "six most informative places": after(chosen)}
figure, panels = plt.subplots(2, 2, figsize=(10, 6.8), layout="constrained", sharex=True, height_ratios=[2, 1])
grid = np.linspace(-0.25, 10.25, 300)
F = bumps(grid)
for (title, (fit, places, values)), (top, bottom) in zip(cases.items(), panels.T, strict=True):
    bands = {level: fit.predict_interval(F, level) for level in (0.5, 0.9)}
    PredictiveBandDisplay(grid=grid, mean=fit.predict(F), bands=bands, labels=("", "y"), name=title).plot(top)
    handles = top.get_legend().legend_handles
    handles += top.plot(grid, np.sin(grid) + 0.03 * grid, color="0.55", lw=1.2, ls=(0, (4, 3)), label="truth")
    handles += top.plot(start, y, "o", color="0.45", ms=5, label="first measurements")
    handles += top.plot(places, values, "X", color="#d1495b", ms=8, zorder=3, label="six more")
    top.legend(handles=handles, frameon=False, fontsize="small", loc="lower left")
    top.set(ylim=(-3, 3))
    bottom.fill_between(grid, fit.information(F), color="#3b7dd8", alpha=0.3, lw=0)
    bottom.plot(grid, fit.information(F), color="#3b7dd8", lw=1.5)
    bottom.vlines(places, 0, 3.2, color="#d1495b", lw=1, ls=(0, (2, 2)))
    bottom.set(xlabel="x", ylim=(0, 3.2))
    bottom.spines[["top", "right"]].set_visible(False)
panels[0, 1].get_legend().remove()
panels[0, 1].set_ylabel("")
panels[1, 0].set_ylabel("nats that one more\nmeasurement would give")
plt.show()

# %%
# The same in one number: the entropy of the posterior, in nats, and the average width of the 90 % band.

for name, fit in {"at first": model, **{title: case[0] for title, case in cases.items()}}.items():
    _, logdet = np.linalg.slogdet(2 * np.pi * np.e * fit.covariance_)
    low, high = fit.predict_interval(bumps(grid)).T
    print(f"{name:28} entropy {logdet / 2:7.2f}   width of the band {np.mean(high - low):.2f}")

# %%
# Does the band keep its word? Of two thousand new measurements, so many lie inside:

fresh = rng.uniform(0, 10, 2000)
values = measured(fresh)
for level in (0.5, 0.9):
    low, high = cases["six most informative places"][0].predict_interval(bumps(fresh), level).T
    print(f"{level:.0%} band: {np.mean((low <= values) & (values <= high)):.0%}")

# sphinx_gallery_thumbnail_number = 1
