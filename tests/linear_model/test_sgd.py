"""Stochastic gradient descent: the steps of scikit-learn and of a slow twin, the replay that proves a fit, the dual bound."""

from copy import deepcopy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.linear_model
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.linear_model import Perceptron, SGDClassifier
from lemmata.linear_model.margin_losses import LOSSES
from lemmata.linear_model.sgd import optimal
from lemmata.linear_model.stochastic_gradient import objective_at, objective_bound
from lemmata.optimize.rules import Adam, GradientDescent, Momentum
from lemmata.optimize.schedules import inverse

SEEDS = range(3)
FITTED = ["hinge", "squared_hinge", "logistic", "deviance", "exponential", "squared", "modified_huber", "perceptron"]
THEIRS = {"logistic": "log_loss", "squared": "squared_error"}
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def table(seed, n=80, k=2, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, k)) + rng.normal(size=(n, k)), axis=1)


def slow(model, X, signs, weight=None, epochs=5):
    """Take the steps one visit at a time, with the rule of `lemmata.optimize`: a twin to read. Returns last and mean plane."""
    weight = np.ones(len(X)) if weight is None else weight
    loss, alpha = LOSSES[model.loss], model.alpha
    rate = optimal(alpha, loss) if model.learning_rate == "optimal" else None
    rule = model.rule or GradientDescent(rate or model.eta0)
    Z = np.column_stack([X, np.full(len(X), float(model.fit_intercept))])
    theta, state = np.zeros(Z.shape[1]), rule.init(Z.shape[1])
    total, visited = np.zeros(Z.shape[1]), 0.0
    for _ in range(epochs):
        for i in range(len(X)):
            left = weight[i]
            while left > 0:
                part = min(left, 1.0)
                gradient = float(loss.derivative(signs[i] * (Z[i] @ theta))) * signs[i] * Z[i]
                gradient[:-1] += alpha * theta[:-1]
                moved, state = rule.step(theta, gradient, state)
                theta = theta + part * (moved - theta)
                total, visited, left = total + part * theta, visited + part, left - part
    return theta, total / visited


@quiet
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared", "modified_huber", "perceptron"])
@pytest.mark.parametrize("average", [False, True])
def test_the_steps_are_those_of_scikit_learn(loss, average):
    for k in (2, 3):
        X, y = table(1, k=k)
        options = {"shuffle": False, "max_iter": 6, "tol": None, "average": average, "alpha": 0.01, "eta0": 0.02}
        options["learning_rate"] = "optimal" if loss in ("hinge", "logistic", "perceptron") else "constant"
        ours = SGDClassifier(loss, **options).fit(X, y)
        theirs = sklearn.linear_model.SGDClassifier(loss=THEIRS.get(loss, loss), **options).fit(X, y)
        # 1e-8: the same steps; a thousand roundings
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-8)
        if loss in ("logistic", "modified_huber"):
            np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-7, atol=1e-9)
        else:
            assert not hasattr(ours, "predict_proba")


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_it_stops_when_scikit_learn_does(loss):
    for seed in SEEDS:
        X, y = table(seed, n=300)
        ours = SGDClassifier(loss, shuffle=False).fit(X, y)
        theirs = sklearn.linear_model.SGDClassifier(loss=THEIRS.get(loss, loss), shuffle=False).fit(X, y)
        assert ours.n_iter_ == theirs.n_iter_ == len(ours.trace_)
        assert ours.converged_


@quiet
@pytest.mark.parametrize("loss", FITTED)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_kernel_is_the_slow_twin(loss, form):
    X, y = table(2, n=40)
    weight = np.random.default_rng(4).choice([0.3, 1.0, 2.0, 2.6], 40)
    for weights in (None, weight):
        for average in (False, True):
            for intercept in (False, True):
                model = SGDClassifier(loss, shuffle=False, alpha=0.05, max_iter=5, tol=None, average=average)
                model.set_params(fit_intercept=intercept)
                if loss == "exponential":  # whose slopes leave the numbers in steps as long as "optimal"
                    model.set_params(learning_rate="constant", eta0=0.02)
                model.fit(form(X), y, weights)
                expected = slow(model, X, 2 * y - 1, weights)[average]
                np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9, atol=1e-9)


