"""`BayesNet`: P(x) = Π P(x_i | parents of x_i), along the arrows of a graph without directed cycles.

The tables are given, or learned from data: by counting where all variables are seen, by EM where values are missing or
variables are hidden (`learning`). Everything a `FactorGraph` answers a net answers as well, one factor to each table.
"""

from functools import cached_property
from numbers import Integral, Real

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import Certificate, Check
from lemmata.core.random import generator
from lemmata.graphical.arrows import parents_first
from lemmata.graphical.evidence import labels, some
from lemmata.graphical.factor import Factor
from lemmata.graphical.factor_graph import check_labels
from lemmata.graphical.fitted_model import FittedModel

ROW_SUM = 1e-6  # by which the chances of a row may miss one: rounding to six digits; they are then divided by their sum
ROUNDING = 1e-12  # tables whose rows are as near to one as this are left alone


class BayesNet(FittedModel):
    """Describe a Bayes net that is given, or fit the tables of a given graph to data.

    Parameters
    ----------
    parents : {variable: its parents}, or a list of arrows (parent, child). Parents without an entry have no parents.
    tables : {variable: chances of its states}, arrays with an axis for each parent, in order, and a last one for the variable
        itself, along which they sum to one. None: `fit` learns them; to a `fit` with gaps, they are a start.
    state_names : {variable: labels of its states}. Default: 0, 1, … of a given net, and of a fitted one the values of the
        data, sorted, or the categories of a pandas column or an Enum of Polars, in order. A hidden variable, which has no
        column in the data, needs its labels here.
    alpha : Pseudo-count of every state in each row of a table: a symmetric Dirichlet(alpha + 1) prior. 0 is maximum likelihood.
    tol : Where values are missing, stop when an EM step changes the mean log-likelihood of a row by no more; with alpha > 0,
        not before the tables have come to rest as well.
    max_iter : EM steps at most.
    n_init : Runs of EM from different starts, of which the best is kept; of no use where nothing is hidden.
    random_state : Seed of the starts.
    verbose : 1 shows a progress bar.

    Attributes
    ----------
    variables : Names, in the order of `parents`.
    states : {variable: labels of its states}.
    parents_ : {variable: tuple of its parents}.
    tables_ : {variable: array}, the fitted tables.
    counts_ : {variable: array}, how often each row and state was seen, or expected where values are missing.
    log_likelihood_ : Of the data, at the end of the fit.
    n_iter_ : EM steps of the best run; 0 where counting was enough.

    Examples
    --------
    >>> tables = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], "wet": [[[0.99, 0.01], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]]}
    >>> net = BayesNet({"rain": [], "sprinkler": [], "wet": ["rain", "sprinkler"]}, tables)
    >>> net.marginals({"wet": 1})["rain"]
    array([0.3259, 0.6741])
    >>> net.marginals({"wet": 1, "sprinkler": 1})["rain"]  # explained away
    array([0.7843, 0.2157])
    >>> data = {"rain": ["no", "no", "yes", "yes"], "wet": ["no", "no", "yes", "no"]}
    >>> BayesNet([("rain", "wet")], alpha=1.0).fit(data).tables_["wet"]
    array([[0.75, 0.25],
           [0.5 , 0.5 ]])
    """

    _numbers = "tables"
    _memo = (*FittedModel._memo, "parents_", "states", "factors")
    _parameter_constraints = {
        "parents": [dict, "array-like"],
        "tables": [dict, None],
        "state_names": [dict, None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        parents,
        tables=None,
        state_names=None,
        *,
        alpha=0.0,
        tol=1e-10,
        max_iter=10_000,
        n_init=1,
        random_state=None,
        verbose=0,
    ):
        self.parents = parents
        self.tables = tables
        self.state_names = state_names
        self.alpha = alpha
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @cached_property
    def parents_(self):
        """The parents of each variable."""
        if isinstance(self.parents, dict):
            for child, above in self.parents.items():
                if isinstance(above, str) and above:
                    raise ValueError(f"The parents of {child!r} must be a list of names, got the text {above!r}.")
            arrows = {child: tuple(above) for child, above in self.parents.items()}
        else:
            arrows = {}
            for parent, child in self.parents:
                arrows.setdefault(parent, ())
                arrows[child] = (*arrows.get(child, ()), parent)
        for child, above in list(arrows.items()):
            if len(set(above)) < len(above):
                raise ValueError(f"The variable {child!r} has a parent twice: {list(above)}.")
            for parent in above:
                arrows.setdefault(parent, ())
        if not arrows:
            raise ValueError("A Bayes net needs at least one variable.")
        parents_first(arrows)
        return arrows

    @property
    def variables(self):
        """Names of the variables."""
        return tuple(self.parents_)

    @property
    def _tables(self):
        """The tables, fitted or given."""
        if "tables_" in self.__dict__:
            return self.tables_
        if self.tables is None:
            raise NotFittedError("This BayesNet has no tables yet: give them, or fit it to data.")
        return self.tables

    @cached_property
    def states(self):
        """Labels of the states of each variable."""
        if "states_" in self.__dict__:
            return self.states_
        tables, given = self._tables, self.state_names or {}
        missing = [name for name in self.parents_ if name not in tables]
        if missing:
            raise ValueError(f"There is no table for {some(missing)}.")
        unknown = [name for name in (*tables, *given) if name not in self.parents_]
        if unknown:
            raise ValueError(f"There are tables or state_names for {some(unknown)}, which is no variable of the net.")
        states = {}
        for name in self.parents_:
            size = np.shape(tables[name])[-1:]
            if not size or size[0] == 0:
                raise ValueError(f"The table of {name!r} must have an axis for its own states.")
            states[name] = tuple(given.get(name, range(size[0])))
            check_labels(name, states[name])
            if len(states[name]) != size[0]:
                raise ValueError(f"The table of {name!r} has {size[0]} states and there are {len(states[name])} labels.")
        return states

    @cached_property
    def factors(self):
        """One factor for each table, over the parents and the variable."""
        states = self.states
        factors = []
        for name, above in self.parents_.items():
            table = np.array(self._tables[name], dtype=float)
            shape = tuple(len(states[v]) for v in (*above, name))
            if table.shape != shape:
                raise ValueError(
                    f"The table of {name!r} must have the shape {shape}, an axis for each of its parents {list(above)} and one "
                    f"for itself, by their states; it has {table.shape}."
                )
            total = table.sum(axis=-1, keepdims=True)
            miss = float(np.abs(total - 1).max())
            if miss > ROW_SUM:
                raise ValueError(f"The chances of {name!r} must sum to one along the last axis; they miss it by {miss:.2g}.")
            factors.append(Factor((*above, name), table / total if miss > ROUNDING else table))
        return factors

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Learn the tables from data.

        Parameters
        ----------
        X : Frame, or {variable: values}, or an array whose columns are the variables in order; where the variables are the
            numbers 0 to n − 1, column v is variable v. Stored tables (Parquet, Dask, blocks) must hold numbers, which are
            numbers of states where the labels are texts. None and NaN are values that were not seen; variables without a
            column are hidden.
        sample_weight : Repetitions of each row.
        """
        from lemmata.graphical.learning import learn

        for name, value in learn(self, X, sample_weight).items():
            setattr(self, name, value)
        return self

    def log_likelihood(self, X, sample_weight=None):
        """Sum the logarithms of the probabilities of rows; what was not seen is summed over.

        Examples
        --------
        >>> net = BayesNet({"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.05, 0.95]]})
        >>> float(np.exp(net.log_likelihood({"wet": [1]}))), float(np.exp(net.log_likelihood({"rain": [1], "wet": [1]})))
        (0.27, 0.19)
        """
        return self._likelihood(X, sample_weight)[1]

    @property
    def n_parameters(self):
        """Number of free chances in all tables."""
        from lemmata.graphical.learning import n_parameters

        return n_parameters(self)

    def d_separated(self, x, y, given=()):
        """Tell whether x and y are independent given others in every net with these arrows, and why.

        Parameters
        ----------
        x, y, given : Names, or collections of names, of variables.

        Returns
        -------
        answer : True or False as a condition; printed, it says which trail is open, or what blocks each.

        Examples
        --------
        >>> net = BayesNet([("rain", "wet"), ("sprinkler", "wet")])
        >>> bool(net.d_separated("rain", "sprinkler")), bool(net.d_separated("rain", "sprinkler", given="wet"))
        (True, False)
        """
        from lemmata.graphical.separation import d_separated

        return d_separated(self.parents_, x, y, given)

    def sample(self, n=1, evidence=None, random_state=None):
        """Draw n independent rows: {variable: array of labels}; parents before children or, given evidence, by the tree."""
        if evidence:
            return super().sample(n, evidence, random_state)
        rng, states, codes = generator(random_state), self.states, {}
        tables = dict(zip(self.parents_, self.factors, strict=True))
        for name in parents_first(self.parents_):
            rows = tables[name].values[tuple(codes[parent] for parent in self.parents_[name])]
            ends = np.cumsum(np.broadcast_to(rows, (n, len(states[name]))), axis=1)
            codes[name] = (rng.random((n, 1)) * ends[:, -1:] >= ends).sum(axis=1)
        return {name: labels(states[name])[codes[name]] for name in self.parents_}

    def certify(self, X=None, y=None, sample_weight=None, *, evidence=None, assignment=None):
        """Prove that tables are conditional distributions and answers exact; with the data of the fit, that it is the best.

        Parameters
        ----------
        X, sample_weight : The rows that the net was fitted to, if it was.
        evidence : What is known in the answers to be checked.
        assignment : What `map` gave, to be proved the most probable.
        """
        miss = max(float(np.abs(np.sum(self._tables[name], axis=-1) - 1).max()) for name in self.parents_)
        rows = Check("rows", miss, ROW_SUM, "proof", "every row of a table is a distribution")
        if not rows.holds:  # and nothing can be asked
            return Certificate(rows, subject="BayesNet")
        checks = [rows, *self.junction_tree().certify(evidence, assignment)]
        if X is not None:
            from lemmata.graphical.learning import certify_tables

            checks += certify_tables(self, X, sample_weight)
        return Certificate(*checks, subject="BayesNet")
