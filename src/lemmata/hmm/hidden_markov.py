"""What every hidden Markov model can do: `HiddenMarkovModel`, the base of `CategoricalHMM` and `GaussianHMM`.

A kind of model brings its law of emissions; the chain, its inference and its fit are here. `predict` gives the most probable
state of each row, which is the argmax of `predict_proba`; `decode` gives the most probable path of all states together. They
differ: the states that are most probable one by one need not even be a path that the chain can take.
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core import config
from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.threads import run, serial_blas
from lemmata.hmm import recursions
from lemmata.hmm.baum_welch import LONG, STRETCH, ChainModel, posterior
from lemmata.hmm.certificate import certificate
from lemmata.hmm.sequences import Sequences, sequences_of
from lemmata.mixture.finite import FittedByEM

TIE = 1e-12  # of the log-probability: paths that differ by less differ by rounding
ROWS = 1 << 16  # of a long sequence that the filter sees at a time, so that its length takes no memory

CONSTRAINTS = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "startprob_prior": [Interval(Real, 1, None, closed="left"), "array-like"],
    "transmat_prior": [Interval(Real, 1, None, closed="left"), "array-like"],
    "startprob_init": ["array-like", None],
    "transmat_init": ["array-like", None],
    "fixed": [tuple, list, set, frozenset],
    "n_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "acceleration": [StrOptions({"squarem"}), None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
}


class Forecast(NamedTuple):
    """What is to come after a sequence.

    Examples
    --------
    >>> from lemmata.hmm import CategoricalHMM
    >>> model = CategoricalHMM(2, random_state=0).fit([[0], [0], [1], [1], [0], [0], [1], [1]])
    >>> model.forecast([[0], [0]], 2).states.sum(axis=1)
    array([1., 1.])
    """

    states: Any  # (n_steps, n_components), probabilities
    emissions: Any  # the law of each next row: probabilities of the symbols, or (means, covariances)


class HiddenMarkovModel(FittedByEM):
    """Base of hidden Markov models.

    A kind of model has the parameters of CONSTRAINTS, and these methods.

    Methods
    -------
    _law(sequences) : Law of emissions for a fit to these sequences.
    _fitted_law() : The law that was fitted, and its parameters.
    _stored(), _checker() : Its parameters, and the law by another way, for `certificate`.
    _drawn(law, sequences, rng) : Parameters of the law to start with, and a guess of the states to count steps from, or None.
    _attributes_of_law(parameters) : Fitted attributes, by name.
    _emit(state, n, rng) : So many rows of one state.
    _emissions(states) : The law of a row with these probabilities of the states.
    """

    fixable: tuple[str, ...] = ("startprob", "transmat")

    @property
    def max_iter(self):
        """Passes over the rows at most, under the name that the driver of all iterations knows."""
        return self.n_iter

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = None  # rows have an order: this is no density of a table, nor groups of its rows
        tags.input_tags.allow_nan = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, lengths=None):
        """Fit to sequences by Baum-Welch.

        Parameters
        ----------
        X : Rows of one sequence or, with lengths, of several one after the other; a list of tables, one a sequence; or a
            Parquet path, a Dask table or an iterator of blocks. Missing entries are NaN.
        lengths : Rows of each sequence; for a stored table, the name of a column that numbers its sequences.
        """
        sequences = self._sequences(X, lengths, reset=True, y=y)
        if sequences.n_rows < self.n_components:
            raise ValueError(f"n_samples={sequences.n_rows} should be >= n_components={self.n_components}.")
        unknown = sorted(set(self.fixed) - set(self.fixable))
        if unknown:
            raise ValueError(f"fixed names {unknown[0]!r}, and what can be fixed is {', '.join(self.fixable)}.")
        k = self.n_components
        start_prior = self._prior("startprob_prior", (k,))
        transition_prior = self._prior("transmat_prior", (k, k))
        with serial_blas():
            law = self._law(sequences)
            model = ChainModel(law, self._begin, start_prior, transition_prior, self.fixed, sequences.n_rows)
        self._maximize(model, sequences, self.n_init, X, y)
        return self

    def _begin(self, sequences, rng):
        """Give the parameters to start with: what was given, and the rest from the law's first guess of the states."""
        k = self.n_components
        law = self._law(sequences)
        rest, guessed = self._drawn(law, sequences, rng)
        start, transition = np.full(k, 1.0 / k), rng.dirichlet(np.full(k, 5.0), k)  # all steps are possible, none alike
        if guessed is not None:
            steps = np.ones((k, k))  # one more of every step, so that none is ruled out
            inside = np.ones(len(guessed) - 1, dtype=bool)
            inside[np.cumsum(sequences.lengths)[:-1] - 1] = False
            np.add.at(steps, (guessed[:-1][inside], guessed[1:][inside]), 1.0)
            transition = steps / steps.sum(axis=1, keepdims=True)
        given = self._probabilities("startprob_init", (k,)), self._probabilities("transmat_init", (k, k))
        return start if given[0] is None else given[0], transition if given[1] is None else given[1], *rest

    def _probabilities(self, name, shape):
        """Check probabilities that were given."""
        if getattr(self, name) is None:
            return None
        found = np.array(getattr(self, name), dtype=float)
        if found.shape != shape or not (found >= 0).all() or not (np.abs(found.sum(axis=-1) - 1) < 1e-6).all():
            raise ValueError(f"{name} must hold probabilities in the shape {shape} that sum to 1 along the last axis.")
        return found / found.sum(axis=-1, keepdims=True)

    def _prior(self, name, shape):
        """Check the parameters of a Dirichlet prior: a number, or one for each probability."""
        found = np.asarray(getattr(self, name), dtype=float)
        if found.shape not in ((), shape) or not (found >= 1).all():
            raise ValueError(f"{name} must be a number of at least 1, or such numbers in the shape {shape}.")
        return found

    def _sequences(self, X, lengths, reset=False, y=None):
        if y is not None and lengths is None and np.ndim(y) == 1 and np.ndim(X) == 2:
            counts = np.asarray(y)
            if len(counts) != len(X) and counts.dtype.kind in "iu" and counts.sum() == len(X):
                raise ValueError("The second argument looks like the lengths of sequences: write lengths=….")
        return sequences_of(self, X, lengths, reset)

    def _checked_sequences(self, X, lengths):
        check_is_fitted(self)
        return self._sequences(X, lengths)

    def _score(self, sequences):
        """Rows, and mean log-likelihood of one."""
        law, rest = self._fitted_law()
        start, transition = self._chain()
        value = sequences.reduce(likelihood_block, law, law.prepare(rest), start, transition)
        return float(sequences.n_rows), float(value) / sequences.n_rows

    def _chain(self):
        """Give start and transitions as the kernels want them, whatever was done to them since."""
        k = self.n_components
        for name, shape in (("startprob_", (k,)), ("transmat_", (k, k))):
            if np.shape(getattr(self, name)) != shape:
                raise ValueError(f"{name} has the shape {np.shape(getattr(self, name))}, which is not that of a fit.")
        return np.ascontiguousarray(self.startprob_, dtype=float), np.ascontiguousarray(self.transmat_, dtype=float)

    def score(self, X, y=None, lengths=None):
        """Give the log-likelihood of all sequences together."""
        sequences = self._checked_sequences(X, lengths)
        n, mean = self._score(sequences)
        return n * mean

    def score_samples(self, X, lengths=None):
        """Give the log-likelihood of all sequences together, and the probabilities of the states in each row."""
        return self.score(X, lengths=lengths), self.predict_proba(X, lengths)

    def bic(self, X, lengths=None):
        """Give Bayes' information criterion on sequences: the lower the better."""
        sequences = self._checked_sequences(X, lengths)
        n, mean = self._score(sequences)
        return -2 * n * mean + self._n_parameters() * float(np.log(n))

    def aic(self, X, lengths=None):
        """Give Akaike's information criterion on sequences: the lower the better."""
        return -2 * self.score(X, lengths=lengths) + 2 * self._n_parameters()

    def predict_proba(self, X, lengths=None):
        """Give the probability of each state in each row, given all rows of its sequence: smoothing."""
        return self._by_rows(X, lengths, states_block)

    def filter(self, X, lengths=None):
        """Give the probability of each state in each row, given the rows up to it."""
        return self._by_rows(X, lengths, filter_block)

    def predict(self, X, lengths=None):
        """Give the most probable state of each row, given all rows of its sequence; ties go to the first."""
        return self.predict_proba(X, lengths).argmax(axis=1)

    def decode(self, X, lengths=None, algorithm="viterbi"):
        """Give the most probable path.

        Parameters
        ----------
        algorithm : "viterbi" for the path that is the most probable as a whole, "map" for the most probable state of each row.

        Returns
        -------
        log_prob : Log joint probability of path and rows, of all sequences together; for "map", the sum of the
            log-probabilities of the states.
        states : (rows,)
        """
        if algorithm == "map":
            proba = self.predict_proba(X, lengths)
            return float(np.log(proba.max(axis=1)).sum()), proba.argmax(axis=1)
        if algorithm != "viterbi":
            raise ValueError(f"algorithm must be 'viterbi' or 'map', got {algorithm!r}.")
        sequences = self._checked_sequences(X, lengths)
        law, rest = self._fitted_law()
        values, path = sequences.map(path_block, law, law.prepare(rest), *self._chain())
        return float(values.sum()), path

    def decode_all(self, X, most=1000):
        """Give the log joint probability of the best paths of one sequence, and all of them, at most so many: (paths, rows)."""
        sequences = self._checked_sequences(X, None)
        law, rest = self._fitted_law()
        with np.errstate(divide="ignore"):
            start, transition = (np.log(part) for part in self._chain())
        logs = law.log_densities(sequences.X, law.prepare(rest))
        values, path = np.empty(logs.shape), np.empty(len(logs), np.int64)
        best = recursions.viterbi(logs, start, transition, values, path)

        def ties(scores):
            return np.flatnonzero(scores >= scores.max() - TIE * max(1.0, abs(best)))

        found = [[last] for last in ties(values[-1])]
        for t in range(len(logs) - 2, -1, -1):
            found = [[before, *path] for path in found for before in ties(values[t] + transition[:, path[0]])][:most]
        return float(best), np.array(found)

    def _by_rows(self, X, lengths, block):
        sequences = self._checked_sequences(X, lengths)
        law, rest = self._fitted_law()
        with serial_blas():
            return as_output(sequences.map(block, law, law.prepare(rest), *self._chain()), sequences.dtype)

    def sample(self, n_samples=1, random_state=None, currstate=None):
        """Draw a sequence; return its rows and its states. It begins in the state `currstate`, if given."""
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1, got {n_samples}.")
        rng = generator(self.random_state if random_state is None else random_state)
        start, transition = self._chain()
        if currstate is not None:
            start = np.eye(self.n_components)[currstate]
        path = np.empty(n_samples, np.int64)
        recursions.walk(start, transition, rng.random(n_samples), path)
        rows = None
        for state in range(self.n_components):
            at = np.flatnonzero(path == state)
            drawn = self._emit(state, len(at), rng)
            rows = np.empty((n_samples, drawn.shape[1]), dtype=drawn.dtype) if rows is None else rows
            rows[at] = drawn
        return rows, path

    def draw_states(self, X, n_draws=1, lengths=None, random_state=None):
        """Draw paths from their law given all rows: (n_draws, rows)."""
        sequences = self._checked_sequences(X, lengths)
        if not isinstance(sequences, Sequences):
            raise ValueError("Paths are drawn of sequences in memory: give arrays.")
        rng = generator(self.random_state if random_state is None else random_state)
        _, transition = self._chain()
        alpha, turned = self.filter(sequences.X, sequences.lengths).astype(float), np.ascontiguousarray(transition.T)
        paths = np.empty((n_draws, sequences.n_rows), np.int64)
        for path in paths:
            for first, last in zip(sequences.starts[:-1], sequences.starts[1:], strict=True):
                recursions.draw_path(alpha[first:last], turned, rng.random(last - first), path[first:last])
        return paths

    def forecast(self, X, n_steps):
        """Give the law of the next states after one sequence, and of the rows that they emit."""
        if n_steps < 1:
            raise ValueError(f"n_steps must be at least 1, got {n_steps}.")
        _, transition = self._chain()
        now, states = np.asarray(self.filter(X)[-1], dtype=float), np.empty((n_steps, self.n_components))
        for t in range(n_steps):
            states[t] = now = now @ transition
        return Forecast(states, self._emissions(states))

    def certify(self, X, y=None, lengths=None):
        """Prove inference and decoding exact by logarithms and potentials, and the fit stationary."""
        sequences = self._checked_sequences(X, lengths)
        with serial_blas():
            return certificate(self, sequences)

    def _inference(self):
        """Give what the model makes of a block, for its certificate: probabilities of the states, and the best paths."""
        law, parameters = self._fitted_law()
        return partial(inference_block, law, law.prepare(parameters), *self._chain())

    def _identities(self, sequences):
        """Give checks of what a fit learned beside the probabilities."""
        return []

    def _n_parameters(self):
        """Count what was free: probabilities that were given as 0, or fixed, are not."""
        free = self._n_parameters_of_law()
        for name, stored, given in (
            ("startprob", np.atleast_2d(self.startprob_), self.startprob_init),
            ("transmat", self.transmat_, self.transmat_init),
        ):
            if name not in self.fixed:
                allowed = np.ones(stored.shape) if given is None else np.atleast_2d(given) > 0
                free += int(allowed.sum()) - len(stored)
        return free

    def _attributes(self, parameters):
        start, transition, *rest = parameters
        return {"startprob_": start, "transmat_": transition} | self._attributes_of_law(rest)


