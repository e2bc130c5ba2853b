"""Counts and codes lie on no plane: which classes are taken for which is what can be shown."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.metrics import confusion_matrix

from lemmata.decision import Decide
from lemmata.linear_model import LogisticRegression
from lemmata.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB
from lemmata.plot import BoundaryDisplay, ConfusionMatrixDisplay


def counts(n=90, seed=0):
    """Draw words of three kinds of texts, not easy to tell apart."""
    rng = np.random.default_rng(seed)
    y = np.array(["letter", "novel", "recipe"])[np.arange(n) % 3]
    rates = rng.uniform(0.3, 1.5, size=(3, 4))[np.arange(n) % 3]
    return rng.poisson(rates), y


@pytest.mark.parametrize("model", [MultinomialNB(), BernoulliNB(), CategoricalNB(min_categories=9)])
def test_classifiers_of_counts_and_codes_show_what_they_take_for_what(model):
    X, y = counts()
    model.fit(X, y)
    _, ax = plt.subplots()
    display = model.plot(X, y, ax=ax)
    assert isinstance(display, ConfusionMatrixDisplay)
    assert display.ax_ is ax
    assert_array_equal(display.counts, confusion_matrix(y, model.predict(X)))
    assert [text.get_text() for text in ax.texts] == [str(count) for count in display.counts.ravel()]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["letter", "novel", "recipe"]
    right = int((model.predict(X) == y).sum())
    assert ax.get_title() == f"{type(model).__name__}: {right} of 90 rows right ({right / 90:.0%})"
    display.figure_.canvas.draw()
    with pytest.raises(ValueError, match="give the classes y"):
        model.plot(X)


def test_a_plane_of_counts_is_refused_in_a_sentence():
    X, y = counts()
    with pytest.raises(ValueError, match=r"MultinomialNB takes counts or codes.* use ConfusionMatrixDisplay"):
        BoundaryDisplay.from_estimator(MultinomialNB().fit(X, y), X, y)


def test_tables_and_sparse_rows_have_the_same_picture():
    X, y = counts()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = MultinomialNB().fit(frame, y)
    expected = model.plot(frame, y).counts
    assert_array_equal(model.plot(frame.assign(kind=y), y).counts, expected)  # columns are found by their names
    assert_array_equal(MultinomialNB().fit(X, y).plot(csr_array(X), y).counts, expected)
    words = frame.astype(str).apply(lambda column: "w" + column)
    model = CategoricalNB().fit(words, y)
    assert_array_equal(model.plot(words, y).counts, confusion_matrix(y, model.predict(words)))


def test_decisions_are_counted_by_their_names():
    X, y = counts()
    y = np.where(y == "novel", "novel", "other")
    model = Decide(MultinomialNB(), costs=[[0, 3], [1, 0]], actions=["keep", "burn"], reject_cost=0.4).fit(X, y)
    display = model.plot(X, y)
    assert isinstance(display, ConfusionMatrixDisplay)
    assert display.given == ["keep", "burn", "refuse to decide"]
    assert display.counts[:, 2].sum() == model.rejected(X).sum()
    assert display.ax_.get_title() == "Decide: 90 rows"  # no action is right
    own = Decide(MultinomialNB(), reject_cost=0.4).fit(X, y).plot(X, y, ax=plt.subplots()[1])
    assert own.ax_.get_title().endswith(f", {own.counts[:, 2].sum()} refused")


def test_any_classifier_has_the_picture_and_the_rows_have_a_name():
    X, y = counts()
    model = LogisticRegression().fit(X, y)
    display = ConfusionMatrixDisplay.from_estimator(model, X, y, class_names=["a", "b", "c"], rows="training rows", name="")
    assert " of 90 training rows right" in display.ax_.get_title()
    with pytest.raises(ValueError, match="y holds the label poem, which is not a class of the fit"):
        ConfusionMatrixDisplay.from_estimator(model, X, np.where(y == "novel", "poem", y))
    many = ConfusionMatrixDisplay(counts=np.eye(25, dtype=int), classes=[str(k) for k in range(25)]).plot()
    assert not many.ax_.texts
