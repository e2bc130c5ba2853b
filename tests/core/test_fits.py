"""Many independent fits: order, threads, processes, errors."""

import threading

import pytest

import lemmata
from lemmata.core import config
from lemmata.core.fits import fit_all


def square(k):
    """Stands here so that other processes can import it."""
    return k * k


@pytest.mark.parametrize("options", [{}, {"n_jobs": 1}, {"n_jobs": 3}, {"n_jobs": -1}])
@pytest.mark.parametrize("ours", [True, False])
def test_results_come_in_the_order_of_the_tasks(options, ours):
    assert fit_all(square, list(range(7)), ours=ours, **options) == [0, 1, 4, 9, 16, 25, 36]


def test_our_fits_share_the_threads_and_each_has_one_inside():
    seen, together = [], threading.Barrier(2, timeout=30)

    def work(_):
        together.wait()  # passes only if two fits run at the same time
        seen.append(config.n_threads())

    with lemmata.config(n_threads=2):
        fit_all(work, range(4), ours=True)
    assert seen == [1, 1, 1, 1]


def test_fits_of_other_libraries_run_in_turn_and_keep_all_threads():
    with lemmata.config(n_threads=3):
        assert (
            fit_all(lambda _: (threading.get_ident(), config.n_threads()), range(3), ours=False)
            == [(threading.get_ident(), 3)] * 3
        )


def test_an_error_of_one_fit_is_raised():
    def work(k):
        return 1 // k

    with pytest.raises(ZeroDivisionError):
        fit_all(work, [1, 0, 2], ours=True)


def test_progress_is_shown_when_asked_for(capfd):
    fit_all(square, range(3), ours=True, verbose=1, name="folds")
    assert "folds: 100%" in capfd.readouterr().err


def test_no_tasks_give_no_results():
    assert fit_all(square, [], ours=True) == []
