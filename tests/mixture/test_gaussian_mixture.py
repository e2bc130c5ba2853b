"""The Gaussian mixture: against scikit-learn from the same start, SciPy's densities, and the numbers of the catalogue."""

import numpy as np
import pytest
import sklearn.mixture as peer
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm
from sklearn.exceptions import ConvergenceWarning

import lemmata
from lemmata.mixture import GaussianMixture
from lemmata.mixture.gaussian import as_matrices

KINDS = ["full", "tied", "diag", "spherical"]
kinds = pytest.mark.parametrize("kind", KINDS)


def blobs(seed=0, n=400, d=3, k=4, offset=20.0):
    rng = np.random.default_rng(seed)
    return 2 * rng.normal(size=(k, d))[rng.integers(k, size=n)] + rng.normal(size=(n, d)) * np.linspace(0.5, 1.5, d) + offset


def start(X, kind, k=4):
    d = X.shape[1]
    shapes = {"full": np.array([np.eye(d)] * k), "tied": np.eye(d), "diag": np.ones((k, d)), "spherical": np.ones(k)}
    weights = np.arange(1.0, k + 1)
    return {"weights_init": weights / weights.sum(), "means_init": X[:k], "precisions_init": shapes[kind] * 0.8}


def both(X, kind, k=4, **options):
    settings = {"n_components": k, "covariance_type": kind, **start(X, kind, k), **options}
    with pytest.warns(ConvergenceWarning):
        theirs = peer.GaussianMixture(**settings).fit(X)
    with pytest.warns(ConvergenceWarning):
        ours = GaussianMixture(**settings, acceleration=None).fit(X)
    return ours, theirs


@pytest.mark.item("CLU-11", "CLU-12", "CLU-13")
@kinds
@pytest.mark.parametrize(("d", "max_iter"), [(1, 25), (3, 25), (7, 8)])
def test_iterates_are_those_of_scikit_learn(kind, d, max_iter):
    X = blobs(d=d, n=700)
    ours, theirs = both(X, kind, tol=0.0, max_iter=max_iter)
    np.testing.assert_allclose(ours.trace_, theirs.lower_bounds_, rtol=1e-9)
    assert ours.n_iter_ == theirs.n_iter_
    for name in ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=1e-8, err_msg=name)
    assert (np.diff(ours.trace_) > 0).all()
    for name in ("bic", "aic", "score"):
        assert getattr(ours, name)(X) == pytest.approx(getattr(theirs, name)(X), rel=1e-9)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-7)
    np.testing.assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-7)


@kinds
def test_the_same_tolerance_stops_at_the_same_iteration(kind):
    X = blobs(seed=1)
    settings = {"n_components": 4, "covariance_type": kind, **start(X, kind), "tol": 1e-4, "max_iter": 1000}
    assert GaussianMixture(**settings, acceleration=None).fit(X).n_iter_ == peer.GaussianMixture(**settings).fit(X).n_iter_


@kinds
def test_a_fit_is_certified_leaping_or_not(kind):
    X = blobs(seed=1)
    plain = GaussianMixture(3, covariance_type=kind, random_state=0, acceleration=None, max_iter=20_000).fit(X)
    fast = GaussianMixture(3, covariance_type=kind, random_state=0, max_iter=20_000).fit(X)
    assert plain.certify(X).holds, str(plain.certify(X))
    assert fast.certify(X).holds, str(fast.certify(X))
    assert fast.certify(X).kind == "local"
    assert fast.lower_bound_ == pytest.approx(plain.lower_bound_, abs=1e-6)
    assert fast.n_iter_ <= plain.n_iter_
    assert (np.diff(fast.trace_) >= -1e-12).all()


@kinds
def test_one_percent_of_any_array_is_refused(kind):
    from lemmata.core.certificate import free

    X = blobs(seed=2)
    model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    rng = np.random.default_rng(0)
    for name in ("weights_", "means_", "covariances_", "lower_bound_"):
        kept = getattr(model, name)
        setattr(model, name, free(np.atleast_1d(kept), rng).reshape(np.shape(kept))[()])
        assert not model.certify(X).holds, name
        setattr(model, name, kept)
    # Moves that keep every constraint are refused by the step that they provoke.
    model.weights_ = model.weights_ * np.array([1.02, 1.0, 1.0]) / (model.weights_ @ np.array([1.02, 1.0, 1.0]))
    assert [check.name for check in model.certify(X).failed][:1] == ["weights"]


