"""`LogLinearModel`: factors whose logarithms are linear in weights, fitted by maximum likelihood.

    log P(x; w) = Σ_m w · φ_m(x_m) − log Z(w),      ∂/∂w mean log P = mean of Σ_m φ_m over the rows − E_w[Σ_m φ_m]

A feature φ may have many scopes, all edges of a grid, say, which then share its weights. The likelihood is concave, because
log Z is convex; with the penalty ½ l2 ‖w‖² it has one maximum, where the moments of model and data differ by l2 w / n. The
expectation is exact by a junction tree, and L-BFGS climbs to the top. Or, for models that no tree can hold, it is
estimated by chains of Gibbs sampling (`log_linear_fit`).
"""

from functools import cached_property
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import Certificate
from lemmata.core.random import generator
from lemmata.graphical.discrete_table import read_table
from lemmata.graphical.evidence import some
from lemmata.graphical.fitted_model import FittedModel
from lemmata.graphical.learning import count_block
from lemmata.graphical.log_linear_fit import Terms, TreeMoments, climb, wander, warn_of_extremes


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


class LogLinearModel(FittedModel):
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
        which does not exist where a feature is never seen and could be: a fit says so, and its certificate is refused.
    tol : Largest entry of the gradient of the mean log-likelihood at which the exact fit ends.
    max_iter : Its iterations at most.
    n_chains, n_steps : Of the fit by Gibbs sampling: persistent chains, and steps of the weights. After these the chains go on,
        for 100 times as many sweeps at most, until their error is small beside what chance in the rows leaves open.
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

    _numbers = "weights"
    _memo = (*FittedModel._memo, "states", "factors", "_terms")
    _parameter_constraints = {
        "features": [list, tuple],
        "state_names": [dict, None],
        "weights": "no_validation",  # `_given` says what is wrong, in a fit or without
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

    @property
    def variables(self):
        """Names of the variables, in the order of the features."""
        names = [name for scopes, _ in read_features(self.features) for scope in scopes for name in scope]
        return tuple(dict.fromkeys([*names, *(self.state_names or {})]))

    @property
    def _given(self):
        """The weights that were given, one set for each feature."""
        if not isinstance(self.weights, (list, tuple)) or len(self.weights) != len(self.features):
            raise ValueError(
                f"weights must be a list of arrays, one for each feature, {len(self.features)} in all; got {self.weights!r}."
            )
        return self.weights

    def _known_states(self):
        """Give the labels that are known without data."""
        states = {name: tuple(labels) for name, labels in (self.state_names or {}).items()}
        given = [None] * len(self.features) if self.weights is None else [np.shape(part) for part in self._given]
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
        if "weights_" not in self.__dict__ and self.weights is None:
            raise NotFittedError("This LogLinearModel has no weights yet: give them, or fit it to data.")
        weights = self.weights_ if "weights_" in self.__dict__ else self._given
        shapes = [np.shape(part) for part in weights]
        if shapes != list(self._terms.shapes):
            raise ValueError(f"weights must be arrays of the shapes {self._terms.shapes}, one for each feature; got {shapes}.")
        return self._terms.flat(weights)

    @cached_property
    def factors(self):
        """One factor for each scope of each feature."""
        return self._terms.factors(self._vector)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, *, method="exact"):
        """Fit the weights to complete rows.

        Parameters
        ----------
        X : Frame, or {variable: values}, or an array whose columns are the variables in order; where the variables are the
            numbers 0 to n − 1, column v is variable v. Stored tables (Parquet, Dask, blocks) must hold numbers.
        sample_weight : Repetitions of each row.
        method : "exact": moments by a junction tree; "gibbs": by persistent chains, for models too wide for one.
        """
        if method not in ("exact", "gibbs"):
            raise ValueError(f"method must be 'exact' or 'gibbs', got {method!r}.")
        table = read_table(X, self.variables, sample_weight, states=self._known_states(), fixed=False)
        terms = Terms(read_features(self.features), self.variables, table.states)
        counts, total = complete_counts(table, terms)
        endless = self.l2 == 0 and warn_of_extremes(terms, counts, total)
        mean, penalty = counts / total, self.l2 / total
        given = LogLinearModel(self.features, table.states, self.weights)
        start = np.zeros(terms.n_weights) if self.weights is None else given._vector
        if method == "exact":
            found = climb(terms, mean, penalty, start, tol=self.tol, max_iter=self.max_iter, verbose=self.verbose)
            w, run, errors = found.x, found.run, None
            value = float(-total * (found.value - penalty / 2 * float(w @ w)))
        else:
            options = {"total": total, "n_chains": self.n_chains, "n_steps": self.n_steps, "verbose": self.verbose}
            w, errors, run = wander(terms, mean, penalty, start, rng=generator(self.random_state), **options)
            errors, value = terms.shaped(errors), None
        self.states_, self.weights_, self.errors_, self.log_likelihood_ = table.states, terms.shaped(w), errors, value
        self.method_, self.n_iter_, self.converged_, self.trace_ = method, run.n_iter, run.converged and not endless, run.trace
        return self

    def _counted(self, X, sample_weight):
        table = read_table(X, self.variables, sample_weight, states=self.states)
        return complete_counts(table, self._terms)

    def _likelihood(self, X, sample_weight):
        counts, total = self._counted(X, sample_weight)
        logs = self._terms.matrix @ self._vector
        return total, float(counts @ logs - total * TreeMoments(self._terms)(logs)[0])

    def log_likelihood(self, X, sample_weight=None):
        """Sum the logarithms of the probabilities of complete rows, without the penalty.

        Examples
        --------
        >>> model = LogLinearModel([("a", "indicator")], weights=[[0.0, 0.0]])
        >>> round(model.log_likelihood({"a": [0, 1]}) / float(np.log(0.5)), 9)
        2.0
        """
        return self._likelihood(X, sample_weight)[1]

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
        """Dimensions of the family of distributions; indicators have more weights than that, some of which change nothing.

        Examples
        --------
        >>> LogLinearModel([(("a", "b"), "indicator"), ("a", "indicator")], {"a": range(3), "b": range(2)}).n_parameters
        5
        """
        from lemmata.graphical.log_linear_certificate import n_dimensions

        return n_dimensions(self._terms)

    def certify(self, X=None, y=None, sample_weight=None, *, evidence=None, assignment=None):
        """Prove that no weights have a higher penalized likelihood; of a fit by Gibbs sampling, give evidence.

        Parameters
        ----------
        X, sample_weight : The rows that the model was fitted to, if it was.
        evidence, assignment : As for `FactorGraph.certify`; without X, what is proved is that answers are exact.
        """
        from lemmata.graphical.log_linear_certificate import exact_checks, sampled_checks

        checks = []
        if X is None or evidence is not None or assignment is not None:
            checks += self.junction_tree().certify(evidence, assignment)
        if X is not None:
            counts, total = self._counted(X, sample_weight)
            of_fit = sampled_checks if getattr(self, "method_", "exact") == "gibbs" else exact_checks
            value = getattr(self, "log_likelihood_", None)
            checks += of_fit(self._terms, self._vector, counts, total, self.l2, value)
        return Certificate(*checks, subject="LogLinearModel")


def complete_counts(table, terms):
    """Count the states of all scopes; refuse gaps."""
    gone = [name for name in terms.variables if name not in table.seen]
    if gone:
        raise ValueError(f"The data have no column for {some(gone)}: a log-linear model is fitted to complete rows.")
    counts, _, gaps, total = table.blocks.reduce(count_block, terms.graph)
    if gaps:
        raise ValueError("X has rows with missing values: a log-linear model is fitted to complete rows; drop or fill them in.")
    return counts, total
