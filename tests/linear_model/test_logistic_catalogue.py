"""Logistic regression by the book: worked numbers, identities, and the textbook's steps beside ours."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit
from scipy.special import softmax as scipy_softmax
from sklearn.linear_model import LogisticRegression as Peer

from lemmata.core.blocks import Blocks
from lemmata.linear_model import LogisticRegression
from lemmata.linear_model.links import log_sigmoid, log_sum_exp, logit, sigmoid, softmax
from lemmata.linear_model.logistic_loss import objective

X6, Y6 = np.arange(6.0)[:, None], np.array([0, 0, 1, 0, 1, 1])


def several(seed=0, n=200, d=3, k=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)


@pytest.mark.item("CLS-06")
def test_the_sigmoid_its_inverse_its_derivative_and_its_tails():
    z = np.linspace(-30, 30, 601)
    assert sigmoid(0.0) == 0.5
    np.testing.assert_allclose(sigmoid(z), expit(z), rtol=1e-15)  # a rounding or two
    np.testing.assert_allclose(logit(sigmoid(z[np.abs(z) < 15])), z[np.abs(z) < 15], atol=1e-9)  # 1 − p keeps 16 − 7 digits
    np.testing.assert_allclose(sigmoid(-z), 1 - sigmoid(z), atol=1e-15)
    h = 1e-5
    slope = (sigmoid(z + h) - sigmoid(z - h)) / (2 * h)
    np.testing.assert_allclose(slope, sigmoid(z) * (1 - sigmoid(z)), atol=1e-10)  # h² and rounding over h
    with np.errstate(all="raise", under="ignore"):
        assert sigmoid([-1e3, 1e3]).tolist() == [0.0, 1.0]
        assert log_sigmoid([-1e3, 1e3]).tolist() == [-1000.0, 0.0]
    np.testing.assert_allclose(log_sigmoid(z), np.log(sigmoid(z)), rtol=1e-12, atol=1e-13)


@pytest.mark.item("CLS-13")
def test_the_softmax_function():
    p = softmax([1.0, 2.0, 3.0])
    np.testing.assert_allclose(p, [0.0900306, 0.2447285, 0.6652410], atol=5e-8)  # the digits printed
    rng = np.random.default_rng(0)
    z = 5 * rng.normal(size=(50, 4))
    np.testing.assert_allclose(softmax(z), scipy_softmax(z, axis=1), rtol=1e-14)
    np.testing.assert_allclose(softmax(z).sum(axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(softmax(z + 700.0), softmax(z), rtol=1e-12)
    np.testing.assert_allclose(softmax(z[:, :2])[:, 1], sigmoid(z[:, 1] - z[:, 0]), rtol=1e-14)
    h, point = 1e-6, z[0]
    jacobian = np.column_stack([(softmax(point + h * e) - softmax(point - h * e)) / (2 * h) for e in np.eye(4)])
    own = softmax(point)
    np.testing.assert_allclose(jacobian, np.diag(own) - np.outer(own, own), atol=1e-9)
    hot = 100 * z  # it approximates the indicator of the largest; the log of the sum approximates the largest itself
    np.testing.assert_allclose(softmax(hot)[np.arange(50), z.argmax(axis=1)], 1.0, atol=0.5)
    assert (log_sum_exp(hot) - hot.max(axis=1) <= np.log(4)).all()


@pytest.mark.item("CLS-07")
def test_the_worked_example_its_score_and_its_hessian():
    model = LogisticRegression(C=np.inf).fit(X6, Y6)
    np.testing.assert_allclose([model.intercept_[0], model.coef_[0, 0]], [-3.035069, 1.214028], atol=5e-7)  # digits printed
    p = model.predict_proba(X6)[:, 1]
    likelihood = np.log(np.where(Y6 == 1, p, 1 - p)).sum()
    assert likelihood == pytest.approx(-2.477987, abs=5e-7)
    # the same by Σ log(1 + e^z) − y z, whose minus the first display of the notes lacks
    z = model.decision_function(X6)
    assert np.sum(np.log1p(np.exp(z)) - Y6 * z) == pytest.approx(-likelihood, rel=1e-12)
    design = np.column_stack([np.ones(6), X6])
    np.testing.assert_allclose(design.T @ (Y6 - p), 0, atol=1e-7)  # the tolerance 1e-8 of the mean, times the rows
    assert p.sum() == pytest.approx(Y6.sum(), abs=1e-7)
    assert np.linalg.eigvalsh(design.T @ (design * (p * (1 - p))[:, None])).min() > 0
    assert model.certify(X6, Y6).kind == "proof"
    with pytest.raises(ValueError, match="A plane separates the classes"):
        LogisticRegression(C=np.inf).fit(X6, [0, 0, 0, 1, 1, 1])
    with pytest.raises(ValueError, match="A plane separates the classes"):  # quasi: both classes at 2
        LogisticRegression(C=np.inf).fit([[0.0], [1.0], [2.0], [2.0], [3.0]], [0, 0, 0, 1, 1])


@pytest.mark.item("CLS-08")
def test_labels_of_plus_and_minus_one_and_steepest_ascent():
    signs = 2 * Y6 - 1
    design = np.column_stack([np.ones(6), X6])
    w = np.zeros(2)
    for _ in range(20_000):
        w = w + 0.05 * ((1 - sigmoid(signs * (design @ w))) * signs) @ design
    model = LogisticRegression(C=np.inf).fit(X6, signs)
    np.testing.assert_allclose([model.intercept_[0], model.coef_[0, 0]], w, rtol=1e-6)  # where plain ascent has come to
    zero_one = LogisticRegression(C=np.inf).fit(X6, Y6)
    np.testing.assert_allclose(model.coef_, zero_one.coef_, rtol=1e-12)
    # the update is minus the gradient of the 0/1 form at any point
    problem = objective(Blocks.of(X6, Y6, None), 1, 0.0, True)
    v = np.array([0.3, -0.7])
    _, gradient = problem(problem.theta(v[1:, None], v[:1]))
    update = ((1 - sigmoid(signs * (design @ v))) * signs) @ design
    raw = np.append(gradient[0] * problem.unit[0] + problem.center[0] * gradient[1], gradient[1])  # back to raw coordinates
    np.testing.assert_allclose(raw * 6, -update[::-1], rtol=1e-12)


@pytest.mark.item("CLS-10")
def test_newton_is_weighted_least_squares_and_the_printed_sign_diverges():
    design = np.column_stack([np.ones(6), X6])

    def step(w, sign):
        p = sigmoid(design @ w)
        return w + sign * np.linalg.solve(design.T @ (design * (p * (1 - p))[:, None]), design.T @ (Y6 - p)), p

    w, scores = np.zeros(2), []
    for _ in range(7):
        p = sigmoid(design @ w)
        scores.append(np.abs(design.T @ (Y6 - p)).max())
        weight = p * (1 - p)
        working = design @ w + (Y6 - p) / weight
        least = np.linalg.lstsq(np.sqrt(weight)[:, None] * design, np.sqrt(weight) * working, rcond=None)[0]
        w, _ = step(w, +1)
        np.testing.assert_allclose(w, least, rtol=1e-9)
    assert all(after < 5 * before**2 for before, after in pairwise(scores[2:6])), scores
    model = LogisticRegression(C=np.inf, solver="newton").fit(X6, Y6)
    np.testing.assert_allclose([model.intercept_[0], model.coef_[0, 0]], w, rtol=1e-8)
    slopes, v = [], np.zeros(2)
    for _ in range(3):
        v, _ = step(v, -1)
        slopes.append(v[1])
    np.testing.assert_allclose(slopes, [-0.8, -3.62, -100.3], rtol=2e-3)  # the digits printed


@pytest.mark.item("CLS-11")
def test_boundaries_straight_and_round():
    line = LogisticRegression().fit([[0.0, 0.0], [3.0, 3.0]], [0, 1])
    line.coef_, line.intercept_ = np.array([[1.0, 1.0]]), np.array([-3.0])
    p = line.predict_proba([[1.0, 1.0], [2.0, 2.0], [0.5, 2.5]])[:, 1]
    np.testing.assert_allclose(p, [0.268941, 0.731059, 0.5], atol=5e-7)
    assert line.predict([[1.0, 1.0], [2.0, 2.0]]).tolist() == [0, 1]
    points = np.array([[0.5, 0.5], [1.0, 1.0], [np.cos(1.0), np.sin(1.0)]])
    circle = LogisticRegression().fit(np.column_stack([points, points**2]), [0, 1, 0])
    circle.coef_, circle.intercept_ = np.array([[0.0, 0.0, 1.0, 1.0]]), np.array([-1.0])
    p = circle.predict_proba(np.column_stack([points, points**2]))[:, 1]
    np.testing.assert_allclose(p, [0.377541, 0.731059, 0.5], atol=5e-7)
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(500, 2))
    y = ((X**2).sum(axis=1) + 0.2 * rng.normal(size=500) > 1).astype(int)
    bent, straight = LogisticRegression().fit(np.hstack([X, X**2]), y), LogisticRegression().fit(X, y)
    assert bent.score(np.hstack([X, X**2]), y) > straight.score(X, y) + 0.1


@pytest.mark.item("CLS-12")
def test_one_against_the_rest():
    X, y = several()
    model = LogisticRegression(multi_class="ovr").fit(X, y)
    for k in range(4):
        alone = LogisticRegression().fit(X, y == k)
        np.testing.assert_allclose(model.coef_[k], alone.coef_[0], rtol=1e-7)
        np.testing.assert_allclose(model.intercept_[k], alone.intercept_[0], rtol=1e-7)
        p = alone.predict_proba(X)[:, 1]
        np.testing.assert_allclose(X.T @ ((y == k) - p), alone.coef_[0], atol=1e-5)  # score zero, the penalty's share apart
    yes = sigmoid(model.decision_function(X))
    assert ((yes > 0.5).sum(axis=1) != 1).any(), "several classes, or none, say yes to some rows"
    np.testing.assert_allclose(model.predict_proba(X), yes / yes.sum(axis=1, keepdims=True), rtol=1e-12)
    assert np.array_equal(model.predict(X), yes.argmax(axis=1))
    assert model.certify(X, y).holds
    tie = LogisticRegression(multi_class="ovr").fit(X, y)
    tie.coef_, tie.intercept_ = np.zeros_like(tie.coef_), np.zeros(4)
    assert (tie.predict(X[:3]) == 0).all(), "the first of equals"


@pytest.mark.item("CLS-14")
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_softmax_regression(C):
    X, y = several()
    model = LogisticRegression(C=C).fit(X, y)
    p, hot = model.predict_proba(X), np.eye(4)[y]
    np.testing.assert_allclose(X.T @ (hot - p), model.coef_.T / C, atol=1e-5)  # 1e-8 of the mean gradient, 200 rows
    np.testing.assert_allclose(p.sum(axis=0), hot.sum(axis=0), atol=1e-5)
    shifted = LogisticRegression(C=C).fit(X, y)
    shifted.coef_ = shifted.coef_ + np.array([0.3, -2.0, 1.0])
    np.testing.assert_allclose(shifted.predict_proba(X), p, rtol=1e-12)
    assert not shifted.certify(X, y).holds, "the common shift is seen by nothing but its own check"
    peer = Peer(C=C, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(p, peer.predict_proba(X), atol=1e-7)


@pytest.mark.item("CLS-14")
def test_two_classes_by_softmax_are_the_binary_model():
    X, y = several(k=2)
    both = objective(Blocks.of(X, y, None), 2, 0.0, True)
    one = objective(Blocks.of(X, y, None), 1, 0.0, True)
    w, b = np.array([[0.4], [-1.0], [0.2]]), np.array([0.3])
    value, _ = one(one.theta(w, b))
    same, _ = both(both.theta(np.hstack([-w / 2, w / 2]), np.concatenate([-b / 2, b / 2])))
    assert same == pytest.approx(value, rel=1e-14)


@pytest.mark.item("LIN-09")
def test_the_lasso_by_the_book():
    from lemmata.linear_model import Lasso
    from lemmata.linear_model.working_set import bounds, columns_of, start

    x, y = np.arange(4.0)[:, None], np.array([1.0, 3.0, 2.0, 5.0])
    Z, c = x - x.mean(), y - y.mean()
    assert float(Z[:, 0] @ c) == 5.5
    assert float(Z[:, 0] @ Z[:, 0]) == 5.0
    for lam, slope in ((2.0, 0.9), (11.0, 0.0), (10.9, 0.01)):  # ‖y − Xw‖² + λ‖w‖₁ is alpha = λ/2n here
        model = Lasso(lam / 8).fit(x, y)
        assert model.coef_[0] == pytest.approx(slope, abs=1e-12)
        certificate = model.certify(x, y)
        assert certificate.holds
        # the textbook's gap in its own scale is twice ours
        w = model.coef_
        r = c - Z @ w
        theta = 2 * r * min(1.0, lam / max(np.abs(2 * Z.T @ r).max(), 1e-300))
        textbook = r @ r + lam * np.abs(w).sum() - (theta @ c - theta @ theta / 4)
        assert textbook >= -1e-12
        assert textbook == pytest.approx(0.0, abs=1e-9)
        pull = 2 * Z[:, 0] @ r
        assert abs(pull) <= lam * (1 + 1e-12)
        if w[0]:
            assert pull == pytest.approx(lam * np.sign(w[0]), rel=1e-12)
    table = columns_of(x, np.ones(4), c, True)
    value, bound, _ = bounds(table, start(table, c), c, 11.0 / 2, 0.0, False)
    assert value == pytest.approx(bound, rel=1e-12), "all zero is optimal at λ_max = 2 max|xᵀy| = 11"
    value, bound, _ = bounds(table, start(table, c), c, 10.9 / 2, 0.0, False)
    assert bound < value
