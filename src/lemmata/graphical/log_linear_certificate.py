"""The certificate of log-linear models: moments of the data against moments of the model.

The penalized log-likelihood F(w) = Σ log P(x; w) − ½ l2 ‖w‖² is concave, so a vanishing gradient

    g = moments of the rows − n · moments of the model − l2 w

proves a maximum; and with l2 > 0 it says how far that is at most: F* − F(w) ≤ ‖g‖² / (2 l2). Without a penalty there may be
none, and the gradient may be small because everything goes to a limit. An argument of Bach's [1] tells: third derivatives of
log Z are no more than the second times the range R of the features, so where curvature is at least μ in all directions on which
anything depends, and λ is Newton's decrement, both of the mean over rows, then λ R < √μ says that F falls in the end in every
direction: there is a maximum.

The model's moments come from all
its states, one by one, where these are few; else from a junction tree, compiled anew, whose own certificate says it is exact.

Weights from Gibbs sampling are near a maximum only. With the covariance C of the features, F* − F(w) ≈ ½ gᵀ(nC + l2)⁻¹g; chance
alone, in n rows, leaves ½ for each weight open. The evidence is that the first is small in proportion to the second. Where no
tree can be compiled, the moments come from chains that start anew, and what their own error explains is taken off.

Which directions of weights anything depends on is seen from interactions: a function of some variables is, in one way only, a
sum of functions f_S over subsets S of them whose mean over the states of any variable of S is 0 [2]. Those of different subsets
are orthogonal; weights change nothing, but for a constant, exactly where all their interactions over S ≠ ∅ vanish.

[1] Bach, Electronic Journal of Statistics 4 (2010), on functions that are self-concordant but for a norm.
[2] Lauritzen, Graphical Models (1996), Appendix B.2.
"""

from itertools import chain, combinations
from math import prod

import numpy as np

from lemmata.core.certificate import EQUI_LIMIT, SABOTAGE, SAME_LIMIT, TINY, Check, free, gap, length, same
from lemmata.graphical.factor import enumerate_joint
from lemmata.graphical.log_linear_fit import SHARE, Chains, TreeMoments, spread

FEW = 1 << 14  # states that are listed
ENTRIES = 1 << 22  # of a tree that is worth compiling for evidence
DRAWS = 4000  # of all variables, for the covariance of features
SWEEPS, MANY = 400, 10_000  # of each of so many chains, at least and at most
CHAINS = 50
SURE = 4.0  # standard deviations of the chains' own error
DIRECTIONS = 512  # in which curvature is looked at, at most
SMALL = 1e-3  # change of the logarithms by which a derivative is taken
FLAT = 1e-11  # share of the largest curvature below which rounding may be all there is
EQUAL = 1e-10  # share of the largest eigenvalue below which it is 0
INSIDE = 0.5  # limit of λ R / √μ; below 1 there is a maximum


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
    else:
        checks.append(existence(terms, w, moments, here / total, terms.extremes(counts, total)))
    if stored is not None:
        checks.append(same(stored, log_likelihood, "log-likelihood", "the sum over the rows, recomputed", floor=1e-3))
    return checks


def subsets(scope):
    """List the subsets of a scope that are not empty.

    >>> list(subsets((1, 3)))
    [(1,), (3,), (1, 3)]
    """
    return list(chain.from_iterable(combinations(scope, k) for k in range(1, len(scope) + 1)))


