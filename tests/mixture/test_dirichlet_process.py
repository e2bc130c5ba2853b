"""The Dirichlet-process mixture: against all partitions, SciPy's densities, and finite mixtures of more and more components."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import kstest, multivariate_t
from scipy.stats import t as student_t

import lemmata
from lemmata.mixture import DirichletProcessMixture, GibbsMixture, gibbs_mixture
from lemmata.mixture.dirichlet_process_mixture import expected_clusters
from lemmata.mixture.gibbs_certificate import Partitions, log_joints, log_labels, pair_share
from lemmata.mixture.gibbs_sampler import ProcessSampler
from lemmata.mixture.normal_inverse_wishart import NormalInverseWishart, moments

BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140]
ERRORS = 5.0  # standard errors: a false alarm once in a million
LEVEL = 1e-6


def whitened(d, mean_precision=0.3):
    """The prior in the sampler's coordinates."""
    return NormalInverseWishart(np.zeros(d), mean_precision, np.eye(d), d + 2.5)


def table(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) * 1.5


def canonical(z):
    """Number clusters by their first rows."""
    names = {}
    return tuple(names.setdefault(c, len(names)) for c in z)


def all_partitions(n):
    """Every partition once, the slow way."""
    return sorted({canonical(z) for z in product(range(n), repeat=n)})


def log_predictive(prior, x, rows):
    """SciPy's Student density of x after some rows."""
    posterior = prior.after(*moments(rows))
    d, kappa, nu = len(x), posterior.mean_precision, posterior.degrees_of_freedom
    return multivariate_t.logpdf(x, posterior.mean, posterior.scale * (kappa + 1) / (kappa * (nu - d + 1)), df=nu - d + 1)


def log_seating(z, alpha):
    """Log-probability that customers sit down like this, one after another."""
    total = 0.0
    for i, c in enumerate(z):
        friends = sum(other == c for other in z[:i])
        total += np.log((friends or alpha) / (i + alpha))
    return total


def log_joint(X, z, prior, alpha):
    z = np.array(z)
    return log_seating(list(z), alpha) + sum(log_predictive(prior, X[i], X[:i][z[:i] == c]) for i, c in enumerate(z))


def sampler(X, alpha, prior, k=2):
    return ProcessSampler(X, k, alpha, prior.mean_precision, prior.degrees_of_freedom)


# The law of partitions: exact


@pytest.mark.item("MSL-10")
@pytest.mark.parametrize("n", range(1, 7))
@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_the_law_of_partitions_is_that_of_customers_sitting_down(n, alpha):
    law, partitions = Partitions(alpha), all_partitions(n)
    assert [tuple(z) for z in sorted(law.listed(n).tolist())] == partitions
    assert len(partitions) == BELL[n]
    counts = np.array([np.bincount(z, minlength=n + 1) for z in partitions])
    expected = [log_seating(z, alpha) for z in partitions]
    np.testing.assert_allclose(law.log_labels(counts), expected, rtol=1e-12, atol=1e-12)
    sampling = sampler(table(n, 1), alpha, whitened(1))
    ours = sampling.labels.log_term(counts).sum(axis=1) + sampling.labels.log_constant(n)
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)
    assert np.exp(expected).sum() == pytest.approx(1.0, rel=1e-12)
    assert np.exp(expected) @ [max(z) + 1 for z in partitions] == pytest.approx(expected_clusters(alpha, n), rel=1e-10)


@pytest.mark.item("MSL-10")
@pytest.mark.parametrize(("n", "alpha"), [(4, 0.5), (7, 2.0)])
def test_the_number_of_clusters_has_stirlings_numbers(n, alpha):
    """P(k clusters) = |s(n, k)| αᵏ / α(α + 1)…(α + n − 1): those of x(x + 1)…(x + n − 1) written out by powers of x."""
    stirling = np.polynomial.Polynomial.fromroots(-np.arange(n)).coef
    masses = stirling * alpha ** np.arange(n + 1) / np.prod(alpha + np.arange(n))
    partitions = Partitions(alpha).listed(n)
    logs = Partitions(alpha).log_labels(np.stack([(partitions == c).sum(axis=1) for c in range(n)], axis=1))
    found = np.bincount(partitions.max(axis=1) + 1, weights=np.exp(logs))
    np.testing.assert_allclose(found, masses, rtol=1e-12, atol=1e-15)
    assert masses @ np.arange(n + 1) == pytest.approx(expected_clusters(alpha, n), rel=1e-12)


