"""A mixture of Gaussians as a model for EM.

The density is p(x) = Σₖ πₖ N(x|μₖ, Σₖ). With the responsibilities rᵢₖ = P(component k|xᵢ) and nₖ = Σᵢ sᵢ rᵢₖ, the M-step is

    πₖ = nₖ/n,   μₖ = Σᵢ sᵢ rᵢₖ xᵢ / nₖ,   Σₖ = Σᵢ sᵢ rᵢₖ (xᵢ − μₖ)(xᵢ − μₖ)ᵀ / nₖ + floor·I;

one covariance for all components is their mean, weighted by πₖ; a diagonal one keeps the diagonal, a spherical one its mean.
Where entries are missing, the sums are expectations given what is seen (`missing_kernels`); that entries are missing must not
depend on what they would have been, given the seen ones.

Without the floor the likelihood has no maximum: a component that sits on a single row and shrinks makes it infinite [1]. With
the floor the M-step maximizes the expected log joint density minus ½ floor Σₖ nₖ tr Σₖ⁻¹, so the log-likelihood may fall in a
step, but by no more than ½ floor Σₖ πₖ (tr Σₖ⁻¹ before − tr Σₖ⁻¹ after). A component that lies on the floor in a direction in
which the table does not is a degenerate optimum, and is reported.

[1] Kiefer & Wolfowitz, Ann. Math. Stat. 27 (1956); Day, Biometrika 56 (1969).
"""

import numpy as np
from scipy.linalg.lapack import dtrtri

from lemmata.cluster import lloyd
from lemmata.cluster.bounds import scatter_block
from lemmata.core.certificate import TINY
from lemmata.mixture import gaussian_kernels, missing
from lemmata.mixture.em import LatentModel
from lemmata.mixture.gaussian_kernels import KINDS, Components

ON_THE_FLOOR = 2.0  # times the floor: a component this narrow is mostly floor
OFF_THE_FLOOR = 100.0  # times the floor: a table this wide is not


def as_matrices(covariances, kind, k, d):
    """Give the covariance of each component as a matrix (k, d, d), whatever the kind."""
    if kind == "full":
        return covariances
    if kind == "tied":
        return np.broadcast_to(covariances, (k, d, d))
    return np.eye(d) * (covariances[:, None, :] if kind == "diag" else covariances[:, None, None])


def of_kind(matrices, weights, kind):
    """Reduce the covariance of each component to a kind: the inverse of `as_matrices` where the matrices have it."""
    if kind == "full":
        return matrices
    if kind == "tied":
        return np.einsum("k,kij->ij", weights, matrices)
    diagonals = np.diagonal(matrices, axis1=1, axis2=2)
    return diagonals.copy() if kind == "diag" else diagonals.mean(axis=1)


def inverse_factors(covariances, kind):
    """Invert the Cholesky factors: (k or 1, d or 1, d or 1), lower triangles where they are matrices."""
    if kind in ("diag", "spherical"):
        if not (covariances > 0).all():
            raise np.linalg.LinAlgError("A variance is not positive.")
        return 1.0 / np.sqrt(covariances).reshape(len(covariances), 1, -1)
    lower = np.linalg.cholesky(covariances if kind == "full" else covariances[None])
    return np.ascontiguousarray(np.stack([dtrtri(factor, lower=1)[0] for factor in lower]))  # the kernels know one layout


def components_of(weights, means, covariances, kind, center):
    """Derive from parameters what the kernels need."""
    k, d = means.shape
    factors = inverse_factors(covariances, kind)
    diagonals = factors[:, 0] if kind in ("diag", "spherical") else np.diagonal(factors, axis1=1, axis2=2)
    halves = np.log(diagonals).sum(axis=1) * (d if kind == "spherical" else 1)
    logs = np.log(weights, where=weights > 0, out=np.full(k, -np.inf))
    constants = logs + halves - 0.5 * d * np.log(2 * np.pi)
    shaped = np.ascontiguousarray(covariances, dtype=float).reshape(factors.shape)
    return Components(KINDS[kind], center, means - center, factors, constants, shaped, logs)


def posterior_block(X, weight, components):
    """Posterior of each row of a block, holes or not, and its log-density."""
    return (missing if np.isnan(X).any() else gaussian_kernels).posterior_block(X, weight, components)


def precision_diagonals(covariances, kind, k, d):
    """Diagonals (k, d) of the inverse covariances."""
    factors = inverse_factors(covariances, kind)
    diagonals = (factors**2).sum(axis=1)
    return np.broadcast_to(diagonals, (k, d))


