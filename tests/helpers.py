"""What several test files share. Nothing here imports numba: tests/conftest.py must be first to name its cache."""

import hashlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parent
CACHES = TESTS.parent / ".pytest_cache" / "numba"


def digest(folder):
    """Tell one state of the Python sources in a folder from every other."""
    state = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*.py")):
        content = path.read_bytes()
        state.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return state.hexdigest()[:16]


def kernel_cache():
    """Name the folder for kernels compiled from this state of the sources; `make pages` takes it too."""
    return CACHES / digest(TESTS.parent / "src")


def bits(value):
    """Turn a value (array, number, tuple, list, dict, sparse matrix) into one that is equal only for the same bits."""
    if isinstance(value, tuple | list):
        return tuple(bits(v) for v in value)
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    if hasattr(value, "indptr"):
        return bits((value.data, value.indices, value.indptr)), value.shape
    if value is None or isinstance(value, str):
        return value
    array = np.asarray(value)
    return array.dtype.str, array.shape, array.tobytes()


def rough(seed, *shape):
    """Draw numbers of very different sizes, whose sum depends on the order of adding in most of its digits."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) * 10.0 ** rng.integers(-8, 9, shape)


def pairwise(parts, plus):
    """Add in the order that `Blocks` promises, by its recursive definition: the largest power of two below n, then the rest."""
    if len(parts) == 1:
        return parts[0]
    half = 1 << (len(parts) - 1).bit_length() - 1
    return plus(pairwise(parts[:half], plus), pairwise(parts[half:], plus))


# Kernels stand here rather than in the test files so that Dask workers can import them.


def moments_block(X, y, weight, shift):
    """Statistics of every shape: a number, a vector, a matrix."""
    Z = X - shift
    return float(weight.sum()), weight @ Z, Z.T @ (weight[:, None] * Z), float(y @ weight)


def visits_block(X, y, weight, state, step):
    """Count the visits to a block in place, and see that its state has not been mixed up with another's."""
    if state is None:
        state = {"visits": np.zeros(1, dtype=int), "first": X[0].copy()}
    if not np.array_equal(state["first"], X[0]):
        raise AssertionError("this state belongs to another block")
    state["visits"] += step
    return (int(state["visits"][0]), X.sum(axis=0)), state


def rows_block(X, y, weight, shift):
    """Row-wise results of two shapes and types."""
    return (X - shift).sum(axis=1), np.column_stack([y > 0, weight > 0.5])


def rows_of(X, *aligned):
    """Give the rows themselves."""
    return X


def count_block(X, *aligned_and_state):
    """Count the visits to a block, in place."""
    state = aligned_and_state[-1]
    state = np.zeros(1, dtype=int) if state is None else state
    state += 1
    return int(state[0]), state


def workers_block(X):
    """Tell each row which process worked on it."""
    return np.full(len(X), os.getpid())


def failing_block(X, *aligned):
    """Fail in a way that no library does by itself."""
    raise ZeroDivisionError("in the kernel")


def lengths_block(X, *aligned):
    """Tell each row the length of its block."""
    return np.full(X.shape[0], X.shape[0])


def squared(X):
    """Make new columns out of old ones."""
    return np.hstack([X, X**2])


def verbs(blocks, n_columns):
    """Collect what every verb of blocks of (X, y, weight) gives, as bits."""
    shift = np.linspace(-1.0, 1.0, n_columns)
    rows = np.arange(0, blocks.n_rows, 3)
    state, visits = None, []
    for step in (1, 10, 100):
        statistics, state = blocks.sweep(visits_block, state, step)
        visits.append(bits(statistics))
    wide = blocks.with_columns(squared, 2 * n_columns)
    return {
        "shape": (blocks.n_rows, blocks.n_columns, blocks.n_blocks),
        "first": bits(blocks.first()),
        "reduce": bits(blocks.reduce(moments_block, shift)),
        "sweep": visits,
        "map": bits(tuple(np.asarray(a) for a in blocks.map(rows_block, shift))),
        "lengths": bits(np.asarray(blocks.map(lengths_block))),
        "take": bits(blocks.take(rows)),
        "with_columns": bits(wide.reduce(moments_block, np.append(shift, shift))),
        "with_columns twice": bits(wide.with_columns(squared, 4 * n_columns).take(rows)),
    }


class Watcher:
    """A callback of scikit-learn's kind that calls a function with the number of each iteration that ended."""

    def __init__(self, function):
        self.function, self.tasks = function, []

    def setup(self, estimator, context):
        """Begin a fit."""
        self.tasks.append("setup")

    def teardown(self, estimator, context):
        """End a fit, whatever happened."""
        self.tasks.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        """Begin a fit, a run or an iteration."""
        self.tasks.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):
        """End a fit, a run or an iteration; to return True stops the run."""
        self.tasks.append(f"end {context.task_name}")
        return self.function(context.task_id) if context.task_name == "iteration" else None


def python(code, *arguments, environment=None, **options):
    """Start a fresh interpreter on some code, with the folder of the tests on its path."""
    preamble = f"import sys; sys.path.insert(0, {str(TESTS)!r})\n"
    command = [sys.executable, "-c", preamble + textwrap.dedent(code), *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **(pipes | options))


def finished(process, timeout=120):
    """Wait for a process and return what it wrote; fail with its error output if it failed."""
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out, err
