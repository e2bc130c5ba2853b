"""Metropolis-Hastings: a walk that visits every region as often as the target has mass there.

From x, propose y with density Q(y; x), and go there with the chance

    A = min {1, P(y) Q(x; y) / (P(x) Q(y; x))},

else stay. P may lack its constant, which cancels. The chance to stay, Q(x; x) + Σ_y Q(y; x) (1 − A), belongs to the kernel as
well. Then P(x) T(y; x) = P(y) T(x; y) for every pair: detailed balance, so P is stationary [1]. That the chain also converges
to P takes that it can reach every region and has no period; a walk with normal steps and some rejections has both.

A random walk with small steps is slow, and with large ones it is rejected; in d dimensions it does best with steps of 2.38 /
√d times the target's own shape, where about a quarter of them is accepted [2]. The shape is unknown at first. So the warm-up
goes in windows. In the first, directions take turns and each finds its own scale; then they step together, in windows of
doubling length: in each, the scale follows the share of acceptances, and after each, the covariance of the steps becomes that
of the draws within chains, pooled. Then both are fixed, and what is kept is a true Markov chain with the target as its law.

[1] Metropolis et al., Journal of Chemical Physics 21 (1953); Hastings, Biometrika 57 (1970).
[2] Roberts, Gelman, Gilks, Annals of Applied Probability 7 (1997); Haario, Saksman, Tamminen, Bernoulli 7 (2001).
"""

import numpy as np

from lemmata.core.config import whole
from lemmata.core.random import generator, spawn
from lemmata.sampling.chains import advance_all, warmup_length
from lemmata.sampling.draws import Draws
from lemmata.sampling.engines import Target, bad_density, engine_for
from lemmata.sampling.proposals import Independence, Proposal, RandomWalk

LEAST_WARMUP, WARMUP_EACH = 1000, 200  # steps, and steps for each dimension
GAIN = 2.0  # of the scale, in the logarithm, at the first step of a window
TURNS = 25  # of each direction, at the start: enough to find its scale within a factor of a thousand
REMEMBERED = 4000  # draws of a window that its covariance is estimated from, for each chain


