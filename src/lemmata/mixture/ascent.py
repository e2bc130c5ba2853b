"""Ways up a mixture's likelihood other than EM.

EM maximizes a bound exactly, then makes it tight again. The log-likelihood ℓ is a smooth function, so one may also climb it
directly, in the coordinates θ without constraints that `information` states: the weights are a softmax of logits, the
covariances have triangles with logarithms on their diagonal.

"gradient" goes along ∇ℓ (Fisher's identity), by steps that backtracking finds: the slowest, and the least demanding.
"newton" goes along −(∇²ℓ)⁻¹∇ℓ with the exact second derivative (Louis' identity), and near a maximum it squares the error at
every step. Farther away the full step may overshoot, and where ℓ is not concave it may lead to a saddle or downhill; so
eigenvalues of the wrong sign are turned over, and a line search shortens the step. The sign is the same up as down:
θ + (∇²ℓ)⁻¹∇ℓ, as one reads at times, goes away from the maximum by as much as Newton's step goes towards it.
"hard" climbs the bound E_q[log p(x, z|θ)] + H(q) ≤ ℓ over q and θ by turns, with q restricted to one component for each row,
whose entropy is 0: the best component of each row, then the best parameters of each component [1]. It stops after few passes,
at an optimum of the bound that is none of ℓ: the components come out too narrow and too far apart where they overlap.

EM without a floor stands still exactly where ∇ℓ = 0, so the first two methods and EM have the same stationary points [2]. A
floor (reg_covar) moves EM's away from them; here there is none. All of these ways, and EM, end at a local maximum at best.

Coordinates are measured in units of the table, so that a change of units changes nothing.

[1] Celeux & Govaert, Comput. Stat. Data Anal. 14 (1992). [2] Xu & Jordan, Neural Comput. 8 (1996).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lemmata.cluster.bounds import scatter_block
from lemmata.core.certificate import TINY
from lemmata.core.iterate import iterate
from lemmata.core.threads import serial_blas
from lemmata.mixture.em import LatentModel, begin
from lemmata.mixture.em import step as em_step
from lemmata.mixture.gaussian import as_matrices, components_of, of_kind
from lemmata.mixture.gaussian_kernels import posterior_block
from lemmata.mixture.information import information, opened, value_and_gradient
from lemmata.optimize.descent import backtracking_start, backtracking_step
from lemmata.optimize.line_search import LineSearchError, search
from lemmata.optimize.minimum import drive
from lemmata.optimize.newton import newton_direction, newton_start

METHODS = ("gradient", "newton", "hard")
LONGEST = 1.0  # first trial of Newton's step, in units of the table: a longer one may leave the data for good
NARROW = 1e-7  # standard deviation of a component, in units of the table, whose square cannot be told from rounding
EXTREME = 300.0  # logarithm of an entry of a factor beyond which squares of it leave the range of numbers


@dataclass(frozen=True)
class Ascent:
    """The end of an ascent.

    Parameters
    ----------
    weights, means, covariances : The mixture, in the shapes of a `GaussianMixture`.
    log_likelihood : Mean log-likelihood of a row under it.
    trace : Mean log-likelihood at the start and after each step; for "hard", the mean bound at each pass.
    gradient_norm : Largest entry, in absolute value, of the gradient of the mean log-likelihood in units of the table.
    converged : Whether the tolerance was met.
    method : How it was found.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture, maximize_likelihood
    >>> X = [[0.0], [1.0], [2.0], [10.0], [12.0], [14.0], [16.0]]
    >>> end = maximize_likelihood(GaussianMixture(2, max_iter=2, tol=1.0, random_state=0).fit(X), X)
    >>> end.method, end.converged, bool(end.gradient_norm < 1e-8)
    ('newton', True, True)
    """

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray
    log_likelihood: float
    trace: np.ndarray
    gradient_norm: float
    converged: bool
    method: str


def maximize_likelihood(mixture, X, *, sample_weight=None, method="newton", max_iter=1000, tol=1e-8):
    """Climb the likelihood of a Gaussian mixture, without EM and without a floor under its variances.

    Parameters
    ----------
    mixture : A `GaussianMixture`. Its fit is the start, or without one its weights_init, means_init and precisions_init.
    X : Complete rows, in any form that `fit` takes.
    sample_weight : Repetitions of each row.
    method : "gradient", "newton", or "hard" for a bound with one component for each row.
    max_iter : Most steps.
    tol : Stop when the gradient norm is at most this; for "hard", when the mean bound rises by no more.

    Returns
    -------
    ascent : The mixture found, as an `Ascent`; the one given stays as it is.

    Examples
    --------
    >>> from lemmata.mixture import GaussianMixture
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [7.0], [9.0]]
    >>> start = {"weights_init": [0.5, 0.5], "means_init": [[1.0], [7.0]], "precisions_init": [[[0.5]], [[0.5]]]}
    >>> up = maximize_likelihood(GaussianMixture(2, **start), X)
    >>> em = GaussianMixture(2, **start, reg_covar=0.0, tol=1e-14).fit(X)
    >>> up.means[:, 0], em.means_[:, 0]
    (array([2.611, 8.052]), array([2.611, 8.052]))
    >>> up.log_likelihood, em.lower_bound_
    (-2.36577, -2.36577)
    """
    if method not in METHODS:
        raise ValueError(f"Unknown method {method!r}; there are {', '.join(METHODS)}.")
    chart, start, blocks = opened(mixture, X, sample_weight)
    climb = _hard if method == "hard" else partial(_climb, method=method)
    with serial_blas():
        problem = _Problem(chart, blocks, start)
        parameters, trace, converged = climb(problem, start, max_iter=max_iter, tol=tol)
        value, gradient = problem.loss(parameters)
    return Ascent(*parameters, -value, trace, float(np.abs(gradient).max()), converged, method)


class _Problem:
    """Minus the mean log-likelihood of a table, and its derivatives in coordinates that are measured in units of it.

    Attributes
    ----------
    total : Weight of the rows.
    deviations : Standard deviation of each column.
    units : The unit of each coordinate: that of its column for a mean, its inverse for an entry of a factor, 1 for logarithms.
    """

    def __init__(self, chart, blocks, start):
        self.chart, self.blocks = chart, blocks
        self.total, first, second = blocks.reduce(scatter_block, start[0] @ start[1])
        variances = np.diagonal(second) / self.total - (first / self.total) ** 2
        self.deviations = np.sqrt(np.where(variances > 0, variances, 1.0))
        entries = np.where(chart.logs, 1.0, 1.0 / self.deviations[chart.columns])
        each = np.tile(np.concatenate([self.deviations, entries]), chart.k)
        self.units = np.empty(chart.size)
        self.units[chart.place] = np.concatenate([np.ones(chart.k - 1), each])

    def loss(self, parameters):
        """Give the value and its gradient."""
        value, gradient = value_and_gradient(self.chart, parameters, self.blocks)
        return -value / self.total, -gradient * self.units / self.total

    def second(self, parameters):
        """Give the matrix of second derivatives."""
        return information(self.chart, parameters, self.blocks) * np.outer(self.units, self.units) / self.total

    def watched(self, step, parameters_of):
        """Wrap a step of an iteration: it raises where a component has collapsed."""

        def watched(state):
            following = step(state)
            matrices = as_matrices(parameters_of(following[0])[2], self.chart.kind, self.chart.k, self.chart.d)
            if np.linalg.eigvalsh(matrices / np.outer(self.deviations, self.deviations)).min() < NARROW**2:
                raise ValueError(
                    "A component has collapsed onto too few rows for its covariance, where the likelihood has no maximum: "
                    "start elsewhere, lower n_components, or fit by EM with reg_covar > 0."
                )
            return following

        return watched


def _climb(problem, start, *, method, max_iter, tol):
    """Minimize minus the mean log-likelihood; the start lies at 0."""
    origin, units = problem.chart.pack(*start), problem.units

    def parameters_of(x):
        return problem.chart.unpack(origin + units * x)

    def fun(x):
        if np.abs(origin + units * x).max(where=problem.chart.exponents, initial=0.0) < EXTREME:
            with np.errstate(all="ignore"):  # a trial step may leave the range of numbers: then it is too long
                try:
                    value, gradient = problem.loss(parameters_of(x))
                    if np.isfinite(value):
                        return value, gradient
                except np.linalg.LinAlgError:
                    pass
        return np.inf, np.full(len(x), np.nan)

    x = np.zeros(len(origin))
    if method == "newton":
        state, step = newton_start(fun, x), partial(_newton_step, fun, lambda x: problem.second(parameters_of(x)))
    else:
        state, step = backtracking_start(fun, x), partial(backtracking_step, fun)
    step = problem.watched(step, lambda state: parameters_of(state[0]))
    name = f"maximize_likelihood by {method}"
    found = drive(step, state, shape=x.shape, name=name, max_iter=max_iter, tol=tol, descends=True)
    return parameters_of(found.x), -found.trace, found.converged


def _newton_step(fun, hess, state):
    """Step as `newton_step` of `optimize` does, but begin the search no farther than LONGEST away."""
    x, value, gradient, _ = state
    direction, decrement = newton_direction(gradient, hess(x))
    first = min(1.0, LONGEST / max(float(np.abs(direction).max()), TINY))
    try:
        point = search(fun, x, value, gradient, direction, first)
    except LineSearchError:
        return state, value, float(np.abs(gradient).max())
    return (point.x, point.value, point.gradient, decrement), point.value, float(np.abs(point.gradient).max())


def _hard(problem, start, *, max_iter, tol):
    """Climb the bound with hard assignments, by the steps of `em`."""
    model = HardModel(problem.chart.kind)
    step = problem.watched(partial(em_step, model, problem.blocks, problem.total, False, 0.0), lambda state: state[1])
    run = iterate(step, begin(start), max_iter=max_iter, tol=tol, monotone="up", rounding=np.inf, name=model.name)
    return run.state[1], run.trace, run.converged


class HardModel(LatentModel):
    """The steps of `em` for a Gaussian mixture whose q puts each row into one component.

    Parameters
    ----------
    kind : "full", "tied", "diag" or "spherical".
    """

    name = "Coordinate ascent with hard assignments"

    def __init__(self, kind):
        self.kind = kind

    def prepare(self, parameters):
        """Factor the covariances."""
        return components_of(*parameters, self.kind, parameters[0] @ parameters[1])

    def e_step(self, X, weight, prepared):
        """Choose the best component of each row; give the bound, and the moments of each component about its old mean."""
        posterior, density = posterior_block(X, weight, prepared)
        labels = posterior.argmax(axis=1)
        bound = density + np.log(posterior.max(axis=1))  # log πₖ N(x|μₖ, Σₖ) of the component chosen
        moments = []
        for k, mean in enumerate(prepared.center + prepared.offsets):
            rows = labels == k
            moments.append(scatter_block(X[rows], None if weight is None else weight[rows], mean))
        counts, first, second = zip(*moments, strict=True)
        value = float(bound.sum() if weight is None else weight @ bound)
        return value, np.array(counts), np.stack(first), np.stack(second)

    def m_step(self, statistics, parameters):
        """Take weight, mean and covariance of the rows of each component; one without rows stays where it is."""
        _, counts, first, second = statistics
        _, means, covariances = parameters
        has = counts > 0
        divisor = np.where(has, counts, 1.0)
        shifts = first / divisor[:, None]
        weights = counts / counts.sum()
        new = of_kind(second / divisor[:, None, None] - shifts[:, :, None] * shifts[:, None, :], weights, self.kind)
        if self.kind != "tied":
            new = np.where(has.reshape(-1, *[1] * (new.ndim - 1)), new, covariances)
        return weights, means + shifts, new
