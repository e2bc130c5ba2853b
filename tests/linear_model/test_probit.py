"""Probit regression and its siblings against logistic regression, SciPy's minimizers, finite differences and brute force."""

import numpy as np
import pytest
import scipy.stats as st
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array, random_array

import lemmata
from helpers import Watcher
from lemmata.core.blocks import Blocks
from lemmata.linear_model import LogisticRegression, ProbitRegression
from lemmata.linear_model.inverse_links import LINKS, inverse_link
from lemmata.linear_model.link_objective import excess, link_objective
from lemmata.linear_model.logistic_solvers import solver

X6, Y6 = np.arange(6.0)[:, None], np.array([0, 0, 1, 0, 1, 1])
links = pytest.mark.parametrize("link", LINKS)
CONVEX = [name for name in LINKS if LINKS[name].convex]


def draw(seed, n=80, d=3, link="probit"):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.3, 3, d) + rng.normal(size=d)
    z = (X - X.mean(axis=0)) @ rng.normal(size=d) / X.std(axis=0).mean() + 0.3
    return X, (rng.random(n) < np.exp(inverse_link(link).log_probabilities(z)[:, 1])).astype(int)


def naive(link, C, X, y, weight=1.0):
    """The objective as the textbook has it, for SciPy to minimize: coefficients, then the intercept."""
    distribution = {"probit": st.norm, "logit": st.logistic, "cloglog": st.gumbel_l, "cauchit": st.cauchy}[link]

    def objective(v):
        z = X @ v[:-1] + v[-1]
        return -(weight * np.where(y == 1, distribution.logcdf(z), distribution.logsf(z))).sum() + v[:-1] @ v[:-1] / (2 * C)

    return objective


@pytest.mark.item("CLS-17")
def test_the_logistic_link_reproduces_logistic_regression():
    model = ProbitRegression(C=np.inf, link="logit").fit(X6, Y6)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_), [-3.035069, 1.214028], atol=5e-7)
    assert model.predict_log_proba(X6)[np.arange(6), Y6].sum() == pytest.approx(-2.477987, abs=5e-7)
    for seed, C in enumerate([0.01, 1.0, 100.0, np.inf]):
        X, y = draw(seed)
        ours, peer = ProbitRegression(C, link="logit").fit(X, y), LogisticRegression(C, tol=1e-12).fit(X, y)
        np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-8)
        np.testing.assert_allclose(ours.intercept_, peer.intercept_, rtol=1e-8)
        np.testing.assert_allclose(ours.predict_proba(X), peer.predict_proba(X), rtol=1e-7)
        np.testing.assert_allclose(ours.covariance(X), peer.covariance(X), rtol=1e-7)
        np.testing.assert_allclose(ours.covariance(X, y), peer.covariance(X), rtol=1e-7)


@links
@pytest.mark.parametrize("C", [0.3, np.inf])
def test_no_minimizer_does_better(link, C):
    X, y = draw(3, link=link)
    model = ProbitRegression(C, link=link).fit(X, y)
    objective, own = naive(link, C, X, y), np.append(model.coef_, model.intercept_)
    peer = minimize(objective, own + 0.1, method="BFGS", options={"gtol": 1e-7})
    assert objective(own) <= peer.fun + 1e-12 * abs(peer.fun)
    np.testing.assert_allclose(own, peer.x, rtol=1e-5)  # the peer differentiates numerically
    assert model.certify(X, y).holds


