"""The bootstrap of a statistic against the enumeration of all resamples, NumPy's statistics, and closed forms."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import lemmata
from helpers import bits
from lemmata.model_selection import Bootstrap, exact_bootstrap
from lemmata.model_selection.bootstrap_draws import lay_out
from lemmata.model_selection.bootstrap_replicates import compiled, influences, jackknife_error, jackknife_errors, left_out
from lemmata.model_selection.bootstrap_samples import read_samples

SUMS = 1e-12  # relative: what sums in another order may differ by
SIX = 6.0  # standard errors: a right value is farther off once in 10⁹


def var1(x):
    return np.var(x, ddof=1)


def correlation(x, y):
    return np.corrcoef(x, y)[0, 1]


PLAIN = {
    "mean": np.mean,
    "median": np.median,
    "variance": var1,
    "deviation": lambda x: np.std(x, ddof=1),
    0.3: lambda x: np.quantile(x, 0.3),
}


def all_resamples(n):
    """List all nⁿ ordered resamples."""
    return np.array(list(itertools.product(range(n), repeat=n)))


@pytest.mark.item("MSL-04")
@pytest.mark.parametrize("statistic", [*PLAIN, np.ptp])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_ideal_bootstrap_is_the_mean_over_all_resamples(statistic, n):
    x = np.random.default_rng(n).normal(size=n)
    function = PLAIN.get(statistic, np.ptp)
    values = np.array([function(x[rows]) for rows in all_resamples(n)])
    found = exact_bootstrap(statistic, x)
    assert_allclose(found.probabilities.sum(), 1, rtol=SUMS)
    assert_allclose(found.mean, values.mean(), rtol=1e-9, atol=1e-12)  # chances are exponentials of logarithms
    assert_allclose(found.variance, values.var(), rtol=1e-9)
    assert_allclose(found.standard_error, values.std(), rtol=1e-9)
    assert_allclose(found.bias, values.mean() - function(x), rtol=1e-9, atol=1e-12)
    assert_allclose(np.sort(np.unique(found.replicates.round(9))), np.unique(values.round(9)), rtol=1e-9)


@pytest.mark.slow_without_jit
@pytest.mark.item("MSL-04")
def test_the_numbers_of_the_notes():
    x = [1.0, 2.0, 3.0, 4.0]
    found = exact_bootstrap("mean", x)
    assert_allclose([found.mean, found.variance], [2.5, 0.3125], rtol=SUMS)
    bootstrap = Bootstrap("mean", n_resamples=200_000, random_state=0).fit(x)
    chance = np.sqrt(found.variance / 200_000)
    assert abs(bootstrap.mean_ - 2.5) < SIX * chance
    assert abs(bootstrap.variance_ - 0.3125) < SIX * np.sqrt(2) * 0.3125 / np.sqrt(200_000)


@pytest.mark.slow_without_jit
@pytest.mark.item("MSL-04")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("resampling", ["independent", "balanced"])
@pytest.mark.parametrize("statistic", [*PLAIN, np.ptp])
def test_replicates_come_to_the_ideal_bootstrap(statistic, resampling, seed):
    x = np.random.default_rng(seed + 10).exponential(size=6)
    ideal = exact_bootstrap(statistic, x)
    n_resamples = 40_000 if isinstance(statistic, (str, float)) else 4_000
    found = Bootstrap(statistic, n_resamples=n_resamples, resampling=resampling, random_state=seed).fit(x)
    fourth = ideal.probabilities @ (ideal.replicates - ideal.mean) ** 4
    assert abs(found.mean_ - ideal.mean) < SIX * np.sqrt(ideal.variance / n_resamples)
    assert abs(found.variance_ - ideal.variance) < SIX * np.sqrt((fourth - ideal.variance**2) / n_resamples)
    assert_allclose(found.bias_, found.mean_ - found.estimate_, rtol=SUMS)
    assert_allclose(found.variance_, ((found.replicates_ - found.mean_) ** 2).sum() / n_resamples, rtol=SUMS)
    assert_allclose(found.standard_error_**2 * (n_resamples - 1), found.variance_ * n_resamples, rtol=SUMS)


@pytest.mark.parametrize("n", [2, 3, 10, 11])
@pytest.mark.parametrize("statistic", PLAIN)
def test_kernels_match_numpy(statistic, n):
    rng = np.random.default_rng(n)
    x = 1e6 + rng.normal(size=n)  # far from zero: what is not centered cancels
    rows = rng.integers(n, size=(200, n)).astype(np.int32)
    values, errors = compiled(statistic, read_samples([x], statistic, None))(rows)
    assert_allclose(values, [PLAIN[statistic](x[r]) for r in rows], rtol=1e-9, atol=1e-9)  # 1e6 · 1e-16, squared 1e-10
    own = [standard_error(statistic, x[r]) for r in rows]
    assert_allclose(errors, own, rtol=1e-6, atol=1e-7)  # roots of what cancels


def standard_error(statistic, x):
    """Estimate a statistic's standard error by its textbook formula."""
    n, d = len(x), x - x.mean()
    if statistic == "mean":
        return np.sqrt((d**2).sum() / (n - 1) / n)
    of_variance = np.sqrt(max((d**4).mean() - (d**2).mean() ** 2, 0) / n) * n / (n - 1)
    if statistic == "variance":
        return of_variance
    if statistic == "deviation":
        return of_variance / (2 * x.std(ddof=1)) if x.std() > 0 else 0.0
    share = 0.5 if statistic == "median" else statistic
    law, ordered = stats.beta((n + 1) * share, (n + 1) * (1 - share)), np.sort(x)
    w = np.diff(law.cdf(np.arange(n + 1) / n))
    return np.sqrt(max(w @ (ordered - x[0]) ** 2 - (w @ (ordered - x[0])) ** 2, 0))


