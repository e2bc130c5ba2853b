"""Linear separability: is there a plane between the classes? Either answer comes with its proof.

Fold the class into the row, mᵢ = yᵢ·(xᵢ, 1) for yᵢ = ±1; then v separates the classes if ⟨v, mᵢ⟩ > 0 for all i. The linear
program [1]  max Σ uᵢ,  uᵢ ≤ ⟨v, mᵢ⟩,  0 ≤ uᵢ ≤ 1,  with the dual  min Σ max(0, 1 − aᵢ),  a ≥ 0,  Σ aᵢ mᵢ = 0,  tells all. Every
uᵢ ends at 0 or 1. All 1: the classes are separable, "complete". All 0: the dual gives a ≥ 1 with Σ aᵢ mᵢ = 0, and then no v has
⟨v, mᵢ⟩ ≥ 0 for all i and > 0 for one, as Σ aᵢ⟨v, mᵢ⟩ = 0 (Stiemke): "no", the classes overlap, and the likelihood of a
logistic model has a maximum [2]. Some 1, some 0: "quasi", a plane that holds rows of both classes with the others on their
sides; a is positive on the rows held. With K classes v is one vector for each class, and each row gives K − 1 conditions,
⟨v of its own class − v of another, (x, 1)⟩ > 0.

[1] Konis, DPhil thesis, Oxford (2007). [2] Albert & Anderson, Biometrika 71 (1984).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import lsmr
from sklearn.utils import check_X_y
from sklearn.utils.multiclass import check_classification_targets

from lemmata.core.certificate import TINY, Certificate, Check
from lemmata.core.data import is_sparse
from lemmata.linear_model.hard_margin import hard_margin

EPS = float(np.finfo(float).eps)
AT_ONCE = 2000  # rows of a linear program at first; the others join where they matter
CLEAR = 1e-9  # of the size of its terms: a sum that is larger is certainly not zero
BALANCED = 1e-12  # relative; a thousand roundings of a sum that is zero


def separation(M):
    """Decide by a linear program whether some v has ⟨v, mᵢ⟩ ≥ 0 for all rows and > 0 for one; return the proof.

    Parameters
    ----------
    M : Rows with the class folded in, (n, d), dense or CSR.

    Returns
    -------
    direction : v, or None if there is none.
    multipliers : a ≥ 0 with Σ aᵢ mᵢ = 0, positive on the rows that no such v makes positive; None if there are no such rows.

    Examples
    --------
    >>> direction, multipliers = separation(np.array([[1.0, 1.0], [2.0, -1.0]]))
    >>> bool((direction @ [[1.0, 2.0], [1.0, -1.0]] > 0).all()), multipliers
    (True, None)
    >>> separation(np.array([[1.0, 1.0], [-2.0, 1.0], [1.0, -2.0]]))
    (None, array([1., 1., 1.]))
    """
    M = csr_array(M, dtype=float) if is_sparse(M) else np.asarray(M, dtype=float)
    A, back = _conditioned(M)
    n = A.shape[0]
    chosen = np.arange(n)
    if n > 2 * AT_ONCE:
        margin = hard_margin(A)  # faster than any linear program where there is a margin to be found
        if margin.lower > CLEAR * margin.radius:
            return back(margin.direction), None
        chosen = np.sort(np.random.default_rng(0).choice(n, AT_ONCE, replace=False))
    while True:
        v, some = _linear_program(A[chosen])
        a = None
        if some is not None:
            a = np.zeros(n)
            a[chosen] = some
        if len(chosen) == n:
            break
        if v is None:
            a, doubt = _extended(A, chosen, a)
        else:
            doubt = abs(A) @ np.abs(v) * CLEAR - A @ v
            doubt[chosen] = 0.0
        doubtful = np.flatnonzero(doubt > 0)
        if not len(doubtful):
            break
        chosen = np.union1d(chosen, doubtful[np.argsort(-doubt[doubtful], kind="stable")[:AT_ONCE]])
    return None if v is None else back(v), a


def _conditioned(M):
    """Return M in better coordinates (orthogonal columns if dense, columns of size one if sparse) and the way back for v."""
    size = abs(M).max(axis=0).toarray().ravel() if is_sparse(M) else np.abs(M).max(axis=0)
    size[size == 0] = 1.0
    if is_sparse(M):
        return M @ _diagonal(1 / size), lambda v: v / size
    _, s, Vt = np.linalg.svd(M / size, full_matrices=False)
    kept = s > max(M.shape) * EPS * s[0]
    change = Vt[kept].T / s[kept] * np.sqrt(len(M)) / size[:, None]
    return M @ change, lambda v: change @ v


def _linear_program(A):
    """Solve the program; return (v or None, a or None), both freed from the solver's tolerance."""
    n, d = A.shape
    columns = csr_array(A.T)
    # a = p + q with 0 ≤ p ≤ 1 and q ≥ 0 turns min Σ max(0, 1 − aᵢ) into a program with d constraints rather than n
    solution = linprog(
        np.repeat([-1.0, 0.0], n),
        A_eq=hstack([columns, columns], format="csr"),
        b_eq=np.zeros(d),
        bounds=np.column_stack([np.zeros(2 * n), np.repeat([1.0, np.inf], n)]),
        method="highs-ds",
    )
    if solution.status != 0:
        raise RuntimeError(f"The linear program of separability was not solved: {solution.message}")
    v, a = -solution.eqlin.marginals, solution.x[:n] + solution.x[n:]
    held = A @ v <= 0.5  # at the optimum a score is 0, or at least 1
    if not held.any():
        return v, None
    a = np.where(held, np.maximum(a, 1.0), 0.0)
    a[held] = _orthogonal(A[held], a[held])
    return None if held.all() else _orthogonal(A[held].T, v), a


