"""Model files: bit-equal round trips, atomic writes, and the refusal of everything damaged or hostile."""

import io
import json
import os
import pickle
import struct
import subprocess
import sys
import tracemalloc
import types
import zipfile
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression, Ridge

import lemmata
from lemmata.core import container, persistence
from lemmata.core.certificate import Check
from lemmata.core.persistence import ModelFileError, atomic_write, load, read_state, save, write_state
from lemmata.core.table_model import TableModel
from lemmata.linear_model import LinearRegression

# Stand-ins for estimators. Only classes of lemmata are trusted, so they move into a module of that name for these tests.
MODULE = types.ModuleType("lemmata._persistence_models")


def ours(cls):
    cls.__module__, cls.__qualname__ = MODULE.__name__, cls.__name__
    setattr(MODULE, cls.__name__, cls)
    return cls


@pytest.fixture(scope="module", autouse=True)
def _module():
    sys.modules[MODULE.__name__] = MODULE
    yield
    del sys.modules[MODULE.__name__]


@ours
class Model(BaseEstimator):
    def __init__(self, alpha=1.0, random_state=None):
        self.alpha = alpha
        self.random_state = random_state


@ours
class Run(NamedTuple):
    state: Any
    trace: Any


@ours
@dataclass(frozen=True)
class Record:
    value: Any


@ours
@dataclass(frozen=True, slots=True)
class SlottedRecord:
    value: Any


@ours
class Plain:
    """A class of lemmata that is neither an estimator nor a record."""


@ours
def function():
    raise AssertionError("a function of lemmata was called")


class Imported(BaseEstimator):
    """An estimator that a module of lemmata only imports."""


MODULE.Imported = Imported


class OutsideTuple(NamedTuple):
    value: int


