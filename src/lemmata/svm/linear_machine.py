"""What `LinearSVC` and `LinearSVR` share: which solver for which problem, several planes at once, and their checks.

Newton's method solves squared losses of any shape, and plain ones of up to 2000 columns, where few rows are on the margin.
Wider tables can have as many rows on the margin as they have columns; each knows little of the others, and coordinate
ascent, which takes them one at a time, then costs less than their equations. The planes of several classes advance together,
a step of each at a time, on threads of their own where a table is too small to be shared out among threads.
"""

from typing import NamedTuple

import numpy as np

from lemmata.core.estimator import as_output
from lemmata.linear_model.stochastic import on_threads
from lemmata.svm.dual_coordinate import CoordinateAscent
from lemmata.svm.linear_certificate import optimality
from lemmata.svm.linear_intercept import best_intercept
from lemmata.svm.linear_newton import ProximalNewton, is_wide, margin_problem

GAP = 10  # times the tolerance: duality gap that ends coordinate ascent, which Newton's method does not look at


class Planes(NamedTuple):
    """The state of several fits side by side."""

    states: tuple
    values: np.ndarray
    going: np.ndarray


class Machine:
    """Fits of one plane for each loss, to the same rows.

    Parameters
    ----------
    blocks : Rows, targets and weights.
    losses : What a row costs, for each plane.
    C, fit_intercept, solver, tol : As `LinearSVC` has them.
    seed : Of the order of rows.
    """

    def __init__(self, blocks, losses, C, fit_intercept, solver, tol, seed=0):
        self.blocks = blocks
        self.problems = [margin_problem(blocks, loss, C, fit_intercept) for loss in losses]
        if solver == "newton" or (solver == "auto" and not is_wide(self.problems[0][0])):
            self.solvers = [ProximalNewton(problem, unit, tol) for problem, unit, _ in self.problems]
        else:
            self.solvers = [CoordinateAscent(problem, unit, GAP * tol, seed) for problem, unit, _ in self.problems]

    def start(self):
        """Return the first state."""
        states = [
            solver.start(problem.theta(np.zeros((self.blocks.n_columns, 1)), np.array([mean])))
            for solver, (problem, _, mean) in zip(self.solvers, self.problems, strict=True)
        ]
        k = len(states)
        return Planes(tuple(states), np.full(k, np.inf), np.ones(k, dtype=bool))

    def step(self, planes):
        """Take a step with each plane that is not yet found; return (state, objective, residual)."""
        states, values, residuals = list(planes.states), planes.values.copy(), np.zeros(len(planes.states))

        def work(part):
            for k in part:
                states[k], values[k], residuals[k] = self.solvers[k].step(states[k])

        going = np.flatnonzero(planes.going)
        alone = self.blocks.home == "memory" and (self.blocks.n_blocks == 1 or isinstance(self.solvers[0], CoordinateAscent))
        on_threads(work, going, len(going) * self.blocks.n_rows * self.blocks.n_columns if alone else 0)
        ended = np.array([residual <= solver.ends for residual, solver in zip(residuals, self.solvers, strict=True)])
        after = Planes(tuple(states), values, planes.going & ~ended)
        return after, float(values.sum()), 1.0 if after.going.any() else 0.0

    def planes(self, state, dtype):
        """Return coefficients (K, d) and intercepts (K,) in a precision."""
        coefs, intercepts = [], []
        for solver, own, (problem, _, _) in zip(self.solvers, state.states, self.problems, strict=True):
            coef, intercept = solver.problem.parameters(solver.theta(own))
            coefs.append(as_output(coef[:, 0], dtype))
            if problem.intercept and problem.loss.bounded:
                intercept = np.array([best_intercept(problem.blocks, coefs[-1].astype(float), problem.loss)])
            intercepts.append(intercept[0])
        return np.array(coefs), as_output(np.array(intercepts), dtype)

    def fit(self, fitting, name):
        """Run; return coefficients, intercepts and the run."""
        dtype = self.blocks.dtype

        def fitted(state):
            return self.fitted(state, dtype)

        run = fitting.iterate(self.step, self.start(), tol=0.0, monotone=None, name=name, fitted=fitted)
        return *self.planes(run.state, dtype), run

    def fitted(self, state, dtype):
        """Return fitted attributes, for callbacks."""
        return dict(zip(("coef_", "intercept_"), self.planes(state, dtype), strict=True))

    def checks(self, coef, intercept, names):
        """Return the checks of all planes."""
        found = []
        for (problem, unit, _), w, b, name in zip(
            self.problems, coef.astype(float), intercept.astype(float), names, strict=True
        ):
            found += optimality(problem, unit, w, float(b), name)
        return found
