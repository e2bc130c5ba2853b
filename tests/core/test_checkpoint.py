"""Checkpoints: a fit that was killed resumes, ends with the same bits, and never with those of another fit."""

import copy
import os
import signal
import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import lemmata
from helpers import Watcher, bits, finished, python
from lemmata.cluster import KMeans
from lemmata.core.iterate import Checkpoint, iterate
from lemmata.core.persistence import ModelFileError

IDENTITY = {"estimator": "walk", "data": "none"}
FITTED = ("cluster_centers_", "labels_", "inertia_", "trace_", "n_iter_", "converged_")


class Killed(Exception):
    """What an error, a power cut or SIGKILL is to a step."""


def walk(state):
    """Take a random step, so that the generator in the state must come back as well."""
    rng = copy.deepcopy(state["rng"])
    x = 0.9 * state["x"] + rng.standard_normal(3)
    return {"x": x, "rng": rng}, float(x @ x)


def walked(path, kill_at=None):
    """Walk 12 steps at most, of which the one with that number kills; return the run and how many were taken."""
    steps = []

    def step(state):
        if len(steps) == kill_at:
            raise Killed
        steps.append(0)
        return walk(state)

    start = {"x": np.zeros(3), "rng": np.random.default_rng(0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        run = iterate(step, start, max_iter=12, tol=0.0, name="walk", checkpoint=Checkpoint(path, IDENTITY))
    return run, len(steps)


# The driver.


@pytest.mark.parametrize("kill_at", [1, 2, 5, 11])
def test_a_killed_run_resumes_with_the_same_bits(tmp_path, monkeypatch, kill_at):
    monkeypatch.setattr("lemmata.core.iterate.WRITE_SHARE", 0)  # write after every step, however long a writing takes
    expected, _ = walked(tmp_path / "never killed")
    with pytest.raises(Killed):
        walked(tmp_path / "c", kill_at)
    run, steps = walked(tmp_path / "c")
    assert steps == 12 - kill_at
    assert bits(run.state["x"]) == bits(expected.state["x"])
    assert run.state["rng"].bit_generator.state == expected.state["rng"].bit_generator.state
    assert bits(run.trace) == bits(expected.trace)
    assert (run.n_iter, run.converged, run.reason) == (12, False, "max_iter")


def test_the_best_state_survives_a_kill(tmp_path, monkeypatch):
    """The smallest objective comes before the kill, the run goes on after it and does not converge."""
    monkeypatch.setattr("lemmata.core.iterate.WRITE_SHARE", 0)
    objectives = [5.0, 1.0, 3.0, 2.0, 4.0]

    def step(i):
        if kill and i == 3:
            raise Killed
        return i + 1, objectives[i]

    def go():
        return iterate(step, 0, max_iter=5, tol=0.0, name="noisy", checkpoint=Checkpoint(tmp_path / "c", IDENTITY))

    kill = True
    with pytest.raises(Killed):
        go()
    kill = False
    with pytest.warns(ConvergenceWarning):
        assert go().state == 2


def test_a_run_that_had_converged_is_not_taken_up_again(tmp_path):
    def step(i):
        return i + 1, 1.0, 0.0

    first = iterate(step, 0, max_iter=9, tol=0.0, name="once", checkpoint=Checkpoint(tmp_path / "c", IDENTITY))
    again = iterate(None, 0, max_iter=9, tol=0.0, name="once", checkpoint=Checkpoint(tmp_path / "c", IDENTITY))
    assert first.converged
    assert again.converged
    assert (again.state, again.n_iter) == (1, 1)


def test_writing_takes_a_small_share_of_the_time(tmp_path):
    """However short the steps are, 20 times as long as a writing takes lies between two of them."""
    written, original = [], Checkpoint.write

    class Counted(Checkpoint):
        def write(self, *args, **kwargs):
            before = self.path.stat().st_mtime_ns if self.path.exists() else None
            original(self, *args, **kwargs)
            if self.path.stat().st_mtime_ns != before:
                written.append(time.monotonic())

    def step(i):
        time.sleep(1e-4)
        return i + 1, 1.0, 1.0

    with pytest.warns(ConvergenceWarning):
        iterate(step, 0, max_iter=500, tol=0.0, name="quick", checkpoint=Counted(tmp_path / "c", IDENTITY))
    assert 1 <= len(written) < 250


@pytest.mark.parametrize("key", list(IDENTITY))
def test_the_checkpoint_of_another_fit_is_refused(tmp_path, key):
    with pytest.raises(Killed):
        walked(tmp_path / "c", 1)
    other = Checkpoint(tmp_path / "c", IDENTITY | {key: "other"})
    with pytest.raises(ValueError, match=rf"The checkpoint .*c belongs to another fit \(its {key} differs\); delete it or"):
        iterate(walk, None, max_iter=3, tol=0.0, name="walk", checkpoint=other)
    assert (tmp_path / "c").exists()


@pytest.mark.parametrize("damage", ["cut", "altered", "foreign", "empty"])
def test_a_damaged_checkpoint_is_refused_and_stays(tmp_path, damage):
    path = tmp_path / "c"
    with pytest.raises(Killed):
        walked(path, 1)
    content = path.read_bytes()
    middle = len(content) // 2
    altered = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes({"cut": content[:-10], "altered": altered, "foreign": b"a,b\n1,2\n", "empty": b""}[damage])
    before = path.read_bytes()
    with pytest.raises(ModelFileError, match=r"c was not read: it is (damaged|no lemmata file)"):
        walked(path)
    assert path.read_bytes() == before


# An estimator.


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).random((1500, 2))


def model(path=None, **options):
    return KMeans(**{"n_clusters": 12, "random_state": 3, "checkpoint": path} | options)


def fitted(model):
    return {name: bits(getattr(model, name)) for name in FITTED}


def cut_short(model, X, at=3, **options):
    """Fit a model up to an iteration at which the process might have been killed."""

    def kill(iteration):
        if iteration == at:
            raise Killed

    with pytest.raises(Killed):
        model.set_callbacks(Watcher(kill)).fit(X, **options)
    assert os.path.exists(model.checkpoint)


def test_a_checkpoint_is_removed_after_success_and_kept_after_an_error(tmp_path, rows):
    for n_init in (1, 3):
        model(tmp_path / "c", n_init=n_init).fit(rows)
        assert list(tmp_path.iterdir()) == []
    cut_short(model(tmp_path / "c"), rows)
    assert [path.name for path in tmp_path.iterdir()] == ["c"]
    assert fitted(model(tmp_path / "c").fit(rows)) == fitted(model().fit(rows))
    assert list(tmp_path.iterdir()) == []


def test_the_number_of_threads_may_differ_between_kill_and_resumption(tmp_path, rows):
    with lemmata.config(n_threads=2, block_rows=100):
        cut_short(model(tmp_path / "c"), rows)
        expected = fitted(model().fit(rows))
    with lemmata.config(n_threads=1, block_rows=100):
        assert fitted(model(tmp_path / "c").fit(rows)) == expected


def test_a_checkpoint_of_a_table_elsewhere(tmp_path, rows):
    """A fit from an iterator resumes on the array: the first block is the same, and so are the sums."""
    cut_short(model(tmp_path / "c"), lambda: iter([rows]))
    assert fitted(model(tmp_path / "c").fit(rows)) == fitted(model().fit(rows))


OTHER_PARAMETERS = {
    "n_clusters": {"n_clusters": 11},
    "random_state": {"random_state": 4},
    "tol": {"tol": 1e-3},
    "max_iter": {"max_iter": 77},
    "init": {"init": "random", "n_init": 1},
}


@pytest.mark.parametrize("name", OTHER_PARAMETERS)
def test_a_checkpoint_of_other_parameters_is_refused(tmp_path, rows, name):
    cut_short(model(tmp_path / "c"), rows)
    with pytest.raises(ValueError, match=r"belongs to another fit \(its parameters differs\)"):
        model(tmp_path / "c", **OTHER_PARAMETERS[name]).fit(rows)
    assert (tmp_path / "c").exists()


def changed_row(row):
    def change(X):
        X = X.copy()
        X[row] += 1e-9
        return X

    return change


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed_row(0), id="first row"),
        pytest.param(changed_row(-1), id="last row"),
        pytest.param(lambda X: X[:-1], id="fewer rows"),
        pytest.param(lambda X: X[:, ::-1], id="other columns"),
        pytest.param(lambda X: X.astype(np.float32), id="other precision"),
    ],
)
def test_a_checkpoint_of_other_data_is_refused(tmp_path, rows, change):
    with lemmata.config(block_rows=400):
        cut_short(model(tmp_path / "c"), rows)
        with pytest.raises(ValueError, match="belongs to another fit"):
            model(tmp_path / "c").fit(change(rows))
    assert (tmp_path / "c").exists()


