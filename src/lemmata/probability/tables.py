"""Finite joint distributions as tables with named axes.

A table p(x, y, …) ≥ 0 with Σ p = 1 says all there is to say of finitely many variables with finitely many values each:

marginal      P(x) = Σ_y P(x, y), in any order of summation
conditional   P(x | y) = P(x, y) / P(y), a definition that needs P(y) > 0
product       P(x, y) = P(x | y) P(y), whence the total probability P(x) = Σ_y P(x | y) P(y)
expectation   E f = Σ p f, linear whether the variables are independent or not; E[E[f | X]] = E f
covariance    Cov(f, g) = E (f − E f)(g − E g); its matrix is symmetric and positive semidefinite

X₁, …, X_k are independent if P(x₁, …, x_k) = P(x₁) ⋯ P(x_k) in every cell. That every pair is independent is less: two fair
bits and their exclusive or are pairwise independent, and any two of them determine the third. Zero covariance is less still.
"""

from collections.abc import Mapping
from itertools import product

import numpy as np

from lemmata.core.random import generator
from lemmata.probability.arrays import axes_of, check_probabilities


def total_probability(prior, conditional):
    """Return P(x) = Σ_w P(w) P(x | w).

    Parameters
    ----------
    prior : P(w), (k,).
    conditional : P(x | w), (k, …); each row sums to one.

    Examples
    --------
    >>> total_probability([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]])
    array([0.55, 0.45])
    """
    return JointTable.from_conditional(prior, conditional).p.sum(axis=tuple(range(np.ndim(prior))))


