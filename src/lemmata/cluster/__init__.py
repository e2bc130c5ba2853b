"""Clustering: groups of rows that lie close together."""

from lemmata.cluster.kmeans import KMeans
from lemmata.cluster.seeding import kmeans_plusplus

__all__ = ["KMeans", "kmeans_plusplus"]
