"""Blocks on Dask: two worker processes and the threaded scheduler give the bits of the array, whoever dies meanwhile."""

import os
import signal

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster

import lemmata
from helpers import Watcher, bits, count_block, failing_block, moments_block, rough, rows_of, verbs, workers_block
from lemmata.cluster import KMeans
from lemmata.core.blocks import Blocks
from lemmata.linear_model import LinearRegression, Ridge

ROWS, CUT = 503, 100  # six partitions, the last of three rows: Dask takes milliseconds for every task
NAMES = ["a", "b", "c"]


def inertia(model):
    return model.cluster_centers_, np.asarray(model.labels_), model.inertia_, model.trace_, model.n_iter_


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",  # any free port: test processes run side by side
        worker_dashboard_address=None,
        scheduler_port=0,
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture(params=["threads", "processes"])
def anywhere(request):
    """Run a test on the threaded scheduler without a client, and on a cluster."""
    if request.param == "processes":
        request.getfixturevalue("client")


@pytest.fixture(scope="module")
def table():
    return rough(0, ROWS, 3), rough(1, ROWS), np.random.default_rng(2).random(ROWS)


def on_dask(*arrays, rows=CUT):
    return [da.from_array(a, chunks=(rows, *a.shape[1:])) for a in arrays]


def frame(table, rows=CUT):
    X, y, weight = table
    whole = pd.DataFrame({"a": X[:, 0], "y": y, "b": X[:, 1], "c": X[:, 2], "w": weight})
    return dd.from_pandas(whole, npartitions=1).repartition(divisions=[*range(0, ROWS - 1, rows), ROWS - 1])


# The bits of the array.


@pytest.mark.usefixtures("anywhere")
def test_arrays_give_the_bits_of_the_array(table):
    blocks = Blocks.of(*on_dask(*table))
    assert blocks.home == "dask"
    assert verbs(blocks, 3) == verbs(Blocks.of(*table, block_rows=CUT), 3)


@pytest.mark.usefixtures("anywhere")
def test_frames_give_the_bits_of_the_array(table):
    stored = frame(table)
    lengths = stored.map_partitions(len).compute().tolist()
    assert set(lengths[:-1]) == {CUT}
    blocks = Blocks.of(stored, "y", "w")
    assert blocks.columns == NAMES
    assert verbs(blocks, 3) == verbs(Blocks.of(*table, block_rows=CUT), 3)


def test_chunks_of_unknown_length(table):
    stored = frame(table)
    X, y, weight = stored[NAMES].to_dask_array(), stored["y"].to_dask_array(), stored["w"].to_dask_array()
    assert np.isnan(X.shape[0])
    assert verbs(Blocks.of(X, y, weight), 3) == verbs(Blocks.of(*table, block_rows=CUT), 3)


def test_aligned_arrays_may_be_in_memory_or_absent(table):
    X, y, weight = table
    blocks = Blocks.of(on_dask(X)[0], y, None)
    reference = Blocks.of(X, y, None, block_rows=CUT)
    rows = np.array([0, 99, 100, 400, 502])
    assert bits(blocks.take(rows)) == bits(reference.take(rows))
    blocks = Blocks.of(frame(table)[NAMES], y, weight)
    assert bits(blocks.reduce(moments_block, np.ones(3))) == bits(
        Blocks.of(*table, block_rows=CUT).reduce(moments_block, np.ones(3))
    )


def test_partitions_of_any_length_follow_the_same_tree(table):
    X = table[0]
    cuts = (3, 1, 200, 99, 200)
    parts = [x.sum(axis=0) for x in np.split(X, np.cumsum(cuts)[:-1])]
    found = Blocks.of(da.from_array(X, chunks=(cuts, 3))).reduce(lambda X: X.sum(axis=0))
    assert bits(found) == bits(((parts[0] + parts[1]) + (parts[2] + parts[3])) + parts[4])
    assert bits(found) != bits(parts[0] + parts[1] + parts[2] + parts[3] + parts[4])  # the order shows in these data


def test_arrays_cut_along_their_columns_and_empty_partitions(table):
    X = table[0]
    blocks = Blocks.of(da.from_array(X, chunks=(CUT, 2)))
    assert bits(blocks.map(rows_of).compute()) == bits(X)
    stored = frame((X, np.arange(ROWS), table[2]))
    stored = stored[stored["y"] >= 250]  # two partitions become empty, a third shorter
    blocks = Blocks.of(stored, columns=NAMES)
    assert (blocks.n_rows, blocks.n_blocks) == (ROWS - 250, 4)
    assert bits(np.asarray(blocks.map(rows_of))) == bits(X[250:])


