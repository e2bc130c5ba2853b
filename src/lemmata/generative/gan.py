"""Generative adversarial network: a network that makes rows, taught by one that tells them from real ones.

    min_G max_D  V(D, G) = E log D(x) + E log(1 − D(G(z))),    z ~ N(0, I)

The generator's law is that of G(z), the image of a normal law. The best discriminator is D* = p/(p + q) with p and q the
densities of rows and draws, and then V = −log 4 + 2 JSD(p, q): the game ends at q = p, where V = −log 4 and D = ½ [1]; `game`
plays it exactly on finite sets. Networks play it by steps (`gan_kernels`), and nothing says that they end there.
Certificate: the fit is a function of data, parameters and seed, so it is computed again, an identity, and so is the value of
the game at the players; derivatives of both players' losses agree with central differences, draws held fixed. How likely rows
and draws of one law were to differ as much (`mmd_test`) is told, and not judged: no test proves two laws equal, and these rows
were seen in the fit; test draws against rows that were held out. Another kind of processor rounds otherwise, and training may
carry that far.

[1] Goodfellow, Pouget-Abadie, Mirza, Xu, Warde-Farley, Ozair, Courville & Bengio, NeurIPS (2014).
"""

from functools import partial
from numbers import Integral, Real
from os import PathLike
from typing import NamedTuple

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from lemmata.core.estimator import as_output
from lemmata.core.random import generator
from lemmata.core.visits import unit_of
from lemmata.generative.gan_certificate import Law, certificate, hidden_block, logit_block, made, value_at
from lemmata.generative.gan_kernels import Plan, Players, train_block
from lemmata.generative.latent import LARGEST, LatentEstimator, Lesson, ends_of, network_of, rule_of, whole_number
from lemmata.linear_model.stochastic import fold
from lemmata.neural_network.layers import draw_parameters, hidden_sizes, n_parameters, new_shape
from lemmata.neural_network.passes import rows_of
from lemmata.neural_network.steps import Moving, begin, new_steps
from lemmata.neural_network.training import batch_of
from lemmata.optimize.rules import RULES, Adam, Rule

SHORT = 0.5  # Adam's memory of gradients: a game turns, and what was downhill ten steps ago is not (Radford et al., ICLR 2016)


class State(NamedTuple):
    """A game after some epochs."""

    epoch: int
    generator: np.ndarray
    generator_moments1: np.ndarray
    generator_moments2: np.ndarray
    generator_steps: int
    discriminator: np.ndarray
    discriminator_moments1: np.ndarray
    discriminator_moments2: np.ndarray
    discriminator_steps: int
    average: np.ndarray

    @property
    def steps(self):
        """Steps of the discriminator."""
        return self.discriminator_steps


class Going(NamedTuple):
    """What is carried from block to block in an epoch."""

    players: Players
    rng: np.random.Generator
    total: float
    weight: float


def visit_block(X, weight, going, own, lesson):
    """Train on the rows of a block; return (what is carried on, what the block keeps)."""
    rows, options = rows_of(X, lesson.mean, lesson.scale, float), (lesson.unit, lesson.batch_size, lesson.shuffle, going.rng)
    players, total, mass = train_block(lesson.plan, going.players, rows, weight, *options)
    return Going(players, going.rng, going.total + total, going.weight + mass), own


