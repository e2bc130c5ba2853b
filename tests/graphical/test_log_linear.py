"""Log-linear models: against all states one by one, finite differences, SciPy's optimizer, and closed forms."""

import itertools
import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import lemmata
from helpers import bits
from lemmata.graphical import BayesNet
from lemmata.graphical.log_linear import LogLinearModel

BOND = np.array([[1.0, -1.0], [-1.0, 1.0]])
SPIN = np.array([-1.0, 1.0])
SQUARE = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
BOLTZMANN = [*((name, SPIN) for name in "abcd"), *((edge, BOND) for edge in SQUARE)]
THREE = np.arange(24.0).reshape(2, 2, 3, 2) / 10  # two features of c, d and a, where d has three states
MIXED = [("a", "indicator"), ([("a", "b"), ("b", "c")], "indicator"), (("c", "d", "a"), THREE)]
STATES = {"a": (0, 1), "b": (0, 1), "c": (0, 1), "d": (0, 1)}


def features_of(features, names, sizes):
    """Write out the features of all states, column by column."""
    states = list(itertools.product(*(range(sizes[name]) for name in names)))
    columns = []
    for scopes, table in features:
        scopes = scopes if isinstance(scopes, list) else [scopes]
        scopes = [scope if isinstance(scope, tuple) else (scope,) for scope in scopes]
        shape = tuple(sizes[v] for v in scopes[0])
        if isinstance(table, str):
            table = np.eye(int(np.prod(shape))).reshape(-1, *shape)
        table = np.asarray(table, dtype=float).reshape(-1, *shape)
        for one in table:
            columns.append([sum(one[tuple(x[names.index(v)] for v in scope)] for scope in scopes) for x in states])
    return np.array(states), np.array(columns).T


def rows_of(features, weights, n, seed, state_names=STATES):
    return LogLinearModel(features, state_names, weights).sample(n, random_state=seed)


@pytest.mark.item("GRM-20")
def test_gradient_is_that_of_finite_differences():
    features = [("a", "indicator"), ([("a", "b"), ("b", "c")], "indicator"), (("c", "a"), np.arange(12.0).reshape(3, 2, 2) / 5)]
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=2), rng.normal(size=(2, 2)), rng.normal(size=3)]
    data = {name: rng.integers(0, 2, 30) for name in "abc"}
    states = dict.fromkeys("abc", (0, 1))
    model = LogLinearModel(features, states, weights)
    gradient = model.gradient(data)
    h = 1e-5
    for f, part in enumerate(weights):
        for k in np.ndindex(part.shape):
            moved = []
            for sign in (1, -1):
                other = [w.copy() for w in weights]
                other[f][k] += sign * h
                moved.append(LogLinearModel(features, states, other).log_likelihood(data))
            np.testing.assert_allclose(gradient[f][k], (moved[0] - moved[1]) / (2 * h), atol=1e-6)  # h² times third derivative


def test_likelihood_and_gradient_by_all_states():
    sizes = {"a": 2, "b": 3, "c": 2}
    features = [("b", "indicator"), ([("a", "b"), ("c", "b")], "indicator"), (("c", "a"), BOND)]
    names = ["b", "a", "c"]
    rng = np.random.default_rng(1)
    weights = [rng.normal(size=3), rng.normal(size=(2, 3)), np.array(0.7)]
    data = {name: rng.integers(0, sizes[name], 25) for name in names}
    model = LogLinearModel(features, {name: range(size) for name, size in sizes.items()}, weights)
    assert model.variables == tuple(names)
    states, table = features_of(features, names, sizes)
    logs = table @ np.concatenate([np.ravel(w) for w in weights])
    law = np.exp(logs - logsumexp(logs))
    place = [int(np.flatnonzero((states == row).all(axis=1))[0]) for row in np.column_stack([data[name] for name in names])]
    np.testing.assert_allclose(model.log_likelihood(data), (logs - logsumexp(logs))[place].sum(), rtol=1e-12)
    flat = np.concatenate([np.ravel(part) for part in model.gradient(data)])
    np.testing.assert_allclose(flat, table[place].sum(axis=0) - 25 * (law @ table), atol=1e-10)
    np.testing.assert_allclose(model.log_partition(), logsumexp(logs), rtol=1e-12)