def same(a, b):
    """Whether two values are equal to the bit, type by type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        if a.dtype == object:
            return a.shape == b.shape and all(map(same, a.ravel().tolist(), b.ravel().tolist()))
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if scipy.sparse.issparse(a):
        return a.shape == b.shape and all(same(getattr(a, n), getattr(b, n)) for n in ("data", "indices", "indptr"))
    if isinstance(a, np.random.Generator):
        return same(a.bit_generator.state, b.bit_generator.state) and same(
            a.bit_generator.seed_seq.state, b.bit_generator.seed_seq.state
        )
    if isinstance(a, np.random.RandomState):
        return same(a.get_state(legacy=False), b.get_state(legacy=False))
    if isinstance(a, dict):
        return list(a) == list(b) and all(map(same, a, b)) and all(map(same, a.values(), b.values()))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return struct.pack(">d", a) == struct.pack(">d", b)
    if isinstance(a, BaseEstimator | Record):
        return same(vars(a), vars(b))
    return a == b


ARRAYS = {
    "float64": np.array([[0.1, -0.0, np.nan], [np.inf, -np.inf, 5e-324]]),
    "float32": np.array([1 / 3, np.nan], dtype=np.float32),
    "float16": np.array([1 / 3], dtype=np.float16),
    "longdouble": np.array([1, 3], dtype=np.longdouble) / 3,
    "complex": np.array([1 + 2j, complex("nan")]),
    "int8": np.array([-128, 127], dtype=np.int8),
    "uint64": np.array([2**64 - 1], dtype=np.uint64),
    "big-endian": np.array([1, 2], dtype=">i4"),
    "bool": np.array([True, False]),
    "0-d": np.array(7.5),
    "empty": np.empty((0, 3), dtype=np.float32),
    "Fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "strided": np.arange(10)[::-2],
    "3-d": np.arange(24).reshape(2, 3, 4),
    "a NaN with a payload": np.array([0x7FF8DEADBEEF0001], dtype=np.uint64).view(np.float64),
}
PLAIN = {
    "None": None,
    "bool": True,
    "int": 2**200,
    "float": 0.1,
    "infinity": float("-inf"),
    "NaN": float("nan"),
    "str": "Zürich \ud800 \x00",
    "nested": {"a": [1, (2.5, None), {"b": []}], "": ()},
    "NumPy scalars": [np.float32(1 / 3), np.int64(-5), np.bool_(True), np.float64("nan")],
    "NamedTuple": Run(np.zeros(2), (1.0, Run(1, None))),
}
GENERATORS = ["PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"]
MODEL_ONLY = {
    "set": {1, 2},
    "int keys": {1: "a", np.int64(2): "b", 0.5: "c", "d": "d"},
    "dataclass": Record([Record(1)]),
    "slotted dataclass": SlottedRecord(1),
    "a dataclass of the library": Check("gap", 1e-9, 1e-6, "proof", "claim"),
    "strings": np.array(["a", "längere", ""]),
    "empty strings": np.array([""]),
    "object vector": np.array(["a", None, 3], dtype=object),
    "structured": np.array([(1, 2.5)], dtype=[("left", "i4"), ("value", "f8")]),
    "dates": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "dtype": np.dtype("float32"),
    "types": [np.float64, int, bool],
    "csr array": scipy.sparse.csr_array(np.array([[0.0, 1.5], [0.0, 0.0], [2.0, 3.0]])),
    "csr matrix": scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)),
    "empty csr": scipy.sparse.csr_array((0, 4)),
    "RandomState": np.random.RandomState(3),
    "estimator": Model(2.0, random_state=7),
    "path": Path("some/where/ü"),
}


@pytest.mark.parametrize("value", [pytest.param(v, id=k) for k, v in (ARRAYS | PLAIN | MODEL_ONLY).items()])
def test_model_round_trip_is_bit_equal(tmp_path, value):
    model = Model(alpha=value)
    model.fitted_ = [value]
    save(model, tmp_path / "m")
    assert same(load(tmp_path / "m"), model)


@pytest.mark.parametrize("value", [pytest.param(v, id=k) for k, v in (ARRAYS | PLAIN).items()])
def test_state_round_trip_is_bit_equal(tmp_path, value):
    write_state(tmp_path / "s", {"value": value, "again": (value, [value])})
    assert same(read_state(tmp_path / "s"), {"value": value, "again": (value, [value])})


@pytest.mark.parametrize("kind", GENERATORS)
def test_generators_continue_where_they_were(tmp_path, kind):
    rng = np.random.Generator(getattr(np.random, kind)(5))
    rng.integers(10, dtype=np.int32, size=3), rng.spawn(2), rng.random(7)
    save(Model(random_state=rng), tmp_path / "m")
    write_state(tmp_path / "s", [rng])
    expected = rng.integers(10, dtype=np.int32), rng.random(700).tolist(), rng.spawn(1)[0].random()
    for copy in (load(tmp_path / "m").random_state, read_state(tmp_path / "s")[0]):
        assert (copy.integers(10, dtype=np.int32), copy.random(700).tolist(), copy.spawn(1)[0].random()) == expected


@pytest.mark.parametrize("name", ["LinearRegression", "Ridge", "KMeans"])
def test_real_estimators_come_back_with_every_bit(tmp_path, name):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "ü"])
    model = dict(lemmata.all_estimators())[name]().fit(X, X["a"])
    model.set_output(transform="default") if hasattr(model, "set_output") else None
    model.save(tmp_path / "m")
    again = lemmata.load(tmp_path / "m")
    assert type(again) is type(model)
    assert same(vars(again), vars(model))
    assert same(again.predict(X), model.predict(X))


def test_a_table_model_comes_back_with_its_encoder(tmp_path):
    table = {"size": [40, 65, 80, 55], "city": ["Graz", "Linz", "Graz", "Linz"], "rent": [500, 730, 900, 630]}
    model = TableModel(LinearRegression(), target="rent").fit(table)
    save(model, tmp_path / "m")
    assert same(load(tmp_path / "m").predict(table), model.predict(table))


def test_arrays_that_come_back_can_be_written(tmp_path):
    write_state(tmp_path / "s", np.zeros(3))
    read_state(tmp_path / "s")[0] = 1


def test_what_was_shared_stays_shared(tmp_path):
    rng, array, inner = np.random.default_rng(0), np.zeros(3), Model(1.0)
    model = Model([inner, inner, array, rng], random_state=rng)
    model.array_ = array
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert again.alpha[0] is again.alpha[1]
    assert again.alpha[2] is again.array_
    assert again.alpha[3] is again.random_state


def test_the_same_model_gives_the_same_bytes(tmp_path, monkeypatch):
    for name, now in (("a", 10**9), ("b", 2 * 10**9)):
        monkeypatch.setattr(zipfile.time, "time", lambda now=now: now)
        model = Model({"x": np.arange(3.0)}, random_state=np.random.default_rng(0))
        model.sparse_ = scipy.sparse.csr_array(np.eye(2))
        save(model, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_user_may_trust_further_types(tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]
    name = "sklearn.linear_model._logistic.LogisticRegression"
    model = Model(LogisticRegression().fit(X, y))
    with pytest.raises(ModelFileError, match=r"Model\.alpha is sklearn\.linear_model.*trusted="):
        save(model, tmp_path / "m")
    save(model, tmp_path / "m", trusted=[name])
    with pytest.raises(ModelFileError, match=r"Model\.alpha is sklearn\.linear_model.*trusted="):
        load(tmp_path / "m")
    assert same(load(tmp_path / "m", trusted=[name]).alpha.predict(X), model.alpha.predict(X))


# What cannot be loaded is not saved ------------------------------------------------------------------------------------


def local_function():
    pass


UNSAVABLE = {
    "lambda": lambda x: x,
    "function": local_function,
    "function of lemmata": function,
    "builtin": len,
    "method": Model().get_params,
    "ufunc": np.exp,
    "foreign estimator": Ridge(),
    "plain class of lemmata": Plain(),
    "class": Model,
    "open file": io.StringIO(),
    "module": os,
    "bytes": b"x",
    "complex": 1j,
    "frozenset": frozenset([1]),
    "foreign NamedTuple": OutsideTuple(1),
    "masked array": np.ma.array([1]),
    "matrix": np.matrix([1]) if hasattr(np, "matrix") else len,
    "object matrix": np.array([["a", None]], dtype=object),
    "CSC": scipy.sparse.csc_array(np.eye(2)),
    "bool keys": {True: 1},
    "tuple keys": {(1, 2): 1},
    "keys that are the same as text": {1: "a", "1": "b"},
    "generator without a seed": np.random.Generator(np.random.RandomState(0)._bit_generator),
}


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("value", [pytest.param(v, id=k) for k, v in UNSAVABLE.items()])
def test_save_names_the_attribute_that_a_file_cannot_hold(tmp_path, value):
    model = Model(random_state=1)
    model.odd_ = {"part": value}
    with pytest.raises(ModelFileError, match=r"^Model was not saved: (Model\.odd_\.part|its attribute odd_) .*\.$"):
        save(model, tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_save_wants_an_estimator_of_lemmata(tmp_path):
    class Model(BaseEstimator):
        pass

    with pytest.raises(TypeError, match="estimators of lemmata, got dict"):
        save({}, tmp_path / "m")
    for model in (Ridge(), Model()):
        with pytest.raises(ModelFileError, match=r"may not hold; name its type in trusted="):
            save(model, tmp_path / "m")


def test_save_refuses_a_cycle(tmp_path):
    model = Model()
    model.self_ = model
    with pytest.raises(ModelFileError, match="its attribute self_ cannot be stored"):
        save(model, tmp_path / "m")


UNWRITABLE = {
    "function": local_function,
    "object array": np.array(["a"], dtype=object),
    "string array": np.array(["a"]),
    "structured array": np.zeros(1, dtype=[("a", "f8")]),
    "masked array": np.ma.array([1]),
    "int keys": {1: 2},
    "set": {1},
    "foreign NamedTuple": OutsideTuple(1),
    "estimator": Model(),
    "generator without a seed": np.random.Generator(np.random.RandomState(0)._bit_generator),
}


@pytest.mark.parametrize("value", [pytest.param(v, id=k) for k, v in UNWRITABLE.items()])
def test_write_state_names_the_part_that_a_file_cannot_hold(tmp_path, value):
    with pytest.raises(ModelFileError, match=r"^The state was not written: state\.step\[1\] .*\.$"):
        write_state(tmp_path / "s", {"step": (1, value)})
    assert list(tmp_path.iterdir()) == []


# Damage ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path):
    model = Model(np.random.default_rng(0).normal(size=(5, 4)), random_state=np.random.default_rng(1))
    model.names_ = ["a", "b"]
    save(model, tmp_path / "model")
    write_state(tmp_path / "state", {"centers": np.random.default_rng(0).normal(size=(5, 4)), "rng": np.random.default_rng(2)})
    return [(load, (tmp_path / "model").read_bytes()), (read_state, (tmp_path / "state").read_bytes())]


def damage(data, rng):
    """Harm a file in one of nine ways."""
    a, b = sorted(rng.integers(len(data), size=2))
    noise = rng.bytes(int(rng.integers(1, 50)))
    changed = bytearray(data)
    match rng.integers(9):
        case 0:  # cut at the end
            return data[:a]
        case 1:  # cut at the beginning
            return data[a + 1 :]
        case 2:  # one byte
            changed[a] ^= rng.integers(1, 256)
        case 3:  # one bit
            changed[a] ^= 1 << rng.integers(8)
        case 4:
            changed[a:a] = noise
        case 5:
            del changed[a : b + 1]
        case 6:
            changed[a : b + 1] = bytes(b + 1 - a)
        case 7:
            return rng.bytes(len(data)) if rng.random() < 0.5 else container.MAGIC + noise
        case 8:
            changed[:] = data[a:] + data[:a]
    return bytes(changed)


def test_a_thousand_damaged_files_are_a_thousand_refusals(tmp_path, files):
    rng, refused, path = np.random.default_rng(20260101), 0, tmp_path / "damaged"
    while refused < 1000:
        reader, data = files[refused % 2]
        harmed = damage(data, rng)
        if harmed == data:  # zeroed zeros
            continue
        path.write_bytes(harmed)
        with pytest.raises(ModelFileError) as info:
            reader(path)
        assert str(path) in str(info.value)
        refused += 1


def test_a_change_of_any_single_byte_is_refused(tmp_path, files):
    path = tmp_path / "damaged"
    for reader, data in files:
        for i in range(len(data)):
            path.write_bytes(data[:i] + bytes([data[i] ^ 0x20]) + data[i + 1 :])
            with pytest.raises(ModelFileError, match="damaged"):
                reader(path)


def test_damage_is_seen_before_the_payload_is_parsed(tmp_path, files, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("parsed")

    monkeypatch.setattr(persistence, "unpack", never)
    monkeypatch.setattr(persistence, "_decode", never)
    monkeypatch.setattr(container.json, "loads", never)
    for reader, data in files:
        (tmp_path / "damaged").write_bytes(data[:-1])
        with pytest.raises(ModelFileError, match="is damaged"):
            reader(tmp_path / "damaged")


def test_messages_say_what_to_do(tmp_path, files):
    path = tmp_path / "f"
    (_, model), (_, state) = files
    cases = [
        (load, b"", "no lemmata file.*check the path"),
        (load, b"PK\x03\x04 a zip file", "no lemmata file.*check the path"),
        (load, model + b"\n", "damaged.*use another copy"),
        (load, state, "holds a state, not a model; read it with read_state"),
        (read_state, model, "holds a model, not a state; read it with load"),
        (load, reheaded(model, format=2), "newer than ours; upgrade lemmata"),
        (load, reheaded(model, format=0), "contradicts"),
        (load, reheaded(model, payload=3), "contradicts"),
        (load, reheaded(model, **{"class": "lemmata.x.Y"}), "does not hold the lemmata.x.Y"),
    ]
    for reader, data, message in cases:
        path.write_bytes(data)
        with pytest.raises(ModelFileError, match=message) as info:
            reader(path)
        assert str(info.value).startswith(str(path))
        assert "\n" not in str(info.value)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent")


# Malice: files with a true digest --------------------------------------------------------------------------------------


@contextmanager
def little_memory(limit):
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def sealed(head, payload):
    body = struct.pack(">I", len(head)) + head + payload
    return container.MAGIC + sha256(body).digest() + body


def opened(data):
    (length,) = struct.unpack_from(">I", data, 40)
    return json.loads(data[44 : 44 + length]), data[44 + length :]


def reheaded(data, **changes):
    header, payload = opened(data)
    return sealed(json.dumps(header | changes).encode(), payload)


def resealed(data, payload):
    header, _ = opened(data)
    return sealed(json.dumps(header | {"payload": len(payload)}).encode(), payload)


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def raw_zip(entries):
    """A zip archive as its headers say, true or not: (name, method, packed bytes, size, checksum) each."""
    files, directory = b"", b""
    for name, method, packed, size, checksum in entries:
        fields = struct.pack("<5H3L2H", 20, 0, method, 0, 33, checksum, len(packed), size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<3H2L", 0, 0, 0, 0, len(files)) + name
        files += b"PK\3\4" + fields + name + packed
    end = struct.pack("<4H2LH", 0, 0, len(entries), len(entries), len(directory), len(files), 0)
    return files + directory + b"PK\5\6" + end


@pytest.fixture
def forge(tmp_path):
    """A model file in which the node of `alpha` is replaced and members are added, with a true digest."""

    def write(node, more=None, text=None, **root):
        save(Model(), tmp_path / "m")
        data = (tmp_path / "m").read_bytes()
        with zipfile.ZipFile(io.BytesIO(opened(data)[1])) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        schema = json.loads(members["schema.json"]) | root
        schema["content"]["content"]["alpha"] = node
        schema = json.dumps(schema)
        members |= {"schema.json": schema.replace('"@"', text) if text else schema} | (more or {})
        (tmp_path / "m").write_bytes(resealed(data, zipped(members)))
        return tmp_path / "m"

    return write


def node(loader, full_name, **fields):
    module, _, name = full_name.rpartition(".")
    return {"__loader__": loader, "__module__": module, "__class__": name, **fields}


def text(value, **fields):
    return node("JsonNode", "builtins.str", content=json.dumps(value), is_json=True, **fields)


def sequence(*items, kind="list", **fields):
    return node(f"{kind.title()}Node", f"builtins.{kind}", content=list(items), **fields)


def mapping(items, types=None):
    types = types or sequence(*(node("TypeNode", "builtins.str") for _ in items))
    return node("DictNode", "builtins.dict", content=items, key_types=types)


def array(file="9.npy", full_name="numpy.ndarray", **fields):
    return node("NdArrayNode", full_name, type="numpy", file=file, **fields)


def npy(header, content=b""):
    header = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def saved(value):
    buffer = io.BytesIO()
    np.save(buffer, value, allow_pickle=True)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def csr(indptr, indices, shape=(3, 3), format=b"csr", data=None):
    data = np.ones(len(indices)) if data is None else data
    return npz(
        indptr=np.array(indptr), indices=np.array(indices), shape=np.array(shape), data=data, format=format, _is_array=True
    )


def test_forged_files_load_when_they_are_harmless(forge):
    """The refusals below are not due to the forgery as such."""
    harmless = mapping({"a": sequence(text(1), array(__id__=5), array(__id__=5)), "b": text(None)})
    sparse = node("SparseMatrixNode", "scipy.sparse._csr.csr_array", type="scipy", file="8.npz")
    model = load(forge(sequence(harmless, sparse), {"9.npy": saved(np.arange(3)), "8.npz": csr([0, 1, 1, 2], [0, 2])}))
    assert model.alpha[0]["a"][2].tolist() == [0, 1, 2]
    assert model.alpha[1].toarray().sum() == 2


class Evil:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def code_runners(command, marker):
    """Every way we know to make skops, or a careless user of it, call something."""
    system = f"{os.name}.system"
    arguments = sequence(text(command), kind="tuple")
    called = node("FunctionNode", system)
    yield "function", called
    yield "ufunc", node("FunctionNode", "numpy.exp")
    yield "type", node("TypeNode", system)
    yield "eval as a type", node("TypeNode", "builtins.eval")
    yield "object", node("ObjectNode", system)
    yield "object with state", node("ObjectNode", system, content=mapping({"a": text(1)}))
    yield "Popen", node("ConstructorFromReduceNode", "subprocess.Popen", content=arguments)
    yield "constructor", node("ConstructorFromReduceNode", system, content=arguments)
    yield "frozenset", node("ConstructorFromReduceNode", "builtins.frozenset", content=sequence(kind="tuple"))
    yield "loss", node("LossNode", system, content=mapping({}), __reduce__={"args": arguments})
    yield "tree", node("TreeNode", system, content=mapping({}), __reduce__={"args": arguments})
    yield "reduce", node("ReduceNode", system, content=mapping({}), __reduce__={"args": arguments})
    empty = sequence(kind="tuple")
    parts = {"func": called, "args": arguments, "kwds": mapping({}), "namespace": text(None)}
    yield "partial", node("PartialNode", "functools.partial", content=parts)
    yield "list", node("ListNode", system, content=[text(command)])
    yield "set", node("SetNode", system, content=[text(command)])
    yield "tuple", node("TupleNode", system, content=[text(command)])
    yield "dict", node("DictNode", system, content={}, key_types=sequence())
    yield "map", node("ListNode", "builtins.map", content=[called, empty])
    yield "keys", mapping({command: text(1)}, sequence(node("TypeNode", system)))
    yield "keys of a function", mapping({command: text(1)}, sequence(called))
    yield "keys of a map", mapping({command: text(1)}, node("ListNode", "builtins.map", content=[called, empty]))
    yield "keys of an estimator", mapping({command: text(1)}, sequence(node("TypeNode", f"{MODULE.__name__}.Model")))
    yield "keys of a memory map", mapping({str(marker): text(1)}, sequence(node("TypeNode", "numpy.memmap")))
    yield (
        "default dict",
        node("DefaultDictNode", "collections.defaultdict", content={"main": mapping({}), "default_factory": called}),
    )
    yield "method", node("MethodNode", system, content={"func": "__call__", "obj": node("ObjectNode", system)})
    inner = node("ObjectNode", f"{MODULE.__name__}.Model", content=mapping({}))
    yield "method of ours", node("MethodNode", f"{MODULE.__name__}.Model", content={"func": "get_params", "obj": inner})
    yield "operator", node("OperatorFuncNode", "operator.methodcaller", attrs=arguments)
    yield "cached", node("CachedNode", "builtins.str", __id__=1)
    yield "array", array(full_name=system)
    yield "memory map", array(full_name="numpy.memmap")
    yield "void", array(full_name="numpy.void")
    yield "masked", node("MaskedArrayNode", "numpy.ma.MaskedArray", content={"data": array(), "mask": array()})
    yield "dtype", node("DTypeNode", system, content=array())
    yield "RandomState", node("RandomStateNode", system, content=mapping({}))
    yield "Generator", node("RandomGeneratorNode", system, content={"bit_generator": mapping({}), "seed_seq": mapping({})})
    yield "zone", node("ConstructorFromReduceNode", "zoneinfo.ZoneInfo", content=arguments)
    yield "unknown", node("NewNode", "builtins.str", content="1")
    yield "sparse", node("SparseMatrixNode", "scipy.sparse._bsr.bsr_array", type="scipy", file="9.npy")
    yield "scikit-learn", node("ObjectNode", "sklearn.linear_model._ridge.Ridge", content=mapping({}))
    yield "quantile forest", node("QuantileForestNode", system, content=mapping({}), __reduce__={"args": arguments})
    for name in ("function", "Plain", "Imported", "Model.fit", "__dict__"):
        yield f"lemmata {name}", node("ObjectNode", f"{MODULE.__name__}.{name}", content=mapping({}))
        yield f"lemmata type {name}", node("TypeNode", f"{MODULE.__name__}.{name}")
    yield "lemmata tuple", node("TupleNode", f"{MODULE.__name__}.Model", content=[text(1)])
    yield "lemmata import", node("ObjectNode", "lemmata.core.audit.ZipFile", content=mapping({}))
    yield "lemmata main", node("ObjectNode", "lemmata.__main__.Model")
    yield "lemmata look-alike", node("ObjectNode", "lemmatas.Model")
    yield "no module", node("ObjectNode", ".Model")


RUNNERS = [name for name, _ in code_runners("", "")]


@pytest.mark.parametrize("name", RUNNERS)
def test_no_code_of_a_file_runs(tmp_path, forge, name):
    marker = tmp_path / "it ran"
    hostile = dict(code_runners(f"touch '{marker}'", marker))[name]
    before = set(tmp_path.iterdir()) | {tmp_path / "m"}
    with pytest.raises(ModelFileError, match=r"^\S+ was not loaded: (Model\.alpha\S* is|its content is malformed)"):
        load(forge(hostile, {"9.npy": saved(np.zeros(1))}))
    with pytest.raises(ModelFileError):  # trust in a name is trust in a class, not in a call
        load(forge(hostile, {"9.npy": saved(np.zeros(1))}), trusted=[f"{os.name}.system", "functools.partial"])
    assert set(tmp_path.iterdir()) == before


def test_the_root_is_an_estimator_in_a_known_protocol(forge):
    for protocol in (0, 1, -1, True, "2", 2.5, None):  # skops would take older loaders, less strict ones among them
        with pytest.raises(ModelFileError, match=r"unknown protocol|malformed"):
            load(forge(text(1), protocol=protocol))
    path = forge(text(1), __class__="Record")
    path.write_bytes(reheaded(path.read_bytes(), **{"class": f"{MODULE.__name__}.Record"}))
    with pytest.raises(ModelFileError, match="Record, which is no estimator"):
        load(path)


def test_key_types_are_types(forge):
    for kind in (array(full_name="numpy.str_"), text("a"), node("TypeNode", "builtins.bool")):
        with pytest.raises(ModelFileError, match="neither strings nor numbers"):
            load(forge(mapping({"a": text(1)}, sequence(kind)), {"9.npy": saved(np.zeros(1))}))


def test_no_main_is_imported(forge, monkeypatch):
    """Even if it held an estimator: to import a __main__ is to run it."""
    main = types.ModuleType("lemmata.__main__")
    main.Model = type("Model", (BaseEstimator,), {"__module__": "lemmata.__main__"})
    monkeypatch.setitem(sys.modules, "lemmata.__main__", main)
    with pytest.raises(ModelFileError, match="may not hold"):
        load(forge(node("ObjectNode", "lemmata.__main__.Model", content=mapping({}))))


def test_an_alias_cannot_change_what_was_audited(tmp_path, forge):
    """As skops puts the first node with an id wherever the id occurs again, here an estimator where types are expected."""
    marker = tmp_path / "it ran"
    inner = node("ObjectNode", f"{MODULE.__name__}.Model", content=mapping({}), __id__=77)
    types = sequence(inner, __id__=78)
    for disguise in (
        [types, mapping({str(marker): text(1)}, sequence(node("TypeNode", "builtins.str"), __id__=78))],
        [text(str(marker), __id__=77), sequence(node("TypeNode", "builtins.str"), __id__=77)],
    ):
        model = load(forge(sequence(*disguise)))
        assert model.alpha[1] in ({str(marker): 1}, [str])
    with pytest.raises(ModelFileError, match="claims to be an object of another type"):
        load(forge(sequence(inner, array(__id__=77)), {"9.npy": saved(np.zeros(1))}))
    with pytest.raises(ModelFileError, match="RecursionError"):
        load(forge(inner | {"content": mapping({"a": inner})}))


BIG = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"
BAD_ARRAYS = {
    "objects": saved(np.array([Evil("touch it-ran")], dtype=object)),
    "pickle": pickle.dumps(Evil("touch it-ran")),
    "object field": npy("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
    "enormous": npy(BIG % 10**15, bytes(64)),
    "product overflows": npy(BIG % f"{2**62}, 4", bytes(64)),
    "negative": npy(BIG % "-2, -4", bytes(64)),
    "no bytes each": npy("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "void": npy("{'descr': '|V0', 'fortran_order': False, 'shape': (1000000000000,), }"),
    "too short": saved(np.zeros(9))[:-1],
    "too long": saved(np.zeros(9)) + b"\0",
    "code in the header": npy("__import__('os').system('touch it-ran')"),
    "nested header": npy("(" * 5000),
    "archive": npz(a=np.zeros(3)),
    "future version": b"\x93NUMPY\x09\x00" + saved(np.zeros(3))[8:],
    "nothing": b"",
}


@pytest.mark.parametrize("content", [pytest.param(v, id=k) for k, v in BAD_ARRAYS.items()])
def test_hostile_arrays_are_refused_before_they_are_allocated(tmp_path, forge, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    hostile = [array(), node("DTypeNode", "numpy.dtype", content=array()), array(full_name="numpy.float64")]
    for part in hostile:
        path = forge(part, {"9.npy": content})
        with little_memory(2**24), pytest.raises(ModelFileError, match="Python objects" if b"|O" in content else None):
            load(path)
    assert not (tmp_path / "it-ran").exists()


SPARSE = {
    "column too large": csr([0, 1, 1, 2], [0, 3]),
    "column negative": csr([0, 1, 1, 2], [0, -1]),
    "rows fall": csr([0, 2, 1, 2], [0, 1]),
    "rows fall to none": csr([0, 10**6, 10**6, 0], []),  # SciPy's own full check takes this one
    "rows end below none": csr([0, 0, 0, -5], []),
    "rows wrap around": csr([0, 2**63 - 1, -2, 0], []),
    "too few rows": csr([0, 1], [0]),
    "other format": npz(
        row=np.array([9]), col=np.array([9]), data=np.ones(1), shape=np.array([2, 2]), format=b"coo", _is_array=True
    ),
    "matrix under the name of array": npz(
        indptr=np.zeros(4, int), indices=np.zeros(0, int), shape=np.array([3, 3]), data=np.zeros(0), format=b"csr"
    ),
    "strings": csr([0, 1, 1, 1], [0], data=np.array(["a"])),
    "objects": zipped({"data.npy": saved(np.array([None]))}),
    "enormous": zipped({"data.npy": npy(BIG % 10**15)}),
    "no zip": b"zip",
}


@pytest.mark.parametrize("content", [pytest.param(v, id=k) for k, v in SPARSE.items()])
def test_sparse_indices_stay_within_the_array(forge, content):
    hostile = node("SparseMatrixNode", "scipy.sparse._csr.csr_array", type="scipy", file="9.npz")
    with pytest.raises(ModelFileError):
        load(forge(hostile, {"9.npz": content}))


@pytest.fixture
def parts(tmp_path):
    """The node and the members that save makes of a value."""

    def read(value):
        save(Model(value), tmp_path / "m")
        with zipfile.ZipFile(io.BytesIO(opened((tmp_path / "m").read_bytes())[1])) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        return json.loads(members.pop("schema.json"))["content"]["content"]["alpha"], members

    return read


@pytest.mark.parametrize("position", [-1, 625, 10**9, 1.5, "1", None, [1], float("nan")])
def test_positions_of_generators_stay_within_their_buffers(forge, parts, position):
    """NumPy takes them as they come, and then reads its buffer there."""
    twister, philox = np.random.Generator(np.random.MT19937(0)), np.random.Generator(np.random.Philox(0))
    for value, path in (
        (np.random.RandomState(0), ["content", "content", "state", "content", "pos"]),
        (twister, ["content", "bit_generator", "content", "state", "content", "pos"]),
        (philox, ["content", "bit_generator", "content", "buffer_pos"]),
        (twister, ["content", "seed_seq", "content", "pool_size"]),
    ):
        generator, members = parts(value)
        assert same(load(forge(generator, members)).alpha, value)
        inner = generator
        for key in path[:-1]:
            inner = inner[key]
        assert path[-1] in inner
        inner[path[-1]] = text(position)
        with pytest.raises(ModelFileError, match=r"state of a random generator is|no plain value"):
            load(forge(generator, members))


def test_the_name_of_a_bit_generator_is_not_called(forge, parts):
    generator, members = parts(np.random.default_rng(0))
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    for name in ("seed", "default_rng", "bit_generator", "BitGenerator", "__dict__"):
        generator["content"]["bit_generator"]["content"]["bit_generator"] = text(name)
        with pytest.raises(ModelFileError, match="unknown kind"):
            load(forge(generator, members))
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002


def test_a_file_is_used_once(forge):
    """Or a small file could ask for the same large array a million times."""
    with pytest.raises(ModelFileError, match="KeyError"):
        load(forge(sequence(array(__id__=5), array(__id__=6)), {"9.npy": saved(np.zeros(3))}))
    assert load(forge(text(1), {"9.npy": b"not even looked at"})).alpha == 1


@pytest.mark.parametrize("name", ["../9.npy", "/tmp/9.npy", "a/b.npy", "..\\9.npy", "9.npy\n", " ", "9"])
def test_names_in_the_archive_are_plain(tmp_path, forge, name):
    with pytest.raises(ModelFileError, match=r"unexpected entry|malformed"):
        load(forge(array(file=name), {name: saved(np.zeros(3))}))
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_in_the_archive_are_distinct(tmp_path, forge):
    data = forge(array(), {"9.npy": saved(np.zeros(3))}).read_bytes()
    buffer = io.BytesIO(opened(data)[1])
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("9.npy", saved(np.ones(3)))
    (tmp_path / "m").write_bytes(resealed(data, buffer.getvalue()))
    with pytest.raises(ModelFileError, match="unexpected entry"):
        load(tmp_path / "m")


def gigabytes_of_zeros(n):
    """A stream that unpacks to n GiB, at about 1 MB each."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = packer.compress(bytes(2**20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return block * (1024 * n) + packer.flush()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        pytest.param(lambda one: [(b"%d.npy" % i, 8, one, 2**30, 0) for i in range(11)], "max_bytes", id="honest"),
        pytest.param(lambda one: [(b"schema.json", 8, one, 2**30, 0)], "max_bytes", id="schema"),
        pytest.param(lambda one: [(b"schema.json", 8, one, 100, 0)], "malformed|lies", id="too small"),
        pytest.param(lambda one: [(b"schema.json", 8, one, 100, zlib.crc32(bytes(100)))], "malformed", id="true checksum"),
        pytest.param(lambda one: [(b"schema.json", 0, b"{}", 2**27, zlib.crc32(b"{}"))], "malformed|lies", id="too large"),
        pytest.param(
            lambda one: [(b"schema.json", 8, zlib.compress(b"{}", wbits=-15), 9, zlib.crc32(b"{}"))], "lies", id="short"
        ),
        pytest.param(lambda one: [(b"schema.json", 12, b"BZh91AY", 100, 0)], "unexpected way", id="bzip2"),
        pytest.param(lambda one: [(b"schema.json", 14, b"lzma", 100, 0)], "unexpected way", id="lzma"),
        pytest.param(lambda one: [(b"schema.json", 99, b"AES", 100, 0)], "unexpected way", id="unknown"),
    ],
)
def test_archives_that_unpack_to_too_much(tmp_path, forge, entries, message):
    data = forge(text(1)).read_bytes()
    (tmp_path / "m").write_bytes(resealed(data, raw_zip(entries(gigabytes_of_zeros(1)))))
    with little_memory(2**27), pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m")


