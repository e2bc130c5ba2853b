"""The order of a model: criteria against their formulas, folds against scikit-learn's, certificates against sabotage."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.cluster import AgglomerativeClustering
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge as SklearnRidge
from sklearn.metrics import r2_score
from sklearn.mixture import GaussianMixture as SklearnGaussianMixture
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier as SklearnTree

import lemmata
from lemmata.cluster import KMeans, elbow
from lemmata.decomposition import PCA
from lemmata.hmm import GaussianHMM
from lemmata.linear_model import BayesianLinearRegression, LinearRegression, PolynomialRegression
from lemmata.mixture import GaussianMixture
from lemmata.model_selection import OrderCurve, select_order, stability
from lemmata.model_selection.judges import CriterionJudge
from lemmata.neighbors import KNeighborsClassifier
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor


def groups(seed=0, n=40):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(m, 1, size=(n, 2)) for m in ([0, 0], [7, 0], [0, 7])])


def cubic(seed=0, n=80):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(n, 1))
    return x, x[:, 0] ** 3 - 2 * x[:, 0] + 0.5 * rng.normal(size=n)


# Criteria: formulas


@pytest.mark.item("MSL-09")
@pytest.mark.parametrize("seed", range(3))
def test_bic_of_polynomials_is_that_of_numpys_least_squares(seed):
    x, y = cubic(seed)
    curve = select_order(PolynomialRegression(), "degree", [4, 1, 2, 3, 5, 6, 3], x, y, random_state=seed)
    n, expected = len(y), []
    for degree in range(1, 7):
        rest = y - np.polyval(np.polyfit(x[:, 0], y, degree), x[:, 0])
        log_likelihood = -n / 2 * (np.log(2 * np.pi * (rest**2).mean()) + 1)
        expected.append((degree + 2) * np.log(n) - 2 * log_likelihood)  # coefficients, intercept, noise
    assert curve.values.tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_allclose(curve.losses, [expected], rtol=1e-8)
    assert curve.suggested == curve.simplest == 1 + int(np.argmin(expected)) == 3
    assert curve.model.degree == 3
    likelihoods = ((np.arange(1, 7) + 2) * np.log(n) - expected) / 2
    np.testing.assert_allclose(curve.objectives, -likelihoods, rtol=1e-8)
    assert np.isnan(curve.standard_errors).all()
    assert curve.certify(x, y).holds, str(curve.certify(x, y))


@pytest.mark.item("MSL-09")
@pytest.mark.parametrize("criterion", ["bic", "aic"])
def test_criteria_of_mixtures_are_those_of_scipys_densities(criterion):
    X = groups()
    curve = select_order(GaussianMixture(), "n_components", range(1, 5), X, criterion=criterion, random_state=0)
    for k, loss, model in zip(curve.values, curve.losses[0], curve.models, strict=True):
        each = [multivariate_normal.pdf(X, m, S) for m, S in zip(model.means_, model.covariances_, strict=True)]
        log_likelihood = np.log(model.weights_ @ np.array(each)).sum()
        parameters = 6 * k - 1
        penalty = parameters * (np.log(len(X)) if criterion == "bic" else 2)
        assert loss == pytest.approx(penalty - 2 * log_likelihood, rel=1e-9)
    assert curve.suggested == 3 or criterion == "aic"


def test_evidence_is_minus_its_logarithm():
    x, y = cubic(n=40)
    model = make_pipeline(PolynomialFeatures(include_bias=False), BayesianLinearRegression())
    curve = select_order(model, "polynomialfeatures__degree", [1, 2, 3, 4, 5], x, y, criterion="evidence")
    expected = [-m.steps[-1][1].log_evidence_ for m in curve.models]
    np.testing.assert_allclose(curve.losses[0], expected, rtol=1e-9)
    assert curve.suggested == 3
    assert not curve.nested, "what a step makes of rows need not be nested"
    assert curve.certify(x, y).holds


def test_elbow_is_the_chord_rule_of_clusters():
    X = groups()
    ours = select_order(KMeans(), "n_clusters", range(1, 7), X, criterion="elbow", n_restarts=1, random_state=0)
    theirs = elbow(KMeans(random_state=int(ours.models[0].random_state)), X, range(1, 7))
    np.testing.assert_allclose(ours.losses[0], theirs.inertia, rtol=1e-9)
    assert ours.suggested == ours.simplest == theirs.suggested == 3
    assert ours.unit == "training objective"


@pytest.mark.item("MSL-10")
def test_stability_sees_the_same_samples_at_every_order():
    X = groups()
    curve = select_order(KMeans(), "n_clusters", [2, 3, 4], X, criterion="stability", n_repeats=5, random_state=1)
    assert curve.losses.shape == (5, 3)
    assert curve.suggested == 3
    expected = stability(curve.judge.candidates[1], X, n_resamples=5, random_state=curve.judge.seed)
    np.testing.assert_array_equal(curve.losses[:, 1], expected.losses)
    assert curve.certify(X).holds


# Folds


@pytest.mark.parametrize("seed", range(2))
def test_held_out_scores_are_scikit_learns(seed):
    x, y = cubic(seed)
    folds = list(KFold(4, shuffle=True, random_state=seed).split(x))
    model = make_pipeline(PolynomialFeatures(), SklearnRidge(alpha=1e-8))
    curve = select_order(model, "polynomialfeatures__degree", [1, 2, 3, 4], x, y, criterion="cv", cv=folds)
    for j, degree in enumerate(curve.values):
        expected = cross_val_score(model.set_params(polynomialfeatures__degree=int(degree)), x, y, cv=folds)
        np.testing.assert_allclose(-curve.losses[:, j], expected, rtol=1e-7)
    assert curve.certify(x, y).holds
    named = select_order(model, "polynomialfeatures__degree", [3], x, y, criterion="cv", cv=folds, scoring="r2")
    np.testing.assert_allclose(named.losses[:, 0], curve.losses[:, 2], rtol=1e-9)


def test_repeats_cut_anew_and_all_orders_see_the_same_folds():
    x, y = cubic()
    curve = select_order(PolynomialRegression(), "degree", [1, 3], x, y, criterion="cv", cv=4, n_repeats=3, random_state=0)
    assert curve.losses.shape == (12, 2)
    tests = [np.sort(test) for _, test in curve.judge.splits]
    for repeat in range(3):
        assert np.array_equal(np.sort(np.concatenate(tests[4 * repeat : 4 * repeat + 4])), np.arange(80))
    assert not np.array_equal(tests[0], tests[4])
    for j, degree in enumerate((1, 3)):
        for i, (train, test) in enumerate(curve.judge.splits):
            fit = np.polyfit(x[train, 0], y[train], degree)
            assert -curve.losses[i, j] == pytest.approx(r2_score(y[test], np.polyval(fit, x[test, 0])), rel=1e-7)
    np.testing.assert_allclose(curve.means, curve.losses.mean(axis=0))
    np.testing.assert_allclose(curve.standard_errors, curve.losses.std(axis=0, ddof=1) / np.sqrt(12))


def test_held_out_likelihood_chooses_the_number_of_groups():
    X = groups()
    curve = select_order(SklearnGaussianMixture(), "n_components", range(1, 6), X, criterion="cv", random_state=0)
    assert curve.simplest == 3
    for (train, test), models, loss in zip(
        curve.judge.splits, zip(*curve.judge.models, strict=True), curve.losses, strict=True
    ):
        assert loss[2] == pytest.approx(-models[2].score(X[test]))
        seeds = {models[2].random_state, curve.models[2].random_state}
        fits = [SklearnGaussianMixture(3, random_state=seed).fit(X[train]).score(X[train]) for seed in seeds]
        assert models[2].score(X[train]) >= max(fits) - 1e-9, "the best start of the rows of the fold"


# Restarts and certificates


class Lottery(RegressorMixin, BaseEstimator):
    """A fit whose error depends on its seed alone."""

    def __init__(self, order=1, random_state=None):
        self.order = order
        self.random_state = random_state

    def fit(self, X, y):
        self.luck_ = np.random.default_rng(self.random_state).random() / self.order
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def score(self, X, y):
        return -self.luck_


@pytest.mark.item("MSL-09")
def test_the_best_of_all_restarts_counts_with_the_same_starts_for_all_orders():
    X, y = np.zeros((4, 1)), np.zeros(4)
    curve = select_order(Lottery(), "order", [1, 2, 4], X, y, criterion="elbow", n_restarts=6, random_state=5)
    assert len({model.random_state for model in curve.models}) == 1
    np.testing.assert_allclose(curve.objectives * curve.values, curve.objectives[0])
    one = select_order(Lottery(), "order", [1, 2, 4], X, y, criterion="elbow", n_restarts=1, random_state=5)
    assert curve.objectives[0] < one.objectives[0]
    folds = select_order(Lottery(), "order", [1, 2], X, y, criterion="cv", cv=2, n_restarts=6, random_state=5)
    np.testing.assert_allclose(folds.losses, [curve.objectives[:2]] * 2)  # the luckiest start, in every fold
    kept = select_order(Lottery(random_state=3), "order", [1, 2, 4], X, y, criterion="elbow", n_restarts=1, random_state=5)
    assert {model.random_state for model in kept.models} == {3}


@pytest.mark.item("MSL-09")
@pytest.mark.parametrize(
    ("model", "param", "values"),
    [
        (KMeans(), "n_clusters", range(1, 7)),
        (SklearnKMeans(n_init=1), "n_clusters", range(1, 7)),
        (GaussianMixture(reg_covar=1e-2), "n_components", range(1, 5)),
        (SklearnGaussianMixture(tol=1e-6, max_iter=1000), "n_components", range(1, 5)),
        (PCA(), "n_components", [1, 2]),
        (make_pipeline(StandardScaler(), KMeans()), "kmeans__n_clusters", range(1, 5)),
    ],
)
def test_objectives_of_nested_models_fall_and_the_choice_is_certified(model, param, values):
    X = groups(1)
    curve = select_order(model, param, values, X, n_restarts=6, random_state=0)
    assert curve.nested
    assert (np.diff(curve.objectives) <= 1e-3 * np.ptp(curve.objectives)).all()
    certificate = curve.certify(X)
    assert certificate.holds, str(certificate)
    names = [check.name for check in certificate]
    assert names == ["orders", "criterion", "counts", "objective", "suggestion", "again", "monotone"]
    again = select_order(model, param, values, X, n_restarts=6, random_state=0)
    assert again.losses.tobytes() == curve.losses.tobytes(), "the choice is reproducible"


def test_classes_states_and_depths():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    y = ((X[:, 0] > 0) & (X[:, 1] > 0)) ^ (rng.random(300) < 0.1)
    for tree in (DecisionTreeClassifier(), SklearnTree(random_state=0)):
        curve = select_order(tree, "max_depth", [1, 2, 3, 6], X, y, criterion="cv", random_state=0)
        assert curve.simplest == 2
        assert curve.certify(X, y).holds, str(curve.certify(X, y))
    states = np.repeat(np.arange(12) % 3, 20)
    steps = 4.0 * states[:, None] + rng.normal(size=(240, 1))
    curve = select_order(GaussianHMM(), "n_components", [1, 2, 3, 4], steps, random_state=0)
    assert curve.suggested == 3
    assert curve.certify(steps).holds


def sabotages(curve):
    """Changes of a curve that its certificate must refuse, and by which check."""
    losses = curve.losses.copy()
    losses[0, 1] *= 1.01
    yield replace(curve, losses=losses), "criterion"
    yield replace(curve, losses=losses[:, ::-1]), "suggestion"
    objectives = curve.objectives.copy()
    objectives[0] *= 1.01
    yield replace(curve, objectives=objectives), "objective"
    some_rows = GaussianMixture(3, random_state=5).fit(groups()[::2])
    yield replace(curve, models=(*curve.models[:2], some_rows, *curve.models[3:])), "again"
    yield replace(curve, values=curve.values + 1), "orders"
    yield replace(curve, criterion="aic"), "criterion"
    better = replace(curve.criteria[1], log_likelihood=curve.criteria[1].log_likelihood + 1)
    yield replace(curve, criteria=(curve.criteria[0], better, *curve.criteria[2:])), "counts"


def test_sabotage_is_refused():
    X = groups()
    curve = select_order(GaussianMixture(), "n_components", range(1, 5), X, random_state=0)
    for twin, check in sabotages(curve):
        assert check in [failed.name for failed in twin.certify(X).failed], check
    assert not curve.certify(X + np.linspace(0, 3, len(X))[:, None]).holds, "other rows"


def test_folds_that_saw_the_rows_they_are_scored_on_are_refused():
    x, y = cubic()
    curve = select_order(PolynomialRegression(), "degree", range(1, 6), x, y, criterion="cv", random_state=0)
    certificate = curve.certify(x, y)
    assert certificate.holds, str(certificate)
    assert "known before the folds" in [check.name for check in certificate]
    seen = [[-model.score(x[test], y[test]) for model in curve.models] for _, test in curve.judge.splits]
    twin = replace(curve, losses=np.array(seen))
    twin.judge.models[:] = [[model] * 5 for model in curve.models]  # fitted to all rows, and scored as is said
    assert "criterion" in [check.name for check in twin.certify(x, y).failed]


def test_what_was_fitted_to_all_rows_beforehand_is_named():
    rng = np.random.default_rng(0)
    X, coin = rng.normal(size=(60, 400)), np.tile([0, 1], 30)
    for choice, known in ((SelectKBest(k=10), False), (FrozenEstimator(SelectKBest(k=10).fit(X, coin)), True)):
        model = make_pipeline(choice, KNeighborsClassifier())
        curve = select_order(
            model, "kneighborsclassifier__n_neighbors", [1, 5], X, coin, criterion="cv", random_state=0, nested=False
        )
        assert [check.name for check in curve.certify(X, coin).failed] == ["known before the folds"] * known
        assert bool(-curve.means.min() > 0.7) == known, "labels by coin toss"


def test_equals_may_differ_by_rounding():
    X = groups()
    curve = select_order(KMeans(), "n_clusters", [2, 3, 4], X, random_state=0)
    place, losses = 1, curve.losses.copy()
    losses[0, 2] = losses[0, place] * (1 - 1e-12)  # two that are alike, and which is first is chance

    class OtherJudge(CriterionJudge):
        def again(self, curve, data):
            return np.array([[losses[0, 0], losses[0, 2], losses[0, 1]]])

    assert replace(curve, losses=losses, judge=OtherJudge("bic")).certify(X).holds


@pytest.mark.parametrize("criterion", ["cv", "stability"])
def test_models_of_folds_and_samples_have_the_order_they_stand_for(criterion):
    X = groups()
    curve = select_order(KMeans(), "n_clusters", [2, 3, 4], X, criterion=criterion, random_state=0)
    assert curve.certify(X).holds
    stored = curve.judge.models if criterion == "cv" else curve.judge.candidates
    stored[0], stored[2] = stored[2], stored[0]
    assert "orders" in [check.name for check in curve.certify(X).failed]


@pytest.mark.parametrize("criterion", ["bic", "cv"])
def test_losses_that_are_no_numbers_are_told_and_left_out(criterion):
    """Of the two mixtures one has a likelihood without end."""

    class Boundless(GaussianMixture):
        def score(self, X, y=None):
            return super().score(X, y) if self.n_components < 3 else np.inf

        def score_samples(self, X):
            return super().score_samples(X) if self.n_components < 3 else np.full(len(X), np.inf)

    X = groups()
    with pytest.warns(UserWarning, match=r"n_components=3: .*inf\."):
        curve = select_order(Boundless(), "n_components", [1, 2, 3], X, criterion=criterion, random_state=0)
    assert curve.suggested == 2
    assert not np.isfinite(curve.losses[:, 2]).any()
    assert curve.simplest in (1, 2)


def test_fits_without_errors_are_compared_with_others_in_one_unit():
    """A tree that is deep enough has no likelihood: then −R² stands for all."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(100, 1))
    y = x[:, 0] ** 3 + rng.normal(size=100)
    curve = select_order(DecisionTreeRegressor(), "max_depth", [1, 2, 4, 8, 30], x, y, criterion="cv", random_state=0)
    expected = [-r2_score(y, model.predict(x)) for model in curve.models]
    assert curve.criteria[0] is not None
    assert curve.criteria[-1] is None
    np.testing.assert_allclose(curve.objectives, expected, rtol=1e-9)
    assert curve.certify(x, y).holds, str(curve.certify(x, y))
    bend = select_order(DecisionTreeRegressor(), "max_depth", [1, 2, 4, 8, 30], x, y, criterion="elbow", random_state=0)
    np.testing.assert_allclose(bend.losses, [expected], rtol=1e-9)
    assert bend.certify(x, y).holds