@pytest.mark.parametrize("l2", [0.5, 5.0])
def test_boltzmann_machine_is_that_of_another_optimizer(l2):
    rng = np.random.default_rng(2)
    data = rows_of(BOLTZMANN, list(rng.normal(size=8) * 0.6), 300, 3)
    model = LogLinearModel(BOLTZMANN, l2=l2).fit(data)
    states, table = features_of(BOLTZMANN, list("abcd"), dict.fromkeys("abcd", 2))
    place = [int(np.flatnonzero((states == row).all(axis=1))[0]) for row in np.column_stack([data[name] for name in "abcd"])]

    def loss(w):
        logs = table @ w
        return 300 * logsumexp(logs) - logs[place].sum() + l2 / 2 * w @ w

    found = minimize(loss, np.zeros(8), method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(np.array(model.weights_), found.x, atol=1e-5)  # differences of the other's gradient
    np.testing.assert_allclose(-model.log_likelihood_ + l2 / 2 * np.sum(np.square(model.weights_)), found.fun, rtol=1e-9)


def test_moments_match_at_the_maximum():
    rng = np.random.default_rng(4)
    data = {name: rng.integers(0, 2, 200) for name in "abcd"}
    model = LogLinearModel(BOLTZMANN, l2=0.0).fit(data)
    spins = {name: 2.0 * values - 1 for name, values in data.items()}
    for name in "abcd":
        np.testing.assert_allclose(model.marginals()[name] @ SPIN, spins[name].mean(), atol=1e-7)  # tol of the gradient
    for one, other in SQUARE:
        expected = (spins[one] * spins[other]).mean()
        np.testing.assert_allclose((model.pairwise(one, other) * BOND).sum(), expected, atol=1e-7)


def test_a_chain_of_indicators_is_the_net_of_counts():
    data = BayesNet(
        [("a", "b"), ("b", "c")], {"a": [0.4, 0.6], "b": [[0.7, 0.3], [0.2, 0.8]], "c": [[0.5, 0.5], [0.9, 0.1]]}
    ).sample(200, random_state=0)
    net = BayesNet([("a", "b"), ("b", "c")]).fit(data)
    model = LogLinearModel([(("a", "b"), "indicator"), (("b", "c"), "indicator")], l2=0.0).fit(data)
    np.testing.assert_allclose(model.log_likelihood_, net.log_likelihood_, rtol=1e-10)  # the same family of distributions
    np.testing.assert_allclose(model.joint(["a", "c"]), net.joint(["a", "c"]), atol=1e-6)
    assert model.certify(data).holds


def test_single_variable_is_softmax_of_shares():
    model = LogLinearModel([("a", "indicator")], l2=0.0).fit({"a": ["x"] * 1 + ["y"] * 3})
    np.testing.assert_allclose(model.weights_[0][1] - model.weights_[0][0], np.log(3), rtol=1e-6)
    assert model.states == {"a": ("x", "y")}


def test_conditionals_are_logistic():
    weights = [0.3, *([0.0] * 3), 0.8, 0.0, 0.0, -0.5]
    model = LogLinearModel(BOLTZMANN, STATES, weights)
    data = {"b": np.array([0, 1, 0, 1]), "d": np.array([0, 0, 1, 1]), "c": np.zeros(4)}
    score = 2 * (0.3 + 0.8 * SPIN[data["b"]] - 0.5 * SPIN[data["d"]])
    np.testing.assert_allclose(model.predict_proba(data, "a")[:, 1], 1 / (1 + np.exp(-score)), rtol=1e-12)
    assert model.predict(data)["a"].tolist() == (score > 0).astype(int).tolist()


@pytest.mark.parametrize(("features", "l2"), [(BOLTZMANN, 1.0), (BOLTZMANN, 0.0), (MIXED, 1.0)])
def test_certificate_holds_and_refuses_one_percent(features, l2):
    rng = np.random.default_rng(5)
    data = {name: rng.integers(0, 3 if name == "d" and features is MIXED else 2, 150) for name in "abcd"}
    model = LogLinearModel(features, l2=l2).fit(data)
    assert model.certify(data).holds
    assert model.certify(data).kind == "proof"
    for f, part in enumerate(model.weights_):
        for seed in range(3):
            noise = np.random.default_rng(seed).standard_normal(part.shape)
            twin = pickle.loads(pickle.dumps(model))
            twin.weights_[f] = part + 0.01 * np.linalg.norm(part) / np.linalg.norm(noise) * noise
            assert twin.certify(data).failed, f
    twin = pickle.loads(pickle.dumps(model))
    twin.log_likelihood_ *= 1.01
    assert [check.name for check in twin.certify(data).failed] == ["log-likelihood"]


def test_gap_bounds_the_distance_to_the_maximum():
    rng = np.random.default_rng(6)
    data = {name: rng.integers(0, 2, 100) for name in "abcd"}
    model = LogLinearModel(BOLTZMANN, l2=2.0).fit(data)

    def merit(weights):
        return LogLinearModel(BOLTZMANN, STATES, weights).log_likelihood(data) - np.sum(np.square(weights))

    for _ in range(5):
        weights = [part + 0.1 * rng.normal() for part in model.weights_]
        other = LogLinearModel(BOLTZMANN, STATES, weights, l2=2.0)
        claimed = other.certify(data)["gap"].value * -merit(weights)
        assert 0 < merit(model.weights_) - merit(weights) <= claimed * (1 + 1e-9)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(("seed", "l2"), [(0, 1.0), (1, 1.0), (2, 100.0)])
def test_gibbs_is_within_its_own_error(seed, l2):
    rng = np.random.default_rng(seed)
    data = rows_of(BOLTZMANN, list(rng.normal(size=8) * 0.5), 500, seed)
    exact = LogLinearModel(BOLTZMANN, l2=l2).fit(data)
    drawn = LogLinearModel(BOLTZMANN, l2=l2, n_steps=400, random_state=seed).fit(data, method="gibbs")
    z = (np.array(drawn.weights_) - np.array(exact.weights_)) / np.array(drawn.errors_)
    assert np.abs(z).max() < 4  # of 8 weights
    assert np.array(drawn.errors_).max() < 0.05  # a standard error of the rows themselves is some 0.05
    certificate = drawn.certify(data)
    assert certificate.holds
    assert certificate.kind == "evidence"
    again = LogLinearModel(BOLTZMANN, l2=l2, n_steps=400, random_state=seed).fit(data, method="gibbs")
    assert bits(again.weights_) == bits(drawn.weights_)
    drawn.weights_ = [1.5 * part for part in drawn.weights_]
    assert not drawn.certify(data).holds


@pytest.mark.slow_without_jit
def test_gibbs_learns_a_grid_that_no_tree_needs_to_hold():
    n = 8
    sites = [(i, j) for i in range(n) for j in range(n)]
    right = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
    down = [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]
    features = [([(site,) for site in sites], SPIN), (right + down, BOND)]
    data = LogLinearModel(features, weights=[0.1, 0.25]).sample(100, random_state=0)
    exact = LogLinearModel(features).fit(data)
    assert exact.certify(data).holds  # by the tree: there are 2⁶⁴ states
    drawn = LogLinearModel(features, n_steps=300, random_state=1).fit(data, method="gibbs")
    z = (np.array(drawn.weights_) - np.array(exact.weights_)) / np.array(drawn.errors_)
    assert np.abs(z).max() < 4
    assert drawn.certify(data).holds


def test_evidence_without_a_tree(monkeypatch):
    from lemmata.graphical import log_linear_certificate

    data = rows_of(BOLTZMANN, [0.2] * 8, 300, 0)
    monkeypatch.setattr(log_linear_certificate, "ENTRIES", 1)
    drawn = LogLinearModel(BOLTZMANN, n_steps=300, random_state=0).fit(data, method="gibbs")
    assert drawn.certify(data).holds
    drawn.weights_ = [part + 0.3 for part in drawn.weights_]
    assert not drawn.certify(data).holds


def test_weights_mean_repetition_and_any_table_will_do(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(7)
    data = {name: rng.integers(0, 2, 60) for name in "abcd"}
    weight = rng.integers(0, 3, 60)
    weighted = LogLinearModel(BOLTZMANN).fit(data, sample_weight=weight)
    repeated = LogLinearModel(BOLTZMANN).fit({name: np.repeat(values, weight) for name, values in data.items()})
    assert bits(weighted.weights_) == bits(repeated.weights_)
    assert weighted.certify(data, sample_weight=weight).holds
    plain = LogLinearModel(BOLTZMANN).fit(data)
    frame = pandas.DataFrame(data)
    frame.to_parquet(tmp_path / "rows.parquet")
    for table in (frame[["d", "c", "b", "a"]], frame.to_numpy(), tmp_path / "rows.parquet"):
        assert bits(LogLinearModel(BOLTZMANN).fit(table).weights_) == bits(plain.weights_)
    np.testing.assert_allclose(plain.score(data) * 60, plain.log_likelihood_, rtol=1e-12)


def test_saved_cloned_and_pickled(tmp_path):
    rng = np.random.default_rng(8)
    data = {name: rng.integers(0, 2, 60) for name in "abcd"}
    model = LogLinearModel(BOLTZMANN).fit(data)
    model.save(tmp_path / "model")
    for twin in (lemmata.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), clone(model).fit(data)):
        assert bits(twin.weights_) == bits(model.weights_)
        assert twin.certify(data).holds
        assert twin.map() == model.map()
    model.set_params(l2=100.0).fit(data)
    assert np.abs(model.weights_).sum() < np.abs(twin.weights_).sum()
    np.testing.assert_allclose(model.factors[0].values, model.weights_[0] * SPIN)  # no factors of the old weights


@pytest.mark.parametrize(
    ("features", "options", "message"),
    [
        ([], {}, "at least one"),
        ([("a",)], {}, "is a pair"),
        ([("a", "ones")], {}, "an array or 'indicator'"),
        ([(("a", "a"), "indicator")], {}, "all different"),
        ([("a", np.zeros((2, 2, 2)))], {}, "an axis for each variable"),
        ([(("a", "b"), [[0, 1], [np.inf, 0]])], {}, "finite"),
        ([(("a", "b"), np.zeros((3, 3)))], {"state_names": STATES}, "must have the shape"),
        ([([("a", "b"), ("b", "c")], "indicator")], {"state_names": {**STATES, "c": (0, 1, 2)}}, "same numbers of states"),
        ([("a", "indicator")], {"weights": [[1.0, 2.0], [3.0]]}, "one for each feature"),
    ],
)
def test_errors_say_what_to_do(features, options, message):
    with pytest.raises(ValueError, match=message):
        LogLinearModel(features, **options).fit({name: [0, 1] for name in "abc"})


def test_more_errors():
    data = {name: [0, 1] for name in "abcd"}
    with pytest.raises(ValueError, match="'exact' or 'gibbs'"):
        LogLinearModel(BOLTZMANN).fit(data, method="magic")
    with pytest.raises(ValueError, match="missing values"):
        LogLinearModel(BOLTZMANN).fit({**data, "a": [0, None]})
    with pytest.raises(NotFittedError, match="fit"):
        LogLinearModel([("a", "indicator")]).marginals()
    with pytest.raises(ValueError, match="value 2 of 'a'"):
        LogLinearModel(BOLTZMANN).fit({**data, "a": [0, 2]})


def test_no_maximum_is_no_proof():
    data = {"a": [0, 0, 0, 1], "b": [0, 0, 0, 1]}
    with pytest.warns(ConvergenceWarning, match="2 of the 4 features"):
        model = LogLinearModel([(("a", "b"), "indicator")], l2=0.0).fit(data)
    assert not model.converged_
    assert [check.name for check in model.certify(data).failed] == ["maximum"]
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0].reshape(4, 2, 2)
    mixed = LogLinearModel([(("a", "b"), basis)], l2=0.0).fit(data)  # the same family; no feature alone is at its border
    assert [check.name for check in mixed.certify(data).failed] == ["maximum"]
    seen = {name: [*values, *other] for (name, values), other in zip(data.items(), ([0, 1], [1, 0]), strict=True)}
    for features in (basis, "indicator"):
        certificate = LogLinearModel([(("a", "b"), features)], l2=0.0).fit(seen).certify(seen)
        assert certificate.holds
        assert certificate.kind == "proof"
    assert LogLinearModel([(("a", "b"), "indicator")]).fit(data).certify(data).holds  # a penalty makes a maximum


