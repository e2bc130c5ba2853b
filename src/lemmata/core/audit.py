"""The audit of a skops archive: what may occur in a model file, and where.

skops asks which types to trust, but not where they occur, and trusts scikit-learn and all ufuncs unasked. Here `Audit` walks
the schema first, takes the few kinds of node that hold data, checks what NumPy and SciPy believe unseen (sizes, positions,
indices), and copies what it took into a new archive; skops sees only the copy.
"""

import io
import json
import math
import re
from collections.abc import Collection
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np

from lemmata.core.container import Refusal

NUMBERS = "biufc"  # kinds of dtype whose bytes are their value: bool, integers, floats, complex
SCALARS = {f"numpy.{t.__name__}" for t in np.sctypeDict.values() if issubclass(t, np.number | np.bool_ | np.str_)}
BIT_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")

# The loaders of skops that may occur, with the types they may make; `Audit.content` says what makes each of them safe.
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


def unpack(archive: bytes, limit: int) -> dict[str, bytes]:
    """Read the files of a zip archive into memory, no more than `limit` bytes of them whatever its directory says."""
    members: dict[str, bytes] = {}
    with ZipFile(io.BytesIO(archive)) as source:
        # JSON weighs more: in memory it takes up to 24 times its length
        if sum(entry.file_size * (16 if entry.filename == "schema.json" else 1) for entry in source.infolist()) > limit:
            raise Refusal("it unpacks to more than max_bytes allows; raise max_bytes if you expect so large a file")
        for entry in source.infolist():
            name = entry.filename
            if not re.fullmatch(r"[\w-]+\.\w+", name, re.ASCII) or name in members:
                raise Refusal(f"its archive has an unexpected entry {name!r}")
            if entry.compress_type not in (ZIP_STORED, ZIP_DEFLATED):  # bz2 and lzma unpack more than is asked of them
                raise Refusal(f"its archive packs {name} in an unexpected way")
            with source.open(entry) as stream:
                members[name] = stream.read(entry.file_size + 1)
            if len(members[name]) != entry.file_size:
                raise Refusal(f"its archive lies about the size of {name}")
    return members


def pack(members: dict[str, bytes]) -> bytes:
    """Write files into a zip archive; the same ones give the same bytes."""
    buffer = io.BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(ZipInfo(name), content)  # a ZipInfo has a fixed date
    return buffer.getvalue()


def our_class(module: str, name: str) -> type | None:
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
    return found if issubclass(found, BaseEstimator) or is_dataclass(found) or is_named_tuple(found) else None


def is_named_tuple(cls: type) -> bool:
    """Tell whether a class is a NamedTuple itself, not a class derived from one."""
    return cls.__bases__ == (tuple,) and hasattr(cls, "_fields")


def check_random(state: Any, seed: Any) -> None:
    """Check what NumPy takes unseen: C code reads a buffer at these positions, and a pool costs its size squared to mix."""
    if state["bit_generator"] not in BIT_GENERATORS:
        raise Refusal(f"it has a random generator of the unknown kind {state['bit_generator']!r}")
    position, buffered, pool = state["state"].get("pos", 0), state.get("buffer_pos", 0), seed["pool_size"]
    if not all(type(number) is int for number in (position, buffered, pool)):
        raise Refusal("the state of a random generator is none")
    if not (0 <= position <= 624 and 0 <= buffered <= 4 and 4 <= pool <= 64):  # words of MT19937 and Philox; 64 is generous
        raise Refusal("the state of a random generator is out of range")


def _check_npy(content: bytes) -> None:
    """Check that an .npy file holds as many numbers or strings as its header promises; NumPy allocates them unseen."""
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise Refusal("an array is in an unknown version of .npy")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = header(stream)
    if dtype.hasobject:
        raise Refusal("an array holds Python objects")
    if dtype.itemsize == 0 or math.prod(shape) * dtype.itemsize != len(content) - stream.tell():
        raise Refusal("the size of an array contradicts its shape")


def _check_csr(members: dict[str, bytes], name: str) -> None:
    """Check the indices of a CSR array: SciPy's compiled loops follow them unseen, and its full check skips some of them."""
    from scipy.sparse import load_npz

    for content in members.values():
        _check_npy(content)
    matrix = load_npz(io.BytesIO(pack(members)))  # checks the number of rows and the lengths
    if type(matrix).__name__ != name or matrix.data.dtype.kind not in NUMBERS:
        raise Refusal(f"it holds a {type(matrix).__name__} under the name of {name}")
    start, end, columns = matrix.indptr[:-1], matrix.indptr[1:], matrix.indices
    if (end < start).any() or (columns < 0).any() or (columns >= matrix.shape[-1]).any():
        raise Refusal("the indices of a sparse array are out of range")


