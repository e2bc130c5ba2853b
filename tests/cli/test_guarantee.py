"""`lemmata guarantee`: bounds of a saved model from unseen rows, checked against SciPy and by hand."""

import numpy as np
import pytest
from scipy.stats import beta, binom

from cli.commandline import run, save
from lemmata.cli.unseen import promise_of
from lemmata.cluster import KMeans
from lemmata.core.table import Table
from lemmata.core.table_model import TableModel
from lemmata.decision.costs import Costs, DecisionModel
from lemmata.ensemble import RandomForestClassifier
from lemmata.linear_model import LinearRegression, LogisticRegression
from lemmata.theory.bounds.holdout import betting_bound
from lemmata.tree import DecisionTreeClassifier

COSTS = Costs(("grant", "refuse"), ("bad", "good"), np.array([[5.0, 0.0], [0.0, 1.0]]), reject=0.4)


def rows(n=100, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    kind = np.where(x + 0.5 * rng.logistic(size=n) > -0.3, "good", "bad").astype(object)
    return Table({"x": x, "kind": kind, "size": 3 * x + rng.normal(size=n)})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(rows(), tmp_path / "seen.csv")
    save(rows(150, seed=1), tmp_path / "unseen.csv")
    fitted = rows()
    TableModel(LogisticRegression(), "kind").fit(fitted).save("classes.lemmata")
    TableModel(LinearRegression(), "size").fit(fitted.without("kind")).save("line.lemmata")
    DecisionModel(COSTS.decide(LogisticRegression()), "kind").fit(fitted).save("decisions.lemmata")
    TableModel(KMeans(2, random_state=0), None).fit(fitted).save("clusters.lemmata")
    return tmp_path


def test_classifier_gets_the_exact_binomial_bound(folder):
    model, unseen = TableModel(LogisticRegression(), "kind").fit(rows()), rows(150, seed=1)
    errors = int((model.predict(unseen) != unseen["kind"]).sum())
    promise = promise_of(model, unseen, 0.05, 1, None, None)
    np.testing.assert_allclose(promise.best.value, beta.ppf(0.95, errors + 1, 150 - errors), rtol=1e-9)
    assert promise.remarks == []
    paid = promise_of(model, unseen, 0.1, 4, None, None)
    np.testing.assert_allclose(paid.best.value, beta.ppf(1 - 0.1 / 4, errors + 1, 150 - errors), rtol=1e-9)
    done = run("guarantee", "classes.lemmata", "unseen.csv")
    assert done.exit_code == 0, done.output
    assert promise.sentence.startswith(f"With probability 95 %, the model errs on at most {100 * promise.best.value:.3g} %")
    assert promise.sentence in " ".join(done.stdout.split())
    assert "hold-out, Clopper-Pearson" in done.stdout
    assert "- the rows are independent draws" in done.stdout
    assert "If any row of unseen.csv had a part in fitting or choosing the model, nothing of this holds." in done.stdout
    assert "these rows scored 4 models" in run("guarantee", "classes.lemmata", "unseen.csv", "--models", 4).stdout


@pytest.mark.parametrize("name", ["classes", "line", "decisions"])
def test_the_rows_of_the_fit_are_refused(folder, name):
    done = run("guarantee", f"{name}.lemmata", "seen.csv")
    assert done.exit_code == 2
    assert done.stderr.startswith("the model was fitted to these rows")
    shuffled = rows().take(np.random.default_rng(3).permutation(100))
    assert run("guarantee", f"{name}.lemmata", save(shuffled, folder / "shuffled.csv")).exit_code == 2
    assert run("guarantee", f"{name}.lemmata", "unseen.csv").exit_code == 0


@pytest.mark.parametrize("make", [DecisionTreeClassifier, RandomForestClassifier])
def test_the_rows_of_the_fit_are_known_by_models_that_take_them_as_they_are(make):
    """Trees take holes and do not scale, and a forest cannot be grown again from rows in another order."""
    x, kind = rows()["x"].copy(), rows()["kind"]
    x[::9] = np.nan
    seen = Table({"x": x, "kind": kind})
    model = TableModel(make(random_state=0), "kind").fit(seen)
    for table in (seen, seen.take(np.random.default_rng(3).permutation(100))):
        with pytest.raises(ValueError, match="was fitted to these rows"):
            promise_of(model, table, 0.05, 1, None, None)


def test_columns_that_agree_by_chance_are_not_the_rows_of_the_fit():
    x = np.tile([0.0, 1.0], 50)
    first, second = (np.where((x + (np.arange(100) % k == 0)) % 2 > 0, "b", "a").astype(object) for k in (5, 7))
    model = TableModel(LogisticRegression(), "y").fit(Table({"x": x, "y": first}))
    assert promise_of(model, Table({"x": x, "y": second}), 0.05, 1, None, None).best.value < 0.3
    rare = np.where(np.arange(100) % 20 == 0, "b", "a").astype(object)
    sentence = promise_of(model, Table({"x": x, "y": rare}), 0.05, 1, None, None).sentence
    assert sentence.endswith("The bound is no less than what the best constant prediction loses in these rows.")
    with pytest.raises(ValueError, match="was fitted to these rows"):
        promise_of(model, Table({"x": x, "y": first}), 0.05, 1, None, None)


def test_decisions_are_judged_by_what_they_cost(folder):
    model, unseen = DecisionModel(COSTS.decide(LogisticRegression()), "kind").fit(rows()), rows(150, seed=1)
    taken, y = model.predict(unseen), (unseen["kind"] == "good").astype(int)
    cost = {"grant": (5.0, 0.0), "refuse": (0.0, 1.0), "rejected": (0.4, 0.4)}
    losses = np.array([cost[a][k] for a, k in zip(taken, y, strict=True)])
    promise = promise_of(model, unseen, 0.05, 1, None, None)
    np.testing.assert_allclose(promise.best.observed, losses.mean())
    np.testing.assert_allclose(promise.best.value, 5 * betting_bound(losses / 5, 0.05))
    constants = [np.mean([cost[a][k] for k in y]) for a in cost]
    np.testing.assert_allclose(promise.best.trivial, min(constants))
    done = run("guarantee", "decisions.lemmata", "unseen.csv")
    assert f"a decision costs at most {promise.best.value:.4g} on average" in done.stdout
    assert "mean cost" in done.stdout


def test_gains_are_measured_from_the_least_cost():
    gains = Costs(("grant", "refuse"), ("bad", "good"), np.array([[5.0, -1.0], [0.0, 0.0]]))
    model, unseen = DecisionModel(gains.decide(LogisticRegression()), "kind").fit(rows()), rows(150, seed=1)
    promise = promise_of(model, unseen, 0.05, 1, None, None)
    mean = -model.score(unseen)
    assert promise.best.limit == 6
    np.testing.assert_allclose(promise.best.observed, mean + 1)
    assert f"costs at most {promise.best.value - 1:.4g} on average" in promise.sentence
    assert f"it was {mean:.4g}" in promise.sentence


def test_regressors_promise_what_is_asked(folder):
    model, unseen = TableModel(LinearRegression(), "size").fit(rows().without("kind")), rows(150, seed=1)
    errors = np.abs(model.predict(unseen) - unseen["size"])
    level = promise_of(model, unseen, 0.05, 1, None, None)
    # The smallest order statistic that the 90 % quantile exceeds with a probability of at most 5 %.
    rank = next(k for k in range(1, 151) if binom.cdf(k - 1, 150, 0.9) >= 0.95)
    assert level.best.value == pytest.approx(np.sort(errors)[rank - 1])
    assert "at least 90 % of the errors on new rows are at most" in level.sentence
    larger = int((errors > 1.5).sum())
    rare = promise_of(model, unseen, 0.05, 1, None, 1.5)
    assert rare.best.value == pytest.approx(beta.ppf(0.95, larger + 1, 150 - larger))
    assert "of the errors on new rows are larger than 1.5." in rare.sentence
    mean = promise_of(model, unseen, 0.05, 1, 10.0, None)
    assert mean.best.value == pytest.approx(10 * betting_bound(np.minimum(errors, 10) / 10, 0.05))
    assert "errors above 10 counted as 10" in mean.sentence
    shown = run("guarantee", "line.lemmata", "unseen.csv", "--tolerance", 1.5).stdout
    assert rare.sentence in shown
    assert "--upper" in shown
    assert "upper=" not in shown


def test_classes_never_seen_are_mistakes_and_rows_without_a_target_are_left_out():
    model, unseen = TableModel(LogisticRegression(), "kind").fit(rows()), rows(150, seed=1)
    kind = unseen["kind"].copy()
    kind[:7], kind[7:10] = "ugly", None
    errors = 7 + int((model.predict(unseen) != unseen["kind"])[10:].sum())
    promise = promise_of(model, Table({**unseen, "kind": kind}), 0.05, 1, None, None)
    assert promise.best.observed == pytest.approx(errors / 147)
    assert promise.remarks[0].startswith("3 rows without kind are left out")
    assert promise.remarks[1] == "7 rows of classes that the model has never seen, such as 'ugly', count as mistakes."


def test_few_rows_promise_nothing(folder):
    few = rows(3, seed=2)
    model = TableModel(LinearRegression(), "size").fit(rows().without("kind"))
    promise = promise_of(model, few, 0.05, 1, None, None)
    assert promise.sentence == "These 3 rows promise nothing with probability 95 %."
    save(few, folder / "few.csv")
    assert run("guarantee", "line.lemmata", "few.csv").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("clusters.lemmata", "unseen.csv"), "KMeans predicts no target: it has no risk to bound."),
        (("classes.lemmata", "unseen.csv", "--upper", 3), "this model is a classifier."),
        (("decisions.lemmata", "unseen.csv", "--tolerance", 3), "this model is a classifier."),
        (("classes.lemmata", "unseen.csv", "--delta", 1.5), "delta=1.5 must be a probability between 0 and 1"),
        (("classes.lemmata", "untargeted.csv"), "the table has no column 'kind'"),
        (("classes.lemmata", "narrow.csv"), "the table lacks the column 'x'"),
        (("classes.lemmata", "empty.csv"), "the target 'kind' is missing in every row."),
        (("classes.lemmata", "strange.csv"), "holds no class that the model has seen."),
        (("decisions.lemmata", "strange.csv"), "the target 'kind' holds 'ugly', for which the model has no costs."),
        (("absent.lemmata", "unseen.csv"), "there is no model file absent.lemmata."),
    ],
)
def test_errors_are_one_sentence(folder, arguments, message):
    table = rows(20, seed=4)
    save(table.without("kind"), folder / "untargeted.csv")
    save(table.without("x"), folder / "narrow.csv")
    save(Table({**table, "kind": np.array(["ugly"] * 20, dtype=object)}), folder / "strange.csv")
    save(Table({**table, "kind": np.full(20, None)}), folder / "empty.csv")
    done = run("guarantee", *arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_bounds_keep_their_promise():
    """Among many samples, the risk exceeds the bound in hardly more than a share δ of them."""
    model = TableModel(LogisticRegression(), "kind").fit(rows(60, seed=9).without("size"))
    huge = rows(200_000, seed=10).without("size")
    risk = float(np.mean(model.predict(huge) != huge["kind"]))
    failures = sum(
        promise_of(model, huge.take(slice(200 * i, 200 * i + 200)), 0.2, 1, None, None).best.value < risk for i in range(200)
    )
    assert failures <= binom.ppf(0.999, 200, 0.2)
    assert failures > 0  # an exact bound is not far from its δ
