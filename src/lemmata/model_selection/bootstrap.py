"""The bootstrap: how much a statistic varies, found by computing it on resamples of the rows.

Were the law F of the rows known, one would draw new samples from it. The bootstrap draws from the sample itself: n rows with
replacement, B times, and the statistic of each resample is a replicate θ* [1]. With θ̂ the statistic of the sample,
    μ_B = Σ θ*_b / B,    σ²_B = Σ (θ*_b − μ_B)² / B,    bias = μ_B − θ̂.
Their limits for B → ∞ are the ideal bootstrap's, sums over all nⁿ resamples: for a mean μ = x̄ and σ² = Σ (xᵢ − x̄)² / n², so
that (1, 2, 3, 4) has 5/16. What is left of chance at finite B is σ/√B for μ_B, and is judged for the ends of an interval
(`bootstrap_intervals`) by resampling the replicates.
Rows in strata are drawn within each; samples that belong together row by row are drawn together. Balanced resamples have
every row B times in all, which takes the chance out of μ_B for a mean [2]. Rows of a series depend on their neighbors: then
runs of rows are drawn, the blocks [3].

[1] Efron, Annals of Statistics 7 (1979). [2] Davison, Hinkley & Schechtman, Biometrika 73 (1986). [3] Künsch, Annals of
Statistics 17 (1989); Politis & Romano in Exploring the Limits of Bootstrap (1992).
"""

import warnings
from functools import partial
from importlib import import_module

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from lemmata.core import config
from lemmata.core.certificate import Certificate
from lemmata.core.random import generator
from lemmata.model_selection.bootstrap_certificate import chance_check, recomputed_checks
from lemmata.model_selection.bootstrap_draws import lay_out
from lemmata.model_selection.bootstrap_intervals import METHODS, Evidence, Interval, NoIntervalError, check_level, interval_of
from lemmata.model_selection.bootstrap_replicates import (
    compiled,
    influences,
    jackknife_error,
    jackknife_errors,
    left_out,
    replicate,
)
from lemmata.model_selection.bootstrap_samples import read_samples
from lemmata.model_selection.bootstrap_statistics import named