def test_scikit_learns_tolerance_would_not_be_certified():
    X = blobs(seed=0, n=1000, offset=0.0)
    model = GaussianMixture(4, random_state=0, acceleration=None, tol=1e-3).fit(X)
    assert model.converged_
    assert not model.certify(X).holds


@kinds
def test_densities_and_posteriors_are_those_of_scipy(kind):
    X = blobs(n=600)  # two tiles and a piece
    model = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-4).fit(X)
    matrices = as_matrices(model.covariances_, kind, 3, 3)
    joint = np.column_stack(
        [w * multivariate_normal(m, c).pdf(X) for w, m, c in zip(model.weights_, model.means_, matrices, strict=True)]
    )
    np.testing.assert_allclose(model.score_samples(X), np.log(joint.sum(axis=1)), rtol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True), atol=1e-12)
    inverses = np.linalg.inv(model.covariances_) if kind in ("full", "tied") else 1 / model.covariances_
    np.testing.assert_allclose(model.precisions_, inverses, rtol=1e-10, atol=1e-10)


@pytest.mark.item("CLU-11")
def test_the_four_numbers_of_the_catalogue():
    X = np.array([[0.0], [1.0], [4.0], [5.0]])
    given = {"weights_init": [0.5, 0.5], "means_init": [[0.0], [5.0]], "precisions_init": np.ones((2, 1, 1))}
    with pytest.warns(ConvergenceWarning):
        model = GaussianMixture(2, **given, reg_covar=0.0, max_iter=2, acceleration=None).fit(X)
    np.testing.assert_allclose(4 * model.trace_, [-7.447230, -5.675936], atol=5e-7)
    with pytest.warns(ConvergenceWarning):
        model = GaussianMixture(2, **given, reg_covar=0.0, max_iter=1, acceleration=None).fit(X)
    np.testing.assert_allclose(model.means_[:, 0], [0.500838, 4.499162], atol=5e-7)
    np.testing.assert_allclose(model.covariances_[:, 0, 0], 0.253353, atol=5e-7)
    np.testing.assert_allclose(model.weights_, 0.5, rtol=1e-15)
    responsibilities = norm.pdf(X, [0.0, 5.0]) / norm.pdf(X, [0.0, 5.0]).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(responsibilities[:, 0], [0.999996, 0.999447, 0.000553, 0.000004], atol=5e-7)
    model.means_, model.covariances_ = np.array([[0.0], [5.0]]), np.ones((2, 1, 1))
    np.testing.assert_allclose(model.predict_proba(X), responsibilities, atol=1e-14)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-14)


@pytest.mark.item("CLU-11")
def test_the_fit_is_stationary_by_the_right_derivative_and_not_by_the_printed_ones():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 3)) * np.repeat([1.0, 3.0], 150)[:, None] + np.repeat([0.0, 2.0], 150)[:, None]
    model = GaussianMixture(2, random_state=0, reg_covar=0.0, tol=1e-14).fit(X)
    r = model.predict_proba(X)
    np.testing.assert_allclose(model.weights_.sum(), 1.0, rtol=1e-14)
    for k in range(2):
        z, inverse = X - model.means_[k], np.linalg.inv(model.covariances_[k])
        outer = np.einsum("i,ij,il->jl", r[:, k], z, z)
        assert np.abs(inverse @ (r[:, k] @ z)).max() < 1e-4
        assert np.abs(-0.5 * r[:, k].sum() * inverse + 0.5 * inverse @ outer @ inverse).max() < 1e-4
        assert np.abs(outer).max() > 1.0  # erratum: the printed derivative is no zero there
    # Erratum: an E-step without |Σ|^{−1/2} gives other responsibilities.
    without = r * np.sqrt(np.linalg.det(model.covariances_))
    assert np.abs(without / without.sum(axis=1, keepdims=True) - r).max() > 1e-3


@pytest.mark.item("CLU-12")
def test_diagonal_equals_full_where_columns_are_independent_within_components():
    # Every corner of a box, so that weighted covariances are exactly diagonal; boxes so far apart that r is 0 or 1.
    box = np.array([[a, b] for a in (-1.0, 1.0) for b in (-2.0, 2.0)])
    X = np.vstack([box, box + 100.0])
    diag = GaussianMixture(2, covariance_type="diag", random_state=0).fit(X)
    full = GaussianMixture(2, covariance_type="full", random_state=0).fit(X)
    np.testing.assert_allclose(full.covariances_, as_matrices(diag.covariances_, "diag", 2, 2), atol=1e-12)
    np.testing.assert_allclose(full.lower_bound_, diag.lower_bound_, rtol=1e-12)
    assert diag.certify(X).holds


