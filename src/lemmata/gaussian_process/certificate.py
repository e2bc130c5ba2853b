"""What proves a Gaussian process fit, from its parameters and its rows.

The rows, targets and weights that the model keeps are those given. ‖LLᵀ − (K + D)‖ is of the size of rounding, so every
variance is that of the model; α solves (K + D)α = y up to a residual r, and then no mean is off by more than √k(x, x)·‖r‖/σ
[1]. The log evidence comes again from a factorization that is not Cholesky's, and means and variances at some places from
solves with the whole matrix. The slopes of the evidence vanish in all hyperparameters that were searched for and are not at
their bounds, where they must point out; this is a local statement, the evidence may have other tops. With inducing points:
the points are rows, or those given; LLᵀ = K_ZZ; L(RRᵀ − I)Lᵀ = K_ZX D⁻¹K_XZ; (K_ZZ + K_ZX D⁻¹K_XZ)α = K_ZX D⁻¹y.

[1] With f̂ and f the means for α and for the exact solution, ‖f̂ − f‖² = rᵀ(K + D)⁻¹K(K + D)⁻¹r ≤ ‖r‖²/σ² in the norm of the
kernel.
"""

import numpy as np

from lemmata.core.certificate import EQUI_LIMIT, SABOTAGE, SAME_LIMIT, TINY, Check, length, same
from lemmata.core.threads import serial_blas
from lemmata.gaussian_process import exact, inducing
from lemmata.gaussian_process.box import projected
from lemmata.gaussian_process.factor import LARGEST, least_jitter
from lemmata.gaussian_process.prior import prior

EPS = float(np.finfo(float).eps)
FLAT = 1e-3  # nats: an evidence that bends less than this in the logarithm of a hyperparameter does not depend on it
PLACES = 32  # at which the posterior is computed again
ROUNDINGS = 100  # of a product with α that a residual may have; solves leave up to 7
AT_BOUND = 1e-9  # in logarithms


def checks_of(model, data):
    """Yield the checks of a regressor."""
    rows = [
        same(model.X_train_, data.X, "rows", "the rows that are kept are those given"),
        same(model.y_train_, data.y, "targets", "so are the targets, equal rows together", floor=np.sqrt(EPS)),
        same(model.weight_, data.weight, "weights", "and the weights"),
    ]
    yield from rows
    if not all(check.holds for check in rows):
        return
    asked = data.center if model.center else 0.0
    if not model._updated:
        floor = np.sqrt(EPS * data.spread)
        yield same(model.y_mean_, asked, "center", "it is the mean of the targets, or 0", floor=floor)
    target = data.y - model.y_mean_
    through_points = model.inducing is not None
    before = prior(model.kernel, model.noise, model.noise_bounds, data, data.y - asked, through_points=through_points)
    with serial_blas():
        yield from (inducing_checks if through_points else exact_checks)(model, data, target)
    if model._updated:
        return
    variables = before.variables(model.kernel_, model.noise_)
    if not before.free_noise:
        yield same(model.noise_, before.noise, "noise", "it is the one given")
    same_kind = model.kernel_.with_theta(before.kernel.theta) == before.kernel.with_theta(before.kernel.theta)
    yield Check("kernel", 0.0 if same_kind else np.inf, 0.0, "proof", "it is the one asked for, but for what was searched for")
    if model.optimizer is None:
        moved = length(variables - before.start)
        yield Check("hyperparameters", moved, SAME_LIMIT, "proof", "they are where the search would have started")
    elif len(variables):
        points = model.inducing_points_ if through_points else None
        yield stationary(slopes_of(before, data, target, points), variables, before.bounds)


def exact_checks(model, data, target):
    """Yield the checks of a posterior on all rows."""
    kernel, noise, L, alpha = model.kernel_, float(model.noise_), model.L_, model.alpha_
    K, _ = exact.matrix(kernel, data, noise)
    jitter = jitter_check(model.jitter_, K)
    K.flat[:: len(K) + 1] += model.jitter_
    n, size = len(K), np.linalg.norm(K)
    if L.shape != K.shape or alpha.shape != target.shape:
        yield Check("shapes", np.inf, 0.0, "proof", "the parameters belong to as many rows")
        return
    off = float(np.linalg.norm(L @ L.T - K) / max(size, TINY))
    yield Check("factor", off, max(10 * n * EPS, 1e-13), "proof", "LLᵀ is the kernel matrix with noise and jitter")
    yield jitter
    yield solves(K, alpha, target)
    residual = length(K @ alpha - target) / np.sqrt((noise / data.weight + model.jitter_).min() or TINY)
    claim = "no mean is off by more than this many standard deviations of the prior"
    yield Check("mean", residual, np.inf, "proof", claim)
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, (noise / data.weight).min() + model.jitter_)  # which a valid kernel cannot fall below
    values = np.maximum(values, TINY)
    turned = vectors.T @ target
    terms = [turned**2 / values, np.log(values), np.full(n, np.log(2 * np.pi))]
    value = -sum(term.sum() for term in terms) / 2 + data.constant(noise)[0]
    doubt = n * EPS * values[-1] * ((turned / values) @ (turned / values) + (1 / values).sum()) / SAME_LIMIT
    floor = doubt + np.sqrt(EPS) * sum(np.abs(term).sum() for term in terms)
    claim = "it is ln p(y), recomputed from eigenvalues"
    yield same(model.log_marginal_likelihood_, value, "log evidence", claim, floor=floor)
    yield from posterior_checks(model._posterior(), K, kernel, data, target, values)


