"""Losses of the margin: what a score f costs when the class is y = ±1, as functions of m = y·f alone.

    zero_one          1[m ≤ 0]                what classification wants to minimize; not convex
    perceptron        max(0, −m)
    hinge             max(0, 1 − m)
    squared_hinge     max(0, 1 − m)²
    logistic          log(1 + e⁻ᵐ)            also under scikit-learn's name, log_loss
    deviance          log(1 + e⁻²ᵐ)
    exponential       e⁻ᵐ
    squared           (1 − m)²/2
    modified_huber    max(0, 1 − m)² for m ≥ −1, else −4m  [1]

All but the first are convex. Hinge, squared hinge, exponential and modified Huber, and logistic and deviance divided by log 2,
lie above zero-one, so that a small mean of theirs proves a small share of errors [2]. The perceptron's does not: it is zero at
f = 0. The conjugates ℓ*(−a) = supₘ (−a·m − ℓ(m)) are what dual problems are made of, with a = −ℓ′(m) ≥ 0 but for squared.
The formulas stand once, in the kernels, which compiled loops call with a loss's `code`.

[1] Zhang, ICML (2004). [2] Bartlett, Jordan & McAuliffe, JASA 101 (2006).
"""

import math
from dataclasses import dataclass

import numpy as np

from lemmata.core.kernel import kernel

ZERO_ONE, PERCEPTRON, HINGE, SQUARED_HINGE, LOGISTIC, DEVIANCE, EXPONENTIAL, SQUARED, MODIFIED_HUBER = range(9)
LOG_LARGEST = 709.0  # e to this is the last that float64 holds


@kernel
def _softplus(x):
    """Return log(1 + eˣ), whose exponential never overflows."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


@kernel
def _sigmoid(x):
    """Return 1 / (1 + e⁻ˣ), whose exponential never overflows."""
    small = math.exp(-abs(x))
    return 1 / (1 + small) if x >= 0 else small / (1 + small)


@kernel
def loss_value(code, m):
    """Return the loss at the margin m."""
    if code == ZERO_ONE:
        return 1.0 if m <= 0 else 0.0
    if code == PERCEPTRON:
        return max(-m, 0.0)
    if code == HINGE:
        return max(1 - m, 0.0)
    if code == SQUARED_HINGE:
        return max(1 - m, 0.0) ** 2
    if code == LOGISTIC:
        return _softplus(-m)
    if code == DEVIANCE:
        return _softplus(-2 * m)
    if code == EXPONENTIAL:
        return math.exp(-m) if -m < LOG_LARGEST else np.inf
    if code == SQUARED:
        return (1 - m) ** 2 / 2
    return max(1 - m, 0.0) ** 2 if m >= -1 else -4 * m


@kernel
def loss_derivative(code, m):
    """Return the derivative at the margin m; at a kink, the steepest of the subgradients: a tie counts as a mistake."""
    if code == ZERO_ONE:
        return 0.0
    if code == PERCEPTRON:
        return -1.0 if m <= 0 else 0.0
    if code == HINGE:
        return -1.0 if m <= 1 else 0.0
    if code == SQUARED_HINGE:
        return -2 * max(1 - m, 0.0)
    if code == LOGISTIC:
        return -_sigmoid(-m)
    if code == DEVIANCE:
        return -2 * _sigmoid(-2 * m)
    if code == EXPONENTIAL:
        return -math.exp(-m) if -m < LOG_LARGEST else -np.inf
    if code == SQUARED:
        return m - 1
    return -2 * max(1 - m, 0.0) if m >= -1 else -4.0


@kernel
def _entropy(p):
    """Return p log p + (1 − p) log(1 − p) for a probability."""
    return (p * math.log(p) if p > 0 else 0.0) + ((1 - p) * math.log(1 - p) if p < 1 else 0.0)


@kernel
def loss_conjugate(code, a):
    """Return ℓ*(−a) = sup over m of −a·m − ℓ(m), which is infinite where no slope is −a."""
    if code == SQUARED:
        return a * a / 2 - a
    if a < 0 or code == ZERO_ONE:
        return np.inf
    if code == SQUARED_HINGE:
        return a * a / 4 - a
    if code == EXPONENTIAL:
        return a * math.log(a) - a if a > 0 else 0.0
    if code == MODIFIED_HUBER:
        return a * a / 4 - a if a <= 4 else np.inf
    if code == DEVIANCE:
        return _entropy(a / 2) if a <= 2 else np.inf
    if a > 1:
        return np.inf
    if code == LOGISTIC:
        return _entropy(a)
    return -a if code == HINGE else 0.0


@kernel
def _values(code, margins, out):
    for i in range(margins.shape[0]):
        out[i] = loss_value(code, margins[i])


@kernel
def _derivatives(code, margins, out):
    for i in range(margins.shape[0]):
        out[i] = loss_derivative(code, margins[i])


@kernel
def _conjugates(code, slopes, out):
    for i in range(slopes.shape[0]):
        out[i] = loss_conjugate(code, slopes[i])


@dataclass(frozen=True)
class MarginLoss:
    """A loss as a function of the margin m = y·f.

    Parameters
    ----------
    name : Its key in `LOSSES`.
    code : What compiled loops know it by.
    convex : Whether it is.
    smooth : Whether it has a derivative everywhere.

    Examples
    --------
    >>> hinge = LOSSES["hinge"]
    >>> hinge.value([-1.0, 0.5, 3.0]), hinge.derivative([-1.0, 0.5, 3.0])
    (array([2. , 0.5, 0. ]), array([-1., -1.,  0.]))
    >>> float(LOSSES["logistic"].value(-1000.0))
    1000.0
    >>> hinge.conjugate([0.5, 2.0])
    array([-0.5,  inf])
    """

    name: str
    code: int
    convex: bool = True
    smooth: bool = True

    def value(self, margin):
        """Return ℓ(m) for each margin."""
        return self._each(_values, margin)

    def derivative(self, margin):
        """Return ℓ′(m) for each margin, or a subgradient where there is a kink."""
        return self._each(_derivatives, margin)

    def conjugate(self, slope):
        """Return ℓ*(−a) for each slope a; infinite where ℓ has no slope −a."""
        return self._each(_conjugates, slope)

    def _each(self, loop, points):
        points = np.asarray(points, dtype=float)
        out = np.empty(points.size)
        loop(self.code, np.ascontiguousarray(points).ravel(), out)
        return out.reshape(points.shape)


LOSSES = {
    loss.name: loss
    for loss in (
        MarginLoss("zero_one", ZERO_ONE, convex=False, smooth=False),
        MarginLoss("perceptron", PERCEPTRON, smooth=False),
        MarginLoss("hinge", HINGE, smooth=False),
        MarginLoss("squared_hinge", SQUARED_HINGE),
        MarginLoss("logistic", LOGISTIC),
        MarginLoss("deviance", DEVIANCE),
        MarginLoss("exponential", EXPONENTIAL),
        MarginLoss("squared", SQUARED),
        MarginLoss("modified_huber", MODIFIED_HUBER),
    )
}
LOSSES["log_loss"] = LOSSES["logistic"]
