"""What `BernoulliMixture`, `BinomialMixture` and `CategoricalMixture` share as estimators.

`discrete` states the model and its EM steps, `discrete_kernels` how rows are read, `discrete_certificate` the checks.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, equi, same, simplex
from lemmata.core.data import is_sparse
from lemmata.core.estimator import NO_WEIGHTS
from lemmata.core.threads import serial_blas
from lemmata.mixture.discrete import EXCESS, DiscreteModel
from lemmata.mixture.discrete_certificate import Map, disagreement_block, fault, parting
from lemmata.mixture.discrete_kernels import WHOLE, Census, census_block, posterior_block
from lemmata.mixture.finite import FiniteMixture

SPLIT = "components that coincide do not drift apart when nudged"
STILL = 1e-7  # weights that move by no more stand still: where components coincide, nothing depends on them
PARTED = 1.5  # times the nudge: more is drifting apart

CONSTRAINTS = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "alpha": [Interval(Real, 0, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "n_init": [Interval(Integral, 1, None, closed="left")],
    "weights_init": ["array-like", None],
    "probabilities_init": ["array-like", None],
    "acceleration": [StrOptions({"squarem"}), None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "checkpoint": [str, PathLike, None],
}


class DiscreteMixture(FiniteMixture):
    """Base of mixtures over discrete tables.

    A kind of mixture has the parameters of a `FiniteMixture`, alpha, weights_init and probabilities_init, and these methods.

    Methods
    -------
    _refuse(census, sparse) : Raise where the entries are none that a model of this kind can read.
    _learn(census) : Set what a fit learns of the table before its probabilities; nothing by default.
    _known(census) : Raise where the entries are none that this fit knows; by default it knows all.
    _identities(blocks) : Checks of what it learned; none by default.
    _outcomes() : How rows are read.
    _probabilities(value) : Given probabilities as one array, as `_outcomes` wants them stored; by default chances of heads.
    _stored(), _shaped(stored) : The fitted probabilities as one array, and the way back; by default they are one.
    """

    fit_weights = True
    _posterior_block = staticmethod(posterior_block)

    def __sklearn_tags__(self):
        """Missing entries are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        if blocks.n_rows < self.n_components:
            raise ValueError(f"n_samples={blocks.n_rows} should be >= n_components={self.n_components}.")
        self._learn(self._census(blocks))
        given = self._given_weights(), self._given_chances()
        with serial_blas():
            model = DiscreteModel(self._outcomes(), self.n_components, self.alpha, self.fit_weights, given, blocks)
        self._maximize(model, blocks, self.n_init if given[1] is None else 1, X, y)
        return self

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the fit is stationary: an EM step, computed by another way, leaves every probability where it is."""
        blocks = self._checked(X, sample_weight)
        with serial_blas():
            return Certificate(*self._checks(blocks), subject=repr(self))

    def _checks(self, blocks):
        """Recompute from the stored probabilities what they claim."""
        outcomes, weights, stored = self._outcomes(), np.asarray(self.weights_, dtype=float), self._stored()
        claim = "weights and chances are probabilities"
        checks = [Check("parameters", fault(self.n_components, outcomes, weights, stored), SAME_LIMIT, "proof", claim)]
        checks += self._identities(blocks)
        if not checks[0].holds:
            return checks
        step = Map(blocks, outcomes, self.alpha)
        value = step(weights, outcomes.full(stored))[0]
        checks.append(same(self.lower_bound_, value, "log-likelihood", "the mean log-density of the rows", floor=1e-3))
        if not value > -np.inf:
            return checks

        def weights_residual(a):
            residual = a - step(a, outcomes.full(stored))[1]
            return np.where(np.abs(residual) > STILL, residual, 0.0)

        def chances_residual(a):
            return a - outcomes.reduced(step(weights, outcomes.full(a))[2])

        if self.fit_weights:
            claim = "an EM step leaves the weights where they are"
            checks.append(equi(weights_residual, weights, "weights", claim, move=simplex))
        else:
            given = self._given_weights()
            expected = np.full(len(weights), 1.0 / len(weights)) if given is None else given
            checks.append(same(weights, expected, "weights", "the weights are those given"))
        claim = "an EM step leaves the probabilities where they are"
        posterior = blocks.reduce(disagreement_block, *self._components(), weights, outcomes.full(stored)).value
        apart = parting(step, weights, outcomes.full(stored))
        return [
            *checks,
            equi(chances_residual, stored, "probabilities", claim, move=outcomes.moved),
            Check(
                "border",
                step.excess(weights, outcomes.full(stored), self.fit_weights),
                EXCESS,
                "local",
                "to raise a 0 does not pay",
            ),
            *([Check("split", apart, PARTED, "local", SPLIT)] if apart else []),
            Check("posterior", posterior, SAME_LIMIT, "proof", "the E-step is Bayes' rule"),
        ]

    def _identities(self, blocks):
        """Checks of what a fit learned beside the probabilities."""
        return []

    def _checked(self, X, sample_weight=NO_WEIGHTS):
        blocks = super()._checked(X, sample_weight)
        self._known(self._census(blocks))
        return blocks

    def _census(self, blocks):
        """Look at every entry once, and raise where it is none that a model of this kind can read."""
        census, sparse = Census(*blocks.reduce(census_block)), is_sparse(blocks.first()[0])
        if np.isinf(census.spread.low).any() or np.isinf(census.spread.high).any():
            raise ValueError("Input X contains infinity; clean or impute it first.")
        if census.missing and sparse:
            raise ValueError("Input X is sparse and contains NaN; make it dense, where missing entries are left out.")
        self._refuse(census, sparse)
        return census

    def _learn(self, census):
        """Set what a fit learns of the table before its probabilities."""

    def _known(self, census):
        """Raise where the entries are none that this fit knows."""

    def _refuse_fractions(self, census, what):
        """Raise where entries are not whole numbers from 0."""
        if np.fmin.reduce(census.spread.low) < 0:
            raise ValueError(f"Negative values in data passed to {type(self).__name__}: {what} are whole numbers from 0.")
        if np.fmax.reduce(census.spread.high) >= WHOLE:
            raise ValueError(
                f"X holds numbers of 2⁵³ and more, too large for {what}: floating point skips whole numbers there."
            )
        if census.fractions:
            raise ValueError(
                f"{type(self).__name__} takes {what}, whole numbers from 0, but {census.fractions} entries are not."
            )

    def _sizes(self, name, expected):
        """Give a parameter that holds a whole number, at least 1, for all columns or for each; else what is expected."""
        value = getattr(self, name)
        if value is None:
            return expected
        sizes, d = np.asarray(value, dtype=float), self.n_features_in_
        if sizes.shape not in ((), (d,)) or not ((sizes >= 1) & (sizes == np.floor(sizes)) & (sizes < WHOLE)).all():
            raise ValueError(
                f"{name} must be a whole number of at least 1, or {d} of them, one for each column; got {value!r}."
            )
        return np.broadcast_to(sizes, d).astype(np.int64)

    def _within(self, census, largest, name):
        """Raise where an entry is beyond what its column can hold."""
        beyond = np.flatnonzero(census.spread.high > largest)
        if len(beyond):
            j = beyond[0]
            raise ValueError(
                f"X holds {census.spread.high[j]:g} in column {j}, where {name} allows {largest[j]} at most: raise {name}."
            )

    def _given_weights(self):
        if self.weights_init is None:
            return None
        weights = np.array(self.weights_init, dtype=float)
        if weights.shape != (self.n_components,) or not ((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6):
            raise ValueError(f"weights_init must hold {self.n_components} numbers that are at least 0 and sum to 1.")
        return weights / weights.sum()

    def _given_chances(self):
        """Check the probabilities to start from and give those of all outcomes."""
        return None if self.probabilities_init is None else self._outcomes().full(self._probabilities(self.probabilities_init))

    def _probabilities(self, value):
        """Give chances of heads as an array, once they are some."""
        heads, shape = np.array(value, dtype=float), (self.n_components, self.n_features_in_)
        if heads.shape != shape or not ((heads >= 0) & (heads <= 1)).all():
            raise ValueError(
                f"probabilities_init must hold numbers from 0 to 1 in the shape {shape}, got the shape {heads.shape}."
            )
        return heads

    def _stored(self):
        return np.asarray(self.probabilities_, dtype=float)

    def _shaped(self, stored):
        return stored

    def _attributes(self, parameters):
        weights, chances = parameters
        return {"weights_": weights, "probabilities_": self._shaped(self._outcomes().reduced(chances).copy())}

    def _components(self):
        """Give the fitted parameters as the kernels want them."""
        outcomes = self._outcomes()
        return outcomes, outcomes.prepare(self.weights_, outcomes.full(self._stored()))

    def _n_parameters(self):
        free = len(self.weights_) * (int(self._outcomes().starts[-1]) - self.n_features_in_)
        return free + (len(self.weights_) - 1 if self.fit_weights else 0)
