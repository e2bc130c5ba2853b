"""Kernel PCA: principal components of rows mapped into the space of a kernel, which is never entered.

Let φ be the map with φ(x)·φ(y) = k(x, y), pᵢ the share of row i in the weight of all, and K the matrix of k between the rows.
Directions in that space are sums of mapped rows, vₖ = Σᵢ aᵢₖ (φ(xᵢ) − φ̄). With K̃ = (I − 1pᵀ) K (I − p1ᵀ), the products of the
centered images, and S the weights, the principal ones come from

    S^{1/2} K̃ S^{1/2} u = λ u,   a = S^{1/2} u/√λ   for u of unit length,

so that vₖ has unit length, and the coordinate of a row is vₖ·(φ(x) − φ̄) = Σᵢ aᵢₖ k(x, xᵢ) − Σᵢ aᵢₖ (Kp)ᵢ: for a row of the
table √λ uᵢ, not λ uᵢ [1]. Without centering, the first direction would point at the mean. With k(x, y) = x·y this is PCA.

Back: a point of that space has no row that maps to it, as a rule. `inverse_transform` regresses rows on their coordinates by
kernel ridge regression [2]; `preimage`, for k = exp(−γ‖x − y‖²), looks for the row whose image is nearest by the fixed point
x = Σᵢ cᵢ k(x, xᵢ) xᵢ / Σᵢ cᵢ k(x, xᵢ), where Σᵢ cᵢ φ(xᵢ) is the point [3].

[1] Schölkopf, Smola & Müller, Neural Computation 10 (1998). [2] Bakır, Weston & Schölkopf, NIPS (2003).
[3] Mika et al., NIPS (1998).
"""

from numbers import Integral, Real

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_array, check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length, same
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Estimator, as_output
from lemmata.core.threads import serial_blas
from lemmata.decomposition.pca_certificate import proved
from lemmata.decomposition.spectrum import FEW, SPARE, TOLERANCE, krylov, upright
from lemmata.kernels import RBF
from lemmata.kernels.sums import Reference, distinct, in_double, in_tiles
from lemmata.svm.kernel_vote import KERNEL_CONSTRAINTS, named_kernel, same_kernel, same_rows

MANY = 1000  # rows from which products with few vectors are cheaper than all eigenvectors
ROUNDINGS = 64  # of the largest eigenvalue, below which one is taken for zero


def coordinates_block(X, weight, reference, center):
    """Coordinates of the rows of a block."""
    return reference.sums(X) - center


def merged(X, weight):
    """Return the different rows, and the weight of each."""
    first, group = distinct(X)
    return X[first], np.bincount(group, weights=weight).astype(float)


def centered(K, weights):
    """Give S^{1/2} K̃ S^{1/2}, and Kp."""
    share, root = weights / weights.sum(), np.sqrt(weights)
    means = K @ share
    return (K - means[:, None] - means + share @ means) * root[:, None] * root, means


def leading(matrix, k):
    """Give the k largest eigenvalues of a matrix (all that are not rounding if None), and their eigenvectors as rows."""
    m = len(matrix)
    with serial_blas():
        if k is not None and k <= FEW * m and m > MANY:
            start = np.random.default_rng(0).standard_normal((m, k + SPARE))
            values, vectors, converged = krylov(matrix, start, k, TOLERANCE)
            if converged:
                return np.maximum(values, 0.0), upright(vectors)
        values, vectors = np.linalg.eigh(matrix)
    values, vectors = values[::-1][:k], vectors.T[::-1][:k]
    present = values > ROUNDINGS * m * np.finfo(float).eps * max(values[0], TINY)
    present[0] = True
    return np.maximum(values[present], 0.0), upright(vectors[present])


