"""Ensembles: bagging, random forests, AdaBoost, gradient boosting."""

from lemmata.ensemble.adaboost import AdaBoostClassifier
from lemmata.ensemble.bagging import BaggingClassifier, BaggingRegressor
from lemmata.ensemble.forest import RandomForestClassifier, RandomForestRegressor
from lemmata.ensemble.gradient_boosting import GradientBoostingClassifier, GradientBoostingRegressor
from lemmata.ensemble.importance import partial_dependence, permutation_importance

__all__ = [
    "AdaBoostClassifier",
    "BaggingClassifier",
    "BaggingRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "partial_dependence",
    "permutation_importance",
]
