"""The distance of convex hulls, against the catalogue, a general quadratic program, and the machine with a hard margin."""

from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.sparse import csr_array

from lemmata.kernels import RBF, Polynomial
from lemmata.kernels.features import feature_map
from lemmata.svm import SVC, hull_distance

FOUR = np.array([[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]])
SIGNS = np.array([1, 1, -1, -1])


def apart(n=60, d=3, gap=0.2, seed=0):
    """Give rows on two sides of a plane, at least half a gap away from it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    normal = rng.normal(size=d)
    normal /= np.linalg.norm(normal)
    y = X @ normal > 0
    return X + np.where(y, gap / 2, -gap / 2)[:, None] * normal, y


def by_program(P, Q):
    """Minimize ‖Pᵀμ − Qᵀν‖² over the simplices with a solver that we did not write."""
    rows, m = np.vstack([P, -Q]), len(P)
    ones = np.zeros((2, len(rows)))
    ones[0, :m], ones[1, m:] = 1.0, 1.0
    start = np.append(np.full(m, 1 / m), np.full(len(Q), 1 / len(Q)))
    found = minimize(
        lambda a: float(((a @ rows) ** 2).sum()),
        start,
        jac=lambda a: 2 * rows @ (a @ rows),
        bounds=[(0, 1)] * len(rows),
        constraints={"type": "eq", "fun": lambda a: ones @ a - 1, "jac": lambda a: ones},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.sqrt(found.fun)


@pytest.mark.item("KRN-16")
def test_four_rows_by_hand():
    result = hull_distance(FOUR, SIGNS)
    assert result.distance == pytest.approx(2.683282, abs=5e-7)
    assert_allclose(result.mu, [1, 0], atol=1e-12)
    assert_allclose(result.nu, [0.6, 0.4], atol=1e-12)
    assert_allclose(result.w, [2 / 3, 1 / 3], rtol=1e-12)
    assert result.b == pytest.approx(0, abs=1e-12)
    assert result.distance == pytest.approx(2 / np.linalg.norm(result.w), rel=1e-12)
    assert result.margin == pytest.approx(1.341641, abs=5e-7)
    assert_allclose(result.alpha, [0.277778, 0, 0.166667, 0.111111], atol=5e-7)  # those of KRN-14
    assert_allclose((result.w @ (result.p + result.q)) / 2 + result.b, 0, atol=1e-12)  # the plane bisects pq
    assert result.certify(FOUR, SIGNS).holds


@pytest.mark.item("KRN-16")
@pytest.mark.parametrize("seed", range(4))
def test_a_general_solver_finds_no_smaller_distance(seed):
    X, y = apart(30, 2 + seed, seed=seed)
    result = hull_distance(X, y)
    other = by_program(X[y], X[~y])
    assert result.distance == pytest.approx(other, rel=1e-6)  # what SLSQP reaches
    assert result.distance <= other * (1 + 1e-12)
    assert_allclose(result.p, result.mu @ X[y], rtol=1e-12)
    assert_allclose(result.q, result.nu @ X[~y], rtol=1e-12)
    assert result.certify(X, y).holds


@pytest.mark.item("KRN-16")
@pytest.mark.parametrize(
    ("kernel", "options"),
    [("linear", {}), ("rbf", {"gamma": 1.0}), ("poly", {"degree": 2, "gamma": 0.5, "coef0": 1.0}), (RBF(0.7), {})],
    ids=["linear", "rbf", "poly", "Kernel"],
)
def test_the_machine_with_a_hard_margin_is_the_plane_between_the_hulls(kernel, options):
    X, y = apart(50, 2, gap=0.5)
    result = hull_distance(X, y, kernel, **options)
    model = SVC(kernel=kernel, hard_margin=True, tol=1e-9, **options).fit(X, y)
    alpha = np.zeros(len(X))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert result.distance == pytest.approx(2 * model.margin_[0], rel=1e-7)
    assert result.b == pytest.approx(model.intercept_[0], rel=1e-6)
    assert_allclose(result.alpha, alpha, atol=1e-6 * alpha.max())
    assert result.alpha.sum() == pytest.approx(4 / result.distance**2, rel=1e-9)  # Σα = ‖w‖²
    assert result.certify(X, y).holds


def test_a_kernel_is_the_hull_of_its_features():
    X, y = apart(40, 2)
    kernel = Polynomial(2, 1.0, gamma=1.0)
    assert hull_distance(X, y, kernel).distance == pytest.approx(hull_distance(feature_map(kernel, X), y).distance, rel=1e-7)


def test_hulls_that_meet_have_no_plane_between_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), np.arange(80) % 2
    for kernel in ("linear", Polynomial(2, 1.0, gamma=1.0)):
        result = hull_distance(X, y, kernel)
        assert not result.separable
        assert (result.distance, result.alpha, result.w, result.b) == (0, None, None, None)
        assert result.certify(X, y).holds
        assert not replace(result, mu=np.roll(result.mu, 1)).certify(X, y).holds
    result = hull_distance(X, y)
    assert_allclose(result.p, result.q, atol=1e-12)


def test_hulls_that_touch_meet():
    X, y = np.array([[0.0, 0], [1, 0], [0.5, 0], [0.5, 1]]), np.array([0, 0, 1, 1])
    assert not hull_distance(X, y).separable


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_change_of_one_percent_is_refused(kernel):
    X, y = apart()
    result = hull_distance(X, y, kernel)
    rng = np.random.default_rng(0)
    for name in (f.name for f in fields(result) if f.name != "kernel"):
        value = getattr(result, name)
        if value is not None:
            moved = value + 0.01 * np.abs(value).max() * rng.choice([-1, 1], size=np.shape(value))
            if name in ("mu", "nu"):
                moved = np.abs(moved) / np.abs(moved).sum()
            certificate = replace(result, **{name: moved}).certify(X, y)
            assert not certificate.holds, (name, str(certificate))


def test_rows_may_be_far_from_zero_sparse_or_doubled():
    X, y = apart(300, 4)
    result = hull_distance(X, y)
    far = hull_distance(X + 1e6, y)
    assert far.distance == pytest.approx(result.distance, rel=1e-8)  # 1e6 costs six of sixteen digits, a sum one more
    assert far.certify(X + 1e6, y).holds
    sparse = hull_distance(csr_array(X), y)
    assert sparse.distance == pytest.approx(result.distance, rel=1e-9)
    assert sparse.certify(csr_array(X), y).holds
    twice = hull_distance(np.vstack([X, X]), np.append(y, y))
    assert twice.distance == pytest.approx(result.distance, rel=1e-9)
    assert hull_distance(1e-8 * X, y).distance == pytest.approx(1e-8 * result.distance, rel=1e-9)


def test_single_rows_and_labels_of_any_kind():
    result = hull_distance([[0.0, 0.0], [3.0, 4.0]], ["a", "b"])
    assert result.distance == pytest.approx(5, rel=1e-14)
    assert_allclose(result.w, [0.24, 0.32], rtol=1e-14)  # toward "b"
    assert result.b == pytest.approx(-1, rel=1e-14)
    with pytest.raises(ValueError, match="hulls of two classes, and y holds 3"):
        hull_distance([[0.0], [1.0], [2.0]], [0, 1, 2])


@pytest.mark.parametrize("seed", [13, 19, 67, 208])
def test_hulls_that_rounding_cannot_tell_apart_are_proved_to_be_near(seed):
    # A wide RBF sees rows nearly alike: distances of hulls are below what squares of lengths can tell, or a few times that.
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 60)), int(rng.integers(1, 4))
    X, y = rng.normal(size=(n, d)), rng.integers(0, 2, n)
    for gamma in (1e-3, 1e-2, 1e-1):
        found = hull_distance(X, y, RBF(gamma=gamma))
        assert found.certify(X, y).holds, str(found.certify(X, y))
