"""`LogLinearModel`: factors whose logarithms are linear in weights, fitted by maximum likelihood.

    log P(x; w) = Σ_m w · φ_m(x_m) − log Z(w),      ∂/∂w mean log P = mean of Σ_m φ_m over the rows − E_w[Σ_m φ_m]

A feature φ may have many scopes, all edges of a grid, say, which then share its weights. The likelihood is concave, because
log Z is convex; with the penalty ½ l2 ‖w‖² it has one maximum, where the moments of model and data differ by l2 w / n. The
expectation is exact by a junction tree, and L-BFGS climbs to the top. Or, for models that no tree can hold, it is
estimated by chains of Gibbs sampling that go on from step to step while the weights move ("persistent") [1]:

    w ← w + a_t (C + l2/n)⁻¹ (mean − φ̄(chains) − l2 w / n),      a_t ∝ (1 + t/t₀)^−0.7,

C the covariance of features in the chains, which makes the step that of Newton. The average of the second half of the
iterates is as good as the best choice of a_t [2]; then the chains stay there for a while to say how far the maximum still is.

[1] Younes, Probability Theory and Related Fields 82 (1989). [2] Polyak & Juditsky, SIAM J. Control Optim. 30 (1992).
"""

from functools import cached_property, partial
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import Certificate
from lemmata.core.estimator import Estimator
from lemmata.core.iterate import iterate
from lemmata.core.random import generator
from lemmata.graphical.discrete_table import read_table
from lemmata.graphical.factor import Factor
from lemmata.graphical.factor_graph import FactorGraph
from lemmata.graphical.gibbs_program import SiteProgram, chains
from lemmata.graphical.junction_tree import JunctionTree, _fill
from lemmata.graphical.learning import count_block
from lemmata.graphical.learning_kernels import advance_chains
from lemmata.graphical.model import MEMO, NOTHING, DiscreteModel, some
from lemmata.graphical.tree_layout import add_factor_marginals
from lemmata.graphical.tree_messages import all_beliefs
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
        p = self.tree.program
        self.room = *self.tree._buffers(), np.empty(p.state_starts[-1])

    def __call__(self, logs):
        """Return (log Z, marginals) for the logarithms of all factors' entries."""
        tree, p = self.tree, self.tree.program
        sums = np.empty(p.base.size)
        _fill(tree.layout, logs, True, tree._where, p.starts, p.members, p.offset, sums)
        peaks = np.maximum.reduceat(sums, p.offset[:-1])
        filled = p._replace(base=np.exp(sums - np.repeat(peaks, np.diff(p.offset))))
        log_z = all_beliefs(filled, *NOTHING, *self.room)
        out = np.zeros(tree.layout.table_starts[-1])
        graph = (p.cards, tree.layout.scope_starts, tree.layout.scopes, tree.layout.table_starts)
        add_factor_marginals(*graph, tree._where, p.starts, p.members, p.offset, self.room[0], 1.0, out)
        return float(log_z + peaks.sum()), out


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


def read_features(features):
    """Check features; give for each a list of scopes, and its tables or None for indicators."""
    if isinstance(features, dict) or not len(features):
        raise ValueError("features must be a list of pairs (scope or list of scopes, tables or 'indicator'), at least one.")
    found = []
    for pair in features:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise ValueError(f"A feature is a pair (scope or list of scopes, tables or 'indicator'), got {pair!r}.")
        scopes, table = pair
        scopes = [_scope(scope) for scope in scopes] if isinstance(scopes, list) else [_scope(scopes)]
        if not scopes or any(not scope or len(set(scope)) < len(scope) or len(scope) != len(scopes[0]) for scope in scopes):
            raise ValueError(f"Scopes of a feature need the same number of variables, all different, at least one: {scopes}.")
        if isinstance(table, str):
            if table != "indicator":
                raise ValueError(f"The tables of a feature are an array or 'indicator', got {table!r}.")
            found.append((scopes, None))
            continue
        table = np.asarray(table, dtype=float)
        if table.ndim not in (len(scopes[0]), len(scopes[0]) + 1) or not np.isfinite(table).all():
            raise ValueError(f"The tables of the feature over {scopes[0]} must be finite, with an axis for each variable.")
        found.append((scopes, table))
    return found


def _scope(scope):
    return tuple(scope) if isinstance(scope, tuple) else (scope,)


