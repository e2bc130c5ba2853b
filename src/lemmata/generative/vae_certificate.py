"""The checks of a variational autoencoder.

The fit again, and the bound again, are identities: they refuse any change of what was fitted, and prove no optimum. Derivatives
are held against central differences of the bound as it is written in plain NumPy. What the bound is a bound of is estimated
with draws that the bound does not know; without hidden layers it is known, and so is the largest value that it has for any
decoder of this kind: with λᵢ the variances of the scaled rows along their principal axes and k latent coordinates,
−½ [d log 2π + Σ_{i≤k} log λᵢ + (d − k) log σ² + d], σ² the mean of the others (Tipping & Bishop, 1999).
"""

from functools import partial

import numpy as np

from lemmata.core.certificate import Certificate, Check, same
from lemmata.core.data import WIDE
from lemmata.core.moments import moments_block
from lemmata.core.threads import serial_blas
from lemmata.generative.vae_kernels import LEAST, LOG_2PI, Plan, bound_gradient
from lemmata.generative.vae_law import ELBO_DRAWS, linear_block
from lemmata.neural_network.layers import new_rooms, room_of
from lemmata.neural_network.losses import SQUARED
from lemmata.neural_network.network import LIMIT, UNMOVED, directions_of, disagreement, off_zero, plain_forward
from lemmata.neural_network.steps import new_steps
from lemmata.optimize.rules import GradientDescent

DRAWS = 16  # of each row, for each of the two means that are compared
ERRORS = 8.0  # standard errors of sixteen draws that chance exceeds once in a million times
SHOWN = 64  # rows on which derivatives are compared
BESIDE = 0.1  # standard deviations by which they are moved: rows that are all alike may lie on a kink of ReLU
ROUNDING = 1e-9  # relative, of two closed forms


def plain_bound(law, Z, weight, noise, parameters):
    """Compute minus the weighted bound of scaled rows, with one given draw each, once more."""
    codes, _ = plain_forward(law.encoder, parameters[: law.split], Z)
    mean, log_variance = np.split(codes, 2, axis=1)
    A, means = plain_forward(law.decoder, parameters[law.split :], mean + np.exp(0.5 * log_variance) * noise)
    if law.loss == SQUARED:
        logs = -0.5 * (((Z - means) ** 2).sum(axis=1) / law.variance + Z.shape[1] * (LOG_2PI + np.log(law.variance)))
    else:
        logs = (Z * A - np.logaddexp(0.0, A)).sum(axis=1)
    kl = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum(axis=1)
    return float(weight @ (kl - logs))


def gradient_at(law, Z, weight, noise, parameters):
    """Return minus the weighted bound of scaled rows, with one given draw each, and its gradient by back-propagation."""
    n, k, gradient = len(Z), int(law.decoder.sizes[0]), np.zeros(len(parameters))
    room, out = (room_of(new_rooms(shape, 1, n, float), 0) for shape in (law.encoder, law.decoder))
    room.values[: Z.size] = Z.ravel()
    steps = new_steps(GradientDescent(1.0), [law.encoder, law.decoder], float)
    plan = Plan(law.encoder, law.decoder, law.loss, 1, False, False, 1.0, steps)
    with serial_blas():
        noise = np.ascontiguousarray(noise).reshape(n * k)
        value, _ = bound_gradient(plan, parameters, law.variance, room, out, weight, noise, n, UNMOVED, gradient)
    return value, gradient


def back_propagation(blocks, law):
    """Compare derivatives of the bound, on rows like those of the table, with central differences; the draws are held fixed."""
    X, weight = (None if a is None else a[:SHOWN] for a in blocks.first())
    rng, Z = np.random.default_rng(0), (np.asarray(X, dtype=float) - law.mean) / law.scale
    Z = Z + BESIDE * rng.standard_normal(Z.shape) if law.loss == SQUARED else np.clip(Z + BESIDE * rng.random(Z.shape), 0, 1)
    weight = np.ones(len(Z)) if weight is None else np.asarray(weight, dtype=float)
    noise, parameters = rng.standard_normal((len(Z), int(law.decoder.sizes[0]))), off_zero(law.parameters.astype(float), rng)
    value, gradient = gradient_at(law, Z, weight, noise, parameters)
    ahead, behind = (directions_of(shape, rng, many=0) for shape in (law.encoder, law.decoder))
    directions = np.zeros((len(ahead) + len(behind), len(parameters)))
    directions[: len(ahead), : law.split], directions[len(ahead) :, law.split :] = ahead, behind
    error = disagreement(partial(plain_bound, law, Z, weight, noise), parameters, gradient, directions, value)
    claim = "derivatives of the bound, its draws held fixed, are those of central differences"
    return Check("back-propagation", error, LIMIT, "proof", claim)


def below_evidence(model, blocks):
    """Compare the bound with log p(x) by importance sampling, in units of the doubt of both."""
    (bound, _), (doubt, _) = model._mean_bounds(blocks, DRAWS, 2)
    (_, log_p), (_, other) = model._mean_bounds(blocks, DRAWS, 3)
    doubt = float(np.hypot(doubt, other)) + ROUNDING * max(abs(log_p), 1.0)
    claim = "the bound exceeds log p(x) by importance sampling by no more of its standard errors"
    return Check("below log p(x)", float((bound - log_p) / doubt), ERRORS, "evidence", claim)


def scaled_moments_block(X, weight, mean, scale):
    """Moments of the scaled rows of a block."""
    return moments_block((np.asarray(X, dtype=float) - mean) / scale, weight)


def closed_forms(blocks, law):
    """Compare the bound, log p(x) and the largest log p(x) of any linear decoder, all in closed form."""
    weight, sums = blocks.reduce(linear_block, law)
    bound, exact = sums / weight
    slack = ROUNDING * max(abs(exact), 1.0)
    claim = "the bound exceeds log p(x) in closed form by no more nats a row"
    checks = [Check("below the law", float(bound - exact), slack, "proof", claim)]
    k, d = int(law.decoder.sizes[0]), len(law.mean)
    if k < d <= WIDE:
        found = blocks.reduce(scaled_moments_block, law.mean, law.scale)
        values = np.maximum(np.linalg.eigvalsh(found.scatter / found.weight)[::-1], 0.0)
        noise = max(float(values[k:].mean()), LEAST)
        used = np.maximum(values[:k], noise)
        fits = (values[:k] / used).sum() + values[k:].sum() / noise
        best = -0.5 * (d * LOG_2PI + np.log(used).sum() + (d - k) * np.log(noise) + fits) + law.log_units
        claim = "no linear decoder makes a row more probable by more nats"
        checks.append(Check("from the best", float(best - exact), np.inf, "proof", claim))
    return checks


def certificate(model, blocks, law, again, others):
    """Check a fitted `VariationalAutoencoder`; `again` are the attributes of the fit, repeated; `others`, checks."""
    bound = model._mean_bounds(blocks, ELBO_DRAWS, 0)[0][0]
    checks = [
        same(model.parameters_, again["parameters_"], "weights", "the same visits and draws lead to these weights"),
        same(model.noise_variance_, again["noise_variance_"], "noise", "and to this variance of the noise"),
        same(model.elbo_, bound, "bound", "mean bound of a row, with the draws of the fit"),
        *others,
        back_propagation(blocks, law),
        below_evidence(model, blocks),
    ]
    if law.loss == SQUARED and len(law.decoder.codes) == 1:
        checks += closed_forms(blocks, law)
    return Certificate(*checks, subject=repr(model))
