"""SVC against worked examples, quadratic programs, libsvm, and itself by another way."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC as LibSVC

import lemmata
from lemmata.kernels import RBF, Linear, Polynomial, White, feature_map
from lemmata.svm import SVC, decomposition, svc

CORNERS = np.array([[1.0, 1.0], [2.0, 0.0], [-1.0, -1.0], [-2.0, 1.0]])
SIDES = np.array([1, 1, -1, -1])
LINE, ENDS = np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([-1, -1, 1, 1])


def heart_like(seed=0, n=270):
    """Draw a table of the size and scales of libsvm's heart_scale: 13 columns in [−1, 1], some of them binary."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 13))
    X[:, [1, 5, 8]] = np.sign(X[:, [1, 5, 8]])
    y = np.where(X @ rng.normal(size=13) + rng.normal(size=n) > 0, 1, -1)
    return X, y


def objective(model, K, y, cap):
    """Return the dual objective of a binary machine, of either library."""
    c = np.zeros(len(y))
    c[model.support_] = np.ravel(model.dual_coef_)
    assert (np.abs(c) <= cap + 1e-9).all()
    return np.abs(c).sum() - 0.5 * c @ K @ c


@pytest.fixture
def small_sets(monkeypatch):
    """Make problems of a few dozen rows large: working sets of 16 variables, rows left out early."""
    for module in (decomposition, svc):
        monkeypatch.setattr(module, "WHOLE", 20)
    monkeypatch.setattr(decomposition, "SET", 16)


@pytest.mark.item("KRN-13")
def test_hard_margin_of_four_points():
    model = SVC(kernel="linear", hard_margin=True).fit(CORNERS, SIDES)
    np.testing.assert_allclose(model.coef_, [[2 / 3, 1 / 3]], atol=1e-9)
    assert model.intercept_[0] == pytest.approx(0.0, abs=1e-9)
    assert model.margin_[0] == pytest.approx(1.341641, abs=5e-7)
    assert (SIDES * model.decision_function(CORNERS)).min() == pytest.approx(1.0, abs=1e-9)
    certificate = model.certify(CORNERS, SIDES)
    assert certificate.holds
    assert certificate["gap"].kind == "proof"


@pytest.mark.item("KRN-14")
def test_hard_margin_dual_of_four_points():
    model = SVC(kernel="linear", hard_margin=True).fit(CORNERS, SIDES)
    alpha = np.zeros(4)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    np.testing.assert_allclose(alpha, [0.277778, 0, 0.166667, 0.111111], atol=5e-7)
    squared = float((model.coef_**2).sum())
    assert alpha.sum() == pytest.approx(squared, abs=1e-9)
    assert 0.5 * squared == pytest.approx(alpha.sum() - 0.5 * squared, abs=1e-9)  # no gap
    assert np.abs(alpha * (SIDES * model.decision_function(CORNERS) - 1)).max() < 1e-9


@pytest.mark.item("KRN-13")
def test_classes_that_meet_are_refused_with_the_rows_that_show_it():
    X = np.array([[0.0, 0.0], [2.0, 2.0], [2.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match=r"hulls of the classes 1 and 0 meet .* rows \[0, 1, 2, 3\].*hard_margin=False"):
        SVC(kernel="linear", hard_margin=True).fit(X, [1, 1, 0, 0])
    assert SVC(kernel="rbf", hard_margin=True).fit(X, [1, 1, 0, 0]).score(X, [1, 1, 0, 0]) == 1.0
    twice = np.vstack([X, X[:1]])
    with pytest.raises(ValueError, match="meet"):  # one row with two labels: no kernel helps
        SVC(kernel="rbf", hard_margin=True).fit(twice, [1, 1, 0, 0, 0])


@pytest.mark.item("KRN-17")
@pytest.mark.parametrize(("C", "weight", "value"), [(0.25, 0.5, 0.375), (10.0, 1.0, 0.5)])
def test_soft_margin_on_a_line(C, weight, value):
    model = SVC(C, "linear").fit(LINE, ENDS)
    assert model.coef_[0, 0] == pytest.approx(weight, abs=1e-9)
    slack = np.maximum(1 - ENDS * model.decision_function(LINE), 0)
    assert 0.5 * weight**2 + C * slack.sum() == pytest.approx(value, abs=1e-9)
    assert model.certify(LINE, ENDS)["gap"].value < 1e-9


@pytest.mark.item("KRN-17")
def test_a_high_price_is_a_hard_margin():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(3, 1, (30, 2)), rng.normal(-3, 1, (30, 2))])
    y = np.repeat([1, 0], 30)
    soft, hard = SVC(1e6, "linear").fit(X, y), SVC(kernel="linear", hard_margin=True).fit(X, y)
    np.testing.assert_allclose(soft.coef_, hard.coef_, rtol=1e-7)
    np.testing.assert_allclose(soft.intercept_, hard.intercept_, rtol=1e-7)


