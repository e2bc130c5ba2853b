"""The perceptron: learn a separating plane from mistakes.

Find w, b with yᵢ(w·xᵢ + b) > δ for all rows, yᵢ = ±1. Start at zero; visit the rows again and again, and where the inequality
fails, w ← w + η yᵢxᵢ, b ← b + η yᵢu² (u = 1 in most textbooks), which raises the left side by η(‖xᵢ‖² + u²). If a unit vector z
has ⟨z, mᵢ⟩ ≥ γ > 0 for all rows mᵢ = yᵢ(xᵢ, u), then after k mistakes kγ ≤ ⟨z, v⟩ ≤ ‖v‖ ≤ √(k(R² + 2δ/η)), v = (w, b/u)/η and
R = max ‖mᵢ‖; so there are at most (R² + 2δ/η)/γ² mistakes, in whatever order the rows come [1]. Otherwise w stays bounded, and
on integer data returns to a state it was in before, and cycles [2].
Certificate: w is the sum of the rows, each as often as it was mistaken, an identity that leaves no room; w separates, or zero
lies in the hull of the mᵢ and nothing does; and the mistakes keep to the bound with the largest γ there is, from `hard_margin`.

[1] Novikoff, Symp. Math. Theory of Automata (1962). [2] Minsky & Papert, Perceptrons (1969), ch. 11. Averaged: Freund &
Schapire, Mach. Learn. 37 (1999). Pocket: Gallant, IEEE Trans. Neural Netw. 1 (1990).
"""

import warnings
from numbers import Integral, Real
from os import PathLike

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import SAME_LIMIT, Certificate, Check, same
from lemmata.core.estimator import Iterative
from lemmata.core.random import generator
from lemmata.linear_model.hard_margin import margin_of_blocks, radius_of
from lemmata.linear_model.mistakes import Rules, epoch, errors_block, pocketed, start, unit_of
from lemmata.linear_model.perceptron_certificate import add_up, representation_checks, separation_checks
from lemmata.linear_model.stochastic import OneVersusRest, mixed

PROVED = 1 << 20  # numbers in a table up to which a fit that does not end finds out whether it could


def counted(values):
    """Give counts as integers if they are whole, and those of a single problem without their first axis."""
    values = values if len(values) > 1 else values[0]
    return values.astype(np.int64) if np.array_equal(values, np.rint(values)) else values


