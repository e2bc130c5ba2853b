"""The certificate of a factorization: what the ratings say of its parameters, computed without the solver.

At a maximum of the posterior every user solves its ridge problem given the items: Σ s e (vⱼ, 1) = λ_uσ² (uᵢ, bᵢ), e the
residuals; and every item given the users. That is local, since the objective is not convex. But what matters is convex in the
matrix of products: ½λ_u‖U‖² + ½λ_v‖V‖² is at least √(λ_uλ_v) times the nuclear norm of UVᵀ [1], for any number of factors. So
F has a lower bound with the dual variables Y = t·s∘e, for every t with t‖s∘e‖₂ ≤ σ²√(λ_uλ_v):

    D = Σ Y (r − μ) − ½ Σ Y²/s − Σᵢ (Σⱼ Yᵢⱼ)²/2σ²λ_u − Σⱼ (Σᵢ Yᵢⱼ)²/2σ²λ_v.

The gap F − D is what factors of any number could gain at most. It closes where there are as many factors as the convex
problem asks for [2]; with fewer it is information. With λ times counts, rows and columns of Y are divided by the roots of the
counts. Implicit feedback has all cells in the sums, and no biases. The norm is that of a matrix of moderate size; beyond,
Lanczos' method approaches it from below, and the gap is evidence.

[1] Srebro, Rennie & Jaakkola, NIPS (2005). [2] Burer & Monteiro, Math. Program. 103 (2005).
"""

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator, svds

from lemmata.core.certificate import GAP_LIMIT, SAME_LIMIT, TINY, Certificate, Check, equi, gap, same
from lemmata.recommend.alternating import QUIETEST, Unknown, noise_of
from lemmata.recommend.ratings import places

DENSE = 2000  # rows or columns up to which a spectral norm is computed, not approached
CHUNK = 1 << 16  # ratings whose factors are gathered at once


class Cells:
    """The seen cells and what the model says of them."""

    def __init__(self, model, ratings):
        self.user, self.item = places(model.users_, ratings.users), places(model.items_, ratings.items)
        self.known = bool((self.user >= 0).all() and (self.item >= 0).all())
        self.shape = (len(model.users_), len(model.items_))
        self.values, self.mean = ratings.values, model.mean_
        self.weights = np.ones(len(self.values)) if ratings.weights is None else ratings.weights
        if model.implicit and self.known:
            amounts = self.matrix(self.values * self.weights).tocoo()
            seen = amounts.data != 0
            self.user, self.item = amounts.row[seen], amounts.col[seen]
            self.weights, self.values = model.confidence * amounts.data[seen], np.ones(int(seen.sum()))

    def matrix(self, entries):
        """Put numbers into their cells; those of the same cell are added."""
        return csr_array((entries, (self.user, self.item)), shape=self.shape)

    def products(self, U, V):
        """Inner products of the factors of each cell."""
        out = np.empty(len(self.user))
        for start in range(0, len(out), CHUNK):
            here = slice(start, start + CHUNK)
            out[here] = np.einsum("ij,ij->i", U[self.user[here]], V[self.item[here]])
        return out

    def residuals(self, U, V, b, c):
        """What is left of each rating."""
        return self.values - self.mean - b[self.user] - c[self.item] - self.products(U, V)


def certificate(model, ratings, precision, subject):
    """Check a fitted factorization against ratings."""
    cells = Cells(model, ratings)
    strange = Check("ids", 0.0 if cells.known else np.inf, 0.0, "proof", "every user and item of the ratings is one of the fit")
    if not cells.known:
        return Certificate(strange, subject=subject)
    U, V, b, c = (
        np.asarray(getattr(model, name), dtype=float)
        for name in ("user_factors_", "item_factors_", "user_biases_", "item_biases_")
    )
    if len(U) != cells.shape[0] or len(V) != cells.shape[1] or U.shape[1] != V.shape[1]:
        return Certificate(Check("shapes", np.inf, 0.0, "proof", "factors for every user and item"), subject=subject)
    counts = [np.bincount(at, cells.weights, minlength=n) for at, n in zip((cells.user, cells.item), cells.shape, strict=True)]
    scale = counts if model.scale_by_counts else [np.ones(n) for n in cells.shape]
    ridges = [model.noise_variance_ * p * s for p, s in zip(precision, scale, strict=True)]
    checks = [strange, *(_implicit if model.implicit else _explicit)(model, cells, U, V, b, c, ridges)]
    if model.seen_ is not None:
        checks.append(_seen(model, cells))
    return Certificate(*checks, subject=subject)


