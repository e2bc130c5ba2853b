"""The cache of kernel rows: always right, never larger than it may be."""

import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from lemmata.kernels import RBF, Linear, White
from lemmata.svm import SVC
from lemmata.svm.cache import KernelCache


@pytest.mark.parametrize("kernel", [RBF(0.7), Linear(), 0.5 * RBF(2.0) + White(0.1)])
@pytest.mark.parametrize("size", [0, 8_000, 10**9])
def test_rows_are_those_of_the_matrix_whatever_was_asked_before(kernel, size):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5)).astype(np.float32)
    cache = KernelCache(kernel, kernel.prepare(X), size)
    K = kernel(X.astype(float))
    columns = np.arange(300)
    for turn in range(40):
        wanted = rng.choice(columns, min(20, cache.capacity), replace=turn % 2 == 0)
        found = cache.store[cache.slots(wanted)]
        np.testing.assert_allclose(found, K[np.ix_(wanted, columns)], atol=1e-5)  # single precision
        if turn % 10 == 9:
            kept = np.sort(rng.choice(len(columns), len(columns) * 2 // 3, replace=False))
            columns = columns[kept]
            cache.narrow(kept, columns)
        if turn == 25:
            cache.widen()
            columns = np.arange(300)


def test_the_least_room_holds_a_working_set():
    kernel = Linear()
    cache = KernelCache(kernel, kernel.prepare(np.ones((1000, 2), np.float32)), 0)
    assert cache.capacity == 32
    assert KernelCache(kernel, kernel.prepare(np.ones((1000, 2), np.float32)), 10**9).capacity == 1000  # no more than there are


def test_memory_stays_within_the_cache():
    X, y = make_blobs(10_000, 20, centers=2, cluster_std=6.0, random_state=0)
    SVC(gamma=0.01, tol=1e-3).fit(X[:2100], y[:2100])  # compiles, which takes memory of its own
    tracemalloc.start()
    SVC(gamma=0.01, tol=1e-3, cache_size=20.0).fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < (20 + 100) * 2**20
