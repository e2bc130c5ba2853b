"""Bootstrap errors against the enumeration of all bags, slow formulas, and tasks whose error is known."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.stats import binom
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier as TheirNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier as TheirTree

from lemmata.cluster import KMeans
from lemmata.linear_model import LinearRegression, Ridge
from lemmata.model_selection import BootstrapScorer, BootstrapSplit, ResubstitutionSplit, bootstrap_error
from lemmata.model_selection.bootstrap_losses import (
    no_information,
    point_632_plus,
    row_errors,
    row_weights,
    squared,
    standard_error,
    zero_one,
)
from lemmata.naive_bayes import GaussianNB

SUMS = 1e-12


class Mean(RegressorMixin, BaseEstimator):
    """Predict the mean of the targets."""

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


def every_bag(n):
    """List how often each row is in each of the nⁿ equally probable bags."""
    return np.array([np.bincount(draws, minlength=n) for draws in itertools.product(range(n), repeat=n)])


def test_out_of_bag_error_of_a_mean_is_that_of_all_bags():
    y = np.array([0.0, 1.0, 5.0, 2.0])
    bags = every_bag(4)
    losses = np.where(bags == 0, (y - (bags @ y / 4)[:, None]) ** 2, np.nan)
    ideal = np.nanmean(losses, axis=0).mean()
    found = bootstrap_error(Mean(), y[:, None], y, n_resamples=4000, random_state=0)
    assert_allclose(found.out_of_bag, ideal, rtol=0.08)  # some 1,300 losses a row, each about as uncertain as it is large
    assert_allclose(found.apparent, y.var(), rtol=SUMS)
    assert_allclose(found.no_information, y.var(), rtol=SUMS)  # a constant has nothing to lose
    assert (found.relative_overfitting, found.weight) == (0, 0.632)
    assert_allclose(found.err632_plus, 0.368 * y.var() + 0.632 * found.out_of_bag, rtol=SUMS)


@pytest.mark.parametrize("n", [3, 4])
def test_change_of_the_error_with_a_weight_is_its_derivative(n):
    """Bags of weighted rows have multinomial chances: the formula is the derivative of the error by the weight of a row."""
    rng = np.random.default_rng(n)
    bags = every_bag(n)
    losses = np.where(bags == 0, rng.exponential(size=bags.shape), np.nan)

    def error(weights):
        chance = np.prod(weights**bags, axis=1)  # of an ordered bag
        out = bags == 0
        rows = (chance[:, None] * np.where(out, losses, 0)).sum(axis=0) / (chance[:, None] * out).sum(axis=0)
        return weights @ rows

    change, noise = row_weights(bags, losses)
    assert_allclose(np.nanmean(losses, axis=0), row_errors(losses), rtol=SUMS)
    for j in range(n):
        h = 1e-5 * (np.eye(n)[j] - 1 / n)
        slope = (error(1 / n + h) - error(1 / n - h)) / 2e-5
        assert_allclose(n * change[j], slope, rtol=1e-6)  # of a difference of two
    assert (noise > 0).all()


def test_noise_of_the_change_is_that_of_other_bags():
    """Over many sets of bags, the squares of the changes are too large by the noise that is reported."""
    n, n_bags = 8, 60
    rng = np.random.default_rng(0)
    y = rng.normal(size=n)

    def drawn(size):
        bags = rng.multinomial(n, np.full(n, 1 / n), size=size)
        return bags, np.where(bags == 0, (y - (bags @ y / n)[:, None]) ** 2, np.nan)

    truth = (row_weights(*drawn(400_000))[0] ** 2).sum()
    several = [row_weights(*drawn(n_bags)) for _ in range(1000)]
    squares = np.array([(change**2).sum() for change, _ in several])
    noises = np.array([noise.sum() for _, noise in several])
    error = (squares - noises).std() / np.sqrt(1000)
    assert squares.mean() - truth > 10 * error  # without the correction
    assert abs((squares - noises).mean() - truth) < 0.15 * (squares.mean() - truth)  # what is of order 1/B²


def test_standard_error_is_the_spread_over_samples():
    rng = np.random.default_rng(1)
    errors, guesses = [], []
    for seed in range(150):
        y = rng.exponential(size=30)
        bags = np.random.default_rng(seed).multinomial(30, np.full(30, 1 / 30), size=400)
        losses = np.where(bags == 0, (y - (bags @ y / 30)[:, None]) ** 2, np.nan)
        errors.append(row_errors(losses).mean())
        guesses.append(standard_error(bags, losses))
    # Squares of exponential numbers: the guesses themselves vary by half, and 150 errors know their spread to some 15 %.
    assert_allclose(np.sqrt(np.mean(np.square(guesses))), np.std(errors), rtol=0.4)


@pytest.mark.parametrize(
    ("apparent", "out", "gamma"),
    [(0.1, 0.3, 0.5), (0.0, 0.5, 0.5), (0.1, 0.6, 0.5), (0.3, 0.2, 0.5), (0.4, 0.5, 0.4), (0.4, 0.5, 0.3), (0.2, 0.2, 0.4)],
)
def test_point_632_plus_by_the_words_of_the_paper(apparent, out, gamma):
    clipped = min(out, gamma)
    rate = (clipped - apparent) / (gamma - apparent) if out > apparent and gamma > apparent else 0.0
    weight = 0.632 / (1 - 0.368 * rate)
    found = point_632_plus(apparent, out, gamma)
    plain = 0.368 * apparent + 0.632 * out
    assert_allclose(found[:3], (rate, weight, plain), rtol=SUMS)
    if out <= gamma:  # then .632+ is the same mean with its own weight
        assert_allclose(found[3], (1 - weight) * apparent + weight * out, rtol=SUMS)
    elif rate == 0:
        assert found[3] == plain
    else:
        assert_allclose(found[3], plain + 0.368 * (gamma - apparent), rtol=SUMS)  # R′ = 1


@pytest.mark.parametrize("loss", [zero_one, squared, lambda y, p: np.abs(y - p)])
def test_no_information_is_the_mean_over_all_pairs(loss):
    rng = np.random.default_rng(0)
    y, p = rng.integers(4, size=9).astype(float), rng.integers(4, size=9).astype(float)
    pairs = [loss(np.array([a]), np.array([b]))[0] for a in y for b in p]
    assert_allclose(no_information(loss, y, p), np.mean(pairs), rtol=SUMS)


def test_nearest_neighbor_and_labels_that_are_noise():
    """The example of Efron and Tibshirani (1997): the apparent error is 0, .632 has 0.316, .632+ about the true 1/2."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(40, 5)), rng.permutation(np.tile([0, 1], 20))
        found.append(bootstrap_error(TheirNeighbors(1), X, y, n_resamples=30, random_state=seed))
        assert found[-1].apparent == 0
        assert_allclose(found[-1].no_information, 0.5, rtol=SUMS)
    spread = 5 * 0.1 / np.sqrt(12)  # an error of 40 labels has a standard deviation of about 0.1
    assert abs(np.mean([f.out_of_bag for f in found]) - 0.5) < spread
    assert abs(np.mean([f.err632 for f in found]) - 0.316) < 0.632 * spread
    assert abs(np.mean([f.err632_plus for f in found]) - 0.5) < spread
    assert np.mean([f.err632_plus for f in found]) > 0.4 > np.mean([f.err632 for f in found])


