"""`GibbsMixture`: the posterior of a Gaussian mixture, by Gibbs sampling.

The weights of K components are Dirichlet(α, …, α), the mean and covariance of each Normal-inverse-Wishart (see
`normal_inverse_wishart`), the component zₙ of row xₙ is drawn with these weights and the row from its component. With
everything but z integrated out,

    p(x, z) = Γ(Kα)/Γ(N+Kα) Πₖ Γ(Nₖ+α)/Γ(α) · Πₖ p(rows of k),

p(rows of k) the marginal density under the prior. A collapsed sweep draws each zₙ in turn given all others,

    P(zₙ = k | others) = (Nₖ + α)/(N − 1 + Kα) · t(xₙ | rows of k),   row n taken out of Nₖ and of the rows of k first,

t Student's density of a next row. (With row n counted in, or with point estimates in place of the integrals, this is no
conditional of any joint distribution, and the long-run frequencies are not those of the posterior.) An uncollapsed sweep draws
the weights given z, then the means and covariances, then all zₙ at once. Both leave p(z|x) as it is; the collapsed one needs
fewer sweeps [1, 2].

Relabeling the components changes nothing in p(x, z), so over all time P(zₙ = k) = 1/K for every row: averages of anything that
knows a component by its number say nothing, and within finite time they say how often labels happened to switch. What is
averaged here is free of numbers: log p(x, z), the density of a next row, and whether two rows share a component. Components
with numbers are shown for a single draw, that with the highest p(x, z).

[1] Neal, J. Comput. Graph. Stat. 9 (2000). [2] Liu, J. Am. Stat. Assoc. 89 (1994).
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from scipy.special import logsumexp
from sklearn.base import DensityMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core import config, threads
from lemmata.core.diagnostics import split_rhat
from lemmata.core.estimator import Estimator, Iterative, as_output
from lemmata.core.random import generator, spawn
from lemmata.mixture import gibbs_kernels as kernels
from lemmata.mixture.gaussian import Table, inverse_factors
from lemmata.mixture.gibbs_certificate import MOST_RHAT, FiniteLabelings, certificate
from lemmata.mixture.gibbs_sampler import DirichletLabels, Sampler
from lemmata.mixture.normal_inverse_wishart import NormalInverseWishart, students

MOST_LABELS = 1 << 26  # kept in all; beyond, only every second, third, … draw is kept
MOST_ROWS = 1 << 13  # for which the similarities of all pairs take half a GiB
WORTH_THREADS = 50_000  # rows × components of a sweep that takes longer than it takes to start a thread


def to_prior_block(X, weight, mean, factor):
    """Give rows in coordinates in which the prior has the mean 0 and the scale I."""
    return (X - mean) @ factor.T


def whitened(blocks, prior):
    """Give all rows of a table in these coordinates."""
    with threads.serial_blas():
        factor = inverse_factors(prior.scale[None], "full")[0]
        return np.ascontiguousarray(blocks.map(to_prior_block, prior.mean, factor))


class GibbsMixture(DensityMixin, Iterative, Estimator):
    """Draw the components of rows from the posterior of a Gaussian mixture.

    Weights of rows are not taken: each row has a component of its own, and a row repeated is two rows, which may part.

    Parameters
    ----------
    n_components : Number of Gaussians.
    method : "collapsed" (weights, means and covariances integrated out) or "uncollapsed" (drawn in turn).
    alpha : Parameter of the symmetric Dirichlet prior of the weights; below 1 it favors components without rows.
    mean_prior : (n_features,), where means lie before any row is seen. Default: the mean of the table.
    mean_precision : A mean is known beforehand as well as from so many rows of its component.
    degrees_of_freedom : Of the inverse-Wishart prior of the covariances; above n_features + 1, so that a covariance has an
        expectation. Default: n_features + 2.
    covariance_prior : (n_features, n_features), its scale; the expected covariance is this over (degrees_of_freedom −
        n_features − 1). Default: the diagonal of the table's variances, divided by n_components^(2/n_features) as if
        components tiled it; a column that does not vary gets the mean variance of the others, or 1. The defaults look at the
        data, and are empirical choices, not anybody's belief.
    n_sweeps : Sweeps of every chain, those of the burn-in among them.
    burn_in : Sweeps at the start that are forgotten. Default: half of them.
    n_chains : Chains from different starts. They run on different threads, and are the same bits on any number of them.
    random_state : Seed.
    verbose : 1 shows a progress bar. Ctrl-C ends the sampling, and what was drawn is kept.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    log_joint_ : (n_chains, n_sweeps), log p(x, z) after every sweep.
    rhat_ : Split R-hat of log_joint_ after the burn-in: near 1 where the chains agree, NaN for fewer than 4 sweeps. Above 1.1
        the fit warns and its certificate is refused.
    assignments_ : (n_chains, n_draws, n_samples), components of the rows in the draws kept: all after the burn-in or, where
        these would be more than 2²⁶ labels (of 1 byte for up to 127 components), every second, third, … of them.
    draw_counts_ : (n_chains, n_draws, n_components), rows of each component in each draw.
    draw_means_, draw_scales_ : Mean and scale of the Normal-inverse-Wishart posterior of each component in each draw.
    best_draw_ : Chain and draw with the highest log p(x, z) of all kept.
    weights_, means_, covariances_ : Posterior expectations given that draw.
    labels_ : (n_samples,), components in that draw.
    mean_prior_, covariance_prior_, degrees_of_freedom_ : The prior that was used.
    n_iter_ : Sweeps.
    converged_ : Whether all sweeps were made; what the chains have to say is in rhat_.
    trace_ : Mean of log p(x, z) over the chains after every sweep.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [10.0], [11.0], [13.0]]
    >>> model = GibbsMixture(2, random_state=0).fit(X)
    >>> model.similarity()[0].round(1)  # with whom the first row shares a component
    array([1., 1., 1., 0., 0., 0.])
    >>> print(model.certify(X))
    GibbsMixture(n_components=2, random_state=0): certificate holds (evidence)
      check          value     limit  kind      claim
      labels         0.0e+00 ≤ 0e+00  proof     every draw has a component for every row
      prior          0.0e+00 ≤ 1e-06  proof     the prior is the one asked for
      log joint      ...e... ≤ 1e-06  proof     log p(x, z) of every draw is the closed form
      statistics     ...e... ≤ 1e-06  proof     every draw has the statistics of its labels
      best draw      ...e... ≤ 1e-06  proof     what is shown is the most probable draw
      conditionals   ...e... ≤ 1e-06  proof     the sampler draws from ratios of the closed form
      R-hat          ...e... ≤ 1e-06  proof     split R-hat of log p(x, z)
      chains         ...e... ≤ 1e-01  evidence  the chains agree: R-hat is near 1
      all labelings  ...e... ≤ 5e+00  evidence  standard errors by which averages miss the exact ones
    """

    generative = True
    _advice = "Raise n_sweeps, or lower n_components."
    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "method": [StrOptions({"collapsed", "uncollapsed"})],
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
        n_components=1,
        *,
        method="collapsed",
        alpha=1.0,
        mean_prior=None,
        mean_precision=0.01,
        degrees_of_freedom=None,
        covariance_prior=None,
        n_sweeps=500,
        burn_in=None,
        n_chains=2,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.method = method
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

    @property
    def max_iter(self):
        """Sweeps are the iterations."""
        return self.n_sweeps

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Draw from the posterior given rows X. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, reset=True, order="C")
        if self.burn_in is not None and self.burn_in >= self.n_sweeps:
            raise ValueError(f"burn_in={self.burn_in} leaves nothing of n_sweeps={self.n_sweeps}; lower it or sweep more.")
        prior = self._prior(blocks)
        sampler = self._sampler(blocks, prior)
        n, chains = blocks.n_rows, range(self.n_chains)
        n_threads = min(config.n_threads(), self.n_chains) if n * self._supposed(n) >= WORTH_THREADS else 1

        def step(state):
            done, z, rngs, trace, draws = state
            z, place = z.copy(), np.searchsorted(kept, done)

            def work(chain):
                trace[chain, done] = sampler.sweep(z[chain], rngs[chain])

            threads.run(work, chains, n_threads)
            if place < len(kept) and kept[place] == done:
                draws[:, place] = z
            done += 1
            return (done, z, rngs, trace, draws), trace[:, done - 1].mean(), 0.0 if done == self.n_sweeps else np.inf

        kept = self._kept(self.n_sweeps, n)
        with threads.serial_blas(), self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(
                step,
                self._start(sampler, len(kept)),
                tol=0.0,
                monotone="up",  # only so that the last state counts, not the best:
                rounding=np.inf,  # log p(x, z) may go either way
                name="Gibbs sampling",
                fitted=lambda state: self._attributes(sampler, prior, state),
            )
            for name, value in self._attributes(sampler, prior, run.state).items():
                setattr(self, name, value)
            self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        if self.rhat_ > MOST_RHAT:
            warnings.warn(
                f"The chains tell different stories (R-hat = {self.rhat_:.3g}, above {MOST_RHAT}): these are not yet draws "
                f"from the posterior. {self._advice}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _supposed(self, n_rows):
        """Give the number of components before any row is seen."""
        return self.n_components

    def _prior(self, blocks):
        """Check the prior that was given; take what is missing from the table."""
        d, table = blocks.n_columns, Table(blocks)
        mean = table.mean if self.mean_prior is None else np.array(self.mean_prior, dtype=float)
        degrees = d + 2.0 if self.degrees_of_freedom is None else float(self.degrees_of_freedom)
        if self.covariance_prior is None:
            scale = np.diag(_variances(table)) / self._supposed(blocks.n_rows) ** (2.0 / d)
        else:
            scale = np.array(self.covariance_prior, dtype=float)
        if mean.shape != (d,) or not np.isfinite(mean).all():
            raise ValueError(f"mean_prior must hold {d} finite numbers, one for each column, got the shape {mean.shape}.")
        if not degrees > d + 1:
            raise ValueError(f"degrees_of_freedom must be above n_features + 1 = {d + 1}, got {degrees:g}.")
        if scale.shape != (d, d) or not np.allclose(scale, scale.T) or not (np.linalg.eigvalsh(scale) > 0).all():
            raise ValueError(f"covariance_prior must be a symmetric positive definite matrix of the shape {(d, d)}.")
        return NormalInverseWishart(mean, float(self.mean_precision), scale, degrees)

    def _sampler(self, blocks, prior):
        """Give the sampler for the rows of a table."""
        Y = whitened(blocks, prior)
        return Sampler(Y, self.n_components, self.alpha, prior.mean_precision, prior.degrees_of_freedom, self.method)

    def _start(self, sampler, n_draws):
        """Give the state before the first sweep: sweeps done, components of the rows, generators, log p(x, z), draws."""
        rngs = spawn(generator(self.random_state), self.n_chains)
        z = np.stack([sampler.start(rng) for rng in rngs])
        trace = np.zeros((self.n_chains, self.n_sweeps))
        trace[:, 0] = [sampler.log_joint(labels) for labels in z]  # so that not even the first sweep needs to be made
        return 0, z, rngs, trace, np.zeros((self.n_chains, n_draws, z.shape[1]), self._label_type(z.shape[1]))

    def _label_type(self, n_rows):
        """Give the smallest type of signed integers that can number the components."""
        return np.min_scalar_type(-self.n_components)

    def _kept(self, done, n_rows):
        """Give the numbers of the sweeps, of those done, whose draws are kept; while the burn-in is not over, the last."""
        burn_in = self.n_sweeps // 2 if self.burn_in is None else self.burn_in
        spacing = -(-self.n_chains * (self.n_sweeps - burn_in) * n_rows // MOST_LABELS)
        return np.arange(burn_in, done, spacing) if done > burn_in else np.array([done - 1])

    def _attributes(self, sampler, prior, state):
        """Turn a state into fitted attributes."""
        done, z, _, trace, draws = state
        trace = trace[:, : max(done, 1)] - z.shape[1] * _half_determinant(prior.scale)
        kept = self._kept(trace.shape[1], z.shape[1])
        draws = draws[:, : len(kept)] if done > self._kept(self.n_sweeps, z.shape[1])[0] else z[:, None].astype(draws.dtype)
        lead = draws.shape[:2]
        lower = np.linalg.cholesky(prior.scale)
        counts, means, scales = [], [], []
        for labels in draws.reshape(-1, z.shape[1]):
            statistics = sampler.statistics(labels.astype(np.int32), self._width(draws))
            posterior = sampler.posterior(statistics)
            counts.append(statistics[0])
            means.append(prior.mean + posterior.mean @ lower.T)
            scales.append(lower @ posterior.scale @ lower.T)
        best = int(np.argmax(trace[:, kept]))
        weights = sampler.labels.odds(counts[best]) / sampler.labels.odds(counts[best]).sum()
        shown = weights > 0
        own = counts[best][shown]
        found = NormalInverseWishart(
            means[best][shown], self.mean_precision + own, scales[best][shown], prior.degrees_of_freedom + own
        )
        return {
            "log_joint_": trace,
            "rhat_": split_rhat(trace[:, kept[0] :]),
            "assignments_": draws,
            "draw_counts_": np.reshape(counts, (*lead, *counts[0].shape)),
            "draw_means_": np.reshape(means, (*lead, *means[0].shape)),
            "draw_scales_": np.reshape(scales, (*lead, *scales[0].shape)),
            "weights_": weights[shown],
            "means_": found.mean,
            "covariances_": found.scale / (found.degrees_of_freedom - prior.mean.size - 1)[:, None, None],
            "best_draw_": np.array(np.unravel_index(best, lead)),
            "labels_": draws.reshape(-1, z.shape[1])[best].astype(np.int64),
            "mean_prior_": prior.mean,
            "covariance_prior_": prior.scale,
            "degrees_of_freedom_": prior.degrees_of_freedom,
        }

    def _students(self, draw=None):
        """Give the components of one draw, or of all, each with its share of the density of a next row."""
        counts, means, scales = self._draws()
        chosen = slice(None) if draw is None else slice(draw, draw + 1)
        odds = self._odds(counts[chosen])
        can = odds > 0
        own = counts[chosen][can]
        posteriors = NormalInverseWishart(
            means[chosen][can], self.mean_precision + own, scales[chosen][can], self.degrees_of_freedom_ + own
        )
        shares = odds / odds.sum(axis=1, keepdims=True) / len(odds)
        return students(posteriors, np.log(shares[can]), self.mean_prior_)

    def _draws(self):
        """Give counts, means and scales of all draws, whatever their chain."""
        return tuple(part.reshape(-1, *part.shape[2:]) for part in (self.draw_counts_, self.draw_means_, self.draw_scales_))

    def _odds(self, counts):
        """Give the odds (…, k) that a next row joins each component."""
        return DirichletLabels(self.alpha, self.n_components).odds(counts)

    def _width(self, draws):
        """Give the number of components to keep statistics of."""
        return self.n_components

    def _best(self):
        """Give the number, among the draws of all chains, of the one with the highest log p(x, z)."""
        return int(np.ravel_multi_index(self.best_draw_, self.assignments_.shape[:2]))

    def _checked(self, X):
        check_is_fitted(self)
        return self._blocks(X, reset=False, order="C")

    def fit_predict(self, X, y=None):
        """Fit, and give each row its component in the draw with the highest log p(x, z)."""
        return self.fit(X).labels_

    def predict(self, X):
        """Give each row its most probable component as a next row, given the draw with the highest log p(x, z)."""
        return self._posterior(self._checked(X), self._best()).argmax(axis=1)

    def predict_proba(self, X):
        """Give the probability of each component for each row as a next row, given the draw with the highest log p(x, z)."""
        blocks = self._checked(X)
        return as_output(self._posterior(blocks, self._best()), blocks.dtype)

    def _posterior(self, blocks, draw):
        logs = blocks.map(kernels.student_block, self._students(draw))
        return np.exp(logs - logsumexp(logs, axis=1, keepdims=True))

    def score_samples(self, X):
        """Give the log-density of each row as a next row, averaged over all draws kept."""
        blocks = self._checked(X)
        return as_output(blocks.map(kernels.total_block, self._students()), blocks.dtype)

    def score(self, X, y=None):
        """Give the mean log-density of the rows, each as a next row."""
        return float(np.mean(self.score_samples(X), dtype=float))

    def similarity(self, X=None):
        """Give the probability that two rows share a component, for all pairs.

        Of the rows of the fit it is the share of draws kept in which they do; of rows X, the mean probability, given a draw,
        that two different rows would as next rows.
        """
        check_is_fitted(self)
        n = self.assignments_.shape[2] if X is None else (blocks := self._checked(X)).n_rows
        if n > MOST_ROWS:
            raise ValueError(f"The similarities of all pairs of {n:,} rows do not fit; give at most {MOST_ROWS:,} rows.")
        total, draws = np.zeros((n, n)), self.assignments_.reshape(-1, self.assignments_.shape[2])
        for i, labels in enumerate(draws):
            if X is None:
                total += labels[:, None] == labels
            else:
                shares = self._seen(self._posterior(blocks, i))
                total += shares @ shares.T
        total /= len(draws)
        np.fill_diagonal(total, 1.0)
        return total

    def _seen(self, shares):
        """Take, of the probabilities of components, those of components that two rows can share."""
        return shares

    def sample(self, n_samples=1):
        """Draw next rows from the posterior; return them and their components, by the number each has in its draw."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng, (counts, means, scales) = generator(self.random_state), self._draws()
        draws = rng.integers(len(counts), size=n_samples)
        odds = np.cumsum(self._odds(counts[draws]), axis=1)
        components = (odds <= rng.random((n_samples, 1)) * odds[:, -1:]).sum(axis=1)
        own = counts[draws, components]
        posterior = NormalInverseWishart(
            means[draws, components],
            self.mean_precision + own,
            scales[draws, components],
            self.degrees_of_freedom_ + own,
        )
        means, covariances = posterior.draw(rng)
        lower = np.linalg.cholesky(covariances)
        return means + np.einsum("nij,nj->ni", lower, rng.standard_normal(means.shape)), components

    def certify(self, X, y=None):
        """Recompute every draw that was kept from its labels alone; on small tables, compare with the exact posterior."""
        blocks = self._checked(X)
        prior = self._prior(blocks)
        kept = self._kept(self.log_joint_.shape[1], self.assignments_.shape[2])
        rows = np.asarray(blocks.map(kernels.rows_block))
        return certificate(self, rows, prior, self._sampler(blocks, prior), kept, self._labelings())

    def _labelings(self):
        return FiniteLabelings(self.alpha, self.n_components)


def _half_determinant(scale):
    return float(np.log(np.diagonal(np.linalg.cholesky(scale))).sum())


def _variances(table):
    """Give the variance of each column; where there is none but rounding, the mean of the others, or 1."""
    variances = np.diagonal(table.covariance).copy()
    rounding = 4 * np.finfo(float).eps * np.abs(table.mean)
    varies = variances > rounding**2
    variances[~varies] = variances[varies].mean() if varies.any() else 1.0
    return variances
