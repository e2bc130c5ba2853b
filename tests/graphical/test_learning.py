"""Learning of tables: against counting by hand, brute-force EM over all states, and the mixtures."""

import itertools
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import lemmata
from helpers import bits
from lemmata.core.certificate import simplex
from lemmata.graphical import BayesNet
from lemmata.graphical.discrete_table import read_table
from lemmata.graphical.expected_counts import enumerate_block as plain_block
from lemmata.graphical.learning import Families
from lemmata.graphical.learning_kernels import expect_rows
from lemmata.mixture import CategoricalMixture

DIAMOND = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}


def random_net(parents, sizes, seed, concentration=3.0):
    rng = np.random.default_rng(seed)
    tables = {
        name: rng.dirichlet(np.full(sizes[name], concentration), size=tuple(sizes[v] for v in above))
        for name, above in parents.items()
    }
    return BayesNet(parents, tables)


def with_gaps(rows, share, seed, hidden=()):
    rng = np.random.default_rng(seed)
    return {
        name: np.where(rng.random(len(values)) < share, np.nan, values.astype(float))
        for name, values in rows.items()
        if name not in hidden
    }


def brute_expectation(parents, sizes, tables, rows):
    """Sum over all states of all variables, row by row: log-likelihood and expected counts."""
    names = list(parents)
    counts = {name: np.zeros(np.shape(tables[name])) for name in names}
    value = 0.0
    for row in rows:
        terms = []
        for states in itertools.product(*(range(sizes[name]) for name in names)):
            if any(seen is not None and seen != k for seen, k in zip(row, states, strict=True)):
                continue
            at = dict(zip(names, states, strict=True))
            picks = {name: (*(at[v] for v in parents[name]), at[name]) for name in names}
            terms.append((np.prod([tables[name][picks[name]] for name in names]), picks))
        total = sum(p for p, _ in terms)
        value += np.log(total)
        for p, picks in terms:
            for name in names:
                counts[name][picks[name]] += p / total
    return value, counts


def as_rows(columns, names):
    n = len(next(iter(columns.values())))
    whole = {name: columns.get(name, np.full(n, np.nan)) for name in names}
    return [tuple(None if np.isnan(whole[name][i]) else int(whole[name][i]) for name in names) for i in range(n)]


@pytest.mark.item("GRM-19")
@pytest.mark.parametrize("alpha", [0.0, 1.0, 0.3])
def test_tables_are_shares_of_groups(alpha):
    frame = pd.DataFrame(random_net(DIAMOND, SIZES, 0).sample(500, random_state=1))
    net = BayesNet(DIAMOND, alpha=alpha).fit(frame)
    groups = frame.groupby(["b", "c", "d"]).size()
    for b, c, d in itertools.product(range(3), range(2), range(2)):
        count, total = groups.get((b, c, d), 0), sum(groups.get((b, c, k), 0) for k in range(2))
        assert net.counts_["d"][b, c, d] == count
        np.testing.assert_allclose(net.tables_["d"][b, c, d], (count + alpha) / (total + 2 * alpha), rtol=1e-15)
    np.testing.assert_allclose(net.tables_["a"], ((frame["a"].value_counts().sort_index() + alpha) / (500 + 2 * alpha)))
    total = sum(net.log_value(row) for row in frame.to_dict("records"))  # sums over rows, not over tables
    np.testing.assert_allclose(net.log_likelihood_, total, rtol=1e-12)
    np.testing.assert_allclose([net.log_likelihood(frame), net.score(frame) * 500], total, rtol=1e-12)
    assert net.certify(frame).kind == "proof"


@pytest.mark.item("PRB-18")
def test_an_unseen_vote_is_not_impossible():
    votes = {"party": ["left"] * 8 + ["right"] * 2, "vote": ["yes"] * 8 + ["no"] * 2}
    smooth = BayesNet([("party", "vote")], alpha=1.0).fit(votes)
    np.testing.assert_allclose(smooth.tables_["vote"][0], [0.1, 0.9], rtol=1e-15)  # (0 + 1) / (8 + 2)
    assert BayesNet([("party", "vote")]).fit(votes).tables_["vote"][0, 0] == 0
    for alpha, expected in ((1e-9, [0.0, 1.0]), (1e9, [0.5, 0.5])):
        np.testing.assert_allclose(
            BayesNet([("party", "vote")], alpha=alpha).fit(votes).tables_["vote"][0], expected, atol=1e-8
        )


