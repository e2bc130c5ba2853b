"""Bayesian linear regression: the whole posterior, in closed form.

y = x·w + b + noise, noise ~ N(0, σ²), prior w ~ N(0, λ⁻¹I), and a flat prior on b. The posterior is normal; its mean is the
ridge solution for the penalty λσ² [1]. With Σ the covariance of w, S the number of rows and x̄ their mean, the prediction at x
has the variance σ² + σ²/S + (x − x̄)ᵀΣ(x − x̄), least at the center of the data and computed in this form; see `posterior`.
λ and σ² may be those under which the targets are most probable [2]: a search over one number, see `spectrum`.
Certificate: the checks of ridge regression on the mean; ‖LᵀΣ⁻¹L − I‖ for the stored root L of the covariance, which bounds the
relative error of every variance; the evidence recomputed from singular values; and a bound on the evidence of any other λ
and σ².

[1] Lindley & Smith, J. R. Statist. Soc. B 34 (1972). [2] MacKay, Neural Computation 4 (1992).
"""

from numbers import Integral, Real

import numpy as np
from scipy.stats import norm
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import TINY, Certificate, Check, same
from lemmata.core.estimator import Regressor, as_output
from lemmata.core.random import generator
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model.base import is_single, optimality
from lemmata.linear_model.posterior import (
    Posterior,
    covariance_checks,
    excess,
    learned,
    log_evidence,
    most_informative,
    news_block,
    predictive_block,
    solved,
    whitened_block,
)
from lemmata.linear_model.spectrum import Evidence, Spectrum, compress


def settled(spectrum, precision, noise):
    """Return λ and σ² as far as they are given, None where the evidence shall choose; 1 where the data say nothing."""
    precision, noise = (None if isinstance(value, str) else float(value) for value in (precision, noise))
    silent = len(spectrum.squares) == 0
    if precision is None and silent:
        precision = 1.0
    if noise is None and silent and spectrum.rest == 0 and spectrum.n <= 0:
        noise = 1.0
    return precision, noise


def choose(spectrum, precision, noise):
    """Return λ and σ², by evidence where they are not given."""
    precision, noise = settled(spectrum, precision, noise)
    if precision is not None and noise is not None:
        return precision, noise
    evidence = Evidence(spectrum, precision, noise)
    x = evidence.place()
    noise = float(evidence.noise(x))
    return (float(np.exp(x)) / noise * spectrum.unit**2 if precision is None else precision), noise


def choice_checks(spectrum, precision, noise, found):
    """Check the λ and σ² that were found against those asked for, or by evidence."""
    precision, noise = settled(spectrum, precision, noise)
    for name, asked, value in (("prior precision", precision, found[0]), ("noise variance", noise, found[1])):
        if asked is not None:
            yield Check(name, abs(value - asked), 0.0, "proof", "it is the one asked for, or 1 where the data say nothing")
    if precision is None or noise is None:
        evidence = Evidence(spectrum, precision, noise)
        x = spectrum.at(found[0] * found[1])
        yield from evidence.checks_at(x, found[1])
        if noise is None:
            yield same(found[1], evidence.noise(x), "noise variance", "it is the most probable one beside this prior")


