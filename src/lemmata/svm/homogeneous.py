"""The machine without a bias, by projected gradient ascent of its dual.

f(x) = Σ λⱼyⱼ k(xⱼ, x) minimizes ½‖w‖² + C Σ max(0, 1 − yᵢf(xᵢ)); C may be infinite, then every row must have yᵢf(xᵢ) ≥ 1.
The dual is the largest g(λ) = Σ λᵢ − ½ λᵀQλ with Qᵢⱼ = yᵢyⱼ k(xᵢ, xⱼ) over 0 ≤ λᵢ ≤ C; without a bias no other constraint ties
the λᵢ together, and one can climb: λ ← clip(λ + s(1 − Qλ), 0, C). The gradient is 1 − Qλ, not 1 − ½Qλ: each λᵢ stands twice in
the double sum. The curvature of g is at most the largest eigenvalue L of Q, so every step with 0 < s ≤ 1/L raises g by at least
‖change of λ‖²/2s, and g falls short of its largest value by at most ‖λ*‖²/2sk after k steps from 0 [1].
Certificate: g(λ) ≤ ½‖w‖² + C Σ max(0, 1 − yᵢf(xᵢ)) for all λ within the bounds and all w; with C infinite the right side is
½‖w‖²/(least yᵢf(xᵢ))², for w is scaled until it is allowed.

[1] Levitin & Polyak, USSR Comput. Math. Math. Phys. 6 (1966); Beck & Teboulle, SIAM J. Imaging Sci. 2 (2009).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, gap, same
from lemmata.core.iterate import iterate
from lemmata.kernels.features import finite_features
from lemmata.linear_model.separability import separation


@dataclass(frozen=True)
class HomogeneousDual:
    """What projected gradient ascent found.

    Attributes
    ----------
    multipliers : (n,), λ.
    C : Upper bound of λ.
    primal, dual : Objective of the machine (infinite where C is and some row is on the wrong side), and g(λ).
    gap : Their difference as a share of the primal one: no machine is better by more.
    step : s.
    trace : g after every step.
    converged : Whether the gap came down to tol.

    Examples
    --------
    >>> K, y = np.array([[1.0, -1.0], [-1.0, 4.0]]), [1, -1]
    >>> result = homogeneous_dual(K, y)
    >>> result.multipliers.round(6), round(result.primal, 6), result.converged
    (array([1., 0.]), 0.5, True)
    """

    multipliers: np.ndarray
    C: float
    primal: float
    dual: float
    gap: float
    step: float
    trace: np.ndarray
    converged: bool

    @property
    def n_iter(self):
        """Number of steps."""
        return len(self.trace)

    def certify(self, K, y, *, limit=1e-6):
        """Prove from the multipliers and the kernel matrix that no machine has an objective smaller by more than a share.

        Parameters
        ----------
        limit : The share.
        """
        Q = _signed_matrix(K, y)
        out = max(0.0, -float(self.multipliers.min()), float((self.multipliers - self.C).max()))
        inside = np.clip(self.multipliers, 0.0, self.C)
        primal, dual = objectives(inside, Q @ inside, self.C)
        scale = max(float(np.abs(self.multipliers).max()), TINY)
        null = min(self.C * len(Q), primal)
        return Certificate(
            Check("bounds", out / scale, SAME_LIMIT, "proof", "multipliers are at least 0 and at most C"),
            gap(primal, dual, null, "no machine without a bias has a smaller objective by more than this share", limit=limit),
            same([self.primal, self.dual], [primal, dual], "objectives", "they are those of the multipliers"),
        )


def dual_gradient(multipliers, K, y):
    """Return the gradient of g(λ) = Σ λᵢ − ½ Σᵢⱼ λᵢλⱼyᵢyⱼKᵢⱼ: 1 − Qλ.

    Examples
    --------
    >>> dual_gradient([1.0, 2.0], [[2.0, 1.0], [1.0, 3.0]], [1, -1])
    array([ 1., -4.])
    """
    Q = _signed_matrix(K, y)
    return 1 - Q @ np.asarray(multipliers, dtype=float)


def objectives(multipliers, scores, C):
    """Return the objectives of a machine and of its dual, from λ within its bounds and yᵢf(xᵢ) = (Qλ)ᵢ."""
    squared = max(float(multipliers @ scores), 0.0)
    dual = float(multipliers.sum()) - 0.5 * squared
    if np.isfinite(C):
        return 0.5 * squared + C * float(np.maximum(1 - scores, 0.0).sum()), dual
    least = float(scores.min())
    return (0.5 * squared / least**2 if least > 0 else np.inf), dual


def homogeneous_dual(K, y, C=np.inf, *, step=None, start=None, tol=5e-7, max_iter=100_000, verbose=0):
    """Fit a machine without a bias by projected gradient ascent of its dual.

    Parameters
    ----------
    K : (n, n), the kernel matrix of the rows, for instance `X @ X.T`.
    y : (n,), labels of two classes; the larger one counts as +1.
    C : Price of a row inside the margin. Infinite: there must be none, and rows for which that cannot be are refused.
    step : s, at most 1/L for the largest eigenvalue L of Q; None for 1/L.
    start : (n,), multipliers to begin with; None for zeros. What is outside of the bounds is moved to them.
    tol : Gap, as a share of the objective, at which to stop; the default is half of what a certificate allows.
    max_iter : Most steps. There may be many: this is the method of textbooks, `SVC` and `LinearSVC` are faster.

    Returns
    -------
    result : `HomogeneousDual`; its `certify(K, y)` proves it.

    Examples
    --------
    >>> X, y = np.array([[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]]), np.array([1, 1, -1, -1])
    >>> K = X @ X.T
    >>> result = homogeneous_dual(K, y, tol=1e-12)
    >>> (result.multipliers * y) @ X
    array([0.66666667, 0.33333333])
    >>> result.certify(K, y).holds
    True
    """
    Q = _signed_matrix(K, y)
    if not C > 0:
        raise ValueError(f"C must be positive, got {C!r}.")
    n = len(Q)
    largest = float(eigh(Q, eigvals_only=True, subset_by_index=[n - 1, n - 1])[0])
    features = finite_features(Q)  # which refuses a matrix that is no kernel's: then g has no largest value
    if np.isinf(C):
        _refuse_inseparable(features)
    if step is None:
        step = 1 / largest
    elif not 0 < step <= (1 + 1e-9) / largest:  # 1e-9: rounding of the eigenvalue
        raise ValueError(f"step must be positive and at most 1/L = {1 / largest:.6g}, where ascent is certain; got {step!r}.")
    a = np.clip(np.zeros(n) if start is None else np.array(start, dtype=float), 0.0, C)
    if a.shape != (n,) or not np.isfinite(a).all():
        raise ValueError(f"start must hold a finite number for each of the {n} rows, got shape {a.shape}.")

    def ascend(state):
        a, scores = state
        a = np.clip(a + step * (1 - scores), 0.0, C)
        scores = Q @ a
        primal, dual = objectives(a, scores, C)
        return (a, scores), dual, _share(primal, dual)

    # g may fall by the rounding of its two parts, each of which can be much larger than their difference.
    rounding = 1e-12 * max(float(a @ (Q @ a)), float(a.sum()))
    run = iterate(
        ascend,
        (a, Q @ a),
        max_iter=max_iter,
        tol=tol,
        monotone="up",
        rounding=rounding,
        name="homogeneous dual",
        verbose=verbose,
    )
    a, scores = run.state
    primal, dual = objectives(a, scores, C)
    return HomogeneousDual(a, float(C), primal, dual, _share(primal, dual), float(step), run.trace, run.converged)


def _share(primal, dual):
    """Return the gap as a share of the primal objective."""
    return (primal - dual) / max(primal, TINY) if primal < np.inf else np.inf


def _signed_matrix(K, y):
    """Return Q = y yᵀ ∘ K, once K and y are what they should be."""
    K, y = np.asarray(K, dtype=float), np.asarray(y)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or y.shape != K.shape[:1] or not np.isfinite(K).all():
        raise ValueError(
            f"K must be a square matrix of finite numbers with a label for each row, got shapes {K.shape} and {y.shape}."
        )
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"y must hold two classes, got {len(classes)}.")
    signs = np.where(y == classes[1], 1.0, -1.0)
    return signs[:, None] * K * signs


def _refuse_inseparable(folded):
    """Raise unless some w has yᵢ⟨w, φ(xᵢ)⟩ > 0 for all rows; `folded` are yᵢφ(xᵢ)."""
    _, multipliers = separation(folded)
    if multipliers is not None:
        raise ValueError(
            "C=inf needs classes that a plane through the origin of the features separates, and a linear program shows that "
            "there is none; use a finite C, or add a constant to the kernel."
        )