def test_least_squares_whose_error_is_known():
    """Normal columns: the expected error of d coefficients fitted to n rows is 1 + d/(n − d − 1), the apparent one 1 − d/n."""
    n, d, sums = 40, 4, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, d))
        y = X @ np.ones(d) + rng.normal(size=n)
        found = bootstrap_error(LinearRegression(fit_intercept=False), X, y, n_resamples=25, random_state=seed)
        sums.append([found.apparent, found.err632, found.out_of_bag, found.variance, found.bias_and_noise])
        assert_allclose(found.variance + found.bias_and_noise, found.out_of_bag, rtol=1e-9)
    apparent, err632, out, variance, rest = np.mean(sums, axis=0)
    chance = 5 * np.sqrt(2 / n / 40)  # five standard errors of a mean of squares
    truth = 1 + d / (n - d - 1)
    assert abs(apparent - (1 - d / n)) < chance
    assert abs(err632 - truth) < chance
    assert out > truth + 0.05  # fits to fewer rows
    assert abs(rest - 1) < 2 * chance  # no bias: the noise, and what the mean over bags of one sample misses
    assert 0.1 < variance < 0.4


@pytest.mark.parametrize("labels", [["a", "bb", "c"], [3, 7, 9]])
def test_parts_of_wrong_labels(labels):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(45, 2))
    y = np.array(labels)[np.tile([0, 1, 2], 15)]
    X[:, 0] += 1.5 * np.tile([0, 1, 2], 15)
    found = bootstrap_error(TheirTree(), X, y, n_resamples=60, random_state=0)
    assert_allclose(found.variance + found.bias_and_noise, found.out_of_bag, rtol=1e-9)
    split = list(BootstrapBags(found))
    votes = [[] for _ in y]
    for k, (bag, out) in enumerate(split, start=1):
        model = TheirTree(random_state=found.seed + k).fit(X[bag], y[bag])
        for i, said in zip(out, model.predict(X[out]), strict=True):
            votes[i].append(said)
    wrong = []
    for i, said in enumerate(votes):
        values, counts = np.unique(said, return_counts=True)
        wrong.append(values[counts.argmax()] != y[i])
    assert_allclose(found.bias_and_noise, np.mean(wrong), rtol=SUMS)
    assert_allclose(found.rows, [np.mean([v != y[i] for v in said]) for i, said in enumerate(votes)], rtol=SUMS)


