"""Frequent sets against Borgelt's C library (pyfim) and mlxtend: dense and sparse baskets, and ten times as many in Parquet.

pyfim gets lists of numbers, made outside the clock; ours gets the boolean table or the sparse matrix, and the same lists in a
row of its own. All count the same sets, and the sum of all supports must agree.
"""

import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

from bench.harness import PAUSE, Outcome, Row, equal_threads, measure, peak_of_this_process
from lemmata.association import Apriori, frequent_itemsets

METHODS = ("fpgrowth", "eclat", "apriori")
MEMORY = 600  # MiB, for ten million baskets
GIB = 1024  # MiB, for one million


def dense():
    """20,000 baskets of 60 items, each item with a popularity of its own."""
    rng = np.random.default_rng(0)
    popularity = rng.beta(1, 4, size=60)
    table = rng.random((20_000, 60)) < popularity
    return table, [np.flatnonzero(row).tolist() for row in table], 400


def zipf(n, seed=0):
    """Draw n baskets of about ten of 20,000 items, the k-th with odds of 1/k: where they start, and their different items."""
    rng = np.random.default_rng(seed)
    sizes = np.maximum(rng.poisson(10, n), 1)
    odds = np.cumsum(1 / np.arange(1, 20_001))
    items = np.searchsorted(odds, rng.random(sizes.sum()) * odds[-1]).astype(np.int32)
    basket = np.repeat(np.arange(n), sizes)
    keys = np.unique(basket * 20_000 + items)
    return np.searchsorted(keys // 20_000, np.arange(n + 1)), (keys % 20_000).astype(np.int32)


def sparse():
    from scipy.sparse import csr_array

    indptr, indices = zipf(1_000_000)
    table = csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(1_000_000, 20_000))
    items = indices.tolist()
    return table, [items[a:b] for a, b in zip(indptr[:-1].tolist(), indptr[1:].tolist(), strict=True)], 1000


def ours(data):
    return frequent_itemsets(data[0], data[2]).count


def ours_from_lists(data):
    return frequent_itemsets(data[1], data[2]).count


def fim(method, data):
    import fim

    return [support for _, support in getattr(fim, method)(data[1], target="s", supp=-data[2], report="a")]


def mlxtend(method, data):
    import pandas as pd
    from mlxtend import frequent_patterns

    return getattr(frequent_patterns, method)(pd.DataFrame(data[0]), min_support=data[2] / len(data[0]))["support"] * len(
        data[0]
    )


def supports(data, counts):
    return float(np.sum(np.asarray(counts, dtype=float)))


FIM = {f"pyfim {method}": partial(fim, method) for method in METHODS}
MLXTEND = {f"mlxtend {method}": partial(mlxtend, method) for method in ("fpgrowth", "apriori")}
ROWS = [
    Row("20,000 × 60, dense, support 2 %", dense, ours, FIM, supports, dict.fromkeys(FIM, 4.0), repeats=7),
    Row("the same from lists", dense, ours_from_lists, FIM, supports, repeats=5),
    Row("the same against mlxtend", dense, ours, MLXTEND, supports, dict.fromkeys(MLXTEND, 50.0), repeats=1),
    Row("1,000,000 × 20,000, ten a basket, support 0.1 %", sparse, ours, FIM, supports, dict.fromkeys(FIM, 3.0), repeats=3),
    Row("the same from lists", sparse, ours_from_lists, FIM, supports, repeats=2),
]


def frame_row():
    """Time what turns found sets into a frame beside the finding."""
    data, model = dense(), Apriori(400)
    best = {"mining": np.inf, "to_pandas": np.inf, "to_polars": np.inf, "to_arrow": np.inf}
    with equal_threads():
        for _ in range(7):
            time.sleep(PAUSE)
            start = time.perf_counter()
            found = model.fit(data[0]).itemsets_
            best["mining"] = min(best["mining"], time.perf_counter() - start)
            for name in ("to_pandas", "to_polars", "to_arrow"):
                start = time.perf_counter()
                getattr(found, name)()
                best[name] = min(best[name], time.perf_counter() - start)
    lines = ["| 21,071 sets of the first row | seconds | bar |", "|---|---:|---|"]
    for name, seconds in best.items():
        bar = "" if name == "mining" else f"≤ mining {'✓' if seconds <= best['mining'] else '✗'}"
        lines.append(f"| {name} | {seconds:.4g} | {bar} |")
    return "\n".join(lines)


