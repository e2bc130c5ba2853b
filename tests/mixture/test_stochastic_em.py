"""Stochastic EM: against EM itself, NumPy's covariances of labeled rows, and a slow twin of the running form."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.blocks import Blocks
from lemmata.mixture import GaussianMixture, StochasticEM
from lemmata.mixture import gibbs_kernels as kernels
from lemmata.mixture.gaussian import GaussianModel, Table, as_matrices, components_of, of_kind
from lemmata.mixture.gaussian_kernels import KINDS, posterior_block
from lemmata.mixture.stochastic_em import draw_shares, reseed, statistics

kinds = pytest.mark.parametrize("kind", list(KINDS))


def groups(seed=0, n=300, distance=9.0):
    rng = np.random.default_rng(seed)
    centers = distance * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return centers[np.arange(n) % 3] + rng.normal(size=(n, 2)) * [1.0, 0.5] + 20.0


def overlapping(kind, n=400, seed=1):
    """Rows, a model, and parameters at which every row could be of every component."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * 1.5 + rng.choice([0.0, 2.0], size=(n, 1))
    model = GaussianModel(kind, 1e-6, Table(Blocks.of(X, None)))
    weights = np.array([0.3, 0.5, 0.2])
    matrices = np.array([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 3.0]], [[1.5, -0.3], [-0.3, 1.5]]])
    means = np.array([[0.0, 0.0], [2.0, 1.0], [1.0, 3.0]])
    return X, model, (weights, means, of_kind(matrices, weights, kind))


def of_labels(X, z, k, kind, floor):
    """Weights, means and covariances of labeled rows, by NumPy."""
    weights = np.bincount(z, minlength=k) / len(z)
    means = np.array([X[z == c].mean(axis=0) for c in range(k)])
    matrices = np.array([np.cov(X[z == c].T, bias=True).reshape(X.shape[1], -1) for c in range(k)])
    return weights, means, of_kind(matrices + floor * np.eye(X.shape[1]), weights, kind)


