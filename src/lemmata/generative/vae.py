"""Variational autoencoder: a density of rows with few latent coordinates, and a network that finds the coordinates of a row.

    z ~ N(0, I),   x | z ~ N(f(z), σ²I) or Bernoulli(f(z)),   f a network

The density ∫ p(x|z) p(z) dz has no closed form. A second network gives q(z|x) = N(μ(x), diag σ²(x)), and by Jensen's inequality

    log p(x) = L(x) + KL(q(z|x) ‖ p(z|x)),    L(x) = E_q log p(x|z) − KL(q(z|x) ‖ N(0, I))  ≤  log p(x);

both networks are fitted by raising the mean of L, with gradients from draws (`vae_kernels`) [1].
Certificate: the fit is a function of data, parameters and seed, so it is computed again, an identity, and so is the bound;
back-propagation through both networks agrees with central differences of the bound, its draws held fixed; the bound is no
larger than log p(x) by importance sampling (`vae_law`), within the doubt of both; and, for networks without hidden layers, no
larger than log p(x) in closed form, which also tells how far the best law of this kind is, that of probabilistic PCA.
Another kind of processor rounds otherwise, and training may carry that far.

[1] Kingma & Welling, ICLR (2014). Rezende, Mohamed & Wierstra, ICML (2014).
"""

import warnings
from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.blocks import Largest
from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.visits import unit_of
from lemmata.generative.latent import LARGEST, LatentEstimator, Lesson, ends_of, network_of, rule_of, whole_number
from lemmata.generative.vae_certificate import certificate
from lemmata.generative.vae_epochs import State, epoch
from lemmata.generative.vae_kernels import Plan
from lemmata.generative.vae_law import ELBO_DRAWS, Law, bounds_block, codes_block, decoded, mean_bounds
from lemmata.neural_network.layers import draw_parameters, hidden_sizes, n_parameters, new_shape
from lemmata.neural_network.losses import CROSS_ENTROPY, SQUARED
from lemmata.neural_network.steps import begin, new_steps
from lemmata.neural_network.training import batch_of
from lemmata.optimize.rules import RULES, Rule


class Posterior(NamedTuple):
    """The encoder's law of the latent coordinates of rows: means and standard deviations, (n, k)."""

    mean: np.ndarray
    std: np.ndarray


def range_block(X, weight):
    """Largest entry of a block, and the least with its sign turned."""
    return Largest(float(X.max())), Largest(-float(X.min()))


