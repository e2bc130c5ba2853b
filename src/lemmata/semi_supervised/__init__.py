"""Classifiers that learn from rows without labels too."""

from lemmata.semi_supervised.random_walk import RandomWalkClassifier

__all__ = ["RandomWalkClassifier"]