@pytest.mark.item("KRN-18")
def test_kinds_of_points_and_the_bias():
    model = SVC(0.25, "linear").fit(LINE, ENDS)
    assert sorted(model.support_) == [1, 2]
    np.testing.assert_allclose(np.abs(model.dual_coef_), 0.25)
    assert model.intercept_[0] == 0.0  # no free support vector: the middle of [−½, ½]
    X, y = heart_like()
    model = SVC(0.7, gamma=0.1).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    margins = y * model.decision_function(X)
    assert (margins[alpha == 0] >= 1 - 1e-9).all()
    free = (alpha > 0) & (alpha < 0.7)
    assert free.sum() > 20
    np.testing.assert_allclose(margins[free], 1.0, atol=1e-9)
    assert (margins[alpha == 0.7] <= 1 + 1e-9).all()
    assert abs(y @ alpha) < 1e-10


@pytest.mark.item("KRN-22")
@pytest.mark.parametrize("coef0", [0.0, 1.0])
def test_a_polynomial_machine_is_a_linear_one_in_its_features(coef0):
    X, y = make_classification(80, 4, n_redundant=0, random_state=1)
    kernel = Polynomial(2, coef0)
    curved, flat = SVC(0.5, kernel).fit(X, y), SVC(0.5, "linear").fit(feature_map(kernel, X), y)
    new = np.random.default_rng(0).normal(size=(50, 4))
    np.testing.assert_allclose(
        curved.decision_function(new), flat.decision_function(feature_map(kernel, new)), rtol=1e-7, atol=1e-8
    )
    by_hand = kernel(new, curved.support_vectors_) @ curved.dual_coef_[0] + curved.intercept_[0]
    np.testing.assert_allclose(curved.decision_function(new), by_hand, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_the_quadratic_program_says_the_same(seed):
    rng = np.random.default_rng(seed)
    X, y = heart_like(seed, 25)
    weight = rng.uniform(0.2, 3.0, 25)
    K = RBF(gamma=0.2)(X)
    Q = y[:, None] * K * y
    found = minimize(
        lambda a: 0.5 * a @ Q @ a - a.sum(),
        np.zeros(25),
        jac=lambda a: Q @ a - 1,
        method="SLSQP",
        bounds=[(0, c) for c in weight],
        constraints={"type": "eq", "fun": lambda a: y @ a, "jac": lambda a: y.astype(float)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    model = SVC(gamma=0.2).fit(X, y, sample_weight=weight)
    assert objective(model, K, y, weight) == pytest.approx(-found.fun, rel=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("C", [0.1, 1.0, 50.0])
def test_libsvm_finds_the_same_objective_and_support(kernel, C):
    X, y = heart_like()
    settings = {"C": C, "kernel": kernel, "gamma": 0.1, "coef0": 1.0, "degree": 2}
    ours, theirs = SVC(**settings).fit(X, y), LibSVC(**settings, tol=1e-8).fit(X, y)
    K = {"linear": Linear(), "poly": Polynomial(2, 1.0, gamma=0.1), "rbf": RBF(gamma=0.1)}[kernel](X)
    # libsvm rounds its kernel to float32, which the objective feels in the eighth digit
    assert objective(ours, K, y, C) == pytest.approx(objective(theirs, K, y, C), rel=1e-7)
    assert objective(ours, K, y, C) >= objective(theirs, K, y, C) * (1 - 1e-12)
    assert set(ours.support_) == set(theirs.support_)
    rounding = 1e-5 * max(1.0, C)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=rounding)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=rounding)


def test_several_classes_agree_with_libsvm():
    X, y = load_digits(return_X_y=True)
    ours = SVC(gamma=0.001, C=1.0, decision_function_shape="ovo").fit(X[:600], y[:600])
    theirs = LibSVC(gamma=0.001, C=1.0, tol=1e-8, decision_function_shape="ovo").fit(X[:600], y[:600])
    assert np.array_equal(ours.support_, theirs.support_)
    assert np.array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-5)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    ours.set_params(decision_function_shape="ovr")
    theirs.set_params(decision_function_shape="ovr", break_ties=True)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert np.array_equal(ours.predict(X), ours.classes_[ours.decision_function(X).argmax(axis=1)])
    assert np.array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.usefixtures("small_sets")
@pytest.mark.parametrize("cache_size", [200.0, 0.01])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_working_sets_solve_what_is_solved_at_once(cache_size, kernel, monkeypatch):
    X, y = heart_like(4, 300)
    parts = SVC(2.0, kernel, gamma=0.2, cache_size=cache_size).fit(X, y)
    assert parts.n_iter_[0] > 5
    assert parts.certify(X, y).holds
    for module in (decomposition, svc):
        monkeypatch.setattr(module, "WHOLE", 2048)
    whole = SVC(2.0, kernel, gamma=0.2).fit(X, y)
    assert np.array_equal(parts.support_, whole.support_)
    np.testing.assert_allclose(parts.decision_function(X), whole.decision_function(X), rtol=1e-7, atol=1e-7)


@pytest.mark.usefixtures("small_sets")
def test_rows_are_left_out_and_come_back(monkeypatch):
    left_out = []
    narrow = decomposition.KernelCache.narrow

    def watched(self, kept, columns):
        left_out.append(len(self._place) - len(columns))
        narrow(self, kept, columns)
        for row in columns[self._place[columns] >= 0]:  # what is kept of the cache is still right
            expected = self.kernel.values(self.rows[[row]], self.columns)[0]
            np.testing.assert_array_equal(self.store[self._place[row]], expected)

    monkeypatch.setattr(decomposition.KernelCache, "narrow", watched)
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(1.2, 1, (200, 2)), rng.normal(-1.2, 1, (200, 2))])
    y = np.repeat([1, 0], 200)
    model = SVC(gamma=1.0, tol=1e-8).fit(X, y)
    assert max(left_out) > 100
    assert model.certify(X, y).holds
    assert model.certify(X, y)["gap"].value < 1e-10


