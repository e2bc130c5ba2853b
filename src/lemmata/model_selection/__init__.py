"""Choosing models: cross-validation, the bootstrap, information criteria, the order of a model."""

__all__: list[str] = []
