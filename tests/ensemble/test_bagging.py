"""Bagging: the variance of a mean against simulation, members against fits by hand, whatever the member."""

from copy import deepcopy

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_friedman1
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as PeerMachine

import lemmata
from lemmata.ensemble import BaggingClassifier, BaggingRegressor
from lemmata.linear_model import LinearRegression
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor


@pytest.mark.item("TRE-07")
def test_the_variance_of_the_mean_is_that_of_the_formula():
    """ρσ² + (1 − ρ)σ²/B, with ρ and σ² of two members, over 150 tables; the notes' "high bias, low variance" is an erratum."""
    rng, members, at = np.random.default_rng(0), 8, np.linspace(-0.9, 0.9, 10)
    said = []
    for seed in range(150):
        X = rng.uniform(-1, 1, size=(30, 1))
        y = np.sin(3 * X[:, 0]) + 0.5 * rng.normal(size=30)
        model = BaggingRegressor(n_estimators=members, oob_score=False, random_state=seed).fit(X, y)
        said.append([member.predict(at[:, None]) for member in model.estimators_])
    said = np.array(said)  # tables, members, places
    deviations = said - said.mean(axis=0)
    variance = (deviations[:, :2] ** 2).mean(axis=(0, 1))
    correlation = (deviations[:, 0] * deviations[:, 1]).mean(axis=0) / variance
    formula = correlation * variance + (1 - correlation) * variance / members
    # a variance of 150 numbers has a relative error of 12 %, ten places that depend on each other a third of it
    assert (said.mean(axis=1).var(axis=0) / formula).mean() == pytest.approx(1.0, abs=0.15)
    assert (said.mean(axis=1).var(axis=0) / variance).mean() < 0.8
    shift = said.mean(axis=(0, 1)) - said[:, 0].mean(axis=0)
    assert (np.abs(shift) < 4 * np.sqrt(variance / 150)).all(), "the bias of the mean is that of one member"


@pytest.mark.item("TRE-07")
def test_one_member_is_the_base_learner_on_its_bag():
    X, y = make_friedman1(80, random_state=0)
    one = BaggingRegressor(n_estimators=1, random_state=3).fit(X, y)
    (rows,) = one.estimators_samples_
    assert len(rows) == 80
    assert len(np.unique(rows)) < 80
    assert np.array_equal(one.predict(X), DecisionTreeRegressor().fit(X[rows], y[rows]).predict(X))
    whole = BaggingRegressor(n_estimators=1, bootstrap=False).fit(X, y)
    assert np.array_equal(whole.predict(X), DecisionTreeRegressor().fit(X, y).predict(X))


MEMBERS = {
    "ours": DecisionTreeClassifier(max_depth=3),
    "scikit-learn's": PeerLogistic(),
    "a pipeline": make_pipeline(StandardScaler(), PeerLogistic()),
    "without probabilities": PeerMachine(random_state=0),
}


@pytest.mark.parametrize("kind", MEMBERS)
def test_any_classifier_is_fitted_to_rows_of_its_bag(kind):
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = BaggingClassifier(MEMBERS[kind], 5, random_state=0).fit(X, names)
    expected, total, votes = 0.0, np.zeros((150, 3)), np.zeros(150)
    for rows, seed in zip(model.estimators_samples_, model.seeds_, strict=True):
        member = deepcopy(MEMBERS[kind])
        if "random_state" in member.get_params():
            member.set_params(random_state=int(seed % 2**31))
        member.fit(X[rows], y[rows])
        p = member.predict_proba(X) if hasattr(member, "predict_proba") else np.eye(3)[member.predict(X)]
        expected = expected + p / 5
        unseen = np.setdiff1d(np.arange(150), rows)
        total[unseen] += p[unseen]
        votes[unseen] += 1
    np.testing.assert_allclose(model.predict_proba(X), expected, rtol=1e-9, atol=1e-12)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(model.oob_decision_function_, total / votes[:, None], rtol=1e-9, atol=1e-12)
    assert model.oob_score_ == np.mean(names[votes > 0] == model.classes_[total[votes > 0].argmax(axis=1)])
    certificate = model.certify(X, names)
    assert certificate.holds, str(certificate)
    assert certificate.kind == ("proof" if kind == "ours" else "local")


def test_members_of_few_columns():
    X, y = make_friedman1(100, random_state=0)
    model = BaggingRegressor(LinearRegression(), 6, max_features=0.4, max_samples=30, bootstrap=False, random_state=0).fit(X, y)
    expected = 0.0
    for rows, columns in zip(model.estimators_samples_, model.estimators_features_, strict=True):
        assert len(set(rows)) == 30
        assert len(set(columns)) == 4
        expected = expected + LinearRegression().fit(X[rows][:, columns], y[rows]).predict(X[:, columns]) / 6
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    assert model.certify(X, y).holds
    copies = BaggingRegressor(n_estimators=6, max_features=8, bootstrap_features=True, random_state=0).fit(X, y)
    assert any(len(set(columns)) < 8 for columns in copies.estimators_features_)
    assert copies.certify(X, y).holds


def test_weights_are_odds_of_the_bags_or_go_to_the_members():
    X, y = make_friedman1(60, random_state=0)
    weight = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    bagged = BaggingRegressor(n_estimators=4, random_state=0).fit(X, y, weight)
    repeated = BaggingRegressor(n_estimators=4, random_state=0).fit(
        np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
    )
    np.testing.assert_allclose(bagged.predict(X), repeated.predict(X), rtol=1e-9)
    whole = BaggingRegressor(LinearRegression(), 2, bootstrap=False).fit(X, y, weight)
    np.testing.assert_allclose(whole.predict(X), LinearRegression().fit(X, y, weight).predict(X), rtol=1e-9)
    from sklearn.neighbors import KNeighborsRegressor

    with pytest.raises(ValueError, match="takes no weights"):
        BaggingRegressor(KNeighborsRegressor(), bootstrap=False).fit(X, y, weight)