@pytest.mark.parametrize(("alpha", "clusters"), [(1e-320, 1), (1e-300, 1), (1e13, 8), (1e17, 8), (1e300, 8)])
def test_any_concentration_will_do(alpha, clusters):
    X = table(8, 2)
    assert expected_clusters(alpha, 8) == pytest.approx(clusters, rel=1e-10)
    model = DirichletProcessMixture(alpha, n_sweeps=40, random_state=0).fit(X)
    assert (model.n_components_ == clusters).all()
    assert model.certify(X).holds, str(model.certify(X))


@pytest.mark.item("MSL-10")
@pytest.mark.parametrize("n", [2, 4, 6])
def test_finite_mixtures_with_alpha_over_k_tend_to_the_process(n):
    alpha, partitions = 1.7, all_partitions(n)
    limit = np.exp([log_seating(z, alpha) for z in partitions])
    misses = []
    for k in (10, 100, 1000, 10_000):
        found = []
        for z in partitions:
            used = max(z) + 1
            labelings = gammaln(k + 1) - gammaln(k - used + 1)  # all with the same partition
            found.append(labelings + log_labels(np.bincount(z, minlength=k), alpha / k))
        assert np.exp(found).sum() == pytest.approx(1.0, rel=1e-9)
        misses.append(np.abs(np.exp(found) - limit).sum() / 2)
    # the distance falls as 1/k: ten times the components, a tenth of it
    np.testing.assert_allclose(np.divide(misses[1:], misses[:-1]), 0.1, rtol=0.15)
    assert misses[-1] < 1e-3


# The conditionals: exact


@pytest.mark.item("MSL-10")
@pytest.mark.parametrize(("n", "d", "alpha"), [(5, 2, 1.0), (4, 1, 0.4), (4, 3, 2.5)])
def test_conditionals_are_ratios_of_the_joint_density(n, d, alpha):
    X, prior = table(n, d), whitened(d)
    sampling, logs = sampler(X, alpha, prior), {z: log_joint(X, z, prior, alpha) for z in all_partitions(n)}
    for z, log in logs.items():
        labels = np.array(z, np.int32)
        assert sampling.log_joint(labels) == pytest.approx(log, rel=1e-10)
        found = sampling.conditionals(labels, np.arange(n))
        for row in range(n):
            to = {}
            for c in range(max(z) + 2):
                to.setdefault(canonical((*z[:row], c, *z[row + 1 :])), []).append(found[row, c])
            total = logsumexp([logs[other] for other in to])
            for other, shares in to.items():
                assert sum(shares) == pytest.approx(np.exp(logs[other] - total), rel=1e-9)


@pytest.mark.item("MSL-10")
def test_a_new_cluster_has_the_weight_of_the_catalogue():
    X, alpha, prior = table(6, 2, seed=1), 1.5, whitened(2)
    z = np.array([0, 0, 0, 1, 1, 0], np.int32)
    found = sampler(X, alpha, prior).conditionals(z, np.array([5]))[0]
    densities = np.exp([log_predictive(prior, X[5], rows) for rows in (X[:3], X[3:5], X[:0])])
    odds = found / densities
    np.testing.assert_allclose(odds / odds.sum(), np.array([3, 2, alpha]) / (6 - 1 + alpha), rtol=1e-10)


@pytest.mark.item("MSL-10")
def test_a_sweep_leaves_the_posterior_as_it_is():
    """The transition matrix of a sweep, by its conditionals, over all partitions of four rows."""
    n, alpha, X, prior = 4, 0.8, table(4, 1, seed=2), whitened(1)
    partitions = all_partitions(n)
    number = {z: i for i, z in enumerate(partitions)}
    sampling, sweep = sampler(X, alpha, prior), np.eye(len(partitions))
    for row in range(n):
        site = np.zeros_like(sweep)
        for i, z in enumerate(partitions):
            for c, p in enumerate(sampling.conditionals(np.array(z, np.int32), np.array([row]))[0]):
                site[i, number[canonical((*z[:row], c, *z[row + 1 :]))]] += p
        sweep = sweep @ site
    logs = np.array([log_joint(X, z, prior, alpha) for z in partitions])
    exact = np.exp(logs - logsumexp(logs))
    np.testing.assert_allclose(exact @ sweep, exact, atol=1e-12)
    assert (np.linalg.matrix_power(sweep, 3) > 0).all(), "every partition is reached from every other"


# The sweeps: the kernel against its conditionals, and long runs


