"""The kernel perceptron: the perceptron of explicit features, Novikoff's bound, weights, and a certificate that refuses."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_circles, make_moons
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.kernels import RBF, Linear, Polynomial, feature_map, finite_features
from lemmata.linear_model import Perceptron
from lemmata.linear_model.hard_margin import hard_margin
from lemmata.svm import KernelPerceptron, kernel_mistakes

SEEDS = range(3)


def rings(seed, n=120, k=2):
    """Draw classes on rings, which no line separates."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    turn, radius = rng.uniform(0, 2 * np.pi, n), 1 + y + rng.uniform(-0.3, 0.3, n)
    return np.column_stack([radius * np.cos(turn), radius * np.sin(turn)]), y


def slow(K, signs, weight=None, margin=0.0, epochs=1000):
    """Learn from mistakes one visit at a time: a twin to read. Returns counts and the average coefficients."""
    weight = np.ones(len(K)) if weight is None else weight
    c, total, visited = np.zeros(len(K)), np.zeros(len(K)), 0.0
    for _ in range(epochs):
        mistaken = False
        for i in range(len(K)):
            left = weight[i]
            while left > 0:
                part = min(left, 1.0)
                if signs[i] * (K[i] @ (c * signs)) <= margin:
                    c[i] += part
                    mistaken = True
                total, visited = total + part * c, visited + part
                left -= part
        if not mistaken:
            break
    return c, total / visited


@pytest.mark.item("KRN-09")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [Polynomial(2), Polynomial(3, 0.5, gamma=0.3), (Linear() + 1.0) ** 2], ids=repr)
def test_it_is_the_perceptron_of_the_features(seed, k):
    X, y = rings(seed)
    ours = KernelPerceptron(k, shuffle=False).fit(X, y)
    theirs = Perceptron(shuffle=False, fit_intercept=False).fit(feature_map(k, X), y)
    assert np.array_equal(ours.mistakes_, theirs.mistakes_)
    assert ours.n_mistakes_ == theirs.n_mistakes_
    assert ours.n_iter_ == theirs.n_iter_
    new = rings(seed + 10)[0]
    scores = theirs.decision_function(feature_map(k, new))
    np.testing.assert_allclose(ours.decision_function(new), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())


@pytest.mark.item("KRN-09")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("margin", [0.0, 0.5])
def test_novikoffs_bound(seed, margin):
    X, y = rings(seed)
    model = KernelPerceptron(gamma=2.0, margin=margin, random_state=seed).fit(X, y)
    assert model.converged_
    K, signs = RBF(gamma=2.0)(X), np.where(y == 1, 1.0, -1.0)
    assert (signs * model.decision_function(X) > margin).all()
    widest = hard_margin(signs[:, None] * finite_features(K))
    assert model.n_mistakes_ <= (K.diagonal().max() + 2 * margin) / widest.lower**2
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    # the margin that was found is not above the widest, so that the stated bound is no smaller than Novikoff's
    assert certificate["mistake bound"].value <= model.n_mistakes_ * widest.upper**2 / (1 + 2 * margin) * (1 + 1e-9)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_equals_a_slow_twin(average, weighted):
    X, y = rings(5, n=40)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0, 2.25], 40) if weighted else None
    model = KernelPerceptron(gamma=1.5, shuffle=False, average=average, margin=0.1).fit(X, y, weight)
    signs = np.where(y == 1, 1.0, -1.0)
    counts, mean = slow(RBF(gamma=1.5)(X), signs, weight, margin=0.1)
    np.testing.assert_allclose(model.mistakes_, counts, rtol=1e-12)
    expected = RBF(gamma=1.5)(X) @ (signs * (mean if average else counts))
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-9, atol=1e-9)
    assert model.certify(X, y, weight).holds


@pytest.mark.parametrize("weighted", [False, True])
def test_the_vote_of_all_weights_that_there_ever_were(weighted):
    X, y = rings(6, n=40)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0, 3.0], 40) if weighted else np.ones(40)
    model = KernelPerceptron(gamma=1.0, shuffle=False, voted=True).fit(X, y, weight)
    new = rings(7, n=30)[0]
    # a slow twin: keep every vector of counts, and vote with the one in use at each visit
    K, signs, c, votes = RBF(gamma=1.0)(X), np.where(y == 1, 1.0, -1.0), np.zeros(40), np.zeros(30)
    across = RBF(gamma=1.0)(new, X)
    for _ in range(model.n_iter_):
        for i in range(40):
            left = weight[i]
            while left > 0:
                part = min(left, 1.0)
                if signs[i] * (K[i] @ (c * signs)) <= 0:
                    c[i] += part
                votes += part * np.sign(across @ (c * signs))
                left -= part
    np.testing.assert_allclose(model.mistakes_, c)
    np.testing.assert_allclose(model.decision_function(new), votes / model.n_visits_, rtol=1e-9, atol=1e-12)
    certificate = model.certify(X, y, weight)
    assert certificate.holds, str(certificate)
    for name in ("lives", "shares"):
        twin = deepcopy(model)
        twin.ballot_ = twin.ballot_._replace(**{name: 1.01 * getattr(model.ballot_, name)})
        assert not twin.certify(X, y, weight).holds
    with pytest.raises(ValueError, match="choose one of them"):
        KernelPerceptron(voted=True, average=True).fit(X, y)
    three = rings(8, n=90, k=3)
    voted = KernelPerceptron(gamma=3.0, voted=True, random_state=0).fit(*three)
    assert voted.certify(*three).holds
    assert voted.score(*three) > 0.9
    assert np.abs(voted.decision_function(three[0])).max() <= 1


