"""The driver of iterative fits: when it stops, what it refuses, what it keeps, and whom it tells."""

import itertools
import re
import signal
import warnings

import numpy as np
import pytest
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers import Watcher, finished, python
from lemmata.cluster import KMeans
from lemmata.core.iterate import MonotonicityError, iterate, replay


def halving(x):
    """Go half the way to zero: the objective is |x|, and so is the residual."""
    return x / 2, abs(x / 2), abs(x / 2)


def script(objectives):
    """Make a step whose state counts and whose objectives are given."""
    return lambda i: (i + 1, objectives[i])


class Trace:
    """A callback that notes what it hears, and may stop."""

    def __init__(self, stop_at=None):
        self.heard, self.stop_at = [], stop_at

    def begin(self, iteration, state):
        self.heard.append(("begin", iteration, state))

    def end(self, iteration, state):
        self.heard.append(("end", iteration, state))
        return iteration == self.stop_at


# When it stops.


@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-3])
def test_convergence_by_the_residual(tol):
    run = iterate(halving, 1.0, max_iter=100, tol=tol, name="halving")
    expected = int(np.ceil(-np.log2(tol)))  # the first k with 2^-k ≤ tol
    assert (run.converged, run.reason, run.n_iter) == (True, "converged", expected)
    assert run.state == 2.0**-expected
    assert run.trace.tolist() == [2.0**-k for k in range(1, expected + 1)]


def test_a_residual_decides_alone():
    def step(i):
        return i + 1, 5.0, 1.0 / (i + 1)  # the objective never moves

    assert iterate(step, 0, max_iter=50, tol=0.1, name="residual").n_iter == 10


@pytest.mark.parametrize(
    ("tol", "atol", "n_iter"),
    [
        (0.1, 0.0, 5),
        (0.02, 0.0, 6),
        (0.0, 30.0, 4),
        (0.0, 3.0, 5),
        (0.01, 2.0, 5),  # 3 ≤ 1.01 + 2
        (0.0, 0.0, 8),
    ],
)
def test_convergence_by_the_change_of_the_objective(tol, atol, n_iter):
    objectives = [1000.0, 300.0, 134.0, 104.0, 101.0, 100.5, 100.4, 100.4, 100.4]
    run = iterate(script(objectives), 0, max_iter=9, tol=tol, atol=atol, name="change")
    changes = [np.inf, *np.abs(np.diff(objectives))]
    naive = next(k for k in range(9) if changes[k] <= tol * abs(objectives[k]) + atol) + 1
    assert (run.converged, run.n_iter) == (True, naive)
    assert naive == n_iter
    assert run.state == n_iter


def test_the_change_may_go_either_way():
    assert iterate(script([1.0, 2.0, 2.05]), 0, max_iter=3, tol=0.1, name="up").n_iter == 3


def test_max_iter_warns_and_says_what_to_do():
    with pytest.warns(ConvergenceWarning, match=r"^descent did not converge after 3 iterations: .*; raise max_iter\.$"):
        run = iterate(halving, 1.0, max_iter=3, tol=1e-9, name="descent")
    assert (run.converged, run.reason, run.n_iter, run.state) == (False, "max_iter", 3, 0.125)


def test_convergence_at_the_last_iteration_counts():
    assert iterate(halving, 1.0, max_iter=3, tol=0.125, name="halving").converged


def test_what_did_not_converge_returns_the_best_state():
    with pytest.warns(ConvergenceWarning):
        run = iterate(script([5.0, 1.0, 3.0, 2.0]), 0, max_iter=4, tol=1e-9, name="noisy")
    assert (run.state, run.trace.tolist()) == (2, [5.0, 1.0, 3.0, 2.0])


def test_what_rises_by_design_returns_the_last_state():
    with pytest.warns(ConvergenceWarning):
        run = iterate(script([1.0, 2.0, 3.0]), 0, max_iter=3, tol=1e-9, monotone="up", name="likelihood")
    assert run.state == 3


# What it refuses.


@pytest.mark.parametrize(("monotone", "word", "values"), [("down", "rose", (9.0, 8.0, 8.5)), ("up", "fell", (7.0, 8.0, 7.5))])
def test_a_step_in_the_wrong_direction(monotone, word, values):
    with pytest.raises(MonotonicityError, match=rf"^EM: the objective {word} at iteration 3, from 8 to {values[2]}\.$"):
        iterate(script(values), 0, max_iter=5, tol=0.0, monotone=monotone, name="EM")


@pytest.mark.parametrize(("values", "monotone"), [((9.0, 8.0, 7.5, 7.5), "down"), ((7.0, 7.5, 9.0, 9.0), "up")])
def test_a_step_in_the_right_direction(values, monotone):
    assert iterate(script(values), 0, max_iter=4, tol=0.0, monotone=monotone, name="EM").converged


