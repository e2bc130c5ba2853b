"""`Decide` against the brute-force minimum of expected cost, on every row, around classifiers of ours and of scikit-learn."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import lemmata
from lemmata.core.persistence import ModelFileError
from lemmata.decision import Decide
from lemmata.linear_model import LogisticRegression
from lemmata.semi_supervised import RandomWalkClassifier


class Given(ClassifierMixin, BaseEstimator):
    """A classifier whose rows are their own probabilities."""

    def __init__(self, labels=(0, 1)):
        self.labels = labels

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.asarray(X)


def drawn(seed, n=200, k=3, labels=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ rng.normal(size=(4, k)) + rng.gumbel(size=(n, k))
    return X, (np.arange(k) if labels is None else np.asarray(labels))[scores.argmax(axis=1)]


def brute(posterior, costs, reject=None):
    """Expected cost of each action, number by number."""
    out = []
    for i, p in enumerate(posterior):
        matrix = costs[i] if costs.ndim == 3 else costs
        risks = [sum(c * q for c, q in zip(row, p, strict=True)) for row in matrix]
        if reject is not None:
            risks.append(reject[i] if np.ndim(reject) else reject)
        out.append(risks)
    return np.array(out)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 5),
    n_actions=st.integers(1, 6),
    each=st.sampled_from(["common", "function", "passed"]),
    refuse=st.sampled_from([None, "number", "function"]),
    shift=st.booleans(),
)
def test_every_decision_is_the_brute_force_minimum(seed, k, n_actions, each, refuse, shift):
    rng = np.random.default_rng(seed)
    n = 40
    P = rng.dirichlet(np.full(k, 0.7), n)
    shape = (n_actions, k) if each == "common" else (n, n_actions, k)
    costs = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4)
    reject = None if refuse is None else np.abs(costs).mean() * rng.random(n if refuse == "function" else None)
    old, new = rng.dirichlet(np.full(k, 5.0), 2) * 0.9 + 0.1 / k
    actions = np.array([f"a{i}" for i in range(n_actions)])
    fitted = Given().fit(P, np.arange(k))
    model = Decide.of(
        fitted,
        {"common": costs, "function": lambda X: costs, "passed": np.zeros((n_actions, k))}[each],
        actions=actions,
        reject_cost=(lambda X: reject) if refuse == "function" else reject,
        **({"priors": new, "training_priors": old} if shift else {}),
    )
    passed = {"costs": costs} if each == "passed" else {}
    posterior = P * new / old if shift else P
    posterior = posterior / posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(P), posterior, rtol=1e-12)
    risks = brute(posterior, costs, reject)
    np.testing.assert_allclose(model.risk(P, **passed), risks, rtol=1e-9, atol=1e-12 * np.abs(costs).max())
    labels = np.append(actions, "rejected")
    taken, best = model.predict(P, **passed), risks.argmin(axis=1)
    ordered = np.sort(risks, axis=1)
    clear = ordered[:, 1] - ordered[:, 0] > 1e-12 * np.abs(costs).max() if risks.shape[1] > 1 else np.ones(n, dtype=bool)
    assert clear.mean() > 0.9  # ties are for the first of equals, which rounding decides
    np.testing.assert_array_equal(taken[clear], labels[best][clear])
    np.testing.assert_array_equal(model.rejected(P, **passed)[clear], (best == n_actions)[clear])
    y = rng.integers(0, k, n)
    number = {label: i for i, label in enumerate(actions)}
    paid = [
        (reject[i] if np.ndim(reject) else reject)
        if a == "rejected"
        else (costs if costs.ndim == 2 else costs[i])[number[a], y[i]]
        for i, a in enumerate(taken)
    ]
    assert model.cost(P, y, **passed) == pytest.approx(np.mean(paid), rel=1e-9, abs=1e-12)
    assert model.score(P, y, **passed) == pytest.approx(-np.mean(paid), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "classifier",
    [
        LogisticRegression(),
        PeerLogistic(),
        RandomForestClassifier(n_estimators=10, random_state=0),
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        CalibratedClassifierCV(LinearSVC(), cv=3),
        GridSearchCV(PeerLogistic(), {"C": [0.1, 1.0]}, cv=3),
    ],
    ids=lambda c: type(c).__name__,
)
def test_any_classifier_with_probabilities(classifier):
    X, y = drawn(0, labels=["good", "poor", "ruined"])
    costs = np.array([[0, 2, 9], [1, 0, 3], [4, 1, 0]])
    model = Decide(classifier, costs).fit(X, y)
    P = clone(classifier).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), np.unique(y)[brute(P, costs).argmin(axis=1)])
    assert model.certify(X, y).holds
    assert model.n_features_in_ == 4
    assert not hasattr(classifier, "classes_"), "the classifier itself stays as it was"
    plain = Decide(classifier).fit(X, y)
    assert plain.score(X, y) == pytest.approx(clone(classifier).fit(X, y).score(X, y))
    np.testing.assert_array_equal(plain.predict(X), clone(classifier).fit(X, y).predict(X))


def test_without_costs_the_class_is_the_most_probable_one_to_the_last_bit():
    P = np.random.default_rng(0).dirichlet(np.ones(4), 2000) / 2
    P[:, 1] = P[:, 3] = 0.5  # nearly tied at the top: a sum of the others could not tell them apart
    P /= P.sum(axis=1, keepdims=True)
    P[:, 3] = np.nextafter(P[:, 1], np.where(np.arange(2000) % 2, 1.0, 0.0))
    fitted = Given().fit(P, np.arange(4))
    np.testing.assert_array_equal(Decide.of(fitted).predict(P), P.argmax(axis=1))
    shifted = Decide.of(fitted, reject_cost=0.9)
    np.testing.assert_array_equal(shifted.predict(P), P.argmax(axis=1))


def test_two_classes_are_a_threshold():
    X, y = drawn(1, k=2)
    model = Decide(PeerLogistic(), [[0, 5], [1, 0]]).fit(X, y)
    peer = FixedThresholdClassifier(PeerLogistic(), threshold=1 / 6, response_method="predict_proba").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), peer.predict(X))


def test_in_pipelines_and_searches():
    X, y = drawn(2, k=2, n=400)
    costs = np.array([[0.0, 5.0], [1.0, 0.0]])
    pipe = make_pipeline(StandardScaler(), Decide(PeerLogistic(), costs)).fit(X, y)
    assert pipe.score(X, y) == pytest.approx(-pipe[-1].cost(pipe[0].transform(X), y))
    each = np.broadcast_to(costs[::-1, ::-1], (400, 2, 2))
    assert (pipe.predict(X, costs=each) != pipe.predict(X)).any(), "costs of each row pass through a pipeline"
    search = GridSearchCV(Decide(PeerLogistic(), costs), {"estimator__C": [1e-4, 1.0], "reject_cost": [None, 0.4]}, cv=3).fit(
        X, y
    )
    for row in range(4):
        parameters = search.cv_results_["params"][row]
        model = Decide(PeerLogistic(), costs).set_params(**parameters)
        expected = cross_val_score(model, X, y, cv=3).mean()
        assert search.cv_results_["mean_test_score"][row] == pytest.approx(expected)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"]) < 0


def test_metadata_are_routed_the_way_scikit_learn_does():
    X, y = drawn(3, k=2, n=300)
    rng = np.random.default_rng(0)
    each, weight = rng.random((300, 2, 2)), rng.integers(1, 4, 300).astype(float)
    with config_context(enable_metadata_routing=True):
        inner = PeerLogistic().set_fit_request(sample_weight=True)
        model = Decide(inner, [[0, 1], [1, 0]]).set_fit_request(sample_weight=True)
        model = model.set_score_request(costs=True, sample_weight=False).set_predict_request(costs=True)
        search = GridSearchCV(model, {"estimator__C": [0.01, 1.0]}, cv=3).fit(X, y, costs=each, sample_weight=weight)
        fitted = search.best_estimator_
        twin = PeerLogistic(C=search.best_params_["estimator__C"]).fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(fitted.estimator_.coef_, twin.coef_)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model).fit(X, y, sample_weight=weight)
        expected = pipe[-1].predict(pipe[0].transform(X), costs=each)
        np.testing.assert_array_equal(pipe.predict(X, costs=each), expected)
        assert Decide().fit(X, y, sample_weight=weight).training_priors_[1] == pytest.approx(np.average(y, weights=weight))
        with pytest.raises(UnsetMetadataPassedError):
            Decide(PeerLogistic()).fit(X, y, sample_weight=weight)


def test_weights_reach_the_classifier_and_the_priors():
    X, y = drawn(4, k=2)
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    for classifier in (LogisticRegression(), PeerLogistic(tol=1e-10), GaussianNB()):
        model = Decide(classifier, priors=[0.9, 0.1]).fit(X, y, sample_weight=weight)
        repeated = Decide(classifier, priors=[0.9, 0.1]).fit(
            np.repeat(X, weight.astype(int), axis=0), np.repeat(y, weight.astype(int))
        )
        np.testing.assert_allclose(model.training_priors_, repeated.training_priors_, rtol=1e-12)
        np.testing.assert_allclose(model.predict_proba(X), repeated.predict_proba(X), rtol=1e-4)
        assert model.certify(X, y, sample_weight=weight).holds
        assert not model.certify(X, y).holds
    model = Decide(FrozenEstimator(GaussianNB().fit(X, y))).fit(X, y, sample_weight=weight)
    assert model.training_priors_[1] == pytest.approx(np.average(y, weights=weight))
    with pytest.raises(ValueError, match="Pipeline takes no sample_weight by itself"):
        Decide(make_pipeline(StandardScaler(), GaussianNB())).fit(X, y, sample_weight=weight)
    piped = Decide(make_pipeline(StandardScaler(), GaussianNB())).fit(X, y, gaussiannb__sample_weight=weight)
    np.testing.assert_allclose(piped.estimator_[-1].class_prior_, np.bincount(y, weights=weight) / weight.sum())


def test_frames_sparse_tables_and_text():
    X, y = drawn(5)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = Decide(PeerLogistic(), 1 - np.eye(3)).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(model.predict(frame), Decide(PeerLogistic(), 1 - np.eye(3)).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(model.fit(X, y), "feature_names_in_")
    for classifier in (None, PeerLogistic()):
        sparse = Decide(classifier, 1 - np.eye(3)).fit(csr_array(X), y)
        np.testing.assert_array_equal(sparse.predict(csr_array(X)), sparse.predict(X))
        assert sparse.certify(csr_array(X), y).holds
    words = ["cheap pills", "meet at noon", "pills pills", "noon works", "cheap cheap", "at work"]
    spam = Decide(make_pipeline(TfidfVectorizer(), PeerLogistic()), [[0, 1], [9, 0]]).fit(words, ["spam", "ham"] * 3)
    # rows are actions: to keep what is spam costs 1, to drop what is ham costs 9
    assert set(spam.predict(words)) == {"ham"}


def test_a_fitted_classifier_is_used_as_it_is():
    X, y = drawn(6)
    fitted = RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    costs = np.random.default_rng(0).random((2, 3))
    model = Decide.of(fitted, costs, actions=["sell", "hold"])
    assert model.estimator_.estimator is fitted
    np.testing.assert_array_equal(
        model.predict(X), np.array(["sell", "hold"])[brute(fitted.predict_proba(X), costs).argmin(axis=1)]
    )
    assert model.certify(X, y).holds
    again = Decide(FrozenEstimator(fitted), costs, actions=["sell", "hold"]).fit(X[:50], y[:50])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    shifted = Decide.of(fitted, priors=[0.2, 0.2, 0.6], training_priors=np.bincount(y) / len(y))
    odds = fitted.predict_proba(X) * [0.2, 0.2, 0.6] / (np.bincount(y) / len(y))
    np.testing.assert_allclose(shifted.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))
    with pytest.raises(ValueError, match="needs training_priors too"):
        Decide.of(fitted, priors=[0.2, 0.2, 0.6])
    with pytest.raises(ValueError, match="fit it first"):
        Decide.of(GaussianNB())
    ours = Decide.of(LogisticRegression().fit(X, y), costs, actions=["sell", "hold"])
    assert ours.certify(X, y).holds
    assert not any("model" in check.name for check in ours.certify(X, y)), "a frozen classifier answers for itself"


def test_the_label_of_a_refusal():
    X, y = drawn(7, k=2)

    def refused(labels, **options):
        model = Decide(reject_cost=0.3, **options).fit(X, np.asarray(labels)[y])
        mask, taken = model.rejected(X), model.predict(X)
        assert 0 < mask.sum() < len(X)
        np.testing.assert_array_equal(mask, (model.predict_proba(X).max(axis=1) < 0.7))  # Chow's rule
        assert set(taken[~mask]) <= set(labels)
        (label,) = set(taken[mask].tolist())
        assert model.risk(X).shape == (len(X), 3)
        accuracy = 1 - model.cost(X, np.asarray(labels)[y])
        assert model.score(X, np.asarray(labels)[y]) == pytest.approx(accuracy)
        right = (taken[~mask] == np.asarray(labels)[y][~mask]).sum()
        assert accuracy == pytest.approx((right + 0.7 * mask.sum()) / len(X))
        return label, taken.dtype.kind

    assert refused([0, 1]) == (-1, "i")
    assert refused(["no", "yes"]) == ("rejected", "U")
    assert refused([False, True]) == ("rejected", "O")
    assert refused([0, 1], reject_label=7) == (7, "i")
    assert refused([0, 1], reject_label="ask") == ("ask", "O")
    assert refused(["no", "yes"], reject_label="ask a doctor") == ("ask a doctor", "U")
    with pytest.raises(ValueError, match="The label -1 of a refused row is an action"):
        Decide(reject_cost=0.3).fit(X, np.array([-1, 1])[y])
    free, dear = Decide(reject_cost=0.0).fit(X, y), Decide(reject_cost=0.6).fit(X, y)
    assert free.rejected(X).all()
    assert not dear.rejected(X).any()


def frames(costs, classes, actions):
    """Give the same costs as frames whose columns, and rows if the library names them, stand in another order."""
    order, rows = np.arange(len(classes))[::-1], np.roll(np.arange(len(actions)), 1)
    yield pd.DataFrame(costs, index=actions, columns=classes).iloc[rows, order]
    yield pl.DataFrame({str(classes[k]): costs[:, k] for k in order})
    yield pd.DataFrame(costs)  # without names, as an array


@pytest.mark.parametrize("labels", [["red", "rose", "white"], [1, 2, 3]])
def test_the_names_of_a_frame_of_costs_are_believed_not_their_order(labels):
    X, y = drawn(3, labels=labels)
    costs, actions = np.array([[0.0, 5, 2], [1, 0, 8], [3, 1, 0], [1, 1, 1]]), ["a", "b", "c", "d"]
    right = Decide(costs=costs, actions=actions).fit(X, y)
    for frame in frames(costs, labels, actions):
        model = Decide(costs=frame, actions=actions).fit(X, y)
        np.testing.assert_array_equal(model.costs_, costs)
        np.testing.assert_array_equal(model.predict(X), right.predict(X))
        np.testing.assert_array_equal(Decide(costs=costs * 0, actions=actions).fit(X, y).risk(X, frame), right.risk(X))
        assert model.certify(X, y).holds


def test_negative_weights_are_refused():
    X, y = drawn(3)
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        Decide(GaussianNB()).fit(X, y, sample_weight=np.where(np.arange(len(y)) == 5, -1.0, 1.0))


def test_float32_stays_float32():
    X, y = drawn(8)
    model = Decide(LogisticRegression(), priors=[0.2, 0.3, 0.5]).fit(X.astype(np.float32), y)
    assert model.predict_proba(X.astype(np.float32)).dtype == np.float32


def test_costs_change_after_the_fit_without_a_new_one():
    X, y = drawn(9, k=2)
    model = Decide(costs=[[0, 1], [1, 0]]).fit(X, y)
    changed = Decide.of(model.estimator_, [[0, 9], [1, 0]])
    again = Decide.of(changed.estimator_, [[0, 9], [1, 0]])
    assert again.fit(X, y).training_priors_[1] == pytest.approx(y.mean()), "frozen twice"
    streamed = again.fit(lambda: iter([(X[:80], y[:80]), (X[80:], y[80:])]))
    np.testing.assert_array_equal(streamed.training_priors_, model.training_priors_)
    np.testing.assert_array_equal(streamed.predict(lambda: iter([X[:80], X[80:]])), changed.predict(X))
    np.testing.assert_array_equal(changed.predict(X), model.predict(X, costs=[[0, 9], [1, 0]]))
    assert changed.predict(X).sum() > model.predict(X).sum()


def test_saved_and_loaded(tmp_path):
    X, y = drawn(10)
    model = Decide(LogisticRegression(C=0.5), np.eye(3)[:2], actions=["a", "b"], reject_cost=0.2, priors=[0.2, 0.3, 0.5]).fit(
        X, y
    )
    model.save(tmp_path / "model")
    twin = lemmata.load(tmp_path / "model")
    np.testing.assert_array_equal(twin.predict(X), model.predict(X))
    assert twin.certify(X, y).holds
    foreign = Decide(GaussianNB()).fit(X, y)
    trusted = ["sklearn.naive_bayes.GaussianNB"]
    lemmata.core.persistence.save(foreign, tmp_path / "foreign", trusted=trusted)
    np.testing.assert_array_equal(lemmata.load(tmp_path / "foreign", trusted=trusted).predict(X), foreign.predict(X))
    with pytest.raises(ModelFileError):
        Decide(costs=lambda X: np.zeros((len(X), 3, 3))).fit(X, y).save(tmp_path / "function")


def test_sabotage_of_each_part_is_refused():
    X, y = drawn(11)
    costs = np.random.default_rng(0).random((3, 3))
    model = Decide(GaussianNB(), costs, priors=[0.2, 0.3, 0.5], reject_cost=0.2).fit(X, y)
    assert model.certify(X, y).holds
    for name, check in (
        ("costs_", "costs"),
        ("priors_", "priors"),
        ("training_priors_", "training priors"),
        ("actions_", "actions"),
    ):
        twin = clone(model).fit(X, y)
        value = getattr(twin, name)
        setattr(twin, name, value * 1.01 if name == "costs_" else np.roll(value, 1))
        assert not twin.certify(X, y)[check].holds
    twin = clone(model).fit(X, y)
    twin.predict = lambda X: np.zeros(len(X), dtype=int)
    assert not twin.certify(X, y)["regret"].holds
    twin.predict = lambda X: np.full(len(X), 77)
    assert not twin.certify(X, y)["regret"].holds
    twin = clone(model).fit(X, y)
    twin.risk = lambda X: 1.01 * model.risk(X)
    assert not twin.certify(X, y)["risk"].holds


X, Y = drawn(12)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Decide(LinearSVC()), "LinearSVC has no predict_proba; wrap it in sklearn.calibration.CalibratedClassifierCV"),
        (Decide(costs=np.ones((2, 2))), r"\(actions, 3\).*got \(2, 2\)"),
        (Decide(costs=np.ones((2, 3))), "2 actions for 3 classes: name them with actions="),
        (Decide(costs=np.ones((2, 3)), actions=["a", "b", "c"]), r"\(3, 3\).*got \(2, 3\)"),
        (Decide(costs=np.ones((200, 3, 3))), "pass costs= to predict"),
        (Decide(costs=[[0, 1, np.nan], [1, 0, 1], [1, 1, 0]]), "costs hold NaN"),
        (Decide(costs=[["a"]]), "costs must be numbers"),
        (Decide(costs=np.ones((2, 3)), actions=["a", "a"]), "different labels"),
        (Decide(actions=["a", "b"]), "Without costs the actions are the classes"),
        (Decide(priors=[0.5, 0.5]), r"priors must be 3 numbers.*got the shape \(2,\)"),
        (Decide(priors=[0.5, 0.5, 0.5]), "priors must be positive and sum to one"),
        (Decide(training_priors=[0.5, 0.6, -0.1]), "training_priors must be positive and sum to one"),
        (Decide(reject_cost=-0.1), "reject_cost must be a number of at least 0"),
        (Decide(reject_cost=np.nan), "reject_cost must be a number of at least 0"),
        (Decide(reject_cost="cheap"), "reject_cost must be a number of at least 0"),
        (Decide(reject_cost=0.2, reject_label=1), "The label 1 of a refused row is an action"),
        (Decide(reject_cost=0.2, reject_label=np.nan), "NaN as reject_label equals nothing"),
        (Decide(costs=pd.DataFrame(np.ones((3, 3)), columns=["0", "1", "3"])), r"columns of costs are \['0', '1', '3'\]"),
        (Decide(costs=pd.DataFrame(np.ones((3, 3)), index=["a", "b", "c"])), r"rows of costs are .* and the actions are"),
    ],
)
def test_wrong_parameters_are_refused_before_any_fit(model, message, monkeypatch):
    monkeypatch.setattr(LogisticRegression, "fit", lambda *a, **k: pytest.fail("the classifier was fitted"))
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)


def test_wrong_costs_are_refused_when_deciding():
    model = Decide().fit(X, Y)
    for costs, message in (
        (np.ones((2, 3)), r"\(3, 3\).*got \(2, 3\)"),
        (np.ones((5, 3, 3)), "5 matrices for 200 rows"),
        (np.full((3, 3), np.inf), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(X, costs=costs)
    with pytest.raises(ValueError, match="reject_cost must give a number of at least 0 for each of 200 rows"):
        Decide(reject_cost=lambda X: np.ones(3)).fit(X, Y).predict(X)
    with pytest.raises(ValueError, match="costs is a function of the rows and needs them in memory"):
        Decide(costs=lambda X: np.zeros((len(X), 3, 3))).fit(X, Y).predict(lambda: iter([X]))
    with pytest.raises(ValueError, match="y holds the label 9"):
        model.cost(X, np.full(len(X), 9))
    with pytest.raises(NotFittedError):
        Decide().predict(X)
    broken = Given().fit(X, Y)
    with pytest.raises(ValueError, match=r"shape \(200, 4\), not a column for each of 3 classes"):
        Decide.of(broken).predict(X)
    with pytest.raises(ValueError, match="nothing can be decided"):
        Decide.of(broken).predict(np.full((5, 3), np.nan))


def test_a_class_without_weight_cannot_be_corrected():
    weight = (Y != 1).astype(float)
    with pytest.raises(ValueError, match="The class 1 has no weight in y"):
        Decide(GaussianNB(), priors=[0.2, 0.3, 0.5]).fit(X, Y, sample_weight=weight)


def test_a_classifier_that_takes_no_weights_is_certified_too():
    X = np.concatenate([np.zeros((20, 2)), np.full((20, 2), 3.0)]) + np.random.default_rng(0).normal(size=(40, 2))
    y = np.repeat([0, 1], 20)
    assert Decide(RandomWalkClassifier(), [[0, 1], [5, 0]]).fit(X, y).certify(X, y).holds
