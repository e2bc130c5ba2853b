"""What the readers and writers of model files share: sources of all kinds, errors with a line, rows that nearly sum to one."""

import gzip
import os
import re

import numpy as np

DRIFT = 5e-3  # what three decimals leave over ten states; the bnlearn networks need 3e-7
ROUNDING = 1e-12  # sums as near to one as this are left alone, so that writing and reading give the same bits
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


class FileFormatError(ValueError):
    """Tell what is wrong in a file, and in which line.

    Attributes
    ----------
    line : Number of the line, from 1.

    Examples
    --------
    >>> FileFormatError("expected ';', found '}'.", 12)
    FileFormatError("Line 12: expected ';', found '}'.")
    """

    def __init__(self, message, line):
        super().__init__(f"Line {line}: {message}")
        self.line = line


def read_text(source, is_text):
    """Give the text of a path, an open file, or of the text itself; unpack what gzip packed."""
    if isinstance(source, str) and not source.strip():
        raise ValueError("A model is read from a path, a text or an open file, and this text is empty.")
    if hasattr(source, "read"):
        data = source.read()
    elif isinstance(source, str) and is_text(source):
        data = source
    elif isinstance(source, str | os.PathLike):
        with open(source, "rb") as file:
            data = file.read()
    else:
        data = source
    if isinstance(data, str):
        return data.removeprefix("\ufeff")
    if not isinstance(data, bytes):
        raise ValueError(f"A model is read from a path, a text or an open file, not from {type(source).__name__}.")
    if data[:2] == b"\x1f\x8b":  # the mark of gzip
        data = gzip.decompress(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileFormatError("there are bytes that are no UTF-8 text; save the file in that encoding.", line) from None


def write_text(text, path):
    """Write a text to a path, packed if the name ends in .gz; without a path, do nothing. Give the text."""
    if path is not None:
        data = text.encode()
        with open(path, "wb") as file:
            file.write(gzip.compress(data, mtime=0) if os.fspath(path).endswith(".gz") else data)
    return text


def row_sums(values, sizes):
    """Add up the rows of a flat array: the sums, and how far they are from one."""
    sums = np.add.reduceat(values, np.cumsum(sizes) - sizes) if len(sizes) else np.empty(0)
    return sums, np.abs(sums - 1)


def divided(values, sizes, sums, off):
    """Divide those rows by their sums that are further from one than rounding leaves them."""
    return values / np.repeat(np.where(off > ROUNDING, sums, 1.0), sizes) if (off > ROUNDING).any() else values
