"""BIF files: read a Bayes net and write one, in the interchange format of the public collections of networks.

    variable rain { type discrete [ 2 ] { yes, no }; }
    probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.2, 0.8; }

Two readers give the same description. The quick one takes whole blocks with one regular expression and all numbers of the
file at once; it reads what programs write, and gives up where it does not understand. Then the careful one goes token by token,
knows `default` and names in quotation marks with anything in them, and tells the line of whatever is wrong.

Commas may be left out where names are single words, as the format has it. The values of a `table` under parents go with the
variable slowest. A row may miss a sum of one by DRIFT, and is then divided by its sum.

References: Cozman, The Interchange Format for Bayesian Networks 0.15, 1998; the networks of Scutari's bnlearn repository.
"""

import gzip
import os
import re
from bisect import bisect_left
from collections import defaultdict
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

DRIFT = 5e-3  # what three decimals leave over ten states; the bnlearn networks need 3e-7
ROUNDING = 1e-12  # sums as near to one as this are left alone, so that writing and reading give the same bits
MOST = 1 << 27  # entries of a table, 1 GiB
MARKS = r"\s\"(){}\[\]|,;"
WORD = rf"[^{MARKS}]+"
HEAD = re.compile(rf"\s*network\s+({WORD})\s*\{{\s*\}}")
BLOCK = re.compile(
    rf"variable\s+({WORD})\s*\{{\s*type\s+discrete\s*\[\s*(\d+)\s*\]\s*\{{([^{{}}()\[\]|;]*)\}}\s*;\s*\}}"
    rf"|probability\s*\(\s*({WORD})\s*(?:\|([^(){{}}|;]*))?\)\s*\{{([^{{}}]*)\}}"
    r"|(\S)"
)
ASIDE = re.compile(r'"([^"\\]*)"|//[^\n]*|/\*.*?\*/', re.DOTALL)
PROPERTY = re.compile(r"(?<=[{;])\s*property\s[^;{}]*;")
TABLE = re.compile(r"\s*table\s([^;()]*);\s*")
TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<mark>[{}()\[\]|,;])'
    rf"|(?P<word>(?:(?!//|/\*)[^{MARKS}])+)|(?P<bad>.)",
    re.DOTALL,
)
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
ONLY_MARKS_OF_ROWS = defaultdict(lambda: None, {ord(mark): mark for mark in "();"})  # for str.translate


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


class Description(NamedTuple):
    """A Bayes net as plain dictionaries, in the order of the file.

    Attributes
    ----------
    states : {variable: its labels}.
    parents : {variable: its parents}.
    tables : {variable: array with an axis for each parent, then one for the variable}.
    """

    name: str
    states: dict
    parents: dict
    tables: dict


def read_text(source, is_text):
    """Give the text of a path, an open file, or of the text itself; unpack what gzip packed."""
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


def from_bif(source):
    """Read a Bayes net from a BIF file.

    Parameters
    ----------
    source : Path, open file, or the text itself; packed by gzip or not.

    Returns
    -------
    net : The `BayesNet`.

    Examples
    --------
    >>> net = from_bif('''
    ... network garden { }
    ... variable rain { type discrete [ 2 ] { yes, no }; }
    ... variable wet { type discrete [ 2 ] { yes, no }; }
    ... probability ( rain ) { table 0.2, 0.8; }
    ... probability ( wet | rain ) { (yes) 0.9, 0.1; (no) 0.25, 0.75; }
    ... ''')
    >>> net.marginals()["wet"]
    array([0.38, 0.62])
    """
    from lemmata.graphical.bayes_net import BayesNet

    found = parse_bif(read_text(source, lambda text: "{" in text or "\n" in text))
    return BayesNet(found.parents, found.tables, found.states)


def parse_bif(text):
    """Read the text of a BIF file into plain dictionaries.

    Examples
    --------
    >>> found = parse_bif("network n { } variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { table 0.5, 0.5; }")
    >>> found.states, found.tables
    ({'a': ('x', 'y')}, {'a': array([0.5, 0.5])})
    >>> parse_bif("network n { } variable a { type discrete [ 2 ] { x, y }; }")
    Traceback (most recent call last):
        ...
    lemmata.graphical.bif.FileFormatError: Line 1: the variable 'a' has no probability block.
    """
    return read_quickly(text) or CarefulReader(text).read()


