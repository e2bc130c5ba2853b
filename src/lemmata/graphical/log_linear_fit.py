"""Climbing the likelihood of a log-linear model, by exact moments and by chains.

The chains of Gibbs sampling go on from step to step while the weights move ("persistent") [1]:

    w ← w + a_t (C + l2/n)⁻¹ (mean − φ̄(chains) − l2 w / n),      a_t ∝ (1 + t/t₀)^−0.7,

C the covariance of features in the chains, which makes the step that of Newton. The average of the second half of the
iterates is as good as the best choice of a_t [2]; then the chains stay there for a while to say how far the maximum still is.

[1] Younes, Probability Theory and Related Fields 82 (1989). [2] Polyak & Juditsky, SIAM J. Control Optim. 30 (1992).
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array

from lemmata.core.iterate import iterate
from lemmata.graphical.factor import Factor
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.gibbs_program import SiteProgram, chains
from lemmata.graphical.junction_tree import JunctionTree
from lemmata.graphical.learning_kernels import advance_chains
from lemmata.graphical.model import NOTHING
from lemmata.graphical.tree_layout import add_factor_marginals
from lemmata.graphical.tree_logs import log_beliefs
from lemmata.graphical.tree_messages import all_beliefs, room
from lemmata.optimize.lbfgs import lbfgs_start, lbfgs_step
from lemmata.optimize.minimum import drive

MATRIX = 256  # weights up to which the whole covariance of features is used; beyond, its diagonal
GAIN, SETTLE, DECAY = 0.5, 20.0, 0.7  # a_t = GAIN (1 + t/SETTLE)^−DECAY
MEMORY = 0.05  # share of the newest sweep in the running covariance
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
        self.variables, self.states, self.shapes = variables, states, []
        rows, columns, values, factors, entries, n = [], [], [], [], 0, 0
        for scopes, table in features:
            shape = [tuple(len(states[v]) for v in scope) for scope in scopes]
            if len(set(shape)) > 1:
                raise ValueError(f"Scopes that share weights need the same numbers of states, and {scopes} have {shape}.")
            size = int(np.prod(shape[0]))
            if table is None:
                block, own = np.eye(size), shape[0]
            else:
                own = table.shape[: -len(shape[0])]
                if table.shape[len(own) :] != shape[0] or len(own) > 1:
                    raise ValueError(
                        f"The tables of the feature over {scopes[0]} must have the shape {shape[0]}, or that after an axis "
                        f"for several features; they have {table.shape}."
                    )
                block = table.reshape(-1, size).T
            entry, weight = np.nonzero(block)
            for scope in scopes:
                rows.append(entries + entry)
                columns.append(n + weight)
                values.append(block[entry, weight])
                factors.append(Factor(scope, np.zeros(shape[0]), log=True))
                entries += size
            self.shapes.append(own)
            n += block.shape[1]
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
    moments = TreeMoments(terms)

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
    """Solve (covariance + penalty) x = slope; the covariance is a matrix or a diagonal."""
    if covariance.ndim == 1:
        return slope / np.maximum(covariance + penalty + SHRINK * covariance.mean(), np.finfo(float).tiny)
    ridge = penalty + SHRINK * np.trace(covariance) / len(covariance)
    return np.linalg.solve(covariance + max(ridge, np.finfo(float).tiny) * np.eye(len(covariance)), slope)


def spread(features):
    """Give the covariance of features over chains, or its diagonal where it would be too large."""
    centered = features - features.mean(axis=0)
    return centered.T @ centered / len(features) if features.shape[1] <= MATRIX else (centered**2).mean(axis=0)


def wander(terms, mean, penalty, start, *, n_chains, n_steps, rng, verbose):
    """Maximize with moments from persistent chains; return the averaged weights, their errors, and the run."""
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
    return w, remaining(walkers, data, penalty, w, n_steps // 2), run


def remaining(walkers, data, penalty, w, n_sweeps):
    """Estimate how far each weight is from the maximum: Newton's step from here, and the Monte-Carlo error of that step."""
    walkers.sweep(w)
    sums, squares = 0.0, 0.0
    for _ in range(max(n_sweeps, 2)):
        phi = walkers.sweep(w, same=True)
        sums, squares = sums + phi, squares + spread(phi)
    each = sums / max(n_sweeps, 2)  # mean of each chain: chains are independent of each other
    covariance, slope = squares / max(n_sweeps, 2), data - each.mean(axis=0) - penalty * w
    move = newton(covariance, penalty, slope)
    noise = np.array([newton(covariance, penalty, row) for row in each - each.mean(axis=0)])
    return np.sqrt(move**2 + (noise**2).sum(axis=0) / (len(each) * (len(each) - 1)))
