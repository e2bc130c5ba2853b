"""Non-negative factorization of sparse tables: the same start for all, and no stopping before the iterations are done.

The error is ‖X − WH‖, or √(2 × divergence), of the factors that each one gives. At equal iterations ours is the smaller one,
because each pass improves W more than once, or looks ahead; so there are also rows in which ours stops when it is no worse. The
large table tells how much memory it takes: the table itself is 60 MB, and no peer is asked.
"""

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF as PeerNMF

from bench.harness import Row
from lemmata.decomposition import NMF

STEPS = 50
NAMES = {"squared": "frobenius", "kl": "kullback-leibler"}


def start(X, k):
    rng = np.random.default_rng(0)
    return X, rng.random((X.shape[0], k)), rng.random((k, X.shape[1]))


def table():
    """Make the table as SciPy does: it frees a large array, after which scikit-learn's own are not paged in anew each time."""
    return start(sp.random(20_000, 2_000, 0.01, format="csr", random_state=0), 20)


def large():
    rng, m = np.random.default_rng(0), 5_000_000
    rows, columns = rng.integers(100_000, size=m), rng.integers(50_000, size=m)
    return start(sp.csr_matrix((rng.random(m) + 1e-3, (rows, columns)), shape=(100_000, 50_000)), 20)


def ours(loss, steps, data):
    X, W, H = data
    return NMF(len(H), loss=loss, init=(W, H), tol=0.0, max_iter=steps).fit(X)


def scikit(loss, data):
    X, W, H = data
    solver = "cd" if loss == "squared" else "mu"
    model = PeerNMF(len(H), solver=solver, beta_loss=NAMES[loss], init="custom", tol=0.0, max_iter=STEPS)
    return model.fit_transform(X, W=W.copy(), H=H.copy()), model.components_


def error(loss, data, fitted):
    """Give the error of a pair of factors, computed without a dense table."""
    X = data[0]
    W, H = fitted if isinstance(fitted, tuple) else (fitted.transform(X), fitted.components_)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    fits = np.einsum("er,er->e", W[rows], H.T[X.indices])
    if loss == "squared":
        return float(np.sqrt(((X.data - fits) ** 2).sum() - (fits**2).sum() + np.sum((W.T @ W) * (H @ H.T))))
    return float(np.sqrt(2 * (np.sum(X.data * np.log(X.data / fits) - X.data) + W.sum(axis=0) @ H.sum(axis=1))))


def row(loss, steps, bar, name):
    return Row(
        f"NMF {loss} 20,000 × 2,000 sparse 1 %, k = 20, {name}",
        table,
        partial(ours, loss, steps),
        {"scikit-learn": partial(scikit, loss)},
        partial(error, loss),
        {"scikit-learn": bar},
        agree=1e-2,  # ours is smaller, see above
        repeats=3,
    )


ROWS = [
    row("squared", STEPS, 1.5, f"{STEPS} iterations"),
    row("kl", STEPS, 5.0, f"{STEPS} iterations"),
    row("squared", 20, 1.5, f"to the error of its {STEPS} iterations"),
    row("kl", 25, 5.0, f"to the error of its {STEPS} iterations"),
    *(
        Row(
            f"NMF {loss} 100,000 × 50,000 sparse 0.1 %, k = 20, 10 iterations",
            large,
            partial(ours, loss, 10),
            {},
            partial(error, loss),
            repeats=1,
        )
        for loss in ("squared", "kl")
    ),
]