def test_the_limit_holds_for_the_whole_file(tmp_path, forge):
    sparse = node("SparseMatrixNode", "scipy.sparse._csr.csr_array", type="scipy")
    packed = csr([0, 10**4, 10**4, 10**4], range(10**4), shape=(3, 10**4))  # 160 kB, a fifth of it as it is packed
    one = forge(sparse | {"file": "8.npz"}, {"8.npz": packed}).read_bytes()
    two = forge(sequence(*(sparse | {"file": f"{i}.npz"} for i in (8, 9))), {"8.npz": packed, "9.npz": packed}).read_bytes()
    (tmp_path / "m").write_bytes(one)
    assert load(tmp_path / "m", max_bytes=250_000).alpha.nnz == 10**4
    (tmp_path / "m").write_bytes(two)
    with pytest.raises(ModelFileError, match="unpacks to more than max_bytes"):
        load(tmp_path / "m", max_bytes=250_000)
    save(Model(np.zeros(10**5)), tmp_path / "m")
    with pytest.raises(ModelFileError, match="is larger than max_bytes"):
        load(tmp_path / "m", max_bytes=10**5)
    assert load(tmp_path / "m", max_bytes=10**6).alpha.shape == (10**5,)


@pytest.mark.parametrize("depth", [900, 100_000])
def test_deep_nesting_is_refused_and_not_a_crash(tmp_path, forge, depth):
    open_list, close = '{"__loader__": "ListNode", "__module__": "builtins", "__class__": "list", "content": [', "]}"
    data = forge(text(1)).read_bytes()
    deep = b"[" * depth + b"]" * depth
    files = {
        load: [
            forge("@", text=open_list * depth + close * depth).read_bytes(),
            forge(node("JsonNode", "builtins.str", content=deep.decode())).read_bytes(),
            sealed(deep, b""),
            resealed(data, zipped({"schema.json": deep})),
        ],
        read_state: [stated(deep), stated(b'["list",[' * depth + b"]]" * depth)],
    }
    for reader, contents in files.items():
        for content in contents:
            (tmp_path / "m").write_bytes(content)
            with pytest.raises(ModelFileError):
                reader(tmp_path / "m")