def read_quickly(text):
    """Read a file of the plain kind that programs write; give None where anything is out of the ordinary."""
    if '"' in text or "//" in text or "/*" in text or "property" in text:
        text = PROPERTY.sub(" ", ASIDE.sub(_without, text))
    head = HEAD.match(text)
    if head is None or '"' in text or "/*" in text:
        return None
    states, families, lists = {}, {}, {}
    for name, count, listed, child, given, body, bad in BLOCK.findall(text, head.end()):
        if name:
            if (listed, count) not in lists:
                lists[listed, count] = _plain_labels(listed, int(count))
            if name in states or lists[listed, count] is None:
                return None
            states[name] = lists[listed, count]
        elif bad or child in families:
            return None
        else:
            families[child] = (given, body)
    if families.keys() != states.keys():
        return None
    parents, plan, chunks, bodies, known = {}, [], [], [], {}
    for name, labels in states.items():
        given, body = families[name]
        if not given:
            table = TABLE.fullmatch(body)
            if table is None:
                return None
            parents[name] = ()
            chunks.append(table[1])
            plan.append((len(labels), 1, (), None))
            continue
        parents[name] = family = tuple([parent.strip() for parent in given.split(",")])
        over = tuple([states.get(parent) for parent in family])
        pieces = body.replace("(", ";").replace(")", ";").split(";")  # blank, labels, numbers, blank, labels, …
        if None in over or len(set(family)) < len(family) or "".join(pieces[::3]).strip():
            return None
        if over not in known:
            if prod(map(len, over)) != len(pieces) // 3:
                return None
            known[over] = Rows(over)
        order = known[over].order_of(pieces[1::3])
        if order is None:
            return None
        bodies.append(body)
        chunks += pieces[2::3]
        plan.append((len(labels), len(order), known[over].shape, order))
    if "".join(bodies).translate(ONLY_MARKS_OF_ROWS) != "();" * sum(count for _, count, shape, _ in plan if shape):
        return None
    values = _numbers(chunks, np.repeat([size for size, _, _, _ in plan], [count for _, count, _, _ in plan]))
    if values is None or cycle_of(parents):
        return None
    tables, start = {}, 0
    for name, (size, count, shape, order) in zip(states, plan, strict=True):
        table = values[start : start + count * size]
        start += count * size
        if len(shape) > 0:
            table = table.reshape(count, size).take(order, axis=0).reshape(*shape, size)
        tables[name] = table
    return Description(head[1], states, parents, tables)


def _without(aside):
    """Leave nothing of a comment, and of a word in quotation marks the word."""
    quoted = aside[1]
    return " " if quoted is None else f" {quoted} " if _is_word(quoted) else aside[0]


def _is_word(name):
    """Tell whether a name needs no quotation marks."""
    return re.fullmatch(WORD, name) is not None and "//" not in name and "/*" not in name


def _plain_labels(listed, count):
    """Split a list of states that are single words, each its own."""
    labels = tuple([label.strip() for label in listed.split(",")])
    return labels if len(labels) == count == len(set(labels)) == len(listed.replace(",", " ").split()) else None


class Rows:
    """The rows of a table under parents with these states, and where a file has them."""

    def __init__(self, over):
        self.shape = tuple(map(len, over))
        self.labels = [", ".join(row) for row in product(*over)]  # the last parent fastest, as the tables have it
        numbers = np.arange(len(self.labels))
        self.turned = [self.labels[i] for i in numbers.reshape(self.shape).T.flat]  # the first parent fastest, as most files do
        self.orders = numbers.reshape(self.shape[::-1]).T.ravel(), numbers

    def order_of(self, told):
        """Give the place in the file of each row, or None if not each of them is there once."""
        if told == self.turned:
            return self.orders[0]
        if told == self.labels:
            return self.orders[1]
        places = {", ".join([label.strip() for label in row.split(",")]): i for i, row in enumerate(told)}
        if len(told) != len(self.labels) or places.keys() != set(self.labels):
            return None
        return np.array([places[row] for row in self.labels])


