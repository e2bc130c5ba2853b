"""What a fitted autoencoder says of rows: the bound of log p(x), and log p(x) itself by importance sampling.

With draws z₁, …, z_S from the encoder's q(z|x) and weights wₛ = p(x|zₛ) p(zₛ) / q(zₛ|x), whose mean is p(x),

    mean of log wₛ  ≤  log mean of wₛ  ≤  log p(x)   in expectation [1],

the first the bound that the fit maximizes (with KL in closed form); the second rises with S, to log p(x). The draws of a row
follow from its entries and a seed: what is said of a row depends neither on its neighbors nor on its place, and different rows
have draws of their own, so that means over rows are more certain than each.

A decoder without hidden layers and a Gaussian around it is a law in closed form: with z ~ N(0, I), x = Wz + b + noise has the
law N(b, WWᵀ + σ²I), that of probabilistic PCA [2], and no bound may exceed it.

[1] Burda, Grosse & Salakhutdinov, ICLR (2016). [2] Tipping & Bishop, J. R. Stat. Soc. B 61 (1999).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from lemmata.core.kernel import kernel
from lemmata.core.threads import serial_blas
from lemmata.generative.vae_kernels import LOG_2PI, decode, place
from lemmata.generative.visits import fill_normals
from lemmata.neural_network.layers import Shape, forward, layer, new_rooms, room_of, unit_rows
from lemmata.neural_network.losses import SQUARED
from lemmata.neural_network.passes import outputs_of, rows_of
from lemmata.neural_network.training import gather
from lemmata.probability.logarithms import log_excess

ELBO_DRAWS = 16  # of each row, for the bound that is kept and checked
TILE = 512  # rows and draws at once
NEAR_ONE = (0.5, 2.0)  # standard deviations of which the divergence is taken by what their variance exceeds one
WIDEST = 30.0  # log σ² of the encoder's law at most, of one sign or the other: a row far off would have it overflow
STEP, MIX1, MIX2 = (
    0x9E3779B97F4A7C15,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
)  # of splitmix64 (Steele, Lea & Flood, OOPSLA 2014)


class Law(NamedTuple):
    """A fitted autoencoder: shapes and parameters of both networks, and how rows become their inputs."""

    encoder: Shape
    decoder: Shape
    loss: int
    parameters: np.ndarray
    variance: float
    mean: np.ndarray
    scale: np.ndarray

    @property
    def split(self):
        """Where the decoder's parameters begin."""
        return int(self.encoder.starts[-1])

    @property
    def log_units(self):
        """What a density gains where columns are not divided by their scales."""
        return -float(np.log(self.scale).sum())


def gaussian_kl(mu, sigma):
    """Return KL(N(μ, diag σ²) ‖ N(0, I)) = ½ Σ (μ² + σ² − 1 − log σ²), summed over the last axis; σ are standard deviations.

    Examples
    --------
    >>> gaussian_kl([0.5, -1.0], [0.8, 1.5])
    0.887678
    """
    mu, sigma = np.asarray(mu, dtype=float), np.asarray(sigma, dtype=float)
    if not (sigma > 0).all():
        raise ValueError("sigma holds standard deviations, which must be above 0.")
    near = (sigma > NEAR_ONE[0]) & (sigma < NEAR_ONE[1])  # there σ² − 1 − log σ² cancels; elsewhere 1 + t loses what is in σ²
    t = np.where(near, (sigma - 1) * (sigma + 1), 0.0)
    excess = np.where(near, log_excess(t), sigma**2 - 1 - 2 * np.log(sigma))  # t − log(1 + t) with 1 + t = σ²
    total = 0.5 * (mu**2 + excess).sum(axis=-1)
    return float(total) if total.ndim == 0 else total


