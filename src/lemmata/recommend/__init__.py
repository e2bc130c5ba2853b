"""Recommendations: what users would say of items, learned from the ratings that there are."""

__all__: list[str] = []
