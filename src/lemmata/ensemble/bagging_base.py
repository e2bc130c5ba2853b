"""What bagging of classifiers and of regressors share: bags, columns, members, out-of-bag means, the certificate."""

import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from lemmata.core import config
from lemmata.core.certificate import Certificate, Check
from lemmata.core.estimator import Estimator
from lemmata.core.fits import fit_all
from lemmata.ensemble.bag import bag_counts, bag_size, draw_seeds
from lemmata.tree.draw import mix, shuffle, uniform

COLUMNS = np.uint64(3)  # which hash of a seed draws columns; 0 draws rows, 1 and 2 belong to the nodes of trees
AGAIN = np.uint64(4)  # the seed that follows one whose bag holds a single class
SAME_LIMIT = 1e-6  # of predictions of members that are fitted again


class Bagging(Estimator):
    """What both kinds share."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        member = get_tags(self._base()).input_tags
        tags.input_tags.allow_nan, tags.input_tags.sparse = member.allow_nan, member.sparse
        tags.input_tags.string, tags.input_tags.categorical = member.string, member.categorical
        return tags

    def _base(self):
        return self._default() if self.estimator is None else self.estimator

    def _settings(self, n, weight):
        """Read the parameters that say what a bag is: (rows to draw, or None for all; number of columns)."""
        d = self.n_features_in_
        k = self.max_features
        if isinstance(k, Integral) and not isinstance(k, bool) and 1 <= k <= d:
            k = int(k)
        elif isinstance(k, Real) and not isinstance(k, Integral) and 0 < k <= 1:
            k = max(1, int(k * d))
        else:
            raise ValueError(
                f"max_features must be a number of the {d} columns or a share of (0, 1], got {self.max_features!r}."
            )
        if self.bootstrap:
            return bag_size(self.max_samples, n, weight), k
        draws = bag_size(self.max_samples, n, None)
        if draws > n:
            raise ValueError(f"max_samples={self.max_samples!r} is more than the {n} rows; draw fewer or with bootstrap=True.")
        return None if draws == n else draws, k

    def _counts(self, seed):
        """Draw the bag of a seed: how often it has each row."""
        n, draws = self._n_samples, self._max_samples
        if self.bootstrap:
            return bag_counts(seed, draws, n, self._sample_weight)
        if draws is None:
            return np.ones(n, dtype=np.int64)
        order = np.arange(n)
        shuffle(np.uint64(mix(np.uint64(seed), np.uint64(0))), order)
        counts = np.zeros(n, dtype=np.int64)
        counts[order[:draws]] = 1
        return counts

    def _columns(self, seed):
        """Draw the columns of a seed."""
        d, k, key = self.n_features_in_, self._max_features, np.uint64(mix(np.uint64(seed), COLUMNS))
        if self.bootstrap_features:
            return np.array([int(uniform(np.uint64(mix(key, np.uint64(i)))) * d) for i in range(k)])
        order = np.arange(d)
        if k < d:
            shuffle(key, order)
        return np.sort(order[:k])

    def _drawn(self, seed, X, y, weight):
        """Give the rows of a bag as a member gets them: X, y, weights or None."""
        counts, columns = self._counts(seed), self._columns(seed)
        carried = None if weight is None or self.bootstrap else weight
        if _is_ours(self.estimator_) and has_fit_parameter(self.estimator_, "sample_weight"):
            rows = np.flatnonzero(counts)
            own = counts[rows].astype(float) if carried is None else counts[rows] * carried[rows]
            own = None if (own == 1).all() else own
        else:
            rows = np.repeat(np.arange(len(y)), counts)
            own = None if carried is None else carried[rows]
        return self._part(X, rows, columns), y[rows], own

    def _part(self, X, rows, columns):
        """Take rows and columns of a table; a frame stays one. All rows if None."""
        if is_mixed(X):
            X = X if rows is None else _safe_indexing(X, rows)
            return X if len(columns) == X.shape[1] else _safe_indexing(X, columns, axis=1)
        X = X if rows is None else X[rows]
        return X if len(columns) == X.shape[1] and not self.bootstrap_features else X[:, columns]

    def _validated(self, validate, X, *rest):
        """Validate X, y and weights by a function of them that returns blocks; of columns with text only their names are."""
        if not is_mixed(X):
            return validate(X, *rest).whole()
        if self.bootstrap_features:
            raise ValueError(
                "bootstrap_features draws columns several times, and columns with text can be had once: set it False."
            )
        numbers, *others = validate(row_numbers(X), *rest).whole()
        return _safe_indexing(X, np.asarray(numbers)[:, 0].astype(np.int64)), *others

    def _fit(self, X, y, sample_weight):
        asked = self.oob_score
        if not (isinstance(asked, bool) or asked == "auto" or callable(asked)):
            raise ValueError(f'oob_score must be "auto", True, False or a function of (y, prediction), got {asked!r}.')
        if not self.bootstrap and asked not in (False, "auto"):
            raise ValueError("oob_score needs rows out of bags, and bootstrap=False makes no bags: leave one of them out.")
        n_members = config.whole("n_estimators", self.n_estimators)
        if n_members is None:
            raise ValueError("n_estimators must be a whole number of at least 1, got None.")
        X, y, weight = self._rows(X, y, sample_weight, reset=True)
        self.estimator_ = clone(self._base())
        if weight is not None and not self.bootstrap and not has_fit_parameter(self.estimator_, "sample_weight"):
            name = type(self.estimator_).__name__
            raise ValueError(f"{name} takes no weights of rows: with bootstrap=True they are odds of being drawn instead.")
        self._n_samples, self._sample_weight = len(y), weight
        self._max_samples, self._max_features = self._settings(len(y), weight)
        seeds = draw_seeds(self.random_state, n_members)
        self.seeds_ = np.array([self._usable(int(seed), y) for seed in seeds])
        self._redrawn = int((self.seeds_ != seeds).sum())
        self._members = self._fitted(X, y, weight)
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_"):
            vars(self).pop(name, None)
        if asked is not False and (self.bootstrap or self._max_samples is not None):
            self._keep_out_of_bag(X, y)
        return self

    def _fitted(self, X, y, weight):
        """Fit the members: ours on threads, others one after the other, for we do not know whether they may meet."""
        with config.jobs(self.n_jobs):
            ours = _is_ours(self.estimator_)
            member = partial(self._member, X=X, y=y, weight=weight)
            return fit_all(member, self.seeds_.tolist(), ours=ours, verbose=self.verbose, name="members")

    def _member(self, seed, X, y, weight):
        member = clone(self.estimator_)
        chance = {name: seed % 2**31 for name in member.get_params() if name.split("__")[-1] == "random_state"}
        if chance:
            member.set_params(**chance)
        part, target, own = self._drawn(seed, X, y, weight)
        return member.fit(part, target) if own is None else member.fit(part, target, sample_weight=own)

    @property
    def estimators_(self):
        """The fitted members."""
        if not hasattr(self, "_members"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet, so it has no estimators_.")
        return self._members

    @property
    def estimators_samples_(self):
        """Rows of each member's bag, copies repeated, drawn again from the seeds."""
        return [np.repeat(np.arange(self._n_samples), self._counts(int(seed))) for seed in self.seeds_]

    @property
    def estimators_features_(self):
        """Columns of each member, drawn again from the seeds."""
        return [self._columns(int(seed)) for seed in self.seeds_]

    def _mean(self, X):
        check_is_fitted(self)
        mixed = is_mixed(X)
        blocks = self._blocks(row_numbers(X) if mixed else X, reset=False)
        with config.jobs(self.n_jobs):
            return _mean_block(X, None, self) if mixed else blocks.map(_mean_block, self), blocks.dtype

    def _unseen_means(self, X):
        """Average over the members that have not seen a row; NaN if all have."""
        total = votes = 0.0
        for member, seed, columns in zip(self._members, self.seeds_, self.estimators_features_, strict=True):
            unseen = np.flatnonzero(self._counts(int(seed)) == 0)
            said = np.zeros((self._n_samples, self._width()))
            if len(unseen):
                said[unseen] = self._said(member, self._part(X, unseen, columns))
            total = total + said
            votes = votes + np.isin(np.arange(self._n_samples), unseen)
        return total / np.where(votes > 0, votes, np.nan)[:, None]

    def _warn(self, unseen):
        """Say how many rows no member has left out."""
        if self.oob_score is True and not unseen.all():
            warnings.warn(
                f"{int((~unseen).sum())} of {len(unseen)} rows are in the bags of all {len(self._members)} members and have no "
                "out-of-bag prediction (NaN): fit more members.",
                stacklevel=5,
            )

    def certify(self, X, y=None, sample_weight=None):
        """Draw the bags again and certify each member on its own, or fit it again; recompute the out-of-bag predictions."""
        check_is_fitted(self)
        X, y, weight = self._rows(X, y, sample_weight, reset=False)
        name = type(self).__name__
        if len(y) != self._n_samples or len(self.seeds_) != len(self._members):
            return Certificate(Check("rows", 1.0, 0.0, "proof", "these are the rows of the fit"), subject=name)
        ours, worst, kind = _is_ours(self.estimator_), 0.0, "proof"
        for member, seed in zip(self._members, self.seeds_, strict=True):
            part, target, own = self._drawn(int(seed), X, y, weight)
            if ours:
                certificate = member.certify(part, target) if own is None else member.certify(part, target, own)
                worst = max(worst, float(not certificate.holds))
                kind = certificate.kind if certificate.kind != "proof" else kind
                continue
            kind = "local"
            again = self._said(self._member(int(seed), X, y, weight), part)
            worst = max(worst, float(np.abs(self._said(member, part) - again).max() / max(np.abs(again).max(), 1e-300)))
        usable = all(self._usable(int(seed), y) == seed for seed in self.seeds_)
        claim = "every member is certified on its bag" if ours else "every member, fitted again to its bag, predicts the same"
        checks = [
            Check("members", worst, 0.0 if ours else SAME_LIMIT, kind, claim),
            Check("bags", float(not usable), 0.0, "proof", "every bag can be drawn from its seed"),
        ]
        return Certificate(*checks, *self._out_of_bag_checks(X, y), subject=name)


