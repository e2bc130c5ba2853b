"""Weights of classes: factors for the rows of each class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def class_factors(class_weight: Any, counts: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return the factor of each class.

    Parameters
    ----------
    class_weight : A dict of labels, 1 for those it does not name; "balanced", for the same total in all classes; or None.
    counts : Weight of the rows of each class.
    classes : The labels.

    Examples
    --------
    >>> class_factors("balanced", np.array([30.0, 10.0]), np.array(["a", "b"])).round(3)
    array([0.667, 2.   ])
    >>> class_factors({"b": 5.0}, np.array([30.0, 10.0]), np.array(["a", "b"]))
    array([1., 5.])
    """
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):
        return np.asarray(counts.sum() / (len(classes) * counts), dtype=float)
    factors = np.ones(len(classes))
    for label, factor in class_weight.items():
        if label not in classes:
            raise ValueError(f"class_weight names {label!r}, which is not a class of y: {classes.tolist()}.")
        if not 0 < factor < np.inf:
            raise ValueError(f"The weight of class {label!r} must be positive and finite, got {factor!r}.")
        factors[classes == label] = factor
    return factors
