"""Climbing the likelihood of a log-linear model, by exact moments and by chains.

The chains of Gibbs sampling go on from step to step while the weights move ("persistent") [1]:

    w ← w + a_t (C + l2/n)⁻¹ (mean − φ̄(chains) − l2 w / n),      a_t ∝ (1 + t/t₀)^−0.7,

C the covariance of features in the chains, which makes the step that of Newton. The average of the second half of the
iterates is as good as the best choice of a_t [2]. There the chains stay for a last step of Newton's, for as long as it takes:
its error shall be small in proportion to what chance in the rows leaves open, so that more rows ask for more sweeps.

The moments of the data must lie inside what distributions can have, or without a penalty there is no maximum: where a feature
is always at its largest value, a larger weight is better still.

[1] Younes, Probability Theory and Related Fields 82 (1989). [2] Polyak & Juditsky, SIAM J. Control Optim. 30 (1992).
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.iterate import iterate
from lemmata.graphical.discrete_table import check_size
from lemmata.graphical.evidence import NOTHING
from lemmata.graphical.factor import Factor
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.gibbs_program import SiteProgram, chains
from lemmata.graphical.junction_tree import JunctionTree
from lemmata.graphical.learning_kernels import advance_chains
from lemmata.graphical.tree_layout import add_factor_marginals
from lemmata.graphical.tree_logs import log_beliefs
from lemmata.graphical.tree_messages import all_beliefs, room
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step
from lemmata.optimize.minimum import drive

MATRIX = 256  # weights up to which the whole covariance of features is used; beyond, its diagonal
GAIN, SETTLE, DECAY = 0.5, 20.0, 0.7  # a_t = GAIN (1 + t/SETTLE)^−DECAY
WHOLE = 2048  # weights up to which the last step is that of Newton
SHARE = 0.1  # of the ½ that chance leaves open for each weight: it adds 5 % to the standard errors
RARE, SELDOM = 1e-4, 1e-2  # how often chance in the chains may exceed that, and how often without a warning
PATIENCE = 100  # times n_steps: sweeps for the last step at most
ROUNDS = 3  # last steps, where the first was a long one
MEMORY = 0.05  # share of the newest sweep in the running covariance
ROUNDING = 1e-12  # share of a sum
SHRINK = 1e-3  # of the mean variance, added to the covariance: an estimate may have directions without any


class Terms:
    """Features over named variables as a matrix: logarithms of all factors' entries = matrix · weights.

    Attributes
    ----------
    graph : (cards, scope_starts, scopes, table_starts) of the factors, one for each scope of each feature.
    matrix : CSR, entries of all factors × weights.
    shapes : Shape of the weights of each feature.
    """

    def __init__(self, features, variables, states):
        self.features, self.variables, self.states, self.shapes = features, variables, states, []
        rows, columns, values, factors, entries, n = [], [], [], [], 0, 0
        for scopes, table in features:
            for scope in scopes:
                check_size(scope, states)
            shape = [tuple(len(states[v]) for v in scope) for scope in scopes]
            if len(set(shape)) > 1:
                raise ValueError(f"Scopes that share weights need the same numbers of states, and {scopes} have {shape}.")
            size = int(np.prod(shape[0]))
            if table is None:
                own, count = shape[0], size
                entry = weight = np.arange(size)
                cells = np.ones(size)
            else:
                own = table.shape[: -len(shape[0])]
                if table.shape[len(own) :] != shape[0] or len(own) > 1:
                    raise ValueError(
                        f"The tables of the feature over {scopes[0]} must have the shape {shape[0]}, or that after an axis "
                        f"for several features; they have {table.shape}."
                    )
                block = table.reshape(-1, size).T
                entry, weight = np.nonzero(block)
                cells, count = block[entry, weight], block.shape[1]
            for scope in scopes:
                rows.append(entries + entry)
                columns.append(n + weight)
                values.append(cells)
                factors.append(Factor(scope, np.zeros(shape[0]), log=True))
                entries += size
            self.shapes.append(own)
            n += count
        self.graph_of = FactorGraph(factors, {name: states[name] for name in variables})
        self.layout = self.graph_of.layout
        self.graph, self.n_weights = tuple(self.layout[:4]), n
        cells = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        self.matrix = csr_array(cells, shape=(entries, n))

    def flat(self, weights):
        """Write the weights of all features into one vector."""
        return np.concatenate([np.ravel(np.asarray(part, dtype=float)) for part in weights])

    def shaped(self, vector):
        """Cut a vector into the weights of each feature."""
        sizes = [int(np.prod(shape)) for shape in self.shapes]
        parts = np.split(vector, np.cumsum(sizes)[:-1])
        return [part.reshape(shape).copy() for part, shape in zip(parts, self.shapes, strict=True)]

    def factors(self, w):
        """Give the factors for these weights."""
        logs, starts = self.matrix @ w, self.layout.table_starts
        return [
            Factor(factor.variables, logs[a:b].reshape(factor.shape), log=True)
            for factor, a, b in zip(self.graph_of.factors, starts[:-1], starts[1:], strict=True)
        ]

    def tables(self, w):
        """Give the entries of all factors in one vector, the largest of each factor being 1."""
        logs, starts = self.matrix @ w, self.layout.table_starts
        return np.exp(logs - np.repeat(np.maximum.reduceat(logs, starts[:-1]), np.diff(starts)))

    def extremes(self, counts, total):
        """Tell which features have, in all rows, the least or the largest value that their factors allow, and no other."""
        data, low, high = self.matrix.T @ counts, np.zeros(self.n_weights), np.zeros(self.n_weights)
        for a, b in zip(self.layout.table_starts[:-1], self.layout.table_starts[1:], strict=True):
            block = self.matrix[a:b]
            low, high = low + total * block.min(axis=0).toarray(), high + total * block.max(axis=0).toarray()
        nothing = ROUNDING * np.maximum(np.abs(low), np.abs(high))
        return (high - low > nothing) & ((data - low <= nothing) | (high - data <= nothing))

    def scope_of(self, j):
        """Give the first scope of the feature that a weight belongs to."""
        entry = int(self.matrix[:, [j]].nonzero()[0][0])
        return self.graph_of.factors[int(np.searchsorted(self.layout.table_starts, entry, side="right")) - 1].variables


def warn_of_extremes(terms, counts, total):
    """Say that there is no maximum, if so; return whether."""
    ends = np.flatnonzero(terms.extremes(counts, total))
    if len(ends):
        warnings.warn(
            f"There is no maximum: in all rows {len(ends):,} of the {terms.n_weights:,} features, the first of them over "
            f"{terms.scope_of(ends[0])}, are at the border of what they can be, such as a state that never occurs, and their "
            "weights have no end; give l2 > 0.",
            ConvergenceWarning,
            stacklevel=4,
        )
    return len(ends) > 0


class TreeMoments:
    """Exact log Z and marginals over the scopes of all factors, by a junction tree that is compiled once."""

    def __init__(self, terms, **options):
        self.tree = JunctionTree(terms.graph_of, **options)
        self.room = *room(self.tree.program), np.empty(self.tree.program.state_starts[-1])

    def __call__(self, logs):
        """Return (log Z, marginals) for the logarithms of all factors' entries."""
        tree = self.tree
        filled, own, scale = tree.refilled_by_logs(logs)
        log_z = all_beliefs(filled, *NOTHING, *self.room)
        if np.isnan(log_z):  # plain floats will not do
            log_z = log_beliefs(filled, own, *NOTHING, *self.room)
        out = np.zeros(len(logs))
        add_factor_marginals(*tree.scopes, tree.where, *tree.shape, self.room[0], 1.0, out)
        return float(log_z + scale), out


