"""Settings of every test run: a cache of compiled kernels that no change of a source can make stale.

numba notices a change of a kernel's own file, not of a file from which the kernel calls another (numba#1833). So the cache
has a folder for each state of all sources; the environment must name it before numba is imported, here and in subprocesses.
"""

import os
import shutil
import sys
import time

from helpers import CACHES, kernel_cache

WEEK = 7 * 24 * 3600

if "numba" in sys.modules:
    raise RuntimeError("numba was imported before tests/conftest.py could name its cache; which plugin does that?")
os.environ["NUMBA_CACHE_DIR"] = str(kernel_cache())
for old in CACHES.glob("*"):
    if time.time() - old.stat().st_mtime > WEEK:  # old enough that no run of another state of the sources is at it
        shutil.rmtree(old, ignore_errors=True)
os.makedirs(os.environ["NUMBA_CACHE_DIR"], exist_ok=True)


def pytest_configure(config):
    """Name the marker of tests that plain Python is too slow for."""
    config.addinivalue_line("markers", "slow_without_jit: takes minutes under NUMBA_DISABLE_JIT=1")


# They need packages that only whoever writes the references anew needs.
collect_ignore = [
    "graphical/reference/make_pyagrum.py",
    "graphical/reference/make_pyagrum_random.py",
    "reference/make_hmmlearn.py",
    "reference/make_statsmodels.py",
    "sampling/reference/make_arviz.py",
]
