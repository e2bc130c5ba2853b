"""The page holds everything, loads nothing, and trusts no name in the data."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from lemmata import linear_model as ours
from lemmata.cluster import KMeans
from lemmata.core.certificate import Certificate, Check
from lemmata.core.table import Table
from lemmata.core.table_model import TableModel
from lemmata.decision import Decide
from lemmata.linear_model import LinearRegression, Ridge
from lemmata.naive_bayes import CategoricalNB, MultinomialNB
from lemmata.report import report
from lemmata.report.decisions import Decisions
from lemmata.report.page import verdict

HOSTILE = "<script>alert('x')</script>"


class Tags(HTMLParser):
    """Collects the tags, checks that they nest."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen, self.text = [], [], []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def table(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    levels = rng.choice([HOSTILE, "b"], n).astype(object)
    return Table({HOSTILE: x, "level": levels, 'quote"d': np.arange(n) % 3 == 0, "y": 2 * x + rng.normal(0, 0.1, n)})


def test_page_is_whole_and_well_formed(tmp_path):
    data = table()
    models = [TableModel(estimator, "y").fit(data) for estimator in (LinearRegression(), Ridge())]
    page = report(models, data, tmp_path / "page.html", title="Lines")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    tags = Tags(page)
    text = " ".join(tags.text)
    assert all(word in text for word in ("Lines", "LinearRegression", "Ridge", "proved", "2 of 2 certificates hold", "numpy"))
    images = [attributes["src"] for tag, attributes in tags.seen if tag == "img"]
    assert len(images) == 4  # predictions and certificate of two models
    assert all(source.startswith("data:image/png;base64,iVBOR") for source in images)  # iVBOR: how a PNG begins


def test_nothing_is_loaded_and_nothing_runs():
    page = report({HOSTILE: TableModel(LinearRegression(), "y").fit(table())}, table(), title=HOSTILE, notes=[HOSTILE])
    tags = Tags(page)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert HOSTILE in "".join(tags.text)  # shown as text
    assert not re.search(r"https?:|//[a-z]", re.sub(r"base64,[^']*", "", page))
    assert not any(name.startswith("on") for _, attributes in tags.seen for name in attributes)


def test_scores_given_are_the_scores_shown():
    X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]
    model = LinearRegression().fit(X, y)
    page = report({"line": model}, (X, y), scores=[{"model": "line", "R²": 0.123}, {"model": HOSTILE, "R²": float("nan")}])
    assert "<td class='number'>0.123</td>" in page
    assert "<td class='number'>–</td>" in page
    assert "<script" not in page
    assert "may have been fitted to" not in page
    assert "may have been fitted to" in report({"line": model}, (X, y))


def test_scores_of_a_regression_are_its_scores():
    data = table()
    model = TableModel(LinearRegression(), "y").fit(data)
    rmse = np.sqrt(np.mean((data["y"] - model.predict(data)) ** 2))
    page = report(model, data)
    assert f"{model.score(data):.4g}" in page
    assert f"{rmse:.4g}" in page


def test_clusters_and_classes_have_their_plots():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)), rng.normal(size=(20, 3)) + 9])
    clusters = report(KMeans(2, random_state=0).fit(X), X)
    assert "proved" in clusters  # two clusters far apart: no others are better
    assert "KMeans: clusters" in clusters
    y = np.repeat([0, 1], 20)
    classes = report(LogisticRegression().fit(X, y), (X, y))  # not ours: no certificate, still a page
    assert "no certificate" in classes
    assert "confusion matrix" in classes
    assert "the region of each class" in classes


def test_counts_have_no_plane_and_still_a_page():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], 20)
    X = rng.poisson(np.where((y == "a")[:, None], [3.0, 1.0, 1.0], [1.0, 1.0, 3.0]))
    page = report([MultinomialNB().fit(X, y), CategoricalNB().fit(X, y)], (X, y))
    assert page.count("confusion matrix") == 4  # caption and alternative text of two models
    assert "the region of each class" not in page
    assert "could not be drawn" not in page
    decided = report(Decide(MultinomialNB(), reject_cost=0.3).fit(X, y), (X, y))
    assert "confusion matrix" in decided
    assert "could not be drawn" not in decided


class Shy(LogisticRegression):
    """A model that answers rows it was fitted to, and nobody else."""

    def fit(self, X, y):
        self.own_ = len(X)
        return super().fit(X, y)

    def predict(self, X):
        if len(X) != self.own_:
            raise RuntimeError(f"I do not know {HOSTILE}")
        return super().predict(X)


def test_a_picture_that_fails_does_not_lose_the_page():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    page = report(Shy().fit(X, y), (X, y))
    tags = Tags(page)
    text = " ".join("".join(tags.text).split())
    assert "mistakes have a ring: this picture could not be drawn. I do not know <script>" in text
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "confusion matrix" in text
    assert sum(tag == "img" for tag, _ in tags.seen) == 1


def test_pictures_of_training_rows_say_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2
    model = LogisticRegression().fit(X, y)
    cross_validated = " ".join(Tags(report({"model": model}, (X, y), scores=[{"model": "model", "accuracy": 0.5}])).text)
    assert "confusion matrix of the training rows, which the model has seen" in cross_validated
    assert "the region of each class, and the training rows" in cross_validated
    assert "confusion matrix of the rows of this report, which the model may have seen" in report(model, (X, y))