def is_mixed(X):
    """Tell whether a table has columns of text or categories, which members get as they are.

    Examples
    --------
    >>> is_mixed(np.array([["a", 1.0]], dtype=object)), is_mixed(np.ones((1, 2)))
    (True, False)
    """
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.dtype.kind in "OU" and any(isinstance(v, str) for v in X.flat)
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return False
    return any(dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) for dtype in frame.schema.values())


def row_numbers(X):
    """Make a table of the same shape, and names if there are any, that has the numbers of rows in all columns."""
    rows = np.arange(len(X), dtype=float)
    if isinstance(X, np.ndarray):
        return np.tile(rows[:, None], X.shape[1])
    import narwhals as nw

    frame = nw.from_native(X, eager_only=True)
    return nw.from_dict(dict.fromkeys(frame.columns, rows), backend=frame.implementation).to_native()


def _is_ours(estimator):
    """Tell whether an estimator is one of lemmata's: weights mean repetition, and there is a certificate."""
    return isinstance(estimator, Estimator)


def _mean_block(X, weight, ensemble):
    """Average what the members say of the rows of a block."""
    total = 0.0
    for member, columns in zip(ensemble._members, ensemble.estimators_features_, strict=True):
        total = total + ensemble._said(member, ensemble._part(X, None, columns))
    return total / len(ensemble._members)