def mixed(words):
    """Mix the bits of 64-bit words, one by one and reversibly."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(MIX1)  # 30, 27, 31: the shifts of splitmix64
    words = (words ^ (words >> np.uint64(27))) * np.uint64(MIX2)
    return words ^ (words >> np.uint64(31))


def states_of(X, seed):
    """Return a state of `core.xoshiro` for each row, a function of its entries and the seed.

    Examples
    --------
    >>> states = states_of(np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]), 7)
    >>> states.shape, bool((states[0] == states[2]).all()), bool((states[0] == states[1]).any())
    ((3, 4), True, False)
    """
    bits = np.ascontiguousarray(X.astype(float) + 0.0).view(np.uint64)  # + 0.0: there are two zeros
    words = np.full(len(bits), seed, np.uint64)
    for column in bits.T:
        words = mixed((words ^ column) + np.uint64(STEP))
    states = []
    for _ in range(4):
        words = words + np.uint64(STEP)
        states.append(mixed(words))
    return np.stack(states, axis=1)


@kernel
def fill_bounds(law, values, mean, scale, weight, n_draws, states, room, out, bounds, pulls):
    """Write, for every row: the bound and log p(x). Add, for every draw, how far it alone pulls the sums of both over rows."""
    n, k, d = len(values), law.decoder.sizes[0], law.decoder.sizes[-1]
    split, last, tile = law.encoder.starts[-1], len(law.decoder.codes), room.capacity
    precision, constant = 1.0, 0.0
    if law.loss == SQUARED:
        precision, constant = 1.0 / law.variance, 0.5 * d * (LOG_2PI + np.log(law.variance))
    kind = law.parameters.dtype
    order, own, noise = np.arange(n), np.empty(n_draws * k, kind), np.empty(tile * n_draws * k, kind)
    losses, share, logs = np.empty(tile * n_draws), np.ones(tile, kind), np.empty(n_draws)
    for start in range(0, n, tile):
        m = min(tile, n - start)
        gather(values, None, None, mean, scale, order, start, start + m, room.values)
        forward(law.encoder, law.parameters[:split], room, m, 0.0, states[0])
        codes = unit_rows(law.encoder, room.values, room.capacity, len(law.encoder.codes), m)
        for i in range(m):
            for j in range(k):
                codes[(2 * i + 1) * k + j] = min(max(codes[(2 * i + 1) * k + j], -WIDEST), WIDEST)
            fill_normals(states[start + i], own)
            for s in range(n_draws):
                for j in range(k):
                    noise[(s * m + i) * k + j] = own[s * k + j]
        z = unit_rows(law.decoder, out.values, out.capacity, 0, m * n_draws)
        place(codes, noise, m, k, n_draws, z)
        forward(law.decoder, law.parameters[split:], out, m * n_draws, 0.0, states[0])
        decode(
            law,
            n_draws,
            unit_rows(law.decoder, out.values, out.capacity, last, m * n_draws),
            unit_rows(law.encoder, room.values, room.capacity, 0, m).reshape(m, d),
            share,
            m,
            unit_rows(law.decoder, out.deltas, out.capacity, last, m * n_draws),
            losses,
            out.chunk,
        )
        for i in range(m):
            kl = 0.0
            for j in range(k):
                center, log_variance = np.float64(codes[2 * i * k + j]), np.float64(codes[(2 * i + 1) * k + j])
                kl += 0.5 * (center * center + np.exp(log_variance) - 1.0 - log_variance)
            top, mean_loss, total = -np.inf, 0.0, 0.0
            for s in range(n_draws):
                loss, log_ratio = precision * losses[s * m + i], 0.0
                for j in range(k):
                    q = (s * m + i) * k + j
                    at, e = np.float64(z[q]), np.float64(noise[q])
                    log_ratio += 0.5 * (e * e - at * at + codes[(2 * i + 1) * k + j])
                logs[s] = log_ratio - loss
                top = max(top, logs[s])
                mean_loss += loss / n_draws
            for s in range(n_draws):
                total += np.exp(logs[s] - top)
            bounds[start + i, 0] = -mean_loss - constant - kl
            bounds[start + i, 1] = top + np.log(total / n_draws) - constant
            for s in range(n_draws):
                pulls[0, s] += weight[start + i] * (mean_loss - precision * losses[s * m + i])
                pulls[1, s] += weight[start + i] * (n_draws * np.exp(logs[s] - top) / total - 1.0)  # of a log, to first order


def bounds_and_pulls(X, weight, law, n_draws, seed):
    """Return the bound and log p(x) of each row of a block, (n, 2), and the pulls of the draws on their sums, (2, S)."""
    dtype, tile = law.parameters.dtype, max(1, min(TILE // n_draws, len(X)))
    room, out = (room_of(new_rooms(shape, 1, tile * m, dtype), 0) for shape, m in ((law.encoder, 1), (law.decoder, n_draws)))
    bounds, pulls = np.empty((len(X), 2)), np.zeros((2, n_draws))
    with serial_blas():
        rows = rows_of(X, law.mean, law.scale, float)
        seeds = states_of(X, seed)
        fill_bounds(law, rows.values, rows.mean, rows.scale, weight, n_draws, seeds, room, out, bounds, pulls)
    bounds[np.isnan(bounds)] = -np.inf  # a row so far off that its squares leave the numbers
    return bounds + law.log_units, pulls


def bounds_block(X, weight, law, n_draws, seed):
    """Return of each row of a block: the bound, and log p(x), (n, 2)."""
    return bounds_and_pulls(X, np.ones(len(X)), law, n_draws, seed)[0]


def total_block(X, weight, law, n_draws, seed):
    """Sum over a block: weight, the bound and log p(x), and the pulls of the draws on these sums."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    bounds, pulls = bounds_and_pulls(X, w, law, n_draws, seed)
    return float(w.sum()), w @ bounds, pulls


