"""Derivatives of a mixture's log-likelihood, and the standard errors that follow.

Coordinates. All numbers are allowed for θ = (λ, μ, factors), in this order, and every mixture with positive weights has one θ:

    λₖ = log(πₖ/π_K), k < K: the weights are the softmax of (λ, 0);   the means μₖ, component by component;
    the lower triangle P of each precision Σₖ⁻¹ = PᵀP, row by row, with the logarithms of its diagonal ("tied": once);
    only these logarithms, −½ log variance, for "diag", and one of them for each component for "spherical".

P is the inverse of the Cholesky factor of Σₖ. In it the log-density of a component, log |P| − ½‖P(x − μ)‖², is a quadratic.

Let g(x, k) be the gradient of log πₖ N(x|μₖ, Σₖ), which also knows the component. Since the posterior rₖ averages over what is
not seen, Fisher's identity gives the gradient of ℓ = Σᵢ sᵢ log p(xᵢ), and Louis' identity [1] its second derivative:

    ∇ℓ = Σᵢ sᵢ E[g | xᵢ],      −∇²ℓ = −Σᵢ sᵢ E[∇g | xᵢ] − Σᵢ sᵢ Cov[g | xᵢ],

the information of rows whose component is known, minus the information that is missing. The E-step has the expectations; the
covariances are sums of products of scores over rows. Both add up over blocks.

At a maximum the inverse of −∇²ℓ, the observed information, estimates the covariance of the estimate of θ; with the Jacobian J
of a function of θ, J(−∇²ℓ)⁻¹Jᵀ is that of the function (the delta method).

[1] Louis, J. R. Stat. Soc. B 44 (1982). McLachlan & Krishnan, The EM Algorithm and Extensions, ch. 4 (2008).
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from lemmata.core.threads import serial_blas
from lemmata.mixture.finite import FiniteMixture
from lemmata.mixture.gaussian import as_matrices, components_of
from lemmata.mixture.gaussian_kernels import e_block, posterior_block
from lemmata.mixture.missing import holes_block
from lemmata.optimize.simplex import softmax

SCORES = 1 << 18  # numbers of a tile of scores: two megabytes, which stay in the cache
FLAT = 1e-6  # curvature, its diagonal scaled to 1, below which there is none
DEFINITE = 1e-10  # least eigenvalue of the information, its diagonal scaled to 1: below it, an inverse has no digits left


class StandardErrors(NamedTuple):
    """Standard errors, in the shapes of weights_, means_ and covariances_.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture, standard_errors
    >>> X = [[0.0], [1.0], [2.0], [5.0]]
    >>> errors = standard_errors(GaussianMixture(1, reg_covar=0.0).fit(X), X)
    >>> errors.means, float((3.5 / 4) ** 0.5)  # σ/√n
    (array([[0.93541]]), 0.93541)
    """

    weights: Any
    means: Any
    covariances: Any


def likelihood_gradient(mixture, X, sample_weight=None):
    """Give the gradient of the log-likelihood of rows in the coordinates θ, by Fisher's identity.

    Parameters
    ----------
    mixture : A `GaussianMixture`, fitted or with weights_init, means_init and precisions_init.
    X : Complete rows, in any form that `fit` takes.
    sample_weight : Repetitions of each row.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> mixture = GaussianMixture(1, weights_init=[1.0], means_init=[[7.0]], precisions_init=[[[0.04]]])
    >>> likelihood_gradient(mixture, X)  # of the mean: Σ(x − 7)/25; of log P: Σ(1 − (x − 7)²/25)
    array([ 0.24, -3.96])
    """
    chart, parameters, blocks = opened(mixture, X, sample_weight)
    with serial_blas():
        return value_and_gradient(chart, parameters, blocks)[1]


def observed_information(mixture, X, sample_weight=None):
    """Give minus the matrix of second derivatives of the log-likelihood in the coordinates θ, by Louis' identity.

    Parameters
    ----------
    mixture, X, sample_weight : As for `likelihood_gradient`.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> mixture = GaussianMixture(1, reg_covar=0.0).fit(X)  # nothing is hidden: n/σ², and 2n for log P
    >>> (observed_information(mixture, X) * [mixture.covariances_[0, 0, 0], 1]).round(9) + 0.0
    array([[ 7.,  0.],
           [ 0., 14.]])
    """
    chart, parameters, blocks = opened(mixture, X, sample_weight)
    with serial_blas():
        return information(chart, parameters, blocks)


def standard_errors(mixture, X, sample_weight=None):
    """Estimate how far the weights, means and covariances of a fit may be from the truth.

    They are asymptotic: for many rows of a mixture that is really of this kind, at the maximum of its likelihood.

    Parameters
    ----------
    mixture, X, sample_weight : As for `likelihood_gradient`.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> errors = standard_errors(GaussianMixture(2, random_state=0).fit(X), X)
    >>> errors.weights, float((3 / 7 * 4 / 7 / 7) ** 0.5)  # well apart, as if the components were known
    (array([0.187, 0.187]), 0.187)
    """
    chart, parameters, blocks = opened(mixture, X, sample_weight)
    with serial_blas():
        covariance = _inverse(information(chart, parameters, blocks))
        jacobian = chart.jacobian(*parameters)
    errors = np.sqrt(np.einsum("oi,ij,oj->o", jacobian, covariance, jacobian))
    k, d = chart.k, chart.d
    weights, means, covariances = np.split(errors, [k, k + k * d])
    return StandardErrors(weights, means.reshape(k, d), covariances.reshape(np.shape(parameters[2])))


def newton_gain(kind, parameters, blocks):
    """Say how many nats Newton's step would add to the log-likelihood: ½ gᵀI⁻¹g; infinite where some curvature points up.

    Directions without curvature, along which components that coincide exchange their rows, do not count.

    Parameters
    ----------
    parameters : (weights, means, covariances), all weights above 0.
    """
    chart = Chart(kind, *np.shape(parameters[1]))
    gradient, matrix = value_and_gradient(chart, parameters, blocks)[1], information(chart, parameters, blocks)
    scale = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    if not values[0] > -FLAT:
        return np.inf
    curved = values > FLAT
    return 0.5 * float((((gradient / scale) @ vectors[:, curved]) ** 2 / values[curved]).sum())


def opened(mixture, X, sample_weight):
    """Check a mixture and a table; return the mixture's chart, its parameters, and the table in blocks."""
    if not (isinstance(mixture, FiniteMixture) and hasattr(mixture, "_given")):
        raise ValueError(f"mixture must be lemmata's GaussianMixture, got {type(mixture).__module__}.{type(mixture).__name__}.")
    fitted = hasattr(mixture, "weights_")
    model = mixture if fitted else clone(mixture)
    blocks = model._blocks(X, sample_weight=sample_weight, reset=not fitted, order="C")
    if blocks.reduce(holes_block):
        raise ValueError("X has entries that are NaN: these derivatives need complete rows; drop or fill in the others.")
    kind = mixture.covariance_type
    if fitted:
        parameters = mixture.weights_, mixture.means_, mixture.covariances_
    else:
        weights, means, precisions = model._given(blocks.n_columns)
        if weights is None or means is None or precisions is None:
            raise ValueError("Fit the mixture first, or give it weights_init, means_init and precisions_init.")
        parameters = weights, means, np.linalg.inv(precisions) if kind in ("full", "tied") else 1.0 / precisions
    return Chart(kind, *np.shape(parameters[1])), parameters, blocks


