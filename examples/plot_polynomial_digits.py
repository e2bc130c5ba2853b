"""
Digits of a polynomial
======================

Powers of a variable look alike: on an interval far from zero, x⁹ and x¹⁰ are nearly the same column. The coefficients of a
polynomial of high degree then depend on the last digits of the data, and a solver that loses digits loses all of them. Here
the true least-squares coefficients are known, because they are computed in exact rational arithmetic.
"""

# %%
# Forty points between −9 and −3, where the powers reach billions, and a curve with noise.

from fractions import Fraction

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from lemmata.linear_model import PolynomialRegression

rng = np.random.default_rng(5)
x = np.round(np.linspace(-9.0, -3.0, 40), 2)
y = np.round(np.sin(x) + 0.1 * x + 0.02 * rng.normal(size=40), 4)
X = x[:, None]


def exact(degree):
    """Solve the normal equations in rational numbers: every digit is right."""
    powers = [[Fraction(v) ** k for k in range(degree + 1)] for v in x]
    target = [Fraction(v) for v in y]
    size = degree + 1
    rows = [
        [sum(p[i] * q for p, q in zip(powers, column, strict=True)) for column in [*zip(*powers, strict=True), target]]
        for i in range(size)
    ]
    for i in range(size):  # Gauss and Jordan; the matrix is positive definite, so no pivot vanishes
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for k in range(size):
            if k != i:
                rows[k] = [a - rows[k][i] * b for a, b in zip(rows[k], rows[i], strict=True)]
    return [row[-1] for row in rows]


def digits(found, truth):
    """Count the digits that are right in the worst coefficient."""
    worst = max(abs((Fraction(float(f)) - t) / t) for f, t in zip(found, truth, strict=True))
    return float(np.clip(-np.log10(float(worst)) if worst else 16, 0, 16))


def with_lemmata(degree):
    model = PolynomialRegression(degree).fit(X, y)
    return [model.intercept_, *model.coef_]


def with_scikit_learn(degree, tol=1e-6):
    features = PolynomialFeatures(degree, include_bias=False)
    model = make_pipeline(features, LinearRegression(tol=tol)).fit(X, y)
    return [model[-1].intercept_, *model[-1].coef_]


def with_normal_equations(degree):
    V = np.vander(x, degree + 1, increasing=True)
    return np.linalg.solve(V.T @ V, V.T @ y)


methods = {
    "lemmata": with_lemmata,
    "scikit-learn, tol=1e-16": lambda degree: with_scikit_learn(degree, tol=1e-16),
    "scikit-learn, default": with_scikit_learn,
    "normal equations": with_normal_equations,
}
degrees = range(1, 13)
right = {name: [] for name in methods}
for degree in degrees:
    truth = exact(degree)
    for name, method in methods.items():
        right[name].append(digits(method(degree), truth))

# %%
# Each degree costs about one digit even if the columns are scaled: that is the condition number of the problem. The normal
# equations pay twice, because XᵀX squares it. scikit-learn's default gives up every direction that is a million times smaller
# than the largest one (its `tol`); from degree 5 on, that is part of the answer. With the cut at rounding, its singular value
# decomposition pays once, but for columns of very different scales, and from degree 11 on even that cut is too generous.
# lemmata's QR factorization does not mind the scales, and takes one step of refinement, with the residual in twice the
# precision. What is left are the digits of the data.

figure, (left, ax) = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained", width_ratios=[1, 1.35])
fit = PolynomialRegression(10).fit(X, y)
fine = np.linspace(-9.0, -3.0, 400)
left.plot(x, y, "o", color="0.55", ms=4, label="points")
left.plot(fine, fit.predict(fine[:, None]), color="#2a9d6f", lw=2, label="degree 10")
left.set(xlabel="x", ylabel="y", title="The curve")
left.legend(frameon=False)
colors = ["#2a9d6f", "#d08c1d", "#e8c88f", "0.65"]
for (name, found), color, mark in zip(right.items(), colors, "osD^", strict=True):
    ax.plot(degrees, found, marker=mark, color=color, lw=2, ms=5, label=name)
ax.set(xlabel="degree of the polynomial", ylabel="right digits in the worst coefficient", ylim=(-0.4, 16.4))
ax.set(xticks=list(degrees), title="What is left of sixteen digits")
ax.legend(frameon=False)
for panel in (left, ax):
    panel.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The certificate of the hardest fit. It holds: what is proved is that no other coefficients fit better.

PolynomialRegression(12).fit(X, y).certify(X, y)
