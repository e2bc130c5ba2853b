"""The counting naive Bayes models, against scikit-learn, slow twins, and sums over everything that could be missing."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import logsumexp
from sklearn import naive_bayes as scikit

import lemmata
from contracts.problems import assert_same_bits
from lemmata.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB
from lemmata.naive_bayes.counts import code_sums, dense_holes, dense_ones, dense_sums, sparse_products, sparse_sums
from naive_bayes import naive_counts

NAN = float("nan")
MODELS = [BernoulliNB, CategoricalNB, MultinomialNB]
models = pytest.mark.parametrize("cls", MODELS)


def draw(seed=0, n=200, d=5, k=3, most=3, holes=0.0):
    """Draw whole numbers up to `most` that depend on the class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    X = rng.binomial(most, rng.uniform(0.1, 0.9, size=(k, d))[y]).astype(float)
    X[0] = most  # so that a category is seen in every column
    if holes:
        X[rng.random(X.shape) < holes] = np.nan
    return X, y, rng.integers(0, 4, n).astype(float)


def peers(cls, **options):
    """The same model of ours and of scikit-learn."""
    return cls(**options), getattr(scikit, cls.__name__)(**options)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@models
def test_as_scikit_learn_does(cls, weighted, dtype):
    for seed in range(3):
        X, y, weight = draw(seed)
        weight = weight if weighted else None
        for options in ({}, {"alpha": 0.3, "fit_prior": False}, {"alpha": 2, "class_prior": [0.2, 0.5, 0.3]}):
            ours, theirs = peers(cls, **options)
            ours.fit(X.astype(dtype), y, sample_weight=weight)
            theirs.fit(X, y, sample_weight=weight)
            # 1e-12: sums of logarithms in another order; 1e-5: results of single precision
            rtol = 1e-12 if dtype == np.float64 else 1e-5
            for name in ("predict_proba", "predict_log_proba", "predict_joint_log_proba"):
                found = getattr(ours, name)(X.astype(dtype))
                assert found.dtype == dtype
                np.testing.assert_allclose(found, getattr(theirs, name)(X), rtol=rtol, atol=rtol)
            assert np.array_equal(ours.predict(X.astype(dtype)), theirs.predict(X))
            for name in (
                "class_count_",
                "class_log_prior_",
                "feature_count_",
                "feature_log_prob_",
                "category_count_",
                "n_categories_",
            ):
                if hasattr(theirs, name) or hasattr(ours, name):
                    for a, b in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13, err_msg=name)


@pytest.mark.parametrize("cls", [BernoulliNB, MultinomialNB])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_a_sparse_table_is_the_same_table(cls, holes):
    X, y, weight = draw(1, holes=holes)
    for options in ({}, {"alpha": 0.0}, {"alpha": np.arange(1.0, 6.0)}):
        dense, sparse = (cls(**options).fit(table, y, sample_weight=weight) for table in (X, csr_array(X)))
        assert_same_bits(dense, sparse)
        # 1e-12: products in another order
        np.testing.assert_allclose(sparse.predict_proba(csr_array(X)), dense.predict_proba(X), rtol=1e-12)
        np.testing.assert_allclose(sparse.score_samples(csr_array(X)), dense.score_samples(X), rtol=1e-12, atol=1e-14)
        assert sparse.certify(csr_array(X), y, weight).holds
    if not holes:
        theirs = getattr(scikit, cls.__name__)().fit(csr_array(X), y, sample_weight=weight)
        ours = cls().fit(csr_array(X), y, sample_weight=weight)
        np.testing.assert_allclose(ours.predict_proba(csr_array(X)), theirs.predict_proba(csr_array(X)), rtol=1e-12)


def test_a_wide_sparse_table_is_cut_into_fuller_blocks_and_counted_the_same():
    rng = np.random.default_rng(0)
    X = csr_array(rng.poisson(0.01, size=(900, 3000)).astype(float))
    y = rng.integers(0, 4, 900)
    assert_same_bits(MultinomialNB().fit(X, y), MultinomialNB().fit(X.toarray(), y))
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads, block_rows=64):
            assert_same_bits(BernoulliNB().fit(X, y), BernoulliNB().fit(X.toarray(), y))


