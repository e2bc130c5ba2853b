"""The command line does what its help says, and what is wrong with the input is one sentence."""

import os
import re
import subprocess
import sys
import warnings

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

import lemmata
from cli.commandline import offer, run, save
from helpers import finished, python
from lemmata.association import Apriori
from lemmata.cli import show
from lemmata.cli.compare import (
    Job,
    Result,
    candidates,
    choose_task,
    compare,
    holds_pairs,
    make_job,
    n_fits,
    rank,
    split_by_rows,
)
from lemmata.core.certificate import Certificate, Check
from lemmata.core.table import Table, read_table
from lemmata.core.table_encoder import PairEncoder, TableEncoder
from lemmata.core.table_model import TableModel
from lemmata.linear_model import LinearRegression
from lemmata.recommend import ProbabilisticMatrixFactorization

COMMANDS = ("fit", "predict", "certify", "guarantee", "report", "rules", "demo", "warm", "version")


def rents(n=60, seed=0):
    rng = np.random.default_rng(seed)
    size, city = rng.uniform(20, 120, n), rng.choice(["Graz", "Linz"], n).astype(object)
    rent = 9 * size + 80 * (city == "Graz") + rng.normal(0, 20, n)
    rent[:3] = np.nan
    return Table({"size": size, "city": city, "rent": rent})


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return save(rents(), tmp_path / "rents.csv")


