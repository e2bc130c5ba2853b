"""Recommendations: what users would say of items, learned from the ratings that there are."""

from lemmata.recommend.factorization import ProbabilisticMatrixFactorization

__all__ = ["ProbabilisticMatrixFactorization"]
