"""AdaBoost: the catalogue's numbers, the theorem at every round, scikit-learn's model, and what ends the rounds."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.ensemble import AdaBoostClassifier as Peer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression as PeerLogistic
from sklearn.naive_bayes import GaussianNB as PeerBayes
from sklearn.neighbors import KNeighborsClassifier as PeerNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as PeerTree

import lemmata
from lemmata.core.certificate import free
from lemmata.ensemble import AdaBoostClassifier
from lemmata.ensemble.adaboost_rounds import boost, reweigh
from lemmata.ensemble.stumps import Stumps
from lemmata.theory import guarantee
from lemmata.tree import DecisionTreeClassifier


def data(n_classes=2, n=600, seed=0):
    X, y = make_classification(
        n, 8, n_informative=6, n_classes=n_classes, n_clusters_per_class=1 + (n_classes == 2), flip_y=0.1, random_state=seed
    )
    return X.astype(np.float32).astype(float), y  # scikit-learn's trees look at single precision


class Told(ClassifierMixin, BaseEstimator):
    """A classifier that gives the row with number x the answer it was told, whatever it is fitted to."""

    def __init__(self, answers=()):
        self.answers = answers

    def fit(self, X, y, sample_weight=None):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.asarray(self.answers)[np.asarray(X)[:, 0].astype(int)]


@pytest.mark.item("TRE-09")
def test_the_numbers_of_the_catalogue():
    """Ten rows, three of them wrong: α = 0.423649, weights .0714286 and .1666667, factor 0.916515."""
    X, y = np.arange(10.0)[:, None], np.arange(10) % 2
    answers = y.copy()
    answers[:3] ^= 1
    model = AdaBoostClassifier(Told(answers), n_estimators=1).fit(X, y)
    np.testing.assert_allclose(model.estimator_errors_, [0.3], rtol=1e-15)
    np.testing.assert_allclose(model.estimator_weights_[0] / 2, 0.423649, atol=5e-7)  # the digits that are given
    np.testing.assert_allclose(model.bound_, [0.916515], atol=5e-7)
    weight = np.full(10, 0.1)
    growth = np.exp(model.estimator_weights_[0])
    reweigh(weight, y, answers, 1 / (0.7 + 0.3 * growth), growth / (0.7 + 0.3 * growth))
    np.testing.assert_allclose(weight[:3], 0.1666667, atol=5e-8)
    np.testing.assert_allclose(weight[3:], 0.0714286, atol=5e-8)
    np.testing.assert_allclose(weight[:3].sum(), 0.5, rtol=1e-15)


def textbook(members, X, y, n_rounds):
    """AdaBoost word for word, with labels ±1: errors, α, and the weights after every round."""
    w, errors, alphas, after = np.full(len(y), 1 / len(y)), [], [], []
    for member in members[:n_rounds]:
        f = member.predict(X)
        error = w[f != y].sum()
        alpha = 0.5 * np.log((1 - error) / error)
        w = w * np.exp(-alpha * y * f)
        w = w / w.sum()
        errors.append(error)
        alphas.append(alpha)
        after.append(w[f != y].sum())
    return np.array(errors), np.array(alphas), np.array(after)


@pytest.mark.item("TRE-09")
@pytest.mark.parametrize("resample", [False, True])
def test_the_textbook_word_for_word(resample):
    X, y = data()
    y = 2 * y - 1
    model = AdaBoostClassifier(n_estimators=30, resample=resample, random_state=0).fit(X, y)
    members = model.estimators_
    errors, alphas, after = textbook(members, X, y, 30)
    np.testing.assert_allclose(model.estimator_errors_, errors, rtol=1e-9)  # thirty rounds of roundings
    np.testing.assert_allclose(model.estimator_weights_ / 2, alphas, rtol=1e-7)  # the logarithm of them
    np.testing.assert_allclose(after, 0.5, rtol=1e-9)
    F = sum(alpha * member.predict(X) for alpha, member in zip(alphas, members, strict=True))
    assert np.array_equal(model.predict(X), np.sign(F))
    np.testing.assert_allclose(model.decision_function(X), 2 * F / alphas.sum(), atol=1e-9)


@pytest.mark.item("TRE-10")
@pytest.mark.parametrize("resample", [False, True])
def test_the_training_error_is_within_its_bounds_at_every_round(resample):
    for seed in range(3):
        X, y = data(seed=seed)
        model = AdaBoostClassifier(n_estimators=40, resample=resample, random_state=seed).fit(X, y)
        errors = np.array([np.mean(p != y) for p in model.staged_predict(X)])
        np.testing.assert_allclose(model.train_errors_, errors, rtol=1e-12)
        e = model.estimator_errors_
        product = np.cumprod(2 * np.sqrt(e * (1 - e)))
        np.testing.assert_allclose(model.bound_, product, rtol=1e-10)
        assert (errors <= product + 1e-12).all()
        assert (product <= model.edge_bound_ + 1e-12).all()
        np.testing.assert_allclose(model.edge_bound_, np.exp(-2 * np.cumsum((0.5 - e) ** 2)), rtol=1e-12)
        says = np.cumsum(model.estimator_weights_)
        losses = [
            np.mean(np.exp(-(2 * y - 1) * d * say / 4)) for d, say in zip(model.staged_decision_function(X), says, strict=True)
        ]
        np.testing.assert_allclose(product, losses, rtol=1e-9)
        assert model.certify(X, y).holds, str(model.certify(X, y))


@pytest.mark.item("TRE-10")
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("learning_rate", [0.3, 1.0, 1.7])
def test_the_bound_holds_for_any_classes_and_any_rate(n_classes, learning_rate):
    X, y = data(n_classes)
    model = AdaBoostClassifier(n_estimators=30, learning_rate=learning_rate).fit(X, y)
    assert (model.train_errors_ <= model.bound_ + 1e-12).all()
    assert model.certify(X, y).holds, str(model.certify(X, y))
    if n_classes == 4 or learning_rate != 1:
        with pytest.raises(AttributeError, match="two classes and learning_rate=1"):
            _ = model.edge_bound_
    if n_classes == 4 and learning_rate == 1:
        e = model.estimator_errors_
        np.testing.assert_allclose(model.bound_, np.cumprod(4 * np.sqrt(e * (1 - e) / 3)), rtol=1e-10)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
def test_scikit_learns_model(n_classes, learning_rate):
    X, y = data(n_classes, n=1500)
    model = AdaBoostClassifier(learning_rate=learning_rate).fit(X, y)
    peer = Peer(learning_rate=learning_rate, random_state=0).fit(X, y)
    assert [tree.tree_.feature[0] for tree in peer.estimators_] == model._members.feature.tolist()
    np.testing.assert_allclose(model._members.threshold, [tree.tree_.threshold[0] for tree in peer.estimators_], rtol=1e-9)
    np.testing.assert_allclose(model.estimator_errors_, peer.estimator_errors_, rtol=1e-9)  # fifty rounds of roundings
    np.testing.assert_allclose(model.estimator_weights_, peer.estimator_weights_, rtol=1e-7)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-9)
    np.testing.assert_allclose(model.feature_importances_, peer.feature_importances_, atol=1e-9)
    assert np.array_equal(model.predict(X), peer.predict(X))
    assert np.array_equal(list(model.staged_score(X, y)), list(peer.staged_score(X, y)))
    for mine, other in zip(model.staged_predict_proba(X), peer.staged_predict_proba(X), strict=True):
        np.testing.assert_allclose(mine, other, atol=1e-9)


def test_missing_values_go_where_scikit_learns_trees_send_them():
    """Its AdaBoost refuses them, its trees do not: SAMME word for word, with its stumps."""
    X, y = data(3, n=1000)
    X[np.random.default_rng(0).random(X.shape) < 0.15] = np.nan
    model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    weight, says, votes = np.full(len(y), 1 / len(y)), [], np.zeros((len(y), 3))
    for _ in range(20):
        f = PeerTree(max_depth=1, random_state=0).fit(X, y, sample_weight=weight).predict(X)
        error = weight[f != y].sum()
        says.append(np.log((1 - error) / error) + np.log(2))
        weight = np.where(f != y, weight * np.exp(says[-1]), weight)
        weight /= weight.sum()
        votes[np.arange(len(y)), f] += says[-1]
    np.testing.assert_allclose(model.estimator_weights_, says, rtol=1e-7)  # the logarithm of twenty rounds of roundings
    assert np.array_equal(model.predict(X), votes.argmax(axis=1))
    assert model.certify(X, y).holds, str(model.certify(X, y))


def test_predict_is_the_most_probable_class():
    """On digits, scikit-learn's of old agreed with itself on 44 % of the rows (scikit-learn issue 14084)."""
    X, y = load_digits(return_X_y=True)
    model = AdaBoostClassifier(n_estimators=20).fit(X, y)
    assert np.array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    for predicted, p in zip(model.staged_predict(X), model.staged_predict_proba(X), strict=True):
        assert np.array_equal(predicted, model.classes_[p.argmax(axis=1)])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repetitions(n_classes):
    X, y = data(n_classes, n=200)
    X = np.round(X, 1)  # ties between splits, which must be broken alike
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    for resample in (False, True):
        weighted = AdaBoostClassifier(resample=resample, random_state=0).fit(X, y, sample_weight=weight)
        repeated = AdaBoostClassifier(resample=resample, random_state=0).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        np.testing.assert_allclose(weighted.estimator_errors_, repeated.estimator_errors_, rtol=1e-9)
        np.testing.assert_allclose(weighted.train_errors_, repeated.train_errors_, rtol=1e-9)
        assert np.array_equal(weighted._members.feature, repeated._members.feature)
        assert np.array_equal(weighted._members.threshold, repeated._members.threshold)
        assert weighted.certify(X, y, sample_weight=weight).holds


