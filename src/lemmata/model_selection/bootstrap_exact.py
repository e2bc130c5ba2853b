"""The ideal bootstrap: all resamples of a small sample, each with its chance.

Of the nⁿ ordered resamples of n rows, those with the same counts c₁ + … + c_n = n are one and the same: there are
C(2n − 1, n) of them, 35 for n = 4 and 92,378 for n = 10, and one of counts c has chance n! / (Π cᵢ! nⁿ). Mean and variance of
a statistic over these are what `Bootstrap` comes to as its number of resamples grows.

Reference: Fisher & Hall, Statistics & Probability Letters 11 (1991).
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.special import gammaln

from lemmata.model_selection.bootstrap_replicates import plain
from lemmata.model_selection.bootstrap_samples import read_samples

MOST = 10  # rows; 11 have 352,716 resamples, and each row more has four times as many


@dataclass(frozen=True)
class ExactBootstrap:
    """All replicates of a statistic, with their chances.

    Attributes
    ----------
    estimate : The statistic of the sample.
    replicates, probabilities : (resamples, …) and (resamples,); equal replicates of different resamples stand side by side.
    mean, variance : Of the ideal bootstrap.

    Examples
    --------
    >>> found = ExactBootstrap(1.5, np.array([1.0, 1.5, 2.0]), np.array([0.25, 0.5, 0.25]), np.eye(3))
    >>> float(found.mean), float(found.variance), float(found.bias)
    (1.5, 0.125, 0.0)
    """

    estimate: np.ndarray
    replicates: np.ndarray
    probabilities: np.ndarray
    counts: np.ndarray = field(repr=False)  # (resamples, rows), how often each resample has each row

    @property
    def mean(self):
        """Mean over all resamples."""
        return np.tensordot(self.probabilities, self.replicates, axes=1)

    @property
    def variance(self):
        """Variance over all resamples."""
        return np.tensordot(self.probabilities, (self.replicates - self.mean) ** 2, axes=1)

    @property
    def standard_error(self):
        """Root of the variance."""
        return np.sqrt(self.variance)

    @property
    def bias(self):
        """Mean over all resamples less the estimate."""
        return self.mean - self.estimate


def exact_bootstrap(statistic, *samples):
    """Compute a statistic of all resamples of a sample of at most ten rows.

    Parameters
    ----------
    statistic : As of `Bootstrap`: a name, a probability for that quantile, or a function of the resampled arrays.
    samples : One array, or several whose rows belong together.

    Returns
    -------
    found : ExactBootstrap, with `mean`, `variance`, `standard_error`, `bias`, and all `replicates` with their `probabilities`.

    Examples
    --------
    >>> found = exact_bootstrap("mean", [1.0, 2.0, 3.0, 4.0])
    >>> len(found.replicates), float(found.mean), round(float(found.variance), 12)
    (35, 2.5, 0.3125)
    """
    read = read_samples(samples, statistic, True if len(samples) > 1 else None)
    n = len(read.groups)
    if n > MOST:
        raise ValueError(f"All resamples are listed for at most {MOST} rows, got {n}: use Bootstrap, which draws some of them.")
    counts = compositions(n)
    rows = np.repeat(np.tile(np.arange(n), len(counts)), counts.ravel()).reshape(-1, n)
    evaluate = plain(statistic, read)
    estimate, replicates = evaluate(np.arange(n)[None])[0][0], evaluate(rows)[0]
    if not np.isfinite(replicates).all():
        undefined = int((~np.isfinite(replicates)).reshape(len(replicates), -1).any(axis=1).sum())
        raise ValueError(f"The statistic is not defined for {undefined} of the {len(counts)} resamples, so they have no mean.")
    logs = gammaln(n + 1) - gammaln(counts + 1).sum(axis=1) - n * np.log(n)
    return ExactBootstrap(estimate, replicates, np.exp(logs), counts)


def compositions(n):
    """List all counts of n rows that add up to n: the places of n − 1 bars among n stars.

    Examples
    --------
    >>> compositions(2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    bars = np.array(list(combinations(range(2 * n - 1), n - 1)), dtype=np.int64).reshape(-1, n - 1)
    ends = np.full((len(bars), 1), 2 * n - 1)
    return np.diff(np.hstack([np.full_like(ends, -1), bars, ends]), axis=1) - 1