def test_stability_needs_no_objective():
    X = groups()
    model = AgglomerativeClustering()
    curve = select_order(model, "n_clusters", [2, 3, 4], X, criterion="stability", n_repeats=3, random_state=0)
    assert curve.suggested == 3
    assert np.isnan(curve.objectives).all()
    assert [check.name for check in curve.certify(X) if not check.holds] == []
    with pytest.raises(ValueError, match="AgglomerativeClustering has no objective that is known here"):
        select_order(model, "n_clusters", [2, 3, 4], X, criterion="elbow")


@pytest.mark.parametrize("criterion", ["elbow", "cv"])
@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_as_seed_stands_for_one_number(make, criterion):
    X, y = np.zeros((6, 1)), np.zeros(6)
    generator = make(3)
    options = {"criterion": criterion, "n_restarts": 1, "random_state": 5}
    curve = select_order(Lottery(random_state=generator), "order", [1, 2, 4], X, y, **options)
    assert curve.certify(X, y).holds, str(curve.certify(X, y))
    np.testing.assert_allclose(curve.objectives * curve.values, curve.objectives[0])
    again = select_order(Lottery(random_state=generator), "order", [1, 2, 4], X, y, **options)
    np.testing.assert_array_equal(curve.losses, again.losses)
    other = select_order(Lottery(random_state=make(4)), "order", [1, 2, 4], X, y, **options)
    assert not np.array_equal(curve.losses, other.losses)


