"""The variational autoencoder against probabilistic PCA, numerical integration, and its own law."""

from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from lemmata.core.blocks import Blocks
from lemmata.decomposition import ProbabilisticPCA
from lemmata.generative import GenerativeAdversarialNetwork, VariationalAutoencoder
from lemmata.generative.vae_law import mean_bounds
from lemmata.neural_network.layers import layer
from lemmata.optimize import inverse
from lemmata.optimize.rules import Adam
from lemmata.plot import GeneratedDisplay


def plane(n=400, d=5, seed=0):
    """Rows near a plane: what probabilistic PCA is for."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(2, d)) * [[2.0], [1.0]]
    return rng.normal(size=(n, 2)) @ loadings + 0.4 * rng.normal(size=(n, d)) + rng.normal(size=d)


def linear(X, **options):
    options = {"hidden_layer_sizes": (), "standardize": False, "tol": None, "random_state": 0, "max_iter": 1} | options
    return VariationalAutoencoder(2, **options).fit(X)


@pytest.fixture(scope="module")
def bits():
    """A fit of bits with one latent coordinate, whose density is an integral over a line."""
    X = (load_digits().data[:300, 18:24] > 7).astype(float)
    return X, VariationalAutoencoder(
        1, likelihood="bernoulli", hidden_layer_sizes=(16,), activation="tanh", tol=None, max_iter=200, random_state=0
    ).fit(X)


@pytest.fixture(scope="module")
def curve():
    """A fit of numbers with one latent coordinate."""
    t = np.random.default_rng(0).uniform(-2, 2, 300)
    X = np.column_stack([1e3 * t, 1e-3 * t**3]) + np.random.default_rng(1).normal(size=(300, 2)) * [100.0, 1e-4]
    return X, VariationalAutoencoder(1, hidden_layer_sizes=(16,), tol=None, max_iter=100, random_state=0).fit(X)


def with_true_posterior(model, X):
    """Put the decoder of probabilistic PCA into a linear model, and the exact posterior into its encoder."""
    ppca, model = ProbabilisticPCA(2).fit(X), deepcopy(model)
    scale, d = model.scale_[0], X.shape[1]
    W, variance = ppca.components_ / scale, ppca.noise_variance_ / scale**2
    inner = W @ W.T + variance * np.eye(2)  # diagonal, since the components are orthogonal
    law = model._law()
    (A, a), (V, b) = (
        layer(law.encoder, model.parameters_[: law.split], 0),
        layer(law.decoder, model.parameters_[law.split :], 0),
    )
    center = (ppca.mean_ - model.mean_) / scale
    V[:], b[:] = W, center
    A[:, :2], a[:2] = np.linalg.solve(inner, W).T, -np.linalg.solve(inner, W) @ center
    A[:, 2:], a[2:] = 0.0, np.log(variance / np.diag(inner))
    model.noise_variance_ = variance
    assert d == len(model.mean_)
    return ppca, model


@pytest.mark.item("NNG-08")
def test_the_bound_of_the_true_posterior_is_the_likelihood_of_probabilistic_pca():
    X = plane()
    ppca, model = with_true_posterior(linear(X), X)
    exact = multivariate_normal(ppca.mean_, ppca.get_covariance()).logpdf(X)
    certificate = model.certify(X)
    assert abs(certificate["below the law"].value) < 1e-9  # two closed forms
    assert abs(certificate["from the best"].value) < 1e-9  # no decoder is better than that of probabilistic PCA
    # q(z|x) is the posterior, so every weight p(x|z) p(z) / q(z|x) is p(x), with a single draw
    np.testing.assert_allclose(model.score_samples(X, n_samples=1), exact, rtol=1e-9)
    assert model.score(X) == pytest.approx(ppca.score(X), rel=1e-9)
    bound = model.elbo(X, n_samples=1000)
    errors = np.sqrt(X.shape[1] / 2 / 1000)  # log p(x|z) varies by ½ Σ of squared normals
    assert abs((bound - exact).mean()) < 6 * errors / np.sqrt(len(X))


@pytest.mark.item("NNG-08")
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_below_the_likelihood_for_any_other_encoder(seed):
    X = plane()
    _, model = with_true_posterior(linear(X), X)
    model.parameters_ = model.parameters_ + 0.03 * np.random.default_rng(seed).normal(size=len(model.parameters_))
    law, parameters = model._law(), model.parameters_
    V, b = layer(law.decoder, parameters[law.split :], 0)
    scaled = (X - model.mean_) / model.scale_
    exact = multivariate_normal(b, V.T @ V + model.noise_variance_ * np.eye(5)).logpdf(scaled) - np.log(model.scale_).sum()
    check = model.certify(X)["below the law"]
    assert check.holds
    assert check.value < -1e-3
    assert model.elbo(X).mean() < exact.mean()
    assert model.score(X, n_samples=2000) == pytest.approx(exact.mean(), abs=0.01)  # of two thousand draws of each row


@pytest.mark.item("NNG-10")
@pytest.mark.parametrize("gradient", ["reparametrized", "score"])
def test_without_hidden_layers_the_fit_is_probabilistic_pca(gradient):
    X = plane()
    steps = Adam(inverse(0.02, decay=0.01))  # shorter and shorter, so that the noise of the draws dies out
    model = linear(X, rule=steps, max_iter=400, gradient=gradient, n_draws=8, batch_size=100)
    ppca = ProbabilisticPCA(2).fit(X)
    certificate = model.certify(X)
    assert certificate.holds
    assert 0 <= certificate["from the best"].value < 5e-3  # nats a row, of 7
    assert -5e-3 < certificate["below the law"].value <= 0  # and so the encoder is nearly the posterior
    assert model.noise_variance_ * model.scale_[0] ** 2 == pytest.approx(ppca.noise_variance_, rel=0.06)  # followed from draws
    law = model._law()
    V, _ = layer(law.decoder, model.parameters_[law.split :], 0)
    angles = np.linalg.svd(np.linalg.qr(V.T)[0].T @ np.linalg.qr(ppca.components_.T)[0], compute_uv=False)
    assert angles.min() > 0.999  # cosines between the two planes


@pytest.mark.item("NNG-10")
@pytest.mark.parametrize("likelihood", ["gaussian", "bernoulli"])
def test_the_bound_rises(likelihood):
    X = load_digits().data[:400] / 16
    X = X[:, X.std(axis=0) > 0.1]
    options = {"likelihood": likelihood, "hidden_layer_sizes": (32,), "tol": None, "random_state": 0}
    trace = VariationalAutoencoder(5, **options, max_iter=40).fit(X).trace_
    means = trace.reshape(8, 5).mean(axis=1)
    assert (np.diff(means) < 0).all()
    first, last = (VariationalAutoencoder(5, **options, max_iter=m).fit(X) for m in (1, 40))
    assert last.elbo_ > first.elbo_
    assert last.score(X) > first.score(X)


def test_log_p_of_bits_is_the_integral_over_the_latent_line(bits):
    X, model = bits
    z = np.linspace(-8, 8, 4001)
    logits = model.decoder_.units(z[:, None])[-2] @ model.decoder_.weights[-1] + model.decoder_.biases[-1]
    chances = expit(logits)
    logs = X @ np.log(chances).T + (1 - X) @ np.log1p(-chances).T + norm.logpdf(z)
    exact = logsumexp(logs, axis=1) + np.log(z[1] - z[0])
    np.testing.assert_allclose(model.score_samples(X, n_samples=5000), exact, atol=0.05)  # of five thousand draws
    assert (model.elbo(X, n_samples=5000) < exact + 0.05).all()
    assert model.score(X, n_samples=5000) == pytest.approx(exact.mean(), abs=0.01)


def test_log_p_of_numbers_is_the_integral_over_the_latent_line(curve):
    X, model = curve
    z = np.linspace(-8, 8, 8001)
    means, deviations = model.inverse_transform(z[:, None]), np.sqrt(model.noise_variance_) * model.scale_
    logs = norm.logpdf(X[:, None], means[None], deviations).sum(axis=2) + norm.logpdf(z)
    exact = logsumexp(logs, axis=1) + np.log(z[1] - z[0])
    found = model.score_samples(X, n_samples=5000)
    assert np.median(np.abs(found - exact)) < 0.01
    assert found.mean() == pytest.approx(exact.mean(), abs=0.02)  # rows far from the curve have few draws near them


@pytest.mark.item("NNG-08")
def test_importance_weighted_bounds_rise_with_the_draws():
    X = load_digits().data / 16
    model = VariationalAutoencoder(5, likelihood="bernoulli", hidden_layer_sizes=(32,), tol=None, max_iter=20, random_state=0)
    bound = model.fit(X).elbo(X).mean()
    means = [model.score(X, n_samples=n) for n in (1, 8, 64)]
    assert means[0] == pytest.approx(bound, abs=0.1)  # one draw is the bound, in the mean over rows
    assert bound + 0.1 < means[1] < means[2]


def test_draws_have_the_law(bits, curve):
    _, model = bits
    drawn = model.sample(20_000, random_state=0)
    assert set(np.unique(drawn)) == {0.0, 1.0}
    z = np.random.default_rng(1).standard_normal((20_000, 1))
    chances = model.inverse_transform(z).mean(axis=0)
    assert (np.abs(drawn.mean(axis=0) - chances) < 5 * np.sqrt(2 * 0.25 / 20_000)).all()
    _, model = curve
    drawn = model.sample(20_000, random_state=0)
    means = model.inverse_transform(z)
    variance = means.var(axis=0) + model.noise_variance_ * model.scale_**2
    np.testing.assert_allclose(drawn.var(axis=0), variance, rtol=0.1)
    assert np.array_equal(drawn, model.sample(20_000, random_state=0))


def test_draws_scatter_by_the_noise_that_is_given(curve):
    X, _ = curve
    model = VariationalAutoencoder(1, noise_variance=4.0, hidden_layer_sizes=(4,), tol=None, max_iter=1, random_state=0).fit(X)
    around = model.inverse_transform(np.random.default_rng(0).standard_normal((50_000, 1))).var(axis=0)
    variance = model.sample(50_000, random_state=0).var(axis=0)
    np.testing.assert_allclose((variance - around) / model.scale_**2, 4.0, rtol=0.05)  # six standard errors


def test_doubts_of_means_are_as_large_as_they_vary(bits):
    X, model = bits
    blocks, law = Blocks.of(X[:40], None), model._law()
    found = [mean_bounds(blocks, law, 16, seed) for seed in range(300)]
    means, errors = (np.array([pair[part] for pair in found]) for part in (0, 1))
    np.testing.assert_allclose(errors.mean(axis=0), means.std(axis=0), rtol=0.2)  # of three hundred, five standard errors


def test_the_latent_space_is_walked_through(curve):
    X, model = curve
    Z = model.transform(X)
    np.testing.assert_array_equal(model.reconstruct(X), model.inverse_transform(Z))
    way = model.interpolate(X[0], X[1], 5)
    np.testing.assert_allclose(way[[0, -1]], model.reconstruct(X[:2]), rtol=1e-12)
    np.testing.assert_allclose(way[2], model.inverse_transform(Z[:2].mean(axis=0, keepdims=True))[0], rtol=1e-12)
    walk = model.latent_walk(0, n=3)
    np.testing.assert_allclose(walk, model.inverse_transform(norm.ppf([[1 / 6], [0.5], [5 / 6]])), rtol=1e-12)
    posterior = model.posterior(X)
    np.testing.assert_array_equal(posterior.mean, Z)
    assert (posterior.std > 0).all()
    with pytest.raises(ValueError, match="two latent coordinates"):
        model.latent_grid()
    two = VariationalAutoencoder(2, hidden_layer_sizes=(4,), tol=None, max_iter=1, random_state=0).fit(X)
    grid = two.latent_grid(3)
    assert grid.shape == (3, 3, 2)
    corner = norm.ppf([[1 / 6, 5 / 6]])  # left and up
    np.testing.assert_allclose(grid[0, 0], two.inverse_transform(corner)[0], rtol=1e-12)


@pytest.mark.filterwarnings("error")
def test_rows_of_frames_are_ends_of_ways():
    frame = pd.DataFrame(plane(20), columns=list("abcde"))
    model = VariationalAutoencoder(2, hidden_layer_sizes=(4,), tol=None, max_iter=1, random_state=0).fit(frame)
    way = model.interpolate(frame.iloc[0], frame.iloc[1], 3)
    np.testing.assert_allclose(way[[0, 2]], model.reconstruct(frame[:2]), rtol=1e-12)
    model.set_output(transform="pandas")
    np.testing.assert_array_equal(model.interpolate(frame.iloc[0], frame.iloc[1], 3), way)


def test_pictures_of_one_column_and_of_planes_of_either_model():
    X, options = plane(20, d=4), {"hidden_layer_sizes": (4,), "max_iter": 1, "random_state": 0}
    line = VariationalAutoencoder(1, tol=None, **options).fit(X[:, :1])
    data, drawn = GeneratedDisplay.from_estimator(line, X[:, :1], n=5).ax_.collections
    np.testing.assert_array_equal(data.get_offsets(), np.column_stack([X[:, 0], np.zeros(20)]))
    assert len(drawn.get_offsets()) == 5
    with pytest.raises(ValueError, match="two latent variables, and VariationalAutoencoder has one"):
        GeneratedDisplay.from_latent_plane(line, image_shape=(1, 1))
    game = GenerativeAdversarialNetwork(2, **options).fit(X)
    shown = GeneratedDisplay.from_latent_plane(game, image_shape=(2, 2), n=3, reach=1.5)
    np.testing.assert_allclose(shown.picture_[:2, :2].ravel(), game.generate([[-1.5, 1.5]])[0], rtol=1e-12)


def test_networks_are_shown_as_networks(curve):
    X, model = curve
    scaled = (X - model.mean_) / model.scale_
    codes = model.encoder_.forward(scaled)
    np.testing.assert_allclose(codes[:, :1], model.transform(X), rtol=1e-9)
    np.testing.assert_allclose(np.exp(codes[:, 1:] / 2), model.posterior(X).std, rtol=1e-9)
    np.testing.assert_allclose(
        model.decoder_.forward(codes[:, :1]) * model.scale_ + model.mean_, model.reconstruct(X), rtol=1e-9
    )


def test_what_is_said_of_a_row_depends_on_nothing_else(bits):
    X, model = bits
    assert model.score_samples(X)[7] == model.score_samples(X[7:8])[0]
    assert model.score(X) == pytest.approx(model.score_samples(X).mean(), rel=1e-12)
    weight = np.arange(len(X)) % 3
    repeated = np.repeat(X, weight, axis=0)
    assert model.score(X, sample_weight=weight) == pytest.approx(model.score(repeated), rel=1e-12)


@pytest.mark.parametrize(("hidden", "dtype"), [((), np.float64), ((16,), np.float64), ((16,), np.float32)])
def test_rows_far_off_are_improbable_and_no_more_than_that(hidden, dtype):
    X = plane(100).astype(dtype)
    model = VariationalAutoencoder(2, hidden_layer_sizes=hidden, tol=None, max_iter=5, random_state=0).fit(X)
    sizes = np.array([[0.0], [1e3], [1e5], [1e8], [1e30]], dtype)
    rows = np.concatenate([sizes, -sizes]) + X[:1]
    with np.errstate(over="ignore"):  # of the last row, in single precision
        logs = np.array([model.elbo(rows), model.score_samples(rows)])
    assert not np.isnan(logs).any()
    assert (logs[:, [1, 2, 3, 4, 6, 7, 8, 9]] < logs[:, :1]).all()
    assert np.isfinite(logs[:, :4]).all()
    posterior = model.posterior(rows[:4])
    assert (posterior.std > 0).all()
    assert np.isfinite(posterior.std).all()


def test_noise_may_be_given_and_columns_have_any_units(curve):
    X, _ = curve
    options = {"hidden_layer_sizes": (8,), "tol": None, "max_iter": 20, "random_state": 0}
    given = VariationalAutoencoder(1, noise_variance=0.25, **options).fit(X)
    assert given.noise_variance_ == 0.25
    model, other = (VariationalAutoencoder(1, **options).fit(Z) for Z in (X, X * [2.0**20, 2.0**-20] + 0.0))
    np.testing.assert_array_equal(model.transform(X), other.transform(X * [2.0**20, 2.0**-20]))
    np.testing.assert_allclose(model.score_samples(X).mean(), other.score_samples(X * [2.0**20, 2.0**-20]).mean(), atol=0.1)


def test_every_certificate_tells_what_it_should(bits, curve):
    for X, model in (bits, curve):
        certificate = model.certify(X)
        assert certificate.holds, str(certificate)
        assert certificate["back-propagation"].value < 1e-8  # smooth: well below the limit
        for name in ("parameters_", "elbo_", "noise_variance_"):
            spoiled = deepcopy(model)
            setattr(spoiled, name, getattr(model, name) * 1.01)
            assert not spoiled.certify(X).holds, name


def test_a_fit_that_still_rises_says_so_and_one_that_rests_does_not():
    X = plane(100)
    with pytest.warns(ConvergenceWarning, match="bound still rises after 3 epochs"):
        VariationalAutoencoder(2, hidden_layer_sizes=(4,), max_iter=3, tol=1e-4, random_state=0).fit(X)
    model = VariationalAutoencoder(2, hidden_layer_sizes=(4,), max_iter=500, tol=0.1, n_iter_no_change=2, random_state=0).fit(X)
    assert model.converged_
    assert model.n_iter_ < 500


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"likelihood": "bernoulli"}, "between 0 and 1, and X goes from -"),
        ({"hidden_layer_sizes": (0,)}, "whole numbers"),
        ({"latent_dim": 0}, "latent_dim"),
        ({"likelihood": "poisson"}, "likelihood"),
        ({"learning_rate_init": 1e30, "tol": None}, "left the numbers in epoch"),
    ],
)
def test_nonsense_is_refused(options, match):
    with pytest.raises(ValueError, match=match), np.errstate(all="ignore"):
        VariationalAutoencoder(**({"hidden_layer_sizes": (4,)} | options)).fit(plane(50))


def test_wrong_coordinates_are_refused(curve):
    _, model = curve
    with pytest.raises(ValueError, match="1 latent coordinates"):
        model.inverse_transform([[0.0, 1.0]])
    with pytest.raises(ValueError, match=r"got the shapes \(2,\) and \(1,\)"):
        model.interpolate([0.0, 1.0], [0.0])
    with pytest.raises(ValueError, match="whole number"):
        model.sample(0)
