"""The container of every file: one line of magic, a digest, a header and a payload, written whole or not at all.

A file is the line LEMMATA, the SHA-256 digest of all that follows, a JSON header (format, kind, class, version, size) and a
payload. The digest catches damage: a file cut, altered or extended is refused before its payload is looked at. It does not
catch malice, for an attacker recomputes it; what a payload may hold is for its reader to check.
"""

import json
import os
import secrets
import shutil
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import lemmata

MAGIC = b"LEMMATA\n"
FORMAT = 1
READERS = {"model": "load", "state": "read_state"}


class ModelFileError(ValueError):
    """A file that is damaged, foreign, too new or unsafe; or a model or state that a file cannot hold."""


class Refusal(Exception):
    """A reason, on its way to become the sentence of a ModelFileError."""


@contextmanager
def refusing(subject: str) -> Iterator[None]:
    """Turn whatever a hostile payload provokes, RecursionError and MemoryError included, into one sentence."""
    try:
        yield
    except Refusal as refusal:
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


def write_container(path: str | os.PathLike[str], kind: str, name: str, payload: bytes) -> None:
    """Write a payload with its header and digest, atomically; `kind` is a key of `READERS`, `name` the class inside."""
    header = {"format": FORMAT, "kind": kind, "class": name, "lemmata": lemmata.__version__, "payload": len(payload)}
    head = json.dumps(header).encode()
    body = struct.pack(">I", len(head)) + head + payload
    atomic_write(path, b"".join([MAGIC, sha256(body).digest(), body]))


def read_container(file: BinaryIO, kind: str, max_bytes: int) -> tuple[dict[str, Any], bytes]:
    """Return the header and the payload of an undamaged file of this kind, or raise a Refusal."""
    if file.read(len(MAGIC)) != MAGIC:
        raise Refusal("it is no lemmata file, or its beginning is damaged; check the path or use another copy")
    if os.fstat(file.fileno()).st_size > max_bytes + 2**16:  # 2**16: more than any header takes
        raise Refusal("it is larger than max_bytes allows; raise max_bytes if you expect so large a file")
    digest, body = file.read(sha256().digest_size), file.read()
    if sha256(body).digest() != digest:
        raise Refusal("it is damaged (cut, altered or extended since it was written); use another copy or write it anew")
    (length,) = struct.unpack_from(">I", body)
    header, payload = json.loads(body[4 : 4 + length]), body[4 + length :]
    if header["format"] > FORMAT:
        raise Refusal(
            f"lemmata {header.get('lemmata')} wrote it in format {header['format']}, newer than ours; upgrade lemmata"
        )
    if header["kind"] != kind:
        raise Refusal(f"it holds a {header['kind']}, not a {kind}; read it with {READERS.get(header['kind'])}")
    if header["format"] != FORMAT or header["payload"] != len(payload):
        raise Refusal("its header contradicts its content; use another copy or write it anew")
    return header, payload