def _numbers(chunks, sizes):
    """Give the numbers of all rows, which must be chances that sum to one, or None."""
    if not any("," in chunk for chunk in chunks):
        chunks = [",".join(chunk.split()) for chunk in chunks]
    joined = ",".join(chunks)
    if "_" in joined or [chunk.count(",") + 1 for chunk in chunks] != sizes.tolist():  # 1_000 is a number to Python
        return None
    try:
        values = np.array([float(entry) for entry in joined.split(",")])
    except ValueError:
        return None
    sums, off = _sums(values, sizes)
    return _divided(values, sizes, sums, off) if (values >= 0).all() and (off <= DRIFT).all() else None


def _sums(values, sizes):
    """Add up the rows of a flat array: the sums, and how far they are from one."""
    sums = np.add.reduceat(values, np.cumsum(sizes) - sizes) if len(sizes) else np.empty(0)
    return sums, np.abs(sums - 1)


def _divided(values, sizes, sums, off):
    """Divide those rows by their sums that are further from one than rounding leaves them."""
    return values / np.repeat(np.where(off > ROUNDING, sums, 1.0), sizes) if (off > ROUNDING).any() else values


def cycle_of(parents):
    """Find variables that are ancestors of themselves, each the parent of the next; an empty list if there are none.

    Examples
    --------
    >>> cycle_of({"a": (), "b": ("a",)}), cycle_of({"a": ("b",), "b": ("a",)})
    ([], ['a', 'b', 'a'])
    """
    waits = {name: len(family) for name, family in parents.items()}
    children = {name: [] for name in parents}
    for name, family in parents.items():
        for parent in family:
            children[parent].append(name)
    ready = [name for name, count in waits.items() if not count]
    for name in ready:
        for child in children[name]:
            waits[child] -= 1
            if not waits[child]:
                ready.append(child)
    if len(ready) == len(parents):
        return []
    name, seen = next(name for name, count in waits.items() if count), []
    while name not in seen:
        seen.append(name)
        name = next(parent for parent in parents[name] if waits[parent])
    return [name, *seen[: seen.index(name) : -1], name]


