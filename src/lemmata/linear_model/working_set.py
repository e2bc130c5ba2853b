"""Sparse least squares: coordinate descent on the few columns that matter, with a duality gap over all of them.

Minimize P(w) = ½‖c − Aw‖² + λ₁‖w‖₁ + ½λ₂‖w‖². Any r with |aⱼ·r − λ₂wⱼ| ≤ λ₁ for all columns j is a proof: with the residual
r = c − Aw scaled down by t until that holds, D = t c·r − ½t²(‖r‖² + λ₂‖w‖²) ≤ min P [1]. The gap P − D

- says when to stop;
- screens: with the radius √(2 gap), a column with |aⱼ·tr| + radius·‖aⱼ‖ < λ₁ has wⱼ = 0 in every solution and need never
  be looked at again [2];
- chooses the working set: the columns nearest to their bound.

On a working set everything is in its Gram matrix, kept from one penalty of a path to the next. Coordinate descent, sped up
by extrapolating its iterates (and with them the residuals, which are the dual points) [3], finds the support and the signs;
then the coefficients solve a linear system, which ends the inner problem. One pass over the columns gives the next gap.

[1] El Ghaoui, Viallon & Rabbani, Pacific J. Optim. 8 (2012). [2] Ndiaye, Fercoq, Gramfort & Salmon, JMLR 18 (2017).
[3] Massias, Gramfort & Salmon, ICML (2018).
"""

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.core import config
from lemmata.core.data import is_sparse
from lemmata.core.kernel import kernel
from lemmata.core.threads import run, serial_blas

CHUNK = 256  # columns of a task: a few megabytes
FIRST = 64  # columns of a first working set beyond the support
SPARE = 4  # and at least this part of the support
GROWTH = 2  # factor of that number whenever a working set did not suffice
INSIDE = 0.3  # share of the tolerance that the gap inside a working set may take
ROUGH = 0.1  # share of the present gap below which the inside need not be solved
EPOCHS = 10  # epochs of coordinate descent between two looks at the support
ROUNDS = 200  # of descent and linear system on one working set; a few are usual
DROPS = 30  # dependent columns that may leave the support before coordinate descent looks again
SINGULAR = 1e-10  # pivot, relative to the square of its column, below which columns count as dependent
FAR = 1e3  # square of a mean, relative to the variance, from which their difference would lose digits that matter
PRESENT = 64 * np.finfo(float).eps  # what is smaller, as a share of what it was computed from, is rounding


@kernel
def column_sums(X, root, c, first, mean, norms, products, center):
    """Write mean, squared length about it and product with c of columns, from `first` on."""
    n = np.uint64(X.shape[0])
    weight = 0.0
    for i in range(n):
        weight += root[i] * root[i]
    for j in range(X.shape[1]):
        s = 0.0
        if center:
            for i in range(n):
                s += root[i] * X[i, j]
            s /= weight
        square, product, raw = 0.0, 0.0, 0.0
        for i in range(n):
            a = X[i, j] - s * root[i]
            square += a * a
            product += a * c[i]
            raw += X[i, j] * X[i, j]
        mean[first + j] = s
        norms[first + j] = square if square > PRESENT * PRESENT * raw else 0.0
        products[first + j] = product


@kernel
def sparse_column_norms(data, indices, indptr, root, weight, mean, norms):
    """Write the squared length about the mean of the columns of a CSC matrix.

    About the mean first, then squared: a difference of squares would have no digits left far off the center.
    """
    for j in range(len(norms)):
        square, raw, present = 0.0, 0.0, 0.0
        for e in range(indptr[j], indptr[j + 1]):
            s = root[indices[e]]
            a = data[e] - mean[j] * s
            square += a * a
            raw += data[e] * data[e]
            present += s * s
        if indptr[j + 1] - indptr[j] < len(root):
            square += (weight - present) * mean[j] * mean[j]
        norms[j] = square if square > PRESENT * PRESENT * raw else 0.0


@kernel
def column_products(X, r, columns, out):
    """Write the products of the given columns with r."""
    n = np.uint64(X.shape[0])
    for k in range(len(columns)):
        j = columns[k]
        s = 0.0
        for i in range(n):
            s += X[i, j] * r[i]
        out[k] = s


