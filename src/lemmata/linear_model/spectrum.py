"""The singular directions of a problem, and the criteria that choose a penalty by them.

Let s be the squared singular values of the centered columns A, z² the squares of the targets along their directions, r₀² what
the columns leave of the targets at best, and N the number of rows (less one for an intercept). Under a penalty ρ a direction
keeps the share t = ρ/(ρ + s) of its targets unexplained, and two criteria become functions of one number, x = ln ρ:

- generalized cross-validation [1], an estimate of the prediction error: N RSS / (N − Σ(1 − t))², RSS = r₀² + Σ(t z)²;
- the evidence [2], the density of the targets when the prior w ~ N(0, λ⁻¹I) and noise σ² with λσ² = ρ are drawn from:
  −2 ln p = N ln 2πσ² + E/σ² + Σ ln(1 + s/ρ) (+ ln Σs for an intercept under a flat prior), with E = r₀² + Σ t z². Where σ²
  is to be found as well, it is E/N for each ρ.

Each is scanned on a grid, and every minimum between two grid points is polished on the derivative.
Bound: −2 ln p = R + F, where R = N ln 2πσ² + E/σ² grows with x and F = Σ ln(1 + s/ρ) falls, so it is at least R(a) + F(b) on
[a, b]; and R − c x falls while F + c x grows for c = max(N, rank), so it is at least R(b) + F(a) − c (b − a) as well. Halving
intervals until the better of the two is close to the least value seen proves that nothing better was missed.

[1] Golub, Heath & Wahba, Technometrics 21 (1979). [2] MacKay, Neural Computation 4 (1992).
"""

import numpy as np
from scipy.optimize import brentq

from lemmata.core.certificate import EQUI_LIMIT, SAME_LIMIT, TINY, Check, equi
from lemmata.linear_model import least_squares as ls

STEP = 0.2  # of the grid in ln ρ, in which no feature of a criterion is narrower than one
SPAN = 1e6  # beyond the extreme s by this factor a criterion is constant to 1e-6
FAINT = 1e-100  # a singular value this far below the largest is absent: no penalty of interest reaches it
DIGITS = 1e-12  # an exact fit leaves a residual of rounding, which stays below this share of the targets
FLAT = 1e-6  # differences of −2 ln p that do not count: the simpler choice is taken
CLOSE = 0.04  # in −2 ln p: the bound is within 0.02 nats of the least value seen
NATS = 0.04  # of log evidence that may be missed: twice the distance of the bound
NODES = 2**20  # numbers worked on at a time: 8 MB an array


def compress(blocks, intercept):
    """Reduce the data to a `Problem` whose residual is right to all digits: by QR unless the cheap route is that good."""
    problem = ls.compress(blocks, intercept)
    if problem.error > 0:
        i = int(intercept) + len(problem.shift.x)
        total, rest = (problem.rows[:, i:] ** 2).sum(axis=0), (problem.rows[i:, i:] ** 2).sum(axis=0)
        if problem.error > ls.NEGLIGIBLE or (rest <= ls.CLEAR * total).any():
            return ls.factored(blocks, problem.shift, intercept)
    return problem