@pytest.mark.item("CLS-17")
@links
def test_gradient_and_second_derivatives(link):
    X, y = draw(4, link=link)
    weight = np.random.default_rng(0).random(80)
    problem = link_objective(Blocks.of(X, y, weight, block_rows=16), LINKS[link], 0.7, intercept=True)
    theta = np.random.default_rng(1).normal(size=4) * 0.5
    numerical = approx_fprime(theta, lambda t: problem(t)[0], 1e-7)
    np.testing.assert_allclose(problem(theta)[1], numerical, rtol=1e-5, atol=1e-6)  # forward differences
    coef, intercept = problem.parameters(theta)
    value = naive(link, 1 / 0.7, X, y, weight)(np.append(coef, intercept)) / weight.sum()
    assert problem(theta)[0] == pytest.approx(value, rel=1e-12)
    second = np.array([(problem(theta + h)[1] - problem(theta - h)[1]) / 2e-5 for h in 1e-5 * np.eye(4)])
    H = problem.second_derivatives(theta, expected=False)
    np.testing.assert_allclose(H, second, rtol=1e-6, atol=1e-8)  # central differences
    information = problem.second_derivatives(theta, expected=True)
    assert np.linalg.eigvalsh(information)[0] > 0
    product = (H if problem.link.convex else information) @ np.arange(4.0)  # what conjugate gradients can use
    np.testing.assert_allclose(problem.curvature(theta, np.arange(4.0)), product, rtol=1e-12)
    np.testing.assert_array_equal(problem.hessian(theta), H if np.linalg.eigvalsh(H)[0] > 0 else information)


def test_where_the_hessian_is_indefinite_the_information_takes_its_place():
    X, y = draw(4, link="cauchit")
    problem = link_objective(Blocks.of(X, y, None), LINKS["cauchit"], 0.0, intercept=True)
    model = ProbitRegression(C=np.inf, link="cauchit").fit(X, y)
    theta = -3 * problem.theta(*model._parameters())
    assert np.linalg.eigvalsh(problem.second_derivatives(theta, expected=False))[0] < 0
    np.testing.assert_array_equal(problem.hessian(theta), problem.second_derivatives(theta, expected=True))


@links
def test_block_sums_add_up(link):
    X, y = draw(5, n=50)
    theta = np.array([0.3, -0.2, 0.5, 0.1])
    whole = link_objective(Blocks.of(X, y, None, block_rows=50), LINKS[link], 0.0, intercept=True)
    for rows in (7, 16, 49):
        parts = link_objective(Blocks.of(X, y, None, block_rows=rows), LINKS[link], 0.0, intercept=True)
        here = parts.theta(*whole.parameters(theta))  # other blocks, other standard coordinates
        assert parts(here)[0] == pytest.approx(whole(theta)[0], rel=1e-14)


@pytest.mark.parametrize("link", CONVEX)
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_the_bound_is_true_and_close(link, penalty):
    X, y = draw(6, link=link)
    problem = link_objective(Blocks.of(X, y, None), LINKS[link], penalty, intercept=True)
    model = ProbitRegression(C=np.inf if penalty == 0 else 1 / penalty, link=link, tol=1e-14).fit(X, y)
    best = problem.theta(*model._parameters())
    least, rng = problem(best)[0], np.random.default_rng(0)
    for size in (1e-6, 1e-3, 0.03, 0.2):
        theta = best + size * rng.normal(size=len(best))
        bound, kind = excess(problem, theta)
        true = problem(theta)[0] - least
        assert kind == "proof"
        assert bound >= true * (1 - 1e-9) - 1e-15  # rounding of two sums of 80 terms
        if size < 0.1:
            assert bound <= 2 * true + 1e-14  # the gap of the dual point is of higher order
    assert excess(problem, best + 50)[0] > 1  # far away there may be no dual point, which proves nothing