def test_kinds_of_columns(table):
    X = table[0]
    numbered = dd.from_pandas(pd.DataFrame(X), npartitions=3)
    blocks = Blocks.of(numbered, columns=["2", "0"])
    assert bits(np.asarray(blocks.map(rows_of))) == bits(X[:, [2, 0]].copy())
    missing = pd.DataFrame({"i": pd.array([1, None], dtype="Int64"), "b": [True, False]})
    np.testing.assert_array_equal(Blocks.of(dd.from_pandas(missing, npartitions=1)).first()[0], [[1, 1], [np.nan, 0]])
    single = Blocks.of(on_dask(X.astype(np.float32))[0])
    assert single.dtype == single.first()[0].dtype == np.float32


def test_sparse_partitions():
    X = np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float)
    stored = da.from_array(X, chunks=(7, 3)).map_blocks(sp.csr_matrix, dtype=float, meta=sp.csr_matrix((0, 3)))
    blocks = Blocks.of(stored)
    assert blocks.first()[0].format == "csr"
    assert bits(blocks.take(np.arange(0, 40, 5))[0].toarray()) == bits(X[::5])


def test_results_of_map_stay_on_dask(table):
    result = Blocks.of(*on_dask(*table)).map(lambda X, y, w: X[:, :2])
    assert isinstance(result, da.Array)
    assert result.chunks == ((CUT,) * 5 + (3,), (2,))


def test_both_processes_work(client):
    pids = Blocks.of(da.zeros((100, 1), chunks=(10, 1))).map(workers_block).compute()
    assert set(pids) == set(client.run(os.getpid).values())
    assert os.getpid() not in pids


@pytest.mark.usefixtures("anywhere")
def test_a_state_that_is_changed_in_place_counts_once(table):
    """Dask may run a task again, on a state that the first run has already changed."""
    X, y, weight = on_dask(*table)
    blocks = Blocks.of(X, y, weight)
    first, before = blocks.sweep(count_block, None)
    for _ in range(3):  # three times from the same state
        again, _ = blocks.sweep(count_block, before)
        assert (first, again) == (6, 12)


# Estimators.


@pytest.mark.usefixtures("anywhere")
@pytest.mark.parametrize("model", [LinearRegression(), Ridge(3.0)], ids=repr)
def test_linear_models_give_the_bits_of_the_array(table, model):
    X, y, weight = np.cbrt(table[0]), np.cbrt(table[1]), table[2]
    with lemmata.config(block_rows=CUT):
        expected = type(model)(**model.get_params()).fit(X, y, weight)
        predicted = expected.predict(X)
    found = model.fit(*on_dask(X, y, weight))
    assert bits((found.coef_, found.intercept_)) == bits((expected.coef_, expected.intercept_))
    assert bits(np.asarray(found.predict(on_dask(X)[0]))) == bits(predicted)
    found = model.fit(frame((X, y, weight)), "y", "w")
    assert bits((found.coef_, found.intercept_)) == bits((expected.coef_, expected.intercept_))
    assert found.feature_names_in_.tolist() == NAMES
    assert found.certify(frame((X, y, weight)), "y", "w").holds


@pytest.mark.usefixtures("anywhere")
def test_kmeans_gives_the_bits_of_the_array(table):
    X, weight = np.random.default_rng(3).random((ROWS, 2)), table[2]
    with lemmata.config(block_rows=CUT):
        expected = KMeans(5, random_state=0).fit(X, sample_weight=weight)
    found = KMeans(5, random_state=0).fit(*on_dask(X), sample_weight=weight)
    assert bits(inertia(found)) == bits(inertia(expected))
    assert expected.n_iter_ > 5
    assert found.certify(*on_dask(X), sample_weight=weight).holds


def test_an_error_in_a_worker_reaches_the_caller(client):
    blocks = Blocks.of(da.ones((40, 2), chunks=(10, 2)))
    with pytest.raises(ZeroDivisionError, match="in the kernel"):
        blocks.reduce(failing_block)
    assert blocks.reduce(lambda X: X.sum()) == 80


# Refusals.


def test_unknown_columns(table):
    with pytest.raises(ValueError, match="no column 'price'; the frame has a, y, b, c, w"):
        Blocks.of(frame(table), "price")
    with pytest.raises(ValueError, match="no column 'price'; the frame has"):
        Blocks.of(frame(table), columns=["a", "price"])
    with pytest.raises(ValueError, match="A Dask array has no column names"):
        Blocks.of(on_dask(table[0])[0], "y")


