"""`LinearGaussianModel`: a state that moves linearly with noise, seen through a matrix with noise.

    s_t = C s_{t−1} + B u_t + e_t,  e_t ~ N(0, Q)        s₀ ~ N(m₀, P₀), before the first row
    x_t = D s_t + E u_t + v_t,      v_t ~ N(0, V)        t = 1, …, T

States and rows are jointly normal, so every question has an exact answer: the filter gives p(s_t | x₁ … x_t), the smoother
p(s_t | x₁ … x_T), and the chain rule p(x) = Π p(x_t | x before), whose factors are normal with the innovations of the filter's
predictions. Missing entries (NaN) are left out of the product. `kernels` has the recursions, `em` the fit.
Certificate: the smoothed states minimize a strictly convex quadratic, whose normal equations are block-tridiagonal; their
residual, selected inversion and determinant prove means, covariances and the likelihood, with no filter at all (`certificate`).

Kalman, J. Basic Eng. 82 (1960). Rauch, Tung & Striebel, AIAA J. 3 (1965). Shumway & Stoffer, J. Time Ser. Anal. 3 (1982).
"""

from importlib import import_module
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval

from lemmata.core.blocks import Blocks
from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Estimator, Iterative
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.state_space.certificate import fit_checks, refused, smoothing_checks
from lemmata.state_space.em import begin, free_entries, step
from lemmata.state_space.matrices import Matrices, check_matrices, check_series, half, system_of
from lemmata.state_space.moments import draw_states, filter_series, smooth_series
from lemmata.state_space.results import Filtered, Forecast, Smoothed


