"""`GaussianHMM`: a hidden Markov model whose states emit Gaussian rows.

`gaussian_emissions` states the law of a row in a state, `baum_welch` the fit, `recursions` inference, `certificate` the checks.
If all rows of the transition matrix are equal, the model is a Gaussian mixture.
"""

from numbers import Real

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster import KMeans, lloyd
from lemmata.hmm.gaussian_emissions import FittedGaussians, GaussianChecker, GaussianLaw
from lemmata.hmm.hidden_markov import CONSTRAINTS, HiddenMarkovModel
from lemmata.mixture.gaussian import Table, as_matrices
from lemmata.mixture.gaussian_kernels import KINDS
from lemmata.mixture.missing import Filled


class GaussianHMM(HiddenMarkovModel):
    """Fit a hidden Markov model with Gaussian emissions to sequences.

    Parameters
    ----------
    n_components : Number of states.
    covariance_type : "diag", "full" (a matrix for each state), "tied" (one for all) or "spherical".
    min_covar : Added to every variance, in squared units of X, so that no state can collapse altogether.
    startprob_prior, transmat_prior : Parameters of Dirichlet priors, at least 1: a number, or one for each probability. 1 is
        none; a larger diagonal of transmat_prior makes states sticky.
    covars_prior : Scale Ψ of an inverse-Wishart prior of the covariances: a number (times I) or an array in their shape.
    covars_weight : Rows w that the prior counts for; 0 is no prior.
    startprob_init, transmat_init, means_init, covars_init : Given starts. A probability of 0 stays 0. What is not given comes
        from the clusters of k-means, and the steps between them.
    fixed : What stays as it starts, of "startprob", "transmat", "means" and "covars".
    n_iter : Passes over the rows at most.
    tol : Stop when a plain step changes the mean log-likelihood of a row (with its share of the log-prior) by no more.
    n_init : Runs from different starts, of which the best is kept.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM, which are hmmlearn's.
    random_state : Seed. The same seed gives the same bits for any number of threads.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    startprob_ : (n_components,), probabilities of the first state.
    transmat_ : (n_components, n_components), of the next state given this one.
    means_ : (n_components, n_features)
    covars_ : (n_components, n_features), (n_components, n_features, n_features), (n_features, n_features) or
        (n_components,), by type.
    lower_bound_ : Mean log-likelihood of a row under the fitted parameters.
    restarts_ : (n_init,), what each run reached.
    n_iter_ : Passes of the best run.
    converged_ : Whether it met tol.
    trace_ : Mean log-likelihood of a row, with its share of the log-prior, at each pass of the best run.

    Examples
    --------
    >>> X = [[0.1], [-0.2], [0.0], [5.1], [4.8], [5.0], [5.2], [0.2], [-0.1], [0.1], [4.9], [5.1]]
    >>> model = GaussianHMM(2, random_state=0).fit(X)
    >>> model.means_[model.predict(X), 0].round(1)
    array([0., 0., 0., 5., 5., 5., 5., 0., 0., 0., 5., 5.])
    >>> log_prob, path = model.decode(X)
    >>> bool((path == model.predict(X)).all())
    True
    >>> model.certify(X).holds
    True
    """

    fixable = ("startprob", "transmat", "means", "covars")
    _parameter_constraints = CONSTRAINTS | {
        "covariance_type": [StrOptions(set(KINDS))],
        "min_covar": [Interval(Real, 0, None, closed="left")],
        "covars_prior": ["array-like", Interval(Real, 0, None, closed="left"), None],
        "covars_weight": [Interval(Real, 0, None, closed="left")],
        "means_init": ["array-like", None],
        "covars_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        covariance_type="diag",
        min_covar=1e-6,
        startprob_prior=1.0,
        transmat_prior=1.0,
        covars_prior=None,
        covars_weight=0.0,
        startprob_init=None,
        transmat_init=None,
        means_init=None,
        covars_init=None,
        fixed=(),
        n_iter=10_000,
        tol=1e-10,
        n_init=1,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.min_covar = min_covar
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.covars_prior = covars_prior
        self.covars_weight = covars_weight
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.means_init = means_init
        self.covars_init = covars_init
        self.fixed = fixed
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _shape(self, d):
        k = self.n_components
        return {"full": (k, d, d), "tied": (d, d), "diag": (k, d), "spherical": (k,)}[self.covariance_type]

    def _law(self, sequences):
        return GaussianLaw(
            self.covariance_type,
            self.min_covar,
            Table(sequences.rows()),
            self.n_components,
            self._scatter(sequences.n_columns),
            float(self.covars_weight),
        )

    def _scatter(self, d):
        """Give Ψ in the shape of the covariances."""
        shape, scale = self._shape(d), np.asarray(0.0 if self.covars_prior is None else self.covars_prior, dtype=float)
        if self.covars_weight > 0 and self.covars_prior is None:
            raise ValueError("covars_weight counts rows of a prior, and there is none: give covars_prior.")
        if scale.ndim == 0:
            return scale * (np.broadcast_to(np.eye(d), shape) if self.covariance_type in ("full", "tied") else np.ones(shape))
        if scale.shape != shape:
            raise ValueError(f"covars_prior must be a number or have the shape {shape}, got {scale.shape}.")
        return scale

    def _drawn(self, law, sequences, rng):
        """Take what was given, and the rest from the clusters of k-means among rows whose holes are filled."""
        k, d, rows = self.n_components, sequences.n_columns, sequences.rows()
        means, covariances = self._given("means_init", (k, d)), self._given("covars_init", self._shape(d))
        if law.table.holes:
            rows = rows.with_columns(Filled(law.table.mean), d)
        X = rows.take(np.arange(rows.n_rows))[0]
        centers = means
        if centers is None:
            centers = KMeans(k, random_state=int(rng.integers(2**31 - 1))).fit(X).cluster_centers_.astype(float)
        weights, around, spread = law.around(rows, centers)
        guessed = None
        if means is None and hasattr(sequences, "lengths"):
            guessed = lloyd.nearest(np.ascontiguousarray(X), lloyd.scoring_of(centers))[0]
        found = weights, around if means is None else means, spread if covariances is None else covariances
        return found, guessed

    def _given(self, name, shape):
        """Check a start that was given."""
        if getattr(self, name) is None:
            return None
        found = np.array(getattr(self, name), dtype=float)
        if found.shape != shape or not np.isfinite(found).all():
            raise ValueError(f"{name} must hold finite numbers in the shape {shape}, got the shape {found.shape}.")
        return found

    def _fitted_law(self):
        k, d = self.n_components, self.n_features_in_
        for name, shape in (("means_", (k, d)), ("covars_", self._shape(d))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return FittedGaussians(self.covariance_type, k, self.means_.mean(axis=0)), self._stored()

    def _stored(self):
        return np.asarray(self.means_, dtype=float), np.asarray(self.covars_, dtype=float)

    def _checker(self):
        k, d = self.means_.shape
        given = {"means": self._given("means_init", (k, d)), "covars": self._given("covars_init", self._shape(d))}
        given = {name: value for name, value in given.items() if name in self.fixed and value is not None}
        return GaussianChecker(self.covariance_type, self.min_covar, self._scatter(d), float(self.covars_weight), given)

    def _attributes_of_law(self, parameters):
        _, means, covariances = parameters
        return {"means_": means, "covars_": covariances}

    def _n_parameters_of_law(self):
        k, d = self.means_.shape
        free = {"full": k * d * (d + 1) // 2, "tied": d * (d + 1) // 2, "diag": k * d, "spherical": k}[self.covariance_type]
        return ("means" not in self.fixed) * k * d + ("covars" not in self.fixed) * free

    def _emit(self, state, n, rng):
        k, d = self.means_.shape
        lower = np.linalg.cholesky(as_matrices(self.covars_, self.covariance_type, k, d)[state])
        return self.means_[state] + rng.standard_normal((n, d)) @ lower.T

    def _emissions(self, states):
        """Give mean and covariance of a mixture of the states, for each row of their probabilities."""
        matrices = as_matrices(self.covars_, self.covariance_type, *self.means_.shape)
        means = states @ self.means_
        away = self.means_ - means[:, None]
        return means, np.einsum("tk,kij->tij", states, matrices) + np.einsum("tk,tki,tkj->tij", states, away, away)
