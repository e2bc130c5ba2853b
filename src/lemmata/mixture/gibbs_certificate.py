"""The checks of a Gibbs sampler for a mixture: every draw again from its labels, and small posteriors in full.

That a chain has converged cannot be proved from its draws. What can be proved is that the draws are what they claim to be: the
statistics kept with each are those of the rows under its labels, and log p(x, z) follows from the closed form, evaluated here
by dense algebra in the original coordinates; and that the sampler draws from the right conditionals, because these must be
ratios of that same closed form,

    P(zₙ = k | others) = p(x, z with zₙ = k) / Σⱼ p(x, z with zₙ = j).

As evidence, split R-hat compares the chains of log p(x, z): with W the mean variance within half chains of length h and B/h the
variance of their means, R̂² = (h−1)/h + (B/h)/W is near 1 where all halves tell the same story [1]. And where the Kⁿ labelings
of a small table can be listed, the posterior is known exactly: the means of log p(x, z) and of the share of pairs of rows in
the same component lie within a few standard errors of theirs, √(variance × autocorrelation time / draws).

A Dirichlet process has partitions in place of labelings; clusters are numbered by their first rows, so that each has one
labeling. Up to ten rows have few enough of them to list.

[1] Gelman et al., Bayesian Data Analysis (2013), 11.4 and 11.5.
"""

from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.diagnostics import autocorrelation_time, split_rhat
from lemmata.mixture.normal_inverse_wishart import moments

MOST_LABELINGS = 1 << 16  # of a table that is small
MOST_RHAT = 1.1  # the usual limit [1], at which the means of half chains differ by half the spread within them
MOST_ERRORS = 5.0  # standard errors by which averages may miss: by chance, once in a million
SOME_ROWS = 5  # whose conditionals are recomputed


def log_labels(counts, alpha):
    """Give log P(z), the weights integrated out, for counts (…, k)."""
    k, n = counts.shape[-1], counts.sum(axis=-1)
    return gammaln(k * alpha) - gammaln(n + k * alpha) + (gammaln(counts + alpha) - gammaln(alpha)).sum(axis=-1)


class FiniteLabelings(NamedTuple):
    """What a checker knows of labels under k Dirichlet weights."""

    alpha: float
    k: int

    def width(self, draws):
        """Give the number of components to compare."""
        return self.k

    def valid(self, draws):
        """Tell whether labels can have been drawn."""
        return draws.min() >= 0 and draws.max() < self.k

    def log_labels(self, counts):
        """Give log P(z) for counts (…, k)."""
        return log_labels(counts, self.alpha)

    def weights(self, counts):
        """Give the expected weights of the components of one labeling."""
        return (counts + self.alpha) / (counts.sum() + self.k * self.alpha)

    def closed(self, z):
        """Tell, of every row, which components it cannot join: none."""
        return np.zeros((len(z), self.k), bool)

    def listed(self, n):
        """List all labelings, or give nothing where they are too many."""
        few = max(self.k, 2) ** n <= MOST_LABELINGS  # as many labelings, and as many sets of rows
        return np.array(list(product(range(self.k), repeat=n))) if few else None


class Partitions(NamedTuple):
    """What a checker knows of partitions under a Chinese-restaurant process."""

    alpha: float

    def width(self, draws):
        """Give the number of components to compare: the clusters of the largest draw, and one without rows."""
        return int(draws.max()) + 2

    def valid(self, draws):
        """Tell whether every cluster is numbered by its first row."""
        before = np.maximum.accumulate(draws, axis=-1)[..., :-1]
        return draws.min() >= 0 and not draws[..., 0].any() and bool((draws[..., 1:] - 1 <= before).all())

    def log_labels(self, counts):
        """Give log P(partition) for counts (…, k): the first row of a cluster counts α, the m-th m − 1."""
        seats = np.concatenate([[np.log(self.alpha)], np.log(np.arange(1.0, counts.sum(axis=-1).max()))])
        paid = np.concatenate([[0.0], np.cumsum(seats)])
        n = counts.sum(axis=-1)
        everybody = np.concatenate([[0.0], np.cumsum(np.log(self.alpha + np.arange(n.max())))])
        return paid[counts].sum(axis=-1) - everybody[n]

    def weights(self, counts):
        """Give the expected weights of the clusters of one partition, and of all that is not seen yet."""
        return np.append(counts[counts > 0], self.alpha) / (counts.sum() + self.alpha)

    def closed(self, z):
        """Tell, of every row, which components it cannot join: a row that is alone has no other new one."""
        k = int(z.max()) + 2
        alone = np.bincount(z)[z] == 1
        return alone[:, None] & (np.arange(k) == k - 1)

    def listed(self, n):
        """List all partitions, or give nothing where they are too many."""
        found = np.zeros((1, 1), np.int64)
        for _ in range(n - 1):
            options = found.max(axis=1) + 2
            if options.sum() > MOST_LABELINGS:
                return None
            last = np.arange(options.sum()) - np.repeat(np.cumsum(options) - options, options)
            found = np.column_stack([np.repeat(found, options, axis=0), last])
        return found


