"""Threads over blocks: BLAS held to one, errors and Ctrl-C that end all of them, and nothing left for a fork to break."""

import signal
import threading
import time
import weakref

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from helpers import finished, python
from lemmata.core.blocks import Blocks
from lemmata.core.threads import run, serial_blas

PATIENCE = 30.0  # seconds after which a thread on a busy machine counts as lost


def blas():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def others():
    return {t for t in threading.enumerate() if t is not threading.current_thread()}


@pytest.fixture
def two():
    """Let BLAS have two threads, so that one of them shows."""
    np.linalg.qr(np.ones((2, 2)))
    with serial_blas():  # loads whatever BLAS there is
        pass
    with threadpool_limits(limits=2, user_api="blas"):
        assert set(blas()) == {2}
        yield


# BLAS.


@pytest.mark.usefixtures("two")
def test_blas_has_one_thread_inside_and_what_it_had_outside():
    with serial_blas():
        assert set(blas()) == {1}
        with serial_blas():
            assert set(blas()) == {1}
        assert set(blas()) == {1}
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two")
def test_blas_is_restored_after_an_error():
    with pytest.raises(ZeroDivisionError), serial_blas():
        raise ZeroDivisionError
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two")
def test_blas_is_restored_by_the_last_of_many_threads_to_leave():
    together, inside, outside = threading.Barrier(4, timeout=PATIENCE), [], []

    def enter(turn):
        for _ in range(20):
            with serial_blas():
                together.wait()
                time.sleep(1e-4 * turn)  # they leave one after another, never the same one last
                inside.append(set(blas()))
            together.wait()
            if turn == 0:
                outside.append(set(blas()))
            together.wait()
            turn = (turn + 1) % 4

    threads = [threading.Thread(target=enter, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(inside), len(outside)) == (80, 20)
    assert all(seen == {1} for seen in inside)
    assert all(seen == {2} for seen in outside)


@pytest.mark.usefixtures("two")
def test_every_thread_may_hold_blas_not_only_the_first():
    with serial_blas():
        pass  # the main thread was first

    seen = []
    thread = threading.Thread(
        target=lambda: Blocks.of(np.ones((2, 1)), block_rows=1).reduce(lambda X: seen.extend(blas()) or 0)
    )
    thread.start()
    thread.join()
    assert set(seen) == {1}
    assert set(blas()) == {2}


@pytest.mark.usefixtures("two")
def test_kernels_see_one_blas_thread():
    assert Blocks.of(np.ones((40, 1)), block_rows=1).reduce(lambda X: max(blas())) == 40
    assert set(blas()) == {2}


# Work.


@pytest.mark.parametrize("n_threads", [1, 2, 8])
def test_every_task_is_done_once(n_threads):
    done = []
    run(done.append, iter(range(1000)), n_threads)
    assert sorted(done) == list(range(1000))


def test_tasks_are_taken_one_at_a_time():
    inside = []

    def tasks():
        for i in range(50):
            inside.append(i)
            time.sleep(1e-4)
            assert inside == [i]  # a generator that two threads entered would also say so itself
            inside.clear()
            yield i

    run(lambda i: None, tasks(), 4)


def test_no_thread_outlives_its_pass():
    before = others()
    run(lambda i: time.sleep(1e-4), range(20), 4)
    assert others() <= before


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_the_first_error_stops_all_and_is_raised(where):
    before, caller, done = others(), threading.current_thread(), []
    error = ZeroDivisionError("one of many")

    def work(i):
        if (threading.current_thread() is caller) == (where == "caller"):
            raise error
        time.sleep(1e-3)
        done.append(i)

    with pytest.raises(ZeroDivisionError) as caught:
        run(work, range(2000), 3)
    assert caught.value is error
    assert len(done) < 1000
    assert "work" in [entry.name for entry in caught.traceback]
    assert others() <= before


def test_an_error_of_the_tasks_is_raised():
    def tasks():
        yield 1
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        run(lambda i: None, tasks(), 3)


def test_an_error_closes_the_tasks_and_keeps_nothing_in_memory():
    closed, blocks = [], []

    def tasks():
        try:
            while True:
                yield np.ones(3)
        finally:
            closed.append(True)

    def work(block):
        blocks.append(weakref.ref(block))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run(work, tasks(), 1)
    assert closed == [True]
    del caught
    assert blocks[0]() is None  # freed at once, not when the garbage collector next comes by


# Ctrl-C.


def test_an_interrupt_as_a_compiled_function_returns_is_an_interrupt():
    def work(i):
        raise SystemError("a result with an exception set") from KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        run(work, range(3), 1)


def test_an_interrupt_of_the_caller_stops_the_helpers():
    before, caller, done = others(), threading.current_thread(), []

    def work(i):
        if threading.current_thread() is caller:
            raise KeyboardInterrupt
        time.sleep(1e-3)
        done.append(i)

    with pytest.raises(KeyboardInterrupt):
        run(work, range(4000), 4)
    assert len(done) < 2000
    assert others() <= before


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_a_signal_while_waiting_for_a_helper_ends_the_pass():
    """The caller is out of work and waits; the signal must neither be lost nor leave the helper running."""
    before, caller = others(), threading.current_thread()
    taken, finished_block = threading.Event(), []

    def work(i):
        if threading.current_thread() is caller:
            assert taken.wait(PATIENCE)  # the helper has the other task
            return
        taken.set()
        time.sleep(0.05)  # by now the caller waits
        signal.pthread_kill(caller.ident, signal.SIGINT)
        time.sleep(0.05)
        finished_block.append(i)

    # A shell that starts the tests in the background has them ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        run(work, range(2), 2)
    assert len(finished_block) == 1
    assert others() <= before


# Fork.


def test_a_fit_after_a_fork_gives_the_same_bits():
    code = """
        import multiprocessing, warnings
        import numpy as np
        import lemmata
        from helpers import bits
        from lemmata.cluster import KMeans
        from lemmata.linear_model import LinearRegression

        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 distrusts forks of any process with threads
        X = np.random.default_rng(0).random((2000, 3))

        def fits():
            with lemmata.config(n_threads=4, block_rows=100):
                k, l = KMeans(5, random_state=0).fit(X), LinearRegression().fit(X[:, :2], X[:, 2])
            return bits((k.cluster_centers_, k.labels_, k.inertia_, l.coef_, l.standard_errors_))

        before = fits()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            children = [pool.apply_async(fits) for _ in range(4)]
            assert all(child.get(timeout=60) == before for child in children)
        assert fits() == before
        print("same bits")
    """
    assert finished(python(code))[0].strip() == "same bits"
