"""`StochasticEM`: a Gaussian mixture fitted by EM whose E-step draws.

Where EM weighs every row by its posterior P(k|x), stochastic EM draws its component from the posterior, as Gibbs sampling does,
and the M-step is that of labeled data: with the indicators I(zᵢ = k), or their means over L draws, in place of the
responsibilities, πₖ = Nₖ/n, μₖ is the mean of the rows of k and Σₖ their covariance plus the floor. The expectation of the
drawn indicators is the responsibility, and their error about 1/√L of one, so as L → ∞ this is EM. With L = 1 the parameters
never come to rest: they wander, as a Markov chain, around a maximum of the likelihood (and leave poor ones), and their mean
after a burn-in is the estimate [1]. Its distance to the maximum is a matter of the length of the chain and of 1/n.

The running form changes the parameters after every single row: a row that moves from component a to b takes with it

    πₐ −= 1/n,  π_b += 1/n,   sₐ −= x,  s_b += x,   μₖ = sₖ/(n πₖ),

and the scatter follows by one rank (`gibbs_kernels`). The sums are then always exactly those of the labels.

A component without rows has πₖ = 0 and would never get any again; one with fewer rows than its covariance has dimensions
shrinks onto them for good. Either is seeded anew, at the rows nearest to one drawn at random, and how often is counted.

[1] Celeux & Diebolt, Comput. Stat. Q. 2 (1985); Nielsen, Bernoulli 6 (2000).
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster import KMeans
from lemmata.core.certificate import SAME_LIMIT, TINY, Certificate, Check, same
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.mixture import gibbs_kernels
from lemmata.mixture.gaussian import GaussianModel, Table, as_matrices
from lemmata.mixture.gaussian_certificate import bayes, soundness
from lemmata.mixture.gaussian_kernels import KINDS, posterior_block
from lemmata.mixture.gaussian_mixture import GaussianMixture

RUNNING = 10.0  # deviations that are allowed where parameters run along with single rows: these pull them to where they are


def draw_shares(posterior, n_draws, rng):
    """Draw components of every row n_draws times; give the share (n, k) of draws that fell on each."""
    return rng.multinomial(n_draws, posterior) / n_draws


def statistics(X, shares, means, kind):
    """Give what the M-step of a Gaussian mixture wants: counts and moments about the old means, by shares."""
    k, d = means.shape
    first, second = np.zeros((k, d)), np.zeros({"full": (k, d, d), "diag": (k, 1, d)}.get(kind, (k, 1, 1)))
    for c, mean in enumerate(means):
        rows = shares[:, c] > 0
        away, share = X[rows] - mean, shares[rows, c]
        first[c] = share @ away
        if kind == "full":
            second[c] = (share[:, None] * away).T @ away
        elif kind == "diag":
            second[c, 0] = share @ away**2
        elif kind == "spherical":
            second[c, 0, 0] = float(share @ (away**2).sum(axis=1))
    return 0.0, shares.sum(axis=0), first, second


def reseed(shares, X, least, n_rows, rng):
    """Give components with less than `least` the rows nearest to one drawn at random; return how many, in place.

    Distances are in the units of X. A component that loses rows to another may be next, so this ends after as many turns as
    there are components.
    """
    for turn in range(shares.shape[1]):
        poor = np.flatnonzero(shares.sum(axis=0) < least)
        if not len(poor):
            return turn
        center = X[rng.integers(len(X))]
        nearest = np.argsort(((X - center) ** 2).sum(axis=1), kind="stable")[:n_rows]
        shares[nearest] = np.eye(shares.shape[1])[poor[0]]
    return shares.shape[1]


class StochasticEM(GaussianMixture):
    """Fit a sum of Gaussian densities by EM with drawn components.

    Weights of rows are not taken: a row is drawn into one component, and a row repeated is two rows, which may part.

    Parameters
    ----------
    n_components : Number of Gaussians.
    n_draws : Draws of every row in a sweep, of which the mean is taken; many make it EM.
    running : Whether parameters follow after every row that moves (by running counts), not only after every sweep.
    covariance_type : "full" (a matrix for each component), "tied" (one for all), "diag" or "spherical".
    reg_covar : Added to every variance, in squared units of X.
    n_sweeps : Sweeps over the rows, those of the burn-in among them.
    burn_in : Sweeps at the start that do not enter the mean. Default: half of them.
    random_state : Seed of the start (k-means) and of the draws.
    verbose : 1 shows a progress bar. Ctrl-C ends the sweeps, and what was drawn is kept.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    weights_, means_, covariances_ : Means of the parameters over the sweeps after the burn-in. Components keep their numbers
        along one chain, unless they overlap so much that they change places.
    chain_weights_, chain_means_, chain_covariances_ : The parameters after each of these sweeps.
    precisions_, precisions_cholesky_ : Inverses of the covariances, and upper triangles U with precision UUᵀ.
    lower_bound_ : Mean log-likelihood of a row under the means of the parameters.
    reseeded_ : How often a component ran out of rows and was seeded anew.
    n_iter_ : Sweeps.
    converged_ : Whether all sweeps were made.
    trace_ : Mean log-likelihood before each sweep; it goes up and down.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> model = StochasticEM(2, random_state=0).fit(X)
    >>> order = model.means_[:, 0].argsort()
    >>> model.weights_[order].round(3), model.means_[order, 0].round(3), model.covariances_[order, 0, 0].round(3)
    (array([0.429, 0.571]), array([ 1., 13.]), array([0.667, 5.   ]))
    >>> print(model.certify(X))
    StochasticEM(n_components=2, random_state=0): certificate holds (evidence)
      check           value     limit  kind      claim
      parameters      ...e... ≤ 1e-06  proof     weights are probabilities, covariances symmetric with an inverse
      averages        ...e... ≤ 1e-06  proof     parameters are the means over the sweeps kept
      log-likelihood  ...e... ≤ 1e-06  proof     the mean log-density of the rows
      EM step         ...e... ≤ 1e+00  evidence  deviations of the chain by which an EM step would move weights or means
    """

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "running": ["boolean"],
        "covariance_type": [StrOptions(set(KINDS))],
        "reg_covar": [Interval(Real, 0, None, closed="neither")],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "burn_in": [Interval(Integral, 0, None, closed="left"), None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        n_draws=1,
        running=False,
        covariance_type="full",
        reg_covar=1e-6,
        n_sweeps=200,
        burn_in=None,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.n_draws = n_draws
        self.running = running
        self.covariance_type = covariance_type
        self.reg_covar = reg_covar
        self.n_sweeps = n_sweeps
        self.burn_in = burn_in
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @property
    def max_iter(self):
        """Sweeps are the iterations."""
        return self.n_sweeps

    @property
    def reseeded_(self):
        """How often a component ran out of rows."""
        return self._reseeded

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = False  # a draw needs the whole row
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Fit to rows X, which may also be a Parquet path, a Dask table, or an iterator of blocks; they are held in memory."""
        blocks = self._blocks(X, reset=True, order="C")
        if blocks.n_rows < self.n_components:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_components={self.n_components}.")
        if self.burn_in is not None and self.burn_in >= self.n_sweeps:
            raise ValueError(f"burn_in={self.burn_in} leaves nothing of n_sweeps={self.n_sweeps}; lower it or sweep more.")
        if self.running and self.n_draws > 1:
            raise ValueError(f"running=True moves one row at a time, which n_draws={self.n_draws} draws of it cannot: set 1.")
        with serial_blas(), self._fitting(blocks, X=X, y=y) as fitting:
            model = GaussianModel(self.covariance_type, self.reg_covar, Table(blocks))
            sweeps = _Sweeps(self, model, np.asarray(blocks.map(gibbs_kernels.rows_block)))
            run = fitting.iterate(
                sweeps.step,
                sweeps.start(blocks, X),
                tol=0.0,
                monotone="up",  # only so that the last state counts, not the best:
                rounding=np.inf,  # the likelihood may go either way
                name="stochastic EM",
                fitted=self._averages,
            )
            for name, value in self._averages(run.state).items():
                setattr(self, name, value)
            self._reseeded = run.state[5]
            self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
            self.lower_bound_ = self._score(blocks)[1]
        self._report(model.table, model.collapsed((self.weights_, self.means_, self.covariances_)))
        return self

    def fit_predict(self, X, y=None):
        """Fit, and give each row its most probable component."""
        return self.fit(X).predict(X)

    def _burn_in(self):
        return self.n_sweeps // 2 if self.burn_in is None else self.burn_in

    def _averages(self, state):
        """Turn a state into fitted attributes; while the burn-in is not over, the last sweep counts."""
        done, parameters, _, _, chain, _ = state
        kept = [part[: done - self._burn_in()] for part in chain] if done > self._burn_in() else [p[None] for p in parameters]
        names = "weights_", "means_", "covariances_"
        averages = {name: part.mean(axis=0) for name, part in zip(names, kept, strict=True)}
        return averages | {f"chain_{name}": part for name, part in zip(names, kept, strict=True)}

    def certify(self, X, y=None):
        """Recompute the averages and their likelihood; say how far a step of EM would go beside what chance does."""
        blocks = self._checked(X)
        subject = repr(self)
        sound = soundness(self.weights_, self.covariances_, self.covariance_type)
        if not sound.holds:
            return Certificate(sound, subject=subject)
        lowers = np.linalg.cholesky(as_matrices(self.covariances_, self.covariance_type, *self.means_.shape))
        rows = np.asarray(blocks.map(gibbs_kernels.rows_block))
        posterior, density = bayes(rows, self.weights_, self.means_, lowers)
        chain = self.chain_weights_, self.chain_means_, self.chain_covariances_
        misses = [
            same(stored, np.mean(part, axis=0), "", "", floor=0.0).value
            for stored, part in zip((self.weights_, self.means_, self.covariances_), chain, strict=True)
        ]
        counts, chance = np.maximum(posterior.sum(axis=0), TINY), posterior * (1.0 - posterior) / self.n_draws
        away = rows[:, None] - self.means_
        means = self.means_ + np.einsum("nk,nkd->kd", posterior, away) / counts[:, None]
        spread = np.sqrt(np.einsum("nk,nkd->kd", chance, away**2)) / counts[:, None]
        wanders = [
            _wanders(self.chain_weights_, counts / len(rows) - self.weights_, np.sqrt(chance.sum(axis=0)) / len(rows)),
            _wanders(self.chain_means_, means - self.means_, spread),
        ]
        claim = "deviations of the chain by which an EM step would move weights or means"
        return Certificate(
            sound,
            Check("averages", max(misses), SAME_LIMIT, "proof", "parameters are the means over the sweeps kept"),
            same(self.lower_bound_, float(density.mean()), "log-likelihood", "the mean log-density of the rows", floor=1e-3),
            Check("EM step", max(wanders), RUNNING if self.running else 1.0, "evidence", claim),
            subject=subject,
        )


