"""Model files: written whole or not at all, read back bit for bit, and no code of the file ever runs.

Payloads are data only: a model is a skops archive (JSON and .npy files, no pickle), a state of an iterative fit is JSON
followed by the bytes of its arrays. `container` finds damage, `audit` malice. `save` runs the same audit as `load`, so that
what cannot be loaded cannot be saved.
"""

import io
import json
import math
import os
import struct
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from lemmata.core.audit import BIT_GENERATORS, NUMBERS, Audit, check_random, is_named_tuple, our_class, unpack
from lemmata.core.container import ModelFileError, Refusal, atomic_write, read_container, refusing, write_container

__all__ = ["save", "load", "atomic_write", "write_state", "read_state", "ModelFileError"]

MAX_BYTES = 4 * 2**30  # more than most models, less than most memories


def save(model: Any, path: str | os.PathLike[str], *, trusted: Collection[str] = ()) -> None:
    """Write an estimator of lemmata to one file, atomically.

    Parameters
    ----------
    model : Estimator, fitted or not. Its attributes may hold numbers, strings, lists, tuples, dicts, sets, NumPy arrays and
        random generators, CSR arrays, and estimators, dataclasses and NamedTuples of lemmata.
    trusted : Further types that it may hold, by full name; `load` must be given them too.

    Raises
    ------
    ModelFileError : The model holds something else, such as a function; the message says in which attribute.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from lemmata.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, Path(folder) / "line.lemmata")
    ...     load(Path(folder) / "line.lemmata").coef_
    array([2.])
    """
    import skops.io  # seconds to import, hence not at the top
    from sklearn.base import BaseEstimator

    if not isinstance(model, BaseEstimator):
        raise TypeError(f"save writes estimators of lemmata, got {type(model).__name__}; write_state writes other data.")
    name = f"{type(model).__module__}.{type(model).__name__}"
    with refusing(f"{type(model).__name__} was not saved"):
        try:
            payload = skops.io.dumps(model)
        except Exception as error:
            raise Refusal(f"{_culprit(model)} cannot be stored ({type(error).__name__}); make it plain data") from error
        payload = Audit(unpack(payload, sys.maxsize), trusted, sys.maxsize).copy(name)
    write_container(path, "model", name, payload)


def load(path: str | os.PathLike[str], *, trusted: Collection[str] = (), max_bytes: int = MAX_BYTES) -> Any:
    """Read an estimator that `save` wrote; any other file is a ModelFileError.

    Parameters
    ----------
    trusted : Types beyond NumPy's and lemmata's that the file may hold, by full name, such as
        "sklearn.linear_model._logistic.LogisticRegression". Name only what you would import and run.
    max_bytes : Most bytes that the file may unpack to.
    """
    import skops.io
    from sklearn.base import BaseEstimator

    with open(path, "rb") as file, refusing(f"{os.fspath(path)} was not loaded"):
        header, payload = read_container(file, "model", max_bytes)
        audit = Audit(unpack(payload, max_bytes), trusted, max_bytes)
        payload = audit.copy(header["class"])
        model = skops.io.loads(payload, trusted=sorted(audit.types))
        if not isinstance(model, BaseEstimator):
            raise Refusal(f"it holds a {header['class']}, which is no estimator")
        return model


def _culprit(model: Any) -> str:
    """Name the attribute that skops cannot write; it does not say."""
    import skops.io

    for name, value in vars(model).items():
        try:
            skops.io.dumps(value)
        except Exception:
            return f"its attribute {name}"
    return "it"


def write_state(path: str | os.PathLike[str], state: Any) -> None:
    """Write the state of an iterative fit to one file, atomically.

    Parameters
    ----------
    state : None, bool, int, float, str, NumPy numbers and arrays of numbers, `numpy.random.Generator`, and lists, tuples,
        dicts with string keys and NamedTuples of lemmata made of these. What occurs twice comes back as two copies.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_state(Path(folder) / "fit", {"centers": np.eye(2), "trace": (3.0, 1.5), "rng": np.random.default_rng(7)})
    ...     read_state(Path(folder) / "fit")["trace"]
    (3.0, 1.5)
    """
    arrays: list[bytes] = []
    with refusing("The state was not written"):
        tree = json.dumps(_encode(state, arrays, "state")).encode()
    payload = b"".join([struct.pack(">Q", len(tree)), tree, *arrays])
    write_container(path, "state", type(state).__qualname__, payload)


