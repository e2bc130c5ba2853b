"""Information criteria: the numbers of the notes, what AIC and BIC estimate, and what counts as a parameter."""

import json
import math

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import norm
from sklearn import linear_model as sk_linear
from sklearn.base import BaseEstimator
from sklearn.mixture import GaussianMixture as SkGaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from lemmata.decision import Decide
from lemmata.decomposition import NMF
from lemmata.linear_model import BayesianLinearRegression, LinearRegression, LogisticRegression, Ridge
from lemmata.mixture import BinomialMixture, GaussianMixture
from lemmata.model_selection import InformationCriteria, information_criteria
from lemmata.model_selection.parameter_counts import factorization_parameters, identified_parameters

COINS = np.array([[5.0], [9.0], [8.0], [4.0], [7.0]])  # heads in five times ten tosses


def draw_line(seed, n=40, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.2][:d] + 5
    return X, X @ rng.normal(size=d) + rng.normal(size=n)


@pytest.mark.item("MSL-05", "MSL-06")
def test_the_two_coins_of_the_notes():
    coins = BinomialMixture(2, n_trials=10, fit_weights=False, probabilities_init=[[0.6], [0.5]]).fit(COINS)
    found = information_criteria(coins, COINS)
    ways = (gammaln(11) - gammaln(COINS + 1) - gammaln(11 - COINS)).sum()  # the notes' rows are tosses in their order
    assert found.n_parameters == 2
    assert found.n_rows == 5
    assert found.log_likelihood - ways == pytest.approx(-31.570200, abs=5e-7)
    assert found.half_aic + ways == pytest.approx(33.570200, abs=5e-7)
    assert found.half_bic + ways == pytest.approx(33.179638, abs=5e-7)
    declared = information_criteria(coins, COINS, n=50)
    assert declared.half_bic + ways == pytest.approx(35.482223, abs=5e-7)
    assert declared.aic == found.aic


@pytest.mark.item("MSL-07")
def test_penalties_of_factorizations():
    for shape, R, aic, bic in (((100, 50), 5, 750.0, 3193.947447), ((4, 3), 2, 14.0, 17.394347)):
        K = factorization_parameters(*shape, R)
        assert aic == K
        assert K / 2 * np.log(np.prod(shape)) == pytest.approx(bic, abs=5e-7)
        X = np.random.default_rng(0).gamma(2.0, size=shape)
        found = information_criteria(NMF(R, max_iter=3, tol=1.0, random_state=0).fit(X), X)
        assert found.half_aic + found.log_likelihood == pytest.approx(aic, rel=1e-12)
        assert found.half_bic + found.log_likelihood == pytest.approx(bic, abs=5e-7)


@pytest.mark.item("MSL-05", "MSL-06")
def test_both_scales_give_one_order():
    X, y = draw_line(0)
    found = [information_criteria(Ridge(a).fit(X, y), X, y) for a in (1e-3, 0.1, 1.0, 10.0, 1e3)]
    for usual, half in (("aic", "half_aic"), ("bic", "half_bic")):
        values = np.array([[getattr(c, usual), getattr(c, half)] for c in found])
        assert (np.argsort(values[:, 0]) == np.argsort(values[:, 1])).all()
        assert values[:, 0] == pytest.approx(2 * values[:, 1], rel=1e-14)
    for c in found:
        L, K, N = c.log_likelihood, c.n_parameters, c.n_rows
        assert c.half_aic == pytest.approx(-L + K, rel=1e-14)
        assert c.half_bic == pytest.approx(-L + K * math.log(N) / 2, rel=1e-14)
        assert c.aicc == pytest.approx(c.aic + 2 * K * (K + 1) / (N - K - 1), rel=1e-14)


