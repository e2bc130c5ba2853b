"""Ridge and k-means on a Parquet file of 2 GiB: peak memory, and what it is compared with the same rows in memory."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import peak_of_this_process

LIMIT = 600  # MiB
COLUMNS = 32
ROWS_TOTAL = 2**31 // (8 * (COLUMNS + 1))  # 2 GiB of float64, the target included


def write_file(path: Path, n_rows: int = ROWS_TOTAL) -> None:
    """Write random rows, a row group at a time; random mantissas do not compress."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    names = [f"x{j}" for j in range(COLUMNS)]
    schema = pa.schema([(name, pa.float64()) for name in [*names, "y"]])
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for start in range(0, n_rows, 1 << 18):
            n = min(1 << 18, n_rows - start)
            X = rng.standard_normal((n, COLUMNS)) + 4 * rng.integers(0, 4, (n, 1))
            y = X.sum(axis=1) + rng.standard_normal(n)
            writer.write_table(pa.table([*X.T, y], schema=schema))


def fit(model: str, path: str) -> None:
    """Fit one model from the file and print its seconds, peak memory in MiB, and whether its certificate holds."""
    import lemmata
    from lemmata.cluster import KMeans
    from lemmata.linear_model import Ridge

    with lemmata.config(n_threads=2):
        start = time.perf_counter()
        if model == "Ridge":
            fitted = Ridge(1.0).fit(path, "y")
            columns = (path, "y")
        else:
            fitted = KMeans(4, random_state=0).fit(path)  # the target is a column like the others
            columns = (path,)
        seconds = time.perf_counter() - start
        print(seconds, peak_of_this_process(), fitted.certify(*columns).holds)


def report() -> str:
    """Measure in processes of their own."""
    lines = ["| what | seconds | peak MiB | bar | certificate |", "|---|---:|---:|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        subprocess.run([sys.executable, "-m", "bench.out_of_core", "write", str(path)], check=True)
        size = path.stat().st_size / 2**30
        for model in ("Ridge", "KMeans"):
            command = [sys.executable, "-m", "bench.out_of_core", model, str(path)]
            seconds, peak, holds = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            reached = "✓" if float(peak) <= LIMIT else "✗"
            what = f"{model} on a Parquet file of {size:.2f} GiB ({ROWS_TOTAL:,} × {COLUMNS})"
            verdict = "holds" if holds == "True" else "refused"
            lines.append(f"| {what} | {float(seconds):.3g} | {float(peak):.0f} | ≤ {LIMIT} {reached} | {verdict} |")
    return "\n".join(lines)


if __name__ == "__main__":
    write_file(Path(sys.argv[2])) if sys.argv[1] == "write" else fit(*sys.argv[1:3])
