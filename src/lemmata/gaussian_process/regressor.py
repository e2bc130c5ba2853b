"""Gaussian process regression: a distribution over functions, conditioned on what was seen.

y = f(x) + noise, f ~ GP(0, k), noise ~ N(0, σ²). Given rows, f is again a Gaussian process; see `exact` for its mean and
variance, and `inducing` for more rows than a matrix of all of them has room for. Hyperparameters are those under which the
targets are most probable (nearby: there may be several such places), found by BFGS in their logarithms, within bounds; see
`box`. Equal rows are one row, and a weight is repetition; see `distinct`. The targets may be centered first; their mean is
then taken for known. Certificate: see `certificate`.

Rasmussen & Williams, Gaussian Processes for Machine Learning (2006).
"""

from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Regressor
from lemmata.core.random import generator, spawn
from lemmata.gaussian_process import exact, inducing
from lemmata.gaussian_process.certificate import checks_of
from lemmata.gaussian_process.distinct import Distinct, merged, rows_block, tells_apart
from lemmata.gaussian_process.predictions import NormalPredictions
from lemmata.gaussian_process.prior import prior
from lemmata.gaussian_process.search import EvidenceSearch
from lemmata.kernels import Kernel

MOST_ROWS = 20_000  # of an exact process, whose matrices take 3 GiB each then


class LeaveOneOut(NamedTuple):
    """What the other rows say of each row: mean and variance of its target, and the log density of it there."""

    mean: np.ndarray
    variance: np.ndarray
    log_density: np.ndarray


