"""Bounds for all functions of a class at once, by the number of ways in which it can label points.

The learner may have searched the whole class in any way; so settings that were tuned on the sample cost nothing as long as they
do not change the class. Degree of a polynomial, leaves of a tree and rounds of boosting do change it: class i then gets the
share 1/(i(i + 1)) of δ, which add up to one (structural risk minimization).
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from lemmata.theory.bounds.growth import (
    log_argmax_linear,
    log_boosted_stumps,
    log_polynomials,
    log_trees,
)
from lemmata.theory.bounds.uniform import hypergeometric_bound, vc_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.kernels import kernel_of
from lemmata.theory.guarantees.sample import MARGINAL, Sample, missing_values
from lemmata.theory.guarantees.structure import LINEAR

TAIL = "growth function"
CLASSICAL = "Vapnik-Chervonenkis"
HOLES = "rows have missing values, which a tree sends to either side"
SETS = "categorical columns are parted into sets, of which there are too many to count"
REGIONS = "costs, rejection or averaged probabilities make regions that are not those of the model inside"
UNBOUNDED = {"KNeighborsClassifier", "RadiusNeighborsClassifier", "GaussianProcessClassifier", "NuSVC"}


class Size(NamedTuple):
    """How many labelings a class has: ln of the growth function, and the share of δ of the class among its nest."""

    what: str
    log_growth: Callable[[int], float]
    share: float = 1.0


def size_of(sample: Sample) -> Size | str:
    """Count the labelings of the class that the model was chosen from; or say why that cannot be done."""
    structure, core, d, k = sample.structure, sample.structure.core, sample.columns, len(sample.classes)
    name, degree = structure.name, structure.degree
    if k < 2:
        return "the model knows a single class"
    if structure.thresholded and (k > 2 or not structure.one_cut):
        return REGIONS
    if getattr(core, "is_categorical_", None) is not None:
        return SETS
    if getattr(core, "generative", False) and missing_values(sample):
        return MARGINAL
    seen = kernel_of(core) if name == "SVC" else None
    linear = name in LINEAR or (seen is not None and seen.kind in ("linear", "poly"))
    if linear or name in ("GaussianNB", "QuadraticDiscriminantAnalysis"):
        if degree is None:
            return "a step before the model learns columns that are no polynomials of the raw ones"
        expanded = structure.expanded
        if seen is not None:
            if k > 2 and getattr(core, "break_ties", True):  # our own machine always breaks them so
                return "break_ties=True compares sums of scores besides the pairs of classes"
            if seen.kind == "poly":
                degree, expanded = degree * seen.degree, True
        degree = max(degree, 1)
        share = 1 / (degree * (degree + 1)) if expanded else 1.0
        if name == "GaussianNB" and degree == 1 and structure.increasing:
            return Size(f"{k} Gaussians with axes along {d} columns", lambda m: log_argmax_linear(m, 2 * d, k))
        degree *= 2 if name in ("GaussianNB", "QuadraticDiscriminantAnalysis") else 1
        if degree == 1:
            return Size(f"half-spaces in {d} columns", lambda m: log_argmax_linear(m, d, k), share)
        pairs = k * (k - 1) // 2
        return Size(f"polynomials of degree {degree} in {d} columns", lambda m: pairs * log_polynomials(m, d, degree), share)
    if name in ("DecisionTreeClassifier", "ExtraTreeClassifier"):
        if not structure.increasing:
            return "a step before the tree mixes columns or is not increasing"
        if missing_values(sample):
            return HOLES
        leaves = int(core.get_n_leaves())
        share = 1 / (leaves * (leaves + 1))
        return Size(
            f"trees with {leaves} leaves in {d} columns, none of them ever missing", lambda m: log_trees(m, d, leaves, k), share
        )
    stumps = stumps_of(core) if name in ("AdaBoostClassifier", "GradientBoostingClassifier") else 0
    if stumps and k == 2 and structure.increasing:
        if missing_values(sample):
            return HOLES
        share = 1 / (stumps * (stumps + 1))
        return Size(f"votes of {stumps} stumps in {d} columns", lambda m: log_boosted_stumps(m, d, stumps), share)
    if (
        (seen is not None and seen.kind == "rbf")
        or name in UNBOUNDED
        or "Forest" in name
        or "Bagging" in name
        or name == "ExtraTreesClassifier"
    ):
        return "models of this kind can label any points in any way (infinite VC dimension)"
    return "the number of labelings of this kind of model is not known"


def stumps_of(core) -> int:
    """Count the stumps of a boosted model; zero if it may have larger trees, whether the rows made it grow them or not."""
    limits = getattr(core, "estimator_", core)  # of AdaBoost's members, or of gradient boosting itself
    if hasattr(core, "trees_"):  # our own gradient boosting
        return len(core.trees_) if limits.max_depth == 1 or limits.max_leaf_nodes == 2 else 0
    trees = np.ravel(core.estimators_)
    stump = hasattr(trees[0], "tree_") and (limits.max_depth == 1 or limits.max_leaf_nodes == 2)
    init = getattr(core, "init_", None)
    plain = init is None or isinstance(init, str) or getattr(init, "strategy", "stratified") != "stratified"
    return len(trees) if stump and plain else 0


def class_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    """Bound the risk by the errors on the sample and the size of the class."""
    size = size_of(sample)
    if isinstance(size, str):
        yield Missing(TAIL, size, settled=size != HOLES and sample.kinds == 1)
        return
    n, errors, share = sample.n, sample.errors, size.share
    fixed = f"the class was fixed before the sample was seen: {size.what}"
    yield sample.bound(
        TAIL,
        lambda delta: hypergeometric_bound(errors, n, size.log_growth, share * delta),
        fixed,
        reference="Leboeuf, LeBlanc & Marchand (2021), with a ghost sample of 4n",
    )
    yield sample.bound(
        CLASSICAL,
        lambda delta: vc_bound(errors / n, n, size.log_growth, share * delta),
        fixed,
        reference="Vapnik & Chervonenkis (1971), one-sided",
    )
