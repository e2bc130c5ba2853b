"""Write implicit.json: the objective that the package `implicit` reaches on the table of tests/recommend/test_factorization.py.

pip install implicit && python tests/reference/make_implicit.py
"""

import json
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits


def table():
    """Draw amounts of attention, (40, 30)."""
    return np.random.default_rng(2).poisson(0.3, (40, 30)).astype(float)


def loss(R, U, V):
    """Give the objective with α = 10 and a penalty of 1, over all cells."""
    U, V = np.asarray(U, float), np.asarray(V, float)
    return float(((1 + 10.0 * R) * ((R > 0) - U @ V.T) ** 2).sum() + (U**2).sum() + (V**2).sum())


def main():
    """Let it run from two starts, with exact solutions of its rows."""
    import implicit  # here, so that collecting tests does not need it
    from implicit.als import AlternatingLeastSquares

    R, ends = table(), []
    for seed in range(2):
        with threadpool_limits(1, "blas"):
            options = {"iterations": 100, "use_gpu": False, "use_cg": False, "num_threads": 1, "random_state": seed}
            peer = AlternatingLeastSquares(4, regularization=1.0, alpha=10.0, **options)
            peer.fit(csr_matrix(R), show_progress=False)
        ends.append(loss(R, peer.user_factors, peer.item_factors))
    found = {"version": implicit.__version__, "entries": int(R.sum()), "objectives": ends}
    Path(__file__).with_name("implicit.json").write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
