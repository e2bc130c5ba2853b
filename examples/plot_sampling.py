"""
Steps neither too short nor too long
====================================

Metropolis-Hastings walks where a law has its mass: propose a step, and take it with a chance that makes the walk visit every
region as often as it should. How long the steps are is not for theory to say in general; but the draws tell, and a
warm-up can find out.
"""

# %%
# One chain, three lengths of steps
# ---------------------------------
# The target is a banana. Short steps are nearly always accepted and go nowhere. Long ones are nearly always refused, and the
# chain stands still. In between it moves.

import matplotlib.pyplot as plt
import numba
import numpy as np

from lemmata.sampling import RandomWalk, metropolis_hastings


@numba.njit  # noqa: TID251 - what a user writes
def log_density(x):
    return -0.5 * (x[0] ** 2 + 4.0 * (x[1] - x[0] ** 2 / 2) ** 2)


BLUE, GOLD = "#3b7dd8", "#d08c1d"
grid = np.meshgrid(np.linspace(-3.2, 3.2, 200), np.linspace(-2, 5, 200))
height = np.exp(-0.5 * (grid[0] ** 2 + 4 * (grid[1] - grid[0] ** 2 / 2) ** 2))

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained", sharey=True)
for ax, scale in zip(axes, [0.05, 1.0, 12.0], strict=True):
    walk = RandomWalk(scale=scale, adapt=False)
    draws = metropolis_hastings(log_density, [0.0, 0.0], 500, walk, n_chains=1, random_state=1, warmup=0)
    ax.contour(*grid, height, 5, colors="0.75", linewidths=0.8)
    ax.plot(*draws.values[0].T, "o-", color=BLUE, ms=2.5, lw=0.5)
    ax.set(title=f"steps of {scale:g}: {draws.acceptance[0]:.0%} accepted", xticks=[], yticks=[])
plt.show()

# %%
# The best length
# ---------------
# How many independent draws is a chain worth? The effective sample size has its maximum in between, where about a quarter of
# the steps is accepted. The default does not need to be told: it adapts in the warm-up, to the shape of the target as well,
# and then stops, so that what is kept is a true Markov chain.

scales = np.geomspace(0.05, 12.0, 13)
sizes, accepted = [], []
for scale in scales:
    walk = RandomWalk(scale=scale, adapt=False)
    found = metropolis_hastings(log_density, [0.0, 0.0], 20_000, walk, random_state=0)
    sizes.append(found.ess_bulk.min())
    accepted.append(found.acceptance.mean())
adapted = metropolis_hastings(log_density, [0.0, 0.0], 20_000, random_state=0)

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.loglog(scales, sizes, "o-", color=BLUE, label="effective draws of 80,000")
ax.axhline(adapted.ess_bulk.min(), color=GOLD, label="adapted in the warm-up")
ax.axhline(400, color="0.6", ls=":", label="least that a mean is given for")
ax.set(xlabel="scale of the steps", ylabel="effective draws")
rates = ax.twinx()
rates.semilogx(scales, accepted, "--", color="0.5")
rates.set(ylabel="share accepted (dashed)", ylim=(0, 1))
ax.legend(loc="lower center")
plt.show()

# %%
# What to believe
# ---------------
# The summary says it for every dimension, and a mean is refused where evidence is missing.

adapted.summary()

# %%

few = metropolis_hastings(log_density, [0.0, 0.0], 50, RandomWalk(scale=0.05, adapt=False), random_state=0)
try:
    few.mean()
except ValueError as refusal:
    print(refusal)

# %%
# The certificate keeps apart what is evidence and what is proved: that the draws and their log densities belong together.

adapted.certify(log_density)
