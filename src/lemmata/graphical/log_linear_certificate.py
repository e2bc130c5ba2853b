"""The certificate of log-linear models: moments of the data against moments of the model.

The penalized log-likelihood F(w) = Σ log P(x; w) − ½ l2 ‖w‖² is concave, so a vanishing gradient

    g = moments of the rows − n · moments of the model − l2 w

proves a maximum; and with l2 > 0 it says how far that is at most: F* − F(w) ≤ ‖g‖² / (2 l2). The model's moments come from all
its states, one by one, where these are few; else from a junction tree, compiled anew, whose own certificate says it is exact.

Weights from Gibbs sampling are near a maximum only. With the covariance C of the features, F* − F(w) ≈ ½ gᵀ(nC + l2)⁻¹g; chance
alone, in n rows, leaves ½ for each weight open. The evidence is that the first is small in proportion to the second. Where no
tree can be compiled, the moments come from chains that start anew, and what their own error explains is taken off.
"""

from math import prod

import numpy as np

from lemmata.core.certificate import EQUI_LIMIT, SABOTAGE, SAME_LIMIT, TINY, Check, free, gap, length, same
from lemmata.graphical.factor import enumerate_joint
from lemmata.graphical.log_linear_fit import Chains, TreeMoments

FEW = 1 << 14  # states that are listed
ENTRIES = 1 << 22  # of a tree that is worth compiling for evidence
DRAWS = 4000  # of all variables, for the covariance of features
SWEEPS = 400  # of each of so many chains
CHAINS = 50
SHARE = 0.1  # of the ½ that chance leaves open for each weight: it adds 5 % to the standard errors


def plain_moments(terms, w):
    """Give log Z and the marginals over all scopes by listing all states."""
    factors = terms.factors(w)
    joint = enumerate_joint(factors, terms.variables).as_log()
    law = joint.normalized()
    return joint.total(), np.concatenate([np.exp(law.marginal(factor.variables).values).ravel() for factor in factors])


def moments_of(terms):
    """Choose how moments are recomputed: a function of weights that gives (log Z, marginals)."""
    if prod(int(card) for card in terms.graph[0]) <= FEW:
        return lambda w: plain_moments(terms, w)
    by_tree = TreeMoments(terms)
    return lambda w: by_tree(terms.matrix @ w)


def exact_checks(terms, w, counts, total, l2, stored):
    """Prove that the moments match, and bound what other weights could gain."""
    moments = moments_of(terms)

    def gradient(v):
        log_z, expected = moments(v)
        return log_z, terms.matrix.T @ (counts - total * expected) - l2 * v

    log_z, here = gradient(w)
    log_likelihood = float(counts @ (terms.matrix @ w)) - total * log_z
    rng = np.random.default_rng(0)
    there = []
    for _ in range(3):  # a median needs no fewer
        moved = terms.flat([free(part, rng) for part in terms.shaped(w)])
        there.append(gradient(moved)[1] - here)
    worst, at = 0.0, 0
    for part in terms.shaped(w):
        span = slice(at, at + part.size)
        at += part.size
        if part.any():  # 1 % of nothing is nothing
            scale = max(float(np.median([length(d[span]) for d in there])), TINY)
            worst = max(worst, SABOTAGE * length(here[span]) / scale)
    size = max(length(terms.matrix.T @ counts), total * np.sqrt(np.finfo(float).eps))
    checks = [
        Check(
            "moments",
            length(here) / size,
            SAME_LIMIT,
            "proof",
            "the model has the moments of the rows, less the penalty's pull",
        ),
        Check("weights", worst, EQUI_LIMIT, "proof", "the gradient vanishes, and the likelihood is concave"),
    ]
    if l2 > 0:
        value = -log_likelihood + l2 / 2 * float(w @ w)
        null = total * float(np.log(terms.graph[0]).sum())
        claim = "no weights have a higher penalized likelihood by more than this share"
        checks.append(gap(value, value - length(here) ** 2 / (2 * l2), null, claim))
    if stored is not None:
        checks.append(same(stored, log_likelihood, "log-likelihood", "the sum over the rows, recomputed", floor=1e-3))
    return checks


def sampled_checks(terms, w, counts, total, l2, stored):
    """Give evidence that the maximum is near, in proportion to what the rows leave open."""
    data = terms.matrix.T @ counts
    try:
        moments = TreeMoments(terms, max_entries=ENTRIES)
    except ValueError:
        expected, covariance, noise = sampled_moments(terms, w)
    else:
        expected = terms.matrix.T @ moments(terms.matrix @ w)[1]
        covariance, noise = drawn_covariance(terms, w), 0.0
    slope = data - total * expected - l2 * w
    information = total * covariance + l2 * np.eye(len(w))
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)  # directions in which nothing depends on the weights
    rank = int(np.linalg.matrix_rank(information, tol=1e-9 * np.trace(information), hermitian=True))
    explained = 0.0 if np.ndim(noise) == 0 else float(np.trace(inverse @ noise)) * total**2
    value = max(float(slope @ inverse @ slope) - explained, 0.0) / max(rank, 1)
    claim = "the maximum is nearer than chance in the rows would tell, by this share"
    return [Check("moments", value, SHARE, "evidence", claim)]


def features_of(terms, rows):
    """Give the features of rows of numbers of states."""
    cards, scope_starts, scopes, table_starts = terms.graph
    out = np.zeros((len(rows), terms.n_weights))
    for m in range(len(scope_starts) - 1):
        place = np.zeros(len(rows), dtype=np.int64)
        for v in scopes[scope_starts[m] : scope_starts[m + 1]]:
            place = place * cards[v] + rows[:, v]
        out += (terms.matrix[table_starts[m] : table_starts[m + 1]]).toarray()[place]
    return out


def drawn_covariance(terms, w):
    """Estimate the covariance of features from independent draws."""
    from lemmata.graphical.factor_graph import FactorGraph
    from lemmata.graphical.junction_tree import JunctionTree

    graph = FactorGraph(terms.factors(w), {name: terms.states[name] for name in terms.variables})
    rows = JunctionTree(graph).sample(DRAWS, np.random.default_rng(0))
    return np.atleast_2d(np.cov(features_of(terms, rows).T))


def sampled_moments(terms, w):
    """Estimate mean and covariance of features, and the covariance of the error of the mean, from chains that start anew."""
    walkers = Chains(terms, w, CHAINS, np.random.default_rng(0))
    walkers.sweep(w, SWEEPS // 2)
    drawn = np.array([walkers.sweep(w, same=True) for _ in range(SWEEPS)])
    each = drawn.mean(axis=0)
    covariance = np.atleast_2d(np.cov(drawn.reshape(-1, terms.n_weights).T))
    return each.mean(axis=0), covariance, np.atleast_2d(np.cov(each.T)) / CHAINS
