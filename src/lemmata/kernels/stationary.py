"""Kernels of the distance: functions g(s) of s = Σ (x_f − z_f)²/ℓ_f², which know no origin.

    RBF        g = exp(−s/2) = exp(−γ‖x − z‖²) with γ = 1/(2ℓ²)
    Matérn     g = 2^{1−ν}/Γ(ν) · uᵛ K_ν(u) with u = √(2νs): processes that are ν times differentiable; ν = ½ is exp(−√s)
    periodic   exp(−2 Σ sin²(π(x_f − z_f)/p)/ℓ²): an RBF of the points (cos 2πx_f/p, sin 2πx_f/p) on circles, hence valid

Rows are moved to an origin among them, which changes no distance and keeps digits, and divided by ℓ; see `distances`. A length
scale for each column (ARD) tells which columns matter. With the slope h = −2g′(s), ∂k/∂log ℓ_f = h·(x_f − z_f)²/ℓ_f², so that a
pullback takes one product of matrices for all columns.
"""

import math
from numbers import Real

import numpy as np
from scipy.sparse import csr_array
from scipy.special import gammaln, kve

from lemmata.core.data import is_sparse
from lemmata.kernels.algebra import Kernel
from lemmata.kernels.decays import FAR, bent_decay, decay
from lemmata.kernels.distances import squared_distances
from lemmata.kernels.rows import Rows, add_up

SAMPLE = 100  # rows that the origin is found from: its only use is to be near the rows
NU = 100  # orders of the Matérn kernel up to which its Bessel functions are numbers; beyond, it is an RBF to two digits
HUGE = 1e300  # squares of distances up to which 0 times them is 0


class _Stationary(Kernel):
    """A function of the scaled distance."""

    hyperparameters = ("length_scale",)

    @property
    def nonnegative(self):
        """All of them are positive."""
        return True

    def prepare(self, X, beside=None):
        """Take an origin among the rows off them and divide by the length scales."""
        scale = self._value("length_scale").astype(X.dtype)
        if scale.ndim and scale.shape != (X.shape[1],):
            raise ValueError(f"length_scale has {scale.size} entries for {X.shape[1]} columns; give one, or one for each.")
        X, origin = _moved(X, beside)
        if is_sparse(X):
            return Rows(X.multiply(1 / scale).tocsr(), np.arange(X.shape[0]), None)
        X /= scale
        return Rows(X, np.arange(X.shape[0]), None, origin=origin)

    def values(self, A, B):
        """Return g of the squared distances."""
        return self._of(squared_distances(A, B))

    def log_values(self, A, B):
        """Return log g of the squared distances."""
        return self._log(squared_distances(A, B))

    def diagonal(self, A):
        """Return g(0) = 1."""
        return np.ones(len(A), A.points.dtype)

    def derivatives(self, A, B):
        """Yield the slope times the square of each scaled difference, or of their sum."""
        for _ in self._free():
            S = np.minimum(squared_distances(A, B), HUGE)
            slope = self._slope(S.copy())
            if self._value("length_scale").ndim == 0:
                yield slope * S
            else:
                for f in range(A.points.shape[1]):
                    a, b = (_column(rows.points, f) for rows in (A, B))
                    with np.errstate(over="ignore"):
                        squares = np.minimum((a[:, None] - b) ** 2, HUGE)
                    yield slope * squares

    def pull(self, W, A):
        """Return Σ V‖a − b‖², or for each column 2 Σᵢ rᵢ aᵢ² − 2 aᵀVa, with V the slope times W and r the sums of its rows."""
        if not self._free():
            return np.zeros(0)
        single = self._value("length_scale").ndim == 0
        Z = None if single else A.points.toarray() if is_sparse(A.points) else A.points

        def part(rows):
            S = np.minimum(squared_distances(A[rows], A), HUGE)
            V = self._slope(S.copy() if single else S)
            V *= W[rows]
            if single:
                return np.array([np.vdot(V, S)])
            return 2 * (V.sum(axis=1) @ Z[rows] ** 2) - 2 * np.einsum("if,if->f", Z[rows], V @ Z)

        return add_up(part, len(A))


