"""What every benchmark row goes through: equal threads, alternating runs, best of several, equal objectives, peak memory.

A row names a problem, how to make its data, our run and the peers' runs (each returns a fitted thing), and a function that
computes the objective that each reached, outside the clock. Adding a row is a few lines in a file of the family.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

THREADS = 2
PAUSE = 0.1  # seconds before each run: threads of BLAS look out for work for a while, at the cost of whoever comes next


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    name : What is solved, with its size.
    make : Makes the data (once).
    ours, peers : Functions of the data that return something fitted; peers by name.
    objective : Function of (data, fitted) that all runs should agree on, to `agree` (relative).
    bars : Least ratio (peer's time over ours) to reach, by peer.
    repeats : Runs of each; the best counts.
    """

    name: str
    make: Callable[[], Any]
    ours: Callable[[Any], Any]
    peers: dict[str, Callable[[Any], Any]]
    objective: Callable[[Any, Any], float]
    bars: dict[str, float] = field(default_factory=dict)
    agree: float = 1e-6
    repeats: int = 5


@dataclass
class Outcome:
    """What was measured of one contender in one row."""

    row: str
    contender: str
    seconds: float
    objective: float
    agrees: bool
    megabytes: float
    ratio: float | None = None
    bar: float | None = None


def equal_threads():
    """Hold everyone to the same number of threads: BLAS, OpenMP, oneDAL and ours."""
    from contextlib import ExitStack

    from threadpoolctl import threadpool_limits

    import lemmata

    stack = ExitStack()
    stack.enter_context(threadpool_limits(THREADS))
    stack.enter_context(lemmata.config(n_threads=THREADS))
    try:
        import daal4py

        daal4py.daalinit(THREADS)
    except ImportError:
        pass
    return stack


def measure(family: str, row: Row, with_memory: bool) -> list[Outcome]:
    """Run a row: everyone once to warm up and to be checked, then in turns; the best time of each counts."""
    data = row.make()
    contenders = {"lemmata": row.ours, **row.peers}
    times = {name: float("inf") for name in contenders}
    with equal_threads(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objectives = {name: row.objective(data, run(data)) for name, run in contenders.items()}
        for _ in range(row.repeats):
            for name, run in contenders.items():
                time.sleep(PAUSE)
                start = time.perf_counter()
                run(data)
                times[name] = min(times[name], time.perf_counter() - start)
    outcomes = []
    for name in contenders:
        difference = abs(objectives[name] - objectives["lemmata"]) / max(abs(objectives["lemmata"]), 1e-300)
        memory = peak_memory(family, row.name, name) if with_memory else float("nan")
        ratio = None if name == "lemmata" else times[name] / times["lemmata"]
        bar = row.bars.get(name)
        outcomes.append(Outcome(row.name, name, times[name], objectives[name], difference <= row.agree, memory, ratio, bar))
    return outcomes


def peak_memory(family: str, row: str, contender: str) -> float:
    """Measure the peak resident memory, in MiB, of one contender alone in a fresh process."""
    command = [sys.executable, "-m", "bench", "--alone", json.dumps([family, row, contender])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout.strip().split()[-1]) if done.returncode == 0 else float("nan")


def run_alone(row: Row, contender: str) -> float:
    """Run one contender once in this process and return the peak resident memory in MiB."""
    with equal_threads(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (row.ours if contender == "lemmata" else row.peers[contender])(row.make())
    return peak_of_this_process()


def peak_of_this_process() -> float:
    """Return the peak resident memory in MiB; Linux's rusage would count the parent's from before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