def test_the_cache_size_changes_nothing_but_the_time(small_sets):
    X, y = heart_like(1, 200)
    large, tiny = SVC().fit(X, y), SVC(cache_size=1e-6).fit(X, y)
    np.testing.assert_allclose(large.decision_function(X), tiny.decision_function(X), atol=1e-7)


def test_other_ways_to_give_the_same_kernel():
    X, y = heart_like(2, 90)
    new = X[:20] + 0.1
    K = RBF(gamma=0.3)(X)
    expected = SVC(gamma=0.3).fit(X, y).decision_function(new)
    for kernel in (RBF(gamma=0.3), lambda A, B: RBF(gamma=0.3)(A, B)):
        model = SVC(kernel=kernel).fit(X, y)
        np.testing.assert_allclose(model.decision_function(new), expected, rtol=1e-9, atol=1e-9)
        assert model.certify(X, y).holds
    given = SVC(kernel="precomputed").fit(K, y)
    np.testing.assert_allclose(given.decision_function(RBF(gamma=0.3)(new, X)), expected, rtol=1e-9, atol=1e-9)
    assert given.certify(K, y).holds
    given.dual_coef_ = given.dual_coef_ * 1.01
    assert not given.certify(K, y).holds


def test_a_precomputed_matrix_with_rows_of_no_weight():
    X, y = heart_like(2, 60)
    weight = (np.arange(60) % 4 > 0).astype(float)
    K = Linear()(X)
    weighted = SVC(kernel="precomputed").fit(K, y, sample_weight=weight)
    expected = SVC(kernel="linear").fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(weighted.decision_function(K), expected.decision_function(X), rtol=1e-8, atol=1e-8)
    assert weighted.certify(K, y, sample_weight=weight).holds


def test_a_precomputed_matrix_must_be_one():
    with pytest.raises(ValueError, match="square"):
        SVC(kernel="precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel="precomputed").fit(np.arange(16.0).reshape(4, 4), [0, 1, 0, 1])


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
def test_sparse_rows(kernel):
    X, y = heart_like(3, 120)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, sparse = SVC(kernel=kernel).fit(X, y), SVC(kernel=kernel).fit(csr_array(X), y)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), dense.decision_function(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), rtol=1e-8, atol=1e-8)
    assert sparse.certify(csr_array(X), y).holds


