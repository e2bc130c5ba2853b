"""The error of a model on new rows, by fitting it to bags and testing it out of them: .632 and .632+.

What is estimated, and from what, stands in `bootstrap_losses`. The same fits tell for free how much of the error is variance:
the predictions of a row by models fitted to different bags vary about their mean; what that mean misses is bias² and noise,
which cannot be told apart without the truth (`lemmata.theory.bias_variance` has it).
"""

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lemmata.core import config
from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.random import generator
from lemmata.model_selection import bootstrap_losses as losses_of
from lemmata.model_selection.bootstrap_fits import draw_bags, fit_bags, parts_of, read_task


@dataclass(frozen=True)
class BootstrapError:
    """Estimates of the error of a model on new rows.

    Attributes
    ----------
    apparent : Mean loss on the rows of the fit.
    out_of_bag : Leave-one-out bootstrap: mean loss of rows under models fitted to bags without them.
    no_information : γ, the mean loss over all pairs of a target and a prediction.
    relative_overfitting, weight : R′ of [0, 1], and the weight that .632+ gives to out_of_bag.
    err632, err632_plus : The two estimates.
    standard_error : Of out_of_bag, as a function of the sample; NaN where the bags are too few to tell.
    variance, bias_and_noise : Parts of out_of_bag, which they add up to; None if the loss is a function. Of labels, bias and
        noise are what the most frequent prediction gets wrong, and the variance may be negative.
    rows : (n,), mean loss of each row out of bags.
    losses : (n_resamples, n), the loss of each row under each fit; NaN where its bag has it.
    redrawn : Bags that had rows of a single class only, and were drawn again.
    seed : What the bags are drawn from.

    Examples
    --------
    >>> from lemmata.neighbors import KNeighborsClassifier
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(60, 5)), np.tile([0, 1], 30)  # labels that have nothing to do with the rows
    >>> found = bootstrap_error(KNeighborsClassifier(1), X, y, random_state=0)
    >>> found.apparent, round(found.err632, 1), round(found.err632_plus, 1)
    (0.0, 0.3, 0.5)
    >>> found.certify(X, y)["leaks"].holds
    True
    """

    apparent: float
    out_of_bag: float
    no_information: float
    relative_overfitting: float
    weight: float
    err632: float
    err632_plus: float
    standard_error: float
    variance: float | None
    bias_and_noise: float | None
    rows: np.ndarray = field(repr=False)
    losses: np.ndarray = field(repr=False)
    redrawn: int
    seed: int
    estimator: Any = field(repr=False)
    loss: Any = field(repr=False)
    response_method: str = field(repr=False)

    def certify(self, X, y, sample_weight=None, *, n_jobs=None):
        """Draw the bags and fit again: no row is predicted by a fit whose bag has it, and all errors are what they are."""
        task = read_task(self.estimator, X, y, self.loss, self.response_method, sample_weight, self.seed)
        if self.losses.shape[1] != len(task.rows):
            return Certificate(Check("rows", 1.0, 0.0, "proof", "these are the rows of the fits"), subject="bootstrap error")
        bags, redrawn = draw_bags(task, len(self.losses), self.seed)
        predictions, losses, apparent, gamma = fit_bags(task, bags, n_jobs, 0)
        leaks = int((~np.isnan(self.losses) & (bags > 0)).sum() + (np.isnan(self.losses) & (bags == 0)).sum())
        errors = [np.mean([loss[i] for loss in losses if loss[i] == loss[i]] or np.nan) for i in range(losses.shape[1])]
        out = float(np.nanmean(errors))
        share = max(min(out, gamma) - apparent, 0.0)
        overfitting = share / (gamma - apparent) if share > 0 else 0.0
        weight = 0.632 / (1 - 0.368 * overfitting)
        err632 = apparent + 0.632 * (out - apparent)
        expected = {
            "apparent": (apparent, "the mean loss of the fit to all rows, on them"),
            "out_of_bag": (out, "the mean over rows of their mean loss out of bags"),
            "no_information": (gamma, "the mean loss over all pairs"),
            "relative_overfitting": (overfitting, "where out of bag lies between the two, from 0 to 1"),
            "weight": (weight, "0.632/(1 − 0.368 R)"),
            "err632": (err632, "0.368 and 0.632 parts of them"),
            "err632_plus": (err632 + (weight - 0.632) * share, "the same with that weight, out of bag no larger than γ"),
            "redrawn": (redrawn, "bags of a single class, which were drawn again"),
            "standard_error": (losses_of.standard_error(bags, losses), "the infinitesimal jackknife's"),
        }
        checks = [same(getattr(self, key), value, key, claim, floor=gamma) for key, (value, claim) in expected.items()]
        if self.variance is not None:
            parts = parts_of(task, predictions, losses)
            stored = [self.variance, self.bias_and_noise]
            checks.append(same(stored, parts, "parts", "the error is split into variance and the rest"))
        leak = Check("leaks", float(leaks), 0.0, "proof", "no row is predicted by a fit whose bag has it, and all others are")
        again = same(self.losses, losses, "losses", "every fit, repeated, loses the same on every row out of its bag")
        rows = same(self.rows, errors, "rows", "the error of each row is its mean out of bags")
        return Certificate(leak, again, rows, *checks, subject=f"error of {type(self.estimator).__name__}")