def test_correlations_match_numpy():
    rng = np.random.default_rng(0)
    x, y = 1e3 + rng.normal(size=9), rng.normal(size=9)
    rows = rng.integers(9, size=(200, 9)).astype(np.int32)
    rows[0] = 4  # one row, nine times
    values, errors = compiled("correlation", read_samples([x, y], "correlation", None))(rows)
    assert np.isnan(values[0])
    for r, value, error in zip(rows[1:], values[1:], errors[1:], strict=True):
        a, b = stats.zscore(x[r]), stats.zscore(y[r])
        assert_allclose(value, correlation(x[r], y[r]), rtol=1e-9)
        u = a * b - value * (a**2 + b**2) / 2
        assert_allclose(error, np.sqrt((u**2).sum()) / 9, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("n", [3, 7, 9])
def test_error_of_an_odd_median_is_the_ideal_bootstrap(n):
    """Maritz and Jarrett's chances are exact where the median is one of the values."""
    x = np.random.default_rng(n).normal(size=n)
    error = compiled("median", read_samples([x], "median", None))(np.arange(n)[None])[1][0]
    assert_allclose(error, exact_bootstrap("median", x).standard_error, rtol=1e-9)


@pytest.mark.parametrize("n", [3, 8, 9])
@pytest.mark.parametrize("statistic", [*PLAIN, "correlation"])
def test_values_with_each_row_left_out(statistic, n):
    rng = np.random.default_rng(n)
    samples = [rng.normal(size=n) for _ in range(2 if statistic == "correlation" else 1)]
    function = PLAIN.get(statistic, correlation)
    found = left_out(statistic, read_samples(samples, statistic, None))
    assert_allclose(found, [function(*(np.delete(s, i) for s in samples)) for i in range(n)], rtol=1e-9)


@pytest.mark.slow_without_jit
def test_threads_and_processes_change_nothing():
    x = np.random.default_rng(0).normal(size=3000)  # 65,536 // 3000 = 21 resamples a table
    several = [Bootstrap("median", n_resamples=100, random_state=3, n_jobs=k).fit(x) for k in (1, 2, 5)]
    for other in several[1:]:
        assert bits(other.replicates_) == bits(several[0].replicates_)
    with lemmata.config(n_threads=3):
        assert bits(Bootstrap("median", n_resamples=100, random_state=3).fit(x).replicates_) == bits(several[0].replicates_)
    function = [Bootstrap(np.median, n_resamples=100, random_state=3, n_jobs=k).fit(x) for k in (None, 2)]
    assert bits(function[0].replicates_) == bits(function[1].replicates_)
    assert_allclose(function[0].replicates_, several[0].replicates_, rtol=SUMS)  # the same resamples
    assert bits(Bootstrap("median", n_resamples=100, random_state=4).fit(x).replicates_) != bits(several[0].replicates_)


@pytest.mark.parametrize("resampling", ["independent", "balanced", "moving-block"])
def test_weights_are_repetitions(resampling):
    x, y = np.random.default_rng(0).normal(size=(2, 7))
    weight = np.array([2, 0, 1, 1, 3, 1, 1])
    one = Bootstrap("correlation", n_resamples=50, resampling=resampling, random_state=0).fit(x, y, sample_weight=weight)
    long = np.repeat(x, weight), np.repeat(y, weight)
    other = Bootstrap("correlation", n_resamples=50, resampling=resampling, random_state=0).fit(*long)
    assert bits(one.replicates_) == bits(other.replicates_)
    assert bits(one.estimate_) == bits(other.estimate_)
    assert one.certify(x, y, sample_weight=weight)["replicates"].holds
    assert not one.certify(x, y, sample_weight=weight[::-1])["replicates"].holds


@pytest.mark.slow_without_jit
def test_strata_keep_their_sizes():
    rng = np.random.default_rng(1)
    x, strata = rng.normal(size=30), np.array(["a", "b", "c"])[rng.integers(3, size=30)]
    x += 100 * (strata == "b")
    sizes = {s: (strata == s).sum() for s in "abc"}
    counts = Bootstrap(lambda s: [(s == k).sum() for k in "abc"], n_resamples=20, random_state=0).fit(strata, strata=strata)
    assert_array_equal(counts.replicates_, np.tile(list(sizes.values()), (20, 1)))
    ideal = sum(m * x[strata == s].var() for s, m in sizes.items()) / 30**2
    found = Bootstrap("mean", n_resamples=50_000, random_state=0).fit(x, strata=strata)
    assert abs(found.variance_ / ideal - 1) < SIX * np.sqrt(2 / 50_000)
    assert found.certify(x, strata=strata).holds
    low, high = found.interval()
    assert high - low < 1  # the strata's own places do not count as spread
    inside = stats.bootstrap((x,), np.mean, n_resamples=999, rng=0).confidence_interval
    assert inside.high - inside.low > 10


@pytest.mark.parametrize("groups", [np.zeros(5, dtype=int), np.array([0, 1, 0, 1, 0, 1, 0])])
def test_balanced_resamples_have_every_row_equally_often(groups):
    draws = lay_out(groups, "balanced", None, 30, 7)
    table = np.concatenate([draws.table(task) for task in draws.tasks()])
    assert_array_equal(np.bincount(table.ravel()), np.full(len(groups), 30))
    assert_array_equal(groups[table], np.tile(np.sort(groups), (30, 1)))
    assert len({tuple(sorted(r)) for r in table.tolist()}) > 10
    x = np.random.default_rng(0).normal(size=len(groups))
    found = Bootstrap("mean", n_resamples=30, resampling="balanced", random_state=0).fit(x, strata=groups)
    assert_allclose(found.bias_, 0, atol=1e-15)


@pytest.mark.slow_without_jit
@pytest.mark.parametrize("resampling", ["moving-block", "circular-block"])
def test_blocks_are_runs_and_have_the_variance_of_their_means(resampling):
    rng = np.random.default_rng(5)
    n, length = 24, 4
    x = np.cumsum(rng.normal(size=n))
    rows = []
    Bootstrap(lambda i: rows.append(i) or 0.0, n_resamples=200, resampling=resampling, block_length=length).fit(np.arange(n))
    runs = np.array(rows[1:]).reshape(-1, length)  # the first call is for the sample as it is
    assert_array_equal((runs - runs[:, :1]) % n, np.tile(np.arange(length), (len(runs), 1)))
    wraps = resampling == "circular-block"
    assert set(runs[:, 0].tolist()) == set(range(n if wraps else n - length + 1))
    means = np.array([x[np.arange(i, i + length) % n].mean() for i in range(n if wraps else n - length + 1)])
    found = Bootstrap("mean", n_resamples=50_000, resampling=resampling, block_length=length, random_state=0).fit(x)
    assert abs(found.mean_ - means.mean()) < SIX * means.std() / np.sqrt(n / length * 50_000)
    assert abs(found.variance_ / (means.var() / (n / length)) - 1) < SIX * np.sqrt(2 / 50_000)
    assert found.certify(x).holds
    low, high = found.interval(0.9, "percentile")
    assert low < found.estimate_ < high
    cut = Bootstrap(len, n_resamples=5, resampling=resampling, block_length=5).fit(x)  # 24 is no multiple of 5
    assert_array_equal(cut.replicates_, np.full(5, n))


def test_several_samples_are_drawn_together_or_each_by_itself():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=12), rng.normal(size=9)
    found = Bootstrap(lambda a, b: [a.mean() - b.mean(), len(a), len(b)], n_resamples=5000, paired=False, random_state=0)
    found.fit(x, y)
    assert_array_equal(found.replicates_[:, 1:], np.tile([12, 9], (5000, 1)))
    ideal = x.var() / 12 + y.var() / 9
    assert abs(found.variance_[0] / ideal - 1) < SIX * np.sqrt(2 / 5000)
    paired = Bootstrap(lambda a, b: np.abs(a - b).max(), n_resamples=100, paired=True).fit(x, x)
    assert_array_equal(paired.replicates_, 0)
    crossed = Bootstrap(lambda a, b: np.abs(a - b).max(), n_resamples=100, paired=False).fit(x, x)
    assert (crossed.replicates_ > 0).all()


