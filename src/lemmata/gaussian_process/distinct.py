"""Rows that are the same, taken together: repetition says more of a value, not of other places.

A row x that was measured several times, with targets yᵢ, weights sᵢ and noise of variance σ²uᵢ, enters the likelihood through
its precision ω = Σ sᵢ/uᵢ, its mean ȳ = Σ (sᵢ/uᵢ) yᵢ/ω and its scatter S = Σ (sᵢ/uᵢ)(yᵢ − ȳ)²: Σ sᵢ log N(yᵢ | f, σ²uᵢ) = log
N(ȳ | f, σ²/ω) + ½ log(2πσ²/ω) − ½ Σ sᵢ log(2πσ²uᵢ) − S/(2σ²) for every f. So a weight is repetition, exactly, in the
posterior and in the evidence; and equal rows, which would make a kernel matrix singular, are one row of it.
"""

from typing import NamedTuple

import numpy as np


class Distinct(NamedTuple):
    """Different rows and what was measured there."""

    X: np.ndarray  # (n, d)
    y: np.ndarray  # (n,) means ȳ
    weight: np.ndarray  # (n,) precisions ω in units of 1/σ²
    count: float  # Σ s
    log_scale: float  # Σ s log u
    scatter: float  # Σ S

    @property
    def center(self):
        """Mean of all targets."""
        return float(self.weight @ self.y / self.weight.sum())

    @property
    def spread(self):
        """Variance of all targets."""
        return float((self.weight @ (self.y - self.center) ** 2 + self.scatter) / self.weight.sum())

    def constant(self, noise):
        """Return what the log evidence has beside log N(ȳ | 0, K + diag σ²/ω), and its slope in log σ²."""
        repeats = self.count - len(self.y)
        if noise == 0:
            if repeats or self.scatter:
                raise ValueError("Rows that are repeated, or have weights, need noise: give a variance above 0.")
            return 0.0, 0.0
        value = repeats * np.log(2 * np.pi * noise) + self.log_scale + self.scatter / noise + np.log(self.weight).sum()
        return -value / 2, (self.scatter / noise - repeats) / 2


def tells_apart(kernel, X):
    """Tell whether a kernel takes two equal rows for different ones, as white noise does.

    Examples
    --------
    >>> from lemmata.kernels import RBF, White
    >>> tells_apart(RBF(), np.ones((1, 2))), tells_apart(RBF() + White(0.1), np.ones((1, 2)))
    (False, True)
    """
    K = kernel(np.repeat(X[:1], 2, axis=0))
    return bool(abs(K[0, 0] - K[0, 1]) > 1e-9 * abs(K[0, 0]))  # 1e-9: more than rounding


def rows_block(X, y, weight):
    """Give the rows of a block in double precision, their targets and their weights."""
    return X.astype(float), np.asarray(y), np.ones(len(X)) if weight is None else weight


def groups(X, keep_apart=False):
    """Return the number of the first row of each group of equal rows, in order, and the group of each row.

    Examples
    --------
    >>> groups(np.array([[1.0], [0.0], [1.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    if keep_apart:
        return np.arange(len(X)), np.arange(len(X))
    _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(first), dtype=int)
    place[order] = np.arange(len(first))
    return first[order], place[group.ravel()]


def counted(X, labels, weight, n_classes, *, keep_apart=False):
    """Return the different rows, and how often each class was seen there, (n, n_classes).

    Examples
    --------
    >>> counted(np.array([[1.0], [0.0], [1.0]]), np.array([0, 1, 1]), np.array([1.0, 2.0, 3.0]), 2)[1]
    array([[1., 3.],
           [0., 2.]])
    """
    first, group = groups(X, keep_apart)
    counts = np.bincount(group * n_classes + labels, weight, minlength=len(first) * n_classes)
    return X[first], counts.reshape(len(first), n_classes)


def merged(X, y, weight, scale=None, *, keep_apart=False):
    """Take equal rows together, in the order in which they first come.

    Parameters
    ----------
    X, y, weight : Rows, targets and repetitions.
    scale : (n,), u: variances of the noise in units of σ²; 1 without it.
    keep_apart : Whether equal rows stay different, for kernels that tell them apart.

    Examples
    --------
    >>> merged(np.array([[1.0], [0.0], [1.0]]), np.array([2.0, 5.0, 4.0]), np.array([1.0, 1.0, 3.0])).y
    array([3.5, 5. ])
    """
    precision = weight if scale is None else weight / scale
    log_scale = 0.0 if scale is None else float(weight @ np.log(scale))
    first, group = groups(X, keep_apart)
    total = np.bincount(group, precision)
    offset = y - y[first][group]  # from the first of a group: equal targets keep every digit
    mean = np.bincount(group, precision * offset) / total
    scatter = float(precision @ (offset - mean[group]) ** 2)
    return Distinct(X[first], y[first] + mean, total, float(weight.sum()), log_scale, scatter)
