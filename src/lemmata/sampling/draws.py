"""`Draws`: what a sampler gives, and whether to believe it.

Draws (chains × draws × dimensions) stand for a law, and an average over them for an expectation, if the chains have forgotten
where they began and are long enough. That cannot be proved from draws. What they can show is evidence: halves of chains that
agree (R̂ ≤ 1.01), enough effective draws (ESS ≥ 400) in the bulk and in the tails, and chains whose means differ by no more
than their standard errors. `mean`, `std` and `quantile` refuse where that evidence is missing; the first two also where the
tails are so heavy that there may be no mean or variance to be found (Pareto k̂ above 0.7 or 0.35). R̂ needs chains that begin far
apart: chains that all begin in one of two modes agree, and are wrong. What can be proved is that the draws are what they claim
to be: the log density kept with each is that of the target at that point.
"""

import operator
import re
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lemmata.core import diagnostics
from lemmata.core.certificate import TINY, Certificate, Check, same
from lemmata.core.config import whole
from lemmata.core.diagnostics import ESS_LIMIT, K_LIMIT, RHAT_LIMIT

AGREEMENT_LIMIT = 5.0  # standard errors between a chain and all: by chance, once in a million


class Summary(NamedTuple):
    """Give means, spreads and diagnostics of every dimension; it prints as a table, and says which dimensions fail."""

    names: tuple
    mean: np.ndarray
    std: np.ndarray
    low: np.ndarray  # 5 % quantile
    high: np.ndarray  # 95 % quantile
    mcse: np.ndarray
    rhat: np.ndarray
    ess_bulk: np.ndarray
    ess_tail: np.ndarray
    passed: np.ndarray

    def __str__(self):
        head = ("", "mean", "std", "5%", "95%", "mcse", "R-hat", "ESS bulk", "ESS tail", "verdict")
        rows = [head]
        for name, *numbers, rhat, bulk, tail, passed in zip(*self, strict=True):
            verdict = "pass" if passed else "FAIL"
            rows.append((name, *(f"{x:.4g}" for x in numbers), f"{rhat:.3f}", f"{bulk:.0f}", f"{tail:.0f}", verdict))
        widths = [max(len(row[j]) for row in rows) for j in range(len(head))]
        lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows]
        failed = int((~self.passed).sum())
        told = f"all {len(self.names)} pass" if not failed else f"{failed} of {len(self.names)} FAIL"
        return "\n".join([*lines, f"{told}: R-hat ≤ {RHAT_LIMIT}, ESS ≥ {ESS_LIMIT:.0f} in the bulk and in the tails"])

    __repr__ = __str__


