"""
The same bits from memory, from a file and from a cluster
=========================================================

Rows come in blocks. A kernel turns one block into statistics, and the statistics are added in one fixed order, whoever was
ready first. So it does not matter whether the rows are an array, a Parquet file that is larger than memory, or a Dask
collection, nor how many threads work on them. The result is the same to the last bit.
"""

# %%
# A table of 200,000 rows, in memory and in a Parquet file. The row groups of the file are cut at odd places on purpose.

import tempfile
from pathlib import Path

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import lemmata
from lemmata.linear_model import LinearRegression

rng = np.random.default_rng(0)
n, d = 200_000, 4
X = rng.normal(size=(n, d)) * [1.0, 0.3, 7.0, 0.01] + [100.0, -3.0, 0.0, 0.2]
y = X @ [0.5, -2.0, 0.1, 30.0] + rng.normal(size=n)

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.parquet"
table = pa.table({f"x{j}": X[:, j] for j in range(d)} | {"y": y})
pq.write_table(table, path, row_group_size=12_345)

# %%
# Five fits. For Parquet the target is the name of its column. Where blocks begin and end is part of the computation, so it
# must be the same everywhere: arrays and files are cut into blocks of `block_rows`, Dask partitions are blocks as they are.

rows = 16_384
fits = {}
with lemmata.config(block_rows=rows):
    for threads in (1, 2):
        with lemmata.config(n_threads=threads):
            fits[f"memory, {threads} thread{'s' * (threads > 1)}"] = LinearRegression().fit(X, y)
    fits["Fortran order"] = LinearRegression().fit(np.asfortranarray(X), y)
    fits["Parquet"] = LinearRegression().fit(path, "y")
fits["Dask"] = LinearRegression().fit(da.from_array(X, chunks=(rows, d)), da.from_array(y, chunks=rows))

first = next(iter(fits.values()))
for name, model in fits.items():
    print(f"{name:20} {model.coef_[0].hex()}  same bits: {model.coef_.tobytes() == first.coef_.tobytes()}")

certificate = fits["Parquet"].certify(path, "y")
print(f"\ncertified from the file: {certificate.holds}")

# %%
# This is not what sums do by themselves. The usual way, XᵀX summed over chunks, gives other last bits when the chunks are
# others. Below, the 64 bits of the first coefficient: sign and exponent, then the fraction, black for one. Red marks a bit
# that differs from the first line of its group.

Z, target = X - X.mean(axis=0), y - y.mean()
usual = {}
for chunk in (1_000, 12_345, 50_000, n):
    parts = [slice(start, start + chunk) for start in range(0, n, chunk)]
    gram, product = sum(Z[p].T @ Z[p] for p in parts), sum(Z[p].T @ target[p] for p in parts)
    usual[f"NumPy, chunks of {chunk:,}"] = np.linalg.solve(gram, product)[0]


def bits(value):
    """Give the bits of a number, the sign first."""
    return np.array([int(b) for b in f"{np.float64(value).view(np.uint64):064b}"])


ours = {f"lemmata, {name}": model.coef_[0] for name, model in fits.items()}
names = [*ours, *usual]
grid = np.array([bits(v) for v in [*ours.values(), *usual.values()]])
reference = np.vstack([np.tile(grid[0], (len(ours), 1)), np.tile(grid[len(ours)], (len(usual), 1))])
image = np.where((grid == 1)[..., None], 0.15, 0.93) * np.ones(3)
image[grid != reference] = [0.82, 0.29, 0.36]

figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
height = np.r_[np.arange(len(ours)), np.arange(len(usual)) + len(ours) + 0.6]
for row, at in enumerate(height):
    ax.imshow(image[row][None], extent=(0, 64, at + 0.5, at - 0.5), aspect="auto", interpolation="nearest")
ax.set_yticks(height, names)
ax.set_ylim(height[-1] + 0.6, -0.6)
for edge in (1, 12):
    ax.axvline(edge, color="white", lw=2.5)
for b in range(65):
    ax.axvline(b, color="white", lw=0.4)
for at in height:
    ax.axhline(at + 0.5, color="white", lw=1.5)
ax.set_xlim(0, 64)
ax.set_xticks([0.5, 6.5, 38], ["sign", "exponent", "fraction"])
ax.tick_params(length=0)
ax.spines[:].set_visible(False)
ax.set_title("The bits of one coefficient")
plt.show()

folder.cleanup()
