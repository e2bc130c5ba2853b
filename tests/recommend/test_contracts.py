"""What every estimator keeps, for one whose rows are pairs of ids: homes, threads, files, weights, certificates, errors."""

import pickle
from copy import deepcopy

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import lemmata
from lemmata.core.certificate import free
from lemmata.recommend import ProbabilisticMatrixFactorization, shards
from recommend.problems import SETTINGS, ratings

HISTORY = {"n_iter_", "trace_", "converged_"}
KINDS = {
    "default": {},
    "given noise": {"noise_variance": 0.2},
    "no biases": {"biases": False, "noise_variance": 0.5},
    "coordinate": {"solver": "coordinate", "noise_variance": 0.2},
    "by counts": {"scale_by_counts": True, "prior_precision": (0.1, 0.2), "noise_variance": 0.2},
    "implicit": {"implicit": True, "confidence": 2.0},
}
kinds = pytest.mark.parametrize("kind", KINDS)


def made(kind="default", **settings):
    return ProbabilisticMatrixFactorization(**{**SETTINGS, **KINDS[kind], **settings})


def table(kind="default", seed=0):
    X, y = ratings(seed)
    return X, np.exp(y / 2) if kind == "implicit" else y


def attributes(model):
    found = {k: v for k, v in vars(model).items() if k.endswith("_") and not k.startswith("_") and k not in HISTORY}
    for name, value in list(found.items()):
        if issparse(value):
            del found[name]
            found |= {f"{name}.{part}": getattr(value, part) for part in ("data", "indices", "indptr")}
    return found


def assert_same_bits(a, b):
    one, other = attributes(a), attributes(b)
    assert one.keys() == other.keys()
    for name, value in one.items():
        left, right = np.asarray(value), np.asarray(other[name])
        assert left.shape == right.shape, name
        assert left.dtype.kind != "f" or (left.dtype == right.dtype and left.tobytes() == right.tobytes()), name
        assert np.array_equal(left, right), name


@kinds
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(2))
def test_a_fit_is_a_certified_fit_and_sabotage_is_refused(kind, dtype, seed):
    X, y = table(kind, seed)
    y = y.astype(dtype)
    model = made(kind).fit(X, y)
    assert model.user_factors_.dtype == model.predict(X).dtype == dtype
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    rng = np.random.default_rng(7)
    names = []
    for name, value in attributes(model).items():
        array = np.asarray(value)
        if array.dtype.kind != "f" or not array.any():
            continue
        twin = deepcopy(model)
        changed = free(np.atleast_1d(array).astype(float), rng).reshape(array.shape).astype(array.dtype)
        if "." in name:
            twin.seen_.data = changed
        else:
            setattr(twin, name, changed if array.ndim else float(changed))
        names.append(name)
        assert not twin.certify(X, y).holds, f"1 % of {name} went unseen:\n{twin.certify(X, y)}"
    assert len(names) >= 3
    assert not model.certify(*table(kind, seed + 5)).holds


@kinds
def test_weights_mean_repetition_and_zero_means_absence(kind):
    X, y = table(kind)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    weighted = made(kind, tol=1e-10).fit(X, y, sample_weight=weight)
    times = weight.astype(int)
    repeated = made(kind, tol=1e-10).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    for name, value in attributes(repeated).items():
        np.testing.assert_allclose(attributes(weighted)[name], value, rtol=1e-6, atol=1e-7, err_msg=name)  # from 1e-10 of rest
    assert weighted.certify(X, y, sample_weight=weight).holds
    assert not weighted.certify(X, y, sample_weight=weight[::-1] + 1).holds
    present = made(kind).fit(X, y, sample_weight=np.ones(len(y)))
    more = np.append(X, [[99, 99]], axis=0), np.append(y, 7.0)
    assert_same_bits(made(kind).fit(*more, sample_weight=np.append(np.ones(len(y)), 0.0)), present)


@kinds
def test_threads_and_shards_do_not_matter(kind, monkeypatch):
    X, y = table(kind)
    expected = made(kind).fit(X, y)
    monkeypatch.setattr(shards, "SHARD", 200)
    for n_threads in (1, 2, 4):
        with lemmata.config(n_threads=n_threads):
            assert_same_bits(made(kind).fit(X, y), expected)