def likelihood_block(X, lengths, law, prepared, start, transition):
    """Log-likelihood of the sequences of a block, a stretch of rows at a time."""
    return sum(value for value, _ in _filtered(X, lengths, law, prepared, start, transition))


def filter_block(X, lengths, law, prepared, start, transition):
    """P(state|rows up to it) of all rows of a block."""
    return np.concatenate([alpha for _, alpha in _filtered(X, lengths, law, prepared, start, transition)])


def _filtered(X, lengths, law, prepared, start, transition):
    """Give the log-likelihood and the filter of one stretch of rows after the other."""
    at = 0
    for n in lengths:
        before = start
        for first in range(at, at + n, ROWS):
            rows = X[first : min(first + ROWS, at + n)]
            logs, tops = law.log_densities(rows, prepared), np.empty(len(rows))
            recursions.scale_rows(logs, tops)
            alpha = np.empty(logs.shape)
            value = recursions.forward(logs, tops, before, transition, alpha)
            before = alpha[-1] @ transition
            yield float(value), alpha
        at += n


def states_block(X, lengths, law, prepared, start, transition):
    """P(state|all rows of its sequence) of all rows of a block."""
    logs = law.log_densities(X, prepared)
    return posterior(logs, lengths, start, transition, np.ascontiguousarray(transition.T)).states