class GenerativeAdversarialNetwork(LatentEstimator):
    """Fit a network that makes rows by letting another one tell them from real ones.

    Parameters
    ----------
    latent_dim : Number of latent coordinates; no fewer than rows have freedoms.
    objective : What the generator lowers: "non_saturating", −log D(G(z)), or "minimax", log(1 − D(G(z))), the value of the
        game itself, which is flat where the discriminator is sure.
    hidden_layer_sizes : Units of the hidden layers of the generator.
    discriminator_layer_sizes : Those of the discriminator; None for the same.
    activation : Of the hidden units: "identity", "sigmoid" (or "logistic"), "tanh", "relu".
    rule, discriminator_rule : How a gradient becomes a step, for each player: "sgd", "momentum", "adagrad", "rmsprop", "adam"
        (with a short memory of gradients, β₁ = 0.5), or a rule of `lemmata.optimize`, which then also says how long steps are.
        None for the discriminator is the generator's.
    learning_rate_init, discriminator_rate : Length of a step, for each player; None for the discriminator is the generator's.
    n_critic : Steps of the discriminator for each of the generator.
    penalty : Weight γ of the discriminator's squared slope at the data.
    noise : Standard deviation of what both see rows through, in units of the columns.
    average : Share of the averaged generator that a step keeps; 0 for the last one.
    standardize : Whether columns are divided by their own standard deviations; otherwise all by one number.
    batch_size : Visits of a batch; "auto" is a tenth of the table, between 16 and 128.
    alpha : Weight of a penalty α/2 ‖W‖² on the weights of both networks.
    clip : Longest gradient, or None for any.
    max_iter : Epochs. There is no sign by which a game is known to be over.
    shuffle : Whether rows are visited in random order, within blocks, rather than in that of the table.
    random_state : Seed. The same seed gives the same bits for any number of threads, from memory, Parquet or Dask.
    verbose : 1 shows a progress bar.
    checkpoint : Path of a file from which a fit that was killed resumes.

    Attributes
    ----------
    parameters_ : Weights and biases of the (averaged) generator, then of the discriminator, in one vector.
    generator_, discriminator_ : Both as a `lemmata.neural_network.Network`, from z to scaled rows, and from those to D.
    mean_, scale_ : What columns are centered by and divided by.
    value_ : Value of the game at these players, from all rows and 4,096 draws.
    seed_ : Seed of the start, the order of the visits and the draws.
    n_iter_ : Epochs.
    t_ : Steps of the discriminator.
    converged_ : Whether all epochs were played.
    trace_ : Mean value of the game over the visits of each epoch; −log 4 = −1.386 where the discriminator knows nothing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = np.where(rng.random((500, 1)) < 0.5, -1.0, 1.0) + 0.1 * rng.normal(size=(500, 1))  # two heaps
    >>> model = GenerativeAdversarialNetwork(2, hidden_layer_sizes=(32,), max_iter=200, random_state=0).fit(X)
    >>> drawn = model.sample(1000, random_state=0)
    >>> bool(0.3 < (drawn > 0).mean() < 0.7), bool(np.median(abs(abs(drawn) - 1)) < 0.3)
    (True, True)
    >>> model.discriminate(X).shape, model.transform(X).shape, model.latent_walk(n=5).shape
    ((500,), (500, 32), (5, 1))
    >>> [check.name for check in model.certify(X)]
    ['weights', 'value', 'steps', 'means', 'scales', 'discriminator', 'generator', 'two samples']
    """

    _parameter_constraints = {
        "latent_dim": [Interval(Integral, 1, None, closed="left")],
        "objective": [StrOptions({"minimax", "non_saturating"})],
        "hidden_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left")],
        "discriminator_layer_sizes": ["array-like", Interval(Integral, 1, None, closed="left"), None],
        "activation": [StrOptions({"identity", "logistic", "sigmoid", "tanh", "relu"})],
        "rule": [StrOptions(set(RULES)), Rule],
        "discriminator_rule": [StrOptions(set(RULES)), Rule, None],
        "learning_rate_init": [Interval(Real, 0, None, closed="neither")],
        "discriminator_rate": [Interval(Real, 0, None, closed="neither"), None],
        "n_critic": [Interval(Integral, 1, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "noise": [Interval(Real, 0, None, closed="left")],
        "average": [Interval(Real, 0, 1, closed="left")],
        "standardize": ["boolean"],
        "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "clip": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "checkpoint": [str, PathLike, None],
    }

    def __init__(
        self,
        latent_dim=8,
        *,
        objective="non_saturating",
        hidden_layer_sizes=(128, 128),
        discriminator_layer_sizes=None,
        activation="relu",
        rule="adam",
        discriminator_rule=None,
        learning_rate_init=0.001,
        discriminator_rate=None,
        n_critic=1,
        penalty=0.1,
        noise=0.0,
        average=0.999,
        standardize=True,
        batch_size="auto",
        alpha=0.0,
        clip=None,
        max_iter=300,
        shuffle=True,
        random_state=None,
        verbose=0,
        checkpoint=None,
    ):
        self.latent_dim = latent_dim
        self.objective = objective
        self.hidden_layer_sizes = hidden_layer_sizes
        self.discriminator_layer_sizes = discriminator_layer_sizes
        self.activation = activation
        self.rule = rule
        self.discriminator_rule = discriminator_rule
        self.learning_rate_init = learning_rate_init
        self.discriminator_rate = discriminator_rate
        self.n_critic = n_critic
        self.penalty = penalty
        self.noise = noise
        self.average = average
        self.standardize = standardize
        self.batch_size = batch_size
        self.alpha = alpha
        self.clip = clip
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Fit to rows X; a weight means repetition. X may also be a Parquet path, a Dask table, or an iterator of blocks."""
        blocks = self._blocks(X, sample_weight=sample_weight, reset=True, order="C")
        seed, scaling = self._seed(), self._scaling(blocks)
        run = self._run(blocks, seed, scaling, {"X": X, "y": y})
        vars(self).update(self._attributes(run.state, scaling, blocks.dtype))
        self.seed_, self.n_iter_, self.trace_, self.converged_ = seed, run.n_iter, run.trace, run.converged
        self.value_ = value_at(blocks, self._law(), seed)
        return self

    def _shapes(self):
        """Return the shapes of generator and discriminator."""
        k, d, maker = int(self.latent_dim), self.n_features_in_, hidden_sizes(self.hidden_layer_sizes)
        judge = maker
        if self.discriminator_layer_sizes is not None:
            judge = hidden_sizes(self.discriminator_layer_sizes, "discriminator_layer_sizes")
        return (
            new_shape([k, *maker, d], [self.activation] * len(maker) + ["identity"]),
            new_shape([d, *judge, 1], [self.activation] * len(judge) + ["sigmoid"]),
        )

    def _rules(self):
        """Return the rules of generator and discriminator."""
        own, rate = (self.rule, self.learning_rate_init), self.discriminator_rate
        named = own, (self.discriminator_rule or own[0], own[1] if rate is None else rate)
        return [Adam(rate, beta1=SHORT) if rule == "adam" else rule_of(rule, rate) for rule, rate in named]

    def _steps(self, blocks, seed, scaling):
        """Return the step of a fit, one epoch, and the state before the first."""
        shapes, rules, (order_seed, start_seed) = self._shapes(), self._rules(), np.random.SeedSequence(seed).generate_state(2)
        rng, dtype, (unit, total) = np.random.default_rng(start_seed), blocks.dtype, unit_of(blocks)
        steps = [new_steps(rule, [shape], dtype, self.alpha, self.clip) for rule, shape in zip(rules, shapes, strict=True)]
        numbers = (float(self.noise), float(self.penalty), int(self.n_critic), float(self.average))
        plan = Plan(*shapes, self.objective == "minimax", *numbers, *steps)
        lesson = Lesson(plan, unit, batch_of(self.batch_size, total, LARGEST), bool(self.shuffle), *scaling, int(order_seed))
        maker, judge = (begin(rule, draw_parameters(s, rng, dtype)) for rule, s in zip(rules, shapes, strict=True))
        return partial(self._epoch, blocks, lesson), State(0, *maker, *judge, maker.parameters.copy())

    def _epoch(self, blocks, lesson, state):
        """Go through all rows once; return (state, value of the game, 0 at the end or 1)."""
        players = Players(Moving(*state[1:5]), Moving(*state[5:9]), state.average)
        going = Going(players, np.random.default_rng([lesson.seed, state.epoch]), 0.0, 0.0)
        going, _ = fold(blocks, partial(visit_block, lesson=lesson), going)
        maker, judge, average = going.players
        if not all(np.isfinite(p).all() for p in (maker.parameters, judge.parameters, going.total)):
            raise ValueError(f"The steps left the numbers in epoch {state.epoch + 1}; lower learning_rate_init, or set clip.")
        state = State(state.epoch + 1, *maker, *judge, average)
        return state, going.total / going.weight, 0.0 if state.epoch == self.max_iter else 1.0

    def _attributes(self, state, scaling, dtype):
        """Give the fitted attributes that everything else follows from."""
        maker = state.average if self.average > 0 else state.generator
        parameters = as_output(np.concatenate([maker, state.discriminator]), dtype)
        return {"parameters_": parameters, "mean_": scaling[0], "scale_": scaling[1], "t_": state.steps}

    def _law(self):
        """Return the fitted players, checked before compiled code reads them."""
        check_is_fitted(self)
        (maker, judge), d = self._shapes(), self.n_features_in_
        n = n_parameters(maker) + n_parameters(judge)
        if self.parameters_.shape != (n,) or np.shape(self.mean_) != (d,) or np.shape(self.scale_) != (d,):
            raise ValueError("parameters_, mean_ or scale_ are not those of a fit with these parameters.")
        return Law(maker, judge, self.parameters_, self.mean_, self.scale_)

    @property
    def generator_(self):
        """The network from latent coordinates to scaled rows."""
        law = self._law()
        return network_of(law.maker, law.parameters[: law.split])

    @property
    def discriminator_(self):
        """The network from scaled rows to the probability that they are real."""
        law = self._law()
        return network_of(law.judge, law.parameters[law.split :])

    def sample(self, n_samples=1, random_state=None):
        """Draw rows: coordinates from N(0, I), and what the generator makes of them."""
        law, rng = self._law(), generator(random_state)
        Z = rng.standard_normal((whole_number(n_samples, "n_samples"), self.latent_dim))
        return as_output(made(law, Z), self.parameters_.dtype)

    def discriminate(self, X):
        """Give the discriminator's probability that each row is real."""
        law = self._law()
        blocks = self._blocks(X, reset=False, order="C")
        logits = blocks.map(logit_block, law)
        return as_output(0.5 * (1 + np.tanh(0.5 * logits)), blocks.dtype)

    def transform(self, X):
        """Give what the discriminator looks at: the outputs of its last hidden layer for each row (or the scaled row)."""
        law = self._law()
        blocks = self._blocks(X, reset=False, order="C")
        return as_output(blocks.map(hidden_block, law), blocks.dtype)

    def generate(self, Z):
        """Give the rows that the generator makes of latent coordinates, (n, latent_dim)."""
        Z = self._latent(Z, "Z")
        return as_output(made(self._law(), Z), Z.dtype)

    _decode = generate

    def interpolate(self, a, b, n=10):
        """Give n rows on the way from one point of the latent space to another, on a straight line."""
        first, last = self._latent(ends_of(a, b), "a and b")
        return self._between(first, last, n)

    @property
    def _n_features_out(self):
        return int(self._shapes()[1].sizes[-2])

    def certify(self, X, y=None, sample_weight=None):
        """Prove the fit by repeating it, and derivatives by differences; tell how far draws are from rows."""
        law = self._law()
        blocks = self._blocks(X, sample_weight=sample_weight, reset=False, order="C")
        return certificate(self, blocks, law, *self._again(blocks))
