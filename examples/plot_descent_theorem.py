"""
Gradient descent obeys its theorem
==================================

Few things in machine learning come with a guarantee for every single step. Gradient descent on a convex function is one of
them: if the gradient has the Lipschitz constant L, steps of 1/L bring the objective down like 1/t at least, and geometrically
if the function is strongly convex. These are inequalities between numbers, so they can be checked at every iteration, and
`check_rate` does.
"""

# %%
# Ridge regression on columns that overlap: a quadratic with known curvatures. The extreme eigenvalues of its Hessian are the
# constants of the theorem.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from lemmata.optimize import GradientDescent, Momentum, Quadratic, check_rate, convergence_rate, lipschitz_step, minimize
from lemmata.optimize.rates import convex_bound, strongly_convex_bound
from lemmata.plot import TraceDisplay

rng = np.random.default_rng(0)
n, d = 200, 20
X = rng.normal(size=(n, d)) @ np.diag(np.geomspace(1.0, 0.08, d))
y = X @ rng.normal(size=d) + 0.1 * rng.normal(size=n)
f = Quadratic(X.T @ X / n + 0.002 * np.eye(d), -X.T @ y / n, y @ y / (2 * n))
mu, L = f.curvature
start, best = np.zeros(d), f.minimizer()
optimum, distance, step = f(best), float(np.linalg.norm(best - start)), lipschitz_step(L)
print(f"curvatures from μ = {mu:.4f} to L = {L:.3f}: condition number {L / mu:.0f}")

# %%
# Steps of length 1/L, and the two bounds. The run must stay below both, and it does: early the first is the tighter one, later
# the second.

run = minimize(f, start, f.gradient, rule=GradientDescent(step), max_iter=5000, tol=1e-8)
bounds = {
    "convex: d²/(2ηt)": lambda t: convex_bound(step, distance, t),
    "strongly convex: (1 − ημ)ᵗ": lambda t: strongly_convex_bound(step, mu, f(start) - optimum, t),
}
TraceDisplay.from_run(run, optimum=optimum, bound=bounds, name="gradient descent, η = 1/L")
plt.show()

# %%
# The certificate of the run: at no iteration is a bound exceeded, the objective never rises, and no step leaves more of the
# excess than the theorem allows. A value of 1 would be the bound itself.

check_rate(run, optimum, step=step, L=L, distance=distance, mu=mu)

# %%
# A step that is too long
# -----------------------
# From 2/L on, the theorem's promise ends, and so does convergence: along the steepest direction each step overshoots by more
# than it corrects. Steps just below 2/L still descend. Momentum, tuned to the two curvatures, needs about the root of the
# condition number instead.


def descent(**options):
    """Minimize for 400 iterations at most; a run that is cut short is what we want to see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return minimize(f, start, f.gradient, max_iter=400, tol=1e-10, **options)


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained", sharey=True)
for factor, color in ((0.5, "#9cc2f0"), (1.0, "#3b7dd8"), (1.9, "#1f4e8c"), (2.02, "#d1495b")):
    TraceDisplay.from_run(descent(rule=GradientDescent(factor / L)), optimum=optimum, ax=left, name=f"η = {factor:g}/L")
    left.lines[-1].set_color(color)
left.set(ylim=(1e-13, 1e3), title="Steps of different lengths")
left.legend(frameon=False, fontsize="small")

root = np.sqrt(L / mu)
beta = ((root - 1) / (root + 1)) ** 2
heavy = Momentum(4 / (np.sqrt(L) + np.sqrt(mu)) ** 2 / (1 - beta), beta=beta)  # Polyak's choice for these curvatures
others = {
    "gradient descent": {"rule": GradientDescent(step)},
    "heavy ball": {"rule": heavy},
    "conjugate gradients": {"method": "cg"},
}
for (name, options), color in zip(others.items(), ("#3b7dd8", "#d08c1d", "#2a9d6f"), strict=True):
    TraceDisplay.from_run(descent(**options), optimum=optimum, ax=right, name=name)
    right.lines[-1].set_color(color)
right.set(title="Methods that remember", ylabel="")
right.legend(frameon=False, fontsize="small")
plt.show()

# %%
# The rate that a trace shows, against the one that is promised:

rate = convergence_rate(run.trace[:600], optimum)
print(f"measured: {rate.kind}, factor {rate.factor:.5f} a step; promised: {1 - step * mu:.5f}")

# sphinx_gallery_thumbnail_number = 1
