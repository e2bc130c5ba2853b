"""Guarantees on fitted models: each bound against its formula by hand, when it is valid, the price of choosing, refusals."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import beta
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, PolynomialFeatures, QuantileTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

import lemmata.linear_model as ours
from lemmata.theory import guarantee
from lemmata.theory.bounds.compression import campi_garatti_bound, compression_bound, stable_compression_bound
from lemmata.theory.bounds.growth import log_argmax_linear, log_boosted_stumps, log_cover, log_trees
from lemmata.theory.bounds.margins import margin_bound_known_radius
from lemmata.theory.bounds.pac_bayes import first_order_bound, langford_bound, tandem_bound
from lemmata.theory.bounds.uniform import hypergeometric_bound
from lemmata.theory.guarantees.linear import cosines

N = 200


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], N)
    X = rng.standard_normal((N, 3))
    X[:, 0] += np.where(y == "yes", 1.2, -1.2)
    return X, y


@pytest.fixture(scope="module")
def unseen():
    rng = np.random.default_rng(1)
    y = rng.choice(["no", "yes"], 300)
    X = rng.standard_normal((300, 3))
    X[:, 0] += np.where(y == "yes", 1.2, -1.2)
    return X, y


def names(result):
    return {bound.name for bound in result}


# ---------------------------------------------------------------------------------------------------- unseen rows


def test_errors_on_unseen_rows_are_inverted_exactly(rows, unseen):
    model = LogisticRegression().fit(*rows)
    result = guarantee(model, *rows, holdout=unseen)
    errors = int((model.predict(unseen[0]) != unseen[1]).sum())
    assert result["hold-out, Clopper-Pearson"].value == pytest.approx(beta.ppf(0.95, errors + 1, 300 - errors), rel=1e-12)
    values = [result[f"hold-out, {name}"].value for name in ("Clopper-Pearson", "Chernoff", "Hoeffding")]
    assert values == sorted(values)
    assert result.best.name == "hold-out, Clopper-Pearson"  # 300 unseen rows: δ is not divided
    assert result.best.value == result["hold-out, Clopper-Pearson"].value


def test_a_holdout_that_chose_among_models_pays(rows, unseen):
    model = LogisticRegression().fit(*rows)
    errors = int((model.predict(unseen[0]) != unseen[1]).sum())
    bound = guarantee(model, holdout=unseen, n_models=50).best
    assert bound.value == pytest.approx(beta.ppf(1 - 0.05 / 50, errors + 1, 300 - errors), rel=1e-10)
    assert any("50 models" in sentence for sentence in bound.assumptions)


def test_few_unseen_rows_share_delta_with_the_training_rows(rows, unseen):
    model = ours.LogisticRegression().fit(*rows)
    few = unseen[0][:40], unseen[1][:40]
    result = guarantee(model, *rows, holdout=few, refit=False)
    assert result.shares == {
        "hold-out, Clopper-Pearson": 0.5,
        "PAC-Bayes, twice the random planes": 0.25,
        "growth function": 0.25,
    }
    paid = [result[name].at(0.05 * share).value for name, share in result.shares.items()]
    assert result.best.value == min(paid)
    assert result.best.value > min(result[name].value for name in result.shares)
    assert result.best.delta == 0.05


def test_graded_losses_of_a_classifier(rows, unseen):
    def brier(model, X, y):
        return (1 - model.predict_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]) ** 2

    model = LogisticRegression().fit(*rows)
    result = guarantee(model, holdout=unseen, loss=brier, upper=1.0)
    losses = brier(model, *unseen)
    assert result.best.observed == pytest.approx(losses.mean())
    assert losses.mean() < result.best.value < losses.mean() + 0.03
    assert result.best.name == "hold-out, betting"
    with pytest.raises(ValueError, match="losses must lie in"):
        guarantee(model, holdout=unseen, loss=brier, upper=0.01)
    with pytest.raises(ValueError, match="needs unseen rows"):
        guarantee(model, *rows, loss=brier, upper=1.0)


# ---------------------------------------------------------------------------------------------------- size of the class


def growth_by_hand(model, X, y, log_growth, share=1.0):
    errors = int((model.predict(X) != y).sum())
    return hypergeometric_bound(errors, len(y), log_growth, 0.05 * share)


@pytest.mark.parametrize(
    ("model", "log_growth", "share"),
    [
        (LinearDiscriminantAnalysis(), lambda m: log_cover(m, 3), 1),
        (LinearSVC(), lambda m: log_cover(m, 3), 1),
        (SVC(kernel="linear"), lambda m: log_cover(m, 3), 1),
        (make_pipeline(StandardScaler(), LogisticRegression()), lambda m: log_cover(m, 3), 1),
        (GaussianNB(), lambda m: log_cover(m, 6), 1),
        (QuadraticDiscriminantAnalysis(), lambda m: log_cover(m, 9), 1),
        (make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=5000)), lambda m: log_cover(m, 9), 1 / 6),
        (DecisionTreeClassifier(max_leaf_nodes=4), lambda m: log_trees(m, 3, 4), 1 / 20),
        (
            make_pipeline(QuantileTransformer(n_quantiles=10), DecisionTreeClassifier(max_leaf_nodes=4)),
            lambda m: log_trees(m, 3, 4),
            1 / 20,
        ),
        (AdaBoostClassifier(n_estimators=5), lambda m: log_boosted_stumps(m, 3, 5), 1 / 30),
        (GradientBoostingClassifier(n_estimators=5, max_depth=1), lambda m: log_boosted_stumps(m, 3, 5), 1 / 30),
        (FixedThresholdClassifier(LogisticRegression(), threshold=0.3, pos_label="yes"), lambda m: log_cover(m, 3), 1),
        (GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}), lambda m: log_cover(m, 3), 1),  # the class is the same
        (ours.ProbitRegression(), lambda m: log_cover(m, 3), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseEstimator) else None,
)
def test_the_size_of_the_class_of_each_kind_of_model(rows, model, log_growth, share):
    X, y = rows
    model.fit(X, y)
    bound = guarantee(model, X, y, refit=False)["growth function"]
    assert bound.value == growth_by_hand(model, X, y, log_growth, share)


def test_several_linear_classes(rows):
    X, _ = rows
    y = np.digitize(X[:, 0], [-1.0, 1.0])
    model = LogisticRegression().fit(X, y)
    result = guarantee(model, X, y)
    assert result["growth function"].value == growth_by_hand(model, X, y, lambda m: log_argmax_linear(m, 3, 3))
    assert "more than two classes" in result.inapplicable["margin (Rademacher)"]


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(), SVC(gamma=0.1), RandomForestClassifier(5), BaggingClassifier(n_estimators=3)]
)
def test_infinite_classes_have_no_count(rows, model):
    result = guarantee(model.fit(*rows), *rows)
    assert "infinite" in result.inapplicable["growth function"]
    with pytest.raises(KeyError, match="does not apply"):
        result["growth function"]


def test_missing_values_double_the_ways_to_split(rows):
    X, y = rows[0].copy(), rows[1]
    X[0, 0] = np.nan
    result = guarantee(DecisionTreeClassifier(max_leaf_nodes=3).fit(X, y), X, y)
    assert "missing values" in result.inapplicable["growth function"]
    assert "missing values" in result.inapplicable["description length"]


def test_decisions_that_cut_once_are_half_spaces_and_others_are_not(rows):
    from lemmata.decision import Decide

    X, y = rows
    cut = Decide(LogisticRegression(), costs=[[0.0, 5.0], [1.0, 0.0]]).fit(X, y)
    assert guarantee(cut, X, y)["growth function"].value == growth_by_hand(cut, X, y, lambda m: log_cover(m, 3))
    reject = Decide(LogisticRegression(), costs=[[0.0, 5.0], [1.0, 0.0]], reject_cost=0.1).fit(X, y)
    assert "rejection" in guarantee(reject, X, y).inapplicable["growth function"]


def test_of_strangers_nothing_but_tests_is_known(rows, unseen):
    class Stranger(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return self.classes_[(X[:, 0] > 0).astype(int)]

    result = guarantee(Stranger().fit(*rows), *rows, holdout=unseen)
    assert names(result) == {f"hold-out, {name}" for name in ("Clopper-Pearson", "Chernoff", "Hoeffding")}
    alone = guarantee(Stranger().fit(*rows), *rows)
    assert alone.best.vacuous
    assert alone.best.value == 1.0
    assert "nothing can be promised" in str(alone)


def test_a_step_that_learns_and_is_not_linear_leaves_the_tests_only(rows):
    model = make_pipeline(QuantileTransformer(n_quantiles=10), LogisticRegression()).fit(*rows)
    result = guarantee(model, *rows)
    assert not names(result)
    assert "no polynomials" in result.inapplicable["growth function"]


# ---------------------------------------------------------------------------------------------------- margins and posteriors


def test_margins_and_random_planes_by_hand(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    result = guarantee(model, X, y, refit=False)
    plane = np.append(model.coef_[0], model.intercept_)
    extended = np.column_stack([X, np.ones(N)])
    gamma = np.where(y == "yes", 1, -1) * (extended @ plane) / np.linalg.norm(plane) / np.linalg.norm(extended, axis=1)
    assert result["margin (Rademacher)"].value == pytest.approx(margin_bound_known_radius(gamma, 1.0, 0.05), rel=1e-12)
    assert result["PAC-Bayes, random planes"].value == pytest.approx(langford_bound(gamma, 0.05)[0], rel=1e-9)
    assert result["PAC-Bayes, twice the random planes"].value == pytest.approx(2 * langford_bound(gamma, 0.05)[0], rel=1e-9)
    assert result["PAC-Bayes, random planes"].target == "gibbs"


def test_a_scaler_is_folded_into_the_plane(rows):
    X, y = rows
    plain = LinearDiscriminantAnalysis().fit(X, y)
    scaled = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis()).fit(X, y)
    for name in ("margin (Rademacher)", "PAC-Bayes, twice the random planes", "PAC-Bayes with a prior from half the rows"):
        assert guarantee(scaled, X, y)[name].value == pytest.approx(guarantee(plain, X, y)[name].value, rel=1e-6)


def test_steps_that_learn_nothing_make_columns_as_good_as_raw_ones(rows):
    X, y = rows
    model = make_pipeline(Normalizer(), LinearSVC()).fit(X, y)
    inside = model[-1]
    assert (
        guarantee(model, X, y)["margin (Rademacher)"].value
        == guarantee(inside, Normalizer().transform(X), y)["margin (Rademacher)"].value
    )
    assert "support vectors" in names(guarantee(model, X, y))


def test_sparse_rows_and_frames_give_the_same(rows):
    pandas = pytest.importorskip("pandas")
    X, y = rows
    values = {bound.name: bound.value for bound in guarantee(LogisticRegression().fit(X, y), X, y)}
    sparse, frame = csr_array(X), pandas.DataFrame(X, columns=["a", "b", "c"])
    for other in (sparse, frame):
        result = guarantee(LogisticRegression().fit(other, y), other, y)
        assert {bound.name: pytest.approx(bound.value, rel=1e-6) for bound in result} == values
    scaled = make_pipeline(StandardScaler(), LogisticRegression()).fit(frame, y)
    assert "margin (Rademacher)" in names(guarantee(scaled, frame, y))


def test_the_prior_of_half_the_rows_never_sees_the_others(rows):
    X, y = rows
    model = LinearDiscriminantAnalysis().fit(X, y)
    bound = guarantee(model, X, y)["PAC-Bayes with a prior from half the rows"]
    order = np.random.default_rng(N).permutation(N)
    second = np.sort(order[N // 2 :])
    assert bound.data.startswith(f"{len(second)} of {N}")
    # Only labels of the second half are scored: with all of them wrong there, the bound is vacuous.
    flipped = y.copy()
    flipped[second] = np.where(y[second] == "yes", "no", "yes")
    assert guarantee(model, X, flipped)["PAC-Bayes with a prior from half the rows"].value >= 1


def test_bayesian_logistic_regression_promises_something_from_its_training_rows_alone():
    """Breast cancer, half held back: the bar of the family. The scaler comes from the half that is held back."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, rest = order[:284], order[284:]
    Z = (X - X[rest].mean(axis=0)) / X[rest].std(axis=0)
    model = ours.BayesianLogisticRegression().fit(Z[train], y[train])
    result = guarantee(model, Z[train], y[train])
    draws, twice = result["PAC-Bayes, the posterior's draws"], result["PAC-Bayes, twice the posterior's draws"]
    assert draws.value < 0.15
    assert twice.value < 0.30
    assert not result.best.vacuous
    assert not result.best.uninformative
    error = float((model.predict(Z[rest]) != y[rest]).mean())
    assert error < result.best.value < 0.3
    scaled = make_pipeline(StandardScaler(), ours.BayesianLogisticRegression()).fit(X[train], y[train])
    assert "fit scalers on other rows" in guarantee(scaled, X[train], y[train]).inapplicable["PAC-Bayes, the posterior's draws"]