def test_any_member_by_weights_as_in_scikit_learn():
    X, y = data(3, n=300)
    for member in (PeerTree(max_depth=3, random_state=0), PeerBayes()):
        model = AdaBoostClassifier(member, n_estimators=8, random_state=0).fit(X, y)
        peer = Peer(member, n_estimators=8, random_state=0).fit(X, y)
        n = len(model.estimators_)
        np.testing.assert_allclose(model.estimator_errors_, peer.estimator_errors_[:n], rtol=1e-7)  # members have tolerances
        assert np.array_equal(model.predict(X), peer.predict(X))
        assert model.certify(X, y).holds, str(model.certify(X, y))
    assert not hasattr(model, "feature_importances_")
    assert not hasattr(model, "draw_seed_")


def test_members_of_lemmata_hold_their_own_certificates():
    X, y = data(2, n=150)
    model = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5, random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate["members"].value == 0
    peer = Peer(PeerTree(max_depth=2, random_state=0), n_estimators=5, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.estimator_errors_, peer.estimator_errors_, rtol=1e-9)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    drawn = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=5, resample=True, random_state=0).fit(X, y)
    assert drawn.certify(X, y).holds, str(drawn.certify(X, y))
    model.estimators_[2].tree_.value[1] *= 1.01
    assert not model.certify(X, y).holds


