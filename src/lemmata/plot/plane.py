"""The plane on which rows of many columns are shown.

A row lies on its true side of a classifier's boundary if the scores do not change across the plane: that is so on the
directions of the coefficients of a linear classifier, which are at most two for up to three classes. Otherwise the plane goes
through the mean of the rows, along two columns or the two principal directions, and the rows cast shadows on it: one may lie
in a region that is not its own.
"""

from typing import Any, NamedTuple

import numpy as np

from lemmata.core.data import is_sparse
from lemmata.plot.cluster import principal_directions

ZERO = 1e-9  # share of all coefficients below which a direction of theirs is rounding


class Plane(NamedTuple):
    """A plane in the space of the columns: a point, two directions (columns of a matrix), and what to call them."""

    origin: np.ndarray
    directions: np.ndarray
    names: tuple[str, str]

    def points(self, X: np.ndarray) -> np.ndarray:
        """Return the coordinates of the rows on the plane."""
        return (X - self.origin) @ self.directions

    def rows(self, points: np.ndarray) -> np.ndarray:
        """Return the rows of the columns that lie at these coordinates."""
        return self.origin + points @ self.directions.T


def choose_plane(estimator: Any, X: np.ndarray, names: list[str], features: Any = None) -> Plane:
    """Choose the plane: through two columns, the directions of the coefficients, or the principal directions.

    A model with `feature_importances_`, such as a tree, asks about columns one at a time: it has the two most important ones.

    Examples
    --------
    >>> choose_plane(None, np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]), ["a", "b", "c"], features=("a", 2))
    Plane(origin=array([0., 2., 0.]), directions=array([[1., 0.],
           [0., 0.],
           [0., 1.]]), names=('a (other columns at their means)', 'c'))
    """
    n_columns, mean = X.shape[1], X.mean(axis=0)
    if features is None and n_columns <= 2:
        features = range(n_columns)
    elif features is None and n_columns == len(getattr(estimator, "feature_importances_", ())):
        features = np.argsort(-np.asarray(estimator.feature_importances_), kind="stable")[:2]
    if features is not None:
        chosen = [names.index(f) if isinstance(f, str) else int(f) for f in features]
        directions, origin = np.zeros((n_columns, 2)), mean.copy()
        directions[chosen, range(len(chosen))] = 1.0
        origin[chosen] = 0.0
        labels = [names[j] for j in chosen] + ["rows spread out"]  # a single column has room beside it
        return Plane(origin, directions, (labels[0] + (" (other columns at their means)" if n_columns > 2 else ""), labels[1]))
    scores = score_directions(estimator, n_columns)
    if scores.shape[1] == 2:
        return Plane(mean, scores, ("first direction of the scores, from the mean", "second direction"))
    if scores.shape[1] == 1:
        rest = (X - mean) - (X - mean) @ scores @ scores.T
        _, across, shares = principal_directions(rest)
        directions = np.column_stack([scores, across[:, :1]])
        return Plane(
            mean,
            directions,
            ("direction of the coefficients, from the mean", f"widest across it ({shares[0]:.0%} of the rest)"),
        )
    _, directions, shares = principal_directions(X)
    first = f"first principal direction ({shares[0]:.0%} of the variance)\nregions: the plane through the mean of the rows"
    return Plane(mean, directions, (first, f"second ({shares[1]:.0%})"))


def score_directions(estimator: Any, n_columns: int) -> np.ndarray:
    """Return orthonormal directions, as columns, across which no difference of scores changes; none if there are more than two.

    Examples
    --------
    >>> class Model:
    ...     coef_ = np.array([[-3.0, 4.0]])
    >>> score_directions(Model(), 2)
    array([[-0.6],
           [ 0.8]])
    """
    coef = getattr(estimator, "coef_", np.zeros((1, n_columns)))
    coef = np.atleast_2d(np.asarray(coef.toarray() if is_sparse(coef) else coef, dtype=float))
    if coef.shape[1] != n_columns:  # coefficients of features that the model makes itself
        return np.zeros((n_columns, 0))
    # Machines that compare two classes each have scores that are differences already.
    pairwise = hasattr(estimator, "decision_function_shape")
    differences = coef if len(coef) == 1 or pairwise else coef - coef.mean(axis=0)
    _, lengths, right = np.linalg.svd(differences, full_matrices=False)
    rank = int((lengths > ZERO * np.linalg.norm(coef)).sum())
    if rank > 2:
        return np.zeros((n_columns, 0))
    directions = right[:rank].T
    # A singular vector has no sign of its own: the last class lies on its positive side.
    return directions * np.where(differences[-1] @ directions < 0, -1.0, 1.0)