class Audit:
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
            raise Refusal("it is in an unknown protocol of skops")
        if (schema["__loader__"], f"{schema['__module__']}.{schema['__class__']}") != ("ObjectNode", name):
            raise Refusal(f"it does not hold the {name} that its header promises")
        clean = self.visit(schema, schema["__class__"]) | {"protocol": schema["protocol"]}
        return pack(self.kept | {"schema.json": json.dumps(clean).encode()})

    def visit(self, node: dict[str, Any], where: str) -> dict[str, Any]:
        """Return a copy of a node with the fields that skops reads, all of them checked."""
        clean: dict[str, Any] = {key: node[key] for key in ("__loader__", "__module__", "__class__")}
        loader, module, name = clean.values()
        if f"{module}.{name}" not in LOADERS.get(loader, ()) and not self.accepts(loader, module, name):
            hint = "; name its type in trusted= if you trust it" if loader == "ObjectNode" else ""
            raise Refusal(f"{where} is {module}.{name} ({loader}), which a model file may not hold{hint}")
        self.types.add(f"{module}.{name}")
        if loader in SHARED and node.get("__id__"):
            if node["__id__"] in self.ids:
                first = self.ids[node["__id__"]]
                if first != clean | {"__id__": first["__id__"]}:
                    raise Refusal(f"{where} claims to be an object of another type")
                return first
            clean["__id__"] = len(self.ids) + 1
            self.ids[node["__id__"]] = clean
        return clean | self.content(loader, name, node, where)

    def accepts(self, loader: str, module: str, name: str) -> bool:
        """Tell whether a loader may make this type beyond those of `LOADERS`."""
        if loader == "ObjectNode":  # skops makes it without calling __init__, then sets its attributes
            return f"{module}.{name}" in self.trusted or our_class(module, name) is not None
        cls = our_class(module, name) if loader == "TupleNode" else None
        return cls is not None and is_named_tuple(cls)

    def content(self, loader: str, name: str, node: dict[str, Any], where: str) -> dict[str, Any]:
        """Return the checked fields of a node that are particular to its loader."""
        match loader:
            case "JsonNode":
                if not isinstance(json.loads(node["content"]), str | int | float | None):
                    raise Refusal(f"{where} is no plain value")
                return {"content": node["content"]}
            case "ObjectNode":
                return {"content": self.visit(node["content"], where)} if node.get("content") else {}
            case "ListNode" | "SetNode" | "TupleNode":
                return {"content": [self.visit(item, f"{where}[{i}]") for i, item in enumerate(node["content"])]}
            case "DictNode":  # skops calls the key types, so they are types and harmless ones
                types = self.visit(node["key_types"], where)
                names = [f"{item['__module__']}.{item['__class__']}" for item in types["content"]]
                if any(item["__loader__"] != "TypeNode" for item in types["content"]) or not KEYS.issuperset(names):
                    raise Refusal(f"{where} is a dict with keys that are neither strings nor numbers")
                if len(names) != len(node["content"]):  # JSON merged 1 and "1"
                    raise Refusal(f"{where} is a dict with keys that read the same as text")
                return {"key_types": types, "content": {k: self.visit(v, f"{where}.{k}") for k, v in node["content"].items()}}
            case "NdArrayNode" if node["type"] == "numpy":
                content = self.members.pop(node["file"])  # a second node cannot load it again and again
                _check_npy(content)
                return {"type": "numpy", "file": self.keep(content, "npy")}
            case "NdArrayNode":  # an array of objects, as a list; skops restores the shape of vectors only
                shape = self.visit(node["shape"], where)
                if name != "ndarray" or shape["__loader__"] != "TupleNode" or len(shape["content"]) != 1:
                    raise Refusal(f"{where} is an array of objects and no vector")
                items = [self.visit(item, f"{where}[{i}]") for i, item in enumerate(node["content"])]
                return {"type": "json", "content": items, "shape": shape}
            case "ConstructorFromReduceNode":  # a path is made from strings; as a Path, on any system
                self.types.add("pathlib.Path")
                return {"__module__": "pathlib", "__class__": "Path", "content": self.visit(node["content"], where)}
            case "DTypeNode":
                return {"content": self.visit(node["content"], where)}
            case "RandomStateNode":
                state = self.visit(node["content"], where)
                check_random(_plain(state), {"pool_size": 4})
                return {"content": state}
            case "RandomGeneratorNode":  # skops calls numpy.random.<name in the state> and SeedSequence(**seed_seq)
                parts = {key: self.visit(node["content"][key], where) for key in ("bit_generator", "seed_seq")}
                check_random(_plain(parts["bit_generator"]), _plain(parts["seed_seq"]))
                return {"content": parts}
            case "SparseMatrixNode":
                members = unpack(self.members.pop(node["file"]), self.limit)
                self.limit -= sum(map(len, members.values()))
                _check_csr(members, name)
                return {"type": "scipy", "file": self.keep(pack(members), "npz")}
        return {}  # a TypeNode is nothing but its name

    def keep(self, content: bytes, suffix: str) -> str:
        """Put a file into the copy, under a name of ours, and return that name."""
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
