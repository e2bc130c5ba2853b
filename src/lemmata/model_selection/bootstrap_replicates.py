"""The statistic of every resample, of the samples with each row left out, and its own estimate of its standard error."""

from functools import partial

import numpy as np

from lemmata.core.fits import fit_all
from lemmata.model_selection.bootstrap_statistics import named


def replicate(evaluate, draws, *, ours, n_jobs=None, verbose=0):
    """Evaluate all tables of draws: arrays of the replicates and of their errors, or None for these."""
    work = partial(_of_task, evaluate, draws)
    parts = fit_all(work, draws.tasks(), ours=ours, n_jobs=n_jobs, verbose=verbose, name="tables of resamples")
    values, errors = zip(*parts, strict=True)
    return np.concatenate(values), None if errors[0] is None else np.concatenate(errors)


def _of_task(evaluate, draws, task):
    return evaluate(draws.table(task))


def compiled(statistic, samples):
    """Make the evaluation of a table: by kernels for a named statistic, row by row for a function."""
    known = named(statistic)
    if known is None:
        return partial(_function_of_rows, statistic, samples)
    wide = samples.arrays[0].ndim == 2
    columns = samples.arrays[0].T if wide else [samples.arrays]
    prepared = [known.prepare(np.ascontiguousarray(c)) if wide else known.prepare(*c) for c in columns]
    return partial(_kernel_of_rows, prepared, wide)


def plain(statistic, samples):
    """Make the same without kernels, by which they are checked."""
    known = named(statistic)
    return partial(_function_of_rows, statistic, samples) if known is None else partial(_plain_of_rows, known, samples)


def _kernel_of_rows(prepared, wide, rows):
    values, errors = np.empty((len(rows), len(prepared))), np.empty((len(rows), len(prepared)))
    for j, (kernel, arguments, finish) in enumerate(prepared):
        out, error = np.empty(len(rows)), np.empty(len(rows))
        kernel(rows, *arguments, out, error)
        values[:, j], errors[:, j] = finish(out, error)
    return (values, errors) if wide else (values[:, 0], errors[:, 0])


def _function_of_rows(function, samples, rows):
    values = [np.asarray(function(*samples.taken(r)), dtype=np.float64) for r in rows]
    if len({v.shape for v in values}) > 1:
        raise ValueError(f"statistic must give the same shape for every resample, got {sorted({v.shape for v in values})}.")
    return np.stack(values), None


def _plain_of_rows(known, samples, rows):
    return np.asarray(known.plain(*(a[rows] for a in samples.arrays), axis=1)), None


def left_out(statistic, samples, rows=None):
    """Give the statistic of the samples, or of a resample of them, with each row left out: (rows, …)."""
    n = len(samples.groups)
    known = named(statistic)
    if known is not None and rows is None:
        if samples.arrays[0].ndim == 2:
            return np.column_stack([known.left_out(column) for column in samples.arrays[0].T])
        return known.left_out(*samples.arrays)
    rows = np.arange(n) if rows is None else rows
    others = samples if samples.cuts is None else None
    values = []
    for i in range(n):
        if others is not None:
            arrays = others.taken(np.delete(rows, i))
        else:
            arrays = samples.taken(rows)
            which = int(np.searchsorted(samples.cuts, i, side="right")) - 1
            arrays[which] = np.delete(arrays[which], i - samples.cuts[which], axis=0)
        values.append(np.asarray(statistic(*arrays), dtype=np.float64))
    return np.stack(values)


def influences(values, groups):
    """Turn values with each row left out into what the rows add to the statistic: they sum to zero over each group."""
    out = np.empty_like(values)
    for g in range(groups.max() + 1):
        inside = groups == g
        n = inside.sum()
        out[inside] = (values[inside].mean(axis=0) - values[inside]) * (n - 1) / n
    return out


def jackknife_error(values, groups):
    """Give the jackknife's standard error from values with each row left out."""
    total = 0.0
    for g in range(groups.max() + 1):
        inside = values[groups == g]
        total = total + (len(inside) - 1) * inside.var(axis=0)
    return np.sqrt(total)


def jackknife_errors(statistic, samples, rows):
    """Give the standard error of each resample of a table by the jackknife: the statistic is called for each row of each."""
    of_places = np.sort(samples.groups)  # a resample has the rows of one group after those of the other
    errors = [jackknife_error(left_out(statistic, samples, r), of_places) for r in rows]
    return np.stack(errors), None
