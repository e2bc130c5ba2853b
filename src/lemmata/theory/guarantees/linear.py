"""Bounds for linear classifiers of two classes by their margins: how far rows lie from the plane, not only on which side.

Rows get a constant column and are divided by their length, which moves no row to the other side: x̃ = (x, 1)/‖(x, 1)‖ lies on
the unit sphere, whatever the sample. With w̃ the plane (w, b) divided by its length, γᵢ = yᵢ w̃·x̃ᵢ is a cosine. All planes of
length one are one class, so that a bound for all of them holds for this one however it was found, with scalers folded in.

A Gaussian Q = N(μw̃, I) around the plane draws a random one; the risk of the random plane has a PAC-Bayes bound, for all μ at
once, against P = N(0, I), or against a P around the plane of a fit to half of the rows, with the other half scored. The plane
itself is Q's majority vote and errs at most twice as often.
"""

import warnings
from collections.abc import Iterator
from functools import cache

import numpy as np
from scipy.sparse import issparse
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from lemmata.theory.bounds.margins import margin_bound_known_radius
from lemmata.theory.bounds.pac_bayes import gaussian_divergence, gibbs_risk, langford_bound, seeger_bound
from lemmata.theory.guarantees.bound import Bound, Missing
from lemmata.theory.guarantees.sample import MARGINAL, Sample, missing_values
from lemmata.theory.guarantees.structure import LINEAR, structure_of

MARGIN = "margin (Rademacher)"
GIBBS = "PAC-Bayes, random planes"
DOUBLE = "PAC-Bayes, twice the random planes"
SPLIT = "PAC-Bayes with a prior from half the rows"
POSTERIOR = "PAC-Bayes, the posterior's draws"
TWICE = "PAC-Bayes, twice the posterior's draws"
LENGTHS = np.geomspace(0.5, 200.0, 60)  # μ tried; free, as one prior serves all posteriors
PRIORS = np.geomspace(1.0, 100.0, 8)  # lengths of the prior's mean; each costs its share of δ
SCALES = range(1, 33)  # variances of the prior c·2⁻ʲ; the j-th at the share 6/(πj)²
STRETCHES = np.geomspace(0.25, 4.0, 9)  # of the posterior's mean
WIDTHS = np.geomspace(0.01, 4.0, 11)  # of the posterior's covariance
FEWEST = 20  # rows of which a half is still worth a fit
ZERO = "all coefficients are zero"
VOTE = "the plane is the majority vote of the random ones, which errs at most twice as often"


def lengths_of(Z) -> np.ndarray:
    """Lengths of the rows with a constant column."""
    squares = np.asarray(Z.multiply(Z).sum(axis=1)).ravel() if issparse(Z) else np.einsum("ij,ij->i", Z, Z)
    return np.sqrt(squares + 1.0)


def cosines(Z, signs, plane) -> np.ndarray:
    """Cosines γᵢ of rows with a constant column to a plane of length one, positive on the right side."""
    scores = np.asarray(Z @ plane[:-1]).ravel() + plane[-1]
    return signs * scores / lengths_of(Z)


def plane_of(sample: Sample) -> np.ndarray | str:
    """Give the plane (w, b) of length one in the fixed columns; or say why there is none, in an empty string if it is plain."""
    structure = sample.structure
    if structure.thresholded and structure.name in LINEAR:
        return "the plane was moved by costs or a threshold"
    form = None if structure.thresholded else structure.linear_form(sample.columns, sample.sparse)
    if form is None:
        return "the model is not linear in the raw columns" if structure.name in LINEAR else ""
    if len(sample.classes) > 2:
        return "there are more than two classes"
    if missing_values(sample):
        return MARGINAL
    plane = np.append(form[0][0], form[1][0])
    size = np.linalg.norm(plane)
    return plane / size if size > 0 else ZERO


def linear_bounds(sample: Sample, refit: bool) -> Iterator[Bound | Missing]:
    """Bound the risk of a linear classifier of two classes by its margins."""
    plane = plane_of(sample)
    if isinstance(plane, str):
        if plane:
            yield Missing(MARGIN, plane)
        if plane == ZERO:
            yield from (Missing(name, plane, settled=False) for name in (DOUBLE, SPLIT))
        return
    Z, signs = sample.structure.fixed(sample.X), sample.signs()
    Z = Z if issparse(Z) else np.asarray(Z, dtype=float)
    margins = np.clip(cosines(Z, signs, plane), -1.0, 1.0)
    yield sample.bound(
        MARGIN,
        lambda delta: margin_bound_known_radius(margins, 1.0, delta),
        "each margin of a grid has its share of delta",
        reference="Koltchinskii & Panchenko (2002), rows scaled to length one",
    )
    facts = {"reference": "Langford (2005), Seeger (2002), Maurer (2004)"}

    gibbs = cache(lambda delta: langford_bound(margins, delta))
    observed = gibbs_risk(gibbs(sample.delta)[1] * margins, 1.0)
    around = "prior N(0, I), rows scaled to length one"
    yield sample.bound(GIBBS, lambda delta: gibbs(delta)[0], around, target="gibbs", observed=observed, **facts)
    yield sample.bound(DOUBLE, lambda delta: 2 * gibbs(delta)[0], around, VOTE, observed=observed, **facts)
    yield _split_bound(sample, Z, signs, plane) if refit else Missing(SPLIT, "refit=False asks for no further fit")
    if sample.structure.name == "BayesianLogisticRegression":
        yield from posterior_bounds(sample, Z, signs)


