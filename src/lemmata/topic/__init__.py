"""Topics: what documents are about, found from the counts of their words."""

__all__: list[str] = []
