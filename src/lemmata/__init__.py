"""lemmata: machine learning that shows its proof.

Every estimator has scikit-learn's interface and one verb more: `certify(X, y)` recomputes, from the fitted parameters and
the data alone, how good the fit is, and says what is proved. Subpackages load when first used, so that importing lemmata
costs next to nothing.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_SUBPACKAGES = (
    "association",
    "cluster",
    "decision",
    "decomposition",
    "discriminant_analysis",
    "ensemble",
    "gaussian_process",
    "generative",
    "graphical",
    "hmm",
    "kernels",
    "linear_model",
    "markov",
    "mixture",
    "model_selection",
    "naive_bayes",
    "neighbors",
    "neural_network",
    "optimize",
    "plot",
    "probability",
    "recommend",
    "report",
    "rl",
    "sampling",
    "semi_supervised",
    "state_space",
    "svm",
    "theory",
    "topic",
    "tree",
)
_NAMES = {
    "all_estimators": "lemmata.core.discovery",
    "Blocks": "lemmata.core.blocks",
    "Certificate": "lemmata.core.certificate",
    "Check": "lemmata.core.certificate",
    "config": "lemmata.core.config",
    "load": "lemmata.core.persistence",
    "model_tags": "lemmata.core.estimator",
    "ModelFileError": "lemmata.core.persistence",
    "MonotonicityError": "lemmata.core.iterate",
}

__all__ = [*_NAMES, *_SUBPACKAGES]


def __getattr__(name: str) -> Any:
    if name in _SUBPACKAGES:
        return import_module(f"lemmata.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'lemmata' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