def test_no_other_tables_fit_complete_rows_better():
    rows = random_net(DIAMOND, SIZES, 3).sample(200, random_state=2)
    net, rng = BayesNet(DIAMOND).fit(rows), np.random.default_rng(0)
    for _ in range(20):
        moved = {name: simplex(table, rng, 0.05) for name, table in net.tables_.items()}
        assert BayesNet(DIAMOND, moved, net.states).log_likelihood(rows) < net.log_likelihood_


@pytest.mark.slow_without_jit
@pytest.mark.parametrize(("hidden", "alpha"), [((), 0.0), (("a",), 0.0), (("c",), 0.5)])
def test_em_ends_where_brute_force_em_ends(hidden, alpha):
    true, start = random_net(DIAMOND, SIZES, 4), random_net(DIAMOND, SIZES, 5, concentration=5.0)
    data = with_gaps(true.sample(40, random_state=6), 0.25, 7, hidden)
    rows = as_rows(data, DIAMOND)
    names = {name: range(size) for name, size in SIZES.items()}
    net = BayesNet(DIAMOND, start.tables, names, alpha=alpha, tol=1e-13, max_iter=5000).fit(data)
    value, counts = brute_expectation(DIAMOND, SIZES, net.tables_, rows)
    np.testing.assert_allclose([net.log_likelihood_, net.log_likelihood(data)], value, rtol=1e-12)
    for name, table in net.tables_.items():
        np.testing.assert_allclose(net.counts_[name], counts[name], atol=1e-9)
        tallies = counts[name] + alpha
        np.testing.assert_allclose(tallies / tallies.sum(axis=-1, keepdims=True), table, atol=1e-4)  # EM moves it no more
    assert (np.diff(net.trace_) >= -1e-12).all()  # rounding
    tables, merits = dict(start.tables), []
    for _ in range(150):
        value, counts = brute_expectation(DIAMOND, SIZES, tables, rows)
        prior = alpha * sum(np.log(table).sum() for table in tables.values()) if alpha else 0.0
        merits.append(value + prior)
        tables = {k: (c + alpha) / (c + alpha).sum(axis=-1, keepdims=True) for k, c in counts.items()}
    merit = net.log_likelihood_ + (alpha * sum(np.log(table).sum() for table in net.tables_.values()) if alpha else 0.0)
    assert (np.diff(merits) >= -1e-9).all()
    assert merit >= merits[-1] - 1e-6  # leaps may find a higher hill, never a lower point of the same
    assert net.certify(data).holds


def test_hidden_class_is_the_categorical_mixture():
    rng = np.random.default_rng(0)
    chances = [rng.dirichlet(np.ones(3), size=2) for _ in range(4)]
    classes = rng.random(400) < 0.4
    X = np.column_stack([(rng.random((400, 1)) > np.cumsum(c[classes.astype(int)], axis=1)).sum(axis=1) for c in chances])
    X = np.minimum(X, 2).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    starts = [rng.dirichlet(np.full(3, 4.0), size=2) for _ in range(4)]
    mixture = CategoricalMixture(2, n_categories=3, weights_init=[0.5, 0.5], probabilities_init=starts).fit(X)
    names = ["class", *"wxyz"]
    parents = {"class": (), **dict.fromkeys("wxyz", ("class",))}
    tables = {"class": [0.5, 0.5], **dict(zip("wxyz", starts, strict=True))}
    net = BayesNet(parents, tables, {name: range(3) for name in "wxyz"}, tol=1e-12).fit(dict(zip("wxyz", X.T, strict=True)))
    np.testing.assert_allclose(net.log_likelihood_ / 400, mixture.lower_bound_, rtol=1e-8)  # both stop by the mean's change
    np.testing.assert_allclose(net.tables_["class"], mixture.weights_, atol=1e-3)
    posterior = net.predict_proba(dict(zip("wxyz", X.T, strict=True)), "class")
    np.testing.assert_allclose(posterior, mixture.predict_proba(X), atol=1e-3)  # flat top: parameters are known less well
    assert names[0] in net.predict(dict(zip("wxyz", X.T, strict=True)))


