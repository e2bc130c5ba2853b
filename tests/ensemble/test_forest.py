"""Forests: every split against exact enumeration, bags and columns replayed, out-of-bag and intervals against simulation."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.ensemble import RandomForestClassifier as PeerClassifier
from sklearn.ensemble import RandomForestRegressor as PeerRegressor

import lemmata
from lemmata.ensemble import BaggingRegressor, RandomForestClassifier, RandomForestRegressor
from lemmata.tree import DecisionTreeClassifier, DecisionTreeRegressor


def mass(y, weight, n_classes):
    """Weight times impurity, in rational numbers: Gini for classes, squares for numbers."""
    rows = list(zip(y, weight, strict=True))
    total = sum(weight, Fraction(0))
    if n_classes == 0:
        return sum((w * v * v for v, w in rows), Fraction(0)) - sum(w * v for v, w in rows) ** 2 / total
    shares = [sum((w for v, w in rows if v == k), Fraction(0)) for k in range(n_classes)]
    return total - sum(s * s for s in shares) / total


def gain(left, y, weight, n_classes):
    rows = list(zip(y, weight, left, strict=True))
    sides = [([v for v, _, b in rows if b == side], [w for _, w, b in rows if b == side]) for side in (True, False)]
    return mass(y, weight, n_classes) - sum(mass(v, w, n_classes) for v, w in sides)


def candidates(x, categorical):
    """Every way to part the rows of a node by a column, missing values at either side."""
    values, missing = np.unique(x[~np.isnan(x)]), np.isnan(x)
    if categorical:
        sets = [s for r in range(len(values) + 1) for s in combinations(values, r)]
    else:
        sets = [values[: i + 1] for i in range(len(values))] + [values[:0]]
    for chosen in sets:
        inside = np.isin(x, chosen)
        for left in (inside, inside | missing):
            if 0 < left.sum() < len(x):
                yield left


def assert_greedy(tree, X, y, weight, n_classes, categorical=(), tol=1e-12):
    """Assert that every split gains as much as the best of all, and that leaves cannot be split."""
    rows = {0: np.flatnonzero(weight > 0)}
    for node in range(tree.node_count):
        inside = rows[node]
        target = [int(v) if n_classes else Fraction(v) for v in y[inside]]
        w = [Fraction(v) for v in weight[inside]]
        best = max(
            (
                gain(left, target, w, n_classes)
                for j in range(X.shape[1])
                for left in candidates(X[inside, j], j in categorical)
            ),
            default=None,
        )
        if tree.children_left[node] < 0:
            assert best is None or len(set(target)) == 1
            continue
        left = tree.goes_left(node, X[inside, tree.feature[node]])
        made = gain(left, target, w, n_classes)
        # growing compares in floating point: of nearly equal splits either may win
        assert float(best - made) <= tol * float(mass(target, w, n_classes))
        assert tree.gain[node] * float(sum(Fraction(v) for v in weight)) == pytest.approx(float(made), rel=1e-9, abs=1e-12)
        rows[tree.children_left[node]], rows[tree.children_left[node] + 1] = inside[left], inside[~left]


def table(seed=0, n=36, d=3):
    rng = np.random.default_rng(seed)
    return rng, np.round(rng.normal(size=(n, d)), 1)  # rounded: ties


@pytest.mark.item("TRE-08")
@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("kind", ["plain", "missing", "categories", "weights"])
def test_every_split_is_the_best_by_exact_enumeration(n_classes, kind):
    rng, X = table()
    y = rng.integers(0, n_classes, len(X)) if n_classes else np.round(rng.normal(size=len(X)), 2)
    weight, options, tol = None, {}, 1e-12
    if kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
    if kind == "categories":
        X[:, 0] = rng.integers(0, 5, len(X))
        options["categorical_features"] = [0]
        tol = 1.0 if n_classes == 3 else tol  # for three classes the search for a set is a heuristic
    if kind == "weights":
        weight = rng.uniform(0.5, 2, len(X))
    cls = RandomForestClassifier if n_classes else RandomForestRegressor
    model = cls(1, bootstrap=False, max_features=None, **options).fit(X, y, weight)
    weight = np.ones(len(X)) if weight is None else weight
    assert_greedy(model.trees_[0], X, y, weight, n_classes, (0,) if kind == "categories" else (), tol)
    certificate = model.certify(X, y, weight)
    assert certificate.holds, str(certificate)


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_tree_of_all_rows_and_columns_is_cart(criterion, n_classes):
    X, y = make_classification(240, 6, n_informative=4, n_classes=n_classes, random_state=1)
    # few leaves: in small nodes splits tie, and the two break ties otherwise
    for options in ({"max_depth": 2}, {"max_leaf_nodes": 4}, {"min_samples_leaf": 40}, {"min_impurity_decrease": 0.05}):
        model = RandomForestClassifier(1, criterion=criterion, bootstrap=False, max_features=None, **options).fit(X, y)
        twin = DecisionTreeClassifier(criterion=criterion, **options).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X), rtol=1e-12, err_msg=str(options))
        np.testing.assert_allclose(model.feature_importances_, twin.feature_importances_, rtol=1e-9, atol=1e-12)
        assert model.certify(X, y).holds, options


@pytest.mark.item("TRE-08")
def test_a_forest_that_looks_at_all_columns_is_bagged_trees():
    X, y = make_friedman1(200, noise=0.5, random_state=0)
    forest = RandomForestRegressor(5, max_features=None, max_depth=3, random_state=7).fit(X, y)
    bagged = BaggingRegressor(DecisionTreeRegressor(max_depth=3), 5, random_state=7).fit(X, y)
    members = zip(forest.estimators_, bagged.estimators_, forest.estimators_samples_, bagged.estimators_samples_, strict=True)
    for one, other, rows, same_rows in members:
        assert np.array_equal(rows, same_rows)
        # thresholds lie elsewhere in the same gaps, so the rows of the bag, and these only, meet the same leaves
        np.testing.assert_allclose(one.predict(X[rows]), other.predict(X[rows]), rtol=1e-12)


@pytest.mark.item("TRE-08")
def test_drawing_columns_lowers_the_correlation_of_trees():
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    new, truth = make_friedman1(300, noise=0.0, random_state=1)

    def correlation(max_features):
        forest = RandomForestRegressor(40, max_features=max_features, random_state=0).fit(X, y)
        c = np.corrcoef([tree.predict(new) - truth for tree in forest.estimators_])
        return (c.sum() - len(c)) / (len(c) * (len(c) - 1))

    assert correlation(2) < correlation(None) - 0.05


@pytest.mark.item("TRE-08")
def test_out_of_bag_accuracy_is_that_of_new_rows_and_of_scikit_learn():
    X, y = make_classification(6000, 15, n_informative=8, flip_y=0.05, random_state=0)
    ours = RandomForestClassifier(random_state=0).fit(X[:3000], y[:3000])
    theirs = PeerClassifier(random_state=0, oob_score=True, n_jobs=2).fit(X[:3000], y[:3000])
    error = np.sqrt(0.1 * 0.9 / 3000)  # of one accuracy near 0.9; four of them are one chance in 16,000
    assert abs(ours.oob_score_ - ours.score(X[3000:], y[3000:])) < 4 * np.sqrt(2) * error
    assert abs(ours.oob_score_ - theirs.oob_score_) < 2 * error  # on the same rows


def test_regression_is_as_good_as_scikit_learns():
    X, y = make_friedman1(1500, noise=1.0, random_state=0)
    ours, theirs = (cls(50, random_state=0, oob_score=True).fit(X, y) for cls in (RandomForestRegressor, PeerRegressor))
    assert ours.oob_score_ == pytest.approx(theirs.oob_score_, abs=0.01)  # seeds move it by 0.003


def test_large_nodes_of_one_crowded_column_still_reach_every_value():
    """More rows than coarse ranks: where all rows of a node share one, fine ranks take over."""
    x = np.random.default_rng(0).permutation(20_000).astype(float)
    y = (x.astype(int) // 7 % 2).astype(float)
    model = RandomForestRegressor(1, bootstrap=False).fit(x[:, None], y)
    assert np.array_equal(model.predict(x[:, None]), y)
    assert model.certify(x[:, None], y).holds


def test_out_of_bag_predictions_are_means_over_trees_that_have_not_seen_the_row():
    X, y = make_classification(150, 5, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0)
    labels = np.array(["a", "b", "c"])[y]
    with pytest.warns(UserWarning, match="have no out-of-bag prediction"):
        model = RandomForestClassifier(4, oob_score=True, random_state=0).fit(X, labels)
    total, votes = np.zeros((150, 3)), np.zeros(150)
    for tree, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        unseen = np.setdiff1d(np.arange(150), rows)
        total[unseen] += tree.predict_proba(X[unseen])
        votes[unseen] += 1
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(model.oob_decision_function_, total / votes[:, None], rtol=1e-12)
    seen = votes > 0
    assert model.oob_score_ == np.mean(model.classes_[total[seen].argmax(axis=1)] == labels[seen])
    np.testing.assert_allclose(
        model.predict_proba(X), np.mean([tree.predict_proba(X) for tree in model.estimators_], axis=0), rtol=1e-12
    )


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover_new_rows_as_often_as_they_say(level):
    X, y = make_friedman1(1000, noise=1.0, random_state=0)
    new, truth = make_friedman1(4000, noise=1.0, random_state=1)
    low, high = RandomForestRegressor(60, random_state=0).fit(X, y).predict_interval(new, level).T
    # 0.03: three deviations of the coverage given 1,000 residuals and 4,000 new rows
    assert np.mean((low <= truth) & (truth <= high)) == pytest.approx(level, abs=0.03)


def test_uncertainty_is_the_spread_of_the_trees():
    X, y = make_friedman1(100, random_state=0)
    model = RandomForestRegressor(10, random_state=0).fit(X, y)
    expected = np.std([tree.predict(X) for tree in model.estimators_], axis=0)
    np.testing.assert_allclose(model.uncertainty(X), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cls", [RandomForestClassifier, RandomForestRegressor])
@pytest.mark.parametrize("options", [{"bootstrap": False}, {}, {"min_samples_leaf": 4}])
def test_whole_weights_are_repeated_rows(cls, options):
    rng, X = table(3, n=80)
    y = rng.integers(0, 3, 80)
    weight = rng.integers(0, 4, 80)
    one = cls(10, random_state=0, **options).fit(X, y, weight.astype(float))
    other = cls(10, random_state=0, **options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(one.trees_.nodes.feature, other.trees_.nodes.feature)
    assert np.array_equal(one.trees_.nodes.threshold, other.trees_.nodes.threshold)
    np.testing.assert_allclose(one.trees_.nodes.value, other.trees_.nodes.value, rtol=1e-12, atol=1e-12)


def test_any_number_of_threads_grows_the_same_trees_of_any_kind():
    rng, X = table(1, n=300, d=4)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 0] = rng.integers(0, 9, 300)
    y = rng.integers(0, 3, 300)
    models = []
    for n_threads in (1, 2, 5):
        with lemmata.config(n_threads=n_threads):
            model = RandomForestClassifier(12, categorical_features=[0], random_state=0, class_weight="balanced_subsample")
            models.append(model.fit(X, y))
    assert models[0].trees_ == models[1].trees_ == models[2].trees_
    assert np.array_equal(models[0].oob_decision_function_, models[2].oob_decision_function_, equal_nan=True)
    assert models[0].certify(X, y).holds


def test_text_columns_and_unknown_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(["red", "green", "blue"], 200), "size": rng.normal(size=200)})
    y = np.where((frame["color"] == "green") ^ (frame["size"] > 0), "yes", "no")
    model = RandomForestClassifier(30, random_state=0).fit(frame, y)
    assert model.score(frame, y) == 1.0
    assert model.certify(frame, y).holds
    assert np.isfinite(model.predict_proba(pd.DataFrame({"color": ["purple", None], "size": [0.0, 1.0]}))).all()


def test_balanced_classes_find_the_rare_one():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.05).astype(int)
    X = rng.normal(size=(4000, 3)) + y[:, None]
    new, X, truth, y = X[2000:], X[:2000], y[2000:], y[:2000]
    recall = {}
    for class_weight in (None, "balanced", "balanced_subsample", {1: 19.0}):
        model = RandomForestClassifier(30, class_weight=class_weight, min_samples_leaf=10, random_state=0).fit(X, y)
        recall[str(class_weight)] = np.mean(model.predict(new[truth == 1]) == 1)
        assert model.certify(X, y).holds
    assert min(list(recall.values())[1:]) > recall["None"] + 0.2


def test_an_interrupted_fit_keeps_its_trees(monkeypatch):
    from contextlib import contextmanager

    from lemmata.ensemble import forest_fit

    class Bar:
        count = 0

        def update(self):
            self.count += 1
            if self.count == 3:
                raise KeyboardInterrupt

    @contextmanager
    def bar(total):
        yield Bar()

    monkeypatch.setattr(forest_fit, "_bar", bar)
    X, y = make_friedman1(60, random_state=0)
    with lemmata.config(n_threads=1), pytest.warns(UserWarning, match="interrupted after 3 of 10 trees"):
        model = RandomForestRegressor(10, random_state=0, verbose=1).fit(X, y)
    assert len(model.estimators_) == 3
    assert model.certify(X, y).holds
    assert model.trees_ == RandomForestRegressor(3, random_state=0).fit(X, y).trees_


def test_informative_columns_are_important():
    X, y = make_classification(500, 8, n_informative=2, n_redundant=0, shuffle=False, random_state=0)
    importances = RandomForestClassifier(50, random_state=0).fit(X, y).feature_importances_
    assert importances.sum() == pytest.approx(1.0, rel=1e-12)
    assert importances[:2].min() > importances[2:].max()


@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 0},
        {"criterion": "squared"},
        {"max_depth": 0},
        {"min_samples_split": 1},
        {"min_samples_leaf": 0},
        {"max_features": 0},
        {"max_features": "all"},
        {"max_leaf_nodes": 1},
        {"min_impurity_decrease": -1.0},
        {"max_samples": 0},
        {"max_samples": 10, "bootstrap": False},
        {"oob_score": "yes"},
        {"class_weight": "even"},
    ],
)
def test_parameters_without_sense_are_refused(options):
    _, X = table()
    with pytest.raises(ValueError, match=next(iter(options))):
        RandomForestClassifier(**options).fit(X, np.arange(len(X)) % 2)


def test_bounds_of_the_risk_read_our_forests_and_say_what_stands_in_the_way():
    X, y = make_classification(400, 6, n_informative=4, random_state=0)
    bound = lemmata.theory.guarantee(RandomForestClassifier(30, random_state=0).fit(X, y), X, y)
    assert "bins were cut by all rows" in str(bound)


@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 7}, {"bootstrap": False, "max_features": 3, "max_depth": 4}])
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_are_those_of_the_training_rows_in_the_leaves(options, weighted):
    rng = np.random.default_rng(0)
    X, y = make_friedman1(120, random_state=0)
    y = np.round(y)  # ties
    new = make_friedman1(9, random_state=1)[0]
    weight = rng.uniform(0.5, 2, 120) if weighted else None
    model = RandomForestRegressor(8, random_state=0, **options).fit(X, y, weight)
    q = np.array([0.9, 0.0, 0.31, 1.0])
    at_new, at_rows = model.apply(new), model.apply(X)
    expected = np.empty((9, 4))
    for i in range(9):
        shares = np.zeros(120)
        for t, rows in enumerate(model.estimators_samples_):
            own = np.bincount(rows, minlength=120).astype(float)
            if weighted and "bootstrap" in options:
                own = weight
            own = own * (at_rows[:, t] == at_new[i, t])
            shares += own / own.sum() / 8
        assert shares @ y == pytest.approx(model.predict(new[i : i + 1])[0], rel=1e-9)
        values = np.unique(y[shares > 0])
        below = np.array([shares[y <= v].sum() for v in values])
        expected[i] = [values[np.flatnonzero(below >= p - 1e-9)[0]] for p in q]
    assert np.array_equal(model.predict_quantiles(new, q), expected)
    assert np.array_equal(model.predict_quantiles(new, 0.9), expected[:, 0])
    assert model.certify(X, y, weight).holds
    with pytest.raises(ValueError, match="q must be"):
        model.predict_quantiles(new, 1.5)


def test_quantiles_follow_the_noise():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (4000, 1))
    y = X[:, 0] * rng.normal(size=4000)
    model = RandomForestRegressor(50, min_samples_leaf=50, random_state=0).fit(X, y)
    low, high = model.predict_quantiles([[0.2], [0.8]], [0.1, 0.9]).T
    # ±1.2816 x is the truth; some 100 rows near a point give a quantile to about 15 %
    np.testing.assert_allclose(high, 1.2816 * np.array([0.2, 0.8]), rtol=0.25)
    np.testing.assert_allclose(low, -1.2816 * np.array([0.2, 0.8]), rtol=0.25)


def test_rows_that_were_put_into_another_leaf_are_refused():
    from dataclasses import replace

    X, y = make_friedman1(60, random_state=0)
    model = RandomForestRegressor(5, random_state=0).fit(X, y)
    assert model.certify(X, y).holds
    kept = model._leaf_rows
    swapped = kept.rows.copy()
    swapped[[0, kept.ends[1] - 1]] = swapped[[kept.ends[1] - 1, 0]]
    for wrong in (replace(kept, rows=swapped), replace(kept, target=kept.target * 1.01), replace(kept, first=kept.first[::-1])):
        model._leaf_rows = wrong
        assert not model.certify(X, y).holds


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_limits_count_a_row_once_however_often_it_was_drawn(n_classes):
    """As scikit-learn does, whose trees see the draws as weights; a row of weight two is two rows."""
    X, y = make_friedman1(300, random_state=0)
    cls, peer = (RandomForestClassifier, PeerClassifier) if n_classes else (RandomForestRegressor, PeerRegressor)
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y
    for name, value in (("min_samples_leaf", 12), ("min_samples_leaf", 0.1), ("min_samples_split", 60)):
        ours, theirs = (f(40, random_state=0, max_features=3, **{name: value}).fit(X, y) for f in (cls, peer))
        sizes = [tree.n_node_samples[tree.children_left < 0] for tree in ours.trees_]
        if name == "min_samples_leaf":
            assert np.concatenate(sizes).min() == (12 if value == 12 else 30)
        else:
            assert min(tree.n_node_samples[tree.children_left >= 0].min() for tree in ours.trees_) >= 60
        leaves = np.mean([len(s) for s in sizes]), np.mean([tree.get_n_leaves() for tree in theirs.estimators_])
        assert leaves[0] == pytest.approx(leaves[1], rel=0.1)  # chance: a mean over 40 trees of some 10 leaves, give or take 1
        assert ours.certify(X, y).holds
    weight = np.random.default_rng(0).integers(1, 4, 300)
    one = cls(5, random_state=0, min_samples_leaf=12).fit(X, y, weight)
    other = cls(5, random_state=0, min_samples_leaf=12).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(one.trees_.nodes.threshold, other.trees_.nodes.threshold)
    assert np.array_equal(one.trees_.nodes.missing_go_to_left, other.trees_.nodes.missing_go_to_left)
    assert one.certify(X, y, weight).holds


@pytest.mark.parametrize("n_classes", [0, 2, 3])
@pytest.mark.parametrize("options", [{"min_impurity_decrease": 0.02}, {"min_weight_fraction_leaf": 0.1}])
def test_limits_on_gain_and_weight(n_classes, options):
    X, y = make_friedman1(300, random_state=0)
    y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y / 5
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)
    cls, twin = (
        (RandomForestClassifier, DecisionTreeClassifier) if n_classes else (RandomForestRegressor, DecisionTreeRegressor)
    )
    model = cls(1, bootstrap=False, max_features=None, **options).fit(X, y, weight)
    # the exact tree; candidates of large nodes are coarse ranks here, so that few splits differ
    leaves = twin(**options).fit(X, y, weight).get_n_leaves()
    assert model.estimators_[0].get_n_leaves() == pytest.approx(leaves, abs=1)
    bagged = cls(5, random_state=0, **options).fit(X, y)
    tree = bagged.trees_.nodes
    if "min_impurity_decrease" in options:
        assert tree.gain[tree.children_left >= 0].min() >= 0.02
    else:
        assert tree.weighted_n_node_samples.min() >= 30
    assert 3 < tree.n_node_samples.size / 5 < 60
    assert model.certify(X, y, weight).holds
    assert bagged.certify(X, y).holds
    free = cls(5, random_state=0).fit(X, y)
    free.set_params(**options)
    assert not free.certify(X, y).holds, "splits that the limit forbids are refused"


def test_no_table_is_too_odd():
    rng, X = table(5, n=90, d=3)
    classes, numbers = rng.integers(0, 2, 90), X[:, 0] + rng.normal(size=90)
    gone = X.copy()
    gone[:, 1] = np.nan
    weight = rng.uniform(0, 2, 90)
    for x, w in (
        (np.ones_like(X), None),
        (gone, None),
        (X[:, :1], None),
        (X * 1e300, None),
        (X * 1e-3 + 1e9, None),
        (X, weight * 1e200),
        (X, weight * 1e-200),
        (X, 10.0 ** rng.uniform(-12, 12, 90)),
    ):
        for cls, y in ((RandomForestClassifier, classes), (RandomForestRegressor, numbers)):
            for bootstrap in (True, False):
                model = cls(3, bootstrap=bootstrap, random_state=0).fit(x, y, w)
                certificate = model.certify(x, y, w)
                assert certificate.holds, str(certificate)
                assert np.isfinite(model.predict(x)).all()
    codes = np.arange(65_536.0)[:, None]
    with pytest.raises(ValueError, match="Column 0 has 65,536 categories"):
        RandomForestRegressor(categorical_features=[0]).fit(codes, codes[:, 0])


def test_trees_know_the_names_of_columns_and_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(["red", "green", "blue"], 100), "size": rng.normal(size=100)})
    forest = RandomForestRegressor(2, max_depth=2, random_state=0).fit(frame, (frame["color"] == "red") + 0.1 * frame["size"])
    told = lemmata.tree.export_text(forest.estimators_[0])
    assert "color in {blue, green}" in told
    assert "size <=" in told
    np.testing.assert_allclose(forest.predict(frame), np.mean([t.predict(frame) for t in forest.estimators_], axis=0))


def test_a_signal_in_the_middle_of_a_fit_keeps_a_forest_that_works():
    import os
    import signal
    import threading

    X, y = make_friedman1(4000, random_state=0)
    RandomForestRegressor(1).fit(X, y)  # compiled before
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(UserWarning, match="interrupted after"):
        model = RandomForestRegressor(100_000, random_state=0).fit(X, y)
    timer.join()
    assert 0 < len(model.trees_) < 100_000
    assert len(model.predict(X[:3])) == 3
    assert model.certify(X, y).holds
    assert model.trees_[0] == RandomForestRegressor(1, random_state=0).fit(X, y).trees_[0]


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_the_certificate_refuses_trees_of_other_rules(n_classes):
    rng, X = table(2, n=60, d=4)
    X[rng.random(X.shape) < 0.1] = np.nan if n_classes == 3 else 0.0
    y = rng.integers(0, n_classes, 60) if n_classes else rng.normal(size=60)
    cls = RandomForestClassifier if n_classes else RandomForestRegressor
    for grown, told in (
        ({"max_features": 1}, {"max_features": 4}),  # better splits
        ({"max_features": 4}, {"max_features": 1}),  # columns that were not drawn
        ({"max_depth": 2}, {"max_depth": None}),  # leaves that could be split
        ({"max_depth": None}, {"max_depth": 3}),
        ({"min_samples_leaf": 1}, {"min_samples_leaf": 3}),
        ({"min_samples_split": 2}, {"min_samples_split": 9}),
        ({"max_leaf_nodes": 4}, {"max_leaf_nodes": 6}),
        ({"max_leaf_nodes": 6}, {"max_leaf_nodes": 4}),
    ):
        model = cls(3, random_state=0, **grown).fit(X, y)
        assert model.certify(X, y).holds
        assert not model.set_params(**told).certify(X, y).holds, (grown, told)
    model = cls(3, random_state=0).fit(X, y)
    inner = np.flatnonzero(model.trees_.nodes.children_left >= 0)
    model.trees_.nodes.missing_go_to_left[inner[-1]] ^= True
    assert not model.certify(X, y).holds


def test_intervals_add_the_quantiles_of_the_residuals():
    X, y = make_friedman1(99, random_state=0)
    model = RandomForestRegressor(30, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.oob_residuals_, y - model.oob_prediction_)
    residuals = np.sort(model.oob_residuals_)
    assert len(residuals) == 99, "100 gaps between 99 residuals: each has a chance of 1 %"
    expected = model.predict(X[:5])[:, None] + residuals[[4, 94]]  # five gaps below and five above
    np.testing.assert_allclose(model.predict_interval(X[:5], 0.9), expected)
    with pytest.raises(ValueError, match="too few"):
        model.predict_interval(X[:5], 0.999)


def test_classes_of_a_bag_weigh_the_same():
    _rng, X = table(4, n=90)
    y = np.repeat([0, 1, 2], [60, 20, 10])
    model = RandomForestClassifier(6, class_weight="balanced_subsample", random_state=0).fit(X, y)
    for tree, rows in zip(model.trees_, model.estimators_samples_, strict=True):
        np.testing.assert_allclose(tree.value[0], 1 / 3)
        assert tree.weighted_n_node_samples[0] == pytest.approx(len(rows))
    drawn = np.concatenate(RandomForestClassifier(60, class_weight="balanced", random_state=0).fit(X, y).estimators_samples_)
    np.testing.assert_allclose(np.bincount(y[drawn]) / len(drawn), 1 / 3, atol=0.03)  # 5,400 draws: four deviations
    for weight, whole in (({0: 2.0}, 2.0), ({0: 2.5}, 2.5)):
        tree = RandomForestClassifier(1, class_weight=weight, bootstrap=False, min_samples_leaf=5).fit(X, y).trees_[0]
        assert tree.weighted_n_node_samples[0] == pytest.approx(60 * whole + 30)
        assert tree.n_node_samples[tree.children_left < 0].min() >= 5, "a factor of a class makes no rows"


def test_cuts_near_the_ends_of_columns_are_candidates():
    """Columns that matter only together are cut near their ends first; bins of equal weight cost half a point here."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(26_000, 20))
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    options = {"bootstrap": False, "random_state": 1}
    ours = RandomForestClassifier(150, **options).fit(X[:6000], y[:6000])
    theirs = PeerClassifier(150, n_jobs=2, **options).fit(X[:6000], y[:6000])
    # seeds move either by 0.1 points, twenty thousand rows by 0.15
    assert ours.score(X[6000:], y[6000:]) > theirs.score(X[6000:], y[6000:]) - 0.004


def test_threads_by_the_name_of_scikit_learn():
    X, y = make_friedman1(200, random_state=0)
    one = RandomForestRegressor(4, n_jobs=1, random_state=0).fit(X, y)
    for n_jobs in (2, -1, None):
        assert RandomForestRegressor(4, n_jobs=n_jobs, random_state=0).fit(X, y).trees_ == one.trees_
    with pytest.raises(ValueError, match="n_jobs must be None, a number of threads"):
        RandomForestRegressor(4, n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="oob_score needs rows out of bags"):
        RandomForestRegressor(4, bootstrap=False, oob_score=True).fit(X, y)
