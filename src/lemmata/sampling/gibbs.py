"""Gibbs sampling: draw each part of a point anew, given all the others, in turn.

    x_k ~ P(x_k | x_1 … x_{k−1}, x_{k+1} … x_K)

As Metropolis-Hastings with the proposal P(y_k | x_rest) it accepts always: P(y) Q(x; y) / (P(x) Q(y; x)) = 1, since both
points have the same rest. Each of these steps leaves P as it is, and so does a sweep of all, in order or at random [1]. (A
sweep in order has no detailed balance; that is sufficient, not necessary.) A part may be a block of many numbers: what is
strongly correlated should be drawn together. The conditionals are the user's, and nothing here can tell that they belong to
one joint law; `simulation_based_calibration` can.

[1] Geman, Geman, IEEE PAMI 6 (1984); Gelfand, Smith, JASA 85 (1990).
"""

import numpy as np

from lemmata.core.config import whole
from lemmata.core.random import generator, spawn
from lemmata.graphical.model import DiscreteModel
from lemmata.sampling.chains import advance_all, scanning, several, warmup_length
from lemmata.sampling.draws import Draws, evaluate


def gibbs(
    conditionals,
    start=None,
    n_draws=1000,
    n_chains=4,
    random_state=None,
    *,
    evidence=None,
    scan="systematic",
    log_density=None,
    warmup=None,
    thin=1,
    names=None,
    verbose=0,
):
    """Draw from a joint law by its conditionals, or from a graphical model.

    Parameters
    ----------
    conditionals : List of functions (x, rng), one for each coordinate of `start`, that draw it anew given the point x; or a
        dict of such functions by name of a block, if `start` is a dict. Or a `FactorGraph` or a `BayesNet`, which have their
        own.
    start : Point (d,), or dict of the blocks' values, numbers or arrays; x is then such a dict. Or one for each chain,
        (n_chains, d) or a list of dicts, or a function of a generator that gives one. R-hat sees a second mode only if chains
        begin far apart: scatter the starts. Graphical models find starts themselves, or take labels by name or numbers of
        states, in all these forms.
    n_draws : Draws that are kept of each chain.
    n_chains : Chains; those of a graphical model run on threads.
    evidence : What is known of a graphical model: {variable: label or number of its state, or likelihoods of its states}.
    scan : "systematic": a sweep draws all parts in order. "random": as many parts as there are, each chosen at random.
    log_density : Function of the point, as conditionals see it, whose values are kept with the draws. Optional.
    warmup : Sweeps before the first draw is kept. Default: n_draws · thin / 2.
    thin : Sweeps from one draw that is kept to the next.
    names : Names of the dimensions. Default: those of the blocks, or x[0], x[1], … Graphical models have their own.
    verbose : 1 shows progress. Ctrl-C keeps what was drawn.

    Examples
    --------
    >>> def given_other(i):
    ...     return lambda x, rng: 0.6 * x[1 - i] + 0.8 * rng.standard_normal()  # a normal law with correlation 0.6
    >>> draws = gibbs([given_other(0), given_other(1)], [0.0, 0.0], n_draws=2000, random_state=0)
    >>> round(float(np.corrcoef(draws.flat.T)[0, 1]), 1)
    0.6
    >>> parts = {
    ...     "group": lambda x, rng: rng.normal(x["all"], size=2),
    ...     "all": lambda x, rng: rng.normal(x["group"].sum() / 3, 3**-0.5),
    ... }
    >>> gibbs(parts, {"group": [0.0, 0.0], "all": 0.0}, n_draws=500, random_state=0).names
    ('group[0]', 'group[1]', 'all')
    """
    n_draws, n_chains, thin = whole("n_draws", n_draws), whole("n_chains", n_chains), whole("thin", thin)
    warmup, random_scan = warmup_length(warmup, n_draws * thin // 2), scanning(scan)
    if isinstance(conditionals, DiscreteModel):
        from lemmata.sampling.factor_gibbs import gibbs_on_factors

        if names is not None or log_density is not None:
            raise ValueError("names and log_density are for conditionals of one's own; a graphical model brings both.")
        if isinstance(start, int | np.integer):
            raise ValueError(
                f"start must have a state for every variable, got {start}; to draw so many, write n_draws={start}."
            )
        options = {"evidence": evidence, "scan": scan, "warmup": warmup, "thin": thin, "start": start, "verbose": verbose}
        return gibbs_on_factors(conditionals, n_draws, n_chains=n_chains, random_state=random_state, **options)
    if evidence is not None:
        raise ValueError("evidence is for graphical models; put what is known into the conditionals.")
    if not isinstance(conditionals, dict | list | tuple) or not len(conditionals):
        kind = type(conditionals).__name__
        raise ValueError(f"conditionals must be a list or a dict of functions, or a discrete graphical model, got {kind}.")
    if start is None:
        raise ValueError("start is needed: a point with a value for every conditional, or a function that draws one.")
    starts, *rngs = spawn(generator(random_state), 1 + n_chains)
    points = _points(start, n_chains, starts)
    state = _Blocks if isinstance(conditionals, dict) else _Vector
    states = [state(conditionals, point) for point in points]
    if len({len(state.flat()) for state in states}) > 1:
        raise ValueError("start must have values of the same shapes for every chain.")
    dtype = np.result_type(*(state.dtype for state in states))
    values = np.empty((n_chains, n_draws, len(states[0].flat())), dtype=dtype)
    logs = None if log_density is None else np.empty(values.shape[:2])

    def sweeps(chain, n):
        state, rng = states[chain], rngs[chain]
        for _ in range(n):
            for k in rng.integers(state.n_parts, size=state.n_parts) if random_scan else range(state.n_parts):
                state.draw(int(k), rng)

    def advance(_, first, last):
        for chain in range(n_chains):
            for t in range(first, last):
                sweeps(chain, thin)
                values[chain, t] = states[chain].flat()
                if logs is not None:
                    logs[chain, t] = _number(log_density, states[chain].point())

    def warm(_, first, last):
        for chain in range(n_chains):
            sweeps(chain, last - first)

    advance_all(warm, (None,), warmup, name="warm-up", verbose=verbose, parallel=False, keep=False)
    done = advance_all(advance, (None,), n_draws, name="Gibbs sampling", verbose=verbose, parallel=False)
    names = states[0].names if names is None else names
    return Draws(values[:, :done], None if logs is None else logs[:, :done], names=names)


def _points(start, n_chains, rng):
    """Give a start for each chain."""
    if callable(start):
        return [start(child) for child in spawn(rng, n_chains)]
    if not several(start, n_chains):
        return [start] * n_chains
    if isinstance(start[0], dict):
        return list(start)
    try:
        return list(np.array(start))  # of one type
    except ValueError:
        raise ValueError("start must have the same number of coordinates for every chain.") from None


class _Vector:
    """A point as an array; one conditional for each coordinate."""

    names = None

    def __init__(self, conditionals, point):
        self.conditionals = list(conditionals)
        self.x = np.atleast_1d(np.array(point))
        self.n_parts, self.dtype = len(self.conditionals), self.x.dtype
        if self.x.shape != (self.n_parts,) or self.dtype.kind not in "iuf":
            told = f"the shape {self.x.shape} of {self.dtype}"
            raise ValueError(f"start must be {self.n_parts} numbers, one for each conditional, got {told}.")

    def draw(self, k, rng):
        found = np.asarray(self.conditionals[k](self.x.copy(), rng))  # a function that changes its point changes a copy
        _check(k, found, self.x[k])
        self.x[k] = found

    def flat(self):
        return self.x

    def point(self):
        return self.x.copy()


class _Blocks:
    """A point as a dict of blocks; one conditional for each."""

    def __init__(self, conditionals, point):
        if not isinstance(point, dict) or set(point) != set(conditionals):
            raise ValueError(f"start must be a dict with a value for each of {list(conditionals)}, got {point!r}.")
        self.functions = list(conditionals.values())
        self.keys, self.n_parts = list(conditionals), len(conditionals)
        self.x = {key: np.array(point[key]) for key in self.keys}
        self.dtype = np.result_type(*self.x.values())
        self.names = []
        for key, value in self.x.items():
            self.names += [str(key)] if value.ndim == 0 else [f"{key}[{i}]" for i in range(value.size)]

    def draw(self, k, rng):
        key = self.keys[k]
        found = np.asarray(self.functions[k](self.point(), rng))
        _check(key, found, self.x[key])
        self.x[key] = found.astype(self.x[key].dtype)

    def flat(self):
        return np.concatenate([np.ravel(value) for value in self.x.values()])

    def point(self):
        return {key: value.copy() for key, value in self.x.items()}


def _check(k, found, old):
    """Refuse what a conditional must not give."""
    if found.shape != old.shape:
        raise ValueError(f"The conditional of {k!r} must give the shape {old.shape}, as start has; it gave {found.shape}.")
    if not np.can_cast(found.dtype, old.dtype, "same_kind"):
        raise ValueError(f"The conditional of {k!r} gives {found.dtype} and start has {old.dtype}; begin with real numbers.")
    if not np.isfinite(found).all():
        raise ValueError(f"The conditional of {k!r} gave {found}, which is not finite.")


def _number(log_density, point):
    return evaluate(log_density, [point])[0]
