"""What a fit says beside its result: its error, its warnings, told apart from those of fits on other threads, or Ctrl-C.

Python's record of warnings belongs to the whole process. While fits run on several threads, the process is made to hand each
warning to a function, and the function knows on which thread it was called.
Ctrl-C ends a single fit early, and many models keep the best state they have come to. One of many fits must not: it would
count as if it had come to its end, and the others would go on.
"""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

from lemmata.core.threads import is_interrupt

_HERE = threading.local()
_LISTENING = [0]
_ELSEWHERE: list[list[tuple[type[Warning], str]]] = [[]]  # notes for threads that a call starts: those of the last call begun


class Heard(NamedTuple):
    """What a call gave, or the error that ended it, and the warnings on the way."""

    result: Any
    error: Exception | None
    warnings: list[tuple[type[Warning], str]]


@contextmanager
def listening() -> Iterator[None]:
    """Let `hear` know which warnings are whose."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = _take
        _LISTENING[0] += 1
        try:
            yield
        finally:
            _LISTENING[0] -= 1


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C end what is under way, also if it was caught within."""
    before, caught = signal.getsignal(signal.SIGINT), []
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # it reaches the main thread only
        return

    def note(number: int, frame: Any) -> None:
        caught.append(number)
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    except SystemError as error:  # which Python makes of it while a compiled function returns
        if caught:
            raise KeyboardInterrupt from error
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        raise KeyboardInterrupt


def _take(message: Warning | str, category: type[Warning], *_: Any) -> None:
    getattr(_HERE, "notes", _ELSEWHERE[0]).append((category, str(message)))


def hear(call: Callable[[], Any]) -> Heard:
    """Call a function, and keep its error and its warnings.

    Examples
    --------
    >>> hear(lambda: 1 / 0).error
    ZeroDivisionError('division by zero')
    >>> hear(lambda: warnings.warn("few rows")).warnings
    [(<class 'UserWarning'>, 'few rows')]
    """
    with nullcontext() if _LISTENING[0] else listening():
        notes: list[tuple[type[Warning], str]] = []
        before, elsewhere = getattr(_HERE, "notes", None), _ELSEWHERE[0]
        _HERE.notes = _ELSEWHERE[0] = notes
        try:
            return Heard(call(), None, list(dict.fromkeys(notes)))
        except Exception as error:  # whatever it was, other fits go on
            if is_interrupt(error):
                raise KeyboardInterrupt from error
            return Heard(None, error, list(dict.fromkeys(notes)))
        finally:
            if before is None:
                del _HERE.notes
            else:  # a fit that hears its own fits
                _HERE.notes, _ELSEWHERE[0] = before, elsewhere