@pytest.mark.item("CLU-13")
def test_tied_covariance_is_the_mean_scatter_and_boundaries_are_linear():
    X = blobs(seed=4)
    model = GaussianMixture(3, covariance_type="tied", random_state=0, reg_covar=0.0, tol=1e-13).fit(X)
    assert (np.diff(model.trace_) >= -1e-12).all()
    r = model.predict_proba(X)
    within = sum(np.einsum("i,ij,il->jl", r[:, k], X - m, X - m) for k, m in enumerate(model.means_)) / len(X)
    np.testing.assert_allclose(model.covariances_, within, rtol=1e-4, atol=1e-4)
    away = model.means_ - X.mean(axis=0)
    between = np.einsum("k,ki,kj->ij", r.mean(axis=0), away, away)
    np.testing.assert_allclose(np.cov(X.T, bias=True), within + between, atol=1e-3)
    # The log-odds of two components are linear: second differences along any line vanish.
    line = X[0] + np.linspace(-1, 1, 9)[:, None] * np.array([0.3, -0.2, 0.1])
    odds = np.log(model.predict_proba(line)[:, 0]) - np.log(model.predict_proba(line)[:, 1])
    np.testing.assert_allclose(np.diff(odds, 2), 0.0, atol=1e-8)


@pytest.mark.item("CLU-14")
def test_two_components_in_one_dimension_by_the_formulas_of_the_notes():
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(0, 1, 60), rng.normal(4, 0.7, 40)])
    pi, mu, variance = 0.4, np.array([-0.5, 3.0]), np.array([1.0, 1.5])
    trace = []
    for _ in range(12):
        one, two = norm.pdf(x, mu[0], variance[0] ** 0.5), norm.pdf(x, mu[1], variance[1] ** 0.5)
        trace.append(np.log((1 - pi) * one + pi * two).mean())
        gamma = pi * two / (pi * two + (1 - pi) * one)
        mu = np.array([(1 - gamma) @ x / (1 - gamma).sum(), gamma @ x / gamma.sum()])
        variance = np.array([(1 - gamma) @ (x - mu[0]) ** 2 / (1 - gamma).sum(), gamma @ (x - mu[1]) ** 2 / gamma.sum()])
        pi = gamma.mean()
    given = {"weights_init": [0.6, 0.4], "means_init": [[-0.5], [3.0]], "precisions_init": [[[1.0]], [[1 / 1.5]]]}
    with pytest.warns(ConvergenceWarning):
        model = GaussianMixture(2, **given, max_iter=12, acceleration=None, reg_covar=0.0).fit(x[:, None])
    np.testing.assert_allclose(model.trace_, trace, rtol=1e-12)
    np.testing.assert_allclose(model.weights_[1], pi, rtol=1e-12)
    np.testing.assert_allclose(model.means_[:, 0], mu, rtol=1e-12)
    np.testing.assert_allclose(model.covariances_[:, 0, 0], variance, rtol=1e-12)
    # Erratum: what EM climbs to is a local maximum of the likelihood, not a minimum.
    model = GaussianMixture(2, **given, reg_covar=0.0, tol=1e-14).fit(x[:, None])
    top = model.score(x[:, None])
    for shift in (-0.05, 0.05):
        moved = GaussianMixture(2)
        vars(moved).update(vars(model), means_=model.means_ + np.array([[shift], [0.0]]))
        assert moved.score(x[:, None]) < top