def test_groups_stay_together():
    x, y = cubic()
    person = np.repeat(np.arange(20), 4)
    options = {"criterion": "cv", "groups": person, "n_repeats": 2, "random_state": 0}
    curve = select_order(PolynomialRegression(), "degree", [1, 3], x, y, **options)
    assert len(curve.judge.splits) == 10
    assert not any(len(np.intersect1d(person[train], person[test])) for train, test in curve.judge.splits)
    assert curve.suggested == 3


def test_a_larger_order_that_fits_worse_is_refused():
    X = groups()
    curve = select_order(KMeans(), "n_clusters", [1, 2, 3, 4], X, random_state=0)
    poor = KMeans(4, random_state=0).fit(X)
    poor.cluster_centers_ = np.array([[50.0, 50.0], [60.0, 60.0], [0.0, 0.0], [70.0, 70.0]])
    twin = replace(curve, models=(*curve.models[:3], poor))
    assert "monotone" in [check.name for check in twin.certify(X).failed]
    assert "monotone" not in [check.name for check in replace(twin, nested=False).certify(X)]


# What goes wrong is told


def test_losses_that_explode_hide_no_others():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(20, 1))
    y = X[:, 0] ** 3 + rng.normal(size=20)
    curve = select_order(PolynomialRegression(), "degree", [1, 3, 15], X, y, criterion="cv", random_state=0)
    assert curve.means[2] > 1e9
    assert curve.certify(X, y).holds
    for order in range(3):
        losses = curve.losses.copy()
        losses[:, order] *= 1.01
        assert [check.name for check in replace(curve, losses=losses).certify(X, y).failed] == ["criterion"]


