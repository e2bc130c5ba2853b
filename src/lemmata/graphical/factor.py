"""`Factor`: a table over a few discrete variables, the only thing that graphical models multiply and sum.

    (f · g)(x) = f(x_f) g(x_g)        (Σ f)(x_keep) = Σ_{x_rest} f(x)        (max f)(x_keep) = max_{x_rest} f(x)

A factor knows the names of its axes, so that a product needs no agreement on their order. Its values are kept as numbers or,
where these would run out of the range of floats, as logarithms; the operations mean the same in both.
"""

from math import prod
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp


class Factor:
    """Keep a table of non-negative numbers, one axis for each of its variables.

    Parameters
    ----------
    variables : Names of the axes: anything that can be the key of a dictionary.
    values : Table with an axis for each variable.
    log : Whether the values are logarithms.

    Examples
    --------
    >>> rain = Factor(["rain"], [0.8, 0.2])
    >>> wet = Factor(["rain", "grass"], [[0.9, 0.1], [0.05, 0.95]])
    >>> (rain * wet).marginal(["grass"]).values
    array([0.73, 0.27])
    >>> wet.given({"grass": 1}).values
    array([0.1 , 0.95])
    """

    def __init__(self, variables, values, *, log=False):
        self.variables = tuple(variables)
        self.values = np.array(values, dtype=float)  # a copy: what the caller does with the original changes nothing here
        self.log = bool(log)
        if len(set(self.variables)) < len(self.variables):
            raise ValueError(f"A factor has each of its variables once, and {list(self.variables)} repeats one.")
        if self.values.ndim != len(self.variables):
            raise ValueError(
                f"A factor over {len(self.variables)} variables needs a table with as many axes, and this one has "
                f"{self.values.ndim}."
            )
        if 0 in self.values.shape:
            raise ValueError(f"Every variable of {list(self.variables)} needs at least one state.")
        least, most = self.values.min(), self.values.max()  # NaN if there is one
        if not (most < np.inf and (log or least >= 0)) or np.isnan(least):
            what = "logarithms below infinity" if log else "finite and not negative"
            raise ValueError(f"The values of the factor over {list(self.variables)} must be {what}.")

    @property
    def shape(self):
        """Number of states of each variable."""
        return self.values.shape

    def __repr__(self):
        axes = ", ".join(f"{name}: {size}" for name, size in zip(self.variables, self.shape, strict=True))
        return f"Factor({{{axes}}}{', log=True' if self.log else ''})"

    def _with(self, variables, values):
        """Make a factor of values that need no checking."""
        made = object.__new__(Factor)
        made.variables, made.values, made.log = tuple(variables), values, self.log
        return made

    def as_log(self):
        """Give the same factor with logarithms for values."""
        if self.log:
            return self
        made = self._with(self.variables, _log(self.values))
        made.log = True
        return made

    def as_linear(self):
        """Give the same factor with plain values; those beyond the range of floats become 0 or infinite."""
        if not self.log:
            return self
        made = self._with(self.variables, np.exp(self.values))
        made.log = False
        return made

    def _aligned(self, variables):
        """Give the values with axes in the order of `variables`, of length 1 where there is no such axis."""
        places = {name: i for i, name in enumerate(self.variables)}
        there = [name for name in variables if name in places]
        values = self.values.transpose([places[name] for name in there])
        sizes = iter(values.shape)
        return values.reshape([next(sizes) if name in places else 1 for name in variables])

    def __mul__(self, other):
        if not isinstance(other, Factor):
            return NotImplemented
        if self.log != other.log:
            return self.as_log() * other.as_log()
        sizes = dict(zip(self.variables, self.shape, strict=True))
        for name, size in zip(other.variables, other.shape, strict=True):
            if sizes.setdefault(name, size) != size:
                raise ValueError(f"The variable {name!r} has {sizes[name]} states in one factor and {size} in another.")
        a, b = self._aligned(sizes), other._aligned(sizes)
        return self._with(sizes, a + b if self.log else a * b)

    def _over(self, keep):
        keep = tuple(keep)
        if len(set(keep)) < len(keep):
            raise ValueError(f"Name each variable once, got {list(keep)}.")
        unknown = [name for name in keep if name not in self.variables]
        if unknown:
            raise ValueError(f"The factor over {list(self.variables)} has no variable {unknown[0]!r}.")
        gone = tuple(i for i, name in enumerate(self.variables) if name not in keep)
        left = [name for name in self.variables if name in keep]
        return keep, left, gone

    def marginal(self, variables):
        """Sum over all other variables; the axes come in the order asked for."""
        keep, left, gone = self._over(variables)
        values = logsumexp(self.values, axis=gone) if self.log and gone else self.values.sum(axis=gone)
        return self._with(left, np.asarray(values))._ordered(keep)

    def maximum(self, variables):
        """Maximize over all other variables."""
        keep, left, gone = self._over(variables)
        return self._with(left, np.asarray(self.values.max(axis=gone)))._ordered(keep)

    def _ordered(self, variables):
        return self._with(variables, self._aligned(variables))

    def given(self, codes):
        """Clamp variables to the numbers of their states, and drop their axes."""
        index = tuple(codes.get(name, slice(None)) for name in self.variables)
        return self._with([name for name in self.variables if name not in codes], np.asarray(self.values[index]))

    def total(self):
        """Give the logarithm of the sum of all values."""
        return float(logsumexp(self.values)) if self.log else float(_log(self.values.sum()))

    def strain(self):
        """Give the logarithm of how far apart the positive values lie."""
        logs = self.as_log().values
        alive = logs[logs > -np.inf]
        return float(np.ptp(alive)) if alive.size else 0.0

    def normalized(self):
        """Divide by the sum."""
        total = self.total()
        if not np.isfinite(total):
            raise ValueError(f"The factor over {list(self.variables)} has no mass to divide by.")
        return self._with(self.variables, self.values - total if self.log else self.values / self.values.sum())