def _orthogonal(A, b):
    """Return the part of b that is orthogonal to the columns of A."""
    for _ in range(2):  # the second time takes what rounding left of the first
        solved = lsmr(A, b, atol=EPS, btol=EPS, conlim=0) if is_sparse(A) else np.linalg.lstsq(A, b, rcond=None)
        b = b - A @ solved[0]
    return b


def _extended(M, chosen, a):
    """Extend positive multipliers of some rows to all rows; where these rows do not span the others, say which to add.

    Rows with positive multipliers reach all of their span with nonnegative weights, hence also minus the sum of the others.
    """
    others = np.ones(M.shape[0])
    others[chosen] = 0.0
    rows = M[chosen].T
    rest = -(M.T @ others)
    solved = lsmr(rows, rest, atol=EPS, btol=EPS, conlim=0) if is_sparse(M) else np.linalg.lstsq(rows, rest, rcond=None)
    needed = solved[0]
    a = a * (1 + float((-needed / a[chosen]).max(initial=0.0))) + others
    a[chosen] += needed
    imbalance = M.T @ a
    if (np.abs(imbalance) <= BALANCED * (abs(M).T @ a)).all():
        return a, np.zeros(M.shape[0])
    doubt = np.abs(M @ imbalance)  # what is left is orthogonal to the rows chosen, not to those that caused it
    doubt[chosen] = 0.0
    return a, doubt


def _diagonal(values):
    n = len(values)
    return csr_array((values, (np.arange(n), np.arange(n))), shape=(n, n))


@dataclass(frozen=True)
class Separability:
    """Whether classes are linearly separable, and the proof.

    Attributes
    ----------
    separable : "complete", "quasi" or "no".
    coef, intercept : Plane that separates, (1, d) and (1,), or K of them for K > 2 classes; None if there is none.
    multipliers : Weights a ≥ 0, (n,), or (n, K) with one for each other class: no plane has the rows with a > 0 strictly on
        their sides and none on the wrong one. None if every row is strictly on its side.
    """

    separable: str
    coef: np.ndarray | None
    intercept: np.ndarray | None
    multipliers: np.ndarray | None
    folded: Any = field(repr=False, compare=False)  # rows, direction and weights as the linear program has them

    def certificate(self):
        """Check the answer by weak duality: from rows, plane and weights, without a linear program."""
        M, v, a = self.folded
        held = np.zeros(M.shape[0], dtype=bool) if a is None else a > 0
        checks = []
        if v is not None:
            scores, terms = M @ v, np.maximum(abs(M) @ np.abs(v), TINY)
            wrong = float((scores <= M.shape[1] * EPS * terms)[~held].sum())
            rows = "every row that has no weight" if held.any() else "every row"
            checks.append(Check("sides", wrong, 0.0, "proof", f"{rows} lies strictly on its side of the plane"))
        if a is not None:
            imbalance = (np.abs(M.T @ a) / np.maximum(abs(M).T @ a, TINY)).max() if held.any() and a.min() >= 0 else np.inf
            claim = "weighted rows cancel: no plane has one strictly on its side and none on the wrong one"
            checks.append(Check("balance", float(imbalance), BALANCED, "proof", claim))
        if v is not None and a is not None:
            off = float(np.abs(scores[held]).max() / terms.max())
            checks.append(Check("held", off, BALANCED, "proof", "the plane holds the rows that have weight"))
        return Certificate(*checks, subject=f"separable: {self.separable}")