def _seen(model, cells):
    """Compare who is kept as having rated what."""
    stored, again = model.seen_.tocsr(copy=True), cells.matrix(cells.weights)
    difference = stored - again if stored.shape == again.shape else None
    value = np.inf if difference is None else _length(difference.data) / max(_length(again.data), TINY)
    return Check("seen", float(value), SAME_LIMIT, "proof", "who rated what, and how often")


def _length(values):
    return float(np.linalg.norm(values))


def _stationary(gradients, arrays, scale):
    """Check each array by its own optimality equation; one of zeros, which has no size, against that of the ratings."""
    claims = {
        "users": "every user's factors solve a ridge regression on the items rated",
        "items": "every item's factors solve a ridge regression on the users who rated it",
        "user biases": "no user's bias should be another",
        "item biases": "no item's bias should be another",
    }
    checks = []
    for name, gradient in gradients.items():
        if arrays[name].any():
            checks.append(equi(gradient, arrays[name], name, claims[name]))
        else:
            value = _length(gradient(arrays[name])) / max(scale, TINY)
            checks.append(Check(name, value, SAME_LIMIT, "local", claims[name]))
    return checks


def _explicit(model, cells, U, V, b, c, ridges):
    s = cells.weights
    mean = float(s @ cells.values / s.sum()) if model.biases else 0.0
    gradients = {
        "users": lambda A: cells.matrix(s * cells.residuals(A, V, b, c)) @ V - ridges[0][:, None] * A,
        "items": lambda A: cells.matrix(s * cells.residuals(U, A, b, c)).T @ U - ridges[1][:, None] * A,
    }
    if model.biases:
        gradients |= {
            "user biases": lambda a: np.bincount(cells.user, s * cells.residuals(U, V, a, c), len(b)) - ridges[0] * a,
            "item biases": lambda a: np.bincount(cells.item, s * cells.residuals(U, V, b, a), len(c)) - ridges[1] * a,
        }
    checks = [same(model.mean_, mean, "mean", "mean rating", floor=_root_mean_square(cells))]
    if not model.biases:
        gone = float(np.abs(b).max(initial=0.0) + np.abs(c).max(initial=0.0))
        checks.append(Check("biases", gone, 0.0, "proof", "there are none"))
    checks += _stationary(gradients, {"users": U, "items": V, "user biases": b, "item biases": c}, _length(s * cells.values))
    e = cells.residuals(U, V, b, c)
    checks.append(_noise(model, cells, U, V, ridges, float(s @ e**2)))
    if min(ridges[0].max(), ridges[1].max()) > 0:
        checks.append(_explicit_gap(model, cells, U, V, b, c, ridges, e))
    return checks


def _root_mean_square(cells):
    return float(np.sqrt(np.average(cells.values**2, weights=cells.weights)))


def _noise(model, cells, U, V, ridges, squares):
    """Compare the noise variance with the given one, or with the residuals over the ratings that are left."""
    if model.noise_variance != "estimate":
        return same(model.noise_variance_, model.noise_variance, "noise", "the noise variance that was given")
    total = float(cells.weights.sum())
    deviations = cells.values - cells.mean
    variance = float(cells.weights @ deviations**2) / total
    gamma = _determined(cells, U, V, ridges[0], model.biases, cells.user, cells.item)
    gamma += _determined(cells, V, U, ridges[1], model.biases, cells.item, cells.user)
    again = noise_of(squares, gamma, model.noise_variance_, Unknown(total, QUIETEST * variance or 1.0))
    return same(model.noise_variance_, again, "noise", "squared residuals over the ratings that no parameter uses up")


def _determined(cells, own, other, ridge, biases, row, column):
    """Count the parameters that the ratings determine, by the eigenvalues of each row's matrix."""
    table = np.column_stack([other, np.ones(len(other))]) if biases else other
    order = np.argsort(row, kind="stable")
    ends = np.cumsum(np.bincount(row, minlength=len(own)))
    total = 0.0
    for i, (start, stop) in enumerate(zip(ends - np.bincount(row, minlength=len(own)), ends, strict=True)):
        if start < stop:
            here = order[start:stop]
            B = table[column[here]] * np.sqrt(cells.weights[here])[:, None]
            values = np.maximum(np.linalg.eigvalsh(B.T @ B if len(B) > B.shape[1] else B @ B.T), 0.0)
            positive = values > 1e-14 * values.max(initial=0.0)
            total += float((values[positive] / (values[positive] + ridge[i])).sum())
    return total


