"""Kernel regression (Nadaraya & Watson): predict the average of all targets, weighted by similarity.

ŷ(x) = Σᵢ wᵢ(x) yᵢ with wᵢ(x) = sᵢ k(x, xᵢ) / Σⱼ sⱼ k(x, xⱼ): the weights are not negative and sum to one, so that predictions
stay between the least and the largest target [1, 2]. They are computed from logarithms of k: far from all rows they tend to
those of the nearest row, and are never 0/0. The bandwidth is chosen by leaving one row out at a time: with predictions ŷ₋ᵢ(xᵢ)
that do not know yᵢ, minimize E(γ) = Σᵢ sᵢ (yᵢ − ŷ₋ᵢ(xᵢ))² / Σᵢ sᵢ, over a wide grid of γ first, then to a zero of dE/dlog γ. In
tables of many rows, some thousand evenly spaced ones are left out in turn.
Certificate: the model is its rows, their targets and weights, which are taken from the data again; a bandwidth that was chosen
has the error that it states, no γ of the grid has a smaller one, and the derivative is zero.

[1] Nadaraya, Theory Probab. Appl. 9 (1964). [2] Watson, Sankhyā A 26 (1964).
"""

from numbers import Real

import numpy as np
from scipy.optimize import brentq
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core import threads
from lemmata.core.certificate import GAP_LIMIT, TINY, Certificate, Check, same
from lemmata.core.config import n_threads
from lemmata.core.estimator import Regressor, as_output
from lemmata.core.kernel import kernel
from lemmata.core.numeric import exponentials
from lemmata.kernels import RBF, choose_kernel
from lemmata.kernels.choice import choose_gamma
from lemmata.kernels.distances import squared_distances
from lemmata.kernels.sums import Reference, distinct, in_double, in_tiles
from lemmata.svm.kernel_vote import KERNEL_CONSTRAINTS, all_rows, same_kernel, same_rows

LEFT_OUT = 4096  # rows that are left out in turn at most: the error of an average of so many squares is a few percent
TILE = 64  # rows whose distances to all others are in memory at a time, for a thread
STEPS = np.arange(-6, 15)  # γ is 4^j times gamma="scale": from one flat average to the nearest row of a million
TIE = 1e-9  # relative difference of errors that may be rounding; where the nearest row decides, γ changes nothing
FLAT = 1e-6  # of the variance of the targets: change of the error per unit of log γ
INNER = 9  # points between two neighbors of the grid
ZOOMS = 6  # times that it is refined until the derivative changes its sign


@kernel
def leave_one_out(S, numbers, Y, weight, gammas, errors, slopes, e, bits, powers):
    """Add Σ s (y − ŷ₋)² and its derivative in log γ for the rows of these numbers, given their squared distances."""
    n = S.shape[1]
    for i in range(S.shape[0]):
        own = numbers[i]
        left = max(weight[own] - 1, 0.0)
        near = np.inf
        for j in range(n):
            if S[i, j] < near and (j != own or left > 0):
                near = S[i, j]
        for g in range(gammas.shape[0]):
            for j in range(n):
                e[j] = -gammas[g] * max(S[i, j] - near, 0.0)
            exponentials(e, n, bits, powers)
            for j in range(n):
                e[j] *= weight[j]
            e[own] = left if left > 0 else 0.0  # at distance 0, so that it is also the nearest
            total, far = 0.0, 0.0
            for j in range(n):
                total += e[j]
                far += e[j] * (S[i, j] - near)
            for c in range(Y.shape[0]):
                mean, turn = 0.0, 0.0
                for j in range(n):
                    mean += e[j] * Y[c, j]
                    turn += e[j] * (S[i, j] - near) * Y[c, j]
                mean /= total
                residual = Y[c, own] - mean
                errors[g] += weight[own] * residual * residual
                # dŷ/dlog γ = −γ (Σ e s y − ŷ Σ e s)/Σ e
                slopes[g] += 2 * weight[own] * residual * gammas[g] * (turn - mean * far) / total