def big_net(seed=0, n=14):
    rng = np.random.default_rng(seed)
    parents = {f"v{i}": tuple(f"v{j}" for j in sorted(rng.choice(i, min(i, int(rng.integers(0, 3))), replace=False)))
               for i in range(n)}  # fmt: skip
    return parents, {name: int(rng.integers(2, 4)) for name in parents}


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("share", [0.0, 0.1])
def test_recovers_a_net_from_many_rows(share):
    parents, sizes = big_net()
    true = random_net(parents, sizes, 1, concentration=3.0)
    data = with_gaps(true.sample(5000, random_state=2), share, 3)
    net = BayesNet(parents, alpha=0.5).fit(data)
    assert net.log_likelihood(data) > true.log_likelihood(data)
    for name, table in net.tables_.items():
        rows = np.maximum(net.counts_[name].sum(axis=-1, keepdims=True), 1)
        error = np.abs(table - true.tables[name]) / np.sqrt(true.tables[name] * (1 - true.tables[name]) / rows)
        assert error.max() < 5.5 / (1 - share) ** 2  # standard errors, and gaps cost a few more; the worst of some 150
    assert net.certify(data).holds


def test_gaps_that_depend_on_what_was_seen_do_no_harm():
    true = BayesNet([("x", "y")], {"x": [0.5, 0.5], "y": [[0.8, 0.2], [0.3, 0.7]]})
    rows, rng = true.sample(40_000, random_state=0), np.random.default_rng(1)
    gone = rng.random(40_000) < np.where(rows["x"] == 1, 0.9, 0.0)  # y is lost where x is 1
    data = {"x": rows["x"], "y": np.where(gone, np.nan, rows["y"])}
    net = BayesNet([("x", "y")], tol=1e-13).fit(data)
    np.testing.assert_allclose(net.marginals()["y"], true.marginals()["y"], atol=0.01)  # 3 standard errors
    seen = data["y"][~gone]
    assert abs(seen.mean() - true.marginals()["y"][1]) > 0.1  # what dropping rows would say
    np.testing.assert_allclose(net.tables_["y"][1, 1], seen[rows["x"][~gone] == 1].mean(), rtol=1e-6)  # closed form


@pytest.mark.parametrize("hidden", [False, True])
def test_expected_counts_by_tree_and_by_enumeration_agree(hidden):
    parents, sizes = big_net(3, 8)
    net = random_net(parents, sizes, 4)
    data = with_gaps(net.sample(50, random_state=5), 0.4, 6, ("v1",) if hidden else ())
    table = read_table(data, net.variables, states=net.states)
    families = Families(net.parents_, net.states)
    tables = families.flat(net.tables)
    X, tree = table.blocks.first()[0], families.net.junction_tree()
    prepared = tree.refilled(tables), families.graph, tree.where, np.log(tables), 0.0, np.zeros(len(tables))
    value, counts = expect_rows(X, None, *prepared)
    plain, expected = plain_block(X, None, families.graph, tables, None)
    np.testing.assert_allclose(value, plain, rtol=1e-12)
    np.testing.assert_allclose(counts, expected, atol=1e-12)
    one, other = (
        plain_block(X[:20], None, families.graph, tables, None),
        plain_block(X[20:], None, families.graph, tables, None),
    )
    np.testing.assert_allclose(one[1] + other[1], expected, atol=1e-12)  # blocks add up


