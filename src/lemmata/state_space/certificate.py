"""What a state-space model proves: exact states, an exact likelihood and, after a fit, a stationary one.

The smoothed means are checked in the normal equations of the path (`information`): f is strictly convex, so a residual of zero
means the minimum, and the posterior's mean. Covariances and the log-likelihood are recomputed there without a filter. Where a
noise has no density, the sparse system of `kkt` takes over, with covariances at some of the times.
After a fit the derivative of the log-likelihood in every free array must vanish up to what 0.1 % of change in the array would
cause: for covariances, in their factors, and where one is singular it must not pay to raise it. Fixed entries must be as given.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import SABOTAGE, SAME_LIMIT, TINY, Check, equi, length, same
from lemmata.state_space.em import REGRESSIONS
from lemmata.state_space.information import batch_of, normal_equations, posterior, residual, score, timed
from lemmata.state_space.kkt import Path, some_times
from lemmata.state_space.matrices import COVARIANCES, Series, half

REGULAR = 1e-9  # eigenvalue of a matrix of correlations below which its inverse has too few digits
DIGITS = 1e-4  # eigenvalue, relative to the largest, below which Fisher's identity has too few
RAISES = (1e-3, 1e-6, 1e-9)  # of a variance, relative to the largest: several, since units may differ
NOTHING = 1e-6  # variance, relative to the size of what it is the noise of, that is none
AGREE = 1e-12  # nats for an entry in which two ways to the log-likelihood may differ if both have their digits
NUDGE = 1e-4  # relative step of central differences: its square and rounding over it are both small

MEANS = "the smoothed means minimize a strictly convex quadratic"
STATIONARY = "the derivative of the log-likelihood vanishes"
SAME = {
    "means": "the smoothed means solve the normal equations of the path",
    "covariances": "they are blocks of the inverse of the normal equations",
    "lag-one covariances": "they are the blocks beside the diagonal",
    "log-likelihood": "it equals log p(rows, path) - log p(path | rows)",
}


def refused(message):
    """Make the check of matrices that are none."""
    return Check("matrices", np.inf, SAME_LIMIT, "proof", message)


def regular(m, T):
    """Tell whether every noise has a density, in units of its diagonal."""
    for name in COVARIANCES:
        P = timed(getattr(m, name), T)
        scale = np.sqrt(np.diagonal(P, axis1=-2, axis2=-1))
        if not (scale > 0).all() or np.linalg.eigvalsh(P / scale[..., :, None] / scale[..., None, :]).min() < REGULAR:
            return False
    return True


def spacious(m, T):
    """Tell whether every noise is so far from singular that its inverse may be taken twice."""
    eigenvalues = [np.linalg.eigvalsh(timed(getattr(m, name), T)) for name in COVARIANCES]
    return all((values[..., 0] > DIGITS * values[..., -1]).all() for values in eigenvalues)


def joined(series, smoothed):
    """Bring a result for one or many series back to arrays over all rows, and arrays of initial moments."""
    results = smoothed if isinstance(smoothed, list) else [smoothed]
    n = results[0].mean.shape[-1]
    shapes = {"mean": (-1, n), "covariance": (-1, n, n), "lag_one_covariance": (-1, n, n)}
    shapes |= {"initial_mean": (-1, n), "initial_covariance": (-1, n, n), "log_likelihood": (-1,)}
    whole = {k: np.concatenate([np.reshape(getattr(r, k), shape) for r in results]) for k, shape in shapes.items()}
    if len(whole["mean"]) != len(series.rows) or len(whole["initial_mean"]) != len(series.lengths):
        raise ValueError("smoothed must be the result of smooth for this X: it has other rows.")
    return whole


def smoothing_checks(m, series, smoothed):
    """Check means, covariances and log-likelihood of smoothed series."""
    whole = joined(series, smoothed)
    if regular(m, int(series.lengths.max())):
        try:
            checks = _information_checks(m, series, whole)
        except np.linalg.LinAlgError:
            checks = []
        if checks and all(check.holds for check in checks):
            return checks
    return _kkt_checks(m, series, whole)  # either system proves; this one has more digits where a noise is nearly singular


def _information_checks(m, series, whole):
    """Check against the normal equations of all series at once."""
    batch = batch_of(m, series)
    diagonal, above, right, *_ = normal_equations(m, batch)
    where = np.repeat(np.arange(len(series.lengths)), series.lengths), series.time()
    mean = np.concatenate([whole["initial_mean"][:, None], np.zeros(batch.shift.shape)], axis=1)
    mean[where[0], where[1] + 1] = whole["mean"]
    A = timed(m.transition, batch.rows.shape[1])
    for i, n in enumerate(series.lengths):
        for t in range(n, batch.rows.shape[1]):  # after its last row a series goes on as predicted
            mean[i, t + 1] = A[t] @ mean[i, t] + batch.shift[i, t]
    truth = posterior(m, batch)
    checks = [equi(lambda s: residual(diagonal, above, right, s), mean, "normal equations", MEANS, kind="proof")]
    stacked = {
        "means": (whole["mean"], truth.mean[:, 1:], whole["initial_mean"], truth.mean[:, 0]),
        "covariances": (whole["covariance"], truth.covariance[:, 1:], whole["initial_covariance"], truth.covariance[:, 0]),
    }
    N = len(series.lengths)
    for name, (rows, exact, first, exact_first) in stacked.items():
        exact = np.broadcast_to(exact, (N, *exact.shape[1:]))[where]
        exact_first = np.broadcast_to(exact_first, first.shape)
        checks.append(same(np.concatenate([first, rows]), np.concatenate([exact_first, exact]), name, SAME[name]))
    lag = np.broadcast_to(truth.lag, (N, *truth.lag.shape[1:]))[where]
    checks.append(same(whole["lag_one_covariance"], lag, "lag-one covariances", SAME["lag-one covariances"]))
    checks.append(_likelihood(whole["log_likelihood"], truth.log_likelihood, series))
    return checks


def _likelihood(stored, exact, series):
    """Compare log-likelihoods; less than one in a million of a nat for each entry is rounding, whatever the sum."""
    return same(stored, exact, "log-likelihood", SAME["log-likelihood"], floor=float((~np.isnan(series.rows)).sum()))


def paths(m, series):
    """Solve the sparse system of every series."""
    shift, rows = series.offsets(m)
    shift = shift if len(shift) else np.zeros((len(rows), len(m.initial_mean)))
    for a, b in zip(series.starts[:-1], series.starts[1:], strict=True):
        yield Path(m, rows[a:b], shift[a:b])


def _kkt_checks(m, series, whole):
    """Check against the sparse systems."""
    found = {name: ([], []) for name in SAME}

    def add(name, stored, exact):
        found[name][0].append(np.ravel(stored))
        found[name][1].append(np.ravel(exact))

    for i, path in enumerate(paths(m, series)):
        a, b = series.starts[i], series.starts[i + 1]
        add("means", np.vstack([whole["initial_mean"][i], whole["mean"][a:b]]), path.mean)
        add("log-likelihood", whole["log_likelihood"][i], path.log_likelihood)
        for t in some_times(b - a):
            own, before = path.covariance(t)
            add("covariances", whole["covariance"][a + t - 1] if t else whole["initial_covariance"][i], own)
            if t:
                add("lag-one covariances", whole["lag_one_covariance"][a + t - 1], before)
    pairs = {name: (np.concatenate(x), np.concatenate(y)) for name, (x, y) in found.items()}
    stored, exact = pairs.pop("log-likelihood")
    return [*(same(x, y, name, SAME[name]) for name, (x, y) in pairs.items()), _likelihood(stored, exact, series)]


class Recomputed(NamedTuple):
    """How to compute the log-likelihood and its derivatives, and the sizes that variances are measured against."""

    value: Callable
    derivative: Callable
    entries: float
    sizes: dict


def recomputed(m, series):
    """Choose the normal equations if they have the digits for it, else the sparse system, which has more and takes longer."""
    first = Series(series.rows[: series.starts[1]], series.starts[:2], series.inputs[: series.starts[1]], "one")
    path, trusted = next(paths(m, first)), False
    if spacious(m, int(series.lengths.max())):
        try:
            off = posterior(m, batch_of(m, first)).log_likelihood[0] - path.log_likelihood
            trusted = abs(off) <= AGREE * first.rows.size
        except np.linalg.LinAlgError:
            trusted = False
    state, output = float(np.mean(path.mean**2)), float(np.nanmean(series.rows**2))
    sizes = {"transition_covariance": state, "initial_covariance": state, "observation_covariance": output}
    entries = float((~np.isnan(series.rows)).sum())
    return Recomputed(*((dense_value, fisher) if trusted else (sparse_value, differences)), entries, sizes)


def fit_checks(m, given, free, series, log_likelihood):
    """Check what EM promises: the log-likelihood is stationary in what is free, and the rest is as given."""
    off = [0.0]
    for name, mask in free._asdict().items():
        stored, asked = getattr(m, name)[~mask], getattr(given, name)[~mask]
        off.append(length(stored - asked) / max(length(asked), TINY) if stored.size else 0.0)
    checks = [Check("fixed entries", max(off), SAME_LIMIT, "proof", "what was fixed is as it was given")]
    how = recomputed(m, series)
    for names, covariance in REGRESSIONS:
        for name in names:
            if getattr(m, name)[getattr(free, name)].any():  # 1 % of nothing is nothing
                checks.append(_stationary(m, series, name, getattr(free, name), how))
        if getattr(free, covariance).any():
            checks += _stationary_covariance(m, series, covariance, getattr(free, covariance), how)
    claim = "the log-likelihood that was noted is that of the rows"
    exact = how.value(m, series)
    return [*checks, same(log_likelihood, exact, "noted likelihood", claim, floor=SAME_LIMIT * how.entries)]


def dense_value(m, series):
    """Compute the log-likelihood of all series from the normal equations."""
    return float(posterior(m, batch_of(m, series)).log_likelihood.sum())


def sparse_value(m, series):
    """Compute the log-likelihood of all series from the sparse systems."""
    return float(sum(path.log_likelihood for path in paths(m, series)))


def fisher(m, series, name, mask):
    """Differentiate the log-likelihood in the free entries of one array by Fisher's identity."""
    names, covariance = next(r for r in REGRESSIONS if name in (*r[0], r[1]))
    coefficients, noise = score(m, batch_of(m, series), covariance)
    if name == covariance:
        return noise[mask]
    shape = getattr(m, name).shape
    at = sum(getattr(m, other).shape[-1] for other in names[: names.index(name)])
    return coefficients[:, at : at + (shape[1] if len(shape) == 2 else 1)].reshape(shape)[mask]


