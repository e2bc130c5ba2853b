"""Proposals of Metropolis-Hastings, and laws to draw from, whoever has written them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


class Law(NamedTuple):
    """A law as two functions: draws of a number of points with a generator, and the log densities of points."""

    draw: Callable
    log_density: Callable


def as_law(given):
    """Take a law from SciPy (frozen), from `lemmata.probability`, or as a pair of functions (draw(n, rng), log_density(x)).

    Examples
    --------
    >>> from scipy.stats import norm
    >>> law = as_law(norm(0, 2))
    >>> law.log_density(law.draw(2, np.random.default_rng(0))).shape
    (2,)
    """
    if isinstance(given, tuple) and len(given) == 2 and all(map(callable, given)):
        return Law(*given)
    log_density = getattr(given, "logpdf", None) or getattr(given, "logpmf", None)
    if getattr(getattr(given, "dist", None), "pmf", None) is not None and not hasattr(given.dist, "pdf"):
        log_density = given.logpmf  # SciPy's discrete laws, too, answer to logpdf, but only to fail
    if callable(log_density) and hasattr(given, "rvs"):
        return Law(lambda n, rng: given.rvs(size=n, random_state=rng), log_density)
    if callable(log_density) and hasattr(given, "sample"):
        return Law(lambda n, rng: given.sample(n, random_state=rng), log_density)
    raise ValueError(
        "A law is a frozen distribution of SciPy, a distribution of lemmata.probability, or a pair of functions "
        f"(draw(n, rng), log_density(x)); got {type(given).__name__}."
    )


@dataclass(frozen=True)
class RandomWalk:
    """Propose x + scale · L z, z normal and LLᵀ the covariance; scale and covariance are learned in the warm-up, then fixed.

    Parameters
    ----------
    scale : Factor of the steps, to begin with. Default: 2.38 / √d, the best one for a normal target whose covariance is known.
    covariance : Covariance of the steps to begin with, a matrix, or variances. Default: ones.
    adapt : Whether the warm-up changes both.

    Examples
    --------
    >>> RandomWalk(scale=0.5, adapt=False)
    RandomWalk(scale=0.5, covariance=None, adapt=False)
    """

    scale: float | None = None
    covariance: Any = None
    adapt: bool = True

    def factor(self, d):
        """Give the Cholesky factor of the covariance of steps."""
        C = np.ones(d) if self.covariance is None else np.asarray(self.covariance, dtype=float)
        C = np.diag(C) if C.shape == (d,) else C
        if C.shape != (d, d) or not np.isfinite(C).all() or not np.allclose(C, C.T):
            raise ValueError(f"covariance must be {d} variances or a symmetric matrix of the shape {(d, d)}.")
        try:
            return np.linalg.cholesky(C)
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be positive definite.") from None

    def log_scale(self, d):
        """Give the logarithm of the factor of the steps."""
        scale = 2.38 / np.sqrt(d) if self.scale is None else float(self.scale)
        if not 0 < scale < np.inf:
            raise ValueError(f"scale must be a positive number, got {self.scale!r}.")
        return float(np.log(scale))


@dataclass(frozen=True)
class Independence:
    """Propose draws from a law, wherever the chain is; the closer the law to the target, the more are accepted.

    Parameters
    ----------
    law : What `importance` takes as well: of SciPy, of `lemmata.probability`, or (draw(n, rng), log_density(x)). Its tails
        should not be lighter than the target's.

    Examples
    --------
    >>> from lemmata.probability import Normal
    >>> Independence(Normal(0.0, 2.0)).law
    Normal(loc=0.0, scale=2.0)
    """

    law: Any


@dataclass(frozen=True)
class Proposal:
    """Propose by a function of one's own.

    Parameters
    ----------
    draw : Function (x, rng) that gives a new point, as an array. It must not change x.
    log_ratio : Function (x, y) that gives log Q(x; y) − log Q(y; x), the way back from y to x over the way there. None says
        that both are equally probable.

    Notes
    -----
    If the log density and both functions are compiled by numba, they are compiled into the chain.

    Examples
    --------
    >>> around = Proposal(lambda x, rng: (x + rng.choice([-1, 1])) % 10)  # on a ring of ten states
    >>> around.draw(np.array([9]), np.random.default_rng(0))
    array([0])
    """

    draw: Callable
    log_ratio: Callable | None = None