@quiet
@pytest.mark.parametrize("rule", [Momentum(0.05), Adam(0.02), Adam(inverse(0.5)), GradientDescent(inverse(0.5))])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_rules_take_their_own_steps(rule, form):
    X, y = table(3, n=30)
    model = SGDClassifier("logistic", rule=rule, shuffle=False, alpha=0.05, max_iter=4, tol=None, average=True)
    expected = slow(model, X, 2 * y - 1, epochs=4)[1]
    model.fit(form(X), y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9, atol=1e-9)
    assert model.certify(form(X), y).holds


@quiet
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adagrad", "rmsprop", "adam"])
@pytest.mark.parametrize("learning_rate", ["optimal", "constant", "inverse_sqrt", "inverse"])
def test_every_rule_and_schedule_learns_and_is_certified(rule, learning_rate):
    X, y = table(5, n=200)
    model = SGDClassifier("logistic", rule=rule, learning_rate=learning_rate, eta0=0.1, random_state=0, max_iter=20)
    assert (
        model.fit(X, y).score(X, y) > 0.7
    )  # 0.8 is the best, and η/t is soon too short for rules that shorten steps themselves
    assert model.certify(X, y).holds


def test_named_schedules_are_formulas():
    X, y = np.array([[1.0], [-2.0]]), np.array([1, 0])
    for name, rates in {"constant": [0.5, 0.5], "inverse": [0.5, 0.25], "inverse_sqrt": [0.5, 0.5 / np.sqrt(2)]}.items():
        model = SGDClassifier("squared", learning_rate=name, eta0=0.5, alpha=0.0, shuffle=False, max_iter=1, tol=None).fit(X, y)
        w = b = 0.0
        for x, s, rate in zip([1.0, -2.0], [1.0, -1.0], rates, strict=True):
            miss = s - (w * x + b)  # (1 − m)²/2 is (s − f)²/2 for s = ±1
            w, b = w + rate * miss * x, b + rate * miss
        np.testing.assert_allclose([model.coef_[0, 0], model.intercept_[0]], [w, b], rtol=1e-12)
    with pytest.raises(ValueError, match="needs a penalty"):
        SGDClassifier(alpha=0.0).fit(X, y)


@pytest.mark.item("CLS-04")
@pytest.mark.parametrize("seed", SEEDS)
def test_with_its_loss_and_steps_of_one_it_is_the_perceptron(seed):
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 2
    X = 3 * np.eye(2)[y] + rng.uniform(-1, 1, size=(60, 2))
    perceptron = Perceptron(shuffle=False, intercept_scaling=1).fit(X, y)
    options = {"alpha": 0.0, "learning_rate": "constant", "eta0": 1.0, "shuffle": False, "tol": None}
    model = SGDClassifier("perceptron", max_iter=perceptron.n_iter_, **options).fit(X, y)
    np.testing.assert_allclose(model.coef_, perceptron.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, perceptron.intercept_, rtol=1e-12, atol=1e-12)
    assert model.trace_[-1] == 0.0
    assert model.objective_ == 0.0, "nothing is lost where all rows are on their sides"
    assert np.linalg.norm(model.coef_) > 0, "unlike at w = 0, where this loss is zero as well"
    wrong = SGDClassifier("perceptron", max_iter=perceptron.n_iter_, **options).fit(X, rng.permutation(y))
    assert wrong.objective_ > 0
    # the erratum: with < 0 instead of ≤ 0, the first visit, at w = 0, would be no step, nor any other
    assert LOSSES["perceptron"].derivative(0.0) == -1.0


