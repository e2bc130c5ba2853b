"""`CategoricalHMM`: a hidden Markov model whose states emit symbols.

`categorical_emissions` states the law of a row in a state, `baum_welch` the fit, `recursions` inference and `certificate` the
checks.
"""

from numbers import Integral, Real

import numpy as np
from sklearn.utils._param_validation import Interval

from lemmata.core.certificate import same
from lemmata.hmm.categorical_emissions import CategoricalChecker, CategoricalLaw
from lemmata.hmm.hidden_markov import CONSTRAINTS, HiddenMarkovModel
from lemmata.mixture.discrete import normalized
from lemmata.mixture.discrete_kernels import WHOLE, Census, census_block

SPREAD = 5.0  # of the Dirichlet draws around the frequencies of the table with which states begin: different, none extreme


class CategoricalHMM(HiddenMarkovModel):
    """Fit a hidden Markov model with symbols as emissions to sequences.

    Parameters
    ----------
    n_components : Number of states.
    n_features : Number of symbols 0, 1, …, of all columns or of each; None for those that are seen.
    startprob_prior, transmat_prior, emissionprob_prior : Parameters of Dirichlet priors, at least 1: a number or, for the first
        two, one for each probability. 1 is none; a larger diagonal of transmat_prior makes states sticky.
    startprob_init, transmat_init, emissionprob_init : Given starts. A probability of 0 stays 0. What is not given is drawn, the
        emissions around the frequencies of the table.
    fixed : What stays as it starts, of "startprob", "transmat" and "emissionprob".
    n_iter : Passes over the rows at most.
    tol : Stop when a plain step changes the mean log-likelihood of a row (with its share of the log-prior) by no more.
    n_init : Runs from different starts, of which the best is kept.
    acceleration : "squarem" leaps ahead along the last two steps, and steps back where the likelihood would fall; None gives
        the plain iterates of EM, which are hmmlearn's.
    random_state : Seed. The same seed gives the same bits for any number of threads.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    startprob_ : (n_components,), probabilities of the first state.
    transmat_ : (n_components, n_components), of the next state given this one.
    emissionprob_ : (n_components, n_symbols), of the symbols given the state; for tables of several columns, a list with one
        such array each.
    n_symbols_ : (n_columns,), number of symbols of each column.
    lower_bound_ : Mean log-likelihood of a row under the fitted parameters.
    restarts_ : (n_init,), what each run reached.
    n_iter_ : Passes of the best run.
    converged_ : Whether it met tol.
    trace_ : Mean log-likelihood of a row, with its share of the log-prior, at each pass of the best run.

    Examples
    --------
    A fair coin and one that shows heads only:

    >>> tosses = [[1], [0], [0], [1], [1], [1], [1], [1], [1], [1], [0], [1], [0], [0]]
    >>> start = {"transmat_init": [[0.8, 0.2], [0.2, 0.8]], "emissionprob_init": [[0.5, 0.5], [0.0, 1.0]]}
    >>> model = CategoricalHMM(2, **start, fixed=("transmat", "emissionprob")).fit(tosses)
    >>> model.decode(tosses)[1]
    array([0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0])
    >>> model.certify(tosses).holds
    True
    """

    fixable = ("startprob", "transmat", "emissionprob")
    _parameter_constraints = CONSTRAINTS | {
        "n_features": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "emissionprob_prior": [Interval(Real, 1, None, closed="left")],
        "emissionprob_init": ["array-like", None],
    }

    def __init__(
        self,
        n_components=1,
        *,
        n_features=None,
        startprob_prior=1.0,
        transmat_prior=1.0,
        emissionprob_prior=1.0,
        startprob_init=None,
        transmat_init=None,
        emissionprob_init=None,
        fixed=(),
        n_iter=10_000,
        tol=1e-10,
        n_init=1,
        acceleration="squarem",
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.n_components = n_components
        self.n_features = n_features
        self.startprob_prior = startprob_prior
        self.transmat_prior = transmat_prior
        self.emissionprob_prior = emissionprob_prior
        self.startprob_init = startprob_init
        self.transmat_init = transmat_init
        self.emissionprob_init = emissionprob_init
        self.fixed = fixed
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.acceleration = acceleration
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def __sklearn_tags__(self):
        """Symbols."""
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.positive_only = True
        return tags

    def _sequences(self, X, lengths, reset=False, y=None):
        """Read sequences, and refuse what is no symbol or none that is known."""
        sequences = super()._sequences(X, lengths, reset, y)
        census = Census(*sequences.rows().reduce(census_block))
        high = np.nan_to_num(census.spread.high, nan=-1.0)
        if np.fmin.reduce(census.spread.low) < 0:
            raise ValueError("Negative values in data passed to CategoricalHMM: symbols are whole numbers from 0.")
        if census.fractions or high.max() >= WHOLE:
            raise ValueError(f"CategoricalHMM takes symbols, whole numbers from 0, but {census.fractions} entries are not.")
        if reset:
            self.n_symbols_ = self._sizes(high.astype(np.int64) + 1)
        beyond = np.flatnonzero(high >= self.n_symbols_)
        if len(beyond):
            j = beyond[0]
            raise ValueError(
                f"X holds the symbol {high[j]:g} in column {j}, where there are {self.n_symbols_[j]}, from 0: raise n_features."
            )
        return sequences

    def _sizes(self, seen):
        if self.n_features is None:
            return np.maximum(seen, 1)
        sizes = np.asarray(self.n_features)
        if sizes.shape not in ((), seen.shape) or sizes.dtype.kind not in "iu" or not (sizes >= 1).all():
            raise ValueError(f"n_features must be a whole number of at least 1, or {len(seen)} of them, one for each column.")
        return np.broadcast_to(sizes, seen.shape).astype(np.int64)

    def _law(self, sequences):
        return CategoricalLaw(self.n_symbols_, self.n_components, float(self.emissionprob_prior))

    def _drawn(self, law, sequences, rng):
        """Take what was given, or draw chances around the frequencies of the table."""
        given = self._given_chances()
        if given is not None:
            return (given,), None
        counts = sequences.rows().reduce(_counts_block, law)
        uniform = np.repeat(1.0 / self.n_symbols_, self.n_symbols_)[None]
        average = normalized(counts + uniform, law.codes.starts, uniform)[0]
        draws = rng.standard_gamma(
            SPREAD * np.repeat(self.n_symbols_, self.n_symbols_) * average, (self.n_components, len(average))
        )
        return (normalized(draws + 1e-3 * average, law.codes.starts, average),), None

    def _given_chances(self):
        if self.emissionprob_init is None:
            return None
        columns = [self.emissionprob_init] if len(self.n_symbols_) == 1 else self.emissionprob_init
        columns = [np.array(column, dtype=float) for column in columns]
        shapes = [(self.n_components, int(size)) for size in self.n_symbols_]
        found = [column.shape for column in columns]
        if found != shapes or not all((c >= 0).all() and (np.abs(c.sum(axis=1) - 1) < 1e-6).all() for c in columns):
            raise ValueError(
                f"emissionprob_init must hold probabilities in the shape {shapes[0] if len(shapes) == 1 else shapes}."
            )
        return np.hstack([column / column.sum(axis=1, keepdims=True) for column in columns])

    def _fitted_law(self):
        stored, expected = self._stored(), (self.n_components, int(np.sum(self.n_symbols_)))
        if stored[0].shape != expected:
            raise ValueError(f"emissionprob_ has the shape {stored[0].shape}, which is not that of a fit.")
        return CategoricalLaw(self.n_symbols_, self.n_components), stored

    def _stored(self):
        columns = [self.emissionprob_] if len(self.n_symbols_) == 1 else self.emissionprob_
        return (np.hstack([np.asarray(column, dtype=float) for column in columns]),)

    def _checker(self):
        chances = self._given_chances()
        given = {"emissionprob": chances} if "emissionprob" in self.fixed and chances is not None else {}
        allowed = np.ones(self._stored()[0].shape, dtype=bool) if chances is None else chances > 0
        return CategoricalChecker(self.n_symbols_, float(self.emissionprob_prior), given, allowed)

    def _identities(self, sequences):
        high = np.nan_to_num(Census(*sequences.rows().reduce(census_block)).spread.high, nan=-1.0)
        expected = self._sizes(high.astype(np.int64) + 1)
        return [same(self.n_symbols_, expected, "n_symbols", "symbols are those given, or seen")]

    def _attributes_of_law(self, parameters):
        columns = np.split(parameters[0], np.cumsum(self.n_symbols_)[:-1], axis=1)
        return {"emissionprob_": columns[0].copy() if len(columns) == 1 else [column.copy() for column in columns]}

    def _n_parameters_of_law(self):
        if "emissionprob" in self.fixed:
            return 0
        return int(self._checker().allowed.sum()) - self.n_components * len(self.n_symbols_)

    def _emit(self, state, n, rng):
        """Draw symbols by inverting the sums of their chances."""
        columns = []
        for chances in np.split(self._stored()[0][state], np.cumsum(self.n_symbols_)[:-1]):
            reach = np.cumsum(chances)
            columns.append(np.searchsorted(reach, rng.random(n) * reach[-1], side="right"))
        return np.column_stack(columns)

    def _emissions(self, states):
        """Give the probabilities of the symbols, for each row of probabilities of the states."""
        columns = np.split(states @ self._stored()[0], np.cumsum(self.n_symbols_)[:-1], axis=1)
        return columns[0] if len(columns) == 1 else columns


def _counts_block(X, weight, law):
    """Counts of the symbols of a block (1, symbols)."""
    return law.codes.sums(X, np.ones((len(X), 1)))