def stated(tree, arrays=b""):
    tree = tree if isinstance(tree, bytes) else json.dumps(tree).encode()
    payload = struct.pack(">Q", len(tree)) + tree + arrays
    header = {"format": 1, "kind": "state", "class": "x", "lemmata": "0", "payload": len(payload)}
    return sealed(json.dumps(header).encode(), payload)


PCG = ["dict", {"bit_generator": "PCG64", "state": ["dict", {"state": 1, "inc": 1}], "has_uint32": 0, "uinteger": 0}]
SEED = {"entropy": 1, "spawn_key": ["tuple", []], "pool_size": 4, "n_children_spawned": 0}
MT = {"bit_generator": "MT19937", "state": ["dict", {"key": ["array", "<u4", [624]], "pos": 625}]}
BAD_STATES = {
    "float": 0.5,
    "list without a tag": [1, 2],
    "unknown tag": ["object", "os", "system"],
    "mapping": {"a": 1},
    "function": ["named", os.name, "system", ["touch it-ran"]],
    "function of lemmata": ["named", MODULE.__name__, "function", []],
    "class of lemmata": ["named", MODULE.__name__, "Model", []],
    "too many fields": ["named", MODULE.__name__, "Run", [1, 2, 3]],
    "objects": ["array", "|O", [312]],
    "two numbers": ["array", "f4,f4", [312]],
    "strings": ["array", "<U1", [624]],
    "empty strings": ["array", "<U0", [10**12]],
    "enormous": ["array", "<f8", [10**15]],
    "product overflows": ["array", "<f8", [2**62, 4]],
    "negative": ["array", "<f8", [-1]],
    "negative twice": ["array", "<f8", [-1, -1]],
    "no shape": ["array", "<f8", ["a"]],
    "short float": ["float", "00"],
    "no digits": ["float", "zz"],
    "bytes left over": 1,
    "position": ["generator", ["dict", MT], ["dict", SEED]],
    "bit generator": ["generator", ["dict", {"bit_generator": "seed", "state": ["dict", {}]}], ["dict", SEED]],
    "pool": ["generator", PCG, ["dict", SEED | {"pool_size": 10**9}]],
    "seed": ["generator", PCG, ["dict", SEED | {"evil": 1}]],
    "generator of nothing": ["generator", None, None],
}


