"""Naive Bayes on counts and categories: count, then give every row its class.

Everyone fits and predicts the rows it was fitted to, with two threads. The objective is the mean of log p(x, y) over rows with
their true classes, which is the same only if everyone counts the same. scikit-learn's models are closed forms too: all there is
to win is what it costs to read the table.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array
from sklearn import naive_bayes as scikit

from bench.harness import Row
from lemmata import naive_bayes


def texts(n, d, k, length=100):
    """Draw rows of words: their number, the frequencies of the words (Zipf), and topics that prefer some of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    popular = 1.0 / np.arange(1, d + 1)
    cumulative = np.cumsum(popular) / popular.sum()
    words = np.searchsorted(cumulative, rng.random(n * length))
    shifted = rng.random(n * length) < 0.3  # words of the topic: the same frequencies, in another order
    words = np.where(shifted, (words + np.repeat(y, length) * (d // k)) % d, words)
    rows, words = np.repeat(np.arange(n, dtype=np.int32), length), words.astype(np.int32)  # as those who count words give them
    X = csr_array((np.ones(n * length), (rows, words)), shape=(n, d))
    X.sum_duplicates()
    return X, y


def codes(n, d, k, categories, integer=False):
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    reach = np.cumsum(rng.dirichlet(np.ones(categories), size=(k, d)), axis=2)
    X = np.empty((n, d))
    for j in range(d):
        X[:, j] = np.minimum((rng.random(n)[:, None] >= reach[y, j]).sum(axis=1), categories - 1)
    return (X.astype(np.int64) if integer else X), y


def counts(n, d, k):
    rng = np.random.default_rng(0)
    y = rng.integers(0, k, n)
    return rng.poisson(rng.gamma(1.0, 1.0, size=(k, d))[y]).astype(float), y


def fit_predict(model, data):
    X, y = data
    fitted = model().fit(X, y)
    fitted.predict(X)
    return fitted


def evidence(data, fitted):
    X, y = data
    few = slice(0, 2000)
    return float(fitted.predict_joint_log_proba(X[few])[np.arange(2000), y[few]].mean())


def row(name, make, model, bar, repeats=3):
    ours, peer = getattr(naive_bayes, model), getattr(scikit, model)
    return Row(
        f"{model}, fit and predict, {name}",
        make,
        partial(fit_predict, ours),
        {"scikit-learn": partial(fit_predict, peer)},
        evidence,
        {"scikit-learn": bar},
        agree=1e-9,  # sums of roundings
        repeats=repeats,
    )


ROWS = [
    row("100,000 × 50,000 sparse, 20 classes", partial(texts, 100_000, 50_000, 20), "MultinomialNB", 1.5),
    row("100,000 × 50,000 sparse, 20 classes", partial(texts, 100_000, 50_000, 20), "BernoulliNB", 1.5),
    row("200,000 × 100 counts, 10 classes", partial(counts, 200_000, 100, 10), "MultinomialNB", 1.0),
    row("200,000 × 100 counts, 10 classes", partial(counts, 200_000, 100, 10), "BernoulliNB", 3.0),
    row("1,000,000 × 20, 8 categories, 5 classes", partial(codes, 1_000_000, 20, 5, 8), "CategoricalNB", 3.0, repeats=2),
    row(
        "1,000,000 × 20 integers, 8 categories, 5 classes",
        partial(codes, 1_000_000, 20, 5, 8, True),
        "CategoricalNB",
        3.0,
        repeats=2,
    ),
]
