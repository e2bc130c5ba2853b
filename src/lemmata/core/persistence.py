"""Model files: written whole or not at all, read back bit for bit, and no code of the file ever runs.

A file is the line LEMMATA, the SHA-256 digest of all that follows, a JSON header (format, kind, class, version, size) and a
payload. The digest catches damage: a file cut, altered or extended is refused before its payload is looked at. It does not
catch malice, for an attacker recomputes it. So payloads are data only: a model is a skops archive (JSON and .npy files, no
pickle), a state of an iterative fit is JSON followed by the bytes of its arrays.

skops asks which types to trust, but not where they occur, and trusts scikit-learn and all ufuncs unasked. Here `_Audit` walks
the schema first, takes the few kinds of node that hold data, checks what NumPy and SciPy believe unseen (sizes, positions,
indices), and copies what it took into a new archive; skops sees only the copy. `save` runs the same audit, so that what
cannot be loaded cannot be saved.
"""

import io
import json
import math
import os
import re
import secrets
import shutil
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import is_dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

import lemmata

__all__ = ["save", "load", "atomic_write", "write_state", "read_state", "ModelFileError"]

MAGIC = b"LEMMATA\n"
FORMAT = 1
MAX_BYTES = 4 * 2**30  # more than most models, less than most memories
READERS = {"model": "load", "state": "read_state"}

NUMBERS = "biufc"  # kinds of dtype whose bytes are their value: bool, integers, floats, complex
SCALARS = {f"numpy.{t.__name__}" for t in np.sctypeDict.values() if issubclass(t, np.number | np.bool_ | np.str_)}
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")

# The loaders of skops that may occur, with the types they may make; `_Audit.content` says what makes each of them safe.
# Left out: those that import or call what the file names (Function, Partial, Method, OperatorFunc, Tree, Loss), CachedNode,
# and containers that lemmata does not use.
LOADERS: dict[str, set[str]] = {
    "JsonNode": {"builtins.str"},
    "DictNode": {"builtins.dict"},
    "ListNode": {"builtins.list"},
    "SetNode": {"builtins.set"},
    "TupleNode": {"builtins.tuple"},  # and the NamedTuples of lemmata
    "ObjectNode": set(),  # the estimators and dataclasses of lemmata, and what the caller trusts
    "TypeNode": {"builtins.str", "builtins.int", "builtins.float", "builtins.bool", *SCALARS},
    "NdArrayNode": {"numpy.ndarray", *SCALARS},
    "DTypeNode": {"numpy.dtype"},
    "RandomStateNode": {"numpy.random.mtrand.RandomState"},
    "RandomGeneratorNode": {"numpy.random._generator.Generator"},
    "SparseMatrixNode": {"scipy.sparse._csr.csr_array", "scipy.sparse._csr.csr_matrix"},
    "ConstructorFromReduceNode": {f"pathlib{at}.{kind}Path" for at in ("", "._local") for kind in ("", "Posix", "Windows")},
}
KEYS = LOADERS["TypeNode"] - {"builtins.bool", "numpy.bool"}  # skops reads a key back from its text, and bool("false") is True
# Wherever an id occurs again, skops puts the node that had it first, whatever was audited there. So ids stay only where
# sharing matters and nothing is called; elsewhere they go, or a list of types could turn out to be some other list.
SHARED = {"ObjectNode", "NdArrayNode", "RandomStateNode", "RandomGeneratorNode", "SparseMatrixNode"}


class ModelFileError(ValueError):
    """A file that is damaged, foreign, too new or unsafe; or a model or state that a file cannot hold."""


class _Refusal(Exception):
    """A reason, on its way to become the sentence of a ModelFileError."""


@contextmanager
def _refusing(subject: str) -> Iterator[None]:
    """Turn whatever a hostile payload provokes, RecursionError and MemoryError included, into one sentence."""
    try:
        yield
    except _Refusal as refusal:
        raise ModelFileError(f"{subject}: {refusal}.") from refusal.__cause__
    except Exception as error:
        detail = " ".join(str(error).split())[:200]  # 200: foreign messages may quote the file
        raise ModelFileError(f"{subject}: its content is malformed ({type(error).__name__}: {detail}).") from error