def _moved(X, beside):
    """Return a copy of the rows less an origin, and the origin; a sparse table, where that would fill zeros, has none.

    The median of some rows is near most of them, also where a few are far away. Rows beside others take their form.
    """
    if beside is None:
        if is_sparse(X):
            return X, None
        origin = np.median(X[:: max(len(X) // SAMPLE, 1)], axis=0).astype(X.dtype)
    else:
        origin = beside.origin
        if origin is None:
            return X if is_sparse(X) else csr_array(X), None
    return (X.toarray() if is_sparse(X) else X) - origin, origin


def _column(points, f):
    """Return a column of dense or sparse points."""
    return points[:, [f]].toarray().ravel() if is_sparse(points) else points[:, f]


class RBF(_Stationary):
    """The radial basis function, or squared exponential: k(x, z) = exp(−‖x − z‖²/(2ℓ²)) = exp(−γ‖x − z‖²).

    Parameters
    ----------
    length_scale : ℓ, one for all columns or one for each.
    gamma : γ = 1/(2ℓ²), given instead of ℓ.
    length_scale_bounds : Within what ℓ may be fitted, or "fixed".

    Examples
    --------
    >>> RBF(gamma=0.5)([[0.0]], [[1.0], [2.0]]).round(6)
    array([[0.606531, 0.135335]])
    """

    def __init__(self, length_scale=1.0, *, gamma=None, length_scale_bounds=(1e-5, 1e5)):
        self.length_scale = length_scale
        self.gamma = gamma
        self.length_scale_bounds = length_scale_bounds

    def _value(self, name):
        if self.gamma is None:
            return super()._value(name)
        gamma = np.asarray(self.gamma, dtype=float)
        if not (np.isfinite(gamma).all() and (gamma > 0).all()):
            raise ValueError(f"gamma of RBF must be positive, got {self.gamma!r}.")
        return math.sqrt(0.5) / np.sqrt(gamma)

    def _changed(self, name, value):
        return {"length_scale": value, "gamma": None}

    def _of(self, S):
        return decay(S)

    def _log(self, S):
        S *= -0.5
        return S

    def _slope(self, S):
        return decay(S)


class Matern(_Stationary):
    """The Matérn kernel, whose processes are rougher than the RBF's: ν times differentiable, in a sense.

    Parameters
    ----------
    length_scale : ℓ, one for all columns or one for each.
    nu : ν, positive; ½, 3/2, 5/2 and infinity (the RBF) have short formulas, others take Bessel functions.
    length_scale_bounds : Within what ℓ may be fitted, or "fixed".

    Examples
    --------
    >>> [round(float(Matern(nu=nu)([[0.0]], [[1.0]])[0, 0]), 6) for nu in (0.5, 1.5, 2.5, float("inf"))]
    [0.367879, 0.483358, 0.523994, 0.606531]
    """

    def __init__(self, length_scale=1.0, *, nu=1.5, length_scale_bounds=(1e-5, 1e5)):
        self.length_scale = length_scale
        self.nu = nu
        self.length_scale_bounds = length_scale_bounds

    def _order(self):
        if not (isinstance(self.nu, Real) and (0 < self.nu <= NU or self.nu == math.inf)):
            raise ValueError(f"nu of Matern must be positive and at most {NU}, or infinity for the RBF, got {self.nu!r}.")
        return float(self.nu)

    def _of(self, S):
        nu = self._order()
        if nu == math.inf:
            return decay(S)
        if nu == 0.5:
            return bent_decay(S, 1.0)
        if nu == 1.5:
            return bent_decay(S, 3.0, b=1.0)
        if nu == 2.5:
            return bent_decay(S, 5.0, b=1.0, c=1 / 3)
        return np.exp(_log_bessel(np.minimum(np.sqrt(2 * nu * S), FAR), nu, nu))

    def _log(self, S):
        nu = self._order()
        if nu == math.inf:
            return -0.5 * S
        u = np.sqrt(2 * nu * S)
        if nu == 0.5:
            return -u
        if nu == 1.5:
            return np.log1p(u) - u
        if nu == 2.5:
            return np.log1p(u + u * u / 3) - u
        return _log_bessel(u, nu, nu)

    def _slope(self, S):
        # From d(uᵛK_ν)/du = −uᵛK_{ν−1} and u² = 2νs, −2g′(s) = 2ν · 2^{1−ν}/Γ(ν) · u^{ν−1}K_{ν−1}(u).
        nu = self._order()
        if nu == math.inf:
            return decay(S)
        if nu == 1.5:
            return bent_decay(S, 3.0, a=3.0)
        if nu == 2.5:
            return bent_decay(S, 5.0, a=5 / 3, b=5 / 3)
        u = np.minimum(np.sqrt(2 * nu * S), FAR)
        if nu == 0.5:
            return np.divide(bent_decay(S, 1.0), u, out=np.zeros_like(u), where=u > 0)  # infinite at s = 0, where s·h is 0
        return 2 * nu * np.exp(_log_bessel(u, nu, nu - 1))


def _log_bessel(u, nu, order):
    """Return log(2^{1−ν}/Γ(ν) · u^order · K_order(u)); at 0 its limit, or −∞ for orders of at most 0, which s = 0 multiplies.

    Near 0, where K itself is no number any more, the first terms of its series are the function to all digits:
    2^{1−ν}/Γ(ν) u^o K_o(u) = 2^{o−ν} Γ(o)/Γ(ν) (1 − u²/(4(o − 1)) + …).
    """
    positive = np.where(u > 0, u, 1.0).astype(float)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        value = (1 - nu) * math.log(2) - gammaln(nu) + order * np.log(positive) + np.log(kve(order, positive)) - positive
    near = (u == 0) | ~np.isfinite(value)
    near &= u < 1  # far away, −∞ is right
    if order > 0:
        first = u * u / (4 * (order - 1)) if order > 2 else 0.0  # for small orders K overflows where u² is nothing
        limit = (order - nu) * math.log(2) + gammaln(order) - gammaln(nu) + np.log1p(-np.minimum(first, 0.5))
    else:
        limit = -np.inf
    return np.where(near, limit, value).astype(u.dtype)


class Periodic(_Stationary):
    """A kernel that repeats itself: k(x, z) = exp(−2 Σ sin²(π(x_f − z_f)/p)/ℓ²).

    In several columns, the sum over columns keeps it valid; the sine of the distance, which other libraries take, does not.

    Parameters
    ----------
    length_scale : ℓ: how far along the period values stay alike.
    period : p.
    length_scale_bounds, period_bounds : Within what ℓ and p may be fitted, or "fixed".

    Examples
    --------
    >>> Periodic(period=2.0)([[0.0]], [[0.5], [1.0], [2.0]]).round(6)
    array([[0.367879, 0.135335, 1.      ]])
    """

    hyperparameters = ("length_scale", "period")

    def __init__(self, length_scale=1.0, period=1.0, *, length_scale_bounds=(1e-5, 1e5), period_bounds=(1e-5, 1e5)):
        self.length_scale = length_scale
        self.period = period
        self.length_scale_bounds = length_scale_bounds
        self.period_bounds = period_bounds

    def prepare(self, X, beside=None):
        """Put each entry on a circle of radius 1/ℓ; the angles are kept for the derivative in the period."""
        if np.ndim(self.length_scale) or np.ndim(self.period):
            raise ValueError("Periodic has one length_scale and one period; multiply kernels of columns for more.")
        X, origin = _moved(X.toarray() if is_sparse(X) else X, beside)
        angles = 2 * np.pi / float(self._value("period")) * X
        circles = np.concatenate([np.cos(angles), np.sin(angles)], axis=1) / float(self._value("length_scale"))
        return Rows(circles.astype(X.dtype), np.arange(len(X)), None, origin=origin, parts=(_Angles(angles),))

    def derivatives(self, A, B):
        """Yield the derivative in the length scale, then k/ℓ² Σ sin(ωδ)ωδ in the period, with ωδ the difference of angles."""
        for name, _ in self._free():
            S = squared_distances(A, B)
            if name == "length_scale":
                yield S * self._slope(S.copy())
            else:
                turn = np.zeros(S.shape)
                for f in range(A.parts[0].angles.shape[1]):
                    delta = A.parts[0].angles[:, f, None] - B.parts[0].angles[:, f]
                    turn += np.sin(delta) * delta
                yield self._of(S) * turn / float(self.length_scale) ** 2

    def pull(self, W, A):
        """Take the sums over the matrices of derivatives."""
        return Kernel.pull(self, W, A)

    def _of(self, S):
        return decay(S)

    def _log(self, S):
        S *= -0.5
        return S

    def _slope(self, S):
        return decay(S)


class _Angles:
    """The angles of some rows, which are taken along with them."""

    def __init__(self, angles):
        self.angles = angles

    def __getitem__(self, which):
        return _Angles(self.angles[which])
