"""Bounds for models that are determined by a few of the rows: what the other rows say is a test.

A support vector machine is the same function when every row with y·f(x) > 1 is left out, and a row with y·f(x) ≤ 1 that joins
changes it: the set of rows with y·f(x) ≤ 1 is then a stable compression of the sample, and the risk is at most the probability
that a new row would join [1]. Errors of training are in that set already. This needs C and the kernel to be fixed beforehand.

A perceptron is determined by the rows on which it was ever mistaken, with their places: running it on these alone repeats every
step. The errors on the other rows are then a test [2]; if there are none and the order of the rows is that of the table, blocks
of rows that were never needed make the bound smaller.

[1] Campi & Garatti, Journal of Machine Learning Research 24 (2023). [2] Littlestone & Warmuth (1986); Langford, Journal of
Machine Learning Research 6 (2005).
"""

from collections.abc import Iterator

import numpy as np

from lemmata.theory.bounds.compression import (
    campi_garatti_bound,
    compression_bound,
    stable_compression_bound,
    support_vector_expectation,
)
from lemmata.theory.bounds.tails import grid_weight
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.kernels import exact_linear, kernel_of
from lemmata.theory.guarantees.sample import Sample

SUPPORT = "support vectors"
EXPECTED = "support vectors, in expectation"
MISTAKES = "compression to the mistakes"
BLOCKS = "compression to the mistakes, in blocks"
FIXED = "C and the kernel were fixed before the rows were seen, and no row had a weight of its own"
SLACK = 1e-3  # or the tolerance of the solver, if larger: a row within it counts as one that matters
WEIGHTED = 1e-6  # relative distance of a multiplier from C that only a weight explains, inside the margin
FREE = 1e-8  # relative distance from its limits at which a multiplier is between them


def compression_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    """Bound the risk of a model that few of its rows determine."""
    name = sample.structure.name
    if name in ("SVC", "LinearSVC"):
        yield from _support_bounds(sample)
    elif name == "Perceptron" and hasattr(sample.structure.core, "mistakes_"):
        yield from _perceptron_bounds(sample)


def _support_obstacle(sample: Sample) -> str:
    """Say what in the model keeps the theorem from applying, in a sentence; empty if nothing does."""
    structure, core = sample.structure, sample.structure.core
    if len(sample.classes) > 2:
        return "there are more than two classes"
    if structure.learned:
        return "a step before the machine was fitted to the same rows; fit scalers on other rows"
    if structure.thresholded:
        return "a threshold outside the machine was fitted to the same rows"
    if isinstance(core.class_weight, str):
        return 'class_weight="balanced" depends on the rows; give the weights as numbers'
    if structure.name == "LinearSVC":
        if getattr(core, "solver", "") == "sgd":
            return 'solver="sgd" ends near the minimum, and every row has a say in where'
        return "" if exact_linear(core) else 'penalty="l1" has another set of rows that matter'
    seen = kernel_of(core)
    if seen.kind and not seen.positive:
        return "the kernel is not positive definite, so that the machine is not the only one with its support vectors"
    if seen.kind and not seen.fixed:
        return 'gamma="scale" depends on the rows; give gamma as a number'
    if not (seen.fixed and seen.positive):
        return "the kernel is not known to have been fixed before the rows were seen, and to be positive definite"
    return ""


def _support_accident(sample: Sample, margins: np.ndarray, slack: float) -> str:
    """Say what in this fit keeps the theorem from applying, in a sentence; empty if nothing does."""
    core = sample.structure.core
    ended = core.converged_ if hasattr(core, "converged_") else np.max(core.n_iter_) != core.max_iter
    if getattr(core, "fit_status_", 0) or not ended:
        return "the solver stopped before it had converged; raise max_iter"
    if sample.structure.name == "LinearSVC":
        return _loose_plane(sample, margins, slack)
    if sample.n != np.sum(core.shape_fit_[0]):
        return f"the machine was fitted to {core.shape_fit_[0]} rows, and these are {sample.n}"
    if getattr(core, "hard_margin", False):  # multipliers have no upper limit, and both classes have support vectors
        return "" if (margins > 1 - slack).all() else "the machine was fitted to other rows"
    shares = np.abs(core.dual_coef_.toarray() if hasattr(core.dual_coef_, "toarray") else core.dual_coef_).ravel() / core.C
    shares /= core.class_weight_[np.searchsorted(core.classes_, sample.y[core.support_])]
    if not ((shares > FREE) & (shares < 1 - FREE)).any():
        return "no support vector lies on the margin, so the intercept is not unique"
    full = np.zeros(sample.n, dtype=bool)
    full[core.support_] = np.abs(shares - 1) < WEIGHTED
    if (~full & (margins < 1 - 10 * slack)).any():
        return "rows had weights of their own, or the machine was fitted to other rows"
    return ""