def climb(terms, mean, penalty, start, *, tol, max_iter, verbose):
    """Maximize w·mean − log Z − ½ penalty ‖w‖² by L-BFGS with exact moments."""
    try:
        moments = TreeMoments(terms)
    except ValueError as error:
        raise ValueError(f"{error} Or fit with method='gibbs', which needs no tree.") from None

    def fun(w):
        logs = terms.matrix @ w
        log_z, expected = moments(logs)
        slope = terms.matrix.T @ (expected - mean) + penalty * w
        return log_z - float(mean @ logs) + penalty / 2 * float(w @ w), slope

    options = {"shape": start.shape, "name": "log-linear model", "max_iter": max_iter, "tol": tol, "verbose": verbose}
    return drive(partial(lbfgs_step, fun), lbfgs_start(fun, start), descends=True, **options)


class Chains:
    """Persistent chains of Gibbs sampling, and the features of their states."""

    def __init__(self, terms, w, n_chains, rng):
        self.terms = terms
        self.program = SiteProgram(terms.layout._replace(tables=terms.tables(w)))
        made = chains(self.program, n_chains, rng)
        self.X, self.states = np.array([x for x, _ in made]), np.array([state for _, state in made])

    def sweep(self, w, n_sweeps=1, *, same=False):
        """Take weights, unless they are the same as before; sweep, and return the features of each chain."""
        if not same:
            self.program.refill(self.terms.tables(w))
        p, matrix = self.program, self.terms.matrix
        out = np.empty((len(self.X), self.terms.n_weights))
        entries = (matrix.indptr, matrix.indices, matrix.data)
        wired = (p.wiring, p.tables, p.log_tables, p.order)
        advance_chains(*wired, self.states, self.X, n_sweeps, self.terms.graph, *entries, out)
        return out