def nearest_block(X, weight, centers):
    """Weight of the rows nearest to each center, and their moments about it."""
    labels, _ = lloyd.nearest(X, lloyd.scoring_of(centers))
    moments = []
    for j, center in enumerate(centers):
        rows = labels == j
        moments.append(scatter_block(X[rows], None if weight is None else weight[rows], center))
    counts, first, second = zip(*moments, strict=True)
    return np.array(counts), np.stack(first), np.stack(second)


class Table:
    """What a model needs to know of a table: its weight, mean and covariance, and whether it has holes.

    With holes, mean and variances are those of the seen entries of each column, the covariance is diagonal, and `hidden` is the
    share of each column that is missing.
    """

    def __init__(self, blocks):
        X, weight = blocks.first()
        origin = np.average(X, axis=0, weights=weight).astype(float)
        self.total, offsets, products = blocks.reduce(scatter_block, origin)
        self.holes = bool(np.isnan(products).any()) and blocks.reduce(missing.holes_block) > 0
        if self.holes:
            self._look_at_seen(blocks, np.nan_to_num(origin))
            return
        shift = offsets / self.total
        self.mean = origin + shift
        self.covariance = products / self.total - np.outer(shift, shift)

    def _look_at_seen(self, blocks, origin):
        for _ in range(2):  # the second time about the mean, so that no digits are lost
            seen, offsets, squares = blocks.reduce(missing.available_block, origin)
            if not (seen > 0).all():
                raise ValueError(f"Column {int(np.argmin(seen))} has no value in any row: leave it out.")
            origin = origin + offsets / seen
        self.mean, self.covariance, self.hidden = origin, np.diag(squares / seen), 1.0 - seen / self.total


