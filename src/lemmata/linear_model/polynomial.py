"""Polynomial regression: linear regression on monomials.

Every row x becomes all products x₁^{p₁} ⋯ x_d^{p_d} with 1 ≤ p₁ + … + p_d ≤ degree, made block by block and never stored as a
whole; then `LinearRegression` does the rest. Degree n − 1 passes through n distinct points of one feature. Monomials of high
degree are nearly dependent: the coefficients lose digits (about as many as the condition number has) long before the fit
does, which is why the solution is refined in double-double arithmetic.
"""

from functools import partial
from itertools import combinations_with_replacement
from numbers import Integral

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from lemmata.linear_model.linear_regression import LinearRegression


def exponents(n_features, degree):
    """List the powers of every monomial up to a degree, lowest degree first: (n_monomials, n_features)."""
    rows = [
        np.bincount(chosen, minlength=n_features)
        for total in range(1, degree + 1)
        for chosen in combinations_with_replacement(range(n_features), total)
    ]
    return np.array(rows, dtype=np.int64).reshape(len(rows), n_features)


def monomials(X, powers):
    """Multiply out the monomials of a block, each from one of the degree below it."""
    X = X.astype(float, copy=False)
    out = np.empty((len(X), len(powers)))
    place = {tuple(p): j for j, p in enumerate(powers)}
    for j, p in enumerate(powers):
        f = int(np.flatnonzero(p)[-1])
        below = p.copy()
        below[f] -= 1
        out[:, j] = X[:, f] if not below.any() else out[:, place[tuple(below)]] * X[:, f]
    return out


class PolynomialRegression(LinearRegression):
    """Fit a polynomial of the features by least squares.

    Parameters
    ----------
    degree : Largest total degree of a monomial.
    fit_intercept : Whether the constant term is fitted or zero.

    Attributes
    ----------
    powers_ : (n_monomials, n_features), the power of each feature in each monomial.
    coef_ : Coefficient of each monomial, in the order of `powers_`.
    intercept_, rank_, noise_variance_, standard_errors_, intercept_standard_error_ : As in `LinearRegression`.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 2.0, 5.0, 10.0]
    >>> model = PolynomialRegression(degree=2).fit(X, y)
    >>> model.coef_.round(9) + 0.0, round(float(model.intercept_), 9)
    (array([0., 1.]), 1.0)
    >>> model.predict([[4.0]])
    array([17.])
    """

    _parameter_constraints = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        **LinearRegression._parameter_constraints,
    }

    def __init__(self, degree=2, *, fit_intercept=True):
        self.degree = degree
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False  # products of columns are dense soon enough
        return tags

    def _blocks(self, X, *targets, reset, **options):
        blocks = super()._blocks(X, *targets, reset=reset, **options)
        if reset:
            self.powers_ = exponents(self.n_features_in_, self.degree)
        return blocks.with_columns(partial(monomials, powers=self.powers_), len(self.powers_))

    def get_feature_names_out(self, input_features=None):
        """Name the monomials, such as "x0^2 x1"."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        terms = [[name if k == 1 else f"{name}^{k}" for name, k in zip(names, p, strict=True) if k] for p in self.powers_]
        return np.array([" ".join(term) for term in terms], dtype=object)
