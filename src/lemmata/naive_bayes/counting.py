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
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import ArrayBlocks, add
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.data import is_sparse
from lemmata.core.estimator import Classifier, as_output
from lemmata.core.random import generator
from lemmata.naive_bayes.counts import below_largest, largest_places, row_sums

CLOSE = 1e-6  # logarithms further apart belong to probabilities that differ even in single precision
FULLER = 2  # numbers that a sparse block stores for each count
LEAST_BLOCKS = 8  # of a sparse table that threads can share

CONSTRAINTS = {
    "alpha": [Interval(Real, 0, None, closed="left"), "array-like"],
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
    """Logarithm of the joint probability of each row and class; of rows without their coefficient, if that is not given."""
    joint = likelihood_block(X, tables)
    joint += prior
    if coefficient_block is not None:
        joint += coefficient_block(X)[:, None]
    return joint


def normalize(joint, prior):
    """Turn logarithms of joint probabilities into probabilities of the classes, in place."""
    below_largest(joint, prior)
    np.exp(joint, out=joint)
    joint /= row_sums(joint)[:, None]
    return joint


def posterior_block(X, weight, likelihood_block, tables, prior):
    """Probability of each class for the rows of a block."""
    return normalize(joint_block(X, weight, likelihood_block, tables, prior), prior)


def log_posterior_block(X, weight, likelihood_block, tables, prior):
    """Logarithms of the probabilities; exact also where these round to 0."""
    joint = joint_block(X, weight, likelihood_block, tables, prior)
    below_largest(joint, prior)
    joint -= np.log(row_sums(np.exp(joint)))[:, None]
    return joint


def label_block(X, weight, likelihood_block, tables, prior, dtype):
    """Number of the most probable class; among those that come close, of the probabilities as they are given away."""
    joint = joint_block(X, weight, likelihood_block, tables, prior)
    labels, doubtful = largest_places(joint, CLOSE)
    if doubtful.any():
        labels[doubtful] = as_output(normalize(joint[doubtful], prior), dtype).argmax(axis=1)
    return labels


def marginal_block(X, weight, likelihood_block, tables, prior, coefficient_block):
    """Logarithm of the probability of each row."""
    joint = joint_block(X, weight, likelihood_block, tables, prior, coefficient_block)
    largest = below_largest(joint, prior)
    return largest + np.log(row_sums(np.exp(joint)))


def same_logs(stored, recomputed, name, claim):
    """Check logarithms against recomputed ones; −∞ must stand in the same places, and counts as equal there."""
    a, b = np.asarray(stored, dtype=float), np.asarray(recomputed, dtype=float)
    if a.shape != b.shape or not np.array_equal(np.isneginf(a), np.isneginf(b)):
        return Check(name, np.inf, SAME_LIMIT, "proof", claim)
    return same(np.where(np.isneginf(a), 0.0, a), np.where(np.isneginf(b), 0.0, b), name, claim)


def excess(logs):
    """By how much probabilities (rows) fail to sum to one, at most."""
    return float(np.abs(np.exp(np.asarray(logs, dtype=float)).sum(axis=-1) - 1.0).max())


class CountingNB(Classifier):
    """Base of naive Bayes models that count; a kind of model has the parameters of CONSTRAINTS, and these methods.

    Methods
    -------
    _tally(blocks) : Statistics of labeled blocks, that add: a tuple of which the first is the weight of each class.
    _kept() : The same statistics of what was learned before.
    _keep(statistics) : Set the fitted attributes but for the prior.
    _tables() : The fitted logarithms as `_likelihood_block` wants them.
    _likelihood_block(X, tables) : Logarithms (rows, classes) of p(x|c), up to what is the same for all classes.
    _draw(labels, rng, **options) : A row for each number of a class.
    _checks(statistics) : Checks of the fitted attributes but for the prior.
    """

    generative = True
    _coefficient_block = None  # the logarithm of a factor of p(x|c) that is the same for all classes

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Count rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator."""
        blocks = self._labeled(self._encoded(X, reset=True), y, sample_weight, reset=True, order="C")
        self._settle(self._tally(blocks))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Count more rows, as if they had been there from the beginning; the first call names all classes."""
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("The first call of partial_fit needs classes: all labels that will ever come.")
        first = not hasattr(self, "classes_")
        X = self._encoded(X, reset=first)
        if first:
            self._blocks(X, reset=True)
            self.classes_ = unique_labels(classes)
        elif classes is not None and not np.array_equal(self.classes_, unique_labels(classes)):
            raise ValueError(f"classes={list(classes)!r} are not those of the first call: {list(self.classes_)}.")
        statistics = self._tally(self._labeled(X, y, sample_weight, reset=False, order="C"))
        self._settle(statistics if first else add(self._kept(), statistics))
        return self

    def predict(self, X):
        """Give each row its most probable class; ties go to the first."""
        blocks = self._checked(X)
        return self.classes_[blocks.map(label_block, *self._law(), blocks.dtype)]

    def predict_proba(self, X):
        """Give the probability of each class, (n, K)."""
        blocks = self._checked(X)
        return as_output(blocks.map(posterior_block, *self._law()), blocks.dtype)

    def predict_log_proba(self, X):
        """Give the logarithm of the probability of each class, (n, K)."""
        blocks = self._checked(X)
        return as_output(blocks.map(log_posterior_block, *self._law()), blocks.dtype)

    def predict_joint_log_proba(self, X):
        """Give `joint_log_likelihood` up to what is the same for all classes: what Bayes' rule needs."""
        blocks = self._checked(X)
        return as_output(blocks.map(joint_block, *self._law()), blocks.dtype)

    def joint_log_likelihood(self, X):
        """Give log p(x, c) for each row and class, (n, K)."""
        blocks = self._checked(X)
        return as_output(blocks.map(joint_block, *self._law(), self._coefficient_block), blocks.dtype)

    def score_samples(self, X):
        """Give log p(x) for each row, summed over the classes."""
        blocks = self._checked(X)
        return as_output(blocks.map(marginal_block, *self._law(), self._coefficient_block), blocks.dtype)

    def sample(self, n_samples=1, random_state=None, **options):
        """Draw rows from the fitted law; return them and their classes."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng = generator(random_state)
        chances = np.exp(self.class_log_prior_)
        labels = rng.choice(len(chances), size=n_samples, p=chances / chances.sum())
        return self._draw(labels, rng, **options), self.classes_[labels]

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is the best: count again, smooth again, and compare."""
        check_is_fitted(self)
        statistics = self._tally(self._labeled(self._encoded(X, reset=False), y, sample_weight, reset=False, order="C"))
        prior = self._log_prior(statistics[0])
        return Certificate(
            same(self.class_count_, statistics[0], "class counts", "the weight of each class"),
            same_logs(self.class_log_prior_, prior, "prior", "the prior is that given, or the share of each class"),
            Check("prior sums to 1", excess(self.class_log_prior_), SAME_LIMIT, "proof", "the prior is a probability"),
            *self._checks(statistics),
            subject=repr(self),
        )

    def _settle(self, statistics):
        self._keep(statistics)
        self.class_count_ = statistics[0]
        self.class_log_prior_ = self._log_prior(statistics[0])

    def _log_prior(self, class_count):
        """Logarithms of the prior: given, uniform, or the share of each class."""
        k = len(self.classes_)
        if self.class_prior is not None:
            prior = np.asarray(self.class_prior, dtype=float)
            # 1e-6: what a prior may lack that was written down in a few digits and added up in single precision
            if prior.shape != (k,) or not (prior >= 0).all() or not abs(prior.sum() - 1.0) < 1e-6:
                raise ValueError(
                    f"class_prior must hold {k} numbers, one for each class, that are at least 0 and sum to 1; "
                    f"got {self.class_prior!r}."
                )
            return logarithms(prior / prior.sum())
        return logarithms(class_count / class_count.sum()) if self.fit_prior else np.full(k, -np.log(k))

    def _pseudo_counts(self):
        """Imaginary observations, as one number for each column."""
        alpha, d = np.asarray(self.alpha, dtype=float), self.n_features_in_
        if alpha.shape not in ((), (d,)) or not ((alpha >= 0) & (alpha < np.inf)).all():
            raise ValueError(
                f"alpha must be a number, or {d} of them, one for each column, all at least 0; got {self.alpha!r}."
            )
        return np.broadcast_to(alpha, d)

    def _law(self):
        return self._likelihood_block, self._tables(), np.asarray(self.class_log_prior_, dtype=float)

    def _checked(self, X):
        check_is_fitted(self)
        return self._blocks(self._encoded(X, reset=False), reset=False, order="C")

    def _encoded(self, X, *, reset):
        """Give the table with numbers in place of names, where a model takes names."""
        return X

    def __sklearn_tags__(self):
        """Entries may be missing, and have no unit."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.categorical = True
        tags.classifier_tags.poor_score = True  # on tables of measurements, which are not what these models count
        return tags