def evaluate(X, labelings, k, prior, law):
    """Give counts, posterior means, scales, and log p(x, z), of labelings (m, n), by dense algebra."""
    found = [[moments(X[z == c]) for c in range(k)] for z in labelings]
    counts, averages, scatters = (np.array([[entry[i] for entry in line] for line in found]) for i in range(3))
    posterior = prior.after(counts, averages, scatters)
    logs = law.log_labels(counts) + prior.log_marginal(counts, averages, scatters).sum(axis=1)
    return counts, posterior.mean, posterior.scale, logs


def log_joints(X, labelings, prior, law):
    """Give log p(x, z) of many labelings (m, n) of a few rows, from the marginal densities of all sets of rows."""
    n, k = len(X), int(labelings.max()) + 1
    members = np.array(list(product([False, True], repeat=n)))
    counts, averages, scatters = (np.array(part) for part in zip(*(moments(X[rows]) for rows in members), strict=True))
    of_set = prior.log_marginal(counts, averages, scatters)
    places = 2 ** np.arange(n)[::-1]
    logs = sum(of_set[(labelings == c) @ places] for c in range(k))
    return logs + law.log_labels(np.stack([(labelings == c).sum(axis=1) for c in range(law.width(labelings))], axis=1))


def enumerate_posterior(X, k, prior, alpha):
    """List all labelings (kⁿ, n) of a few rows and their log p(x, z)."""
    law = FiniteLabelings(alpha, k)
    labelings = law.listed(len(X))
    return labelings, log_joints(X, labelings, prior, law)


def pair_share(labelings):
    """Give, for labelings (…, n), the share of pairs of different rows that have the same label; 1 where there is no pair."""
    n = labelings.shape[-1]
    if n < 2:
        return np.ones(labelings.shape[:-1])
    return sum((labelings[..., i + 1 :] == labelings[..., i, None]).sum(axis=-1) for i in range(n - 1)) / (n * (n - 1) / 2)


def standard_errors(series, values, probabilities):
    """Say by how many standard errors the mean of chains misses the exact expectation of what they are chains of."""
    mean = float(probabilities @ values)
    miss = abs(float(series.mean()) - mean)
    if miss <= 1e-9 * (1 + abs(mean)):  # rounding
        return 0.0
    alone = float(probabilities @ (values - mean) ** 2)  # the variance of a draw: no chain does better than independent draws
    variance = float(np.fmax(series.var() * autocorrelation_time(series), alone))  # alone, too, for a chain of a few draws
    return miss / np.sqrt(variance / series.size) if variance > 0 else np.inf