@pytest.mark.parametrize("seed", range(5))
def test_statistics_run_along_through_births_and_deaths(seed):
    from lemmata.mixture import gibbs_kernels as kernels

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 2)) * 4
    sampling = sampler(X, 3.0, whitened(2))
    z, births, deaths = np.zeros(80, np.int32), 0, 0
    statistics = sampling.statistics(z, 81)
    for _ in range(10):
        before = z.copy()
        assert kernels.process_sweep(X, z, rng.random(80), 0, sampling.kappa, sampling.nu, sampling.table, *statistics) == 80
        births, deaths = births + (z.max() > before.max()), deaths + (np.bincount(before).min() == 1)
        assert (np.bincount(z) > 0).all(), "clusters stand at the front"
        for running, anew in zip(statistics, sampling.statistics(z, 81), strict=True):
            np.testing.assert_allclose(np.tril(running), np.tril(anew), rtol=1e-10, atol=1e-10)
    assert births
    assert deaths


def test_a_sweep_that_runs_out_of_room_is_the_same_sweep(monkeypatch):
    from lemmata.mixture import gibbs_sampler

    X = table(40, 1, seed=3) * 20
    ends = []
    for room in (1, 41):
        monkeypatch.setattr(gibbs_sampler, "ROOM", room)
        sampling, z = sampler(X, 30.0, whitened(1)), np.zeros(40, np.int32)
        assert sampling.sweep(z, np.random.default_rng(0)) == pytest.approx(sampling.log_joint(z))
        ends.append(z.tolist())
    assert max(ends[0]) > 2, "more clusters than there was room for"
    assert ends[0] == ends[1]


def batch_error(series):
    """Standard error of the mean of chains (n_chains, n_draws, …) from means of 20 batches of each."""
    chains, draws = series.shape[:2]
    size = draws // 20
    batches = series[:, : 20 * size].reshape(chains * 20, size, *series.shape[2:]).mean(axis=1)
    return batches.std(axis=0, ddof=1) / np.sqrt(len(batches))


ROWS = np.array([[0.0, 1.0], [0.5, 0.2], [2.0, 2.2], [2.5, 1.4], [1.0, 1.2], [3.5, 0.0]])
PRIOR = NormalInverseWishart(np.array([1.0, 1.5]), 0.3, np.array([[0.8, 0.2], [0.2, 0.5]]), 4.0)
SETTINGS = {"mean_precision": 0.3, "covariance_prior": PRIOR.scale, "mean_prior": PRIOR.mean, "n_sweeps": 2100, "burn_in": 100}
ALPHA = 1.3


@pytest.fixture(scope="module")
def six_rows():
    model = DirichletProcessMixture(ALPHA, n_chains=4, random_state=1, **SETTINGS).fit(ROWS)
    partitions = all_partitions(6)
    logs = np.array([log_joint(ROWS, z, PRIOR, ALPHA) for z in partitions])
    return model, np.array(partitions), np.exp(logs - logsumexp(logs)), logs


def codes(assignments):
    return (np.asarray(assignments, dtype=np.int64) @ 6 ** np.arange(6)[::-1]).astype(int)


@pytest.mark.item("MSL-10")
def test_frequencies_are_those_of_the_exact_posterior(six_rows):
    model, partitions, exact, logs = six_rows
    np.testing.assert_allclose(log_joints(ROWS, partitions, PRIOR, Partitions(ALPHA)), logs, rtol=1e-9)
    drawn = codes(model.assignments_)
    assert set(np.unique(drawn)) <= set(codes(partitions)), "clusters are numbered by their first rows"
    for i in np.argsort(exact)[-12:]:
        hits = (drawn == codes(partitions[i])).astype(float)
        assert abs(hits.mean() - exact[i]) < ERRORS * batch_error(hits), partitions[i]
        assert batch_error(hits) < 0.02, "the comparison is sharp"
    together = partitions[:, :, None] == partitions[:, None, :]
    error = batch_error((model.assignments_[..., :, None] == model.assignments_[..., None, :]).astype(float))
    off = ~np.eye(6, dtype=bool)
    assert (np.abs(model.similarity() - np.einsum("s,sij->ij", exact, together))[off] < ERRORS * error[off]).all()
    assert abs(model.log_joint_[:, 100:].mean() - exact @ logs) < ERRORS * batch_error(model.log_joint_[:, 100:])


