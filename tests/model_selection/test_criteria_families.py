"""The likelihood and the count of each family, against densities of SciPy, matrices written out, and other libraries."""

import numpy as np
import pytest
from scipy.stats import laplace, multinomial, multivariate_normal, norm, poisson
from sklearn import decomposition as sk_decomposition
from sklearn import discriminant_analysis as sk_discriminant
from sklearn import gaussian_process as sk_gp
from sklearn import linear_model as sk
from sklearn import naive_bayes as sk_bayes
from sklearn import neural_network as sk_network
from sklearn import tree as sk_tree
from sklearn.gaussian_process.kernels import RBF as SkRBF

from lemmata.cluster import KMeans, KMedians, SoftKMeans
from lemmata.decomposition import NMF, PCA
from lemmata.discriminant_analysis import GaussianBayes, LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from lemmata.gaussian_process import GaussianProcessRegressor
from lemmata.kernels import RBF
from lemmata.linear_model import (
    BayesianLinearRegression,
    ElasticNet,
    LinearRegression,
    LogisticRegression,
    LpRegression,
    MaximumEntropyClassifier,
    ProbitRegression,
    Ridge,
    SGDClassifier,
)
from lemmata.model_selection import information_criteria
from lemmata.model_selection.parameter_counts import identified_parameters, linear_parameters
from lemmata.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from lemmata.tree import DecisionTreeClassifier

SCALES = np.array([1.0, 10.0, 0.1, 1.0])