def test_a_column_of_text_is_named():
    stored = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "town": ["x", "y"]}), npartitions=1)
    with pytest.raises(ValueError, match=r"Column 'town' holds .*, not numbers"):
        Blocks.of(stored).reduce(lambda X: X.sum())
    assert Blocks.of(stored, columns=["a"]).reduce(lambda X: X.sum()) == 3


def test_partitions_must_fit_together(table):
    X, y, _ = table
    with pytest.raises(ValueError, match="X has 6 partitions and y or the weights 2; repartition alike"):
        Blocks.of(on_dask(X)[0], da.from_array(y, chunks=300))
    with pytest.raises(ValueError, match="Found 503 rows and 502 aligned values"):
        Blocks.of(on_dask(X)[0], y[1:])
    uneven = da.from_array(y, chunks=((101, 99, 100, 100, 100, 3),))
    with pytest.raises(ValueError, match=r"Found 100 rows and (99|101) aligned values"):
        Blocks.of(on_dask(X)[0], uneven).reduce(lambda X, y: X.sum())


def test_no_rows_and_wrong_axes():
    with pytest.raises(ValueError, match="Found no rows"):
        Blocks.of(da.zeros((0, 2)))
    with pytest.raises(ValueError, match="rows and columns, got a Dask array with 1 axes"):
        Blocks.of(da.zeros(5))


@pytest.mark.parametrize(("bad", "kind"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_bad_number_is_refused_by_the_number_of_its_row(table, bad, kind):
    X, y = np.cbrt(table[0]), np.cbrt(table[1])
    X[250, 1] = y[333] = bad
    with pytest.raises(ValueError, match=f"Input X contains {kind} in row 250"):
        LinearRegression().fit(*on_dask(X, np.ones(ROWS)))
    with pytest.raises(ValueError, match=f"y or sample_weight contains {kind} in row 333"):
        LinearRegression().fit(*on_dask(np.ones((ROWS, 2)), y))


def test_rows_of_weight_zero_are_not_there_whatever_they_hold(table):
    X, y, weight = np.cbrt(table[0]), np.cbrt(table[1]), np.where(np.arange(ROWS) % 3 > 0, table[2], 0.0)
    weight[CUT : 2 * CUT] = 0.0  # a partition is empty
    there = weight > 0
    wild, cuts = np.where(there[:, None], X, np.inf), [int(part.sum()) for part in np.split(there, range(CUT, ROWS, CUT))]
    few = [da.from_array(a[there], chunks=(tuple(n for n in cuts if n), *a.shape[1:])) for a in (X, y, weight)]
    fits = [LinearRegression().fit(*rows[:2], sample_weight=rows[2]) for rows in (on_dask(wild, y, weight), few)]
    assert bits(fits[0].coef_) == bits(fits[1].coef_)
    in_memory = LinearRegression().fit(on_dask(wild)[0], y, sample_weight=weight)
    assert bits(in_memory.coef_) == bits(fits[0].coef_)
    wild[there.argmax()] = np.inf
    with pytest.raises(ValueError, match=f"infinity in row {there.argmax()};"):
        LinearRegression().fit(*on_dask(wild, y), sample_weight=on_dask(weight)[0])
    with pytest.raises(ValueError, match="Every sample weight is zero"):
        LinearRegression().fit(*on_dask(X, y), sample_weight=np.zeros(ROWS))


# Last, because it leaves a cluster that is one worker short for a while.


@pytest.mark.filterwarnings("ignore")  # distributed reports the dead worker in several ways, none of them ours
def test_a_killed_worker_changes_no_bit(client):
    X = np.random.default_rng(0).random((ROWS, 2))
    with lemmata.config(block_rows=CUT):
        expected = KMeans(9, random_state=3).fit(X)
    assert expected.n_iter_ > 8
    before, killed = client.run(os.getpid), []

    def kill(iteration):
        if iteration == 3:
            held = {address: len(keys) for address, keys in client.has_what().items()}
            most = max(held, key=held.get)  # the worker with the most to lose; its nanny starts another
            assert held[most] > 0
            killed.append(before[most])
            os.kill(before[most], signal.SIGKILL)

    found = KMeans(9, random_state=3).set_callbacks(Watcher(kill)).fit(*on_dask(X))
    assert bits(inertia(found)) == bits(inertia(expected))
    assert len(killed) == 1
    assert killed[0] not in client.run(os.getpid).values()