class Chart:
    """The coordinates θ of mixtures of k Gaussians in d dimensions.

    Derivatives are first taken in wide coordinates, as if every component had a factor of its own: λ, then for each component
    its mean and the entries of its factor. Several wide coordinates may be one and the same entry of θ.

    Attributes
    ----------
    rows, columns : Where the entries of a factor are in P.
    logs : Which of them are logarithms, on the diagonal.
    place : The entry of θ that each wide coordinate is.
    size : Number of entries of θ.
    exponents : Which entries of θ are logarithms of a diagonal.
    """

    def __init__(self, kind, k, d):
        self.kind, self.k, self.d = kind, k, d
        self.rows, self.columns = np.tril_indices(d) if kind in ("full", "tied") else (np.arange(d), np.arange(d))
        self.logs = self.rows == self.columns
        entries = len(self.rows)
        factors = np.arange(k * entries).reshape(k, entries)
        if kind == "tied":
            factors = np.tile(np.arange(entries), (k, 1))
        elif kind == "spherical":
            factors = np.repeat(np.arange(k)[:, None], entries, axis=1)
        free, means = k - 1, np.arange(k * d).reshape(k, d)
        self.place = np.concatenate([np.arange(free), np.hstack([free + means, free + k * d + factors]).ravel()])
        self.size = int(self.place.max()) + 1
        self.exponents = np.zeros(self.size, dtype=bool)
        self.exponents[free + k * d + factors[:, self.logs]] = True

    def pack(self, weights, means, covariances):
        """Turn parameters into θ."""
        if not (weights > 0).all():
            raise ValueError("A weight is zero: leave its component out, since no derivative can bring it back.")
        factors = self.factors(covariances)[:, self.rows, self.columns]
        factors[:, self.logs] = np.log(factors[:, self.logs])
        theta = np.empty(self.size)
        theta[self.place] = np.concatenate([np.log(weights[:-1] / weights[-1]), np.hstack([means, factors]).ravel()])
        return theta

    def unpack(self, theta):
        """Turn θ into (weights, means, covariances)."""
        free, each = np.split(theta[self.place], [self.k - 1])
        means, entries = np.split(each.reshape(self.k, -1), [self.d], axis=1)
        entries = np.where(self.logs, np.exp(np.where(self.logs, entries, 0.0)), entries)
        weights = softmax(np.append(free, 0.0))
        if self.kind in ("diag", "spherical"):
            return weights, means, entries**-2.0 if self.kind == "diag" else entries[:, 0] ** -2.0
        factors = np.zeros((self.k, self.d, self.d))
        factors[:, self.rows, self.columns] = entries
        lower = np.linalg.inv(factors if self.kind == "full" else factors[0])
        return weights, means, lower @ np.swapaxes(lower, -1, -2)

    def factors(self, covariances):
        """Invert the Cholesky factor of the covariance of each component."""
        return np.tril(np.linalg.inv(np.linalg.cholesky(as_matrices(covariances, self.kind, self.k, self.d))))

    def components(self, weights, means, covariances):
        """Give the parameters as the E-step wants them; with one covariance for all, it must sum second moments too."""
        kind = "full" if self.kind == "tied" else self.kind
        if self.kind == "tied":
            covariances = as_matrices(covariances, "tied", *means.shape)
        return components_of(weights, means, covariances, kind, weights @ means)

    def moments(self, second):
        """Give the second moments of the E-step as symmetric matrices (k, d, d)."""
        if self.kind in ("full", "tied"):
            return np.tril(second) + np.swapaxes(np.tril(second, -1), 1, 2)
        if self.kind == "diag":
            return as_matrices(second[:, 0], "diag", self.k, self.d)
        return as_matrices(second[:, 0, 0] / self.d, "spherical", self.k, self.d)  # only their trace is ever used

    def stretch(self, factors):
        """Give the derivative of each entry of P by its coordinate: P itself for a logarithm, else 1."""
        return np.where(self.logs, factors[:, self.rows, self.columns], 1.0)

    def narrow(self, wide):
        """Add up the entries of a wide gradient, or along every axis of a wide matrix, that are one entry of θ."""
        out = np.zeros((self.size,) * wide.ndim)
        np.add.at(out, np.ix_(*[self.place] * wide.ndim), wide)
        return out

    def jacobian(self, weights, means, covariances):
        """Give the derivatives of (weights, means, covariances), flat, by θ."""
        k, d, free = self.k, self.d, self.k - 1
        out = np.zeros((k + k * d, self.size))
        out[:k, :free] = (np.diag(weights) - np.outer(weights, weights))[:, :free]
        out[k + np.arange(k * d), free + np.arange(k * d)] = 1.0
        factors, matrices = self.factors(covariances), as_matrices(covariances, self.kind, k, d)
        columns, lower = matrices[:, :, self.columns], np.linalg.inv(factors)[:, :, self.rows]
        half = np.einsum("kam,kbm,km->kabm", columns, lower, -self.stretch(factors))  # dΣ = −Σ(dPᵀP + PᵀdP)Σ, ΣPᵀ = L
        change = half + np.swapaxes(half, 1, 2)
        if self.kind in ("diag", "spherical"):
            change = np.einsum("kaam->kam", change) if self.kind == "diag" else change[:, :1, 0]
        where = self.place[free:].reshape(k, -1)[:, d:]
        parts = []
        for each, at in list(zip(change, where, strict=True))[: 1 if self.kind == "tied" else k]:
            part = np.zeros((each.size // len(at), self.size))
            np.add.at(part, (slice(None), at), each.reshape(len(part), -1))
            parts.append(part)
        return np.concatenate([out, *parts])


def value_and_gradient(chart, parameters, blocks):
    """Log-likelihood and its gradient in θ, from the statistics of one E-step."""
    value, *statistics = blocks.reduce(e_block, chart.components(*parameters))
    return value, chart.narrow(_complete_score(chart, parameters, *statistics))


def information(chart, parameters, blocks):
    """Minus the second derivative of the log-likelihood in θ: complete minus missing information."""
    components, factors = chart.components(*parameters), chart.factors(parameters[2])
    (_, *statistics), missing = blocks.reduce(louis_block, components, factors, chart)
    return chart.narrow(_complete_information(chart, parameters, *statistics) - _missing_information(chart, *missing))


def _complete_score(chart, parameters, counts, first, second):
    """Sum the expected gradients of the log joint density, in wide coordinates."""
    weights, _, covariances = parameters
    P = chart.factors(covariances)
    means = np.einsum("kij,kil,kl->kj", P, P, first)
    products = (P @ chart.moments(second))[:, chart.rows, chart.columns]
    entries = np.where(chart.logs, counts[:, None], 0.0) - products * chart.stretch(P)
    free = (counts - counts.sum() * weights)[:-1]
    return np.concatenate([free, np.hstack([means, entries]).ravel()])


def _complete_information(chart, parameters, counts, first, second):
    """Sum minus the expected second derivatives of the log joint density, in wide coordinates."""
    weights, _, covariances = parameters
    d, free, total = chart.d, chart.k - 1, counts.sum()
    out = np.zeros((len(chart.place),) * 2)
    out[:free, :free] = total * (np.diag(weights) - np.outer(weights, weights))[:-1, :-1]
    P, S = chart.factors(covariances), chart.moments(second)
    rows, columns, D = chart.rows, chart.columns, chart.stretch(P)
    same_row = rows[:, None] == rows[None, :]
    for k, block in enumerate(_diagonal_blocks(chart, out)):
        block[:d, :d] = counts[k] * P[k].T @ P[k]
        mixed = np.eye(d)[:, columns] * (P[k] @ first[k])[rows] + P[k].T[:, rows] * first[k][columns]
        block[:d, d:] = -mixed * D[k]
        block[d:, :d] = block[:d, d:].T
        bend = np.where(chart.logs, (P[k] @ S[k])[rows, columns] * D[k], 0.0)
        block[d:, d:] = same_row * S[k][np.ix_(columns, columns)] * np.outer(D[k], D[k]) + np.diag(bend)
    return out


def _missing_information(chart, counts, sums, within, products):
    """Sum the covariances of the scores, in wide coordinates: the mean of products minus the product of means."""
    free = chart.k - 1
    out = -products
    out[np.arange(free), np.arange(free)] += counts[:free]
    for k, block in enumerate(_diagonal_blocks(chart, out)):
        block += within[k]
        if k < free:
            at = slice(free + k * len(block), free + (k + 1) * len(block))
            out[k, at] += sums[k]
            out[at, k] += sums[k]
    return out


def _diagonal_blocks(chart, wide):
    """View the part of a wide matrix that belongs to each component."""
    free, size = chart.k - 1, chart.d + len(chart.rows)
    return [wide[at : at + size, at : at + size] for at in range(free, len(wide), size)]


def louis_block(X, weight, components, factors, chart):
    """Statistics of the E-step of a block, and the sums over its rows that the missing information needs.

    With the posterior r of a row and the scores of its components these are the sums of r, of r times score, of r times the
    products of a score with itself, and of the products of the posterior mean of (indicators, scores) with itself.
    """
    size, wide = chart.d + len(chart.rows), len(chart.place)
    counts, sums, products = np.zeros(chart.k), np.zeros((chart.k, size)), np.zeros((wide, wide))
    within = np.zeros((chart.k, size, size))
    posterior, _ = posterior_block(X, weight, components)
    stretch, step = chart.stretch(factors), max(1, SCORES // wide)
    for start in range(0, len(X), step):
        r = posterior[start : start + step]
        z = (X[start : start + step] - components.center)[:, None, :] - components.offsets
        a = np.einsum("kij,nkj->nki", factors, z)
        entries = chart.logs - a[:, :, chart.rows] * z[:, :, chart.columns] * stretch
        scores = np.concatenate([np.einsum("kij,nki->nkj", factors, a), entries], axis=2)
        shared = r[:, :, None] * scores
        mean = np.hstack([r[:, :-1], shared.reshape(len(r), -1)])
        s = np.ones(len(r)) if weight is None else weight[start : start + step]
        counts += s @ r
        sums += np.einsum("n,nki->ki", s, shared)
        products += (s[:, None] * mean).T @ mean
        within += np.einsum("nki,nkj->kij", s[:, None, None] * shared, scores, optimize=True)
    return e_block(X, weight, components), (counts, sums, within, products)


def _inverse(matrix):
    """Invert an information matrix; refuse one that is not positive definite."""
    scale = np.sqrt(np.maximum(np.diagonal(matrix), 0.0))
    if not (scale > 0).all() or np.linalg.eigvalsh(matrix / np.outer(scale, scale))[0] <= DEFINITE:
        raise ValueError(
            "The observed information is not positive definite: the parameters are no strict maximum of the likelihood, but a "
            "saddle, or components coincide or have no rows. Fit from another start, or lower n_components."
        )
    inverse = np.linalg.inv(matrix / np.outer(scale, scale)) / np.outer(scale, scale)
    return (inverse + inverse.T) / 2