def draw_rows(seed, n=50, classes=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * SCALES + [5.0, 0.0, 0.0, -1.0]
    scores = (X - [5.0, 0.0, 0.0, -1.0]) / SCALES @ rng.normal(size=(4, max(classes, 1))) + rng.gumbel(
        size=(n, max(classes, 1))
    )
    return X, scores.argmax(axis=1) if classes else scores[:, 0]


def normal_logs(y, mean):
    """Sum the logarithms of normal densities, each target with its best variance."""
    off = (y - mean).reshape(len(y), -1)
    return sum(norm(0, np.sqrt(np.mean(e**2))).logpdf(e).sum() for e in off.T)


def hat_trace(X, penalty, weight=None):
    """Trace of the hat matrix beside an intercept, by inverting a matrix."""
    s = np.ones(len(X)) if weight is None else weight
    Z = X - s @ X / s.sum()
    S = Z.T @ (s[:, None] * Z)
    return np.trace(np.linalg.solve(S + np.diag(np.broadcast_to(penalty, X.shape[1])), S))


def slope_trace(model, X, y, step=1e-4):
    """Σ ∂ŷᵢ/∂yᵢ by differences: what the count of a fit that moves smoothly must be, by its definition."""
    total = 0.0
    for i in range(len(y)):
        up, down = y.copy(), y.copy()
        up[i] += step
        down[i] -= step
        total += (model.fit(X, up).predict(X[i : i + 1])[0] - model.fit(X, down).predict(X[i : i + 1])[0]) / (2 * step)
    return total


# Regressions


@pytest.mark.item("MSL-05")
@pytest.mark.parametrize("module", ["ours", "scikit-learn"])
def test_least_squares_is_the_textbook(module):
    X, y = draw_rows(0)
    X = np.column_stack([X, X[:, 0] - X[:, 1]])  # one column too many
    model = (LinearRegression if module == "ours" else sk.LinearRegression)().fit(X, y)
    found = information_criteria(model, X, y)
    rss, n = ((y - model.predict(X)) ** 2).sum(), len(y)
    assert found.n_parameters == 4 + 1 + 1
    assert found.aic == pytest.approx(n * np.log(rss / n) + n * np.log(2 * np.pi) + n + 2 * 6, rel=1e-12)
    assert found.bic == pytest.approx(n * np.log(rss / n) + n * np.log(2 * np.pi) + n + np.log(n) * 6, rel=1e-12)
    assert found.log_likelihood == pytest.approx(normal_logs(y, model.predict(X)), rel=1e-12)


def test_several_targets_have_a_variance_each():
    X, y = draw_rows(1)
    Y = np.column_stack([y, 10 * y + X[:, 0] ** 2, X[:, 1]])[:, :2]
    found = information_criteria(LinearRegression().fit(X, Y), X, Y)
    parts = [information_criteria(LinearRegression().fit(X, t), X, t) for t in Y.T]
    assert found.n_parameters == sum(part.n_parameters for part in parts)
    assert found.aic == pytest.approx(sum(part.aic for part in parts), rel=1e-10)


@pytest.mark.parametrize("alpha", [0.01, 3.0, 1e4])
@pytest.mark.parametrize("intercept", [True, False])
def test_ridge_counts_the_trace_of_the_hat_matrix(alpha, intercept):
    X, y = draw_rows(2)
    weight = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    for cls in (Ridge, sk.Ridge):
        found = information_criteria(cls(alpha, fit_intercept=intercept).fit(X, y, weight), X, y, sample_weight=weight)
        S = X.T @ (weight[:, None] * X)
        expected = hat_trace(X, alpha, weight) if intercept else np.trace(np.linalg.solve(S + alpha * np.eye(4), S))
        assert found.counted["coefficients"] == pytest.approx(expected, rel=1e-9)
        assert found.n_parameters == pytest.approx(expected + intercept + 1, rel=1e-9)
        assert found.n_rows == weight.sum()


def test_columns_that_are_constant_or_of_any_size():
    X, _ = draw_rows(3)
    wide = np.column_stack([X, np.full(50, 0.1)])
    assert linear_parameters(wide, None, None, True, 0.0) == 4.0
    assert linear_parameters(wide, None, None, True, 2.0) == pytest.approx(hat_trace(X, 2.0), rel=1e-9)
    unit = np.array([1e-90, 1.0, 1.0, 1.0])
    assert linear_parameters(X * unit, None, None, True, 2.0 * unit**2) == pytest.approx(hat_trace(X, 2.0), rel=1e-9)


def test_a_penalty_for_each_target():
    X, y = draw_rows(3)
    Y = np.column_stack([y, -y + X[:, 0]])
    found = information_criteria(Ridge([0.5, 50.0]).fit(X, Y), X, Y)
    assert found.counted["coefficients"] == pytest.approx(hat_trace(X, 0.5) + hat_trace(X, 50.0), rel=1e-9)
    assert found.log_evidence is None


def test_coefficients_that_may_not_be_negative_count_where_they_are_not_zero():
    X, y = draw_rows(2)
    X = X / SCALES
    y = y - X[:, :2].sum(axis=1) * 9
    model = sk.Ridge(3.0, positive=True).fit(X, y)
    kept = model.coef_ > 0
    assert 0 < kept.sum() < 4
    found = information_criteria(model, X, y)
    assert found.counted["coefficients"] == pytest.approx(hat_trace(X[:, kept], 3.0), rel=1e-9)
    assert found.log_evidence is None


@pytest.mark.item("LIN-15", "MSL-08")
def test_the_evidence_of_ridge_and_of_its_prior():
    X, y = draw_rows(4)
    alpha = 2.5
    found = information_criteria(Ridge(alpha, fit_intercept=False).fit(X, y), X, y)
    C = np.eye(50) + X @ X.T / alpha
    noise = y @ np.linalg.solve(C, y) / 50
    assert found.log_evidence == pytest.approx(multivariate_normal(np.zeros(50), noise * C).logpdf(y), rel=1e-9)
    best, model = Ridge("evidence").fit(X, y), BayesianLinearRegression().fit(X, y)
    assert information_criteria(best, X, y).log_evidence == pytest.approx(model.log_evidence_, rel=1e-9)
    assert any("choice of the penalty" in sentence for sentence in information_criteria(best, X, y).note)


@pytest.mark.item("LIN-15", "MSL-08")
def test_bayesian_regressions():
    X, y = draw_rows(5)
    for model in (
        BayesianLinearRegression(fit_intercept=False).fit(X, y),
        sk.BayesianRidge(fit_intercept=False).fit(X, y),
    ):
        ours = hasattr(model, "noise_variance_")
        noise, prior = (model.noise_variance_, model.prior_precision_) if ours else (1 / model.alpha_, model.lambda_)
        found = information_criteria(model, X, y)
        assert found.log_likelihood == pytest.approx(norm(X @ model.coef_, np.sqrt(noise)).logpdf(y).sum(), rel=1e-10)
        exact = multivariate_normal(np.zeros(50), noise * np.eye(50) + X @ X.T / prior).logpdf(y)
        assert found.log_evidence == pytest.approx(exact, rel=1e-9)
        cov = np.linalg.inv(X.T @ X / noise + prior * np.eye(4))
        assert found.counted["coefficients"] == pytest.approx(4 - prior * np.trace(cov), rel=1e-6)  # what cancels
        assert found.counted["noise variance"] == 1
    given = information_criteria(BayesianLinearRegression(1.0, 0.5).fit(X, y), X, y)
    assert "noise variance" not in given.counted
    assert given.counted["coefficients"] == pytest.approx(hat_trace(X, 0.5), rel=1e-9)
    ard = sk.ARDRegression().fit(X, y)
    kept = ard.coef_ != 0
    expected = hat_trace(X[:, kept], ard.lambda_[kept] / ard.alpha_)
    assert information_criteria(ard, X, y).counted["coefficients"] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("l1_ratio", "alpha"), [(0.5, 0.3), (0.9, 0.1), (0.2, 1.0)])
