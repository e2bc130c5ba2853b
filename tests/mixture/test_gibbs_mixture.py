"""Gibbs sampling of a Gaussian mixture: against all labelings, SciPy's densities, and exact transition matrices."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import kstest, multivariate_normal, multivariate_t
from scipy.stats import t as student_t
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.mixture import GibbsMixture, gibbs_mixture
from lemmata.mixture import gibbs_kernels as kernels
from lemmata.mixture.gibbs_certificate import enumerate_posterior, log_labels, pair_share
from lemmata.mixture.gibbs_mixture import Sampler
from lemmata.mixture.normal_inverse_wishart import NormalInverseWishart, moments

METHODS = ["collapsed", "uncollapsed"]
methods = pytest.mark.parametrize("method", METHODS)
ERRORS = 5.0  # standard errors: a false alarm once in a million
LEVEL = 1e-6


def whitened(d, mean_precision=0.3, degrees=None):
    """The prior in the sampler's coordinates."""
    return NormalInverseWishart(np.zeros(d), mean_precision, np.eye(d), d + 2.5 if degrees is None else degrees)


def table(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * 1.5


def log_predictive(prior, x, rows):
    """SciPy's Student density of x after some rows."""
    posterior = prior.after(*moments(rows))
    d, kappa, nu = len(x), posterior.mean_precision, posterior.degrees_of_freedom
    return multivariate_t.logpdf(x, posterior.mean, posterior.scale * (kappa + 1) / (kappa * (nu - d + 1)), df=nu - d + 1)


def log_joint(X, z, k, prior, alpha):
    """Sum log p(x, z) row after row: urn probabilities and SciPy's predictive densities, nothing of ours but the update."""
    total = 0.0
    for i, c in enumerate(z):
        before = z[:i] == c
        total += np.log((before.sum() + alpha) / (i + k * alpha)) + log_predictive(prior, X[i], X[:i][before])
    return total


def all_labelings(n, k):
    return np.array(list(product(range(k), repeat=n)))


def sampler(X, k, alpha, prior, method="collapsed"):
    return Sampler(X, k, alpha, prior.mean_precision, prior.degrees_of_freedom, method)


# The conditionals: exact


@pytest.mark.item("CLU-20")
@pytest.mark.parametrize(("n", "d", "k", "alpha"), [(5, 2, 2, 1.0), (4, 1, 3, 0.4), (3, 3, 4, 2.5)])
def test_conditionals_are_ratios_of_the_joint_density(n, d, k, alpha):
    X, prior = table(n, d), whitened(d)
    sampling, labelings = sampler(X, k, alpha, prior), all_labelings(n, k)
    logs = {tuple(z): log_joint(X, z, k, prior, alpha) for z in labelings}
    for z in labelings:
        assert sampling.log_joint(z.astype(np.int32)) == pytest.approx(logs[tuple(z)], rel=1e-10)
        found = sampling.conditionals(z.astype(np.int32), np.arange(n))
        for row in range(n):
            variants = [logs[(*z[:row], c, *z[row + 1 :])] for c in range(k)]
            np.testing.assert_allclose(found[row], np.exp(variants - logsumexp(variants)), rtol=1e-9)


@pytest.mark.item("CLU-20")
def test_enumeration_is_the_joint_density_of_every_labeling():
    X, prior = table(4, 2, seed=1), whitened(2)
    labelings, logs = enumerate_posterior(X, 3, prior, 0.7)
    assert labelings.tolist() == all_labelings(4, 3).tolist()
    np.testing.assert_allclose(logs, [log_joint(X, z, 3, prior, 0.7) for z in labelings], rtol=1e-10)


def transitions(n, k, conditional):
    """Transition matrix of a sweep over all labelings, for a function of (labeling, row) that gives probabilities."""
    labelings = all_labelings(n, k)
    number = {tuple(z): i for i, z in enumerate(labelings)}
    total = np.eye(len(labelings))
    for row in range(n):
        site = np.zeros_like(total)
        for i, z in enumerate(labelings):
            for c, p in enumerate(conditional(z, row)):
                site[i, number[(*z[:row], c, *z[row + 1 :])]] += p
        total = total @ site
    return total


def stationary(T):
    values, vectors = np.linalg.eig(T.T)
    found = np.real(vectors[:, np.argmin(np.abs(values - 1))])
    return found / found.sum()


@pytest.mark.item("CLU-20")
def test_only_the_row_taken_out_and_everything_integrated_leaves_the_posterior_as_it_is():
    n, k, alpha, X, prior = 4, 2, 1.0, table(4, 1, seed=2), whitened(1)
    _, logs = enumerate_posterior(X, k, prior, alpha)
    exact = np.exp(logs - logsumexp(logs))
    sampling = sampler(X, k, alpha, prior)

    def ours(z, row):
        return sampling.conditionals(z.astype(np.int32), np.array([row]))[0]

    def form(z, row, counted, density):
        others = np.arange(n) != row
        logs = []
        for c in range(k):
            rows = X[(z == c) & others]
            count = len(rows) + (counted and z[row] == c)
            logs.append(np.log(count + alpha) + density(X[row], rows))
        return np.exp(np.array(logs) - logsumexp(logs))

    def student(x, rows):
        return log_predictive(prior, x, rows)

    def plug_in(x, rows):
        posterior = prior.after(*moments(rows))
        return multivariate_normal.logpdf(x, posterior.mean, posterior.scale / (posterior.degrees_of_freedom - 2))

    T = transitions(n, k, ours)
    np.testing.assert_allclose(exact @ T, exact, atol=1e-12)
    np.testing.assert_allclose(stationary(T), exact, atol=1e-10)
    np.testing.assert_allclose(stationary(transitions(n, k, lambda z, r: form(z, r, False, student))), exact, atol=1e-10)
    counted = stationary(transitions(n, k, lambda z, r: form(z, r, True, student)))  # the printed form
    plugged = stationary(transitions(n, k, lambda z, r: form(z, r, False, plug_in)))
    assert np.abs(counted - exact).sum() / 2 > 0.03
    assert np.abs(plugged - exact).sum() / 2 > 0.03


@pytest.mark.item("CLU-20")
def test_the_number_of_the_catalogue():
    prior, X = whitened(1), np.array([[0.3], [-0.2], [0.9]])
    found = sampler(X, 2, 1.0, prior).conditionals(np.zeros(3, np.int32), np.array([2]))[0]
    odds = found / np.exp([log_predictive(prior, X[2], X[:2]), log_predictive(prior, X[2], X[:0])])
    assert odds[0] / odds.sum() == pytest.approx(0.75, rel=1e-12)
    ratio = np.exp(log_labels(np.array([[3, 0], [2, 1]]), 1.0))
    assert ratio[0] / ratio.sum() == pytest.approx(0.75, rel=1e-12)
    assert (3 + 1) / (3 + 2) == 0.8  # with the row counted in, as printed


# The frequencies: long runs


def batch_error(series):
    """Standard error of the mean of chains (n_chains, n_draws, …) from means of 20 batches of each."""
    chains, draws = series.shape[:2]
    size = draws // 20
    batches = series[:, : 20 * size].reshape(chains * 20, size, *series.shape[2:]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(len(batches))


@pytest.fixture(scope="module")
def six_rows():
    X = np.array([[0.0, 1.0], [0.5, 0.2], [2.0, 2.2], [2.5, 1.4], [1.0, 1.2], [3.5, 0.0]])
    settings = {"alpha": 1.0, "mean_precision": 0.3, "covariance_prior": [[0.8, 0.2], [0.2, 0.5]], "mean_prior": [1.0, 1.5]}
    prior = NormalInverseWishart(np.array([1.0, 1.5]), 0.3, np.array(settings["covariance_prior"]), 4.0)
    labelings, logs = enumerate_posterior(X, 2, prior, 1.0)
    fits = {}
    for method in METHODS:
        model = GibbsMixture(2, method=method, n_sweeps=2100, burn_in=100, n_chains=4, random_state=1, **settings)
        fits[method] = model.fit(X)
    return X, prior, labelings, logs, fits


@pytest.mark.item("CLU-20")
@methods
def test_frequencies_are_those_of_the_exact_posterior(six_rows, method):
    X, prior, labelings, logs, fits = six_rows
    np.testing.assert_allclose(logs, [log_joint(X, z, 2, prior, 1.0) for z in labelings], rtol=1e-9)
    exact = np.exp(logs - logsumexp(logs))
    draws, model = fits[method].assignments_, fits[method]
    assert draws.shape == (4, 2000, 6)
    together = draws[..., :, None] == draws[..., None, :]
    pairs = np.einsum("s,sij->ij", exact, labelings[:, :, None] == labelings[:, None, :])
    error = batch_error(together.astype(float))
    off = ~np.eye(6, dtype=bool)
    assert (np.abs(model.similarity() - pairs)[off] < ERRORS * error[off]).all()
    assert error[off].max() < 0.03, "the comparison is sharp"
    assert abs(model.log_joint_[:, 100:].mean() - exact @ logs) < ERRORS * batch_error(model.log_joint_[:, 100:])
    codes = (draws @ 2 ** np.arange(6)[::-1]).astype(int)
    likely = np.argsort(exact)[-10:]
    for state in likely:
        hits = (codes == state).astype(float)
        assert abs(hits.mean() - exact[state]) < ERRORS * batch_error(hits), state


@pytest.mark.item("CLU-20")
@methods
def test_labels_are_symmetric(six_rows, method):
    labelings, logs, draws = *six_rows[2:4], six_rows[4][method].assignments_
    exact = np.exp(logs - logsumexp(logs))
    np.testing.assert_allclose(exact @ labelings, 0.5, rtol=1e-10)
    in_first = (draws == 0).astype(float)
    assert (np.abs(in_first.mean(axis=(0, 1)) - 0.5) < ERRORS * batch_error(in_first)).all()


def test_both_methods_agree_and_are_certified(six_rows):
    X, _, _, _, fits = six_rows
    one, other = (fits[method] for method in METHODS)
    error = np.hypot(batch_error(one.log_joint_[:, 100:]), batch_error(other.log_joint_[:, 100:]))
    assert abs(one.log_joint_[:, 100:].mean() - other.log_joint_[:, 100:].mean()) < ERRORS * error
    for model in fits.values():
        certificate = model.certify(X)
        assert certificate.holds, str(certificate)
        assert certificate["all labelings"].limit == ERRORS
        assert certificate.kind == "evidence"


@methods
def test_the_predictive_density_is_that_of_all_labelings(six_rows, method):
    X, prior, labelings, logs, fits = six_rows
    exact, new = np.exp(logs - logsumexp(logs)), np.array([[1.0, 1.0], [4.0, -1.0], [-3.0, 0.0]])
    each = np.zeros((len(labelings), len(new)))
    for i, z in enumerate(labelings):
        for c in range(2):
            rows = X[z == c]
            each[i] += (len(rows) + 1.0) / 8.0 * np.exp([log_predictive(prior, x, rows) for x in new])
    model = fits[method]
    codes = (model.assignments_ @ 2 ** np.arange(6)[::-1]).astype(int)
    np.testing.assert_allclose(model.score_samples(new), np.log(each[codes].mean(axis=(0, 1))), rtol=1e-9)
    assert (np.abs(np.exp(model.score_samples(new)) - exact @ each) < ERRORS * batch_error(each[codes])).all()
    assert model.score(new) == pytest.approx(model.score_samples(new).mean())


def test_what_is_shown_is_the_best_draw(six_rows):
    X, prior, _, _, fits = six_rows
    model = fits["collapsed"]
    z = model.assignments_[tuple(model.best_draw_)]
    assert np.array_equal(model.labels_, z)
    assert log_joint(X, z, 2, prior, 1.0) == pytest.approx(model.log_joint_[:, 100:].max(), rel=1e-10)
    new = np.array([[1.0, 1.0], [4.0, -1.0]])
    logs = np.array([[np.log((z == c).sum() + 1.0) + log_predictive(prior, x, X[z == c]) for c in range(2)] for x in new])
    np.testing.assert_allclose(model.predict_proba(new), np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), rtol=1e-9)
    for c in range(2):
        posterior = prior.after(*moments(X[z == c]))
        np.testing.assert_allclose(model.means_[c], posterior.mean, rtol=1e-10)
        np.testing.assert_allclose(model.covariances_[c], posterior.scale / (posterior.degrees_of_freedom - 3), rtol=1e-10)
        assert model.weights_[c] == pytest.approx(((z == c).sum() + 1) / 8)


def test_similarity_of_next_rows():
    X, new = np.array([[0.0], [0.4], [1.0], [5.0], [5.5]]), np.array([[0.2], [5.1], [2.5]])
    model = GibbsMixture(2, n_sweeps=20, random_state=0).fit(X)
    prior = NormalInverseWishart(model.mean_prior_, 0.01, model.covariance_prior_, model.degrees_of_freedom_)
    expected = np.zeros((3, 3))
    for z in model.assignments_.reshape(-1, 5):
        logs = np.array([[np.log((z == c).sum() + 1.0) + log_predictive(prior, x, X[z == c]) for c in range(2)] for x in new])
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        expected += p @ p.T / 20
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(model.similarity(new), expected, rtol=1e-9)


def test_next_rows_have_the_predictive_distribution():
    X = np.array([[0.0], [0.4], [1.0], [5.0], [5.5]])
    model = GibbsMixture(2, n_sweeps=60, random_state=0).fit(X)
    drawn, components = model.sample(5000)
    assert set(components) == {0, 1}

    def distribution(x):
        total = np.zeros_like(x)
        for counts, means, scales in zip(
            model.draw_counts_.reshape(-1, 2), model.draw_means_.reshape(-1, 2), model.draw_scales_.reshape(-1, 2), strict=True
        ):
            for n, m, s in zip(counts, means, scales, strict=True):
                kappa, df = model.mean_precision + n, model.degrees_of_freedom_ + n
                total += (n + 1.0) / 7.0 * student_t.cdf((x - m) / np.sqrt(s * (kappa + 1) / (kappa * df)), df)
        return total / model.draw_counts_.reshape(-1, 2).shape[0]

    assert kstest(drawn[:, 0], distribution).pvalue > LEVEL
    with pytest.raises(ValueError, match="n_samples must be at least 1"):
        model.sample(0)


# Running counts


@pytest.mark.item("CLU-19")
def test_running_sums_are_exactly_the_sums_after_any_sweep():
    rng = np.random.default_rng(3)
    X = rng.integers(-50, 50, size=(300, 3)).astype(float)
    sampling = sampler(X, 4, 1.0, whitened(3))
    z = rng.integers(4, size=300).astype(np.int32)
    statistics = sampling.statistics(z)  # never summed anew below
    for _ in range(20):
        before = z.copy()
        kernels.collapsed_sweep(X, z, rng.random(300), sampling.kappa, sampling.nu, sampling.table, *statistics)
        assert (z != before).any()
        counts, sums = np.bincount(z, minlength=4), np.zeros((4, 3))
        np.add.at(sums, z, X)
        assert np.array_equal(statistics[0], counts)
        assert np.array_equal(statistics[1], sums)
        np.testing.assert_array_equal(statistics[2], sums / (0.3 + counts)[:, None])


@pytest.mark.item("CLU-19")
def test_the_drift_of_a_sweep_over_real_numbers_is_rounding():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 5)) * np.array([1.0, 3.0, 10.0, 0.1, 1.0])
    sampling = sampler(X, 3, 1.0, whitened(5))
    z = rng.integers(3, size=2000).astype(np.int32)
    statistics = sampling.statistics(z)
    for _ in range(5):  # five times as long as a fit goes without summing anew
        kernels.collapsed_sweep(X, z, rng.random(2000), sampling.kappa, sampling.nu, sampling.table, *statistics)
    for running, anew in zip(statistics, sampling.statistics(z), strict=True):
        np.testing.assert_allclose(running, anew, rtol=1e-11, atol=1e-11 * np.abs(anew).max())


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_rank_one_changes_are_those_of_the_matrix(sign):
    rng = np.random.default_rng(5)
    for d in (1, 2, 5, 8):
        B, x = rng.normal(size=(d, d)), rng.normal(size=d)
        A = np.eye(d) + B @ B.T + np.outer(x, x)
        lower = np.linalg.cholesky(A)
        inverse = 1 / np.diagonal(lower)
        kernels.rank_one(lower, inverse, x.copy(), sign)
        np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(A + sign * np.outer(x, x)), rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(inverse, 1 / np.diagonal(lower), rtol=1e-12)


