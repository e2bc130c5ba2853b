"""`MarkovChain`: what comes next depends on the last few symbols only.

    p(s₁ … s_T) = p(s₁ … s_m) Π_t P(s_t | s_{t−m} … s_{t−1})

A chain of order m is one of order 1 on m-tuples: from (a, b) to (b, c). `counting` has the fit, `classes`, `stationary`,
`absorption` and `balance` what can be said about the chain without data.
"""

from importlib import import_module
from numbers import Integral, Real

import numpy as np
from scipy.sparse import csr_array, diags_array, eye_array, issparse
from sklearn.base import _fit_context
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, Interval

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.estimator import Estimator
from lemmata.core.random import generator
from lemmata.markov import absorption, balance
from lemmata.markov.classes import classes_of, components_of
from lemmata.markov.counting import MOST, count, encode, frequencies, numbers_of, warn_of_ends
from lemmata.markov.model import Ergodicity, Model, as_law, given, same_table
from lemmata.markov.stationary import ELIMINATED, law_checks, stationary_laws
from lemmata.markov.walk import log_likelihoods, walk


class MarkovChain(Estimator):
    """Describe a Markov chain that is given, or fit one to sequences by counting.

    Parameters
    ----------
    transition : Chances of what comes next, given as an array with `order` + 1 axes (rows sum to one), or sparse for order 1.
        Then there is nothing to fit. None: `fit` counts.
    order : Number of symbols on which the next one depends.
    alpha : Imaginary observations of each symbol in each context (0: maximum likelihood).
    states : The symbols, integers or strings, in the order of the rows. Default: 0, 1, … of a given chain, and those of the
        sequences, sorted, of a fitted one.
    initial : Law of the first `order` symbols of a given chain. Default: uniform.

    Attributes
    ----------
    states_ : (n_states,), the symbols.
    transition_ : (n_states,) * (order + 1), chance of a symbol (last axis) after others; CSR for more than 2000 symbols.
    initial_ : (n_states,) * order, law of the first symbols of a sequence.
    counts_ : How often each symbol came after others, of the shape of transition_.

    Examples
    --------
    >>> chain = MarkovChain().fit([["rain", "rain", "sun", "sun", "sun", "rain"], ["sun", "rain", "rain"]])
    >>> chain.transition_
    array([[0.66666667, 0.33333333],
           [0.5       , 0.5       ]])
    >>> chain.stationary()
    array([[0.6, 0.4]])
    >>> MarkovChain([[0.6, 0.4], [0.3, 0.7]]).stationary() * 7
    array([[3., 4.]])
    """

    generative = True
    _parameter_constraints = {
        "transition": ["array-like", "sparse matrix", HasMethods(["indptr"]), None],
        "order": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "states": ["array-like", None],
        "initial": ["array-like", None],
    }

    def __init__(self, transition=None, order=1, *, alpha=0.0, states=None, initial=None):
        self.transition = transition
        self.order = order
        self.alpha = alpha
        self.states = states
        self.initial = initial

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.requires_fit = self.transition is None
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X=None, y=None):
        """Count in a sequence of symbols, or in a list of sequences; None and NaN are symbols that were not seen.

        With a given transition there is nothing to learn: it is checked, and X is not looked at.
        """
        if self.transition is not None:
            P = given(self.transition, self.order)
            self.states_, self.transition_ = self._named(P.shape[0]), P
            self.initial_ = self._given_initial(P.shape[0])
            return self
        codes, states = encode(X, None if self.states is None else self._named(len(self.states)))
        counts, begins = count(codes, len(states), self.order)
        self.states_, self.counts_ = states, counts
        self.transition_ = frequencies(counts, self.alpha)
        self.initial_ = frequencies(begins.ravel(), self.alpha).reshape(begins.shape)
        if self.alpha == 0:
            warn_of_ends(counts, states, self.order)
        return self

    def _named(self, n):
        """Give the names of n states, all different."""
        if self.states is None:
            return np.arange(n)
        names = np.asarray(self.states)
        if names.shape != (n,) or names.dtype.kind not in "iuU" or len(np.unique(names)) < n:
            raise ValueError(f"states must be {n} different integers or strings.")
        return names

    def _given_initial(self, n):
        shape = (n,) * self.order
        if self.initial is None:
            return np.full(shape, 1.0 / n**self.order)
        return as_law(self.initial, shape, "initial")

    def _model(self):
        """Give the fitted chain, or the given one."""
        if hasattr(self, "transition_"):
            states, P, initial = self.states_, self.transition_, self.initial_
        elif self.transition is not None:
            P = given(self.transition, self.order)
            states, initial = self._named(P.shape[0]), self._given_initial(P.shape[0])
        else:
            raise NotFittedError("This MarkovChain has no transition yet: give one, or fit it to sequences.")
        rows = csr_array(P if issparse(P) else P.reshape(-1, P.shape[-1]))
        if not rows.data.all():
            rows = rows.copy()
            rows.eliminate_zeros()
        return Model(states, rows, np.ravel(initial), self.order)

    def embedded(self):
        """Give the same chain as one of order 1, whose states are numbers of tuples: (a, b) is a · n_states + b.

        Examples
        --------
        >>> second = MarkovChain(order=2, alpha=1.0).fit([0, 1, 1, 0, 1, 0, 0])
        >>> second.embedded().transition.toarray().round(2)
        array([[0.5 , 0.5 , 0.  , 0.  ],
               [0.  , 0.  , 0.5 , 0.5 ],
               [0.5 , 0.5 , 0.  , 0.  ],
               [0.  , 0.  , 0.67, 0.33]])
        """
        model = self._model()
        return MarkovChain(model.square, initial=model.initial)

    def lazy(self):
        """Give the chain (of contexts) that stays where it is every other time: aperiodic, with the same stationary laws."""
        model = self._model()
        square = model.square
        states = model.states if model.order == 1 else None
        return MarkovChain(csr_array((eye_array(square.shape[0]) + square) / 2), states=states, initial=model.initial)

    def log_likelihood(self, X):
        """Sum the logarithms of the chances of sequences; over symbols that were not seen, the chances are summed.

        Examples
        --------
        >>> chain = MarkovChain([[0.6, 0.4], [0.3, 0.7]], initial=[1.0, 0.0])
        >>> float(np.exp(chain.log_likelihood([0, 1, 1]))), float(np.exp(chain.log_likelihood([0, None, 1])))
        (0.28, 0.52)
        """
        model = self._model()
        codes, _ = encode(X, model.states)
        return float(log_likelihoods(model, codes).sum())

    def score(self, X, y=None):
        """Return the log-likelihood of sequences per symbol that was seen."""
        model = self._model()
        codes, _ = encode(X, model.states)
        return float(log_likelihoods(model, codes).sum() / max((codes.values >= 0).sum(), 1))

    def _free(self):
        contexts, n = self._model().rows.shape
        return contexts * (n - 1) + contexts - 1

    def aic(self, X):
        """Akaike's criterion on sequences: the lower, the better the order."""
        return 2 * self._free() - 2 * self.log_likelihood(X)

    def bic(self, X):
        """Bayes' criterion on sequences: the lower, the better the order."""
        seen = int((encode(X, self._model().states)[0].values >= 0).sum())
        return float(np.log(max(seen, 1)) * self._free() - 2 * self.log_likelihood(X))

    def sample(self, length=1, random_state=None):
        """Draw a sequence of so many symbols.

        Examples
        --------
        >>> MarkovChain([[0.0, 1.0], [1.0, 0.0]], states=["tick", "tock"], initial=[1, 0]).sample(3)
        array(['tick', 'tock', 'tick'], dtype='<U4')
        """
        model = self._model()
        return model.states[walk(model, length, generator(random_state))]

    def propagate(self, w, n_steps=1):
        """Move a law (or several, as rows) so many steps on: wPᵗ; of order m, a law of the last m symbols, with m axes.

        Examples
        --------
        >>> MarkovChain([[0.0, 1.0], [1.0, 0.0]]).propagate([1.0, 0.0], 101)
        array([0., 1.])
        """
        model = self._model()
        P, shape = model.square, (len(model.states),) * self.order
        w = np.asarray(w, dtype=float)
        if w.shape[-self.order :] != shape:
            raise ValueError(f"A law of this chain has the shape {shape}, and w has {w.shape}.")
        if n_steps < 0:
            raise ValueError(f"n_steps must be at least 0, got {n_steps}.")
        moved = w.reshape(-1, P.shape[0])
        if n_steps > P.shape[0] and P.shape[0] <= ELIMINATED:
            moved = moved @ np.linalg.matrix_power(P.toarray(), n_steps)
        else:
            back = P.T.tocsr()
            for _ in range(n_steps):
                moved = (back @ moved.T).T
        return np.ascontiguousarray(moved).reshape(w.shape)

    def classes(self):
        """Find the communicating classes (of contexts): the class of each state, which are recurrent, and their periods.

        Examples
        --------
        >>> found = MarkovChain([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]).classes()
        >>> found.label.tolist(), found.recurrent.tolist(), found.period.tolist()
        ([0, 1, 1], [False, True], [1, 2])
        """
        return classes_of(self._model().square)

    @property
    def is_irreducible(self):
        """Whether every state can be reached from every other."""
        return len(components_of(self._model().square).recurrent) == 1

    @property
    def is_aperiodic(self):
        """Whether no recurrent class has a period."""
        found = self.classes()
        return bool((found.period[found.recurrent] == 1).all())

    @property
    def is_reversible(self):
        """Whether the recurrent classes have detailed balance, by Kolmogorov's criterion on cycles."""
        P = self._model().square
        return balance.is_reversible(P, components_of(P))

    def ergodicity(self):
        """Tell whether the chain converges to one law from everywhere, with a reason.

        Examples
        --------
        >>> MarkovChain(np.eye(2)).ergodicity().reason
        'there are 2 recurrent classes: where the chain ends depends on where it begins'
        """
        found = self.classes()
        closed, period = int(found.recurrent.sum()), int(found.period[found.recurrent].max())
        if closed > 1:
            return Ergodicity(False, f"there are {closed} recurrent classes: where the chain ends depends on where it begins")
        if period > 1:
            text = (
                f"the chain returns to its states only at multiples of {period} steps: it has one stationary law, and does not"
            )
            return Ergodicity(False, text + " converge to it")
        if len(found.recurrent) > 1:
            passing = int((~found.recurrent[found.label]).sum())
            text = (
                f"from {passing} transient states the chain goes to the one recurrent class, which is aperiodic: it converges"
            )
            return Ergodicity(False, text + ", but not every state is visited again")
        return Ergodicity(True, "the chain is irreducible and aperiodic")

    def stationary(self):
        """Find the stationary laws: one row for each recurrent class, of shape (classes, n_states, …).

        All other stationary laws are mixtures of these.

        Examples
        --------
        >>> MarkovChain([[1.0, 0.0, 0.0], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]]).stationary()
        array([[1., 0., 0.],
               [0., 0., 1.]])
        """
        model = self._model()
        P = model.square
        laws = stationary_laws(P, components_of(P))
        return laws if model.order == 1 else laws.reshape(-1, *(len(model.states),) * model.order)

    def limit(self, w):
        """Find where the average over time of the law goes, from a start w.

        It is the sum over recurrent classes of the chance to end there times the law of the class. If the recurrent classes
        are aperiodic, it is the limit of the law itself.

        Examples
        --------
        >>> MarkovChain([[1.0, 0.0, 0.0], [0.2, 0.6, 0.2], [0.0, 0.0, 1.0]]).limit([0.0, 1.0, 0.0])
        array([0.5, 0. , 0.5])
        """
        model = self._model()
        P, shape = model.square, (len(model.states),) * self.order
        found = components_of(P)
        ends = absorption.settle(P, found).probabilities
        return np.asarray((as_law(w, shape, "w").ravel() @ ends) @ stationary_laws(P, found)).reshape(shape)

    def settling(self):
        """Find the chances of ending in each recurrent class from each state, and the expected steps until then."""
        model = self._model()
        found = absorption.settle(model.square, components_of(model.square))
        return found._replace(ends=[model.named(members) for members in found.ends])

    def absorption(self):
        """Find the chances of ending in each absorbing state, from where this is certain, and the expected steps.

        Examples
        --------
        >>> found = MarkovChain([[1, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5], [0, 0, 0, 1]]).absorption()
        >>> found.ends, found.probabilities[1:3].round(3).tolist(), found.steps.tolist()
        ([0, 3], [[0.667, 0.333], [0.333, 0.667]], [0.0, 2.0, 2.0, 0.0])
        """
        model = self._model()
        P = model.square
        found = components_of(P)
        alone = (np.bincount(found.label) == 1) & found.recurrent
        if not alone.any():
            raise ValueError(
                "The chain has no absorbing state; settling() tells in which recurrent class it ends, hitting(states) when it"
                " gets to some states."
            )
        ends = absorption.absorb(P, found, alone[found.label])
        return ends._replace(ends=model.named(ends.ends))

    def hitting(self, states):
        """Find the chances of ever being in one of some states, and the expected steps until then.

        Examples
        --------
        >>> found = MarkovChain([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]]).hitting([2])
        >>> found.steps
        array([8., 6., 0.])
        """
        model = self._model()
        if model.order > 1:
            raise ValueError("hitting is for chains of order 1; embedded() makes one of any chain.")
        chosen = numbers_of(np.atleast_1d(np.asarray(states)), model.states)
        stays = np.zeros(model.rows.shape[0], dtype=bool)
        stays[chosen] = True
        P = csr_array(diags_array((~stays).astype(float)) @ model.rows + diags_array(stays.astype(float)))
        P.eliminate_zeros()
        found = absorption.absorb(P, components_of(P), stays)
        order = np.argsort(np.argsort(chosen))
        return found._replace(ends=model.named(chosen), probabilities=found.probabilities[:, order])

    def detailed_balance(self, w=None):
        """Compare the flows w_i P_ij and w_j P_ji of a law w, by default of the even mixture of the stationary ones.

        Examples
        --------
        >>> chain = MarkovChain([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
        >>> chain.detailed_balance().violation, chain.is_reversible
        (0.8, False)
        """
        model = self._model()
        P = model.square
        laws = stationary_laws(P, components_of(P)) if w is None else None
        w = np.asarray(laws.mean(axis=0)) if w is None else as_law(w, (len(model.states),) * self.order, "w").ravel()
        found = balance.detailed_balance(P, w)
        return found._replace(pair=tuple(model.named(found.pair)))

    def spectrum(self):
        """Give the eigenvalues by falling modulus, real if the chain is reversible; the second tells how quickly it forgets."""
        P = self._model().square
        n = P.shape[0]
        if n > ELIMINATED:
            raise ValueError(f"A spectrum is worked out for up to {ELIMINATED:,} states, and the chain has {n:,}.")
        found = components_of(P)
        if len(found.recurrent) == 1 and balance.is_reversible(P, found):
            root = np.sqrt(stationary_laws(P, found)[0])
            S = root[:, None] * P.toarray() / root
            values = np.linalg.eigvalsh((S + S.T) / 2)
        else:
            values = np.linalg.eigvals(P.toarray())
        return values[np.argsort(-np.abs(values), kind="stable")]

    def plot(self, X=None, y=None, *, ax=None):
        """Draw the states and the moves between them; X is not looked at."""
        self._model()
        return import_module("lemmata.plot").TransitionGraphDisplay.from_estimator(self, ax=ax)

    def certify(self, X=None, y=None):
        """Count again, and check the stationary laws and the ways out; of a given chain, without sequences."""
        model = self._model()
        fitted = [] if self.transition is not None or not hasattr(self, "counts_") else self._count_again(X)
        sums = np.abs(model.rows.sum(axis=1) - 1).max() - min(model.rows.data.min(initial=0.0), 0.0)
        rows = Check("rows", float(sums), 1e-9, "proof", "chances are at least 0, and those of each row add up to one")
        if not rows.holds:
            return Certificate(*fitted, rows, subject=type(self).__name__)
        P = model.square
        found = components_of(P)
        checks = law_checks(P, found, stationary_laws(P, found))
        passing = int((~found.recurrent[found.label]).sum())
        if 0 < passing <= ELIMINATED and P.shape[0] * found.recurrent.sum() <= MOST:
            checks += absorption.absorption_checks(P, found, absorption.settle(P, found))
        first = model.initial
        start = float(abs(first.sum() - 1) - min(first.min(), 0.0))
        mass = Check("initial", start, SAME_LIMIT, "proof", "the law of the first symbols has mass one")
        return Certificate(*fitted, *([] if fitted else [mass]), rows, *checks, subject=type(self).__name__)

    def _count_again(self, X):
        """Compare with sequences: counts, chances, first symbols."""
        if X is None:
            raise ValueError("To certify a fitted chain takes the sequences: certify(X).")
        claim = "how often each symbol came after others, counted again"
        try:
            codes, states = encode(X, self.states_)
        except ValueError:  # a symbol that is no state
            return [Check("counts", np.inf, SAME_LIMIT, "proof", claim)]
        counts, begins = count(codes, len(states), self.order)
        chances, first = frequencies(counts, self.alpha), frequencies(begins.ravel(), self.alpha).reshape(begins.shape)
        told = "relative frequencies: no other rows have a larger likelihood" + (
            " with these pseudo-counts" if self.alpha else ""
        )
        return [
            same_table(self.counts_, counts, "counts", claim),
            same_table(self.transition_, chances, "transition", told),
            same(self.initial_, first, "initial", "relative frequencies of the first symbols"),
        ]
