"""Premises of the bounds on fitted models: where one is violated, the bound is missing or pays; nothing fails in the dark."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, PolynomialFeatures, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import lemmata.linear_model as ours
from lemmata.decision import Decide
from lemmata.theory import guarantee
from lemmata.theory.bounds.growth import log_cover, log_polynomials
from lemmata.theory.bounds.margins import margin_bound_known_radius
from lemmata.theory.bounds.uniform import hypergeometric_bound
from lemmata.theory.guarantees.linear import cosines
from lemmata.theory.guarantees.structure import structure_of

N = 200
GROWTH = "growth function"
SPLIT = "PAC-Bayes with a prior from half the rows"
BAG = "out-of-bag, twice the members"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, N)
    X = rng.standard_normal((N, 3))
    X[:, 0] += 2.4 * (y - 0.5)
    return X, y


def growth_by_hand(model, X, y, log_growth, share):
    return hypergeometric_bound(int((model.predict(X) != y).sum()), len(y), log_growth, 0.05 * share)


# ----------------------------------------------------------------------------------------- the class of functions


def test_gaussians_along_learned_axes_are_all_quadrics(rows):
    """Along axes that PCA found, 2d features are not enough: x² + y² in other axes holds xy."""
    model = make_pipeline(PCA(), GaussianNB()).fit(*rows)
    assert guarantee(model, *rows)[GROWTH].value == growth_by_hand(model, *rows, lambda m: log_polynomials(m, 3, 2), 1)
    scaled = make_pipeline(StandardScaler(), GaussianNB()).fit(*rows)
    assert guarantee(scaled, *rows)[GROWTH].value == growth_by_hand(scaled, *rows, lambda m: log_cover(m, 6), 1)


def test_shares_of_degrees_add_up_to_one(rows):
    for degree in (0, 1, 2):
        model = make_pipeline(PolynomialFeatures(degree), LogisticRegression(max_iter=1000)).fit(*rows)
        p = max(degree, 1)
        expected = growth_by_hand(model, *rows, lambda m, p=p: log_polynomials(m, 3, p), 1 / (p * (p + 1)))
        assert guarantee(model, *rows, refit=False)[GROWTH].value == expected


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (make_pipeline(StandardScaler(), Decide(LogisticRegression(), reject_cost=0.2)), "rejection"),
        (GridSearchCV(Decide(LogisticRegression(), reject_cost=0.2), {"estimator__C": [0.1, 1.0]}), "rejection"),
        (Decide(ours.BayesianLogisticRegression(), costs=[[0, 5], [1, 0]]), "averaged probabilities"),
        (Decide(DecisionTreeClassifier(max_depth=2), reject_cost=0.2), "rejection"),
        (GradientBoostingClassifier(n_estimators=3, max_depth=1, init=DummyClassifier(strategy="stratified")), "not known"),
        (GradientBoostingClassifier(n_estimators=3, max_depth=2, min_samples_leaf=90), "not known"),  # stumps by accident
    ],
)
def test_regions_that_nobody_counted_have_no_growth_function(rows, model, reason):
    result = guarantee(model.fit(*rows), *rows)
    assert reason in result.inapplicable[GROWTH]
    assert not len(result)


def test_costs_of_each_row_are_no_tree(rows):
    def costs(X):
        return np.array([[0.0, 5.0], [1.0, 0.0]]) * (1 + np.abs(np.asarray(X)[:, :1, None]))

    result = guarantee(Decide(DecisionTreeClassifier(max_depth=2), costs=costs).fit(*rows), *rows)
    assert {GROWTH, "description length"} <= set(result.inapplicable)


def test_broken_ties_compare_more_than_pairs(rows):
    X, y = rows[0], np.digitize(rows[0][:, 0], [-1.0, 1.0])
    assert "break_ties" in guarantee(SVC(kernel="linear", break_ties=True).fit(X, y), X, y).inapplicable[GROWTH]
    assert GROWTH not in guarantee(SVC(kernel="linear").fit(X, y), X, y).inapplicable


def test_a_single_class(rows):
    for model in (DecisionTreeClassifier(), GaussianNB()):
        result = guarantee(model.fit(rows[0], np.zeros(N)), rows[0], np.zeros(N))
        assert "single class" in result.inapplicable[GROWTH]


# ------------------------------------------------------------------------------------------------------- searches


def test_a_search_among_kinds_of_models_pays_for_each(rows):
    X, y = rows
    models = [LogisticRegression(), DecisionTreeClassifier(max_depth=9), GaussianNB()]
    search = GridSearchCV(Pipeline([("model", LogisticRegression())]), {"model": models}).fit(X, y)
    assert isinstance(search.best_estimator_[-1], LogisticRegression)
    result = guarantee(search, X, y)
    assert result[GROWTH].value == growth_by_hand(search, X, y, lambda m: log_cover(m, 3), 1 / 3)
    core = search.best_estimator_[-1]
    plane = np.append(core.coef_[0], core.intercept_)
    margins = cosines(X, np.where(y, 1, -1), plane / np.linalg.norm(plane))
    assert result["margin (Rademacher)"].value == margin_bound_known_radius(margins, 1.0, 0.05 / 3)
    assert any("3 kinds" in sentence for sentence in result[GROWTH].assumptions)


def test_a_search_among_kinds_leaves_no_more_to_a_few_unseen_rows_than_each_kind_would(rows):
    X, y = rows
    models = [SVC(), LogisticRegression(C=1e-6, fit_intercept=False, class_weight={0: 1, 1: 1e6})]
    search = GridSearchCV(Pipeline([("model", SVC())]), {"model": models}).fit(X, y)
    assert isinstance(search.best_estimator_[-1], SVC)
    assert guarantee(search, X, y, holdout=(X[:50], y[:50])).shares["hold-out, Clopper-Pearson"] == 0.5


@pytest.mark.parametrize(
    ("model", "grid", "kinds"),
    [
        (LogisticRegression(), {"C": [0.1, 1.0], "class_weight": [None, "balanced"]}, 1),
        (DecisionTreeClassifier(), {"max_depth": [1, 2], "min_samples_leaf": [1, 5]}, 1),
        (AdaBoostClassifier(DecisionTreeClassifier(), n_estimators=2), {"estimator__max_depth": [1, 2]}, 2),
        (SVC(), {"kernel": ["linear", "poly"], "C": [0.1, 1.0]}, 2),
        (make_pipeline(PolynomialFeatures(), LogisticRegression(max_iter=1000)), {"polynomialfeatures__degree": [1, 2]}, 2),
        (make_pipeline(FunctionTransformer(), LogisticRegression()), {"functiontransformer__func": [None, np.tanh]}, 2),
    ],
)
def test_what_a_search_may_tune_for_nothing(rows, model, grid, kinds):
    structure = structure_of(GridSearchCV(model, grid, cv=2).fit(*rows))
    assert structure.kinds == kinds
    assert structure.settings >= kinds


def test_searches_of_strangers_may_invent_settings_as_they_go(rows):
    class Search(GridSearchCV):
        """A stranger's search."""

    result = guarantee(Search(LogisticRegression(), {"C": [1.0, 2.0]}).fit(*rows), *rows)
    assert not len(result)