def certificate(model, X, prior, sampler, kept, law):
    """Check the fitted attributes of a Gibbs sampler against rows X, the prior that these lead to, and the law of labels."""
    lead, subject = (model.log_joint_.shape[0], len(kept)), repr(model)
    draws = np.asarray(model.assignments_)
    valid = draws.shape == (*lead, len(X)) and law.valid(draws)
    labels = Check("labels", 0.0 if valid else np.inf, 0.0, "proof", "every draw has a component for every row")
    if not valid:
        return Certificate(labels, subject=subject)
    k = law.width(draws)
    unit = float(np.sqrt(np.diagonal(prior.scale).max()))
    counts, means, scales, logs = evaluate(X, draws.reshape(-1, len(X)), k, prior, law)
    stored = np.asarray(model.log_joint_)[:, kept]
    miss = float(np.abs(stored.ravel() - logs).max()) / (1.0 + 1e-3 * float(np.abs(logs).max()))
    best = int(stored.argmax())
    checks = [
        labels,
        _all(
            "prior",
            "the prior is the one asked for",
            same(model.mean_prior_, prior.mean, "", "", floor=unit),
            same(model.covariance_prior_, prior.scale, "", ""),
            same(model.degrees_of_freedom_, prior.degrees_of_freedom, "", ""),
        ),
        Check("log joint", miss, SAME_LIMIT, "proof", "log p(x, z) of every draw is the closed form"),
        _all(
            "statistics",
            "every draw has the statistics of its labels",
            same(model.draw_counts_, counts.reshape(*lead, k), "", ""),
            same(model.draw_means_, means.reshape(*lead, *means.shape[1:]), "", "", floor=unit),
            same(model.draw_scales_, scales.reshape(*lead, *scales.shape[1:]), "", ""),
        ),
        _all(
            "best draw",
            "what is shown is the most probable draw",
            *_best(model, prior, best, lead, counts, means, scales, unit, law),
        ),
        Check(
            "conditionals",
            _conditional_miss(X, draws.reshape(-1, len(X))[best], prior, law, sampler),
            SAME_LIMIT,
            "proof",
            "the sampler draws from ratios of the closed form",
        ),
    ]
    rhat = split_rhat(np.asarray(model.log_joint_)[:, kept[0] :])
    if np.isfinite(rhat):
        checks.append(same(model.rhat_, rhat, "R-hat", "split R-hat of log p(x, z)"))
    if not np.isnan(rhat):
        checks.append(Check("chains", max(rhat - 1.0, 0.0), MOST_RHAT - 1.0, "evidence", "the chains agree: R-hat is near 1"))
    labelings = law.listed(len(X))
    if labelings is not None:
        checks.append(_against_all(X, draws, logs.reshape(lead), labelings, prior, law))
    return Certificate(*checks, subject=subject)


def _all(name, claim, *checks):
    """Make one check of several: the largest value counts."""
    return Check(name, max(check.value for check in checks), SAME_LIMIT, "proof", claim)


def _best(model, prior, best, lead, counts, means, scales, unit, law):
    """Compare what is shown of the best draw with that draw."""
    d, weights = means.shape[2], law.weights(counts[best])
    shown = slice(len(weights))
    covariances = scales[best] / (prior.degrees_of_freedom + counts[best] - d - 1)[:, None, None]
    chain, draw = np.unravel_index(best, lead)
    return [
        same(model.best_draw_, [chain, draw], "", ""),
        same(model.labels_, model.assignments_[chain, draw], "", "", floor=1.0),
        same(model.weights_, weights, "", ""),
        same(model.means_, means[best][shown], "", "", floor=unit),
        same(model.covariances_, covariances[shown], "", ""),
    ]


def _conditional_miss(X, z, prior, law, sampler):
    """Say by how much the conditionals of some rows miss the ratios of joint densities."""
    rows = np.unique(np.linspace(0, len(X) - 1, SOME_ROWS).astype(np.int64))
    z = z.astype(np.int32)
    closed = law.closed(z)[rows]
    k = closed.shape[1]
    variants = np.repeat(z[None], len(rows) * k, axis=0)
    variants[np.arange(len(variants)), np.repeat(rows, k)] = np.tile(np.arange(k), len(rows))
    logs = evaluate(X, variants, k, prior, law)[3].reshape(len(rows), k)
    logs[closed] = -np.inf
    ratios = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    return float(np.abs(sampler.conditionals(z, rows) - ratios).max())


def _against_all(X, draws, logs, labelings, prior, law):
    """Compare averages over the draws with those over all labelings."""
    values = log_joints(X, labelings, prior, law)
    probabilities = np.exp(values - logsumexp(values))
    errors = max(
        standard_errors(logs, values, probabilities),
        standard_errors(pair_share(draws), pair_share(labelings), probabilities),
    )
    return Check("all labelings", errors, MOST_ERRORS, "evidence", "standard errors by which averages miss the exact ones")