class VariationalAutoencoder(LatentEstimator):
    """Fit a density with latent coordinates by two networks, one that makes rows and one that reads them.

    Parameters
    ----------
    latent_dim : Number of latent coordinates.
    likelihood : What a row is given its coordinates: "gaussian", numbers around those that the decoder gives; "bernoulli", bits
        with the probabilities that it gives, or shares between 0 and 1.
    hidden_layer_sizes : Units of the hidden layers of the encoder, and of the decoder in the opposite order; () for none.
    activation : Of the hidden units: "identity", "sigmoid" (or "logistic"), "tanh", "relu".
    gradient : "reparametrized", through the draws; or "score", from the values at the draws alone, with a baseline: right in
        the mean as well, with far more noise.
    n_draws : Draws from the encoder's law for each visit of a row; "score" wants several.
    noise_variance : Of a Gaussian, as a share of the variance of a column (or of the mean variance, if columns are not scaled);
        "learn" follows what the decoder misses.
    standardize : For a Gaussian, whether columns are divided by their own standard deviations, so that noise is the same share
        of each; otherwise all by one number, so that noise is the same in all, as in probabilistic PCA.
    rule : How a gradient becomes a step: "sgd", "momentum", "adagrad", "rmsprop", "adam", or a rule of `lemmata.optimize`,
        which then also says how long steps are.
    learning_rate_init : Length of a step.
    batch_size : Visits of a batch; "auto" is a tenth of the table, between 16 and 128.
    alpha : Weight of a penalty α/2 ‖W‖² on the weights of both networks.
    clip : Longest gradient, or None for any.
    max_iter : Epochs at most.
    tol : Stop when the mean bound over an epoch has not risen by this for some epochs; None to go on until max_iter.
    n_iter_no_change : That many epochs.
    shuffle : Whether rows are visited in random order, within blocks, rather than in that of the table.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    parameters_ : Weights and biases of the encoder, then of the decoder, in one vector.
    encoder_, decoder_ : Both as a `lemmata.neural_network.Network`, from scaled rows to (μ, log σ²), and from z to scaled rows.
    mean_, scale_ : What columns are centered by and divided by; 0 and 1 for bits.
    noise_variance_ : Of a Gaussian, in units of scale_²; 1 for bits, which have none.
    elbo_ : Mean bound of a row, from 16 draws.
    seed_ : Seed of the start, the order of the visits and the draws.
    n_iter_ : Epochs.
    t_ : Steps.
    converged_ : Whether the bound had stopped rising.
    trace_ : Minus the mean bound over the visits of each epoch, plus the penalty.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> t = rng.uniform(-2, 2, 300)
    >>> X = np.column_stack([t, t**3]) + 0.1 * rng.normal(size=(300, 2))  # a curve in the plane
    >>> model = VariationalAutoencoder(1, hidden_layer_sizes=(32,), tol=None, random_state=0).fit(X)
    >>> bool(abs(np.corrcoef(model.transform(X).ravel(), t)[0, 1]) > 0.9)  # where a row is on it
    True
    >>> model.sample(3, random_state=0).shape, model.interpolate(X[0], X[1], 5).shape
    ((3, 2), (5, 2))
    >>> bool(model.elbo(X).mean() < model.score(X))  # a lower bound of log p(x), and log p(x)
    True
    >>> [check.name for check in model.certify(X)]
    ['weights', 'noise', 'bound', 'steps', 'means', 'scales', 'back-propagation', 'below log p(x)']
    """

    generative = True

    _parameter_constraints = {
        "latent_dim": [Interval(Integral, 1, None, closed="left")],
        "likelihood": [StrOptions({"gaussian", "bernoulli"})],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "activation": [StrOptions({"identity", "logistic", "sigmoid", "tanh", "relu"})],
        "gradient": [StrOptions({"reparametrized", "score"})],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
        "noise_variance": [StrOptions({"learn"}), Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "rule": [StrOptions(set(RULES)), Rule],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        latent_dim=2,
        *,
        likelihood="gaussian",
        hidden_layer_sizes=(128,),
        activation="relu",
        gradient="reparametrized",
        n_draws=1,
        noise_variance="learn",
        standardize=True,
        rule="adam",
        learning_rate_init=0.001,
        batch_size="auto",
        alpha=0.0,
        clip=None,
        max_iter=200,
        tol=1e-4,
        n_iter_no_change=10,
        shuffle=True,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.latent_dim = latent_dim
        self.likelihood = likelihood
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.gradient = gradient
        self.n_draws = n_draws
        self.noise_variance = noise_variance
        self.standardize = standardize
        self.rule = rule
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.alpha = alpha
        self.clip = clip
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._rows(X, sample_weight, reset=True)
        seed, scaling = self._seed(), self._scaling(blocks)
        run = self._run(blocks, seed, scaling, {"X": X, "y": y})
        vars(self).update(self._attributes(run.state, scaling, blocks.dtype))
        self.seed_, self.n_iter_, self.trace_ = seed, run.n_iter, run.trace
        self.elbo_ = float(self._mean_bounds(blocks, ELBO_DRAWS, 0)[0][0])
        self.converged_ = run.converged and (self.tol is None or self._rested(run.state))
        if run.converged and not self.converged_:
            message = f"VariationalAutoencoder's bound still rises after {run.n_iter} epochs; raise max_iter or tol."
            warnings.warn(message, ConvergenceWarning, stacklevel=2)
        return self

    def _rows(self, X, sample_weight, *, reset):
        """Validate rows with weights; bits must be between 0 and 1."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=reset, order="C")
        if self.likelihood == "bernoulli":
            largest, least = blocks.reduce(range_block)
            if largest.value > 1 or least.value > 0:
                raise ValueError(
                    f'likelihood="bernoulli" needs entries between 0 and 1, and X goes from {-least.value:g} to '
                    f'{largest.value:g}: divide by the largest, or use likelihood="gaussian".'
                )
        return blocks

    def _scaling(self, blocks):
        if self.likelihood == "bernoulli":
            return np.zeros(blocks.n_columns), np.ones(blocks.n_columns)
        return super()._scaling(blocks)

    def _shapes(self):
        """Return the shapes of encoder and decoder, and the number of the loss."""
        sizes, k, d = hidden_sizes(self.hidden_layer_sizes), int(self.latent_dim), self.n_features_in_
        names, bits = [self.activation] * len(sizes), self.likelihood == "bernoulli"
        encoder = new_shape([d, *sizes, 2 * k], [*names, "identity"])
        decoder = new_shape([k, *sizes[::-1], d], [*names, "sigmoid" if bits else "identity"])
        return encoder, decoder, CROSS_ENTROPY if bits else SQUARED

    def _steps(self, blocks, seed, scaling):
        """Return the step of a fit, one epoch, and the state before the first."""
        (encoder, decoder, loss), (order_seed, start_seed) = self._shapes(), np.random.SeedSequence(seed).generate_state(2)
        rule, rng, dtype = rule_of(self.rule, self.learning_rate_init), np.random.default_rng(start_seed), blocks.dtype
        unit, total = unit_of(blocks)
        steps = new_steps(rule, [encoder, decoder], dtype, self.alpha, self.clip)
        follows = loss == SQUARED and self.noise_variance == "learn"
        plan = Plan(encoder, decoder, loss, int(self.n_draws), self.gradient == "score", follows, total, steps)
        lesson = Lesson(plan, unit, batch_of(self.batch_size, total, LARGEST), bool(self.shuffle), *scaling, int(order_seed))
        start = np.concatenate([draw_parameters(shape, rng, dtype) for shape in (encoder, decoder)])
        given = 1.0 if loss != SQUARED or follows else float(self.noise_variance)
        return partial(self._epoch, blocks, lesson), State(0, *begin(rule, start), given, np.inf, 0)

    def _epoch(self, blocks, lesson, state):
        """Go through all rows once; return (state, loss, 0 at the end or 1)."""
        state, loss = epoch(blocks, lesson, state, self.tol)
        ended = (self.tol is not None and self._rested(state)) or state.epoch == self.max_iter
        return state, loss, 0.0 if ended else 1.0

    def _rested(self, state):
        return state.idle >= self.n_iter_no_change

    def _attributes(self, state, scaling, dtype):
        """Give the fitted attributes that everything else follows from."""
        mean, scale = scaling
        parameters = as_output(state.parameters, dtype)
        return {"parameters_": parameters, "mean_": mean, "scale_": scale, "noise_variance_": state.variance, "t_": state.steps}

    def _law(self):
        """Return the fitted law, checked before compiled code reads it."""
        check_is_fitted(self)
        encoder, decoder, loss = self._shapes()
        n, d = n_parameters(encoder) + n_parameters(decoder), self.n_features_in_
        if self.parameters_.shape != (n,) or np.shape(self.mean_) != (d,) or np.shape(self.scale_) != (d,):
            raise ValueError("parameters_, mean_ or scale_ are not those of a fit with these parameters.")
        return Law(encoder, decoder, loss, self.parameters_, float(self.noise_variance_), self.mean_, self.scale_)

    def _mean_bounds(self, blocks, n_draws, stream):
        """Return means of the bound and of log p(x), and their errors; several streams of draws know nothing of each other."""
        return mean_bounds(blocks, self._law(), n_draws, self._stream(stream))

    def _stream(self, number):
        return int(np.random.SeedSequence([self.seed_, number]).generate_state(1, np.uint64)[0])

    @property
    def encoder_(self):
        """The network from scaled rows to (μ, log σ²)."""
        law = self._law()
        return network_of(law.encoder, law.parameters[: law.split])

    @property
    def decoder_(self):
        """The network from latent coordinates to scaled rows."""
        law = self._law()
        return network_of(law.decoder, law.parameters[law.split :])

    def posterior(self, X):
        """Give the encoder's law of the latent coordinates of each row: means and standard deviations."""
        law = self._law()
        blocks = self._blocks(X, reset=False, order="C")
        codes = blocks.map(codes_block, law)
        mean, log_variance = np.split(codes, 2, axis=1)
        return Posterior(as_output(mean, blocks.dtype), as_output(np.exp(0.5 * log_variance), blocks.dtype))

    def transform(self, X):
        """Give the mean of the latent coordinates of each row."""
        return self.posterior(X).mean

    def inverse_transform(self, X):
        """Give the mean row for latent coordinates; probabilities, where rows are bits."""
        Z = self._latent(X)
        return as_output(decoded(self._law(), Z), Z.dtype)

    _decode = inverse_transform

    def reconstruct(self, X):
        """Give each row as the decoder makes it from the mean of its coordinates."""
        return self.inverse_transform(self.transform(X))

    def interpolate(self, a, b, n=10):
        """Give n rows on the way from row a to row b, on a straight line between their latent coordinates."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)  # points of a way have none
            first, last = self.posterior(ends_of(a, b)).mean
        return self._between(first, last, n)

    def sample(self, n_samples=1, random_state=None):
        """Draw rows: coordinates from N(0, I), and the row around what the decoder makes of them."""
        law, rng = self._law(), generator(random_state)
        n, d = whole_number(n_samples, "n_samples"), self.n_features_in_
        means = decoded(law, rng.standard_normal((n, self.latent_dim)))
        if self.likelihood == "bernoulli":
            rows = (rng.random((n, d)) < means).astype(float)
        else:
            rows = means + np.sqrt(law.variance) * law.scale * rng.standard_normal((n, d))
        return as_output(rows, self.parameters_.dtype)

    def elbo(self, X, n_samples=100):
        """Give the lower bound L(x) of log p(x) for each row, from so many draws."""
        return self._bounds(X, n_samples)[:, 0]

    def score_samples(self, X, n_samples=500):
        """Give log p(x) of each row by importance sampling from the encoder's law; a lower bound in expectation, ever tighter.

        The draws of a row follow from its entries: they are the same in every call.
        """
        return self._bounds(X, n_samples)[:, 1]

    def score(self, X, y=None, sample_weight=None, n_samples=500):
        """Give the mean of log p(x), by importance sampling."""
        blocks = self._rows(X, sample_weight, reset=False)
        return float(self._mean_bounds(blocks, whole_number(n_samples, "n_samples"), 1)[0][1])

    def _bounds(self, X, n_samples):
        law = self._law()
        blocks, n = self._rows(X, None, reset=False), whole_number(n_samples, "n_samples")
        return as_output(blocks.map(bounds_block, law, n, self._stream(1)), blocks.dtype)

    @property
    def _n_features_out(self):
        return int(self.latent_dim)

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fit by repeating it, derivatives by differences, and hold the bound against log p(x)."""
        law = self._law()
        blocks = self._rows(X, sample_weight, reset=False)
        return certificate(self, blocks, law, *self._again(blocks))
