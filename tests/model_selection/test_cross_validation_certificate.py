"""The certificate of a cross-validation: honest ones hold, and whatever knew the rows it was tested on is refused."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression as TheirLogistic
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.model_selection import GridSearchCV, LeaveOneOut, RepeatedKFold, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from lemmata.decision import Decide
from lemmata.decomposition import PCA
from lemmata.linear_model import Lasso, LogisticRegression, Ridge
from lemmata.model_selection import cross_validate
from lemmata.model_selection.cross_validation_certificate import KEPT, skill_left
from lemmata.model_selection.fold import Data
from lemmata.naive_bayes import GaussianNB

SEEDS = [0, 1, 2]
RNG = np.random.default_rng(7)
TABLE, TARGET = RNG.normal(size=(36, 3)), RNG.normal(size=36)  # what the leaky ones below look at


def numbers(seed, n=40, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ [1.0, -2.0, 0.5] + noise * rng.normal(size=n)


def labels(seed, n=48):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, size=n)
    return rng.normal(size=(n, 3)) + y[:, None], np.array(["a", "b", "c"])[y]


def failed(certificate):
    return {check.name for check in certificate.failed}


# What is honest holds


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "model",
    [
        Ridge(),
        Lasso(alpha=0.01),
        make_pipeline(StandardScaler(), PCA(2), Ridge()),
        make_pipeline(SelectKBest(f_regression, k=1), Ridge()),
        DecisionTreeRegressor(random_state=0),
        RandomForestRegressor(5, random_state=0),
        DummyRegressor(),
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=2000, solver="lbfgs", random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("noise", [0.1, 30.0])
def test_honest_regressors_hold(model, seed, noise):
    X, y = numbers(seed, noise=noise)
    certificate = cross_validate(model, X, y, cv=3, random_state=seed).certify(X, y)
    assert certificate.holds, certificate
    assert certificate.kind == "evidence"
    assert {check.name for check in certificate if check.kind == "evidence"} == {
        "known before the folds",
        "skill with reversed targets",
    }


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    "model",
    [
        GaussianNB(),
        LogisticRegression(),
        TheirLogistic(class_weight={"a": 20.0, "b": 1.0, "c": 1.0}),
        KNeighborsClassifier(1),
        RandomForestClassifier(5, random_state=0),
        DummyClassifier(),
        Decide(GaussianNB(), costs=1.0 - np.eye(3) + 4.0 * np.eye(3)[[1, 2, 0]]),
    ],
    ids=lambda model: type(model).__name__,
)
def test_honest_classifiers_hold(model, seed):
    X, y = labels(seed)
    for target in (y, np.random.default_rng(seed).permutation(y)):  # with something to learn, and with nothing
        certificate = cross_validate(model, X, target, cv=3, random_state=seed).certify(X, target)
        assert certificate.holds, certificate


def test_a_constant_guess_held_out_one_by_one_holds():
    # of equally many, the majority without the row is the other class: always wrong, and always right with reversed targets
    y = np.array([0, 1] * 12)
    found = cross_validate(DummyClassifier(), np.zeros((24, 1)), y, cv=LeaveOneOut())
    assert found.score == 0.0
    assert found.certify(np.zeros((24, 1)), y).holds


@pytest.mark.parametrize("method", ["predict_proba", "predict", "decision_function"])
def test_every_method_and_repeats_hold(method):
    X, y = labels(0)
    found = cross_validate(TheirLogistic(), X, y, cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), method=method)
    assert found.times == 2
    assert found.certify(X, y).holds


# What is not, is refused


@pytest.mark.item("MSL-01")
def test_rows_on_both_sides_are_refused():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    (train, test), *rest = found.splits
    leaky = replace(found, splits=[(np.r_[train, test[:1]], test), *rest])
    assert "rows on both sides" in failed(leaky.certify(X, y))


@pytest.mark.item("MSL-01")
def test_a_partition_that_is_none_is_refused():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    (train, test), *rest = found.splits
    twice = [(train, test), (rest[0][0], np.r_[rest[0][1], test[:1]]), *rest[1:]]
    twice[1] = (np.setdiff1d(twice[1][0], test[:1]), twice[1][1])
    for splits in (rest, [(train, test[1:]), *rest], twice):
        assert "rows held out" in failed(replace(found, splits=splits).certify(X, y))
    left_out = np.where(found.fold == 0, -1, found.fold - 1)  # all agree that a fold is missing, but each row was to be there
    without = replace(found, splits=rest, fold=left_out, predicted=left_out >= 0)
    assert "rows held out" in failed(without.certify(X, y))
    wrong = found.fold.copy()
    wrong[0] = (wrong[0] + 1) % 4
    assert "rows held out" in failed(replace(found, fold=wrong).certify(X, y))
    mask = found.predicted.copy()
    mask[3] = False
    assert "rows held out" in failed(replace(found, predicted=mask).certify(X, y))


def test_divided_groups_are_refused():
    X, y = numbers(0)
    groups = np.arange(40) // 2
    found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    assert found.certify(X, y).holds
    assert failed(found.certify(X, y, groups=groups)) == {"groups on both sides"}


def test_learning_from_what_comes_later_is_refused():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=TimeSeriesSplit(3))
    assert found.certify(X, y)["folds against time"].holds
    backwards = cross_validate(Ridge(), X, y, cv=[(39 - train, 39 - test) for train, test in found.splits])
    assert backwards.certify(X, y).holds  # nobody promised the order of time
    assert failed(replace(backwards, ordered=True).certify(X, y)) == {"folds against time"}
    amid = cross_validate(Ridge(), X, y, cv=[(np.r_[:10, 20:40], np.arange(10, 20))])
    assert failed(replace(amid, ordered=True).certify(X, y)) == {"folds against time"}


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_predictions_of_a_model_that_saw_the_rows_are_refused(seed):
    X, y = numbers(seed)
    found = cross_validate(Ridge(), X, y, cv=4, random_state=seed)
    whole = Ridge().fit(X, y)
    assert failed(replace(found, predictions=whole.predict(X)).certify(X, y)) == {"cumulative predictions"}
    parts = [whole.predict(X[test]) for _, test in found.splits]
    assert failed(replace(found, fold_predictions=parts).certify(X, y)) == {"held-out rows removed"}
    assert failed(replace(found, estimators=[whole] * 4).certify(X, y)) == {"models kept"}
    scores = np.array([whole.score(X[test], y[test]) for _, test in found.splits])
    for change in ({"test_scores": scores}, {"train_scores": scores}, {"score": whole.score(X, y)}):
        assert failed(replace(found, **change).certify(X, y)) == {"scores"}


def test_small_scores_are_not_hidden_by_large_ones():
    X, y = numbers(0)
    y[32:] += 1e3
    found = cross_validate(Ridge(), X, y, cv=[(np.arange(32), np.arange(32, 40))], scoring="neg_mean_squared_error")
    assert found.train_scores[0] / found.test_scores[0] < 1e-5
    assert found.certify(X, y).holds
    assert failed(replace(found, train_scores=found.train_scores * 1.01).certify(X, y)) == {"scores"}
    tree = cross_validate(DecisionTreeRegressor(random_state=0), X, y, cv=4, scoring="neg_mean_squared_error", random_state=0)
    assert (np.abs(tree.train_scores) < 1e-20).all()  # a perfect fit but for rounding, which may be another
    assert replace(tree, train_scores=tree.train_scores - 1e-27).certify(X, y).holds


def test_choices_that_no_search_made_are_refused():
    X, y = numbers(0)
    found = cross_validate(GridSearchCV(Ridge(), {"alpha": [0.1, 10.0]}, cv=3), X, y, cv=4, random_state=0)
    assert found.certify(X, y).holds
    others = [{"alpha": 10.1 - choice["alpha"]} for choice in found.chosen]
    assert failed(replace(found, chosen=others).certify(X, y)) == {"choices"}
    steps = {"ridge": [Ridge(), Lasso(alpha=0.1)], "pca__n_components": [2, 3]}
    of_models = GridSearchCV(make_pipeline(PCA(), Ridge()), steps, cv=3)
    assert cross_validate(of_models, X, y, cv=4, random_state=0).certify(X, y).holds


def test_one_percent_of_sabotage_is_refused():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    found.estimators[2].coef_ = found.estimators[2].coef_ * 1.01
    assert failed(found.certify(X, y)) == {"models kept"}
    found = cross_validate(Ridge(), X, y, cv=4, random_state=0)
    found.predictions[7] *= 1.01
    assert failed(found.certify(X, y)) == {"cumulative predictions"}
    X[3] *= 1.01
    assert "held-out rows removed" in failed(found.certify(X, y))  # other data than those that were cross-validated


@pytest.mark.item("MSL-01")
def test_a_part_that_was_fitted_to_all_rows_is_refused():
    X, y = numbers(0)
    scaler = StandardScaler().fit(X)
    select = SelectKBest(f_regression, k=1).fit(X, y)
    for step in (
        FrozenEstimator(scaler),
        FrozenEstimator(select),
        FunctionTransformer(scaler.transform),
        FunctionTransformer(lambda Z: scaler.transform(Z)),
        FunctionTransformer(partial(lambda s, Z: s.transform(Z), scaler)),
    ):
        model = make_pipeline(step, Ridge())
        certificate = cross_validate(model, X, y, cv=3, random_state=0).certify(X, y)
        assert failed(certificate) == {"known before the folds"}
        assert "fitted before" in certificate["known before the folds"].claim
        assert cross_validate(GridSearchCV(model, {"ridge__alpha": [1.0]}, cv=2), X, y, cv=2).certify(X, y).failed
    honest = make_pipeline(FunctionTransformer(np.tanh), FunctionTransformer(lambda Z: 2 * Z), Ridge())
    assert cross_validate(honest, X, y, cv=3, random_state=0).certify(X, y).holds


class Peeks(RegressorMixin, BaseEstimator):
    """Scales by a table of the module, all rows of it."""

    def fit(self, X, y):
        self.model_ = TheirRidge().fit(X / TABLE.std(axis=0), y)
        return self

    def predict(self, X):
        return self.model_.predict(X / TABLE.std(axis=0))


class Keeps(Peeks):
    """Has the table in its class."""

    table = TABLE

    def fit(self, X, y):
        self.model_ = TheirRidge().fit(X / self.table.std(axis=0), y)
        return self

    def predict(self, X):
        return self.model_.predict(X / self.table.std(axis=0))


class Adds(TransformerMixin, BaseEstimator):
    """Adds a column that is looked up among all targets."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        nearest = ((X[:, None] - TABLE) ** 2).sum(axis=2).argmin(axis=1)
        return np.column_stack([X, TARGET[nearest]])


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("model", [Peeks(), Keeps(), make_pipeline(Adds(), TheirRidge())], ids=["global", "class", "targets"])
def test_a_table_within_reach_is_refused(model):
    certificate = cross_validate(model, TABLE, TARGET, cv=3, random_state=0).certify(TABLE, TARGET)
    assert "known before the folds" in failed(certificate)
    assert "36 rows" in certificate["known before the folds"].claim


