"""Step rules: how a gradient becomes a move.

With g the gradient at x, the rate η and, elementwise, u and v zero at the start:

    GradientDescent   x ← x − η g
    Momentum          u ← βu + (1 − β)g;                                   x ← x − η u
    Adagrad           v ← v + g²;                                          x ← x − η g / (√v + ε)                     [1]
    RMSProp           v ← βv + (1 − β)g²;                                  x ← x − η g / (√v + ε)                     [2]
    Adam              u ← β₁u + (1 − β₁)g, v ← β₂v + (1 − β₂)g²;           x ← x − η û / (√v̂ + ε)                    [3]
                      û = u / (1 − β₁ᵗ), v̂ = v / (1 − β₂ᵗ), t = 1, 2, …

Momentum averages gradients; the heavy ball u ← βu + g with the rate η′ takes the same path if η′ = η(1 − β). Some print ε
inside the root, √(v + ε): `epsilon_inside`. The formulas stand once, in the kernel `apply_rule`, which works in place and is
what compiled loops call with a rule's `code` and `constants`; `init` and `step` are the same thing without side effects.

[1] Duchi, Hazan & Singer, JMLR 12 (2011). [2] Tieleman & Hinton, Coursera lecture 6.5 (2012). [3] Kingma & Ba, ICLR (2015).
"""

from dataclasses import dataclass

import numpy as np

from lemmata.core.kernel import kernel
from lemmata.optimize.schedules import Schedule, constant

DESCENT, MOMENTUM, ADAGRAD, RMSPROP, ADAM = range(5)


@kernel
def apply_rule(code, x, grad, moments1, moments2, t, rate, beta1, beta2, epsilon, inside):
    """Move x against a gradient by step t = 1, 2, … of a rule; x and the moments, all of one dimension, change in place."""
    kind = x.dtype.type  # float32 stays float32: a vector instruction holds twice as many
    step, least = kind(rate), kind(epsilon)
    keep1, keep2, add1, add2 = kind(beta1), kind(beta2), kind(1 - beta1), kind(1 - beta2)
    if code == DESCENT:
        for i in range(len(x)):
            x[i] -= step * grad[i]
    elif code == MOMENTUM:
        for i in range(len(x)):
            moments1[i] = keep1 * moments1[i] + add1 * grad[i]
            x[i] -= step * moments1[i]
    elif code == ADAGRAD:
        for i in range(len(x)):
            moments2[i] += grad[i] * grad[i]
            x[i] -= step * grad[i] / _root(moments2[i], least, inside)
    elif code == RMSPROP:
        for i in range(len(x)):
            moments2[i] = keep2 * moments2[i] + add2 * grad[i] * grad[i]
            x[i] -= step * grad[i] / _root(moments2[i], least, inside)
    else:
        # û/(√v̂ + ε) = (√(1 − β₂ᵗ)/(1 − β₁ᵗ)) u/(√v + ε√(1 − β₂ᵗ)): one division for each number, not three
        bias1, bias2 = 1 - beta1**t, 1 - beta2**t
        step, least = kind(rate * np.sqrt(bias2) / bias1), kind(epsilon * (bias2 if inside else np.sqrt(bias2)))
        for i in range(len(x)):
            moments1[i] = keep1 * moments1[i] + add1 * grad[i]
            moments2[i] = keep2 * moments2[i] + add2 * grad[i] * grad[i]
            x[i] -= step * moments1[i] / _root(moments2[i], least, inside)


@kernel
def _root(v, epsilon, inside):
    """Return the root of a second moment, kept from zero."""
    return np.sqrt(v + epsilon) if inside else np.sqrt(v) + epsilon


class Rule:
    """What all rules share: a state (t, first moments, second moments) and the pure form of `apply_rule`."""

    code = DESCENT
    uses = (False, False)  # whether the rule keeps first and second moments
    learning_rate = 1.0

    def __post_init__(self):
        rate, (beta1, beta2, epsilon, _) = self.learning_rate, self.constants
        if not callable(rate) and not (rate > 0 and np.isfinite(rate)):
            raise ValueError(f"learning_rate must be positive and finite, or a schedule, got {rate}.")
        for beta in (beta1, beta2):
            if not 0 <= beta < 1:
                raise ValueError(f"A rate of forgetting (beta) must be in [0, 1), got {beta}.")
        if not 0 < epsilon < np.inf:
            raise ValueError(f"epsilon must be positive and finite, got {epsilon}: it keeps the division from 0/0.")

    @property
    def constants(self):
        """What `apply_rule` takes after the rate: (beta1, beta2, epsilon, inside)."""
        return 0.0, 0.0, 1.0, False

    @property
    def schedule(self):
        """The rate as a function of the step, counted from 1."""
        return self.learning_rate if callable(self.learning_rate) else constant(self.learning_rate)

    @property
    def compiled_schedule(self):
        """The `Schedule` whose constants a compiled loop can use; a plain function has none and is refused."""
        if isinstance(self.schedule, Schedule):
            return self.schedule
        raise ValueError("A compiled loop needs a number or a schedule of lemmata.optimize as learning_rate, got a function.")

    def init(self, shape):
        """Return the state before the first step: t = 0 and moments of zero (empty where the rule keeps none)."""
        first, second = self.uses
        return 0, np.zeros(shape if first else 0), np.zeros(shape if second else 0)

    def step(self, params, grad, state):
        """Return (params, state) after one step; nothing that is passed in changes."""
        t, *moments = state
        x = np.array(params, dtype=float, order="C")  # contiguous, so that the flat view below is no copy
        g = np.ascontiguousarray(grad, dtype=float)
        if g.shape != x.shape:
            raise ValueError(f"The gradient has the shape {g.shape}, the parameters {x.shape}.")
        first, second = (np.array(m, order="C") for m in moments)
        rate = float(self.schedule(t + 1))
        apply_rule(self.code, x.ravel(), g.ravel(), first.ravel(), second.ravel(), t + 1, rate, *self.constants)
        return x, (t + 1, first, second)


