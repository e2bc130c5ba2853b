"""The perceptron's mistake bound of a table: no order of its rows leads to more than (R/γ)² mistakes.

With the class folded into the row, aᵢ = yᵢ(xᵢ, 1) for yᵢ = ±1, R = maxᵢ ‖aᵢ‖ and γ = max over ‖z‖ ≤ 1 of minᵢ ⟨z, aᵢ⟩, each
mistake adds at least γ to ⟨z, w⟩ and at most R² to ‖w‖², so that k mistakes have kγ ≤ ‖w‖ ≤ √k R (Novikoff). Both numbers are
those of the rows with the constant in place: leaving it out gives the bound of another perceptron.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.utils import check_X_y

from lemmata.core.data import is_sparse
from lemmata.linear_model.hard_margin import hard_margin
from lemmata.linear_model.perceptron_certificate import mistake_bound
from lemmata.linear_model.separability import folded_rows


@dataclass(frozen=True)
class PerceptronBound:
    """The mistakes that a perceptron can make on a table.

    Attributes
    ----------
    radius : R, length of the longest row with its constant.
    margin : γ, a proven lower bound that meets its upper one up to rounding; zero if no plane separates the classes.
    bound : (R² + 2δ)/γ², infinite without a margin.
    """

    radius: float
    margin: float
    bound: float


def perceptron_bound(X, y, *, fit_intercept=True, threshold=0.0):
    """Return radius, margin and the largest number of mistakes of a perceptron on these rows.

    Parameters
    ----------
    X : Rows, (n, d), dense or CSR.
    y : Labels of two classes.
    fit_intercept : Whether a constant 1 is appended to the rows.
    threshold : δ: a row with y(w·x + b) ≤ δ counts as a mistake.

    Examples
    --------
    >>> perceptron_bound([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, 0.5]], [1, 1, -1, -1])
    PerceptronBound(radius=2.449490, margin=1.603567, bound=2.333333)
    """
    X, y = check_X_y(X, y, accept_sparse="csr", dtype=float)
    classes, numbers = np.unique(y, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"The bound is that of two classes, and y holds {len(classes)}.")
    if threshold < 0:
        raise ValueError(f"threshold must be at least 0, not {threshold!r}.")
    if fit_intercept:
        ones = np.ones((len(numbers), 1))
        X = hstack([X, csr_array(ones)], format="csr") if is_sparse(X) else np.hstack([X, ones])
    margin = hard_margin(folded_rows(X, numbers, 2))
    return PerceptronBound(margin.radius, max(margin.lower, 0.0), mistake_bound(margin, threshold))
