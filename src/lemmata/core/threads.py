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
            _take_over()
            _limit = _controller.limit(limits=1, user_api="blas")
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if _holders == 0:
                _take_over()
                _limit.restore_original_limits()
                _take_over()


def _take_over() -> None:
    """Let this thread set BLAS: from 3.8 on, threadpoolctl silently ignores every thread but the first that did."""
    for library in _controller.lib_controllers:
        getattr(library, "clear_controlling_thread", lambda force: None)(force=True)


def is_interrupt(error: BaseException) -> bool:
    """Tell whether an error is Ctrl-C: also as a SystemError, which Python makes of it while compiled functions return.

    Examples
    --------
    >>> inner, outer = SystemError("returned a result with an exception set"), SystemError("the same, one function further")
    >>> inner.__cause__, outer.__cause__ = KeyboardInterrupt(), inner
    >>> is_interrupt(outer), is_interrupt(SystemError("anything else"))
    (True, False)
    """
    found: BaseException | None = error
    while isinstance(found, SystemError):
        found = found.__cause__
    return isinstance(found, KeyboardInterrupt)


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
            errors.append(KeyboardInterrupt() if is_interrupt(error) else error)
            stop.set()

    def help_out(ended: threading.Event) -> None:
        loop()
        ended.set()

    ends = [threading.Event() for _ in range(n_threads - 1)]
    helpers = [threading.Thread(target=help_out, args=(ended,), daemon=True) for ended in ends]
    with serial_blas():
        for helper in helpers:
            helper.start()
        loop()
        for helper, ended in zip(helpers, ends, strict=True):
            _await(ended, errors, stop)
            helper.join()
    if errors:
        getattr(source, "close", lambda: None)()  # else the error's traceback keeps a reader and its file open
        try:
            raise errors[0]
        finally:
            errors.clear()  # which the traceback holds as well: a ring that would keep the block in memory


def _await(ended: threading.Event, errors: list[BaseException], stop: threading.Event) -> None:
    """Wait until a helper has ended; `join` would, when interrupted, take it for dead (before Python 3.13)."""
    while not ended.is_set():
        try:
            ended.wait()
        except KeyboardInterrupt as error:  # let the helper finish its block, then report
            errors.append(error)
            stop.set()
