"""Pictures are drawn into memory, and closed after each test."""

import matplotlib as mpl
import pytest

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close():
    yield
    from matplotlib import pyplot as plt

    plt.close("all")
