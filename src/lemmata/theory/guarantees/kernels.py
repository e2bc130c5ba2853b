"""Bounds for support vector machines by the size of what they learned: margins in the space of the kernel, and stability.

With the Gaussian kernel every row has length one there, and √2 with a constant column; the machine divided by its own length
(w, b) is a plane as in `linear`, however it was found, as long as the kernel was fixed.

A machine without an intercept moves little when one row goes: its loss changes by at most β = κ²C/γ where rows have length ≤ κ,
for the ramp of width γ. So the training loss is close to the risk [1], but only if C shrinks as rows are added, for β does not
shrink by itself. Both are for teaching: `compressed` has the bound to use.

[1] Bousquet & Elisseeff, Journal of Machine Learning Research 2 (2002).
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from lemmata.kernels import RBF, Kernel, Linear, Matern, Periodic, Polynomial, Sigmoid
from lemmata.theory.bounds.margins import margin_bound_known_radius, ramp
from lemmata.theory.bounds.stability import hinge_stability, stability_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.linear import MARGIN
from lemmata.theory.guarantees.sample import Sample

STABILITY = "uniform stability"
RAMP = 0.25  # width γ of the ramp, fixed
UNIT = (RBF, Matern, Periodic)  # kernels with k(x, x) = 1


class Seen(NamedTuple):
    """What is known about the kernel of a machine, scikit-learn's or ours.

    Attributes
    ----------
    kind : "linear", "poly", "rbf", "sigmoid", or "" for any other.
    degree : That of a polynomial, else 0.
    fixed : Whether it is known to have been fixed before the rows were seen.
    positive : Whether it is positive semidefinite by a theorem.
    unit : Whether every row has length one in its space.
    """

    kind: str
    degree: int
    fixed: bool
    positive: bool
    unit: bool


def kernel_of(core: Any) -> Seen:
    """Read the kernel of a fitted machine.

    Examples
    --------
    >>> from lemmata.svm import SVC
    >>> kernel_of(SVC(kernel=Polynomial(2)))
    Seen(kind='poly', degree=2, fixed=True, positive=True, unit=False)
    """
    kernel = core.kernel
    if isinstance(kernel, str):
        fixed = kernel == "linear" or (kernel != "precomputed" and core.gamma != "scale")
        positive = kernel in ("linear", "rbf") or (kernel == "poly" and core.coef0 >= 0)
        degree = int(core.degree) if kernel == "poly" else 0
        return Seen("" if kernel == "precomputed" else kernel, degree, fixed, positive, kernel == "rbf")
    if not isinstance(kernel, Kernel):
        return Seen("", 0, False, False, False)
    kinds = {Linear: "linear", Polynomial: "poly", RBF: "rbf", Sigmoid: "sigmoid"}
    degree = int(kernel.degree) if isinstance(kernel, Polynomial) else 0
    return Seen(kinds.get(type(kernel), ""), degree, True, kernel.positive is True, type(kernel) in UNIT)


def exact_linear(core: Any) -> bool:
    """Whether a `LinearSVC` is the minimizer of a loss and ½‖w‖², not the end of stochastic steps or sparse."""
    return getattr(core, "penalty", "l2") == "l2" and getattr(core, "solver", "") != "sgd"


def kernel_bounds(sample: Sample, radius: float | None) -> Iterator[Bound | Missing]:
    """Bound the risk of a support vector machine by its length in the space of its kernel."""
    structure, core = sample.structure, sample.structure.core
    two = len(sample.classes) == 2 and not structure.learned and not structure.thresholded
    if structure.name == "SVC" and two:
        seen = kernel_of(core)
        if seen.unit and seen.fixed:
            yield _unit_margin(sample)
    if structure.name in ("SVC", "LinearSVC"):
        yield _stability(sample, radius, two)


def _unit_margin(sample: Sample) -> Bound:
    structure, core = sample.structure, sample.structure.core
    weights = core.dual_coef_.toarray() if hasattr(core.dual_coef_, "toarray") else core.dual_coef_
    kernel = core.kernel_ if hasattr(core, "kernel_") else RBF(gamma=core._gamma)
    squared = float((weights @ kernel(core.support_vectors_) @ weights.T).item())
    length = np.sqrt(squared + float(core.intercept_[0]) ** 2)
    margins = sample.signs() * core.decision_function(structure.fixed(sample.X)) / length
    settings = structure.settings
    return sample.bound(
        MARGIN,
        lambda delta: margin_bound_known_radius(margins, np.sqrt(2.0), delta / settings),
        "the kernel was fixed before the rows were seen, or was one of those that a search compared",
        reference="Koltchinskii & Panchenko (2002), rows of length √2 in the space of the kernel",
    )


def _stability(sample: Sample, radius: float | None, two: bool) -> Bound | Missing:
    structure, core = sample.structure, sample.structure.core
    hinge = structure.name == "LinearSVC" and core.loss == "hinge" and exact_linear(core)
    if not hinge or core.fit_intercept or core.class_weight is not None or not two or structure.settings > 1:
        return Missing(
            STABILITY, 'it needs LinearSVC(loss="hinge", fit_intercept=False), two classes, nothing tuned on the rows'
        )
    if radius is None:
        return Missing(STABILITY, "it needs the length that no row exceeds, for sure; declare it with radius=")
    # ½‖w‖² + CΣ is n·C times the mean loss + λ‖w‖² with λ = 1/(2nC)
    margins = sample.signs() * core.decision_function(structure.fixed(sample.X))
    mean, n = float(ramp(margins, RAMP).mean()), sample.n
    beta = hinge_stability(radius, 1 / (2 * n * core.C), n, RAMP)
    return sample.bound(
        STABILITY,
        lambda delta: stability_bound(mean, beta, n, delta),
        f"no row is longer than {radius:g}; C was fixed for this number of rows",
        observed=mean,
        reference="Bousquet & Elisseeff (2002)",
    )
