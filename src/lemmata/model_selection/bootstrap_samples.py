"""What is resampled: one sample, several whose rows belong together, or several that are drawn each by itself."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from lemmata.model_selection.bootstrap_statistics import named


class Samples(NamedTuple):
    """Arrays, where each begins among all rows (None if rows belong together), and the group that each row is drawn from."""

    arrays: tuple
    cuts: np.ndarray | None
    groups: np.ndarray

    def taken(self, rows):
        """Give the resampled arrays for rows of all samples, one sample after the other."""
        if self.cuts is None:
            return [array[rows] for array in self.arrays]
        return [a[rows[i:j] - i] for a, i, j in zip(self.arrays, self.cuts[:-1], self.cuts[1:], strict=True)]


def read_samples(samples, statistic, paired, strata=None, sample_weight=None):
    """Read samples; those of a named statistic must be finite numbers.

    Examples
    --------
    >>> read_samples([[1.0, 2.0], [3.0, 4.0, 5.0]], max, False).groups
    array([0, 0, 1, 1, 1])
    >>> read_samples([[1.0, 2.0]], "mean", None, sample_weight=[2, 1]).arrays
    (array([1., 1., 2.]),)
    """
    known = named(statistic)
    arrays = tuple(np.asarray(sample) for sample in samples)
    if not arrays or any(a.ndim == 0 for a in arrays):
        raise ValueError("Give one sample or more, each an array with rows along its first axis.")
    if known is not None:
        arrays = _numbers(arrays, known, statistic)
        if paired is False and len(arrays) > 1:
            raise ValueError(f"The rows of the samples of a {statistic} belong together: leave paired=False out.")
    elif len(arrays) > 1 and not isinstance(paired, bool):
        raise ValueError(
            f"{len(arrays)} samples: say paired=True if their rows belong together, or paired=False to draw each by itself."
        )
    sizes = [len(a) for a in arrays]
    if known is not None and arrays[0].size == 0 < sizes[0]:
        raise ValueError("The table has no columns.")
    if known is None and len(arrays) > 1 and not paired:
        if min(sizes) < 2:
            raise ValueError(f"A sample of one row has no resamples but itself; the samples have {sizes} rows.")
        if strata is not None or sample_weight is not None:
            raise ValueError("strata and sample_weight are for one sample or for paired ones; these are drawn each by itself.")
        return Samples(arrays, np.append(0, np.cumsum(sizes)), np.repeat(np.arange(len(sizes)), sizes))
    if len(set(sizes)) > 1:
        raise ValueError(
            f"Rows of paired samples belong together, so the samples must be equally long; they have {sizes} rows."
        )
    try:
        groups = np.zeros(sizes[0], dtype=np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    except TypeError:
        raise ValueError("strata must be all text or all numbers, and name a stratum for every row.") from None
    if groups.shape != (sizes[0],):
        raise ValueError(f"strata must name a stratum for each of the {sizes[0]} rows; its shape is {groups.shape}.")
    if sample_weight is not None:
        times = repetitions(sample_weight, arrays[0])
        arrays, groups = tuple(np.repeat(a, times, axis=0) for a in arrays), np.repeat(groups, times)
        groups = np.unique(groups, return_inverse=True)[1]  # a stratum whose rows have weight 0 is not there
    if len(groups) < 2:
        raise ValueError(f"A sample of one row has no resamples but itself; give at least 2 rows, not {len(groups)}.")
    return Samples(arrays, None, groups)


def repetitions(sample_weight, rows):
    """Read weights as numbers of repetitions.

    Examples
    --------
    >>> repetitions([2.0, 0.0], [7, 8])
    array([2, 0])
    """
    weight = _check_sample_weight(sample_weight, np.empty((len(rows), 1)), dtype=np.float64, ensure_non_negative=True)
    if (weight != np.rint(weight)).any():
        raise ValueError(
            "sample_weight says how often a row is repeated, in whole numbers; drawing has no place for fractions."
        )
    return weight.astype(np.int64)


def _numbers(arrays, known, statistic):
    if len(arrays) != known.n_samples:
        many = f"{known.n_samples} sample{'s' if known.n_samples > 1 else ''}"
        raise ValueError(f"statistic={statistic!r} is of {many}, got {len(arrays)}; for anything else give a function.")
    try:
        if any(a.dtype.kind == "c" for a in arrays):
            raise ValueError("they are complex")
        arrays = tuple(np.asarray(a, dtype=np.float64) for a in arrays)
    except (TypeError, ValueError) as error:
        raise ValueError(f"The samples of a {statistic} must be numbers: {error}.") from None
    if any(a.ndim > (2 if known.n_samples == 1 else 1) for a in arrays):
        raise ValueError(f"The shapes {[a.shape for a in arrays]} have too many axes for statistic={statistic!r}.")
    if not all(np.isfinite(a).all() for a in arrays):
        raise ValueError(f"The samples of a {statistic} must be finite numbers: drop missing values, or give a function.")
    return arrays