def _loose_plane(sample: Sample, margins: np.ndarray, slack: float) -> str:
    """Say that the intercept of a plane is not unique, or nothing: with a penalty, or with the squared hinge loss, it is.

    With plain hinge the middle of the best ones is kept. If rows within the slack hold it, they also hold the middle.
    """
    core = sample.structure.core
    if hasattr(core, "intercept_scaling") or not core.fit_intercept or core.loss != "hinge":
        return ""
    factors = np.array([(core.class_weight or {}).get(c, 1.0) for c in core.classes_.tolist()])
    weights = factors[np.searchsorted(core.classes_, sample.y)]
    inside, on, plus = margins < 1 - slack, np.abs(margins - 1) <= slack, sample.signs() > 0
    slope = (
        weights[inside & ~plus].sum() - weights[inside & plus].sum()
    )  # of the loss in the intercept, but for rows on the margin
    if slope - weights[on & plus].sum() < 0 < slope + weights[on & ~plus].sum():
        return ""
    return "no row on the margin holds the intercept, so it is not unique"


def _support_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    obstacle = _support_obstacle(sample)
    if obstacle:
        yield Missing(SUPPORT, obstacle, settled=sample.structure.settings == 1)
        return
    structure, n = sample.structure, sample.n
    slack = max(SLACK, structure.core.tol or 0.0)
    margins = sample.signs() * structure.core.decision_function(structure.fixed(sample.X))
    accident = _support_accident(sample, margins, slack)
    if accident:
        yield Missing(SUPPORT, accident, settled=False)
        return
    kept, settings = int((margins <= 1 + slack).sum()), structure.settings
    hard = getattr(structure.core, "hard_margin", False)
    fixed = "the kernel was fixed before the rows were seen" if hard else FIXED
    if settings > 1:
        fixed = f"the {settings} settings compared were fixed before the rows were seen; each has its share of delta"
    facts = {"observed": kept / n, "reference": "Campi & Garatti (2023)"}
    yield sample.bound(SUPPORT, lambda delta: campi_garatti_bound(kept, n, delta / settings), fixed, **facts)
    if settings == 1:
        facts["reference"] = "Vapnik (1998), leave-one-out"
        formula = lambda delta: support_vector_expectation(kept, n)  # noqa: E731
        yield sample.bound(EXPECTED, formula, fixed, "of the mean over samples, at one row less", kind="expectation", **facts)


def _perceptron_bounds(sample: Sample) -> Iterator[Bound | Missing]:
    structure, core, n = sample.structure, sample.structure.core, sample.n
    mistakes = np.atleast_2d(core.mistakes_)
    if structure.learned or structure.thresholded or structure.settings > 1:
        yield Missing(MISTAKES, "a step, a threshold or settings outside the perceptron depend on the same rows")
        return
    if core.average or core.pocket:
        yield Missing(MISTAKES, "average=True and pocket=True depend on rows that were not mistaken")
        return
    if mistakes.shape[1] != n:
        yield Missing(MISTAKES, f"the perceptron was fitted to {mistakes.shape[1]} rows, and these are {n}")
        return
    needed = mistakes.any(axis=0)
    kept, errors = int(needed.sum()), int(sample.wrong[~needed].sum())
    seed = "settings and the seed of the order were chosen without looking at the rows, and no row had a weight of its own"
    # The unit of the table, a power of 64, is the only thing told besides the rows.
    share = 1.0 if core.intercept_scaling is not None or not core.fit_intercept else grid_weight(round(np.log2(core._unit) / 6))
    facts = {"observed": errors / max(n - kept, 1), "reference": "Littlestone & Warmuth (1986), Langford (2005)"}
    facts["data"] = f"{n - kept} of {sample.data} that were never mistaken"
    yield sample.bound(MISTAKES, lambda delta: compression_bound(errors, kept, n, share * delta), seed, **facts)
    if core.shuffle or errors or not core.converged_:
        yield Missing(BLOCKS, "it needs shuffle=False and a fit that separates the rows", settled=core.shuffle)
        return
    facts["reference"] = "Bousquet, Hanneke, Moran & Zhivotovskiy (2020), stable compression"
    yield sample.bound(BLOCKS, lambda delta: stable_compression_bound(kept, n, share * delta), seed, **facts)