@pytest.mark.item("MSL-05")
def test_criteria_estimate_the_deviance_of_new_rows():
    """For normal regression AICc is unbiased exactly [Hurvich & Tsai]; AIC falls short by 2K(K + 1)/(N − K − 1).

    New targets at the same rows, whose expected deviance has a closed form given the fit. Level: 4.5 standard errors, which a
    right estimate misses 7 times in a million; AIC itself is off by far more.
    """
    rng = np.random.default_rng(5)
    n, d = 20, 3
    X = rng.normal(size=(n, d))
    truth, gaps = X @ [1.0, -1.0, 0.5], []
    for _ in range(1500):
        y = truth + rng.normal(size=n)
        model = LinearRegression().fit(X, y)
        found = information_criteria(model, X, y)
        variance = np.mean((y - model.predict(X)) ** 2)
        new = n * np.log(2 * np.pi * variance) + (n + ((model.predict(X) - truth) ** 2).sum()) / variance
        gaps.append((new - found.aicc, new - found.aic))
    mean, error = np.mean(gaps, axis=0), np.std(gaps, axis=0) / np.sqrt(len(gaps))
    K = d + 2
    assert abs(mean[0]) < 4.5 * error[0]
    assert abs(mean[1] - 2 * K * (K + 1) / (n - K - 1)) < 4.5 * error[1]
    assert mean[1] > 4.5 * error[1]


@pytest.mark.item("MSL-05")
def test_aic_of_a_mixture_estimates_the_deviance_of_new_rows():
    """With as many rows that first order is enough; the level is 4.5 standard errors, and 2K = 10 is many of them."""
    rng = np.random.default_rng(6)
    gaps = []
    for seed in range(40):
        rows, new = (np.where(rng.random((800, 1)) < 0.4, -3.0, 3.0) + rng.normal(size=(800, 1)) for _ in range(2))
        model = GaussianMixture(2, reg_covar=0.0, tol=1e-8, random_state=seed).fit(rows)
        truth = [np.logaddexp(np.log(0.4) + norm(-3).logpdf(r), np.log(0.6) + norm(3).logpdf(r)).sum() for r in (rows, new)]
        # both relative to the law that drew them, whose chance is the same in both and much larger than what is looked for
        found = information_criteria(model, rows)
        assert found.n_parameters == 5
        gaps.append(-2 * (model.score(new) * 800 - truth[1]) - (found.aic + 2 * truth[0]))
    error = np.std(gaps) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps)) < 4.5 * error
    assert 4.5 * error < 10


@pytest.mark.item("MSL-06")
@pytest.mark.parametrize("seed", [0, 1])
def test_bic_misses_the_exact_evidence_by_a_bounded_number(seed):
    """Ln p(y) + BIC/2 → ln p(θ) + ½d ln 2π − ½ ln|C|: with x of covariance C, unit noise and the prior N(0, λ⁻¹I)."""
    rng = np.random.default_rng(seed)
    d, precision, theta = 3, 0.5, np.array([1.0, -0.5, 0.3])
    root = np.diag([1.0, 2.0, 0.5])
    limit = d / 2 * np.log(precision) - precision * theta @ theta / 2 - np.log(np.linalg.det(root))
    misses = []
    for n in (100, 1000, 10_000, 100_000):
        X = rng.normal(size=(n, d)) @ root
        y = X @ theta + rng.normal(size=n)
        found = information_criteria(BayesianLinearRegression(precision, 1.0, fit_intercept=False).fit(X, y), X, y)
        misses.append(found.log_evidence + found.half_bic - limit)
        assert found.log_evidence == pytest.approx(-found.half_bic + limit, abs=1.0)  # while both grow by thousands
    assert abs(misses[-1]) < 0.02  # the rest falls like the root of 1/n: 0.003 for C, and less for θ
    assert found.half_bic > 1e5


@pytest.mark.item("MSL-06")
def test_bic_and_evidence_agree_about_the_columns_that_matter():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 4))
    y = X[:, :2] @ [0.3, -0.2] + rng.normal(size=3000)
    found = [
        information_criteria(BayesianLinearRegression(1.0, 1.0, fit_intercept=False).fit(X[:, :k], y), X[:, :k], y)
        for k in (1, 2, 3, 4)
    ]
    assert np.argmin([c.bic for c in found]) == np.argmax([c.log_evidence for c in found]) == 1


# What counts as a parameter: the rank of the Fisher information, from densities that are written out here.


def mixture_logs(rows, k, d):
    def logs(theta):
        weights, means, roots = theta[:k], theta[k : k + k * d].reshape(k, d), theta[k + k * d :].reshape(k, d, d)
        parts = []
        for w, m, A in zip(weights / weights.sum(), means, roots, strict=True):
            S = A @ A.T  # d² numbers for d(d + 1)/2 that matter
            away = rows - m
            parts.append(np.log(w) - 0.5 * ((away @ np.linalg.inv(S)) * away).sum(axis=1) - 0.5 * np.linalg.slogdet(S)[1])
        return np.logaddexp.reduce(parts, axis=0)

    return logs