class LinearGaussianModel(Iterative, Estimator):
    """Filter, smooth, forecast and draw series of a linear Gaussian state-space model, and fit its matrices by EM.

    A model with its matrices given needs no fit. X is one series (rows × outputs), an array of series of the same length
    (series × rows × outputs), or a list of tables of any lengths; NaN is a missing entry.

    Parameters
    ----------
    transition : C, (states, states). This and every other matrix but the initial ones may have a first axis of time, with one
        matrix for each row. A number stands for that multiple of the identity.
    observation : D, (outputs, states).
    transition_covariance : Q, (states, states); may be singular.
    observation_covariance : V, (outputs, outputs).
    initial_mean, initial_covariance : Law of the state before the transition to the first row.
    control, feedthrough : B (states, inputs) and E (outputs, inputs), by which known inputs act on states and outputs. An
        offset is an input that is always one.
    fixed : What `fit` leaves as it is: names of matrices, or a mapping from names to masks that are True where an entry is
        fixed. By default the noises are fitted, and inputs' matrices. With everything free the states would have no units of
        their own, and one series says next to nothing about the law of its beginning.
    tol : Stop when a plain EM step changes the mean log-likelihood of an entry by no more.
    max_iter : EM steps at most.
    acceleration : Whether EM leaps ahead along its last two steps where the likelihood agrees.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    transition_, observation_, … : The matrices after a fit, by the names of the parameters.
    log_likelihood_ : Of the rows of the fit.
    n_iter_ : EM steps.
    converged_ : Whether they met tol.
    trace_ : Mean log-likelihood of an entry at each step.

    Examples
    --------
    >>> model = LinearGaussianModel(1.0, 1.0, 1.0, 1.0)
    >>> X = [[1.0], [2.0], [1.5]]
    >>> filtered, smoothed = model.filter(X), model.smooth(X)
    >>> filtered.mean.ravel(), filtered.covariance.ravel()
    (array([0.66666667, 1.5       , 1.5       ]), array([0.66666667, 0.625     , 0.61904762]))
    >>> smoothed.mean.ravel()
    array([1. , 1.5, 1.5])
    >>> model.forecast(X, 2).interval(0.9)[:, 0]
    array([[-1.16194,  4.16194],
           [-1.62914,  4.62914]])
    >>> model.certify(X).kind
    'proof'
    """

    generative = True
    _parameter_constraints = {
        **{name: [Real, "array-like"] for name in Matrices._fields[:6]},
        **{name: ["array-like", None] for name in Matrices._fields[6:]},
        "fixed": [str, tuple, list, dict],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "acceleration": ["boolean"],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        transition,
        observation,
        transition_covariance,
        observation_covariance,
        initial_mean=0.0,
        initial_covariance=1.0,
        *,
        control=None,
        feedthrough=None,
        fixed=("transition", "observation", "initial_mean", "initial_covariance"),
        tol=1e-12,
        max_iter=10_000,
        acceleration=True,
        verbose=0,
        checkpoint=None,
    ):
        self.transition = transition
        self.observation = observation
        self.transition_covariance = transition_covariance
        self.observation_covariance = observation_covariance
        self.initial_mean = initial_mean
        self.initial_covariance = initial_covariance
        self.control = control
        self.feedthrough = feedthrough
        self.fixed = fixed
        self.tol = tol
        self.max_iter = max_iter
        self.acceleration = acceleration
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, *, inputs=None):
        """Maximize the likelihood of the series over what is not fixed, by EM from the given matrices."""
        given = self._given()
        free = free_entries(self.fixed, given)
        series = check_series(X, inputs, given)
        if np.isnan(series.rows).all():
            raise ValueError("Every entry of X is missing: there is nothing to fit to.")
        number = np.repeat(np.arange(len(series.lengths)), series.lengths)
        blocks = Blocks.of(series.rows, number, *series.inputs.T, allow_nan=True)
        with serial_blas(), self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(
                lambda state: step(state, series, free, self.tol, self.acceleration),
                begin(given),
                tol=self.tol,
                monotone="up",
                name="EM of a state-space model",
                fitted=lambda state: self._attributes(state[1], given),
            )
        for name, value in self._attributes(run.state[1], given).items():
            setattr(self, name, value)
        self.n_iter_, self.converged_, self.trace_ = run.n_iter, run.converged, run.trace
        self.n_features_in_ = series.rows.shape[1]
        self.log_likelihood_ = float(self._filter(series)[-2].sum())
        return self

    def filter(self, X, *, inputs=None):
        """Give the law of each state given the rows up to its own, as a `Filtered`; a list of them for a list of series."""
        series = check_series(X, inputs, self._matrices())
        *arrays, values, _ = self._filter(series)
        return _results(Filtered, series, arrays, (), values)

    def smooth(self, X, *, inputs=None):
        """Give the law of each state given all rows, as a `Smoothed`; a list of them for a list of series."""
        m = self._matrices()
        series = check_series(X, inputs, m)
        shift, rows = series.offsets(m)
        *arrays, initial_mean, initial_covariance, values, _ = smooth_series(system_of(m), rows, shift, series.starts)
        return _results(Smoothed, series, arrays, (initial_mean, initial_covariance), values)

    def log_likelihood(self, X, *, inputs=None):
        """Give the exact log-likelihood of the series: a number for one, an array for many."""
        series = check_series(X, inputs, self._matrices())
        values = self._filter(series)[-2]
        return float(values[0]) if series.kind == "one" else values

    def score(self, X, y=None, *, inputs=None):
        """Give the mean log-likelihood of a row."""
        series = check_series(X, inputs, self._matrices())
        return float(self._filter(series)[-2].sum() / len(series.rows))

    def forecast(self, X, n_steps, *, inputs=None):
        """Give the law of the rows that come next, as a `Forecast`; inputs have n_steps rows more than X."""
        if not isinstance(n_steps, Integral) or n_steps < 1:
            raise ValueError(f"n_steps must be a whole number of at least 1, got {n_steps!r}.")
        m = self._matrices()
        plain = check_series(X, None, m._replace(control=m.control[..., :0], feedthrough=m.feedthrough[..., :0], **_still(m)))
        tables = np.split(plain.rows, plain.starts[1:-1])
        longer = [np.vstack([table, np.full((n_steps, table.shape[1]), np.nan)]) for table in tables]
        series = check_series(longer, inputs, m)
        _, _, mean, covariance, *_ = self._filter(series)
        later = np.concatenate([np.arange(end - n_steps, end) for end in series.starts[1:]])
        D, V, E = (
            a[series.time()[later]] if a.ndim == 3 else a for a in (m.observation, m.observation_covariance, m.feedthrough)
        )
        mean, covariance = mean[later], covariance[later]
        out = (
            (D @ mean[:, :, None] + E @ series.inputs[later][:, :, None])[:, :, 0],
            D @ covariance @ np.swapaxes(D, -1, -2) + V,
        )
        starts = np.arange(len(tables) + 1) * n_steps
        form = plain._replace(starts=starts)
        shaped = form.shaped(*out, mean, covariance)
        return [Forecast(*arrays) for arrays in shaped] if form.kind == "list" else Forecast(*shaped)

    def sample(self, n_steps, random_state=None, *, inputs=None):
        """Draw a series of so many rows; return its rows and its states."""
        m, rng = self._matrices(), generator(random_state)
        n, p = len(m.initial_mean), m.observation.shape[-2]
        series = check_series(np.zeros((n_steps, p)), inputs, m)
        shift, gone = series.offsets(m)
        state = m.initial_mean + half(m.initial_covariance) @ rng.standard_normal(n)
        noise, error = half(m.transition_covariance), half(m.observation_covariance)
        z, w, states, rows = rng.standard_normal((n_steps, n)), rng.standard_normal((n_steps, p)), [], []
        for t in range(n_steps):
            A, Q, D, V = (a[t] if a.ndim == 3 else a for a in (m.transition, noise, m.observation, error))
            state = A @ state + Q @ z[t] + (shift[t] if len(shift) else 0.0)
            states.append(state)
            rows.append(D @ state + V @ w[t] - gone[t])
        return np.array(rows), np.array(states)

    def simulate_states(self, X, n_draws=1, random_state=None, *, inputs=None):
        """Draw whole paths of states given all rows; the first axis is that of the draws, or a list for a list of series."""
        if not isinstance(n_draws, Integral) or n_draws < 1:
            raise ValueError(f"n_draws must be a whole number of at least 1, got {n_draws!r}.")
        m = self._matrices()
        series = check_series(X, inputs, m)
        shift, rows = series.offsets(m)
        normals = generator(random_state).standard_normal((n_draws, len(rows), len(m.initial_mean)))
        draws = draw_states(system_of(m), rows, shift, series.starts, normals)
        if series.kind == "list":
            return [draws[:, a:b] for a, b in zip(series.starts[:-1], series.starts[1:], strict=True)]
        return draws if series.kind == "one" else draws.reshape(n_draws, len(series.lengths), -1, draws.shape[-1])

    def certify(self, X, y=None, *, inputs=None, smoothed=None):
        """Prove that smoothed states and the likelihood are exact and, after a fit, that the likelihood is stationary.

        Parameters
        ----------
        smoothed : Result of `smooth` for X that is to be checked; by default it is computed now.
        """
        try:
            m = self._matrices()
        except ValueError as error:
            return Certificate(refused(str(error)), subject=type(self).__name__)
        series = check_series(X, inputs, m)
        smoothed = self.smooth(X, inputs=inputs) if smoothed is None else smoothed
        checks = smoothing_checks(m, series, smoothed)
        if hasattr(self, "transition_"):
            given = self._given()
            checks += fit_checks(m, given, free_entries(self.fixed, given), series, self.log_likelihood_)
        p, n = m.observation.shape[-2:]
        return Certificate(*checks, subject=f"{type(self).__name__} of {n} states and {p} outputs")

    def plot(self, X=None, y=None, *, ax=None):
        """Draw the smoothed outputs of a series with their bands, or without rows the trace of the fit."""
        if X is None:
            return super().plot(ax=ax)
        # Plots know every estimator and no estimator knows plots, so the package is looked up by its name, and only now.
        return import_module("lemmata.plot").StateSpaceDisplay.from_estimator(self, X, ax=ax)

    def _given(self):
        """Check the matrices that the model was made with."""
        return check_matrices({name: getattr(self, name) for name in Matrices._fields})

    def _matrices(self):
        """Give the fitted matrices, or those of the constructor before a fit."""
        if not hasattr(self, "transition_"):
            return self._given()
        return check_matrices({name: getattr(self, f"{name}_", None) for name in Matrices._fields})

    @staticmethod
    def _attributes(m, given):
        """Name fitted matrices; a model without inputs has no matrices for them."""
        return {f"{name}_": value for name, value in m._asdict().items() if value.size or getattr(given, name).size}

    def _filter(self, series):
        """Filter checked series."""
        m = self._matrices()
        shift, rows = series.offsets(m)
        return filter_series(system_of(m), rows, shift, series.starts)

    def __sklearn_is_fitted__(self):
        """Tell that given matrices are enough to work with."""
        return True

    def __sklearn_tags__(self):
        """Say that entries may be missing and that series may be stacked."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        tags.requires_fit = False
        return tags


def _still(m):
    """Give the matrices that vary with time one time each, so that their lengths do not matter."""
    return {name: value[0] for name, value in m._asdict().items() if value.ndim == 3 and name not in ("control", "feedthrough")}


def _results(kind, series, arrays, each, values):
    """Make results of arrays over all rows, arrays with one entry for each series, and log-likelihoods."""
    shaped = series.shaped(*arrays)
    if series.kind == "one":
        return kind(*shaped, *(a[0] for a in each), float(values[0]))
    if series.kind == "stack":
        return kind(*shaped, *each, values)
    return [kind(*parts, *(a[i] for a in each), float(values[i])) for i, parts in enumerate(shaped)]