def test_an_order_that_fails_is_told_and_the_rest_is_kept():
    X = groups(n=2)
    with pytest.warns(UserWarning, match="n_components=9: .*n_components") as caught:
        curve = select_order(SklearnGaussianMixture(reg_covar=0.1), "n_components", [1, 2, 9], X, random_state=0)
    assert len(caught) == 1
    assert np.isnan(curve.losses[0]).tolist() == [False, False, True]
    assert list(curve.reasons) == [9]
    assert curve.reasons[9].startswith("ValueError: ")
    assert curve.models[2] is None
    assert curve.criteria[2] is None
    assert curve.suggested in (1, 2)
    assert curve.certify(X).holds
    with pytest.raises(ValueError, match="No value of n_components could be judged by 'bic'; n_components=8: ValueError"):
        select_order(SklearnGaussianMixture(), "n_components", [8, 9], X, random_state=0)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_fit_that_did_not_converge_is_told_by_its_order_on_any_thread(n_threads):
    X = groups()
    with lemmata.config(n_threads=n_threads), pytest.warns(ConvergenceWarning) as caught:
        curve = select_order(GaussianMixture(max_iter=2), "n_components", [1, 2, 3, 4], X, random_state=0)
    told = {str(warning.message).split(":")[0] for warning in caught}
    assert told == {f"n_components={k}" for k, loss in zip(curve.values, curve.losses[0], strict=True) if np.isnan(loss)}
    assert "n_components=1" not in told
    assert "n_components=4" in told
    assert curve.models[3] is not None, "it is kept to be looked at"