@pytest.mark.item("CLU-18")
@kinds
def test_one_draw_gives_the_parameters_of_labeled_rows(kind):
    X, model, parameters = overlapping(kind)
    rng = np.random.default_rng(2)
    posterior = posterior_block(X, None, components_of(*parameters, kind, model.table.mean))[0]
    shares = draw_shares(posterior, 1, rng)
    assert set(np.unique(shares)) == {0.0, 1.0}
    found = model.m_step(statistics(X, shares, parameters[1], kind), parameters)
    for one, other in zip(found, of_labels(X, shares.argmax(axis=1), 3, kind, 1e-6), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.item("CLU-18")
@kinds
def test_many_draws_approach_em(kind):
    """The error of the update is 1/√L of that of one draw: a hundred times the draws, a tenth of it."""
    X, model, parameters = overlapping(kind)
    prepared = components_of(*parameters, kind, model.table.mean)
    posterior = posterior_block(X, None, prepared)[0]
    exact = np.concatenate([np.ravel(p) for p in model.m_step(model.e_step(X, None, prepared), parameters)])
    rng, errors = np.random.default_rng(3), {}
    for n_draws in (100, 10_000, 1_000_000):
        squares = []
        for _ in range(20):
            shares = draw_shares(posterior, n_draws, rng)
            np.testing.assert_allclose(shares.sum(axis=1), 1.0)
            after = model.m_step(statistics(X, shares, parameters[1], kind), parameters)
            squares.append((np.concatenate([np.ravel(p) for p in after]) - exact) ** 2)
        errors[n_draws] = np.sqrt(np.mean(squares))
    assert errors[100] / errors[10_000] == pytest.approx(10.0, rel=0.3)
    assert errors[10_000] / errors[1_000_000] == pytest.approx(10.0, rel=0.3)
    assert errors[1_000_000] < 1e-3


@pytest.mark.item("CLU-18")
@kinds
@pytest.mark.parametrize("settings", [{}, {"n_draws": 20}, {"running": True}], ids=["plain", "draws", "running"])
def test_on_separated_groups_the_estimate_is_that_of_em(kind, settings):
    X = groups(distance=6.0)
    em = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    model = StochasticEM(3, covariance_type=kind, random_state=1, **settings).fit(X)
    assert model.reseeded_ == 0
    assert model.n_iter_ == 200
    one, other = em.means_[:, 0].argsort(), model.means_[:, 0].argsort()
    if abs(em.means_[one[0], 1] - model.means_[other[0], 1]) > 3:  # two groups share their first coordinate
        other[:2] = other[1::-1]
    error = model.chain_means_.std(axis=0)[other]  # of single sweeps: far more than that of the mean, and of the bias
    assert (np.abs(em.means_[one] - model.means_[other]) < np.maximum(error, 0.01)).all()
    assert np.abs(em.weights_[one] - model.weights_[other]).max() < 0.01
    np.testing.assert_allclose(
        as_matrices(model.covariances_, kind, 3, 2)[other], as_matrices(em.covariances_, kind, 3, 2)[one], atol=0.05
    )
    assert model.lower_bound_ == pytest.approx(em.lower_bound_, abs=0.005)
    certificate = model.certify(X)
    assert certificate.holds, str(certificate)
    assert np.array_equal(np.unique(model.predict(X)), [0, 1, 2])
    assert np.array_equal(model.fit_predict(X), model.predict(X))


def test_a_step_of_em_moves_the_mean_of_the_chain_by_little_and_a_wrong_one_by_much():
    X = groups(distance=3.0, n=600)
    model = StochasticEM(3, random_state=0, n_sweeps=400).fit(X)
    assert model.certify(X)["EM step"].value < 0.5  # the bias is of 1/n, the wander of 1/√n
    model.chain_means_, model.means_ = model.chain_means_ + 0.5, model.means_ + 0.5
    certificate = model.certify(X)
    assert certificate["averages"].holds
    assert certificate["EM step"].value > 2
    assert not certificate["log-likelihood"].holds


def test_parameters_are_the_means_over_the_sweeps_kept():
    model = StochasticEM(3, n_sweeps=30, burn_in=12, random_state=0).fit(groups(distance=4.0))
    assert model.chain_weights_.shape == (18, 3)
    assert model.chain_covariances_.shape == (18, 3, 2, 2)
    assert (model.chain_weights_.std(axis=0) > 0).any()
    np.testing.assert_allclose(model.weights_, model.chain_weights_.mean(axis=0))
    np.testing.assert_allclose(model.means_, model.chain_means_.mean(axis=0))
    np.testing.assert_allclose(model.covariances_, model.chain_covariances_.mean(axis=0))
    assert model.lower_bound_ == pytest.approx(model.score(groups(distance=4.0)))


# The guard


@pytest.mark.item("CLU-18")
def test_without_a_guard_an_empty_component_never_returns():
    X, model, (_, means, covariances) = overlapping("full")
    parameters = np.array([0.5, 0.5, 0.0]), means, covariances
    rng = np.random.default_rng(4)
    for _ in range(20):
        posterior = posterior_block(X, None, components_of(*parameters, "full", model.table.mean))[0]
        shares = draw_shares(posterior, 1, rng)
        parameters = model.m_step(statistics(X, shares, parameters[1], "full"), parameters)
        assert parameters[0][2] == 0
    assert reseed(shares, X, 3, 6, rng) == 1
    assert shares[:, 2].sum() == 6
    np.testing.assert_array_equal(shares.sum(axis=1), 1.0)
    seeded = X[shares[:, 2] == 1]
    others = X[shares[:, 2] == 0]
    reach = np.linalg.norm(seeded[:, None] - seeded, axis=2).max(axis=1).min()  # from the row that was drawn
    center = seeded[np.linalg.norm(seeded[:, None] - seeded, axis=2).max(axis=1).argmin()]
    assert (np.linalg.norm(others - center, axis=1) < reach).sum() <= 6


@pytest.mark.item("CLU-18")
@pytest.mark.parametrize("running", [False, True])
def test_components_that_run_out_of_rows_are_seeded_anew(running):
    X = np.random.default_rng(5).normal(size=(40, 1))  # one group for six components
    model = StochasticEM(6, running=running, random_state=0, n_sweeps=300).fit(X)
    assert model.reseeded_ > 0
    assert (model.chain_weights_ * 40 >= 2 - 1e-9).all()  # a variance needs two rows
    assert (model.weights_ > 0).all()
    assert model.certify(X).holds


def test_rows_that_are_there_are_left_alone():
    shares = np.eye(2)[[0, 1, 0, 1]]
    assert reseed(shares, np.arange(4.0)[:, None], 2, 2, np.random.default_rng(0)) == 0
    assert shares.tolist() == np.eye(2)[[0, 1, 0, 1]].tolist()


# Running counts


@pytest.mark.item("CLU-19")
@kinds
def test_running_sums_are_exactly_the_sums_after_any_sweep(kind):
    rng = np.random.default_rng(6)
    X = rng.integers(-20, 20, size=(200, 3)).astype(float)
    z = rng.integers(3, size=200).astype(np.int32)
    for _ in range(10):
        before = z.copy()
        counts, sums, products = np.zeros(3, np.int64), np.zeros((3, 3)), np.zeros((3, 3, 3))
        kernels.running_sweep(X, z, rng.random(200), KINDS[kind], 1e-6, counts, sums, products)
        assert (z != before).any()
        exact = np.zeros((3, 3))
        np.add.at(exact, z, X)
        assert np.array_equal(counts, np.bincount(z, minlength=3))
        assert np.array_equal(sums, exact)
        for c in range(3):
            away = X[z == c] - X[z == c].mean(axis=0) if counts[c] else np.zeros((1, 3))
            np.testing.assert_allclose(np.tril(products[c]), np.tril(away.T @ away), rtol=1e-9, atol=1e-8)


@pytest.mark.item("CLU-19")
@kinds
def test_the_running_form_is_that_of_parameters_recomputed_after_every_row(kind):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 2)) * 1.5 + rng.choice([0.0, 2.0], size=(60, 1))
    z = rng.integers(3, size=60)
    uniforms, ours = rng.random(60), z.astype(np.int32)
    kernels.running_sweep(X, ours, uniforms, KINDS[kind], 0.1, np.zeros(3, np.int64), np.zeros((3, 2)), np.zeros((3, 2, 2)))
    start = z.copy()
    for i, u in enumerate(uniforms):
        weights, means, covariances = of_labels(X, z, 3, kind, 0.1)
        matrices = as_matrices(covariances, kind, 3, 2)
        odds = [w * multivariate_normal.pdf(X[i], m, S) for w, m, S in zip(weights, means, matrices, strict=True)]
        z[i] = np.searchsorted(np.cumsum(odds), u * sum(odds), side="right")
    assert (z != start).sum() > 20
    assert np.array_equal(ours, z)


