"""Many fits that know nothing of each other: folds, resamples, orders, members.

Ours run on threads, each fit on one thread inside; other libraries' run one after the other, because nobody said whether
they may meet, or in processes where `n_jobs` asks for it. Results come in the order of the tasks, whoever was first.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from lemmata.core import config
from lemmata.core.threads import run

T = TypeVar("T")
R = TypeVar("R")


def fit_all(
    work: Callable[[T], R], tasks: Sequence[T], *, ours: bool, n_jobs: int | None = None, verbose: int = 0, name: str = "fits"
) -> list[R]:
    """Call `work` on every task and list the results.

    Parameters
    ----------
    ours : Whether the fits are lemmata's own, and so may share a process.
    n_jobs : Fits at the same time; None for as many as `lemmata.config` has threads, of other libraries' one.
    verbose : 1 shows a progress bar.
    name : What the bar counts.

    Examples
    --------
    >>> fit_all(lambda k: k**2, range(4), ours=True)
    [0, 1, 4, 9]
    """
    with _bar(len(tasks), name) if verbose else nullcontext() as bar, config.jobs(n_jobs):
        if not ours and n_jobs not in (None, 1) and len(tasks) > 1:
            return _in_processes(work, tasks, config.n_threads(), bar)
        results: list[Any] = [None] * len(tasks)
        n_threads, gate = min(config.n_threads(), len(tasks)) if ours else 1, threading.Lock()

        def one(i: int) -> None:
            with config.config(n_threads=1) if n_threads > 1 else nullcontext():
                results[i] = work(tasks[i])
            if bar is not None:
                with gate:
                    bar.update()

        run(one, range(len(tasks)), n_threads)
        return results


def _in_processes(work: Callable[[T], R], tasks: Sequence[T], n_jobs: int, bar: Any) -> list[R]:
    from joblib import Parallel, delayed

    results: list[R] = []
    for result in Parallel(n_jobs=n_jobs, return_as="generator")(delayed(work)(task) for task in tasks):
        results.append(result)
        if bar is not None:
            bar.update()
    return results


def _bar(total: int, name: str) -> AbstractContextManager[Any]:
    from tqdm import tqdm

    bar: AbstractContextManager[Any] = tqdm(total=total, desc=name)
    return bar