def test_a_prior_that_a_search_chose_pays(rows):
    """Of 32 precisions without a common power of two, each would bring its own variances of the prior."""
    X, y = rows
    grid = np.geomspace(0.5, 1.0, 32, endpoint=False)
    search = GridSearchCV(ours.BayesianLogisticRegression(), {"prior_precision": grid}, cv=2).fit(X, y)
    for name in ("PAC-Bayes, the posterior's draws", "PAC-Bayes, twice the posterior's draws"):
        single = guarantee(search.best_estimator_, X, y, 0.05 / 32, refit=False)[name]
        assert guarantee(search, X, y, refit=False)[name].value == pytest.approx(single.value, rel=1e-12)


# ------------------------------------------------------------------------------------------- priors, compression


def test_a_frozen_part_is_no_prior(rows):
    """A copy of it is not fitted again: prior and posterior would be one plane, and the divergence zero."""
    X, y = rows
    fitted = LogisticRegression().fit(X, y)
    chosen = make_pipeline(SelectFromModel(FrozenEstimator(fitted)), LogisticRegression()).fit(X, y)
    searched = GridSearchCV(Pipeline([("model", GaussianNB())]), {"model": [FrozenEstimator(fitted)]}).fit(X, y)
    for model in (FrozenEstimator(fitted), chosen, searched):
        assert "frozen" in guarantee(model, X, y).inapplicable[SPLIT]


