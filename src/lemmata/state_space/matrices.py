"""The matrices of a model and the series they are about: checked once, and given to the kernels in one shape.

A matrix that varies with time has a first axis of time, one entry for each row of a series. A number stands for that multiple
of the identity. Series come one by one (rows × outputs), as an array (series × rows × outputs), or as a list of tables of any
lengths; inside they lie one after the other.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.data import as_matrix
from lemmata.state_space.kernels import System, decorrelate

NEGATIVE = 1e-10  # eigenvalue of a matrix of correlations below minus this is no rounding


class Matrices(NamedTuple):
    """The parameters of a model; those with a first axis of time have three axes."""

    transition: np.ndarray  # (n, n)
    observation: np.ndarray  # (p, n)
    transition_covariance: np.ndarray  # (n, n)
    observation_covariance: np.ndarray  # (p, p)
    initial_mean: np.ndarray  # (n,)
    initial_covariance: np.ndarray  # (n, n)
    control: np.ndarray  # (n, k)
    feedthrough: np.ndarray  # (p, k)


COVARIANCES = ("transition_covariance", "observation_covariance", "initial_covariance")


def check_matrices(given):
    """Turn what was given, by name, into `Matrices`, or say what does not fit."""
    observation = _array("observation", given["observation"])
    observation = observation.reshape(1, 1) if observation.ndim == 0 else observation
    if observation.ndim not in (2, 3) or 0 in observation.shape:
        raise ValueError(f"observation must be outputs × states, or time × outputs × states; its shape is {observation.shape}.")
    p, n = observation.shape[-2:]
    k = max((np.shape(given[name])[-1] for name in ("control", "feedthrough") if np.ndim(given[name])), default=0)
    shapes = {
        "transition": (n, n),
        "transition_covariance": (n, n),
        "observation_covariance": (p, p),
        "initial_covariance": (n, n),
        "control": (n, k),
        "feedthrough": (p, k),
    }
    found = {"observation": observation}
    for name, shape in shapes.items():
        value = np.zeros(shape) if given[name] is None else _array(name, given[name])
        if value.ndim == 0 and shape[0] == shape[1]:
            value = value * np.eye(n if shape == (n, n) else p)
        varies = value.ndim == 3 and name != "initial_covariance"
        if value.shape[-2:] != shape or value.ndim != 2 + varies or len(value) == 0:
            raise ValueError(
                f"{name} must have the shape {shape}{'' if name == 'initial_covariance' else ', after time if it varies,'} "
                f"to go with an observation matrix of {p} outputs and {n} states; its shape is {value.shape}."
            )
        found[name] = _covariance(name, value) if name in COVARIANCES else value
    mean = _array("initial_mean", given["initial_mean"])
    if mean.shape not in ((), (n,)):
        raise ValueError(f"initial_mean must be a number or a vector of {n} states; its shape is {mean.shape}.")
    found["initial_mean"] = np.broadcast_to(mean, (n,)).copy()
    return Matrices(**found)


def _array(name, value):
    """Turn a parameter into finite numbers."""
    value = np.array(value, dtype=float, order="C")
    if not np.isfinite(value).all():
        raise ValueError(f"{name} must hold finite numbers.")
    return value


def _covariance(name, P):
    """Check that matrices are symmetric and have no negative eigenvalue beyond rounding, in units of their diagonal."""
    variances = np.diagonal(P, axis1=-2, axis2=-1)
    scale = np.sqrt(np.where(variances > 0, variances, 1.0))
    C = P / scale[..., :, None] / scale[..., None, :]
    if np.abs(C - np.swapaxes(C, -1, -2)).max() > NEGATIVE:
        raise ValueError(f"{name} must be symmetric.")
    P, C = (P + np.swapaxes(P, -1, -2)) / 2, (C + np.swapaxes(C, -1, -2)) / 2
    least = np.linalg.eigvalsh(C).min() if np.isfinite(C).all() else -np.inf
    if (variances < 0).any() or least < -NEGATIVE * P.shape[-1]:
        raise ValueError(f"{name} must be positive semidefinite: its correlations have the eigenvalue {least:.3g}.")
    return P


def half(P):
    """Factor covariances as LLᵀ; a column of L is zero where the pivot is."""
    stack = P.reshape(-1, *P.shape[-2:])
    n, out, nothing = P.shape[-1], np.zeros(stack.shape), np.empty((P.shape[-1], 0))
    for L, matrix in zip(out, stack, strict=True):
        U, v = np.eye(n), np.empty(n)
        decorrelate(matrix, nothing, np.arange(n), n, U, v, nothing)
        L[:] = U * np.sqrt(v)
    return out.reshape(P.shape)


def system_of(m):
    """Give the matrices to the kernels."""
    stacked = [np.ascontiguousarray(a if a.ndim == 3 else a[None]) for a in (m.transition, half(m.transition_covariance))]
    stacked += [np.ascontiguousarray(a if a.ndim == 3 else a[None]) for a in (m.observation, m.observation_covariance)]
    return System(*stacked, m.initial_mean.copy(), half(m.initial_covariance))


class Series(NamedTuple):
    """Some series, one after the other, with their inputs."""

    rows: np.ndarray  # (rows of all, p)
    starts: np.ndarray  # (series + 1,) where each begins, and the end
    inputs: np.ndarray  # (rows of all, k)
    kind: str  # "one", "stack" or "list"

    @property
    def lengths(self):
        """Rows of each series."""
        return np.diff(self.starts)

    def shaped(self, *arrays):
        """Cut arrays over all rows as the series were given; return a tuple for one, and a list of tuples for a list."""
        if self.kind == "one":
            return arrays
        if self.kind == "stack":
            return tuple(a.reshape(len(self.lengths), -1, *a.shape[1:]) for a in arrays)
        cuts = list(zip(self.starts[:-1], self.starts[1:], strict=True))
        return [tuple(a[i:j] for a in arrays) for i, j in cuts]

    def offsets(self, m):
        """Give what the inputs add to the states, or no rows, and the rows without what they add to the outputs."""
        if m.control.shape[-1] == 0:
            return np.empty((0, len(m.initial_mean))), self.rows
        time = self.time()
        shift = _by_row(m.control, self.inputs, time)
        return shift, self.rows - _by_row(m.feedthrough, self.inputs, time)

    def time(self):
        """Number each row within its series."""
        return np.arange(len(self.rows)) - np.repeat(self.starts[:-1], self.lengths)


def _by_row(matrix, inputs, time):
    """Multiply the inputs of each row by a matrix, which may be that of its time."""
    if matrix.ndim == 2:
        return inputs @ matrix.T
    return np.einsum("tik,tk->ti", matrix[time], inputs)


def check_series(X, inputs, m):
    """Read series and inputs in any of their forms, or say what does not fit the matrices."""
    p, k = m.observation.shape[-2], m.control.shape[-1]
    tables, kind = _tables(X, p, "X")
    if inputs is None and k:
        raise ValueError(f"The model has {k} inputs: give `inputs`, with one row for each row of X.")
    if inputs is not None and not k:
        raise ValueError("Inputs were given, but the model has neither a control nor a feedthrough matrix.")
    driven = [np.empty((len(table), 0)) for table in tables]
    if k:
        driven, form = _tables(inputs, k, "inputs")
        driven = driven * len(tables) if form == "one" else driven  # the same inputs for every series
        if [len(a) for a in driven] != [len(a) for a in tables]:
            raise ValueError(f"inputs have {[len(a) for a in driven]} rows and X has {[len(a) for a in tables]}.")
        if not all(np.isfinite(a).all() for a in driven):
            raise ValueError("inputs must be known: they hold NaN or infinity.")
    if any(np.isinf(table).any() for table in tables):
        raise ValueError("X contains infinity; a missing entry is NaN.")
    longest = max(len(table) for table in tables)
    for name, matrix in m._asdict().items():
        if matrix.ndim == 3 and len(matrix) < longest:
            raise ValueError(f"{name} is given for {len(matrix)} times, and the longest series has {longest} rows.")
    starts = np.concatenate([[0], np.cumsum([len(table) for table in tables])]).astype(np.int64)
    return Series(np.concatenate(tables), starts, np.concatenate(driven), kind)


def _tables(X, width, name):
    """List the tables of one or many series, as numbers in rows."""
    many = isinstance(X, list | tuple) and len(X) > 0 and (np.ndim(X[0]) == 2 or hasattr(X[0], "columns"))
    if many:
        tables, kind = list(X), "list"
    else:
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        axes = getattr(X, "ndim", 2)
        tables, kind = (list(X), "stack") if axes == 3 else ([X], "one")
        if axes == 1 and width == 1 and not hasattr(X, "columns"):
            tables = [np.asarray(X)[:, None]]  # a single output needs no second axis
    tables = [np.ascontiguousarray(as_matrix(table)[0], dtype=float) for table in tables]
    if not tables or any(len(table) == 0 for table in tables):
        raise ValueError(f"{name} must have at least one series of at least one row.")
    wrong = next((table.shape for table in tables if table.shape[1] != width), None)
    if wrong is not None:
        raise ValueError(f"{name} must have {width} columns to go with the matrices, but a table has the shape {wrong}.")
    return tables, kind
