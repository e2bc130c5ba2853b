"""What every distribution can do, and the three kinds of them.

A distribution is an immutable value: `Normal(0, 1) == Normal(0, 1)`. It has `mean`, `var`, `logpdf(x)`, `pdf(x)`, `entropy()`
in nats, `sample(n, random_state)`, `certify()`, and, where they are defined, `cdf(x)`, `icdf(u)` = min {x : F(x) ≥ u}, `mode`,
`logpdf_gradient(x)` in x, and `fit(data, sample_weight)` by maximum likelihood, where a weight means repetition and zero means
absent. For a discrete distribution `pdf` is the probability of x, and has the second name `pmf`. All work on arrays, element
by element. Outside of the support the log density is −∞; NaN stays NaN (in a `MultivariateNormal` it means missing).
"""

import reprlib
from dataclasses import fields
from numbers import Real

import numpy as np

from lemmata.core.random import generator
from lemmata.probability.arrays import check_probabilities
from lemmata.probability.inverse_cdf import inverse_cdf_sample

SUM_TOLERANCE = 1e-8  # of probabilities that were typed or stored in single precision


def numbers(name, values):
    """Return a new array of floats; refuse what holds anything but numbers.

    Examples
    --------
    >>> numbers("mean", [1, 2])
    array([1., 2.])
    """
    try:
        return np.array(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers; got {reprlib.repr(values)}.") from None


def positive(name, value):
    """Return a parameter as a float; refuse one that is not positive and finite.

    Examples
    --------
    >>> positive("scale", 2)
    2.0
    """
    value = real(name, value)
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value}.")
    return value


def real(name, value):
    """Return a parameter as a float; refuse one that is not a finite number.

    Examples
    --------
    >>> real("loc", 1)
    1.0
    """
    if np.ndim(value) or not np.isfinite(numbers(name, value)):
        raise ValueError(f"{name} must be one finite number, got {value!r}.")
    return float(value)


def probability(name, value):
    """Return a probability as a float; refuse one outside of [0, 1].

    Examples
    --------
    >>> probability("p", 1)
    1.0
    """
    value = real(name, value)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability between 0 and 1, got {value}.")
    return value


def vector(name, values, least=1):
    """Return a parameter as a read-only vector of finite numbers.

    Examples
    --------
    >>> vector("mean", [1, 2])
    array([1., 2.])
    """
    values = numbers(name, values)
    if values.ndim != 1 or len(values) < least or not np.isfinite(values).all():
        raise ValueError(f"{name} must be a list of at least {least} finite numbers, got the shape {values.shape}: {values}.")
    values.flags.writeable = False
    return values


def probabilities(name, values):
    """Return probabilities that sum to one as a read-only vector.

    Examples
    --------
    >>> probabilities("p", [0.25, 0.75])
    array([0.25, 0.75])
    """
    values = check_probabilities(vector(name, values))
    return vector(name, values / values.sum())