class Draws:
    """Keep the draws of chains, with what says whether to believe them.

    Parameters
    ----------
    values : (chains, draws, dimensions), real numbers or integers; True and False become 1 and 0.
    log_density : (chains, draws), log density of the target at every draw, up to a constant, or None.
    names : One for each dimension. Default: x, or x[0], x[1], …
    acceptance : (chains,), share of proposals that were accepted, or None.

    Attributes
    ----------
    rhat, ess_bulk, ess_tail, mcse : (dimensions,), R-hat, effective sample sizes, and the standard error of the mean.

    Examples
    --------
    >>> draws = Draws(np.random.default_rng(0).normal(3.0, 1.0, size=(4, 500, 1)), names=["height"])
    >>> draws
    <Draws: 4 chains × 500 draws of height>
    >>> draws.mean().round(2), draws.mcse.round(2)
    (array([2.97]), array([0.02]))
    >>> print(draws.summary())
             mean  std     5%    95%     mcse  R-hat  ESS bulk  ESS tail  verdict
    height  2.972    1  1.364  4.599  0.02233  1.001      2003      2056     pass
    all 1 pass: R-hat ≤ 1.01, ESS ≥ 400 in the bulk and in the tails
    >>> draws.discard(450).mean()
    Traceback (most recent call last):
    ...
    ValueError: The mean of height is not to be believed: ESS = 229 in the bulk, below 400. Draw about 2 times as many, or ask
    with check=False.
    """

    def __init__(self, values, log_density=None, *, names=None, acceptance=None):
        self.values = np.asarray(values)
        if self.values.ndim != 3 or 0 in self.values.shape:
            raise ValueError(f"values must have the shape (chains, draws, dimensions), got {self.values.shape}.")
        if self.values.dtype.kind not in "biuf":
            raise ValueError(f"values must be real numbers or integers, got {self.values.dtype}.")
        if self.values.dtype.kind == "b":
            self.values = self.values.astype(np.int64)
        chains, n, d = self.values.shape
        self.log_density = None if log_density is None else np.asarray(log_density, dtype=float)
        if self.log_density is not None and self.log_density.shape != (chains, n):
            raise ValueError(f"log_density must have the shape {(chains, n)}, got {self.log_density.shape}.")
        default = ("x",) if d == 1 else tuple(f"x[{i}]" for i in range(d))
        self.names = default if names is None else tuple(str(name) for name in names)
        if len(set(self.names)) != d or len(self.names) != d:
            raise ValueError(f"names must be {d} different names, one for each dimension, got {list(self.names)}.")
        self.acceptance = None if acceptance is None else np.asarray(acceptance, dtype=float)
        if self.acceptance is not None and self.acceptance.shape != (chains,):
            raise ValueError(f"acceptance must have the shape {(chains,)}, got {self.acceptance.shape}.")

    def __repr__(self):
        chains, n, d = self.values.shape
        told = self.names[0] if d == 1 else f"{d} dimensions"
        return f"<Draws: {chains} chain{'s' * (chains > 1)} × {n} draws of {told}>"

    n_chains = property(lambda self: self.values.shape[0], doc="Number of chains.")
    n_draws = property(lambda self: self.values.shape[1], doc="Number of draws of each chain.")
    n_dimensions = property(lambda self: self.values.shape[2], doc="Number of dimensions.")

    @property
    def flat(self):
        """The draws of all chains, one after another: (chains · draws, dimensions)."""
        return self.values.reshape(-1, self.n_dimensions)

    @cached_property
    def rhat(self):
        """Rank-normalized split R-hat of each dimension; NaN where it never moved."""
        return np.where(self._still, np.nan, diagnostics.rhat(self.values))

    @cached_property
    def ess_bulk(self):
        """Effective number of draws in the bulk of each dimension; NaN where it never moved."""
        return np.where(self._still, np.nan, diagnostics.ess_bulk(self.values))

    @cached_property
    def ess_tail(self):
        """Effective number of draws in the tails of each dimension; NaN where it never moved."""
        return np.where(self._still, np.nan, diagnostics.ess_tail(self.values))

    @cached_property
    def mcse(self):
        """Monte-Carlo standard error of the mean of each dimension."""
        return diagnostics.mcse_mean(self.values)

    @cached_property
    def _still(self):
        """Whether a dimension of real numbers never moved; one of integers may be certain, if the chain moves in others."""
        constant = (self.values == self.values[:1, :1]).all(axis=(0, 1))
        alive = bool((np.ptp(self.values, axis=1) > 0).any(axis=1).all())
        return constant & (self.values.dtype.kind == "f" or not alive)

    @cached_property
    def _tails(self):
        """Shapes of the heavier tail of each dimension, and the largest with which a standard deviation is to be believed."""
        shapes, limits = np.full((2, self.n_dimensions), -np.inf)
        judged = ~self._still & (self.rhat < np.inf)
        if self.values.dtype.kind != "f":
            judged &= np.ptp(self.values, axis=(0, 1)) >= diagnostics.LEAST_DISTINCT
        if judged.any():
            shapes[judged], counted = diagnostics.tail_shape(self.values[:, :, judged], self.ess_tail[judged])
            limits[judged] = diagnostics.spread_limit(counted)
        return shapes, limits

    def _heavy(self, what, limits):
        """Refuse a moment that the tails are too heavy for."""
        shapes = self._tails[0]
        over = shapes > limits
        if over.any():
            worst = int(np.where(over, shapes, -np.inf).argmax())
            limit = float(np.broadcast_to(limits, shapes.shape)[worst])
            raise ValueError(
                f"The {what} of {self.names[worst]} is not to be believed: its tails are too heavy (Pareto k = "
                f"{shapes[worst]:.2f}, above {limit:.2g}), so that there may be none to be found. Ask for quantiles, or with "
                "check=False."
            )

    def _passes(self, tails=True):
        good = (self.rhat <= RHAT_LIMIT) & (self.ess_bulk >= ESS_LIMIT)
        return good & (self.ess_tail >= ESS_LIMIT) if tails else good

    def mean(self, check=True):
        """Give the mean of each dimension; refuse where R-hat, the bulk or heavy tails speak against it."""
        self._believe("mean", check, tails=False)
        if check:
            self._heavy("mean", K_LIMIT)
        return self.values.mean(axis=(0, 1))

    def std(self, check=True):
        """Give the standard deviation of each dimension; refuse where R-hat, bulk or tails speak against it."""
        self._believe("standard deviation", check)
        if check:
            self._heavy("standard deviation", self._tails[1])
        return self.flat.std(axis=0, ddof=1)

    def quantile(self, q, check=True):
        """Give quantiles (…, dimensions) for q of the shape …; refuse where R-hat, bulk or tails speak against them.

        Examples
        --------
        >>> Draws(np.random.default_rng(0).random((4, 1000, 1))).quantile([0.1, 0.9]).round(1)
        array([[0.1],
               [0.9]])
        """
        self._believe("quantile", check)
        return np.quantile(self.flat, q, axis=0)

    def _believe(self, what, check, tails=True):
        """Refuse, with the reason for the dimension that is worst and what to do about it."""
        if not check or (good := self._passes(tails)).all():
            return
        sizes = np.minimum(self.ess_bulk, self.ess_tail) if tails else self.ess_bulk
        with np.errstate(divide="ignore", invalid="ignore"):
            faults = np.fmax((self.rhat - 1) / (RHAT_LIMIT - 1), ESS_LIMIT / sizes)
        worst = int(np.where(good, -1.0, np.where(np.isnan(faults), np.inf, faults)).argmax())
        others = int((~good).sum()) - 1
        more = f" (and {others} more)" if others else ""
        reason, advice = self._reason(worst, tails)
        raise ValueError(
            f"The {what} of {self.names[worst]}{more} is not to be believed: {reason}. {advice}, or ask with check=False."
        )

    def _reason(self, i, tails):
        """Say what speaks against a dimension, and what to do."""
        if self.n_draws < diagnostics.LEAST_DRAWS:
            return f"{self.n_draws} draws a chain tell nothing", "Draw more"
        if self._still[i]:
            return (
                "it never moved",
                "If it can be nothing else, it need not be drawn; if it can, begin elsewhere, propose otherwise",
            )
        if np.isnan(self.rhat[i]):
            return "it has a draw that is not a finite number", "See that the target has finite draws"
        where, size = ("bulk", self.ess_bulk[i])
        if tails and self.ess_tail[i] < size:
            where, size = "tails", self.ess_tail[i]
        low = f"ESS = {size:.0f} in the {where}, below {ESS_LIMIT:.0f}"
        if self.rhat[i] > RHAT_LIMIT:
            both = f"R-hat = {self.rhat[i]:.3f}, above {RHAT_LIMIT}" + (f", and {low}" if size < ESS_LIMIT else "")
            return both, "The chains tell different stories: draw more, begin with a longer warm-up, or look at where they sit"
        return low, f"Draw about {np.ceil(ESS_LIMIT / size):.0f} times as many"

    def summary(self):
        """Give a table of means, spreads and diagnostics of all dimensions, with a verdict for each."""
        low, high = self.quantile([0.05, 0.95], check=False)
        return Summary(
            self.names,
            self.mean(check=False),
            self.flat.std(axis=0, ddof=1) if len(self.flat) > 1 else np.full(self.n_dimensions, np.nan),
            low,
            high,
            self.mcse,
            self.rhat,
            self.ess_bulk,
            self.ess_tail,
            self._passes(),
        )

    def _part(self, draws, dimensions=slice(None)):
        logs = None if self.log_density is None else self.log_density[:, draws]
        names = [self.names[i] for i in np.arange(self.n_dimensions)[dimensions]]
        return Draws(self.values[:, draws][:, :, dimensions], logs, names=names, acceptance=self.acceptance)

    def discard(self, n):
        """Leave out the first n draws of each chain (a burn-in)."""
        try:
            n = operator.index(n)
        except TypeError:
            raise ValueError(f"A whole number of draws can be left out, not {n!r}.") from None
        if not 0 <= n < self.n_draws:
            raise ValueError(f"Of {self.n_draws} draws, between 0 and {self.n_draws - 1} can be left out, not {n}.")
        return self._part(slice(n, None))

    def thin(self, step):
        """Keep every step-th draw of each chain, the last one among them."""
        step = whole("step", 0 if step is None else step)
        return self._part(slice((self.n_draws - 1) % step, None, step))

    def __getitem__(self, names):
        """Give the draws of a dimension, or of several, by name; `draws["mu"]` also finds mu[0], mu[1] and so on."""
        wanted = names if isinstance(names, list | tuple) else [names]
        if not all(isinstance(name, str) for name in wanted):
            raise TypeError(f"Dimensions are chosen by name, not by {names!r}; for numbers there is `values`.")
        found = []
        for name in wanted:
            match = [i for i, own in enumerate(self.names) if own == name or re.fullmatch(rf"{re.escape(name)}\[\d+\]", own)]
            if not match:
                raise KeyError(f"no dimension is called {name!r}; there are {list(self.names)}")
            found += match
        return self._part(slice(None), found)

    def to_arviz(self):
        """Give the draws as an xarray DataTree with the groups posterior and sample_stats, as ArviZ has them from 1.0 on.

        Dimensions called theta[0], theta[1], … become one variable, theta.
        """
        try:
            import xarray
        except ImportError:
            raise ImportError("to_arviz needs xarray, which comes with ArviZ: pip install arviz.") from None
        groups = {}
        for i, name in enumerate(self.names):
            match = re.fullmatch(r"(.+)\[(\d+)\]", name)
            groups.setdefault((match[1], True) if match else (name, False), {})[int(match[2]) if match else 0] = i
        variables, places = {}, {"chain": np.arange(self.n_chains), "draw": np.arange(self.n_draws)}
        places |= {f"{name}_dim_0": list(members) for (name, many), members in groups.items() if many}
        for (name, many), members in groups.items():
            if name in variables or name in places:
                raise ValueError(f"{name!r} would stand for two things in xarray; give the draws other names.")
            axes = ("chain", "draw", f"{name}_dim_0") if many else ("chain", "draw")
            columns = list(members.values())
            variables[name] = (axes, self.values[:, :, columns] if many else self.values[:, :, columns[0]])
        tree = {"posterior": xarray.Dataset(variables, coords=places)}
        statistics = {} if self.log_density is None else {"lp": (("chain", "draw"), self.log_density)}
        if self.acceptance is not None:
            statistics["acceptance_rate"] = (("chain",), self.acceptance)
        tree["sample_stats"] = xarray.Dataset(statistics, coords={axis: places[axis] for axis in ("chain", "draw")})
        return xarray.DataTree.from_dict(tree)

    def agreement(self):
        """Give by how many standard errors, at most, the mean of a chain differs from that of all, for each dimension."""
        values = self.values.astype(float)
        values = values - values[:1, :1]  # what is equal becomes zero, whatever its scale
        means = values.mean(axis=1)  # (chains, dimensions)
        errors = np.array([diagnostics.mcse_mean(chain[None]) for chain in values])
        away = np.abs(means - means.mean(axis=0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(away == 0, 0.0, away / errors).max(axis=0)

    def certify(self, log_density=None, *, args=(), vectorized=False):
        """Gather the evidence of R-hat, effective sizes and agreement; with the log density, prove the one that is stored.

        Parameters
        ----------
        log_density : Function of a point (and `args`), as it was given to the sampler.
        args : Tuple of what it takes after the point.
        vectorized : Whether it takes many points, as rows, at once.

        Examples
        --------
        >>> x = np.random.default_rng(0).standard_normal((4, 500, 1))
        >>> draws = Draws(x, -(x[:, :, 0] ** 2) / 2)
        >>> draws.certify(lambda x: -(x[0] ** 2) / 2).holds
        True
        >>> draws.values *= 1.01
        >>> [check.name for check in draws.certify(lambda x: -(x[0] ** 2) / 2).failed]
        ['log density']
        """
        fresh = Draws(self.values, self.log_density, names=self.names)  # the arrays may have changed since they were measured
        least = [float(np.min(np.where(np.isnan(size), 0.0, size))) for size in (fresh.ess_bulk, fresh.ess_tail)]
        checks = []
        if log_density is not None:
            if self.log_density is None:
                raise ValueError("These draws have no log density to be compared with; certify without one.")
            found = evaluate(log_density, self.flat, args, vectorized).reshape(self.log_density.shape)
            checks.append(same(self.log_density, found, "log density", "what is kept with every draw is the target's there"))
        heaviest = max(float(np.max(fresh._tails[0])), 0.0)
        checks += [
            Check("moved", float(fresh._still.sum()), 0.0, "evidence", "dimensions that never moved"),
            Check("R-hat", _over(fresh.rhat), RHAT_LIMIT - 1, "evidence", "halves of chains agree: R-hat − 1"),
            Check("ESS bulk", ESS_LIMIT / max(least[0], TINY), 1.0, "evidence", "400 / effective draws in the bulk"),
            Check("ESS tail", ESS_LIMIT / max(least[1], TINY), 1.0, "evidence", "400 / effective draws in the tails"),
            Check("tails", heaviest, K_LIMIT, "evidence", "there is a mean to be found: Pareto k of the heavier tail"),
            Check(
                "agreement",
                float(fresh.agreement().max()),
                AGREEMENT_LIMIT,
                "evidence",
                "the mean of a chain from that of all, in standard errors",
            ),
        ]
        return Certificate(*checks, subject=repr(self))


def _over(rhat):
    """Give the largest R-hat − 1; NaN if any is."""
    return float(np.maximum(rhat - 1.0, 0.0).max())


def evaluate(log_density, points, args=(), vectorized=False):
    """Give the log density at every row of points.

    Examples
    --------
    >>> evaluate(lambda x, scale: -abs(x[0]) / scale, np.array([[1.0], [-3.0]]), (2.0,))
    array([-0.5, -1.5])
    """
    args = check_args(args)
    copies = points.copy() if vectorized else [point.copy() for point in points]  # a chain must not change with them
    found = log_density(copies, *args) if vectorized else [log_density(point, *args) for point in copies]
    if found is None or (not vectorized and any(value is None for value in found)):
        raise ValueError("The log density returned nothing; it must return a number for every point.")
    try:
        found = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        raise ValueError("The log density must give a number for every point; it gave something else.") from None
    if not vectorized and found.size == len(points):
        found = found.reshape(len(points))  # an array of one number is a number
    if found.shape != (len(points),):
        wanted = f"{len(points)} numbers for as many points" if vectorized else "one number for a point"
        got = found.shape if vectorized else found.shape[1:]
        raise ValueError(f"The log density must give {wanted}; it gave an array of the shape {got}.")
    return found


def check_args(args):
    """Give the data of a log density as a tuple.

    Examples
    --------
    >>> check_args([2.0])
    (2.0,)
    """
    if not isinstance(args, list | tuple):
        kind = type(args).__name__
        raise ValueError(f"args must be a tuple of what the log density takes after the point, got {kind}; write args=(data,).")
    return tuple(args)
