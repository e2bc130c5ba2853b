"""Find every public estimator of the library by walking its packages."""

from importlib import import_module
from pkgutil import iter_modules

import lemmata


def all_estimators() -> list[tuple[str, type]]:
    """List (name, class) of every public estimator, by name.

    Examples
    --------
    >>> import lemmata
    >>> "KMeans" in dict(lemmata.all_estimators())
    True
    """
    from lemmata.core.estimator import Estimator

    found = {}
    for module in iter_modules(lemmata.__path__):
        if module.ispkg and module.name not in ("core", "cli"):
            package = import_module(f"lemmata.{module.name}")
            for name in getattr(package, "__all__", ()):
                member = getattr(package, name)
                if isinstance(member, type) and issubclass(member, Estimator):
                    found[name] = member
    return sorted(found.items())
