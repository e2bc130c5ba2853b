"""Every bound is exceeded in at most δ of simulated fits, and the misuses of the same formulas are exceeded more often.

Here with few fits, as a guard; `python -m bench coverage` runs 2,000 of each and keeps the figures.
"""

import pytest
from bench.coverage import DELTA, WORLDS, outcomes, summary
from scipy.stats import binom

FITS = 24
MANY = {"best of 50 on a hold-out": 40, "parity rule": 300, "2,000 coins": 300, "eight sets of 100 rows": 300}


@pytest.mark.parametrize("world", WORLDS)
def test_bounds_hold_and_misuses_fail(world):
    fits = MANY.get(world, FITS)
    for row in summary(outcomes(world, range(fits))):
        assert row.fits >= 0.8 * fits  # some do not apply to every fit
        if not row.misused:
            assert row.exceeded <= binom.ppf(1 - 1e-4, fits, DELTA), f"{row.name}: {row.exceeded} of {fits}"
        elif world in MANY:
            assert row.exceeded > binom.ppf(1 - 1e-4, fits, DELTA), f"{row.name}: {row.exceeded} of {fits}"


def test_ten_percent_of_errors_on_a_thousand_rows_are_promised_tightly():
    """The bar: the tightest bound at n = 1,000 on a task with 10 % error is at most 0.13."""
    best = next(row for row in summary(outcomes("hold-out of 1,000", range(FITS))) if row.name == "best")
    assert best.median <= 0.13
