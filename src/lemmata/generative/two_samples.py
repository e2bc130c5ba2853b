"""Do two tables come from one law? The maximum mean discrepancy, and how often chance alone makes as much of it.

The discrepancy is the largest difference of means that a function of length one in the space of a covariance function sees:

    MMD² = E k(x, x′) + E k(y, y′) − 2 E k(x, y),

zero only if both laws are the same, for k(x, y) = exp(−γ‖x − y‖²). Sums over different rows estimate it without bias [1]. If
the laws are the same, rows may change tables: the share of random exchanges with as large a discrepancy (the tables as they are
among them) is at most α with probability α, for any number of rows [2].
A small p-value says that the laws differ. A large one says only that so few rows do not show it.

[1] Gretton, Borgwardt, Rasch, Schölkopf & Smola, JMLR 13 (2012). [2] Phipson & Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010).
"""

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist

from lemmata.core.data import as_matrix, finite_rows
from lemmata.core.random import generator
from lemmata.generative.latent import whole_number

FARTHEST = 1e150  # a square that is still a number; rows as far apart as that, or farther, have nothing in common


class TwoSamples(NamedTuple):
    """An estimate of MMD², which may be below zero; the p-value of equal laws; and γ."""

    mmd2: float
    p_value: float
    gamma: float


def mmd_test(X, Y, *, gamma=None, n_permutations=999, random_state=None):
    """Test whether the rows of two tables come from one law, by a permutation test of their discrepancy.

    Parameters
    ----------
    X, Y : Tables with the same columns, at least two rows each. Time and memory grow with the square of the rows.
    gamma : γ of the covariance function; None for 1/(median distance of two rows)².
    n_permutations : Random exchanges; the least p-value is 1/(1 + this).
    random_state : Seed of the exchanges.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(100, 2)), rng.normal(size=(80, 2))
    >>> bool(mmd_test(X, Y, random_state=0).p_value > 0.05), mmd_test(X, Y + 1, random_state=0).p_value
    (True, 0.001)
    """
    (X, _), (Y, _) = as_matrix(X), as_matrix(Y)
    if X.shape[1] != Y.shape[1] or min(len(X), len(Y)) < 2:
        raise ValueError(
            f"Two tables with the same columns and at least two rows each are needed; got {X.shape} and {Y.shape}."
        )
    finite_rows(X, int, allow_nan=False)
    finite_rows(Y, int, allow_nan=False, name="Y")
    if gamma is not None and not 0 < gamma < np.inf:
        raise ValueError(f"gamma must be positive and finite, or None; got {gamma!r}.")
    whole_number(n_permutations, "n_permutations")
    rows, (n, m) = np.concatenate([X, Y]).astype(float), (len(X), len(Y))
    largest = float(np.abs(rows).max()) or 1.0
    rows /= largest  # so that squares of distances neither vanish nor overflow
    if gamma is None:
        median = float(np.median(pdist(rows)))
        root = 1 / median if median > 0 else 1.0
        gamma = root / largest * (root / largest)
    else:
        root = min(np.sqrt(gamma) * largest, FARTHEST)
    K = np.exp(-cdist(root * rows, root * rows, "sqeuclidean"))
    np.fill_diagonal(K, 0.0)  # a row is not compared with itself
    rng, shares = generator(random_state), np.zeros((n + m, 1 + n_permutations))
    shares[:n, 0] = 1.0
    for column in shares.T[1:]:
        column[rng.permutation(n + m)[:n]] = 1.0
    first, all_sums = K @ shares, K.sum(axis=0)
    within = (shares * first).sum(axis=0)
    between = (shares * all_sums[:, None]).sum(axis=0) - within
    others = all_sums.sum() - within - 2 * between
    found = within / (n * (n - 1)) + others / (m * (m - 1)) - 2 * between / (n * m)
    as_large = int((found[1:] >= found[0] - 1e-12).sum())  # 1e-12: sums of numbers below 1 in another order
    return TwoSamples(float(found[0]), (1 + as_large) / (1 + n_permutations), float(gamma))
