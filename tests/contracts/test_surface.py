"""The public surface: what is listed exists, what is public is listed, and every public name has an example that runs."""

import inspect
import subprocess
import sys
from importlib import import_module
from pkgutil import iter_modules

import pytest

import lemmata

PACKAGES = [m.name for m in iter_modules(lemmata.__path__) if m.ispkg and m.name not in ("core", "cli")]
INNER = ["probability.distributions", "theory.bounds"]  # packages inside packages that are public


@pytest.mark.parametrize("name", PACKAGES + INNER)
def test_all_lists_exactly_the_public_members(name):
    package = import_module(f"lemmata.{name}")
    public = {key for key, value in vars(package).items() if not key.startswith("_") and not inspect.ismodule(value)}
    assert set(package.__all__) == public
    for key in package.__all__:
        document = inspect.getdoc(getattr(package, key)) or ""
        assert ">>> " in document, f"{name}.{key} has no example"


def test_top_level_names_load_and_are_listed():
    for name in lemmata.__all__:
        assert getattr(lemmata, name) is not None
        assert name in dir(lemmata)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = lemmata.no_such_name
    assert set(PACKAGES) <= set(lemmata.__all__)


def test_importing_lemmata_loads_nothing_heavy():
    code = "import lemmata, sys; print([m for m in ('numpy', 'numba', 'sklearn', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