class GaussianModel(LatentModel):
    """The steps of EM for a Gaussian mixture; parameters are (weights, means, covariances).

    Parameters
    ----------
    kind : "full", "tied", "diag" or "spherical".
    floor : Added to every variance.
    table : The `Table` to fit.
    """

    name = "EM of a Gaussian mixture"

    def __init__(self, kind, floor, table):
        self.kind, self.floor, self.table = kind, floor, table
        self.scale = np.sqrt(np.maximum(np.diagonal(table.covariance), 0.0) + floor + TINY)

    def prepare(self, parameters):
        """Factor the covariances."""
        try:
            return components_of(*parameters, self.kind, self.table.mean)
        except np.linalg.LinAlgError:
            message = "A component has a covariance without an inverse: raise reg_covar or lower n_components."
            raise ValueError(message) from None

    def e_step(self, X, weight, prepared):
        """Log-likelihood, weights of the components, and moments about the old means."""
        return (missing if self.table.holes else gaussian_kernels).e_block(X, weight, prepared)

    def m_step(self, statistics, parameters):
        """Weights, means and covariances that the responsibilities make most likely."""
        _, counts, first, second, *seen = statistics
        _, means, covariances = parameters
        has = counts > 0
        divisor = np.where(has, counts, 1.0)
        # What is hidden has the old variance, floor and all: only what is seen gets the floor again.
        floor = self.floor * (seen[0] / divisor[:, None] if seen else np.ones(means.shape))
        shifts = first / divisor[:, None]
        weights, means = counts / counts.sum(), means + shifts
        if self.kind == "full" or (self.kind == "tied" and self.table.holes):
            lower = second / divisor[:, None, None] - shifts[:, :, None] * shifts[:, None, :]
            new = np.tril(lower) + np.swapaxes(np.tril(lower, -1), 1, 2) + as_matrices(floor, "diag", *floor.shape)
            new = of_kind(new, weights, self.kind)
        elif self.kind == "tied":
            away = means - self.table.mean
            new = self.table.covariance - (weights * away.T) @ away
            new = (new + new.T) / 2 + self.floor * np.eye(len(new))
        elif self.kind == "diag":
            new = second[:, 0] / divisor[:, None] - shifts**2 + floor
        else:
            new = (second[:, 0, 0] / divisor - (shifts**2).sum(axis=1)) / means.shape[1] + floor.mean(axis=1)
        if self.kind != "tied" and not has.all():  # a component without rows stays where it is
            new = np.where(has.reshape(-1, *[1] * (new.ndim - 1)), new, covariances)
        return weights, means, new

    def complete(self, parameters):
        """One component has all rows, and a table without holes hides nothing else."""
        return len(parameters[0]) == 1 and not self.table.holes

    def penalty(self, parameters):
        """Give what the floor takes off the mean log-likelihood."""
        weights, means, covariances = parameters
        return 0.5 * self.floor * float(weights @ precision_diagonals(covariances, self.kind, *means.shape).sum(axis=1))

    def slack(self, before, after):
        """Bound how much the merit may fall in this step: by what weights move under the floor, and by rounding.

        The M-step weighs the floor by the new weights, the merit before by the old ones.
        """
        k, d = after[1].shape
        old, new = (precision_diagonals(p[2], self.kind, k, d) for p in (before, after))
        gains = old - new
        if self.table.holes:  # the floor counts where a column is seen, which may be where it gains
            gains = np.maximum(gains, 0.0)
        moved = after[0] @ gains.sum(axis=1) + after[0] @ new.sum(axis=1) - before[0] @ old.sum(axis=1)
        return max(0.5 * self.floor * float(moved), 0.0) + 100 * d * self.rounding(after)

    def rounding(self, parameters):
        """Squared distances lose as many digits as the worst covariance has between its widest and its narrowest direction."""
        _, means, covariances = parameters
        spectra = np.linalg.eigvalsh(as_matrices(covariances, self.kind, *means.shape))
        return float(np.finfo(float).eps * (spectra[:, -1] / np.maximum(spectra[:, 0], TINY)).max())

    def pack(self, parameters):
        """Log weights, means, and Cholesky factors with the logarithm of their diagonal, in units of the table."""
        weights, means, covariances = parameters
        variances = covariances if self.kind in ("diag", "spherical") else np.linalg.eigvalsh(covariances)
        if not ((weights > 0).all() and (variances > 0).all()):
            return None
        if self.kind in ("diag", "spherical"):
            spread = 0.5 * np.log(covariances)
        else:
            spread = np.linalg.cholesky(covariances) / self.scale[:, None]
            each = np.arange(len(self.scale))
            spread[..., each, each] = np.log(spread[..., each, each])
        return np.concatenate([np.log(weights), ((means - self.table.mean) / self.scale).ravel(), spread.ravel()])

    def unpack(self, vector):
        """Undo `pack`; None where a variance would be below the floor."""
        d = len(self.scale)
        per_component = {"full": d + d * d, "tied": d, "diag": 2 * d, "spherical": d + 1}[self.kind]
        k = (len(vector) - (d * d if self.kind == "tied" else 0)) // (per_component + 1)
        logs, offsets, spread = np.split(vector, [k, k + k * d])
        if not max(np.abs(logs).max(), np.abs(spread).max()) < 300:  # where squares of exponentials leave the range
            return None
        weights = np.exp(logs - logs.max())
        if self.kind in ("diag", "spherical"):
            covariances = np.exp(2 * spread.reshape((k, d) if self.kind == "diag" else k))
            least = covariances.min()
        else:
            lower = spread.reshape((k, d, d) if self.kind == "full" else (d, d)).copy()
            each = np.arange(d)
            lower[..., each, each] = np.exp(lower[..., each, each])
            lower *= self.scale[:, None]
            covariances = lower @ np.swapaxes(lower, -1, -2)
            least = np.linalg.eigvalsh(covariances).min()
        if not least >= self.floor * (1 - 1e-9):  # rounding of a variance that is all floor
            return None
        return weights / weights.sum(), self.table.mean + offsets.reshape(k, d) * self.scale, covariances

    def around(self, blocks, centers):
        """Start from centers: each has the rows nearest to it."""
        counts, first, second = blocks.reduce(nearest_block, centers)
        divisor = np.where(counts > 0, counts, 1.0)
        shifts = first / divisor[:, None]
        matrices = second / divisor[:, None, None] - shifts[:, :, None] * shifts[:, None, :]
        if self.table.holes:  # filled entries do not vary, but what was missing does
            matrices = matrices + np.diag(self.table.hidden * np.diagonal(self.table.covariance))
        counts = counts + 10 * np.finfo(float).eps  # no component begins without a chance
        weights = counts / counts.sum()
        matrices = matrices + self.floor * np.eye(matrices.shape[1])
        return weights, centers + shifts, of_kind(matrices, weights, self.kind)

    def spread_out(self, means):
        """Start from means with equal weights and the covariance of the whole table."""
        k, d = means.shape
        weights = np.full(k, 1.0 / k)
        matrices = np.broadcast_to(self.table.covariance + self.floor * np.eye(d), (k, d, d))
        return weights, means, np.array(of_kind(matrices, weights, self.kind))

    def collapsed(self, parameters):
        """List the components that lie on the floor in a direction in which the table does not."""
        weights, means, covariances = parameters
        values, vectors = np.linalg.eigh(as_matrices(covariances, self.kind, *means.shape))
        wide = np.einsum("kji,jl,kli->ki", vectors, self.table.covariance, vectors)
        narrow = (values <= ON_THE_FLOOR * self.floor) & (wide > OFF_THE_FLOOR * self.floor)
        return np.flatnonzero(narrow.any(axis=1) & (weights > 0))