def separability(X, y, fit_intercept=True):
    """Decide whether a plane separates the classes, and prove it.

    With K > 2 classes the question is that of the multinomial logistic model: are there K linear functions so that the one of
    a row's own class is the largest? Each class being separable from the rest by a plane is more than that; ask for it with
    y == k. Columns may have any scale.

    Parameters
    ----------
    X : Rows, (n, d), dense or CSR.
    y : Labels of at least two classes.
    fit_intercept : Whether the planes may lie off the origin.

    Returns
    -------
    result : `Separability`; its `certificate()` needs no solver.

    Examples
    --------
    >>> result = separability([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> boundary = -result.intercept / result.coef[0]
    >>> result.separable, bool(1 < boundary[0] < 2)
    ('complete', True)
    >>> result = separability([[0.0], [2.0], [1.0], [3.0]], [0, 0, 1, 1])
    >>> result.separable, result.multipliers
    ('no', array([1., 3., 3., 1.]))
    >>> print(result.certificate())
    separable: no: certificate holds (proof)
      check    value     limit  kind   claim
      balance  0.0e+00 ≤ 1e-12  proof  weighted rows cancel: no plane has one strictly on its side and none on the wrong one
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=float)
    check_classification_targets(y)
    classes, numbers = np.unique(y, return_inverse=True)
    k, n = len(classes), len(numbers)
    if k < 2:
        raise ValueError(f"There must be at least two classes, and y holds one only: {classes[0]!s}.")
    if fit_intercept:
        ones = np.ones((n, 1))
        X = hstack([X, csr_array(ones)], format="csr") if is_sparse(X) else np.hstack([X, ones])
    d = X.shape[1]
    M = folded_rows(X, numbers, k)
    v, a = separation(M)
    result = "no" if v is None else "complete" if a is None else "quasi"
    planes = multipliers = None
    if v is not None:
        planes = v.reshape(k - 1, d) if k == 2 else np.vstack([np.zeros(d), v.reshape(k - 1, d)])
    if a is not None:
        multipliers = a
        if k > 2:
            multipliers = np.zeros((n, k))
            multipliers[np.arange(k) != numbers[:, None]] = a
    coef = None if planes is None else planes[:, : d - fit_intercept]
    intercept = None if planes is None else planes[:, -1] if fit_intercept else np.zeros(len(planes))
    return Separability(result, coef, intercept, multipliers, (M, v, a))


def folded_rows(X, numbers, k):
    """Return the rows that a separating direction has a positive product with, (n·(k − 1), d·(k − 1)).

    The vector of the first class is zero: a common shift of all classes changes nothing. Rows of one row of X follow each
    other, one for each other class.
    """
    if k == 2:
        signs = 2.0 * numbers - 1
        return _diagonal(signs) @ X if is_sparse(X) else X * signs[:, None]
    n = len(numbers)
    row, other = np.nonzero(np.arange(k) != numbers[:, None])
    own = numbers[row]
    pair = np.arange(n * (k - 1))
    signs = csr_array((np.repeat([1.0, -1.0], len(pair)), (np.tile(pair, 2), np.append(own, other))), shape=(len(pair), k))[
        :, 1:
    ]
    blocks = [_diagonal(signs[:, [c]].toarray().ravel()) @ csr_array(X)[row] for c in range(k - 1)]
    M = hstack(blocks, format="csr")
    return M if is_sparse(X) else M.toarray()
