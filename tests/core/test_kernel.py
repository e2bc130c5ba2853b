"""Compiled kernels: what fast math may not do, that threads overlap, and where compiled code is kept."""

import os
import textwrap
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest

from helpers import digest, finished, python
from lemmata.core.kernel import kernel

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled code")

MODULE = """
    from lemmata.core.kernel import kernel

    @kernel
    def total(x):
        s = 0.0
        for i in range(len(x)):
            s += x[i]
        return s
"""


@kernel
def count_special(x):
    """Count NaN by two tests, infinities, and what compares as smaller than a sentinel of infinity."""
    nan, unequal, infinite, smaller = 0, 0, 0, 0
    best = np.inf
    for i in range(len(x)):
        nan += np.isnan(x[i])
        unequal += x[i] != x[i]
        infinite += np.isinf(x[i])
        if x[i] < best:
            smaller += 1
    return nan, unequal, infinite, smaller


@kernel
def ratios(a, b):
    """Divide, by zero as well."""
    out = np.empty(len(a))
    for i in range(len(a)):
        out[i] = a[i] / b[i]
    return out


@kernel
def dot(a, b):
    """Sum products."""
    s = 0.0
    for i in range(len(a)):
        s += a[i] * b[i]
    return s


@kernel
def spin(n):
    """Be busy for n steps (of xorshift, which no compiler can shorten) without letting another thread in."""
    x = np.uint64(88172645463325252)
    for _ in range(n):
        x ^= x << np.uint64(13)
        x ^= x >> np.uint64(7)
        x ^= x << np.uint64(17)
    return x


# Flags.


def test_nan_and_infinity_keep_their_meaning():
    x = np.array([1.0, np.nan, np.inf, -np.inf, np.nan, -2.0, 0.0])
    assert tuple(int(n) for n in count_special(x)) == (2, 2, 2, 4)


def test_nan_survives_a_sum():
    x = np.ones(1000)
    assert dot(x, x) == 1000.0
    x[777] = np.nan
    assert np.isnan(dot(x, x))
    x[777] = np.inf
    assert dot(x, x) == np.inf


@compiled_only
def test_division_by_zero_is_that_of_numpy():
    a, b = np.array([1.0, -1.0, 0.0, 6.0]), np.array([0.0, 0.0, 0.0, 3.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(ratios(a, b), a / b)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_right_to_rounding(dtype):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1001)).astype(dtype)
    exact = float(np.dot(a.astype(np.longdouble), b.astype(np.longdouble)))
    scale = float(np.abs(a.astype(float)) @ np.abs(b.astype(float)))
    np.testing.assert_allclose(dot(a, b), exact, rtol=0, atol=1001 * np.finfo(dtype).eps * scale)


@compiled_only
def test_two_threads_overlap():
    spin(10)
    started = time.perf_counter()
    spin(10**7)
    steps = int(10**7 * 0.4 / (time.perf_counter() - started))  # about 0.4 s
    span, ticks = [], []

    def work():
        span.append(time.perf_counter())
        spin(steps)
        span.append(time.perf_counter())

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(2e-3)
    thread.join()
    begin, end = span
    quarter = (end - begin) / 4
    assert any(begin + quarter < tick < end - quarter for tick in ticks)  # this thread ran while the kernel was at work


@compiled_only
def test_read_only_arrays_and_both_precisions_are_taken():
    x = np.arange(4.0)
    x.flags.writeable = False
    assert dot(x, x) == 14.0
    assert dot(x.astype(np.float32), x.astype(np.float32)) == 14.0


# Threads of numba, and where compiled code is kept.


@compiled_only
def test_a_fit_starts_no_threading_layer_of_numba():
    code = """
        import os
        import threading
        import numba
        import numpy as np
        from lemmata.cluster import KMeans

        KMeans(5, random_state=0).fit(np.random.default_rng(0).random((1000, 3)))
        try:
            print(numba.threading_layer())
        except ValueError as error:
            print(error)
        print(threading.active_count())
    """
    out, _ = finished(python(code))
    assert out.splitlines() == ["Threading layer is not initialized.", "1"]


@pytest.fixture
def module(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "kernels.py").write_text(textwrap.dedent(MODULE))
    return tmp_path / "kept"


RUN = """
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    import kernels
    print(kernels.total(np.arange(5.0)), len(kernels.total.stats.cache_hits), len(kernels.total.stats.cache_misses))
"""