@pytest.mark.parametrize(
    ("rise", "rounding", "raises"),
    [(1e-8, 0.0, False), (1e-6, 0.0, True), (1e-6, 1e-4, False), (2e-4, 1e-4, True)],  # 1e-9 of the objective is 1e-7
)
def test_rounding_is_no_step_in_the_wrong_direction(rise, rounding, raises):
    values = [100.0, 100.0 + rise]

    def go():
        return iterate(script(values), 0, max_iter=2, tol=1e-3, monotone="down", rounding=rounding, name="EM")

    if raises:
        with pytest.raises(MonotonicityError):
            go()
    else:
        assert go().converged


def test_an_objective_that_is_not_a_number():
    with pytest.raises(FloatingPointError, match=r"^EM: the objective is not a number at iteration 2;"):
        iterate(script([1.0, np.nan]), 0, max_iter=5, tol=0.0, name="EM")


# What it keeps.


@pytest.mark.parametrize("monotone", [None, "down"])
def test_ctrl_c_keeps_the_best_state(monotone):
    objectives = [5.0, 1.0, 3.0] if monotone is None else [5.0, 3.0, 1.0]

    def step(i):
        if i == 3:
            raise KeyboardInterrupt
        return i + 1, objectives[i]

    with pytest.warns(ConvergenceWarning, match="^EM was interrupted after 3 iterations: the best state so far is kept.$"):
        run = iterate(step, 0, max_iter=9, tol=0.0, monotone=monotone, name="EM")
    assert (run.converged, run.reason, run.n_iter) == (False, "interrupted", 3)
    assert run.state == (2 if monotone is None else 3)


def test_ctrl_c_before_the_first_step_keeps_the_start():
    def step(state):
        raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning, match="interrupted after 0 iterations"):
        run = iterate(step, "start", max_iter=9, tol=0.0, name="EM")
    assert (run.state, run.n_iter, run.converged) == ("start", 0, False)


def test_ctrl_c_as_a_compiled_function_returns():
    def step(state):
        raise SystemError("a result with an exception set") from KeyboardInterrupt()

    with pytest.warns(ConvergenceWarning, match="interrupted after 0 iterations"):
        assert iterate(step, "start", max_iter=9, tol=0.0, name="EM").reason == "interrupted"

    def broken(state):
        raise SystemError("of another kind")

    with pytest.raises(SystemError, match="another kind"):
        iterate(broken, "start", max_iter=9, tol=0.0, name="EM")


def test_other_errors_are_raised():
    def step(state):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        iterate(step, 0, max_iter=9, tol=0.0, name="EM")