def test_the_elastic_net_counts_what_a_change_of_the_targets_moves(l1_ratio, alpha):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(25, 8))
    y = X[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=25)
    for cls, tol in ((ElasticNet, 1e-12), (sk.ElasticNet, 1e-12)):
        model = cls(alpha, l1_ratio=l1_ratio, tol=tol, max_iter=100_000).fit(X, y)
        assert 0 < (model.coef_ != 0).sum() < 8
        found = information_criteria(model, X, y)
        kept = model.coef_ != 0
        assert found.counted["coefficients"] == pytest.approx(hat_trace(X[:, kept], 25 * alpha * (1 - l1_ratio)), rel=1e-9)
    moved = slope_trace(sk.ElasticNet(alpha, l1_ratio=l1_ratio, tol=1e-14, max_iter=100_000), X, y)
    assert found.counted["coefficients"] + 1 == pytest.approx(moved, rel=1e-5)  # differences


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0])
def test_an_lp_penalty_counts_what_a_change_of_the_targets_moves(p):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(15, 3))
    y = X @ [2.0, -1.0, 0.5] + rng.normal(size=15)
    model = LpRegression(p, alpha=4.0, tol=1e-14)
    found = information_criteria(model.fit(X, y), X, y)
    assert found.counted["coefficients"] + 1 == pytest.approx(slope_trace(model, X, y), rel=1e-5)  # differences


def test_lp_below_one_is_refused_and_at_one_is_the_lasso():
    X, y = draw_rows(8)
    with pytest.raises(ValueError, match="p < 1"):
        information_criteria(LpRegression(0.5).fit(X, y), X, y)
    model = LpRegression(1.0, alpha=20.0).fit(X, y)
    assert information_criteria(model, X, y).counted["coefficients"] == (model.coef_ != 0).sum() < 4


@pytest.mark.item("MSL-05")
def test_the_lasso_spends_as_many_parameters_as_it_keeps():
    """Σ cov(ŷᵢ, yᵢ)/σ² = E #{nonzero}: Zou, Hastie & Tibshirani. Level: 4.5 standard errors; each of them is below 0.2."""
    rng = np.random.default_rng(9)
    X = rng.normal(size=(30, 6))
    truth = X @ [1.0, -0.5, 0.3, 0.0, 0.0, 0.0]
    differences = []
    for _ in range(800):
        noise = rng.normal(size=30)
        model = sk.Lasso(0.25).fit(X, truth + noise)
        found = information_criteria(model, X, truth + noise)
        differences.append(noise @ (model.predict(X) - truth) - found.counted["coefficients"] - 1)
    error = np.std(differences) / np.sqrt(800)
    assert abs(np.mean(differences)) < 4.5 * error
    assert error < 0.2


