"""The hard margin as a distance: between the convex hulls of two classes.

With weights μ of the positive rows and ν of the negative ones, both at least 0 and of sum 1, p = Σ μᵢφ(xᵢ) and q = Σ νⱼφ(xⱼ)
run over the hulls. Where ‖p − q‖ is smallest, and not 0, the plane of the widest margin stands halfway between p and q, across
the line that joins them [1]: w = 2(p − q)/‖p − q‖², α = 2(μ; ν)/‖p − q‖², and the hulls are 2/‖w‖ apart. If the smallest
distance is 0 no plane separates the classes, and μ and ν prove it.

The differences p − q fill the hull of the differences of rows, of which there are too many to write down. But the one that lies
farthest on the wrong side of a plane is the difference of two rows, each the farthest of its class, so Wolfe's algorithm for
the point of a hull nearest to zero (`linear_model.hard_margin`) takes them as it needs them.
Certificate: for every unit vector z, minᵢ ⟨z, φ(xᵢ)⟩ − maxⱼ ⟨z, φ(xⱼ)⟩ ≤ distance ≤ ‖p − q‖ (Frank & Wolfe); at z along p − q
the two meet.

[1] Bennett & Bredensteiner, ICML (2000).
"""

from dataclasses import dataclass, field

import numpy as np
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, gap, same
from lemmata.core.data import is_sparse
from lemmata.kernels import Kernel, Linear, choose_kernel
from lemmata.kernels.features import finite_features
from lemmata.kernels.validity import rounding_of
from lemmata.linear_model.hard_margin import BATCH, CLOSED, ROUNDS, ZERO, nearest_point, squares

MEET = 1e-12  # of the longest row: how near hulls that meet must come
UNIT = 1e-2  # least bias, in units of the margin, of which a share is asked for


@dataclass(frozen=True)
class HullDistance:
    """The points of two convex hulls that are nearest to each other, and the plane between them.

    Attributes
    ----------
    mu, nu : Weights of the rows of the positive class (the larger label), and of the other one, each in the order of the rows.
    distance : ‖p − q‖; 0 where the hulls meet.
    alpha : (n,), multipliers 2(μ; ν)/‖p − q‖² of the dual of the hard margin, in the order of the rows; None where hulls meet.
    w : (d,), weights of the columns, for the linear kernel; None for others, or where hulls meet.
    b : Bias of the plane; None where hulls meet.
    p, q : (d,), the nearest points, for the linear kernel; None for others, whose points are no rows.
    kernel : The kernel with all its numbers.

    Examples
    --------
    >>> found = hull_distance([[0.0, 1.0], [0.0, -1.0], [3.0, 0.0]], [0, 0, 1])
    >>> found.p, found.q, found.margin, found.separable
    (array([3., 0.]), array([0., 0.]), 1.5, True)
    """

    mu: np.ndarray
    nu: np.ndarray
    distance: float
    alpha: np.ndarray | None
    w: np.ndarray | None
    b: float | None
    p: np.ndarray | None
    q: np.ndarray | None
    kernel: Kernel = field(repr=False)

    @property
    def separable(self):
        """Whether the hulls are apart."""
        return self.alpha is not None

    @property
    def margin(self):
        """Half the distance: 1/‖w‖."""
        return self.distance / 2

    def certify(self, X, y):
        """Prove from the weights and the rows that no two points of the hulls are nearer, or that the hulls meet."""
        X, positive = _two_classes(X, y)
        off = [max(abs(float(part.sum()) - 1), -float(part.min())) for part in (self.mu, self.nu)]
        claim = "weights are at least 0 and sum to one: p and q are in the hulls"
        checks = [Check("hulls", max(off), SAME_LIMIT, "proof", claim)]
        if self.p is not None:
            checks += [
                same(self.p, self.mu @ X[positive], "p", "it is the mean of the positive rows with these weights"),
                same(self.q, self.nu @ X[~positive], "q", "it is the mean of the negative rows with these weights"),
            ]
        signed = _signed(self.mu, self.nu, positive)
        scores, offset, near, blur = _products(self.kernel, X, signed)
        if not self.separable:
            claim = "the hulls have a point in common, up to rounding: no plane separates the classes"
            checks.append(Check("meet", max(near, self.distance) / max(blur, TINY), 1.0, "proof", claim))
            return Certificate(*checks, subject="hulls that meet")
        lower = float(scores[positive].min() - scores[~positive].max()) / max(near, TINY)
        rounding = blur if isinstance(self.kernel, Linear) else blur**2 / max(near, TINY)  # a kernel gives squares of lengths
        bias = -float(np.abs(signed) @ scores + 2 * offset) / near**2  # −⟨p − q, p + q⟩/‖p − q‖²
        checks += [
            same([self.distance], [near], "distance", "it is the length of p − q"),
            gap(near, lower + rounding, near, "no two points of the hulls are nearer by more than this share, and rounding"),
            same(self.alpha, 2 * np.abs(signed) / near**2, "alpha", "multipliers are 2(μ; ν)/‖p − q‖²"),
            same([self.b], [bias], "b", "the plane stands halfway between p and q", floor=UNIT),
        ]
        if self.w is not None:
            checks.append(same(self.w, 2 * (signed @ X) / near**2, "w", "w = 2(p − q)/‖p − q‖², hence ‖p − q‖ = 2/‖w‖"))
        return Certificate(*checks, subject="distance of hulls")