def solves(A, alpha, b):
    """Check that Aα = b, up to what rounding of Aα costs.

    Against b, not as `equi` does: of a matrix with small eigenvalues, 1 % of α in a random direction makes far more than 1 % of
    b, so that 1 % of α itself would pass.
    """
    floor = ROUNDINGS * EPS * np.linalg.norm(A) * length(alpha) / SAME_LIMIT
    return same(A @ alpha, b, "alpha", "the means solve their equations", floor=floor)


def jitter_check(jitter, K):
    """Check that a jitter is one of those that are tried: none, or the least one times a power of ten."""
    tried = np.append(inducing.first_jitter(K), least_jitter(K) * 10.0 ** np.arange(12))
    tried = np.append(0.0, tried[tried <= LARGEST * np.diagonal(K).mean()])
    off = float((np.abs(jitter - tried) / np.maximum(tried, TINY)).min())
    return Check("jitter", off, SAME_LIMIT, "proof", "none, or one of a few, at most a millionth of the diagonal")


def posterior_checks(posterior, K, kernel, data, target, values):
    """Compute means and variances at some rows, and between them, by solves with the whole matrix."""
    pick = np.linspace(0, len(data.X) - 1, min(PLACES, len(data.X))).astype(int)
    X = np.vstack([data.X[pick], (data.X[pick] + data.X[pick[::-1]]) / 2])
    cross = posterior.cross(X)
    a = np.linalg.solve(K, cross)
    doubt = len(K) * EPS * values[-1] / values[0]  # how far rounding may put such a solve off
    if doubt > SAME_LIMIT:
        return
    mean, prior_variance = a.T @ target, kernel.diag(X)
    floor = np.sqrt(EPS) * length(target)
    yield same(posterior.mean(X), mean, "posterior mean", "at some places, by solves with the whole matrix", floor=floor)
    variance = prior_variance - np.einsum("ij,ij->j", a, cross)
    off = float(np.abs(posterior.variance(X) - variance).max() / prior_variance.max())
    yield Check("posterior variance", off, SAME_LIMIT, "proof", "likewise, relative to the prior")


def inducing_checks(model, data, target):
    """Yield the checks of a posterior through inducing points."""
    kernel, noise, Z, L, R = model.kernel_, float(model.noise_), model.inducing_points_, model.L_, model.inner_root_
    if np.ndim(model.inducing) == 0:
        known = {row.tobytes() for row in data.X}
        strange = sum(row.tobytes() not in known for row in Z) + max(len(Z) - model.inducing, 0)
        yield Check("inducing points", float(strange), 0.0, "proof", "they are rows, and no more than asked for")
    else:
        yield same(Z, np.unique(np.array(model.inducing, dtype=float), axis=0), "inducing points", "they are those given")
    K = kernel(Z)
    yield jitter_check(model.jitter_, K)
    K.flat[:: len(K) + 1] += model.jitter_
    off = float(np.linalg.norm(L @ L.T - K) / max(np.linalg.norm(K), TINY))
    yield Check("factor", off, max(10 * len(K) * EPS, 1e-13), "proof", "LLᵀ is the kernel matrix of the points with jitter")
    P = kernel.prepare(Z)

    def work(part):
        C = kernel.values(P, kernel.prepare(np.ascontiguousarray(data.X[part]), P))
        Cw = C * (data.weight[part] / noise)
        return Cw @ C.T, Cw @ target[part]

    S, b = inducing.summed(work, len(data.X))
    claim = "L(RRᵀ − I)Lᵀ is what the rows tell of the points"
    yield same(L @ (R @ R.T - np.eye(len(R))) @ L.T, S, "inner factor", claim)
    yield solves(K + S, model.alpha_, b)
    value = inducing.solve(kernel, data, target, Z, noise).evidence
    yield same(
        model.log_marginal_likelihood_, value, "bound", "the bound of ln p(y), recomputed", floor=np.sqrt(EPS) * data.count
    )


def slopes_of(before, data, target, points):
    """Return the slopes of minus the log evidence as a function of the variables."""

    def slopes(variables):
        kernel, noise = before.at(variables)
        if points is None:
            _, found, own = exact.evidence_slopes(kernel, data, target, noise)
        else:
            _, found, own = inducing.evidence_slopes(kernel, data, target, points, noise)
        return -np.append(found, own) if before.free_noise else -found

    return slopes


def stationary(slopes, variables, bounds):
    """Check that the evidence is stationary, as `equi` does: against what 1 % of all hyperparameters would change."""
    low, high = bounds
    x = np.where(variables <= low + AT_BOUND, low, np.where(variables >= high - AT_BOUND, high, variables))
    here, rng = slopes(x), np.random.default_rng(0)
    outside = bool(((x < low) | (x > high)).any())
    inside, there = (x > low) & (x < high), []
    for _ in range(3):  # 3: a median needs no fewer
        u = rng.standard_normal(len(x)) * inside
        u *= SABOTAGE * np.sqrt(inside.sum()) / max(length(u), TINY)
        there.append(length((slopes(x + u) - here)[inside]))
    residual = length(projected(x, here, low, high))
    value = np.inf if outside else SABOTAGE * residual / max(float(np.median(there)), SABOTAGE * FLAT)
    claim = "the evidence is stationary in every hyperparameter that was searched for, or wants beyond its bounds"
    return Check("hyperparameters", float(value), EQUI_LIMIT, "local", claim)
