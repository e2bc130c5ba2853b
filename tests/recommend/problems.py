"""A small table of ratings for the tests of this family."""

import numpy as np


def ratings(seed=0, n_users=40, n_items=25, share=0.4, rank=2, noise=0.4):
    """Draw pairs of ids (whole numbers) and ratings of a low-rank model with biases."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((n_users, rank)), rng.standard_normal((n_items, rank))
    R = 3.5 + 0.5 * rng.standard_normal((n_users, 1)) + 0.5 * rng.standard_normal((1, n_items)) + U @ V.T
    R += noise * rng.standard_normal(R.shape)
    user, item = np.nonzero(rng.random(R.shape) < share)
    order = rng.permutation(len(user))
    return np.column_stack([user, item])[order], R[user, item][order]


SETTINGS = {"n_components": 3, "prior_precision": 2.0, "random_state": 0}
