"""What fits say: each its own warnings, also when fits have fits, and Ctrl-C is never taken for a fit that failed."""

import signal
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin

from lemmata.model_selection import bootstrap_error, cross_validate, learning_curve, select_order
from lemmata.model_selection.heard import hear, listening, stoppable


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


class Patient(RegressorMixin, BaseEstimator):
    """Keeps what it has when it is interrupted, as models do that are fitted step by step."""

    fits = 0

    def __init__(self, order=1):
        self.order = order

    def fit(self, X, y):
        type(self).fits += 1
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    "fits",
    [
        lambda X, y: cross_validate(Patient(), X, y),
        lambda X, y: learning_curve(Patient(), X, y),
        lambda X, y: bootstrap_error(Patient(), X, y),
        lambda X, y: select_order(Patient(), "order", [1, 2], X, y, criterion="cv"),
    ],
)
def test_an_interrupt_that_a_fit_survives_ends_all_fits(fits):
    before = signal.getsignal(signal.SIGINT)
    Patient.fits = 0
    with pytest.raises(KeyboardInterrupt):
        fits(np.arange(20.0)[:, None], np.arange(20.0))
    assert Patient.fits == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_what_python_makes_of_an_interrupt_is_one():
    def interrupted():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt as error:
            raise SystemError("unpickle returned a result with an exception set") from error

    with pytest.raises(KeyboardInterrupt), stoppable():
        interrupted()
    with pytest.raises(SystemError, match="of another kind"), stoppable():
        raise SystemError("of another kind")


def test_what_is_not_interrupted_is_not_stopped():
    with stoppable():
        pass
    with ThreadPoolExecutor(1) as pool:  # signals do not reach other threads

        def elsewhere():
            with stoppable():
                return 3

        assert pool.submit(elsewhere).result() == 3