def test_a_component_that_empties_is_the_prior_exactly():
    X = np.array([[1.0, 2.0], [1.5, 1.0], [40.0, -30.0]])
    sampling, z = sampler(X, 2, 1.0, whitened(2)), np.array([0, 0, 1], np.int32)
    statistics = sampling.statistics(z)
    kernels.collapsed_sweep(X, z, np.array([0.0, 0.0, 0.0]), sampling.kappa, sampling.nu, sampling.table, *statistics)
    assert z.tolist() == [0, 0, 0]
    assert statistics[0].tolist() == [3, 0]
    np.testing.assert_array_equal(np.tril(statistics[3][1]), np.eye(2))
    assert statistics[5][1] == 0
    np.testing.assert_allclose(statistics[5], sampling.statistics(z)[5], rtol=1e-12)


# The estimator


@methods
def test_units_and_origin_do_not_matter(method):
    X = table(40, 3, seed=6)
    one = GibbsMixture(3, method=method, n_sweeps=60, alpha=5.0, random_state=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gibbs_mixture, "MOST_RHAT", np.inf)
        one.fit(X)
        units = np.array([1e-3, 1.0, 1e4])
        other = GibbsMixture(3, method=method, n_sweeps=60, alpha=5.0, random_state=2).fit(X * units + np.array([5.0, 0, -7e4]))
    assert np.array_equal(one.assignments_, other.assignments_)
    np.testing.assert_allclose(other.log_joint_ + 40 * np.log(units).sum(), one.log_joint_, rtol=1e-9)
    assert other.rhat_ == pytest.approx(one.rhat_, rel=1e-6)