class CarefulReader:
    """Read a BIF file token by token, and give the line of what is wrong."""

    def __init__(self, text):
        self.breaks = [found.start() for found in re.finditer("\n", text)]
        self.tokens, self.at = [], 0
        for found in TOKEN.finditer(text):
            kind, value = found.lastgroup, found[0]
            if kind == "bad":
                what = "a quotation mark" if value == '"' else "a comment"
                raise self.error(f"{what} is opened and never closed.", found.start())
            if kind == "quoted":
                value = re.sub(r'\\(["\\])', r"\1", found["quoted"])
            if kind:
                self.tokens.append((kind, value, found.start()))
        self.tokens.append(("end", "the end of the file", len(text.rstrip())))

    def error(self, message, offset):
        """Make the error for a place in the text."""
        return FileFormatError(message, bisect_left(self.breaks, offset) + 1)

    def expected(self, what):
        """Make the error for a token that should be something else."""
        kind, value, offset = self.tokens[self.at]
        return self.error(f"expected {what}, found {value if kind == 'end' else repr(value)}.", offset)

    def passed(self, mark):
        """Go past a mark if it is the next token."""
        here = self.tokens[self.at][:2] == ("mark", mark)
        self.at += here
        return here

    def expect(self, *marks):
        """Go past marks, one after another."""
        for mark in marks:
            if not self.passed(mark):
                raise self.expected(repr(mark))

    def name(self, what):
        """Take a word, quoted or not."""
        kind, value, _ = self.tokens[self.at]
        if kind not in ("word", "quoted"):
            raise self.expected(what)
        self.at += 1
        return value

    def keyword(self, *words):
        """Take one of some words."""
        kind, value, _ = self.tokens[self.at]
        if kind != "word" or value not in words:
            raise self.expected(" or ".join(map(repr, words)))
        self.at += 1
        return value

    def skip(self):
        """Go past the rest of a property."""
        while not self.passed(";"):
            if self.tokens[self.at][0] == "end":
                raise self.expected("';' after the property")
            self.at += 1

    def listed(self, end):
        """Take words up to a mark: a list for each entry between commas."""
        entries = [[]]
        while not self.passed(end):
            if entries[-1] and self.passed(","):
                entries.append([])
            else:
                entries[-1].append(self.name(f"a name or {end!r}"))
        if not entries[-1] and len(entries) > 1:
            raise self.error("there is a comma with nothing after it.", self.tokens[self.at - 1][2])
        return entries

    def numbers(self):
        """Take numbers up to a semicolon, with commas between them or without."""
        values = []
        while not values or not self.passed(";"):
            if values:
                self.passed(",")
            kind, value, offset = self.tokens[self.at]
            if kind != "word" or not NUMBER.fullmatch(value):
                raise self.expected("a number" if not values else "a number or ';'")
            values.append(float(value))
            if not 0 <= values[-1] < np.inf:
                raise self.error(f"a probability cannot be {value}.", offset)
            self.at += 1
        return values

    def read(self):
        """Read the whole file."""
        title, states, blocks = "unknown", {}, {}
        while self.tokens[self.at][0] != "end":
            offset = self.tokens[self.at][2]
            block = self.keyword("variable", "probability", "network")
            if block == "network":
                title = self.name("the name of the network")
                self.expect("{")
                while not self.passed("}"):
                    self.keyword("property", "}")
                    self.skip()
            elif block == "variable":
                name = self.name("the name of a variable")
                if name in states:
                    raise self.error(f"the variable {name!r} is declared twice.", offset)
                states[name] = (self.variable(name), offset)
            else:
                child, *block = self.probability()
                if child in blocks:
                    raise self.error(f"the variable {child!r} has a second probability block.", offset)
                blocks[child] = (*block, offset)
        return self.put_together(title, states, blocks)

    def variable(self, name):
        """Read the states of a variable."""
        self.expect("{")
        labels = None
        while not self.passed("}"):
            offset = self.tokens[self.at][2]
            if self.keyword("type", "property", "}") == "property":
                self.skip()
                continue
            self.keyword("discrete")
            self.expect("[")
            count = self.name("the number of states")
            self.expect("]", "{")
            labels = _chosen(self.listed("}"), int(count) if count.isdecimal() else -1)
            self.expect(";")
            if labels is None:
                raise self.error(f"the variable {name!r} should have {count} states, and another number is listed.", offset)
            if len(set(labels)) < len(labels):
                raise self.error(f"the variable {name!r} has a state twice.", offset)
        if labels is None:
            raise self.error(f"the variable {name!r} has no type.", self.tokens[self.at - 1][2])
        return labels

    def probability(self):
        """Read a block of chances: the variable, its parents, and the entries as they stand."""
        self.expect("(")
        child, family = self.name("the name of a variable"), []
        if self.passed("|"):
            family = [name for entry in self.listed(")") for name in entry]
        else:
            self.expect(")")
        self.expect("{")
        entries = []
        while not self.passed("}"):
            offset = self.tokens[self.at][2]
            if self.passed("("):
                labels = self.listed(")")
                entries.append(("row", labels, self.numbers(), offset))
            elif (kind := self.keyword("table", "default", "property", "(", "}")) == "property":
                self.skip()
            else:
                entries.append((kind, None, self.numbers(), offset))
        return child, tuple(family), entries

    def put_together(self, title, states, blocks):
        """Make tables of the entries, and see that nothing is missing, unknown or said twice."""
        for child, (family, _, offset) in blocks.items():
            for name in (child, *family):
                if name not in states:
                    raise self.error(f"there is no variable {name!r}.", offset)
            if len(set(family)) < len(family):
                raise self.error(f"a parent of {child!r} is named twice.", offset)
        for name, (_, offset) in states.items():
            if name not in blocks:
                raise self.error(f"the variable {name!r} has no probability block.", offset)
        labels = {name: listed for name, (listed, _) in states.items()}
        parents = {name: blocks[name][0] for name in labels}
        circle = cycle_of(parents)
        if circle:
            raise self.error(f"the parents go round in a circle: {' → '.join(circle)}.", blocks[circle[0]][2])
        tables = {}
        for name in labels:
            family, entries, offset = blocks[name]
            tables[name] = self.table(name, [labels[parent] for parent in family], len(labels[name]), entries, offset)
        return Description(title, labels, parents, tables)

    def table(self, name, over, size, entries, offset):
        """Make the table of a variable."""
        shape = tuple(map(len, over))
        count = prod(shape)
        if count * size > MOST:
            raise self.error(f"the table of {name!r} would have {count * size:,} entries.", offset)
        values, told = np.empty((count, size)), np.full(count, -1)
        default = None
        for kind, listed, numbers, here in entries:
            wanted = size * count if kind == "table" else size
            if len(numbers) != wanted:
                raise self.error(f"{name!r} needs {wanted} numbers here, and there are {len(numbers)}.", here)
            if kind == "default":
                if default is not None:
                    raise self.error(f"{name!r} has a second default.", here)
                default = numbers, here
                continue
            row = slice(None) if kind == "table" else self.row(name, over, shape, listed, here)
            if (told[row] >= 0).any():
                raise self.error(f"{name!r} has these probabilities already.", here)
            values[row] = np.reshape(numbers, (size, -1)).T if kind == "table" else numbers
            told[row] = here
        if default is not None:
            values[told < 0], told[told < 0] = default
        if (told < 0).any():
            raise self.error(f"{name!r} has no probabilities{_given(over, shape, np.argmax(told < 0))}.", offset)
        sizes = np.full(count, size)
        sums, off = _sums(values.ravel(), sizes)
        if off.max() > DRIFT:
            bad = np.argmax(off > DRIFT)
            told_of = f"the probabilities of {name!r}{_given(over, shape, bad)}"
            raise self.error(f"{told_of} sum to {sums[bad]:.6g}, not to one.", told[bad])
        return _divided(values.ravel(), sizes, sums, off).reshape(*shape, size)

    def row(self, name, over, shape, listed, offset):
        """Find the number of the row with these states of the parents."""
        labels = _chosen(listed, len(over))
        if labels is None:
            raise self.error(f"a row of {name!r} names {len(over)} states, one for each parent.", offset)
        for label, known in zip(labels, over, strict=True):
            if label not in known:
                raise self.error(f"a row of {name!r} has the state {label!r}, and the parent has {list(known)}.", offset)
        return np.ravel_multi_index([known.index(label) for label, known in zip(labels, over, strict=True)], shape)


