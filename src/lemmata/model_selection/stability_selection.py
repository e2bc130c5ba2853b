"""Stability selection: the columns that are chosen again and again, from different halves of the rows.

A method that chooses columns, such as the lasso, is applied to many random halves; a column is kept if the share of halves in
which it was chosen reaches a threshold π > ½. Let q be the mean number of columns that a half chooses, p the number of columns
and V how many are kept in error. If those that do not matter are exchangeable and the method chooses better than at random,

    E V  ≤  q² / ((2π − 1) p)                                              [1, theorem 1].

Here halves come in pairs that share no row. Then, without any such assumption, the bound holds for V the number of columns kept
that a half chooses with a probability of at most q/p, less often than a random choice of q columns would [2, theorem 1]. Its
proof is short: if a column is kept, both halves of a pair choose it in a share of at least 2π − 1 of the pairs; halves without
common rows are independent, so they both do with probability pⱼ² ≤ (q/p) pⱼ; then Markov's inequality.

[1] Meinshausen & Bühlmann, J. Roy. Stat. Soc. B 72 (2010). [2] Shah & Samworth, J. Roy. Stat. Soc. B 75 (2013).
"""

from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone

from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.core.random import generator, spawn
from lemmata.model_selection.criteria import unwrapped
from lemmata.model_selection.fold import Data, fit_to
from lemmata.model_selection.restarts import seeded
from lemmata.model_selection.splits import count_rows


@dataclass(frozen=True)
class StabilitySelection:
    """How often each column was chosen, and which are kept.

    Attributes
    ----------
    chosen : (n_pairs, 2, n_columns), whether each half of each pair chose each column.
    threshold : Share of halves from which on a column is kept.

    Examples
    --------
    >>> halves = np.array([[[1, 0, 0, 0], [1, 1, 0, 0]], [[1, 0, 0, 0], [1, 0, 0, 0]]], dtype=bool)
    >>> found = StabilitySelection(halves, 0.75)
    >>> found.frequencies.tolist(), found.selected.tolist()
    ([1.0, 0.25, 0.0, 0.0], [0])
    >>> found.n_chosen, found.expected_false
    (1.25, 0.78125)
    """

    chosen: np.ndarray = field(repr=False)
    threshold: float

    @property
    def frequencies(self):
        """Share of the halves that chose each column."""
        return self.chosen.mean(axis=(0, 1))

    @property
    def simultaneous(self):
        """Share of the pairs of which both halves chose each column."""
        return self.chosen.all(axis=1).mean(axis=0)

    @property
    def selected(self):
        """Numbers of the columns that are kept."""
        return np.flatnonzero(self.frequencies >= self.threshold)

    @property
    def n_chosen(self):
        """Mean number q of columns that a half chose."""
        return float(self.chosen.sum(axis=2).mean())

    @property
    def expected_false(self):
        """Bound q²/((2π − 1)p) of the expected number of columns kept in error; no more than there are columns."""
        p = self.chosen.shape[2]
        return min(self.n_chosen**2 / ((2 * self.threshold - 1) * p), float(p))

    def at(self, threshold):
        """Give the same choices under another threshold."""
        return StabilitySelection(self.chosen, checked_threshold(threshold))


