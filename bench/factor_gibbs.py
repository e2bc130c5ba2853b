"""Draws of single variables a second on a grid of spins, one at a time and by columns, and how fast each forgets.

Nobody else has these samplers compiled for any factor graph, so the bars are numbers: 20,000,000 draws of single variables a
second on a grid of 100 × 100 spins, and fewer sweeps by columns than by single spins for the same standard error of the energy
at the critical temperature. That error is measured on a torus of 32 × 32, where Kaufman's sum over four products gives the mean
energy exactly, so that the errors themselves are checked. A column of a torus is a cycle; the last row is drawn by itself.
"""

import time

import numpy as np

import lemmata
from lemmata.core import threads
from lemmata.graphical.factor import Factor, lay_out
from lemmata.graphical.gibbs_program import SiteProgram, chains
from lemmata.sampling.block_gibbs import BlockProgram
from lemmata.sampling.draws import Draws

SIDE, SWEEPS = 100, 500
TORUS, KEPT = 32, 50_000
CRITICAL = float(np.log(1 + np.sqrt(2)) / 2)
BAR = 20e6


def spins(n, periodic, beta=CRITICAL):
    """Layout of n × n spins; spin (i, j) is the variable i n + j."""
    table, index = np.exp(beta * np.array([[1.0, -1.0], [-1.0, 1.0]])), np.arange(n * n).reshape(n, n)
    if periodic:
        pairs = [(index, np.roll(index, -1, axis=1)), (index, np.roll(index, -1, axis=0))]
    else:
        pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    ends = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]).tolist()
    return lay_out([Factor(pair, table) for pair in ends], dict(enumerate(range(n * n))), [2] * (n * n))


def columns(n, periodic):
    """Blocks of columns; on a torus without the last row, which is cut as well."""
    index = np.arange(n * n).reshape(n, n)
    if not periodic:
        return index.T.tolist()
    return [*index[:-1].T.tolist(), index[-1, :-1].tolist(), [int(index[-1, -1])]]


def log_partition(n, beta):
    """Kaufman's closed form on a torus of n × n spins."""
    argument = np.cosh(2 * beta) / np.tanh(2 * beta) - np.cos(np.arange(2 * n) * np.pi / n)
    gamma = np.arccosh(np.maximum(argument, 1.0))
    gamma[0] = 2 * beta + np.log(np.tanh(beta))  # the only one that changes its sign
    y = n / 2 * gamma
    logs, signs = [], [1.0, 1.0, 1.0, np.sign(y[0])]
    for part in (y[1::2], y[::2]):
        size = np.abs(part)
        with np.errstate(divide="ignore"):  # sinh 0 at the critical temperature
            logs += [np.sum(size + np.log1p(np.exp(-2 * size))), np.sum(size + np.log1p(-np.exp(-2 * size)))]
    peak = max(logs)
    total = sum(sign * np.exp(log - peak) for sign, log in zip(signs, logs, strict=True))
    return n * n / 2 * np.log(2 * np.sinh(2 * beta)) - np.log(2) + peak + np.log(total)


def exact_energy(n, beta, h=1e-4):
    """Mean of −Σ s s' for each spin of a torus, by Richardson's extrapolation of differences of log Z."""

    def slope(h):
        return (log_partition(n, beta + h) - log_partition(n, beta - h)) / (2 * h)

    return -(4 * slope(h / 2) - slope(h)) / 3 / n**2


def updates_per_second(program, n_threads, repeats=5):
    """Time sweeps of as many chains as threads; count draws of single variables."""
    tasks, least = chains(program, n_threads, np.random.default_rng(0)), np.inf
    for x, state in tasks:
        program.run(x, state, 1)
    for _ in range(repeats):
        start = time.perf_counter()
        threads.run(lambda task: program.run(*task, SWEEPS), tasks, n_threads)
        least = min(least, time.perf_counter() - start)
    moved = sum(len(move) for move in program.moves())
    return n_threads * SWEEPS * moved / least


def energies(program, beta, n_chains=4, stretch=500):
    """Sweep, and give the energy of each spin after every sweep: (chains, sweeps)."""
    found = np.empty((n_chains, KEPT))
    tasks = list(enumerate(chains(program, n_chains, np.random.default_rng(1))))

    def work(task):
        chain, (x, state) = task
        program.run(x, state, KEPT // 5)
        out = np.empty((stretch, len(x)), dtype=np.int32)
        for first in range(0, KEPT, stretch):
            program.record(x, state, 1, False, out, found[chain, first : first + stretch])

    threads.run(work, tasks, 2)
    return -found / beta / len(program.codes)


def report() -> str:
    """Measure speed on a grid, then errors on a torus."""
    lines = ["| what | single draws a second | bar |", "|---|---:|---|"]
    layout = spins(SIDE, periodic=False)
    ways = {
        "single spins": SiteProgram(layout),
        "columns": BlockProgram(layout, columns(SIDE, False)),
        "trees found by default": BlockProgram(layout),
    }
    for what, program in ways.items():
        for n_threads in (1, 2):
            speed = updates_per_second(program, n_threads)
            bar = f"≥ {BAR:,.0f} {'✓' if speed >= BAR else '✗'}" if what != "trees found by default" else ""
            lines.append(f"| {SIDE} × {SIDE} by {what}, {n_threads} thread{'s'[: n_threads - 1]} | {speed:,.0f} | {bar} |")
    exact, layout = exact_energy(TORUS, CRITICAL), spins(TORUS, periodic=True)
    lines += ["", "| energy at the critical temperature | error | standard error | sweeps for equal error | bar |"]
    lines += ["|---|---:|---:|---:|---|"]
    ways = {
        "single spins": SiteProgram(layout),
        "columns": BlockProgram(layout, columns(TORUS, True)),
        "trees found by default": BlockProgram(layout),
    }
    first = None
    for what, program in ways.items():
        drawn = Draws(energies(program, CRITICAL)[:, :, None])
        error = float(drawn.mcse[0])
        first = error if first is None else first
        needed = (error / first) ** 2
        bar = f"< 1 {'✓' if needed < 1 else '✗'}" if what == "columns" else ""
        off = float(drawn.values.mean()) - exact
        size = f"torus of {TORUS} × {TORUS}, 4 × {KEPT:,} sweeps"
        lines.append(f"| {size}, {what} | {off:+.1e} | {error:.1e} | {needed:.2f} | {bar} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with lemmata.config(n_threads=2):
        print(report())
