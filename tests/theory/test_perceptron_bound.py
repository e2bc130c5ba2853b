"""The mistake bound of a table is that of its augmented, folded rows, and no perceptron exceeds it."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from lemmata.linear_model import Perceptron
from lemmata.theory.perceptron_bound import perceptron_bound

X = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, 0.5]])
y = np.array([1, 1, -1, -1])


@pytest.mark.item("LRN-30")
def test_numbers_of_the_worked_example():
    result = perceptron_bound(X, y)
    assert result.radius == pytest.approx(2.449490, abs=5e-7)
    assert result.margin == pytest.approx(1.603567, abs=5e-7)
    assert result.bound == pytest.approx(2.333333, abs=5e-7)
    assert Perceptron(shuffle=False).fit(X, y).mistakes_.sum() == 2 <= result.bound
    # R and γ of the rows without their constant are other numbers, and belong to a perceptron through the origin
    assert perceptron_bound(X, y, fit_intercept=False).bound != pytest.approx(result.bound, rel=0.01)
    assert perceptron_bound(csr_array(X), y).bound == pytest.approx(result.bound)


@pytest.mark.item("LRN-30")
@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_the_rows_leads_to_more_mistakes(seed):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(30, 3))
    labels = np.where(Z @ [1.0, -2.0, 0.5] + 0.3 > 0, 1, -1)
    keep = np.abs(Z @ [1.0, -2.0, 0.5] + 0.3) > 0.3
    Z, labels = Z[keep], labels[keep]
    result = perceptron_bound(Z, labels)
    for order in range(5):
        rows = np.random.default_rng(order).permutation(len(Z))
        model = Perceptron(shuffle=False).fit(Z[rows], labels[rows])
        assert model.mistakes_.sum() <= result.bound
    # the margin is that of a quadratic program solved by SciPy: max over unit z of the least product is 1 / min ‖w‖
    A = labels[:, None] * np.column_stack([Z, np.ones(len(Z))])
    start = np.append([1.0, -2.0, 0.5], 0.3) / 0.3
    solved = minimize(
        lambda w: w @ w,
        start,
        jac=lambda w: 2 * w,
        constraints={"type": "ineq", "fun": lambda w: A @ w - 1, "jac": lambda w: A},
    )
    assert result.margin == pytest.approx(1 / np.sqrt(solved.fun), rel=1e-5)
    assert perceptron_bound(Z, labels, threshold=2.0).bound == pytest.approx((result.radius**2 + 4) / result.margin**2)


def test_overlapping_classes_have_no_bound():
    result = perceptron_bound([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert result.bound == np.inf
    assert result.margin <= 1e-12
    with pytest.raises(ValueError, match="y holds 3"):
        perceptron_bound([[0.0], [1.0], [2.0]], [0, 1, 2])
    with pytest.raises(ValueError, match="threshold"):
        perceptron_bound(X, y, threshold=-1.0)
