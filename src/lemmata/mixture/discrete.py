"""Mixtures over discrete tables: what `BernoulliMixture`, `BinomialMixture` and `CategoricalMixture` share.

Within a component the columns are independent, and an entry is a draw of outcomes (`discrete_kernels`): with the counts uᵢⱼc

    p(xᵢ) = Σₖ πₖ Πⱼ coefficientᵢⱼ Π_c θₖⱼc^uᵢⱼc.

The M-step counts, with rᵢₖ = P(component k|xᵢ) and a pseudo-count α of every outcome:

    πₖ = Σᵢ sᵢ rᵢₖ / n,   θₖⱼc = (Tₖⱼc + α) / Σ_c (Tₖⱼc + α),   Tₖⱼc = Σᵢ sᵢ rᵢₖ uᵢⱼc.

It maximizes the expected log joint density plus α Σ log θₖⱼc, the logarithm of a Dirichlet(α + 1) prior; so what never falls is
the log-likelihood plus that, and this is what the fit traces. A missing entry has no counts: it is left out of the product,
which is exact as long as an entry's absence has nothing to do with its value. An outcome that a component or column says
nothing about keeps the chance it had.

EM leaps in the square roots of the probabilities: these lie on spheres, on which the border of the simplex is no border, so
that chances which fall to 0, as those of maximum likelihood like to, need no exception.

The certificate: by Fisher's identity the log-likelihood is stationary exactly where the EM map leaves the parameters, so the
checker evaluates that map anew, from the counts of all outcomes and SciPy's log-sum-exp. Where a chance is 0 the map leaves it
there whatever the table says, so there the condition is another: to raise it must not pay, ∂L/∂θₖⱼc ≤ λₖⱼ, where the multiplier
λₖⱼ = Σ_c (Tₖⱼc + α) is what the derivative (Tₖⱼc + α)/θₖⱼc of every chance above 0 equals; and likewise for the weights. Where
components coincide, every derivative along which they part is zero by symmetry; so they are nudged apart, and the map must not
carry them further.
"""

from itertools import combinations
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.cluster.seeding import draw_centers
from lemmata.core.blocks import Largest
from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, equi, same, simplex
from lemmata.core.data import is_sparse
from lemmata.core.threads import serial_blas
from lemmata.mixture.discrete_kernels import (
    Census,
    census_block,
    column_sums,
    logarithms,
    logarithms_of_weights,
    posterior_block,
)
from lemmata.mixture.em import LatentModel
from lemmata.mixture.finite import FiniteMixture

SPLIT = "components that coincide do not drift apart when nudged"
CELLS = 1 << 20  # counts of outcomes, at most, among which starts are drawn, and that the checker makes at a time
PER_COMPONENT = 32  # rows, at least, among which each start is drawn
WHOLE = 2**53  # below, every whole number is a number of double precision
STILL = 1e-7  # weights that move by no more stand still: where components coincide, nothing depends on them
BORDER = 1e-6  # chances below lie on the border: a step is too small to say anything of them
NOTHING = 1e-12  # chances below count as 0: that of a tail is known as 1 − that of a head, and has no digits left
FAINT = 1e-100  # a chance that nobody will miss, and from which there is a way back
INSIDE = 1e-4  # a chance that is raised from the border: the likelihood notices, and other chances hardly do
TWINS = 1e-3  # components whose chances are closer coincide
NUDGES = 0.1, 0.5  # of the logarithm of a chance
NUDGED = 50  # steps of the EM map after each
PARTED = 1.5  # times the nudge: more is drifting apart
EXCESS = 1e-2  # of the derivative of such a chance over the multiplier

CONSTRAINTS = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "weights_init": ["array-like", None],
    "probabilities_init": ["array-like", None],
    "acceleration": [StrOptions({"squarem"}), None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
}


def table_block(X, weight, outcomes):
    """Weight of a block, sums over its rows, and logarithms of its coefficients."""
    shares = np.ones((X.shape[0], 1)) if weight is None else weight[:, None].astype(float)
    return float(shares.sum()), outcomes.sums(outcomes.read(X), shares), float(shares[:, 0] @ outcomes.coefficients(X))


