"""Tables as products of two factors: the factors are the parameters, those of every row among them.

The notes count the (M₁ + M₂)R entries of both factors of an M₁ × M₂ table, and take the number of its entries for N: AIC has
the penalty (M₁ + M₂)R, and BIC ½(M₁ + M₂)R ln(M₁M₂). Up to R² of these are redundant, since (WA)(A⁻¹H) = WH: for every A near
I where all entries are positive, and for a diagonal one, which scales the parts, in any case. N is a convention, too. The
variance of the noise, at its best, is one more parameter for every R; the notes leave it out, and so does this count.
"""

import numpy as np
from scipy.special import gammaln, xlogy

from lemmata.core.data import is_sparse
from lemmata.model_selection.likelihoods.account import HELD_BACK, Account, NoLikelihoodError, law, refusal

EXACT = 1e-14  # share of the squares of the entries below which what is left of them is rounding
REDUNDANT = (
    "R to R² of the entries are redundant, since WA and A⁻¹H make the same table, and are counted all the same, as in the notes"
)
NOISE = "the noise is normal, its variance the best one for these entries, and not counted, as in the notes"
COUNTS = "the entries are Poisson counts with the product for a mean; of numbers that are no counts it is a quasi-likelihood"


def normal_entries(entries, off, weight):
    """Give the log-likelihood of entries with these errors, at the best variance, and their number."""
    n = float(weight.sum())
    variance = float((weight * off**2).sum()) / n
    if not variance > EXACT * float((weight * entries**2).sum()) / n:
        raise NoLikelihoodError("The factors make up these entries exactly, and the likelihood grows without end: take fewer.")
    return -n / 2 * (np.log(2 * np.pi * variance) + 1), n


@law("NMF")
def nonnegative(model, rows):
    """Count both factors; the loss says what the noise is: normal for squares, Poisson for the divergence."""
    rows.whole(model)
    loss = getattr(model, "loss", getattr(model, "beta_loss", None))
    if loss not in ("squared", "kl", "frobenius", "kullback-leibler"):
        raise NoLikelihoodError(refusal(model, f"its loss {loss!r} is no likelihood that is known here"))
    X = rows.X.toarray() if is_sparse(rows.X) else np.asarray(rows.X, dtype=float)
    made = np.asarray(model.inverse_transform(model.transform(rows.X)), dtype=float)
    seen = ~np.isnan(X)
    weight = np.where(seen, rows.repetitions[:, None], 0.0)
    if loss in ("squared", "frobenius"):
        (value, n), note = normal_entries(np.where(seen, X, 0.0), np.where(seen, X - made, 0.0), weight), NOISE
    else:
        x, mean = np.where(seen, X, 0.0), np.where(seen, made, 0.0)
        with np.errstate(divide="ignore"):
            value, n, note = float((weight * (xlogy(x, mean) - mean - gammaln(x + 1))).sum()), float(weight.sum()), COUNTS
    R, held = len(model.components_), any(getattr(model, name) not in (0, "same") for name in ("alpha_W", "alpha_H"))
    notes = (note, REDUNDANT, HELD_BACK) if held else (note, REDUNDANT)
    return Account(value, {"W": rows.total * R, "H": X.shape[1] * R}, n, "entries", notes)


@law("PLSA")
def latent_classes(model, rows):
    """Count shares of topics in each document and words in each topic, which sum to one."""
    rows.whole(model)
    k, words = model.components_.shape
    n = rows.sum(np.asarray(rows.X.sum(axis=1) if is_sparse(rows.X) else np.sum(rows.X, axis=1), dtype=float).ravel())
    counted = {"shares of topics": rows.total * (k - 1), "words of topics": k * (words - 1)}
    note = ("the likelihood is that of the words given their documents, each folded in",)
    return Account(float(model.score(rows.X, sample_weight=rows.weight)), counted, n, "words", note)


@law("LatentDirichletAllocation")
def allocation(model, rows):
    """Count the words of topics; the shares of topics in documents are integrated out."""
    rows.whole(model)
    if not hasattr(model, "bound_") or not hasattr(model, "score_samples"):
        raise NoLikelihoodError(
            refusal(model, "the law of a document has no closed form, and only lemmata's variational fit keeps a bound of it")
        )
    k, words = model.components_.shape
    counted = {"words of topics": k * (words - 1)}
    counted |= {"prior of shares": k} if isinstance(model.doc_topic_prior, str) else {}
    counted |= {"prior of words": 1} if isinstance(model.topic_word_prior, str) else {}
    value, bound = rows.sum(model.score_samples(rows.X)), float(model.score(rows.X, sample_weight=rows.weight))
    note = (
        "the log-likelihood is a lower bound: AIC and BIC are at most as large as told",
        "documents are the independent observations, their shares of topics integrated out",
    )
    return Account(value, counted, rows.total, "documents", note, bound, "a lower bound, topics integrated out as well")


@law("ProbabilisticMatrixFactorization")
def ratings(model, rows):
    """Count the factors of users and items; the noise has the variance of the fit."""
    rows.whole(model)
    if model.implicit:
        raise NoLikelihoodError(refusal(model, "implicit feedback is fitted with confidences, which are no likelihood"))
    found = model._triples(rows.X, rows.y, rows.weight)
    means = model.predict(np.column_stack([found.users.astype(object), found.items.astype(object)]))
    weight = np.ones(len(found.values)) if found.weights is None else found.weights
    value, n = normal_entries(found.values, found.values - means, weight)
    users, items, d = len(model.users_), len(model.items_), model.n_components
    counted = {"users": users * d, "items": items * d}
    counted |= {"biases and mean": users + items + 1} if model.biases else {}
    return Account(float(value), counted, n, "ratings", (NOISE, HELD_BACK))