# ---------------------------------------------------------------------------------------------------- few rows that matter


def test_support_vectors_by_hand(rows):
    X, y = rows
    for model in (SVC(gamma=0.3), SVC(kernel="linear"), LinearSVC(loss="hinge", max_iter=100_000, tol=1e-8)):
        model.fit(X, y)
        kept = int((np.where(y == "yes", 1, -1) * model.decision_function(X) <= 1 + 1e-3).sum())
        assert guarantee(model, X, y)["support vectors"].value == campi_garatti_bound(kept, N, 0.05)
    search = GridSearchCV(SVC(gamma=0.3), {"C": [0.5, 1.0, 2.0]}).fit(X, y)
    kept = int((np.where(y == "yes", 1, -1) * search.decision_function(X) <= 1 + 1e-3).sum())
    assert guarantee(search, X, y)["support vectors"].value == campi_garatti_bound(kept, N, 0.05 / 3)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SVC(), "gamma="),
        (SVC(gamma=0.1, class_weight="balanced"), "balanced"),
        (make_pipeline(StandardScaler(), SVC(gamma=0.1)), "fit scalers on other rows"),
        (SVC(gamma=0.1, kernel=lambda a, b: a @ b.T), "kernel is not known"),
        (SVC(kernel="linear", C=1e-9), "intercept is not unique"),
    ],
)
def test_when_support_vectors_prove_nothing(rows, model, reason):
    assert reason in guarantee(model.fit(*rows), *rows).inapplicable["support vectors"]