def write_file(path, n_parts=10):
    """Write ten million baskets as a column of lists, a million at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([("basket", pa.list_(pa.int32()))])
    with pq.ParquetWriter(path, schema) as writer:
        for seed in range(n_parts):
            indptr, indices = zipf(1_000_000, seed)
            lists = pa.ListArray.from_arrays(pa.array(indptr.astype(np.int32)), pa.array(indices))
            writer.write_table(pa.table([lists], schema=schema), row_group_size=100_000)


def write_matrix(path):
    """Write the million baskets as a sparse matrix: to draw them takes more memory than to mine them."""
    from scipy.sparse import save_npz

    save_npz(path, sparse()[0], compressed=False)


def fit_matrix(path):
    """Mine the sparse matrix; print MiB of the data, and of the process at its peak."""
    from scipy.sparse import load_npz

    import lemmata

    table = load_npz(path)
    with lemmata.config(n_threads=2):
        frequent_itemsets(table, 1000)
    print((table.data.nbytes + table.indices.nbytes + table.indptr.nbytes) / 2**20, peak_of_this_process())


def fit_file(path):
    """Mine the file; print seconds, MiB, and the number and the sum of the counts, which the certificate has counted again."""
    import lemmata

    with lemmata.config(n_threads=2):
        start = time.perf_counter()
        model = Apriori(0.001).fit(path)
        seconds, peak = time.perf_counter() - start, peak_of_this_process()
        print(seconds, peak, len(model.itemsets_), model.itemsets_.count.sum(), model.certify(path).holds)


def count_in_memory(path):
    """Count all sets of the same file by pyfim, from memory: their number and the sum of their counts."""
    import fim
    import pyarrow.parquet as pq

    baskets = pq.read_table(path).column(0).to_pylist()
    found = fim.fpgrowth(baskets, target="s", supp=-10_000, report="a")
    print(len(found), sum(support for _, support in found))


def alone(command, path):
    """Run a command of this file in a process of its own; return the words that it prints."""
    run = partial(subprocess.run, check=True, capture_output=True, text=True)
    return run([sys.executable, "-m", "bench.association", command, path]).stdout.split()


def memory_row():
    """Measure the memory for the million baskets, drawn by another process."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "baskets.npz")
        alone("write-matrix", path)
        data, peak = map(float, alone("fit-matrix", path))
    return "\n".join(
        [
            "| what | data, MiB | peak of the process, MiB | bar |",
            "|---|---:|---:|---|",
            f"| {ROWS[3].name} | {data:.0f} | {peak:.0f} | ≤ {GIB} {'✓' if peak <= GIB else '✗'} |",
        ]
    )


def parquet_row():
    """Measure the file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "baskets.parquet")
        alone("write", path)
        done, counted = alone("fit", path), alone("count", path)
        size = Path(path).stat().st_size / 2**20
    seconds, peak, *rest = done
    same = "yes" if rest[:2] == counted else f"no ({counted})"
    return "\n".join(
        [
            "| what | seconds | peak MiB | bar | pyfim's sets and counts | certificate |",
            "|---|---:|---:|---|---|---|",
            f"| 10,000,000 baskets in Parquet ({size:.0f} MiB), support 0.1 %, {int(rest[0]):,} sets | {float(seconds):.3g} | "
            f"{float(peak):.0f} | ≤ {MEMORY} {'✓' if float(peak) <= MEMORY else '✗'} | {same} | "
            f"{'holds' if rest[2] == 'True' else 'refused'} |",
        ]
    )


def report() -> str:
    """Measure all rows."""
    from bench.__main__ import table

    outcomes: list[Outcome] = [o for row in ROWS for o in measure("association", row, with_memory=False)]
    return "\n\n".join([table(outcomes), frame_row(), memory_row(), parquet_row()])


if __name__ == "__main__":
    commands = {"write": write_file, "fit": fit_file, "count": count_in_memory}
    commands |= {"write-matrix": write_matrix, "fit-matrix": fit_matrix}
    commands[sys.argv[1]](sys.argv[2])