def test_tables_have_the_statistic_of_each_column_and_functions_may_give_arrays():
    X = np.random.default_rng(3).normal(size=(15, 2))
    table = Bootstrap("median", n_resamples=999, random_state=0).fit(X)
    columns = [Bootstrap("median", n_resamples=999, random_state=0).fit(X[:, j]) for j in range(2)]
    assert_array_equal(table.replicates_, np.column_stack([c.replicates_ for c in columns]))
    assert_array_equal(table.interval().low, [c.interval().low for c in columns])
    assert table.certify(X)["replicates"].holds
    matrix = Bootstrap(np.cov, n_resamples=1999, random_state=0, paired=True).fit(*X.T)
    assert matrix.replicates_.shape == (1999, 2, 2)
    assert matrix.interval(0.9, "basic").high.shape == (2, 2)
    variance = Bootstrap("variance", n_resamples=1999, random_state=0).fit(X[:, 0])
    assert_allclose(matrix.interval(0.9).low[0, 0], variance.interval(0.9).low, rtol=1e-9)
    assert matrix.certify(*X.T)["variance"].holds


@pytest.mark.parametrize("statistic", [*PLAIN, "correlation"])
def test_certificate_refuses_what_is_changed(statistic):
    rng = np.random.default_rng(4)
    samples = [rng.exponential(size=20) for _ in range(2 if statistic == "correlation" else 1)]
    fitted = Bootstrap(statistic, n_resamples=2000, random_state=0).fit(*samples)
    assert fitted.certify(*samples).holds
    for name in ("estimate_", "replicates_", "mean_", "variance_", "standard_error_", "bias_"):
        kept = getattr(fitted, name)
        setattr(fitted, name, kept * 1.01)
        assert not fitted.certify(*samples).holds, name
        setattr(fitted, name, kept)
    assert not fitted.certify(*(s + rng.normal(size=20) for s in samples)).holds
    fitted.seed_ += 1
    assert next(check.name for check in fitted.certify(*samples).failed) == "replicates"


