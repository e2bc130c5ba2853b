"""The perceptron: Novikoff's bound, the identity that proves it, cycles, and every variant against a slow twin."""

from copy import deepcopy

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn.linear_model
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.core.blocks import Blocks
from lemmata.linear_model import Perceptron, mistakes
from lemmata.linear_model.hard_margin import hard_margin
from lemmata.linear_model.mistakes import Rules, epoch, find_cycle, start, unit_of
from lemmata.linear_model.perceptron_certificate import mistake_bound
from lemmata.linear_model.stochastic import draw_order, mixed, shuffler

SEEDS = range(3)
quiet = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def apart(seed, n=80, k=2, d=3):
    """Draw classes that planes separate, each from the rest."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return 4 * np.eye(k, d)[y] + rng.uniform(-1, 1, size=(n, d)), y


def overlapping(seed, n=80, k=2, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, k)) + rng.normal(size=(n, k)), axis=1)


def slow(X, signs, weight=None, threshold=0.0, unit=1.0, epochs=1000, order=None):
    """Learn from mistakes one visit at a time: a twin to read. Returns w, b, counts, average of (w, b), epochs."""
    weight = np.ones(len(X)) if weight is None else weight
    w, b, counts = np.zeros(X.shape[1]), 0.0, np.zeros(len(X))
    total, visited = np.zeros(X.shape[1] + 1), 0.0
    for e in range(epochs):
        mistaken = False
        for i in np.arange(len(X)) if order is None else order(e):
            left = weight[i]
            while left > 0:
                part = min(left, 1.0)
                if signs[i] * (w @ X[i] + b) <= threshold:
                    w, b = w + part * signs[i] * X[i], b + part * signs[i] * unit**2
                    counts[i] += part
                    mistaken = True
                total, visited = total + part * np.append(w, b), visited + part
                left -= part
        if not mistaken:
            break
    return w, b, counts, total / visited, e + 1


@pytest.mark.item("LRN-30")
def test_the_example_of_the_catalogue():
    X, y = np.array([[1.0, 2.0], [2.0, 1.0], [-1.0, -1.0], [-2.0, 0.5]]), np.array([1, 1, -1, -1])
    model = Perceptron(shuffle=False).fit(X, y)
    margin = hard_margin(np.column_stack([X, np.ones(4)]) * y[:, None])
    assert model.n_mistakes_ == 2
    np.testing.assert_allclose([margin.radius, margin.lower], [2.449490, 1.603567], atol=5e-7)  # as many digits as are given
    np.testing.assert_allclose(mistake_bound(margin), 2.333333, atol=5e-7)
    np.testing.assert_allclose(model.certify(X, y)["mistake bound"].value, 2 / (7 / 3), rtol=1e-9)


@pytest.mark.item("LRN-30")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("threshold", [0.0, 50.0])
def test_the_inequalities_of_the_proof_hold_along_the_run(seed, threshold):
    X, y = apart(seed)
    M = np.column_stack([X, np.ones(len(X))]) * (2 * y - 1)[:, None]
    margin = hard_margin(M)
    v, k = np.zeros(4), 0
    for _ in range(100):
        before = k
        for m in M:
            if m @ v <= threshold:
                v, k = v + m, k + 1
                # 1e-12: roundings of the sums
                assert margin.direction @ v >= k * margin.lower * (1 - 1e-12)
                assert v @ v <= k * (margin.radius**2 + 2 * threshold) * (1 + 1e-12)
        if k == before:
            break
    model = Perceptron(shuffle=False, margin=threshold).fit(X, y)
    assert model.n_mistakes_ == k <= mistake_bound(margin, threshold)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), v, rtol=1e-12)


def test_a_tie_at_zero_is_a_mistake():
    # the erratum: with a strict inequality nothing would ever be learned from w = 0
    model = Perceptron(shuffle=False).fit([[1.0], [-1.0]], [1, 0])
    assert model.n_mistakes_ >= 1
    assert model.score([[1.0], [-1.0]], [1, 0]) == 1.0


@pytest.mark.item("LRN-31")
def test_on_integers_that_overlap_a_state_returns_exactly():
    X = np.array([[0, 0], [1, 1], [2, 2], [0, 1], [1, 0], [3, -1]])
    y = np.array([1, 0, 1, 0, 1, 1])
    first, period = find_cycle(X, y)
    signs = 2 * y - 1
    states = [slow(X.astype(float), signs, epochs=e)[:2] for e in (first, first + period, first + 2 * period)]
    for w, b in states[1:]:
        assert np.array_equal(w, states[0][0])
        assert b == states[0][1]
    assert slow(X.astype(float), signs, epochs=first + period)[4] == first + period, "it stopped"
    assert lemmata.linear_model.separability(X, y).separable != "complete"
    with pytest.raises(ValueError, match="whole numbers"):
        find_cycle(X + 0.5, y)


@pytest.mark.item("LRN-31")
@pytest.mark.parametrize("seed", SEEDS)
def test_it_stops_where_classes_are_apart_and_stays_bounded_where_not(seed):
    X, y = apart(seed)
    model = Perceptron(random_state=seed, margin=0.5).fit(X, y)
    assert model.converged_
    assert ((2 * y - 1) * model.decision_function(X) > 0.5).all()
    assert model.trace_[-1] == 0
    X, y = overlapping(seed)
    blocks, rules = Blocks.of(X, y, None), Rules(np.ones(1, dtype=int), 0.0, 1.0)
    state, counts, norms = start(1, 3, average=False), None, []
    for _ in range(400):
        state, counts = epoch(blocks, rules, seed, state, counts)
        norms.append(np.linalg.norm(state.weights))
    assert max(norms[200:]) <= 1.5 * max(norms[:200]), "the weights grow"
    assert find_cycle(*apart_on_integers()) is None


def apart_on_integers():
    return np.array([[0, 0], [1, 0], [5, 5], [6, 4]]), np.array([0, 0, 1, 1])


@pytest.mark.item("CLS-03")
@pytest.mark.parametrize("seed", SEEDS)
def test_weights_are_integer_sums_of_rows_and_updates_raise_margins(seed):
    X, y = apart(seed)
    model = Perceptron(random_state=seed, eta0=0.25).fit(X, y)
    signs = 2 * y - 1
    assert model.mistakes_.dtype == np.int64
    np.testing.assert_allclose(model.coef_[0], 0.25 * (model.mistakes_ * signs) @ X, rtol=1e-12)
    assert model.intercept_[0] == 0.25 * (model.mistakes_ @ signs)
    # the erratum: at a mistake the loss −y·f is positive, and the step raises the margin by η(‖x‖² + 1) exactly
    w, b = model.coef_[0], model.intercept_[0]
    before, after = signs * (X @ w + b), signs * (np.sum(X * (w + 0.25 * signs[:, None] * X), axis=1) + b + 0.25 * signs)
    np.testing.assert_allclose(after - before, 0.25 * ((X**2).sum(axis=1) + 1), rtol=1e-9)


@quiet
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("k", [2, 3])
def test_the_coefficients_are_those_of_scikit_learn(seed, k):
    X, y = overlapping(seed, k=k)
    ours = Perceptron(shuffle=False, max_iter=7, intercept_scaling=1).fit(X, y)
    theirs = sklearn.linear_model.Perceptron(shuffle=False, max_iter=7, tol=None).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-10, atol=1e-10)  # the same sums
    assert np.array_equal(ours.intercept_, theirs.intercept_)
    assert np.array_equal(ours.predict(X), theirs.predict(X))
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), rtol=1e-9, atol=1e-9)


@quiet
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_kernel_is_the_slow_twin(form, weighted, average, shuffle):
    X, y = overlapping(4, n=40)
    weight = np.random.default_rng(4).choice([0.3, 1.0, 2.0, 2.6], 40) if weighted else None
    model = Perceptron(max_iter=5, margin=0.7, eta0=2.0, average=average, shuffle=shuffle, random_state=8)
    model.fit(form(X), y, weight)
    seed = int(np.random.default_rng(8).integers(2**32))

    def order(e):
        starts, within = draw_order(40, 3, shuffler(seed, e))
        assert len(starts) == 1, "one chunk, in this test"
        return within

    w, b, counts, averaged, _ = slow(
        X, 2 * y - 1, weight, 0.35, unit_of(Blocks.of(X, y, weight)), 5, order if shuffle else None
    )
    expected = averaged if average else np.append(w, b)
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), 2 * expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.mistakes_, counts, rtol=1e-12)
    np.testing.assert_allclose(model.n_mistakes_, counts.sum(), rtol=1e-12)
    certificate = model.certify(form(X), y, weight)
    assert certificate.holds, str(certificate)


@pytest.mark.parametrize("n", [1, 37, 1000, 5000])
def test_every_row_is_visited_once_an_epoch(n):
    for d in (1, 50, 5000):
        for rng in (None, np.random.default_rng(0)):
            starts, within = draw_order(n, d, rng)
            rows = (starts[:, None] + within).ravel()
            assert np.array_equal(np.sort(rows[rows < n]), np.arange(n))


@quiet
@pytest.mark.parametrize("seed", SEEDS)
def test_averaging_predicts_better_where_classes_overlap(seed):
    X, y = overlapping(seed, n=2000, d=5)
    last, mean = (Perceptron(random_state=seed, max_iter=5, average=a).fit(X[:1000], y[:1000]) for a in (False, True))
    assert mean.score(X[1000:], y[1000:]) > last.score(X[1000:], y[1000:])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_pocket_holds_the_fewest_errors_seen(seed):
    X, y = overlapping(seed, k=3)
    kept = Perceptron(random_state=seed, max_iter=30, pocket=True).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        errors = [
            [
                (np.where(y == c, 1, -1) * model.decision_function(X)[:, c] <= 0).sum() for c in range(3)
            ]
            for model in (Perceptron(random_state=seed, max_iter=e).fit(X, y) for e in range(1, 31))
        ]  # fmt: skip
    assert np.array_equal(kept.n_errors_, np.min(errors, axis=0))
    assert kept.certify(X, y).holds
    twin = deepcopy(kept)
    twin.n_errors_ = kept.n_errors_ + np.array([0, 1, 0])
    assert [c.name for c in twin.certify(X, y).failed] == ["errors"]
    with pytest.raises(ValueError, match="choose one"):
        Perceptron(average=True, pocket=True).fit(X, y)


@pytest.mark.parametrize("options", [{}, {"average": True}, {"margin": 1.0, "eta0": 0.1}, {"fit_intercept": False}])
@pytest.mark.parametrize("k", [2, 3])
def test_one_percent_of_anything_is_refused(options, k):
    X, y = apart(1, k=k)
    model = Perceptron(random_state=1, **options).fit(X, y)
    assert model.certify(X, y).holds, str(model.certify(X, y))
    rng = np.random.default_rng(0)
    for name in ("coef_", "intercept_", "mistakes_", "n_mistakes_", "n_visits_", "mistake_times_"):
        if not hasattr(model, name) or not np.any(getattr(model, name)):
            continue
        twin, value = deepcopy(model), np.array(getattr(model, name))
        if value.dtype.kind == "f":
            noise = rng.normal(size=value.shape)
            value = value + 0.01 * np.linalg.norm(value) * noise / np.linalg.norm(noise)
        else:
            value.flat[rng.integers(value.size)] += 1
        setattr(twin, name, value)
        assert not twin.certify(X, y).holds, name


def test_the_certificate_says_what_is_wrong():
    X, y = apart(0)
    model = Perceptron(random_state=0).fit(X, y)
    assert [c.name for c in model.certify(np.vstack([X, X]), np.append(y, y)).failed] == ["counts"]
    with pytest.warns(ConvergenceWarning, match=r"still makes mistakes after 1 epochs, but the classes are separable"):
        hasty = Perceptron(random_state=0, max_iter=1, margin=1e4).fit(X, y)
    assert [c.name for c in hasty.certify(X, y).failed] == ["separation"]
    X, y = overlapping(0)
    with pytest.warns(ConvergenceWarning, match=r"no plane separates the classes; use pocket=True or another model\.$"):
        model = Perceptron(random_state=0).fit(X, y)
    certificate = model.certify(X, y)
    assert certificate.holds, "a proof that no plane separates them is all there is to have"
    assert certificate["mistake bound"].value == 0.0
    assert not model.converged_


def test_the_unit_is_that_of_the_table():
    X, y = apart(2)
    for scale in (1e-30, 1.0, 1e30):
        model = Perceptron(random_state=0).fit(64.0 ** round(np.log(scale) / np.log(64)) * X, y)
        assert model.n_mistakes_ == Perceptron(random_state=0).fit(X, y).n_mistakes_
    assert unit_of(Blocks.of(np.zeros((3, 2)), np.zeros(3), None)) == 1.0
    few = np.zeros((2, 12))
    few[:, 3] = 1e9, 70.0
    for form in (np.asarray, csr_array):  # entries that are zero, and rows without weight, say nothing of the unit
        assert unit_of(Blocks.of(form(few), np.zeros(2), np.array([0.0, 1.0]))) == 64.0


@quiet
@pytest.mark.parametrize("options", [{}, {"average": True}, {"pocket": True}])
def test_the_same_bits_everywhere(options, tmp_path):
    X, y = overlapping(3, n=150, k=3)
    columns = {f"x{j}": X[:, j] for j in range(3)}
    pq.write_table(pa.table(columns | {"y": np.array(["a", "b", "c"])[y]}), tmp_path / "rows.parquet", row_group_size=31)
    model = Perceptron(random_state=5, max_iter=6, **options)
    models = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads, block_rows=32):
            models.append(deepcopy(model).fit(X, y))
            models.append(deepcopy(model).fit(tmp_path / "rows.parquet", "y"))
    import dask.array as da

    models.append(deepcopy(model).fit(da.from_array(X, chunks=(32, 3)), da.from_array(y, chunks=32)))
    for other in models[1:]:
        for name in ("coef_", "intercept_", "mistakes_", "n_mistakes_", "n_visits_", "mistake_times_", "n_errors_"):
            if hasattr(models[0], name):
                assert np.array_equal(getattr(other, name), getattr(models[0], name)), name
    with lemmata.config(block_rows=32):
        assert models[1].certify(tmp_path / "rows.parquet", "y").holds


def test_threads_share_the_problems_of_large_blocks(monkeypatch):
    monkeypatch.setattr("lemmata.linear_model.stochastic.WORK", 1)
    X, y = apart(0, n=200, k=5, d=6)
    models = []
    for n_threads in (1, 4):
        with lemmata.config(n_threads=n_threads):
            models.append(Perceptron(random_state=0).fit(X, y))
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_rows_sorted_by_class_are_mixed():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 2000)
    X = rng.normal(size=(4000, 2)) + y[:, None]
    blocks = Blocks.of(X, y, None, block_rows=512)
    assert mixed(blocks).n_blocks == 1
    shuffled = rng.permutation(4000)
    assert mixed(Blocks.of(X[shuffled], y[shuffled], None, block_rows=512)).n_blocks == 8
    with lemmata.config(block_rows=512):
        model = Perceptron(random_state=0, average=True, max_iter=3)
        with pytest.warns(ConvergenceWarning):
            model.fit(X, y)
        assert model.score(X, y) > 0.74, "as good as rows in random order"  # the best plane has 0.76
        assert len(model.mistakes_) == 4000


@pytest.mark.parametrize("average", [False, True])
def test_partial_fit_goes_on_where_it_was(average):
    X, y = overlapping(6, k=3)
    model = Perceptron(shuffle=False, average=average, intercept_scaling=1)
    for _ in range(4):
        model.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.warns(ConvergenceWarning):
        whole = Perceptron(shuffle=False, average=average, intercept_scaling=1, max_iter=4).fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    assert np.array_equal(model.n_mistakes_, whole.n_mistakes_)
    assert [c.name for c in model.certify(X, y).failed] == ["counts"], "its counts are not kept"
    whole.partial_fit(X, y)
    model.partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    with pytest.raises(ValueError, match="classes must be passed"):
        Perceptron().partial_fit(X, y)
    with pytest.raises(ValueError, match="not those of the first call"):
        model.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="label 7"):
        model.partial_fit(X, y + 7)


def test_the_sign_of_the_tie_counts_once():
    assert (
        mistakes.errors_block(np.zeros((3, 1)), np.array([0, 1, 1]), None, np.ones(1), np.ones((1, 1)), np.zeros(1), 0.0) == 3
    )