def test_columns_are_explained():
    page = report(TableModel(LinearRegression(), "y").fit(table()), table())
    text = " ".join(Tags(page).text)
    assert "a 0/1 column for each of 2 levels" in text
    assert "standardized" in text
    assert "target" in text


def test_refusal_is_shown():
    X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]
    model = LinearRegression().fit(X, y)
    model.coef_ = model.coef_ * 1.01
    page = report(model, (X, y))
    assert "badge refused" in page
    assert "the certificate is refused" in page


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [(0.0, "proof", "proved"), (0.0, "local", "local optimum"), (0.0, "evidence", "evidence"), (2.0, "proof", "refused: gap")],
)
def test_verdicts(value, kind, words):
    assert verdict(Certificate(Check("gap", value, 1.0, kind, "claim"))) == words


def test_same_name_twice():
    X, y = [[0.0], [1.0], [2.0]], [1.0, 3.0, 5.5]
    page = report([Ridge(alpha=1.0).fit(X, y), Ridge(alpha=2.0).fit(X, y)], (X, y))
    assert page.count("<details") == 2


def test_scores_of_a_classification_are_its_scores():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    kind = np.where(x @ [1.0, -1.0] + rng.logistic(size=60) > 0, "yes", HOSTILE).astype(object)
    data = Table({"a": x[:, 0], "b": x[:, 1], "kind": kind})
    model = TableModel(ours.LogisticRegression(), "kind").fit(data)
    page = report(model, data)
    p = model.predict_proba(data)[np.arange(60), [model.classes_.index(k) for k in kind]]
    text = " ".join(Tags(page).text)
    assert f"{model.score(data):.4g}" in text
    assert f"{-np.log(p).mean():.4g}" in text
    assert "log loss" in text
    assert "script" not in {tag for tag, _ in Tags(page).seen}
    assert sum(tag == "img" for tag, _ in Tags(page).seen) == 3  # boundary, confusion, certificate
    without = TableModel(ours.Perceptron(random_state=0, max_iter=5, pocket=True), "kind").fit(data)
    assert "log loss" not in report(without, data)  # gives no probabilities


def test_a_single_column_with_intervals_shows_its_band():
    data = Table({"x": np.arange(9.0), "y": np.arange(9.0) + np.tile([0.0, 0.5, -0.5], 3)})
    page = report(TableModel(ours.BayesianLinearRegression(), "y").fit(data), data)
    assert "the bands that should hold so many of the rows" in page
    assert "the bands" not in report(TableModel(LinearRegression(), "y").fit(data), data)


def decisions(**parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.where(X @ [1.0, -1.0] + 0.7 * rng.logistic(size=80) > 0, "good", "bad")
    return Decide(ours.LogisticRegression(), **parameters).fit(X, y), X, y


def test_decisions_have_costs_and_counts_on_the_page():
    model, X, y = decisions(costs=[[5, 0], [0, 1]], actions=[HOSTILE, "refuse"], reject_cost=0.3)
    page = report(model, (X, y), promise="with <b>luck</b>")
    tags = Tags(page)
    text = " ".join(tags.text)
    assert "script" not in {tag for tag, _ in tags.seen}
    assert "with <b>luck</b>" in text  # shown as text, set apart
    assert [a["class"] for tag, a in tags.seen if tag == "p" and "class" in a].count("promise") == 1
    assert "<h2>Costs</h2>" in page
    assert "the region of each action" in text
    assert "confusion matrix" not in text  # actions are no classes
    assert f"{model.cost(X, y):.4g}" in text
    assert "accuracy" not in text
    taken, refused = model.predict(X), model.rejected(X)
    rows = Decisions(model, X, y).taken_rows()
    assert [row["bad"] + row["good"] for row in rows] == [sum(taken == HOSTILE), sum(taken == "refuse"), refused.sum()]
    assert rows[0]["total cost"] == pytest.approx(5 * rows[0]["bad"])
    assert rows[1]["total cost"] == pytest.approx(rows[1]["good"])
    assert rows[2]["total cost"] == pytest.approx(0.3 * refused.sum())
    assert sum(row["total cost"] for row in rows) == pytest.approx(80 * model.cost(X, y))
    shown = [list(row.values())[1:] for row in Decisions(model, X, y).cost_rows()]
    assert shown == [[5, 0], [0, 1], [0.3, 0.3]]
    assert "promise" not in Tags(report(ours.LogisticRegression().fit(X, y), (X, y))).text


def test_accuracy_of_decisions_is_that_of_the_rows_decided():
    model, X, y = decisions(reject_cost=0.2)
    decided = ~model.rejected(X)
    scores = Decisions(model, X, y).scores()
    assert scores["accuracy"] == pytest.approx(np.mean(model.predict(X)[decided] == y[decided]))
    assert scores["refused"] == pytest.approx(1 - decided.mean())
    assert 0 < scores["refused"] < 1
    none, _, _ = decisions(reject_cost=0.0)
    assert np.isnan(Decisions(none, X, y).scores()["accuracy"])
    assert "<td>refuse to decide</td>" in report(none, (X, y))


def test_costs_that_depend_on_the_rows_have_no_table():
    model, X, y = decisions(costs=lambda X: np.tile([[5.0, 0.0], [0.0, 1.0]], (len(X), 1, 1)))
    page = report(model, (X, y))
    assert "<h2>Costs</h2>" not in page
    assert f"{model.cost(X, y):.4g}" in page
