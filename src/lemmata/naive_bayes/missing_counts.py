"""Counts of which some are missing: what a multinomial makes of a row with holes.

A row counts draws from θ, and nobody knows how many draws fell into the columns that are missing. What is seen then says as
much as it does by itself: given its total n, the seen part x_O is multinomial with the probabilities θⱼ/θ_O, where
θ_O = Σ_{j∈O} θⱼ. (It is also what summing over the missing counts gives, if every order of magnitude of the number of draws N
is as likely as any other, p(N) ∝ 1/N.) The likelihood of a class needs no more of its rows than the sums Tⱼ of the seen counts
and, for each pattern p of holes, the sum nₚ of the totals of its rows:

    F(θ) = Σⱼ (Tⱼ + αⱼ) log θⱼ − Σₚ nₚ log θ_O(p),

and EM fills the holes with the mean of what they would hold, nₚ θⱼ/θ_O(p), and counts:

    θⱼ ← (Tⱼ + αⱼ + Σ_{p: j missing} nₚ θⱼ/θ_O(p)) / (their sum over j).

F never falls. With θ = e^η/Σe^η it is concave in η, so a fixed point inside is the maximum, and the only one if α > 0. Without
holes the first step ends at the smoothed counts.

Dempster, Laird & Rubin, JRSS B 39 (1977). Haberman, The Analysis of Frequency Data (1974).
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.certificate import TINY
from lemmata.naive_bayes.counting import shares

STEPS = 10_000  # of EM at most; each costs what the different patterns of holes store
STILL = 1e-12  # the change of a probability in a step, relative to it, below which hardly more than rounding moves
ROUNDING = np.finfo(float).eps


class Patterns:
    """Totals of the rows of each class by the columns they lack; the sum of two has the patterns of both.

    Attributes
    ----------
    totals : {numbers of the missing columns (int32, as bytes): (k,) sums of the seen counts of the rows that lack them}.
    """

    def __init__(self, totals=()):
        self.totals = dict(totals)

    def __add__(self, other):
        both = dict(self.totals)
        for key, total in other.totals.items():
            both[key] = both[key] + total if key in both else total
        return Patterns(both)

    @staticmethod
    def of(columns, starts, totals):
        """Make patterns of what `arrays` gives."""
        return Patterns((part.tobytes(), total) for part, total in zip(np.split(columns, starts[1:-1]), totals, strict=True))

    def arrays(self):
        """Give the missing columns of one pattern after the other, where each begins, and the totals: (patterns, k)."""
        keys = sorted(self.totals)  # whatever came first
        columns = [np.frombuffer(key, dtype=np.int32) for key in keys]
        return np.concatenate(columns), np.cumsum([0] + [len(c) for c in columns]), np.array([self.totals[key] for key in keys])

    def table(self, k, d):
        """Give the patterns as a sparse table (patterns, d) of ones where an entry is missing, and the totals (patterns, k)."""
        from scipy.sparse import csr_array

        if not self.totals:
            return csr_array((0, d)), np.zeros((0, k))
        columns, starts, totals = self.arrays()
        return csr_array((np.ones(len(columns)), columns, starts), shape=(len(totals), d)), totals


def patterns_of(rows, columns, totals, y, k):
    """Collect patterns from the places (row by row) of the missing entries and the weighted totals of all rows of a block."""
    lacking, first = np.unique(rows, return_index=True)
    found = {}
    for i, missing in zip(lacking, np.split(columns.astype(np.int32), first[1:]), strict=True):
        if totals[i] > 0:  # a row without counts says nothing
            found.setdefault(np.sort(missing).tobytes(), np.zeros(k))[y[i]] += totals[i]
    return Patterns(found)


def telling(counts, patterns, totals):
    """Leave out rows that show one column: given its length such a row is certain, and EM would learn from it for ever.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> lack_of_two, lack_of_one = [0.0, 1.0, 1.0], [1.0, 0.0, 0.0]
    >>> counts, patterns, totals = telling(
    ...     np.array([[5.0, 1.0, 2.0]]), csr_array([lack_of_two, lack_of_one]), np.array([[4.0], [3.0]])
    ... )
    >>> counts, patterns.toarray(), totals
    (array([[1., 1., 2.]]), array([[1., 0., 0.]]), array([[3.]]))
    """
    d = counts.shape[1]
    alone = np.asarray(patterns.sum(axis=1)).ravel() == d - 1
    if not alone.any():
        return counts, patterns, totals
    column = d * (d - 1) // 2 - (patterns[alone] @ np.arange(d)).astype(np.int64)  # the number that the others lack
    taken = np.zeros(counts.shape)
    np.add.at(taken.T, column, totals[alone])
    left = counts - taken
    return np.where(left > 1e3 * ROUNDING * counts, left, 0.0), patterns[~alone], totals[~alone]


def start(counts, alpha, patterns, totals):
    """Begin with equal shares, but for columns of which the end is known.

    A column that was seen and is empty gets nothing, and one that its class never shows keeps the mean of its prior, αⱼ/Σα.
    """
    counted = counts.sum(axis=1, keepdims=True)
    complete = counted[:, 0] - alpha.sum() - totals.sum(axis=0)  # what rows without holes count, up to roundings of sums
    lack = (patterns.T @ (totals > 0)).T  # patterns of each class that lack a column
    seen = (complete[:, None] > 1e3 * ROUNDING * counted) | (lack < (totals > 0).sum(axis=0)[:, None])
    prior = alpha / alpha.sum() if alpha.sum() > 0 else np.full(len(alpha), 1.0 / len(alpha))
    unseen = np.where(seen, 0.0, prior)
    theta = (seen & (counts > 0)).astype(float)
    n_shares = np.maximum(theta.sum(axis=1, keepdims=True), 1.0)
    return unseen + theta / n_shares * (1.0 - unseen.sum(axis=1, keepdims=True))


def step(theta, counts, patterns, totals):
    """One step of EM for all classes; `counts` are smoothed. A class with nothing to count keeps its shares."""
    seen = np.maximum(1.0 - patterns @ theta.T, ROUNDING)
    filled = counts + theta * (patterns.T @ (totals / seen)).T
    total = filled.sum(axis=1, keepdims=True)
    return np.where(total > 0, filled / np.maximum(total, TINY), theta)


def maximum(counts, alpha, patterns, totals):
    """Find the probabilities of each class, (k, d), from counts smoothed by alpha; without holes these are their shares."""
    if not patterns.shape[0]:
        return shares(counts, counts.sum(axis=1, keepdims=True))
    theta = start(counts, alpha, patterns, totals)
    for _ in range(STEPS):
        before, theta = theta, step(theta, counts, patterns, totals)
        if (np.abs(theta - before) <= STILL * theta).all():  # also those that fall towards a tiny alpha have arrived
            return theta
    message = (
        f"The probabilities of missing counts still move after {STEPS} steps: there are hardly rows that show the same columns "
        "together. Raise alpha, or leave out columns that are mostly missing."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=5)
    return theta