@pytest.mark.item("CLU-15")
def test_without_a_floor_the_likelihood_has_no_bound_and_with_one_the_collapse_is_reported():
    x = np.array([0.0, 1.0, 2.0, 3.5, 7.0])
    values = [np.log(0.5 * norm.pdf(x, 7.0, s) + 0.5 * norm.pdf(x, 1.6, 1.3)).sum() for s in 10.0 ** -np.arange(1, 12, 2)]
    np.testing.assert_allclose(np.diff(values), np.log(100.0), rtol=1e-5)  # log 100 for each hundredth of σ, without end
    X = x[:, None]
    given = {"means_init": [[7.0], [1.6]], "weights_init": [0.2, 0.8]}
    fits = {}
    for floor in (1e-3, 1e-6):
        with pytest.warns(ConvergenceWarning, match=r"Components \[0\] have collapsed onto the floor"):
            fits[floor] = GaussianMixture(2, **given, precisions_init=[[[1.0]], [[0.6]]], reg_covar=floor).fit(X)
        assert fits[floor].covariances_[0, 0, 0] == pytest.approx(floor, rel=1e-9)
        bound = -0.5 * np.log(2 * np.pi * floor)  # no density exceeds that of a component at the floor
        assert fits[floor].score_samples(X).max() <= bound
        assert fits[floor].certify(X)["floor"].value == pytest.approx(1.0, rel=1e-6)
    assert 5 * (fits[1e-6].lower_bound_ - fits[1e-3].lower_bound_) == pytest.approx(0.5 * np.log(1e3), rel=1e-2)
    starts = {"full": [[[1.0]], [[0.6]]], "diag": [[1.0], [0.6]], "spherical": [1.0, 0.6]}
    for kind, precisions in starts.items():
        with pytest.raises(ValueError, match="raise reg_covar"):
            GaussianMixture(2, covariance_type=kind, **given, precisions_init=precisions, reg_covar=0.0).fit(X)


@kinds
@pytest.mark.filterwarnings("ignore:No column varies by as much as reg_covar")
def test_a_high_floor_may_lower_the_likelihood_by_no_more_than_it_explains_and_merges_components(kind):
    falls = []
    for seed in range(8):
        X = np.random.default_rng(seed).normal(size=(60, 2)) * np.array([1.0, 0.3])
        options = {"covariance_type": kind, "reg_covar": 1.0, "random_state": seed}
        plain = GaussianMixture(3, **options, init_params="random_from_data", acceleration=None).fit(X)
        falls.append(np.diff(plain.trace_).min())
        model = GaussianMixture(3, **options).fit(X)
        assert model.certify(X).holds, str(model.certify(X))
    assert min(falls) < -1e-6, "no likelihood fell, so the allowance was not tested"


def test_a_table_below_the_floor_is_said():
    with pytest.warns(ConvergenceWarning, match="No column varies by as much as reg_covar=1e-06"):
        GaussianMixture(2, random_state=0).fit(1e-5 * blobs(n=100, d=2))


@pytest.mark.parametrize("kind", ["full", "diag", "spherical"])
def test_components_that_coincide_on_a_saddle_are_refused(kind):
    # Two equal components stay equal for ever, although two different ones would be far more likely.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 2)) + 4.0 * rng.integers(0, 2, size=(300, 1))
    precisions = np.linalg.inv(np.cov(X.T))
    given = {"full": [precisions] * 2, "diag": [np.diag(precisions)] * 2, "spherical": [1.0, 1.0]}[kind]
    start = {"means_init": [X.mean(axis=0)] * 2, "weights_init": [0.5, 0.5], "precisions_init": given}
    model = GaussianMixture(2, covariance_type=kind, **start).fit(X)
    assert np.allclose(model.means_[0], model.means_[1])
    assert {check.name for check in model.certify(X).failed} == {"split", "gain"}  # seen by a nudge, and by the curvature
    assert GaussianMixture(2, covariance_type=kind, random_state=0).fit(X).lower_bound_ > model.lower_bound_ + 0.01


@pytest.mark.filterwarnings("ignore:Only 2 of 3 clusters have rows")
def test_components_that_coincide_on_equal_rows_are_no_saddle():
    X = np.array([[0.0, 0.0], [1.0, 1.0]] * 10)
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        model = GaussianMixture(3, random_state=0).fit(X)
    checks = {check.name: check for check in model.certify(X).checks}
    assert checks["split"].value < 1e-6
    assert model.certify(X).holds


def test_leaps_pay_where_components_overlap():
    # Half a standard deviation apart: EM alone would need more than ten thousand passes.
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(size=(1000, 1)), rng.normal(size=(1000, 1)) + 1.0]
    model = GaussianMixture(2, random_state=0, max_iter=3000).fit(X)
    assert model.converged_
    further = GaussianMixture(
        2, weights_init=model.weights_, means_init=model.means_, precisions_init=model.precisions_, tol=1e-13
    ).fit(X)
    assert len(X) * (further.lower_bound_ - model.lower_bound_) < 0.01
    assert np.abs(further.weights_ - model.weights_).max() < 0.01
    assert model.certify(X).holds
    # A fit that stops where EM only creeps is no maximum, though a step of EM leaves it nearly where it is.
    early = GaussianMixture(2, random_state=0, tol=1e-8, acceleration=None).fit(X)
    assert len(X) * (model.lower_bound_ - early.lower_bound_) > 0.1
    assert [check.name for check in early.certify(X).failed] == ["gain"]