def test_a_bag_without_the_rare_class_is_drawn_again():
    X, y = np.arange(40.0)[:, None], np.zeros(40, dtype=int)
    y[7] = 1
    model = BaggingClassifier(n_estimators=12, random_state=0).fit(X, y)
    assert all(7 in rows for rows in model.estimators_samples_)
    assert model.predict([[7.0]]) == [1]
    assert model.certify(X, y).holds


def test_a_changed_member_is_refused():
    X, y = load_iris(return_X_y=True)
    for member, attribute in ((PeerLogistic(max_iter=1000), "coef_"), (lemmata.linear_model.LogisticRegression(), "coef_")):
        model = BaggingClassifier(member, 3, random_state=0).fit(X, y)
        assert model.certify(X, y).holds
        twin = deepcopy(model)
        setattr(twin.estimators_[1], attribute, getattr(twin.estimators_[1], attribute) * 1.01)
        assert not twin.certify(X, y).holds
        assert not model.certify(X[::-1], y).holds


def test_a_row_that_is_in_every_bag_is_told():
    X, y = make_friedman1(50, random_state=0)
    with pytest.warns(UserWarning, match="have no out-of-bag prediction"):
        model = BaggingRegressor(n_estimators=2, oob_score=True, random_state=0).fit(X, y)
    seen = set.intersection(*(set(rows) for rows in model.estimators_samples_))
    assert set(np.flatnonzero(np.isnan(model.oob_prediction_))) == seen


def test_any_number_of_threads_fits_the_same_members():
    X, y = make_classification(120, 5, random_state=0)
    said = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            said.append(BaggingClassifier(n_estimators=6, random_state=0).fit(X, y).predict_proba(X))
    assert np.array_equal(*said)


def test_bounds_of_the_risk_read_our_bagging():
    X, y = make_classification(300, 5, random_state=0)
    model = BaggingClassifier(lemmata.linear_model.LogisticRegression(), 20, random_state=0).fit(X, y)
    bound = lemmata.theory.guarantee(model, X, y)
    assert any("out-of-bag" in b.name and b.value < 1 for b in bound.bounds)


@pytest.mark.parametrize(
    "options",
    [{"n_estimators": 0}, {"max_features": 9}, {"max_features": 0.0}, {"max_samples": 2.0}, {"oob_score": 3}],
)
def test_parameters_without_sense_are_refused(options):
    X, y = make_friedman1(30, n_features=5, random_state=0)
    with pytest.raises(ValueError, match=next(iter(options))):
        BaggingRegressor(**options).fit(X, y)
    with pytest.raises(ValueError, match="more than the 30 rows"):
        BaggingRegressor(max_samples=31, bootstrap=False).fit(X, y)


def shop(n=120):
    rng = np.random.default_rng(0)
    color, size = rng.choice(["red", "green", "blue"], n), rng.normal(size=n)
    return {"color": color, "size": size}, np.where((color == "green") ^ (size > 0), "yes", "no")


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_text_columns_reach_the_members(kind):
    data, y = shop()
    if kind == "array":
        X = np.column_stack([data["color"].astype(object), data["size"]])
    else:
        X = pytest.importorskip(kind).DataFrame(data)
    model = BaggingClassifier(n_estimators=8, random_state=0).fit(X, y)
    assert model.oob_score_ > 0.9
    codes = np.column_stack([np.unique(data["color"], return_inverse=True)[1], data["size"]])
    twin = BaggingClassifier(DecisionTreeClassifier(categorical_features=[0]), 8, random_state=0).fit(codes, y)
    assert np.array_equal(model.predict_proba(X), twin.predict_proba(codes))
    assert np.array_equal(model.oob_decision_function_, twin.oob_decision_function_, equal_nan=True)
    assert model.certify(X, y).holds
    if kind == "pandas":
        assert list(model.estimators_[0].feature_names_in_) == ["color", "size"]
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(X.rename(columns={"size": "length"}))
        weight = (np.arange(120) % 3).astype(float)
        weighed = BaggingClassifier(n_estimators=4, bootstrap=False, random_state=0).fit(X, y, weight)
        again = BaggingClassifier(n_estimators=4, bootstrap=False, random_state=0).fit(X[weight > 0], y[weight > 0])
        assert np.array_equal(weighed.predict(X), again.predict(X)), "rows of weight zero are left out of frames as well"
        with pytest.raises(ValueError, match="bootstrap_features"):
            BaggingClassifier(bootstrap_features=True).fit(X, y)


def test_a_pipeline_that_encodes_text_gets_the_frame():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import make_column_transformer
    from sklearn.preprocessing import OneHotEncoder

    data, _ = shop()
    frame, y = pd.DataFrame(data), np.where(data["color"] == "red", 1.0, 0.0) + data["size"]
    encode = make_column_transformer((OneHotEncoder(), ["color"]), remainder="passthrough")
    model = BaggingRegressor(make_pipeline(encode, LinearRegression()), 5, random_state=0).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), y, atol=1e-9)
    assert model.certify(frame, y).holds


def test_a_column_without_any_value_is_left_to_the_members():
    X, y = make_friedman1(60, random_state=0)
    X[:, 1] = np.nan
    model = BaggingRegressor(n_estimators=3, random_state=0).fit(X, y)
    assert model.certify(X, y).holds