def fitted_bits(net):
    return bits((net.tables_, net.counts_, net.log_likelihood_))


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_one_answer_from_any_table(share, tmp_path):
    rows = with_gaps(random_net(DIAMOND, SIZES, 0).sample(300, random_state=1), share, 2)
    net = BayesNet(DIAMOND, alpha=0.1).fit(rows)
    frame, array = pd.DataFrame(rows), np.column_stack([rows[name] for name in DIAMOND])
    frame.to_parquet(tmp_path / "rows.parquet")
    objects = [[None if np.isnan(x) else int(x) for x in row] for row in array]
    extra = frame.assign(e=1.0)[["d", "e", "c", "b", "a"]]  # other order, and a column more
    tables = [frame, pl.from_pandas(frame, nan_to_null=True), array, objects, extra, tmp_path / "rows.parquet"]
    for table in tables:
        assert fitted_bits(BayesNet(DIAMOND, alpha=0.1).fit(table)) == fitted_bits(net), type(table)
    with lemmata.config(block_rows=16, n_threads=2):
        small = fitted_bits(BayesNet(DIAMOND, alpha=0.1).fit(frame))
    with lemmata.config(block_rows=16, n_threads=1):
        assert fitted_bits(BayesNet(DIAMOND, alpha=0.1).fit(tmp_path / "rows.parquet")) == small
    assert net.states["b"] == (0, 1, 2)
    words = frame.map(lambda x: None if np.isnan(x) else "xyz"[int(x)])
    named = BayesNet(DIAMOND, alpha=0.1).fit(words)
    assert bits(named.tables_) == bits(net.tables_)
    assert named.states["b"] == ("x", "y", "z")
    assert net.certify(tmp_path / "rows.parquet").holds


def test_dask_partitions_give_the_same_tables():
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(with_gaps(random_net(DIAMOND, SIZES, 0).sample(300, random_state=1), 0.1, 2))
    net, spread = (
        BayesNet(DIAMOND, alpha=0.1).fit(frame),
        BayesNet(DIAMOND, alpha=0.1).fit(dd.from_pandas(frame, npartitions=3)),
    )
    for name in DIAMOND:
        np.testing.assert_allclose(spread.tables_[name], net.tables_[name], rtol=1e-12)  # same rows, sums in another order


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_weights_mean_repetition(share):
    rows = with_gaps(random_net(DIAMOND, SIZES, 0).sample(80, random_state=1), share, 2)
    weight = np.random.default_rng(3).integers(0, 4, 80)
    weighted = BayesNet(DIAMOND, alpha=0.1).fit(rows, sample_weight=weight)
    repeated = BayesNet(DIAMOND, alpha=0.1).fit({name: np.repeat(values, weight) for name, values in rows.items()})
    assert fitted_bits(weighted) == fitted_bits(repeated)
    assert weighted.certify(rows, sample_weight=weight).holds
    assert not weighted.certify(rows).holds
    np.testing.assert_allclose(weighted.log_likelihood(rows, sample_weight=weight), weighted.log_likelihood_, rtol=1e-12)


def test_rows_that_are_too_many_to_keep(monkeypatch):
    rows = with_gaps(random_net(DIAMOND, SIZES, 0).sample(200, random_state=1), 0.2, 2)
    kept = BayesNet(DIAMOND, alpha=0.1).fit(rows)
    monkeypatch.setattr("lemmata.graphical.learning_kernels.CELLS", 1)
    with lemmata.config(block_rows=16):
        passing = BayesNet(DIAMOND, alpha=0.1).fit(rows)
        assert passing.certify(rows).holds
    assert passing.n_iter_ == kept.n_iter_
    for name in DIAMOND:
        np.testing.assert_allclose(passing.tables_[name], kept.tables_[name], rtol=1e-9)  # the same sums in another order
    monkeypatch.setattr("lemmata.graphical.expected_counts.MOST", 1)  # nothing is written out: the tree's turn
    assert kept.certify(rows).holds