@dataclass(frozen=True)
class GradientDescent(Rule):
    """Move against the gradient: x ← x − η g.

    Parameters
    ----------
    learning_rate : η, a number or a function of the step t, counted from 1. For a gradient with Lipschitz constant L, any
        η < 2/L lowers the objective at every step; η = 1/L is sure of most.

    Examples
    --------
    >>> rule = GradientDescent(0.25)
    >>> x, state = rule.step([2.0, -4.0], [2.0, -4.0], rule.init(2))
    >>> x
    array([ 1.5, -3. ])
    """

    learning_rate: object = 0.01


@dataclass(frozen=True)
class Momentum(Rule):
    """Move against an exponential average of gradients: u ← βu + (1 − β)g, x ← x − η u.

    Parameters
    ----------
    learning_rate : η, a number or a function of the step. The classical heavy ball, u ← βu + g, takes the same path with
        the rate η(1 − β).
    beta : Share of the old average that is kept; 0 is gradient descent.

    Examples
    --------
    >>> rule = Momentum(0.1, beta=0.9)
    >>> x, state = rule.step([1.0], [1.0], rule.init(1))
    >>> x
    array([0.99])
    """

    learning_rate: object = 0.01
    beta: float = 0.9  # an average over the last ten gradients
    code = MOMENTUM
    uses = (True, False)

    @property
    def constants(self):
        """What `apply_rule` takes after the rate."""
        return float(self.beta), 0.0, 1.0, False


@dataclass(frozen=True)
class Adagrad(Rule):
    """Divide each entry of the gradient by the root of the sum of its squares so far.

    Parameters
    ----------
    learning_rate : η, a number or a function of the step; it is the length of the first step in every entry.
    epsilon : Keeps the division from 0/0.
    epsilon_inside : Divide by √(v + ε) instead of √v + ε.

    Examples
    --------
    >>> rule = Adagrad(0.1)
    >>> x, state = rule.step([1.0, -3.0], [1.0, -300.0], rule.init(2))
    >>> x
    array([ 0.9, -2.9])
    """

    learning_rate: object = 0.01
    epsilon: float = 1e-8  # far below any gradient that matters
    epsilon_inside: bool = False
    code = ADAGRAD
    uses = (False, True)

    @property
    def constants(self):
        """What `apply_rule` takes after the rate."""
        return 0.0, 0.0, float(self.epsilon), bool(self.epsilon_inside)


@dataclass(frozen=True)
class RMSProp(Rule):
    """Divide each entry of the gradient by the root of the running mean of its squares.

    Parameters
    ----------
    learning_rate : η, a number or a function of the step.
    beta : Share of the old mean that is kept.
    epsilon : Keeps the division from 0/0.
    epsilon_inside : Divide by √(v + ε) instead of √v + ε.

    Examples
    --------
    >>> rule = RMSProp(0.1, beta=0.9)
    >>> x, state = rule.step([1.0], [1.0], rule.init(1))
    >>> x
    array([0.683772])
    """

    learning_rate: object = 0.01
    beta: float = 0.9  # a mean over the last ten squares
    epsilon: float = 1e-8  # far below any gradient that matters
    epsilon_inside: bool = False
    code = RMSPROP
    uses = (False, True)

    @property
    def constants(self):
        """What `apply_rule` takes after the rate."""
        return 0.0, float(self.beta), float(self.epsilon), bool(self.epsilon_inside)


@dataclass(frozen=True)
class Adam(Rule):
    """Divide the running mean of the gradients by the root of that of their squares, both freed of the bias of their start.

    Parameters
    ----------
    learning_rate : η, a number or a function of the step; about the length of every early step in every entry.
    beta1, beta2 : Share of the old mean of gradients, and of squares, that is kept.
    epsilon : Keeps the division from 0/0.
    epsilon_inside : Divide by √(v + ε) instead of √v + ε.

    Examples
    --------
    >>> rule = Adam(0.1)
    >>> x, state = rule.step([1.0], [1.0], rule.init(1))
    >>> x
    array([0.900000001])
    """

    learning_rate: object = 0.001
    beta1: float = 0.9  # the defaults of Kingma & Ba: means over ten gradients and a thousand squares
    beta2: float = 0.999
    epsilon: float = 1e-8
    epsilon_inside: bool = False
    code = ADAM
    uses = (True, True)

    @property
    def constants(self):
        """What `apply_rule` takes after the rate."""
        return float(self.beta1), float(self.beta2), float(self.epsilon), bool(self.epsilon_inside)


RULES = {"sgd": GradientDescent, "momentum": Momentum, "adagrad": Adagrad, "rmsprop": RMSProp, "adam": Adam}