@pytest.mark.parametrize("where", [1e6, 1e9])
@pytest.mark.parametrize("statistic", ["mean", "median"])
def test_certificate_refuses_what_is_changed_far_from_zero(statistic, where):
    x = where + np.random.default_rng(0).normal(size=40)
    fitted = Bootstrap(statistic, n_resamples=2000, random_state=0).fit(x)
    assert all(check.holds for check in fitted.certify(x) if check.kind == "proof")
    for name in ("estimate_", "replicates_", "mean_"):
        kept = getattr(fitted, name)
        setattr(fitted, name, kept + fitted.standard_error_ / 100)
        assert [check.name for check in fitted.certify(x).failed if check.kind == "proof"] == [name.strip("_")]
        setattr(fitted, name, kept)


def test_certificate_says_that_resamples_are_few():
    x = np.random.default_rng(0).normal(size=30)
    few = Bootstrap("mean", n_resamples=45, random_state=0).fit(x).certify(x)
    assert [check.name for check in few.failed] == ["chance"]
    assert Bootstrap("mean", n_resamples=4999, random_state=0).fit(x).certify(x)["chance"].value < 0.03
    none = Bootstrap("mean", n_resamples=9, random_state=0).fit(x).certify(x)["chance"]
    assert none.value == np.inf
    assert "needs 39 replicates" in none.claim


