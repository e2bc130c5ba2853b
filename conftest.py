"""For tests and doctests alike: pictures are drawn into memory and closed, so that no run collects them."""

import sys

import pytest


@pytest.fixture(autouse=True)
def _close_pictures():
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")