@pytest.mark.parametrize("place", ["value", "column"])
def test_a_checkpoint_of_other_sparse_data_is_refused(tmp_path, place):
    X = sp.random_array((300, 20), density=0.1, format="csr", rng=np.random.default_rng(0))
    other = X.copy()
    if place == "value":
        other.data[5] += 1.0
    else:
        other = sp.csr_array(X.toarray()[:, ::-1])
        other.data = X.data
    cut_short(model(tmp_path / "c"), X, at=1)
    with pytest.raises(ValueError, match="belongs to another fit"):
        model(tmp_path / "c").fit(other)


def test_a_checkpoint_of_other_weights_is_refused(tmp_path, rows):
    cut_short(model(tmp_path / "c"), rows)
    with pytest.raises(ValueError, match=r"its data differs"):
        model(tmp_path / "c").fit(rows, sample_weight=np.linspace(1, 2, len(rows)))


def test_a_checkpoint_of_another_start_is_refused(tmp_path):
    X = np.random.default_rng(0).random((200, 500))
    init = X[:3].copy()
    other = init.copy()
    other[1, 250] = 0.0
    cut_short(model(tmp_path / "c", n_clusters=3, init=init), X, at=0)
    with pytest.raises(ValueError, match="belongs to another fit"):
        model(tmp_path / "c", n_clusters=3, init=other).fit(X)


