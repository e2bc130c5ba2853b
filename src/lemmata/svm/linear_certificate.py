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

from lemmata.core.certificate import EQUI_LIMIT, SAME_LIMIT, TINY, Check, gap, length
from lemmata.core.iterate import iterate
from lemmata.linear_model.logistic_solvers import DENSE
from lemmata.svm.linear_newton import ProximalNewton
from lemmata.svm.linear_objective import rows_of, scores, slopes_block, transposed

NEAR = 1e-3  # width, in units of the targets, within which slopes are sought at first
STEPS = 300  # at most, for the slopes of a checker
ROUNDED = 1e-12  # of what cancels in it: a sum that is this close to what it must be is that
EVEN = 1e-12  # of the sum of all weights: a slope of the cost of the intercept that is zero but for rounding
SMALL = 1e-4  # of the unit of the targets: an intercept that is smaller is checked as if it were this large
NOTHING = 1e-10  # coefficients that move no score by more are rounding, of which no share can be checked


def kinks_block(X, y, weight, coef, loss):
    """Where, as the intercept grows, rows of a block begin to cost less (or more) for each step, and by how much."""
    t, s = rows_of(y, weight, loss)
    r, s = t - scores(X, coef, 0.0), np.ones(len(t)) if s is None else s
    falling = np.ones(len(t)) if loss.two_sided else t > 0
    ends = np.where(falling, r - loss.epsilon, np.nan)
    begins = np.where(np.ones(len(t)) if loss.two_sided else t < 0, r + loss.epsilon, np.nan)
    return ends, begins, s


def best_intercept(blocks, coef, loss):
    """Return the middle of the intercepts that are best for given coefficients, for plain losses.

    The cost of the intercept is piecewise linear; its slope starts at minus the weight of the rows that want a larger one, and
    rises by the weight of a row at each of its kinks.
    """
    ends, begins, s = (np.asarray(part) for part in blocks.map(kinks_block, coef, loss))
    kinks, rises = np.concatenate([ends, begins]), np.concatenate([s, s])
    start = float(s[~np.isnan(ends)].sum())
    rises, kinks = rises[~np.isnan(kinks)], kinks[~np.isnan(kinks)]
    order = np.argsort(kinks, kind="stable")
    slope = np.cumsum(rises[order]) - start
    even = EVEN * rises.sum()
    first = int(np.searchsorted(slope, -even))
    last = min(int(np.searchsorted(slope, even, side="right")), len(slope) - 1)
    return float(kinks[order[first]] / 2 + kinks[order[last]] / 2)


def sides_block(X, y, weight, center, coef, intercept, width, loss):
    """Sum over a block the slopes of either sign."""
    t, s = rows_of(y, weight, loss)
    pull = slopes_block(X, t, center, coef, intercept, width, loss)[1]
    pull = pull if s is None else s * pull
    return float(np.maximum(pull, 0).sum()), float(np.maximum(-pull, 0).sum())


def dual_block(X, y, weight, center, coef, intercept, width, loss, shares, middle):
    """Sum over a block what the dual objective is made of, for slopes shrunk by a share on either side."""
    t, s = rows_of(y, weight, loss)
    a = slopes_block(X, t, center, coef, intercept, width, loss)[1]
    a = a * np.where(a > 0, *shares)
    worth = t * a - loss.epsilon * np.abs(a) - (0.0 if loss.bounded else width / 2 * a * a)
    a, worth = (a, worth) if s is None else (s * a, s * worth)
    sizes = transposed(abs(X), np.abs(a)) + np.abs(middle) * np.abs(a).sum()
    return float(worth.sum()), transposed(X, a) - middle * a.sum(), sizes


def dual_bound(solver, state):
    """Bound the least objective from below by the slopes of a state."""
    problem = solver.current(state)
    at = problem.at(state.theta)
    shares = (1.0, 1.0)
    if problem.intercept:
        up, down = problem.over("reduce", sides_block, *at)
        shares = (min(1.0, down / max(up, TINY)), min(1.0, up / max(down, TINY)))
    worth, pull, sizes = problem.over("reduce", dual_block, *at, shares, problem.center)
    wanted = problem.penalty * at[0]
    pull = np.where(np.abs(pull - wanted) <= ROUNDED * sizes, wanted, pull)
    scaled = pull / problem.penalty
    return (worth - problem.penalty / 2 * float(scaled @ scaled)) / problem.total


def polished(problem, unit, theta):
    """Return the solver and the state that it ends in, when it starts from given planes."""
    solver = ProximalNewton(problem, unit, tol=1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the bound says how good it is
        run = iterate(solver.step, solver.near(theta, NEAR), max_iter=STEPS, tol=0.0, name="checker")
    return solver, run.state


def optimality(problem, unit, coef, intercept, suffix=""):
    """The checks of a plane: gap, coefficients, intercept."""
    theta = problem.theta(coef[:, None], np.array([intercept]))
    solver, state = polished(problem, unit, theta)
    value = problem.evaluate(theta)[2]
    null = 1.0 if not problem.loss.two_sided else unit if problem.loss.bounded else unit**2
    claim = "no plane lowers the objective by more than this share of it"
    checks = [gap(value, dual_bound(solver, state), null, claim, name=f"gap{suffix}")]
    d = len(coef)
    if length(theta[:d]) > NOTHING * unit:
        off = length(theta[:d] - state.theta[:d]) / length(theta[:d])
        checks.append(Check(f"coefficients{suffix}", off, EQUI_LIMIT, "proof", "they are those that the slopes of the loss add up to"))
    if not problem.intercept:
        checks.append(Check(f"intercept{suffix}", abs(intercept), 0.0, "proof", "the plane goes through the origin"))
        return checks
    if problem.loss.bounded:
        best, claim = best_intercept(problem.blocks, coef, problem.loss), "it is in the middle of those that are best"
    else:
        best, claim = float(problem.parameters(state.theta)[1][0]), "it is the one that balances the slopes"
    scale = max(abs(best), SMALL * unit, 10 * SAME_LIMIT * float(np.abs(problem.center) @ np.abs(coef)))
    checks.append(Check(f"intercept{suffix}", abs(intercept - best) / scale, EQUI_LIMIT, "proof", claim))
    return checks
