"""Splits: which rows a model is fitted to and which are held out to test it, fold by fold.

A number of folds means random equal folds: the rows are shuffled and cut, class by class for a classifier so that each fold has
its share of every class, and group by group where groups are given. Any splitter of scikit-learn and any list of pairs of
row numbers will do as well. A row of weight zero is absent: it is neither fitted nor tested, as if it had been left out of
the table.
"""

from numbers import Integral

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.utils import _safe_indexing
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_consistent_length

from lemmata.core.random import generator

SEEDS = 2**31 - 1  # those that scikit-learn takes


def make_splits(X, y=None, cv=5, *, groups=None, weight=None, classifier=False, random_state=None):
    """List the pairs (rows to fit, rows held out), each an array of row numbers.

    Parameters
    ----------
    cv : Number of folds, splitter, or iterable of pairs of row numbers or masks.
    groups : Rows of one group are never divided by a number of folds; other splitters get them as they are, and pairs that
        divide one are refused.
    weight : A row of weight zero is in no split.
    classifier : Whether a number of folds keeps the shares of the classes.
    random_state : Seed of the shuffling by which a number of folds is cut; a splitter has its own.

    Examples
    --------
    >>> X = np.zeros((6, 1))
    >>> splits = make_splits(X, cv=3, random_state=0)
    >>> sorted(np.concatenate([test for _, test in splits]).tolist())
    [0, 1, 2, 3, 4, 5]
    >>> train, test = make_splits(X, cv=[([0, 1, 2], [3, 4])], weight=np.array([1, 1, 0, 1, 1, 1]))[0]
    >>> train.tolist(), test.tolist()
    ([0, 1], [3, 4])
    """
    n = count_rows(X)
    present = np.arange(n) if weight is None else np.flatnonzero(weight > 0)
    check_groups(groups, X)
    if isinstance(cv, str | type) or not (isinstance(cv, Integral) or hasattr(cv, "split")):
        pairs = _given(cv, n)
        if groups is not None:
            _check_groups(pairs, np.asarray(groups))
    elif isinstance(cv, PredefinedSplit):  # which numbers the rows of the whole table
        pairs = [(_numbers(train, n, "cv"), _numbers(test, n, "cv")) for train, test in cv.split()]
    else:
        rows = [part if part is None else _safe_indexing(part, present) for part in (X, y, groups)]
        splitter = _folds(cv, rows[1], rows[2], classifier, random_state) if isinstance(cv, Integral) else cv
        pairs = [(present[train], present[test]) for train, test in splitter.split(*rows)]
    if len(present) < n:
        pairs = [(train[weight[train] > 0], test[weight[test] > 0]) for train, test in pairs]
    _check(pairs)
    return pairs


def _folds(n_folds, y, groups, classifier, random_state):
    """Choose the splitter that a number of folds stands for."""
    if isinstance(n_folds, bool) or n_folds < 2:
        raise ValueError(f"cv must be at least 2 folds, a splitter, or pairs of row numbers; got {n_folds!r}.")
    seed = int(generator(random_state).integers(SEEDS))
    classes = classifier and y is not None and type_of_target(y) in ("binary", "multiclass")
    if groups is None:
        return (StratifiedKFold if classes else KFold)(n_folds, shuffle=True, random_state=seed)
    return (StratifiedGroupKFold if classes else GroupKFold)(n_folds, shuffle=True, random_state=seed)


def _given(cv, n):
    """Read pairs of row numbers or masks."""
    listed = list(cv) if hasattr(cv, "__iter__") and not isinstance(cv, type) else [cv]  # a generator's errors are its own
    try:
        pairs = [(train, test) for train, test in listed]
    except (TypeError, ValueError):
        raise ValueError(
            f"cv must be a number of folds, a splitter, or pairs (rows to fit, rows to test); got {cv!r}."
        ) from None
    return [
        (_numbers(train, n, f"cv[{i}], rows to fit,"), _numbers(test, n, f"cv[{i}], rows to test,"))
        for i, (train, test) in enumerate(pairs)
    ]