def test_the_number_of_clusters_has_its_exact_posterior(six_rows):
    model, partitions, exact, _ = six_rows
    numbers, probabilities = model.n_components_distribution()
    assert np.array_equal(model.n_components_, model.assignments_.max(axis=2) + 1)
    assert probabilities.sum() == pytest.approx(1.0)
    for k, share in zip(numbers, probabilities, strict=True):
        hits = (model.n_components_ == k).astype(float)
        assert hits.mean() == pytest.approx(share)
        assert abs(share - exact[partitions.max(axis=1) + 1 == k].sum()) < ERRORS * batch_error(hits)


@pytest.mark.item("MSL-10")
def test_the_finite_sampler_with_alpha_over_k_draws_what_the_process_draws(six_rows):
    """Sampled frequencies of both; with 200 components the exact laws differ by less than the Monte-Carlo error."""
    model, partitions, exact, _ = six_rows
    finite = GibbsMixture(200, alpha=ALPHA / 200, n_chains=4, random_state=2, **SETTINGS | {"n_sweeps": 2100}).fit(ROWS)
    drawn = np.array([[codes(canonical(z)) for z in chain] for chain in finite.assignments_.tolist()])
    ours = codes(model.assignments_)
    for i in np.argsort(exact)[-8:]:
        one, other = ((found == codes(partitions[i])).astype(float) for found in (drawn, ours))
        error = np.hypot(batch_error(one), batch_error(other))
        assert error < 0.02, "the comparison is sharp"
        assert abs(one.mean() - other.mean()) < ERRORS * error + 1e-3, partitions[i]  # 1e-3: the laws themselves


def test_the_prior_is_drawn_where_rows_say_nothing():
    """Rows all alike under a prior that is nearly certain of the density leave the law of partitions as it is."""
    X = np.zeros((5, 1))
    sure = {"mean_prior": [0.0], "mean_precision": 1e9, "degrees_of_freedom": 1e9, "covariance_prior": [[1e9]]}
    model = DirichletProcessMixture(2.0, n_sweeps=2100, burn_in=100, n_chains=4, random_state=0, **sure).fit(X)
    for k in range(1, 6):
        mass = sum(np.exp(log_seating(z, 2.0)) for z in all_partitions(5) if max(z) + 1 == k)
        hits = (model.n_components_ == k).astype(float)
        assert abs(hits.mean() - mass) < ERRORS * batch_error(hits) + 1e-6


@pytest.mark.parametrize("proposals", [0, 10])
def test_sweeps_with_and_without_parted_clusters_have_the_same_limit(monkeypatch, proposals):
    from lemmata.mixture import gibbs_sampler

    monkeypatch.setattr(gibbs_sampler, "PROPOSALS", proposals)
    X, prior = table(5, 1, seed=6), whitened(1)
    partitions = all_partitions(5)
    logs = np.array([log_joint(X, z, prior, 2.0) for z in partitions])
    exact = np.exp(logs - logsumexp(logs))
    sampling, series = sampler(X, 2.0, prior), np.empty((4, 2000), int)
    for chain, rng in enumerate(np.random.default_rng(3).spawn(4)):
        z = np.zeros(5, np.int32)
        for t in range(series.shape[1]):
            sampling.sweep(z, rng)
            series[chain, t] = partitions.index(tuple(z.tolist()))
    for i in np.argsort(exact)[-10:]:
        hits = (series == i).astype(float)
        assert batch_error(hits) < 0.02, "the comparison is sharp"
        assert abs(hits.mean() - exact[i]) < ERRORS * batch_error(hits), partitions[i]


def test_parted_clusters_alone_leave_the_posterior_as_it_is():
    """No sweep at all: proposals between partitions of four rows, each from a start that has the exact law."""
    from lemmata.mixture import gibbs_kernels as kernels

    n, times, rng = 4, 60_000, np.random.default_rng(5)
    X, prior, partitions = table(n, 1, seed=7), whitened(1), np.array(all_partitions(n))
    logs = np.array([log_joint(X, z, prior, 1.5) for z in partitions])
    exact = np.exp(logs - logsumexp(logs))
    sampling = sampler(X, 1.5, prior)
    starts, ends = rng.choice(len(exact), times, p=exact), np.zeros((len(exact), len(exact)))
    number, names = {tuple(z): i for i, z in enumerate(partitions.tolist())}, np.empty(n + 1, np.int32)
    for start in starts:
        z, (i, j) = partitions[start].astype(np.int32), rng.choice(n, 2, replace=False)
        kernels.split_or_merge(
            X, z, i, j, rng.permutation(n), rng.random(n + 1), sampling.kappa, sampling.nu, sampling.table, sampling.joint
        )
        kernels.renumber(z, names)
        ends[start, number[tuple(z.tolist())]] += 1
    shares = ends.sum(axis=0) / times
    assert (np.abs(shares - exact) < ERRORS * np.sqrt(exact * (1 - exact) / times)).all()
    moved = ~np.eye(len(exact), dtype=bool)
    assert ends[moved].sum() > 0.1 * times
    # as often there as back: each pair of counts differs by no more than their noise
    assert (np.abs(ends - ends.T) <= ERRORS * np.sqrt(ends + ends.T + 1)).all()