class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Find the directions along which the images of rows vary most, in the space of a kernel.

    Parameters
    ----------
    n_components : Number of directions at most; None for all along which the images vary.
    kernel : "linear", "rbf", "poly", "sigmoid", a kernel of `lemmata.kernels`, or a function of two tables.
    gamma : Parameter of the named kernels; "scale" is 1 / (columns · variance of all entries), "auto" is 1 / columns.
    degree : Degree of "poly".
    coef0 : Constant of "poly" and "sigmoid".
    alpha : Penalty of the regression of rows on coordinates.
    fit_inverse_transform : Whether to fit that regression, for `inverse_transform`.

    Attributes
    ----------
    eigenvalues_ : (n_components,), λ: the weight of all rows times the variance along each direction.
    eigenvectors_ : (m, n_components), u: columns of unit length, one entry for each different row; the largest is positive.
    center_ : (n_components,), what is taken off the sums of kernels.
    X_fit_ : The different rows of the table, (m, d).
    weights_ : The weight of each, (m,).
    kernel_ : The kernel.
    dual_coef_ : (m, d), coefficients of the regression, if there is one.

    Examples
    --------
    >>> X = [[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
    >>> model = KernelPCA(1).fit(X)
    >>> model.eigenvalues_, model.transform(X).ravel().round(6) + 0.0
    (array([8.]), array([ 2., -2.,  0.,  0.]))
    >>> model.certify(X).kind
    'proof'
    """

    most_rows = 5_000
    _parameter_constraints = KERNEL_CONSTRAINTS | {
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "fit_inverse_transform": ["boolean"],
    }

    def __init__(
        self,
        n_components=None,
        *,
        kernel="linear",
        gamma="scale",
        degree=3,
        coef0=1.0,
        alpha=1.0,
        fit_inverse_transform=False,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.alpha = alpha
        self.fit_inverse_transform = fit_inverse_transform

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. The matrix of the kernel between all different rows is held in memory."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True)
        rows, weight = blocks.whole()
        self.kernel_ = named_kernel(self, rows, weight)
        self.X_fit_, self.weights_ = merged(rows, weight)
        K, means = self._matrix()
        values, vectors = leading(K, None if self.n_components is None else min(self.n_components, len(K)))
        self.eigenvalues_, self.eigenvectors_ = as_output(values, blocks.dtype), as_output(vectors.T, blocks.dtype)
        self.center_ = as_output(means @ self._coefficients(), blocks.dtype)
        if self.fit_inverse_transform:
            self.dual_coef_ = as_output(self._regression(), blocks.dtype)
        return self

    def _matrix(self):
        """Give the centered matrix of the kernel between the rows, and its means."""
        with serial_blas():
            return centered(self.kernel_(in_double(self.X_fit_)), self.weights_)

    def _coefficients(self):
        """Give a, (m, n_components); directions along which nothing varies have no length, and no coefficients."""
        values, vectors = self.eigenvalues_.astype(float), self.eigenvectors_.astype(float)
        inverse = np.divide(1.0, np.sqrt(values), out=np.zeros(len(values)), where=values > 0)
        return np.sqrt(self.weights_)[:, None] * vectors * inverse

    def _own(self):
        """Give the coordinates of the rows of the fit."""
        return self.eigenvectors_.astype(float) * np.sqrt(self.eigenvalues_.astype(float)) / np.sqrt(self.weights_)[:, None]

    def _regression(self):
        """Regress rows on their coordinates: each is a sum of kernels of coordinates."""
        rows = self.X_fit_.toarray() if is_sparse(self.X_fit_) else self.X_fit_
        with serial_blas():
            K = self.kernel_(self._own())
            return cho_solve(cho_factor(K + np.diag(self.alpha / self.weights_)), rows.astype(float))

    def transform(self, X):
        """Give the coordinates of rows along the directions."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        reference = Reference(self.kernel_, self.X_fit_, self._coefficients())
        return as_output(in_tiles(blocks).map(coordinates_block, reference, self.center_.astype(float)), blocks.dtype)

    def _coordinates(self, X):
        check_is_fitted(self)
        Z = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if Z.shape[1] != len(self.eigenvalues_):
            raise ValueError(f"X has {Z.shape[1]} columns, and there are {len(self.eigenvalues_)} directions.")
        return Z

    def inverse_transform(self, X):
        """Give rows whose coordinates are near X, by the regression that fit_inverse_transform=True fits."""
        Z = self._coordinates(X)
        if not hasattr(self, "dual_coef_"):
            raise ValueError("inverse_transform needs a fit with fit_inverse_transform=True.")
        return as_output(Reference(self.kernel_, self._own(), self.dual_coef_).sums(Z), Z.dtype)

    def preimage(self, X, *, max_iter=1000, tol=1e-9):
        """Give rows whose images are nearest to the points with coordinates X; the kernel must be an `RBF`.

        The fixed point is iterated from the row of the table whose image is nearest, until no row moves by more than `tol` of
        its length.
        """
        Z = self._coordinates(X)
        if not isinstance(self.kernel_, RBF):
            raise ValueError(f"preimage is for the kernel RBF; with {self.kernel_!r} use inverse_transform.")
        rows = in_double(self.X_fit_.toarray() if is_sparse(self.X_fit_) else self.X_fit_)
        share = self.weights_ / self.weights_.sum()
        C = Z.astype(float) @ self._coefficients().T
        C += share * (1.0 - C.sum(axis=1, keepdims=True))  # coefficients of the images themselves
        found = rows[(C @ self.kernel_(rows)).argmax(axis=1)]
        for _ in range(max_iter):
            pull = C * self.kernel_(found, rows)
            total = pull.sum(axis=1, keepdims=True)
            following = np.where(total > TINY, (pull @ rows) / np.maximum(total, TINY), found)
            moved = np.linalg.norm(following - found, axis=1)
            found = following
            if (moved <= tol * np.maximum(np.linalg.norm(found, axis=1), TINY)).all():
                break
        return as_output(found, Z.dtype)

    @property
    def _n_features_out(self):
        return len(self.eigenvalues_)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the directions are eigenvectors, and that no other direction has more variance."""
        check_is_fitted(self)
        rows, weight = self._blocks(X, sample_weight=sample_weight, reset=False).whole()
        rows_, weights = merged(rows, weight)
        checks = [
            same_rows(self.X_fit_, rows_),
            same(self.weights_, weights, "weights", "each row has its weight"),
            same_kernel(self.kernel_, named_kernel(self, rows, weight), in_double(rows_)),
        ]
        if not all(check.holds for check in checks[:2]):
            return Certificate(*checks, subject=repr(self))
        K, means = self._matrix()
        U, values = self.eigenvectors_.astype(float), self.eigenvalues_.astype(float)
        total, k = max(float(np.trace(K)), TINY), len(values)
        with serial_blas():
            residual = length(K @ U - U * values) / max(length(values), TINY)
            beside = K - (U * values) @ U.T
            excess = max(proved(beside, values[-1], total) - values[-1], 0.0) / total
            orthonormal = length(U.T @ U - np.eye(k))
        scale = float(np.abs(means).max()) * float(np.abs(self._coefficients()).sum(axis=0).max())
        checks += [
            Check("orthonormal", orthonormal, SAME_LIMIT, "proof", "the eigenvectors are orthogonal and of unit length"),
            Check(
                "eigenvectors", residual, SAME_LIMIT, "proof", "the centered matrix maps each to itself times its eigenvalue"
            ),
            Check("leading", excess, SAME_LIMIT, "proof", "no direction beside them has more variance, as a share of all"),
            same(self.center_, means @ self._coefficients(), "center", "coordinates have mean zero", floor=scale),
        ]
        if self.fit_inverse_transform:
            checks.append(same(self.dual_coef_, self._regression(), "inverse", "the regression of rows on coordinates"))
        return Certificate(*checks, subject=repr(self))