def metropolis_hastings(
    log_density,
    start,
    n_draws=1000,
    proposal=None,
    n_chains=4,
    random_state=None,
    *,
    args=(),
    vectorized=False,
    warmup=None,
    thin=1,
    names=None,
    verbose=0,
):
    """Draw from a law whose log density is known up to a constant.

    Parameters
    ----------
    log_density : Function of a point (d,): plain Python, or compiled by `numba.njit`, which makes millions of steps a second.
        With `vectorized`, a function of many points (n, d) that gives n numbers. −inf says that there is no mass.
    start : Point where all chains begin, (d,), or one for each, (n_chains, d), or a function of a generator that draws one.
        R-hat sees a second mode only if chains begin far apart: scatter the starts. Integers stay integers with a `Proposal`
        of one's own.
    n_draws : Draws that are kept of each chain.
    proposal : `RandomWalk` (default, adaptive), `Independence` or `Proposal`.
    n_chains : Chains, which run on threads where the log density is compiled.
    args : Tuple of data that the log density takes after the point. With numba, other data then need no new compilation.
    warmup : Steps before the first draw is kept, in which a random walk adapts. Default: n_draws · thin / 2, at least
        1000 and at least 200 d.
    thin : Steps from one draw that is kept to the next.
    names : Names of the dimensions.
    verbose : Whether to show progress. Ctrl-C keeps what was drawn.

    Returns
    -------
    Draws, with the log density and the share of accepted proposals.

    Examples
    --------
    >>> draws = metropolis_hastings(lambda x: -abs(x[0] - 3.0), [0.0], n_draws=4000, random_state=0)
    >>> draws.quantile(0.5).round(1), draws.acceptance.round(1)
    (array([3.]), array([0.4, 0.4, 0.4, 0.4]))
    >>> dice = Proposal(lambda x, rng: rng.integers(1, 7, size=1))  # uniform on six states
    >>> loaded = metropolis_hastings(lambda x: np.log(x[0]), [6], n_draws=4000, proposal=dice, random_state=0)
    >>> loaded.mean().round(1)  # Σ i² / Σ i = 91/21
    array([4.3])
    """
    n_draws, n_chains, thin = whole("n_draws", n_draws), whole("n_chains", n_chains), whole("thin", thin)
    proposal = RandomWalk() if proposal is None else proposal
    if not isinstance(proposal, RandomWalk | Independence | Proposal):
        raise ValueError(f"proposal must be a RandomWalk, an Independence or a Proposal, got {type(proposal).__name__}.")
    if not callable(log_density):
        raise ValueError(f"log_density must be a function of a point, got {type(log_density).__name__}.")
    parent = generator(random_state)
    starts, *rngs = spawn(parent, 1 + 2 * n_chains)
    x = starting_points(start, n_chains, starts, isinstance(proposal, RandomWalk))
    target = Target(log_density, args, vectorized)
    engine = engine_for(target, proposal, x, starting_density(target, x), rngs)
    least = max(LEAST_WARMUP, WARMUP_EACH * x.shape[1])
    warmup = warmup_length(warmup, max(least, n_draws * thin // 2))
    warm_up(engine, warmup, verbose)

    shape = (n_chains, n_draws, x.shape[1])
    values, logs = np.empty(shape, dtype=engine.x.dtype), np.empty(shape[:2])
    counts = np.zeros((n_chains, n_draws + 1), dtype=np.int64)  # accepted up to every draw at which a stretch ends
    engine.accepted[:] = 0

    def advance(task, first, last):
        engine.advance(task, thin, values[:, first:last], logs[:, first:last])
        chosen = slice(None) if task is None else task
        counts[chosen, last] = engine.accepted[chosen]

    options = {"parallel": engine.parallel, "first": engine.first}
    done = advance_all(advance, engine.tasks, n_draws, name="Metropolis-Hastings", verbose=verbose, **options)
    return Draws(values[:, :done], logs[:, :done], names=names, acceptance=counts[:, done] / (done * thin))


def starting_points(start, n_chains, rng, real):
    """Give a point for each chain (n_chains, d).

    Examples
    --------
    >>> starting_points([1, 2], 2, None, real=True)
    array([[1., 2.],
           [1., 2.]])
    """
    try:
        x = np.array([np.atleast_1d(start(child)) for child in spawn(rng, n_chains)] if callable(start) else start)
    except ValueError:
        raise ValueError("start must have the same number of coordinates for every chain.") from None
    if not callable(start):
        x = np.tile(np.atleast_1d(x), (n_chains, 1)) if x.ndim < 2 else x
    if x.ndim != 2 or x.shape[0] != n_chains or x.shape[1] == 0 or x.dtype.kind not in "biuf":
        raise ValueError(
            f"start must be a point, one for each of {n_chains} chains as rows, or a function that draws one; got the shape "
            f"{np.shape(start) if not callable(start) else x.shape}."
        )
    if not np.isfinite(x).all():
        raise ValueError(f"start must be finite, got {x[~np.isfinite(x).all(axis=1)][0]}.")
    return np.ascontiguousarray(x, dtype=float if real or x.dtype.kind == "f" else np.int64)


def starting_density(target, x):
    """Give the log densities of starting points; refuse points without mass, from which nothing can be compared."""
    logs = target(x)
    if not np.isfinite(logs).all():
        worst = int(np.argmin(logs))
        raise ValueError(
            f"{bad_density(x[worst], logs[worst])} Chain {worst} cannot begin there: choose a start where the target has mass."
        )
    return logs


def windows(warmup, d):
    """Give the lengths of windows: one in which directions take turns, some that double, and one for the scale alone.

    Examples
    --------
    >>> windows(1000, 10)
    [250, 50, 100, 400, 200]
    """
    turns, last = min(TURNS * d, warmup // 4) if d > 1 else 0, warmup // 5
    left, length, found = warmup - turns - last, max(25, 5 * d), []
    while left > 0:
        length = left if left < 3 * length else length
        found.append(length)
        left, length = left - length, 2 * length
    return [turns, *found, last]


def warm_up(engine, warmup, verbose):
    """Advance all chains without keeping draws; let a random walk learn its steps, and fix them."""
    if not (isinstance(engine.proposal, RandomWalk) and engine.proposal.adapt):
        advance_window(engine, warmup, verbose)
        return
    d = engine.x.shape[1]
    turns, *found, last = windows(warmup, d)
    if turns:
        engine.tune_from(np.repeat(engine.tune[0, 0, 0], d), GAIN)
        advance_window(engine, turns, verbose)
        engine.factor = engine.factor * np.exp(engine.tune[:, :, 3].mean(axis=0))
        engine.tune_from(np.array([np.log(2.38 / d)]), GAIN)  # the scales were those of steps in one direction, √d wider
    for length in found:
        engine.tune_from(engine.tune[:, :, 0].mean(axis=0), GAIN)
        learn(engine, advance_window(engine, length, verbose), length)
    engine.tune_from(engine.tune[:, :, 0].mean(axis=0), GAIN)
    advance_window(engine, last, verbose)
    engine.tune_from(engine.tune[:, :, 3 if last else 0].mean(axis=0), 0.0)


def advance_window(engine, length, verbose):
    """Advance all chains by so many steps; return draws from them (chains, n, d)."""
    chains, d = engine.x.shape
    thin = max(-(-length // REMEMBERED), 1)
    kept = length // thin
    draws, logs = np.empty((chains, kept, d), dtype=engine.x.dtype), np.empty((chains, kept))

    def advance(task, first, last):
        engine.advance(task, thin, draws[:, first:last], logs[:, first:last])

    options = {"parallel": engine.parallel, "first": engine.first, "keep": False}
    advance_all(advance, engine.tasks, kept, name="warm-up", verbose=verbose, **options)
    return draws


def learn(engine, draws, length):
    """Take the covariance of steps from the draws of a window, and begin with the scale that is best for it."""
    chains, _, d = draws.shape
    late = draws[:, draws.shape[1] // 4 :]  # the first quarter comes from where the last window ended
    away = late - late.mean(axis=1, keepdims=True)
    C = np.einsum("cni,cnj->ij", away, away) / max(chains * (late.shape[1] - 1), 1)
    spread = np.diagonal(C)
    if not (spread > 0).all() or not np.isfinite(C).all():
        return  # nothing was learned of some dimension: stay with what there is
    told = chains * length / (4.0 * d)  # effective draws, roughly: a walk needs some multiple of d steps to forget
    share = told / (told + 2.0 * d)
    C = share * C + (1 - share) * np.diag(spread)
    try:
        engine.factor = np.linalg.cholesky(C)
    except np.linalg.LinAlgError:
        return
    engine.tune_from(np.array([np.log(2.38 / np.sqrt(d))]), GAIN)
