"""What both forests share: the fit, the trees as estimators, predictions by blocks, importances, the certificate."""

import warnings

import numpy as np
from sklearn.utils.validation import check_is_fitted

from lemmata.core.config import jobs, whole
from lemmata.core.estimator import Estimator, as_output
from lemmata.ensemble.bag import bag_counts, bag_size, draw_seeds, is_whole
from lemmata.ensemble.forest_certificate import forest_certificate
from lemmata.ensemble.forest_fit import Sample, columns_drawn, grow_forest, rule_of
from lemmata.ensemble.out_of_bag import out_of_bag
from lemmata.ensemble.ranks import FINE
from lemmata.tree.base import dense, value_block
from lemmata.tree.columns import CategoricalColumns

LIMITS = (
    "max_depth",
    "min_samples_split",
    "min_samples_leaf",
    "min_weight_fraction_leaf",
    "max_leaf_nodes",
    "min_impurity_decrease",
)


class Forest(CategoricalColumns, Estimator):
    """What both forests share: the fit, the trees as estimators, importances, the certificate."""

    def _sample(self, X, y, weight):
        """Describe what to fit to."""
        categories = np.array([0 if c is None else len(c) for c in self.categories_], dtype=np.int64)
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError("max_samples is the size of a bag, and bootstrap=False makes no bags: leave it None.")
        if categories.max() > FINE:
            raise ValueError(
                f"Column {categories.argmax()} has {categories.max():,} categories, and at most {FINE:,} are possible; put "
                "rare ones together, or take the column as a number."
            )
        draws = bag_size(self.max_samples, len(y), weight) if self.bootstrap else 0
        odds, balanced = self._odds(y, weight)
        copies = weight.astype(np.int64) if weight is not None and is_whole(weight) else None
        return Sample(np.ascontiguousarray(dense(X)), y, self._n_classes(), odds, copies, draws, categories, balanced)

    def _fit(self, X, y, sample_weight):
        asked = self.oob_score
        if not (isinstance(asked, bool) or asked == "auto" or callable(asked)):
            raise ValueError(f'oob_score must be "auto", True, False or a function of (y, prediction), got {asked!r}.')
        if not self.bootstrap and asked not in (False, "auto"):
            raise ValueError("oob_score needs rows out of bags, and bootstrap=False makes no bags: leave one of them out.")
        n_trees = whole("n_estimators", self.n_estimators)
        if n_trees is None:
            raise ValueError("n_estimators must be a whole number of at least 1, got None.")
        X, y, weight = self._rows(X, y, sample_weight, reset=True)
        sample = self._sample(X, y, weight)
        rule = rule_of(self, sample)
        self.seeds_ = draw_seeds(self.random_state, n_trees)
        with jobs(self.n_jobs):
            self.trees_, self._leaf_rows = grow_forest(sample, self.seeds_, rule, verbose=self.verbose)
        self.seeds_ = self.seeds_[: len(self.trees_)]  # fewer after Ctrl-C
        self._n_samples, self._n_samples_bootstrap, self._sample_weight = len(y), sample.n_draws or None, sample.odds
        for name in ("oob_score_", "oob_decision_function_", "oob_prediction_", "oob_residuals_"):
            vars(self).pop(name, None)
        if self.bootstrap and asked is not False:
            with jobs(self.n_jobs):
                self._keep_out_of_bag(out_of_bag(sample, self.trees_, self.seeds_), y)
        return self

    def _warn(self, unseen):
        """Say how many rows no tree has left out."""
        if self.oob_score is True and not unseen.all():
            warnings.warn(
                f"{int((~unseen).sum())} of {len(unseen)} rows are in the bags of all {len(self.trees_)} trees and have no "
                "out-of-bag prediction (NaN): grow more trees.",
                stacklevel=4,
            )

    def _totals(self, X):
        """Sum the trees' values for each row; return also the precision of the rows."""
        check_is_fitted(self)
        blocks = self._blocks(self._encoded(X, reset=False), reset=False)
        with jobs(self.n_jobs):
            return blocks.map(value_block, self.trees_.descent()), blocks.dtype

    def apply(self, X):
        """Find the leaf of each row in each tree: (n_rows, n_estimators)."""
        check_is_fitted(self)
        return self._blocks(self._encoded(X, reset=False), reset=False).map(_leaves_block, self.trees_.descent())

    @property
    def estimators_(self):
        """The trees as estimators of their own, which are views made when asked for."""
        if not hasattr(self, "trees_"):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet, so it has no estimators_.")
        return [self._member(tree) for tree in self.trees_]

    def _member(self, tree):
        member = self.estimator_
        member.tree_, member.n_features_in_, member._categories = tree, self.n_features_in_, self._categories
        if hasattr(self, "feature_names_in_"):
            member.feature_names_in_ = self.feature_names_in_
        member.max_features_ = columns_drawn(self.max_features, self.n_features_in_)
        return member

    @property
    def estimator_(self):
        """A tree with the parameters of the forest's."""
        names = (*LIMITS, "criterion", "max_features", "categorical_features")
        return self._member_class(**{name: getattr(self, name) for name in names})

    @property
    def estimators_samples_(self):
        """Rows of each tree's bag, copies repeated, drawn again from the seeds."""
        rows = np.arange(self._n_samples)
        if not self.bootstrap:
            return [rows] * len(self.seeds_)
        return [np.repeat(rows, self._counts(seed)) for seed in self.seeds_]

    def _counts(self, seed):
        """Draw a bag again: how often it has each row."""
        return bag_counts(seed, self._n_samples_bootstrap, self._n_samples, self._sample_weight)

    @property
    def feature_importances_(self):
        """Share of each column in the decrease of impurity, a mean over the trees; it favors columns of many values."""
        mean = np.mean([tree.importances(self.n_features_in_) for tree in self.trees_], axis=0)
        return mean / mean.sum() if mean.sum() > 0 else mean

    def certify(self, X, y=None, sample_weight=None):
        """Draw the bags again, recompute every number of every tree, and look for better splits.

        All nodes of all trees are searched for better splits while that is a matter of seconds, else those of a few trees that
        a fixed seed chooses; the claim says how many.
        """
        check_is_fitted(self)
        X, y, weight = self._rows(X, y, sample_weight, reset=False)
        sample = self._sample(X, y, weight)
        return forest_certificate(self, sample, rule_of(self, sample))


def spread(forest, X):
    """Return the standard deviation over trees of what they say of each row."""
    check_is_fitted(forest)
    blocks = forest._blocks(forest._encoded(X, reset=False), reset=False)
    return as_output(blocks.map(_spread_block, forest.trees_.descent()), blocks.dtype)


def _leaves_block(X, weight, descent):
    return descent.leaves(dense(X))


def _spread_block(X, weight, descent):
    trees = descent.trees
    said = trees.nodes.value[trees.roots[:-1] + descent.leaves(dense(X))]  # (rows, trees, K)
    return said.std(axis=1)