def test_networks_and_trees():
    X, y = draw_rows(10)
    network = sk_network.MLPRegressor(hidden_layer_sizes=(5, 3), max_iter=2000, tol=1e-2, random_state=0).fit(X, y)
    found = information_criteria(network, X, y)
    assert found.n_parameters == (4 * 5 + 5) + (5 * 3 + 3) + (3 + 1) + 1
    assert found.log_likelihood == pytest.approx(normal_logs(y, network.predict(X)), rel=1e-12)
    tree = sk_tree.DecisionTreeRegressor(max_leaf_nodes=4, random_state=0).fit(X, y)
    assert information_criteria(tree, X, y).n_parameters == 4 + 1
    _, labels = draw_rows(10, classes=3)
    tree = sk_tree.DecisionTreeClassifier(max_leaf_nodes=4, random_state=0).fit(X, labels)
    found = information_criteria(tree, X, labels)
    assert found.n_parameters == 4 * 2
    shares = tree.predict_proba(X)[np.arange(50), labels]
    assert found.log_likelihood == pytest.approx(np.log(shares).sum(), rel=1e-12)
    absolute = sk_tree.DecisionTreeRegressor(criterion="absolute_error", max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="absolute_error"):
        information_criteria(absolute, X, y)


def test_rows_that_were_not_fitted_like_this_are_refused_by_what_is_wrong():
    X, y = draw_rows(2)
    holes, gap = np.where(np.arange(200).reshape(50, 4) == 7, np.nan, X), np.where(np.arange(50) == 3, np.nan, y)
    for cls in (LinearRegression, Ridge, ElasticNet):
        model = cls().fit(X, y)
        with pytest.raises(ValueError, match="y holds nan: the targets of all rows must be finite"):
            information_criteria(model, X, gap)
        with pytest.raises(ValueError, match="NaN"):
            information_criteria(model, holes, y)
        with pytest.raises(ValueError, match="3 features"):
            information_criteria(model, X[:, :3], y)


# Classifiers


def softmax_trace(X, p, penalty):
    """Brute force: the information as a sum over rows of Kronecker products."""
    Z = np.column_stack([X / SCALES, np.ones(len(X))])  # units do not matter without a penalty, or with it in the same ones
    K = p.shape[1]
    F = sum(np.kron(np.diag(q) - np.outer(q, q), np.outer(z, z)) for q, z in zip(p, Z, strict=True))
    P = np.diag(np.tile(np.append(penalty * np.ones(4) / SCALES**2, 0.0), K))
    return np.trace(np.linalg.pinv(F + P, rcond=1e-10) @ F)


@pytest.mark.parametrize("C", [np.inf, 1.0, 0.01])
def test_logistic_regression_of_two_classes(C):
    X, y = draw_rows(11, classes=2)
    model = LogisticRegression(C).fit(X, y)
    found = information_criteria(model, X, y)
    p = model.predict_proba(X)
    assert found.log_likelihood == pytest.approx(np.log(p[np.arange(50), y]).sum(), rel=1e-9)
    rate, Z = p[:, 0] * p[:, 1], np.column_stack([X, np.ones(50)])
    F = Z.T @ (rate[:, None] * Z)
    expected = np.trace(np.linalg.solve(F + np.diag([1 / C] * 4 + [0.0]), F))
    assert found.n_parameters == pytest.approx(expected, rel=1e-9)
    assert np.isfinite(C) or found.n_parameters == pytest.approx(5, rel=1e-12)
    theirs = information_criteria(sk.LogisticRegression(C=C, tol=1e-10, max_iter=10_000).fit(X, y), X, y)
    assert (found.aic, found.bic) == pytest.approx((theirs.aic, theirs.bic), rel=1e-5)  # where their solver stops
    column = information_criteria(LogisticRegression(C).fit(X, y), X, y[:, None])
    assert column.aic == found.aic


@pytest.mark.parametrize("scaling", [1.0, 10.0])
def test_liblinear_holds_the_intercept_back_too(scaling):
    X, y = draw_rows(11, classes=2)
    options = {"C": 0.1, "solver": "liblinear", "intercept_scaling": scaling, "tol": 1e-10}
    p = (model := sk.LogisticRegression(**options).fit(X, y)).predict_proba(X)
    Z = np.column_stack([X, np.full(50, scaling)])  # to it, the intercept is the coefficient of this column
    F = Z.T @ ((p[:, 0] * p[:, 1])[:, None] * Z)
    assert information_criteria(model, X, y).n_parameters == pytest.approx(np.trace(np.linalg.solve(F + np.eye(5) / 0.1, F)))
    without = information_criteria(sk.LogisticRegression(**options, l1_ratio=1.0).fit(X - [5.0, 0, 0, 0], y), X, y)
    assert without.n_parameters in range(6)


