"""The proof of Gaussian beliefs: means that solve Jμ = h, and J put together again from the covariances (see `gaussian`)."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import splu

from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, length, same
from lemmata.graphical.gaussian_factor import LOG_2PI, Problem, block_of, spans

CONDITION = 8 * np.finfo(float).eps  # rounding of an inverse, for each unit of its condition number
LOOSEST = 1e-3  # a tenth of the sabotage that must be refused, however bad the condition


def certify_moments(beliefs):
    """Check means, covariances and log Z against the factors; all numbers in units of 1/√J of their entry."""
    problem, bags, marginals = Problem(beliefs.graph, beliefs.evidence), beliefs.bags, beliefs.marginals
    names, sizes = list(problem.sizes), problem.sizes
    at, n = spans(names, sizes), sum(sizes.values())
    h, parts, mean = np.zeros(n), ([], [], []), np.zeros(n)
    for factor in problem.factors:
        index = _index(factor.variables, at)
        h[index] += factor.information
        _add(parts, index, factor.precision)
    J = _sparse(parts, n)
    scale = np.sqrt(np.maximum(J.diagonal(), TINY))
    J = J.multiply(1 / scale[:, None]).multiply(1 / scale[None, :]).tocsc()
    for name in names:
        mean[at[name]] = marginals[name].mean[problem.free[name]] * scale[at[name]]
    log_det, worst, apart, found = 0.0, 1.0, 0.0, ([], [], [])
    for name, (rest, covariance) in bags.items():
        index, d = _index((name, *rest), at), sizes[name]
        unit = covariance * np.outer(scale[index], scale[index])
        values = np.linalg.eigvalsh(unit)
        worst = max(worst, float(values[-1] / values[0])) if values[0] > 0 else np.inf
        for part, sign in ((slice(None), 1.0), (slice(d, None), -1.0)):
            log_det += sign * np.linalg.slogdet(unit[part, part])[1]
            _add(found, index[part], sign * np.linalg.inv(unit[part, part]))
        if rest:  # the separator is seen from the next bag as well
            onward = block_of(bags[rest[0]][1], (rest[0], *bags[rest[0]][0]), rest, sizes)
            units = np.outer(scale[index[d:]], scale[index[d:]])
            apart = max(apart, length((covariance[d:, d:] - onward) * units) / max(length(onward * units), TINY))
    off = length((_sparse(found, n) - J).data) / max(length(J.data), TINY) if worst < np.inf else np.inf
    limit = min(max(SAME_LIMIT, CONDITION * worst), LOOSEST)
    step = splu(J).solve(h / scale - J @ mean) if n else mean
    wrong = max((length(step[at[v]]) / max(length(mean[at[v]]), 1.0) for v in names), default=0.0)
    terms = np.array([factor.log_constant for factor in problem.factors])
    log_z = terms.sum() + 0.5 * (h / scale @ mean + n * LOG_2PI + log_det) - np.log(scale).sum()
    error = abs(beliefs.log_partition - log_z) / max(1.0, abs(log_z))
    # Far from 0, in units of deviations, the terms of the exponent are large and cancel: c is −½ bᵀR⁻¹b of a conditional.
    canceled = np.abs(terms).sum() + np.abs(mean) @ (abs(J) @ np.abs(mean))
    digits = max(limit, CONDITION * canceled / max(1.0, abs(log_z)))
    return Certificate(
        Check("tree", _faults(bags, names), 0, "proof", "every variable is in neighboring bags, and in its own"),
        Check("means", wrong, limit, "proof", "they solve J mean = h, to this part of themselves or of a deviation"),
        Check("separators", apart, limit, "proof", "neighboring bags agree on what they share"),
        Check("covariances", off, limit, "proof", "the bags' inverses, less the separators', are J: one covariance does that"),
        same(*_marginals(problem, bags, marginals, scale, at), "marginals", "they are read in the bags, or seen"),
        Check("log partition", float(error), float(digits), "proof", "it follows from J, h and the determinants of the bags"),
        subject="Gaussian factor graph",
    )


def _add(parts, index, block):
    """Add a block to the rows, columns and entries of a sparse matrix."""
    rows, columns, entries = parts
    rows.append(np.repeat(index, len(index)))
    columns.append(np.tile(index, len(index)))
    entries.append(np.ravel(block))


def _sparse(parts, n):
    rows, columns, entries = (np.concatenate(part) if part else np.empty(0) for part in parts)
    return coo_array((entries, (rows.astype(int), columns.astype(int))), shape=(n, n)).tocsr()


def _index(names, at):
    return np.concatenate([np.arange(at[name].start, at[name].stop) for name in names]) if names else np.empty(0, dtype=int)


def _faults(bags, names):
    """Count variables without a bag, and bags that do not hang together: the next bag must come later and hold all the rest."""
    place = {name: i for i, name in enumerate(bags)}
    faults = len(set(names) ^ set(bags))
    for name, (rest, _) in bags.items():
        if rest and rest[0] in bags:
            faults += place[rest[0]] <= place[name] or not set(rest) <= {rest[0], *bags[rest[0]][0]}
    return faults


def _marginals(problem, bags, marginals, scale, at):
    """Give the covariances of all variables, and those of their bags; and what is seen, twice."""
    stored, found = [np.empty(0)], [np.empty(0)]
    for name, (mean, covariance) in marginals.items():
        free, value = problem.free[name], problem.values[name]
        truth, unit = np.zeros(covariance.shape), np.ones(len(value))
        if len(free):
            truth[np.ix_(free, free)] = bags[name][1][: len(free), : len(free)]
            unit[free] = scale[at[name]]
        seen = np.delete(np.arange(len(value)), free)
        stored += [np.ravel(covariance * np.outer(unit, unit)), mean[seen]]
        found += [np.ravel(truth * np.outer(unit, unit)), value[seen]]
    return np.concatenate(stored), np.concatenate(found)
