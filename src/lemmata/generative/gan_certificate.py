"""What two fitted players say of rows, and the checks of an adversarial network.

The fit again, and the value of the game again, are identities: they refuse any change of what was fitted, and prove no end of
the game. Derivatives of both players' losses are held against central differences of the losses in plain NumPy. Rows and draws
are compared by a test of two samples, on some hundreds of them: the time grows with their square.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.threads import serial_blas
from lemmata.generative.gan_kernels import ASIDE, Plan, discriminator_gradient, generator_gradient
from lemmata.generative.two_samples import mmd_test
from lemmata.neural_network.layers import Shape, forward, new_rooms, room_of, unit_rows
from lemmata.neural_network.network import LIMIT, UNMOVED, directions_of, disagreement, off_zero, plain_forward
from lemmata.neural_network.passes import outputs_of, rows_of, sure_outputs
from lemmata.neural_network.steps import new_steps
from lemmata.optimize.rules import GradientDescent

VALUE_DRAWS = 4096  # of the generator, for the value that is kept and checked
SHOWN = 32  # rows on which derivatives are compared
BESIDE = 0.1  # standard deviations by which they are moved: rows that are all alike may lie on a kink of ReLU
TESTED = 300  # rows, and as many draws, of the test of two samples
EXCHANGES = 199


class Law(NamedTuple):
    """Two fitted players: shapes and parameters of both networks, and how rows become inputs."""

    maker: Shape
    judge: Shape
    parameters: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    @property
    def split(self):
        """Where the discriminator's parameters begin."""
        return int(self.maker.starts[-1])


def made(law, Z):
    """Return the rows that the generator makes of latent coordinates, in the units of the table."""
    Z = np.ascontiguousarray(Z, dtype=law.parameters.dtype)
    rows = outputs_of(law.maker, law.parameters[: law.split], rows_of(Z, None, None, law.parameters.dtype))
    return rows * law.scale + law.mean


def _cut_short(shape, last):
    """Return the part of a network up to some row of units."""
    return Shape(shape.sizes[: last + 1], shape.starts[: last + 1], shape.places[: last + 2], shape.codes[:last])


def logit_block(X, weight, law):
    """Return the logit of D for each row of a block."""
    codes = law.judge.codes.copy()
    codes[-1] = 0  # the identity: D itself rounds to 1 where the logit still tells rows apart
    judge = law.judge._replace(codes=codes)
    return sure_outputs(judge, law.parameters[law.split :], X, law.mean, law.scale)[:, 0].astype(float)


def hidden_block(X, weight, law):
    """Return the outputs of the discriminator's last hidden layer for each row of a block; the scaled row, if it has none."""
    last = len(law.judge.codes) - 1
    if last == 0:
        return (X - law.mean) / law.scale
    return outputs_of(_cut_short(law.judge, last), law.parameters[law.split :], rows_of(X, law.mean, law.scale, float))


def real_block(X, weight, law):
    """Sum weights and log D over a block."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    return float(w.sum()), -float(w @ np.logaddexp(0.0, -logit_block(X, weight, law)))


def value_at(blocks, law, seed):
    """Return the value of the game at fitted players, from all rows and as many draws as always."""
    weight, total = blocks.reduce(real_block, law)
    draws = made(law, np.random.default_rng([seed, 1]).standard_normal((VALUE_DRAWS, int(law.maker.sizes[0]))))
    return total / weight - float(np.logaddexp(0.0, logit_block(draws, None, law)).mean())


def _logits(law, rows, parameters):
    return plain_forward(law.judge, parameters, rows)[0][:, 0]


def judge_loss(law, penalty, rows, draws, aside, parameters):
    """Compute the discriminator's loss once more."""
    a, b, c = (_logits(law, Z, parameters) for Z in (rows, draws, aside))
    slopes = ((c - a) / ASIDE) ** 2
    return float((np.logaddexp(0.0, -a) + np.logaddexp(0.0, b) + 0.5 * penalty * slopes).mean())


