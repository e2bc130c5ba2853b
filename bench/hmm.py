"""Hidden Markov models: the same number of plain Baum-Welch steps from the same start, and Viterbi's path, beside hmmlearn.

hmmlearn's priors are switched off, so that both climb the same likelihood.
"""

from functools import partial

import numpy as np

from bench.harness import Row
from lemmata.hmm import CategoricalHMM, GaussianHMM

STEPS = 20


def chain(k, rng):
    transition = rng.dirichlet(np.ones(k), k) + 5.0 * np.eye(k)
    return np.full(k, 1.0 / k), transition / transition.sum(axis=1, keepdims=True)


def states_of(transition, n, rng):
    reach, states, uniforms = np.cumsum(transition, axis=1), np.zeros(n, dtype=int), rng.random(n)
    for t in range(1, n):
        states[t] = min(np.searchsorted(reach[states[t - 1]], uniforms[t]), len(transition) - 1)
    return states


def gaussian_table(n, d, k):
    rng = np.random.default_rng(0)
    start, transition = chain(k, rng)
    means = 2.0 * rng.standard_normal((k, d))
    X = means[states_of(transition, n, rng)] + rng.standard_normal((n, d))
    return X, [n], start, rng.dirichlet(np.full(k, 5.0), k), means + 0.5 * rng.standard_normal((k, d))


def categorical_table(n, k, symbols, length):
    rng = np.random.default_rng(0)
    start, transition = chain(k, rng)
    emission = rng.dirichlet(np.full(symbols, 0.3), k)
    reach = np.cumsum(emission, axis=1)[states_of(transition, n, rng)]
    X = np.minimum((rng.random(n)[:, None] > reach).sum(axis=1), symbols - 1)[:, None]
    return X, [length] * (n // length), start, rng.dirichlet(np.full(k, 5.0), k), rng.dirichlet(np.full(symbols, 2.0), k)


def our_gaussian(data):
    X, lengths, start, transition, means = data
    given = {"startprob_init": start, "transmat_init": transition, "means_init": means, "covars_init": np.ones(means.shape)}
    return GaussianHMM(len(means), min_covar=0.0, n_iter=STEPS, tol=0.0, acceleration=None, **given).fit(X, lengths=lengths)


def their_gaussian(data):
    from hmmlearn.hmm import GaussianHMM as Peer

    X, lengths, start, transition, means = data
    options = {"covars_prior": 0.0, "covars_weight": 0.0, "min_covar": 0.0, "n_iter": STEPS, "tol": -np.inf, "init_params": ""}
    model = Peer(len(means), covariance_type="diag", **options)
    model.startprob_, model.transmat_, model.means_, model.covars_ = start, transition, means, np.ones(means.shape)
    return model.fit(X, lengths)


def our_categorical(data):
    X, lengths, start, transition, emission = data
    given = {"startprob_init": start, "transmat_init": transition, "emissionprob_init": emission}
    options = {"n_features": emission.shape[1], "n_iter": STEPS, "tol": 0.0, "acceleration": None}
    return CategoricalHMM(len(emission), **options, **given).fit(X, lengths=lengths)


def their_categorical(data):
    from hmmlearn.hmm import CategoricalHMM as Peer

    X, lengths, start, transition, emission = data
    model = Peer(len(emission), n_features=emission.shape[1], n_iter=STEPS, tol=-np.inf, init_params="")
    model.startprob_, model.transmat_, model.emissionprob_ = start, transition, emission
    return model.fit(X, lengths)


def likelihood(data, model):
    X, lengths = data[:2]
    return float(model.score(X, lengths=lengths))


def viterbi_table(n, k):
    rng = np.random.default_rng(0)
    start, transition = chain(k, rng)
    return rng.integers(20, size=(n, 1)), [n], start, transition, rng.dirichlet(np.ones(20), k)


def our_path(data):
    X, _, start, transition, emission = data
    model = CategoricalHMM(len(emission), n_features=20)
    model.startprob_, model.transmat_, model.emissionprob_ = start, transition, emission
    model.n_symbols_, model.n_features_in_ = np.array([20]), 1
    return model.decode(X)[0]


def their_path(data):
    from hmmlearn.hmm import CategoricalHMM as Peer

    X, _, start, transition, emission = data
    model = Peer(len(emission), n_features=20)
    model.startprob_, model.transmat_, model.emissionprob_ = start, transition, emission
    return model.decode(X)[0]


def value(data, log_prob):
    return float(log_prob)


ROWS = [
    Row(
        f"GaussianHMM diag, 10 states, T = 100,000, d = 5, {STEPS} iterations",
        partial(gaussian_table, 100_000, 5, 10),
        our_gaussian,
        {"hmmlearn": their_gaussian},
        likelihood,
        {"hmmlearn": 15.0},
        agree=1e-9,
        repeats=2,
    ),
    *(
        Row(
            f"CategoricalHMM 10 states, 20 symbols, {what}, {STEPS} iterations",
            partial(categorical_table, 100_000, 10, 20, length),
            our_categorical,
            {"hmmlearn": their_categorical},
            likelihood,
            {"hmmlearn": 15.0},
            agree=1e-9,
            repeats=2,
        )
        for what, length in (("T = 100,000", 100_000), ("1,000 sequences of 100", 100))
    ),
    Row(
        "Viterbi, 50 states, T = 1,000,000",
        partial(viterbi_table, 1_000_000, 50),
        our_path,
        {"hmmlearn": their_path},
        value,
        {"hmmlearn": 3.0},
        agree=1e-9,
        repeats=1,
    ),
]
