"""The certificate of a variational fit of latent Dirichlet allocation: a stationary point of the bound, seen from outside.

From λ, α, η and the documents alone: every document is taken from its start to rest, which is checked by the equation that γ
must solve; then the expected counts, the bound and the slopes of the priors are computed in NumPy and SciPy, with logarithms
where the kernels of the fit have products. λ must be η plus the counts, by the measure of `equi`; the bound must be the stored
one; a prior that was learned must be where the bound is flat, another one as it was asked for.
All of this is local. Two topics that coincide solve each equation, too, even if, pulled apart, they would drift further apart:
such a pair is pulled apart, by 1 %, and must come closer again in the passes that follow.
"""

import numpy as np
from scipy.special import gammaln, psi

from lemmata.core.blocks import Largest
from lemmata.core.certificate import SABOTAGE, SAME_LIMIT, TINY, Certificate, Check, equi, nonnegative, same
from lemmata.topic.variational import TIGHT, as_counts, expected_logs, settled, words_of

ENTRIES = 1 << 18  # stored counts whose shares of topics are held at a time
EQUAL = 1e-4  # distance between two laws of words, half the sum of absolute differences, below which topics coincide
USED = 1e-3  # share of all words that a topic must have to count: others are but the prior
PASSES = 5  # that a pair of topics is followed after it was pulled apart


def divergence(pseudo, prior):
    """Give the divergence of Dirichlet laws, whose parameters are the rows, from one with the parameters `prior`."""
    own = ((pseudo - prior) * expected_logs(pseudo) - gammaln(pseudo) + gammaln(prior)).sum(axis=1)
    return own + gammaln(pseudo.sum(axis=1)) - gammaln(np.sum(prior))


def recount_block(X, weight, words, logs, alpha):
    """Sum over documents at rest: expected counts (topics, words), the bound, E log θ, and how far a document is from rest."""
    gamma = settled(X, words, alpha, TIGHT)[0][:, : len(alpha)]
    values, columns, starts = as_counts(X)
    rows = np.repeat(np.arange(len(gamma)), np.diff(starts))
    weight = np.ones(len(gamma)) if weight is None else weight
    log_theta, counts, told, again = expected_logs(gamma), np.zeros(logs.shape), np.zeros(len(gamma)), np.zeros(gamma.shape)
    for first in range(0, len(values), ENTRIES):
        part = slice(first, first + ENTRIES)
        n, w, d = values[part], columns[part], rows[part]
        joint = log_theta[d] + logs.T[w]
        top = joint.max(axis=1)
        phi = np.exp(joint - top[:, None])
        norm = phi.sum(axis=1)
        told += np.bincount(d, n * (np.log(norm) + top), minlength=len(gamma))
        phi *= (n / norm)[:, None]
        for k in range(len(alpha)):
            again[:, k] += np.bincount(d, phi[:, k], minlength=len(gamma))
            counts[k] += np.bincount(w, weight[d] * phi[:, k], minlength=logs.shape[1])
    unrest = np.abs(alpha + again - gamma).sum(axis=1) / gamma.sum(axis=1)
    bound = float(weight @ (told - divergence(gamma, alpha)))
    return counts, bound, weight @ log_theta, Largest(float(unrest.max(initial=0.0)))


def certificate(model, blocks, extent, posterior):
    """Check a fit, given its λ, α and η in double precision, and how many words and documents there are."""
    components, alpha, eta = posterior
    if not ((components > 0).all() and (alpha > 0).all() and eta > 0 and np.isfinite(components).all()):
        claim = "λ, α and η are positive numbers"
        return Certificate(Check("positive", np.inf, 0.0, "proof", claim), subject=repr(model))

    def recount(components, alpha):
        return blocks.reduce(recount_block, words_of(components), expected_logs(components), alpha)

    def residual(components):
        return components - eta - recount(components, alpha)[0]

    _, documents, _, unrest = recount(components, alpha)
    bound = documents - float(divergence(components, np.full(components.shape[1], eta)).sum())
    rounding = np.finfo(float).eps * float(components.sum())  # what the terms of the bound have of it
    checks = [
        Check("documents", unrest.value, SAME_LIMIT, "local", "every document is at rest: γ = α + Σ n φ"),
        equi(residual, components, "topics", "λ is η plus the expected counts", move=nonnegative),
        same(model.bound_, bound, "bound", "lower bound of the log evidence", floor=rounding),
        *_prior_checks(model, recount, posterior, extent[1]),
        same(model.document_length_, extent[0] / extent[1], "length", "mean number of words of a document"),
        *_coincidence_checks(recount, posterior, extent[0]),
    ]
    return Certificate(*checks, subject=repr(model))


def _prior_checks(model, recount, posterior, n_documents):
    """Check α and η: as they were asked for, or, if learned, that the bound is flat there."""
    components, alpha, eta = posterior
    asked_alpha, asked_eta = model._priors()
    learned_alpha, learned_eta = model._learns()
    v = components.shape[1]

    def slopes(alpha):
        return psi(alpha.sum()) - psi(alpha) + recount(components, alpha)[2] / n_documents

    if learned_alpha and len(alpha) > 1:
        yield equi(slopes, alpha, "shares' prior", "no other α makes the bound larger", move=nonnegative)
    else:
        yield same(alpha, asked_alpha, "shares' prior", "α as it was asked for")
    if learned_eta and v > 1:
        flat = float(expected_logs(components).mean())
        claim = "no other η makes the bound larger"
        yield equi(lambda eta: psi(v * eta) - psi(eta) + flat, np.array([eta]), "words' prior", claim, move=nonnegative)
    else:
        yield same(eta, asked_eta, "words' prior", "η as it was asked for")


def _coincidence_checks(recount, posterior, n_tokens):
    """Pull each two topics that coincide apart, and check that a few passes later they drift together again."""
    components, alpha, eta = posterior
    sizes = components.sum(axis=1)
    laws, rng = components / sizes[:, None], np.random.default_rng(0)
    used = np.flatnonzero(sizes - eta * components.shape[1] > USED * n_tokens)
    pairs = [(a, b) for a in used for b in used[used < a] if np.abs(laws[a] - laws[b]).sum() / 2 < EQUAL]
    for a, b in pairs:
        pull = SABOTAGE * rng.standard_normal(components.shape[1])
        moved, apart = components.copy(), []
        moved[a], moved[b] = moved[a] * np.exp(pull), moved[b] * np.exp(-pull)
        for _ in range(PASSES):
            apart.append(float(np.abs(moved[a] / moved[a].sum() - moved[b] / moved[b].sum()).sum()))
            moved = eta + recount(moved, alpha)[0]
        claim = "pulled apart by 1 %, the two come together again"
        yield Check(f"topics {b} and {a}", apart[-1] / max(apart[-2], TINY), 1.0, "evidence", claim)