@pytest.mark.parametrize("link", CONVEX)
@pytest.mark.parametrize("penalty", [0.5, 1e4])
def test_the_bound_of_wide_tables_is_true(link, penalty, monkeypatch):
    X, y = draw(7, link=link)
    problem = link_objective(Blocks.of(X, y, None), LINKS[link], penalty, intercept=True)
    best = problem.theta(*ProbitRegression(C=1 / penalty, link=link, tol=1e-14).fit(X, y)._parameters())
    monkeypatch.setattr("lemmata.linear_model.link_objective.DENSE", 0)
    least = problem(best)[0]
    assert excess(problem, best)[0] < 1e-12
    for move in (np.array([0.01, 0.02, -0.01, 0.0]), np.array([0.0, 0.0, 0.0, 0.3])):
        bound, kind = excess(problem, best + move)
        assert kind == "proof"
        assert bound >= (problem(best + move)[0] - least) * (1 - 1e-9)
        if penalty > 1 or not move[:3].any():  # nearly all curvature is the penalty's, or the best intercept is found
            assert bound <= 1.1 * (problem(best + move)[0] - least)


@pytest.mark.parametrize("link", CONVEX)
def test_no_bound_without_an_optimum(link):
    for x in (np.arange(6.0), np.array([0.0, 0, 0, 0, 0, 1]), np.array([-1.0, 0, 0, 0, 0, 1])):
        problem = link_objective(Blocks.of(x[:, None], np.array([0, 0, 0, 1, 1, 1]), None), LINKS[link], 0.0, intercept=True)
        state, step = solver("newton", problem, None)
        while np.abs(state[2]).max() > 1e-11:  # beyond, a class is certain to more digits than a Hessian has
            assert excess(problem, state[0])[0] == np.inf
            state, _, _ = step(state)


@pytest.mark.parametrize("link", CONVEX)
def test_slopes_that_do_not_balance_prove_nothing(link, monkeypatch):
    X, y = draw(7, link=link)
    problem = link_objective(Blocks.of(X, y, None), LINKS[link], 0.0, intercept=True)
    monkeypatch.setattr("lemmata.linear_model.link_objective.balanced_step", lambda problem, theta, g: (0 * theta, g))
    assert excess(problem, np.zeros(4))[0] == np.inf


@pytest.mark.item("CLS-17")
def test_the_threshold_is_a_probability_of_one_half():
    X, y = draw(8, n=200, link="cloglog")
    model = ProbitRegression(link="cloglog").fit(X, y)
    p = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(p, 1 - np.exp(-np.exp(model.decision_function(X))), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), p > 0.5)
    assert (model.predict(X) != (model.decision_function(X) > 0)).any()  # log log 2 < 0


@pytest.mark.parametrize("link", [*LINKS, st.t(5)])
def test_separable_classes_have_no_optimum(link):
    overlap = np.array([-2.0, -1.0, 0.0, 0.0, 1.0, 2.0])[:, None]
    for X in (X6, overlap, np.column_stack([overlap, overlap**2]), np.eye(6)[:, 5:]):
        with pytest.raises(ValueError, match="A plane separates the classes"):
            ProbitRegression(C=np.inf, link=link).fit(X, [0, 0, 0, 1, 1, 1])
        if link in CONVEX:  # far out, where the digits of a Hessian have ended
            with pytest.raises(ValueError, match="A plane separates the classes"):
                ProbitRegression(C=np.inf, link=link, tol=1e-14).fit(X, [0, 0, 0, 1, 1, 1])
    model = ProbitRegression(C=10.0, link=link).fit(X6, [0, 0, 0, 1, 1, 1])
    assert model.certify(X6, [0, 0, 0, 1, 1, 1]).holds


@pytest.mark.parametrize("distribution", [st.t(5), st.laplace(), st.gumbel_r(), st.norm()])
def test_any_distribution_is_a_link(distribution):
    X, y = draw(9)
    model = ProbitRegression(link=distribution).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate.kind == "local"
    assert model.standard_errors(X, y) == pytest.approx(model.standard_errors(X), rel=0.5)
    if distribution.dist.name == "norm":
        np.testing.assert_allclose(model.coef_, ProbitRegression().fit(X, y).coef_, rtol=1e-8)


