"""
Make the apartments of the demonstration
========================================

The table behind `lemmata demo`: 600 apartments of a town that does not exist. The rent is a price per square meter that
depends on district, distance, age, floor and balcony, times the size, with about 6 % of noise; so a straight line explains
most of it, and products of columns explain more. Some cells are missing, as they always are.

Run `python examples/make_apartments.py` to write `src/lemmata/cli/apartments.csv` anew; the seed is fixed.
"""

from pathlib import Path

import numpy as np

from lemmata.core.table import Table, write_table

DISTRICTS = {"Altstadt": 4.2, "Hafen": 1.4, "Lindenau": 0.6, "Nordpark": -0.4, "Westend": 2.6, "Ziegelei": -2.3}  # €/m²


def apartments(n: int = 600, seed: int = 7) -> Table:
    """Draw the apartments."""
    rng = np.random.default_rng(seed)
    district = rng.choice(list(DISTRICTS), size=n, p=[0.15, 0.2, 0.2, 0.2, 0.15, 0.1])
    size = np.clip(rng.lognormal(mean=4.15, sigma=0.35, size=n), 18, 180).round(1)
    rooms = np.clip(np.round(size / 24 + rng.normal(0, 0.5, n)), 1, 7)
    floor = rng.integers(0, 7, size=n).astype(float)
    balcony = rng.random(n) < np.where(floor > 0, 0.6, 0.2)
    built = np.datetime64("1905-01-01") + rng.integers(0, 43_300, size=n)  # days, to the middle of 2023
    distance = np.round(rng.gamma(2.0, 1.5, size=n) + np.where(district == "Altstadt", 0.1, 1.0), 1)
    age = (np.datetime64("2024-01-01") - built).astype(float) / 365.25
    price = 11.5 + np.array([DISTRICTS[d] for d in district])
    # Old enough to be a monument, or new: both cost more than the years between.
    price += 0.0008 * (age - 60) ** 2 - 0.35 * distance + 0.15 * floor + 0.8 * balcony
    rent = np.round(price * size * (1 + rng.normal(0, 0.06, n)) + 60, 0)

    def with_gaps(column: np.ndarray, share: float, gap: object) -> np.ndarray:
        return np.where(rng.random(n) < share, gap, column)

    return Table(
        {
            "reference": np.array([f"A{i:04d}" for i in rng.permutation(9_000)[:n] + 1_000], dtype=object),
            "size_m2": size,
            "rooms": with_gaps(rooms, 0.03, np.nan),
            "district": with_gaps(district.astype(object), 0.01, None),
            "built": with_gaps(built, 0.06, np.datetime64("NaT")),
            "balcony": with_gaps(balcony.astype(object), 0.04, None),
            "floor": with_gaps(floor, 0.02, np.nan),
            "distance_km": with_gaps(distance, 0.05, np.nan),
            "rent": with_gaps(rent, 0.02, np.nan),
        }
    )


if __name__ == "__main__":
    path = Path(__file__).parents[1] / "src/lemmata/cli/apartments.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        write_table(apartments(), file)
    print(f"wrote {path}")