def mean_bounds(blocks, law, n_draws, seed):
    """Return the means over rows of the bound and of log p(x), and the standard error that the draws leave to each.

    Equal rows have equal draws: the error is that of sums over rows, one for each number of a draw, which are independent.
    """
    weight, sums, pulls = blocks.reduce(total_block, law, n_draws, seed)
    return sums / weight, np.sqrt((pulls**2).sum(axis=1) / (max(n_draws - 1, 1) * n_draws)) / weight


def codes_block(X, weight, law):
    """Return μ and log σ² of each row of a block, (n, 2k)."""
    return bounded(outputs_of(law.encoder, law.parameters[: law.split], rows_of(X, law.mean, law.scale, float)))


def bounded(codes):
    """Keep log σ², the second half of what the encoder gives, from leaving the numbers."""
    k = codes.shape[1] // 2
    codes[:, k:] = np.clip(codes[:, k:], -WIDEST, WIDEST)
    return codes


def decoded(law, Z):
    """Return the means of rows given their coordinates, in the units of the table."""
    Z = np.ascontiguousarray(Z, dtype=law.parameters.dtype)
    means = outputs_of(law.decoder, law.parameters[law.split :], rows_of(Z, None, None, law.parameters.dtype))
    return means * law.scale + law.mean


def linear_block(X, weight, law):
    """Sum over a block: weight, bound and log p(x) of a Gaussian decoder without hidden layers, both in closed form."""
    w = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    rows, k = (np.asarray(X, dtype=float) - law.mean) / law.scale, int(law.decoder.sizes[0])
    parameters, d = law.parameters.astype(float), rows.shape[1]
    (A, a), (W, b) = layer(law.encoder, parameters[: law.split], 0), layer(law.decoder, parameters[law.split :], 0)
    codes = bounded(rows @ A + a)
    mean, log_variance = codes[:, :k], codes[:, k:]
    missed = ((rows - mean @ W - b) ** 2).sum(axis=1) + np.exp(log_variance) @ (W**2).sum(axis=1)
    kl = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum(axis=1)
    bound = -0.5 * (d * (LOG_2PI + np.log(law.variance)) + missed / law.variance) - kl
    inner = W @ W.T + law.variance * np.eye(k)  # WᵀW + σ²I is inverted in k dimensions
    away = rows - b
    along = away @ W.T
    squares = ((away**2).sum(axis=1) - (along * cho_solve(cho_factor(inner), along.T).T).sum(axis=1)) / law.variance
    log_det = np.linalg.slogdet(inner)[1] + (d - k) * np.log(law.variance)
    exact = -0.5 * (d * LOG_2PI + log_det + squares)
    return float(w.sum()), np.array([w @ bound, w @ exact]) + w.sum() * law.log_units