class GaussianProcessRegressor(EvidenceSearch, NormalPredictions, Regressor):
    """Fit a function with a Gaussian process prior, and keep the whole posterior.

    Predictions are of y, noise included, unless they are asked for of the function f alone.

    Parameters
    ----------
    kernel : A kernel of `lemmata.kernels`; its hyperparameters are where the search starts, and its bounds where it stays.
        Default: a constant times an RBF with a length scale for each column, in the units of the data.
    noise : Variance of the noise: a number, or one for each row, or "evidence" to search for it beside the hyperparameters.
        It is searched for between 1e-8 (with inducing points 1e-6) and 10 times the variance of the targets, unless
        `noise_bounds` says otherwise.
    optimizer : "bfgs" to search for the hyperparameters under which the targets are most probable, None to leave them.
    n_restarts : Further starts of the search, each hyperparameter drawn within a factor of 100 of the first start and its
        bounds; the best end counts.
    center : Whether the mean of the targets is taken off first. Otherwise predictions far from the rows go to 0.
    inducing : Inducing points, for more than about 10,000 rows: their number, to be chosen among the rows, or the points
        themselves. The cost is then n·m², not n³, and what is maximized a lower bound of the evidence.
    noise_bounds : Least and largest variance of the noise, if it is searched for.
    tol : Stop when no slope of the log evidence, in the logarithm of a hyperparameter, exceeds this (or rounding ends it).
    max_iter : Iterations of a search at most.
    random_state : Seed of restarts and of the choice of inducing points.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    kernel_ : The kernel with the hyperparameters that were found.
    noise_ : Variance of the noise, as given or found; 1 where it was given row by row (`weight_` then has the precisions).
    X_train_ : (n, n_features), the different rows, in the order in which they first came.
    y_train_ : (n,), the mean of the targets of each.
    weight_ : (n,), their weights: repetitions and weights added up.
    y_mean_ : What was taken off the targets; 0 without `center`.
    alpha_ : (n,), or one for each inducing point: the mean of f at x is y_mean_ + Σ alpha_ᵢ k(xᵢ, x).
    L_ : Lower triangle, LLᵀ the kernel matrix of the rows with noise and jitter, or that of the inducing points with jitter.
    jitter_ : What was added to the diagonal of the kernel matrix because of rounding: mostly 0; with inducing points 1e-6.
    inducing_points_ : (m, n_features), if there are any.
    inner_root_ : (m, m), with inducing points: the lower triangle R with RRᵀ = I + L⁻¹K_ZX D⁻¹K_XZ L⁻ᵀ.
    log_marginal_likelihood_ : ln p(y), of all repetitions; with inducing points, its lower bound.
    n_iter_, converged_, trace_ : Iterations, whether they reached what `tol` asks for, and minus the log evidence after each.

    Examples
    --------
    >>> from lemmata.kernels import RBF
    >>> X, y = [[0.0], [1.0]], [1.0, 2.0]
    >>> model = GaussianProcessRegressor(RBF(gamma=1.0), noise=0.1, optimizer=None, center=False).fit(X, y)
    >>> model.predict([[0.5]], return_std=True)
    (array([1.591685]), array([0.523064]))
    >>> model.predict([[0.5]], return_std=True, of="f")[1] ** 2
    array([0.173596])
    >>> round(model.log_marginal_likelihood_, 6)
    -3.748179
    >>> model.certify(X, y).holds
    True
    """

    most_rows = 2_000
    _parameter_constraints = {
        "kernel": [Kernel, None],
        "noise": [Interval(Real, 0, None, closed="left"), StrOptions({"evidence"}), "array-like"],
        "optimizer": [StrOptions({"bfgs"}), None],
        "n_restarts": [Interval(Integral, 0, None, closed="left")],
        "center": ["boolean"],
        "inducing": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "noise_bounds": [tuple, list, None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        kernel=None,
        *,
        noise="evidence",
        optimizer="bfgs",
        n_restarts=0,
        center=True,
        inducing=None,
        noise_bounds=None,
        tol=1e-8,
        max_iter=200,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.kernel = kernel
        self.noise = noise
        self.optimizer = optimizer
        self.n_restarts = n_restarts
        self.center = center
        self.inducing = inducing
        self.noise_bounds = noise_bounds
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y). The rows are kept.
        """
        self._check_noise()
        blocks, data = self._data(X, y, sample_weight, reset=True)
        if self.inducing is None and len(data.X) > MOST_ROWS:
            raise ValueError(
                f"{len(data.X):,} different rows are more than the {MOST_ROWS:,} whose matrix an exact process holds; "
                "give inducing points, such as inducing=500."
            )
        y_mean = data.center if self.center else 0.0
        target = data.y - y_mean
        before = prior(self.kernel, self.noise, self.noise_bounds, data, target, through_points=self.inducing is not None)
        draw, again = spawn(generator(self.random_state), 2)
        Z = self._points(before.kernel, data, draw)

        def fitted(variables):
            return self._attributes(*before.at(variables), data, y_mean, Z)

        rounding = 0.0 if Z is None else inducing.ROUNDING * data.count
        self._search(objective(before, data, target, Z), before, fitted, blocks, again, rounding=rounding, X=X, y=y)
        self._rest, self._updated = data[3:], False
        return self

    def _check_noise(self):
        """Refuse bounds that are none, and inducing points without noise."""
        if self.noise_bounds is not None:
            bounds = np.asarray(self.noise_bounds, dtype=float)
            if bounds.shape != (2,) or not 0 < bounds[0] <= bounds[1] < np.inf:
                raise ValueError(f"noise_bounds must be two variances, 0 < least ≤ largest, got {self.noise_bounds!r}.")
        if self.inducing is not None and np.ndim(self.noise) == 0 and self.noise == 0:
            raise ValueError("Inducing points need noise: give a positive variance, or leave them out.")

    def _data(self, X, y, sample_weight, reset):
        """Validate the rows and take equal ones together."""
        blocks = self._blocks(X, y, sample_weight, reset=reset)
        rows, targets, weight = (np.asarray(part, dtype=float) for part in blocks.map(rows_block))
        if np.ndim(targets) > 1:
            raise ValueError("GaussianProcessRegressor takes one target: y must have one number a row.")
        scale = None
        if np.ndim(self.noise):
            scale = np.asarray(self.noise, dtype=float)
            scale = scale if blocks.complete else scale[blocks.present]
            if scale.shape != targets.shape or not (np.isfinite(scale) & (scale > 0)).all():
                raise ValueError(f"noise must have one positive variance for each row, got shape {np.shape(self.noise)}.")
        apart = self.kernel is not None and tells_apart(self.kernel, rows)
        if apart and (self.inducing is not None or (weight != 1).any()):
            raise ValueError(
                f"The kernel {self.kernel!r} tells equal rows apart, which weights and inducing points cannot; "
                "leave White out of it and give `noise`."
            )
        return blocks, merged(rows, targets, weight, scale, keep_apart=apart)

    def _points(self, kernel, data, rng):
        """Return the inducing points, or None."""
        if self.inducing is None:
            return None
        if isinstance(self.inducing, Integral):
            return inducing.chosen(kernel, data.X, self.inducing, rng)
        Z = np.array(self.inducing, dtype=float)
        if Z.ndim != 2 or Z.shape[1] != data.X.shape[1] or not np.isfinite(Z).all():
            raise ValueError(f"Inducing points need the {data.X.shape[1]} columns of the rows, got shape {Z.shape}.")
        return np.unique(Z, axis=0)

    def _attributes(self, kernel, noise, data, y_mean, Z):
        """Give the fitted attributes for given hyperparameters."""
        target = data.y - y_mean
        found = {"kernel_": kernel, "noise_": noise, "y_mean_": y_mean}
        found |= {"X_train_": data.X, "y_train_": data.y, "weight_": data.weight}
        if Z is None:
            solved = exact.solve(kernel, data, target, noise)
        else:
            solved = inducing.solve(kernel, data, target, Z, noise)
            found |= {"inducing_points_": Z, "inner_root_": solved.inner}
        found |= {"alpha_": solved.alpha, "L_": solved.root, "jitter_": solved.jitter}
        return found | {"log_marginal_likelihood_": solved.evidence}

    def _known(self):
        """Return the rows that the model knows."""
        return Distinct(self.X_train_, self.y_train_, self.weight_, *self._rest)

    def _posterior(self):
        check_is_fitted(self)
        if self.inducing is None:
            noise = self.noise_ / self.weight_ + self.jitter_
            return exact.Posterior(self.kernel_, self.X_train_, noise, self.alpha_, self.L_)
        return inducing.Posterior(self.kernel_, self.inducing_points_, self.jitter_, self.alpha_, self.L_, self.inner_root_)

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        """Give the log evidence of the training rows for other hyperparameters, and its gradient if asked for.

        Parameters
        ----------
        theta : Logarithms of the kernel's hyperparameters, as in `kernel_.theta`, then that of the noise if it is searched for;
            without it, those of the fit.
        """
        check_is_fitted(self)
        if theta is None and not eval_gradient:
            return self.log_marginal_likelihood_
        data = self._known()
        target = data.y - self.y_mean_
        before = prior(self.kernel_, self.noise, self.noise_bounds, data, target)
        here = before.variables(self.kernel_, self.noise_) if theta is None else np.asarray(theta, dtype=float)
        if here.shape != before.start.shape:
            raise ValueError(f"theta needs {len(before.start)} entries, got shape {here.shape}.")
        value, slopes, _ = objective(before, data, target, self._fixed_points())(here)
        return (-value, -slopes) if eval_gradient else -value

    def _fixed_points(self):
        return None if self.inducing is None else self.inducing_points_

    def leave_one_out(self):
        """Give, for each training row, what the others say of its target, in closed form; hyperparameters and center stay.

        Rows that were given several times, or with a weight, are left out together; the target is then their mean.

        Returns
        -------
        A named tuple of arrays (n,): mean, variance, log_density.
        """
        check_is_fitted(self)
        if self.inducing is not None:
            raise ValueError("leave_one_out needs the posterior on all rows; fit without inducing points.")
        error, variance = exact.leave_one_out(self.L_, self.alpha_)
        mean, log_density = self.y_train_ - error, norm.logpdf(error, 0.0, np.sqrt(variance))
        return LeaveOneOut(mean, variance, log_density)

    def most_informative(self, X_pool, n=1):
        """Choose n different rows to measure next, each the one whose prediction is least certain, given those before it.

        That one lowers the entropy of the function most; what a set of rows removes is submodular, so these remove at least
        1 − 1/e of what the best n rows would (Nemhauser, Wolsey & Fisher, Math. Program. 14, 1978).

        Returns
        -------
        Row numbers, in the order of choice.
        """
        posterior, (rows, _) = self._posterior(), self._rows(X_pool)
        if not (isinstance(n, Integral) and 1 <= n <= len(rows)):
            raise ValueError(f"n must be a whole number from 1 to the {len(rows)} rows of the pool, got {n!r}.")
        noise = float(np.mean(self.noise)) if np.ndim(self.noise) else self.noise_
        return exact.most_informative(posterior, rows, noise, n)

    def update(self, X, y=None, sample_weight=None):
        """Take the posterior for a prior and learn from more rows; hyperparameters, noise and center stay.

        The result is that of one fit to all rows with these. `certify` then wants all rows, and proves the posterior; of the
        hyperparameters it no longer says that the first rows chose them.
        """
        check_is_fitted(self)
        if np.ndim(self.noise) or self.inducing is not None:
            raise ValueError("update needs one noise for all rows, and no inducing points; fit all rows at once instead.")
        old, (_, new) = self._known(), self._data(X, y, sample_weight, reset=False)
        apart = len(old.X) + len(new.X) if tells_apart(self.kernel_, new.X) else None
        X, y, weight = (np.concatenate(pair) for pair in zip(old[:3], new[:3], strict=True))
        both = merged(X, y, weight, keep_apart=apart is not None)
        both = both._replace(count=old.count + new.count, scatter=both.scatter + old.scatter + new.scatter)
        kernel, noise, target = self.kernel_, self.noise_, both.y - self.y_mean_
        solved = None
        if len(both.X) == len(X):  # no row is one of the old ones: the triangle only grows
            known = exact.Solved(self.alpha_, self.L_, self.jitter_, self.log_marginal_likelihood_)
            solved = exact.extended(kernel, old, new, known, target, noise)
        if solved is None:
            solved = exact.solve(kernel, both, target, noise)
        else:
            solved = solved._replace(evidence=solved.evidence + float(both.constant(noise)[0]))
        self.X_train_, self.y_train_, self.weight_, self._rest = both.X, both.y, both.weight, both[3:]
        self.alpha_, self.L_, self.jitter_, self.log_marginal_likelihood_ = solved
        self._updated = True
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove the posterior and the evidence from the rows, and that the evidence is stationary in what was searched for."""
        check_is_fitted(self)
        _, data = self._data(X, y, sample_weight, reset=False)
        return Certificate(*checks_of(self, data), subject=repr(self))


def objective(before, data, target, Z):
    """Return the function that is minimized: minus the log evidence (or its bound), its slopes, and no find."""

    def fun(variables, near=None):
        kernel, noise = before.at(variables)
        if Z is None:
            value, slopes, own = exact.evidence_slopes(kernel, data, target, noise)
        else:
            value, slopes, own = inducing.evidence_slopes(kernel, data, target, Z, noise)
        return -value, -np.append(slopes, own) if before.free_noise else -slopes, None

    return fun
