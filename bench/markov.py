"""The stationary law of a sparse chain of a million states, and rankings from millions of games.

The bar is a number: 1,000,000 states and 5,000,000 moves in less than 10 s, with ‖πP − π‖₁ ≤ 1e-12. A random chain of that
size mixes within a few dozen steps; a walk on a square of 1,000 × 1,000 states, shuffled, takes about a million, and blocks
with rare links are slow in another way. `stationary` includes the search for classes. Power iteration stands beside for
comparison, with as many steps as fit into the time that ours takes.
"""

import time
import warnings

import numpy as np
from scipy.sparse import csr_array, diags_array

import lemmata
from lemmata.markov import MarkovChain, MarkovRanker
from lemmata.markov.elimination import reduced_law

STATES, MOVES = 1_000_000, 5_000_000
BAR = 10.0


def normalized(values, rows, columns, n):
    """Make rows that sum to one."""
    W = csr_array((values, (rows, columns)), shape=(n, n))
    return csr_array(diags_array(1 / W.sum(axis=1)) @ W)


def random_chain(n=STATES, moves=MOVES):
    """Every state goes to the next one and to random others."""
    rng, degree = np.random.default_rng(0), moves // n
    rows, columns = np.repeat(np.arange(n), degree), rng.integers(n, size=n * degree)
    columns[::degree] = (np.arange(n) + 1) % n
    return normalized(rng.random(n * degree), rows, columns, n)


def square_walk(n=STATES, drift=0.0):
    """An uneven walk on a square whose states are shuffled."""
    k = round(n**0.5)
    rng, index = np.random.default_rng(0), np.arange(k * k).reshape(k, k)
    one = np.concatenate([index[:, :-1].ravel(), index[:-1].ravel()])
    other = np.concatenate([index[:, 1:].ravel(), index[1:].ravel()])
    q = rng.permutation(k * k)
    odds = rng.uniform(0.5, 1.5, 2 * len(one)) * np.repeat([1 + drift, 1 - drift], len(one))
    return normalized(odds, q[np.r_[one, other]], q[np.r_[other, one]], k * k)


def weak_blocks(n=STATES, blocks=50, link=1e-6):
    """Random chains that hardly exchange anything."""
    rng, m = np.random.default_rng(0), n // blocks
    rows = np.repeat(np.arange(n), 5)
    columns = rows // m * m + rng.integers(m, size=5 * n)
    columns[::5] = rows[::5] // m * m + (rows[::5] + 1) % m
    ends = np.arange(blocks) * m
    return normalized(np.r_[rng.random(5 * n), np.full(blocks, link)], np.r_[rows, ends], np.r_[columns, np.roll(ends, -1)], n)


def residual(P, law):
    return float(np.abs(P.T @ law - law).sum())


def power(P, seconds):
    """Iterate until the time is over; give ‖πP − π‖₁."""
    back, law, start = P.T.tocsr(), np.full(P.shape[0], 1 / P.shape[0]), time.perf_counter()
    while time.perf_counter() - start < seconds:
        law = (law + back @ law) / 2
    return residual(P, law)


def chains():
    """Measure the stationary laws of large chains."""
    lines = []
    for what, P, bar in (
        ("random chain", random_chain(), True),
        ("square walk, shuffled", square_walk(), False),
        ("square walk with a drift, shuffled", square_walk(drift=0.01), False),
        ("50 blocks, links of 1e-6", weak_blocks(), False),
    ):
        chain, start = MarkovChain(P), time.perf_counter()
        law = chain.stationary()[0]
        seconds = time.perf_counter() - start
        left = residual(P, law)
        reached = f"≤ {BAR:g} s, ≤ 1e-12 {'✓' if seconds <= BAR and left <= 1e-12 else '✗'}" if bar else ""
        size = f"{P.shape[0]:,} states, {P.nnz:,} moves"
        lines.append(f"| {what}, {size} | {seconds:.2f} | {left:.1e} | {power(P, seconds):.1e} | {reached} |")
    return lines


def eliminations():
    """Measure elimination, beside quantecon's if that is installed."""
    try:
        from quantecon.markov import gth_solve
    except ImportError:
        gth_solve = None
    lines, rng = [], np.random.default_rng(0)
    for n in (100, 500, 1000):
        P = rng.dirichlet(np.ones(n), size=n)
        times = {}
        for name, run in (("lemmata", lambda P=P: reduced_law(P.copy())), ("quantecon", lambda P=P: gth_solve(P))):
            if name == "quantecon" and gth_solve is None:
                continue
            run()
            times[name] = min(_seconds(run) for _ in range(5))
        peer = f", quantecon {times['quantecon']:.4f} s" if "quantecon" in times else ""
        lines.append(
            f"| elimination of {n:,} states{peer} | {times['lemmata']:.4f} | {residual(P, reduced_law(P.copy())):.1e} | | |"
        )
    return lines


def _seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def rankings():
    """Measure rankings from table to ratings, with standard errors where there are any."""
    lines, rng = [], np.random.default_rng(0)
    for teams, games in ((1000, 1_000_000), (2000, 5_000_000), (10_000, 5_000_000)):
        i, j = rng.integers(teams, size=(2, games))
        X = np.column_stack([i, j, rng.poisson(2.0, games), rng.poisson(2.0, games)])[i != j]
        start = time.perf_counter()
        model = MarkovRanker().fit(X)
        seconds = time.perf_counter() - start
        left = residual(model.transition_, model.scores_)
        doubts = "" if np.isnan(model.standard_errors_).any() else ", with standard errors"
        lines.append(f"| ranking of {teams:,} teams, {games:,} games{doubts} | {seconds:.2f} | {left:.1e} | | |")
    return lines


def report() -> str:
    """Measure everything once the kernels are compiled."""
    with lemmata.config(n_threads=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for warm in (random_chain(2000, 10_000), square_walk(2500)):
            MarkovChain(warm).stationary()
        MarkovRanker().fit([(0, 1, 1, 2), (1, 0, 1, 1)])
        head = ["| what | seconds | ‖πP − π‖₁ | of power iteration | bar |", "|---|---:|---:|---:|---|"]
        return "\n".join([*head, *chains(), *eliminations(), *rankings()])


if __name__ == "__main__":
    print(report())
