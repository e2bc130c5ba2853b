"""How chains of Metropolis-Hastings are advanced: one by one in machine code, or all together by NumPy.

An engine has the state of all chains: where they are, `x` (chains, d), the log density there, `log_x`, and how many proposals
each has accepted. `advance(task, thin, draws, logs)` fills draws (chains, n, d) for a task, which is one chain or all of
them.
"""

import numpy as np

from lemmata.sampling import compiled
from lemmata.sampling.draws import check_args, evaluate
from lemmata.sampling.proposals import Independence, Proposal, RandomWalk, as_law

BLOCK = 256  # draws of an independence proposal that are made at once
TRIES = 8  # calls of compiled functions that are watched


class Target:
    """The log density with its data, for one point and for many."""

    def __init__(self, log_density, args, vectorized):
        self.log_density, self.args, self.vectorized = log_density, check_args(args), vectorized

    def __call__(self, points):
        """Give the log densities of points, as rows; refuse NaN and infinity, which no chain could leave."""
        found = evaluate(self.log_density, points, self.args, self.vectorized)
        if not (found < np.inf).all():
            worst = int(np.argmax(~(found < np.inf)))
            raise ValueError(bad_density(points[worst], found[worst]))
        return found


def bad_density(point, value):
    """Say what is wrong with a log density.

    Examples
    --------
    >>> bad_density(np.array([0.5]), np.nan)
    'The log density is nan at x = [0.5]; it must be a number there, or −inf where the target has no mass.'
    """
    told = np.array2string(np.asarray(point), precision=6, threshold=12)
    return f"The log density is {value:g} at x = {told}; it must be a number there, or −inf where the target has no mass."


def check_point(y, x):
    """Give what was proposed from x as an array like x.

    Examples
    --------
    >>> check_point([2], np.array([1]))
    array([2])
    """
    y = np.asarray(y)
    if y.shape != x.shape:
        raise ValueError(f"The proposal must give points of the shape {x.shape}, as start has; it gave {y.shape}.")
    if not np.can_cast(y.dtype, x.dtype, "same_kind"):
        raise ValueError("The proposal gives real numbers and start has integers; begin with real numbers.")
    return y.astype(x.dtype)


def unchanged(name, after, before):
    """Refuse a function that has changed a point.

    Examples
    --------
    >>> unchanged("draw", np.array([1.0]), np.array([1.0]))
    """
    if not np.array_equal(after, before):
        raise ValueError(f"{name} must not change the point that it was given; let it work on a copy.")


class Engine:
    """The state of all chains.

    Parameters
    ----------
    rngs : Two generators for each chain: of proposals, and of decisions.
    """

    def __init__(self, target, proposal, x, log_x, rngs):
        self.target, self.proposal, self.x, self.log_x = target, proposal, x, log_x
        self.normals, self.deciders = rngs[::2], rngs[1::2]
        self.accepted = np.zeros(len(x), dtype=np.int64)
        if isinstance(proposal, RandomWalk):
            d = x.shape[1]
            self.factor = proposal.factor(d)
            self.turn = np.zeros((len(x), 1), dtype=np.int64)
            self.tune_from(np.array([proposal.log_scale(d)]), 0.0)

    def tune_from(self, log_scales, gain):
        """Let all chains step with these scales, one of all directions together or one for each, and adapt them with a gain."""
        self.tune = np.zeros((len(self.x), len(log_scales), 4))
        self.tune[:, :, 0], self.tune[:, :, 1] = log_scales, gain
        together = len(log_scales) == 1
        self.goal = 0.234 + 0.206 / (self.x.shape[1] if together else 1)  # 0.44 in one dimension, 0.234 in many: moves most


class CompiledEngine(Engine):
    """Advance each chain in machine code, with the user's functions inside."""

    parallel, first = True, 1024  # draws of the first stretch: a millisecond

    def __init__(self, target, proposal, x, log_x, rngs):
        super().__init__(target, proposal, x, log_x, rngs)
        self.tasks = range(len(x))
        self._watch(x[0])

    def _watch(self, x):
        """Try the functions: compiled code would not notice points of another shape, nor points that change."""
        rng, proposal = np.random.default_rng(0), self.proposal
        for _ in range(TRIES):
            here = x.copy()
            self.target.log_density(here, *self.target.args)
            unchanged("log_density", here, x)
            if isinstance(proposal, Proposal):
                found = proposal.draw(here, rng)
                if np.shares_memory(found, here):
                    raise ValueError("draw must not give back the point that it was given; let it begin with a copy of x.")
                y = check_point(found, x)
                unchanged("draw", here, x)
                if proposal.log_ratio is not None:
                    there = y.copy()
                    proposal.log_ratio(here, there)
                    unchanged("log_ratio", here, x)
                    unchanged("log_ratio", there, y)

    def advance(self, c, thin, draws, logs):
        """Advance chain c."""
        density, args, proposal = self.target.log_density, self.target.args, self.proposal
        here = self.log_x[c : c + 1]
        if isinstance(proposal, RandomWalk):
            walk = (self.factor, self.tune[c], self.turn[c], self.goal)
            work = (self.normals[c], self.deciders[c], thin, draws[c], logs[c])
            accepted = compiled.walk(density, args, self.x[c], here, *walk, *work)
        else:
            work = (self.x[c], here, self.normals[c], self.deciders[c], thin, draws[c], logs[c])
            accepted = compiled.proposed(density, args, proposal.draw, proposal.log_ratio, *work)
        if accepted == -1:
            raise ValueError(bad_density(self.x[c], density(self.x[c], *args)))
        if accepted == -2:
            raise ValueError(f"log_ratio is not a number for a move to {self.x[c]}.")
        self.accepted[c] += accepted