def _split_bound(sample: Sample, Z, signs, plane) -> Bound | Missing:
    """Take the prior from a fit to half of the rows, drawn without looking at them, and score the other half."""
    n = sample.n
    if n < FEWEST:
        return Missing(SPLIT, f"there are {n} rows, too few to fit a half of them")
    if sample.structure.frozen:
        return Missing(SPLIT, "a frozen part of the model would bring what it knows of all rows into the prior")
    order = np.random.default_rng(n).permutation(n)  # a function of n alone
    first, second = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # any prior will do
            model = clone(sample.structure.model).fit(_safe_indexing(sample.X, first), sample.y[first])
    except ValueError as reason:
        return Missing(SPLIT, f"the model cannot be fitted to half of the rows: {reason}", settled=False)
    half = Sample(structure_of(model), sample.X, sample.y, sample.wrong, sample.data, sample.delta)
    center = plane_of(half)
    if isinstance(center, str) or not np.array_equal(half.classes, sample.classes):
        return Missing(SPLIT, "the fit to half of the rows is not of the same kind", settled=False)
    margins = cosines(Z[second], signs[second], plane)
    risks = ndtr(-np.outer(LENGTHS, margins)).mean(axis=1)
    # ‖μw̃ − μ₀w̃₀‖²/2 for all pairs of lengths
    products = np.outer(LENGTHS, PRIORS) * (plane @ center)
    divergences = np.maximum((LENGTHS[:, None] ** 2 + PRIORS**2) / 2 - products, 0.0)

    def values(delta):
        return seeger_bound(risks[:, None], divergences, len(second), delta / len(PRIORS))

    i, _ = np.unravel_index(np.argmin(values(sample.delta)), divergences.shape)
    return sample.bound(
        SPLIT,
        lambda delta: 2 * float(values(delta).min()),
        "the prior lies around the plane of a fit to half of the rows, drawn without looking at them",
        "settings that no search finds again in that half were fixed before the rows were seen",
        VOTE,
        observed=float(risks[i]),
        data=f"{len(second)} of {sample.data}, the prior from the others",
        reference="Seeger (2002), Maurer (2004); split priors of Ambroladze, Parrado-Hernández & Shawe-Taylor (2007)",
    )


def posterior_bounds(sample: Sample, Z, signs) -> Iterator[Bound | Missing]:
    """Bound the risk of draws from a normal posterior, and of the mode by twice that of the best Gaussian in its direction."""
    structure, core = sample.structure, sample.structure.core
    if structure.learned:
        yield Missing(POSTERIOR, "a step before the model was fitted to the same rows; fit scalers on other rows")
        return
    mean, cov, settings = core.coef_[0].astype(float), core.covariance_, structure.settings
    Z = Z.toarray() if issparse(Z) else Z
    if core.fit_intercept:
        mean = np.append(mean, core.intercept_)
        Z = np.hstack([Z, np.ones((sample.n, 1))])
    spreads = np.sqrt(np.einsum("ij,ij->i", Z @ cov, Z))
    # a row of zeros has no side: it counts as an error of every draw
    margins = np.divide(signs * (Z @ mean), spreads, out=np.full(sample.n, -np.inf), where=spreads > 0)
    given = core.prior_precision if not isinstance(core.prior_precision, str) else 1.0
    prior = f"prior N(0, s²I) with s² = {1 / given:g} or a power of two below it, each with its share of delta"
    if settings > 1:
        prior += f", as has each of the {settings} settings compared"
    facts = {"reference": "Seeger (2002), Maurer (2004); probit form of the risk by Langford & Shawe-Taylor (2003)"}

    def least(stretch, width):
        """Give the least bound on the risk of draws from N(stretch·mean, width·cov), over shapes and variances of the prior."""
        stretch, width = np.atleast_1d(stretch)[:, None], np.atleast_1d(width)[:, None]
        risks = ndtr(-stretch / np.sqrt(width) * margins).mean(axis=1, keepdims=True)
        budgets = _divergences(mean, cov, 2 / given, stretch, width) - np.log(6 / (np.pi * np.array(SCALES)) ** 2)
        return lambda delta: float(np.min(seeger_bound(risks, budgets, sample.n, delta / settings)))

    observed = gibbs_risk(margins, 1.0)
    yield sample.bound(POSTERIOR, least(1.0, 1.0), prior, target="gibbs", observed=observed, **facts)
    best = least(*(axis.ravel() for axis in np.meshgrid(STRETCHES, WIDTHS)))
    yield sample.bound(TWICE, lambda delta: 2 * best(delta), prior, VOTE, observed=observed, **facts)


def _divergences(mean, cov, largest, stretch, width) -> np.ndarray:
    """KL(N(stretch·mean, width·cov) ‖ N(0, s²I)) for every variance s² of the grid, from that of N(mean, cov) to N(0, I)."""
    d = len(mean)
    variances = largest * 2.0 ** -np.array(SCALES)
    unit = gaussian_divergence(mean, cov, np.zeros(d), 1.0)
    lengths = (width * np.trace(cov) + stretch**2 * (mean @ mean)) / variances - np.trace(cov) - mean @ mean
    return unit + (lengths + d * np.log(variances) - d * np.log(width)) / 2
