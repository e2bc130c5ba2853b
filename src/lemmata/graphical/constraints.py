"""`ConstraintProblem`: find x such that every constraint holds, by message passing with OR for the sum and AND for the product.

    ∃ x: ⋀_m f_m(x_m)         r_{v→S}(x_S) = ⋁_{x_v} ⋀ (constraints and messages that mention v)

To decide this is NP-complete (3-SAT), but variables eliminated one after another need only tables over the bags of the
elimination: exponential in the width of the graph of constraints, linear in its size. A message is false where no value of the
variables eliminated before it fits. If one is false throughout, nothing satisfies the constraints, and the messages sent until
then are a proof that can be checked bag by bag. Otherwise values are chosen from the last bag to the first, and each choice can
be completed: solutions are listed without ever going back. With + and × of integers the messages count solutions.

Dechter, Artificial Intelligence 113 (1999): bucket elimination. Aji & McEliece, IEEE Trans. Inf. Theory 46 (2000).
"""

from collections.abc import Iterable
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lemmata.core.certificate import Certificate, Check
from lemmata.graphical.elimination import eliminate
from lemmata.graphical.evidence import some
from lemmata.graphical.factor import Factor

MOST_ENTRIES = 1 << 24  # of one table: 16 MiB of truth values, 128 of counts
MOST_AXES = 64  # that an array of NumPy can have
INT64 = (1 << 63) - 1
BLANK = Factor((), 1.0)  # lends its ways with axes to truth values and whole numbers, which no factor holds
ROWS = 1 << 18  # that the checker looks at together: a few MiB


class Constraint(NamedTuple):
    """A table of truth values over some variables, and the predicate or tuples that it came from."""

    variables: tuple
    table: np.ndarray
    rule: Any


class Message(NamedTuple):
    """What eliminating a variable says about the others of its bag: true where some value of the variable fits."""

    eliminated: Any
    variables: tuple
    table: np.ndarray


class Verdict(NamedTuple):
    """Whether the constraints can be satisfied, and why.

    Attributes
    ----------
    assignment : {variable: value} that satisfies all, or None.
    exhausted : The bag at which no value was left, or None: its message is false throughout.
    messages : Those sent until then: the proof, if there is no assignment.

    Examples
    --------
    >>> from lemmata.graphical import ConstraintProblem
    >>> odd = ConstraintProblem({v: "RG" for v in "abc"}, [(pair, lambda x, y: x != y) for pair in ("ab", "bc", "ca")])
    >>> odd.solve().satisfiable  # a triangle has no two colors
    False
    """

    assignment: dict | None
    exhausted: tuple | None
    messages: list

    @property
    def satisfiable(self):
        """Whether there is an assignment."""
        return self.assignment is not None


def spread(names, table, scope):
    """Give a table an axis for each variable of a larger scope, of length 1 where it has none."""
    return BLANK._with(names, table)._aligned(scope)


