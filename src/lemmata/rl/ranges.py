"""Ranges of states, and threads over them.

A pass over all states is cut at boundaries that depend on the model's size alone, and each range writes to places of its own:
the bits are the same for any number of threads.
"""

from itertools import pairwise

from lemmata.core import config, threads

RANGES = 16  # enough for threads to share evenly, few enough that starting them costs nothing
WORTH_THREADS = 1_000_000  # numbers read in a pass: about a millisecond, ten times what starting threads costs


def cut(n, parts=RANGES):
    """Cut n states into ranges of about equal size.

    Examples
    --------
    >>> cut(10, 3)
    [(0, 3), (3, 6), (6, 10)]
    """
    ends = [n * k // parts for k in range(parts + 1)]
    return [(low, high) for low, high in pairwise(ends) if low < high]


def spread(work, n, size, parts=RANGES):
    """Call `work(low, high)` for ranges of n states, on threads if a pass reads so much that they pay; list what it returns."""
    if size < WORTH_THREADS:
        return [work(0, n)]
    ranges = cut(n, parts)
    results = [None] * len(ranges)

    def run(number):
        results[number] = work(*ranges[number])

    threads.run(run, range(len(ranges)), min(config.n_threads(), len(ranges)))
    return results
