"""Logistic regression against scikit-learn: every solver, home, weight and label; what it refuses, and what it certifies."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csc_array, csr_array, random_array
from scipy.special import log_expit
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression as Peer

from lemmata.linear_model import LogisticRegression, logistic, logistic_solvers
from lemmata.linear_model.links import sigmoid

SOLVERS = ["lbfgs", "newton", "cg", "bfgs", "gd"]


def table(seed=0, n=150, d=3, k=2, size=1.0):
    """Draw rows off-center and of unequal scales, and classes that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = (size * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)
    return X * np.resize([1.0, 10.0, 0.1], d) + np.resize([0.0, 3.0, 1.0], d), y


def peer(X, y, C, weight=None, ovr=False, **options):
    """Fit scikit-learn to the last digit; one-vs-rest is a fit for each class."""
    model = Peer(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000, **options)
    if not ovr:
        model.fit(X, y, weight)
        return model.coef_, model.intercept_
    parts = [model.fit(X, y == c, weight) and (model.coef_[0].copy(), model.intercept_[0]) for c in np.unique(y)]
    return np.array([w for w, _ in parts]), np.array([b for _, b in parts])


def same_optimum(model, expected, X, tolerance):
    """Compare scores rather than coefficients, whose errors the offsets of columns trade against that of the intercept."""
    coef, intercept = expected
    X = X.toarray() if hasattr(X, "toarray") else X
    ours, theirs = X @ model.coef_.T + model.intercept_, X @ coef.T + intercept
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("k", "multi_class"), [(2, "multinomial"), (3, "multinomial"), (3, "ovr")])
@pytest.mark.parametrize(("C", "weighted"), [(0.5, True), (np.inf, False)])
def test_every_solver_ends_at_the_optimum_of_scikit_learn(C, weighted, k, multi_class, solver):
    X, y = table(k=k)
    weight = np.random.default_rng(1).random(len(y)) if weighted else None
    model = LogisticRegression(C, solver=solver, multi_class=multi_class, tol=1e-10).fit(X, y, weight)
    assert model.converged_
    same_optimum(model, peer(X, y, C, weight, multi_class == "ovr"), X, tolerance=1e-7)
    certificate = model.certify(X, y, weight)
    assert certificate.holds
    assert certificate.kind == "proof"


@pytest.mark.parametrize("k", [2, 3])
def test_stochastic_gradients_of_reduced_variance_end_there_too(k):
    rng = np.random.default_rng(k)
    X, y, weight = rng.normal(size=(24, 2)), np.arange(24) % k, rng.random(24)
    fits = [LogisticRegression(0.2, solver="sgd", tol=1e-8, random_state=seed).fit(X, y, weight) for seed in (0, 0, 1)]
    for model in fits:
        assert model.converged_
        same_optimum(model, peer(X, y, 0.2, weight), X, tolerance=1e-6)
        assert model.certify(X, y, weight).holds
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert not np.array_equal(fits[0].coef_, fits[2].coef_)


@pytest.mark.parametrize("form", [csr_array, csc_array, np.float32, np.asfortranarray])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("intercept", [False, True])
def test_sparse_single_precision_and_fortran_tables(intercept, k, form):
    rng = np.random.default_rng(2)
    X, y = table(3, k=k)
    X = (X * (rng.random(X.shape) < 0.5)).astype(np.float32).astype(float)
    F = form(X) if form is not np.float32 else X.astype(np.float32)
    model = LogisticRegression(2.0, fit_intercept=intercept, tol=1e-10).fit(F, y)
    single = form is np.float32
    assert model.coef_.dtype == (np.float32 if single else np.float64)
    same_optimum(model, peer(X, y, 2.0, fit_intercept=intercept), X, tolerance=1e-5 if single else 1e-7)  # 7 digits of 40
    assert model.certify(F, y).holds
    assert intercept or not model.intercept_.any()


def test_more_sparse_columns_than_a_dense_hessian_takes():
    rng = np.random.default_rng(0)
    X = random_array((400, 2100), density=0.01, rng=rng, format="csr")
    score = X @ rng.normal(size=2100) * 3 + rng.logistic(size=400)
    for y in ((score > 0).astype(int), np.digitize(score, [-0.7, 0.7])):
        fits = [LogisticRegression(solver=s, tol=1e-10).fit(X, y) for s in ("lbfgs", "newton", "cg")]
        # scikit-learn's own Hessian would be too large as well: the gradient says it all, with strong convexity 1/C
        p = fits[0].predict_proba(X)
        residual = p - (y[:, None] == np.arange(p.shape[1])) if p.shape[1] > 2 else (p[:, 1] - y)[:, None]
        for model in fits:
            same_optimum(model, (fits[0].coef_, fits[0].intercept_), X, tolerance=1e-7)
            certificate = model.certify(X, y)
            assert certificate.holds
            assert certificate.kind == "proof"
        np.testing.assert_allclose((X.T @ residual).T, -fits[0].coef_, atol=1e-7)  # 1e-10 of the mean, 400 rows
        np.testing.assert_allclose(residual.sum(axis=0), 0.0, atol=1e-7)
        fits[0].coef_ *= 1.01
        assert not fits[0].certify(X, y).holds


