"""Least squares with an ℓp penalty: from ridge (p = 2) over the lasso (p = 1) to sparser than that (p < 1).

Minimize Σᵢ sᵢ (yᵢ − xᵢ·w − b)² + α Σⱼ|wⱼ|ᵖ for 0 < p ≤ 2; the intercept is free. For p ≥ 1 this is convex; for p ≤ 1 solutions
are sparse; for p < 1 it is not convex (‖·‖ₚ is then no norm: the triangle inequality fails), and what is found is a local
optimum. Coordinate descent: in one coefficient, φ(v) = ½g v² − z v + ½α|v|ᵖ has its minimum at 0 or at the largest root of
φ′, which Newton's method finds from the side where it cannot overshoot. Every step lowers the objective; where the signs
have settled, Newton steps in all nonzero coefficients speed it up. For p ≤ 1 it begins at the solution of the lasso.
Certificate: for p > 1 Fenchel's dual at the residual, D = c·r − ½‖r‖² − Σ g*(aⱼ·r) with g*(v) = ½α(p − 1)(2|v|/αp)^(p/(p−1));
for p = 1 the gap of the lasso; for p < 1 that no single coefficient can be replaced by a better one.
"""

from numbers import Integral, Real
from os import PathLike

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from lemmata.core.certificate import GAP_LIMIT, Certificate, Check, equi, gap, same
from lemmata.core.estimator import Iterative, Regressor, as_output
from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.linear_model import least_squares as ls
from lemmata.linear_model import working_set as ws
from lemmata.linear_model.base import LinearPredictor, is_single
from lemmata.linear_model.lasso import data_of

NEWTON = 100  # steps of the scalar solver; it converges quadratically, after at most a few dozen where p is close to 0 or 1
LASSO = 1e-10  # gap at which a solution for p = 1 ends, or begins that for p < 1
HALVINGS = 10  # of a Newton step; where a thousandth of it does not help, sweeps must
EPOCHS = 2  # sweeps between two looks at the signs: Newton's steps are better once these have settled


@kernel
def best_coefficient(curvature, z, beta, p):
    """Minimize ½ curvature v² − z v + beta |v|ᵖ over v."""
    if curvature == 0.0 or z == 0.0:
        return 0.0
    size = abs(z)
    if p == 1.0:
        v = max(size - beta, 0.0) / curvature
    elif p == 2.0:
        v = size / (curvature + 2.0 * beta)
    elif p > 1.0:
        # φ′ is concave: from the left of its root Newton's steps stay there. Both terms of φ′ are at most half of |z| here.
        v = min(size / (2.0 * curvature), (size / (2.0 * beta * p)) ** (1.0 / (p - 1.0)))
        for _ in range(NEWTON):
            if v == 0.0:
                break
            power = beta * p * v ** (p - 1.0)
            step = (size - curvature * v - power) / (curvature + (p - 1.0) * power / v)
            v += step
            if step <= 1e-16 * v:
                break
    else:
        # φ′ is convex: from the right of its larger root, |z|/curvature, Newton's steps stay there.
        v = size / curvature
        for _ in range(NEWTON):
            power = beta * p * v ** (p - 1.0)
            slope = curvature + (p - 1.0) * power / v
            if slope <= 0.0:
                return 0.0
            step = (curvature * v + power - size) / slope
            v -= step
            if v <= 0.0:
                return 0.0
            if step <= 1e-16 * v:
                break
        if 0.5 * curvature * v * v - size * v + beta * v**p >= 0.0:
            return 0.0
    return v if z > 0.0 else -v


@kernel
def descend(G, gradient, w, beta, p, epochs):
    """Sweep over the columns of a Gram matrix, each coefficient made the best for the others; q − Gw is kept up to date."""
    k = np.uint64(len(w))
    for _ in range(epochs):
        changed = False
        for j in range(k):
            new = best_coefficient(G[j, j], gradient[j] + G[j, j] * w[j], beta, p)
            step = new - w[j]
            if step != 0.0:
                changed = True
                w[j] = new
                for i in range(k):
                    gradient[i] -= step * G[j, i]
        if not changed:
            break


def penalty_slope(w, beta, p):
    """Return the derivative of beta |w|ᵖ where w is not zero, else 0."""
    size = np.abs(w)
    return np.sign(w) * np.where(size > 0, beta * p * np.where(size > 0, size, 1.0) ** (p - 1), 0.0)


