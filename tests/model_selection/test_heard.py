"""What fits say: each its own warnings, also when fits have fits, and Ctrl-C is never taken for a fit that failed."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from lemmata.model_selection.heard import hear, listening


def say(*words):
    for word in words:
        warnings.warn(word, stacklevel=1)


def words(heard):
    return [text for _, text in heard.warnings]


def test_a_fit_may_hear_its_own_fits():
    inner = []

    def outer():
        say("before")
        inner.append(hear(lambda: say("within")))
        say("after")
        return 3

    heard = hear(outer)
    assert (heard.result, heard.error) == (3, None)
    assert words(heard) == ["before", "after"]
    assert words(inner[0]) == ["within"]


def test_every_thread_has_its_own_warnings():
    with listening(), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda i: hear(lambda: say(str(i), "all")), range(40)))
    assert [words(heard) for heard in found] == [[str(i), "all"] for i in range(40)]


def test_an_error_is_kept_and_an_interrupt_is_not():
    assert str(hear(lambda: int("x")).error).startswith("invalid literal")

    def interrupted():
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()  # out of a compiled function

    for stop in (interrupted, lambda: (_ for _ in ()).throw(KeyboardInterrupt())):
        with pytest.raises(KeyboardInterrupt):
            hear(stop)
    assert hear(lambda: 1).result == 1