class Perceptron(Iterative, OneVersusRest):
    """Learn planes that separate classes, from mistakes; each class against the rest if there are more than two.

    Parameters
    ----------
    eta0 : Step size η: from the start at zero it scales the coefficients and changes nothing else, unless there is a margin.
    margin : δ: a row with y(w·x + b) ≤ δ is a mistake. The larger it is, the wider the gap around the planes.
    fit_intercept : Whether the planes may lie off the origin.
    intercept_scaling : u, the constant in place of a further column, which carries the intercept; the mistake bound counts it
        as one. By default the unit of the table: the power of 64 nearest to the mean size of its entries, 1 for most.
    max_iter : Epochs at most. It stops after an epoch without mistakes, which comes if the classes are separable.
    shuffle : Whether rows are visited in random order, as `stochastic` says, rather than in that of the table.
    average : Whether to give the average of the weights after each visit instead of the last ones, which predicts better where
        the classes overlap, and need not separate them where they do not.
    pocket : Whether to give, for each problem, the weights with the fewest training errors at the end of any epoch (where a
        tie counts as an error) instead of the last ones. It costs a further pass an epoch. Not together with `average`.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    classes_ : Labels; the single plane of two classes has the second on its positive side.
    coef_, intercept_ : Planes, (K, d) and (K,), or (1, d) and (1,) for two classes; in float64 whatever the input, because
        they are sums of rows.
    mistakes_ : How often each row was mistaken, (K, n) or (n,): the coefficients are η times the sum of y·x by these. Whole
        numbers, unless weights are not.
    mistake_times_ : With `average`, the visits before each mistake, summed, in the shape of `mistakes_`.
    n_mistakes_ : Sum of `mistakes_` of each problem.
    n_visits_ : Weight of the rows that each problem visited, a whole number of epochs.
    n_errors_ : With `pocket`, training errors of each problem.
    n_iter_ : Epochs.
    converged_ : Whether the last epoch had no mistakes.
    trace_ : Mistakes of each epoch.

    Examples
    --------
    >>> X, y = [[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, 0.5]], [1, 1, -1, -1]
    >>> model = Perceptron(shuffle=False).fit(X, y)
    >>> model.coef_, model.intercept_, model.mistakes_
    (array([[3. , 1.5]]), array([0.]), array([1, 0, 0, 1]))
    >>> print(model.certify(X, y))
    Perceptron(shuffle=False): certificate holds (proof)
      check           value     limit  kind   claim
      representation  0.0e+00 ≤ 1e-06  proof  the coefficients are the sum of the rows, each as often as it was mistaken
      intercept       0.0e+00 ≤ 1e-06  proof  so are the intercepts
      counts          0.0e+00 ≤ 1e-09  proof  the mistakes are counts of rows that are there, and add up
      visits          0.0e+00 ≤ 1e-09  proof  the rows were visited a whole number of times
      separation      0.0e+00 ≤ 0e+00  proof  the classes are separated, or no plane separates them
      mistake bound   8.6e-01 ≤ 1e+00  proof  no more mistakes than (R² + 2δ/η)/γ²
    """

    _parameter_constraints = {
        "eta0": [Interval(Real, 0, None, closed="neither")],
        "margin": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_scaling": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "average": ["boolean"],
        "pocket": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        *,
        eta0=1.0,
        margin=0.0,
        fit_intercept=True,
        intercept_scaling=None,
        max_iter=1000,
        shuffle=True,
        average=False,
        pocket=False,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.eta0 = eta0
        self.margin = margin
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.average = average
        self.pocket = pocket
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X with labels y; a weight means repetition. X may also be a Parquet path, a Dask table, an iterator."""
        if self.average and self.pocket:
            raise ValueError("average and pocket each say which weights to give: choose one of them.")
        blocks = mixed(self._labeled(X, y, sample_weight, reset=True, order="C"))
        self._unit = self._unit_of(blocks)
        rules, seed = self._rules(self._unit), self._seed()
        first = start(len(rules.positive), blocks.n_columns, self.average)

        def step(progress):
            state, counts, pocket = progress
            state, counts = epoch(blocks, rules, seed, state, counts)
            if self.pocket:
                pocket = pocketed(blocks, rules, state, counts, pocket)
            ended = not state.active.any() or state.epoch == self.max_iter  # what that means is said below
            return (state, counts, pocket), state.mistakes.sum(), 0.0 if ended else 1.0

        def fitted(progress):
            return dict(zip(("coef_", "intercept_"), self._planes(rules, *progress), strict=True))

        with self._fitting(blocks, X=X, y=y) as fitting:
            run = fitting.iterate(step, (first, None, None), tol=0.0, monotone=None, name="Perceptron", fitted=fitted)
        state, counts, pocket = run.state
        self.coef_, self.intercept_ = self._planes(rules, *run.state)
        self.n_iter_, self.trace_ = run.n_iter, run.trace
        self.converged_ = not state.active.any()
        self._keep(blocks, state, counts if pocket is None else pocket.counts)
        if pocket is not None:
            self.n_errors_ = counted(pocket.errors)
        if run.converged and not self.converged_ and not self.pocket:
            warnings.warn(self._unfinished(blocks, state), ConvergenceWarning, stacklevel=2)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, classes=None, sample_weight=None):
        """Go on for one epoch over some rows in memory; the first call names all classes.

        No counts are kept that a certificate could use, and there is no pocket.
        """
        first = not hasattr(self, "coef_")
        blocks = self._lesson(X, y, classes, sample_weight, first=first)
        if first:
            self._unit, self.n_iter_, done = self._unit_of(blocks), 0, 0
            state = start(len(self._positive()), blocks.n_columns, self.average)
        else:
            done, (sums, *late) = self.n_mistakes_, self._memory
            state = start(len(sums), blocks.n_columns, self.average)._replace(
                epoch=self.n_iter_, weights=sums[:, :-1], signs=sums[:, -1], time=float(np.max(self.n_visits_))
            )
            state = state._replace(late=late[0] if late else state.late)
        rules = self._rules(self._unit)
        state, _ = epoch(blocks, rules, self._seed(), state, None)
        self.coef_, self.intercept_ = self._planes(rules, state)
        self.n_iter_, self.converged_ = state.epoch, not state.active.any()
        self.n_mistakes_, self.n_visits_ = done + counted(state.mistakes), counted(state.visits)
        self._memory = self._remembered(state)
        for name in ("mistakes_", "mistake_times_", "n_errors_", "trace_"):
            vars(self).pop(name, None)
        return self

    def _unit_of(self, blocks):
        """Return the constant that carries the intercept, zero without one."""
        if not self.fit_intercept:
            return 0.0
        return unit_of(blocks) if self.intercept_scaling is None else float(self.intercept_scaling)

    def _rules(self, unit):
        return Rules(self._positive(), self.margin / self.eta0, unit**2)

    def _seed(self):
        return int(generator(self.random_state).integers(2**32)) if self.shuffle else None

    def _planes(self, rules, state, counts=None, pocket=None):
        """Return coefficients and intercepts: the last, the average, or those in the pocket."""
        weights, signs = (state.weights, state.signs) if pocket is None else (pocket.weights, pocket.signs)
        if self.average:
            visits = np.maximum(state.visits, 1.0)
            weights, signs = weights - state.late[:, :-1] / visits[:, None], signs - state.late[:, -1] / visits
        return self.eta0 * weights, self.eta0 * rules.square * signs

    def _remembered(self, state):
        """Return what `partial_fit` goes on from: the sums of rows and signs, and with `average` those by time."""
        sums = np.column_stack([state.weights, state.signs])
        return np.stack([sums, state.late] if self.average else [sums])

    def _keep(self, blocks, state, counts):
        """Keep the mistakes of all rows, and zero for those without weight."""
        shape = (len(state.signs), 2 if self.average else 1)
        counts = np.concatenate(counts) if counts is not None else np.zeros((blocks.n_rows, *shape))
        if not blocks.complete:
            everyone = np.zeros((blocks.n_table, *shape))
            everyone[blocks.present] = counts
            counts = everyone
        mistakes, *times = np.moveaxis(counts, 0, -1).swapaxes(0, 1)  # (K, n) each
        self.mistakes_ = counted(mistakes)
        if self.average:
            self.mistake_times_ = counted(times[0])
        self.n_mistakes_, self.n_visits_ = counted(mistakes.sum(axis=1)), counted(state.visits)
        self._memory = self._remembered(state)

    def _unfinished(self, blocks, state):
        """Say in one sentence why the mistakes did not end, and what to do."""
        told = f"Perceptron still makes mistakes after {state.epoch} epochs"
        if blocks.n_rows * blocks.n_columns <= PROVED:
            radius = radius_of(blocks, self._unit)
            margins = [margin_of_blocks(blocks, k, self._unit, radius) for k in self._positive()[state.active]]
            if any(margin.overlap for margin in margins):
                return f"{told}, and always will, because no plane separates the classes; use pocket=True or another model."
            if all(margin.separable for margin in margins):
                gap = min(margin.lower / margin.radius for margin in margins)
                return f"{told}, but the classes are separable, by {gap:.1e} of the longest row; raise max_iter."
        return f"{told}; raise max_iter or, if no plane separates the classes, use pocket=True or another model."

    def _counts(self, blocks):
        """Return the counts of the rows in the blocks, (n, K, m), and the sum of those of other rows; None if none fit."""
        kinds = [np.atleast_2d(getattr(self, name)) for name in ("mistakes_", "mistake_times_") if hasattr(self, name)]
        if len(kinds) != 1 + self.average:
            return None, 0.0
        if any(kind.shape != (len(self._positive()), blocks.n_table) for kind in kinds):
            return None, 0.0
        counts = np.stack([kind.T for kind in kinds], axis=2).astype(float)
        return (counts, 0.0) if blocks.complete else (counts[blocks.present], float(np.abs(counts[~blocks.present]).sum()))

    def certify(self, X, y=None, sample_weight=None):
        """Prove that the planes are sums of mistaken rows, that they separate or nothing does, and bound the mistakes."""
        check_is_fitted(self)
        blocks = self._labeled(X, y, sample_weight, reset=False, order="C")
        counts, absent = self._counts(blocks)
        if counts is None:
            claim = "there is a count of mistakes for every row, as `fit` keeps them"
            return Certificate(Check("counts", np.inf, SAME_LIMIT, "proof", claim), subject=repr(self))
        unit, positive = self._unit_of(blocks), self._positive()
        radius, sums = radius_of(blocks, unit), add_up(blocks, counts, positive)
        sums = sums._replace(absent=sums.absent + absent)
        checks = representation_checks(self, sums, counts, unit, radius)
        checks += separation_checks(self, blocks, sums, positive, unit, radius)
        if self.pocket:
            errors = blocks.reduce(errors_block, positive, self.coef_, self.intercept_, 0.0)
            checks.append(same(np.atleast_1d(self.n_errors_), errors, "errors", "weight of the rows not on their side"))
        return Certificate(*checks, subject=repr(self))