def test_other_warnings_are_told_and_the_order_is_judged():
    class Talking(LinearRegression):
        def __init__(self, order=1):
            super().__init__()
            self.order = order

        def fit(self, X, y, sample_weight=None):
            if self.order == 2:
                import warnings

                warnings.warn("I have doubts", UserWarning, stacklevel=2)
            return super().fit(X, y)

    x, y = cubic()
    for criterion in ("cv", "elbow"):
        with pytest.warns(UserWarning, match="order=2: .*I have doubts") as caught:
            curve = select_order(Talking(), "order", [1, 2, 3], x, y, criterion=criterion)
        assert {str(w.message)[:7] for w in caught} == {"order=2"}
        assert np.isfinite(curve.losses).all()


def test_models_without_a_likelihood_say_so_and_can_be_judged_otherwise():
    X, y = groups(), np.repeat([0.0, 1.0, 2.0], 40)

    class Own(RegressorMixin, BaseEstimator):
        def __init__(self, depth=1):
            self.depth = depth

        def fit(self, X, y):
            self.mean_ = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

    with pytest.raises(ValueError, match=r"depth=1: .*Own"):
        select_order(Own(), "depth", [1, 2, 3], X, y)
    curve = select_order(Own(), "depth", [1, 2, 3], X, y, criterion="cv", random_state=0)
    assert curve.criteria == (None, None, None)
    assert not curve.reasons
    with pytest.raises(ValueError, match="has no evidence: judge by 'bic'"):
        select_order(PolynomialRegression(), "degree", [1, 2], *cubic(), criterion="evidence")