def test_a_reason_found_in_the_rows_keeps_its_share(rows):
    """Were the share of a bound that failed on these rows given to the others, the rows would decide the portfolio."""
    X, y = rows
    model = SVC(kernel="linear", C=1e-9).fit(X, y)
    result = guarantee(model, X, y, refit=False)
    assert "support vectors" in result.inapplicable
    assert result.shares["support vectors"] == pytest.approx(1 / 3)


@pytest.mark.filterwarnings("ignore:Perceptron still makes mistakes")
def test_mistakes_of_a_perceptron_by_hand(rows):
    X, y = rows
    once = ours.Perceptron(max_iter=1, shuffle=False, intercept_scaling=1.0).fit(X, y)
    needed = once.mistakes_ > 0
    errors = int((once.predict(X) != y)[~needed].sum())
    result = guarantee(once, X, y)
    assert result["compression to the mistakes"].value == compression_bound(errors, int(needed.sum()), N, 0.05)
    told = ours.Perceptron(max_iter=1, shuffle=False).fit(X, y)  # the unit of the table is told besides: 1, at a third of δ
    assert guarantee(told, X, y)["compression to the mistakes"].value == compression_bound(
        errors, int(needed.sum()), N, 0.05 / 3
    )
    apart = np.abs(X[:, 0]) > 0.3
    A, b = X[apart], np.where(X[apart, 0] > 0, "yes", "no")
    until = ours.Perceptron(shuffle=False, intercept_scaling=1.0).fit(A, b)
    kept = int((until.mistakes_ > 0).sum())
    value = guarantee(until, A, b)["compression to the mistakes, in blocks"].value
    assert value == stable_compression_bound(kept, len(b), 0.05)
    average = ours.Perceptron(average=True, random_state=0).fit(A, b)
    assert "average=True" in guarantee(average, A, b).inapplicable["compression to the mistakes"]