class Spectrum:
    """What the criteria need of a problem.

    Attributes
    ----------
    n : Number of rows N, less one for an intercept.
    targets : Number of targets, which share penalty and noise.
    squares : s, in squares of `unit` (the raw ones may not fit a number).
    z2 : z² summed over the targets.
    rest : r₀² summed over the targets.
    floor : Least noise variance that can be told from an exact fit: 12 digits of the targets, and the rounding of their mean.
    """

    def __init__(self, problem):
        A, C = problem.centered
        found = ls.directions(problem, A)
        self.unit = problem.shift.unit.max(initial=1.0)
        rows = found.values[:, None] * found.V * found.size * (problem.shift.unit / self.unit)
        P, values, _ = np.linalg.svd(rows, full_matrices=False)
        along = found.U.T @ C
        z2 = ((P.T @ along) ** 2).sum(axis=1)
        present = values > FAINT * values.max(initial=0.0)
        self.n, self.targets = problem.weight - problem.intercept, C.shape[1]
        self.squares, self.z2 = values[present] ** 2, z2[present]
        rest, total = float(((C - found.U @ along) ** 2).sum() + z2[~present].sum()), float((C**2).sum())
        self.rest = rest if rest > ls.ROUNDING**2 * total else 0.0
        self.constant = self.targets * np.log(problem.weight) if problem.intercept else 0.0
        spread = DIGITS**2 * total / problem.weight / self.targets
        self.floor = spread + ls.EPS**2 * float((problem.mean[1] ** 2).mean()) or DIGITS**2  # all zero: as if of size 1

    def at(self, penalty):
        """Return the x of a penalty in raw units."""
        return np.log(penalty / self.unit / self.unit)

    def shares(self, x):
        """Return t = ρ/(ρ + s) and 1 − t, each to all digits."""
        rho = np.exp(np.asarray(x))[..., None]
        return rho / (rho + self.squares), self.squares / (rho + self.squares)

    def energy(self, x):
        """Return E = r₀² + Σ t z², the least penalized squared error."""
        return self.rest + (self.shares(x)[0] * self.z2).sum(axis=-1)

    def volume(self, x):
        """Return F = Σ ln(1 + s/ρ), for all targets."""
        return self.targets * np.log1p(self.squares / np.exp(np.asarray(x))[..., None]).sum(axis=-1)

    def misfit(self, x, noise):
        """Return R = N ln 2πσ² + E/σ², for all targets, and what the intercept adds."""
        return self.n * self.targets * np.log(2 * np.pi * noise) + self.energy(x) / noise + self.constant


def minima(criterion):
    """Return every x at which the slope of a criterion changes from negative to positive on its grid."""
    grid = criterion.grid()
    slopes = criterion.slope(grid)
    turns = np.flatnonzero((slopes[:-1] < 0) & (slopes[1:] >= 0))
    return [brentq(criterion.slope, grid[i], grid[i + 1], xtol=1e-13) for i in turns]  # the rounding of x itself


def difference(a, b):
    """Return a − b, and zero where that is rounding: on a plateau it would change its sign at every step."""
    return np.where(np.abs(a - b) > ls.ROUNDING * (np.abs(a) + np.abs(b)), a - b, 0.0)


def first_of_least(places, values, tolerance):
    """Return the first place at which a criterion is as low as anywhere."""
    return places[int(np.argmax(values <= values.min() + tolerance))]


def rounding(value):
    """Return how far a computed −2 ln p may be off."""
    return ls.ROUNDING * abs(value)


def evenly(low, high):
    """Cover an interval of ρ in steps of x."""
    a, b = np.log(max(low, TINY)), np.log(max(high, low, TINY))
    return np.linspace(a, b, 2 + int((b - a) / STEP))


class Criterion:
    """A function of x = ln ρ that is least at the best penalty; ρ in the units of the spectrum."""

    def __init__(self, spectrum):
        self.spectrum = spectrum
        self.idle = len(spectrum.squares) == 0  # no column varies: every penalty does the same

    def best(self):
        """Return the best penalty in raw units; 1 if it is idle."""
        return 1.0 if self.idle else float(np.exp(self.place())) * self.spectrum.unit**2

    def checks(self, penalty):
        """Check a penalty in raw units."""
        if self.idle:
            return [Check("penalty", abs(penalty - 1), 0.0, "proof", "no column varies: the penalty is 1")]
        return list(self.checks_at(self.spectrum.at(penalty)))