class Failing(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        raise ValueError("this model never fits.\nsecond line")


class Constant(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def certify(self, X, y=None, sample_weight=None):
        raise NotImplementedError


class Doubtful(LinearRegression):
    """A model whose certificate never holds."""

    def certify(self, X, y=None, sample_weight=None):
        return Certificate(Check("gap", 1.0, 1e-6, "proof", "nothing"))


class Nearest(ClassifierMixin, BaseEstimator):
    """The class of the nearest class mean."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.means_ = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        return self

    def predict(self, X):
        return self.classes_[((X[:, None] - self.means_) ** 2).sum(axis=2).argmin(axis=1)]

    def predict_proba(self, X):
        odds = np.exp(-((X[:, None] - self.means_) ** 2).sum(axis=2))
        return odds / odds.sum(axis=1, keepdims=True)

    def certify(self, X, y=None, sample_weight=None):
        means = np.array([X[y == c].mean(axis=0) for c in self.classes_])
        return Certificate(Check("means", float(np.abs(means - self.means_).max()), 1e-9, "proof", "they are the means"))


def test_fit_then_predict_certify_and_report(data):
    done = run("fit", data, "--target", "rent")
    assert done.exit_code == 0, done.output
    assert "60 rows; numbers: size, rent; text: city" in done.stdout
    assert "regression of rent; 5-fold cross-validation; 3 rows without rent are left out." in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("LinearRegression", "Ridge", "PolynomialRegression"))]
    assert len(rows) >= 3
    assert all("proved" in row for row in rows)
    assert "baseline: mean" in done.stdout
    page = (data.parent / "rents-fit/report.html").read_text(encoding="utf-8")
    assert "Predicting rent from rents.csv" in page

    model = data.parent / "rents-fit/model.lemmata"
    done = run("predict", model, data, "--out", "out.csv")
    assert done.exit_code == 0, done.output
    predicted = read_table("out.csv")
    assert list(predicted) == ["size", "city", "rent", "predicted_rent"]
    assert_array_equal(predicted["predicted_rent"], lemmata.load(model).predict(read_table(data)))
    assert "R² on the rows that have rent: 0.9" in done.stdout

    done = run("certify", model, data)
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("proved")
    assert "gap" in done.stdout

    done = run("report", model, data, "--out", "page.html")
    assert done.exit_code == 0, done.output
    assert "<h1>model.lemmata on rents.csv</h1>" in (data.parent / "page.html").read_text(encoding="utf-8")


def test_certify_refuses_other_data_with_exit_code_1(data, tmp_path):
    run("fit", data, "--target", "rent", "--models", "LinearRegression")
    other = save(rents(seed=5), tmp_path / "other.csv")
    done = run("certify", "rents-fit/model.lemmata", other)
    assert done.exit_code == 1
    assert done.stdout.startswith("refused: gap")


def test_predictions_to_the_terminal_are_a_table(data, tmp_path):
    run("fit", data, "--target", "rent", "--models", "ridge", "--out", "there")
    done = run("predict", "there/model.lemmata", data, "--out", "-")
    (tmp_path / "printed.csv").write_text(done.stdout)
    assert read_table(tmp_path / "printed.csv").n_rows == 60


def test_clusters_without_a_target(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1, 2], 40)
    save(
        Table({"x": 8.0 * group + rng.normal(0, 1, 120), "y": 5.0 * (group == 1) + rng.normal(0, 0.5, 120)}),
        tmp_path / "points.csv",
    )
    done = run("fit", "points.csv")
    assert done.exit_code == 0, done.output
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("KMeans"))
    assert row[2] == "3"  # three groups were made, three are found
    assert "proved" in " ".join(row)  # the table has clusters far apart: the bound is met
    done = run("predict", "points-fit/model.lemmata", "points.csv")
    found = read_table("predictions.csv")["cluster"]
    assert all(len(set(found[group == k])) == 1 for k in range(3))
    assert run("certify", "points-fit/model.lemmata", "points.csv").exit_code == 0


def test_demo_in_a_process_of_its_own(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "lemmata.cli", "demo", "--out", "shown"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "apartments.csv: 600 rows" in done.stdout
    assert "left out: reference" in done.stdout
    assert not done.stderr
    assert {path.name for path in (tmp_path / "shown").iterdir()} == {"apartments.csv", "model.lemmata", "report.html"}


COMMON_FITS = """
    from itertools import product

    import numpy as np
    from numba.core.dispatcher import Dispatcher
    from scipy.sparse import csr_matrix
    from sklearn.utils.validation import has_fit_parameter

    from contracts.problems import ESTIMATORS, Problem, predictions, problem
    from lemmata.cli.commands import warm
    from lemmata.cluster import KMeans
    from lemmata.rl import MDP, QLearning, Reinforce, TDLambda, TDNetwork

    warm()
    members = {m for name, module in sys.modules.items() if name.startswith("lemmata.") for m in vars(module).values()
               if isinstance(m, Dispatcher)}
    before = {kernel: list(kernel.signatures) for kernel in members}

    def frozen(a):
        a.flags.writeable = False
        return a

    many = np.random.default_rng(1).normal(size=(60, 30))
    wide = Problem(KMeans(7, random_state=1), many, None)
    ties = Problem(KMeans(20, random_state=1), np.repeat(many.round(), 2, axis=0), None)
    for task, dtype, make in product(
        [*map(problem, ESTIMATORS), wide, ties],
        ("float64", "float32"),
        (np.asfortranarray, lambda X: frozen(X.copy()), csr_matrix),
    ):
        if make is csr_matrix and not task.model.__sklearn_tags__().input_tags.sparse:
            continue
        X = make(task.X.astype(dtype))
        weight = np.linspace(1.0, 2.0, len(task.X))
        weights = (weight, frozen(weight.copy())) if has_fit_parameter(task.model, "sample_weight") else ()
        for options in ({}, *({"sample_weight": w} for w in weights)):
            model = task.fit(X, **options)
            predictions(model, X)
            task.certify(model, X, **options)
    world = MDP([[[0.5, 0.5], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]], [0.0, 1.0], 0.9, terminal=[1])
    for agent in (QLearning, Reinforce, TDLambda, TDNetwork):
        agent(n_steps=500, random_state=1).fit(world).certify(world)
    for kernel, signatures in before.items():
        assert kernel.signatures == signatures, (kernel, [s for s in kernel.signatures if s not in signatures])
"""


def test_after_warm_no_common_fit_waits_for_the_compiler():
    environment = {key: value for key, value in os.environ.items() if key != "NUMBA_DISABLE_JIT"}
    said, _ = finished(python(COMMON_FITS, environment=environment), timeout=1800)  # so long only where nothing is cached
    (line,) = said.splitlines()
    compiled, found = map(int, re.match(r"(\d+) kernels compiled, (\d+) found ready; the cache is /", line).groups())
    assert compiled + found > 0
    assert os.environ["NUMBA_CACHE_DIR"] in line


def test_an_estimator_that_cannot_be_warmed_stops_nobody(monkeypatch):
    fitted = []

    class Recorded(Nearest):
        def fit(self, X, y):
            fitted.append((X.dtype.name, X.flags.writeable, X.shape[1], len(np.unique(y))))
            return super().fit(X, y)

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    offer(monkeypatch, Failing, Constant, Recorded)
    done = run("warm")
    assert done.exit_code == 0, done.output
    assert done.stderr == "Failing failed: this model never fits.\n"
    assert re.fullmatch(r"\d+ kernels compiled, \d+ found ready.*\n", done.stdout)
    assert len(fitted) == len(set(fitted)) == 16  # two widths, two precisions, writable or not, two or three classes


def test_warm_says_why_it_cannot(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    done = run("warm")
    assert done.exit_code == 2
    assert done.stderr == "NUMBA_DISABLE_JIT is set, so there is nothing to compile.\n"


def test_help_is_light_and_complete():
    code = "import sys, lemmata.cli; sys.exit('sklearn' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    shown = run("--help").stdout
    for command in COMMANDS:
        assert command in shown
        help_text = run(command, "--help").stdout
        assert command == "version" or f"lemmata {command} " in help_text.split("Example:")[1]
    assert run("version").stdout == f"lemmata {lemmata.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fit", "absent.csv"), "there is no file absent.csv."),
        (("fit", "rents.csv", "--target", "price"), "there is no column 'price'; the columns are size, city, rent."),
        (("fit", "rents.csv", "--target", "rent", "--models", "Lottery"), "no model 'Lottery' for regression; there are"),
        (("fit", "rents.csv", "--target", "city", "--task", "regression"), "regression needs numbers"),
        (("fit", "rents.csv", "--task", "regression"), "regression needs a target"),
        (("fit", "rents.csv", "--target", "rent", "--task", "clustering"), "clustering has no target"),
        (
            ("fit", "ragged.csv", "--target", "a"),
            "ragged.csv, line 3: 1 cell, but the header has 2; leave a cell empty for what",
        ),
        (("fit", "short.csv", "--target", "a"), "at least 4 are needed"),
        (("fit", "rents.csv", "--target", "rent", "--out", "rents.csv"), "rents.csv: File exists."),
        (("predict", "absent.lemmata", "rents.csv"), "there is no model file absent.lemmata."),
        (("predict", "rents.csv", "rents.csv"), "rents.csv was not loaded"),
        (
            ("certify", "plain.lemmata", "rents.csv"),
            "holds a LinearRegression; this command takes a model that 'lemmata fit' saved.",
        ),
        (("certify", "model.lemmata", "untargeted.csv"), "the table has no column 'rent'"),
        (("predict", "model.lemmata", "narrow.csv"), "the table lacks the column 'city'"),
        (("predict", "model.lemmata", "rents.csv", "--out", "rents.csv"), "is the data itself"),
        (("predict", "absent.lemmata", "rents.csv", "--out", "nowhere/p.csv"), "there is no folder nowhere."),
        (("predict", "model.lemmata", "words.csv"), "and row 2 holds 'many': correct that or leave it empty."),
        (("fit", "x.json"), "x.json is not a CSV or Parquet file; save the table as one of these."),
        (("fit", "one.csv"), "there is 1 row; at least 4 are needed."),
        (("predict", "rules.lemmata", "rents.csv"), "rules.lemmata holds an Apriori; this command takes a model that"),
        (
            ("report", "model.lemmata", "rents.csv", "--out", "nowhere/page.html"),
            "there is no folder nowhere.",
        ),
    ],
)
def test_errors_are_one_red_sentence(data, saved_model, arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert isinstance(done.exception, SystemExit)


@pytest.fixture
def saved_model(data):
    LinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 3.0]).save("plain.lemmata")
    table = read_table(data)
    TableModel(LinearRegression(), "rent").fit(table).save("model.lemmata")
    save(table.without("rent"), data.parent / "untargeted.csv")
    save(table.without("city"), data.parent / "narrow.csv")
    save(Table({"a": np.arange(3.0), "b": np.arange(3.0)}), data.parent / "short.csv")
    (data.parent / "ragged.csv").write_text("a,b\n1,2\n3\n")
    (data.parent / "words.csv").write_text("size,city\n50,Graz\nmany,Linz\n")
    (data.parent / "x.json").write_text('{"a": [1, 2, 3]}')
    (data.parent / "one.csv").write_text("a,b\n1,2\n")
    Apriori(0.5).fit([["a", "b"], ["a"]]).save("rules.lemmata")


def test_a_task_without_estimators_is_one_sentence(data, monkeypatch):
    offer(monkeypatch, LinearRegression)
    done = run("fit", data, "--target", "city")
    assert done.exit_code == 2
    assert done.stderr == "this version of lemmata has no estimator for classification yet.\n"


def test_a_model_that_fails_keeps_its_row_and_stops_nobody(data, monkeypatch):
    offer(monkeypatch, Failing, LinearRegression)
    done = run("fit", data, "--target", "rent", columns=120)
    assert done.exit_code == 0, done.output
    rows = [line.strip() for line in done.stdout.splitlines()]
    assert any(row.startswith("LinearRegression") and "proved" in row for row in rows)
    assert any(row.startswith("Failing") and row.endswith("failed: this model never fits.") for row in rows)
    offer(monkeypatch, Failing)
    done = run("fit", data, "--target", "rent")
    assert done.exit_code == 2
    assert "no model could be fitted; Failing: this model never fits." in done.stderr


def test_a_refused_certificate_is_said(data, monkeypatch):
    offer(monkeypatch, Doubtful)
    job = make_job(rents(), "rent", "regression", 5, 0)
    (result, _) = compare(job, candidates("regression"), lambda: None)
    assert result.verdict == "refused: gap"


def test_noise_is_not_sold_as_knowledge(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = Table({f"x{j}": rng.normal(size=40) for j in range(12)} | {"y": rng.normal(size=40)})
    save(table, tmp_path / "noise.csv")
    assert "no model is better than the baseline" in run("fit", "noise.csv", "--target", "y").stdout


@pytest.mark.parametrize(
    ("column", "task"),
    [
        (np.linspace(0, 1, 30), "regression"),
        (np.arange(30.0), "regression"),
        (np.array([0.5, 1.5, 2.5] * 10), "regression"),
        (np.arange(30.0) % 15, "regression"),  # more values than classes usually have
        (np.array([310.0, 450.0, 520.0, 700.0, 700.0]), "regression"),
        (np.array([0.0, 1.0] * 15), "classification"),
        (np.arange(30.0) % 10, "classification"),
        (np.array([True, False] * 15), "classification"),
        (np.array(["a", "b"] * 15, dtype=object), "classification"),
    ],
)
def test_task_follows_from_the_target(column, task):
    assert choose_task(Table({"y": column}), "y") == task
    assert choose_task(Table({"y": column}), None) == "clustering"


def test_targets_without_a_task():
    with pytest.raises(ValueError, match="dates"):
        choose_task(Table({"y": np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]")}), "y")
    with pytest.raises(ValueError, match="only one value"):
        choose_task(Table({"y": np.ones(4)}), "y")
    with pytest.raises(ValueError, match="different in every row"):
        choose_task(Table({"y": np.array(list("abcd"), dtype=object)}), "y")


def test_cross_validated_scores_match_a_loop_by_hand():
    from sklearn.metrics import r2_score, root_mean_squared_error
    from sklearn.model_selection import KFold

    job = make_job(rents(), "rent", "regression", 4, 3)
    ticks = []
    estimators = {"LinearRegression": LinearRegression()}
    (result, baseline) = compare(job, estimators, lambda: ticks.append(1))
    inputs, y = job.table.without("rent"), job.table["rent"]
    r2, rmse = [], []
    for train, test in KFold(4, shuffle=True, random_state=3).split(y):
        encoder = TableEncoder(scale=True).fit(inputs.take(train))
        model = LinearRegression().fit(encoder.transform(inputs.take(train)), y[train])
        predicted = model.predict(encoder.transform(inputs.take(test)))
        r2.append(r2_score(y[test], predicted))
        rmse.append(root_mean_squared_error(y[test], predicted))
    assert_allclose([result.scores["R²"], result.scores["RMSE"]], [np.mean(r2), np.mean(rmse)], rtol=1e-12)
    assert_allclose(result.spreads["R²"], np.std(r2, ddof=1), rtol=1e-9)
    assert baseline.scores["R²"] < 0 < result.scores["R²"]
    assert len(ticks) == n_fits(job, estimators) == 5


def test_classifiers_join_by_their_tags(monkeypatch):
    from sklearn.metrics import accuracy_score, log_loss
    from sklearn.model_selection import StratifiedKFold

    offer(monkeypatch, LinearRegression, Nearest)
    rng = np.random.default_rng(1)
    label = np.array(["no", "yes", "maybe"] * 20, dtype=object)
    table = Table({"x": rng.normal(size=60) + 2 * (label == "yes") - 2 * (label == "no"), "label": label})
    job = make_job(table, "label", choose_task(table, "label"), 5, 0)
    assert list(candidates("classification")) == ["Nearest"]
    (result, baseline) = compare(job, candidates("classification"), lambda: None)
    accuracy, loss = [], []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(label, label):
        encoder = TableEncoder(scale=True).fit(table.without("label").take(train))
        model = Nearest().fit(encoder.transform(table.take(train)), label[train].astype(str))
        X = encoder.transform(table.take(test))
        accuracy.append(accuracy_score(label[test].astype(str), model.predict(X)))
        loss.append(log_loss(label[test].astype(str), model.predict_proba(X)))
    assert_allclose([result.scores["accuracy"], result.scores["log loss"]], [np.mean(accuracy), np.mean(loss)], rtol=1e-12)
    assert result.verdict == "proved"
    assert_allclose(baseline.scores["accuracy"], 1 / 3)
    assert result.model is not None
    assert set(result.model.predict(table)) <= set(label)


class TwoOnly(Nearest):
    """A classifier of two classes."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def fruit(tmp_path, kinds, n=60):
    rng = np.random.default_rng(1)
    kind = np.array(kinds, dtype=object)[np.arange(n) % len(kinds)]
    size = rng.normal(size=n) + 2.0 * (np.arange(n) % len(kinds))
    return save(Table({"size": size, "weight": rng.normal(size=n), "kind": kind}), tmp_path / "fruit.csv")


def test_classifiers_of_two_classes_stay_away_from_three(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    offer(monkeypatch, Nearest, TwoOnly)
    data = fruit(tmp_path, ["apple", "fig", "plum"])
    done = run("fit", data, "--target", "kind", "--models", "TwoOnly")
    assert done.exit_code == 2
    assert done.stderr == "TwoOnly tells two classes apart, and the target has 3.\n"
    assert "TwoOnly" not in run("fit", data, "--target", "kind").stdout
    assert "TwoOnly" in run("fit", fruit(tmp_path, ["apple", "fig"]), "--target", "kind").stdout


def test_classification_from_end_to_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = fruit(tmp_path, ["apple", "fig", "plum"])
    done = run("fit", data, "--target", "kind", "--models", "LogisticRegression")
    assert done.exit_code == 0, done.output
    assert "accuracy" in done.stdout
    assert "proved" in done.stdout
    page = (tmp_path / "fruit-fit" / "report.html").read_text(encoding="utf-8")
    assert "the region of each class" in page
    assert "confusion matrix" in page
    assert run("certify", "fruit-fit/model.lemmata", data).exit_code == 0
    done = run("predict", "fruit-fit/model.lemmata", data)
    assert "accuracy on the rows that have kind" in done.stdout
    predicted = read_table(tmp_path / "predictions.csv")
    probabilities = np.array([predicted[f"probability_{k}"] for k in ("apple", "fig", "plum")], dtype=float)
    assert_allclose(probabilities.sum(axis=0), 1, atol=1e-12)
    assert_array_equal(predicted["predicted_kind"], np.array(["apple", "fig", "plum"])[probabilities.argmax(axis=0)])


def test_ties_are_settled_by_the_second_metric_and_then_by_name():
    results = {
        name: Result(name, {"accuracy": accuracy, "log loss": loss})
        for name, accuracy, loss in [
            ("b", 0.75, 0.5),
            ("d", 0.75, np.nan),
            ("c", 0.75 + 1e-13, 0.4),
            ("a", 0.75 - 1e-13, 0.4 + 1e-9),
            ("e", 0.76, 0.9),
        ]
    }
    ranked = sorted(results.values(), key=lambda result: rank(result, "accuracy", "log loss"))
    assert [result.name for result in ranked] == ["e", "a", "c", "b", "d"]


def test_a_class_may_be_rarer_than_the_folds():
    label = np.array(["common"] * 30 + ["rare"] * 2, dtype=object)
    table = Table({"x": np.linspace(0, 1, 32), "label": label})
    (result, baseline) = compare(Job(table, "label", "classification", 5, 0), {"Nearest": Nearest()}, lambda: None)
    assert not result.error
    assert np.isfinite(result.scores["log loss"])
    assert 0.9 < baseline.scores["accuracy"] < 1
    assert baseline.scores["log loss"] < 0.3  # the frequencies of the classes, not a guess between two


def test_best_first_then_failures_then_the_baseline():
    job = make_job(rents(), "rent", "regression", 3, 0)
    estimators = {"a failure": Failing(), "b constant": Constant(), "c line": LinearRegression()}
    results = compare(job, estimators, lambda: None)
    assert [result.name for result in results] == ["c line", "b constant", "a failure", "baseline: mean"]
    assert_allclose(results[1].scores["R²"], results[3].scores["R²"])  # the constant is the baseline


def test_seed_reaches_what_draws_at_random():
    assert all(e.random_state == 11 for e in candidates("clustering", seed=11).values() if "random_state" in e.get_params())
    assert Result("x").verdict == ""


def test_output_fits_a_narrow_terminal(data):
    shown = run("fit", data, "--target", "rent", columns=80).stdout
    table = [line for line in shown.splitlines() if not line.startswith(("saved", "next", "  "))]
    assert max(map(len, table)) <= 80


def test_models_that_would_take_hours_are_left_out_unless_named():
    offered = candidates("regression")
    few, none = split_by_rows(offered, 100)
    assert few == offered
    assert none == []
    fast, slow = split_by_rows(offered, 1_000_000)
    assert {"SVR", "GaussianProcessRegressor"} <= set(slow)
    assert "Ridge" in fast
    named = candidates("regression", ["SVR"])
    assert split_by_rows(named, 1_000_000) == (named, [])  # there is nothing else to fit


@pytest.mark.parametrize("winner", ["MultinomialNB", "CategoricalNB"])
def test_models_of_counts_and_codes_have_a_report(winner, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = np.repeat(["spam", "mail"], 30)
    words = rng.poisson(np.where((y == "spam")[:, None], [3.0, 1.0, 1.0], [1.0, 1.0, 3.0]))
    data = save(
        Table({"win": words[:, 0], "the": words[:, 1], "you": words[:, 2], "y": y.astype(object)}), tmp_path / "words.csv"
    )
    done = run("fit", data, "--target", "y", "--models", winner)
    assert done.exit_code == 0, done.output
    page = (tmp_path / "words-fit/report.html").read_text(encoding="utf-8")
    assert "confusion matrix of the training rows" in page
    assert "could not be drawn" not in page


def test_ratings_of_pairs_have_a_recommender(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    who, what = rng.integers(30, size=500), rng.integers(20, size=500)
    stars = 3 + (rng.normal(size=(30, 1)) @ rng.normal(size=(1, 20)))[who, what] + 0.1 * rng.normal(size=500)
    people, films = np.array([f"p{i}" for i in who], dtype=object), np.array([f"f{j}" for j in what], dtype=object)
    path = save(Table({"person": people, "film": films, "stars": stars}), tmp_path / "ratings.csv")
    offer(monkeypatch, LinearRegression, ProbabilisticMatrixFactorization)
    done = run("fit", path, "--target", "stars", "--out", "out")
    assert done.exit_code == 0, done.output
    assert "best: ProbabilisticMatrixFactorization" in done.output
    assert run("certify", "out/model.lemmata", path).exit_code == 0
    assert "R² on the rows that have stars: 0.9" in run("predict", "out/model.lemmata", path, "--out", "new.csv").output
    assert "an identifier, as it is" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    # Three columns are no pairs, and nobody is offered a model that cannot read them.
    wide = Job(Table({"a": stars, "person": people, "film": films, "stars": stars}), "stars", "regression")
    assert not holds_pairs(wide)
    assert "ProbabilisticMatrixFactorization" not in candidates("regression")
    assert "ProbabilisticMatrixFactorization" in candidates("regression", pairs=True)


def test_pairs_are_read_as_text_and_must_be_whole():
    encoder = PairEncoder().fit({"user": ["a", "b"], "item": [1.0, 2.0]})
    assert encoder.transform({"item": [3.0], "user": ["c"]}).tolist() == [["c", "3"]]
    with pytest.raises(ValueError, match="lacks the column 'item'"):
        encoder.transform({"user": ["c"]})
    with pytest.raises(ValueError, match="lacks an identifier in row 1"):
        encoder.transform({"user": ["c", None], "item": [1.0, 1.0]})
    with pytest.raises(ValueError, match="two columns beside the target, and there are 3"):
        PairEncoder().fit({"a": [1.0], "b": [1.0], "c": [1.0]})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"a": np.arange(30.0), "y": np.array(["no"] + ["yes"] * 29, dtype=object)},
            "class 'no' of y has 1 row; at least 2 are needed: where a fold leaves them out, there is one class",
        ),
        ({"a": np.where(np.arange(30) == 3, np.inf, 1.0), "y": np.arange(30.0)}, "column 'a' holds infinite values; correct"),
        ({"a": np.arange(30.0), "y": np.where(np.arange(30) == 3, np.inf, 1.0)}, "column 'y' holds infinite values; correct"),
        ({"a": np.ones(30), "y": np.arange(30.0)}, "no column is left to learn from: a (constant)."),
    ],
)
def test_what_no_model_can_learn_from_is_said_once_before_any_fit(tmp_path, monkeypatch, table, message):
    monkeypatch.chdir(tmp_path)
    save(Table(table), tmp_path / "data.csv")
    done = run("fit", "data.csv", "--target", "y")
    assert done.exit_code == 2, done.output
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
    assert "certificate" not in done.stdout
    assert not (tmp_path / "data-fit").exists()


def test_a_rare_class_among_others_is_fitted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = np.array(["a"] * 12 + ["b"] * 12 + ["c"], dtype=object)
    save(Table({"x": np.arange(25.0), "y": names}), tmp_path / "rare.csv")
    done = run("fit", "rare.csv", "--target", "y", "--models", "LogisticRegression")
    assert done.exit_code == 0, done.output


def test_measurements_as_classes_are_remarked_and_no_raw_warning_is_shown(data):
    code = "import sys; from lemmata.cli import main; sys.argv[0] = 'lemmata'; main()"
    arguments = ["fit", data, "--target", "rent", "--task", "classification", "--models", "logisticregression"]
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "rent looks like a measurement, for which --task regression is meant." in " ".join(done.stdout.split())
    assert "number of unique classes" not in done.stdout
    assert "looks like" not in run("fit", data, "--target", "city", "--models", "logisticregression").stdout


def test_numbers_with_commas_are_not_called_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f'{i % 7},{j},"{j},5","1,{100 + i}"' for i, j in enumerate(range(30, 60))]
    (tmp_path / "commas.csv").write_text("\n".join(["a,b,size,y", *rows]))
    done = run("fit", "commas.csv", "--target", "b", "--models", "ridge")
    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    assert "'size' looks like numbers with a decimal comma: write 30.5 for 30,5." in said
    assert "'y' looks like thousands separated by commas: write 1100 for 1,100, or" in said
    for task in ("auto", "regression"):
        done = run("fit", "commas.csv", "--target", "y", "--task", task)
        assert done.exit_code == 2
        assert done.stderr.startswith("the target 'y' looks like thousands separated by commas: write 1100 for 1,100")


