"""Clustering: groups of rows that lie close together."""

from lemmata.cluster.elbow import Elbow, elbow
from lemmata.cluster.kmeans import KMeans
from lemmata.cluster.kmedians import KMedians
from lemmata.cluster.kmedoids import KMedoids
from lemmata.cluster.seeding import kmeans_plusplus
from lemmata.cluster.silhouette import silhouette
from lemmata.cluster.soft_kmeans import SoftKMeans

__all__ = ["Elbow", "KMeans", "KMedians", "KMedoids", "SoftKMeans", "elbow", "kmeans_plusplus", "silhouette"]