@pytest.mark.parametrize("ids", ["numbers", "text"])
@pytest.mark.parametrize("kind", ["default", "implicit"])
def test_where_the_ratings_live_does_not_matter(kind, ids, tmp_path):
    X, y = table(kind)
    users, items = X.T if ids == "numbers" else [[f"{name} {v}" for v in c] for name, c in zip("ui", X.T, strict=True)]
    weight = 1.0 + np.arange(len(y)) % 3
    weight[5] = 0.0
    frame = pd.DataFrame({"item": items, "user": users, "rating": y, "w": weight})
    expected = made(kind).fit(frame[["user", "item"]], y, sample_weight=weight)
    assert_same_bits(made(kind).fit(frame, sample_weight="w"), expected)
    assert_same_bits(made(kind).fit(pl.from_pandas(frame), sample_weight="w"), expected)
    assert_same_bits(made(kind).fit(pa.Table.from_pandas(frame), sample_weight="w"), expected)
    assert_same_bits(made(kind).fit(list(zip(users, items, y.tolist(), strict=True)), sample_weight=weight), expected)
    renamed = frame.rename(columns={"user": "who", "item": "what", "rating": "stars"})
    other = made(kind, columns=("who", "what", "stars")).fit(renamed, sample_weight="w")
    assert_same_bits(other, expected)
    half = len(frame) // 2
    for name, part in (("a", frame[:half]), ("b", frame[half:])):
        pq.write_table(pa.Table.from_pandas(part), tmp_path / f"{name}.parquet", row_group_size=50)
    assert_same_bits(made(kind).fit(tmp_path, sample_weight="w"), expected)
    assert expected.certify(tmp_path, sample_weight="w").holds
    assert len(expected.predict(tmp_path)) == len(y)
    for partitions in (1, 4):
        spread = dd.from_pandas(frame, npartitions=partitions, sort=False)
        assert_same_bits(made(kind).fit(spread, sample_weight="w"), expected)
    assert expected.certify(spread, sample_weight="w").holds


def test_dask_arrays_of_pairs():
    X, y = table()
    spread = made().fit(da.from_array(X, chunks=(100, 2)), da.from_array(y, chunks=100))
    assert_same_bits(spread, made().fit(X, y))


def test_order_of_rows_and_layouts_do_not_matter():
    X, y = table()
    expected = made().fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    assert_same_bits(made().fit(X[order], y[order]), expected)
    assert_same_bits(made().fit(np.asfortranarray(X), y), expected)
    assert_same_bits(made().fit(np.column_stack([X, y])), expected)
    assert_same_bits(made().fit(X.astype(float), y), expected)


def test_a_pair_that_comes_twice_was_rated_twice():
    X, y = table()
    twice = made(tol=1e-10).fit(np.vstack([X, X[:30]]), np.append(y, y[:30]))
    weight = np.where(np.arange(len(y)) < 30, 2.0, 1.0)
    once = made(tol=1e-10).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(twice.predict(X), once.predict(X), rtol=1e-7)
    again = made().fit(np.vstack([X, X[:30]]), np.append(y, y[:30] + 1))
    assert again.certify(np.vstack([X, X[:30]]), np.append(y, y[:30] + 1)).holds


@pytest.mark.parametrize("how", ["save", "pickle"])
def test_a_stored_model_is_the_same_model(how, tmp_path):
    X, y = table()
    model = made().fit(X, y)
    if how == "save":
        model.save(tmp_path / "model.lemmata")
        twin = lemmata.load(tmp_path / "model.lemmata")
    else:
        twin = pickle.loads(pickle.dumps(model))
    assert twin.get_params() == model.get_params()
    assert_same_bits(twin, model)
    assert np.array_equal(twin.predict(X), model.predict(X))
    assert twin.certify(X, y).holds
    assert twin.recommend(3)[0].tolist() == model.recommend(3)[0].tolist()
    assert not attributes(clone(twin))


def test_fitting_twice_is_fitting_once_and_certifying_changes_nothing():
    X, y = table()
    model = made().fit(X, y)
    before = deepcopy(vars(model))
    first = model.certify(X, y).to_dict()
    assert vars(model).keys() == before.keys()
    model.n_iter_ = model.trace_ = model.converged_ = None
    assert model.certify(X, y).to_dict() == first
    assert_same_bits(model.fit(X, y), made().fit(X, y))