class ConstraintProblem:
    """Satisfy constraints on discrete variables, count and list all solutions, or prove that there is none.

    Parameters
    ----------
    domains : {variable: its possible values}.
    constraints : List of (variables, rule). A rule is a function of values that is true where they are allowed, a boolean array
        with an axis for each variable, or a list of the tuples of values that are allowed.
    order : In which to eliminate variables, as for `eliminate`.
    max_entries : Refuse tables that are larger.

    Examples
    --------
    >>> differ = lambda a, b: a != b
    >>> borders = ["WN", "WS", "NS", "NQ", "SQ", "SV", "QV"]
    >>> states = ConstraintProblem({s: ["red", "green", "blue"] for s in "WNSQVT"}, [(pair, differ) for pair in borders])
    >>> states.solve().satisfiable, states.count(), states.width
    (True, 18, 2)
    >>> two = ConstraintProblem({s: ["red", "green"] for s in "WNS"}, [(pair, differ) for pair in borders[:3]])
    >>> two.solve().exhausted, two.certify().holds
    (('N', 'S'), True)
    """

    def __init__(self, domains, constraints, *, order="min-fill", max_entries=MOST_ENTRIES):
        self.domains = {name: tuple(values) for name, values in domains.items()}
        for name, values in self.domains.items():
            if not values or len(set(values)) < len(values):
                raise ValueError(f"The domain of {name!r} needs values that are all different, got {list(values)}.")
        self.sizes = {name: len(values) for name, values in self.domains.items()}
        self.max_entries = max_entries
        self.constraints = [self._constraint(tuple(names), rule) for names, rule in constraints]
        near = {name: {} for name in self.domains}
        for constraint in self.constraints:
            for name in constraint.variables:
                near[name].update(dict.fromkeys(other for other in constraint.variables if other != name))
        found = eliminate(near, order, states=self.sizes)
        self.order, self.width = found.order, found.width
        largest = max(found.bags, key=lambda bag: prod(self.sizes[name] for name in bag), default=())
        entries = prod(self.sizes[name] for name in largest)
        if entries > max_entries or self.width >= MOST_AXES:
            raise ValueError(
                f"The constraints have width {self.width} in the order of elimination: a table over {len(largest)} variables "
                f"({some(sorted(largest, key=self.order.index), 4)}) would have {entries:,} entries, more than "
                f"max_entries={max_entries:,}; try another order, or a solver that searches."
            )

    @classmethod
    def from_cnf(cls, clauses, n_variables=None, **options):
        """Make the problem of clauses: lists of literals, i for variable i and −i for its negation (a 0 at the end is ignored).

        Examples
        --------
        >>> problem = ConstraintProblem.from_cnf([[1, -2], [2, 3], [-1, -3]])
        >>> problem.solve().assignment, problem.count()
        ({1: True, 2: True, 3: False}, 2)
        """
        clauses = [sorted({int(literal) for literal in clause} - {0}, key=abs) for clause in clauses]
        highest = max((abs(literal) for clause in clauses for literal in clause), default=0)
        if n_variables is not None and n_variables < highest:
            raise ValueError(f"The clauses mention variable {highest}, and n_variables is {n_variables}.")
        constraints = []
        for clause in clauses:
            if len({abs(literal) for literal in clause}) < len(clause):
                continue  # a literal and its negation: always true
            table = np.ones([2] * len(clause), dtype=bool)
            table[tuple(int(literal < 0) for literal in clause)] = False  # the one way to satisfy no literal
            constraints.append(([abs(literal) for literal in clause], table))
        return cls(dict.fromkeys(range(1, (n_variables or highest) + 1), (False, True)), constraints, **options)

    def __repr__(self):
        return f"<ConstraintProblem of {len(self.domains)} variables, {len(self.constraints)} constraints, width {self.width}>"

    def _constraint(self, names, rule):
        """Tabulate a rule."""
        for name in names:
            if name not in self.domains:
                raise ValueError(f"A constraint mentions {name!r}, which has no domain.")
        if len(set(names)) < len(names):
            raise ValueError(f"A constraint has each variable once, and {list(names)} repeats one.")
        shape = tuple(self.sizes[name] for name in names)
        if prod(shape) > self.max_entries or len(shape) > MOST_AXES:
            raise ValueError(
                f"A constraint on {len(names)} variables ({some(names, 4)}) would need a table of {prod(shape):,} entries, "
                f"more than max_entries={self.max_entries:,}; split it into smaller ones."
            )
        if callable(rule):
            values = product(*(self.domains[name] for name in names))
            return Constraint(names, np.fromiter((bool(rule(*row)) for row in values), bool, prod(shape)).reshape(shape), rule)
        if isinstance(rule, np.ndarray) and rule.dtype == bool:
            if rule.shape != shape:
                raise ValueError(f"The table of the constraint on {list(names)} needs the shape {shape}, and has {rule.shape}.")
            return Constraint(names, rule, rule)
        if not isinstance(rule, Iterable):
            raise ValueError(
                f"The rule of the constraint on {list(names)} must be a function, a boolean array or allowed tuples."
            )
        places = [{value: i for i, value in enumerate(self.domains[name])} for name in names]
        table, rule = np.zeros(shape, dtype=bool), [tuple(row) for row in rule]
        for row in rule:
            if len(row) != len(names) or any(value not in known for value, known in zip(row, places, strict=True)):
                raise ValueError(f"The constraint on {list(names)} allows {row!r}, which are not values of these variables.")
            table[tuple(known[value] for value, known in zip(row, places, strict=True))] = True
        return Constraint(names, table, rule)

    def _eliminate(self, join):
        """Eliminate variables in order, until `join(scope, parts)`, which makes the message of a bag, gives None."""
        rank = {name: i for i, name in enumerate(self.order)}
        waiting = {name: [] for name in self.order}
        for constraint in self.constraints:
            if constraint.variables:
                waiting[min(constraint.variables, key=rank.get)].append((constraint.variables, constraint.table))
        for name in self.order:
            parts = waiting.pop(name)
            scope = tuple(sorted({other for names, _ in parts for other in names} | {name}, key=rank.get))
            message = join(scope, parts)
            if message is None:
                return
            if scope[1:]:
                waiting[scope[1]].append((scope[1:], message))

    @cached_property
    def _passed(self):
        """The tables of all bags, the messages, and the bag at which they are exhausted, if any."""
        tables, messages, exhausted = {}, [], []
        if not all(constraint.table.all() for constraint in self.constraints if not constraint.variables):
            return tables, messages, ()

        def join(scope, parts):
            table = np.ones([self.sizes[name] for name in scope], dtype=bool)
            for names, part in parts:
                table &= spread(names, part, scope)
            message = table.any(axis=0)
            tables[scope[0]] = (scope[1:], table)
            messages.append(Message(scope[0], scope[1:], message))
            if not message.any():
                exhausted.append(scope)
                return None
            return message

        self._eliminate(join)
        return tables, messages, exhausted[0] if exhausted else None

    def solve(self):
        """Find values that satisfy all constraints, or prove that there are none: a `Verdict`.

        Of all solutions it is the one that takes the first values of the variables eliminated last.
        """
        _, messages, exhausted = self._passed
        first = next(self.all_solutions(1), None)
        return Verdict(first, exhausted, messages)

    def all_solutions(self, limit=None):
        """List solutions, {variable: value}, one at a time and at most `limit`; no choice is ever taken back in vain.

        Examples
        --------
        >>> below = ConstraintProblem({"a": range(4), "b": range(3)}, [("ab", lambda a, b: a > b)])
        >>> sorted((x["a"], x["b"]) for x in below.all_solutions())
        [(1, 0), (2, 0), (2, 1), (3, 0), (3, 1), (3, 2)]
        """
        tables, _, exhausted = self._passed
        if exhausted is not None:
            return
        backward, codes, found = self.order[::-1], {}, 0
        options = [iter(self._fitting(tables, backward[0], codes))] if backward else []
        if not backward and (limit is None or limit > 0):
            yield {}
        while options and (limit is None or found < limit):
            code = next(options[-1], None)
            if code is None:
                options.pop()
                continue
            codes[backward[len(options) - 1]] = code
            if len(options) < len(backward):
                options.append(iter(self._fitting(tables, backward[len(options)], codes)))
                continue
            found += 1
            yield {name: values[codes[name]] for name, values in self.domains.items()}

    def _fitting(self, tables, name, codes):
        """Give the values of a variable that fit those of the others of its bag."""
        rest, table = tables[name]
        return np.flatnonzero(table[(slice(None), *(codes[other] for other in rest))])

    def count(self):
        """Count all solutions, exactly: a whole number of any size.

        Examples
        --------
        >>> chain = ConstraintProblem({t: range(4) for t in range(100)}, [((t, t + 1), lambda a, b: a != b) for t in range(99)])
        >>> chain.count() == 4 * 3**99
        True
        """
        total = int(all(constraint.table.all() for constraint in self.constraints if not constraint.variables))

        def join(scope, parts):
            nonlocal total
            bound = self.sizes[scope[0]] * prod(int(part.max()) for _, part in parts)
            table = np.ones([self.sizes[name] for name in scope], dtype=np.int64 if bound <= INT64 else object)
            for names, part in parts:
                table = table * spread(names, part, scope)
            message = table.sum(axis=0)
            if not scope[1:]:
                total *= int(message)
            return message

        self._eliminate(join)
        return total

    def violated(self, assignment):
        """List the constraints, by number, that an assignment breaks, by their own rules."""
        return [m for m, constraint in enumerate(self.constraints) if not self._holds(constraint, assignment)]

    def _holds(self, constraint, assignment):
        values = [assignment[name] for name in constraint.variables]
        if callable(constraint.rule):
            return bool(constraint.rule(*values))
        if isinstance(constraint.rule, np.ndarray):
            places = [self.domains[name].index(value) for name, value in zip(constraint.variables, values, strict=True)]
            return bool(constraint.rule[tuple(places)])
        return tuple(values) in constraint.rule

    def certify(self, verdict=None):
        """Check an assignment constraint by constraint, or a proof that there is none bag by bag."""
        verdict = self.solve() if verdict is None else verdict
        if verdict.satisfiable:
            foreign = sum(verdict.assignment.get(name, self) not in values for name, values in self.domains.items())
            broken = foreign or len(self.violated(verdict.assignment))
            checks = [
                Check("domains", foreign, 0, "proof", "every variable has a value of its domain"),
                Check("constraints", broken, 0, "proof", "every constraint holds, by its own rule"),
            ]
        else:
            checks = self._refutation(verdict)
        return Certificate(*checks, subject="constraints")

    def _refutation(self, verdict):
        """Check that constraints or earlier messages exclude what a message excludes, whatever the value of its variable."""
        empty = any(not constraint.table.all() for constraint in self.constraints if not constraint.variables)
        known = [(constraint.variables, constraint.table) for constraint in self.constraints if constraint.variables]
        unproved = 0
        for name, rest, table in verdict.messages:
            scope = (name, *rest)
            if len(set(scope)) < len(scope) or table.shape != tuple(self.sizes.get(other) for other in rest):
                unproved += 1
                continue
            near = [(names, part) for names, part in known if name in names and set(names) <= set(scope)]
            excluded = np.flatnonzero(~table)
            for first in range(0, len(excluded), ROWS):
                some_rows = excluded[first : first + ROWS]
                _, *codes = np.unravel_index(some_rows, (1, *table.shape))
                at = dict(zip(rest, codes, strict=True))
                for code in range(self.sizes[name]):
                    at[name] = np.full(len(some_rows), code)
                    refuted = np.zeros(len(some_rows), dtype=bool)
                    for names, part in near:
                        refuted |= ~part[tuple(at[other] for other in names)]
                    unproved += int((~refuted).sum())
            known.append((rest, table))
        left = int(verdict.messages[-1].table.sum()) if verdict.messages and not empty else int(not empty)
        return [
            Check("messages", unproved, 0, "proof", "what a message excludes, constraints and messages before it exclude"),
            Check("exhausted", left, 0, "proof", "the last message excludes everything"),
        ]
