"""Nearest neighbors: exact search, votes and means."""

from lemmata.neighbors.nearest import NearestNeighbors
from lemmata.neighbors.supervised import KNeighborsClassifier, KNeighborsRegressor

__all__ = ["KNeighborsClassifier", "KNeighborsRegressor", "NearestNeighbors"]
