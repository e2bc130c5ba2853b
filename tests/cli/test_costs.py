"""Costs are read as they stand or refused in a sentence; models under costs are compared by what their actions cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression as Reference
from sklearn.model_selection import StratifiedKFold

import lemmata
from cli.commandline import offer, run, save
from lemmata.cli.compare import Result, candidates, choose_costs, compare, make_job, rank
from lemmata.cli.estimators import default_estimators, is_meta
from lemmata.cli.promise import DELTA, promise, promises
from lemmata.cli.show import score_rows
from lemmata.cli.warm import tiny_fits
from lemmata.core.table import Table, read_table
from lemmata.core.table_encoder import TableEncoder
from lemmata.decision.costs import Costs, DecisionModel, read_costs
from lemmata.linear_model import LogisticRegression, ProbitRegression
from lemmata.theory.bounds.holdout import cross_validation_bound
from lemmata.theory.structural_risk import StructuralRiskMinimizer

LOANS = Costs(("grant", "refuse"), ("bad", "good"), np.array([[5.0, 0.0], [0.0, 1.0]]))


def loans(n=120, seed=0):
    rng = np.random.default_rng(seed)
    income, age = rng.normal(size=n), rng.uniform(20, 70, n)
    paid = np.where(income + 0.5 * rng.logistic(size=n) > -0.6, "good", "bad").astype(object)
    return Table({"income": income, "age": age, "paid": paid})


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "costs.csv").write_text("action,good,bad\ngrant,0,5\nrefuse,1,0\n")
    return save(loans(), tmp_path / "loans.csv")


@pytest.mark.parametrize(
    "text",
    [
        "action,good,bad\ngrant,0,5\nrefuse,1,0\n",
        ",bad,good\ngrant,5,0\nrefuse,0,1\n",
        "\ufeffwhat to do;bad;good\n\ngrant; 5.0 ;0\nrefuse;0;1e0\n",
    ],
)
def test_costs_are_read_in_any_order(tmp_path, text):
    (tmp_path / "c.csv").write_text(text, encoding="utf-8")
    costs = read_costs(tmp_path / "c.csv", ["bad", "good"], reject=0.5)
    assert costs.actions == ("grant", "refuse")
    assert_array_equal(costs.choices, [[5, 0], [0, 1], [0.5, 0.5]])
    assert not costs.names_classes


def test_actions_that_number_the_rows_are_still_actions(tmp_path):
    (tmp_path / "c.csv").write_text(",0,1\n0,0,5\n1,1,0\n")
    costs = read_costs(tmp_path / "c.csv", ["0", "1"])
    assert costs.actions == ("0", "1")
    assert costs.names_classes


@pytest.mark.parametrize(
    ("text", "reject", "message"),
    [
        ("action,good,bad,dubious\na,0,5,1\n", None, "has a column 'dubious', which is no class; the classes are bad, good."),
        ("good,bad\n0,5\n", None, "begins with the class 'good': put a column with the names of the actions before it."),
        ("action,good\na,0\n", None, "has no column for the class 'bad'; the classes are bad, good."),
        ("action,good,bad,bad\na,0,5,1\n", None, "has two columns for the class 'bad'."),
        ("action,good,bad\na,0,five\n", None, "the cost of the action 'a' in the class 'bad' is 'five', which is no number."),
        ("action,good,bad\na,,5\n", None, "the cost of the action 'a' in the class 'good' is '', which is no number."),
        ("action,good,bad\na,nan,5\n", None, "is 'nan', which is no number."),
        ("action,good,bad\na,0,5\na,1,1\n", None, "has two rows for the action 'a'."),
        ("action,good,bad\n,0,5\n", None, "has a row without a name; its first column names the action."),
        ("action,good,bad\na,0\n", None, "action 'a': the header has 3 cells, and this row has 2."),
        ("action,good,bad\n", None, "a row for each action below it."),
        ("action,good,bad\na,0,5\n", None, "the costs of strange.csv have one action, 'a': there is nothing to decide"),
        ("", None, "should have a header"),
        ("action,good,bad\na,0,5\n", -1.0, "the cost of a refusal is -1; it must be a number of at least 0."),
        ("action,good,bad\na,0,5\n", np.nan, "the cost of a refusal is nan"),
        ("action,good,bad\nrejected,0,5\n", 1.0, "an action is called 'rejected', as refused rows are"),
    ],
)
def test_strange_costs_are_one_sentence(data, text, reject, message):
    (data.parent / "strange.csv").write_text(text)
    refusal = () if reject is None else ("--reject-cost", reject)
    done = run("fit", data, "--target", "paid", "--costs", "strange.csv", *refusal)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (data.parent / "loans-fit").exists()  # before any work


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--costs", "costs.csv"), "--costs needs a target of classes; name its column with --target."),
        (("--reject-cost", "1"), "--reject-cost needs a target of classes; name its column with --target."),
        (("--costs", "costs.csv", "--target", "age"), "'age' is taken for measurements; --task classification changes that."),
        (("--costs", "absent.csv", "--target", "paid"), "there is no file absent.csv."),
        (
            ("--costs", "costs.csv", "--target", "paid", "--models", "Perceptron"),
            "Perceptron: no probabilities, which costs are weighed by; choose another model.",
        ),
    ],
)
def test_costs_need_classes_and_probabilities(data, arguments, message):
    done = run("fit", data, *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (data.parent / "loans-fit").exists()


@pytest.mark.parametrize("reject", [None, 0.3])
def test_costs_from_end_to_end(data, reject):
    models = "logisticregression,probitregression,perceptron"
    refusal = () if reject is None else ("--reject-cost", reject)
    done = run("fit", data, "--target", "paid", "--costs", "costs.csv", "--models", models, *refusal, columns=80)
    assert done.exit_code == 0, done.output
    assert "actions: grant, refuse; the costs of costs.csv" in done.stdout
    assert "not compared: Perceptron (no probabilities, which costs are weighed by)." in done.stdout
    assert "accuracy" not in done.stdout  # a loan that is granted is no class
    assert ("refused" in done.stdout) == (reject is not None)
    assert "proved" in done.stdout

    model = lemmata.load("loans-fit/model.lemmata")
    done = run("predict", "loans-fit/model.lemmata", data)
    predicted = read_table("predictions.csv")
    actions = predicted["action"]
    assert set(actions) == ({"grant", "refuse"} if reject is None else {"grant", "refuse", "rejected"})
    p = np.column_stack([predicted["probability_bad"], predicted["probability_good"]])
    choices = np.array([[5.0, 0.0], [0.0, 1.0], [reject or 0.0] * 2])[: 2 if reject is None else 3]
    risks = p @ choices.T
    assert_array_equal(actions, np.array(["grant", "refuse", "rejected"])[risks.argmin(axis=1)])
    assert_allclose(predicted["expected_cost"], risks.min(axis=1), rtol=1e-9)
    realized = choices[risks.argmin(axis=1), (read_table(data)["paid"] == "good").astype(int)].mean()
    assert f"mean cost on the rows that have paid: {realized:.3f}." in done.stdout
    assert_allclose(-model.score(read_table(data)), realized)
    assert run("certify", "loans-fit/model.lemmata", data).exit_code == 0

    page = (data.parent / "loans-fit/report.html").read_text(encoding="utf-8")
    assert "<h2>Costs</h2>" in page
    assert "the region of each action" in page
    assert "cost ≤ (95 %)" in page
    assert "Not compared: Perceptron" in page


def test_a_refusal_alone_makes_every_mistake_cost_one(data):
    done = run("fit", data, "--target", "paid", "--reject-cost", 0.2, "--models", "LogisticRegression")
    assert done.exit_code == 0, done.output
    assert "actions: bad, good; every mistake costs 1; a refusal costs 0.2." in done.stdout
    header = next(line.split() for line in done.stdout.splitlines() if line.startswith("model"))
    assert header == ["model", "mean", "cost", "accuracy", "refused", "fit", "certificate"]
    model = lemmata.load("loans-fit/model.lemmata")
    p = model.predict_proba(read_table(data))
    expected = np.where(p.max(axis=1) > 0.8, np.array(["bad", "good"])[p.argmax(axis=1)], "rejected")
    assert_array_equal(model.predict(read_table(data)), expected)
    assert "Accuracy is that of the rows that were not refused." in (data.parent / "loans-fit/report.html").read_text("utf-8")


def test_cross_validated_costs_match_a_loop_by_hand():
    table = loans(150, seed=3)
    refusing = Costs(("good", "bad"), ("bad", "good"), np.array([[5.0, 0.0], [0.0, 1.0]]), reject=0.4)
    job = make_job(table, "paid", "classification", 4, 2, refusing)
    results = compare(job, {"LogisticRegression": LogisticRegression(), "ProbitRegression": ProbitRegression()}, lambda: None)
    result = next(r for r in results if r.name == "LogisticRegression")
    y, inputs = (table["paid"] == "good").astype(int), table.without("paid")
    choices = np.array([[5.0, 0.0], [0.0, 1.0], [0.4, 0.4]])
    cost, accuracy, refused, constant = [], [], [], []
    for train, test in StratifiedKFold(4, shuffle=True, random_state=2).split(y, y):
        encoder = TableEncoder(scale=True).fit(inputs.take(train))
        model = Reference(C=1.0, tol=1e-10, max_iter=1000).fit(encoder.transform(inputs.take(train)), y[train])
        taken = (model.predict_proba(encoder.transform(inputs.take(test))) @ choices.T).argmin(axis=1)
        cost.append(choices[taken, y[test]].mean())
        accuracy.append(np.mean((1 - taken == y[test])[taken < 2]))  # action 0 is the class 1, "good"
        refused.append(np.mean(taken == 2))
        best = (choices @ np.bincount(y[train])).argmin()
        constant.append(choices[best, y[test]].mean())
    assert_allclose([result.scores[m] for m in job.metrics], np.mean([cost, accuracy, refused], axis=1), rtol=1e-9)
    assert_allclose(result.spreads["mean cost"], np.std(cost, ddof=1), rtol=1e-9)
    assert results[-1].name == "baseline: constant action"
    assert_allclose(results[-1].scores["mean cost"], np.mean(constant))
    assert results[0].scores["mean cost"] <= results[1].scores["mean cost"]  # less is better, best first
    assert isinstance(result.model, DecisionModel)


def test_less_cost_ranks_first_and_then_more_accuracy():
    rows = [("a", 2.0, 0.9), ("b", 1.0, 0.5), ("c", 1.0, 0.7), ("d", np.nan, 1.0)]
    results = [Result(name, {"mean cost": cost, "accuracy": right}) for name, cost, right in rows]
    assert [r.name for r in sorted(results, key=lambda r: rank(r, "mean cost", "accuracy"))] == ["c", "b", "a", "d"]


def test_a_class_may_be_missing_in_a_fold():
    kind = np.array(["common"] * 20 + ["other"] * 19 + ["rare"], dtype=object)
    table = Table({"x": np.linspace(0, 1, 40) + np.sin(np.arange(40)), "kind": kind})
    costs = Costs(("wait", "act"), ("common", "other", "rare"), np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 0.0]]))
    job = make_job(table, "kind", "classification", 4, 0, costs)
    (result, _) = compare(job, {"LogisticRegression": LogisticRegression()}, lambda: None)
    assert not result.error
    assert np.isfinite(result.scores["mean cost"])
    assert result.model.costs.classes == ("common", "other", "rare")


def test_number_and_boolean_classes_have_costs_by_their_written_names(tmp_path):
    (tmp_path / "c.csv").write_text("action,1,0\nyes,0,2\nno,1,0\n")
    table = Table({"x": np.arange(8.0), "y": np.arange(8) % 2 * 1.0})
    assert_array_equal(choose_costs(table, "y", "classification", tmp_path / "c.csv", None).matrix, [[2, 0], [0, 1]])
    (tmp_path / "c.csv").write_text("action,true,false\nyes,0,2\nno,1,0\n")
    table = Table({"x": np.arange(8.0), "y": np.arange(8) % 2 == 0})
    assert_array_equal(choose_costs(table, "y", "classification", tmp_path / "c.csv", None).matrix, [[2, 0], [0, 1]])
    assert choose_costs(table, "y", "classification", None, None) is None


def test_what_stands_on_another_estimator_is_no_candidate_and_is_warmed_on_few_tables():
    metas = [name for name, estimator in default_estimators() if is_meta(estimator)]
    assert "Decide" in metas
    assert not set(metas) & set(candidates("classification"))
    fits = [name for name, _ in tiny_fits()]
    assert fits.count("Decide") == 8  # two precisions, two numbers of classes, rows that may be written to or not
    assert fits.count("LogisticRegression") > 16


def test_structural_risk_minimization_joins_by_existing(data, monkeypatch):
    offer(monkeypatch, StructuralRiskMinimizer, LogisticRegression)
    done = run("fit", data, "--target", "paid")
    assert done.exit_code == 0, done.output
    row = next(line for line in done.stdout.splitlines() if line.startswith("StructuralRiskMinimizer"))
    assert "proved" in row
    assert run("fit", data, "--target", "paid", "--models", "StructuralRiskMinimizer", "--out", "s").exit_code == 0
    assert set(lemmata.load("s/model.lemmata").predict(read_table(data))) <= {"bad", "good"}
    assert list(candidates("classification", n_classes=3)) == ["LogisticRegression"]
    done = run("fit", data, "--target", "paid", "--costs", "costs.csv")
    assert "not compared: StructuralRiskMinimizer" in done.stdout


@pytest.mark.parametrize("costs", [None, LOANS])
def test_promises_pay_for_every_model(costs):
    job = make_job(loans(200), "paid", "classification", 5, 0, costs)
    estimators = {"LogisticRegression": LogisticRegression(), "ProbitRegression": ProbitRegression()}
    results = compare(job, estimators, lambda: None)
    found = promises(results, job)
    assert set(found) == set(estimators)
    for result in results[:-1]:
        share = 1 - result.scores["accuracy"] if costs is None else result.scores["mean cost"] / 5
        expected = cross_validation_bound(share, 5, 200, DELTA / 2) * (1 if costs is None else 5)
        assert_allclose(found[result.name], expected)
    sentence = promise(results, job)
    assert "With probability 95 %, and for all 2 models of the table at once" in sentence
    assert f"{results[0].name} as fitted in a random fold" in sentence
    assert "not about the saved model" in sentence
    head = "error ≤ (95 %)" if costs is None else "cost ≤ (95 %)"
    assert [row[head] for row in score_rows(results, job)] == [f"{found[r.name]:.3f}" for r in results[:-1]] + [""]


def test_negative_costs_are_gains_and_bounded_from_the_least():
    gains = Costs(("grant", "refuse"), ("bad", "good"), np.array([[5.0, -1.0], [0.0, 0.0]]))
    job = make_job(loans(200), "paid", "classification", 5, 0, gains)
    results = compare(job, {"LogisticRegression": LogisticRegression()}, lambda: None)
    score = results[0].scores["mean cost"]
    assert score < 0
    expected = -1 + 6 * cross_validation_bound((score + 1) / 6, 5, 200, DELTA)
    assert_allclose(promises(results, job)["LogisticRegression"], expected)


def test_nothing_is_promised_without_classes_or_scores():
    table = loans()
    job = make_job(table, "age", "regression", 3, 0)
    results = compare(job, {}, lambda: None)
    assert promises(results, job) == {}
    assert promise(results, job) == ""


def test_one_action_for_all_rows_may_be_best(data):
    (data.parent / "dear.csv").write_text("action,good,bad\ngrant,0,1\nrefuse,100,0\n")
    done = run("fit", data, "--target", "paid", "--costs", "dear.csv", "--models", "LogisticRegression")
    assert "no model is better than the baseline: one action for all rows costs no more." in done.stdout
    done = run("report", "loans-fit/model.lemmata", data, "--out", "page.html")
    assert done.exit_code == 0, done.output
    page = (data.parent / "page.html").read_text(encoding="utf-8")
    assert "<th class='number'>mean cost</th>" in page
    assert "<h2>Costs</h2>" in page


def test_large_costs_are_numbers_on_the_page(data):
    (data.parent / "large.csv").write_text("action,good,bad\ngrant,0,500000\nrefuse,100000,0\n")
    run("fit", data, "--target", "paid", "--costs", "large.csv", "--models", "LogisticRegression")
    page = (data.parent / "loans-fit/report.html").read_text(encoding="utf-8")
    assert "<th class='number'>mean cost</th>" in page
    assert "<td class='number'>500,000</td>" in page
