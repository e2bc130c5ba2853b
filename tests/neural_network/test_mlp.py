"""Networks fitted to tables: what they learn, when they stop, and what their certificates see."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import lemmata
from lemmata.linear_model import LogisticRegression, Ridge
from lemmata.neural_network import MLPClassifier, MLPRegressor
from lemmata.optimize import Adam, Momentum

XOR = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([0, 1, 1, 0])
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.item("NNG-05")
@pytest.mark.parametrize("rule", ["sgd", "momentum", "adagrad", "rmsprop", "adam", "lbfgs"])
def test_every_rule_solves_exclusive_or(rule):
    rate = {"sgd": 0.5, "momentum": 0.5, "adagrad": 0.1, "rmsprop": 0.01, "adam": 0.01, "lbfgs": 0.1}[rule]
    options = {"rule": rule, "learning_rate_init": rate, "alpha": 1e-6, "tol": None, "max_iter": 800, "random_state": 0}
    if rule == "lbfgs":
        options["tol"] = 1e-4
    model = MLPClassifier((16,), "tanh", **options).fit(*XOR)
    assert np.array_equal(model.predict(XOR[0]), XOR[1])
    assert model.certify(*XOR).holds
    assert MLPClassifier((), **options | {"max_iter": 50}).fit(*XOR).score(*XOR) < 1  # no line parts them


@pytest.mark.item("NNG-05")
def test_a_large_network_learns_a_small_table_by_heart():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 5)), rng.integers(3, size=40)
    model = MLPClassifier((100,), alpha=0.0, learning_rate_init=0.01, tol=None, max_iter=400, random_state=0).fit(X, y)
    assert model.loss_ < 1e-3
    assert model.score(X, y) == 1.0
    Y = rng.normal(size=(40, 2))
    model = MLPRegressor((100,), "tanh", alpha=0.0, rule="lbfgs", tol=1e-6, max_iter=3000, random_state=0).fit(X, Y)
    assert np.abs(model.predict(X) - Y).max() < 1e-3


@pytest.mark.item("NNG-05")
@quiet
def test_a_seed_is_a_fit():
    X, y = make_moons(200, noise=0.2, random_state=0)
    options = {"max_iter": 20, "dropout": 0.2, "early_stopping": True}
    one, again, other = (MLPClassifier((20, 10), random_state=s, **options).fit(X, y) for s in (1, 1, 2))
    assert one.parameters_.tobytes() == again.parameters_.tobytes()
    assert not np.array_equal(one.parameters_, other.parameters_)
    assert one.certify(X, y).holds
    drawn = MLPClassifier((20, 10), random_state=np.random.default_rng(3), **options).fit(X, y)
    assert drawn.certify(X, y).holds  # the seed that was drawn is kept


def test_without_hidden_units_it_is_logistic_regression():
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    ours = MLPClassifier((), rule="lbfgs", alpha=2.0, tol=1e-6, max_iter=2000, random_state=0).fit(X, y)
    known = LogisticRegression(C=0.5).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), known.predict_proba(X), rtol=0, atol=1e-6)
    two = y > 0
    ours, known = MLPClassifier((), rule="lbfgs", alpha=2.0, tol=1e-6, max_iter=2000).fit(X, two), known.fit(X, two)
    np.testing.assert_allclose(ours.coefs_[0].T, known.coef_, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.intercepts_[0], known.intercept_, rtol=0, atol=1e-6)


def test_without_hidden_units_it_is_ridge_regression():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    ours = MLPRegressor((), rule="lbfgs", alpha=3.0, tol=1e-8, standardize=False, max_iter=1000).fit(X, Y)
    known = Ridge(alpha=3.0).fit(X, Y)
    np.testing.assert_allclose(ours.coefs_[0].T, known.coef_, rtol=0, atol=1e-8)
    np.testing.assert_allclose(ours.predict(X), known.predict(X), rtol=0, atol=1e-8)


def test_units_of_columns_and_targets_do_not_matter():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    options = {"max_iter": 5, "tol": None, "random_state": 0}
    plain = MLPRegressor((8,), **options).fit(X, y).predict(X)
    there = X * [1e3, 1e-9, 1] + [1e6, 0, 5]
    moved = MLPRegressor((8,), **options).fit(there, 1e7 * y - 4e8).predict(there)
    np.testing.assert_allclose((moved + 4e8) / 1e7, plain, rtol=0, atol=1e-6)  # 1e6 takes ten digits of a column


@quiet
def test_digits_are_read():
    X, y = load_digits(return_X_y=True)
    X, test, y, truth = train_test_split(X, y, random_state=0, stratify=y)
    for dtype in (np.float64, np.float32):
        model = MLPClassifier((64,), max_iter=30, random_state=0).fit(X.astype(dtype), y)
        assert model.score(test.astype(dtype), truth) > 0.96
        assert model.parameters_.dtype == model.predict_proba(test.astype(dtype)).dtype == dtype
    sparse = MLPClassifier((64,), max_iter=30, random_state=0).fit(csr_array(X), y)
    assert sparse.score(csr_array(test), truth) > 0.96


@quiet
def test_rows_that_are_sorted_are_learned_all_the_same():
    rng = np.random.default_rng(0)
    X = np.sort(rng.normal(size=(4000, 1)), axis=0)
    with lemmata.config(block_rows=500):
        model = MLPRegressor((20,), learning_rate_init=0.01, max_iter=30, random_state=0).fit(X, np.sin(2 * X[:, 0]))
        assert model.score(X, np.sin(2 * X[:, 0])) > 0.9
        labels = (X[:, 0] > 0).astype(int)
        assert MLPClassifier((20,), max_iter=5, random_state=0).fit(X, labels).score(X, labels) > 0.95


def test_several_targets_share_hidden_units_and_one_column_stays_a_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    model = MLPRegressor((30,), "tanh", rule="lbfgs", tol=1e-2, max_iter=2000, random_state=0).fit(X, Y)
    assert model.predict(X).shape == (300, 2)
    assert model.n_outputs_ == 2
    assert model.score(X, Y) > 0.99
    column = MLPRegressor((4,), max_iter=2, tol=None, random_state=0).fit(X, Y[:, :1])
    assert column.predict(X).shape == (300, 1)
    with pytest.raises(ValueError, match=r"y has .* columns, and the model was fitted to 2"):
        model.certify(X, Y[:, 0])


def test_rows_held_out_decide_when_to_stop_and_which_weights_are_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 10)), rng.normal(size=300)
    y = y + X[:, 0]
    options = {"learning_rate_init": 0.01, "early_stopping": True, "n_iter_no_change": 5, "max_iter": 500, "random_state": 0}
    model = MLPRegressor((100,), **options).fit(X, y)
    assert model.converged_
    assert model.n_iter_ < 100
    assert len(model.validation_scores_) == model.n_iter_
    assert int(np.argmax(model.validation_scores_)) < model.n_iter_ - 1
    assert model.certify(X, y).holds
    model.validation_scores_[0] *= 1.01
    assert not model.certify(X, y).holds
    with pytest.raises(ValueError, match="No row was held out"):
        MLPRegressor(early_stopping=True, validation_fraction=1e-9, random_state=0).fit(X[:5], y[:5])
    with pytest.raises(ValueError, match="Every row was held out"):
        MLPRegressor(early_stopping=True, validation_fraction=1 - 1e-9, random_state=0).fit(X[:5], y[:5])


def test_a_fit_that_is_not_done_says_so():
    X, y = make_moons(200, noise=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="MLPClassifier's loss still falls after 3 epochs; raise max_iter or tol"):
        model = MLPClassifier(max_iter=3, random_state=0).fit(X, y)
    assert not model.converged_
    assert model.certify(X, y).holds  # it is the fit of three epochs, and claims no more
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations"):
        model = MLPClassifier(rule="lbfgs", max_iter=2, random_state=0).fit(X, y)
    assert [check.name for check in model.certify(X, y).failed] == ["rest"]


def test_partial_fit_goes_on_where_it_was():
    X, y = make_moons(200, noise=0.2, random_state=0)
    whole = MLPClassifier((10,), max_iter=4, tol=None, random_state=0).fit(X, y)
    model = MLPClassifier((10,), random_state=0)
    for _ in range(4):
        model.partial_fit(X, y, classes=[0, 1])
    assert model.parameters_.tobytes() == whole.parameters_.tobytes()
    assert model.n_iter_ == 4
    assert [check.name for check in model.certify(X, y).failed] == ["replay"]
    for more in range(3):  # after a fit as well
        whole.partial_fit(X[more::3], y[more::3])
    with pytest.raises(ValueError, match="classes must be passed on the first call"):
        MLPClassifier().partial_fit(X, y)
    with pytest.raises(ValueError, match="not those of the first call"):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="choose another rule than 'lbfgs'"):
        MLPClassifier(rule="lbfgs").partial_fit(X, y, classes=[0, 1])
    numbers = MLPRegressor((10,), max_iter=3, tol=None, random_state=0).fit(X, 5 + 3 * X[:, 0])
    twin = MLPRegressor((10,), random_state=0)
    for _ in range(3):
        twin.partial_fit(X, 5 + 3 * X[:, 0])
    assert np.array_equal(twin.predict(X), numbers.predict(X))


def test_rules_of_optimize_are_taken_as_they_are():
    X, y = make_moons(200, noise=0.2, random_state=0)
    named = MLPClassifier((10,), rule="adam", learning_rate_init=0.02, max_iter=3, tol=None, random_state=0).fit(X, y)
    given = MLPClassifier((10,), rule=Adam(0.02), max_iter=3, tol=None, random_state=0).fit(X, y)
    assert named.parameters_.tobytes() == given.parameters_.tobytes()
    with pytest.raises(ValueError, match="a number or a schedule"):
        MLPClassifier(rule=Momentum(lambda t: 0.1 / t)).fit(X, y)


def test_steps_that_leave_the_numbers_are_refused():
    X, y = make_moons(50, random_state=0)
    with pytest.raises(ValueError, match="lower learning_rate_init, or set clip"):
        MLPRegressor(rule="sgd", learning_rate_init=1e6, random_state=0, max_iter=50).fit(X, y)
    MLPRegressor(rule="sgd", learning_rate_init=0.1, clip=0.1, random_state=0, max_iter=2, tol=None).fit(X, y)


@pytest.mark.parametrize("sizes", [(0,), (3, -1), (2.5,), [[1, 2]]])
def test_layers_that_are_none_are_refused(sizes):
    with pytest.raises(ValueError, match="whole numbers of at least 1"):
        MLPClassifier(sizes).fit(*XOR)


def test_scikit_learn_s_attributes_are_there():
    X, y = load_iris(return_X_y=True)
    model = MLPClassifier((5, 4), max_iter=3, tol=None, random_state=0).fit(X, y)
    assert [W.shape for W in model.coefs_] == [(4, 5), (5, 4), (4, 3)]
    assert [b.shape for b in model.intercepts_] == [(5,), (4,), (3,)]
    assert (model.n_layers_, model.n_outputs_, model.out_activation_) == (4, 3, "softmax")
    assert len(model.loss_curve_) == model.n_iter_ == 3
    assert MLPClassifier(5, max_iter=1, tol=None).fit(X, y > 0).out_activation_ == "logistic"
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)


@quiet
def test_dropped_units_are_there_when_it_predicts():
    X, y = make_moons(400, noise=0.2, random_state=0)
    model = MLPClassifier((50,), dropout=0.5, learning_rate_init=0.01, max_iter=60, random_state=0).fit(X, y)
    assert np.array_equal(model.predict_proba(X), model.predict_proba(X))
    assert model.score(X, y) > 0.93
    assert model.certify(X, y).holds


@quiet
def test_wide_sparse_rows_are_never_made_dense():
    rng = np.random.default_rng(0)
    n, d = 300, 40_000
    X = csr_array((rng.random(n * 10), (np.repeat(np.arange(n), 10), rng.integers(d, size=n * 10))), shape=(n, d))
    y = np.arange(n) % 3
    model = MLPClassifier((4,), max_iter=3, random_state=0).fit(X, y)  # and its kernels are compiled
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    batch = 30 * d * X.dtype.itemsize
    assert peak < 14 * model.parameters_.nbytes < 2 * batch  # gradient, moments, copies; dense inputs and their slopes are more
    few = np.unique(X.indices)
    narrow = MLPClassifier((4,), max_iter=3, random_state=0).fit(X[:, few].toarray(), y)
    assert narrow.loss_ < 1.3
    assert model.certify(X, y).holds
