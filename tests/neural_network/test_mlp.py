"""Networks fitted to tables: what they learn, when they stop, and what their certificates see."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.callback import ScoringMonitor
from sklearn.datasets import load_digits, load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

import lemmata
from lemmata.linear_model import LogisticRegression, Ridge
from lemmata.neural_network import MLPClassifier, MLPRegressor
from lemmata.neural_network.epochs import Lesson, held_out
from lemmata.neural_network.losses import CROSS_ENTROPY
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import begin, new_steps
from lemmata.neural_network.training import Plan, train_block
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
@pytest.mark.parametrize("standardize", [True, False])
def test_an_exact_fit_has_derivatives_to_compare(standardize):
    """Of targets that are met there are no errors, and of no errors no derivatives: they are compared beside them."""
    X = np.random.default_rng(0).normal(size=(50, 3))
    options = {"activation": "identity", "alpha": 0.0, "rule": "lbfgs", "tol": 1e-6, "max_iter": 500, "random_state": 0}
    for y in (X @ [1.0, 2.0, -1.0], np.zeros(50), np.full(50, 3e8)):
        model = MLPRegressor((), standardize=standardize, **options).fit(X, y)
        certificate = model.certify(X, y)
        assert certificate["back-propagation"].holds, str(certificate)


@quiet
@pytest.mark.parametrize("activation", ["identity", "relu", "logistic"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_labels_that_are_known_by_heart_have_derivatives_to_compare(activation, n_labels):
    rng = np.random.default_rng(0)
    y = np.arange(30) % n_labels
    X, several = rng.normal(size=(30, 2)) + 8 * np.eye(3)[y][:, :2], (y[:, None] == np.arange(n_labels)).astype(int)
    options = {"alpha": 0.0, "rule": "lbfgs", "tol": 1e-9, "max_iter": 2_000, "random_state": 0}
    for target in (y, several):
        model = MLPClassifier((4,), activation, **options).fit(X, target)
        assert model.loss_ < 1e-7
        certificate = model.certify(X, target)
        assert certificate["back-propagation"].holds, str(certificate)


@quiet
def test_units_that_never_say_anything_do_not_put_the_next_ones_on_a_kink():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(10, 1)), np.arange(10) % 2
    for model in (MLPRegressor((2, 2)), MLPClassifier((2, 2))):
        model.set_params(max_iter=5, tol=None, random_state=4).fit(X, y)
        assert not model.intercepts_[1].any()  # zero to begin with, and to end with
        certificate = model.certify(X, y)
        assert certificate["back-propagation"].holds, str(certificate)


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
    with pytest.raises(ValueError, match="y has 1 columns, and the model was fitted to 2"):
        model.certify(X, Y[:, 0])
    with pytest.raises(ValueError, match="y has 3 columns, and the model was fitted to 2"):
        model.certify(X, np.ones((300, 3)))


def test_labels_marked_in_a_matrix_are_logistic_regressions_that_share_hidden_units():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    Y = (X @ rng.normal(size=(3, 4)) + rng.normal(size=(200, 4)) > [0, 0, 1, -1]).astype(int)
    settings = {"rule": "lbfgs", "standardize": False, "tol": 1e-9, "max_iter": 1000, "random_state": 0}
    model = MLPClassifier((), alpha=1.0, **settings).fit(X, Y)
    for k in range(4):
        alone = LogisticRegression(C=1.0).fit(X, Y[:, k])
        np.testing.assert_allclose(model.predict_proba(X)[:, k], alone.predict_proba(X)[:, 1], atol=1e-6)  # two solvers
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)
    sparse = MLPClassifier((), alpha=1.0, **settings).fit(csr_array(X), csr_array(Y))
    np.testing.assert_allclose(sparse.predict_proba(X), model.predict_proba(X), atol=1e-9)  # rounding of sums
    assert model.certify(X, Y).holds
    assert not model.certify(X, 1 - Y).holds


def test_weights_of_rows_with_several_labels_are_repetitions():
    rng = np.random.default_rng(1)
    X, Y, weight = rng.normal(size=(60, 2)), rng.integers(0, 2, size=(60, 3)), rng.integers(0, 3, size=60)
    settings = {"max_iter": 5, "tol": None, "shuffle": False, "batch_size": 16, "random_state": 0}
    weighted = MLPClassifier((4,), **settings).fit(X, Y, sample_weight=weight)
    repeated = MLPClassifier((4,), **settings).fit(np.repeat(X, weight, axis=0), np.repeat(Y, weight, axis=0))
    np.testing.assert_allclose(weighted.parameters_, repeated.parameters_, rtol=1e-9)


def test_several_labels_are_held_out_gone_on_with_and_saved(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X.sum(axis=1) > 0]).astype(int)
    model = MLPClassifier((16,), early_stopping=True, random_state=0).fit(X, Y)
    assert model.validation_scores_.max() > 0.85  # share of rows with all their labels; by chance it is an eighth
    assert model.score(X, Y) > 0.85
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(lemmata.load(tmp_path / "model").predict(X), model.predict(X))
    steps = MLPClassifier((16,), random_state=0)
    for _ in range(100):
        steps.partial_fit(X, Y)
    assert steps.score(X, Y) > 0.85


@pytest.mark.parametrize("sizes", [(0,), [2.5], [[2]], [[2], [3, 4]], ["a"]])
def test_hidden_layers_are_whole_numbers(sizes):
    with pytest.raises(ValueError, match="hidden_layer_sizes must hold whole numbers of at least 1"):
        MLPRegressor(sizes).fit([[0.0], [1.0]], [0.0, 1.0])


def test_labels_in_another_form_than_in_the_fit_are_refused():
    X, Y = np.arange(8.0).reshape(4, 2), np.array([[0, 1], [1, 1], [1, 0], [0, 0]])
    model = MLPClassifier((2,), max_iter=2, tol=None, random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="fitted to a column of zeros and ones for each label"):
        model.partial_fit(X, Y[:, 0], classes=[0, 1])
    with pytest.raises(ValueError, match="y has 3 columns, and the model was fitted to 2 labels"):
        model.certify(X, Y[:, [0, 1, 1]])
    with pytest.raises(ValueError, match=r"rows have \(1\) or not \(0\), and it holds 2"):
        model.fit(X, 2 * Y)
    with pytest.raises(ValueError, match=r"rows have \(1\) or not \(0\), and it holds '0'"):
        model.fit(X, Y.astype(str))
    with pytest.raises(ValueError, match="plot a model of one label"):
        model.plot(X, Y)
    model.classes_ = np.array([0, 7])
    with pytest.raises(ValueError, match="was changed after the fit"):
        model.certify(X, Y)
    single = MLPClassifier((2,), max_iter=2, tol=None).fit(X, Y[:, 0])
    with pytest.raises(ValueError, match="fitted to one label for each row"):
        single.partial_fit(X, Y)


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
    with pytest.raises(ValueError, match="Of 5 rows, 5 are to be held out: lower validation_fraction, or fit more rows"):
        MLPRegressor(early_stopping=True, validation_fraction=1 - 1e-9, random_state=0).fit(X[:5], y[:5])


@quiet
@pytest.mark.parametrize("seed", range(10))
def test_of_few_rows_two_are_held_out_and_scores_are_numbers_of_some_size(seed):
    X, y = np.random.default_rng(seed).normal(size=(12, 2)), np.arange(12) // 6  # targets held out may all be alike
    options = {"early_stopping": True, "max_iter": 3, "random_state": seed}
    for model in (MLPRegressor((4,), **options), MLPClassifier((4,), **options)):
        assert (np.abs(model.fit(X, y).validation_scores_) < 1e6).all()
        assert model.certify(X, y).holds


@pytest.mark.parametrize("cuts", [[12], [5, 7], [1] * 12, [3, 0, 4, 5]])
@pytest.mark.parametrize("held", [2, 5, 11])
def test_as_many_rows_are_held_out_wherever_blocks_are_cut(cuts, held):
    lesson = Lesson((), 1.0, 1, False, None, None, held, 12, 7)
    starts = np.cumsum([0, *cuts])
    rows = [start + held_out(lesson, int(start), n) for start, n in zip(starts, cuts, strict=False)]
    assert len(np.unique(np.concatenate(rows))) == held
    assert np.concatenate(rows).max() < 12


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
    with pytest.raises(ValueError, match="partial_fit holds no rows out; leave early_stopping to fit"):
        MLPClassifier(early_stopping=True).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"with the layers \(2, 10, 1\) and is now to have \(2, 7, 1\): fit it again"):
        model.set_params(hidden_layer_sizes=7).partial_fit(X, y)
    numbers = MLPRegressor((10,), max_iter=3, tol=None, random_state=0).fit(X, 5 + 3 * X[:, 0])
    twin = MLPRegressor((10,), random_state=0)
    for _ in range(3):
        twin.partial_fit(X, 5 + 3 * X[:, 0])
    assert np.array_equal(twin.predict(X), numbers.predict(X))


@pytest.mark.parametrize("other", ["adam", "momentum", "rmsprop"])
@pytest.mark.parametrize("first", ["sgd", "lbfgs", "adagrad"])
@quiet
def test_another_rule_goes_on_without_what_the_first_remembers(first, other):
    X, y = make_moons(100, noise=0.2, random_state=0)
    model = MLPClassifier((5,), rule=first, max_iter=2, random_state=0).fit(X, y)
    start = model.parameters_.copy()
    model.set_params(rule=other).partial_fit(X, y)
    shape, rule = model._shape(), model._rule()
    plan = Plan(shape, CROSS_ENTROPY, 0.0, new_steps(rule, [shape], float, model.alpha))
    rng, rows = np.random.default_rng([model._order_seed, 0, model.n_iter_ - 1]), rows_of(X, model.mean_, model.scale_, float)
    expected, *_ = train_block(plan, begin(rule, start), rows, y[:, None].astype(float), None, 16, True, rng)
    np.testing.assert_array_equal(model.parameters_, expected.parameters)
    assert model.t_ == expected.steps == 7  # of a hundred rows, sixteen at a time


@quiet
def test_what_one_fit_scales_another_forgets_and_partial_fit_keeps():
    X, y = make_moons(100, noise=0.2, random_state=0)
    y = 50 + 10 * X[:, 0]
    model = MLPRegressor((5,), max_iter=2, random_state=0).fit(X, y)
    before = model.target_mean_.copy()
    model.set_params(standardize=False).partial_fit(X, y)
    np.testing.assert_array_equal(model.target_mean_, before)
    assert np.abs(model.predict(X) - y).max() < 50  # rows and targets are scaled as in the fit
    plain = MLPRegressor((5,), max_iter=2, standardize=False, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), plain.predict(X))
    assert not hasattr(model, "target_mean_")
    assert not hasattr(model, "mean_")
    single = MLPRegressor((5,), max_iter=1, random_state=0).fit(X, y).partial_fit(X.astype(np.float32), y)
    assert single.partial_fit(X.astype(np.float32), y).parameters_.dtype == np.float32


class Cut:
    """A callback that presses Ctrl-C before some epoch."""

    def __init__(self, epoch):
        self.left = epoch

    def setup(self, estimator, context): ...

    def teardown(self, estimator, context): ...

    def on_fit_task_begin(self, estimator, context):
        if context.task_name == "iteration":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt

    def on_fit_task_end(self, estimator, context):
        return False


@quiet
@pytest.mark.parametrize("epochs", [0, 1, 4])
def test_a_fit_that_was_interrupted_is_that_of_its_epochs(epochs):
    X, y = make_moons(200, noise=0.2, random_state=0)
    options = {
        "rule": "sgd",
        "learning_rate_init": 20.0,
        "clip": 1.0,
        "tol": None,
        "random_state": 0,
    }  # the loss goes up and down
    model = MLPClassifier((10,), max_iter=9, **options).set_callbacks(Cut(epochs + 1)).fit(X, y)
    assert model.n_iter_ == len(model.trace_) == epochs
    assert not model.converged_
    if epochs:
        shorter = MLPClassifier((10,), max_iter=epochs, **options).fit(X, y)
        for name in ("parameters_", "loss_", "trace_", "t_"):
            np.testing.assert_array_equal(getattr(model, name), getattr(shorter, name))
    assert model.certify(X, y).holds
    model.t_ += 1
    assert not model.certify(X, y).holds


@quiet
def test_callbacks_score_what_the_model_predicts():
    X = np.random.default_rng(0).normal(size=(100, 2))
    monitor, y = ScoringMonitor(scoring="r2"), 100 + 10 * X[:, 0]
    model = MLPRegressor((10,), max_iter=3, tol=None, random_state=0).set_callbacks(monitor).fit(X, y)
    scores = [row["r2"] for row in monitor.get_logs().data if row["task_name"] == "iteration"]
    assert scores[-1] == pytest.approx(model.score(X, y), rel=1e-9)


@quiet
@pytest.mark.parametrize("rule", ["adam", "lbfgs"])
@pytest.mark.parametrize("home", ["one block", "blocks"])
def test_weights_below_one_are_relative_to_their_mean_over_the_table(rule, home):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(3, size=120)
    weight = np.repeat([0.1, 0.4, 0.25, 0.25], 30)  # in every block of thirty rows they are all the same
    options = {"rule": rule, "alpha": 5.0, "max_iter": 5, "random_state": 0, "shuffle": False}
    with lemmata.config(block_rows=30 if home == "blocks" else 1000):
        low, high = (MLPClassifier((5,), **options).fit(X, y, sample_weight=w) for w in (weight, 4 * weight))
        assert low.certify(X, y, sample_weight=weight).holds == (rule == "adam")  # five steps of L-BFGS are no rest
    np.testing.assert_allclose(low.parameters_, high.parameters_, rtol=0, atol=1e-9)


@quiet
def test_a_batch_that_is_a_tenth_of_the_table_is_one_of_its_weight():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(100, 3)), rng.integers(2, size=100), rng.integers(1, 9, size=100)
    options = {"max_iter": 3, "shuffle": False, "standardize": False, "random_state": 0}
    weighted = MLPClassifier((5,), **options).fit(X, y, sample_weight=weight)
    repeated = MLPClassifier((5,), **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.t_ == repeated.t_
    np.testing.assert_allclose(weighted.parameters_, repeated.parameters_, rtol=0, atol=1e-10)


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


def test_partial_fit_does_not_leave_the_numbers_either():
    X, y = make_moons(50, random_state=0)
    options = {"hidden_layer_sizes": (5,), "activation": "identity", "rule": "sgd", "random_state": 0}
    with pytest.raises(ValueError, match="left the numbers in epoch 1; lower learning_rate_init, or set clip"):
        MLPClassifier(learning_rate_init=1e200, **options).partial_fit(X, y, classes=[0, 1])
    model = MLPRegressor(**options).partial_fit(X, y)
    before, steps = model.predict(X), model.t_
    with pytest.raises(ValueError, match="left the numbers in epoch 2"):
        model.set_params(learning_rate_init=1e200).partial_fit(X, y)
    np.testing.assert_array_equal(model.predict(X), before)
    assert (model.t_, model.n_iter_) == (steps, 1)


@quiet
@pytest.mark.parametrize("home", [np.asarray, csr_array])
@pytest.mark.parametrize("hidden", [(), (6,), (6, 6)])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_rows_far_off_are_numbers_whatever_the_units(n_classes, hidden, home):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(n_classes, size=60)
    far = np.array([[1.0, 1, 1, 1], [-1, -1, -1, -1], [1, -1, 1, -1], [0, 0, 1, 0]])
    model = MLPClassifier(hidden, max_iter=3, random_state=0)
    expected = model.fit(X, y).predict(1e100 * far)
    for unit, rows in ((1.0, 1.7e308 * far), (1e-9, 1e300 * far), (1e-30, 1e300 * far)):
        model.fit(unit * X, y)
        chances = model.predict_proba(home(rows))
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_array_equal(model.predict(home(rows)), chances.argmax(axis=1))
        np.testing.assert_array_equal(model.predict(home(rows)), expected)


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