def test_two_points_by_hand():
    # k(x, x) = 1, k(0, 1) = e⁻¹: both rows are mistaken once, and then never again
    model = KernelPerceptron(gamma=1.0, shuffle=False).fit([[0.0], [1.0]], [-1, 1])
    assert model.mistakes_.tolist() == [1, 1]
    assert model.dual_coef_.tolist() == [[-1.0, 1.0]]
    np.testing.assert_allclose(model.decision_function([[0.0], [0.5]]), [np.exp(-1) - 1, 0.0], atol=1e-15)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_repetition(k):
    X, y = rings(1, n=60, k=k)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    weighted = KernelPerceptron(gamma=3.0, shuffle=False).fit(X, y, weight.astype(float))
    repeated = KernelPerceptron(gamma=3.0, shuffle=False).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(weighted.support_vectors_, repeated.support_vectors_)
    assert np.array_equal(weighted.n_mistakes_, repeated.n_mistakes_)
    assert weighted.mistakes_.shape[-1] == 60
    assert not np.atleast_2d(weighted.mistakes_)[:, weight == 0].any()
    assert weighted.certify(X, y, weight).holds


def test_classes_against_the_rest_and_sparse_rows():
    X, y = rings(2, n=150, k=3)
    names = np.array(["inner", "middle", "outer"])[y]
    model = KernelPerceptron(gamma=4.0, random_state=0).fit(X, names)
    assert (model.predict(X) == names).all()
    assert model.mistakes_.shape == (3, 150)
    for k in range(3):
        alone = KernelPerceptron(gamma=4.0, random_state=0).fit(X, y == k)
        assert np.array_equal(alone.mistakes_, model.mistakes_[k])
    sparse = KernelPerceptron(gamma=4.0, random_state=0).fit(csr_array(X), names)
    assert np.array_equal(sparse.mistakes_, model.mistakes_)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), model.decision_function(X), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(X), model.decision_function(csr_array(X)), rtol=1e-8, atol=1e-9)
    assert sparse.certify(csr_array(X), names).holds
    single = KernelPerceptron(gamma=4.0, random_state=0).fit(X.astype(np.float32), names)
    assert single.decision_function(X.astype(np.float32)).dtype == np.float32


def test_large_tables_compute_rows_when_they_are_asked_for(monkeypatch):
    X, y = make_moons(300, noise=0.1, random_state=0)
    whole = KernelPerceptron(gamma=5.0, random_state=0).fit(X, y)
    monkeypatch.setattr(kernel_mistakes, "FULL", 10)
    monkeypatch.setattr(kernel_mistakes, "CACHE", 8 * 300 * 7)  # seven rows
    parts = KernelPerceptron(gamma=5.0, random_state=0).fit(X, y)
    assert np.array_equal(parts.mistakes_, whole.mistakes_)
    assert parts.certify(X, y).holds


def test_overlapping_classes_are_told_and_proved():
    X, y = [[0.0], [0.0], [1.0]], [0, 1, 1]
    with pytest.warns(ConvergenceWarning, match="always will, because no function of the kernel separates the classes"):
        model = KernelPerceptron(max_iter=20, gamma=1.0).fit(X, y)
    assert model.certify(X, y).holds
    X, y = make_circles(200, noise=0.05, factor=0.8, random_state=0)
    with pytest.warns(ConvergenceWarning, match="the classes are separable; raise max_iter"):
        model = KernelPerceptron(max_iter=2, gamma=1.0, random_state=0).fit(X, y)
    assert [check.name for check in model.certify(X, y).failed] == ["separation"]


@pytest.mark.parametrize("average", [False, True])
def test_sabotage_is_refused(average):
    X, y = rings(3, k=3)
    model = KernelPerceptron(gamma=3.0, average=average, random_state=0).fit(X, y)
    assert model.certify(X, y).holds

    def refuses(change):
        twin = deepcopy(model)
        change(twin)
        assert not twin.certify(X, y).holds

    refuses(lambda m: m.dual_coef_.__imul__(1.01))
    refuses(lambda m: m.support_vectors_.__imul__(1.01))
    refuses(lambda m: setattr(m, "kernel_", RBF(gamma=3.03)))
    refuses(lambda m: m.mistakes_.__setitem__((0, 0), m.mistakes_[0, 0] + 1))
    refuses(lambda m: m.support_.__setitem__(0, m.support_[0] + 1))
    refuses(lambda m: setattr(m, "n_mistakes_", m.n_mistakes_ + 1))
    refuses(lambda m: setattr(m, "n_visits_", m.n_visits_ + 1))
    if average:
        refuses(lambda m: setattr(m, "mistake_times_", 1.01 * m.mistake_times_))


def test_saved_and_found_again(tmp_path):
    X, y = rings(4)
    model = KernelPerceptron(1.0 * RBF([0.5, 0.6]) + Linear(), random_state=0).fit(X, y)
    model.save(tmp_path / "model.lemmata")
    twin = lemmata.load(tmp_path / "model.lemmata")
    assert twin.kernel == model.kernel
    assert np.array_equal(twin.decision_function(X), model.decision_function(X))
