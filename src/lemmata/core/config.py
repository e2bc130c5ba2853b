"""Settings that hold for a stretch of code: how many threads, how many rows in a block.

>>> import lemmata
>>> with lemmata.config(n_threads=1):
...     lemmata.core.config.n_threads()
1
"""

import operator
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

_n_threads: ContextVar[int | None] = ContextVar("n_threads", default=None)
_block_rows: ContextVar[int | None] = ContextVar("block_rows", default=None)


@contextmanager
def config(*, n_threads: int | None = None, block_rows: int | None = None) -> Iterator[None]:
    """Set the number of threads and the rows of a block inside a `with` statement.

    Parameters
    ----------
    n_threads : Threads that work on blocks at the same time. Results are the same bits for every number. Default: the
        processors this process may use, or fewer if OMP_NUM_THREADS says so.
    block_rows : Rows of a block. Default: chosen from the number of columns. Another number may change the last bits.

    Examples
    --------
    >>> import lemmata
    >>> from lemmata.linear_model import LinearRegression
    >>> with lemmata.config(n_threads=2, block_rows=1000):
    ...     LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0]).coef_
    array([2.])
    """
    chosen = [(_n_threads, whole("n_threads", n_threads)), (_block_rows, whole("block_rows", block_rows))]
    tokens = [(variable, variable.set(number)) for variable, number in chosen if number is not None]
    try:
        yield
    finally:
        for variable, token in reversed(tokens):
            variable.reset(token)


def whole(name: str, value: Any) -> int | None:
    """Return a value that is a whole number of at least 1, or None; anything else is an error under its name."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}.")
    return number


def n_threads() -> int:
    """Return how many threads a pass over blocks may use now."""
    chosen = _n_threads.get()
    if chosen is not None:
        return chosen
    import joblib  # knows of affinity, containers and its own nested workers

    limit = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    processors = int(joblib.cpu_count())
    return min(processors, int(limit)) if limit.isdigit() and int(limit) else processors


def jobs(n_jobs: int | None) -> AbstractContextManager[None]:
    """Use as many threads as scikit-learn's `n_jobs` says: None for as many as are set, −1 for all processors, −2 for one less.

    Examples
    --------
    >>> with jobs(3):
    ...     n_threads()
    3
    """
    if n_jobs is None:
        return nullcontext()
    try:
        number = operator.index(n_jobs)
    except TypeError:
        number = 0
    if number == 0:
        raise ValueError(
            f"n_jobs must be None, a number of threads, or negative to leave some processors free; got {n_jobs!r}."
        )
    if number < 0:
        import joblib

        number = max(1, int(joblib.cpu_count()) + 1 + number)
    return config(n_threads=number)


def block_rows(n_columns: int) -> int:
    """Return the rows of a block for so many columns: about 4 MiB, which streams well and balances threads.

    At most 65,536, so that narrow tables still give every thread work; four times the columns if that fits 64 MiB, so that
    the R factor of a block is much smaller than the block; and always a power of two.
    """
    chosen = _block_rows.get()
    if chosen is not None:
        return chosen
    d = max(n_columns, 1)
    tall = min(4 * d, (1 << 26) // (8 * d))
    return max(min(_power_of_two((1 << 22) // (8 * d)), 1 << 16), _power_of_two(tall), 256)


def _power_of_two(x: int) -> int:
    return 1 << max(x, 1).bit_length() - 1