@pytest.mark.item("CLU-19")
def test_a_row_that_moves_changes_the_means_of_two_components_each_by_its_own():
    """The printed update has one mean without a component's index: it would be the mean of all rows, which never moves."""
    X = np.array([[0.0], [1.0], [5.0], [6.0], [9.0]])
    labels, counts, sums = np.array([0, 0, 1, 1, 2], np.int32), np.zeros(3, np.int64), np.zeros((3, 1))
    products = np.zeros((3, 1, 1))
    kernels.scatters(X, labels, counts, sums, products)
    before = sums[:, 0] / counts
    kernels.shift(X[2], 1, -1, counts, sums, products)
    kernels.shift(X[2], 0, 1, counts, sums, products)
    after = sums[:, 0] / counts
    assert before.tolist() == [0.5, 5.5, 9.0]
    assert after.tolist() == [2.0, 6.0, 9.0]
    assert (counts / 5).tolist() == [3 / 5, 1 / 5, 1 / 5]
    without_index = sums.sum() / counts.sum()
    assert without_index == X.mean()
    assert not np.isin(without_index, after)
    np.testing.assert_allclose(products[:, 0, 0], [14.0, 0.0, 0.0], atol=1e-12)


# The estimator


def test_interrupted_sweeps_keep_what_was_drawn():
    class Interrupt:
        count = 0

        def setup(self, estimator, context): ...

        def teardown(self, estimator, context): ...

        def on_fit_task_begin(self, estimator, context):
            self.count += context.task_name == "iteration"
            if self.count == 16:
                raise KeyboardInterrupt

        def on_fit_task_end(self, estimator, context):
            return False

    X = groups(distance=4.0)
    whole = StochasticEM(3, n_sweeps=60, burn_in=5, random_state=0).fit(X)
    model = StochasticEM(3, n_sweeps=60, burn_in=5, random_state=0).set_callbacks(Interrupt())
    with pytest.warns(ConvergenceWarning, match="interrupted after 15"):
        model.fit(X)
    np.testing.assert_array_equal(model.chain_means_, whole.chain_means_[:10])
    assert not model.converged_
    assert model.certify(X).holds


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"running": True, "n_draws": 2}, "n_draws=2 draws of it cannot"),
        ({"burn_in": 200}, "leaves nothing of n_sweeps=200"),
        ({"n_components": 301}, "n_samples=300 should be >= n_components=301"),
        ({"reg_covar": 0.0}, "reg_covar"),
        ({"n_draws": 0}, "n_draws"),
    ],
)
def test_nonsense_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        StochasticEM(**settings).fit(groups())


def test_holes_and_weights_are_not_taken():
    X = groups()
    with pytest.raises(TypeError, match="sample_weight"):
        StochasticEM().fit(X, sample_weight=np.ones(len(X)))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        StochasticEM().fit(X)


def test_precisions_and_criteria_are_those_of_a_gaussian_mixture():
    X = groups()
    model = StochasticEM(3, random_state=0, n_sweeps=40).fit(X)
    np.testing.assert_allclose(model.precisions_ @ model.covariances_, np.tile(np.eye(2), (3, 1, 1)), atol=1e-9)
    em = GaussianMixture(3, random_state=0).fit(X)
    assert model.bic(X) == pytest.approx(em.bic(X), rel=1e-3)
    rows, components = model.sample(50)
    assert rows.shape == (50, 2)
    assert len(components) == 50