def read_state(path: str | os.PathLike[str]) -> Any:
    """Read a state that `write_state` wrote; any other file is a ModelFileError."""
    with open(path, "rb") as file, refusing(f"{os.fspath(path)} was not read"):
        _, payload = read_container(file, "state", sys.maxsize)
        (length,) = struct.unpack_from(">Q", payload)
        arrays = io.BytesIO(payload[8 + length :])
        state = _decode(json.loads(payload[8 : 8 + length]), arrays)
        if arrays.read(1):
            raise Refusal("it holds more than its state")
        return state


def _encode(value: Any, arrays: list[bytes], where: str) -> Any:
    """Return a value as JSON, in which each list begins with what it stands for; the bytes of arrays go to `arrays`."""
    cls = type(value)
    if value is None or cls in (bool, int, str):
        return value
    if cls is float:
        return ["float", struct.pack(">d", value).hex()]  # text would lose the bits of a NaN
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in NUMBERS and not isinstance(value, np.ma.MaskedArray):
        arrays.append(value.tobytes())
        return ["number" if isinstance(value, np.generic) else "array", value.dtype.str, list(value.shape)]
    if cls is dict and all(type(key) is str for key in value):
        return ["dict", {key: _encode(item, arrays, f"{where}.{key}") for key, item in value.items()}]
    if cls is np.random.Generator and isinstance(seed := value.bit_generator.seed_seq, np.random.SeedSequence):
        state = value.bit_generator.state
        if state["bit_generator"] in BIT_GENERATORS:
            return ["generator", _encode(state, arrays, where), _encode(seed.state, arrays, where)]
    if cls in (list, tuple) or (is_named_tuple(cls) and our_class(cls.__module__, cls.__qualname__) is cls):
        items = [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        return [cls.__name__, items] if cls in (list, tuple) else ["named", cls.__module__, cls.__qualname__, items]
    raise Refusal(f"{where} is a {cls.__module__}.{cls.__qualname__}, which a state may not hold; make it plain data")


def _decode(node: Any, arrays: io.BytesIO) -> Any:
    """Return the value that `_encode` made into a node; arrays follow each other in the order of the nodes."""
    match node:
        case None | bool() | int() | str():
            return node
        case ["float", str(digits)]:
            return struct.unpack(">d", bytes.fromhex(digits))[0]
        case ["number" | "array" as tag, str(code), list(shape)]:
            dtype = np.dtype(code)
            if dtype.kind not in NUMBERS or min(shape, default=0) < 0:  # to np.ndarray, -1 means as many as there are
                raise Refusal(f"it holds an array of dtype {code} and shape {shape}")
            content = arrays.read(math.prod(shape) * dtype.itemsize)
            array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, bytearray(content))  # refuses too few bytes
            return array[()] if tag == "number" else array
        case ["dict", dict(items)]:
            return {key: _decode(item, arrays) for key, item in items.items()}
        case ["generator", state, seed]:
            state, seed = _decode(state, arrays), _decode(seed, arrays)
            check_random(state, seed)
            bits = getattr(np.random, state["bit_generator"])(np.random.SeedSequence(**seed))
            bits.state = state
            return np.random.Generator(bits)
        case ["list" | "tuple" as tag, list(items)]:
            values = [_decode(item, arrays) for item in items]
            return values if tag == "list" else tuple(values)
        case ["named", str(module), str(name), list(items)]:
            cls = our_class(module, name)
            if cls is not None and is_named_tuple(cls):
                return cls(*(_decode(item, arrays) for item in items))
    raise Refusal(f"it holds {str(node)[:60]}, which no state of this version holds")