@pytest.mark.parametrize("tree", [pytest.param(v, id=k) for k, v in BAD_STATES.items()])
def test_hostile_states_are_refused(tmp_path, monkeypatch, tree):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s").write_bytes(stated(["tuple", [["generator", PCG, ["dict", SEED]], ["array", "<f8", [2]]]], bytes(16)))
    assert read_state(tmp_path / "s")[1].tolist() == [0, 0]
    (tmp_path / "s").write_bytes(stated(tree, bytes(4 * 624) if tree == 1 or '"array"' in json.dumps(tree) else b""))
    with pytest.raises(ModelFileError, match=r"^\S+ was not read: .*\.$"):
        read_state(tmp_path / "s")
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_random_changes_under_a_true_digest_raise_nothing_else(tmp_path):
    """The payload's own parsers meet what the digest would have caught: they refuse, or what they read is plain data."""
    model = Model({"a": [1, 2.5], "b": np.arange(3.0)}, random_state=np.random.default_rng(0))
    model.sparse_ = scipy.sparse.csr_array(np.eye(3))
    save(model, tmp_path / "m")
    write_state(tmp_path / "s", {"a": (1, 2.5), "b": np.arange(3.0), "r": np.random.default_rng(0), "n": Run(1, 2)})
    rng = np.random.default_rng(7)
    for reader, name in ((load, "m"), (read_state, "s")):
        data = (tmp_path / name).read_bytes()
        payload, refused = opened(data)[1], 0
        for _ in range(400):
            harmed = damage(payload, rng) if rng.random() < 0.5 else bytearray(payload)
            if isinstance(harmed, bytearray):  # a digit, letter or bracket for another
                harmed[int(rng.integers(len(harmed)))] = rng.choice(list(b'019e-"[]{},:aZ'))
            (tmp_path / "f").write_bytes(resealed(data, bytes(harmed)))
            try:
                reader(tmp_path / "f")
            except ModelFileError:
                refused += 1
        assert refused > 200