class Stop:
    """A callback that raises at an iteration: Ctrl-C when it begins, a failure when it ends."""

    def __init__(self, error):
        self.error, self.count = error, 0

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "iteration":
            self.count += 1
            if self.count == 5 and self.error is KeyboardInterrupt:
                raise self.error

    def on_fit_task_end(self, estimator, context):
        if context.task_name == "iteration" and self.count == 5:
            raise self.error
        return False


@kinds
def test_ctrl_c_keeps_what_there_is_and_a_checkpoint_resumes(kind, tmp_path):
    X, y = table(kind)
    path = tmp_path / "fit.checkpoint"
    model = made(kind, checkpoint=path).set_callbacks(Stop(KeyboardInterrupt))
    with pytest.warns(UserWarning, match="was interrupted after 4 iterations"):
        model.fit(X, y)
    assert path.exists()
    assert model.n_iter_ == 4
    assert np.isfinite(model.predict(X)).all()
    path.unlink()
    with pytest.raises(MemoryError):
        made(kind, checkpoint=path).set_callbacks(Stop(MemoryError)).fit(X, y)
    whole = made(kind).fit(X, y)
    resumed = made(kind, checkpoint=path).fit(X, y)
    assert_same_bits(resumed, whole)
    assert resumed.n_iter_ == whole.n_iter_
    assert not path.exists()


@pytest.mark.parametrize("settings", [{}, {"noise_variance": 0.2}, {"implicit": True}, {"prior_precision": 1e4}])
def test_edges(settings):
    for X, y in (
        ([(0, 0)], [3.0]),
        ([(0, 0), (0, 1)], [2.0, 2.0]),
        ([(0, 0), (0, 0), (1, 0)], [1.0, 5.0, 3.0]),
        ([(u, i) for u in range(4) for i in range(3)], np.full(12, 4.0)),
    ):
        model = ProbabilisticMatrixFactorization(random_state=0, **settings).fit(X, y)
        assert np.isfinite(model.predict(X)).all()
        assert model.certify(X, y).holds, str(model.certify(X, y))


def test_nonsense_is_refused_in_one_sentence():
    X, y = table()
    spoiled = y.copy()
    spoiled[3] = np.nan
    half = X.astype(float)
    half[2, 0] = 0.5
    for match, rows, values in (
        ("NaN in row 3", X, spoiled),
        ("infinity", X, np.where(np.isnan(spoiled), np.inf, spoiled)),
        ("no whole number", half, y),
        ("inconsistent", X, y[:-1]),
        ("requires y", X, None),
        ("1D array", X[:, 0], y),
        ("no rows", X[:0], y[:0]),
        ("4 columns", np.hstack([X, X]), y),
        ("leave y out", csr_array((3, 3)), y),
        ("no rows", csr_array((3, 3)), None),
        ("There are no columns", pd.DataFrame({"a": [1], "b": [2], "c": [3.0], "d": [4.0]}), None),
        ("all whole numbers or all text", [("a", 1), (2, 1)], [1.0, 2.0]),
    ):
        with pytest.raises(ValueError, match=match) as error:
            made().fit(rows, values)
        assert len(str(error.value).split("\n")[0]) < 250
    for match, settings in (
        ("prior_precision", {"prior_precision": -1.0}),
        ("prior_precision", {"prior_precision": (1.0, 2.0, 3.0)}),
        ("noise_variance", {"noise_variance": 0.0}),
        ("n_components", {"n_components": 0}),
        ("scale_by_counts", {"implicit": True, "scale_by_counts": True}),
        ("columns", {"columns": ("user", "item")}),
    ):
        with pytest.raises(ValueError, match=match):
            made(**settings).fit(X, y)
    for weight, match in ((-np.ones(len(y)), "Negative"), (np.zeros(len(y)), "Every sample weight"), (np.ones(3), "weight")):
        with pytest.raises(ValueError, match=match):
            made().fit(X, y, sample_weight=weight)
    with pytest.raises(NotFittedError):
        made().predict(X)
    with pytest.raises(NotFittedError):
        made().certify(X, y)


def test_every_public_parameter_and_attribute_is_documented():
    text = ProbabilisticMatrixFactorization.__doc__
    model = made().fit(*table())
    for name in model.get_params():
        assert f"{name} :" in text, name
    for name in vars(model):
        if name.endswith("_"):
            assert name in text, name