@kernel
def sparse_column_products(data, indices, indptr, r, columns, out):
    """As `column_products`, for the columns of a CSC matrix."""
    for k in range(len(columns)):
        s = 0.0
        for e in range(indptr[columns[k]], indptr[columns[k] + 1]):
            s += data[e] * r[indices[e]]
        out[k] = s


@kernel
def descend(G, gradient, w, l1, l2, positive, epochs):
    """Sweep coordinate descent over the columns of a Gram matrix; return the largest violation before the last sweep.

    The gradient is that of the quadratic, q − Gw, and is kept up to date with w. G may have room for more columns.
    """
    k = np.uint64(len(w))
    worst = 0.0
    for _ in range(epochs):
        worst = 0.0
        for j in range(k):
            norm = G[j, j]
            if norm == 0.0:
                continue
            old = w[j]
            z = gradient[j] + norm * old
            size = z - l1 if positive else abs(z) - l1
            new = 0.0
            if size > 0.0:
                new = size / (norm + l2)
                if z < 0.0:
                    new = -new
            if new != old:
                step = new - old
                worst = max(worst, abs(step) * (norm + l2))
                w[j] = new
                for i in range(k):
                    gradient[i] -= step * G[j, i]
        if worst == 0.0:
            break
    return worst


class DenseColumns:
    """Columns A = X − root ⊗ mean of a dense table, X with contiguous columns and rows times root, the roots of their weights.

    Parameters
    ----------
    X : (n, d), Fortran order, float64.
    root : (n,)
    c : (n,) target, without its mean where the columns are to be without theirs.
    center : Whether the columns are taken about their means.
    """

    def __init__(self, X, root, c, center):
        self.X, self.root = X, root
        self.n, self.d = X.shape
        self.mean, self.norms, self.start = np.zeros(self.d), np.zeros(self.d), np.zeros(self.d)

        def work(first):
            part = self.X[:, first : first + CHUNK]
            column_sums(part, root, c, first, self.mean, self.norms, self.start, center)

        run(work, range(0, self.d, CHUNK), config.n_threads())

    def products(self, r, columns):
        """Return Aᵀr for some columns."""
        out = np.empty(len(columns))

        def work(at):
            column_products(self.X, r, columns[at : at + CHUNK], out[at : at + CHUNK])

        run(work, range(0, len(columns), CHUNK), config.n_threads())
        return out - self.mean[columns] * (self.root @ r)

    def image(self, columns, w):
        """Return A w for coefficients of some columns."""
        return self.X[:, columns] @ w - self.root * (self.mean[columns] @ w)

    def with_target(self, c):
        """Give the same columns beside another target."""
        other = copy(self)
        other.start = other.products(c, np.arange(self.d))
        return other

    def take(self, columns, out):
        """Write columns of A into an array of as many columns."""

        def work(at):
            part = columns[at : at + CHUNK]
            out[:, at : at + CHUNK] = self.X[:, part] - np.outer(self.root, self.mean[part])

        run(work, range(0, len(columns), CHUNK), config.n_threads())