class CrossValidation(Criterion):
    """Generalized cross-validation."""

    def grid(self):
        """Cover every ρ at which the score can move."""
        s = self.spectrum.squares
        top = s.max(initial=0.0)
        return evenly(max(s[s > ls.EPS * top].min(initial=top), ls.EPS * top) / SPAN, top * SPAN)

    def value(self, x):
        """Return the score; infinite where no degree of freedom is left."""
        rss, freedom = self._parts(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(freedom > 0, self.spectrum.n * rss / freedom**2, np.inf)

    def slope(self, x):
        """Return the derivative of the logarithm of the score."""
        rss, freedom = self._parts(x)
        t, kept = self.spectrum.shares(x)
        with np.errstate(divide="ignore", invalid="ignore"):
            fit, freed = (t**2 * kept * self.spectrum.z2).sum(axis=-1) / rss, (t * kept).sum(axis=-1) / freedom
            return 2 * difference(fit, freed)

    def _parts(self, x):
        t, _ = self.spectrum.shares(x)
        rss = self.spectrum.rest + (t**2 * self.spectrum.z2).sum(axis=-1)
        return rss, self.spectrum.n - len(self.spectrum.squares) + t.sum(axis=-1)

    def place(self):
        """Return the x of least score; among equals the largest penalty."""
        places = np.array([*self.grid()[[-1, 0]], *minima(self)])
        values = self.value(places)
        return first_of_least(places, values, ls.NEGLIGIBLE * values.min())

    def checks_at(self, x):
        """Check that no penalty on the grid has a lower score, and that this one is stationary unless at an end."""
        grid = self.grid()
        least = self.value(np.append(grid, x)).min()
        value = float(self.value(x) / least - 1) if least > 0 else 0.0
        yield Check("penalty", value, 1e-6, "evidence", "no penalty on a fine grid has a smaller cross-validation score")
        yield stationary(self, x, grid[[0, -1]], "the cross-validation score is stationary", "local")


class Evidence(Criterion):
    """−2 ln p of the targets.

    Parameters
    ----------
    precision : λ in raw units, if it is given; σ² is then ρ/λ.
    noise : σ², if it is given. If neither is, σ² is the best one for each ρ, but no less than the floor of the spectrum.
    """

    def __init__(self, spectrum, precision=None, noise=None):
        super().__init__(spectrum)
        self.given = noise
        self.precision = None if precision is None else precision / spectrum.unit / spectrum.unit
        self.size = spectrum.n * spectrum.targets
        if noise is None and self.size <= 0 and not (self.idle and precision is None):
            raise ValueError(
                "The noise cannot be estimated by evidence from weights that add up to no more than one row "
                f"({self.size / spectrum.targets:.3g} are left beside the intercept): a weight means repetition."
            )

    def noise(self, x):
        """Return σ² at ρ."""
        if self.given is not None:
            return np.full(np.shape(x), self.given)
        if self.precision is not None:
            return np.exp(x) / self.precision
        return np.maximum(self.spectrum.energy(x) / self.size, self.spectrum.floor)

    def grid(self):
        """Cover every ρ at which the least value can be.

        Below, E grows by at most ρ Σz²/s, which is less than F falls by. Above, F has less than a millionth to fall; or, if λ
        is given, N ln σ² outgrows the rest.
        """
        spectrum, s = self.spectrum, self.spectrum.squares
        if self.precision is not None:
            total = spectrum.rest + spectrum.z2.sum()
            push = spectrum.targets * s.sum() + self.precision * total
            return evenly(self.precision * spectrum.floor, 2 * push / self.size)
        least = self.given if self.given is not None else max(spectrum.rest / self.size, spectrum.floor)
        pull = max((spectrum.z2 / s).sum(), TINY)
        low = spectrum.targets * len(s) * (least / 4 / pull)  # 4: E's slope is then at most a half of F's, which is ≥ rank/2
        return evenly(min(s.min(), low), SPAN * spectrum.targets * s.sum())

    def parts(self, x):
        """Return R and F, whose sum is −2 ln p."""
        return self.spectrum.misfit(x, self.noise(x)), self.spectrum.volume(x)

    def slope(self, x):
        """Return the derivative of −2 ln p; that by σ² vanishes where σ² is the best one."""
        spectrum, noise = self.spectrum, self.noise(x)
        t, kept = spectrum.shares(x)
        up, down = (t * kept * spectrum.z2).sum(axis=-1) / noise, spectrum.targets * kept.sum(axis=-1)
        if self.precision is not None:
            up, down = up + self.size, down + spectrum.energy(x) / noise
        return difference(up, down)

    def end(self):
        """Return the end at which the evidence may still grow: ρ → ∞ (no signal), or σ² → 0 if λ is given (no noise)."""
        return self.grid()[0 if self.precision is not None else -1]

    def is_exact(self, x):
        """Tell whether σ² would be at its floor here, though it is free."""
        free = self.given is None and self.precision is None
        return free & (self.spectrum.energy(x) <= self.size * self.spectrum.floor * (1 + SAME_LIMIT))

    def place(self):
        """Return the x of most evidence; among equals the end, then an exact fit."""
        places = [self.end()]
        if self.given is None and self.precision is None:
            places += [x for x in minima(Evidence(self.spectrum, noise=self.spectrum.floor)) if self.is_exact(x)]
        places += [x for x in minima(self) if not self.is_exact(x)]
        values = sum(self.parts(np.array(places)))
        return first_of_least(places, values, max(FLAT, rounding(values.min())))

    def lower_bound(self):
        """Bound −2 ln p from below, for every ρ."""
        edges = self.grid()
        rising, falling = self.parts(edges)
        best = np.min(rising + falling)
        bound = rising[-1] if self.precision is None else np.inf  # beyond the grid: F ends at 0
        pieces = np.array([edges[:-1], edges[1:], rising[:-1], rising[1:], falling[:-1], falling[1:]])
        chunk = 1 + NODES // max(len(self.spectrum.squares), 1)
        while pieces.shape[1]:
            under = self._under(*pieces[:, -chunk:])
            open_ = under < best - max(CLOSE, rounding(best))
            bound = min(bound, under[~open_].min(initial=np.inf))
            a, b, ra, rb, fa, fb = pieces[:, -chunk:][:, open_]
            m = (a + b) / 2
            rm, fm = self.parts(m)
            best = min(best, (rm + fm).min(initial=np.inf))
            halves = [[a, m, ra, rm, fa, fm], [m, b, rm, rb, fm, fb]]
            pieces = np.concatenate([pieces[:, :-chunk], *np.array(halves)], axis=1)
        return bound

    def _under(self, a, b, ra, rb, fa, fb):
        """Bound R + F on intervals [a, b] from below."""
        under = np.full(len(a), -np.inf)
        if self.precision is None:
            under = ra + fb
        if self.given is None:
            c = max(self.size, self.spectrum.targets * len(self.spectrum.squares))
            under = np.maximum(under, rb + fa - c * (b - a))
        return under

    def checks_at(self, x, noise=None):
        """Check that the bound is met (with this σ², or the best one), and that the evidence is stationary."""
        noise = self.noise(x) if noise is None else noise
        deviance = float(self.spectrum.misfit(x, noise) + self.spectrum.volume(x))
        excess, limit = (deviance - self.lower_bound()) / 2, max(NATS, rounding(deviance))
        yield Check("evidence", excess, limit, "proof", "no choice has more log evidence than this beyond it")
        yield stationary(self, x, [self.end()], "the evidence is stationary", "proof")  # the bound makes it global


def stationary(criterion, x, ends, claim, kind):
    """Check that x is at an end of the search, or that the slope vanishes there; on a plateau, that x is where to settle."""
    off = float(np.abs(x - np.asarray(ends)).min())
    if off <= SAME_LIMIT:
        return Check("penalty slope", off, SAME_LIMIT, kind, "the search ends here, where the criterion no longer moves")
    if not criterion.slope(x + np.array([-EQUI_LIMIT, 0.0, EQUI_LIMIT])).any():
        off = float(abs(x - criterion.place()))
        return Check("penalty slope", off, SAME_LIMIT, kind, "the criterion is flat, and this is where an exact fit begins")
    return equi(lambda a: criterion.slope(np.log(np.abs(a))), [np.exp(x)], "penalty slope", claim, kind=kind)
