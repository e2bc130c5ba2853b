"""The fit of a forest: rank the table once, then give every tree its bag and grow it, trees on threads.

Nothing in a tree depends on another one or on who grows it, so the forest is the same for any number of threads.
"""

import threading
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core import config
from lemmata.core.threads import is_interrupt, run
from lemmata.ensemble.bag import bag_counts, distinct_copies, is_whole
from lemmata.ensemble.forest_quantiles import LeafRows
from lemmata.ensemble.forest_trees import AnyKind, TwoClasses
from lemmata.ensemble.growth_scan import SQUARES, Rule
from lemmata.ensemble.ranks import learn_ranks
from lemmata.tree.base import ROUNDING, n_drawn
from lemmata.tree.nodes import Trees
from lemmata.tree.scan_classes import ENTROPY, GINI

LIMIT = 32  # rows up to which a node sorts fine ranks instead of counting coarse ones, for each two classes
LARGEST = np.iinfo(np.int64).max
CRITERIA = {"gini": GINI, "entropy": ENTROPY, "log_loss": ENTROPY, "squared_error": SQUARES}


@dataclass(frozen=True)
class Sample:
    """What a forest is fitted to.

    Attributes
    ----------
    X : (n, d) numbers; codes in categorical columns.
    y : Numbers of classes, or targets.
    n_classes : 0 for a numerical target.
    odds : Weights by which bags draw rows; without bags, the weights of the rows. None for equal ones.
    copies : How many rows each row stands for, its whole weight; None for one each.
    n_draws : Rows of a bag; 0 without bags.
    categories : How many each column has, 0 in numerical ones.
    balanced : Whether each bag weighs its classes equally.
    """

    X: np.ndarray
    y: np.ndarray
    n_classes: int
    odds: np.ndarray | None
    copies: np.ndarray | None
    n_draws: int
    categories: np.ndarray
    balanced: bool

    def bag(self, seed):
        """Return how often a tree has each row, how many rows it counts as, and its weight (None if that is the first).

        A row that was drawn three times weighs three, and is one row: what limits on rows count.
        """
        n = len(self.y)
        if self.n_draws:
            counts = bag_counts(seed, self.n_draws, n, self.odds)
            single = self.copies is None
            rows = (counts > 0).astype(np.int64) if single else distinct_copies(seed, self.n_draws, self.odds, self.copies)
        else:
            whole = self.odds is not None and is_whole(self.odds)
            counts = self.odds.astype(np.int64) if whole else np.ones(n, dtype=np.int64)
            rows = np.ones(n, dtype=np.int64) if self.copies is None else self.copies
        if self.balanced:
            totals = np.bincount(self.y, counts, self.n_classes)
            present = np.maximum(totals, 1)  # a class without rows in the bag has no use for a factor
            return counts, rows, counts * (totals.sum() / ((totals > 0).sum() * present))[self.y]
        return counts, rows, None if self.n_draws or is_whole(self.odds) else self.odds

    @property
    def n_rows(self):
        """Number of rows, each as often as its whole weight says."""
        return len(self.y) if self.copies is None else int(self.copies.sum())


def rule_of(forest, sample):
    """Read the parameters of a forest that say when and how to split; one that makes no sense is an error."""
    criterion = forest.criterion
    allowed = ["squared_error"] if sample.n_classes == 0 else ["gini", "entropy", "log_loss"]
    if criterion not in allowed:
        raise ValueError(f"criterion must be one of {allowed}, got {criterion!r}.")
    least = forest.min_impurity_decrease
    if not isinstance(least, Real) or not least >= 0:
        raise ValueError(f"min_impurity_decrease must be a number of at least 0, got {least!r}.")
    share = forest.min_weight_fraction_leaf
    if not isinstance(share, Real) or not 0 <= share <= 0.5:
        raise ValueError(f"min_weight_fraction_leaf must be a share from 0 to 0.5, got {share!r}.")
    return Rule(
        criterion=CRITERIA[criterion],
        n_drawn=columns_drawn(forest.max_features, sample.X.shape[1]),
        limit=max(LIMIT, LIMIT // 2 * sample.n_classes),
        max_depth=_bound("max_depth", forest.max_depth, 1) or LARGEST,
        min_split=_rows("min_samples_split", forest.min_samples_split, 2, sample.n_rows),
        min_leaf=_rows("min_samples_leaf", forest.min_samples_leaf, 1, sample.n_rows),
        lightest=float(share) * (1 - ROUNDING),
        least_gain=float(least),
        max_leaves=_bound("max_leaf_nodes", forest.max_leaf_nodes, 2) or 0,
    )


def columns_drawn(max_features, d):
    """Return how many columns a node draws.

    Examples
    --------
    >>> columns_drawn("sqrt", 30), columns_drawn(0.5, 30), columns_drawn(None, 30)
    (5, 15, 30)
    """
    number = isinstance(max_features, Real) and not isinstance(max_features, bool)
    if number and (max_features >= 1 if isinstance(max_features, Integral) else 0 < max_features <= 1):
        return int(n_drawn(max_features, d))
    if max_features is None or (isinstance(max_features, str) and max_features in ("sqrt", "log2")):
        return n_drawn(max_features, d)
    raise ValueError(
        f'max_features must be "sqrt", "log2", a whole number of columns, a share of (0, 1], or None, got {max_features!r}.'
    )


def _bound(name, value, least):
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be None or a whole number of at least {least}, got {value!r}.")
    return int(value)


def _rows(name, value, least, n):
    if isinstance(value, Integral) and not isinstance(value, bool) and value >= least:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0 < value <= 1:
        return max(int(np.ceil(value * n)), least)
    raise ValueError(f"{name} must be a whole number of at least {least} or a share of (0, 1], got {value!r}.")


def grow_forest(sample, seeds, rule, *, verbose=0):
    """Grow one tree for each seed.

    Returns
    -------
    trees : `Trees`, fewer than seeds if Ctrl-C came between.
    leaf_rows : `LeafRows` for numbers, None for classes.
    """
    ranks = learn_ranks(sample.X, sample.odds, sample.categories > 0)
    fast = (
        sample.n_classes == 2
        and rule.criterion == GINI
        and rule.max_leaves == 0
        and not ranks.has_missing
        and not sample.categories.any()
        and not sample.balanced
        and (sample.n_draws or is_whole(sample.odds))
    )
    grower = TwoClasses(sample, ranks, rule) if fast else AnyKind(sample, ranks, rule)
    grown = [None] * len(seeds)
    gate = threading.Lock()
    with _bar(len(seeds)) if verbose else nullcontext() as bar:

        def work(t):
            grown[t] = grower.tree(int(seeds[t]))
            if bar is not None:
                with gate:
                    bar.update()

        try:
            run(work, range(len(seeds)), min(config.n_threads(), len(seeds)))
        except (KeyboardInterrupt, SystemError) as error:
            done = next((t for t, tree in enumerate(grown) if tree is None), len(grown))
            if not is_interrupt(error) or done == 0:
                raise
            message = f"The forest was interrupted after {done} of {len(seeds)} trees: these are kept."
            warnings.warn(message, ConvergenceWarning, stacklevel=3)
            grown = grown[:done]
    trees = Trees.of([tree for tree, _ in grown])
    return trees, None if sample.n_classes else LeafRows.of([parts for _, parts in grown], sample.y)


def _bar(total):
    from tqdm import tqdm

    return tqdm(total=total, desc="trees")