@pytest.mark.item("MSL-07")
@pytest.mark.parametrize(("k", "d"), [(1, 2), (2, 2), (3, 1), (2, 3)])
def test_the_count_of_a_mixture_is_the_rank_of_its_information(k, d):
    rng = np.random.default_rng(10 * k + d)
    roots = np.eye(d) + 0.3 * rng.normal(size=(k, d, d))
    theta = np.concatenate([rng.uniform(0.5, 1.0, k), 2 * rng.normal(size=k * d), roots.ravel()])
    rows = 2 * rng.normal(size=(300, d))
    count = (k - 1) + k * d + k * d * (d + 1) // 2
    assert identified_parameters(mixture_logs(rows, k, d), theta) == count < len(theta)
    assert information_criteria(GaussianMixture(k, random_state=0).fit(rows), rows).n_parameters == count


def chain_logs(sequences, S, V):
    def logs(theta):
        start, moves, emit = theta[:S], theta[S : S + S * S].reshape(S, S), theta[S + S * S :].reshape(S, V)
        start, moves, emit = start / start.sum(), moves / moves.sum(axis=1)[:, None], emit / emit.sum(axis=1)[:, None]
        found = []
        for sequence in sequences:
            forward = start * emit[:, sequence[0]]
            for symbol in sequence[1:]:
                forward = (forward @ moves) * emit[:, symbol]
            found.append(np.log(forward.sum()))
        return np.array(found)

    return logs


@pytest.mark.item("MSL-07")
@pytest.mark.parametrize(("S", "V"), [(2, 3), (2, 4), (3, 4)])
def test_the_count_of_a_hidden_chain_is_the_rank_of_its_information(S, V):
    from lemmata.hmm import CategoricalHMM

    rng = np.random.default_rng(S + V)
    theta = rng.uniform(0.2, 1.0, S + S * S + S * V)
    theta[S : S + S * S] += 2 * np.eye(S).ravel()
    sequences = [rng.integers(0, V, rng.integers(4, 8)) for _ in range(150)]
    count = (S - 1) + S * (S - 1) + S * (V - 1)
    assert identified_parameters(chain_logs(sequences, S, V), theta) == count < len(theta)
    rows, lengths = np.concatenate(sequences)[:, None], [len(s) for s in sequences]
    model = CategoricalHMM(S, n_features=V, n_iter=3, tol=1.0, random_state=0).fit(rows, lengths=lengths)
    assert information_criteria(model, rows, lengths=lengths).n_parameters == count


@pytest.mark.item("MSL-07")
@pytest.mark.parametrize(("shape", "R"), [((6, 5), 1), ((6, 5), 2), ((7, 8), 3)])
def test_the_count_of_a_factorization_has_r_squared_too_many(shape, R):
    """Where all entries of W and H are positive; (WA)(A⁻¹H) is the same table for every A near I."""
    rng = np.random.default_rng(R)
    M, N = shape
    X, theta = rng.gamma(2.0, size=shape), rng.uniform(0.5, 1.5, (M + N) * R)

    def logs(theta):
        return -0.5 * (X - theta[: M * R].reshape(M, R) @ theta[M * R :].reshape(R, N)).ravel() ** 2

    assert identified_parameters(logs, theta) == factorization_parameters(M, N, R) - R**2


# The shell: what is asked for, told, and refused.


def test_wrapping_is_taken_off():
    X, y = draw_line(2)
    plain = information_criteria(LinearRegression().fit(X, y), X, y)
    pipeline = information_criteria(make_pipeline(StandardScaler(), LinearRegression()).fit(X, y), X, y)
    assert pipeline.aic == pytest.approx(plain.aic, rel=1e-10)  # the same lines, from other columns
    assert pipeline.counted == plain.counted
    assert any("StandardScaler" in sentence for sentence in pipeline.note)
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 10.0]}, cv=3).fit(X, y)
    best = information_criteria(search.best_estimator_, X, y)
    assert information_criteria(search, X, y) == best
    labels = (y > np.median(y)).astype(int)
    inner = LogisticRegression().fit(X, labels)
    acting = Decide(LogisticRegression(), [[0, 1], [5, 0]]).fit(X, labels)
    assert information_criteria(acting, X, labels).bic == pytest.approx(information_criteria(inner, X, labels).bic, rel=1e-9)


