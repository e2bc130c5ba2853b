"""Maximum entropy against closed forms, its dual solved by SciPy, softmax regression, finite differences and brute force."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.sparse import csr_array, hstack, random_array
from scipy.special import logsumexp, softmax
from scipy.stats import entropy
from sklearn.linear_model import LogisticRegression as Peer

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.linear_model import LogisticRegression, MaximumEntropyClassifier
from lemmata.linear_model.joint_features import ClassIndexed, Joint, log_linear
from lemmata.linear_model.logistic_solvers import solver
from lemmata.linear_model.maximum_entropy import excess

X8, Y8 = np.array([0.0, 0, 1, 1, 2, 2, 2, 0])[:, None], np.array([0, 1, 0, 1, 1, 1, 0, 0])


def pair(X, label):
    """The features (y, xy) of a label that is 0 or 1."""
    return np.column_stack([np.full(len(X), float(label)), X[:, 0] * label])


def draw(seed, n=60, d=3, k=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.uniform(0.5, 2, d) + 1
    return X, (X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k))).argmax(axis=1)


def crossed(X, label):
    """Features that share weights between classes, which no softmax regression has: the label as a number, and its square."""
    t = label - 1.0
    return np.column_stack([np.full(len(X), t), np.full(len(X), t * t), X[:, 0] * t, X[:, 1] * t * t, X[:, 0] * X[:, 2] * t])


@pytest.mark.item("CLS-19")
def test_the_small_example_and_its_dual():
    model = MaximumEntropyClassifier(pair, C=np.inf).fit(X8, Y8)
    np.testing.assert_allclose(model.weights_, [-0.693147, 0.693147], atol=5e-7)
    logs = model.predict_log_proba(X8)
    mean = logs[np.arange(8), Y8].mean()
    assert mean == pytest.approx(-0.6506724, abs=5e-8)
    P = model.predict_proba(X8)
    assert entropy(P, axis=1).mean() == pytest.approx(-mean, rel=1e-12)
    # Lagrange's condition: −log p − 1 + w·f − μ = 0, with the multiplier μ = log Z − 1 of Σ p = 1
    scores = np.column_stack([pair(X8, label) @ model.weights_ for label in (0, 1)])
    mu = logsumexp(scores, axis=1) - 1
    np.testing.assert_allclose(-np.log(P) - 1 + scores - mu[:, None], 0, atol=1e-14)
    certificate = model.certify(X8, Y8)
    assert certificate.holds
    assert certificate["duality"].value < 1e-12


@pytest.mark.item("CLS-19")
def test_no_distribution_with_these_moments_has_more_entropy():
    model = MaximumEntropyClassifier(pair, C=np.inf).fit(X8, Y8)
    A = np.vstack([np.ones(8), X8[:, 0]])  # Σ p(1 | x) and Σ x p(1 | x) are given
    best = model.predict_proba(X8)[:, 1]
    np.testing.assert_allclose(A @ best, A @ Y8, rtol=1e-12)
    total = lambda p: entropy([p, 1 - p]).sum()  # noqa: E731
    rng = np.random.default_rng(0)
    for _ in range(50):
        move = rng.normal(size=8)
        move -= np.linalg.pinv(A) @ (A @ move)
        other = best + 0.2 * rng.random() * move / np.abs(move).max()
        assert (other > 0).all()
        assert total(other) < total(best)
    primal = minimize(
        lambda p: -total(p),
        np.full(8, 0.4),
        method="SLSQP",
        bounds=[(1e-6, 1 - 1e-6)] * 8,
        constraints={"type": "eq", "fun": lambda p: A @ (p - Y8)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(primal.x, best, atol=1e-5)  # the peer differentiates numerically
    assert -primal.fun == pytest.approx(total(best), rel=1e-9)


@pytest.mark.item("CLS-18")
def test_words_that_end_in_tion():
    words = ["nation", "motion", "station", "function", "run", "table", "is", "mention", "quick", "think"]
    kinds = np.array(["Noun", "Noun", "Noun", "Noun", "Verb", "Noun", "Verb", "Verb", "Other", "Verb"])
    X = np.array([[float(word.endswith("tion"))] for word in words])

    def features(X, label):
        """f₁ = 1 for a word in "tion" and y = Noun; and how common nouns and verbs are."""
        return np.column_stack([X[:, 0] * (label == "Noun"), np.full((len(X), 2), [label == "Noun", label == "Verb"])])

    model = MaximumEntropyClassifier(features, C=np.inf).fit(X, kinds)
    # odds Noun : Verb : Other of 20 : 4 : 1 with the ending and of 5/4 : 4 : 1 without match all three counts
    np.testing.assert_allclose(model.weights_, np.log([16, 1.25, 4]), rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[0.8, 0.04, 0.16]], rtol=1e-12)
    np.testing.assert_allclose(model.feature_expectations(X), [0.4, 0.5, 0.4], rtol=1e-12)
    np.testing.assert_allclose(model.feature_expectations(X, kinds), [0.4, 0.5, 0.4], rtol=1e-15)
    assert list(model.predict(X[[0, 4]])) == ["Noun", "Verb"]
    assert model.certify(X, kinds).holds


@pytest.mark.item("CLS-18")
@pytest.mark.parametrize("C", [0.1, 1.0, np.inf])
def test_class_indexed_features_are_softmax_regression(C):
    X, y = draw(1)
    model, peer = MaximumEntropyClassifier(C=C).fit(X, y), Peer(C=C, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-6)  # the peer's precision
    ours = LogisticRegression(C, tol=1e-12).fit(X, y)
    W = model.weights_.reshape(3, 4)
    np.testing.assert_allclose(W[:, :3], ours.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(W[:, 3], ours.intercept_, rtol=1e-6, atol=1e-9)
    binary = (y > 0).astype(int)
    # two classes have two vectors ±w/2, whose squared lengths sum to half of w's
    two, one = MaximumEntropyClassifier(C=C).fit(X, binary), LogisticRegression(2 * C, tol=1e-12).fit(X, binary)
    np.testing.assert_allclose(two.decision_function(X), one.decision_function(X), rtol=1e-6, atol=1e-9)
    assert model.certify(X, y).holds


def test_class_indexed_features_written_out_are_the_same_model():
    X, y = draw(2)

    def written(X, label):
        return np.kron(np.eye(3)[label], np.column_stack([X, np.ones(len(X))]))

    built, given = MaximumEntropyClassifier(C=np.inf).fit(X, y), MaximumEntropyClassifier(written, C=np.inf).fit(X, y)
    np.testing.assert_allclose(given.predict_proba(X), built.predict_proba(X), rtol=1e-8)
    np.testing.assert_allclose(given.weights_, built.weights_, rtol=1e-7)  # both centered over the classes
    for R in (np.eye(3)[y], softmax(X @ np.ones((3, 3)), axis=1)):
        np.testing.assert_allclose(ClassIndexed(3).moments(X, R), Joint(written, (0, 1, 2)).moments(X, R), rtol=1e-12)
    for a, b in zip(ClassIndexed(3).rows(X), Joint(written, (0, 1, 2)).rows(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.item("CLS-18")
def test_the_gradient_is_what_is_expected_less_what_is_seen():
    X, y = draw(3)
    weight = np.random.default_rng(0).random(60)
    problem = log_linear(Blocks.of(X, y, weight, block_rows=16), Joint(crossed, (0, 1, 2)), 0.3)
    theta = np.random.default_rng(1).normal(size=5) * 0.3
    w = problem.weights(theta)
    F = np.array([crossed(X, k) for k in range(3)])
    P = softmax(F @ w, axis=0)
    loss = -(weight * np.log(P[y, np.arange(60)])).sum() + 0.15 * w @ w
    assert problem(theta)[0] == pytest.approx(loss / weight.sum(), rel=1e-13)
    # both means are over all rows: 1/N stands before both
    expected, seen = (np.average(a, axis=0, weights=weight) for a in ((P[..., None] * F).sum(axis=0), F[y, np.arange(60)]))
    np.testing.assert_allclose(
        problem(theta)[1] * problem.unit, expected - seen + 0.3 * w / weight.sum(), rtol=1e-12, atol=1e-15
    )
    numerical = approx_fprime(theta, lambda t: problem(t)[0], 1e-7)
    np.testing.assert_allclose(problem(theta)[1], numerical, atol=1e-6)  # forward differences
    second = np.array([(problem(theta + h)[1] - problem(theta - h)[1]) / 2e-5 for h in 1e-5 * np.eye(5)])
    H = problem.hessian(theta)
    np.testing.assert_allclose(H, second, rtol=1e-6, atol=1e-8)  # central differences
    np.testing.assert_allclose(problem.curvature(theta, np.arange(5.0)), H @ np.arange(5.0), rtol=1e-12)
    assert np.linalg.eigvalsh(H)[0] > 0


@pytest.mark.item("CLS-18")
def test_gradient_ascent_ends_at_the_same_weights():
    model = MaximumEntropyClassifier(pair, C=np.inf).fit(X8, Y8)
    F, w = np.array([pair(X8, k) for k in (0, 1)]), np.zeros(2)
    for _ in range(2000):
        P = softmax(F @ w, axis=0)
        w += 1.0 * (F[Y8, np.arange(8)].mean(axis=0) - (P[..., None] * F).sum(axis=0).mean(axis=0))
    np.testing.assert_allclose(w, model.weights_, rtol=1e-9)


@pytest.mark.parametrize("C", [0.2, np.inf])
def test_expectations_differ_by_the_weights_over_the_penalty(C):
    X, y = draw(4)
    model = MaximumEntropyClassifier(crossed, C=C).fit(X, y)
    seen, expected = model.feature_expectations(X, y), model.feature_expectations(X)
    np.testing.assert_allclose(seen - expected, model.weights_ / C / 60, atol=1e-11)
    P, own = model.predict_proba(X), model.predict_log_proba(X)[np.arange(60), y]
    assert entropy(P, axis=1).sum() == pytest.approx(-own.sum() + (model.weights_**2).sum() / C, rel=1e-10)
    assert model.certify(X, y).holds
    weight = np.random.default_rng(0).integers(0, 4, 60)
    weighted = model.feature_expectations(X, y, weight.astype(float))
    np.testing.assert_allclose(
        weighted, model.feature_expectations(np.repeat(X, weight, axis=0), np.repeat(y, weight)), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.feature_expectations(X, sample_weight=weight.astype(float)),
        model.feature_expectations(np.repeat(X, weight, axis=0)),
        rtol=1e-12,
    )


@pytest.mark.parametrize("features", [crossed, None])
@pytest.mark.parametrize("penalty", [0.0, 0.5])
def test_the_bound_is_true_and_close(features, penalty):
    X, y = draw(5)
    model = MaximumEntropyClassifier(features, C=np.inf if penalty == 0 else 1 / penalty, tol=1e-14).fit(X, y)
    problem = log_linear(Blocks.of(X, y, None), model._design, penalty)
    best, rng = problem.standard(model.weights_), np.random.default_rng(0)
    least = problem(best)[0]
    for size in (1e-6, 1e-3, 0.03, 0.3):
        theta = best + size * rng.normal(size=len(best))
        bound, kind = excess(problem, theta)
        true = problem(theta)[0] - least
        assert kind == "proof"
        assert bound >= true * (1 - 1e-9) - 1e-15  # rounding of sums of 60 terms
        if size < 0.1:
            assert bound <= 2 * true + 1e-14  # the gap of the dual point is of higher order


def redundant(X, label):
    """Twice the same feature, one that no class changes, and one that is the sum of two others."""
    F = crossed(X, label)
    return np.column_stack([F, F[:, 2], X[:, 0], F[:, 0] + F[:, 3]])


def test_redundant_features_get_the_shortest_weights():
    X, y = draw(6)
    plain, model = (MaximumEntropyClassifier(f, C=np.inf).fit(X, y) for f in (crossed, redundant))
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), rtol=1e-8)
    assert model.certify(X, y).holds
    # all weights with these scores satisfy T w = plain weights; of them the pseudo-inverse gives the shortest
    T = np.zeros((5, 8))
    T[:5, :5], T[2, 5], T[0, 7], T[3, 7] = np.eye(5), 1, 1, 1
    np.testing.assert_allclose(model.weights_, np.linalg.pinv(T) @ plain.weights_, rtol=1e-7, atol=1e-9)
    soft = MaximumEntropyClassifier(redundant, C=1e6).fit(X, y)
    np.testing.assert_allclose(soft.weights_, model.weights_, rtol=1e-4, atol=1e-6)  # a small penalty chooses the same
    model.weights_[[2, 5]] += [0.01, -0.01]
    assert [check.name for check in model.certify(X, y).failed] == ["least norm"]


def test_redundant_columns_of_softmax_regression():
    X, y = draw(7)
    twice = np.column_stack([X, X[:, 0], np.full(60, 3.0)])
    model, plain = MaximumEntropyClassifier(C=np.inf).fit(twice, y), MaximumEntropyClassifier(C=np.inf).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(twice), plain.predict_proba(X), rtol=1e-7)
    W = model.weights_.reshape(3, 6)
    np.testing.assert_allclose(W[:, 0], W[:, 3], rtol=1e-6)  # equal columns share alike
    np.testing.assert_allclose(W.sum(axis=0), 0, atol=1e-9)
    assert model.certify(twice, y).holds


def test_sparse_features_are_dense_features():
    rng = np.random.default_rng(8)
    X = random_array((80, 6), density=0.4, rng=rng, data_sampler=rng.standard_normal, format="csr")
    y = rng.integers(0, 3, 80)

    def sparse(X, label):
        return csr_array(np.kron(np.eye(3)[label], X.toarray()))

    def dense(X, label):
        return np.kron(np.eye(3)[label], X.toarray())

    one, other = (MaximumEntropyClassifier(f).fit(X, y) for f in (sparse, dense))
    np.testing.assert_allclose(one.weights_, other.weights_, rtol=1e-7, atol=1e-10)
    assert one.certify(X, y).holds
    soft = MaximumEntropyClassifier().fit(X, y)
    assert soft.certify(X, y).holds
    np.testing.assert_allclose(soft.weights_, MaximumEntropyClassifier().fit(X.toarray(), y).weights_, rtol=1e-6, atol=1e-8)


def hashed(X, label):
    """2400 sparse features: each column, once for each class."""
    empty = csr_array(X.shape)
    return hstack([X if label == k else empty for k in range(3)], format="csr")


@pytest.mark.parametrize("features", [hashed, None])
def test_more_features_than_a_hessian_can_have(features):
    rng = np.random.default_rng(9)
    X = random_array((300, 800), density=0.02, rng=rng, data_sampler=rng.standard_normal, format="csr")
    y = (X @ rng.normal(size=(800, 3)) + 0.3 * rng.gumbel(size=(300, 3))).argmax(axis=1)
    model = MaximumEntropyClassifier(features).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, str(certificate)
    assert certificate.kind == "proof"
    assert model.converged_
    with pytest.raises(ValueError, match="The features separate the classes"):
        MaximumEntropyClassifier(features, C=np.inf).fit(X, y)


def test_separable_classes_have_no_optimum():
    overlap = np.array([-2.0, -1.0, 0.0, 0.0, 1.0, 2.0])[:, None]
    for X in (np.arange(6.0)[:, None], overlap, np.array([[0.0], [0], [0], [0], [0], [1]])):
        for features in (None, pair):
            with pytest.raises(ValueError, match=r"The features separate the classes: .* Give a finite C"):
                MaximumEntropyClassifier(features, C=np.inf).fit(X, [0, 0, 0, 1, 1, 1])
            with pytest.raises(ValueError, match="The features separate the classes"):
                MaximumEntropyClassifier(features, C=np.inf, tol=1e-14).fit(X, [0, 0, 0, 1, 1, 1])
    X, _ = draw(10)
    with pytest.raises(ValueError, match="The features separate the classes"):
        MaximumEntropyClassifier(C=np.inf).fit(X, X.argmax(axis=1))
    model = MaximumEntropyClassifier(C=100.0).fit(X, X.argmax(axis=1))
    assert model.certify(X, X.argmax(axis=1)).holds


def test_probabilities_that_miss_the_moments_prove_nothing(monkeypatch):
    X, y = draw(5)
    problem = log_linear(Blocks.of(X, y, None), Joint(crossed, (0, 1, 2)), 0.0)
    monkeypatch.setattr("lemmata.linear_model.maximum_entropy.balanced_step", lambda problem, theta, g: (0 * theta, g))
    assert excess(problem, np.zeros(5))[0] == np.inf


@pytest.mark.parametrize("features", [pair, None])
def test_no_bound_without_an_optimum(features):
    for x in (np.arange(6.0), np.array([0.0, 0, 0, 0, 0, 1]), np.array([-1.0, 0, 0, 0, 0, 1])):
        design = ClassIndexed(2) if features is None else Joint(features, (0, 1))
        problem = log_linear(Blocks.of(x[:, None], np.array([0, 0, 0, 1, 1, 1]), None), design, 0.0)
        state, step = solver("newton", problem, None)
        while np.abs(state[2]).max() > 1e-11:  # beyond, a class is certain to more digits than a Hessian has
            assert excess(problem, state[0])[0] == np.inf
            state, _, _ = step(state)


def test_weights_of_another_model_are_refused():
    X, y = draw(11)
    model = MaximumEntropyClassifier(crossed, C=np.inf).fit(X, y)
    rng = np.random.default_rng(0)
    for _ in range(5):
        twin = MaximumEntropyClassifier(crossed, C=np.inf).fit(X, y)
        move = rng.normal(size=5)
        twin.weights_ = model.weights_ + 0.01 * np.linalg.norm(model.weights_) * move / np.linalg.norm(move)
        assert not twin.certify(X, y).holds
    model.weights_ = model.weights_[:-1]
    with pytest.raises(ValueError, match=r"mismatch|size|shape"):
        model.predict(X)


def test_the_same_bits_wherever_the_rows_live(tmp_path):
    X, y = draw(12, n=90)
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(3)} | {"y": y}), tmp_path / "rows.parquet")
    with lemmata.config(block_rows=16):
        memory, stored = (MaximumEntropyClassifier(crossed).fit(*d) for d in ((X, y), (tmp_path / "rows.parquet", "y")))
        with lemmata.config(n_threads=1):
            alone = MaximumEntropyClassifier(crossed).fit(X, y)
    assert memory.weights_.tobytes() == stored.weights_.tobytes() == alone.weights_.tobytes()
    assert stored.certify(tmp_path / "rows.parquet", "y").holds
    repeated = MaximumEntropyClassifier(crossed).fit(np.repeat(X, 2, axis=0), np.repeat(y, 2))
    np.testing.assert_allclose(
        MaximumEntropyClassifier(crossed).fit(X, y, np.full(90, 2.0)).weights_, repeated.weights_, rtol=1e-9
    )


def test_float32_off_center_is_certified():
    X, y = draw(13)
    for features, shift in ((None, 300), (None, 3000), (crossed, 300)):
        far = (X + shift).astype(np.float32)
        model = MaximumEntropyClassifier(features).fit(far, y)
        assert model.weights_.dtype == np.float32
        certificate = model.certify(far, y)
        assert certificate.holds, str(certificate)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda X, label: X[:, 0], "a row of features for each row of X, got the shape"),
        (lambda X, label: X[:1], "a row of features for each row of X, got the shape"),
        (lambda X, label: np.full((len(X), 1), np.nan), "finite numbers"),
        (lambda X, label: np.ones((len(X), 1 + label)), r"as many features for every label, got \[1, 2, 3\]"),
    ],
)
def test_nonsense_features_are_refused(features, message):
    with pytest.raises(ValueError, match=f"features must return .*{message}"):
        MaximumEntropyClassifier(features).fit(*draw(14))
