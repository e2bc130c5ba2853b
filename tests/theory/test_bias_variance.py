"""The parts of an expected error: against closed forms for ridge, and sums that agree with the error itself."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from lemmata.linear_model import LinearRegression, LogisticRegression, Ridge
from lemmata.theory.bias_variance import bias_variance


def ridge_parts(X, w, sigma2, alpha, rows):
    """Closed form: E ŵ = A XᵀX w and Cov ŵ = σ² A XᵀX A with A = (XᵀX + αI)⁻¹, for one row after another."""
    G = X.T @ X
    A = np.linalg.inv(G + alpha * np.eye(len(G)))
    return (rows @ (A @ G @ w - w)) ** 2, np.einsum("ij,jk,ik->i", rows, sigma2 * A @ G @ A, rows)


@pytest.mark.item("MSL-03")
@pytest.mark.parametrize(("alpha", "bias", "variance"), [(1.0, 0.0277778, 0.1388889), (0.0, 0.0, 0.2)])
def test_one_column_has_the_numbers_of_the_closed_form(alpha, bias, variance):
    x = np.array([[-1.5], [-0.5], [0.5], [1.5]])  # centered, xᵀx = 5
    closed = ridge_parts(x, np.array([1.0]), 1.0, alpha, np.array([[1.0]]))
    assert closed[0][0] == pytest.approx(bias, abs=5e-8)
    assert closed[1][0] == pytest.approx(variance, abs=5e-8)
    model = Ridge(alpha=alpha, fit_intercept=False) if alpha else LinearRegression(fit_intercept=False)
    parts = bias_variance(model, lambda rng: (x, x[:, 0] + rng.normal(size=4)), [[1.0]], [1.0], 1.0, n_fits=500, random_state=0)
    # the parameters' mean squared error is bias² + variance: 0.1666667 against 0.2
    errors = parts.standard_errors
    assert abs(parts.bias - bias) < 4 * errors["bias"] + 1e-12
    assert abs(parts.variance - variance) < 4 * errors["variance"]
    assert parts.noise == 1.0
    if alpha:
        assert bias + variance == pytest.approx(0.1666667, abs=1e-7)
        assert bias + variance < 0.2


@pytest.mark.item("MSL-03")
@pytest.mark.parametrize("alpha", [0.5, 5.0])
def test_several_columns_agree_with_the_closed_form_of_ridge(alpha):
    rng = np.random.default_rng(1)
    X, w, rows = rng.normal(size=(20, 3)), np.array([1.0, -2.0, 0.5]), rng.normal(size=(6, 3))

    def sampler(rng):
        return X, X @ w + 0.7 * rng.normal(size=20)

    parts = bias_variance(Ridge(alpha=alpha, fit_intercept=False), sampler, rows, rows @ w, 0.49, n_fits=300, random_state=2)
    bias, variance = ridge_parts(X, w, 0.49, alpha, rows)
    assert abs(parts.bias - bias.mean()) < 4 * parts.standard_errors["bias"]
    assert abs(parts.variance - variance.mean()) < 4 * parts.standard_errors["variance"]
    assert parts.standard_errors["variance"] < 0.2 * variance.mean()
    assert "noise" not in parts.standard_errors
    assert parts.rows.shape == (3, 6)
    np.testing.assert_allclose(parts.rows.mean(axis=1), [parts.noise, parts.bias, parts.variance])


@pytest.mark.item("MSL-03")
def test_the_parts_add_up_to_the_error_and_the_bias_is_squared():
    rng = np.random.default_rng(3)
    X, rows = rng.normal(size=(15, 2)), rng.normal(size=(4, 2))
    w, sigma = np.array([3.0, 1.0]), 0.5
    model = Ridge(alpha=20.0, fit_intercept=False)

    def sampler(rng):
        return X, X @ w + sigma * rng.normal(size=15)

    parts = bias_variance(model, sampler, rows, rows @ w, sigma**2, n_fits=200, random_state=0)
    assert parts.error == pytest.approx(parts.noise + parts.bias + parts.variance, rel=1e-14)
    # the error itself, with fresh targets, from other fits
    rng = np.random.default_rng(99)
    losses = []
    for _ in range(500):
        prediction = model.fit(*sampler(rng)).predict(rows)
        losses.append(((rows @ w + sigma * rng.normal(size=4) - prediction) ** 2).mean())
    spread = np.hypot(np.std(losses) / np.sqrt(500), parts.standard_errors["error"])
    assert abs(np.mean(losses) - parts.error) < 4 * spread
    # 002 has "noise + bias + variance": with the bias itself the sum is wrong
    unsquared = parts.noise + np.sqrt(np.maximum(parts.rows[1], 0)).mean() + parts.variance
    assert abs(np.mean(losses) - unsquared) > 10 * spread
    # the identity is exact on the fits themselves: bias² + variance is the mean of (f − ŷ)²
    seeds = np.random.default_rng(0).spawn(200)
    squares = [((model.fit(*sampler(seed)).predict(rows) - rows @ w) ** 2).mean() for seed in seeds]
    assert parts.bias + parts.variance == pytest.approx(np.mean(squares), rel=1e-10)


class Constant(RegressorMixin, BaseEstimator):
    """Predicts a constant whatever it is given."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.full(len(X), 1e8)


