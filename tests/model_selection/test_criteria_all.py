"""Every estimator of the library has criteria, or says in a sentence that it has none and what to do: nothing is forgotten."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import xlogy
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

import lemmata
from contracts.problems import problem
from lemmata.graphical import BayesNet, LogLinearModel
from lemmata.hmm import CategoricalHMM, GaussianHMM, HMMClassifier
from lemmata.markov import MarkovChain
from lemmata.mixture import CategoricalMixture
from lemmata.model_selection import information_criteria
from lemmata.model_selection.likelihoods.account import REASONS
from lemmata.recommend import ProbabilisticMatrixFactorization
from lemmata.state_space import LinearGaussianModel
from lemmata.topic import PLSA, LatentDirichletAllocation

CLASSES = dict(lemmata.all_estimators())
WITHOUT = {name for name, cls in CLASSES.items() if any(parent.__name__ in REASONS for parent in cls.__mro__)}
# What is tested below, on data of its own.
OWN = {
    "BayesNet",
    "HMMClassifier",
    "LinearGaussianModel",
    "LogLinearModel",
    "MarkovChain",
    "ProbabilisticMatrixFactorization",
}
# What has criteria only with some settings, or would fit the rows of the problem exactly.
SETTINGS = {
    "SGDClassifier": {"loss": "log_loss", "alpha": 0.1},
    "DecisionTreeClassifier": {"max_leaf_nodes": 5},
    "DecisionTreeRegressor": {"max_leaf_nodes": 5},
}
# A few steps are enough to count and to add up logarithms.
FEW = {"max_iter", "n_iter"}
# Those that know the likelihood of the rows of the fit only.
OF_THE_FIT = {"GaussianProcessClassifier", "GaussianProcessRegressor"}
UNWEIGHTED = {"CategoricalHMM", "GaussianHMM"}


def fitted(name):
    p = problem(CLASSES[name])
    p.model.set_params(**SETTINGS.get(name, {}))
    if name == "SGDClassifier":
        p = p._replace(y=(p.y == p.y[0]).astype(int))
    if "max_leaf_nodes" not in SETTINGS.get(name, {}) and "hidden_layer_sizes" not in p.model.get_params():
        p.model.set_params(**dict.fromkeys(FEW & set(p.model.get_params()), 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return p, p.fit()


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_those_without_say_so(name):
    model = object.__new__(CLASSES[name])  # it need not be fitted to be refused
    with pytest.raises(ValueError, match=rf"^{name} has no information criterion, because .*cross-validation\)\.$"):
        information_criteria(model, [[0.0]])


@pytest.mark.item("MSL-05", "MSL-06", "MSL-07")
@pytest.mark.parametrize("name", sorted(set(CLASSES) - WITHOUT - OWN))
def test_all_others_have_criteria(name):
    p, model = fitted(name)
    found = information_criteria(model, p.X, p.y)
    L, K, N = found.log_likelihood, found.n_parameters, found.n_rows
    assert math.isfinite(L)
    assert K > 0
    assert found.aic == pytest.approx(2 * K - 2 * L, rel=1e-12)
    assert found.bic == pytest.approx(K * math.log(N) - 2 * L, rel=1e-12)
    assert all(count > 0 for count in found.counted.values())
    for criterion in ("aic", "bic"):
        if hasattr(model, criterion):
            assert getattr(found, criterion) == pytest.approx(getattr(model, criterion)(p.X), rel=1e-12)
    if hasattr(model, "_n_parameters"):
        assert model._n_parameters() == K
    if name in OF_THE_FIT:
        return
    # A weight means repetition, and a row of weight zero is not there.
    repeats = np.arange(len(p.X)) % 3
    rows = np.repeat(np.arange(len(p.X)), repeats)
    y = None if p.y is None else p.y[rows]
    if name in UNWEIGHTED:
        with pytest.raises(ValueError, match="takes no sample_weight"):
            information_criteria(model, p.X, sample_weight=repeats)
        return
    several = information_criteria(model, p.X[rows], y)
    weighted = information_criteria(model, p.X, p.y, sample_weight=repeats)
    for value in ("log_likelihood", "n_parameters", "n_rows", "aic", "bic"):
        assert getattr(weighted, value) == pytest.approx(getattr(several, value), rel=1e-8), value  # sums in another order
    assert several.log_likelihood != found.log_likelihood


def test_weights_reach_the_evidence_of_processes():
    p = problem(CLASSES["GaussianProcessRegressor"], n=20)
    repeats = 1 + np.arange(20) % 2
    rows = np.repeat(np.arange(20), repeats)
    model = p.model.set_params(optimizer=None, noise=0.5)
    weighted = information_criteria(model.fit(p.X, p.y, sample_weight=repeats), p.X, p.y, sample_weight=repeats)
    several = information_criteria(model.fit(p.X[rows], p.y[rows]), p.X[rows], p.y[rows])
    assert weighted.aic == pytest.approx(several.aic, rel=1e-9)
    assert has_fit_parameter(model, "sample_weight")


@pytest.mark.item("MSL-07")
def test_hidden_chains_count_with_lengths():
    rng = np.random.default_rng(0)
    rows, lengths = rng.integers(0, 3, (40, 1)), [10, 25, 5]
    model = CategoricalHMM(2, n_iter=20, tol=1e-3, random_state=0).fit(rows, lengths=lengths)
    found = information_criteria(model, rows, lengths=lengths)
    assert found.n_parameters == 1 + 2 + 2 * 2
    assert found.bic == pytest.approx(model.bic(rows, lengths=lengths), rel=1e-12)
    assert found.log_likelihood == pytest.approx(model.score(rows, lengths=lengths), rel=1e-12)
    assert found.log_likelihood != pytest.approx(information_criteria(model, rows).log_likelihood)
    # one state is a Gaussian, and two classes of it are two
    sequences, y = [rng.normal(size=(6, 2)) + 3 * c for c in (0, 1, 0, 1)], np.array(["a", "b", "a", "b"])
    chains = HMMClassifier(GaussianHMM(1, covariance_type="full", min_covar=0.0)).fit(sequences, y)
    found = information_criteria(chains, sequences, y)
    exact = 0.0
    for label in "ab":
        own = np.vstack([s for s, c in zip(sequences, y, strict=True) if c == label])
        exact += multivariate_normal(own.mean(axis=0), np.cov(own.T, bias=True)).logpdf(own).sum() + 2 * np.log(0.5)
    assert found.log_likelihood == pytest.approx(exact, rel=1e-6)  # where EM stops
    assert found.n_parameters == 2 * (2 + 3)
    assert found.n_rows == 24
    with pytest.raises(ValueError, match="one label for each of the 4"):
        information_criteria(chains, sequences)


def test_markov_chains():
    sequence = np.array(["a", "b", "c"])[np.random.default_rng(5).integers(0, 3, 200)]
    for order in (1, 2):
        model = MarkovChain(order=order).fit(sequence)
        found = information_criteria(model, sequence)
        assert (found.aic, found.bic) == pytest.approx((model.aic(sequence), model.bic(sequence)), rel=1e-12)
        assert found.n_parameters == 3**order * 2 + 3**order - 1
        assert (found.n_rows, found.unit) == (200, "symbols")


def test_priors_that_hold_parameters_back_are_told():
    rng = np.random.default_rng(5)
    rows, symbols = rng.normal(size=(60, 1)), rng.integers(0, 3, (60, 1))
    hmm = {"n_iter": 20, "tol": 1e-3, "random_state": 0}
    for plain, held, X in (
        (MarkovChain(), MarkovChain(alpha=0.5), symbols[:, 0]),
        (GaussianHMM(2, **hmm), GaussianHMM(2, transmat_prior=3.0, **hmm), rows),
        (CategoricalHMM(2, **hmm), CategoricalHMM(2, emissionprob_prior=2.0, **hmm), symbols),
        (
            CategoricalMixture(2, max_iter=50, tol=1e-3, random_state=0),
            CategoricalMixture(2, alpha=1.0, random_state=0),
            symbols,
        ),
    ):
        told = [any("prior holds parameters back" in s for s in information_criteria(m.fit(X), X).note) for m in (plain, held)]
        assert told == [False, True], type(plain).__name__


def test_state_space_models_count_what_was_free():
    rng = np.random.default_rng(1)
    series = np.cumsum(rng.normal(size=30))[:, None] + rng.normal(size=(30, 1))
    given = LinearGaussianModel(1.0, [[1.0]], 1.0, 1.0)
    found = information_criteria(given, series)
    C = np.minimum.outer(np.arange(1, 31), np.arange(1, 31)) + 1.0 + np.eye(30)  # a walk from a normal start, and noise
    assert found.log_likelihood == pytest.approx(multivariate_normal(np.zeros(30), C).logpdf(series[:, 0]), rel=1e-9)
    assert (found.n_parameters, found.n_rows) == (0, 30)
    fitted = LinearGaussianModel(1.0, [[1.0]], 1.0, 1.0, tol=1e-6).fit(series)
    assert information_criteria(fitted, series).counted == {"transition_covariance": 1, "observation_covariance": 1}
    two = LinearGaussianModel(np.eye(2), np.eye(2), np.eye(2), np.eye(2), max_iter=3, tol=1.0)
    several = [rng.normal(size=(8, 2)), rng.normal(size=(5, 2))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = information_criteria(two.fit(several), several)
    assert found.counted == {"transition_covariance": 3, "observation_covariance": 3}
    assert found.n_rows == 13


def test_graphs():
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 60)
    data = {"a": a, "b": (a + rng.integers(0, 2, 60)) % 3}
    weight = rng.integers(0, 3, 60)
    net = BayesNet({"a": [], "b": ["a"]}).fit(data, sample_weight=weight)
    found = information_criteria(net, data, sample_weight=weight)
    table = np.zeros((2, 3))
    np.add.at(table, (data["a"], data["b"]), weight)
    shares = table[table > 0] / table.sum()
    assert found.log_likelihood == pytest.approx(table.sum() * (shares @ np.log(shares)), rel=1e-9)
    assert (found.n_parameters, found.n_rows) == (1 + 2 * 2, weight.sum())
    assert found.bic == pytest.approx(net.bic(data, sample_weight=weight), rel=1e-12)
    model = LogLinearModel([(("a", "b"), "indicator")], l2=1e-3).fit(data, sample_weight=weight)
    found = information_criteria(model, data, sample_weight=weight)
    assert found.n_parameters == 5
    assert found.aic == pytest.approx(model.aic(data, sample_weight=weight), rel=1e-12)


@pytest.mark.item("MSL-07")
def test_ratings_count_the_factors_of_users_and_items():
    rng = np.random.default_rng(3)
    pairs = np.array([(u, i) for u in range(12) for i in range(9)])
    stars = rng.normal(size=108) + pairs[:, 0]
    plain = ProbabilisticMatrixFactorization(2, biases=False, tol=1e-3, random_state=0).fit(pairs, stars)
    found = information_criteria(plain, pairs, stars)
    assert (found.n_parameters, found.n_rows, found.unit) == ((12 + 9) * 2, 108, "ratings")
    variance = np.mean((stars - plain.predict(pairs)) ** 2)
    assert found.log_likelihood == pytest.approx(-54 * (np.log(2 * np.pi * variance) + 1), rel=1e-9)
    biased = ProbabilisticMatrixFactorization(2, tol=1e-3, random_state=0).fit(pairs, stars)
    assert information_criteria(biased, pairs, stars).n_parameters == (12 + 9) * 3 + 1
    weight = 1.0 + np.arange(108) % 2
    weighted = information_criteria(plain, pairs, stars, sample_weight=weight)
    rows = np.repeat(np.arange(108), weight.astype(int))
    assert weighted.bic == pytest.approx(information_criteria(plain, pairs[rows], stars[rows]).bic, rel=1e-9)
    clicks = ProbabilisticMatrixFactorization(2, implicit=True, max_iter=2, tol=1.0).fit(pairs, np.abs(stars))
    with pytest.raises(ValueError, match="implicit"):
        information_criteria(clicks, pairs, np.abs(stars))


def test_topics():
    X = np.random.default_rng(4).poisson(3.0, size=(20, 5)).astype(float)
    model = PLSA(2, tol=1e-3, random_state=0).fit(X)
    found = information_criteria(model, X)
    chances = model.transform(X) @ model.components_
    assert found.log_likelihood == pytest.approx(xlogy(X, chances).sum(), rel=1e-9)
    assert (found.n_parameters, found.n_rows, found.unit) == (20 + 2 * 4, X.sum(), "words")
    model = LatentDirichletAllocation(2, tol=1e-2, random_state=0).fit(X)
    found = information_criteria(model, X)
    assert found.log_evidence == pytest.approx(model.bound_, rel=1e-6) == pytest.approx(model.score(X), rel=1e-12)
    assert found.log_likelihood > found.log_evidence  # topics still have to be paid for
    assert any("lower bound" in sentence for sentence in found.note)
    assert found.n_parameters == 2 * 4
