"""The same bits for any number of threads, from memory, from a stream, and on Dask; and through a saved file."""

import pickle

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import lemmata
from contracts.crash import Crash
from contracts.problems import (
    ESTIMATORS,
    NAMES,
    assert_same_bits,
    fitted,
    forget_names,
    needs_weights,
    predictions,
    problem,
)
from lemmata.core.estimator import gives_groups

estimators = pytest.mark.parametrize("cls", ESTIMATORS, ids=NAMES)
ROWS = 16  # so that 60 rows make four blocks, the last one shorter


@estimators
def test_thread_count_does_not_matter(cls):
    task = problem(cls, n=500)
    models = []
    for n_threads in (1, 2, 4):
        with lemmata.config(n_threads=n_threads, block_rows=ROWS):
            models.append(task.fit())
    assert_same_bits(models[0], models[1])
    assert_same_bits(models[0], models[2])


@estimators
def test_where_the_rows_live_does_not_matter(cls, tmp_path):
    task = problem(cls)
    columns = [f"x{j}" for j in range(task.X.shape[1])]
    table = pa.table({c: task.X[:, j] for j, c in enumerate(columns)} | ({} if task.y is None else {"y": task.y}))
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=23)

    def parts():
        for start in range(0, len(task.X), 7):
            X = task.X[start : start + 7]
            yield X if task.y is None else (X, task.y[start : start + 7])

    target = () if task.y is None else ("y",)
    with lemmata.config(block_rows=ROWS):
        memory = task.fit()
        parquet = clone(task.model).fit(tmp_path / "rows.parquet", *target)
        y = None if task.y is None else da.from_array(task.y, chunks=ROWS)
        dask = task.fit(da.from_array(task.X, chunks=(ROWS, 2)), y)
        certificate = parquet.certify(tmp_path / "rows.parquet", *target)
        predicted = predictions(parquet, tmp_path / "rows.parquet")
    assert list(parquet.feature_names_in_) == columns
    forget_names(parquet)
    assert_same_bits(parquet, memory)
    assert_same_bits(dask, memory)
    assert certificate.holds
    assert np.array_equal(predicted, predictions(memory, task.X))

    iterator = clone(task.model).fit(parts)
    with lemmata.config(block_rows=7):
        assert_same_bits(iterator, task.fit())


@estimators
def test_negative_weights_are_refused_in_a_stored_table_too(cls, tmp_path):
    task = problem(cls)
    needs_weights(task.model)
    table = {f"x{j}": task.X[:, j] for j in range(4)} | {"w": np.where(np.arange(60) == 50, -1.0, 1.0)}
    pq.write_table(pa.table(table | ({} if task.y is None else {"y": task.y})), tmp_path / "rows.parquet")
    target = {} if task.y is None else {"y": "y"}
    with pytest.raises(ValueError, match="Negative values in sample_weight"):
        clone(task.model).fit(tmp_path / "rows.parquet", **target, sample_weight="w")


@estimators
def test_a_stored_row_of_weight_zero_is_not_there_whatever_it_holds(cls, tmp_path):
    task = problem(cls)
    needs_weights(task.model)
    n, d = task.X.shape
    weight = np.where(np.arange(n) % 5 > 0, 1.0 + np.arange(n) % 3, 0.0)
    weight[ROWS : 2 * ROWS] = 0.0  # a whole block
    absent = weight == 0
    X, y = task.X.copy(), None if task.y is None else task.y.copy()
    for_all = gives_groups(task.model) or cls.__name__ == "Decide"  # these say something of every row, of weight zero too
    X[absent] = 77.0 if for_all else np.where(np.arange(d) % 2, np.nan, np.inf)
    if y is not None:
        y[absent] = 99
    columns = {f"x{j}": X[:, j] for j in range(d)} | {"w": weight} | ({} if y is None else {"y": y})
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet", row_group_size=23)
    target = {} if y is None else {"y": "y"}
    with lemmata.config(block_rows=ROWS):
        memory = task.fit(X, y, sample_weight=weight)
        parquet = clone(task.model).fit(tmp_path / "rows.parquet", **target, sample_weight="w")
        assert parquet.certify(tmp_path / "rows.parquet", **target, sample_weight="w").holds
    forget_names(parquet)
    assert_same_bits(parquet, memory)


@estimators
@pytest.mark.parametrize("how", ["save", "pickle"])
def test_a_stored_model_is_the_same_model(cls, how, tmp_path):
    task = problem(cls)
    model = task.fit()
    if how == "save":
        model.save(tmp_path / "model.lemmata")
        twin = lemmata.load(tmp_path / "model.lemmata")
    else:
        twin = pickle.loads(pickle.dumps(model))
    assert type(twin) is cls
    assert twin.get_params() == model.get_params()
    assert_same_bits(twin, model)
    assert np.array_equal(predictions(twin, task.X), predictions(model, task.X))
    assert task.certify(twin).holds
    assert not fitted(clone(twin))


@estimators
def test_fitting_twice_is_fitting_once(cls):
    task = problem(cls)
    model = task.fit()
    again = model.fit(task.X, task.y) if task.y is not None else model.fit(task.X)
    assert again is model
    assert_same_bits(model, task.fit())


@estimators
def test_an_interrupted_fit_keeps_the_best_state(cls, tmp_path):
    task = problem(cls, n=500)
    if "checkpoint" not in task.model.get_params():
        pytest.skip("does not iterate")

    class Interrupt:
        """A callback that presses Ctrl-C at the second iteration."""

        count = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            if context.task_name == "iteration":
                self.count += 1
                if self.count == 2:
                    raise KeyboardInterrupt

        def on_fit_task_end(self, estimator, context):
            return False

    path = tmp_path / "fit.checkpoint"
    model = clone(task.model).set_params(checkpoint=path).set_callbacks(Interrupt())
    with pytest.warns(UserWarning, match="was interrupted after 1 iterations"):
        model.fit(task.X) if task.y is None else model.fit(task.X, task.y)
    assert path.exists(), "a fit that Ctrl-C cut short can be taken up again"
    assert not model.converged_
    assert model.n_iter_ == 1
    assert np.isfinite(predictions(model, task.X).astype(float)).all()


@estimators
def test_a_checkpoint_resumes_with_the_same_bits(cls, tmp_path):
    task = problem(cls, n=500)
    if "checkpoint" not in task.model.get_params():
        pytest.skip("does not iterate")
    path = tmp_path / "fit.checkpoint"
    whole = task.fit()
    model = clone(task.model).set_params(checkpoint=path).set_callbacks(Crash())
    with pytest.raises(MemoryError):
        model.fit(task.X) if task.y is None else model.fit(task.X, task.y)
    assert path.exists()
    resumed = clone(task.model).set_params(checkpoint=path)
    resumed.fit(task.X) if task.y is None else resumed.fit(task.X, task.y)
    assert_same_bits(resumed, whole)
    assert resumed.n_iter_ == whole.n_iter_
    assert not path.exists(), "a checkpoint is removed once its fit is done"