class Bootstrap(BaseEstimator):
    """Find the variance, the bias and intervals of a statistic by resampling.

    Parameters
    ----------
    statistic : "mean", "median", "variance", "deviation" (both with divisor n − 1) or "correlation" (of two samples); a number
        between 0 and 1, for that quantile; or a function of the resampled arrays that gives a number or an array.
    n_resamples : Resamples, B.
    resampling : "independent" draws; "balanced", each row as often as any other over all resamples; or runs of rows of a
        series, "moving-block" or "circular-block", of which the latter goes on at the first row after the last.
    block_length : Rows of a run; None for the cube root of the length of the series, rounded up.
    paired : Whether rows of several samples belong together (True) or each sample is drawn by itself (False). It must be said
        when a function has several samples.
    random_state : Seed; the same one gives the same bits for any number of threads.
    n_jobs : Threads for a named statistic, processes for a function.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    estimate_ : The statistic of the samples.
    replicates_ : (B, …), the statistic of each resample; NaN where it is not defined, and left out below.
    mean_, variance_ : Mean and variance of the replicates; the variance has divisor B.
    standard_error_ : Standard deviation of the replicates, with divisor B − 1.
    bias_ : mean_ − estimate_.
    seed_ : What the resamples are drawn from.

    Examples
    --------
    >>> bootstrap = Bootstrap("mean", random_state=0).fit([1.0, 2.0, 3.0, 4.0])
    >>> float(bootstrap.estimate_), round(float(bootstrap.variance_), 1)  # the ideal bootstrap has 0.3125
    (2.5, 0.3)
    >>> [float(end) for end in bootstrap.interval(0.9)]
    [1.5, 3.5]
    >>> bootstrap.certify([1.0, 2.0, 3.0, 4.0]).holds
    True

    Any function of the arrays will do, here the ratio of two means whose rows belong together:

    >>> x, y = np.array([2.0, 4.0, 6.0, 9.0]), np.array([1.0, 2.0, 3.0, 4.0])
    >>> ratio = Bootstrap(lambda x, y: x.mean() / y.mean(), n_resamples=999, paired=True, random_state=0).fit(x, y)
    >>> float(ratio.estimate_), bool(ratio.standard_error_ < 0.1)
    (2.1, True)
    """

    def __init__(
        self,
        statistic="mean",
        *,
        n_resamples=9999,
        resampling="independent",
        block_length=None,
        paired=None,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.statistic = statistic
        self.n_resamples = n_resamples
        self.resampling = resampling
        self.block_length = block_length
        self.paired = paired
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, *samples, strata=None, sample_weight=None):
        """Draw the resamples and compute the statistic of each.

        Parameters
        ----------
        samples : One array or more, with rows along the first axis; of a table a named statistic is that of each column.
        strata : Label of the stratum of each row; a resample has as many rows of each as the sample.
        sample_weight : Numbers of repetitions of the rows. This and `strata` are for one sample or for paired ones.
        """
        n_resamples = config.whole("n_resamples", self.n_resamples)
        if n_resamples is None or n_resamples < 2:
            raise ValueError(f"n_resamples must be a whole number of at least 2, got {self.n_resamples!r}.")
        self._samples = read_samples(samples, self.statistic, self.paired, strata, sample_weight)
        self.seed_ = int(generator(self.random_state).integers(2**62))
        self._draws = lay_out(self._samples.groups, self.resampling, self.block_length, n_resamples, self.seed_)
        evaluate = compiled(self.statistic, self._samples)
        value, error = evaluate(np.arange(self._draws.n_rows)[None])
        self.estimate_, self._estimate_error = value[0], None if error is None else error[0]
        if not np.isfinite(self.estimate_).all():
            raise ValueError(f"The statistic of the samples as they are is {self.estimate_}: there is nothing to resample.")
        self.replicates_, self._errors = self._replicated(evaluate)
        kept = self.replicates_[self._defined()]
        self.mean_, self.variance_, self.standard_error_ = kept.mean(axis=0), kept.var(axis=0), kept.std(axis=0, ddof=1)
        self.bias_ = self.mean_ - self.estimate_
        return self

    def interval(self, level=0.95, method="bca"):
        """Give an interval for the statistic of the law that the rows come from.

        Parameters
        ----------
        level : Share of samples whose interval should hold the truth.
        method : "bca"; "expanded", the same widened for few rows; "percentile", "basic", "normal"; or "studentized", which for
            a function computes the statistic of every resample with each row left out. Rows of a series have the middle three.

        Returns
        -------
        interval : NamedTuple (low, high), of numbers or of arrays of the statistic's shape.

        Examples
        --------
        >>> bootstrap = Bootstrap("median", random_state=0).fit([1.0, 2.0, 3.0, 5.0, 8.0, 13.0, 21.0])
        >>> [float(end) for end in bootstrap.interval(0.9, "percentile")]
        [2.0, 13.0]
        """
        ends = [interval_of(evidence, level, method) for evidence in self._evidence(level, method)]
        low, high = (np.reshape(side, self.estimate_.shape)[()] for side in zip(*ends, strict=True))
        return Interval(low, high)

    def plot(self, *, level=0.95, method=None, ax=None):
        """Draw the replicates, the estimate and an interval; return the display (see `lemmata.plot.BootstrapDisplay`).

        Parameters
        ----------
        level, method : Of the interval; of a series the "percentile" one by default, else "bca".
        ax : Where to draw; None for a new figure.
        """
        check_is_fitted(self)
        # Plots know the bootstrap and it does not know plots, so the package is looked up by its name, and only now.
        display = import_module("lemmata.plot").BootstrapDisplay
        return display.from_bootstrap(self, level=level, method=method or self._usual_method(), ax=ax)

    def certify(self, *samples, strata=None, sample_weight=None, level=0.95, method=None):
        """Draw all resamples again from the seed and recompute the statistic of each, a named one in NumPy's words.

        Parameters
        ----------
        samples, strata, sample_weight : As in `fit`.
        level, method : Interval whose ends are judged for chance; of a series the "percentile" one by default, else "bca".
        """
        check_is_fitted(self)
        again = read_samples(samples, self.statistic, self.paired, strata, sample_weight)
        draws = lay_out(again.groups, self.resampling, self.block_length, len(self.replicates_), self.seed_)
        method = method or self._usual_method()
        chance = chance_check(self, level, method)
        name = f"Bootstrap({getattr(self.statistic, '__name__', self.statistic)})"
        return Certificate(*recomputed_checks(self, again, draws), chance, subject=name)

    def _usual_method(self):
        return "percentile" if self._draws.in_runs else "bca"

    def _replicated(self, evaluate):
        ours = named(self.statistic) is not None
        return replicate(evaluate, self._draws, ours=ours, n_jobs=self.n_jobs, verbose=self.verbose)

    def _defined(self):
        """Tell which replicates are numbers, and say how many are not."""
        defined = np.isfinite(self.replicates_).reshape(len(self.replicates_), -1).all(axis=1)
        share = f"{(~defined).sum()} of {len(defined)} resamples"
        if defined.sum() < 2:
            raise ValueError(f"The statistic is not defined for {share}: the rows are too few or too equal.")
        if not defined.all():
            warnings.warn(f"The statistic is not defined for {share}; these are left out.", stacklevel=3)
        return defined

    def _evidence(self, level, method):
        """List what the intervals of the numbers of the statistic are made from."""
        check_is_fitted(self)
        if method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}; got {method!r}.")
        if self._draws.in_runs and method in ("bca", "expanded", "studentized"):
            raise ValueError(f'method="{method}" is for rows that are independent; of a series use "percentile" or "basic".')
        kept = np.isfinite(self.replicates_).reshape(len(self.replicates_), -1).all(axis=1)
        check_level(level, int(kept.sum()))
        pull = self._pull() if method in ("bca", "expanded") else None
        error, errors = self._own_errors() if method == "studentized" else (None, None)
        groups, known = self._samples.groups, named(self.statistic)
        line = None if known is None or known.to_line is None else (known.to_line, known.slope, known.from_line)

        def of(array, j):
            return None if array is None else np.reshape(array, (len(array), -1))[:, j]

        return [
            Evidence(
                estimate=float(np.ravel(self.estimate_)[j]),
                replicates=of(self.replicates_[kept], j),
                bias=float(np.ravel(self.bias_)[j]),
                standard_error=float(np.ravel(self.standard_error_)[j]),
                influences=of(pull, j),
                freedom=len(groups) - int(groups.max()) - 1,
                estimate_error=None if error is None else float(np.ravel(error)[j]),
                errors=of(None if errors is None else errors[kept], j),
                line=line,
            )
            for j in range(self.estimate_.size)
        ]

    def _pull(self):
        """Give what each row adds to the statistic, by leaving it out."""
        values = left_out(self.statistic, self._samples)
        if values.shape[1:] != np.shape(self.estimate_):
            raise NoIntervalError(
                f"The statistic has the shape {np.shape(self.estimate_)}, and {values.shape[1:]} without a row: for bca "
                'it must not have a number for each row; or use method="percentile".'
            )
        if not np.isfinite(values).all():
            raise NoIntervalError(
                'The statistic is not defined without one of the rows, as bca needs it; use method="percentile".'
            )
        return influences(values, self._samples.groups)

    def _own_errors(self):
        """Give the standard errors of the estimate and of the replicates as the statistic itself has them."""
        if self._errors is not None:
            return self._estimate_error, self._errors
        errors = self._replicated(partial(jackknife_errors, self.statistic, self._samples))[0]
        return jackknife_error(left_out(self.statistic, self._samples), self._samples.groups), errors
