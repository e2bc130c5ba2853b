"""Gradient descent: with a step rule, or with steps found by backtracking.

x ← x − η∇f(x). If ∇f has the Lipschitz constant L, then f(x − η∇f) ≤ f(x) − η(1 − ηL/2)‖∇f‖²: any η < 2/L descends, and on
(L/2)‖x‖² the step η = 2/L only turns x into −x. Backtracking needs no L: it doubles the last step and halves it until
f falls by η/2 ‖∇f‖² [1]; every η ≤ 1/L passes, so the steps, once they have grown, stay above 1/2L.
Close to an optimum f is constant to rounding while gradients are still exact; there the same condition is read off the slope
at the new point, ∇f(x)·∇f(x⁺) ≥ 0, which says the same of a quadratic.
A method is a start and a step over a state (x, value, gradient, …); a step that cannot move returns the very state it was
given.

[1] Armijo, Pacific J. Math. 16 (1966).
"""

import numpy as np

from lemmata.optimize.line_search import ROUNDING, TRIALS


def rule_start(fun, x, rule):
    """Evaluate the objective at the start, and the memory of the rule."""
    value, gradient = fun(x)
    return x, value, gradient, rule.init(x.shape)


def rule_step(fun, state, rule):
    """Take one step of a rule; return (state, value, largest entry of the gradient).

    Examples
    --------
    >>> from lemmata.optimize.rules import GradientDescent
    >>> def bowl(x):
    ...     return float(x @ x) / 2, x
    >>> rule = GradientDescent(0.5)
    >>> rule_step(bowl, rule_start(bowl, np.array([4.0]), rule), rule)[1:]
    (2.0, 2.0)
    """
    x, _, gradient, memory = state
    x, memory = rule.step(x, gradient, memory)
    value, gradient = fun(x)
    return (x, value, gradient, memory), value, float(np.abs(gradient).max())


def backtracking_start(fun, x):
    """Evaluate the objective at the start; the first step tried moves no entry by more than 1."""
    value, gradient = fun(x)
    return x, value, gradient, 0.5 / max(float(np.abs(gradient).max()), np.finfo(float).tiny)  # ½: it is doubled first


def backtracking_step(fun, state):
    """Move against the gradient by a step that lowers the objective enough; return (state, value, residual).

    Examples
    --------
    >>> def bowl(x):
    ...     return 50 * float(x @ x), 100 * x
    >>> state = backtracking_start(bowl, np.array([3.0]))
    >>> for _ in range(3):
    ...     state, value, residual = backtracking_step(bowl, state)
    >>> 1 / 200 < state[3] <= 1 / 100
    True
    """
    x, value, gradient, step = state
    square = float(gradient @ gradient)
    step *= 2
    for _ in range(TRIALS):
        point = x - step * gradient
        f, g = fun(point)
        blurred = abs(f - value) <= ROUNDING * abs(value)
        if float(gradient @ g) >= 0 if blurred else f <= value - step / 2 * square:
            return (point, f, g, step), f, float(np.abs(g).max())
        step /= 2
    return state, value, float(np.abs(gradient).max())