def bootstrap_error(
    estimator,
    X,
    y,
    *,
    n_resamples=100,
    loss=None,
    response_method="predict",
    sample_weight=None,
    random_state=None,
    n_jobs=None,
    verbose=0,
):
    """Estimate the error of a model on new rows by the bootstrap: out of bag, .632 and .632+.

    Parameters
    ----------
    estimator : Classifier or regressor, ours or scikit-learn's; it is cloned for every fit.
    X, y : Rows, an array, sparse or a frame, and their targets.
    n_resamples : Bags, each with as many draws as there are rows.
    loss : Function of (y, prediction) that gives a number for each row; None for wrong labels or squared errors.
    response_method : "predict", or "predict_proba" for a loss of (y, probabilities), whose columns are the sorted labels of y.
    sample_weight : Numbers of repetitions of the rows: a row of weight two is two rows.
    random_state : Seed of the bags, and of fits that draw and have no seed of their own.
    n_jobs : Fits at the same time.
    verbose : 1 shows a progress bar.

    Returns
    -------
    found : BootstrapError.

    Examples
    --------
    >>> from lemmata.linear_model import LinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=40)  # noise of variance 1
    >>> found = bootstrap_error(LinearRegression(), X, y, random_state=0)
    >>> round(found.apparent, 2), round(found.err632, 2), round(found.out_of_bag, 2)
    (0.82, 1.02, 1.14)
    >>> bool(abs(found.variance + found.bias_and_noise - found.out_of_bag) < 1e-12)
    True
    """
    n_resamples = config.whole("n_resamples", n_resamples)
    if n_resamples is None or n_resamples < 2:
        raise ValueError("n_resamples must be a whole number of at least 2.")
    seed = int(generator(random_state).integers(2**31))
    task = read_task(estimator, X, y, loss, response_method, sample_weight, seed)
    bags, redrawn = draw_bags(task, n_resamples, seed)
    predictions, losses, apparent, gamma = fit_bags(task, bags, n_jobs, verbose)
    rows = losses_of.row_errors(losses)
    if np.isnan(rows).all():
        raise ValueError(f"All rows are in all {n_resamples} bags, so nothing is tested: give more rows, or raise n_resamples.")
    if np.isnan(rows).any():
        told = f"{int(np.isnan(rows).sum())} of {len(rows)} rows are in all {n_resamples} bags and are left out"
        warnings.warn(f"{told}: raise n_resamples.", stacklevel=2)
    if redrawn:
        warnings.warn(f"{redrawn} bags had a single class and were drawn again: a class is rare.", stacklevel=2)
    out = float(np.nanmean(rows))
    combined = losses_of.point_632_plus(apparent, out, gamma)
    error = losses_of.standard_error(bags, losses)
    parts = parts_of(task, predictions, losses)
    return BootstrapError(
        apparent, out, gamma, *combined, error, *parts, rows, losses, redrawn, seed, task.estimator, loss, response_method
    )