class LockstepEngine(Engine):
    """Advance all chains together, a step at a time; the log densities of all are asked for at once."""

    parallel, first = False, 16
    tasks = (None,)

    def __init__(self, target, proposal, x, log_x, rngs):
        super().__init__(target, proposal, x, log_x, rngs)
        if isinstance(proposal, Independence):
            law, d = as_law(proposal.law), x.shape[1]
            shape = np.shape(law.draw(2, np.random.default_rng(0)))
            if shape != (2, d) and not (d == 1 and shape == (2,)):
                raise ValueError(f"The law must give points of {d} dimensions, as start has; two draws have the shape {shape}.")
            self.sources = [_stream(law, rng) for rng in self.normals]
            self.own = np.array([_log_law(law, point) for point in x])

    def advance(self, _, thin, draws, logs):
        """Advance all chains."""
        n, d = draws.shape[1], self.x.shape[1]
        decisions = -np.stack([rng.standard_exponential(n * thin) for rng in self.deciders], axis=1)
        steps = None
        if isinstance(self.proposal, RandomWalk):
            wide = d if self.tune.shape[1] == 1 else 1
            steps = np.stack([rng.standard_normal((n * thin, wide)) for rng in self.normals], axis=1)
        for t in range(n * thin):
            y, ratios, news = self._propose(None if steps is None else steps[t])
            there = self.target(y)
            rise = there - self.log_x + ratios
            if np.isnan(rise).any():
                raise ValueError(f"log_ratio is not a number for a move to {y[np.isnan(rise)][0]}.")
            taken = rise > decisions[t]
            self.log_x = np.where(taken, there, self.log_x)
            self.x = np.where(taken[:, None], y, self.x)
            self.accepted += taken
            if news is not None:
                self.own = np.where(taken, news, self.own)
            if steps is not None and self.tune[0, 0, 1] > 0:
                self._adapt(np.exp(np.minimum(rise, 0.0)))
            if t % thin == thin - 1:
                draws[:, t // thin], logs[:, t // thin] = self.x, self.log_x

    def _propose(self, z):
        """Give points, log ratios of the ways back and there, and, of an independence proposal, its log densities of them."""
        if isinstance(self.proposal, RandomWalk):
            r = int(self.turn[0, 0]) % self.tune.shape[1]
            directions = self.factor.T if self.tune.shape[1] == 1 else self.factor.T[r : r + 1]
            self.turn += 1
            return self.x + np.exp(self.tune[:, r, :1]) * (z @ directions), 0.0, None
        if isinstance(self.proposal, Independence):
            found = [next(source) for source in self.sources]
            y, news = np.stack([point for point, _ in found]), np.array([log for _, log in found])
            return y, self.own - news, news
        y = np.stack([check_point(self.proposal.draw(x.copy(), rng), x) for x, rng in zip(self.x, self.normals, strict=True)])
        if self.proposal.log_ratio is None:
            return y, 0.0, None
        return y, np.array([float(self.proposal.log_ratio(a.copy(), b.copy())) for a, b in zip(self.x, y, strict=True)]), None

    def _adapt(self, chances):
        """Change the scales of steps towards the acceptance that is wanted."""
        tune = self.tune[:, (int(self.turn[0, 0]) - 1) % self.tune.shape[1]]
        tune[:, 2] += 1.0
        tune[:, 0] += tune[:, 1] * tune[:, 2] ** -compiled.ADAPTATION * (chances - self.goal)
        tune[:, 3] += (tune[:, 0] - tune[:, 3]) / tune[:, 2]


def _log_law(law, point):
    """Give the log density of one point under a law of points or of numbers."""
    found = np.ravel(law.log_density(point[None] if len(point) > 1 else point))
    return float(found[0])


def _stream(law, rng):
    """Draw points and their log densities for ever, some at a time."""
    while True:
        raw = np.asarray(law.draw(BLOCK, rng))
        yield from zip(raw[:, None] if raw.ndim == 1 else raw, np.ravel(law.log_density(raw)), strict=True)


def engine_for(target, proposal, x, log_x, rngs):
    """Choose machine code where all functions are compiled, else NumPy."""
    functions = [target.log_density]
    if isinstance(proposal, Proposal):
        functions += [proposal.draw] + ([] if proposal.log_ratio is None else [proposal.log_ratio])
    fits = not target.vectorized and isinstance(proposal, RandomWalk | Proposal)
    compiles = fits and all(map(compiled.is_compiled, functions))
    return (CompiledEngine if compiles else LockstepEngine)(target, proposal, x, log_x, rngs)
