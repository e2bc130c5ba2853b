"""What an estimator can know before a fit: tables wherever a name or a parameter reaches, and nothing where there is none."""

from functools import cache, partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from lemmata.mixture import GaussianMixture
from lemmata.model_selection.knowledge import knowledge

N = 50
TABLE = np.random.default_rng(0).normal(size=(N, 2))
ANSWERS = dict.fromkeys(range(N), 1)


class Centering:
    def __init__(self, table):
        self.table = table

    def __call__(self, X):
        return X - self.table.mean(axis=0)


class Shared:
    table = TABLE


class LooksUp(BaseEstimator):
    def fit(self, X, y=None):
        return self

    def predict(self, X):
        return np.array([ANSWERS.get(i) for i in range(len(X))])


class Keeping(BaseEstimator):
    def fit(self, X, y=None):
        self.labels = X.mean()  # an attribute, and not the list of that name below
        return self


class Penalized(BaseEstimator):
    def __init__(self, lambda_=1.0):
        self.lambda_ = lambda_


def by_default(X, table=TABLE):
    return X - table.mean(axis=0)


def by_keyword(X, *, table=TABLE):
    return X - table.mean(axis=0)


def given(X, table=None):
    return X - table.mean(axis=0)


@cache
def remembered():
    return TABLE.mean(axis=0)


labels = TABLE[:, 0].tolist()


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (FunctionTransformer(given, kw_args={"table": TABLE}), "table"),
        (FunctionTransformer(partial(given, table=TABLE)), "FunctionTransformer|func|table"),
        (FunctionTransformer(by_default), "a default"),
        (FunctionTransformer(by_keyword), "table"),
        (FunctionTransformer(Centering(TABLE)), "table"),
        (FunctionTransformer(Centering(TABLE).__call__), "table"),
        (FunctionTransformer(lambda X: X - Shared.table.mean(axis=0)), "table"),
        (FunctionTransformer(lambda X: X - TABLE.mean(axis=0)), "TABLE"),
        (FunctionTransformer(lambda X: X - remembered()), "TABLE"),
        (FunctionTransformer(lambda X: X - labels[0]), "labels"),
        (LooksUp(), "ANSWERS"),
        (make_pipeline(StandardScaler(), LooksUp()), "ANSWERS"),
        (GaussianMixture(2, means_init=TABLE), "means_init"),
        (Penalized(TABLE), "lambda_"),
    ],
)
def test_a_table_in_reach_is_named(model, name):
    (found,) = knowledge(model, N)
    assert found.split(",")[0] in name.split("|")
    assert found.endswith(f", of {N} rows")


def test_parts_that_were_fitted_are_named():
    scaler = FrozenEstimator(StandardScaler().fit(TABLE))
    vote = VotingClassifier([("plain", GaussianNB()), ("scaled", make_pipeline(scaler, LogisticRegression()))])
    assert knowledge(vote, N) == ["StandardScaler, fitted before"]


def test_nothing_is_found_where_nothing_is():
    short = np.zeros((3, 2))
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        FunctionTransformer(np.log1p),
        Keeping(),
        FunctionTransformer(lambda X: X - short.mean(axis=0) + np.pi),
        FunctionTransformer(Centering(short)),
        FunctionTransformer(given, kw_args={"table": short}),
        GaussianNB(priors=[0.5, 0.5]),
        Penalized(),
    ):
        assert knowledge(model, N) == []
    assert knowledge(GaussianNB(priors=[0.5, 0.5]), 2) == [], "a list that is a parameter is no table"
