"""Sweeps a second of the collapsed Gibbs sampler for a Gaussian mixture, on one thread.

Nobody else has this sampler compiled, so the bar is a number: 100 sweeps a second over 10,000 × 5 rows and 5 components. How
many rows move in a sweep depends on how far apart the components lie, hence three tables; the uncollapsed sampler stands
beside for comparison, and a fit of two chains for what a user waits for.
"""

import time
import warnings

import numpy as np

import lemmata
from lemmata.mixture import GibbsMixture
from lemmata.mixture.gibbs_mixture import Sampler

ROWS, COLUMNS, COMPONENTS = 10_000, 5, 5
SWEEPS = 20
BAR = 100.0


def table(distance):
    """Rows around centers so far apart, in standard deviations of a component, and their components."""
    rng = np.random.default_rng(0)
    z = rng.integers(COMPONENTS, size=ROWS)
    X = distance * rng.standard_normal((COMPONENTS, COLUMNS))[z] + rng.standard_normal((ROWS, COLUMNS))
    return X, z.astype(np.int32)


def sweeps_per_second(distance, method, repeats=5):
    """Time sweeps that begin at the true components; return their number a second and how many rows moved in one."""
    X, z = table(distance)
    sampler = Sampler(X, COMPONENTS, 1.0, 0.01, COLUMNS + 2.0, method)
    rng, least, moved = np.random.default_rng(1), np.inf, 0
    sampler.sweep(z, rng)
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(SWEEPS):
            sampler.sweep(z, rng)
        least = min(least, time.perf_counter() - start)
        after = z.copy()
        sampler.sweep(after, rng)
        moved = int((after != z).sum())
    return SWEEPS / least, moved


def report() -> str:
    """Measure the sweeps of one chain, then a whole fit on one thread and on two."""
    lines = ["| what | sweeps a second | rows that move | bar |", "|---|---:|---:|---|"]
    for method in ("collapsed", "uncollapsed"):
        for distance in (3.0, 1.0, 0.3):
            speed, moved = sweeps_per_second(distance, method)
            bar = "" if method == "uncollapsed" else f"≥ {BAR:g} {'✓' if speed >= BAR else '✗'}"
            what = f"{method}, {ROWS:,} × {COLUMNS}, k = {COMPONENTS}, centers {distance:g} apart, one thread"
            lines.append(f"| {what} | {speed:.0f} | {moved} | {bar} |")
    X, _ = table(3.0)
    for n_threads in (1, 2):
        with lemmata.config(n_threads=n_threads), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            GibbsMixture(COMPONENTS, n_sweeps=100, random_state=0).fit(X)
        speed = 200 / (time.perf_counter() - start)
        lines.append(f"| fit of two chains of 100 sweeps, {n_threads} threads | {speed:.0f} | | |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