@pytest.mark.item("CLS-09")
def test_logistic_steps_are_gradients_whose_mean_is_the_full_gradient():
    X, y = table(7)
    eta = 0.3
    model = SGDClassifier("logistic", alpha=0.0, learning_rate="constant", eta0=eta, shuffle=False, max_iter=1, tol=None)
    w, b = np.zeros(3), 0.0
    for x, target in zip(X, y, strict=True):  # w ← w − η x(σ(w·x) − y) with y in {0, 1}
        off = expit(w @ x + b) - target
        w, b = w - eta * off * x, b - eta * off
    model.fit(X, y)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), np.append(w, b), rtol=1e-10)
    signs, Z = 2 * y - 1, np.column_stack([X, np.ones(len(X))])
    theta = np.append(w, b)
    each = (LOSSES["logistic"].derivative(signs * (Z @ theta)) * signs)[:, None] * Z
    np.testing.assert_allclose(each, (expit(Z @ theta) - y)[:, None] * Z, rtol=1e-9, atol=1e-12)

    def risk(t):
        return LOSSES["logistic"].value(signs * (Z @ t)).mean()

    numeric = [(risk(theta + 1e-6 * e) - risk(theta - 1e-6 * e)) / 2e-6 for e in np.eye(4)]
    np.testing.assert_allclose(each.mean(axis=0), numeric, rtol=1e-6, atol=1e-8)  # a central difference


@pytest.mark.parametrize("loss", FITTED)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rare", [0, 1])
def test_the_bound_is_below_the_minimum_and_meets_it_there(loss, intercept, rare):
    X, _ = table(8)
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 1, rare, 1 - rare)
    X, weight = 0.2 * X, np.random.default_rng(0).uniform(0.2, 2.0, len(X))
    signs, form = 2 * y - 1, LOSSES[loss]
    model = SGDClassifier(loss, alpha=0.1, fit_intercept=intercept)
    model.classes_ = np.array([0, 1])
    settings = model._settings()[0]
    blocks = Blocks.of(X, y, weight, block_rows=32)

    def value(t):
        w, b = t[:3], t[3] * intercept
        return float(weight @ form.value(signs * (X @ w + b)) / weight.sum() + 0.05 * w @ w)

    best = minimize(value, np.zeros(4), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 20_000})
    best = minimize(value, best.x, method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})
    rng = np.random.default_rng(1)
    for t in [
        best.x,
        np.zeros(4),
        *rng.normal(size=(20, 4)),
    ]:  # at zero, a dual point that is not balanced would prove too much
        plane = t[None, :3], t[3:] * intercept
        values, sums = objective_at(blocks, settings, form, *plane)
        bound = objective_bound(blocks, settings, form, *plane, sums)
        np.testing.assert_allclose(values[0], value(t), rtol=1e-12)
        assert bound[0] <= best.fun + 1e-12
    if form.smooth:
        values, sums = objective_at(blocks, settings, form, best.x[None, :3], best.x[3:] * intercept)
        bound = objective_bound(blocks, settings, form, best.x[None, :3], best.x[3:] * intercept, sums)
        np.testing.assert_allclose(bound[0], best.fun, rtol=1e-4)  # what a search without derivatives reaches


@pytest.mark.parametrize("options", [{}, {"average": True}, {"loss": "logistic"}, {"rule": "adam"}, {"shuffle": False}])
@pytest.mark.parametrize("k", [2, 3])
def test_one_percent_of_anything_is_refused(options, k):
    X, y = table(9, k=k)
    model = SGDClassifier(random_state=3, **options).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    assert 0 < certificate["gap"].value <= 1
    rng = np.random.default_rng(0)
    for name in ("coef_", "intercept_", "objective_", "t_", "seed_"):
        if not hasattr(model, name):
            assert name == "seed_"
            assert not model.shuffle
            continue
        twin, value = deepcopy(model), np.array(getattr(model, name))
        if value.dtype.kind == "f":
            noise = rng.normal(size=value.shape)
            value = value + 0.01 * np.linalg.norm(value) * noise / np.linalg.norm(noise)
        else:
            value = value + 1
        setattr(twin, name, value)
        assert not twin.certify(X, y).holds, name
    assert not model.certify(X + 1e-3, y).holds
    assert not model.certify(X, y, np.where(np.arange(len(X)) == 5, 2.0, 1.0)).holds


