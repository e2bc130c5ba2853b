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
"""

import numpy as np

from lemmata.cluster.seeding import draw_centers
from lemmata.core.data import is_sparse
from lemmata.mixture.discrete_kernels import column_sums, logarithms
from lemmata.mixture.em import LatentModel

CELLS = 1 << 20  # counts of outcomes, at most, among which starts are drawn
PER_COMPONENT = 32  # rows, at least, among which each start is drawn
BORDER = 1e-6  # chances below lie on the border: a step is too small to say anything of them
EXCESS = 1e-2  # of the derivative of such a chance over the multiplier
FAINT = 1e-100  # a chance that nobody will miss, and from which there is a way back
INSIDE = 1e-4  # a chance that is raised from the border: the likelihood notices, and other chances hardly do


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