def test_any_number_is_a_level():
    fitted = Bootstrap(random_state=0).fit([1.0, 2.0, 4.0, 8.0])
    assert_allclose(fitted.interval(np.float32(0.9)), fitted.interval(0.9), rtol=1e-6)


def test_samples_that_do_not_vary():
    fitted = Bootstrap("mean", n_resamples=100).fit([3.0, 3.0, 3.0])
    assert (fitted.estimate_, fitted.variance_, fitted.bias_) == (3.0, 0.0, 0.0)
    for method in ("bca", "expanded", "percentile", "basic", "normal", "studentized"):
        assert fitted.interval(0.9, method) == (3.0, 3.0)
    assert fitted.certify([3.0, 3.0, 3.0]).holds
    tenths = np.full(10, 0.1)  # whose mean is another number by rounding
    assert Bootstrap("mean", n_resamples=100).fit(tenths).certify(tenths).holds
    assert exact_bootstrap("median", [2.0, 2.0]).variance == 0


def test_undefined_replicates_are_left_out_and_said():
    with pytest.warns(UserWarning, match=r"not defined for \d+ of 500 resamples; these are left out"):
        fitted = Bootstrap("correlation", n_resamples=500, random_state=0).fit([1.0, 2.0, 4.0], [1.0, 3.0, 2.0])
    undefined = np.isnan(fitted.replicates_)
    assert abs(undefined.mean() - 3 / 27) < SIX * np.sqrt(3 / 27 / 500)
    assert_allclose(fitted.mean_, fitted.replicates_[~undefined].mean(), rtol=SUMS)
    low, high = fitted.interval(0.9, "percentile")
    assert -1 <= low <= high <= 1


