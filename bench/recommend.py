"""Factorization of ratings: to no larger an error on held-out ratings, and implicit feedback to no larger an objective.

Ratings are products of 16 factors of users and items, biases and noise, and popular items are rated more often. Ours takes 15
sweeps. Surprise's SVD takes its default 20 epochs, after which its error is far larger, and as many as it needs to come near,
with a learning rate and a penalty that were searched for.
Implicit feedback: one function computes the exact objective over all cells for both. `implicit` takes its default 15
iterations, in single precision, with three steps of conjugate gradients for each row. Ours is below that after 6 sweeps; the
last row has 15 of ours as well. Its own threads get the processors and BLAS inside one, as it asks for.
"""

from functools import partial

import numpy as np
from scipy.sparse import csr_array, csr_matrix
from threadpoolctl import threadpool_limits

from bench.harness import THREADS, Row
from lemmata.recommend import ProbabilisticMatrixFactorization

FACTORS, SWEEPS, FEWER = 32, 15, 6
ALPHA, PENALTY, NOISE = 40.0, 1.0, 0.5


def pairs(n_users, n_items, n_ratings, rng):
    """Draw different pairs, items by their popularity."""
    popularity = 1 / np.arange(1, n_items + 1) ** 0.6
    users = rng.integers(n_users, size=2 * n_ratings)
    items = rng.choice(n_items, size=2 * n_ratings, p=popularity / popularity.sum())
    cells = rng.permutation(np.unique(users * n_items + items))[:n_ratings]
    return cells // n_items, cells % n_items


def explicit(n_users, n_items, n_ratings):
    import pandas as pd
    from surprise import Dataset, Reader

    rng = np.random.default_rng(0)
    users, items = pairs(n_users, n_items, n_ratings, rng)
    factors = [rng.standard_normal((n, 16)) / 4**0.5 for n in (n_users, n_items)]
    biases = [0.4 * rng.standard_normal(n) for n in (n_users, n_items)]
    ratings = 3.5 + biases[0][users] + biases[1][items] + (factors[0][users] * factors[1][items]).sum(axis=1)
    ratings += NOISE * rng.standard_normal(n_ratings)
    train = n_ratings - n_ratings // 10
    X = np.column_stack([users, items])
    frame = pd.DataFrame({"user": users[:train], "item": items[:train], "rating": ratings[:train]})
    peer = Dataset.load_from_df(frame, Reader(rating_scale=(-100, 100))).build_full_trainset()
    return X[:train], ratings[:train], X[train:], ratings[train:], peer


def ours_explicit(data):
    settings = {"noise_variance": NOISE**2, "prior_precision": 0.2, "scale_by_counts": True, "random_state": 0}
    return ProbabilisticMatrixFactorization(FACTORS, max_iter=SWEEPS, **settings).fit(data[0], data[1]).predict


def surprise(penalty, epochs, rate, data):
    from surprise import SVD

    model = SVD(FACTORS, n_epochs=epochs, reg_all=penalty, lr_all=rate, random_state=0).fit(data[4])
    return lambda X: np.array([model.predict(u, i, clip=False).est for u, i in X.tolist()])


def error(data, predict):
    return float(np.sqrt(np.mean((predict(data[2]) - data[3]) ** 2)))


def implicit_table(n_users, n_items, n_entries):
    rng = np.random.default_rng(0)
    users, items = pairs(n_users, n_items, n_entries, rng)
    amounts = rng.geometric(0.5, n_entries).astype(float)
    return csr_array((amounts, (users, items)), shape=(n_users, n_items))


def ours_implicit(k, sweeps, X):
    settings = {"implicit": True, "confidence": ALPHA, "prior_precision": PENALTY, "keep_ratings": False, "random_state": 0}
    model = ProbabilisticMatrixFactorization(k, max_iter=sweeps, tol=0.0, **settings).fit(X)
    return model.user_factors_, model.item_factors_


def implicit(k, X):
    from implicit.als import AlternatingLeastSquares

    model = AlternatingLeastSquares(
        k, regularization=PENALTY, alpha=ALPHA, iterations=SWEEPS, num_threads=THREADS, use_gpu=False, random_state=0
    )
    with threadpool_limits(1, "blas"):
        model.fit(csr_matrix(X), show_progress=False)
    return model.user_factors, model.item_factors


def objective(X, factors):
    """Σ (1 + αr)(1 − x)² over what was seen + Σ x² over the rest + penalty, exactly."""
    U, V = (np.asarray(f, dtype=float) for f in factors)
    cells = X.tocoo()
    x = np.einsum("ij,ij->i", U[cells.row], V[cells.col])
    seen = ((1 + ALPHA * cells.data) * (1 - x) ** 2 - x**2).sum()
    return float(seen + ((U.T @ U) * (V.T @ V)).sum() + PENALTY * ((U**2).sum() + (V**2).sum()))


ROWS = [
    Row(
        f"explicit ratings, 1,000,000 of 20,000 × 5,000, k = {FACTORS}, {SWEEPS} sweeps: held-out error",
        partial(explicit, 20_000, 5_000, 1_000_000),
        ours_explicit,
        {
            "Surprise SVD, 20 epochs": partial(surprise, 0.02, 20, 0.005),
            "Surprise SVD, 100 epochs": partial(surprise, 0.1, 100, 0.02),
        },
        error,
        {"Surprise SVD, 100 epochs": 5.0},
        agree=0.05,
        repeats=1,
    ),
    *(
        Row(
            f"implicit feedback, 400,000 of 20,000 × 10,000, k = {k}, {sweeps} sweeps: objective",
            partial(implicit_table, 20_000, 10_000, 400_000),
            partial(ours_implicit, k, sweeps),
            {"implicit": partial(implicit, k)},
            objective,
            bars,
            agree=0.1,
            repeats=5,
        )
        for k, sweeps, bars in ((64, FEWER, {"implicit": 1.0}), (100, FEWER, {"implicit": 1.0}), (64, SWEEPS, {}))
    ),
]
