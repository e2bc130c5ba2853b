"""Information: entropies and divergences of finite distributions and of Gaussians.

    H(P) = −Σ p log p,  0 log 0 = 0               0 ≤ H ≤ log K, least at a point mass, greatest at the uniform distribution
    H(X, Y) = H(Y) + H(X | Y)                     0 ≤ H(X | Y) ≤ H(X)
    D(P‖Q) = Σ p log p/q                          ≥ 0, zero only if P = Q, infinite if q = 0 < p somewhere
    −Σ p log q = H(P) + D(P‖Q)                    the cross entropy
    I(X; Y) = D(P(x, y) ‖ P(x) P(y))              0 ≤ I ≤ min(H(X), H(Y))
    J(P, Q) = ½ D(P‖M) + ½ D(Q‖M), M = ½(P + Q)   0 ≤ J ≤ log 2; √J is a metric
    TV(P, Q) = ½ Σ|p − q| = max |P(A) − Q(A)|     over events A: the mass to be moved; D ≥ ½ (Σ|p − q|)² = 2 TV² (Pinsker)

A divergence of neighbors is a small difference of large sums. Since Σp = Σq, it is also Σ p (t − log(1 + t)) with t = q/p − 1,
a sum of terms ≥ 0 of which none cancels another; so D is computed, and it is never negative.

A density has a differential entropy h = −∫ p log p instead. It is no limit of H: it may be negative, and h(aX) = h(X) + log|a|.
For Gaussians all is linear algebra: h = ½ log det(2πe Σ), and a divergence is a sum of t − log(1 + t) over eigenvalues.

Results are in nats; `base=2` gives bits. Distributions are vectors, or rows of a matrix (`axis`).

Cover & Thomas, Elements of Information Theory, ch. 2, 8 (2006). Endres & Schindelin, IEEE Trans. Inf. Theory 49 (2003).
"""

import numpy as np
from scipy.special import entr, rel_entr, xlogy

from lemmata.probability.arrays import axes_of, check_probabilities
from lemmata.probability.distributions.multivariate_normal import MultivariateNormal
from lemmata.probability.distributions.normal import Normal
from lemmata.probability.gaussian_information import gaussian_entropy, gaussian_kl, gaussian_mutual_information
from lemmata.probability.logarithms import NEAR, log_excess, units


def _summed(terms, axis, base):
    """Sum along an axis in the unit asked for; a number if one distribution was given."""
    total = np.maximum(np.sum(terms, axis=axis) / units(base), 0.0)
    return float(total) if total.ndim == 0 else total


def _pair(p, q, axis):
    p, q = check_probabilities(p, axis), check_probabilities(q, axis)
    if p.shape[axis] != q.shape[axis]:
        raise ValueError(
            f"Both distributions must have the same values; got {p.shape[axis]} and {q.shape[axis]} probabilities."
        )
    return p, q


def entropy(p, base=None, axis=-1):
    """Return H = −Σ p log p.

    Examples
    --------
    >>> entropy([1 / 3, 1 / 3, 1 / 3]), entropy([1 / 3, 1 / 3, 1 / 3], base=2), entropy([0.0, 1.0])
    (1.098612, 1.584963, 0.0)
    """
    return _summed(entr(check_probabilities(p, axis)), axis, base)


def joint_entropy(table, base=None):
    """Return the entropy of all variables of a joint table together.

    Examples
    --------
    >>> joint_entropy([[0.4, 0.1], [0.1, 0.4]])
    1.193550
    """
    return _summed(entr(check_probabilities(table)), None, base)


def conditional_entropy(table, given, base=None):
    """Return the entropy that the other variables keep when those of `given` are known.

    Parameters
    ----------
    table : Joint probabilities, an array or a `JointTable`.
    given : Axes (or names) of what is known: with p[x, y], H(X | Y) has given=1 and H(Y | X) has given=0.

    Examples
    --------
    >>> conditional_entropy([[0.5, 0.1], [0.1, 0.3]], given=1), conditional_entropy([[0.5, 0.25], [0.0, 0.25]], given=0)
    (0.495, 0.477)
    """
    given, p = axes_of(table, given), check_probabilities(table)
    known = p.sum(axis=tuple(i for i in range(p.ndim) if i not in given), keepdims=True)
    return _summed(-rel_entr(p, np.broadcast_to(known, p.shape)), None, base)


