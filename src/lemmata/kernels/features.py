"""Features of kernels: coordinates φ with k(x, z) = ⟨φ(x), φ(z)⟩ that can be written down.

    (γ⟨x, z⟩ + c)ᵐ = Σ over |α| ≤ m of  m!/(α!(m − |α|)!) c^{m−|α|} γ^{|α|} x^α z^α

so that the features of a polynomial kernel are all monomials x^α up to degree m (of degree m alone if c = 0), times the square
roots of these weights. Sums of kernels stack features, products have all products of two. Kernels like the RBF have infinitely
many features [1], but on n points n are enough: with the eigenvalues and eigenvectors K = UΛUᵀ, the rows of UΛ^½ are features.

[1] Aronszajn, Trans. AMS 68 (1950); Mercer, Phil. Trans. A 209 (1909).
"""

from itertools import combinations_with_replacement
from math import comb, factorial, prod

import numpy as np
from scipy.linalg import eigh

from lemmata.core.data import as_matrix, is_sparse
from lemmata.core.threads import serial_blas
from lemmata.kernels.algebra import Constant, Kernel, Product, Sum
from lemmata.kernels.dot import Linear, Polynomial
from lemmata.kernels.transforms import Mapped, Power, Weighted
from lemmata.kernels.validity import is_positive_semidefinite, matrix_of, rounding_of

