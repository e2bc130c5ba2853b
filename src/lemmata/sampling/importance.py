"""Importance sampling: draws from one law, weighted so that they speak for another.

For a target P and draws x₁ … x_N from a proposal Q that has mass wherever P f has,

    f̂ = (1/N) Σ w(xᵢ) f(xᵢ),   w = P / Q,            unbiased, if P is normalized;
    f̂ = Σ w(xᵢ) f(xᵢ) / Σ w(xᵢ),   w = P* / Q,      for P* = Z P, Z unknown: biased by O(1/N), consistent; Z ≈ (1/N) Σ w(xᵢ).

Weights that differ cost draws: (Σ w)² / Σ w² of N are effective. For P = N(0, 1) and Q = N(0, 4), E_Q w² = 4/√7, so that 66 %
are. Where Q has lighter tails than P, the largest weights decide, and the variance may not exist. The shape k̂ of a Pareto
law fitted to the largest weights tells: above 0.7 the estimate is not to be believed, however large N is [1]. The same is asked
of the largest |w f|, since f may have the heavier tails; and below 400 effective draws there is a warning, too.

[1] Vehtari, Simpson, Gelman, Yao, Gabry, JMLR 25 (2024).
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.config import whole
from lemmata.core.diagnostics import ESS_LIMIT, K_LIMIT, pareto_smooth
from lemmata.core.random import generator
from lemmata.sampling.proposals import as_law

LEAST_DRAWS = 2
LARGEST = 300.0  # log of a sum of weights that can still be squared
ERRORS = 5.0  # standard errors by which the mean weight may miss 1: by chance, once in a million


@dataclass(frozen=True)
class Weighted:
    """What importance sampling found.

    Attributes
    ----------
    estimate, standard_error : Of the expectation of f under the target, of the shape of f(x).
    draws : Points drawn from the proposal.
    log_weights : log P* − log Q of every draw, as they came.
    weights : Share of every draw in the estimate; for the unbiased one, w / N, which add up to about one.
    ess : Effective number of draws, (Σ w)² / Σ w².
    pareto_k : Shape of the tail of the weights: NaN for fewer than 25 draws, ∞ where fewer than five weights decide.
    log_normalizer, log_normalizer_error : Logarithm of the mean weight, an estimate of log Z, and its standard error.
    self_normalized : Whether weights were divided by their sum.
    smooth : Whether the largest weights were replaced by quantiles of the Pareto law fitted to them.
    plain : Whether f was the identity.

    Examples
    --------
    >>> from lemmata.probability import Normal
    >>> found = importance(Normal(0.0, 1.0).logpdf, Normal(0.0, 2.0), n_draws=20_000, random_state=0)
    >>> found.n_draws, round(found.ess / found.n_draws, 2)
    (20000, 0.66)
    """

    estimate: np.ndarray
    standard_error: np.ndarray
    draws: np.ndarray
    log_weights: np.ndarray
    weights: np.ndarray
    ess: float
    pareto_k: float
    log_normalizer: float
    log_normalizer_error: float
    self_normalized: bool
    smooth: bool
    plain: bool

    @property
    def n_draws(self):
        """Number of draws."""
        return len(self.draws)

    def certify(self, log_target=None, proposal=None, f=None):
        """Gather the evidence of weights; with target and proposal, prove that the stored weights are their ratios.

        Parameters
        ----------
        log_target, proposal : As they were given to `importance`.
        f : Likewise; without it, only the estimate of the mean can be summed again.

        Examples
        --------
        >>> from lemmata.probability import Normal
        >>> target, proposal = Normal(0.0, 1.0).logpdf, Normal(0.0, 2.0)
        >>> found = importance(target, proposal, n_draws=20_000, random_state=0)
        >>> found.certify(target, proposal).holds
        True
        """
        checks = []
        if log_target is not None and proposal is not None:
            again = _log_weights(log_target, as_law(proposal), self.draws)
            checks.append(same(_finite(self.log_weights), _finite(again), "log weights", "log P* − log Q of every draw"))
        smoothed, k = pareto_smooth(self.log_weights)
        shares = _shares(smoothed + logsumexp(self.log_weights) if self.smooth else self.log_weights, self.self_normalized)
        checks.append(same(self.weights, shares, "weights", "shares of the draws in the estimate"))
        ess, *normalizer = _measures(self.log_weights, shares)
        evidence = [
            Check("ESS", ESS_LIMIT / ess, 1.0, "evidence", "400 / effective draws"),
            Check("Pareto k", k, _k_limit(self.n_draws), "evidence", "the largest weights do not decide: their tail is light"),
        ]
        if self.plain or f is not None:
            values = _values(f, self.draws)
            again = _estimate(shares, values, self.self_normalized)
            found = np.stack([self.estimate, self.standard_error])
            claim = "estimate and standard error, summed again"
            checks.append(same(found, np.stack(again), "estimate", claim, floor=float(np.max(again[1]))))
            heavy = _k_of_parts(self.log_weights, values)
            evidence.append(Check("Pareto k of f", heavy, _k_limit(self.n_draws), "evidence", "nor do the largest |w f|"))
        checks += [
            same(self.ess, ess, "effective draws", "(Σ w)² / Σ w²"),
            same(_finite(self.pareto_k), _finite(k), "tail", "shape of the Pareto law of the largest weights"),
            same(self.log_normalizer, normalizer[0], "normalizer", "log of the mean weight", floor=normalizer[1]),
            same(self.log_normalizer_error, normalizer[1], "normalizer's error", "standard error of the mean weight / mean"),
            *evidence,
        ]
        if not self.self_normalized:
            w = np.exp(self.log_weights)
            miss = abs(w.mean() - 1) / max(w.std(ddof=1) / np.sqrt(len(w)), 1e-12)
            claim = "the mean weight is 1, as of a normalized target, in standard errors"
            checks.append(Check("mean weight", float(miss), ERRORS, "evidence", claim))
        return Certificate(*checks, subject=f"importance sampling, {self.n_draws} draws")


def importance(log_target, proposal, f=None, n_draws=10_000, *, self_normalized=True, smooth=False, random_state=None):
    """Estimate an expectation under a target by weighted draws from a proposal.

    Parameters
    ----------
    log_target : Function of many points, as they come from the proposal, that gives their log densities; known up to a
        constant if `self_normalized`.
    proposal : Law that is drawn from: frozen of SciPy, of `lemmata.probability`, or a pair (draw(n, rng), log_density(x)).
    f : Function of many points whose expectation is wanted: numbers, or rows of numbers. Default: the points themselves.
    n_draws : Points that are drawn from the proposal.
    self_normalized : Whether weights are divided by their sum; False takes the target to be normalized, and has no bias.
    smooth : Whether the largest weights are replaced by quantiles of the Pareto law fitted to them, which lowers the variance.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> found = importance(lambda x: -(x**2) / 2, norm(0, 2), f=lambda x: x**2, random_state=0)
    >>> [round(float(x), 2) for x in (found.estimate, found.standard_error, np.exp(found.log_normalizer))]  # √(2π) = 2.51
    [1.02, 0.01, 2.49]
    """
    n = whole("n_draws", n_draws)
    if n < LEAST_DRAWS:
        raise ValueError(f"n_draws must be at least {LEAST_DRAWS}, got {n}.")
    law = as_law(proposal)
    draws = np.asarray(law.draw(n, generator(random_state)))
    logs = _log_weights(log_target, law, draws)
    if not np.isfinite(logs).any():
        raise ValueError("The target has no mass at any draw: the proposal does not cover it.")
    if not self_normalized and not logsumexp(logs) < LARGEST:
        raise ValueError(
            f"The largest weight is e^{logs.max():.0f}, which no normalized target has: ask with self_normalized=True, which "
            "takes any constant."
        )
    smoothed, k = pareto_smooth(logs)
    shares = _shares(smoothed + logsumexp(logs) if smooth else logs, self_normalized)  # the sum of the weights stays
    values = _values(f, draws)
    estimate, error = _estimate(shares, values, self_normalized)
    ess, log_normalizer, log_normalizer_error = _measures(logs, shares)
    fault = _fault(k, _k_of_parts(logs, values), ess, n)
    if fault:
        warnings.warn(fault, stacklevel=2)
    return Weighted(
        estimate=estimate,
        standard_error=error,
        draws=draws,
        log_weights=logs,
        weights=shares,
        ess=ess,
        pareto_k=k,
        log_normalizer=log_normalizer,
        log_normalizer_error=log_normalizer_error,
        self_normalized=self_normalized,
        smooth=smooth,
        plain=f is None,
    )


def _measures(logs, shares):
    """Give the effective number of draws, the log of the mean weight, and its standard error."""
    top = logs.max()
    w = np.exp(logs - top)
    error = w.std(ddof=1) / w.mean() / np.sqrt(len(logs))
    return float(shares.sum() ** 2 / (shares**2).sum()), float(np.log(w.mean()) + top), float(error)


def _k_of_parts(logs, values):
    """Give the largest shape of the tails of |w f| over all numbers that f gives."""
    with np.errstate(divide="ignore", invalid="ignore"):
        sizes = np.log(np.abs(values.reshape(len(logs), -1))).T
    sizes = np.where(np.isneginf(logs), -np.inf, sizes + logs)  # what has no mass may be anything
    found = [pareto_smooth(row)[1] for row in sizes if np.isfinite(row.max())]
    return max(found, default=-np.inf)


def _values(f, draws):
    values = np.asarray(draws if f is None else f(draws), dtype=float)
    if values.shape[:1] != (len(draws),):
        raise ValueError(f"f must give a number or a row for each of {len(draws)} points; it gave the shape {values.shape}.")
    return values


def _log_weights(log_target, law, draws):
    """Give log P* − log Q of all draws."""
    target = log_target.logpdf if hasattr(log_target, "logpdf") else log_target
    above, below = np.asarray(target(draws), dtype=float), np.asarray(law.log_density(draws), dtype=float)
    if above.shape != (len(draws),) or below.shape != (len(draws),):
        raise ValueError(
            f"The log densities of target and proposal must be {len(draws)} numbers for as many points of the shape "
            f"{draws.shape[1:]}; they have the shapes {above.shape} and {below.shape}."
        )
    for logs, whose in ((above, "target"), (below, "proposal")):
        if not (logs < np.inf).all():
            at = int(np.argmax(~(logs < np.inf)))
            raise ValueError(f"The log density of the {whose} is {logs[at]:g} at {draws[at]}; it must be a number or −inf.")
    if not np.isfinite(below).all():
        raise ValueError("The proposal has the log density −inf at a point that it drew; its two functions do not agree.")
    return above - below


def _shares(logs, self_normalized):
    return np.exp(logs - (logsumexp(logs) if self_normalized else np.log(len(logs))))


def _estimate(shares, values, self_normalized):
    """Give the weighted mean and its standard error."""
    n, over = len(shares), (slice(None),) + (None,) * (values.ndim - 1)
    parts = np.where(shares[over] > 0, shares[over] * values, 0.0)  # what has no mass may be anything, even infinite
    estimate = parts.sum(axis=0)
    if self_normalized:
        away = np.where(shares[over] > 0, values - estimate, 0.0)
        return estimate, np.sqrt((shares[over] ** 2 * away**2).sum(axis=0) * n / (n - 1))
    return estimate, parts.std(axis=0, ddof=1) * np.sqrt(n)


def _finite(logs):
    """Let weights of zero, and shapes without a number, compare as equal."""
    return np.nan_to_num(logs, nan=np.nan, posinf=1e300, neginf=-1e300)


def _k_limit(n):
    """Give the largest k̂ at which averages of n draws can be believed [1]."""
    return min(K_LIMIT, 1 - 1 / np.log10(n)) if n > 10 else K_LIMIT


def _fault(k, k_of_f, ess, n):
    """Say what speaks against an estimate; nothing if nothing does."""
    limit, said = _k_limit(n), "estimate and standard error are not to be believed. Take a proposal with heavier tails"
    if np.isnan(k):
        return f"{n} draws are too few to say anything about the tail of their weights; draw at least 25, better thousands."
    if not k <= limit:
        return f"The largest weights decide (Pareto k = {k:.2f}, above {limit:.2g}): {said}, closer to the target."
    if not k_of_f <= limit:
        return f"The largest of weight times f decide (Pareto k = {k_of_f:.2f}, above {limit:.2g}): {said}, closer to both."
    if ess < ESS_LIMIT:
        return f"Only {ess:.0f} of {n} draws are effective, below {ESS_LIMIT:.0f}: draw more, or closer to the target."
    return None
