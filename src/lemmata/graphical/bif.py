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

import re
from collections import defaultdict
from itertools import product
from math import prod

import numpy as np

from lemmata.graphical.arrows import cycle_of
from lemmata.graphical.bif_careful import MARKS, CarefulReader, Description
from lemmata.graphical.text_files import DRIFT, FileFormatError, divided, read_text, row_sums, write_text

WORD = rf"[^{MARKS}]+"
HEAD = re.compile(rf"\s*network\s+({WORD})\s*\{{\s*\}}")
BLOCK = re.compile(
    rf"variable\s+({WORD})\s*\{{\s*type\s+discrete\s*\[\s*(\d+)\s*\]\s*\{{([^{{}}()\[\]|;]*)\}}\s*;\s*\}}"
    rf"|probability\s*\(\s*({WORD})\s*(?:\|([^(){{}}|;]*))?\)\s*\{{([^{{}}]*)\}}"
    r"|(\S)"
)
ASIDE = re.compile(r'"([^"\\]*)"|//[^\n]*|/\*.*?\*/', re.DOTALL)
PROPERTY = re.compile(r"(\]\s*\{[^{}]*)|(?<=[{;])\s*property\s[^;{}]*;")  # a list of states is no place for one
TABLE = re.compile(r"\s*table\s([^;()]*);\s*")
ONLY_MARKS_OF_ROWS = defaultdict(lambda: None, {ord(mark): mark for mark in "();"})  # for str.translate


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
    lemmata.graphical.text_files.FileFormatError: Line 1: the variable 'a' has no probability block.
    """
    found = read_quickly(text) or CarefulReader(text).read()
    if not found.states:
        raise FileFormatError("expected a variable, found the end of the file.", text.rstrip().count("\n") + 1)
    return found


def read_quickly(text):
    """Read a file of the plain kind that programs write; give None where anything is out of the ordinary."""
    if '"' in text or "//" in text or "/*" in text or "property" in text:
        text = PROPERTY.sub(r"\1 ", ASIDE.sub(_without, text))
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
    sums, off = row_sums(values, sizes)
    return divided(values, sizes, sums, off) if (values >= 0).all() and (off <= DRIFT).all() else None


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
    if not hasattr(net, "parents_"):
        raise ValueError(f"A BIF file holds a Bayes net, and a {type(net).__name__} is none; to_uai writes any factors.")
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
