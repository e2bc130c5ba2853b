"""EM: one engine for every model with hidden variables.

An iteration is one pass over the rows. The E-step of a block gives its log-likelihood and the expected sufficient statistics
under the posterior of the hidden variables; both add up over blocks. The M-step turns the sums into the parameters that
maximize the expected log joint density. The log-likelihood never falls (`bound` says why).

EM converges linearly, at the rate of the share of information that is hidden. So it may leap: EM is a fixed point map
θ ↦ M(θ), and from two steps f₀ = M(θ₀) − θ₀ and f₁ = M(θ₁) − θ₁ with θ₁ = M(θ₀) the squared extrapolation [1] goes to
θ₀ + 2α f₀ + α² (f₁ − f₀), α = ‖f₀‖/‖f₁ − f₀‖, in coordinates without constraints; α = 1 would be EM's own θ₂. A leap is
tried, not trusted: where the log-likelihood falls, the next pass starts from the plain EM step that the leap replaced. How long
a leap may be grows while leaps at that length succeed, and shrinks when they fail.
Convergence is declared on a plain step only, since a leap that gains little may have just missed. And where EM comes to rest
near a point at which the likelihood is stationary but no maximum, it would leave again too slowly to be seen: a model that can
tell proposes where to go on, and that is a leap like any other.

[1] Varadhan & Roland, Scand. J. Stat. 35 (2008): SQUAREM, scheme S3.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from lemmata.core.blocks import Blocks
from lemmata.core.iterate import ROUNDING, MonotonicityError, Run, iterate
from lemmata.core.random import generator, spawn
from lemmata.core.threads import serial_blas

PLAIN, LEAP, ESCAPE = 0, 1, 2  # how the parameters of a pass were found
NEVER = 1 << 40  # passes to wait after an escape that led nowhere
WAIT = 1  # plain pass after a leap that failed, before the next two steps are compared
NOISE = 1e-6  # changes of the mean log-likelihood above are no rounding
LONGEST, GROW = 16.0, 4.0  # the longest leap at first, in steps, and by how much it grows and shrinks as leaps succeed and fail


@dataclass(frozen=True)
class Restarted(Run):
    """The best run of several, and the mean log-likelihood that each of them reached."""

    restarts: np.ndarray


class LatentModel:
    """What `em` asks of a model; parameters are a tuple of arrays and numbers.

    Methods
    -------
    start(blocks, rng) : Parameters to begin with.
    prepare(parameters) : What the E-step of every block needs to know; by default the parameters.
    e_step(X, weight, prepared) : (log-likelihood, *statistics) of a block, additive over blocks; weight may be None.
    m_step(statistics, parameters) : Parameters that maximize the expected log joint density; the old ones are for what the
        statistics say nothing about.
    penalty(parameters) : What the M-step takes off the mean log-likelihood beside; default 0.
    slack(before, after) : How much the log-likelihood minus the penalty may fall in a step nevertheless; default 0.
    rounding(parameters) : How far rounding alone may move the mean log-likelihood; default 0.
    complete(parameters) : Whether nothing is hidden, so that one step leads to the maximum; by default never.
    escape(before, after) : Where to go on if such a step gained nothing and yet is no maximum; by default nowhere, None.
    pack(parameters) : The parameters as a vector without constraints, in which to leap, or None.
    unpack(vector) : The parameters, or None where the vector leads out of bounds.

    Examples
    --------
    Two coins, five times ten tosses, and nobody noted which coin: the hidden variable is the coin of each row.

    >>> import numpy as np
    >>> from scipy.special import xlog1py, xlogy
    >>> class TwoCoins(LatentModel):
    ...     def start(self, blocks, rng):
    ...         return (np.array([0.6, 0.5]),)
    ...     def e_step(self, X, weight, parameters):
    ...         (heads,) = parameters
    ...         log_joint = np.log(0.5) + xlogy(X, heads) + xlog1py(10 - X, -heads)
    ...         total = np.logaddexp.reduce(log_joint, axis=1)
    ...         posterior = np.exp(log_joint - total[:, None])
    ...         return total.sum(), (posterior * X).sum(axis=0), 10 * posterior.sum(axis=0)
    ...     def m_step(self, statistics, parameters):
    ...         _, heads, tosses = statistics
    ...         return (heads / tosses,)
    >>> run = em(TwoCoins(), [[5.0], [9.0], [8.0], [4.0], [7.0]])
    >>> run.state[0], 5 * run.trace[:2]
    (array([0.7967, 0.5195]), array([-33.0938, -31.8592]))
    """

    name = "EM"

    def start(self, blocks, rng):
        """Choose the parameters to begin with."""
        raise NotImplementedError

    def prepare(self, parameters):
        """Give what the E-step of every block needs."""
        return parameters

    def e_step(self, X, weight, prepared):
        """Give the log-likelihood of a block and its expected sufficient statistics."""
        raise NotImplementedError

    def m_step(self, statistics, parameters):
        """Maximize the expected log joint density."""
        raise NotImplementedError

    def penalty(self, parameters):
        """Give what the M-step takes off the mean log-likelihood."""
        return 0.0

    def slack(self, before, after):
        """Bound how much the mean log-likelihood minus the penalty may fall in this step."""
        return 0.0

    def rounding(self, parameters):
        """Say how far rounding alone may move the mean log-likelihood."""
        return 0.0

    def complete(self, parameters):
        """Tell whether nothing is hidden."""
        return False

    def escape(self, before, after):
        """Give parameters beside a point of rest that is no maximum, or None."""
        return

    def pack(self, parameters):
        """Give the parameters as a vector without constraints, or None."""
        return

    def unpack(self, vector):
        """Undo `pack`."""
        return


def em(model, X, *, sample_weight=None, n_init=1, tol=1e-10, max_iter=1000, acceleration=True, random_state=None, verbose=0):
    """Fit a model with hidden variables.

    Parameters
    ----------
    model : A `LatentModel`.
    X : Rows: an array, a frame, or any table that `Blocks.of` takes. What NaN means is for the model to say.
    sample_weight : Repetitions of each row.
    n_init : Starts, of which the one that reaches the highest likelihood is kept.
    tol : Stop when a plain step changes the mean log-likelihood of a row by no more.
    max_iter : Passes over the rows at most, for each start.
    acceleration : Whether to leap, if the model can `pack` its parameters.
    random_state : Seed of the starts.
    verbose : 1 shows a progress bar.

    Returns
    -------
    run : `run.state` has the parameters, `run.trace` the mean log-likelihood at each pass of the best run, `run.restarts` that
        which each run reached.

    Examples
    --------
    >>> from lemmata.mixture import LatentModel
    >>> class Mean(LatentModel):  # nothing hidden: one step
    ...     def start(self, blocks, rng):
    ...         return (0.0,)
    ...     def e_step(self, X, weight, parameters):
    ...         return -0.5 * ((X - parameters[0]) ** 2).sum(), float(X.sum())
    ...     def m_step(self, statistics, parameters):
    ...         return (statistics[1] / 4,)
    >>> run = em(Mean(), [[1.0], [2.0], [3.0], [6.0]])
    >>> run.state, run.trace
    ((3.0,), array([-6.25, -1.75, -1.75]))
    """
    for name, number, least in (("n_init", n_init, 1), ("max_iter", max_iter, 1), ("tol", tol, 0)):
        if not number >= least:
            raise ValueError(f"{name} must be at least {least}, got {number!r}.")
    blocks = Blocks.of(X, sample_weight)
    drive = partial(_plain_drive, max_iter=max_iter, verbose=verbose)
    with serial_blas():
        return best_of(model, blocks, spawn(generator(random_state), n_init), drive, tol=tol, acceleration=acceleration)


def _plain_drive(step, state, *, fitted, **options):
    """Run `iterate` for nobody's attributes."""
    return iterate(step, state, **options)


