"""Our own machines and votes get the bounds that scikit-learn's get on the same rows, and those that only they have."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier as PeerNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as PeerSVC
from sklearn.svm import LinearSVC as PeerLinear

from lemmata.kernels import RBF, Linear, Matern, Polynomial, Sigmoid
from lemmata.neighbors import KNeighborsClassifier
from lemmata.svm import SVC, LinearSVC
from lemmata.theory import guarantee
from lemmata.theory.bounds.compression import campi_garatti_bound
from lemmata.theory.bounds.margins import margin_bound_known_radius
from lemmata.theory.bounds.stability import nearest_neighbor_bound
from lemmata.theory.guarantees.linear import MARGIN

N = 200
SUPPORT = "support vectors"


def rows(n=N, gap=1.2, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["no", "yes"], n)
    X = rng.standard_normal((n, 3))
    X[:, 0] += np.where(y == "yes", gap, -gap)
    return X, y


def values(result):
    return {bound.name: bound.value for bound in result}


PAIRS = [
    (SVC(gamma=0.3), PeerSVC(gamma=0.3, tol=1e-6)),
    (SVC(kernel=RBF(gamma=0.3)), PeerSVC(gamma=0.3, tol=1e-6)),
    (SVC(kernel="linear"), PeerSVC(kernel="linear", tol=1e-6)),
    (SVC(kernel=Linear()), PeerSVC(kernel="linear", tol=1e-6)),
    (SVC(kernel="poly", gamma=0.2, coef0=1.0, degree=2), PeerSVC(kernel="poly", gamma=0.2, coef0=1.0, degree=2, tol=1e-6)),
    (SVC(kernel=Polynomial(2, 1.0, gamma=0.2)), PeerSVC(kernel="poly", gamma=0.2, coef0=1.0, degree=2, tol=1e-6)),
    (SVC(gamma=0.3, class_weight={"no": 2.0}), PeerSVC(gamma=0.3, class_weight={"no": 2.0}, tol=1e-6)),
    (
        LinearSVC(loss="hinge", fit_intercept=False, C=1e-3),
        PeerLinear(loss="hinge", fit_intercept=False, C=1e-3, tol=1e-9, max_iter=100_000),
    ),
]


@pytest.mark.parametrize(("ours", "peer"), PAIRS, ids=[str(model) for model, _ in PAIRS])
def test_our_machines_have_the_bounds_of_their_peers(ours, peer):
    X, y = rows()
    found, expected = guarantee(ours.fit(X, y), X, y, refit=False), guarantee(peer.fit(X, y), X, y, refit=False)
    mine, theirs = values(found), values(expected)
    assert mine.keys() == theirs.keys()
    assert SUPPORT in mine
    for name, value in theirs.items():
        assert mine[name] == pytest.approx(value, rel=1e-4), name  # margins agree as far as the peers' tolerance goes
    assert set(found.inapplicable) == set(expected.inapplicable)


def test_support_vectors_by_hand():
    X, y = rows()
    models = [SVC(gamma=0.3), SVC(kernel=Linear()), SVC(kernel=Matern(nu=1.5)), SVC(kernel=RBF(0.5) + Linear())]
    models += [LinearSVC(), LinearSVC(loss="hinge")]
    for model in models:
        model.fit(X, y)
        kept = int((np.where(y == "yes", 1, -1) * model.decision_function(X) <= 1 + 1e-3).sum())
        assert guarantee(model, X, y, refit=False)[SUPPORT].value == campi_garatti_bound(kept, N, 0.05), model


def test_a_hard_margin_has_few_rows_that_matter():
    X, y = rows(gap=4.0)
    model = SVC(kernel="linear", hard_margin=True).fit(X, y)
    found = guarantee(model, X, y, refit=False)
    assert found[SUPPORT].value == campi_garatti_bound(len(model.support_), N, 0.05)
    assert len(model.support_) <= 4  # in three columns
    # With a large enough price, the soft margin is the hard one.
    peer = PeerSVC(kernel="linear", C=1e4, tol=1e-8).fit(X, y)
    assert guarantee(peer, X, y, refit=False)[SUPPORT].value == found[SUPPORT].value
    other = X.copy()
    other[0] = -other[0]
    assert "fitted to other rows" in guarantee(model, other, y, refit=False).inapplicable[SUPPORT]


def test_margins_in_the_space_of_a_kernel_by_hand():
    X, y = rows()
    for kernel in (RBF(gamma=0.3), RBF([1.0, 2.0, 3.0]), Matern(nu=0.5)):
        model = SVC(kernel=kernel).fit(X, y)
        length = np.sqrt(1 / model.margin_[0] ** 2 + model.intercept_[0] ** 2)
        margins = np.where(y == "yes", 1, -1) * model.decision_function(X) / length
        expected = margin_bound_known_radius(margins, np.sqrt(2), 0.05)
        assert values(guarantee(model, X, y, refit=False))[MARGIN] == pytest.approx(expected, rel=1e-9)


@pytest.mark.filterwarnings("ignore:.*positive semidefinite")
@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (SVC(), 'gamma="scale"'),
        (SVC(gamma=0.1, class_weight="balanced"), "balanced"),
        (make_pipeline(StandardScaler(), SVC(gamma=0.1)), "fit scalers on other rows"),
        (SVC(kernel=lambda a, b: a @ b.T), "kernel is not known"),
        (SVC(kernel=Sigmoid(0.5)), "positive definite"),
        (SVC(kernel=Polynomial(3, -1.0)), "positive definite"),
        (SVC(kernel="linear", C=1e-9), "intercept is not unique"),
        (LinearSVC(solver="sgd", random_state=0), "every row has a say"),
    ],
    ids=lambda value: str(value).split("<")[0],
)
def test_when_our_support_vectors_prove_nothing(model, reason):
    X, y = rows()
    assert reason in guarantee(model.fit(X, y), X, y, refit=False).inapplicable[SUPPORT]


def test_a_plane_whose_intercept_nothing_holds():
    X, _ = rows()
    y = np.arange(N) % 2  # as many of each class: with a tiny price all rows are inside the margin, wherever the plane is
    model = LinearSVC(loss="hinge", C=1e-9).fit(X, y)
    assert "it is not unique" in guarantee(model, X, y, refit=False).inapplicable[SUPPORT]
    found = guarantee(LinearSVC(loss="hinge", C=1e-9, fit_intercept=False).fit(X, y), X, y, refit=False)
    assert SUPPORT in values(found)


def test_rows_with_weights_of_their_own_are_noticed():
    X, y = rows()
    model = SVC(kernel="linear").fit(X, y, sample_weight=np.where(y == "yes", 0.3, 1.0))
    assert "weights of their own" in guarantee(model, X, y, refit=False).inapplicable[SUPPORT]
    model = KNeighborsClassifier(3).fit(X, y, sample_weight=np.where(y == "yes", 2.0, 1.0))
    assert "weights of their own" in guarantee(model, X, y, refit=False).inapplicable["leave one out"]


def test_several_classes_are_counted_only_where_ties_allow_it():
    X, _ = rows()
    y = np.arange(N) % 3
    reason = guarantee(SVC(kernel="linear").fit(X, y), X, y, refit=False).inapplicable["growth function"]
    assert "sums of scores" in reason  # a tied vote goes to the surest machines, which pairs of classes do not tell
    assert "more than two classes" in guarantee(SVC(gamma=0.1).fit(X, y), X, y, refit=False).inapplicable[SUPPORT]
    reason = guarantee(SVC(gamma=0.1).fit(X, y), X, y, refit=False).inapplicable["growth function"]
    assert "infinite VC" in reason


@pytest.mark.parametrize("k", [1, 3, 5])
def test_votes_of_neighbors(k):
    X, y = rows()
    ours = guarantee(KNeighborsClassifier(k).fit(X, y), X, y, refit=False)["leave one out"]
    peer = guarantee(PeerNeighbors(k).fit(X, y), X, y, refit=False)["leave one out"]
    assert ours.value == peer.value  # of two classes an odd number of votes has no tie
    left = [KNeighborsClassifier(k).fit(np.delete(X, i, 0), np.delete(y, i)).predict(X[[i]])[0] != y[i] for i in range(N)]
    assert ours.value == pytest.approx(nearest_neighbor_bound(np.mean(left), k, N, 0.05), rel=1e-12)
    assert "infinite VC" in guarantee(KNeighborsClassifier(k).fit(X, y), X, y, refit=False).inapplicable["growth function"]