def hull_distance(X, y, kernel="linear", *, gamma="scale", degree=3, coef0=0.0):
    """Find the distance between the convex hulls of two classes, and the plane halfway between them.

    Parameters
    ----------
    X : Rows, (n, d), dense or CSR.
    y : Labels of two classes.
    kernel : "linear", "poly", "rbf", "sigmoid", a kernel of `lemmata.kernels` or a function of two tables. Hulls are those of
        the features of the rows; for other kernels than the linear one that takes the matrix of all rows.
    gamma, degree, coef0 : Parameters of the kernels with names, see `SVC`.

    Returns
    -------
    result : `HullDistance`; its `certify(X, y)` proves it.

    Examples
    --------
    >>> X, y = [[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]], [1, 1, -1, -1]
    >>> result = hull_distance(X, y)
    >>> round(result.distance, 6), result.mu.round(6), result.nu.round(6)
    (2.683282, array([1., 0.]), array([0.6, 0.4]))
    >>> result.w.round(6), abs(round(result.b, 6)), round(2 / float(np.linalg.norm(result.w)), 6)
    (array([0.666667, 0.333333]), 0.0, 2.683282)
    >>> result.certify(X, y).holds
    True
    """
    X, positive = _two_classes(X, y)
    kernel = choose_kernel(kernel, X, gamma=gamma, degree=degree, coef0=coef0)
    linear = isinstance(kernel, Linear)
    mu, nu, apart = nearest_weights(X if linear else finite_features(kernel, X), positive)
    p, q = (mu @ X[positive], nu @ X[~positive]) if linear else (None, None)
    signed = _signed(mu, nu, positive)
    scores, offset, near, blur = _products(kernel, X, signed)
    if not apart or (not linear and near <= blur):
        return HullDistance(mu, nu, 0.0, None, None, None, p, q, kernel)
    b = -float(np.abs(signed) @ scores + 2 * offset) / near**2
    w = 2 * (signed @ X) / near**2 if linear else None
    return HullDistance(mu, nu, near, 2 * np.abs(signed) / near**2, w, b, p, q, kernel)


def nearest_weights(rows, positive):
    """Find weights of the rows of each class for the points of the hulls that are nearest to each other.

    Parameters
    ----------
    rows : (n, d), dense or CSR.
    positive : (n,), which rows belong to the first hull.

    Returns
    -------
    mu, nu : Weights of the positive rows, and of the others.
    apart : Whether a plane was found that has the hulls on different sides, up to rounding.

    Examples
    --------
    >>> nearest_weights(np.array([[0.0, 1.0], [0.0, -1.0], [3.0, 0.0]]), np.array([True, True, False]))
    (array([0.5, 0.5]), array([1.]), True)
    """
    P, Q = rows[positive], rows[~positive]
    center = np.zeros(rows.shape[1]) if is_sparse(rows) else rows.mean(axis=0)  # so that far rows lose no digits
    P, Q = (P, Q) if is_sparse(rows) else (P - center, Q - center)
    unit = max(2 * float(np.sqrt(max(squares(P).max(), squares(Q).max()))), TINY)  # no difference is longer
    pairs, seen, D, held = np.empty((0, 2), dtype=int), set(), np.empty((0, rows.shape[1])), np.zeros(1, dtype=int)
    weights, z, lower, upper = np.ones(1), np.zeros(rows.shape[1]), 0.0, np.inf
    for _ in range(ROUNDS):
        above, below = P @ z, Q @ z
        lower = max(lower, float(above.min() - below.max()) / unit)
        fresh = [pair for pair in zip(_first(above), _first(-below), strict=False) if pair not in seen]
        if not fresh or lower >= (1 - CLOSED) * upper - ZERO:
            break
        seen.update(fresh)
        pairs = np.vstack([pairs, fresh])
        i, j = np.array(fresh).T
        D = np.vstack([D, (_dense(P[i]) - _dense(Q[j])) / unit])
        held, weights, point = nearest_point(D, held)
        upper = float(np.linalg.norm(weights @ D[held]))
        if upper <= ZERO:
            break
        z = point / np.linalg.norm(point)
    i, j = pairs[held].T
    return np.bincount(i, weights, P.shape[0]), np.bincount(j, weights, Q.shape[0]), lower > ZERO


def _first(scores):
    """Return the numbers of a few of the smallest scores, the smallest first."""
    few = np.argpartition(scores, BATCH)[:BATCH] if len(scores) > BATCH else np.arange(len(scores))
    return few[np.argsort(scores[few], kind="stable")].tolist()


def _products(kernel, X, signed):
    """Return ⟨p − q, φ(x) − m⟩ for each row and some m, ⟨p − q, m⟩, ‖p − q‖, and the distance that rounding makes of none."""
    if not isinstance(kernel, Linear):
        K = kernel(X)
        scores = K @ signed
        blur = np.sqrt(rounding_of([0.0, np.abs(K).sum(axis=1).max()], len(K)))  # no eigenvalue is above a sum of a row
        return scores, 0.0, float(np.sqrt(max(signed @ scores, 0.0))), float(blur)
    center = np.zeros(X.shape[1]) if is_sparse(X) else X.mean(axis=0)
    rows = X if is_sparse(X) else X - center
    direction = signed @ rows
    blur = MEET * float(np.sqrt(squares(rows).max()))
    return rows @ direction, float(center @ direction), float(np.linalg.norm(direction)), blur


def _signed(mu, nu, positive):
    """Return μ on the rows of one class and −ν on those of the other."""
    signed = np.empty(len(positive))
    signed[positive], signed[~positive] = mu, -nu
    return signed


def _dense(rows):
    return rows.toarray() if is_sparse(rows) else rows


def _two_classes(X, y):
    """Return the rows, and which of them belong to the larger of two labels."""
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=float)
    check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"The distance is that of the hulls of two classes, and y holds {len(classes)}.")
    return X, y == classes[1]
