"""Stability: of clusters against pairs counted by hand, of columns against the bound in simulation."""

from itertools import combinations

import numpy as np
import pytest
from sklearn import cluster as sklearn_cluster
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest, VarianceThreshold, f_regression
from sklearn.linear_model import Lasso as SklearnLasso
from sklearn.linear_model import LogisticRegression as SklearnLogisticRegression
from sklearn.mixture import GaussianMixture as SklearnGaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import lemmata
from lemmata.cluster import KMeans, KMedoids
from lemmata.linear_model import LinearRegression
from lemmata.mixture import GaussianMixture
from lemmata.model_selection import Stability, StabilitySelection, stability, stability_selection

ERRORS = 5.0  # standard errors: a false alarm once in a million


def triangle(seed=0, n=30, side=8.0):
    """Three groups, each as far from the others."""
    rng, corners = np.random.default_rng(seed), side * np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.866]])
    return np.repeat(corners, n, axis=0) + rng.normal(size=(3 * n, 2))


class Given(ClusterMixin, BaseEstimator):
    """A clusterer that ignores what it is fitted to; its labels of all rows are those of a function of the seed."""

    def __init__(self, label, random_state=None):
        self.label = label
        self.random_state = random_state

    def fit(self, X, y=None):
        self.labels_ = self.predict(X)
        return self

    def predict(self, X):
        return self.label(np.random.default_rng(self.random_state), len(X))


def random_labels(k):
    return lambda rng, n: rng.integers(k, size=n)


def agreement(a, b):
    """Adjusted Rand index by counting pairs one by one, its expectation over all relabelings by their sizes."""
    pairs = list(combinations(range(len(a)), 2))
    same_a, same_b = (np.array([labels[i] == labels[j] for i, j in pairs]) for labels in (a, b))
    share = (same_a == same_b).mean()
    p, q = same_a.mean(), same_b.mean()
    expected = p * q + (1 - p) * (1 - q)
    return (share - expected) / (1 - expected)


# Clusters


def test_the_index_is_the_share_of_pairs_over_that_of_random_labels():
    found = stability(Given(random_labels(3)), np.zeros((25, 1)), n_resamples=4, random_state=0)
    labels = []

    def recording(rng, n):
        labels.append(rng.integers(3, size=n))
        return labels[-1]

    again = stability(Given(recording), np.zeros((25, 1)), n_resamples=4, random_state=0)
    np.testing.assert_array_equal(found.agreements, again.agreements)
    predicted = np.array(labels).reshape(4, 4, 25)[:, 2:]  # two fits label their samples, then both label all rows
    expected = [agreement(a, b) for a, b in predicted]
    np.testing.assert_allclose(found.agreements, expected, rtol=1e-12)
    np.testing.assert_allclose(found.losses, 1 - np.array(expected))


@pytest.mark.parametrize("k", [2, 3, 8])
def test_labels_by_chance_have_the_loss_one_whatever_their_number(k):
    found = stability(Given(random_labels(k)), np.zeros((40, 1)), n_resamples=300, random_state=0)
    assert abs(found.mean) < ERRORS * found.standard_error
    assert found.standard_error < 0.01, "the comparison is sharp"


def test_the_same_labels_have_the_loss_zero_and_one_cluster_says_nothing():
    same = stability(Given(lambda rng, n: np.arange(n) % 3), np.zeros((12, 1)), n_resamples=3, random_state=0)
    assert same.losses.tolist() == [0.0, 0.0, 0.0]
    assert same.n_clusters.tolist() == [[3, 3]] * 3
    one = stability(Given(lambda rng, n: np.zeros(n, int)), np.zeros((12, 1)), n_resamples=3, random_state=0)
    assert np.isnan(one.agreements).all()
    assert np.isnan(Stability(np.array([0.5]), np.array([[2, 2]])).standard_error)