# Writing ---------------------------------------------------------------------------------------------------------------


def fail(*args, **kwargs):
    raise OSError("no space left on device")


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, error):
    def fail(*args):
        raise error("the writer was stopped")

    save(Model(1.0), tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(container.os, call, fail)
        for write in (lambda: save(Model(2.0), tmp_path / "m"), lambda: atomic_write(tmp_path / "m", b"new")):
            with pytest.raises(error, match="stopped"):
                write()
            assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == before
    assert load(tmp_path / "m").alpha == 1.0


def test_a_write_that_stops_halfway_leaves_the_old_file(tmp_path, monkeypatch):
    class Half(io.FileIO):
        def write(self, data):
            super().write(data[: len(data) // 2])
            raise OSError("no space left on device")

    atomic_write(tmp_path / "m", b"old")
    monkeypatch.setattr(container, "open", lambda path, mode: Half(path, "x"), raising=False)
    with pytest.raises(OSError, match="no space"):
        atomic_write(tmp_path / "m", b"new content")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == b"old"


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    atomic_write(tmp_path / "m", b"old")
    script = "import os, signal, sys; from lemmata.core import persistence as p; "
    script += "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL); p.atomic_write(sys.argv[1], b'new')"
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "m")], check=False)
    assert done.returncode == -9
    assert (tmp_path / "m").read_bytes() == b"old"