MOST = 10_000_000  # numbers in a table of features; beyond, the kernel itself is the shorter way
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def monomials(n_columns, degree, *, lower=True):
    """Return the monomials up to a degree as sorted tuples of columns, and the multinomial weight of each.

    Parameters
    ----------
    lower : Whether there is a constant beside the columns, that is, whether lower degrees belong to it.

    Examples
    --------
    >>> monomials(2, 2, lower=False)
    ([(0, 0), (0, 1), (1, 1)], array([1., 2., 1.]))
    """
    found, weights = [], []
    for size in range(0 if lower else degree, degree + 1):
        for columns in combinations_with_replacement(range(n_columns), size):
            repeats = prod(factorial(columns.count(f)) for f in set(columns))
            found.append(columns)
            weights.append(float(factorial(degree) // (factorial(degree - size) * repeats)))
    return found, np.array(weights)


def feature_map(kernel, X):
    """Return features φ(x) of rows with ⟨φ(x), φ(z)⟩ = k(x, z), (n, number of features).

    Parameters
    ----------
    kernel : `Linear`, `Polynomial`, `Constant`, or what sums, products, whole powers, `weighted` and `of` make of them.
    X : (n, d).

    Examples
    --------
    >>> from lemmata.kernels import Polynomial
    >>> x, z = [[1.0, 2.0]], [[3.0, 1.0]]
    >>> k = Polynomial(2, coef0=0.0)
    >>> feature_map(k, x).round(6), feature_names(k, 2)
    (array([[1.      , 2.828427, 4.      ]]), ['x0²', '√2·x0·x1', 'x1²'])
    >>> float((feature_map(k, x) @ feature_map(k, z).T)[0, 0].round(6)), float(k(x, z)[0, 0])
    (25.0, 25.0)
    """
    X, _ = as_matrix(X)
    X = (X.toarray() if is_sparse(X) else np.asarray(X)).astype(float, copy=False)
    return _features(kernel, X)


def feature_names(kernel, columns):
    """Name the features of `feature_map`.

    Parameters
    ----------
    columns : Number of columns, or their names.

    Examples
    --------
    >>> from lemmata.kernels import Polynomial
    >>> feature_names(Polynomial(2), ["a", "b"])
    ['1', '√2·a', '√2·b', 'a²', '√2·a·b', 'b²']
    """
    names = [f"x{f}" for f in range(columns)] if isinstance(columns, (int, np.integer)) else list(columns)
    return [_written(weight, factors) for weight, factors in _terms(kernel, names)]


def _features(kernel, X):
    if isinstance(kernel, Linear):
        return X.copy()
    if isinstance(kernel, Constant):
        return np.sqrt(kernel.diag(X))[:, None]
    if isinstance(kernel, Sum):
        return np.hstack([_features(kernel.left, X), _features(kernel.right, X)])
    if isinstance(kernel, Product):
        left, right = _features(kernel.left, X), _features(kernel.right, X)
        _affordable(len(X), left.shape[1] * right.shape[1])
        return (left[:, :, None] * right[:, None, :]).reshape(len(X), -1)
    if isinstance(kernel, Weighted):
        return np.asarray(kernel.function(X), dtype=float)[:, None] * _features(kernel.kernel, X)
    if isinstance(kernel, Mapped):
        return feature_map(kernel.kernel, kernel.function(X))
    if isinstance(kernel, Power):
        return _powers(_features(kernel.kernel, X), kernel._whole(), 0.0)
    if isinstance(kernel, Polynomial):
        _expandable(kernel)
        return _powers(np.sqrt(kernel.gamma) * X, kernel._whole(), float(kernel.coef0))
    raise ValueError(_endless(kernel))


def _powers(Z, degree, constant):
    """Return features of (⟨z, z′⟩ + c)ᵐ."""
    lower, (n, d) = constant > 0, Z.shape
    _affordable(n, comb(d + degree, degree) if lower else comb(d + degree - 1, degree))
    found, weights = monomials(d, degree, lower=lower)
    sizes = np.array([len(columns) for columns in found])
    features = np.empty((n, len(found)))
    for j, columns in enumerate(found):
        features[:, j] = Z[:, list(columns)].prod(axis=1)
    return features * np.sqrt(weights * np.power(constant, (degree - sizes).astype(float)))


def _terms(kernel, names):
    """Return the features of a kernel as numbers under a root and tuples of the names that are multiplied."""
    if isinstance(kernel, Linear):
        return [(1.0, (name,)) for name in names]
    if isinstance(kernel, Constant):
        return [(float(kernel.value), ())]
    if isinstance(kernel, Sum):
        return _terms(kernel.left, names) + _terms(kernel.right, names)
    if isinstance(kernel, Product):
        return [(a * b, u + v) for a, u in _terms(kernel.left, names) for b, v in _terms(kernel.right, names)]
    if isinstance(kernel, (Power, Polynomial)):
        if isinstance(kernel, Power):
            base, degree, constant = _terms(kernel.kernel, names), kernel._whole(), 0.0
        else:
            _expandable(kernel)
            base, degree, constant = [(float(kernel.gamma), (name,)) for name in names], kernel._whole(), float(kernel.coef0)
        found, weights = monomials(len(base), degree, lower=constant > 0)
        return [
            (
                weight * constant ** (degree - len(factors)) * prod(base[f][0] for f in factors),
                sum((base[f][1] for f in factors), ()),
            )
            for factors, weight in zip(found, weights, strict=True)
        ]
    if isinstance(kernel, (Weighted, Mapped)):
        raise ValueError("The features of a kernel with a function in it have no names; take those of the kernel inside.")
    raise ValueError(_endless(kernel))


def _written(square, factors):
    """Write a monomial with the square of its weight, such as √2·x0·x1."""
    root = np.sqrt(square)
    weight = f"{root:g}" if root == round(root) else f"√{square:g}"
    parts = [
        name + (str(factors.count(name)).translate(SUPERSCRIPTS) if factors.count(name) > 1 else "")
        for name in dict.fromkeys(factors)
    ]
    return "·".join(([weight] if weight != "1" or not parts else []) + parts)


def _expandable(kernel):
    if not kernel.coef0 >= 0:
        raise ValueError(f"A polynomial kernel has features for coef0 of at least 0, got {kernel.coef0!r}.")


def _affordable(n_rows, n_features):
    if n_rows * n_features > MOST:
        raise ValueError(
            f"There are {n_features:,} features of {n_rows:,} rows, more than is sensible to write down; use the kernel itself."
        )


def _endless(kernel):
    if not isinstance(kernel, Kernel):
        return f"feature_map takes a kernel of lemmata.kernels, got {type(kernel).__name__}."
    return (
        f"{type(kernel).__name__} has no finite list of features; on given points use finite_features, and for an RBF "
        "taylor_features or integral_features."
    )


def finite_features(kernel, X=None):
    """Return features of given points from the eigenvectors of their matrix: ΦΦᵀ = K, (n, rank).

    Parameters
    ----------
    kernel : A kernel, a function of two tables, or the matrix itself.
    X : (n, d), the points; None for a matrix.

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> features = finite_features(RBF(), X)
    >>> bool(np.allclose(features @ features.T, RBF()(X)))
    True
    """
    K = matrix_of(kernel, X)
    with serial_blas():
        values, vectors = eigh((K + K.T) / 2)
    tolerance = rounding_of(values)
    if values[0] < -tolerance or np.abs(K - K.T).max(initial=0.0) > tolerance:
        raise ValueError(f"Only a positive semidefinite matrix has features, and this one is {is_positive_semidefinite(K)!r}.")
    kept = values > tolerance
    return (vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1]