@pytest.mark.parametrize("C", [np.inf, 0.5])
def test_logistic_regression_of_three_classes_has_a_gauge_freedom(C):
    X, y = draw_rows(12, n=200, classes=3)
    model = LogisticRegression(C).fit(X, y)
    found = information_criteria(model, X, y)
    penalty = 0.0 if np.isinf(C) else 1 / C
    assert found.n_parameters == pytest.approx(softmax_trace(X, model.predict_proba(X), penalty), rel=1e-6)  # pinv squares
    assert np.isfinite(C) or found.n_parameters == pytest.approx(2 * 5, rel=1e-10)
    entropy = information_criteria(MaximumEntropyClassifier(C=C).fit(X, y), X, y)
    assert entropy.aic == pytest.approx(found.aic, rel=1e-6)  # two solvers
    apart = information_criteria(LogisticRegression(C, multi_class="ovr").fit(X, y), X, y)
    assert np.isfinite(C) or apart.n_parameters == pytest.approx(3 * 5, rel=1e-10)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_counts_do_not_depend_on_where_zero_is(shift):
    X, y = draw_rows(12, n=200, classes=3)
    for labels in (y, y == 0):
        model = LogisticRegression(2.0, tol=1e-10).fit(X, labels)
        moved = LogisticRegression(2.0, tol=1e-10).fit(X + shift, labels)
        count, other = (information_criteria(m, Z, labels).n_parameters for m, Z in ((model, X), (moved, X + shift)))
        assert other == pytest.approx(count, rel=1e-6)  # ten digits of the columns are left
    target = X @ [1.0, 0.1, 3.0, -1.0] + np.cos(np.arange(200.0))
    count, other = (information_criteria(Ridge(2.0).fit(Z, target), Z, target).n_parameters for Z in (X, X + shift))
    assert other == pytest.approx(count, rel=1e-6)


def test_features_of_maximum_entropy_count_by_their_rank():
    X, y = draw_rows(13, n=100, classes=3)

    def features(X, label):
        own = X[:, :2] * (label == 1)
        return np.column_stack([own, own.sum(axis=1), np.full(len(X), float(label == 2)), np.ones(len(X))])

    model = MaximumEntropyClassifier(features, C=np.inf).fit(X, y)
    assert information_criteria(model, X, y).n_parameters == pytest.approx(3, rel=1e-9)  # a sum and a constant say nothing


def test_a_penalty_with_a_corner_counts_what_is_kept():
    X, y = draw_rows(14, n=200, classes=2)
    model = sk.LogisticRegression(C=0.05, l1_ratio=1.0, solver="saga", tol=1e-8, max_iter=100_000).fit(X / SCALES, y)
    kept = int((model.coef_ != 0).sum())
    assert 0 < kept < 4
    assert information_criteria(model, X / SCALES, y).n_parameters == pytest.approx(kept + 1, rel=1e-9)


@pytest.mark.parametrize("legacy", [True, False])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
def test_a_search_for_the_penalty_counts_like_the_penalty_it_found(l1_ratio, legacy):
    X, y = draw_rows(14, n=120, classes=2)
    options = {"solver": "saga", "tol": 1e-8, "max_iter": 100_000}
    searched = sk.LogisticRegressionCV(
        Cs=[0.05], l1_ratios=(l1_ratio,), scoring="neg_log_loss", use_legacy_attributes=legacy, cv=3, **options
    ).fit(X / SCALES, y)
    plain = sk.LogisticRegression(C=0.05, l1_ratio=l1_ratio, **options).fit(X / SCALES, y)
    found, expected = (information_criteria(model, X / SCALES, y) for model in (searched, plain))
    assert (found.bic, found.n_parameters) == pytest.approx((expected.bic, expected.n_parameters), rel=1e-5)  # two fits