def inference_block(law, prepared, start, transition, X, lengths):
    """Probabilities of the states of a block, and its best paths."""
    options = law, prepared, start, transition
    return states_block(X, lengths, *options), path_block(X, lengths, *options)[1]


def path_block(X, lengths, law, prepared, start, transition):
    """Log joint probability of the best path of each sequence, in its first row, and the path."""
    with np.errstate(divide="ignore"):
        start, transition = np.log(start), np.log(transition)
    values, path, at = np.zeros(len(X)), np.empty(len(X), np.int64), 0
    for n in lengths:
        rows = slice(at, at + n)
        best_path = best_path_of_long if n >= LONG else best_path_of_short
        values[at] = best_path(law, prepared, X[rows], start, transition, path[rows])
        at += n
    return values, path


def best_path_of_short(law, prepared, X, start, transition, path):
    """Write the most probable path of a sequence; return its log joint probability."""
    logs = law.log_densities(X, prepared)
    return recursions.viterbi(logs, start, transition, np.empty(logs.shape), path)


def best_path_of_long(law, prepared, X, start, transition, path):
    """Do the same for a long sequence, from both ends at once, and in the memory of a stretch of its rows.

    Each half keeps its values where a stretch begins, and computes them again on the way back from the middle.
    """
    n, k = len(X), len(start)
    middle, turned = n // 2, np.ascontiguousarray(transition.T)
    left = [slice(a, min(a + STRETCH, middle)) for a in range(0, middle, STRETCH)]
    right = [slice(a, min(a + STRETCH, n)) for a in range(middle, n, STRETCH)]
    carried, ahead = [start], [np.zeros(k)]  # before each stretch on the left, after each on the right, last first
    carry = np.empty(k)

    def from_left():
        for rows in left:
            values = forward_values(rows, carried[-1])
            carried.append(np.empty(k))
            recursions.best_before(values[-1], transition, carried[-1])

    def from_right():
        for rows in reversed(right):
            values = backward_values(rows, ahead[-1])
            ahead.append(np.empty(k))
            recursions.best_before(values[0], turned, ahead[-1])

    def forward_values(rows, before):
        logs = law.log_densities(X[rows], prepared)
        values = np.empty(logs.shape)
        recursions.best_values(logs, before, transition, values)
        return values

    def backward_values(rows, after):
        logs = law.log_densities(X[rows], prepared)
        values = np.empty(logs.shape)
        recursions.best_futures(logs, turned, after, values)
        return values

    def back_to_left():
        for i in range(len(left) - 1, -1, -1):
            values, rows = forward_values(left[i], carried[i]), left[i]
            if i < len(left) - 1:  # the state before a stretch, by the state that it begins with
                path[rows.stop - 1] = recursions.first_largest(values[-1] + turned[path[rows.stop]])
            recursions.trace_back(values, turned, path[rows])

    def on_to_right(state):
        for i, rows in enumerate(right):
            values = backward_values(rows, ahead[len(right) - 1 - i])
            recursions.trace_ahead(values, transition, state, path[rows])
            state = path[rows.stop - 1]

    threads = config.n_threads()
    run(lambda end: from_left() if end == 0 else from_right(), range(2), threads)
    last = forward_values(left[-1], carried[-2])[-1]
    carry[:] = last + ahead[-1]
    path[middle - 1] = state = recursions.first_largest(carry)
    run(lambda end: back_to_left() if end == 0 else on_to_right(state), range(2), threads)
    return float(carry[state])
