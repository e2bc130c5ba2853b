"""EM for the matrices of a linear Gaussian model, with any entries held fixed.

The E-step smooths and adds up expectations of the noises (`moments`); the M-step is three regressions: of s_t on (s_{t−1},
inputs), of x_t on (s_t, inputs), of s₀ on 1. Each has coefficients C and a noise covariance N, and with Eₑₑ, E_ez, E_zz the
expected products of the present noise and the regressors, changing C by Δ turns the expected log-density of n rows into

    −½ (n log |N| + tr N⁻¹ (Eₑₑ − Δ E_zeᵀ − E_ez Δᵀ + Δ E_zz Δᵀ)).

With all of C free, Δ = E_ez E_zz⁻¹ whatever N is. Where entries are fixed, the free ones solve (N⁻¹ ⊗ E_zz) Δ = N⁻¹E_ez
restricted to them, with the present N; then N is the mean of the new products. Either step raises the expected log-density, so
the log-likelihood never falls [1, 2]. A covariance is fixed by blocks: entries between blocks are zero and stay so.

EM converges linearly, and slowly where states are seen badly; where the best covariance is singular, slower still. The same
sums have the derivative of the log-likelihood (Fisher's identity), so between EM steps there are leaps, steps of a quasi-Newton
method in coordinates without constraints, scaled by what EM knows of the curvature [3]. A leap is tried, not trusted: where the
likelihood falls, the next step is the EM step that the leap replaced. The last word is always EM's.

[1] Shumway & Stoffer, J. Time Ser. Anal. 3 (1982). [2] Meng & Rubin, Biometrika 80 (1993). [3] Jamshidian &
Jennrich, J. R. Stat. Soc. B 59 (1997).
"""

import numpy as np
from scipy.linalg import solve_triangular

from lemmata.core.certificate import TINY
from lemmata.state_space.matrices import COVARIANCES, Matrices, system_of
from lemmata.state_space.moments import moments

MEMORY = 20  # points that a leap knows about
LONGEST = 2.0  # change of one coordinate in a leap: of a variance, e⁴ times as much or as little
SHORTER = 4.0  # after a leap that failed, the next one may go so much less far
SINGULAR = 1e-8  # share of a unit vector that lies outside the range of a covariance
# Coefficients of one regression, their regressors' columns coming in this order, and the covariance of its noise.
REGRESSIONS = (
    (("transition", "control"), "transition_covariance"),
    (("observation", "feedthrough"), "observation_covariance"),
    (("initial_mean",), "initial_covariance"),
)


def free_entries(fixed, m):
    """Turn names, or a mapping from names to masks, of what is fixed into `Matrices` of masks of what is free."""
    if isinstance(fixed, str):
        fixed = (fixed,)
    wanted = dict(fixed) if isinstance(fixed, dict) else dict.fromkeys(fixed, True)
    strange = set(wanted) - set(Matrices._fields)
    if strange:
        raise ValueError(f"fixed names {sorted(strange)}, which are no matrices; there are {list(Matrices._fields)}.")
    free = {}
    for name, value in m._asdict().items():
        mask = np.asarray(wanted.get(name, False), dtype=bool)
        if mask.shape not in ((), value.shape):
            raise ValueError(f"fixed must give {name} True, False or a mask of shape {value.shape}; it has {mask.shape}.")
        free[name] = np.broadcast_to(~mask, value.shape).copy()
        if value.ndim == 3 and free[name].any():
            raise ValueError(f"{name} varies with time and cannot be fitted; name it in fixed.")
    for name in COVARIANCES:
        _check_blocks(name, free[name], getattr(m, name))
    free = Matrices(**free)
    for coefficients, covariance in REGRESSIONS:
        rows = _joined(free, coefficients)
        _check_noise(coefficients[0], rows.any(axis=1), rows.all(), covariance, getattr(m, covariance))
    if not any(mask.any() for mask in free):
        raise ValueError("Every entry of every matrix is fixed: there is nothing to fit; filter and smooth need no fit.")
    return free


def _check_blocks(name, free, P):
    """Raise unless the free entries of a covariance are blocks, with zeros between them and the rest."""
    if not free.any():
        return
    inside = np.diagonal(free)
    same_block = (free[:, None, :] == free[None, :, :]).all(axis=2)  # rows with the same pattern
    if (free != free.T).any() or (free != (same_block & inside[:, None] & inside)).any():
        raise ValueError(f"The free entries of {name} must be whole blocks on its diagonal, such as the diagonal itself.")
    if (P[~free & (inside[:, None] | inside)] != 0).any():
        raise ValueError(f"The fixed entries of {name} between its free blocks and the rest must be zero.")