def test_a_quantile_is_told_by_any_number():
    found = [Bootstrap(share, n_resamples=99, random_state=0).fit(np.arange(9.0)) for share in (0.25, np.float32(0.25))]
    assert_array_equal(found[0].replicates_, found[1].replicates_)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Bootstrap("average").fit([1.0, 2.0]), "statistic must be one of mean, median"),
        (lambda: Bootstrap(1.5).fit([1.0, 2.0]), "statistic must be one of"),
        (lambda: Bootstrap().fit([1.0]), "A sample of one row has no resamples but itself"),
        (lambda: Bootstrap().fit(), "Give one sample or more"),
        (lambda: Bootstrap().fit(np.empty((5, 0))), "The table has no columns"),
        (
            lambda: Bootstrap(lambda x, y: x.mean() - y.sum(), paired=False).fit([1.0, 2.0], []),
            r"the samples have \[2, 0\] rows",
        ),
        (lambda: Bootstrap().fit([1.0, np.nan]), "must be finite numbers"),
        (lambda: Bootstrap().fit([1.0, 2.0], [1.0, 2.0]), "is of 1 sample, got 2"),
        (lambda: Bootstrap("correlation").fit([1.0, 2.0], [1.0, 2.0, 3.0]), r"equally long; they have \[2, 3\] rows"),
        (lambda: Bootstrap("correlation", paired=False).fit([1.0, 2.0], [1.0, 2.0]), "leave paired=False out"),
        (lambda: Bootstrap("correlation").fit([1.0, 1.0], [1.0, 2.0]), "there is nothing to resample"),
        (lambda: Bootstrap(np.dot).fit([1.0, 2.0], [1.0, 2.0]), "say paired=True if their rows belong together"),
        (lambda: Bootstrap(np.dot, paired=False).fit([1.0, 2.0], [1.0, 2.0], strata=[0, 1]), "for one sample or for paired"),
        (lambda: Bootstrap().fit([1.0, 2.0, 3.0], strata=["a", "a", "b"]), "A group of one row"),
        (lambda: Bootstrap().fit([1.0, 2.0], strata=["a"]), "a stratum for each of the 2 rows"),
        (lambda: Bootstrap().fit([1.0, 2.0], sample_weight=[0.5, 1]), "in whole numbers"),
        (lambda: Bootstrap(n_resamples=1).fit([1.0, 2.0]), "n_resamples must be a whole number of at least 2"),
        (lambda: Bootstrap(resampling="jump").fit([1.0, 2.0]), "resampling must be one of independent"),
        (lambda: Bootstrap(block_length=2).fit([1.0, 2.0, 3.0]), "block_length=2 is for resampling"),
        (
            lambda: Bootstrap(resampling="moving-block", block_length=3).fit([1.0, 2.0, 3.0]),
            "must be a whole number from 1 to 2",
        ),
        (lambda: Bootstrap(resampling="moving-block", block_length=1.5).fit([1.0, 2.0, 3.0]), "from 1 to 2.*; got 1.5"),
        (lambda: Bootstrap(resampling="moving-block", block_length="2").fit([1.0, 2.0, 3.0]), "from 1 to 2.*; got '2'"),
        (lambda: Bootstrap().fit(["a", "b"]), "The samples of a mean must be numbers: .*'a'"),
        (lambda: Bootstrap().fit([1j, 2.0]), "The samples of a mean must be numbers: they are complex"),
        (lambda: Bootstrap().fit([1.0, 2.0, 3.0], strata=["a", "a", None]), "strata must be all text or all numbers"),
        (lambda: Bootstrap(resampling="balanced", n_resamples=10**9).fit([1.0, 2.0]), "drawn all at once"),
        (lambda: Bootstrap(lambda x: x[: len(set(x))], n_resamples=50).fit([1.0, 2.0, 3.0]), "the same shape for every"),
        (lambda: Bootstrap().fit([1.0, 2.0, 3.0]).interval(95), "level must be a number between 0 and 1"),
        (lambda: Bootstrap(n_resamples=99).fit([1.0, 2.0]).interval(0.99), "needs 199 replicates or more; there are 99"),
        (lambda: Bootstrap().fit([1.0, 2.0]).interval(method="best"), "method must be one of bca, expanded"),
        (lambda: Bootstrap(resampling="moving-block").fit(np.arange(9.0)).interval(), "is for rows that are independent"),
        (
            lambda: Bootstrap(lambda x: len(set(x)), n_resamples=99).fit(np.arange(40.0)).interval(),
            "lies beyond all replicates",
        ),
        (lambda: exact_bootstrap("mean", np.arange(11.0)), "for at most 10 rows, got 11"),
        (lambda: exact_bootstrap("correlation", [1.0, 2.0], [0.0, 1.0]), "not defined for 2 of the 3 resamples"),
    ],
)
def test_errors_say_what_to_do(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("statistic", ["variance", "deviation", "correlation"])
def test_a_row_that_outweighs_all_others_can_be_left_out(statistic):
    rng = np.random.default_rng(0)
    samples = [np.append(rng.normal(size=9), 1e9) for _ in range(2 if statistic == "correlation" else 1)]
    function = PLAIN.get(statistic, correlation)
    found = left_out(statistic, read_samples(samples, statistic, None))
    assert_allclose(found, [function(*(np.delete(s, i) for s in samples)) for i in range(10)], rtol=1e-9)
    constant = [0.1, 0.1, 0.1, 0.7], [1.0, 2.0, 3.0, 5.0]  # 0.1 + 0.1 + 0.1 is not 0.3
    with pytest.warns(UserWarning, match="not defined for"):
        fitted = Bootstrap("correlation", n_resamples=300, random_state=0).fit(*constant)
    with pytest.raises(ValueError, match="not defined without one of the rows"):
        fitted.interval(0.9)
    with pytest.raises(ValueError, match=r"has the shape \(4,\), and \(3,\) without a row"):
        Bootstrap(np.sort, n_resamples=99, random_state=0).fit([1.0, 2.0, 3.0, 5.0]).interval(0.9)
    checks = fitted.certify(*constant, level=0.9, method="percentile")
    assert all(check.holds for check in checks if check.kind == "proof")


def test_influences_and_jackknife_of_a_difference_of_means_are_those_of_the_means():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=5), rng.normal(size=3)

    def difference(a, b):
        return a.mean() - b.mean()

    samples = read_samples([x, y], difference, False)
    values = left_out(difference, samples)
    assert_allclose(influences(values, samples.groups), np.r_[(x - x.mean()) / 5, (y.mean() - y) / 3], rtol=1e-9)
    assert_allclose(jackknife_error(values, samples.groups), np.sqrt(var1(x) / 5 + var1(y) / 3), rtol=1e-9)
    rows = np.array([[0, 0, 1, 2, 4, 5, 7, 7]])
    expected = np.sqrt(var1(x[rows[0, :5]]) / 5 + var1(y[rows[0, 5:] - 5]) / 3)
    assert_allclose(jackknife_errors(difference, samples, rows)[0], [expected], rtol=1e-9)