class JointTable:
    """A joint distribution of variables with finitely many values.

    Parameters
    ----------
    p : Probabilities, one axis for each variable.
    names : Names of the variables; "x0", "x1", … if missing.
    values : For each variable the values it takes, as a mapping from names or in the order of the axes; 0, 1, … where missing.

    Attributes
    ----------
    p, names, values : As given; `values` maps each name to a list. NumPy takes the table for the array `p`.

    Examples
    --------
    >>> weather = JointTable([[0.27, 0.03], [0.28, 0.42]], ["sky", "cloud"], [["rain", "dry"], ["gray", "blue"]])
    >>> weather.marginal("cloud").p
    array([0.55, 0.45])
    >>> weather.condition(cloud="gray").probability(sky="rain")
    0.4909
    """

    def __init__(self, p, names=None, values=None):
        self.p = check_probabilities(p)
        self.p.flags.writeable = False
        ndim = self.p.ndim
        self.names = (
            tuple(f"x{i}" for i in range(ndim)) if names is None else (names,) if isinstance(names, str) else tuple(names)
        )
        if len(self.names) != ndim or len(set(self.names)) != ndim or not all(isinstance(name, str) for name in self.names):
            raise ValueError(f"There must be {ndim} different names, one string for each axis; got {list(self.names)}.")
        if values is None or isinstance(values, Mapping):
            unknown = set(values or ()) - set(self.names)
            if unknown:
                raise ValueError(f"There are values of {sorted(unknown)}, and variables {list(self.names)}.")
            values = [(values or {}).get(name) for name in self.names]
        if len(values) != ndim:
            raise ValueError(f"There must be values for each of {ndim} variables; got {len(values)} lists.")
        self.values = {}
        for name, given, k in zip(self.names, values, self.p.shape, strict=True):
            listed = list(range(k)) if given is None else np.asarray(given).tolist()
            if len(listed) != k or len(set(listed)) != k:
                raise ValueError(f"{name} must have {k} different values, one for each place on its axis; got {listed}.")
            self.values[name] = listed

    @classmethod
    def from_counts(cls, counts, names=None, values=None):
        """Divide counts by their sum.

        Examples
        --------
        >>> JointTable.from_counts([[3, 1], [0, 4]]).p
        array([[0.375, 0.125], [0. , 0.5 ]])
        """
        counts = np.asarray(counts, dtype=float)
        if not ((counts >= 0).all() and 0 < counts.sum() < np.inf):
            raise ValueError("Counts must be at least 0, finite, and not all 0.")
        return cls(counts / counts.sum(), names, values)

    @classmethod
    def from_samples(cls, /, **columns):
        """Count how often values occur together; columns of equal length, named.

        Examples
        --------
        >>> JointTable.from_samples(x=["a", "b", "a", "a"], y=[0, 1, 1, 0]).p
        array([[0.5 , 0.25], [0. , 0.25]])
        """
        if not columns or len({len(column) for column in columns.values()}) > 1:
            raise ValueError("There must be at least one column of samples, and all must have the same length.")
        values, places = zip(*(np.unique(column, return_inverse=True) for column in columns.values()), strict=True)
        shape = tuple(len(v) for v in values)
        counts = np.bincount(np.ravel_multi_index(places, shape), minlength=int(np.prod(shape)))
        return cls.from_counts(counts.reshape(shape), columns, values)

    @classmethod
    def from_conditional(cls, prior, conditional, names=None, values=None):
        """Multiply P(w) and P(x | w), the product rule; w is the first axis.

        Examples
        --------
        >>> JointTable.from_conditional([0.3, 0.7], [[0.9, 0.1], [0.4, 0.6]]).p
        array([[0.27, 0.03], [0.28, 0.42]])
        """
        prior, conditional = check_probabilities(prior), np.asarray(conditional)
        if conditional.shape[: prior.ndim] != prior.shape or conditional.ndim == prior.ndim:
            raise ValueError(f"P(x | w) must have the shape {prior.shape} of P(w) and then that of x; got {conditional.shape}.")
        conditional = check_probabilities(conditional, tuple(range(prior.ndim, conditional.ndim)))
        return cls(prior.reshape(prior.shape + (1,) * (conditional.ndim - prior.ndim)) * conditional, names, values)

    @classmethod
    def independent(cls, /, **marginals):
        """Multiply marginals: the joint distribution of independent variables.

        Examples
        --------
        >>> JointTable.independent(x=[0.5, 0.5], y=[0.25, 0.75]).p
        array([[0.125, 0.375], [0.125, 0.375]])
        """
        p = np.ones(())
        for marginal in marginals.values():
            p = np.multiply.outer(p, check_probabilities(marginal))
        return cls(p, marginals)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.p, dtype=dtype)

    def __repr__(self):
        sizes = ", ".join(f"{name}: {k}" for name, k in zip(self.names, self.p.shape, strict=True))
        return f"<JointTable {sizes}>"

    def _summed(self, cells, axes):
        """Return the sum of an array like p over all axes but these, which come in this order."""
        kept = sorted(axes)
        return cells.sum(axis=tuple(i for i in range(self.p.ndim) if i not in axes)).transpose([kept.index(i) for i in axes])

    def _place(self, name, value):
        axes_of(self, name)
        if value not in self.values[name]:
            raise ValueError(f"{name} is never {value!r}; it is one of {self.values[name]}.")
        return self.values[name].index(value)

    def marginal(self, names):
        """Return the table of some variables, in the order given."""
        axes = axes_of(self, names)
        names = [self.names[i] for i in axes]
        return JointTable(self._summed(self.p, axes), names, {name: self.values[name] for name in names})

    def probability(self, /, **event):
        """Return the probability that variables have the values given."""
        places = tuple(self._place(name, value) for name, value in event.items())
        return float(self._summed(self.p, axes_of(self, event))[places])

    def condition(self, /, **evidence):
        """Return the table of the other variables, given that these have the values given."""
        chosen = {axes_of(self, name)[0]: self._place(name, value) for name, value in evidence.items()}
        p = self.p[tuple(chosen.get(i, slice(None)) for i in range(self.p.ndim))]
        if np.ndim(p) == 0:
            raise ValueError("The evidence names every variable, and none is left to have a distribution.")
        if not p.sum() > 0:
            raise ValueError(f"The evidence {evidence} has probability 0: nothing can be conditioned on it.")
        rest = [name for i, name in enumerate(self.names) if i not in chosen]
        return JointTable(p / p.sum(), rest, {name: self.values[name] for name in rest})

    def conditional(self, names, given):
        """Return P(names | given), an array: first the axes of `given`, then those of `names`, over which it sums to one."""
        given, names = axes_of(self, given), axes_of(self, names)
        p = self._summed(self.p, axes_of(self, given + names))
        condition = p.sum(axis=tuple(range(len(given), p.ndim)), keepdims=True)
        self._refuse_impossible(condition, given)
        return p / condition

    def _refuse_impossible(self, condition, given):
        if (condition == 0).any():
            place = np.argwhere(condition == 0)[0]
            case = {self.names[i]: self.values[self.names[i]][j] for i, j in zip(given, place, strict=False)}
            raise ValueError(f"The condition {case} has probability 0: nothing can be conditioned on it.")

    def _evaluated(self, f):
        """Return f, a function of all values or a name, in each cell; 0 where the probability is 0, whatever f is there."""
        if isinstance(f, str):
            place = axes_of(self, f)[0]
            return self._evaluated(lambda *cell: cell[place])
        result = np.zeros(self.p.shape)
        for cell, values in zip(np.ndindex(*self.p.shape), product(*self.values.values()), strict=True):
            if self.p[cell] > 0:
                result[cell] = f(*values)
        return result

    def expectation(self, f):
        """Return E f, f a function of the values of all variables in order, or the name of one.

        Examples
        --------
        >>> dice = JointTable(np.full((6, 6), 1 / 36), ["x", "y"], [range(1, 7), range(1, 7)])
        >>> dice.expectation("x"), dice.expectation(lambda x, y: x * y)
        (3.5, 12.25)
        """
        return float((self.p * self._evaluated(f)).sum())

    def conditional_expectation(self, f, given):
        """Return E[f | given], an array with one axis for each variable of `given`."""
        given = axes_of(self, given)
        condition = self._summed(self.p, given)
        self._refuse_impossible(condition, given)
        return self._summed(self.p * self._evaluated(f), given) / condition

    def var(self, f):
        """Return the variance of f, a function or a name."""
        return self.cov(f, f)

    def cov(self, f, g):
        """Return the covariance of f and g, functions or names.

        Examples
        --------
        >>> JointTable([[0, 0.25], [0.5, 0], [0, 0.25]], ["x", "y"], [[-1, 0, 1], [0, 1]]).cov("x", "y")  # y = x²
        0.0
        """
        f, g = self._evaluated(f), self._evaluated(g)
        return float((self.p * (f - (self.p * f).sum()) * (g - (self.p * g).sum())).sum())

    def covariance(self, names=None):
        """Return the covariance matrix of some variables, of all if None."""
        axes = axes_of(self, self.names if names is None else names)
        columns = np.array([self._evaluated(self.names[i]).ravel() for i in axes])
        weights = self.p.ravel()
        centered = (columns - (columns @ weights)[:, None]) * np.sqrt(weights)
        return centered @ centered.T

    def dependence(self, /, *groups, given=()):
        """Return max |P(a, b, … | c) − P(a | c) P(b | c) ⋯| over all cells with P(c) > 0; zero if independent.

        Parameters
        ----------
        groups : Each a name or several; all variables but those of `given`, one by one, if missing.
        given : The condition c: a name or several.

        Examples
        --------
        >>> xor = JointTable([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]], ["x", "y", "z"])
        >>> xor.dependence("x", "y"), xor.dependence("x", "z"), xor.dependence("y", "z"), xor.dependence("x", "y", "z")
        (0.0, 0.0, 0.0, 0.125)
        >>> xor.dependence("x", "y", given="z")
        0.25
        """
        given = axes_of(self, given)
        groups = [axes_of(self, group) for group in groups] or [(i,) for i in range(self.p.ndim) if i not in given]
        axes = axes_of(self, [*given, *(i for group in groups for i in group)])  # refuses a variable in two groups
        sizes = [int(np.prod([self.p.shape[i] for i in part], dtype=int)) for part in (given, *groups)]
        p = self._summed(self.p, axes).reshape(sizes)
        condition = p.reshape(len(p), -1).sum(axis=1)
        p = p[condition > 0] / condition[condition > 0].reshape(-1, *[1] * len(groups))
        factors = np.ones_like(p)
        for j in range(1, p.ndim):
            factors = factors * p.sum(axis=tuple(i for i in range(1, p.ndim) if i != j), keepdims=True)
        return float(np.abs(p - factors).max())

    def is_independent(self, /, *groups, given=(), tol=1e-12):
        """Tell whether the `dependence` of the groups is at most `tol`."""
        return self.dependence(*groups, given=given) <= tol

    def sample(self, n, random_state=None):
        """Draw n cells; return the columns of their values by name, as `from_samples` takes them."""
        cells = generator(random_state).choice(self.p.size, size=n, p=self.p.ravel() / self.p.sum())
        places = np.unravel_index(cells, self.p.shape)
        return {name: np.asarray(self.values[name])[place] for name, place in zip(self.names, places, strict=True)}