def differences(m, series, name, mask):
    """Differentiate the log-likelihood in the free entries of one array by central differences."""
    out, array, unit = [], getattr(m, name), _units(m, name)
    for entry in zip(*np.nonzero(mask), strict=True):
        step, values = np.zeros(array.shape), []
        step[entry] = NUDGE * unit[entry]
        step = (step + step.T) / 2 if name in COVARIANCES else step
        for sign in (1, -1):
            values.append(sparse_value(m._replace(**{name: array + sign * step}), series))
        out.append((values[0] - values[1]) / (2 * NUDGE * unit[entry]))
    return np.array(out)


def _stationary(m, series, name, mask, how):
    """Check the derivative in one array of coefficients, in the units of its entries."""
    unit = _units(m, name)

    def move(a, rng):
        u = np.where(mask, rng.standard_normal(a.shape), 0.0) * unit
        return a + SABOTAGE * length(a[mask]) / max(length(u), TINY) * u

    def gradient(a):
        return how.derivative(m._replace(**{name: a}), series, name, mask) * unit[mask]

    return equi(gradient, getattr(m, name), f"stationary: {name}", STATIONARY, move=move)


def _stationary_covariance(m, series, name, mask, how):
    """Check the derivative in the factor L of a covariance P = LLᵀ, and the border of zero where P lies on it."""
    lower, unit = mask & np.tri(len(mask), dtype=bool), np.sqrt(np.diagonal(_units(m, name)))

    def move(L, rng):
        u = np.where(lower, rng.standard_normal(L.shape), 0.0) * unit[:, None]
        return L + SABOTAGE * length(L[lower]) / max(length(u), TINY) * u

    def gradient(L):
        G = np.zeros(L.shape)
        G[mask] = how.derivative(m._replace(**{name: L @ L.T}), series, name, mask)
        return (G @ L * unit[:, None])[lower]

    border = _border(m, series, name, mask, how)
    if np.abs(getattr(m, name)[mask]).max() <= NOTHING * how.sizes[name]:
        return border  # all of it is zero but for rounding, and 1 % of nothing is nothing
    return [equi(gradient, half(getattr(m, name)), f"stationary: {name}", STATIONARY, move=move), *border]


