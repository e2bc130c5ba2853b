"""Threads over blocks, and BLAS held to one thread while they run.

A pass makes its threads and joins them, so nothing is left running that a `fork` could break. The calling thread works as
well: Ctrl-C reaches it between two blocks.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_holders = 0
_limit: Any = None
_controller: Any = None


@contextmanager
def serial_blas() -> Iterator[None]:
    """Hold BLAS to one thread; may be nested and entered from many threads at once.

    The setting belongs to the process, so the first to enter sets it and the last to leave restores it.
    """
    global _holders, _limit, _controller
    with _lock:
        if _holders == 0:
            if _controller is None:
                import scipy.linalg  # noqa: F401 - so that the controller below finds SciPy's BLAS as well
                from threadpoolctl import ThreadpoolController

                _controller = ThreadpoolController()  # scans the loaded libraries: milliseconds, hence once
            _limit = _controller.limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _limit.restore_original_limits()


def run(work: Callable[[T], None], tasks: Iterable[T], n_threads: int) -> None:
    """Call `work` on every task, on so many threads; the first error stops the rest and is raised.

    Tasks are taken one at a time under a lock, so `tasks` may be any iterator, even one that reads a file.
    """
    source, gate = iter(tasks), threading.Lock()
    errors: list[BaseException] = []
    stop = threading.Event()

    def loop() -> None:
        try:
            while not stop.is_set():
                with gate:
                    try:
                        task = next(source)
                    except StopIteration:
                        return
                work(task)
        except BaseException as error:  # Ctrl-C too: it must stop the helpers
            errors.append(error)
            stop.set()

    helpers = [threading.Thread(target=loop, daemon=True) for _ in range(n_threads - 1)]
    with serial_blas():
        for helper in helpers:
            helper.start()
        loop()
        for helper in helpers:
            _join(helper, errors, stop)
    if errors:
        getattr(source, "close", lambda: None)()  # else the error's traceback keeps a reader and its file open
        try:
            raise errors[0]
        finally:
            errors.clear()  # which the traceback holds as well: a ring that would keep the block in memory


def _join(helper: threading.Thread, errors: list[BaseException], stop: threading.Event) -> None:
    while helper.is_alive():
        try:
            helper.join()
        except KeyboardInterrupt as error:  # let the helper finish its block, then report
            errors.append(error)
            stop.set()
