"""Stochastic gradient descent: steps along gradients of a few rows.

Minimize f(x) = (1/n) Σᵢ fᵢ(x). For a batch B of b rows drawn at random, (1/b) Σ_B ∇fᵢ has the mean ∇f; for the sum over rows
instead of the mean, it is (n/b) Σ_B ∇fᵢ that is right on average. b = 1 is the pure form, b = n gradient descent.
If f is strongly convex and the gradients' variance is bounded, rates with Σηₜ = ∞ and Σηₜ² < ∞ bring x to the minimum, and
E‖xₜ − x*‖² = O(ηₜ): 1/√t for ηₜ ∝ 1/√t, 1/t for ηₜ ∝ 1/t with a large enough first rate [1]. If f is merely convex, the mean
of the points, weighted by their rates, has E f(x̄ₜ) − f* = O(log t/√t) for ηₜ ∝ 1/√t (`rates.stochastic_bound`).
Certificate: for few rows, the average over all C(n, b) batches is the full gradient; for a run, the full gradient at its end.

[1] Robbins & Monro, Ann. Math. Stat. 22 (1951); Bottou, Curtis & Nocedal, SIAM Review 60 (2018).
"""

from copy import deepcopy
from functools import partial
from itertools import combinations
from math import comb

import numpy as np

from lemmata.core.certificate import Certificate, same
from lemmata.core.random import generator, spawn
from lemmata.optimize.minimum import drive, finite_start

MANY = 1_000_000  # batches that are worth enumerating: seconds


def batch_gradient(gradients, n_rows=None):
    """Estimate a gradient from those of a batch of rows: that of the mean over rows, or of the sum if n_rows is given.

    Examples
    --------
    >>> batch_gradient([[1.0, 0.0], [3.0, 2.0]])
    array([2., 1.])
    >>> batch_gradient([[1.0, 0.0], [3.0, 2.0]], n_rows=10)
    array([20., 10.])
    """
    mean = np.asarray(gradients, dtype=float).mean(axis=0)
    return mean if n_rows is None else n_rows * mean


def check_unbiased(gradients, batch_size=1):
    """Check, over all batches of a size, that the estimates average to the gradients of the mean and of the sum over rows.

    Parameters
    ----------
    gradients : The gradient of each row at one point, n × d.

    Examples
    --------
    >>> check_unbiased([[1.0, 0.0], [3.0, 2.0], [5.0, 7.0]], batch_size=2).holds
    True
    """
    G = np.asarray(gradients, dtype=float)
    n, count = len(G), comb(len(G), batch_size)
    if not 1 <= batch_size <= n:
        raise ValueError(f"A batch has between 1 and {n} rows, got {batch_size}.")
    if count > MANY:
        raise ValueError(f"There are {count} batches of {batch_size} among {n} rows, too many to try them all.")
    batches = [list(rows) for rows in combinations(range(n), batch_size)]
    mean = sum(batch_gradient(G[rows]) for rows in batches) / count
    total = sum(batch_gradient(G[rows], n) for rows in batches) / count
    return Certificate(
        same(mean, G.mean(axis=0), "mean", "the batches of this size estimate the gradient of the mean without bias"),
        same(total, G.sum(axis=0), "sum", "n/b times their sum estimates the gradient of the sum without bias"),
    )


def minimize_mean(
    f,
    x0,
    grad,
    n_rows,
    *,
    rule,
    batch_size=1,
    average=False,
    random_state=None,
    max_iter=100,
    tol=1e-8,
    verbose=0,
    callbacks=(),
    checkpoint=None,
    keep=False,
):
    """Minimize the mean of a function over rows by steps along the gradients of small batches.

    Parameters
    ----------
    f : Function of (x, rows) that returns the mean over the rows, given by their numbers.
    grad : Its gradient in x, also a function of (x, rows).
    n_rows : Number of rows.
    rule : Step rule; with noisy gradients it needs a schedule that vanishes in order to converge.
    batch_size : Rows in a step.
    average : Whether the result is the mean of all points, weighted by their rates, instead of the last.
    random_state : Seed or generator of the orders in which rows are visited.
    max_iter : Most passes over the rows; each visits every row once, in random order.
    tol : Largest entry of the full gradient, which is computed after every pass, to stop at.
    verbose, callbacks, checkpoint, keep : As in `minimize`; an iteration is a pass.

    Examples
    --------
    >>> from lemmata.optimize import GradientDescent, inverse
    >>> data = np.array([1.0, 2.0, 6.0])
    >>> def f(x, rows):
    ...     return np.mean((x - data[rows]) ** 2) / 2
    >>> def grad(x, rows):
    ...     return np.mean(x - data[rows], keepdims=True)
    >>> minimize_mean(f, [0.0], grad, 3, rule=GradientDescent(inverse(1.0)), random_state=0).x
    array([3.])
    """
    x = finite_start(x0)
    if not 1 <= batch_size <= n_rows:
        raise ValueError(f"batch_size must be between 1 and n_rows = {n_rows}, got {batch_size}.")
    rows = np.arange(n_rows)
    rng = spawn(generator(random_state), 1)[0]
    start = (x, float(f(x, rows)), np.asarray(grad(x, rows), dtype=float), x, 0.0, rule.init(x.shape), rng)
    return drive(
        partial(_epoch, f, grad, rule, rows, batch_size, average),
        start,
        shape=x.shape,
        name="stochastic descent",
        max_iter=max_iter,
        tol=tol,
        descends=False,
        verbose=verbose,
        callbacks=callbacks,
        checkpoint=checkpoint,
        keep=keep,
        identity=f"{rule} {n_rows} {batch_size} {average}",
    )


def _epoch(f, grad, rule, rows, batch_size, average, state):
    """Pass once over the rows; the state is (result, value, gradient, last point, sum of rates, memory of the rule, rng)."""
    mean, _, _, x, total, memory, rng = state
    rng = deepcopy(rng)  # a step may not change the state that it was given
    for batch in np.split(rng.permutation(rows), range(batch_size, len(rows), batch_size)):
        rate = float(rule.schedule(memory[0] + 1))
        total += rate
        mean = mean + rate / total * (x - mean)  # the point before the step carries the step's rate, as in the theorem
        x, memory = rule.step(x, grad(x, batch), memory)
    result = mean if average else x
    value, gradient = float(f(result, rows)), np.asarray(grad(result, rows), dtype=float)
    return (result, value, gradient, x, total, memory, rng), value, float(np.abs(gradient).max())
