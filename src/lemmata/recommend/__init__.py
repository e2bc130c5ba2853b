"""Recommendations: what users would say of items, learned from the ratings that there are."""

from lemmata.recommend.factorization import ProbabilisticMatrixFactorization
from lemmata.recommend.metrics import auc, average_precision, mean_reciprocal_rank, ndcg_at_k, precision_at_k, recall_at_k

__all__ = [
    "ProbabilisticMatrixFactorization",
    "auc",
    "average_precision",
    "mean_reciprocal_rank",
    "ndcg_at_k",
    "precision_at_k",
    "recall_at_k",
]
