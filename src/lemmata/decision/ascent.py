"""The log likelihood of a model as a function of its parameters, and the way up to its maximum.

Steps and differences are in units of θ over which the log likelihood falls by about one half, whatever the scales of θ: in
these units the information is close to one, slopes are found to ten digits, and a quasi-Newton method needs few steps.
"""

import inspect
from dataclasses import fields

import numpy as np

from lemmata.optimize.derivatives import gradient, hessian
from lemmata.optimize.minimize import minimize

EPS = float(np.finfo(float).eps)
ROUNDS = 20  # of ascent and new units; two suffice unless the start is far away


class Likelihood:
    """The log likelihood of data as a function of a flat θ, for a family of distributions or a function."""

    def __init__(self, model, data, sample_weight, known):
        self.model, self.known = model, known
        self.family = hasattr(model, "fit") and isinstance(model, type)
        self.data = np.asarray(data, dtype=float) if self.family else data
        self.weight = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        if not self.family and not callable(model):
            raise ValueError("The model must be a class of distributions, or a function of (theta, data).")
        if not self.family and (known or sample_weight is not None):
            raise ValueError("A function of (theta, data) has its known parameters and weights inside.")
        if self.family and (strange := set(known) - {f.name for f in fields(model)}):
            raise ValueError(f"{model.__name__} has no parameter {min(strange)!r} that could be known.")

    def names(self):
        """Parameters of the family that are to be estimated."""
        return [f.name for f in fields(self.model) if f.init and f.name not in self.known]

    def at(self, theta):
        """Distribution with these parameters."""
        names = self.names()
        values = {names[0]: theta} if len(names) == 1 and len(theta) > 1 else dict(zip(names, theta, strict=True))
        return self.model(**values, **self.known)

    def flat(self, distribution):
        """Parameters of a distribution as one array."""
        parts = [np.asarray(getattr(distribution, name), dtype=float) for name in self.names()]
        if any(part.ndim > (len(parts) == 1) for part in parts):
            raise ValueError(f"{self.model.__name__} has parameters that are arrays: give a function of (theta, data) instead.")
        return np.concatenate([np.atleast_1d(part) for part in parts])

    def start(self):
        """Maximum likelihood by the family's own formula, and whether it is that of exactly these free parameters."""
        accepted = inspect.signature(self.model.fit).parameters
        exact = set(self.known) <= set(accepted)
        return self.flat(self.model.fit(self.data, self.weight, **(self.known if exact else {}))), exact

    def __call__(self, theta):
        """Log likelihood; −∞ outside of the parameters' range."""
        with np.errstate(all="ignore"):
            try:
                each = np.asarray(self.at(theta).logpdf(self.data) if self.family else self.model(shaped(theta), self.data))
            except ValueError:
                if not self.family:
                    raise
                return -np.inf
            total = float(each.sum() if self.weight is None else self.weight[self.weight > 0] @ each[self.weight > 0])
        return total if total < np.inf else -np.inf  # NaN too: outside


def shaped(theta):
    """Give a single parameter as a number."""
    return theta[0] if len(theta) == 1 else theta


def units_of(f, theta):
    """Find, for each entry, a step over which f falls by something between an eighth and two; None at an end of its range."""
    here = f(theta)
    if not np.isfinite(here):
        raise ValueError(f"The log density is not finite at {theta}: choose another start.")
    units = []
    for j in range(len(theta)):
        h, inside = abs(theta[j]) or 1.0, True
        for _ in range(400):  # factors of two from the smallest number to the largest
            move = np.zeros(len(theta))
            move[j] = h
            fall = np.abs([f(theta + move) - here, f(theta - move) - here]).max()
            if 0.125 <= fall <= 2 or (fall < 2 and not inside):
                break
            inside &= bool(np.isfinite(fall))
            h *= 0.5 if fall > 2 else 2.0
            if h < EPS * abs(theta[j]):
                return None
        units.append(h)
    return np.array(units)


def derivatives(f, theta, unit):
    """Score and information in these units, by differences of the best steps for the rounding of f."""
    rounding = EPS * max(1.0, abs(f(theta)))
    at, zero = (lambda z: f(theta + unit * z)), np.zeros(len(theta))
    with np.errstate(all="ignore"):
        return gradient(at, zero, step=rounding ** (1 / 3)), -hessian(at, zero, step=rounding ** (1 / 4))


def ascend(f, start):
    """Maximize f, in units that are found anew after each round."""
    theta, value = start, f(start)
    for _ in range(ROUNDS):
        unit = units_of(f, theta)
        if unit is None:
            return theta
        tol = max(1e-6, 1e-10 * abs(value))  # of the slope a unit: 1e-12 nats, or rounding
        with np.errstate(all="ignore"):
            found = minimize(lambda z, at=theta, unit=unit: -f(at + unit * z), np.zeros(len(theta)), tol=tol, method="bfgs")
        theta = theta + unit * found.x
        value = f(theta)
        if np.abs(found.x).max() < 1:
            break
    for _ in range(3):  # Newton's steps take the digits that the line search could not see
        score, information = derivatives(f, theta, unit)
        if not np.isfinite(information).all() or np.linalg.eigvalsh(information)[0] <= 0:
            break
        step = np.linalg.solve(information, score)
        if not np.abs(step).max() < 1:
            break
        theta = theta + unit * step
    return theta