def _numbers(rows, n, name):
    """Turn row numbers or a mask into row numbers."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n,):
        return np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and len(rows)) or (len(rows) and not 0 <= rows.min() <= rows.max() < n):
        raise ValueError(f"{name} must be numbers of rows from 0 to {n - 1}, or a mask of {n} rows.")
    return rows.astype(np.int64)


def _check(pairs):
    """Refuse splits from which nothing can be learned about new rows."""
    if not pairs:
        raise ValueError("cv made no split: it must hold out some rows at least once.")
    for i, (train, test) in enumerate(pairs):
        for rows, purpose in ((train, "to fit"), (test, "to test")):
            if not len(rows):
                raise ValueError(f"Split {i} leaves no rows {purpose}.")
        both = np.intersect1d(train, test)
        if len(both):
            raise ValueError(
                f"Split {i} tests on row {both[0]}, to which the model was fitted: its score would not be of unseen rows."
            )
        if len(np.unique(test)) < len(test):
            raise ValueError(f"Split {i} names a row to test twice; give it the weight 2 by sample_weight.")


def check_groups(groups, X):
    """Refuse groups of other rows, and rows without a group.

    Examples
    --------
    >>> check_groups(["a", None], np.zeros((2, 1)))
    Traceback (most recent call last):
        ...
    ValueError: Row 1 has no group: leave such rows out, or make each a group of its own.
    """
    check_consistent_length(X, groups)
    for i, group in enumerate([] if groups is None else groups):
        if _is_nothing(group):
            raise ValueError(f"Row {i} has no group: leave such rows out, or make each a group of its own.")


def check_targets(y, weight=None):
    """Refuse rows without a target among objects, which could not be put in order; NaN among numbers is the estimator's matter.

    Examples
    --------
    >>> check_targets(np.array(["a", None], dtype=object))
    Traceback (most recent call last):
        ...
    ValueError: Row 1 has no target: leave such rows out.
    """
    if y is None or y.ndim != 1 or y.dtype.kind != "O":
        return
    for i, target in enumerate(y):
        if _is_nothing(target) and (weight is None or weight[i] > 0):
            raise ValueError(f"Row {i} has no target: leave such rows out.")


def _is_nothing(value):
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas' NA does not say whether it equals itself
        return True
    except ValueError:  # nor does an array as a whole
        return False


def _check_groups(pairs, groups):
    """Refuse pairs that divide a group."""
    for i, (train, test) in enumerate(pairs):
        both = np.intersect1d(groups[train], groups[test])
        if len(both):
            raise ValueError(f"Split {i} fits to rows of the group {both[0]!r} and tests on others of it.")


def count_rows(X):
    """Return the number of rows of a table in memory, or of the sequences of a list.

    Examples
    --------
    >>> count_rows([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    3
    """
    return X.shape[0] if hasattr(X, "shape") else len(X)


def times_held_out(splits, n):
    """Count how often each of n rows is held out.

    Examples
    --------
    >>> times_held_out([(np.array([1, 2]), np.array([0])), (np.array([0]), np.array([1, 2]))], 4)
    array([1, 1, 1, 0])
    """
    counts = np.zeros(n, dtype=np.int64)
    for _, test in splits:
        counts[test] += 1
    return counts


def fold_numbers(splits, n):
    """Give each row the number of the fold that holds it out, −1 for none: (n,), or (repeats, n) if some are held out again.

    Examples
    --------
    >>> fold_numbers([(np.array([1, 2]), np.array([0])), (np.array([0]), np.array([1, 2]))], 4)
    array([ 0,  1,  1, -1])
    """
    seen = np.zeros(n, dtype=np.int64)
    folds = np.full((max(int(times_held_out(splits, n).max()), 1), n), -1)
    for i, (_, test) in enumerate(splits):
        folds[seen[test], test] = i
        seen[test] += 1
    return folds[0] if len(folds) == 1 else folds


def keeps_time(cv):
    """Tell whether a splitter promises that rows are tested after those of the fit.

    Examples
    --------
    >>> keeps_time(TimeSeriesSplit(3)), keeps_time(5)
    (True, False)
    """
    return isinstance(cv, TimeSeriesSplit)