def BootstrapBags(found):
    """Read bags off the losses, up to the order of draws: only possible where the model does not care; here from the seed."""
    n = found.losses.shape[1]
    for k, rng in enumerate(np.random.default_rng(found.seed).spawn(len(found.losses))):
        bag = rng.integers(n, size=n)
        out = np.setdiff1d(np.arange(n), bag)
        assert_array_equal(np.flatnonzero(~np.isnan(found.losses[k])), out)
        yield np.sort(bag), out


def table(seed=0, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + rng.normal(size=n) > 0, "yes", "no")


@pytest.mark.parametrize(
    "model",
    [GaussianNB(), LogisticRegression(), make_pipeline(StandardScaler(), TheirTree()), RandomForestClassifier(2)],
    ids=["ours", "theirs", "pipeline with chance", "forest with chance"],
)
def test_certificate_holds(model):
    X, y = table()
    found = bootstrap_error(model, X, y, n_resamples=25, random_state=1)
    certificate = found.certify(X, y)
    assert certificate.holds, certificate
    assert certificate["leaks"].kind == "proof"


def test_certificate_refuses_what_is_changed():
    X, y = table()
    found = bootstrap_error(TheirNeighbors(3), X, y, n_resamples=25, random_state=1)
    assert found.certify(X, y).holds
    names = ["apparent", "out_of_bag", "no_information", "relative_overfitting", "weight", "err632", "err632_plus"]
    for name in [*names, "standard_error", "variance", "bias_and_noise", "losses", "rows", "redrawn"]:
        changed = dataclass_with(found, name, getattr(found, name) * 1.01 + 1e-3)
        assert not changed.certify(X, y).holds, name
    seen = np.argwhere(np.isnan(found.losses))[0]
    leaked = found.losses.copy()
    leaked[tuple(seen)] = 0.0
    assert dataclass_with(found, "losses", leaked).certify(X, y)["leaks"].value == 1
    assert not found.certify(X[:-1], y[:-1]).holds
    assert not found.certify(X, y[::-1]).holds


def dataclass_with(found, name, value):
    from dataclasses import replace

    return replace(found, **{name: value})


def test_frames_sparse_tables_and_threads_give_the_same():
    X, y = table()
    X[X < 0] = 0
    plain = bootstrap_error(Ridge(), X, (y == "yes") * 1.0, n_resamples=20, random_state=0)
    for other in (pd.DataFrame(X, columns=list("abc")), pl.DataFrame(X, schema=list("abc")), csr_array(X)):
        found = bootstrap_error(Ridge(), other, (y == "yes") * 1.0, n_resamples=20, random_state=0)
        assert_allclose(found.losses, plain.losses, rtol=1e-7)  # a sparse table is solved in its own way
    for jobs in (1, 2):
        found = bootstrap_error(Ridge(), X, (y == "yes") * 1.0, n_resamples=20, random_state=0, n_jobs=jobs)
        assert_array_equal(found.losses, plain.losses)
    frame = pd.DataFrame(X, columns=list("abc"), index=np.arange(40)[::-1])
    found = bootstrap_error(TheirTree(), frame, pd.Series(y, index=frame.index), n_resamples=20, random_state=0)
    assert found.certify(frame, y).holds