def test_a_perceptron_is_its_mistakes(rows):
    """The premise of the bound: run on the mistaken rows alone, in their order, it ends at the same plane."""
    X, y = rows
    model = ours.Perceptron(max_iter=3, shuffle=False, intercept_scaling=1.0)
    with pytest.warns(UserWarning, match="mistakes"):
        whole = model.fit(X, y)
    kept = whole.mistakes_ > 0
    with pytest.warns(UserWarning, match="mistakes"):
        part = ours.Perceptron(max_iter=3, shuffle=False, intercept_scaling=1.0).fit(X[kept], y[kept])
    np.testing.assert_allclose(part.coef_, whole.coef_, rtol=1e-12)


# ---------------------------------------------------------------------------------------------------- trees and votes


def test_the_description_of_a_tree(rows):
    X, y = np.round(rows[0] * 4) / 4, rows[1]
    model = DecisionTreeClassifier(max_leaf_nodes=4).fit(X, y)
    errors = int((model.predict(X) != y).sum())
    for thresholds, bits in ((None, 32), (np.arange(-32, 32) / 8, 6)):
        nats = 7 * np.log(2) + 3 * (np.log(3) + bits * np.log(2)) + 4 * np.log(2)
        expected = beta.isf(0.05 * np.exp(-nats), errors + 1, N - errors)
        assert guarantee(model, X, y, thresholds=thresholds)["description length"].value == pytest.approx(expected, rel=1e-6)
    assert "not on the list" in guarantee(model, X, y, thresholds=[0.0]).inapplicable["description length"]