@pytest.mark.parametrize("member", [PeerNeighbors(5), make_pipeline(StandardScaler(), PeerLogistic())])
def test_members_that_take_no_weights_are_fitted_to_drawn_rows(member):
    X, y = data(3, n=200)
    model = AdaBoostClassifier(member, n_estimators=6, random_state=0).fit(X, y)
    again = AdaBoostClassifier(member, n_estimators=6, random_state=0).fit(X, y)
    assert isinstance(model.draw_seed_, int)
    assert np.array_equal(model.estimator_errors_, again.estimator_errors_)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    assert model.score(X, y) > 0.6


def test_drawn_rows_have_the_weights_as_odds():
    """After the first round, half of the draws are rows that the first stump got wrong."""
    from lemmata.ensemble.weak_learners import Draws

    X, y = data(n=400)
    first = AdaBoostClassifier(n_estimators=1).fit(X, y)
    wrong = first.predict(X) != y
    odds = np.where(wrong, 0.5 / wrong.sum(), 0.5 / (~wrong).sum())
    draws = Draws(0, np.ones(400))
    share = np.mean([draws.counts(t, odds)[wrong].sum() / 400 for t in range(200)])
    assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(200 * 400)  # five standard deviations: once in two million


def test_a_member_that_is_never_wrong_is_the_last_and_decides():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 1, 1, 0, 0, 1, 1])
    tree = AdaBoostClassifier(DecisionTreeClassifier()).fit(X, y)
    assert (tree.estimator_errors_.tolist(), tree.estimator_weights_.tolist()) == ([0.0], [1.0])  # scikit-learn's too
    assert Peer(PeerTree()).fit(X, y).estimator_weights_[0] == 1.0
    assert tree.certify(X, y).holds, str(tree.certify(X, y))

    class Learner:
        """Members that were told what to say: wrong here and there twice, then right."""

        n_classes, y, base = 2, np.array([0, 0, 1, 1, 0, 1]), np.ones(6)

        def __init__(self):
            self.answers = iter([[1, 0, 1, 1, 0, 1], [0, 1, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1], [1] * 6])

        def fit(self, multiplier):
            return np.array(next(self.answers))

    rounds = boost(Learner(), 10, 1.0)
    assert len(rounds.says) == 3
    assert rounds.says[2] == 1 + rounds.says[:2].sum()
    assert rounds.train_errors[-1] == 0