def test_a_frozen_prior_would_promise_what_is_false():
    """Labels are coins, so that the risk is a half; a plane that has learned them by heart is no prior for itself."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((N, 2 * N)), rng.integers(0, 2, N)
    assert guarantee(FrozenEstimator(LogisticRegression(C=100.0).fit(X, y)), X, y).best.value >= 0.5


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SVC(kernel="sigmoid", gamma=0.5), "positive definite"),
        (SVC(kernel="poly", gamma=0.5, coef0=-1.0), "positive definite"),
    ],
)
def test_kernels_that_are_none(rows, model, reason):
    assert reason in guarantee(model.fit(*rows), *rows).inapplicable["support vectors"]


def test_weights_of_rows_are_seen_in_the_multipliers(rows):
    X, y = rows
    model = SVC(kernel="linear").fit(X, y, sample_weight=np.where(y, 0.3, 1.0))
    assert "weights" in guarantee(model, X, y).inapplicable["support vectors"]
    weighted = SVC(kernel="linear", class_weight={0: 1.0, 1: 0.3}).fit(X, y)  # fixed: allowed
    assert "support vectors" not in guarantee(weighted, X, y).inapplicable


# ---------------------------------------------------------------------------------------------------------- votes


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (RandomForestClassifier(3, class_weight={0: 1, 1: 5}), "drawn by weights"),
        (BaggingClassifier(SVC(), 3), "weight zero"),  # gamma="scale" is computed from all rows
        (BaggingClassifier(GaussianNB(), 3), "weight zero"),
        (BaggingClassifier(DecisionTreeClassifier(class_weight="balanced"), 3), "weight zero"),
    ],
)
def test_when_rows_left_out_were_seen(rows, model, reason):
    assert reason in guarantee(model.fit(*rows), *rows).inapplicable[BAG]


def test_members_in_a_pipeline_see_their_rows_only(rows):
    model = BaggingClassifier(make_pipeline(StandardScaler(), LogisticRegression()), 3, max_features=2).fit(*rows)
    assert BAG in {bound.name for bound in guarantee(model, *rows)}


def test_draws_by_weights_leave_out_rows_of_another_kind(rows):
    model = BaggingClassifier(DecisionTreeClassifier(), 3).fit(*rows, sample_weight=np.where(rows[1], 0.2, 1.0))
    assert "drawn by weights" in guarantee(model, *rows).inapplicable[BAG]


def test_draws_by_weights_would_promise_what_is_false():
    """Of the quarter whose labels are coins few rows are left out if they weigh much; on the others nobody errs."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 2))
    y = np.where(X[:, 0] > 0.5, rng.integers(0, 2, 1000), 0)
    for model in (RandomForestClassifier(20, random_state=0), BaggingClassifier(n_estimators=20, random_state=0)):
        model.fit(X, y, sample_weight=np.where(X[:, 0] > 0.5, 100.0, 1.0))
        assert guarantee(model, X, y).best.value >= 0.125