class _Sweeps:
    """The steps of stochastic EM.

    A state holds the sweeps done, the parameters, the labels (used when they run), the generator, the parameters after every
    sweep that counts, and how often a component was seeded anew.
    """

    def __init__(self, estimator, model, X):
        self.estimator, self.model, self.X = estimator, model, X
        n, d = X.shape
        self.units = (X - model.table.mean) / model.scale
        needed = {"full": d + 1, "tied": 1, "diag": 2, "spherical": 2}[model.kind]  # rows, for variance in every direction
        self.least = min(needed, n // estimator.n_components)
        self.seeded = min(2 * needed, n // estimator.n_components)

    def start(self, blocks, X):
        """Begin with the clusters of k-means, which sees the table as it was given: in the same blocks."""
        estimator, k = self.estimator, self.estimator.n_components
        rng = generator(estimator.random_state)
        clusters = KMeans(k, random_state=int(rng.integers(2**31 - 1))).fit(X)
        parameters = self.model.around(blocks, clusters.cluster_centers_.astype(float))
        kept = estimator.n_sweeps - estimator._burn_in()
        chain = tuple(np.zeros((kept, *part.shape)) for part in parameters)
        return 0, parameters, clusters.labels_.astype(np.int32), rng, chain, 0

    def step(self, state):
        """Draw, seed anew what ran out of rows, and take the M-step."""
        done, parameters, z, rng, chain, reseeded = state
        model, k = self.model, self.estimator.n_components
        posterior, density = posterior_block(self.X, None, model.prepare(parameters))
        if self.estimator.running:
            z = z.copy()
            d = self.X.shape[1]
            counts = np.zeros(k, np.int64), np.zeros((k, d)), np.zeros((k, d, d))
            rows = self.X - model.table.mean
            gibbs_kernels.running_sweep(rows, z, rng.random(len(z)), KINDS[model.kind], model.floor, *counts)
            shares = np.eye(k)[z]
        else:
            shares = draw_shares(posterior, self.estimator.n_draws, rng)
        reseeded += reseed(shares, self.units, self.least, self.seeded, rng)
        z = shares.argmax(axis=1).astype(np.int32)
        parameters = model.m_step(statistics(self.X, shares, parameters[1], model.kind), parameters)
        place = done - self.estimator._burn_in()
        if place >= 0:
            for part, value in zip(chain, parameters, strict=True):
                part[place] = value
        done += 1
        residual = 0.0 if done == self.estimator.n_sweeps else np.inf
        return (done, parameters, z, rng, chain, reseeded), float(density.mean()), residual


def _wanders(chain, steps, spread):
    """Say by how many standard deviations of a chain any entry would move; one sweep's draws alone have at least `spread`."""
    worst = 0.0
    for series, step, alone in zip(chain.reshape(len(chain), -1).T, np.ravel(steps), np.ravel(spread), strict=True):
        if abs(step) > 1e-9 * np.abs(series).max():  # more than rounding
            deviation = max(float(series.std()), float(alone))
            worst = max(worst, abs(float(step)) / deviation if deviation > 0 else np.inf)
    return worst
