"""The careful reader of BIF files: token by token, with the line of whatever is wrong (see `bif`)."""

import re
from bisect import bisect_left
from math import prod
from typing import NamedTuple

import numpy as np

from lemmata.graphical.arrows import cycle_of
from lemmata.graphical.text_files import DRIFT, NUMBER, FileFormatError, divided, row_sums

MARKS = r"\s\"(){}\[\]|,;"
MOST = 1 << 27  # entries of a table, 1 GiB
TOKEN = re.compile(
    r'\s+|//[^\n]*|/\*.*?\*/|"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<mark>[{}()\[\]|,;])'
    rf"|(?P<word>(?:(?!//|/\*)[^{MARKS}])+)|(?P<bad>.)",
    re.DOTALL,
)


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
        sums, off = row_sums(values.ravel(), sizes)
        if off.max() > DRIFT:
            bad = np.argmax(off > DRIFT)
            told_of = f"the probabilities of {name!r}{_given(over, shape, bad)}"
            raise self.error(f"{told_of} sum to {sums[bad]:.6g}, not to one.", told[bad])
        return divided(values.ravel(), sizes, sums, off).reshape(*shape, size)

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