@methods
def test_chains_on_threads_are_the_same_bits(method, monkeypatch):
    monkeypatch.setattr(gibbs_mixture, "WORTH_THREADS", 0)
    X = np.concatenate([table(60, 2, seed=7), table(60, 2, seed=8) + 9])
    fits = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            fits.append(GibbsMixture(2, method=method, n_sweeps=30, n_chains=3, random_state=0).fit(X))
    assert np.array_equal(fits[0].assignments_, fits[1].assignments_)
    assert fits[0].log_joint_.tobytes() == fits[1].log_joint_.tobytes()


def test_separated_groups_are_found():
    rng = np.random.default_rng(9)
    truth = np.arange(150) % 3
    X = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])[truth] + rng.normal(size=(150, 2))
    model = GibbsMixture(3, n_sweeps=100, random_state=0).fit(X)
    assert len({(a, b) for a, b in zip(truth, model.labels_, strict=True)}) == 3
    assert np.array_equal(model.fit_predict(X), model.labels_)
    assert np.array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.similarity(), truth[:, None] == truth, atol=0.1)
    order = model.means_.sum(axis=1).argsort()
    assert np.abs(model.means_[order[0]]).max() < 0.6
    assert model.certify(X).holds


def test_large_results_are_thinned(monkeypatch):
    monkeypatch.setattr(gibbs_mixture, "MOST_LABELS", 400)
    X = np.linspace(0, 1, 10)[:, None]
    model = GibbsMixture(2, n_sweeps=80, burn_in=20, random_state=0, alpha=5.0).fit(X)
    assert model.assignments_.shape == (2, 20, 10)  # every third of sixty
    assert model.assignments_.dtype == np.int8
    assert model.certify(X).holds


