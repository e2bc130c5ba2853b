"""How far planes are from the best ones: a dual bound from slopes that are sought anew, and the intercept in the middle.

Any slopes a that are allowed and balanced, Σ s a = 0, prove (weak duality) that no planes have an objective below

    D(a) = (1/S) [Σ s (t a − ε|a| − ½μ a²) − ‖Σ s a x‖² / 2λ],    λ = 1/C.

Slopes of a squared loss are a function of the planes; those of a plain one are not, on the margin, where the loss has a kink.
So the checker starts from the planes it is given, solves for slopes, makes them balance by shrinking those of the heavier side,
which keeps them allowed, and evaluates D: the bound holds however the slopes were found. The planes that belong to them
are compared with the given ones, for w is unique. The intercept is not, for plain losses: without a row on the margin all
of an interval is as good [1], of which the fit takes, and the checker asks for, the middle.

[1] Burges & Crisp, NIPS (1999).
"""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.blocks import add
from lemmata.core.certificate import EQUI_LIMIT, GAP_LIMIT, SAME_LIMIT, TINY, Check, gap, length
from lemmata.core.iterate import iterate
from lemmata.linear_model.stochastic import fold
from lemmata.svm.dual_coordinate import CoordinateAscent
from lemmata.svm.linear_intercept import best_intercept
from lemmata.svm.linear_newton import ProximalNewton, is_wide
from lemmata.svm.linear_objective import rows_of, slopes_block, transposed

NEAR = 1e-6  # width, in units of the targets, within which slopes are sought at first
FAR = 0.02  # the same for coordinate ascent
STEPS, EPOCHS = 150, 2000  # at most, for the slopes of a checker
TIGHT = 1e-10  # gradient of the mean loss
ROUNDED = 1e-12  # of what cancels in it: a sum that is this close to what it must be is that
SMALL = 1e-4  # of the unit of the targets: an intercept that is smaller is checked as if it were this large
NOTHING = 1e-8  # of the unit: coefficients that move no score by more are rounding, of which no share can be checked


def dual_sums(X, y, weight, slopes, loss, width, shares, middle):
    """Sum over a block what the dual objective is made of, for slopes shrunk by a share on either side.

    Slopes of either sign; their worth; slopes times columns, as if the columns had this middle; and the sizes of what cancels.
    """
    t, s = rows_of(y, weight, loss)
    a = slopes * np.where(slopes > 0, *shares)
    worth = t * a - loss.epsilon * np.abs(a) - (0.0 if loss.bounded else width / 2 * a * a)
    a, worth = (a, worth) if s is None else (s * a, s * worth)
    sizes = transposed(abs(X), np.abs(a)) + np.abs(middle) * np.abs(a).sum()
    sides = np.array([np.maximum(a, 0).sum(), np.maximum(-a, 0).sum()])
    return sides, float(worth.sum()), transposed(X, a) - middle * a.sum(), sizes


def dual_block(X, y, weight, center, coef, intercept, width, loss, shares, middle):
    """`dual_sums` of the slopes that planes have around given ones."""
    t, _ = rows_of(y, weight, loss)
    slopes = slopes_block(X, t, center, coef, intercept, width, loss)[1]
    return dual_sums(X, y, weight, slopes, loss, width, shares, middle)


class NewtonSlopes:
    """Slopes from steps of Newton's method that start at given planes; or, with `anew`, with what is known of none."""

    def __init__(self, problem, unit, theta, anew=False):
        self.solver = ProximalNewton(problem, unit, tol=TIGHT)
        first = self.solver.start(theta) if anew else self.solver.near(theta, NEAR)
        self.state = self.solver.settled(_ended(self.solver, first, STEPS))
        self.theta = self.state.theta

    def sums(self, shares):
        """Return `dual_sums` over all rows."""
        problem = self.solver.current(self.state)
        return problem.over("reduce", dual_block, *problem.at(self.theta), shares, problem.center)


class AscentSlopes:
    """Slopes from coordinate ascent that starts where given planes suggest it: for wide tables and plain losses."""

    def __init__(self, problem, unit, theta):
        self.solver = CoordinateAscent(problem, unit, GAP_LIMIT / 10, seed=0)
        self.state = _ended(self.solver, self.solver.near(theta, FAR), EPOCHS)
        self.theta = self.solver.theta(self.state)

    def sums(self, shares):
        """Return `dual_sums` over all rows."""
        problem = self.solver.problem

        def visit(X, y, weight, total, own):
            part = dual_sums(X, y, weight, own.slopes, problem.loss, 0.0, shares, problem.center)
            return part if total is None else add(total, part), own

        return fold(problem.blocks, visit, None, self.state.memory)[0]


def _ended(solver, state, most):
    """Run a solver; how good the slopes are, the bound says."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return iterate(solver.step, state, max_iter=most, tol=solver.ends, name="checker").state


def dual_bound(problem, found):
    """Bound the least objective from below by slopes that were found."""
    shares = (1.0, 1.0)
    if problem.intercept:  # which asks for balance: the heavier side gives way
        up, down = found.sums(shares)[0]
        shares = (min(1.0, down / max(up, TINY)), min(1.0, up / max(down, TINY)))
    _, worth, pull, sizes = found.sums(shares)
    wanted = problem.penalty * problem.at(found.theta)[0]
    pull = np.where(np.abs(pull - wanted) <= ROUNDED * sizes, wanted, pull) / problem.penalty
    return (worth - problem.penalty / 2 * float(pull @ pull)) / problem.total


def optimality(problem, unit, coef, intercept, suffix=""):
    """The checks of a plane: gap, coefficients, intercept."""
    theta = problem.theta(coef[:, None], np.array([intercept]))
    found = (AscentSlopes if is_wide(problem) else NewtonSlopes)(problem, unit, theta)
    value, bound = problem.evaluate(theta)[2], dual_bound(problem, found)
    if (
        value - bound > GAP_LIMIT * value and problem.loss.bounded and not is_wide(problem)
    ):  # slopes may be better sought from afar
        other = NewtonSlopes(problem, unit, theta, anew=True)
        found, bound = max((found, bound), (other, dual_bound(problem, other)), key=lambda pair: pair[1])
    null = 1.0 if not problem.loss.two_sided else unit if problem.loss.bounded else unit**2
    claim = "no plane lowers the objective by more than this share of it"
    checks = [gap(value, bound, null, claim, name=f"gap{suffix}")]
    d = len(coef)
    if length(theta[:d]) > NOTHING * unit:
        off = length(theta[:d] - found.theta[:d]) / length(theta[:d])
        claim = "they are those that the slopes of the loss add up to"
        checks.append(Check(f"coefficients{suffix}", off, EQUI_LIMIT, "proof", claim))
    if not problem.intercept:
        checks.append(Check(f"intercept{suffix}", abs(intercept), 0.0, "proof", "the plane goes through the origin"))
        return checks
    if problem.loss.bounded:
        best, claim = best_intercept(problem.blocks, coef, problem.loss), "it is in the middle of those that are best"
    else:
        best, claim = float(problem.parameters(found.theta)[1][0]), "it is the one that balances the slopes"
    scale = max(abs(best), SMALL * unit, 10 * SAME_LIMIT * float(np.abs(problem.center) @ np.abs(coef)))
    checks.append(Check(f"intercept{suffix}", abs(intercept - best) / scale, EQUI_LIMIT, "proof", claim))
    return checks
