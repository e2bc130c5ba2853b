"""A Gaussian mixture on 10 GiB of Parquet: peak memory, rows a second against the same passes in memory, and the same bits.

Passes from a given start: one over the table for its scale, so many of EM, and one for the likelihood that is reported. What is
held in memory for comparison is the first GiB of the file.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import peak_of_this_process
from bench.out_of_core import COLUMNS, LIMIT, write_file

STEPS = 3
PASSES = STEPS + 2
COMPONENTS = 8
GIB = 2**30 // (8 * (COLUMNS + 1))  # rows
SLOWER = 2.0  # times that the file may take longer, row by row


def fit(path: str, home: str) -> None:
    """Fit from a file or from memory; print seconds, peak memory in MiB, and the bits of the fit."""
    import warnings

    import numpy as np
    import pyarrow.parquet as pq

    import lemmata
    from lemmata.mixture import GaussianMixture

    d, rng = COLUMNS + 1, np.random.default_rng(1)  # the target is a column like the others
    start = {
        "weights_init": np.full(COMPONENTS, 1 / COMPONENTS),
        "means_init": 4.0 * rng.integers(0, 4, (COMPONENTS, 1)) + 0.1 * rng.standard_normal((COMPONENTS, d)),
        "precisions_init": np.array([np.eye(d)] * COMPONENTS) / 4,
    }
    model = GaussianMixture(COMPONENTS, tol=0.0, max_iter=STEPS, acceleration=None, **start)
    X = path if home == "file" else np.column_stack([column.to_numpy() for column in pq.read_table(path).columns])
    with lemmata.config(n_threads=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three steps do not converge
        model.fit(rng.standard_normal((100, d)))  # nobody waits for the compiler
        began = time.perf_counter()
        model.fit(X)
        seconds = time.perf_counter() - began
    print(seconds, peak_of_this_process(), model.means_.tobytes().hex()[:64], model.covariances_.tobytes().hex()[-64:])


def report() -> str:
    """Measure in processes of their own."""
    lines = ["| what | seconds | rows a second | peak MiB | bar |", "|---|---:|---:|---:|---|"]
    with tempfile.TemporaryDirectory() as folder:
        whole, part = Path(folder) / "whole.parquet", Path(folder) / "part.parquet"
        write_file(whole, 10 * GIB)
        write_file(part, GIB)  # the same seed: the same first rows
        found = {}
        for name, path, home in (("part in memory", part, "memory"), ("part in a file", part, "file"), ("file", whole, "file")):
            command = [sys.executable, "-m", "bench.mixture_out_of_core", str(path), home]
            seconds, peak, *bits = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            n = GIB if path == part else 10 * GIB
            found[name] = n * PASSES / float(seconds), bits
            bar = ""
            if name == "part in a file":
                bar = f"same bits {'✓' if bits == found['part in memory'][1] else '✗'}"
            elif name == "file":
                slower = found["part in memory"][0] / found[name][0]
                bar = f"≤ {LIMIT} MiB {'✓' if float(peak) <= LIMIT else '✗'}, {slower:.2f}× slower than memory "
                bar += f"(≤ {SLOWER:g}) {'✓' if slower <= SLOWER else '✗'}"
            size = f"{path.stat().st_size / 2**30:.1f} GiB, {n:,} × {COLUMNS + 1}, k = {COMPONENTS}"
            speed = f"{float(seconds):.3g} | {found[name][0]:,.0f} | {float(peak):.0f}"
            lines.append(f"| {name}: {size}, {PASSES} passes | {speed} | {bar} |")
    return "\n".join(lines)


if __name__ == "__main__":
    fit(*sys.argv[1:3])
