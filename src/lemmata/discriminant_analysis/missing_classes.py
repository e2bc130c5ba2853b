"""Gaussian classes whose columns depend on each other, from rows with holes: the observed-data likelihood, by EM.

The class of a row is known, some of its entries are not. Given the seen ones, the missing ones of class k are normal about
their regression on them (`mixture.missing_kernels`); the E-step takes the moments of each class under that, the M-step is

    μₖ = mean of x̂,   Σₖ = mean of (x̂ − μₖ)(x̂ − μₖ)ᵀ + V,   or for one Σ the mean of these over the classes by their weights.

It is the EM of a Gaussian mixture with the posterior of the components replaced by the class, so its steps, its leaps and its
certificate are those of `mixture`, and so is its floor, which is added to every variance that is seen. Everything happens in
units of the standard deviations of the columns. A likelihood with holes may have several stationary points, so the certificate
is local.
"""

from functools import partial
from types import SimpleNamespace

import numpy as np

from lemmata.core.iterate import iterate
from lemmata.mixture import missing
from lemmata.mixture.em import begin, step
from lemmata.mixture.gaussian import GaussianModel, as_matrices, of_kind
from lemmata.mixture.gaussian_certificate import add_moments, from_moments, patterns, stationary
from lemmata.mixture.gaussian_kernels import FULL, Components

TOLERANCE = 1e-12  # change of the mean log-likelihood by a plain step: tighter than the certificate
PASSES = 10_000


class Standardized:
    """Gives a block in units of the standard deviations of its columns, about a center."""

    def __init__(self, center, scales):
        self.center, self.scales = center, scales

    def __call__(self, X):
        """Shift and scale a block."""
        return (X - self.center) / self.scales

    def into(self, means, covariance):
        """Give means and covariances in these units."""
        return (means - self.center) / self.scales, covariance / np.outer(self.scales, self.scales)

    def back(self, means, covariance):
        """Undo `into`."""
        return means * self.scales + self.center, covariance * np.outer(self.scales, self.scales)


class LabeledModel(GaussianModel):
    """The steps of EM for Gaussian classes, in standard units; parameters are (weights, means, covariances)."""

    name = "EM of Gaussian classes"

    def __init__(self, kind, floor, d):
        super().__init__(kind, floor, SimpleNamespace(mean=np.zeros(d), covariance=np.eye(d), holes=True))

    def prepare(self, parameters):
        """Factor the covariances."""
        try:
            return super().prepare(parameters)
        except ValueError:
            raise ValueError(
                "The covariance of a class has no inverse: set var_smoothing above 0, take a simpler covariance, or leave "
                "columns out."
            ) from None

    def e_step(self, X, y, weight, prepared):
        """Log-likelihood of a block given its classes, their weights, and expected moments about their means."""
        parts = []
        for c in range(len(prepared.offsets)):
            f = c if len(prepared.covariances) > 1 else 0
            rows = np.flatnonzero(y == c)
            own = Components(
                FULL, prepared.center, prepared.offsets[c : c + 1], None, None, prepared.covariances[f : f + 1], np.zeros(1)
            )
            parts.append(
                missing.e_block(X[rows], None if weight is None else weight[rows], own)
                if len(rows)
                else (0.0, *missing.room(own))
            )
        value, *moments = zip(*parts, strict=True)
        return sum(value), *(np.concatenate(part) for part in moments)


def fit_by_em(blocks, kind, smoothing, moments, units):
    """Maximize the observed-data likelihood; return means (k, d) and covariances of the kind.

    Parameters
    ----------
    moments : `ClassMoments` of the seen entries: means and variances to start from.
    units : `Standardized`.
    """
    missing_together(blocks, kind, len(moments.weight))
    k, d = moments.mean.shape
    variances = moments.scatter / moments.seen + smoothing * units.scales**2
    weights = moments.weight / moments.weight.sum()
    means, matrices = units.into(moments.mean, as_matrices(variances, "diag", k, d))
    model, scaled = LabeledModel(kind, smoothing, d), blocks.with_columns(units, d)
    start = weights, means, np.array(of_kind(matrices, weights, kind))
    run = iterate(
        partial(step, model, scaled, float(moments.weight.sum()), True, TOLERANCE),
        begin(start),
        max_iter=PASSES,
        tol=TOLERANCE,
        monotone="up",
        rounding=np.inf,  # `step` knows how far the likelihood may fall, and raises itself
        name=model.name,
    )
    return units.back(*run.state[1][1:])


def together_block(X, y, weight, k):
    """Count the rows of each class in which two columns are both seen, for each pair."""
    seen = (~np.isnan(X)).astype(float)
    return np.stack([seen[y == c].T @ seen[y == c] for c in range(k)])


def missing_together(blocks, kind, k):
    """Refuse a table that does not tell how two columns vary together: they are never seen in the same row."""
    counts = blocks.reduce(together_block, k)
    unseen = np.argwhere((counts if kind == "full" else counts.sum(axis=0)[None]) == 0)
    if len(unseen):
        where = " of some class" if kind == "full" else ""
        raise ValueError(
            f"Columns {unseen[0][1]} and {unseen[0][2]} are never seen in the same row{where}, so the table does not tell how "
            "they vary together: leave one of them out, or take a diagonal covariance."
        )


def map_block(X, y, weight, means, matrices):
    """Weights of the classes in a block and expected moments about their means, by dense algebra."""
    k, d = means.shape
    counts, first, second, sights = np.zeros(k), np.zeros((k, d)), np.zeros((k, d, d)), np.zeros((k, d))
    own = (y[:, None] == np.arange(k)) * (1.0 if weight is None else weight[:, None])
    for rows, seen in patterns(X):
        shares = own[rows]
        counts += shares.sum(axis=0)
        add_moments(X[rows][:, seen], seen, shares, means, matrices, first, second, sights)
    return counts, first, second, sights


def stationarity(blocks, kind, smoothing, means, covariance, units):
    """Check that an EM step, computed by another way than the fit's, leaves means and covariances where they are."""
    scaled = blocks.with_columns(units, len(units.scales))
    means, covariance = units.into(means, covariance)
    shape = means.shape

    def after(means, covariance):
        before = as_matrices(covariance, kind, *shape)
        counts, *moments = scaled.reduce(map_block, means, before)
        weights, new, matrices = from_moments(counts, *moments, means, before, smoothing)
        return new, of_kind(matrices, weights, kind)

    counts = scaled.reduce(map_block, means, as_matrices(covariance, kind, *shape))[0]
    return stationary(after, kind, counts / counts.sum(), means, covariance, ("means", "covariance"))