def _log(values):
    """Take logarithms, of 0 as well."""
    with np.errstate(divide="ignore"):
        return np.log(values)


class Layout(NamedTuple):
    """A model as flat arrays: what every kernel of this package reads. Variables are numbers from 0.

    Attributes
    ----------
    cards : (n,), number of states of each variable.
    scope_starts, scopes : Variables of factor m are scopes[scope_starts[m] : scope_starts[m + 1]].
    table_starts, tables : Its values, in C order, are tables[table_starts[m] : table_starts[m + 1]], divided by a scale.
    log_scale : Logarithm of the product of all scales.
    """

    cards: np.ndarray
    scope_starts: np.ndarray
    scopes: np.ndarray
    table_starts: np.ndarray
    tables: np.ndarray
    log_scale: float


def lay_out(factors, numbers, cards):
    """Write factors into flat arrays.

    Parameters
    ----------
    numbers : {variable: its number}.
    cards : Number of states of each variable, in the order of the numbers.

    Examples
    --------
    >>> layout = lay_out([Factor(["b", "a"], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])], {"a": 0, "b": 1}, [2, 3])
    >>> layout.scopes, layout.tables
    (array([1, 0]), array([1., 2., 3., 4., 5., 6.]))
    """
    scopes, tables, log_scale = [], [], 0.0
    for factor in factors:
        scopes.append([numbers[name] for name in factor.variables])
        values = factor.values
        if factor.log:  # the largest becomes 1
            peak = float(values.max())
            peak = peak if np.isfinite(peak) else 0.0
            log_scale += peak
            values = np.exp(values - peak)
        tables.append(values.ravel())
    return Layout(
        np.asarray(cards, dtype=np.int64),
        starts_of([len(scope) for scope in scopes]),
        np.array([v for scope in scopes for v in scope], dtype=np.int64),
        starts_of([len(table) for table in tables]),
        np.concatenate(tables) if tables else np.empty(0),
        log_scale,
    )


def starts_of(lengths):
    """Give where each of several stretches begins, and the end of the last.

    >>> starts_of([2, 3])
    array([0, 2, 5])
    """
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def enumerate_joint(factors, variables):
    """Multiply factors into one table over all variables: the reference for everything else, on small models.

    Examples
    --------
    >>> joint = enumerate_joint([Factor(["a"], [1.0, 3.0]), Factor(["a", "b"], [[1.0, 1.0], [0.0, 1.0]])], ["a", "b"])
    >>> joint.values
    array([[1., 1.],
           [0., 3.]])
    """
    sizes = {name: size for factor in factors for name, size in zip(factor.variables, factor.shape, strict=True)}
    if prod(sizes[name] for name in variables) > MOST_STATES:
        raise ValueError(f"The joint of {len(variables)} variables has more than {MOST_STATES:,} entries; use a junction tree.")
    joint = Factor(variables, np.ones([sizes[name] for name in variables]))
    for factor in factors:
        joint = joint * factor
    return joint._ordered(variables)


MOST_STATES = 1 << 22  # 32 MiB
