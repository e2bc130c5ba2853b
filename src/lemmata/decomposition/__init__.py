"""Few numbers for many: principal components, factors and parts of a table."""

__all__: list[str] = []