def _explicit_gap(model, cells, U, V, b, c, ridges, e):
    s = cells.weights
    squares = (ridges[0] @ (U**2).sum(axis=1) + ridges[0] @ b**2 + ridges[1] @ (V**2).sum(axis=1) + ridges[1] @ c**2) / 2
    value = 0.5 * float(s @ e**2) + float(squares)
    Y = s * e
    roots = [1 / np.sqrt(np.where(r > 0, r, np.inf)) for r in ridges]
    norm, exact = _spectral_norm(cells.matrix(Y * roots[0][cells.user] * roots[1][cells.item]))
    t = min(1.0, 1.0 / norm) if norm > 0 else 1.0  # the norm with rows and columns over the roots of their ridges is at most 1
    centered = cells.values - cells.mean
    linear, quadratic = float(Y @ centered), 0.5 * float((Y**2 / s).sum())
    if model.biases:
        for at, root in ((cells.user, roots[0]), (cells.item, roots[1])):
            quadratic += 0.5 * float(((np.bincount(at, Y, len(root)) * root) ** 2).sum())
    return _gap(value, _best_multiple(linear, quadratic, t), 0.5 * float(s @ centered**2), exact)


def _best_multiple(linear, quadratic, largest):
    """Maximize t·linear − t²·quadratic over 0 ≤ t ≤ largest."""
    t = min(largest, linear / (2 * quadratic)) if quadratic > 0 else largest
    return max(t, 0.0) * (linear - max(t, 0.0) * quadratic)


def _gap(value, bound, null, exact):
    claim = "no factors, however many, have an objective smaller by more than this share"
    check = gap(value, bound, null, claim)
    limit = GAP_LIMIT if check.value <= GAP_LIMIT else np.inf
    return Check("nuclear gap", check.value, limit, "proof" if exact else "evidence", claim)


def _implicit(model, cells, U, V, b, c, ridges):
    s = cells.weights

    def gradient(A, B, ridge, at, other):
        extra = 1 + s - s * np.einsum("ij,ij->i", A[at], B[other])
        matrix = csr_array((extra, (at, other)), shape=(len(A), len(B)))
        return matrix @ B - A @ (B.T @ B) - ridge[:, None] * A

    gradients = {
        "users": lambda A: gradient(A, V, ridges[0], cells.user, cells.item),
        "items": lambda A: gradient(A, U, ridges[1], cells.item, cells.user),
    }
    gone = float(np.abs(b).max(initial=0.0) + np.abs(c).max(initial=0.0) + abs(model.mean_))
    given = 1.0 if model.noise_variance == "estimate" else model.noise_variance
    x = cells.products(U, V)
    everywhere = float(((U.T @ U) * (V.T @ V)).sum())
    loss = 0.5 * float(((1 + s) * (1 - x) ** 2 - x**2).sum() + everywhere)
    value = loss + 0.5 * float(ridges[0][0] * (U**2).sum() + ridges[1][0] * (V**2).sum())
    seen = cells.matrix(1 + s - s * x)  # Y = (1 + s)(1 − x) where seen and −x elsewhere: this minus UVᵀ
    norm, exact = _spectral_norm(seen, U, V)
    t = min(1.0, float(np.sqrt(ridges[0][0] * ridges[1][0])) / norm) if norm > 0 else 1.0
    bound = _best_multiple(float(((1 + s) * (1 - x)).sum()), loss, t)
    return [
        Check("biases", gone, 0.0, "proof", "implicit feedback has no mean and no biases"),
        *_stationary(gradients, {"users": U, "items": V}, _length(1 + s)),
        same(model.noise_variance_, given, "noise", "the noise variance that was given"),
        _gap(value, bound, 0.5 * float((1 + s).sum()), exact),
    ]


def _spectral_norm(matrix, U=None, V=None):
    """Give the largest singular value of a sparse matrix, minus UVᵀ if given; and whether it is exact up to rounding."""
    if min(matrix.shape) <= DENSE and matrix.shape[0] * matrix.shape[1] <= 16 * DENSE**2:
        if U is None:
            wide = matrix.shape[0] <= matrix.shape[1]
            square = (matrix @ matrix.T if wide else matrix.T @ matrix).toarray()
        else:
            dense = matrix.toarray() - U @ V.T
            square = dense @ dense.T if dense.shape[0] <= dense.shape[1] else dense.T @ dense
        return float(np.sqrt(max(np.linalg.eigvalsh(square)[-1], 0.0))), True
    turned = matrix.T.tocsr()
    operator = LinearOperator(
        matrix.shape,
        matvec=lambda x: matrix @ x - (0.0 if U is None else U @ (V.T @ x)),
        rmatvec=lambda x: turned @ x - (0.0 if U is None else V @ (U.T @ x)),
        dtype=float,
    )
    start = np.random.default_rng(0).standard_normal(min(matrix.shape))
    return float(svds(operator, k=1, v0=start, return_singular_vectors=False, tol=1e-10)[0]), False