# What is made of the draws


def test_the_predictive_density_averages_clusters_and_a_new_one(six_rows):
    model, partitions, exact, _ = six_rows
    new = np.array([[1.0, 1.0], [4.0, -1.0], [-3.0, 0.0]])
    each = np.zeros((len(partitions), len(new)))
    for i, z in enumerate(partitions):
        for c in range(max(z) + 2):
            rows = ROWS[z == c]
            each[i] += (len(rows) or ALPHA) / (6 + ALPHA) * np.exp([log_predictive(PRIOR, x, rows) for x in new])
    place = {code: i for i, code in enumerate(codes(partitions))}
    drawn = np.vectorize(place.get)(codes(model.assignments_))
    np.testing.assert_allclose(model.score_samples(new), np.log(each[drawn].mean(axis=(0, 1))), rtol=1e-9)
    assert (np.abs(np.exp(model.score_samples(new)) - exact @ each) < ERRORS * batch_error(each[drawn])).all()


def test_what_is_shown_is_the_best_draw_and_what_is_not_seen_yet(six_rows):
    model, *_ = six_rows
    z = model.assignments_[tuple(model.best_draw_)]
    k = z.max() + 1
    assert np.array_equal(model.labels_, z)
    assert log_joint(ROWS, z, PRIOR, ALPHA) == pytest.approx(model.log_joint_[:, 100:].max(), rel=1e-10)
    np.testing.assert_allclose(model.weights_, np.append(np.bincount(z), ALPHA) / (6 + ALPHA))
    np.testing.assert_allclose(model.means_[k], PRIOR.mean)
    np.testing.assert_allclose(model.covariances_[k], PRIOR.scale)  # over ν − d − 1 = 1
    new = np.array([[1.0, 1.0], [40.0, -10.0]])
    logs = np.array(
        [[np.log((z == c).sum() or ALPHA) + log_predictive(PRIOR, x, ROWS[z == c]) for c in range(k + 1)] for x in new]
    )
    np.testing.assert_allclose(model.predict_proba(new), np.exp(logs - logsumexp(logs, axis=1, keepdims=True)), rtol=1e-9)
    assert model.predict(new)[1] == k, "far away lies nothing that was seen"


def test_next_rows_that_are_new_share_no_cluster():
    X = np.array([[0.0], [0.4], [1.0], [5.0], [5.5]])
    model = DirichletProcessMixture(n_sweeps=20, random_state=0).fit(X)
    new, expected = np.array([[0.2], [5.1], [90.0], [90.0]]), np.zeros((4, 4))
    prior = NormalInverseWishart(model.mean_prior_, 0.01, model.covariance_prior_, model.degrees_of_freedom_)
    for z in model.assignments_.reshape(-1, 5):
        logs = np.array(
            [[np.log((z == c).sum() or 1.0) + log_predictive(prior, x, X[z == c]) for c in range(z.max() + 2)] for x in new]
        )
        p = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))[:, :-1]
        expected += p @ p.T / 20
    np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(model.similarity(new), expected, rtol=1e-9)


def test_next_rows_have_the_predictive_distribution():
    X = np.array([[0.0], [0.4], [1.0], [5.0], [5.5]])
    model = DirichletProcessMixture(n_sweeps=60, random_state=0).fit(X)
    drawn, components = model.sample(5000)

    def distribution(x):
        total, draws = np.zeros_like(x), model.assignments_.reshape(-1, 5)
        prior = NormalInverseWishart(model.mean_prior_, 0.01, model.covariance_prior_, model.degrees_of_freedom_)
        for z in draws:
            for c in range(z.max() + 2):
                m, kappa, s, df = (np.squeeze(part) for part in prior.after(*moments(X[z == c])))
                share = ((z == c).sum() or 1.0) / 6.0
                total += share * student_t.cdf((x - m) / np.sqrt(s * (kappa + 1) / (kappa * df)), df) / len(draws)
        return total

    assert kstest(drawn[:, 0], distribution).pvalue > LEVEL
    assert components.max() <= model.n_components_.max()