@pytest.mark.parametrize(
    "model",
    [
        sk.LogisticRegression(class_weight="balanced"),
        sk.SGDClassifier("log_loss", class_weight={0: 2.0}),
        sk_tree.DecisionTreeClassifier(class_weight="balanced", max_depth=2),
        DecisionTreeClassifier(class_weight={0: 3.0}, max_depth=2),
    ],
)
def test_weights_of_classes_are_weights_of_rows_or_refused(model):
    X, y = draw_rows(15, classes=2)
    with pytest.raises(ValueError, match="with class_weight maximized the likelihood of rows that weigh otherwise"):
        information_criteria(model.fit(X / SCALES, y), X / SCALES, y)


def test_probit_and_stochastic_gradients():
    X, y = draw_rows(15, classes=2)
    model = ProbitRegression(np.inf).fit(X, y)
    found = information_criteria(model, X, y)
    z = X @ model.coef_[0] + model.intercept_
    assert found.log_likelihood == pytest.approx(norm.logcdf(np.where(y == 1, z, -z)).sum(), rel=1e-9)
    assert found.n_parameters == pytest.approx(5, rel=1e-10)
    held = ProbitRegression(0.3).fit(X, y)
    z = X @ held.coef_[0] + held.intercept_
    Z = np.column_stack([X, np.ones(50)])
    F = Z.T @ ((norm.pdf(z) ** 2 / norm.cdf(z) / norm.cdf(-z))[:, None] * Z)
    expected = np.trace(np.linalg.solve(F + np.diag([1 / 0.3] * 4 + [0.0]), F))
    assert information_criteria(held, X, y).n_parameters == pytest.approx(expected, rel=1e-9)
    for cls in (SGDClassifier, sk.SGDClassifier):
        model = cls("log_loss", alpha=0.1, max_iter=3000, random_state=0).fit(X / SCALES, y)
        found = information_criteria(model, X / SCALES, y)
        p = model.predict_proba(X / SCALES)
        Z = np.column_stack([X / SCALES, np.ones(50)])
        F = Z.T @ ((p[:, 0] * p[:, 1])[:, None] * Z)
        assert found.n_parameters == pytest.approx(np.trace(np.linalg.solve(F + np.diag([5.0] * 4 + [0.0]), F)), rel=1e-9)
        with pytest.raises(ValueError, match="log_loss"):
            information_criteria(cls("hinge", random_state=0).fit(X, y), X, y)


@pytest.mark.item("MSL-08")
def test_gaussian_processes_have_the_evidence_of_the_raw_targets():
    X, y = draw_rows(16, n=20)
    X, y = X[:, :1], 100 + 7 * y
    theirs = sk_gp.GaussianProcessRegressor(SkRBF(1.5), alpha=0.3, normalize_y=True, optimizer=None).fit(X, y)
    squared = (X - X.T) ** 2
    K = np.exp(-squared / (2 * 1.5**2)) + 0.3 * np.eye(20)
    exact = multivariate_normal(np.full(20, y.mean()), np.var(y) * K).logpdf(y)
    found = information_criteria(theirs, X, y)
    assert found.log_evidence == pytest.approx(exact, rel=1e-9)
    assert found.counted == {"mean and scale of the targets": 2}
    ours = GaussianProcessRegressor(RBF(1.5), noise=0.3, optimizer=None, center=False).fit(X, y)
    exact = multivariate_normal(np.zeros(20), K).logpdf(y)
    found = information_criteria(ours, X, y)
    assert (found.log_likelihood, found.n_parameters) == (pytest.approx(exact, rel=1e-9), 0)
    searched = GaussianProcessRegressor(RBF(1.5)).fit(X, y)
    counted = information_criteria(searched, X, y).counted
    assert counted == {"hyperparameters": 1, "noise variance": 1, "mean of the targets": 1}
    with pytest.raises(ValueError, match="20 rows of the fit only"):
        information_criteria(searched, X[:5], y[:5])


# Laws of rows and classes