def test_the_same_as_scikit_learn_where_it_has_criteria():
    X = np.random.default_rng(3).normal(size=(80, 2)) + np.repeat([[0.0], [4.0]], 40, axis=0)
    theirs = SkGaussianMixture(2, random_state=0).fit(X)
    found = information_criteria(theirs, X)
    assert (found.aic, found.bic) == pytest.approx((theirs.aic(X), theirs.bic(X)), rel=1e-12)
    # LassoLarsIC takes a variance that is given: n ln 2πσ² + RSS/σ² + 2 df
    X, y = draw_line(4, n=60)
    lars = sk_linear.LassoLarsIC("aic", noise_variance=1.0).fit(X, y)
    found = information_criteria(lars, X, y)
    rss = ((y - lars.predict(X)) ** 2).sum()
    degrees = found.counted["coefficients"] + 1
    place = np.argmin(lars.criterion_)
    # scikit-learn does not count the intercept
    assert lars.criterion_[place] == pytest.approx(60 * np.log(2 * np.pi) + rss + 2 * (degrees - 1), rel=1e-10)
    assert found.log_likelihood == pytest.approx(-30 * (np.log(2 * np.pi * rss / 60) + 1), rel=1e-12)


class Foreign(BaseEstimator):
    """As hmmlearn's models are: `score` of all sequences, and `aic` of its own count."""

    def __init__(self, count=7):
        self.count = count

    def __sklearn_is_fitted__(self):
        return True

    def fit(self, X):
        return self

    def score(self, X, lengths=None):
        return -100.25 if lengths == [2, 1] else -50.0

    def aic(self, X, lengths=None):
        return 2 * self.count - 2 * self.score(X, lengths)

    def decode(self, X):
        raise NotImplementedError


def test_models_of_others_are_asked_for_their_own_count():
    found = information_criteria(Foreign(), np.zeros((3, 1)), lengths=[2, 1])
    assert (found.log_likelihood, found.n_parameters, found.n_rows) == (-100.25, 7, 3.0)
    assert found.bic == pytest.approx(200.5 + 7 * np.log(3), rel=1e-14)


def test_tables_and_plain_values():
    X, y = draw_line(5)
    found = information_criteria(Ridge("evidence").fit(X, y), X, y)
    text, page = str(found), found._repr_html_()
    for word in ("AIC", "AICc", "BIC", "−2 ln evidence", "hat matrix", "noise variance", "N = 40 rows"):
        assert word in text
        assert word in page
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["bic"] == found.bic
    assert plain["counted"]["noise variance"] == 1
    full = InformationCriteria(-1.0, {"means": 4}, 5)
    assert full.aicc == math.inf
    assert full.to_dict()["aicc"] is None
    assert "∞" in str(full)
    assert len(information_criteria(LinearRegression().fit(X, y), X, y).note) == 1


def test_what_cannot_be_meant_is_refused():
    X, y = draw_line(6)
    model = LinearRegression().fit(X, y)
    with pytest.raises(ValueError, match="give y"):
        information_criteria(model, X)
    with pytest.raises(ValueError, match="n must be a positive number"):
        information_criteria(model, X, y, n=0)
    with pytest.raises(ValueError, match="one target"):
        information_criteria(model, X, y[:-1])
    with pytest.raises(ValueError, match="at least one non-zero"):
        information_criteria(model, X, y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="lengths are for hidden Markov models"):
        information_criteria(model, X, y, lengths=[40])
    with pytest.raises(ValueError, match="rows in memory"):
        information_criteria(model, "rows.parquet", "target")
    with pytest.raises(ValueError, match="not fitted yet"):
        information_criteria(LinearRegression(), X, y)
    with pytest.raises(ValueError, match="fits these rows exactly"):
        information_criteria(LinearRegression().fit(X[:3], y[:3]), X[:3], y[:3])
    labels = (y > np.median(y)).astype(int)
    classifier = LogisticRegression().fit(X, labels)
    with pytest.raises(ValueError, match="label 7"):
        information_criteria(classifier, X, np.where(labels, 7, 0))
    with pytest.raises(ValueError, match=r"KNeighborsClassifier has no information criterion.*cross-validation"):
        information_criteria(KNeighborsClassifier(), X, labels)
    with pytest.raises(ValueError, match="no likelihood of it is known here"):
        information_criteria(sk_linear.HuberRegressor(), X, y)