class Remembers(RegressorMixin, BaseEstimator):
    """Keeps every row that any copy of it was ever fitted to, and answers from these first."""

    memory = {}

    def fit(self, X, y):
        self.memory.update({tuple(row): value for row, value in zip(X, y, strict=True)})
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.array([self.memory.get(tuple(row), self.mean_) for row in X])


@pytest.mark.item("MSL-01")
def test_a_memory_that_outlives_the_fold_is_refused():
    X, y = numbers(0)
    Remembers.memory.clear()
    found = cross_validate(Remembers(), X, y, cv=4, random_state=0)
    assert found.score > 0.5  # all folds but the first know their rows from those before
    assert "held-out rows removed" in failed(found.certify(X, y))


LOOKUP = {"rows": {}}  # no array, and so out of sight


class LooksUp(BaseEstimator):
    """Fits nothing and knows the answers."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        if hasattr(self, "score") and isinstance(self, ClassifierMixin):
            self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.array([LOOKUP["rows"][tuple(row)] for row in X])


@pytest.mark.item("MSL-01")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_lookup_of_targets_is_refused(seed):
    for kind, (X, y) in ((RegressorMixin, numbers(seed)), (ClassifierMixin, labels(seed))):
        LOOKUP["rows"] = {tuple(row): value for row, value in zip(X, y, strict=True)}
        model = type("LooksUpToo", (kind, LooksUp), {})()
        found = cross_validate(model, X, y, cv=3, random_state=0)
        assert found.score == 1.0
        certificate = found.certify(X, y)
        assert failed(certificate) == {"skill with reversed targets"}
        assert certificate["skill with reversed targets"].value == 1.0


class Centers(RegressorMixin, BaseEstimator):
    """Centers what it predicts by the mean of all rows that it is asked about."""

    def fit(self, X, y):
        self.model_, self.mean_ = TheirRidge().fit(X - X.mean(axis=0), y), np.mean(y)
        return self

    def predict(self, X):
        return self.model_.predict(X - X.mean(axis=0))


def test_answers_that_depend_on_company_are_refused():
    X, y = numbers(0)
    certificate = cross_validate(Centers(), X, y, cv=4, random_state=0).certify(X, y)
    assert failed(certificate) == {"asked apart"}


def test_what_draws_anew_is_said_to_be_unprovable():
    X, y = numbers(0)
    found = cross_validate(RandomForestRegressor(5), X, y, cv=3, random_state=0)
    certificate = found.certify(X, y)
    assert {"held-out rows removed", "others in their places"} <= failed(certificate)
    claim = certificate["held-out rows removed"].claim
    assert claim == "cannot be proved: random_state is None, so every fit draws anew; give it a number"


def test_skill_that_is_left_has_its_definition():
    X, y = numbers(0)
    splits = [(np.arange(30), np.arange(30, 40))]
    data = Data.of(X, y)
    half = clone(LooksUpRegressor())
    LOOKUP["rows"] = {tuple(row): value + 1.0 for row, value in zip(X, y, strict=True)}  # looks up, a little off
    expected = 1 - 1.0 / y[30:].var()
    assert skill_left(half, data, splits, [half.fit(X, y)]) == pytest.approx(max(expected, 0.0), rel=1e-9)
    assert expected > KEPT
    assert skill_left(PCA(1), Data.of(X), splits, []) is None
    assert skill_left(Ridge(), Data.of(X, np.zeros(40)), splits, []) is None


class LooksUpRegressor(RegressorMixin, LooksUp):
    """A lookup of numbers."""


def test_other_tables_are_refused_at_once():
    X, y = numbers(0)
    found = cross_validate(Ridge(), X, y, cv=3, random_state=0)
    with pytest.raises(ValueError, match="40 rows were cross-validated, and there are 30"):
        found.certify(X[:30], y[:30])
