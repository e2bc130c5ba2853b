"""What proves a perceptron: its weights as a sum of rows, the planes it found, and Novikoff's bound of its mistakes.

With counts c of the mistakes of each row, (w, b/u) = η Σ cᵢmᵢ, mᵢ = yᵢ(xᵢ, u); averaged over T visits, η Σ (cᵢ − sᵢ/T)mᵢ, where
s sums the visits before each mistake. These identities refuse what separation alone would let pass, which is true of a whole
neighborhood of planes. The planes judged for separation are the last ones, also where the average is given.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import TINY, Check, same
from lemmata.linear_model.hard_margin import margin_of_blocks
from lemmata.linear_model.mistakes import errors_block
from lemmata.linear_model.stochastic import fold, signs_of

WHOLE = 1e-9  # relative; sums of whole numbers are exact, and those of others are off by rounding


class Sums(NamedTuple):
    """What a certificate adds up over the rows, one after another, with m kinds of counts."""

    row: int
    weight: float
    rows: np.ndarray  # (K, m, d): Σ c y x
    signs: np.ndarray  # (K, m): Σ c y
    absent: float  # counts of rows without weight
    whole: bool  # whether all weights are whole numbers


def sums_block(X, y, weight, sums, own, counts, positive):
    """Add a block to the sums of a certificate."""
    n = X.shape[0]
    weight = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    counts = counts[sums.row : sums.row + n]
    signed = (counts * signs_of(y, positive)[:, :, None]).reshape(n, -1)
    return Sums(
        sums.row + n,
        sums.weight + float(weight.sum()),
        sums.rows + np.asarray(X.T @ signed).T.reshape(sums.rows.shape),
        sums.signs + signed.sum(axis=0).reshape(sums.signs.shape),
        sums.absent + float(np.abs(counts[weight == 0]).sum()),
        sums.whole and bool((weight == np.rint(weight)).all()),
    ), own


def mistake_bound(margin, threshold=0.0):
    """Return the largest number of mistakes that any order of visits can lead to, (R² + 2δ/η)/γ²; infinite without a margin.

    Parameters
    ----------
    margin : `HardMargin` of the rows yᵢ(xᵢ, u).
    threshold : δ/η.

    Examples
    --------
    >>> from lemmata.linear_model.hard_margin import hard_margin
    >>> mistake_bound(hard_margin([[1.0, 2.0, 1.0], [2.0, 1.0, 1.0], [1.0, 1.0, -1.0], [2.0, -0.5, -1.0]]))
    2.333333
    """
    if not margin.separable:
        return np.inf
    return (margin.radius / margin.lower) ** 2 + 2 * (threshold / margin.lower) / margin.lower


def add_up(blocks, counts, positive):
    """Sum over all rows what the certificate needs; `counts` is (n, K, m)."""
    _, k, m = counts.shape
    nothing = Sums(0, 0.0, np.zeros((k, m, blocks.n_columns)), np.zeros((k, m)), 0.0, True)
    return fold(blocks, partial(sums_block, counts=counts, positive=positive), nothing)[0]


def representation_checks(model, sums, counts, unit, radius):
    """Check that the planes are sums of rows by the counts, and that the counts are what they should be."""
    rows, signs, visits = sums.rows[:, 0], sums.signs[:, 0], np.atleast_1d(model.n_visits_).astype(float)
    if counts.shape[2] > 1:
        rows, signs = rows - sums.rows[:, 1] / visits[:, None], signs - sums.signs[:, 1] / visits
    totals, stated = counts[:, :, 0].sum(axis=0), np.atleast_1d(model.n_mistakes_).astype(float)
    path = WHOLE * model.eta0 * float(np.abs(totals).max(initial=1.0))  # what rounding leaves where mistakes cancel out
    wrong = sums.absent + float(np.maximum(-counts, 0.0).sum() + np.abs(totals - stated).sum())
    if sums.whole:
        wrong += float(np.abs(counts - np.rint(counts)).sum())
    epochs = np.maximum(visits / sums.weight, TINY)
    partial_epochs = float((np.abs(epochs - np.maximum(np.rint(epochs), 1.0)) / epochs).max())
    summed = "the coefficients are the sum of the rows, each as often as it was mistaken"
    there = "the mistakes are counts of rows that are there, and add up"
    return [
        same(model.coef_, model.eta0 * rows, "representation", summed, floor=path * radius),
        same(model.intercept_, model.eta0 * unit**2 * signs, "intercept", "so are the intercepts", floor=path * unit**2),
        Check("counts", wrong / max(totals.sum(), 1.0), WHOLE, "proof", there),
        Check("visits", partial_epochs, WHOLE, "proof", "the rows were visited a whole number of times"),
    ]


def separation_checks(model, blocks, sums, positive, unit, radius):
    """Check that the last planes separate or nothing does, and that the mistakes keep to their bound."""
    if model.average:
        coef, intercept = model.eta0 * sums.rows[:, 0], model.eta0 * unit**2 * sums.signs[:, 0]
    else:
        coef, intercept = model.coef_, model.intercept_
    wrong = blocks.reduce(errors_block, positive, coef, intercept, model.margin)
    margins = [margin_of_blocks(blocks, k, unit, radius) for k in positive]
    unsettled = sum(bool(w > 0 and not margin.overlap) for w, margin in zip(wrong, margins, strict=True))
    mistakes, threshold = np.atleast_1d(model.n_mistakes_), model.margin / model.eta0
    used = max(float(k) / mistake_bound(margin, threshold) for k, margin in zip(mistakes, margins, strict=True))
    return [
        Check("separation", float(unsettled), 0.0, "proof", "the classes are separated, or no plane separates them"),
        Check("mistake bound", used, 1 + WHOLE, "proof", "no more mistakes than (R² + 2δ/η)/γ²"),
    ]