def test_a_legacy_random_state_resumes(tmp_path, rows):
    first = model(tmp_path / "c", random_state=np.random.RandomState(0))
    cut_short(first, rows)
    again = model(tmp_path / "c", random_state=np.random.RandomState(0))
    assert fitted(again.fit(rows)) == fitted(model(random_state=np.random.RandomState(0)).fit(rows))


def test_a_damaged_checkpoint_stops_the_fit(tmp_path, rows):
    cut_short(model(tmp_path / "c"), rows)
    (tmp_path / "c").write_bytes((tmp_path / "c").read_bytes()[:-1])
    with pytest.raises(ModelFileError, match=r"c was not read: it is damaged"):
        model(tmp_path / "c").fit(rows)


# A process that is really killed.

FIT = """
    import time
    import numpy as np
    from helpers import Watcher
    from lemmata.cluster import KMeans

    folder, n_init, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    X = np.load(folder + "/x.npy")
    executed = []

    def report(iteration):
        executed.append(iteration)
        print(len(executed), flush=True)
        time.sleep(pause)

    model = KMeans(12, random_state=3, n_init=n_init, checkpoint=folder + "/c").set_callbacks(Watcher(report)).fit(X)
    np.savez(folder + "/fitted.npz", executed=len(executed), **{name: getattr(model, name) for name in sys.argv[4:]})
"""


@pytest.mark.parametrize("n_init", [1, 3])
def test_a_process_that_was_killed_resumes_with_the_same_bits(tmp_path, rows, n_init):
    np.save(tmp_path / "x.npy", rows)
    total = []
    expected = model(n_init=n_init).set_callbacks(Watcher(total.append)).fit(rows)
    runs = np.split(total, np.flatnonzero(np.array(total) == 0)[1:])
    assert len(runs) == n_init

    process = python(FIT, tmp_path, n_init, 0.02, *FITTED)
    if n_init == 1:
        until, file = 6, tmp_path / "c"
    else:
        until, file = len(runs[0]) + 4, tmp_path / "c.1"  # in the second run
    for line in process.stdout:
        if int(line) >= until:
            break
    assert file.exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert file.exists()
    assert not (tmp_path / "fitted.npz").exists()

    finished(python(FIT, tmp_path, n_init, 0.0, *FITTED))
    with np.load(tmp_path / "fitted.npz") as found:
        assert {name: bits(found[name]) for name in FITTED} == fitted(expected)
        least = 1 if n_init == 1 else len(runs[0]) + 1  # the first run is not done again, nor the first step of the second
        assert found["executed"] <= len(total) - least
    assert not list(tmp_path.glob("c*"))