@pytest.mark.parametrize("seed", range(5))
def test_components_that_coincide_in_one_dimension_are_refused(seed):
    # To first order nothing parts them: the variance of the table is theirs. A nudge of a size does.
    X = np.random.default_rng(seed).normal(size=(200, 1))
    X[:90] += 6.0
    variance = X.var()
    start = {"means_init": [X.mean(axis=0)] * 2, "weights_init": [0.5, 0.5], "precisions_init": [[[1 / variance]]] * 2}
    assert not GaussianMixture(2, **start).fit(X).certify(X).holds


def test_a_constant_column_is_no_collapse():
    X = np.column_stack([blobs(n=100, d=2), np.full(100, 3.0)])
    model = GaussianMixture(2, random_state=0).fit(X)  # a warning would be an error
    np.testing.assert_allclose(model.covariances_[:, 2, 2], 1e-6, rtol=1e-9)
    assert model.certify(X).holds


@pytest.mark.item("CLU-10")
def test_mixtures_come_as_close_to_a_density_as_wanted():
    # The uniform density, which is no Gaussian: the L1 error falls with the number of components.
    X = (np.arange(400)[:, None] + 0.5) / 400
    errors = []
    for k in (1, 2, 4, 8):
        centers = (np.arange(k)[:, None] + 0.5) / k
        given = {"means_init": centers, "weights_init": np.full(k, 1 / k), "precisions_init": np.full((k, 1), 4.0 * k * k)}
        model = GaussianMixture(k, covariance_type="diag", **given, tol=1e-7, max_iter=5000).fit(X)
        grid = np.linspace(-1, 2, 6001)
        density = np.exp(model.score_samples(grid[:, None]))
        errors.append(np.abs(density - ((grid >= 0) & (grid <= 1))).sum() * (grid[1] - grid[0]))
        assert quad(lambda t, m=model: np.exp(m.score_samples([[t]])[0]), -2, 3, limit=200)[0] == pytest.approx(1.0, abs=1e-6)
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < errors[0] / 3


@pytest.mark.item("CLU-21")
def test_labels_are_those_of_bayes_rule_and_known_labels_give_the_plug_in_classifier():
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 90])
    X = rng.normal(size=(150, 2)) * np.where(y, 0.5, 1.0)[:, None] + 60.0 * y[:, None]  # so far apart that r is the label
    # One M-step from responsibilities that are the labels: class shares, means, and covariances with divisor n_y.
    model = GaussianMixture(2, means_init=[[0.0, 0.0], [60.0, 60.0]], reg_covar=0.0).fit(X)
    np.testing.assert_allclose(model.weights_, [0.4, 0.6], rtol=1e-12)
    for k in (0, 1):
        np.testing.assert_allclose(model.means_[k], X[y == k].mean(axis=0), rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(model.covariances_[k], np.cov(X[y == k].T, bias=True), rtol=1e-10)
    where = rng.uniform(-10, 70, size=(500, 2))
    parameters = zip(model.weights_, model.means_, model.covariances_, strict=True)
    joint = np.column_stack([np.log(w) + multivariate_normal(m, c).logpdf(where) for w, m, c in parameters])
    assert np.array_equal(model.predict(where), joint.argmax(axis=1))
    assert np.array_equal(model.predict(where), model.predict_proba(where).argmax(axis=1))
    rule = QuadraticDiscriminantAnalysis().fit(X, y)  # divisor n_y − 1: nearly the same boundary
    assert (model.predict(where) == rule.predict(where)).mean() > 0.98
    assert np.array_equal(model.fit_predict(X), y)


@kinds
def test_weights_are_repetitions(kind):
    X = blobs(n=120)
    weight = np.random.default_rng(0).integers(0, 4, 120)
    one = GaussianMixture(2, covariance_type=kind, random_state=0).fit(X, sample_weight=weight)
    other = GaussianMixture(2, covariance_type=kind, random_state=0).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(one.means_, other.means_, rtol=1e-8)
    np.testing.assert_allclose(one.covariances_, other.covariances_, rtol=1e-6, atol=1e-9)
    assert one.bic(X, weight) == pytest.approx(other.bic(np.repeat(X, weight, axis=0)), rel=1e-12)
    assert one.certify(X, sample_weight=weight).holds


@kinds
def test_the_same_bits_for_any_number_of_threads(kind):
    X = blobs(n=500)
    bits = set()
    for n_threads in (1, 3):
        with lemmata.config(n_threads=n_threads, block_rows=64):
            model = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
        bits.add(model.means_.tobytes() + model.covariances_.tobytes() + model.weights_.tobytes())
    assert len(bits) == 1


@kinds
def test_an_offset_costs_nothing(kind):
    X = np.round(blobs(offset=0.0), 3)  # so that the offset loses no digits of the data
    near = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X)
    far = GaussianMixture(3, covariance_type=kind, random_state=0).fit(X + 2.0**20)
    np.testing.assert_allclose(far.covariances_, near.covariances_, rtol=1e-4, atol=1e-4)
    assert far.certify(X + 2.0**20).holds