def test_kernels_count_as_loops_do_and_blocks_add_up():
    X, y, weight = draw(2, n=50, holes=0.2)
    complete = np.nan_to_num(X)
    sizes = np.full(5, 4)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    sums = {
        "sums": lambda rows, w: dense_sums(complete[rows], y[rows], w, 3)[1],
        "ones": lambda rows, w: dense_ones(X[rows], y[rows], w, 3, 1.0)[1],
        "holes": lambda rows, w: dense_holes(X[rows], y[rows], w, 3),
        "codes": lambda rows, w: code_sums(X[rows], y[rows], w, starts, 3)[1],
    }
    entries = {"sums": complete, "ones": (X > 1).astype(float), "holes": np.isnan(X).astype(float)}
    for w in (None, weight):
        each = np.ones(50) if w is None else w
        for name, function in sums.items():
            whole = function(slice(None), w)
            for cut in (1, 17, 49):
                parts = [function(rows, None if w is None else w[rows]) for rows in (slice(0, cut), slice(cut, None))]
                assert np.array_equal(parts[0] + parts[1], whole), name  # whole numbers add up exactly
            if name in entries:
                assert np.array_equal(whole, [(each * (y == c)) @ entries[name] for c in range(3)]), name
        for j in range(5):
            table = naive_counts.table(X, y, each, j, range(4))
            found = sums["codes"](slice(None), w)[starts[j] : starts[j + 1]]
            assert found.tolist() == [[table[c][v] for c in range(3)] for v in range(4)]
    S, out = csr_array(complete), np.zeros((3, 5))
    assert sparse_sums(S.data, S.indices, S.indptr, y, weight, out) == 0
    assert np.array_equal(out, sums["sums"](slice(None), weight))
    table = np.random.default_rng(0).normal(size=(5, 3))
    products, strange = sparse_products(S.data, S.indices, S.indptr, table)
    np.testing.assert_allclose(products, complete @ table, rtol=1e-13, atol=1e-13)
    assert strange == 0
    for bad in (-1.0, NAN):
        for place in (0, 3, len(S.data) - 1):
            spoiled = S.data.copy()
            spoiled[place] = bad
            assert sparse_products(spoiled, S.indices, S.indptr, table)[1]
            assert sparse_sums(spoiled, S.indices, S.indptr, y, None, np.zeros((3, 5)))


@pytest.mark.item("NBR-06")
@pytest.mark.parametrize("cls", [BernoulliNB, CategoricalNB])
def test_holes_are_summed_over(cls):
    for seed in range(3):
        X, y, weight = draw(seed, n=60, d=4, most=1 if cls is BernoulliNB else 2, holes=0.25)
        for alpha in (0.0, 0.5):
            model = cls(alpha=alpha).fit(X, y, sample_weight=weight)
            totals = naive_counts.class_weights(y, weight)
            prior = {c: w / sum(totals.values()) for c, w in totals.items()}
            values = [0.0, 1.0] if cls is BernoulliNB else [0.0, 1.0, 2.0]
            tables = [naive_counts.table(X, y, weight, j, values) for j in range(4)]
            chances = [{c: naive_counts.smoothed(t[c], alpha) for c in t} for t in tables]
            new = draw(seed + 50, n=30, d=4, most=int(values[-1]), holes=0.4)[0]
            new[0] = np.nan
            expected = naive_counts.joint(new, prior, chances)
            # 1e-10: the bar of the issue
            np.testing.assert_allclose(np.exp(model.joint_log_likelihood(new)), expected, rtol=1e-10, atol=1e-300)
            possible = expected.sum(axis=1) > 0
            assert np.array_equal(np.isneginf(model.score_samples(new)), ~possible)
            np.testing.assert_allclose(
                model.score_samples(new)[possible], np.log(expected.sum(axis=1)[possible]), rtol=1e-10, atol=1e-15
            )
            posterior = np.where(possible[:, None], expected, list(prior.values()))
            posterior /= posterior.sum(axis=1, keepdims=True)
            np.testing.assert_allclose(model.predict_proba(new), posterior, rtol=1e-10)
            assert model.certify(X, y, weight).holds