def test_the_version_is_an_option_too():
    done = run("--version")
    assert done.exit_code == 0
    assert done.stdout == f"lemmata {lemmata.__version__}\n"


def test_one_is_not_counted_as_many(data, saved_model):
    (data.parent / "new.csv").write_text("size,city\n50,Graz\n")
    assert "predictions.csv: 1 row, predictions in" in run("predict", "model.lemmata", "new.csv").stdout
    assert "one.csv: 1 row; numbers" in run("fit", "one.csv").stdout


def test_a_model_that_names_itself_is_named_once():
    job = make_job(rents(), "rent", "regression", 5, 0)
    said = ["Perceptron still makes mistakes.", "Perceptron's loss still falls.", "the step is long."]
    results = [Result("Perceptron", warnings=said), Result(job.baseline)]
    lines = show.remarks(results, job).plain.splitlines()
    assert lines[-3:] == [*said[:2], "Perceptron: the step is long."]
    assert show.notes(results, job)[1:] == lines[-3:]


def test_warnings_are_sentences(data, saved_model, monkeypatch):
    def predict(self, table):
        warnings.warn("this is far from the rows of the fit.\nmore of it", UserWarning, stacklevel=1)
        warnings.warn("for developers", FutureWarning, stacklevel=1)
        return np.zeros(60)

    monkeypatch.setattr(TableModel, "predict", predict)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        done = run("predict", "model.lemmata", data)
    assert done.exit_code == 0, done.output
    assert done.stderr == "this is far from the rows of the fit.\n"