def test_votes_that_do_not_know_their_rows(rows):
    X, y = rows
    forest = RandomForestClassifier(5, random_state=0).fit(X[:150], y[:150])
    assert "fitted to 150 rows" in guarantee(forest, X, y).inapplicable[BAG]
    assert "fitted to 150 rows" in guarantee(forest, X[:100], y[:100]).inapplicable[BAG]
    bag = BaggingClassifier(n_estimators=3, warm_start=True, random_state=0).fit(X, y)
    assert "warm_start" in guarantee(bag.set_params(n_estimators=6).fit(X, y), X, y).inapplicable[BAG]


# -------------------------------------------------------------------------------- the portfolio, not by the rows


def test_missing_values_keep_their_shares(rows):
    X, y = rows[0].copy(), rows[1]
    few = (rows[0][:50], y[:50])
    without = guarantee(DecisionTreeClassifier(max_leaf_nodes=3).fit(X, y), X, y, holdout=few)
    X[0, 0] = np.nan
    holes = guarantee(DecisionTreeClassifier(max_leaf_nodes=3).fit(X, y), X, y, holdout=few)
    assert holes.shares == without.shares


def test_coefficients_of_zero_keep_their_shares(rows):
    model = LogisticRegression(C=1e-4, l1_ratio=1.0, solver="liblinear", fit_intercept=False).fit(*rows)
    assert not model.coef_.any()
    assert guarantee(model, *rows).shares == guarantee(LogisticRegression().fit(*rows), *rows).shares


def test_reasons_known_beforehand_take_no_share(rows):
    scaled = make_pipeline(StandardScaler(), SVC(kernel="linear")).fit(*rows)
    assert "support vectors" not in guarantee(scaled, *rows).shares


# --------------------------------------------------------------------------------------- nothing fails in the dark


def test_texts_and_wide_tables():
    texts, y = ["good day", "bad day", "good night", "bad night"] * 10, [1, 0] * 20
    learned = guarantee(make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, y), texts, y)
    assert "no polynomials" in learned.inapplicable[GROWTH]
    wide = make_pipeline(HashingVectorizer(n_features=2**16), MaxAbsScaler(), LogisticRegression()).fit(texts, y)
    result = guarantee(wide, texts, y)  # 2¹⁶ unit vectors take 32 GB unless they are sparse
    margins = cosines(wide[0].transform(texts), np.where(y, 1, -1), _plane(wide))
    assert result["margin (Rademacher)"].value == pytest.approx(margin_bound_known_radius(margins, 1.0, 0.05))


def _plane(model):
    plane = np.append(model[-1].coef_[0] / model[1].scale_, model[-1].intercept_)
    return plane / np.linalg.norm(plane)


def test_sparse_tables_of_any_format(rows):
    X, y = rows
    model = LogisticRegression().fit(X, y)
    expected = guarantee(model, X, y)
    stored = guarantee(LogisticRegression().fit(csr_array(X), y), coo_array(X), y, holdout=(csr_array(X[::-1]), y[::-1]))
    assert stored[SPLIT].value == pytest.approx(expected[SPLIT].value, rel=1e-3)
    with pytest.raises(ValueError, match="The hold-out is the training set"):
        guarantee(model, csr_array(X), y, holdout=(csr_array(X), y))


def test_a_row_of_zeros_has_no_side(rows):
    X, y = np.vstack([rows[0], np.zeros(3)]), np.append(rows[1], 0)
    model = ours.BayesianLogisticRegression(fit_intercept=False).fit(X, y)
    name = "PAC-Bayes, the posterior's draws"
    dense, sparse = guarantee(model, X, y)[name], guarantee(model, csr_array(X), y)[name]
    assert dense.value == pytest.approx(sparse.value)
    assert dense.observed >= 1 / (N + 1)