def test_naive_bayes_as_in_scikit_learn():
    X, y = draw_rows(17, n=80, classes=3)
    counts = np.random.default_rng(0).poisson(3.0, size=(80, 4)).astype(float)
    codes = np.minimum(counts, 2)
    for ours, theirs, rows, count in (
        (GaussianNB(), sk_bayes.GaussianNB(), X, 2 + 2 * 3 * 4),
        (BernoulliNB(), sk_bayes.BernoulliNB(), (X > 0).astype(float), 2 + 3 * 4),
        (CategoricalNB(), sk_bayes.CategoricalNB(), codes, 2 + 3 * 4 * 2),
        (MultinomialNB(), sk_bayes.MultinomialNB(), counts, 2 + 3 * 3),
    ):
        found, other = (information_criteria(model.fit(rows, y), rows, y) for model in (ours, theirs))
        assert found.n_parameters == other.n_parameters == count
        assert found.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-6)  # variances are smoothed alike
    given = GaussianNB(priors=[0.2, 0.3, 0.5]).fit(X, y)
    assert "class shares" not in information_criteria(given, X, y).counted
    found = information_criteria(MultinomialNB(alpha=0.0).fit(counts, y), counts, y)
    shares = np.array([(y == c).mean() for c in range(3)])
    words = np.array([counts[y == c].sum(axis=0) / counts[y == c].sum() for c in range(3)])
    exact = sum(np.log(shares[c]) + multinomial(row.sum(), words[c]).logpmf(row) for row, c in zip(counts, y, strict=True))
    assert found.log_likelihood == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "tied-diag", "spherical"])
def test_gaussian_classes(kind):
    X, y = draw_rows(18, n=90, classes=3)
    model = GaussianBayes(kind).fit(X, y)
    C = np.asarray(model.covariance_)
    matrix = {
        "full": lambda c: C[c],
        "tied": lambda c: C,
        "diag": lambda c: np.diag(C[c]),
        "tied-diag": lambda c: np.diag(C),
        "spherical": lambda c: C[c] * np.eye(4),
    }[kind]
    exact = sum(
        (multivariate_normal(model.means_[c], matrix(c)).logpdf(X[y == c]) + np.log(np.mean(y == c))).sum() for c in range(3)
    )
    found = information_criteria(model, X, y)
    assert found.log_likelihood == pytest.approx(exact, rel=1e-9)
    assert found.n_parameters == 2 + 12 + {"full": 30, "tied": 10, "diag": 12, "tied-diag": 4, "spherical": 3}[kind]


def test_discriminants_as_in_scikit_learn():
    X, y = draw_rows(19, n=90, classes=3)
    ours = information_criteria(LinearDiscriminantAnalysis().fit(X, y), X, y)
    theirs = information_criteria(sk_discriminant.LinearDiscriminantAnalysis(store_covariance=True).fit(X, y), X, y)
    assert (ours.aic, ours.n_parameters) == (pytest.approx(theirs.aic, rel=1e-9), 24)
    with pytest.raises(ValueError, match="store_covariance"):
        information_criteria(sk_discriminant.LinearDiscriminantAnalysis().fit(X, y), X, y)
    ours = information_criteria(QuadraticDiscriminantAnalysis().fit(X, y), X, y)
    theirs = information_criteria(sk_discriminant.QuadraticDiscriminantAnalysis().fit(X, y), X, y)
    assert ours.n_parameters == theirs.n_parameters == 2 + 12 + 30
    assert ours.aic == pytest.approx(theirs.aic, rel=1e-2)  # they divide by n − 1


# Densities


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_principal_components_are_a_gaussian(k):
    X, _ = draw_rows(20)
    normal = multivariate_normal(X.mean(axis=0), PCA(k).fit(X).get_covariance())
    for model in (PCA(k), sk_decomposition.PCA(k), PCA(k, whiten=True), sk_decomposition.PCA(k, whiten=True)):
        found = information_criteria(model.fit(X), X)
        assert found.log_likelihood == pytest.approx(normal.logpdf(X).sum(), rel=1e-9)
        assert found.n_parameters == {1: 4 + 4 + 1, 2: 4 + 7 + 1, 3: 4 + 9 + 1, 4: 4 + 10}[k]
    factors = information_criteria(sk_decomposition.FactorAnalysis(1).fit(X), X)
    assert factors.n_parameters == 4 + 4 + 4