def test_weights_are_repetitions():
    X, y = table()
    weight = np.arange(40) % 3
    found = bootstrap_error(GaussianNB(), X, y, n_resamples=20, sample_weight=weight, random_state=0)
    long = bootstrap_error(GaussianNB(), np.repeat(X, weight, axis=0), np.repeat(y, weight), n_resamples=20, random_state=0)
    assert_array_equal(found.losses, long.losses)
    assert (found.apparent, found.no_information, found.err632_plus) == (long.apparent, long.no_information, long.err632_plus)
    assert found.certify(X, y, weight).holds


def test_classes_that_a_bag_lacks():
    X, y = table()
    y = np.where(np.arange(40) == 0, "rare", y)

    def log_loss(target, p):
        return -np.log(np.maximum(p[np.arange(len(p)), np.searchsorted(["no", "rare", "yes"], target)], 1e-3))

    found = bootstrap_error(
        LogisticRegression(), X, y, n_resamples=60, random_state=0, loss=log_loss, response_method="predict_proba"
    )
    assert_allclose(found.rows[0], -np.log(1e-3), rtol=SUMS)  # out of bag, the class is unknown to the model
    assert found.variance is None
    assert found.certify(X, y).holds
    labels = bootstrap_error(LogisticRegression(), X, y, n_resamples=60, random_state=0)
    assert labels.rows[0] == 1


def test_bags_of_a_single_class_are_drawn_again():
    X, y = np.arange(5.0)[:, None], np.array([0, 1, 1, 0, 1])
    with pytest.warns(UserWarning, match=r"\d+ bags had a single class and were drawn again"):
        found = bootstrap_error(TheirNeighbors(1), X, y, n_resamples=300, random_state=0)
    tries, chance = 300 + found.redrawn, 0.4**5 + 0.6**5
    assert 1e-6 < binom.cdf(found.redrawn, tries, chance) < 1 - 1e-6
    bags = every_bag(5)
    bags = bags[((bags @ y) > 0) & ((bags @ (1 - y)) > 0)]
    out = (bags == 0).mean(axis=0)
    shares = (~np.isnan(found.losses)).mean(axis=0)
    assert (np.abs(shares - out) < 6 * np.sqrt(out * (1 - out) / 300)).all()
    assert found.certify(X, y).holds


def test_the_estimator_is_copied():
    X, y = table()
    model = TheirNeighbors(3)
    found = bootstrap_error(model, X, y, n_resamples=20, random_state=0)
    model.set_params(n_neighbors=1)
    assert found.certify(X, y).holds


class Odd(Mean):
    """Refuses bags without the first row."""

    def fit(self, X, y):
        if X.min() > 0:
            raise FloatingPointError("not this bag")
        return super().fit(X, y)


def test_an_error_names_its_bag():
    X = np.arange(6.0)[:, None]
    with pytest.raises(FloatingPointError, match="not this bag") as raised:
        bootstrap_error(Odd(), X, X[:, 0], n_resamples=30, random_state=0)
    seed = int(np.random.default_rng(0).integers(2**31))
    bags = [rng.integers(6, size=6) for rng in np.random.default_rng(seed).spawn(30)]
    assert raised.value.__notes__ == [f"In bag {next(k for k, bag in enumerate(bags) if 0 not in bag)}."]


@pytest.mark.filterwarnings("ignore:.*had a single class")
def test_a_rare_class_is_said():
    with pytest.warns(UserWarning, match=r"\d+ of \d+ rows are in all 3 bags and are left out"):
        found = bootstrap_error(GaussianNB(), *table(), n_resamples=3, random_state=0)
    assert np.isnan(found.rows).any()
    assert np.isnan(found.standard_error)
    assert_allclose(found.out_of_bag, np.nanmean(found.rows), rtol=SUMS)