def atomic_write(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file so that at every moment the old content or the new one is there, whole.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atomic_write(Path(folder) / "a", b"new")
    ...     (Path(folder) / "a").read_bytes()
    b'new'
    """
    target = Path(os.path.realpath(path))  # a symbolic link stays one
    temporary = target.parent / f".lemmata-{secrets.token_hex(8)}.tmp"
    try:
        with open(temporary, "xb") as file:  # not mkstemp, whose files only their owner may read
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # Windows and some network drives cannot sync a folder; the file is complete by now
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _write(path: str | os.PathLike[str], kind: str, name: str, payload: bytes) -> None:
    header = {"format": FORMAT, "kind": kind, "class": name, "lemmata": lemmata.__version__, "payload": len(payload)}
    head = json.dumps(header).encode()
    body = struct.pack(">I", len(head)) + head + payload
    atomic_write(path, b"".join([MAGIC, sha256(body).digest(), body]))


def _read(file: BinaryIO, kind: str, max_bytes: int) -> tuple[dict[str, Any], bytes]:
    if file.read(len(MAGIC)) != MAGIC:
        raise _Refusal("it is no lemmata file, or its beginning is damaged; check the path or use another copy")
    if os.fstat(file.fileno()).st_size > max_bytes + 2**16:  # 2**16: more than any header takes
        raise _Refusal("it is larger than max_bytes allows; raise max_bytes if you expect so large a file")
    digest, body = file.read(sha256().digest_size), file.read()
    if sha256(body).digest() != digest:
        raise _Refusal("it is damaged (cut, altered or extended since it was written); use another copy or write it anew")
    (length,) = struct.unpack_from(">I", body)
    header, payload = json.loads(body[4 : 4 + length]), body[4 + length :]
    if header["format"] > FORMAT:
        raise _Refusal(
            f"lemmata {header.get('lemmata')} wrote it in format {header['format']}, newer than ours; upgrade lemmata"
        )
    if header["kind"] != kind:
        raise _Refusal(f"it holds a {header['kind']}, not a {kind}; read it with {READERS.get(header['kind'])}")
    if header["format"] != FORMAT or header["payload"] != len(payload):
        raise _Refusal("its header contradicts its content; use another copy or write it anew")
    return header, payload


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
    with _refusing(f"{type(model).__name__} was not saved"):
        try:
            payload = skops.io.dumps(model)
        except Exception as error:
            raise _Refusal(f"{_culprit(model)} cannot be stored ({type(error).__name__}); make it plain data") from error
        payload = _Audit(_unpack(payload, sys.maxsize), trusted, sys.maxsize).copy(name)
    _write(path, "model", name, payload)


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

    with open(path, "rb") as file, _refusing(f"{os.fspath(path)} was not loaded"):
        header, payload = _read(file, "model", max_bytes)
        audit = _Audit(_unpack(payload, max_bytes), trusted, max_bytes)
        payload = audit.copy(header["class"])
        model = skops.io.loads(payload, trusted=sorted(audit.types))
        if not isinstance(model, BaseEstimator):
            raise _Refusal(f"it holds a {header['class']}, which is no estimator")
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


def _unpack(archive: bytes, limit: int) -> dict[str, bytes]:
    """Read the files of a zip archive into memory, no more than `limit` bytes of them whatever its directory says."""
    members: dict[str, bytes] = {}
    with ZipFile(io.BytesIO(archive)) as source:
        # JSON weighs more: in memory it takes up to 24 times its length
        if sum(entry.file_size * (16 if entry.filename == "schema.json" else 1) for entry in source.infolist()) > limit:
            raise _Refusal("it unpacks to more than max_bytes allows; raise max_bytes if you expect so large a file")
        for entry in source.infolist():
            name = entry.filename
            if not re.fullmatch(r"[\w-]+\.\w+", name, re.ASCII) or name in members:
                raise _Refusal(f"its archive has an unexpected entry {name!r}")
            if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # bz2 and lzma unpack more than is asked of them
                raise _Refusal(f"its archive packs {name} in an unexpected way")
            with source.open(entry) as stream:
                members[name] = stream.read(entry.file_size + 1)
            if len(members[name]) != entry.file_size:
                raise _Refusal(f"its archive lies about the size of {name}")
    return members


def _pack(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content)  # a ZipInfo has a fixed date: the same model gives the same bytes
    return buffer.getvalue()


def _our_class(module: str, name: str) -> type | None:
    """Return the estimator, dataclass or NamedTuple of that name if lemmata itself defines it, else None."""
    from sklearn.base import BaseEstimator

    parts = [*module.split("."), name]
    if parts[0] != "lemmata" or not all(part.isidentifier() and not part.startswith("__") for part in parts):
        return None  # to import a __main__ would be to run it
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return None
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        return None  # a function, or something that lemmata only imports
    return found if issubclass(found, BaseEstimator) or is_dataclass(found) or _is_named_tuple(found) else None


def _is_named_tuple(cls: type) -> bool:
    return cls.__bases__ == (tuple,) and hasattr(cls, "_fields")


def _check_random(state: Any, seed: Any) -> None:
    """Check what NumPy takes unseen: C code reads a buffer at these positions, and a pool costs its size squared to mix."""
    if state["bit_generator"] not in BIT_GENERATORS:
        raise _Refusal(f"it has a random generator of the unknown kind {state['bit_generator']!r}")
    position, buffered, pool = state["state"].get("pos", 0), state.get("buffer_pos", 0), seed["pool_size"]
    if not all(type(number) is int for number in (position, buffered, pool)):
        raise _Refusal("the state of a random generator is none")
    if not (0 <= position <= 624 and 0 <= buffered <= 4 and 4 <= pool <= 64):  # words of MT19937 and Philox; 64 is generous
        raise _Refusal("the state of a random generator is out of range")


def _check_npy(content: bytes) -> None:
    """Check that an .npy file holds as many numbers or strings as its header promises; NumPy allocates them unseen."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise _Refusal("an array is in an unknown version of .npy")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject:
        raise _Refusal("an array holds Python objects")
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise _Refusal("the size of an array contradicts its shape")


def _check_csr(members: dict[str, bytes], name: str) -> None:
    """Check the indices of a CSR array: SciPy's compiled loops follow them unseen, and its full check skips some of them."""
    from scipy.sparse import load_npz

    for content in members.values():
        _check_npy(content)
    matrix = load_npz(io.BytesIO(_pack(members)))  # checks the number of rows and the lengths
    if type(matrix).__name__ != name or matrix.data.dtype.kind not in NUMBERS:
        raise _Refusal(f"it holds a {type(matrix).__name__} under the name of {name}")
    start, end, columns = matrix.indptr[:-1], matrix.indptr[1:], matrix.indices
    if (end < start).any() or (columns < 0).any() or (columns >= matrix.shape[-1]).any():
        raise _Refusal("the indices of a sparse array are out of range")


class _Audit:
    """One walk over the schema of a skops archive, which copies what it knows and refuses the rest."""

    def __init__(self, members: dict[str, bytes], trusted: Collection[str], limit: int) -> None:
        self.members, self.trusted, self.limit = members, frozenset(trusted), limit
        self.kept: dict[str, bytes] = {}
        self.types: set[str] = set()
        self.ids: dict[Any, dict[str, Any]] = {}

    def copy(self, name: str) -> bytes:
        """Return an archive of the object, which must be a `name`, with nothing in it that was not looked at."""
        schema = json.loads(self.members.pop("schema.json"))
        if type(schema["protocol"]) is not int or schema["protocol"] < 2:  # older ones had other loaders
            raise _Refusal("it is in an unknown protocol of skops")
        if (schema["__loader__"], f"{schema['__module__']}.{schema['__class__']}") != ("ObjectNode", name):
            raise _Refusal(f"it does not hold the {name} that its header promises")
        clean = self.visit(schema, schema["__class__"]) | {"protocol": schema["protocol"]}
        return _pack(self.kept | {"schema.json": json.dumps(clean).encode()})

    def visit(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        """Return a copy of a node with the fields that skops reads, all of them checked."""
        clean: dict[str, Any] = {key: node[key] for key in ("__loader__", "__module__", "__class__")}
        loader, module, name = clean.values()
        if f"{module}.{name}" not in LOADERS.get(loader, ()) and not self.accepts(loader, module, name):
            hint = "; name its type in trusted= if you trust it" if loader == "ObjectNode" else ""
            raise _Refusal(f"{where} is {module}.{name} ({loader}), which a model file may not hold{hint}")
        self.types.add(f"{module}.{name}")
        if loader in SHARED and node.get("__id__"):
            if node["__id__"] in self.ids:
                first = self.ids[node["__id__"]]
                if first != clean | {"__id__": first["__id__"]}:
                    raise _Refusal(f"{where} claims to be an object of another type")
                return first
            clean["__id__"] = len(self.ids) + 1
            self.ids[node["__id__"]] = clean
        return clean | self.content(loader, name, node, where)

    def accepts(self, loader: str, module: str, name: str) -> bool:
        if loader == "ObjectNode":  # skops makes it without calling __init__, then sets its attributes
            return f"{module}.{name}" in self.trusted or _our_class(module, name) is not None
        cls = _our_class(module, name) if loader == "TupleNode" else None
        return cls is not None and _is_named_tuple(cls)

    def content(self, loader: str, name: str, node: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the checked fields of a node that are particular to its loader."""
        match loader:
            case "JsonNode":
                if not isinstance(json.loads(node["content"]), str | int | float | None):
                    raise _Refusal(f"{where} is no plain value")
                return {"content": node["content"]}
            case "ObjectNode":
                return {"content": self.visit(node["content"], where)} if node.get("content") else {}
            case "ListNode" | "SetNode" | "TupleNode":
                return {"content": [self.visit(item, f"{where}[{i}]") for i, item in enumerate(node["content"])]}
            case "DictNode":  # skops calls the key types, so they are types and harmless ones
                types = self.visit(node["key_types"], where)
                names = [f"{item['__module__']}.{item['__class__']}" for item in types["content"]]
                if any(item["__loader__"] != "TypeNode" for item in types["content"]) or not KEYS.issuperset(names):
                    raise _Refusal(f"{where} is a dict with keys that are neither strings nor numbers")
                if len(names) != len(node["content"]):  # JSON merged 1 and "1"
                    raise _Refusal(f"{where} is a dict with keys that read the same as text")
                return {"key_types": types, "content": {k: self.visit(v, f"{where}.{k}") for k, v in node["content"].items()}}
            case "NdArrayNode" if node["type"] == "numpy":
                content = self.members.pop(node["file"])  # a second node cannot load it again and again
                _check_npy(content)
                return {"type": "numpy", "file": self.keep(content, "npy")}
            case "NdArrayNode":  # an array of objects, as a list; skops restores the shape of vectors only
                shape = self.visit(node["shape"], where)
                if name != "ndarray" or shape["__loader__"] != "TupleNode" or len(shape["content"]) != 1:
                    raise _Refusal(f"{where} is an array of objects and no vector")
                items = [self.visit(item, f"{where}[{i}]") for i, item in enumerate(node["content"])]
                return {"type": "json", "content": items, "shape": shape}
            case "ConstructorFromReduceNode":  # a path is made from strings; as a Path, on any system
                self.types.add("pathlib.Path")
                return {"__module__": "pathlib", "__class__": "Path", "content": self.visit(node["content"], where)}
            case "DTypeNode":
                return {"content": self.visit(node["content"], where)}
            case "RandomStateNode":
                state = self.visit(node["content"], where)
                _check_random(_plain(state), {"pool_size": 4})
                return {"content": state}
            case "RandomGeneratorNode":  # skops calls numpy.random.<name in the state> and SeedSequence(**seed_seq)
                parts = {key: self.visit(node["content"][key], where) for key in ("bit_generator", "seed_seq")}
                _check_random(_plain(parts["bit_generator"]), _plain(parts["seed_seq"]))
                return {"content": parts}
            case "SparseMatrixNode":
                members = _unpack(self.members.pop(node["file"]), self.limit)
                self.limit -= sum(map(len, members.values()))
                _check_csr(members, name)
                return {"type": "scipy", "file": self.keep(_pack(members), "npz")}
        return {}  # a TypeNode is nothing but its name

    def keep(self, content: bytes, suffix: str) -> str:
        name = f"{len(self.kept)}.{suffix}"
        self.kept[name] = content
        return name


def _plain(node: dict[str, Any]) -> Any:
    """Return the value of a clean node as far as it is plain."""
    match node["__loader__"]:
        case "JsonNode":
            return json.loads(node["content"])
        case "DictNode":
            return {key: _plain(value) for key, value in node["content"].items()}
    return None


def write_state(path: str | os.PathLike[str], state: Any) -> None:
    """Write the state of an iterative fit to one file, atomically.

    Parameters
    ----------
    state : None, bool, int, float, str, NumPy numbers and arrays of numbers, `numpy.random.Generator`, and lists, tuples,
        dicts with string keys and NamedTuples of lemmata made of these. What occurs twice comes back as two copies.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_state(Path(folder) / "fit", {"centers": np.eye(2), "trace": (3.0, 1.5), "rng": np.random.default_rng(7)})
    ...     read_state(Path(folder) / "fit")["trace"]
    (3.0, 1.5)
    """
    arrays: list[bytes] = []
    with _refusing("The state was not written"):
        tree = json.dumps(_encode(state, arrays, "state")).encode()
    payload = b"".join([struct.pack(">Q", len(tree)), tree, *arrays])
    _write(path, "state", type(state).__qualname__, payload)


def read_state(path: str | os.PathLike[str]) -> Any:
    """Read a state that `write_state` wrote; any other file is a ModelFileError."""
    with open(path, "rb") as file, _refusing(f"{os.fspath(path)} was not read"):
        _, payload = _read(file, "state", sys.maxsize)
        (length,) = struct.unpack_from(">Q", payload)
        arrays = io.BytesIO(payload[8 + length :])
        state = _decode(json.loads(payload[8 : 8 + length]), arrays)
        if arrays.read(1):
            raise _Refusal("it holds more than its state")
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
    if cls in (list, tuple) or (_is_named_tuple(cls) and _our_class(cls.__module__, cls.__qualname__) is cls):
        items = [_encode(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]
        return [cls.__name__, items] if cls in (list, tuple) else ["named", cls.__module__, cls.__qualname__, items]
    raise _Refusal(f"{where} is a {cls.__module__}.{cls.__qualname__}, which a state may not hold; make it plain data")


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
                raise _Refusal(f"it holds an array of dtype {code} and shape {shape}")
            content = arrays.read(math.prod(shape) * dtype.itemsize)
            array: np.ndarray[Any, Any] = np.ndarray(shape, dtype, bytearray(content))  # refuses too few bytes
            return array[()] if tag == "number" else array
        case ["dict", dict(items)]:
            return {key: _decode(item, arrays) for key, item in items.items()}
        case ["generator", state, seed]:
            state, seed = _decode(state, arrays), _decode(seed, arrays)
            _check_random(state, seed)
            bits = getattr(np.random, state["bit_generator"])(np.random.SeedSequence(**seed))
            bits.state = state
            return np.random.Generator(bits)
        case ["list" | "tuple" as tag, list(items)]:
            values = [_decode(item, arrays) for item in items]
            return values if tag == "list" else tuple(values)
        case ["named", str(module), str(name), list(items)]:
            cls = _our_class(module, name)
            if cls is not None and _is_named_tuple(cls):
                return cls(*(_decode(item, arrays) for item in items))
    raise _Refusal(f"it holds {str(node)[:60]}, which no state of this version holds")