@pytest.mark.item("MSL-07")
@pytest.mark.parametrize(("k", "d"), [(1, 2), (1, 3), (2, 3), (2, 5), (3, 4)])
def test_the_count_of_factor_analysis_is_the_rank_of_its_covariance(k, d):
    rng = np.random.default_rng(d)
    theta = np.concatenate([rng.normal(size=d * k), rng.uniform(0.5, 1.5, d)])

    def covariance(theta):
        W = theta[: d * k].reshape(d, k)
        return (W @ W.T + np.diag(theta[d * k :]))[np.triu_indices(d)]

    rank = identified_parameters(covariance, theta)
    X = rng.normal(size=(60, d)) @ rng.normal(size=(d, d))
    found = information_criteria(sk_decomposition.FactorAnalysis(k, max_iter=10, tol=1.0).fit(X), X)
    assert found.n_parameters == d + rank


def test_clusters_are_densities():
    rng = np.random.default_rng(21)
    X = rng.normal(size=(60, 2)) + 6 * np.arange(3)[np.arange(60) % 3][:, None]
    means = KMeans(3, random_state=0).fit(X)
    found, n = information_criteria(means, X), np.bincount(means.labels_)
    sigma = np.sqrt(means.inertia_ / 120)
    exact = norm(means.cluster_centers_[means.labels_], sigma).logpdf(X).sum() + n @ np.log(n / 60)
    assert (found.log_likelihood, found.n_parameters) == (pytest.approx(exact, rel=1e-9), 2 + 6 + 1)
    medians = KMedians(3, random_state=0).fit(X)
    found, n = information_criteria(medians, X), np.bincount(medians.labels_)
    exact = laplace(medians.cluster_centers_[medians.labels_], medians.inertia_ / 120).logpdf(X).sum() + n @ np.log(n / 60)
    assert (found.log_likelihood, found.n_parameters) == (pytest.approx(exact, rel=1e-9), 2 + 6 + 1)
    soft = SoftKMeans(3, beta=0.4, random_state=0).fit(X)
    parts = [np.exp(norm(c, np.sqrt(1 / 0.8)).logpdf(X).sum(axis=1)) for c in soft.cluster_centers_]
    found = information_criteria(soft, X)
    assert (found.log_likelihood, found.n_parameters) == (pytest.approx(np.log(np.mean(parts, axis=0)).sum(), rel=1e-9), 6)
    with pytest.raises(ValueError, match="every row at its center"):
        information_criteria(KMeans(2, random_state=0).fit(X[:2]), X[:2])


# Tables as products


def test_factorizations_are_densities_of_entries():
    rng = np.random.default_rng(22)
    X = rng.poisson(rng.gamma(2.0, size=(30, 2)) @ rng.gamma(2.0, size=(2, 6))).astype(float)
    squared = NMF(2, max_iter=50, tol=1e-2, random_state=0).fit(X)
    made = squared.transform(X) @ squared.components_
    found = information_criteria(squared, X)
    assert found.log_likelihood == pytest.approx(norm(0, np.sqrt(np.mean((X - made) ** 2))).logpdf(X - made).sum(), rel=1e-9)
    assert (found.n_rows, found.unit) == (180, "entries")
    theirs = sk_decomposition.NMF(2, beta_loss="kullback-leibler", solver="mu", max_iter=300, tol=1e-3, random_state=0).fit(X)
    found = information_criteria(theirs, X)
    made = theirs.transform(X) @ theirs.components_
    assert found.log_likelihood == pytest.approx(poisson(made).logpmf(X).sum(), rel=1e-9)
    held = [information_criteria(NMF(2, alpha_W=a, max_iter=50, tol=1e-2, random_state=0).fit(X), X) for a in (0.0, 0.1)]
    assert [any("prior holds parameters back" in sentence for sentence in c.note) for c in held] == [False, True]
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = NMF(2, max_iter=50, tol=1e-2, random_state=0).fit(holes)
    found, seen = information_criteria(model, holes), ~np.isnan(holes)
    off = (holes - model.transform(holes) @ model.components_)[seen]
    assert found.log_likelihood == pytest.approx(norm(0, np.sqrt(np.mean(off**2))).logpdf(off).sum(), rel=1e-9)
    assert found.n_rows == seen.sum()
