"""Factors in information form: exp(c − ½ xᵀJx + hᵀx), their products, what is seen of them, and integrals (see `gaussian`)."""

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.graphical.elimination import eliminate

LOG_2PI = np.log(2 * np.pi)
PIVOT = 16 * np.finfo(float).eps  # part of its diagonal below which a pivot is what rounding left of 0


class GaussianFactor(NamedTuple):
    """Keep exp(c − ½ xᵀJx + hᵀx) over named variables.

    Attributes
    ----------
    variables : Names.
    precision : J, with the entries of the variables in order.
    information : h.
    log_constant : c.
    sizes : Number of entries of each variable; default: equal parts of J.

    Examples
    --------
    >>> GaussianFactor(["x", "y"], [[1.0, -0.5], [-0.5, 1.0]], [0.0, 1.0]).variables
    ['x', 'y']
    """

    variables: tuple
    precision: np.ndarray
    information: np.ndarray
    log_constant: float = 0.0
    sizes: tuple | None = None


def linear_gaussian(variable, parents=None, offset=0.0, covariance=1.0):
    """Make the factor of a variable that depends linearly on others: y = Σ A x + b + noise, or of one that depends on none.

    Parameters
    ----------
    parents : {variable: A}, matrices; a number stands for that multiple of the identity.
    offset : b.
    covariance : Of the noise.

    Examples
    --------
    >>> linear_gaussian("y", {"x": 2.0}, covariance=0.5).precision
    array([[ 2., -4.],
           [-4.,  8.]])
    """
    R = np.atleast_2d(np.asarray(covariance, dtype=float))
    d = len(R)
    b = np.asarray(offset, dtype=float)
    if b.shape not in ((), (1,), (d,)) or not np.isfinite(b).all():
        raise ValueError(f"The offset of {variable!r} must be a finite number, or {d} of them, got {offset!r}.")
    b = np.broadcast_to(b, (d,))
    try:
        factored = cho_factor(_symmetric(R, f"The covariance of {variable!r}"), lower=True)
    except np.linalg.LinAlgError:
        raise ValueError(
            f"The covariance of {variable!r} is not positive definite; noise without a density has no J."
        ) from None
    blocks = [np.eye(d)]
    for name, A in (parents or {}).items():
        A = np.asarray(A, dtype=float)
        A = A * np.eye(d) if A.ndim == 0 else np.atleast_2d(A)
        if A.ndim != 2 or len(A) != d or A.size == 0:
            raise ValueError(f"The matrix from {name!r} to {variable!r} needs {d} rows, and has the shape {A.shape}.")
        if not np.isfinite(A).all():
            raise ValueError(f"The matrix from {name!r} to {variable!r} must have finite numbers.")
        blocks.append(-A)
    M = np.hstack(blocks)
    half, shift = cho_solve(factored, M), cho_solve(factored, b)
    constant = -0.5 * b @ shift - 0.5 * d * LOG_2PI - np.log(np.diagonal(factored[0])).sum()
    sizes = tuple(block.shape[1] for block in blocks)
    return GaussianFactor((variable, *(parents or {})), M.T @ half, M.T @ shift, float(constant), sizes)