def test_a_local_optimum_is_checked_as_one():
    X, y = draw(10, link="cauchit")
    model = ProbitRegression(link="cauchit", C=np.inf).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds
    assert certificate.kind == "local"
    for name in ("coef_", "intercept_"):
        twin = ProbitRegression(link="cauchit", C=np.inf).fit(X, y)
        setattr(twin, name, getattr(twin, name) * 1.01)
        assert not twin.certify(X, y).holds
    model.coef_ = -5 * model.coef_  # where most rows have given up, the loss is concave
    assert not model.certify(X, y)["minimum"].holds


@links
def test_sparse_tables_are_dense_tables(link):
    rng = np.random.default_rng(11)
    X = random_array((120, 6), density=0.4, rng=rng, data_sampler=rng.standard_normal)
    y = (X @ np.ones(6) + rng.normal(size=120) > 0).astype(int)
    sparse, dense = (ProbitRegression(link=link).fit(A, y) for A in (csr_array(X), X.toarray()))
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-7)
    np.testing.assert_allclose(sparse.covariance(csr_array(X)), dense.covariance(X.toarray()), rtol=1e-6, atol=1e-12)
    assert sparse.certify(csr_array(X), y).holds


@pytest.mark.parametrize("link", ["probit", "cauchit"])
@pytest.mark.parametrize("intercept", [False, True])
def test_wide_sparse_tables(link, intercept):
    rng = np.random.default_rng(12)
    X = random_array((400, 2500), density=0.01, rng=rng, data_sampler=rng.standard_normal, format="csr")
    y = (X @ rng.normal(size=2500) + 0.1 * rng.normal(size=400) > 0).astype(int)
    model = ProbitRegression(link=link, fit_intercept=intercept).fit(X, y)
    assert model.converged_
    assert model.certify(X, y).holds


@links
def test_the_same_answer_off_center_and_in_any_unit(link):
    X, y = draw(13)
    model = ProbitRegression(C=np.inf, link=link).fit(X, y)
    moved = ProbitRegression(C=np.inf, link=link).fit(X * 1e-7 + 1.0, y)
    # 1e-6: of the entries near 1, nine digits are left of the columns
    np.testing.assert_allclose(moved.predict_proba(X * 1e-7 + 1.0), model.predict_proba(X), rtol=1e-6, atol=1e-7)
    assert moved.certify(X * 1e-7 + 1.0, y).holds


def test_more_columns_than_rows():
    rng = np.random.default_rng(14)
    X, y = rng.normal(size=(15, 40)), np.arange(15) % 2
    model = ProbitRegression().fit(X, y)
    assert model.certify(X, y).holds
    with pytest.raises(ValueError, match="separates"):
        ProbitRegression(C=np.inf).fit(X, y)


def test_redundant_columns_without_a_penalty():
    X, y = draw(15)
    twice = np.column_stack([X, X[:, 0], np.ones(len(X))])
    model, peer = ProbitRegression(C=np.inf).fit(twice, y), ProbitRegression(C=np.inf).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(twice), peer.predict_proba(X), rtol=1e-7)
    assert model.certify(twice, y).holds


def test_large_tables_start_from_a_sample():
    X, y = draw(16, n=70_000)
    model = ProbitRegression(C=np.inf).fit(X, y)
    assert model.n_iter_ <= 4
    assert model.certify(X, y).holds
    with lemmata.config(n_threads=1):
        assert ProbitRegression(C=np.inf).fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_the_objective_falls_at_every_iteration():
    X, y = draw(17)
    watcher = Watcher(lambda iteration: None)
    model = ProbitRegression().set_callbacks(watcher).fit(X, y)
    assert (np.diff(model.trace_) <= 1e-15).all()
    assert watcher.tasks.count("begin iteration") == model.n_iter_


def test_unknown_links_are_refused():
    with pytest.raises(ValueError, match="'link' parameter of ProbitRegression must be"):
        ProbitRegression(link="normal").fit(X6, Y6)
    with pytest.raises(ValueError, match="distribution on all numbers"):
        ProbitRegression(link=st.expon()).fit(X6, Y6)
