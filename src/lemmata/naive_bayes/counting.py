"""Naive Bayes on counts and categories: what its three models share.

Within a class the columns are independent, so that a row with class c has

    log p(x, c) = log πc + Σⱼ log pⱼ(xⱼ|c),

and Bayes' rule turns one of these sums for each class into probabilities. All there is to learn is a table of weighted counts,
collected in one pass and smoothed by α imaginary observations of each outcome, (count + α) / (total + Σα): the mean of the
posterior under a Dirichlet(α) prior, and the one maximum of log-likelihood + Σ α log p, which is strictly concave for α > 0.
So a certificate only has to count again: parameters that equal the smoothed counts are proved to be the best.

α = 0 is maximum likelihood. It calls impossible what a class never showed (a logarithm of −∞), and where it says nothing, since
a class has nothing to count, its limit α → 0 is taken, which is uniform. A row that no class can have made gets the prior for
a posterior. A missing entry (NaN) is summed over: in a fit it is not counted, in a prediction its factor is 1.

Good, The Estimation of Probabilities (1965). Rennie, Shih, Teevan & Karger, ICML (2003).
"""

from numbers import Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import ArrayBlocks, add
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check
from lemmata.core.data import is_sparse
from lemmata.core.estimator import as_output
from lemmata.core.generative import GenerativeClassifier, class_shares, same_entries, same_logs

FULLER = 2  # numbers that a sparse block stores for each count
LEAST_ALPHA = 1e-10  # without `force_alpha`: scikit-learn's
LEAST_BLOCKS = 8  # of a sparse table that threads can share

CONSTRAINTS = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
    "force_alpha": ["boolean"],
    "fit_prior": ["boolean"],
    "class_prior": ["array-like", None],
}


def logarithms(p):
    """Take logarithms, of which that of 0 is −∞ and no reason to warn."""
    with np.errstate(divide="ignore"):
        return np.log(p)


def shares(counts, total):
    """Divide smoothed counts by their total; what has nothing to count is uniform."""
    has = total > 0
    return np.where(has, counts / np.where(has, total, 1.0), 1.0 / counts.shape[-1])


def split(logs):
    """Give logarithms with 0 for −∞, and a table that is 1 there and 0 elsewhere, or None if there is no −∞."""
    never = np.isneginf(logs)
    return (np.where(never, 0.0, logs), never.astype(float)) if never.any() else (logs, None)


def coarse(blocks, k):
    """Cut a sparse table in memory into blocks that store more than a table of counts does, which each of them has to make."""
    if not isinstance(blocks, ArrayBlocks) or not is_sparse(blocks.X):
        return blocks
    stored = blocks.X.nnz / blocks.n_rows
    enough = int(FULLER * k * blocks.n_columns / max(stored, 1.0)) + 1
    rows = max(min(enough, -(-blocks.n_rows // LEAST_BLOCKS)), blocks.block_rows)
    return blocks if rows == blocks.block_rows else ArrayBlocks(blocks.X, tuple(blocks.aligned), rows, blocks.columns)


def joint_block(X, weight, likelihood_block, tables, prior, coefficient_block=None):
    """Logarithm of the joint probability of each row and class, but for the coefficient of the row if that is not given."""
    joint = likelihood_block(X, tables)
    joint += prior
    if coefficient_block is not None:
        joint += coefficient_block(X)[:, None]
    return joint


def excess(logs):
    """By how much probabilities (rows) fail to sum to one, at most."""
    return float(np.abs(np.exp(np.asarray(logs, dtype=float)).sum(axis=-1) - 1.0).max())


class CountingNB(GenerativeClassifier):
    """Base of naive Bayes models that count; a kind of model has the parameters of CONSTRAINTS, and these methods.

    Methods
    -------
    _tally(blocks) : Statistics of labeled blocks, that add: a tuple of which the first is the weight of each class.
    _kept() : The same statistics of what was learned before.
    _keep(statistics) : Set the fitted attributes but for the prior.
    _tables() : The fitted logarithms as `_likelihood_block` wants them.
    _likelihood_block(X, tables) : Logarithms (rows, classes) of p(x|c), up to what is the same for all classes.
    _checks(statistics) : Checks of the fitted attributes but for the prior.
    """

    _coefficient_block = None  # the logarithm of a factor of p(x|c) that is the same for all classes

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Count rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator."""
        with self._all_or_nothing():
            self._settle(self._tally(self._rows_of_classes(X, y, sample_weight, reset=True)))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Count more rows, as if they had been there from the beginning; the first call names all classes."""
        with self._all_or_nothing():
            statistics = self._tally(self._more(X, y, classes, sample_weight))
            self._settle(add(self._kept(), statistics) if hasattr(self, "class_count_") else statistics)
        return self

    def predict_joint_log_proba(self, X):
        """Give `joint_log_likelihood` up to what is the same for all classes: what Bayes' rule needs."""
        blocks = self._checked(X)
        function, *params = self._scores()
        return as_output(blocks.map(function, *params), blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is the best: count again, smooth again, and compare."""
        check_is_fitted(self)
        statistics = self._tally(self._rows_of_classes(X, y, sample_weight, reset=False))
        prior = self._log_prior(statistics[0])
        return Certificate(
            same_entries(self.class_count_, statistics[0], "class counts", "the weight of each class"),
            same_logs(self.class_log_prior_, prior, "prior", "the prior is that given, or the share of each class"),
            Check("prior sums to 1", excess(self.class_log_prior_), SAME_LIMIT, "proof", "the prior is a probability"),
            *self._checks(statistics),
            subject=repr(self),
        )

    def _settle(self, statistics):
        self.class_log_prior_ = self._log_prior(statistics[0])
        self._keep(statistics)
        self.class_count_ = statistics[0]

    def _log_prior(self, class_count):
        """Logarithms of the prior: given, uniform, or the share of each class."""
        if self.class_prior is None and not self.fit_prior:
            return np.full(len(class_count), -np.log(len(class_count)))
        return logarithms(class_shares(self.class_prior, class_count, "class_prior"))

    def _pseudo_counts(self):
        """Imaginary observations, as one number for each column."""
        d = self.n_features_in_
        try:
            alpha = np.asarray(self.alpha, dtype=float)
        except (TypeError, ValueError):
            alpha = np.array(np.nan)
        if alpha.shape not in ((), (d,)) or not ((alpha >= 0) & (alpha < np.inf)).all():
            raise ValueError(
                f"alpha must be a number, or {d} of them, one for each column, all at least 0; got {self.alpha!r}."
            )
        return np.broadcast_to(self._forced(alpha), d)

    def _forced(self, alpha):
        return alpha if self.force_alpha else np.maximum(alpha, LEAST_ALPHA)

    def _scores(self):
        return joint_block, self._likelihood_block, self._tables(), self._log_priors()

    def _law(self):
        return *self._scores(), self._coefficient_block

    def _log_priors(self):
        return np.asarray(self.class_log_prior_, dtype=float)

    def _encoded(self, X, *, reset):
        """Give a sparse table with every entry in one place: a model that counts must not meet one in parts."""
        X = super()._encoded(X, reset=reset)
        if is_sparse(X) and X.format == "csr" and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return X

    def __sklearn_tags__(self):
        """Entries may be missing, and have no unit."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        tags.classifier_tags.poor_score = True  # on tables of measurements, which are not what these models count
        return tags