def test_a_row_of_gaps_says_nothing():
    rows = random_net(DIAMOND, SIZES, 0).sample(100, random_state=1)
    whole = BayesNet(DIAMOND).fit({name: values.astype(float) for name, values in rows.items()})
    more = BayesNet(DIAMOND).fit({name: np.append(values.astype(float), np.nan) for name, values in rows.items()})
    assert whole.n_iter_ == 0
    np.testing.assert_allclose(more.log_likelihood_, whole.log_likelihood_, rtol=1e-10)
    for name in DIAMOND:
        np.testing.assert_allclose(more.tables_[name], whole.tables_[name], atol=1e-6)


FITS = {
    "complete": lambda rows: (BayesNet(DIAMOND), rows),
    "gaps": lambda rows: (BayesNet(DIAMOND), with_gaps(rows, 0.2, 8)),
    "smooth": lambda rows: (BayesNet(DIAMOND, alpha=1.0), with_gaps(rows, 0.2, 8)),
    "hidden": lambda rows: (
        BayesNet(DIAMOND, state_names={"a": ["on", "off"]}, alpha=0.5, random_state=0),
        {name: values for name, values in rows.items() if name != "a"},
    ),
}


@pytest.mark.parametrize("kind", FITS)
def test_certificate_holds_and_refuses_one_percent(kind):
    net, data = FITS[kind](random_net(DIAMOND, SIZES, 1).sample(400, random_state=1))
    net.fit(data)
    assert net.certify(data).holds
    assert net.certify(data).kind == ("proof" if kind == "complete" else "local")
    for name in DIAMOND:
        for seed in range(3):
            twin = pickle.loads(pickle.dumps(net))
            twin.tables_[name] = simplex(net.tables_[name], np.random.default_rng(seed))
            assert "tables" in [check.name for check in twin.certify(data).failed], name
        twin = pickle.loads(pickle.dumps(net))
        twin.counts_[name] = net.counts_[name] * 1.01
        assert [check.name for check in twin.certify(data).failed] == ["counts"]
    twin = pickle.loads(pickle.dumps(net))
    twin.log_likelihood_ *= 1.01
    assert [check.name for check in twin.certify(data).failed] == ["log-likelihood"]


def test_certificate_of_tables_that_nothing_depends_on():
    data = {name: values for name, values in random_net(DIAMOND, SIZES, 1).sample(100, random_state=1).items() if name != "d"}
    net = BayesNet(DIAMOND, state_names={"d": (0, 1)}, random_state=0).fit(data)  # a hidden leaf: any table is as good
    assert net.certify(data).holds
    np.testing.assert_allclose(
        net.log_likelihood_, BayesNet({k: v for k, v in DIAMOND.items() if k != "d"}).fit(data).log_likelihood_
    )
    net.tables_["d"] = simplex(net.tables_["d"], np.random.default_rng(0))
    assert [check.name for check in net.certify(data).failed] == ["counts"]


def test_certificate_sees_a_zero_that_should_be_raised():
    data = {"y": [0, 0, 0, 1], "z": [0, 0, 1, 1]}
    parents, shares = {"x": (), "y": ("x",), "z": ("x",)}, [[0.75, 0.25], [0.5, 0.5]]
    for second, raised in (([0.5, 0.5], False), ([0.05, 0.95], True)):  # the second would explain the last row
        tables = {"x": [1.0, 0.0], "y": [shares[0], second], "z": [shares[1], second]}
        failed = [check.name for check in BayesNet(parents, tables).certify(data).failed]
        assert ("border" in failed) == raised
        assert (failed == []) == (not raised)


def test_starts_break_the_symmetry_and_the_best_is_kept():
    true = random_net({"h": (), "x": ("h",), "y": ("h",), "z": ("h",)}, {"h": 2, "x": 2, "y": 2, "z": 2}, 3, 0.5)
    data = {name: values for name, values in true.sample(2000, random_state=0).items() if name != "h"}
    options = {"state_names": {"h": [0, 1]}, "n_init": 4, "random_state": 0, "max_iter": 10_000}
    net = BayesNet(true.parents, **options).fit(data)
    assert net.log_likelihood_ > BayesNet(dict.fromkeys(data, ())).fit(data).log_likelihood_ + 10  # dependence was found
    assert net.log_likelihood_ >= true.log_likelihood(data)
    np.testing.assert_allclose(net.trace_[-1], net.restarts_.max(), rtol=1e-12)
    assert fitted_bits(BayesNet(true.parents, **options).fit(data)) == fitted_bits(net)