def test_missing_counts_are_summed_over_when_the_length_is_not_known():
    X, y, weight = draw(3, n=80, d=4, most=4, holes=0.2)
    model = MultinomialNB().fit(X, y, sample_weight=weight)
    theta = np.exp(model.feature_log_prob_)
    new = draw(9, n=20, d=4, most=4, holes=0.3)[0]
    new = new[np.nansum(new, axis=1) > 0]
    by_lengths = np.array([[naive_counts.sum_over_lengths(row, t) for t in theta] for row in new])
    # Up to what is the same for all classes; 1e-10: the bar of the issue.
    found = model.predict_joint_log_proba(new) - model.class_log_prior_
    apart = found - by_lengths
    np.testing.assert_allclose(apart - apart[:, :1], 0.0, atol=1e-10)
    nothing = np.full((1, 4), NAN)
    np.testing.assert_allclose(model.predict_proba(nothing), np.exp(model.class_log_prior_)[None], rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(nothing), 0.0, atol=1e-12)


def test_a_fit_to_counts_with_holes_is_the_maximum():
    X, y, weight = draw(4, n=60, d=4, most=5, holes=0.35)
    X[:, 3] = np.where(y == 1, np.nan, X[:, 3])  # class 1 never shows the last column
    alpha = np.array([1.0, 0.5, 2.0, 0.7])
    model = MultinomialNB(alpha=alpha).fit(X, y, sample_weight=weight)
    assert model.certify(X, y, weight).holds
    for c in range(3):
        rows = [(row, w) for row, label, w in zip(X, y, weight, strict=True) if label == c]

        def fall(eta, rows=rows):
            return -naive_counts.holes_objective(np.exp(eta - logsumexp(eta)), rows, alpha)

        found = minimize(fall, np.zeros(4), method="BFGS", options={"gtol": 1e-7})
        # 1e-5: what a search with differences for derivatives can do
        np.testing.assert_allclose(np.exp(model.feature_log_prob_[c]), np.exp(found.x - logsumexp(found.x)), rtol=1e-5)
        assert naive_counts.holes_objective(np.exp(model.feature_log_prob_[c]), rows, alpha) >= -found.fun - 1e-9
    # A column that a class never shows has the mean of its prior.
    np.testing.assert_allclose(np.exp(model.feature_log_prob_[1, 3]), 0.7 / 4.2, rtol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1.0])