def test_weights_repeat_rows():
    X, weight = groups(n=15), np.random.default_rng(0).integers(1, 3, 45)
    options = {"random_state": 0, "n_restarts": 2}
    found = select_order(GaussianMixture(reg_covar=1e-2), "n_components", [1, 2, 3], X, sample_weight=weight, **options)
    expected = select_order(GaussianMixture(reg_covar=1e-2), "n_components", [1, 2, 3], np.repeat(X, weight, axis=0), **options)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-6)
    assert found.certify(X, sample_weight=weight).holds
    assert not found.certify(X).holds


def test_values_need_not_be_whole():
    x, y = cubic()
    curve = select_order(SklearnRidge(), "alpha", [10.0, 0.1, 1], x, y, criterion="cv", random_state=0)
    assert curve.values.tolist() == [0.1, 1.0, 10.0]
    assert not curve.nested
    assert isinstance(curve.suggested, float)
    assert isinstance(OrderCurve("k", "bic", np.array([1, 2]), np.array([[2.0, 1.0]])).suggested, int)


def test_of_equal_losses_the_smaller_order_is_suggested():
    curve = OrderCurve("k", "bic", np.array([1, 2, 3]), np.array([[2.0, 1.0, 1.0]]))
    assert (curve.suggested, curve.simplest) == (2, 2)