def test_predictions_are_posteriors():
    net = random_net(DIAMOND, SIZES, 2)
    data = with_gaps(net.sample(40, random_state=1), 0.4, 2)
    chances, full = net.predict_proba(data, "b"), net.predict(data)
    for i in range(40):
        row = {name: int(values[i]) for name, values in data.items() if not np.isnan(values[i])}
        others = {name: k for name, k in row.items() if name != "b"}
        np.testing.assert_allclose(chances[i], net.marginals(others)["b"], atol=1e-12)
        answer = net.marginals(row)
        for name in DIAMOND:
            assert full[name][i] == (row[name] if name in row else answer[name].argmax())
    np.testing.assert_allclose(net.log_likelihood(data), sum(
        net.log_partition({name: int(v[i]) for name, v in data.items() if not np.isnan(v[i])}) for i in range(40)
    ), rtol=1e-12)  # fmt: skip


def test_impossible_rows_have_a_valid_answer():
    net = BayesNet({"a": (), "b": ("a",), "c": ("a",)}, {"a": [0.3, 0.7], "b": [[1, 0], [1, 0]], "c": [[0.9, 0.1], [0.2, 0.8]]})
    assert net.log_likelihood({"b": [1]}) == -np.inf
    np.testing.assert_allclose(net.predict_proba({"b": [1]}, "a"), [[0.3, 0.7]], rtol=1e-12)
    assert net.predict({"b": [1]})["a"].tolist() == [1]


def test_information_criteria_count_free_chances():
    rows = random_net(DIAMOND, SIZES, 0).sample(200, random_state=1)
    net = BayesNet(DIAMOND).fit(rows)
    assert net.n_parameters == 1 + 2 * 2 + 2 * 1 + 6 * 1
    np.testing.assert_allclose(net.aic(rows), 26 - 2 * net.log_likelihood_, rtol=1e-12)
    np.testing.assert_allclose(net.bic(rows), 13 * np.log(200) - 2 * net.log_likelihood_, rtol=1e-12)
    independent = BayesNet(dict.fromkeys(DIAMOND, ())).fit(rows)
    assert net.bic(rows) < independent.bic(rows)


def test_saved_cloned_and_pickled(tmp_path):
    data = with_gaps(random_net(DIAMOND, SIZES, 0).sample(100, random_state=1), 0.1, 2)
    net = BayesNet(DIAMOND, state_names={"d": [0, 1]}, alpha=0.2).fit(data)
    net.save(tmp_path / "net")
    for twin in (lemmata.load(tmp_path / "net"), pickle.loads(pickle.dumps(net)), clone(net).fit(data)):
        assert fitted_bits(twin) == fitted_bits(net)
        assert twin.states == net.states
        assert twin.certify(data).holds
        assert twin.marginals({"d": 1})["a"].tolist() == net.marginals({"d": 1})["a"].tolist()
    again = net.fit(random_net(DIAMOND, SIZES, 1).sample(50, random_state=1))  # a second fit forgets the first
    assert again.n_iter_ == 0
    assert again.junction_tree().model.factors[0].values.tolist() == again.tables_["a"].tolist()