def test_a_row_that_shows_one_column_is_certain_and_tells_nothing(alpha):
    """Of 400 tables like these, EM on such rows too would not come to rest in 94."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y, weight = rng.poisson(0.5, (13, 2)).astype(float), np.arange(13) % 2, rng.integers(1, 4, 13).astype(float)
        X[rng.random(X.shape) < 0.2] = NAN
        model = MultinomialNB(alpha=alpha, fit_prior=False).fit(X, y, sample_weight=weight)  # a warning would be an error
        assert model.certify(X, y, sample_weight=weight).holds
        complete = ~np.isnan(X).any(axis=1)
        without = MultinomialNB(alpha=alpha, fit_prior=False).fit(X[complete], y[complete], sample_weight=weight[complete])
        np.testing.assert_allclose(model.feature_log_prob_, without.feature_log_prob_, rtol=1e-9)


@models
def test_in_pieces_as_at_once(cls):
    X, y, weight = draw(5, holes=0.2)
    whole = cls().fit(X, y, sample_weight=weight)
    parts = cls()
    for start in range(0, 200, 35):
        rows = slice(start, start + 35)
        parts.partial_fit(X[rows], y[rows], classes=[0, 1, 2], sample_weight=weight[rows])
    assert_same_bits(whole, parts)
    assert parts.certify(X, y, weight).holds
    with pytest.raises(ValueError, match="first call of partial_fit must name all classes"):
        cls().partial_fit(X, y)
    with pytest.raises(ValueError, match="not the same as in the first call"):
        parts.partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="not a class of the fit"):
        parts.partial_fit(X[:1], [7])
    fresh = cls()
    with pytest.raises(ValueError, match="not a class of the fit"):
        fresh.partial_fit(X, y, classes=[0, 1])  # the next call is still the first
    assert_same_bits(whole, fresh.partial_fit(X, y, classes=[0, 1, 2], sample_weight=weight))


@models
def test_a_saved_model_goes_on_where_it_was(cls, tmp_path):
    X, y, _ = draw(12, holes=0.2)
    cls().partial_fit(X[:90], y[:90], classes=[0, 1, 2]).save(tmp_path / "model.lemmata")
    assert_same_bits(lemmata.load(tmp_path / "model.lemmata").partial_fit(X[90:], y[90:]), cls().fit(X, y))


def copied(model):
    return {name: np.copy(value) for name, value in vars(model).items() if name.endswith("_") and not isinstance(value, list)}


@models
@pytest.mark.parametrize("wrong", [{"alpha": -np.ones(5)}, {"class_prior": [0.5, 0.6, 0.7]}], ids=str)
def test_what_is_refused_leaves_the_model_as_it_was(cls, wrong):
    X, y, _ = draw()
    model = cls().fit(X, y)
    before = copied(model)
    for learn in (model.set_params(**wrong).partial_fit, model.fit):
        with pytest.raises(ValueError, match=r"alpha must|class_prior must"):
            learn(X[: len(y) // 2], y[: len(y) // 2])
        assert {name: value.tolist() for name, value in copied(model).items()} == {n: v.tolist() for n, v in before.items()}


@models
def test_the_target_of_a_file_is_no_column_to_learn_from(cls, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, _ = draw()
    pq.write_table(pa.table({f"x{j}": X[:, j] for j in range(5)} | {"y": y}), tmp_path / "rows.parquet")
    model = cls().partial_fit(tmp_path / "rows.parquet", "y", classes=[0, 1, 2])
    assert list(model.feature_names_in_) == [f"x{j}" for j in range(5)]
    np.testing.assert_array_equal(model.predict_proba(tmp_path / "rows.parquet"), cls().fit(X, y).predict_proba(X))


@models
def test_a_class_that_has_not_come_yet_has_no_chance(cls):
    X, y, _ = draw(6)
    model = cls().partial_fit(X[y < 2], y[y < 2], classes=[0, 1, 2])
    p = model.predict_proba(X)
    assert (p[:, 2] == 0).all()
    np.testing.assert_allclose(p[:, :2], cls().fit(X[y < 2], y[y < 2]).predict_proba(X), rtol=1e-12)


@models
def test_maximum_likelihood_says_never_and_never_says_nan(cls):
    X = np.array([[0, 2, 1], [0, 1, 1], [1, 0, 0], [2, 0, 0.0]])
    y = np.array([0, 0, 1, 1])
    model = cls(alpha=0).fit(X, y)
    assert model.certify(X, y).holds
    new = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 0], [NAN, NAN, NAN]])
    p, logs, joint = model.predict_proba(new), model.predict_log_proba(new), model.joint_log_likelihood(new)
    assert not np.isnan(p).any()
    assert not np.isnan(logs).any()
    assert not np.isnan(joint).any()
    assert p[:2].tolist() == [[1, 0], [0, 1]]
    assert logs[0].tolist() == [0, -np.inf]
    assert np.isneginf(joint[2]).all()
    assert p[2].tolist() == [0.5, 0.5]  # no class can have made it: the prior
    assert np.isneginf(model.score_samples(new)[2])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-15)
    assert model.predict(new)[:2].tolist() == [0, 1]
    # And it is the limit of less and less smoothing, wherever a class is possible.
    limit = cls(alpha=1e-12).fit(X, y).predict_proba(new)
    rows = [0, 1, 3, 4] if cls is MultinomialNB else [0, 1, 4]
    np.testing.assert_allclose(p[rows], limit[rows], atol=1e-9)


@models
def test_what_a_class_never_shows_is_uniform_without_smoothing(cls):
    X = np.array([[1.0, NAN], [0.0, NAN], [1.0, 1.0], [0.0, 1.0]])
    if cls is MultinomialNB:
        X[:2] = 0.0  # a class without a single count
    model = cls(alpha=0).fit(X, [0, 0, 1, 1])
    assert model.certify(X, [0, 0, 1, 1]).holds
    logs = model.feature_log_prob_[1] if cls is CategoricalNB else model.feature_log_prob_
    seen = logs[0] if cls is not BernoulliNB else logs[0, 1:]
    np.testing.assert_allclose(np.exp(seen), 0.5, rtol=1e-12)


@pytest.mark.item("NBR-06", "PRB-18")
def test_smoothing():
    # The catalogue's own: eight voters of a party, none of whom voted no.
    X, y = [[1]] * 8 + [[0]] * 2, [0] * 8 + [1] * 2
    model = BernoulliNB().fit(X, y)
    np.testing.assert_allclose(1 - np.exp(model.feature_log_prob_[0, 0]), 0.1, rtol=1e-12)
    for cls in MODELS:
        X, y, _ = draw(7)
        X[y == 0, 2] = 0.0
        positive = cls(alpha=1e-3).fit(X, y)
        p = positive.predict_proba(np.eye(5))
        assert (p > 0).all()  # no zero probabilities with alpha > 0
        tables = positive.feature_log_prob_ if cls is CategoricalNB else [positive.feature_log_prob_]
        assert all(np.isfinite(t).all() for t in tables)
        if cls is not BernoulliNB:
            for t in tables:
                np.testing.assert_allclose(np.exp(t).sum(axis=1), 1.0, rtol=1e-13)
        flat = cls(alpha=1e12).fit(X, y)  # so many imaginary rows are all that counts
        tables = flat.feature_log_prob_ if cls is CategoricalNB else [flat.feature_log_prob_]
        for t in tables:
            np.testing.assert_allclose(np.exp(t), 0.5 if cls is BernoulliNB else 1 / t.shape[1], rtol=1e-9)


def test_one_alpha_for_each_column_or_category():
    X, y, _ = draw(8, n=40, d=2, most=2)
    alpha = [0.5, 2.0]
    ours, theirs = peers(MultinomialNB, alpha=np.array(alpha))
    np.testing.assert_allclose(ours.fit(X, y).feature_log_prob_, theirs.fit(X, y).feature_log_prob_, rtol=1e-12)
    codes, bits = CategoricalNB(alpha=alpha).fit(X, y), BernoulliNB(alpha=alpha).fit(X, y)
    for j, a in enumerate(alpha):
        theirs = scikit.CategoricalNB(alpha=a).fit(X, y)
        np.testing.assert_allclose(codes.feature_log_prob_[j], theirs.feature_log_prob_[j], rtol=1e-12)
        theirs = scikit.BernoulliNB(alpha=a).fit(X, y)
        np.testing.assert_allclose(bits.feature_log_prob_[:, j], theirs.feature_log_prob_[:, j], rtol=1e-12)
    prior = [[1.0, 0.0, 3.0], [0.5, 0.5, 0.5]]
    model = CategoricalNB(alpha=prior).fit(X, y)
    smoothed = model.category_count_[0] + np.array(prior[0])
    np.testing.assert_allclose(np.exp(model.feature_log_prob_[0]), smoothed / smoothed.sum(axis=1, keepdims=True), rtol=1e-12)
    assert model.certify(X, y).holds
    for cls, wrong in ((MultinomialNB, [1.0] * 3), (BernoulliNB, [-1.0, 1.0]), (CategoricalNB, [[1.0], [1.0]])):
        with pytest.raises(ValueError, match="alpha must be a number"):
            cls(alpha=wrong).fit(X, y)


def test_an_unseen_category_says_nothing_unless_there_is_room_for_it():
    X, y, _ = draw(9, n=40, d=2, most=2)
    model = CategoricalNB().fit(X, y)
    np.testing.assert_array_equal(model.predict_proba([[7, 1]]), model.predict_proba([[NAN, 1]]))
    roomy = CategoricalNB(min_categories=[8, 3]).fit(X, y)
    assert roomy.n_categories_.tolist() == [8, 3]
    counts = roomy.class_count_
    np.testing.assert_allclose(np.exp(roomy.feature_log_prob_[0][:, 7]), 1 / (counts + 8), rtol=1e-12)
    theirs = scikit.CategoricalNB(min_categories=[8, 3]).fit(X, y)
    np.testing.assert_allclose(roomy.predict_proba([[7, 1]]), theirs.predict_proba([[7, 1]]), rtol=1e-12)
    for wrong in ([2], 1.5, [[2, 2]]):
        with pytest.raises(ValueError, match="min_categories"):
            CategoricalNB(min_categories=wrong).fit(X, y)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_names_of_categories(kind):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 50)
    sky = np.where(rng.random(50) < 0.2 + 0.5 * y, "clear", "gray")
    wind = rng.integers(0, 3, 50)
    if kind == "pandas":
        import pandas

        frame = pandas.DataFrame({"sky": sky, "wind": wind})
        new = pandas.DataFrame({"sky": ["clear", "green", None], "wind": [1, 2, 0]})
    else:
        import polars

        frame = polars.DataFrame({"sky": sky, "wind": wind})
        new = polars.DataFrame({"sky": ["clear", "green", None], "wind": [1, 2, 0]})
    model = CategoricalNB().fit(frame, y)
    coded = CategoricalNB().fit(np.column_stack([sky == "gray", wind]), y)
    assert model.categories_[0].tolist() == ["clear", "gray"]
    np.testing.assert_array_equal(model.predict_proba(frame), coded.predict_proba(np.column_stack([sky == "gray", wind])))
    np.testing.assert_array_equal(model.predict_proba(new), coded.predict_proba([[0, 1], [NAN, 2], [NAN, 0]]))
    assert model.certify(frame, y).holds


def test_what_is_drawn_of_named_columns_has_names():
    """A model that knows the class of a name must know it of names it draws itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 500)
    sky = np.where(rng.random(500) < 0.02 + 0.96 * y, "clear", "gray")
    X = np.array([sky, rng.integers(0, 3, 500)], dtype=object).T
    model = CategoricalNB().fit(X, y)
    rows, labels = model.sample(400, random_state=0)
    assert set(rows[:, 0]) == {"clear", "gray"}
    assert set(rows[:, 1]) == {0, 1, 2}
    assert model.score(rows, labels) > 0.9
    roomy, _ = CategoricalNB(min_categories=[3, 3], alpha=50.0).fit(X, y).sample(400, random_state=0)
    assert set(roomy[:, 0]) == {"clear", "gray", None}


