"""Bounds for trees by the length of their description: a tree that can be told in few words cannot have fitted much by chance.

A prefix code was fixed before the sample: a bit for each node tells leaf or split, a split names its column and a threshold
from a list of 2ᵇ, a leaf its class. The thresholds must not come from the sample. scikit-learn's trees compare rows in single
precision, so every threshold is equivalent to one of the 2³² numbers of that kind, and ours in double precision; a coarser list
is better if all thresholds are on it.
"""

from collections.abc import Iterator

import numpy as np

from lemmata.core.estimator import Estimator
from lemmata.theory.bounds.occam import occam_bound, tree_code_length
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.class_size import HOLES, REGIONS, SETS
from lemmata.theory.guarantees.sample import Sample, missing_values

OCCAM = "description length"
SINGLE, DOUBLE = 32, 64  # bits of a number
TREES = ("DecisionTreeClassifier", "ExtraTreeClassifier")


def tree_bounds(sample: Sample, thresholds) -> Iterator[Bound | Missing]:
    """Bound the risk of a tree by its errors and the length of its description."""
    structure = sample.structure
    if structure.name not in TREES:
        return
    if structure.learned:
        yield Missing(
            OCCAM, "a step before the tree was fitted to the same rows, so its thresholds are no numbers fixed before"
        )
        return
    tree, d, k = structure.core.tree_, sample.columns, len(sample.classes)
    if k < 2 or not structure.one_cut:
        yield Missing(OCCAM, REGIONS if k > 1 else "the model knows a single class")
        return
    if getattr(structure.core, "is_categorical_", None) is not None:
        yield Missing(OCCAM, SETS)
        return
    if missing_values(sample):
        yield Missing(OCCAM, HOLES, settled=False)
        return
    used = np.unique(tree.threshold[tree.children_left >= 0])
    ours = isinstance(structure.core, Estimator)
    bits, listed = DOUBLE if ours else SINGLE, f"thresholds are numbers in {'double' if ours else 'single'} precision"
    if thresholds is not None:
        thresholds = np.unique(np.asarray(thresholds, dtype=float))
        strange = np.setdiff1d(used, thresholds)
        if len(strange):
            yield Missing(OCCAM, f"the threshold {strange[0]:g} of the tree is not on the list of thresholds", settled=False)
            return
        bits, listed = np.log2(len(thresholds)), f"the list of {len(thresholds)} thresholds was fixed before the sample"
    leaves = int(tree.n_leaves)
    nats = tree_code_length(leaves, d, bits, k)
    yield sample.bound(
        OCCAM,
        lambda delta: occam_bound(sample.errors, sample.n, nats, delta),
        listed,
        "no row has missing values",
        reference=f"Occam's razor, Blumer et al. (1987): {nats / np.log(2):.0f} bits for {leaves} leaves",
    )