@pytest.mark.parametrize("kind", ["632", "632+", "out-of-bag"])
def test_scorer_gives_the_estimate_inside_a_search(kind):
    X, y = table(3)
    scorer = BootstrapScorer(kind, n_resamples=15, random_state=4)
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 1e-1, 10.0]}, scoring=scorer, cv=ResubstitutionSplit()).fit(
        X, y
    )
    name = {"632": "err632", "632+": "err632_plus", "out-of-bag": "out_of_bag"}[kind]
    for value, score in zip([1e-9, 1e-1, 10.0], search.cv_results_["mean_test_score"], strict=True):
        found = bootstrap_error(GaussianNB(var_smoothing=value), X, y, n_resamples=15, random_state=4)
        assert score == -getattr(found, name)
    with pytest.raises(ValueError, match="kind must be one of 632"):
        BootstrapScorer(".632")
    assert repr(scorer) == f"BootstrapScorer({kind!r}, n_resamples=15)"


def test_splits_are_bags_and_what_they_leave_out():
    y = np.tile([0, 1, 1], 10)
    splitter = BootstrapSplit(200, random_state=0)
    shares = []
    for bag, out in splitter.split(np.zeros((30, 1)), y):
        assert len(bag) == 30
        assert_array_equal(np.setdiff1d(np.arange(30), bag), out)
        shares.append(len(out) / 30)
    assert abs(np.mean(shares) - (1 - 1 / 30) ** 30) < 0.03
    again = list(splitter.split(np.zeros((30, 1))))
    for (bag, out), (b, o) in zip(again, splitter.split(np.zeros((30, 1))), strict=True):
        assert_array_equal(bag, b)
        assert_array_equal(out, o)
    for bag, _ in BootstrapSplit(20, stratified=True, random_state=0).split(np.zeros((30, 1)), y):
        assert_array_equal(np.bincount(y[bag]), [10, 20])
    tiny = [len(out) for _, out in BootstrapSplit(50, random_state=0).split([[0.0], [1.0]])]
    assert tiny == [1] * 50
    scores = cross_val_score(GaussianNB(), *table(), cv=BootstrapSplit(5, random_state=0))
    assert scores.shape == (5,)
    assert "random_state=0" in repr(splitter)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bootstrap_error(GaussianNB(), *table(), loss="accuracy"), "loss must be None or a function"),
        (lambda: bootstrap_error(GaussianNB(), *table(), response_method="predict_proba"), "response_method must be"),
        (lambda: bootstrap_error(GaussianNB(), table()[0], ["a"] * 40), "two classes or more"),
        (lambda: bootstrap_error(KMeans(2), *table()), "KMeans is neither a classifier nor a regressor"),
        (lambda: bootstrap_error(Ridge(), [[1.0], [2.0]], None), "one target for each row; it is None"),
        (lambda: bootstrap_error(Ridge(), "rows.parquet", [1.0]), "needs a table in memory"),
        (lambda: bootstrap_error(Ridge(), [[1.0]], [1.0]), "two rows or more"),
        (lambda: bootstrap_error(Ridge(), np.ones((3, 1)), np.ones((3, 2))), "one target for each row"),
        (lambda: bootstrap_error(Ridge(), np.ones((3, 1)), np.ones(2)), "inconsistent numbers of samples"),
        (lambda: bootstrap_error(GaussianNB(), *table(), n_resamples=1), "n_resamples must be a whole number of at least 2"),
        (
            lambda: bootstrap_error(GaussianNB(), *table(), loss=lambda y, p: 0.0),
            r"each of the \d+ rows; its shape is \(\)",
        ),
        (
            lambda: bootstrap_error(Ridge(), table()[0], np.arange(40.0), loss=lambda y, p: np.where(y > 38, np.nan, 0.0)),
            r"each of the \d+ rows; nan is among them",
        ),
        (lambda: bootstrap_error(TheirNeighbors(1), [[0.0], [1.0]], [0, 1]), "All rows are in all 100 bags"),
        (lambda: bootstrap_error(GaussianNB(), *table(), sample_weight=np.full(40, 0.5)), "in whole numbers"),
        (lambda: list(BootstrapSplit(0).split([[1.0], [2.0]])), "n_splits must be a whole number of at least 1"),
        (lambda: list(BootstrapSplit().split([[1.0]])), "leaves none out: give more rows"),
        (lambda: list(BootstrapSplit(stratified=True).split([[1.0], [2.0]])), "needs the classes y"),
        (lambda: list(BootstrapSplit().split([[1.0], [2.0]], groups=[0, 1])), "a splitter such as GroupKFold"),
    ],
)
def test_errors_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()
