"""`DirichletProcessMixture`: a mixture of Gaussians whose number is drawn with everything else, by Gibbs sampling.

`GibbsMixture` with α/K for its Dirichlet parameter has a limit as K grows. Labels lose their meaning and partitions remain: of
the K!/(K−k)! labelings of a partition into k clusters stays

    P(partition) = Γ(α)/Γ(N+α) · Πₖ α Γ(Nₖ),

the law of the Chinese-restaurant process [1, 2], and the collapsed sweep offers every row, taken out of its cluster first, the
clusters of the others and a new one:

    P(row n in cluster k | others) = Nₖ/(N − 1 + α) · t(xₙ | rows of k),
    P(row n in a new cluster | others) = α/(N − 1 + α) · t(xₙ | no rows),

each over their sum, t Student's density of a next row [3]. After each sweep, some clusters are proposed to be parted or to be
made one [4]. Before any row is seen, N rows have Σₙ α/(α + n − 1) clusters on average, about α log(1 + N/α): the number grows
with the table, slowly. The posterior of the number is that of this model, which always believes that further rows would bring
new clusters; on large tables it reports small clusters beyond the true ones [5].

[1] Ferguson, Ann. Stat. 1 (1973). [2] Antoniak, Ann. Stat. 2 (1974). [3] Neal, J. Comput. Graph. Stat. 9 (2000), algorithm 3.
[4] Dahl, Univ. of Wisconsin-Madison Tech. Report 1086 (2003). [5] Miller & Harrison, JMLR 15 (2014).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate, same
from lemmata.mixture.gibbs_certificate import Partitions
from lemmata.mixture.gibbs_mixture import GibbsMixture, whitened
from lemmata.mixture.gibbs_sampler import ProcessLabels, ProcessSampler


def expected_clusters(alpha, n_rows):
    """Give the mean number of clusters of n rows under a Chinese-restaurant process: Σₙ α/(α + n − 1)."""
    return float((alpha / (alpha + np.arange(n_rows))).sum())


class DirichletProcessMixture(GibbsMixture):
    """Draw partitions of rows, and so the number of Gaussians, from the posterior of a Dirichlet-process mixture.

    Weights of rows are not taken, as in `GibbsMixture`, of which this is the limit for many components.

    Parameters
    ----------
    alpha : Concentration: a new cluster has the odds of one with so many rows.
    mean_prior : (n_features,), where means lie before any row is seen. Default: the mean of the table.
    mean_precision : A mean is known beforehand as well as from so many rows of its cluster.
    degrees_of_freedom : Of the inverse-Wishart prior of the covariances; above n_features + 1. Default: n_features + 2.
    covariance_prior : (n_features, n_features), its scale; the expected covariance is this over (degrees_of_freedom −
        n_features − 1). Default: the diagonal of the table's variances, divided by k^(2/n_features) as if the k clusters that
        are expected of so many rows tiled it. The defaults look at the data, and are empirical choices; the number of clusters
        depends on them, so say what is known of the size of a cluster where it matters.
    n_sweeps : Sweeps of every chain, those of the burn-in among them.
    burn_in : Sweeps at the start that are forgotten. Default: half of them.
    n_chains : Chains from different starts. They run on different threads, and are the same bits on any number of them.
    random_state : Seed.
    verbose : 1 shows a progress bar. Ctrl-C ends the sampling, and what was drawn is kept.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    n_components_ : (n_chains, n_draws), number of clusters in each draw.
    assignments_ : (n_chains, n_draws, n_samples), clusters of the rows in the draws kept, numbered by their first rows.
    draw_counts_ : (n_chains, n_draws, k), rows of each cluster in each draw, k − 1 the largest number of clusters of any; after
        the clusters of a draw stand components without rows, of which the first is the one that a next row can find new.
    draw_means_, draw_scales_ : Mean and scale of the Normal-inverse-Wishart posterior of each component in each draw.
    best_draw_ : Chain and draw with the highest log p(x, partition) of all kept.
    weights_, means_, covariances_ : Posterior expectations given that draw; after its clusters comes all that is not seen yet.
    labels_ : (n_samples,), clusters in that draw.
    log_joint_, rhat_, mean_prior_, covariance_prior_, degrees_of_freedom_, n_iter_, converged_, trace_ : As in `GibbsMixture`.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [1.5], [20.0], [21.0], [23.0], [22.0]]
    >>> model = DirichletProcessMixture(alpha=0.5, random_state=0).fit(X)
    >>> model.labels_
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> numbers, probabilities = model.n_components_distribution()
    >>> int(numbers[probabilities.argmax()])
    2
    >>> model.certify(X)["all labelings"].claim
    'standard errors by which averages miss the exact ones'
    >>> model.certify(X).holds
    True
    """

    _advice = "Raise n_sweeps, or give a covariance_prior nearer to the clusters that are meant."
    _parameter_constraints = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "mean_prior": ["array-like", None],
        "mean_precision": [Interval(Real, 0, None, closed="neither")],
        "degrees_of_freedom": [Interval(Real, 0, None, closed="neither"), None],
        "covariance_prior": ["array-like", None],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        mean_prior=None,
        mean_precision=0.01,
        degrees_of_freedom=None,
        covariance_prior=None,
        n_sweeps=1000,
        burn_in=None,
        n_chains=2,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.alpha = alpha
        self.mean_prior = mean_prior
        self.mean_precision = mean_precision
        self.degrees_of_freedom = degrees_of_freedom
        self.covariance_prior = covariance_prior
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.n_chains = n_chains
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def n_components_distribution(self):
        """Give numbers of clusters, and the probability of each: its share of the draws kept."""
        check_is_fitted(self)
        numbers, times = np.unique(self.n_components_, return_counts=True)
        return numbers, times / times.sum()

    def _supposed(self, n_rows):
        return expected_clusters(self.alpha, n_rows)

    def _sampler(self, blocks, prior):
        Y = whitened(blocks, prior)
        start = min(int(np.ceil(self._supposed(len(Y)) - 1e-9)), len(Y))  # which is 1 for one row, but for rounding
        return ProcessSampler(Y, start, self.alpha, prior.mean_precision, prior.degrees_of_freedom)

    def _label_type(self, n_rows):
        return np.min_scalar_type(-n_rows)

    def _attributes(self, sampler, prior, state):
        found = super()._attributes(sampler, prior, state)
        return {"n_components_": found["assignments_"].max(axis=2).astype(np.int64) + 1, **found}

    def _width(self, draws):
        return int(draws.max()) + 2

    def _odds(self, counts):
        return ProcessLabels(self.alpha).odds(counts)

    def _seen(self, shares):
        return shares[:, :-1]  # two rows that are new need not be in the same new cluster

    def certify(self, X, y=None):
        """Recompute every draw that was kept from its partition alone; on small tables, compare with the exact posterior."""
        checks = super().certify(X)
        numbers = np.asarray(self.assignments_).max(axis=2).astype(np.int64) + 1
        counted = same(self.n_components_, numbers, "clusters", "the number of clusters is that of the partition")
        return Certificate(*checks, counted, subject=checks.subject)

    def _labelings(self):
        return Partitions(self.alpha)