@pytest.mark.slow_without_jit
def test_a_signal_in_mid_fit_returns_a_model_that_works():
    code = """
        import warnings
        import numpy as np
        from helpers import Watcher
        from lemmata.cluster import KMeans

        X = np.random.default_rng(0).random((400000, 2))
        warm = KMeans(2, random_state=0).fit(X[:100])

        def report(iteration):
            if iteration == 2:
                print("ready", flush=True)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = KMeans(200, init="random", n_init=1, random_state=0).set_callbacks(Watcher(report)).fit(X)
        print(model.converged_, model.n_iter_, len(model.trace_), len(model.labels_))
        print(model.inertia_ <= model.trace_[-1] * (1 + 1e-9), np.array_equal(model.predict(X), model.labels_))
        print(*[w.message for w in caught])
    """
    process = python(code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = finished(process)
    numbers, checks, message = out.splitlines()
    converged, n_iter, n_trace, n_labels = numbers.split()
    assert (converged, n_labels) == ("False", "400000")
    assert 3 <= int(n_iter) == int(n_trace) < 150  # it takes more to converge
    assert checks == "True True"
    assert message == f"k-means was interrupted after {n_iter} iterations: the best state so far is kept."
    assert err == ""


# Whom it tells.


def test_callbacks_hear_of_every_step():
    trace = Trace()
    iterate(halving, 1.0, max_iter=9, tol=0.25, name="halving", callbacks=[trace])
    assert trace.heard == [("begin", 0, 1.0), ("end", 0, 0.5), ("begin", 1, 0.5), ("end", 1, 0.25)]


def test_a_callback_can_stop():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # whoever stops a fit on purpose needs no warning
        run = iterate(halving, 1.0, max_iter=9, tol=0.0, name="halving", callbacks=[Trace(stop_at=1), Trace()])
    assert (run.converged, run.reason, run.n_iter, run.state) == (False, "callback", 2, 0.25)


def test_every_callback_hears_of_the_step_at_which_another_stops():
    second = Trace()
    iterate(halving, 1.0, max_iter=9, tol=0.0, name="halving", callbacks=[Trace(stop_at=0), second])
    assert second.heard[-1] == ("end", 0, 0.5)


def test_a_fit_that_converged_was_not_stopped():
    run = iterate(halving, 1.0, max_iter=9, tol=0.25, name="halving", callbacks=[Trace(stop_at=1)])
    assert (run.converged, run.reason) == (True, "converged")


def test_verbose_shows_a_bar_on_stderr(capsys):
    iterate(halving, 1.0, max_iter=9, tol=0.25, name="halving", verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert re.search(r"halving: 100%.* 2/2 .*objective 0\.25", err)  # done, however many iterations were allowed
    with pytest.warns(ConvergenceWarning):
        iterate(halving, 1.0, max_iter=3, tol=0.0, name="halving", verbose=1)
    assert re.search(r"halving: 100%.* 3/3 .*objective 0\.125", capsys.readouterr().err)
    iterate(halving, 1.0, max_iter=9, tol=0.25, name="halving")
    assert capsys.readouterr() == ("", "")


# scikit-learn's callbacks, on a real estimator.


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((400, 2))


def test_kmeans_shows_a_bar(rows, capsys):
    model = KMeans(3, random_state=0, verbose=1).fit(rows)
    assert re.search(rf"k-means: 100%.* {model.n_iter_}/{model.n_iter_} ", capsys.readouterr().err)


def test_kmeans_tells_its_callbacks_of_runs_and_iterations(rows):
    watcher = Watcher(lambda iteration: None)
    model = KMeans(3, random_state=0).set_callbacks(watcher).fit(rows)
    inner = ["begin iteration", "end iteration"] * model.n_iter_
    assert watcher.tasks == ["setup", "begin fit", "begin k-means", *inner, "end k-means", "end fit", "teardown"]


def test_a_callback_stops_kmeans(rows):
    model = KMeans(3, random_state=0, n_init=4).set_callbacks(Watcher(lambda iteration: iteration == 2)).fit(rows)
    assert (model.n_iter_, model.converged_) == (3, False)
    assert model.predict(rows).shape == (400,)


def test_callbacks_are_torn_down_after_an_error(rows):
    def fails(iteration):
        raise ZeroDivisionError

    watcher = Watcher(fails)
    with pytest.raises(ZeroDivisionError):
        KMeans(3, random_state=0).set_callbacks(watcher).fit(rows)
    assert watcher.tasks[-1] == "teardown"


def test_progress_bar(rows, capsys):
    KMeans(3, random_state=0, n_init=2).set_callbacks(ProgressBar()).fit(rows)
    out = capsys.readouterr().out
    assert "KMeans - fit" in out
    assert "KMeans - k-means #1" in out
    assert "100%" in out


def test_progress_bar_of_a_pipeline_and_of_a_search(rows, capsys):
    pipeline = make_pipeline(StandardScaler(), KMeans(3, random_state=0))
    pipeline.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(rows)
    assert "KMeans - k-means" in capsys.readouterr().out
    search = GridSearchCV(make_pipeline(StandardScaler(), KMeans(random_state=0)), {"kmeans__n_clusters": [2, 3]}, cv=2)
    search.set_callbacks(ProgressBar(max_propagation_depth=None)).fit(rows)
    out = capsys.readouterr().out
    assert "KMeans - k-means" in out
    assert "GridSearchCV" in out
    assert search.best_params_ == {"kmeans__n_clusters": 3}


def test_scoring_monitor_hears_of_every_iteration(rows):
    monitor = ScoringMonitor(scoring=None)
    model = KMeans(3, random_state=0).set_callbacks(monitor).fit(rows)
    log = monitor.get_logs().data
    assert [entry["task_name"] for entry in log] == ["iteration"] * model.n_iter_
    assert [entry["task_id"] for entry in log] == list(range(model.n_iter_))


def test_scoring_monitor_inside_a_pipeline_and_a_search(rows):
    monitor = ScoringMonitor(scoring=None)
    pipeline = make_pipeline(StandardScaler(), KMeans(3, random_state=0).set_callbacks(monitor)).fit(rows)
    log = monitor.get_logs()
    assert log.estimator_name == "Pipeline"
    assert [entry["task_name"] for entry in log.data] == ["iteration"] * pipeline[-1].n_iter_
    monitor = ScoringMonitor(scoring=None)
    kmeans = KMeans(random_state=0).set_callbacks(monitor)
    search = GridSearchCV(kmeans, {"n_clusters": [2, 3]}, cv=2).fit(rows)
    runs = {entry["parent_task_id_path"] for entry in monitor.get_logs().data}
    assert len(runs) == 2 * 2 + 1  # each candidate on each split, and the best of them on all rows
    assert sum(entry["task_id"] == 0 for entry in monitor.get_logs().data) == len(runs)
    assert search.best_estimator_.n_clusters == 3


def test_scoring_monitor_scores_every_iteration(rows):
    monitor = ScoringMonitor(scoring={"score": lambda model, X, y: model.score(X)})
    model = KMeans(3, random_state=0).set_callbacks(monitor).fit(rows, np.zeros(len(rows)))
    scores = [entry["score"] for entry in monitor.get_logs().data]
    np.testing.assert_allclose(scores[-1], -model.inertia_, rtol=1e-12)
    assert all(a <= b for a, b in itertools.pairwise(scores))


# Once more.


@pytest.mark.parametrize("cut", [0, 3, 9])
def test_a_replay_ends_where_the_run_was_cut_short_at_the_last_state(cut):
    def step(i):
        return i + 1, float(i), 0.0 if i == 6 else 1.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = replay(step, 0, max_iter=5, ended=lambda i: i == cut)
    assert run.state == min(cut, 5)  # the objective rises: the first state is the best
    assert np.array_equal(run.objective, run.state - 1 if cut else np.nan, equal_nan=True)