def best_of(model, blocks, rngs, drive, *, tol, acceleration, fitted=None):
    """Run EM from one start for each generator; return the run that reached the highest likelihood, and what the others did.

    Parameters
    ----------
    drive : `iterate`, or what an estimator has in its place, as drive(step, state, tol=…, monotone=…, …, fitted=…).
    fitted : Function that turns parameters into fitted attributes, for callbacks.
    """
    total = blocks.reduce(_weight_block)
    best, reached = None, []
    for rng in rngs:
        state = begin(model.start(blocks, rng))
        run = drive(
            partial(step, model, blocks, total, acceleration, tol),
            state,
            tol=tol,
            monotone="up",
            rounding=np.inf,  # `step` knows how far the likelihood may fall, and raises itself
            name=model.name,
            fitted=None if fitted is None else lambda state: fitted(state[1]),
        )
        reached.append(run.trace[-1] if run.n_iter else -np.inf)
        if best is None or (run.n_iter and run.trace[-1] > best.trace[-1]):  # an interrupted run may have no trace
            best = run
        if run.reason in ("interrupted", "callback"):
            break
    return Restarted(best.state[1], best.trace, best.converged, best.reason, np.array(reached))


def begin(parameters):
    """Give the state of an iteration.

    It holds what to try, what to fall back to, the log-likelihood before and its merit (minus the penalty), how what to try
    was found, passes to wait, the longest leap, and the memory.
    """
    return parameters, parameters, (-np.inf, -np.inf), PLAIN, 0, LONGEST, ()


