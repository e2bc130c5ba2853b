"""Is the true order found? Draw tables from models of known order, choose the order, and count.

The bar: by BIC the true order is found in at least 90 % of the simulations of each world. AIC and cross-validation stand beside
for information; they aim at prediction, for which an order too large costs little, and are expected to choose one more often.
A simulation is a function of its seed alone.
"""

import os
import sys
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

SIMULATIONS = 100
PROCESSES = 2
BAR = 0.9


class World(NamedTuple):
    """A model, the parameter that is its order, the truth, the orders that are tried, and what draws a table."""

    model: Callable
    param: str
    truth: int
    values: range
    draw: Callable
    restarts: int
    size: str


def groups(rng):
    """Three normal groups in the plane, of unequal weights and covariances."""
    n, means = 300, np.array([[0.0, 0.0], [4.5, 0.0], [1.0, 5.0]])
    shapes = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.2, 0.6], [0.0, 0.8]], [[0.7, -0.3], [0.0, 1.1]]])
    z = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    return means[z] + np.einsum("nij,nj->ni", shapes[z], rng.standard_normal((n, 2))), None


def chain(rng):
    """Four states in turn, each left with the chance 1/10 a step, seen through normal noise."""
    n, means = 1000, np.array([0.0, 3.0, 6.0, 9.0])
    jumps = rng.random(n) < 0.1
    z = np.cumsum(np.where(jumps, rng.integers(1, 4, n), 0)) % 4
    return (means[z] + rng.standard_normal(n))[:, None], None


def factors(rng):
    """Five directions of variances from 9 to 2 in twenty columns, under noise of variance 1."""
    axes = np.linalg.qr(rng.standard_normal((20, 5)))[0]
    return rng.standard_normal((300, 5)) * np.sqrt([9.0, 7.0, 5.0, 3.0, 2.0]) @ axes.T + rng.standard_normal((300, 20)), None


def cubic(rng):
    """A cubic of which each power matters, under noise of standard deviation 1."""
    x = rng.uniform(-2, 2, 100)
    return x[:, None], 1.0 - 2.0 * x + 0.5 * x**2 + x**3 + rng.standard_normal(100)


def worlds():
    """Give the worlds by name."""
    from lemmata.decomposition import PCA
    from lemmata.hmm import GaussianHMM
    from lemmata.linear_model import PolynomialRegression
    from lemmata.mixture import GaussianMixture

    return {
        "GaussianMixture": World(GaussianMixture, "n_components", 3, range(1, 7), groups, 3, "300 × 2, 3 groups"),
        "GaussianHMM": World(GaussianHMM, "n_components", 4, range(2, 7), chain, 3, "1,000 steps, 4 states"),
        "PCA": World(PCA, "n_components", 5, range(1, 11), factors, 1, "300 × 20, rank 5"),
        "PolynomialRegression": World(PolynomialRegression, "degree", 3, range(1, 9), cubic, 1, "100 rows, degree 3"),
    }


def chosen(name, criterion, seeds):
    """Choose the order once for each seed, without threads of any library, by all rules that the same fits serve."""
    from threadpoolctl import threadpool_limits

    import lemmata
    from lemmata.model_selection import select_order

    world, found = worlds()[name], []
    with warnings.catch_warnings(), threadpool_limits(1), lemmata.config(n_threads=1):
        warnings.simplefilter("ignore")
        for seed in seeds:
            X, y = world.draw(np.random.default_rng([seed, *name.encode()]))
            options = {"criterion": criterion, "n_restarts": world.restarts if criterion == "bic" else 1, "random_state": seed}
            curve = select_order(world.model(), world.param, world.values, X, y, **options)
            if criterion == "cv":
                found.append({"cv": curve.suggested, "cv, one standard error": curve.simplest})
            else:
                judged = np.isfinite(curve.means)
                aic = [c.aic if ok else np.inf for c, ok in zip(curve.criteria, judged, strict=True)]
                found.append({"bic": curve.suggested, "aic": int(curve.values[np.argmin(aic)])})
    return found


def report(simulations: int = SIMULATIONS, criteria: tuple[str, ...] = ("bic", "cv")) -> str:
    """Run every world and write how often the true order was found as a Markdown table."""
    lines = [f"{simulations} simulations; `found` is the share in which the true order is chosen; bar: BIC in {BAR:.0%}.", ""]
    lines += ["| world | tried | by | found | too small | too large | bar |", "|---|---|---|---:|---:|---:|---|"]
    with ProcessPoolExecutor(PROCESSES) as pool:
        for name, world in worlds().items():
            for criterion in criteria:
                if criterion == "cv" and name == "GaussianHMM":
                    continue  # a single sequence has no rows to hold out
                start = time.perf_counter()
                parts = [range(i, simulations, PROCESSES) for i in range(PROCESSES)]
                found = [orders for part in pool.map(partial(chosen, name, criterion), parts) for orders in part]
                lines += [_line(name, world, rule, np.array([orders[rule] for orders in found])) for rule in found[0]]
                print(f"{name} by {criterion}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    return "\n".join(lines)


def _line(name, world, rule, orders):
    """Write what one rule found in one world."""
    shares = [(orders == world.truth).mean(), (orders < world.truth).mean(), (orders > world.truth).mean()]
    mark = f"{BAR:.0%} {'✓' if shares[0] >= BAR else '✗'}" if rule == "bic" else ""
    numbers = " | ".join(f"{share:.2f}" for share in shares)
    return f"| {name}, {world.size} | {world.values[0]} to {world.values[-1]} | {rule} | {numbers} | {mark} |"


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(report(int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS))