def _symmetric(matrix, what):
    """Check a square symmetric matrix of finite numbers."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"{what} must be a square matrix of finite numbers.")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise ValueError(f"{what} must be symmetric.")
    return (matrix + matrix.T) / 2


class Step(NamedTuple):
    """What integrating one variable leaves: p(x_v | x_S) in factored form."""

    rest: tuple  # S, in the order of elimination
    factored: tuple  # Cholesky factor of J_vv
    gain: np.ndarray  # J_vv⁻¹ J_vS
    information: np.ndarray  # h_v


def checked(factor, m):
    """Check one factor: arrays of the right shapes, and sizes."""
    names = tuple(factor.variables)
    J = _symmetric(np.atleast_2d(np.asarray(factor.precision, dtype=float)), f"The precision of factor {m} over {list(names)}")
    h = np.atleast_1d(np.asarray(factor.information, dtype=float))
    if len(set(names)) < len(names) or not names:
        raise ValueError(f"Factor {m} needs at least one variable, and each once, got {list(names)}.")
    sizes = tuple(factor.sizes) if factor.sizes is not None else (len(J) // len(names),) * len(names)
    if not all(isinstance(size, Integral) and size > 0 for size in sizes):
        raise ValueError(f"The sizes of factor {m} over {list(names)} must be whole numbers of at least 1, got {list(sizes)}.")
    if sum(sizes) != len(J) or len(sizes) != len(names) or h.shape != (len(J),) or not np.isfinite(h).all():
        raise ValueError(
            f"Factor {m} over {list(names)} has a precision of {len(J)} rows, {h.size} numbers of information and the sizes "
            f"{list(sizes)}: these must agree."
        )
    if not np.isscalar(factor.log_constant) or not np.isfinite(factor.log_constant):
        raise ValueError(
            f"The log_constant of factor {m} over {list(names)} must be a finite number, got {factor.log_constant!r}."
        )
    return GaussianFactor(names, J, h, float(factor.log_constant), tuple(int(size) for size in sizes))


def condition(factor, unseen, values):
    """Clamp the entries of a factor that are seen."""
    keep = np.concatenate([unseen[name] for name in factor.variables])
    if keep.all():
        return factor
    x = np.concatenate([values[name] for name in factor.variables])[~keep]
    J, h = factor.precision, factor.information
    sizes = {name: int(unseen[name].sum()) for name in factor.variables}
    left = tuple(name for name in factor.variables if sizes[name])
    return GaussianFactor(
        left,
        J[np.ix_(keep, keep)],
        h[keep] - J[np.ix_(keep, ~keep)] @ x,
        float(factor.log_constant + h[~keep] @ x - 0.5 * x @ J[np.ix_(~keep, ~keep)] @ x),
        tuple(sizes[name] for name in left),
    )


def spans(names, sizes):
    """Give the slice of each variable in a vector of several."""
    ends = np.cumsum([sizes[name] for name in names])
    return {name: slice(int(end) - sizes[name], int(end)) for name, end in zip(names, ends, strict=True)}


def gather(names, sizes, factors):
    """Add factors into one J and h over the given variables."""
    at = spans(names, sizes)
    n = sum(sizes[name] for name in names)
    J, h = np.zeros((n, n)), np.zeros(n)
    for factor in factors:
        index = np.concatenate([np.arange(at[name].start, at[name].stop) for name in factor.variables])
        J[np.ix_(index, index)] += factor.precision
        h[index] += factor.information
    return J, h


def integrate(J, h, d, name, diagonal):
    """Integrate the first d entries out: the factored block, its gain, and J, h and c of what is left.

    `diagonal` is that of all factors: a pivot that is all but 0 beside it is rounding, not information.
    """
    try:
        factored = cho_factor(J[:d, :d], lower=True)
        positive = (np.diagonal(factored[0]) ** 2 > PIVOT * diagonal).all()
    except np.linalg.LinAlgError:
        positive = False
    if not positive:
        raise ValueError(
            f"The factors have no finite integral over {name!r}: the precision is not positive definite there, so nothing ties "
            "the variable down; add a prior or an observation."
        )
    gain, mean = cho_solve(factored, J[:d, d:]), cho_solve(factored, h[:d])
    constant = 0.5 * (h[:d] @ mean + d * LOG_2PI) - np.log(np.diagonal(factored[0])).sum()
    rest = J[d:, d:] - J[d:, :d] @ gain
    return factored, gain, ((rest + rest.T) / 2, h[d:] - J[d:, :d] @ mean, float(constant))


class Problem:
    """Factors with the evidence put in, over the entries that are not seen."""

    def __init__(self, graph, evidence):
        self.values = {name: np.full(size, np.nan) for name, size in graph.sizes.items()}
        for name, value in (evidence or {}).items():
            if name not in graph.sizes:
                raise ValueError(f"There is evidence for {name!r}, which is in no factor.")
            value = np.atleast_1d(np.asarray(value, dtype=float))
            if value.shape != (graph.sizes[name],) or np.isinf(value).any():
                raise ValueError(f"The evidence for {name!r} must be {graph.sizes[name]} finite numbers (NaN where not seen).")
            self.values[name] = value
        unseen = {name: np.isnan(value) for name, value in self.values.items()}
        self.free = {name: np.flatnonzero(entries) for name, entries in unseen.items()}
        self.factors = [condition(factor, unseen, self.values) for factor in graph.factors]
        self.sizes = {name: len(entries) for name, entries in self.free.items() if len(entries)}
        self.diagonal = {name: np.zeros(size) for name, size in self.sizes.items()}
        for factor in self.factors:
            for name, at in spans(factor.variables, self.sizes).items():
                self.diagonal[name] += np.abs(np.diagonal(factor.precision)[at])

    def graph(self):
        """Give the neighbors of each variable."""
        near = {name: {} for name in self.sizes}
        for factor in self.factors:
            for name in factor.variables:
                near[name].update(dict.fromkeys(other for other in factor.variables if other != name))
        return near

    def eliminate(self, order):
        """Integrate the variables one after another: {variable: Step}, in that order, and log Z."""
        order = eliminate(self.graph(), order).order
        rank = {name: i for i, name in enumerate(order)}
        waiting = {name: [] for name in order}
        constant = sum(factor.log_constant for factor in self.factors)
        for factor in self.factors:
            if factor.variables:
                waiting[min(factor.variables, key=rank.get)].append(factor)
        steps = {}
        for name in order:
            factors = waiting.pop(name)
            scope = sorted({other for factor in factors for other in factor.variables} | {name}, key=rank.get)
            J, h = gather(scope, self.sizes, factors)
            d, rest = self.sizes[name], tuple(scope[1:])
            factored, gain, (left, information, c) = integrate(J, h, d, name, self.diagonal[name])
            constant += c
            if rest:
                waiting[rest[0]].append(GaussianFactor(rest, left, information))
            steps[name] = Step(rest, factored, gain, h[:d])
        return steps, float(constant)


def block_of(covariance, names, wanted, sizes):
    """Pick the rows and columns of some variables."""
    at = spans(names, sizes)
    index = np.concatenate([np.arange(at[name].start, at[name].stop) for name in wanted])
    return covariance[np.ix_(index, index)]
