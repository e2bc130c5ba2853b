"""Coordinate descent: minimize over one group of variables after the other, the rest held fixed.

A sweep visits every group once. No visit raises the objective, so the values fall monotonically; where every group is at its
minimum given the others, a smooth convex function is at its minimum too (a merely continuous one need not be) [1]. k-means,
expectation maximization, alternating least squares and the lasso's solver are all of this kind.
`block_descent` takes the groups' own minimizers; `coordinate_step` needs gradients only, and searches along each coordinate
by the step that a secant of the slope calls exact.

[1] Tseng, J. Optim. Theory Appl. 109 (2001).
"""

import numpy as np

from lemmata.core.iterate import ROUNDING, MonotonicityError
from lemmata.optimize.conjugate import CURVATURE, secant
from lemmata.optimize.line_search import LineSearchError, search
from lemmata.optimize.minimum import drive, finite_start


def coordinate_start(fun, x):
    """Evaluate the objective at the start; the first trial along each coordinate has the length 1."""
    value, gradient = fun(x)
    return x, value, gradient, np.ones(len(x))


def coordinate_step(fun, state):
    """Sweep once over the coordinates; return (state, value, residual).

    The state is (x, value, gradient, length of the last move along each coordinate). Where no coordinate can move, it stays.
    """
    x, value, gradient, moves = state
    moves = moves.copy()
    for i in range(len(x)):
        direction = np.zeros(len(x))
        direction[i] = -np.sign(gradient[i])
        if gradient[i] == 0:
            continue
        try:
            first = secant(fun, x, gradient, direction, moves[i])
            point = search(fun, x, value, gradient, direction, first, CURVATURE)
        except LineSearchError:
            continue
        x, value, gradient, moves[i] = point
    if x is state[0]:
        return state, value, float(np.abs(gradient).max())
    return (x, value, gradient, moves), value, float(np.abs(gradient).max())


def block_start(f, x):
    """Evaluate the objective at the start; no block has been visited."""
    return x, float(f(x)), None, ()


def block_step(f, state, updates):
    """Apply the minimizer of each block in turn; return (state, value, largest move of an entry).

    The state is (x, value, None, values after each block).

    Parameters
    ----------
    updates : Functions of x that return x with one block at its minimum given the others.

    Raises
    ------
    MonotonicityError : A block raised the objective by more than rounding, so it was not minimized.

    Examples
    --------
    >>> def f(x):
    ...     return float((x[0] - 1) ** 2 + (x[1] - x[0]) ** 2)
    >>> updates = [lambda x: np.array([(1 + x[1]) / 2, x[1]]), lambda x: np.array([x[0], x[0]])]
    >>> block_step(f, block_start(f, np.zeros(2)), updates)
    ((array([0.5, 0.5]), 0.25, None, (0.5, 0.25)), 0.25, 0.5)
    """
    start, value, _, _ = state
    x, values = start, []
    for i, update in enumerate(updates):
        x = np.array(update(x.copy()), dtype=float)
        if x.shape != start.shape:
            raise ValueError(f"Update {i} returned the shape {x.shape}, x has {start.shape}.")
        following = float(f(x))
        if not following - value <= ROUNDING * max(abs(following), abs(value)):
            raise MonotonicityError(f"Block {i} raised the objective from {value:.17g} to {following:.17g}.")
        value = following
        values.append(value)
    return (x, value, None, tuple(values)), value, float(np.abs(x - start).max())


def block_descent(f, x0, updates, *, max_iter=1000, tol=1e-8, verbose=0, callbacks=(), checkpoint=None, keep=False):
    """Minimize a function by the exact minimizers of groups of its variables, in turn.

    Parameters
    ----------
    updates : Functions of x that return x with one group of entries at its minimum given the others.
    tol : Largest move of an entry in a sweep to stop at.
    max_iter, verbose, callbacks, checkpoint, keep : As in `minimize`; an iteration is a sweep over all groups.

    Examples
    --------
    >>> def f(x):
    ...     return float((x[0] - 1) ** 2 + (x[1] - x[0]) ** 2)
    >>> found = block_descent(f, [0.0, 0.0], [lambda x: np.array([(1 + x[1]) / 2, x[1]]), lambda x: np.array([x[0], x[0]])])
    >>> found.trace[:3]
    array([1.    , 0.25  , 0.0625])
    >>> found.x.round(6), found.reason
    (array([1., 1.]), 'converged')
    """
    x = finite_start(x0)
    return drive(
        lambda state: block_step(f, state, updates),
        block_start(f, x),
        shape=x.shape,
        name="block descent",
        max_iter=max_iter,
        tol=tol,
        descends=True,
        verbose=verbose,
        callbacks=callbacks,
        checkpoint=checkpoint,
        keep=keep,
    )