def normalized(counts, starts, otherwise):
    """Divide counts by their sum in each column, where there is one."""
    totals = np.repeat(np.add.reduceat(counts, starts[:-1], axis=-1), np.diff(starts), axis=-1)
    has = totals > 0
    return np.where(has, counts / np.where(has, totals, 1.0), otherwise)


def alive(before, after):
    """Keep probabilities above 0 that were: where several small ones meet, a step may round what it counts to nothing."""
    return np.where(before > 0, np.maximum(after, FAINT), after)


def raised(before, after):
    """Raise the probabilities that lie on the border and grow in a step: from there it would take too long to be noticed."""
    return np.where((before > 0) & (before < BORDER) & (after > (1 + EXCESS / 2) * before), INSIDE, after)


class DiscreteModel(LatentModel):
    """The steps of EM; parameters are (weights, chances), the latter (k, outcomes of all columns).

    Parameters
    ----------
    outcomes : How rows are read, `Trials` or `Codes`.
    k : Number of components.
    alpha : Pseudo-count of every outcome.
    fit_weights : Whether the weights are to be fitted.
    given : (weights, chances) to start from, each of them or None.
    blocks : The table to fit.
    """

    name = "EM of a discrete mixture"

    def __init__(self, outcomes, k, alpha, fit_weights, given, blocks):
        self.outcomes, self.k, self.alpha, self.fit_weights = outcomes, k, alpha, fit_weights
        weights, self.chances = given
        self.weights = np.full(k, 1.0 / k) if weights is None else weights
        self.total, sums, self.coefficients = blocks.reduce(table_block, outcomes)
        sizes = np.diff(outcomes.starts)
        self.average = normalized(outcomes.tallies(sums)[0], outcomes.starts, np.repeat(1.0 / sizes, sizes))

    def start(self, blocks, rng):
        """Take what was given; else spread-out rows, each with one more outcome in every column, shared out as in the table."""
        if self.chances is not None:
            if not blocks.reduce(self.e_step, self.prepare((self.weights, self.chances)))[0] > -np.inf:
                raise ValueError(
                    "Under probabilities_init some row is impossible, or a prior with alpha > 0 rules out its 0 and 1: "
                    "move them inside."
                )
            return self.weights, self.chances
        starts, n_rows = self.outcomes.starts, max(CELLS // self.outcomes.starts[-1], PER_COMPONENT * self.k)
        rows = np.arange(blocks.n_rows)
        if blocks.n_rows > n_rows:
            rows = np.sort(rng.choice(blocks.n_rows, n_rows, replace=False))
        X, weight = blocks.take(rows)
        matrix, base = self.outcomes.counts(X)
        counts = (matrix.toarray() if is_sparse(matrix) else matrix) + base
        shares = normalized(counts + self.average, starts, self.average)
        return self.weights, shares[draw_centers(shares, self.k, rng, weight)]

    def prepare(self, parameters):
        """Take logarithms; what is the same for every row is shared out among them."""
        logs, never = logarithms(parameters[1])
        prior = (-np.inf if never.any() else self.alpha * float(logs.sum())) if self.alpha > 0 else 0.0
        return self.outcomes.prepare(*parameters), (self.coefficients + prior) / self.total

    def e_step(self, X, weight, prepared):
        """Log-likelihood and log-prior, weights of the components, and counts of the outcomes."""
        components, constant = prepared
        shares, density, read = self.outcomes.posterior(X, components)
        density += constant
        if weight is not None:
            shares, density = shares * weight[:, None], density * weight
        return float(density.sum()), column_sums(shares), self.outcomes.sums(read, shares)

    def m_step(self, statistics, parameters):
        """Count."""
        _, counts, sums = statistics
        weights, chances = parameters
        tallies = self.outcomes.tallies(sums) + self.alpha
        counted = normalized(tallies, self.outcomes.starts, chances)
        return counts / counts.sum() if self.fit_weights else weights, alive(chances, counted) if self.k > 1 else counted

    def complete(self, parameters):
        """One component has all rows, and entries that are missing are not counted."""
        return self.k == 1

    def escape(self, before, after):
        """Raise what lies on the border and is about to leave it."""
        weights, chances = (raised(b, a) for b, a in zip(before, after, strict=True))
        if np.array_equal(weights, after[0]) and np.array_equal(chances, after[1]):
            return None
        return weights / weights.sum(), normalized(chances, self.outcomes.starts, chances)

    def pack(self, parameters):
        """Square roots of the probabilities."""
        return np.sqrt(np.concatenate([part.ravel() for part in (parameters if self.fit_weights else parameters[1:])]))

    def unpack(self, vector):
        """Square, and divide by the sums; None where everything vanishes."""
        weights, chances = self.weights, vector**2
        if self.fit_weights:
            weights, chances = np.split(chances, [self.k])
            if not weights.sum() > 0:
                return None
            weights = weights / weights.sum()
        chances = normalized(chances.reshape(self.k, -1), self.outcomes.starts, np.nan)
        return (weights, chances) if np.isfinite(chances).all() else None


class Counts(NamedTuple):
    """Counts of all outcomes in some rows: a matrix, sparse if the table is, and a row to add to each of its rows."""

    matrix: Any
    base: Any
    coefficients: Any  # their logarithms

    def joint(self, weights, chances):
        """Log joint density (rows, k) with 0 for the logarithm of a chance of 0, and how many events are ruled out."""
        logs, never = logarithms(chances)
        return self.times(logs) + logarithms_of_weights(weights) + self.coefficients[:, None], self.times(never.astype(float))

    def times(self, table):
        """Sum a table (k, outcomes) over what happened in each row."""
        return np.asarray(self.matrix @ table.T) + self.base @ table.T

    def gathered(self, shares):
        """Sum the counts over the rows, with shares (rows, k)."""
        return np.asarray(self.matrix.T @ shares).T + np.outer(shares.sum(axis=0), self.base)


def slices(X, outcomes):
    """Give the counts of a block, so many rows at a time that they fit in memory."""
    n = X.shape[0] if is_sparse(X) else max(CELLS // int(outcomes.starts[-1]), 1)
    for first in range(0, X.shape[0], n):
        rows = slice(first, min(first + n, X.shape[0]))
        yield rows, Counts(*outcomes.counts(X[rows]), outcomes.coefficients(X[rows]))


def bayes_rule(counts, weights, chances):
    """Posterior of each row and its log-density."""
    logs, ruled_out = counts.joint(weights, chances)
    logs = np.where(ruled_out > 0.5, -np.inf, logs)
    density = logsumexp(logs, axis=1)
    possible = density > -np.inf
    return np.where(possible[:, None], np.exp(logs - np.where(possible, density, 0.0)[:, None]), weights), density


def map_block(X, weight, outcomes, weights, chances):
    """Log-likelihood of a block, weights of the components and counts of the outcomes in it."""
    value, totals, tallies = 0.0, np.zeros(len(weights)), np.zeros(chances.shape)
    for rows, counts in slices(X, outcomes):
        posterior, density = bayes_rule(counts, weights, chances)
        if weight is not None:
            posterior, density = posterior * weight[rows, None], density * weight[rows]
        value += float(density.sum())
        totals += posterior.sum(axis=0)
        tallies += counts.gathered(posterior)
    return value, totals, tallies


def slopes_block(X, weight, outcomes, weights, chances):
    """Derivative of the log-likelihood of a block by every weight, and by every chance that is 0.

    By a chance of 0 only the rows count in which its outcome is the one event that the component rules out, and happened once:
    their density is that chance times the rest.
    """
    by_weight, by_chance = np.zeros(len(weights)), np.zeros(chances.shape)
    for rows, counts in slices(X, outcomes):
        logs, ruled_out = counts.joint(np.ones(len(weights)), chances)
        density = bayes_rule(counts, weights, chances)[1]
        ratios = np.exp(np.minimum(logs - density[:, None], 700.0))  # no larger number has an exponential
        if weight is not None:
            ratios *= weight[rows, None]
        by_weight += (ratios * (ruled_out < 0.5)).sum(axis=0)
        by_chance += counts.gathered(weights * ratios * (np.abs(ruled_out - 1.0) < 0.5))
    return by_weight, np.where(chances > 0, 0.0, by_chance)


def disagreement_block(X, weight, outcomes, prepared, weights, chances):
    """Largest difference of the kernel's posterior from that by Bayes' rule."""
    posterior, largest = posterior_block(X, weight, (outcomes, prepared))[0], 0.0
    for rows, counts in slices(X, outcomes):
        largest = max(largest, float(np.abs(posterior[rows] - bayes_rule(counts, weights, chances)[0]).max()))
    return Largest(largest)


class Map:
    """The EM map on a table, from the counts of all outcomes."""

    def __init__(self, blocks, outcomes, alpha):
        self.blocks, self.outcomes, self.alpha = blocks, outcomes, alpha

    def __call__(self, weights, chances):
        """Return the mean log-likelihood before a step, and the weights and chances after it."""
        value, totals, tallies = self.blocks.reduce(map_block, self.outcomes, weights, chances)
        after = normalized(tallies + self.alpha, self.outcomes.starts, chances)
        return value / totals.sum(), totals / totals.sum(), after

    def excess(self, weights, chances, with_weights):
        """Say by how much, at most, the derivative by a chance or weight on the border exceeds its multiplier, as a share."""
        weights, chances = np.where(weights < NOTHING, 0.0, weights), np.where(chances < NOTHING, 0.0, chances)
        _, totals, tallies = self.blocks.reduce(map_block, self.outcomes, weights, chances)
        by_weight, by_chance = self.blocks.reduce(slopes_block, self.outcomes, weights, chances)
        starts, tallies = self.outcomes.starts, tallies + self.alpha
        multipliers = np.repeat(np.add.reduceat(tallies, starts[:-1], axis=1), np.diff(starts), axis=1)
        slopes = np.where(chances > 0, tallies / np.where(chances > 0, chances, 1.0), by_chance)
        slopes = np.where((chances > 0) | (self.alpha <= NOTHING * multipliers), slopes, np.inf)
        low = (chances < BORDER) & (multipliers > 0)
        excesses = [slopes[low] / multipliers[low] - 1.0, by_weight[weights < BORDER] / totals.sum() - 1.0]
        return max(float(e.max(initial=0.0)) for e in excesses[: 1 + with_weights])


def parting(step, weights, chances):
    """Nudge components that coincide apart; return how many times farther the EM map takes them, 0 where there are none."""
    pairs = [(a, b) for a, b in combinations(np.flatnonzero(weights > BORDER), 2) if _apart(chances, a, b) < TWINS]
    if not pairs:
        return 0.0
    sign = np.zeros(len(weights))
    for a, b in pairs:
        sign[a], sign[b] = sign[a] or 1.0, sign[b] or -1.0
    noise, starts, worst = np.random.default_rng(0).standard_normal(chances.shape[1]), step.outcomes.starts, 0.0
    for size in NUDGES:
        state = weights, normalized(chances * np.exp(size * sign[:, None] * noise), starts, chances)
        before = max(_apart(state[1], a, b) for a, b in pairs)
        for _ in range(NUDGED):
            state = step(*state)[1:]
        worst = max(worst, max(_apart(state[1], a, b) for a, b in pairs) / before) if before > 0 else worst
    return worst


def _apart(chances, a, b):
    return float(np.abs(chances[a] - chances[b]).max())


def _fault(k, outcomes, weights, stored):
    """Say how far weights and chances are from probabilities; infinite where they are of no use."""
    width = outcomes.reduced(np.zeros((1, outcomes.starts[-1]))).shape[1]
    if weights.shape != (k,) or stored.shape != (k, width) or not (np.isfinite(weights).all() and np.isfinite(stored).all()):
        return np.inf
    chances = outcomes.full(stored)
    sums = np.add.reduceat(chances, outcomes.starts[:-1], axis=1)
    outside = max(0.0, -float(min(weights.min(), chances.min())))
    return np.inf if outside > 0 else max(abs(float(weights.sum()) - 1.0), float(np.abs(sums - 1.0).max()))


class DiscreteMixture(FiniteMixture):
    """Base of mixtures over discrete tables.

    A kind of mixture has the parameters of a `FiniteMixture`, alpha, weights_init and probabilities_init, and these methods.

    Methods
    -------
    _refuse(census, sparse) : Raise where the entries are none that a model of this kind can read.
    _learn(census) : Set what a fit learns of the table before its probabilities; nothing by default.
    _known(census) : Raise where the entries are none that this fit knows; by default it knows all.
    _identities(blocks) : Checks of what it learned; none by default.
    _outcomes() : How rows are read.
    _probabilities(value) : Given probabilities as one array, as `_outcomes` wants them stored; by default chances of heads.
    _stored(), _shaped(stored) : The fitted probabilities as one array, and the way back; by default they are one.
    """

    fit_weights = True
    _posterior_block = staticmethod(posterior_block)

    def __sklearn_tags__(self):
        """Missing entries are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_components:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_components={self.n_components}.")
        self._learn(self._census(blocks))
        given = self._given_weights(), self._given_chances()
        with serial_blas():
            model = DiscreteModel(self._outcomes(), self.n_components, self.alpha, self.fit_weights, given, blocks)
        self._maximize(model, blocks, self.n_init if given[1] is None else 1, X, y)
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is stationary: an EM step, computed by another way, leaves every probability where it is."""
        blocks = self._checked(X, sample_weight)
        with serial_blas():
            return Certificate(*self._checks(blocks), subject=repr(self))

    def _checks(self, blocks):
        """Recompute from the stored probabilities what they claim."""
        outcomes, weights, stored = self._outcomes(), np.asarray(self.weights_, dtype=float), self._stored()
        claim = "weights and chances are probabilities"
        checks = [Check("parameters", _fault(self.n_components, outcomes, weights, stored), SAME_LIMIT, "proof", claim)]
        checks += self._identities(blocks)
        if not checks[0].holds:
            return checks
        step = Map(blocks, outcomes, self.alpha)
        value = step(weights, outcomes.full(stored))[0]
        checks.append(same(self.lower_bound_, value, "log-likelihood", "the mean log-density of the rows", floor=1e-3))
        if not value > -np.inf:
            return checks

        def weights_residual(a):
            residual = a - step(a, outcomes.full(stored))[1]
            return np.where(np.abs(residual) > STILL, residual, 0.0)

        def chances_residual(a):
            return a - outcomes.reduced(step(weights, outcomes.full(a))[2])

        if self.fit_weights:
            claim = "an EM step leaves the weights where they are"
            checks.append(equi(weights_residual, weights, "weights", claim, move=simplex))
        else:
            given = self._given_weights()
            expected = np.full(len(weights), 1.0 / len(weights)) if given is None else given
            checks.append(same(weights, expected, "weights", "the weights are those given"))
        claim = "an EM step leaves the probabilities where they are"
        posterior = blocks.reduce(disagreement_block, *self._components(), weights, outcomes.full(stored)).value
        apart = parting(step, weights, outcomes.full(stored))
        return [
            *checks,
            equi(chances_residual, stored, "probabilities", claim, move=outcomes.moved),
            Check(
                "border",
                step.excess(weights, outcomes.full(stored), self.fit_weights),
                EXCESS,
                "local",
                "to raise a 0 does not pay",
            ),
            *([Check("split", apart, PARTED, "local", SPLIT)] if apart else []),
            Check("posterior", posterior, SAME_LIMIT, "proof", "the E-step is Bayes' rule"),
        ]

    def _identities(self, blocks):
        """Checks of what a fit learned beside the probabilities."""
        return []

    def _checked(self, X, sample_weight=None):
        blocks = super()._checked(X, sample_weight)
        self._known(self._census(blocks))
        return blocks

    def _census(self, blocks):
        """Look at every entry once, and raise where it is none that a model of this kind can read."""
        census, sparse = Census(*blocks.reduce(census_block)), is_sparse(blocks.first()[0])
        if np.isinf(census.spread.low).any() or np.isinf(census.spread.high).any():
            raise ValueError("Input X contains infinity; clean or impute it first.")
        if census.missing and sparse:
            raise ValueError("Input X is sparse and contains NaN; make it dense, where missing entries are left out.")
        self._refuse(census, sparse)
        return census

    def _learn(self, census):
        """Set what a fit learns of the table before its probabilities."""

    def _known(self, census):
        """Raise where the entries are none that this fit knows."""

    def _refuse_fractions(self, census, what):
        """Raise where entries are not whole numbers from 0."""
        if np.fmin.reduce(census.spread.low) < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: {what} are whole numbers from 0.")
        if np.fmax.reduce(census.spread.high) >= WHOLE:
            raise ValueError(
                f"X holds numbers of 2⁵³ and more, too large for {what}: floating point skips whole numbers there."
            )
        if census.fractions:
            raise ValueError(
                f"{type(self).__name__} takes {what}, whole numbers from 0, but {census.fractions} entries are not."
            )

    def _sizes(self, name, expected):
        """Give a parameter that holds a whole number, at least 1, for all columns or for each; else what is expected."""
        value = getattr(self, name)
        if value is None:
            return expected
        sizes, d = np.asarray(value, dtype=float), self.n_features_in_
        if sizes.shape not in ((), (d,)) or not ((sizes >= 1) & (sizes == np.floor(sizes)) & (sizes < WHOLE)).all():
            raise ValueError(
                f"{name} must be a whole number of at least 1, or {d} of them, one for each column; got {value!r}."
            )
        return np.broadcast_to(sizes, d).astype(np.int64)

    def _within(self, census, largest, name):
        """Raise where an entry is beyond what its column can hold."""
        beyond = np.flatnonzero(census.spread.high > largest)
        if len(beyond):
            j = beyond[0]
            raise ValueError(
                f"X holds {census.spread.high[j]:g} in column {j}, where {name} allows {largest[j]} at most: raise {name}."
            )

    def _given_weights(self):
        if self.weights_init is None:
            return None
        weights = np.array(self.weights_init, dtype=float)
        if weights.shape != (self.n_components,) or not ((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6):
            raise ValueError(f"weights_init must hold {self.n_components} numbers that are at least 0 and sum to 1.")
        return weights / weights.sum()

    def _given_chances(self):
        """Check the probabilities to start from and give those of all outcomes."""
        return None if self.probabilities_init is None else self._outcomes().full(self._probabilities(self.probabilities_init))

    def _probabilities(self, value):
        """Give chances of heads as an array, once they are some."""
        heads, shape = np.array(value, dtype=float), (self.n_components, self.n_features_in_)
        if heads.shape != shape or not ((heads >= 0) & (heads <= 1)).all():
            raise ValueError(
                f"probabilities_init must hold numbers from 0 to 1 in the shape {shape}, got the shape {heads.shape}."
            )
        return heads

    def _stored(self):
        return np.asarray(self.probabilities_, dtype=float)

    def _shaped(self, stored):
        return stored

    def _attributes(self, parameters):
        weights, chances = parameters
        return {"weights_": weights, "probabilities_": self._shaped(self._outcomes().reduced(chances).copy())}

    def _components(self):
        """Give the fitted parameters as the kernels want them."""
        outcomes = self._outcomes()
        return outcomes, outcomes.prepare(self.weights_, outcomes.full(self._stored()))

    def _n_parameters(self):
        free = len(self.weights_) * (int(self._outcomes().starts[-1]) - self.n_features_in_)
        return free + (len(self.weights_) - 1 if self.fit_weights else 0)