def newton(covariance, penalty, slope):
    """Solve (covariance + penalty) x = slope, one or, in columns, many; the covariance is a matrix or a diagonal."""
    if covariance.ndim == 1:
        curvature = np.maximum(covariance + penalty + SHRINK * covariance.mean(), np.finfo(float).tiny)
        return (slope.T / curvature).T
    ridge = penalty + SHRINK * np.trace(covariance) / len(covariance)
    return np.linalg.solve(covariance + max(ridge, np.finfo(float).tiny) * np.eye(len(covariance)), slope)


def spread(features, most=MATRIX):
    """Give the covariance of features over chains, or its diagonal where it would be too large."""
    centered = features - features.mean(axis=0)
    return centered.T @ centered / len(features) if features.shape[1] <= most else (centered**2).mean(axis=0)


def wander(terms, mean, penalty, start, *, total, n_chains, n_steps, rng, verbose):
    """Maximize with moments from persistent chains; return the weights, their errors, and the run."""
    walkers = Chains(terms, start, n_chains, rng)
    features = np.array([walkers.sweep(start) for _ in range(int(SETTLE))])
    data = terms.matrix.T @ mean

    def step(state):
        t, w, average, covariance = state
        phi = walkers.sweep(w)
        slope = data - phi.mean(axis=0) - penalty * w
        covariance = (1 - MEMORY) * covariance + MEMORY * spread(phi)
        move = newton(covariance, penalty, slope)
        w = w + GAIN * (1 + t / SETTLE) ** -DECAY * move
        kept = t + 1 - n_steps // 2  # iterates in the average
        average = w if kept <= 1 else average + (w - average) / kept
        return (t + 1, w, average, covariance), float(slope @ move) / 2, 0.0 if t + 1 == n_steps else np.inf

    state = (0, start, start, spread(features.reshape(-1, features.shape[2])))
    run = iterate(step, state, max_iter=n_steps, tol=0.0, name="log-linear model by Gibbs sampling", verbose=verbose)
    w = run.state[2]
    for _ in range(ROUNDS):
        move, errors, gain, share = last_step(walkers, data, penalty, w, total, n_steps)
        w = w + move
        if gain <= 1:  # of what chance leaves open: a step as short as that is right
            break
    if share > allowed(len(w), SELDOM):
        message = (
            f"The error of the chains is still {share:.2g} of what chance in the rows leaves open, and was to be "
            f"{allowed(len(w), RARE):.2g}: raise n_chains or n_steps."
        )
        warnings.warn(message, ConvergenceWarning, stacklevel=4)
        run = replace(run, converged=False)
    return w, errors, run


def allowed(n_weights, chance):
    """Say how large the error of the chains may be, as a share of what chance in the rows leaves open.

    >>> bool(0.004 < allowed(1, 1e-4) < allowed(100, 1e-4) < allowed(100, 0.01) < 0.1)
    True
    """
    return SHARE / (1.5 * chi2.isf(chance, n_weights) / n_weights)  # with room for what the last step leaves


def last_step(walkers, data, penalty, w, total, n_steps):
    """Find Newton's step by chains that stay at these weights until its Monte-Carlo error is small, or patience ends.

    Returns
    -------
    move : The step; nothing where the covariance is too large to be solved with.
    errors : The error of each weight after it.
    gain : What the step gains in log-likelihood, as a share of what chance in the rows leaves open.
    share : The error, as a share of the same.
    """
    walkers.sweep(w)
    sums, squares, done, batch = 0.0, 0.0, 0, max(n_steps // 2, 2)
    every = max(batch // 100, 1)
    share, goal = np.inf, allowed(len(w), RARE)
    while share > goal and done < PATIENCE * n_steps:
        for t in range(batch):
            phi = walkers.sweep(w, same=True)
            sums = sums + phi
            if t % every == 0 and done == 0:
                squares = squares + spread(phi, WHOLE)
        done += batch
        each = sums / done  # mean of each chain: chains are independent of each other
        covariance, slope = squares / len(range(0, batch, every)), data - each.mean(axis=0) - penalty * w
        apart = (each - each.mean(axis=0)) / np.sqrt(len(each) * (len(each) - 1))
        moves = newton(covariance, penalty, np.column_stack([slope, apart.T])).T
        share = total * float((apart * moves[1:]).sum()) / len(w)
    move, gain = moves[0], total * float(slope @ moves[0]) / len(w)
    if covariance.ndim == 1:
        return np.zeros(len(w)), np.sqrt(move**2 + (moves[1:] ** 2).sum(axis=0)), 0.0, share
    return move, np.sqrt((moves[1:] ** 2).sum(axis=0)), gain, share
