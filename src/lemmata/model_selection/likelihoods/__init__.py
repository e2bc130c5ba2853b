"""What each family of models says of its likelihood and its parameters; importing a family registers it."""

from lemmata.model_selection.likelihoods import (
    classification,
    densities,
    factorizations,
    generative,
    processes,
    regression,
    sequences,
    without,
)

__all__ = ["classification", "densities", "factorizations", "generative", "processes", "regression", "sequences", "without"]