def test_a_start_from_a_sample_of_the_rows_changes_nothing_but_the_way(monkeypatch):
    rng = np.random.default_rng(0)
    n = 200_000
    rare = np.zeros(n)
    rare[rng.choice(n, 60, replace=False)] = 1.0  # about five of these rows are in the sample, likely all of one class
    X = np.column_stack([rng.normal(size=(n, 2)) * [1.0, 5.0] + [7.0, 0.0], rare])
    y = (X @ [1.0, -0.2, 1.0] - 7 + rng.logistic(size=n) > 0).astype(int)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    taken = []
    whole = logistic_solvers.sampled
    monkeypatch.setattr(logistic_solvers, "sampled", lambda problem: taken.append(whole(problem)) or taken[-1])
    with_sample = LogisticRegression(np.inf).fit(X, y)
    assert taken[0].blocks.n_rows < n / 10
    assert with_sample.certify(X, y).holds
    monkeypatch.setattr(logistic_solvers, "sampled", lambda problem: problem)
    without = LogisticRegression(np.inf).fit(X, y)
    np.testing.assert_allclose(with_sample.coef_, without.coef_, rtol=1e-4, atol=1e-6)  # tol 1e-8 over a rare column's 3e-4
    assert with_sample.trace_[-1] == pytest.approx(without.trace_[-1], rel=1e-13)
    np.testing.assert_allclose(with_sample.coef_, peer(X, y, np.inf)[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "cg", "bfgs"])
@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 2, 2]])
def test_classes_that_a_plane_separates_are_refused_without_a_penalty(labels, tol, solver):
    X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0]])
    for rows in (X, csr_array(X + 1), X.astype(np.float32)):
        with pytest.raises(ValueError, match=r"A plane separates the classes.*Give a finite C") as refusal:
            LogisticRegression(np.inf, solver=solver, tol=tol).fit(rows, labels)
        assert str(refusal.value).count("\n") == 0
        assert LogisticRegression(1e3, solver=solver).fit(rows, labels).converged_