def test_says_how_many_rows_are_a_convention():
    with pytest.warns(UserWarning, match="say nothing about 1 of the 3 rows"):
        net = BayesNet([("x", "y")], state_names={"x": ["a", "b"]}).fit({"x": ["a", "a"], "y": [0, 1]})
    assert net.tables_["y"][1].tolist() == [0.5, 0.5]
    data = with_gaps(random_net(DIAMOND, SIZES, 0).sample(100, random_state=1), 0.3, 2)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        BayesNet(DIAMOND, alpha=1.0, max_iter=2).fit(data)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, {"x": [0, 1]}, "no column for 'y'"),
        ({}, {"q": [0, 1]}, "no column for any variable"),
        ({}, {"x": [0, 1], "why": [0, 1]}, "'why', which are no variables"),
        ({}, {"x": [0, 1], "y": [0]}, "same number of rows"),
        ({}, {"x": [0, 1], "y": [None, None]}, "No value of 'y' was seen"),
        ({"state_names": {"x": ["a", "b"]}}, {"x": ["a", "c"], "y": [0, 1]}, "value 'c' of 'x'"),
        ({"state_names": {"x": [1, 2]}}, {"x": [0, 1], "y": [0, 1]}, "value 0 of 'x'"),
        ({"state_names": {"x": [1, 1]}}, {"x": [0, 1], "y": [0, 1]}, "all different"),
        ({}, np.zeros((3, 5)), "a column for each of the 2 variables"),
        ({"tables": {"x": [0.5, 0.5], "y": [[1, 0], [1, 0]]}}, {"x": [0, None], "y": [1, 1]}, "some row is impossible"),
        ({}, {"x": np.arange(20_000) / 7, "y": np.zeros(20_000)}, "put them in bins"),
    ],
)
def test_errors_say_what_to_do(options, data, message):
    with pytest.raises(ValueError, match=message):
        BayesNet([("x", "y")], **options).fit(data)


@pytest.mark.parametrize(
    ("weight", "message"), [([1.0], "each of the 2 rows"), ([0, 0], "Every sample weight"), ([1, -1], "not negative")]
)
def test_weights_are_checked(weight, message):
    with pytest.raises(ValueError, match=message):
        BayesNet([("x", "y")]).fit({"x": [0, 1], "y": [0, 1]}, sample_weight=weight)


def test_labels_keep_the_order_that_was_given():
    data = {"x": [30, 10, 30, None], "y": ["low", "high", "high", "low"]}
    net = BayesNet([("x", "y")], state_names={"x": [30, 10], "y": ["low", "high"]}, alpha=1.0).fit(
        {k: v[:3] for k, v in data.items()}
    )
    assert net.counts_["x"].tolist() == [2, 1]
    assert net.counts_["y"].tolist() == [[1, 1], [0, 1]]
    assert net.predict(data)["x"].tolist() == [30, 10, 30, 30]


def test_text_in_a_stored_table_is_refused(tmp_path):
    pd.DataFrame({"x": ["a", "b"], "y": [0, 1]}).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="encode it"):
        BayesNet([("x", "y")]).fit(tmp_path / "rows.parquet")
    pd.DataFrame({"x": [0, 1], "y": [0, 1]}).to_parquet(tmp_path / "numbers.parquet")
    net = BayesNet([("x", "y")], state_names={"x": ["a", "b"]}).fit(tmp_path / "numbers.parquet")  # numbers of states
    assert net.tables_["y"].tolist() == [[1, 0], [0, 1]]


