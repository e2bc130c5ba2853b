"""The estimators of the library with their default parameters, as `lemmata fit` and `lemmata warm` take them."""

from collections.abc import Iterator
from typing import Any


def default_estimators() -> Iterator[tuple[str, Any]]:
    """Make every public estimator that needs no argument, by name."""
    import lemmata

    for name, cls in lemmata.all_estimators():
        try:
            estimator = cls()
        except TypeError:  # needs an argument: nothing to run by default
            continue
        yield name, estimator


def is_meta(estimator: Any) -> bool:
    """Tell whether an estimator works on top of another one: it has a parameter `estimator`.

    Examples
    --------
    >>> from lemmata.decision import Decide
    >>> from lemmata.linear_model import Ridge
    >>> is_meta(Decide()), is_meta(Ridge())
    (True, False)
    """
    return "estimator" in estimator.get_params(deep=False)
