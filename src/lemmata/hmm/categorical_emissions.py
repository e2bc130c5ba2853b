"""Emissions of symbols: the law that a fit moves, the law of a fit, and the same by another way for its certificate.

Within a state the columns of a row are independent symbols (as a rule there is one column); with γ in the place of the
responsibilities the M-step counts, as in a categorical mixture (`lemmata.mixture.discrete_kernels.Codes`), with the parameter e
of a Dirichlet prior: θₛⱼc ∝ Σ γₜ(s) [xₜⱼ = c] + e − 1. A missing symbol counts nothing.
"""

import numpy as np

from lemmata.core.certificate import Check, equi, same
from lemmata.mixture.discrete import BORDER, EXCESS, alive, normalized, raised
from lemmata.mixture.discrete_kernels import Codes, add_logs, logarithms

STILL = 1e-10  # probabilities that move by no more stand still


class CategoricalLaw:
    """Emissions of symbols; parameters are (chances,), of the symbols of all columns side by side (k, symbols).

    Parameters
    ----------
    sizes : Number of symbols of each column.
    k : Number of states.
    prior : Parameter of the Dirichlet prior, at least 1.
    """

    complete = True  # a missing symbol is not counted, and nothing else is hidden but the states

    def __init__(self, sizes, k, prior=1.0):
        self.codes, self.k, self.prior = Codes(sizes), k, prior

    def prepare(self, parameters):
        """Take logarithms (symbols, k): those of 0 are infinite, and nothing multiplies them."""
        return self.codes.prepare(np.ones(self.k), parameters[0])[2]

    def log_densities(self, X, prepared):
        """Log-probability of each row in each state."""
        logs = np.zeros((len(X), self.k))
        add_logs(X, self.codes.starts, prepared, logs)
        return logs

    def statistics(self, X, shares, prepared):
        """Counts of the symbols in each state."""
        return (self.codes.sums(X, shares),)

    def m_step(self, statistics, parameters, fixed=()):
        """Count; what is 0 stays 0, and a state without rows keeps its chances."""
        (chances,) = parameters
        if "emissionprob" in fixed:
            return (chances,)
        counts = np.where(chances > 0, np.maximum(statistics[0] + (self.prior - 1.0), 0.0), 0.0)
        return (alive(chances, normalized(counts, self.codes.starts, chances)),)

    def log_prior(self, parameters):
        """Log-density of the Dirichlet prior but for its constant; a chance of 0 is structure, and has none."""
        logs, _ = logarithms(parameters[0])
        return (self.prior - 1.0) * float(logs.sum())

    def penalty(self, parameters):
        """There is no floor."""
        return 0.0

    rounding = penalty

    def slack(self, before, after):
        """There is no floor."""
        return 0.0

    def escape(self, before, after):
        """Raise what lies on the border and is about to leave it."""
        chances = raised(before[0], after[0])
        return None if np.array_equal(chances, after[0]) else (normalized(chances, self.codes.starts, chances),)

    def pack(self, parameters):
        """Square roots."""
        return np.sqrt(parameters[0]).ravel()

    def unpack(self, vector):
        """Square, and divide by the sums; None where everything vanishes."""
        chances = normalized(vector.reshape(self.k, -1) ** 2, self.codes.starts, np.nan)
        return (chances,) if np.isfinite(chances).all() else None


class CategoricalChecker:
    """Emissions of symbols, column by column, as `certificate` wants them; parameters are (chances,).

    Parameters
    ----------
    sizes, prior : Of the law.
    given : {name: start} of what was fixed.
    allowed : Where chances may be above 0: everywhere, or where the start was.
    """

    def __init__(self, sizes, prior, given, allowed):
        self.starts, self.prior, self.given, self.allowed = np.concatenate([[0], np.cumsum(sizes)]), prior, given, allowed

    def sound(self, parameters):
        """Check that the chances are probabilities."""
        (chances,) = parameters
        claim, fault = "emissions are probabilities", np.inf
        if np.isfinite(chances).all() and (chances >= 0).all():
            fault = float(np.abs(np.add.reduceat(chances, self.starts[:-1], axis=1) - 1.0).max())
        return Check("emissions", fault, 1e-6, "proof", claim)

    def _columns(self, X, chances):
        """Log-probability of the symbol of each column (columns, rows, k)."""
        with np.errstate(divide="ignore"):
            logs = np.log(chances)
        out = np.zeros((X.shape[1], len(X), len(chances)))
        for j, start in enumerate(self.starts[:-1]):
            seen = ~np.isnan(X[:, j])
            out[j, seen] = logs[:, start + X[seen, j].astype(np.int64)].T
        return out

    def log_densities(self, X, parameters):
        """Log-probability of each row in each state."""
        return self._columns(X.astype(float), parameters[0]).sum(axis=0)

    def statistics(self, X, states, ahead, parameters):
        """Counts of the symbols, and derivatives of the log-likelihood by the chances.

        `ahead` is the logarithm of the density of a state and all other rows, over that of all rows: with the symbols of the
        other columns it is the derivative by the chance of the symbol that is seen.
        """
        X, (chances,) = X.astype(float), parameters
        columns, counts, slopes = self._columns(X, chances), np.zeros(chances.shape), np.zeros(chances.shape)
        for j, start in enumerate(self.starts[:-1]):
            seen = ~np.isnan(X[:, j])
            others = np.delete(columns, j, axis=0).sum(axis=0)[seen]
            weights = np.exp(np.minimum(ahead[seen] + others, 700.0))  # no larger number has an exponential
            at = start + X[seen, j].astype(np.int64)
            np.add.at(counts.T, at, states[seen])
            np.add.at(slopes.T, at, weights)
        return counts, slopes

    def step(self, statistics, parameters):
        """Chances after an EM step."""
        counts = np.where(parameters[0] > 0, statistics[0] + (self.prior - 1.0), 0.0)
        return (normalized(np.maximum(counts, 0.0), self.starts, parameters[0]),)

    def stationary(self, step, occupancies, parameters):
        """Check that a step leaves the chances where they are, or that they are those given."""
        (chances,) = parameters
        if "emissionprob" in self.given:
            return [same(chances, self.given["emissionprob"], "emissionprob", "emissions are those given")]

        def residual(a):
            found = a - step((a,))[0]
            return np.where(np.abs(found) > STILL, found, 0.0)

        def move(a, rng):
            """Move by 1 % within the simplex of each column, and leave alone what is 0."""
            moved = np.where(a > 0, Codes(np.diff(self.starts)).moved(a, rng), 0.0)
            return normalized(moved, self.starts, a)

        return [equi(residual, chances, "emissionprob", "an EM step leaves the emissions where they are", move=move)]

    def excess(self, statistics, parameters):
        """Say by how much, at most, a derivative on the border exceeds its multiplier, as a share."""
        (chances,), (counts, slopes) = parameters, statistics
        if "emissionprob" in self.given:
            return 0.0
        counts = np.maximum(counts + np.where(chances > 0, self.prior - 1.0, 0.0), 0.0)
        totals = np.repeat(np.add.reduceat(counts, self.starts[:-1], axis=1), np.diff(self.starts), axis=1)
        low = (chances < BORDER) & (totals > 0) & self.allowed
        return float((slopes[low] / totals[low] - 1.0).max(initial=0.0)) if self.prior <= 1 + EXCESS else 0.0
