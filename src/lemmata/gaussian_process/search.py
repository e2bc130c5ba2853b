"""The search for hyperparameters under which the targets are most probable, as both estimators do it.

What an evaluation finds on its way (a mode) helps the next ones to begin nearby; it is part of the state, so that a search
that was cut short goes on with the same bits.
"""

import numpy as np

from lemmata.core.estimator import Iterative
from lemmata.core.random import spawn
from lemmata.gaussian_process.box import box_start, box_step

FARTHEST = np.log(100.0)  # from the first start to another one, in each logarithm


def plain_block(X, weight):
    """Give the rows of a block in double precision."""
    return X.astype(float)


class EvidenceSearch(Iterative):
    """Mixin of estimators with the parameters optimizer, n_restarts, tol, max_iter, verbose and checkpoint."""

    def _search(self, fun, before, fitted, blocks, rng, *, rounding=0.0, **data):
        """Minimize a function, and set the attributes that `fitted` makes of the variables.

        Parameters
        ----------
        fun : Function of the variables of a `Prior`, and of what it found nearby or None; returns value, slopes and its find.
        rounding : Absolute error of the function, beyond that of a sum of terms of its size.
        """
        variables, self.n_iter_, self.converged_, self.trace_ = before.start, 0, True, np.zeros(0)
        if self.optimizer is not None and len(variables):
            starts = [variables, *(self._drawn(before, child) for child in spawn(rng, self.n_restarts))]
            with self._fitting(blocks, len(starts), **data) as fitting:
                runs = [self._run(fitting, fun, start, before, fitted, rounding) for start in starts]
            run = min(runs, key=lambda run: run.state[1])
            variables, self.n_iter_, self.converged_, self.trace_ = run.state[0], run.n_iter, run.converged, run.trace
        for name, value in fitted(variables).items():
            setattr(self, name, value)

    def _run(self, fitting, fun, start, before, fitted, rounding):
        low, high = before.bounds

        def step(state):
            *state, near = state
            seen = {}
            after, value, residual = box_step(_seeing(fun, near, seen), low, high, state, rounding)
            return (*after, seen.get(after[0].tobytes(), near)), value, residual

        def attributes(state):
            return fitted(state[0])

        seen = {}
        state = box_start(_seeing(fun, None, seen), start, low, high)
        state = (*state, seen[state[0].tobytes()])
        return fitting.iterate(step, state, tol=self.tol, monotone=None, name="evidence", fitted=attributes)

    def _drawn(self, before, rng):
        """Draw a start near the first one, within the bounds."""
        low, high = before.bounds
        low, high = np.maximum(low, before.start - FARTHEST), np.minimum(high, before.start + FARTHEST)
        return rng.uniform(low, np.maximum(low, high))


def _seeing(fun, near, seen):
    """Return a function of the variables alone that notes what `fun` finds at each point; what it knows is in the arguments."""

    def look(variables):
        value, slopes, found = fun(variables, near)
        seen[variables.tobytes()] = found
        return value, slopes

    return look