def test_thresholds_in_single_precision_cut_as_the_tree_does(rows):
    """The premise of 32 bits: a threshold rounded down to single precision gives the same predictions."""
    X, y = rows
    model = DecisionTreeClassifier(max_leaf_nodes=8).fit(X, y)
    before = model.predict(X)
    thresholds = model.tree_.threshold
    single = thresholds.astype(np.float32)
    single = np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)
    thresholds[:] = single
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "model", [RandomForestClassifier(7, max_depth=3, random_state=0), BaggingClassifier(n_estimators=7, random_state=0)]
)
def test_a_forest_by_the_rows_that_its_trees_have_not_seen(rows, model):
    X, y = rows
    model.fit(X, y)
    numbers = np.searchsorted(model.classes_, y)
    losses, seen = np.zeros((7, N)), np.zeros((7, N), dtype=bool)
    for i, (tree, drawn) in enumerate(zip(model.estimators_, model.estimators_samples_, strict=True)):
        seen[i, drawn] = True
        losses[i] = 1 - tree.predict_proba(X)[np.arange(N), numbers]
    means = [losses[i, ~seen[i]].mean() for i in range(7)]
    result = guarantee(model, X, y)
    expected = first_order_bound(np.mean(means), (~seen).sum(axis=1).min(), 0.0, 0.05)
    assert result["out-of-bag, twice the members"].value == pytest.approx(expected, rel=1e-9)
    pairs, sizes = [], []
    for i in range(7):
        for j in range(7):
            both = ~seen[i] & ~seen[j]
            sizes.append(both.sum())
            pairs.append((losses[i] * losses[j])[both].mean())
    expected = tandem_bound(np.mean(pairs), min(sizes), 0.0, 0.05)
    assert result["out-of-bag, pairs of members"].value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (RandomForestClassifier(3, bootstrap=False), "bootstrap=False"),
        (RandomForestClassifier(3, class_weight="balanced"), "balanced_subsample"),
        (make_pipeline(StandardScaler(), RandomForestClassifier(3)), "has seen the rows"),
        (GridSearchCV(RandomForestClassifier(3), {"max_depth": [1, 2]}), "tuned"),
    ],
)
def test_when_the_rows_left_out_prove_nothing(rows, model, reason):
    assert reason in guarantee(model.fit(*rows), *rows).inapplicable["out-of-bag, twice the members"]


def test_leaving_one_out_of_the_neighbors(rows):
    X, y = rows
    model = KNeighborsClassifier(3).fit(X, y)
    wrong = [KNeighborsClassifier(3).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] != y[i] for i in range(N)]
    bound = guarantee(model, X, y)["leave one out"]
    assert bound.observed == np.mean(wrong)
    assert bound.value == pytest.approx(np.mean(wrong) + np.sqrt((1 / (2 * N) + 18 / (N - 1)) / 0.05))
    assert bound.vacuous


def test_stability_needs_a_declared_radius_and_a_small_c():
    rng = np.random.default_rng(0)
    y = rng.choice([-1, 1], 4000)
    X = rng.standard_normal((4000, 2)) + np.outer(2 * y, [1, 0])
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = LinearSVC(loss="hinge", C=1 / 8000, fit_intercept=False, max_iter=10_000).fit(X, y)
    assert "radius=" in guarantee(model, X, y, refit=False).inapplicable["uniform stability"]
    mean = np.clip(1 - y * model.decision_function(X) / 0.25, 0, 1).mean()
    b = 1 / (2 * 4000 * 0.25)
    expected = mean + 2 * b + (4 * 4000 * b + 1) * np.sqrt(np.log(20) / 8000)
    assert guarantee(model, X, y, radius=1.0, refit=False)["uniform stability"].value == pytest.approx(expected, rel=1e-9)


# ---------------------------------------------------------------------------------------------------- regression