def loo_errors(X, Y, weight, gammas):
    """Return the mean squared errors of an RBF of each γ with one row left out, and their derivatives in log γ.

    Parameters
    ----------
    X : (n, d), rows; at least two of them, counting repetitions.
    Y : (n, c), targets.
    weight : (n,), repetitions of the rows.
    gammas : (g,).

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [3.0]]), np.array([[1.0], [2.0], [2.0]])
    >>> loo_errors(X, Y, np.ones(3), np.array([1e-12, 1e3]))[0].round(6)
    array([0.5     , 0.666667])
    """
    rows = RBF().prepare(in_double(X))
    Y, n = np.ascontiguousarray(Y.T, dtype=float), X.shape[0]
    left_out, found = np.arange(0, n, -(-n // LEFT_OUT)), {}

    def work(start):
        numbers = left_out[start : start + TILE]
        S = squared_distances(rows[numbers], rows)
        bits, sums = np.empty(n, np.int64), np.zeros((2, len(gammas)))
        leave_one_out(S, numbers, Y, weight, gammas, sums[0], sums[1], np.empty(n), bits, bits.view(np.float64))
        found[start] = sums

    threads.run(work, range(0, len(left_out), TILE), n_threads())
    return sum(found[start] for start in sorted(found)) / weight[left_out].sum()


def grid_of(X, weight):
    """Return the γ among which the bandwidth is looked for."""
    return choose_gamma("scale", in_double(X), weight) * 4.0**STEPS


def choose_by_loo(X, Y, weight):
    """Return γ with the least leave-one-out error, and the error."""
    gammas = grid_of(X, weight)
    if len(weight) == 1 and weight[0] <= 1:
        return float(gammas[0]), np.nan  # a single row is predicted everywhere, whatever γ is
    errors, slopes = loo_errors(X, Y, weight, gammas)
    ties = np.flatnonzero(errors <= errors.min() * (1 + TIE))
    best = len(gammas) - 1 if ties[-1] == len(gammas) - 1 else int(ties[0])
    for _ in range(ZOOMS):
        if best in (0, len(gammas) - 1):
            break  # the flat average, or the nearest row: no γ between is better
        low, high = gammas[best - 1], gammas[best + 1]
        if slopes[best - 1] < 0 < slopes[best + 1]:
            found = np.exp(brentq(lambda t: loo_errors(X, Y, weight, np.exp([t]))[1][0], np.log(low), np.log(high), xtol=1e-9))
            error = float(loo_errors(X, Y, weight, np.array([found]))[0][0])
            if error <= errors[best]:
                return float(found), error
        gammas = np.geomspace(low, high, INNER + 2)
        errors, slopes = loo_errors(X, Y, weight, gammas)
        best = int(errors.argmin())
    return float(gammas[best]), float(errors[best])


def averages_block(X, weight, reference, everywhere):
    """Averages of targets for a block, (n, c); that of all rows where no row is similar at all."""
    sums = reference.soft_sums(X)
    return np.divide(sums[:, 1:], sums[:, :1], out=np.tile(everywhere, (len(sums), 1)), where=sums[:, :1] > 0)


def merged(X, Y, weight):
    """Return the different rows, the mean target of each, and its weight."""
    first, group = distinct(X)
    total = np.bincount(group, weights=weight)
    means = np.stack([np.bincount(group, weights=weight * y) / total for y in Y.T], axis=1)
    return X[first], means, total


class KernelRegression(Regressor):
    """Predict averages of the targets, weighted by similarity (Nadaraya & Watson).

    Parameters
    ----------
    kernel : "rbf", a kernel of `lemmata.kernels` without negative values, or a function of two tables; "poly" of even degree.
    gamma : "loo" chooses the γ of "rbf" that predicts best when each row is left out in turn; or a number for "rbf" and "poly",
        "scale" for 1 / (columns · variance of all entries), "auto" for 1 / columns. Other kernels bring their own.
    degree : Degree of "poly".
    coef0 : Constant of "poly".

    Attributes
    ----------
    kernel_ : The kernel.
    X_train_ : The different rows of the table, (m, d).
    y_train_ : The mean target of each, (m,), or (m, c) for several targets.
    weights_ : The weight of each, (m,).
    loo_error_ : With gamma="loo", the mean squared error of predictions that leave the row itself out.

    Examples
    --------
    >>> X, y = [[0.0], [1.0]], [1.0, 2.0]
    >>> model = KernelRegression(gamma=1.0).fit(X, y)
    >>> model.predict([[0.25], [-1000.0]]).round(6)
    array([1.377541, 1.      ])
    >>> model.certify(X, y).holds
    True
    """

    most_rows = 20_000
    _parameter_constraints = KERNEL_CONSTRAINTS | {
        "gamma": [StrOptions({"scale", "auto", "loo"}), Interval(Real, 0, None, closed="neither")]
    }

    def __init__(self, kernel="rbf", *, gamma="loo", degree=3, coef0=0.0):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        return tags

    def _by_loo(self):
        """Tell whether the bandwidth is to be chosen."""
        if isinstance(self.kernel, str) and self.kernel == "poly" and self.gamma == "loo":
            raise ValueError("gamma='loo' chooses the bandwidth of kernel='rbf'; give a number for 'poly'.")
        return isinstance(self.kernel, str) and self.kernel == "rbf" and isinstance(self.gamma, str) and self.gamma == "loo"

    def _named(self, X, weight):
        """Return the kernel that the parameters name; those without γ do not ask what γ is."""
        gamma = 1.0 if isinstance(self.gamma, str) and self.gamma == "loo" else self.gamma
        return choose_kernel(self.kernel, in_double(X), weight, gamma=gamma, degree=self.degree, coef0=self.coef0)

    def _data(self, X, y, sample_weight, reset):
        """Return rows, targets (n, c) and weights."""
        rows, target, weight = all_rows(self._blocks(X, y, sample_weight, reset=reset, multi_output=True))
        target = target.astype(float, copy=False)
        weight = np.ones(len(target)) if weight is None else weight
        return rows, target.reshape(len(target), -1), weight, target.ndim == 1

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Keep the different rows X and their targets y; a weight means repetition."""
        rows, target, weight, single = self._data(X, y, sample_weight, reset=True)
        vars(self).pop("loo_error_", None)
        if self._by_loo():
            gamma, self.loo_error_ = choose_by_loo(rows, target, weight)
            self.kernel_ = RBF(gamma=gamma)
        else:
            self.kernel_ = self._named(rows, weight)
        if self.kernel_.nonnegative is False:
            raise ValueError(f"KernelRegression averages with weights, and {self.kernel_!r} has negative values; use RBF.")
        self.X_train_, means, self.weights_ = merged(rows, target, weight)
        self.y_train_ = means[:, 0] if single else means
        return self

    def predict(self, X):
        """Predict the average of the targets, weighted by similarity; where no row is similar, that of all rows."""
        check_is_fitted(self)
        blocks = self._blocks(X, reset=False)
        means = self.y_train_.reshape(len(self.weights_), -1)
        terms = self.weights_[:, None] * np.column_stack([np.ones(len(means)), means])
        reference = Reference(self.kernel_, self.X_train_, terms)
        values = in_tiles(blocks).map(averages_block, reference, self.weights_ @ means / self.weights_.sum())
        values = np.clip(values, means.min(axis=0), means.max(axis=0))  # an average is, but for rounding
        return as_output(values[:, 0] if self.y_train_.ndim == 1 else values, blocks.dtype)

    def certify(self, X, y=None, sample_weight=None):
        """Prove that rows, targets, weights and kernel are those of the data, and a chosen bandwidth the best near it."""
        check_is_fitted(self)
        rows, target, weight, single = self._data(X, y, sample_weight, reset=False)
        expected, means, total = merged(rows, target, weight)
        checks = [
            same_rows(self.X_train_, expected),
            same(self.y_train_, means[:, 0] if single else means, "targets", "each row has the mean of its targets"),
            same(self.weights_, total, "weights", "each row has its weight, and no weight is negative"),
        ]
        if self._by_loo():
            checks += bandwidth_checks(self.kernel_, self.loo_error_, rows, target, weight)
        else:
            checks.append(same_kernel(self.kernel_, self._named(rows, weight), in_double(expected)))
        return Certificate(*checks, subject=repr(self))


def bandwidth_checks(chosen, stated, X, Y, weight):
    """Check a bandwidth that leaving one out chose: its error, against those of a wide grid, and its derivative."""
    grid, gamma = grid_of(X, weight), 0.5 / float(chosen._value("length_scale")) ** 2
    if len(weight) == 1 and weight[0] <= 1:
        return [same([gamma, stated], [grid[0], np.nan], "bandwidth", "a single row says nothing about the bandwidth")]
    others = loo_errors(X, Y, weight, grid)[0]
    (error,), (slope,) = loo_errors(X, Y, weight, np.array([gamma]))
    spread = float(weight @ ((Y - weight @ Y / weight.sum()) ** 2).sum(axis=1) / weight.sum())
    excess = (error - others.min()) / max(spread, TINY)
    checks = [
        same(stated, error, "leave-one-out", "the stated error is that of leaving each row out", floor=1e-9 * spread),
        Check("grid", excess, GAP_LIMIT, "local", "no bandwidth of a wide grid has a smaller error"),
    ]
    ends = grid[[0, -1]]
    end = ends[np.abs(np.log(ends / gamma)).argmin()]
    if abs(np.log(gamma / end)) < np.log(2):  # at the end of the grid there is no zero of the derivative
        return [*checks, same(gamma, end, "bandwidth", "the bandwidth is an end of the grid")]
    claim = "the error does not change with the bandwidth to first order"
    return [*checks, Check("bandwidth", abs(slope) / max(spread, TINY), FLAT, "local", claim)]
