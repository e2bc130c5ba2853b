"""Stability: an algorithm that hardly notices the loss of one point generalizes, whatever its class.

If removing any training point changes the loss at any point by at most β, and losses are at most M, then with probability
1 − δ (Bousquet and Elisseeff)

    risk ≤ mean training loss + 2β + (4nβ + M)·√(ln(1/δ)/2n),

and with the leave-one-out mean in place of the training mean, β in place of 2β. Only β well below n^(−1/2) says anything.

Minimizing (1/n)Σℓ + λ‖f‖² with a σ-Lipschitz loss over a reproducing kernel space with K(x, x) ≤ κ² has β = σ²κ²/(2λn): no
intercept may be free, κ must hold surely, λ must be fixed before the data are seen. Beware of other parametrizations: a support
vector machine's C is λ = 1/(2nC), ridge's α is λ = α/n. With C or α fixed, β does not shrink and the bound grows with √n.

For k nearest neighbors with leave-one-out error L, E(risk − L)² ≤ 1/(2n) + 6k/(n−1), and Chebyshev does the rest.

Bousquet & Elisseeff, JMLR 2 (2002). Rogers & Wagner, Annals of Statistics 6 (1978).
"""

from math import log, sqrt

from lemmata.theory.bounds.tails import check_count, check_delta, check_mean


def _check_positive(**values):
    """Raise unless each named value is a positive number."""
    for name, value in values.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, not {value!r}.")


def stability_bound(mean, beta, n, delta, upper=1.0, leave_one_out=False):
    """Bound the risk of an algorithm that is stable under removal of a point.

    Parameters
    ----------
    mean : Mean training loss, or mean leave-one-out loss.
    beta : Stability β: how much any loss can change when a point is removed.
    n : Number of training points.
    delta : Probability of failure.
    upper : Bound M of the loss, declared before the data were seen; the largest training loss is not one.
    leave_one_out : Whether the mean is of leave-one-out losses.

    Examples
    --------
    >>> beta = hinge_stability(kappa=1.0, penalty=1.0, n=10_000, ramp=0.25)
    >>> stability_bound(0.2, beta, 10_000, 0.05)
    0.310549
    """
    check_delta(delta)
    _check_positive(upper=upper)
    if not beta >= 0 or not 0 <= mean <= upper:
        raise ValueError(f"beta must not be negative and mean must lie in [0, upper]; they are {beta!r} and {mean!r}.")
    n = check_count(n, "n")
    return float(mean + (1 if leave_one_out else 2) * beta + (4 * n * beta + upper) * sqrt(-log(delta) / (2 * n)))


def hinge_stability(kappa, penalty, n, ramp):
    """Return β = κ²/(2λnγ) of min (1/n)Σ hinge + λ‖f‖², scored by the ramp of width γ, whose losses are at most 1.

    Parameters
    ----------
    kappa : Bound κ of √K(x, x) that holds surely.
    penalty : Penalty λ, fixed before the data were seen.
    n : Number of training points.
    ramp : Width γ of the ramp, fixed before the data were seen.

    Examples
    --------
    >>> hinge_stability(kappa=1.0, penalty=1.0, n=10_000, ramp=0.25)
    0.0002
    """
    _check_positive(kappa=kappa, penalty=penalty, ramp=ramp)
    return float(kappa**2 / (2 * penalty * check_count(n, "n") * ramp))


def ridge_stability(kappa, penalty, n, target=1.0):
    """Return β = 2κ²M/(λn) and M = B²(1 + κ/√λ)² of min (1/n)Σ (y − f)² + λ‖f‖² with |y| ≤ B.

    The zero function has loss at most B², so ‖f‖ ≤ B/√λ and |f| ≤ κB/√λ.

    Parameters
    ----------
    kappa : Bound κ of √K(x, x) that holds surely.
    penalty : Penalty λ, fixed before the data were seen.
    n : Number of training points.
    target : Bound B of |y| that holds surely.

    Returns
    -------
    beta : Stability of the squared loss.
    upper : Bound M of the squared loss.

    Examples
    --------
    >>> beta, upper = ridge_stability(kappa=1.0, penalty=1.0, n=10_000)
    >>> stability_bound(0.5, beta, 10_000, 0.05, upper)
    0.942194
    """
    _check_positive(kappa=kappa, penalty=penalty, target=target)
    upper = float(target**2 * (1 + kappa / sqrt(penalty)) ** 2)
    return float(2 * kappa**2 * upper / (penalty * check_count(n, "n"))), upper


def nearest_neighbor_bound(loo, k, n, delta):
    """Bound the risk of k nearest neighbors by L + √((1/(2n) + 6k/(n−1))/δ).

    Parameters
    ----------
    loo : Leave-one-out error L.
    k : Number of neighbors.
    n : Number of training points, at least 2.
    delta : Probability of failure.

    Examples
    --------
    >>> nearest_neighbor_bound(0.1, k=5, n=10_000, delta=0.05)
    0.346994
    """
    check_delta(delta)
    check_mean(loo)
    k, n = check_count(k, "k"), check_count(n, "n", 2)
    return float(loo) + sqrt((1 / (2 * n) + 6 * k / (n - 1)) / delta)
