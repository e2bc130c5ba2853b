"""Bias and variance: why a model errs, found by fitting it to many training sets.

At a row x let f(x) = E(y | x), and let ŷ be the prediction of a model fitted to a random training set. With independent noise
    E (y − ŷ)²  =  Var(y | x)  +  (f(x) − E ŷ)²  +  Var ŷ  =  noise + bias² + variance,
the bias squared: in "noise + bias + variance" the units do not even agree. R fits give the mean m and the variance v of ŷ (over
R − 1), and (f − m)² − v/R estimates bias² without bias; the two then add up to the mean of (f − ŷ)² exactly, fit by fit.
Standard errors are those of the jackknife over fits.
For labels [1]: let y* be the most probable label of the row, and ŷ_m the main prediction, the most frequent one. Bias is
[ŷ_m ≠ y*], variance P(ŷ ≠ ŷ_m), noise P(y ≠ y*), and with two classes
    P(y ≠ ŷ)  =  (2 P(ŷ = y*) − 1) · noise  +  bias  ±  variance,
with minus where the model is biased: there, to vary is to be right at times. The three terms, signs included, are reported.

[1] Domingos, ICML (2000).
"""

from dataclasses import dataclass, field

import numpy as np
from sklearn.base import clone, is_classifier

from lemmata.core.random import generator, spawn
from lemmata.theory.bounds.tails import check_count


@dataclass(frozen=True)
class BiasVariance:
    """The parts of an expected error, averaged over rows; they add up to it.

    Attributes
    ----------
    noise, bias, variance : The three terms; `bias` is squared where the error is.
    error : Their sum.
    standard_errors : Of bias, variance and error, by the number of fits.
    rows : The three terms for each row, (3, n).
    """

    noise: float
    bias: float
    variance: float
    standard_errors: dict
    rows: np.ndarray = field(repr=False)

    @property
    def error(self):
        """Sum of the three terms."""
        return self.noise + self.bias + self.variance


def bias_variance(estimator, sampler, X, truth, noise=0.0, *, n_fits=200, random_state=None):
    """Split the expected error of an estimator into noise, bias and variance.

    Parameters
    ----------
    estimator : Regressor, or classifier of two classes; it is cloned for every fit.
    sampler : Function of a generator that draws a training set (X, y).
    X : Rows at which to predict.
    truth : E(y | x) at these rows, or for a classifier the most probable label.
    noise : Var(y | x) at these rows, or for a classifier the probability of the other label; a number or one for each row.
    n_fits : Training sets.
    random_state : Seed.

    Examples
    --------
    >>> from lemmata.linear_model import Ridge
    >>> x = np.array([[-1.0], [0.0], [1.0]])
    >>> def sampler(rng):
    ...     return x, x[:, 0] + rng.normal(size=3)
    >>> parts = bias_variance(Ridge(alpha=2.0, fit_intercept=False), sampler, [[1.0]], [1.0], 1.0, n_fits=500, random_state=0)
    >>> parts.noise, bool(abs(parts.bias - 0.25) < 0.1), bool(abs(parts.variance - 0.125) < 0.05)
    (1.0, True, True)
    """
    X, truth = np.asarray(X), np.asarray(truth)
    n_fits = check_count(n_fits, "n_fits", 3)
    noise = np.broadcast_to(np.asarray(noise, dtype=float), len(X))
    if truth.shape != (len(X),):
        raise ValueError(f"truth has one entry for each of the {len(X)} rows; its shape is {truth.shape}.")
    if (noise < 0).any():
        raise ValueError("noise is a variance or a probability and cannot be negative.")
    labels = is_classifier(estimator)
    if labels and (noise > 0.5).any():
        raise ValueError("noise is the probability of the less probable label and cannot exceed 1/2.")
    rngs = spawn(generator(random_state), n_fits)
    predictions = np.array([clone(estimator).fit(*sampler(rng)).predict(X) for rng in rngs])
    split = _zero_one if labels else _squared
    values = (predictions == truth).astype(float) if labels else predictions - truth
    center = values.mean(axis=0)  # what is left of the sums without it does not cancel
    values = values - center
    total, squares = values.sum(axis=0), (values**2).sum(axis=0)
    parts = split(total, squares, n_fits, noise, center)
    # the same with each fit left out in turn
    left = [split(total - v, squares - v**2, n_fits - 1, noise, center).mean(axis=1) for v in values]
    left = np.column_stack([left, np.sum(left, axis=1)])
    errors = np.sqrt((n_fits - 1) * left.var(axis=0))
    named = dict(zip(("noise", "bias", "variance", "error"), errors.tolist(), strict=True))
    if not labels:
        named.pop("noise")  # given, not estimated
    return BiasVariance(*parts.mean(axis=1).tolist(), named, parts)


def _squared(total, squares, n_fits, noise, center):
    """Return noise, bias² and variance of each row, from the sums of ŷ − f − center and of its square."""
    variance = (squares - total**2 / n_fits) / (n_fits - 1)
    return np.stack([noise, (center + total / n_fits) ** 2 - variance / n_fits, variance])


def _zero_one(total, _, n_fits, noise, center):
    """Return the three terms of each row, from how many fits predict its most probable label; a tie counts as unbiased."""
    right = np.clip(center + total / n_fits, 0.0, 1.0)
    bias = (right < 0.5 - 1e-12).astype(float)  # a share of one half may round
    return np.stack([(2 * right - 1) * noise, bias, np.where(bias > 0, -right, 1 - right)])