def quasi(k, seed):
    """Draw overlapping classes and an indicator that only rows of the last class have."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, 80)
    return np.column_stack([rng.normal(size=80), (y == k - 1) & (rng.random(80) < 0.2)]), y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("k", "multi_class"), [(2, "multinomial"), (3, "multinomial"), (3, "ovr")])
def test_classes_that_a_plane_separates_in_part_are_refused_too(k, multi_class, seed):
    X, y = quasi(k, seed)
    model = LogisticRegression(np.inf, multi_class=multi_class)
    for rows in (X, csr_array(X)):
        with pytest.raises(ValueError, match="A plane separates the classes"):
            model.fit(rows, y)
    assert LogisticRegression(1e4, multi_class=multi_class).fit(X, y).certify(X, y).holds


def test_where_a_linear_program_would_take_too_long_the_certificate_says_that_there_is_no_optimum(monkeypatch):
    X, y = quasi(2, 0)
    monkeypatch.setattr(logistic, "ROWS", 10)
    model = LogisticRegression(np.inf).fit(X, y)
    assert [check.value for check in model.certify(X, y).failed if check.name == "gap"] == [np.inf]


def test_no_false_alarm_where_classes_overlap_a_little():
    z = np.linspace(-1, 1, 2001)[:, None]
    y = (z[:, 0] > 0).astype(int)
    y[0] = 1  # a single row on the wrong side, far out
    model = LogisticRegression(np.inf).fit(z, y)
    assert np.abs(model.decision_function(z)).max() > logistic.LARGE
    assert model.certify(z, y).holds
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = (X @ [20.0, -30.0, 10.0] + rng.logistic(size=3000) > 0).astype(int)
    steep = LogisticRegression(np.inf).fit(X, y)
    assert np.abs(steep.decision_function(X)).max() > 50
    assert steep.certify(X, y).holds
    three = np.digitize(X @ [20.0, -30.0, 10.0] + rng.logistic(size=3000), [-10.0, 10.0])
    assert LogisticRegression(np.inf).fit(X[:1000], three[:1000]).certify(X[:1000], three[:1000]).holds


def test_a_plane_off_the_origin_separates_nothing_for_a_model_without_intercept():
    X, y = np.array([[1.0], [2.0], [9.0], [300.0]]), np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match="A plane separates"):
        LogisticRegression(np.inf).fit(X, y)
    model = LogisticRegression(np.inf, fit_intercept=False).fit(X, y)
    assert np.abs(model.decision_function(X)).max() > logistic.LARGE
    assert model.certify(X, y).holds


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["yes", "no", "maybe"]),
        np.array(["b", "a"], dtype=object),
        np.array([True, False]),
        np.array([-1, 1]),
        np.array([-7, 300, 2], dtype=np.int16),
        np.array([2.0, 1.0]),
    ],
)
def test_labels_may_be_of_any_kind(labels):
    X, number = table(5, k=len(labels), size=3.0)
    y = labels[number]
    model = LogisticRegression().fit(X, y)
    theirs = Peer(C=1.0, tol=1e-10, max_iter=1000, solver="newton-cholesky").fit(X, y)
    assert model.classes_.tolist() == theirs.classes_.tolist()
    assert model.predict(X).dtype == y.dtype
    assert np.array_equal(model.predict(X), theirs.predict(X))
    np.testing.assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert model.certify(X, y).holds
    with pytest.raises(ValueError, match="which is not a class of the fit"):
        model.certify(X, np.where(np.arange(len(y)) == 3, np.array("zebra").astype(object), y.astype(object)).astype(str))


def test_a_weight_is_a_repetition_and_a_class_without_weight_is_no_class():
    X, y = table(6, k=3)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = LogisticRegression(tol=1e-11).fit(X, y, times)
    repeated = LogisticRegression(tol=1e-11).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-7, atol=1e-9)
    without = LogisticRegression().fit(X, y, (y != 1).astype(float))
    assert without.classes_.tolist() == [0, 2]
    only = LogisticRegression().fit(X[y != 1], y[y != 1])
    np.testing.assert_allclose(without.coef_, only.coef_, rtol=1e-9)
    assert without.certify(X, y, (y != 1).astype(float)).holds
    with pytest.raises(ValueError, match="one class only"):
        LogisticRegression().fit(X, y, (y == 1).astype(float))


def test_rows_of_a_stored_table_may_begin_without_weight():
    X, y = table(7)
    weight = np.append(np.zeros(50), np.ones(100))

    def rows():
        return ((X[i : i + 50], y[i : i + 50], weight[i : i + 50]) for i in range(0, 150, 50))

    stored = LogisticRegression(tol=1e-11).fit(rows)
    np.testing.assert_allclose(stored.coef_, LogisticRegression(tol=1e-11).fit(X[50:], y[50:]).coef_, rtol=1e-7)


@pytest.mark.parametrize("C", [2.0, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
def test_covariance_is_the_inverse_of_the_information(C, intercept):
    X, y = table(8)
    weight = np.random.default_rng(0).random(len(y)) + 0.5
    model = LogisticRegression(C, fit_intercept=intercept).fit(X, y, weight)
    p = sigmoid(X @ model.coef_[0] + model.intercept_[0])
    design = np.column_stack([X, np.ones(len(X))]) if intercept else X
    information = (design.T * (weight * p * (1 - p))) @ design + np.diag([1 / C] * 3 + [0.0] * intercept)
    np.testing.assert_allclose(model.covariance(X, weight), np.linalg.inv(information), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.standard_errors(X, weight), np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-8)
    np.testing.assert_allclose(model.covariance(csr_array(X), weight), model.covariance(X, weight), rtol=1e-8)


def test_covariance_is_for_two_classes_and_fitted_models():
    X, y = table(k=3)
    with pytest.raises(NotFittedError):
        LogisticRegression().covariance(X)
    with pytest.raises(ValueError, match="for two classes"):
        LogisticRegression().fit(X, y).covariance(X)


@pytest.mark.parametrize(("k", "multi_class"), [(2, "multinomial"), (3, "multinomial"), (3, "ovr")])
def test_logarithms_of_probabilities_are_exact_far_out(k, multi_class):
    X, y = table(9, k=k)
    model = LogisticRegression(multi_class=multi_class).fit(X, y)
    near, far = model.predict_log_proba(X), model.predict_log_proba(X * 1e4)
    np.testing.assert_allclose(near, np.log(model.predict_proba(X)), rtol=1e-9)
    assert np.isfinite(far).all()
    assert far.min() < -1000
    scores = model.decision_function(X * 1e4)
    scores = np.column_stack([np.zeros(len(X)), scores]) if k == 2 else scores
    logs = log_expit(scores) if multi_class == "ovr" else scores
    expected = logs - np.logaddexp.reduce(logs, axis=1)[:, None]
    np.testing.assert_allclose(far, expected, rtol=1e-12, atol=1e-12)  # of scores of 1e4, a digit of the last place
    np.testing.assert_allclose(model.predict_proba(X * 1e4).sum(axis=1), 1.0, rtol=1e-14)
    assert np.array_equal(model.predict(X), model.classes_[near.argmax(axis=1)])


def test_the_penalty_is_the_precision_of_the_prior():
    X, y = np.array([[1.0], [2.0], [-1.0]]), [1, 1, -1]
    assert LogisticRegression(1.0, fit_intercept=False).fit(X, y).coef_[0, 0] == pytest.approx(0.879967, abs=5e-7)
    assert LogisticRegression(0.5, fit_intercept=False).fit(X, y).coef_[0, 0] == pytest.approx(0.591062, abs=5e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_the_certificate_brackets_the_optimum_that_scipy_finds(k):
    X, y = table(10, n=30, k=k)
    model = LogisticRegression(3.0).fit(X, y)
    m = 1 if k == 2 else k

    def loss(theta):
        W, b = theta[: 3 * m].reshape(m, 3), theta[3 * m :]
        scores = X @ W.T + b
        scores = np.column_stack([np.zeros(len(X)), scores]) if k == 2 else scores
        value = (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]).sum()
        return (value + (W**2).sum() / 6) / len(y)

    best = minimize(loss, np.zeros(4 * m), method="BFGS", options={"gtol": 1e-7}).fun
    for factor in (1.0, 1.001, 1.01, 1.3):
        moved = LogisticRegression(3.0).fit(X, y)
        moved.coef_ = model.coef_ * factor
        value = loss(np.append(moved.coef_.ravel(), moved.intercept_))
        gap = moved.certify(X, y)["gap"]
        bound = value - gap.value * value
        assert bound <= best + 1e-12
        assert best <= value + 1e-12
        assert gap.holds or factor > 1
        assert not gap.holds or factor < 1.01
        assert moved.certify(X, y).holds == (factor == 1.0)


def test_a_fit_that_stops_early_says_so_and_is_refused():
    X, y = table(11, n=300, k=3)
    for solver in ("cg", "gd", "sgd"):
        with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations"):
            model = LogisticRegression(solver=solver, max_iter=2, random_state=0).fit(X, y)
        assert not model.converged_
        assert not model.certify(X, y).holds


def test_steps_of_stochastic_gradients_shrink_where_they_are_too_long():
    X, y = table(12, n=32)
    X = X * [1.0, 1.0, 0.1]  # a strong penalty on a column of small values is a curvature of thousands
    with pytest.warns(ConvergenceWarning):
        model = LogisticRegression(0.01, solver="sgd", max_iter=12, random_state=0).fit(X, y)
    assert model.trace_[0] == model.trace_[1], "the first steps are too long"
    assert (np.diff(model.trace_) <= 1e-9).all()
    assert model.trace_[-1] < model.trace_[0]


def test_units_of_columns_do_not_matter_without_a_penalty():
    X, y = table(13)
    model = LogisticRegression(np.inf).fit(X, y)
    for scale in (np.array([1e-9, 1.0, 1e9]), 1e-140, 1e140):
        scaled = LogisticRegression(np.inf).fit(X * scale, y)
        np.testing.assert_allclose(scaled.coef_ * scale, model.coef_, rtol=1e-9)
        assert scaled.certify(X * scale, y).holds
    far = LogisticRegression(np.inf).fit(X + 1e6, y)
    np.testing.assert_allclose(far.coef_, model.coef_, rtol=1e-6)  # ten digits of the columns are left
    assert far.certify(X + 1e6, y).holds


def test_columns_that_are_constant_or_alike_do_no_harm():
    X, y = table(14, k=3)
    model = LogisticRegression(np.inf).fit(X, y)
    for extra in (np.full(150, 1e5 / 3), X[:, 0], np.zeros(150)):
        more = LogisticRegression(np.inf).fit(np.column_stack([X, extra]), y)
        np.testing.assert_allclose(more.predict_proba(np.column_stack([X, extra])), model.predict_proba(X), atol=1e-6)
        assert more.certify(np.column_stack([X, extra]), y).holds


@pytest.mark.parametrize("C", [0.0, -1.0, np.nan])
def test_penalties_that_make_no_sense_are_refused(C):
    with pytest.raises(ValueError, match="C"):
        LogisticRegression(C).fit([[0.0], [1.0]], [0, 1])
