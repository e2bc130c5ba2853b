"""What a Gibbs sampler for a Gaussian mixture moves: components of rows, with everything else integrated out or drawn in turn.

The law of the labels comes from the prior of the weights. Dirichlet(α, …, α) weights of K components, integrated out, give

    P(z) = Γ(Kα)/Γ(N+Kα) Πₖ Γ(Nₖ+α)/Γ(α),        odds of a next row: Nₖ + α for each of the K.

With α/K in place of α, and labels forgotten, K → ∞ leaves the Chinese-restaurant process: partitions of the rows into clusters,

    P(partition) = Γ(α)/Γ(N+α) Πₖ α Γ(Nₖ),        odds of a next row: Nₖ for each cluster, α for a new one [1].

Clusters are numbered 0, 1, … in the order of their first rows, so that a partition has one labeling, and the one component
without rows that can be joined comes after the last of them. A sweep row by row seldom parts a cluster or makes one of two, so
these are proposed whole, and accepted as Metropolis and Hastings would [2].

[1] Neal, J. Comput. Graph. Stat. 9 (2000), algorithm 3. [2] Dahl, Univ. of Wisconsin-Madison Tech. Report 1086 (2003).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from lemmata.cluster import lloyd
from lemmata.cluster.seeding import draw_centers
from lemmata.mixture import gibbs_kernels as kernels
from lemmata.mixture.gaussian import components_of
from lemmata.mixture.gaussian_kernels import posterior_block
from lemmata.mixture.normal_inverse_wishart import NormalInverseWishart, student_constant

PASSES = 10  # of k-means, before the first sweep: what they leave undone, sweeps do
PROPOSALS = 5  # to part a cluster or to make one of two, in each sweep: row by row, neither happens often
ROOM = 8  # components without rows that a sweep has at first, beyond as many again as there are clusters


class DirichletLabels(NamedTuple):
    """Labels under k weights that are Dirichlet(α, …, α), integrated out."""

    alpha: float
    k: int

    def odds(self, counts):
        """Give the odds (…, k) that a next row joins each component."""
        return counts + self.alpha

    def log_term(self, count):
        """Give what a component of so many rows adds to log P(z)."""
        return gammaln(count + self.alpha) - gammaln(self.alpha)

    def log_constant(self, n):
        """Give what n rows in all add to log P(z)."""
        return gammaln(self.k * self.alpha) - gammaln(n + self.k * self.alpha)


class ProcessLabels(NamedTuple):
    """Labels under the Chinese-restaurant process: of the components without rows, only the first can be joined."""

    alpha: float

    def odds(self, counts):
        """Give the odds (…, k) that a next row joins each component."""
        empty = counts == 0
        return np.where(empty, self.alpha * (empty & (np.cumsum(empty, axis=-1) == 1)), counts)

    def log_term(self, count):
        """Give what a component of so many rows adds to log P(z)."""
        return np.where(count > 0, np.log(self.alpha) + gammaln(np.maximum(count, 1)), 0.0)

    def log_constant(self, n):
        """Give what n rows in all add to log P(z)."""
        return -np.log(self.alpha + np.arange(n)).sum()  # a difference of log-gammas has no digits left where α is large


class Sampler:
    """Sweeps over the rows of a table, in coordinates in which the prior has the mean 0 and the scale I.

    Parameters
    ----------
    Y : (n, d), rows in these coordinates.
    k, alpha : Number of components and their Dirichlet parameter.
    mean_precision, degrees_of_freedom : Of the Normal-inverse-Wishart prior.
    method : "collapsed" or "uncollapsed".
    """

    def __init__(self, Y, k, alpha, mean_precision, degrees_of_freedom, method):
        self.k, self.alpha, self.method = k, alpha, method
        self._prepare(Y, DirichletLabels(alpha, k), mean_precision, degrees_of_freedom)

    def _prepare(self, Y, labels, mean_precision, degrees_of_freedom):
        self.Y, self.labels = Y, labels
        self.kappa, self.nu = float(mean_precision), float(degrees_of_freedom)
        n, d = Y.shape
        count = np.arange(n + 1.0)
        kappa, nu = self.kappa + count, self.nu + count
        # What a component of so many rows adds to log P(z) and to the log-density of one row more …
        self.table = np.log(labels.odds(count[:, None])[:, 0]) + student_constant(kappa, nu, d)
        # … and to log p(x, z), but for the determinant.
        marginal = multigammaln(0.5 * nu, d) - multigammaln(0.5 * self.nu, d) + 0.5 * d * np.log(self.kappa / kappa)
        self.joint = labels.log_term(count) + marginal - 0.5 * d * np.log(np.pi) * count
        self.constant = labels.log_constant(n)

    def statistics(self, z, k=None):
        """Sum the statistics of all components: counts, sums, means, factors, reciprocals of diagonals, half determinants."""
        k, d = self.k if k is None else k, self.Y.shape[1]
        found = np.zeros(k, np.int64), np.zeros((k, d)), np.zeros((k, d)), np.zeros((k, d, d)), np.zeros((k, d)), np.zeros(k)
        kernels.gather(self.Y, z, self.kappa, *found)
        return found

    def start(self, rng):
        """Give every row to the nearest of k means, after a few passes of k-means: a chain seldom leaves a poor start."""
        centers = self.Y[draw_centers(self.Y, self.k, rng)]
        for _ in range(PASSES):
            z = lloyd.nearest(self.Y, lloyd.scoring_of(centers))[0].astype(np.int32)
            counts, sums, *_ = Sampler.statistics(self, z, self.k)
            centers = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centers)
        return z

    def sweep(self, z, rng):
        """Draw all components anew, in place; return log p(x, z) in these coordinates."""
        statistics = self.statistics(z)
        if self.method == "collapsed":
            uniforms = rng.random(len(z))
            kernels.collapsed_sweep(self.Y, z, uniforms, self.kappa, self.nu, self.table, *statistics)
        else:
            weights = rng.dirichlet(self.alpha + statistics[0])
            means, covariances = self.posterior(statistics).draw(rng)
            components = components_of(weights, means, covariances, "full", np.zeros(self.Y.shape[1]))
            kernels.choose(posterior_block(self.Y, None, components)[0], rng.random(len(z)), z)
        return self.log_joint(z)

    def log_joint(self, z):
        """Give log p(x, z) in these coordinates."""
        counts, *_, halves = self.statistics(z)
        return float(self.constant + (self.joint[counts] - (self.nu + counts) * halves).sum())

    def conditionals(self, z, rows):
        """Give P(row is in each component | all other rows) of some rows."""
        statistics = self.statistics(z)
        logs = np.empty((len(rows), len(statistics[0])))
        kernels.conditional_rows(self.Y, z, rows, self.kappa, self.nu, self.table, *statistics, logs)
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def posterior(self, statistics):
        """Give the Normal-inverse-Wishart posterior of all components."""
        counts, _, means, factors, *_ = statistics
        lower = np.tril(factors)
        return NormalInverseWishart(means, self.kappa + counts, lower @ np.swapaxes(lower, 1, 2), self.nu + counts)


class ProcessSampler(Sampler):
    """Sweeps over partitions: the collapsed sampler with the labels of a Chinese-restaurant process.

    Parameters
    ----------
    Y : (n, d), rows in coordinates in which the prior has the mean 0 and the scale I.
    k : Number of clusters that a chain starts from.
    alpha : Concentration of the process.
    mean_precision, degrees_of_freedom : Of the Normal-inverse-Wishart prior.
    """

    def __init__(self, Y, k, alpha, mean_precision, degrees_of_freedom):
        self.k = k
        self._prepare(Y, ProcessLabels(alpha), mean_precision, degrees_of_freedom)

    def statistics(self, z, k=None):
        """Sum the statistics of all clusters and, unless told how many, of one component without rows."""
        return super().statistics(z, int(z.max()) + 2 if k is None else k)

    def start(self, rng):
        """Give every row to the nearest of k means."""
        z = super().start(rng)
        kernels.renumber(z, np.empty(self.k, np.int32))
        return z

    def sweep(self, z, rng):
        """Draw the cluster of every row anew, in place; return log p(x, z) in these coordinates."""
        uniforms, row = rng.random(len(z)), 0
        while row < len(z):  # again from the row for which there was no component without rows left
            statistics = self.statistics(z, min(2 * (int(z.max()) + 1) + ROOM, len(z) + 1))
            row = kernels.process_sweep(self.Y, z, uniforms, row, self.kappa, self.nu, self.table, *statistics)
        for _ in range(PROPOSALS if len(z) > 1 else 0):
            i, j = rng.choice(len(z), 2, replace=False)
            order, uniforms = rng.permutation(len(z)), rng.random(len(z) + 1)
            kernels.split_or_merge(self.Y, z, i, j, order, uniforms, self.kappa, self.nu, self.table, self.joint)
        kernels.renumber(z, np.empty(int(z.max()) + 1, np.int32))
        return self.log_joint(z)

    def conditionals(self, z, rows):
        """Give P(row is in each cluster, or in a new one | all other rows); a row that is alone is in a new one already."""
        found = super().conditionals(z, rows)
        found[np.bincount(z)[z[rows]] == 1, -1] = 0.0
        return found / found.sum(axis=1, keepdims=True)
