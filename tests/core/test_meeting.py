"""Threads that meet inside compiled code, and memory that is asked in time."""

import threading

import numba
import numpy as np
import pytest

import lemmata
from lemmata.core.kernel import kernel
from lemmata.core.meeting import meet, new_marks, threads_that_meet, together
from lemmata.core.prefetch import prefetch

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="plain Python has no meetings")


@kernel
def take_turns(marks, me, rounds, slots, totals):
    """Write a number, meet, add up what all have written, meet: wrong if anybody ever runs ahead."""
    for i in range(rounds):
        slots[me] = i * (me + 1)
        meet(marks, me)
        for other in range(len(slots)):
            totals[me] += slots[other]
        meet(marks, me)


@compiled_only
@pytest.mark.parametrize("n_threads", [1, 2, 5])  # more than there are processors, too
def test_nobody_runs_ahead(n_threads):
    rounds, marks = 3000, new_marks(n_threads)
    slots, totals = np.zeros(n_threads, np.int64), np.zeros(n_threads, np.int64)
    helpers = [threading.Thread(target=take_turns, args=(marks, me, rounds, slots, totals)) for me in range(1, n_threads)]
    for helper in helpers:
        helper.start()
    take_turns(marks, 0, rounds, slots, totals)
    for helper in helpers:
        helper.join()
    expected = sum(i * (me + 1) for i in range(rounds) for me in range(n_threads))
    assert totals.tolist() == [expected] * n_threads


def test_the_number_of_threads_is_that_of_the_configuration():
    with lemmata.config(n_threads=3):
        assert threads_that_meet() == (1 if numba.config.DISABLE_JIT else 3)


@kernel
def ask_and_sum(x):
    """Ask for every number before it is read."""
    total = 0.0
    for i in range(len(x)):
        prefetch(x, np.uint64(min(i + 8, len(x) - 1)))
        total += x[i]
    return total


def test_asking_changes_nothing():
    assert ask_and_sum(np.arange(100.0)) == 4950.0
    assert prefetch(np.ones(3), 1) is None


@compiled_only
def test_together_is_one_share_each():
    marks, slots, totals = new_marks(3), np.zeros(3, np.int64), np.zeros(3, np.int64)
    together(lambda me: take_turns(marks, me, 100, slots, totals), marks)
    assert totals.tolist() == [6 * sum(range(100))] * 3


@compiled_only
def test_ctrl_c_before_the_first_meeting_leaves_nobody_waiting():
    marks, slots, totals, pressed = new_marks(2), np.zeros(2, np.int64), np.zeros(2, np.int64), []

    def work(me):
        if me == 0 and not pressed:
            pressed.append(True)
            raise KeyboardInterrupt
        take_turns(marks, me, 100, slots, totals)

    with pytest.raises(KeyboardInterrupt):
        together(work, marks)
    assert totals.tolist() == [3 * sum(range(100))] * 2


@compiled_only
def test_an_error_of_another_thread_is_raised():
    def work(me):
        if me == 1:
            raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        together(work, new_marks(2))