def test_errors_come_before_any_fit():
    X = groups()
    for options, match in (
        ({"param": "k"}, "KMeans has no parameter 'k'; it has"),
        ({"criterion": "bics"}, "criterion must be one of 'bic', 'aic', .*; got 'bics'"),
        ({"values": []}, "values must hold at least one number"),
        ({"values": [2, None]}, "values must be finite numbers, .* got None"),
        ({"values": [2, np.nan]}, "values must be finite numbers, .* got nan"),
        ({"scoring": "r2"}, "scoring is for criterion='cv'; 'bic' has a unit of its own"),
        ({"n_repeats": 3}, "n_repeats is for 'cv' and 'stability'; 'bic' judges"),
        ({"n_restarts": 0}, "n_restarts must be a whole number of at least 1, got 0"),
        ({"values": 5}, r"values must be several numbers to compare, such as range\(1, 6\); got 5"),
        ({"groups": np.zeros(120)}, "groups are kept together in folds, for criterion='cv'; 'bic' has none"),
        ({"n_repeats": 0, "criterion": "cv"}, "n_repeats must be a whole number of at least 1, got 0"),
    ):
        arguments = {"param": "n_clusters", "values": [2, 3]} | options
        with pytest.raises(ValueError, match=match):
            select_order(KMeans(), X=X, **arguments)
    with pytest.raises(ValueError, match="An elbow needs at least three orders, and of 2 only 2 could be judged"):
        _ = select_order(KMeans(), "n_clusters", [2, 3], X, criterion="elbow").suggested


def test_the_picture_marks_the_suggested_and_the_simplest():
    import matplotlib as mpl

    mpl.use("Agg")
    from lemmata.plot import OrderCurveDisplay

    losses = np.array([[4.0, 1.1, 1.0], [4.4, 1.3, 1.2], [4.2, 1.1, 1.2]])
    curve = OrderCurve("degree", "cv", np.array([1, 2, 3]), losses)
    display = curve.plot()
    np.testing.assert_allclose(display.lines_["−score of held-out rows"].get_ydata(), losses.mean(axis=0))
    marks = {line.get_marker(): line.get_xdata()[0] for line in display.ax_.lines if line.get_markersize() > 10}
    assert marks == {"o": 3, "s": 2}
    assert display.ax_.get_xlabel() == "degree"
    (bars,) = display.ax_.collections
    heights = [np.diff(segment[:, 1])[0] for segment in bars.get_segments()]
    np.testing.assert_allclose(heights, 2 * curve.standard_errors)
    other = OrderCurve("degree", "bic", np.array([1, 2, 3]), np.array([[9.0, np.nan, 5.0]]))
    both = OrderCurveDisplay.from_curve(curve, other, name="two")
    assert both.ax_.get_title() == "two: least at degree = 3"
    np.testing.assert_allclose(both.lines_[other.unit].get_ydata(), [1.0, np.nan, 0.0])
    bend = OrderCurve("n_clusters", "elbow", np.array([1, 2, 3, 4]), np.array([[9.0, 3.0, 2.0, 1.0]]))
    assert bend.plot().ax_.get_title() == "suggested: n_clusters = 2"
    with pytest.raises(ValueError, match="Curves in one picture have the same parameter"):
        OrderCurveDisplay.from_curve(curve, replace(other, param="k"))
    with pytest.raises(ValueError, match="'BIC, K ln N − 2L' is there twice: draw two models side by side"):
        OrderCurveDisplay.from_curve(other, replace(other, losses=other.losses + 1))
    with pytest.raises(ValueError, match=r"a loss of each of the 3 values, got the shape \(1, 2\)"):
        OrderCurveDisplay(values=[1, 2, 3], losses=[3.0, 2.0])
    with pytest.raises(ValueError, match="a loss of each of the 3 values"):
        OrderCurveDisplay(values=[1, 2, 3], losses=[np.nan] * 3)
    with pytest.raises(ValueError, match=r"one of the values \[1, 2, 3\], got 7"):
        OrderCurveDisplay(values=[1, 2, 3], losses=[3.0, 2.0, 1.0], suggested=7)
    mpl.pyplot.close("all")