def test_interrupted_sampling_keeps_what_was_drawn():
    class Interrupt:
        count = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            self.count += context.task_name == "iteration"
            if self.count == 31:
                raise KeyboardInterrupt

        def on_fit_task_end(self, estimator, context):
            return False

    X = table(12, 2, seed=10)
    model = GibbsMixture(2, n_sweeps=500, burn_in=10, random_state=0, alpha=5.0).set_callbacks(Interrupt())
    whole = GibbsMixture(2, n_sweeps=500, burn_in=10, random_state=0, alpha=5.0).fit(X)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X)
    assert any("interrupted after 30" in str(w.message) for w in caught)
    assert model.assignments_.shape == (2, 20, 12)
    assert np.array_equal(model.assignments_, whole.assignments_[:, :20])
    assert model.log_joint_.shape == (2, 30)
    assert not model.converged_
    assert all(check.holds for check in model.certify(X) if check.kind == "proof")


def test_more_components_than_rows_and_a_single_sweep():
    X = [[0.0], [3.0]]
    model = GibbsMixture(4, n_sweeps=1, random_state=0).fit(X)
    assert np.isnan(model.rhat_)
    assert model.assignments_.shape == (2, 1, 2)
    assert model.draw_counts_.sum() == 4
    assert all(check.holds for check in model.certify(X) if check.kind == "proof")