# The estimator


@pytest.mark.parametrize("seed", range(3))
def test_separated_groups_are_found_without_being_told_how_many(seed):
    rng = np.random.default_rng(seed)
    truth = np.arange(150) % 3
    X = np.array([[0.0, 0.0], [12.0, 0.0], [0.0, 12.0]])[truth] + rng.normal(size=(150, 2))
    known = {"degrees_of_freedom": 14, "covariance_prior": 11 * np.eye(2)}  # the size of a cluster, to a few rows
    model = DirichletProcessMixture(0.3, **known, random_state=seed).fit(X)
    numbers, probabilities = model.n_components_distribution()
    assert numbers[probabilities.argmax()] == 3
    assert np.array_equal(model.labels_, truth)
    assert model.certify(X).holds


def test_certificate_compares_with_all_partitions(six_rows):
    model, *_ = six_rows
    certificate = model.certify(ROWS)
    assert certificate.holds, str(certificate)
    assert certificate["all labelings"].limit == ERRORS
    assert certificate["conditionals"].value < 1e-10
    nine = DirichletProcessMixture(n_sweeps=60, random_state=0).fit(table(9, 1, seed=4)).certify(table(9, 1, seed=4))
    assert "all labelings" in [check.name for check in nine]
    eleven = DirichletProcessMixture(n_sweeps=60, random_state=0).fit(table(11, 1, seed=4)).certify(table(11, 1, seed=4))
    assert "all labelings" not in [check.name for check in eleven]


def test_partitions_that_are_numbered_otherwise_are_refused():
    from copy import deepcopy

    model = DirichletProcessMixture(ALPHA, random_state=0, n_sweeps=100).fit(ROWS)
    assert model.certify(ROWS).holds
    twin = deepcopy(model)
    swapped = twin.assignments_ == twin.assignments_.max()
    twin.assignments_ = np.where(swapped, twin.assignments_ + 1, twin.assignments_)
    assert not twin.certify(ROWS).holds
    twin = deepcopy(model)
    twin.n_components_[0, 0] += 1
    assert [check.name for check in twin.certify(ROWS).failed] == ["clusters"]
    twin = deepcopy(model)
    twin.alpha = 2 * ALPHA
    assert not twin.certify(ROWS).holds


def test_a_sampler_of_another_law_is_refused(monkeypatch, six_rows):
    model, *_ = six_rows
    monkeypatch.setattr(DirichletProcessMixture, "_sampler", lambda self, blocks, prior: ProcessSampler(
        gibbs_mixture.whitened(blocks, prior), 2, 3.0, prior.mean_precision, prior.degrees_of_freedom))  # fmt: skip
    assert "conditionals" in [check.name for check in model.certify(ROWS).failed]


def test_units_and_origin_do_not_matter():
    X, units = table(40, 3, seed=6), np.array([1e-3, 1.0, 1e4])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gibbs_mixture, "MOST_RHAT", np.inf)
        one = DirichletProcessMixture(n_sweeps=60, random_state=2).fit(X)
        other = DirichletProcessMixture(n_sweeps=60, random_state=2).fit(X * units + np.array([5.0, 0, -7e4]))
    assert np.array_equal(one.assignments_, other.assignments_)
    np.testing.assert_allclose(other.log_joint_ + 40 * np.log(units).sum(), one.log_joint_, rtol=1e-9)


def test_chains_on_threads_are_the_same_bits(monkeypatch):
    monkeypatch.setattr(gibbs_mixture, "WORTH_THREADS", 0)
    monkeypatch.setattr(gibbs_mixture, "MOST_RHAT", np.inf)
    X = np.concatenate([table(60, 2, seed=7), table(60, 2, seed=8) + 9])
    fits = []
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads):
            fits.append(DirichletProcessMixture(n_sweeps=120, n_chains=3, random_state=0).fit(X))
    assert np.array_equal(fits[0].assignments_, fits[1].assignments_)
    assert fits[0].log_joint_.tobytes() == fits[1].log_joint_.tobytes()


def test_single_rows_and_equal_rows():
    one = DirichletProcessMixture(n_sweeps=20, random_state=0).fit([[3.0, 4.0]])
    assert one.n_components_.max() == 1
    np.testing.assert_allclose(one.weights_, [0.5, 0.5])
    same = DirichletProcessMixture(n_sweeps=200, random_state=0).fit(np.ones((8, 2)))
    assert same.certify(np.ones((8, 2))).holds
    assert pair_share(same.labels_) == 1.0