def _divergences(p, q):
    """Return terms ≥ 0 with the sum D(P‖Q)."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        t = (q - p) / p
    near = np.abs(t) < NEAR
    return np.where(near, p * log_excess(np.where(near, t, 0.0)), rel_entr(p, q) - p + q)


def cross_entropy(p, q, base=None, axis=-1):
    """Return −Σ p log q, of Gaussians −∫ p log q: the code length of P in the best code for Q.

    Examples
    --------
    >>> cross_entropy([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    1.389715
    """
    if _gaussians(p, q):
        return differential_entropy(p, base) + kl_divergence(p, q, base)
    p, q = _pair(p, q, axis)
    return _summed(-xlogy(p, q), axis, base)


def kl_divergence(p, q, base=None, axis=-1):
    """Return D(P‖Q) = Σ p log p/q, infinite if q = 0 < p.

    Parameters
    ----------
    p, q : Probabilities along `axis`; or two distributions among `Normal` and `MultivariateNormal`.

    Examples
    --------
    >>> kl_divergence([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]), kl_divergence([0.2, 0.2, 0.6], [0.5, 0.3, 0.2])
    (0.360062, 0.394816)
    >>> kl_divergence([0.5, 0.5], [1.0, 0.0])
    inf
    """
    gaussians = _gaussians(p, q)
    if gaussians:
        return gaussian_kl(*gaussians, base=base)
    return _summed(_divergences(*_pair(p, q, axis)), axis, base)


def symmetric_kl(p, q, base=None, axis=-1):
    """Return ½ D(P‖Q) + ½ D(Q‖P), half of Jeffreys' divergence.

    Examples
    --------
    >>> symmetric_kl([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    0.377439
    """
    return (kl_divergence(p, q, base, axis) + kl_divergence(q, p, base, axis)) / 2


def js_divergence(p, q, base=None, axis=-1):
    """Return the Jensen-Shannon divergence, the mean divergence from the even mixture.

    Examples
    --------
    >>> js_divergence([0.5, 0.3, 0.2], [0.2, 0.2, 0.6]), js_divergence([1.0, 0.0], [0.0, 1.0], base=2)
    (0.0905658, 1.0)
    """
    p, q = _pair(p, q, axis)
    return _summed((_divergences(p, (p + q) / 2) + _divergences(q, (p + q) / 2)) / 2, axis, base)


def l1_distance(p, q, axis=-1):
    """Return Σ|p − q|, between 0 and 2.

    Examples
    --------
    >>> l1_distance([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    0.8
    """
    p, q = _pair(p, q, axis)
    return _summed(np.abs(p - q), axis, None)


def total_variation(p, q, axis=-1):
    """Return max |P(A) − Q(A)| over events A: half the L1 distance, and the mass to move to turn P into Q.

    Examples
    --------
    >>> total_variation([0.5, 0.3, 0.2], [0.2, 0.2, 0.6])
    0.4
    """
    return l1_distance(p, q, axis) / 2


def mutual_information(joint, x=0, y=1, given=(), base=None):
    """Return I(X; Y), what one of two variables says about the other; with `given` on average over that condition.

    Parameters
    ----------
    joint : Joint probabilities, an array or a `JointTable`; or a `MultivariateNormal`.
    x, y : Axes, one or several, names with a `JointTable`, coordinates with a `MultivariateNormal`.
    given : Axes of a condition; variables that are named nowhere are summed out.

    Examples
    --------
    >>> mutual_information([[0.4, 0.1], [0.1, 0.4]]), mutual_information([[0.4, 0.1], [0.1, 0.4]], base=2)
    (0.192745, 0.278072)
    """
    gaussian = _gaussian(joint)
    if gaussian:
        return gaussian_mutual_information(gaussian[1], x, y, given, base)
    x, y, given = axes_of(joint, x), axes_of(joint, y), axes_of(joint, given)
    used = axes_of(joint, x + y + given)  # refuses a variable in two places
    p = check_probabilities(joint)
    p = p.sum(axis=tuple(i for i in range(p.ndim) if i not in used), keepdims=True)
    p_x, p_y, p_given = p.sum(axis=y, keepdims=True), p.sum(axis=x, keepdims=True), p.sum(axis=x + y, keepdims=True)
    apart = p_x * (p_y / np.where(p_given > 0, p_given, 1.0))
    return _summed(_divergences(p, apart), None, base)


def differential_entropy(distribution, base=None):
    """Return h = −∫ p log p of a distribution, or of the Gaussian with a given covariance.

    Parameters
    ----------
    distribution : Anything with a method `entropy()`, in nats; or a variance or covariance matrix.

    Examples
    --------
    >>> differential_entropy(1.0), differential_entropy([[1e-4, 0.0], [0.0, 1.0]])
    (1.418939, -1.767293)
    """
    if hasattr(distribution, "pmf"):
        raise ValueError("A discrete distribution has no density, hence no differential entropy; see `entropy`.")
    if callable(getattr(distribution, "entropy", None)):
        return float(distribution.entropy()) / units(base)
    return gaussian_entropy(distribution, base)


def _gaussian(distribution):
    """Return mean and covariance of a `Normal` or `MultivariateNormal`, None for an array; refuse other distributions."""
    if isinstance(distribution, Normal):
        return distribution.loc, distribution.scale**2
    if isinstance(distribution, MultivariateNormal):
        return distribution.mean, distribution.cov
    if hasattr(distribution, "logpdf"):
        name = type(distribution).__name__
        raise ValueError(
            f"There is a closed form for Normal and MultivariateNormal, not for {name}; give probabilities instead."
        )
    return None


def _gaussians(p, q):
    """Return the means and covariances of two Gaussians, None for two arrays."""
    first, second = _gaussian(p), _gaussian(q)
    if (first is None) != (second is None):
        raise ValueError("Both must be Gaussian, or both probabilities.")
    return None if first is None else (*first, *second)