def _check_noise(name, rows, all_free, covariance, N):
    """Raise unless the noise of rows with free coefficients has a density, which decides between them."""
    if not rows.any() or all_free:
        return
    if N.ndim == 3:
        raise ValueError(f"{covariance} varies with time, so {name} cannot be fitted; name it in fixed.")
    outside = 1 - np.diagonal(N @ np.linalg.pinv(N, hermitian=True))
    if (outside[rows] > SINGULAR).any():
        raise ValueError(
            f"Rows of {name} with free entries need noise with a positive variance in {covariance}; fix those rows."
        )


def _joined(m, names):
    """Set the coefficients of a regression side by side; those that vary with time count as zero, since they are fixed."""
    arrays = [getattr(m, name) for name in names]
    arrays = [a[:, None] if a.ndim == 1 else np.zeros(a.shape[1:], a.dtype) if a.ndim == 3 else a for a in arrays]
    return np.concatenate(arrays, axis=1)


def improve(products, by, regressors, free, N):
    """Give the change of free coefficients that maximizes the expected log-density, and the products of noise after it."""
    if free.all():
        change = np.linalg.lstsq(regressors, by.T, rcond=None)[0].T
    else:
        change = np.zeros(by.shape)
        i, j = np.nonzero(free)
        if len(i):
            precision = np.linalg.pinv(N, hermitian=True)
            normal = precision[i][:, i] * regressors[j][:, j]
            change[i, j] = np.linalg.lstsq(normal, (precision @ by)[i, j], rcond=None)[0]
    cross = change @ by.T
    return change, products - cross - cross.T + change @ regressors @ change.T


def _sums(s):
    """Give each regression its rows, products of noise, of noise and regressors, and of regressors."""
    one = np.array([[float(s.series)]])
    return (s.steps, s.noise, s.noise_by, s.by), (s.rows, s.error, s.error_by, s.seen_by), (s.series, s.start, s.start_by, one)


def m_step(m, free, s):
    """Give the matrices that maximize the expected log-density, as far as they are free."""
    one = np.array([[float(s.series)]])
    sums = (
        (s.steps, s.noise, s.noise_by, s.by),
        (s.rows, s.error, s.error_by, s.seen_by),
        (s.series, s.start, s.start_by, one),
    )
    new = {}
    for (names, covariance), (n, products, by, regressors) in zip(REGRESSIONS, sums, strict=True):
        N, at = getattr(m, covariance), 0
        change, products = improve(products, by, regressors, _joined(free, names), N)
        for name in names:
            old = getattr(m, name)
            width = 1 if old.ndim == 1 else old.shape[-1]
            new[name] = old if old.ndim == 3 else old + change[:, at : at + width].reshape(old.shape)
            at += width
        mean = (products + products.T) / (2 * n)
        new[covariance] = np.where(getattr(free, covariance), mean, N) if N.ndim == 2 else N
    return Matrices(**new)


def _blocks(mask):
    """List the free blocks of a covariance as arrays of indices."""
    inside = np.flatnonzero(np.diagonal(mask)) if mask.ndim == 2 else []
    return [np.flatnonzero(mask[i]) for i in inside if np.flatnonzero(mask[i])[0] == i]


def pack(m, free):
    """Give the free entries as a vector without constraints, covariances by triangles with logarithms; None on the border."""
    parts = []
    for name, value, mask in zip(m._fields, m, free, strict=True):
        if name not in COVARIANCES:
            parts.append(value[mask])
            continue
        for block in _blocks(mask):
            try:
                L = np.linalg.cholesky(value[np.ix_(block, block)])
            except np.linalg.LinAlgError:
                return None
            parts += [np.log(np.diagonal(L)), L[np.tril_indices(len(block), -1)]]
    return np.concatenate(parts)


def unpack(vector, m, free):
    """Undo `pack`, the fixed entries being those of m; None if a number leaves the range of numbers."""
    new, at = {}, 0
    with np.errstate(over="ignore"):
        for name, value, mask in zip(m._fields, m, free, strict=True):
            new[name] = value.copy()
            if name not in COVARIANCES:
                n = int(mask.sum())
                new[name][mask] = vector[at : at + n]
                at += n
                continue
            for block in _blocks(mask):
                k = len(block)
                L, below = np.diag(np.exp(vector[at : at + k])), np.tril_indices(k, -1)
                L[below] = vector[at + k : at + k + len(below[0])]
                at += k + len(below[0])
                new[name][np.ix_(block, block)] = L @ L.T
    found = Matrices(**new)
    return found if all(np.isfinite(a).all() for a in found) else None