@kinds
def test_float32_rows_are_summed_in_double(kind):
    X = blobs().astype(np.float32)
    single, double = (GaussianMixture(3, covariance_type=kind, random_state=0).fit(A) for A in (X, X.astype(float)))
    np.testing.assert_allclose(single.means_, double.means_, rtol=1e-6)
    assert single.predict_proba(X).dtype == single.score_samples(X).dtype == np.float32
    assert single.certify(X).holds


@kinds
def test_samples_have_the_moments_of_the_density(kind):
    X = blobs()
    model = GaussianMixture(3, covariance_type=kind, random_state=0, tol=1e-5).fit(X)
    rows, labels = model.sample(200_000)
    matrices = as_matrices(model.covariances_, kind, 3, 3)
    mean = model.weights_ @ model.means_
    away = model.means_ - mean
    covariance = np.einsum("k,kij->ij", model.weights_, matrices) + np.einsum("k,ki,kj->ij", model.weights_, away, away)
    np.testing.assert_allclose(rows.mean(axis=0), mean, atol=0.03)  # six standard errors
    np.testing.assert_allclose(np.cov(rows.T), covariance, atol=0.15)
    np.testing.assert_allclose(np.bincount(labels) / len(labels), model.weights_, atol=0.01)
    assert (np.diff(labels) >= 0).all()
    with pytest.raises(ValueError, match="at least 1"):
        model.sample(0)


@pytest.mark.parametrize("how", ["kmeans", "k-means++", "random_from_data"])
def test_every_start_leads_to_a_certified_fit(how):
    X = blobs(seed=5, k=2)
    weight = np.linspace(0.5, 2.0, len(X))
    model = GaussianMixture(2, init_params=how, n_init=2, random_state=0).fit(X, sample_weight=weight)
    assert model.certify(X, sample_weight=weight).holds


def test_bad_starts_are_refused_in_one_sentence():
    X = blobs(d=2)
    for options, message in (
        ({"weights_init": [0.5, 0.6]}, "sum to 1"),
        ({"weights_init": [1.0]}, "weights_init must hold finite numbers in the shape"),
        ({"means_init": [[0.0, np.nan], [1.0, 1.0]]}, "means_init must hold finite numbers"),
        ({"precisions_init": -np.array([np.eye(2)] * 2)}, "positive definite"),
        ({"precisions_init": np.array([[[2.0, 1.0], [0.0, 2.0]]] * 2)}, "symmetric"),
        ({"precisions_init": [[1.0, -1.0], [1.0, 1.0]], "covariance_type": "diag"}, "positive"),
    ):
        with pytest.raises(ValueError, match=message):
            GaussianMixture(2, **options).fit(X)
    with pytest.raises(ValueError, match=r"n_samples=3 should be >= n_components=5"):
        GaussianMixture(5).fit(X[:3])
    model = GaussianMixture(2, random_state=0).fit(X)
    model.covariances_ = model.covariances_[0]
    with pytest.raises(ValueError, match="not that of a fit"):
        model.predict(X)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of kernels that run as plain Python
def test_rows_beyond_all_numbers_belong_to_nobody():
    model = GaussianMixture(2, random_state=0).fit(blobs(d=2))
    assert np.isneginf(model.score_samples([[1e200, 1e200]])).all()
    assert not model.predict_proba([[1e200, 1e200]]).any()