def interaction(table, kept):
    """Give the interaction of the kept axes of a table; further axes at the end stay.

    >>> interaction(np.array([[1.0, 2.0], [3.0, 8.0]]), (True, True))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    for axis, stays in enumerate(kept):
        mean = table.mean(axis=axis, keepdims=True)
        table = table - mean if stays else mean
    return table


def products(terms, chosen, full=frozenset()):
    """Sum the inner products of the interactions of chosen weights, but for those over subsets that are full."""
    parts, matrix = {}, terms.matrix[:, chosen]
    for m, (a, b) in enumerate(zip(terms.graph[3][:-1], terms.graph[3][1:], strict=True)):
        scope = terms.graph[2][terms.graph[1][m] : terms.graph[1][m + 1]].tolist()
        block, wanted = matrix[a:b], [some for some in subsets(sorted(scope)) if some not in full]
        own = np.unique(block.indices)
        if not wanted or not len(own):
            continue
        table = block[:, own].toarray().reshape(*terms.graph[0][scope], len(own))
        for some in wanted:
            found = interaction(table, [v in some for v in scope]).transpose(*np.argsort(scope), len(scope))
            parts.setdefault(some, []).append((own, found.reshape(-1, len(own))))
    out = np.zeros((len(chosen), len(chosen)))
    for found in parts.values():
        columns = np.unique(np.concatenate([own for own, _ in found]))
        whole = np.zeros((len(found[0][1]), len(columns)))
        for own, table in found:
            whole[:, np.searchsorted(columns, own)] += table
        out[np.ix_(columns, columns)] += whole.T @ whole
    return out


def n_dimensions(terms):
    """Count the dimensions that the features span, constants aside; an indicator has all interactions within its scope."""
    numbers, cards = {name: i for i, name in enumerate(terms.variables)}, terms.graph[0]
    ends = np.cumsum([0, *(prod(shape) for shape in terms.shapes)])
    full, rest = set(), []
    for (scopes, table), first, last in zip(terms.features, ends[:-1], ends[1:], strict=True):
        if table is None and len(scopes) == 1:
            full.update(subsets(sorted(numbers[name] for name in scopes[0])))
        else:
            rest.extend(range(first, last))
    values = np.linalg.eigvalsh(products(terms, rest, full)) if rest else np.zeros(1)
    return sum(prod(int(cards[v]) - 1 for v in some) for some in full) + int((values > EQUAL * values[-1]).sum())


def told_apart(terms):
    """Give an orthonormal basis, in columns, of the directions of weights on which the distribution depends."""
    values, vectors = np.linalg.eigh(products(terms, np.arange(terms.n_weights)))
    return vectors[:, values > EQUAL * values[-1]]


def existence(terms, w, moments, slope, extremes):
    """Check that there is a maximum at all."""
    if extremes.any():
        return Check("maximum", np.inf, INSIDE, "proof", "no feature is at the border of what it can be in all rows")
    if terms.n_weights > DIRECTIONS:
        return Check(
            "maximum", 0.0, INSIDE, "evidence", "no feature is at the border; their combinations are too many to check"
        )
    basis = told_apart(terms)
    logs, spans = terms.matrix @ basis, terms.layout.table_starts
    ranges = np.maximum.reduceat(logs, spans[:-1]) - np.minimum.reduceat(logs, spans[:-1])  # factors × directions
    curvature = np.empty((basis.shape[1],) * 2)
    for k, largest in enumerate(np.abs(logs).max(axis=0)):
        by = SMALL / largest * basis[:, k]
        curvature[:, k] = logs.T @ (moments(w + by)[1] - moments(w - by)[1]) * (largest / (2 * SMALL))
    values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
    claim = "curvature outweighs the slope that is left, in all directions: there is a maximum"
    if not len(values) or values[0] <= FLAT * values[-1]:
        return Check("maximum", np.inf if len(values) else 0.0, INSIDE, "proof", claim)
    decrement = length((vectors.T @ (basis.T @ slope)) / np.sqrt(values))
    return Check("maximum", decrement * length(ranges.sum(axis=0)) / float(np.sqrt(values[0])), INSIDE, "proof", claim)


def sampled_checks(terms, w, counts, total, l2, stored):
    """Give evidence that the maximum is near, in proportion to what the rows leave open."""
    data = terms.matrix.T @ counts
    try:
        moments = TreeMoments(terms, max_entries=ENTRIES)
    except ValueError:
        expected, covariance, noise = sampled_moments(terms, w, total)
    else:
        expected = terms.matrix.T @ moments(terms.matrix @ w)[1]
        covariance, noise = drawn_covariance(terms, w), 0.0
    slope = data - total * expected - l2 * w
    information = total * covariance + l2 * np.eye(len(w))
    inverse = np.linalg.pinv(information, rcond=1e-9, hermitian=True)  # directions in which nothing depends on the weights
    rank = int(np.linalg.matrix_rank(information, tol=1e-9 * np.trace(information), hermitian=True))
    explained = 0.0 if np.ndim(noise) == 0 else float(np.trace(inverse @ noise)) * total**2
    rank = max(rank, 1)
    value = max(float(slope @ inverse @ slope) - explained, 0.0) / rank
    limit = SHARE + SURE * np.sqrt(2 / rank) * explained / rank  # the spread of what chains explain
    claim = "the maximum is nearer than chance in the rows would tell, by this share"
    checks = [Check("moments", value, limit, "evidence", claim)]
    if l2 == 0:
        ends = float(terms.extremes(counts, total).sum())
        checks.append(Check("maximum", ends, 0.0, "evidence", "no feature is at the border of what it can be in all rows"))
    return checks


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


def sampled_moments(terms, w, total):
    """Estimate mean and covariance of features, and the covariance of the error of the mean, from chains that start anew.

    They go on the longer the more rows there are, because these leave less open.
    """
    n_sweeps = int(np.clip(20 * total / CHAINS, SWEEPS, MANY))
    walkers = Chains(terms, w, CHAINS, np.random.default_rng(0))
    walkers.sweep(w, SWEEPS // 2)
    sums, squares, every = 0.0, 0.0, n_sweeps // SWEEPS
    for t in range(n_sweeps):
        phi = walkers.sweep(w, same=True)
        sums = sums + phi
        if t % every == 0:
            squares = squares + spread(phi, terms.n_weights)
    each = sums / n_sweeps
    covariance = squares / len(range(0, n_sweeps, every)) * CHAINS / (CHAINS - 1)
    return each.mean(axis=0), covariance, np.atleast_2d(np.cov(each.T)) / CHAINS