@pytest.mark.item("MSL-10")
@pytest.mark.filterwarnings("ignore:Components")  # of five components one may follow single rows
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("make", "halves"),
    [
        (KMeans, False),
        (KMeans, True),
        (lambda k: GaussianMixture(k, covariance_type="spherical", reg_covar=0.1), False),
        (lambda k: sklearn_cluster.KMeans(k, n_init=1), False),
        (lambda k: SklearnGaussianMixture(k, reg_covar=0.1), True),
        (lambda k: make_pipeline(StandardScaler(), KMeans(k)), False),
    ],
)
def test_the_true_number_of_groups_is_the_most_stable(make, halves, seed):
    X = triangle(seed)
    found = {k: stability(make(k), X, n_resamples=6, halves=halves, random_state=seed).mean for k in (2, 3, 4, 5)}
    assert max(found, key=found.get) == 3, found
    assert found[3] > 0.97


def test_clusterers_that_do_not_predict_are_compared_on_common_rows():
    X = triangle()
    found = stability(sklearn_cluster.AgglomerativeClustering(3), X, n_resamples=5, random_state=0)
    assert found.mean > 0.97
    with pytest.raises(ValueError, match="has no predict, and the samples share no rows: take bootstrap samples"):
        stability(sklearn_cluster.AgglomerativeClustering(3), X, halves=True)


def test_halves_share_no_row_and_bootstrap_samples_draw_with_replacement():
    seen = []

    class Spy(Given):
        def fit(self, X, y=None):
            seen.append(np.sort(X[:, 0]))
            return super().fit(X)

    X = np.arange(21.0)[:, None]
    stability(Spy(random_labels(2)), X, n_resamples=2, halves=True, random_state=0)
    for a, b in (seen[:2], seen[2:]):
        assert (len(a), len(b)) == (10, 11)
        assert np.array_equal(np.sort(np.concatenate([a, b])), X[:, 0])
    seen.clear()
    stability(Spy(random_labels(2)), X, n_resamples=200, random_state=0)
    assert {len(rows) for rows in seen} == {21}
    distinct = np.array([len(np.unique(rows)) for rows in seen])
    mean = 21 * (1 - (1 - 1 / 21) ** 21)  # rows that a bootstrap sample has, on average
    assert abs(distinct.mean() - mean) < ERRORS * distinct.std() / np.sqrt(len(distinct))


def test_weights_repeat_rows():
    X, weight = triangle(n=8), np.arange(24) % 3
    found = stability(KMeans(3), X, sample_weight=weight, n_resamples=4, random_state=0)
    expected = stability(KMeans(3), np.repeat(X, weight, axis=0), n_resamples=4, random_state=0)
    np.testing.assert_array_equal(found.agreements, expected.agreements)
    with pytest.raises(ValueError, match=r"whole numbers would be repetitions, but there is 0\.5"):
        stability(KMeans(3), X, sample_weight=np.full(24, 0.5))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_and_seeds_give_the_same_bits(n_jobs):
    X = triangle(n=10)
    with lemmata.config(n_threads=3):
        found = stability(KMedoids(4), X, n_resamples=3, random_state=3, n_jobs=n_jobs)
    assert found.agreements.tobytes() == stability(KMedoids(4), X, n_resamples=3, random_state=3).agreements.tobytes()
    other = stability(KMedoids(4), X, n_resamples=3, random_state=4)
    assert not np.array_equal(found.agreements, other.agreements)