class SparseColumns:
    """As `DenseColumns`, for a CSC matrix; the means stay implicit."""

    def __init__(self, X, root, c, center):
        self.X, self.root = X, root
        self.n, self.d = X.shape
        weight = float(root @ root)
        self.mean = X.T @ root / weight if center else np.zeros(self.d)
        self.norms = np.empty(self.d)
        sparse_column_norms(X.data, X.indices, X.indptr, root, weight, self.mean, self.norms)
        self.far = weight * self.mean**2 > FAR * self.norms
        self.start = X.T @ c - self.mean * (root @ c)

    def products(self, r, columns):
        """Return Aᵀr for some columns."""
        out = np.empty(len(columns))

        def work(at):
            part = columns[at : at + CHUNK]
            sparse_column_products(self.X.data, self.X.indices, self.X.indptr, r, part, out[at : at + CHUNK])

        run(work, range(0, len(columns), CHUNK), config.n_threads())
        return out - self.mean[columns] * (self.root @ r)

    def with_target(self, c):
        """Give the same columns beside another target."""
        other = copy(self)
        other.start = other.products(c, np.arange(self.d))
        return other

    def gram(self, new, both):
        """Return the products of some columns with others."""
        G = (self.X[:, new].T @ self.X[:, both]).toarray()
        G -= (self.root @ self.root) * np.outer(self.mean[new], self.mean[both])
        for k in np.flatnonzero(self.far[both]):
            G[:, k] = self.products(self._column(both[k]), new)
        for k in np.flatnonzero(self.far[new]):
            G[k] = self.products(self._column(new[k]), both)
        return G

    def _column(self, j):
        return self.X[:, [j]].toarray().ravel() - self.root * self.mean[j]

    def image(self, columns, w):
        """Return A w for coefficients of some columns."""
        return self.X[:, columns] @ w - self.root * (self.mean[columns] @ w)


def columns_of(X, root, c, center):
    """Take a table by its columns; a dense one is copied unless it has contiguous columns already."""
    if is_sparse(X):
        X = X.astype(float, copy=False)  # products of float32 columns would be float32, and no gap would close
        X = (X.multiply(root[:, None]) if (root != 1).any() else X).tocsc()
        X.sum_duplicates()
        return SparseColumns(X, root, c, center)
    weighted = bool((root != 1).any())
    if X.dtype == np.float64 and X.flags.f_contiguous and not weighted:
        return DenseColumns(X, root, c, center)
    F = np.empty(X.shape, order="F")

    def work(first):
        part = X[:, first : first + CHUNK]
        F[:, first : first + CHUNK] = part * root[:, None] if weighted else part

    run(work, range(0, X.shape[1], CHUNK), config.n_threads())
    return DenseColumns(F, root, c, center)


class Pool:
    """The columns met so far and their Gram matrix, in arrays with room to grow: no product is computed twice."""

    def __init__(self, table):
        self.table, self.size = table, 0
        self.columns = np.zeros(0, dtype=np.int64)
        self.seen = np.zeros(table.d, dtype=bool)
        self.gram = np.zeros((0, 0))
        self.taken = None if isinstance(table, SparseColumns) else np.zeros((table.n, 0), order="F")

    def add(self, wanted):
        """Make sure that columns are in the pool."""
        new = wanted[~self.seen[wanted]]
        if not len(new):
            return
        k, self.size = self.size, self.size + len(new)
        self.seen[new] = True
        self.columns = np.concatenate([self.columns, new])
        if self.size > len(self.gram):
            room = min(GROWTH * self.size, self.table.d)
            gram, self.gram = self.gram, np.zeros((room, room))
            self.gram[:k, :k] = gram[:k, :k]
            if self.taken is not None:
                taken, self.taken = self.taken, np.zeros((self.table.n, room), order="F")
                self.taken[:, :k] = taken[:, :k]
        rows = self._products(new, k)
        self.gram[k : self.size, : self.size], self.gram[:k, k : self.size] = rows, rows[:, :k].T

    def _products(self, new, k):
        """Return the products of new columns, the pool's from k on, with all."""
        if self.taken is None:
            return self.table.gram(new, self.columns)
        self.table.take(new, self.taken[:, k : self.size])
        N, rows = self.taken[:, k : self.size].T, np.empty((self.size - k, self.size))

        def work(at):
            stop = min(at + CHUNK, self.size)
            rows[:, at:stop] = N @ self.taken[:, at:stop]

        run(work, range(0, self.size, CHUNK), config.n_threads())
        return rows

    def image(self, w):
        """Return A w for coefficients of the pool's columns."""
        if self.taken is None:
            return self.table.image(self.columns, w)
        return self.taken[:, : self.size] @ w


@dataclass
class Point:
    """Where a solver stands: coefficients, the residual c − Aw, and the products Aᵀr of the columns that are left."""

    w: np.ndarray
    residual: np.ndarray
    products: np.ndarray
    left: np.ndarray  # columns not screened out