@pytest.mark.filterwarnings("error")
def test_the_fit_to_half_of_the_rows_is_quiet(rows):
    X, y = rows
    model = ours.Perceptron(max_iter=5).partial_fit(X, y, classes=[0, 1])
    assert SPLIT in {bound.name for bound in guarantee(model, X, y)}


@pytest.mark.filterwarnings("error")
def test_stumps_of_a_frame_are_quiet(rows):
    frame = pd.DataFrame(rows[0], columns=["a", "b", "c"])
    bounds = [guarantee(AdaBoostClassifier(n_estimators=3).fit(X, rows[1]), X, rows[1]) for X in (frame, rows[0])]
    assert bounds[0]["margin of the vote"].value == bounds[1]["margin of the vote"].value


def test_too_few_rows_for_the_neighbors(rows):
    model = KNeighborsClassifier(5).fit(rows[0][:5], rows[1][:5])
    assert "5 neighbors" in guarantee(model, rows[0][:5], rows[1][:5]).inapplicable["leave one out"]


def test_labels_that_the_model_does_not_know(rows):
    X, y = rows
    for model in (LogisticRegression(), RandomForestClassifier(3), SVC(kernel="linear")):
        with pytest.raises(ValueError, match="does not know the label 2"):
            guarantee(model.fit(X, y), X, y + 1)
    unseen = guarantee(LogisticRegression().fit(X, y), holdout=(X, y + 1))  # an error like others, on unseen rows
    assert unseen["hold-out, Clopper-Pearson"].observed > 0.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_models": "2"}, "n_models='2' must be a whole number"),
        ({"n_models": 1.5}, "n_models=1.5 must be a whole number"),
        ({"upper": "2"}, "upper='2' must be a positive number"),
        ({"radius": -1.0}, "radius=-1.0 must be a positive number"),
        ({"tolerance": -1.0}, "tolerance=-1.0 must be a number of at least 0"),
        ({"thresholds": []}, "thresholds is empty"),
        ({"holdout": (np.zeros((0, 3)), np.zeros(0))}, "hold-out has no rows"),
        ({"loss": lambda model, X, y: 0.3, "upper": 1.0}, "a number for each of the unseen rows"),
        ({"loss": lambda model, X, y: np.full(3, 0.3), "upper": 1.0}, "a number for each of the unseen rows"),
        ({"loss": lambda model, X, y: np.full(len(y), np.nan), "upper": 1.0}, "must lie in"),
    ],
)
def test_clear_refusals(rows, options, message):
    X, y = rows
    with pytest.raises(ValueError, match=message):
        guarantee(LogisticRegression().fit(X, y), **({"holdout": (X, y)} | options))


def test_large_numbers_are_shown_as_numbers(rows):
    X = rows[0]
    result = guarantee(LinearRegression().fit(X, X[:, 0]), holdout=(X, X[:, 0] + 30_000.0), upper=1e6)
    assert "∞" not in str(result)
    assert f"{result['hold-out, betting'].value:.6g}" in str(result)


def test_what_is_not_promised_has_no_probability(rows):
    X = rows[0]
    result = guarantee(LinearRegression().fit(X, X[:, 0]), X, X[:, 0])
    assert "upper=" in result.inapplicable["linear functions (Rademacher)"]
    assert str(result).splitlines()[0].endswith("nothing can be promised")
    vacuous = guarantee(LinearRegression().fit(X, X[:, 0]), holdout=(X[:3], X[:3, 1] + 9), upper=1e-3)
    assert vacuous.best.value == 1e-3  # the limit of the loss, not that of the quantile


def test_a_stranger_with_a_known_name_is_a_stranger(rows):
    PCA = type("PCA", (BaseEstimator,), {"fit": lambda self, X, y=None: self, "transform": lambda self, X: np.sin(X)})
    model = make_pipeline(PCA(), LogisticRegression()).fit(*rows)
    assert "no polynomials" in guarantee(model, *rows).inapplicable[GROWTH]