def test_errors_say_what_to_do():
    with pytest.raises(ValueError, match="n_resamples must be a whole number of at least 1, got 0"):
        stability(KMeans(2), triangle(), n_resamples=0)
    with pytest.raises(ValueError, match="at least 4 rows to sample from, got 3"):
        stability(KMeans(2), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="StandardScaler has neither predict nor labels_"):
        stability(StandardScaler(), triangle())
    X, y = regression(0)
    for options, match in (
        ({"threshold": 0.5}, "threshold must be above 1/2 and at most 1, as the bound needs; got 0.5"),
        ({"n_resamples": 7}, "an even number of at least 2, as halves come in pairs; got 7"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
    ):
        with pytest.raises(ValueError, match=match):
            stability_selection(SklearnLasso(), X, y, **options)
    with pytest.raises(ValueError, match="neither coef_ nor feature_importances_ nor get_support, so it chooses no columns"):
        stability_selection(KMeans(2), X)


# Columns


def regression(seed, n=80, p=30, strong=(2, 11, 23), size=1.2):
    """Normal columns, correlated with their neighbors, of which a few matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
    return X, X[:, list(strong)] @ np.array([size, -size, size]) + rng.normal(size=n)


class Top(BaseEstimator):
    """The q columns most correlated with the target, without any fit: the simplest method that there is."""

    def fit(self, X, y):
        centered = X - X.mean(axis=0)
        self.coef_ = centered.T @ (y - y.mean()) / np.sqrt((centered**2).sum(axis=0))
        return self


def test_frequencies_are_those_of_halves_cut_by_hand():
    X, y = regression(0)
    halves = []

    class Spy(Top):
        def fit(self, X, y):
            halves.append((X.copy(), y.copy()))
            return super().fit(X, y)

    found = stability_selection(Spy(), X, y, n_features=4, n_resamples=20, random_state=0)
    chosen = np.zeros((20, 30), bool)
    for i, (rows, target) in enumerate(halves):
        assert len(rows) == 40
        correlations = [abs(np.corrcoef(rows[:, j], target)[0, 1]) for j in range(30)]
        chosen[i, np.argsort(correlations)[-4:]] = True
    for i in range(0, 20, 2):
        assert np.array_equal(np.sort(np.concatenate([halves[i][1], halves[i + 1][1]])), np.sort(y)), "halves of one cut"
    np.testing.assert_allclose(found.frequencies, chosen.mean(axis=0))
    np.testing.assert_allclose(found.simultaneous, (chosen[::2] & chosen[1::2]).mean(axis=0))
    assert found.n_chosen == 4
    assert found.expected_false == pytest.approx(16 / ((2 * 0.6 - 1) * 30))
    assert found.at(0.9).selected.tolist() == np.flatnonzero(chosen.mean(axis=0) >= 0.9).tolist()


@pytest.mark.item("MSL-10")
@pytest.mark.parametrize("threshold", [0.6, 0.75, 0.9])
def test_the_bound_holds_where_no_column_matters_and_is_not_idle(threshold):
    """Columns that are exchangeable and mean nothing: whatever is kept is kept in error."""
    q, p, wrong = 6, 60, []
    for seed in range(60):
        rng = np.random.default_rng([seed, 1])
        X, y, options = rng.normal(size=(60, p)), rng.normal(size=60), {"n_features": q, "n_resamples": 50}
        found = stability_selection(Top(), X, y, threshold=threshold, random_state=seed, **options)
        assert found.expected_false == pytest.approx(q**2 / ((2 * threshold - 1) * p))
        wrong.append(len(found.selected))
    error = np.std(wrong, ddof=1) / np.sqrt(len(wrong))
    assert np.mean(wrong) <= found.expected_false + ERRORS * error
    if threshold == 0.6:
        assert np.mean(wrong) > 0.02 * found.expected_false, "errors do happen"
        assert np.mean(wrong) < q / 2, "fewer than a single fit, which keeps all q in error"


@pytest.mark.item("MSL-10")
def test_the_bound_holds_for_the_lasso_among_columns_that_matter():
    strong, wrong, kept = {2, 11, 23}, [], []
    for seed in range(20):
        X, y = regression(seed)
        model = SklearnLasso(alpha=0.2)
        found = stability_selection(model, X, y, threshold=0.8, n_resamples=40, n_features=5, random_state=seed)
        wrong.append(len(set(found.selected.tolist()) - strong))
        kept.append(strong <= set(found.selected.tolist()))
        bound = found.expected_false
    assert np.mean(wrong) <= bound + ERRORS * np.std(wrong) / np.sqrt(len(wrong))
    assert np.mean(kept) > 0.9


@pytest.mark.parametrize(
    "model",
    [
        lemmata.linear_model.Lasso(alpha=0.2),
        make_pipeline(StandardScaler(), SklearnLasso(alpha=0.2)),
        ExtraTreesRegressor(20, max_depth=4),
        LinearRegression(),
    ],
)
def test_whatever_has_coefficients_or_importances_will_do(model):
    X, y = regression(1, n=200, size=2.0)
    found = stability_selection(model, X, y, threshold=0.9, n_features=4, n_resamples=20, random_state=0)
    assert set(found.selected.tolist()) == {2, 11, 23}
    again = stability_selection(model, X, y, threshold=0.9, n_features=4, n_resamples=20, random_state=0)
    assert np.array_equal(found.chosen, again.chosen)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(SelectKBest(f_regression, k=3), StandardScaler(), LinearRegression()),
        make_pipeline(StandardScaler(), VarianceThreshold(), SelectKBest(f_regression, k=5), SklearnLasso(alpha=0.3)),
        make_pipeline(SelectFromModel(SklearnLasso(alpha=0.4)), LinearRegression()),
        SelectKBest(f_regression, k=3),
        RFE(LinearRegression(), n_features_to_select=3),
    ],
)
def test_what_a_step_leaves_out_is_not_chosen_and_numbers_are_those_of_the_table(model):
    X, y = regression(1, n=200, size=2.0)
    X[:, 7] = 1.0  # left out by the threshold, so that later numbers shift
    found = stability_selection(model, X, y, threshold=0.9, n_resamples=20, random_state=0)
    assert found.chosen.shape == (10, 2, 30)
    assert set(found.selected.tolist()) == {2, 11, 23}
    assert not found.chosen[..., 7].any()


def test_a_choice_among_columns_that_are_made_anew_afterwards_is_refused():
    X, y = regression(1, p=24)
    made = stability_selection(make_pipeline(PolynomialFeatures(1), LinearRegression()), X, y, n_resamples=2, random_state=0)
    assert made.chosen.shape[2] == 25
    model = make_pipeline(SelectKBest(f_regression, k=3), PolynomialFeatures(2), LinearRegression())
    with pytest.raises(ValueError, match="SelectKBest chooses columns of which PolynomialFeatures makes others"):
        stability_selection(model, X, y, n_resamples=2)
    with pytest.raises(ValueError, match="SelectKBest says itself how many columns it chooses: leave n_features out"):
        stability_selection(SelectKBest(f_regression, k=3), X, y, n_features=2, n_resamples=2)


def test_a_column_counts_once_however_many_classes_it_matters_to():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 12))
    y = X[:, [1, 4, 9]].argmax(axis=1)
    model = SklearnLogisticRegression(C=0.1, l1_ratio=1.0, solver="saga", max_iter=2000)
    found = stability_selection(model, X, y, threshold=0.9, n_resamples=20, random_state=0)
    assert set(found.selected.tolist()) == {1, 4, 9}
    assert 3 <= found.n_chosen <= 12


def test_rows_of_weight_zero_are_in_no_half():
    X, y = regression(2, n=240)
    weight = (np.arange(240) % 4 > 0).astype(float)
    X[weight == 0], y[weight == 0] = 1e6, -1e6
    found = stability_selection(LinearRegression(), X, y, n_features=3, sample_weight=weight, threshold=0.6, random_state=0)
    assert {2, 11, 23} <= set(found.selected.tolist())


def test_the_bound_by_hand():
    chosen = np.zeros((1, 2, 10), bool)
    chosen[0, 0, :3] = chosen[0, 1, 2:4] = True
    found = StabilitySelection(chosen, 1.0)
    assert found.selected.tolist() == [2]
    assert found.n_chosen == 2.5
    assert found.expected_false == pytest.approx(0.625)
