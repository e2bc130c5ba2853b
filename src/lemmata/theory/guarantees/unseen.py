"""Bounds from rows that the model has never seen: the shortest proof there is.

For errors that are counted, Clopper and Pearson's inversion of the binomial tail is exact, and nothing valid is smaller; the
bounds of Chernoff and Hoeffding are larger for every count and are listed for teaching. For graded losses in [0, B] a gambler's
capital against the hypothesis of a larger mean gives a bound that adapts to the variance; the order of the rows must not depend
on the losses. A set of rows that served to choose among M models pays δ/M.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lemmata.theory.bounds.holdout import clopper_pearson, empirical_bernstein_bound, hoeffding_bound, kl_bound
from lemmata.theory.bounds.regression_bounds import clipped_loss_bound
from lemmata.theory.guarantees.bound import Bound
from lemmata.theory.guarantees.sample import IID, Sample

COUNTED = "hold-out, Clopper-Pearson"
CHERNOFF = "hold-out, Chernoff"
HOEFFDING = "hold-out, Hoeffding"
BETTING = "hold-out, betting"
GRADED = "hold-out, Chernoff or Bentkus"
BERNSTEIN = "hold-out, empirical Bernstein"
UNSEEN = "these rows had no part in fitting the model or in choosing it"


def settled(n_models: int) -> tuple[str, ...]:
    """Say what makes these rows a test, or that they also chose among models."""
    many = f"these rows scored {n_models} models, counting those thrown away; each has its share of delta"
    return (UNSEEN,) if n_models == 1 else (many,)


def counted_bounds(sample: Sample, n_models: int) -> Iterator[Bound]:
    """Bound the risk by the errors on unseen rows."""
    n, errors = sample.n, sample.errors
    facts = {"trivial": sample.trivial}
    told = settled(n_models)
    yield sample.bound(
        COUNTED,
        lambda delta: clopper_pearson(errors, n, delta / n_models),
        *told,
        reference="Clopper & Pearson (1934)",
        **facts,
    )
    yield sample.bound(
        CHERNOFF, lambda delta: kl_bound(errors / n, n, delta / n_models), *told, reference="Chernoff (1952)", **facts
    )
    yield sample.bound(
        HOEFFDING, lambda delta: hoeffding_bound(errors / n, n, delta / n_models), *told, reference="Hoeffding (1963)", **facts
    )


def graded_bounds(losses: np.ndarray, upper: float, delta: float, n_models: int, **facts: Any) -> Iterator[Bound]:
    """Bound a mean loss by losses in [0, upper] on unseen rows, in the order in which they came."""
    n, shares = len(losses), np.clip(losses / upper, 0.0, 1.0)
    mean = float(shares.mean())
    told = (IID, *settled(n_models), f"losses lie in [0, {upper:g}], which was fixed before")
    formulas = {
        BETTING: (lambda d: clipped_loss_bound(losses, upper, d / n_models), "Waudby-Smith & Ramdas (2024)"),
        GRADED: (
            lambda d: clipped_loss_bound(losses, upper, d / n_models, form="tail"),
            "Chernoff (1952), Bentkus (2004): the same tail of the same mean",
        ),
        HOEFFDING: (lambda d: upper * hoeffding_bound(mean, n, d / n_models), "Hoeffding (1963)"),
    }
    if n > 1:
        bernstein = lambda d: upper * empirical_bernstein_bound(shares, d / n_models)  # noqa: E731
        formulas[BERNSTEIN] = (bernstein, "Maurer & Pontil (2009)")
    facts = {"observed": upper * mean, "limit": upper, "data": f"{n} hold-out rows"} | facts
    for name, (formula, reference) in formulas.items():
        yield Bound(name, formula(delta), delta, formula=formula, assumptions=told, reference=reference, **facts)