def test_chains_that_disagree_are_reported(monkeypatch):
    X = table(12, 2, seed=10)
    monkeypatch.setattr(gibbs_mixture, "MOST_RHAT", 0.5)
    with pytest.warns(ConvergenceWarning, match="different stories"):
        GibbsMixture(2, n_sweeps=20, random_state=0).fit(X)
    monkeypatch.undo()
    model = GibbsMixture(2, n_sweeps=40, random_state=0, alpha=5.0).fit(X)
    model.log_joint_[0] += 50.0
    assert {"log joint", "R-hat", "chains"} <= {check.name for check in model.certify(X).failed}


def test_share_of_pairs():
    assert pair_share(np.array([[0, 0, 1], [1, 1, 1]])).tolist() == [pytest.approx(1 / 3), 1.0]


def test_a_sampler_of_something_else_is_refused(monkeypatch):
    """Labels by a fair coin pass every check but the comparison with all labelings."""

    def coin(Y, z, uniforms, *rest):
        z[:] = uniforms < 0.5

    X = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    monkeypatch.setattr(kernels, "collapsed_sweep", coin)
    model = GibbsMixture(2, random_state=0).fit(X)
    assert [check.name for check in model.certify(X).failed] == ["all labelings"]


def test_a_wrong_kernel_is_refused(monkeypatch):
    X = table(30, 2, seed=13)
    model = GibbsMixture(2, n_sweeps=40, alpha=5.0, random_state=0).fit(X)
    right = kernels.conditional_rows

    def counted(Y, z, rows, kappa, nu, terms, *rest):  # the textbook's counts, one too high
        right(Y, z, rows, kappa, nu, terms, *rest)
        rest[-1][np.arange(len(rows)), z[rows]] += np.log(6 / 5)

    monkeypatch.setattr(kernels, "conditional_rows", counted)
    assert [check.name for check in model.certify(X).failed] == ["conditionals"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"burn_in": 500}, "leaves nothing of n_sweeps=500"),
        ({"mean_prior": [1.0]}, "mean_prior must hold 2 finite numbers"),
        ({"mean_prior": [1.0, np.nan]}, "mean_prior must hold 2 finite numbers"),
        ({"degrees_of_freedom": 3.0}, r"above n_features \+ 1 = 3, got 3"),
        ({"covariance_prior": [[1.0, 2.0], [2.0, 1.0]]}, "symmetric positive definite"),
        ({"covariance_prior": [[1.0, 0.1], [0.2, 1.0]]}, "symmetric positive definite"),
        ({"alpha": 0.0}, "alpha"),
        ({"method": "hybrid"}, "method"),
    ],
)
def test_nonsense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        GibbsMixture(2, **settings).fit(table(10, 2))


def test_similarities_of_too_many_rows_are_refused(monkeypatch):
    model = GibbsMixture(1, n_sweeps=4, random_state=0).fit(table(10, 2))
    monkeypatch.setattr(gibbs_mixture, "MOST_ROWS", 9)
    with pytest.raises(ValueError, match="give at most 9 rows"):
        model.similarity()


def test_weights_of_rows_are_not_taken():
    with pytest.raises(TypeError, match="sample_weight"):
        GibbsMixture().fit(table(5, 2), sample_weight=np.ones(5))


def test_the_normalizer_of_labels():
    counts = np.array([[3, 0], [2, 1], [1, 2], [0, 3]])
    ways = np.array([1, 3, 3, 1])
    assert (ways * np.exp(log_labels(counts, 0.6))).sum() == pytest.approx(1.0, rel=1e-12)
    assert log_labels(counts[0], 0.6) == pytest.approx(gammaln(1.2) - gammaln(4.2) + gammaln(3.6) - gammaln(0.6))