def stability_selection(
    estimator,
    X,
    y=None,
    *,
    threshold=0.6,
    n_resamples=100,
    n_features=None,
    sample_weight=None,
    random_state=None,
    n_jobs=None,
    verbose=0,
):
    """Keep the columns that an estimator chooses from most random halves of the rows.

    Parameters
    ----------
    estimator : Anything fitted with `coef_` or `feature_importances_`, or that chooses columns itself (`get_support`), ours or
        scikit-learn's, or a pipeline that ends in one. What a step of it leaves out is not chosen; where a step makes other
        columns, those count. Scale columns before a penalty, or it chooses by units.
    threshold : Share of the halves, above 1/2 and at most 1, from which on a column is kept.
    n_resamples : Halves to fit to, an even number: they come in pairs.
    n_features : How many columns a half chooses, those with the largest coefficients or importances that are not zero. Default:
        all whose coefficient is not zero, as the lasso leaves some.
    sample_weight : Weights of rows in the fits.
    random_state : Seed of the halves, and of the fits.
    n_jobs, verbose : As in `cross_validate`.

    Returns
    -------
    StabilitySelection : frequencies, selected, n_chosen, expected_false, and `at` for another threshold.

    Examples
    --------
    >>> from lemmata.linear_model import Lasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 40))
    >>> y = 2 * X[:, 3] - 2 * X[:, 17] + rng.normal(size=100)
    >>> found = stability_selection(Lasso(alpha=0.05), X, y, threshold=0.9, n_features=5, random_state=0)
    >>> found.selected.tolist(), found.expected_false
    ([3, 17], 0.78)
    """
    if not isinstance(n_resamples, Integral) or n_resamples < 2 or n_resamples % 2:
        raise ValueError(f"n_resamples must be an even number of at least 2, as halves come in pairs; got {n_resamples!r}.")
    if n_features is not None and (not isinstance(n_features, Integral) or n_features < 1):
        raise ValueError(f"n_features must be a whole number of at least 1, got {n_features!r}.")
    threshold, data = checked_threshold(threshold), Data.of(X, y, sample_weight)
    rows = np.arange(count_rows(data.X))
    present = rows if data.weight is None else rows[data.weight > 0]
    if len(present) < 4:  # two in each half
        raise ValueError(f"Stability selection needs at least 4 rows to halve, got {len(present)}.")
    work, rngs = partial(_pair, clone(estimator), data, present, n_features), spawn(generator(random_state), n_resamples // 2)
    found = fit_all(work, rngs, ours=isinstance(estimator, Estimator), n_jobs=n_jobs, verbose=verbose, name="pairs of halves")
    return StabilitySelection(np.array(found), threshold)


def checked_threshold(threshold):
    """Return a threshold that the bound allows.

    Examples
    --------
    >>> checked_threshold(0.6)
    0.6
    """
    if not isinstance(threshold, Real) or not 0.5 < threshold <= 1:
        raise ValueError(f"threshold must be above 1/2 and at most 1, as the bound needs; got {threshold!r}.")
    return float(threshold)


def _pair(estimator, data, rows, n_features, rng):
    """Cut the rows in half and tell for both halves which columns they choose; of an odd number, one row is left out."""
    drawn, half = rng.permutation(rows), len(rows) // 2
    parts = np.sort(drawn[:half]), np.sort(drawn[half : 2 * half])
    return [chosen_columns(fit_to(seeded(estimator, rng), data, part), n_features) for part in parts]


def chosen_columns(model, n_features=None):
    """Tell which columns a fitted model chose, of those that a pipeline was given, by its coefficients or importances.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> model = LinearRegression().fit([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [0.0, 3.0, 1.0])
    >>> chosen_columns(model).tolist(), chosen_columns(model, 1).tolist()
    ([True, True], [True, False])
    """
    core, steps = unwrapped(model)
    itself = hasattr(core, "get_support")
    if itself and n_features is not None:
        raise ValueError(f"{type(core).__name__} says itself how many columns it chooses: leave n_features out.")
    chosen = core.get_support() if itself else _largest(core, n_features)
    for i, step in reversed(list(enumerate(steps))):
        if hasattr(step, "get_support"):
            kept = step.get_support()
            chosen, inner = np.zeros(len(kept), dtype=bool), chosen
            chosen[kept] = inner
        elif getattr(step, "n_features_in_", len(chosen)) != len(chosen):  # the columns are new from here on
            before = next((earlier for earlier in steps[:i] if hasattr(earlier, "get_support")), None)
            if before is not None:
                raise ValueError(
                    f"{type(before).__name__} chooses columns of which {type(step).__name__} makes others, so that halves "
                    "cannot be compared: let the choice come after it."
                )
            break
    return chosen


def _largest(core, n_features):
    """Tell which columns have a coefficient or an importance, and are among the largest if only some are wanted."""
    sizes = getattr(core, "coef_", None)
    sizes = getattr(core, "feature_importances_", None) if sizes is None else sizes
    if sizes is None:
        name = type(core).__name__
        raise ValueError(f"{name} has neither coef_ nor feature_importances_ nor get_support, so it chooses no columns.")
    sizes = np.abs(sizes.toarray() if hasattr(sizes, "toarray") else np.asarray(sizes, dtype=float))
    sizes = sizes.max(axis=0) if sizes.ndim == 2 else sizes  # of a class each: chosen if for any
    chosen = sizes > 0
    if n_features is not None and chosen.sum() > n_features:
        chosen[np.argsort(-sizes, kind="stable")[n_features:]] = False
    return chosen
