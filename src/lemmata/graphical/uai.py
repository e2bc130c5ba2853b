"""UAI files: read and write the factor graphs and Bayes nets of the inference competitions.

    MARKOV          the kind, MARKOV or BAYES
    3               number of variables
    2 2 3           number of states of each
    2               number of factors
    2 0 1           variables of each: how many, and which; of a Bayes net, the variable after its parents
    2 1 2
    4               values of each: how many, and which, the last variable fastest
     0.9 0.1 0.2 0.8
    6
     1 2 3 4 5 6

Variables are numbers from 0, and so are their states. Line breaks are blanks like others.

References: the file formats of the UAI inference evaluations, 2008 to 2022.
"""

import re
from math import prod

import numpy as np

from lemmata.graphical.arrows import cycle_of
from lemmata.graphical.factor import Factor
from lemmata.graphical.text_files import DRIFT, NUMBER, FileFormatError, divided, read_text, row_sums, write_text

KINDS = ("MARKOV", "BAYES")
LOWEST, HIGHEST = np.log(np.finfo(float).tiny), np.log(np.finfo(float).max)  # what can be written without a logarithm


def from_uai(source, evidence=None):
    """Read a model from a UAI file.

    Parameters
    ----------
    source : Path, open file, or the text itself, which begins with MARKOV or BAYES or has several lines; packed by gzip or not.
    evidence : The same for a file of evidence, or {variable: state}. Each observation becomes a factor of the model, which is
        one at the state and zero elsewhere.

    Returns
    -------
    model : A `BayesNet` if the file says BAYES, each variable has its table, whose rows sum to one, and there is no evidence;
        otherwise a `FactorGraph`.

    Examples
    --------
    >>> text = "MARKOV 2 2 2 1 2 0 1 4 3 1 1 2"
    >>> from_uai(text).marginals()[0]
    array([0.5714, 0.4286])
    >>> from_uai(text, evidence="1 1 0").marginals()[0]
    array([0.75, 0.25])
    >>> from_uai("MARKOV 2 2 2 1 2 0 1 4 3 1 1 x")
    Traceback (most recent call last):
        ...
    lemmata.graphical.text_files.FileFormatError: Line 1: expected a finite number of at least 0, found 'x'.
    """
    from lemmata.graphical.bayes_net import BayesNet
    from lemmata.graphical.factor_graph import FactorGraph

    kind, cards, factors = parse_uai(read_text(source, _is_text))
    states = {v: tuple(range(size)) for v, size in enumerate(cards)}
    if evidence is None and kind == "BAYES" and _is_net(factors, len(cards)):
        tables = {factor.variables[-1]: factor.values for factor in factors}
        parents = {factor.variables[-1]: factor.variables[:-1] for factor in factors}
        return BayesNet({v: parents[v] for v in states}, {v: _divided(tables[v]) for v in states}, states)
    if evidence is not None:
        observed = evidence if hasattr(evidence, "items") else read_uai_evidence(evidence)
        for name, state in observed.items():
            if name not in states or state not in states[name]:
                raise ValueError(
                    f"There is evidence that variable {name} is in state {state}, and the model has no such state."
                )
            factors.append(Factor([name], np.arange(cards[name]) == state))
    return FactorGraph(factors, states)


def _is_text(text):
    """Tell the text of a model from a path, which may have blanks as well."""
    first, second = (*text.split(None, 2), "", "")[:2]
    return "\n" in text or first in KINDS or (first.upper() in KINDS and second.isdecimal())


def _is_text_of_evidence(text):
    """Tell the text of evidence from a path."""
    return "\n" in text or all(word.isdecimal() for word in text.split(None, 2)[:2])


def _is_net(factors, n):
    """Tell whether each variable is the last of one factor, with rows that sum to one, and no variable its own ancestor."""
    parents = {factor.variables[-1]: factor.variables[:-1] for factor in factors if factor.variables}
    if len(factors) != n or len(parents) != n:
        return False
    rows = all((np.abs(factor.values.sum(axis=-1) - 1) <= DRIFT).all() for factor in factors)
    return rows and not cycle_of(parents)


