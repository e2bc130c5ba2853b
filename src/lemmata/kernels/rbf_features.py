"""Features of the RBF kernel exp(−γ‖x − z‖²): a series and an integral, both cut where their error is known.

Taylor: exp(−γ‖x − z‖²) = e^{−γ‖x‖²} e^{−γ‖z‖²} Σₖ (2γ⟨x, z⟩)ᵏ/k!, so that the monomials of degree k, times
e^{−γ‖x‖²}√((2γ)ᵏ/k!) and the roots of multinomial coefficients, are features; in one column φₖ(x) = e^{−γx²}√((2γ)ᵏ/k!)xᵏ. The
features of degrees m, m + 1, … of x have the squared length P(N ≥ m) for a Poisson number N of mean 2γ‖x‖²; by Cauchy's
inequality that bounds the error of the kernel when they are left out.
Integral: exp(−γ‖x − z‖²) = ∫φₜ(x)φₜ(z)dt with φₜ(x) = (4γ/π)^{d/4} exp(−2γ‖x − t‖²). Sums over a grid of width h replace the
integral with a relative error below 2e^{−q}/(1 − e^{−q}) or so, q = π²/(4γh²), by Poisson's summation formula.
"""

import math

import numpy as np
from scipy.special import gammainc

from lemmata.core.data import as_matrix, is_sparse
from lemmata.kernels.features import _affordable, monomials
from lemmata.kernels.stationary import RBF


def _gamma_and_rows(kernel, X):
    """Return γ of an RBF of one length scale, and rows as an array."""
    if not isinstance(kernel, RBF) or kernel._value("length_scale").ndim:
        raise ValueError(f"These are features of an RBF with one length_scale, got {kernel!r}.")
    X, _ = as_matrix(X)
    X = (X.toarray() if is_sparse(X) else np.asarray(X)).astype(float, copy=False)
    return 0.5 / float(kernel._value("length_scale")) ** 2, X


def taylor_features(kernel, X, n_terms):
    """Return the features of an RBF kernel of all degrees below `n_terms`, (n, number of monomials).

    Parameters
    ----------
    kernel : `RBF` of one length scale.
    X : (n, d).
    n_terms : m, how many degrees; `taylor_error` tells what is left out.

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> k, X = RBF(gamma=1.0), np.array([[0.3], [-0.8]])
    >>> features = taylor_features(k, X, 12)
    >>> round(float(features[0] @ features[1]), 6), round(float(k(X)[0, 1]), 6)
    (0.298197, 0.298197)
    >>> taylor_error(k, X, 12) < 1e-7
    True
    """
    gamma, X = _gamma_and_rows(kernel, X)
    n, d = X.shape
    _affordable(n, math.comb(d + n_terms - 1, d))
    found = []
    damped = np.exp(-gamma * np.einsum("ij,ij->i", X, X))
    for degree in range(n_terms):
        columns, weights = monomials(d, degree, lower=False)
        terms = np.stack([X[:, list(which)].prod(axis=1) for which in columns], axis=1)
        scale = math.exp(0.5 * (degree * math.log(2 * gamma) - math.lgamma(degree + 1)))
        found.append(scale * damped[:, None] * terms * np.sqrt(weights))
    return np.hstack(found)


def taylor_error(kernel, X, n_terms):
    """Bound the error of the kernel of `taylor_features`, for any two of these rows: P(N ≥ m), N of Poisson's law.

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> round(taylor_error(RBF(gamma=1.0), [[0.5], [-1.0]], 3), 6)
    0.323324
    """
    gamma, X = _gamma_and_rows(kernel, X)
    return float(gammainc(n_terms, 2 * gamma * np.einsum("ij,ij->i", X, X).max(initial=0.0)))


def integral_features(kernel, X, *, tol=1e-10):
    """Return the features of an RBF kernel of one column at the nodes of a grid, (n, number of nodes).

    Parameters
    ----------
    kernel : `RBF` of one length scale.
    X : (n, 1).
    tol : Error of the kernel: the grid is as narrow and as long as it takes.

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> X = np.array([[0.3], [-0.8]])
    >>> features = integral_features(RBF(gamma=0.5), X)
    >>> round(float(features[0] @ features[1]), 6), round(float(RBF(gamma=0.5)(X)[0, 1]), 6)
    (0.546074, 0.546074)
    """
    gamma, X = _gamma_and_rows(kernel, X)
    if X.shape[1] != 1:
        raise ValueError(
            f"The integral is over one column, and the rows have {X.shape[1]}; multiply features of columns for more."
        )
    if not 0 < tol < 1:
        raise ValueError(f"tol must lie between 0 and 1, got {tol!r}.")
    digits = math.log(8 / tol)  # half of the error may come from the width of the grid, half from its two ends
    step = math.pi / (2 * math.sqrt(gamma * digits))
    reach = math.sqrt(digits / (2 * gamma))
    first, last = math.floor((X.min() - reach) / step), math.ceil((X.max() + reach) / step)
    _affordable(len(X), last - first + 1)
    nodes = step * np.arange(first, last + 1)
    return math.sqrt(step) * (4 * gamma / math.pi) ** 0.25 * np.exp(-2 * gamma * (X - nodes) ** 2)