def start(table, c):
    """Begin at w = 0."""
    present = np.flatnonzero(table.norms > 0)
    return Point(np.zeros(table.d), c.copy(), table.start[present], present)


def complete(table, point):
    """Bring the columns back that were screened out for one penalty, for another may need them."""
    present = np.flatnonzero(table.norms > 0)
    if len(point.left) < len(present):
        products = np.zeros(table.d)
        gone = np.setdiff1d(present, point.left, assume_unique=True)
        products[point.left], products[gone] = point.products, table.products(point.residual, gone)
        point.left, point.products = present, products[present]


def reach(slack, norms, total, l1, positive):
    """Return the largest multiple of the residual that is a dual point.

    The residual itself counts as one if it is to the rounding of its products: where the penalty is smaller than that, the
    problem is least squares in all digits that there are.
    """
    size = slack if positive else np.abs(slack)
    largest = float(size.max(initial=0.0))
    beyond = float((size - PRESENT * np.sqrt(norms * total)).max(initial=0.0))
    exact = l1 / largest if largest > np.finfo(float).tiny * l1 else np.inf
    return max(exact, l1 / max(beyond, l1))


def bounds(table, point, c, l1, l2, positive):
    """Return the objective, its lower bound, and the scale t of the dual point."""
    w, r = point.w, point.residual
    slack = point.products - l2 * w[point.left]
    square, length = float(r @ r), l2 * float(w @ w)
    value = square / 2 + l1 * float(np.abs(w).sum()) + length / 2
    best = max(float(c @ r), 0.0) / max(square + length, np.finfo(float).tiny)  # the multiple of r of greatest D
    t = min(best, reach(slack, table.norms[point.left], float(c @ c), l1, positive))
    return value, t * float(c @ r) - t * t / 2 * (square + length), t


