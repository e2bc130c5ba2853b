"""`RandomWalkClassifier`, against the catalogue, powers of the matrix, dense solves and scikit-learn."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.sparse.csgraph import connected_components
from sklearn.exceptions import ConvergenceWarning
from sklearn.semi_supervised import LabelPropagation

import lemmata
from contracts.problems import assert_same_bits
from lemmata.semi_supervised import RandomWalkClassifier
from lemmata.semi_supervised.graph import Graph
from lemmata.semi_supervised.kernels import probabilities, traps
from lemmata.semi_supervised.walk import Dense, Sparse, absorb
from semi_supervised.naive import absorption, linked, transitions, weights

FOUR = np.arange(4.0)[:, None]
ENDS = np.array([0, -1, -1, 1])


def blobs(n=300, d=2, k=3, share=0.1, seed=0, spread=1.0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    X = 4.0 * rng.normal(size=(k, d))[truth] + spread * rng.normal(size=(n, d))
    y = np.where(rng.random(n) < share, truth, -1)
    y[:k] = range(k)
    return X, y, truth


@pytest.mark.item("SEQ-06")
def test_four_rows_by_hand():
    model = RandomWalkClassifier(bandwidth=1.0).fit(FOUR, ENDS)
    np.testing.assert_allclose(model.label_distributions_[1:3, 0], [0.655783, 0.344217], atol=6e-7)
    # By hand: u = a + c v and v = c u + e from u = P(−) at 1, v at 2; a, c, e the steps to 0, between, and from 2 to 0.
    w = np.exp(-np.array([1.0, 4.0, 9.0]))
    a, c, e = w[0] / (2 * w[0] + w[1]), w[0] / (2 * w[0] + w[1]), w[1] / (2 * w[0] + w[1])
    u = (a + c * e) / (1 - c * c)
    np.testing.assert_allclose(model.label_distributions_[1], [u, 1 - u], rtol=1e-14)
    # Steps: s = 1 + c s by symmetry.
    np.testing.assert_allclose(model.absorption_times_, [0, 1 / (1 - c), 1 / (1 - c), 0], rtol=1e-14)


@pytest.mark.item("SEQ-06")
def test_the_matrix_of_the_notes_is_no_walk():
    """With M_ii = 1 and the rest of a labeled row as it was, powers explode; made to sum to one, they forget the labels."""
    W = weights(FOUR, 1.0)
    right = transitions(W, ENDS)
    wrong = W / W.sum(axis=1, keepdims=True)
    wrong[[0, 3], [0, 3]] = 1.0
    assert (wrong.sum(axis=1)[[0, 3]] > 1.2).all()
    assert np.linalg.matrix_power(wrong, 200).max() > 1e6
    forgetful = np.linalg.matrix_power(wrong / wrong.sum(axis=1, keepdims=True), 4000)
    assert np.ptp(forgetful, axis=0).max() < 1e-9  # every row the same: where the walk began says nothing
    limit = np.linalg.matrix_power(right, 4000)
    np.testing.assert_allclose(limit[1, [0, 3]], [0.655783, 0.344217], atol=6e-7)
    np.testing.assert_allclose(limit[:, [0, 3]].sum(axis=1), 1.0, rtol=1e-12)  # 4000 roundings


@pytest.mark.item("SEQ-06")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [None, 6])
def test_probabilities_are_the_limit_of_powers(seed, k):
    X, y, _ = blobs(60, 3, share=0.15, seed=seed, spread=2.0)
    model = RandomWalkClassifier(bandwidth=5.0, n_neighbors=k).fit(X, y)
    W = weights(X, 5.0)
    W = W if k is None else linked(W, X, k)
    # 1e-8: the tolerance of the fit
    np.testing.assert_allclose(model.label_distributions_, absorption(W, y, 3), atol=1e-8)
    assert np.array_equal(model.transduction_, absorption(W, y, 3).argmax(axis=1))
    M = transitions(W * (1 - np.eye(60)), y)
    free = y < 0
    steps = np.linalg.solve(np.eye(free.sum()) - M[np.ix_(free, free)], np.ones(free.sum()))
    np.testing.assert_allclose(model.absorption_times_[free], steps, rtol=1e-7)


@pytest.mark.item("SEQ-06")
@pytest.mark.parametrize("k", [None, 5])
def test_probabilities_are_harmonic_and_obey_the_maximum_principle(k):
    X, y, _ = blobs(400, 2, share=0.05, spread=1.5)
    model = RandomWalkClassifier(n_neighbors=k).fit(X, y)
    W = weights(X, model.bandwidth_) * (1 - np.eye(len(X)))
    W = W if k is None else linked(W, X, k)
    P, F = W / W.sum(axis=1, keepdims=True), model.label_distributions_
    free = y < 0
    np.testing.assert_allclose((P @ F)[free], F[free], atol=1e-9)
    assert np.array_equal(F[~free], np.eye(3)[y[~free]])
    assert (F >= 0).all()
    np.testing.assert_allclose(F.sum(axis=1), 1.0, rtol=1e-14)
    for i in np.flatnonzero(free):  # no row is more extreme than all rows it steps to
        near = F[P[i] > 0]
        assert (F[i] <= near.max(axis=0) + 1e-9).all()
        assert (F[i] >= near.min(axis=0) - 1e-9).all()


@pytest.mark.parametrize("seed", range(2))
def test_the_sparse_route_solves_what_the_dense_route_solves(seed):
    X, y, _ = blobs(500, 3, share=0.04, seed=seed)
    sparse = Graph(X, "median", 7).walk
    index = np.arange(500)[None].repeat(500, axis=0)[~np.eye(500, dtype=bool)].reshape(500, 499)
    squares = ((X[:, None] - X) ** 2).sum(axis=-1)
    dense, full = Dense(squares.copy(), 3.0), Sparse(index, np.take_along_axis(squares, index, 1), 3.0, np.arange(500))
    F = np.column_stack([np.eye(3)[y] * (y >= 0)[:, None], np.zeros(500)])
    answers = []
    for walk in (dense, full):
        start, free = F[walk.order], y[walk.order] < 0
        assert walk.reaching(~free).all()
        run = absorb(walk, start, free, tol=1e-12, max_iter=1000)
        answers.append(np.empty_like(F))
        answers[-1][walk.order] = run.state[0]
        assert run.converged
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-11, atol=1e-11)  # ten times the tolerance
    # And the sparse graph, by a dense solve with the probabilities read off its arrays.
    P = np.zeros((500, 500))
    for i in range(500):
        P[i, sparse.to[sparse.start[i] : sparse.start[i + 1]]] = sparse.p[sparse.start[i] : sparse.start[i + 1]]
    labels = y[sparse.order]
    free = labels < 0
    expected = np.linalg.solve(np.eye(free.sum()) - P[np.ix_(free, free)], P[np.ix_(free, ~free)] @ np.eye(3)[labels[~free]])
    model = RandomWalkClassifier(n_neighbors=7).fit(X, y)
    np.testing.assert_allclose(model.label_distributions_[sparse.order][free], expected, atol=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_scikit_learns_fixed_point_is_the_same(seed):
    """Label propagation iterates F ← PF with labels clamped: the same equations, here with the same weights."""
    X, y, _ = blobs(120, 2, share=0.2, seed=seed, spread=2.0)
    peer = LabelPropagation(kernel="rbf", gamma=1 / 4.0, max_iter=100_000, tol=1e-13).fit(X, y)
    model = RandomWalkClassifier(bandwidth=4.0).fit(X, y)
    # The peer stops when F changes by 1e-13 in all; times some 1e3 steps of the walk.
    np.testing.assert_allclose(model.label_distributions_, peer.label_distributions_, atol=1e-9)
    Q = np.random.default_rng(seed).normal(size=(50, 2)) * 4
    np.testing.assert_allclose(model.predict_proba(Q), peer.predict_proba(Q), atol=1e-9)


@pytest.mark.parametrize("n_neighbors", [None, 9])
def test_a_new_row_takes_one_step(n_neighbors):
    X, y, _ = blobs(200)
    model = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y)
    Q = np.random.default_rng(5).normal(size=(30, 2)) * 5
    for q, p in zip(Q, model.predict_proba(Q), strict=True):
        squares = ((X - q) ** 2).sum(axis=1)
        near = np.argsort(squares)[: n_neighbors or 200]
        w = np.exp(-(squares[near] - squares.min()) / model.bandwidth_)
        np.testing.assert_allclose(p, w @ model.label_distributions_[near] / w.sum(), rtol=1e-10, atol=1e-300)
    assert np.array_equal(model.predict(Q), model.predict_proba(Q).argmax(axis=1))
    far = model.predict_proba([[1e6, 1e6]])  # every weight is below what a number can hold, their ratios are not
    np.testing.assert_allclose(far.sum(), 1.0, rtol=1e-12)


@pytest.mark.item("SEQ-06")
@pytest.mark.parametrize("n_neighbors", [None, 4])
def test_rows_out_of_reach_get_the_prior_and_are_reported(n_neighbors):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(50, 2)), rng.normal(size=(20, 2)) + 500.0])
    y = np.full(70, -1)
    y[:8] = [0, 0, 0, 1, 0, 1, 0, 0]
    with pytest.warns(UserWarning, match=r"From 20 of 70 rows no label .* raise n_neighbors or bandwidth"):
        model = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y)
    assert np.array_equal(model.isolated_, np.arange(50, 70))
    assert np.array_equal(model.label_distributions_[50:], np.tile([0.75, 0.25], (20, 1)))
    np.testing.assert_allclose(model.predict_proba([[500.0, 500.0]]), [[0.75, 0.25]], rtol=1e-12)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    steps = model.absorption_times_
    for wrong in (0.0, 1.0):
        model.absorption_times_ = np.where(np.arange(70) == 60, wrong, steps)
        assert not model.certify(X, y)["absorbing"].holds
    y[60] = 1  # one label among them is enough
    assert len(RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y).isolated_) == 0


@pytest.mark.parametrize("seed", range(3))
def test_isolated_rows_of_a_sparse_graph_are_components_without_labels(seed):
    rng = np.random.default_rng(seed)
    X, y, _ = blobs(200, 2, k=12, share=0.03, seed=seed, spread=0.5)
    y[:12] = -1
    y[rng.choice(200, 2, replace=False)] = [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RandomWalkClassifier(n_neighbors=3, bandwidth=1e6).fit(X, y)  # weights of 1: no link is faint
    _, component = connected_components(linked(np.ones((200, 200)), X, 3), directed=False)
    expected = np.flatnonzero(~np.isin(component, component[y >= 0]))
    assert 0 < len(expected) < 200
    assert np.array_equal(model.isolated_, expected)


def test_a_trap_is_not_trusted_to_rounding():
    """Two hops, each improbable, between a group and the labels: less than one walk in 10¹⁶ steps gets through."""
    X = np.concatenate([np.linspace(0, 1, 20), [7.0], np.linspace(11.4, 12.4, 20)])[:, None]
    y = np.full(41, -1)
    y[[25, 30]] = [0, 1]
    with pytest.warns(UserWarning, match="From 20 of 41"):
        model = RandomWalkClassifier(bandwidth=1.0).fit(X, y)
    assert np.array_equal(model.isolated_, np.arange(20))
    assert model.certify(X, y).holds


def test_a_trap_is_measured_by_its_heaviest_row():
    """Rows 0–1–2 hang together, 3 has the label; the way out weighs e⁻¹⁷·⁵ of the heaviest row, or e⁻²⁰·⁵."""
    a, b, level = np.array([0, 2, 2]), np.array([1, 1, 3]), np.array([0.0, 0.5, -4.9, -17.0])
    labeled = np.array([False, False, False, True])
    for out, trapped in ((-17.0, [False] * 4), (-20.0, [True, True, True, False])):
        assert traps(a, b, np.array([0.0, -5.0, out]), level, labeled, -18.0).tolist() == trapped
    # Joined by nothing at all: a trap without further ado.
    assert traps(a[:2], b[:2], np.array([0.0, -5.0]), level, labeled, -18.0).tolist() == [True, True, True, False]


@pytest.mark.parametrize(("n_neighbors", "place"), [(None, 10), (15, 10), (4, 4)])
def test_the_median_bandwidth_is_that_of_the_tenth_neighbor(n_neighbors, place):
    X, y, _ = blobs(90, 3)
    squares = np.sort(((X[:, None] - X) ** 2).sum(axis=-1), axis=1)[:, place]
    np.testing.assert_allclose(
        RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y).bandwidth_, np.median(squares), rtol=1e-12
    )
    # Of rows that most have ten copies of, those that have not decide.
    copies = np.repeat(X[:3], 30, axis=0)
    copies[:5] += 1.0
    assert RandomWalkClassifier(n_neighbors=n_neighbors).fit(copies, np.arange(90) % 2).bandwidth_ > 0


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("n_neighbors", [None, 10])
@pytest.mark.parametrize("seed", range(2))
def test_heavy_tails_are_certified(n_neighbors, seed):
    """Rows far out weigh e⁻¹⁰⁰⁰ of the others and still follow their neighbors."""
    rng = np.random.default_rng(seed)
    X = rng.standard_cauchy(size=(1500, 2))
    y = np.where(rng.random(1500) < 0.1, (X[:, 0] > 0).astype(int), -1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", ConvergenceWarning)
        model = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    assert (model.transduction_ == (X[:, 0] > 0))[np.abs(X[:, 0]) > 1].mean() > 0.9


@pytest.mark.slow_without_jit
def test_the_gambler_is_ruined():
    """On a line of links of the same weight, the probability of an end is linear and the steps are i (n − i)."""
    n = 1200
    before = np.abs(np.arange(n + 1) - 1)[:, None]  # each row is linked with the one before it, the first with the second
    walk = Sparse(before, np.ones((n + 1, 1)), 1.0, np.arange(n + 1))
    free = (np.arange(n + 1) > 0) & (np.arange(n + 1) < n)
    F = np.zeros((n + 1, 2))
    F[n, 0] = 1.0
    run = absorb(walk, F[walk.order], free[walk.order], tol=1e-9, max_iter=5000)
    answer = np.empty_like(F)
    answer[walk.order] = run.state[0]
    i = np.arange(n + 1)
    np.testing.assert_allclose(answer[:, 0], i / n, atol=1e-9)
    np.testing.assert_allclose(answer[:, 1], i * (n - i), rtol=1e-8, atol=1e-4)
    # The bound is a bound.
    for t in (3, 100, run.n_iter):
        part = absorb_quietly(walk, F[walk.order], free[walk.order], t)
        values = np.empty_like(F)
        values[walk.order] = part.state[0]
        assert np.abs(values[:, 0] - i / n).max() <= part.trace[-1]


def absorb_quietly(walk, F, free, max_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return absorb(walk, F, free, tol=1e-9, max_iter=max_iter)


@pytest.mark.parametrize("n_neighbors", [None, 6])
def test_the_certificate_bounds_the_true_error(n_neighbors):
    X, y, _ = blobs(150, share=0.1)
    exact = RandomWalkClassifier(n_neighbors=n_neighbors, tol=1e-13).fit(X, y)
    rng = np.random.default_rng(0)
    for size in (1e-2, 1e-5, 1e-8):
        model = RandomWalkClassifier(n_neighbors=n_neighbors, tol=1e-13).fit(X, y)
        noise = size * rng.normal(size=(150, 3)) * (y < 0)[:, None]
        model.label_distributions_ = model.label_distributions_ + noise
        error = np.abs(model.label_distributions_ - exact.label_distributions_).max()
        check = model.certify(X, y)["harmonic"]
        assert error <= check.value
        assert check.holds == (check.value <= 1e-6)
        assert check.kind == "proof"


@pytest.mark.parametrize("n_neighbors", [None, 8])
def test_order_shift_and_scale_do_not_matter(n_neighbors):
    X, y, _ = blobs(250, 3)
    model = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X, y)
    order = np.random.default_rng(3).permutation(250)
    permuted = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X[order], y[order])
    np.testing.assert_allclose(permuted.label_distributions_, model.label_distributions_[order], atol=1e-8)
    for Z, factor in ((X + np.array([100.0, -7.0, 3.0]), 1.0), (X * 1e-120, 1e-240), (X * 3.7, 3.7**2)):
        moved = RandomWalkClassifier(n_neighbors=n_neighbors).fit(Z, y)
        np.testing.assert_allclose(moved.bandwidth_, factor * model.bandwidth_, rtol=1e-10)  # 100 eats two digits
        np.testing.assert_allclose(moved.label_distributions_, model.label_distributions_, atol=1e-7)
    powers = RandomWalkClassifier(n_neighbors=n_neighbors).fit(X * 2.0**-300, y)
    assert np.array_equal(powers.label_distributions_, model.label_distributions_)


@pytest.mark.slow_without_jit
def test_threads_and_homes_do_not_matter_to_the_sparse_route():
    X, y, _ = blobs(40_000, 2, k=7, share=0.05)  # enough values for threads
    models = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            models.append(RandomWalkClassifier(tol=1e-3, bandwidth=1e3).fit(X, y))
    assert_same_bits(*models)
    stream = RandomWalkClassifier(tol=1e-3, bandwidth=1e3).fit(lambda: zip(np.split(X, 8), np.split(y, 8), strict=True))
    assert_same_bits(stream, models[0])


def test_bits_do_not_depend_on_where_memory_was_free():
    """Sums had another order where their array happened to lie right behind the one that it was computed from."""
    rng = np.random.default_rng(0)
    start, logs = np.arange(0, 3001, 10), -rng.exponential(size=3000)
    expected = probabilities(start, logs)
    for extra in range(64):
        held = [np.empty(len(logs) + extra) for _ in range(6)]  # most likely one behind the other
        for i in (0, 2, 4):
            held[i][: len(logs)] = logs
            held[i + 1] = None  # where the result goes next, if it fits
            found = probabilities(start, held[i][: len(logs)])
            assert np.array_equal(found[0], expected[0])
            assert np.array_equal(found[1], expected[1])


def test_labels_of_every_kind():
    X, y, _ = blobs(60)
    expected = RandomWalkClassifier().fit(X, y)
    names = np.array(["ant", "bee", "cow"], dtype=object)
    texts = np.where(y >= 0, names[y], None)
    for labels in (texts, np.where(y >= 0, names[y], np.nan), pd.Series(texts), pd.Series(texts, dtype="string")):
        model = RandomWalkClassifier().fit(X, labels)
        assert model.classes_.tolist() == ["ant", "bee", "cow"]
        assert np.array_equal(model.label_distributions_, expected.label_distributions_)
        assert model.certify(X, labels).holds
        assert set(model.predict(X)) <= set(names)
    for labels in (y.astype(float), np.where(y >= 0, y, None).astype(object), y.tolist(), y.astype(np.int8)):
        assert np.array_equal(RandomWalkClassifier().fit(X, labels).label_distributions_, expected.label_distributions_)
    # Every row has a label, as for other classifiers; texts need no mark for that.
    full = RandomWalkClassifier().fit(X, names[np.arange(60) % 3].astype(str))
    assert np.array_equal(full.transduction_, names[np.arange(60) % 3])
    assert not full.absorption_times_.any()


def test_a_plot_shows_rows_without_labels_by_their_class():
    X, y, _ = blobs(60)
    model = RandomWalkClassifier().fit(X, y)
    display = model.plot(X, y)
    assert np.array_equal(display.labels, np.where(y < 0, model.predict(X), y))
    plt.close(display.figure_)


def test_errors_are_one_sentence():
    X, y, _ = blobs(30)
    with pytest.raises(ValueError, match="needs some labels"):
        RandomWalkClassifier().fit(X, np.full(30, -1))
    with pytest.raises(ValueError, match="one class only: 2"):
        RandomWalkClassifier().fit(X, np.where(np.arange(30) < 3, 2, -1))
    with pytest.raises(ValueError, match="contains NaN"):
        RandomWalkClassifier().fit(X, np.where(y < 0, np.nan, y))
    with pytest.raises(ValueError, match="not a class of the fit"):
        RandomWalkClassifier().fit(X, y).certify(X, np.where(y == 2, 5, y))
    with pytest.raises(ValueError, match="lower n_neighbors"):
        RandomWalkClassifier(n_neighbors=None).fit(np.zeros((9000, 1)), np.arange(9000) % 2)
    for bad in ({"bandwidth": 0.0}, {"bandwidth": "mean"}, {"n_neighbors": 0}, {"tol": -1.0}, {"max_iter": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            RandomWalkClassifier(**bad).fit(X, y)


@pytest.mark.slow_without_jit
def test_a_fit_cut_short_says_so_and_is_refused():
    X, y, _ = blobs(2000, 2, share=0.005)
    with pytest.warns(ConvergenceWarning, match="did not converge after 2 iterations"):
        model = RandomWalkClassifier(max_iter=2).fit(X, y)
    assert not model.converged_
    assert not model.certify(X, y).holds
    assert RandomWalkClassifier().fit(X, y).certify(X, y).holds


def test_extreme_bandwidths():
    X, y = np.arange(30.0)[:, None], np.full(30, -1)
    y[[0, 29]] = [0, 1]
    for n_neighbors in (None, 4):
        narrow = RandomWalkClassifier(bandwidth=1e-3, n_neighbors=n_neighbors).fit(X, y)
        # Only nearest rows count, and both sides alike.
        np.testing.assert_allclose(narrow.label_distributions_[:, 1], np.arange(30) / 29, atol=1e-8)
        for bandwidth in (1e-300, 1e300):
            model = RandomWalkClassifier(bandwidth=bandwidth, n_neighbors=n_neighbors).fit(X, y)
            assert model.certify(X, y).holds
    wide = RandomWalkClassifier(bandwidth=1e300).fit(X, y)  # all steps are alike
    np.testing.assert_allclose(wide.label_distributions_[1:-1], 0.5, atol=1e-12)


@pytest.mark.slow_without_jit
def test_few_labels_of_many_rows_are_enough():
    """Three labels a class in 3,000 rows, where the nearest labeled row is often of another class."""
    rng = np.random.default_rng(0)
    truth = np.arange(3000) % 2
    angle = np.pi * rng.random(3000) + np.pi * truth
    X = np.column_stack([np.cos(angle) + truth - 0.5, np.sin(angle) + truth * 0.5]) + 0.08 * rng.normal(size=(3000, 2))
    y = np.full(3000, -1)
    y[:6] = truth[:6]
    model = RandomWalkClassifier().fit(X, y)
    assert (model.transduction_ == truth).mean() > 0.98
    nearest = truth[np.argmin(((X[:, None] - X[:6]) ** 2).sum(axis=-1), axis=1)]
    assert (nearest == truth).mean() < 0.95
