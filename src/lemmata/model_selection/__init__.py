"""Choosing models: cross-validation, the bootstrap, information criteria, the order of a model."""

from lemmata.model_selection.bootstrap import Bootstrap
from lemmata.model_selection.cross_validation import CrossValidation, cross_validate

__all__ = ["Bootstrap", "CrossValidation", "cross_validate"]