def objective(G, q, w, beta, p):
    """Return ½‖c − Aw‖² − ½‖c‖² + beta Σ|w|ᵖ."""
    return float(w @ (G @ w) / 2 - q @ w + beta * (np.abs(w) ** p).sum())


def newton(G, q, w, beta, p):
    """Take a Newton step in the nonzero coefficients, shortened until it lowers the objective; stay where none does."""
    support = np.flatnonzero(w)
    v, before = w[support], objective(G, q, w, beta, p)
    H = G[np.ix_(support, support)] + np.diag(beta * p * (p - 1) * np.abs(v) ** (p - 2))
    try:
        factor = cho_factor(H, check_finite=False)
    except np.linalg.LinAlgError:
        return w
    step = cho_solve(factor, (q - G @ w)[support] - penalty_slope(v, beta, p), check_finite=False)
    for share in 0.5 ** np.arange(HALVINGS):
        after = w.copy()
        after[support] += share * step
        if objective(G, q, after, beta, p) < before:
            return after
    return w


def step_of(G, q, beta, p, total):
    """Return a step for `iterate`: sweeps, then Newton if the signs stayed; the residual is the last move in the objective."""

    def step(w):
        after = w.copy()
        descend(G, q - G @ w, after, beta, p, EPOCHS)
        if np.array_equal(np.sign(after), np.sign(w)) and after.any():
            after = newton(G, q, after, beta, p)
        slope = (q - G @ after - penalty_slope(after, beta, p))[after != 0]
        scale = np.sqrt(np.diag(G)[after != 0] * total)
        residual = float((np.abs(slope) / np.maximum(scale, np.finfo(float).tiny)).max(initial=0.0))
        return after, objective(G, q, after, beta, p), 0.0 if np.array_equal(after, w) else residual

    return step


