"""Cross-validation against scikit-learn's, closed forms, and loops written out by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.decomposition import PCA as TheirPCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.metrics import adjusted_rand_score, log_loss, r2_score, roc_auc_score
from sklearn.mixture import GaussianMixture as TheirMixture
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
)
from sklearn.model_selection import cross_validate as their_cross_validate
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import lemmata
from helpers import bits
from lemmata.cluster import KMeans
from lemmata.decomposition import PCA, KernelPCA
from lemmata.hmm import GaussianHMM
from lemmata.linear_model import LinearRegression, LogisticRegression, Ridge
from lemmata.mixture import GaussianMixture
from lemmata.model_selection import bootstrap_error, cross_validate, learning_curve
from lemmata.naive_bayes import GaussianNB, MultinomialNB

ROUNDING = 1e-9  # of two exact solutions of the same least squares
SEEDS = [0, 1, 2]


def numbers(seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 2.0
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


def labels(seed, n=60, names=("a", "b", "c")):
    rng = np.random.default_rng(seed)
    y = np.array(names)[rng.permutation(np.arange(n) % len(names))]
    return rng.normal(size=(n, 3)) + 1.2 * np.searchsorted(names, y)[:, None], y


# Splits


@pytest.mark.parametrize("seed", SEEDS)
def test_a_number_of_folds_is_a_partition_into_equal_random_parts(seed):
    X, y = numbers(seed, n=43)
    found = cross_validate(Ridge(), X, y, cv=5, random_state=seed)
    held_out = np.concatenate([test for _, test in found.splits])
    assert_array_equal(np.sort(held_out), np.arange(43))
    assert sorted(len(test) for _, test in found.splits) == [8, 8, 9, 9, 9]
    for i, (train, test) in enumerate(found.splits):
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(43))
        assert (found.fold[test] == i).all()
    assert not np.array_equal(held_out, np.arange(43))  # shuffled
    again = cross_validate(Ridge(), X, y, cv=5, random_state=seed)
    assert bits(again.predictions) == bits(found.predictions)
    other = cross_validate(Ridge(), X, y, cv=5, random_state=seed + 100)
    assert not np.array_equal(other.fold, found.fold)


def test_classes_have_their_share_of_every_fold():
    X, y = labels(0, n=60)
    for _, test in cross_validate(GaussianNB(), X, y, cv=5, random_state=0).splits:
        assert_array_equal(np.unique(y[test], return_counts=True)[1], [4, 4, 4])


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_are_never_divided_by_a_number_of_folds(seed):
    X, y = labels(seed)
    groups = np.random.default_rng(seed).integers(0, 12, size=60)
    for model in (GaussianNB(), Ridge()):
        target = y if isinstance(model, GaussianNB) else np.arange(60.0)
        found = cross_validate(model, X, target, cv=3, groups=groups, random_state=seed)
        for train, test in found.splits:
            assert not set(groups[train]) & set(groups[test])
        assert found.predicted.all()


@pytest.mark.parametrize("seed", SEEDS)
def test_groups_are_dealt_out_class_by_class(seed):
    groups = np.repeat(np.arange(12), 5)
    y = np.where(groups < 6, "a", "b")
    X = np.random.default_rng(seed).normal(size=(60, 2))
    for _, test in cross_validate(GaussianNB(), X, y, cv=3, groups=groups, random_state=seed).splits:
        assert (y[test] == "a").sum() == (y[test] == "b").sum() == 10


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4),
        ShuffleSplit(3, random_state=0),
        GroupKFold(3),
        LeaveOneGroupOut(),
        TimeSeriesSplit(3),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=1),
        PredefinedSplit(np.arange(40) % 3 - 1),
        [(np.arange(30), np.arange(30, 40)), (np.arange(20, 40), np.arange(5))],
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_every_splitter_is_taken_as_it_is(cv):
    X, y = numbers(0)
    groups = np.arange(40) % 5
    found = cross_validate(Ridge(), X, y, cv=cv, groups=groups if "Group" in type(cv).__name__ else None)
    expected = cv if isinstance(cv, list) else list(cv.split(X, y, groups if "Group" in type(cv).__name__ else None))
    assert len(found.splits) == len(expected)
    for mine, theirs in zip(found.splits, expected, strict=True):
        assert_array_equal(mine[0], theirs[0])
        assert_array_equal(mine[1], theirs[1])
    scores = their_cross_validate(TheirRidge(), X, y, cv=expected, return_train_score=True)
    assert_allclose(found.test_scores, scores["test_score"], rtol=ROUNDING)
    assert_allclose(found.train_scores, scores["train_score"], rtol=ROUNDING)


def test_masks_are_row_numbers():
    X, y = numbers(0)
    mask = np.arange(40) < 30
    found = cross_validate(Ridge(), X, y, cv=[(mask, ~mask)])
    assert_array_equal(found.splits[0][1], np.arange(30, 40))


# Predictions


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_leaving_one_out_has_a_closed_form_for_least_squares_and_ridge(seed):
    X, y = numbers(seed, n=25)
    for model, alpha in ((LinearRegression(), 0.0), (Ridge(alpha=3.0), 3.0)):
        design = np.column_stack([np.ones(25), X])
        penalty = np.diag([0.0, alpha, alpha, alpha])  # not of the intercept
        P = design @ np.linalg.solve(design.T @ design + penalty, design.T)
        residuals = (y - P @ y) / (1 - np.diag(P))
        found = cross_validate(model, X, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error")
        assert_allclose(y - found.predictions, residuals, rtol=1e-8)  # 1 − P_ii amplifies rounding
        assert_allclose(found.score, -np.mean(residuals**2), rtol=1e-8)
        assert_allclose(found.mean, found.score, rtol=ROUNDING)  # a mean over rows, of equal folds


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_each_row_is_predicted_by_the_model_that_never_saw_it(seed):
    X, y = numbers(seed)
    found = cross_validate(Ridge(alpha=0.5), X, y, cv=4, random_state=seed)
    for i in range(len(y)):
        unseen = found.fold != found.fold[i]
        mean, target = X[unseen].mean(axis=0), y[unseen].mean()
        A = X[unseen] - mean
        w = np.linalg.solve(A.T @ A + 0.5 * np.eye(3), A.T @ (y[unseen] - target))
        assert_allclose(found.predictions[i], target + (X[i] - mean) @ w, rtol=ROUNDING)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "predict_log_proba"])
def test_predictions_are_those_of_scikit_learn(method):
    X, y = labels(0)
    cv = StratifiedKFold(3)
    for model in (TheirLogistic(), make_pipeline(StandardScaler(), TheirLogistic())):
        found = cross_validate(model, X, y, cv=cv, method=method)
        assert_array_equal(found.predictions, cross_val_predict(model, X, y, cv=cv, method=method))


def test_a_class_that_a_fold_lacks_has_probability_zero():
    X, y = labels(0, n=30)
    splits = [(np.flatnonzero(y != name), np.flatnonzero(y == name)) for name in "bc"]
    found = cross_validate(GaussianNB(), X, y, cv=splits, method="predict_proba", scoring="accuracy")
    assert not found.predicted[y == "a"].any()  # which the fits know none the less
    for (_, test), model, known in zip(found.splits, found.estimators, ([0, 2], [0, 1]), strict=True):
        assert_array_equal(found.predictions[test][:, known], model.predict_proba(X[test]))
        assert_allclose(found.predictions[test].sum(axis=1), 1.0, rtol=1e-12)
    assert found.certify(X, y).holds
    whole = cross_validate(
        GaussianNB(), X, y, cv=[*splits, (np.flatnonzero(y != "a"), np.flatnonzero(y == "a"))], method="predict_proba"
    )
    assert whole.predictions.shape == (30, 3)
    for j, name in enumerate("abc"):
        assert (whole.predictions[y == name, j] == 0).all()
    assert_allclose(whole.predictions.sum(axis=1), 1.0, rtol=1e-12)
    assert whole.score == 0.0
    with pytest.raises(ValueError, match="A fold has 2 of the 3 classes"):
        cross_validate(
            TheirLogistic(),
            X,
            y,
            cv=[*splits, (np.flatnonzero(y != "a"), np.flatnonzero(y == "a"))],
            method="decision_function",
        )


@pytest.mark.parametrize("first", "abc")
def test_a_class_that_only_the_fit_has_keeps_its_column(first):
    X, y = labels(0, n=30)
    order = np.argsort(y != first, kind="stable")
    X, y = X[order], y[order]
    found = cross_validate(GaussianNB(), X, y, cv=TimeSeriesSplit(2, test_size=8), method="predict_proba")
    asked = zip(found.estimators, found.splits, strict=True)
    expected = np.concatenate([model.predict_proba(X[test]) for model, (_, test) in asked])
    assert_array_equal(found.predictions[14:], expected)
    assert expected.shape == (16, 3)


def test_repeats_are_averaged_or_vote():
    X, y = labels(1, n=45)
    cv = RepeatedStratifiedKFold(n_splits=3, n_repeats=4, random_state=0)
    found = cross_validate(GaussianNB(), X, y, cv=cv, method="predict_proba")
    total = np.zeros((45, 3))
    votes = np.zeros((45, 3))
    for (_, test), model in zip(found.splits, found.estimators, strict=True):
        total[test] += model.predict_proba(X[test])
        votes[test, np.searchsorted(["a", "b", "c"], model.predict(X[test]))] += 1
    assert_allclose(found.predictions, total / 4, rtol=1e-12)
    assert found.fold.shape == (4, 45)
    for i in range(45):
        assert sorted(found.fold[:, i]) == [f for f, (_, test) in enumerate(found.splits) if i in test]
    voted = cross_validate(GaussianNB(), X, y, cv=cv)
    assert_array_equal(voted.predictions, np.array(["a", "b", "c"])[votes.argmax(axis=1)])
    assert len(voted.fold_predictions) == 12
    for (_, test), model, part in zip(voted.splits, voted.estimators, voted.fold_predictions, strict=True):
        assert_array_equal(part, model.predict(X[test]))


def test_a_row_has_the_mean_of_as_many_folds_as_held_it_out():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=ShuffleSplit(4, test_size=15, random_state=0))
    counts = [sum(i in test for _, test in found.splits) for i in range(40)]
    assert {0, 1, 2} <= set(counts)
    for i, count in enumerate(counts):
        said = [model.predict(X[[i]])[0] for model, (_, test) in zip(found.estimators, found.splits, strict=True) if i in test]
        assert_allclose(found.predictions[i], np.mean(said) if count else np.nan, rtol=ROUNDING)
    assert found.certify(X, y).holds


def test_rows_that_no_fold_holds_out_are_marked():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=TimeSeriesSplit(3))
    assert_array_equal(found.predicted, np.arange(40) >= 10)
    assert_array_equal(np.isnan(found.predictions), np.arange(40) < 10)
    assert_array_equal(found.fold, np.repeat([-1, 0, 1, 2], 10))
    words = cross_validate(GaussianNB(), X, np.where(np.arange(40) % 2, "odd", "even"), cv=TimeSeriesSplit(3))
    assert [value is None for value in words.predictions] == (np.arange(40) < 10).tolist()
    codes = cross_validate(GaussianNB(), X, np.arange(40) % 2, cv=TimeSeriesSplit(3))
    assert np.isnan(codes.predictions[:10]).all()
    assert set(codes.predictions[10:]) <= {0.0, 1.0}


# Scores


def test_pooled_scores_are_those_of_the_cumulative_predictions():
    X, y = labels(0, n=61, names=(3, 7))
    found = cross_validate(LogisticRegression(), X, y, cv=4, method="predict_proba", random_state=0)
    p = found.predictions
    assert_allclose(found.score, np.mean((p[:, 1] > 0.5) == (y == 7)), rtol=1e-12)
    for scoring, expected in (("roc_auc", roc_auc_score(y, p[:, 1])), ("neg_log_loss", -log_loss(y, p))):
        scored = cross_validate(LogisticRegression(), X, y, cv=4, scoring=scoring, random_state=0)
        assert_allclose(scored.score, expected, rtol=1e-12)
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, random_state=0)
    assert_allclose(found.score, r2_score(y, found.predictions), rtol=1e-12)
    assert found.score != found.mean  # R² of a fold divides by the variance of its own eight targets
    searched = cross_validate(
        GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}), X, y, random_state=0
    )
    assert_allclose(searched.score, r2_score(y, searched.predictions), rtol=1e-12)


def test_groups_that_each_fit_numbers_anew_are_not_pooled():
    X, y = labels(0)
    for model in (KMeans(3, random_state=0), make_pipeline(StandardScaler(), KMeans(3, random_state=0))):
        found = cross_validate(model, X, y, scoring="adjusted_rand_score", cv=3, random_state=0)
        expected = [
            adjusted_rand_score(y[test], fit.predict(X[test]))
            for fit, (_, test) in zip(found.estimators, found.splits, strict=True)
        ]
        assert_allclose(found.test_scores, expected, rtol=1e-12)
        assert np.isnan(found.score)
        assert found.certify(X, y).holds


def test_what_cannot_be_pooled_is_not():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, scoring=lambda model, X, y: float(np.median(model.predict(X) - y)), random_state=0)
    assert np.isnan(found.score)
    assert np.isfinite(found.mean)
    assert found.certify(X, y).holds

    class Total(BaseEstimator):
        """Has scores of rows, of which its own score is the sum."""

        def fit(self, X, y=None):
            self.mean_ = X.mean(axis=0)
            return self

        def score_samples(self, X):
            return -((X - self.mean_) ** 2).sum(axis=1)

        def score(self, X, y=None):
            return self.score_samples(X).sum()

    assert np.isnan(cross_validate(Total(), X, cv=4, random_state=0).score)


def test_several_labels_a_row_have_the_score_of_their_model():
    X, y = labels(0)
    both, model = np.column_stack([y, np.where(X[:, 1] > 1, "large", "small")]), MultiOutputClassifier(GaussianNB())
    found = cross_validate(model, X, both, cv=KFold(4))
    assert_array_equal(found.predictions, cross_val_predict(model, X, both, cv=KFold(4)))
    assert_allclose(found.test_scores, cross_val_score(model, X, both, cv=KFold(4)), rtol=1e-12)
    assert np.isnan(found.score)  # accuracy is of one label a row
    assert found.certify(X, both).holds


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mixture_is_scored_by_the_held_out_likelihood(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(31, 2)), rng.normal(size=(30, 2)) + 5])
    for model in (GaussianMixture(2, random_state=0), TheirMixture(2, random_state=0)):
        found = cross_validate(model, X, cv=3, random_state=seed)
        expected = np.empty(61)
        for (train, test), score in zip(found.splits, found.test_scores, strict=True):
            fitted = model.fit(X[train])
            expected[test] = fitted.score_samples(X[test])
            assert_allclose(score, expected[test].mean(), rtol=ROUNDING)
        assert_allclose(found.predictions, expected, rtol=ROUNDING)
        assert_allclose(found.score, expected.mean(), rtol=ROUNDING)
        assert found.certify(X).holds


def test_standard_error_and_corrected_interval():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=5, random_state=0)
    s = found.test_scores.std(ddof=1)
    assert_allclose(found.standard_error, s / np.sqrt(5), rtol=1e-12)
    low, high = found.interval(0.9)
    reach = 2.131846786326649 * s * np.sqrt(1 / 5 + 1 / 4)  # 95 % quantile of t with 4 degrees, from a table; folds of 8 of 40
    assert_allclose([low, high], [found.mean - reach, found.mean + reach], rtol=1e-9)
    for level in (95, "0.95"):
        with pytest.raises(ValueError, match="level is a probability"):
            found.interval(level)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        found.certify(X, y, groups=[1, 2])


# Tables


def test_any_table_gives_the_same():
    X, y = numbers(0)
    reference = cross_validate(Ridge(), X, y, random_state=0).predictions
    frame = pd.DataFrame(X, columns=["u", "v", "w"], index=np.arange(40)[::-1])
    tables = [
        X.tolist(),
        frame,
        pl.DataFrame(X, schema=["u", "v", "w"]),
        pa.table(dict(zip("uvw", X.T, strict=True))),
        csr_array(X),
        coo_array(X),
    ]
    targets = [y.tolist(), pd.Series(y, index=frame.index), pl.Series(y), pa.array(y), y[:, None], y]
    for table, target in zip(tables, targets, strict=True):
        found = cross_validate(Ridge(), table, target, random_state=0)
        assert_allclose(found.predictions, reference, rtol=ROUNDING)
        assert found.certify(table, target).holds
    assert list(cross_validate(Ridge(), frame, y, random_state=0).estimators[0].feature_names_in_) == ["u", "v", "w"]


def test_texts_and_sequences_are_rows():
    texts, kinds = ["a cat", "the dog", "cat cat", "dog the"] * 5, np.array([0, 1, 0, 1] * 5)
    found = cross_validate(make_pipeline(CountVectorizer(), MultinomialNB()), texts, kinds, cv=4, random_state=0)
    assert found.score == 1.0
    assert found.certify(texts, kinds).holds
    rng = np.random.default_rng(0)
    sequences = [rng.normal(size=(n, 1)) + (np.arange(n) % 7 > 3)[:, None] * 4 for n in (20, 25, 30, 35, 15, 28)]
    model = GaussianHMM(2, random_state=0)
    found = cross_validate(model, sequences, cv=3, random_state=0)
    for (train, test), score in zip(found.splits, found.test_scores, strict=True):
        fitted = model.fit([sequences[i] for i in train])
        assert_allclose(score, fitted.score([sequences[i] for i in test]), rtol=1e-9)
    assert np.isnan(found.predictions).all()
    assert found.certify(sequences).holds
    with pytest.raises(ValueError, match=r"GaussianHMM.predict does not give one value for each row"):
        cross_validate(model, sequences, cv=3, method="predict")


def test_no_kind_of_estimator_is_left_out():
    X, y = labels(0, names=(0, 1))
    for model in (PCA(2), KMeans(3, random_state=0)):
        found = cross_validate(model, X, cv=3, random_state=0)
        assert found.certify(X).holds
    groups = np.arange(60) // 2
    found = cross_validate(GaussianNB(), X, y, cv=StratifiedGroupKFold(3), groups=groups)
    assert found.certify(X, y, groups=groups).holds
    forest = RandomForestClassifier(5, random_state=0)
    assert_allclose(
        cross_validate(forest, X, y, cv=KFold(3)).test_scores, cross_val_score(forest, X, y, cv=KFold(3)), rtol=0, atol=0
    )


# Weights


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_a_weight_is_repetition_within_a_fold(seed, scoring):
    X, y = numbers(seed, n=24)
    rng = np.random.default_rng(seed)
    weight, fold = rng.integers(0, 4, size=24).astype(float), rng.permutation(24) % 3
    copies = np.repeat(np.arange(24), weight.astype(int))
    for model in (Ridge(alpha=0.3), make_pipeline(StandardScaler(), Ridge(alpha=0.3)), make_pipeline(PCA(2), Ridge())):
        found = cross_validate(model, X, y, cv=PredefinedSplit(fold), sample_weight=weight, scoring=scoring)
        repeated = cross_validate(model, X[copies], y[copies], cv=PredefinedSplit(fold[copies]), scoring=scoring)
        assert_allclose(found.predictions[copies], repeated.predictions, rtol=1e-7)
        assert_allclose(found.test_scores, repeated.test_scores, rtol=1e-7)
        assert_allclose(found.train_scores, repeated.train_scores, rtol=1e-7)
        assert_allclose(found.score, repeated.score, rtol=1e-7)
        assert_array_equal(found.predicted, weight > 0)
        assert found.certify(X, y, weight).holds


@pytest.mark.parametrize("scoring", ["neg_max_error", "adjusted_rand_score"])
def test_rows_are_repeated_for_scorers_that_take_no_weights(scoring):
    X, y = labels(0, n=24, names=(0, 1, 2))
    model = Ridge() if scoring == "neg_max_error" else GaussianNB()
    weight, fold = np.arange(24) % 3, np.arange(24) // 3 % 3
    copies = np.repeat(np.arange(24), weight)
    found = cross_validate(model, X, y, cv=PredefinedSplit(fold), sample_weight=weight, scoring=scoring)
    repeated = cross_validate(model, X[copies], y[copies], cv=PredefinedSplit(fold[copies]), scoring=scoring)
    assert_allclose(found.test_scores, repeated.test_scores, rtol=1e-9)
    assert_allclose(found.score, repeated.score, rtol=1e-9)
    with pytest.raises(ValueError, match="takes no weights of rows"):
        cross_validate(model, X, y, cv=PredefinedSplit(fold), sample_weight=weight / 2, scoring=scoring)


@pytest.mark.parametrize("cv", [4, ShuffleSplit(2, random_state=0), KFold(3)], ids=str)
def test_a_row_of_weight_zero_is_absent(cv):
    X, y = numbers(0)
    weight = np.where(np.arange(40) % 5 == 0, 0.0, 1.5)
    there = weight > 0
    found = cross_validate(Ridge(), X, y, cv=cv, sample_weight=weight, random_state=0)
    without = cross_validate(Ridge(), X[there], y[there], cv=cv, sample_weight=weight[there], random_state=0)
    assert_allclose(found.predictions[there], without.predictions, rtol=ROUNDING)
    assert_allclose(found.test_scores, without.test_scores, rtol=ROUNDING)
    assert_allclose(found.score, without.score, rtol=ROUNDING)
    assert found.times == without.times
    assert not found.predicted[~there].any()
    assert found.certify(X, y, weight).holds


def test_the_likelihood_of_a_mixture_is_weighed():
    X, _ = numbers(0, n=30)
    weight, fold = np.arange(30) % 3, np.arange(30) // 3 % 3
    copies = np.repeat(np.arange(30), weight)
    found = cross_validate(GaussianMixture(1), X, cv=PredefinedSplit(fold), sample_weight=weight)
    repeated = cross_validate(GaussianMixture(1), X[copies], cv=PredefinedSplit(fold[copies]))
    assert_allclose(found.test_scores, repeated.test_scores, rtol=1e-7)  # of iterated fits
    assert_allclose(found.score, repeated.score, rtol=1e-7)
    assert found.certify(X, sample_weight=weight).holds


@pytest.mark.parametrize("last", [TheirMixture(1, random_state=0), GaussianMixture(1), TheirPCA(2)])
def test_a_pipeline_is_weighed_and_pooled_as_its_last_step(last):
    X, _ = numbers(0, n=30)
    weight, fold = np.arange(30) % 3, np.arange(30) // 3 % 3
    copies = np.repeat(np.arange(30), weight)
    model = make_pipeline(StandardScaler(), last)
    found = cross_validate(model, X, cv=PredefinedSplit(fold), sample_weight=weight)
    repeated = cross_validate(model, X[copies], cv=PredefinedSplit(fold[copies]))
    assert_allclose(found.test_scores, repeated.test_scores, rtol=1e-7)  # of iterated fits
    assert_allclose(found.score, repeated.score, rtol=1e-7)
    assert_allclose(found.score, np.average(found.test_scores, weights=[weight[test].sum() for _, test in found.splits]))
    assert found.certify(X, sample_weight=weight).holds


def test_rows_are_repeated_for_those_that_take_no_weights():
    X, y = numbers(0, n=20)
    weight = np.where(np.arange(20) < 5, 2.0, 1.0)

    class Plain(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.model_ = TheirRidge().fit(X, y)
            return self

        def predict(self, X):
            return self.model_.predict(X)

    plain = cross_validate(Plain(), X, y, cv=KFold(4), sample_weight=weight)
    assert_allclose(
        plain.predictions, cross_validate(TheirRidge(), X, y, cv=KFold(4), sample_weight=weight).predictions, rtol=1e-9
    )
    with pytest.raises(ValueError, match=r"Plain takes no weights of rows; .* there is 0.5"):
        cross_validate(Plain(), X, y, cv=KFold(4), sample_weight=weight / 2)


# Ways to run


def test_threads_and_processes_give_the_same_bits():
    X, y = numbers(0, n=60)
    reference = cross_validate(Ridge(), X, y, cv=4, random_state=0, n_jobs=1)
    for n_jobs in (2, 3):
        found = cross_validate(Ridge(), X, y, cv=4, random_state=0, n_jobs=n_jobs)
        assert bits(found.predictions) == bits(reference.predictions)
    with lemmata.config(n_threads=2):
        assert bits(cross_validate(Ridge(), X, y, cv=4, random_state=0).predictions) == bits(reference.predictions)
    theirs = cross_validate(TheirRidge(), X, y, cv=4, random_state=0)
    assert bits(cross_validate(TheirRidge(), X, y, cv=4, random_state=0, n_jobs=2).predictions) == bits(theirs.predictions)


def test_models_may_be_let_go():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, random_state=0, return_estimators=False)
    assert found.estimators is None
    assert found.certify(X, y).holds


def test_nested_searches_choose_within_their_folds():
    X, y = numbers(0, n=60)
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1.0, 1e3]}, cv=KFold(3))
    found = cross_validate(search, X, y, cv=4, random_state=0)
    for (train, _), chosen in zip(found.splits, found.chosen, strict=True):
        means = [
            np.mean(
                [
                    r2_score(y[train[b]], Ridge(alpha=alpha).fit(X[train[a]], y[train[a]]).predict(X[train[b]]))
                    for a, b in KFold(3).split(train)
                ]
            )
            for alpha in (1e-3, 1.0, 1e3)
        ]
        assert chosen == {"alpha": [1e-3, 1.0, 1e3][int(np.argmax(means))]}
    assert found.certify(X, y).holds
    assert cross_validate(Ridge(), X, y, random_state=0).chosen is None


def test_fit_parameters_of_rows_are_divided():
    X, y = numbers(0, n=30)
    groups = np.arange(30) // 3
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=GroupKFold(2))
    found = cross_validate(search, X, y, cv=GroupKFold(3), groups=groups, fit_params={"groups": groups})
    assert found.certify(X, y, groups=groups).holds


# Errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cv": 1}, "cv must be at least 2 folds"),
        ({"cv": "five"}, "cv must be a number of folds"),
        ({"cv": [([0, 1, 2], [2, 3])]}, "Split 0 tests on row 2, to which the model was fitted"),
        ({"cv": [([0, 1], [])]}, "Split 0 leaves no rows to test"),
        ({"cv": [([], [0])]}, "Split 0 leaves no rows to fit"),
        ({"cv": [([0, 1], [40])]}, "numbers of rows from 0 to 39"),
        ({"cv": [([0, 1], [3, 3])]}, "names a row to test twice"),
        ({"cv": []}, "cv made no split"),
        ({"cv": KFold}, "cv must be a number of folds"),
        ({"cv": KFold(50).split(np.zeros(40))}, "n_splits=50 greater than the number of samples"),
        ({"groups": [1, 2]}, "inconsistent numbers of samples"),
        ({"groups": np.arange(40) // 4, "cv": KFold(7).split(np.zeros(40))}, "Split 0 fits to rows of the group .*1"),
        ({"groups": np.array(["a", None] * 20, dtype=object)}, "Row 1 has no group"),
        ({"groups": np.array([np.nan, 1.0] * 20)}, "Row 0 has no group"),
        ({"groups": pd.Series(["a", None] * 20, dtype="string")}, "Row 1 has no group"),
        ({"method": "predict_proba"}, "Ridge has no method 'predict_proba'"),
        ({"method": 3}, "Ridge has no method 3"),
        ({"scoring": r2_score}, r"r2_score is a metric .* scoring=make_scorer\(r2_score\)"),
        ({"scoring": ["r2"]}, "scoring must be the name of one scorer"),
        ({"scoring": lambda model, X, y: {"a": 1}}, "A score is one number"),
        ({"sample_weight": np.zeros(40)}, "at least one non-zero"),
        ({"sample_weight": -np.ones(40)}, "Negative values"),
        ({"sample_weight": np.ones(3)}, "inconsistent numbers|shape"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_errors_say_what_to_do(change, message):
    X, y = numbers(0)
    with pytest.raises(ValueError, match=message):
        cross_validate(Ridge(), X, y, **change)


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA])
def test_a_label_that_is_missing_is_said(nothing):
    X, y = labels(0)
    y = y.astype(object)
    y[3] = nothing
    for resample in (cross_validate, learning_curve, bootstrap_error):
        with pytest.raises(ValueError, match="Row 3 has no target: leave such rows out"):
            resample(GaussianNB(), X, y)
    weight = (np.arange(60) != 3).astype(float)
    assert cross_validate(GaussianNB(), X, y, sample_weight=weight, random_state=0).predicted.sum() == 59
    assert len(bootstrap_error(GaussianNB(), X, y, sample_weight=weight, n_resamples=20, random_state=0).rows) == 59


class Odd(RegressorMixin, BaseEstimator):
    """Refuses rows that are marked."""

    def fit(self, X, y):
        if X[:, 0].max() > 100:
            raise FloatingPointError("not these rows")
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_an_error_names_its_fold(n_jobs):
    X, y = numbers(0)
    X[:8, 0] = 1e3  # so that only the fold that holds these out is fitted
    with pytest.raises(FloatingPointError, match="not these rows") as raised:
        cross_validate(Odd(), X, y, cv=[(np.arange(8, 40), np.arange(8)), (np.arange(20), np.arange(20, 40))], n_jobs=n_jobs)
    assert raised.value.__notes__ == ["In fold 1, of 20 rows to fit and 20 held out."]


def test_stored_tables_and_renumbered_groups_are_refused():
    X, _ = numbers(0)
    with pytest.raises(ValueError, match="needs a table in memory"):
        cross_validate(Ridge(), "rows.parquet", "target")
    with pytest.raises(ValueError, match="needs a table in memory"):
        cross_validate(Ridge(), pl.DataFrame(X).lazy(), X[:, 0])
    with pytest.raises(ValueError, match="looks like the name of a column"):
        cross_validate(Ridge(), X, "target")
    with pytest.raises(ValueError, match="numbers its groups anew"):
        cross_validate(KMeans(2), X, cv=RepeatedKFold(n_splits=2, n_repeats=2))
    with pytest.raises(ValueError, match="KernelPCA has no score of its own"):
        cross_validate(KernelPCA(2), X)