def test_regression_by_unseen_rows():
    rng = np.random.default_rng(0)
    w = np.array([1.0, -1.0])
    X, rows = rng.standard_normal((300, 2)), rng.standard_normal((250, 2))
    y, labels = X @ w + rng.standard_t(3, 300), rows @ w + rng.standard_t(3, 250)
    model = ours.Ridge().fit(X, y)
    errors = np.abs(labels - model.predict(rows))
    result = guarantee(model, X, y, holdout=(rows, labels), upper=4.0, tolerance=3.0)
    larger = int((errors > 3).sum())
    assert result["hold-out, larger errors"].value == pytest.approx(beta.ppf(0.95, larger + 1, 250 - larger))
    assert result["hold-out, level that 90 % of the errors keep"].value == np.sort(errors)[233]  # rank 234 of 250
    clipped = np.minimum(errors, 4).mean()
    assert clipped < result.best.value < clipped + 0.25
    assert result.best.name == "hold-out, betting"
    training = result["linear functions (Rademacher)"]
    assert np.minimum(np.abs(y - model.predict(X)), 4).mean() < training.value
    without = guarantee(model, X, y, holdout=(rows, labels))
    assert "upper=" in without.inapplicable["mean absolute error"]
    assert without.best.vacuous
    json.loads(json.dumps(without.to_dict(), allow_nan=False))  # what has no limit is None, as strict JSON wants


def test_squared_errors_are_clipped_too():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 1)), rng.standard_normal(200)
    result = guarantee(ours.LinearRegression().fit(X[:100], y[:100]), holdout=(X[100:], y[100:]), loss="squared", upper=9.0)
    assert 0.5 < result.best.value < 2.5
    assert result.best.limit == 9.0


# ---------------------------------------------------------------------------------------------------- the result, and refusals


def test_what_a_guarantee_shows(rows, unseen):
    result = guarantee(LogisticRegression().fit(*rows), *rows, holdout=unseen)
    text = str(result)
    assert "risk ≤" in text.splitlines()[0]
    assert len(text.splitlines()) == 2 + len(result) + len(result.inapplicable)
    assert result._repr_html_().count("<tr>") == 1 + len(result) + len(result.inapplicable)
    plain = result.to_dict()
    assert json.loads(json.dumps(plain))["best"]["value"] == result.best.value
    assert [b.value for b in result] == sorted(b.value for b in result)
    for bound in result:
        assert bound.assumptions
        assert bound.reference
        assert bound.data
        assert bound.at(0.5).value <= bound.value <= bound.at(0.005).value
        assert bound.at(bound.delta).value == bound.value


def test_expectations_and_random_classifiers_never_win(rows):
    model = SVC(gamma=0.3).fit(*rows)
    result = guarantee(model, *rows)
    expected = result["support vectors, in expectation"]
    assert expected.kind == "expectation"
    assert expected.value < result.best.value
    assert "in expectation only" in expected.remark
    linear = guarantee(LogisticRegression().fit(*rows), *rows)
    assert linear["PAC-Bayes, random planes"].value < linear.best.value


def test_the_majority_class_is_the_measure_of_information(rows):
    X, _ = rows
    y = np.arange(N) < 4  # 2 % are true
    model = LinearDiscriminantAnalysis().fit(X, y)
    bound = guarantee(model, X, y)["growth function"]
    assert bound.trivial == pytest.approx(0.02)
    assert bound.uninformative
    assert not bound.vacuous
    assert "no better than a constant" in bound.remark


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delta": 0}, "delta=0 must be a probability"),
        ({"delta": "small"}, "must be a probability"),
        ({"y": None}, "X and y go together"),
        ({"X": None, "y": None}, "There are no rows"),
        ({"n_models": 0}, "n_models=0"),
        ({"upper": -1.0}, "upper=-1.0"),
        ({"holdout": 0.3}, "holdout must be a pair"),
        ({"X": "rows.parquet"}, "rows in memory"),
        ({"loss": "hinge"}, "zero-one"),
    ],
)
def test_clear_refusals(rows, options, message):
    model = LogisticRegression().fit(*rows)
    arguments = {"X": rows[0], "y": rows[1]} | options
    with pytest.raises(ValueError, match=message):
        guarantee(model, **arguments)


def test_the_training_set_is_no_holdout(rows):
    model = LogisticRegression().fit(*rows)
    with pytest.raises(ValueError, match="The hold-out is the training set"):
        guarantee(model, *rows, holdout=(rows[0].copy(), rows[1]))


def test_what_is_no_predictor_is_refused(rows):
    with pytest.raises(ValueError, match="neither a classifier nor a regressor"):
        guarantee(StandardScaler().fit(rows[0]), *rows)
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        guarantee(LogisticRegression(), *rows)


def test_cosines_do_not_depend_on_the_storage(rows):
    X, _ = rows
    plane = np.array([0.5, 0.5, 0.5, 0.5])
    signs = np.ones(N)
    np.testing.assert_allclose(cosines(csr_array(X), signs, plane), cosines(X, signs, plane), rtol=1e-12)