class LpRegression(Iterative, LinearPredictor, Regressor):
    """Fit y = x·w + b by least squares with the penalty alpha·Σ|w|ᵖ.

    Parameters
    ----------
    p : Power of the penalty, above 0 and at most 2. Below 1 the fit is a local optimum, reached from that of p = 1.
    alpha : Strength of the penalty, above 0, beside the plain sum of squares.
    fit_intercept : Whether b is fitted (never penalized) or zero.
    max_iter : Rounds of two sweeps at most.
    tol : Stop when no column's gradient exceeds this share of its length times that of the target.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    coef_ : (n_features,) or (n_targets, n_features)
    intercept_ : float or (n_targets,)
    n_iter_ : Rounds used.
    converged_ : Whether the gradient is as small as asked.
    trace_ : Objective after each round, less half the target's sum of squares.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 2.0, 5.0]
    >>> LpRegression(p=1, alpha=2.0).fit(X, y).coef_, LpRegression(p=2, alpha=1.0).fit(X, y).coef_
    (array([0.9]), array([0.916667]))
    >>> model = LpRegression(p=0.5, alpha=2.0).fit(X, y)
    >>> model.certify(X, y).kind
    'local'
    """

    _parameter_constraints = {
        "p": [Interval(Real, 0, 2, closed="right")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(self, p=1.5, alpha=1.0, *, fit_intercept=True, max_iter=10_000, tol=1e-12, verbose=0, checkpoint=None):
        self.p = p
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X and targets y; a weight means repetition. Stored tables are taken as by `Lasso`."""
        blocks = self._blocks(X, y, sample_weight, reset=True, multi_output=True)
        data = data_of(blocks, self.fit_intercept)
        coefs, runs = [], []
        with serial_blas(), self._fitting(blocks, len(data.targets), X=X, y=y) as fitting:
            for table, c in data.targets:
                pool = ws.Pool(table)
                pool.add(np.flatnonzero(table.norms > 0))
                runs.append(self._run(pool, c, data, fitting, blocks.dtype))
                coefs.append(np.zeros(table.d))
                coefs[-1][pool.columns] = runs[-1].state
        coef = as_output(np.array(coefs), blocks.dtype)
        self.coef_, self.intercept_ = coef, self._intercept(coef, data, blocks.dtype)
        if is_single(blocks):
            self.coef_, self.intercept_ = coef[0], self.intercept_[0]
        self.n_iter_, self.converged_ = max(run.n_iter for run in runs), all(run.converged for run in runs)
        self.trace_ = runs[0].trace if len(runs) == 1 else np.concatenate([run.trace for run in runs])
        return self

    def _intercept(self, coef, data, dtype):
        free = data.mean_y - coef.astype(float) @ data.mean_x if self.fit_intercept else np.zeros(len(coef))
        return as_output(free, dtype)

    def _run(self, pool, c, data, fitting, dtype):
        G, q = np.ascontiguousarray(pool.gram[: pool.size, : pool.size]), pool.table.start[pool.columns]
        beta, total, w = self.alpha / 2, float(c @ c), np.zeros(pool.size)
        if self.p <= 1:
            start, inside = ws.start(pool.table, c), ws.Pool(pool.table)
            w = ws.solve(pool.table, c, beta, 0.0, False, LASSO, start, inside, self.max_iter)[0].w[pool.columns]

        def fitted(w):
            coef = np.zeros((1, pool.table.d))
            coef[0, pool.columns] = w
            return {"coef_": as_output(coef[0], dtype), "intercept_": self._intercept(coef, data, dtype)[0]}

        step, noise = step_of(G, q, beta, float(self.p), total), 1e-12 * total  # the objective is a difference of such sums
        return fitting.iterate(step, w, tol=self.tol, monotone="down", rounding=noise, name="ℓp regression", fitted=fitted)

    def certify(self, X, y=None, sample_weight=None):
        """Prove how far the objective is from its least value; for p < 1, that no single coefficient can be improved."""
        check_is_fitted(self)
        blocks = self._blocks(X, y, sample_weight, reset=False, multi_output=True)
        data = data_of(blocks, self.fit_intercept, exact=True)
        coef, intercept = np.atleast_2d(self.coef_).astype(float), np.atleast_1d(self.intercept_).astype(float)
        checks = []
        for t, (table, c) in enumerate(data.targets):
            best = data.mean_y[t] - data.mean_x @ coef[t] if self.fit_intercept else 0.0
            shortfall = data.weight / 2 * (best - intercept[t]) ** 2
            suffix = f" {t}" if len(coef) > 1 else ""
            checks += optimality(table, c, coef[t], self.alpha / 2, float(self.p), shortfall, suffix)
            if self.fit_intercept:
                floor = np.sqrt(ls.EPS) * (abs(data.mean_y[t]) + float(np.abs(data.mean_x) @ np.abs(coef[t])))
                checks.append(same(intercept[t], best, f"intercept{suffix}", "the fit passes through the mean", floor=floor))
        return Certificate(*checks, subject=repr(self))


def optimality(table, c, w, beta, p, shortfall, suffix):
    """The checks of coefficients: the gap, or the best single replacement; and the gradient in the nonzero ones."""
    everything, support = np.arange(table.d), np.flatnonzero(w)

    def products(w):
        residual = c - table.image(np.flatnonzero(w), w[w != 0])
        return residual, table.products(residual, everything)

    r, z = products(w)
    square = float(r @ r)
    value = square / 2 + beta * float((np.abs(w) ** p).sum()) + shortfall
    null = float(c @ c) / 2
    noise = ws.PRESENT * np.sqrt(table.norms * 2 * null)  # what rounding makes of a product
    if p < 1:
        each = zip(table.norms, z + table.norms * w, strict=True)
        best = np.array([best_coefficient(a, b, beta, p) for a, b in each])
        moved = best - w
        gain = z * moved - table.norms * moved**2 / 2 - beta * (np.abs(best) ** p - np.abs(w) ** p)
        worst = (float(gain.max(initial=0.0)) + shortfall) / max(value, np.sqrt(ls.EPS) * null, np.finfo(float).tiny)
        yield Check(
            f"single change{suffix}", worst, GAP_LIMIT, "local", "no change of one coefficient gains more than this share"
        )
    else:
        yield gap(value, dual(c, r, np.maximum(np.abs(z) - noise, 0.0), beta, p), null, "no coefficients do better by more")
    if len(support):
        claim = "the gradient in the nonzero coefficients vanishes"

        def slope(v):
            moved = w.copy()
            moved[support] = v
            return products(moved)[1][support] - penalty_slope(v, beta, p)

        yield equi(slope, w[support], f"coefficients{suffix}", claim, kind="proof" if p >= 1 else "local")


def dual(c, r, size, beta, p):
    """Return a lower bound of the convex objective from a residual r and the sizes of its products with the columns."""
    product, square = float(c @ r), float(r @ r)
    if p == 1:
        largest = float(size.max(initial=0.0))
        t = min(max(product, 0.0) / max(square, np.finfo(float).tiny), beta / largest if largest > 0 else np.inf)
        return t * product - t * t * square / 2
    conjugate = (p - 1) * beta * (size / (beta * p)) ** (p / (p - 1))
    return product - square / 2 - float(conjugate.sum())