def test_a_warm_start_is_shorter_and_ends_alike(small_sets):
    X, y = heart_like(5, 300)
    model = SVC(1.0, warm_start=True).fit(X, y)
    model.set_params(C=1.2).fit(X, y)
    cold = SVC(1.2).fit(X, y)
    assert model.n_iter_[0] < cold.n_iter_[0]
    np.testing.assert_allclose(model.decision_function(X), cold.decision_function(X), atol=1e-7)


def test_class_weights():
    X, y = make_classification(150, 5, weights=[0.8], random_state=0)
    balanced = SVC(class_weight="balanced").fit(X, y)
    counts = np.bincount(y)
    by_hand = SVC(class_weight={0: 150 / (2 * counts[0]), 1: 150 / (2 * counts[1])}).fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X))
    theirs = LibSVC(class_weight="balanced", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(balanced.decision_function(X), theirs.decision_function(X), atol=1e-5)
    assert balanced.certify(X, y).holds
    with pytest.raises(ValueError, match="7, which is not a class"):
        SVC(class_weight={7: 1.0}).fit(X, y)


def test_a_kernel_that_is_none_is_warned_of():
    X, y = heart_like(0, 60)
    with pytest.warns(UserWarning, match="eigenvalue"):
        SVC(kernel="sigmoid", gamma=1.0, coef0=-1.0).fit(X, y)


def test_a_fit_that_is_cut_short_says_so(small_sets):
    X, y = heart_like(0, 200)
    with pytest.warns(ConvergenceWarning, match="did not converge after 2"):
        model = SVC(max_iter=2).fit(X, y)
    assert not model.converged_
    assert not model.certify(X, y).holds


def test_a_hyperparameter_search_reaches_into_the_kernel():
    X, y = heart_like(0, 100)
    search = GridSearchCV(SVC(kernel=RBF()), {"kernel__length_scale": [0.5, 2.0], "C": [1.0, 4.0]}, cv=3).fit(X, y)
    assert search.best_params_["kernel__length_scale"] in (0.5, 2.0)
    assert clone(search.best_estimator_).kernel.length_scale == search.best_params_["kernel__length_scale"]


def test_a_sum_of_kernels_with_noise_is_a_soft_margin_of_squares():
    # White noise on the diagonal is the squared hinge: the kernel K + 1/C is that of an infinite price otherwise.
    X, y = heart_like(6, 80)
    model = SVC(C=1e9, kernel=RBF(gamma=0.2) + White(0.5)).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    K = RBF(gamma=0.2)(X) + 0.5 * np.eye(len(y))
    np.testing.assert_allclose((y * (K @ alpha + model.intercept_))[alpha != 0], 1.0, atol=1e-7)


def test_the_certificate_refuses_another_kernel_and_other_labels():
    X, y = heart_like(0, 100)
    model = SVC(gamma=0.1).fit(X, y)
    other = model.set_params(gamma=0.11)
    assert [check.name for check in other.certify(X, y).failed] == ["kernel"]
    model.set_params(gamma=0.1)
    flipped = y.copy()
    flipped[model.support_[0]] *= -1
    assert not model.certify(X, flipped).holds


def test_saved_machines_predict_the_same(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel=RBF(0.7) + Linear(), probability=True).fit(X, y)
    model.save(tmp_path / "machine.lemmata")
    again = lemmata.load(tmp_path / "machine.lemmata")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.certify(X, y).holds


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_columns_of_very_different_scales(C):
    # Pairs would take millions of steps here; libsvm does.
    X, y = load_breast_cancer(return_X_y=True)
    model = SVC(C, "linear").fit(X, y)
    assert model.converged_
    assert model.certify(X, y).holds
    assert SVC(C, "linear", tol=1e-3).fit(X, y).converged_


def test_rows_far_from_zero():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] > 0).astype(int)
    X[:, 0] += 2.0 * y
    near, far = (SVC(kernel="linear", hard_margin=True).fit(X + shift, y) for shift in (0.0, 1e5))
    np.testing.assert_allclose(near.coef_, far.coef_, rtol=1e-6, atol=1e-6)  # 1e5 leaves eleven digits
    assert far.certify(X + 1e5, y).holds
    assert np.array_equal(far.predict(X + 1e5), near.predict(X))