@pytest.mark.parametrize("options", [{}, {"average": True, "loss": "logistic"}, {"rule": "adam"}])
def test_the_same_bits_everywhere(options, tmp_path):
    X, y = table(3, n=150, k=3)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    pq.write_table(pa.table(columns | {"y": np.array(["a", "b", "c"])[y]}), tmp_path / "rows.parquet", row_group_size=31)
    model = SGDClassifier(random_state=5, **options)
    models = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads, block_rows=32):
            models.append(deepcopy(model).fit(X, y))
            models.append(deepcopy(model).fit(tmp_path / "rows.parquet", "y"))
    import dask.array as da

    models.append(deepcopy(model).fit(da.from_array(X, chunks=(32, 3)), da.from_array(y, chunks=32)))
    for other in models[1:]:
        for name in ("coef_", "intercept_", "objective_", "t_", "seed_"):
            assert np.array_equal(getattr(other, name), getattr(models[0], name)), name
    with lemmata.config(block_rows=32):
        assert models[1].certify(tmp_path / "rows.parquet", "y").holds


def test_problems_stop_one_by_one_and_are_those_of_two_classes():
    X, y = table(4, n=200, k=3)
    model = SGDClassifier(shuffle=False).fit(X, y)
    steps = []
    for c in range(3):
        alone = SGDClassifier(shuffle=False).fit(X, y == c)
        np.testing.assert_allclose(model.coef_[c], alone.coef_[0], rtol=1e-12)
        np.testing.assert_allclose(model.objective_[c], alone.objective_, rtol=1e-12)
        steps.append(alone.t_)
    assert model.t_ == max(steps)
    assert len(set(steps)) > 1, "all of them stopped at once: a poor test"


def test_a_long_fit_keeps_its_factor_in_range():
    X, y = table(0, n=40)
    options = {"loss": "squared", "alpha": 0.9, "learning_rate": "constant", "eta0": 1.0, "shuffle": False}
    for average in (False, True):  # the factor falls by ten at each visit; with α η > 1 it would turn negative
        model = SGDClassifier(**options, max_iter=3, tol=None, average=average)
        expected = slow(model, 0.1 * X, 2 * y - 1, epochs=3)[average]
        model.fit(0.1 * X, y)
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), expected, rtol=1e-9, atol=1e-12)
    shrunk = SGDClassifier("hinge", alpha=5.0, learning_rate="constant", eta0=1.0, random_state=0).fit(X, y)
    assert np.isfinite(shrunk.coef_).all()
    assert shrunk.certify(X, y).holds


@pytest.mark.filterwarnings("ignore:overflow")  # as plain Python, the kernels warn before the numbers are left
@pytest.mark.filterwarnings("ignore:invalid value")
def test_steps_that_leave_the_numbers_say_so():
    X, y = table(0)
    with pytest.raises(ValueError, match="left the numbers in epoch"):
        SGDClassifier("squared", learning_rate="constant", eta0=10.0).fit(1e3 * X, y)


def test_a_fit_cut_short_says_so():
    X, y = table(0)
    with pytest.warns(ConvergenceWarning, match="still falls after 2 epochs; raise max_iter or tol"):
        model = SGDClassifier(max_iter=2, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.certify(X, y).holds, "a short fit is a fit that can be repeated"


@pytest.mark.parametrize("options", [{}, {"average": True}, {"rule": "adam", "average": True}])
def test_partial_fit_goes_on_where_it_was(options):
    X, y = table(6, k=3)
    model = SGDClassifier("logistic", shuffle=False, tol=None, max_iter=3, **options).fit(X, y)
    model.partial_fit(X, y)
    whole = SGDClassifier("logistic", shuffle=False, tol=None, max_iter=4, **options).fit(X, y)
    lessons = SGDClassifier("logistic", shuffle=False, **options)
    for _ in range(4):
        lessons.partial_fit(X, y, classes=[0, 1, 2])
    for other in (model, lessons):
        np.testing.assert_allclose(other.coef_, whole.coef_, rtol=1e-10)
        assert other.t_ == whole.t_
        assert [c.name for c in other.certify(X, y).failed] == ["replay"]


def test_probabilities_of_every_kind():
    X, y = table(2, k=3)
    for loss in ("logistic", "log_loss", "deviance", "modified_huber"):
        model = SGDClassifier(loss, random_state=0).fit(X, y)
        p = model.predict_proba(50 * X)  # far out, where modified Huber gives zeros
        np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert (p >= 0).all()
    two = SGDClassifier("deviance", random_state=0).fit(X, y == 1)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], expit(2 * two.decision_function(X)), rtol=1e-12)