def maker_loss(law, minimax, Z, judge, parameters):
    """Compute the generator's loss once more."""
    a = _logits(law, plain_forward(law.maker, parameters, Z)[1], judge)
    return float(-np.logaddexp(0.0, a).mean() if minimax else np.logaddexp(0.0, -a).mean())


def back_propagation(blocks, law, penalty, minimax):
    """Compare derivatives of both losses, on rows like those of the table, with central differences; draws are held fixed."""
    rng, d, k = np.random.default_rng(0), len(law.mean), int(law.maker.sizes[0])
    rows = (np.asarray(blocks.first()[0][:SHOWN], dtype=float) - law.mean) / law.scale
    rows = rows + BESIDE * rng.standard_normal(rows.shape)
    n, Z = len(rows), rng.standard_normal((len(rows), k))
    aside = rows + ASIDE * rng.standard_normal(rows.shape)
    parameters = off_zero(law.parameters.astype(float), rng)
    maker, judge = parameters[: law.split], parameters[law.split :]
    plain = GradientDescent(1.0)
    steps = [new_steps(plain, [shape], float) for shape in (law.maker, law.judge)]
    plan = Plan(law.maker, law.judge, minimax, 0.0, float(penalty), 1, 0.0, *steps)
    making, room = (room_of(new_rooms(s, 1, m * n, float), 0) for s, m in ((law.maker, 1), (law.judge, 3)))
    weight, pull, push, scrap = np.full(n, 1.0 / n), np.zeros(len(maker)), np.zeros(len(judge)), np.zeros(len(judge))
    with serial_blas():
        making.values[: n * k] = Z.ravel()
        forward(law.maker, maker, making, n, 0.0, UNMOVED)
        draws = unit_rows(law.maker, making.values, making.capacity, len(law.maker.codes), n).reshape(n, d).copy()
        room.values[: 3 * n * d] = np.concatenate([rows, draws, aside]).ravel()
        loss, slope = discriminator_gradient(plan, judge, room, weight, n, UNMOVED, push)
        room.values[: n * d] = draws.ravel()
        value = generator_gradient(plan, maker, judge, making, room, weight, n, UNMOVED, scrap, pull)
    told = "derivatives of the {}'s loss, draws held fixed, are those of central differences"
    checks = []
    for name, shape, at, gradient, size, function in (
        ("discriminator", law.judge, judge, push, loss + slope, partial(judge_loss, law, penalty, rows, draws, aside)),
        ("generator", law.maker, maker, pull, value, partial(maker_loss, law, minimax, Z, judge)),
    ):
        error = disagreement(function, at, gradient, directions_of(shape, rng, many=0), size)
        checks.append(Check(name, error, LIMIT, "proof", told.format(name)))
    return checks


def two_samples(model, blocks):
    """Tell the p-value of rows and draws having one law."""
    n = min(blocks.n_rows, TESTED)
    claim = "the chance that rows and draws of one law differ as much: small if the laws differ"
    if n < 2:
        return Check("two samples", 1.0, np.inf, "evidence", claim)
    X = np.asarray(blocks.take(np.arange(n) * blocks.n_rows // n)[0], dtype=float)
    rng = np.random.default_rng([model.seed_, 2])
    draws = np.asarray(model.sample(n, random_state=rng), dtype=float)
    pair = ((X - model.mean_) / model.scale_, (draws - model.mean_) / model.scale_)
    p_value = mmd_test(*pair, n_permutations=EXCHANGES, random_state=rng).p_value
    return Check("two samples", p_value, np.inf, "evidence", claim)


def certificate(model, blocks, law, again, others):
    """Check a fitted `GenerativeAdversarialNetwork`; `again` are the attributes of the fit, repeated; `others`, checks."""
    checks = [
        same(model.parameters_, again["parameters_"], "weights", "the same visits and draws lead to these weights"),
        same(model.value_, value_at(blocks, law, model.seed_), "value", "value of the game at these players"),
        *others,
        *back_propagation(blocks, law, model.penalty, model.objective == "minimax"),
        two_samples(model, blocks),
    ]
    return Certificate(*checks, subject=repr(model))
