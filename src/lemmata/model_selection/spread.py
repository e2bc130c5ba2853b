"""How far a mean over folds may be from what it estimates.

The scores s_1, …, s_J of J folds have the classical standard error s/√J, by which the one-standard-error rule is told. It
takes them for independent, which they are not: two training sets of K-fold cross-validation share (K − 2)/(K − 1) of their
rows, and no unbiased estimator of the variance exists [1]. With the correlation n_test/(n_test + n_train) the variance of the
mean becomes (1/J + n_test/n_train) s² [2]: intervals here are those of Student's t with J − 1 degrees and this variance.
They are approximate.

[1] Bengio & Grandvalet, JMLR 5 (2004). [2] Nadeau & Bengio, Machine Learning 52 (2003).
"""

from numbers import Real

import numpy as np
from scipy.stats import t


def standard_errors(scores):
    """Return the classical standard error over folds, the first axis; NaN for a single fold.

    Examples
    --------
    >>> float(standard_errors(np.array([1.0, 2.0, 3.0])))
    0.57735
    """
    scores = np.asarray(scores, dtype=float)
    n = len(scores)
    return scores.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.full(scores.shape[1:], np.nan)


def fold_interval(scores, splits, level=0.95):
    """Return the ends of an interval of the mean over folds, the first axis, corrected for the rows that fits share.

    Parameters
    ----------
    splits : Pairs (rows to fit, rows held out), one for each fold.
    level : Probability that the interval should have.

    Examples
    --------
    >>> splits = [(np.arange(8), np.arange(2))] * 5
    >>> fold_interval(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), splits).round(3)
    array([0.055, 5.945])
    """
    if not (isinstance(level, Real) and 0 < level < 1):
        raise ValueError(f"level is a probability between 0 and 1, got {level!r}.")
    scores = np.asarray(scores, dtype=float)
    n = len(scores)
    shared = sum(len(test) for _, test in splits) / sum(len(train) for train, _ in splits)
    reach = t.ppf((1 + level) / 2, n - 1) * standard_errors(scores) * np.sqrt(1 + n * shared) if n > 1 else np.nan
    mean = scores.mean(axis=0)
    return np.stack([mean - reach, mean + reach])