def observations(data, sample_weight=None, ndim=1):
    """Return the rows whose weight is not zero, and the share of each in the total weight.

    Examples
    --------
    >>> observations([3.0, 4.0, 5.0], [1, 0, 3])
    (array([3., 5.]), array([0.25, 0.75]))
    """
    x = numbers("The data", data)
    if x.ndim != ndim or not len(x):
        kind = "a list of numbers" if ndim == 1 else "rows of numbers"
        raise ValueError(f"The data must be {kind}, at least one; got the shape {x.shape}.")
    weights = np.ones(len(x)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weights.shape != (len(x),) or not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise ValueError(
            f"sample_weight must have {len(x)} finite entries, none negative and one positive; got the shape {weights.shape}."
        )
    x, weights = x[weights > 0], weights[weights > 0]
    if not np.isfinite(x).all():
        raise ValueError("The data have a NaN or infinite entry; leave such rows out or give them the weight 0.")
    return x, weights / weights.max() / (weights / weights.max()).sum()


def average(x, shares):
    """Return the weighted mean of the rows, without loss where the spread is small beside the mean.

    Examples
    --------
    >>> float(average(np.array([1.0, 5.0]), np.array([0.25, 0.75])))
    4.0
    """
    return x[0] + shares @ (x - x[0])


def deviation(x, center, shares):
    """Return the root of the weighted mean squared deviation, at any scale: no square over- or underflows.

    Examples
    --------
    >>> float(deviation(np.array([1e-200, 3e-200]), 2e-200, np.array([0.5, 0.5])))
    1e-200
    """
    off = x - center
    largest = np.abs(off).max()
    return largest * np.sqrt(shares @ (off / largest) ** 2) if largest > 0 else largest


def integer_quantile(cdf, u, low, high):
    """Return the least whole number k in [low, high] with cdf(k) ≥ u, for each u, by bisection.

    Examples
    --------
    >>> integer_quantile(lambda k: (k + 1) / 4, np.array([0.0, 0.3, 1.0]), 0, 3)
    array([0, 1, 3])
    """
    below, above = np.full(np.shape(u), low - 1), np.full(np.shape(u), high)
    while (above - below > 1).any():
        middle = (below + above + 1) // 2
        reached = cdf(middle) >= u
        below, above = np.where(reached, below, np.minimum(middle, above - 1)), np.where(reached, middle, above)
    return above


class Distribution:
    """A probability distribution as a value.

    Examples
    --------
    >>> from lemmata.probability.distributions import Normal
    >>> Normal(0, 1) == Normal(0.0, 1.0), Normal(0, 1) == Normal(0, 2)
    (True, False)
    >>> Normal(0, 2).certify().holds
    True
    """

    discrete = False

    def _store(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)  # the one way in, before anyone else has seen the object

    def _key(self):
        values = (getattr(self, field.name) for field in fields(self) if field.init)
        plain = ((v.shape, tuple(v.ravel().tolist())) if isinstance(v, np.ndarray) else v for v in values)
        return (type(self), *plain)

    def __eq__(self, other):
        return isinstance(other, Distribution) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def pdf(self, x):
        """Return the density at x (the probability of x if the distribution is discrete)."""
        with np.errstate(over="ignore"):  # a density may exceed the largest number; its logarithm does not
            return np.exp(self.logpdf(x))

    def sample(self, n, random_state=None):
        """Draw n values; of vectors, n rows."""
        if not isinstance(n, Real) or n != np.floor(n) or not 0 <= n < np.inf:
            raise ValueError(f"n must be a whole number of draws, not negative; got {n!r}.")
        return self._draw(int(n), generator(random_state))

    def certify(self, **options):
        """Check density, distribution function, moments, entropy and draws against each other: `checks.check_distribution`."""
        from lemmata.probability.checks import check_distribution

        return check_distribution(self, **options)


class Univariate(Distribution):
    """A density on an interval of the real line; a family gives `_logpdf`, `_cdf` and `_icdf` inside of it."""

    support = (-np.inf, np.inf)

    def logpdf(self, x):
        """Return the log density at x; −∞ outside of the support."""
        x = np.asarray(x, dtype=float)
        inside = np.isfinite(x) & (x >= self.support[0]) & (x <= self.support[1])
        result = np.where(np.isnan(x), np.nan, -np.inf)
        with np.errstate(over="ignore", divide="ignore"):  # far out the log density is −∞, at an end it may be +∞
            result[inside] = self._logpdf(x[inside])
        return result[()]

    def cdf(self, x):
        """Return the probability of a value of at most x."""
        with np.errstate(over="ignore"):
            return self._cdf(np.clip(np.asarray(x, dtype=float), *self.support))[()]

    def icdf(self, u):
        """Return the value below which the probability is u."""
        with np.errstate(divide="ignore"):  # u of 0 or 1 may mean an infinite value
            return np.asarray(self._icdf(levels(u)))[()]

    def _draw(self, n, rng):
        return inverse_cdf_sample(self.icdf, n, rng)


class Discrete(Distribution):
    """Probabilities of the whole numbers 0, …, support[1]; a family gives `_logpdf` and `_cdf` for them."""

    discrete = True

    def logpdf(self, x):
        """Return the log probability of x; −∞ if x is not a value of the distribution."""
        x = np.asarray(x, dtype=float)
        inside = (x >= 0) & (x <= self.support[1]) & (x == np.floor(x))
        result = np.where(np.isnan(x), np.nan, -np.inf)
        with np.errstate(divide="ignore"):  # the logarithm of the probability 0
            result[inside] = self._logpdf(x[inside])
        return result[()]

    def logpmf(self, x):
        """Return the log probability of x: another name of `logpdf`."""
        return self.logpdf(x)

    def pmf(self, x):
        """Return the probability of x: another name of `pdf`."""
        return self.pdf(x)

    def cdf(self, x):
        """Return the probability of a value of at most x."""
        k = np.floor(np.clip(np.asarray(x, dtype=float), -1, self.support[1]))
        inside = np.where(k >= 0, k, 0.0)
        return np.where(np.isnan(k), np.nan, np.where(k < 0, 0.0, np.where(k < self.support[1], self._cdf(inside), 1.0)))[()]

    def icdf(self, u):
        """Return the least value k with a probability of at least u of a value of at most k."""
        return integer_quantile(self.cdf, levels(u), *self.support)[()]

    def _draw(self, n, rng):
        return inverse_cdf_sample(self.icdf, n, rng)


def levels(u):
    """Return probabilities as an array; refuse numbers outside of [0, 1].

    Examples
    --------
    >>> levels([0, 0.5])
    array([0. , 0.5])
    """
    u = np.asarray(u, dtype=float)
    if not ((u >= 0) & (u <= 1)).all():
        raise ValueError(f"A quantile is asked for at probabilities between 0 and 1, got {u}.")
    return u