def _chosen(entries, count):
    """Read entries between commas as names, or else every word as one; None if neither makes the right number."""
    words = [word for entry in entries for word in entry]
    if len(entries) == count and words:
        return tuple(" ".join(entry) for entry in entries)
    return tuple(words) if len(words) == count else None


def _given(over, shape, row):
    """Say which row of a table is meant."""
    states = [known[i] for known, i in zip(over, np.unravel_index(row, shape), strict=True)] if over else []
    return f" given ({', '.join(states)})" if states else ""


def to_bif(net, path=None):
    """Write a Bayes net in the BIF format.

    Numbers are written so that reading them gives the same bits. Names and labels become text; where they have blanks or marks
    in them, they are put into quotation marks.

    Parameters
    ----------
    path : Where to write; packed by gzip if it ends in .gz. Without it, the text is only returned.

    Returns
    -------
    text : What was written.

    Examples
    --------
    >>> from lemmata.graphical.bayes_net import BayesNet
    >>> print(to_bif(BayesNet({"rain": ()}, {"rain": [0.25, 0.75]}, {"rain": ["yes", "no rain"]})))
    network unknown {
    }
    variable rain {
      type discrete [ 2 ] { yes, "no rain" };
    }
    probability ( rain ) {
      table 0.25, 0.75;
    }
    <BLANKLINE>
    """
    names = {name: _written(name) for name in net.variables}
    labels = {name: [_written(label) for label in net.states[name]] for name in net.variables}
    for what, written in [("variables", list(names.values())), *((f"states of {name!r}", labels[name]) for name in names)]:
        if len(set(written)) < len(written):
            raise ValueError(f"Two {what} look the same as text; give them other names to write them.")
    lines = ["network unknown {", "}"]
    for name in net.variables:
        listed = labels[name]
        lines += [f"variable {names[name]} {{", f"  type discrete [ {len(listed)} ] {{ {', '.join(listed)} }};", "}"]
    for factor in net.factors:
        *family, name = factor.variables
        given = f" | {', '.join(names[parent] for parent in family)}" if family else ""
        lines.append(f"probability ( {names[name]}{given} ) {{")
        rows = [", ".join(map(repr, row)) for row in factor.values.reshape(-1, len(labels[name])).tolist()]
        heads = [f"({', '.join(row)})" for row in product(*(labels[parent] for parent in family))] if family else ["table"]
        lines += [f"  {head} {row};" for head, row in zip(heads, rows, strict=True)]
        lines.append("}")
    return write_text("\n".join(lines) + "\n", path)


def _written(name):
    """Write a name, in quotation marks where it needs them."""
    name = str(name)
    if _is_word(name):
        return name
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