class LogLinearModel(DiscreteModel, Estimator):
    """Fit the weights of features of discrete variables, or describe a model whose weights are given.

    Parameters
    ----------
    features : List of pairs (scope, tables). A scope is a variable or a tuple of them; a list of scopes shares one set of
        weights. Tables are an array of the values of the feature at all states of the scope, with a first axis more for
        several features at once; or "indicator", a feature for every state.
    state_names : {variable: labels of its states}. Default: the values of the data, sorted, or 0, 1, … where tables or weights
        are given.
    weights : List with an array of weights for each feature: those of a model that is not fitted, or the start of a fit.
    l2 : Penalty ½ l2 ‖w‖² on the log-likelihood of all rows: the precision of a Gaussian prior. 0 is maximum likelihood,
        which does not exist where a feature is never seen and could be.
    tol : Largest entry of the gradient of the mean log-likelihood at which the exact fit ends.
    max_iter : Its iterations at most.
    n_chains, n_steps : Of the fit by Gibbs sampling: persistent chains, and steps of the weights.
    random_state : Seed of the chains.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    variables, states, factors : Of the model with the fitted weights, which answers all that a `FactorGraph` does.
    weights_ : List with an array for each feature: of the shape of the scope's states for indicators, else (n,) or ().
    errors_ : For weights by Gibbs sampling, of the same shapes, the estimated distance from the exact maximum; else None.
    log_likelihood_ : Of the data, by the exact fit; else None.
    method_ : How it was fitted.
    n_iter_, converged_, trace_ : How that went.

    Examples
    --------
    A ring of four spins, whose bonds share one strength:

    >>> ring = [([(0, 1), (1, 2), (2, 3), (3, 0)], [[1, -1], [-1, 1]])]
    >>> spins = LogLinearModel(ring, weights=[0.5]).sample(2000, random_state=0)
    >>> model = LogLinearModel(ring).fit(spins)
    >>> round(float(model.weights_[0]), 1)
    0.5
    >>> model.certify(spins).holds
    True
    """

    _parameter_constraints = {
        "features": [list, tuple],
        "state_names": [dict, None],
        "weights": [list, tuple, None],
        "l2": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_chains": [Interval(Integral, 2, None, closed="left")],
        "n_steps": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        features,
        state_names=None,
        weights=None,
        *,
        l2=1.0,
        tol=1e-8,
        max_iter=1000,
        n_chains=100,
        n_steps=1000,
        random_state=None,
        verbose=0,
    ):
        self.features = features
        self.state_names = state_names
        self.weights = weights
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter
        self.n_chains = n_chains
        self.n_steps = n_steps
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.requires_fit = self.weights is None
        return tags

    def __sklearn_is_fitted__(self):
        return self.weights is not None or "weights_" in self.__dict__

    def set_params(self, **params):
        """Set parameters; what was compiled from the old ones is forgotten."""
        self._forget()
        return super().set_params(**params)

    def _forget(self):
        super()._forget()
        for name in ("states", "factors", "_terms"):
            self.__dict__.pop(name, None)

    def __getstate__(self):
        state = super().__getstate__()
        return {key: value for key, value in state.items() if key not in (*MEMO, "states", "factors", "_terms")}

    @property
    def variables(self):
        """Names of the variables, in the order of the features."""
        names = [name for scopes, _ in read_features(self.features) for scope in scopes for name in scope]
        return tuple(dict.fromkeys([*names, *(self.state_names or {})]))

    def _known_states(self):
        """Give the labels that are known without data."""
        states = {name: tuple(labels) for name, labels in (self.state_names or {}).items()}
        given = [None] * len(self.features) if self.weights is None else [np.shape(part) for part in self.weights]
        for (scopes, table), shape in zip(read_features(self.features), given, strict=False):
            sizes = shape if table is None else table.shape[table.ndim - len(scopes[0]) :]
            for scope in scopes:
                for name, size in zip(scope, sizes or (), strict=False):
                    states.setdefault(name, tuple(range(size)))
        return states

    @cached_property
    def states(self):
        """Labels of the states of each variable."""
        states = self.states_ if "states_" in self.__dict__ else self._known_states()
        missing = [name for name in self.variables if name not in states]
        if missing:
            raise NotFittedError(f"The states of {some(missing)} are not known yet: give state_names, or fit to data.")
        return {name: states[name] for name in self.variables}

    @cached_property
    def _terms(self):
        return Terms(read_features(self.features), self.variables, self.states)

    @property
    def _vector(self):
        """The weights, fitted or given, in one vector."""
        weights = self.weights_ if "weights_" in self.__dict__ else self.weights
        if weights is None:
            raise NotFittedError("This LogLinearModel has no weights yet: give them, or fit it to data.")
        shapes = [np.shape(part) for part in weights]
        if shapes != list(self._terms.shapes):
            raise ValueError(f"weights must be arrays of the shapes {self._terms.shapes}, one for each feature; got {shapes}.")
        return self._terms.flat(weights)

    @cached_property
    def factors(self):
        """One factor for each scope of each feature."""
        return self._terms.factors(self._vector)

    def __repr__(self):
        if self.__sklearn_is_fitted__():
            return f"<LogLinearModel of {len(self.variables)} variables ({some(self.variables, 4)})>"
        return super().__repr__()

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, *, method="exact"):
        """Fit the weights to complete rows.

        Parameters
        ----------
        X : Frame, or {variable: values}, or an array whose columns are the variables in order.
        sample_weight : Repetitions of each row.
        method : "exact": moments by a junction tree; "gibbs": by persistent chains, for models too wide for one.
        """
        if method not in ("exact", "gibbs"):
            raise ValueError(f"method must be 'exact' or 'gibbs', got {method!r}.")
        self._forget()
        table = read_table(X, self.variables, sample_weight, states=self._known_states(), fixed=False)
        terms = Terms(read_features(self.features), self.variables, table.states)
        counts, total = complete_counts(table.blocks, terms)
        mean, penalty = counts / total, self.l2 / total
        given = LogLinearModel(self.features, table.states, self.weights)
        start = np.zeros(terms.n_weights) if self.weights is None else given._vector
        if method == "exact":
            found = climb(terms, mean, penalty, start, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose)
            w, run, errors = found.x, found.run, None
            value = float(-total * (found.value - penalty / 2 * float(w @ w)))
        else:
            options = {"n_chains": self.n_chains, "n_steps": self.n_steps, "verbose": self.verbose}
            w, errors, run = wander(terms, mean, penalty, start, rng=generator(self.random_state), **options)
            errors, value = terms.shaped(errors), None
        self.states_, self.weights_, self.errors_, self.log_likelihood_ = table.states, terms.shaped(w), errors, value
        self.method_, self.n_iter_, self.converged_, self.trace_ = method, run.n_iter, run.converged, run.trace
        self._forget()
        return self

    def _counted(self, X, sample_weight):
        table = read_table(X, self.variables, sample_weight, states=self.states)
        return complete_counts(table.blocks, self._terms)

    def _total(self, X, sample_weight):
        counts, total = self._counted(X, sample_weight)
        logs = self._terms.matrix @ self._vector
        return float(counts @ logs - total * TreeMoments(self._terms)(logs)[0]), total

    def log_likelihood(self, X, sample_weight=None):
        """Sum the logarithms of the probabilities of complete rows, without the penalty.

        Examples
        --------
        >>> model = LogLinearModel([("a", "indicator")], weights=[[0.0, 0.0]])
        >>> round(model.log_likelihood({"a": [0, 1]}) / float(np.log(0.5)), 9)
        2.0
        """
        return self._total(X, sample_weight)[0]

    def score(self, X, y=None, sample_weight=None):
        """Give the mean log-likelihood of the rows."""
        value, total = self._total(X, sample_weight)
        return value / total

    def gradient(self, X, sample_weight=None):
        """Give the gradient of the log-likelihood by the weights: moments of the rows minus those of the model.

        Examples
        --------
        >>> model = LogLinearModel([("a", "indicator")], weights=[[0.0, 0.0]])
        >>> model.gradient({"a": [0, 1, 1, 1]})
        [array([-1.,  1.])]
        """
        counts, total = self._counted(X, sample_weight)
        expected = TreeMoments(self._terms)(self._terms.matrix @ self._vector)[1]
        return self._terms.shaped(self._terms.matrix.T @ (counts - total * expected))

    @property
    def n_parameters(self):
        """Number of weights; those of indicators are more than the dimensions they span."""
        return self._terms.n_weights

    def predict_proba(self, X, variable):
        """Give the chances of the states of a variable (columns) given the rest of each row, which may have gaps."""
        from lemmata.graphical.learning import chances_of

        return chances_of(self, X, variable)

    def predict(self, X):
        """Fill in what was not seen: {variable: labels}, gaps filled with the most probable state given the rest of the row."""
        from lemmata.graphical.learning import filled

        return filled(self, X)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that no weights have a higher penalized likelihood; of a fit by Gibbs sampling, give evidence."""
        from lemmata.graphical.log_linear_certificate import exact_checks, sampled_checks

        counts, total = self._counted(X, sample_weight)
        checks = sampled_checks if getattr(self, "method_", "exact") == "gibbs" else exact_checks
        value = getattr(self, "log_likelihood_", None)
        return Certificate(*checks(self._terms, self._vector, counts, total, self.l2, value), subject="LogLinearModel")


def complete_counts(blocks, terms):
    """Count the states of all scopes; refuse gaps."""
    counts, _, gaps, total = blocks.reduce(count_block, terms.graph)
    if gaps:
        raise ValueError("X has rows with missing values: a log-linear model is fitted to complete rows; drop or fill them in.")
    return counts, total