def _divided(table):
    """Divide those rows by their sums that rounding alone does not keep from one."""
    values, size = table.ravel(), table.shape[-1]
    sizes = np.full(values.size // size, size)
    return divided(values, sizes, *row_sums(values, sizes)).reshape(table.shape)


class _Tokens:
    """The words of a text, taken one after another, and their lines."""

    def __init__(self, text):
        self.text, self.words, self.at = text, text.split(), 0

    def error(self, message, at=None):
        """Make the error for a word: by default the one just taken."""
        place = len(self.text.rstrip())
        for i, found in enumerate(re.finditer(r"\S+", self.text)):
            if i == (self.at - 1 if at is None else at):
                place = found.start()
        return FileFormatError(message, self.text.count("\n", 0, place) + 1)

    def word(self, what):
        """Take a word."""
        if self.at == len(self.words):
            raise self.error(f"expected {what}, found the end of the file.", at=self.at)
        self.at += 1
        return self.words[self.at - 1]

    def whole(self, what, least, most=None):
        """Take a whole number."""
        word = self.word(what)
        if not word.isdecimal() or not least <= int(word) or (most is not None and int(word) > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise self.error(f"expected {what}, {limits}, found {word!r}.")
        return int(word)

    def values(self, count):
        """Take numbers that are finite and not negative."""
        words = self.words[self.at : self.at + count]
        if len(words) < count:
            raise self.error(f"expected {count - len(words)} more numbers, found the end of the file.", at=len(self.words))
        try:
            values = np.array([float(word) for word in words])
        except ValueError:
            values = np.full(count, np.nan)
        if not ((values >= 0) & (values < np.inf)).all():
            bad = next(i for i, word in enumerate(words) if not (NUMBER.fullmatch(word) and 0 <= float(word) < np.inf))
            raise self.error(f"expected a finite number of at least 0, found {words[bad]!r}.", at=self.at + bad)
        self.at += count
        return values

    def finish(self):
        """See that nothing is left."""
        if self.at < len(self.words):
            raise self.error(f"expected the end of the file, found {self.words[self.at]!r}.", at=self.at)


def parse_uai(text):
    """Read the text of a UAI file: its kind, the numbers of states, and the factors.

    Examples
    --------
    >>> parse_uai("BAYES 1 2 1 1 0 2 0.25 0.75")
    ('BAYES', [2], [Factor({0: 2})])
    """
    tokens = _Tokens(text)
    kind = tokens.word("MARKOV or BAYES").upper()
    if kind not in KINDS:
        raise tokens.error(f"expected MARKOV or BAYES, found {tokens.words[0]!r}.")
    n = tokens.whole("the number of variables", 1)
    cards = [tokens.whole(f"the number of states of variable {v}", 1) for v in range(n)]
    scopes = []
    for m in range(tokens.whole("the number of factors", 0)):
        size = tokens.whole(f"the number of variables of factor {m}", 0, n)
        scopes.append([tokens.whole(f"a variable of factor {m}", 0, n - 1) for _ in range(size)])
        if len(set(scopes[-1])) < size:
            raise tokens.error(f"factor {m} has a variable twice.")
    factors = []
    for m, scope in enumerate(scopes):
        shape = [cards[v] for v in scope]
        told = tokens.whole(f"the number of values of factor {m}", 1)
        if told != prod(shape):
            raise tokens.error(f"factor {m} has {prod(shape)} values by the states of its variables, and {told} are announced.")
        factors.append(Factor(scope, tokens.values(told).reshape(shape)))
    tokens.finish()
    return kind, cards, factors


def read_uai_evidence(source):
    """Read a file of evidence: how many variables are observed, and the number and the state of each.

    A first line that says there is one sample of evidence is understood as well.

    Returns
    -------
    evidence : {variable: state}.

    Examples
    --------
    >>> read_uai_evidence("2 0 1 7 0")
    {0: 1, 7: 0}
    """
    tokens = _Tokens(read_text(source, _is_text_of_evidence))
    count = tokens.whole("the number of observed variables", 0)
    if count == 1 and len(tokens.words) % 2 == 0:  # samples, not variables: these come in pairs after their number
        count = tokens.whole("the number of observed variables", 0)
    evidence = {}
    for _ in range(count):
        name = tokens.whole("an observed variable", 0)
        if name in evidence:
            raise tokens.error(f"the variable {name} is observed twice.")
        evidence[name] = tokens.whole(f"the state of variable {name}", 0)
    tokens.finish()
    return evidence


def to_uai(model, path=None):
    """Write a model in the UAI format: BAYES for a Bayes net, MARKOV for a factor graph.

    Names and labels are lost: variables become their numbers in the order of the model, unless their names are such numbers.
    Numbers are written so that reading them gives the same bits. The format has no logarithms: factors that have are written as
    plain numbers and, if these would leave the range of floats, divided by the largest. That changes Z, and P not; entries that
    are then still below that range become 0.

    Parameters
    ----------
    path : Where to write; packed by gzip if it ends in .gz. Without it, the text is only returned.

    Returns
    -------
    text : What was written.

    Examples
    --------
    >>> from lemmata.graphical.factor_graph import FactorGraph
    >>> print(to_uai(FactorGraph([("ab", [[3, 1], [1, 2]])])))
    MARKOV
    2
    2 2
    1
    2 0 1
    <BLANKLINE>
    4
     3.0 1.0
     1.0 2.0
    <BLANKLINE>
    """
    n = len(model.variables)
    own = all(type(name) is int for name in model.variables) and set(model.variables) == set(range(n))
    ordered = sorted(model.variables) if own else model.variables
    numbers = {name: v for v, name in enumerate(ordered)}
    lines = ["BAYES" if hasattr(model, "parents_") else "MARKOV", str(n)]
    lines += [" ".join(str(len(model.states[name])) for name in ordered), str(len(model.factors))]
    for factor in model.factors:
        lines.append(" ".join(map(str, [len(factor.variables), *(numbers[name] for name in factor.variables)])))
    for factor in model.factors:
        values = _plain(factor)
        rows = values.reshape(-1, values.shape[-1] if values.ndim else 1).tolist()
        lines += ["", str(values.size), *(" " + " ".join(map(repr, row)) for row in rows)]
    return write_text("\n".join(lines) + "\n", path)


def _plain(factor):
    """Give the values of a factor without logarithms; the largest is 1 if they would leave the range of floats."""
    if not factor.log:
        return factor.values
    there = factor.values[np.isfinite(factor.values)]
    far = there.size and not (there.min() >= LOWEST and there.max() <= HIGHEST)
    return np.exp(factor.values - (there.max() if far else 0.0))
