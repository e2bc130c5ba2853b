"""Ten million symbols: the likelihood and the filter of a hidden Markov model, and what they take beside the data."""

import subprocess
import sys
import time
from pathlib import Path

from bench.harness import peak_of_this_process

ROWS, STATES, SYMBOLS = 10_000_000, 5, 8
LIMIT = 200  # MiB beside the table, which takes 76; a table of states would take 382


def measure(what: str) -> None:
    """Ask for the likelihood or the filter of one long sequence; print seconds, MiB beside the data, and the likelihood."""
    import numpy as np

    from lemmata.hmm import CategoricalHMM

    rng = np.random.default_rng(0)
    model = CategoricalHMM(STATES, n_features=SYMBOLS, random_state=0).fit(rng.integers(SYMBOLS, size=(500, 1)).astype(float))
    X = rng.integers(SYMBOLS, size=(ROWS, 1)).astype(float)
    model.score(X[:100_000])
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the data (Linux)
    before, start = peak_of_this_process(), time.perf_counter()
    found = model.score(X) if what == "score" else model.filter(X).sum()
    print(time.perf_counter() - start, peak_of_this_process() - before, found)


def report() -> str:
    """Measure in processes of their own."""
    lines = [
        f"| what, {ROWS:,} rows, {STATES} states, {SYMBOLS} symbols | seconds | MiB beside the data | bar |",
        "|---|---:|---:|---|",
    ]
    for what in ("score", "filter"):
        command = [sys.executable, "-m", "bench.long_sequence", what]
        seconds, memory, found = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        bar = (
            f"finite, ≤ {LIMIT} {'✓' if float(memory) <= LIMIT and abs(float(found)) < 1e300 else '✗'}"
            if what == "score"
            else ""
        )
        lines.append(f"| {what} | {float(seconds):.3g} | {float(memory):.0f} | {bar} |")
    return "\n".join(lines)


if __name__ == "__main__":
    measure(sys.argv[1])
