"""Few numbers for many: principal components, factors and parts of a table."""

from lemmata.decomposition.pca import PCA

__all__ = ["PCA"]