def step(model, blocks, total, leaps, tol, state):
    """Pass over the rows once; return (state, mean log-likelihood, the change of its merit by a plain step).

    The memory has the parameters of the pass before and, where that was a step to leap from, their vector and its step.
    """
    tried, safe, before, how, wait, longest, memory = state
    try:
        statistics = blocks.reduce(model.e_step, model.prepare(tried))
        value = float(statistics[0]) / total
        merit = value - model.penalty(tried)
    except ValueError:
        if how == PLAIN:
            raise
        merit = np.nan  # a leap to where nothing can be evaluated
    if how != PLAIN and not merit >= before[1]:
        shorter = max(longest / GROW, 1.0)
        return (safe, safe, before, PLAIN, WAIT if how == LEAP else NEVER, shorter, memory[:1]), before[0], np.inf
    _watch(model, before[1], merit, *memory[:1], tried)
    after = model.m_step(statistics, tried)
    target, found, now = None, LEAP, (tried,)
    here, there = (model.pack(tried), model.pack(after)) if leaps else (None, None)
    if here is not None and there is not None:
        now = (tried, here, there - here)
        if len(memory) == 3 and how == PLAIN and wait == 0:
            by, target = _leap(model, longest, *memory[1:], now[2])
            longest = longest * GROW if by == longest else longest
    change = np.inf if how != PLAIN else abs(merit - before[1])
    if tol < change <= NOISE and change <= model.rounding(tried):
        change = tol
    if np.isfinite(before[0]) and model.complete(tried):
        target, change = None, 0.0
    elif change <= tol:
        target, found = model.escape(tried, after) if wait < NEVER else None, ESCAPE
        change = change if target is None else np.inf
    tries = (after, after, (value, merit), PLAIN) if target is None else (target, after, (value, merit), found)
    return (*tries, max(wait - 1, 0), longest, now), value, change


def _watch(model, before, merit, *parameters):
    """Raise if the merit fell from one parameters to the next by more than rounding and the model's slack."""
    rounding = ROUNDING * max(abs(merit), abs(before)) if np.isfinite(before) else np.inf
    if before - merit > rounding and before - merit > rounding + model.slack(*parameters):
        raise MonotonicityError(f"{model.name}: the log-likelihood fell in an EM step, from {before:.17g} to {merit:.17g}.")


def _leap(model, longest, point, first, second):
    """Extrapolate two steps in a row, the first of them from a point; return how far, and the parameters.

    None where EM's own step is as long, or where the leap leads out of bounds.
    """
    bend = second - first
    long, short = np.linalg.norm(first), np.linalg.norm(bend)
    if not long > short > 0:
        return 0.0, None
    by = min(long / short, longest)
    return by, model.unpack(point + 2 * by * first + by * by * bend)


def _weight_block(X, weight):
    """Total weight of a block."""
    return float(X.shape[0] if weight is None else weight.sum())