def test_columns_without_names_are_variables_by_number():
    X = np.random.default_rng(0).integers(0, 2, (50, 2))
    X[:, 0] &= X[:, 1]
    for table in (X, lambda: iter([X.astype(float)]), X.tolist()):
        net = BayesNet([(1, 0)]).fit(table)
        np.testing.assert_allclose(net.tables_[1], [1 - X[:, 1].mean(), X[:, 1].mean()], rtol=1e-15)
    assert net.predict(X)[1].tolist() == X[:, 1].tolist()
    words = BayesNet([("b", "a")]).fit(X)  # names that are no numbers: in the order of the net
    np.testing.assert_allclose(words.tables_["b"][1], X[:, 0].mean(), rtol=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_tables_that_only_the_prior_pulls_at_come_to_rest(seed):
    rng = np.random.default_rng(seed)
    data = {"a": rng.integers(0, 3, 1000)}
    leaf = BayesNet([("a", "h")], state_names={"h": [0, 1]}, alpha=0.3, random_state=seed).fit(data)
    np.testing.assert_allclose(leaf.tables_["h"], 0.5, atol=1e-12)  # what maximizes the prior
    given = {"a": [0.2, 0.3, 0.5], "h": [[0.1, 0.9]] * 3}
    np.testing.assert_allclose(BayesNet([("a", "h")], given, alpha=0.3).fit(data).tables_["h"], 0.5, atol=1e-12)
    root = BayesNet([("h", "a")], state_names={"h": [0, 1]}, alpha=0.1, random_state=seed).fit(data)
    for net in (leaf, root):
        assert net.converged_
        assert net.certify(data)["tables"].value < 5e-4  # half the limit


def test_strange_names_are_refused_everywhere():
    net = BayesNet([("a", "b")], alpha=1.0).fit({"a": ["x", "y"], "b": ["u", "v"]})
    for ask in (net.predict, net.log_likelihood, net.certify):
        with pytest.raises(ValueError, match="'aa', which are no variables"):
            ask({"aa": ["x"], "b": ["u"]})
    with pytest.raises(ValueError, match="state_names for 'c'"):
        BayesNet([("a", "b")], state_names={"c": [0, 1]}).fit({"a": [0, 1], "b": [0, 1]})
    blind = net.predict_proba({"b": ["u"]}, "a")
    assert net.predict_proba({"a": ["strange"], "b": ["u"]}, "a").tolist() == blind.tolist()
    assert net.predict_proba({"b": ["u"], "id": [7]}, "a").tolist() == blind.tolist()


def test_categories_are_labels_in_their_order():
    sizes = ["small", "middling", "large"]
    net = BayesNet({"a": [], "b": []}, alpha=1.0).fit(
        pd.DataFrame({"a": pd.Categorical(["large", "small", None], sizes), "b": pd.Categorical([3, 5, 3], [5, 3])})
    )
    assert net.states == {"a": tuple(sizes), "b": (5, 3)}
    assert net.tables_["b"].tolist() == [0.4, 0.6]
    polars = pl.DataFrame({"a": pl.Series(["large", "small"], dtype=pl.Enum(sizes))})
    assert BayesNet({"a": []}, alpha=1.0).fit(polars).counts_["a"].tolist() == [1, 0, 1]


@pytest.mark.parametrize("names", [((0, 0), (0, 1)), (1, 0), ("a", "b")])
def test_any_names_are_saved(names, tmp_path):
    one, other = names
    data = {one: [0, 1, 1, 0], other: ["x", "y", "y", None]}
    net = BayesNet([names], alpha=1.0).fit(data)
    given = BayesNet({one: [], other: [one]}, net.tables_, net.states_)
    for model in (net, given):
        model.save(tmp_path / "net")
        for twin in (lemmata.load(tmp_path / "net"), pickle.loads(pickle.dumps(model))):
            assert twin.parents == model.parents
            assert twin.states == model.states
            assert bits(twin.marginals()) == bits(model.marginals())
            assert twin.certify(data).holds == model.certify(data).holds


LARGE = 2**60
TEXT = pl.DataFrame({"x": ["u"], "y": ["v"]})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "NoneType without columns"),
        (pd.Series([1, 2]), "Series without columns"),
        ([1, 2], "list without columns"),
        (TEXT.lazy(), "collect it first"),
        (pd.DataFrame([[0, 1, 2]], columns=["x", "y", "y"]), "several columns named 'y'"),
        ({"x": "u", "y": ["v"]}, "column of 'x' must be a list"),
        ({"x": np.array([LARGE, LARGE + 1]), "y": [0, 1]}, "'x' has numbers of 2^53".replace("^", r"\^")),
        ({"x": [LARGE, LARGE + 1, None], "y": [0, 1, 1]}, "told apart"),
        ({"x": np.arange(9999), "y": np.arange(9999), "z": np.arange(9999)}, "would have 999,700,029,999 entries"),
    ],
)
def test_what_is_no_table_is_told_in_a_sentence(data, message):
    parents = {"x": [], "y": ["x"]} if not isinstance(data, dict) or "z" not in data else {"x": [], "z": [], "y": ["x", "z"]}
    with pytest.raises(ValueError, match=message):
        BayesNet(parents).fit(data)