class Coin(ClassifierMixin, BaseEstimator):
    """Predicts the first label of its training set."""

    def fit(self, X, y):
        self.classes_, self.label_ = np.unique(y), y[0]
        return self

    def predict(self, X):
        return np.full(len(X), self.label_)


@pytest.mark.item("MSL-03")
def test_what_does_not_vary_has_no_variance():
    parts = bias_variance(Constant(), lambda rng: ([[0.0]], [0.0]), [[0.0]], [1e8 - 3], n_fits=5, random_state=0)
    assert parts.variance == 0
    assert parts.bias == pytest.approx(9.0)
    assert set(parts.standard_errors.values()) == {0.0}


@pytest.mark.parametrize("right", [0.8, 0.3])
def test_labels_have_the_decomposition_of_domingos(right):
    """A learner that predicts the best label with a known probability, on rows whose labels are flipped at times."""

    def sampler(rng):
        first = int(rng.random() < right)
        return np.zeros((2, 1)), np.array([first, 1 - first])

    parts = bias_variance(Coin(), sampler, np.zeros((3, 1)), np.ones(3), 0.1, n_fits=4000, random_state=0)
    assert parts.bias == (right < 0.5)
    share = 1 - (parts.bias + parts.variance)  # how often it was right
    assert share == pytest.approx(right, abs=0.03)
    assert parts.variance == pytest.approx(-share if right < 0.5 else 1 - share)  # to vary helps where the main prediction errs
    assert parts.noise == pytest.approx((2 * share - 1) * 0.1)
    assert parts.error == pytest.approx(share * 0.1 + (1 - share) * 0.9)
    assert parts.standard_errors["error"] == pytest.approx(0.8 * np.sqrt(share * (1 - share) / 4000), rel=0.02)


def test_labels_of_a_real_classifier_add_up():
    rng = np.random.default_rng(0)
    rows = np.linspace(-2, 2, 9)[:, None]

    def sampler(rng):
        x = rng.normal(size=(40, 1))
        return x, np.where(rng.random(40) < 0.85, x[:, 0] > 0.2, x[:, 0] <= 0.2)

    parts = bias_variance(LogisticRegression(), sampler, rows, rows[:, 0] > 0.2, 0.15, n_fits=80, random_state=1)
    losses = []
    for _ in range(80):
        fresh = np.where(rng.random(9) < 0.85, rows[:, 0] > 0.2, rows[:, 0] <= 0.2)
        losses.append((LogisticRegression().fit(*sampler(rng)).predict(rows) != fresh).mean())
    assert abs(np.mean(losses) - parts.error) < 4 * np.hypot(np.std(losses) / np.sqrt(80), parts.standard_errors["error"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"truth": [1.0, 2.0]}, "one entry for each of the 1 rows"),
        ({"noise": -1.0}, "cannot be negative"),
        ({"n_fits": 2}, "n_fits"),
        ({"estimator": Coin(), "noise": 0.6}, "cannot exceed 1/2"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    given = {"estimator": Constant(), "sampler": lambda rng: ([[0.0]], [0.0]), "X": [[0.0]], "truth": [1.0]} | arguments
    with pytest.raises(ValueError, match=message):
        bias_variance(**given)
