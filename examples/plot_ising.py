"""
Spins, one at a time and a column at a time
===========================================

A grid of spins, each up or down, and a factor for each two neighbors that likes them equal: the smallest model in which many
weak ties make one strong whole. How strong depends on β, the inverse temperature. There is a point, β = log(1 + √2) / 2, at
which the grid cannot decide, and where samplers are slowest.
"""

# %%
# Below, at and above the critical temperature
# --------------------------------------------
# The model is a factor graph like any other. Gibbs sampling draws one spin after the other, given its four neighbors; their
# sixteen states fit into a table, so a sweep over 10,000 spins takes a tenth of a millisecond. The right grid began at random
# and has settled in patches, since none of them is large enough yet to win.

import matplotlib.pyplot as plt
import numpy as np

from lemmata.graphical import FactorGraph
from lemmata.sampling import Draws, block_gibbs, certify_gibbs, gibbs

CRITICAL = np.log(1 + np.sqrt(2)) / 2


def grid(n, beta):
    """Tie the neighbors among n × n spins with strength β."""
    table = np.exp(beta * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    right = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
    down = [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]
    return FactorGraph([(pair, table) for pair in right + down])


def picture(draws, model, n):
    """Put the last states of the first chain where they belong."""
    spins = np.empty((n, n))
    spins[tuple(np.transpose(model.variables))] = draws.values[0, -1]
    return spins


figure, axes = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained")
for ax, share in zip(axes, (0.75, 1.0, 1.3), strict=True):
    model = grid(100, share * CRITICAL)
    draws = gibbs(model, n_draws=1, n_chains=1, warmup=1000, random_state=2)
    ax.imshow(picture(draws, model, 100), cmap="cividis", interpolation="nearest")
    where = {0.75: "hot", 1.0: "critical", 1.3: "cold"}[share]
    ax.set(title=f"{where}: β = {share * CRITICAL:.2f}", xticks=[], yticks=[])
plt.show()

# %%
# A column at a time
# ------------------
# Given the columns beside it, a column is a chain. Sums that go up from its lower end and draws that go down again give all its
# spins at once, exactly. So the chain of grids forgets faster. Here is how much the energy and the magnetization remember after
# some sweeps, at the critical temperature.

N = 24
model = grid(N, CRITICAL)
columns = [[(i, j) for i in range(N)] for j in range(N)]
runs = {
    "one at a time": gibbs(model, n_draws=20_000, random_state=0),
    "by columns": block_gibbs(model, 20_000, columns, random_state=0),
}


def autocorrelation(series, most):
    """Correlation of (chains, draws) with itself, so many sweeps later."""
    off = series - series.mean()
    spectrum = np.abs(np.fft.rfft(off, 2 * off.shape[1], axis=1)) ** 2
    both = np.fft.irfft(spectrum, axis=1)[:, :most].mean(axis=0)
    return both / both[0]


figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained", sharey=True)
for (name, draws), color in zip(runs.items(), ("#3b7dd8", "#d08c1d"), strict=True):
    magnetization = np.abs(2 * draws.values.mean(axis=2) - 1)
    axes[0].plot(autocorrelation(draws.log_density, 100), color=color, label=name)
    axes[1].plot(autocorrelation(magnetization, 400), color=color, label=name)
axes[0].set(title="Energy", xlabel="sweeps later", ylabel="autocorrelation", ylim=(0, 1))
axes[1].set(title="Magnetization, up or down", xlabel="sweeps later")
axes[0].legend(frameon=False)
plt.show()

# %%
# The same in numbers: with as many sweeps, the standard error of the energy is smaller by columns.

for name, draws in runs.items():
    energy = Draws(-draws.log_density[:, :, None] / CRITICAL / N**2, names=["energy of a spin"])
    print(f"{name}: {energy.mean()[0]:.4f} ± {energy.mcse[0]:.4f}, from {energy.ess_bulk[0]:.0f} effective draws")

# %%
# What is proved, and what is not
# -------------------------------
# That a sweep leaves the distribution as it is can be proved, on a grid small enough to list its states: the certificate
# multiplies the conditionals that the compiled sweep draws from. That a long chain on a large grid has arrived cannot; there,
# the draws come with R-hat and effective sizes, and refuse a mean that these speak against.

small = grid(3, CRITICAL)
certify_gibbs(small, blocks=[[(i, j) for i in range(3)] for j in range(3)])