@pytest.mark.item("NBR-06")
@models
def test_on_data_of_product_form_it_is_the_bayes_classifier(cls):
    """Give a fit every row in proportion to its joint probability; then it knows the law, and decides as who knows it does."""
    rng = np.random.default_rng(0)
    if cls is MultinomialNB:
        theta, length = np.array([[0.5, 0.25, 0.25], [0.125, 0.375, 0.5]]), 4
        rows = np.array([[a, b, length - a - b] for a in range(5) for b in range(5 - a)], dtype=float)
        from scipy.stats import multinomial

        law = np.array([multinomial(length, t).pmf(rows) for t in theta])
    else:
        values = 2 if cls is BernoulliNB else 3
        chances = rng.dirichlet(np.ones(values), size=(2, 3))
        rows = np.array(np.meshgrid(*[range(values)] * 3)).reshape(3, -1).T.astype(float)
        law = np.array([np.prod([chances[c, j, rows[:, j].astype(int)] for j in range(3)], axis=0) for c in range(2)])
    prior = np.array([0.375, 0.625])
    X, y, weight = np.vstack([rows, rows]), np.repeat([0, 1], len(rows)), (prior[:, None] * law).ravel()
    model = cls(alpha=0).fit(X, y, sample_weight=weight)
    bayes = (prior[:, None] * law).T
    np.testing.assert_allclose(np.exp(model.joint_log_likelihood(rows)), bayes, rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(rows), bayes / bayes.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_allclose(np.exp(model.score_samples(rows)).sum(), 1.0, rtol=1e-12)  # over all rows (of this length)
    assert np.array_equal(model.predict(rows), bayes.argmax(axis=1))


@models
def test_draws_have_the_fitted_law(cls):
    X, y, _ = draw(10)
    model = cls().fit(X, y)
    drawn, labels = model.sample(40_000, random_state=1)
    again, _ = model.sample(40_000, random_state=1)
    assert np.array_equal(drawn, again)
    assert drawn.shape == (40_000, 5)
    share = np.bincount(labels) / 40_000
    # Five standard deviations: a million runs would fail once.
    prior = np.exp(model.class_log_prior_)
    assert (np.abs(share - prior) < 5 * np.sqrt(prior / 40_000)).all()
    refit = cls().fit(drawn, labels)
    n = refit.class_count_[:, None]
    if cls is CategoricalNB:
        for a, b in zip(refit.feature_log_prob_, model.feature_log_prob_, strict=True):
            assert (np.abs(np.exp(a) - np.exp(b)) < 5 * np.sqrt(0.25 / n) + 10 / n).all()
    else:
        trials = n if cls is BernoulliNB else refit.feature_count_.sum(axis=1, keepdims=True)
        assert (
            np.abs(np.exp(refit.feature_log_prob_) - np.exp(model.feature_log_prob_)) < 5 * np.sqrt(0.25 / trials) + 10 / n
        ).all()
    if cls is MultinomialNB:
        for wrong in (-1, 2.5, [1, 2], "long"):
            with pytest.raises(ValueError, match="length must be a whole number from 0"):
                model.sample(3, 0, length=wrong)
        rows, _ = model.sample(3, 0, length=[1, 5, 0])
        assert rows.sum(axis=1).tolist() == [1, 5, 0]
    with pytest.raises(ValueError, match="n_samples must be a whole number of at least 1"):
        model.sample(0)


def test_what_cannot_be_counted_is_refused():
    y = [0, 1]
    for table in ([[1.0, -1.0], [0.0, 2.0]], csr_array([[1.0, -1.0], [0.0, 2.0]])):
        with pytest.raises(ValueError, match="Negative values in data passed to MultinomialNB"):
            MultinomialNB().fit(table, y)
        with pytest.raises(ValueError, match="Negative values in data passed to MultinomialNB"):
            MultinomialNB().fit([[1, 0], [0, 1]], y).predict(table)
    with pytest.raises(ValueError, match="Negative values in data passed to CategoricalNB"):
        CategoricalNB().fit([[1.0, -1.0], [0.0, 2.0]], y)
    with pytest.raises(ValueError, match="1 entries are not"):
        CategoricalNB().fit([[1.0, 0.5], [0.0, 2.0]], y)
    with pytest.raises(ValueError, match="too many categories"):
        CategoricalNB().fit([[1e12, 0], [0.0, 2.0]], y)
    with pytest.raises(ValueError, match="2 entries are neither"):
        BernoulliNB(binarize=None).fit([[0.5, 1], [0, 2]], y)
    assert BernoulliNB(binarize=None).fit([[NAN, 1], [0, 1]], y).certify([[NAN, 1], [0, 1]], y).holds
    with pytest.raises(ValueError, match="no negative binarize"):
        BernoulliNB(binarize=-1.0).fit(csr_array(np.eye(2)), y)
    for prior in ([0.5], [0.7, 0.7], [-0.5, 1.5]):
        with pytest.raises(ValueError, match="class_prior must hold 2 numbers"):
            BernoulliNB(class_prior=prior).fit(np.eye(2), y)


@models
def test_a_certificate_refuses_what_was_smoothed_otherwise(cls):
    X, y, weight = draw(11, holes=0.1)
    model = cls().fit(X, y, sample_weight=weight)
    assert model.certify(X, y, weight).kind == "proof"
    assert not model.set_params(alpha=1.01).certify(X, y, weight).holds
    assert not model.set_params(alpha=1.0, class_prior=[0.2, 0.3, 0.5]).certify(X, y, weight).holds
    assert not model.set_params(class_prior=None).certify(X, y).holds


@pytest.mark.parametrize("cls", [BernoulliNB, MultinomialNB])
def test_an_entry_in_two_parts_is_one_entry(cls):
    """SciPy lets a sparse row store an entry in parts, whose sum is meant; and in any order."""
    X, y, _ = draw(14)
    X = X[:, :3] * 2
    n = len(X)
    halves = np.repeat(X[:, ::-1] / 2, 2, axis=1).ravel()
    columns, starts = np.tile(np.repeat([2, 1, 0], 2), n), 6 * np.arange(n + 1)
    parts = csr_array((halves, columns, starts), shape=(n, 3))
    binarize = {"binarize": 1.5} if cls is BernoulliNB else {}
    model = cls(**binarize).fit(X, y)
    assert_same_bits(model, cls(**binarize).fit(parts, y))
    np.testing.assert_allclose(
        model.joint_log_likelihood(X), model.joint_log_likelihood(parts), rtol=1e-14
    )  # sums in any order
    assert model.certify(parts, y).holds
    assert parts.nnz == 6 * n  # the caller's table is left alone


@models
def test_a_row_that_no_class_can_have_made_gets_the_likelier_class(cls):
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.array(["a", "b", "b"])
    model = cls(alpha=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba([[1.0, 1.0]]), [[1 / 3, 2 / 3]], rtol=1e-12)
    assert model.predict([[1.0, 1.0]]) == ["b"]


@models
def test_many_probabilities_hide_no_single_one(cls):
    rng = np.random.default_rng(0)
    d, n = 4000, 60
    X, y = (rng.random((n, d)) < 0.3).astype(float), np.arange(n) % 2
    model = cls().fit(X, y)
    assert model.certify(X, y).holds
    logs = model.feature_log_prob_[0] if cls is CategoricalNB else model.feature_log_prob_
    logs[0, 0] += 1e-5
    assert not model.certify(X, y).holds
    model = cls().fit(X, y)
    counts = model.category_count_[0] if cls is CategoricalNB else model.feature_count_
    counts[0, 0] *= 1.001
    assert [check.name for check in model.certify(X, y).failed] == ["counts"]


@models
def test_alpha_is_raised_unless_forced_as_scikit_learn_does(cls):
    X, y, _ = draw()
    X[y == 0, 0] = 0
    ours, theirs = peers(cls, alpha=0.0, force_alpha=False)
    with pytest.warns(UserWarning, match="alpha too small"):
        theirs.fit(X, y)
    # 1e-3: scikit-learn takes the chance of a zero as 1 − p, and with p = 1 − 1e-12 four digits are left of it
    tolerance = 1e-3 if cls is BernoulliNB else 1e-10
    np.testing.assert_allclose(ours.fit(X, y).predict_log_proba(X), theirs.predict_log_proba(X), rtol=1e-8, atol=tolerance)
    np.testing.assert_array_equal(ours.predict_log_proba(X), cls(alpha=1e-10).fit(X, y).predict_log_proba(X))
    assert ours.certify(X, y).holds
    for wrong in (["a"] * 5, [-1.0] * 5):
        with pytest.raises(ValueError, match="alpha must be a number"):
            cls(alpha=wrong).fit(X, y)


def test_what_no_table_can_hold_is_refused():
    X, y, _ = draw()
    with pytest.raises(ValueError, match="min_categories=10000000000 asks for more counts"):
        CategoricalNB(min_categories=10**10).fit(X, y)
    with pytest.raises(ValueError, match="'binarize' parameter"):
        BernoulliNB(binarize=np.nan).fit(X, y)
    with pytest.raises(ValueError, match="classes must name at least two classes"):
        MultinomialNB().partial_fit(X, y, classes=[1])