def solve(table, c, l1, l2, positive, tol, point, pool, max_iter):
    """Improve a point until the gap is at most tol × the objective.

    Returns the point, its value, the bound, whether the gap is small enough, and the number of working sets.

    Parameters
    ----------
    tol : Relative to the objective, or to 1e-12 of ‖c‖² where that is larger: what a sum of squares can resolve.
    point : Start; that of a neighboring penalty will do. Its products must be those of its residual.
    pool : Columns met so far.
    """
    floor = 1e-12 * float(c @ c)
    extra, point = FIRST, Point(point.w.copy(), point.residual, point.products, point.left)
    for n_iter in range(max_iter):
        value, bound, t = bounds(table, point, c, l1, l2, positive)
        if value - bound <= tol * max(value, floor):
            return point, value, bound, True, n_iter
        slack = t * (point.products - l2 * point.w[point.left])
        near = slack if positive else np.abs(slack)
        lengths = np.sqrt(table.norms[point.left] + l2)
        radius = np.sqrt(2 * max(value - bound, 0.0))
        keep = (near + radius * lengths >= l1) | (point.w[point.left] != 0)
        distance = (l1 - near) / lengths
        distance[point.w[point.left] != 0] = -np.inf
        point.left, point.products, distance = point.left[keep], point.products[keep], distance[keep]
        support = int((point.w != 0).sum())
        size = min(support + max(extra, support // SPARE), len(point.left))
        goal = max(INSIDE * tol * max(value, floor), ROUGH * (value - bound))
        chosen = np.argpartition(distance, size - 1)[:size] if size < len(distance) else np.arange(len(distance))
        with serial_blas():
            pool.add(np.sort(point.left[chosen]))
            inner(pool, c, l1, l2, positive, point, goal)
        point.products = table.products(point.residual, point.left)
        extra *= GROWTH
    value, bound, _ = bounds(table, point, c, l1, l2, positive)
    return point, value, bound, value - bound <= tol * max(value, floor), max_iter


def inner(pool, c, l1, l2, positive, point, goal):
    """Bring the gap on the columns of the pool down to a goal, in place."""
    k, columns = pool.size, pool.columns
    G = pool.gram[:k, :k]
    w, q = point.w[columns], pool.table.start[columns]
    norms, total = np.diag(G), float(c @ c)
    gradient, signs = q - G @ w, None
    for _ in range(ROUNDS):
        history = [(w.copy(), gradient.copy())]
        for _ in range(EPOCHS):
            worst = descend(pool.gram, gradient, w, l1, l2, positive, 1)
            history.append((w.copy(), gradient.copy()))
        if worst == 0.0 or inner_gap(gradient, norms, q, w, total, l1, l2, positive) <= goal:
            break
        before, signs = signs, np.sign(w)
        if before is not None and np.array_equal(before, signs) and w.any():
            polish(G, q, w, l1, l2)
            gradient = q - G @ w
        else:
            w, gradient = extrapolated(history, q, l1, l2, positive)
        if inner_gap(gradient, norms, q, w, total, l1, l2, positive) <= goal:
            break
    descend(pool.gram, gradient, w, l1, l2, positive, 1)  # zero what extrapolation or rounding left where zero is best
    point.w[columns] = w
    point.residual = c - pool.image(w)


def extrapolated(history, q, l1, l2, positive):
    """Combine the last iterates into the point where their differences would vanish, if that lowers the objective [3].

    Gradient and residual are affine in w, so the same combination gives theirs: this is the dual extrapolation as well.
    """
    points = np.array([w for w, _ in history])
    U = np.diff(points, axis=0)
    w, gradient = history[-1]
    try:
        z = np.linalg.solve(U @ U.T, np.ones(len(U)))
    except np.linalg.LinAlgError:
        return w, gradient
    share = z / z.sum()
    v = share @ points[1:]
    if not np.isfinite(v).all() or (positive and (v < 0).any()):
        return w, gradient
    slope = share @ np.array([g for _, g in history[1:]])
    cost = lambda a, g: l1 * np.abs(a).sum() + (l2 * (a @ a) - a @ (q + g)) / 2  # noqa: E731
    return (v, slope) if cost(v, slope) < cost(w, gradient) else (w, gradient)


def inner_gap(gradient, norms, q, w, total, l1, l2, positive):
    """Return the gap of the problem on the columns of a Gram matrix alone: ‖r‖² and c·r come from the products."""
    slack = gradient - l2 * w
    fitted = float(w @ q)
    square, length = max(total - fitted - float(w @ gradient), 0.0), l2 * float(w @ w)
    product = total - fitted
    t = min(max(product, 0.0) / max(square + length, np.finfo(float).tiny), reach(slack, norms, total, l1, positive))
    value = square / 2 + l1 * float(np.abs(w).sum()) + length / 2
    return value - t * product + t * t / 2 * (square + length)


def polish(G, q, w, l1, l2):
    """Solve for the coefficients of the support with their signs, in place, as far as none changes its sign."""
    for _ in range(DROPS):
        support = np.flatnonzero(w)
        signs = np.sign(w[support])
        step, whole = direction(G[np.ix_(support, support)], q[support] - l1 * signs, w[support], signs, l2)
        crossing = np.flatnonzero(step * signs < 0)
        shares = -w[support[crossing]] / step[crossing]
        first = int(np.argmin(shares)) if len(shares) else -1
        if first < 0 or (whole and shares[first] > 1):
            w[support] += step if whole else 0.0
            return
        w[support] += shares[first] * step
        w[support[crossing[first]]] = 0.0
        if whole:  # sweeps find the other signs for less than another factor costs
            return


def direction(H, rhs, w, signs, l2):
    """Return the step to the solution of (H + l2 I) w = rhs, and True.

    Where columns depend on each other, return a direction in which the fit stays and the sum of sizes does not grow, and
    False: along it some coefficient reaches zero, so that no more columns are used than there are dimensions.
    """
    H.flat[:: len(H) + 1] += l2
    try:
        factor = cho_factor(H, check_finite=False)
        if (np.diag(factor[0]) ** 2 > SINGULAR * np.diag(H)).all():
            return cho_solve(factor, rhs, check_finite=False) - w, True
    except np.linalg.LinAlgError:
        pass
    size = np.sqrt(np.diag(H))
    flat = np.linalg.eigh(H / size / size[:, None])[1][:, 0] / size
    return (-flat if signs @ flat > 0 else flat), False