@compiled_only
def test_compiled_code_is_kept_and_found_again(tmp_path, module):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert finished(python(RUN, module, environment=environment))[0].split() == ["10.0", "0", "1"]
    assert list((tmp_path / "cache").rglob("*.nbi"))
    assert finished(python(RUN, module, environment=environment))[0].split() == ["10.0", "1", "0"]


@compiled_only
def test_two_processes_may_fill_an_empty_cache_at_once(tmp_path, module):
    """Both look into the index before either has written to it, and then keep different variants."""
    code = """
        sys.path.insert(0, sys.argv[1])
        import os
        import numpy as np
        import kernels
        files = kernels.total._cache._cache_file
        index = files._load_index
        files._load_index = dict
        kernels.total(np.ones(2))
        kernels.total(np.ones(2, np.float32))
        files._load_index = index
        print(len(index()), sum(name.endswith(".nbc") for name in os.listdir(files._cache_path)))
    """
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert finished(python(code, module, environment=environment))[0].split() == ["1", "2"]
    for kind in ("float64", "float32"):
        again = RUN.replace("np.arange(5.0)", f"np.arange(5.0, dtype=np.{kind})")
        assert finished(python(again, module, environment=environment))[0].split()[0] == "10.0"


@compiled_only
def test_without_a_folder_to_write_kernels_still_compile(tmp_path, module):
    """Files stand where folders would have to be made, which stops even an administrator."""
    (tmp_path / "file").touch()
    (module / "__pycache__").touch()
    blocked = {name: str(tmp_path / "file" / "under") for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "HOME")}
    code = """
        sys.path.insert(0, sys.argv[1])
        import numba
        import numpy as np
        import kernels
        try:
            numba.njit(cache=True)(kernels.total.py_func)
            print("cached")
        except RuntimeError as error:
            print("no folder:", "no locator" in str(error))
        print(kernels.total(np.arange(5.0)))
    """
    out, _ = finished(python(code, module, environment=os.environ | blocked | {"PYTHONDONTWRITEBYTECODE": "1"}))
    assert out.splitlines() == ["no folder: True", "10.0"]


# The cache of the tests, which tests/conftest.py sets up.

TWO_FILES = {
    "inner.py": """
        from lemmata.core.kernel import kernel

        @kernel
        def inner(x):
            return x + 1.0
    """,
    "outer.py": """
        from inner import inner
        from lemmata.core.kernel import kernel

        @kernel
        def outer(x):
            return 2.0 * inner(x)
    """,
}
OUTER = """
    sys.path.insert(0, sys.argv[1])
    from outer import outer
    print(outer(1.0))
"""


@compiled_only
def test_a_changed_callee_never_meets_a_stale_caller(tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    for name, text in TWO_FILES.items():
        (sources / name).write_text(textwrap.dedent(text))

    def result(cache):
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache), "PYTHONDONTWRITEBYTECODE": "1"}
        return float(finished(python(OUTER, sources, environment=environment))[0])

    before = digest(sources)
    assert result(before) == 4.0
    (sources / "inner.py").write_text(textwrap.dedent(TWO_FILES["inner.py"]).replace("1.0", "2.0"))
    assert digest(sources) != before
    assert result(before) == 4.0  # stale; when numba mends this (numba#1833), tests/conftest.py may go
    assert result(digest(sources)) == 6.0


def test_the_digest_sees_every_change(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.py").write_text("x = 1\n")
    seen = {digest(tmp_path)}
    assert {digest(tmp_path)} == seen
    (tmp_path / "deep" / "a.py").write_text("x = 2\n")
    seen.add(digest(tmp_path))
    (tmp_path / "b.py").touch()
    seen.add(digest(tmp_path))
    (tmp_path / "b.py").rename(tmp_path / "c.py")
    seen.add(digest(tmp_path))
    (tmp_path / "notes.txt").touch()
    seen.add(digest(tmp_path))
    assert len(seen) == 4


def test_this_run_uses_a_cache_of_its_own_sources():
    root = Path(__file__).resolve().parents[2]
    folder = Path(numba.config.CACHE_DIR)
    assert folder == Path(os.environ["NUMBA_CACHE_DIR"])
    assert folder.is_relative_to(root / ".pytest_cache")
    assert len(folder.name) == len(digest(root / "src"))
    if not numba.config.DISABLE_JIT:
        assert dot(np.ones(2), np.ones(2)) == 2.0
        assert dot.stats.cache_path.startswith(str(folder))
