"""Guarantees on fitted models: which theorems apply to a model, and what they say."""