def grid(n):
    right = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
    return right + [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("seed", range(3))
def test_chains_go_on_until_the_certificate_holds_with_a_margin(seed):
    rng = np.random.default_rng(seed)
    data = {(i, j): rng.integers(0, 2, 5000) for i in range(5) for j in range(5)}
    model = LogLinearModel([(edge, BOND) for edge in grid(5)], random_state=seed).fit(data, method="gibbs")
    assert model.converged_
    assert model.certify(data)["moments"].value < 0.06  # the limit is 0.1
    model.weights_ = [part + 0.5 / np.sqrt(5000) for part in model.weights_]  # half a standard error of each
    assert not model.certify(data).holds


def test_criteria_count_dimensions():
    rng = np.random.default_rng(0)
    data = {name: rng.integers(0, size, 60) for name, size in zip("abc", (2, 3, 2), strict=True)}
    net = BayesNet([("a", "b"), ("b", "c")]).fit(data)
    model = LogLinearModel([(("a", "b"), "indicator"), (("b", "c"), "indicator")], l2=0.0).fit(data)  # the same family
    assert model.n_parameters == net.n_parameters
    np.testing.assert_allclose([model.aic(data), model.bic(data)], [net.aic(data), net.bic(data)], rtol=1e-9)
    for features in (MIXED, BOLTZMANN, [([("a", "b"), ("b", "c")], "indicator")]):
        sizes = {**dict.fromkeys("abc", 2), "d": 3 if features is MIXED else 2}
        table = features_of(features, list("abcd"), sizes)[1]
        model = LogLinearModel(features, {name: range(size) for name, size in sizes.items()})
        assert model.n_parameters == np.linalg.matrix_rank(table - table.mean(axis=0))


@pytest.mark.parametrize("weights", [[], 0.5])
def test_weights_are_a_list(weights):
    with pytest.raises(ValueError, match="a list of arrays, one for each feature, 1 in all"):
        LogLinearModel([("a", "indicator")], weights=weights).marginals()
    with pytest.raises(ValueError, match="a list of arrays, one for each feature, 1 in all"):
        LogLinearModel([("a", "indicator")], weights=weights).fit({"a": [0, 1]})


def test_missing_columns_and_wide_models_are_named():
    with pytest.raises(ValueError, match="no column for 'b'"):
        LogLinearModel([(("a", "b"), BOND)]).fit({"a": [0, 1]})
    with pytest.raises(ValueError, match="no column for 'bb'"):
        LogLinearModel([(("a", "b"), BOND)], {"bb": [0, 1]}).fit({"a": [0, 1], "b": [0, 1]})
    with pytest.raises(ValueError, match="method='gibbs'"):
        LogLinearModel([(list(itertools.combinations(range(40), 2)), BOND)]).fit(np.zeros((2, 40), dtype=int))
    swapped = LogLinearModel([((1, 0), "indicator")]).fit(np.array([[0, 5], [1, 5], [1, 6]]))
    assert swapped.states == {1: (5, 6), 0: (0, 1)}