def ascent(m, free, s):
    """Give the derivative of the log-likelihood in the coordinates of `pack` (Fisher's identity), and a scale for each of them.

    The scale is the inverse of the curvature that the likelihood would have if the states were seen.
    """
    slopes, scales = {}, {}
    for (names, covariance), (n, products, by, regressors) in zip(REGRESSIONS, _sums(s), strict=True):
        N, mask, at = getattr(m, covariance), getattr(free, covariance), 0
        if N.ndim == 3:
            precision, variances = np.zeros(N.shape[1:]), np.zeros(len(by))  # neither it nor its coefficients are free
        else:
            precision, variances = np.linalg.pinv(N, hermitian=True), np.diagonal(N)
        slope, scale = precision @ by, np.divide.outer(variances, np.maximum(np.diagonal(regressors), TINY))
        for name in names:
            old = getattr(m, name)
            width = 1 if old.ndim == 1 else old.shape[-1]
            if old.ndim < 3:
                part = slice(at, at + width)
                chosen = getattr(free, name)
                slopes[name], scales[name] = (a[:, part].reshape(old.shape)[chosen] for a in (slope, scale))
            at += width
        slopes[covariance], scales[covariance] = [], []
        for block in _blocks(mask) if N.ndim == 2 else ():
            L = np.linalg.cholesky(N[np.ix_(block, block)])
            inner = solve_triangular(L, solve_triangular(L, products[np.ix_(block, block)], lower=True).T, lower=True)
            steep = solve_triangular(L, inner - n * np.eye(len(block)), lower=True, trans=1)
            below = np.tril_indices(len(block), -1)
            slopes[covariance] += [np.diagonal(steep) * np.diagonal(L), steep[below]]
            steepness = n * np.diagonal(precision[np.ix_(block, block)])
            scales[covariance] += [np.full(len(block), 0.5 / n), (1 / np.maximum(steepness, TINY))[below[0]]]
    ordered = [name for name in m._fields if name in slopes]
    flat = [[np.concatenate([*a[name], []]) if name in COVARIANCES else a[name] for name in ordered] for a in (slopes, scales)]
    return np.concatenate(flat[0]), np.concatenate(flat[1])


def _leap(memory, scale, reach):
    """Take the step of a quasi-Newton method (limited memory, up the likelihood) from the last of some points with slopes."""
    points, slopes = (np.array(column) for column in zip(*memory, strict=True))
    pairs = [(a, -b) for a, b in zip(np.diff(points, axis=0), np.diff(slopes, axis=0), strict=True) if -(a @ b) > 0]
    q, kept = slopes[-1].copy(), []
    for a, b in reversed(pairs):
        share = (a @ q) / (a @ b)
        q -= share * b
        kept.append(share)
    if pairs:
        a, b = pairs[-1]
        scale = scale * (a @ b) / (b @ (scale * b))
    q *= scale
    for (a, b), share in zip(pairs, reversed(kept), strict=True):
        q += (share - (b @ q) / (a @ b)) * a
    return points[-1] + q * min(1.0, reach / np.abs(q).max(initial=TINY)) if pairs else None


def begin(m):
    """Give the state of the iteration: what to try, what is safe, the value before, how far a leap may go, the leap, memory."""
    return m, m, -np.inf, LONGEST, False, ()


def step(state, series, free, tol, leaps):
    """Do one step; return (state, mean log-likelihood of a seen number, its change by a plain EM step)."""
    tried, safe, before, reach, leaped, memory = state
    try:
        shift, rows = series.offsets(tried)
        sums = moments(system_of(tried), rows, shift, series.starts, series.inputs)
        value = float(sums.log_likelihood) / max(float(sums.entries), 1.0)
    except ValueError:
        if not leaped:
            raise
        return (safe, safe, before, reach / SHORTER, False, memory), before, np.inf  # rows have no density there
    here = pack(tried, free) if leaps else None
    if here is not None:
        slope, scale = ascent(tried, free, sums)
        memory = (*memory, (here, slope))[-MEMORY:]
    if leaped and not value >= before:
        return (safe, safe, before, reach / SHORTER, False, memory), before, np.inf
    after, target = m_step(tried, free, sums), None
    change = np.inf if leaped else abs(value - before)
    reach = min(2 * reach, LONGEST) if leaped else reach
    if here is not None and change > tol and not (leaped and value - before <= tol):
        # After a leap that gained nothing a plain step has the last word.
        vector = _leap(memory, scale, reach)
        target = None if vector is None else unpack(vector, tried, free)
    return (after if target is None else target, after, value, reach, target is not None, memory), value, change
