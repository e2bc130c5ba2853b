"""Choosing how many components: hide entries, fit the others, and see how well the hidden ones are foretold.

More components always fit the seen entries better. Entries that were hidden do not fool anybody: their error falls while
components find structure and rises when they begin to fit noise [1]. Hiding whole rows would not do, since the scores of a
row are chosen after looking at it.

[1] Wold, Technometrics 20 (1978).
"""

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _check_sample_weight, check_array

from lemmata.core.data import Array, is_sparse
from lemmata.core.random import generator

IMPOSSIBLE = 1e-6  # share of the mean that an entry is foretold at least: one miss should cost much, but not everything


@dataclass(frozen=True)
class RankCurve:
    """Errors of hidden entries by the number of components.

    Attributes
    ----------
    ranks : (n_ranks,), numbers of components.
    errors : (n_repeats, n_ranks), mean loss of a hidden entry, once for each way to hide.
    suggested : The number with the smallest mean error.
    simplest : The smallest number whose mean error is within one standard error of that.

    Examples
    --------
    >>> import numpy as np
    >>> curve = RankCurve(np.array([1, 2, 3]), np.array([[4.0, 1.0, 1.2], [4.4, 1.2, 1.1]]))
    >>> curve.suggested, curve.simplest
    (2, 2)
    """

    ranks: Array
    errors: Array

    @property
    def means(self):
        """Mean error of each number of components."""
        return self.errors.mean(axis=0)

    @property
    def suggested(self):
        """The number of components with the smallest mean error; the smaller one of equals."""
        return int(self.ranks[np.argmin(self.means)])

    @property
    def simplest(self):
        """The smallest number of components with an error within one standard error of the smallest."""
        best, n = int(np.argmin(self.means)), len(self.errors)
        spread = self.errors[:, best].std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
        return int(self.ranks[self.means <= self.means[best] + spread].min())


def select_rank(estimator, X, ranks, *, share=0.1, n_repeats=3, random_state=None, sample_weight=None):
    """Compare numbers of components by the error of entries that the fit did not see.

    Parameters
    ----------
    estimator : Decomposition with `n_components`, `transform` and `inverse_transform` that lets entries be missing: `NMF`,
        `ProbabilisticPCA`, or any other for which NaN means that.
    X : Dense table; entries may be missing already.
    ranks : Numbers of components to compare.
    share : Share of the seen entries to hide. No row and no column loses more than half of what it has.
    n_repeats : How often to hide anew.
    random_state : Seed of the hiding; all ranks are compared on the same hidden entries.
    sample_weight : (n_samples,), weights of rows in the fits and in the errors.

    Returns
    -------
    curve : RankCurve. The error is the loss of the estimator: for an NMF of loss "kl" the divergence, else half the square.

    Examples
    --------
    >>> import numpy as np
    >>> from lemmata.decomposition import NMF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.exponential(size=(80, 3)) @ rng.exponential(size=(3, 10)) + 0.1 * rng.random((80, 10))
    >>> select_rank(NMF(tol=1e-4, random_state=0), X, [1, 2, 3, 4, 5], random_state=0).suggested
    3
    """
    if is_sparse(X):
        raise ValueError("select_rank hides entries among all of them, zeros too: give it a dense table, of some rows say.")
    X = check_array(X, dtype=[np.float64, np.float32], ensure_all_finite="allow-nan")
    ranks = np.array(sorted({int(rank) for rank in ranks}))
    if len(ranks) == 0 or ranks[0] < 1:
        raise ValueError(f"ranks must hold numbers of at least 1, got {ranks.tolist()}.")
    if not 0 < share < 1 or n_repeats < 1:
        raise ValueError(f"share must lie between 0 and 1 and n_repeats be at least 1, got {share} and {n_repeats}.")
    weight = None if sample_weight is None else _check_sample_weight(sample_weight, X, ensure_non_negative=True)
    rng, errors = generator(random_state), np.empty((n_repeats, len(ranks)))
    for repeat in range(n_repeats):
        rows, columns = hidden_entries(X, share, rng)
        for i, rank in enumerate(ranks):
            model = clone(estimator).set_params(n_components=int(rank))
            errors[repeat, i] = held_out_error(model, X, rows, columns, weight)
    return RankCurve(ranks, errors)


def hidden_entries(X, share, rng):
    """Draw entries to hide, about as many from each row, such that half of each row and column stays; give their places.

    Entries are taken in random order, each unless its row or column has already lost what it can.
    """
    seen = ~np.isnan(X)
    in_row, in_column = seen.sum(axis=1), seen.sum(axis=0)
    rows, columns = np.divmod(rng.permutation(np.flatnonzero(seen)), X.shape[1])
    most = np.ceil(share * in_row)  # of a row, so that no row is hidden much more than others
    kept = (_turn(rows) < np.minimum(most, in_row // 2)[rows]).nonzero()[0]
    kept = kept[_turn(columns[kept]) < (in_column // 2)[columns[kept]]][: max(int(share * seen.sum()), 1)]
    if not len(kept):
        raise ValueError("There are too few entries to hide any: every row and column must keep half of them.")
    return rows[kept], columns[kept]


def _turn(groups):
    """Tell for each entry how many of the same group stand before it."""
    order = np.argsort(groups, kind="stable")
    sorted_groups = groups[order]
    first = np.searchsorted(sorted_groups, sorted_groups)
    turn = np.empty(len(groups), dtype=np.int64)
    turn[order] = np.arange(len(groups)) - first
    return turn


def held_out_error(model, X, rows, columns, weight):
    """Fit without the hidden entries and give their mean loss."""
    weights = {} if weight is None else {"sample_weight": weight}
    seen, truth = X.copy(), X[rows, columns]
    seen[rows, columns] = np.nan
    scores = model.fit(seen, **weights).transform(seen)
    made = np.asarray(model.inverse_transform(scores))[rows, columns]
    loss = 0.5 * (truth - made) ** 2
    if getattr(model, "loss", None) == "kl":
        loss = divergences(truth, np.maximum(made, IMPOSSIBLE * np.nanmean(seen)))
    return float(np.average(loss, weights=None if weight is None else weight[rows]))


def divergences(x, y):
    """Give x log(x/y) − x + y."""
    return x * np.log(np.where(x > 0, x, y) / y) - x + y