class BayesianLinearRegression(Regressor):
    """Fit y = x·w + b with a normal prior on w, and keep the whole posterior.

    Parameters
    ----------
    prior_precision : λ of the prior w ~ N(0, λ⁻¹I) on the coefficients of the raw columns, or "evidence" to choose the λ under
        which the targets are most probable. The prior of the intercept is flat.
    noise_variance : σ² of the targets about the line, or "evidence".
    fit_intercept : Whether b is fitted or zero.

    Where the columns say nothing of the target, the evidence grows as λ → ∞: λ is then the end of the search, at which the
    coefficients are less than a millionth of their size. Where they fit it exactly (as many columns may), it grows as σ² → 0:
    σ² is then 12 digits below the targets. Where the data say nothing at all of λ (no column varies) or σ² (one row), it is 1.

    Attributes
    ----------
    coef_ : (n_features,), the posterior mean of the coefficients; in float64, like all that follows.
    intercept_ : The posterior mean of the intercept.
    mean_ : Posterior mean of the coefficients, then of the intercept if there is one.
    covariance_ : Posterior covariance, in the order of `mean_`.
    root_ : (n_features, n_features), the lower triangle L with LLᵀ the covariance of the coefficients.
    center_ : (n_features,), the mean of the rows, where predictions are most certain; zero without an intercept.
    weight_ : Total weight of the rows.
    prior_precision_, noise_variance_ : λ and σ² as given or found.
    log_evidence_ : ln p(y) = −½ [N ln 2πσ² + ln|I + AAᵀ/ρ| + min over w of (‖Aw − c‖² + ρ‖w‖²)/σ²], ρ = λσ². Without an
        intercept A, c and N are the rows, the targets and their number. With one, A and c are centered, N is less by one,
        and −½ ln Σs is added: b is integrated out under the density 1, so models compare as long as all have an intercept.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> model = BayesianLinearRegression(prior_precision=1.0, noise_variance=1.0).fit(X, y)
    >>> model.mean_
    array([0.916667, 1.375   ])
    >>> model.covariance_
    array([[ 0.166667, -0.25    ],
           [-0.25    ,  0.625   ]])
    >>> model.predict([[4.0]], return_std=True)
    (array([5.041667]), array([1.513825]))
    >>> model.certify(X, y).holds
    True
    >>> model.update([[4.0]], [6.0]).predict_interval([[4.0]], level=0.9)
    array([[3.525004, 7.638633]])
    """

    _parameter_constraints = {
        "prior_precision": [Interval(Real, 0, np.inf, closed="neither"), StrOptions({"evidence"})],
        "noise_variance": [Interval(Real, 0, np.inf, closed="neither"), StrOptions({"evidence"})],
        "fit_intercept": ["boolean"],
    }

    def __init__(self, prior_precision="evidence", noise_variance="evidence", *, fit_intercept=True):
        self.prior_precision = prior_precision
        self.noise_variance = noise_variance
        self.fit_intercept = fit_intercept

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition.

        X may also be a Parquet path (y and sample_weight then name columns), a Dask table, or a function that returns an
        iterator of blocks (X, y).
        """
        problem = compress(self._rows(X, y, sample_weight, reset=True), self.fit_intercept)
        precision, noise = self.prior_precision, self.noise_variance
        with serial_blas():
            if isinstance(precision, str) or isinstance(noise, str):
                precision, noise = choose(Spectrum(problem), precision, noise)
            self._keep(solved(problem, precision, noise))
        self.prior_precision_, self.noise_variance_ = float(precision), float(noise)
        self._updated = False
        return self

    def update(self, X, y=None, sample_weight=None):
        """Take the posterior for a prior and learn from more rows; λ and σ² stay.

        The result is that of one fit to all rows with this λ and σ², evidence included. `certify` then wants all rows, and
        proves the posterior; of λ and σ² it no longer says that the first rows chose them.
        """
        check_is_fitted(self)
        blocks, known = self._rows(X, y, sample_weight, reset=False), self._known()
        news = blocks.reduce(news_block, known, self.fit_intercept)
        with serial_blas():
            self._keep(learned(known, news, self.noise_variance_, self.fit_intercept))
        self._updated = True
        return self

    def _rows(self, X, y, sample_weight, reset):
        blocks = self._blocks(X, y, sample_weight, reset=reset)
        if not is_single(blocks):
            raise ValueError("BayesianLinearRegression takes one target: y must have one number a row.")
        return blocks

    def _known(self):
        return Posterior(self.coef_, self.intercept_, self.root_, self.center_, self.weight_, self.log_evidence_)

    def _keep(self, known):
        self.coef_, self.intercept_, self.root_, self.center_, self.weight_, self.log_evidence_ = known

    @property
    def mean_(self):
        """Posterior mean of the coefficients, then of the intercept if there is one."""
        return np.append(self.coef_, self.intercept_) if self.fit_intercept else self.coef_.copy()

    @property
    def covariance_(self):
        """Posterior covariance, in the order of `mean_`."""
        root = self._joint_root()
        return root @ root.T

    def _joint_root(self):
        """Extend L by the intercept b = ȳ − x̄·w + an error of its own."""
        if not self.fit_intercept:
            return self.root_
        own = np.sqrt(self.noise_variance_ * self._own())
        return np.block([[self.root_, np.zeros((len(self.root_), 1))], [-self.center_ @ self.root_, own]])

    def _own(self):
        """Variance of the mean prediction at the center, in units of σ²."""
        return 1 / self.weight_ if self.fit_intercept else 0.0

    def _predictive(self, X):
        """Mean of y, and the variance of that mean, for each row; and the precision of the input."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        mean, v = blocks.map(predictive_block, self.coef_, self.intercept_, self.center_, self.root_)
        return mean, self.noise_variance_ * self._own() + v, blocks.dtype

    def predict(self, X, return_std=False):
        """Predict the mean of y for each row, and its standard deviation if asked for: that of noise and posterior together."""
        mean, v, dtype = self._predictive(X)
        return (
            (as_output(mean, dtype), as_output(np.sqrt(self.noise_variance_ + v), dtype))
            if return_std
            else as_output(mean, dtype)
        )

    def predict_dist(self, X):
        """Give the posterior predictive distribution of y for each row, as a frozen `scipy.stats.norm`."""
        mean, v, _ = self._predictive(X)
        return norm(mean, np.sqrt(self.noise_variance_ + v))

    def predict_interval(self, X, level=0.9):
        """Give the central interval that holds y with this probability: (n_rows, 2)."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
        mean, v, dtype = self._predictive(X)
        reach = norm.ppf((1 + level) / 2) * np.sqrt(self.noise_variance_ + v)
        return as_output(np.column_stack([mean - reach, mean + reach]), dtype)

    def information(self, X):
        """Tell by how many nats the entropy of the posterior would drop if y were measured at each row.

        It is ½ ln(1 + v/σ²), v the variance of the mean prediction: most where the prediction is least certain.
        """
        _, v, dtype = self._predictive(X)
        return as_output(0.5 * np.log1p(v / self.noise_variance_), dtype)

    def most_informative(self, X_pool, n=1):
        """Choose n different rows to measure next, each the one that lowers the entropy most, given those before it.

        The entropy that a set of rows removes is submodular: these remove at least 1 − 1/e of what the best n rows would
        (Nemhauser, Wolsey & Fisher, Math. Program. 14, 1978).

        Returns
        -------
        Row numbers, in the order of choice.
        """
        check_is_fitted(self)
        blocks = self._blocks(X_pool, reset=False)
        if not (isinstance(n, Integral) and 1 <= n <= blocks.n_rows):
            raise ValueError(f"n must be a whole number from 1 to the {blocks.n_rows} rows of the pool, got {n!r}.")
        F = blocks.map(whitened_block, self.center_, self.root_) / np.sqrt(self.noise_variance_)
        return most_informative(np.hstack([F, np.full((len(F), 1), np.sqrt(self._own()))]), n)

    def sample(self, n=1, random_state=None):
        """Draw n times from the posterior: (n, n_features), and the intercept last if there is one."""
        check_is_fitted(self)
        root = self._joint_root()
        return self.mean_ + generator(random_state).standard_normal((n, len(root))) @ root.T

    def certify(self, X, y=None, sample_weight=None):
        """Prove mean and covariance, recompute the evidence, and prove that no other λ and σ² have more of it."""
        check_is_fitted(self)
        blocks = self._rows(X, y, sample_weight, reset=False)
        problem = ls.factored(blocks, ls.draw_shift(blocks, self.fit_intercept), self.fit_intercept)
        precision, noise = self.prior_precision_, self.noise_variance_
        with serial_blas():
            checks = [*self._certify_mean(problem, precision * noise)]
            checks += covariance_checks(problem, self.root_, precision, noise)
            value, unsure = log_evidence(problem, precision, noise)
            claim = "it is ln p(y), recomputed from singular values"
            checks.append(same(self.log_evidence_, value, "log evidence", claim, floor=unsure))
            asked = self.prior_precision, self.noise_variance
            if self._updated:  # what the first rows chose is now as good as given
                asked = tuple(found if isinstance(a, str) else a for a, found in zip(asked, (precision, noise), strict=True))
            checks += choice_checks(Spectrum(problem), *asked, (precision, noise))
        return Certificate(*checks, subject=repr(self))

    def _certify_mean(self, problem, penalty):
        scaled = self.coef_[:, None] * problem.shift.unit[:, None]
        more = excess(problem, scaled, penalty).sum()
        yield from optimality(problem, scaled, np.array([self.intercept_]), more, penalty)
        size = np.maximum(ls.raw_lengths(problem) / np.sqrt(problem.weight) * problem.shift.unit, TINY)
        floor = np.sqrt(ls.EPS * len(size))
        yield same(self.center_ / size, problem.mean[0] / size, "center", "it is the mean of the rows", floor=floor)
        yield same(self.weight_, problem.weight, "weight", "it is the total weight of the rows")
