"""Random numbers inside kernels, against the same recurrence in Python's unbounded integers, and against their laws."""

import numpy as np
from scipy import stats

from lemmata.core.xoshiro import fill_uniform, next_normal, next_uniform, seed

WORD = 2**64 - 1


def recurrence(s):
    """xoshiro256+ as Blackman & Vigna print it."""
    drawn = (s[0] + s[3]) & WORD
    t = (s[1] << 17) & WORD
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= t
    s[3] = ((s[3] << 45) | (s[3] >> 19)) & WORD
    return (drawn >> 11) * 2.0**-53


def test_the_same_numbers_as_the_recurrence():
    for number in range(3):
        state = seed(np.random.default_rng(number))
        again, words = state.copy(), [int(word) for word in state]
        expected = [recurrence(words) for _ in range(500)]
        assert [next_uniform(state) for _ in range(500)] == expected
        filled = np.empty(500)
        fill_uniform(again, filled)
        assert filled.tolist() == expected
        assert np.array_equal(state, again)


def test_uniform_and_normal():
    state, drawn = seed(np.random.default_rng(1)), np.empty(20_000)
    fill_uniform(state, drawn)
    assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(drawn[1:], drawn[:-1])[0, 1]) < 4 / np.sqrt(len(drawn))  # 4 standard errors
    normal = [next_normal(state) for _ in range(5000)]
    assert stats.kstest(normal, "norm").pvalue > 1e-3


def test_a_seed_is_a_state_of_its_own():
    rng = np.random.default_rng(0)
    assert not np.array_equal(seed(rng), seed(rng))
    assert np.array_equal(seed(np.random.default_rng(5)), seed(np.random.default_rng(5)))