def _border(m, series, name, mask, how):
    """Check variances that are next to zero: neither to raise them, by as little as it may matter, nor to drop them pays."""
    P, inside = getattr(m, name), np.flatnonzero(np.diagonal(mask))
    values, directions = np.linalg.eigh(P[np.ix_(inside, inside)])
    scale = values[-1] if values[-1] > NOTHING * how.sizes[name] else how.sizes[name]
    here, gains = how.value(m, series), []
    for value, u in zip(values, directions.T, strict=True):
        if value >= RAISES[0] * scale:
            continue
        full = np.zeros(len(P))
        full[inside] = u
        changes = [raised * scale for raised in RAISES] + ([-value] if value <= NOTHING * scale else [])
        for change in changes:
            there = P + np.where(mask, change * np.outer(full, full), 0.0)
            gains.append(sparse_value(m._replace(**{name: there}), series) - here)
    claim = "variances next to zero want neither to rise nor to fall"
    return [Check(f"border: {name}", max(gains) / how.entries, SAME_LIMIT, "local", claim)] if gains else []


def _units(m, name):
    """Give every entry of an array its unit, from the standard deviations of what it connects."""
    state, output = (np.sqrt(np.diagonal(getattr(m, c), axis1=-2, axis2=-1)) for c in COVARIANCES[:2])
    state, output = (np.where(s > 0, s, 1.0).reshape(-1, s.shape[-1]).mean(axis=0) for s in (state, output))
    first = np.sqrt(np.where(np.diagonal(m.initial_covariance) > 0, np.diagonal(m.initial_covariance), 1.0))
    k = m.control.shape[-1]
    return {
        "transition": np.outer(state, 1 / state),
        "observation": np.outer(output, 1 / state),
        "control": np.outer(state, np.ones(k)),
        "feedthrough": np.outer(output, np.ones(k)),
        "initial_mean": first,
        "transition_covariance": np.outer(state, state),
        "observation_covariance": np.outer(output, output),
        "initial_covariance": np.outer(first, first),
    }[name]