def test_no_better_than_guessing_is_said():
    X, y = np.ones((4, 1)), np.array([0, 1, 0, 1])
    with pytest.raises(
        ValueError, match=r"The first member errs on 0.5 of the weight, no better than guessing among 2 classes"
    ):
        AdaBoostClassifier().fit(X, y)
    with pytest.warns(ConvergenceWarning, match=r"stopped after 1 of 50 members, because the next one errs on 0.5"):
        model = AdaBoostClassifier().fit(np.ones((5, 1)), np.array([0, 1, 0, 1, 1]))
    assert len(model.estimators_) == len(model.estimator_weights_) == 1
    assert np.array_equal(model.predict([[1.0]]), [1])
    assert model.certify(np.ones((5, 1)), np.array([0, 1, 0, 1, 1])).holds


@pytest.mark.parametrize("resample", [False, True])
def test_sabotage_of_a_stump_is_refused(resample):
    X, y = data(3, n=200)
    model = AdaBoostClassifier(n_estimators=10, resample=resample, random_state=0).fit(X, y)
    assert model.certify(X, y).holds
    rng = np.random.default_rng(0)
    for name in Stumps._fields:
        twin, value = deepcopy(model), getattr(model._members, name)
        changed = free(value, rng) if value.dtype.kind == "f" else value.copy()
        if value.dtype.kind != "f":
            changed[4] = not changed[4] if value.dtype.kind == "b" else (changed[4] + 1) % X.shape[1]
        twin._members = model._members._replace(**{name: changed})
        assert not twin.certify(X, y).holds, name


def test_a_stump_that_is_not_the_best_is_refused():
    """Members fitted to the wrong weights have honest errors and says, and are found out."""
    X, y = data(n=300)
    honest = AdaBoostClassifier(n_estimators=1).fit(X, y)
    rng = np.random.default_rng(0)
    other = AdaBoostClassifier(n_estimators=1).fit(X, y, sample_weight=rng.exponential(size=len(y)))
    if other._members.threshold[0] == honest._members.threshold[0]:
        pytest.fail("the weights were meant to change the stump")
    certificate = other.certify(X, y)
    assert certificate["stumps"].value > certificate["stumps"].limit


def test_threads_and_storage_change_nothing(tmp_path):
    X, y = load_iris(return_X_y=True)
    with lemmata.config(n_threads=1):
        one = AdaBoostClassifier(resample=True, random_state=0).fit(X, y)
    with lemmata.config(n_threads=4):
        four = AdaBoostClassifier(resample=True, random_state=0).fit(X, y)
    for a, b in zip(one._members, four._members, strict=True):
        np.testing.assert_array_equal(a, b)
    one.save(tmp_path / "model")
    for twin in (lemmata.load(tmp_path / "model"), pickle.loads(pickle.dumps(one))):
        assert np.array_equal(twin.predict_proba(X), one.predict_proba(X))
        assert twin.estimators_[3].tree_ == one.estimators_[3].tree_


def test_members_are_trees_that_predict_like_their_stumps():
    X, y = data(3, n=200)
    X[::7, 2] = np.nan
    model = AdaBoostClassifier(n_estimators=15).fit(X, np.array(["x", "y", "z"])[y])
    for tree, stump in zip(model.estimators_, model._members.feature, strict=True):
        assert type(tree) is DecisionTreeClassifier
        assert tree.tree_.feature[0] == stump
    votes = np.zeros((len(y), 3))
    for say, tree in zip(model.estimator_weights_, model.estimators_, strict=True):
        votes[np.arange(len(y)), np.searchsorted(model.classes_, tree.predict(X))] += say
    assert np.array_equal(model.classes_[votes.argmax(axis=1)], model.predict(X))


def test_guarantees_read_the_vote():
    X, y = data(n=400)
    bounds = {b.name: b for b in guarantee(AdaBoostClassifier(n_estimators=5).fit(X, y), X, y)}
    peers = {b.name: b for b in guarantee(Peer(n_estimators=5, random_state=0).fit(X, y), X, y)}
    for name in ("growth function", "margin of the vote"):
        np.testing.assert_allclose(bounds[name].value, peers[name].value, rtol=1e-9)


@pytest.mark.parametrize("value", [0, -1.0])
def test_a_learning_rate_must_be_positive(value):
    with pytest.raises(ValueError, match="learning_rate"):
        AdaBoostClassifier(learning_rate=value).fit([[0.0], [1.0]], [0, 1])


def test_a_column_without_values_is_named():
    with pytest.raises(ValueError, match="Column 1 has no value in any row"):
        AdaBoostClassifier().fit([[0.0, np.nan], [1.0, np.nan]], [0, 1])