def test_content_and_then_its_folder_are_synced(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(
        container.os, "fsync", lambda handle: (calls.append(Path(f"/proc/self/fd/{handle}").resolve()), fsync(handle))
    )
    monkeypatch.setattr(container.os, "replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    atomic_write(tmp_path / "m", b"new")
    assert calls[0].parent == tmp_path.resolve()
    assert calls[1:] == ["replace", tmp_path.resolve()]


def test_links_and_permissions_survive(tmp_path):
    atomic_write(tmp_path / "m", b"old")
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o666 & ~_umask()
    (tmp_path / "m").chmod(0o640)
    (tmp_path / "link").symlink_to("m")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "m").read_bytes() == b"new"
    assert (tmp_path / "m").stat().st_mode & 0o777 == 0o640


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_failed_folder_sync_is_no_failure(tmp_path, monkeypatch):
    real = os.open
    monkeypatch.setattr(container.os, "open", lambda path, flags: fail() if Path(path).is_dir() else real(path, flags))
    atomic_write(tmp_path / "m", b"new")
    assert (tmp_path / "m").read_bytes() == b"new"


def test_states_do_not_wait_for_skops(tmp_path):
    script = "import sys; from lemmata.core.persistence import *; write_state(sys.argv[1], [1.5]); "
    script += "assert read_state(sys.argv[1]) == [1.5]; assert not {'skops', 'sklearn', 'scipy.sparse'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "s")], check=True)
